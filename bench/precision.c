/* SPDX-License-Identifier: MIT */
/*
 * How far precise time is from the kernel's clock. Each sample is one precise
 * read between two of CLOCK_REALTIME, and is off by its distance to the middle
 * of those: more closely it can't be told, since nobody knows where within its
 * call a clock is read. A sample whose bracket is wide (an interrupt, or the
 * reader renewed the segment) tells little; it is counted, dropped and tried
 * again at once, so that what was renewed is judged by the next read.
 *
 * Each case is a process of its own, whose first read is the first. The control
 * has CLOCK_REALTIME in the place of precise time: what it is off by is the
 * method's, and the machine's.
 */
#include <argp.h>
#include <err.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cachedtime.h>

#define NS_PER_SEC INT64_C(1000000000)

/* From the first read on, which these samples aren't of. */
#define SETTLE_NS NS_PER_SEC

#define BRACKET_MAX_NS 200
#define TRIES	       3

/* Between reads at random: up to two segments' length. */
#define PAUSE_MIN_NS  INT64_C(50000)
#define PAUSE_SPAN_NS INT64_C(4950000)

/* Of a histogram, in steps of 1 ns; what is further off is in its last one. */
#define REACH_NS 1000000

/* Of the trace: errors in steps of 1 ns, and points of time, each further from
 * the last one by a fraction of the time gone by. */
#define TRACE_REACH_NS	1000
#define TRACE_BEGIN_NS	INT64_C(20000000)
#define TRACE_PER_POINT 10

static struct options {
	int seconds;
	bool json;
	const char *trace;
} options = { .seconds = 60 };

enum reader { FAST, PAUSED, CONTROL };

static const char *const reader_names[] = { "fast", "paused", "control" };

struct test {
	bool busy;
	enum reader reader;
	bool ticker;
};

static const struct test tests[] = {
	{ false, FAST, false },
	{ false, PAUSED, false },
	{ false, FAST, true },
	{ false, PAUSED, true },
	{ false, CONTROL, false },
	{ true, FAST, false },
	{ true, PAUSED, false },
	{ true, FAST, true },
	{ true, PAUSED, true },
	{ true, CONTROL, false },
};

#define TESTS (sizeof(tests) / sizeof(tests[0]))

struct sample {
	int64_t error2_ns; /* twice precise - clock */
	int64_t bracket_ns;
};

/* What is known of a case. */
static struct {
	uint64_t samples;
	uint64_t dropped;
	uint64_t renewed;  /* of these, where a segment was renewed */
	int64_t sum2_ns;   /* of twice the errors */
	int64_t worst2_ns; /* signed, twice */
	uint64_t errors[REACH_NS + 1];
	uint64_t brackets[BRACKET_MAX_NS + 1];
	bool counts; /* precise time came from the counter */
} found;

/* Of one point of the trace. */
static struct {
	FILE *file;
	int64_t begin_ns, end_ns;
	uint64_t samples;
	uint32_t errors[2 * TRACE_REACH_NS + 1];
} trace;

static int64_t in_ns(const struct timespec *ts)
{
	return ts->tv_sec * NS_PER_SEC + ts->tv_nsec;
}

static int64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	if (clock_gettime(clock, &ts) != 0)
		err(1, "clock_gettime");
	return in_ns(&ts);
}

static void sleep_ns(int64_t ns)
{
	struct timespec ts = { ns / NS_PER_SEC, ns % NS_PER_SEC };

	clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
}

/* Converted only when all is read, to keep the bracket narrow. */
static struct sample look(void)
{
	struct timespec before, after;
	int64_t ns;

	clock_gettime(CLOCK_REALTIME, &before);
	ns = ct_precise_ordered_ns();
	clock_gettime(CLOCK_REALTIME, &after);
	return (struct sample){
		.error2_ns = 2 * ns - in_ns(&before) - in_ns(&after),
		.bracket_ns = in_ns(&after) - in_ns(&before),
	};
}

static struct sample look_at_control(void)
{
	struct timespec before, clock, after;

	clock_gettime(CLOCK_REALTIME, &before);
	clock_gettime(CLOCK_REALTIME, &clock);
	clock_gettime(CLOCK_REALTIME, &after);
	return (struct sample){
		.error2_ns = 2 * in_ns(&clock) - in_ns(&before) - in_ns(&after),
		.bracket_ns = in_ns(&after) - in_ns(&before),
	};
}

/* The latch of page.h; nothing is read on the strength of it. */
static uint64_t segments(void)
{
	return __atomic_load_n(&ct_page.segment_seq, __ATOMIC_RELAXED);
}

/*
 * What a look needs is brought into the cache first: a wait for it would be
 * between the first clock and the counter, and hence be taken for error. By
 * loads only, which renew nothing.
 */
static void warm_up(void)
{
	struct timespec ts;

	__atomic_load_n(&ct_page.segment[0].cycles, __ATOMIC_RELAXED);
	__atomic_load_n(&ct_page.segment[1].cycles, __ATOMIC_RELAXED);
	clock_gettime(CLOCK_REALTIME, &ts);
}

/* True with a sample that says something. */
static bool try_look(enum reader reader, bool counted, struct sample *sample)
{
	uint64_t before = segments();

	warm_up();
	*sample = reader == CONTROL ? look_at_control() : look();
	if (sample->bracket_ns >= 0 && sample->bracket_ns <= BRACKET_MAX_NS)
		return true;
	if (counted) {
		found.dropped++;
		found.renewed += segments() != before;
	}
	return false;
}

static int64_t magnitude(int64_t value)
{
	return value < 0 ? -value : value;
}

static void count(const struct sample *sample)
{
	int64_t error_ns = (magnitude(sample->error2_ns) + 1) / 2;

	found.samples++;
	found.errors[error_ns < REACH_NS ? error_ns : REACH_NS]++;
	found.brackets[sample->bracket_ns]++;
	found.sum2_ns += sample->error2_ns;
	if (magnitude(sample->error2_ns) > magnitude(found.worst2_ns))
		found.worst2_ns = sample->error2_ns;
}

/* The smallest error that `share` of the point's samples don't exceed. */
static int trace_quantile(double share)
{
	uint64_t rank = (uint64_t)((double)(trace.samples - 1) * share);
	uint64_t seen = 0;
	int i;

	for (i = 0; i < 2 * TRACE_REACH_NS; i++) {
		seen += trace.errors[i];
		if (seen > rank)
			break;
	}
	return i - TRACE_REACH_NS;
}

static void trace_end_point(void)
{
	if (trace.samples > 0 && trace.begin_ns > 0)
		fprintf(trace.file, "%.3f %d %d %d %d %d\n",
			(double)(trace.begin_ns + trace.end_ns) / 2e9,
			trace_quantile(0.0001), trace_quantile(0.01),
			trace_quantile(0.5), trace_quantile(0.99),
			trace_quantile(0.9999));
	trace.samples = 0;
	memset(trace.errors, 0, sizeof(trace.errors));
	trace.begin_ns = trace.end_ns;
	trace.end_ns += trace.end_ns / TRACE_PER_POINT;
}

static void trace_add(const struct sample *sample, int64_t after_ns)
{
	int64_t error_ns = sample->error2_ns / 2;

	while (after_ns >= trace.end_ns)
		trace_end_point();
	if (error_ns > TRACE_REACH_NS)
		error_ns = TRACE_REACH_NS;
	if (error_ns < -TRACE_REACH_NS)
		error_ns = -TRACE_REACH_NS;
	trace.errors[error_ns + TRACE_REACH_NS]++;
	trace.samples++;
}

static void pause_at_random(void)
{
	sleep_ns(PAUSE_MIN_NS + random() % PAUSE_SPAN_NS);
}

static bool is_precise(void)
{
	struct ct_status status = { .size = sizeof(status) };

	ct_status(&status);
	return status.precise;
}

/* So long after the first read. */
static void take_sample(enum reader reader, int64_t after_ns)
{
	bool counted = after_ns >= SETTLE_NS;
	struct sample sample;

	for (int i = 0; i < TRIES; i++) {
		if (!try_look(reader, counted, &sample))
			continue;
		if (counted)
			count(&sample);
		if (trace.file != NULL)
			trace_add(&sample, after_ns);
		return;
	}
}

static void measure(const struct test *test)
{
	/* Coarse: a cheap clock that can't be set. */
	int64_t start_ns = clock_ns(CLOCK_MONOTONIC_COARSE);
	int64_t all_ns = SETTLE_NS + options.seconds * NS_PER_SEC;
	int64_t after_ns;

	for (;;) {
		after_ns = clock_ns(CLOCK_MONOTONIC_COARSE) - start_ns;
		if (after_ns >= all_ns)
			break;
		if (test->reader == PAUSED)
			pause_at_random();
		take_sample(test->reader, after_ns);
	}
	found.counts = is_precise();
}

static const char *load_name(const struct test *test)
{
	return test->busy ? "busy" : "idle";
}

static void *spin(void *arg)
{
	(void)arg;
	for (;;)
		__asm__ volatile("");
	return NULL;
}

/* One for each CPU; they end with the process. */
static void start_spinning(void)
{
	pthread_t thread;
	cpu_set_t set;
	int ret;

	CPU_ZERO(&set);
	sched_getaffinity(0, sizeof(set), &set);
	for (int i = 0; i < CPU_COUNT(&set); i++) {
		ret = pthread_create(&thread, NULL, spin, NULL);
		if (ret != 0)
			errx(1, "pthread_create: %s", strerror(ret));
	}
}

/* The environment's CT_TICK counts, as for any program. */
static void start_ticking(void)
{
	struct ct_config config = { .size = sizeof(config),
		.mode = CT_MODE_TICK };
	int ret;

	ret = ct_start(&config);
	if (ret != 0)
		errx(1, "ct_start: %s", strerror(-ret));
	while (ct_age_ns() == 0)
		sleep_ns(NS_PER_SEC / 1000);
}

/* The smallest value that `share` of those counted don't exceed. */
static int quantile(const uint64_t *counts, int last, double share)
{
	uint64_t rank = (uint64_t)((double)(found.samples - 1) * share);
	uint64_t seen = 0;
	int i;

	for (i = 0; i < last; i++) {
		seen += counts[i];
		if (seen > rank)
			break;
	}
	return i;
}

static int bracket(void)
{
	return quantile(found.brackets, BRACKET_MAX_NS, 0.5);
}

static int error(double share)
{
	return quantile(found.errors, REACH_NS, share);
}

static double mean_ns(void)
{
	return (double)found.sum2_ns / 2 / (double)found.samples;
}

static void report_json(const struct test *test)
{
	printf("  {\"load\": \"%s\", \"reader\": \"%s\", \"ticker\": %s, "
	       "\"precise\": %s,\n"
	       "   \"samples\": %llu, \"dropped\": %llu, \"renewed\": %llu, "
	       "\"bracket_ns\": %d,\n"
	       "   \"p50_ns\": %d, \"p99_ns\": %d, \"p999_ns\": %d, "
	       "\"p9999_ns\": %d,\n"
	       "   \"worst_ns\": %.1f, \"mean_ns\": %.2f}",
		load_name(test), reader_names[test->reader],
		test->ticker ? "true" : "false",
		found.counts ? "true" : "false",
		(unsigned long long)found.samples,
		(unsigned long long)found.dropped,
		(unsigned long long)found.renewed, bracket(), error(0.5),
		error(0.99), error(0.999), error(0.9999),
		(double)found.worst2_ns / 2, mean_ns());
}

static void report_line(const struct test *test)
{
	printf("%-4s %-7s %-6s %10llu %9llu %9llu %7d %5d %5d %5d %6d %7.1f "
	       "%6.2f%s\n",
		load_name(test), reader_names[test->reader],
		test->ticker ? "ticker" : "-",
		(unsigned long long)found.samples,
		(unsigned long long)found.dropped,
		(unsigned long long)found.renewed, bracket(), error(0.5),
		error(0.99), error(0.999), error(0.9999),
		(double)found.worst2_ns / 2, mean_ns(),
		found.counts || test->reader == CONTROL
			? ""
			: "  (no counter can be used: the kernel's clock)");
}

static void report(const struct test *test, bool first)
{
	if (found.samples == 0)
		errx(1, "no two reads of the clock are within %d ns here",
			BRACKET_MAX_NS);
	if (!options.json) {
		report_line(test);
		return;
	}
	if (!first)
		puts(",");
	report_json(test);
}

/* A block for gnuplot: they are told apart by two empty lines. */
static void trace_open(const struct test *test, bool first)
{
	if (options.trace == NULL)
		return;
	trace.file = fopen(options.trace, first ? "w" : "a");
	if (trace.file == NULL)
		err(1, "%s", options.trace);
	trace.end_ns = TRACE_BEGIN_NS;
	fprintf(trace.file, "%s# %s, %s%s: s; ns, p0.01 p1 p50 p99 p99.99\n",
		first ? "" : "\n\n", load_name(test),
		reader_names[test->reader], test->ticker ? ", ticker" : "");
}

static void trace_close(void)
{
	if (trace.file == NULL)
		return;
	trace_end_point();
	if (fclose(trace.file) != 0)
		err(1, "%s", options.trace);
}

static void run(const struct test *test, bool first)
{
	srandom((unsigned int)clock_ns(CLOCK_MONOTONIC));
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_TIMERSLACK, 1UL);
	trace_open(test, first);
	if (test->busy)
		start_spinning();
	if (test->ticker)
		start_ticking();
	measure(test);
	report(test, first);
	trace_close();
}

static void run_in_child(const struct test *test, bool first)
{
	pid_t pid;
	int status;

	fflush(stdout);
	pid = fork();
	if (pid == -1)
		err(1, "fork");
	if (pid == 0) {
		run(test, first);
		exit(0);
	}
	if (waitpid(pid, &status, 0) == -1)
		err(1, "waitpid");
	if (status != 0)
		errx(1, "%s, %s: failed", load_name(test),
			reader_names[test->reader]);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case 's':
		options.seconds = atoi(arg);
		if (options.seconds < 1 || options.seconds > 3600)
			argp_error(state, "%s: want 1 to 3600 seconds", arg);
		return 0;
	case 't':
		options.trace = arg;
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
		{ "seconds", 's', "S", 0, "For so long each case (60)", 0 },
		{ "trace", 't', "FILE", 0, "Write error over time there", 0 },
		{ "json", 'j', NULL, 0, "For a program to read", 0 },
		{ 0 },
	};
	static const struct argp argp = { .options = known, .parser = parse,
		.doc = "How far precise time is from the kernel's clock" };

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	if (options.json)
		printf("{\"seconds\": %d, \"cases\": [\n", options.seconds);
	else
		printf("%-4s %-7s %-6s %10s %9s %9s %7s %5s %5s %5s %6s %7s "
		       "%6s\n",
			"load", "reader", "ticker", "samples", "dropped",
			"renewed", "bracket", "p50", "p99", "p99.9", "p99.99",
			"worst", "mean");
	for (size_t i = 0; i < TESTS; i++)
		run_in_child(&tests[i], i == 0);
	if (options.json)
		puts("\n]}");
	return 0;
}
