/* SPDX-License-Identifier: MIT */
/*
 * clock_gettime() refused, as a sandbox does where the vDSO has to enter the
 * kernel: the next best clock serves, and mono never goes back.
 */
#include "fake_clock.h"

/* The judge has to see the true clocks. */
static bool wall_is_right(void)
{
	int64_t off_ns = ct_now_ns() - true_ns(CLOCK_REALTIME);

	if (off_ns > -BEHIND_NS && off_ns < AHEAD_NS)
		return true;
	fprintf(stderr, "wall is off by %lld ns\n", (long long)off_ns);
	return false;
}

static bool mono_is_right(void)
{
	int64_t off_ns = ct_mono_ns() - true_ns(CLOCK_MONOTONIC);

	if (off_ns > -BEHIND_NS && off_ns < AHEAD_NS)
		return true;
	fprintf(stderr, "mono is off by %lld ns\n", (long long)off_ns);
	return false;
}

static bool right_for(int64_t ns)
{
	int64_t until_ns = true_ns(CLOCK_MONOTONIC_RAW) + ns;

	while (true_ns(CLOCK_MONOTONIC_RAW) < until_ns)
		if (!wall_is_right() || !mono_is_right() || !mono_is_in_order())
			return false;
	return true;
}

static bool goes_on(void)
{
	return right_for(50 * MS) && advances();
}

static bool says_so(void)
{
	struct ct_status status = status_now();

	return status.last_error == -EPERM &&
	       strstr(status.error, "clock_gettime") != NULL;
}

/* libcheck looks at the clock as well, at the end of a test. */
static void permit_again(void)
{
	set_refused(REFUSED_NONE);
}

START_TEST(exact_refused_from_the_start)
{
	set_refused(REFUSED_EXACT);
	ck_assert(goes_on());
	ck_assert(cached_soon());
	ck_assert(goes_on());
	ck_assert(says_so());
	ck_assert_int_eq(ct_stop(), 0);
	ck_assert(goes_on());
	ck_assert(says_so());
	permit_again();
}
END_TEST

START_TEST(exact_refused_while_ticking)
{
	ck_assert(cached_soon() && goes_on());
	set_refused(REFUSED_EXACT);
	ck_assert(goes_on());
	ck_assert(says_so());
	set_refused(REFUSED_NONE);
	ck_assert(goes_on());
	ck_assert_int_eq(ct_stop(), 0);
	ck_assert(goes_on());
	permit_again();
}
END_TEST

START_TEST(exact_refused_while_live)
{
	ck_assert_int_eq(start_mode(CT_MODE_OFF), 0);
	ck_assert(goes_on());
	set_refused(REFUSED_EXACT);
	ck_assert(goes_on());
	permit_again();
}
END_TEST

/* Wall by gettimeofday(); of mono nobody knows anything, but it stays put. */
static bool wall_goes_on(void)
{
	int64_t until_ns = true_ns(CLOCK_MONOTONIC_RAW) + 300 * MS;
	int64_t first_ns = ct_now_ns();

	while (true_ns(CLOCK_MONOTONIC_RAW) < until_ns)
		if (!wall_is_right() || !mono_is_in_order())
			return false;
	return ct_now_ns() - first_ns > 100 * MS;
}

START_TEST(all_refused_from_the_start)
{
	set_refused(REFUSED_ALL);
	ck_assert(wall_goes_on());
	ck_assert(says_so());
	ck_assert_int_eq(ct_stop(), 0);
	ck_assert(wall_goes_on());
	permit_again();
}
END_TEST

START_TEST(all_refused_while_ticking)
{
	ck_assert(cached_soon() && goes_on());
	set_refused(REFUSED_ALL);
	ck_assert(wall_goes_on());
	ck_assert(says_so());
	set_refused(REFUSED_NONE);
	ck_assert(goes_on());
	permit_again();
}
END_TEST

/* Not even where no clock tells the ticker when it woke does it spin. */
START_TEST(no_clock_to_sleep_by)
{
	uint64_t before;

	set_refused(REFUSED_ALL);
	ck_assert_int_eq(ct_start(NULL), 0);
	nap(50 * MS);
	before = status_now().ticks;
	nap(500 * MS);
	ck_assert_uint_lt(status_now().ticks - before, 2000);
	permit_again();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("clock refused");

	add_situation(suite, "exact clocks refused from the start",
		exact_refused_from_the_start);
	add_situation(suite, "exact clocks refused while ticking",
		exact_refused_while_ticking);
	add_situation(suite, "exact clocks refused while live",
		exact_refused_while_live);
	add_situation(suite, "all clocks refused from the start",
		all_refused_from_the_start);
	add_situation(suite, "all clocks refused while ticking",
		all_refused_while_ticking);
	add_situation(suite, "no clock to sleep by", no_clock_to_sleep_by);
	return run_suite(suite);
}
