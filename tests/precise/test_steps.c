/* SPDX-License-Identifier: MIT */
/*
 * Steps of the wall clock, on a clock that is set by hand: each is counted
 * once, whoever looks, and whatever happens while he looks; and is told once.
 */
#include "turned.h"

#include <cachedtime.h>

#include "steps.h"

static uint64_t first;

static void begin(void)
{
	turned_begin(1000000000);
	first = steps_look();
}

static uint64_t counted(void)
{
	return steps_generation() - first;
}

static int64_t true_offset_ns(void)
{
	return sim.wall_offset_ns;
}

static const int64_t sizes[] = { 11 * US, -11 * US, MS, -MS, SEC, -SEC, HOUR,
	-HOUR, 20 * 365 * 24 * HOUR };

START_TEST(none)
{
	begin();
	/* One at first. */
	ck_assert_uint_eq(steps_generation(), 1);
	for (int i = 0; i < 10000; i++) {
		sim_pass(random_in(0, SEC));
		sim_slew(random_in(-500, 500));
		ALWAYS(steps_look() == 1);
	}
	ck_assert_int_le(magnitude(steps_offset_ns() - true_offset_ns()), 100);
}
END_TEST

START_TEST(counted_once)
{
	begin();
	for (uint64_t i = 1; i < 100; i++) {
		sim_pass(random_in(0, SEC));
		sim.wall_offset_ns += i % 2 ? sizes[_i] : -sizes[_i];
		ck_assert_uint_eq(counted(), i - 1);
		ck_assert_uint_eq(steps_look(), first + i);
		ck_assert_uint_eq(steps_look(), first + i);
		ck_assert_uint_eq(counted(), i);
		ck_assert_int_le(
			magnitude(steps_offset_ns() - true_offset_ns()), 100);
	}
}
END_TEST

/* Less than 10 us isn't one; what adds up to that is. */
START_TEST(small)
{
	begin();
	sim.wall_offset_ns += 9 * US;
	steps_look();
	ck_assert_uint_eq(counted(), 0);
	sim.wall_offset_ns -= 18 * US;
	steps_look();
	ck_assert_uint_eq(counted(), 0);
	sim.wall_offset_ns -= 2 * US;
	steps_look();
	ck_assert_uint_eq(counted(), 1);
	steps_look();
	ck_assert_uint_eq(counted(), 1);
}
END_TEST

/* Two between two looks are one; two that cancel each other are none. */
START_TEST(two_at_once)
{
	begin();
	sim.wall_offset_ns += SEC;
	sim.wall_offset_ns += SEC;
	steps_look();
	ck_assert_uint_eq(counted(), 1);
	sim.wall_offset_ns += SEC;
	sim.wall_offset_ns -= SEC;
	steps_look();
	ck_assert_uint_eq(counted(), 1);
}
END_TEST

/* Being held up in the middle isn't a step. */
START_TEST(busy)
{
	begin();
	sim.preempt_per_mille = 200;
	for (int i = 0; i < 20000; i++) {
		sim_pass(random_in(0, MS));
		ALWAYS(steps_look() == first);
	}
}
END_TEST

/* Nor does it hide one for long. */
START_TEST(busy_and_set)
{
	begin();
	for (uint64_t i = 1; i < 500; i++) {
		uint64_t before = counted();

		sim.preempt_per_mille = 200;
		sim.wall_offset_ns += i % 2 ? sizes[_i] : -sizes[_i];
		for (int looks = 0; looks < 5; looks++)
			steps_look();
		sim.preempt_per_mille = 0;
		steps_look();
		ALWAYS(counted() == before + 1);
	}
}
END_TEST

/* The very first look was held up, however often it tried. */
START_TEST(first_look_is_wide)
{
	turned_begin(1000000000);
	sim.random += (uint64_t)_i * UINT64_C(0x9e3779b97f4a7c15);
	sim.preempt_per_mille = 400;
	steps_look();
	sim.preempt_per_mille = 0;
	ck_assert_uint_eq(steps_look(), 1);
	ck_assert_uint_eq(steps_look(), 1);
	sim.wall_offset_ns += SEC;
	ck_assert_uint_eq(steps_look(), 2);
	ck_assert_uint_eq(steps_look(), 2);
}
END_TEST

/* What happens while somebody looks. */
static int64_t size_ns;

static void set(void)
{
	sim.wall_offset_ns += size_ns;
}

static void set_and_look(void)
{
	sim.wall_offset_ns += size_ns;
	steps_look();
}

static void look(void)
{
	steps_look();
}

static void set_and_back(void)
{
	sim.wall_offset_ns += size_ns;
	steps_look();
	sim.wall_offset_ns -= size_ns;
	steps_look();
}

static const struct {
	void (*what)(void);
	uint64_t steps;
} others[] = {
	{ set, 1 },
	{ set_and_look, 1 },
	{ set_and_back, 2 },
};

START_TEST(set_meanwhile)
{
	size_ns = sizes[_i % LENGTH(sizes)];
	begin();
	for (int64_t nth = 1;; nth++) {
		const int other = _i / LENGTH(sizes);
		uint64_t before = counted();

		meanwhile(nth, others[other].what);
		steps_look();
		if (!happened())
			break;
		steps_look();
		ck_assert_uint_eq(counted(), before + others[other].steps);
		ck_assert_int_le(
			magnitude(steps_offset_ns() - true_offset_ns()), 100);
	}
}
END_TEST

/* Both find it. */
START_TEST(looked_at_meanwhile)
{
	begin();
	for (int64_t nth = 1;; nth++) {
		uint64_t before = counted();

		sim.wall_offset_ns += sizes[_i];
		meanwhile(nth, look);
		steps_look();
		if (!happened())
			break;
		ck_assert_uint_eq(counted(), before + 1);
		steps_look();
		ck_assert_uint_eq(counted(), before + 1);
	}
}
END_TEST

START_TEST(raised)
{
	begin();
	steps_raise(first + 7);
	ck_assert_uint_eq(counted(), 7);
	steps_raise(first + 3);
	ck_assert_uint_eq(counted(), 7);
	sim.wall_offset_ns += SEC;
	ck_assert_uint_eq(steps_look(), first + 8);
}
END_TEST

/* What is told. */
static int calls;
static int64_t told_ns;
static void *told_arg;

static void told(int64_t delta_ns, void *arg)
{
	calls++;
	told_ns = delta_ns;
	told_arg = arg;
}

static void forget(void)
{
	calls = 0;
	told_ns = 0;
	told_arg = NULL;
}

START_TEST(delivered)
{
	begin();
	steps_call(told, &told_ns);
	steps_deliver();
	ck_assert_int_eq(calls, 0);
	for (int i = 0; i < 20; i++) {
		int64_t step_ns = i % 2 == 0 ? sizes[_i] : -sizes[_i];

		forget();
		sim_pass(random_in(0, SEC));
		sim.wall_offset_ns += step_ns;
		/* By who publishes, when somebody has looked. */
		steps_deliver();
		ck_assert_int_eq(calls, 0);
		steps_look();
		ck_assert_int_eq(calls, 0);
		steps_deliver();
		ck_assert_int_eq(calls, 1);
		ck_assert_int_le(magnitude(told_ns - step_ns), 100);
		ck_assert_ptr_eq(told_arg, &told_ns);
		steps_deliver();
		ck_assert_int_eq(calls, 1);
	}
}
END_TEST

START_TEST(two_delivered_as_one)
{
	begin();
	steps_call(told, NULL);
	sim.wall_offset_ns += 5 * SEC;
	steps_look();
	sim.wall_offset_ns -= 2 * SEC;
	steps_look();
	ck_assert_uint_eq(counted(), 2);
	steps_deliver();
	ck_assert_int_eq(calls, 1);
	ck_assert_int_le(magnitude(told_ns - 3 * SEC), 100);
	steps_deliver();
	ck_assert_int_eq(calls, 1);
}
END_TEST

/* Nobody is told of what was before he asked, seen or not. */
START_TEST(registered_late)
{
	begin();
	sim.wall_offset_ns += SEC;
	if (_i == 0)
		steps_look();
	if (_i == 1) {
		steps_look();
		steps_deliver();
	}
	steps_call(told, NULL);
	steps_deliver();
	ck_assert_int_eq(calls, 0);
	/* It was counted, all the same. */
	ck_assert_uint_eq(counted(), 1);
	sim.wall_offset_ns += MS;
	steps_look();
	steps_deliver();
	ck_assert_int_eq(calls, 1);
	ck_assert_int_le(magnitude(told_ns - MS), 100);
}
END_TEST

START_TEST(registered_no_more)
{
	begin();
	steps_call(told, NULL);
	steps_call(NULL, NULL);
	sim.wall_offset_ns += SEC;
	steps_look();
	steps_deliver();
	ck_assert_int_eq(calls, 0);
	/* And again: not of that one. */
	steps_call(told, NULL);
	steps_deliver();
	ck_assert_int_eq(calls, 0);
	sim.wall_offset_ns += SEC;
	steps_look();
	steps_deliver();
	ck_assert_int_eq(calls, 1);
}
END_TEST

/* From within. */
static void told_twice(int64_t delta_ns, void *arg)
{
	told(delta_ns, arg);
	steps_deliver();
	steps_look();
}

START_TEST(delivers_from_within)
{
	begin();
	steps_call(told_twice, NULL);
	sim.wall_offset_ns += SEC;
	steps_look();
	steps_deliver();
	ck_assert_int_eq(calls, 1);
	ck_assert_uint_eq(ct_page.step_lock, 0);
}
END_TEST

/* It is set again while fn is called: told at the next delivery. */
static void told_and_set(int64_t delta_ns, void *arg)
{
	told(delta_ns, arg);
	if (calls == 1) {
		sim.wall_offset_ns += MS;
		steps_look();
	}
}

START_TEST(set_from_within)
{
	begin();
	steps_call(told_and_set, NULL);
	sim.wall_offset_ns += SEC;
	steps_look();
	steps_deliver();
	ck_assert_int_eq(calls, 1);
	ck_assert_int_le(magnitude(told_ns - SEC), 100);
	steps_deliver();
	ck_assert_int_eq(calls, 2);
	ck_assert_int_le(magnitude(told_ns - MS), 100);
	steps_deliver();
	ck_assert_int_eq(calls, 2);
}
END_TEST

/* Somebody else delivers, or sets it: next time. */
START_TEST(delivery_is_taken)
{
	begin();
	steps_call(told, NULL);
	sim.wall_offset_ns += SEC;
	steps_look();
	ct_page.step_lock = 1;
	steps_deliver();
	ck_assert_int_eq(calls, 0);
	ct_page.step_lock = 0;
	steps_deliver();
	ck_assert_int_eq(calls, 1);
	ck_assert_int_le(magnitude(told_ns - SEC), 100);
}
END_TEST

/* As in the child of a fork: who is registered is so there too. */
START_TEST(page_wiped)
{
	begin();
	steps_call(told, NULL);
	sim.wall_offset_ns += SEC;
	steps_look();
	memset(&ct_page, 0, sizeof(ct_page));
	sim.wall_offset_ns += SEC;
	ck_assert_uint_eq(steps_look(), first + 2);
	steps_deliver();
	ck_assert_int_eq(calls, 1);
	ck_assert_int_le(magnitude(told_ns - 2 * SEC), 100);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("steps");
	int all = LENGTH(sizes);

	add_situation(suite, "none", none);
	add_table(suite, "counted once", counted_once, all);
	add_situation(suite, "small ones", small);
	add_situation(suite, "two at once", two_at_once);
	add_situation(suite, "busy machine", busy);
	add_table(suite, "busy machine, set", busy_and_set, all);
	add_table(suite, "first look is wide", first_look_is_wide, 20);
	add_table(suite, "set meanwhile", set_meanwhile, LENGTH(others) * all);
	add_table(suite, "looked at meanwhile", looked_at_meanwhile, all);
	add_situation(suite, "raised", raised);
	add_table(suite, "delivered", delivered, all);
	add_situation(suite, "two delivered as one", two_delivered_as_one);
	add_table(suite, "registered late", registered_late, 3);
	add_situation(suite, "registered no more", registered_no_more);
	add_situation(suite, "delivers from within", delivers_from_within);
	add_situation(suite, "set from within", set_from_within);
	add_situation(suite, "delivery is taken", delivery_is_taken);
	add_situation(suite, "page wiped", page_wiped);
	return run_suite(suite);
}
