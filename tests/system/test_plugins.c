/* SPDX-License-Identifier: MIT */
/* A program without the library loads it, or plugins that have it inside. */
#include "plugins.h"

#define LOADS 1000

static struct loaded a, b;

static void load_both(void)
{
	a = load_plugin("CT_TEST_PLUGIN_A");
	b = load_plugin("CT_TEST_PLUGIN_B");
	ck_assert_ptr_ne(a.plugin->page, b.plugin->page);
}

static void both_right_in_child(void)
{
	CHECK(threads() == 1);
	CHECK(a.plugin->ticks_right());
	CHECK(b.plugin->ticks_right());
	CHECK(threads() == 3);
}

START_TEST(two_plugins)
{
	load_both();
	ck_assert(a.plugin->ticks_right());
	ck_assert(b.plugin->ticks_right());
	ck_assert_int_eq(threads(), 3);
	ck_assert(child_does(both_right_in_child));

	ck_assert_int_eq(a.plugin->stop(), 0);
	ck_assert(b.plugin->ticks_right());
	ck_assert(a.plugin->stays_live());
	ck_assert_int_eq(a.plugin->start(), 0);
	ck_assert(a.plugin->ticks_right());

	unload(&a);
	ck_assert(threads_become(2));
	ck_assert(b.plugin->ticks_right());
	unload(&b);
	ck_assert(threads_become(1));
}
END_TEST

static void b_ticks(void)
{
	CHECK(b.plugin->ticks_right());
}

static void unload_a_in_child(void)
{
	CHECK(dlclose(a.handle) == 0);
	CHECK(b.plugin->ticks_right());
	CHECK(child_does(b_ticks));
}

START_TEST(unloaded_in_a_forked_child)
{
	load_both();
	ck_assert(a.plugin->ticks_right());
	ck_assert(b.plugin->ticks_right());
	ck_assert(child_does(unload_a_in_child));
	ck_assert(a.plugin->ticks_right());
	unload(&a);
	ck_assert(child_does(b_ticks));
	unload(&b);
}
END_TEST

static void load_and_unload(const char *variable, bool wait)
{
	struct loaded loaded = load_plugin(variable);

	ck_assert(loaded.plugin->right());
	if (wait)
		ck_assert(loaded.plugin->ticks_right());
	unload(&loaded);
}

START_TEST(plugin_loaded_often)
{
	for (int i = 0; i < LOADS; i++)
		load_and_unload("CT_TEST_PLUGIN_A", i % 50 == 0);
	ck_assert(threads_become(1));
}
END_TEST

/* Each is unloaded while a later one is there. */
START_TEST(plugins_loaded_in_turn)
{
	a = load_plugin("CT_TEST_PLUGIN_A");
	for (int i = 0; i < LOADS; i++) {
		b = load_plugin("CT_TEST_PLUGIN_B");
		ck_assert(b.plugin->right());
		unload(&a);
		a = load_plugin("CT_TEST_PLUGIN_A");
		ck_assert(a.plugin->right());
		unload(&b);
	}
	unload(&a);
	ck_assert(threads_become(1));
}
END_TEST

START_TEST(library_loaded_often)
{
	const char *path = path_from("CT_TEST_LIBRARY");

	for (int i = 0; i < LOADS; i++) {
		void *library = load(path);
		int64_t (*now)(void);
		int64_t off;

		*(void **)&now = dlsym(library, "ct_now_ms");
		ck_assert(now != NULL);
		off = now() - clock_ns(CLOCK_REALTIME) / MS;
		ck_assert(off > -2000 && off <= 1);
		ck_assert_int_eq(dlclose(library), 0);
		if (i % 50 == 0)
			nap(5 * MS);
	}
	ck_assert_int_le(threads(), 2);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("plugins");

	add_situation(suite, "two plugins", two_plugins);
	add_situation(suite, "unloaded in a forked child",
		unloaded_in_a_forked_child);
	add_situation(suite, "a plugin loaded often", plugin_loaded_often);
	add_situation(suite, "plugins loaded in turn", plugins_loaded_in_turn);
	add_situation(suite, "the library loaded often", library_loaded_often);
	return run_suite(suite);
}
