/* SPDX-License-Identifier: MIT */
/*
 * Counters that go wrong in use. Whatever a counter does, no word may run
 * ahead of the kernel's clock, fall behind it or go back; and the counter is
 * dropped within a second, in words that say why. A tick is 1 ms of a clock
 * that is turned by hand.
 */
#include "sim.h"

#include <cachedtime.h>

#include "clocksource.h"
#include "publisher.h"
#include "timekeeper.h"

/* The line may trail the kernel's clock by this before it starts anew, and a
 * sample's own width comes on top. */
#define TRAIL_NS (TIMEKEEPER_REBASE_NS + 10 * US)
/* A rate that isn't known is measured by then. */
#define RATE_KNOWN_MS 200

static struct publisher p;
/* Mono and wall just before the last publication. */
static int64_t begun_mono_ns, begun_wall_ns;
static char kernel_file[] = "clocksource-XXXXXX";

/* What is injected, and in which words it is found. */
static void stand_still(void)
{
	sim_rate(0);
}

static void jump_ahead(void)
{
	sim_jump(SEC);
}

static void jump_ahead_a_little(void)
{
	sim_jump(MS);
}

static void jump_back(void)
{
	sim_jump(-SEC);
}

static void jump_back_a_little(void)
{
	sim_jump(-500 * US);
}

static void run_backwards(void)
{
	sim_rate(-sim.hz);
}

static void reset(void)
{
	sim.cycles = 0;
	sim.cycles_ns = sim.raw_ns;
}

static void run_twice_as_fast(void)
{
	sim_rate(2 * sim.hz);
}

static void run_half_as_fast(void)
{
	sim_rate(sim.hz / 2);
}

static void run_a_little_faster(void)
{
	sim_rate(sim.hz + sim.hz / 500);
}

static void run_a_little_slower(void)
{
	sim_rate(sim.hz - sim.hz / 500);
}

#define DROPPED "dropped for realtime: "

/*
 * Any of them that begins between two looks is seen as so much ahead or
 * behind. A counter that stood, or ran backwards, all the time is told apart.
 */
static const struct fault {
	void (*inject)(void);
	const char *words;
	int64_t off_ns; /* 0: depends */
	bool at_once;	/* within two publications */
} faults[] = {
	{ stand_still, DROPPED, 0, true },
	{ jump_ahead, DROPPED "off by +", SEC, true },
	{ jump_ahead_a_little, DROPPED "off by +", MS, true },
	{ jump_back, DROPPED "it ran backwards", -SEC, true },
	{ jump_back_a_little, DROPPED "off by -", -500 * US, true },
	{ run_backwards, DROPPED, 0, true },
	{ reset, DROPPED, 0, true },
	{ run_twice_as_fast, DROPPED "off by +", 0, true },
	{ run_half_as_fast, DROPPED "off by -", 0, true },
	{ run_a_little_faster, DROPPED "off by +", 0, false },
	{ run_a_little_slower, DROPPED "off by -", 0, false },
};

/* A counter of known rate and one to be measured; wide and narrow. */
static const struct kind {
	bool known;
	uint64_t mask;
	int64_t hz;
} kinds[] = {
	{ true, UINT64_MAX, 1000000000 },
	{ true, UINT32_MAX, 1000000000 },
	{ true, UINT32_MAX, 100000000 },
	{ false, UINT64_MAX, 1000000000 },
	{ false, UINT64_MAX, 2100000000 },
};

static struct clocksource cs_of(const struct kind *kind)
{
	struct clocksource cs = {
		.name = "turned",
		.read = sim_read_counter,
		.mask = kind->mask,
		.hz = kind->known ? (uint64_t)kind->hz : 0,
		.error_ppb = 500000,
		.watched = true,
		.mono = CLOCK_MONOTONIC,
		.wall = CLOCK_REALTIME,
	};

	return cs;
}

/* One publication: no word ahead, none behind, mono not back. */
static void publish_checked(void)
{
	static int64_t last_mono_ns, last_boot_ms;
	struct timekeeper_sample sample;

	begun_wall_ns = sim_wall();
	begun_mono_ns = sim_mono();
	publisher_publish(&p, &sample);

	ALWAYS(ct_page.mono_ns <= sim_mono());
	ALWAYS(ct_page.mono_ns >= begun_mono_ns - TRAIL_NS);
	ALWAYS(ct_page.mono_ns >= last_mono_ns);
	ALWAYS(ct_page.wall_ns <= sim_wall());
	ALWAYS(ct_page.wall_ns >= begun_wall_ns - TRAIL_NS);
	/* The other units are of the same moment. */
	ALWAYS(ct_page.mono_us == ct_page.mono_ns / US);
	ALWAYS(ct_page.mono_ms == ct_page.mono_ns / MS);
	ALWAYS(ct_page.wall_us == ct_page.wall_ns / US);
	ALWAYS(ct_page.wall_ms == ct_page.wall_ns / MS);
	ALWAYS(ct_page.wall_s == ct_page.wall_ns / SEC);
	ALWAYS(ct_page.boot_ms >= last_boot_ms);

	last_mono_ns = ct_page.mono_ns;
	last_boot_ms = ct_page.boot_ms;
}

static void tick(void)
{
	sim_pass(MS);
	publish_checked();
}

static void run_ms(int ms)
{
	for (int i = 0; i < ms; i++)
		tick();
}

static void start(const struct clocksource *cs)
{
	publisher_start(&p, cs);
	publish_checked();
	for (int i = 0; p.phase == PUBLISHER_WAITING; i++) {
		ck_assert_int_lt(i, RATE_KNOWN_MS);
		tick();
	}
}

static const char *words(void)
{
	static char buf[128];

	publisher_explain(&p, buf, sizeof(buf));
	return buf;
}

static void assert_in_use(void)
{
	ck_assert_msg(p.phase == PUBLISHER_CHOSEN, "%s", words());
	ck_assert_str_eq(words(), "");
	ck_assert_str_eq(ct_page.backend, "turned");
	ck_assert(p.cs.read != NULL);
}

static void assert_dropped(const char *beginning)
{
	ck_assert_int_eq(p.phase, PUBLISHER_DROPPED);
	ck_assert_msg(strncmp(words(), beginning, strlen(beginning)) == 0,
		"'%s', not '%s...'", words(), beginning);
	ck_assert_str_eq(ct_page.backend, "realtime");
	ck_assert_str_eq(p.cs.name, "realtime");
	ck_assert(p.cs.read == NULL);
	ck_assert_uint_eq(ct_page.counter_hz, 0);
}

/* It is dropped, and what serves instead is exact. */
static void run_until_dropped(const char *beginning, int limit_ms)
{
	for (int i = 0; p.phase != PUBLISHER_DROPPED; i++) {
		ck_assert_msg(i < limit_ms, "in use after %d ms", i);
		tick();
	}
	assert_dropped(beginning);
	run_ms(1500);
	assert_dropped(beginning);
	ck_assert_int_ge(ct_page.mono_ns, begun_mono_ns - US);
	ck_assert_int_ge(ct_page.wall_ns, begun_wall_ns - US);
}

static void begin(const struct kind *kind)
{
	sim_begin(kind->hz, kind->mask);
}

START_TEST(healthy)
{
	const struct kind *kind = &kinds[_i];
	struct clocksource cs = cs_of(kind);
	int64_t off_hz;

	begin(kind);
	start(&cs);
	run_ms(30000);
	assert_in_use();
	off_hz = (int64_t)ct_page.counter_hz - kind->hz;
	ck_assert_int_le(off_hz, kind->hz / 10000000); /* 0.1 ppm */
	ck_assert_int_ge(off_hz, -kind->hz / 10000000);
	ck_assert_uint_eq(ct_page.rebases, 0);
	ck_assert_uint_eq(ct_page.steps, 0);
	ck_assert_int_eq(sim.sysfs_opens, 0);
}
END_TEST

START_TEST(faulty)
{
	const struct fault *fault = &faults[_i % LENGTH(faults)];
	const struct kind *kind = &kinds[_i / LENGTH(faults)];
	struct clocksource cs = cs_of(kind);

	begin(kind);
	start(&cs);
	/* At different distances from the last judgement. */
	run_ms(1000 + 13 * _i);
	assert_in_use();
	fault->inject();
	run_until_dropped(fault->words, fault->at_once ? 2 : 1000);
	if (fault->off_ns != 0 && fault->off_ns != -SEC) {
		ck_assert_int_gt(p.fate.off_ns, fault->off_ns - 10 * US);
		ck_assert_int_lt(p.fate.off_ns, fault->off_ns + 10 * US);
	}
	/* A step that came meanwhile would be nobody's. */
	ck_assert_uint_eq(ct_page.steps, 0);
}
END_TEST

/* The same on a machine where threads are held up all the time. */
START_TEST(faulty_and_busy)
{
	const struct fault *fault = &faults[_i % LENGTH(faults)];
	const struct kind *kind = &kinds[_i / LENGTH(faults)];
	struct clocksource cs = cs_of(kind);
	uint64_t steps;

	begin(kind);
	sim.preempt_per_mille = 50;
	start(&cs);
	run_ms(3000 + 13 * _i);
	assert_in_use();
	steps = ct_page.steps;
	fault->inject();
	for (int i = 0; p.phase != PUBLISHER_DROPPED; i++) {
		ck_assert_int_lt(i, 1000);
		tick();
	}
	assert_dropped(DROPPED);
	run_ms(1500);
	/* The new line, too, was begun on a wide sample now and then. */
	ck_assert_uint_eq(ct_page.steps, steps);
}
END_TEST

START_TEST(drift)
{
	struct clocksource cs = cs_of(&kinds[_i]);
	int64_t hz = kinds[_i].hz;

	/* To 100 ppm and back to -100, by 1 ppm in 50 ms. */
	begin(&kinds[_i]);
	start(&cs);
	for (int ppm = 0; ppm < 100; ppm++) {
		sim_rate(hz + hz / 1000000 * ppm);
		run_ms(50);
	}
	for (int ppm = 100; ppm > -100; ppm--) {
		sim_rate(hz + hz / 1000000 * ppm);
		run_ms(50);
	}
	assert_in_use();

	/* It goes on, for ever. */
	for (int ppm = 100; ppm < 3000 && p.phase == PUBLISHER_CHOSEN; ppm++) {
		sim_rate(hz - hz / 1000000 * ppm);
		run_ms(5);
	}
	assert_dropped(DROPPED "off by -");
}
END_TEST

/* Real ones are within 500 ppm of what they say (IA-PC HPET specification,
 * section 2.2). */
START_TEST(nominal_rate_is_off)
{
	static const int64_t ppm[] = { -450, -250, 250, 450 };
	struct clocksource cs = cs_of(&kinds[2]);

	begin(&kinds[2]);
	sim_rate(sim.hz + sim.hz / 1000000 * ppm[_i]);
	start(&cs);
	run_ms(5000);
	assert_in_use();
}
END_TEST

/* NTP slews the kernel's clocks: by 500 ppm, and adjtimex(2) by a tenth. */
START_TEST(kernel_slews)
{
	struct clocksource cs = cs_of(&kinds[_i]);

	begin(&kinds[_i]);
	start(&cs);
	run_ms(500);
	sim_slew(500);
	run_ms(2000);
	sim_slew(-500);
	run_ms(2000);
	sim_slew(100000);
	run_ms(2000);
	sim_slew(-100000);
	run_ms(2000);
	sim_slew(0);
	run_ms(500);
	assert_in_use();
}
END_TEST

START_TEST(wall_steps)
{
	struct clocksource cs = cs_of(&kinds[_i]);

	begin(&kinds[_i]);
	start(&cs);
	run_ms(500);
	sim.wall_offset_ns += 3600 * SEC;
	run_ms(500);
	sim.wall_offset_ns -= 2 * 3600 * SEC;
	run_ms(500);
	sim.wall_offset_ns += MS;
	run_ms(500);
	assert_in_use();
	ck_assert_uint_eq(ct_page.steps, 3);

	/* One that falls together with a fault is counted too. */
	stand_still();
	sim.wall_offset_ns += SEC;
	run_ms(10);
	assert_dropped(DROPPED);
	ck_assert_uint_eq(ct_page.steps, 4);
	/* And they are counted on. */
	sim.wall_offset_ns -= SEC;
	run_ms(10);
	ck_assert_uint_eq(ct_page.steps, 5);
}
END_TEST

/* Mono doesn't count a suspend; some counters do, others begin anew. */
START_TEST(suspend)
{
	struct clocksource cs = cs_of(&kinds[_i]);

	begin(&kinds[_i]);
	start(&cs);
	for (int i = 0; i < 4; i++) {
		run_ms(1700);
		sim.boot_offset_ns += 100 * SEC;
		sim.wall_offset_ns += 100 * SEC;
		if (i % 2 == 0)
			reset();
		else
			sim_jump(100 * SEC);
		run_ms(2);
	}
	run_ms(1700);
	assert_in_use();

	/* Nothing else is forgiven on account of it. */
	jump_ahead();
	run_until_dropped(DROPPED "off by +", 2);
}
END_TEST

/* Nothing is published for long, as in a program that is stopped. */
START_TEST(long_gap)
{
	struct clocksource cs = cs_of(&kinds[_i]);

	begin(&kinds[_i]);
	start(&cs);
	for (int64_t gap_ms = 1; gap_ms < 3600000; gap_ms *= 3) {
		run_ms(300);
		sim_pass(gap_ms * MS);
		publish_checked();
		sim_pass(5 * MS);
		publish_checked();
	}
	run_ms(300);
	assert_in_use();
}
END_TEST

/* While its rate is measured. */
START_TEST(fault_while_waiting)
{
	struct clocksource cs = cs_of(&kinds[3]);

	begin(&kinds[3]);
	publisher_start(&p, &cs);
	publish_checked();
	tick();
	faults[_i].inject();
	for (int i = 0; i < 1000; i++)
		tick();

	/* One that keeps its new rate may be used; no other. */
	if (p.phase == PUBLISHER_CHOSEN)
		ck_assert_int_le(llabs((int64_t)p.cs.hz - sim.hz),
			sim.hz / 1000000 * 20);
	else
		ck_assert_str_eq(ct_page.backend, "realtime");
}
END_TEST

/* A counter that stands: it waits for ever, and harms nobody. */
START_TEST(never_runs)
{
	struct clocksource cs = cs_of(&kinds[3]);

	begin(&kinds[3]);
	stand_still();
	publisher_start(&p, &cs);
	publish_checked();
	run_ms(20000);
	ck_assert_str_eq(words(), "realtime until its rate is measured");
	ck_assert_str_eq(ct_page.backend, "realtime");
	ck_assert_uint_eq(ct_page.counter_hz, 0);
}
END_TEST

/* Dropped at the first look after a whole interval of standing still, or of
 * running backwards: those are called what they are. */
START_TEST(faulty_all_the_time)
{
	struct clocksource cs = cs_of(&kinds[0]);

	begin(&kinds[0]);
	sim_rate(_i == 0 ? 0 : -kinds[0].hz);
	publisher_start(&p, &cs);
	run_until_dropped(_i == 0 ? DROPPED "it stood still for "
				  : DROPPED "it ran backwards", 200);
}
END_TEST

START_TEST(rate_measured_while_busy)
{
	struct clocksource cs = cs_of(&kinds[4]);

	for (uint64_t seed = 1; seed < 200; seed++) {
		begin(&kinds[4]);
		sim.random = seed * 7919;
		sim.preempt_per_mille = 200;
		/* Later than the last round: mono never goes back. */
		sim.mono_ns += (int64_t)seed * 100 * SEC;
		start(&cs);
		ck_assert_int_le(llabs((int64_t)p.cs.hz - kinds[4].hz),
			kinds[4].hz / 1000000 * 20);
		run_ms(100);
		assert_in_use();
	}
}
END_TEST

/* The kernel's clocksource. */
static void kernel_uses(const char *name)
{
	int fd = open(kernel_file, O_WRONLY | O_TRUNC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, name, strlen(name)), (int)strlen(name));
	close(fd);
	sim.sysfs_opens = 0;
}

static struct clocksource begin_kernels_own(void)
{
	struct clocksource cs = cs_of(&kinds[3]);
	int fd = mkstemp(kernel_file);

	ck_assert_int_ge(fd, 0);
	close(fd);
	clocksource_kernel_from(kernel_file);
	begin(&kinds[3]);
	cs.kernels_own = true;
	kernel_uses("tsc\n");
	return cs;
}

static void assert_left(int limit_ms)
{
	run_until_dropped(
		DROPPED "the kernel has left this clocksource", limit_ms);
	unlink(kernel_file);
}

START_TEST(kernel_left)
{
	struct clocksource cs = begin_kernels_own();

	start(&cs);
	run_ms(2000);
	assert_in_use();
	/* Nothing looked slow, so nothing was opened. */
	ck_assert_int_eq(sim.sysfs_opens, 0);

	kernel_uses("hpet\n");
	sim.read_ns = 1500;
	assert_left(1000);
}
END_TEST

/* Within its first second, too. */
START_TEST(kernel_left_early)
{
	struct clocksource cs = begin_kernels_own();

	start(&cs);
	run_ms(20);
	kernel_uses("acpi_pm\n");
	sim.read_ns = 1500;
	assert_left(1000);
}
END_TEST

/* The samples were wide when it was taken into use: somebody else's turn. */
START_TEST(kernel_left_after_wide_start)
{
	struct clocksource cs = begin_kernels_own();

	cs.hz = (uint64_t)kinds[3].hz;
	sim.read_ns = 20 * US;
	publisher_start(&p, &cs);
	sim.read_ns = 30;
	run_ms(1000);
	assert_in_use();
	kernel_uses("hpet\n");
	sim.read_ns = 1500;
	assert_left(1000);
}
END_TEST

/* The first sample was wide: no step was, and wall isn't behind. */
START_TEST(wide_start)
{
	struct clocksource cs = cs_of(&kinds[0]), realtime;
	char reason[512];

	clocksource_open(&realtime, "realtime", reason, sizeof(reason));
	begin(&kinds[0]);
	/* One look, then as ever. */
	sim.slow_spends = 8;
	sim.slow_ns = MS;
	publisher_start(&p, _i == 0 ? &realtime : &cs);
	run_ms(1000);
	ck_assert_uint_eq(ct_page.steps, 0);
	ck_assert_uint_eq(ct_page.generation, 1);
}
END_TEST

START_TEST(kernel_left_while_busy)
{
	struct clocksource cs = begin_kernels_own();

	sim.preempt_per_mille = 200;
	start(&cs);
	run_ms(2000);
	assert_in_use();
	kernel_uses("hpet\n");
	sim.read_ns = 1500;
	assert_left(1000);
}
END_TEST

/* The clock is slower to read, but its source is as trusted as before, or
 * can't be read any more: asked for twice a second at most. */
START_TEST(kernel_stayed)
{
	static const char *const names[] = { "tsc\n", "kvm-clock\n",
		"hyperv_clocksource_tsc_page\n", NULL };
	struct clocksource cs = begin_kernels_own();

	start(&cs);
	run_ms(1000);
	if (names[_i] != NULL)
		kernel_uses(names[_i]);
	else
		unlink(kernel_file);
	sim.sysfs_opens = 0;
	sim.read_ns = 1500;
	run_ms(5000);
	assert_in_use();
	ck_assert_int_ge(sim.sysfs_opens, 1);
	ck_assert_int_le(sim.sysfs_opens, 11);
	unlink(kernel_file);
}
END_TEST

/* Whoever asked for it against the kernel's judgement keeps it. */
START_TEST(kernel_never_used_it)
{
	struct clocksource cs = begin_kernels_own();

	cs.kernels_own = false;
	start(&cs);
	kernel_uses("hpet\n");
	sim.read_ns = 1500;
	run_ms(3000);
	assert_in_use();
	ck_assert_int_eq(sim.sysfs_opens, 0);
	unlink(kernel_file);
}
END_TEST

/* The narrowest look is judged by, wherever in the four it comes. */
START_TEST(held_up_look)
{
	struct clocksource cs = cs_of(&kinds[0]);
	struct trust_sample raw;

	begin(&kinds[0]);
	sim.slow_ns = MS;
	for (int look = 0; look < 4; look++) {
		/* A look is five spends: the clock twice, the counter. */
		sim.slow_spends = 5 * look;
		clocksource_sample_raw(&cs, &raw);
		ck_assert_int_lt(raw.raw_after_ns - raw.raw_ns, US);
	}
	sim.slow_spends = 5 * 4;
	clocksource_sample_raw(&cs, &raw);
	ck_assert_int_gt(raw.raw_after_ns - raw.raw_ns, MS);
}
END_TEST

/* What one counter left behind isn't told of the next. */
START_TEST(another_counter)
{
	struct clocksource cs = cs_of(&kinds[0]), realtime;
	char reason[512];

	begin(&kinds[0]);
	start(&cs);
	run_ms(1000);
	ck_assert_uint_gt(ct_page.counter_hz, 0);

	clocksource_open(&realtime, "realtime", reason, sizeof(reason));
	start(&realtime);
	run_ms(10);
	ck_assert_uint_eq(ct_page.counter_hz, 0);
	ck_assert_str_eq(ct_page.backend, "realtime");

	start(&cs);
	stand_still();
	run_until_dropped(DROPPED, 2);
	sim_rate(kinds[0].hz);
	start(&cs);
	run_ms(1000);
	assert_in_use();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("faults");
	int all = LENGTH(kinds);

	add_table(suite, "no fault", healthy, all);
	add_table(suite, "fault", faulty, LENGTH(faults) * all);
	add_table(suite, "fault on a busy machine", faulty_and_busy,
		LENGTH(faults) * all);
	add_table(suite, "drift", drift, all);
	add_table(suite, "nominal rate is off", nominal_rate_is_off, 4);
	add_table(suite, "kernel slews", kernel_slews, all);
	add_table(suite, "wall clock is set", wall_steps, all);
	add_table(suite, "suspend", suspend, all);
	add_table(suite, "long gaps", long_gap, all);
	add_table(suite, "fault while the rate is measured",
		fault_while_waiting, LENGTH(faults));
	add_situation(suite, "never runs", never_runs);
	add_table(suite, "faulty all the time", faulty_all_the_time, 2);
	add_situation(suite, "rate measured on a busy machine",
		rate_measured_while_busy);
	add_situation(suite, "kernel leaves it", kernel_left);
	add_situation(suite, "kernel leaves it early", kernel_left_early);
	add_situation(suite, "kernel leaves it, wide samples at the start",
		kernel_left_after_wide_start);
	add_table(suite, "first sample is wide", wide_start, 2);
	add_situation(suite, "kernel leaves it, busy machine",
		kernel_left_while_busy);
	add_table(suite, "kernel's clock is slow, no more", kernel_stayed, 4);
	add_situation(suite, "kernel never used it", kernel_never_used_it);
	add_situation(suite, "held up between two reads", held_up_look);
	add_situation(suite, "another counter", another_counter);
	return run_suite(suite);
}
