/* SPDX-License-Identifier: MIT */
/* What only the instruction set can say: order between a clock and a load. */
#ifndef CPU_H
#define CPU_H

#include <stdint.h>

/*
 * A zero that the processor can't know before it has `value`. Added to an
 * address, it keeps the load from there behind the instruction that read the
 * clock, at no cost: a counter read is not ordered before later loads by
 * itself (rdtsc, Intel SDM 2B; cntvct_el0, Arm ARM D12).
 */
static inline uintptr_t cpu_zero_after(int64_t value)
{
	uintptr_t zero = (uintptr_t)value;

#if defined(__x86_64__)
	/* Not xor: that breaks the dependency. */
	__asm__ volatile("andq $0, %0" : "+r"(zero) : : "cc");
#elif defined(__aarch64__)
	__asm__ volatile("eor %0, %0, %0" : "+r"(zero));
#else
	zero = 0;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
	return zero;
}

#endif /* CPU_H */
