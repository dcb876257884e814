/* SPDX-License-Identifier: MIT */
/* From the environment and a struct ct_config to one struct of settings. */
#ifndef CONFIG_H
#define CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include <cachedtime.h>

#include "clocksource.h"
#include "ticker.h"

struct config {
	enum ct_mode mode; /* TICK, MANUAL or OFF */
	int64_t tick_ns;
	char backend[CLOCKSOURCE_NAME_SIZE]; /* "auto" or a name */
	bool has_user;			     /* `user` instead of a back end */
	struct ct_clocksource user;
	char user_name[CLOCKSOURCE_NAME_SIZE];
	struct ticker_priority priority;
};

/* Variables that could not be understood. */
enum config_bad {
	CONFIG_BAD_TICK = 1,
	CONFIG_BAD_BACKEND = 2,
	CONFIG_BAD_PRIORITY = 4
};

/*
 * What CT_TICK, CT_BACKEND and CT_PRIORITY say, by secure_getenv(3); the
 * default for what is not set or not understood. Returns which were not, or-ed
 * together; then `error` says which variable, which value and why.
 */
unsigned int config_from_environment(
	struct config *config, char *error, size_t size);

/* Of the variables in `bad`, those that *given (or NULL) leaves in force. */
unsigned int config_still_bad(unsigned int bad, const struct ct_config *given);

/*
 * What `given` says, over what is in *config already. -EINVAL and nothing
 * changed if it makes no sense.
 */
int config_from_struct(struct config *config, const struct ct_config *given);

bool config_equal(const struct config *a, const struct config *b);

/*
 * "250us", "1ms", "0.5ms", "1s", in the C locale whatever the program's.
 * Nanoseconds; -EINVAL if it is no duration, -ERANGE if it is no tick.
 */
int64_t config_parse_tick(const char *text);

#endif /* CONFIG_H */
