/* SPDX-License-Identifier: MIT */
/* What a user may write, for the tests of the installed library. */
#include <cachedtime.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

int main(void)
{
	struct ct_config config = { .size = sizeof(config),
		.mode = CT_MODE_MANUAL };
	int64_t before = time(NULL) - 1;
	int64_t now = ct_now_s();

	if (now < before || now > time(NULL) + 1) {
		fprintf(stderr, "the time is %lld\n", (long long)now);
		return 1;
	}
	if (strcmp(ct_version(), CT_VERSION) != 0) {
		fprintf(stderr, "%s, but headers of " CT_VERSION "\n",
			ct_version());
		return 1;
	}
	if (ct_start(&config) != 0 || ct_refresh() / 1000 < before ||
		ct_page.wall_ms <= 0 || ct_now_ms() != ct_page.wall_ms) {
		fprintf(stderr, "the page isn't read\n");
		return 1;
	}

	printf("%s\n", ct_version());
	return ct_stop();
}
