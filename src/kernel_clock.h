/* SPDX-License-Identifier: MIT */
/*
 * The kernel's clocks, read so that no read can fail.
 *
 * clock_gettime() can: a sandbox may answer EPERM or ENOSYS where the vDSO has
 * to enter the kernel. The coarse clocks then serve, which need not.
 */
#ifndef KERNEL_CLOCK_H
#define KERNEL_CLOCK_H

#include <stdint.h>
#include <time.h>

#include "arith.h"

/*
 * Nanoseconds of CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_TAI or a
 * coarse clock; keeps errno. 0 only if the kernel tells no time of any kind.
 */
int64_t kernel_clock_ns(clockid_t clock);

/*
 * How far they may lag the exact ones: two ticks. The kernel sets them to a
 * whole tick of its own grid, which may be one tick back, and then not before
 * the next (measured at HZ=250: 1.9 to 6.05 ms, the phase wanders).
 */
int64_t kernel_find_coarse_lag(void);
/* Relaxed: every thread finds the same. Hidden: no table on the way to it. */
extern int64_t kernel_coarse_lag __attribute__((visibility("hidden")));

static inline int64_t kernel_coarse_lag_ns(void)
{
	int64_t ns = __atomic_load_n(&kernel_coarse_lag, __ATOMIC_RELAXED);

	return __builtin_expect(ns > 0, 1) ? ns : kernel_find_coarse_lag();
}

/* The same, without a next best: 0, or -errno. */
int kernel_clock_try(clockid_t clock, int64_t *ns);

/*
 * boot - mono and TAI - wall, as they were last; for the day when CLOCK_BOOTTIME
 * and CLOCK_TAI are refused. From whoever looks at both.
 */
void kernel_clock_note_boot(int64_t offset_ns);
void kernel_clock_note_tai(int64_t offset_ns);

/* 0, or the -errno with which the kernel last refused to read a clock. */
int kernel_clock_error(void);

static inline struct timespec timespec_from_ns(int64_t ns)
{
	struct timespec ts = {
		.tv_sec = ns / NS_PER_SEC,
		.tv_nsec = ns % NS_PER_SEC,
	};

	return ts;
}

static inline int64_t timespec_to_ns(const struct timespec *ts)
{
	return ts->tv_sec * NS_PER_SEC + ts->tv_nsec;
}

#endif /* KERNEL_CLOCK_H */
