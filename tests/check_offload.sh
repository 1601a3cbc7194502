#!/bin/sh
# Devices from end to end, on simulated GPUs: LLVM's own OpenMP plugin, our launchers, the library's kernels, and what
# breaks in LLVM (src/offload.c lists it).
. "${top_srcdir:-.}/tests/tap.sh"
. "$top_srcdir/tests/devices.sh"
devices_set_up offload
tests=$top_builddir/tests library=$top_builddir/src/.libs/libetalon.so

# on_gpus COUNT ARCH COMMAND...
on_gpus() {
    gpus=$1 arch=$2
    shift 2
    on "$arch" ETALON_SIM_DEVICES="$gpus" ETALON_DEVICES="$gpus" "$@"
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

kinds= more='1 3'
if has_sanitizer; then
    kinds=few more=1
    skip 'three GPUs, another schedule, every call' 'a sanitizer is on: a call of each kind'
fi
for arch in gfx950 gfx1250; do
    for gpus in $more; do
        passes "launchers, $arch, $gpus" on_gpus $gpus $arch "$tests/check_launch"
        passes "calls, $arch, $gpus" on_gpus $gpus $arch "$tests/check_offload" $kinds
    done
    passes "rows of one architecture, $arch" on_all $arch "$tests/check_offload" rows
    # What runs for ever is a finding, too: the exit status is the program's.
    passes "a kernel that fails, $arch" on $arch ETALON_SIM_EXIT=0 ETALON_SIM_LIMIT=20000 "$tests/check_launch" failing
    passes "a call that fails, $arch" on $arch ETALON_SIM_EXIT=0 ETALON_SIM_LIMIT=100 "$tests/check_offload" failing
    [ "$more" = 1 ] && continue
    passes "launchers, $arch, another schedule" on $arch ETALON_SIM_SEED=3 "$tests/check_launch"
    passes "calls, $arch, another schedule" on $arch ETALON_SIM_SEED=3 "$tests/check_offload"
done

passes 'no GPU' clean "$tests/check_offload" none
passes 'OMP_TARGET_OFFLOAD=DISABLED' on gfx950 OMP_TARGET_OFFLOAD=DISABLED "$tests/check_offload" none
passes 'a runtime that does not start' on_gpus many gfx950 "$tests/check_offload" none

# Loaded again after it was unloaded the library finds the device again.
$CC $CFLAGS -I"$top_srcdir/include" "$top_srcdir/tests/offload/loader.c" -o "$dir/loader" -ldl 2>"$dir/log" ||
    not_ok 'the loader compiles' "$(cat "$dir/log")"
passes 'the library is loaded twice' on gfx950 "$dir/loader" "$library" 0
says 'and has its device twice' 2 '^ok$'

# An image for the host's own processor puts four devices in front, and LLVM 22 crashes at the first interop.
if $CC $CFLAGS -DWITH_IMAGE -fopenmp -fopenmp-targets="$($CC -dumpmachine)" -I"$top_srcdir/include" \
    "$top_srcdir/tests/offload/loader.c" -o "$dir/host_image" -ldl 2>"$dir/log"; then
    for device in 0 4; do
        passes "a program with an image for the host, device $device" on gfx950 "$dir/host_image" "$library" $device
        says 'and a sentence' 2 'a device is reached only where all are of one kind'
    done
else
    skip 'a program with an image for the host' "$CC links none: $(tail -n 1 "$dir/log")"
fi
finish
