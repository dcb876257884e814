/* SPDX-License-Identifier: MIT */
/* What the tests of ct_bounds() share. */
#ifndef BOUNDS_TEST_H
#define BOUNDS_TEST_H

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cachedtime.h>

#include "suite.h"

#define US INT64_C(1000)
#define MS INT64_C(1000000)
#define SEC INT64_C(1000000000)

/* As the library has them. */
#define PPM 65536 /* of tolerance: adjtimex(2) */
#define MAXERROR_END_US 16000000

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))

/* For loops: libcheck writes each of its own assertions to a file. */
#define ALWAYS(condition)                                     \
	do {                                                  \
		if (!(condition))                             \
			ck_abort_msg("not so: %s", #condition); \
	} while (0)

int64_t __wrap_kernel_clock_ns(clockid_t clock);
int64_t __real_kernel_clock_ns(clockid_t clock);

static inline void add(
	Suite *suite, const char *situation, const TTest *test, int n)
{
	TCase *tcase = tcase_create(situation);

	tcase_set_timeout(tcase, 0); /* meson's holds */
	tcase_add_loop_test(tcase, test, 0, n);
	suite_add_tcase(suite, tcase);
}

static inline struct ct_bounds bounds_now(void)
{
	struct ct_bounds bounds;

	memset(&bounds, 0x55, sizeof(bounds));
	ck_assert_int_eq(ct_bounds(&bounds), 0);
	return bounds;
}

#endif /* BOUNDS_TEST_H */
