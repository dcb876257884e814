/* SPDX-License-Identifier: MIT */
/*
 * How often the cached millisecond is the true one, and how old a cached time
 * is. Reads come at random moments: from a thread that has just slept, and
 * from one that has been busy, because the ticker then competes with it.
 */
#include <argp.h>
#include <err.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include <cachedtime.h>

#define NS_PER_SEC INT64_C(1000000000)
#define NS_PER_MS  INT64_C(1000000)

/* Between reads: one tick and more, so that every phase of it comes up. */
#define PAUSE_MIN_NS  INT64_C(100000)
#define PAUSE_SPAN_NS INT64_C(2000000)

static struct options {
	int seconds;
	bool json;
} options = { .seconds = 10 };

/* A way to spend the time between two reads. */
struct manner {
	const char *name;
	void (*pause)(int64_t ns);
	size_t reads;
	size_t right;
	int64_t *age_ns;
};

static int64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	if (clock_gettime(clock, &ts) != 0)
		err(1, "clock_gettime");
	return ts.tv_sec * NS_PER_SEC + ts.tv_nsec;
}

static void pause_asleep(int64_t ns)
{
	struct timespec ts = { ns / NS_PER_SEC, ns % NS_PER_SEC };

	clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
}

static void pause_busy(int64_t ns)
{
	int64_t end_ns = clock_ns(CLOCK_MONOTONIC) + ns;

	while (clock_ns(CLOCK_MONOTONIC) < end_ns)
		;
}

/* One read, between two of the true clock. */
static void look(struct manner *manner)
{
	int64_t before_ns, after_ns, ms, ns;

	before_ns = clock_ns(CLOCK_REALTIME);
	ms = ct_now_ms();
	ns = ct_now_ns();
	after_ns = clock_ns(CLOCK_REALTIME);

	if (ms == before_ns / NS_PER_MS || ms == after_ns / NS_PER_MS)
		manner->right++;
	manner->age_ns[manner->reads++] = after_ns - ns;
}

static void measure(struct manner *manner, int64_t for_ns)
{
	int64_t end_ns = clock_ns(CLOCK_MONOTONIC) + for_ns;
	size_t max = (size_t)(for_ns / PAUSE_MIN_NS);

	manner->age_ns = calloc(max, sizeof(manner->age_ns[0]));
	if (manner->age_ns == NULL)
		err(1, "calloc");
	while (manner->reads < max && clock_ns(CLOCK_MONOTONIC) < end_ns) {
		manner->pause(PAUSE_MIN_NS + random() % PAUSE_SPAN_NS);
		look(manner);
	}
}

static int compare(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* In microseconds, of sorted ages. */
static double quantile(const struct manner *manner, double q)
{
	size_t last = manner->reads - 1;

	return (double)manner->age_ns[(size_t)((double)last * q)] / 1000;
}

static void report(struct manner *manner)
{
	const char *format = options.json ?
		"\"%s\": {\"reads\": %zu, \"right\": %.5f, \"p50_us\": %.1f, "
		"\"p99_us\": %.1f, \"p999_us\": %.1f, \"max_us\": %.1f}" :
		"%s: %zu reads, right %.5f; age p50 %.1f, p99 %.1f, "
		"p99.9 %.1f, max %.1f us\n";

	qsort(manner->age_ns, manner->reads, sizeof(manner->age_ns[0]),
		compare);
	printf(format, manner->name, manner->reads,
		(double)manner->right / (double)manner->reads,
		quantile(manner, 0.5), quantile(manner, 0.99),
		quantile(manner, 0.999), quantile(manner, 1));
}

static void report_ticker(void)
{
	const char *format = options.json ?
		"\"ticks\": %llu, \"late_ticks\": %llu, \"max_late_us\": %.1f" :
		"%llu ticks, %llu of them late, worst %.1f us\n";
	struct ct_status status = { .size = sizeof(status) };

	ct_status(&status);
	printf(format, (unsigned long long)status.ticks,
		(unsigned long long)status.late_ticks,
		(double)status.max_late_ns / 1000);
}

static void report_all(struct manner *asleep, struct manner *busy)
{
	const char *separator = options.json ? ",\n " : "";

	fputs(options.json ? "{" : "", stdout);
	report(asleep);
	fputs(separator, stdout);
	report(busy);
	fputs(separator, stdout);
	report_ticker();
	fputs(options.json ? "}\n" : "", stdout);
}

static void start_ticking(void)
{
	struct ct_config config = { .size = sizeof(config),
		.mode = CT_MODE_TICK, .tick_ns = CT_TICK_DEFAULT_NS };
	int ret;

	ret = ct_start(&config);
	if (ret != 0)
		errx(1, "ct_start: %s", strerror(-ret));
	while (ct_age_ns() == 0)
		pause_asleep(NS_PER_MS);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case 's':
		options.seconds = atoi(arg);
		if (options.seconds < 2 || options.seconds > 3600)
			argp_error(state, "%s: want 2 to 3600 seconds", arg);
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
		{ "seconds", 's', "S", 0, "Measure for so long (10)", 0 },
		{ "json", 'j', NULL, 0, "For a program to read", 0 },
		{ 0 },
	};
	static const struct argp argp = { .options = known, .parser = parse,
		.doc = "How often the cached millisecond is the true one" };
	struct manner asleep = { .name = "asleep", .pause = pause_asleep };
	struct manner busy = { .name = "busy", .pause = pause_busy };

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	prctl(PR_SET_TIMERSLACK, 1UL);
	srandom((unsigned int)clock_ns(CLOCK_MONOTONIC));
	start_ticking();

	measure(&asleep, options.seconds * NS_PER_SEC / 2);
	measure(&busy, options.seconds * NS_PER_SEC / 2);

	report_all(&asleep, &busy);
	ct_stop();
	free(asleep.age_ns);
	free(busy.age_ns);
	return 0;
}
