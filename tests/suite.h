/* SPDX-License-Identifier: MIT */
/*
 * What the test programs share. Each is one libcheck suite; libcheck forks for
 * each test, so each finds the library as a new process does.
 */
#ifndef SUITE_H
#define SUITE_H

#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Exit status of a test that can't run on this machine. */
#define EXIT_SKIPPED 77

static inline int64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

static inline void sleep_ns(int64_t ns)
{
	struct timespec ts = { ns / 1000000000, ns % 1000000000 };

	while (nanosleep(&ts, &ts) != 0)
		;
}

static inline void skip(const char *reason)
{
	printf("skipped: %s\n", reason);
	exit(EXIT_SKIPPED);
}

/* Run it; TAP on standard output. */
static inline int run_suite(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int failed;

	srunner_set_tap(runner, "-");
	srunner_run_all(runner, CK_SILENT);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif /* SUITE_H */
