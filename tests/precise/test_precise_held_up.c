/* SPDX-License-Identifier: MIT */
/*
 * A reader is held up in the middle: at each clock and counter that it reads,
 * before and after it has the value. Meanwhile others read, time passes, the
 * clocks are set or fail, the page is wiped. Or it never comes back.
 */
#include "reader.h"

#include <setjmp.h>

#include "segment.h"

/* What a line may lead the kernel's by that is slewed. */
#define LEAD_NS (101 * US)
/* More than a renewal takes. */
#define MOMENTS 200

static int64_t hold_up_ns;
static enum ct_precise outer;
static uint64_t seq_before;

static const int64_t hold_ups[] = { 0, 500, 50 * US, SEGMENT_NS / 2,
	2 * SEGMENT_NS, SEC };

/* A line that is ahead of the kernel's by a little, or behind, and a segment
 * that is over. */
static void begin_moment(uint64_t seed)
{
	begin(rates[seed % LENGTH(rates)]);
	sim.random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	random_next(&sim.random);
	outer = seed % 2 == 0 ? CT_PRECISE_MONO : CT_PRECISE_WALL;
	read_for(30 * MS, 100 * US, MS);
	ck_assert(counts());
	/* It lags or leads when a renewal, in time, has seen the slope
	 * change. */
	sim_slew(random_in(-30000, 30000));
	for (int64_t i = random_in(3, 7); i > 0; i--) {
		sim_pass(random_in(500 * US, MS));
		precise_ride(sim_mono(), MS);
		read_both();
	}
	sim_pass(SEGMENT_NS + SEGMENT_NS / 16);
	forget_errors();
}

static void read_outer(void)
{
	if (outer == CT_PRECISE_MONO)
		read_mono();
	else
		read_wall();
}

static void read_after(void)
{
	for (int i = 0; i < 3; i++) {
		read_both();
		sim_pass(random_in(0, US));
	}
	read_for(3 * MS, 10 * US, MS);
}

/* All moments of a read that renews, and some that don't. */
static void at_each_moment(
	uint64_t seed, void (*what)(void), void (*check)(void))
{
	for (int64_t nth = 1;; nth++) {
		ck_assert_int_lt(nth, MOMENTS);
		begin_moment(seed);
		seq_before = ct_page.segment_seq;
		meanwhile(nth, what);
		read_outer();
		if (!happened())
			break;
		check();
	}
}

/* Others read; each finds the renewal in somebody's hands. */
static void others_read(void)
{
	read_both();
	sim_pass(hold_up_ns);
	read_both();
	read_both();
}

static void just_pass(void)
{
	sim_pass(hold_up_ns);
}

/* As exact as ever: nobody goes by what the one who was held up had seen. */
static void check_exact(void)
{
	ck_assert_int_le(told.worst_ns, LEAD_NS);
	read_after();
	read_for(30 * MS, 10 * US, MS);
	forget_errors();
	read_for(10 * MS, 10 * US, MS);
	ck_assert_int_le(told.worst_ns, RIGHT_NS);
	ck_assert(counts());
	ck_assert_uint_eq(steps_counted(), 0);
}

START_TEST(others)
{
	hold_up_ns = hold_ups[_i];
	for (uint64_t seed = 1; seed < 16; seed++)
		at_each_moment(seed, others_read, check_exact);
}
END_TEST

START_TEST(alone)
{
	hold_up_ns = hold_ups[_i];
	for (uint64_t seed = 1; seed < 16; seed++)
		at_each_moment(seed, just_pass, check_exact);
}
END_TEST

/* One renewal is enough. */
static void others_read_once(void)
{
	read_both();
}

static void check_renewed_once(void)
{
	ck_assert_uint_eq(ct_page.segment_seq, seq_before + 1);
}

START_TEST(renewed_once)
{
	for (uint64_t seed = 1; seed < 16; seed++)
		at_each_moment(seed, others_read_once, check_renewed_once);
}
END_TEST

/* While it measures the rate. */
START_TEST(while_measured)
{
	hold_up_ns = hold_ups[_i];
	for (int reads = 0; reads < 6; reads++) {
		for (int64_t nth = 1;; nth++) {
			ck_assert_int_lt(nth, MOMENTS);
			begin(rates[0]);
			for (int i = 0; i < reads; i++) {
				read_both();
				sim_pass(MS);
			}
			meanwhile(nth, others_read);
			read_both();
			if (!happened())
				break;
			ck_assert_int_le(told.worst_ns, RIGHT_NS);
			settle();
			read_for(10 * MS, 10 * US, MS);
			ck_assert_int_le(told.worst_ns, RIGHT_NS);
		}
	}
}
END_TEST

/* The wall clock is set meanwhile. */
static int64_t step_ns;

static void step(void)
{
	set_wall(step_ns);
}

static void check_step(void)
{
	int64_t set_ns = told.wall_holds_ns - SEGMENT_NS - SEGMENT_NS / 8;

	/* Mono hasn't to do with it. */
	forget_errors();
	read_mono();
	ck_assert_int_le(told.worst_ns, LEAD_NS);
	while (sim.raw_ns - set_ns <= SEGMENT_NS) {
		sim_pass(random_in(10 * US, 200 * US));
		read_both();
	}
	read_for(30 * MS, 10 * US, MS);
	forget_errors();
	read_for(10 * MS, 10 * US, MS);
	ck_assert_int_le(told.worst_ns, RIGHT_NS);
	ck_assert_uint_eq(steps_counted(), 1);
}

START_TEST(wall_is_set)
{
	static const int64_t steps[] = { SEC, -SEC, HOUR, -HOUR, 15 * US,
		-15 * US };

	step_ns = steps[_i];
	for (uint64_t seed = 1; seed < 16; seed++)
		at_each_moment(seed, step, check_step);
}
END_TEST

/*
 * It is set forward, and others read at once. Whom no segment covers is told at
 * once; who reads the next line must not be told less.
 */
static bool is_shown;

static void step_and_read(void)
{
	read_both();
	set_wall(step_ns);
	read_wall();
	is_shown = told.off_ns > -SEC / 2;
	if (is_shown)
		told.wall_holds_ns = 0;
	read_wall();
}

/* Did the renewal look at the wall clock before that? */
static bool is_of_before(void)
{
	struct segment s;

	segment_current(&s);
	return s.wall_offset_ns < sim.wall_offset_ns - SEC / 2;
}

static void read_outer_as_of(bool before, uint64_t seed)
{
	for (int64_t nth = 1;; nth++) {
		ck_assert_int_lt(nth, MOMENTS);
		begin_moment(seed);
		is_shown = false;
		meanwhile(nth, step_and_read);
		/* What this one is told may be of before. */
		precise_read(outer);
		if (!happened())
			break;
		if (!is_shown || is_of_before() != before)
			continue;
		read_wall();
		read_after();
		ck_assert_uint_eq(steps_counted(), 1);
	}
}

START_TEST(wall_is_set_and_read)
{
	step_ns = _i % 2 == 0 ? SEC : HOUR;
	for (uint64_t seed = 1; seed < 32; seed++)
		read_outer_as_of(_i / 2 == 1, seed);
}
END_TEST

/* The kernel's slope changes. */
static int64_t slew_ppm;

static void slew(void)
{
	sim_slew(slew_ppm);
}

static void check_slew(void)
{
	read_after();
	read_for(40 * MS, 10 * US, MS);
	forget_errors();
	read_for(10 * MS, 10 * US, MS);
	ck_assert_int_le(told.worst_ns, RIGHT_NS);
	ck_assert(counts());
}

START_TEST(slew_changes)
{
	static const int64_t slews[] = { 300, -300, 500, -500, 100000,
		-100000 };

	slew_ppm = slews[_i];
	for (uint64_t seed = 1; seed < 16; seed++)
		at_each_moment(seed, slew, check_slew);
}
END_TEST

/* The counter fails. */
static void jump_ahead(void)
{
	sim_jump(SEC);
}

static void jump_ahead_a_little(void)
{
	sim_jump(2 * MS);
}

static void jump_back(void)
{
	sim_jump(-SEC);
}

static void jump_back_a_little(void)
{
	sim_jump(-500 * US);
}

static void reset(void)
{
	sim.cycles = 0;
	sim.cycles_ns = sim.raw_ns;
}

static void run_backwards(void)
{
	sim_rate(-sim.hz);
}

static void run_twice_as_fast(void)
{
	sim_rate(2 * sim.hz);
}

static void (*const faults[])(void) = { jump_ahead, jump_ahead_a_little,
	jump_back, jump_back_a_little, reset, run_backwards,
	run_twice_as_fast };

static void (*inject)(void);

static void fault(void)
{
	inject();
	told.mono_may_go_back = true;
}

static void check_fault(void)
{
	for (int i = 0; i < 400; i++) {
		sim_pass(random_in(100 * US, 600 * US));
		read_both();
		ALWAYS(told.worst_ns <= 2 * SEGMENT_NS + 100 * US);
	}
	ck_assert_str_ne(why_not(), "");
	told.mono_may_go_back = false;
	forget_errors();
	read_for(100 * MS, 10 * US, MS);
	ck_assert_int_le(told.worst_ns, 200);
}

START_TEST(counter_fails)
{
	inject = faults[_i];
	for (uint64_t seed = 1; seed < 8; seed++)
		at_each_moment(seed, fault, check_fault);
}
END_TEST

/* A suspend. */
static void suspend(void)
{
	inject();
	sim.boot_offset_ns += 100 * SEC;
	set_wall(100 * SEC);
}

static void check_suspend(void)
{
	for (int i = 0; i < 10; i++) {
		read_both();
		sim_pass(random_in(10 * US, 500 * US));
	}
	read_for(30 * MS, 10 * US, MS);
	forget_errors();
	read_for(100 * MS, 10 * US, MS);
	ck_assert_int_le(told.worst_ns, RIGHT_NS);
	ck_assert_uint_eq(steps_counted(), 1);
}

static void run_on(void)
{
	sim_jump(100 * SEC);
}

START_TEST(slept)
{
	inject = _i == 0 ? run_on : reset;
	for (uint64_t seed = 1; seed < 8; seed++)
		at_each_moment(seed, suspend, check_suspend);
}
END_TEST

/* A handler forks: its child goes on with a page of zeros. */
static void wipe(void)
{
	memset(&ct_page, 0, sizeof(ct_page));
	/* What the parent was told is another test's. */
	told.mono_ns -= 30 * US;
	told.wall_ns -= 30 * US;
}

static void check_wiped(void)
{
	read_after();
	settle();
	read_for(10 * MS, 10 * US, MS);
	ck_assert_int_le(told.worst_ns, RIGHT_NS);
	ck_assert_uint_eq(ct_page.segment_lock, 0);
}

START_TEST(wiped)
{
	for (uint64_t seed = 1; seed < 8; seed++)
		at_each_moment(seed, wipe, check_wiped);
}
END_TEST

/* Somebody stops it: what is held up in the middle lasts for a segment. */
static void check_stopped(void)
{
	read_after();
	sim_pass(SEGMENT_NS);
	ck_assert_uint_eq(ct_page.segment_lock, 0);
	read_for(10 * MS, 10 * US, MS);
	forget_errors();
	read_for(100 * MS, 10 * US, MS);
	ck_assert_int_le(told.worst_ns, LEAD_NS);
	for (int i = 0; i < 100; i++) {
		uint64_t seq = ct_page.segment_seq;

		sim_pass(MS);
		read_both();
		ALWAYS(ct_page.segment_seq == seq);
	}
}

START_TEST(stopped)
{
	/* Each waits for the lock, as long as it does. */
	at_each_moment(1 + (uint64_t)_i, precise_stop, check_stopped);
}
END_TEST

/* It is cancelled, or a handler jumps out of it: the lock is lost. Wall and
 * mono are read live, and right, for the rest of its life. */
static jmp_buf lost;

static void lose(void)
{
	longjmp(lost, 1);
}

static bool lose_at(uint64_t seed, int64_t nth)
{
	static bool is_lost;

	is_lost = true;
	begin_moment(seed);
	if (setjmp(lost) == 0) {
		meanwhile(nth, lose);
		read_outer();
		is_lost = happened();
	}
	read_after();
	sim_pass(SEC);
	read_both();
	sim_slew(0);
	read_for(20 * MS, 10 * US, MS);
	forget_errors();
	read_for(20 * MS, 10 * US, MS);
	/* By the lead that the line had at last. */
	ck_assert_int_le(told.worst_ns, LEAD_NS);
	return is_lost;
}

START_TEST(reader_is_lost)
{
	for (uint64_t seed = 1; seed < 16; seed++)
		for (int64_t nth = 1; lose_at(seed, nth); nth++)
			ck_assert_int_lt(nth, MOMENTS);
}
END_TEST

/* A step of the wall clock is told then, too. */
static void lose_at_and_step(uint64_t seed, int64_t nth)
{
	begin_moment(seed);
	if (setjmp(lost) == 0) {
		meanwhile(nth, lose);
		read_outer();
		ck_abort_msg("not lost");
	}
	sim_pass(2 * SEGMENT_NS);
	read_both();
	for (int i = 0; i < 10; i++) {
		set_wall(i % 2 == 0 ? HOUR : -HOUR);
		forget_errors();
		read_both();
		ck_assert_int_le(told.worst_ns, LEAD_NS);
		sim_pass(2 * SEGMENT_NS);
		read_both();
	}
}

START_TEST(reader_is_lost_and_wall_is_set)
{
	for (uint64_t seed = 1; seed < 16; seed++)
		for (int64_t nth = 6; nth < 20; nth++)
			lose_at_and_step(seed, nth);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("precise, held up");
	int all = LENGTH(hold_ups);

	add_table(suite, "others read", others, all);
	add_table(suite, "nobody else reads", alone, all);
	add_situation(suite, "renewed once", renewed_once);
	add_table(suite, "while the rate is measured", while_measured, all);
	add_table(suite, "wall is set", wall_is_set, 6);
	add_table(suite, "wall is set forward, and read", wall_is_set_and_read,
		4);
	add_table(suite, "slew changes", slew_changes, 6);
	add_table(suite, "counter fails", counter_fails, LENGTH(faults));
	add_table(suite, "suspend", slept, 2);
	add_situation(suite, "page wiped", wiped);
	add_table(suite, "stopped", stopped, 2);
	add_situation(suite, "reader is lost", reader_is_lost);
	add_situation(suite, "reader is lost, wall is set",
		reader_is_lost_and_wall_is_set);
	return run_suite(suite);
}
