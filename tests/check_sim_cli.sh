#!/bin/sh
# The etalon-sim program: exit codes, arguments, buffers, findings, sentences about bad input.
#   ETALON_SIM          the program
#   ETALON_SIM_KERNELS  the directory of runtime_ARCH.co (tests/sim/runtime_ARCH.s)
. "${top_srcdir:-.}/tests/tap.sh"

dir=$(mktemp -d "${TMPDIR:-/tmp}/etalon-sim.XXXXXX") || exit 99
trap 'rm -rf "$dir"' EXIT INT TERM

# expect CODE WHAT WORDS COMMAND...: the exit code, and the words on either stream (none if WORDS is empty).
expect() {
    code=$1 what=$2 words=$3
    shift 3
    "$@" >"$dir/stdout" 2>"$dir/stderr"
    got=$?
    if [ "$got" -ne "$code" ]; then
        not_ok "$what" "exit $got, expected $code: $* $(cat "$dir/stdout" "$dir/stderr")"
    elif [ -n "$words" ] && ! grep -qF -e "$words" "$dir/stdout" "$dir/stderr"; then
        not_ok "$what" "no \"$words\" in: $(cat "$dir/stdout" "$dir/stderr")"
    else
        ok "$what"
    fi
}

# silent WHAT: the command before printed nothing on standard error.
silent() {
    if [ -s "$dir/stderr" ]; then
        not_ok "$1" "$(cat "$dir/stderr")"
    else
        ok "$1"
    fi
}

# Usage
expect 0 '--version' 'etalon-sim ' "$ETALON_SIM" --version
expect 0 '--help' 'usage: etalon-sim' "$ETALON_SIM" --help
for command in run report disasm list; do
    expect 0 "$command --help" "usage: etalon-sim $command" "$ETALON_SIM" $command --help
    expect 2 "$command without an object" 'expected one code object' "$ETALON_SIM" $command
    expect 2 "$command with an unknown option" 'Try "etalon-sim' "$ETALON_SIM" $command --fast x
done
expect 2 'no command' 'usage: etalon-sim' "$ETALON_SIM"
expect 2 'an unknown command' 'no command is named "walk"' "$ETALON_SIM" walk
expect 2 'an option of another command' 'list: takes no --grid' "$ETALON_SIM" list --grid 1 x
expect 0 'the checks' 'lds-race' "$ETALON_SIM" run --check list

for arch in gfx950 gfx1250; do
    object=$ETALON_SIM_KERNELS/runtime_$arch.co
    other=$ETALON_SIM_KERNELS/runtime_gfx950.co
    [ "$arch" = gfx950 ] && other=$ETALON_SIM_KERNELS/runtime_gfx1250.co

    # saxpy GRID BLOCK ARGUMENT...: y = 2 x + y with n = 1000, x = 0, 1, 2 ..., y = 1
    saxpy() {
        "$ETALON_SIM" run "$object" --kernel saxpy --grid "$1" --block "$2" --arg f32:2 --arg u32:1000 \
            --arg buf:x:4000=ramp:f32 --arg buf:y:4000=f32:1 --print y:f32:1000
    }

    expect 0 "$arch: list" 'global_buffer    x' "$ETALON_SIM" list "$object"
    expect 0 "$arch: list names six kernels" '"kernel":"plain"' "$ETALON_SIM" list --json "$object"
    expect 0 "$arch: disasm" v_fmac_f32 "$ETALON_SIM" disasm "$object" --kernel saxpy
    expect 0 "$arch: disasm of all" s_branch "$ETALON_SIM" disasm "$object"
    expect 2 "$arch: disasm of none" 'no kernel is named "sbxpy"' "$ETALON_SIM" disasm "$object" --kernel sbxpy

    # The sizes of a workgroup reach the kernel as a hidden argument.
    awk 'BEGIN { printf "y:"; for (i = 0; i < 1000; i++) printf " %d", 2 * i + 1; print "" }' >"$dir/want"
    for shape in '4 256' '16 64' '8,1,1 128,1' '0x20 0x20'; do
        expect 0 "$arch: saxpy, $shape" '' saxpy "${shape% *}" "${shape#* }"
        silent "$arch: saxpy, $shape, says nothing"
        if cmp -s "$dir/stdout" "$dir/want"; then
            ok "$arch: saxpy, $shape, has the right numbers"
        else
            not_ok "$arch: saxpy, $shape, has the right numbers" "$(head -c 300 "$dir/stdout")"
        fi
    done

    # Files in and out; references to buffers, with an offset; y[1..] = 3 x[0..] + y[1..]
    printf '\000\000\200\077\000\000\000\100\000\000\100\100\000\000\200\100' >"$dir/four" # 1, 2, 3, 4
    expect 0 "$arch: a buffer from a file, an offset" 'b: 1 5 9 13' \
        "$ETALON_SIM" run "$object" --kernel saxpy --grid 1 --block 64 --arg f32:3 --arg u32:3 \
        --arg buf:b:16=file:"$dir/four" --arg buf:b+4 --print b:f32 --out b="$dir/b" --threads 1
    printf '\000\000\200\077\000\000\240\100\000\000\020\101\000\000\120\101' >"$dir/want" # 1, 5, 9, 13
    if cmp -s "$dir/b" "$dir/want"; then
        ok "$arch: a buffer to a file"
    else
        not_ok "$arch: a buffer to a file" "$(od -f "$dir/b")"
    fi

    # Findings
    early() {
        "$ETALON_SIM" run "$object" --kernel saxpy_early --grid 4 --block 256 --arg f32:2 --arg u32:1000 \
            --arg buf:x:4000=random:7:f32 --arg buf:y:4000=random:8:f32 "$@"
    }
    expect 1 "$arch: a wait that is too weak" 'saxpy_early' early
    expect 1 "$arch: its instruction" 'v_fmac_f32' early --check wait
    expect 0 "$arch: not looked for" '' early --check none
    expect 0 "$arch: left out" '' early --check all,-wait
    expect 1 "$arch: in JSON" '"check":"wait","kernel":"saxpy_early"' early --json
    expect 1 "$arch: in other orders, once" '"check":"wait"' early --json --check wait --schedules 4 --seed 5
    if [ "$(grep -c fmac "$dir/stdout")" -eq 1 ]; then
        ok "$arch: one line for four"
    else
        not_ok "$arch: one line for four" "$(cat "$dir/stdout")"
    fi
    expect 1 "$arch: memory that nobody wrote" uninitialised "$ETALON_SIM" run "$object" --kernel saxpy --grid 4 \
        --block 256 --arg f32:2 --arg u32:1000 --arg buf:x:4000=ramp:f32 --arg buf:y:4000
    expect 1 "$arch: a buffer too small" '`y`' "$ETALON_SIM" run "$object" --kernel saxpy --grid 4 --block 256 \
        --arg f32:2 --arg u32:1000 --arg buf:x:4000=zero --arg buf:y:3996=zero --check bounds
    expect 0 "$arch: dynamic LDS" 'p: 0 1 2 3' "$ETALON_SIM" run "$object" --kernel dynamic --grid 1 --block 64 \
        --arg buf:p:256 --lds 256 --print p:u32:4
    expect 1 "$arch: no LDS at all" lds-bounds "$ETALON_SIM" run "$object" --kernel dynamic --grid 1 --block 64 \
        --arg buf:p:256
    expect 1 "$arch: no end" deadlock "$ETALON_SIM" run "$object" --kernel spin --grid 1 --block 64 --limit 1000
    expect 0 "$arch: an estimate" 'estimate, not a measurement' "$ETALON_SIM" report "$object" --kernel stamp \
        --grid 1 --block 64 --arg buf:p:8=zero --arg u32:1 --per-pc

    # Arguments
    run() {
        "$ETALON_SIM" run "$object" --grid 1 --block 64 "$@"
    }
    expect 0 "$arch: without metadata" 'p: 12648430' run --kernel plain --arg buf:p:4 --arg u32:0xC0FFEE --print p:u32:1
    expect 0 "$arch: bytes" 'p: 7.5' run --kernel plain --arg buf:p:4 --arg hex:0000f040 --print p:f32:1
    expect 2 "$arch: without metadata, too few" 'takes 12 bytes of arguments, 8 are given' \
        run --kernel plain --arg buf:p:4
    expect 2 "$arch: without metadata, too many" 'ends at byte 16' run --kernel plain --arg buf:p:4 --arg u64:1
    expect 2 "$arch: too few" 'takes 2 arguments, 1 are given' run --kernel stamp --arg buf:p:8
    expect 2 "$arch: too wide" '8 bytes, argument 1 of stamp (value, by_value) takes 4' \
        run --kernel stamp --arg buf:p:8 --arg u64:1
    for bad in u32 u32: u32:x u32:-1 u32:4294967296 i8:128 i8:-129 f32:1.0.0 f16:1 hex: hex:0 hex:0g 7 'u32:1 '; do
        expect 2 "$arch: --arg '$bad'" "--arg $bad: expected" run --kernel stamp --arg buf:p:8 --arg "$bad"
    done
    for bad in buf: buf:p buf::8 buf:p: buf:p:0 buf:p:-8 buf:p:8q buf:p:8=what buf:p:8=ramp:f16 buf:p:7=ramp:f32 \
        buf:p:8=random:x buf:p:8=random:1:f16 buf:p:8=f32:x buf:p+4 buf:p:99999999999G; do
        expect 2 "$arch: --arg '$bad'" "--arg $bad: " run --kernel stamp --arg "$bad" --arg u32:1
    done
    expect 2 "$arch: a name twice" 'with a new name' run --kernel stamp --arg buf:p:8 --arg buf:p:8
    expect 2 "$arch: a file that is not there" "$dir/none" run --kernel stamp --arg buf:p:8=file:"$dir/none" --arg u32:1
    expect 2 "$arch: a file of another size" '16 bytes, expected the 8 of buffer p' \
        run --kernel stamp --arg buf:p:8=file:"$dir/four" --arg u32:1
    expect 2 "$arch: an unknown buffer to write" '--out q' \
        run --kernel stamp --arg buf:p:8=zero --arg u32:1 --out q="$dir/q"
    expect 2 "$arch: an unknown type to print" '--print p:f8' \
        run --kernel stamp --arg buf:p:8=zero --arg u32:1 --print p:f8
    expect 2 "$arch: a directory to write to" "$dir: " \
        run --kernel stamp --arg buf:p:8=zero --arg u32:1 --out p="$dir"

    # Launches
    expect 2 "$arch: no grid" '--grid and --block are missing' "$ETALON_SIM" run "$object" --kernel spin
    for bad in 0 x 1,0 1,2,3,4 '1,' ',1' -1 4294967296 ''; do
        expect 2 "$arch: --grid '$bad'" "--grid: \"$bad\"" "$ETALON_SIM" run "$object" --grid "$bad" --block 64
    done
    expect 2 "$arch: too many work-items" 'more than 2^32 - 1' \
        "$ETALON_SIM" run "$object" --kernel spin --grid 4294967295 --block 64
    expect 2 "$arch: a large block" stamp "$ETALON_SIM" run "$object" --kernel stamp --grid 1 --block 128 \
        --arg buf:p:8=zero --arg u32:1
    expect 2 "$arch: several kernels" 'has 6 kernels: say which' run --arg u32:1
    expect 2 "$arch: an unknown kernel" 'no kernel is named "stump"' run --kernel stump
    expect 2 "$arch: an unknown check" 'unknown check "speed"' run --kernel spin --check speed
    expect 2 "$arch: no schedule" '--schedules: "0"' run --kernel spin --schedules 0

    # Objects
    expect 2 "$arch: another arch" "$arch" "$ETALON_SIM" list "$other" --arch $arch
    expect 2 "$arch: an unknown arch" 'gfx90a' "$ETALON_SIM" list "$object" --arch gfx90a
    head -c 700 "$object" >"$dir/cut"
    expect 2 "$arch: half an object" "$dir/cut" "$ETALON_SIM" list "$dir/cut"
done

expect 2 'no such file' 'No such file' "$ETALON_SIM" list "$dir/none"
expect 2 'an empty file' "$dir/empty" sh -c ': >"$2/empty"; "$1" list "$2/empty"' sh "$ETALON_SIM" "$dir"
expect 2 'a text' "$dir/text" sh -c 'echo text >"$2/text"; "$1" list "$2/text"' sh "$ETALON_SIM" "$dir"
expect 2 'a program of the host' 'expected AMDGPU' "$ETALON_SIM" list "$(command -v sh)"
expect 2 'a directory' "$dir" "$ETALON_SIM" list "$dir"

finish
