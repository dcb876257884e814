/* SPDX-License-Identifier: MIT */
#include "publisher.h"

#include <stdbool.h>

#include <cachedtime.h>

#include "handover.h"
#include "kernel_clock.h"

/* A suspend shows as a wall step too; this is for the rest. */
#define BOOT_INTERVAL_NS NS_PER_SEC

/* Steps of this process's whole life, so that the generation survives a fork,
 * which wipes the page. Relaxed: one writer. */
static uint64_t generation = 1;

static void look_at_boot(struct publisher *p)
{
	int64_t boot_ns = kernel_clock_ns(CLOCK_BOOTTIME);
	int64_t mono_ns = kernel_clock_ns(CLOCK_MONOTONIC);

	/* Mono was read later, so boot is never ahead. */
	p->boot_offset_ns = boot_ns - mono_ns;
	p->boot_due_ns = mono_ns + BOOT_INTERVAL_NS;
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
}

/* Relaxed: statistics for people, and words whole in themselves. */
static void account(const struct publisher *p, unsigned int events)
{
	__atomic_store_n(
		&ct_page.ticks, ct_page.ticks + 1, __ATOMIC_RELAXED);
	if (events == 0)
		return;

	if (events & TIMEKEEPER_STEPPED)
		__atomic_store_n(
			&generation, generation + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&ct_page.generation, generation, __ATOMIC_RELAXED);
	__atomic_store_n(&ct_page.steps, p->tk.steps, __ATOMIC_RELAXED);
	__atomic_store_n(
		&ct_page.last_step_ns, p->tk.last_step_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&ct_page.rebases, p->tk.rebases, __ATOMIC_RELAXED);
}

static bool any_parked(const struct handover_view *view)
{
	for (int i = 0; i < CT_WORDS; i++)
		if (view->seen[i] == 0)
			return true;
	return false;
}

void publisher_publish(struct publisher *p, struct timekeeper_sample *sample)
{
	struct handover_view view;
	struct handover_now now;
	unsigned int events;

	handover_look(&view);
	/* The first time, or a wall clock from before 1970 parked its words. */
	if (any_parked(&view)) {
		handover_engage();
		handover_look(&view);
	}

	clocksource_sample(&p->cs, sample);
	events = timekeeper_advance(&p->tk, sample);
	if ((events & TIMEKEEPER_STEPPED) || sample->mono_ns >= p->boot_due_ns)
		look_at_boot(p);

	evaluate(p, sample, &now);
	if (!handover_publish(&view, &now, sample->wall_ns, p->cs.lag_ns))
		handover_refresh(&now);
	account(p, events);
}

void publisher_start(struct publisher *p)
{
	struct timekeeper_sample sample;

	clocksource_sample(&p->cs, &sample);
	timekeeper_init(&p->tk, p->cs.mask, p->cs.hz, &sample);
	look_at_boot(p);

	__atomic_store_n(&ct_page.generation, generation, __ATOMIC_RELAXED);
	__atomic_store_n(&ct_page.ticks, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&ct_page.late_ticks, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&ct_page.max_late_ns, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&ct_page.steps, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&ct_page.last_step_ns, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&ct_page.rebases, 0, __ATOMIC_RELAXED);
}
