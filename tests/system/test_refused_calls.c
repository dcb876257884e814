/* SPDX-License-Identifier: MIT */
/*
 * System calls that a sandbox refuses, one at a time: from before the library
 * is loaded (the filter stays across the exec of the probe), or where a
 * program couldn't even be loaded like that, from after.
 */
#include <errno.h>

#include "life.h"
#include "sandbox.h"

enum when { BEFORE_LOAD, AFTER_LOAD };

static const struct refusal {
	const char *calls;
	int error;
	enum when when;
	enum outlook outlook;
	bool forks;
} refusals[] = {
	{ "madvise", EPERM, BEFORE_LOAD, OUTLOOK_NO_WIPE, true },
	{ "madvise", ENOSYS, BEFORE_LOAD, OUTLOOK_NO_WIPE, true },
	{ "madvise", EINVAL, BEFORE_LOAD, OUTLOOK_NO_WIPE, true },
	{ "madvise", EPERM, AFTER_LOAD, OUTLOOK_CACHED, true },
	{ "mmap", EPERM, AFTER_LOAD, OUTLOOK_NO_THREAD, true },
	{ "mmap", ENOSYS, AFTER_LOAD, OUTLOOK_NO_THREAD, true },
	{ "mprotect", EPERM, AFTER_LOAD, OUTLOOK_ANY, true },
	{ "mprotect", ENOSYS, AFTER_LOAD, OUTLOOK_ANY, true },
	{ "prctl", EPERM, BEFORE_LOAD, OUTLOOK_CACHED, true },
	{ "prctl", ENOSYS, BEFORE_LOAD, OUTLOOK_CACHED, true },
	{ "clock_nanosleep", EPERM, BEFORE_LOAD, OUTLOOK_CACHED, true },
	{ "clock_nanosleep", ENOSYS, BEFORE_LOAD, OUTLOOK_CACHED, true },
	{ "futex", EPERM, BEFORE_LOAD, OUTLOOK_CACHED, true },
	{ "futex", ENOSYS, BEFORE_LOAD, OUTLOOK_CACHED, true },
	{ "clock_nanosleep,futex", EPERM, BEFORE_LOAD, OUTLOOK_NO_SLEEP, true },
	{ "clock_nanosleep,futex", ENOSYS, BEFORE_LOAD, OUTLOOK_NO_SLEEP,
		true },
	{ "rt_sigprocmask", EPERM, BEFORE_LOAD, OUTLOOK_STARTED, true },
	{ "rt_sigprocmask", ENOSYS, BEFORE_LOAD, OUTLOOK_STARTED, true },
	{ "rt_sigaction", EPERM, BEFORE_LOAD, OUTLOOK_CACHED, true },
	{ "rt_sigaction", ENOSYS, BEFORE_LOAD, OUTLOOK_CACHED, true },
	{ "clone3", EPERM, BEFORE_LOAD, OUTLOOK_NO_THREAD, true },
	{ "clone3", ENOSYS, BEFORE_LOAD, OUTLOOK_CACHED, true },
	{ "clone3,clone", ENOSYS, AFTER_LOAD, OUTLOOK_NO_THREAD, false },
	{ "getpid", EPERM, BEFORE_LOAD, OUTLOOK_ANY, true },
	{ "getpid", ENOSYS, BEFORE_LOAD, OUTLOOK_ANY, true },
	{ "getpid", EPERM, AFTER_LOAD, OUTLOOK_ANY, true },
	{ "gettid", EPERM, BEFORE_LOAD, OUTLOOK_CACHED, true },
	{ "sched_yield", EPERM, BEFORE_LOAD, OUTLOOK_CACHED, true },
	{ "sched_yield", ENOSYS, BEFORE_LOAD, OUTLOOK_CACHED, true },
	{ "munmap", EPERM, AFTER_LOAD, OUTLOOK_CACHED, true },
	{ "set_robust_list", ENOSYS, BEFORE_LOAD, OUTLOOK_CACHED, true },
	{ "rseq", ENOSYS, BEFORE_LOAD, OUTLOOK_CACHED, true },
	{ "clock_getres", EPERM, BEFORE_LOAD, OUTLOOK_CACHED, true },
	{ "clock_gettime", EPERM, BEFORE_LOAD, OUTLOOK_CACHED, true },
	{ "nanosleep", EPERM, AFTER_LOAD, OUTLOOK_CACHED, true },
};

#define REFUSALS (sizeof(refusals) / sizeof(refusals[0]))

static const struct refusal *refusal;
static const char *probe;

static void live_with_refusal(void)
{
	char outlook[8];

	refuse_each(refusal->calls, refusal->error);
	if (refusal->when == AFTER_LOAD) {
		live_through(refusal->outlook, refusal->forks);
		return;
	}
	snprintf(outlook, sizeof(outlook), "%d", refusal->outlook);
	exec_program(probe, outlook);
}

START_TEST(refused)
{
	refusal = &refusals[_i];
	ck_assert_msg(child_does(live_with_refusal), "%s refused (%s), %s",
		refusal->calls, strerrorname_np(refusal->error),
		refusal->when == BEFORE_LOAD ? "from the start"
					     : "after the library was loaded");
}
END_TEST

static void cached_then_sleepless(void)
{
	CHECK(cached_soon());
	refuse_each("clock_nanosleep,futex", EPERM);
	CHECK(ct_stop() == 0);
	CHECK(ct_start(NULL) == 0);
	CHECK(live_soon());
	CHECK(right() && advances());
	expect_error(status_now().last_error, "sleep");
	/* Reads don't try again by themselves. */
	CHECK(threads_become(1));
	CHECK(stays_live());
}

START_TEST(sleep_refused_half_way)
{
	ck_assert(child_does(cached_then_sleepless));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("refused calls");
	TCase *tc = tcase_create("one call refused");

	probe = path_from("CT_TEST_PROBE");
	tcase_set_timeout(tc, TIMEOUT_S);
	tcase_add_loop_test(tc, refused, 0, (int)REFUSALS);
	suite_add_tcase(suite, tc);
	add_situation(suite, "no way to sleep left", sleep_refused_half_way);
	return run_suite(suite);
}
