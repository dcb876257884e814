/* SPDX-License-Identifier: MIT */
/*
 * What there is without the library. No conversion to milliseconds, which
 * these would need and the readers don't: the comparison favours them.
 */
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "loops.h"

/* The answer has to be there, in memory. */
static inline void read_clock(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	__asm__ volatile("" : : "m"(ts));
}

static inline void read_syscall(void)
{
	struct timespec ts;

	syscall(SYS_clock_gettime, CLOCK_REALTIME, &ts);
	__asm__ volatile("" : : "m"(ts));
}

static inline void read_timeofday(void)
{
	struct timeval tv;

	gettimeofday(&tv, NULL);
	__asm__ volatile("" : : "m"(tv));
}

LOOP(realtime, read_clock(CLOCK_REALTIME);)
LOOP(monotonic, read_clock(CLOCK_MONOTONIC);)
LOOP(realtime_coarse, read_clock(CLOCK_REALTIME_COARSE);)
LOOP(monotonic_coarse, read_clock(CLOCK_MONOTONIC_COARSE);)
LOOP(timeofday, read_timeofday();)
LOOP(seconds, LOOP_USE(time(NULL)))
LOOP(raw_syscall, read_syscall();)

const struct loop loops_kernel[] = {
	{ "clock_gettime(REALTIME)", realtime },
	{ "clock_gettime(MONOTONIC)", monotonic },
	{ "clock_gettime(REALTIME_COARSE)", realtime_coarse },
	{ "clock_gettime(MONOTONIC_COARSE)", monotonic_coarse },
	{ "gettimeofday", timeofday },
	{ "time", seconds },
	{ "syscall(clock_gettime)", raw_syscall },
	{ NULL, NULL },
};
