#!/bin/sh
# Devices from end to end, on simulated GPUs: LLVM's own OpenMP plugin, our launchers, the library's kernels, and what
# breaks in LLVM (src/offload.c lists it).
#   ETALON_OFFLOAD         on, or why the library has no offload
#   ETALON_SIM_LIBRARIES   the directory of the stand-ins for AMD's runtimes
. "${top_srcdir:-.}/tests/tap.sh"

tests=$top_builddir/tests library=$top_builddir/src/.libs/libetalon.so
case $ETALON_OFFLOAD in
on*) ;;
*) skip_all "offload is $ETALON_OFFLOAD" ;;
esac
[ -x "$tests/check_launch" ] || skip_all 'it takes Check, the simulator, and offloading to gfx950 and gfx1250'
dir=$(mktemp -d "${TMPDIR:-/tmp}/etalon-offload.XXXXXX") || exit 99
trap 'rm -rf "$dir"' EXIT INT TERM

# clean COMMAND...: whatever the caller's environment says about devices.
clean() {
    env -u OMP_TARGET_OFFLOAD -u OMP_DEFAULT_DEVICE -u ROCR_VISIBLE_DEVICES -u HIP_VISIBLE_DEVICES -u ETALON_DISABLE \
        CUDA_VISIBLE_DEVICES= ETALON_PROBES="$tests/offload" "$@" >"$dir/out" 2>"$dir/err"
}

# on ARCH GPUS COMMAND...: a finding of the simulator is a failure.
on() {
    arch=$1 gpus=$2
    shift 2
    clean LD_LIBRARY_PATH="$ETALON_SIM_LIBRARIES" ETALON_SIM_ARCH="$arch" ETALON_SIM_DEVICES="$gpus" \
        ETALON_DEVICES="$gpus" ETALON_SIM_EXIT=1 "$@"
}

# passes WHAT COMMAND...: the program's status, and its words if it fails.
passes() {
    what=$1
    shift
    if "$@"; then
        ok "$what"
    else
        not_ok "$what" "$(grep -v '^ok' "$dir/out"; cat "$dir/err")"
    fi
}

# says WHAT COUNT WORDS: so many lines of the last program's output hold them.
says() {
    if [ "$(grep -c -- "$3" "$dir/out")" -eq "$2" ]; then
        ok "$1"
    else
        not_ok "$1" "$(cat "$dir/out" "$dir/err")"
    fi
}

# A sanitizer makes the simulator ten times as slow.
kinds= more='1 3'
if nm "$tests/check_launch" | grep -q __asan_init; then
    kinds=few more=1
    skip 'three GPUs, another schedule, every call' 'a sanitizer is on: a call of each kind'
fi
for arch in gfx950 gfx1250; do
    for gpus in $more; do
        passes "launchers, $arch, $gpus" on $arch $gpus "$tests/check_launch"
        passes "calls, $arch, $gpus" on $arch $gpus "$tests/check_offload" $kinds
    done
    # What runs for ever is a finding, too: the exit status is the program's.
    passes "a kernel that fails, $arch" on $arch 1 ETALON_SIM_EXIT=0 ETALON_SIM_LIMIT=20000 "$tests/check_launch" failing
    passes "a call that fails, $arch" on $arch 1 ETALON_SIM_EXIT=0 ETALON_SIM_LIMIT=100 "$tests/check_offload" failing
    [ "$more" = 1 ] && continue
    passes "launchers, $arch, another schedule" on $arch 1 ETALON_SIM_SEED=3 "$tests/check_launch"
    passes "calls, $arch, another schedule" on $arch 1 ETALON_SIM_SEED=3 "$tests/check_offload"
done

passes 'no GPU' clean "$tests/check_offload" none
passes 'OMP_TARGET_OFFLOAD=DISABLED' on gfx950 1 OMP_TARGET_OFFLOAD=DISABLED "$tests/check_offload" none
passes 'a runtime that does not start' on gfx950 many "$tests/check_offload" none

# Loaded again after it was unloaded the library finds the device again.
$CC $CFLAGS -I"$top_srcdir/include" "$top_srcdir/tests/offload/loader.c" -o "$dir/loader" -ldl 2>"$dir/log" ||
    not_ok 'the loader compiles' "$(cat "$dir/log")"
passes 'the library is loaded twice' on gfx950 1 "$dir/loader" "$library" 0
says 'and has its device twice' 2 '^ok$'

# An image for the host's own processor puts four devices in front, and LLVM 22 crashes at the first interop.
if $CC $CFLAGS -DWITH_IMAGE -fopenmp -fopenmp-targets="$($CC -dumpmachine)" -I"$top_srcdir/include" \
    "$top_srcdir/tests/offload/loader.c" -o "$dir/host_image" -ldl 2>"$dir/log"; then
    for device in 0 4; do
        passes "a program with an image for the host, device $device" on gfx950 1 "$dir/host_image" "$library" $device
        says 'and a sentence' 2 'a device is reached only where all are of one kind'
    done
else
    skip 'a program with an image for the host' "$CC links none: $(tail -n 1 "$dir/log")"
fi
finish
