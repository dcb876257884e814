/* SPDX-License-Identifier: MIT */
/*
 * A reader of precise time that is preempted, after each of its instructions in
 * turn, while others publish segments, or are preempted half way themselves.
 * What it returns lies between a read before and a read after. Single-stepped
 * by the trap flag, so this knows x86-64 only.
 */
#include "suite.h"

#if !defined(__x86_64__)

int main(void)
{
	skip("knows how to single-step x86-64 only");
}

#else

#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <ucontext.h>
#include <x86intrin.h>

#include <cachedtime.h>

#include "segment.h"
#include "steps.h"

#define SEC INT64_C(1000000000)
#define TRAP_FLAG 0x100
/* Less steep than any counter's true line, so that what runs out is behind the
 * kernel's clock: 2^-32 ns per cycle. */
#define MULT (UINT64_C(1) << 29)
#define SPAN (UINT64_C(1) << 32)
/* A read's instructions are fewer. */
#define STEPS_MAX 2000
#define ROUNDS 2

static volatile sig_atomic_t steps, stop_at;
static void (*meanwhile)(void);
static unsigned int slopes;
/* wall - mono, about as the kernel has it. */
static int64_t offset_ns;

static struct segment next_segment(int64_t wall_offset_ns)
{
	return (struct segment){
		.cycles = segment_counter(),
		.mult = MULT / (1 + slopes++ % 7),
		.span = SPAN,
		.wall_offset_ns = wall_offset_ns,
	};
}

static int64_t offset_now(void)
{
	struct segment s;

	segment_current(&s);
	return s.wall_offset_ns;
}

static void publish(int64_t wall_offset_ns)
{
	struct segment next = next_segment(wall_offset_ns);

	segment_publish(&next);
}

static void publish_none(void)
{
	struct segment none = { .wall_offset_ns = offset_now() };

	segment_publish(&none);
}

/* As segment_publish() does, up to where it is preempted. */
static uint64_t fill_in_next(int64_t wall_offset_ns)
{
	uint64_t number = ct_page.segment_seq + 1;
	struct ct_segment *copy = &ct_page.segment[number & 1];
	struct segment next = next_segment(wall_offset_ns);

	copy->cycles = next.cycles;
	copy->mult = next.mult;
	copy->span = next.span;
	copy->proposed_ns = next.wall_offset_ns;
	copy->generation = 2 * steps_generation();
	copy->wall_offset_ns = INT64_MIN + (int64_t)number;
	copy->lead_ns = 0;
	copy->mono_ns = -(int64_t)number;
	return number;
}

static void let_time_pass(void)
{
}

static void one_published(void)
{
	publish(offset_now());
}

static void two_published(void)
{
	publish(offset_now());
	publish(offset_now());
}

/* Mono makes that good. */
static void offset_falls(void)
{
	publish(offset_now() - 1);
	publish(offset_now() - 1);
}

static void run_out(void)
{
	publish_none();
}

static void run_out_and_renewed(void)
{
	publish_none();
	publish(offset_now());
}

/* The clock has been set: who fills that in is preempted before it shows. */
static void half_published(void)
{
	fill_in_next(offset_now() + 3600 * SEC);
}

static void one_and_a_half_published(void)
{
	publish(offset_now());
	fill_in_next(offset_now() + 3600 * SEC);
}

/* The next reader must find where it begins. */
static void undecided(void)
{
	publish(offset_now());
	__atomic_exchange_n(&ct_page.segment_seq, fill_in_next(offset_now()),
		__ATOMIC_SEQ_CST);
}

/* Nobody has read meanwhile, so the next writer must. */
static void undecided_and_succeeded(void)
{
	undecided();
	publish(offset_ns);
}

static void (*const disturbances[])(void) = { let_time_pass, one_published,
	two_published, offset_falls, run_out, run_out_and_renewed,
	half_published, one_and_a_half_published, undecided,
	undecided_and_succeeded };

#define DISTURBANCES ((int)(sizeof(disturbances) / sizeof(disturbances[0])))

static void trapped(int signal, siginfo_t *info, void *context)
{
	greg_t *flags = &((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL];

	(void)signal;
	(void)info;
	if (steps++ != stop_at)
		return;
	meanwhile();
	*flags &= ~TRAP_FLAG;
}

#define READER(name)                                    \
	__attribute__((noinline)) static int64_t f_##name(void) \
	{                                               \
		return name();                          \
	}
READER(ct_precise_ns)
READER(ct_precise_mono_ns)
READER(ct_precise_ordered_ns)
READER(ct_precise_mono_ordered_ns)

static int64_t (*const readers[])(void) = { f_ct_precise_ns,
	f_ct_precise_mono_ns, f_ct_precise_ordered_ns,
	f_ct_precise_mono_ordered_ns };

#define READERS ((int)(sizeof(readers) / sizeof(readers[0])))

static void set_trap_flag(uint64_t flag)
{
	__writeeflags((__readeflags() & ~(uint64_t)TRAP_FLAG) | flag);
}

/* Stopped after so many instructions. False: it had fewer. */
static bool read_stopped(int64_t (*read)(void), int after)
{
	int64_t before_ns, ns, after_ns;

	steps = 0;
	stop_at = after;
	before_ns = read();
	set_trap_flag(TRAP_FLAG);
	ns = read();
	set_trap_flag(0);
	after_ns = read();

	if (ns < before_ns || ns > after_ns)
		ck_abort_msg("stopped after %d instructions: %lld, but %lld "
			     "before and %lld after", after, (long long)ns,
			(long long)before_ns, (long long)after_ns);
	return steps > after;
}

/* Nobody else publishes. */
static void begin(int disturbance)
{
	struct sigaction action = { .sa_sigaction = trapped,
		.sa_flags = SA_SIGINFO };
	struct ct_config config = { .size = sizeof(config),
		.mode = CT_MODE_OFF };

	ck_assert_int_eq(ct_start(&config), 0);
	sigaction(SIGTRAP, &action, NULL);
	meanwhile = disturbances[disturbance];
	offset_ns = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);
}

START_TEST(on_a_segment)
{
	int after = 0;

	begin(_i / READERS);
	for (int round = 0; round < ROUNDS; round++) {
		after = 0;
		do
			publish(offset_ns);
		while (read_stopped(readers[_i % READERS], after++));
	}
	/* It did read, instruction by instruction. */
	ck_assert_int_gt(after, 15);
	ck_assert_int_lt(after, STEPS_MAX);
}
END_TEST

/* No segment holds: through ct_precise_slow(), to its depths. */
START_TEST(on_none)
{
	int after = 0;

	begin(_i / 2);
	do {
		publish(offset_ns);
		publish_none();
	} while (read_stopped(readers[_i % 2], after++));
	ck_assert_int_gt(after, 50);
	ck_assert_int_lt(after, STEPS_MAX);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("preempted");
	TCase *tcase = tcase_create("reader preempted");

	tcase_add_loop_test(tcase, on_a_segment, 0, DISTURBANCES * READERS);
	tcase_add_loop_test(tcase, on_none, 0, DISTURBANCES * 2);
	tcase_set_timeout(tcase, 60);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}

#endif
