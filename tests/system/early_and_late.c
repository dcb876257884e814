/* SPDX-License-Identifier: MIT */
/*
 * Reads before main(), from a constructor that runs before the library's own;
 * and after it, from exit handlers and destructors. With the static archive
 * inside there is no library to be early of, but its destructor runs.
 */
#include "clocks.h"
#ifndef WITHOUT_EARLY
#include "early.h"
#endif

static void read_at_exit(void)
{
	CHECK(right() && advances());
}

__attribute__((destructor)) static void read_at_the_end(void)
{
	CHECK(right() && advances());
}

/* Last of all, after the archive's own. */
__attribute__((destructor(101))) static void read_at_the_very_end(void)
{
	CHECK(right() && advances());
}

static void tick_in_child(void)
{
	CHECK(threads() == 1);
	CHECK(ticks_right());
	CHECK(threads() == 2);
	exit(0);
}

int main(void)
{
#ifndef WITHOUT_EARLY
	if (!early_was_first())
		skip("this loader runs the constructors in another order");
#endif
	atexit(read_at_exit);
	CHECK(child_does(tick_in_child));
	CHECK(ticks_right());
	CHECK(threads() == 2);
	CHECK(child_does(tick_in_child));
	return EXIT_SUCCESS;
}
