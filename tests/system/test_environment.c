/* SPDX-License-Identifier: MIT */
/* CT_TICK and CT_BACKEND, good and bad, as a program finds them. */
#include <errno.h>

#include "clocks.h"

#define DEFAULT_NS MS

#define AUTO NULL

static const struct setting {
	const char *tick, *backend;
	enum ct_mode mode;
	int64_t tick_ns;
	const char *shows; /* the back end; AUTO: as the machine is */
	const char *error; /* a word of it, or NULL: all is well */
} settings[] = {
	{ NULL, NULL, CT_MODE_TICK, DEFAULT_NS, AUTO, NULL },
	{ "auto", "auto", CT_MODE_TICK, DEFAULT_NS, AUTO, NULL },
	{ "50us", NULL, CT_MODE_TICK, 50000, AUTO, NULL },
	{ "500us", "realtime", CT_MODE_TICK, 500000, "realtime", NULL },
	{ "0.5ms", NULL, CT_MODE_TICK, 500000, AUTO, NULL },
	{ "1ms", "coarse", CT_MODE_TICK, MS, "coarse", NULL },
	{ "20ms", NULL, CT_MODE_TICK, 20 * MS, AUTO, NULL },
	{ "1s", NULL, CT_MODE_TICK, SEC, AUTO, NULL },
	{ "manual", NULL, CT_MODE_MANUAL, 0, AUTO, NULL },
	{ "off", "coarse", CT_MODE_OFF, 0, "coarse", NULL },

	{ "", NULL, CT_MODE_TICK, DEFAULT_NS, AUTO, "CT_TICK" },
	{ "1", NULL, CT_MODE_TICK, DEFAULT_NS, AUTO, "CT_TICK" },
	{ "ms", NULL, CT_MODE_TICK, DEFAULT_NS, AUTO, "CT_TICK" },
	{ "-1ms", NULL, CT_MODE_TICK, DEFAULT_NS, AUTO, "CT_TICK" },
	{ "1 ms", NULL, CT_MODE_TICK, DEFAULT_NS, AUTO, "CT_TICK" },
	{ " 1ms", NULL, CT_MODE_TICK, DEFAULT_NS, AUTO, "CT_TICK" },
	{ "1msec", NULL, CT_MODE_TICK, DEFAULT_NS, AUTO, "CT_TICK" },
	{ "0x10ms", NULL, CT_MODE_TICK, DEFAULT_NS, AUTO, "CT_TICK" },
	{ "1.ms", NULL, CT_MODE_TICK, DEFAULT_NS, AUTO, "CT_TICK" },
	{ "nan", NULL, CT_MODE_TICK, DEFAULT_NS, AUTO, "CT_TICK" },
	{ "OFF", NULL, CT_MODE_TICK, DEFAULT_NS, AUTO, "CT_TICK" },
	{ "0ms", NULL, CT_MODE_TICK, DEFAULT_NS, AUTO, "range" },
	{ "49us", NULL, CT_MODE_TICK, DEFAULT_NS, AUTO, "range" },
	{ "2s", NULL, CT_MODE_TICK, DEFAULT_NS, AUTO, "range" },
	{ "99999999999999999999s", NULL, CT_MODE_TICK, DEFAULT_NS, AUTO,
		"range" },
	{ "\x1b[31m\n%s%n", NULL, CT_MODE_TICK, DEFAULT_NS, AUTO,
		"?[31m?%s%n" },
	{ "2ms", "tsx", CT_MODE_TICK, 2 * MS, AUTO, "CT_BACKEND" },
	{ "off", "", CT_MODE_OFF, 0, AUTO, "CT_BACKEND" },
	{ "soon", "tsx", CT_MODE_TICK, DEFAULT_NS, AUTO, "CT_BACKEND" },
};

#define SETTINGS (sizeof(settings) / sizeof(settings[0]))

struct answer {
	int ret, mode, last_error, secure;
	long long tick_ns;
	char backend[16], error[512];
};

static void set_or_unset(const char *name, const char *value)
{
	if (value != NULL)
		setenv(name, value, 1);
	else
		unsetenv(name);
}

static void ask(const struct setting *s, struct answer *answer)
{
	FILE *pipe;

	set_or_unset("CT_TICK", s->tick);
	set_or_unset("CT_BACKEND", s->backend);
	pipe = popen(path_from("CT_TEST_REPORT"), "r");
	ck_assert_ptr_nonnull(pipe);
	memset(answer, 0, sizeof(*answer));
	ck_assert_int_eq(
		fscanf(pipe, "%d %d %lld %15s %d %d %511[^\n]", &answer->ret,
			&answer->mode, &answer->tick_ns, answer->backend,
			&answer->last_error, &answer->secure, answer->error),
		s->error != NULL ? 7 : 6);
	ck_assert_int_eq(pclose(pipe), 0);
}

START_TEST(set_before_the_start)
{
	const struct setting *s = &settings[_i];
	int error = s->error != NULL ? -EINVAL : 0;
	struct answer answer;

	ask(s, &answer);
	ck_assert_msg(answer.mode == (int)s->mode, "CT_TICK=%s", s->tick);
	ck_assert_msg(answer.tick_ns == s->tick_ns, "CT_TICK=%s", s->tick);
	if (s->shows != AUTO)
		ck_assert_str_eq(answer.backend, s->shows);
	else
		ck_assert(strcmp(answer.backend, "tsc") == 0 ||
			strcmp(answer.backend, "realtime") == 0);
	ck_assert_int_eq(answer.ret, error);
	ck_assert_int_eq(answer.last_error, error);
	if (s->error != NULL)
		ck_assert_msg(strstr(answer.error, s->error) != NULL,
			"CT_TICK=%s: %s", s->tick, answer.error);
}
END_TEST

START_TEST(first_read_with_a_bad_one)
{
	setenv("CT_TICK", "soon", 1);
	ck_assert(ticks_right());
	ck_assert_int_eq(status_now().last_error, -EINVAL);
	ck_assert_ptr_nonnull(strstr(status_now().error, "soon"));
}
END_TEST

START_TEST(first_read_with_off)
{
	setenv("CT_TICK", "off", 1);
	ck_assert(stays_live());
	ck_assert(stays_live());
}
END_TEST

START_TEST(changed_after_the_start)
{
	setenv("CT_TICK", "3ms", 1);
	ck_assert(ticks_right());
	setenv("CT_TICK", "off", 1);
	ck_assert_int_eq(ct_start(NULL), 0);
	ck_assert_int_eq(status_now().tick_ns, 3 * MS);
	ck_assert(ticks_right());
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("environment");
	TCase *tc = tcase_create("set before the start");

	tcase_set_timeout(tc, TIMEOUT_S);
	tcase_add_loop_test(tc, set_before_the_start, 0, (int)SETTINGS);
	suite_add_tcase(suite, tc);
	add_situation(suite, "the first read finds a bad one",
		first_read_with_a_bad_one);
	add_situation(suite, "the first read finds off", first_read_with_off);
	add_situation(
		suite, "changed after the start", changed_after_the_start);
	return run_suite(suite);
}
