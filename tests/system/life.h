/* SPDX-License-Identifier: MIT */
/* A whole life with the library, in whatever surroundings. */
#ifndef LIFE_H
#define LIFE_H

#include <errno.h>

#include "clocks.h"

/* What the surroundings leave of it. */
enum outlook {
	OUTLOOK_CACHED,    /* reads start the ticker */
	OUTLOOK_STARTED,   /* only ct_start() does */
	OUTLOOK_NO_WIPE,   /* live: the page isn't wiped */
	OUTLOOK_NO_THREAD, /* live: no thread to be had */
	OUTLOOK_NO_SLEEP,  /* live: the ticker can't sleep */
	OUTLOOK_ANY        /* right, be it live or cached */
};

static inline void expect_error(int error, const char *word)
{
	struct ct_status status = status_now();

	if (status.last_error == error && strstr(status.error, word) != NULL)
		return;
	fprintf(stderr, "status says %d: %s\n", status.last_error,
		status.error);
	_exit(1);
}

static inline bool live_soon(void)
{
	int64_t deadline_ns = clock_ns(CLOCK_MONOTONIC_RAW) + DEADLINE_NS;

	while (cached() || status_now().last_error == 0)
		if (clock_ns(CLOCK_MONOTONIC_RAW) > deadline_ns)
			return false;
	return true;
}

static inline void live_with_first_reads(enum outlook outlook)
{
	CHECK(right() && advances());
	switch (outlook) {
	case OUTLOOK_CACHED:
		CHECK(cached_soon());
		break;
	case OUTLOOK_STARTED:
		CHECK(stays_live());
		break;
	case OUTLOOK_NO_WIPE:
		CHECK(stays_live());
		expect_error(-ENOTSUP, "wipe");
		break;
	case OUTLOOK_NO_THREAD:
		CHECK(stays_live());
		expect_error(-EAGAIN, "thread");
		break;
	case OUTLOOK_NO_SLEEP:
		CHECK(live_soon());
		break;
	case OUTLOOK_ANY:
		break;
	}
	CHECK(right() && advances());
}

static inline void live_with_start(enum outlook outlook)
{
	int ret = ct_start(NULL);

	switch (outlook) {
	case OUTLOOK_CACHED:
	case OUTLOOK_STARTED:
		CHECK(ret == 0);
		CHECK(cached_soon());
		break;
	case OUTLOOK_NO_WIPE:
		CHECK(ret == -ENOTSUP);
		CHECK(stays_live());
		break;
	case OUTLOOK_NO_THREAD:
		CHECK(ret == -EAGAIN);
		CHECK(stays_live());
		break;
	case OUTLOOK_NO_SLEEP:
		CHECK(ret == 0);
		CHECK(live_soon());
		expect_error(status_now().last_error, "sleep");
		break;
	case OUTLOOK_ANY:
		break;
	}
	CHECK(right() && advances());
}

static inline void live_in_each_mode(void)
{
	char text[2048];

	start_tick(100 * MS);
	CHECK(right() && advances());
	start_mode(CT_MODE_MANUAL);
	ct_refresh();
	CHECK(right());
	CHECK(ct_age_ns() >= 0);
	start_mode(CT_MODE_OFF);
	CHECK(stays_live());
	CHECK(ct_status_text(text, sizeof(text)) > 0);
}

static inline void right_in_child(void)
{
	CHECK(right() && advances());
	ct_start(NULL);
	CHECK(right() && advances());
}

/* `forks`: whether the surroundings allow that. */
static inline void live_through(enum outlook outlook, bool forks)
{
	int64_t before_ms = ct_now_ms();

	live_with_first_reads(outlook);
	CHECK(ct_refresh() >= before_ms - BEHIND_NS / MS);
	if (forks)
		CHECK(child_does(right_in_child));
	CHECK(ct_stop() == 0 || outlook == OUTLOOK_ANY);
	CHECK(stays_live());
	live_with_start(outlook);
	if (forks)
		CHECK(child_does(right_in_child));
	live_in_each_mode();
}

#endif /* LIFE_H */
