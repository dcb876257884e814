/* SPDX-License-Identifier: MIT */
/*
 * What goes with the words: the generation, the snapshot, TAI, and who wants to
 * be told of steps. Nobody sets the clock here.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "api.h"

/* A wall - mono that was looked at in two reads of the clocks. */
#define OFF_NS (10 * US)

static int64_t tai_offset_s(void)
{
	return (clock_ns(CLOCK_TAI) - clock_ns(CLOCK_REALTIME) + SEC / 2) / SEC;
}

static struct ct_snapshot snapshot_now(void)
{
	struct ct_snapshot snap;

	memset(&snap, 0x55, sizeof(snap));
	ck_assert_int_eq(ct_snapshot(&snap), 0);
	return snap;
}

static void assert_fits(const struct ct_snapshot *snap)
{
	ck_assert_int_eq(snap->wall_s, snap->wall_ns / SEC);
	ck_assert_uint_eq(snap->generation, 1);
	ck_assert_int_eq(snap->tai_offset_s, tai_offset_s());
	ck_assert_int_ge(snap->age_ns, 0);
}

/* Read live: of a moment within the call. */
static void assert_live_snapshot(void)
{
	int64_t mono_ns = clock_ns(CLOCK_MONOTONIC);
	int64_t wall_ns = clock_ns(CLOCK_REALTIME);
	struct ct_snapshot snap = snapshot_now();

	assert_fits(&snap);
	ck_assert_int_eq(snap.age_ns, 0);
	ck_assert_int_ge(snap.mono_ns, mono_ns);
	ck_assert_int_le(snap.mono_ns, clock_ns(CLOCK_MONOTONIC));
	ck_assert_int_ge(snap.wall_ns, wall_ns - OFF_NS);
	ck_assert_int_le(snap.wall_ns, clock_ns(CLOCK_REALTIME) + OFF_NS);
}

START_TEST(null)
{
	ck_assert_int_eq(ct_snapshot(NULL), -EINVAL);
	ck_assert_int_eq(ct_bounds(NULL), -EINVAL);
	ck_assert_int_eq(ct_on_step(NULL, NULL), 0);
	ck_assert_int_eq(ticker_id(), 0);
}
END_TEST

/* Exactly what stands in the words. */
START_TEST(manual)
{
	struct ct_snapshot snap, again;
	int64_t before_ns;

	ck_assert_int_eq(start_mode(CT_MODE_MANUAL, 0), 0);
	assert_live_snapshot();
	for (int i = 0; i < 100; i++) {
		ct_refresh();
		snap = snapshot_now();
		assert_fits(&snap);
		ck_assert_int_eq(snap.wall_ns, ct_page.wall_ns);
		ck_assert_int_eq(snap.mono_ns, ct_page.mono_ns);
		ck_assert_int_eq(snap.wall_s, ct_page.wall_s);
		ck_assert_int_eq(
			snap.wall_ns + SEC * snap.tai_offset_s, ct_page.tai_ns);
		ck_assert_uint_eq(snap.generation, ct_page.generation);

		before_ns = clock_ns(CLOCK_MONOTONIC);
		again = snapshot_now();
		ck_assert_int_ge(again.age_ns, before_ns - again.mono_ns);
		ck_assert_int_le(again.age_ns,
			clock_ns(CLOCK_MONOTONIC) - again.mono_ns);
		ck_assert_int_gt(again.age_ns, snap.age_ns);
		/* All else stands. */
		again.age_ns = snap.age_ns;
		ck_assert_mem_eq(&again, &snap, sizeof(snap));
	}
	ck_assert_int_eq(ct_stop(), 0);
	assert_live_snapshot();
}
END_TEST

START_TEST(off)
{
	ck_assert_int_eq(start_mode(CT_MODE_OFF, 0), 0);
	for (int i = 0; i < 1000; i++)
		assert_live_snapshot();
	ck_assert_int_eq(ticker_id(), 0);
}
END_TEST

/* As the readers, it starts the ticker. */
START_TEST(ticking)
{
	struct ct_snapshot snap, last = snapshot_now();
	int64_t offset_ns =
		clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);

	wait_until_cached();
	ck_assert_int_ne(ticker_id(), 0);
	for (int i = 0; i < 1000; i++) {
		snap = snapshot_now();
		assert_fits(&snap);
		ck_assert_int_ge(snap.mono_ns, last.mono_ns);
		ck_assert_int_le(snap.mono_ns + snap.age_ns,
			clock_ns(CLOCK_MONOTONIC));
		/* Of one moment, though words may be of two. */
		ck_assert_int_ge(
			snap.wall_ns - snap.mono_ns, offset_ns - 100 * US);
		ck_assert_int_le(
			snap.wall_ns - snap.mono_ns, offset_ns + 100 * US);
		last = snap;
		if (i % 10 == 0)
			sleep_ns(100 * US);
	}
}
END_TEST

START_TEST(mono_never_back)
{
	static const enum ct_mode modes[] = { CT_MODE_TICK, CT_MODE_MANUAL,
		CT_MODE_OFF };
	int64_t last_ns = 0;
	struct ct_snapshot snap;

	for (int round = 0; round < 60; round++) {
		ck_assert_int_eq(start_mode(modes[round % 3], 50 * US), 0);
		for (int i = 0; i < 2000; i++) {
			if (i % 100 == 0)
				ct_refresh();
			if (ct_snapshot(&snap) != 0 || snap.mono_ns < last_ns)
				ck_abort_msg("%lld after %lld",
					(long long)snap.mono_ns,
					(long long)last_ns);
			last_ns = snap.mono_ns;
		}
	}
	ct_stop();
}
END_TEST

static uint64_t (*const generation_function)(void) = ct_generation;

static uint64_t published_generation(void)
{
	return __atomic_load_n(&ct_page.generation, __ATOMIC_RELAXED);
}

static void assert_first_generation(void)
{
	ck_assert_uint_eq(ct_generation(), 1);
	ck_assert_uint_eq(generation_function(), 1);
	ck_assert_uint_eq(ct_generation_slow(), 1);
}

START_TEST(generation)
{
	static const enum ct_mode modes[] = { CT_MODE_TICK, CT_MODE_MANUAL,
		CT_MODE_OFF };

	assert_first_generation();
	/* It starts nothing. */
	ck_assert_int_eq(ticker_id(), 0);
	for (int i = 0; i < 9; i++) {
		ck_assert_int_eq(start_mode(modes[i % 3], MS), 0);
		assert_first_generation();
		ct_refresh();
		if (modes[i % 3] != CT_MODE_OFF) {
			wait_until_cached();
			sleep_ns(3 * MS);
			ck_assert_uint_eq(published_generation(), 1);
		} else {
			ck_assert_uint_eq(published_generation(), 0);
		}
		for (int j = 0; j < 1000; j++)
			assert_first_generation();
	}
	ck_assert_int_eq(ct_stop(), 0);
	assert_first_generation();
}
END_TEST

/* Whatever the page says, as the words. */
START_TEST(generation_is_what_is_published)
{
	ck_assert_int_eq(start_mode(CT_MODE_OFF, 0), 0);
	ct_page.generation = 77;
	ck_assert_uint_eq(ct_generation(), 77);
	ck_assert_uint_eq(generation_function(), 77);
	ct_page.generation = 0;
	assert_first_generation();
}
END_TEST

static void first_in_child(void)
{
	assert_first_generation();
	assert_live_snapshot();
	ck_assert_int_eq(ct_on_step(NULL, NULL), 0);
}

START_TEST(forked_child)
{
	pid_t pid;

	ck_assert_int_eq(start_mode(CT_MODE_MANUAL, 0), 0);
	ct_refresh();
	assert_first_generation();
	pid = check_fork();
	if (pid == 0) {
		first_in_child();
		exit(EXIT_SUCCESS);
	}
	check_waitpid_and_exit(pid);
}
END_TEST

START_TEST(tai)
{
	int64_t before_ns = clock_ns(CLOCK_TAI);
	int64_t ns;

	ck_assert_int_eq(start_mode(CT_MODE_OFF, 0), 0);
	ns = ct_tai_ns();
	ck_assert_int_ge(ns, before_ns);
	ck_assert_int_le(ns, clock_ns(CLOCK_TAI));

	ck_assert_int_eq(start_mode(CT_MODE_MANUAL, 0), 0);
	ct_refresh();
	ck_assert_int_eq(ct_tai_ns() - ct_now_ns(), SEC * tai_offset_s());
	ck_assert_int_eq(ct_tai_ns(), ct_page.tai_ns);
}
END_TEST

static int calls;

static void count_call(int64_t delta_ns, void *arg)
{
	(void)delta_ns;
	(void)arg;
	__atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
}

/* Nobody sets the clock, so nobody is called. */
START_TEST(on_step)
{
	static const enum ct_mode modes[] = { CT_MODE_TICK, CT_MODE_MANUAL,
		CT_MODE_OFF };

	ck_assert_int_eq(ct_on_step(count_call, NULL), 0);
	for (int i = 0; i < 6; i++) {
		ck_assert_int_eq(start_mode(modes[i % 3], 50 * US), 0);
		ck_assert_int_eq(ct_on_step(count_call, &calls), 0);
		for (int j = 0; j < 100; j++) {
			ct_refresh();
			sleep_ns(50 * US);
		}
	}
	ck_assert_int_eq(ct_on_step(NULL, &calls), 0);
	ck_assert_int_eq(ct_stop(), 0);
	ck_assert_int_eq(ct_on_step(count_call, NULL), 0);
	ct_refresh();
	ck_assert_int_eq(calls, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("moment");

	add(suite, "null", null, 1);
	add(suite, "snapshot: manual", manual, 1);
	add(suite, "snapshot: off", off, 1);
	add(suite, "snapshot: ticking", ticking, 1);
	add(suite, "snapshot: mono never back", mono_never_back, 1);
	add(suite, "generation", generation, 1);
	add(suite, "generation: as published", generation_is_what_is_published,
		1);
	add(suite, "forked child", forked_child, 1);
	add(suite, "tai", tai, 1);
	add(suite, "on step", on_step, 1);
	return run_suite(suite);
}
