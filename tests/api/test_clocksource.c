/* SPDX-License-Identifier: MIT */
/*
 * A counter of the user's own. However badly it behaves, the words are near
 * the kernel's clocks and never ahead of them.
 */
#include <unistd.h>

#include "api.h"

/* Mono's line is slewed within 100 us and wall's distance from it within 10;
 * beyond that they begin anew. And a bit. */
#define NEAR_NS (120 * US)

/* Turned by hand; read by the ticker in some tests. */
static uint64_t cycles;

static uint64_t read_cycles(void)
{
	return __atomic_load_n(&cycles, __ATOMIC_RELAXED);
}

/* CLOCK_MONOTONIC_RAW in units of 100 ns: what the kernel's clock is made of,
 * before it is slewed. */
static uint64_t read_raw(void)
{
	return (uint64_t)clock_ns(CLOCK_MONOTONIC_RAW) / 100;
}

static uint64_t read_backwards(void)
{
	return UINT64_MAX - read_raw();
}

/* Every time something else. */
static uint64_t read_noise(void)
{
	static uint64_t seed = 88172645463325252;

	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static int start_source(
	enum ct_mode mode, uint64_t (*read)(void), uint64_t mask, uint64_t hz)
{
	struct ct_clocksource source = { "mine", read, mask, hz };
	struct ct_config config = {
		.size = sizeof(config), .mode = mode, .clocksource = &source
	};

	return ct_start(&config);
}

/* A refresh, and what it may tell. */
static void refresh(void)
{
	int64_t mono_before_ns, mono_after_ns, wall_before_ns, wall_after_ns;

	wall_before_ns = clock_ns(CLOCK_REALTIME);
	mono_before_ns = clock_ns(CLOCK_MONOTONIC);
	ct_refresh();
	mono_after_ns = clock_ns(CLOCK_MONOTONIC);
	wall_after_ns = clock_ns(CLOCK_REALTIME);

	if (ct_mono_ns() > mono_after_ns ||
		ct_mono_ns() < mono_before_ns - NEAR_NS)
		ck_abort_msg("mono %lld in %lld..%lld", (long long)ct_mono_ns(),
			(long long)mono_before_ns, (long long)mono_after_ns);
	/* Unless it is being set just now. */
	if (llabs((wall_after_ns - wall_before_ns) -
		    (mono_after_ns - mono_before_ns)) > MS)
		return;
	if (ct_now_ns() > wall_after_ns ||
		ct_now_ns() < wall_before_ns - NEAR_NS)
		ck_abort_msg("wall %lld in %lld..%lld", (long long)ct_now_ns(),
			(long long)wall_before_ns, (long long)wall_after_ns);
}

START_TEST(shown_by_status)
{
	char name[] = "my counter";
	struct ct_clocksource source = { name, read_raw, UINT64_MAX, 10000000 };
	struct ct_config config = { .size = sizeof(config),
		.mode = CT_MODE_MANUAL,
		.clocksource = &source };

	ck_assert_int_eq(ct_start(&config), 0);
	/* Copied: what was given may go. */
	memset(name, 'x', sizeof(name) - 1);
	memset(&source, 0, sizeof(source));
	refresh();
	ck_assert_str_eq(status_now().backend, "my counter");
	ck_assert_str_eq(ct_page.backend, "my counter");
	ck_assert(strstr(status_now().reason, "my counter") != NULL);

	/* And forgotten with the next. */
	ck_assert_int_eq(start_mode(CT_MODE_MANUAL, 0), 0);
	ck_assert_str_eq(status_now().backend, "realtime");
}
END_TEST

START_TEST(stands_still)
{
	ck_assert_int_eq(
		start_source(CT_MODE_MANUAL, read_cycles, UINT64_MAX, 10000000),
		0);
	for (int i = 0; i < 20000; i++)
		refresh();
	ck_assert_uint_eq(status_now().steps, 0);
}
END_TEST

START_TEST(driven_by_hand)
{
	int64_t last_ns = clock_ns(CLOCK_MONOTONIC), now_ns;

	ck_assert_int_eq(start_source(CT_MODE_MANUAL, read_cycles, UINT64_MAX,
				 1000000000),
		0);
	for (int i = 0; i < 20000; i++) {
		now_ns = clock_ns(CLOCK_MONOTONIC);
		cycles += (uint64_t)(now_ns - last_ns);
		last_ns = now_ns;
		refresh();
	}
	ck_assert_uint_eq(status_now().steps, 0);
}
END_TEST

START_TEST(counter_jumps)
{
	static const uint64_t jumps[] = { 1, 1000, 1000000, UINT64_C(1) << 32,
		UINT64_C(1) << 62, (uint64_t)-1000, (uint64_t)-1 };

	ck_assert_int_eq(
		start_source(CT_MODE_MANUAL, read_cycles, UINT64_MAX, 10000000),
		0);
	for (int i = 0; i < 20000; i++) {
		cycles += jumps[i % COUNT(jumps)];
		refresh();
	}
	ck_assert_uint_eq(status_now().steps, 0);
}
END_TEST

static const struct behaviour {
	uint64_t (*read)(void);
	uint64_t mask;
	uint64_t hz; /* told, be it true or not */
} behaviours[] = {
	{ read_raw, UINT64_MAX, 10000000 },
	{ read_raw, UINT32_MAX, 10000000 },
	{ read_raw, 0xffff, 10000000 }, /* wraps every 6.5 ms */
	{ read_raw, UINT64_MAX, 20000000 },
	{ read_raw, UINT64_MAX, 9000000 },
	{ read_raw, UINT64_MAX, 1000 },
	{ read_raw, UINT64_MAX, UINT64_C(1000000000000) },
	{ read_backwards, UINT64_MAX, 10000000 },
	{ read_noise, UINT64_MAX, 10000000 },
	{ read_noise, 0xffffff, 10000000 },
};

START_TEST(by_hand)
{
	const struct behaviour *b = &behaviours[_i];

	ck_assert_int_eq(
		start_source(CT_MODE_MANUAL, b->read, b->mask, b->hz), 0);
	for (int i = 0; i < 5000; i++) {
		refresh();
		if (i % 1000 == 0)
			sleep_ns(10 * MS);
	}
	ck_assert_uint_eq(status_now().steps, 0);
}
END_TEST

/* Never ahead, never back, and moving. */
START_TEST(by_the_ticker)
{
	const struct behaviour *b = &behaviours[_i];
	int64_t last_ns = 0, now_ns, start_ns;
	int64_t deadline_ns = clock_ns(CLOCK_MONOTONIC) + 20 * SEC;

	ck_assert_int_eq(
		start_source(CT_MODE_TICK, b->read, b->mask, b->hz), 0);
	wait_until_cached();
	ck_assert_str_eq(status_now().backend, "mine");
	start_ns = ct_mono_ns();
	do {
		now_ns = ct_mono_ns();
		if (now_ns > clock_ns(CLOCK_MONOTONIC) || now_ns < last_ns)
			ck_abort_msg("%lld after %lld", (long long)now_ns,
				(long long)last_ns);
		last_ns = now_ns;
	} while (now_ns < start_ns + 150 * MS &&
		 clock_ns(CLOCK_MONOTONIC) < deadline_ns);
	ck_assert_int_ge(now_ns, start_ns + 150 * MS);
	ck_assert_uint_eq(status_now().steps, 0);
	ck_assert_int_eq(ct_stop(), 0);
}
END_TEST

/* The counter is read by the ticker, or in a refresh: never by a reader. */
static pid_t forbidden;
static bool read_by_forbidden;

static uint64_t read_watched(void)
{
	if (gettid() == __atomic_load_n(&forbidden, __ATOMIC_RELAXED))
		__atomic_store_n(&read_by_forbidden, true, __ATOMIC_RELAXED);
	return read_raw();
}

START_TEST(never_read_by_a_reader)
{
	forbidden = gettid();
	ck_assert_int_eq(
		start_source(CT_MODE_TICK, read_watched, UINT64_MAX, 10000000),
		0);
	for (int i = 0; i < 1000; i++)
		ct_now_ms();
	wait_until_cached();
	for (int i = 0; i < 1000; i++)
		ct_now_ms();
	ck_assert(!__atomic_load_n(&read_by_forbidden, __ATOMIC_RELAXED));

	ck_assert_int_eq(start_source(CT_MODE_MANUAL, read_watched, UINT64_MAX,
				 10000000),
		0);
	ct_now_ms();
	ck_assert(!read_by_forbidden);
	ct_refresh();
	ck_assert(read_by_forbidden);
}
END_TEST

/* From within: told so, not hung. */
static int answers[2];
static bool answered;

static uint64_t read_and_call(void)
{
	if (!__atomic_load_n(&answered, __ATOMIC_RELAXED)) {
		answers[0] = start_mode(CT_MODE_OFF, 0);
		answers[1] = ct_stop();
		ct_now_ms();
		ct_age_ns();
		/* Release: pairs with the waiting test. */
		__atomic_store_n(&answered, true, __ATOMIC_RELEASE);
	}
	return read_raw();
}

static void assert_deadlk(void)
{
	ck_assert_int_eq(answers[0], -EDEADLK);
	ck_assert_int_eq(answers[1], -EDEADLK);
}

START_TEST(called_from_the_ticker)
{
	int64_t deadline_ns = clock_ns(CLOCK_MONOTONIC) + 20 * SEC;

	ck_assert_int_eq(
		start_source(CT_MODE_TICK, read_and_call, UINT64_MAX, 10000000),
		0);
	/* Acquire: pairs with read_and_call(). */
	while (!__atomic_load_n(&answered, __ATOMIC_ACQUIRE) &&
		clock_ns(CLOCK_MONOTONIC) < deadline_ns)
		sleep_ns(100 * US);
	assert_deadlk();
	wait_until_cached();
	ck_assert_int_eq(ct_stop(), 0);
}
END_TEST

START_TEST(called_from_a_refresh)
{
	ck_assert_int_eq(start_source(CT_MODE_MANUAL, read_and_call, UINT64_MAX,
				 10000000),
		0);
	ct_refresh();
	assert_deadlk();
	ck_assert_int_eq(status_now().mode, CT_MODE_MANUAL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("user's clocksource");
	TCase *hang = tcase_create("called from a refresh");

	add(suite, "status", shown_by_status, 1);
	add(suite, "stands still", stands_still, 1);
	add(suite, "driven by hand", driven_by_hand, 1);
	add(suite, "jumps", counter_jumps, 1);
	add(suite, "any behaviour, by hand", by_hand, COUNT(behaviours));
	add(suite, "any behaviour, ticker", by_the_ticker, COUNT(behaviours));
	add(suite, "read by whom", never_read_by_a_reader, 1);
	add(suite, "called from the ticker", called_from_the_ticker, 1);
	tcase_add_test(hang, called_from_a_refresh);
	suite_add_tcase(suite, hang);
	return run_suite(suite);
}
