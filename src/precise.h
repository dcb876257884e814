/* SPDX-License-Identifier: MIT */
/*
 * Precise time: now, for the price of the counter.
 *
 * Readers evaluate the current segment of a line that follows the kernel's
 * monotonic clock. A segment holds for SEGMENT_NS; the reader who finds it over
 * renews it, by try-lock, so that no thread is needed; where a ticker runs
 * anyway it renews them in time, as long as somebody reads.
 */
#ifndef PRECISE_H
#define PRECISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cachedtime.h>

#include "clocksource.h"
#include "watch.h"

#define PRECISE_SEGMENT_NS INT64_C(2500000)

/*
 * From now on by this counter, if it is one that readers may read; by the
 * kernel's clocks else. By whoever changes what runs, one at a time.
 */
void precise_start(const struct clocksource *cs);

/* By the kernel's clocks. */
void precise_stop(void);

/* Likewise, since somebody found that the counter can't be trusted. */
void precise_distrust(const struct watch *w, enum trust_verdict verdict);

/* Any thread, signal handlers too. */
int64_t precise_read(enum ct_precise which);

/* Renew in time for the next tick, if somebody has read of late. */
void precise_ride(int64_t mono_ns, int64_t tick_ns);

/* Is the counter in use; by how much the line is off, on average. */
bool precise_counts(int64_t *error_ns);

/* Why it isn't; "" if that is as it should be. */
void precise_explain(char *buf, size_t size);

#endif /* PRECISE_H */
