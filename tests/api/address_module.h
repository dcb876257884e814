/* SPDX-License-Identifier: MIT */
/* Another part of the program: a shared object that reads the page, too. */
#include <cachedtime.h>

const struct ct_page *module_page(void);
int64_t module_mono_ns(void);
