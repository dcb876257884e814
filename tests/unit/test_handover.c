/* SPDX-License-Identifier: MIT */
/*
 * The states of a word, turned by hand: one thread, and a clock that stands
 * still. What other threads do in between happens in `meanwhile`, which is
 * called at each read of the kernel's clock, the one moment that matters.
 *
 * All interleavings of two and more threads are the model's business, in
 * tests/stress.
 */
#include <string.h>

#include "handover.h"
#include "kernel_clock.h"
#include "suite.h"

#define MS INT64_C(1000000)
#define SEC INT64_C(1000000000)
#define TAI_OFFSET (37 * SEC)

static struct {
	int64_t wall_ns, mono_ns, boot_ns;
	int64_t step_ns; /* passes at each read */
	int reads;
	void (*meanwhile)(int nth);
} turned;

/* The linker calls this instead: --wrap. */
int64_t __wrap_kernel_clock_ns(clockid_t clock);

int64_t __wrap_kernel_clock_ns(clockid_t clock)
{
	turned.reads++;
	turned.wall_ns += turned.step_ns;
	turned.mono_ns += turned.step_ns;
	turned.boot_ns += turned.step_ns;
	if (turned.meanwhile != NULL)
		turned.meanwhile(turned.reads);

	switch (clock) {
	case CLOCK_REALTIME:
		return turned.wall_ns;
	case CLOCK_MONOTONIC:
		return turned.mono_ns;
	case CLOCK_BOOTTIME:
		return turned.boot_ns;
	case CLOCK_TAI:
		return turned.wall_ns + TAI_OFFSET;
	default:
		ck_abort_msg("clock %d", clock);
		return 0;
	}
}

static void begin(void)
{
	memset(&turned, 0, sizeof(turned));
	turned.wall_ns = 1700000000 * SEC + 123456789;
	turned.mono_ns = 5000 * SEC + 987654321;
	turned.boot_ns = turned.mono_ns + 3600 * SEC;
	handover_park();
}

/* One moment on all clocks. */
static struct handover_now at(int64_t wall_ns, int64_t mono_ns, int64_t boot_ns)
{
	return (struct handover_now){ wall_ns, mono_ns, boot_ns,
		wall_ns + TAI_OFFSET };
}

static const struct handover_now *kernel_shows(void)
{
	static struct handover_now now;

	now = at(turned.wall_ns, turned.mono_ns, turned.boot_ns);
	return &now;
}

static void set_ns(int64_t value)
{
	__atomic_store_n(&ct_page.mono_ns, value, __ATOMIC_RELAXED);
}

static int64_t get_ns(void)
{
	return __atomic_load_n(&ct_page.mono_ns, __ATOMIC_RELAXED);
}

static const int64_t *const words[CT_WORDS] = {
	[CT_WORD_WALL_S] = &ct_page.wall_s,
	[CT_WORD_WALL_MS] = &ct_page.wall_ms,
	[CT_WORD_WALL_US] = &ct_page.wall_us,
	[CT_WORD_WALL_NS] = &ct_page.wall_ns,
	[CT_WORD_WALL_MS_F64] = &ct_page.wall_ms_f64,
	[CT_WORD_MONO_MS] = &ct_page.mono_ms,
	[CT_WORD_MONO_US] = &ct_page.mono_us,
	[CT_WORD_MONO_NS] = &ct_page.mono_ns,
	[CT_WORD_BOOT_MS] = &ct_page.boot_ms,
	[CT_WORD_TAI_NS] = &ct_page.tai_ns,
};

static int64_t double_bits(double number)
{
	int64_t bits;

	memcpy(&bits, &number, sizeof(bits));
	return bits;
}

static void assert_word(enum ct_word word, int64_t ns, int64_t unit_ns)
{
	ck_assert_int_eq(*words[word], ns / unit_ns);
}

static void assert_words(int64_t wall_ns, int64_t mono_ns, int64_t boot_ns)
{
	assert_word(CT_WORD_WALL_S, wall_ns, SEC);
	assert_word(CT_WORD_WALL_MS, wall_ns, MS);
	assert_word(CT_WORD_WALL_US, wall_ns, 1000);
	assert_word(CT_WORD_WALL_NS, wall_ns, 1);
	ck_assert_int_eq(
		ct_page.wall_ms_f64, double_bits((double)(wall_ns / MS)));
	assert_word(CT_WORD_MONO_MS, mono_ns, MS);
	assert_word(CT_WORD_MONO_US, mono_ns, 1000);
	assert_word(CT_WORD_MONO_NS, mono_ns, 1);
	assert_word(CT_WORD_BOOT_MS, boot_ns, MS);
	assert_word(CT_WORD_TAI_NS, wall_ns + TAI_OFFSET, 1);
}

static void assert_all(int64_t value)
{
	for (int i = 0; i < CT_WORDS; i++)
		ck_assert_int_eq(*words[i], value);
}

static void publish(int64_t wall_ns, int64_t mono_ns)
{
	struct handover_now now = at(wall_ns, mono_ns, mono_ns + 3600 * SEC);
	struct handover_view view;

	handover_look(&view);
	handover_publish(&view, &now, kernel_shows(), 0);
}

/* Reading */

START_TEST(parked_word_asks)
{
	ck_assert_int_eq(handover_read(CT_WORD_WALL_S), turned.wall_ns / SEC);
	ck_assert_int_eq(handover_read(CT_WORD_WALL_MS), turned.wall_ns / MS);
	ck_assert_int_eq(handover_read(CT_WORD_WALL_US), turned.wall_ns / 1000);
	ck_assert_int_eq(handover_read(CT_WORD_WALL_NS), turned.wall_ns);
	ck_assert_int_eq(handover_read(CT_WORD_MONO_MS), turned.mono_ns / MS);
	ck_assert_int_eq(handover_read(CT_WORD_MONO_US), turned.mono_ns / 1000);
	ck_assert_int_eq(handover_read(CT_WORD_MONO_NS), turned.mono_ns);
	ck_assert_int_eq(handover_read(CT_WORD_BOOT_MS), turned.boot_ns / MS);
	ck_assert_int_eq(handover_read(CT_WORD_WALL_MS_F64),
		double_bits((double)(turned.wall_ns / MS)));
	ck_assert_int_eq(handover_read(CT_WORD_TAI_NS),
		turned.wall_ns + TAI_OFFSET);
	/* One read of the clock each, and nothing written. */
	ck_assert_int_eq(turned.reads, CT_WORDS);
	assert_all(0);
}
END_TEST

START_TEST(word_with_a_time)
{
	set_ns(turned.mono_ns + SEC);
	ck_assert_int_eq(handover_read(CT_WORD_MONO_NS), turned.mono_ns + SEC);
	ck_assert_int_eq(get_ns(), turned.mono_ns + SEC);
}
END_TEST

START_TEST(marked_word_is_helped)
{
	turned.step_ns = 10;
	set_ns(-4711);
	ck_assert_int_eq(handover_read(CT_WORD_MONO_NS), turned.mono_ns);
	ck_assert_int_eq(get_ns(), turned.mono_ns);
	/* What was read before the mark was seen may be too early. */
	ck_assert_int_eq(turned.reads, 2);
}
END_TEST

static void engage_at_first_read(int nth)
{
	if (nth == 1)
		set_ns(turned.mono_ns + 77);
}

/* Read live, then found a word: that is what others have seen. */
START_TEST(engaged_meanwhile)
{
	turned.meanwhile = engage_at_first_read;
	ck_assert_int_eq(handover_read(CT_WORD_MONO_NS), turned.mono_ns + 77);
	ck_assert_int_eq(get_ns(), turned.mono_ns + 77);
}
END_TEST

static void mark_at_first_read(int nth)
{
	if (nth == 1)
		set_ns(-1);
}

START_TEST(marked_meanwhile)
{
	turned.step_ns = 10;
	turned.meanwhile = mark_at_first_read;
	ck_assert_int_eq(handover_read(CT_WORD_MONO_NS), turned.mono_ns);
	ck_assert_int_eq(turned.reads, 2);
	ck_assert_int_eq(get_ns(), turned.mono_ns);
}
END_TEST

static void publish_at_second_read(int nth)
{
	if (nth == 2)
		set_ns(turned.mono_ns + 5);
}

START_TEST(another_helper_was_first)
{
	set_ns(-1);
	turned.meanwhile = publish_at_second_read;
	ck_assert_int_eq(handover_read(CT_WORD_MONO_NS), turned.mono_ns + 5);
	ck_assert_int_eq(get_ns(), turned.mono_ns + 5);
}
END_TEST

static void mark_anew_at_second_read(int nth)
{
	if (nth == 2)
		set_ns(-2);
}

/* Parked and engaged again in between: the time was read for the old mark,
 * so it doesn't do for the new one. */
START_TEST(another_mark)
{
	turned.step_ns = 10;
	set_ns(-1);
	turned.meanwhile = mark_anew_at_second_read;
	ck_assert_int_eq(handover_read(CT_WORD_MONO_NS), turned.mono_ns);
	ck_assert_int_eq(turned.reads, 3);
	ck_assert_int_eq(get_ns(), turned.mono_ns);
}
END_TEST

static void park_at_second_read(int nth)
{
	if (nth == 2)
		set_ns(0);
}

/* The second time is the one to tell: the first may be earlier than a word
 * that was published and parked in between. */
START_TEST(parked_while_helping)
{
	turned.step_ns = 10;
	set_ns(-1);
	turned.meanwhile = park_at_second_read;
	ck_assert_int_eq(handover_read(CT_WORD_MONO_NS), turned.mono_ns);
	ck_assert_int_eq(turned.reads, 2);
	ck_assert_int_eq(get_ns(), 0);
}
END_TEST

START_TEST(helper_before_1970)
{
	turned.wall_ns = -5 * SEC;
	__atomic_store_n(&ct_page.wall_ns, -1, __ATOMIC_RELAXED);
	ck_assert_int_eq(handover_read(CT_WORD_WALL_NS), -5 * SEC);
	ck_assert_int_eq(ct_page.wall_ns, -1);
}
END_TEST

/* Publishing */

START_TEST(published_words)
{
	handover_engage();
	assert_words(turned.wall_ns, turned.mono_ns, turned.boot_ns);

	publish(turned.wall_ns + 3 * SEC, turned.mono_ns + 3 * SEC);
	assert_words(turned.wall_ns + 3 * SEC, turned.mono_ns + 3 * SEC,
		turned.mono_ns + 3603 * SEC);
}
END_TEST

START_TEST(parked_word_stays_parked)
{
	struct handover_now now = at(turned.wall_ns, turned.mono_ns, 1);
	struct handover_view view;

	/* Parked before the look ... */
	publish(turned.wall_ns, turned.mono_ns);
	assert_all(0);

	/* ... after it, with a time seen, or a mark. */
	handover_engage();
	handover_look(&view);
	handover_park();
	now.mono_ns += SEC;
	handover_publish(&view, &now, kernel_shows(), 0);
	assert_all(0);

	for (int i = 0; i < CT_WORDS; i++)
		view.seen[i] = -1;
	handover_publish(&view, &now, kernel_shows(), 0);
	assert_all(0);
}
END_TEST

/* Parked when looked at, engaged since by somebody whose time is later. */
START_TEST(engaged_after_the_look)
{
	struct handover_now now = at(turned.wall_ns - SEC, turned.mono_ns - SEC,
		turned.boot_ns - SEC);
	struct handover_view view;

	handover_look(&view);
	handover_engage();
	handover_publish(&view, &now, kernel_shows(), 0);
	assert_words(turned.wall_ns, turned.mono_ns, turned.boot_ns);
}
END_TEST

START_TEST(outdated_witness)
{
	struct handover_now late = at(turned.wall_ns + 1 * SEC,
		turned.mono_ns + 1 * SEC, turned.boot_ns + 1 * SEC);
	struct handover_view view;

	handover_engage();
	handover_look(&view);
	publish(turned.wall_ns + 2 * SEC, turned.mono_ns + 2 * SEC);
	/* Later than what was seen, not than what is there. */
	handover_publish(&view, &late, kernel_shows(), 0);
	assert_words(turned.wall_ns + 2 * SEC, turned.mono_ns + 2 * SEC,
		turned.mono_ns + 3602 * SEC);

	/* Nor is a mark of another engagement replaced. */
	set_ns(-2);
	view.seen[CT_WORD_MONO_NS] = -1;
	handover_publish(&view, &late, kernel_shows(), 0);
	ck_assert_int_eq(get_ns(), -2);
}
END_TEST

/* Who gets in between had looked before the wall clock was set back an hour:
 * its time is later, and wrong. */
START_TEST(beaten_by_a_time_before_a_step)
{
	struct handover_now stepped = at(turned.wall_ns - 3600 * SEC,
		turned.mono_ns + SEC, turned.boot_ns + SEC);
	struct handover_view view;

	handover_engage();
	handover_look(&view);
	publish(turned.wall_ns + SEC, turned.mono_ns + SEC);
	ck_assert(!handover_publish(&view, &stepped, &stepped, 0));

	/* Once more, as who publishes then does. */
	handover_look(&view);
	ck_assert(handover_publish(&view, &stepped, &stepped, 0));
	assert_words(stepped.wall_ns, stepped.mono_ns, stepped.boot_ns);
}
END_TEST

START_TEST(mono_behind_a_word)
{
	handover_engage();
	publish(turned.wall_ns, turned.mono_ns - SEC);
	assert_words(turned.wall_ns, turned.mono_ns, turned.boot_ns);

	/* Whatever the wall clock says, here of 1970: it is no judge of mono. */
	turned.wall_ns = 100 * SEC;
	publish(turned.wall_ns, turned.mono_ns - SEC);
	assert_words(turned.wall_ns, turned.mono_ns, turned.boot_ns);
}
END_TEST

/* Parked, and the kernel's own clock is behind what was published. */
START_TEST(kernel_behind_a_word)
{
	int64_t published_ns = turned.mono_ns + 2 * MS;

	handover_engage();
	publish(turned.wall_ns, published_ns);
	handover_park();
	ck_assert_int_eq(handover_read(CT_WORD_MONO_NS), published_ns);
	ck_assert_int_eq(handover_read(CT_WORD_MONO_MS), published_ns / MS);
	turned.mono_ns += 3 * MS;
	ck_assert_int_eq(handover_read(CT_WORD_MONO_NS), turned.mono_ns);

	/* So are the words that a new engagement begins with. */
	turned.mono_ns -= 3 * MS;
	handover_engage();
	ck_assert_int_eq(get_ns(), published_ns);
}
END_TEST

/* A helper's, or a reader's with another sample: a little ahead of ours. */
START_TEST(wall_a_little_behind)
{
	int64_t word_ns;

	handover_engage();
	word_ns = turned.wall_ns;
	turned.wall_ns += 500;
	publish(word_ns - 300, turned.mono_ns);
	assert_words(word_ns, turned.mono_ns, turned.boot_ns);
	/* The kernel's clock has just reached it: hold, still. */
	turned.wall_ns = word_ns;
	publish(word_ns - 1, turned.mono_ns);
	ck_assert_int_eq(ct_page.wall_ns, word_ns);
}
END_TEST

START_TEST(wall_set_back)
{
	handover_engage();
	turned.wall_ns -= 3600 * SEC;
	publish(turned.wall_ns - 100, turned.mono_ns);
	assert_words(turned.wall_ns - 100, turned.mono_ns, turned.boot_ns);

	/* By less than a word's unit as well: no word stays ahead. */
	turned.wall_ns -= 2 * MS;
	publish(turned.wall_ns, turned.mono_ns);
	assert_words(turned.wall_ns, turned.mono_ns, turned.boot_ns);
}
END_TEST

/* A coarse clock lags the exact one, from which the word was taken. */
START_TEST(wall_behind_by_its_lag)
{
	struct handover_now now = at(turned.wall_ns - 7 * MS, turned.mono_ns,
		turned.boot_ns);
	int64_t word_ns = turned.wall_ns;
	struct handover_view view;

	handover_engage();
	handover_look(&view);
	handover_publish(&view, &now, &now, 8 * MS);
	ck_assert_int_eq(ct_page.wall_ns, word_ns);
	/* Further behind than it can lag: it was set back. */
	now.wall_ns = word_ns - 9 * MS;
	handover_publish(&view, &now, &now, 8 * MS);
	ck_assert_int_eq(ct_page.wall_ns, word_ns - 9 * MS);
}
END_TEST

START_TEST(wall_before_1970)
{
	turned.wall_ns = -5 * SEC - 1;
	handover_engage();
	for (int i = CT_WORD_WALL_S; i <= CT_WORD_WALL_MS_F64; i++)
		ck_assert_int_eq(*words[i], 0);
	ck_assert_int_eq(get_ns(), turned.mono_ns);
	/* The live answer rounds down, there too. */
	ck_assert_int_eq(handover_read(CT_WORD_WALL_S), -6);
	ck_assert_int_eq(handover_read(CT_WORD_WALL_MS), -5001);
	ck_assert_int_eq(handover_read(CT_WORD_WALL_NS), turned.wall_ns);
	ck_assert_int_eq(
		handover_read(CT_WORD_WALL_MS_F64), double_bits(-5001.0));

	/* Set back to there while it is cached. */
	handover_park();
	turned.wall_ns = SEC;
	handover_engage();
	ck_assert_int_eq(ct_page.wall_s, 1);
	turned.wall_ns = -SEC;
	publish(turned.wall_ns, turned.mono_ns);
	for (int i = CT_WORD_WALL_S; i <= CT_WORD_WALL_MS_F64; i++)
		ck_assert_int_eq(*words[i], 0);
}
END_TEST

/* The second 0 is a time that its word can't tell; the millisecond 500 is. */
START_TEST(wall_within_1970s_first_second)
{
	turned.wall_ns = SEC / 2;
	handover_engage();
	ck_assert_int_eq(ct_page.wall_s, 0);
	ck_assert_int_eq(ct_page.wall_ms, 500);
	ck_assert_int_eq(ct_page.wall_ms_f64, double_bits(500.0));
	ck_assert_int_eq(handover_read(CT_WORD_WALL_S), 0);
}
END_TEST

START_TEST(double_for_each_millisecond)
{
	for (int i = 0; i < 3000; i++) {
		turned.wall_ns += MS / 3;
		turned.mono_ns += MS / 3;
		publish(turned.wall_ns, turned.mono_ns);
		if (i == 0)
			handover_engage();
		if (ct_page.wall_ms_f64 !=
			double_bits((double)(turned.wall_ns / MS)))
			ck_abort_msg("%d", i);
	}
}
END_TEST

/* Engaging */

static int64_t marks_seen[4];
static int marked;

/* Engaging: the mark's own read, then one read for each clock. */
static void see_marks(int nth)
{
	if (nth == 1) {
		assert_all(0);
	} else if (nth == 2) {
		ck_assert_int_lt(get_ns(), 0);
		assert_all(get_ns());
		marks_seen[marked++] = get_ns();
	}
}

START_TEST(marks_are_unique)
{
	turned.step_ns = 1;
	turned.meanwhile = see_marks;
	for (int i = 0; i < 4; i++) {
		turned.reads = 0;
		handover_engage();
		ck_assert_int_gt(turned.reads, 2);
		turned.meanwhile = NULL;
		handover_park();
		turned.meanwhile = see_marks;
	}
	/* Minus mono's nanoseconds: no mark comes twice. */
	for (int i = 1; i < 4; i++)
		ck_assert_int_lt(marks_seen[i], marks_seen[i - 1]);
	ck_assert_int_ge(marks_seen[3], -turned.mono_ns);
}
END_TEST

/* A time that is read after the mark, so that a reader who still found 0 has
 * an earlier one. */
START_TEST(time_is_read_after_the_mark)
{
	turned.step_ns = 10;
	handover_engage();
	ck_assert_int_gt(get_ns(), 5000 * SEC + 987654321 + 10);
	ck_assert_int_le(get_ns(), turned.mono_ns);
}
END_TEST

static void help_at_second_read(int nth)
{
	if (nth == 2)
		set_ns(turned.mono_ns + 40);
}

START_TEST(helped_while_engaging)
{
	turned.meanwhile = help_at_second_read;
	handover_engage();
	ck_assert_int_eq(get_ns(), turned.mono_ns + 40);
	ck_assert_int_eq(ct_page.mono_ms, turned.mono_ns / MS);
}
END_TEST

static void park_at_third_read(int nth)
{
	if (nth == 3)
		handover_park();
}

START_TEST(parked_while_engaging)
{
	turned.meanwhile = park_at_third_read;
	handover_engage();
	assert_all(0);
}
END_TEST

START_TEST(engaged_already)
{
	handover_engage();
	turned.mono_ns -= SEC;
	turned.meanwhile = NULL;
	handover_engage();
	ck_assert_int_eq(get_ns(), turned.mono_ns + SEC);
}
END_TEST

START_TEST(refresh)
{
	struct handover_now now;

	handover_refresh(&now);
	assert_all(0);
	ck_assert_int_eq(now.mono_ns, turned.mono_ns);

	handover_engage();
	turned.mono_ns += SEC;
	turned.wall_ns += SEC;
	turned.boot_ns += SEC;
	handover_refresh(&now);
	assert_words(turned.wall_ns, turned.mono_ns, turned.boot_ns);
	ck_assert_int_eq(now.wall_ns, turned.wall_ns);
	ck_assert_int_eq(now.boot_ns, turned.boot_ns);
}
END_TEST

static void add(Suite *suite, const char *situation, const TTest *test)
{
	TCase *tcase = tcase_create(situation);

	tcase_add_checked_fixture(tcase, begin, NULL);
	tcase_add_test(tcase, test);
	suite_add_tcase(suite, tcase);
}

int main(void)
{
	Suite *suite = suite_create("handover");

	add(suite, "read: parked", parked_word_asks);
	add(suite, "read: a time", word_with_a_time);
	add(suite, "read: marked", marked_word_is_helped);
	add(suite, "read: engaged meanwhile", engaged_meanwhile);
	add(suite, "read: marked meanwhile", marked_meanwhile);
	add(suite, "read: another helper was first", another_helper_was_first);
	add(suite, "read: another mark", another_mark);
	add(suite, "read: parked while helping", parked_while_helping);
	add(suite, "read: helper before 1970", helper_before_1970);

	add(suite, "publish: all words", published_words);
	add(suite, "publish: parked", parked_word_stays_parked);
	add(suite, "publish: engaged after the look", engaged_after_the_look);
	add(suite, "publish: outdated witness", outdated_witness);
	add(suite, "publish: beaten by a time before a step",
		beaten_by_a_time_before_a_step);
	add(suite, "publish: mono behind a word", mono_behind_a_word);
	add(suite, "publish: kernel behind a word", kernel_behind_a_word);
	add(suite, "publish: wall a little behind", wall_a_little_behind);
	add(suite, "publish: wall set back", wall_set_back);
	add(suite, "publish: wall behind by its lag", wall_behind_by_its_lag);
	add(suite, "publish: wall before 1970", wall_before_1970);
	add(suite, "publish: wall within 1970's first second",
		wall_within_1970s_first_second);
	add(suite, "publish: doubles", double_for_each_millisecond);

	add(suite, "engage: marks are unique", marks_are_unique);
	add(suite, "engage: read after the mark", time_is_read_after_the_mark);
	add(suite, "engage: helped", helped_while_engaging);
	add(suite, "engage: parked", parked_while_engaging);
	add(suite, "engage: engaged already", engaged_already);
	add(suite, "refresh", refresh);
	return run_suite(suite);
}
