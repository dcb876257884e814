/* SPDX-License-Identifier: MIT */
/*
 * A program that does nothing but live with the library; the argument is what
 * it is to expect, as a number of enum outlook. Exit status 0 if all was right.
 */
#include "life.h"

int main(int argc, char **argv)
{
	int outlook = argc > 1 ? atoi(argv[1]) : OUTLOOK_CACHED;

	live_through((enum outlook)outlook, true);
	return EXIT_SUCCESS;
}
