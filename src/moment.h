/* SPDX-License-Identifier: MIT */
/*
 * What belongs together: the offsets between the clocks and the generation, of
 * one publication, under a latch; and a snapshot built on it.
 */
#ifndef MOMENT_H
#define MOMENT_H

#include <stdint.h>

#include <cachedtime.h>

struct moment {
	int64_t wall_offset_ns; /* wall - mono */
	int64_t tai_offset_ns;	/* TAI - wall */
	uint64_t generation;	/* 0: nothing is published */
};

/* By who publishes, one at a time. */
void moment_publish(const struct moment *moment);

/* All of one publication; of this moment where nothing is published. */
void moment_snapshot(struct ct_snapshot *snap);

/* As the kernel has it now: whole seconds, in nanoseconds. */
int64_t moment_tai_offset_ns(void);

#endif /* MOMENT_H */
