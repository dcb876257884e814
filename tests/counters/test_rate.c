/* SPDX-License-Identifier: MIT */
/*
 * How well the rate of the TSC is known a second after the first read, beside
 * processes that take every core, in one process start after another. Judged
 * by CLOCK_MONOTONIC_RAW over the ten seconds after; or, where the kernel is
 * slewing its clocks, by CLOCK_MONOTONIC, which is what the rate is for.
 *
 *	test_rate [starts]
 */
#include "look.h"

#include <signal.h>

#include <cachedtime.h>

#define LIMIT_PPM 0.5
/* RAW and MONOTONIC apart by more: the kernel slews. */
#define SLEW_PPM 0.1
#define MEASURE_NS (10 * SEC)
#define SPINNERS 2

static bool has_tsc(void)
{
	struct ct_config off = { .size = sizeof(off), .mode = CT_MODE_OFF };
	struct ct_status status = { .size = sizeof(status) };

	CHECK(ct_start(&off) == 0);
	CHECK(ct_status(&status) == 0);
	printf("%s: %s\n", status.backend, status.reason);
	return strcmp(status.backend, "tsc") == 0;
}

static double ppm(double hz, double right)
{
	return (hz - right) / right * 1e6;
}

/* In a process of its own, which has never read the time. */
static void measure(int i)
{
	struct ct_status status = { .size = sizeof(status) };
	struct look raw, mono;
	double raw_hz, mono_hz, off;
	bool slewed;

	CHECK(ct_start(NULL) == 0);
	CHECK(ct_now_ms() > 0);
	sleep_ns(SEC);
	CHECK(ct_status(&status) == 0);
	CHECK(strcmp(status.backend, "tsc") == 0);

	raw = look_at_counter(CLOCK_MONOTONIC_RAW);
	mono = look_at_counter(CLOCK_MONOTONIC);
	sleep_ns(MEASURE_NS);
	raw_hz = look_hz(raw, look_at_counter(CLOCK_MONOTONIC_RAW));
	mono_hz = look_hz(mono, look_at_counter(CLOCK_MONOTONIC));

	slewed = ppm(mono_hz, raw_hz) > SLEW_PPM ||
		 ppm(mono_hz, raw_hz) < -SLEW_PPM;
	off = ppm((double)status.counter_hz, slewed ? mono_hz : raw_hz);
	printf("start %d: %llu Hz; raw %.0f Hz, mono %.0f Hz%s; off by %+.4f "
		"ppm; worst tick late by %lld us\n", i,
		(unsigned long long)status.counter_hz, raw_hz, mono_hz,
		slewed ? " (slewed)" : "", off,
		(long long)status.max_late_ns / US);
	fflush(stdout);
	CHECK(off <= LIMIT_PPM && off >= -LIMIT_PPM);
}

static pid_t spin(void)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0)
		for (;;)
			look_at_cycles();
	return pid;
}

int main(int argc, char **argv)
{
	int starts = argc > 1 ? atoi(argv[1]) : 20;
	pid_t spinners[SPINNERS], pid;
	int status, failed = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!has_tsc())
		skip("`auto` doesn't take the TSC on this machine");
	for (int i = 0; i < SPINNERS; i++)
		spinners[i] = spin();

	for (int i = 0; i < starts; i++) {
		pid = fork();
		CHECK(pid >= 0);
		if (pid == 0) {
			measure(i);
			_exit(0);
		}
		CHECK(waitpid(pid, &status, 0) == pid);
		failed += status != 0;
	}

	for (int i = 0; i < SPINNERS; i++) {
		kill(spinners[i], SIGKILL);
		waitpid(spinners[i], NULL, 0);
	}
	printf("%d of %d off by more than %.1f ppm\n", failed, starts,
		LIMIT_PPM);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
