/* SPDX-License-Identifier: MIT */
#include "servo.h"

#include <stdbool.h>
#include <string.h>

#define SHIFT 32

/* Rounding, and the jitter of the kernel's own clock. */
#define NOISE_NS 40
/* What the slope may be off by: 2^-19 is 2 ppm. */
#define DRIFT_SHIFT 19
/* adjtimex(2) changes the kernel's slope by 10 % and 500 ppm at most. */
#define RATE_MAX_SHIFT 3
/* A sample so many times less certain than they usually are is wide. */
#define WIDE 4
/* Too short to measure a slope by. */
#define SLOPE_MIN_NS INT64_C(200000)

static int64_t magnitude(int64_t value)
{
	return value < 0 ? -value : value;
}

static i128 predict(const struct servo *servo, uint64_t cycles)
{
	return servo->point + (i128)(cycles - servo->cycles) * servo->rate;
}

int64_t servo_mono(const struct servo *servo, uint64_t cycles)
{
	return (int64_t)(predict(servo, cycles) >> SHIFT);
}

void servo_init(struct servo *servo, uint64_t rate,
	const struct servo_sample *first)
{
	memset(servo, 0, sizeof(*servo));
	servo->nominal = rate;
	servo->rate = rate;
	servo->cycles = first->cycles;
	servo->point = (i128)first->mono_ns << SHIFT;
	servo->samples = 1;
	servo->error_ns = first->error_ns;
}

/* Samples that are further apart tell more about the slope, each. */
static int memory(int64_t elapsed_ns)
{
	if (elapsed_ns < 4000000)
		return 31;
	if (elapsed_ns < 32000000)
		return 8;
	return 2;
}

static void bend(struct servo *servo, i128 by, uint64_t over_cycles)
{
	i128 rate = servo->rate + by / over_cycles;
	i128 limit = servo->nominal >> RATE_MAX_SHIFT;

	if (rate > servo->nominal + limit)
		rate = servo->nominal + limit;
	if (rate < servo->nominal - limit)
		rate = servo->nominal - limit;
	servo->rate = (uint64_t)rate;
}

/* Move point and slope towards the sample, which is off by `miss`. */
static void follow(struct servo *servo, const struct servo_sample *sample,
	i128 miss, int64_t elapsed_ns)
{
	int n = servo->samples;
	uint64_t cycles = sample->cycles - servo->cycles;

	servo->point = predict(servo, sample->cycles) +
		       miss * 2 * (2 * n - 1) / (n * (n + 1));
	servo->cycles = sample->cycles;
	if (elapsed_ns >= SLOPE_MIN_NS)
		bend(servo, miss * 6 / (n * (n + 1)), cycles);
}

/* Is this one much wider than they usually are, so that it tells nothing about
 * so short a time? Its thread was preempted. */
static bool is_wide(struct servo *servo, int64_t error_ns, int64_t elapsed_ns)
{
	bool wide = servo->samples > 1 && error_ns > WIDE * servo->error_ns &&
		    error_ns > elapsed_ns >> DRIFT_SHIFT;

	/* It grows by a 64th, to follow a clock that has become slower. */
	servo->error_ns += servo->error_ns / 64 + 1;
	if (servo->samples == 1 || error_ns < servo->error_ns)
		servo->error_ns = error_ns;
	return wide;
}

enum servo_event servo_advance(
	struct servo *servo, const struct servo_sample *sample)
{
	i128 error = (i128)sample->error_ns << SHIFT;
	i128 elapsed = (i128)(sample->cycles - servo->cycles) * servo->rate;
	i128 miss = ((i128)sample->mono_ns << SHIFT) -
		    predict(servo, sample->cycles);
	i128 jump = ((i128)SERVO_JUMP_NS << SHIFT) + elapsed / 4 + error;
	int64_t elapsed_ns, miss_ns, limit_ns;

	/* Also where it ran backwards: then centuries seem to have passed. */
	if (miss > jump || miss < -jump ||
		elapsed >> SHIFT > INT64_MAX / 4) {
		servo->point = (i128)sample->mono_ns << SHIFT;
		servo->cycles = sample->cycles;
		servo->samples = 1;
		servo->error_ns = sample->error_ns;
		return SERVO_JUMPED;
	}

	elapsed_ns = (int64_t)(elapsed >> SHIFT);
	miss_ns = (int64_t)(miss >> SHIFT);
	limit_ns = NOISE_NS + sample->error_ns + (elapsed_ns >> DRIFT_SHIFT);
	if (is_wide(servo, sample->error_ns, elapsed_ns)) {
		if (magnitude(miss_ns) <= limit_ns)
			return SERVO_TRACKS;
		/* By this much it is off for certain. */
		miss -= miss > 0 ? error : -error;
		miss_ns = (int64_t)(miss >> SHIFT);
	}

	servo->misses += (magnitude(miss_ns) * 16 - servo->misses) / 16;
	if (servo->samples > 1 && magnitude(miss_ns) > limit_ns) {
		servo->samples = 2;
		follow(servo, sample, miss, elapsed_ns);
		return SERVO_BENT;
	}

	servo->samples++;
	if (servo->samples > memory(elapsed_ns))
		servo->samples = memory(elapsed_ns);
	follow(servo, sample, miss, elapsed_ns);
	return SERVO_TRACKS;
}
