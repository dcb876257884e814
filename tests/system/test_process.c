/* SPDX-License-Identifier: MIT */
/* What befalls a whole process; and what the ticker leaves alone in it. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>

#include "clocks.h"

#define THREADS 4
#define CYCLES 500

static void close_all_but_standard(void)
{
	CHECK(ticks_right());
	CHECK(open("/dev/null", O_RDONLY) >= 0);
	closefrom(3);
	CHECK(cached() && right() && advances());
	CHECK(syscall(SYS_close_range, 0U, ~0U, 0U) == 0);
	if (!cached() || !right() || !advances())
		_exit(2); /* there is nowhere to say it */
}

START_TEST(close_descriptors)
{
	ck_assert(child_does(close_all_but_standard));
}
END_TEST

START_TEST(opens_none)
{
	char text[1024];
	int before = descriptors();

	ck_assert(ticks_right());
	ck_assert_int_eq(descriptors(), before);
	ct_status_text(text, sizeof(text));
	ct_refresh();
	ck_assert_int_eq(start_tick(20 * MS), 0);
	ck_assert(ticks_right());
	ck_assert_int_eq(descriptors(), before);
	ck_assert_int_eq(ct_stop(), 0);
	ck_assert_int_eq(descriptors(), before);
}
END_TEST

static void start_and_stop_often(int cycles)
{
	for (int i = 0; i < cycles; i++) {
		ck_assert_int_eq(start_tick((1 + i % 3) * MS), 0);
		if (i % 10 == 0)
			ck_assert(cached_soon());
		ck_assert(right());
		ck_assert_int_eq(ct_stop(), 0);
	}
}

START_TEST(many_starts_and_stops)
{
	long before;

	ck_assert_int_eq(threads(), 1);
	start_and_stop_often(20);
	before = pages_of_memory();
	start_and_stop_often(CYCLES);
	/* Of 500 stacks, not one may have stayed. */
	if (MEMORY_IS_TOLD)
		ck_assert_int_lt(pages_of_memory(), before + 32);
	ck_assert(threads_become(1));
	ck_assert(stays_live());
}
END_TEST

/* A line of /proc/self/task/<tid>/<file> that begins with `key`. */
static bool task_line(const char *tid, const char *file, const char *key,
	char *line, int size)
{
	char path[64];
	bool found = false;
	FILE *stream;

	snprintf(path, sizeof(path), "/proc/self/task/%.16s/%s", tid, file);
	stream = fopen(path, "r");
	if (stream == NULL)
		return false;
	while (!found && fgets(line, size, stream) != NULL)
		found = strncmp(line, key, strlen(key)) == 0;
	fclose(stream);
	return found;
}

static bool find_ticker(char tid[static 17])
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	char line[64];

	ck_assert_ptr_nonnull(dir);
	while ((entry = readdir(dir)) != NULL)
		if (task_line(entry->d_name, "comm", "cachedtime\n", line,
			    sizeof(line))) {
			snprintf(tid, 17, "%.16s", entry->d_name);
			closedir(dir);
			return true;
		}
	closedir(dir);
	return false;
}

/* All that can be: KILL and STOP can't, and two are glibc's own. */
static void ticker_blocks_all(const char *tid)
{
	char line[64];
	uint64_t blocked;

	ck_assert(task_line(tid, "status", "SigBlk:", line, sizeof(line)));
	blocked = strtoull(line + strlen("SigBlk:"), NULL, 16);
	for (int sig = 1; sig <= SIGRTMAX; sig++)
		if (sig != SIGKILL && sig != SIGSTOP &&
			(sig < 32 || sig >= SIGRTMIN))
			ck_assert_msg(blocked >> (sig - 1) & 1,
				"signal %d isn't blocked", sig);
}

START_TEST(name_and_mask)
{
	char tid[17];

	ck_assert(cached_soon());
	ck_assert(find_ticker(tid));
	ticker_blocks_all(tid);
	ck_assert_int_eq(start_tick(500 * MS), 0);
	ck_assert(cached_soon());
	ck_assert(find_ticker(tid));
	ticker_blocks_all(tid);
}
END_TEST

static pid_t handled_on;
static int handled;

static void note_thread(int sig)
{
	(void)sig;
	__atomic_store_n(&handled_on, gettid(), __ATOMIC_RELAXED);
	__atomic_fetch_add(&handled, 1, __ATOMIC_RELAXED);
	CHECK(right());
}

static void allow(int sig, bool allowed)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, sig);
	pthread_sigmask(allowed ? SIG_UNBLOCK : SIG_BLOCK, &set, NULL);
}

/* Sent to the process while the only other thread blocks it. */
START_TEST(signals_of_the_process)
{
	struct sigaction action = { .sa_handler = note_thread };

	ck_assert(cached_soon());
	ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
	for (int i = 0; i < 50; i++) {
		allow(SIGUSR1, false);
		kill(getpid(), SIGUSR1);
		nap(2 * MS);
		ck_assert_int_eq(handled, i);
		allow(SIGUSR1, true);
		ck_assert_int_eq(handled, i + 1);
		ck_assert_int_eq(handled_on, gettid());
	}
	ck_assert(right() && advances());
}
END_TEST

static void *read_and_switch(void *arg)
{
	for (int i = 0;; i++) {
		CHECK(right());
		if (arg != NULL && i % 4 == 0)
			ct_start(NULL);
		if (arg != NULL && i % 4 == 2)
			ct_stop();
	}
	return NULL;
}

static void exit_among_threads(void)
{
	pthread_t thread;

	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&thread, NULL, read_and_switch,
			      i % 2 ? &thread : NULL) == 0);
	nap(10 * MS);
	exit(0);
}

START_TEST(exit_under_load)
{
	for (int i = 0; i < 30; i++)
		ck_assert(child_does(exit_among_threads));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("process");

	add_situation(suite, "closefrom while ticking", close_descriptors);
	add_situation(suite, "descriptors", opens_none);
	add_situation(suite, "many starts and stops", many_starts_and_stops);
	add_situation(suite, "name and signal mask", name_and_mask);
	add_situation(suite, "signals of the process", signals_of_the_process);
	add_situation(suite, "exit while others read and start and stop",
		exit_under_load);
	return run_suite(suite);
}
