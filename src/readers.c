/* SPDX-License-Identifier: MIT */
/*
 * The inline readers once more, as functions that languages without a C
 * compiler can call.
 */
#define CT_NO_INLINE
#include <cachedtime.h>

#define READER(name, word, field)                                              \
	CT_API int64_t name(void)                                              \
	{                                                                      \
		/* Relaxed: as in the header. */                               \
		int64_t value =                                                \
			__atomic_load_n(&ct_page.field, __ATOMIC_RELAXED);     \
		return __builtin_expect(value > 0, 1) ? value                  \
						      : ct_read_slow(word);    \
	}

READER(ct_now_s, CT_WORD_WALL_S, wall_s)
READER(ct_now_ms, CT_WORD_WALL_MS, wall_ms)
READER(ct_now_us, CT_WORD_WALL_US, wall_us)
READER(ct_now_ns, CT_WORD_WALL_NS, wall_ns)
READER(ct_mono_ms, CT_WORD_MONO_MS, mono_ms)
READER(ct_mono_us, CT_WORD_MONO_US, mono_us)
READER(ct_mono_ns, CT_WORD_MONO_NS, mono_ns)
READER(ct_boot_ms, CT_WORD_BOOT_MS, boot_ms)
