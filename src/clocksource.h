/* SPDX-License-Identifier: MIT */
/*
 * The contract of a back end: a counter that runs at a fixed rate, and the
 * kernel's clocks that it is held against. Which exist, best first, is in
 * clocksource.c; each has a file of its own.
 *
 * CLOCK_REALTIME is no counter, because it steps: the kernel's own back ends
 * count mono, and the timekeeper meets steps in one place.
 */
#ifndef CLOCKSOURCE_H
#define CLOCKSOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "timekeeper.h"

#define CLOCKSOURCE_NAME_SIZE 16

struct clocksource {
	char name[CLOCKSOURCE_NAME_SIZE];

	/* NULL: the counter is `mono` itself, in nanoseconds. */
	uint64_t (*read)(void);
	uint64_t mask; /* of the bits that count */
	uint64_t hz;   /* nominal rate */

	clockid_t mono;
	clockid_t wall;
	/* How far these lag the exact clocks. A word taken from an exact clock
	 * may be ahead of them by this, and isn't taken for a step back. */
	int64_t lag_ns;

	/* Private to clocksource_sample(): the narrowest bracket of late. */
	int64_t bracket_ns;
};

/* One back end. */
struct clocksource_driver {
	const char *name;
	int rating; /* `auto` takes the highest that opens; 0: never */

	/*
	 * Fill in *cs, except the name. 0; or -errno and the reason in words,
	 * for ct_status(), in `why`.
	 */
	int (*open)(struct clocksource *cs, char *why, size_t size);
};

extern const struct clocksource_driver clocksource_realtime;
extern const struct clocksource_driver clocksource_coarse;

/* "realtime, coarse", for messages. */
size_t clocksource_names(char *buf, size_t size);

/* NULL if there is none of that name. */
const struct clocksource_driver *clocksource_find(const char *name);

/*
 * Open the back end `name`, or the best for "auto" or NULL; `reason` says why
 * this one and why not the others. Always succeeds: the kernel's clocks are
 * there. 0, or the -errno of the named one that could not be had.
 */
int clocksource_open(struct clocksource *cs, const char *name, char *reason,
	size_t size);

/* clocksource_user.c: a counter that the program brings along. */
struct ct_clocksource;
bool clocksource_user_valid(const struct ct_clocksource *user, int64_t tick_ns);
void clocksource_open_user(struct clocksource *cs,
	const struct ct_clocksource *user, const char *name, char *reason,
	size_t size);

/* Look at all its clocks: the narrowest of up to four brackets. */
void clocksource_sample(
	struct clocksource *cs, struct timekeeper_sample *sample);

#endif /* CLOCKSOURCE_H */
