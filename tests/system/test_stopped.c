/* SPDX-License-Identifier: MIT */
/*
 * The process is stopped for a while, by SIGSTOP, and goes on: ticks that it
 * missed are skipped, not queued. CT_TEST_STOP_S says for how long.
 */
#include <signal.h>

#include "clocks.h"

#define TICKS_PER_SECOND 1000

static int stop_s = 2;

static void stop_and_judge(void)
{
	int64_t ticks, resumed_ns, awake_ms;

	CHECK(ticks_right());
	ticks = (int64_t)status_now().ticks;
	raise(SIGSTOP);
	resumed_ns = clock_ns(CLOCK_MONOTONIC_RAW);

	CHECK(advances());
	CHECK(right());
	/* Time for a queue, if there were one. */
	nap(200 * MS);
	ticks = (int64_t)status_now().ticks - ticks;
	awake_ms = (clock_ns(CLOCK_MONOTONIC_RAW) - resumed_ns) / MS;
	CHECK(ticks < awake_ms + stop_s * TICKS_PER_SECOND / 2);
	CHECK(status_now().max_late_ns > stop_s * SEC / 2);
	CHECK(status_now().late_ticks >= 1);
}

START_TEST(stopped)
{
	pid_t pid = fork_to(stop_and_judge);
	int status;

	ck_assert_int_eq(waitpid(pid, &status, WUNTRACED), pid);
	ck_assert(WIFSTOPPED(status));
	nap(stop_s * SEC);
	ck_assert_int_eq(kill(pid, SIGCONT), 0);
	ck_assert(ended_well(pid));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("stopped");

	if (getenv("CT_TEST_STOP_S") != NULL)
		stop_s = atoi(getenv("CT_TEST_STOP_S"));
	add_situation(suite, "stopped for a while", stopped);
	return run_suite(suite);
}
