/* SPDX-License-Identifier: MIT */
/* What starts, what stops, and what is told of it. */
#include <sys/wait.h>
#include <unistd.h>

#include "api.h"

/* At the beginning of main(): libcheck forks, and leaves all threads behind. */
static struct {
	int threads, ticker;
	bool cached;
	uint64_t magic;
} loaded;

static void look_at_start(void)
{
	loaded.threads = count_threads(&loaded.ticker);
	loaded.cached = is_cached();
	loaded.magic = ct_page.magic;
}

START_TEST(loading_starts_nothing)
{
	if (!THREAD_SANITIZER)
		ck_assert_int_eq(loaded.threads, 1);
	ck_assert_int_eq(loaded.ticker, 0);
	ck_assert(!loaded.cached);
	ck_assert_uint_eq(loaded.magic, 0);
}
END_TEST

START_TEST(asking_about_it_starts_nothing)
{
	char text[2048];
	struct ct_status status = status_now();

	ck_assert_int_eq(status.mode, CT_MODE_TICK);
	ck_assert_int_eq(status.cached, 0);
	ck_assert(is_automatic(status.backend));
	ck_assert_uint_eq(status.ticks, 0);
	ck_assert_int_eq(ct_age_ns(), 0);
	ck_assert_uint_gt(ct_status_text(text, sizeof(text)), 0);
	ck_assert_str_eq(ct_version(), CT_VERSION);
	ck_assert_int_eq(ticker_id(), 0);
}
END_TEST

START_TEST(first_read)
{
	struct ct_status status;
	int ticker;

	ct_now_ms();
	wait_until_cached();
	if (!THREAD_SANITIZER)
		ck_assert_int_eq(count_threads(&ticker), 2);
	ck_assert_int_ne(ticker_id(), 0);

	status = status_now();
	ck_assert_int_eq(status.mode, CT_MODE_TICK);
	ck_assert_int_eq(status.cached, 1);
	ck_assert_int_eq(status.tick_ns, CT_TICK_DEFAULT_NS);
	ck_assert(is_automatic(status.backend));
	ck_assert(strstr(status.reason, "not coarse") != NULL);
	ck_assert_int_eq(status.last_error, 0);
	ck_assert_str_eq(status.error, "");

	ck_assert_uint_eq(ct_page.magic, CT_PAGE_MAGIC);
	ck_assert_uint_eq(ct_page.layout, CT_PAGE_LAYOUT);
	ck_assert_uint_eq(ct_page.size, CT_PAGE_SIZE);
	ck_assert_int_eq(ct_page.tick_ns, CT_TICK_DEFAULT_NS);
	ck_assert(is_automatic(ct_page.backend));
	ck_assert_uint_ge(
		__atomic_load_n(&ct_page.generation, __ATOMIC_RELAXED), 1);
}
END_TEST

START_TEST(ticking)
{
	int64_t deadline_ns = clock_ns(CLOCK_MONOTONIC) + 20 * SEC;
	int64_t last_ns;
	uint64_t ticks;

	ck_assert_int_eq(start_mode(CT_MODE_TICK, MS), 0);
	wait_until_cached();
	ticks = status_now().ticks;
	/* Fifty times the words move, by themselves, and never ahead. */
	for (int moved = 0; moved < 50; moved++) {
		last_ns = ct_mono_ns();
		while (ct_mono_ns() == last_ns &&
			clock_ns(CLOCK_MONOTONIC) < deadline_ns)
			;
		last_ns = ct_mono_ns();
		ck_assert_int_le(last_ns, clock_ns(CLOCK_MONOTONIC));
	}
	ck_assert_int_lt(clock_ns(CLOCK_MONOTONIC), deadline_ns);
	ck_assert_uint_ge(status_now().ticks, ticks + 49);
}
END_TEST

static struct ct_config config;

static void begin_config(enum ct_mode mode, int64_t tick_ns)
{
	memset(&config, 0, sizeof(config));
	config.size = sizeof(config);
	config.mode = mode;
	config.tick_ns = tick_ns;
}

START_TEST(the_same_again)
{
	uint64_t ticks;
	int ticker;

	begin_config(CT_MODE_TICK, 2 * MS);
	ck_assert_int_eq(ct_start(&config), 0);
	wait_until_cached();
	ticker = ticker_id();
	ticks = status_now().ticks;
	for (int i = 0; i < 10; i++) {
		ck_assert_int_eq(ct_start(&config), 0);
		ck_assert(is_cached());
	}
	ck_assert_int_eq(ticker_id(), ticker);
	ck_assert_uint_ge(status_now().ticks, ticks);

	/* By another name. */
	config.backend = "auto";
	ck_assert_int_eq(ct_start(&config), 0);
	ck_assert_int_eq(ticker_id(), ticker);
}
END_TEST

START_TEST(the_default_again)
{
	int ticker;

	ct_now_ms();
	wait_until_cached();
	ticker = ticker_id();
	ck_assert_int_eq(ct_start(NULL), 0);
	ck_assert_int_eq(start_mode(CT_MODE_AUTO, 0), 0);
	ck_assert_int_eq(start_mode(CT_MODE_TICK, MS), 0);
	ck_assert_int_eq(ticker_id(), ticker);
	ck_assert(is_cached());
}
END_TEST

START_TEST(manual_again)
{
	int64_t stamp_ns;

	ck_assert_int_eq(start_mode(CT_MODE_MANUAL, 0), 0);
	ck_assert_int_eq(start_mode(CT_MODE_MANUAL, 0), 0);
	/* Parked stays parked ... */
	assert_live();
	ct_refresh();
	stamp_ns = ct_mono_ns();
	ck_assert_int_eq(start_mode(CT_MODE_MANUAL, 0), 0);
	/* ... and what stands still goes on standing. */
	ck_assert(is_cached());
	ck_assert_int_eq(ct_mono_ns(), stamp_ns);
}
END_TEST

START_TEST(another_tick)
{
	ck_assert_int_eq(start_mode(CT_MODE_TICK, MS), 0);
	wait_until_cached();
	ck_assert_int_eq(start_mode(CT_MODE_TICK, 250 * US), 0);
	wait_until_cached();
	ck_assert_int_ne(ticker_id(), 0);
	ck_assert_int_eq(status_now().tick_ns, 250 * US);
	ck_assert_int_eq(ct_page.tick_ns, 250 * US);
}
END_TEST

START_TEST(one_mode_after_another)
{
	int64_t last_ns = 0;

	for (int i = 0; i < 5; i++) {
		ck_assert_int_eq(start_mode(CT_MODE_TICK, MS), 0);
		wait_until_cached();
		ck_assert_int_ne(ticker_id(), 0);
		ck_assert_int_ge(ct_mono_ns(), last_ns);

		ck_assert_int_eq(start_mode(CT_MODE_MANUAL, 0), 0);
		ck_assert_int_eq(ticker_id(), 0);
		ck_assert_int_eq(status_now().mode, CT_MODE_MANUAL);
		ck_assert_int_eq(status_now().tick_ns, 0);
		assert_live();
		ct_refresh();
		ck_assert(is_cached());
		last_ns = ct_mono_ns();

		ck_assert_int_eq(start_mode(CT_MODE_OFF, 0), 0);
		assert_off();
		ck_assert_int_ge(ct_mono_ns(), last_ns);
		last_ns = ct_mono_ns();
	}
}
END_TEST

START_TEST(stopped)
{
	static const enum ct_mode modes[] = { CT_MODE_TICK, CT_MODE_MANUAL,
		CT_MODE_OFF, CT_MODE_DEFAULT };

	ck_assert_int_eq(start_mode(modes[_i], 0), 0);
	if (modes[_i] != CT_MODE_OFF) {
		ct_refresh();
		wait_until_cached();
	}
	ck_assert_int_eq(ct_stop(), 0);
	assert_off();
	ck_assert_int_eq(ct_stop(), 0);
	assert_off();
}
END_TEST

START_TEST(stopped_before_all)
{
	ck_assert_int_eq(ct_stop(), 0);
	assert_off();
	ck_assert_int_eq(start_mode(CT_MODE_TICK, 0), 0);
	wait_until_cached();
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

/* exits: the last thing a test does */
START_TEST(child_of_a_stopped_process)
{
	ck_assert_int_eq(start_mode(CT_MODE_TICK, MS), 0);
	wait_until_cached();
	ck_assert_int_eq(ct_stop(), 0);
	in_fork(assert_off);
}
END_TEST

START_TEST(child_of_an_off_process)
{
	ck_assert_int_eq(start_mode(CT_MODE_OFF, 0), 0);
	in_fork(assert_off);
}
END_TEST

static void ticks_by_itself(void)
{
	int64_t before_ns = clock_ns(CLOCK_MONOTONIC);

	/* The page is blank here, and the parent's thread elsewhere. */
	ck_assert(!is_cached());
	ck_assert_int_eq(ticker_id(), 0);
	ck_assert_int_ge(ct_mono_ns(), before_ns);
	wait_until_cached();
	ck_assert_int_ne(ticker_id(), 0);
	ck_assert_int_eq(status_now().tick_ns, 2 * MS);
}

START_TEST(child_of_a_ticking_process)
{
	if (THREAD_SANITIZER)
		return; /* which allows no threads in such a child */
	ck_assert_int_eq(start_mode(CT_MODE_TICK, 2 * MS), 0);
	wait_until_cached();
	in_fork(ticks_by_itself);
}
END_TEST

START_TEST(started_again)
{
	int64_t last_ns = 0;

	for (int i = 0; i < 20; i++) {
		ck_assert_int_eq(start_mode(CT_MODE_TICK, MS), 0);
		wait_until_cached();
		ck_assert_int_ne(ticker_id(), 0);
		ck_assert_int_ge(ct_mono_ns(), last_ns);
		last_ns = ct_mono_ns();
		ck_assert_int_eq(ct_stop(), 0);
		ck_assert_int_eq(ticker_id(), 0);
		ck_assert_int_ge(ct_mono_ns(), last_ns);
		last_ns = ct_mono_ns();
	}
	ck_assert_int_eq(ct_start(NULL), 0);
	wait_until_cached();
	ck_assert_int_eq(status_now().mode, CT_MODE_TICK);
}
END_TEST

/* Before the thread has come to its first publication, too. */
START_TEST(stopped_at_once)
{
	for (int i = 0; i < 200; i++) {
		ck_assert_int_eq(start_mode(CT_MODE_TICK, SEC), 0);
		ck_assert_int_eq(ct_stop(), 0);
		ck_assert(!is_cached());
	}
	assert_off();
}
END_TEST

/* Whatever the tick: a sleep of a second isn't waited for. */
START_TEST(stopped_in_a_long_tick)
{
	int64_t before_ns, took_ns, least_ns = INT64_MAX;

	for (int i = 0; i < 5; i++) {
		ck_assert_int_eq(start_mode(CT_MODE_TICK, SEC), 0);
		wait_until_cached();
		/* Until it sleeps, most likely. */
		sleep_ns(5 * MS);
		before_ns = clock_ns(CLOCK_MONOTONIC);
		ck_assert_int_eq(ct_stop(), 0);
		took_ns = clock_ns(CLOCK_MONOTONIC) - before_ns;
		if (took_ns < least_ns)
			least_ns = took_ns;
	}
	ck_assert_int_lt(least_ns, SEC / 10);
}
END_TEST

/* Until the kernel's millisecond has turned over twice. */
static void let_time_pass(void)
{
	int64_t now_ms = clock_ns(CLOCK_MONOTONIC) / MS;

	while (clock_ns(CLOCK_MONOTONIC) / MS < now_ms + 2)
		;
}

START_TEST(manual_stands_still)
{
	int64_t before_ms, after_ms, told_ms, stamp_ms, mono_ns;

	ck_assert_int_eq(start_mode(CT_MODE_MANUAL, 0), 0);
	assert_live();
	for (int i = 0; i < 10; i++) {
		before_ms = (clock_ns(CLOCK_REALTIME) - 200 * US) / MS;
		told_ms = ct_refresh();
		after_ms = clock_ns(CLOCK_REALTIME) / MS;
		ck_assert_int_ge(told_ms, before_ms);
		ck_assert_int_le(told_ms, after_ms);

		stamp_ms = ct_now_ms();
		mono_ns = ct_mono_ns();
		ck_assert_int_eq(stamp_ms, told_ms);
		let_time_pass();
		ck_assert_int_eq(ct_now_ms(), stamp_ms);
		ck_assert_int_eq(ct_mono_ns(), mono_ns);

		ct_refresh();
		ck_assert_int_gt(ct_mono_ns(), mono_ns);
	}
	ck_assert_int_eq(ticker_id(), 0);
	ck_assert_uint_eq(status_now().ticks, 20);
}
END_TEST

START_TEST(age)
{
	int64_t age_ns;

	ck_assert_int_eq(ct_age_ns(), 0);
	ck_assert_int_eq(start_mode(CT_MODE_MANUAL, 0), 0);
	ck_assert_int_eq(ct_age_ns(), 0);
	ct_refresh();
	for (int i = 0; i < 5; i++) {
		age_ns = ct_age_ns();
		let_time_pass();
		ck_assert_int_gt(ct_age_ns(), age_ns + MS);
		ck_assert_int_ge(status_now().age_ns, age_ns + MS);
	}
	/* Of what is in the page, to the nanosecond. */
	ck_assert_int_le(
		ct_page.mono_ns + ct_age_ns(), clock_ns(CLOCK_MONOTONIC));
	age_ns = ct_age_ns();
	ct_refresh();
	ck_assert_int_lt(ct_age_ns(), age_ns);
	ck_assert_int_eq(ct_stop(), 0);
	ck_assert_int_eq(ct_age_ns(), 0);
}
END_TEST

START_TEST(refreshed_between_ticks)
{
	int64_t before_ns, told_ms;

	ck_assert_int_eq(start_mode(CT_MODE_TICK, SEC), 0);
	wait_until_cached();
	for (int i = 0; i < 20; i++) {
		let_time_pass();
		before_ns = clock_ns(CLOCK_MONOTONIC);
		told_ms = ct_refresh();
		ck_assert_int_ge(ct_mono_ns(), before_ns);
		ck_assert_int_le(ct_mono_ns(), clock_ns(CLOCK_MONOTONIC));
		ck_assert_int_le(told_ms, ct_now_ms());
	}
}
END_TEST

START_TEST(refreshed_while_off)
{
	int64_t before_ms;

	ck_assert_int_eq(start_mode(CT_MODE_OFF, 0), 0);
	before_ms = clock_ns(CLOCK_REALTIME) / MS;
	ck_assert_int_ge(ct_refresh(), before_ms);
	assert_off();
}
END_TEST

static uint64_t read_nothing(void)
{
	return 0;
}

/* -EINVAL, and everything is as it was. */
static void assert_refused(const struct ct_config *bad)
{
	int ticker = ticker_id();
	uint64_t ticks = status_now().ticks;

	ck_assert_int_eq(ct_start(bad), -EINVAL);
	ck_assert_int_eq(ticker_id(), ticker);
	ck_assert_int_ne(ticker, 0);
	ck_assert(is_cached());
	ck_assert_uint_ge(status_now().ticks, ticks);
	ck_assert_int_eq(status_now().mode, CT_MODE_TICK);
	ck_assert_int_eq(status_now().tick_ns, 3 * MS);
	ck_assert_int_eq(status_now().last_error, 0);
	ck_assert_str_eq(status_now().error, "");
}

START_TEST(bad_struct)
{
	struct ct_clocksource source = { "mine", read_nothing, UINT64_MAX,
		1000000 };

	ck_assert_int_eq(start_mode(CT_MODE_TICK, 3 * MS), 0);
	wait_until_cached();
#define REFUSED(member, value)                   \
	do {                                     \
		begin_config(CT_MODE_MANUAL, 0); \
		config.member = value;           \
		assert_refused(&config);         \
	} while (0)
	REFUSED(size, 0);
	REFUSED(size, sizeof(config) - 1);
	REFUSED(size, SIZE_MAX);
	REFUSED(mode, (enum ct_mode)77);
	REFUSED(tick_ns, -1);
	REFUSED(tick_ns, CT_TICK_MIN_NS - 1);
	REFUSED(tick_ns, CT_TICK_MAX_NS + 1);
	REFUSED(backend, "sundial");
	REFUSED(backend, "");
	source.mask = 6;
	REFUSED(clocksource, &source);
	source.mask = UINT64_MAX;
	source.hz = 0;
	REFUSED(clocksource, &source);
	source.hz = 1000000;
	source.read = NULL;
	REFUSED(clocksource, &source);
	source.read = read_nothing;
	source.name = "sixteen letters.";
	REFUSED(clocksource, &source);
#undef REFUSED
	begin_config(CT_MODE_MANUAL, 0);
	source.name = "mine";
	config.clocksource = &source;
	config.backend = "auto";
	assert_refused(&config);
}
END_TEST

START_TEST(bad_struct_first)
{
	begin_config((enum ct_mode)77, 0);
	ck_assert_int_eq(ct_start(&config), -EINVAL);
	ck_assert_int_eq(ticker_id(), 0);
	ck_assert(!is_cached());
	/* As if nothing had been said: a read starts the default. */
	ct_now_ms();
	wait_until_cached();
	ck_assert_int_eq(status_now().tick_ns, CT_TICK_DEFAULT_NS);
}
END_TEST

START_TEST(bad_struct_while_stopped)
{
	ck_assert_int_eq(ct_stop(), 0);
	begin_config(CT_MODE_TICK, 1);
	ck_assert_int_eq(ct_start(&config), -EINVAL);
	assert_off();
}
END_TEST

START_TEST(struct_of_a_later_release)
{
	struct {
		struct ct_config config;
		uint64_t more[8];
	} later = { .config = {
			    .size = sizeof(later), .mode = CT_MODE_MANUAL } };

	ck_assert_int_eq(ct_start(&later.config), 0);
	ck_assert_int_eq(status_now().mode, CT_MODE_MANUAL);
	later.config.mode = CT_MODE_OFF;
	later.more[7] = 1;
	ck_assert_int_eq(ct_start(&later.config), -EINVAL);
	ck_assert_int_eq(status_now().mode, CT_MODE_MANUAL);
}
END_TEST

START_TEST(coarse)
{
	int64_t deadline_ns = clock_ns(CLOCK_MONOTONIC) + 20 * SEC;
	int64_t first_ns;

	begin_config(CT_MODE_TICK, MS);
	config.backend = "coarse";
	ck_assert_int_eq(ct_start(&config), 0);
	wait_until_cached();
	ck_assert_str_eq(status_now().backend, "coarse");
	ck_assert_ptr_nonnull(
		strstr(status_now().reason, "coarse: asked for"));
	ck_assert_str_eq(ct_page.backend, "coarse");

	first_ns = ct_mono_ns();
	while (ct_mono_ns() < first_ns + 50 * MS &&
		clock_ns(CLOCK_MONOTONIC) < deadline_ns)
		ck_assert_int_le(ct_mono_ns(), clock_ns(CLOCK_MONOTONIC));
	ck_assert_int_lt(clock_ns(CLOCK_MONOTONIC), deadline_ns);
	ck_assert_uint_eq(status_now().steps, 0);

	/* Another source, the same mode: not the same. */
	begin_config(CT_MODE_TICK, MS);
	ck_assert_int_eq(ct_start(&config), 0);
	ck_assert(is_automatic(status_now().backend));
}
END_TEST

/* A refresh takes exact clocks, the next tick coarse ones: no step of ours. */
START_TEST(coarse_and_refreshed)
{
	int64_t last_ns = 0, wall_ns = 0;

	begin_config(CT_MODE_TICK, MS);
	config.backend = "coarse";
	ck_assert_int_eq(ct_start(&config), 0);
	wait_until_cached();
	for (int i = 0; i < 100; i++) {
		ct_refresh();
		ck_assert_int_ge(ct_mono_ns(), last_ns);
		last_ns = ct_mono_ns();
		if (status_now().steps == 0)
			ck_assert_int_ge(ct_now_ns(), wall_ns);
		wall_ns = ct_now_ns();
		sleep_ns(500 * US);
	}
}
END_TEST

START_TEST(bad_status)
{
	struct ct_status status, before;

	ck_assert_int_eq(ct_status(NULL), -EINVAL);
	memset(&status, 0x55, sizeof(status));
	for (int i = 0; i < 3; i++) {
		status.size = i == 0 ? 0 : i == 1 ? 1 :
				offsetof(struct ct_status, error) + 511;
		before = status;
		ck_assert_int_eq(ct_status(&status), -EINVAL);
		ck_assert_mem_eq(&status, &before, sizeof(status));
	}
}
END_TEST

START_TEST(status_of_a_later_release)
{
	struct {
		struct ct_status status;
		uint64_t more[8];
	} later = { .status = { .size = sizeof(later) } };

	ck_assert_int_eq(ct_status(&later.status), 0);
	ck_assert_uint_eq(later.status.size, sizeof(later));
	ck_assert(is_automatic(later.status.backend));
	for (int i = 0; i < 8; i++)
		ck_assert_uint_eq(later.more[i], 0);
}
END_TEST

/* While nothing runs the text is the same each time. */
START_TEST(status_text)
{
	static char whole[4096], part[4096];
	size_t length, size;

	ck_assert_int_eq(ct_stop(), 0);
	length = ct_status_text(whole, sizeof(whole));
	ck_assert_uint_eq(strlen(whole), length);
	ck_assert_ptr_nonnull(strstr(whole, "version: " CT_VERSION "\n"));
	ck_assert_ptr_nonnull(strstr(whole, "mode: off\n"));
	ck_assert(strstr(whole, "backend: realtime\n") != NULL ||
		strstr(whole, "backend: tsc\n") != NULL);
	ck_assert_ptr_nonnull(strstr(whole, "last error: none\n"));

	/* As snprintf() does it. */
	ck_assert_uint_eq(ct_status_text(NULL, 0), length);
	for (size = 1; size <= length + 2; size++) {
		memset(part, 0x55, sizeof(part));
		ck_assert_uint_eq(ct_status_text(part, size), length);
		ck_assert_uint_eq(
			strlen(part), size <= length ? size - 1 : length);
		ck_assert_mem_eq(part, whole, strlen(part));
		ck_assert_int_eq(
			part[size <= length ? size : length + 1], 0x55);
	}
}
END_TEST

START_TEST(status_text_of_each_mode)
{
	char text[4096];

	ck_assert_int_eq(start_mode(CT_MODE_MANUAL, 0), 0);
	ct_refresh();
	ct_status_text(text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(text, "mode: manual\nreads: cached\n"));
	ck_assert_int_eq(start_mode(CT_MODE_TICK, 250 * US), 0);
	ct_status_text(text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(text, "mode: tick\n"));
	ck_assert_ptr_nonnull(strstr(text, "tick: 250 us\n"));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("life");

	look_at_start();
	add(suite, "loaded", loading_starts_nothing, 1);
	add(suite, "asked about", asking_about_it_starts_nothing, 1);
	add(suite, "first read", first_read, 1);
	add(suite, "ticking", ticking, 1);

	add(suite, "start: the same again", the_same_again, 1);
	add(suite, "start: the default again", the_default_again, 1);
	add(suite, "start: manual again", manual_again, 1);
	add(suite, "start: another tick", another_tick, 1);
	add(suite, "start: one mode after another", one_mode_after_another, 1);
	add(suite, "start: again after stop", started_again, 1);
	add(suite, "start: bad struct", bad_struct, 1);
	add(suite, "start: bad struct first", bad_struct_first, 1);
	add(suite, "start: bad struct while stopped", bad_struct_while_stopped,
		1);
	add(suite, "start: later release", struct_of_a_later_release, 1);
	add(suite, "start: coarse", coarse, 1);
	add(suite, "start: coarse and refreshed", coarse_and_refreshed, 1);

	add(suite, "stop", stopped, 4);
	add(suite, "stop: before all", stopped_before_all, 1);
	add(suite, "stop: at once", stopped_at_once, 1);
	add(suite, "stop: in a long tick", stopped_in_a_long_tick, 1);
	add(suite, "stop: forked child", child_of_a_stopped_process, 1);
	add(suite, "off: forked child", child_of_an_off_process, 1);
	add(suite, "tick: forked child", child_of_a_ticking_process, 1);

	add(suite, "manual stands still", manual_stands_still, 1);
	add(suite, "age", age, 1);
	add(suite, "refresh: between ticks", refreshed_between_ticks, 1);
	add(suite, "refresh: off", refreshed_while_off, 1);

	add(suite, "status: bad size", bad_status, 1);
	add(suite, "status: later release", status_of_a_later_release, 1);
	add(suite, "status text", status_text, 1);
	add(suite, "status text: each mode", status_text_of_each_mode, 1);
	return run_suite(suite);
}
