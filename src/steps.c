/* SPDX-License-Identifier: MIT */
#include "steps.h"

#include <stdbool.h>
#include <stddef.h>

#include <cachedtime.h>

#include "arith.h"
#include "kernel_clock.h"
#include "lock.h"

#define LOOK_TRIES 64
/* Narrow enough to look no further: two clock reads where they're slow. */
#define LOOK_NARROW_NS INT64_C(4000)

/*
 * Not in the page, so that they survive a fork. [a] atomic
 * [l] under ct_page.step_lock
 */
static struct {
	int64_t offset_ns;   /* [a] as counted last; STEPS_UNKNOWN: not looked at yet */
	int64_t error_ns;    /* [a] of that */
	uint64_t generation; /* [a] steps since, plus 1 */

	void (*fn)(int64_t delta_ns, void *arg); /* [l] */
	void *arg;				 /* [l] */
	int64_t told_offset_ns;			 /* [l] up to there fn knows */
	uint64_t told_generation;		 /* [a], written under [l] */
} steps = { .offset_ns = STEPS_UNKNOWN, .generation = 1, .told_generation = 1 };

/*
 * Between these, wall - mono; the narrowest of a few looks. Two that are about
 * equally wide say that the clocks are slow, not that we were preempted.
 */
static void look(int64_t *lo_ns, int64_t *hi_ns)
{
	int64_t best_ns = INT64_MAX;

	for (int i = 0; i < LOOK_TRIES && best_ns > LOOK_NARROW_NS; i++) {
		int64_t before_ns = kernel_clock_ns(CLOCK_MONOTONIC);
		int64_t wall_ns = kernel_clock_ns(CLOCK_REALTIME);
		int64_t after_ns = kernel_clock_ns(CLOCK_MONOTONIC);
		int64_t width_ns = after_ns - before_ns;
		bool slow = i > 0 && width_ns < best_ns + best_ns / 8 &&
			    best_ns < width_ns + width_ns / 8;

		if (width_ns < best_ns) {
			best_ns = width_ns;
			*lo_ns = wall_ns - after_ns;
			*hi_ns = wall_ns - before_ns;
		}
		if (slow)
			break;
	}
}

uint64_t steps_generation(void)
{
	/* Acquire: pairs with steps_look(). */
	return __atomic_load_n(&steps.generation, __ATOMIC_ACQUIRE);
}

int64_t steps_offset_ns(void)
{
	return __atomic_load_n(&steps.offset_ns, __ATOMIC_RELAXED);
}

uint64_t steps_look(void)
{
	/* Acquire: the clocks are read after it, so that one who looked before
	 * somebody else's count finds that and doesn't count it back. */
	int64_t seen_ns = __atomic_load_n(&steps.offset_ns, __ATOMIC_ACQUIRE);
	int64_t lo_ns = 0, hi_ns = 0, off_ns, limit_ns;

	for (;;) {
		look(&lo_ns, &hi_ns);
		off_ns = seen_ns == STEPS_UNKNOWN ? 0 : outside(seen_ns, lo_ns, hi_ns);
		limit_ns = STEPS_MIN_NS +
			   __atomic_load_n(&steps.error_ns, __ATOMIC_RELAXED);
		if (seen_ns != STEPS_UNKNOWN && off_ns < limit_ns && off_ns > -limit_ns)
			break;
		/* Acq_rel: as the load. */
		if (!__atomic_compare_exchange_n(&steps.offset_ns, &seen_ns,
			    lo_ns + (hi_ns - lo_ns) / 2, false,
			    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			continue;
		__atomic_store_n(&steps.error_ns, (hi_ns - lo_ns) / 2,
			__ATOMIC_RELAXED);
		/* Acq_rel: who finds it counted finds the clock set. Pairs with
		 * steps_generation(). */
		if (seen_ns != STEPS_UNKNOWN)
			__atomic_fetch_add(
				&steps.generation, 1, __ATOMIC_ACQ_REL);
		break;
	}
	return steps_generation();
}

void steps_raise(uint64_t generation)
{
	uint64_t seen = steps_generation();

	while (seen < generation &&
		!__atomic_compare_exchange_n(&steps.generation, &seen,
			generation, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static void tell_from_here(void)
{
	steps.told_offset_ns = steps_offset_ns();
	__atomic_store_n(&steps.told_generation, steps_generation(),
		__ATOMIC_RELAXED);
}

void steps_call(void (*fn)(int64_t delta_ns, void *arg), void *arg)
{
	steps_look();
	lock_acquire(&ct_page.step_lock);
	steps.fn = fn;
	steps.arg = arg;
	tell_from_here();
	lock_release(&ct_page.step_lock);
}

void steps_deliver(void)
{
	int64_t delta_ns;

	if (__atomic_load_n(&steps.told_generation, __ATOMIC_RELAXED) ==
		steps_generation())
		return;
	/* Else somebody is at it, or sets it: next time. */
	if (!lock_try(&ct_page.step_lock))
		return;

	delta_ns = steps_offset_ns() - steps.told_offset_ns;
	tell_from_here();
	if (steps.fn != NULL)
		steps.fn(delta_ns, steps.arg);
	lock_release(&ct_page.step_lock);
}
