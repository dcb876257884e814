/* SPDX-License-Identifier: MIT */
/*
 * Ordered precise time between threads, while the kernel slews its clocks by
 * up to 10 %, as adjtimex(2) lets it: chrony takes 8.3 %. Nobody sets the
 * clock, so neither mono nor wall may go back. The counter is the machine's
 * own; the linker has the library read these clocks instead of its own:
 * --wrap.
 *
 *	test_slewed [stamps]
 */
#include "ordered.h"

/* Of one slope; a segment takes 2.5 ms. */
#define SLOPE_NS (12 * MS)
/* However few the stamps: for some slopes. */
#define LEAST_NS (SEC / 2)

#define LINES 4096
#define WALL_OFFSET_NS (1700000000 * SEC)

/* The kernel's mono from real_ns on. */
struct line {
	int64_t real_ns;
	int64_t mono_ns;
	int64_t ppm;
};

static struct line lines[LINES];
static int current; /* CHANGING: wait */
#define CHANGING -1

static int64_t stamps = 1000000;

int64_t __wrap_kernel_clock_ns(clockid_t clock);
int __wrap_kernel_clock_try(clockid_t clock, int64_t *ns);
int64_t __real_kernel_clock_ns(clockid_t clock);

static int64_t on_line(const struct line *line, int64_t real_ns)
{
	return line->mono_ns + (real_ns - line->real_ns) +
	       (real_ns - line->real_ns) * line->ppm / 1000000;
}

/* What was read while it changes doesn't count: a sequence count, as the
 * kernel's. */
static int64_t slewed_mono(void)
{
	int64_t real_ns = 0;
	int i;

	do {
		/* Acquire: pairs with slew(). */
		i = __atomic_load_n(&current, __ATOMIC_ACQUIRE);
		if (i == CHANGING)
			sched_yield();
		else
			real_ns = clock_ns(CLOCK_MONOTONIC);
	} while (i == CHANGING ||
		 __atomic_load_n(&current, __ATOMIC_ACQUIRE) != i);
	return on_line(&lines[i], real_ns);
}

static void slew(int64_t ppm)
{
	/* Seq_cst: the clock is read after it shows. */
	int i = __atomic_exchange_n(&current, CHANGING, __ATOMIC_SEQ_CST);
	int64_t real_ns = clock_ns(CLOCK_MONOTONIC);

	ck_assert_int_lt(i + 1, LINES);
	lines[i + 1] = (struct line){ real_ns, on_line(&lines[i], real_ns),
		ppm };
	/* Release: pairs with slewed_mono(). */
	__atomic_store_n(&current, i + 1, __ATOMIC_RELEASE);
}

int64_t __wrap_kernel_clock_ns(clockid_t clock)
{
	switch (clock) {
	case CLOCK_MONOTONIC_RAW:
		return __real_kernel_clock_ns(clock);
	case CLOCK_REALTIME:
	case CLOCK_REALTIME_COARSE:
	case CLOCK_TAI:
		return slewed_mono() + WALL_OFFSET_NS;
	default:
		return slewed_mono();
	}
}

int __wrap_kernel_clock_try(clockid_t clock, int64_t *ns)
{
	*ns = __wrap_kernel_clock_ns(clock);
	return 0;
}

/* By how much at most; what 500 ppm do is all NTP's. */
static const int64_t slopes_ppm[] = { 500, 5000, 83333, 100000 };

#define SLOPES ((int)(sizeof(slopes_ppm) / sizeof(slopes_ppm[0])))

static void slew_until_read(
	pthread_t *reader, int readers, int64_t ppm, bool ticker)
{
	unsigned int seed = 1;
	int64_t begun_ns = clock_ns(CLOCK_MONOTONIC);

	for (int i = 0; i < readers; i++) {
		while (pthread_tryjoin_np(reader[i], NULL) != 0) {
			slew(rand_r(&seed) % (2 * ppm + 1) - ppm);
			sleep_ns(SLOPE_NS / 2 + rand_r(&seed) % SLOPE_NS);
			slew(rand_r(&seed) % 2 == 0 ? ppm : -ppm);
			sleep_ns(SLOPE_NS / 2 + rand_r(&seed) % SLOPE_NS);
			if (ticker)
				ct_now_ms();
			if (clock_ns(CLOCK_MONOTONIC) - begun_ns > LEAST_NS)
				set(&enough);
		}
	}
}

/* The line follows: when the slewing is over they meet again. */
static void assert_meets_again(void)
{
	int64_t deadline_ns = clock_ns(CLOCK_MONOTONIC) + 10 * SEC;
	int64_t before_ns, ns, after_ns;
	int met = 0;

	slew(0);
	while (met < 1000 && clock_ns(CLOCK_MONOTONIC) < deadline_ns) {
		before_ns = slewed_mono();
		ns = ct_precise_mono_ordered_ns();
		after_ns = slewed_mono();
		if (ns >= before_ns - US && ns <= after_ns + US)
			met++;
		else
			met = 0;
	}
	ck_assert_int_eq(met, 1000);
}

static void run(int i, int readers, void *(*pass)(void *))
{
	int64_t ppm = slopes_ppm[i % SLOPES];
	bool ticker = i % 3 == 0;
	pthread_t reader[MANY];
	uint64_t first;

	wall = i >= SLOPES;
	lines[0] = (struct line){ clock_ns(CLOCK_MONOTONIC), 4000 * SEC, 0 };
	ck_assert_int_eq(start("tsc", ticker), 0);
	ck_assert(wait_for_counter());
	first = segments();
	begin_readers(reader, readers, pass);
	slew_until_read(reader, readers, ppm, ticker);

	assert_none_went_back();
	ck_assert_uint_ge(segments() - first, 10);
	/* It wasn't dropped. */
	ck_assert(wait_for_counter());
	assert_meets_again();
}

START_TEST(in_turns)
{
	run(_i, 2, pass_in_turns);
}
END_TEST

START_TEST(many)
{
	run(_i, MANY, pass_freely);
}
END_TEST

static void add(Suite *suite, const char *name, const TTest *test)
{
	TCase *tcase = tcase_create(name);

	tcase_set_timeout(tcase, 0); /* meson's holds */
	tcase_add_loop_test(tcase, test, 0, 2 * SLOPES);
	suite_add_tcase(suite, tcase);
}

int main(int argc, char **argv)
{
	Suite *suite = suite_create("ordered, slewed");

	lines[0] = (struct line){ clock_ns(CLOCK_MONOTONIC), 4000 * SEC, 0 };
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		skip("one processor: nothing passes between cores");
	if (!counter_can_be_had())
		skip("precise time doesn't come from a counter here");
	if (argc > 1)
		stamps = strtoll(argv[1], NULL, 10);
	stamps_each = stamps / (2 * SLOPES);
	add(suite, "two in turns", in_turns);
	add(suite, "many", many);
	return run_suite(suite);
}
