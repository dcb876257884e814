/* SPDX-License-Identifier: MIT */
/*
 * What a running reader sees of the ticker: prints one line a sample,
 *
 *	age NS		of ct_mono_ns(), at a moment chosen by the reader
 *	late NS		of a publication, after the edge that it was meant for
 *	cpu NS		of the ticker's thread, per publication (once, at the end)
 *
 *	lateness plain SECONDS	with CT_TICK, CT_PRIORITY … as for any program
 *	lateness fresh SECONDS	the age is that of ct_mono_ms_fresh(10), which
 *				publishes, so what the ticker did can't be told
 *
 * lateness.py runs it under load and sums up.
 */
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cachedtime.h>

#define SAMPLE_NS 50000
#define FRESH_MS 10

static int64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

/* Time on the CPU of this process's ticker thread; 0 if there is none. */
static int64_t ticker_cpu_ns(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *task;
	long long cpu_ns = 0;
	char path[320], name[32];
	FILE *file;

	while (cpu_ns == 0 && (task = readdir(tasks)) != NULL) {
		snprintf(path, sizeof(path), "/proc/self/task/%s/comm",
			task->d_name);
		file = fopen(path, "r");
		if (file == NULL)
			continue;
		if (fgets(name, sizeof(name), file) == NULL)
			name[0] = '\0';
		fclose(file);
		/* The main thread of a program of that name is older. */
		if (strcmp(name, "cachedtime\n") != 0)
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%s/schedstat",
			task->d_name);
		file = fopen(path, "r");
		if (file == NULL)
			continue;
		if (fscanf(file, "%lld", &cpu_ns) != 1)
			cpu_ns = 0;
		fclose(file);
	}
	closedir(tasks);
	return cpu_ns;
}

static void sample_fresh(void)
{
	int64_t before_ns = now_ns(CLOCK_MONOTONIC);
	int64_t fresh_ms = ct_mono_ms_fresh(FRESH_MS);

	/* In whole milliseconds, as the reader rounds down. */
	printf("age %lld\n",
		(long long)(before_ns / 1000000 - fresh_ms) * 1000000);
}

static void sample_plain(int64_t tick_ns, int64_t *last_wall_ns)
{
	int64_t before_ns = now_ns(CLOCK_MONOTONIC);
	int64_t wall_ns;

	printf("age %lld\n", (long long)(before_ns - ct_mono_ns()));

	wall_ns = ct_now_ns();
	if (wall_ns != *last_wall_ns)
		printf("late %lld\n", (long long)(wall_ns % tick_ns));
	*last_wall_ns = wall_ns;
}

int main(int argc, char **argv)
{
	struct ct_status status = { .size = sizeof(status) };
	int64_t end_ns, next_ns, last_wall_ns = 0, cpu_ns;
	uint64_t ticks;
	bool fresh;

	if (argc != 3) {
		fprintf(stderr, "usage: lateness plain|fresh SECONDS\n");
		return 2;
	}
	fresh = strcmp(argv[1], "fresh") == 0;

	ct_start(NULL);
	while (ct_age_ns() == 0)
		;
	cpu_ns = ticker_cpu_ns();
	ct_status(&status);
	ticks = status.ticks;

	next_ns = now_ns(CLOCK_MONOTONIC);
	end_ns = next_ns + atoi(argv[2]) * INT64_C(1000000000);
	while (next_ns < end_ns) {
		next_ns += SAMPLE_NS;
		while (now_ns(CLOCK_MONOTONIC) < next_ns)
			;
		if (fresh)
			sample_fresh();
		else
			sample_plain(status.tick_ns, &last_wall_ns);
	}

	cpu_ns = ticker_cpu_ns() - cpu_ns;
	ct_status(&status);
	if (status.error[0] != '\0')
		fprintf(stderr, "lateness: %s\n", status.error);
	if (status.ticks > ticks)
		printf("cpu %lld\n",
			(long long)(cpu_ns / (int64_t)(status.ticks - ticks)));
	printf("ticks %llu\n", (unsigned long long)(status.ticks - ticks));
	return 0;
}
