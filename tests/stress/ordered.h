/* SPDX-License-Identifier: MIT */
/*
 * Threads that pass stamps of ordered precise time to each other: what is read
 * after a stamp was received is never less than that, not by a nanosecond.
 * Included by the one source file of a program.
 */
#ifndef ORDERED_H
#define ORDERED_H

#include "suite.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cachedtime.h>

#define US INT64_C(1000)
#define MS INT64_C(1000000)
#define SEC INT64_C(1000000000)

/* Where nobody answers, somebody else wants the core. */
#define SPINS 1000
#define MANY 4

static int64_t stamps_each = 1000000; /* of a test */
static bool wall;		      /* else mono */

/* Relaxed: flags and figures. */
static bool enough, over;
static uint64_t passed; /* stamps */
static int64_t backward, first_back_ns;

/* Who has the turn, by the number of stamps; and the last stamp. */
static struct {
	uint64_t turn;
	int64_t stamp;
} __attribute__((aligned(64))) mailbox[MANY];

static inline int64_t read_ordered(void)
{
	return wall ? ct_precise_ordered_ns() : ct_precise_mono_ordered_ns();
}

static inline int64_t read_unordered(void)
{
	return wall ? ct_precise_ns() : ct_precise_mono_ns();
}

static inline bool is_set(const bool *flag)
{
	return __atomic_load_n(flag, __ATOMIC_RELAXED);
}

static inline void set(bool *flag)
{
	__atomic_store_n(flag, true, __ATOMIC_RELAXED);
}

static inline void judge(int64_t taken, int64_t received)
{
	if (taken >= received)
		return;
	if (__atomic_fetch_add(&backward, 1, __ATOMIC_RELAXED) == 0)
		__atomic_store_n(
			&first_back_ns, received - taken, __ATOMIC_RELAXED);
}

/* To a core of its own, if there is one. */
static inline void pin(int nth)
{
	cpu_set_t all, one;

	sched_getaffinity(0, sizeof(all), &all);
	CPU_ZERO(&one);
	for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &all) || nth-- > 0)
			continue;
		CPU_SET(cpu, &one);
		sched_setaffinity(0, sizeof(one), &one);
		return;
	}
}

/* False: the other one has ended. */
static inline bool wait_for_turn(uint64_t turn)
{
	/* Acquire: the stamp that comes with it. */
	for (int i = 1;
		__atomic_load_n(&mailbox[0].turn, __ATOMIC_ACQUIRE) != turn;
		i++) {
		if (is_set(&over))
			return false;
		if (i % SPINS == 0)
			sched_yield();
	}
	return true;
}

/* Two in turns: each waits for the other's stamp. */
static inline void *pass_in_turns(void *arg)
{
	uint64_t turn = (uint64_t)(uintptr_t)arg;
	int64_t taken, last_ns = 0, now_ns;

	pin((int)turn);
	for (; wait_for_turn(turn); turn += 2) {
		taken = read_ordered();
		judge(taken, mailbox[0].stamp);
		mailbox[0].stamp = taken;
		if (turn >= (uint64_t)stamps_each && is_set(&enough))
			set(&over);
		__atomic_store_n(&passed, turn, __ATOMIC_RELAXED);
		/* Release: with the stamp. */
		__atomic_store_n(
			&mailbox[0].turn, turn + 1, __ATOMIC_RELEASE);

		/* Those promise it within a thread. */
		now_ns = read_unordered();
		judge(now_ns, last_ns);
		last_ns = now_ns;
	}
	return NULL;
}

/* Any number, as they come. */
static inline void *pass_freely(void *arg)
{
	int64_t each = stamps_each / MANY;

	(void)arg;
	for (int64_t i = 0; i < each || !is_set(&enough); i++) {
		/* Acquire and release: the stamp received happens before the
		 * read, as between any two threads that talk. */
		int64_t *stamp = &mailbox[i % MANY].stamp;
		int64_t received = __atomic_load_n(stamp, __ATOMIC_ACQUIRE);
		int64_t taken = read_ordered();

		judge(taken, received);
		__atomic_store_n(stamp, taken, __ATOMIC_RELEASE);
		if (i % 64 == 0)
			__atomic_fetch_add(&passed, 64, __ATOMIC_RELAXED);
	}
	return NULL;
}

static inline void begin_readers(
	pthread_t *reader, int readers, void *(*pass)(void *))
{
	for (intptr_t i = 0; i < readers; i++)
		ck_assert_int_eq(pthread_create(&reader[i], NULL, pass,
					 (void *)i), 0);
}

static inline void assert_none_went_back(void)
{
	ck_assert_msg(backward == 0, "%lld went back, the first by %lld ns",
		(long long)backward, (long long)first_back_ns);
}

static inline int start(const char *backend, bool ticker)
{
	struct ct_config config = { .size = sizeof(config),
		.mode = ticker ? CT_MODE_TICK : CT_MODE_MANUAL,
		.backend = backend };

	return ct_start(&config);
}

static inline bool counts(void)
{
	struct ct_status status = { .size = sizeof(status) };

	ct_status(&status);
	return status.precise != 0;
}

/* Reads until precise time comes from the counter. */
static inline bool wait_for_counter(void)
{
	int64_t deadline_ns = clock_ns(CLOCK_MONOTONIC) + 10 * SEC;

	while (clock_ns(CLOCK_MONOTONIC) < deadline_ns) {
		ct_precise_mono_ns();
		if (counts())
			return true;
		sleep_ns(100 * US);
	}
	return false;
}

static inline uint64_t segments(void)
{
	return __atomic_load_n(&ct_page.segment_seq, __ATOMIC_RELAXED);
}

/* In a child, so as to leave the tests a library that has never been used. */
static inline bool counter_can_be_had(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		start("tsc", false);
		_exit(!wait_for_counter());
	}
	return waitpid(pid, &status, 0) == pid && status == 0;
}

#endif /* ORDERED_H */
