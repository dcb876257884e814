/* SPDX-License-Identifier: MIT */
/*
 * A clock_gettime() of the test program's own, which the library calls as
 * well: the kernel's clocks, shifted or refused, and the machine's clock left
 * alone. Included by the one source file of a program.
 */
#ifndef FAKE_CLOCK_H
#define FAKE_CLOCK_H

#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "clocks.h"

enum refused { REFUSED_NONE, REFUSED_EXACT, REFUSED_ALL };

/* Atomic, relaxed: the ticker reads them whenever. */
static int64_t wall_shift_ns, mono_shift_ns;
static int refused;

static bool is_refused(clockid_t clock)
{
	int now = __atomic_load_n(&refused, __ATOMIC_RELAXED);

	/* The judge's own. */
	if (clock == CLOCK_MONOTONIC_RAW)
		return false;
	if (clock == CLOCK_MONOTONIC_COARSE || clock == CLOCK_REALTIME_COARSE)
		return now == REFUSED_ALL;
	return now != REFUSED_NONE;
}

static int64_t shift_of(clockid_t clock)
{
	switch (clock) {
	case CLOCK_REALTIME:
	case CLOCK_REALTIME_COARSE:
		return __atomic_load_n(&wall_shift_ns, __ATOMIC_RELAXED);
	case CLOCK_MONOTONIC:
	case CLOCK_MONOTONIC_COARSE:
	case CLOCK_BOOTTIME:
		return __atomic_load_n(&mono_shift_ns, __ATOMIC_RELAXED);
	default:
		return 0;
	}
}

static int64_t true_ns(clockid_t clock)
{
	struct timespec ts;

	CHECK(syscall(SYS_clock_gettime, clock, &ts) == 0);
	return ts.tv_sec * SEC + ts.tv_nsec;
}

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	int64_t ns;

	if (is_refused(clock)) {
		errno = EPERM;
		return -1;
	}
	ns = true_ns(clock) + shift_of(clock);
	ts->tv_sec = ns / SEC;
	ts->tv_nsec = ns % SEC;
	if (ts->tv_nsec < 0) {
		ts->tv_sec--;
		ts->tv_nsec += SEC;
	}
	return 0;
}

static inline void set_refused(enum refused value)
{
	__atomic_store_n(&refused, (int)value, __ATOMIC_RELAXED);
}

static inline void shift(int64_t *shift_ns, int64_t by_ns)
{
	__atomic_fetch_add(shift_ns, by_ns, __ATOMIC_RELAXED);
}

#endif /* FAKE_CLOCK_H */
