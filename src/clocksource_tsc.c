/* SPDX-License-Identifier: MIT */
/*
 * The processor's time stamp counter (x86). As good as the kernel thinks it is
 * on this machine, so `auto` takes it only where the kernel uses it itself.
 * Its rate is measured: CPUID describes the host to a guest (timers 2.8 times
 * late), and /proc/cpuinfo the present speed of one core.
 */
#include "clocksource.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "cpu.h"

static const char *sysfs_current =
	"/sys/devices/system/clocksource/clocksource0/current_clocksource";

void clocksource_kernel_from(const char *path)
{
	sysfs_current = path;
}

int clocksource_kernel(char *name, size_t size)
{
	int saved = errno;
	int ret = 0;
	ssize_t length = 0;
	int fd;

	fd = open(sysfs_current, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		length = read(fd, name, size - 1);
		if (length < 0)
			ret = -errno;
		close(fd);
	} else {
		ret = -errno;
	}

	name[length > 0 ? length : 0] = '\0';
	name[strcspn(name, "\n")] = '\0';
	errno = saved;
	return ret;
}

bool clocksource_kernel_trusts_tsc(const char *name)
{
	/* The kernel has compared the TSC with its other clocks, and goes on
	 * doing so; kvm-clock and Hyper-V's page are the TSC, scaled by the
	 * host. */
	return strcmp(name, "tsc") == 0 || strcmp(name, "kvm-clock") == 0 ||
	       strcmp(name, "hyperv_clocksource_tsc_page") == 0;
}

int tsc_decide(const struct tsc_facts *facts, bool asked, char *why,
	size_t size)
{
	const char *current =
		facts->current[0] != '\0' ? facts->current : "unknown";

	if (!facts->present) {
		snprintf(why, size, "this processor has none");
		return -ENODEV;
	}
	if (!facts->invariant) {
		snprintf(why, size, "its rate isn't invariant (CPUID)");
		return -ENODEV;
	}
	if (!facts->readable) {
		snprintf(why, size, "reading it is trapped (PR_GET_TSC)");
		return -ENODEV;
	}
	if (!asked && !clocksource_kernel_trusts_tsc(facts->current)) {
		snprintf(why, size, "the kernel's clocksource is %s", current);
		return -ENODEV;
	}

	snprintf(why, size, "invariant; the kernel's clocksource is %s",
		current);
	return 0;
}

static bool readable(void)
{
	int saved = errno;
	int mode = 0;
	bool yes;

	/* Where the question is refused, better not find out by SIGSEGV. */
	yes = prctl(PR_GET_TSC, &mode) == 0 && mode == PR_TSC_ENABLE;
	errno = saved;
	return yes;
}

static int open_tsc(struct clocksource *cs, bool asked, char *why, size_t size)
{
	char current[64] = "";
	struct tsc_facts facts = {
#if defined(__x86_64__)
		.present = true,
#endif
		.invariant = cpu_counter_invariant(),
		.readable = readable(),
		.current = current,
	};

	clocksource_kernel(current, sizeof(current));
	cs->read = cpu_counter_ordered;
	cs->mask = UINT64_MAX;
	cs->mono = CLOCK_MONOTONIC;
	cs->wall = CLOCK_REALTIME;
	cs->processors = true;
	cs->watched = true;
	/* Who asked for it against the kernel's judgement keeps it. */
	cs->kernels_own = clocksource_kernel_trusts_tsc(current);
	return tsc_decide(&facts, asked, why, size);
}

const struct clocksource_driver clocksource_tsc = {
	.name = "tsc",
	.rating = 200,
	.open = open_tsc,
};
