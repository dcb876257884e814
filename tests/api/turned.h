/* SPDX-License-Identifier: MIT */
/*
 * The kernel's clocks, set by hand. The linker has the library, the static
 * twin, call __wrap_kernel_clock_ns() instead of its own: --wrap. They are the
 * machine's, and the wall clock as far off as it is set here; or, where one
 * thread is to know to the nanosecond, clocks by which only reading takes time.
 * Included by the one source file of a program.
 */
#ifndef TURNED_H
#define TURNED_H

#include "api.h"

/* What a read takes of a clock that is turned by hand. */
#define READ_NS 30

/* Relaxed: read by any thread whenever. */
static struct {
	int64_t wall_ns; /* wall: set by so much in all */
	int64_t tai_ns;	 /* TAI - wall: likewise */
	int64_t mono_ns; /* by hand, if not 0 */
	int64_t wall_offset_ns; /* then: wall - mono, before it is set */
	int64_t tai_offset_ns;	/* then: TAI - wall, likewise */
} turned;

/* Called once, at the end of the next read of mono after one of wall: when a
 * sample of the clocks is complete, and nothing is published yet. */
static void (*after_sample)(void);
static bool wall_was_read;

int64_t __wrap_kernel_clock_ns(clockid_t clock);
int64_t __real_kernel_clock_ns(clockid_t clock);
int __wrap_kernel_clock_try(clockid_t clock, int64_t *ns);
int __real_kernel_clock_try(clockid_t clock, int64_t *ns);

static inline int64_t turned_get(const int64_t *value)
{
	return __atomic_load_n(value, __ATOMIC_RELAXED);
}

static inline int64_t by_hand(clockid_t clock)
{
	int64_t ns = turned.mono_ns += READ_NS;

	if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
		ns += turned.wall_offset_ns;
	else if (clock == CLOCK_TAI)
		ns += turned.wall_offset_ns + turned.tai_offset_ns;
	return ns;
}

static inline int64_t set_by(clockid_t clock)
{
	if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
		return turned_get(&turned.wall_ns);
	if (clock == CLOCK_TAI)
		return turned_get(&turned.wall_ns) + turned_get(&turned.tai_ns);
	return 0;
}

static inline void call_after_sample(clockid_t clock)
{
	void (*now)(void) = after_sample;

	if (now == NULL)
		return;
	if (clock == CLOCK_REALTIME)
		wall_was_read = true;
	if (clock != CLOCK_MONOTONIC || !wall_was_read)
		return;
	after_sample = NULL;
	wall_was_read = false;
	now();
}

int64_t __wrap_kernel_clock_ns(clockid_t clock)
{
	int64_t ns = turned.mono_ns != 0 ? by_hand(clock)
					 : __real_kernel_clock_ns(clock);

	ns += set_by(clock);
	call_after_sample(clock);
	return ns;
}

int __wrap_kernel_clock_try(clockid_t clock, int64_t *ns)
{
	if (turned.mono_ns == 0)
		return __real_kernel_clock_try(clock, ns);
	*ns = __wrap_kernel_clock_ns(clock);
	return 0;
}

/* As settimeofday(2). */
static inline void set_clock(int64_t by_ns)
{
	__atomic_fetch_add(&turned.wall_ns, by_ns, __ATOMIC_RELAXED);
}

/* 23:59:60: the second is told once more, and TAI goes on. */
static inline void insert_leap_second(void)
{
	__atomic_fetch_add(&turned.tai_ns, SEC, __ATOMIC_RELAXED);
	set_clock(-SEC);
}

static inline int64_t turned_wall_ns(void)
{
	return clock_ns(CLOCK_REALTIME) + turned_get(&turned.wall_ns);
}

/* From now on they are turned by hand, from where they are. */
static inline void turn_by_hand(void)
{
	int64_t before_ns, best_ns = INT64_MAX;

	turned.tai_offset_ns = 37 * SEC;
	for (int i = 0; i < 100; i++) {
		int64_t mono_ns = clock_ns(CLOCK_MONOTONIC);
		int64_t wall_ns = clock_ns(CLOCK_REALTIME);

		before_ns = clock_ns(CLOCK_MONOTONIC) - mono_ns;
		if (before_ns >= best_ns)
			continue;
		best_ns = before_ns;
		turned.wall_offset_ns = wall_ns - mono_ns - before_ns / 2;
	}
	turned.mono_ns = clock_ns(CLOCK_MONOTONIC);
}

#endif /* TURNED_H */
