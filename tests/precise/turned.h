/* SPDX-License-Identifier: MIT */
/*
 * What the tests of precise time share: the simulated clocks, the processor's
 * counter among them, and what happens meanwhile.
 *
 * One thread plays all of them. While one reads a clock or the counter, or has
 * just done so, another may do what it likes, from beginning to end: that is
 * what meanwhile() arranges, at the nth such moment. All these moments in turn
 * are all places where a thread can be pre-empted that matter.
 */
#ifndef TURNED_H
#define TURNED_H

#include "counters/sim.h"

#include "turned_segment.h"

#define HOUR (3600 * SEC)

static struct {
	int64_t nth; /* moments to go; 0: none */
	void (*what)(void);

	uint64_t cycles; /* of the counter, as read last ... */
	int64_t raw_ns;  /* ... at which moment of all clocks */
	int64_t mono_ns;
	int64_t wall_ns;
	int64_t reads; /* of it */
} turned;

static void turn(void)
{
	if (turned.nth > 0 && --turned.nth == 0)
		turned.what();
}

static inline void meanwhile(int64_t nth, void (*what)(void))
{
	turned.nth = nth;
	turned.what = what;
}

/* Has it happened? No more of it, else. */
static inline bool happened(void)
{
	bool yes = turned.nth == 0;

	turned.nth = 0;
	return yes;
}

uint64_t turned_counter(void)
{
	uint64_t cycles;
	int64_t raw_ns, mono_ns, wall_ns;

	sim_spend(10);
	cycles = sim_cycles() & sim.mask;
	raw_ns = sim.raw_ns;
	mono_ns = sim_mono();
	wall_ns = sim_wall();
	sim_spend(10);
	/* Others may have read it meanwhile. */
	turned.cycles = cycles;
	turned.raw_ns = raw_ns;
	turned.mono_ns = mono_ns;
	turned.wall_ns = wall_ns;
	turned.reads++;
	return cycles;
}

/* Was it the counter that was read last, of all clocks? */
static inline bool turned_counter_last(void)
{
	return sim.raw_ns - turned.raw_ns <= 10 + sim.jitter_ns;
}

/* Later than whatever came before in this process, whose data remember it. */
static inline void turned_begin(int64_t hz)
{
	static int64_t rounds;

	sim_begin(hz, UINT64_MAX);
	sim.raw_ns += rounds * HOUR;
	sim.mono_ns += rounds * HOUR;
	sim.slew_since_ns = sim.raw_ns;
	sim.cycles_ns = sim.raw_ns;
	rounds++;
	sim.turn = turn;
	memset(&turned, 0, sizeof(turned));
}

/* Uniform in lo..hi. */
static inline int64_t random_in(int64_t lo, int64_t hi)
{
	uint64_t range = (uint64_t)(hi - lo) + 1;

	return lo + (int64_t)(random_next(&sim.random) % range);
}

static inline int64_t magnitude(int64_t ns)
{
	return ns < 0 ? -ns : ns;
}

#endif /* TURNED_H */
