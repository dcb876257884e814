/* SPDX-License-Identifier: MIT */
/*
 * The servo, fed with samples of a clock whose true line the test knows. The
 * samples err at random by as much as they say they may; what counts is how
 * far the servo is from the true line just before the next one.
 */
#include "servo.h"

#include "counters/counters.h"

#define PPM 1000000
#define HOUR (3600 * SEC)
/* As long as a segment: how often precise time feeds it. */
#define INTERVAL_NS (2500 * US)
/* Half of a bracket of 50 ns. */
#define ERROR_NS 25

static struct servo servo;

/* The true line, in 2^-32 ns. */
static struct {
	uint64_t hz;
	uint64_t cycles;
	i128 mono;
	i128 slope; /* per cycle */
	uint64_t random;
} world;

static const uint64_t rates[] = { 1000000000, 2100000000, 3700000001,
	400000000 };

static int64_t magnitude(int64_t ns)
{
	return ns < 0 ? -ns : ns;
}

/* Uniform in -most..most. */
static int64_t noise(int64_t most)
{
	uint64_t range = 2 * (uint64_t)most + 1;

	return (int64_t)(random_next(&world.random) % range) - most;
}

/* The kernel's line against the counter's true rate. */
static void set_slope(int64_t ppm)
{
	i128 line = (i128)SEC << 32;

	world.slope = (line + line / PPM * ppm) / (i128)world.hz;
}

static void pass(int64_t ns)
{
	uint64_t cycles =
		(uint64_t)((u128)(uint64_t)ns * world.hz / (uint64_t)SEC);

	world.cycles += cycles;
	world.mono += (i128)cycles * world.slope;
}

static int64_t truth(void)
{
	return (int64_t)(world.mono >> 32);
}

static int64_t off(void)
{
	return servo_mono(&servo, world.cycles) - truth();
}

/* Where it would be without a further sample. */
static int64_t off_in(int64_t ns)
{
	uint64_t cycles = world.cycles;
	i128 mono = world.mono;
	int64_t off_ns;

	pass(ns);
	off_ns = off();
	world.cycles = cycles;
	world.mono = mono;
	return off_ns;
}

static enum servo_event feed_off_by(int64_t ns, int64_t error_ns)
{
	struct servo_sample sample = {
		.cycles = world.cycles,
		.mono_ns = truth() + ns,
		.error_ns = error_ns,
	};

	return servo_advance(&servo, &sample);
}

static enum servo_event feed(void)
{
	return feed_off_by(noise(ERROR_NS), ERROR_NS);
}

static enum servo_event feed_after(int64_t ns)
{
	pass(ns);
	return feed();
}

/* The first rate is off by so much. */
static void begin(uint64_t hz, int64_t rate_ppm)
{
	struct servo_sample first;
	i128 rate;

	world.random = 88172645463325252;
	world.hz = hz;
	world.cycles = 12345678987;
	world.mono = (i128)(4000 * SEC) << 32;
	set_slope(0);

	rate = world.slope + world.slope * rate_ppm / PPM;
	first.cycles = world.cycles;
	first.mono_ns = truth();
	first.error_ns = ERROR_NS;
	servo_init(&servo, (uint64_t)rate, &first);
}

static void settle(int64_t interval_ns)
{
	for (int i = 0; i < 200; i++)
		feed_after(interval_ns);
}

/* Two samples make a line. */
START_TEST(converges_at_once)
{
	begin(rates[_i], 20);
	pass(INTERVAL_NS);
	ck_assert_int_eq(feed_off_by(0, ERROR_NS), SERVO_TRACKS);
	ck_assert_int_le(magnitude(off()), 1);
	ck_assert_int_le(magnitude(off_in(INTERVAL_NS)), 3);
	ck_assert_int_le(magnitude(off_in(100 * MS)), 100);
}
END_TEST

/* Two samples make a line that errs for one interval more by three of theirs;
 * with each sample by less. */
START_TEST(converges_on_noise)
{
	begin(rates[_i], -20);
	for (int i = 0; i < 15; i++) {
		ck_assert_int_ne(feed_after(INTERVAL_NS), SERVO_JUMPED);
		ck_assert_int_le(magnitude(off_in(INTERVAL_NS)), 3 * ERROR_NS);
	}
	for (int i = 0; i < 100; i++) {
		ck_assert_int_eq(feed_after(INTERVAL_NS), SERVO_TRACKS);
		ck_assert_int_le(magnitude(off()), ERROR_NS);
	}
}
END_TEST

/* Just before each sample, the moment at which it is furthest off. */
START_TEST(steady)
{
	static const int64_t slews[] = { 0, 300, -300, 500 };
	/* As often as readers renew, who come at once or at their leisure. */
	static const int64_t intervals[] = { INTERVAL_NS, 10 * MS };
	int64_t interval_ns = intervals[_i / LENGTH(rates) / LENGTH(slews)];
	int64_t sum_ns = 0;

	begin(rates[_i % LENGTH(rates)], 3);
	set_slope(slews[_i / LENGTH(rates) % LENGTH(slews)]);
	settle(interval_ns);
	for (int i = 0; i < 20000; i++) {
		pass(interval_ns);
		ALWAYS(magnitude(off()) <= (interval_ns > 4 * MS ? 40 : 30));
		sum_ns += off();
		ALWAYS(feed() == SERVO_TRACKS);
	}
	/* Nor is it off to one side. */
	ck_assert_int_le(magnitude(sum_ns / 20000), 1);
	/* Told as what the samples miss it by. */
	ck_assert_int_gt(servo.misses, ERROR_NS * 16 / 4);
	ck_assert_int_lt(servo.misses, ERROR_NS * 16);
}
END_TEST

/* A crystal drifts by 1 ppm a second as it warms up. */
START_TEST(drift)
{
	begin(rates[_i], 0);
	settle(INTERVAL_NS);
	for (int i = 0; i < 20000; i++) {
		pass(INTERVAL_NS);
		world.slope += world.slope / 400 / PPM;
		ALWAYS(magnitude(off()) <= 40);
		ALWAYS(feed() == SERVO_TRACKS);
	}
}
END_TEST

static const int64_t changes[] = { 300, -300, 500, -500, 50, -50, 5000, -5000,
	50000, -50000, 100000, -100000 };

/* The slope changes somewhere between two samples. */
START_TEST(slope_changes)
{
	int64_t ppm = changes[_i % LENGTH(changes)];

	begin(rates[_i / LENGTH(changes)], 1);
	settle(INTERVAL_NS);
	for (int round = 0; round < 200; round++) {
		int64_t first_ns =
			1 + (noise(INTERVAL_NS / 2) + INTERVAL_NS / 2) %
				    INTERVAL_NS;
		bool bent = false;

		pass(first_ns);
		set_slope(round % 2 == 0 ? ppm : 0);
		pass(INTERVAL_NS - first_ns);
		bent = feed() == SERVO_BENT;
		for (int i = 0; i < 2; i++)
			bent = (feed_after(INTERVAL_NS) == SERVO_BENT) || bent;
		pass(INTERVAL_NS);
		/* A line through two samples, for one interval more. */
		ALWAYS(magnitude(off()) <= 5 * ERROR_NS);
		ALWAYS(bent);
		for (int i = 0; i < 60; i++)
			ALWAYS(feed_after(INTERVAL_NS) != SERVO_JUMPED);
		pass(INTERVAL_NS);
		ALWAYS(magnitude(off()) < 30);
		feed();
	}
}
END_TEST

/* The slope is what adjtimex(2) can make it, whatever it is fed with. */
START_TEST(slope_is_limited)
{
	uint64_t limit;

	begin(rates[0], 0);
	limit = servo.nominal / 8;
	settle(INTERVAL_NS);
	for (int i = 0; i < 100000; i++) {
		pass(1 + (int64_t)(random_next(&world.random) %
				   (uint64_t)(10 * MS)));
		feed_off_by(noise(2 * MS), 20 * US);
		ALWAYS(servo.rate <= servo.nominal + limit);
		ALWAYS(servo.rate >= servo.nominal - limit);
	}
	settle(INTERVAL_NS);
	ck_assert_int_lt(magnitude(off_in(INTERVAL_NS)), 2 * ERROR_NS);
}
END_TEST

static void assert_jump_told(int64_t interval_ns, int64_t jump_ns)
{
	pass(interval_ns);
	world.mono += (i128)jump_ns * ((i128)1 << 32);
	ALWAYS(feed_off_by(0, ERROR_NS) == SERVO_JUMPED);
	/* It is where the clock is, at the slope it had. */
	ALWAYS(magnitude(off()) <= 1);
	ALWAYS(magnitude(off_in(INTERVAL_NS)) < 30);
	settle(INTERVAL_NS);
	ALWAYS(magnitude(off_in(INTERVAL_NS)) < 30);
}

START_TEST(jumps)
{
	begin(rates[_i], 0);
	set_slope(300);
	settle(INTERVAL_NS);
	for (int64_t ns = 2 * MS; ns < 100000 * SEC; ns *= 7) {
		assert_jump_told(INTERVAL_NS, ns);
		assert_jump_told(INTERVAL_NS, -ns);
	}
	for (int64_t ns = 250 * US; ns < SEC; ns *= 2) {
		assert_jump_told(300 * US, ns);
		assert_jump_told(300 * US, -ns);
	}
}
END_TEST

/* What is no more than a change of slope could do isn't one. */
START_TEST(no_jump)
{
	begin(rates[0], 0);
	for (int round = 0; round < 1000; round++) {
		settle(MS);
		pass(MS);
		ALWAYS(feed_off_by(noise(SERVO_JUMP_NS), ERROR_NS) !=
			SERVO_JUMPED);
	}
}
END_TEST

START_TEST(counter_goes_back)
{
	begin(rates[_i], 0);
	settle(INTERVAL_NS);
	for (uint64_t by = 1000; by < UINT64_MAX / 8; by *= 13) {
		pass(INTERVAL_NS);
		feed();
		world.cycles -= by;
		ALWAYS(feed_off_by(0, ERROR_NS) == SERVO_JUMPED);
		ALWAYS(magnitude(off_in(INTERVAL_NS)) < 40);
		settle(INTERVAL_NS);
		ALWAYS(magnitude(off_in(INTERVAL_NS)) < 30);
	}
	/* To zero, as at a reset. */
	world.cycles = 0;
	ck_assert_int_eq(feed_off_by(0, ERROR_NS), SERVO_JUMPED);
	settle(INTERVAL_NS);
	ck_assert_int_lt(magnitude(off_in(INTERVAL_NS)), 30);
}
END_TEST

/* All the time: each is a jump. */
START_TEST(counter_runs_backwards)
{
	begin(rates[_i], 0);
	settle(INTERVAL_NS);
	for (int i = 0; i < 1000; i++) {
		world.cycles -= world.hz / 400;
		world.mono += (i128)INTERVAL_NS << 32;
		ALWAYS(feed_off_by(0, ERROR_NS) == SERVO_JUMPED);
		ALWAYS(off() == 0);
	}
}
END_TEST

/* Readers come as they come. For one segment more it is as good as a line
 * through two samples a millisecond apart, which is the worst of these. */
START_TEST(irregular)
{
	static const int64_t intervals[] = { MS, 50 * MS, 10 * SEC };

	begin(rates[_i], 0);
	set_slope(300);
	settle(INTERVAL_NS);
	for (int i = 0; i < 20000; i++) {
		ALWAYS(feed_after(intervals[random_next(&world.random) % 3]) !=
			SERVO_JUMPED);
		ALWAYS(magnitude(off()) <= 2 * ERROR_NS);
		ALWAYS(magnitude(off_in(INTERVAL_NS)) <= 7 * ERROR_NS);
	}
}
END_TEST

/* Too short to tell a slope: they don't. */
START_TEST(in_quick_succession)
{
	begin(rates[_i], 0);
	set_slope(300);
	settle(INTERVAL_NS);
	for (int i = 0; i < 10000; i++) {
		ALWAYS(feed_after(1 + (int64_t)(random_next(&world.random) %
						(uint64_t)(150 * US))) ==
			SERVO_TRACKS);
		ALWAYS(magnitude(off_in(INTERVAL_NS)) < 60);
	}
	/* At the same cycle, even. */
	for (int i = 0; i < 1000; i++)
		ALWAYS(feed_after(0) == SERVO_TRACKS);
	ck_assert_int_lt(magnitude(off_in(INTERVAL_NS)), 60);
}
END_TEST

/* Nobody reads for long, while the clock's crystal drifts as they do. */
START_TEST(long_gap)
{
	static const int64_t gaps[] = { SEC, 10 * SEC, 100 * SEC, HOUR,
		24 * HOUR, 300 * 24 * HOUR };
	static const int64_t drifts[] = { 0, 1, -1, 3, 30 };

	begin(rates[_i % LENGTH(rates)], 0);
	for (int i = 0; i < LENGTH(drifts); i++) {
		set_slope(0);
		settle(INTERVAL_NS);
		set_slope(drifts[i]);
		ck_assert_int_ne(
			feed_after(gaps[_i / LENGTH(rates)]), SERVO_JUMPED);
		/* The sample says where the clock is. */
		ck_assert_int_le(magnitude(off()), 2 * ERROR_NS);
		for (int n = 0; n < 3; n++) {
			/* Until the slope of now shows. */
			ck_assert_int_le(magnitude(off_in(INTERVAL_NS)),
				5 * ERROR_NS + 30);
			ck_assert_int_ne(feed_after(INTERVAL_NS), SERVO_JUMPED);
		}
		settle(INTERVAL_NS);
		ck_assert_int_lt(magnitude(off_in(INTERVAL_NS)), 30);
	}
}
END_TEST

/* So long that the arithmetic would overflow in less than 128 bits. */
START_TEST(years)
{
	begin(rates[_i], 0);
	settle(INTERVAL_NS);
	for (int i = 0; i < 100; i++) {
		ck_assert_int_ne(feed_after(300 * 24 * HOUR), SERVO_JUMPED);
		ck_assert_int_le(magnitude(off()), 2 * ERROR_NS);
	}
	settle(INTERVAL_NS);
	ck_assert_int_lt(magnitude(off_in(INTERVAL_NS)), 30);
}
END_TEST

/* A sample that was pre-empted is wide, and says so. */
START_TEST(outlier)
{
	static const int64_t errors[] = { US, 10 * US, 100 * US, MS };
	int64_t error_ns = errors[_i];

	begin(rates[1], 0);
	set_slope(300);
	settle(INTERVAL_NS);
	for (int round = 0; round < 1000; round++) {
		pass(INTERVAL_NS);
		ALWAYS(feed_off_by(noise(error_ns), error_ns) == SERVO_TRACKS);
		for (int i = 0; i < 4; i++) {
			/* It tells nothing that wasn't known better. */
			ALWAYS(magnitude(off_in(INTERVAL_NS)) <= 100);
			feed_after(INTERVAL_NS);
		}
		for (int i = 0; i < 40; i++)
			feed_after(INTERVAL_NS);
	}
}
END_TEST

START_TEST(cycles_of_a_time)
{
	begin(rates[_i], 0);
	for (int64_t ns = 1000; ns < HOUR; ns *= 3) {
		uint64_t cycles = servo_cycles(&servo, ns);
		u128 back = ((u128)cycles * servo.rate) >> 32;

		ck_assert_int_le((int64_t)back, ns);
		/* Slower than 1 GHz, a cycle is longer than 1 ns. */
		ck_assert_int_ge((int64_t)back, ns - 4);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("servo");
	int all = LENGTH(rates);

	add_table(suite, "converges on two samples", converges_at_once, all);
	add_table(suite, "converges on noise", converges_on_noise, all);
	add_table(suite, "steady slope", steady, 8 * all);
	add_table(suite, "drift", drift, all);
	add_table(suite, "slope changes", slope_changes, LENGTH(changes) * all);
	add_situation(suite, "slope is limited", slope_is_limited);
	add_table(suite, "clock or counter jumps", jumps, all);
	add_situation(suite, "off by less than a jump", no_jump);
	add_table(suite, "counter goes back", counter_goes_back, all);
	add_table(suite, "counter runs backwards", counter_runs_backwards, all);
	add_table(suite, "irregular intervals", irregular, all);
	add_table(suite, "in quick succession", in_quick_succession, all);
	add_table(suite, "long gaps, and drift", long_gap, 6 * all);
	add_table(suite, "years", years, all);
	add_table(suite, "one wide sample", outlier, 4);
	add_table(suite, "cycles of a time", cycles_of_a_time, all);
	return run_suite(suite);
}
