/* SPDX-License-Identifier: MIT */
/*
 * The kernel can't wipe the page on fork, and what another thread held at the
 * fork is held in the child, where nobody lets go of it. madvise() is here.
 */
#include <pthread.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "turned.h"

static sem_t within, go_on;

int madvise(void *address, size_t length, int advice)
{
	(void)address;
	(void)length;
	(void)advice;
	errno = ENOSYS;
	return -1;
}

static void wait_within(int64_t delta_ns, void *arg)
{
	(void)delta_ns;
	(void)arg;
	sem_post(&within);
	sem_wait(&go_on);
}

static void *refresh(void *arg)
{
	(void)arg;
	ct_refresh();
	return NULL;
}

static int calls;

static void count_call(int64_t delta_ns, void *arg)
{
	(void)delta_ns;
	(void)arg;
	calls++;
}

static void go_on_in_child(void)
{
	struct ct_bounds bounds;

	ck_assert_uint_eq(ct_generation(), 2);
	ck_assert_int_eq(ct_on_step(count_call, NULL), 0);
	set_clock(SEC);
	ct_refresh();
	ck_assert_int_eq(calls, 1);
	ck_assert_uint_eq(ct_generation(), 3);
	ck_assert_int_le(ct_bounds(&bounds), 0);
	ck_assert_int_eq(status_now().precise, 0);
	ck_assert_int_eq(ct_stop(), 0);
}

/* exits: the last thing a test does */
START_TEST(forked_while_told_of_a_step)
{
	pthread_t thread;
	pid_t pid;

	ck_assert_int_eq(ct_start(NULL), -ENOTSUP);
	sem_init(&within, 0, 0);
	sem_init(&go_on, 0, 0);
	ck_assert_int_eq(ct_on_step(wait_within, NULL), 0);
	set_clock(-SEC);
	ck_assert_int_eq(pthread_create(&thread, NULL, refresh, NULL), 0);
	sem_wait(&within);

	pid = check_fork();
	if (pid == 0) {
		alarm(5);
		go_on_in_child();
		exit(EXIT_SUCCESS);
	}
	sem_post(&go_on);
	pthread_join(thread, NULL);
	check_waitpid_and_exit(pid);
}
END_TEST

START_TEST(precise_all_the_same)
{
	int64_t before_ns, ns;

	ck_assert_int_eq(ct_start(NULL), -ENOTSUP);
	for (int i = 0; i < 100000; i++) {
		before_ns = clock_ns(CLOCK_MONOTONIC);
		ns = ct_precise_mono_ordered_ns();
		if (ns < before_ns || ns > clock_ns(CLOCK_MONOTONIC))
			ck_abort_msg("%lld after %lld", (long long)ns,
				(long long)before_ns);
	}
	ck_assert_int_eq(status_now().precise, 0);
	ck_assert_uint_eq(ct_page.segment_seq, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("unwiped");

	add(suite, "forked while told of a step", forked_while_told_of_a_step,
		1);
	add(suite, "precise", precise_all_the_same, 1);
	return run_suite(suite);
}
