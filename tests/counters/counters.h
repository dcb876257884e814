/* SPDX-License-Identifier: MIT */
/*
 * What the tests of the counters share. libcheck's assertions are for the
 * test's own process; children, threads and programs without libcheck use
 * CHECK(), which says what was wrong and ends the process.
 */
#ifndef COUNTERS_H
#define COUNTERS_H

#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "suite.h"

#define US INT64_C(1000)
#define MS INT64_C(1000000)
#define SEC INT64_C(1000000000)

/* For what comes within milliseconds on an idle machine. */
#define DEADLINE_NS (10 * SEC)
/* Libcheck's for one test; a child's own is half of that. */
#define TIMEOUT_S 60

#define CHECK(condition)                                                       \
	do {                                                                   \
		if (!(condition)) {                                            \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__,       \
				__LINE__, #condition);                         \
			_exit(1);                                              \
		}                                                              \
	} while (0)

/* For loops: libcheck writes each of its own assertions to a file. */
#define ALWAYS(condition)                                                      \
	do {                                                                   \
		if (!(condition))                                              \
			ck_abort_msg("not so: %s", #condition);                \
	} while (0)

#define LENGTH(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* A tcase is a situation. */
static inline void add_situation(Suite *suite, const char *name,
	const TTest *test)
{
	TCase *tc = tcase_create(name);

	tcase_set_timeout(tc, TIMEOUT_S);
	tcase_add_test(tc, test);
	suite_add_tcase(suite, tc);
}

/* One test for each of `count` rows of a table. */
static inline void add_table(Suite *suite, const char *name,
	const TTest *test, int count)
{
	TCase *tc = tcase_create(name);

	tcase_set_timeout(tc, TIMEOUT_S);
	tcase_add_loop_test(tc, test, 0, count);
	suite_add_tcase(suite, tc);
}

/* Does the task in a child; did it end well? Says how it ended otherwise. */
static inline bool child_does(void (*task)(void))
{
	pid_t pid;
	int status;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		alarm(TIMEOUT_S / 2);
		task();
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid) {
		perror("no child");
		return false;
	}
	if (WIFSIGNALED(status))
		fprintf(stderr, "child ended by %s\n",
			strsignal(WTERMSIG(status)));
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* A small generator, the same on each run (Marsaglia's xorshift64). */
static inline uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

#endif /* COUNTERS_H */
