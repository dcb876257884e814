/* SPDX-License-Identifier: MIT */
/*
 * The thread that happens to read first: cancelled meanwhile, pinned, idle or
 * nice. The ticker is the process's, not its.
 */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

#include "clocks.h"

static void *read_cancelled(void *arg)
{
	(void)arg;
	/* Pending, and taken at the first cancellation point. */
	pthread_cancel(pthread_self());
	ct_now_ms();
	pthread_testcancel();
	return NULL;
}

static void run(void *(*read)(void *))
{
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, read, NULL), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
}

START_TEST(cancelled)
{
	struct ct_status status = { .size = sizeof(status) };

	run(read_cancelled);
	ck_assert_int_eq(ct_status(&status), 0);
	ck_assert(cached_soon());
	ck_assert_int_eq(ct_stop(), 0);
}
END_TEST

/* The thread of that name; 0: none. */
static pid_t ticker(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *task;
	char path[300], name[32];
	pid_t found = 0;
	FILE *file;

	while (found == 0 && (task = readdir(tasks)) != NULL) {
		snprintf(path, sizeof(path), "/proc/self/task/%s/comm",
			task->d_name);
		file = fopen(path, "r");
		if (file == NULL)
			continue;
		if (fgets(name, sizeof(name), file) != NULL &&
			strcmp(name, "cachedtime\n") == 0)
			found = atoi(task->d_name);
		fclose(file);
	}
	closedir(tasks);
	return found;
}

static bool made_so;

static void *read_idle(void *arg)
{
	struct sched_param none = { .sched_priority = 0 };

	(void)arg;
	made_so = sched_setscheduler(0, SCHED_IDLE, &none) == 0;
	ck_assert(cached_soon());
	return NULL;
}

START_TEST(idle)
{
	run(read_idle);
	ck_assert(made_so);
	ck_assert_int_eq(sched_getscheduler(ticker()), SCHED_OTHER);
}
END_TEST

static void *read_nice(void *arg)
{
	(void)arg;
	made_so = setpriority(PRIO_PROCESS, 0, 19) == 0;
	ck_assert(cached_soon());
	return NULL;
}

START_TEST(nice_one)
{
	run(read_nice);
	ck_assert(made_so);
	/* To become less nice takes a privilege. */
	if (geteuid() == 0)
		ck_assert_int_eq(getpriority(PRIO_PROCESS, (id_t)ticker()),
			getpriority(PRIO_PROCESS, (id_t)getpid()));
}
END_TEST

static void *read_pinned(void *arg)
{
	cpu_set_t allowed, one;
	size_t cpu = 0;

	(void)arg;
	sched_getaffinity(0, sizeof(allowed), &allowed);
	while (!CPU_ISSET(cpu, &allowed))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	made_so = sched_setaffinity(0, sizeof(one), &one) == 0;
	ck_assert(cached_soon());
	return NULL;
}

START_TEST(pinned)
{
	cpu_set_t mine, its;

	run(read_pinned);
	ck_assert(made_so);
	sched_getaffinity(0, sizeof(mine), &mine);
	sched_getaffinity(ticker(), sizeof(its), &its);
	ck_assert(CPU_EQUAL(&mine, &its));
}
END_TEST

/* In the ticker: what it calls from within. */
static int status_from_within = 1;

static uint64_t count_and_ask(void)
{
	struct ct_status status = { .size = sizeof(status) };
	struct timespec ts;

	__atomic_store_n(
		&status_from_within, ct_status(&status), __ATOMIC_RELAXED);
	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

START_TEST(asks_from_within)
{
	struct ct_clocksource counter = { .name = "asking",
		.read = count_and_ask, .mask = UINT64_MAX, .hz = 1000000000 };
	struct ct_config config = { .size = sizeof(config),
		.mode = CT_MODE_TICK, .clocksource = &counter };

	for (int i = 0; i < 20; i++) {
		ck_assert_int_eq(ct_start(&config), 0);
		ck_assert(cached_soon());
		ck_assert_int_eq(ct_stop(), 0);
	}
	ck_assert_int_eq(
		__atomic_load_n(&status_from_within, __ATOMIC_RELAXED),
		-EDEADLK);
}
END_TEST

static void add(Suite *suite, const char *situation, const TTest *test)
{
	TCase *tcase = tcase_create(situation);

	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, test);
	suite_add_tcase(suite, tcase);
}

int main(void)
{
	Suite *suite = suite_create("first reader");

	add(suite, "cancelled", cancelled);
	add(suite, "idle", idle);
	add(suite, "nice", nice_one);
	add(suite, "pinned", pinned);
	add(suite, "counter asks for the status", asks_from_within);
	return run_suite(suite);
}
