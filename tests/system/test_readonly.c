/* SPDX-License-Identifier: MIT */
/*
 * Readers write nothing: neither while the words are filled, nor while they
 * are parked for good. The kernel is the judge: the page is made read-only.
 */
#include <pthread.h>
#include <sys/mman.h>

#include "clocks.h"

#define READING 8
#define ROUNDS 20000

static void protect_page(int protection)
{
	ck_assert_int_eq(mprotect(&ct_page, sizeof(ct_page), protection), 0);
}

static void *read_much(void *arg)
{
	for (int i = 0; i < ROUNDS; i++)
		for (int r = 0; r < READERS; r++) {
			CHECK(readers[r].read_inline() > 0);
			CHECK(readers[r].read_function() > 0);
		}
	CHECK(right());
	CHECK(ct_age_ns() >= 0);
	return arg;
}

static void read_by_all(void)
{
	pthread_t thread[READING];

	for (int i = 0; i < READING; i++)
		ck_assert_int_eq(
			pthread_create(&thread[i], NULL, read_much, NULL), 0);
	for (int i = 0; i < READING; i++)
		ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
}

START_TEST(words_filled)
{
	int64_t before_ns;

	ck_assert_int_eq(start_mode(CT_MODE_MANUAL), 0);
	ct_refresh();
	ck_assert(cached());
	before_ns = ct_now_ns();

	protect_page(PROT_READ);
	read_by_all();
	ck_assert_int_eq(ct_now_ns(), before_ns);
	protect_page(PROT_READ | PROT_WRITE);
}
END_TEST

START_TEST(mode_off)
{
	ck_assert_int_eq(start_mode(CT_MODE_OFF), 0);
	protect_page(PROT_READ);
	read_by_all();
	ck_assert(stays_live());
	protect_page(PROT_READ | PROT_WRITE);
}
END_TEST

START_TEST(stopped)
{
	ck_assert(cached_soon());
	ck_assert_int_eq(ct_stop(), 0);
	protect_page(PROT_READ);
	read_by_all();
	ck_assert(stays_live());
	protect_page(PROT_READ | PROT_WRITE);
}
END_TEST

START_TEST(manual_before_the_first_refresh)
{
	ck_assert_int_eq(start_mode(CT_MODE_MANUAL), 0);
	protect_page(PROT_READ);
	read_by_all();
	ck_assert(stays_live());
	protect_page(PROT_READ | PROT_WRITE);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("read-only page");

	add_situation(suite, "words filled", words_filled);
	add_situation(suite, "mode off", mode_off);
	add_situation(suite, "after ct_stop", stopped);
	add_situation(suite, "manual mode before the first refresh",
		manual_before_the_first_refresh);
	return run_suite(suite);
}
