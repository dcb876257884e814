/* SPDX-License-Identifier: MIT */
/*
 * The sequence count latch: several words that belong together, in two copies.
 * The low bit of the count says which copy to read, the writer fills in the
 * other one. So a reader starts over only when the count has moved under it,
 * and a writer that is preempted or killed half way leaves a readable copy.
 *
 *	uint64_t seq = latch_begin(&count);
 *	... latch_load() from copy[latch_copy(seq)] ...
 *	if (latch_moved(&count, seq)) start over
 *
 * One writer at a time. Each word by itself is atomic, with an order of its
 * own instead of fences, which ThreadSanitizer doesn't understand (gcc 12); on
 * x86 they cost nothing. tests/models/latch.pml shows what each is for.
 */
#ifndef LATCH_H
#define LATCH_H

#include <stdbool.h>
#include <stdint.h>

static inline uint64_t latch_begin(const uint64_t *count)
{
	/* Acquire: pairs with latch_publish(); what it names is complete. */
	return __atomic_load_n(count, __ATOMIC_ACQUIRE);
}

static inline unsigned int latch_copy(uint64_t seq)
{
	return seq & 1;
}

#define latch_load(word)                                                       \
	/* Acquire: latch_moved() comes after it. Pairs with latch_store(). */ \
	__atomic_load_n((word), __ATOMIC_ACQUIRE)

static inline bool latch_moved(const uint64_t *count, uint64_t seq)
{
	/* Relaxed: behind the loads by their own order. */
	return __atomic_load_n(count, __ATOMIC_RELAXED) != seq;
}

#define latch_store(word, value)                                               \
	/* Release: after the last latch_publish(), so that who loads this     \
	 * word from a copy in use finds the count moved. */                   \
	__atomic_store_n((word), (value), __ATOMIC_RELEASE)

/* Show the copy that `seq` names. */
static inline void latch_publish(uint64_t *count, uint64_t seq)
{
	/* Release: pairs with latch_begin(). */
	__atomic_store_n(count, seq, __ATOMIC_RELEASE);
}

#endif /* LATCH_H */
