/* SPDX-License-Identifier: MIT */
#include "clocksource.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kernel_clock.h"

#define SAMPLE_TRIES 4

/* Best first. */
static const struct clocksource_driver *const drivers[] = {
	&clocksource_tsc,
	&clocksource_realtime,
	&clocksource_hpet,
	&clocksource_coarse,
};

#define DRIVERS (sizeof(drivers) / sizeof(drivers[0]))

/* As snprintf(), at the end of the string in buf; cuts off. */
__attribute__((format(printf, 3, 4))) static void append(
	char *buf, size_t size, const char *format, ...)
{
	size_t length = strlen(buf);
	va_list args;

	va_start(args, format);
	vsnprintf(buf + length, size - length, format, args);
	va_end(args);
}

size_t clocksource_names(char *buf, size_t size)
{
	buf[0] = '\0';
	for (size_t i = 0; i < DRIVERS; i++)
		append(buf, size, "%s%s", i > 0 ? ", " : "", drivers[i]->name);

	return strlen(buf);
}

const struct clocksource_driver *clocksource_find(const char *name)
{
	for (size_t i = 0; i < DRIVERS; i++)
		if (strcmp(drivers[i]->name, name) == 0)
			return drivers[i];

	return NULL;
}

static int open_driver(const struct clocksource_driver *driver,
	struct clocksource *cs, bool asked, char *why, size_t size)
{
	memset(cs, 0, sizeof(*cs));
	snprintf(cs->name, sizeof(cs->name), "%s", driver->name);
	why[0] = '\0';
	return driver->open(cs, asked, why, size);
}

static void open_best(struct clocksource *cs, char *reason, size_t size)
{
	size_t best = 0;
	char why[128];

	for (size_t i = 0; i < DRIVERS; i++) {
		if (drivers[i]->rating == 0)
			continue;
		if (open_driver(drivers[i], cs, false, why, sizeof(why)) ==
			0) {
			append(reason, size, "%s: %s", drivers[i]->name, why);
			best = i;
			break;
		}
		append(reason, size, "not %s: %s; ", drivers[i]->name, why);
	}
	for (size_t i = best + 1; i < DRIVERS; i++)
		append(reason, size, "; not %s: %s", drivers[i]->name,
			drivers[i]->rating == 0 ? "only if asked for"
						: "second to it");
}

int clocksource_open(
	struct clocksource *cs, const char *name, char *reason, size_t size)
{
	const struct clocksource_driver *driver;
	char why[128];
	int ret;

	reason[0] = '\0';
	if (name == NULL || strcmp(name, "auto") == 0) {
		open_best(cs, reason, size);
		return 0;
	}

	driver = clocksource_find(name);
	if (driver == NULL) {
		append(reason, size, "no back end %s here; ", name);
		open_best(cs, reason, size);
		return -ENODEV;
	}

	ret = open_driver(driver, cs, true, why, sizeof(why));
	if (ret != 0) {
		append(reason, size, "%s was asked for: %s; ", name, why);
		open_best(cs, reason, size);
		return ret;
	}

	append(reason, size, "%s: asked for; %s", name, why);
	return 0;
}

static void look(
	const struct clocksource *cs, struct timekeeper_sample *sample)
{
	sample->mono_ns = kernel_clock_ns(cs->mono);
	/* The counter between two reads of mono, like the wall clock. */
	sample->cycles = cs->read ? cs->read() : (uint64_t)sample->mono_ns;
	sample->wall_ns = kernel_clock_ns(cs->wall);
	sample->mono_after_ns = kernel_clock_ns(cs->mono);
}

static int64_t bracket(const struct timekeeper_sample *sample)
{
	return sample->mono_after_ns - sample->mono_ns;
}

void clocksource_sample(
	struct clocksource *cs, struct timekeeper_sample *sample)
{
	struct timekeeper_sample next;

	look(cs, sample);
	/* Twice the narrowest of late: the thread was preempted in between,
	 * or interrupted. On a slow clock every bracket is wide, so the
	 * measure is the clock's own. */
	for (int i = 1; i < SAMPLE_TRIES && bracket(sample) > 2 * cs->bracket_ns &&
			cs->bracket_ns > 0;
		i++) {
		look(cs, &next);
		if (bracket(&next) < bracket(sample))
			*sample = next;
	}

	/* It grows by a 64th at each sample, to follow a clock that has become
	 * slower, and by no less than 1 ns. */
	cs->bracket_ns += cs->bracket_ns / 64 + 1;
	if (cs->bracket_ns == 1 || bracket(sample) < cs->bracket_ns)
		cs->bracket_ns = bracket(sample) > 0 ? bracket(sample) : 1;
}

static bool look_raw(const struct clocksource *cs, struct trust_sample *sample)
{
	if (kernel_clock_try(CLOCK_MONOTONIC_RAW, &sample->raw_ns) != 0)
		return false;
	sample->cycles = cs->read();
	return kernel_clock_try(CLOCK_MONOTONIC_RAW, &sample->raw_after_ns) ==
	       0;
}

bool clocksource_sample_raw(
	const struct clocksource *cs, struct trust_sample *sample)
{
	struct trust_sample next;

	if (!look_raw(cs, sample))
		return false;
	for (int i = 1; i < SAMPLE_TRIES; i++) {
		if (!look_raw(cs, &next))
			return false;
		if (next.raw_after_ns - next.raw_ns <
			sample->raw_after_ns - sample->raw_ns)
			*sample = next;
	}
	return true;
}
