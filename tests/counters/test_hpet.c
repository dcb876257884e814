/* SPDX-License-Identifier: MIT */
/* The HPET's back end against a file laid out like the device. */
#include "sim.h"

#include <sys/stat.h>

#include <cachedtime.h>

#include "clocksource.h"
#include "fake_hpet.h"
#include "publisher.h"

#define NOBODY 65534
#define ASKED "hpet was asked for: "

static struct clocksource cs;
static char reason[512];

static int open_hpet(void)
{
	memset(&cs, 0x55, sizeof(cs));
	return clocksource_open(&cs, "hpet", reason, sizeof(reason));
}

static void set_device(const char *path)
{
	ck_assert_int_eq(setenv("CT_HPET_DEVICE", path, 1), 0);
}

/* Refused in these words, and by what `auto` takes instead. */
static void assert_refused(int error, const char *words)
{
	struct clocksource best;
	char begin[256], automatic[512];

	errno = 4711;
	ck_assert_int_eq(open_hpet(), -error);
	ck_assert_int_eq(errno, 4711);
	snprintf(begin, sizeof(begin), ASKED "%s; ", words);
	ck_assert_msg(strncmp(reason, begin, strlen(begin)) == 0,
		"'%s', not '%s...'", reason, begin);

	ck_assert_int_eq(clocksource_open(&best, "auto", automatic,
				 sizeof(automatic)), 0);
	ck_assert_str_eq(cs.name, best.name);
	ck_assert_str_ne(cs.name, "hpet");
	ck_assert(cs.read == best.read);
	ck_assert_str_eq(reason + strlen(begin), automatic);
}

/* As a user sees it: with the next best, and no error. */
static void assert_status_says(const char *words)
{
	struct ct_config config = { .size = sizeof(config),
		.mode = CT_MODE_OFF, .backend = "hpet" };
	struct ct_status status = { .size = sizeof(status) };

	ck_assert_int_eq(ct_start(&config), 0);
	ck_assert_int_eq(ct_status(&status), 0);
	ck_assert_str_ne(status.backend, "hpet");
	ck_assert_msg(strstr(status.reason, words) != NULL, "%s",
		status.reason);
	ck_assert_int_lt(status.last_error, 0);
	ck_assert(strstr(status.error, "asked for") != NULL);
}

START_TEST(good)
{
	static const struct {
		uint32_t period_fs;
		uint64_t hz;
		const char *words;
	} periods[] = {
		{ 10000000, 100000000, "hpet: asked for; " "10000000 fs a cycle" },
		{ 69841279, 14318180, "hpet: asked for; " "69841279 fs a cycle" },
		{ 41666666, 24000000, "hpet: asked for; " "41666666 fs a cycle" },
		{ 52083333, 19200000, "hpet: asked for; " "52083333 fs a cycle" },
		{ 100000000, 10000000, "hpet: asked for; " "100000000 fs a cycle" },
	};

	hpet_create();
	*hpet_register(HPET_PERIOD) = periods[_i].period_fs;
	errno = 4711;
	ck_assert_int_eq(open_hpet(), 0);
	ck_assert_int_eq(errno, 4711);
	ck_assert_str_eq(cs.name, "hpet");
	ck_assert_uint_eq(cs.hz, periods[_i].hz);
	ck_assert_uint_eq(cs.mask, UINT32_MAX);
	ck_assert(cs.watched);
	ck_assert(!cs.kernels_own);
	ck_assert_str_eq(reason, periods[_i].words);
	*hpet_register(HPET_COUNTER) = 0xdeadbeef;
	/* The upper half of a 64-bit one isn't read. */
	*hpet_register(HPET_COUNTER + 4) = 0x12345678;
	ck_assert_uint_eq(cs.read(), 0xdeadbeef);
	hpet_remove();
}
END_TEST

START_TEST(bad_registers)
{
	static const struct {
		int offset;
		uint32_t value;
		int error;
		const char *words;
	} bad[] = {
		{ HPET_PERIOD, 0, EINVAL,
			"not an HPET: revision 1, period 0 fs (1 to "
			"100000000)" },
		{ HPET_PERIOD, 100000001, EINVAL,
			"not an HPET: revision 1, period 100000001 fs (1 to "
			"100000000)" },
		{ HPET_PERIOD, UINT32_MAX, EINVAL,
			"not an HPET: revision 1, period 4294967295 fs (1 to "
			"100000000)" },
		{ HPET_CAPABILITIES, 0x8086a200, EINVAL,
			"not an HPET: revision 0, period 10000000 fs (1 to "
			"100000000)" },
		{ HPET_CONFIGURATION, 0, ENODEV, "it doesn't run" },
		{ HPET_CONFIGURATION, 2, ENODEV, "it doesn't run" },
	};

	hpet_create();
	*hpet_register(bad[_i].offset) = bad[_i].value;
	assert_refused(bad[_i].error, bad[_i].words);
	assert_status_says(bad[_i].words);

	/* Mended, it can be had. */
	*hpet_register(HPET_CAPABILITIES) = 1;
	*hpet_register(HPET_PERIOD) = HPET_PERIOD_FS;
	*hpet_register(HPET_CONFIGURATION) = 1;
	ck_assert_int_eq(open_hpet(), 0);
	ck_assert_str_eq(cs.name, "hpet");
	hpet_remove();
}
END_TEST

START_TEST(short_file)
{
	static const int sizes[] = { 0, 1, 0xf4, HPET_SIZE - 1 };

	for (int i = 0; i < LENGTH(sizes); i++) {
		char path[] = "short-XXXXXX";
		int fd = mkstemp(path);

		ck_assert_int_eq(ftruncate(fd, sizes[i]), 0);
		close(fd);
		set_device(path);
		assert_refused(EINVAL, "no HPET there (EINVAL)");
		if (i == 0)
			assert_status_says("no HPET there (EINVAL)");
		unlink(path);
	}
}
END_TEST

START_TEST(missing)
{
	set_device("no/such/hpet");
	assert_refused(ENOENT, "no such device (ENOENT)");
	assert_status_says("no such device (ENOENT)");
	set_device("");
	assert_refused(ENOENT, "no such device (ENOENT)");
}
END_TEST

START_TEST(directory)
{
	set_device(".");
	ck_assert_int_ne(open_hpet(), 0);
	ck_assert_str_ne(cs.name, "hpet");
	ck_assert(strncmp(reason, ASKED "no ", strlen(ASKED "no ")) == 0);
	set_device("/dev/null");
	ck_assert_int_ne(open_hpet(), 0);
	ck_assert_str_ne(cs.name, "hpet");
	set_device("/dev/zero");
	assert_refused(EINVAL, "not an HPET: revision 0, period 0 fs (1 to "
		"100000000)");
}
END_TEST

static void open_as_nobody(void)
{
	CHECK(setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
	CHECK(open_hpet() == -EACCES);
	CHECK(strstr(reason, ASKED "not permitted: root only, or hpet_mmap=0 "
				   "(EACCES); ") == reason);
	CHECK(strcmp(cs.name, "hpet") != 0);
}

START_TEST(no_permission)
{
	hpet_create(); /* of mode 0600 */
	if (getuid() == 0)
		ck_assert(child_does(open_as_nobody));
	hpet_remove();
}
END_TEST

START_TEST(kernel_refuses)
{
	static const struct {
		int error;
		const char *words;
	} errors[] = {
		{ EBUSY, "busy: in use, or the machine has none (EBUSY)" },
		{ EACCES,
			"not permitted: root only, or hpet_mmap=0 (EACCES)" },
		{ EINVAL, "no HPET there (EINVAL)" },
		{ ENXIO, "no such device (ENXIO)" },
		{ EMFILE, "can't be opened" },
	};

	hpet_create();
	sim.hpet_error = errors[_i].error;
	assert_refused(errors[_i].error, errors[_i].words);
	assert_status_says(errors[_i].words);
	/* What frees it up makes it usable. */
	sim.hpet_error = 0;
	ck_assert_int_eq(open_hpet(), 0);
	hpet_remove();
}
END_TEST

START_TEST(automatic)
{
	hpet_create();
	sim.hpet_error = EBUSY; /* and nobody notices */
	ck_assert_int_eq(clocksource_open(&cs, NULL, reason, sizeof(reason)),
		0);
	ck_assert_str_ne(cs.name, "hpet");
	ck_assert(strstr(reason, "not hpet: only if asked for") != NULL);
	ck_assert(strstr(reason, "EBUSY") == NULL);
	hpet_remove();
}
END_TEST

/* The device may be had once: the mapping is kept. */
START_TEST(kept)
{
	uint64_t (*read)(void);

	hpet_create();
	ck_assert_int_eq(open_hpet(), 0);
	read = cs.read;
	hpet_remove();
	sim.hpet_error = EBUSY;
	ck_assert_int_eq(open_hpet(), 0);
	*hpet_register(HPET_COUNTER) = 4711;
	ck_assert_uint_eq(cs.read(), 4711);
	ck_assert(cs.read == read);
}
END_TEST

/* From here on the counter turns. */
static struct publisher p;

static void turn(void)
{
	*hpet_register(HPET_COUNTER) = (uint32_t)sim_cycles();
}

static void begin_turning(uint64_t cycles)
{
	hpet_create();
	ck_assert_int_eq(open_hpet(), 0);
	hpet_remove();
	sim_begin(HPET_HZ, UINT32_MAX);
	sim.cycles = cycles;
	sim.read_ns = 1500;
	sim.turn = turn;
	turn();
	publisher_start(&p, &cs);
}

static void publish(int64_t after_ns)
{
	static int64_t last_mono_ns;
	struct timekeeper_sample sample;
	int64_t mono_ns, wall_ns;

	sim_pass(after_ns);
	mono_ns = sim_mono();
	wall_ns = sim_wall();
	publisher_publish(&p, &sample);
	ALWAYS(ct_page.mono_ns <= sim_mono());
	ALWAYS(ct_page.mono_ns >= mono_ns - 120 * US);
	ALWAYS(ct_page.mono_ns >= last_mono_ns);
	ALWAYS(ct_page.wall_ns <= sim_wall());
	ALWAYS(ct_page.wall_ns >= wall_ns - 120 * US);
	last_mono_ns = ct_page.mono_ns;
}

static void assert_in_use(void)
{
	char fate[128];

	publisher_explain(&p, fate, sizeof(fate));
	ck_assert_str_eq(fate, "");
	ck_assert_str_eq(ct_page.backend, "hpet");
}

/* A tick of each length, from just below the wrap; each 42.9 s once more. */
START_TEST(wraps)
{
	static const int64_t ticks_ns[] = { 50 * US, MS, 10 * MS, SEC };
	int64_t tick_ns = ticks_ns[_i];

	begin_turning(UINT64_C(0x100000000) - 20 * HPET_HZ / 1000);
	for (int i = 0; i < 50000 && i * tick_ns < 3600 * SEC; i++)
		publish(tick_ns);
	assert_in_use();
	ck_assert_uint_eq(ct_page.rebases, 0);
	ck_assert_int_le(llabs((int64_t)ct_page.counter_hz - HPET_HZ), 100);
}
END_TEST

/* Suspend to memory sets it to 0. */
START_TEST(suspend)
{
	begin_turning(0x12345678);
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < 1500; i++)
			publish(MS);
		sim.boot_offset_ns += 3600 * SEC;
		sim.wall_offset_ns += 3600 * SEC;
		sim.cycles = 0;
		sim.cycles_ns = sim.raw_ns;
		turn();
	}
	for (int i = 0; i < 1500; i++)
		publish(MS);
	assert_in_use();
}
END_TEST

/* Somebody wrote to it: no suspend excuses that. */
START_TEST(reset)
{
	char fate[128];

	begin_turning(0x12345678);
	for (int i = 0; i < 1500; i++)
		publish(MS);
	sim.cycles = 0;
	sim.cycles_ns = sim.raw_ns;
	turn();
	for (int i = 0; i < 1500; i++)
		publish(MS);
	publisher_explain(&p, fate, sizeof(fate));
	ck_assert_str_eq(fate, "dropped for realtime: it ran backwards");
	ck_assert_str_eq(ct_page.backend, "realtime");
}
END_TEST

/* A debugger or a job control signal stops the process for minutes. */
START_TEST(stopped)
{
	begin_turning(0x12345678);
	for (int64_t gap_ns = SEC; gap_ns < 1000 * SEC; gap_ns += 3 * SEC) {
		for (int i = 0; i < 200; i++)
			publish(MS);
		publish(gap_ns);
	}
	for (int i = 0; i < 200; i++)
		publish(MS);
	assert_in_use();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("hpet");

	add_table(suite, "good device", good, 5);
	add_table(suite, "registers of something else", bad_registers, 6);
	add_situation(suite, "file too short", short_file);
	add_situation(suite, "no device", missing);
	add_situation(suite, "no device but a directory", directory);
	add_situation(suite, "no permission", no_permission);
	add_table(suite, "kernel refuses", kernel_refuses, 5);
	add_situation(suite, "not asked for", automatic);
	add_situation(suite, "second start", kept);
	add_table(suite, "counter wraps", wraps, 4);
	add_situation(suite, "suspend", suspend);
	add_situation(suite, "reset", reset);
	add_situation(suite, "stopped for long", stopped);
	return run_suite(suite);
}
