# Commands that meet devices, in an environment of the test's own: source it behind tap.sh. $dir is the test's directory,
# where the last command's streams are: out and err.
#   ETALON_OFFLOAD         on, or why the library has no offload
#   ETALON_SIM_LIBRARIES   the directory of the stand-ins for AMD's runtimes
devices_set_up() { # NAME
    case $ETALON_OFFLOAD in
    on*) ;;
    *) skip_all "offload is $ETALON_OFFLOAD" ;;
    esac
    [ -x "$top_builddir/tests/check_launch" ] ||
        skip_all 'it takes Check, the simulator, and offloading to gfx950 and gfx1250'
    dir=$(mktemp -d "${TMPDIR:-/tmp}/etalon-$1.XXXXXX") || exit 99
    trap 'rm -rf "$dir"' EXIT INT TERM
    echo '# ETALON_DISABLE=gfx950,gfx1250, but for the checks of those rows'
}

# A sanitizer makes the simulator ten times as slow.
has_sanitizer() {
    nm "$top_builddir/tests/check_launch" | grep -q __asan_init
}

# clean COMMAND...: whatever the caller's environment says about devices.
clean() {
    env -u OMP_TARGET_OFFLOAD -u OMP_DEFAULT_DEVICE -u ROCR_VISIBLE_DEVICES -u HIP_VISIBLE_DEVICES -u ETALON_DISABLE \
        CUDA_VISIBLE_DEVICES= ETALON_PROBES="$top_builddir/tests/offload" \
        ETALON_BROKEN_OBJECTS="$top_builddir/tests/offload/broken" "$@" >"$dir/out" 2>"$dir/err"
}

# on_all ARCH COMMAND...: a simulated GPU, on which what the simulator finds is a failure.
on_all() {
    arch=$1
    shift
    clean LD_LIBRARY_PATH="$ETALON_SIM_LIBRARIES" ETALON_SIM_ARCH="$arch" ETALON_DEVICES=1 ETALON_SIM_EXIT=1 "$@"
}

# on ARCH COMMAND...: the same without the rows of one architecture. A simulated context takes seconds to qualify all of
# those, so that the checks that are not about them do without.
on() {
    arch=$1
    shift
    on_all "$arch" ETALON_DISABLE=gfx950,gfx1250 "$@"
}
