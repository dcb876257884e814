/* SPDX-License-Identifier: MIT */
/* Arithmetic of times, for the pure parts and those that call the system. */
#ifndef ARITH_H
#define ARITH_H

#include <stdint.h>

#define NS_PER_SEC INT64_C(1000000000)

/* Products of cycles and rates: multiply before you divide, in 128 bits. */
__extension__ typedef unsigned __int128 u128;
__extension__ typedef __int128 i128;

/* How far outside lo..hi: negative below, positive above, 0 within. */
static inline int64_t outside(int64_t value, int64_t lo, int64_t hi)
{
	if (value < lo)
		return value - lo;
	if (value > hi)
		return value - hi;
	return 0;
}

#endif /* ARITH_H */
