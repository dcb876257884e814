/* SPDX-License-Identifier: MIT */
/*
 * One word's hand-over (src/handover.c) between parked, engaging and cached,
 * explored exhaustively by Spin: a writer that engages, ticks and parks, a
 * plain reader and one that refreshes. The clock moves on at each look at it,
 * so that no two looks are equal.
 *
 * Checked: a read that begins after another has returned never returns less;
 * and when all is parked no time is left in the word.
 *
 * With one of these defined the model is wrong in one way that one is tempted
 * to write, and Spin must find it:
 *
 *   FIRST_LIVE   a helper swaps in the time it read before it saw the mark
 *   NO_LOOK      a live reader doesn't look at the word again
 *   BLIND        the ticker stores instead of swapping
 *   ONE_MARK     each engagement uses the same mark
 *   LOOK_LATE    the witness is taken after the clock was read
 *   NO_RETRY     a publication beaten by an older time isn't made again
 */
#ifndef ENGAGEMENTS
#define ENGAGEMENTS 2
#endif
#ifndef READS
#define READS 2
#endif

short word;		/* 0, a mark (negative) or a time */
short now = 1;
short newest;		/* the largest result returned so far */
byte running = 3;

inline clock(time)
{
	atomic { time = now; now++ }
}

inline swap(seen, value, swapped)
{
	atomic {
		if
		:: word == seen -> word = value; swapped = true
		:: else -> seen = word; swapped = false
		fi
	}
}

inline give(result)
{
	atomic {
		assert(result >= floor);
		if
		:: result > newest -> newest = result
		:: else
		fi
	}
}

/* A publication: look, clock, swap. Never replaces 0. */
inline publish()
{
#ifdef LOOK_LATE
	clock(time);
	seen = word;
#else
	seen = word;
	clock(time);
#endif
	if
	:: seen != 0 ->
#ifdef BLIND
		word = time
#else
		swap(seen, time, swapped)
#endif
	:: else
	fi
}

active proctype writer()
{
	short seen, time, mark;
	bool swapped;
	byte engagements;

	do
	:: engagements < ENGAGEMENTS ->
		engagements++;
#ifdef ONE_MARK
		mark = -1;
#else
		mark = -engagements;
#endif
		seen = 0;
		swap(seen, mark, swapped);
		if
		:: swapped -> seen = mark
		:: else
		fi;
		clock(time);
#ifdef BLIND
		word = time;
#else
		swap(seen, time, swapped);
#endif
		publish();	/* a tick */
		word = 0	/* park */
	:: else -> break
	od;
	running--
}

/* handover_read() */
active proctype reader()
{
	short seen, live, floor;
	bool swapped;
	byte reads;

	do
	:: reads < READS ->
		reads++;
		atomic { floor = newest; seen = word }
		if
		:: seen > 0 -> give(seen); goto returned
		:: else
		fi;
		clock(live);
#ifndef NO_LOOK
		seen = word;
		do
		:: seen < 0 ->
#ifndef FIRST_LIVE
			clock(live);
#endif
			swap(seen, live, swapped);
			if
			:: swapped -> give(live); goto returned
			:: else
			fi
		:: else -> break
		od;
		if
		:: seen > 0 -> give(seen); goto returned
		:: else
		fi;
#endif
		give(live);
returned:	seen = 0; live = 0; swapped = false
	:: else -> break
	od;
	running--
}

/* ct_refresh(): publishes, then reads. */
active proctype refresher()
{
	short seen, time, live, floor, begun;
	bool swapped;

	begun = now;
again:	publish();
#ifndef NO_RETRY
	if
	:: !swapped && seen > 0 && seen < time -> goto again
	:: else
	fi;
#endif
	/* What it leaves is as of now, or it is parked. */
	atomic {
		seen = word;
		assert(seen <= 0 || seen >= begun)
	}
	atomic { floor = newest; seen = word }
	if
	:: seen > 0 -> give(seen)
	:: else ->
		clock(live);
		seen = word;
		do
		:: seen < 0 ->
			clock(live);
			swap(seen, live, swapped);
			if
			:: swapped -> seen = live
			:: else
			fi
		:: else -> break
		od;
		if
		:: seen > 0 -> give(seen)
		:: else -> give(live)
		fi
	fi;
	running--
}

active proctype parked_last()
{
	(running == 0);
	assert(word == 0)
}
