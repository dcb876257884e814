/* SPDX-License-Identifier: MIT */
#include <cachedtime.h>
#include <stdio.h>

int main(void)
{
	printf("%lld ms since 1970\n", (long long)ct_now_ms());
	return 0;
}
