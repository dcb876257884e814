/* SPDX-License-Identifier: MIT */
/*
 * The inline precise readers and what they are held against, the processor's
 * counter read bare. Compiled twice, as loops.c is.
 */
#include <stddef.h>

#include <cachedtime.h>

#include "loops.h"

#if defined(__x86_64__)
/* Shifted together: whoever wants a time has to. */
static inline uint64_t rdtsc(void)
{
	return __builtin_ia32_rdtsc();
}

static inline uint64_t rdtscp(void)
{
	unsigned int processor;

	return __builtin_ia32_rdtscp(&processor);
}

static inline uint64_t lfence_rdtsc(void)
{
	__builtin_ia32_lfence();
	return __builtin_ia32_rdtsc();
}

LOOP(bare_rdtsc, LOOP_USE(rdtsc()))
LOOP(bare_rdtscp, LOOP_USE(rdtscp()))
LOOP(bare_lfence_rdtsc, LOOP_USE(lfence_rdtsc()))
#endif
LOOP(wall, LOOP_USE(ct_precise_ns()))
LOOP(mono, LOOP_USE(ct_precise_mono_ns()))
LOOP(wall_ordered, LOOP_USE(ct_precise_ordered_ns()))
LOOP(mono_ordered, LOOP_USE(ct_precise_mono_ordered_ns()))

/* The table's name comes from meson.build. */
const struct loop LOOPS_PRECISE[] = {
#if defined(__x86_64__)
	{ "rdtsc", bare_rdtsc },
	{ "rdtscp", bare_rdtscp },
	{ "lfence; rdtsc", bare_lfence_rdtsc },
#endif
	{ "ct_precise_ns", wall },
	{ "ct_precise_mono_ns", mono },
	{ "ct_precise_ordered_ns", wall_ordered },
	{ "ct_precise_mono_ordered_ns", mono_ordered },
	{ NULL, NULL },
};
