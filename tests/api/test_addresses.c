/* SPDX-License-Identifier: MIT */
/* One page in the process, whoever looks for it and however it was linked. */
#include <dlfcn.h>

#include "address_module.h"
#include "api.h"

START_TEST(page_has_one_address)
{
	ck_assert_ptr_eq(module_page(), &ct_page);
	ck_assert_ptr_eq(dlsym(RTLD_DEFAULT, "ct_page"), &ct_page);
	ck_assert_uint_eq((uintptr_t)&ct_page % CT_PAGE_SIZE, 0);
}
END_TEST

START_TEST(functions_have_one_address)
{
	int64_t (*now_ms)(void) = ct_now_ms;
	void *found = dlsym(RTLD_DEFAULT, "ct_now_ms");

	ck_assert_mem_eq(&found, &now_ms, sizeof(found));
}
END_TEST

START_TEST(published_for_all)
{
	const struct ct_page *found = dlsym(RTLD_DEFAULT, "ct_page");

	ck_assert_int_eq(start_mode(CT_MODE_MANUAL, 0), 0);
	for (int i = 0; i < 100; i++) {
		ct_refresh();
		ck_assert_int_gt(ct_page.mono_ns, 0);
		ck_assert_int_eq(module_mono_ns(), ct_page.mono_ns);
		ck_assert_int_eq(found->mono_ns, ct_page.mono_ns);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("addresses");

	add(suite, "page", page_has_one_address, 1);
	add(suite, "functions", functions_have_one_address, 1);
	add(suite, "published", published_for_all, 1);
	return run_suite(suite);
}
