/* SPDX-License-Identifier: MIT */
/* Between which true time lies, by what the kernel knows of its clock. */
#ifndef BOUNDS_H
#define BOUNDS_H

#include <cachedtime.h>

/* As ct_bounds(). Any thread. */
int bounds_read(struct ct_bounds *bounds);

#endif /* BOUNDS_H */
