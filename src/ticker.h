/* SPDX-License-Identifier: MIT */
/*
 * The ticker: one thread that publishes at the wall clock's edges.
 *
 * It sleeps to absolute CLOCK_MONOTONIC deadlines (a sleep on CLOCK_REALTIME
 * hangs when that is set back), skips ticks that it missed and never queues
 * them, and takes the time from the clock at each, never by counting.
 */
#ifndef TICKER_H
#define TICKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clocksource.h"

/* How the kernel is to schedule it. */
struct ticker_priority {
	enum { TICKER_NORMAL, TICKER_NICE, TICKER_FIFO } policy;
	int nice; /* -20 to 19 */
};

/*
 * Start the thread on *cs (copied). Under the life cycle's lock, none running.
 * 0; or -EAGAIN: no thread to be had.
 */
int ticker_start(const struct clocksource *cs, int64_t tick_ns,
	const struct ticker_priority *priority);

/*
 * End the thread, whichever copy of the library started it, and park the
 * words. Under the life cycle's lock.
 */
void ticker_stop(void);

/* Join a thread that has ended: one that gave up, or was stopped by another
 * copy. Under the life cycle's lock. */
void ticker_join(void);

/* Is the caller the thread itself? */
bool ticker_is_self(void);

/* 0, or the -errno with which the kernel refused the priority. */
int ticker_priority_error(void);

/* As publisher_explain(). */
void ticker_explain(char *buf, size_t size);

/* 0, or the -errno for which a ticker gave up: that of the calls to sleep with,
 * all refused; -ENODEV: there is no clock that could be read. */
int ticker_error(void);

#endif /* TICKER_H */
