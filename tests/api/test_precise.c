/* SPDX-License-Identifier: MIT */
/* Precise time, as a program meets it: right in every mode and place. */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api.h"

/* The line's own error, generously. */
#define OFF_NS US
/* For what takes some ten milliseconds on an idle machine. */
#define DEADLINE_NS (10 * SEC)

/* Does CT_BACKEND=auto take one that readers may read? */
static bool counter_can_be_had;

#define WRAPPER(name)                        \
	static int64_t inline_##name(void) \
	{                                  \
		return name();             \
	}
WRAPPER(ct_precise_ns)
WRAPPER(ct_precise_mono_ns)
WRAPPER(ct_precise_ordered_ns)
WRAPPER(ct_precise_mono_ordered_ns)

#define READER(name, clock) { #name, inline_##name, clock }
static const struct reader {
	const char *name;
	int64_t (*read)(void);
	clockid_t clock;
} readers[] = {
	READER(ct_precise_ns, CLOCK_REALTIME),
	READER(ct_precise_mono_ns, CLOCK_MONOTONIC),
	READER(ct_precise_ordered_ns, CLOCK_REALTIME),
	READER(ct_precise_mono_ordered_ns, CLOCK_MONOTONIC),
};

/* Is it the time, of a moment within the call? */
static bool is_right(const struct reader *r, int64_t (*read)(void),
	int64_t off_ns)
{
	int64_t before_ns = clock_ns(r->clock);
	int64_t ns = read();
	int64_t after_ns = clock_ns(r->clock);

	if (ns >= before_ns - off_ns && ns <= after_ns + off_ns)
		return true;
	fprintf(stderr, "%s: %lld, but %lld..%lld\n", r->name, (long long)ns,
		(long long)before_ns, (long long)after_ns);
	return false;
}

static bool all_right(int64_t off_ns)
{
	bool right = true;

	for (int i = 0; i < COUNT(readers); i++)
		right &= is_right(&readers[i], readers[i].read, off_ns);
	return right;
}

static bool right_for(int64_t ns, int64_t off_ns)
{
	int64_t until_ns = clock_ns(CLOCK_MONOTONIC) + ns;

	do
		if (!all_right(off_ns))
			return false;
	while (clock_ns(CLOCK_MONOTONIC) < until_ns);
	return true;
}

/* From the counter, where it can be. */
static bool counter_is_used(void)
{
	int64_t deadline_ns = clock_ns(CLOCK_MONOTONIC) + DEADLINE_NS;

	do
		if (!right_for(MS, OFF_NS))
			return false;
	while (status_now().precise == 0 &&
		clock_ns(CLOCK_MONOTONIC) < deadline_ns);
	return status_now().precise == 1;
}

static uint64_t read_raw(void)
{
	return (uint64_t)clock_ns(CLOCK_MONOTONIC_RAW);
}

static const struct ct_clocksource own = { "mine", read_raw, UINT64_MAX,
	1000000000 };

/* All ways to run. */
static const struct way {
	enum ct_mode mode;
	const char *backend;
	const struct ct_clocksource *clocksource;
	bool may_count; /* if the machine lets it */
} ways[] = {
	{ CT_MODE_AUTO, NULL, NULL, true },
	{ CT_MODE_TICK, NULL, NULL, true },
	{ CT_MODE_MANUAL, NULL, NULL, true },
	{ CT_MODE_TICK, "tsc", NULL, true },
	{ CT_MODE_MANUAL, "tsc", NULL, true },
	{ CT_MODE_OFF, NULL, NULL, false },
	{ CT_MODE_OFF, "tsc", NULL, false },
	{ CT_MODE_TICK, "realtime", NULL, false },
	{ CT_MODE_MANUAL, "realtime", NULL, false },
	{ CT_MODE_TICK, "coarse", NULL, false },
	{ CT_MODE_MANUAL, "coarse", NULL, false },
	{ CT_MODE_TICK, NULL, &own, false },
	{ CT_MODE_MANUAL, NULL, &own, false },
};

static int start_way(const struct way *way)
{
	struct ct_config config = { .size = sizeof(config),
		.mode = way->mode,
		.backend = way->backend,
		.clocksource = way->clocksource };

	return ct_start(&config);
}

START_TEST(before_any_start)
{
	int before, after, ticker;

	/* The first read of each, and no more. */
	ck_assert(is_right(&readers[_i], readers[_i].read, 0));
	before = count_threads(&ticker);
	ck_assert(right_for(20 * MS, OFF_NS));
	if (counter_can_be_had)
		ck_assert(counter_is_used());
	after = count_threads(&ticker);
	ck_assert_int_eq(after, before);
	ck_assert_int_eq(ticker, 0);
	ck_assert(!is_cached());
	ck_assert_int_eq(status_now().mode, CT_MODE_TICK);
}
END_TEST

START_TEST(each_way)
{
	const struct way *way = &ways[_i];
	int ret = start_way(way);

	if (ret != 0) {
		ck_assert_str_eq(way->backend, "tsc");
		ck_assert(!counter_can_be_had);
	}
	ck_assert(all_right(OFF_NS));
	if (way->may_count && counter_can_be_had)
		ck_assert(counter_is_used());
	/* Else it is the kernel's own, to the nanosecond. */
	ck_assert(right_for(50 * MS, status_now().precise ? OFF_NS : 0));
	if (!way->may_count) {
		ck_assert_int_eq(status_now().precise, 0);
		ck_assert_int_eq(status_now().precise_error_ns, 0);
	}
	if (way->mode == CT_MODE_MANUAL || way->mode == CT_MODE_OFF)
		ck_assert_int_eq(ticker_id(), 0);
}
END_TEST

/* For languages that can't inline them. */
START_TEST(functions)
{
	const struct reader *r = &readers[_i];
	void *found = dlsym(RTLD_DEFAULT, r->name);
	int64_t (*function)(void);

	ck_assert_msg(found != NULL, "%s", r->name);
	memcpy(&function, &found, sizeof(function));
	for (int i = 0; i < 10000; i++)
		ck_assert(is_right(r, function, OFF_NS));
	if (counter_can_be_had)
		ck_assert(counter_is_used());
	for (int i = 0; i < 10000; i++)
		ck_assert(is_right(r, function, OFF_NS));
	/* And what they ask where they don't know. */
	for (int i = 0; i < 10000; i++)
		ck_assert(is_right(r, r->read, OFF_NS));
}
END_TEST

static int64_t slow_wall(void)
{
	return ct_precise_slow(CT_PRECISE_WALL);
}

static int64_t slow_mono(void)
{
	return ct_precise_slow(CT_PRECISE_MONO);
}

/* Called where a segment does hold: as good. */
START_TEST(slow)
{
	for (int i = 0; i < 20000; i++) {
		ck_assert(is_right(&readers[0], slow_wall, OFF_NS));
		ck_assert(is_right(&readers[1], slow_mono, OFF_NS));
	}
	if (counter_can_be_had)
		ck_assert_int_eq(status_now().precise, 1);
}
END_TEST

START_TEST(stopped)
{
	ck_assert_int_eq(start_way(&ways[_i]), 0);
	ck_assert(right_for(60 * MS, OFF_NS));
	ck_assert_int_eq(ct_stop(), 0);
	ck_assert_int_eq(status_now().precise, 0);
	/* The line may have been ahead by its error: then it waits. */
	ck_assert(right_for(5 * MS, OFF_NS));
	ck_assert(right_for(50 * MS, 0));
	ck_assert_int_eq(status_now().precise, 0);

	/* And once more. */
	ck_assert_int_eq(start_way(&ways[_i]), 0);
	if (counter_can_be_had)
		ck_assert(counter_is_used());
}
END_TEST

START_TEST(stopped_before_all)
{
	ck_assert_int_eq(ct_stop(), 0);
	ck_assert(right_for(60 * MS, 0));
	ck_assert_int_eq(status_now().precise, 0);
}
END_TEST

/* Each by itself, whatever is started and stopped meanwhile. */
START_TEST(never_back)
{
	const struct reader *r = &readers[_i];
	int64_t last_ns = 0, ns;

	for (int round = 0; round < 4 * COUNT(ways); round++) {
		ck_assert(start_way(&ways[round % COUNT(ways)]) == 0 ||
			  !counter_can_be_had);
		/* Each is long enough for a counter, now and then. */
		for (int i = 0; i < 50000; i++) {
			ns = r->read();
			if (ns < last_ns)
				ck_abort_msg("%s: %lld after %lld", r->name,
					(long long)ns, (long long)last_ns);
			last_ns = ns;
		}
	}
	ct_stop();
	ck_assert_int_ge(r->read(), last_ns);
}
END_TEST

/* Runs `in_child` in a forked child, whose failures count. */
static void in_fork(void (*in_child)(void))
{
	pid_t pid = check_fork();

	if (pid == 0) {
		in_child();
		exit(EXIT_SUCCESS);
	}
	check_waitpid_and_exit(pid);
}

static int64_t told_ns;

static void right_in_child(void)
{
	/* Blank, and at once right all the same. */
	ck_assert_uint_eq(ct_page.segment_seq, 0);
	ck_assert_int_eq(status_now().precise, 0);
	ck_assert(all_right(0));
	ck_assert_int_ge(ct_precise_mono_ns(), told_ns);
	if (counter_can_be_had)
		ck_assert(counter_is_used());
	ck_assert(right_for(50 * MS, OFF_NS));
	ck_assert_int_eq(ticker_id(), 0);
}

/* exits: the last thing a test does */
START_TEST(forked_child)
{
	ck_assert_int_eq(start_mode(CT_MODE_MANUAL, 0), 0);
	if (counter_can_be_had)
		ck_assert(counter_is_used());
	told_ns = ct_precise_mono_ns();
	in_fork(right_in_child);
}
END_TEST

START_TEST(forked_child_before_any_read)
{
	in_fork(right_in_child);
}
END_TEST

START_TEST(forked_child_before_the_rate_is_known)
{
	ck_assert(all_right(0));
	in_fork(right_in_child);
}
END_TEST

static void fork_again(void)
{
	right_in_child();
	told_ns = ct_precise_mono_ns();
	in_fork(right_in_child);
}

START_TEST(forked_childs_child)
{
	ck_assert(all_right(0));
	in_fork(fork_again);
}
END_TEST

static void live_in_child(void)
{
	ck_assert(right_for(60 * MS, 0));
	ck_assert_int_eq(status_now().precise, 0);
}

START_TEST(forked_child_of_a_stopped_process)
{
	ck_assert_int_eq(start_mode(CT_MODE_MANUAL, 0), 0);
	if (counter_can_be_had)
		ck_assert(counter_is_used());
	ck_assert_int_eq(ct_stop(), 0);
	in_fork(live_in_child);
}
END_TEST

/* Whatever another thread was doing to the line. */
static bool forking_is_over;

static void *renew_on(void *arg)
{
	(void)arg;
	while (!__atomic_load_n(&forking_is_over, __ATOMIC_RELAXED))
		ct_precise_slow(CT_PRECISE_WALL);
	return NULL;
}

static void read_and_exit(void)
{
	int64_t until_ns = clock_ns(CLOCK_MONOTONIC) + DEADLINE_NS;
	struct ct_status told = { .size = sizeof(told) };

	do {
		if (!right_for(US, OFF_NS) || ct_status(&told) != 0)
			_exit(1);
	} while (told.precise == 0 && counter_can_be_had &&
		clock_ns(CLOCK_MONOTONIC) < until_ns);
	_exit(!right_for(5 * MS, OFF_NS));
}

START_TEST(forked_amid_renewals)
{
	pthread_t threads[2];
	int status;
	pid_t pid;

	ck_assert_int_eq(start_mode(CT_MODE_MANUAL, 0), 0);
	for (int i = 0; i < COUNT(threads); i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, renew_on,
					 NULL), 0);
	for (int i = 0; i < 50; i++) {
		sleep_ns(i * 50 * US);
		pid = fork();
		if (pid == 0)
			read_and_exit();
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		ck_assert_int_eq(status, 0);
	}
	__atomic_store_n(&forking_is_over, true, __ATOMIC_RELAXED);
	for (int i = 0; i < COUNT(threads); i++)
		pthread_join(threads[i], NULL);
}
END_TEST

__attribute__((noinline)) static void vfork_and_read(void)
{
	pid_t pid = vfork();
	int status;

	if (pid == 0)
		_exit(!right_for(10 * MS, OFF_NS));
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

START_TEST(vforked_child)
{
	vfork_and_read();
	ck_assert(all_right(OFF_NS));
	if (counter_can_be_had)
		ck_assert(counter_is_used());
	vfork_and_read();
	ck_assert(right_for(20 * MS, OFF_NS));
	ck_assert_int_eq(ticker_id(), 0);
}
END_TEST

static volatile sig_atomic_t handled, handled_wrong;
static int64_t last_ns; /* mono, told to the main thread */

static void read_in_handler(int signal)
{
	int64_t ns = ct_precise_mono_ordered_ns();
	int saved = errno;

	(void)signal;
	errno = 4711;
	handled_wrong |= ns < last_ns || !all_right(OFF_NS) || errno != 4711;
	errno = saved;
	last_ns = ns;
	handled++;
}

static void handle(int signal)
{
	struct sigaction action = { .sa_handler = read_in_handler,
		.sa_flags = SA_RESTART };

	ck_assert_int_eq(sigaction(signal, &action, NULL), 0);
}

/* The first reads ever: they open no file, start nothing. */
START_TEST(first_read_in_a_handler)
{
	int ticker;
	int before = count_threads(&ticker);

	handle(SIGUSR1);
	for (int i = 0; i < 1000; i++)
		raise(SIGUSR1);
	ck_assert_int_eq(handled, 1000);
	ck_assert_int_eq(handled_wrong, 0);
	ck_assert_uint_eq(ct_page.segment_seq, 0);
	ck_assert_int_eq(count_threads(&ticker), before);
	if (counter_can_be_had)
		ck_assert(counter_is_used());
	raise(SIGUSR1);
	ck_assert_int_eq(handled_wrong, 0);
}
END_TEST

/* Wherever the main thread is, renewing among others. */
START_TEST(handler_at_any_moment)
{
	struct itimerval often = { { 0, 197 }, { 0, 197 } }, never = { 0 };
	int64_t until_ns = clock_ns(CLOCK_MONOTONIC) + SEC;
	int64_t before_ns, ns;
	int wrong = 0;

	ck_assert_int_eq(start_mode(CT_MODE_MANUAL, 0), 0);
	handle(SIGALRM);
	setitimer(ITIMER_REAL, &often, NULL);
	while (clock_ns(CLOCK_MONOTONIC) < until_ns) {
		before_ns = last_ns;
		ns = ct_precise_mono_ordered_ns();
		wrong += ns < before_ns;
	}
	setitimer(ITIMER_REAL, &never, NULL);
	ck_assert_int_eq(wrong, 0);
	ck_assert_int_eq(handled_wrong, 0);
	ck_assert_int_gt(handled, 100);
	if (counter_can_be_had)
		ck_assert_int_eq(status_now().precise, 1);
}
END_TEST

START_TEST(told_in_the_status)
{
	char text[4096];
	struct ct_status status;

	ck_assert_int_eq(status_now().precise, 0);
	ct_status_text(text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(text, "\nprecise time: live\n"));
	if (!counter_can_be_had)
		return;

	ck_assert(counter_is_used());
	status = status_now();
	ck_assert_int_ge(status.precise_error_ns, 0);
	ck_assert_int_lt(status.precise_error_ns, 10 * US);
	ct_status_text(text, sizeof(text));
	ck_assert_ptr_nonnull(
		strstr(text, "\nprecise time: counter, off by "));

	ck_assert_int_eq(ct_stop(), 0);
	ct_status_text(text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(text, "\nprecise time: live\n"));
}
END_TEST

/* Callers of an older header: their struct is shorter, and theirs what follows
 * it. */
START_TEST(shorter_status)
{
	const size_t first = offsetof(struct ct_status, error) +
			     sizeof(((struct ct_status *)NULL)->error);
	struct ct_status whole, part;

	if (counter_can_be_had)
		ck_assert(counter_is_used());
	ck_assert_int_eq(ct_stop(), 0);
	whole = status_now();
	for (size_t size = first; size <= sizeof(part); size++) {
		memset(&part, 0x55, sizeof(part));
		part.size = size;
		ck_assert_int_eq(ct_status(&part), 0);
		ck_assert_uint_eq(part.size, size);
		ck_assert_mem_eq((char *)&part + sizeof(part.size),
			(char *)&whole + sizeof(part.size),
			size - sizeof(part.size));
		for (size_t i = size; i < sizeof(part); i++)
			ck_assert_int_eq(((char *)&part)[i], 0x55);
	}
}
END_TEST

/*
 * A thread is preempted in the middle of a renewal, for longer than others may
 * want to wait. What was started or stopped meanwhile comes into force all the
 * same.
 */
#define HELD_UP_NS (10 * MS)

static bool is_held_up;

static void *hold_up_renewals(void *arg)
{
	uint32_t free;

	(void)arg;
	do
		free = 0;
	while (!__atomic_compare_exchange_n(&ct_page.segment_lock, &free, 1,
		false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED));
	__atomic_store_n(&is_held_up, true, __ATOMIC_RELEASE);
	sleep_ns(HELD_UP_NS);
	__atomic_store_n(&ct_page.segment_lock, 0, __ATOMIC_RELEASE);
	return NULL;
}

static int change_while_held_up(const struct way *way)
{
	pthread_t holder;
	int ret;

	ck_assert_int_eq(
		pthread_create(&holder, NULL, hold_up_renewals, NULL), 0);
	while (!__atomic_load_n(&is_held_up, __ATOMIC_ACQUIRE))
		sched_yield();
	ret = way != NULL ? start_way(way) : ct_stop();
	pthread_join(holder, NULL);
	return ret;
}

START_TEST(started_while_a_renewal_is_held_up)
{
	static const struct way realtime = { CT_MODE_MANUAL, "realtime", NULL,
		false };
	static const struct way tsc = { CT_MODE_MANUAL, "tsc", NULL, true };

	if (!counter_can_be_had)
		return;
	ck_assert_int_eq(start_way(&realtime), 0);
	ck_assert_int_eq(change_while_held_up(&tsc), 0);
	ck_assert(counter_is_used());
}
END_TEST

START_TEST(stopped_while_a_renewal_is_held_up)
{
	static const struct way tsc = { CT_MODE_MANUAL, "tsc", NULL, true };

	if (!counter_can_be_had)
		return;
	ck_assert_int_eq(start_way(&tsc), 0);
	ck_assert(counter_is_used());
	ck_assert_int_eq(change_while_held_up(NULL), 0);
	/* Until it is over. */
	sleep_ns(5 * MS);
	ck_assert(right_for(20 * MS, OFF_NS));
	ck_assert_int_eq(status_now().precise, 0);
}
END_TEST

/* In a child, so as to leave the tests a library that has never been used. */
static bool is_tsc_automatic(void)
{
	struct ct_status told = { .size = sizeof(told) };
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		unset_environment();
		_exit(ct_status(&told) != 0 ||
			strcmp(told.backend, "tsc") != 0);
	}
	return waitpid(pid, &status, 0) == pid && status == 0;
}

int main(void)
{
	Suite *suite = suite_create("precise");

	counter_can_be_had = is_tsc_automatic();
	add(suite, "before any start", before_any_start, COUNT(readers));
	add(suite, "each way to run", each_way, COUNT(ways));
	add(suite, "functions", functions, COUNT(readers));
	add(suite, "slow", slow, 1);
	add(suite, "stopped", stopped, 5);
	add(suite, "stopped before all", stopped_before_all, 1);
	add(suite, "never back", never_back, COUNT(readers));

	add(suite, "fork", forked_child, 1);
	add(suite, "fork: before any read", forked_child_before_any_read, 1);
	add(suite, "fork: before the rate is known",
		forked_child_before_the_rate_is_known, 1);
	add(suite, "fork: of a forked child", forked_childs_child, 1);
	add(suite, "fork: stopped", forked_child_of_a_stopped_process, 1);
	add(suite, "fork: amid renewals", forked_amid_renewals, 1);
	add(suite, "vfork", vforked_child, 1);

	add(suite, "handler: first read", first_read_in_a_handler, 1);
	add(suite, "handler: at any moment", handler_at_any_moment, 1);

	add(suite, "status", told_in_the_status, 1);
	add(suite, "status: shorter", shorter_status, 1);
	add(suite, "renewal held up: started",
		started_while_a_renewal_is_held_up, 1);
	add(suite, "renewal held up: stopped",
		stopped_while_a_renewal_is_held_up, 1);
	return run_suite(suite);
}
