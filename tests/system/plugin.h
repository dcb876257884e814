/* SPDX-License-Identifier: MIT */
/* What a plugin with a copy of the library inside does for its host. */
#ifndef PLUGIN_H
#define PLUGIN_H

#include <stdbool.h>

struct plugin {
	bool (*right)(void);
	bool (*ticks_right)(void);
	bool (*stays_live)(void);
	int (*start)(void);
	int (*stop)(void);
	const void *page;
};

#endif /* PLUGIN_H */
