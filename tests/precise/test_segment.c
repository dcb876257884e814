/* SPDX-License-Identifier: MIT */
/*
 * How one segment of the precise line follows another: what readers are told
 * never goes back, whoever decides where it begins, and however late.
 */
#include "turned.h"

#include <setjmp.h>

#include "kernel_clock.h"
#include "segment.h"
#include "steps.h"

#define SPAN_NS (2500 * US)
/* CLOCK_MONOTONIC at a counter: half a bracket of both. */
#define BRACKET_NS 50
#define OFFSET_NS (1700000000 * SEC)

static const int64_t rates[] = { 1000000000, 2100000000, 3700000000,
	400000000 };

/* No reader has been told more. */
static int64_t told_ns;

static uint64_t mult_of(int64_t hz)
{
	return (uint64_t)(((u128)SEC << 32) / (u128)hz);
}

static void begin(int64_t hz)
{
	/* Each round of a test is a process of its own. */
	memset(&ct_page, 0, sizeof(ct_page));
	told_ns = 0;
	turned_begin(hz);
}

static void begin_random(uint64_t seed)
{
	begin(rates[seed % LENGTH(rates)]);
	sim.random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	random_next(&sim.random);
}

/* As a reader does by the rules 1 and 4, and renews nothing. */
static int64_t read_mono(void)
{
	struct segment s;
	uint64_t number, cycles;
	int64_t ns;

	for (;;) {
		number = segment_current(&s);
		if (s.span != 0) {
			cycles = segment_counter();
			if (segment_is_over(number, (int64_t)cycles))
				continue;
			if (segment_covers(&s, cycles))
				return segment_mono(&s, cycles);
		}
		ns = segment_live_mono(&s, kernel_clock_ns(CLOCK_MONOTONIC));
		if (!segment_is_over(number, ns))
			return ns;
	}
}

/* No less than what had been told when it began. */
static void read_checked(void)
{
	int64_t before_ns = told_ns;
	int64_t ns = read_mono();

	if (ns < before_ns)
		ck_abort_msg("back by %lld ns", (long long)(before_ns - ns));
	if (ns > told_ns)
		told_ns = ns;
}

/* Where the line is for a reader of this moment. */
static int64_t line_ns(void)
{
	struct segment s;

	segment_current(&s);
	if (s.span != 0 && segment_covers(&s, sim_cycles()))
		return segment_mono(&s, sim_cycles());
	return segment_live_mono(&s, sim_mono());
}

static int64_t lead_ns(void)
{
	return line_ns() - sim_mono();
}

/* From now on, with the counter's slope and so many ppm more. */
static struct segment steeper_by(int64_t ppm)
{
	struct segment next = {
		.cycles = sim_cycles(),
		.mult = mult_of(sim.hz),
		.wall_offset_ns = OFFSET_NS,
		.lead_ns = lead_ns() + SPAN_NS / 1000000 * ppm,
	};

	next.mult = (uint64_t)((int64_t)next.mult +
			       (int64_t)next.mult / 1000000 * ppm);
	next.span = segment_cycles(&next, SPAN_NS);
	return next;
}

/* As precise time bends it: back to CLOCK_MONOTONIC, if it is far from it. */
static struct segment steeper_at_random(void)
{
	int64_t most = lead_ns() > 40 * US ? 0 : 25000;
	int64_t least = lead_ns() < -40 * US ? 0 : -25000;

	return steeper_by(random_in(least, most));
}

static void publish(struct segment next)
{
	next.generation = steps_generation();
	segment_publish(&next);
}

static struct segment current(void)
{
	struct segment s;

	segment_current(&s);
	return s;
}

static uint64_t number(void)
{
	struct segment s;

	return segment_current(&s);
}

START_TEST(zero_page)
{
	struct segment s;

	begin(rates[0]);
	ck_assert_uint_eq(segment_current(&s), 0);
	ck_assert_uint_eq(s.span, 0);
	ck_assert(!segment_covers(&s, 0));
	ck_assert(!segment_covers(&s, sim_cycles()));
	ck_assert_int_eq(segment_live_mono(&s, 1), 1);
	ck_assert_int_eq(segment_live_mono(&s, sim_mono()), sim_mono());
	ck_assert_int_eq(turned.reads, 0);
	ck_assert(!segment_is_over(0, INT64_MAX));
	ck_assert(segment_is_over(1, 0));
}
END_TEST

START_TEST(first)
{
	struct segment s;

	begin(rates[_i]);
	publish(steeper_by(0));
	s = current();
	ck_assert_uint_eq(number(), 1);
	ck_assert(segment_covers(&s, sim_cycles()));
	ck_assert_int_le(magnitude(lead_ns()), BRACKET_NS);
	ck_assert_int_eq(s.wall_offset_ns, OFFSET_NS);
	/* For as long as it says. */
	sim_pass(SPAN_NS - US);
	ck_assert(segment_covers(&s, sim_cycles()));
	sim_pass(US);
	ck_assert(!segment_covers(&s, sim_cycles()));
}
END_TEST

/* What was given comes back, in either copy. */
START_TEST(whole)
{
	begin(rates[0]);
	for (int64_t i = 1; i < 10; i++) {
		struct segment said = {
			.cycles = sim_cycles(),
			.mult = mult_of(sim.hz) + (uint64_t)i,
			.span = (uint64_t)(1000000 + i),
			.wall_offset_ns = OFFSET_NS + i * SEC,
			.lead_ns = i,
			.jumps = i % 3 == 0,
		};
		struct segment s;

		publish(said);
		s = current();
		ck_assert_uint_eq(s.cycles, said.cycles);
		ck_assert_uint_eq(s.mult, said.mult);
		ck_assert_uint_eq(s.span, said.span);
		ck_assert_int_eq(s.wall_offset_ns, said.wall_offset_ns);
		ck_assert_int_eq(s.lead_ns, said.lead_ns);
		ck_assert(s.jumps == said.jumps);
	}
}
END_TEST

/* The clock has just begun, and where the line begins is before that: no mark.
 */
START_TEST(time_zero)
{
	struct segment next;

	begin(rates[_i]);
	sim.mono_ns = 0;
	next = steeper_by(25000);
	sim_pass(100 * US);
	publish(next);
	for (int i = 0; i < 100; i++) {
		read_checked();
		ck_assert_int_le(magnitude(lead_ns()), 10 * US);
	}
	publish(steeper_by(0));
	read_checked();
}
END_TEST

/* The functions, by their words. */
START_TEST(arithmetic)
{
	struct segment s = {
		.cycles = 1000000,
		.mult = mult_of(500000000),
		.span = 1250000,
		.mono_ns = 5 * SEC,
		.lead_ns = -300,
	};

	ck_assert(!segment_covers(&s, s.cycles - 1));
	ck_assert(segment_covers(&s, s.cycles));
	ck_assert(segment_covers(&s, s.cycles + s.span - 1));
	ck_assert(!segment_covers(&s, s.cycles + s.span));
	ck_assert(!segment_covers(&s, 0));

	ck_assert_int_eq(segment_mono(&s, s.cycles), 5 * SEC);
	ck_assert_int_eq(segment_mono(&s, s.cycles + 1), 5 * SEC + 2);
	ck_assert_int_eq(
		segment_mono(&s, s.cycles + 1249999), 5 * SEC + 2499998);
	ck_assert_uint_eq(segment_cycles(&s, 2500 * US), 1250000);
	ck_assert_uint_eq(segment_cycles(&s, 3), 1);

	/* What a reader may have been told, at most. */
	ck_assert_int_eq(segment_end(&s, s.cycles + 10), 5 * SEC + 20);
	ck_assert_int_eq(segment_end(&s, s.cycles + s.span), 5 * SEC + 2500000);
	ck_assert_int_eq(segment_end(&s, s.cycles - 1), 5 * SEC + 2500000);

	/* Not before its end, and by its lead. */
	ck_assert_int_eq(segment_live_mono(&s, 5 * SEC), 5 * SEC + 2500000);
	ck_assert_int_eq(segment_live_mono(&s, 6 * SEC), 6 * SEC - 300);
}
END_TEST

/* In time: from the very point at which the predecessor's line is. */
START_TEST(in_time)
{
	for (uint64_t seed = 1; seed < 3000; seed++) {
		begin_random(seed);
		publish(steeper_at_random());
		for (int i = 0; i < 10; i++) {
			struct segment old, next;
			int64_t jump_ns;

			sim_pass(random_in(0, SPAN_NS / 100 * 97));
			old = current();
			publish(steeper_at_random());
			/* Decided by one look at the counter. */
			next = current();
			jump_ns = segment_mono(&next, turned.cycles) -
				  segment_mono(&old, turned.cycles);
			ALWAYS(segment_covers(&old, turned.cycles));
			ALWAYS(jump_ns == 0 || jump_ns == 1);
		}
	}
}
END_TEST

/* Half a nanosecond at each would be 50 us. */
START_TEST(many_in_time)
{
	struct segment s;
	uint64_t begun;
	int64_t begun_ns, off_ns;

	begin(rates[_i]);
	sim.jitter_ns = 100;
	publish(steeper_by(0));
	s = current();
	begun = s.cycles;
	begun_ns = s.mono_ns;
	for (int i = 0; i < 100000; i++) {
		struct segment next = s;

		sim_pass(random_in(US, SPAN_NS - US));
		next.cycles = sim_cycles();
		publish(next);
	}
	s = current();
	off_ns = s.mono_ns - begun_ns -
		 (int64_t)(((u128)(s.cycles - begun) * s.mult) >> 32);
	/* What is left is as coins fall. */
	ck_assert_int_le(magnitude(off_ns), 5 * US);
}
END_TEST

/* Late: where readers without a segment are by then. */
START_TEST(late)
{
	for (uint64_t seed = 1; seed < 3000; seed++) {
		struct segment said, old, next;
		int64_t end_ns, live_ns, start_ns;

		begin_random(seed);
		publish(steeper_at_random());
		sim_pass(SPAN_NS / 2);
		said = steeper_at_random();
		publish(said);
		old = current();
		end_ns = segment_end(&old, old.cycles - 1);
		/* Just late, or by far. */
		sim_pass(SPAN_NS / 100 * 97 + random_in(0, 200 * US));
		while (segment_covers(&old, sim_cycles()))
			sim_pass(random_in(0, seed % 2 ? 10 * US : SEC));
		publish(steeper_by(0));

		next = current();
		live_ns = sim_mono() + said.lead_ns;
		start_ns = segment_mono(&next, sim_cycles());
		ALWAYS(start_ns >= end_ns);
		/* Within what it took to publish either may be the later. */
		if (live_ns > end_ns + 10 * BRACKET_NS)
			ALWAYS(magnitude(start_ns - live_ns) <= BRACKET_NS);
		else
			ALWAYS(start_ns - end_ns <= 20 * BRACKET_NS);
	}
}
END_TEST

/* What jumps begins anew on CLOCK_MONOTONIC, but never goes back. */
START_TEST(jump)
{
	for (uint64_t seed = 1; seed < 3000; seed++) {
		struct segment old, next;
		int64_t line_before_ns, live_ns, start_ns;

		begin_random(seed);
		publish(steeper_at_random());
		old = current();
		sim_pass(SPAN_NS / 2);
		/* The kernel's is ahead of it, or behind. */
		sim.mono_ns += random_in(-100 * US, 10 * MS);
		line_before_ns = line_ns();
		next = steeper_by(0);
		next.jumps = true;
		next.lead_ns = 0;
		publish(next);

		next = current();
		ALWAYS(next.jumps);
		start_ns = segment_mono(&next, sim_cycles());
		live_ns = sim_mono() + old.lead_ns;
		ALWAYS(start_ns >= line_before_ns);
		if (live_ns > line_before_ns + 10 * BRACKET_NS)
			ALWAYS(magnitude(start_ns - live_ns) <= BRACKET_NS);
	}
}
END_TEST

/* From a line to none and back: readers go live where it was. */
START_TEST(none)
{
	static const struct segment no_segment = { .span = 0 };

	for (uint64_t seed = 1; seed < 3000; seed++) {
		struct segment s;
		int64_t before_ns, after_ns;

		begin_random(seed);
		publish(no_segment);
		read_checked();
		ALWAYS(magnitude(lead_ns()) == 0 || lead_ns() < US);
		publish(steeper_at_random());
		read_checked();
		sim_pass(seed % 2 ? SPAN_NS / 2 : 2 * SPAN_NS);
		before_ns = line_ns();
		publish(no_segment);
		s = current();
		after_ns = line_ns();
		ALWAYS(s.span == 0);
		ALWAYS(after_ns >= before_ns);
		/* A line that lagged is left for the clock, at once. */
		ALWAYS(after_ns - before_ns < 10 * BRACKET_NS ||
			after_ns - sim_mono() < 10 * BRACKET_NS);
		/* It stands until CLOCK_MONOTONIC has come up. */
		read_checked();
		sim_pass(100 * US);
		read_checked();
		ALWAYS(lead_ns() == 0 || sim_mono() < s.mono_ns);
		/* And again. */
		publish(no_segment);
		read_checked();
		publish(steeper_by(0));
		read_checked();
	}
}
END_TEST

/* A reader finds it undecided; what it decides holds for the writer too. */
static struct segment helped;
static uint64_t helped_number;

/* He may have found that the wall clock was set. */
static int64_t helper_sets_ns;

static void help(void)
{
	sim.wall_offset_ns += helper_sets_ns;
	if (helper_sets_ns != 0)
		steps_look();
	helped_number = segment_current(&helped);
}

START_TEST(helped_by_a_reader)
{
	helper_sets_ns = _i / 2 == 0 ? 0 : HOUR;
	for (int64_t nth = 1;; nth++) {
		struct segment s;

		begin(rates[nth % LENGTH(rates)]);
		steps_look();
		publish(steeper_by(-20000));
		/* In time, and late. */
		sim_pass(_i % 2 == 0 ? SPAN_NS / 2 : 2 * SPAN_NS);
		helped_number = 0;
		meanwhile(nth, help);
		publish(steeper_by(20000));
		if (!happened())
			break;
		s = current();
		ck_assert_uint_eq(helped_number, 2);
		ck_assert_int_gt(helped.mono_ns, 0);
		ck_assert_int_eq(s.mono_ns, helped.mono_ns);
		ck_assert_int_eq(s.wall_offset_ns, helped.wall_offset_ns);
	}
}
END_TEST

/* What the writer and others do while a helper is held up. */
static jmp_buf lost;

static void lose_writer(void)
{
	longjmp(lost, 1);
}

/* The writer of the next but one is lost before it has decided. */
static void publish_two(void)
{
	publish(steeper_by(0));
	read_checked();
	sim_pass(SPAN_NS / 4);
	if (setjmp(lost) == 0) {
		meanwhile(1, lose_writer);
		publish(steeper_by(0));
		ck_abort_msg("the writer isn't lost");
	}
}

static void publish_many(void)
{
	for (int i = 0; i < 4; i++) {
		publish(steeper_by(0));
		read_checked();
	}
}

static int64_t nested_nth;
static void (*nested)(void);

static void help_held_up(void)
{
	struct segment s;

	meanwhile(nested_nth, nested);
	segment_current(&s);
	/* Whatever it had in mind, what it returns is decided. */
	ck_assert_int_ge(s.mono_ns, 0);
}

/*
 * A helper that is held up in between while two and more segments are published
 * into the same copy: it must not decide those by what it knows.
 */
static bool held_up_helper(int64_t nth, int64_t helper_nth, int64_t lead)
{
	struct segment s;
	int64_t line, expected;
	bool yes;

	begin(rates[1]);
	publish(steeper_by(lead));
	read_checked();
	sim_pass(SPAN_NS / 2);
	read_checked();
	expected = lead_ns();
	nested_nth = helper_nth;
	meanwhile(nth, help_held_up);
	publish(steeper_by(0));
	yes = happened();
	read_checked();
	segment_current(&s);
	line = line_ns() - sim_mono();
	ck_assert_int_le(magnitude(line - expected),
		20 * BRACKET_NS + SPAN_NS / 1000000 * magnitude(lead));
	return yes;
}

START_TEST(late_helper)
{
	nested = _i % 2 == 0 ? publish_two : publish_many;
	for (int64_t nth = 1; nth < 8; nth++)
		for (int64_t helper_nth = 1; helper_nth < 8; helper_nth++)
			held_up_helper(
				nth, helper_nth, _i / 2 == 0 ? 20000 : -20000);
}
END_TEST

/* A reader's swap of a start for number 2 comes when number 4 is undecided. */
START_TEST(marks_are_unique)
{
	struct ct_segment *copy = &ct_page.segment[0];
	int64_t two, four;

	begin(rates[0]);
	publish(steeper_by(0));
	if (setjmp(lost) == 0) {
		meanwhile(1, lose_writer);
		publish(steeper_by(0));
	}
	two = copy->mono_ns;
	ck_assert_int_lt(two, 0);
	publish(steeper_by(0));
	if (setjmp(lost) == 0) {
		meanwhile(1, lose_writer);
		publish(steeper_by(0));
	}
	four = copy->mono_ns;
	ck_assert_int_lt(four, 0);
	ck_assert_int_ne(two, four);
}
END_TEST

START_TEST(numbers_are_unique)
{
	begin(rates[0]);
	for (uint64_t i = 1; i < 1000; i++) {
		struct segment s;
		uint64_t before = segment_current(&s);

		ck_assert(!segment_is_over(before, sim_mono()));
		publish(steeper_at_random());
		ck_assert_uint_eq(number(), i);
		ck_assert(segment_is_over(before, sim_mono()));
		sim_pass(random_in(0, 2 * SPAN_NS));
	}
}
END_TEST

/* Wall of a reader whom the current segment covers, or not. */
static int64_t wall_ns(void)
{
	struct segment s = current();

	return line_ns() + s.wall_offset_ns;
}

/* A nanosecond less of offset is made good by mono. */
START_TEST(offset_falls)
{
	for (uint64_t seed = 1; seed < 3000; seed++) {
		struct segment next;
		int64_t before_ns, mono_before_ns;

		begin_random(seed);
		publish(steeper_by(0));
		sim_pass(seed % 2 ? SPAN_NS / 2 : 2 * SPAN_NS);
		before_ns = wall_ns();
		mono_before_ns = line_ns();
		next = steeper_by(0);
		next.wall_offset_ns -= SEGMENT_OFFSET_SLEW_NS;
		/* So that nothing hides it: no time passes. */
		publish(next);
		ALWAYS(wall_ns() >= before_ns);
		ALWAYS(line_ns() > mono_before_ns);
	}
}
END_TEST

/* A step back of the wall clock isn't mono's business, nor is any forward. */
START_TEST(offset_is_set)
{
	static const int64_t steps[] = { SEC, -SEC, 1, -2, 3600 * SEC };
	struct segment old, next;
	int64_t jump_ns;

	begin(rates[1]);
	publish(steeper_by(0));
	sim_pass(SPAN_NS / 2);
	old = current();
	next = steeper_by(0);
	next.wall_offset_ns += steps[_i];
	publish(next);
	next = current();
	jump_ns = segment_mono(&next, turned.cycles) -
		  segment_mono(&old, turned.cycles);
	ck_assert_int_ge(jump_ns, 0);
	ck_assert_int_le(jump_ns, 1);
	ck_assert_int_eq(next.wall_offset_ns, OFFSET_NS + steps[_i]);
}
END_TEST

/* Rule 5: somebody has counted a step since that offset was measured. */
START_TEST(offset_is_of_before)
{
	struct segment next, s;

	begin(rates[_i]);
	steps_look();
	publish(steeper_by(0));
	for (int i = 0; i < 10; i++) {
		next = steeper_by(0);
		next.wall_offset_ns = sim.wall_offset_ns;
		next.generation = steps_generation();
		sim.wall_offset_ns += i % 2 == 0 ? HOUR : -SEC;
		/* Not yet counted: nobody can have been told. */
		segment_publish(&next);
		s = current();
		ck_assert_int_eq(s.wall_offset_ns, next.wall_offset_ns);

		steps_look();
		segment_publish(&next);
		s = current();
		ck_assert_int_eq(s.wall_offset_ns, steps_offset_ns());
		ck_assert_int_le(
			magnitude(s.wall_offset_ns - sim.wall_offset_ns),
			2 * BRACKET_NS);
	}
}
END_TEST

/* Exactly by the nanosecond, no more. */
START_TEST(offset_falls_by_mono)
{
	struct segment old, next;

	begin(rates[0]);
	publish(steeper_by(0));
	sim_pass(SPAN_NS / 2);
	old = current();
	next = steeper_by(0);
	next.wall_offset_ns -= 1;
	publish(next);
	next = current();
	ck_assert_int_eq(segment_mono(&next, turned.cycles) -
				 segment_mono(&old, turned.cycles),
		1);
}
END_TEST

/* A reader that is held up while it reads: another one, and another segment. */
static int64_t hold_up_ns;

static void read_twice(void)
{
	read_checked();
	sim_pass(hold_up_ns);
	read_checked();
}

static void renew_and_read(void)
{
	read_checked();
	publish(steeper_at_random());
	read_checked();
	sim_pass(hold_up_ns);
	read_checked();
}

static void nobody_reads(void)
{
	sim_pass(hold_up_ns);
}

static const int64_t hold_ups[] = { 0, 100, US, 100 * US, SPAN_NS / 2,
	2 * SPAN_NS, SEC };

/* Of a line with some lead over CLOCK_MONOTONIC, or lag. */
static void begin_line(uint64_t seed)
{
	begin_random(seed);
	read_checked();
	for (int i = 0; i < 3; i++) {
		publish(steeper_at_random());
		read_checked();
		sim_pass(random_in(0, SPAN_NS));
		read_checked();
	}
	if (seed % 3 == 0)
		sim_pass(random_in(0, SPAN_NS));
	read_checked();
}

/* Rules 1, 2 and 4. */
START_TEST(reader_is_held_up)
{
	hold_up_ns = hold_ups[_i];
	for (uint64_t seed = 1; seed < 400; seed++) {
		for (int64_t nth = 1;; nth++) {
			begin_line(seed);
			meanwhile(nth, renew_and_read);
			read_checked();
			if (!happened())
				break;
			read_checked();
			sim_pass(SPAN_NS);
			read_checked();
		}
	}
}
END_TEST

enum successor { NEXT, JUMPS, NONE, SUCCESSORS };

static struct segment successor(int kind)
{
	struct segment next = steeper_at_random();

	if (kind == JUMPS) {
		next.jumps = true;
		next.lead_ns = 0;
	} else if (kind == NONE) {
		memset(&next, 0, sizeof(next));
		next.wall_offset_ns = OFFSET_NS;
	}
	return next;
}

/* Rule 3, while others read. */
static void hold_up_writer(uint64_t seed, int kind, void (*others)(void))
{
	for (int64_t nth = 1;; nth++) {
		struct segment next;

		begin_line(seed);
		next = successor(kind);
		meanwhile(nth, others);
		publish(next);
		if (!happened())
			break;
		read_checked();
		sim_pass(random_in(0, US));
		read_checked();
		publish(steeper_at_random());
		read_checked();
		sim_pass(SPAN_NS);
		read_checked();
	}
}

START_TEST(writer_is_held_up)
{
	int kind = _i / LENGTH(hold_ups);

	hold_up_ns = hold_ups[_i % LENGTH(hold_ups)];
	for (uint64_t seed = 1; seed < 400; seed++)
		hold_up_writer(seed, kind, read_twice);
}
END_TEST

START_TEST(writer_is_held_up_alone)
{
	int kind = _i / LENGTH(hold_ups);

	hold_up_ns = hold_ups[_i % LENGTH(hold_ups)];
	for (uint64_t seed = 1; seed < 400; seed++)
		hold_up_writer(seed, kind, nobody_reads);
}
END_TEST

/* Before it publishes what it had in mind. */
START_TEST(writer_is_late)
{
	int kind = _i / LENGTH(hold_ups);

	for (uint64_t seed = 1; seed < 2000; seed++) {
		struct segment next;

		begin_line(seed);
		next = successor(kind);
		sim_pass(hold_ups[_i % LENGTH(hold_ups)]);
		read_checked();
		publish(next);
		read_checked();
		sim_pass(random_in(0, US));
		read_checked();
		publish(steeper_at_random());
		read_checked();
		sim_pass(SPAN_NS);
		read_checked();
	}
}
END_TEST

/* It never comes back: readers go on without, and so does the next. */
static bool lose_writer_at(int64_t nth, uint64_t seed, int kind)
{
	static struct segment next;
	static bool is_lost;

	is_lost = true;
	begin_line(seed);
	next = steeper_at_random();
	if (setjmp(lost) == 0) {
		meanwhile(nth, lose_writer);
		publish(successor(kind));
		is_lost = happened();
	}
	if (seed % 2 == 0) {
		read_checked();
		sim_pass(random_in(0, 2 * SPAN_NS));
		read_checked();
		next = steeper_at_random();
	}
	/* Else the next writer is the first to see what he left. */
	publish(next);
	read_checked();
	return is_lost;
}

START_TEST(writer_is_lost)
{
	for (uint64_t seed = 1; seed < 400; seed++)
		for (int64_t nth = 1; lose_writer_at(nth, seed, _i); nth++)
			;
}
END_TEST

/* In a forked child, whose page is wiped, nobody falls behind what the parent
 * was told: from a line that was ahead, from where readers stood still. */
START_TEST(wiped)
{
	for (uint64_t seed = 1; seed < 1000; seed++) {
		struct segment next;

		begin_line(seed);
		next = successor(seed % 2 == 0 ? NEXT : NONE);
		/* More than steeper_at_random() makes it. */
		next.ahead_ns = 110 * US;
		publish(next);
		read_checked();
		sim_pass(random_in(0, 2 * SPAN_NS));
		read_checked();
		memset(&ct_page, 0, sizeof(ct_page));
		read_checked();
		ALWAYS(lead_ns() <= 200 * US);
		publish(steeper_by(0));
		read_checked();
		sim_pass(SPAN_NS);
		read_checked();
	}
}
END_TEST

/* The counter goes wrong while a start is found. */
static void jump_back_a_little(void)
{
	sim.cycles -= (uint64_t)sim.hz / 10000;
}

static void jump_back(void)
{
	sim.cycles -= (uint64_t)sim.hz;
}

static void jump_ahead(void)
{
	sim.cycles += (uint64_t)sim.hz;
}

static void reset(void)
{
	sim.cycles = 0;
	sim.cycles_ns = sim.raw_ns;
}

static void stand_still(void)
{
	sim_rate(0);
}

static void run_backwards(void)
{
	sim_rate(-sim.hz);
}

static void (*const faults[])(void) = { jump_back_a_little, jump_back,
	jump_ahead, reset, stand_still, run_backwards };

/* Whatever it does, a line isn't off by more than its span, and a little. */
static void assert_near(void)
{
	int64_t off_ns = read_mono() - sim_mono();

	if (magnitude(off_ns) > SPAN_NS + 300 * US)
		ck_abort_msg("off by %lld ns", (long long)off_ns);
}

START_TEST(counter_fails)
{
	int64_t hz = rates[_i / LENGTH(faults)];

	for (int64_t nth = 1;; nth++) {
		for (int i = 0; i < 2; i++) {
			begin(hz);
			publish(steeper_by(0));
			sim_pass(i == 0 ? SPAN_NS / 2 : 2 * SPAN_NS);
			meanwhile(nth, faults[_i % LENGTH(faults)]);
			publish(steeper_by(0));
			if (!happened())
				return;
			for (int n = 0; n < 100; n++) {
				assert_near();
				sim_pass(20 * US);
			}
		}
	}
}
END_TEST

/* A start that was found in an interrupt would be the whole segment's error. */
START_TEST(interrupted_start)
{
	for (int slow = 0; slow < 8; slow++) {
		struct segment s;

		begin(rates[_i]);
		sim.slow_ns = 20 * US;
		/* One of the reads that make up a bracket, and the next. */
		meanwhile(0, NULL);
		publish((struct segment){ .cycles = sim_cycles(),
			.mult = mult_of(sim.hz),
			.span = 1000 });
		sim_pass(SPAN_NS);
		sim.slow_spends = slow;
		s = steeper_by(0);
		publish(s);
		ck_assert_int_le(magnitude(lead_ns()), BRACKET_NS);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("segment");
	int all = LENGTH(rates);

	add_situation(suite, "a page of zeros", zero_page);
	add_table(suite, "first", first, all);
	add_situation(suite, "whole", whole);
	add_table(suite, "clock begins at zero", time_zero, all);
	add_situation(suite, "arithmetic", arithmetic);
	add_situation(suite, "in time", in_time);
	add_table(suite, "many in time", many_in_time, all);
	add_situation(suite, "late", late);
	add_situation(suite, "jump", jump);
	add_situation(suite, "none", none);
	add_table(suite, "helped by a reader", helped_by_a_reader, 4);
	add_table(suite, "late helper", late_helper, 4);
	add_situation(suite, "marks are unique", marks_are_unique);
	add_situation(suite, "numbers are unique", numbers_are_unique);
	add_situation(suite, "offset falls", offset_falls);
	add_situation(suite, "offset falls, in mono", offset_falls_by_mono);
	add_table(suite, "offset is set", offset_is_set, 5);
	add_table(
		suite, "offset is of before a step", offset_is_of_before, all);
	add_situation(suite, "page wiped", wiped);
	add_table(suite, "reader is held up", reader_is_held_up,
		LENGTH(hold_ups));
	add_table(suite, "writer is held up", writer_is_held_up,
		LENGTH(hold_ups) * SUCCESSORS);
	add_table(suite, "writer is held up alone", writer_is_held_up_alone,
		LENGTH(hold_ups) * SUCCESSORS);
	add_table(suite, "writer is late", writer_is_late,
		LENGTH(hold_ups) * SUCCESSORS);
	add_table(suite, "writer is lost", writer_is_lost, SUCCESSORS);
	add_table(suite, "counter fails", counter_fails, LENGTH(faults) * all);
	add_table(suite, "interrupted start", interrupted_start, all);
	return run_suite(suite);
}
