/* SPDX-License-Identifier: MIT */
/*
 * How far to trust a counter: its first rate, and whether it still keeps it.
 *
 * Pure, and judged by CLOCK_MONOTONIC_RAW, which nobody slews: a kernel that
 * slews its other clocks (by up to 10 %) doesn't discredit the counter.
 */
#ifndef TRUST_H
#define TRUST_H

#include <stdbool.h>
#include <stdint.h>

/* The counter, read between two reads of CLOCK_MONOTONIC_RAW. */
struct trust_sample {
	int64_t raw_ns;
	uint64_t cycles;
	int64_t raw_after_ns;
};

/* The first rate, from samples that come when they come. */
struct calibration {
	uint64_t mask;
	bool started;
	struct trust_sample first;
	struct trust_sample last;
};

/* Good enough to start with; refined for as long as the process lives. */
#define CALIBRATION_ERROR_PPB 20000
#define CALIBRATION_MIN_NS INT64_C(3000000)

void calibration_init(struct calibration *cal, uint64_t mask);

/*
 * Take a sample in. True once the rate is known to CALIBRATION_ERROR_PPB;
 * then *hz is the rate and *error_ppb its error. A pre-empted sample, too wide
 * to help, does no harm; one that goes backwards starts all over.
 */
bool calibration_add(struct calibration *cal,
	const struct trust_sample *sample, uint64_t *hz, int64_t *error_ppb);

enum trust_verdict {
	TRUST_GOOD,
	TRUST_STOOD,	 /* no cycle passed */
	TRUST_BACKWARDS, /* it ran backwards, or was reset */
	TRUST_PARTED,	 /* it jumped, or changed its rate */
	TRUST_SOURCE,	 /* the kernel has left this clocksource */
};

/* The watch over a counter in use. */
struct trust {
	uint64_t mask;
	uint64_t hz;
	int64_t limit_ppb; /* more than this off is too much */
	struct trust_sample last;

	enum trust_verdict verdict;
	int64_t off_ns;	   /* by how much it was off: positive is ahead ... */
	int64_t within_ns; /* ... within this time */
};

/* What a counter may differ from its rate, beside that rate's own error:
 * crystals drift by a few ppm with temperature, hypervisors promise 250 ppm at a
 * migration. */
#define TRUST_RATE_PPB 300000
#define TRUST_NOISE_NS INT64_C(10000)

void trust_init(
	struct trust *trust, uint64_t mask, uint64_t hz, int64_t error_ppb,
	const struct trust_sample *sample);

/* Judge the counter since the last sample. */
enum trust_verdict trust_check(
	struct trust *trust, const struct trust_sample *sample);

/* Forget the last sample: after a suspend, which stops some and resets some. */
void trust_excuse(struct trust *trust, const struct trust_sample *sample);

#endif /* TRUST_H */
