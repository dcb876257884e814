/* SPDX-License-Identifier: MIT */
/*
 * The timekeeper under a clock that is turned by hand: no test here knows what
 * time it is, and none waits.
 *
 * The words of the page are the smaller of the line and the kernel's clock, so
 * the line may be ahead for a while; what it may not is go back.
 */
#include <string.h>

#include "suite.h"
#include "timekeeper.h"

__extension__ typedef unsigned __int128 u128;

/* lo <= value <= hi. Millions of ck_assert() would each write to a file. */
#define ASSERT_WITHIN(value, lo, hi)                                   \
	do {                                                           \
		int64_t v = (value);                                   \
                                                                       \
		if (v < (lo) || v > (hi))                              \
			ck_abort_msg(#value " is %lld", (long long)v); \
	} while (0)

#define US INT64_C(1000)
#define MS INT64_C(1000000)
#define SEC INT64_C(1000000000)
#define HOUR (3600 * SEC)
#define DAY (24 * HOUR)

#define MASK(bits) (UINT64_MAX >> (64 - (bits)))

/* The world: what the kernel's clocks and the counter really do. */
static struct sim {
	int64_t mono_ns;
	int64_t wall_ns;
	u128 counter; /* cycles since ever, in 10^-18 */
	uint64_t mask;
	uint64_t hz;
	int64_t ppb; /* counter's error against mono: positive runs fast */
	int64_t bracket_ns;
	/* Where in the bracket the counter is read, in percent; the wall clock
	 * follows halfway to the end. */
	int64_t read_at;
	int64_t true_ns; /* mono at the last read of the counter */
} sim;

static struct timekeeper tk;
static struct timekeeper_sample last;
static int64_t last_line_ns;

static void pass(int64_t ns)
{
	sim.mono_ns += ns;
	sim.wall_ns += ns;
	sim.counter += (u128)(uint64_t)ns * sim.hz * (uint64_t)(SEC + sim.ppb);
}

static void jump_counter(uint64_t cycles)
{
	sim.counter += (u128)cycles * (uint64_t)SEC * (uint64_t)SEC;
}

static void look(struct timekeeper_sample *sample)
{
	int64_t before_ns = sim.bracket_ns * sim.read_at / 100;
	int64_t between_ns = (sim.bracket_ns - before_ns) / 2;

	sample->mono_ns = sim.mono_ns;
	pass(before_ns);
	sim.true_ns = sim.mono_ns;
	sample->cycles =
		(uint64_t)(sim.counter / ((u128)SEC * (u128)SEC)) & sim.mask;
	pass(between_ns);
	sample->wall_ns = sim.wall_ns;
	pass(sim.bracket_ns - before_ns - between_ns);
	sample->mono_after_ns = sim.mono_ns;
}

/* A world whose counter runs at `hz`, and a timekeeper that was told so. */
static void begin(uint64_t hz, uint64_t mask)
{
	memset(&sim, 0, sizeof(sim));
	sim.mono_ns = 1000 * SEC;
	sim.wall_ns = INT64_C(1700000000) * SEC;
	sim.hz = hz;
	sim.mask = mask;
	sim.bracket_ns = 60;
	sim.read_at = 33;
	jump_counter(12345);

	look(&last);
	timekeeper_init(&tk, mask, hz, 500000, &last);
	last_line_ns = timekeeper_mono(&tk, last.cycles);
}

static int64_t outside(int64_t value, int64_t lo, int64_t hi)
{
	return value < lo ? value - lo : value > hi ? value - hi : 0;
}

/* How far the line was outside the bracket of the last sample. */
static int64_t mono_off_ns(void)
{
	return outside(last_line_ns, last.mono_ns, last.mono_after_ns);
}

static int64_t wall_off_ns(void)
{
	return outside(tk.wall_offset_ns, last.wall_ns - last.mono_after_ns,
		last.wall_ns - last.mono_ns);
}

/* `gap_ns` pass; the timekeeper looks. What holds always is checked here. */
static unsigned int tick(int64_t gap_ns)
{
	int64_t before_ns = last_line_ns;
	unsigned int events;

	pass(gap_ns);
	look(&last);
	events = timekeeper_advance(&tk, &last);
	last_line_ns = timekeeper_mono(&tk, last.cycles);

	ASSERT_WITHIN(last_line_ns, before_ns, INT64_MAX);
	/* Further ahead only where it stands still and waits. */
	ASSERT_WITHIN(mono_off_ns(), -TIMEKEEPER_REBASE_NS,
		last_line_ns != before_ns ? TIMEKEEPER_REBASE_NS : INT64_MAX);
	ASSERT_WITHIN(
		wall_off_ns(), 1 - TIMEKEEPER_STEP_NS, TIMEKEEPER_STEP_NS - 1);
	return events;
}

/* Until `ns` have passed, tick by tick. Returns all events. */
static unsigned int run(int64_t ns, int64_t tick_ns)
{
	unsigned int events = 0;

	for (int64_t t = 0; t < ns; t += tick_ns)
		events |= tick(tick_ns);
	return events;
}

/* As run(), and the line never leaves the bracket by more than `most_ns`. */
static void run_within(int64_t ns, int64_t tick_ns, int64_t most_ns)
{
	for (int64_t t = 0; t < ns; t += tick_ns) {
		ASSERT_WITHIN(tick(tick_ns), 0, 0);
		ASSERT_WITHIN(mono_off_ns(), -most_ns, most_ns);
		ASSERT_WITHIN(wall_off_ns(), 0, 0);
	}
}

static void assert_close(int64_t most_ns)
{
	ASSERT_WITHIN(mono_off_ns(), -most_ns, most_ns);
	ck_assert_int_eq(wall_off_ns(), 0);
}

START_TEST(steady_stays_in_the_bracket)
{
	begin(UINT64_C(1000000000), MASK(64));
	run_within(60 * SEC, MS, 2);
	ck_assert_uint_eq(tk.steps, 0);
	ck_assert_uint_eq(tk.rebases, 0);
}
END_TEST

START_TEST(first_sample_is_the_line)
{
	begin(UINT64_C(2400000000), MASK(64));
	ck_assert_int_ge(timekeeper_mono(&tk, last.cycles), last.mono_ns);
	ck_assert_int_le(timekeeper_mono(&tk, last.cycles), last.mono_after_ns);
	ck_assert_int_le(timekeeper_wall(&tk, last.cycles), last.wall_ns);
	ck_assert_int_eq(wall_off_ns(), 0);
	/* A tenth of a second of cycles is a tenth of a second. */
	ck_assert_int_eq((timekeeper_mono(&tk, last.cycles + 240000000) -
				 last_line_ns + 5) /
				 10,
		10000000);
}
END_TEST

static const int64_t slews_ppb[] = { 500000, -500000, 100000000, -100000000 };

/* When the kernel slews its clock, the counter seems to change its rate. */
START_TEST(kernel_slews)
{
	begin(UINT64_C(1000000000), MASK(64));
	run(10 * SEC, MS);
	ck_assert_uint_eq(tk.rebases, 0);

	sim.ppb = slews_ppb[_i];
	run(2 * SEC, MS);
	assert_close(100);
	run_within(10 * SEC, MS, 100);

	/* And back. */
	sim.ppb = 0;
	run(2 * SEC, MS);
	assert_close(100);
	ck_assert_uint_eq(tk.steps, 0);
}
END_TEST

/* As ntpd does it, at its limit: the line bends, and isn't begun anew. */
START_TEST(kernel_slews_within_its_limit)
{
	begin(UINT64_C(1000000000), MASK(64));
	run(10 * SEC, MS);
	for (int i = 0; i < 20; i++) {
		sim.ppb = i % 2 == 0 ? 500000 : -500000;
		ck_assert_uint_eq(run(SEC, MS), 0);
	}
	ck_assert_uint_eq(tk.rebases, 0);
}
END_TEST

START_TEST(small_wall_offset)
{
	int64_t wall_ns;

	for (int64_t off_ns = -9 * US; off_ns <= 9 * US; off_ns += 3 * US) {
		begin(UINT64_C(1000000000), MASK(64));
		run(SEC, MS);
		sim.wall_ns += off_ns;
		wall_ns = timekeeper_wall(&tk, last.cycles);
		for (int i = 0; i < 100; i++) {
			ck_assert_uint_eq(tick(50 * US), 0);
			/* Slewed: wall goes on, neither back nor by a jump. */
			ck_assert_int_gt(timekeeper_wall(&tk, last.cycles),
				wall_ns + 40 * US);
			ck_assert_int_lt(timekeeper_wall(&tk, last.cycles),
				wall_ns + 60 * US);
			wall_ns = timekeeper_wall(&tk, last.cycles);
		}
		ck_assert_int_eq(wall_off_ns(), 0);
		ck_assert_uint_eq(tk.steps, 0);
	}
}
END_TEST

static const int64_t steps_ns[] = { MS, -MS, SEC, -SEC, HOUR, -HOUR, 11 * US,
	-11 * US };

START_TEST(wall_steps)
{
	int64_t step_ns = steps_ns[_i];

	begin(UINT64_C(1000000000), MASK(64));
	run(SEC, MS);

	sim.wall_ns += step_ns;
	ck_assert_uint_eq(tick(MS), TIMEKEEPER_STEPPED);
	ck_assert_int_eq(wall_off_ns(), 0);
	ck_assert_uint_eq(tk.steps, 1);
	ck_assert_int_le(tk.last_step_ns, step_ns + sim.bracket_ns);
	ck_assert_int_ge(tk.last_step_ns, step_ns - sim.bracket_ns);

	/* Once, and without harm to mono. */
	run_within(SEC, MS, 2);
	ck_assert_uint_eq(tk.steps, 1);
	ck_assert_uint_eq(tk.rebases, 0);

	sim.wall_ns -= step_ns;
	ck_assert_uint_eq(tick(MS), TIMEKEEPER_STEPPED);
	ck_assert_uint_eq(tk.steps, 2);
	ck_assert_int_eq(tk.last_step_ns > 0, step_ns < 0);
}
END_TEST

static const struct wrap {
	unsigned int bits;
	uint64_t hz;
	int64_t tick_ns;
	int64_t run_ns;
} wraps[] = {
	{ 32, 1000000000, SEC, 500 * SEC },       /* every 4.3 s */
	{ 32, 14318180, SEC, 3000 * SEC },        /* an HPET: every 300 s */
	{ 24, 3579545, SEC, 3000 * SEC },         /* ACPI PM: every 4.7 s */
	{ 24, 1000000000, MS, 20 * SEC },         /* every 17 ms */
	{ 63, UINT64_C(100000000000), SEC, SEC }, /* not in this life */
};

START_TEST(counter_wraps)
{
	const struct wrap *wrap = &wraps[_i];
	int64_t cycle_ns = SEC / (int64_t)wrap->hz;

	begin(wrap->hz, MASK(wrap->bits));
	/* Until the rate is known, the nominal one is rounded off. */
	run(wrap->run_ns, wrap->tick_ns);
	run_within(wrap->run_ns, wrap->tick_ns, 50 + 2 * cycle_ns);
	ck_assert_uint_eq(tk.rebases, 0);
	ck_assert_uint_eq(tk.steps, 0);
}
END_TEST

START_TEST(counter_jumps_alone)
{
	begin(UINT64_C(1000000000), MASK(64));
	run(SEC, MS);
	jump_counter(UINT64_C(10000000000));
	ck_assert_uint_eq(tick(MS), TIMEKEEPER_REBASED);
	ck_assert_int_eq(mono_off_ns(), 0);
	run_within(SEC, MS, 50);
	ck_assert_uint_eq(tk.rebases, 1);
	ck_assert_uint_eq(tk.steps, 0);
}
END_TEST

/* A virtual machine that slept: its counter stood still. */
START_TEST(clock_jumps_alone)
{
	begin(UINT64_C(1000000000), MASK(64));
	run(SEC, MS);
	sim.mono_ns += 10 * SEC;
	sim.wall_ns += 10 * SEC;
	ck_assert_uint_eq(tick(MS), TIMEKEEPER_REBASED);
	ck_assert_int_eq(mono_off_ns(), 0);
	run_within(SEC, MS, 50);
	ck_assert_uint_eq(tk.rebases, 1);
	ck_assert_uint_eq(tk.steps, 0);
}
END_TEST

/* A suspend: mono stood still, the counter and the wall clock did not. */
START_TEST(mono_stood_still)
{
	begin(UINT64_C(1000000000), MASK(64));
	run(SEC, MS);
	jump_counter(UINT64_C(3600000000000));
	sim.wall_ns += HOUR;
	ck_assert_uint_eq(tick(MS), TIMEKEEPER_REBASED | TIMEKEEPER_STEPPED);
	assert_close(0);
	ck_assert_int_gt(tk.last_step_ns, HOUR - US);
	ck_assert_int_lt(tk.last_step_ns, HOUR + US);
}
END_TEST

/* What the line promised stands, even where the kernel's own clock goes back:
 * it waits there. */
START_TEST(mono_goes_back)
{
	int64_t promised_ns;

	begin(UINT64_C(1000000000), MASK(64));
	run(SEC, MS);
	promised_ns = last_line_ns;
	sim.mono_ns -= SEC;
	for (int i = 0; i < 500; i++) {
		tick(MS);
		ck_assert_int_eq(last_line_ns, promised_ns);
	}
	run(2 * SEC, MS);
	ck_assert_int_gt(last_line_ns, promised_ns);
	ASSERT_WITHIN(mono_off_ns(), -100, 100);
}
END_TEST

START_TEST(counter_reset_to_zero)
{
	begin(UINT64_C(1000000000), MASK(64));
	run(SEC, MS);
	sim.counter = 0;
	ck_assert_uint_eq(tick(MS), TIMEKEEPER_REBASED);
	ck_assert_int_eq(mono_off_ns(), 0);
	run_within(SEC, MS, 50);
	ck_assert_uint_eq(tk.rebases, 1);
}
END_TEST

START_TEST(counter_runs_backwards)
{
	begin(UINT64_C(1000000000), MASK(_i == 0 ? 64 : 32));
	run(SEC, MS);
	for (int i = 0; i < 100; i++) {
		/* A wrap and a bit less: as far as the mask can tell. */
		sim.counter -=
			(u128)(uint64_t)(2 * MS) * sim.hz * (uint64_t)SEC;
		tick(MS);
		ck_assert_int_ge(mono_off_ns(), -TIMEKEEPER_REBASE_NS);
		ck_assert_int_le(mono_off_ns(), TIMEKEEPER_REBASE_NS);
	}
	/* It comes to its senses; so does the line. */
	run(SEC, MS);
	run_within(SEC, MS, 50);
	ck_assert_uint_eq(tk.steps, 0);
}
END_TEST

START_TEST(counter_stands_still)
{
	uint64_t hz;

	begin(UINT64_C(1000000000), MASK(64));
	run(SEC, MS);
	hz = sim.hz;
	sim.hz = 0;
	run(SEC, MS);
	run(SEC / 100, 50 * US);
	sim.hz = hz;
	run(SEC, MS);
	run_within(SEC, MS, 50);
	ck_assert_uint_eq(tk.steps, 0);
}
END_TEST

static const int64_t rates_ppb[] = { 500000, 499000, 100000, 1000, 0, -1000,
	-100000, -499000, -500000 };

START_TEST(rate_off_nominal)
{
	begin(UINT64_C(2400000000), MASK(64));
	sim.ppb = rates_ppb[_i];
	ck_assert_uint_eq(run(SEC, MS), 0);
	assert_close(50);
	run_within(10 * SEC, MS, 50);
}
END_TEST

static const struct wrong_hz {
	uint64_t real, told;
	int64_t tick_ns;
	int64_t bracket_ns;
} wrong_hz[] = {
	{ 1000000000, 2000000000, MS, 60 },
	{ 2000000000, 1000000000, MS, 60 },
	{ 1000000000, 2000000000, SEC, 60 },
	{ 2000000000, 1000000000, SEC, 60 },
	{ 1000000000, 1000000, MS, 60 },
	{ 1000000, 1000000000, MS, 60 },
	/* What a tick tells of the rate is worse than what was promised. */
	{ 1000000000, 2000000000, 50 * US, 60 },
	{ 2000000000, 1000000000, 50 * US, 60 },
	{ 1000000000, 2000000000, 50 * US, 2000 },
	{ 2000000000, 1000000000, 50 * US, 2000 },
	{ 1000000000, 2000000000, MS, 2000 },
	{ 2000000000, 1000000000, MS, 2000 },
	{ 1000000000, 1050000000, MS, 60 },
	{ 1050000000, 1000000000, MS, 60 },
	{ 1000000000, 1050000000, MS, 2000 },
	{ 1050000000, 1000000000, MS, 2000 },
};

START_TEST(nominal_rate_is_wrong)
{
	const struct wrong_hz *wrong = &wrong_hz[_i];
	uint64_t rebases;

	begin(wrong->told, MASK(64));
	sim.hz = wrong->real;
	sim.bracket_ns = wrong->bracket_ns;
	run(200 * wrong->tick_ns, wrong->tick_ns);
	run(SEC, wrong->tick_ns);
	/* It has been found out. */
	rebases = tk.rebases;
	run(100 * wrong->tick_ns, wrong->tick_ns);
	ck_assert_uint_eq(tk.rebases, rebases);
	assert_close(wrong->real < 100000000 ? 1100 : 50);
	ck_assert_uint_eq(tk.steps, 0);
}
END_TEST

START_TEST(gap_of_a_day)
{
	begin(UINT64_C(1000000000), MASK(64));
	sim.ppb = _i == 0 ? 500000 : -500000;
	ck_assert_uint_eq(tick(DAY), TIMEKEEPER_REBASED);
	assert_close(0);

	/* Measured by now, or never known: right after the gap either way. */
	run(20 * SEC, MS);
	tick(DAY);
	assert_close(TIMEKEEPER_REBASE_NS);
	run(SEC, MS);
	assert_close(50);
	ck_assert_uint_eq(tk.steps, 0);
}
END_TEST

START_TEST(gap_of_a_day_at_a_perfect_rate)
{
	begin(UINT64_C(1000000000), MASK(64));
	ck_assert_uint_eq(tick(DAY), 0);
	assert_close(1);
	ck_assert_uint_eq(tk.rebases, 0);
}
END_TEST

/* The thread lost its CPU in the middle of a sample. */
START_TEST(preempted_sample)
{
	static const int64_t places[] = { 0, 1, 50, 99, 100 };
	static const int64_t before_ns[] = { 0, 100 * MS, 5 * SEC, 20 * SEC };
	uint64_t rate;
	int64_t off_ns;

	begin(UINT64_C(2400000000), MASK(64));
	run(before_ns[_i], MS);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		rate = tk.rate;
		sim.bracket_ns = 5 * MS;
		sim.read_at = places[i];
		ck_assert_uint_eq(tick(MS), 0);
		off_ns = last_line_ns - sim.true_ns;
		ck_assert_int_le(off_ns, 100);
		ck_assert_int_ge(off_ns, -100);

		sim.bracket_ns = 60;
		sim.read_at = 33;
		run_within(100 * MS, MS, 50);
		/* To 10 ppm; a 5 ms error would make 5 % of 100 ms. */
		ck_assert_uint_le(tk.rate, rate + rate / 100000);
		ck_assert_uint_ge(tk.rate, rate - rate / 100000);
	}
	run_within(20 * SEC, MS, 50);
	ck_assert_uint_eq(tk.steps, 0);
	ck_assert_uint_eq(tk.rebases, 0);
}
END_TEST

/* As above, in the very first sample: all it knows is wide. */
START_TEST(preempted_first_sample)
{
	begin(UINT64_C(2400000000), MASK(64));
	sim.bracket_ns = 5 * MS;
	sim.read_at = _i;
	look(&last);
	timekeeper_init(&tk, sim.mask, sim.hz, 500000, &last);
	last_line_ns = timekeeper_mono(&tk, last.cycles);

	sim.bracket_ns = 60;
	sim.read_at = 33;
	run(2 * SEC, MS);
	assert_close(50);
	/* A 5 ms error of the first sample is no wall step of the second by
	 * more than itself. */
	ck_assert_int_le(tk.last_step_ns, 5 * MS);
	ck_assert_int_ge(tk.last_step_ns, -5 * MS);
}
END_TEST

static const struct counter {
	uint64_t hz;
	int64_t most_ns; /* off the bracket: a cycle, and a few ns */
	bool coarse;     /* a cycle or a few are more than is slewed */
} counters[] = {
	{ 1000, TIMEKEEPER_REBASE_NS, true },
	{ 32768, TIMEKEEPER_REBASE_NS, true },
	{ 14318180, 190, false },
	/* A rate in 2^-32 ns is rounded by up to 23 and 233 ppb here. */
	{ UINT64_C(100000000000), 150, false },
	{ UINT64_C(1000000000000), 1000, false },
};

static void run_counter(const struct counter *counter, int64_t tick_ns)
{
	int64_t ticks = tick_ns == SEC ? 100 : 20000;

	begin(counter->hz, MASK(64));
	for (int64_t i = 0; i < ticks; i++) {
		tick(tick_ns);
		if (i < ticks / 2)
			continue;
		ASSERT_WITHIN(
			mono_off_ns(), -counter->most_ns, counter->most_ns);
	}
	if (!counter->coarse)
		ck_assert_uint_eq(tk.rebases, 0);
	ck_assert_uint_eq(tk.steps, 0);
}

START_TEST(counters_slow_and_fast)
{
	run_counter(&counters[_i], 50 * US);
	run_counter(&counters[_i], MS);
	run_counter(&counters[_i], SEC);
}
END_TEST

START_TEST(ticks_short_and_long)
{
	static const int64_t ticks_ns[] = { 50 * US, MS, SEC };

	begin(UINT64_C(2400000000), MASK(64));
	sim.ppb = 30000;
	run(2 * SEC, ticks_ns[_i]);
	run(20 * ticks_ns[_i], ticks_ns[_i]);
	run_within(ticks_ns[_i] == SEC ? 100 * SEC : 2 * SEC, ticks_ns[_i], 50);
	ck_assert_uint_eq(tk.rebases, 0);
}
END_TEST

/* 2^63 cycles are 2.9 years at 100 GHz. The rounded rate is off by 23 ppb. */
START_TEST(scale_of_2_63_cycles)
{
	const uint64_t cycles = UINT64_C(1) << 63;
	const int64_t expected_ns = INT64_C(92233720368547758);
	int64_t got_ns;

	begin(UINT64_C(100000000000), MASK(64));
	got_ns = timekeeper_mono(&tk, last.cycles + cycles) - last_line_ns;
	ck_assert_int_le(got_ns, expected_ns);
	ck_assert_int_ge(got_ns, expected_ns - expected_ns / 10000000);
	tick(expected_ns);
	assert_close(0);

	/* Centuries: as long as a point in time can tell, and no further. */
	begin(UINT64_C(1000), MASK(64));
	got_ns = timekeeper_mono(&tk, last.cycles - 1);
	ck_assert_int_gt(got_ns, 100 * 365 * DAY);
	ck_assert_int_eq(timekeeper_mono(&tk, last.cycles + cycles), got_ns);
	ck_assert_int_gt(timekeeper_wall(&tk, last.cycles + cycles), got_ns);
}
END_TEST

/* xorshift64: the same numbers in each run. */
static uint64_t seed;

static uint64_t number(uint64_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % below;
}

static int64_t span(int64_t most_ns)
{
	int64_t scale = 1;

	/* As likely short as long. */
	for (uint64_t i = number(12); i > 0 && scale < most_ns / 10; i--)
		scale *= 10;
	return (int64_t)number((uint64_t)scale * 10) % most_ns;
}

static int64_t either_way(int64_t most_ns)
{
	int64_t ns = span(most_ns);

	return number(2) == 0 ? ns : -ns;
}

static void something_happens(void)
{
	switch (number(60)) {
	case 0:
		sim.ppb = either_way(500000);
		break;
	case 1:
		sim.ppb = either_way(200000000);
		break;
	case 2:
		sim.wall_ns += either_way(DAY);
		break;
	case 3:
		sim.mono_ns += span(HOUR);
		break;
	case 4:
		sim.mono_ns -= span(200 * US);
		break;
	case 5:
		jump_counter(number(UINT64_C(1) << number(50)));
		break;
	case 6:
		sim.counter = 0;
		break;
	case 7:
		sim.bracket_ns = span(10 * MS);
		break;
	case 8:
		sim.bracket_ns = (int64_t)number(200);
		break;
	default:
		break;
	}
	sim.read_at = (int64_t)number(101);
}

/* tick() checks what must hold. */
START_TEST(whatever_happens)
{
	static const unsigned int bits[] = { 64, 56, 40, 32, 24 };
	static const uint64_t hz[] = { 1000, 32768, 14318180, 1000000000,
		2400000000, 100000000000, 1000000000000 };
	unsigned int events;
	uint64_t steps;

	seed = 88172645463325252 + (uint64_t)_i;
	begin(hz[number(7)], MASK(bits[number(5)]));
	for (int i = 0; i < 20000; i++) {
		something_happens();
		steps = tk.steps;
		events = tick(number(10) == 0 ? span(100 * SEC)
					      : MS + span(100 * US));
		ASSERT_WITHIN((int64_t)(tk.steps - steps),
			(events & TIMEKEEPER_STEPPED) != 0,
			(events & TIMEKEEPER_STEPPED) != 0);
	}

	/* All is well again: the line comes back to the clock. */
	sim.ppb = 0;
	sim.bracket_ns = 60;
	run(30 * SEC, MS);
	assert_close(sim.hz < 1000000 ? TIMEKEEPER_REBASE_NS : 200);
}
END_TEST

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))

static void add(Suite *suite, const char *situation, const TTest *test, int n)
{
	TCase *tcase = tcase_create(situation);

	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, test, 0, n);
	suite_add_tcase(suite, tcase);
}

int main(void)
{
	Suite *suite = suite_create("timekeeper");

	add(suite, "first sample", first_sample_is_the_line, 1);
	add(suite, "steady", steady_stays_in_the_bracket, 1);
	add(suite, "kernel slews", kernel_slews, COUNT(slews_ppb));
	add(suite, "kernel slews to and fro", kernel_slews_within_its_limit, 1);
	add(suite, "small wall offset", small_wall_offset, 1);
	add(suite, "wall steps", wall_steps, COUNT(steps_ns));
	add(suite, "counter wraps", counter_wraps, COUNT(wraps));
	add(suite, "counter jumps", counter_jumps_alone, 1);
	add(suite, "clock jumps", clock_jumps_alone, 1);
	add(suite, "suspend", mono_stood_still, 1);
	add(suite, "mono goes back", mono_goes_back, 1);
	add(suite, "counter reset", counter_reset_to_zero, 1);
	add(suite, "counter runs backwards", counter_runs_backwards, 2);
	add(suite, "counter stands still", counter_stands_still, 1);
	add(suite, "rate off nominal", rate_off_nominal, COUNT(rates_ppb));
	add(suite, "nominal rate wrong", nominal_rate_is_wrong,
		COUNT(wrong_hz));
	add(suite, "gap of a day", gap_of_a_day, 2);
	add(suite, "gap of a day, perfect rate", gap_of_a_day_at_a_perfect_rate,
		1);
	add(suite, "preempted sample", preempted_sample, 4);
	add(suite, "preempted first sample", preempted_first_sample, 101);
	add(suite, "counters slow and fast", counters_slow_and_fast,
		COUNT(counters));
	add(suite, "ticks short and long", ticks_short_and_long, 3);
	add(suite, "2^63 cycles", scale_of_2_63_cycles, 1);
	add(suite, "whatever happens", whatever_happens, 20);
	return run_suite(suite);
}
