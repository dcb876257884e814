/* SPDX-License-Identifier: MIT */
#include "publisher.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <cachedtime.h>

#include "handover.h"
#include "kernel_clock.h"
#include "moment.h"
#include "page.h"
#include "precise.h"
#include "steps.h"

/* A suspend or a leap second shows as a wall step too; this is for the rest. */
#define OFFSETS_INTERVAL_NS NS_PER_SEC

static void look_at_offsets(struct publisher *p)
{
	int64_t boot_ns = kernel_clock_ns(CLOCK_BOOTTIME);
	int64_t mono_ns = kernel_clock_ns(CLOCK_MONOTONIC);

	/* Mono was read later, so boot is never ahead. */
	p->boot_offset_ns = boot_ns - mono_ns;
	kernel_clock_note_boot(p->boot_offset_ns);
	p->tai_offset_ns = moment_tai_offset_ns();
	kernel_clock_note_tai(p->tai_offset_ns);
	p->offsets_due_ns = mono_ns + OFFSETS_INTERVAL_NS;
}

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* The timekeeper's time, held at the kernel's: words never run ahead. */
static void evaluate(const struct publisher *p,
	const struct timekeeper_sample *sample, struct handover_now *now)
{
	now->mono_ns = smaller(
		timekeeper_mono(&p->tk, sample->cycles), sample->mono_ns);
	now->wall_ns = smaller(
		timekeeper_wall(&p->tk, sample->cycles), sample->wall_ns);
	now->boot_ns = now->mono_ns + p->boot_offset_ns;
	now->tai_ns = now->wall_ns + p->tai_offset_ns;
}

/* Relaxed: statistics for people, and a word whole in itself. */
static void account(const struct publisher *p, unsigned int events)
{
	__atomic_store_n(
		&ct_page.ticks, ct_page.ticks + 1, __ATOMIC_RELAXED);
	if (events == 0)
		return;

	__atomic_store_n(&ct_page.steps, p->tk.steps, __ATOMIC_RELAXED);
	__atomic_store_n(
		&ct_page.last_step_ns, p->tk.last_step_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&ct_page.rebases, p->tk.rebases, __ATOMIC_RELAXED);
}

/* What goes with the words. */
static void publish_moment(const struct handover_now *now,
	int64_t tai_offset_ns, uint64_t generation)
{
	struct moment moment = {
		.wall_offset_ns = now->wall_ns - now->mono_ns,
		.tai_offset_ns = tai_offset_ns,
		.generation = generation,
	};

	moment_publish(&moment);
	__atomic_store_n(
		&ct_page.generation, moment.generation, __ATOMIC_RELAXED);
}

static bool any_parked(const struct handover_view *view)
{
	for (int i = 0; i < CT_WORDS; i++)
		if (view->seen[i] == 0)
			return true;
	return false;
}

/* A new line on p->cs; what was counted, and the wall clock, go on. */
static void restart_line(struct publisher *p)
{
	struct timekeeper old = p->tk;
	struct timekeeper_sample sample;

	p->cs.bracket_ns = 0;
	clocksource_sample(&p->cs, &sample);
	timekeeper_init(
		&p->tk, p->cs.mask, p->cs.hz, p->cs.error_ppb, &sample);
	if (old.mask != 0) {
		/* A step that fell in between shows at the next sample. */
		p->tk.wall_offset_ns = old.wall_offset_ns;
		p->tk.wall_error_ns = old.wall_error_ns;
		p->tk.steps = old.steps;
		p->tk.last_step_ns = old.last_step_ns;
		p->tk.rebases = old.rebases;
	}
	page_set_backend(p->cs.name);
}

static void set_phase(struct publisher *p, enum publisher_phase phase)
{
	__atomic_store_n(&p->phase, phase, __ATOMIC_RELAXED);
}

/* The kernel's clocks, which need no trust. */
static void use_kernel(struct publisher *p)
{
	char reason[128];

	clocksource_open(&p->cs, "realtime", reason, sizeof(reason));
	__atomic_store_n(&ct_page.counter_hz, 0, __ATOMIC_RELAXED);
}

/* One more sample towards the rate of the one that waits. */
static void calibrate(struct publisher *p)
{
	struct trust_sample raw;

	if (!clocksource_sample_raw(&p->waiting, &raw))
		return;
	if (!calibration_add(&p->calibration, &raw, &p->waiting.hz,
		    &p->waiting.error_ppb))
		return;

	p->cs = p->waiting;
	restart_line(p);
	watch_begin(&p->watch, &p->cs, p->tk.mono_ns);
	set_phase(p, PUBLISHER_CHOSEN);
}

static void drop(struct publisher *p, enum trust_verdict verdict)
{
	watch_note(&p->watch, verdict, &p->fate);
	if (p->cs.processors)
		precise_distrust(&p->watch, verdict);
	use_kernel(p);
	restart_line(p);
	set_phase(p, PUBLISHER_DROPPED);
}

/* Does a counter still deserve its use, and what is its rate? */
static void look_after(struct publisher *p,
	const struct timekeeper_sample *sample, unsigned int events)
{
	enum trust_verdict verdict = watch_check(&p->watch, &p->cs,
		sample->mono_ns, sample->mono_after_ns - sample->mono_ns,
		(events & TIMEKEEPER_REBASED) != 0);

	if (verdict != TRUST_GOOD) {
		drop(p, verdict);
		return;
	}
	if (sample->mono_ns < p->rate_due_ns)
		return;
	p->rate_due_ns = sample->mono_ns + WATCH_INTERVAL_NS;
	__atomic_store_n(&ct_page.counter_hz, timekeeper_hz(&p->tk),
		__ATOMIC_RELAXED);
}

static void begin(struct publisher *p)
{
	restart_line(p);
	steps_look();
	look_at_offsets(p);
	watch_begin(&p->watch, &p->cs, p->tk.mono_ns);
	p->begun = true;
}

void publisher_publish(struct publisher *p, struct timekeeper_sample *sample)
{
	struct handover_view view;
	struct handover_now now, kernel = { 0 };
	uint64_t generation;
	unsigned int events;

	if (!p->begun)
		begin(p);
	handover_look(&view);
	/* The first time, or a wall clock from before 1970 parked its words. */
	if (any_parked(&view)) {
		handover_engage();
		handover_look(&view);
	}

	/* Before the sample: a step counted later isn't in it. */
	generation = steps_generation();
	clocksource_sample(&p->cs, sample);
	events = timekeeper_advance(&p->tk, sample);
	if (events & TIMEKEEPER_STEPPED)
		generation = steps_look();
	if (events != 0 || sample->mono_ns >= p->offsets_due_ns)
		look_at_offsets(p);

	evaluate(p, sample, &now);
	kernel.wall_ns = sample->wall_ns;
	kernel.tai_ns = sample->wall_ns + p->tai_offset_ns;
	if (!handover_publish(&view, &now, &kernel, p->cs.lag_ns))
		handover_refresh(&now);
	publish_moment(&now, p->tai_offset_ns, generation);
	account(p, events);

	if (p->phase == PUBLISHER_WAITING)
		calibrate(p);
	else if (p->cs.read != NULL)
		look_after(p, sample, events);
}

void publisher_park(void)
{
	struct moment none = { .generation = 0 };

	handover_park();
	moment_publish(&none);
	__atomic_store_n(&ct_page.generation, 0, __ATOMIC_RELAXED);
}

void publisher_start(struct publisher *p, const struct clocksource *cs)
{
	memset(p, 0, sizeof(*p));
	p->cs = *cs;
	if (cs->hz == 0) {
		p->waiting = *cs;
		calibration_init(&p->calibration, cs->mask);
		use_kernel(p);
		p->phase = PUBLISHER_WAITING;
	}
	page_set_backend(p->cs.name);

	/* Another copy of the library may have counted in this page. */
	steps_raise(__atomic_load_n(&ct_page.generation, __ATOMIC_RELAXED));
	steps_look();
	__atomic_store_n(&ct_page.ticks, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&ct_page.late_ticks, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&ct_page.max_late_ns, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&ct_page.steps, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&ct_page.last_step_ns, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&ct_page.rebases, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&ct_page.counter_hz, 0, __ATOMIC_RELAXED);
}

void publisher_explain(const struct publisher *p, char *buf, size_t size)
{
	int length;

	buf[0] = '\0';
	switch (__atomic_load_n(&p->phase, __ATOMIC_RELAXED)) {
	case PUBLISHER_CHOSEN:
		return;
	case PUBLISHER_WAITING:
		snprintf(buf, size, "realtime until its rate is measured");
		return;
	case PUBLISHER_DROPPED:
		break;
	}

	length = snprintf(buf, size, "dropped for realtime: ");
	if (length > 0 && (size_t)length < size)
		watch_explain(&p->fate, buf + length, size - (size_t)length);
}
