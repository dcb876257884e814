/* SPDX-License-Identifier: MIT */
#include "kernel_clock.h"

#include <errno.h>
#include <sys/time.h>

/*
 * CLOCK_MONOTONIC_COARSE lags CLOCK_MONOTONIC by up to 1.3 of its ticks
 * (5.5 ms at HZ=250, measured). Two ticks on top keep mono from going back at
 * the moment a sandbox closes over a process that has read the exact clock.
 */
#define COARSE_LAG_TICKS 2

static int last_error; /* relaxed: for people */

static int try_clock(clockid_t clock, int64_t *ns)
{
	struct timespec ts;

	if (clock_gettime(clock, &ts) != 0)
		return -errno;

	*ns = timespec_to_ns(&ts);
	return 0;
}

static int64_t coarse_mono_ns(void)
{
	struct timespec tick = { .tv_nsec = 4000000 };
	int64_t ns;

	if (try_clock(CLOCK_MONOTONIC_COARSE, &ns) != 0)
		return 0;
	if (clock_getres(CLOCK_MONOTONIC_COARSE, &tick) != 0)
		tick.tv_nsec = 10000000; /* the longest: HZ=100 */

	return ns + COARSE_LAG_TICKS * tick.tv_nsec;
}

static int64_t coarse_wall_ns(void)
{
	struct timeval tv;
	int64_t ns;

	if (try_clock(CLOCK_REALTIME_COARSE, &ns) == 0)
		return ns;
	if (gettimeofday(&tv, NULL) == 0)
		return tv.tv_sec * NS_PER_SEC + tv.tv_usec * 1000;

	ns = time(NULL);
	return ns > 0 ? ns * NS_PER_SEC : 0;
}

__attribute__((cold, noinline)) static int64_t next_best_ns(clockid_t clock)
{
	__atomic_store_n(&last_error, -errno, __ATOMIC_RELAXED);

	if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
		return coarse_wall_ns();
	return coarse_mono_ns();
}

int64_t kernel_clock_ns(clockid_t clock)
{
	struct timespec ts;
	int saved;
	int64_t ns;

	saved = errno;
	if (__builtin_expect(clock_gettime(clock, &ts) == 0, 1))
		return timespec_to_ns(&ts);

	ns = next_best_ns(clock);
	errno = saved;
	return ns;
}

int kernel_clock_error(void)
{
	return __atomic_load_n(&last_error, __ATOMIC_RELAXED);
}
