/* SPDX-License-Identifier: MIT */
#include "precise.h"

#include <sched.h>
#include <stdio.h>

#include "arith.h"
#include "kernel_clock.h"
#include "lock.h"
#include "segment.h"
#include "servo.h"
#include "steps.h"
#include "watch.h"

/* A difference between line and kernel is worked off over this time. */
#define SLEW_NS INT64_C(4000000)
/* More than this isn't slewed. */
#define SLEW_MAX_NS INT64_C(100000)

#define SAMPLE_TRIES 3

/* wall - mono, of a sample, beyond its bracket: somebody has set the clock. */
#define OFFSET_STEP_NS INT64_C(500)
#define OFFSET_MEMORY 16
/* A look so many times wider than they usually are. */
#define WIDE 4

/* While there is no segment: how often to try for one. */
#define RETRY_NS INT64_C(1000000)

/* More than enough for a holder that was preempted. */
#define LOCK_TRIES 100000

/* As long as this after a reader had to renew one, the ticker does. */
#define WANTED_NS NS_PER_SEC

/* One look: counter, mono, counter, wall, counter. */
struct look {
	uint64_t cycles[3];
	int64_t mono_ns;
	int64_t wall_ns;
};

/* What ct_page.segment_lock guards, except where it says [a]: atomic, relaxed. */
static struct {
	bool enabled;	   /* [a] there is a counter to be used */
	int64_t due_ns;	   /* [a] mono before which not to try again */
	int64_t wanted_ns; /* [a] mono until which the ticker renews */
	int64_t error_ns;  /* [a] for people */
	bool dropped;	   /* [a] */
	struct watch_fate fate; /* [a] */

	struct clocksource cs;
	bool calibrated;
	struct calibration calibration;
	struct watch watch;
	struct servo servo;
	int64_t offset_shown_ns;   /* wall - mono, as published ... */
	int64_t offset;		   /* ... and more, in 1 / OFFSET_MEMORY ns */
	uint64_t generation;	   /* of steps, before the last look */
	uint64_t usual_width;	   /* of a look, in cycles */
} precise;

static bool is_enabled(void)
{
	return __atomic_load_n(&precise.enabled, __ATOMIC_RELAXED);
}

static uint64_t width(const struct look *look)
{
	return look->cycles[2] - look->cycles[0];
}

static void look_once(struct look *look)
{
	look->cycles[0] = segment_counter();
	look->mono_ns = kernel_clock_ns(CLOCK_MONOTONIC);
	look->cycles[1] = segment_counter();
	look->wall_ns = kernel_clock_ns(CLOCK_REALTIME);
	look->cycles[2] = segment_counter();
}

/* The narrowest of a few; of one that is as narrow as they usually are. */
static void look_at_clocks(struct look *look)
{
	struct look next;

	look_once(look);
	for (int i = 1; i < SAMPLE_TRIES &&
			width(look) > precise.usual_width + precise.usual_width / 4;
		i++) {
		look_once(&next);
		if (width(&next) < width(look))
			*look = next;
	}
	/* It grows by a 64th, to follow a clock that has become slower. */
	precise.usual_width += precise.usual_width / 64;
	if (precise.usual_width == 0 || width(look) < precise.usual_width)
		precise.usual_width = width(look) + 1;
}

static int64_t in_ns(uint64_t cycles)
{
	return (int64_t)(((u128)cycles * precise.servo.rate) >> 32);
}

static struct servo_sample mono_of(const struct look *look)
{
	uint64_t half = (look->cycles[1] - look->cycles[0]) / 2;

	return (struct servo_sample){
		.cycles = look->cycles[0] + half,
		.mono_ns = look->mono_ns,
		.error_ns = in_ns(half) + 1,
	};
}

/* wall - mono: both looks in the middle of their brackets. */
static int64_t offset_of(const struct look *look)
{
	return look->wall_ns - look->mono_ns - in_ns(width(look) / 2);
}

/*
 * wall - mono is one number until somebody sets the clock: average it. What is
 * shown follows by a nanosecond at a time, which mono makes good, so that wall
 * goes on; and a step at once.
 */
static void follow_wall(const struct look *look)
{
	int64_t sample_ns = offset_of(look) - precise.offset_shown_ns;
	int64_t off_ns = sample_ns - precise.offset / OFFSET_MEMORY;
	int64_t limit_ns = OFFSET_STEP_NS + in_ns(width(look));

	if (off_ns > limit_ns || off_ns < -limit_ns) {
		precise.generation = steps_look();
		/* As counted, which readers may have been told already; unless
		 * it was too little to be counted. */
		off_ns = precise.offset_shown_ns + sample_ns -
			 steps_offset_ns();
		precise.offset_shown_ns += sample_ns;
		precise.offset = 0;
		if (off_ns <= limit_ns && off_ns >= -limit_ns) {
			precise.offset_shown_ns -= off_ns;
			precise.offset = off_ns * OFFSET_MEMORY;
		}
		return;
	}
	/* Preempted half way, it tells nothing about nanoseconds. */
	if (width(look) > WIDE * precise.usual_width)
		return;

	precise.offset += sample_ns - precise.offset / OFFSET_MEMORY;
	/* Two at least, lest it should waver. */
	if (precise.offset >= 2 * OFFSET_MEMORY) {
		precise.offset_shown_ns += SEGMENT_OFFSET_SLEW_NS;
		precise.offset -= SEGMENT_OFFSET_SLEW_NS * OFFSET_MEMORY;
	} else if (precise.offset <= -2 * OFFSET_MEMORY) {
		precise.offset_shown_ns -= SEGMENT_OFFSET_SLEW_NS;
		precise.offset += SEGMENT_OFFSET_SLEW_NS * OFFSET_MEMORY;
	}
}

static void set_due(int64_t mono_ns)
{
	__atomic_store_n(&precise.due_ns, mono_ns, __ATOMIC_RELAXED);
}

/* Readers go live, beginning where the line is. */
static void publish_none(int64_t mono_ns)
{
	struct segment none = {
		.wall_offset_ns = precise.offset_shown_ns,
		.generation = precise.generation,
	};

	segment_publish(&none);
	set_due(mono_ns + RETRY_NS);
}

static void drop(enum trust_verdict verdict, int64_t mono_ns)
{
	watch_note(&precise.watch, verdict, &precise.fate);
	__atomic_store_n(&precise.dropped, true, __ATOMIC_RELAXED);
	__atomic_store_n(&precise.enabled, false, __ATOMIC_RELAXED);
	publish_none(mono_ns);
}

/* How far the line that readers see is behind the kernel's, at `cycles`. */
static int64_t behind_ns(uint64_t cycles)
{
	struct segment s;
	int64_t kernel_ns = servo_mono(&precise.servo, cycles);

	segment_current(&s);
	if (segment_covers(&s, cycles))
		return kernel_ns - segment_mono(&s, cycles);
	return kernel_ns - segment_live_mono(&s, kernel_ns);
}

/* A segment from `cycles` on that meets the kernel's line SLEW_NS later. */
static void publish_next(uint64_t cycles, int64_t mono_ns)
{
	int64_t off_ns = behind_ns(cycles);
	struct segment next = {
		.cycles = cycles,
		.mult = precise.servo.rate,
		.span = servo_cycles(&precise.servo, PRECISE_SEGMENT_NS),
		.wall_offset_ns = precise.offset_shown_ns,
		.jumps = off_ns > SLEW_MAX_NS,
		.generation = precise.generation,
		.ahead_ns = -off_ns,
	};
	i128 bend;

	if (off_ns < -SLEW_MAX_NS) {
		publish_none(mono_ns); /* until the kernel's has come up */
		return;
	}
	if (!next.jumps) {
		bend = (i128)next.mult * off_ns / SLEW_NS;
		next.mult = (uint64_t)(next.mult + bend);
		next.lead_ns = off_ns * PRECISE_SEGMENT_NS / SLEW_NS - off_ns;
	}
	segment_publish(&next);
	set_due(0);
}

static void begin(void)
{
	precise.calibrated = false;
	precise.usual_width = 0;
	calibration_init(&precise.calibration, precise.cs.mask);
	ct_page.segment_begun = 1;
}

/* Measure the counter's rate, a sample at a time. True when that is done. */
static bool calibrate(const struct look *look)
{
	struct servo_sample sample;
	struct trust_sample raw;

	if (!clocksource_sample_raw(&precise.cs, &raw) ||
		!calibration_add(&precise.calibration, &raw, &precise.cs.hz,
			&precise.cs.error_ppb))
		return false;

	precise.servo.rate =
		(uint64_t)(((u128)NS_PER_SEC << 32) / precise.cs.hz);
	sample = mono_of(look);
	servo_init(&precise.servo, precise.servo.rate, &sample);
	watch_begin(&precise.watch, &precise.cs, look->mono_ns);
	/* At its largest, so as not to fall behind a live read. */
	precise.offset = 0;
	precise.offset_shown_ns = look->wall_ns - look->mono_ns;
	precise.calibrated = true;
	return true;
}

/* One step on, with ct_page.segment_lock. */
static void advance(void)
{
	struct servo_sample sample;
	struct look look;
	enum servo_event event;
	enum trust_verdict verdict;

	if (ct_page.segment_begun == 0)
		begin();

	/* Before the look: a step counted later isn't in it. */
	precise.generation = steps_generation();
	look_at_clocks(&look);
	if (!precise.calibrated) {
		calibrate(&look);
		set_due(look.mono_ns + RETRY_NS);
		return;
	}

	sample = mono_of(&look);
	event = servo_advance(&precise.servo, &sample);
	verdict = watch_check(&precise.watch, &precise.cs, look.mono_ns,
		2 * sample.error_ns, event == SERVO_JUMPED);
	if (verdict != TRUST_GOOD) {
		drop(verdict, look.mono_ns);
		return;
	}
	follow_wall(&look);
	publish_next(look.cycles[2], look.mono_ns);
	__atomic_store_n(&precise.error_ns, precise.servo.misses / 16,
		__ATOMIC_RELAXED);
}

/* Renew what was number `seen`, unless somebody is at it. True if it isn't
 * the current one any more. */
static bool renew(uint64_t seen)
{
	struct segment s;
	bool renewed;

	if (!lock_try(&ct_page.segment_lock))
		return false;
	if (is_enabled() && segment_current(&s) == seen)
		advance();
	renewed = segment_current(&s) != seen;
	lock_release(&ct_page.segment_lock);
	return renewed;
}

/* Time for a reader to try? Wants the ticker to, from now on. */
static bool is_due(int64_t mono_ns)
{
	int64_t to_wait_ns = __atomic_load_n(&precise.due_ns, __ATOMIC_RELAXED) -
			     mono_ns;

	/* Longer than any: another time namespace, entered by a fork. */
	if (to_wait_ns > 0 && to_wait_ns <= 2 * RETRY_NS)
		return false;
	__atomic_store_n(&precise.wanted_ns, mono_ns + WANTED_NS,
		__ATOMIC_RELAXED);
	return true;
}

/* Mono, moved by the offset of a line that is there or was, so that it agrees with
 * those who have read that; unless the clock has been set since. */
static int64_t live_wall(const struct segment *s)
{
	int64_t shown_ns = s->mono_ns + s->wall_offset_ns;
	int64_t before_ns, wall_ns, after_ns, off_ns;

	if (s->span == 0) {
		wall_ns = kernel_clock_ns(CLOCK_REALTIME) + s->lead_ns;
		/* Past all that was shown. A step forward looks so too. */
		if (wall_ns >= shown_ns)
			return wall_ns;
	}

	before_ns = kernel_clock_ns(CLOCK_MONOTONIC);
	wall_ns = kernel_clock_ns(CLOCK_REALTIME);
	after_ns = kernel_clock_ns(CLOCK_MONOTONIC);
	off_ns = outside(s->wall_offset_ns, wall_ns - after_ns,
		wall_ns - before_ns);
	off_ns = off_ns < 0 ? -off_ns : off_ns;
	if (off_ns < STEPS_MIN_NS)
		return segment_live_mono(s, after_ns) + s->wall_offset_ns;
	/* Rule 5 of segment.h; with the offset that the next one will have. */
	steps_look();
	return segment_live_mono(s, after_ns) + steps_offset_ns();
}

static int64_t live(
	enum ct_precise which, const struct segment *s, int64_t mono_ns)
{
	return which == CT_PRECISE_WALL ? live_wall(s)
					: segment_live_mono(s, mono_ns);
}

int64_t precise_read(enum ct_precise which)
{
	bool tried = false;

	for (;;) {
		struct segment s;
		uint64_t number = segment_current(&s);
		uint64_t cycles;
		int64_t mono_ns = 0, ns;

		if (s.span != 0) {
			cycles = segment_counter();
			if (segment_is_over(number, (int64_t)cycles))
				continue;
			if (segment_covers(&s, cycles))
				return segment_mono(&s, cycles) +
				       (which == CT_PRECISE_WALL
						       ? s.wall_offset_ns
						       : 0);
		}

		if (is_enabled() || which == CT_PRECISE_MONO)
			mono_ns = kernel_clock_ns(CLOCK_MONOTONIC);
		if (is_enabled() && !tried && is_due(mono_ns)) {
			tried = true;
			if (renew(number))
				continue;
		}

		ns = live(which, &s, mono_ns);
		if (!segment_is_over(number, ns))
			return ns;
	}
}

void precise_ride(int64_t mono_ns, int64_t tick_ns)
{
	struct segment s;
	uint64_t number, cycles;

	if (!is_enabled() || tick_ns > PRECISE_SEGMENT_NS / 2 ||
		mono_ns > __atomic_load_n(
				  &precise.wanted_ns, __ATOMIC_RELAXED))
		return;

	number = segment_current(&s);
	cycles = segment_counter();
	/* Good for two ticks: the next one may be late. */
	if (s.span != 0 && segment_covers(&s, cycles) &&
		segment_covers(&s, cycles + segment_cycles(&s, 2 * tick_ns)))
		return;
	if (mono_ns >= __atomic_load_n(&precise.due_ns, __ATOMIC_RELAXED))
		renew(number);
}

/* Unless its holder has been lost, cancelled or jumped out of a signal handler,
 * it is free in a moment. */
static bool take_lock(void)
{
	for (int i = 0; i < LOCK_TRIES; i++) {
		if (lock_try(&ct_page.segment_lock))
			return true;
		sched_yield();
	}
	return false;
}

/* True with the lock. Without it, what is published lasts until it is over. */
static bool halt(void)
{
	__atomic_store_n(&precise.enabled, false, __ATOMIC_RELAXED);
	if (!take_lock())
		return false;
	if (ct_page.segment_seq != 0)
		publish_none(0);
	return true;
}

void precise_stop(void)
{
	if (halt())
		lock_release(&ct_page.segment_lock);
}

void precise_start(const struct clocksource *cs)
{
	/* As it is, where a first precise read has come before. */
	if (is_enabled() && cs->processors && precise.cs.read == cs->read)
		return;
	if (!halt())
		return;

	__atomic_store_n(&precise.dropped, false, __ATOMIC_RELAXED);
	precise.cs = *cs;
	ct_page.segment_begun = 0;
	set_due(0);
	__atomic_store_n(&precise.enabled, cs->processors, __ATOMIC_RELAXED);
	lock_release(&ct_page.segment_lock);
}

void precise_distrust(const struct watch *w, enum trust_verdict verdict)
{
	if (!is_enabled())
		return;
	watch_note(w, verdict, &precise.fate);
	__atomic_store_n(&precise.dropped, true, __ATOMIC_RELAXED);
	precise_stop();
}

bool precise_counts(int64_t *error_ns)
{
	struct segment s;

	segment_current(&s);
	*error_ns = __atomic_load_n(&precise.error_ns, __ATOMIC_RELAXED);
	return s.span != 0;
}

void precise_explain(char *buf, size_t size)
{
	int length;

	buf[0] = '\0';
	if (!__atomic_load_n(&precise.dropped, __ATOMIC_RELAXED))
		return;
	length = snprintf(buf, size, "; not for precise time: ");
	if (length > 0 && (size_t)length < size)
		watch_explain(&precise.fate, buf + length,
			size - (size_t)length);
}
