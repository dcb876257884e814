/* SPDX-License-Identifier: MIT */
/*
 * The wall clock is set: each step is counted once, and told once to who wants
 * to know, whoever sees it first.
 */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "turned.h"

/* What a look at wall and mono may be off by, on a busy machine. */
#define OFF_NS MS
/* The same by hand, and of the looks before, which were the machine's. */
#define LOOK_NS (2 * US)
#define DEADLINE_NS (10 * SEC)

static const int64_t steps_ns[] = { 3600 * SEC, -3600 * SEC, SEC, -SEC, 10 * MS,
	-10 * MS, 20 * US, -20 * US };

/* What the callback was told; written under the library's lock. */
static struct {
	int calls;
	int64_t last_ns, sum_ns;
	uint64_t thread;
	void *arg;
} told;

static void note(int64_t delta_ns, void *arg)
{
	__atomic_store_n(&told.last_ns, delta_ns, __ATOMIC_RELAXED);
	__atomic_store_n(
		&told.sum_ns, told.sum_ns + delta_ns, __ATOMIC_RELAXED);
	__atomic_store_n(
		&told.thread, (uint64_t)pthread_self(), __ATOMIC_RELAXED);
	__atomic_store_n(&told.arg, arg, __ATOMIC_RELAXED);
	/* Release: with what was told. */
	__atomic_fetch_add(&told.calls, 1, __ATOMIC_RELEASE);
}

static int calls(void)
{
	return __atomic_load_n(&told.calls, __ATOMIC_ACQUIRE);
}

static int64_t last_told_ns(void)
{
	return __atomic_load_n(&told.last_ns, __ATOMIC_RELAXED);
}

static bool told_in_this_thread(void)
{
	return __atomic_load_n(&told.thread, __ATOMIC_RELAXED) ==
	       (uint64_t)pthread_self();
}

static uint64_t published_generation(void)
{
	return __atomic_load_n(&ct_page.generation, __ATOMIC_RELAXED);
}

static void assert_about(int64_t ns, int64_t wanted_ns, int64_t off_ns)
{
	ck_assert_int_ge(ns, wanted_ns - off_ns);
	ck_assert_int_le(ns, wanted_ns + off_ns);
}

/* Runs `in_child` in a forked child, whose failures count. */
static void in_fork(void (*in_child)(void))
{
	pid_t pid = check_fork();

	if (pid == 0) {
		in_child();
		exit(EXIT_SUCCESS);
	}
	check_waitpid_and_exit(pid);
}

/* Where nothing is published: before all, off, stopped, a manual mode that
 * hasn't been refreshed yet. */
static void be_parked(int how)
{
	if (how == 1)
		ck_assert_int_eq(start_mode(CT_MODE_OFF, 0), 0);
	if (how == 2)
		ck_assert_int_eq(ct_stop(), 0);
	if (how == 3)
		ck_assert_int_eq(start_mode(CT_MODE_MANUAL, 0), 0);
	turn_by_hand();
}

#define PARKED 4

START_TEST(counted_while_parked)
{
	uint64_t wanted = 1;

	be_parked(_i);
	ck_assert_uint_eq(ct_generation(), 1);
	for (int i = 0; i < COUNT(steps_ns); i++) {
		set_clock(steps_ns[i]);
		wanted++;
		for (int j = 0; j < 10; j++)
			ck_assert_uint_eq(ct_generation(), wanted);
		set_clock(-steps_ns[i]);
		wanted++;
		for (int j = 0; j < 10; j++)
			ck_assert_uint_eq(ct_generation(), wanted);
	}
	ck_assert_uint_eq(published_generation(), 0);
}
END_TEST

START_TEST(between_two_looks)
{
	be_parked(_i);
	set_clock(SEC);
	set_clock(SEC);
	ck_assert_uint_eq(ct_generation(), 2);
	/* Forth and back: nobody can know. */
	set_clock(SEC);
	set_clock(-SEC);
	ck_assert_uint_eq(ct_generation(), 2);
	set_clock(SEC);
	set_clock(-2 * SEC);
	ck_assert_uint_eq(ct_generation(), 3);
}
END_TEST

/* Less than 10 us isn't one. */
START_TEST(small)
{
	be_parked(_i);
	for (int i = 0; i < 10; i++) {
		set_clock(10 * US - LOOK_NS);
		ck_assert_uint_eq(ct_generation(), 1);
		set_clock(2 * (LOOK_NS - 10 * US));
		ck_assert_uint_eq(ct_generation(), 1);
		set_clock(10 * US - LOOK_NS);
	}
	set_clock(10 * US + LOOK_NS);
	ck_assert_uint_eq(ct_generation(), 2);
	set_clock(-10 * US - LOOK_NS);
	ck_assert_uint_eq(ct_generation(), 3);
}
END_TEST

/* A machine without a clock that runs while it is off begins in 1970: then wall
 * is mono, until it has been told the time. */
START_TEST(from_1970)
{
	be_parked(_i);
	set_clock(-turned.wall_offset_ns - turned.wall_ns);
	ck_assert_uint_eq(ct_generation(), 2);
	for (int off_ns = -2; off_ns <= 2; off_ns++) {
		uint64_t before;

		turned.wall_ns = off_ns - turned.wall_offset_ns;
		before = ct_generation();
		set_clock(1700000000 * SEC);
		ck_assert_uint_eq(ct_generation(), before + 1);
	}
}
END_TEST

static void counts_on(void)
{
	/* That of before the fork, too. */
	ck_assert_uint_eq(ct_generation(), 3);
	set_clock(SEC);
	ck_assert_uint_eq(ct_generation(), 4);
	ck_assert_uint_eq(ct_generation(), 4);
	ck_assert_int_eq(calls(), 0);
}

/* exits: the last thing a test does */
START_TEST(forked)
{
	be_parked(_i);
	set_clock(SEC);
	ck_assert_uint_eq(ct_generation(), 2);
	set_clock(SEC);
	ck_assert_uint_eq(ct_generation(), 3);
	in_fork(counts_on);
}
END_TEST

/* Nobody has looked since. */
START_TEST(forked_unseen)
{
	be_parked(_i);
	set_clock(SEC);
	ck_assert_uint_eq(ct_generation(), 2);
	set_clock(SEC);
	in_fork(counts_on);
}
END_TEST

START_TEST(forked_while_manual)
{
	ck_assert_int_eq(start_mode(CT_MODE_MANUAL, 0), 0);
	turn_by_hand();
	ct_refresh();
	set_clock(SEC);
	ct_refresh();
	set_clock(SEC);
	ct_refresh();
	ck_assert_uint_eq(published_generation(), 3);
	in_fork(counts_on);
}
END_TEST

static void counts_on_in_manual(void)
{
	ck_assert_uint_eq(ct_generation(), 2);
	set_clock(SEC);
	ct_refresh();
	ck_assert_uint_eq(published_generation(), 3);
	ck_assert_uint_eq(ct_generation(), 3);
	/* What was registered before the fork is still. */
	ck_assert_int_eq(calls(), 2);
	assert_about(last_told_ns(), SEC, LOOK_NS);
}

START_TEST(forked_and_told)
{
	ck_assert_int_eq(start_mode(CT_MODE_MANUAL, 0), 0);
	turn_by_hand();
	ct_refresh();
	ck_assert_int_eq(ct_on_step(note, NULL), 0);
	set_clock(-SEC);
	ct_refresh();
	ck_assert_int_eq(calls(), 1);
	in_fork(counts_on_in_manual);
}
END_TEST

/* In manual and off mode by ct_refresh(), at once, in this thread. */
static const enum ct_mode refreshed_modes[] = { CT_MODE_MANUAL, CT_MODE_OFF };

static void begin_refreshed(enum ct_mode mode)
{
	ck_assert_int_eq(start_mode(mode, 0), 0);
	turn_by_hand();
	ct_refresh();
}

START_TEST(told_by_a_refresh)
{
	int mark, wanted = 0;

	begin_refreshed(refreshed_modes[_i]);
	ck_assert_int_eq(ct_on_step(note, &mark), 0);
	ct_refresh();
	for (int i = 0; i < COUNT(steps_ns); i++) {
		set_clock(steps_ns[i]);
		/* Not before. */
		ck_assert_int_eq(calls(), wanted);
		ct_refresh();
		ck_assert_int_eq(calls(), ++wanted);
		assert_about(last_told_ns(), steps_ns[i], LOOK_NS);
		ck_assert(told_in_this_thread());
		ck_assert_ptr_eq(told.arg, &mark);
		ck_assert_uint_eq(ct_generation(), (uint64_t)wanted + 1);
		for (int j = 0; j < 5; j++)
			ct_refresh();
		ck_assert_int_eq(calls(), wanted);
	}
	ck_assert_int_eq(ticker_id(), 0);
}
END_TEST

/* Who looks counts, who refreshes tells. */
START_TEST(counted_before_told)
{
	begin_refreshed(CT_MODE_OFF);
	ck_assert_int_eq(ct_on_step(note, NULL), 0);
	set_clock(-SEC);
	ck_assert_uint_eq(ct_generation(), 2);
	ck_assert_int_eq(calls(), 0);
	ct_refresh();
	ck_assert_int_eq(calls(), 1);
	assert_about(last_told_ns(), -SEC, LOOK_NS);

	/* Two at once: of both together. */
	set_clock(-SEC);
	ck_assert_uint_eq(ct_generation(), 3);
	set_clock(-SEC);
	ck_assert_uint_eq(ct_generation(), 4);
	ct_refresh();
	ck_assert_int_eq(calls(), 2);
	assert_about(last_told_ns(), -2 * SEC, LOOK_NS);
	ck_assert_uint_eq(ct_generation(), 4);
}
END_TEST

static void note_nothing(int64_t delta_ns, void *arg)
{
	(void)delta_ns;
	(void)arg;
}

START_TEST(told_from_now_on)
{
	begin_refreshed(refreshed_modes[_i]);
	set_clock(SEC);
	/* Neither what nobody has seen, ... */
	ck_assert_int_eq(ct_on_step(note, NULL), 0);
	ct_refresh();
	ck_assert_int_eq(calls(), 0);
	set_clock(SEC);
	ct_refresh();
	ck_assert_int_eq(calls(), 1);

	/* ... nor what another one was told. */
	ck_assert_int_eq(ct_on_step(note_nothing, NULL), 0);
	set_clock(SEC);
	ct_refresh();
	ck_assert_int_eq(ct_on_step(NULL, NULL), 0);
	set_clock(SEC);
	ct_refresh();
	ck_assert_int_eq(ct_on_step(note, NULL), 0);
	ct_refresh();
	ck_assert_int_eq(calls(), 1);
	set_clock(-SEC);
	ct_refresh();
	ck_assert_int_eq(calls(), 2);
	assert_about(last_told_ns(), -SEC, LOOK_NS);
}
END_TEST

/* Both words and what goes with them follow, at that refresh. */
START_TEST(words_follow_a_refresh)
{
	struct ct_snapshot before, after;

	begin_refreshed(CT_MODE_MANUAL);
	for (int i = 0; i < COUNT(steps_ns); i++) {
		ck_assert_int_eq(ct_snapshot(&before), 0);
		set_clock(steps_ns[i]);
		ck_assert_uint_eq(ct_generation(), (uint64_t)i + 1);
		ck_assert_int_eq(ct_now_ns(), before.wall_ns);
		ct_refresh();
		ck_assert_int_eq(ct_snapshot(&after), 0);
		ck_assert_uint_eq(after.generation, (uint64_t)i + 2);
		ck_assert_int_eq(after.wall_ns, ct_page.wall_ns);
		ck_assert_int_eq(after.mono_ns, ct_page.mono_ns);
		ck_assert_int_gt(after.mono_ns, before.mono_ns);
		assert_about((after.wall_ns - after.mono_ns) -
				     (before.wall_ns - before.mono_ns),
			steps_ns[i], LOOK_NS);
	}
}
END_TEST

/* No word tells that, a snapshot does; seconds are rounded down. */
START_TEST(before_1970)
{
	struct ct_snapshot snap;

	begin_refreshed(refreshed_modes[_i]);
	set_clock(-turned.wall_offset_ns - turned.mono_ns - 3 * SEC / 2);
	ct_refresh();
	ck_assert_int_eq(ct_snapshot(&snap), 0);
	assert_about(snap.wall_ns, -3 * SEC / 2, LOOK_NS);
	ck_assert_int_eq(snap.wall_s, -2);
	ck_assert_uint_eq(snap.generation, 2);
}
END_TEST

/* What was published first is another time already. */
START_TEST(set_before_the_first_publication)
{
	ck_assert_int_eq(start_mode(CT_MODE_MANUAL, 0), 0);
	turn_by_hand();
	ck_assert_int_eq(ct_on_step(note, NULL), 0);
	set_clock(SEC);
	ct_refresh();
	ct_refresh();
	ck_assert_uint_eq(ct_generation(), 2);
	ck_assert_int_eq(calls(), 1);
	assert_about(last_told_ns(), SEC, LOOK_NS);
}
END_TEST

START_TEST(leap_second)
{
	struct ct_snapshot snap;
	int64_t tai_ns, wall_ns;

	begin_refreshed(refreshed_modes[_i]);
	ck_assert_int_eq(ct_on_step(note, NULL), 0);
	tai_ns = ct_tai_ns();
	wall_ns = ct_now_ns();
	assert_about(tai_ns - wall_ns, 37 * SEC, LOOK_NS);

	insert_leap_second();
	ct_refresh();
	ck_assert_int_ge(ct_tai_ns(), tai_ns);
	assert_about(ct_tai_ns(), tai_ns, US);
	assert_about(ct_now_ns(), wall_ns - SEC, US);
	ck_assert_uint_eq(ct_generation(), 2);
	ck_assert_int_eq(calls(), 1);
	assert_about(last_told_ns(), -SEC, LOOK_NS);
	ck_assert_int_eq(ct_snapshot(&snap), 0);
	ck_assert_int_eq(snap.tai_offset_s, 38);
	ck_assert_uint_eq(snap.generation, 2);
}
END_TEST

/* Set, and counted by another thread, when a publication has looked at the
 * clocks already. */
static void set_and_counted(void)
{
	set_clock(SEC);
	ct_generation_slow();
}

/* What is cached by generation would never be thrown away: whatever a
 * generation shows first, it goes on showing. */
START_TEST(set_amid_a_publication)
{
	struct ct_snapshot snap[3];

	begin_refreshed(CT_MODE_MANUAL);
	ct_refresh();
	ck_assert_int_eq(ct_snapshot(&snap[0]), 0);
	after_sample = set_and_counted;
	for (int i = 1; i < 3; i++) {
		ct_refresh();
		ck_assert(after_sample == NULL);
		ck_assert_int_eq(ct_snapshot(&snap[i]), 0);
		ck_assert_uint_eq(snap[i].generation, ct_generation());
	}
	for (int i = 1; i < 3; i++) {
		int64_t step_ns = (snap[i].wall_ns - snap[i].mono_ns) -
				  (snap[i - 1].wall_ns - snap[i - 1].mono_ns);

		if (step_ns > MS)
			ck_assert_uint_gt(
				snap[i].generation, snap[i - 1].generation);
	}
	assert_about(snap[2].wall_ns - snap[0].wall_ns, SEC, MS);
	ck_assert_uint_eq(snap[2].generation, 2);
}
END_TEST

/* By the ticker, within a tick or so; in its thread. */
static void wait_for_calls(int wanted)
{
	int64_t deadline_ns = clock_ns(CLOCK_MONOTONIC) + DEADLINE_NS;

	while (calls() < wanted && clock_ns(CLOCK_MONOTONIC) < deadline_ns)
		sleep_ns(100 * US);
	ck_assert_int_eq(calls(), wanted);
}

static const int64_t ticks_ns[] = { 50 * US, MS, 20 * MS };

static void begin_ticking(int64_t tick_ns)
{
	ck_assert_int_eq(start_mode(CT_MODE_TICK, tick_ns), 0);
	wait_until_cached();
}

START_TEST(told_by_the_ticker)
{
	struct ct_snapshot snap;
	uint64_t wanted = 1;
	int mark;

	begin_ticking(ticks_ns[_i]);
	ck_assert_int_eq(ct_on_step(note, &mark), 0);
	for (int i = 0; i < COUNT(steps_ns) - 2; i++) {
		ck_assert_uint_eq(ct_generation(), wanted);
		set_clock(steps_ns[i]);
		wait_for_calls(i + 1);
		wanted++;
		assert_about(last_told_ns(), steps_ns[i], OFF_NS);
		ck_assert(!told_in_this_thread());
		ck_assert_ptr_eq(
			__atomic_load_n(&told.arg, __ATOMIC_RELAXED), &mark);
		/* What is told has been published. */
		ck_assert_uint_eq(published_generation(), wanted);
		ck_assert_uint_eq(ct_generation(), wanted);
		ck_assert_int_eq(ct_snapshot(&snap), 0);
		ck_assert_uint_eq(snap.generation, wanted);
		assert_about(snap.wall_ns + snap.age_ns, turned_wall_ns(),
			OFF_NS);
	}
	/* Not once more, later. */
	sleep_ns(5 * ticks_ns[_i]);
	ck_assert_int_eq(calls(), (int)wanted - 1);
	ck_assert_uint_eq(ct_generation(), wanted);
	ck_assert_uint_eq(status_now().steps, wanted - 1);

	ck_assert_int_eq(ct_on_step(NULL, NULL), 0);
	set_clock(SEC);
	sleep_ns(5 * ticks_ns[_i]);
	ck_assert_int_eq(calls(), (int)wanted - 1);
}
END_TEST

static void told_in_child(void)
{
	int before = calls();

	ck_assert_uint_eq(ct_generation(), 2);
	begin_ticking(MS);
	set_clock(SEC);
	wait_for_calls(before + 1);
	assert_about(last_told_ns(), SEC, OFF_NS);
	ck_assert_uint_eq(ct_generation(), 3);
}

START_TEST(told_by_a_childs_ticker)
{
	if (THREAD_SANITIZER)
		return; /* which allows no threads in such a child */
	begin_ticking(MS);
	ck_assert_int_eq(ct_on_step(note, NULL), 0);
	set_clock(-SEC);
	wait_for_calls(1);
	in_fork(told_in_child);
}
END_TEST

/* Once, however many see it: the ticker, renewals, those who ask. */
#define MANY 300

static bool done;
/* wall - mono, of each generation. */
static int64_t offsets_ns[MANY + 2];

static void foretell_offsets(void)
{
	offsets_ns[1] = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);
	for (int i = 0; i < MANY; i++)
		offsets_ns[i + 2] = offsets_ns[i + 1] + steps_ns[i % 6];
}

static bool is_about(int64_t ns, int64_t wanted_ns)
{
	return ns > wanted_ns - OFF_NS && ns < wanted_ns + OFF_NS;
}

/* A wall clock that was set before it was counted does no harm: who looks at
 * the generation finds a new one then. One that is set after it does. */
static bool generation_fits(const struct ct_snapshot *snap)
{
	int64_t offset_ns = snap->wall_ns - snap->mono_ns;
	uint64_t n = snap->generation;

	return n >= 1 && n <= MANY + 1 &&
	       (is_about(offset_ns, offsets_ns[n]) ||
		       (n <= MANY && is_about(offset_ns, offsets_ns[n + 1])));
}

static void *look_at_everything(void *arg)
{
	struct ct_snapshot snap;
	uint64_t last = 0, now;
	intptr_t wrong = 0;

	(void)arg;
	while (!__atomic_load_n(&done, __ATOMIC_RELAXED)) {
		ct_precise_ns();
		ct_generation_slow();
		now = ct_generation();
		wrong += now < last;
		last = now;
		ct_snapshot(&snap);
		wrong += !generation_fits(&snap);
		ct_now_ns();
	}
	return (void *)wrong;
}

/* While another thread is counting it a refresh may come too early. */
static void wait_for_step(int n, bool refresh)
{
	int64_t deadline_ns = clock_ns(CLOCK_MONOTONIC) + DEADLINE_NS;

	do
		if (refresh)
			ct_refresh();
	while ((calls() < n || ct_generation() < (uint64_t)n + 1) &&
		clock_ns(CLOCK_MONOTONIC) < deadline_ns);
	ck_assert_int_eq(calls(), n);
	ck_assert_uint_eq(ct_generation(), (uint64_t)n + 1);
}

START_TEST(counted_by_many)
{
	pthread_t threads[3];
	int64_t sum_ns = 0;
	void *wrong;

	if (_i == 0)
		begin_ticking(CT_TICK_MIN_NS);
	else
		ck_assert_int_eq(start_mode(CT_MODE_MANUAL, 0), 0);
	ct_refresh();
	ck_assert_int_eq(ct_on_step(note, NULL), 0);
	foretell_offsets();
	for (int i = 0; i < COUNT(threads); i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL,
					 look_at_everything, NULL),
			0);
	for (int i = 0; i < MANY; i++) {
		set_clock(steps_ns[i % 6]);
		sum_ns += steps_ns[i % 6];
		wait_for_step(i + 1, _i == 1);
	}
	__atomic_store_n(&done, true, __ATOMIC_RELAXED);
	for (int i = 0; i < COUNT(threads); i++) {
		pthread_join(threads[i], &wrong);
		ck_assert_int_eq((intptr_t)wrong, 0);
	}
	ck_assert_int_eq(ct_stop(), 0);
	ck_assert_uint_eq(ct_generation(), MANY + 1);
	ck_assert_int_eq(calls(), MANY);
	assert_about(told.sum_ns, sum_ns, OFF_NS);
}
END_TEST

/* Precise time alone: no ticker, no refresh. */
START_TEST(counted_by_precise_readers)
{
	int64_t deadline_ns, off_ns;
	bool counts;

	ck_assert_int_eq(start_mode(CT_MODE_MANUAL, 0), 0);
	deadline_ns = clock_ns(CLOCK_MONOTONIC) + SEC / 5;
	while (clock_ns(CLOCK_MONOTONIC) < deadline_ns)
		ct_precise_ns();
	counts = status_now().precise;
	for (int i = 0; i < COUNT(steps_ns) - 2; i++) {
		set_clock(steps_ns[i]);
		deadline_ns = clock_ns(CLOCK_MONOTONIC) + DEADLINE_NS;
		do
			off_ns = ct_precise_ns() - turned_wall_ns();
		while ((off_ns > MS || off_ns < -MS) &&
			clock_ns(CLOCK_MONOTONIC) < deadline_ns);
		assert_about(off_ns, 0, MS);
		ck_assert_uint_eq(ct_generation(), (uint64_t)i + 2);
	}
	ck_assert_int_eq(status_now().precise, counts);
}
END_TEST

/* Readers without a segment follow as well: it has run out and can't be
 * renewed, or the counter has been taken away. */
START_TEST(precise_without_a_segment)
{
	int64_t deadline_ns;

	ck_assert_int_eq(start_mode(CT_MODE_MANUAL, 0), 0);
	deadline_ns = clock_ns(CLOCK_MONOTONIC) + SEC / 5;
	while (clock_ns(CLOCK_MONOTONIC) < deadline_ns)
		ct_precise_ns();
	if (_i == 0)
		__atomic_exchange_n(&ct_page.segment_lock, 1, __ATOMIC_ACQUIRE);
	else
		ck_assert_int_eq(ct_stop(), 0);
	sleep_ns(5 * MS);
	for (int i = 0; i < COUNT(steps_ns) - 2; i++) {
		assert_about(ct_precise_ns(), turned_wall_ns(), OFF_NS);
		set_clock(steps_ns[i]);
		assert_about(ct_precise_ns(), turned_wall_ns(), OFF_NS);
		assert_about(ct_precise_ordered_ns(), turned_wall_ns(), OFF_NS);
		ck_assert_uint_eq(ct_generation(), (uint64_t)i + 2);
	}
	__atomic_store_n(&ct_page.segment_lock, 0, __ATOMIC_RELEASE);
}
END_TEST

/* What may be called from within, and what may not. */
static int within_calls;

static void everything_within(int64_t delta_ns, void *arg)
{
	struct ct_status status = { .size = sizeof(status) };
	struct ct_snapshot snap;
	char text[64] = "?";
	int64_t wall_ns = turned_wall_ns();

	(void)delta_ns;
	errno = 4711;
	ck_assert_int_eq(ct_start(NULL), -EDEADLK);
	ck_assert_int_eq(ct_stop(), -EDEADLK);
	ck_assert_int_eq(ct_status(&status), -EDEADLK);
	ck_assert_int_eq(ct_on_step(NULL, NULL), -EDEADLK);
	ck_assert_int_eq(ct_on_step(everything_within, arg), -EDEADLK);
	ck_assert_uint_eq(ct_status_text(text, sizeof(text)), 0);
	ck_assert_str_eq(text, "");
	ck_assert_int_eq(errno, 4711);

	ck_assert_uint_ge(ct_generation(), 2);
	ck_assert_int_eq(ct_snapshot(&snap), 0);
	ck_assert_uint_ge(snap.generation, 2);
	assert_about(ct_refresh(), wall_ns / MS, 1000);
	assert_about(ct_now_ns(), wall_ns, SEC);
	/* Which follows within milliseconds. */
	ck_assert_int_gt(ct_precise_ns(), 0);
	within_calls++;
	__atomic_fetch_add(&told.calls, 1, __ATOMIC_RELEASE);
}

START_TEST(from_within)
{
	static const enum ct_mode modes[] = { CT_MODE_TICK, CT_MODE_MANUAL,
		CT_MODE_OFF };
	enum ct_mode mode = modes[_i];

	ck_assert_int_eq(start_mode(mode, MS), 0);
	if (mode == CT_MODE_TICK)
		wait_until_cached();
	ct_refresh();
	ck_assert_int_eq(ct_on_step(everything_within, NULL), 0);
	for (int i = 1; i <= 3; i++) {
		set_clock(-3600 * SEC);
		if (mode != CT_MODE_TICK)
			ct_refresh();
		wait_for_calls(i);
	}
	/* And all goes on. */
	ck_assert_int_eq(status_now().mode, mode);
	ck_assert_int_eq(ct_on_step(NULL, NULL), 0);
	ck_assert_int_eq(ct_stop(), 0);
	ck_assert_int_eq(ct_start(NULL), 0);
	ck_assert_int_eq(within_calls, 3);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("steps");

	add(suite, "counted: parked", counted_while_parked, PARKED);
	add(suite, "counted: several between two looks", between_two_looks,
		PARKED);
	add(suite, "counted: small", small, PARKED);
	add(suite, "counted: from 1970", from_1970, PARKED);
	add(suite, "counted: by many", counted_by_many, 2);
	add(suite, "counted: by precise readers", counted_by_precise_readers,
		1);
	add(suite, "precise without a segment", precise_without_a_segment, 2);
	add(suite, "fork", forked, PARKED);
	add(suite, "fork: unseen", forked_unseen, PARKED);
	add(suite, "fork: manual", forked_while_manual, 1);
	add(suite, "fork: told", forked_and_told, 1);
	add(suite, "fork: told by its ticker", told_by_a_childs_ticker, 1);

	add(suite, "told: by a refresh", told_by_a_refresh,
		COUNT(refreshed_modes));
	add(suite, "told: counted before", counted_before_told, 1);
	add(suite, "told: from now on", told_from_now_on,
		COUNT(refreshed_modes));
	add(suite, "told: by the ticker", told_by_the_ticker, COUNT(ticks_ns));
	add(suite, "words follow a refresh", words_follow_a_refresh, 1);
	add(suite, "before 1970", before_1970, COUNT(refreshed_modes));
	add(suite, "set before the first publication",
		set_before_the_first_publication, 1);
	add(suite, "leap second", leap_second, COUNT(refreshed_modes));
	add(suite, "set amid a publication", set_amid_a_publication, 1);
	add(suite, "from within", from_within, 3);
	return run_suite(suite);
}
