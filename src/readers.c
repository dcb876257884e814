/* SPDX-License-Identifier: MIT */
/*
 * The inline readers once more, as functions that languages without a C
 * compiler can call.
 */
#define CT_EMIT_READERS
#include <cachedtime.h>

#if !defined(__x86_64__)
/* No counter is known there that a reader could inline. */
CT_API int64_t ct_precise_ns(void)
{
	return ct_precise_slow(CT_PRECISE_WALL);
}

CT_API int64_t ct_precise_mono_ns(void)
{
	return ct_precise_slow(CT_PRECISE_MONO);
}

CT_API int64_t ct_precise_ordered_ns(void)
{
	return ct_precise_slow(CT_PRECISE_WALL);
}

CT_API int64_t ct_precise_mono_ordered_ns(void)
{
	return ct_precise_slow(CT_PRECISE_MONO);
}
#endif
