/* SPDX-License-Identifier: MIT */
/*
 * The page's memory: wiped by the kernel in every child that gets a copy of
 * it, so that a child finds zeros, hence asks.
 */
#ifndef PAGE_H
#define PAGE_H

#include <stdbool.h>
#include <stdint.h>

#include <cachedtime.h>

/* This copy of the library, in ct_page.owner: an address of its own, as a number
 * that nobody follows. */
uint64_t page_owner_id(void);

/* Does this copy own what runs? */
bool page_is_ours(void);

/* ct_page.state */
enum page_state {
	PAGE_IDLE,    /* also what a child finds: nobody publishes */
	PAGE_TICKING, /* a thread publishes */
	PAGE_MANUAL,  /* ct_refresh() publishes */
};

/*
 * Have the page wiped on fork; before any word is published, and again at will.
 * 0, or -errno: then nothing may ever be cached in it.
 */
int page_init(void);

/* What page_init() last returned; -EAGAIN before it. */
int page_error(void);

/* Fill in the constants, which a fork wiped with the rest. */
void page_describe(const char *backend, int64_t tick_ns);

/* The clocksource in use, at any time, from whoever publishes. */
void page_set_backend(const char *backend);
void page_get_backend(char backend[static 16]);

#endif /* PAGE_H */
