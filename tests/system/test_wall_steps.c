/* SPDX-License-Identifier: MIT */
/* The wall clock is set while the ticker runs: words follow, mono goes on. */
#include "fake_clock.h"

#define YEAR_NS (31556952 * SEC)
/* Two words may come from neighbouring publications, and this machine is busy;
 * a step of 10 ms must still be told from none. */
#define TOLERANCE_NS (4 * MS)
/* What the kernel's own mono is known to go back by, where it does. */
#define MONO_BACK_NS INT64_C(-150000)

/* Judges the words by themselves: does wall - mono change with the clocks'? */
static bool words_follow(void)
{
	int64_t deadline_ns = true_ns(CLOCK_MONOTONIC_RAW) + DEADLINE_NS;
	int64_t wanted_ns =
		clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);
	int64_t off_ns;

	do {
		off_ns = ct_now_ns() - ct_mono_ns() - wanted_ns;
		if (!mono_is_in_order())
			return false;
		if (cached() && off_ns < TOLERANCE_NS && off_ns > -TOLERANCE_NS)
			return true;
	} while (true_ns(CLOCK_MONOTONIC_RAW) < deadline_ns);

	fprintf(stderr, "words are off by %lld ns\n", (long long)off_ns);
	return false;
}

static bool steps_become(uint64_t steps, int64_t last_ns)
{
	int64_t deadline_ns = true_ns(CLOCK_MONOTONIC_RAW) + DEADLINE_NS;
	struct ct_status status;

	do {
		status = status_now();
		if (status.steps == steps &&
			status.last_step_ns > last_ns - TOLERANCE_NS &&
			status.last_step_ns < last_ns + TOLERANCE_NS)
			return true;
		nap(MS);
	} while (true_ns(CLOCK_MONOTONIC_RAW) < deadline_ns);

	fprintf(stderr, "%llu steps, the last %lld ns\n",
		(unsigned long long)status.steps,
		(long long)status.last_step_ns);
	return false;
}

static bool ticks_on(void)
{
	int64_t deadline_ns = true_ns(CLOCK_MONOTONIC_RAW) + DEADLINE_NS;
	uint64_t before = status_now().ticks;

	while (status_now().ticks < before + 3) {
		if (true_ns(CLOCK_MONOTONIC_RAW) > deadline_ns) {
			fprintf(stderr, "the ticker hangs\n");
			return false;
		}
		nap(MS);
	}
	return true;
}

static const int64_t steps_ns[] = { 3600 * SEC, -3600 * SEC, SEC, -SEC, 10 * MS,
	-10 * MS, 20 * YEAR_NS, 100 * YEAR_NS };

#define STEPS (sizeof(steps_ns) / sizeof(steps_ns[0]))

static void step_and_judge(int64_t step_ns, uint64_t nth)
{
	shift(&wall_shift_ns, step_ns);
	ck_assert(words_follow());
	ck_assert(steps_become(nth, step_ns));
	ck_assert(ticks_on());
	ck_assert(right() && advances());
}

START_TEST(step_and_back)
{
	ck_assert(ticks_right());
	ck_assert_int_eq((int64_t)status_now().steps, 0);
	step_and_judge(steps_ns[_i], 1);
	step_and_judge(-steps_ns[_i], 2);
}
END_TEST

START_TEST(step_in_a_long_tick)
{
	ck_assert_int_eq(start_tick(100 * MS), 0);
	ck_assert(ticks_right());
	step_and_judge(-3600 * SEC, 1);
	step_and_judge(+3600 * SEC, 2);
}
END_TEST

START_TEST(step_on_coarse_clocks)
{
	struct ct_config config = { .size = sizeof(config),
		.backend = "coarse" };

	ck_assert_int_eq(ct_start(&config), 0);
	ck_assert(cached_soon());
	shift(&wall_shift_ns, -3600 * SEC);
	ck_assert(steps_become(1, -3600 * SEC));
	ck_assert(right() && advances());
	shift(&wall_shift_ns, 3600 * SEC);
	ck_assert(steps_become(2, 3600 * SEC));
	ck_assert(right() && advances());
}
END_TEST

START_TEST(step_in_manual_mode)
{
	ck_assert_int_eq(start_mode(CT_MODE_MANUAL), 0);
	ct_refresh();
	shift(&wall_shift_ns, -3600 * SEC);
	ct_refresh();
	ck_assert(cached() && right());
	ck_assert(steps_become(1, -3600 * SEC));
	shift(&wall_shift_ns, 3600 * SEC);
	ct_refresh();
	ck_assert(cached() && right());
	ck_assert(steps_become(2, 3600 * SEC));
}
END_TEST

/* Times that no word can tell: readers ask. */
static void set_wall(int64_t wall_ns)
{
	shift(&wall_shift_ns, wall_ns - clock_ns(CLOCK_REALTIME));
}

static bool right_for(int64_t ns)
{
	int64_t until_ns = true_ns(CLOCK_MONOTONIC_RAW) + ns;

	while (true_ns(CLOCK_MONOTONIC_RAW) < until_ns)
		if (!right() || !mono_is_in_order())
			return false;
	return true;
}

static void step_to_and_back(int64_t wall_ns)
{
	int64_t before_ns = wall_shift_ns;

	ck_assert(ticks_right());
	set_wall(wall_ns);
	/* The step is due at the next tick. */
	ck_assert(ticks_on());
	ck_assert(right_for(100 * MS));
	ck_assert(advances());
	ck_assert(ticks_on());
	ck_assert_int_eq((int64_t)status_now().steps, 1);

	shift(&wall_shift_ns, before_ns - wall_shift_ns);
	ck_assert(cached_soon());
	ck_assert(words_follow());
	ck_assert(right() && advances());
	ck_assert_int_eq((int64_t)status_now().steps, 2);
}

START_TEST(to_1970)
{
	step_to_and_back(SEC / 20);
}
END_TEST

/* Each word in its turn begins to tell the time, second by second. */
START_TEST(across_1970)
{
	ck_assert(ticks_right());
	set_wall(-SEC / 2);
	ck_assert(ticks_on());
	ck_assert(right_for(3 * SEC));
	ck_assert(cached());
	ck_assert_int_ge(ct_now_s(), 1);
}
END_TEST

START_TEST(before_1970)
{
	step_to_and_back(-1000 * SEC);
}
END_TEST

START_TEST(long_before_1970)
{
	step_to_and_back(-70 * YEAR_NS);
}
END_TEST

START_TEST(around_2038)
{
	ck_assert(ticks_right());
	set_wall((INT64_C(1) << 31) * SEC - SEC / 5);
	ck_assert(words_follow());
	ck_assert(right_for(SEC / 2));
	ck_assert_int_ge(ct_now_s(), INT64_C(1) << 31);
	ck_assert(advances());
}
END_TEST

/* libcheck looks at the clock at the end of a test, and can't bear it either.
 */
static void put_mono_right(void)
{
	shift(&mono_shift_ns, -mono_shift_ns);
}

/* At the shortest tick, since a longer one hides it. */
START_TEST(kernel_mono_back_while_ticking)
{
	ck_assert_int_eq(start_tick(CT_TICK_MIN_NS), 0);
	ck_assert(ticks_right());
	for (int i = 0; i < 40; i++) {
		shift(&mono_shift_ns, MONO_BACK_NS);
		for (int j = 0; j < 50; j++) {
			ck_assert(mono_is_in_order());
			nap(50000);
		}
	}
	ck_assert(right() && advances());
	put_mono_right();
}
END_TEST

START_TEST(kernel_mono_back_at_ct_stop)
{
	for (int i = 0; i < 20; i++) {
		ck_assert_int_eq(ct_start(NULL), 0);
		ck_assert(cached_soon());
		ck_assert(mono_is_in_order());
		shift(&mono_shift_ns, 10 * MONO_BACK_NS);
		ck_assert_int_eq(ct_stop(), 0);
		ck_assert(mono_is_in_order());
		ck_assert(right());
	}
	ck_assert(advances());
	put_mono_right();
}
END_TEST

static void live_after_mono_back(void)
{
	CHECK(mono_is_in_order());
	CHECK(right() && advances());
}

START_TEST(kernel_mono_back_at_fork)
{
	ck_assert(cached_soon());
	for (int i = 0; i < 10; i++) {
		ck_assert(mono_is_in_order());
		shift(&mono_shift_ns, 10 * MONO_BACK_NS);
		ck_assert(child_does(live_after_mono_back));
	}
	put_mono_right();
}
END_TEST

START_TEST(kernel_mono_back_in_manual_mode)
{
	ck_assert_int_eq(start_mode(CT_MODE_MANUAL), 0);
	for (int i = 0; i < 100; i++) {
		ct_refresh();
		ck_assert(mono_is_in_order());
		shift(&mono_shift_ns, MONO_BACK_NS);
		ct_refresh();
		ck_assert(mono_is_in_order());
	}
	put_mono_right();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("wall steps");
	TCase *tc = tcase_create("stepped and back");

	tcase_set_timeout(tc, TIMEOUT_S);
	tcase_add_loop_test(tc, step_and_back, 0, (int)STEPS);
	suite_add_tcase(suite, tc);
	add_situation(suite, "step in a long tick", step_in_a_long_tick);
	add_situation(suite, "step on coarse clocks", step_on_coarse_clocks);
	add_situation(suite, "step in manual mode", step_in_manual_mode);
	add_situation(suite, "to 1970", to_1970);
	add_situation(suite, "across 1970", across_1970);
	add_situation(suite, "before 1970", before_1970);
	add_situation(suite, "long before 1970", long_before_1970);
	add_situation(suite, "around 2038", around_2038);
	add_situation(suite, "the kernel's mono goes back while ticking",
		kernel_mono_back_while_ticking);
	add_situation(suite, "the kernel's mono goes back at ct_stop",
		kernel_mono_back_at_ct_stop);
	add_situation(suite, "the kernel's mono goes back at a fork",
		kernel_mono_back_at_fork);
	add_situation(suite, "the kernel's mono goes back in manual mode",
		kernel_mono_back_in_manual_mode);
	return run_suite(suite);
}
