/* SPDX-License-Identifier: MIT */
/*
 * Steps of the wall clock: wall - mono changes only when somebody sets the
 * clock, or a leap second does. Each is counted once, whoever sees it first:
 * the ticker, a refresh, a renewal of precise time, ct_generation().
 */
#ifndef STEPS_H
#define STEPS_H

#include <stdint.h>

/* Less than this, beyond the error of the look at it, isn't a step. */
#define STEPS_MIN_NS INT64_C(10000)

/* Look at the clocks, count a step; returns the generation: 1, and one more for
 * each step in this process's life, forks included. Async-signal-safe. */
uint64_t steps_look(void);

/* As it was counted last, without a look. */
uint64_t steps_generation(void);

/* wall - mono, when that was found; STEPS_UNKNOWN: not yet. */
int64_t steps_offset_ns(void);
#define STEPS_UNKNOWN INT64_MIN

/* Another copy of the library may have counted further in this page. */
void steps_raise(uint64_t generation);

/* Call fn at each step, from now on; NULL: no more, when this returns. Not
 * from within fn. */
void steps_call(void (*fn)(int64_t delta_ns, void *arg), void *arg);

/* Make the call, if one is due. By who publishes. */
void steps_deliver(void);

#endif /* STEPS_H */
