/* SPDX-License-Identifier: MIT */
/*
 * What a tick of 1 ms costs: the library's thread against the barest loop that
 * could do its work, a sleep and two reads of the clock. In turn, in short
 * slices, and the ratio within each round, because what a wake-up costs
 * depends on what else the machine is doing.
 */
#include <argp.h>
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <cachedtime.h>

#define NS_PER_SEC INT64_C(1000000000)
#define TICK_NS	   CT_TICK_DEFAULT_NS
#define ROUNDS_MAX 1000
#define TRIES	   10

static struct options {
	int rounds;
	int slice_ms;
	bool json;
} options = { .rounds = 120, .slice_ms = 120 };

/* What one slice cost. */
struct slice {
	double thread_ns;  /* CPU time of the ticking thread, per tick */
	double process_ns; /* of the whole process */
};

struct round {
	struct slice library, bare;
	double ratio;
};

static struct {
	pthread_t thread;
	bool stop;	/* relaxed: nothing is passed */
	uint64_t ticks; /* relaxed: one writer, a count */
} bare;

static int64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	if (clock_gettime(clock, &ts) != 0)
		err(1, "clock_gettime");
	return ts.tv_sec * NS_PER_SEC + ts.tv_nsec;
}

static void sleep_ns(int64_t ns)
{
	struct timespec ts = { ns / NS_PER_SEC, ns % NS_PER_SEC };

	clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
}

/* A moment when the wall clock's millisecond turns over, as for the library:
 * where it falls among the kernel's own ticks makes a difference. */
static struct timespec first_deadline(void)
{
	int64_t ns = clock_ns(CLOCK_MONOTONIC) + TICK_NS -
		     clock_ns(CLOCK_REALTIME) % TICK_NS;

	return (struct timespec){ ns / NS_PER_SEC, ns % NS_PER_SEC };
}

static void *bare_main(void *arg)
{
	struct timespec deadline = first_deadline();
	struct timespec now;

	(void)arg;
	prctl(PR_SET_TIMERSLACK, 1UL);

	while (!__atomic_load_n(&bare.stop, __ATOMIC_RELAXED)) {
		deadline.tv_nsec += TICK_NS;
		if (deadline.tv_nsec >= NS_PER_SEC) {
			deadline.tv_nsec -= NS_PER_SEC;
			deadline.tv_sec++;
		}
		clock_nanosleep(
			CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, NULL);
		clock_gettime(CLOCK_MONOTONIC, &now);
		clock_gettime(CLOCK_REALTIME, &now);
		__atomic_store_n(&bare.ticks, bare.ticks + 1, __ATOMIC_RELAXED);
	}

	return NULL;
}

/* The kernel's number for a thread's CPU clock, as pthread_getcpuclockid(3)
 * makes it; the library doesn't hand out its pthread_t. */
static clockid_t thread_clock(pid_t tid)
{
	return (clockid_t)(~(unsigned int)tid << 3 | 6);
}

static bool is_library_thread(const char *tid)
{
	char path[64], comm[32] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%.16s/comm", tid);
	file = fopen(path, "re");
	if (file == NULL)
		return false;
	if (fgets(comm, sizeof(comm), file) == NULL)
		comm[0] = '\0';
	fclose(file);
	return strcmp(comm, "cachedtime\n") == 0;
}

static clockid_t library_clock(void)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	pid_t tid = 0;

	if (dir == NULL)
		err(1, "/proc/self/task");
	while (tid == 0 && (entry = readdir(dir)) != NULL)
		if (is_library_thread(entry->d_name))
			tid = (pid_t)atoi(entry->d_name);
	closedir(dir);
	if (tid == 0)
		errx(1, "the library has no thread here");
	return thread_clock(tid);
}

static uint64_t library_ticks(void)
{
	struct ct_status status = { .size = sizeof(status) };

	ct_status(&status);
	return status.ticks;
}

static uint64_t bare_ticks(void)
{
	return __atomic_load_n(&bare.ticks, __ATOMIC_RELAXED);
}

static struct slice measure(
	const char *whose, clockid_t thread, uint64_t (*ticks)(void))
{
	int64_t thread_ns, process_ns;
	uint64_t count;
	int tries = 0;

	/* Past the start. */
	sleep_ns(20 * TICK_NS);

	do {
		count = ticks();
		process_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
		thread_ns = clock_ns(thread);
		sleep_ns(options.slice_ms * INT64_C(1000000));
		thread_ns = clock_ns(thread) - thread_ns;
		process_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - process_ns;
		count = ticks() - count;
		/* An overloaded machine may starve it for so long. */
	} while (count == 0 && ++tries < TRIES);

	if (count == 0)
		errx(1, "no tick of %s in %d times %d ms", whose, tries,
			options.slice_ms);
	return (struct slice){
		.thread_ns = (double)thread_ns / (double)count,
		.process_ns = (double)process_ns / (double)count,
	};
}

static struct slice measure_library(void)
{
	struct ct_config config = { .size = sizeof(config),
		.mode = CT_MODE_TICK, .tick_ns = TICK_NS };
	struct slice slice;
	int ret;

	ret = ct_start(&config);
	if (ret != 0)
		errx(1, "ct_start: %s", strerror(-ret));
	while (ct_age_ns() == 0)
		sleep_ns(TICK_NS);
	slice = measure("the library", library_clock(), library_ticks);
	ct_stop();
	return slice;
}

static struct slice measure_bare(void)
{
	struct slice slice;
	clockid_t clock;
	int ret;

	bare.stop = false;
	ret = pthread_create(&bare.thread, NULL, bare_main, NULL);
	if (ret != 0)
		errx(1, "pthread_create: %s", strerror(ret));
	pthread_getcpuclockid(bare.thread, &clock);
	slice = measure("the bare loop", clock, bare_ticks);
	__atomic_store_n(&bare.stop, true, __ATOMIC_RELAXED);
	pthread_join(bare.thread, NULL);
	return slice;
}

/* Each goes first in every other round. */
static void measure_round(struct round *round, bool library_first)
{
	if (library_first)
		round->library = measure_library();
	round->bare = measure_bare();
	if (!library_first)
		round->library = measure_library();
	round->ratio = round->library.thread_ns / round->bare.thread_ns;
}

static int compare_ratios(const void *a, const void *b)
{
	const struct round *x = a, *y = b;

	return (x->ratio > y->ratio) - (x->ratio < y->ratio);
}

static int compare_doubles(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double median_of(
	const struct round *rounds, double (*value)(const struct round *))
{
	double values[ROUNDS_MAX];

	for (int i = 0; i < options.rounds; i++)
		values[i] = value(&rounds[i]);
	qsort(values, (size_t)options.rounds, sizeof(values[0]),
		compare_doubles);
	return values[options.rounds / 2];
}

static double library_thread(const struct round *round)
{
	return round->library.thread_ns;
}

static double bare_thread(const struct round *round)
{
	return round->bare.thread_ns;
}

static double library_process(const struct round *round)
{
	return round->library.process_ns;
}

static double bare_process(const struct round *round)
{
	return round->bare.process_ns;
}

static void report(struct round *rounds)
{
	const char *format = options.json ?
		"{\"rounds\": %d, \"slice_ms\": %d,\n"
		" \"library_ns\": %.0f, \"bare_ns\": %.0f,\n"
		" \"library_process_ns\": %.0f, \"bare_process_ns\": %.0f,\n"
		" \"ratio_q1\": %.3f, \"ratio\": %.3f, \"ratio_q3\": %.3f}\n" :
		"%d rounds of %d ms each; medians\n"
		"CPU per tick, thread:   library %5.0f ns, bare loop %5.0f ns\n"
		"CPU per tick, process:  library %5.0f ns, bare loop %5.0f ns\n"
		"ratio within a round:   q1 %.3f, median %.3f, q3 %.3f\n";
	double library = median_of(rounds, library_thread);
	double loop = median_of(rounds, bare_thread);
	double whole_library = median_of(rounds, library_process);
	double whole_loop = median_of(rounds, bare_process);

	qsort(rounds, (size_t)options.rounds, sizeof(rounds[0]),
		compare_ratios);
	printf(format, options.rounds, options.slice_ms, library, loop,
		whole_library, whole_loop, rounds[options.rounds / 4].ratio,
		rounds[options.rounds / 2].ratio,
		rounds[options.rounds * 3 / 4].ratio);
}

static int number(struct argp_state *state, const char *text, int max)
{
	char *end;
	long value = strtol(text, &end, 10);

	if (*end != '\0' || value < 1 || value > max)
		argp_error(state, "%s: want a number from 1 to %d", text, max);
	return (int)value;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case 'r':
		options.rounds = number(state, arg, ROUNDS_MAX);
		return 0;
	case 's':
		options.slice_ms = number(state, arg, 60000);
		return 0;
	case 'j':
		options.json = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int main(int argc, char **argv)
{
	static const struct argp_option known[] = {
		{ "rounds", 'r', "N", 0, "Measure each N times (120)", 0 },
		{ "slice", 's', "MS", 0, "For so long each (120)", 0 },
		{ "json", 'j', NULL, 0, "For a program to read", 0 },
		{ 0 },
	};
	static const struct argp argp = { .options = known, .parser = parse,
		.doc = "CPU time of one tick: the library's thread against a "
		       "bare loop" };
	static struct round rounds[ROUNDS_MAX];

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	for (int i = 0; i < options.rounds; i++)
		measure_round(&rounds[i], i % 2 == 0);
	report(rounds);
	return 0;
}
