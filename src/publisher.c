/* SPDX-License-Identifier: MIT */
#include "publisher.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <cachedtime.h>

#include "handover.h"
#include "kernel_clock.h"
#include "page.h"

/* A suspend shows as a wall step too; this is for the rest. */
#define BOOT_INTERVAL_NS NS_PER_SEC
/* Less than this between two looks at boot - mono is their error. */
#define SUSPEND_MIN_NS INT64_C(1000000)

/* How often a counter in use is judged, if nothing looks wrong meanwhile. */
#define TRUST_INTERVAL_NS INT64_C(100000000)
/* How often sysfs may be asked for the kernel's clocksource ... */
#define KERNEL_INTERVAL_NS (NS_PER_SEC / 2)
/* ... which is where the kernel's clocks have become this much slower to read,
 * so many times in a row (a change from the TSC takes them out of the vDSO).
 * Nothing is opened without need in a process that may have been sandboxed
 * meanwhile. */
#define KERNEL_SLOWER 4
#define KERNEL_SLOW_SAMPLES 4

/* Steps of this process's whole life, so that the generation survives a fork,
 * which wipes the page. Relaxed: one writer. */
static uint64_t generation = 1;

static void look_at_boot(struct publisher *p)
{
	int64_t before_ns = p->boot_offset_ns;
	int64_t boot_ns = kernel_clock_ns(CLOCK_BOOTTIME);
	int64_t mono_ns = kernel_clock_ns(CLOCK_MONOTONIC);

	/* Mono was read later, so boot is never ahead. */
	p->boot_offset_ns = boot_ns - mono_ns;
	kernel_clock_note_boot(p->boot_offset_ns);
	p->boot_due_ns = mono_ns + BOOT_INTERVAL_NS;
	if (p->boot_offset_ns - before_ns > SUSPEND_MIN_NS)
		p->slept = true;
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

/* Take p->cs, a counter of known rate, under watch. */
static void begin_watch(struct publisher *p)
{
	struct trust_sample raw;

	p->trust_due_ns = p->tk.mono_ns + TRUST_INTERVAL_NS;
	if (!p->cs.watched)
		return;
	if (!clocksource_sample_raw(&p->cs, &raw)) {
		p->cs.watched = false; /* no clock to judge it by */
		return;
	}
	trust_init(&p->trust, p->cs.mask, p->cs.hz, p->cs.error_ppb, &raw);
	p->kernel_due_ns = p->tk.mono_ns + KERNEL_INTERVAL_NS;
	p->usual_bracket_ns = INT64_MAX;
	p->slow_in_a_row = 0;
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
	begin_watch(p);
	set_phase(p, PUBLISHER_CHOSEN);
}

static void drop(struct publisher *p, enum trust_verdict verdict)
{
	__atomic_store_n(&p->verdict, verdict, __ATOMIC_RELAXED);
	__atomic_store_n(&p->off_ns, p->trust.off_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&p->within_ns, p->trust.within_ns, __ATOMIC_RELAXED);
	use_kernel(p);
	restart_line(p);
	set_phase(p, PUBLISHER_DROPPED);
}

/* Has the kernel left the clocksource that vouches for the counter? */
static bool kernel_left(
	struct publisher *p, const struct timekeeper_sample *sample)
{
	int64_t bracket_ns = sample->mono_after_ns - sample->mono_ns;
	char name[64];

	if (bracket_ns < p->usual_bracket_ns)
		p->usual_bracket_ns = bracket_ns;
	if (bracket_ns / KERNEL_SLOWER <= p->usual_bracket_ns)
		p->slow_in_a_row = 0;
	else
		p->slow_in_a_row++;
	if (!p->cs.kernels_own || sample->mono_ns < p->kernel_due_ns ||
		p->slow_in_a_row < KERNEL_SLOW_SAMPLES)
		return false;

	p->kernel_due_ns = sample->mono_ns + KERNEL_INTERVAL_NS;
	if (clocksource_kernel(name, sizeof(name)) == 0 &&
		!clocksource_kernel_trusts_tsc(name))
		return true;

	/* It's the processor that has become slower: get used to it. */
	p->usual_bracket_ns = bracket_ns;
	return false;
}

/* Is the counter in use as good as it was? `parted`: it looks as if not. */
static void watch(struct publisher *p,
	const struct timekeeper_sample *sample, bool parted)
{
	enum trust_verdict verdict = TRUST_GOOD;
	struct trust_sample raw;

	if (kernel_left(p, sample)) {
		drop(p, TRUST_SOURCE);
		return;
	}
	if (!parted && sample->mono_ns < p->trust_due_ns)
		return;

	if (!clocksource_sample_raw(&p->cs, &raw))
		return;
	/* A suspend stops one counter, resets another: no fault of theirs. */
	if (p->slept)
		trust_excuse(&p->trust, &raw);
	else
		verdict = trust_check(&p->trust, &raw);
	p->slept = false;

	if (verdict != TRUST_GOOD)
		drop(p, verdict);
}

/* Look after a counter: does it still deserve its use, and what is its rate? */
static void look_after(struct publisher *p,
	const struct timekeeper_sample *sample, unsigned int events)
{
	bool due = sample->mono_ns >= p->trust_due_ns;

	if (p->cs.watched)
		watch(p, sample, (events & TIMEKEEPER_REBASED) != 0);
	if (!due || p->cs.read == NULL)
		return;

	p->trust_due_ns = sample->mono_ns + TRUST_INTERVAL_NS;
	__atomic_store_n(&ct_page.counter_hz, timekeeper_hz(&p->tk),
		__ATOMIC_RELAXED);
}

static void begin(struct publisher *p)
{
	restart_line(p);
	look_at_boot(p);
	p->slept = false;
	begin_watch(p);
	p->begun = true;
}

void publisher_publish(struct publisher *p, struct timekeeper_sample *sample)
{
	struct handover_view view;
	struct handover_now now;
	unsigned int events;

	if (!p->begun)
		begin(p);
	handover_look(&view);
	/* The first time, or a wall clock from before 1970 parked its words. */
	if (any_parked(&view)) {
		handover_engage();
		handover_look(&view);
	}

	clocksource_sample(&p->cs, sample);
	events = timekeeper_advance(&p->tk, sample);
	if (events != 0 || sample->mono_ns >= p->boot_due_ns)
		look_at_boot(p);

	evaluate(p, sample, &now);
	if (!handover_publish(&view, &now, sample->wall_ns, p->cs.lag_ns))
		handover_refresh(&now);
	account(p, events);

	if (p->phase == PUBLISHER_WAITING)
		calibrate(p);
	else if (p->cs.read != NULL)
		look_after(p, sample, events);
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
	if (ct_page.generation > generation)
		generation = ct_page.generation;
	__atomic_store_n(&ct_page.generation, generation, __ATOMIC_RELAXED);
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
	long long off_us =
		__atomic_load_n(&p->off_ns, __ATOMIC_RELAXED) / 1000;
	long long within_us =
		__atomic_load_n(&p->within_ns, __ATOMIC_RELAXED) / 1000;

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

	switch (__atomic_load_n(&p->verdict, __ATOMIC_RELAXED)) {
	case TRUST_STOOD:
		snprintf(buf, size, "dropped for realtime: it stood still for "
			"%lld us", within_us);
		break;
	case TRUST_BACKWARDS:
		snprintf(buf, size, "dropped for realtime: it ran backwards");
		break;
	case TRUST_SOURCE:
		snprintf(buf, size, "dropped for realtime: the kernel has left "
			"this clocksource");
		break;
	default:
		snprintf(buf, size, "dropped for realtime: off by %+lld us "
			"within %lld us", off_us, within_us);
		break;
	}
}
