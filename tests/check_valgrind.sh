#!/bin/sh
# The device path under valgrind, on a simulated GPU: no error, nothing lost, also when memory runs out or a kernel fails.
. "${top_srcdir:-.}/tests/tap.sh"
. "$top_srcdir/tests/devices.sh"
command -v valgrind >/dev/null || skip_all 'valgrind is not there'
devices_set_up valgrind
has_sanitizer && skip_all 'the programs have a sanitizer of their own'
tests=$top_builddir/tests

# Without debugging information, of which valgrind knows older forms than compilers write.
mkdir "$dir/lib"
cp -L "$ETALON_SIM_LIBRARIES"/*.so* "$dir/lib/"
cp "$tests/check_launch" "$tests/check_offload" "$dir/"
strip -g "$dir"/lib/* "$dir"/check_*

# passes WHAT VARIABLES... PROGRAM ARGUMENTS...: the simulator is thirty times as slow, too slow to qualify all rows.
skip 'rows of one architecture' 'valgrind is slow'
passes() {
    what=$1
    shift
    if on gfx950 LD_LIBRARY_PATH="$dir/lib" ETALON_SIM_EXIT=0 "$@" && grep -q '^1\.\.[1-9]' "$dir/out"; then
        ok "$what"
    else
        not_ok "$what" "$(grep -v '^ok' "$dir/out" "$dir/err")"
    fi
}

memcheck="valgrind --quiet --error-exitcode=9 --leak-check=full --show-leak-kinds=definite,indirect --errors-for-leak-kinds=definite,indirect --num-callers=30 --suppressions=$top_srcdir/tests/offload/valgrind.supp"
# shellcheck disable=SC2086 # options, one a word
{
    passes 'launchers' $memcheck "$dir/check_launch"
    passes 'calls' $memcheck "$dir/check_offload" few
    passes 'a kernel that fails' ETALON_SIM_LIMIT=20000 $memcheck "$dir/check_launch" failing
    passes 'a call that fails' ETALON_SIM_LIMIT=100 $memcheck "$dir/check_offload" failing
}
finish
