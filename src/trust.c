/* SPDX-License-Identifier: MIT */
#include "trust.h"

#include <string.h>

#include "arith.h"

static int64_t width(const struct trust_sample *sample)
{
	return sample->raw_after_ns - sample->raw_ns;
}

/*
 * Did the counter go back? Under its mask every difference looks like a step
 * forward; one of more than half the range is taken for what it is.
 */
static bool went_back(uint64_t mask, uint64_t from, uint64_t to)
{
	return ((to - from) & mask) > mask / 2;
}

void calibration_init(struct calibration *cal, uint64_t mask)
{
	memset(cal, 0, sizeof(*cal));
	cal->mask = mask;
}

static void restart(struct calibration *cal, const struct trust_sample *sample)
{
	cal->started = true;
	cal->first = *sample;
	cal->last = *sample;
}

/* Is a rate over a window this long, from samples this wide, good enough? */
static bool known(int64_t error_ns, int64_t window_ns, int64_t *error_ppb)
{
	if (window_ns < CALIBRATION_MIN_NS)
		return false;

	*error_ppb = (int64_t)((u128)(uint64_t)error_ns * NS_PER_SEC /
			       (uint64_t)window_ns);
	return *error_ppb <= CALIBRATION_ERROR_PPB;
}

bool calibration_add(struct calibration *cal,
	const struct trust_sample *sample, uint64_t *hz, int64_t *error_ppb)
{
	const struct trust_sample *first = &cal->first;
	int64_t window_ns, doubled_ns;
	uint64_t cycles;

	/* A clock that went back in between tells nothing. */
	if (width(sample) < 0) {
		cal->started = false;
		return false;
	}
	if (!cal->started || sample->raw_ns < cal->last.raw_after_ns ||
		went_back(cal->mask, cal->last.cycles, sample->cycles)) {
		restart(cal, sample);
		return false;
	}
	cal->last = *sample;

	cycles = (sample->cycles - first->cycles) & cal->mask;
	window_ns = sample->raw_ns - first->raw_after_ns;
	if (!known((width(first) + width(sample)) / 2, window_ns, error_ppb) ||
		cycles == 0) {
		/* A first sample that was pre-empted would hold for ever. */
		if (width(sample) < width(first) / 2)
			restart(cal, sample);
		return false;
	}

	/* Twice the distance of the midpoints. */
	doubled_ns = sample->raw_ns + sample->raw_after_ns - first->raw_ns -
		     first->raw_after_ns;
	*hz = (uint64_t)(((u128)cycles * 2 * NS_PER_SEC +
				 (uint64_t)doubled_ns / 2) /
			 (uint64_t)doubled_ns);
	return *hz > 0;
}

void trust_init(struct trust *trust, uint64_t mask, uint64_t hz,
	int64_t error_ppb, const struct trust_sample *sample)
{
	memset(trust, 0, sizeof(*trust));
	trust->mask = mask;
	trust->hz = hz;
	trust->limit_ppb = error_ppb + TRUST_RATE_PPB;
	trust->last = *sample;
}

void trust_excuse(struct trust *trust, const struct trust_sample *sample)
{
	trust->last = *sample;
}

static enum trust_verdict judge(
	struct trust *trust, const struct trust_sample *sample)
{
	uint64_t cycles = (sample->cycles - trust->last.cycles) & trust->mask;
	int64_t shortest_ns = sample->raw_ns - trust->last.raw_after_ns;
	int64_t longest_ns = sample->raw_after_ns - trust->last.raw_ns;
	int64_t limit_ns = TRUST_NOISE_NS +
			   longest_ns / (NS_PER_SEC / trust->limit_ppb);
	u128 counted = (u128)cycles * NS_PER_SEC / trust->hz;
	int64_t counted_ns =
		counted > INT64_MAX / 2 ? INT64_MAX / 2 : (int64_t)counted;

	/* After so long it may have wrapped: nothing can be said. */
	if ((u128)(uint64_t)longest_ns * trust->hz / NS_PER_SEC >
		trust->mask / 2)
		return TRUST_GOOD;

	trust->off_ns = outside(counted_ns, shortest_ns, longest_ns);
	trust->within_ns = longest_ns;
	if (trust->off_ns >= -limit_ns && trust->off_ns <= limit_ns)
		return TRUST_GOOD;
	if (cycles == 0)
		return TRUST_STOOD;
	if (went_back(trust->mask, trust->last.cycles, sample->cycles))
		return TRUST_BACKWARDS;
	return TRUST_PARTED;
}

enum trust_verdict trust_check(
	struct trust *trust, const struct trust_sample *sample)
{
	if (trust->verdict == TRUST_GOOD)
		trust->verdict = judge(trust, sample);
	trust->last = *sample;
	return trust->verdict;
}
