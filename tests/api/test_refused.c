/* SPDX-License-Identifier: MIT */
/*
 * No thread to be had. The program's own pthread_create() comes before the
 * C library's, so that no limit of this machine is needed.
 */
#include <dlfcn.h>
#include <pthread.h>

#include "errno_kept.h"

static bool refused = true;
static int asked;

int pthread_create(pthread_t *restrict thread,
	const pthread_attr_t *restrict attr, void *(*main_function)(void *),
	void *restrict arg)
{
	int (*next)(
		pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	void *found = dlsym(RTLD_NEXT, "pthread_create");

	asked++;
	if (refused) {
		errno = EAGAIN;
		return EAGAIN;
	}
	memcpy(&next, &found, sizeof(next));
	return next(thread, attr, main_function, arg);
}

START_TEST(start_is_refused)
{
	struct ct_config config = { .size = sizeof(config),
		.mode = CT_MODE_TICK };

	errno = NO_ERRNO;
	ck_assert_int_eq(ct_start(&config), -EAGAIN);
	ck_assert_int_eq(errno, NO_ERRNO);
	ck_assert_int_eq(asked, 1);
	assert_live();
	ck_assert_int_eq(status_now().last_error, -EAGAIN);
	ck_assert_ptr_nonnull(strstr(status_now().error, "thread"));
	everything_keeps_errno();

	/* A limit doesn't change from one read to the next. */
	for (int i = 0; i < 1000; i++)
		ct_now_ms();
	ck_assert_int_le(asked, 3);
}
END_TEST

START_TEST(read_is_refused)
{
	everything_keeps_errno();
	assert_live();
	ck_assert_int_eq(status_now().last_error, -EAGAIN);
	ck_assert_int_eq(status_now().cached, 0);
	ck_assert_int_ge(asked, 1);
}
END_TEST

START_TEST(allowed_later)
{
	ck_assert_int_eq(ct_start(NULL), -EAGAIN);
	refused = false;
	ck_assert_int_eq(ct_start(NULL), 0);
	wait_until_cached();
	ck_assert_int_eq(status_now().last_error, 0);
	ck_assert_str_eq(status_now().error, "");
}
END_TEST

START_TEST(allowed_later_and_only_read)
{
	int64_t deadline_ns = clock_ns(CLOCK_MONOTONIC) + 20 * SEC;

	ct_now_ms();
	ck_assert_int_eq(asked, 1);
	refused = false;
	while (!is_cached() && clock_ns(CLOCK_MONOTONIC) < deadline_ns)
		ct_now_ms();
	ck_assert(is_cached());
	ck_assert_int_eq(status_now().last_error, 0);
}
END_TEST

/* Manual needs none. */
START_TEST(manual)
{
	ck_assert_int_eq(start_mode(CT_MODE_MANUAL, 0), 0);
	ct_refresh();
	ck_assert(is_cached());
	ck_assert_int_eq(asked, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("refused thread");

	add(suite, "start", start_is_refused, 1);
	add(suite, "read", read_is_refused, 1);
	add(suite, "allowed later", allowed_later, 1);
	add(suite, "allowed later, only read", allowed_later_and_only_read, 1);
	add(suite, "manual", manual, 1);
	return run_suite(suite);
}
