/* SPDX-License-Identifier: MIT */
/*
 * What only the instruction set can say: the counter, what it is good for, and
 * order between a clock and a load.
 */
#ifndef CPU_H
#define CPU_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

/*
 * The processor's counter, not before anything that precedes it. 0 where there
 * is none for user space.
 */
static inline uint64_t cpu_counter_ordered(void)
{
#if defined(__x86_64__)
	/* lfence, as in the kernel's rdtsc_ordered(). */
	_mm_lfence();
	return __rdtsc();
#else
	return 0;
#endif
}

/*
 * Does that counter run at one rate in every power state, on every core? CPUID
 * leaf 0x80000007, EDX bit 8 (Intel SDM 3B 18.17.1, AMD APM 2 17.1); the same
 * bit for every vendor.
 */
static inline bool cpu_counter_invariant(void)
{
#if defined(__x86_64__)
	unsigned int a, b, c, d;

	return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 &&
	       (d & (1U << 8)) != 0;
#else
	return false;
#endif
}

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
