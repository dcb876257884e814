/* SPDX-License-Identifier: MIT */
/*
 * The kernel's clocks: always there, exact, and followed by definition. The
 * counter is CLOCK_MONOTONIC.
 */
#include "clocksource.h"

#include <stdio.h>

#include "kernel_clock.h"

static int open_realtime(
	struct clocksource *cs, bool asked, char *why, size_t size)
{
	(void)asked;
	cs->mask = UINT64_MAX;
	cs->hz = NS_PER_SEC;
	cs->mono = CLOCK_MONOTONIC;
	cs->wall = CLOCK_REALTIME;
	snprintf(why, size, "the kernel's clocks, always there");
	return 0;
}

const struct clocksource_driver clocksource_realtime = {
	.name = "realtime",
	.rating = 100,
	.open = open_realtime,
};
