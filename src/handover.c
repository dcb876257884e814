/* SPDX-License-Identifier: MIT */
#include "handover.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "cpu.h"
#include "kernel_clock.h"

enum unit { UNIT_NS, UNIT_US, UNIT_MS, UNIT_S, UNIT_MS_F64 };

/* What each word holds. */
static const struct word {
	uint16_t offset; /* in the page */
	clockid_t clock;
	enum unit unit;
} words[CT_WORDS] = {
#define WORD(field, clock, unit)                                               \
	{                                                                      \
		offsetof(struct ct_page, field), clock, unit                   \
	}
	[CT_WORD_WALL_S] = WORD(wall_s, CLOCK_REALTIME, UNIT_S),
	[CT_WORD_WALL_MS] = WORD(wall_ms, CLOCK_REALTIME, UNIT_MS),
	[CT_WORD_WALL_US] = WORD(wall_us, CLOCK_REALTIME, UNIT_US),
	[CT_WORD_WALL_NS] = WORD(wall_ns, CLOCK_REALTIME, UNIT_NS),
	[CT_WORD_WALL_MS_F64] = WORD(wall_ms_f64, CLOCK_REALTIME, UNIT_MS_F64),
	[CT_WORD_MONO_MS] = WORD(mono_ms, CLOCK_MONOTONIC, UNIT_MS),
	[CT_WORD_MONO_US] = WORD(mono_us, CLOCK_MONOTONIC, UNIT_US),
	[CT_WORD_MONO_NS] = WORD(mono_ns, CLOCK_MONOTONIC, UNIT_NS),
	[CT_WORD_BOOT_MS] = WORD(boot_ms, CLOCK_BOOTTIME, UNIT_MS),
	[CT_WORD_TAI_NS] = WORD(tai_ns, CLOCK_TAI, UNIT_NS),
#undef WORD
};

/*
 * The latest mono published in this process: keeps a live read from falling
 * behind a word where the kernel's own clock goes back. Outside the page, so
 * that a forked child inherits it. Relaxed: it only grows, and an older value
 * only protects less.
 */
static int64_t mono_floor_ns;
#define FLOOR_MAX_NS NS_PER_SEC

static int64_t *word_at(enum ct_word word)
{
	return (int64_t *)((char *)&ct_page + words[word].offset);
}

static inline int64_t floor_div(int64_t value, int64_t by)
{
	return value / by - (value % by < 0);
}

/* By constants, which costs a tenth of a division by a variable. */
static int64_t in_units(int64_t ns, enum unit unit)
{
	switch (unit) {
	case UNIT_NS:
		return ns;
	case UNIT_US:
		return floor_div(ns, 1000);
	case UNIT_MS:
	case UNIT_MS_F64:
		return floor_div(ns, 1000000);
	case UNIT_S:
		break;
	}
	return floor_div(ns, 1000000000);
}

/* The word for a time of its clock. */
static int64_t encode(const struct word *word, int64_t ns)
{
	int64_t value = in_units(ns, word->unit);
	double number;

	if (word->unit == UNIT_MS_F64) {
		number = (double)value;
		memcpy(&value, &number, sizeof(value));
	}
	return value;
}

static int64_t pick(const struct handover_now *now, clockid_t clock)
{
	switch (clock) {
	case CLOCK_REALTIME:
		return now->wall_ns;
	case CLOCK_MONOTONIC:
		return now->mono_ns;
	case CLOCK_TAI:
		return now->tai_ns;
	default:
		return now->boot_ns;
	}
}

static int64_t not_below_floor(int64_t mono_ns)
{
	int64_t floor_ns = __atomic_load_n(&mono_floor_ns, __ATOMIC_RELAXED);

	/* So far behind isn't a clock that went back, but the one of another
	 * time namespace, entered by a fork. */
	if (mono_ns >= floor_ns ||
		(mono_ns > 0 && floor_ns - mono_ns > FLOOR_MAX_NS))
		return mono_ns;
	return floor_ns;
}

static void raise_floor(int64_t mono_ns)
{
	int64_t floor_ns = __atomic_load_n(&mono_floor_ns, __ATOMIC_RELAXED);

	while (floor_ns < mono_ns &&
		!__atomic_compare_exchange_n(&mono_floor_ns, &floor_ns, mono_ns,
			true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static int64_t live_ns(clockid_t clock)
{
	int64_t ns = kernel_clock_ns(clock);

	return clock == CLOCK_MONOTONIC ? not_below_floor(ns) : ns;
}

void handover_live(struct handover_now *now)
{
	now->mono_ns = live_ns(CLOCK_MONOTONIC);
	now->wall_ns = live_ns(CLOCK_REALTIME);
	now->boot_ns = live_ns(CLOCK_BOOTTIME);
	now->tai_ns = live_ns(CLOCK_TAI);
}

void handover_look(struct handover_view *view)
{
	/* Acquire, with the swaps below: the clock is read after the word of
	 * whoever published it, so the swap replaces it by a later time. The
	 * kernel's own ordered counter read keeps the clock behind the load. */
	for (int i = 0; i < CT_WORDS; i++)
		view->seen[i] = __atomic_load_n(
			word_at((enum ct_word)i), __ATOMIC_ACQUIRE);
}

static bool swap(enum ct_word word, int64_t *seen, int64_t value)
{
	/* Acq_rel: a publication made in between makes this fail; pairs with
	 * the loads in handover_look() and handover_read(). */
	return __atomic_compare_exchange_n(word_at(word), seen, value, false,
		__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* Does a word show a time that its clock, which may be set, hasn't come to? */
static bool is_ahead(enum ct_word i, int64_t seen,
	const struct handover_now *kernel, int64_t lag_ns)
{
	const struct word *word = &words[i];

	return (word->clock == CLOCK_REALTIME || word->clock == CLOCK_TAI) &&
	       seen > encode(word, pick(kernel, word->clock) + lag_ns);
}

static int64_t to_publish(enum ct_word i, int64_t seen,
	const struct handover_now *now, const struct handover_now *kernel,
	int64_t lag_ns)
{
	const struct word *word = &words[i];
	int64_t value = encode(word, pick(now, word->clock));

	if (seen <= 0 || value >= seen)
		return value;
	/* Behind a word that the kernel's clock has passed: hold. Behind
	 * because that clock was set back: follow. */
	return is_ahead(i, seen, kernel, lag_ns) ? value : seen;
}

bool handover_publish(const struct handover_view *view,
	const struct handover_now *now, const struct handover_now *kernel,
	int64_t lag_ns)
{
	for (int i = 0; i < CT_WORDS; i++) {
		enum ct_word word = (enum ct_word)i;
		int64_t seen = view->seen[i];
		int64_t value;

		if (seen == 0)
			continue;
		value = to_publish(word, seen, now, kernel, lag_ns);
		/* A time that can't be told by a word, before 1970: ask. */
		if (value <= 0)
			value = 0;
		/* If it fails, somebody parked, or published: a later time,
		 * which is good, or an older one, or one of before the wall
		 * clock was set back. */
		if (value != seen && !swap(word, &seen, value) && seen > 0 &&
			(seen < value || is_ahead(word, seen, kernel, lag_ns)))
			return false;
	}
	raise_floor(now->mono_ns);
	return true;
}

void handover_refresh(struct handover_now *now)
{
	struct handover_view view;

	do {
		handover_look(&view);
		handover_live(now);
	} while (!handover_publish(&view, now, now, 0));
}

int64_t handover_live_word(enum ct_word word)
{
	return encode(&words[word], live_ns(words[word].clock));
}

int64_t handover_fresh(enum ct_word word)
{
	struct handover_now now;

	handover_refresh(&now);
	/* Acquire: pairs with swap(). */
	return __atomic_load_n(word_at(word), __ATOMIC_ACQUIRE);
}

void handover_engage(void)
{
	struct handover_view view;
	struct handover_now now;
	int64_t mark = -kernel_clock_ns(CLOCK_MONOTONIC);

	handover_look(&view);
	for (int i = 0; i < CT_WORDS; i++)
		if (view.seen[i] == 0 &&
			swap((enum ct_word)i, &view.seen[i], mark))
			view.seen[i] = mark;

	handover_live(&now);
	if (!handover_publish(&view, &now, &now, 0))
		handover_refresh(&now);
}

void handover_park(void)
{
	/* Release, for the readers' second look: a 0 seen there comes after
	 * everything that was published before. */
	for (int i = 0; i < CT_WORDS; i++)
		__atomic_store_n(
			word_at((enum ct_word)i), 0, __ATOMIC_RELEASE);
}

int64_t handover_read(enum ct_word i)
{
	const struct word *word = &words[i];
	int64_t *at = word_at(i);
	int64_t live, seen;

	live = encode(word, live_ns(word->clock));
	/* The second look, behind the clock by the address. Pairs with swap()
	 * and handover_park(). */
	seen = __atomic_load_n((int64_t *)((uintptr_t)at + cpu_zero_after(live)),
		__ATOMIC_ACQUIRE);

	while (seen < 0) {
		live = encode(word, live_ns(word->clock));
		if (live <= 0 || swap(i, &seen, live))
			return live;
	}

	return seen > 0 ? seen : live;
}
