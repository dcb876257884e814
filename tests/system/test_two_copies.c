/* SPDX-License-Identifier: MIT */
/*
 * A program that is linked with the shared library loads a plugin that has the
 * static archive inside. How that was linked decides what the two share: page
 * and functions (the default), the page alone (-Bsymbolic-functions), nothing
 * (-Bsymbolic). Each tcase loop goes through the three.
 */
#include "clocks.h"
#include "plugins.h"

static const char *const variables[] = { "CT_TEST_PLUGIN_A",
	"CT_TEST_PLUGIN_FUNCTIONS", "CT_TEST_PLUGIN_SYMBOLIC" };

#define VARIANTS 3

static struct loaded other;

static void load_other(int variant)
{
	other = load_plugin(variables[variant]);
	ck_assert((other.plugin->page == &ct_page) == (variant < 2));
}

static bool all_right(void)
{
	return ticks_right() && other.plugin->ticks_right() && right();
}

static void all_right_in_child(void)
{
	CHECK(threads() == 1);
	CHECK(!cached());
	CHECK(all_right());
}

static void plugin_first_in_child(void)
{
	CHECK(other.plugin->ticks_right());
	CHECK(all_right());
}

START_TEST(reads_and_forks)
{
	load_other(_i);
	ck_assert(all_right());
	ck_assert(child_does(all_right_in_child));
	ck_assert(child_does(plugin_first_in_child));
	ck_assert(all_right());
}
END_TEST

START_TEST(loaded_while_ticking)
{
	ck_assert(ticks_right());
	load_other(_i);
	ck_assert(cached());
	ck_assert(all_right());
	unload(&other);
	ck_assert(cached() && right() && advances());
	ck_assert(threads_become(2));
}
END_TEST

START_TEST(program_stops)
{
	load_other(_i);
	ck_assert(all_right());
	ck_assert_int_eq(ct_stop(), 0);
	ck_assert(right() && advances());
	ck_assert(other.plugin->right());
	ck_assert_int_eq(ct_start(NULL), 0);
	ck_assert(all_right());
	unload(&other);
	ck_assert(ticks_right());
}
END_TEST

START_TEST(plugin_stops)
{
	load_other(_i);
	ck_assert(all_right());
	ck_assert_int_eq(other.plugin->stop(), 0);
	ck_assert(right() && advances());
	ck_assert(other.plugin->right());
	ck_assert_int_eq(other.plugin->start(), 0);
	ck_assert(all_right());
	unload(&other);
	ck_assert(right() && advances());
	ck_assert_int_eq(ct_start(NULL), 0);
	ck_assert(ticks_right());
}
END_TEST

/* The plugin's ticker serves the program as well where they share a page. */
START_TEST(owner_unloaded)
{
	load_other(_i);
	ck_assert(other.plugin->ticks_right());
	ck_assert(right());
	unload(&other);
	ck_assert(right() && advances());
	ck_assert(ticks_right());
	ck_assert(threads_become(2));
}
END_TEST

/* The thread that the other copy ended is gone for good, and its stack. */
START_TEST(owner_stopped_then_unloaded)
{
	long before = 0;

	for (int i = 0; i < 120; i++) {
		if (i == 20)
			before = pages_of_memory();
		load_other(_i);
		ck_assert_int_eq(other.plugin->start(), 0);
		ck_assert(other.plugin->right());
		ck_assert_int_eq(ct_stop(), 0);
		unload(&other);
		ck_assert(right());
	}
	/* Of 100 stacks, perhaps one. */
	if (MEMORY_IS_TOLD)
		ck_assert_int_lt(pages_of_memory(), before + 128);
	ck_assert(threads_become(1));
}
END_TEST

/* The loop is the program's: a plugin that goes leaves it alone. */
START_TEST(unloaded_in_manual_mode)
{
	int64_t before_ns;

	load_other(_i);
	ck_assert_int_eq(start_mode(CT_MODE_MANUAL), 0);
	ct_refresh();
	before_ns = ct_now_ns();
	unload(&other);
	nap(2 * MS);
	ck_assert_int_eq(ct_now_ns(), before_ns);
	ct_refresh();
	ck_assert(right());
}
END_TEST

static void unload_in_child(void)
{
	CHECK(dlclose(other.handle) == 0);
	CHECK(ticks_right());
}

START_TEST(unloaded_in_a_forked_child)
{
	load_other(_i);
	ck_assert(other.plugin->ticks_right());
	ck_assert(all_right());
	ck_assert(child_does(unload_in_child));
	ck_assert(all_right());
}
END_TEST

static void add_variants(Suite *suite, const char *name, const TTest *test)
{
	TCase *tc = tcase_create(name);

	tcase_set_timeout(tc, TIMEOUT_S);
	tcase_add_loop_test(tc, test, 0, VARIANTS);
	suite_add_tcase(suite, tc);
}

int main(void)
{
	Suite *suite = suite_create("two copies");

	add_variants(suite, "reads and forks", reads_and_forks);
	add_variants(suite, "loaded while ticking", loaded_while_ticking);
	add_variants(suite, "ct_stop in the program", program_stops);
	add_variants(suite, "ct_stop in the plugin", plugin_stops);
	add_variants(suite, "the ticker's owner unloaded", owner_unloaded);
	add_variants(suite, "the ticker's owner stopped, then unloaded",
		owner_stopped_then_unloaded);
	add_variants(suite, "unloaded in manual mode", unloaded_in_manual_mode);
	add_variants(suite, "unloaded in a forked child",
		unloaded_in_a_forked_child);
	return run_suite(suite);
}
