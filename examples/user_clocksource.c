/* SPDX-License-Identifier: MIT */
/*
 * A counter of your own behind the readers.
 *
 *	cc -O2 user_clocksource.c $(pkg-config --cflags --libs cachedtime)
 *
 * with -Wl,-rpath,PREFIX/lib behind it where that is a prefix of your own.
 *
 * The rate given need not be exact: the library measures it against the
 * kernel's clocks, and its words never run ahead of those.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cachedtime.h>

#ifdef __x86_64__
#include <x86intrin.h>
#endif

#define MEASURE_NS INT64_C(50000000)

static int64_t raw_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

#ifdef __x86_64__
#define COUNTER "my-tsc"

static uint64_t read_counter(void)
{
	return __rdtsc();
}
#else
#define COUNTER "my-250mhz"

static uint64_t read_counter(void)
{
	return (uint64_t)raw_ns() / 4;
}
#endif

/* Roughly: how far the counter gets in 50 ms. */
static uint64_t measure_hz(void)
{
	const struct timespec pause = { .tv_nsec = MEASURE_NS };
	int64_t begin_ns = raw_ns();
	uint64_t begin = read_counter();
	double cycles, ns;

	nanosleep(&pause, NULL);
	cycles = (double)(read_counter() - begin);
	ns = (double)(raw_ns() - begin_ns);
	return (uint64_t)(cycles * 1e9 / ns);
}

int main(void)
{
	const struct timespec second = { .tv_sec = 1 };
	struct ct_clocksource counter = {
		.name = COUNTER,
		.read = read_counter,
		.mask = UINT64_MAX,
		.hz = measure_hz(),
	};
	struct ct_config config = {
		.size = sizeof(config),
		.mode = CT_MODE_TICK,
		.clocksource = &counter,
	};
	char text[2048];
	int ret;

	ret = ct_start(&config);
	if (ret != 0) {
		fprintf(stderr, "ct_start: %s\n", strerror(-ret));
		return 1;
	}

	nanosleep(&second, NULL);
	printf("%s at about %" PRIu64 " Hz says %" PRId64 " ms\n\n",
		counter.name, counter.hz, ct_now_ms());
	ct_status_text(text, sizeof(text));
	fputs(text, stdout);
	return 0;
}
