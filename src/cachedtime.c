/* SPDX-License-Identifier: MIT */
/*
 * The life cycle: what runs, who may start it, what a fork leaves of it. The
 * one file that knows all the parts.
 *
 * What must not survive a fork (state, lock, home) is in ct_page, which the
 * kernel wipes; what must (settings, "stopped") is here.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cachedtime.h>

#include "clocksource.h"
#include "config.h"
#include "handover.h"
#include "kernel_clock.h"
#include "lock.h"
#include "page.h"
#include "publisher.h"
#include "ticker.h"

/* After a refused thread: limits don't change from one read to the next. */
#define RETRY_LIMIT_NS NS_PER_SEC
/* After a read from where no thread may be started. */
#define RETRY_PLACE_NS INT64_C(1000000)

/* An age that no word reaches; keeps the arithmetic from overflowing. */
#define FRESH_MAX_MS INT64_C(1000000000000)

/* What starts by itself. */
enum autostart {
	AUTOSTART_UNKNOWN, /* the environment hasn't been read yet */
	AUTOSTART_READ,	   /* a read starts the ticker */
	AUTOSTART_REFRESH, /* a refresh engages: manual */
	AUTOSTART_NONE	   /* off, stopped, or nothing to be had */
};

/*
 * [a] atomic, relaxed: a hint that is looked at again under the lock
 * [l] under ct_page.lock
 */
static struct {
	enum autostart autostart; /* [a] */
	int64_t retry_ns;	  /* [a] mono before which no read tries */

	bool environment_read;	   /* [l] */
	struct config environment; /* [l] what it says */
	unsigned int bad;	   /* [l] what in it makes no sense */
	char bad_text[400];	   /* [l] */

	/* [l], but a fork may come at any time, so the writer fills in the one
	 * that isn't current, then turns it over. */
	struct config config[2];
	unsigned int current; /* [a] */

	uintptr_t holder; /* [a] pthread_self() of who is in the lock */

	struct clocksource cs;	/* [l] as opened last */
	struct publisher loop;	/* [l] of manual mode */
	char reason[512];	/* [l] of the choice of cs */
	int start_error;	/* [l] of the last start */
} life;

#define OWNER ((uint64_t)(uintptr_t)&life)

static void enter_locked(void)
{
	__atomic_store_n(
		&life.holder, (uintptr_t)pthread_self(), __ATOMIC_RELAXED);
}

static void enter(void)
{
	lock_acquire(&ct_page.lock);
	enter_locked();
}

static bool try_enter(void)
{
	if (!lock_try(&ct_page.lock))
		return false;
	enter_locked();
	return true;
}

static void leave(void)
{
	__atomic_store_n(&life.holder, 0, __ATOMIC_RELAXED);
	lock_release(&ct_page.lock);
}

/* Called from within: by a counter of the user's that we are reading, or in a
 * signal handler. */
static bool is_inside(void)
{
	/* A child forked meanwhile inherits the holder, but not the lock. */
	return __atomic_load_n(&ct_page.lock, __ATOMIC_RELAXED) != 0 &&
	       __atomic_load_n(&life.holder, __ATOMIC_RELAXED) ==
		       (uintptr_t)pthread_self();
}

static void set_autostart(enum autostart autostart)
{
	__atomic_store_n(&life.autostart, autostart, __ATOMIC_RELAXED);
}

static void set_retry(int64_t in_ns)
{
	/* Not 0, which is "at once". */
	__atomic_store_n(&life.retry_ns,
		in_ns ? kernel_clock_ns(CLOCK_MONOTONIC) + in_ns : 0,
		__ATOMIC_RELAXED);
}

static uint32_t page_state(void)
{
	/* Acquire: pairs with the ticker's last store, when it gave up. */
	return __atomic_load_n(&ct_page.state, __ATOMIC_ACQUIRE);
}

static const struct config *config(void)
{
	return &life.config[__atomic_load_n(&life.current, __ATOMIC_RELAXED)];
}

static void set_config(const struct config *new)
{
	unsigned int other = life.current ^ 1;

	life.config[other] = *new;
	/* Release: a fork in between copies one that is whole. */
	__atomic_store_n(&life.current, other, __ATOMIC_RELEASE);

	if (new->mode == CT_MODE_TICK)
		set_autostart(AUTOSTART_READ);
	else if (new->mode == CT_MODE_MANUAL)
		set_autostart(AUTOSTART_REFRESH);
	else
		set_autostart(AUTOSTART_NONE);
}

static void read_environment(void)
{
	if (life.environment_read)
		return;

	life.bad = config_from_environment(
		&life.environment, life.bad_text, sizeof(life.bad_text));
	life.environment_read = true;
	if (__atomic_load_n(&life.autostart, __ATOMIC_RELAXED) ==
		AUTOSTART_UNKNOWN)
		set_config(&life.environment);
}

static void open_clocksource(void)
{
	const struct config *c = config();

	if (c->has_user)
		clocksource_open_user(&life.cs, &c->user, c->user_name,
			life.reason, sizeof(life.reason));
	else
		clocksource_open(&life.cs, c->backend, life.reason,
			sizeof(life.reason));
}

/* Start what the settings say. Nothing runs. 0 or -errno. */
static int run(void)
{
	const struct config *c = config();
	int ret;

	open_clocksource();
	if (c->mode == CT_MODE_OFF)
		return 0;
	if (page_error() != 0) {
		set_autostart(AUTOSTART_NONE);
		return -ENOTSUP;
	}

	if (c->mode == CT_MODE_MANUAL) {
		page_describe(life.cs.name, 0);
		publisher_start(&life.loop, &life.cs);
		ct_page.owner = OWNER;
		__atomic_store_n(
			&ct_page.state, PAGE_MANUAL, __ATOMIC_RELEASE);
		return 0;
	}

	page_describe(life.cs.name, c->tick_ns);
	ret = ticker_start(&life.cs, c->tick_ns, &c->priority);
	set_retry(ret != 0 ? RETRY_LIMIT_NS : 0);
	return ret;
}

/* End what runs, whoever started it; reads go live. */
static void halt(void)
{
	if (page_state() == PAGE_TICKING) {
		ticker_stop();
	} else if (page_state() == PAGE_MANUAL) {
		handover_park();
		ct_page.owner = 0;
		__atomic_store_n(&ct_page.state, PAGE_IDLE, __ATOMIC_RELEASE);
	}
}

/*
 * Handlers run with their signal blocked, and what they interrupt may hold
 * malloc's lock, which creating a thread needs.
 */
static bool blocks_handled_signal(void)
{
	struct sigaction action;
	sigset_t blocked;

	if (pthread_sigmask(SIG_BLOCK, NULL, &blocked) != 0)
		return true;
	if (sigisemptyset(&blocked))
		return false;

	for (int sig = 1; sig <= SIGRTMAX; sig++)
		if (sigismember(&blocked, sig) == 1 &&
			sigaction(sig, NULL, &action) == 0 &&
			action.sa_handler != SIG_DFL &&
			action.sa_handler != SIG_IGN)
			return true;
	return false;
}

/* Not in a child of raw clone or vfork: nobody knows what locks it has
 * inherited, or whose memory it is. */
static bool at_home(void)
{
	pid_t pid = getpid(); /* -1 where that is refused */

	return pid > 0 &&
	       __atomic_load_n(&ct_page.home, __ATOMIC_RELAXED) == pid;
}

__attribute__((noinline, cold)) static void try_start(bool refresh)
{
	enum autostart autostart =
		__atomic_load_n(&life.autostart, __ATOMIC_RELAXED);

	/* Manual needs no thread, so it may engage anywhere at home. */
	if (!at_home() ||
		(autostart != AUTOSTART_REFRESH && blocks_handled_signal())) {
		set_retry(RETRY_PLACE_NS);
		return;
	}
	if (!try_enter())
		return;

	read_environment();
	autostart = life.autostart;
	if (page_state() == PAGE_IDLE && ticker_error() != 0)
		set_autostart(AUTOSTART_NONE);
	else if (page_state() == PAGE_IDLE &&
		 (autostart == AUTOSTART_READ ||
			 (autostart == AUTOSTART_REFRESH && refresh)))
		life.start_error = run();

	leave();
}

/* Called where a word says "ask". */
static void start_if_due(bool refresh)
{
	enum autostart autostart =
		__atomic_load_n(&life.autostart, __ATOMIC_RELAXED);
	int64_t retry_ns;
	int saved;

	if (autostart == AUTOSTART_NONE || page_state() != PAGE_IDLE)
		return;
	if (autostart == AUTOSTART_REFRESH && !refresh)
		return;
	retry_ns = __atomic_load_n(&life.retry_ns, __ATOMIC_RELAXED);
	if (retry_ns != 0 && kernel_clock_ns(CLOCK_MONOTONIC_COARSE) < retry_ns)
		return;

	saved = errno;
	try_start(refresh);
	errno = saved;
}

CT_API int64_t ct_read_slow(enum ct_word word)
{
	start_if_due(false);
	return handover_read(word);
}

/*
 * May this process, and this thread, change what runs? Makes a child of raw
 * clone, whose page is blank, a home of its own.
 */
static int settle(void)
{
	int64_t nobody = 0;

	if (ticker_is_self() || is_inside())
		return -EDEADLK;
	if (at_home())
		return 0;
	/* Relaxed: only this process writes its own number here. */
	if (!__atomic_compare_exchange_n(&ct_page.home, &nobody,
		    (int64_t)getpid(), false, __ATOMIC_RELAXED,
		    __ATOMIC_RELAXED) &&
		nobody != getpid())
		return -EAGAIN;
	return 0;
}

static bool runs_already(const struct config *wanted)
{
	uint32_t expected = PAGE_IDLE;

	if (life.autostart == AUTOSTART_UNKNOWN)
		return false;
	/* Stopped looks like off, except in the settings. */
	if (wanted->mode == CT_MODE_TICK)
		expected = PAGE_TICKING;
	else if (wanted->mode == CT_MODE_MANUAL)
		expected = PAGE_MANUAL;
	return page_state() == expected && config_equal(config(), wanted);
}

static int start(const struct ct_config *given)
{
	struct config wanted;
	int ret;

	read_environment();
	wanted = life.environment;
	if (given != NULL) {
		ret = config_from_struct(&wanted, given);
		if (ret != 0)
			return ret;
	}

	if (!runs_already(&wanted)) {
		halt();
		set_config(&wanted);
		life.start_error = run();
		if (life.start_error != 0)
			return life.start_error;
	}
	return config_still_bad(life.bad, given) != 0 ? -EINVAL : 0;
}

CT_API int ct_start(const struct ct_config *given)
{
	int saved = errno;
	int ret;

	ret = settle();
	if (ret == 0) {
		if (page_error() == -EAGAIN) /* before our constructor */
			page_init();
		enter();
		ret = start(given);
		leave();
	}

	errno = saved;
	return ret;
}

static void stop(void)
{
	struct config off;

	read_environment();
	halt();
	off = *config();
	off.mode = CT_MODE_OFF;
	set_config(&off);
	life.start_error = 0;
}

CT_API int ct_stop(void)
{
	int saved = errno;
	int ret;

	ret = settle();
	if (ret == 0) {
		enter();
		stop();
		leave();
	}

	errno = saved;
	return ret;
}

/* One turn of the loop, unless somebody else is at it. */
static bool turn_loop(void)
{
	struct timekeeper_sample sample;
	bool mine;

	if (!try_enter())
		return false;

	mine = page_state() == PAGE_MANUAL && ct_page.owner == OWNER;
	if (mine) {
		publisher_publish(&life.loop, &sample);
	}

	leave();
	return mine;
}

CT_API int64_t ct_refresh(void)
{
	struct handover_now now;
	int saved = errno; /* a counter of the user's may change it */

	start_if_due(true);
	if (page_state() != PAGE_MANUAL || !turn_loop())
		handover_refresh(&now);

	errno = saved;
	return ct_now_ms();
}

/* Too old, or the coarse clock can't tell. */
__attribute__((noinline, cold)) static int64_t fresh_live(enum ct_word word)
{
	int64_t value = 0;

	if (page_state() == PAGE_MANUAL)
		return handover_live_word(word);
	if (page_state() == PAGE_TICKING)
		value = handover_fresh(word);
	return value > 0 ? value : ct_read_slow(word);
}

/* Never older than max_age_ms, by the kernel's coarse clock. */
static inline int64_t fresh(
	enum ct_word word, const int64_t *at, int64_t max_age_ms)
{
	int64_t lag_ns = kernel_coarse_lag_ns();
	int64_t max_age_ns, now_ns, published_ns, value;

	max_age_ns = max_age_ms > FRESH_MAX_MS ? FRESH_MAX_MS : max_age_ms;
	max_age_ns = max_age_ns < 0 ? 0 : max_age_ns * 1000000;
	now_ns = kernel_clock_ns(CLOCK_MONOTONIC_COARSE) + lag_ns;
	/* Acquire: a publication stores mono_ns after the milliseconds, so the
	 * word that is read next is at least as new. */
	published_ns = __atomic_load_n(&ct_page.mono_ns, __ATOMIC_ACQUIRE);
	value = __atomic_load_n(at, __ATOMIC_RELAXED);

	if (__builtin_expect(page_state() == PAGE_TICKING &&
				     published_ns > 0 && value > 0 &&
				     max_age_ns >= lag_ns &&
				     now_ns - published_ns <= max_age_ns,
		    1))
		return value;
	return fresh_live(word);
}

CT_API int64_t ct_now_ms_fresh(int64_t max_age_ms)
{
	return fresh(CT_WORD_WALL_MS, &ct_page.wall_ms, max_age_ms);
}

CT_API int64_t ct_mono_ms_fresh(int64_t max_age_ms)
{
	return fresh(CT_WORD_MONO_MS, &ct_page.mono_ms, max_age_ms);
}

CT_API int64_t ct_age_ns(void)
{
	int64_t published_ns =
		__atomic_load_n(&ct_page.mono_ns, __ATOMIC_RELAXED);
	int64_t age_ns;

	if (published_ns <= 0)
		return 0;
	age_ns = kernel_clock_ns(CLOCK_MONOTONIC) - published_ns;
	return age_ns > 0 ? age_ns : 0;
}

/* strerror() is translated and may allocate. */
static const char *errno_name(int error)
{
	switch (error) {
	case -EPERM:
		return "EPERM";
	case -EACCES:
		return "EACCES";
	case -ENOSYS:
		return "ENOSYS";
	case -EINVAL:
		return "EINVAL";
	case -ENOMEM:
		return "ENOMEM";
	case -EFAULT:
		return "misaligned";
	default:
		return "unexpected errno";
	}
}

/* The last trouble, the most telling first; each also says what follows. */
static void describe_error(struct ct_status *status)
{
	char *text = status->error;
	size_t size = sizeof(status->error);

	if (life.start_error == -ENOTSUP) {
		status->last_error = -ENOTSUP;
		snprintf(text, size,
			"the kernel can't wipe the page on fork (madvise: %s), "
			"so reads stay live", errno_name(page_error()));
	} else if (life.start_error != 0) {
		status->last_error = life.start_error;
		snprintf(text, size,
			"no thread to be had (a limit on threads or memory), "
			"so reads are live; a later read tries again");
	} else if (ticker_error() == -ENODEV) {
		status->last_error = kernel_clock_error();
		snprintf(text, size,
			"clock_gettime refused (%s), the coarse clocks too, so "
			"reads are live until ct_start()",
			errno_name(kernel_clock_error()));
	} else if (ticker_error() != 0) {
		status->last_error = ticker_error();
		snprintf(text, size,
			"the ticker could not sleep (clock_nanosleep and futex "
			"refused: %s), so reads are live until ct_start()",
			errno_name(ticker_error()));
	} else if (life.bad != 0) {
		status->last_error = -EINVAL;
		snprintf(text, size, "%s", life.bad_text);
	} else if (ticker_priority_error() != 0) {
		status->last_error = ticker_priority_error();
		snprintf(text, size,
			"the kernel refused the priority that was asked for "
			"(%s), so the ticker's is normal",
			errno_name(ticker_priority_error()));
	} else if (kernel_clock_error() != 0) {
		status->last_error = kernel_clock_error();
		snprintf(text, size,
			"clock_gettime refused (%s), so the kernel's coarse "
			"clocks serve", errno_name(kernel_clock_error()));
	}
}

static void describe_backend(struct ct_status *status)
{
	char fate[128] = "";

	_Static_assert(sizeof(status->backend) == sizeof(ct_page.backend),
		"one name");
	snprintf(status->backend, sizeof(status->backend), "%s", life.cs.name);
	if (page_state() != PAGE_IDLE)
		page_get_backend(status->backend);
	if (page_state() == PAGE_TICKING)
		ticker_explain(fate, sizeof(fate));
	else if (page_state() == PAGE_MANUAL)
		publisher_explain(&life.loop, fate, sizeof(fate));

	snprintf(status->reason, sizeof(status->reason), "%.380s%s%s",
		life.reason, fate[0] != '\0' ? "; " : "", fate);
}

static void describe(struct ct_status *status)
{
	const struct config *c;

	read_environment();
	c = config();
	if (life.cs.name[0] == '\0')
		open_clocksource();

	status->mode = c->mode;
	status->cached =
		__atomic_load_n(&ct_page.wall_ms, __ATOMIC_RELAXED) > 0;
	status->tick_ns = c->mode == CT_MODE_TICK ? c->tick_ns : 0;
	describe_backend(status);

	status->ticks = __atomic_load_n(&ct_page.ticks, __ATOMIC_RELAXED);
	status->late_ticks =
		__atomic_load_n(&ct_page.late_ticks, __ATOMIC_RELAXED);
	status->max_late_ns =
		__atomic_load_n(&ct_page.max_late_ns, __ATOMIC_RELAXED);
	status->age_ns = ct_age_ns();
	status->steps = __atomic_load_n(&ct_page.steps, __ATOMIC_RELAXED);
	status->last_step_ns =
		__atomic_load_n(&ct_page.last_step_ns, __ATOMIC_RELAXED);

	status->counter_hz =
		__atomic_load_n(&ct_page.counter_hz, __ATOMIC_RELAXED);

	describe_error(status);
}

CT_API int ct_status(struct ct_status *status)
{
	size_t size;
	int saved = errno;

	if (status == NULL || status->size < sizeof(*status))
		return -EINVAL;
	if (is_inside())
		return -EDEADLK;

	size = status->size;
	memset(status, 0, sizeof(*status));
	status->size = size;

	enter();
	describe(status);
	leave();

	errno = saved;
	return 0;
}

static const char *mode_name(enum ct_mode mode)
{
	switch (mode) {
	case CT_MODE_TICK:
		return "tick";
	case CT_MODE_MANUAL:
		return "manual";
	default:
		return "off";
	}
}

CT_API size_t ct_status_text(char *buf, size_t size)
{
	struct ct_status s = { .size = sizeof(s) };
	int saved = errno;
	int length;

	ct_status(&s);
	length = snprintf(buf, size,
		"version: %s\n"
		"mode: %s\n"
		"reads: %s\n"
		"tick: %lld us\n"
		"backend: %s\n"
		"reason: %s\n"
		"counter: %llu Hz\n"
		"ticks: %llu\n"
		"late ticks: %llu\n"
		"worst lateness: %lld us\n"
		"age: %lld us\n"
		"wall steps: %llu\n"
		"last step: %+lld us\n"
		"last error: %s\n",
		ct_version(), mode_name(s.mode), s.cached ? "cached" : "live",
		(long long)s.tick_ns / 1000, s.backend, s.reason,
		(unsigned long long)s.counter_hz,
		(unsigned long long)s.ticks, (unsigned long long)s.late_ticks,
		(long long)s.max_late_ns / 1000, (long long)s.age_ns / 1000,
		(unsigned long long)s.steps, (long long)s.last_step_ns / 1000,
		s.error[0] != '\0' ? s.error : "none");

	errno = saved;
	return length > 0 ? (size_t)length : 0;
}

CT_API const char *ct_version(void)
{
	return CT_VERSION;
}

static void after_fork_in_child(void)
{
	/* Where the kernel didn't wipe it, nothing is cached, but a lock may
	 * be held by a thread that isn't here. */
	if (page_error() != 0)
		ct_page.lock = 0;
	__atomic_store_n(&ct_page.home, (int64_t)getpid(), __ATOMIC_RELAXED);
}

/* Early, but any other constructor may read the time before: live. */
__attribute__((constructor(101))) static void load(void)
{
	int saved = errno;

	page_init();
	pthread_atfork(NULL, NULL, after_fork_in_child);
	__atomic_store_n(&ct_page.home, (int64_t)getpid(), __ATOMIC_RELAXED);
	errno = saved;
}

#ifdef CT_STATIC
/*
 * A static archive in a plugin goes when that is unloaded: its thread first.
 * The shared library is linked so that it never goes.
 */
__attribute__((destructor)) static void unload(void)
{
	int saved = errno;

	if (settle() == 0) {
		enter();
		/* Not what another copy of the library runs in this page. */
		if (page_state() == PAGE_TICKING ? ticker_is_ours()
						 : ct_page.owner == OWNER)
			halt();
		set_autostart(AUTOSTART_NONE);
		ticker_join();
		leave();
	}
	errno = saved;
}
#endif
