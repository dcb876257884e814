/* SPDX-License-Identifier: MIT */
/* CT_TICK and CT_BACKEND, as a program meets them. */
#include "api.h"

static void assert_told(const char *part)
{
	struct ct_status status = status_now();

	ck_assert_msg(strstr(status.error, part) != NULL, "no '%s' in '%s'",
		part, status.error);
}

static void assert_default_runs(void)
{
	struct ct_status status;

	wait_until_cached();
	status = status_now();
	ck_assert_int_eq(status.mode, CT_MODE_TICK);
	ck_assert_int_eq(status.tick_ns, CT_TICK_DEFAULT_NS);
	ck_assert(is_automatic(status.backend));
	ck_assert_int_ne(ticker_id(), 0);
}

START_TEST(unset)
{
	ck_assert_int_eq(ct_start(NULL), 0);
	assert_default_runs();
	ck_assert_int_eq(status_now().last_error, 0);
	ck_assert_str_eq(status_now().error, "");
}
END_TEST

START_TEST(tick)
{
	setenv("CT_TICK", "0.5ms", 1);
	ct_now_ms();
	wait_until_cached();
	ck_assert_int_eq(status_now().tick_ns, 500 * US);
	ck_assert_int_eq(ct_start(NULL), 0);
}
END_TEST

START_TEST(automatic)
{
	setenv("CT_TICK", "auto", 1);
	setenv("CT_BACKEND", "auto", 1);
	ck_assert_int_eq(ct_start(NULL), 0);
	assert_default_runs();
}
END_TEST

START_TEST(off)
{
	setenv("CT_TICK", "off", 1);
	ct_now_ms();
	assert_off();
	ck_assert_int_eq(ct_start(NULL), 0);
	assert_off();
	/* The program knows better. */
	ck_assert_int_eq(start_mode(CT_MODE_TICK, 0), 0);
	assert_default_runs();
}
END_TEST

START_TEST(manual)
{
	setenv("CT_TICK", "manual", 1);
	ct_now_ms();
	assert_live();
	ck_assert_int_eq(status_now().mode, CT_MODE_MANUAL);
	/* The loop's first refresh engages, with no ct_start() before it. */
	ct_refresh();
	ck_assert(is_cached());
	ck_assert_int_eq(ct_now_ms(), ct_page.wall_ms);
	ck_assert_int_eq(ticker_id(), 0);
}
END_TEST

START_TEST(backend)
{
	setenv("CT_BACKEND", "coarse", 1);
	ct_now_ms();
	wait_until_cached();
	ck_assert_str_eq(status_now().backend, "coarse");
	ck_assert_int_eq(start_mode(CT_MODE_MANUAL, 0), 0);
	ck_assert_str_eq(status_now().backend, "coarse");
}
END_TEST

/* Precise time is as the back end: by the kernel's clocks, here. */
START_TEST(precise)
{
	int64_t until_ns = clock_ns(CLOCK_MONOTONIC) + 50 * MS;

	if (_i == 0)
		setenv("CT_TICK", "off", 1);
	else
		setenv("CT_BACKEND", _i == 1 ? "realtime" : "coarse", 1);
	while (clock_ns(CLOCK_MONOTONIC) < until_ns) {
		ct_precise_ns();
		ct_precise_mono_ns();
	}
	ck_assert_int_eq(status_now().precise, 0);
	ck_assert_uint_eq(ct_page.segment_seq, 0);
}
END_TEST

static const char *const bad_ticks[] = { "fast", "", "1", "49us", "2s", "-1ms",
	"1ms " };

START_TEST(bad_tick)
{
	char quoted[64];
	int ticker;

	setenv("CT_TICK", bad_ticks[_i], 1);
	ck_assert_int_eq(ct_start(NULL), -EINVAL);
	assert_default_runs();

	ck_assert_int_eq(status_now().last_error, -EINVAL);
	snprintf(quoted, sizeof(quoted), "CT_TICK=\"%s\"", bad_ticks[_i]);
	assert_told(quoted);
	assert_told("50us to 1s");
	assert_told("using 1ms");

	/* Said each time it is asked for; runs on. */
	ticker = ticker_id();
	ck_assert_int_eq(ct_start(NULL), -EINVAL);
	ck_assert_int_eq(ticker_id(), ticker);
	ck_assert(is_cached());
}
END_TEST

START_TEST(bad_backend)
{
	setenv("CT_BACKEND", "sundial", 1);
	ck_assert_int_eq(ct_start(NULL), -EINVAL);
	assert_default_runs();
	assert_told("CT_BACKEND=\"sundial\"");
	assert_told("auto, tsc, realtime, hpet, coarse");
	assert_told("using auto");
}
END_TEST

START_TEST(both_bad)
{
	setenv("CT_TICK", "fast", 1);
	setenv("CT_BACKEND", "sundial", 1);
	ck_assert_int_eq(ct_start(NULL), -EINVAL);
	assert_default_runs();
	assert_told("CT_TICK=\"fast\"");
	assert_told("CT_BACKEND=\"sundial\"");
}
END_TEST

/* Nobody calls ct_start(): a read doesn't fail, but the status tells. */
START_TEST(bad_and_only_read)
{
	char text[4096];

	setenv("CT_TICK", "fast", 1);
	ct_now_ms();
	assert_default_runs();
	ck_assert_int_eq(status_now().last_error, -EINVAL);
	assert_told("CT_TICK=\"fast\"");
	ct_status_text(text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(text, "last error: CT_TICK=\"fast\""));
}
END_TEST

START_TEST(bad_but_overruled)
{
	struct ct_config config = { .size = sizeof(config),
		.mode = CT_MODE_MANUAL,
		.backend = "realtime" };

	setenv("CT_TICK", "fast", 1);
	setenv("CT_BACKEND", "sundial", 1);
	ck_assert_int_eq(ct_start(&config), 0);
	ck_assert_int_eq(status_now().mode, CT_MODE_MANUAL);

	/* Half of it. */
	config.backend = NULL;
	ck_assert_int_eq(ct_start(&config), -EINVAL);
	ck_assert_int_eq(status_now().mode, CT_MODE_MANUAL);
}
END_TEST

START_TEST(hostile_value)
{
	static char value[10001];
	struct ct_status status;

	memset(value, '\x1b', sizeof(value) - 1);
	setenv("CT_TICK", value, 1);
	memset(value, '%', sizeof(value) - 1);
	setenv("CT_BACKEND", value, 1);
	ck_assert_int_eq(ct_start(NULL), -EINVAL);
	assert_default_runs();
	status = status_now();
	for (const char *c = status.error; *c != '\0'; c++)
		ck_assert(*c >= ' ' && *c <= '~');
	assert_told("CT_TICK");
	assert_told("CT_BACKEND");
}
END_TEST

START_TEST(changed_later)
{
	setenv("CT_TICK", "2ms", 1);
	ct_now_ms();
	setenv("CT_TICK", "5ms", 1);
	ck_assert_int_eq(ct_start(NULL), 0);
	ck_assert_int_eq(status_now().tick_ns, 2 * MS);
	ck_assert_int_eq(ct_stop(), 0);
	ck_assert_int_eq(ct_start(NULL), 0);
	ck_assert_int_eq(status_now().tick_ns, 2 * MS);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("environment");

	add(suite, "unset", unset, 1);
	add(suite, "tick", tick, 1);
	add(suite, "automatic", automatic, 1);
	add(suite, "off", off, 1);
	add(suite, "manual", manual, 1);
	add(suite, "back end", backend, 1);
	add(suite, "precise", precise, 3);
	add(suite, "bad tick", bad_tick, COUNT(bad_ticks));
	add(suite, "bad back end", bad_backend, 1);
	add(suite, "both bad", both_bad, 1);
	add(suite, "bad and only read", bad_and_only_read, 1);
	add(suite, "bad but overruled", bad_but_overruled, 1);
	add(suite, "hostile value", hostile_value, 1);
	add(suite, "changed later", changed_later, 1);
	return run_suite(suite);
}
