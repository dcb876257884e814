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
#include "trust.h"

#define CLOCKSOURCE_NAME_SIZE 16

struct clocksource {
	char name[CLOCKSOURCE_NAME_SIZE];

	/* NULL: the counter is `mono` itself, in nanoseconds. */
	uint64_t (*read)(void);
	uint64_t mask;	   /* of the bits that count */
	uint64_t hz;	   /* nominal rate; 0: to be measured first */
	int64_t error_ppb; /* how far that may be off */

	bool processors;    /* its own: any reader may read it, for little */
	bool watched;	    /* dropped as soon as it can't be trusted */
	bool kernels_own;   /* good only while the kernel uses it itself */

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
	 * Fill in *cs, except the name. `asked` for by name, or only looked
	 * at by `auto`. 0; or -errno; and the reason in words, for
	 * ct_status(), in `why` either way.
	 */
	int (*open)(struct clocksource *cs, bool asked, char *why, size_t size);
};

/* What `auto` decides about the TSC by; clocksource_tsc.c. */
struct tsc_facts {
	bool present;	     /* an x86 */
	bool invariant;	     /* CPUID says so */
	bool readable;	     /* PR_GET_TSC: not trapped */
	const char *current; /* the kernel's clocksource; "" if unknown */
};

/* 0 or -ENODEV, and in `why` the words for it. */
int tsc_decide(const struct tsc_facts *facts, bool asked, char *why,
	size_t size);

/*
 * The name of the clocksource that the kernel uses now, from sysfs; "" and
 * -errno where that can't be read.
 */
int clocksource_kernel(char *name, size_t size);

/* For tests: read it from another file. */
void clocksource_kernel_from(const char *path);

/* May the kernel use this one and the TSC be trusted? */
bool clocksource_kernel_trusts_tsc(const char *name);

extern const struct clocksource_driver clocksource_tsc;
extern const struct clocksource_driver clocksource_hpet;
extern const struct clocksource_driver clocksource_realtime;
extern const struct clocksource_driver clocksource_coarse;

/* "tsc, realtime, hpet, coarse", for messages. */
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

/* Look at the counter and CLOCK_MONOTONIC_RAW, likewise. False: refused. */
bool clocksource_sample_raw(
	const struct clocksource *cs, struct trust_sample *sample);

#endif /* CLOCKSOURCE_H */
