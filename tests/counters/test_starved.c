/* SPDX-License-Identifier: MIT */
/*
 * In a container that has used up its share of the CPU the ticker stands
 * still with everybody else, and who runs first again finds old words. Fresh
 * reads don't: none older than asked for.
 */
#include "counters.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <pthread.h>
#include <sys/stat.h>

#include <cachedtime.h>

#define AGE_MS 10
#define RUN_NS (3 * SEC)
/* A fifth of one core. */
#define PERIOD_US "100000"
#define QUOTA_US "20000"
#define SPINNERS 2

static char group[512];

static bool write_to(const char *name, const char *text)
{
	char path[600];
	bool ok;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", group, name);
	fd = open(path, O_WRONLY);
	if (fd < 0)
		return false;
	ok = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	close(fd);
	return ok;
}

/* Where the hierarchy with the cpu controller is mounted, and which version
 * it is of; 0: nowhere. */
static int find_hierarchy(char *where, size_t size)
{
	char line[1024], dir[256], type[32], options[256], path[300];
	FILE *file = fopen("/proc/self/mounts", "r");
	int version = 0;

	while (file != NULL && version == 0 &&
		fgets(line, sizeof(line), file) != NULL) {
		if (sscanf(line, "%*s %255s %31s %255s", dir, type, options) !=
			3)
			continue;
		snprintf(path, sizeof(path), "%s/cpu.max", dir);
		if (strcmp(type, "cgroup") == 0) {
			snprintf(path, sizeof(path), "%s/cpu.cfs_quota_us",
				dir);
			version = access(path, F_OK) == 0 ? 1 : 0;
		} else if (strcmp(type, "cgroup2") == 0) {
			snprintf(path, sizeof(path),
				"%s/cgroup.subtree_control", dir);
			version = access(path, W_OK) == 0 ? 2 : 0;
		}
		snprintf(where, size, "%s", dir);
	}
	if (file != NULL)
		fclose(file);
	return version;
}

static bool make_group(void)
{
	char where[256] = "";
	int version = find_hierarchy(where, sizeof(where));

	if (version == 0)
		return false;
	if (version == 2) {
		snprintf(group, sizeof(group), "%s", where);
		write_to("cgroup.subtree_control", "+cpu");
	}
	snprintf(group, sizeof(group), "%s/cachedtime-test-%d", where,
		(int)getpid());
	if (mkdir(group, 0755) != 0)
		return false;
	if (version == 1 ? write_to("cpu.cfs_period_us", PERIOD_US) &&
				   write_to("cpu.cfs_quota_us", QUOTA_US)
			 : write_to("cpu.max", QUOTA_US " " PERIOD_US))
		return true;
	rmdir(group);
	return false;
}

static void *spin(void *arg)
{
	(void)arg;
	for (;;)
		__asm__ volatile("" : : : "memory");
	return NULL;
}

static void starve(void)
{
	struct ct_config config = { .size = sizeof(config),
		.mode = CT_MODE_TICK };
	int64_t until_ns, before_ns, ms, cached = 0, cached_old = 0;
	int64_t worst_ms = 0, fresh = 0, fresh_old = 0, judge_late = 0;
	struct timespec tick;
	pthread_t thread;
	int64_t lag_ns;
	char pid[16];

	clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	CHECK(write_to("cgroup.procs", pid));
	CHECK(ct_start(&config) == 0);
	for (int i = 0; i < SPINNERS; i++)
		CHECK(pthread_create(&thread, NULL, spin, NULL) == 0);

	until_ns = clock_ns(CLOCK_MONOTONIC) + RUN_NS;
	while (clock_ns(CLOCK_MONOTONIC) < until_ns) {
		before_ns = clock_ns(CLOCK_REALTIME);
		ms = ct_now_ms();
		cached++;
		cached_old += before_ns / MS - ms > AGE_MS;
		if (before_ns / MS - ms > worst_ms)
			worst_ms = before_ns / MS - ms;
		/* Apart, or it would publish for the other. */
		if (cached % 64 != 0)
			continue;

		lag_ns = clock_ns(CLOCK_MONOTONIC);
		lag_ns -= clock_ns(CLOCK_MONOTONIC_COARSE);
		before_ns = clock_ns(CLOCK_REALTIME);
		ms = ct_now_ms_fresh(AGE_MS);
		fresh++;
		if (before_ns / MS - ms <= AGE_MS)
			continue;
		if (lag_ns < 2 * tick.tv_nsec)
			fresh_old++;
		else
			judge_late++;
	}

	printf("older than %d ms: %lld of %lld cached reads (%.3f %%, worst "
		"%lld ms), %lld of %lld fresh reads, and %lld where the "
		"kernel's coarse clock lagged by two ticks\n",
		AGE_MS, (long long)cached_old, (long long)cached,
		100 * (double)cached_old / (double)cached, (long long)worst_ms,
		(long long)fresh_old, (long long)fresh, (long long)judge_late);
	fflush(stdout);
	CHECK(fresh > 0);
	CHECK(fresh_old == 0);
}

int main(void)
{
	bool well;

	if (!make_group())
		skip("no cgroup to limit the CPU in");
	well = child_does(starve);
	for (int i = 0; i < 100 && rmdir(group) != 0 && errno == EBUSY; i++)
		sleep_ns(10 * MS);
	return well ? EXIT_SUCCESS : EXIT_FAILURE;
}
