/* SPDX-License-Identifier: MIT */
/* A forked child inherits no word of time, only the means to get its own. */
#include <pthread.h>

#include "clocks.h"

#define READING 8
#define SWITCHING 4

static int ending;

static void no_words_inherited(void)
{
	CHECK(!cached());
	CHECK(__atomic_load_n(&ct_page.mono_ns, __ATOMIC_RELAXED) == 0);
	CHECK(threads() == 1);
}

static void tick_in_child(void)
{
	no_words_inherited();
	CHECK(ticks_right());
	CHECK(threads() == 2);
}

START_TEST(fork_while_ticking)
{
	ck_assert(ticks_right());
	for (int i = 0; i < 10; i++) {
		ck_assert(child_does(tick_in_child));
		ck_assert(cached() && right());
	}
	ck_assert(advances());
}
END_TEST

static void seconds_go_on(void)
{
	CHECK(go_on(READERS));
	CHECK(cached_soon());
	CHECK(go_on(READERS));
}

START_TEST(every_word_goes_on)
{
	ck_assert(cached_soon());
	ck_assert(go_on(READERS));
	ck_assert(child_does(seconds_go_on));
}
END_TEST

static void fork_again_unread(void)
{
	CHECK(child_does(tick_in_child));
	no_words_inherited();
	CHECK(ticks_right());
}

static void fork_again_ticking(void)
{
	tick_in_child();
	CHECK(child_does(tick_in_child));
	CHECK(child_does(fork_again_unread));
	CHECK(cached() && right() && advances());
}

START_TEST(fork_of_a_fork)
{
	ck_assert(cached_soon());
	ck_assert(child_does(fork_again_unread));
	ck_assert(child_does(fork_again_ticking));
	ck_assert(right() && advances());
}
END_TEST

static void live_until_refreshed(void)
{
	no_words_inherited();
	CHECK(stays_live());
	ct_refresh();
	CHECK(cached() && right() && threads() == 1);
}

START_TEST(fork_in_manual_mode)
{
	ck_assert_int_eq(start_mode(CT_MODE_MANUAL), 0);
	ct_refresh();
	ck_assert(cached());
	ck_assert(child_does(live_until_refreshed));
	ck_assert(cached());
}
END_TEST

static void live_until_started(void)
{
	no_words_inherited();
	CHECK(stays_live());
	CHECK(status_now().mode == CT_MODE_OFF);
	CHECK(ct_start(NULL) == 0);
	CHECK(ticks_right());
}

START_TEST(fork_after_stop)
{
	ck_assert(cached_soon());
	ck_assert_int_eq(ct_stop(), 0);
	ck_assert(child_does(live_until_started));
	ck_assert(stays_live());
}
END_TEST

static void *read_right(void *arg)
{
	(void)arg;
	while (!__atomic_load_n(&ending, __ATOMIC_RELAXED))
		CHECK(right());
	return NULL;
}

static void *start_and_stop(void *arg)
{
	(void)arg;
	while (!__atomic_load_n(&ending, __ATOMIC_RELAXED)) {
		CHECK(ct_start(NULL) == 0);
		CHECK(ct_stop() == 0);
	}
	return NULL;
}

static void start_threads(pthread_t *thread, int count, void *(*main)(void *))
{
	for (int i = 0; i < count; i++)
		ck_assert_int_eq(
			pthread_create(&thread[i], NULL, main, NULL), 0);
}

static void end_threads(pthread_t *thread, int count)
{
	__atomic_store_n(&ending, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < count; i++)
		pthread_join(thread[i], NULL);
}

START_TEST(fork_among_readers)
{
	pthread_t thread[READING];

	start_threads(thread, READING, read_right);
	for (int i = 0; i < 20; i++)
		ck_assert(child_does(tick_in_child));
	end_threads(thread, READING);
	ck_assert(right() && advances());
}
END_TEST

static void start_in_child(void)
{
	no_words_inherited();
	CHECK(right());
	CHECK(ct_start(NULL) == 0);
	CHECK(ticks_right());
	CHECK(ct_stop() == 0);
	CHECK(stays_live());
}

START_TEST(fork_among_starts_and_stops)
{
	pthread_t thread[SWITCHING];

	start_threads(thread, SWITCHING, start_and_stop);
	for (int i = 0; i < 60; i++)
		ck_assert(child_does(start_in_child));
	end_threads(thread, SWITCHING);
	ck_assert(right() && stays_live());
}
END_TEST

/* daemon() leaves nobody to wait for: the answer comes through a pipe. */
START_TEST(daemon_while_ticking)
{
	struct pollfd answers = { .events = POLLIN };
	int fd[2];
	char answer = 0;

	ck_assert(cached_soon());
	ck_assert_int_eq(pipe(fd), 0);
	if (fork() == 0) {
		close(fd[0]);
		CHECK(daemon(0, 1) == 0);
		tick_in_child();
		CHECK(write(fd[1], "+", 1) == 1);
		_exit(0);
	}
	close(fd[1]);
	answers.fd = fd[0];
	ck_assert_int_eq(poll(&answers, 1, CHILD_NS / MS), 1);
	ck_assert_int_eq((int)read(fd[0], &answer, 1), 1);
	ck_assert_int_eq(answer, '+');
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("fork");

	add_situation(suite, "fork while ticking", fork_while_ticking);
	add_situation(suite, "every word goes on", every_word_goes_on);
	add_situation(suite, "fork of a fork", fork_of_a_fork);
	add_situation(suite, "fork in manual mode", fork_in_manual_mode);
	add_situation(suite, "fork after ct_stop", fork_after_stop);
	add_situation(suite, "fork among readers", fork_among_readers);
	add_situation(suite, "fork among starts and stops",
		fork_among_starts_and_stops);
	add_situation(suite, "daemon", daemon_while_ticking);
	return run_suite(suite);
}
