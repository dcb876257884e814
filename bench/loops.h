/* SPDX-License-Identifier: MIT */
/*
 * The loops that readers.cc measures, in C, compiled as a user's code is.
 */
#ifndef BENCH_LOOPS_H
#define BENCH_LOOPS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Reads in one round, each written out. */
#define LOOP_READS 64

struct loop {
	const char *name;
	void (*run)(uint64_t rounds);
};

/* Each table ends with a name of NULL. */
extern const struct loop loops_exe[];	 /* loops.c, in the executable */
extern const struct loop loops_pic[];	 /* the same, in a shared object */
extern const struct loop loops_call[];	 /* the library's functions, called */
extern const struct loop loops_kernel[]; /* what the C library offers */

/* Precise time, and the bare counter: loops_precise.c, in the same places. */
extern const struct loop loops_exe_precise[];
extern const struct loop loops_pic_precise[];
extern const struct loop loops_call_precise[]; /* the functions only */

#ifdef __cplusplus
}
#endif

#define LOOP_4(x)  x x x x
#define LOOP_16(x) LOOP_4(x) LOOP_4(x) LOOP_4(x) LOOP_4(x)
#define LOOP_64(x) LOOP_16(x) LOOP_16(x) LOOP_16(x) LOOP_16(x)

/* The value is wanted in a register, and goes nowhere. */
#define LOOP_USE(value) __asm__ volatile("" : : "r"(value));

/* meson.build has each begin on a cache line: where a loop falls by chance
 * decides between 0.33 and 0.65 ns a load. */
#define LOOP(name, statement)                                                  \
	static void name(uint64_t rounds)                                      \
	{                                                                      \
		for (; rounds > 0; rounds--) {                                 \
			LOOP_64(statement)                                     \
		}                                                              \
	}

#endif /* BENCH_LOOPS_H */
