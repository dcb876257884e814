/* SPDX-License-Identifier: MIT */
/*
 * The hand-over under fire: words are parked, engaged and published as fast as
 * can be, while readers pass stamps to each other. No stamp may be older than
 * one that was received before it was taken, in any unit.
 *
 *	test_handover [exchanges]
 */
#include "suite.h"

#include <pthread.h>
#include <stdbool.h>

#include <cachedtime.h>

#include "handover.h"

#define READERS 3
#define UNITS 4

static int64_t exchanges = 1000000;
static bool done;

/* The last stamp passed, per unit; on lines of their own. */
static struct {
	int64_t stamp;
} __attribute__((aligned(64))) mailbox[UNITS];

static int64_t read_unit(int unit)
{
	switch (unit) {
	case 0:
		return ct_mono_ns();
	case 1:
		return ct_mono_us();
	case 2:
		return ct_mono_ms();
	default:
		return ct_now_ns(); /* nobody sets the clock meanwhile */
	}
}

/* Returns the number of stamps that went back. */
static void *pass_stamps(void *arg)
{
	intptr_t backward = 0;

	(void)arg;
	for (int64_t i = 0; i < exchanges; i++) {
		int unit = (int)(i % UNITS);
		/* Acquire and release: the stamp received happens before the
		 * read, as between any two threads that talk. */
		int64_t received = __atomic_load_n(
			&mailbox[unit].stamp, __ATOMIC_ACQUIRE);
		int64_t taken = read_unit(unit);

		backward += taken < received;
		__atomic_store_n(
			&mailbox[unit].stamp, taken, __ATOMIC_RELEASE);
	}
	return (void *)backward;
}

static void *engage_and_park(void *arg)
{
	struct handover_now now;
	uint32_t random = 1;

	(void)arg;
	while (!__atomic_load_n(&done, __ATOMIC_RELAXED)) {
		handover_engage();
		random = random * 1664525 + 1013904223;
		for (uint32_t i = random >> 29; i > 0; i--)
			handover_refresh(&now);
		handover_park();
	}
	return NULL;
}

static void *refresh(void *arg)
{
	struct handover_now now;

	(void)arg;
	while (!__atomic_load_n(&done, __ATOMIC_RELAXED))
		handover_refresh(&now);
	return NULL;
}

START_TEST(test_never_back)
{
	pthread_t readers[READERS], parker, refresher;
	intptr_t backward = 0;
	void *result;

	/* Parked by hand only: no ticker. */
	setenv("CT_TICK", "off", 1);
	ct_now_ms();

	pthread_create(&parker, NULL, engage_and_park, NULL);
	pthread_create(&refresher, NULL, refresh, NULL);
	for (int i = 0; i < READERS; i++)
		pthread_create(&readers[i], NULL, pass_stamps, NULL);
	for (int i = 0; i < READERS; i++) {
		pthread_join(readers[i], &result);
		backward += (intptr_t)result;
	}
	__atomic_store_n(&done, true, __ATOMIC_RELAXED);
	pthread_join(parker, NULL);
	pthread_join(refresher, NULL);

	ck_assert_int_eq(backward, 0);
	/* Parked last: nothing may be left behind. */
	for (int word = 0; word < CT_WORDS; word++) {
		struct handover_view view;

		handover_look(&view);
		ck_assert_int_eq(view.seen[word], 0);
	}
}
END_TEST

int main(int argc, char **argv)
{
	Suite *suite = suite_create("hand-over");
	TCase *tcase = tcase_create("parked and engaged at full speed");

	if (argc > 1)
		exchanges = strtoll(argv[1], NULL, 10);
	tcase_set_timeout(tcase, 0); /* meson's holds */
	tcase_add_test(tcase, test_never_back);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
