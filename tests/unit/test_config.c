/* SPDX-License-Identifier: MIT */
/* What the environment and a struct ct_config may say, and what they mean. */
#include <errno.h>
#include <locale.h>
#include <string.h>

#include "config.h"
#include "suite.h"

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))

static const struct duration {
	const char *text;
	int64_t ns; /* or -errno */
} durations[] = {
	{ "250us", 250000 },
	{ "1ms", 1000000 },
	{ "0.5ms", 500000 },
	{ "1s", 1000000000 },
	{ "50us", 50000 },
	{ "0.05ms", 50000 },
	{ "0.00005s", 50000 },
	{ "50.001us", 50001 },
	{ "1.5ms", 1500000 },
	{ "1.0000001ms", 1000000 },
	{ "0.999999999s", 999999999 },
	{ "001ms", 1000000 },
	{ "1000000us", 1000000000 },
	{ "1000ms", 1000000000 },
	{ "49us", -ERANGE },
	{ "49.999us", -ERANGE },
	{ "0ms", -ERANGE },
	{ "0us", -ERANGE },
	{ "1.001s", -ERANGE },
	{ "1001ms", -ERANGE },
	{ "1000001us", -ERANGE },
	{ "999999999s", -ERANGE },
	{ "99999999999s", -ERANGE },
	{ "99999999999999999999999999999999s", -ERANGE },
	{ "-1", -EINVAL },
	{ "-1ms", -EINVAL },
	{ "+1ms", -EINVAL },
	{ "abc", -EINVAL },
	{ "1e9", -EINVAL },
	{ "1e3us", -EINVAL },
	{ "0x1ms", -EINVAL },
	{ "", -EINVAL },
	{ " 1ms", -EINVAL },
	{ "1ms ", -EINVAL },
	{ "1 ms", -EINVAL },
	{ "1ms\n", -EINVAL },
	{ ".5ms", -EINVAL },
	{ "5.ms", -EINVAL },
	{ "1..5ms", -EINVAL },
	{ "1.5.5ms", -EINVAL },
	{ "0,5ms", -EINVAL },
	{ "1m", -EINVAL },
	{ "1", -EINVAL },
	{ "1000", -EINVAL },
	{ "1MS", -EINVAL },
	{ "1Ms", -EINVAL },
	{ "100000ns", -EINVAL },
	{ "1min", -EINVAL },
	{ "1msec", -EINVAL },
	{ "ms", -EINVAL },
	{ "nan", -EINVAL },
	{ "inf", -EINVAL },
	{ "\xc2\xb5s", -EINVAL },
	{ "1\xff", -EINVAL },
};

START_TEST(a_duration)
{
	const struct duration *duration = &durations[_i];

	ck_assert_msg(config_parse_tick(duration->text) == duration->ns,
		"\"%s\" is %lld", duration->text,
		(long long)config_parse_tick(duration->text));
}
END_TEST

START_TEST(every_tick_in_range)
{
	char text[32];

	for (int us = 50; us <= 1000000; us += us < 2000 ? 1 : 997) {
		snprintf(text, sizeof(text), "%dus", us);
		if (config_parse_tick(text) != us * INT64_C(1000))
			ck_abort_msg("%s", text);
		snprintf(text, sizeof(text), "%d.%03dms", us / 1000, us % 1000);
		if (config_parse_tick(text) != us * INT64_C(1000))
			ck_abort_msg("%s", text);
		snprintf(text, sizeof(text), "%d.%06ds", us / 1000000,
			us % 1000000);
		if (config_parse_tick(text) != us * INT64_C(1000))
			ck_abort_msg("%s", text);
	}
}
END_TEST

/* Not installed everywhere; the test is then an empty one. */
START_TEST(decimal_comma)
{
	static const char *const names[] = { "de_DE.UTF-8", "de_DE.utf8",
		"de_DE", "fr_FR.UTF-8", "ru_RU.UTF-8" };
	int i = 0;

	while (i < COUNT(names) && setlocale(LC_ALL, names[i]) == NULL)
		i++;
	if (i == COUNT(names)) {
		printf("# no locale with a decimal comma here\n");
		return;
	}
	ck_assert_str_eq(localeconv()->decimal_point, ",");
	ck_assert_int_eq(config_parse_tick("0.5ms"), 500000);
	ck_assert_int_eq(config_parse_tick("0,5ms"), -EINVAL);
}
END_TEST

static struct config config;
static char error[400];

static void unset(void)
{
	unsetenv("CT_TICK");
	unsetenv("CT_BACKEND");
	memset(&config, 0x55, sizeof(config));
	memset(error, 'x', sizeof(error));
}

static unsigned int read_it(void)
{
	return config_from_environment(&config, error, sizeof(error));
}

static void assert_default(void)
{
	ck_assert_int_eq(config.mode, CT_MODE_TICK);
	ck_assert_int_eq(config.tick_ns, CT_TICK_DEFAULT_NS);
	ck_assert_str_eq(config.backend, "auto");
	ck_assert(!config.has_user);
}

static void assert_told(const char *part)
{
	ck_assert_msg(
		strstr(error, part) != NULL, "no '%s' in '%s'", part, error);
}

static void assert_printable(void)
{
	for (size_t i = 0; error[i] != '\0'; i++)
		ck_assert(error[i] >= ' ' && error[i] <= '~');
}

START_TEST(nothing_set)
{
	ck_assert_uint_eq(read_it(), 0);
	assert_default();
	ck_assert_str_eq(error, "");
}
END_TEST

static const struct tick_value {
	const char *text;
	enum ct_mode mode;
	int64_t tick_ns;
} tick_values[] = {
	{ "auto", CT_MODE_TICK, CT_TICK_DEFAULT_NS },
	{ "off", CT_MODE_OFF, CT_TICK_DEFAULT_NS },
	{ "manual", CT_MODE_MANUAL, CT_TICK_DEFAULT_NS },
	{ "250us", CT_MODE_TICK, 250000 },
	{ "0.5ms", CT_MODE_TICK, 500000 },
	{ "1s", CT_MODE_TICK, 1000000000 },
};

START_TEST(good_tick)
{
	setenv("CT_TICK", tick_values[_i].text, 1);
	ck_assert_uint_eq(read_it(), 0);
	ck_assert_str_eq(error, "");
	ck_assert_int_eq(config.mode, tick_values[_i].mode);
	ck_assert_int_eq(config.tick_ns, tick_values[_i].tick_ns);
}
END_TEST

static const struct {
	const char *text, *why;
} bad_ticks[] = {
	{ "49us", "out of range" },
	{ "1.001s", "out of range" },
	{ "99999999999s", "out of range" },
	{ "", "not a tick" },
	{ "fast", "not a tick" },
	{ "-1ms", "not a tick" },
	{ "1", "not a tick" },
	{ "Off", "not a tick" },
	{ "off ", "not a tick" },
	{ "%s%n", "not a tick" },
};

START_TEST(bad_tick)
{
	char quoted[64];

	setenv("CT_TICK", bad_ticks[_i].text, 1);
	ck_assert_uint_eq(read_it(), CONFIG_BAD_TICK);
	assert_default();
	/* Which variable, which value, why, what would do, what is used. */
	snprintf(quoted, sizeof(quoted), "CT_TICK=\"%s\"", bad_ticks[_i].text);
	assert_told(quoted);
	assert_told(bad_ticks[_i].why);
	assert_told("50us to 1s");
	assert_told("using 1ms");
}
END_TEST

START_TEST(good_backend)
{
	static const char *const names[] = { "auto", "tsc", "realtime", "hpet",
		"coarse" };

	for (int i = 0; i < COUNT(names); i++) {
		setenv("CT_BACKEND", names[i], 1);
		ck_assert_uint_eq(read_it(), 0);
		ck_assert_str_eq(config.backend, names[i]);
		ck_assert_str_eq(error, "");
	}
}
END_TEST

START_TEST(bad_backend)
{
	static const char *const names[] = { "", "tsx", "realtime ", "REALTIME",
		"coarse,realtime" };
	char quoted[64];

	for (int i = 0; i < COUNT(names); i++) {
		setenv("CT_BACKEND", names[i], 1);
		ck_assert_uint_eq(read_it(), CONFIG_BAD_BACKEND);
		assert_default();
		snprintf(quoted, sizeof(quoted), "CT_BACKEND=\"%s\"", names[i]);
		assert_told(quoted);
		assert_told("auto, tsc, realtime, hpet, coarse");
		assert_told("using auto");
	}
}
END_TEST

START_TEST(one_bad_one_good)
{
	setenv("CT_TICK", "2ms", 1);
	setenv("CT_BACKEND", "nonsense", 1);
	ck_assert_uint_eq(read_it(), CONFIG_BAD_BACKEND);
	ck_assert_int_eq(config.tick_ns, 2000000);

	setenv("CT_TICK", "nonsense", 1);
	setenv("CT_BACKEND", "coarse", 1);
	ck_assert_uint_eq(read_it(), CONFIG_BAD_TICK);
	ck_assert_str_eq(config.backend, "coarse");
	ck_assert_ptr_null(strstr(error, "CT_BACKEND"));
}
END_TEST

START_TEST(both_bad)
{
	char value[128];

	setenv("CT_TICK", "fast", 1);
	setenv("CT_BACKEND", "sundial", 1);
	ck_assert_uint_eq(read_it(), CONFIG_BAD_TICK | CONFIG_BAD_BACKEND);
	assert_default();
	assert_told("CT_TICK=\"fast\"");
	assert_told("; CT_BACKEND=\"sundial\"");

	/* As long as they come: still both, and whole. */
	memset(value, 'a', sizeof(value) - 1);
	value[sizeof(value) - 1] = '\0';
	setenv("CT_TICK", value, 1);
	setenv("CT_BACKEND", value, 1);
	read_it();
	assert_told("CT_BACKEND=\"aaaa");
	assert_told("using 1ms; ");
	ck_assert_str_eq(
		error + strlen(error) - strlen("; using auto"), "; using auto");
}
END_TEST

START_TEST(unprintable_value)
{
	setenv("CT_TICK", "\x1b[31m1\t\nms\x7f\xff", 1);
	setenv("CT_BACKEND", "\xc3\xa4\r", 1);
	ck_assert_uint_eq(read_it(), CONFIG_BAD_TICK | CONFIG_BAD_BACKEND);
	assert_printable();
	assert_told("CT_TICK=\"?[31m1??ms??\"");
	assert_told("CT_BACKEND=\"???\"");
}
END_TEST

START_TEST(endless_value)
{
	static char value[10001];

	for (int c = '1'; c <= 'x'; c += 'x' - '1') {
		memset(value, c, sizeof(value) - 1);
		setenv("CT_TICK", value, 1);
		setenv("CT_BACKEND", value, 1);
		ck_assert_uint_eq(
			read_it(), CONFIG_BAD_TICK | CONFIG_BAD_BACKEND);
		assert_default();
		assert_printable();
		assert_told("...\"");
		assert_told("CT_BACKEND");
	}
}
END_TEST

START_TEST(small_buffer)
{
	char small[8];

	setenv("CT_TICK", "nonsense", 1);
	config_from_environment(&config, small, sizeof(small));
	ck_assert_str_eq(small, "CT_TICK");
}
END_TEST

START_TEST(overruled_by_the_struct)
{
	const unsigned int both = CONFIG_BAD_TICK | CONFIG_BAD_BACKEND;
	const struct ct_clocksource source = { .name = "mine" };
	const struct ct_config none = { .size = sizeof(none) };
	const struct ct_config mode = { .mode = CT_MODE_OFF };
	const struct ct_config tick = { .tick_ns = 1000000 };
	const struct ct_config backend = { .backend = "auto" };
	const struct ct_config user = { .clocksource = &source };

	ck_assert_uint_eq(config_still_bad(both, NULL), both);
	ck_assert_uint_eq(config_still_bad(both, &none), both);
	ck_assert_uint_eq(config_still_bad(both, &mode), CONFIG_BAD_BACKEND);
	ck_assert_uint_eq(config_still_bad(both, &tick), CONFIG_BAD_BACKEND);
	ck_assert_uint_eq(config_still_bad(both, &backend), CONFIG_BAD_TICK);
	ck_assert_uint_eq(config_still_bad(both, &user), CONFIG_BAD_TICK);
	ck_assert_uint_eq(config_still_bad(0, NULL), 0);
}
END_TEST

static struct ct_config given;
static struct ct_clocksource source;

static uint64_t read_counter(void)
{
	return 0;
}

static void make_good(void)
{
	unset();
	read_it();
	memset(&given, 0, sizeof(given));
	given.size = sizeof(given);
	source = (struct ct_clocksource){
		.name = "mine",
		.read = read_counter,
		.mask = UINT64_MAX,
		.hz = 1000000000,
	};
}

static int take(void)
{
	return config_from_struct(&config, &given);
}

/* -EINVAL, and nothing has changed. */
static void assert_refused(void)
{
	struct config before;

	memcpy(&before, &config, sizeof(before));
	ck_assert_int_eq(take(), -EINVAL);
	ck_assert_mem_eq(&before, &config, sizeof(before));
}

static void assert_taken(void)
{
	ck_assert_int_eq(take(), 0);
}

START_TEST(zero_struct)
{
	assert_taken();
	assert_default();
}
END_TEST

START_TEST(modes)
{
	given.mode = CT_MODE_MANUAL;
	assert_taken();
	ck_assert_int_eq(config.mode, CT_MODE_MANUAL);

	given.mode = CT_MODE_OFF;
	assert_taken();
	ck_assert_int_eq(config.mode, CT_MODE_OFF);

	/* No mode of its own: what was there. */
	given.mode = CT_MODE_DEFAULT;
	assert_taken();
	ck_assert_int_eq(config.mode, CT_MODE_OFF);

	given.mode = CT_MODE_TICK;
	given.tick_ns = 2000000;
	assert_taken();
	ck_assert_int_eq(config.mode, CT_MODE_TICK);
	ck_assert_int_eq(config.tick_ns, 2000000);

	/* The library's choice, not the environment's. */
	given.mode = CT_MODE_AUTO;
	given.tick_ns = 0;
	assert_taken();
	assert_default();
}
END_TEST

START_TEST(mode_over_the_environment)
{
	setenv("CT_TICK", "5ms", 1);
	read_it();
	given.mode = CT_MODE_TICK;
	assert_taken();
	ck_assert_int_eq(config.tick_ns, 5000000);

	setenv("CT_TICK", "off", 1);
	read_it();
	assert_taken();
	ck_assert_int_eq(config.mode, CT_MODE_TICK);
	ck_assert_int_eq(config.tick_ns, CT_TICK_DEFAULT_NS);
}
END_TEST

START_TEST(bad_mode)
{
	given.mode = (enum ct_mode)(CT_MODE_OFF + 1);
	assert_refused();
	given.mode = (enum ct_mode)1000;
	assert_refused();
	given.mode = (enum ct_mode) - 1;
	assert_refused();
}
END_TEST

START_TEST(bad_size)
{
	static const size_t sizes[] = { 0, 1, sizeof(size_t),
		sizeof(struct ct_config) - 1, 1 << 20, SIZE_MAX, SIZE_MAX / 2 };

	for (int i = 0; i < COUNT(sizes); i++) {
		given.size = sizes[i];
		assert_refused();
	}
}
END_TEST

START_TEST(larger_struct)
{
	/* From a later release. */
	struct later {
		struct ct_config config;
		int64_t more[4];
	} later = { .config = given };

	later.config.size = sizeof(later);
	later.config.mode = CT_MODE_OFF;
	ck_assert_int_eq(config_from_struct(&config, &later.config), 0);
	ck_assert_int_eq(config.mode, CT_MODE_OFF);

	for (int i = 0; i < 4; i++) {
		later.more[i] = INT64_C(1) << 56;
		later.config.mode = CT_MODE_MANUAL;
		ck_assert_int_eq(
			config_from_struct(&config, &later.config), -EINVAL);
		ck_assert_int_eq(config.mode, CT_MODE_OFF);
		later.more[i] = 0;
	}
}
END_TEST

START_TEST(tick_out_of_range)
{
	static const int64_t ticks[] = { -1, 1, CT_TICK_MIN_NS - 1,
		CT_TICK_MAX_NS + 1, INT64_MAX, INT64_MIN };

	given.mode = CT_MODE_TICK;
	for (int i = 0; i < COUNT(ticks); i++) {
		given.tick_ns = ticks[i];
		assert_refused();
	}
	given.tick_ns = CT_TICK_MIN_NS;
	assert_taken();
	given.tick_ns = CT_TICK_MAX_NS;
	assert_taken();
	ck_assert_int_eq(config.tick_ns, CT_TICK_MAX_NS);
}
END_TEST

START_TEST(backends)
{
	given.backend = "coarse";
	assert_taken();
	ck_assert_str_eq(config.backend, "coarse");
	given.backend = "auto";
	assert_taken();
	given.backend = "sundial";
	assert_refused();
	given.backend = "";
	assert_refused();
	given.backend = "coarse-and-a-name-longer-than-any-there-is";
	assert_refused();
}
END_TEST

START_TEST(user_counter)
{
	given.clocksource = &source;
	assert_taken();
	ck_assert(config.has_user);
	ck_assert_str_eq(config.user_name, "mine");
	ck_assert(config.user.read == read_counter);
	ck_assert_uint_eq(config.user.hz, 1000000000);
	ck_assert_uint_eq(config.user.mask, UINT64_MAX);

	source.name = "fifteen letters";
	assert_taken();
	ck_assert_str_eq(config.user_name, "fifteen letters");
	source.hz = 1000;
	assert_taken();
	source.hz = UINT64_C(1000000000000);
	assert_taken();
}
END_TEST

START_TEST(bad_user_counter)
{
	const struct ct_clocksource good = source;

	given.clocksource = &source;
#define REFUSED(member, value)         \
	do {                           \
		source.member = value; \
		assert_refused();      \
		source = good;         \
	} while (0)
	REFUSED(name, NULL);
	REFUSED(name, "");
	REFUSED(name, "a name too long!"); /* 16 bytes */
	REFUSED(name, "a name that is far too long to be shown anywhere");
	REFUSED(read, NULL);
	REFUSED(hz, 0);
	REFUSED(hz, 999);
	REFUSED(hz, UINT64_C(1000000000001));
	REFUSED(hz, UINT64_MAX);
	REFUSED(mask, 0);
	REFUSED(mask, UINT64_MAX - 1);
	REFUSED(mask, UINT64_C(0xff00));
	REFUSED(mask, UINT64_C(0x100));
	REFUSED(mask, UINT64_C(1) << 63);
#undef REFUSED
	assert_taken();
}
END_TEST

START_TEST(user_counter_and_backend)
{
	given.clocksource = &source;
	given.backend = "realtime";
	assert_refused();
	given.backend = "auto";
	assert_refused();

	/* The environment's back end is no objection. */
	given.backend = NULL;
	setenv("CT_BACKEND", "coarse", 1);
	read_it();
	assert_taken();
	ck_assert(config.has_user);
}
END_TEST

/* One wrap between two ticks can be told, two can't. */
static const struct wrap {
	unsigned int bits;
	uint64_t hz;
	int64_t tick_ns;
	bool good;
} wraps[] = {
	{ 24, 1000000000, 1000000, true }, /* 16.8 ms */
	{ 24, 1000000000, 8000000, true },
	{ 24, 1000000000, 9000000, false },
	{ 24, 1000000000, 17000000, false },
	{ 24, 1000000000, 1000000000, false },
	{ 32, 1000000000, 1000000000, true }, /* 4.3 s */
	{ 32, 14318180, 1000000000, true },   /* 300 s */
	{ 10, 1000, 500000000, true },        /* 1.02 s */
	{ 10, 1000, 600000000, false },
	{ 20, 1000000, 1000000000, false }, /* 1.05 s */
	{ 21, 1000000, 1000000000, true },  /* 2.1 s */
	{ 1, 1000, 50000, true },           /* 1 ms, less a cycle */
	{ 1, 1000, 1000000, false },
	{ 32, 100000000000, 1000000, true }, /* 43 ms */
	{ 32, 100000000000, 1000000000, false },
	{ 36, 100000000000, 100000000, true }, /* 687 ms */
	{ 36, 100000000000, 300000000, true },
	{ 36, 100000000000, 400000000, false },
	{ 39, 1000000000000, 250000000, true }, /* 550 ms */
	{ 40, 1000000000000, 500000000, true }, /* 1.1 s */
	{ 40, 1000000000000, 1000000000, false },
	{ 63, 1000000000000, 1000000000, true },
};

START_TEST(wrap_within_two_ticks)
{
	const struct wrap *wrap = &wraps[_i];

	source.mask = UINT64_MAX >> (64 - wrap->bits);
	source.hz = wrap->hz;
	given.mode = CT_MODE_TICK;
	given.tick_ns = wrap->tick_ns;
	given.clocksource = &source;
	if (wrap->good)
		assert_taken();
	else
		assert_refused();
}
END_TEST

/* What runs already isn't started again. */
START_TEST(the_same_again)
{
	struct config a, b;

	read_it();
	a = config;
	b = config;
	ck_assert(config_equal(&a, &b));
	b.tick_ns = 2000000;
	ck_assert(!config_equal(&a, &b));
	/* A tick without a ticker is no difference. */
	a.mode = b.mode = CT_MODE_MANUAL;
	ck_assert(config_equal(&a, &b));
	b.mode = CT_MODE_OFF;
	ck_assert(!config_equal(&a, &b));
	b = a;
	strcpy(b.backend, "coarse");
	ck_assert(!config_equal(&a, &b));

	given.clocksource = &source;
	config = a;
	assert_taken();
	b = config;
	ck_assert(!config_equal(&a, &b));
	assert_taken();
	ck_assert(config_equal(&config, &b));
	source.hz++;
	assert_taken();
	ck_assert(!config_equal(&config, &b));
	source.hz--;
	source.name = "other";
	assert_taken();
	ck_assert(!config_equal(&config, &b));
}
END_TEST

/* The settings keep no pointer into what the caller gave. */
START_TEST(caller_forgets)
{
	char name[] = "mine";

	source.name = name;
	given.clocksource = &source;
	assert_taken();
	strcpy(name, "gone");
	memset(&source, 0, sizeof(source));
	ck_assert_str_eq(config.user_name, "mine");
	ck_assert_uint_eq(config.user.hz, 1000000000);
	ck_assert_ptr_null(config.user.name);
}
END_TEST

static void add(Suite *suite, const char *situation, const TTest *test, int n)
{
	TCase *tcase = tcase_create(situation);

	tcase_add_checked_fixture(tcase, make_good, NULL);
	tcase_add_loop_test(tcase, test, 0, n);
	suite_add_tcase(suite, tcase);
}

int main(void)
{
	Suite *suite = suite_create("config");

	add(suite, "durations", a_duration, COUNT(durations));
	add(suite, "every tick in range", every_tick_in_range, 1);
	add(suite, "decimal comma", decimal_comma, 1);

	add(suite, "nothing set", nothing_set, 1);
	add(suite, "good tick", good_tick, COUNT(tick_values));
	add(suite, "bad tick", bad_tick, COUNT(bad_ticks));
	add(suite, "good back end", good_backend, 1);
	add(suite, "bad back end", bad_backend, 1);
	add(suite, "one bad, one good", one_bad_one_good, 1);
	add(suite, "both bad", both_bad, 1);
	add(suite, "unprintable value", unprintable_value, 1);
	add(suite, "endless value", endless_value, 1);
	add(suite, "small buffer", small_buffer, 1);
	add(suite, "overruled", overruled_by_the_struct, 1);

	add(suite, "zero struct", zero_struct, 1);
	add(suite, "modes", modes, 1);
	add(suite, "mode over environment", mode_over_the_environment, 1);
	add(suite, "bad mode", bad_mode, 1);
	add(suite, "bad size", bad_size, 1);
	add(suite, "larger struct", larger_struct, 1);
	add(suite, "tick out of range", tick_out_of_range, 1);
	add(suite, "back ends", backends, 1);
	add(suite, "user counter", user_counter, 1);
	add(suite, "bad user counter", bad_user_counter, 1);
	add(suite, "user counter and back end", user_counter_and_backend, 1);
	add(suite, "wrap within two ticks", wrap_within_two_ticks,
		COUNT(wraps));
	add(suite, "the same again", the_same_again, 1);
	add(suite, "caller forgets", caller_forgets, 1);
	return run_suite(suite);
}
