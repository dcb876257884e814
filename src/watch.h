/* SPDX-License-Identifier: MIT */
/*
 * The watch over a counter in use: trust.h with the clocks that it judges by,
 * and an eye on whether the kernel still uses that clocksource.
 */
#ifndef WATCH_H
#define WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clocksource.h"
#include "trust.h"

struct watch {
	bool on;
	struct trust trust;
	int64_t due_ns;		  /* mono at which to judge it again */
	int64_t kernel_due_ns;	  /* mono before which not to ask sysfs */
	int64_t usual_bracket_ns; /* the narrowest since it is in use */
	int slow_in_a_row;	  /* samples much wider than that */
	int64_t boot_offset_ns;	  /* boot - mono, at most */
};

/* How often a counter in use is judged, if nothing looks wrong meanwhile. */
#define WATCH_INTERVAL_NS INT64_C(100000000)

/* On *cs, of known rate. No watch where it needs none, or there is no clock to
 * judge it by. */
void watch_begin(struct watch *w, const struct clocksource *cs, int64_t mono_ns);

/*
 * Is it as good as it was? After a sample at mono_ns that took bracket_ns;
 * `parted`: it looks as if not. TRUST_GOOD where it isn't due.
 */
enum trust_verdict watch_check(struct watch *w, const struct clocksource *cs,
	int64_t mono_ns, int64_t bracket_ns, bool parted);

/* What has become of it, in words; from any thread. */
struct watch_fate {
	/* Relaxed: for people. */
	enum trust_verdict verdict;
	int64_t off_ns;
	int64_t within_ns;
};

void watch_note(const struct watch *w, enum trust_verdict verdict,
	struct watch_fate *fate);
void watch_explain(const struct watch_fate *fate, char *buf, size_t size);

#endif /* WATCH_H */
