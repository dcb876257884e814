/* SPDX-License-Identifier: MIT */
/*
 * A lock in the page, on a futex. A pthread mutex will not do: it must be free
 * in a forked child whatever the parent's threads did (the kernel wipes it),
 * and two copies of the library in a process share it.
 */
#ifndef LOCK_H
#define LOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Never waits. */
bool lock_try(uint32_t *lock);

void lock_acquire(uint32_t *lock);

void lock_release(uint32_t *lock);

/*
 * Sleep while *word is `value`, but not after mono deadline_ns (INT64_MAX: no
 * deadline). 0 after any wake-up; or -errno where the kernel refuses.
 */
int futex_wait(uint32_t *word, uint32_t value, int64_t deadline_ns);

void futex_wake_all(uint32_t *word);

/* Does the kernel let this process use futexes? */
bool futex_works(void);

#endif /* LOCK_H */
