/* SPDX-License-Identifier: MIT */
/*
 * The processor's counter goes wrong in use. What is read is never off by more
 * than a segment's length; the counter is dropped; and what follows is the
 * kernel's clock, and no step back from what was told.
 */
#include "reader.h"

#include "publisher.h"

/* Dropped when the segment is over; when the watch looks; when it has seen a
 * whole interval of it. */
#define AT_ONCE_NS (SEGMENT_NS + 2 * MS)
#define LOOK_NS (WATCH_INTERVAL_NS + 2 * SEGMENT_NS + MS)
#define INTERVAL_NS (LOOK_NS + WATCH_INTERVAL_NS)

/* What readers may be off by: a segment, and what it takes to renew it. */
#define OFF_NS (SEGMENT_NS + 20 * US)

static void jump_ahead(void)
{
	sim_jump(SEC);
}

static void jump_ahead_a_little(void)
{
	sim_jump(2 * MS);
}

/* Less than what a change of the kernel's slope may look like. */
static void jump_ahead_very_little(void)
{
	sim_jump(300 * US);
}

static void jump_ahead_a_day(void)
{
	sim_jump(24 * HOUR);
}

static void jump_back(void)
{
	sim_jump(-SEC);
}

static void jump_back_a_little(void)
{
	sim_jump(-2 * MS);
}

static void jump_back_very_little(void)
{
	sim_jump(-300 * US);
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

static void run_faster(void)
{
	sim_rate(sim.hz + sim.hz / 20);
}

static void run_a_little_faster(void)
{
	sim_rate(sim.hz + sim.hz / 500);
}

static void run_a_little_slower(void)
{
	sim_rate(sim.hz - sim.hz / 500);
}

static void run_backwards(void)
{
	sim_rate(-sim.hz);
}

static void stand_still(void)
{
	sim_rate(0);
}

static const struct fault {
	void (*inject)(void);
	int64_t within_ns;
	int64_t off_ns;
	/* In a segment that readers read, there is nothing to notice it by. */
	bool goes_back;
	bool needs_ticker;
} faults[] = {
	{ jump_ahead, AT_ONCE_NS, OFF_NS, false, false },
	{ jump_ahead_a_little, AT_ONCE_NS, OFF_NS, false, false },
	{ jump_ahead_very_little, LOOK_NS, OFF_NS, false, false },
	{ jump_ahead_a_day, AT_ONCE_NS, OFF_NS, false, false },
	{ jump_back, AT_ONCE_NS, OFF_NS, false, false },
	{ jump_back_a_little, LOOK_NS, OFF_NS, true, false },
	{ jump_back_very_little, LOOK_NS, OFF_NS, true, false },
	{ reset, AT_ONCE_NS, OFF_NS, false, false },
	{ run_twice_as_fast, AT_ONCE_NS, OFF_NS, false, false },
	{ run_half_as_fast, LOOK_NS, OFF_NS, false, false },
	{ run_faster, LOOK_NS, OFF_NS, false, false },
	{ run_a_little_faster, INTERVAL_NS, OFF_NS, false, false },
	{ run_a_little_slower, INTERVAL_NS, OFF_NS, false, false },
	/* Back to the segment's beginning, while time goes on. */
	{ run_backwards, LOOK_NS, 2 * OFF_NS, true, false },
	{ stand_still, LOOK_NS, WATCH_INTERVAL_NS + MS, false, true },
};

/* What the ticker does at each millisecond. */
static struct publisher ticker;
static bool ticks;
static int64_t next_tick_ns;

static void tick(void)
{
	struct timekeeper_sample sample;

	publisher_publish(&ticker, &sample);
	steps_deliver();
	precise_ride(sample.mono_ns, MS);
}

static void begin_ticks(void)
{
	struct clocksource cs = turned_tsc();

	ticks = true;
	next_tick_ns = sim.raw_ns;
	publisher_start(&ticker, &cs);
}

/* A reader, and the ticker where there is one. */
static void read_and_tick(void)
{
	sim_pass(random_in(10 * US, 200 * US));
	if (ticks && sim.raw_ns >= next_tick_ns) {
		next_tick_ns += MS;
		tick();
	}
	read_both();
}

static void read_and_tick_for(int64_t ns)
{
	int64_t end_ns = sim.raw_ns + ns;

	while (sim.raw_ns < end_ns)
		read_and_tick();
}

static void until_dropped(const struct fault *fault)
{
	int64_t injected_ns = sim.raw_ns;

	while (why_not()[0] == '\0') {
		ALWAYS(sim.raw_ns - injected_ns <= fault->within_ns);
		read_and_tick();
		if (told.worst_ns > fault->off_ns)
			ck_abort_msg(
				"off by %lld ns", (long long)told.worst_ns);
	}
	ck_assert(!counts());
}

static void live_from_now_on(void)
{
	int64_t seen_ns = told.mono_ns;

	told.mono_may_go_back = false;
	ck_assert(!counts());
	/* No less than what the line told at last. */
	read_both();
	ck_assert_int_ge(told.mono_ns, seen_ns);
	read_and_tick_for(2 * SEGMENT_NS);
	forget_errors();
	read_and_tick_for(200 * MS);
	ck_assert(!counts());
	ck_assert_int_le(told.worst_ns, 150);
}

static void fail_after(const struct fault *fault, int64_t hz, int64_t after_ns)
{
	begin(hz);
	if (ticks)
		begin_ticks();
	read_and_tick_for(300 * MS);
	ck_assert(counts());
	read_and_tick_for(after_ns);
	forget_errors();
	told.mono_may_go_back = fault->goes_back;
	fault->inject();
	until_dropped(fault);
	live_from_now_on();
}

/* At different moments of a segment, and of the watch's interval. */
START_TEST(faulty)
{
	const struct fault *fault = &faults[_i];

	ticks = false;
	if (fault->needs_ticker)
		return;
	for (int i = 0; i < 20; i++)
		fail_after(fault, rates[i % LENGTH(rates)],
			i * 14 * MS + i * 430 * US);
}
END_TEST

START_TEST(faulty_with_ticker)
{
	ticks = true;
	for (int i = 0; i < 10; i++)
		fail_after(&faults[_i], rates[i % LENGTH(rates)],
			i * 14 * MS + i * 430 * US);
}
END_TEST

/* Once it is dropped it stays so, until somebody starts it. */
START_TEST(started_again)
{
	const struct fault fault = { run_twice_as_fast, AT_ONCE_NS, OFF_NS,
		false, false };
	struct clocksource cs = turned_tsc();

	begin_settled(rates[0]);
	fault.inject();
	until_dropped(&fault);
	live_from_now_on();
	precise_start(&cs);
	ck_assert_str_eq(why_not(), "");
	settle();
	read_for(SEC, 10 * US, MS);
	ck_assert_int_le(told.worst_ns, 300);
}
END_TEST

/* In words. */
START_TEST(words)
{
	static const struct {
		void (*inject)(void);
		const char *words;
	} why[] = {
		{ jump_ahead, "; not for precise time: off by +1000" },
		{ jump_back, "; not for precise time: it ran backwards" },
		{ run_half_as_fast, "; not for precise time: off by -" },
	};

	begin_settled(rates[0]);
	ck_assert_str_eq(why_not(), "");
	why[_i].inject();
	read_for(200 * MS, 10 * US, MS);
	ck_assert_msg(
		strncmp(why_not(), why[_i].words, strlen(why[_i].words)) == 0,
		"'%s', not '%s...'", why_not(), why[_i].words);
}
END_TEST

/* While its rate is measured. */
START_TEST(fault_while_measured)
{
	for (int64_t after_ns = 0; after_ns < 12 * MS; after_ns += 700 * US) {
		begin(rates[1]);
		read_both();
		read_for(after_ns, 10 * US, 2 * MS);
		forget_errors();
		told.mono_may_go_back = faults[_i].goes_back;
		faults[_i].inject();
		for (int i = 0; i < 1000; i++) {
			sim_pass(random_in(10 * US, 500 * US));
			read_both();
			ALWAYS(told.worst_ns <= faults[_i].off_ns);
		}
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("precise, faults");

	add_table(suite, "fault", faulty, LENGTH(faults));
	add_table(suite, "fault, with a ticker", faulty_with_ticker,
		LENGTH(faults));
	add_situation(suite, "dropped, and started again", started_again);
	add_table(suite, "why it was dropped", words, 3);
	/* All but the one that stands: nobody reads live then. */
	add_table(suite, "fault while the rate is measured",
		fault_while_measured, LENGTH(faults) - 1);
	return run_suite(suite);
}
