/* SPDX-License-Identifier: MIT */
/*
 * How one segment of the precise line follows another (src/segment.h), explored
 * exhaustively by Spin: a writer renews it in time or late, drops the counter
 * and jumps; a reader (precise_read()) renews it too, where the lock is free,
 * and helps to decide, as does a helper, who may be late.
 *
 * The counter and CLOCK_MONOTONIC may move on at each look at them, by any
 * amount: whoever looks may have been preempted. The latter rises by 2 for each
 * cycle, lines by 1 or 3, so that they part. Memory is sequentially consistent,
 * and a segment is loaded, and published, in one step: latch.pml says why.
 *
 * Checked: a read that begins after another has returned never returns less.
 * That they are one reader's is enough, since it keeps nothing in between.
 *
 * With one of these defined the model is wrong in one way that one is tempted
 * to write, and Spin must find it:
 *
 *   NO_CHECK        a reader doesn't look at the latch after the counter
 *   NO_RECHECK      without a segment, it doesn't after the clock
 *   NO_END          without a segment, it goes back behind the line's end
 *   EARLY_CLOCK     clocks from before a segment showed decide it
 *   WRITER_DECIDES  it is published with its start
 *   NOT_BEFORE_END  a late start doesn't mind the predecessor's end
 *   NO_LEAD         nor its lead
 *   PAST_END        one that starts when it is over ends before its start
 *   UNDECIDED       one is published while its predecessor is undecided
 *   BLIND           a start is stored instead of swapped in
 *   ONE_MARK        each is undecided by the same mark; takes 3 PUBLICATIONS
 */
#ifndef PUBLICATIONS
#define PUBLICATIONS 2
#endif
#ifndef TIME
#define TIME 3
#endif
#define READS 2
/* The clocks go from here to LAST, and stay there. */
#define FIRST 10
#define LAST (FIRST + TIME)
#define SPAN 2
#define LEAD 4

typedef segment {
	byte cycles;
	byte slope;
	byte span;	/* 0: none, readers go live */
	bool jumps;
	short lead;
	short mono	/* negative: undecided */
};

segment copy[2];
byte count;		/* of the latch */
bool locked;
byte now = FIRST;
byte reads;

#define CURRENT copy[count & 1]
#define OTHER copy[1 - (count & 1)]

#define MOVED (count != number)
#define KERNEL(t) (2 * (t))
#define COVERS(s, t) (t - s.cycles < s.span)
#define MONO(s, t) (s.mono + s.slope * (t - s.cycles))
#define END(s) (s.mono + s.slope * s.span)

#ifdef ONE_MARK
#define MARK(number) (-1)
#else
#define MARK(number) (-(number))
#endif

/* Who holds the lock lets it go when what he published is decided; by a helper
 * here, since who decides first is all that matters. */
#ifdef UNDECIDED
#define IS_FREE (!locked)
#else
#define IS_FREE (!locked && CURRENT.mono >= 0)
#endif
#ifdef BLIND
#define IS_UNDECIDED(number) true
#else
#define IS_UNDECIDED(number) (copy[number & 1].mono == MARK(number))
#endif
#ifdef NO_CHECK
#define MOVED_COUNTING false
#else
#define MOVED_COUNTING MOVED
#endif
#ifdef NO_RECHECK
#define MOVED_LIVE false
#else
#define MOVED_LIVE MOVED
#endif

inline larger(a, b)
{
	if
	:: a < b -> a = b
	:: else
	fi
}

inline assign(to, from)
{
	to.cycles = from.cycles; to.slope = from.slope; to.span = from.span;
	to.jumps = from.jumps; to.lead = from.lead; to.mono = from.mono
}

inline wipe(s)
{
	s.cycles = 0; s.slope = 0; s.span = 0;
	s.jumps = false; s.lead = 0; s.mono = 0
}

/* What is of no use any more shall not tell states apart. */
inline forget()
{
	wipe(s); wipe(old);
	number = 0; t = 0; ns = 0; over = false
}

inline look()
{
	do
	:: now < LAST -> now++
	:: break
	od;
	t = now
}

inline take()
{
	number = count;
	assign(s, CURRENT)
}

/* From ns at t to ns at s.cycles. */
inline draw_back()
{
	t = t - s.cycles;
#ifndef PAST_END
	if
	:: t > s.span -> t = s.span
	:: else
	fi;
#endif
	ns = ns - s.slope * t;
	larger(ns, 1)
}

/* Rule 3: where s begins. As the counter's value at the kernel's time the
 * latest possible is taken. */
inline start(predecessor)
{
	atomic {
		assign(old, predecessor);
#ifndef EARLY_CLOCK
		look();
#endif
		over = !COVERS(old, t);
		if
		:: over -> ns = END(old)
		:: else -> ns = MONO(old, t)
		fi;
		over = over || s.jumps;
		if
		:: !over -> draw_back()
		:: else
		fi
	};
	if
	:: !over
	:: atomic {
		over ->
#ifndef EARLY_CLOCK
		look();
#endif
#ifdef NOT_BEFORE_END
		ns = 1;
#endif
#ifdef NO_LEAD
		old.lead = 0;
#endif
		larger(ns, KERNEL(t) + old.lead)
	   };
	   atomic {
#ifndef EARLY_CLOCK
		look();
#endif
		draw_back();
		over = false
	   }
	fi
}

inline decide()
{
	start(copy[1 - (number & 1)]);
	atomic {
		if
		:: IS_UNDECIDED(number) -> copy[number & 1].mono = ns
		:: else
		fi;
		forget()
	}
}

inline choose(s)
{
	if
	:: s.slope = 1; s.lead = LEAD
	:: s.slope = 3; s.lead = -LEAD
	:: s.slope = 3; s.jumps = true
	:: skip
	fi;
	if
	:: s.slope > 0 -> s.span = SPAN; s.cycles = t
	:: else
	fi
}

/* With the lock; the counter was read at t. */
inline publish()
{
	atomic {
		choose(s);
#ifdef WRITER_DECIDES
	};
	start(CURRENT);
	atomic {
		s.mono = ns;
#else
		s.mono = MARK(count + 1);
#endif
		assign(OTHER, s);
		count++;
		locked = false;
		forget()
	}
}

proctype writer()
{
	segment s, old;
	byte number, t;
	short ns;
	bool over;

end:	atomic {
		reads < READS && count < PUBLICATIONS && IS_FREE ->
		locked = true;
		look()
	};
	publish();
	goto end
}

proctype helper()
{
	segment s, old;
	byte number, t;
	short ns;
	bool over;

end:
#ifdef EARLY_CLOCK
	atomic { CURRENT.mono >= 0 -> look() };
end_early:
#endif
	atomic { reads < READS && CURRENT.mono < 0 -> take() };
	decide();
	goto end
}

inline give()
{
	assert(ns >= floor);
	floor = ns;
	reads++;
	forget()
}

proctype reader()
{
	segment s, old;
	byte number, t;
	short ns, floor;
	bool over;

end:	atomic {
		reads < READS ->
#ifdef EARLY_CLOCK
		look()
	};
	atomic {
#endif
		take()
	};
	if
	:: s.mono < 0 -> decide(); goto end
	:: s.mono >= 0 && s.span == 0
	:: atomic {
		s.mono >= 0 && s.span > 0 -> look();
		over = !COVERS(s, t);
		if
		:: over
		:: else -> ns = MONO(s, t); wipe(s)
		fi;
		t = 0
	   };
	   atomic {
		if
		:: MOVED_COUNTING -> forget(); goto end
		:: else ->
			if
			:: over -> over = false
			:: else -> give(); goto end
			fi
		fi
	   }
	fi;

	atomic {
		look();
		ns = KERNEL(t) + s.lead;
#ifndef NO_END
		larger(ns, END(s));
#endif
		wipe(s);
		t = 0
	};
	if
	:: true
	:: atomic {
		count < PUBLICATIONS && IS_FREE ->
		if
		:: MOVED -> forget(); goto end
		:: else
		fi;
		forget();
		locked = true;
		look()
	   };
	   publish();
	   goto end
	fi;
	atomic {
		if
		:: MOVED_LIVE -> forget(); goto end
		:: else -> give(); goto end
		fi
	}
}

init {
	byte t = now;

	atomic {
		choose(copy[0]);
		copy[0].mono = KERNEL(now);
		run writer();
		run helper();
		run reader()
	}
}
