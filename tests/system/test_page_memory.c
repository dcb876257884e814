/* SPDX-License-Identifier: MIT */
/*
 * A page whose memory the kernel won't wipe at first, as where the tail of a
 * file mapping lies under it: it is mapped anew. madvise() is the test's own.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "life.h"

/* From before main(): the library's constructor comes first. */
static int refusals = 1, calls;

int madvise(void *address, size_t size, int advice)
{
	if (address == &ct_page && calls++ < refusals) {
		errno = EINVAL;
		return -1;
	}
	return (int)syscall(SYS_madvise, address, size, advice);
}

static void tick_in_child(void)
{
	CHECK(!cached());
	CHECK(ticks_right());
}

START_TEST(mapped_anew)
{
	ck_assert_int_eq(calls, 2);
	ck_assert(ticks_right());
	ck_assert_int_eq(status_now().last_error, 0);
	for (int i = 0; i < 5; i++)
		ck_assert(child_does(tick_in_child));
	ck_assert(cached() && right());
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("page memory");

	add_situation(suite, "mapped anew", mapped_anew);
	return run_suite(suite);
}
