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
#include <sys/auxv.h>
#include <unistd.h>

#include <cachedtime.h>

#include "bounds.h"
#include "clocksource.h"
#include "config.h"
#include "handover.h"
#include "kernel_clock.h"
#include "lock.h"
#include "moment.h"
#include "page.h"
#include "precise.h"
#include "publisher.h"
#include "steps.h"
#include "ticker.h"

/* After a refused thread: limits don't change from one read to the next. */
#define RETRY_LIMIT_NS NS_PER_SEC
/* After a read from where no thread may be started. Per thread, nearly: one
 * that may not must not keep those who may from it. */
#define RETRY_PLACE_NS INT64_C(1000000)
#define PLACES 64

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
	int64_t retry_ns;	  /* [a] mono before which no read tries ... */
	int64_t place_retry_ns[PLACES]; /* [a] ... from threads of this hash */

	bool environment_read;	   /* [l] */
	struct config environment; /* [l] what it says */
	unsigned int bad;	   /* [l] what in it makes no sense */
	char bad_text[400];	   /* [l] */

	/* [l], but a fork may come at any time, so the writer fills in the one
	 * that isn't current, then turns it over. */
	struct config config[2];
	unsigned int current; /* [a] */

	bool has_vdso; /* constant since our constructor */
	bool refused_place; /* [a] a read may not start it from where it was */
	bool prepared;	   /* [a] precise time knows what counter it has */

	int cancel_state; /* [l] of who is in the lock */

	struct clocksource cs;	/* [l] as opened last */
	struct publisher loop;	/* [l] of manual mode */
	char reason[512];	/* [l] of the choice of cs */
	int start_error;	/* [l] of the last start */
	int source_error;	/* [l] of the back end asked for, likewise */
} life;

static void set_holder(uint64_t thread)
{
	/* Relaxed: no thread but the holder finds its own number. */
	__atomic_store_n(&ct_page.holder, thread, __ATOMIC_RELAXED);
}

/*
 * In the lock a thread can't be cancelled: reading sysfs or joining the ticker
 * would be a place to, and the lock would stay behind.
 */
static void enter(void)
{
	int cancel_state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	lock_acquire(&ct_page.lock);
	life.cancel_state = cancel_state;
	set_holder((uint64_t)pthread_self());
}

static bool try_enter(void)
{
	if (!lock_try(&ct_page.lock))
		return false;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &life.cancel_state);
	set_holder((uint64_t)pthread_self());
	return true;
}

static void leave(void)
{
	int cancel_state = life.cancel_state;

	set_holder(0);
	lock_release(&ct_page.lock);
	pthread_setcancelstate(cancel_state, NULL);
}

/* Called from within: by a counter of the user's that we are reading, or in a
 * signal handler. */
static bool is_inside(void)
{
	return ticker_is_self() ||
	       __atomic_load_n(&ct_page.holder, __ATOMIC_RELAXED) ==
		       (uint64_t)pthread_self();
}

static void set_autostart(enum autostart autostart)
{
	__atomic_store_n(&life.autostart, autostart, __ATOMIC_RELAXED);
}

/* Not before `in_ns` from now; 0: at once. Relaxed: looked at again. */
static void set_retry(int64_t *retry_ns, int64_t in_ns)
{
	__atomic_store_n(retry_ns,
		in_ns ? kernel_clock_ns(CLOCK_MONOTONIC) + in_ns : 0,
		__ATOMIC_RELAXED);
}

static bool retry_is_due(const int64_t *retry_ns)
{
	int64_t ns = __atomic_load_n(retry_ns, __ATOMIC_RELAXED);

	int64_t to_wait_ns;

	if (ns == 0)
		return true;
	/* Longer than any: another time namespace, entered by a fork. */
	to_wait_ns = ns - kernel_clock_ns(CLOCK_MONOTONIC_COARSE);
	return to_wait_ns <= 0 || to_wait_ns > 2 * RETRY_LIMIT_NS;
}

/* Thread descriptors are pages apart. */
static int64_t *place_retry(void)
{
	uint64_t page = (uint64_t)pthread_self() / 4096;

	return &life.place_retry_ns[(page ^ page / PLACES) % PLACES];
}

static uint32_t page_state(void)
{
	/* Acquire: pairs with the ticker's last store, when it gave up. */
	return __atomic_load_n(&ct_page.state, __ATOMIC_ACQUIRE);
}

static const struct config *config_in_force(void)
{
	return &life.config[__atomic_load_n(&life.current, __ATOMIC_RELAXED)];
}

static void set_config(const struct config *new)
{
	unsigned int other = life.current ^ 1;

	life.config[other] = *new;
	if (new->mode == CT_MODE_OFF)
		set_autostart(AUTOSTART_NONE);
	/* Release: a fork in between copies one that is whole. */
	__atomic_store_n(&life.current, other, __ATOMIC_RELEASE);

	if (new->mode == CT_MODE_TICK)
		set_autostart(AUTOSTART_READ);
	else if (new->mode == CT_MODE_MANUAL)
		set_autostart(AUTOSTART_REFRESH);
}

static void read_environment(void)
{
	if (life.environment_read)
		return;

	life.bad = config_from_environment(
		&life.environment, life.bad_text, sizeof(life.bad_text));
	if (__atomic_load_n(&life.autostart, __ATOMIC_RELAXED) ==
		AUTOSTART_UNKNOWN)
		set_config(&life.environment);
	/* Last: a child forked in between reads it again. */
	life.environment_read = true;
}

static void open_clocksource(void)
{
	const struct config *c = config_in_force();

	life.source_error = 0;
	if (c->has_user)
		clocksource_open_user(&life.cs, &c->user, c->user_name,
			life.reason, sizeof(life.reason));
	else
		life.source_error = clocksource_open(&life.cs, c->backend,
			life.reason, sizeof(life.reason));
}

static void prepare_precise(void)
{
	precise_start(&life.cs);
	__atomic_store_n(&life.prepared, true, __ATOMIC_RELAXED);
}

/* Start what the settings say. Nothing runs. 0 or -errno. */
static int run(void)
{
	const struct config *c = config_in_force();
	int ret;

	open_clocksource();
	if (c->mode == CT_MODE_OFF) {
		precise_stop();
		set_autostart(AUTOSTART_NONE);
		return 0;
	}
	if (page_error() != 0) {
		set_autostart(AUTOSTART_NONE);
		return -ENOTSUP;
	}
	prepare_precise();

	if (c->mode == CT_MODE_MANUAL) {
		page_describe(life.cs.name, 0);
		publisher_start(&life.loop, &life.cs);
		__atomic_store_n(
			&ct_page.owner, page_owner_id(), __ATOMIC_RELAXED);
		__atomic_store_n(
			&ct_page.state, PAGE_MANUAL, __ATOMIC_RELEASE);
		return 0;
	}

	page_describe(life.cs.name, c->tick_ns);
	ret = ticker_start(&life.cs, c->tick_ns, &c->priority);
	set_retry(&life.retry_ns, ret != 0 ? RETRY_LIMIT_NS : 0);
	return ret;
}

/* End what runs, whoever started it; reads go live. */
static void halt(void)
{
	if (page_state() == PAGE_TICKING) {
		ticker_stop();
	} else if (page_state() == PAGE_MANUAL) {
		publisher_park();
		__atomic_store_n(&ct_page.owner, 0, __ATOMIC_RELAXED);
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
		set_retry(place_retry(), RETRY_PLACE_NS);
		__atomic_store_n(&life.refused_place, true, __ATOMIC_RELAXED);
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
	int saved;

	if (autostart == AUTOSTART_NONE || page_state() != PAGE_IDLE)
		return;
	if (autostart == AUTOSTART_REFRESH && !refresh)
		return;
	if (!retry_is_due(&life.retry_ns) || !retry_is_due(place_retry()))
		return;

	saved = errno;
	try_start(refresh);
	errno = saved;
}

__attribute__((noinline, cold)) static void try_prepare(void)
{
	/* sysfs and the environment are read: not in a handler. */
	if (!at_home() || blocks_handled_signal()) {
		set_retry(place_retry(), RETRY_PLACE_NS);
		return;
	}
	if (!try_enter())
		return;

	read_environment();
	if (life.autostart != AUTOSTART_NONE && page_error() == 0) {
		open_clocksource();
		prepare_precise();
	}
	leave();
}

/* Called where no segment holds. */
static void prepare_if_due(void)
{
	int saved;

	if (__atomic_load_n(&life.prepared, __ATOMIC_RELAXED) ||
		__atomic_load_n(&life.autostart, __ATOMIC_RELAXED) ==
			AUTOSTART_NONE ||
		!retry_is_due(place_retry()))
		return;

	saved = errno;
	try_prepare();
	errno = saved;
}

CT_API int64_t ct_precise_slow(enum ct_precise which)
{
	prepare_if_due();
	return precise_read(which);
}

CT_API uint64_t ct_generation_slow(void)
{
	return steps_look();
}

CT_API int64_t ct_read_slow(enum ct_word word)
{
	if ((unsigned int)word >= CT_WORDS)
		return 0;
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

	if (is_inside())
		return -EDEADLK;
	if (at_home())
		return 0;
	/* Before our constructor: while nobody is at home it may be mapped. */
	if (page_error() == -EAGAIN)
		page_init();
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
	return page_state() == expected && config_equal(config_in_force(), wanted);
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
	off = *config_in_force();
	off.mode = CT_MODE_OFF;
	set_config(&off);
	precise_stop();
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

/* One turn of the loop, unless somebody else is at it. False: not published. */
static bool turn_loop(void)
{
	struct timekeeper_sample sample;
	bool mine;

	if (!try_enter())
		return false;

	mine = page_state() == PAGE_MANUAL && page_is_ours();
	if (mine)
		publisher_publish(&life.loop, &sample);
	else if (page_state() == PAGE_IDLE)
		steps_look();
	/* A ticker does that itself. */
	if (page_state() != PAGE_TICKING)
		steps_deliver();

	leave();
	return mine;
}

CT_API int64_t ct_refresh(void)
{
	struct handover_now now;
	int saved = errno; /* a counter of the user's may change it */

	start_if_due(true);
	if (page_state() == PAGE_TICKING || !turn_loop())
		handover_refresh(&now);

	errno = saved;
	return ct_now_ms();
}

/*
 * A millisecond word is its own stamp: what it shows is when it was true. So it
 * is held against its own clock, and a suspend or a step that only one of the
 * clocks made can't deceive.
 */
static bool is_fresh(int64_t value_ms, int64_t now_ns, int64_t max_age_ns)
{
	return value_ms > 0 && now_ns - value_ms * 1000000 <= max_age_ns;
}

/*
 * Too old, or the coarse clock can't tell: then the exact one does, for one
 * read of it and no shared store.
 */
__attribute__((noinline, cold)) static int64_t fresh_live(enum ct_word word,
	const int64_t *at, clockid_t exact, int64_t max_age_ns)
{
	int64_t now_ns, value;

	if (page_state() == PAGE_MANUAL)
		return handover_live_word(word);
	if (page_state() != PAGE_TICKING)
		return ct_read_slow(word);

	now_ns = kernel_clock_ns(exact);
	/* Relaxed: the word is the whole message. */
	value = __atomic_load_n(at, __ATOMIC_RELAXED);
	if (!is_fresh(value, now_ns, max_age_ns))
		value = handover_fresh(word);

	return value > 0 ? value : ct_read_slow(word);
}

/* Never older than max_age_ms, by the kernel's coarse clock. */
static inline int64_t fresh(enum ct_word word, const int64_t *at,
	clockid_t coarse, clockid_t exact, int64_t max_age_ms)
{
	int64_t lag_ns = kernel_coarse_lag_ns();
	int64_t max_age_ns, value;
	struct timespec now;

	/* Beyond what is sensible: no limit, or none that can be kept. */
	if (__builtin_expect((uint64_t)max_age_ms > FRESH_MAX_MS, 0))
		max_age_ms = max_age_ms < 0 ? -1 : FRESH_MAX_MS;
	max_age_ns = max_age_ms * 1000000;

	/* The state comes first: words that stood in manual mode are parked
	 * before it changes. Acquire: pairs with ticker_start(). */
	if (__builtin_expect(page_state() == PAGE_TICKING &&
				     max_age_ns >= lag_ns && life.has_vdso,
		    1)) {
		/* With a vDSO the coarse clocks never enter the kernel and
		 * can't fail, so errno needn't be kept, which would cost a
		 * call. */
		if (__builtin_expect(clock_gettime(coarse, &now) != 0, 0))
			return fresh_live(word, at, exact, max_age_ns);
		/* Relaxed: the word is the whole message. */
		value = __atomic_load_n(at, __ATOMIC_RELAXED);
		if (__builtin_expect(is_fresh(value,
					     timespec_to_ns(&now) + lag_ns,
					     max_age_ns),
			    1))
			return value;
	}
	return fresh_live(word, at, exact, max_age_ns);
}

CT_API int64_t ct_now_ms_fresh(int64_t max_age_ms)
{
	return fresh(CT_WORD_WALL_MS, &ct_page.wall_ms, CLOCK_REALTIME_COARSE,
		CLOCK_REALTIME, max_age_ms);
}

CT_API int64_t ct_mono_ms_fresh(int64_t max_age_ms)
{
	return fresh(CT_WORD_MONO_MS, &ct_page.mono_ms, CLOCK_MONOTONIC_COARSE,
		CLOCK_MONOTONIC, max_age_ms);
}

CT_API int ct_snapshot(struct ct_snapshot *snap)
{
	if (snap == NULL)
		return -EINVAL;
	start_if_due(false);
	moment_snapshot(snap);
	return 0;
}

CT_API int ct_bounds(struct ct_bounds *bounds)
{
	if (bounds == NULL)
		return -EINVAL;
	return bounds_read(bounds);
}

CT_API int ct_on_step(void (*fn)(int64_t delta_ns, void *arg), void *arg)
{
	if (is_inside())
		return -EDEADLK;
	steps_call(fn, arg);
	return 0;
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
	} else if (life.source_error != 0) {
		status->last_error = life.source_error;
		snprintf(text, size,
			"the back end that was asked for can't be had; see the "
			"reason");
	} else if (page_state() == PAGE_IDLE && status->mode == CT_MODE_TICK &&
		   __atomic_load_n(&life.refused_place, __ATOMIC_RELAXED)) {
		status->last_error = -EAGAIN;
		snprintf(text, size,
			"reads came from threads that block a signal which has "
			"a handler, or from a child of clone, and may not start "
			"the ticker there; call ct_start(NULL)");
	} else if (kernel_clock_error() != 0) {
		status->last_error = kernel_clock_error();
		snprintf(text, size,
			"clock_gettime refused (%s), so the kernel's coarse "
			"clocks serve", errno_name(kernel_clock_error()));
	}
}

static void describe_backend(struct ct_status *status)
{
	char fate[128] = "", precise[128] = "";

	_Static_assert(sizeof(status->backend) == sizeof(ct_page.backend),
		"one name");
	snprintf(status->backend, sizeof(status->backend), "%s", life.cs.name);
	if (page_state() != PAGE_IDLE)
		page_get_backend(status->backend);
	if (page_state() == PAGE_TICKING)
		ticker_explain(fate, sizeof(fate));
	else if (page_state() == PAGE_MANUAL)
		publisher_explain(&life.loop, fate, sizeof(fate));

	/* Its own watch may have found what the other one hasn't. */
	if (fate[0] == '\0')
		precise_explain(precise, sizeof(precise));
	snprintf(status->reason, sizeof(status->reason), "%.350s%s%s%s",
		life.reason, fate[0] != '\0' ? "; " : "", fate, precise);
}

static void describe(struct ct_status *status)
{
	const struct config *c;

	read_environment();
	c = config_in_force();
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
	/* One that hasn't come yet is late too. */
	if (page_state() == PAGE_TICKING &&
		status->age_ns - status->tick_ns > status->max_late_ns)
		status->max_late_ns = status->age_ns - status->tick_ns;
	status->steps = __atomic_load_n(&ct_page.steps, __ATOMIC_RELAXED);
	status->last_step_ns =
		__atomic_load_n(&ct_page.last_step_ns, __ATOMIC_RELAXED);

	status->counter_hz =
		__atomic_load_n(&ct_page.counter_hz, __ATOMIC_RELAXED);
	status->precise = precise_counts(&status->precise_error_ns);

	describe_error(status);
}

/* Of release 0.1: never more, so that programs built for it go on. */
#define STATUS_SIZE_MIN (offsetof(struct ct_status, error) + 512)
#define STATUS_SIZE_PLAUSIBLE 8192

CT_API int ct_status(struct ct_status *status)
{
	struct ct_status full = { .size = sizeof(full) };
	size_t size;
	int saved = errno;

	if (status == NULL || status->size < STATUS_SIZE_MIN ||
		status->size > STATUS_SIZE_PLAUSIBLE)
		return -EINVAL;
	if (is_inside())
		return -EDEADLK;

	enter();
	describe(&full);
	leave();

	/* A caller of an older or a newer header: what both know. */
	size = status->size;
	memset(status, 0, size);
	memcpy(status, &full, size < sizeof(full) ? size : sizeof(full));
	status->size = size;

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
	char precise[48] = "live";
	int saved = errno;
	int length;

	if (ct_status(&s) != 0) /* from within */
		return (size_t)snprintf(buf, size, "%s", "");
	if (s.precise)
		snprintf(precise, sizeof(precise), "counter, off by %lld ns",
			(long long)s.precise_error_ns);
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
		"precise time: %s\n"
		"last error: %s\n",
		ct_version(), mode_name(s.mode), s.cached ? "cached" : "live",
		(long long)s.tick_ns / 1000, s.backend, s.reason,
		(unsigned long long)s.counter_hz,
		(unsigned long long)s.ticks, (unsigned long long)s.late_ticks,
		(long long)s.max_late_ns / 1000, (long long)s.age_ns / 1000,
		(unsigned long long)s.steps, (long long)s.last_step_ns / 1000,
		precise,
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
	if (page_error() != 0) {
		ct_page.lock = 0;
		ct_page.holder = 0;
		ct_page.step_lock = 0;
		ct_page.segment_lock = 0;
		ct_page.bounds_lock = 0;
	}
	__atomic_store_n(&ct_page.home, (int64_t)getpid(), __ATOMIC_RELAXED);
}

/* Early, but any other constructor may read the time before: live. */
__attribute__((constructor(101))) static void load(void)
{
	int saved = errno;

	page_init();
	steps_look();
	life.has_vdso = getauxval(AT_SYSINFO_EHDR) != 0;
	kernel_clock_note_boot(kernel_clock_ns(CLOCK_BOOTTIME) -
			       kernel_clock_ns(CLOCK_MONOTONIC));
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
		if (page_is_ours())
			halt();
		set_autostart(AUTOSTART_NONE);
		ticker_join();
		leave();
	}
	errno = saved;
}
#endif
