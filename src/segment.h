/* SPDX-License-Identifier: MIT */
/*
 * The precise line's segments in the page, and how one follows another without
 * a step back in what any thread reads, however late or preempted the writer.
 *
 *  1. A reader takes a segment under the latch, then reads the counter, then
 *     looks whether the latch has moved. So no value of a segment belongs to a
 *     counter read after its successor showed.
 *  2. A segment is published undecided: it has its slope, but where it begins
 *     is found by whoever sees it first, the writer or a reader, from clocks
 *     read after it showed. The first to swap it in decides for all.
 *  3. That start is where the line of its predecessor is by then, if that isn't
 *     over; else where readers without a valid segment are by then: at
 *     CLOCK_MONOTONIC plus the predecessor's lead over it, but not before the
 *     predecessor's end.
 *  4. A reader without a valid segment reads CLOCK_MONOTONIC, and then looks
 *     whether the latch has moved.
 *  5. One who finds that the wall clock was set counts that (steps.h), before
 *     that look. Who decides takes the successor's wall offset only if nothing
 *     was counted since it was measured.
 *
 * tests/models/segment.pml explores the first four exhaustively.
 */
#ifndef SEGMENT_H
#define SEGMENT_H

#include <stdbool.h>
#include <stdint.h>

#include <cachedtime.h>

struct segment {
	uint64_t cycles;
	uint64_t mult; /* 2^-32 ns per cycle */
	uint64_t span; /* cycles; 0: none, readers go live */
	int64_t mono_ns; /* at `cycles`; of a span of 0: not before this;
			  * negative: undecided */
	int64_t wall_offset_ns;
	int64_t lead_ns; /* line - CLOCK_MONOTONIC, about its end */
	bool jumps;	 /* not from the predecessor's line, if that is behind
			  * CLOCK_MONOTONIC */

	/* Only to be published. */
	uint64_t generation; /* of steps, before wall_offset_ns was measured */
	int64_t ahead_ns;    /* of CLOCK_MONOTONIC, at its most */
};

/* A wall offset that fell by no more than this is made good by mono, so that
 * wall doesn't go back. */
#define SEGMENT_OFFSET_SLEW_NS 1

/* The processor's counter, ordered; 0 where there is none. */
uint64_t segment_counter(void);

/* The current one, decided; returns its number, 0 if none was ever there. */
uint64_t segment_current(struct segment *s);

/*
 * Has it been succeeded? To be asked after a clock or counter was read;
 * `clock` is what was read, and keeps the look behind it.
 */
bool segment_is_over(uint64_t number, int64_t clock);

bool segment_covers(const struct segment *s, uint64_t cycles);

/* How many cycles its line takes for this. */
uint64_t segment_cycles(const struct segment *s, int64_t ns);

/* Mono on its line, at `cycles` within it. */
int64_t segment_mono(const struct segment *s, uint64_t cycles);

/* What no reader has been told more than, if it began at or before `cycles`. */
int64_t segment_end(const struct segment *s, uint64_t cycles);

/* For readers whom it doesn't cover. */
int64_t segment_live_mono(const struct segment *s, int64_t mono_ns);

/* Publish the successor, whose start need not be filled in, and decide it.
 * Under ct_page.segment_lock. */
void segment_publish(const struct segment *next);

#endif /* SEGMENT_H */
