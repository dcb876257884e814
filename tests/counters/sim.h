/* SPDX-License-Identifier: MIT */
/*
 * All the kernel's clocks, and a counter, turned by hand. The linker has the
 * library call __wrap_kernel_clock_ns() instead of its own: --wrap. Each read
 * takes a moment, in which time passes, as it does in the world; nothing else
 * makes it pass. Included by the one source file of a program, of one thread.
 */
#ifndef SIM_H
#define SIM_H

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/syscall.h>

#include "counters.h"

__extension__ typedef unsigned __int128 u128;

#define SIM_COARSE_NS (4 * MS)

static struct {
	int64_t raw_ns;	    /* CLOCK_MONOTONIC_RAW: the true time */
	int64_t read_ns;    /* what a read of a clock takes ... */
	int64_t jitter_ns;  /* ... and any half of it, up to this much longer */
	int slow_spends;    /* of these half reads: longer by slow_ns */
	int64_t slow_ns;
	int preempt_per_mille; /* of the reads, for up to 3 ms */
	uint64_t random;

	/* The kernel slews the others by this. */
	int64_t slew_ppm;
	int64_t slew_since_ns;
	int64_t mono_ns; /* at slew_since_ns */
	int64_t wall_offset_ns, boot_offset_ns, tai_offset_ns;

	/* The counter: cycles at a raw time, and the rate from there. */
	uint64_t cycles;
	int64_t cycles_ns;
	int64_t hz; /* negative: it runs backwards */
	uint64_t mask;

	/* Called at each read: turns what isn't a variable. */
	void (*turn)(void);
	int sysfs_opens;
	/* open() of a path with "hpet" in it fails with this. */
	int hpet_error;
} sim;

static inline int64_t sim_mono(void)
{
	int64_t passed_ns = sim.raw_ns - sim.slew_since_ns;

	return sim.mono_ns + passed_ns + passed_ns * sim.slew_ppm / 1000000;
}

static inline int64_t sim_wall(void)
{
	return sim_mono() + sim.wall_offset_ns;
}

static inline void sim_slew(int64_t ppm)
{
	sim.mono_ns = sim_mono();
	sim.slew_since_ns = sim.raw_ns;
	sim.slew_ppm = ppm;
}

/* Unmasked. */
static inline uint64_t sim_cycles(void)
{
	int64_t hz = sim.hz < 0 ? -sim.hz : sim.hz;
	u128 passed = (u128)(uint64_t)(sim.raw_ns - sim.cycles_ns);
	uint64_t cycles = (uint64_t)(passed * (u128)(uint64_t)hz /
				     (u128)(uint64_t)SEC);

	return sim.hz < 0 ? sim.cycles - cycles : sim.cycles + cycles;
}

/* From now on the counter runs at that rate, from where it is. */
static inline void sim_rate(int64_t hz)
{
	sim.cycles = sim_cycles();
	sim.cycles_ns = sim.raw_ns;
	sim.hz = hz;
}

static inline void sim_jump(int64_t ns)
{
	sim.cycles += (uint64_t)(ns / 1000 * (sim.hz / 1000000));
}

static inline void sim_pass(int64_t ns)
{
	sim.raw_ns += ns;
	if (sim.turn != NULL)
		sim.turn();
}

/* Time that a read takes. */
static inline void sim_spend(int64_t ns)
{
	if (sim.slow_spends > 0) {
		sim.slow_spends--;
		ns += sim.slow_ns;
	}
	if (sim.jitter_ns > 0)
		ns += (int64_t)(random_next(&sim.random) %
				(uint64_t)(sim.jitter_ns + 1));
	if (sim.preempt_per_mille > 0 &&
		(int)(random_next(&sim.random) % 1000) < sim.preempt_per_mille)
		ns += (int64_t)(random_next(&sim.random) % (3 * MS));
	sim_pass(ns);
}

static inline uint64_t sim_read_counter(void)
{
	sim_spend(20);
	return sim_cycles() & sim.mask;
}

static inline void sim_begin(int64_t hz, uint64_t mask)
{
	memset(&sim, 0, sizeof(sim));
	sim.random = 88172645463325252;
	sim.raw_ns = 5000 * SEC;
	sim.read_ns = 30;
	sim.mono_ns = 4000 * SEC;
	sim.slew_since_ns = sim.raw_ns;
	sim.wall_offset_ns = 1700000000 * SEC + 123456789;
	sim.cycles = 12345678987;
	sim.cycles_ns = sim.raw_ns;
	sim.hz = hz;
	sim.mask = mask;
}

static inline int64_t sim_clock(clockid_t clock)
{
	switch (clock) {
	case CLOCK_MONOTONIC_RAW:
		return sim.raw_ns;
	case CLOCK_REALTIME:
		return sim_wall();
	case CLOCK_REALTIME_COARSE:
		return sim_wall() / SIM_COARSE_NS * SIM_COARSE_NS;
	case CLOCK_MONOTONIC_COARSE:
		return sim_mono() / SIM_COARSE_NS * SIM_COARSE_NS;
	case CLOCK_BOOTTIME:
		return sim_mono() + sim.boot_offset_ns;
	case CLOCK_TAI:
		return sim_wall() + sim.tai_offset_ns;
	default:
		return sim_mono();
	}
}

int64_t __wrap_kernel_clock_ns(clockid_t clock);
int64_t __real_kernel_clock_ns(clockid_t clock);

int64_t __wrap_kernel_clock_ns(clockid_t clock)
{
	int64_t ns;

	if (sim.raw_ns == 0)
		return __real_kernel_clock_ns(clock);

	/* Half before the value is taken, half after. */
	sim_spend(sim.read_ns / 2);
	ns = sim_clock(clock);
	sim_spend(sim.read_ns - sim.read_ns / 2);
	return ns;
}

int __wrap_kernel_clock_try(clockid_t clock, int64_t *ns);

int __wrap_kernel_clock_try(clockid_t clock, int64_t *ns)
{
	*ns = __wrap_kernel_clock_ns(clock);
	return 0;
}

/* The library's too: counts how often it asks for the clocksource. */
int open(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list args;

	if (flags & O_CREAT) {
		va_start(args, flags);
		mode = (mode_t)va_arg(args, int);
		va_end(args);
	}
	if (sim.hpet_error != 0 && strstr(path, "hpet") != NULL) {
		errno = sim.hpet_error;
		return -1;
	}
	sim.sysfs_opens += strstr(path, "clocksource") != NULL;
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

#endif /* SIM_H */
