/* SPDX-License-Identifier: MIT */
/*
 * The timekeeper: from a counter's cycles to wall and mono.
 *
 * Pure: state in, sample in, a new base out. No thread, no system call, no
 * global; its tests turn the clock by hand. It keeps a straight line from
 * cycles to mono and bends it towards the kernel's clock at each sample, and
 * the distance from mono to wall beside it.
 */
#ifndef TIMEKEEPER_H
#define TIMEKEEPER_H

#include <stdbool.h>
#include <stdint.h>

/*
 * One look at all the clocks. The counter and the wall clock were read between
 * two reads of mono, so that the sample knows its own error: at `cycles`, mono
 * was no less than mono_ns and no more than mono_after_ns.
 */
struct timekeeper_sample {
	uint64_t cycles;
	int64_t mono_ns;
	int64_t wall_ns;
	int64_t mono_after_ns;
};

struct timekeeper {
	/* The line: mono = mono_ns + ((cycles - cycle_base) * mult >> 32). */
	uint64_t mask;
	uint64_t cycle_base;
	int64_t mono_ns;    /* mono at cycle_base ... */
	uint32_t mono_frac; /* ... and its fraction, in 2^-32 ns */
	uint64_t mult;	    /* ns per cycle in 2^-32: rate and slew together */

	/* The counter's rate, without the slew. */
	uint64_t rate;		/* ns per cycle in 2^-32 */
	int64_t rate_error_ppb; /* how far it may have been off ... */
	int64_t rate_mono_ns;	/* ... when it was measured */
	int64_t rate_due_ns;	/* mono at which to measure again */
	struct timekeeper_anchor {
		uint64_t total_cycles;
		int64_t mono_ns;
		int64_t mono_after_ns;
	} anchor[2];		/* measured from the first; the second is the
				 * next to take its place */
	uint64_t total_cycles;	/* at cycle_base, without wrap */
	bool parted;		/* the last sample ended in a rebase */

	int64_t wall_offset_ns; /* wall - mono ... */
	int64_t wall_error_ns;	/* ... as well as the best sample told */

	uint64_t steps;	       /* of the wall clock */
	int64_t last_step_ns;  /* signed: positive is forward */
	uint64_t rebases;      /* the line was given up for the kernel's clock */
};

/* What timekeeper_advance() found; or-ed together. */
enum timekeeper_event {
	TIMEKEEPER_STEPPED = 1, /* the wall clock was set */
	TIMEKEEPER_REBASED = 2	/* counter and mono parted: a gap, a suspend,
				 * a reset or a jump of either */
};

/* `hz` is the rate to start with, known to error_ppb. */
void timekeeper_init(struct timekeeper *tk, uint64_t mask, uint64_t hz,
	int64_t error_ppb, const struct timekeeper_sample *sample);

/*
 * Take a sample in: what is less than TIMEKEEPER_REBASE_NS off is slewed, so
 * that the line never goes back and never jumps; beyond, the line starts anew
 * on the kernel's clock. A wall step is taken at once. Returns the events.
 */
unsigned int timekeeper_advance(
	struct timekeeper *tk, const struct timekeeper_sample *sample);

/*
 * The line, at `cycles` at or after the last sample's. A delta can't overflow:
 * the product is 128 bits wide and the result saturates at 146 years.
 */
int64_t timekeeper_mono(const struct timekeeper *tk, uint64_t cycles);
int64_t timekeeper_wall(const struct timekeeper *tk, uint64_t cycles);

/* The rate as measured up to now. */
uint64_t timekeeper_hz(const struct timekeeper *tk);

/* Beyond this the line isn't slewed but begun anew. */
#define TIMEKEEPER_REBASE_NS INT64_C(100000)

/*
 * wall - mono changes only when somebody sets the clock; what is less than
 * this is taken for the error of a sample, and slewed.
 */
#define TIMEKEEPER_STEP_NS INT64_C(10000)

#endif /* TIMEKEEPER_H */
