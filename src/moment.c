/* SPDX-License-Identifier: MIT */
#include "moment.h"

#include "handover.h"
#include "kernel_clock.h"
#include "latch.h"
#include "steps.h"

/* Between two clocks that are read at once: it can't have been. */
#define LATE_NS (NS_PER_SEC / 4)

void moment_publish(const struct moment *moment)
{
	/* Relaxed: one writer at a time. */
	uint64_t seq =
		__atomic_load_n(&ct_page.moment_seq, __ATOMIC_RELAXED) + 1;
	struct ct_moment *copy = &ct_page.moment[latch_copy(seq)];

	latch_store(&copy->wall_offset_ns, moment->wall_offset_ns);
	latch_store(&copy->tai_offset_ns, moment->tai_offset_ns);
	latch_store(&copy->generation, moment->generation);
	latch_publish(&ct_page.moment_seq, seq);
}

/* As published last; returns the latch's count. */
static uint64_t read_published(struct moment *moment)
{
	uint64_t seq;

	do {
		const struct ct_moment *copy;

		seq = latch_begin(&ct_page.moment_seq);
		copy = &ct_page.moment[latch_copy(seq)];
		moment->wall_offset_ns = latch_load(&copy->wall_offset_ns);
		moment->tai_offset_ns = latch_load(&copy->tai_offset_ns);
		moment->generation = latch_load(&copy->generation);
	} while (latch_moved(&ct_page.moment_seq, seq));
	return seq;
}

int64_t moment_tai_offset_ns(void)
{
	int64_t before_ns, wall_ns, tai_ns;

	/* Pre-empted in between, it could be a second off. */
	do {
		before_ns = kernel_clock_ns(CLOCK_MONOTONIC);
		wall_ns = kernel_clock_ns(CLOCK_REALTIME);
		tai_ns = kernel_clock_ns(CLOCK_TAI);
	} while (kernel_clock_ns(CLOCK_MONOTONIC) - before_ns > LATE_NS);

	return (tai_ns - wall_ns + NS_PER_SEC / 2) / NS_PER_SEC * NS_PER_SEC;
}

/* Nothing is published: the kernel's clocks. */
static void look(struct moment *moment)
{
	moment->generation = steps_look();
	moment->wall_offset_ns = steps_offset_ns();
	moment->tai_offset_ns = moment_tai_offset_ns();
}

void moment_snapshot(struct ct_snapshot *snap)
{
	struct moment moment;
	int64_t cached_ns, mono_ns, wall_ns;
	uint64_t seq;

	do {
		seq = read_published(&moment);
		/* Acquire: the latch is looked at after it. */
		cached_ns = __atomic_load_n(&ct_page.mono_ns, __ATOMIC_ACQUIRE);
	} while (latch_moved(&ct_page.moment_seq, seq));

	/* The word, which never goes back between live and cached. */
	mono_ns = cached_ns > 0 ? cached_ns : handover_read(CT_WORD_MONO_NS);
	if (cached_ns <= 0 || moment.generation == 0)
		look(&moment);

	wall_ns = mono_ns + moment.wall_offset_ns;
	snap->wall_ns = wall_ns;
	snap->mono_ns = mono_ns;
	snap->wall_s = wall_ns / NS_PER_SEC - (wall_ns % NS_PER_SEC < 0);
	snap->generation = moment.generation;
	snap->tai_offset_s = moment.tai_offset_ns / NS_PER_SEC;
	snap->age_ns = 0;
	if (cached_ns > 0)
		snap->age_ns = kernel_clock_ns(CLOCK_MONOTONIC) - mono_ns;
	if (snap->age_ns < 0)
		snap->age_ns = 0;
}
