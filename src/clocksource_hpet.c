/* SPDX-License-Identifier: MIT */
/*
 * The High Precision Event Timer, mapped from /dev/hpet (IA-PC HPET
 * Specification 1.0a). Only if asked for: reading it takes a microsecond, all
 * cores wait for each other, and the kernel hands the device out once.
 *
 * 32 bits are read, as the kernel does: a 64-bit read may be split in two.
 */
#include "clocksource.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define REGISTERS_SIZE 4096
#define CAPABILITIES 0x00 /* and in its upper half the period */
#define PERIOD 0x04
#define CONFIGURATION 0x10
#define COUNTER 0xf0

#define REVISION_MASK 0xffU
#define ENABLED 0x1U

/* 100 ns: section 2.3.4 of the specification. */
#define PERIOD_MAX_FS UINT32_C(0x05f5e100)
#define FS_PER_SEC UINT64_C(1000000000000000)

/*
 * Mapped once and kept for the life of the process: the mapping holds the
 * device, which may not be had twice. Children may read it too.
 */
static const volatile uint32_t *registers;

static uint32_t reg(unsigned int offset)
{
	return registers[offset / sizeof(uint32_t)];
}

static uint64_t read_hpet(void)
{
	return reg(COUNTER);
}

static const char *refusal(int error)
{
	switch (error) {
	case EBUSY:
		return "busy: in use, or the machine has none (EBUSY)";
	case EACCES:
	case EPERM:
		return "not permitted: root only, or hpet_mmap=0 (EACCES)";
	case EINVAL:
		return "no HPET there (EINVAL)";
	case ENOENT:
		return "no such device (ENOENT)";
	case ENXIO:
		return "no such device (ENXIO)";
	case ENODEV:
		return "no device that can be mapped (ENODEV)";
	default:
		return "can't be opened";
	}
}

/* A file shorter than the registers would be a SIGBUS. */
static int map_registers(int fd)
{
	struct stat st;
	void *map;

	if (fstat(fd, &st) != 0)
		return -errno;
	if (S_ISREG(st.st_mode) && st.st_size < REGISTERS_SIZE)
		return -EINVAL;

	map = mmap(NULL, REGISTERS_SIZE, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -errno;

	registers = map;
	return 0;
}

static int map_device(const char *path)
{
	int fd, ret;

	/* Nonblock: a FIFO would wait for its writer. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;

	ret = map_registers(fd);
	close(fd);
	return ret;
}

static int check_registers(char *why, size_t size)
{
	uint32_t period_fs = reg(PERIOD);

	if ((reg(CAPABILITIES) & REVISION_MASK) == 0 || period_fs == 0 ||
		period_fs > PERIOD_MAX_FS) {
		snprintf(why, size,
			"not an HPET: revision %u, period %u fs (1 to %u)",
			reg(CAPABILITIES) & REVISION_MASK, period_fs,
			PERIOD_MAX_FS);
		return -EINVAL;
	}
	if ((reg(CONFIGURATION) & ENABLED) == 0) {
		snprintf(why, size, "it doesn't run");
		return -ENODEV;
	}
	return 0;
}

static int open_hpet(struct clocksource *cs, bool asked, char *why, size_t size)
{
	const char *path = secure_getenv("CT_HPET_DEVICE");
	int saved = errno;
	int ret;

	(void)asked;
	if (path == NULL)
		path = "/dev/hpet";

	if (registers == NULL) {
		ret = map_device(path);
		errno = saved;
		if (ret != 0) {
			snprintf(why, size, "%s", refusal(-ret));
			return ret;
		}
	}
	ret = check_registers(why, size);
	if (ret != 0) {
		munmap((void *)(uintptr_t)registers, REGISTERS_SIZE);
		registers = NULL;
		errno = saved;
		return ret;
	}

	cs->read = read_hpet;
	cs->mask = UINT32_MAX;
	cs->hz = (FS_PER_SEC + reg(PERIOD) / 2) / reg(PERIOD);
	cs->error_ppb = 500000; /* section 2.2: 500 ppm over 1 ms and more */
	cs->mono = CLOCK_MONOTONIC;
	cs->wall = CLOCK_REALTIME;
	cs->watched = true;
	snprintf(why, size, "%u fs a cycle", reg(PERIOD));
	return 0;
}

const struct clocksource_driver clocksource_hpet = {
	.name = "hpet",
	.rating = 0,
	.open = open_hpet,
};
