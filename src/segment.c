/* SPDX-License-Identifier: MIT */
#include "segment.h"

#include "arith.h"
#include "cpu.h"
#include "kernel_clock.h"
#include "latch.h"
#include "steps.h"

#define SHIFT 32

#define LIVE_TRIES 8

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

uint64_t segment_counter(void)
{
	return cpu_counter_ordered();
}

/* Nanoseconds of `cycles` on its slope. */
static int64_t rise(const struct segment *s, uint64_t cycles)
{
	return (int64_t)(((u128)cycles * s->mult) >> SHIFT);
}

bool segment_covers(const struct segment *s, uint64_t cycles)
{
	/* Unsigned: one from before it isn't covered either. */
	return cycles - s->cycles < s->span;
}

uint64_t segment_cycles(const struct segment *s, int64_t ns)
{
	return (uint64_t)(((u128)(uint64_t)ns << SHIFT) / s->mult);
}

int64_t segment_mono(const struct segment *s, uint64_t cycles)
{
	return s->mono_ns + rise(s, cycles - s->cycles);
}

int64_t segment_end(const struct segment *s, uint64_t cycles)
{
	return segment_covers(s, cycles) ? segment_mono(s, cycles)
					 : s->mono_ns + rise(s, s->span);
}

/* Not before the end of the line, unless that is so far ahead that it must be
 * of another time namespace, entered by a fork. */
static int64_t not_before(int64_t end_ns, int64_t ns)
{
	return end_ns > ns && end_ns - ns < NS_PER_SEC ? end_ns : ns;
}

int64_t segment_live_mono(const struct segment *s, int64_t mono_ns)
{
	return not_before(
		s->mono_ns + rise(s, s->span), mono_ns + s->lead_ns);
}

/*
 * A forked child, whose page is wiped, must not fall behind what it has read
 * before. Written by who holds the lock.
 */
static struct {
	int64_t lead_ns;
	int64_t mono_ns;
} inherited;

static void load(uint64_t number, struct segment *s)
{
	const struct ct_segment *copy = &ct_page.segment[latch_copy(number)];

	s->cycles = latch_load(&copy->cycles);
	s->mult = latch_load(&copy->mult);
	s->span = latch_load(&copy->span);
	s->mono_ns = latch_load(&copy->mono_ns);
	/* After mono_ns: it is decided first. */
	s->wall_offset_ns = latch_load(&copy->wall_offset_ns);
	s->lead_ns = latch_load(&copy->lead_ns);
	s->generation = latch_load(&copy->generation);
	s->jumps = (s->generation & 1) != 0;
	if (number != 0)
		return;
	/* Acquire: before the next look at the latch, as latch_load(). */
	s->lead_ns = __atomic_load_n(&inherited.lead_ns, __ATOMIC_ACQUIRE);
	s->mono_ns = __atomic_load_n(&inherited.mono_ns, __ATOMIC_ACQUIRE);
}

static void bequeath(const struct segment *next, int64_t mono_ns)
{
	__atomic_store_n(&inherited.lead_ns, larger(next->ahead_ns, 0),
		__ATOMIC_RELAXED);
	__atomic_store_n(&inherited.mono_ns, next->span == 0 ? mono_ns : 0,
		__ATOMIC_RELAXED);
}

/* Never used before, hence not mistaken for another by a late helper. */
static int64_t mark(uint64_t number)
{
	return -(int64_t)number;
}

/* Likewise, and no difference between two clocks. */
static int64_t offset_mark(uint64_t number)
{
	return INT64_MIN + (int64_t)number;
}

/*
 * CLOCK_MONOTONIC, at *cycles: the middle of the narrowest bracket of a few, since
 * an interrupt in between would show as an error of the whole segment. Two that
 * are about equally wide weren't interrupted.
 */
static int64_t live_mono(uint64_t *cycles)
{
	uint64_t best = UINT64_MAX;
	int64_t best_ns = 0;
	bool alike = false;

	for (int i = 0; i < LIVE_TRIES && !alike; i++) {
		uint64_t before = segment_counter();
		int64_t ns = kernel_clock_ns(CLOCK_MONOTONIC);
		uint64_t width = segment_counter() - before;

		alike = i > 0 && width - width / 4 < best &&
			best - best / 4 < width;
		if (width >= best)
			continue;
		best = width;
		best_ns = ns;
		*cycles = before + width / 2;
	}
	return best_ns;
}

/* Rule 3: where `next` begins, as mono at *cycles. */
static int64_t start(const struct segment *old, const struct segment *next,
	uint64_t *cycles)
{
	uint64_t first = 0;
	int64_t live_ns;

	if (old->span == 0 && next->span == 0) {
		live_ns = kernel_clock_ns(CLOCK_MONOTONIC);
	} else {
		first = *cycles = segment_counter();
		if (segment_covers(old, first) && !next->jumps)
			return segment_mono(old, first);
		live_ns = live_mono(cycles);
	}
	return not_before(segment_end(old, first), live_ns + old->lead_ns);
}

/* Rule 5. */
static int64_t decide_offset(uint64_t number, struct ct_segment *copy)
{
	int64_t offset_ns = offset_mark(number);
	int64_t chosen_ns = latch_load(&copy->proposed_ns);

	if (latch_load(&copy->generation) / 2 != steps_generation() &&
		steps_offset_ns() != STEPS_UNKNOWN)
		chosen_ns = steps_offset_ns();
	/* Release: before mono_ns. If somebody was first, his. */
	if (__atomic_compare_exchange_n(&copy->wall_offset_ns, &offset_ns,
		    chosen_ns, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return chosen_ns;
	return offset_ns;
}

/* Find a start for `next`, which is undecided, and swap it in. */
static void decide(uint64_t number, const struct segment *next)
{
	struct ct_segment *copy = &ct_page.segment[latch_copy(number)];
	int64_t undecided = mark(number);
	struct segment old;
	uint64_t cycles = 0;
	int64_t ns, falls_ns;

	/* The other copy; it isn't overwritten before this is decided, and
	 * then the swap fails. */
	load(number - 1, &old);
	/* Unsigned: a late helper may find a mark in either. */
	falls_ns = (int64_t)((uint64_t)old.wall_offset_ns -
			     (uint64_t)decide_offset(number, copy));
	ns = start(&old, next, &cycles);
	if (falls_ns > 0 && falls_ns <= SEGMENT_OFFSET_SLEW_NS)
		ns += falls_ns;
	/* One that is over by now ends there. */
	if (next->span != 0)
		ns -= rise(next, segment_covers(next, cycles)
					 ? cycles - next->cycles
					 : next->span);

	/* Release: who reads the counter on the strength of it reads it later
	 * than we did. Pairs with load(). */
	__atomic_compare_exchange_n(&copy->mono_ns, &undecided, larger(ns, 1),
		false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

uint64_t segment_current(struct segment *s)
{
	uint64_t number;

	for (;;) {
		number = latch_begin(&ct_page.segment_seq);
		load(number, s);
		if (latch_moved(&ct_page.segment_seq, number))
			continue;
		if (s->mono_ns >= 0)
			return number;
		decide(number, s);
	}
}

bool segment_is_over(uint64_t number, int64_t clock)
{
	const char *at = (const char *)&ct_page.segment_seq;

	/* Behind the clock by the address. */
	return latch_moved((const uint64_t *)(const void *)(at +
				   cpu_zero_after(clock)),
		number);
}

void segment_publish(const struct segment *next)
{
	/* Relaxed: one writer at a time. */
	uint64_t number =
		__atomic_load_n(&ct_page.segment_seq, __ATOMIC_RELAXED) + 1;
	struct ct_segment *copy = &ct_page.segment[latch_copy(number)];
	struct segment decided;

	/* The one that is current must be decided before its predecessor, from
	 * which that is done, is overwritten. */
	segment_current(&decided);

	latch_store(&copy->cycles, next->cycles);
	latch_store(&copy->mult, next->mult);
	latch_store(&copy->span, next->span);
	latch_store(&copy->proposed_ns, next->wall_offset_ns);
	latch_store(&copy->generation, next->generation * 2 + next->jumps);
	latch_store(&copy->wall_offset_ns, offset_mark(number));
	latch_store(&copy->lead_ns, next->lead_ns);
	latch_store(&copy->mono_ns, mark(number));
	/*
	 * Seq_cst, a locked swap: it must show before we read the counter to
	 * decide it. A plain store could wait in this processor's buffer while
	 * another one reads the counter later than we do, finds the latch
	 * unmoved, and returns a value of the old line that is past our start.
	 */
	__atomic_exchange_n(&ct_page.segment_seq, number, __ATOMIC_SEQ_CST);

	segment_current(&decided);
	bequeath(next, decided.mono_ns);
}
