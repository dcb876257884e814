/* SPDX-License-Identifier: MIT */
/*
 * The kernel's coarse clocks, which it sets at each of its own ticks (1 to
 * 10 ms apart). Reading them never enters the kernel and touches no hardware,
 * so a ticker on them is cheap where the exact clocks are slow. In exchange
 * the words are older by up to 1.3 kernel ticks. Live reads stay exact.
 */
#include "clocksource.h"

#include <stdio.h>

#include "kernel_clock.h"

static int open_coarse(struct clocksource *cs, char *why, size_t size)
{
	struct timespec tick;

	if (clock_getres(CLOCK_MONOTONIC_COARSE, &tick) != 0)
		tick = timespec_from_ns(10000000); /* the longest: HZ=100 */

	cs->mask = UINT64_MAX;
	cs->hz = NS_PER_SEC;
	cs->mono = CLOCK_MONOTONIC_COARSE;
	cs->wall = CLOCK_REALTIME_COARSE;
	cs->lag_ns = 2 * timespec_to_ns(&tick);
	snprintf(why, size, "the kernel's coarse clocks");
	return 0;
}

const struct clocksource_driver clocksource_coarse = {
	.name = "coarse",
	.rating = 0,
	.open = open_coarse,
};
