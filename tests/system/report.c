/* SPDX-License-Identifier: MIT */
/* Says what the library makes of the environment, on one line. */
#include <sys/auxv.h>

#include "clocks.h"

int main(void)
{
	int ret = ct_start(NULL);
	struct ct_status status = status_now();

	CHECK(right() && advances());
	printf("%d %d %lld %s %d %d %s\n", ret, (int)status.mode,
		(long long)status.tick_ns, status.backend, status.last_error,
		getauxval(AT_SECURE) != 0, status.error);
	return EXIT_SUCCESS;
}
