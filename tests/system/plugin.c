/* SPDX-License-Identifier: MIT */
/* A plugin that has the static archive inside. */
#include "clocks.h"
#include "plugin.h"

static int start_default(void)
{
	return ct_start(NULL);
}

extern const struct plugin plugin;

__attribute__((visibility("default"))) const struct plugin plugin = {
	.right = right,
	.ticks_right = ticks_right,
	.stays_live = stays_live,
	.start = start_default,
	.stop = ct_stop,
	.page = &ct_page,
};
