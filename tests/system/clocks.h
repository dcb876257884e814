/* SPDX-License-Identifier: MIT */
/*
 * Is the time right? Judged against clock_gettime(), with slack for a noisy
 * machine, and by whether it goes on: a clock that stands still is the fault
 * that all of this is about.
 */
#ifndef CLOCKS_H
#define CLOCKS_H

#include <cachedtime.h>

#include "process.h"

#define BEHIND_NS (2 * SEC)
/* Coarse clocks, where the exact ones are refused, may lead by a few ticks. */
#define AHEAD_NS (50 * MS)

/* The inline form of each reader, so that it can be in a table. */
#define INLINE_READER(name)                       \
	static inline int64_t inline_##name(void) \
	{                                         \
		return name();                    \
	}
INLINE_READER(ct_now_s)
INLINE_READER(ct_now_ms)
INLINE_READER(ct_now_us)
INLINE_READER(ct_now_ns)
INLINE_READER(ct_mono_ms)
INLINE_READER(ct_mono_us)
INLINE_READER(ct_mono_ns)
INLINE_READER(ct_boot_ms)
#undef INLINE_READER

#define READERS 8

static const struct reader {
	const char *name;
	int64_t (*read_inline)(void);
	int64_t (*read_function)(void);
	clockid_t clock;
	int64_t unit_ns;
} readers[READERS] = {
#define READER(name, clock, unit_ns)                       \
	{                                                  \
#name, inline_##name, name, clock, unit_ns \
	}
	READER(ct_now_ms, CLOCK_REALTIME, 1000000),
	READER(ct_now_us, CLOCK_REALTIME, 1000),
	READER(ct_now_ns, CLOCK_REALTIME, 1),
	READER(ct_mono_ms, CLOCK_MONOTONIC, 1000000),
	READER(ct_mono_us, CLOCK_MONOTONIC, 1000),
	READER(ct_mono_ns, CLOCK_MONOTONIC, 1),
	READER(ct_boot_ms, CLOCK_BOOTTIME, 1000000),
	/* Last: it takes a second to see it go on. */
	READER(ct_now_s, CLOCK_REALTIME, 1000000000),
#undef READER
};

static inline bool reader_is_right(
	const struct reader *r, int64_t (*read)(void))
{
	int64_t before_ns = clock_ns(r->clock);
	int64_t value = read();
	int64_t after_ns = clock_ns(r->clock);

	/* Plus and minus a unit: division rounds towards zero. */
	if (value >= (before_ns - BEHIND_NS) / r->unit_ns - 1 &&
		value <= (after_ns + AHEAD_NS) / r->unit_ns + 1)
		return true;
	fprintf(stderr, "pid %d: %s is %lld, the clock %lld ns\n",
		(int)getpid(), r->name, (long long)value, (long long)after_ns);
	return false;
}

static inline bool right(void)
{
	bool all = true;

	for (int i = 0; i < READERS; i++)
		all = reader_is_right(&readers[i], readers[i].read_inline) &&
		      reader_is_right(&readers[i], readers[i].read_function) &&
		      all;
	return all;
}

static inline bool mono_is_in_order(void)
{
	static int64_t last_ns;
	int64_t now_ns = ct_mono_ns();
	bool in_order = now_ns >= last_ns;

	if (!in_order)
		fprintf(stderr, "mono went back by %lld ns\n",
			(long long)(last_ns - now_ns));
	last_ns = now_ns;
	return in_order;
}

/* Do the first `count` readers go on? */
static inline bool go_on(int count)
{
	int64_t deadline_ns = clock_ns(CLOCK_MONOTONIC_RAW) + DEADLINE_NS;
	int64_t first[READERS];

	for (int i = 0; i < count; i++)
		first[i] = readers[i].read_inline();

	for (int i = 0; i < count; i++) {
		while ((readers[i].read_inline() - first[i]) *
				readers[i].unit_ns <
			10 * MS) {
			if (!mono_is_in_order())
				return false;
			if (clock_ns(CLOCK_MONOTONIC_RAW) > deadline_ns) {
				fprintf(stderr, "pid %d: %s stands still\n",
					(int)getpid(), readers[i].name);
				return false;
			}
		}
	}
	return true;
}

static inline bool advances(void)
{
	return go_on(READERS - 1);
}

static inline bool cached(void)
{
	return __atomic_load_n(&ct_page.wall_ms, __ATOMIC_RELAXED) > 0;
}

/* Reads until the ticker, which the reads start, has published. */
static inline bool cached_soon(void)
{
	int64_t deadline_ns = clock_ns(CLOCK_MONOTONIC_RAW) + DEADLINE_NS;

	do {
		ct_now_ms();
		if (cached())
			return true;
		nap(MS / 2);
	} while (clock_ns(CLOCK_MONOTONIC_RAW) < deadline_ns);

	fprintf(stderr, "pid %d: nothing cached\n", (int)getpid());
	return false;
}

static inline bool ticks_right(void)
{
	return right() && cached_soon() && advances() && right();
}

/* Reads for 50 ms start nothing, and each asks the live clock. (One thread less
 * is one that had ended before, and that the kernel has put away.) */
static inline bool stays_live(void)
{
	int64_t until_ns = clock_ns(CLOCK_MONOTONIC_RAW) + 50 * MS;
	int before = threads();

	do {
		if (!right())
			return false;
		if (cached() || threads() > before) {
			fprintf(stderr, "pid %d: started by a read\n",
				(int)getpid());
			return false;
		}
		nap(MS);
	} while (clock_ns(CLOCK_MONOTONIC_RAW) < until_ns);
	return advances();
}

static inline int start_mode(enum ct_mode mode)
{
	struct ct_config config = { .size = sizeof(config), .mode = mode };

	return ct_start(&config);
}

static inline int start_tick(int64_t tick_ns)
{
	struct ct_config config = {
		.size = sizeof(config), .mode = CT_MODE_TICK, .tick_ns = tick_ns
	};

	return ct_start(&config);
}

static inline struct ct_status status_now(void)
{
	struct ct_status status = { .size = sizeof(status) };

	CHECK(ct_status(&status) == 0);
	return status;
}

#endif /* CLOCKS_H */
