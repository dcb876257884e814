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

const struct loop loops_call[] = {
	{ "ct_now_ms", now_ms },
	{ "ct_mono_ns", mono_ns },
	{ NULL, NULL },
};
