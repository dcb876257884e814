/* SPDX-License-Identifier: MIT */
/*
 * The kernel's coarse clocks, which it sets at each of its own ticks (1 to
 * 10 ms apart). Reading them never enters the kernel and touches no hardware,
 * so a ticker on them is cheap where the exact clocks are slow. In exchange
 * the words are older by up to two kernel ticks. Live reads stay exact.
 */
#include "clocksource.h"

#include <stdio.h>

#include "kernel_clock.h"

static int open_coarse(
	struct clocksource *cs, bool asked, char *why, size_t size)
{
	(void)asked;
	cs->mask = UINT64_MAX;
	cs->hz = NS_PER_SEC;
	cs->mono = CLOCK_MONOTONIC_COARSE;
	cs->wall = CLOCK_REALTIME_COARSE;
	cs->lag_ns = kernel_coarse_lag_ns();
	snprintf(why, size, "the kernel's coarse clocks");
	return 0;
}

const struct clocksource_driver clocksource_coarse = {
	.name = "coarse",
	.rating = 0,
	.open = open_coarse,
};
