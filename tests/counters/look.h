/* SPDX-License-Identifier: MIT */
/* The test's own measurement of the processor's counter. */
#ifndef LOOK_H
#define LOOK_H

#include "counters.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

struct look {
	int64_t ns;
	uint64_t cycles;
};

static inline uint64_t look_at_cycles(void)
{
#if defined(__x86_64__)
	_mm_lfence();
	return __rdtsc();
#else
	return 0;
#endif
}

/* The counter between two reads of the clock: the narrowest of many. */
static inline struct look look_at_counter(clockid_t clock)
{
	struct look best = { 0, 0 };
	int64_t before_ns, after_ns, narrowest_ns = INT64_MAX;
	uint64_t cycles;

	for (int i = 0; i < 20000; i++) {
		before_ns = clock_ns(clock);
		cycles = look_at_cycles();
		after_ns = clock_ns(clock);
		if (after_ns - before_ns < narrowest_ns) {
			narrowest_ns = after_ns - before_ns;
			best.ns = before_ns + narrowest_ns / 2;
			best.cycles = cycles;
		}
	}
	return best;
}

static inline double look_hz(struct look from, struct look to)
{
	return (double)(to.cycles - from.cycles) * 1e9 /
	       (double)(to.ns - from.ns);
}

#endif /* LOOK_H */
