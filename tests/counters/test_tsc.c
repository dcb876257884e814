/* SPDX-License-Identifier: MIT */
/*
 * The machine's own TSC, where `auto` takes it: how soon, at which rate, and
 * what the library opens for it.
 */
#include "look.h"

#include <fcntl.h>
#include <stdarg.h>
#include <sys/syscall.h>

#include <cachedtime.h>

#define RATE_PPM 100
#define PATHS 32

/* Every file that the library opens: the executable's open() comes first. */
static char paths[PATHS][128];
static int opened;

int open(const char *path, int flags, ...)
{
	int i = __atomic_fetch_add(&opened, 1, __ATOMIC_RELAXED);
	mode_t mode = 0;
	va_list args;

	if (flags & O_CREAT) {
		va_start(args, flags);
		mode = (mode_t)va_arg(args, int);
		va_end(args);
	}
	if (i < PATHS)
		snprintf(paths[i], sizeof(paths[i]), "%s", path);
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static struct ct_status status_now(void)
{
	struct ct_status status = { .size = sizeof(status) };

	CHECK(ct_status(&status) == 0);
	return status;
}

int main(void)
{
	int64_t begin_ns = clock_ns(CLOCK_MONOTONIC_RAW);
	struct look from = look_at_counter(CLOCK_MONOTONIC_RAW);
	struct ct_status status;
	double off_ppm, hz;

	unsetenv("CT_TICK");
	unsetenv("CT_BACKEND");
	CHECK(ct_now_ms() > 0);
	for (;;) {
		status = status_now();
		if (strncmp(status.reason, "tsc: ", 5) != 0) {
			printf("%s\n", status.reason);
			skip("`auto` doesn't take the TSC on this machine");
		}
		CHECK(strcmp(status.backend, "tsc") == 0 ||
			strstr(status.reason,
				"; realtime until its rate is measured") !=
				NULL);
		if (strcmp(status.backend, "tsc") == 0 &&
			status.counter_hz != 0)
			break;
		CHECK(clock_ns(CLOCK_MONOTONIC_RAW) - begin_ns < DEADLINE_NS);
		sleep_ns(MS);
	}
	CHECK(strstr(status.reason, "until its rate") == NULL);
	printf("in use after at most %lld ms\n",
		(long long)(clock_ns(CLOCK_MONOTONIC_RAW) - begin_ns) / MS);

	sleep_ns(300 * MS);
	status = status_now();
	hz = look_hz(from, look_at_counter(CLOCK_MONOTONIC_RAW));
	off_ppm = ((double)status.counter_hz - hz) / hz * 1e6;
	printf("%llu Hz, off by %.3f ppm\n",
		(unsigned long long)status.counter_hz, off_ppm);
	CHECK(off_ppm < RATE_PPM && off_ppm > -RATE_PPM);

	/* The kernel's opinion, and again if its clock was slow for a moment;
	 * /proc/cpuinfo in particular never. */
	CHECK(ct_stop() == 0);
	for (int i = 0; i < opened && i < PATHS; i++) {
		printf("opened %s\n", paths[i]);
		CHECK(strcmp(paths[i], "/sys/devices/system/clocksource/"
				       "clocksource0/current_clocksource") ==
			0);
	}
	CHECK(opened >= 1 && opened <= 3);
	return EXIT_SUCCESS;
}
