/* SPDX-License-Identifier: MIT */
/* What the tests of the public interface share. */
#ifndef API_H
#define API_H

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <cachedtime.h>

#include "suite.h"

#define US INT64_C(1000)
#define MS INT64_C(1000000)
#define SEC INT64_C(1000000000)

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))

/* It has threads of its own. */
#if defined(__SANITIZE_THREAD__)
#define THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define THREAD_SANITIZER 1
#endif
#endif
#ifndef THREAD_SANITIZER
#define THREAD_SANITIZER 0
#endif

static inline bool is_ticker(const char *tid)
{
	char path[300], name[32] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%s/comm", tid);
	file = fopen(path, "r");
	if (file == NULL)
		return false;
	if (fgets(name, sizeof(name), file) == NULL)
		name[0] = '\0';
	fclose(file);
	return strcmp(name, "cachedtime\n") == 0;
}

/* How many threads this process has, and which of them is the ticker: 0 if
 * none, -1 if several. */
static inline int count_threads(int *ticker)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	int threads = 0;

	*ticker = 0;
	if (dir == NULL)
		return 0;
	while ((entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		threads++;
		if (is_ticker(entry->d_name))
			*ticker = *ticker == 0 ? atoi(entry->d_name) : -1;
	}
	closedir(dir);
	return threads;
}

static inline int ticker_id(void)
{
	int ticker;

	count_threads(&ticker);
	ck_assert_int_ne(ticker, -1);
	return ticker;
}

/* What CT_BACKEND=auto takes, as the machine is. */
static inline bool is_automatic(const char *backend)
{
	return strcmp(backend, "tsc") == 0 || strcmp(backend, "realtime") == 0;
}

static inline struct ct_status status_now(void)
{
	struct ct_status status = { .size = sizeof(status) };

	ck_assert_int_eq(ct_status(&status), 0);
	return status;
}

static inline int start_mode(enum ct_mode mode, int64_t tick_ns)
{
	struct ct_config config = {
		.size = sizeof(config), .mode = mode, .tick_ns = tick_ns
	};

	return ct_start(&config);
}

static inline bool is_cached(void)
{
	return __atomic_load_n(&ct_page.wall_ms, __ATOMIC_RELAXED) > 0;
}

/* The ticker publishes a moment after it was started. */
static inline void wait_until_cached(void)
{
	int64_t deadline_ns = clock_ns(CLOCK_MONOTONIC) + 20 * SEC;

	while (!is_cached() && clock_ns(CLOCK_MONOTONIC) < deadline_ns)
		sleep_ns(100 * US);
	ck_assert(is_cached());
}

/* Live reads ask the clock: what they tell lies between two looks at it. */
static inline void assert_live(void)
{
	int64_t before_ns, now_ns, after_ns;

	ck_assert(!is_cached());
	before_ns = clock_ns(CLOCK_MONOTONIC);
	now_ns = ct_mono_ns();
	after_ns = clock_ns(CLOCK_MONOTONIC);
	ck_assert_int_ge(now_ns, before_ns);
	ck_assert_int_le(now_ns, after_ns);
	ck_assert(!is_cached());
}

static inline void assert_off(void)
{
	struct ct_status status = status_now();

	ck_assert_int_eq(status.mode, CT_MODE_OFF);
	ck_assert_int_eq(status.cached, 0);
	ck_assert_int_eq(status.age_ns, 0);
	ck_assert_int_eq(status.tick_ns, 0);
	ck_assert_int_eq(ct_age_ns(), 0);
	for (int i = 0; i < 1000; i++)
		ct_now_ms();
	ct_refresh();
	assert_live();
	ck_assert_int_eq(ticker_id(), 0);
}

static inline void unset_environment(void)
{
	unsetenv("CT_TICK");
	unsetenv("CT_BACKEND");
}

/* A case of its own for each situation: a fresh process with no settings. */
static inline void add(
	Suite *suite, const char *situation, const TTest *test, int n)
{
	TCase *tcase = tcase_create(situation);

	tcase_add_checked_fixture(tcase, unset_environment, NULL);
	tcase_set_timeout(tcase, 50);
	tcase_add_loop_test(tcase, test, 0, n);
	suite_add_tcase(suite, tcase);
}

#endif /* API_H */
