/* SPDX-License-Identifier: MIT */
/*
 * A library whose constructor reads the time before cachedtime's own
 * constructor has run, and whose destructor reads it after everything else.
 * It isn't linked with cachedtime, or the loader would put that first.
 */
#include "clocks.h"
#include "early.h"

static bool was_first;

bool early_was_first(void)
{
	return was_first;
}

__attribute__((constructor)) static void begin(void)
{
	was_first = ct_page.home == 0;
	if (getenv("CT_TEST_EARLY_START") != NULL) {
		CHECK(ct_start(NULL) == 0);
		CHECK(ticks_right());
	} else if (was_first) {
		CHECK(stays_live());
		CHECK(threads() == 1);
	}
}

__attribute__((destructor)) static void end(void)
{
	CHECK(right() && advances());
}
