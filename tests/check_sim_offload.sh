#!/bin/sh
# LLVM 22's own OpenMP plugin for AMD GPUs, unmodified, on the stand-in for libhsa-runtime64.so.
#   ETALON_SIM_LIBRARIES  the directory of the stand-ins
#   OFFLOAD_CC            clang with an OpenMP runtime for devices (clang-22)
. "${top_srcdir:-.}/tests/tap.sh"

OFFLOAD_CC=${OFFLOAD_CC:-clang-22}
dir=$(mktemp -d "${TMPDIR:-/tmp}/etalon-offload.XXXXXX") || exit 99
trap 'rm -rf "$dir"' EXIT INT TERM

case ${CFLAGS-} in
*-fsanitize*) skip_all "the stand-ins are built with a sanitizer, whose runtime the plugin's program does not have" ;;
esac
command -v "$OFFLOAD_CC" >/dev/null 2>&1 || skip_all "no $OFFLOAD_CC"
plugin=$("$OFFLOAD_CC" -print-file-name=libomptarget.so)
[ -e "$plugin" ] || skip_all "$OFFLOAD_CC has no libomptarget.so (Debian: liboffload-22-dev)"
version=$("$OFFLOAD_CC" -dumpversion)
case $version in
22.*) ;;
*) skip_all "$OFFLOAD_CC is version $version, and the stand-in has what version 22 looks up" ;;
esac
if ! "$OFFLOAD_CC" -O1 -fopenmp --offload-arch=gfx950 --offload-arch=gfx1250 -nogpulib \
    "$top_srcdir/tests/sim/offload.c" -o "$dir/offload" -Wl,-rpath,"${plugin%/*}" >"$dir/log" 2>&1; then
    skip_all "$OFFLOAD_CC links no offload image: $(tail -n 1 "$dir/log")"
fi

# on ARCH GPUS COMMAND...: with the stand-in, whatever the caller's environment says. A finding is a failure.
on() {
    arch=$1 gpus=$2
    shift 2
    env -u OMP_TARGET_OFFLOAD -u OMP_DEFAULT_DEVICE -u ROCR_VISIBLE_DEVICES LD_LIBRARY_PATH="$ETALON_SIM_LIBRARIES" \
        ETALON_SIM_ARCH="$arch" ETALON_SIM_DEVICES="$gpus" ETALON_SIM_EXIT=1 "$@" >"$dir/out" 2>"$dir/err"
}

# right WHAT ARCH GPUS [NAME=VALUE]...: the program's numbers are right on each of so many devices.
right() {
    what=$1 arch=$2 gpus=$3
    shift 3
    if on "$arch" "$gpus" "$@" "$dir/offload" && [ ! -s "$dir/err" ] &&
        [ "$(tail -n 1 "$dir/out")" = "devices $gpus" ] &&
        [ "$(grep -c 'wrong copies 0, maps 0, kernel 0, interop 0$' "$dir/out")" -eq "$gpus" ]; then
        ok "$what"
    else
        not_ok "$what" "$(cat "$dir/out" "$dir/err")"
    fi
}

for arch in gfx950 gfx1250; do
    right "$arch, one device" $arch 1
    right "$arch, three devices" $arch 3
    right "$arch, another schedule" $arch 1 ETALON_SIM_SEED=3
done

# A plugin that finds no device must be seen as that: the test above would pass with none.
if on gfx950 many "$dir/offload" && [ "$(cat "$dir/out")" = 'devices 0' ] && grep -q ETALON_SIM_DEVICES "$dir/err"; then
    ok 'a bad environment leaves no device, and a sentence'
else
    not_ok 'a bad environment leaves no device, and a sentence' "$(cat "$dir/out" "$dir/err")"
fi

info=
for candidate in llvm-offload-device-info-22 llvm-offload-device-info; do
    command -v $candidate >/dev/null 2>&1 && info=$candidate && break
done
if [ -z "$info" ]; then
    skip 'llvm-offload-device-info lists the devices' 'there is no llvm-offload-device-info (Debian: clang-tools-22)'
else
    for arch in gfx950 gfx1250; do
        on $arch 2 $info
        if [ "$(grep -c "^Name: $arch\$" "$dir/out")" -eq 2 ]; then
            ok "$info lists two of $arch"
        else
            not_ok "$info lists two of $arch" "$(cat "$dir/out" "$dir/err")"
        fi
    done
fi

finish
