/* SPDX-License-Identifier: MIT */
/* Which back ends there are, which one is taken and why, and their samples. */
#include <errno.h>
#include <string.h>

#include <cachedtime.h>

#include "clocksource.h"
#include "kernel_clock.h"
#include "suite.h"

#define US INT64_C(1000)
#define MS INT64_C(1000000)

static struct clocksource cs;
static char reason[256];

/* The linker calls this instead: --wrap. With `gaps` the clock is turned by
 * hand: that much passes before each read. */
static const int64_t *gaps;
static int reads;
static int64_t turned_ns;

int64_t __wrap_kernel_clock_ns(clockid_t clock);
int64_t __real_kernel_clock_ns(clockid_t clock);

int64_t __wrap_kernel_clock_ns(clockid_t clock)
{
	reads++;
	if (gaps == NULL)
		return __real_kernel_clock_ns(clock);
	turned_ns += *gaps++;
	return turned_ns;
}

static void assert_reason(const char *part)
{
	ck_assert_msg(
		strstr(reason, part) != NULL, "no '%s' in '%s'", part, reason);
}

static int open_named(const char *name)
{
	memset(&cs, 0x55, sizeof(cs));
	memset(reason, 'x', sizeof(reason));
	return clocksource_open(&cs, name, reason, sizeof(reason));
}

static void assert_is(const char *name, clockid_t mono, clockid_t wall)
{
	ck_assert_str_eq(cs.name, name);
	ck_assert_int_eq(cs.mono, mono);
	ck_assert_int_eq(cs.wall, wall);
	ck_assert(cs.read == NULL);
	ck_assert_uint_eq(cs.hz, 1000000000);
	ck_assert_uint_eq(cs.mask, UINT64_MAX);
	ck_assert_int_eq(cs.bracket_ns, 0);
}

/* Whatever this machine has. */
static void no_tsc(void)
{
	clocksource_kernel_from("/nonexistent");
}

START_TEST(all_names)
{
	char buf[64], small[9];

	ck_assert_uint_eq(clocksource_names(buf, sizeof(buf)), 27);
	ck_assert_str_eq(buf, "tsc, realtime, hpet, coarse");
	ck_assert_uint_eq(clocksource_names(small, sizeof(small)), 8);
	ck_assert_str_eq(small, "tsc, rea");
}
END_TEST

START_TEST(find)
{
	ck_assert_ptr_eq(clocksource_find("realtime"), &clocksource_realtime);
	ck_assert_ptr_eq(clocksource_find("coarse"), &clocksource_coarse);
	ck_assert_ptr_null(clocksource_find("auto"));
	ck_assert_ptr_null(clocksource_find(""));
	ck_assert_ptr_null(clocksource_find("realtim"));
	ck_assert_ptr_null(clocksource_find("realtime2"));
	ck_assert_ptr_null(clocksource_find("Realtime"));
}
END_TEST

START_TEST(names_fit)
{
	ck_assert_uint_lt(
		strlen(clocksource_realtime.name), CLOCKSOURCE_NAME_SIZE);
	ck_assert_uint_lt(
		strlen(clocksource_coarse.name), CLOCKSOURCE_NAME_SIZE);
}
END_TEST

START_TEST(automatic)
{
	static const char *const names[] = { "auto", NULL };

	no_tsc();
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(open_named(names[i]), 0);
		assert_is("realtime", CLOCK_MONOTONIC, CLOCK_REALTIME);
		ck_assert_int_eq(cs.lag_ns, 0);
		assert_reason("not tsc: ");
		assert_reason("realtime: ");
		assert_reason("not hpet: only if asked for");
		assert_reason("not coarse: only if asked for");
	}
}
END_TEST

START_TEST(asked_for)
{
	struct timespec tick;

	ck_assert_int_eq(open_named("coarse"), 0);
	assert_is("coarse", CLOCK_MONOTONIC_COARSE, CLOCK_REALTIME_COARSE);
	assert_reason("coarse: asked for");
	/* Its words may be taken from exact clocks, over a tick ahead. */
	clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
	ck_assert_int_gt(cs.lag_ns, timespec_to_ns(&tick));

	ck_assert_int_eq(open_named("realtime"), 0);
	assert_is("realtime", CLOCK_MONOTONIC, CLOCK_REALTIME);
	assert_reason("realtime: asked for");
}
END_TEST

START_TEST(unknown)
{
	no_tsc();
	ck_assert_int_eq(open_named("sundial"), -ENODEV);
	assert_is("realtime", CLOCK_MONOTONIC, CLOCK_REALTIME);
	assert_reason("sundial");
	assert_reason("realtime: ");
}
END_TEST

START_TEST(small_reason)
{
	char small[12];

	no_tsc();
	ck_assert_int_eq(clocksource_open(&cs, "a-very-long-name-for-a-clock",
				 small, sizeof(small)),
		-ENODEV);
	ck_assert_uint_lt(strlen(small), sizeof(small));
	ck_assert_str_eq(cs.name, "realtime");
	clocksource_open(&cs, "auto", small, sizeof(small));
	ck_assert_uint_lt(strlen(small), sizeof(small));
}
END_TEST

static void assert_consistent(clockid_t mono, clockid_t wall)
{
	struct timekeeper_sample sample;
	int64_t last_ns = 0;
	int64_t before_ns, after_ns, wall_before_ns, wall_after_ns;

	for (int i = 0; i < 2000; i++) {
		wall_before_ns = clock_ns(wall);
		before_ns = clock_ns(mono);
		clocksource_sample(&cs, &sample);
		after_ns = clock_ns(mono);
		wall_after_ns = clock_ns(wall);

		if (sample.mono_ns < before_ns || sample.mono_ns < last_ns ||
			sample.mono_after_ns < sample.mono_ns ||
			sample.mono_after_ns > after_ns ||
			sample.cycles != (uint64_t)sample.mono_ns)
			ck_abort_msg("mono %lld..%lld, cycles %llu",
				(long long)sample.mono_ns,
				(long long)sample.mono_after_ns,
				(unsigned long long)sample.cycles);
		/* Should somebody set the clock just now: never mind. */
		if ((sample.wall_ns < wall_before_ns ||
			    sample.wall_ns > wall_after_ns) &&
			wall_after_ns - wall_before_ns >= 0 &&
			wall_after_ns - wall_before_ns < 10 * MS)
			ck_abort_msg("wall %lld", (long long)sample.wall_ns);
		ck_assert(cs.bracket_ns >= 1);
		last_ns = sample.mono_ns;
	}
}

START_TEST(brackets_of_realtime)
{
	open_named("realtime");
	assert_consistent(CLOCK_MONOTONIC, CLOCK_REALTIME);
}
END_TEST

START_TEST(brackets_of_coarse)
{
	open_named("coarse");
	assert_consistent(CLOCK_MONOTONIC_COARSE, CLOCK_REALTIME_COARSE);
}
END_TEST

/* A look reads mono, wall, mono. */
#define LOOK(ns) 0, (ns) / 2, (ns) - (ns) / 2

static struct timekeeper_sample sample_with(const int64_t *turns)
{
	struct timekeeper_sample sample;

	gaps = turns;
	reads = 0;
	clocksource_sample(&cs, &sample);
	gaps = NULL;
	return sample;
}

static int64_t bracket_with(const int64_t *turns)
{
	struct timekeeper_sample sample = sample_with(turns);

	return sample.mono_after_ns - sample.mono_ns;
}

START_TEST(preempted_look)
{
	static const int64_t good[] = { LOOK(60) };
	static const int64_t first[] = { LOOK(5 * MS), LOOK(50) };
	static const int64_t three[] = { LOOK(5 * MS), LOOK(3 * MS), LOOK(MS),
		LOOK(70) };
	static const int64_t all[] = { LOOK(5 * MS), LOOK(3 * MS), LOOK(MS),
		LOOK(2 * MS) };

	turned_ns = 1000 * MS;
	open_named("realtime");
	ck_assert_int_eq(bracket_with(good), 60);
	/* A good one is not looked at twice. */
	ck_assert_int_eq(bracket_with(good), 60);
	ck_assert_int_eq(reads, 3);

	ck_assert_int_eq(bracket_with(first), 50);
	ck_assert_int_eq(reads, 6);
	ck_assert_int_eq(bracket_with(three), 70);
	ck_assert_int_eq(bracket_with(all), MS);
	ck_assert_int_eq(reads, 12);
	/* The disturbance doesn't become the measure. */
	ck_assert_int_eq(bracket_with(first), 50);
}
END_TEST

/* On a machine whose every clock read is slow no bracket is narrow. */
START_TEST(slow_clock)
{
	static const int64_t fast[] = { LOOK(60) };
	static const int64_t slow[] = { LOOK(2 * US), LOOK(2 * US),
		LOOK(2 * US), LOOK(2 * US) };
	int retried = 0;

	turned_ns = 1000 * MS;
	open_named("realtime");
	for (int i = 0; i < 100; i++) {
		ck_assert_int_eq(bracket_with(slow), 2 * US);
		ck_assert_int_eq(reads, 3);
	}

	/* It became slow: found out after some samples, and then accepted. */
	open_named("realtime");
	bracket_with(fast);
	while (retried < 1000 && (bracket_with(slow), reads > 3))
		retried++;
	ck_assert_int_gt(retried, 10);
	ck_assert_int_lt(retried, 1000);
}
END_TEST

static uint64_t cycles;

static uint64_t read_cycles(void)
{
	return cycles += 7;
}

START_TEST(user_counter)
{
	static const int64_t good[] = { LOOK(60) };
	const struct ct_clocksource user = {
		.name = "not this one",
		.read = read_cycles,
		.mask = 0xffffffff,
		.hz = 10000000,
	};
	struct timekeeper_sample sample;

	memset(&cs, 0x55, sizeof(cs));
	clocksource_open_user(&cs, &user, "mine", reason, sizeof(reason));
	ck_assert_str_eq(cs.name, "mine");
	ck_assert(cs.read == read_cycles);
	ck_assert_uint_eq(cs.mask, 0xffffffff);
	ck_assert_uint_eq(cs.hz, 10000000);
	ck_assert_int_eq(cs.mono, CLOCK_MONOTONIC);
	ck_assert_int_eq(cs.wall, CLOCK_REALTIME);
	ck_assert_int_eq(cs.lag_ns, 0);
	assert_reason("mine: ");

	sample = sample_with(good);
	ck_assert_uint_eq(sample.cycles, 7);
}
END_TEST

static void add(Suite *suite, const char *situation, const TTest *test)
{
	TCase *tcase = tcase_create(situation);

	tcase_add_test(tcase, test);
	suite_add_tcase(suite, tcase);
}

int main(void)
{
	Suite *suite = suite_create("clocksource");

	add(suite, "names", all_names);
	add(suite, "find", find);
	add(suite, "names fit", names_fit);
	add(suite, "automatic", automatic);
	add(suite, "asked for", asked_for);
	add(suite, "unknown", unknown);
	add(suite, "small reason", small_reason);
	add(suite, "brackets of realtime", brackets_of_realtime);
	add(suite, "brackets of coarse", brackets_of_coarse);
	add(suite, "preempted look", preempted_look);
	add(suite, "slow clock", slow_clock);
	add(suite, "user counter", user_counter);
	return run_suite(suite);
}
