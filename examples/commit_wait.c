/* SPDX-License-Identifier: MIT */
/*
 * Commit wait: timestamps that are in the order of events, on any number of
 * machines, with no message between them (Corbett et al., Spanner, OSDI 2012).
 *
 *	cc -O2 commit_wait.c $(pkg-config --cflags --libs cachedtime)
 *
 * with -Wl,-rpath,PREFIX/lib behind it where that is a prefix of your own.
 *
 * A commit is stamped with the latest that the time may be, and shown to nobody
 * before even the earliest has passed that. So by then the stamp is in the past
 * everywhere, and whoever has seen the commit gets a later one.
 */
#define _GNU_SOURCE 1
#include <argp.h>
#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cachedtime.h>

static int64_t assumed_ns; /* error of this machine's clock; 0: ask */

static void read_bounds(struct ct_bounds *bounds)
{
	int64_t now_ns;
	int ret;

	if (assumed_ns > 0) {
		now_ns = ct_precise_ordered_ns();
		bounds->earliest_ns = now_ns - assumed_ns;
		bounds->latest_ns = now_ns + assumed_ns;
		return;
	}
	ret = ct_bounds(bounds);
	if (ret != 0)
		errx(1, "adjtimex: %s", strerror(-ret));
	/* Then latest is the end of all time, and the wait as long. */
	if (bounds->status == CT_BOUNDS_UNKNOWN)
		errx(1, "how far this machine's clock is off is unknown: it "
			"isn't synchronised (to try it: --assume 5ms)");
}

/* Where the clock is set back meanwhile that is longer, never shorter. */
static void wait_until_past(int64_t stamp_ns)
{
	struct ct_bounds bounds;
	struct timespec pause;
	int64_t left_ns;

	for (;;) {
		read_bounds(&bounds);
		left_ns = stamp_ns - bounds.earliest_ns;
		if (left_ns < 0)
			return;
		left_ns++;
		pause.tv_sec = left_ns / 1000000000;
		pause.tv_nsec = left_ns % 1000000000;
		nanosleep(&pause, NULL);
	}
}

static void commit(int n)
{
	struct ct_bounds bounds;
	int64_t begun_ns = ct_precise_mono_ns();
	int64_t stamp_ns;

	read_bounds(&bounds);
	stamp_ns = bounds.latest_ns;
	/* Here it is written, replicated, and so on: that is part of it. */
	wait_until_past(stamp_ns);
	printf("commit %d at %" PRId64 " ns: off by %.3f ms at most, waited "
	       "%.3f ms\n", n, stamp_ns,
		(double)(bounds.latest_ns - bounds.earliest_ns) / 2e6,
		(double)(ct_precise_mono_ns() - begun_ns) / 1e6);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	char *end;
	double number;

	if (key != 'a')
		return ARGP_ERR_UNKNOWN;
	number = strtod(arg, &end);
	if (strcmp(end, "us") != 0 && strcmp(end, "ms") != 0 &&
		strcmp(end, "s") != 0)
		argp_error(state, "%s: want a time, as 5ms", arg);
	number *= *end == 'u' ? 1e3 : *end == 'm' ? 1e6 : 1e9;
	if (!(number >= 1e3 && number <= 1e11))
		argp_error(state, "%s: want 1us to 100s", arg);
	assumed_ns = (int64_t)number;
	return 0;
}

int main(int argc, char **argv)
{
	static const struct argp_option known[] = {
		{ "assume", 'a', "TIME", 0,
			"The clock is off by no more (else ask the kernel)",
			0 },
		{ 0 },
	};
	static const struct argp argp = { .options = known, .parser = parse,
		.doc = "Stamp three commits, and wait until they are past." };

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	for (int n = 1; n <= 3; n++)
		commit(n);
	return 0;
}
