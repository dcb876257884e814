/* SPDX-License-Identifier: MIT */
#include "address_module.h"

const struct ct_page *module_page(void)
{
	return &ct_page;
}

int64_t module_mono_ns(void)
{
	return ct_mono_ns();
}
