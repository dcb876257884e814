/* SPDX-License-Identifier: MIT */
/* A counter of the user's own, from ct_config.clocksource. */
#include "clocksource.h"

#include <stdio.h>
#include <string.h>

#include <cachedtime.h>

#include "kernel_clock.h"

#define HZ_MIN UINT64_C(1000)
#define HZ_MAX UINT64_C(1000000000000)
/* What a nominal rate is believed to be off, until measured. */
#define HZ_ERROR_PPB 500000

bool clocksource_user_valid(const struct ct_clocksource *user, int64_t tick_ns)
{
	if (user->name == NULL || user->name[0] == '\0' || user->read == NULL)
		return false;
	if (strnlen(user->name, CLOCKSOURCE_NAME_SIZE) == CLOCKSOURCE_NAME_SIZE)
		return false;
	if (user->hz < HZ_MIN || user->hz > HZ_MAX)
		return false;
	if (user->mask == 0 || (user->mask & (user->mask + 1)) != 0)
		return false;

	/* One wrap between two ticks can be told, two can't. */
	return (u128)user->mask * NS_PER_SEC / user->hz >
	       (u128)(2 * (uint64_t)tick_ns);
}

void clocksource_open_user(struct clocksource *cs,
	const struct ct_clocksource *user, const char *name, char *reason,
	size_t size)
{
	memset(cs, 0, sizeof(*cs));
	snprintf(cs->name, sizeof(cs->name), "%s", name);
	cs->read = user->read;
	cs->mask = user->mask;
	cs->hz = user->hz;
	cs->error_ppb = HZ_ERROR_PPB;
	cs->mono = CLOCK_MONOTONIC;
	cs->wall = CLOCK_REALTIME;
	snprintf(reason, size, "%s: given in ct_config.clocksource", cs->name);
}
