/* SPDX-License-Identifier: MIT */
/*
 * Each back end in turn, as a program sees it: by the public interface and
 * the environment. The tick is 1 ms.
 */
#include "real_hpet.h"

#include <pthread.h>

#include <cachedtime.h>

static const struct backend {
	const char *name;
	bool counter;	/* has a rate of its own */
	int64_t lag_ns; /* what the kernel's coarse clock may lag: two ticks */
} backends[] = {
	{ "tsc", true, 0 },
	{ "realtime", false, 0 },
	{ "coarse", false, 20 * MS },
	{ "hpet", true, 0 },
};

static const struct backend *now_tested;

static struct ct_status status_now(void)
{
	struct ct_status status = { .size = sizeof(status) };

	CHECK(ct_status(&status) == 0);
	return status;
}

/* Until it is the one that was asked for; false: not on this machine. */
static bool becomes_backend(bool manual)
{
	int64_t deadline_ns = clock_ns(CLOCK_MONOTONIC_RAW) + DEADLINE_NS;
	struct ct_status status;

	for (;;) {
		status = status_now();
		if (strcmp(status.backend, now_tested->name) == 0 &&
			status.cached &&
			(!now_tested->counter || status.counter_hz > 0))
			return true;
		if (strstr(status.reason, "was asked for: ") != NULL &&
			strstr(status.reason, "; not ") != NULL) {
			printf("# no %s here: %s\n", now_tested->name,
				status.reason);
			return false;
		}
		if (clock_ns(CLOCK_MONOTONIC_RAW) > deadline_ns) {
			fprintf(stderr, "%s: %s (%llu Hz)\n", status.backend,
				status.reason,
				(unsigned long long)status.counter_hz);
			_exit(1);
		}
		if (manual)
			ct_refresh();
		sleep_ns(MS);
	}
}

static bool begin(int i, enum ct_mode mode)
{
	struct ct_config config = { .size = sizeof(config), .mode = mode };

	now_tested = &backends[i];
	hpet_create();
	*hpet_register(HPET_COUNTER) = hpet_cycles();
	CHECK(setenv("CT_BACKEND", now_tested->name, 1) == 0);
	CHECK(ct_start(&config) == 0);
	hpet_remove();
	return becomes_backend(mode == CT_MODE_MANUAL);
}

/* The clock is read after the word. */
static void assert_not_ahead(int64_t word, clockid_t clock, int64_t unit_ns)
{
	CHECK(word <= clock_ns(clock) / unit_ns);
}

/*
 * Never ahead of the kernel's clock, which nobody sets meanwhile; and not
 * behind it by more than `late_ns`, where the ticker was in time.
 */
static void assert_words(int64_t late_ns)
{
	struct ct_status status = status_now();
	int64_t wall_ns, mono_ns, behind_ns;
	int late = 0, reads = 20000;

	for (int i = 0; i < reads; i++) {
		behind_ns = clock_ns(CLOCK_MONOTONIC);
		mono_ns = ct_mono_ns();
		behind_ns -= mono_ns;
		CHECK(mono_ns <= clock_ns(CLOCK_MONOTONIC));
		late += behind_ns > late_ns;

		behind_ns = clock_ns(CLOCK_REALTIME);
		wall_ns = ct_now_ns();
		behind_ns -= wall_ns;
		CHECK(wall_ns <= clock_ns(CLOCK_REALTIME));
		late += behind_ns > late_ns;

		assert_not_ahead(ct_now_us(), CLOCK_REALTIME, US);
		assert_not_ahead(ct_now_ms(), CLOCK_REALTIME, MS);
		assert_not_ahead(ct_mono_ms(), CLOCK_MONOTONIC, MS);
		assert_not_ahead(ct_boot_ms(), CLOCK_BOOTTIME, MS);
	}
	/* Lateness is the machine's, and is said. */
	printf("# %s: %d of %d reads late; worst tick by %lld us\n",
		status.backend, late, 2 * reads,
		(long long)status_now().max_late_ns / US);
	if (status_now().max_late_ns < MS)
		CHECK(late == 0);
}

START_TEST(words)
{
	struct ct_status status;

	if (!begin(_i, CT_MODE_TICK))
		return;
	assert_words(3 * MS + now_tested->lag_ns);

	status = status_now();
	ck_assert_str_eq(status.backend, now_tested->name);
	ck_assert_msg(strstr(status.reason, "dropped") == NULL, "%s",
		status.reason);
	ck_assert_int_eq(status.last_error, 0);
	ck_assert_uint_eq(status.steps, 0);
	ck_assert_int_eq(status.mode, CT_MODE_TICK);
	if (now_tested->counter)
		ck_assert_uint_gt(status.counter_hz, 0);
	else
		ck_assert_uint_eq(status.counter_hz, 0);
	if (strcmp(now_tested->name, "hpet") == 0)
		ck_assert_int_le(
			llabs((int64_t)status.counter_hz - HPET_HZ), 50000);
}
END_TEST

#define STAMPS 300000

static int64_t mailbox;

static void *pass_stamps(void *arg)
{
	intptr_t backward = 0;
	int64_t received, taken;

	(void)arg;
	for (int i = 0; i < STAMPS; i++) {
		received = __atomic_load_n(&mailbox, __ATOMIC_ACQUIRE);
		/* Live reads among the cached ones. */
		taken = i % 64 == 0 ? (ct_refresh(), ct_mono_ns())
				    : ct_mono_ns();
		backward += taken < received;
		__atomic_store_n(&mailbox, taken, __ATOMIC_RELEASE);
	}
	return (void *)backward;
}

static void assert_no_stamp_back(void)
{
	pthread_t threads[2];
	void *backward;

	for (int i = 0; i < 2; i++)
		CHECK(pthread_create(&threads[i], NULL, pass_stamps, NULL) ==
			0);
	for (int i = 0; i < 2; i++) {
		CHECK(pthread_join(threads[i], &backward) == 0);
		CHECK(backward == NULL);
	}
}

START_TEST(stamps)
{
	if (begin(_i, CT_MODE_TICK))
		assert_no_stamp_back();
}
END_TEST

static int64_t parents_mono_ns, parents_ms;

static void be_a_child(void)
{
	int64_t mono_ns = ct_mono_ns();

	CHECK(mono_ns >= parents_mono_ns);
	CHECK(mono_ns <= clock_ns(CLOCK_MONOTONIC));
	CHECK(ct_now_ms() >= parents_ms);
	CHECK(becomes_backend(false));
	assert_words(3 * MS + now_tested->lag_ns);
	assert_no_stamp_back();
	CHECK(strstr(status_now().reason, "dropped") == NULL);
}

START_TEST(fork_child)
{
	if (!begin(_i, CT_MODE_TICK))
		return;
	for (int i = 0; i < 3; i++) {
		parents_mono_ns = ct_mono_ns();
		parents_ms = ct_now_ms();
		ck_assert(child_does(be_a_child));
	}
	assert_words(3 * MS + now_tested->lag_ns);
	ck_assert_str_eq(status_now().backend, now_tested->name);
}
END_TEST

START_TEST(stop_and_start)
{
	struct ct_config config = { .size = sizeof(config),
		.mode = CT_MODE_TICK };
	int64_t last_ns = 0, now_ns;

	if (!begin(_i, CT_MODE_TICK))
		return;
	for (int i = 0; i < 20; i++) {
		now_ns = ct_mono_ns();
		ck_assert_int_ge(now_ns, last_ns);
		ck_assert_int_eq(ct_stop(), 0);
		ck_assert_int_eq(status_now().cached, 0);
		last_ns = ct_mono_ns();
		ck_assert_int_ge(last_ns, now_ns);
		ck_assert_int_eq(ct_start(&config), 0);
		if (i % 5 == 4)
			ck_assert(becomes_backend(false));
	}
	assert_words(3 * MS + now_tested->lag_ns);
}
END_TEST

START_TEST(manual)
{
	int64_t ms, mono_ns, before_ns;

	if (!begin(_i, CT_MODE_MANUAL))
		return;
	ck_assert_int_eq(status_now().mode, CT_MODE_MANUAL);
	for (int i = 0; i < 30; i++) {
		before_ns = clock_ns(CLOCK_MONOTONIC);
		ms = ct_refresh();
		mono_ns = ct_mono_ns();
		ck_assert_int_ge(mono_ns,
			before_ns - 200 * US - now_tested->lag_ns);
		ck_assert_int_le(mono_ns, clock_ns(CLOCK_MONOTONIC));
		sleep_ns(5 * MS);
		/* Time stands. */
		ck_assert_int_eq(ct_now_ms(), ms);
		ck_assert_int_eq(ct_mono_ns(), mono_ns);
	}
	ck_assert_str_eq(status_now().backend, now_tested->name);
	assert_no_stamp_back();
}
END_TEST

/* From one to the next: nothing is left of the last. */
START_TEST(one_after_another)
{
	struct ct_config config = { .size = sizeof(config),
		.mode = CT_MODE_TICK };
	int64_t last_ns = 0;

	hpet_create();
	*hpet_register(HPET_COUNTER) = hpet_cycles();
	for (int i = 0; i < 3 * LENGTH(backends); i++) {
		now_tested = &backends[i % LENGTH(backends)];
		config.backend = now_tested->name;
		ck_assert_int_eq(ct_start(&config), 0);
		ck_assert_int_ge(ct_mono_ns(), last_ns);
		if (!becomes_backend(false))
			continue;
		if (!now_tested->counter)
			ck_assert_uint_eq(status_now().counter_hz, 0);
		last_ns = ct_mono_ns();
	}
	hpet_remove();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("back ends");
	int all = LENGTH(backends);

	add_table(suite, "ticker", words, all);
	add_table(suite, "two threads", stamps, all);
	add_table(suite, "fork", fork_child, all);
	add_table(suite, "stop and start", stop_and_start, all);
	add_table(suite, "manual", manual, all);
	add_situation(suite, "one after another", one_after_another);
	return run_suite(suite);
}
