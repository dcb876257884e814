/* SPDX-License-Identifier: MIT */
/* A file laid out like the HPET's registers, for CT_HPET_DEVICE. */
#ifndef FAKE_HPET_H
#define FAKE_HPET_H

#include <sys/mman.h>

#include "counters.h"

#define HPET_SIZE 4096
#define HPET_CAPABILITIES 0x00
#define HPET_PERIOD 0x04
#define HPET_CONFIGURATION 0x10
#define HPET_COUNTER 0xf0

#define HPET_PERIOD_FS 10000000 /* QEMU's: 100 MHz */
#define HPET_HZ 100000000

static char hpet_path[] = "fake-hpet-XXXXXX";
static uint32_t *hpet;

static uint32_t *hpet_register(int offset)
{
	return hpet + offset / (int)sizeof(*hpet);
}

/* A device that runs, at 0; in the environment too. */
static void hpet_create(void)
{
	int fd = mkstemp(hpet_path);

	CHECK(fd >= 0 && ftruncate(fd, HPET_SIZE) == 0);
	hpet = mmap(NULL, HPET_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(hpet != MAP_FAILED);
	close(fd);

	/* Revision 1, three comparators, vendor 8086. */
	*hpet_register(HPET_CAPABILITIES) = 0x8086a201;
	*hpet_register(HPET_PERIOD) = HPET_PERIOD_FS;
	*hpet_register(HPET_CONFIGURATION) = 3;
	CHECK(setenv("CT_HPET_DEVICE", hpet_path, 1) == 0);
}

static void hpet_remove(void)
{
	unlink(hpet_path);
}

#endif /* FAKE_HPET_H */
