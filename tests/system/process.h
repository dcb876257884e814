/* SPDX-License-Identifier: MIT */
/*
 * Processes and threads, for tests of what may befall one. Nothing here needs
 * the library.
 *
 * libcheck's assertions are for the test's own process; its children, helper
 * programs and plugins use CHECK(), which says what was wrong on standard
 * error and ends the process.
 */
#ifndef PROCESS_H
#define PROCESS_H

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "suite.h"

#define MS INT64_C(1000000)
#define SEC INT64_C(1000000000)

/* For what comes within milliseconds on an idle machine. */
#define DEADLINE_NS (10 * SEC)
/* For a child, and for a test with several of them. */
#define CHILD_NS (30 * SEC)
#define TIMEOUT_S 90

#define CHECK(condition)                                                 \
	do {                                                             \
		if (!(condition)) {                                      \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, \
				__LINE__, #condition);                   \
			_exit(1);                                        \
		}                                                        \
	} while (0)

/* By poll(2), since glibc's nanosleep() is a clock_nanosleep(2), which some
 * tests refuse. */
static inline void nap(int64_t ns)
{
	struct timespec time = { ns / SEC, ns % SEC };

	ppoll(NULL, 0, &time, NULL);
}

/* Without malloc, so from anywhere. */
static inline int threads(void)
{
	struct stat st;

	return stat("/proc/self/task", &st) == 0 ? (int)st.st_nlink - 2 : -1;
}

static inline int descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	if (dir == NULL)
		return -1;
	while (readdir(dir) != NULL)
		count++;
	closedir(dir);
	return count - 3; /* ".", ".." and its own */
}

/* A sanitizer keeps memory for reasons of its own. */
#ifdef SANITIZED
#define MEMORY_IS_TOLD false
#else
#define MEMORY_IS_TOLD true
#endif

static inline long pages_of_memory(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	long pages;

	CHECK(file != NULL);
	CHECK(fscanf(file, "%ld", &pages) == 1);
	fclose(file);
	return pages;
}

/* A thread that ended is counted until the kernel has put it away. */
static inline bool threads_become(int wanted)
{
	int64_t deadline_ns = clock_ns(CLOCK_MONOTONIC_RAW) + DEADLINE_NS;

	while (threads() != wanted) {
		if (clock_ns(CLOCK_MONOTONIC_RAW) > deadline_ns) {
			fprintf(stderr, "%d threads, not %d\n", threads(),
				wanted);
			return false;
		}
		nap(MS);
	}
	return true;
}

/* Waits no longer than a child may take. Alarms don't do for that: what hangs
 * may block every signal. */
static inline bool has_ended(pid_t pid, int *status, int64_t within_ns)
{
	int64_t deadline_ns = clock_ns(CLOCK_MONOTONIC_RAW) + within_ns;
	int64_t pause_ns = 20000;
	pid_t ended;

	while ((ended = waitpid(pid, status, WNOHANG | __WALL)) == 0) {
		if (clock_ns(CLOCK_MONOTONIC_RAW) > deadline_ns) {
			fprintf(stderr, "child %d hangs\n", (int)pid);
			kill(pid, SIGKILL);
			return waitpid(pid, status, __WALL) == pid;
		}
		nap(pause_ns);
		if (pause_ns < MS)
			pause_ns += pause_ns / 4;
	}
	return ended == pid;
}

/* Did it exit with 0? Says how it ended otherwise. */
static inline bool ended_well_within(pid_t pid, int64_t within_ns)
{
	int status;

	if (pid <= 0 || !has_ended(pid, &status, within_ns)) {
		perror("no child");
		return false;
	}
	if (WIFSIGNALED(status))
		fprintf(stderr, "child %d ended by %s\n", (int)pid,
			strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status) != 0)
		fprintf(stderr, "child %d exited with %d\n", (int)pid,
			WEXITSTATUS(status));
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static inline bool ended_well(pid_t pid)
{
	return ended_well_within(pid, CHILD_NS);
}

/* In a child of whatever kind. */
static inline void do_and_exit(void (*task)(void))
{
	task();
	_exit(0);
}

static inline pid_t fork_to(void (*task)(void))
{
	pid_t pid = fork();

	if (pid == 0)
		do_and_exit(task);
	return pid;
}

static inline bool child_does(void (*task)(void))
{
	return ended_well(fork_to(task));
}

/* The path of a helper that the build passes. */
static inline const char *path_from(const char *variable)
{
	const char *path = getenv(variable);

	if (path == NULL) {
		fprintf(stderr, "%s isn't set: run this by meson test\n",
			variable);
		exit(EXIT_FAILURE);
	}
	return path;
}

/* With the environment as it is. */
static inline void exec_program(const char *path, const char *argument)
{
	execl(path, path, argument, (char *)NULL);
	perror(path);
	_exit(127);
}

/* A tcase is a situation. */
static inline void add_situation(
	Suite *suite, const char *name, const TTest *test)
{
	TCase *tc = tcase_create(name);

	tcase_set_timeout(tc, TIMEOUT_S);
	tcase_add_test(tc, test);
	suite_add_tcase(suite, tc);
}

#endif /* PROCESS_H */
