/* SPDX-License-Identifier: MIT */
/*
 * Fresh reads while the ticker stands still in a debugger: never older than
 * asked for, by the kernel's clocks as they were before the call.
 *
 *	test_fresh_frozen [reads]
 */
#include "counters.h"

#include <dirent.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>

#include <cachedtime.h>

static int64_t reads = 1000000;
static int64_t mailbox;
/* Reads in which the kernel's coarse clock, the judge, lagged by two of its
 * ticks or more: the kernel's, not ours. */
static int64_t judge_late;
static int64_t coarse_tick_ns;

static pid_t find_ticker(void)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	char path[300], name[32];
	pid_t tid = 0;
	FILE *file;

	CHECK(dir != NULL);
	while ((entry = readdir(dir)) != NULL) {
		snprintf(path, sizeof(path), "/proc/self/task/%s/comm",
			entry->d_name);
		file = fopen(path, "r");
		if (file == NULL)
			continue;
		if (fgets(name, sizeof(name), file) != NULL &&
			strcmp(name, "cachedtime\n") == 0)
			tid = atoi(entry->d_name);
		fclose(file);
	}
	closedir(dir);
	return tid;
}

/* In a child: hold the thread until the pipe is closed. */
static void hold(pid_t tid, int said, int until)
{
	char ok = '0';
	int status;

	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) == 0 &&
		ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) == 0 &&
		waitpid(tid, &status, __WALL) == tid)
		ok = '1';
	CHECK(write(said, &ok, 1) == 1);
	if (read(until, &ok, 1) < 0)
		perror("read");
	ptrace(PTRACE_DETACH, tid, NULL, NULL);
	_exit(0);
}

/* Returns what to close to let it go; -1 if that isn't permitted. */
static int freeze(pid_t tid, pid_t *holder)
{
	int said[2], until[2];
	char ok = '0';

	CHECK(pipe(said) == 0 && pipe(until) == 0);
	*holder = fork();
	CHECK(*holder >= 0);
	if (*holder == 0) {
		close(until[1]);
		sleep_ns(50 * MS); /* until it may, by PR_SET_PTRACER */
		hold(tid, said[1], until[0]);
	}
	prctl(PR_SET_PTRACER, *holder);
	close(said[1]);
	close(until[0]);
	CHECK(read(said[0], &ok, 1) == 1);
	close(said[0]);
	return ok == '1' ? until[1] : -1;
}

/* Is `ms` older than asked for? */
static bool too_old(int64_t ms, int64_t before_ns, int64_t age_ms,
	int64_t judge_lag_ns)
{
	if (ms >= before_ns / MS - age_ms)
		return false;
	if (judge_lag_ns < 2 * coarse_tick_ns)
		return true;
	__atomic_fetch_add(&judge_late, 1, __ATOMIC_RELAXED);
	return false;
}

static void *read_fresh(void *arg)
{
	uint64_t state = 88172645463325252 + (uint64_t)(uintptr_t)arg;
	int64_t old = 0, back = 0, worst_ms = 0;
	int64_t age_ms, wall_ns, mono_ns, lag_ns, received, ms;

	for (int64_t i = 0; i < reads / 2; i++) {
		age_ms = 8 + (int64_t)(random_next(&state) % 993);
		/* Mostly short ones, which are the hard ones. */
		if (i % 4 != 0)
			age_ms = 8 + age_ms % 13;

		/* The judge last, so that its lag isn't called the
		 * kernel's where this thread was held up. */
		lag_ns = clock_ns(CLOCK_MONOTONIC);
		lag_ns -= clock_ns(CLOCK_MONOTONIC_COARSE);
		wall_ns = clock_ns(CLOCK_REALTIME);
		ms = ct_now_ms_fresh(age_ms);
		if (too_old(ms, wall_ns, age_ms, lag_ns)) {
			old++;
			if (wall_ns / MS - age_ms - ms > worst_ms)
				worst_ms = wall_ns / MS - age_ms - ms;
		}

		received = __atomic_load_n(&mailbox, __ATOMIC_ACQUIRE);
		lag_ns = clock_ns(CLOCK_MONOTONIC);
		lag_ns -= clock_ns(CLOCK_MONOTONIC_COARSE);
		mono_ns = clock_ns(CLOCK_MONOTONIC);
		ms = ct_mono_ms_fresh(age_ms);
		if (too_old(ms, mono_ns, age_ms, lag_ns)) {
			old++;
			if (mono_ns / MS - age_ms - ms > worst_ms)
				worst_ms = mono_ns / MS - age_ms - ms;
		}
		back += ms < received;
		__atomic_store_n(&mailbox, ms, __ATOMIC_RELEASE);
	}
	printf("%lld of %lld older than asked for, by up to %lld ms; %lld "
		"back\n", (long long)old, (long long)reads,
		(long long)worst_ms, (long long)back);
	return (void *)(intptr_t)(old + back);
}

int main(int argc, char **argv)
{
	struct ct_config config = { .size = sizeof(config),
		.mode = CT_MODE_TICK, .backend = "realtime" };
	struct timespec tick;
	pthread_t threads[2];
	pid_t ticker, holder;
	int64_t age_ns;
	void *wrong;
	int release, failed = 0;

	if (argc > 1)
		reads = atoll(argv[1]);
	clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
	coarse_tick_ns = tick.tv_nsec;

	CHECK(ct_start(&config) == 0);
	sleep_ns(50 * MS);
	ticker = find_ticker();
	CHECK(ticker > 0);
	release = freeze(ticker, &holder);
	if (release < 0)
		skip("ptrace is refused here");
	sleep_ns(100 * MS);
	age_ns = ct_age_ns();
	CHECK(age_ns > 50 * MS); /* it does stand */

	for (intptr_t i = 0; i < 2; i++)
		CHECK(pthread_create(&threads[i], NULL, read_fresh,
			      (void *)i) == 0);
	for (int i = 0; i < 2; i++) {
		CHECK(pthread_join(threads[i], &wrong) == 0);
		failed |= wrong != NULL;
	}
	printf("%lld reads while the coarse clock lagged by two ticks\n",
		(long long)judge_late);

	close(release);
	CHECK(waitpid(holder, NULL, 0) == holder);
	/* It goes on. */
	sleep_ns(100 * MS);
	CHECK(ct_stop() == 0);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
