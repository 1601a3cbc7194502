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

# Rows of device $1, one a line with its operation: those that it has or that did not qualify. The rows of the host and
# of other devices need other things.
rows_of() {
    "$ETALON" list --device "$1" --json |
        sed -En 's/^\{"op":"([a-z_]*)","kernel":"([a-z0-9_]*)","needs":"a (gfx[0-9]+ )?device","available":(true|false),"reason":(null|"not qualified).*/\1 \2 \4/p'
}

# check_vector DEVICE ROW FILE: a row of one architecture need not take it.
check_vector() {
    reason=$("$ETALON" explain --device "$1" --kernel "$2" "$3" | sed -n "s/^$2  *//p")
    if [ "${2##*_}" != omp ] && [ "$reason" != taken ]; then
        skip "device $1: $2, $(basename "$3")" "$reason"
    else
        passes "device $1: $2, $(basename "$3")" "$ETALON" check --device "$1" --kernel "$2" "$3"
    fi
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
        name=${op%_varlen} # of the files; mqa_logits is not mqa_logits_paged
        for vector in "$ETALON_VECTORS/$name"-*.safetensors "$ETALON_VECTORS/real-$name.safetensors"; do
            [ -f "$vector" ] || continue
            check_vector "$device" "$row" "$vector"
        done
    done <"$dir/rows"
    passes "device $device: xcheck $*" "$XCHECK" --device "$device" "$@"
    sed 's/^/# /' "$dir/out"
    if idle=$(grep ': 0 passed' "$dir/out"); then
        not_ok "device $device: every row served some cases" "$idle"
    else
        ok "device $device: every row served some cases"
    fi
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
