/* SPDX-License-Identifier: MIT */
/*
 * Reads of a given age at most, in every mode. The words are also set by hand:
 * those of a publisher that was held up half way.
 */
#include "counters.h"

#include <errno.h>
#include <pthread.h>

#include <cachedtime.h>

#include "handover.h"
#include "page.h"

/* The linker has the library call this: --wrap. Called once, at its next read
 * of the exact clock. */
static void (*meanwhile)(void);

/*
 * If not 0, what the coarse clocks lag the exact ones. They are set at each of
 * the kernel's ticks, to the last whole tick by the kernel's own count: up to
 * one tick behind when set, and one more before the next. 2.0 to 6.0 ms with a
 * tick of 4 ms was measured (Linux 6.18), and the phase wanders by hours.
 */
static int64_t coarse_lag_ns;

int64_t __wrap_kernel_clock_ns(clockid_t clock);
int64_t __real_kernel_clock_ns(clockid_t clock);

int64_t __wrap_kernel_clock_ns(clockid_t clock)
{
	void (*now)(void) = meanwhile;

	if (now != NULL && clock == CLOCK_MONOTONIC) {
		meanwhile = NULL;
		now();
	}
	if (coarse_lag_ns != 0 && clock == CLOCK_MONOTONIC_COARSE)
		return __real_kernel_clock_ns(CLOCK_MONOTONIC) - coarse_lag_ns;
	if (coarse_lag_ns != 0 && clock == CLOCK_REALTIME_COARSE)
		return __real_kernel_clock_ns(CLOCK_REALTIME) - coarse_lag_ns;
	return __real_kernel_clock_ns(clock);
}

static const int64_t live_ages[] = { 0, 1, 7, -1, -1000, INT64_MIN,
	INT64_MIN / 1000000, INT64_MIN / 1000000 - 1, -10000000000000 };

static struct ct_status status_now(void)
{
	struct ct_status status = { .size = sizeof(status) };

	CHECK(ct_status(&status) == 0);
	return status;
}

static void start(enum ct_mode mode, int64_t tick_ns)
{
	struct ct_config config = { .size = sizeof(config), .mode = mode,
		.tick_ns = tick_ns, .backend = "realtime" };
	int64_t deadline_ns = clock_ns(CLOCK_MONOTONIC_RAW) + DEADLINE_NS;

	CHECK(ct_start(&config) == 0);
	while (mode == CT_MODE_TICK && !status_now().cached)
		CHECK(clock_ns(CLOCK_MONOTONIC_RAW) < deadline_ns);
}

/* Exactly now: not older than the clock before, nor younger than it after. */
static void assert_live(int64_t age_ms)
{
	int64_t before_ms, ms;

	before_ms = clock_ns(CLOCK_REALTIME) / MS;
	errno = 4711;
	ms = ct_now_ms_fresh(age_ms);
	ck_assert_int_eq(errno, 4711);
	ALWAYS(ms >= before_ms);
	ALWAYS(ms <= clock_ns(CLOCK_REALTIME) / MS);

	before_ms = clock_ns(CLOCK_MONOTONIC) / MS;
	errno = 4711;
	ms = ct_mono_ms_fresh(age_ms);
	ck_assert_int_eq(errno, 4711);
	ALWAYS(ms >= before_ms);
	ALWAYS(ms <= clock_ns(CLOCK_MONOTONIC) / MS);
}

static void assert_fresh(int64_t age_ms)
{
	int64_t before_ms = clock_ns(CLOCK_REALTIME) / MS;

	ck_assert_int_ge(ct_now_ms_fresh(age_ms), before_ms - age_ms);
	before_ms = clock_ns(CLOCK_MONOTONIC) / MS;
	ck_assert_int_ge(ct_mono_ms_fresh(age_ms), before_ms - age_ms);
}

/* Below two ticks of the coarse clock: the exact one judges. */
START_TEST(short_ages)
{
	start(CT_MODE_TICK, SEC);
	for (int i = 0; i < 300; i++) {
		sleep_ns(MS / 2);
		if (live_ages[_i] <= 0)
			assert_live(live_ages[_i]);
		else
			assert_fresh(live_ages[_i]);
	}
}
END_TEST

START_TEST(long_ages)
{
	static const int64_t ages[] = { 3600000, INT64_MAX, INT64_MAX / 1000000,
		INT64_MAX / 1000000 + 1, INT64_MAX - 1 };
	int64_t cached_ms, mono_ms;
	uint64_t ticks;

	start(CT_MODE_TICK, SEC);
	sleep_ns(20 * MS);
	for (int i = 0; i < LENGTH(ages); i++) {
		ticks = status_now().ticks;
		cached_ms = ct_now_ms();
		mono_ms = ct_mono_ms();
		errno = 4711;
		cached_ms -= ct_now_ms_fresh(ages[i]);
		mono_ms -= ct_mono_ms_fresh(ages[i]);
		ck_assert_int_eq(errno, 4711);
		/* Unless the ticker has published in between. */
		if (status_now().ticks != ticks)
			continue;
		ck_assert_int_eq(cached_ms, 0);
		ck_assert_int_eq(mono_ms, 0);
	}
}
END_TEST

/* What was too old is read live, and all others have it as well. */
START_TEST(publishes)
{
	int64_t ms;

	start(CT_MODE_TICK, SEC);
	for (int i = 0; i < 20; i++) {
		sleep_ns(40 * MS);
		ms = ct_now_ms_fresh(20);
		ck_assert_int_ge(ct_now_ms(), ms);
		ck_assert_int_le(ct_age_ns(), 20 * MS + SEC);
		ms = ct_mono_ms_fresh(20);
		ck_assert_int_ge(ct_mono_ms(), ms);
	}
}
END_TEST

static void assert_all_live(void)
{
	static const int64_t ages[] = { 8, 100, 100000, INT64_MAX };

	for (int i = 0; i < LENGTH(live_ages); i++)
		assert_live(live_ages[i]);
	for (int i = 0; i < LENGTH(ages); i++)
		assert_live(ages[i]);
}

START_TEST(off)
{
	start(CT_MODE_OFF, 0);
	assert_all_live();
	ck_assert_int_eq(ct_page.wall_ms, 0);
}
END_TEST

START_TEST(stopped)
{
	start(CT_MODE_TICK, SEC);
	ck_assert_int_eq(ct_stop(), 0);
	assert_all_live();
	ck_assert_int_eq(ct_page.wall_ms, 0);
}
END_TEST

/* Time stands still in the words, and in them alone. */
START_TEST(manual)
{
	int64_t ms, mono_ms;

	start(CT_MODE_MANUAL, 0);
	ms = ct_refresh();
	mono_ms = ct_mono_ms();
	sleep_ns(30 * MS);
	assert_all_live();
	ck_assert_int_eq(ct_now_ms(), ms);
	ck_assert_int_eq(ct_mono_ms(), mono_ms);
}
END_TEST

/* One function, hence one order, whatever the ages that were asked for. */
START_TEST(mixed_ages)
{
	static const struct {
		enum ct_mode mode;
		int64_t tick_ns;
	} modes[] = { { CT_MODE_TICK, MS }, { CT_MODE_TICK, SEC },
		{ CT_MODE_MANUAL, 0 }, { CT_MODE_OFF, 0 } };
	uint64_t state = 88172645463325252;
	int64_t last_ms = 0, ms, age_ms;

	start(modes[_i].mode, modes[_i].tick_ns);
	for (int i = 0; i < 100000; i++) {
		if (modes[_i].mode == CT_MODE_MANUAL && i % 10000 == 0)
			ct_refresh();
		if (i % 1000 == 0)
			sleep_ns(3 * MS);
		age_ms = (int64_t)(random_next(&state) % 100) - 10;
		ms = ct_mono_ms_fresh(age_ms);
		if (ms < last_ms)
			ck_abort_msg("%lld after %lld, age %lld",
				(long long)ms, (long long)last_ms,
				(long long)age_ms);
		last_ms = ms;
	}
}
END_TEST

static int64_t mailbox;

static void *pass_stamps(void *arg)
{
	uint64_t state = (uint64_t)(uintptr_t)arg;
	intptr_t backward = 0;
	int64_t received, taken;

	for (int i = 0; i < 200000; i++) {
		received = __atomic_load_n(&mailbox, __ATOMIC_ACQUIRE);
		taken = ct_mono_ms_fresh(
			(int64_t)(random_next(&state) % 40));
		backward += taken < received;
		__atomic_store_n(&mailbox, taken, __ATOMIC_RELEASE);
	}
	return (void *)backward;
}

START_TEST(two_threads)
{
	pthread_t threads[2];
	void *backward[2];

	start(_i < 2 ? CT_MODE_TICK : CT_MODE_MANUAL, _i == 0 ? MS : SEC);
	ct_refresh();
	for (intptr_t i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, pass_stamps,
					 (void *)(i + 4711)), 0);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_join(threads[i], &backward[i]), 0);
	ck_assert(backward[0] == NULL && backward[1] == NULL);
}
END_TEST

/*
 * From here on this thread is every publisher: the page is said to be a
 * ticker's, and there is none.
 */
static void be_the_ticker(void)
{
	ck_assert_int_eq(ct_stop(), 0);
	ct_page.state = PAGE_TICKING;
	handover_engage();
}

static void end_ticker(void)
{
	handover_park();
	ct_page.state = PAGE_IDLE;
}

/* Held up between its look at the clock and its swaps. */
START_TEST(held_up)
{
	struct handover_view view;
	struct handover_now now;

	be_the_ticker();
	handover_look(&view);
	handover_live(&now);
	sleep_ns(300 * MS);
	handover_publish(&view, &now, &now, 0);
	assert_fresh(20);
	assert_fresh(100);
	end_ticker();
}
END_TEST

/* Held up there while somebody else published: its swaps fail. */
START_TEST(held_up_and_beaten)
{
	struct handover_view view;
	struct handover_now now, later;

	be_the_ticker();
	handover_look(&view);
	handover_live(&now);
	sleep_ns(300 * MS);
	handover_refresh(&later);
	handover_publish(&view, &now, &now, 0);
	assert_fresh(20);
	assert_fresh(100);
	end_ticker();
}
END_TEST

/* The judge at its slowest: one tick behind when it was set, and the next is
 * due. */
START_TEST(judge_lags)
{
	struct handover_now now;
	struct timespec tick;
	int64_t age_ms;

	clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
	be_the_ticker();
	coarse_lag_ns = 2 * tick.tv_nsec - 50 * US;
	for (int i = 0; i < 60; i++) {
		handover_refresh(&now);
		age_ms = 3 * tick.tv_nsec / MS + i % 5;
		/* A little older than is asked for. */
		sleep_ns(age_ms * MS + MS);
		assert_fresh(age_ms);
	}
	end_ticker();
}
END_TEST

static struct handover_view held_view;
static struct handover_now held_now;

static void go_on(void)
{
	handover_publish(&held_view, &held_now, &held_now, 0);
}

/* It goes on just when somebody else has looked, and wins with an old time. */
START_TEST(held_up_and_first)
{
	int64_t wall_ms, mono_ms, ms;

	be_the_ticker();
	for (int i = 0; i < 2; i++) {
		handover_look(&held_view);
		handover_live(&held_now);
		sleep_ns(300 * MS);
		wall_ms = clock_ns(CLOCK_REALTIME) / MS;
		mono_ms = clock_ns(CLOCK_MONOTONIC) / MS;
		meanwhile = go_on;
		ms = i == 0 ? ct_now_ms_fresh(20) : ct_mono_ms_fresh(20);
		ck_assert(meanwhile == NULL);
		ck_assert_int_ge(ms, (i == 0 ? wall_ms : mono_ms) - 20);
		assert_fresh(20);
	}
	end_ticker();
}
END_TEST

/*
 * Two at once. One is held up before its swaps, and once more after the first
 * word or few; the other looked before those, so that its swaps of just these
 * words fail, and those of the others don't.
 */
START_TEST(held_up_among_words)
{
	struct handover_view old_view, view;
	struct handover_now old, now;
	int64_t *const words[] = { &ct_page.wall_s, &ct_page.wall_ms,
		&ct_page.wall_us, &ct_page.wall_ns, &ct_page.wall_ms_f64,
		&ct_page.mono_ms };

	be_the_ticker();
	handover_look(&old_view);
	handover_live(&old);
	sleep_ns(300 * MS);
	handover_look(&view);
	/* The old one's first swaps; a millisecond, so that they differ. */
	for (int i = 0; i <= _i; i++)
		*words[i] += 1;
	handover_live(&now);
	handover_publish(&view, &now, &now, 0);
	assert_fresh(20);
	assert_fresh(100);
	end_ticker();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("fresh");

	add_table(suite, "short and negative ages", short_ages,
		LENGTH(live_ages));
	add_situation(suite, "long ages", long_ages);
	add_situation(suite, "too old is published", publishes);
	add_situation(suite, "off", off);
	add_situation(suite, "stopped", stopped);
	add_situation(suite, "manual", manual);
	add_table(suite, "mixed ages", mixed_ages, 4);
	add_table(suite, "two threads", two_threads, 3);
	add_situation(suite, "coarse clock at its slowest", judge_lags);
	add_situation(suite, "publisher held up", held_up);
	add_situation(suite, "publisher held up and beaten",
		held_up_and_beaten);
	add_situation(suite, "publisher held up, and first all the same",
		held_up_and_first);
	add_table(suite, "publisher held up among words", held_up_among_words,
		6);
	return run_suite(suite);
}
