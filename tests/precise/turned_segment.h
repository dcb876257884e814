/* SPDX-License-Identifier: MIT */
#ifndef TURNED_SEGMENT_H
#define TURNED_SEGMENT_H

#include <stdint.h>

/* The processor's counter: by turned.h. */
uint64_t turned_counter(void);

#endif /* TURNED_SEGMENT_H */
