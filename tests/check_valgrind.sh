#!/bin/sh
# The device path under valgrind, on a simulated GPU: no error, nothing lost, also when memory runs out or a kernel fails.
#   ETALON_OFFLOAD, ETALON_SIM_LIBRARIES   as in check_offload.sh
. "${top_srcdir:-.}/tests/tap.sh"

tests=$top_builddir/tests
case $ETALON_OFFLOAD in
on*) ;;
*) skip_all "offload is $ETALON_OFFLOAD" ;;
esac
[ -x "$tests/check_launch" ] || skip_all 'it takes Check, the simulator, and offloading to gfx950 and gfx1250'
command -v valgrind >/dev/null || skip_all 'valgrind is not there'
dir=$(mktemp -d "${TMPDIR:-/tmp}/etalon-valgrind.XXXXXX") || exit 99
trap 'rm -rf "$dir"' EXIT INT TERM

# Without debugging information, of which valgrind knows older forms than compilers write.
mkdir "$dir/lib"
cp -L "$ETALON_SIM_LIBRARIES"/*.so* "$dir/lib/"
cp "$tests/check_launch" "$tests/check_offload" "$dir/"
strip -g "$dir"/lib/* "$dir"/check_*
if nm "$dir/check_launch" | grep -q __asan_init; then
    skip_all 'the programs have a sanitizer of their own'
fi

# clean WHAT VARIABLES... PROGRAM ARGUMENTS...
clean() {
    what=$1
    shift
    if env -u OMP_TARGET_OFFLOAD -u OMP_DEFAULT_DEVICE -u ROCR_VISIBLE_DEVICES -u HIP_VISIBLE_DEVICES -u ETALON_DISABLE \
        CUDA_VISIBLE_DEVICES= ETALON_PROBES="$tests/offload" LD_LIBRARY_PATH="$dir/lib" ETALON_SIM_ARCH=gfx950 \
        ETALON_DEVICES=1 "$@" >"$dir/out" 2>&1 && grep -q '^1\.\.[1-9]' "$dir/out"; then
        ok "$what"
    else
        not_ok "$what" "$(grep -v '^ok' "$dir/out")"
    fi
}

memcheck="valgrind --quiet --error-exitcode=9 --leak-check=full --show-leak-kinds=definite,indirect --errors-for-leak-kinds=definite,indirect --num-callers=30 --suppressions=$top_srcdir/tests/offload/valgrind.supp"
# shellcheck disable=SC2086 # options, one a word
{
    clean 'launchers' $memcheck "$dir/check_launch"
    clean 'calls' $memcheck "$dir/check_offload" few
    clean 'a kernel that fails' ETALON_SIM_LIMIT=20000 $memcheck "$dir/check_launch" failing
    clean 'a call that fails' ETALON_SIM_LIMIT=100 $memcheck "$dir/check_offload" failing
}
finish
