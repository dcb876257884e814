/* SPDX-License-Identifier: MIT */
/* Nothing here touches errno, not even what fails. */
#include "errno_kept.h"

START_TEST(fresh)
{
	everything_keeps_errno();
}
END_TEST

START_TEST(first_call)
{
	switch (_i) {
	case 0:
		KEEPS_ERRNO(ct_refresh());
		break;
	case 1:
		KEEPS_ERRNO(ct_stop());
		break;
	case 2:
		KEEPS_ERRNO(ct_start(NULL));
		break;
	case 3:
		KEEPS_ERRNO(ct_status_text(NULL, 0));
		break;
	default:
		KEEPS_ERRNO(ct_age_ns());
		break;
	}
}
END_TEST

START_TEST(each_mode)
{
	struct ct_config config = { .size = sizeof(config) };

	for (int mode = CT_MODE_DEFAULT; mode <= CT_MODE_OFF; mode++) {
		config.mode = (enum ct_mode)mode;
		KEEPS_ERRNO(ct_start(&config));
		KEEPS_ERRNO(ct_start(&config));
		everything_keeps_errno();
		if (mode != CT_MODE_OFF) {
			ct_refresh();
			wait_until_cached();
		}
		everything_keeps_errno();
		KEEPS_ERRNO(ct_stop());
		KEEPS_ERRNO(ct_stop());
		everything_keeps_errno();
	}
}
END_TEST

START_TEST(bad_environment)
{
	setenv("CT_TICK", "nonsense", 1);
	setenv("CT_BACKEND", "nonsense", 1);
	everything_keeps_errno();
	KEEPS_ERRNO(ct_start(NULL));
	everything_keeps_errno();
}
END_TEST

START_TEST(coarse)
{
	struct ct_config config = { .size = sizeof(config),
		.mode = CT_MODE_MANUAL,
		.backend = "coarse" };

	KEEPS_ERRNO(ct_start(&config));
	everything_keeps_errno();
}
END_TEST

static uint64_t counter_with_errno(void)
{
	static uint64_t cycles;

	errno = EBADF;
	return cycles++;
}

/* The counter is the program's, but ct_refresh() is called in places that
 * know nothing of it, signal handlers among them. */
START_TEST(users_counter_sets_it)
{
	struct ct_clocksource source = { "careless", counter_with_errno,
		UINT64_MAX, 1000000 };
	struct ct_config config = { .size = sizeof(config),
		.mode = CT_MODE_MANUAL,
		.clocksource = &source };

	KEEPS_ERRNO(ct_start(&config));
	everything_keeps_errno();
	everything_keeps_errno();
	KEEPS_ERRNO(ct_stop());
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("errno");

	add(suite, "fresh", fresh, 1);
	add(suite, "first call", first_call, 5);
	add(suite, "each mode", each_mode, 1);
	add(suite, "bad environment", bad_environment, 1);
	add(suite, "coarse", coarse, 1);
	add(suite, "user's counter sets it", users_counter_sets_it, 1);
	return run_suite(suite);
}
