/* SPDX-License-Identifier: MIT */
/* Each reader with its word, its clock and its unit in nanoseconds. */
#define READERS(X)                                       \
	X(ct_now_s, wall_s, CLOCK_REALTIME, 1000000000)  \
	X(ct_now_ms, wall_ms, CLOCK_REALTIME, 1000000)   \
	X(ct_now_us, wall_us, CLOCK_REALTIME, 1000)      \
	X(ct_now_ns, wall_ns, CLOCK_REALTIME, 1)         \
	X(ct_mono_ms, mono_ms, CLOCK_MONOTONIC, 1000000) \
	X(ct_mono_us, mono_us, CLOCK_MONOTONIC, 1000)    \
	X(ct_mono_ns, mono_ns, CLOCK_MONOTONIC, 1)       \
	X(ct_boot_ms, boot_ms, CLOCK_BOOTTIME, 1000000)  \
	X(ct_tai_ns, tai_ns, CLOCK_TAI, 1)
