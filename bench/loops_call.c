/* SPDX-License-Identifier: MIT */
/*
 * The readers as functions of the library, through the procedure linkage
 * table: what a language pays that can't inline them. Live reads come this way
 * as well, while the library is off.
 */
#define CT_NO_INLINE
#include <stddef.h>

#include <cachedtime.h>

#include "loops.h"

LOOP(now_ms, LOOP_USE(ct_now_ms()))
LOOP(mono_ns, LOOP_USE(ct_mono_ns()))
/* Old enough for the coarse clock to judge at any HZ, fresh at this tick. */
LOOP(now_ms_fresh, LOOP_USE(ct_now_ms_fresh(50)))

LOOP(precise_ns, LOOP_USE(ct_precise_ns()))
LOOP(precise_mono_ns, LOOP_USE(ct_precise_mono_ns()))
LOOP(precise_ordered_ns, LOOP_USE(ct_precise_ordered_ns()))
LOOP(precise_mono_ordered_ns, LOOP_USE(ct_precise_mono_ordered_ns()))

const struct loop loops_call[] = {
	{ "ct_now_ms", now_ms },
	{ "ct_mono_ns", mono_ns },
	{ "ct_now_ms_fresh", now_ms_fresh },
	{ NULL, NULL },
};

const struct loop loops_call_precise[] = {
	{ "ct_precise_ns", precise_ns },
	{ "ct_precise_mono_ns", precise_mono_ns },
	{ "ct_precise_ordered_ns", precise_ordered_ns },
	{ "ct_precise_mono_ordered_ns", precise_mono_ordered_ns },
	{ NULL, NULL },
};
