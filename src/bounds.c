/* SPDX-License-Identifier: MIT */
#include "bounds.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/timex.h>

#include "arith.h"
#include "kernel_clock.h"
#include "latch.h"
#include "lock.h"
#include "steps.h"

/* The kernel lets maxerror grow by 500 us at the turn of each second (MAXFREQ,
 * kernel/time/ntp.c), so what it says may be a second old. */
#define STALE_NS NS_PER_SEC
/* Where it stops counting: never synchronised, or given up (NTP_PHASE_LIMIT). */
#define MAXERROR_END_US 16000000

/* What adjtimex(2) said. */
struct report {
	int64_t mono_ns;	/* when */
	int64_t wall_offset_ns; /* wall - mono by then */
	int64_t maxerror_ns;
	int64_t tolerance_ppb;
	int64_t status;
	int64_t tai_offset_s;
};

/* The last one, under a latch; its zeros are out of date. Written under
 * ct_page.bounds_lock, which a fork sets free. */
static struct {
	uint64_t seq;
	struct report copy[2];
} last;

static void load(struct report *report)
{
	uint64_t seq;

	do {
		const struct report *copy;

		seq = latch_begin(&last.seq);
		copy = &last.copy[latch_copy(seq)];
		report->mono_ns = latch_load(&copy->mono_ns);
		report->wall_offset_ns = latch_load(&copy->wall_offset_ns);
		report->maxerror_ns = latch_load(&copy->maxerror_ns);
		report->tolerance_ppb = latch_load(&copy->tolerance_ppb);
		report->status = latch_load(&copy->status);
		report->tai_offset_s = latch_load(&copy->tai_offset_s);
	} while (latch_moved(&last.seq, seq));
}

/* For the next caller. If somebody else is at it, his will do. */
static void store(const struct report *report)
{
	struct report *copy;
	uint64_t seq;

	if (!lock_try(&ct_page.bounds_lock))
		return;
	/* Relaxed: under the lock. */
	seq = __atomic_load_n(&last.seq, __ATOMIC_RELAXED) + 1;
	copy = &last.copy[latch_copy(seq)];
	latch_store(&copy->mono_ns, report->mono_ns);
	latch_store(&copy->wall_offset_ns, report->wall_offset_ns);
	latch_store(&copy->maxerror_ns, report->maxerror_ns);
	latch_store(&copy->tolerance_ppb, report->tolerance_ppb);
	latch_store(&copy->status, report->status);
	latch_store(&copy->tai_offset_s, report->tai_offset_s);
	latch_publish(&last.seq, seq);
	lock_release(&ct_page.bounds_lock);
}

/* Wall, and wall - mono, well enough to see a step. */
static int64_t look(int64_t *mono_ns, int64_t *offset_ns)
{
	int64_t wall_ns;

	*mono_ns = kernel_clock_ns(CLOCK_MONOTONIC);
	wall_ns = kernel_clock_ns(CLOCK_REALTIME);
	*offset_ns = wall_ns - *mono_ns;
	return wall_ns;
}

static int ask_kernel(struct report *report)
{
	struct timex tx = { .modes = 0 };
	int saved = errno;
	int ret = adjtimex(&tx);

	if (ret < 0) {
		ret = -errno;
		errno = saved;
		return ret;
	}
	/* Tolerance: ppm with a 16 bit fraction. */
	report->tolerance_ppb = (int64_t)tx.tolerance * 1000 / 65536;
	report->maxerror_ns = (int64_t)tx.maxerror * 1000;
	report->tai_offset_s = tx.tai;
	if (tx.maxerror >= MAXERROR_END_US)
		report->status = CT_BOUNDS_UNKNOWN;
	else if (ret == TIME_ERROR || (tx.status & STA_UNSYNC) != 0)
		report->status = CT_BOUNDS_FREE_RUNNING;
	else
		report->status = CT_BOUNDS_SYNCHRONISED;
	return 0;
}

/* Is it still what the kernel would say? Preempted between the two clocks, it
 * looks like a step, and the kernel is asked once more. */
static bool holds(const struct report *report, int64_t mono_ns, int64_t offset_ns)
{
	int64_t age_ns = mono_ns - report->mono_ns;
	int64_t off_ns = offset_ns - report->wall_offset_ns;

	return report->mono_ns != 0 && age_ns >= 0 && age_ns < STALE_NS &&
	       off_ns < STEPS_MIN_NS && off_ns > -STEPS_MIN_NS;
}

static void unknown(struct ct_bounds *bounds)
{
	bounds->earliest_ns = INT64_MIN;
	bounds->latest_ns = INT64_MAX;
	bounds->status = CT_BOUNDS_UNKNOWN;
}

int bounds_read(struct ct_bounds *bounds)
{
	struct report report;
	int64_t wall_ns, mono_ns, offset_ns, error_ns;
	int ret;

	load(&report);
	wall_ns = look(&mono_ns, &offset_ns);
	while (!holds(&report, mono_ns, offset_ns)) {
		/* The clocks before and after: a step in between shows. */
		report.mono_ns = mono_ns;
		report.wall_offset_ns = offset_ns;
		ret = ask_kernel(&report);
		if (ret != 0) {
			bounds->tai_offset_s = 0;
			unknown(bounds);
			return ret;
		}
		wall_ns = look(&mono_ns, &offset_ns);
		if (holds(&report, mono_ns, offset_ns))
			store(&report);
	}

	bounds->tai_offset_s = report.tai_offset_s;
	if (report.status == CT_BOUNDS_UNKNOWN) {
		unknown(bounds);
		return 0;
	}
	error_ns = report.maxerror_ns +
		   (mono_ns - report.mono_ns + STALE_NS) / 1000 *
			   report.tolerance_ppb / 1000000 + 1;
	bounds->earliest_ns = wall_ns - error_ns;
	bounds->latest_ns = wall_ns + error_ns;
	bounds->status = (enum ct_bounds_status)report.status;
	return 0;
}
