/* SPDX-License-Identifier: MIT */
/*
 * One publication after another: look at the words, sample the clocks, advance
 * the timekeeper, publish. Belongs to one thread at a time: the ticker, or
 * whoever holds the lock in a refresh.
 */
#ifndef PUBLISHER_H
#define PUBLISHER_H

#include <stdint.h>

#include "clocksource.h"
#include "timekeeper.h"

struct publisher {
	struct clocksource cs;
	struct timekeeper tk;

	int64_t boot_offset_ns; /* boot - mono: changes at a suspend */
	int64_t boot_due_ns;	/* mono at which to look at it again */
};

/* Start on p->cs; the words stay as they are. */
void publisher_start(struct publisher *p);

/* Publish once, engaging what is parked; the sample is left in *sample. */
void publisher_publish(struct publisher *p, struct timekeeper_sample *sample);

#endif /* PUBLISHER_H */
