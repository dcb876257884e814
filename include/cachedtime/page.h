/* SPDX-License-Identifier: MIT */
/*
 * The page: where the time is kept, to the byte.
 *
 * One writer publishes whole words here; readers, in this process or another,
 * in C or not, load them. The layout is the contract: sizes and offsets never
 * change, since executables hold copy relocations of ct_page. docs/page.md
 * draws it.
 *
 * How each field may be read:
 *
 *   [c]  constant once `magic` is set
 *   [w]  whole in itself: one relaxed load; zero or less means "ask": call
 *        the reader of cachedtime.h (or read the clock yourself)
 *   [l]  several words that belong together: under a sequence count latch
 *   [s]  statistics: relaxed, for people
 *   [p]  private to the library
 */
#ifndef CACHEDTIME_PAGE_H
#define CACHEDTIME_PAGE_H

#include <stddef.h>
#include <stdint.h>

#if UINTPTR_MAX != UINT64_MAX
#error "cachedtime: 64-bit targets only"
#endif

/*
 * Whole pages of the largest page size that kernels of the architecture use
 * (64 KiB on arm64, ppc64 and the rest), so that the object can be marked by
 * madvise(2) and mapped over, alone.
 */
#if defined(__x86_64__) || defined(__s390x__) || defined(__riscv)
#define CT_PAGE_SIZE 4096
#else
#define CT_PAGE_SIZE 65536
#endif

#define CT_PAGE_MAGIC UINT64_C(0x31656761705f7463) /* "ct_page1", little end */
#define CT_PAGE_LAYOUT 1

/*
 * A straight piece of the precise line: for `span` cycles of the processor's
 * counter from `cycles` on,
 *
 *	mono = mono_ns + ((counter - cycles) * mult >> 32)
 *	wall = mono + wall_offset_ns
 *
 * A reader loads the sequence count, then the copy that it names, then reads
 * the counter, then loads the count again: moved, and it starts all over.
 * src/segment.h has the rules by which the pieces join.
 */
struct ct_segment {
	uint64_t cycles;	/* the counter where it begins */
	uint64_t mult;		/* nanoseconds per cycle, in 2^-32 */
	uint64_t span;		/* cycles; beyond it, and if 0: ask. So short
				 * that span * mult fits into 64 bits */
	int64_t mono_ns;	/* at `cycles`; zero or less: ask */
	int64_t wall_offset_ns; /* wall - mono; only after mono_ns */
	int64_t lead_ns;	/* [p] line - CLOCK_MONOTONIC */
	int64_t proposed_ns;	/* [p] wall - mono, unless the clock was set */
	uint64_t generation;	/* [p] when that was so, times 2; and 1 if it
				 * begins anew on CLOCK_MONOTONIC */
};

/* What belongs together with a publication's mono. */
struct ct_moment {
	int64_t wall_offset_ns; /* wall - mono */
	int64_t tai_offset_ns;	/* TAI - wall */
	uint64_t generation;	/* 0: nothing published */
};

struct ct_page {
	/*
	 * CLOCK_REALTIME, the whole time since 1970-01-01T00:00:00Z in each
	 * unit, rounded down. Each word stands for itself: two of them may
	 * come from neighbouring publications. One cache line.
	 */
	int64_t wall_s;      /* [w] seconds */
	int64_t wall_ms;     /* [w] milliseconds */
	int64_t wall_us;     /* [w] microseconds */
	int64_t wall_ns;     /* [w] nanoseconds */
	int64_t wall_ms_f64; /* [w] milliseconds as the bits of an IEEE double,
			      * for languages that read doubles best; load it
			      * as a double: not greater than 0.0 means ask */
	uint64_t generation; /* [w] starts at 1, one more at each wall step */
	uint64_t reserved_wall[2];

	/* CLOCK_MONOTONIC and its kin: never go back. The next cache line. */
	int64_t mono_ms; /* [w] */
	int64_t mono_us; /* [w] */
	int64_t mono_ns; /* [w] */
	int64_t boot_ms; /* [w] CLOCK_BOOTTIME: counts suspend */
	int64_t tai_ns;  /* [w] CLOCK_TAI */
	uint64_t reserved_mono[3];

	/* What this page is. */
	uint64_t magic;	  /* [c] CT_PAGE_MAGIC, set last */
	uint32_t layout;  /* [c] CT_PAGE_LAYOUT */
	uint32_t size;	  /* [c] CT_PAGE_SIZE */
	int64_t tick_ns;  /* [s] nominal age of a word; 0: no ticker */
	char backend[16]; /* [s] name of the clocksource, zero-terminated;
			   * changes where a counter is dropped */
	uint64_t reserved_constant[3];

	/* The owner's: lock, life cycle. Nothing here is for readers. */
	uint32_t lock;	 /* [p] life cycle lock (futex) */
	uint32_t state;	 /* [p] idle, ticking or manual */
	uint32_t stop;	 /* [p] the ticker is asked to end (futex) */
	uint32_t ticker; /* [p] 1 while the thread runs (futex) */
	uint64_t owner;	 /* [p] which copy of the library owns the thread */
	int64_t home;	 /* [p] the process that may start a thread */
	uint64_t holder; /* [p] the thread that is in the lock */
	uint64_t epoch;	 /* [p] tells this process from its parent */
	uint32_t step_lock;    /* [p] held while the step callback runs */
	uint32_t segment_lock; /* [p] held while a segment is renewed */
	uint32_t segment_begun; /* [p] 0: fork has wiped what there was */
	uint32_t bounds_lock;	/* [p] held while what adjtimex said is kept */

	/*
	 * Precise time: two copies under a latch; the low bit of the count
	 * says which one to read. Zeros mean ask.
	 */
	uint64_t segment_seq; /* [l] */
	uint64_t reserved_segment[7];
	struct ct_segment segment[2]; /* [l] */

	/* What belongs to the words of a publication, likewise. */
	uint64_t moment_seq;	    /* [l] */
	struct ct_moment moment[2]; /* [l] */
	uint64_t reserved_moment;

	uint64_t reserved_latch[32];
	/* For later. */
	uint64_t reserved_text[192]; /* [l] */

	/* Since the ticker (or the loop) of this process was started. */
	uint64_t ticks;	      /* [s] publications */
	uint64_t late_ticks;  /* [s] that came a whole tick late, or more */
	int64_t max_late_ns;  /* [s] worst lateness */
	uint64_t steps;	      /* [s] of the wall clock */
	int64_t last_step_ns; /* [s] signed: wall - expected */
	uint64_t rebases;     /* [s] counter and kernel clock parted company */
	uint64_t counter_hz;  /* [s] its rate as measured; 0: kernel's clock */
	uint64_t reserved_statistics[57];

	/* For later: what a host-wide page adds. */
	uint64_t reserved_host[64];

	uint64_t reserved_end[(CT_PAGE_SIZE - 3328) / 8];
} __attribute__((aligned(CT_PAGE_SIZE)));

#ifdef __cplusplus
#define CT_LAYOUT_ASSERT(condition) static_assert(condition, #condition)
#else
#define CT_LAYOUT_ASSERT(condition) _Static_assert(condition, #condition)
#endif
#define CT_LAYOUT_AT(field, offset)                                            \
	CT_LAYOUT_ASSERT(offsetof(struct ct_page, field) == (offset))

CT_LAYOUT_ASSERT(sizeof(struct ct_page) == CT_PAGE_SIZE);
CT_LAYOUT_AT(wall_s, 0);
CT_LAYOUT_AT(wall_ms, 8);
CT_LAYOUT_AT(wall_us, 16);
CT_LAYOUT_AT(wall_ns, 24);
CT_LAYOUT_AT(wall_ms_f64, 32);
CT_LAYOUT_AT(generation, 40);
CT_LAYOUT_AT(mono_ms, 64);
CT_LAYOUT_AT(mono_us, 72);
CT_LAYOUT_AT(mono_ns, 80);
CT_LAYOUT_AT(boot_ms, 88);
CT_LAYOUT_AT(tai_ns, 96);
CT_LAYOUT_AT(magic, 128);
CT_LAYOUT_AT(layout, 136);
CT_LAYOUT_AT(size, 140);
CT_LAYOUT_AT(tick_ns, 144);
CT_LAYOUT_AT(backend, 152);
CT_LAYOUT_AT(lock, 192);
CT_LAYOUT_AT(home, 216);
CT_LAYOUT_AT(segment_seq, 256);
CT_LAYOUT_AT(segment, 320);
CT_LAYOUT_AT(moment_seq, 448);
CT_LAYOUT_AT(moment, 456);
CT_LAYOUT_AT(reserved_latch, 512);
CT_LAYOUT_AT(reserved_text, 768);
CT_LAYOUT_AT(ticks, 2304);
CT_LAYOUT_AT(reserved_host, 2816);
CT_LAYOUT_AT(reserved_end, 3328);

#undef CT_LAYOUT_AT
#undef CT_LAYOUT_ASSERT

#endif /* CACHEDTIME_PAGE_H */
