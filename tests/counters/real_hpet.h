/* SPDX-License-Identifier: MIT */
/*
 * The fake HPET of fake_hpet.h, turned by the machine's own clock: at each
 * read of a clock by this program, the library's reads too, which are between
 * two reads of the clock. Any thread and forked child may; the counter only
 * goes forward. Included by the one source file of a program.
 */
#ifndef REAL_HPET_H
#define REAL_HPET_H

#include <sys/syscall.h>

#include "fake_hpet.h"

static uint32_t hpet_cycles(void)
{
	struct timespec ts;

	syscall(SYS_clock_gettime, CLOCK_MONOTONIC_RAW, &ts);
	return (uint32_t)((uint64_t)ts.tv_sec * HPET_HZ +
			  (uint64_t)ts.tv_nsec / (SEC / HPET_HZ));
}

static void hpet_turn(void)
{
	uint32_t *counter, old, new;

	if (hpet == NULL)
		return;
	counter = hpet_register(HPET_COUNTER);
	old = __atomic_load_n(counter, __ATOMIC_RELAXED);
	new = hpet_cycles();

	while ((int32_t)(new - old) > 0 &&
		!__atomic_compare_exchange_n(counter, &old, new, false,
			__ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	int ret = (int)syscall(SYS_clock_gettime, clock, ts);

	hpet_turn();
	return ret;
}

#endif /* REAL_HPET_H */
