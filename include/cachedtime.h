/* SPDX-License-Identifier: MIT */
/*
 * cachedtime: the time of day for the price of one load.
 *
 *	#include <cachedtime.h>
 *
 *	int64_t now = ct_now_ms();
 *
 *	cc -O2 app.c -lcachedtime
 *	CT_TICK=500us ./a.out
 *
 * There is nothing to set up. The first read answers from the kernel's clock
 * and starts a thread, the ticker, which from then on publishes the time in
 * ct_page; later reads are one load from there. Whatever keeps the ticker from
 * running (a fork, a limit, a sandbox, ct_stop()) sends each reader back to
 * the kernel's clock: that costs speed, never correctness.
 *
 * wall is CLOCK_REALTIME: Unix time, which the administrator may step.
 * mono is CLOCK_MONOTONIC: never goes back, counts no suspend.
 *
 * A cached value is at most one tick old plus the ticker's lateness, which
 * ct_status() reports. Nothing here prints, exits or changes errno.
 */
#ifndef CACHEDTIME_H
#define CACHEDTIME_H

#include <stddef.h>
#include <stdint.h>

#include <cachedtime/page.h>
#include <cachedtime/version.h>

#define CT_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The page that this process reads. One address in the whole process, which
 * is why the library is not to be linked with -Bsymbolic.
 */
extern CT_API struct ct_page ct_page;

/* The words of the page that have a reader. */
enum ct_word {
	CT_WORD_WALL_S,
	CT_WORD_WALL_MS,
	CT_WORD_WALL_US,
	CT_WORD_WALL_NS,
	CT_WORD_WALL_MS_F64,
	CT_WORD_MONO_MS,
	CT_WORD_MONO_US,
	CT_WORD_MONO_NS,
	CT_WORD_BOOT_MS,
	CT_WORD_TAI_NS,
	CT_WORDS
};

/*
 * What the inline readers call where a word says "ask": the live clock, in
 * the word's unit. For them and for bindings; others call the readers.
 */
CT_API int64_t ct_read_slow(enum ct_word word) __attribute__((cold));

/*
 * The readers: the time as last published, one load and a test of its sign.
 *
 * Unit and epoch	in the name: wall since 1970-01-01T00:00:00Z, mono and
 *			boot since some moment near boot; rounded down
 * Goes back		wall: only where the clock was set back; mono: never,
 *			not between threads either, and while it is cached not
 *			even where the kernel's does; each reader by itself:
 *			two of them may stand on neighbouring ticks
 * Age			one tick plus the ticker's lateness; none while live
 * Cost			a load, a test and a branch; while reads go live, that
 *			of clock_gettime(2) and a few nanoseconds
 * Fails		never; there is no error value
 * Call it from		anywhere: any thread, signal handlers, constructors,
 *			after fork, in a vfork child. Takes no lock, writes
 *			nothing while the page is filled.
 *
 * The first reads start the ticker, save where that could do harm: a read
 * stays live, and starts nothing, in a thread that blocks a signal which has
 * a handler (as handlers do), and in a child of raw clone(2) or vfork(2).
 * Call ct_start() first if handlers with SA_NODEFER, or an allocator under its
 * own lock, may make the first read, if all your threads block handled signals,
 * or after a raw clone(2).
 *
 * They are functions of the library too, for languages that can't inline
 * them; with CT_NO_INLINE defined this header only declares them. (The library
 * itself defines CT_EMIT_READERS, once.)
 */
#if defined(CT_EMIT_READERS)
#define CT_INLINE
#elif !defined(CT_NO_INLINE)
#define CT_INLINE                                                              \
	extern __inline__ __attribute__((__gnu_inline__, __always_inline__))
#endif

#ifndef CT_INLINE
#define CT_READER(name, word, field) CT_API int64_t name(void)
#else
#define CT_READER(name, word, field)                                           \
	CT_API int64_t name(void);                                             \
	CT_INLINE int64_t name(void)                                           \
	{                                                                      \
		/* Relaxed: the word is the whole message, nothing else is     \
		 * read on the strength of it, and coherence keeps one         \
		 * thread's reads in order. */                                 \
		int64_t value =                                                \
			__atomic_load_n(&ct_page.field, __ATOMIC_RELAXED);     \
		return __builtin_expect(value > 0, 1) ? value                  \
						      : ct_read_slow(word);    \
	}                                                                      \
	CT_API int64_t name(void)
#endif

CT_READER(ct_now_s, CT_WORD_WALL_S, wall_s);
CT_READER(ct_now_ms, CT_WORD_WALL_MS, wall_ms);
CT_READER(ct_now_us, CT_WORD_WALL_US, wall_us);
CT_READER(ct_now_ns, CT_WORD_WALL_NS, wall_ns);
CT_READER(ct_mono_ms, CT_WORD_MONO_MS, mono_ms);
CT_READER(ct_mono_us, CT_WORD_MONO_US, mono_us);
CT_READER(ct_mono_ns, CT_WORD_MONO_NS, mono_ns);
CT_READER(ct_boot_ms, CT_WORD_BOOT_MS, boot_ms); /* CLOCK_BOOTTIME */
CT_READER(ct_tai_ns, CT_WORD_TAI_NS, tai_ns); /* CLOCK_TAI: as wall, without
					       * leap seconds; equal to it where
					       * nobody told the kernel the
					       * offset */

#undef CT_READER

/*
 * How often the wall clock has been set in this process's life, forks included,
 * plus one: it grows by one at each step, a leap second being one too. Two steps
 * between two looks count as one; less than 10 us isn't a step.
 *
 * One load where words are cached; else it reads wall and mono and compares,
 * for three reads of the kernel's clock. From anywhere.
 */
CT_API uint64_t ct_generation_slow(void) __attribute__((cold));
CT_API uint64_t ct_generation(void);
#ifdef CT_INLINE
CT_INLINE uint64_t ct_generation(void)
{
	/* Relaxed: whole in itself. */
	uint64_t value = __atomic_load_n(&ct_page.generation, __ATOMIC_RELAXED);

	return __builtin_expect(value > 0, 1) ? value : ct_generation_slow();
}
#endif

/* What a precise reader reads. */
enum ct_precise { CT_PRECISE_WALL, CT_PRECISE_MONO };

/* What the inline precise readers call where no segment holds: see there. */
CT_API int64_t ct_precise_slow(enum ct_precise which) __attribute__((cold));

/*
 * Precise time: now, for the price of reading the processor's counter. No
 * thread is needed, nor started; the first calls read the kernel's clock, for
 * the few milliseconds in which the counter's rate is measured.
 *
 * Unit and epoch	nanoseconds; as CLOCK_REALTIME and CLOCK_MONOTONIC
 * Error		to the kernel's clock: some 10 ns in the median
 *			(docs/performance.md). A change of its slope, by
 *			adjtimex(2) or settimeofday(2), shows within 2.5 ms: the
 *			line is made of segments of that length, and whoever
 *			finds one over renews it
 * Goes back		wall: only where the clock was set back; mono: never.
 *			The ordered ones hold that between threads that pass
 *			values, to the nanosecond; the others within a thread,
 *			and may else be off by the some 10 ns by which the
 *			processor reads its counter early
 * Cost			unordered: rdtsc and 2 ns; ordered: lfence, rdtsc and
 *			4 ns, which is about that of clock_gettime(2). About
 *			300 ns where a segment must be renewed. Where no counter
 *			can be used (not an x86, CT_BACKEND, CT_MODE_OFF, or the
 *			kernel doesn't trust it): that of clock_gettime(2) and a
 *			few nanoseconds
 * Fails, call from	as the readers above
 *
 * Each is a promise by itself: a cached reader beside it may be a tick behind.
 */
#if !defined(CT_INLINE) || !defined(__x86_64__)
#define CT_PRECISE(name, which, counter, after, offset) CT_API int64_t name(void)
#else
#define CT_PRECISE(name, which, counter, after, offset)                        \
	CT_API int64_t name(void);                                             \
	CT_INLINE int64_t name(void)                                           \
	{                                                                      \
		/* The latch: page.h. Acquire, of what it guards too, so that  \
		 * the count is looked at again after that. */                 \
		uint64_t seq = __atomic_load_n(                                \
			&ct_page.segment_seq, __ATOMIC_ACQUIRE);               \
		const struct ct_segment *s = &ct_page.segment[seq & 1];        \
		uint64_t span = __atomic_load_n(&s->span, __ATOMIC_ACQUIRE);   \
		uint64_t cycles, mult;                                         \
		int64_t base_ns, add_ns;                                       \
                                                                               \
		/* Only then may the counter be read. */                       \
		if (__builtin_expect(span != 0, 1)) {                          \
			mult = __atomic_load_n(&s->mult, __ATOMIC_ACQUIRE);    \
			base_ns =                                              \
				__atomic_load_n(&s->mono_ns, __ATOMIC_ACQUIRE);\
			add_ns = offset;                                       \
			cycles = counter() -                                   \
				 __atomic_load_n(&s->cycles, __ATOMIC_ACQUIRE);\
			if (__builtin_expect(cycles < span && base_ns > 0 &&   \
						     __atomic_load_n(          \
							     after(cycles),    \
							     __ATOMIC_RELAXED) \
							     == seq,           \
				    1))                                        \
				return base_ns + add_ns +                      \
				       (int64_t)(cycles * mult >> 32);         \
		}                                                              \
		return ct_precise_slow(which);                                 \
	}                                                                      \
	CT_API int64_t name(void)

#define CT_COUNTER() __builtin_ia32_rdtsc()
#define CT_COUNT(cycles) (&ct_page.segment_seq)

/* Not before what precedes it: lfence (Intel SDM 3A 8.3; AMD64 APM 2 7.10). */
#define CT_COUNTER_ORDERED()                                                   \
	__extension__({                                                        \
		uint32_t ct_lo, ct_hi;                                         \
		__asm__ volatile("lfence\n\trdtsc"                             \
				 : "=a"(ct_lo), "=d"(ct_hi)                    \
				 :                                             \
				 : "memory");                                  \
		(uint64_t)ct_hi << 32 | ct_lo;                                 \
	})
/* An address that the processor can't know before it has the counter. */
#define CT_COUNT_AFTER(cycles)                                                 \
	__extension__({                                                        \
		uintptr_t ct_zero = (uintptr_t)(cycles);                       \
		__asm__ volatile("andq $0, %0" : "+r"(ct_zero) : : "cc");      \
		(const uint64_t *)((uintptr_t)&ct_page.segment_seq + ct_zero); \
	})
#define CT_OFFSET __atomic_load_n(&s->wall_offset_ns, __ATOMIC_ACQUIRE)
#endif

CT_PRECISE(ct_precise_ns, CT_PRECISE_WALL, CT_COUNTER, CT_COUNT, CT_OFFSET);
CT_PRECISE(ct_precise_mono_ns, CT_PRECISE_MONO, CT_COUNTER, CT_COUNT, 0);
CT_PRECISE(ct_precise_ordered_ns, CT_PRECISE_WALL, CT_COUNTER_ORDERED,
	CT_COUNT_AFTER, CT_OFFSET);
CT_PRECISE(ct_precise_mono_ordered_ns, CT_PRECISE_MONO, CT_COUNTER_ORDERED,
	CT_COUNT_AFTER, 0);

#undef CT_PRECISE
#undef CT_COUNTER
#undef CT_COUNT
#undef CT_COUNTER_ORDERED
#undef CT_COUNT_AFTER
#undef CT_OFFSET
#undef CT_INLINE

/*
 * The cached millisecond, but never older than max_age_ms. The kernel's coarse
 * clock is the judge: it can't stand still, so this holds where the ticker is
 * starved, stopped or debugged; it lags by up to two of its own ticks (of 4 ms
 * at HZ=250), which is allowed for. What might be too old is read live, and
 * published. For a max_age_ms of less than two coarse ticks the exact clock is
 * the judge; 0 and less always read live.
 *
 * Costs about 1.5 reads of CLOCK_REALTIME_COARSE; one more of CLOCK_MONOTONIC
 * where that can't tell; where read live and published, about five of those. In
 * CT_MODE_MANUAL, where time is to stand still: live, and not published.
 * Otherwise as the readers above.
 */
CT_API int64_t ct_now_ms_fresh(int64_t max_age_ms);
CT_API int64_t ct_mono_ms_fresh(int64_t max_age_ms);

/* All of one publication, for one `now` per request. */
struct ct_snapshot {
	int64_t wall_ns;      /* CLOCK_REALTIME ... */
	int64_t mono_ns;      /* ... and CLOCK_MONOTONIC, of one moment */
	int64_t wall_s;	      /* the second that wall_ns is in */
	uint64_t generation;  /* as ct_generation() */
	int64_t tai_offset_s; /* TAI - wall, in seconds */
	int64_t age_ns;	      /* since that moment; 0 where it was read live */
};

/*
 * Fill in *snap: of the last publication, or live where nothing is cached. 0;
 * -EINVAL for NULL. mono_ns never goes back. Costs one read of the kernel's
 * clock, for the age, where cached; six where live. From anywhere.
 */
CT_API int ct_snapshot(struct ct_snapshot *snap);

enum ct_bounds_status {
	CT_BOUNDS_UNKNOWN,	/* nothing is known: see ct_bounds() */
	CT_BOUNDS_SYNCHRONISED, /* the kernel's clock is kept by NTP or PTP */
	CT_BOUNDS_FREE_RUNNING	/* it was, and drifts since */
};

/* Between which true time lies. */
struct ct_bounds {
	int64_t earliest_ns; /* of wall: Unix time in nanoseconds */
	int64_t latest_ns;
	enum ct_bounds_status status;
	int64_t tai_offset_s; /* TAI - wall, in seconds; 0: not known */
};

/*
 * The bounds of true time at some moment within the call: CLOCK_REALTIME, less
 * and more what the kernel says it may be off by (adjtimex(2): maxerror, which
 * whoever keeps the clock sets), grown by the tolerance of its oscillator since.
 * As good as what NTP or PTP tell the kernel, and no better.
 *
 *	0	filled in. CT_BOUNDS_UNKNOWN: the kernel's clock was never
 *		synchronised, or not for so long that it gave up; earliest_ns
 *		is INT64_MIN, latest_ns INT64_MAX, and waiting for either to
 *		pass is waiting for ever
 *	-EINVAL	NULL
 *	-errno	adjtimex(2) was refused, as by a sandbox (ENOSYS, EPERM); *bounds
 *		is filled in as CT_BOUNDS_UNKNOWN
 *
 * Costs two reads of the kernel's clock, and adjtimex(2) once a second and
 * after each step. Nothing else here calls that, since some sandboxes kill for
 * it. Not from a signal handler.
 */
CT_API int ct_bounds(struct ct_bounds *bounds);

/*
 * Control. None of it is needed for the plain use. Call these from any
 * thread, any number of them at once, but not from a signal handler; only
 * ct_refresh() and ct_age_ns() may be called from there.
 */

#define CT_TICK_MIN_NS INT64_C(50000)	   /* 50 us */
#define CT_TICK_MAX_NS INT64_C(1000000000) /* 1 s */
#define CT_TICK_DEFAULT_NS INT64_C(1000000)

enum ct_mode {
	CT_MODE_DEFAULT = 0, /* what CT_TICK says, else CT_MODE_AUTO */
	CT_MODE_AUTO,	     /* the library's choice: a tick of 1 ms */
	CT_MODE_TICK,	     /* a thread publishes each tick_ns */
	CT_MODE_MANUAL,	     /* no thread: time stands until ct_refresh() */
	CT_MODE_OFF	     /* each read asks the live clock */
};

/*
 * A counter of your own, for CT_MODE_TICK and CT_MODE_MANUAL. It need not be
 * exact: its rate is measured against the kernel's clocks, and the words never
 * run ahead of those.
 */
struct ct_clocksource {
	const char *name;	/* shown by ct_status(); 15 bytes at most */
	uint64_t (*read)(void);	/* called by the ticker or in ct_refresh(),
				 * never by a reader */
	uint64_t mask;		/* of the bits that count: 2^n - 1 */
	uint64_t hz;		/* nominal rate, 1 kHz to 1 THz */
};

/*
 * How to run. Zero the struct and set `size`; a member left 0 or NULL means
 * what the environment says (CT_TICK, CT_BACKEND, CT_PRIORITY), else the
 * default. Members will be added at the end.
 *
 *	struct ct_config config = { .size = sizeof(config),
 *				    .mode = CT_MODE_MANUAL };
 */
struct ct_config {
	size_t size;	     /* sizeof(struct ct_config) */
	enum ct_mode mode;
	int64_t tick_ns;     /* CT_TICK_MIN_NS to CT_TICK_MAX_NS */
	const char *backend; /* "auto", "tsc", "realtime", "hpet", "coarse" */
	const struct ct_clocksource *clocksource; /* instead of a back end;
						   * copied */
	const char *priority; /* of the ticker: "normal", "fifo" (SCHED_FIFO,
			       * where permitted) or a nice value */
};

/*
 * Start, or change to, what `config` says; NULL: what the environment says.
 * Returns at once; the ticker publishes a moment later. Already running like
 * that: 0, and nothing changes.
 *
 *	0		done
 *	-EINVAL		bad struct: nothing changed. Bad environment: running
 *			with the default in its place; ct_status() says which
 *			variable, which value and why
 *	-EAGAIN		no thread to be had (a limit), or this is a vfork
 *			child: reads are live; a later read tries again
 *	-ENOTSUP	the kernel can't wipe the page on fork: reads stay live
 *	-EDEADLK	called from within (by your clocksource)
 */
CT_API int ct_start(const struct ct_config *config);

/*
 * Back to asking the live clock, here and in children forked later, until
 * ct_start(). Ends the thread; returns within milliseconds whatever the tick.
 * 0, -EAGAIN in a vfork child, or -EDEADLK from within.
 */
CT_API int ct_stop(void);

/*
 * Read the clock and publish it where words are cached; returns wall
 * milliseconds. In CT_MODE_MANUAL this is what makes time move: call it after
 * your poll and after long work. Async-signal-safe. Costs three to five reads of
 * the kernel's clock.
 */
CT_API int64_t ct_refresh(void);

/*
 * How old the cached words are now, in nanoseconds of mono since they were
 * published; 0 while reads go live. Async-signal-safe; costs one clock read.
 */
CT_API int64_t ct_age_ns(void);

/*
 * Have fn called at each step of the wall clock from now on, by how much it was
 * set (positive is forward). It is called by the ticker's thread, or where you
 * call ct_refresh(), and must not block, nor call ct_start(), ct_stop(),
 * ct_status() (-EDEADLK) or this. NULL: no more, once this has returned. 0, or
 * -EDEADLK from within.
 */
CT_API int ct_on_step(void (*fn)(int64_t delta_ns, void *arg), void *arg);

/* What is going on, and why. Set `size` first; members are added at the end. */
struct ct_status {
	size_t size;	      /* sizeof(struct ct_status) */
	enum ct_mode mode;    /* in force; CT_MODE_OFF after ct_stop() */
	int cached;	      /* 1: reads come from the page; 0: live */
	int64_t tick_ns;      /* of the mode in force; 0 without a ticker */
	char backend[16];     /* the clocksource in use, or that would be */
	char reason[512];     /* why this one, and why not the others */
	uint64_t ticks;	      /* publications since the start */
	uint64_t late_ticks;  /* of these, a whole tick late or more */
	int64_t max_late_ns;  /* worst lateness of a tick */
	int64_t age_ns;	      /* as ct_age_ns() */
	uint64_t steps;	      /* of the wall clock, seen since the start */
	int64_t last_step_ns; /* signed: positive is forward */
	uint64_t counter_hz;  /* measured rate of the counter in use; 0: not
			       * known yet, or the kernel's clocks are in use */
	int last_error;	      /* 0, or the last trouble as -errno ... */
	char error[512];      /* ... and in words; empty if none */
	int precise;	      /* 1: precise time comes from the counter */
	int64_t precise_error_ns; /* and is off by this, on average of late */
};

/* 0; -EINVAL for a bad size; -EDEADLK from within (by your clocksource). */
CT_API int ct_status(struct ct_status *status);

/*
 * The same for people: lines of "name: value". Returns the length of the whole
 * text without its zero; what does not fit into `size` bytes is cut off, and
 * the rest terminated, as snprintf(3) does.
 */
CT_API size_t ct_status_text(char *buf, size_t size);

/* "0.1.0": of the library that runs; CT_VERSION is what you compiled with. */
CT_API const char *ct_version(void);

#ifdef __cplusplus
}
#endif

#endif /* CACHEDTIME_H */
