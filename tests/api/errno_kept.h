/* SPDX-License-Identifier: MIT */
/* Calls everything there is; errno must come out as it went in. */
#include "api.h"
#include "readers.h"

#define NO_ERRNO 4711

#define KEEPS_ERRNO(call)                                                 \
	do {                                                              \
		errno = NO_ERRNO;                                         \
		(void)(call);                                             \
		ck_assert_msg(                                            \
			errno == NO_ERRNO, #call ": errno is %d", errno); \
	} while (0)

static inline void on_step(int64_t delta_ns, void *arg)
{
	(void)delta_ns;
	(void)arg;
}

static inline void everything_keeps_errno(void)
{
	struct ct_config bad = { .size = 1 };
	struct ct_status status = { .size = sizeof(status) };
	struct ct_snapshot snapshot;
	struct ct_bounds bounds;
	char text[4096];

#define KEEPS(name, word, clock, unit_ns) KEEPS_ERRNO(name());
	READERS(KEEPS)
#undef KEEPS
	for (int word = 0; word < CT_WORDS; word++)
		KEEPS_ERRNO(ct_read_slow((enum ct_word)word));
	KEEPS_ERRNO(ct_precise_ns());
	KEEPS_ERRNO(ct_precise_mono_ns());
	KEEPS_ERRNO(ct_precise_ordered_ns());
	KEEPS_ERRNO(ct_precise_mono_ordered_ns());
	KEEPS_ERRNO(ct_precise_slow(CT_PRECISE_WALL));
	KEEPS_ERRNO(ct_precise_slow(CT_PRECISE_MONO));
	KEEPS_ERRNO(ct_generation());
	KEEPS_ERRNO(ct_generation_slow());
	KEEPS_ERRNO(ct_now_ms_fresh(0));
	KEEPS_ERRNO(ct_mono_ms_fresh(100));
	KEEPS_ERRNO(ct_snapshot(&snapshot));
	KEEPS_ERRNO(ct_snapshot(NULL));
	KEEPS_ERRNO(ct_bounds(&bounds));
	KEEPS_ERRNO(ct_bounds(NULL));
	KEEPS_ERRNO(ct_on_step(on_step, NULL));
	KEEPS_ERRNO(ct_on_step(NULL, NULL));
	KEEPS_ERRNO(ct_refresh());
	KEEPS_ERRNO(ct_age_ns());
	KEEPS_ERRNO(ct_version());
	KEEPS_ERRNO(ct_status(&status));
	KEEPS_ERRNO(ct_status(NULL));
	status.size = 1;
	KEEPS_ERRNO(ct_status(&status));
	KEEPS_ERRNO(ct_status_text(text, sizeof(text)));
	KEEPS_ERRNO(ct_status_text(text, 3));
	KEEPS_ERRNO(ct_status_text(NULL, 0));
	KEEPS_ERRNO(ct_start(&bad));
}
