/* SPDX-License-Identifier: MIT */
#include "page.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* In bss, alone on its pages: executables may move it by a copy relocation. */
CT_API struct ct_page ct_page;

static int error = -EAGAIN;

uint64_t page_owner_id(void)
{
	return (uint64_t)(uintptr_t)&error;
}

bool page_is_ours(void)
{
	/* Relaxed: no copy but one finds its own number. */
	return __atomic_load_n(&ct_page.owner, __ATOMIC_RELAXED) ==
	       page_owner_id();
}

/* 0 or -errno, without the caller's errno. */
static int wipe_on_fork(void)
{
	int saved = errno;
	int ret = 0;

	if (madvise(&ct_page, sizeof(ct_page), MADV_WIPEONFORK) != 0)
		ret = -errno;

	errno = saved;
	return ret;
}

/*
 * The first page of a bss may be the tail of a file mapping, which the kernel
 * won't wipe. By raw system call: ThreadSanitizer would take the library's
 * mmap() for a write to every word.
 */
static int map_anonymous(void)
{
	int saved = errno;
	int ret = 0;

	if (syscall(SYS_mmap, &ct_page, sizeof(ct_page), PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == -1)
		ret = -errno;

	errno = saved;
	return ret;
}

int page_init(void)
{
	/* A linker that ignored the alignment, or a kernel of larger pages,
	 * would have us wipe others' data. */
	if ((uintptr_t)&ct_page % CT_PAGE_SIZE != 0 ||
		getauxval(AT_PAGESZ) > CT_PAGE_SIZE) {
		error = -EFAULT;
		return error;
	}

	error = wipe_on_fork();
	/* Mapping over it loses what is there: not where another copy of the
	 * library in this process has been at work already. */
	if (error == -EINVAL &&
		__atomic_load_n(&ct_page.home, __ATOMIC_RELAXED) == 0) {
		error = map_anonymous();
		if (error == 0)
			error = wipe_on_fork();
	}
	return error;
}

int page_error(void)
{
	return error;
}

void page_set_backend(const char *backend)
{
	char text[sizeof(ct_page.backend)] = "";
	uint64_t halves[2];

	snprintf(text, sizeof(text), "%s", backend);
	memcpy(halves, text, sizeof(halves));
	/* Relaxed, half by half: for people. */
	for (int i = 0; i < 2; i++)
		__atomic_store_n((uint64_t *)(void *)ct_page.backend + i,
			halves[i], __ATOMIC_RELAXED);
}

void page_get_backend(char backend[static 16])
{
	uint64_t halves[2];

	for (int i = 0; i < 2; i++)
		halves[i] = __atomic_load_n(
			(uint64_t *)(void *)ct_page.backend + i,
			__ATOMIC_RELAXED);
	memcpy(backend, halves, sizeof(halves));
	backend[15] = '\0';
}

void page_describe(const char *backend, int64_t tick_ns)
{
	ct_page.layout = CT_PAGE_LAYOUT;
	ct_page.size = CT_PAGE_SIZE;
	__atomic_store_n(&ct_page.tick_ns, tick_ns, __ATOMIC_RELAXED);
	page_set_backend(backend);
	/* Release: who finds the magic finds the rest. Readers of the words
	 * need none of it. */
	__atomic_store_n(&ct_page.magic, CT_PAGE_MAGIC, __ATOMIC_RELEASE);
}
