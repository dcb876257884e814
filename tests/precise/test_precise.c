/* SPDX-License-Identifier: MIT */
/*
 * Precise time on clocks and a counter turned by hand: how far off it is, and
 * that it never goes back, whatever becomes of the clocks.
 */
#include "reader.h"

#include "clocksource.h"
#include "segment.h"

/* The errors that are promised, from one second after the first read. */
static void assert_exact(const char *what)
{
	show_errors(what);
	ck_assert_int_le(error_at(5000), 30);
	ck_assert_int_le(error_at(9900), 150);
	ck_assert_int_le(error_at(9999), US);
}

static int64_t shown_offset_ns(void)
{
	struct segment s;

	segment_current(&s);
	return s.wall_offset_ns;
}

/* Live, that is exact, until the rate is known. */
START_TEST(first_reads)
{
	int i;

	begin(rates[_i]);
	for (i = 0;; i++) {
		int64_t begun_ns = sim_mono(), ns = read_mono();

		if (counts())
			break;
		ck_assert_int_lt(i, 20);
		ck_assert_int_eq(outside(ns, begun_ns, sim_mono()), 0);
		begun_ns = sim_wall();
		ns = read_wall();
		if (counts())
			break;
		ck_assert_int_eq(outside(ns, begun_ns, sim_wall()), 0);
		sim_pass(MS);
	}
	ck_assert_int_gt(i, 2);
	ck_assert_str_eq(why_not(), "");
	/* Not behind what was told live: it is taken at its largest. */
	ck_assert_int_ge(shown_offset_ns(), sim.wall_offset_ns);
	read_for(SEC, 100 * US, 3 * MS);
	ck_assert_int_le(told.worst_ns, 300);
}
END_TEST

/* wall - mono follows by a nanosecond, and stays where it is. */
START_TEST(offset)
{
	int64_t shown_ns;
	uint64_t seq;
	int changes = 0;

	begin(rates[_i]);
	while (!counts()) {
		read_both();
		sim_pass(MS);
	}
	shown_ns = shown_offset_ns();
	seq = ct_page.segment_seq;
	for (int i = 0; i < 20000; i++) {
		int64_t now_ns;

		read_for(MS, 100 * US, MS);
		now_ns = shown_offset_ns();
		ck_assert_int_le(magnitude(now_ns - shown_ns),
			(int64_t)(ct_page.segment_seq - seq));
		changes += i > 2000 && now_ns != shown_ns;
		shown_ns = now_ns;
		seq = ct_page.segment_seq;
	}
	ck_assert_int_le(magnitude(shown_ns - sim.wall_offset_ns), 5);
	/* Of some 7000. */
	ck_assert_int_le(changes, 2000);
}
END_TEST

static const int64_t slews[] = { 300, 0, -300, 500 };

/* A minute, an hour, of readers that come as they come. */
static void steady(
	int64_t hz, int64_t ppm, int64_t ns, int64_t least_ns, int64_t most_ns)
{
	char what[80];

	begin(hz);
	sim_slew(ppm);
	settle();
	read_for(ns, least_ns, most_ns);
	ck_assert(counts());
	ck_assert_str_eq(why_not(), "");
	ck_assert_uint_eq(steps_counted(), 0);
	snprintf(what, sizeof(what), "%+lld ppm, each %lld to %lld us",
		(long long)ppm, (long long)(least_ns / US),
		(long long)(most_ns / US));
	assert_exact(what);
}

START_TEST(minute)
{
	steady(rates[_i % LENGTH(rates)], slews[_i / LENGTH(rates)], 60 * SEC,
		10 * US, MS);
}
END_TEST

START_TEST(hour)
{
	steady(rates[_i], 300, HOUR, 500 * US, 20 * MS);
}
END_TEST

START_TEST(dense_hour)
{
	steady(rates[_i], 300, HOUR, 10 * US, 200 * US);
}
END_TEST

/* Reads of now and then, and bursts of them, while a crystal drifts and NTP
 * corrects it by 1 ppm. */
START_TEST(seldom)
{
	static const int64_t gaps[] = { 100 * MS, SEC, 10 * SEC, 600 * SEC,
		12 * HOUR };
	int64_t gap_ns = gaps[_i];
	char what[40];

	begin_settled(rates[0]);
	for (int i = 0; i < 300; i++) {
		sim_slew(300 + (i / 3) % 2);
		sim_pass(gap_ns + random_in(0, gap_ns / 2));
		read_for(20 * MS, 100 * US, 4 * MS);
	}
	ck_assert(counts());
	snprintf(what, sizeof(what), "each %lld ms", (long long)(gap_ns / MS));
	assert_exact(what);
}
END_TEST

static const int64_t changes[] = { 300, -300, 500, -500, 5000, -5000, 50000,
	-50000, 100000, -100000 };

/* NTP begins to slew, ends it, turns it about; adjtimex(2) by a tenth. */
START_TEST(slew_changes)
{
	int64_t ppm = changes[_i];
	/* Until the second sample has shown it. */
	int64_t most_ns = 2 * SEGMENT_NS / 1000000 * magnitude(ppm) + US;

	begin_settled(rates[0]);
	for (int i = 0; i < 100; i++) {
		static const int64_t factors[] = { 1, 0, 1, -1 };

		forget_errors();
		sim_slew(ppm * factors[i % 4]);
		read_for(15 * MS, 10 * US, 300 * US);
		ck_assert_int_le(told.worst_ns, 2 * most_ns);
		read_for(60 * MS, 10 * US, 3 * MS);
		forget_errors();
		read_for(30 * MS, 10 * US, 3 * MS);
		ck_assert_int_le(told.worst_ns, 300);
	}
	ck_assert(counts());
	ck_assert_str_eq(why_not(), "");
	ck_assert_uint_eq(steps_counted(), 0);
}
END_TEST

/* The slope that adjtimex(2) changes again and again. */
START_TEST(slew_wanders)
{
	begin_settled(rates[_i]);
	for (int i = 0; i < 3000; i++) {
		sim_slew(random_in(-100000, 100000));
		read_for(random_in(0, 20 * MS), 10 * US, MS);
	}
	sim_slew(0);
	read_for(100 * MS, 10 * US, MS);
	forget_errors();
	read_for(SEC, 10 * US, MS);
	ck_assert_int_le(told.worst_ns, 300);
	ck_assert(counts());
}
END_TEST

static const int64_t steps[] = { SEC, -SEC, HOUR, -HOUR, 20 * US, -20 * US, MS,
	-MS, 60 * SEC };

/* Until it shows, to line readers. */
static int64_t ns_until_shown(int64_t least_ns, int64_t most_ns)
{
	int64_t set_ns = sim.raw_ns;

	for (;;) {
		read_wall();
		if (magnitude(told.off_ns) < RIGHT_NS)
			return sim.raw_ns - set_ns;
		ck_assert_int_lt(sim.raw_ns - set_ns, 2 * SEGMENT_NS);
		read_mono();
		ck_assert_int_lt(magnitude(told.off_ns), 300);
		sim_pass(random_in(least_ns, most_ns));
	}
}

START_TEST(wall_is_set)
{
	int64_t step_ns = steps[_i];

	begin_settled(rates[0]);
	for (uint64_t i = 0; i < 100; i++) {
		uint64_t before = steps_counted();

		read_for(random_in(0, 10 * MS), 10 * US, MS);
		set_wall(i % 3 == 2 ? -step_ns : step_ns);
		ck_assert_int_le(
			ns_until_shown(0, 100 * US), SEGMENT_NS + 101 * US);
		read_mono();
		read_for(3 * MS, 10 * US, MS);
		ck_assert_uint_eq(steps_counted(), before + 1);
		forget_errors();
		read_for(50 * MS, 10 * US, MS);
		ck_assert_int_le(told.worst_ns, 300);
		ck_assert_uint_eq(steps_counted(), before + 1);
	}
	ck_assert(counts());
}
END_TEST

/* So little isn't a step, but shows. */
START_TEST(wall_is_set_a_little)
{
	begin_settled(rates[0]);
	for (int i = 0; i < 100; i++) {
		set_wall(i % 2 == 0 ? 3 * US : -3 * US);
		read_for(4 * MS, 10 * US, MS);
		forget_errors();
		read_for(50 * MS, 10 * US, MS);
		ck_assert_int_le(told.worst_ns, 300);
	}
	ck_assert_uint_eq(steps_counted(), 0);
}
END_TEST

/* To those who read live at once: before there is a line, and after. */
START_TEST(wall_is_set_live)
{
	int64_t step_ns = steps[_i];

	begin(rates[0]);
	read_both();
	for (int i = 0; i < 4; i++) {
		set_wall(step_ns);
		read_wall();
		ck_assert_int_lt(magnitude(told.off_ns), RIGHT_NS);
		if (i == 1)
			settle();
		if (i >= 1)
			precise_stop();
		read_wall();
		ck_assert_int_lt(magnitude(told.off_ns), RIGHT_NS);
	}
}
END_TEST

/* Over a segment that nobody has renewed yet. */
START_TEST(wall_is_set_while_nobody_reads)
{
	begin_settled(rates[0]);
	for (int i = 0; i < 100; i++) {
		sim_pass(random_in(0, 3 * SEGMENT_NS));
		set_wall(i % 2 == 0 ? steps[_i] : -steps[_i]);
		sim_pass(random_in(SEGMENT_NS, 3 * SEGMENT_NS));
		read_wall();
		ck_assert_int_lt(magnitude(told.off_ns), RIGHT_NS);
		read_mono();
		ck_assert_int_lt(magnitude(told.off_ns), 300);
	}
	ck_assert_uint_eq(steps_counted(), 100);
}
END_TEST

/* The kernel inserts a second, or deletes one: so many TAI - wall is more. */
START_TEST(leap_second)
{
	int64_t more_s = _i == 0 ? 1 : -1;

	begin(rates[0]);
	sim.tai_offset_ns = 37 * SEC;
	settle();
	for (int i = 0; i < 10; i++) {
		read_for(random_in(0, 10 * MS), 10 * US, MS);
		sim.tai_offset_ns += more_s * SEC;
		set_wall(-more_s * SEC);
		ns_until_shown(10 * US, MS);
		read_for(random_in(0, 100 * MS), 10 * US, MS);
	}
	ck_assert_uint_eq(steps_counted(), 10);
	forget_errors();
	read_for(100 * MS, 10 * US, MS);
	ck_assert_int_le(told.worst_ns, 300);
}
END_TEST

/* What becomes of the counter in a suspend. */
static void stop_for(int64_t ns)
{
	(void)ns;
}

static void run_on(int64_t ns)
{
	sim.cycles += (uint64_t)((u128)ns * (u128)sim.hz / (u128)SEC);
}

static void begin_anew(int64_t ns)
{
	sim.cycles = (uint64_t)ns % 1000003;
	sim.cycles_ns = sim.raw_ns;
}

static void go_back(int64_t ns)
{
	sim.cycles -= (uint64_t)ns;
}

/* A segment that the counter has left is over: others may have been told its
 * end, so mono stands there until the kernel's has come up. */
START_TEST(suspend)
{
	static void (*const counters[])(
		int64_t ns) = { stop_for, run_on, begin_anew, go_back };
	static const int64_t slept[] = { 10 * MS, SEC, 100 * SEC, 20 * HOUR };
	int64_t slept_ns = slept[_i / LENGTH(counters)];

	begin_settled(rates[0]);
	for (int i = 0; i < 20; i++) {
		read_for(random_in(0, 300 * MS), 10 * US, 2 * MS);
		sim.boot_offset_ns += slept_ns;
		set_wall(slept_ns);
		counters[_i % LENGTH(counters)](slept_ns);
		read_mono();
		ck_assert_int_ge(told.off_ns, -RIGHT_NS);
		ck_assert_int_le(told.off_ns, SEGMENT_NS);
		read_for(8 * SEGMENT_NS, 10 * US, 2 * MS);
		forget_errors();
		read_for(20 * MS, 10 * US, 2 * MS);
		ck_assert_int_le(told.worst_ns, RIGHT_NS);
	}
	ck_assert_msg(counts(), "%s", why_not());
	ck_assert_uint_eq(steps_counted(), 20);
	/* Nothing else is forgiven on account of it. */
	read_for(200 * MS, 10 * US, MS);
	sim_jump(SEC);
	read_for(4 * MS, 10 * US, MS);
	ck_assert(!counts());
}
END_TEST

/* A virtual machine goes on from a snapshot: at another time, maybe with
 * another counter, which the kernel has taken into account. */
START_TEST(restored)
{
	begin_settled(rates[0]);
	sim_pass(1000 * SEC);
	if (_i == 1)
		sim_jump(-2000 * SEC);
	if (_i == 2)
		sim_jump(5000 * SEC);
	if (_i == 3)
		set_wall(100 * SEC);
	read_mono();
	ck_assert_int_le(magnitude(told.off_ns), RIGHT_NS);
	read_wall();
	ck_assert_int_le(magnitude(told.off_ns), RIGHT_NS);
	forget_errors();
	read_for(SEC, 10 * US, 3 * MS);
	ck_assert_int_le(told.worst_ns, RIGHT_NS);
	ck_assert(counts() == (_i == 0 || _i == 3));
}
END_TEST

/* By whoever changes what runs. */
START_TEST(stopped_and_started)
{
	struct clocksource cs = turned_tsc();

	begin_settled(rates[0]);
	for (int i = 0; i < 50; i++) {
		/* Ahead of the kernel's, by some. */
		sim_slew(random_in(-10000, 10000));
		read_for(random_in(0, 20 * MS), 10 * US, MS);
		precise_stop();
		ck_assert(!counts());
		ck_assert_str_eq(why_not(), "");
		read_both();
		read_for(random_in(0, 5 * MS), US, MS);
		forget_errors();
		read_for(5 * MS, 10 * US, MS);
		ck_assert_int_le(told.worst_ns, RIGHT_NS);
		precise_start(&cs);
		sim_slew(0);
		read_both();
		settle();
	}
	read_for(SEC, 10 * US, MS);
	assert_exact("stopped and started");
}
END_TEST

START_TEST(started_twice)
{
	struct clocksource cs = turned_tsc();
	uint64_t seq;

	begin_settled(rates[0]);
	seq = ct_page.segment_seq;
	precise_start(&cs);
	ck_assert(counts());
	ck_assert_uint_eq(ct_page.segment_seq, seq);
}
END_TEST

/* One that no reader may read. */
START_TEST(started_without_a_counter)
{
	struct clocksource cs = turned_tsc();

	begin_settled(rates[0]);
	cs.processors = false;
	precise_start(&cs);
	ck_assert(!counts());
	ck_assert_str_eq(why_not(), "");
	read_both();
	sim_pass(SEGMENT_NS);
	forget_errors();
	read_for(SEC, 10 * US, 20 * MS);
	ck_assert(!counts());
	ck_assert_int_le(told.worst_ns, 100);
}
END_TEST

/* As in the child of a fork. */
START_TEST(wiped)
{
	int waited = 0;

	begin_settled(rates[0]);
	for (int i = 0; i < 20; i++) {
		read_for(random_in(0, 20 * MS), 10 * US, MS);
		memset(&ct_page, 0, sizeof(ct_page));
		ck_assert(!counts());
		forget_errors();
		/* What the parent was told isn't this test's promise. */
		told.mono_ns -= US;
		told.wall_ns -= US;
		for (waited = 0; !counts(); waited++) {
			ck_assert_int_lt(waited, 40);
			read_both();
			sim_pass(MS);
		}
		ck_assert_int_gt(waited, 2);
		settle();
	}
	read_for(SEC, 10 * US, MS);
	assert_exact("wiped");
}
END_TEST

/* What the parent was told holds for the child, which is the same thread. */
START_TEST(wiped_goes_not_back)
{
	begin_settled(rates[0]);
	for (int i = 0; i < 200; i++) {
		/* Ahead of the kernel's, by some. */
		sim_slew(random_in(-10000, 10000));
		read_for(random_in(5 * MS, 20 * MS), 10 * US, MS);
		read_both();
		memset(&ct_page, 0, sizeof(ct_page));
		read_both();
		read_for(20 * MS, 10 * US, MS);
	}
}
END_TEST

/* The kernel's clocksource. */
static char kernel_file[] = "clocksource-XXXXXX";

static void kernel_uses(const char *name)
{
	int fd = open(kernel_file, O_WRONLY | O_TRUNC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, name, strlen(name)), (int)strlen(name));
	close(fd);
	sim.sysfs_opens = 0;
}

static void begin_kernels_own(void)
{
	struct clocksource cs = turned_tsc();
	int fd = mkstemp(kernel_file);

	ck_assert_int_ge(fd, 0);
	close(fd);
	clocksource_kernel_from(kernel_file);
	begin(rates[0]);
	precise_stop();
	cs.kernels_own = true;
	precise_start(&cs);
	kernel_uses("tsc\n");
	settle();
	ck_assert_int_eq(sim.sysfs_opens, 0);
}

START_TEST(kernel_leaves)
{
	begin_kernels_own();
	kernel_uses("hpet\n");
	sim.read_ns = 1500;
	read_for(SEC, 10 * US, 2 * MS);
	ck_assert(!counts());
	ck_assert_str_eq(why_not(), "; not for precise time: "
				    "the kernel has left this clocksource");
	forget_errors();
	read_for(SEC, 10 * US, 2 * MS);
	ck_assert_int_le(told.worst_ns, 2 * sim.read_ns);
	unlink(kernel_file);
}
END_TEST

/* It's only that the clock has become slower to read. */
START_TEST(kernel_stays)
{
	begin_kernels_own();
	sim.read_ns = 1500;
	read_for(5 * SEC, 10 * US, 2 * MS);
	ck_assert(counts());
	ck_assert_int_ge(sim.sysfs_opens, 1);
	/* It gets used to it. */
	ck_assert_int_le(sim.sysfs_opens, 3);
	unlink(kernel_file);
}
END_TEST

/* Threads are held up all the time, in the middle of a look too. */
START_TEST(busy)
{
	static const int per_mille[] = { 1, 10, 50, 200 };
	char what[40];

	begin_settled(rates[0]);
	sim_slew(300);
	sim.preempt_per_mille = per_mille[_i];
	read_for(120 * SEC, 10 * US, 5 * MS);
	snprintf(what, sizeof(what), "busy, %d per mille", per_mille[_i]);
	show_errors(what);
	ck_assert(counts());
	ck_assert_uint_eq(steps_counted(), 0);
	ck_assert_int_le(error_at(per_mille[_i] > 10 ? 9900 : 9990), RIGHT_NS);
	sim.preempt_per_mille = 0;
	read_for(SEC, 10 * US, 5 * MS);
	forget_errors();
	read_for(SEC, 10 * US, 5 * MS);
	ck_assert_int_le(told.worst_ns, 300);
}
END_TEST

static Suite *short_suite(void)
{
	Suite *suite = suite_create("precise");
	int all = LENGTH(rates);

	add_table(suite, "first reads", first_reads, all);
	add_table(suite, "offset", offset, all);
	add_table(suite, "a minute", minute, LENGTH(slews) * all);
	add_table(suite, "an hour", hour, 2);
	add_table(suite, "seldom read", seldom, 5);
	add_table(suite, "slew changes", slew_changes, LENGTH(changes));
	add_table(suite, "slew wanders", slew_wanders, all);
	add_table(suite, "wall is set", wall_is_set, LENGTH(steps));
	add_situation(suite, "wall is set, a little", wall_is_set_a_little);
	add_table(suite, "wall is set, live readers", wall_is_set_live,
		LENGTH(steps));
	add_table(suite, "wall is set while nobody reads",
		wall_is_set_while_nobody_reads, LENGTH(steps));
	add_table(suite, "leap second", leap_second, 2);
	add_table(suite, "suspend", suspend, 16);
	add_table(suite, "restored from a snapshot", restored, 4);
	add_situation(suite, "stopped and started", stopped_and_started);
	add_situation(suite, "started twice", started_twice);
	add_situation(
		suite, "started without a counter", started_without_a_counter);
	add_situation(suite, "page wiped", wiped);
	add_situation(suite, "page wiped, not back", wiped_goes_not_back);
	add_situation(suite, "kernel leaves it", kernel_leaves);
	add_situation(suite, "kernel's clock is slow, no more", kernel_stays);
	add_table(suite, "busy machine", busy, 4);
	return suite;
}

static Suite *long_suite(void)
{
	Suite *suite = suite_create("precise, long");

	add_table(suite, "an hour of many reads", dense_hour, LENGTH(rates));
	return suite;
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "long") == 0)
		return run_suite(long_suite());
	return run_suite(short_suite());
}
