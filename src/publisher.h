/* SPDX-License-Identifier: MIT */
/*
 * One publication after another: look at the words, sample the clocks, advance
 * the timekeeper, publish. Belongs to one thread at a time: the ticker, or
 * whoever holds the lock in a refresh.
 *
 * A counter whose rate must be measured first waits beside the kernel's clocks
 * until it is; one that can't be trusted any more is dropped for them.
 */
#ifndef PUBLISHER_H
#define PUBLISHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clocksource.h"
#include "timekeeper.h"
#include "trust.h"
#include "watch.h"

/* What has become of the counter that was chosen. */
enum publisher_phase {
	PUBLISHER_CHOSEN,  /* in use */
	PUBLISHER_WAITING, /* for its rate; the kernel's clocks serve */
	PUBLISHER_DROPPED, /* the kernel's clocks serve */
};

struct publisher {
	bool begun;
	struct clocksource cs; /* in use */
	struct timekeeper tk;

	struct clocksource waiting;
	struct calibration calibration;

	struct watch watch;
	int64_t rate_due_ns; /* mono at which to show the counter's rate */

	int64_t boot_offset_ns; /* boot - mono: changes at a suspend */
	int64_t tai_offset_ns;	/* TAI - wall: changes at a leap second */
	int64_t offsets_due_ns; /* mono at which to look at them again */

	enum publisher_phase phase; /* relaxed: for people, from any thread */
	struct watch_fate fate;
};

/* Start on *cs, which is read when publishing begins. */
void publisher_start(struct publisher *p, const struct clocksource *cs);

/* Publish once, engaging what is parked; the sample is left in *sample. */
void publisher_publish(struct publisher *p, struct timekeeper_sample *sample);

/* From cached to live, when nobody publishes any more. */
void publisher_park(void);

/* What has become of the counter, in words for ct_status(); "" if all is well.
 * From any thread. */
void publisher_explain(const struct publisher *p, char *buf, size_t size);

#endif /* PUBLISHER_H */
