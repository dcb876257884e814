/* SPDX-License-Identifier: MIT */
#include "lock.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel_clock.h"

enum { FREE, HELD, AWAITED };

int futex_wait(uint32_t *word, uint32_t value, int64_t deadline_ns)
{
	struct timespec deadline = timespec_from_ns(deadline_ns);
	int saved = errno;
	int ret = 0;

	/* The BITSET form is the one with an absolute deadline, on
	 * CLOCK_MONOTONIC. */
	if (syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, value,
		    deadline_ns == INT64_MAX ? NULL : &deadline, NULL,
		    FUTEX_BITSET_MATCH_ANY) != 0 &&
		errno != EAGAIN && errno != EINTR && errno != ETIMEDOUT)
		ret = -errno;

	errno = saved;
	return ret;
}

void futex_wake_all(uint32_t *word)
{
	int saved = errno;

	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX);
	errno = saved;
}

bool futex_works(void)
{
	uint32_t word = 0;

	/* Not 1, so it doesn't sleep. */
	return futex_wait(&word, 1, INT64_MAX) == 0;
}

bool lock_try(uint32_t *lock)
{
	uint32_t expected = FREE;

	/* Acquire: pairs with lock_release(). */
	return __atomic_compare_exchange_n(lock, &expected, HELD, false,
		__ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

void lock_acquire(uint32_t *lock)
{
	if (lock_try(lock))
		return;

	/* Acquire: as above. Where the futex is refused, take turns. */
	while (__atomic_exchange_n(lock, AWAITED, __ATOMIC_ACQUIRE) != FREE)
		if (futex_wait(lock, AWAITED, INT64_MAX) != 0)
			sched_yield();
}

void lock_release(uint32_t *lock)
{
	/* Release: what the holder wrote comes before. */
	if (__atomic_exchange_n(lock, FREE, __ATOMIC_RELEASE) == AWAITED)
		futex_wake_all(lock);
}
