/* SPDX-License-Identifier: MIT */
#include "watch.h"

#include <stdio.h>
#include <string.h>

#include "kernel_clock.h"

/* How often sysfs may be asked for the kernel's clocksource ... */
#define KERNEL_INTERVAL_NS (NS_PER_SEC / 2)
/* ... which is where the kernel's clocks have become this much slower to read,
 * so many times in a row (a change from the TSC takes them out of the vDSO).
 * Nothing is opened without need in a process that may have been sandboxed
 * meanwhile. */
#define KERNEL_SLOWER 4
#define KERNEL_SLOW_SAMPLES 4

/* Less than this isn't a suspend. */
#define SUSPEND_MIN_NS INT64_C(1000000)

/* Has the machine slept since the last look? */
static bool has_slept(struct watch *w)
{
	int64_t most_ns = w->boot_offset_ns;
	int64_t before_ns = kernel_clock_ns(CLOCK_MONOTONIC);
	int64_t boot_ns = kernel_clock_ns(CLOCK_BOOTTIME);
	int64_t after_ns = kernel_clock_ns(CLOCK_MONOTONIC);

	/* At its largest then, at its smallest now: being preempted in between
	 * isn't a suspend. */
	w->boot_offset_ns = boot_ns - before_ns;
	return boot_ns - after_ns - most_ns > SUSPEND_MIN_NS;
}

void watch_begin(struct watch *w, const struct clocksource *cs, int64_t mono_ns)
{
	struct trust_sample raw;

	memset(w, 0, sizeof(*w));
	w->due_ns = mono_ns + WATCH_INTERVAL_NS;
	w->on = cs->watched && clocksource_sample_raw(cs, &raw);
	if (!w->on)
		return;

	trust_init(&w->trust, cs->mask, cs->hz, cs->error_ppb, &raw);
	w->kernel_due_ns = mono_ns + KERNEL_INTERVAL_NS;
	w->usual_bracket_ns = INT64_MAX;
	has_slept(w);
}

/* Has the kernel left the clocksource that vouches for the counter? */
static bool kernel_left(struct watch *w, const struct clocksource *cs,
	int64_t mono_ns, int64_t bracket_ns)
{
	char name[64];

	if (bracket_ns < w->usual_bracket_ns)
		w->usual_bracket_ns = bracket_ns;
	if (bracket_ns / KERNEL_SLOWER <= w->usual_bracket_ns)
		w->slow_in_a_row = 0;
	else
		w->slow_in_a_row++;
	if (!cs->kernels_own || mono_ns < w->kernel_due_ns ||
		w->slow_in_a_row < KERNEL_SLOW_SAMPLES)
		return false;

	w->kernel_due_ns = mono_ns + KERNEL_INTERVAL_NS;
	if (clocksource_kernel(name, sizeof(name)) == 0 &&
		!clocksource_kernel_trusts_tsc(name))
		return true;

	/* It's the processor that has become slower: get used to it. */
	w->usual_bracket_ns = bracket_ns;
	return false;
}

enum trust_verdict watch_check(struct watch *w, const struct clocksource *cs,
	int64_t mono_ns, int64_t bracket_ns, bool parted)
{
	struct trust_sample raw;

	if (!w->on)
		return TRUST_GOOD;
	if (kernel_left(w, cs, mono_ns, bracket_ns))
		return TRUST_SOURCE;
	if (!parted && mono_ns < w->due_ns)
		return TRUST_GOOD;

	w->due_ns = mono_ns + WATCH_INTERVAL_NS;
	if (!clocksource_sample_raw(cs, &raw))
		return TRUST_GOOD;
	/* A suspend stops one counter, resets another: no fault of theirs. */
	if (has_slept(w)) {
		trust_excuse(&w->trust, &raw);
		return TRUST_GOOD;
	}
	return trust_check(&w->trust, &raw);
}

void watch_note(const struct watch *w, enum trust_verdict verdict,
	struct watch_fate *fate)
{
	__atomic_store_n(&fate->verdict, verdict, __ATOMIC_RELAXED);
	__atomic_store_n(&fate->off_ns, w->trust.off_ns, __ATOMIC_RELAXED);
	__atomic_store_n(
		&fate->within_ns, w->trust.within_ns, __ATOMIC_RELAXED);
}

void watch_explain(const struct watch_fate *fate, char *buf, size_t size)
{
	long long off_us =
		__atomic_load_n(&fate->off_ns, __ATOMIC_RELAXED) / 1000;
	long long within_us =
		__atomic_load_n(&fate->within_ns, __ATOMIC_RELAXED) / 1000;

	switch (__atomic_load_n(&fate->verdict, __ATOMIC_RELAXED)) {
	case TRUST_STOOD:
		snprintf(buf, size, "it stood still for %lld us", within_us);
		break;
	case TRUST_BACKWARDS:
		snprintf(buf, size, "it ran backwards");
		break;
	case TRUST_SOURCE:
		snprintf(buf, size, "the kernel has left this clocksource");
		break;
	default:
		snprintf(buf, size, "off by %+lld us within %lld us", off_us,
			within_us);
		break;
	}
}
