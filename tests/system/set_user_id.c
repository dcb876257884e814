/* SPDX-License-Identifier: MIT */
/*
 * A set-user-ID program ignores the environment, which is its caller's. Needs
 * root, to make one and to run it as somebody else.
 */
#include <fcntl.h>
#include <grp.h>
#include <sys/sendfile.h>

#include "clocks.h"

#define NOBODY 65534

static char dir[] = "set-user-id-XXXXXX";
static char copy[sizeof(dir) + 8];

static void copy_program(const char *path)
{
	int from = open(path, O_RDONLY);
	int to = open(copy, O_WRONLY | O_CREAT | O_EXCL, 0700);
	struct stat st;

	CHECK(from >= 0 && to >= 0 && fstat(from, &st) == 0);
	while (st.st_size > 0) {
		ssize_t done = sendfile(to, from, NULL, (size_t)st.st_size);

		CHECK(done > 0);
		st.st_size -= done;
	}
	CHECK(fchmod(to, 04755) == 0);
	CHECK(close(to) == 0 && close(from) == 0);
}

/* Its line, as somebody who may not be trusted. */
static void run_as_nobody(char *line, int size)
{
	int fd[2];
	pid_t pid;
	ssize_t length;

	CHECK(pipe(fd) == 0);
	pid = fork();
	if (pid == 0) {
		CHECK(dup2(fd[1], STDOUT_FILENO) == STDOUT_FILENO);
		CHECK(chdir(dir) == 0);
		CHECK(setgroups(0, NULL) == 0);
		CHECK(setresgid(NOBODY, NOBODY, NOBODY) == 0);
		CHECK(setresuid(NOBODY, NOBODY, NOBODY) == 0);
		CHECK(setenv("CT_TICK", "off", 1) == 0);
		CHECK(setenv("CT_BACKEND", "coarse", 1) == 0);
		exec_program("./copy", NULL);
	}
	close(fd[1]);
	length = read(fd[0], line, (size_t)size - 1);
	line[length > 0 ? length : 0] = '\0';
	close(fd[0]);
	if (!ended_well(pid))
		line[0] = '\0';
}

int main(void)
{
	int ret, mode, last_error, secure;
	long long tick_ns;
	char line[512], backend[16];

	if (getuid() != 0)
		skip("needs root");
	if (mkdtemp(dir) == NULL || chmod(dir, 0755) != 0)
		skip("no directory to be had");
	snprintf(copy, sizeof(copy), "%s/copy", dir);
	copy_program(path_from("CT_TEST_REPORT"));
	run_as_nobody(line, sizeof(line));
	unlink(copy);
	rmdir(dir);

	if (sscanf(line, "%d %d %lld %15s %d %d", &ret, &mode, &tick_ns,
		    backend, &last_error, &secure) != 6)
		skip("that user can't run it from here");
	if (!secure)
		skip("set-user-ID has no effect here (nosuid)");
	CHECK(ret == 0 && last_error == 0);
	CHECK(mode == CT_MODE_TICK && tick_ns == CT_TICK_DEFAULT_NS);
	CHECK(strcmp(backend, "realtime") == 0);
	return EXIT_SUCCESS;
}
