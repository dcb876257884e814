/* SPDX-License-Identifier: MIT */
/*
 * Ordered precise time between threads, while segments are renewed, run out
 * under the readers, and the counter is taken away and given back. Nobody sets
 * the clock.
 *
 *	test_ordered [stamps]
 */
#include "ordered.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

/* However few the stamps: so long that things do happen. */
#define LEAST_NS (300 * MS)
/* By then a rate is measured, on an idle machine. */
#define CALIBRATED_NS (50 * MS)
#define HELD_MAX_NS (10 * MS)

/* What goes on meanwhile. */
static const struct situation {
	bool ticker;   /* renews segments; else readers do */
	bool held;     /* a renewal takes up to 10 ms now and then */
	bool switched; /* the back end changes */
} situations[] = {
	{ false, false, false },
	{ true, false, false },
	{ false, true, false },
	{ true, true, false },
	{ false, false, true },
	{ true, false, true },
	{ true, true, true },
};

#define SITUATIONS ((int)(sizeof(situations) / sizeof(situations[0])))

static int64_t stamps = 1000000;

static bool done;	     /* relaxed */
static uint64_t passed_live; /* stamps, while the segment had run out */

/* Is there a segment, and has it run out? Under the lock. */
static bool ran_out(void)
{
#if defined(__x86_64__)
	const struct ct_segment *s = &ct_page.segment[segments() & 1];
	uint64_t span = __atomic_load_n(&s->span, __ATOMIC_RELAXED);

	return span != 0 &&
	       __rdtsc() - __atomic_load_n(&s->cycles, __ATOMIC_RELAXED) >
		       span;
#else
	return false;
#endif
}

static bool take_segment_lock(void)
{
	uint32_t free = 0;

	/* Acquire and release, as the library. */
	return __atomic_compare_exchange_n(&ct_page.segment_lock, &free, 1,
		false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* A renewal that is preempted: nobody else can renew meanwhile. */
static void hold_up(int64_t held_ns)
{
	int64_t until_ns = clock_ns(CLOCK_MONOTONIC) + held_ns;
	uint64_t before = 0;
	bool live = false;

	while (!take_segment_lock())
		if (is_set(&done))
			return;
	while (clock_ns(CLOCK_MONOTONIC) < until_ns) {
		sleep_ns(100 * US);
		if (!live && ran_out()) {
			live = true;
			before = __atomic_load_n(&passed, __ATOMIC_RELAXED);
		}
	}
	if (live)
		passed_live += __atomic_load_n(&passed, __ATOMIC_RELAXED) -
			       before;
	__atomic_store_n(&ct_page.segment_lock, 0, __ATOMIC_RELEASE);
}

static void *hold_up_renewals(void *arg)
{
	unsigned int seed = 1;

	(void)arg;
	while (!is_set(&done)) {
		hold_up(rand_r(&seed) % HELD_MAX_NS);
		sleep_ns(rand_r(&seed) % HELD_MAX_NS);
	}
	return NULL;
}

/* Takes the counter away and gives it back; for long and for no time. Returns
 * how often it was in use by then. */
static int switch_once(const struct situation *s, int64_t for_ns)
{
	int used;

	ck_assert_int_eq(start("tsc", s->ticker), 0);
	sleep_ns(for_ns);
	used = counts();
	ck_assert_int_eq(start("realtime", s->ticker), 0);
	/* Else what was published lasts until it is over. */
	if (!s->held)
		ck_assert(!counts());
	sleep_ns(for_ns / 8);
	return used;
}

static int go_on_for(int64_t ns, const struct situation *s)
{
	int64_t until_ns = clock_ns(CLOCK_MONOTONIC) + ns;
	int used = 0;

	for (int i = 0; clock_ns(CLOCK_MONOTONIC) < until_ns; i++) {
		if (s->switched)
			used += switch_once(
				s, i % 4 == 3 ? 0 : CALIBRATED_NS);
		else
			sleep_ns(MS);
	}
	return used;
}

static void run(const struct situation *s, int readers, void *(*pass)(void *))
{
	int64_t begun_ns = clock_ns(CLOCK_MONOTONIC);
	uint64_t first = segments();
	pthread_t reader[MANY], holder;
	int used = 0;

	begin_readers(reader, readers, pass);
	if (s->held)
		ck_assert_int_eq(pthread_create(&holder, NULL,
					 hold_up_renewals, NULL), 0);
	used = go_on_for(LEAST_NS, s);
	set(&enough);
	for (int i = 0; i < readers; i++)
		while (pthread_tryjoin_np(reader[i], NULL) != 0)
			used += go_on_for(MS, s);
	set(&done);
	if (s->held)
		pthread_join(holder, NULL);

	assert_none_went_back();
	/* And there was a reason to. */
	ck_assert_uint_ge(segments() - first,
		(uint64_t)(clock_ns(CLOCK_MONOTONIC) - begun_ns) / (100 * MS) +
			2);
	if (s->held && !s->switched)
		ck_assert_uint_gt(passed_live, 100);
	if (s->switched && !s->held)
		ck_assert_int_gt(used, 0);
}

/* Each situation, first for mono, then for wall. */
static const struct situation *begin(int i)
{
	const struct situation *s = &situations[i % SITUATIONS];

	wall = i >= SITUATIONS;
	ck_assert_int_eq(start("tsc", s->ticker), 0);
	if (s->ticker)
		ct_now_ms();
	ck_assert(wait_for_counter());
	return s;
}

START_TEST(in_turns)
{
	run(begin(_i), 2, pass_in_turns);
}
END_TEST

START_TEST(many)
{
	run(begin(_i), MANY, pass_freely);
}
END_TEST

static void add(Suite *suite, const char *name, const TTest *test)
{
	TCase *tcase = tcase_create(name);

	tcase_set_timeout(tcase, 0); /* meson's holds */
	tcase_add_loop_test(tcase, test, 0, 2 * SITUATIONS);
	suite_add_tcase(suite, tcase);
}

int main(int argc, char **argv)
{
	Suite *suite = suite_create("ordered");

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		skip("one processor: nothing passes between cores");
	if (!counter_can_be_had())
		skip("precise time doesn't come from a counter here");
	if (argc > 1)
		stamps = strtoll(argv[1], NULL, 10);
	stamps_each = stamps / (2 * SITUATIONS);
	add(suite, "two in turns", in_turns);
	add(suite, "many", many);
	return run_suite(suite);
}
