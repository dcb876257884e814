/* SPDX-License-Identifier: MIT */
/*
 * The hand-over: how a word passes from live to cached and back without time
 * ever running backwards for those who read it.
 *
 * A word is 0 (parked: ask), negative (the mark: a publisher is about to
 * engage) or a time. The rules, which tests/models/handover.pml explores
 * exhaustively:
 *
 *  1. Each publication is a swap against the value that was seen before the
 *     clock was read. If it fails, somebody published meanwhile.
 *  2. Only engaging replaces 0, by a mark never used before; parking stores 0.
 *  3. A reader of a live clock looks at the word again afterwards. Still 0:
 *     whatever comes will be later. A time: it returns that. A mark: it reads
 *     the clock once more and swaps that in for the mark.
 *
 * No lock guards a word.
 */
#ifndef HANDOVER_H
#define HANDOVER_H

#include <stdbool.h>
#include <stdint.h>

#include <cachedtime.h>

/* One moment on each clock. */
struct handover_now {
	int64_t wall_ns;
	int64_t mono_ns;
	int64_t boot_ns;
	int64_t tai_ns;
};

/* The words as they were before the clock was read. */
struct handover_view {
	int64_t seen[CT_WORDS];
};

/* The live clocks, exact. */
void handover_live(struct handover_now *now);

/* Step one of a publication; the clock is read after it. */
void handover_look(struct handover_view *view);

/*
 * Step two, in the order of enum ct_word. Replaces times and marks, never 0.
 * `now` must not be ahead of the live clocks; what is behind a word already
 * published is held back, except where wall or TAI were set back: the kernel's
 * own clocks show `kernel` (of which a word taken from an exact clock may be
 * ahead by lag_ns).
 *
 * False, and the words after it left as they are, if somebody who had read the
 * clock earlier got in between with an older time, or one of before the wall
 * clock was set back: look, read the clock and publish again.
 */
bool handover_publish(const struct handover_view *view,
	const struct handover_now *now, const struct handover_now *kernel,
	int64_t lag_ns);

/* Publish the live clocks: what a refresh does from any thread. */
void handover_refresh(struct handover_now *now);

/*
 * Publish the live clocks and return the word: as of now, or a later time by
 * which somebody beat it. 0 or less where it is parked.
 */
int64_t handover_fresh(enum ct_word word);

/* The word's time from the live clock, whatever is cached. */
int64_t handover_live_word(enum ct_word word);

/*
 * From live to cached: mark what is parked, and publish the live clocks. One
 * caller at a time; who parks meanwhile parks again when that has returned.
 */
void handover_engage(void);

/* From cached to live. */
void handover_park(void);

/* A reader's slow path: the word's time, from the live clock if parked. */
int64_t handover_read(enum ct_word word);

#endif /* HANDOVER_H */
