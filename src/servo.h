/* SPDX-License-Identifier: MIT */
/*
 * The servo: where the kernel's monotonic line is, seen from a counter.
 *
 * Pure. It filters samples of CLOCK_MONOTONIC into a point and a slope: a
 * least-squares line while they are few, which forgets as they become many
 * (the g-h or alpha-beta filter, with growing and then fixed memory: Brookner,
 * Tracking and Kalman Filtering Made Easy, 1998, ch. 1). What no error of the
 * samples explains is a change of the kernel's slope, and starts it anew.
 */
#ifndef SERVO_H
#define SERVO_H

#include <stdint.h>

#include "arith.h"

struct servo_sample {
	uint64_t cycles;
	int64_t mono_ns;  /* at `cycles` ... */
	int64_t error_ns; /* ... more or less by this at most */
};

struct servo {
	uint64_t nominal; /* rate to begin with, in 2^-32 ns per cycle */
	uint64_t rate;	  /* the slope of late, likewise */
	uint64_t cycles;  /* at these ... */
	i128 point;	  /* ... the kernel's mono is this, in 2^-32 ns */
	int samples;	  /* in its memory */
	int64_t error_ns; /* of a sample, as it usually is */
	int64_t misses;	  /* by how much it is off, a mean of late: 1/16 ns */
};

enum servo_event {
	SERVO_TRACKS,
	SERVO_BENT,   /* the kernel's slope has changed */
	SERVO_JUMPED, /* counter and clock have parted */
};

/* Further off than this, and a quarter of the time passed: no slope. */
#define SERVO_JUMP_NS INT64_C(100000)

void servo_init(struct servo *servo, uint64_t rate,
	const struct servo_sample *first);

enum servo_event servo_advance(
	struct servo *servo, const struct servo_sample *sample);

/* The kernel's mono at `cycles`, at or after the last sample's. */
int64_t servo_mono(const struct servo *servo, uint64_t cycles);

/* How many cycles it makes in this time. */
static inline uint64_t servo_cycles(const struct servo *servo, int64_t ns)
{
	return (uint64_t)(((u128)(uint64_t)ns << 32) / servo->rate);
}

#endif /* SERVO_H */
