/* SPDX-License-Identifier: MIT */
/*
 * Bounds by the machine's clocks, which here are off by no more than a
 * microsecond, or so this adjtimex() says: the kernel's own time lies within
 * them in every read, by one thread and by several at once.
 *
 *	test_bounds_real [reads]
 */
#include "bounds.h"

#include <pthread.h>
#include <sys/syscall.h>

#define THREADS 4

static int64_t reads = 100000;

/* Atomic, relaxed: how far the wall clock has been set, and the number of the
 * step, which tells what belongs together. */
static int64_t set_ns;
static bool kernels_own; /* ask the machine's */
static int64_t asked;

static int64_t get(const int64_t *value)
{
	return __atomic_load_n(value, __ATOMIC_RELAXED);
}

int64_t __wrap_kernel_clock_ns(clockid_t clock)
{
	int64_t ns = __real_kernel_clock_ns(clock);

	return clock == CLOCK_REALTIME ? ns + get(&set_ns) : ns;
}

/* As it is set, so are maxerror and TAI - wall: a second each. */
static int64_t number_of(int64_t ns)
{
	return ns / SEC;
}

int adjtimex(struct timex *tx)
{
	int64_t number = number_of(get(&set_ns));

	__atomic_fetch_add(&asked, 1, __ATOMIC_RELAXED);
	if (kernels_own)
		return (int)syscall(SYS_adjtimex, tx);
	memset(tx, 0, sizeof(*tx));
	tx->maxerror = 1 + number;
	tx->tai = (int)number;
	return TIME_OK;
}

/* Returns the number of reads that don't hold. */
static void *read_and_judge(void *arg)
{
	struct ct_bounds bounds;
	int64_t before_ns, after_ns;
	intptr_t wrong = 0;

	(void)arg;
	for (int64_t i = 0; i < reads / THREADS; i++) {
		before_ns = clock_ns(CLOCK_REALTIME);
		if (ct_bounds(&bounds) != 0) {
			wrong++;
			continue;
		}
		after_ns = clock_ns(CLOCK_REALTIME);
		wrong += bounds.earliest_ns > after_ns ||
			 bounds.latest_ns < before_ns;
		/* And no wider than they need be. */
		if (!kernels_own)
			wrong += bounds.status != CT_BOUNDS_SYNCHRONISED ||
				 bounds.earliest_ns < before_ns - US - 5 ||
				 bounds.latest_ns > after_ns + US + 5;
	}
	return (void *)wrong;
}

static intptr_t judge_by(int threads, void *(*judge)(void *))
{
	pthread_t thread[THREADS];
	intptr_t wrong = 0;
	void *result;

	for (int i = 0; i < threads; i++)
		ck_assert_int_eq(
			pthread_create(&thread[i], NULL, judge, NULL), 0);
	for (int i = 0; i < threads; i++) {
		pthread_join(thread[i], &result);
		wrong += (intptr_t)result;
	}
	return wrong;
}

START_TEST(one_thread)
{
	intptr_t wrong = 0;

	for (int i = 0; i < THREADS; i++)
		wrong += (intptr_t)read_and_judge(NULL);
	ck_assert_int_eq(wrong, 0);
	/* Once a second. What is interrupted between two clocks looks like a
	 * step, too, which on a busy machine happens. */
	ck_assert_int_ge(asked, 1);
	ck_assert_int_lt(asked, reads / 100);
}
END_TEST

START_TEST(several_threads)
{
	ck_assert_int_eq(judge_by(THREADS, read_and_judge), 0);
}
END_TEST

/* By what the machine's kernel says of its clock. */
START_TEST(kernel_says)
{
	struct ct_bounds bounds;

	kernels_own = true;
	if (ct_bounds(&bounds) != 0 || bounds.status == CT_BOUNDS_UNKNOWN) {
		printf("# it isn't synchronised here\n");
		return;
	}
	ck_assert_int_eq(judge_by(THREADS, read_and_judge), 0);
}
END_TEST

/* While the clock is set: all that is told is of one step. */
static bool done;

static void *judge_what_belongs_together(void *arg)
{
	struct ct_bounds bounds;
	intptr_t wrong = 0;
	int64_t wall_ns, error_ns, number;

	(void)arg;
	for (int64_t i = 0; i < reads / THREADS; i++) {
		if (ct_bounds(&bounds) != 0) {
			wrong++;
			continue;
		}
		error_ns = (bounds.latest_ns - bounds.earliest_ns) / 2;
		wall_ns = bounds.earliest_ns + error_ns;
		/* To the nearest: the reads themselves take time. */
		number = number_of(
			wall_ns - clock_ns(CLOCK_REALTIME) + SEC / 2);
		wrong += number != bounds.tai_offset_s ||
			 error_ns < (1 + number) * US ||
			 error_ns > (1 + number) * US + 5;
	}
	return (void *)wrong;
}

static void *set_and_set(void *arg)
{
	(void)arg;
	for (int64_t i = 0; !__atomic_load_n(&done, __ATOMIC_RELAXED); i++) {
		__atomic_store_n(&set_ns, i % 7 * SEC, __ATOMIC_RELAXED);
		sleep_ns(50 * US);
	}
	return NULL;
}

START_TEST(set_meanwhile)
{
	pthread_t setter;
	intptr_t wrong;

	ck_assert_int_eq(pthread_create(&setter, NULL, set_and_set, NULL), 0);
	wrong = judge_by(THREADS, judge_what_belongs_together);
	__atomic_store_n(&done, true, __ATOMIC_RELAXED);
	pthread_join(setter, NULL);
	ck_assert_int_eq(wrong, 0);
	ck_assert_int_gt(asked, 10);
}
END_TEST

int main(int argc, char **argv)
{
	Suite *suite = suite_create("bounds, real clocks");

	if (argc > 1)
		reads = strtoll(argv[1], NULL, 10);
	add(suite, "one thread", one_thread, 1);
	add(suite, "several threads", several_threads, 1);
	add(suite, "the kernel's own word", kernel_says, 1);
	add(suite, "set meanwhile", set_meanwhile, 1);
	return run_suite(suite);
}
