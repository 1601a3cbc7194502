#!/bin/sh
# Every row for a device, on the GPUs that are really there: check.sh [OPTION of xcheck]...
#   ETALON, XCHECK    the programs
#   ETALON_VECTORS    the directory of the vectors
# Prints TAP and, last, a line with the counts.
. "$(dirname "$0")/../tap.sh"

dir=$(mktemp -d "${TMPDIR:-/tmp}/etalon-gpu.XXXXXX") || exit 99
trap 'rm -rf "$dir"' EXIT INT TERM

# OpenMP's plugin opens libcuda.so, a name that a driver without its developer's files lacks.
cuda=$(ldconfig -p 2>/dev/null | sed -n 's/.*libcuda\.so\.1 (.*x86-64.*=> //p' | head -n 1)
if [ -n "$cuda" ] && ! ldconfig -p | grep -q 'libcuda\.so '; then
    ln -s "$cuda" "$dir/libcuda.so"
    LD_LIBRARY_PATH=$dir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export LD_LIBRARY_PATH
fi

# passes WHAT COMMAND...: status 0; else its words.
passes() {
    what=$1
    shift
    if "$@" >"$dir/out" 2>&1; then
        ok "$what"
    else
        not_ok "$what" "exit $?
$(tail -n 60 "$dir/out")"
    fi
}

# Rows of device $1, one a line with its operation; the rows of the host need other things.
rows_of() {
    "$ETALON" list --device "$1" --json |
        sed -n 's/^{"op":"\([a-z_]*\)","kernel":"\([a-z0-9_]*\)","needs":"a device.*"available":\([a-z]*\),.*/\1 \2 \3/p'
}

check_device() {
    device=$1
    shift
    rows_of "$device" >"$dir/rows"
    [ -s "$dir/rows" ] || not_ok "device $device has rows" "$("$ETALON" list --device "$device")"
    while read -r op row available; do
        if [ "$available" = true ]; then
            ok "device $device: $row gives the known answers"
        else
            not_ok "device $device: $row gives the known answers" "$("$ETALON" list --device "$device" | grep "$row")"
        fi
        for vector in "$ETALON_VECTORS"/*"${op%_varlen}"*.safetensors; do
            passes "device $device: $row, $(basename "$vector")" "$ETALON" check --device "$device" --kernel "$row" "$vector"
        done
    done <"$dir/rows"
    passes "device $device: xcheck $*" "$XCHECK" --device "$device" "$@"
    sed 's/^/# /' "$dir/out"
}

device=0
while "$ETALON" list --device $device >"$dir/list" 2>&1; do
    check_device $device "$@"
    device=$((device + 1))
done
[ $device -gt 0 ] || not_ok 'there is a GPU' "$(cat "$dir/list")"

# Without one the caller gets a status and a sentence.
if OMP_TARGET_OFFLOAD=DISABLED "$ETALON" list --device 0 >"$dir/out" 2>&1 || ! grep -q 'OMP_TARGET_OFFLOAD is DISABLED' "$dir/out"; then
    not_ok 'OMP_TARGET_OFFLOAD=DISABLED' "$(cat "$dir/out")"
else
    ok 'OMP_TARGET_OFFLOAD=DISABLED'
fi
(finish)
echo "$device GPUs: $((tap_count - tap_failed)) passed, $tap_failed failed"
[ "$tap_failed" -eq 0 ]
