/* SPDX-License-Identifier: MIT */
/*
 * Bounds of true time in a world that is turned by hand: its true time, a
 * kernel that keeps a clock and knows how far that may be off, and somebody who
 * corrects it. The linker has the library read these clocks instead of its own
 * (--wrap), and adjtimex() is here.
 *
 *	test_bounds [reads]
 */
#include "bounds.h"

#include <limits.h>

/* 1 ns, in which an error is kept. */
#define FS_PER_NS 1000000
#define READ_NS 30

static int64_t reads = 100000;

/*
 * The kernel's clock, as kernel/time/ntp.c keeps it, and the true time. Only
 * reads, and pass(), make time pass.
 */
static struct {
	int64_t mono_ns;
	int64_t wall_offset_ns; /* wall - mono */
	int64_t error_fs;	/* true - wall */
	int64_t drift_ppm;	/* by which that grows */

	int64_t second_ns; /* of wall: the next one */
	int64_t maxerror_us;
	int64_t tolerance;
	int status, ret, tai_s;
	int refused; /* errno */

	int asked;  /* adjtimex() calls */
	int steps;
	int preempt_per_mille; /* of reads, for up to 3 ms */
	int wide;	       /* how often that was */
	/* Called once, at the end of the n-th read or call from now. */
	void (*meanwhile)(void);
	int meanwhile_in;
	uint64_t random;
} world;

/* A small generator, the same on each run (Marsaglia's xorshift64). */
static uint64_t random_below(uint64_t limit)
{
	world.random ^= world.random << 13;
	world.random ^= world.random >> 7;
	world.random ^= world.random << 17;
	return world.random % limit;
}

static int64_t wall_ns(void)
{
	return world.mono_ns + world.wall_offset_ns;
}

static int64_t true_ns(void)
{
	int64_t error_fs = world.error_fs;

	return wall_ns() + error_fs / FS_PER_NS - (error_fs % FS_PER_NS < 0);
}

/* second_overflow() */
static void begin_second(void)
{
	world.second_ns += SEC;
	world.maxerror_us += 500;
	if (world.maxerror_us < MAXERROR_END_US)
		return;
	world.maxerror_us = MAXERROR_END_US;
	world.status |= STA_UNSYNC;
}

static void pass(int64_t ns)
{
	world.mono_ns += ns;
	world.error_fs += ns * world.drift_ppm;
	while (wall_ns() >= world.second_ns)
		begin_second();
}

static void end_of_call(void)
{
	void (*now)(void) = world.meanwhile;

	if (now != NULL && --world.meanwhile_in <= 0) {
		world.meanwhile = NULL;
		now();
	}
	if ((int)random_below(1000) < world.preempt_per_mille) {
		pass((int64_t)random_below(3 * MS));
		world.wide++;
	}
}

int64_t __wrap_kernel_clock_ns(clockid_t clock)
{
	int64_t ns;

	if (world.mono_ns == 0)
		return __real_kernel_clock_ns(clock);
	pass(READ_NS / 2);
	ns = clock == CLOCK_REALTIME ? wall_ns() : world.mono_ns;
	pass(READ_NS / 2);
	end_of_call();
	return ns;
}

int adjtimex(struct timex *tx)
{
	ck_assert_int_eq((int)tx->modes, 0);
	world.asked++;
	pass(300);
	if (world.refused != 0) {
		errno = world.refused;
		return -1;
	}
	memset(tx, 0x55, sizeof(*tx));
	tx->maxerror = world.maxerror_us;
	tx->tolerance = world.tolerance;
	tx->status = world.status;
	tx->tai = world.tai_s;
	end_of_call();
	return world.status & STA_UNSYNC ? TIME_ERROR : world.ret;
}

static void start_second(void)
{
	world.second_ns = wall_ns() / SEC * SEC + SEC;
}

static void begin_world(void)
{
	memset(&world, 0, sizeof(world));
	world.random = 88172645463325252;
	world.mono_ns = 4000 * SEC;
	world.wall_offset_ns = 1700000000 * SEC + 123456789;
	world.tolerance = 500 * PPM;
	world.maxerror_us = 1000;
	world.tai_s = 37;
	start_second();
}

static void step(int64_t ns)
{
	world.wall_offset_ns += ns;
	world.error_fs -= ns * FS_PER_NS;
	world.steps++;
	start_second();
}

/* settimeofday(2): ntp_clear() */
static void set_clock(int64_t ns)
{
	step(ns);
	world.status |= STA_UNSYNC;
	world.maxerror_us = MAXERROR_END_US;
}

static void insert_leap_second(void)
{
	/* True time, as Unix tells it, does the same. */
	world.wall_offset_ns -= SEC;
	world.tai_s++;
	world.steps++;
	start_second();
}

static int64_t half_width(const struct ct_bounds *bounds)
{
	return (bounds->latest_ns - bounds->earliest_ns) / 2;
}

static void assert_unknown(const struct ct_bounds *bounds)
{
	ck_assert_int_eq(bounds->status, CT_BOUNDS_UNKNOWN);
	ck_assert_int_eq(bounds->earliest_ns, INT64_MIN);
	ck_assert_int_eq(bounds->latest_ns, INT64_MAX);
}

static const struct told {
	int ret, status;
	int64_t maxerror_us;
	enum ct_bounds_status wanted;
} told[] = {
	{ TIME_OK, 0, 1, CT_BOUNDS_SYNCHRONISED },
	{ TIME_OK, 0, 0, CT_BOUNDS_SYNCHRONISED },
	{ TIME_OK, STA_PLL | STA_NANO, 15999999, CT_BOUNDS_SYNCHRONISED },
	{ TIME_INS, STA_INS, 1, CT_BOUNDS_SYNCHRONISED },
	{ TIME_DEL, STA_DEL, 1, CT_BOUNDS_SYNCHRONISED },
	{ TIME_OOP, STA_INS, 1, CT_BOUNDS_SYNCHRONISED },
	{ TIME_WAIT, STA_INS, 1, CT_BOUNDS_SYNCHRONISED },
	{ TIME_ERROR, STA_UNSYNC, 1, CT_BOUNDS_FREE_RUNNING },
	{ TIME_ERROR, STA_UNSYNC, 15999999, CT_BOUNDS_FREE_RUNNING },
	{ TIME_OK, STA_UNSYNC, 1, CT_BOUNDS_FREE_RUNNING },
	/* Of a pulse per second that is lost, for one. */
	{ TIME_ERROR, STA_PPSFREQ, 1, CT_BOUNDS_FREE_RUNNING },
	{ TIME_ERROR, STA_UNSYNC, MAXERROR_END_US, CT_BOUNDS_UNKNOWN },
	{ TIME_OK, 0, MAXERROR_END_US, CT_BOUNDS_UNKNOWN },
	{ TIME_ERROR, STA_UNSYNC, INT_MAX, CT_BOUNDS_UNKNOWN },
};

START_TEST(kernels_status)
{
	const struct told *row = &told[_i];
	struct ct_bounds bounds;
	int64_t before_ns, error_ns;

	begin_world();
	world.ret = row->ret;
	world.status = row->status;
	world.maxerror_us = row->maxerror_us;
	before_ns = wall_ns();
	bounds = bounds_now();
	ck_assert_int_eq(bounds.status, row->wanted);
	ck_assert_int_eq(bounds.tai_offset_s, 37);
	if (row->wanted == CT_BOUNDS_UNKNOWN) {
		assert_unknown(&bounds);
		return;
	}

	/* What the kernel says, and what it may have missed in its second. */
	error_ns = half_width(&bounds);
	ck_assert_int_ge(error_ns, row->maxerror_us * 1000 + 500 * US);
	ck_assert_int_le(error_ns, row->maxerror_us * 1000 + 500 * US + 5);
	ck_assert_int_ge(bounds.earliest_ns + error_ns, before_ns);
	ck_assert_int_le(bounds.latest_ns - error_ns, wall_ns());
}
END_TEST

START_TEST(tai_offset)
{
	static const int offsets[] = { 0, 10, 37, 38, -1 };
	struct ct_bounds bounds;

	begin_world();
	world.tai_s = offsets[_i];
	bounds = bounds_now();
	ck_assert_int_eq(bounds.tai_offset_s, offsets[_i]);
}
END_TEST

/* The kernel is asked again after a second; until then they grow. */
START_TEST(growth)
{
	static const int64_t tolerances_ppm[] = { 500, 100, 1, 0, 1000 };
	const int64_t ppm = tolerances_ppm[_i];
	int64_t first_ns, age_ns, mono_ns;
	struct ct_bounds bounds;

	begin_world();
	world.tolerance = ppm * PPM;
	bounds = bounds_now();
	mono_ns = world.mono_ns;
	first_ns = half_width(&bounds);
	ck_assert_int_eq(world.asked, 1);
	for (int i = 0; i < 1000; i++) {
		pass(990 * US);
		bounds = bounds_now();
		age_ns = world.mono_ns - mono_ns;
		ck_assert_int_eq(world.asked, 1);
		ck_assert_int_ge(half_width(&bounds) - first_ns,
			(age_ns - 200) * ppm / 1000000 - 2);
		ck_assert_int_le(half_width(&bounds) - first_ns,
			age_ns * ppm / 1000000 + 2);
	}
	/* It has counted on meanwhile. */
	ck_assert_int_eq(world.maxerror_us, 1500);
	pass(20 * MS);
	bounds = bounds_now();
	ck_assert_int_eq(world.asked, 2);
	ck_assert_int_ge(half_width(&bounds), first_ns + 500 * US);
	ck_assert_int_le(half_width(&bounds), first_ns + 500 * US + 5);
}
END_TEST

/* For hours, until it gives up. */
START_TEST(never_synchronised_again)
{
	struct ct_bounds bounds;
	int asked = 0;

	begin_world();
	bounds = bounds_now();
	ck_assert_int_eq(bounds.status, CT_BOUNDS_SYNCHRONISED);
	world.status |= STA_UNSYNC;
	world.drift_ppm = 500;
	while (world.maxerror_us < MAXERROR_END_US) {
		pass(7 * SEC / 5);
		bounds = bounds_now();
		ALWAYS(world.asked == asked + 2);
		asked++;
		if (world.maxerror_us >= MAXERROR_END_US)
			break;
		ALWAYS(bounds.status == CT_BOUNDS_FREE_RUNNING);
		ALWAYS(bounds.earliest_ns <= true_ns());
		ALWAYS(bounds.latest_ns >= true_ns());
	}
	assert_unknown(&bounds);
	/* And is told the time again. */
	world.status = 0;
	world.maxerror_us = 2;
	pass(SEC);
	ck_assert_int_eq(bounds_now().status, CT_BOUNDS_SYNCHRONISED);
}
END_TEST

static const int refusals[] = { ENOSYS, EPERM, EACCES };

static void assert_refused(int error)
{
	struct ct_bounds bounds;

	memset(&bounds, 0x55, sizeof(bounds));
	errno = 4711;
	ck_assert_int_eq(ct_bounds(&bounds), -error);
	ck_assert_int_eq(errno, 4711);
	assert_unknown(&bounds);
	ck_assert_int_eq(bounds.tai_offset_s, 0);
}

START_TEST(refused)
{
	begin_world();
	world.refused = refusals[_i];
	for (int i = 0; i < 10; i++)
		assert_refused(refusals[_i]);

	/* Allowed. */
	world.refused = 0;
	errno = 4711;
	ck_assert_int_eq(bounds_now().status, CT_BOUNDS_SYNCHRONISED);
	ck_assert_int_eq(errno, 4711);
	/* A sandbox closes over a process that knows: for a second. */
	world.refused = refusals[_i];
	ck_assert_int_eq(bounds_now().status, CT_BOUNDS_SYNCHRONISED);
	pass(SEC);
	assert_refused(refusals[_i]);
	/* Or after a step. */
	world.refused = 0;
	ck_assert_int_eq(bounds_now().status, CT_BOUNDS_SYNCHRONISED);
	world.refused = refusals[_i];
	step(SEC);
	assert_refused(refusals[_i]);
}
END_TEST

START_TEST(null)
{
	begin_world();
	ck_assert_int_eq(ct_bounds(NULL), -EINVAL);
	ck_assert_int_eq(world.asked, 0);
}
END_TEST

/* Once a second, and after each step. */
START_TEST(asked_seldom)
{
	int64_t begun_ns;

	begin_world();
	begun_ns = world.mono_ns;
	for (int i = 0; i < 100000; i++) {
		bounds_now();
		pass((int64_t)random_below(200 * US));
	}
	ck_assert_int_le(
		world.asked, (int)((world.mono_ns - begun_ns) / SEC) + 1);
	ck_assert_int_ge(
		world.asked, (int)((world.mono_ns - begun_ns) / SEC));
}
END_TEST

static const int64_t steps_ns[] = { 3600 * SEC, -3600 * SEC, SEC, -SEC, 10 * MS,
	-10 * MS, 11 * US, -11 * US };

START_TEST(asked_after_a_step)
{
	begin_world();
	for (int i = 1; i <= 20; i++) {
		ck_assert_int_eq(
			bounds_now().status, CT_BOUNDS_SYNCHRONISED);
		ck_assert_int_eq(world.asked, 2 * i - 1);
		bounds_now();
		ck_assert_int_eq(world.asked, 2 * i - 1);

		set_clock(steps_ns[_i]);
		ck_assert_int_eq(bounds_now().status, CT_BOUNDS_UNKNOWN);
		ck_assert_int_eq(world.asked, 2 * i);
		bounds_now();
		ck_assert_int_eq(world.asked, 2 * i);

		/* By somebody who knows the time. */
		world.status = 0;
		world.maxerror_us = 1000;
		world.error_fs = 0;
		pass(SEC);
	}
}
END_TEST

/* Another time namespace, entered by a fork; or a machine that was put back to
 * where it has been, wall clock and all. */
static const int64_t shifts_ns[] = { -3000 * SEC, 3000 * SEC, -MS, SEC };

START_TEST(another_mono)
{
	int64_t shift_ns = shifts_ns[_i / 2];

	begin_world();
	bounds_now();
	world.mono_ns += shift_ns;
	if (_i % 2 == 0)
		world.wall_offset_ns -= shift_ns;
	ck_assert_int_eq(bounds_now().status, CT_BOUNDS_SYNCHRONISED);
	ck_assert_int_eq(world.asked, 2);
}
END_TEST

static void right_in_child(void)
{
	struct ct_bounds bounds;
	int asked = world.asked;

	for (int i = 0; i < 100; i++) {
		bounds = bounds_now();
		ck_assert_int_eq(bounds.status, CT_BOUNDS_SYNCHRONISED);
		ck_assert_int_le(bounds.earliest_ns, true_ns());
		ck_assert_int_ge(bounds.latest_ns, true_ns());
		pass(100 * MS);
	}
	ck_assert_int_ge(world.asked, asked + 9);
	ck_assert_int_le(world.asked, asked + 11);
}

/* exits: the last thing a test does. Held up there: others do without. */
START_TEST(forked_child)
{
	pid_t pid;

	begin_world();
	if (_i > 0)
		bounds_now();
	if (_i > 1)
		ct_page.bounds_lock = 1;
	pid = check_fork();
	if (pid == 0) {
		right_in_child();
		exit(EXIT_SUCCESS);
	}
	check_waitpid_and_exit(pid);
}
END_TEST

/*
 * Is there a moment in the call at which they held? From true time before to
 * true time after; a step of true time, which only a leap second is, lies in
 * between.
 */
static bool held(const struct ct_bounds *bounds, int64_t before_ns,
	int64_t after_ns)
{
	if (after_ns >= before_ns)
		return bounds->earliest_ns <= after_ns &&
		       bounds->latest_ns >= before_ns;
	return (bounds->latest_ns >= before_ns &&
		       bounds->earliest_ns <= after_ns + SEC) ||
	       (bounds->latest_ns >= before_ns - SEC &&
		       bounds->earliest_ns <= after_ns);
}

/* What befalls the clock: to be called between reads, or amid one. */
static void synchronise(void)
{
	int64_t error_us = world.error_fs / FS_PER_NS / 1000;

	if (error_us < 0)
		error_us = -error_us;
	/* Honest, but no better than it must be. */
	world.maxerror_us = error_us + 1 + (int64_t)random_below(3);
	world.status = 0;
	if (random_below(2) == 0)
		world.drift_ppm = random_below(2) == 0 ? 500 : -500;
	else
		world.drift_ppm = (int64_t)random_below(1001) - 500;
}

static void step_right(void)
{
	/* As ntpdate does: then the error is as good as none. */
	int64_t off_ns = (int64_t)random_below(20 * US) - 10 * US;

	set_clock(world.error_fs / FS_PER_NS + off_ns);
	synchronise();
}

static void step_wrong(void)
{
	set_clock((int64_t)random_below(7200) * SEC - 3600 * SEC);
}

static void lose_it(void)
{
	world.status |= STA_UNSYNC;
}

static void (*const events[])(void) = { synchronise, synchronise, synchronise,
	synchronise, step_right, step_wrong, lose_it, insert_leap_second };

static void let_something_happen(void)
{
	void (*event)(void) = events[random_below(COUNT(events))];

	if (event == synchronise && world.error_fs / FS_PER_NS > 15 * SEC)
		event = step_right;
	if (event == synchronise && world.error_fs / FS_PER_NS < -15 * SEC)
		event = step_right;
	if (random_below(2) == 0) {
		event();
		return;
	}
	world.meanwhile = event;
	world.meanwhile_in = 1 + (int)random_below(5);
}

static void let_time_pass(void)
{
	switch (random_below(8)) {
	case 0:
		pass((int64_t)random_below(3 * SEC));
		break;
	case 1:
		pass((int64_t)random_below(30 * MS));
		break;
	default:
		pass((int64_t)random_below(20 * US));
		break;
	}
}

/* In every read. */
START_TEST(hold)
{
	int64_t before_ns, after_ns, begun_ns;
	struct ct_bounds bounds;
	int64_t known = 0;

	begin_world();
	world.preempt_per_mille = _i;
	begun_ns = world.mono_ns;
	synchronise();
	for (int64_t i = 0; i < reads; i++) {
		if (random_below(1000) == 0)
			let_something_happen();
		let_time_pass();
		before_ns = true_ns();
		if (ct_bounds(&bounds) != 0)
			ck_abort_msg("refused");
		after_ns = true_ns();
		if (bounds.status == CT_BOUNDS_UNKNOWN)
			continue;
		known++;
		if (!held(&bounds, before_ns, after_ns))
			ck_abort_msg("read %lld: true time %lld..%lld, bounds "
				     "%lld..%lld",
				(long long)i, (long long)before_ns,
				(long long)after_ns,
				(long long)bounds.earliest_ns,
				(long long)bounds.latest_ns);
	}
	ck_assert_int_gt(known, reads / 4);
	ck_assert_int_gt(world.steps, (int)(reads / 100000));
	/* At most once a second, after each step, and where being preempted
	 * between two clocks looks like one. */
	ck_assert_int_le(world.asked,
		(int)((world.mono_ns - begun_ns) / SEC) + 1 +
			2 * world.steps + world.wide);
}
END_TEST

/* A leap second at each moment of a call. */
START_TEST(leap_second)
{
	int64_t before_ns, after_ns;
	struct ct_bounds bounds;

	for (int at = 1; at <= 8; at++) {
		begin_world();
		world.maxerror_us = 1;
		/* The one before may be known or not. */
		bounds_now();
		if (_i == 1)
			pass(SEC);
		world.meanwhile = insert_leap_second;
		world.meanwhile_in = at;
		for (int i = 0; i < 8; i++) {
			before_ns = true_ns();
			bounds = bounds_now();
			after_ns = true_ns();
			ck_assert(held(&bounds, before_ns, after_ns));
			ck_assert_int_eq(
				bounds.status, CT_BOUNDS_SYNCHRONISED);
			/* Wall and TAI - wall are of one side of it. */
			if (after_ns > before_ns)
				ck_assert_int_eq(
					bounds.tai_offset_s, world.tai_s);
			else
				ck_assert_int_eq(bounds.tai_offset_s,
					bounds.latest_ns < before_ns ? 38 : 37);
		}
		ck_assert_int_eq(world.tai_s, 38);
	}
}
END_TEST

/* Nothing else asks the kernel: some sandboxes kill for it. */
static void on_step(int64_t delta_ns, void *arg)
{
	(void)delta_ns;
	(void)arg;
}

static void call_all_others(void)
{
	struct ct_status status = { .size = sizeof(status) };
	struct ct_snapshot snap;
	char text[2048];

	for (int word = 0; word < CT_WORDS; word++)
		ct_read_slow((enum ct_word)word);
	ct_now_s();
	ct_now_ms();
	ct_now_us();
	ct_now_ns();
	ct_mono_ms();
	ct_mono_us();
	ct_mono_ns();
	ct_boot_ms();
	ct_tai_ns();
	ct_now_ms_fresh(0);
	ct_mono_ms_fresh(50);
	ct_precise_ns();
	ct_precise_mono_ns();
	ct_precise_ordered_ns();
	ct_precise_mono_ordered_ns();
	ct_generation();
	ct_generation_slow();
	ct_snapshot(&snap);
	ct_on_step(on_step, NULL);
	ct_refresh();
	ct_age_ns();
	ct_status(&status);
	ct_status_text(text, sizeof(text));
	ct_version();
}

static int start(enum ct_mode mode)
{
	struct ct_config config = { .size = sizeof(config), .mode = mode };

	return ct_start(&config);
}

START_TEST(nothing_else_asks)
{
	static const enum ct_mode modes[] = { CT_MODE_AUTO, CT_MODE_TICK,
		CT_MODE_MANUAL, CT_MODE_OFF };
	int64_t until_ns;

	call_all_others();
	for (int i = 0; i < COUNT(modes); i++) {
		ck_assert_int_eq(start(modes[i]), 0);
		until_ns = clock_ns(CLOCK_MONOTONIC) + 100 * MS;
		while (clock_ns(CLOCK_MONOTONIC) < until_ns)
			call_all_others();
	}
	ck_assert_int_eq(ct_stop(), 0);
	call_all_others();
	/* And through steps, in a world where time passes by reading it. */
	begin_world();
	ck_assert_int_eq(start(CT_MODE_MANUAL), 0);
	for (int i = 0; i < 100; i++) {
		set_clock(SEC);
		call_all_others();
		pass(300 * MS);
	}
	ck_assert_int_eq(ct_stop(), 0);
	ck_assert_int_eq(world.asked, 0);
	bounds_now();
	ck_assert_int_eq(world.asked, 1);
}
END_TEST

int main(int argc, char **argv)
{
	Suite *suite = suite_create("bounds");

	if (argc > 1)
		reads = strtoll(argv[1], NULL, 10);
	add(suite, "status", kernels_status, COUNT(told));
	add(suite, "TAI", tai_offset, 5);
	add(suite, "growth", growth, 5);
	add(suite, "never synchronised again", never_synchronised_again, 1);
	add(suite, "refused", refused, COUNT(refusals));
	add(suite, "null", null, 1);
	add(suite, "asked seldom", asked_seldom, 1);
	add(suite, "asked after a step", asked_after_a_step, COUNT(steps_ns));
	add(suite, "another mono", another_mono, 2 * COUNT(shifts_ns));
	add(suite, "forked child", forked_child, 3);
	add(suite, "hold", hold, 3);
	add(suite, "leap second", leap_second, 2);
	add(suite, "nothing else asks", nothing_else_asks, 1);
	return run_suite(suite);
}
