/* SPDX-License-Identifier: MIT */
/* The first rate of a counter, and the watch over it: turned by hand. */
#include "counters.h"

#include "trust.h"

#define GHZ UINT64_C(1000000000)
#define NARROW_NS 60
#define HOUR (3600 * SEC)

__extension__ typedef unsigned __int128 u128;

/* A counter that runs at hz from `base`, on a clock that is turned by hand. */
static struct {
	int64_t now_ns;
	uint64_t base;
	int64_t base_ns;
	uint64_t hz;
	uint64_t mask;
} turned;

static struct calibration cal;
static struct trust trust;
static uint64_t hz;
static int64_t error_ppb;

static uint64_t cycles_now(void)
{
	u128 passed = (u128)(uint64_t)(turned.now_ns - turned.base_ns);

	return (turned.base + (uint64_t)(passed * turned.hz / GHZ)) &
	       turned.mask;
}

static void counter_is(uint64_t cycles, uint64_t rate, uint64_t mask)
{
	turned.base = cycles;
	turned.base_ns = turned.now_ns;
	turned.hz = rate;
	turned.mask = mask;
}

/* From now on, without a jump. */
static void rate_becomes(uint64_t rate)
{
	counter_is(cycles_now(), rate, turned.mask);
}

/* Of that width, the counter read at `at_ns` in it. */
static struct trust_sample sample_at(int64_t width_ns, int64_t at_ns)
{
	struct trust_sample sample;

	sample.raw_ns = turned.now_ns;
	turned.now_ns += at_ns;
	sample.cycles = cycles_now();
	turned.now_ns += width_ns - at_ns;
	sample.raw_after_ns = turned.now_ns;
	return sample;
}

static bool calibrate(struct trust_sample sample)
{
	return calibration_add(&cal, &sample, &hz, &error_ppb);
}

static int64_t ppb_off(uint64_t measured, uint64_t right)
{
	return (int64_t)(measured - right) * SEC / (int64_t)right;
}

static void begin_calibration(uint64_t rate, uint64_t mask)
{
	turned.now_ns = 1000 * SEC;
	counter_is(UINT64_C(123456789) & mask, rate, mask);
	calibration_init(&cal, mask);
}

/* Takes samples each millisecond until the rate is known; in how long? */
static int64_t calibrate_within(int64_t limit_ns)
{
	int64_t begin_ns = turned.now_ns;

	while (!calibrate(sample_at(NARROW_NS, NARROW_NS / 3))) {
		turned.now_ns += MS;
		ALWAYS(turned.now_ns - begin_ns < limit_ns);
	}
	return turned.now_ns - begin_ns;
}

static void assert_rate(uint64_t right)
{
	int64_t off_ppb = ppb_off(hz, right);

	ck_assert_int_le(error_ppb, CALIBRATION_ERROR_PPB);
	ck_assert_int_ge(error_ppb, 0);
	/* One cycle per window is the resolution of a slow counter. */
	ck_assert_int_le(off_ppb, error_ppb + 1);
	ck_assert_int_ge(off_ppb, -error_ppb - 1);
}

START_TEST(clean_samples)
{
	begin_calibration(2100000000, UINT64_MAX);
	ck_assert_int_ge(calibrate_within(20 * MS), CALIBRATION_MIN_NS);
	assert_rate(2100000000);
}
END_TEST

/* However close the samples are. */
START_TEST(samples_in_a_row)
{
	begin_calibration(2100000000, UINT64_MAX);
	while (!calibrate(sample_at(NARROW_NS, 0)))
		ALWAYS(turned.now_ns < 1020 * SEC);
	ck_assert_int_ge(turned.now_ns - 1000 * SEC, CALIBRATION_MIN_NS);
	assert_rate(2100000000);
}
END_TEST

/* A clock of coarse grain: both its reads are the same, and say nothing. */
START_TEST(samples_without_width)
{
	begin_calibration(2100000000, UINT64_MAX);
	while (!calibrate(sample_at(0, 0)))
		turned.now_ns += 100 * US;
	ck_assert_int_ge(turned.now_ns - 1000 * SEC, CALIBRATION_MIN_NS);
	assert_rate(2100000000);
}
END_TEST

/* And however far apart: a program may refresh once a minute. */
START_TEST(samples_far_apart)
{
	begin_calibration(2100000000, UINT64_MAX);
	ck_assert(!calibrate(sample_at(NARROW_NS, 20)));
	turned.now_ns += HOUR;
	ck_assert(calibrate(sample_at(NARROW_NS, 20)));
	assert_rate(2100000000);
}
END_TEST

/* 5 ms wide, at each place of ten; the counter read early, in the middle or
 * late in it. */
START_TEST(preempted)
{
	for (int place = 0; place < 10; place++)
		for (int64_t at_ns = 0; at_ns <= 5 * MS; at_ns += 2500 * US) {
			begin_calibration(2100000000, UINT64_MAX);
			for (int i = 0; i < place; i++) {
				if (calibrate(sample_at(NARROW_NS, 20)))
					break;
				turned.now_ns += MS / 10;
			}
			ck_assert(!calibrate(sample_at(5 * MS, at_ns)));
			calibrate_within(30 * MS);
			assert_rate(2100000000);
		}
}
END_TEST

START_TEST(mostly_preempted)
{
	begin_calibration(2100000000, UINT64_MAX);
	for (int i = 0; i < 500; i++) {
		if (calibrate(sample_at(i % 7 == 3 ? NARROW_NS : 5 * MS,
			    i % 2 ? 10 : NARROW_NS))) {
			assert_rate(2100000000);
			return;
		}
		turned.now_ns += MS;
	}
	ck_abort_msg("never calibrated");
}
END_TEST

/* All are wide: a slow clock. It takes longer, and is right. */
START_TEST(slow_clock)
{
	begin_calibration(100000000, UINT64_MAX);
	while (!calibrate(sample_at(10 * US, 5 * US))) {
		turned.now_ns += MS;
		ck_assert_int_lt(turned.now_ns, 1003 * SEC);
	}
	assert_rate(100000000);
}
END_TEST

START_TEST(counter_goes_back)
{
	begin_calibration(2100000000, UINT64_MAX);
	calibrate(sample_at(NARROW_NS, 20));
	turned.now_ns += 2 * MS;
	calibrate(sample_at(NARROW_NS, 20));
	turned.base -= 2100000; /* by 1 ms */
	/* What was before is forgotten: a whole window more. */
	ck_assert(!calibrate(sample_at(NARROW_NS, 20)));
	ck_assert_int_ge(calibrate_within(20 * MS), CALIBRATION_MIN_NS);
	assert_rate(2100000000);
}
END_TEST

START_TEST(clock_goes_back)
{
	begin_calibration(2100000000, UINT64_MAX);
	calibrate(sample_at(NARROW_NS, 20));
	turned.now_ns += 2 * MS;
	calibrate(sample_at(NARROW_NS, 20));
	turned.now_ns -= MS;
	turned.base_ns -= MS; /* the counter doesn't */
	ck_assert(!calibrate(sample_at(NARROW_NS, 20)));
	ck_assert_int_ge(calibrate_within(20 * MS), CALIBRATION_MIN_NS);
	assert_rate(2100000000);
}
END_TEST

/* The clock goes back within a sample: by a little, and by a lot. */
START_TEST(clock_goes_back_inside)
{
	static const int64_t by_ns[] = { 10, 200, 5 * MS, 50 * MS };
	struct trust_sample sample;

	for (int place = 0; place < 3; place++) {
		begin_calibration(2100000000, UINT64_MAX);
		for (int i = 0; i < place; i++) {
			calibrate(sample_at(NARROW_NS, 20));
			turned.now_ns += MS;
		}
		sample = sample_at(NARROW_NS, 20);
		turned.now_ns = sample.raw_ns - by_ns[_i];
		turned.base_ns -= NARROW_NS + by_ns[_i];
		sample.raw_after_ns = turned.now_ns;
		ck_assert(!calibrate(sample));
		turned.now_ns += MS;
		calibrate_within(30 * MS);
		ck_assert_int_ge(error_ppb, 0);
		ck_assert_int_le(error_ppb, CALIBRATION_ERROR_PPB);
		ck_assert_int_le(llabs(ppb_off(hz, 2100000000)),
			CALIBRATION_ERROR_PPB);
	}
}
END_TEST

START_TEST(stands_still)
{
	begin_calibration(0, UINT64_MAX);
	for (int i = 0; i < 10000; i++) {
		ALWAYS(!calibrate(sample_at(NARROW_NS, 20)));
		turned.now_ns += MS;
	}
}
END_TEST

START_TEST(wraps_meanwhile)
{
	begin_calibration(100000000, UINT32_MAX);
	counter_is(UINT32_MAX - 100000, 100000000, UINT32_MAX); /* in 1 ms */
	calibrate_within(30 * MS);
	ck_assert_uint_lt(cycles_now(), 100000000);
	assert_rate(100000000);
}
END_TEST

/* Whatever comes; signed overflow and division by zero are the sanitizer's to
 * find, which is why times stay below 73 years. */
START_TEST(anything)
{
	const int64_t range = INT64_MAX >> 2;
	uint64_t state = 88172645463325252;
	struct trust_sample sample;
	uint64_t bits;

	for (int i = 0; i < 2000000; i++) {
		if (i % 50 == 0) {
			bits = random_next(&state);
			calibration_init(&cal, UINT64_MAX >> (bits % 64));
			trust_init(&trust, UINT64_MAX >> (bits % 64),
				1 + (random_next(&state) >> (bits >> 8) % 64),
				0, &(struct trust_sample){ 0, bits, 0 });
		}
		bits = random_next(&state);
		sample.raw_ns =
			(int64_t)(random_next(&state) & (uint64_t)range) >>
			bits % 60;
		sample.raw_after_ns =
			(int64_t)(random_next(&state) & (uint64_t)range) >>
			(bits >> 8) % 60;
		sample.cycles = random_next(&state) >> (bits >> 16) % 64;
		if (calibrate(sample))
			ALWAYS(hz > 0);
		trust_check(&trust, &sample);
		if (bits & 1)
			trust.verdict = TRUST_GOOD;
	}
}
END_TEST

/* Under watch. */
static void begin_watch(uint64_t rate, uint64_t mask)
{
	struct trust_sample sample;

	turned.now_ns = 1000 * SEC;
	counter_is(UINT64_C(9876543210) & mask, rate, mask);
	sample = sample_at(NARROW_NS, 20);
	trust_init(&trust, mask, rate, 0, &sample);
}

static enum trust_verdict judge_after(int64_t ns)
{
	struct trust_sample sample;

	turned.now_ns += ns;
	sample = sample_at(NARROW_NS, 20);
	return trust_check(&trust, &sample);
}

/* The rate and width of each counter that is watched. */
static const struct counter {
	uint64_t hz;
	uint64_t mask;
} counters[] = {
	{ 2100000000, UINT64_MAX },
	{ 100000000, UINT32_MAX },
	{ 14318180, UINT32_MAX },
	{ 3579545, (1U << 24) - 1 },
	{ 1000000000, UINT64_MAX },
};

static void begin_watch_of(int i)
{
	begin_watch(counters[i].hz, counters[i].mask);
}

START_TEST(good_for_hours)
{
	begin_watch_of(_i);
	for (int64_t ns = 0; ns < 6 * HOUR; ns += 100 * MS)
		ALWAYS(judge_after(100 * MS) == TRUST_GOOD);
	/* Each look by itself, too: a tick apart, and two in a row. */
	for (int i = 0; i < 10000; i++)
		ALWAYS(judge_after(i % 3 * MS / 2) == TRUST_GOOD);
}
END_TEST

START_TEST(stood)
{
	begin_watch_of(_i);
	ck_assert_int_eq(judge_after(100 * MS), TRUST_GOOD);
	counter_is(trust.last.cycles, 0, counters[_i].mask);
	ck_assert_int_eq(judge_after(100 * MS), TRUST_STOOD);
	ck_assert_int_ge(trust.within_ns, 100 * MS);
	ck_assert_int_le(trust.within_ns, 101 * MS);
	/* It stays so, if it goes on. */
	rate_becomes(counters[_i].hz);
	ck_assert_int_eq(judge_after(100 * MS), TRUST_STOOD);
}
END_TEST

START_TEST(ran_backwards)
{
	begin_watch_of(_i);
	ck_assert_int_eq(judge_after(100 * MS), TRUST_GOOD);
	/* By 20 ms in 100. */
	turned.base -= counters[_i].hz / 1000 * 120;
	ck_assert_int_eq(judge_after(100 * MS), TRUST_BACKWARDS);
}
END_TEST

START_TEST(reset_to_zero)
{
	begin_watch(2100000000, UINT64_MAX);
	counter_is(0, 2100000000, UINT64_MAX);
	ck_assert_int_eq(judge_after(100 * MS), TRUST_BACKWARDS);

	/* Of 32 bits, seen from anywhere: backwards, or a jump. */
	for (uint64_t from = 1; from < 32; from++) {
		begin_watch(100000000, UINT32_MAX);
		counter_is(from << 27, 100000000, UINT32_MAX);
		trust_excuse(&trust, &(struct trust_sample){ turned.now_ns,
			cycles_now(), turned.now_ns });
		counter_is(0, 100000000, UINT32_MAX);
		ck_assert_int_eq(judge_after(100 * MS),
			from <= 16 ? TRUST_BACKWARDS : TRUST_PARTED);
	}
}
END_TEST

START_TEST(jumped_ahead)
{
	begin_watch_of(_i);
	turned.base += counters[_i].hz / 1000; /* 1 ms */
	ck_assert_int_eq(judge_after(100 * MS), TRUST_PARTED);
	ck_assert_int_ge(trust.off_ns, MS - US);
	ck_assert_int_le(trust.off_ns, MS + US);
}
END_TEST

START_TEST(jumped_back_a_little)
{
	begin_watch_of(_i);
	turned.base -= counters[_i].hz / 1000;
	ck_assert_int_eq(judge_after(100 * MS), TRUST_PARTED);
	ck_assert_int_ge(trust.off_ns, -MS - US);
	ck_assert_int_le(trust.off_ns, -MS + US);
}
END_TEST

START_TEST(rate_changed)
{
	begin_watch_of(_i);
	rate_becomes(counters[_i].hz + counters[_i].hz / 1000);
	ck_assert_int_eq(judge_after(100 * MS), TRUST_PARTED);
	ck_assert_int_gt(trust.off_ns, 99 * US);
	ck_assert_int_lt(trust.off_ns, 101 * US);

	begin_watch_of(_i);
	rate_becomes(counters[_i].hz - counters[_i].hz / 1000);
	ck_assert_int_eq(judge_after(100 * MS), TRUST_PARTED);
	ck_assert_int_lt(trust.off_ns, -99 * US);
}
END_TEST

/* As where CPUID described the host to a guest. */
START_TEST(rate_2_8_times)
{
	begin_watch_of(_i);
	rate_becomes(counters[_i].hz / 10 * 28);
	ck_assert_int_eq(judge_after(100 * MS), TRUST_PARTED);
	ck_assert_int_gt(trust.off_ns, 179 * MS);

	begin_watch_of(_i);
	rate_becomes(counters[_i].hz / 28 * 10);
	ck_assert_int_eq(judge_after(100 * MS), TRUST_PARTED);
	ck_assert_int_lt(trust.off_ns, -60 * MS);
}
END_TEST

START_TEST(drift)
{
	begin_watch_of(_i);
	rate_becomes(counters[_i].hz + counters[_i].hz / 10000);
	for (int i = 0; i < 36000; i++)
		ALWAYS(judge_after(100 * MS) == TRUST_GOOD);
	/* In one look, of seconds, as well. */
	ck_assert_int_eq(judge_after(2 * SEC), TRUST_GOOD);
}
END_TEST

START_TEST(wide_samples)
{
	static const int64_t widths_ns[] = { 60, 5 * MS, 300, 80 * MS, 20 * US };
	uint64_t state = 1234567;
	struct trust_sample sample;
	int64_t width_ns;

	begin_watch_of(_i);
	for (int i = 0; i < 20000; i++) {
		turned.now_ns += MS;
		width_ns = widths_ns[random_next(&state) % 5];
		sample = sample_at(width_ns,
			(int64_t)(random_next(&state) % (uint64_t)width_ns));
		ALWAYS(trust_check(&trust, &sample) == TRUST_GOOD);
	}
}
END_TEST

START_TEST(suspended)
{
	struct trust_sample sample;

	begin_watch_of(_i);
	ck_assert_int_eq(judge_after(100 * MS), TRUST_GOOD);
	counter_is(0, counters[_i].hz, counters[_i].mask);
	sample = sample_at(NARROW_NS, 20);
	trust_excuse(&trust, &sample);
	for (int i = 0; i < 100; i++)
		ck_assert_int_eq(judge_after(100 * MS), TRUST_GOOD);
	/* And no more than that is forgiven. */
	turned.base += counters[_i].hz;
	ck_assert_int_eq(judge_after(100 * MS), TRUST_PARTED);
}
END_TEST

/* It may have wrapped: nothing can be said, and what follows is judged. */
START_TEST(long_gap)
{
	const struct counter *c = &counters[1];
	int64_t half_ns = (int64_t)(c->mask / 2 / (c->hz / 1000)) * MS;

	for (int wraps = 0; wraps < 5; wraps++) {
		begin_watch_of(1);
		turned.base += 12345; /* 123 us */
		ck_assert_int_eq(judge_after(half_ns + wraps * half_ns + MS),
			TRUST_GOOD);
		ck_assert_int_eq(judge_after(100 * MS), TRUST_GOOD);
		turned.base += 12345;
		ck_assert_int_eq(judge_after(100 * MS), TRUST_PARTED);
	}

	/* Just below, it is. */
	begin_watch_of(1);
	rate_becomes(c->hz / 2);
	ck_assert_int_eq(judge_after(half_ns - MS), TRUST_PARTED);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("trust");
	int all = LENGTH(counters);

	add_situation(suite, "rate: clean samples", clean_samples);
	add_situation(suite, "rate: samples in a row", samples_in_a_row);
	add_situation(suite, "rate: samples without width",
		samples_without_width);
	add_situation(suite, "rate: samples far apart", samples_far_apart);
	add_situation(suite, "rate: a sample pre-empted", preempted);
	add_situation(suite, "rate: most pre-empted", mostly_preempted);
	add_situation(suite, "rate: slow clock", slow_clock);
	add_situation(suite, "rate: counter goes back", counter_goes_back);
	add_situation(suite, "rate: clock goes back", clock_goes_back);
	add_table(suite, "rate: clock goes back inside a sample",
		clock_goes_back_inside, 4);
	add_situation(suite, "rate: counter stands still", stands_still);
	add_situation(suite, "rate: counter wraps", wraps_meanwhile);
	add_situation(suite, "anything at all", anything);
	add_table(suite, "watch: good for hours", good_for_hours, all);
	add_table(suite, "watch: stands still", stood, all);
	add_table(suite, "watch: runs backwards", ran_backwards, all);
	add_situation(suite, "watch: reset to zero", reset_to_zero);
	add_table(suite, "watch: jumps ahead", jumped_ahead, all);
	add_table(suite, "watch: jumps back a little", jumped_back_a_little,
		all);
	add_table(suite, "watch: rate changes by 1000 ppm", rate_changed, all);
	add_table(suite, "watch: rate changes 2.8 times", rate_2_8_times, all);
	add_table(suite, "watch: drift of 100 ppm", drift, all);
	add_table(suite, "watch: wide samples", wide_samples, all);
	add_table(suite, "watch: suspend", suspended, all);
	add_situation(suite, "watch: gap of half the range", long_gap);
	return run_suite(suite);
}
