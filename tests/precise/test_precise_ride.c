/* SPDX-License-Identifier: MIT */
/*
 * A ticker that renews segments in time, so that readers needn't: as long as
 * somebody reads. It may be late, as threads are.
 */
#include "reader.h"

#define TICK_NS MS

static int64_t next_tick_ns;
static int64_t latest_ns;
static int64_t tick_ns;

static void ride_if_due(void)
{
	if (sim.raw_ns < next_tick_ns)
		return;
	precise_ride(sim_mono(), tick_ns);
	/* From its own grid, a tick that was missed is skipped. */
	while (next_tick_ns <= sim.raw_ns)
		next_tick_ns += tick_ns;
	next_tick_ns += random_in(0, latest_ns);
}

static void ride_for(int64_t ns)
{
	int64_t end_ns = sim.raw_ns + ns;

	while (sim.raw_ns < end_ns) {
		sim_pass(random_in(10 * US, 100 * US));
		ride_if_due();
	}
}

static void ride_and_read_for(int64_t ns, int64_t most_ns)
{
	int64_t end_ns = sim.raw_ns + ns;

	while (sim.raw_ns < end_ns) {
		int64_t until_ns = sim.raw_ns + random_in(US, most_ns);

		while (sim.raw_ns < until_ns) {
			sim_pass(20 * US);
			ride_if_due();
		}
		read_both();
	}
}

static void begin_ride(int64_t hz)
{
	begin(hz);
	tick_ns = TICK_NS;
	latest_ns = 0;
	next_tick_ns = sim.raw_ns;
	ride_and_read_for(SEC, MS);
	ck_assert(counts());
	forget_errors();
}

static void assert_exact(const char *what)
{
	show_errors(what);
	ck_assert_int_le(error_at(5000), 30);
	ck_assert_int_le(error_at(9900), 150);
	ck_assert_int_le(error_at(9999), US);
}

/* Does a read cost one look at the counter? */
static bool is_short_read(void)
{
	int64_t reads = turned.reads, begun_ns = sim.raw_ns;

	read_mono();
	return turned.reads - reads == 1 && sim.raw_ns - begun_ns <= 60;
}

/* In time: readers renew one a second, by which they say that they read. */
START_TEST(readers_need_not)
{
	int longer = 0;

	begin_ride(rates[_i]);
	for (int i = 0; i < 50000; i++) {
		sim_pass(random_in(0, 400 * US));
		ride_if_due();
		longer += !is_short_read();
	}
	/* In 10 s. */
	ck_assert_int_le(longer, 12);
	ck_assert_int_ge(longer, 8);
}
END_TEST

/* Segments follow each other by the ticks. */
START_TEST(exact)
{
	static const int64_t late[] = { 0, 500 * US, 10 * MS };
	char what[60];

	begin_ride(rates[0]);
	latest_ns = late[_i];
	sim_slew(300);
	ride_and_read_for(100 * MS, MS);
	forget_errors();
	ride_and_read_for(60 * SEC, 2 * MS);
	snprintf(what, sizeof(what), "ticks late by up to %lld us",
		(long long)(latest_ns / US));
	assert_exact(what);
	ck_assert_uint_eq(steps_counted(), 0);
}
END_TEST

static const int64_t changes[] = { 300, -300, 500, -500, 5000, -5000, 100000,
	-100000 };

START_TEST(slew_changes)
{
	begin_ride(rates[0]);
	for (int i = 0; i < 100; i++) {
		latest_ns = i % 2 == 0 ? 0 : 10 * MS;
		forget_errors();
		sim_slew(i % 4 < 2 ? changes[_i] : 0);
		ride_and_read_for(80 * MS, 200 * US);
		forget_errors();
		ride_and_read_for(20 * MS, 200 * US);
		ck_assert_int_le(told.worst_ns, 300);
	}
	ck_assert(counts());
}
END_TEST

START_TEST(wall_is_set)
{
	static const int64_t steps[] = { SEC, -SEC, HOUR, -HOUR };

	begin_ride(rates[0]);
	for (int i = 0; i < 100; i++) {
		latest_ns = i % 2 == 0 ? 0 : 10 * MS;
		ride_and_read_for(random_in(0, 10 * MS), 200 * US);
		set_wall(steps[_i]);
		ride_and_read_for(SEGMENT_NS + 200 * US, 100 * US);
		forget_errors();
		ride_and_read_for(30 * MS, 200 * US);
		ck_assert_int_le(told.worst_ns, 300);
	}
	ck_assert_uint_eq(steps_counted(), 100);
}
END_TEST

/* The line lags, or leads, and nobody can renew it: those who go live go on
 * where it was. */
START_TEST(over_with_a_lead)
{
	begin_ride(rates[0]);
	for (int i = 0; i < 100; i++) {
		int64_t off_ns;

		/* It settles on a slope, and is about half way to the line
		 * of another one. */
		sim_slew(0);
		ride_and_read_for(40 * MS, 200 * US);
		sim_slew(_i == 0 ? 20000 : -20000);
		ride_and_read_for(random_in(3 * MS, 5 * MS), 200 * US);
		ct_page.segment_lock = 1;
		while (is_short_read())
			sim_pass(US);
		off_ns = told.off_ns;
		for (int n = 0; n < 20; n++) {
			sim_pass(random_in(0, 50 * US));
			read_both();
			/* By its slope in the last microsecond, and a look's
			 * error, not more. */
			ck_assert_int_le(magnitude(told.off_ns - off_ns), US);
		}
		ct_page.segment_lock = 0;
		read_both();
	}
}
END_TEST

/* Who reads only now and then doesn't keep the ticker at it. */
START_TEST(nobody_reads)
{
	uint64_t seq;

	begin_ride(rates[0]);
	ride_for(1100 * MS);
	seq = ct_page.segment_seq;
	ride_for(5 * SEC);
	ck_assert_uint_eq(ct_page.segment_seq, seq);
	read_both();
	ck_assert_int_le(told.worst_ns, RIGHT_NS);
	/* From then on it does. */
	seq = ct_page.segment_seq;
	ride_for(500 * MS);
	ck_assert_uint_gt(ct_page.segment_seq, seq + 200);
}
END_TEST

/* Before anybody has read, too. */
START_TEST(nobody_has_read)
{
	begin(rates[0]);
	tick_ns = TICK_NS;
	next_tick_ns = sim.raw_ns;
	ride_for(5 * SEC);
	ck_assert_uint_eq(ct_page.segment_seq, 0);
	ck_assert_uint_eq(ct_page.segment_begun, 0);
}
END_TEST

/* Too seldom to be in time. */
START_TEST(long_tick)
{
	uint64_t seq;

	begin_ride(rates[0]);
	tick_ns = 2 * MS;
	seq = ct_page.segment_seq;
	ride_for(900 * MS);
	ck_assert_uint_eq(ct_page.segment_seq, seq);
}
END_TEST

/* While there is no line, it isn't tried for at each of many ticks. */
START_TEST(short_tick)
{
	int64_t reads;

	begin(rates[0]);
	read_both();
	tick_ns = 50 * US;
	next_tick_ns = sim.raw_ns;
	reads = turned.reads;
	ride_for(900 * US);
	/* One each, to look. */
	ck_assert_int_le(turned.reads - reads, 20);
	ride_for(20 * MS);
	ck_assert(counts());
}
END_TEST

START_TEST(stopped)
{
	uint64_t seq;

	begin_ride(rates[0]);
	precise_stop();
	seq = ct_page.segment_seq;
	ride_and_read_for(SEC, MS);
	ck_assert_uint_eq(ct_page.segment_seq, seq);
	ck_assert(!counts());
}
END_TEST

/* As it comes: ticks late and in time, steps, slews, gaps. */
START_TEST(anything)
{
	begin_ride(rates[_i]);
	for (int i = 0; i < 400; i++) {
		latest_ns = random_in(0, 10 * MS);
		if (i % 3 == 0)
			sim_slew(random_in(-500, 500));
		if (i % 7 == 0)
			set_wall(random_in(-HOUR, HOUR));
		if (i % 11 == 0)
			sim_pass(random_in(0, 30 * MS));
		ride_and_read_for(random_in(0, 100 * MS), 500 * US);
	}
	ck_assert(counts());
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("precise, ridden");
	int all = LENGTH(rates);

	add_table(suite, "readers needn't renew", readers_need_not, all);
	add_table(suite, "exact", exact, 3);
	add_table(suite, "slew changes", slew_changes, LENGTH(changes));
	add_table(suite, "wall is set", wall_is_set, 4);
	add_table(suite, "over, with a lead", over_with_a_lead, 2);
	add_situation(suite, "nobody reads any more", nobody_reads);
	add_situation(suite, "nobody has read", nobody_has_read);
	add_situation(suite, "long tick", long_tick);
	add_situation(suite, "short tick", short_tick);
	add_situation(suite, "stopped", stopped);
	add_table(suite, "anything", anything, all);
	return run_suite(suite);
}
