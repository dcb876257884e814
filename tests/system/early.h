/* SPDX-License-Identifier: MIT */
#ifndef EARLY_H
#define EARLY_H

#include <stdbool.h>

/* Did its constructor run before cachedtime's? */
__attribute__((visibility("default"))) bool early_was_first(void);

#endif /* EARLY_H */
