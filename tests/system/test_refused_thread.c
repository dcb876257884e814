/* SPDX-License-Identifier: MIT */
/* No thread to be had: reads are live, status says why, and it is tried again.
 */
#include <dlfcn.h>
#include <errno.h>
#include <grp.h>
#include <pthread.h>
#include <sys/resource.h>

#include "life.h"

static int refusing, attempts;

/* Instead of libpthread's, for the library too. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attr,
	void *(*main)(void *), void *arg)
{
	int (*real)(
		pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

	__atomic_fetch_add(&attempts, 1, __ATOMIC_RELAXED);
	if (refusing)
		return EAGAIN;
	*(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
	return real(thread, attr, main, arg);
}

static void expect_refusal(void)
{
	CHECK(right());
	CHECK(stays_live());
	CHECK(threads_become(1));
	expect_error(-EAGAIN, "no thread");
	CHECK(status_now().mode == CT_MODE_TICK);
	CHECK(!status_now().cached);
}

static void expect_none_of_it(void)
{
	CHECK(ticks_right());
	CHECK(status_now().last_error == 0);
}

START_TEST(refused_to_a_read)
{
	refusing = 1;
	expect_refusal();
	/* After that a read tries about once a second, not each time. */
	ck_assert_int_ge(attempts, 1);
	ck_assert_int_le(attempts, 3);
	refusing = 0;
	expect_none_of_it();
}
END_TEST

START_TEST(refused_to_ct_start)
{
	refusing = 1;
	ck_assert_int_eq(ct_start(NULL), -EAGAIN);
	expect_refusal();
	ck_assert_int_eq(ct_start(NULL), -EAGAIN);
	expect_refusal();
	refusing = 0;
	ck_assert_int_eq(ct_start(NULL), 0);
	expect_none_of_it();
}
END_TEST

START_TEST(refused_to_a_change_of_tick)
{
	ck_assert(cached_soon());
	refusing = 1;
	ck_assert_int_eq(start_tick(5 * MS), -EAGAIN);
	expect_refusal();
	refusing = 0;
	expect_none_of_it();
	ck_assert_int_eq(status_now().tick_ns, 5 * MS);
}
END_TEST

static void refusal_in_child(void)
{
	refusing = 1;
	CHECK(ct_start(NULL) == -EAGAIN);
	expect_refusal();
	refusing = 0;
	expect_none_of_it();
}

START_TEST(refused_to_a_forked_child)
{
	ck_assert(cached_soon());
	ck_assert(child_does(refusal_in_child));
	ck_assert(cached() && right());
}
END_TEST

START_TEST(stopped_while_refused)
{
	refusing = 1;
	expect_refusal();
	ck_assert_int_eq(ct_stop(), 0);
	refusing = 0;
	ck_assert(stays_live());
	ck_assert_int_eq(ct_start(NULL), 0);
	expect_none_of_it();
}
END_TEST

/* Root has no such limit. */
static void become_nobody(void)
{
	if (getuid() != 0)
		return;
	CHECK(setgroups(0, NULL) == 0);
	CHECK(setresgid(65534, 65534, 65534) == 0);
	CHECK(setresuid(65534, 65534, 65534) == 0);
}

static rlim_t set_soft_limit(int resource, rlim_t value)
{
	struct rlimit limit;
	rlim_t before;

	CHECK(getrlimit((__rlimit_resource_t)resource, &limit) == 0);
	before = limit.rlim_cur;
	limit.rlim_cur = value;
	CHECK(setrlimit((__rlimit_resource_t)resource, &limit) == 0);
	return before;
}

START_TEST(limit_on_processes)
{
	rlim_t before;

	become_nobody();
	before = set_soft_limit(RLIMIT_NPROC, 0);
	expect_refusal();
	ck_assert_int_eq(ct_start(NULL), -EAGAIN);
	set_soft_limit(RLIMIT_NPROC, before);
	expect_none_of_it();
}
END_TEST

START_TEST(limit_on_memory)
{
	rlim_t before = set_soft_limit(RLIMIT_AS,
		(rlim_t)pages_of_memory() * (rlim_t)sysconf(_SC_PAGESIZE));

	ck_assert_int_eq(ct_start(NULL), -EAGAIN);
	expect_refusal();
	set_soft_limit(RLIMIT_AS, before);
	ck_assert_int_eq(ct_start(NULL), 0);
	expect_none_of_it();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("refused thread");

	add_situation(suite, "refused to a read", refused_to_a_read);
	add_situation(suite, "refused to ct_start", refused_to_ct_start);
	add_situation(suite, "refused to a change of tick",
		refused_to_a_change_of_tick);
	add_situation(
		suite, "refused to a forked child", refused_to_a_forked_child);
	add_situation(suite, "stopped while refused", stopped_while_refused);
	add_situation(suite, "limit on processes", limit_on_processes);
	add_situation(suite, "limit on memory", limit_on_memory);
	return run_suite(suite);
}
