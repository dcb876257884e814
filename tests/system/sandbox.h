/* SPDX-License-Identifier: MIT */
/* Seccomp filters for a child: nobody takes them off again. */
#ifndef SANDBOX_H
#define SANDBOX_H

#include <seccomp.h>

#include "process.h"

/* Calls of this name get `error` from now on. */
static inline void refuse(scmp_filter_ctx filter, const char *name, int error)
{
	int number = seccomp_syscall_resolve_name(name);

	CHECK(number != __NR_SCMP_ERROR);
	CHECK(seccomp_rule_add(
		      filter, SCMP_ACT_ERRNO((uint32_t)error), number, 0) == 0);
}

/* One name, or two with a comma between them. */
static inline void refuse_each(const char *names, int error)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	char list[64];

	CHECK(filter != NULL);
	snprintf(list, sizeof(list), "%s", names);
	for (char *name = strtok(list, ","); name; name = strtok(NULL, ","))
		refuse(filter, name, error);
	CHECK(seccomp_load(filter) == 0);
	seccomp_release(filter);
}

#endif /* SANDBOX_H */
