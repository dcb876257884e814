/* SPDX-License-Identifier: MIT */
#include "ticker.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cachedtime.h>

#include "handover.h"
#include "kernel_clock.h"
#include "lock.h"
#include "page.h"
#include "precise.h"
#include "publisher.h"
#include "steps.h"

/* Its own frames take less than 2 KiB; a user's counter and a sanitizer need
 * the rest. Only what is touched costs memory. */
#define STACK_SIZE (256 * 1024)

/*
 * Up to this tick the thread sleeps with clock_nanosleep(2), which costs 14 %
 * less CPU per tick than a futex with a deadline (5.5 against 6.4 us:
 * docs/performance.md), but can't be woken: ticker_stop() waits for the deadline.
 */
#define NANOSLEEP_MAX_NS INT64_C(4000000)

/* The default slack of 50 us would be a good part of a short tick; a long one
 * leaves the kernel its freedom to join wake-ups. */
#define SLACK_MATTERS_NS INT64_C(10000000)

static struct {
	pthread_t thread;
	uint64_t joinable_in; /* the epoch that may join it; 0: none */
	uintptr_t self;	   /* its pthread_self(); relaxed: see ticker_is_self() */
	struct publisher publisher;
	int64_t tick_ns;
	struct ticker_priority priority;
	int error;	    /* relaxed: for people */
	int priority_error; /* likewise */
} ticker;

static bool asked_to_stop(void)
{
	/* Acquire: pairs with ticker_stop(); nothing else is passed. */
	return __atomic_load_n(&ct_page.stop, __ATOMIC_ACQUIRE) != 0;
}

static int nanosleep_until(int64_t deadline_ns)
{
	struct timespec deadline = timespec_from_ns(deadline_ns);
	int ret;

	do
		ret = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline,
			NULL);
	while (ret == EINTR);

	return -ret;
}

static int futex_until(int64_t deadline_ns)
{
	int ret;

	do
		ret = futex_wait(&ct_page.stop, 0, deadline_ns);
	while (ret == 0 && !asked_to_stop() &&
		kernel_clock_ns(CLOCK_MONOTONIC) < deadline_ns);

	return ret;
}

/* Either way to sleep serves where the other is refused. */
static int sleep_until(int64_t deadline_ns)
{
	int ret = -ENOSYS;

	if (ticker.tick_ns <= NANOSLEEP_MAX_NS)
		ret = nanosleep_until(deadline_ns);
	if (ret != 0)
		ret = futex_until(deadline_ns);
	if (ret != 0 && ticker.tick_ns > NANOSLEEP_MAX_NS)
		ret = nanosleep_until(deadline_ns);

	return ret;
}

/*
 * The first edge of the wall clock's grid of ticks that is later than now, and
 * later than half a tick after the last deadline: not even a clock that stands
 * still makes the thread spin.
 */
static int64_t next_deadline(
	int64_t last_ns, const struct timekeeper_sample *sample)
{
	int64_t tick_ns = ticker.tick_ns;
	int64_t after_ns = last_ns + tick_ns / 2;
	int64_t phase_ns;

	if (sample->mono_ns > after_ns)
		after_ns = sample->mono_ns;
	phase_ns = (after_ns + ticker.publisher.tk.wall_offset_ns) % tick_ns;
	if (phase_ns < 0)
		phase_ns += tick_ns;

	return after_ns + tick_ns - phase_ns;
}

/* Relaxed: one writer, for people. */
static void account(int64_t deadline_ns, int64_t now_ns)
{
	int64_t late_ns = now_ns - deadline_ns;

	if (late_ns >= ticker.tick_ns)
		__atomic_store_n(&ct_page.late_ticks, ct_page.late_ticks + 1,
			__ATOMIC_RELAXED);
	if (late_ns > ct_page.max_late_ns)
		__atomic_store_n(
			&ct_page.max_late_ns, late_ns, __ATOMIC_RELAXED);
}

/* The coarse clocks would hide up to two of their ticks. */
static int64_t exact_ns(const struct timekeeper_sample *sample)
{
	return ticker.publisher.cs.lag_ns > 0 ? kernel_clock_ns(CLOCK_MONOTONIC)
					      : sample->mono_ns;
}

static int run(void)
{
	struct timekeeper_sample sample;
	int64_t deadline_ns;
	int ret;

	publisher_publish(&ticker.publisher, &sample);
	if (sample.mono_ns <= 0)
		return -ENODEV;
	deadline_ns = sample.mono_ns - ticker.tick_ns;

	while (!asked_to_stop()) {
		deadline_ns = next_deadline(deadline_ns, &sample);
		ret = sleep_until(deadline_ns);
		if (ret != 0)
			return ret;
		if (asked_to_stop())
			break;
		publisher_publish(&ticker.publisher, &sample);
		account(deadline_ns, exact_ns(&sample));
		steps_deliver();
		precise_ride(sample.mono_ns, ticker.tick_ns);
		if (sample.mono_ns <= 0) /* no clock of any kind */
			return -ENODEV;
	}

	return 0;
}

/*
 * The thread that made the first read may be pinned, and busy there: take the
 * CPUs of the main thread, which are the process's unless it said otherwise.
 */
static void use_process_cpus(void)
{
	cpu_set_t cpus;

	if (sched_getaffinity(getpid(), sizeof(cpus), &cpus) == 0)
		sched_setaffinity(0, sizeof(cpus), &cpus);
}

/*
 * The class of the thread that made the first read is no better a choice than
 * its CPUs: a SCHED_IDLE one would have the ticker starve, a SCHED_FIFO one
 * take what nobody gave it. Normal, and nice as the main thread.
 */
static int be_normal(void)
{
	struct sched_param none = { .sched_priority = 0 };
	int ret = 0;

	if (sched_getscheduler(0) != SCHED_OTHER)
		ret = sched_setscheduler(0, SCHED_OTHER, &none);
	if (ret == 0 && ticker.priority.policy == TICKER_NORMAL &&
		getpriority(PRIO_PROCESS, 0) !=
			getpriority(PRIO_PROCESS, (id_t)getpid()))
		ret = setpriority(PRIO_PROCESS, 0,
			getpriority(PRIO_PROCESS, (id_t)getpid()));
	return ret;
}

/* From inside; who may not goes on as before. */
static void set_priority(void)
{
	struct sched_param lowest = { .sched_priority = 1 };
	int ret = be_normal();

	switch (ticker.priority.policy) {
	case TICKER_NORMAL:
		break;
	case TICKER_FIFO:
		/* Reset on fork: a counter of the user's may start programs. */
		ret = sched_setscheduler(
			0, SCHED_FIFO | SCHED_RESET_ON_FORK, &lowest);
		break;
	case TICKER_NICE:
		/* Of this thread alone, on Linux. */
		ret = setpriority(PRIO_PROCESS, 0, ticker.priority.nice);
		break;
	}
	if (ret != 0)
		__atomic_store_n(
			&ticker.priority_error, -errno, __ATOMIC_RELAXED);
}

static void *ticker_main(void *arg)
{
	int ret;

	(void)arg;
	__atomic_store_n(
		&ticker.self, (uintptr_t)pthread_self(), __ATOMIC_RELAXED);
	/* From inside: pthread_setname_np() of the creator opens /proc files,
	 * which made reaping the children of a pinned PostgreSQL take minutes
	 * (Linux 6.18). */
	prctl(PR_SET_NAME, "cachedtime");
	if (ticker.tick_ns < SLACK_MATTERS_NS)
		prctl(PR_SET_TIMERSLACK, 1UL);

	use_process_cpus();
	set_priority();

	ret = run();
	if (ret != 0)
		publisher_park();

	__atomic_store_n(&ct_page.ticker, 0, __ATOMIC_RELEASE);
	futex_wake_all(&ct_page.ticker);
	/* Last, since from then on a new one may be started. Release: pairs
	 * with the acquire of ct_page.state in whoever starts it. */
	if (ret != 0) {
		__atomic_store_n(&ticker.error, ret, __ATOMIC_RELAXED);
		__atomic_store_n(&ct_page.state, PAGE_IDLE, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* A new thread with every signal blocked, so that none is handled there. */
static int create_thread(void)
{
	pthread_attr_t attr;
	sigset_t all, old;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	ret = pthread_create(&ticker.thread, &attr, ticker_main, NULL);
	/* Thread-local data of other libraries may need more. */
	if (ret == EINVAL)
		ret = pthread_create(&ticker.thread, NULL, ticker_main, NULL);
	pthread_attr_destroy(&attr);

	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -ret;
}

void ticker_join(void)
{
	/* Else a fork left it with the parent. */
	bool here = ticker.joinable_in != 0 &&
		    ticker.joinable_in == ct_page.epoch;

	ticker.joinable_in = 0;
	if (!here)
		return;
	if (futex_works())
		pthread_join(ticker.thread, NULL);
	else /* where glibc's join would abort */
		while (pthread_tryjoin_np(ticker.thread, NULL) == EBUSY)
			sched_yield();
}

int ticker_start(const struct clocksource *cs, int64_t tick_ns,
	const struct ticker_priority *priority)
{
	int ret;

	ticker_join();
	ticker.tick_ns = tick_ns;
	ticker.priority = *priority;
	ticker.error = 0;
	ticker.priority_error = 0;
	publisher_start(&ticker.publisher, cs);

	__atomic_store_n(&ct_page.owner, page_owner_id(), __ATOMIC_RELAXED);
	__atomic_store_n(&ct_page.stop, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&ct_page.ticker, 1, __ATOMIC_RELAXED);
	/* Release: pairs with page_state(). */
	__atomic_store_n(&ct_page.state, PAGE_TICKING, __ATOMIC_RELEASE);

	/* Wiped with the page, so that a child, even one of the same number in
	 * a namespace of its own, doesn't join what it hasn't got. */
	if (ct_page.epoch == 0)
		ct_page.epoch = (uint64_t)kernel_clock_ns(CLOCK_MONOTONIC) | 1;

	ret = create_thread();
	if (ret != 0) {
		__atomic_store_n(&ct_page.ticker, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&ct_page.state, PAGE_IDLE, __ATOMIC_RELAXED);
		__atomic_store_n(&ct_page.owner, 0, __ATOMIC_RELAXED);
		return -EAGAIN;
	}

	ticker.joinable_in = ct_page.epoch;
	return 0;
}

void ticker_stop(void)
{
	/* Release: pairs with asked_to_stop(). */
	__atomic_store_n(&ct_page.stop, 1, __ATOMIC_RELEASE);
	/* Live at once, however long the thread takes to notice ... */
	handover_park();
	futex_wake_all(&ct_page.stop);

	while (__atomic_load_n(&ct_page.ticker, __ATOMIC_ACQUIRE) != 0)
		if (futex_wait(&ct_page.ticker, 1, INT64_MAX) != 0)
			sched_yield();
	ticker_join();

	/* ... and for good: it may have engaged once more. */
	publisher_park();
	__atomic_store_n(&ct_page.owner, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&ct_page.state, PAGE_IDLE, __ATOMIC_RELAXED);
}

bool ticker_is_self(void)
{
	/* Relaxed: a thread that isn't the ticker may find any value but its
	 * own. The thread, once over, or in a forked child, isn't in the page,
	 * so that another one at its address isn't taken for it. */
	return __atomic_load_n(&ticker.self, __ATOMIC_RELAXED) ==
		       (uintptr_t)pthread_self() &&
	       __atomic_load_n(&ct_page.ticker, __ATOMIC_RELAXED) != 0 &&
	       page_is_ours();
}

int ticker_priority_error(void)
{
	return __atomic_load_n(&ticker.priority_error, __ATOMIC_RELAXED);
}

void ticker_explain(char *buf, size_t size)
{
	publisher_explain(&ticker.publisher, buf, size);
}

int ticker_error(void)
{
	return __atomic_load_n(&ticker.error, __ATOMIC_RELAXED);
}
