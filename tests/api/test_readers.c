/* SPDX-License-Identifier: MIT */
/*
 * Each reader, inline and as the function that other languages call: both
 * tell the same, and the truth.
 */
#include <dlfcn.h>

#include "api.h"
#include "readers.h"

struct reader {
	const char *name;
	int64_t (*inline_read)(void);
	const int64_t *word;
	clockid_t clock;
	int64_t unit_ns;
};

/* A wrapper each: the address of a reader is that of the function. */
#define WRAPPER(name, word, clock, unit_ns) \
	static int64_t inline_##name(void)  \
	{                                   \
		return name();              \
	}
READERS(WRAPPER)

#define READER(name, word, clock, unit_ns) \
	{ #name, inline_##name, &ct_page.word, clock, unit_ns },
static const struct reader readers[] = { READERS(READER) };

/* ISO C knows no way from a void * to a function. */
static int64_t call(const char *name)
{
	void *found = dlsym(RTLD_DEFAULT, name);
	int64_t (*function)(void);

	ck_assert_msg(found != NULL, "%s", name);
	memcpy(&function, &found, sizeof(function));
	return function();
}

static void assert_between(const struct reader *reader, int64_t value,
	int64_t before_ns, int64_t after_ns)
{
	ck_assert_msg(value >= before_ns / reader->unit_ns &&
			      value <= after_ns / reader->unit_ns,
		"%s: %lld not in %lld..%lld", reader->name, (long long)value,
		(long long)(before_ns / reader->unit_ns),
		(long long)(after_ns / reader->unit_ns));
}

START_TEST(everything_is_exported)
{
	static const char *const names[] = { "ct_page", "ct_read_slow",
		"ct_start", "ct_stop", "ct_refresh", "ct_age_ns", "ct_status",
		"ct_status_text", "ct_version", "ct_generation",
		"ct_generation_slow", "ct_precise_ns", "ct_precise_mono_ns",
		"ct_precise_ordered_ns", "ct_precise_mono_ordered_ns",
		"ct_precise_slow", "ct_snapshot", "ct_bounds", "ct_on_step",
		"ct_now_ms_fresh", "ct_mono_ms_fresh" };

	for (int i = 0; i < COUNT(names); i++)
		ck_assert_msg(
			dlsym(RTLD_DEFAULT, names[i]) != NULL, "%s", names[i]);
	for (int i = 0; i < COUNT(readers); i++)
		ck_assert_msg(dlsym(RTLD_DEFAULT, readers[i].name) != NULL,
			"%s", readers[i].name);
	ck_assert_str_eq(ct_version(), CT_VERSION);
}
END_TEST

static void read_live(const struct reader *reader)
{
	int64_t before_ns = clock_ns(reader->clock);
	int64_t inline_value = reader->inline_read();
	int64_t value = call(reader->name);
	int64_t after_ns = clock_ns(reader->clock);

	assert_between(reader, inline_value, before_ns, after_ns);
	assert_between(reader, value, before_ns, after_ns);
	ck_assert_int_ge(value, inline_value);
	ck_assert_int_eq(*reader->word, 0);
}

START_TEST(live)
{
	ck_assert_int_eq(start_mode(CT_MODE_OFF, 0), 0);
	for (int round = 0; round < 100; round++)
		read_live(&readers[_i]);
}
END_TEST

/* The words stand still, so that both must tell exactly the same. */
START_TEST(cached)
{
	const struct reader *reader = &readers[_i];
	int64_t before_ns, after_ns;

	ck_assert_int_eq(start_mode(CT_MODE_MANUAL, 0), 0);
	for (int round = 0; round < 100; round++) {
		before_ns = clock_ns(reader->clock);
		ct_refresh();
		after_ns = clock_ns(reader->clock);
		ck_assert_int_gt(*reader->word, 0);
		ck_assert_int_eq(reader->inline_read(), *reader->word);
		ck_assert_int_eq(call(reader->name), *reader->word);
		/* Boot is never ahead, but may be behind by a clock read that
		 * was interrupted. */
		if (reader->clock == CLOCK_BOOTTIME)
			before_ns -= 100 * MS;
		/* The line may lag the clock by a slewed error. */
		assert_between(
			reader, *reader->word, before_ns - 200 * US, after_ns);
	}
}
END_TEST

/* What a word holds is what is told, no more arithmetic. */
START_TEST(whatever_is_published)
{
	const struct reader *reader = &readers[_i];
	int64_t *word = (int64_t *)(uintptr_t)reader->word;

	ck_assert_int_eq(start_mode(CT_MODE_OFF, 0), 0);
	*word = 1;
	ck_assert_int_eq(reader->inline_read(), 1);
	ck_assert_int_eq(call(reader->name), 1);
	*word = INT64_MAX;
	ck_assert_int_eq(reader->inline_read(), INT64_MAX);
	ck_assert_int_eq(call(reader->name), INT64_MAX);
	*word = 0;
	read_live(reader);
}
END_TEST

START_TEST(double_word)
{
	double number;

	ck_assert_int_eq(start_mode(CT_MODE_MANUAL, 0), 0);
	ct_refresh();
	memcpy(&number, &ct_page.wall_ms_f64, sizeof(number));
	ck_assert(number == (double)ct_page.wall_ms);
	ck_assert_int_eq(
		ct_read_slow(CT_WORD_WALL_MS_F64), ct_page.wall_ms_f64);
}
END_TEST

/* Each clock's words are of one publication here: they must fit. */
START_TEST(units_fit)
{
	ck_assert_int_eq(start_mode(CT_MODE_MANUAL, 0), 0);
	ct_refresh();
	ck_assert_int_eq(ct_now_us(), ct_now_ns() / 1000);
	ck_assert_int_eq(ct_now_ms(), ct_now_us() / 1000);
	ck_assert_int_eq(ct_now_s(), ct_now_ms() / 1000);
	ck_assert_int_eq(ct_mono_us(), ct_mono_ns() / 1000);
	ck_assert_int_eq(ct_mono_ms(), ct_mono_us() / 1000);
}
END_TEST

/* Live, cached and live again: what is monotonic stays so. */
START_TEST(never_back)
{
	static const enum ct_mode modes[] = { CT_MODE_TICK, CT_MODE_MANUAL,
		CT_MODE_OFF };
	const struct reader *reader = &readers[_i];
	int64_t last = 0, value;

	for (int round = 0; round < 60; round++) {
		ck_assert_int_eq(start_mode(modes[round % 3], 50 * US), 0);
		for (int i = 0; i < 2000; i++) {
			if (i % 100 == 0)
				ct_refresh();
			value = i % 2 == 0 ? reader->inline_read()
					   : call(reader->name);
			if (value < last && reader->clock != CLOCK_REALTIME)
				ck_abort_msg("%s: %lld after %lld",
					reader->name, (long long)value,
					(long long)last);
			last = value;
		}
	}
	ct_stop();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("readers");

	add(suite, "exported", everything_is_exported, 1);
	add(suite, "live", live, COUNT(readers));
	add(suite, "cached", cached, COUNT(readers));
	add(suite, "whatever is published", whatever_is_published,
		COUNT(readers));
	add(suite, "double", double_word, 1);
	add(suite, "units", units_fit, 1);
	add(suite, "never back", never_back, COUNT(readers));
	return run_suite(suite);
}
