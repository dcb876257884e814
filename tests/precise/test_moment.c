/* SPDX-License-Identifier: MIT */
/*
 * Snapshots, of what is published and live, on clocks turned by hand: what is
 * in one belongs together, and its mono never goes back.
 */
#include "turned.h"

#include <cachedtime.h>

#include "clocksource.h"
#include "handover.h"
#include "moment.h"
#include "publisher.h"
#include "steps.h"

#define TAI_S 37
/* A look at both clocks. */
#define LOOK_NS 200

static struct publisher publisher;
static int64_t told_ns;
static uint64_t first;

static void begin(void)
{
	turned_begin(1000000000);
	sim.tai_offset_ns = TAI_S * SEC;
	sim.jitter_ns = 15;
	memset(&ct_page, 0, sizeof(ct_page));
	told_ns = 0;
	first = steps_look();
}

static void begin_publisher(void)
{
	struct clocksource cs;
	char reason[512];

	begin();
	clocksource_open(&cs, "realtime", reason, sizeof(reason));
	publisher_start(&publisher, &cs);
}

static void publish(void)
{
	struct timekeeper_sample sample;

	publisher_publish(&publisher, &sample);
}

/* The first and the last moment of this one. */
static struct ct_snapshot take(void)
{
	struct ct_snapshot snap;
	int64_t before_ns = told_ns;

	memset(&snap, 0xa5, sizeof(snap));
	moment_snapshot(&snap);
	ALWAYS(snap.mono_ns >= before_ns);
	ALWAYS(snap.mono_ns <= sim_mono());
	ALWAYS(snap.wall_s * SEC <= snap.wall_ns);
	ALWAYS(snap.wall_s * SEC > snap.wall_ns - SEC);
	ALWAYS(snap.age_ns >= 0);
	if (snap.mono_ns > told_ns)
		told_ns = snap.mono_ns;
	return snap;
}

/* wall and mono are of one moment, of these clocks. */
static void assert_consistent(const struct ct_snapshot *snap)
{
	int64_t offset_ns = snap->wall_ns - snap->mono_ns;

	ck_assert_int_le(magnitude(offset_ns - sim.wall_offset_ns), LOOK_NS);
	ck_assert_int_eq(snap->tai_offset_s, sim.tai_offset_ns / SEC);
	ck_assert_uint_eq(snap->generation, steps_generation());
}

static void assert_live(const struct ct_snapshot *snap, int64_t begun_ns)
{
	ck_assert_int_ge(snap->mono_ns, begun_ns);
	ck_assert_int_eq(snap->age_ns, 0);
	assert_consistent(snap);
}

START_TEST(live)
{
	begin();
	for (int i = 0; i < 100; i++) {
		int64_t begun_ns;
		struct ct_snapshot snap;

		sim_pass(random_in(0, SEC));
		begun_ns = sim_mono();
		snap = take();
		assert_live(&snap, begun_ns);
	}
}
END_TEST

/* A step shows at once, with its generation. */
START_TEST(live_and_set)
{
	begin();
	for (uint64_t i = 1; i < 20; i++) {
		struct ct_snapshot snap;
		int64_t begun_ns;

		sim.wall_offset_ns += i % 3 == 0 ? -HOUR : SEC;
		begun_ns = sim_mono();
		snap = take();
		assert_live(&snap, begun_ns);
		ck_assert_uint_eq(snap.generation, first + i);
	}
}
END_TEST

START_TEST(cached)
{
	begin_publisher();
	for (int i = 0; i < 1000; i++) {
		struct ct_snapshot snap;
		int64_t passed_ns, published_ns;

		publish();
		published_ns = ct_page.mono_ns;
		ck_assert_int_gt(published_ns, 0);
		passed_ns = random_in(0, 20 * MS);
		sim_pass(passed_ns);
		snap = take();
		ck_assert_int_eq(snap.mono_ns, published_ns);
		ck_assert_int_eq(snap.wall_ns, ct_page.wall_ns);
		assert_consistent(&snap);
		ck_assert_int_ge(snap.age_ns, passed_ns);
		ck_assert_int_le(snap.age_ns, passed_ns + 2 * US);
	}
}
END_TEST

/* Of one publication: not the new generation with the old time. */
START_TEST(cached_and_set)
{
	begin_publisher();
	publish();
	for (uint64_t i = 1; i < 100; i++) {
		int64_t step_ns = i % 3 == 0 ? -HOUR : SEC;
		struct ct_snapshot before, after;

		sim_pass(MS);
		publish();
		before = take();
		sim.wall_offset_ns += step_ns;
		/* The next second, by TAI. */
		sim.tai_offset_ns += i % 2 ? SEC : -SEC;
		sim_pass(100 * US);
		after = take();
		ck_assert_int_eq(after.wall_ns, before.wall_ns);
		ck_assert_uint_eq(after.generation, before.generation);
		ck_assert_int_eq(after.tai_offset_s, before.tai_offset_s);
		/* Somebody else counts it. */
		steps_look();
		after = take();
		ck_assert_int_eq(after.wall_ns, before.wall_ns);
		ck_assert_uint_eq(after.generation, before.generation);

		publish();
		after = take();
		assert_consistent(&after);
		ck_assert_uint_eq(after.generation, first + i);
		ck_assert_int_ge(after.wall_ns - before.wall_ns, step_ns);
		ck_assert_int_le(after.wall_ns - before.wall_ns, step_ns + MS);
	}
}
END_TEST

static void assert_parked(void)
{
	struct ct_snapshot snap;
	int64_t begun_ns = sim_mono();

	ck_assert_int_eq(ct_page.mono_ns, 0);
	snap = take();
	assert_live(&snap, begun_ns);
}

/* From live to cached and back. */
START_TEST(engaged_and_parked)
{
	begin_publisher();
	for (int i = 0; i < 200; i++) {
		assert_parked();
		publish();
		take();
		sim_pass(random_in(0, MS));
		take();
		publish();
		take();
		sim_pass(random_in(0, MS));
		publisher_park();
		if (i % 4 == 0)
			sim.wall_offset_ns += SEC;
		assert_parked();
		sim_pass(random_in(0, MS));
	}
}
END_TEST

/* While one takes one, another publishes, parks, sets the clock. */
static void publish_meanwhile(void)
{
	publish();
	take();
}

static void park_meanwhile(void)
{
	publisher_park();
	take();
}

static void park_and_publish_meanwhile(void)
{
	publisher_park();
	take();
	publish();
	take();
}

static void publish_and_park_meanwhile(void)
{
	publish();
	take();
	publisher_park();
	take();
}

static void set_meanwhile(void)
{
	sim.wall_offset_ns += HOUR;
}

static void take_meanwhile(void)
{
	take();
}

static void (*const others[])(void) = { publish_meanwhile, park_meanwhile,
	park_and_publish_meanwhile, publish_and_park_meanwhile, set_meanwhile,
	take_meanwhile };

/* It may be of before the step or of after, not of both. */
static void assert_of_either(const struct ct_snapshot *snap, int64_t old_ns)
{
	int64_t offset_ns = snap->wall_ns - snap->mono_ns;

	ck_assert(magnitude(offset_ns - old_ns) <= LOOK_NS ||
		  magnitude(offset_ns - sim.wall_offset_ns) <= LOOK_NS);
}

START_TEST(taken_meanwhile)
{
	for (int64_t nth = 1;; nth++) {
		struct ct_snapshot snap;
		int64_t old_ns;
		bool yes;

		begin_publisher();
		take();
		if (_i >= LENGTH(others)) {
			publish();
			sim_pass(MS);
		}
		old_ns = sim.wall_offset_ns;
		meanwhile(nth, others[_i % LENGTH(others)]);
		snap = take();
		yes = happened();
		assert_of_either(&snap, old_ns);
		take();
		publish();
		snap = take();
		assert_consistent(&snap);
		if (!yes)
			break;
	}
}
END_TEST

/* While one publishes, parked before or not, others take some. */
START_TEST(published_meanwhile)
{
	for (int64_t nth = 1;; nth++) {
		struct ct_snapshot snap;
		bool yes;

		begin_publisher();
		take();
		if (_i == 1) {
			publish();
			sim_pass(MS);
		}
		meanwhile(nth, take_meanwhile);
		publish();
		yes = happened();
		snap = take();
		assert_consistent(&snap);
		if (!yes)
			break;
	}
}
END_TEST

/* Seconds are rounded down, before 1970 too. */
START_TEST(before_1970)
{
	struct ct_snapshot snap;

	begin();
	sim.wall_offset_ns = -sim_mono() - HOUR - 300 * MS;
	steps_look();
	snap = take();
	ck_assert_int_lt(snap.wall_ns, 0);
	ck_assert_int_eq(snap.wall_s, -3601);
	/* On the second. */
	sim.wall_offset_ns = -sim_mono() - HOUR;
	snap = take();
	ck_assert_int_eq(snap.wall_s, -3600);
}
END_TEST

START_TEST(tai)
{
	static const int64_t seconds[] = { 0, 1, 37, 100 };

	begin();
	sim.preempt_per_mille = 200;
	for (int i = 0; i < 5000; i++) {
		sim.tai_offset_ns = seconds[i % 4] * SEC;
		/* Whole seconds, whatever was held up. */
		ALWAYS(moment_tai_offset_ns() == sim.tai_offset_ns);
	}
}
END_TEST

/* Held up for a second and more in between. */
START_TEST(tai_held_up)
{
	begin();
	sim.slow_ns = 2 * SEC;
	for (int slow = 0; slow < 7; slow++) {
		sim.slow_spends = slow;
		ck_assert_int_eq(moment_tai_offset_ns(), TAI_S * SEC);
	}
}
END_TEST

/* Words without what goes with them, and what goes with no word. */
START_TEST(half_published)
{
	struct ct_snapshot snap;

	begin_publisher();
	handover_engage();
	sim_pass(US);
	snap = take();
	assert_consistent(&snap);
	ck_assert_uint_eq(snap.generation, first);

	publish();
	handover_park();
	sim.wall_offset_ns += HOUR;
	snap = take();
	assert_consistent(&snap);
	ck_assert_uint_eq(snap.generation, first + 1);
}
END_TEST

/* As in the child of a fork. */
START_TEST(page_wiped)
{
	begin_publisher();
	for (int i = 0; i < 100; i++) {
		publish();
		take();
		sim_pass(random_in(0, MS));
		memset(&ct_page, 0, sizeof(ct_page));
		assert_parked();
	}
}
END_TEST

/* The latch: whole publications, one after the other. */
START_TEST(latched)
{
	struct ct_snapshot snap;

	begin();
	handover_engage();
	for (int64_t i = 1; i < 100; i++) {
		struct moment moment = {
			.wall_offset_ns = i * SEC,
			.tai_offset_ns = i % 40 * SEC,
			.generation = (uint64_t)i,
		};

		moment_publish(&moment);
		snap = take();
		ck_assert_int_eq(snap.wall_ns - snap.mono_ns, i * SEC);
		ck_assert_int_eq(snap.tai_offset_s, i % 40);
		ck_assert_uint_eq(snap.generation, (uint64_t)i);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("moment");
	int all = LENGTH(others);

	add_situation(suite, "live", live);
	add_situation(suite, "live, clock is set", live_and_set);
	add_situation(suite, "cached", cached);
	add_situation(suite, "cached, clock is set", cached_and_set);
	add_situation(suite, "engaged and parked", engaged_and_parked);
	add_table(suite, "others meanwhile", taken_meanwhile, 2 * all);
	add_table(suite, "while others publish", published_meanwhile, 2);
	add_situation(suite, "before 1970", before_1970);
	add_situation(suite, "TAI", tai);
	add_situation(suite, "TAI, held up", tai_held_up);
	add_situation(suite, "half published", half_published);
	add_situation(suite, "page wiped", page_wiped);
	add_situation(suite, "latched", latched);
	return run_suite(suite);
}
