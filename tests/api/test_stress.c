/* SPDX-License-Identifier: MIT */
/*
 * Any number of threads change what runs, at once, while others read. Nothing
 * hangs, nothing fails, and mono never goes back: not for one thread, and not
 * from one thread to another.
 */
#include <pthread.h>

#include "api.h"

#define CHANGERS 6
#define READERS 3
#define ROUNDS 2000

/* The latest mono that any thread has told the others. */
static int64_t told_ns;
static bool over;
static const char *failure;

static void failed(const char *what)
{
	__atomic_store_n(&failure, what, __ATOMIC_RELAXED);
}

/* What I read after I was told a stamp is no earlier. */
static void read_and_tell(void)
{
	/* Acquire and release: the stamp that passes from thread to thread. */
	int64_t before_ns = __atomic_load_n(&told_ns, __ATOMIC_ACQUIRE);
	int64_t now_ns = ct_mono_ns();

	if (now_ns < before_ns)
		failed("mono went back");
	while (before_ns < now_ns &&
		!__atomic_compare_exchange_n(&told_ns, &before_ns, now_ns,
			false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		;
}

static void *read_on(void *arg)
{
	int64_t last_ms = 0, now_ms;

	(void)arg;
	while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
		errno = 4711;
		for (int i = 0; i < 100; i++)
			read_and_tell();
		now_ms = ct_mono_ms();
		if (now_ms < last_ms)
			failed("mono ms went back");
		last_ms = now_ms;
		if (errno != 4711)
			failed("errno was touched");
	}
	return NULL;
}

static uint64_t read_raw(void)
{
	return (uint64_t)clock_ns(CLOCK_MONOTONIC_RAW);
}

static int change(unsigned int what)
{
	static const struct ct_clocksource source = { "mine", read_raw,
		UINT64_MAX, 1000000000 };
	struct ct_config config = { .size = sizeof(config) };
	struct ct_status status = { .size = sizeof(status) };
	char text[2048];

	switch (what) {
	case 0:
		config.mode = CT_MODE_TICK;
		config.tick_ns = CT_TICK_MIN_NS;
		return ct_start(&config);
	case 1:
		config.mode = CT_MODE_TICK;
		config.tick_ns = SEC;
		return ct_start(&config);
	case 2:
		config.mode = CT_MODE_MANUAL;
		return ct_start(&config);
	case 3:
		config.mode = CT_MODE_MANUAL;
		config.clocksource = &source;
		return ct_start(&config);
	case 4:
		config.mode = CT_MODE_OFF;
		return ct_start(&config);
	case 5:
		return ct_start(NULL);
	case 6:
		return ct_stop();
	case 7:
		config.size = 1;
		return ct_start(&config) == -EINVAL ? 0 : -1;
	case 8:
		return ct_status(&status);
	case 9:
		return ct_status_text(text, sizeof(text)) > 0 ? 0 : -1;
	case 10:
		return ct_age_ns() >= 0 ? 0 : -1;
	default:
		return ct_refresh() > 0 ? 0 : -1;
	}
}

static void *change_on(void *arg)
{
	unsigned int seed = *(const unsigned int *)arg;

	for (int round = 0; round < ROUNDS; round++) {
		seed = seed * 1103515245 + 12345;
		errno = 4711;
		if (change((seed >> 16) % 16) != 0)
			failed("a call failed");
		if (errno != 4711)
			failed("errno was touched");
		read_and_tell();
	}
	return NULL;
}

START_TEST(everybody_at_once)
{
	static unsigned int seeds[CHANGERS];
	pthread_t changers[CHANGERS], readers[READERS];

	for (int i = 0; i < READERS; i++)
		ck_assert_int_eq(
			pthread_create(&readers[i], NULL, read_on, NULL), 0);
	for (int i = 0; i < CHANGERS; i++) {
		seeds[i] = (unsigned int)(i + 1);
		ck_assert_int_eq(pthread_create(&changers[i], NULL, change_on,
					 &seeds[i]),
			0);
	}
	for (int i = 0; i < CHANGERS; i++)
		pthread_join(changers[i], NULL);
	__atomic_store_n(&over, true, __ATOMIC_RELAXED);
	for (int i = 0; i < READERS; i++)
		pthread_join(readers[i], NULL);

	ck_assert_msg(failure == NULL, "%s", failure);
	/* And it still works. */
	ck_assert_int_eq(start_mode(CT_MODE_TICK, MS), 0);
	wait_until_cached();
	ck_assert_int_eq(ct_stop(), 0);
	assert_off();
}
END_TEST

/* Many first reads at once start one thread. */
static void *read_first(void *arg)
{
	pthread_barrier_wait(arg);
	for (int i = 0; i < 1000; i++)
		read_and_tell();
	return NULL;
}

START_TEST(first_reads_at_once)
{
	pthread_t threads[8];
	pthread_barrier_t barrier;

	pthread_barrier_init(&barrier, NULL, 8);
	for (int i = 0; i < 8; i++)
		ck_assert_int_eq(
			pthread_create(&threads[i], NULL, read_first, &barrier),
			0);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&barrier);
	wait_until_cached();
	ck_assert_msg(failure == NULL, "%s", failure);
	/* Which fails if it finds two. */
	ck_assert_int_ne(ticker_id(), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("stress");
	TCase *tcase = tcase_create("everybody at once");

	tcase_set_timeout(tcase, 110);
	tcase_add_test(tcase, everybody_at_once);
	suite_add_tcase(suite, tcase);
	add(suite, "first reads at once", first_reads_at_once, 20);
	return run_suite(suite);
}
