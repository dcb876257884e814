/* SPDX-License-Identifier: MIT */
/*
 * The first read ever is made by a signal handler that interrupts malloc. To
 * start the ticker there would take malloc's lock a second time, so that the
 * process hangs, or find its lists half-linked, so that it crashes.
 *
 * Each round is a child that has not started anything: it allocates in a loop
 * while a thread of its own sends it the signal. (The thread also makes glibc
 * lock at all.) Arguments: how many rounds; an allocator to preload, and a
 * symbol of it.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>

#include "clocks.h"

#define WORKERS 4
/* A hang is for ever; a thread that was just created may wait for its first turn
 * for eight seconds on a machine with more to do than it can (seen on Linux 6.18
 * without this library). */
#define PATIENCE_NS (60 * SEC)
/* The build's own limit comes first. */
#define FOR_ALL_NS (3600 * SEC)

static pthread_t main_thread;
static int handled;

static void read_first(int sig)
{
	(void)sig;
	CHECK(right());
	__atomic_fetch_add(&handled, 1, __ATOMIC_RELAXED);
}

static void *send_signal(void *arg)
{
	nap(20000 + (int64_t)(uintptr_t)arg % 50000);
	pthread_kill(main_thread, SIGUSR1);
	return NULL;
}

static void allocate(unsigned int round)
{
	static void *volatile kept[64];
	unsigned int i = round * 7;

	while (__atomic_load_n(&handled, __ATOMIC_RELAXED) == 0) {
		free(kept[i % 64]);
		/* Mostly beyond the thread's own cache. */
		kept[i % 64] = malloc(1500 + i * 2654435761u % 20000);
		i++;
	}
}

static void one_round(unsigned int round)
{
	pthread_t thread;

	main_thread = pthread_self();
	CHECK(pthread_create(&thread, NULL, send_signal,
		      (void *)(uintptr_t)(round * 2654435761u)) == 0);
	allocate(round);
	_exit(0);
}

static void work(unsigned int from, unsigned int to)
{
	struct sigaction action = { .sa_handler = read_first };

	sigaction(SIGUSR1, &action, NULL);
	for (unsigned int round = from; round < to; round++) {
		pid_t pid = fork();

		if (pid == 0)
			one_round(round);
		CHECK(ended_well_within(pid, PATIENCE_NS));
	}
	_exit(0);
}

/* Runs this program once more, with the allocator in it. */
static void preload(const char *library, const char *symbol, char **argv)
{
	if (getenv("LD_PRELOAD") == NULL) {
		setenv("LD_PRELOAD", library, 1);
		execv("/proc/self/exe", argv);
		perror("exec");
		exit(EXIT_FAILURE);
	}
	if (dlsym(RTLD_DEFAULT, symbol) == NULL)
		skip("that allocator isn't installed");
}

int main(int argc, char **argv)
{
	unsigned int rounds = argc > 1 ? (unsigned int)atoi(argv[1]) : 1000;
	bool well = true;
	pid_t pid[WORKERS];

	if (argc > 3)
		preload(argv[2], argv[3], argv);

	for (unsigned int i = 0; i < WORKERS; i++) {
		pid[i] = fork();
		if (pid[i] == 0)
			work(i * rounds / WORKERS, (i + 1) * rounds / WORKERS);
	}
	for (unsigned int i = 0; i < WORKERS; i++)
		well = ended_well_within(pid[i], FOR_ALL_NS) && well;

	return well ? EXIT_SUCCESS : EXIT_FAILURE;
}
