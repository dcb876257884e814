/* SPDX-License-Identifier: MIT */
#include "kernel_clock.h"

#include <errno.h>
#include <sys/time.h>

#define COARSE_TICK_MAX_NS INT64_C(10000000) /* HZ=100 */

static int last_error; /* relaxed: for people */
int64_t kernel_coarse_lag;
/* Relaxed: wholes in themselves. */
static int64_t boot_offset_ns;
static int64_t tai_offset_ns;

static int try_clock(clockid_t clock, int64_t *ns)
{
	struct timespec ts;

	if (clock_gettime(clock, &ts) != 0)
		return -errno;

	*ns = timespec_to_ns(&ts);
	return 0;
}

__attribute__((cold)) int64_t kernel_find_coarse_lag(void)
{
	struct timespec tick;
	int saved = errno;
	int64_t ns;

	if (clock_getres(CLOCK_MONOTONIC_COARSE, &tick) != 0)
		tick = timespec_from_ns(COARSE_TICK_MAX_NS);
	errno = saved;

	ns = 2 * timespec_to_ns(&tick);
	__atomic_store_n(&kernel_coarse_lag, ns, __ATOMIC_RELAXED);
	return ns;
}

static int64_t coarse_mono_ns(void)
{
	int64_t ns;

	if (try_clock(CLOCK_MONOTONIC_COARSE, &ns) != 0)
		return 0;
	/* Keeps mono from going back at the moment a sandbox closes over a
	 * process that has read the exact clock. */
	return ns + kernel_coarse_lag_ns();
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
	if (clock == CLOCK_TAI)
		return coarse_wall_ns() +
		       __atomic_load_n(&tai_offset_ns, __ATOMIC_RELAXED);
	if (clock == CLOCK_BOOTTIME)
		return coarse_mono_ns() +
		       __atomic_load_n(&boot_offset_ns, __ATOMIC_RELAXED);
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

int kernel_clock_try(clockid_t clock, int64_t *ns)
{
	int saved = errno;
	int ret = try_clock(clock, ns);

	errno = saved;
	return ret;
}

void kernel_clock_note_boot(int64_t offset_ns)
{
	__atomic_store_n(&boot_offset_ns, offset_ns, __ATOMIC_RELAXED);
}

void kernel_clock_note_tai(int64_t offset_ns)
{
	__atomic_store_n(&tai_offset_ns, offset_ns, __ATOMIC_RELAXED);
}

int kernel_clock_error(void)
{
	return __atomic_load_n(&last_error, __ATOMIC_RELAXED);
}
