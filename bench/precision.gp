# SPDX-License-Identifier: MIT
# A picture of what precision --trace has written: gnuplot -e 'trace="FILE";
# picture="FILE"; machine="TEXT"' precision.gp
set terminal svg noenhanced size 900,600 font "sans-serif,12" \
	background "white"
set output picture
set encoding utf8

set multiplot layout 2,2 title \
	"ct_precise_ordered_ns() − CLOCK_REALTIME, from the first read on\n".\
	machine."\n "

set logscale x
set xrange [0.02:*] noextend
set yrange [-60:60]
set grid ytics lc "#dddddd"
set xtics ("20 ms" 0.02, "100 ms" 0.1, "1 s" 1, "10 s" 10, "60 s" 60)
set ytics 20 nomirror
set ylabel "ns"
# Judged from there on.
set arrow 1 from 1, graph 0 to 1, graph 1 nohead dt 3 lc "#888888"
set key top right samplen 2

array titles[4] = ["idle, reading as fast as possible", \
	"idle, reading at random pauses", \
	"every CPU busy, reading as fast as possible", \
	"every CPU busy, reading at random pauses"]
# The blocks of the cases without a ticker, in the order of precision.c.
array blocks[4] = [0, 1, 5, 6]

do for [i=1:4] {
	set title titles[i]
	plot 0 lc "#888888" notitle, \
		trace index blocks[i] using 1:2:6 with filledcurves \
		lc "#d8e4f2" title (i == 1 ? "0.01 % to 99.99 %" : ""), \
		"" index blocks[i] using 1:3:5 with filledcurves \
		lc "#8ab0dc" title (i == 1 ? "1 % to 99 %" : ""), \
		"" index blocks[i] using 1:4 with lines \
		lc "#103a6b" lw 1.5 title (i == 1 ? "median" : "")
}
unset multiplot
