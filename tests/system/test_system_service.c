/* SPDX-License-Identifier: MIT */
/*
 * A service under systemd's SystemCallFilter=@system-service: nothing else is
 * ever called, or the kernel kills the process.
 */
#include <signal.h>
#include <sys/swap.h>

#include "life.h"
#include "sandbox.h"
#include "system_service.h"

#define CALLS (sizeof(system_service) / sizeof(system_service[0]))

static const char *probe;

static void permit_system_service(void)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);

	CHECK(filter != NULL);
	for (size_t i = 0; i < CALLS; i++) {
		int number = seccomp_syscall_resolve_name(system_service[i]);

		/* Not of this architecture, or newer than libseccomp. */
		if (number >= 0)
			CHECK(seccomp_rule_add(
				      filter, SCMP_ACT_ALLOW, number, 0) == 0);
	}
	CHECK(seccomp_load(filter) == 0);
	seccomp_release(filter);
}

static void probe_as_service(void)
{
	permit_system_service();
	exec_program(probe, "0");
}

static void live_as_service(void)
{
	permit_system_service();
	live_through(OUTLOOK_CACHED, true);
}

static void swap_off(void)
{
	permit_system_service();
	swapoff("");
}

START_TEST(whole_life)
{
	ck_assert(child_does(probe_as_service));
}
END_TEST

START_TEST(filter_half_way)
{
	ck_assert(cached_soon());
	ck_assert(child_does(live_as_service));
}
END_TEST

START_TEST(filter_kills)
{
	pid_t pid = fork_to(swap_off);
	int status;

	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("system service");

	probe = path_from("CT_TEST_PROBE");
	add_situation(suite, "filter from the start", whole_life);
	add_situation(suite, "filter half way", filter_half_way);
	add_situation(suite, "a call outside the filter", filter_kills);
	return run_suite(suite);
}
