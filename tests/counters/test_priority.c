/* SPDX-License-Identifier: MIT */
/* How the ticker's thread is scheduled, and what is said if it may not be. */
#include "counters.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <sys/resource.h>

#include <cachedtime.h>

#define NOBODY 65534
#define REFUSED                                                                \
	"the kernel refused the priority that was asked for (%s), so the "     \
	"ticker's is normal"

static struct ct_status status_now(void)
{
	struct ct_status status = { .size = sizeof(status) };

	CHECK(ct_status(&status) == 0);
	return status;
}

static int start_with(const char *priority)
{
	struct ct_config config = { .size = sizeof(config),
		.mode = CT_MODE_TICK, .priority = priority };
	int64_t deadline_ns = clock_ns(CLOCK_MONOTONIC_RAW) + DEADLINE_NS;
	int ret = ct_start(&config);

	/* A bad environment doesn't keep it from running. */
	while (status_now().ticks < 2)
		CHECK(clock_ns(CLOCK_MONOTONIC_RAW) < deadline_ns);
	return ret;
}

/* The one other thread; it has set its priority before it publishes. */
static pid_t ticker(void)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	pid_t tid, found = 0;

	CHECK(dir != NULL);
	while ((entry = readdir(dir)) != NULL) {
		char path[300], name[32] = "";
		FILE *file;

		tid = atoi(entry->d_name);
		if (tid == 0 || tid == getpid())
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%d/comm", tid);
		file = fopen(path, "r");
		if (file == NULL)
			continue;
		if (fgets(name, sizeof(name), file) != NULL &&
			strcmp(name, "cachedtime\n") == 0)
			found = tid;
		fclose(file);
	}
	closedir(dir);
	CHECK(found != 0);
	return found;
}

static int nice_of(pid_t tid)
{
	int nice;

	errno = 0;
	nice = getpriority(PRIO_PROCESS, (id_t)tid);
	CHECK(errno == 0);
	return nice;
}

static int rt_priority_of(pid_t tid)
{
	struct sched_param param;

	CHECK(sched_getparam(tid, &param) == 0);
	return param.sched_priority;
}

static void assert_normal(pid_t tid, int nice)
{
	CHECK(sched_getscheduler(tid) == SCHED_OTHER);
	CHECK(rt_priority_of(tid) == 0);
	CHECK(nice_of(tid) == nice);
}

static void assert_no_error(void)
{
	struct ct_status status = status_now();

	if (status.last_error != 0)
		fprintf(stderr, "%s\n", status.error);
	CHECK(status.last_error == 0);
	CHECK(status.error[0] == '\0');
}

static void try_fifo(void)
{
	struct sched_param param = { .sched_priority = 1 };

	CHECK(sched_setscheduler(0, SCHED_FIFO, &param) == 0);
}

static void try_nice(void)
{
	CHECK(setpriority(PRIO_PROCESS, 0, -20) == 0);
}

START_TEST(normal)
{
	static const char *const priorities[] = { NULL, "normal" };

	ck_assert_int_eq(start_with(priorities[_i]), 0);
	assert_normal(ticker(), 0);
	assert_no_error();
}
END_TEST

static void be_fifo(void)
{
	pid_t tid;

	CHECK(start_with("fifo") == 0);
	tid = ticker();
	CHECK(sched_getscheduler(tid) == (SCHED_FIFO | SCHED_RESET_ON_FORK));
	CHECK(rt_priority_of(tid) == 1);
	assert_normal(0, 0);
	assert_no_error();
}

START_TEST(fifo)
{
	if (!child_does(try_fifo)) {
		printf("# SCHED_FIFO isn't permitted here\n");
		return;
	}
	be_fifo();
}
END_TEST

START_TEST(fifo_by_environment)
{
	if (!child_does(try_fifo))
		return;
	ck_assert_int_eq(setenv("CT_PRIORITY", "fifo", 1), 0);
	ck_assert_int_eq(start_with(NULL), 0);
	ck_assert_int_eq(sched_getscheduler(ticker()),
		SCHED_FIFO | SCHED_RESET_ON_FORK);
	/* A struct has the last word. */
	ck_assert_int_eq(start_with("normal"), 0);
	assert_normal(ticker(), 0);
	ck_assert_int_eq(start_with("fifo"), 0);
	ck_assert_int_eq(sched_getscheduler(ticker()),
		SCHED_FIFO | SCHED_RESET_ON_FORK);
}
END_TEST

/* A forked child asks for it anew. */
START_TEST(fifo_in_child)
{
	if (!child_does(try_fifo))
		return;
	be_fifo();
	ck_assert(child_does(be_fifo));
	be_fifo();
}
END_TEST

START_TEST(nice_values)
{
	static const struct {
		const char *text;
		int nice;
	} values[] = { { "19", 19 }, { "0", 0 }, { "5", 5 }, { "-1", -1 },
		{ "-20", -20 }, { "-0", 0 }, { "007", 7 } };

	if (values[_i].nice < 0 && !child_does(try_nice)) {
		printf("# negative nice values aren't permitted here\n");
		return;
	}
	ck_assert_int_eq(start_with(values[_i].text), 0);
	assert_normal(ticker(), values[_i].nice);
	assert_normal(0, 0);
	assert_no_error();
	/* The environment's likewise. */
	ck_assert_int_eq(ct_stop(), 0);
	ck_assert_int_eq(setenv("CT_PRIORITY", values[_i].text, 1), 0);
	ck_assert_int_eq(start_with(NULL), 0);
}
END_TEST

START_TEST(nice_by_environment)
{
	ck_assert_int_eq(setenv("CT_PRIORITY", "7", 1), 0);
	ck_assert_int_eq(start_with(NULL), 0);
	assert_normal(ticker(), 7);
	assert_normal(0, 0);
}
END_TEST

static const char *const bad[] = { "", " ", "Fifo", "rr", "fifo ", "-21", "20",
	"+5", " 5", "5 ", "5.0", "0x5", "-", "--5", "99999999999999999999",
	"-99999999999999999999", "normal,5" };

START_TEST(bad_in_struct)
{
	struct ct_status before;

	ck_assert_int_eq(start_with("3"), 0);
	before = status_now();
	ck_assert_int_eq(start_with(bad[_i]), -EINVAL);
	/* Nothing changed. */
	ck_assert_int_eq(nice_of(ticker()), 3);
	ck_assert_uint_ge(status_now().ticks, before.ticks);
	assert_no_error();
}
END_TEST

START_TEST(bad_in_environment)
{
	struct ct_config config = { .size = sizeof(config) };
	struct ct_status status;
	char words[128];

	ck_assert_int_eq(setenv("CT_PRIORITY", bad[_i], 1), 0);
	ck_assert_int_eq(start_with(NULL), -EINVAL);
	assert_normal(ticker(), 0);
	status = status_now();
	ck_assert_int_eq(status.last_error, -EINVAL);
	snprintf(words, sizeof(words), "CT_PRIORITY=\"%s\" is none: want "
		"normal, fifo or a nice value from -20 to 19; using normal",
		bad[_i]);
	ck_assert_str_eq(status.error, words);
	/* Of no account for who says it himself. */
	ck_assert_int_eq(start_with("2"), 0);
	ck_assert_int_eq(nice_of(ticker()), 2);
	config.priority = "2";
	config.mode = CT_MODE_TICK;
	ck_assert_int_eq(ct_start(&config), 0);
}
END_TEST

static const char *refused;

static void be_refused(void)
{
	bool by_fifo = strcmp(refused, "fifo") == 0;
	const struct rlimit none = { 0, 0 };
	char words[128];
	struct ct_status status;

	CHECK(setrlimit(RLIMIT_RTPRIO, &none) == 0);
	CHECK(setrlimit(RLIMIT_NICE, &none) == 0);
	CHECK(setgid(NOBODY) == 0 && setuid(NOBODY) == 0);

	CHECK(start_with(refused) == 0);
	status = status_now();
	CHECK(status.cached == 1);
	/* sched_setscheduler(2) and setpriority(2) differ. */
	CHECK(status.last_error == (by_fifo ? -EPERM : -EACCES));
	snprintf(words, sizeof(words), REFUSED, by_fifo ? "EPERM" : "EACCES");
	CHECK(strcmp(status.error, words) == 0);
	assert_normal(ticker(), 0);
	assert_normal(0, 0);

	/* What it may goes well, and nothing is left of the refusal. */
	CHECK(start_with("normal") == 0);
	assert_no_error();
	CHECK(start_with("10") == 0);
	assert_normal(ticker(), 10);
	assert_no_error();
}

START_TEST(no_permission)
{
	static const char *const priorities[] = { "fifo", "-5" };

	if (getuid() != 0) {
		printf("# only root can give its permission up\n");
		return;
	}
	refused = priorities[_i];
	ck_assert(child_does(be_refused));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("priority");

	add_table(suite, "normal", normal, 2);
	add_situation(suite, "fifo", fifo);
	add_situation(suite, "fifo by environment", fifo_by_environment);
	add_situation(suite, "fifo in a forked child", fifo_in_child);
	add_table(suite, "nice values", nice_values, 7);
	add_situation(suite, "nice value by environment",
		nice_by_environment);
	add_table(suite, "bad in the struct", bad_in_struct, LENGTH(bad));
	add_table(suite, "bad in the environment", bad_in_environment,
		LENGTH(bad));
	add_table(suite, "no permission", no_permission, 2);
	return run_suite(suite);
}
