/* SPDX-License-Identifier: MIT */
/*
 * The inline readers and what they are held against, a relaxed load of a
 * global. Compiled twice: for the executable and, -fPIC, for a shared object,
 * where both addresses come out of the global offset table.
 */
#include <stddef.h>

#include <cachedtime.h>

#include "loops.h"

/* LOOPS and LOOPS_WORD, the table's and the global's names, come from
 * meson.build. The global is visible, hence in a shared object replaceable:
 * the compiler may take no short cut that it can't take to ct_page. */
extern int64_t LOOPS_WORD;
int64_t LOOPS_WORD __attribute__((aligned(64))) = 1;

LOOP(plain_load, LOOP_USE(__atomic_load_n(&LOOPS_WORD, __ATOMIC_RELAXED)))
LOOP(now_s, LOOP_USE(ct_now_s()))
LOOP(now_ms, LOOP_USE(ct_now_ms()))
LOOP(now_us, LOOP_USE(ct_now_us()))
LOOP(now_ns, LOOP_USE(ct_now_ns()))
LOOP(mono_ms, LOOP_USE(ct_mono_ms()))
LOOP(mono_us, LOOP_USE(ct_mono_us()))
LOOP(mono_ns, LOOP_USE(ct_mono_ns()))
LOOP(boot_ms, LOOP_USE(ct_boot_ms()))

const struct loop LOOPS[] = {
	{ "plain load", plain_load },
	{ "ct_now_s", now_s },
	{ "ct_now_ms", now_ms },
	{ "ct_now_us", now_us },
	{ "ct_now_ns", now_ns },
	{ "ct_mono_ms", mono_ms },
	{ "ct_mono_us", mono_us },
	{ "ct_mono_ns", mono_ns },
	{ "ct_boot_ms", boot_ms },
	{ NULL, NULL },
};
