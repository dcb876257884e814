/* SPDX-License-Identifier: MIT */
/*
 * Children that no fork handler sees: raw clone, vfork, spawn; and programs
 * that replace this one.
 */
#include <errno.h>
#include <linux/sched.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>

#include "clocks.h"

static const char *probe;

static void live_until_started(void)
{
	CHECK(!cached());
	CHECK(threads() == 1);
	CHECK(stays_live());
	CHECK(ct_refresh() > 0);
	CHECK(threads() == 1);
	CHECK(ct_start(NULL) == 0);
	CHECK(ticks_right());
	CHECK(threads() == 2);
	CHECK(ct_stop() == 0);
	CHECK(threads_become(1));
	CHECK(stays_live());
}

static pid_t raw_clone(void)
{
	return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0L);
}

static pid_t raw_clone3(void)
{
	struct clone_args args = { .exit_signal = SIGCHLD };

	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

static void clone_by(pid_t (*clone)(void), void (*task)(void))
{
	pid_t pid = clone();

	if (pid == 0)
		do_and_exit(task);
	ck_assert(ended_well(pid));
}

START_TEST(clone_while_ticking)
{
	ck_assert(cached_soon());
	for (int i = 0; i < 5; i++)
		clone_by(raw_clone, live_until_started);
	ck_assert(right() && advances());
}
END_TEST

START_TEST(clone_before_the_first_read)
{
	clone_by(raw_clone, live_until_started);
	ck_assert(ticks_right());
}
END_TEST

START_TEST(clone3_while_ticking)
{
	ck_assert(cached_soon());
	for (int i = 0; i < 5; i++)
		clone_by(raw_clone3, live_until_started);
	ck_assert(right() && advances());
}
END_TEST

static void tick_in_child(void)
{
	CHECK(!cached() && threads() == 1);
	CHECK(ticks_right());
}

static void fork_properly(void)
{
	CHECK(stays_live());
	CHECK(child_does(tick_in_child));
	CHECK(ct_start(NULL) == 0);
	CHECK(ticks_right());
	CHECK(child_does(tick_in_child));
}

START_TEST(fork_from_a_clone)
{
	ck_assert(cached_soon());
	clone_by(raw_clone, fork_properly);
}
END_TEST

/* Shared with the vfork child, as all memory is. */
static volatile int in_vfork;
static volatile bool right_in_vfork;

static void vfork_and_read(int reads)
{
	pid_t pid = vfork();

	if (pid == 0) {
		for (int i = 0; i < reads; i++) {
			ct_now_ms();
			ct_mono_ns();
			nap(MS);
		}
		right_in_vfork = right();
		in_vfork = threads();
		exec_program(probe, "0");
	}
	ck_assert(ended_well(pid));
	ck_assert(right_in_vfork);
	ck_assert_int_eq(in_vfork, 1);
}

START_TEST(vfork_while_parked)
{
	vfork_and_read(20);
	ck_assert_int_eq(threads(), 1);
	ck_assert(!cached());
	ck_assert(ticks_right());
}
END_TEST

START_TEST(vfork_while_ticking)
{
	ck_assert(cached_soon());
	vfork_and_read(20);
	ck_assert(cached() && right() && advances());
	ck_assert_int_eq(threads(), 2);
}
END_TEST

static volatile int start_ret, stop_ret;

static void vfork_and_start(void)
{
	pid_t pid = vfork();

	if (pid == 0) {
		start_ret = ct_start(NULL);
		stop_ret = ct_stop();
		right_in_vfork = right();
		in_vfork = threads();
		_exit(0);
	}
	ck_assert(ended_well(pid));
	ck_assert_int_eq(start_ret, -EAGAIN);
	ck_assert_int_eq(stop_ret, -EAGAIN);
	ck_assert(right_in_vfork);
	ck_assert_int_eq(in_vfork, 1);
}

START_TEST(start_in_a_vfork_child)
{
	vfork_and_start();
	ck_assert_int_eq(threads(), 1);
	ck_assert(ticks_right());
	vfork_and_start();
	ck_assert(cached() && right() && advances());
	ck_assert_int_eq(threads(), 2);
	ck_assert_int_eq(ct_stop(), 0);
	ck_assert(stays_live());
	vfork_and_start();
	ck_assert(stays_live());
}
END_TEST

START_TEST(spawn)
{
	extern char **environ;
	char *argv[] = { (char *)(uintptr_t)probe, "0", NULL };
	pid_t pid;

	ck_assert(cached_soon());
	ck_assert_int_eq(
		posix_spawn(&pid, probe, NULL, NULL, argv, environ), 0);
	ck_assert(ended_well(pid));
	ck_assert(right() && advances());
}
END_TEST

static void *read_for_ever(void *arg)
{
	(void)arg;
	for (;;)
		CHECK(right());
	return NULL;
}

static void exec_while_ticking(void)
{
	pthread_t thread;

	for (int i = 0; i < 4; i++)
		CHECK(pthread_create(&thread, NULL, read_for_ever, NULL) == 0);
	CHECK(cached_soon());
	exec_program(probe, "0");
}

START_TEST(exec_a_program)
{
	for (int i = 0; i < 3; i++)
		ck_assert(child_does(exec_while_ticking));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("clone");

	probe = path_from("CT_TEST_PROBE");
	add_situation(suite, "clone while ticking", clone_while_ticking);
	add_situation(suite, "clone before the first read",
		clone_before_the_first_read);
	add_situation(suite, "clone3 while ticking", clone3_while_ticking);
	add_situation(suite, "fork from a clone", fork_from_a_clone);
	add_situation(suite, "vfork while parked", vfork_while_parked);
	add_situation(suite, "vfork while ticking", vfork_while_ticking);
	add_situation(
		suite, "ct_start in a vfork child", start_in_a_vfork_child);
	add_situation(suite, "posix_spawn", spawn);
	add_situation(suite, "exec while ticking", exec_a_program);
	return run_suite(suite);
}
