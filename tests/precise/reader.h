/* SPDX-License-Identifier: MIT */
/*
 * A reader of precise time that checks what it is told, and keeps count of how
 * far off that was. What is read while another one reads may be less than what
 * that one is told; what is read after it may not.
 */
#ifndef READER_H
#define READER_H

#include "turned.h"

#include "kernel_clock.h"
#include "precise.h"
#include "steps.h"

#define SEGMENT_NS PRECISE_SEGMENT_NS
/* So far may a line that is right be from the kernel's, at any time. */
#define RIGHT_NS US
/* Errors are counted by the nanosecond up to this. */
#define ERRORS 20000

static const int64_t rates[] = { 2100000000, 1000000000, 3700000000,
	400000000 };

static struct {
	/* No reader has been told more. */
	int64_t mono_ns;
	int64_t wall_ns;
	int64_t wall_holds_ns; /* raw; wall is being set until then */
	bool mono_may_go_back;

	uint64_t generation; /* of steps, at the beginning */

	int64_t off_ns; /* of the last read: positive is ahead */
	int64_t worst_ns;
	int64_t reads;
	int errors[ERRORS + 1];
} told;

static inline void forget_errors(void)
{
	told.worst_ns = 0;
	told.reads = 0;
	memset(told.errors, 0, sizeof(told.errors));
}

/* `ns` was told between the kernel's two: at the very moment of the counter,
 * `counted_ns`, if that was it. */
static inline void note(
	int64_t ns, int64_t begun_ns, int64_t ended_ns, int64_t counted_ns)
{
	int64_t off_ns = outside(ns, begun_ns, ended_ns);

	if (turned_counter_last())
		off_ns = ns - counted_ns;
	told.off_ns = off_ns;
	off_ns = magnitude(off_ns);
	if (off_ns > told.worst_ns)
		told.worst_ns = off_ns;
	told.errors[off_ns < ERRORS ? off_ns : ERRORS]++;
	told.reads++;
}

static inline int64_t error_at(int per_10000)
{
	int64_t left = told.reads * per_10000 / 10000;
	int ns = 0;

	while (ns < ERRORS && left >= told.errors[ns])
		left -= told.errors[ns++];
	return ns < ERRORS ? ns : told.worst_ns;
}

static inline void show_errors(const char *what)
{
	printf("# %s: %lld reads, off by p50 %lld p99 %lld p99.9 %lld "
	       "p99.99 %lld max %lld ns\n",
		what, (long long)told.reads, (long long)error_at(5000),
		(long long)error_at(9900), (long long)error_at(9990),
		(long long)error_at(9999), (long long)told.worst_ns);
	/* Libcheck ends a child that failed without. */
	fflush(stdout);
}

static inline int64_t read_mono(void)
{
	int64_t before_ns = told.mono_ns, begun_ns = sim_mono();
	int64_t ns = precise_read(CT_PRECISE_MONO);

	if (ns < before_ns && !told.mono_may_go_back)
		ck_abort_msg("mono went back by %lld ns",
			(long long)(before_ns - ns));
	if (ns > told.mono_ns || told.mono_may_go_back)
		told.mono_ns = ns;
	note(ns, begun_ns, sim_mono(), turned.mono_ns);
	return ns;
}

static inline int64_t read_wall(void)
{
	int64_t before_ns = told.wall_ns, begun_ns = sim_wall();
	int64_t ns = precise_read(CT_PRECISE_WALL);

	if (sim.raw_ns >= told.wall_holds_ns) {
		if (ns < before_ns && !told.mono_may_go_back)
			ck_abort_msg("wall went back by %lld ns",
				(long long)(before_ns - ns));
		if (ns > told.wall_ns || told.mono_may_go_back)
			told.wall_ns = ns;
	}
	note(ns, begun_ns, sim_wall(), turned.wall_ns);
	return ns;
}

/* Either, and either first. */
static inline void read_both(void)
{
	bool wall_first = random_next(&sim.random) % 2 == 0;

	if (wall_first)
		read_wall();
	read_mono();
	if (!wall_first)
		read_wall();
}

/* Somebody sets the wall clock. It shows when the segment is over. */
static inline void set_wall(int64_t by_ns)
{
	sim.wall_offset_ns += by_ns;
	told.wall_ns = 0;
	told.wall_holds_ns = sim.raw_ns + SEGMENT_NS + SEGMENT_NS / 8;
}

/* Readers at a random pace. */
static inline void read_for(int64_t ns, int64_t least_ns, int64_t most_ns)
{
	int64_t end_ns = sim.raw_ns + ns;

	while (sim.raw_ns < end_ns) {
		sim_pass(random_in(least_ns, most_ns));
		read_both();
	}
}

static inline struct clocksource turned_tsc(void)
{
	struct clocksource cs = {
		.name = "turned",
		.read = turned_counter,
		.mask = UINT64_MAX,
		.processors = true,
		.watched = true,
		.mono = CLOCK_MONOTONIC,
		.wall = CLOCK_REALTIME,
	};

	return cs;
}

static inline bool counts(void)
{
	int64_t error_ns;

	return precise_counts(&error_ns);
}

static inline const char *why_not(void)
{
	static char buf[256];

	precise_explain(buf, sizeof(buf));
	return buf;
}

/* Nothing has been read yet. */
static inline void begin(int64_t hz)
{
	struct clocksource cs = turned_tsc();

	/* The library remembers how far it was, for forked children. */
	static int64_t begun_ns;

	memset(&ct_page, 0, sizeof(ct_page));
	memset(&told, 0, sizeof(told));
	turned_begin(hz);
	begun_ns += 100 * SEC;
	sim.mono_ns += begun_ns;
	/* As real ones waver. */
	sim.jitter_ns = 15;
	precise_stop();
	precise_start(&cs);
	told.generation = steps_look();
}

static inline uint64_t steps_counted(void)
{
	return steps_generation() - told.generation;
}

/* The rate is known, and a line is there, as exact as it gets. */
static inline void settle(void)
{
	read_for(SEC, 100 * US, 5 * MS);
	ck_assert_msg(counts(), "no line%s", why_not());
	forget_errors();
}

static inline void begin_settled(int64_t hz)
{
	begin(hz);
	settle();
}

#endif /* READER_H */
