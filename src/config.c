/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Digits of a duration: more than any tick needs, and no overflow. */
#define DIGITS_MAX 9

/* A struct ct_config of any release to come is smaller. */
#define SIZE_PLAUSIBLE 1024
/* Of release 0.1: never more, so that programs built for it go on. */
#define SIZE_MIN (offsetof(struct ct_config, priority) + sizeof(char *))

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static int64_t unit_from_text(const char *text)
{
	if (strcmp(text, "us") == 0)
		return 1000;
	if (strcmp(text, "ms") == 0)
		return 1000000;
	if (strcmp(text, "s") == 0)
		return 1000000000;
	return 0;
}

int64_t config_parse_tick(const char *text)
{
	int64_t whole = 0, part = 0, part_of = 1, unit_ns, ns;
	int digits = 0;

	if (!is_digit(*text))
		return -EINVAL;
	for (; is_digit(*text); text++) {
		if (++digits > DIGITS_MAX)
			return -ERANGE;
		whole = 10 * whole + (*text - '0');
	}

	if (*text == '.') {
		text++;
		if (!is_digit(*text))
			return -EINVAL;
		for (digits = 0; is_digit(*text); text++) {
			if (++digits > DIGITS_MAX)
				return -EINVAL;
			part = 10 * part + (*text - '0');
			part_of *= 10;
		}
	}

	unit_ns = unit_from_text(text);
	if (unit_ns == 0)
		return -EINVAL;

	ns = whole * unit_ns + part * unit_ns / part_of;
	if (ns < CT_TICK_MIN_NS || ns > CT_TICK_MAX_NS)
		return -ERANGE;
	return ns;
}

/* The value as it may be shown: printable, and not for ever. */
static const char *shown(const char *value, char buf[static 36])
{
	size_t i;

	for (i = 0; i < 32 && value[i] != '\0'; i++)
		buf[i] = value[i] < ' ' || value[i] > '~' ? '?' : value[i];
	strcpy(&buf[i], value[i] != '\0' ? "..." : "");
	return buf;
}

static void default_mode(struct config *config)
{
	config->mode = CT_MODE_TICK;
	config->tick_ns = CT_TICK_DEFAULT_NS;
}

static bool apply_tick(
	struct config *config, const char *value, char *error, size_t size)
{
	char buf[36];
	int64_t ns;

	if (strcmp(value, "auto") == 0)
		return true;
	if (strcmp(value, "off") == 0) {
		config->mode = CT_MODE_OFF;
		return true;
	}
	if (strcmp(value, "manual") == 0) {
		config->mode = CT_MODE_MANUAL;
		return true;
	}

	ns = config_parse_tick(value);
	if (ns < 0) {
		snprintf(error, size,
			"CT_TICK=\"%s\" %s: want 50us to 1s (as 250us, 1ms, "
			"0.5ms, 1s), manual, off or auto; using 1ms",
			shown(value, buf),
			ns == -ERANGE ? "is out of range" : "is not a tick");
		return false;
	}

	config->tick_ns = ns;
	return true;
}

static bool apply_backend(
	struct config *config, const char *value, char *error, size_t size)
{
	char names[64];
	char buf[36];

	if (strcmp(value, "auto") == 0 || clocksource_find(value) != NULL) {
		snprintf(config->backend, sizeof(config->backend), "%s", value);
		return true;
	}

	clocksource_names(names, sizeof(names));
	snprintf(error, size,
		"CT_BACKEND=\"%s\" is not known: want auto, %s; using auto",
		shown(value, buf), names);
	return false;
}

/* "normal", "fifo" or a nice value. */
static bool parse_priority(struct ticker_priority *priority, const char *value)
{
	char *end;
	long nice;

	memset(priority, 0, sizeof(*priority));
	if (strcmp(value, "normal") == 0)
		return true;
	if (strcmp(value, "fifo") == 0) {
		priority->policy = TICKER_FIFO;
		return true;
	}

	if (!is_digit(value[value[0] == '-']))
		return false;
	nice = strtol(value, &end, 10);
	if (*end != '\0' || nice < -20 || nice > 19)
		return false;
	priority->policy = TICKER_NICE;
	priority->nice = (int)nice;
	return true;
}

static bool apply_priority(
	struct config *config, const char *value, char *error, size_t size)
{
	char buf[36];

	if (parse_priority(&config->priority, value))
		return true;

	snprintf(error, size,
		"CT_PRIORITY=\"%s\" is none: want normal, fifo or a nice value "
		"from -20 to 19; using normal",
		shown(value, buf));
	return false;
}

unsigned int config_from_environment(
	struct config *config, char *error, size_t size)
{
	static const struct {
		const char *name;
		unsigned int bad;
		bool (*apply)(struct config *, const char *, char *, size_t);
	} variables[] = {
		{ "CT_TICK", CONFIG_BAD_TICK, apply_tick },
		{ "CT_BACKEND", CONFIG_BAD_BACKEND, apply_backend },
		{ "CT_PRIORITY", CONFIG_BAD_PRIORITY, apply_priority },
	};
	unsigned int bad = 0;
	const char *value;
	char one[200];
	size_t length;

	memset(config, 0, sizeof(*config));
	default_mode(config);
	strcpy(config->backend, "auto");
	error[0] = '\0';

	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		value = secure_getenv(variables[i].name);
		if (value == NULL ||
			variables[i].apply(config, value, one, sizeof(one)))
			continue;
		bad |= variables[i].bad;
		length = strlen(error);
		snprintf(error + length, size - length, "%s%s",
			length > 0 ? "; " : "", one);
	}
	return bad;
}

unsigned int config_still_bad(unsigned int bad, const struct ct_config *given)
{
	if (given == NULL)
		return bad;
	if (given->mode != CT_MODE_DEFAULT || given->tick_ns != 0)
		bad &= ~(unsigned int)CONFIG_BAD_TICK;
	if (given->backend != NULL || given->clocksource != NULL)
		bad &= ~(unsigned int)CONFIG_BAD_BACKEND;
	if (given->priority != NULL)
		bad &= ~(unsigned int)CONFIG_BAD_PRIORITY;
	return bad;
}

/*
 * What a caller of any header gave. A smaller struct comes from an earlier one:
 * the rest is 0. A larger one comes from a later: fine while it asks for
 * nothing that this library doesn't know.
 */
static bool take(struct ct_config *own, const struct ct_config *given)
{
	const unsigned char *bytes = (const unsigned char *)given;
	size_t size = given->size;

	if (size < SIZE_MIN || size > SIZE_PLAUSIBLE)
		return false;
	for (size_t i = sizeof(*own); i < size; i++)
		if (bytes[i] != 0)
			return false;

	memset(own, 0, sizeof(*own));
	memcpy(own, given, size < sizeof(*own) ? size : sizeof(*own));
	return true;
}

static bool apply_mode(struct config *config, const struct ct_config *given)
{
	if (given->tick_ns != 0 && (given->tick_ns < CT_TICK_MIN_NS ||
					   given->tick_ns > CT_TICK_MAX_NS))
		return false;

	switch (given->mode) {
	case CT_MODE_DEFAULT:
		break;
	case CT_MODE_AUTO:
		default_mode(config);
		break;
	case CT_MODE_TICK:
	case CT_MODE_MANUAL:
	case CT_MODE_OFF:
		config->mode = given->mode;
		break;
	default:
		return false;
	}

	if (given->tick_ns != 0)
		config->tick_ns = given->tick_ns;
	return true;
}

static bool apply_source(struct config *config, const struct ct_config *given)
{
	if (given->backend != NULL) {
		if (strcmp(given->backend, "auto") != 0 &&
			clocksource_find(given->backend) == NULL)
			return false;
		snprintf(config->backend, sizeof(config->backend), "%s",
			given->backend);
	}

	if (given->clocksource != NULL) {
		if (given->backend != NULL ||
			!clocksource_user_valid(
				given->clocksource, config->tick_ns))
			return false;
		config->has_user = true;
		config->user = *given->clocksource;
		snprintf(config->user_name, sizeof(config->user_name), "%s",
			given->clocksource->name);
		config->user.name = NULL; /* the caller's string may go */
	}

	return true;
}

int config_from_struct(struct config *config, const struct ct_config *given)
{
	struct config changed = *config;
	struct ct_config own;

	if (!take(&own, given) || !apply_mode(&changed, &own) ||
		!apply_source(&changed, &own))
		return -EINVAL;
	if (own.priority != NULL &&
		!parse_priority(&changed.priority, own.priority))
		return -EINVAL;

	*config = changed;
	return 0;
}

bool config_equal(const struct config *a, const struct config *b)
{
	if (a->mode != b->mode || a->has_user != b->has_user)
		return false;
	if (a->mode == CT_MODE_TICK && (a->tick_ns != b->tick_ns ||
				a->priority.policy != b->priority.policy ||
				a->priority.nice != b->priority.nice))
		return false;
	if (a->has_user)
		return strcmp(a->user_name, b->user_name) == 0 &&
		       a->user.read == b->user.read &&
		       a->user.mask == b->user.mask && a->user.hz == b->user.hz;
	return strcmp(a->backend, b->backend) == 0;
}
