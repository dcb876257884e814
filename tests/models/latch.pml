/* SPDX-License-Identifier: MIT */
/*
 * The sequence count latch (src/latch.h), explored exhaustively by Spin: a
 * writer that publishes words that belong together, and may be killed between
 * any two stores, and two readers.
 *
 * Modelled is no one processor or compiler, but what C11 permits: of the
 * writer's stores, and of the loads of a reader's attempt, any may take effect
 * next that need not come after another one that has yet to. A release store
 * comes after all before it, and all come after an acquire load before them;
 * accesses to one word keep their order. Hence the attempts of one reader don't
 * overlap: each begins and ends with the count.
 *
 * Checked: what a reader accepts is all of one publication, which isn't older
 * than one that was accepted before it began; and it starts over only if the
 * writer has gone on, so that one that is dead leaves a readable copy.
 *
 * With one of these defined the model is wrong in one way, and Spin must find
 * it:
 *
 *   NO_RELEASE        words are stored relaxed: before the publication that
 *                     takes their copy out of use
 *   NO_RELEASE_COUNT  the count is: before the words that it shows
 *   NO_ACQUIRE        words are loaded relaxed: after the second look
 *   NO_ACQUIRE_COUNT  the count is: after the words that it names
 *   LOOK_FIRST        the last word is loaded after the second look
 *   NO_LOOK           there is no second look
 *   ONE_COPY          a sequence lock: the count is odd while words change
 */
#ifndef PUBLICATIONS
#define PUBLICATIONS 4
#endif
#ifndef READS
#define READS 2
#endif
#ifndef WORDS
#define WORDS 2
#endif

/* The stores of a publication, as the program has them: words, count. */
#ifdef ONE_COPY
#define COPIES 1
#define STORES (WORDS + 2) /* the count comes first, too */
#define IS_WORD(i) (i % STORES > 0 && i % STORES <= WORDS)
#define NUMBER(seq) (seq / 2)
#define IS_BUSY(seq) (seq & 1)
#else
#define COPIES 2
#define STORES (WORDS + 1)
#define IS_WORD(i) (i % STORES < WORDS)
#define NUMBER(seq) (seq)
#define IS_BUSY(seq) false
#endif

/* The loads of an attempt: the count, the words, the count again. */
#define LOOK (WORDS + 1)
#define ALL ((1 << (LOOK + 1)) - 1)

/* All before it are done; or the last one to the same word is. */
#define IN_ORDER(done, i) ((done & ((1 << (i)) - 1)) == (1 << (i)) - 1)
#define SAME_WORD(done, i, n) (i < (n) || (done & (1 << (i - (n)))))

#define WORD_STORABLE(i) IN_ORDER(stored, i)
#define COUNT_STORABLE(i) IN_ORDER(stored, i)
#define LOADABLE(k) IN_ORDER(loaded, k)
#define LOOKABLE IN_ORDER(loaded, LOOK)

#ifdef NO_RELEASE
#undef WORD_STORABLE
#define WORD_STORABLE(i) SAME_WORD(stored, i, COPIES * STORES)
#endif
#ifdef NO_RELEASE_COUNT
#undef COUNT_STORABLE
#define COUNT_STORABLE(i) SAME_WORD(stored, i, STORES)
#endif
#ifdef NO_ACQUIRE
#undef LOADABLE
#define LOADABLE(k) IN_ORDER(loaded, 1)
#undef LOOKABLE
#define LOOKABLE IN_ORDER(loaded, 1)
#endif
#ifdef NO_ACQUIRE_COUNT
#undef LOADABLE
#define LOADABLE(k) IN_ORDER((loaded | 1), k)
#endif
#ifdef LOOK_FIRST
#undef LOOKABLE
#define LOOKABLE IN_ORDER(loaded, LOOK - 1)
#endif

byte count;
byte word[COPIES * WORDS];	/* each the number of its publication */
byte newest;			/* the latest accepted so far */
bool dead;

/* Any of 0 .. n - 1. */
inline pick(i, n)
{
	i = 0;
	do
	:: i < n - 1 -> i++
	:: break
	od
}

inline store(i)
{
	number = i / STORES + 1;
	if
	:: stored & (1 << i)
	:: else ->
		if
		:: IS_WORD(i) && WORD_STORABLE(i) ->
			k = (i - (STORES - WORDS - 1)) % STORES;
			word[number % COPIES * WORDS + k] = number;
			stored = stored | (1 << i)
		:: !IS_WORD(i) && COUNT_STORABLE(i) ->
			count++;
			stored = stored | (1 << i)
		:: else
		fi
	fi
}

active proctype writer()
{
	int stored;
	byte i, k, number;

	do
	:: atomic {
		pick(i, PUBLICATIONS * STORES);
		store(i);
		i = 0; k = 0; number = 0
	   }
	:: dead = true; break
	od
}

inline load(k)
{
	if
	:: loaded & (1 << k)
	:: else ->
		if
		:: k == 0 ->
			seq = count;
			/* Words of the wrong copy are loaded again. */
			if
			:: copy != seq % COPIES -> loaded = 0
			:: else
			fi;
			copy = seq % COPIES;
			loaded = loaded | 1
		:: k > 0 && k < LOOK && LOADABLE(k) ->
			got[k - 1] = word[copy * WORDS + k - 1];
			loaded = loaded | (1 << k)
		:: k == LOOK && LOOKABLE ->
			seen = count;
			loaded = loaded | (1 << k)
		:: else
		fi
	fi
}

inline accept()
{
	assert(NUMBER(seq) >= floor);
	k = 0;
	do
	:: k < WORDS -> assert(got[k] == NUMBER(seq)); k++
	:: else -> break
	od;
	if
	:: NUMBER(seq) > newest -> newest = NUMBER(seq)
	:: else
	fi
}

inline forget()
{
	k = 0;
	do
	:: k < WORDS -> got[k] = 0; k++
	:: else -> break
	od;
	k = 0; seq = 0; seen = 0; copy = 0; loaded = 0; alone = false
}

active [2] proctype reader()
{
	byte reads, floor, k;
	byte seq, seen, copy, loaded, got[WORDS];
	bool alone;

	do
	:: reads < READS ->
		atomic { reads++; floor = newest };
again:		atomic {
			alone = dead;
#ifdef NO_ACQUIRE_COUNT
			pick(copy, COPIES)	/* a guess */
#endif
		};
		do
		:: loaded != ALL -> atomic { pick(k, LOOK + 1); load(k); k = 0 }
		:: else -> break
		od;
		atomic {
#ifdef NO_LOOK
			seen = seq;
#endif
			if
			:: IS_BUSY(seq) || seen != seq ->
				assert(!alone);
				forget();
				goto again
			:: else ->
				accept();
				forget();
				floor = 0
			fi
		}
	:: else -> break
	od
}
