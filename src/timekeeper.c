/* SPDX-License-Identifier: MIT */
#include "timekeeper.h"

#include <stdbool.h>
#include <string.h>

#include "arith.h"

#define SHIFT 32

/* An error of the line is worked off over this time or two samples, whichever
 * is longer. */
#define SLEW_NS INT64_C(100000000)
/* Slewing changes the rate by an eighth at most: time stays recognisable. */
#define SLEW_MAX_SHIFT 3

#define RATE_ERROR_MAX_PPB 500000
#define RATE_MAX (UINT64_MAX / 2)
/* A measured rate goes out of date by 1 ppb in this time: the kernel may have
 * begun to slew its clock. */
#define RATE_AGEING_NS (NS_PER_SEC / 100)
/* The rate is measured over one to two of these. */
#define ANCHOR_NS (8 * NS_PER_SEC)
/* More error than this means that the rate has changed: measure anew, from an
 * anchor no older than this. */
#define RATE_CHANGED_NS INT64_C(10000)
#define RATE_SETTLING_NS INT64_C(10000000)

/* Far more than any true delta, and twice it still fits into an int64_t. */
#define DELTA_MAX_NS (INT64_MAX / 2)

static int64_t clamp(int64_t value, int64_t limit)
{
	if (value < -limit)
		return -limit;
	if (value > limit)
		return limit;
	return value;
}

/* ns since the base, in 2^-32; saturates. */
static u128 line(const struct timekeeper *tk, uint64_t cycles)
{
	uint64_t delta = (cycles - tk->cycle_base) & tk->mask;
	u128 ns = (u128)delta * tk->mult;
	u128 max = (u128)DELTA_MAX_NS << SHIFT;

	return (ns < max ? ns : max) + tk->mono_frac;
}

int64_t timekeeper_mono(const struct timekeeper *tk, uint64_t cycles)
{
	return tk->mono_ns + (int64_t)(line(tk, cycles) >> SHIFT);
}

int64_t timekeeper_wall(const struct timekeeper *tk, uint64_t cycles)
{
	return timekeeper_mono(tk, cycles) + tk->wall_offset_ns;
}

static struct timekeeper_anchor anchor_at(
	const struct timekeeper *tk, const struct timekeeper_sample *sample)
{
	return (struct timekeeper_anchor){
		.total_cycles = tk->total_cycles +
				((sample->cycles - tk->cycle_base) & tk->mask),
		.mono_ns = sample->mono_ns,
		.mono_after_ns = sample->mono_after_ns,
	};
}

static void restart_rate(
	struct timekeeper *tk, const struct timekeeper_anchor *at)
{
	tk->anchor[0] = *at;
	tk->anchor[1] = *at;
	if (tk->rate_error_ppb < RATE_ERROR_MAX_PPB)
		tk->rate_error_ppb = RATE_ERROR_MAX_PPB;
	tk->rate_mono_ns = at->mono_ns;
	tk->rate_due_ns = at->mono_ns;
}

/*
 * The counter's rate over the window since the old anchor, taken if that is
 * known better by now than the rate in use.
 */
static void measure_rate(
	struct timekeeper *tk, const struct timekeeper_anchor *at)
{
	const struct timekeeper_anchor *from = &tk->anchor[0];
	uint64_t cycles = at->total_cycles - from->total_cycles;
	int64_t shortest_ns = at->mono_ns - from->mono_after_ns;
	int64_t longest_ns = at->mono_after_ns - from->mono_ns;
	int64_t known_ppb = tk->rate_error_ppb +
			    (at->mono_ns - tk->rate_mono_ns) / RATE_AGEING_NS;
	u128 doubled, error, rate;
	int64_t error_ppb;

	/* Divisions are for when there is something new to learn: when the
	 * window has grown by a quarter. */
	if (cycles == 0 || shortest_ns <= 0 || at->mono_ns < tk->rate_due_ns)
		return;

	tk->rate_due_ns = at->mono_ns + shortest_ns / 4;
	error = (u128)(uint64_t)(longest_ns - shortest_ns) * (NS_PER_SEC / 2) /
		(uint64_t)shortest_ns;
	error_ppb = error < INT64_MAX ? (int64_t)error : INT64_MAX;
	if (error_ppb <= known_ppb) {
		/* Twice the middle of the two, hence a shift of one less. */
		doubled = (u128)(uint64_t)shortest_ns + (uint64_t)longest_ns;
		rate = (doubled << (SHIFT - 1)) / cycles;
		/* A counter that all but stands has no rate to speak of. */
		tk->rate = rate < RATE_MAX ? (uint64_t)rate : RATE_MAX;
		tk->rate_error_ppb = error_ppb;
		tk->rate_mono_ns = at->mono_ns;
	}

	if (at->mono_ns - tk->anchor[1].mono_ns >= ANCHOR_NS) {
		tk->anchor[0] = tk->anchor[1];
		tk->anchor[1] = *at;
	}
}

/*
 * Begin the line anew on the kernel's clock, at its earliest, so as not to run
 * ahead of it; if the line is ahead already, it waits.
 */
static void rebase(struct timekeeper *tk,
	const struct timekeeper_sample *sample,
	const struct timekeeper_anchor *at)
{
	/* Twice in a row, or soon again, means that the rate is wrong, not the
	 * clock: then any measurement is better than none. */
	if (tk->parted || at->mono_ns - tk->anchor[0].mono_ns < RATE_SETTLING_NS) {
		tk->rate_error_ppb = INT64_MAX / 2;
		measure_rate(tk, at);
	}
	restart_rate(tk, at);

	if (sample->mono_ns > tk->mono_ns)
		tk->mono_ns = sample->mono_ns;
	tk->mono_frac = 0;
	tk->mult = tk->rate;
	tk->rebases++;
}

/* Bend the line so that it meets the kernel's clock `error_ns` further on. */
static void slew(struct timekeeper *tk, int64_t error_ns, int64_t elapsed_ns)
{
	int64_t over_ns = 2 * elapsed_ns > SLEW_NS ? 2 * elapsed_ns : SLEW_NS;
	int64_t limit_ns = over_ns >> SLEW_MAX_SHIFT;
	u128 stretched;

	if (error_ns == 0) {
		tk->mult = tk->rate;
		return;
	}

	error_ns = clamp(error_ns, limit_ns);
	stretched = (u128)tk->rate * (uint64_t)(over_ns + error_ns);
	tk->mult = (uint64_t)(stretched / (uint64_t)over_ns);
}

static bool advance_mono(
	struct timekeeper *tk, const struct timekeeper_sample *sample)
{
	struct timekeeper_anchor at = anchor_at(tk, sample);
	int64_t last_ns = tk->mono_ns;
	u128 now = line(tk, sample->cycles);
	int64_t now_ns = last_ns + (int64_t)(now >> SHIFT);
	int64_t ahead_ns =
		outside(now_ns, sample->mono_ns, sample->mono_after_ns);

	if (ahead_ns > TIMEKEEPER_REBASE_NS ||
		ahead_ns < -TIMEKEEPER_REBASE_NS) {
		rebase(tk, sample, &at);
		tk->parted = true;
	} else {
		tk->mono_ns = now_ns;
		tk->mono_frac = (uint32_t)now;
		measure_rate(tk, &at);
		if ((ahead_ns > RATE_CHANGED_NS ||
			    ahead_ns < -RATE_CHANGED_NS) &&
			at.mono_ns - tk->anchor[0].mono_ns > RATE_SETTLING_NS)
			restart_rate(tk, &at);
		slew(tk, -ahead_ns, now_ns - last_ns);
		tk->parted = false;
	}

	tk->cycle_base = sample->cycles;
	tk->total_cycles = at.total_cycles;
	return tk->parted;
}

static bool advance_wall(struct timekeeper *tk,
	const struct timekeeper_sample *sample, int64_t elapsed_ns)
{
	int64_t lo = sample->wall_ns - sample->mono_after_ns;
	int64_t hi = sample->wall_ns - sample->mono_ns;
	int64_t off_ns = outside(tk->wall_offset_ns, lo, hi);
	int64_t limit_ns = TIMEKEEPER_STEP_NS + tk->wall_error_ns;

	if (off_ns >= limit_ns || off_ns <= -limit_ns) {
		tk->wall_offset_ns -= off_ns;
		tk->wall_error_ns = hi - lo;
		tk->last_step_ns = -off_ns;
		tk->steps++;
		return true;
	}

	if (off_ns > TIMEKEEPER_STEP_NS || off_ns < -TIMEKEEPER_STEP_NS)
		/* Only a first sample that was pre-empted is so far off. */
		tk->wall_offset_ns -= off_ns;
	else
		/* At most a sixteenth of the time that passed, so that wall
		 * goes on. */
		tk->wall_offset_ns -= clamp(off_ns, elapsed_ns / 16);
	if (hi - lo < tk->wall_error_ns)
		tk->wall_error_ns = hi - lo;
	return false;
}

unsigned int timekeeper_advance(
	struct timekeeper *tk, const struct timekeeper_sample *sample)
{
	int64_t last_ns = tk->mono_ns;
	unsigned int events = 0;

	if (advance_mono(tk, sample))
		events |= TIMEKEEPER_REBASED;
	if (advance_wall(tk, sample, tk->mono_ns - last_ns))
		events |= TIMEKEEPER_STEPPED;

	return events;
}

uint64_t timekeeper_hz(const struct timekeeper *tk)
{
	u128 second = (u128)NS_PER_SEC << SHIFT;

	return tk->rate > 0 ? (uint64_t)((second + tk->rate / 2) / tk->rate) : 0;
}

void timekeeper_init(struct timekeeper *tk, uint64_t mask, uint64_t hz,
	int64_t error_ppb, const struct timekeeper_sample *sample)
{
	struct timekeeper_anchor at;

	memset(tk, 0, sizeof(*tk));
	tk->mask = mask;
	tk->rate = (uint64_t)(((u128)NS_PER_SEC << SHIFT) / hz);
	tk->mult = tk->rate;
	tk->cycle_base = sample->cycles;
	tk->mono_ns = sample->mono_ns;
	/* At its largest: who takes the smaller of the line and the sample
	 * gets the sample, until a better one tells more. */
	tk->wall_offset_ns = sample->wall_ns - sample->mono_ns;
	tk->wall_error_ns = sample->mono_after_ns - sample->mono_ns;
	at = anchor_at(tk, sample);
	restart_rate(tk, &at);
	tk->rate_error_ppb = error_ppb;
}
