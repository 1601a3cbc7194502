# Draws `table` into `drawing`. Bars: share of the multiply-add peak of each kernel's instruction set. Crosses: sgemm's share of the same peak.
# Columns of the table: 2 shape, 3 kernel, 4 threads, 8 %peak, 10 /sgemm.
set datafile missing "-"
stats table using 8 nooutput
rows = int(STATS_records)
set terminal svg size 1000, 80 + 22 * rows dynamic noenhanced background "white"
set output drawing
set xlabel "% of the fp32 multiply-add peak, same run, threads and instruction set"
set xrange [0:100]
set yrange [rows - 0.5:-0.5]
set grid xtics
set key outside top center horizontal
set style fill solid 0.7
bar = 0.35
plot table using ($8 / 2):0:($8 / 2):(bar):ytic(strcol(2) . "  " . strcol(3) . "  x" . strcol(4)) \
        with boxxyerror title "kernel", \
     table using ($8 / $10):0 with points pointtype 2 linecolor "black" title "OpenBLAS sgemm"
