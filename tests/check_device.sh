#!/bin/sh
# The programs' --device on simulated GPUs: etalon, bench, and xcheck over the rows of devices and over kernels that are
# broken on purpose. ETALON_SEED draws other cases for the rows.
. "${top_srcdir:-.}/tests/tap.sh"
. "$top_srcdir/tests/devices.sh"
devices_set_up device
xcheck=$top_builddir/tests/xcheck bench=$top_builddir/bench/bench
seed=20261129

# expect CODE WHAT PATTERN COMMAND...: the exit status, and a line on either stream (none if PATTERN is empty).
expect() {
    code=$1 what=$2 pattern=$3
    shift 3
    "$@"
    got=$?
    if [ $got -ne "$code" ]; then
        not_ok "$what" "exit $got, expected $code
$(cat "$dir/err" "$dir/out")"
    elif [ -n "$pattern" ] && ! grep -q -e "$pattern" "$dir/out" "$dir/err"; then
        not_ok "$what" "no line matches $pattern
$(cat "$dir/err" "$dir/out")"
    else
        ok "$what"
    fi
}

# etalon
# ------
vector=$ETALON_VECTORS/mqa_logits-multi_req.safetensors
for arch in gfx950 gfx1250; do
    # Those of one architecture are there on that alone: all that the build has of it, whose objects say so, too.
    expect 0 "all rows, $arch" '^mqa_logits  *mqa_logits_omp  *yes  *a device$' on_all $arch "$ETALON" list --device 0
    cp "$dir/out" "$dir/all"
    own=$(grep -c " yes  *a $arch device" "$dir/all")
    objects=$(clean "$ETALON" list --objects; grep -c "_$arch  *$arch " "$dir/out")
    if [ "$own" -eq "$(grep -c "  a $arch device" "$dir/all")" ] && [ "$own" -le "$objects" ] &&
        ! grep ' yes ' "$dir/all" | grep '  a gfx[0-9]* device' | grep -vq "  a $arch device"; then
        ok "rows of $arch alone: $own"
    else
        not_ok "rows of $arch alone" "$own of them, $objects objects
$(cat "$dir/all")"
    fi
    expect 0 "list, $arch" '^mqa_logits  *mqa_logits_omp  *yes  *a device$' on $arch "$ETALON" list --device 0
    expect 0 "list --json, $arch" '"kernel":"pa_mtp_omp","needs":"a device","available":true,"reason":null}$' \
        on $arch "$ETALON" list --device 0 --json
    expect 0 "explain, $arch" '^fmha_varlen_omp  *taken$' on $arch "$ETALON" explain --device 0 fmha_varlen
    expect 0 "check, $arch" 'mqa_logits_omp .* PASS' on $arch "$ETALON" check --device 0 "$vector"
    expect 0 "run, $arch" '' on $arch "$ETALON" run --device 0 "$vector" -o "$dir/result"
    expect 0 "what run wrote, $arch" '^1 passed, 0 failed' clean "$ETALON" compare --got logits --ref expected_logits \
        --tolerance-abs 1e-3 --tolerance-rel 1e-5 "$dir/result" "$vector"
done
expect 0 'a row that does not qualify says why' 'mqa_logits_omp  *no  *a device: not qualified: HSA: ' \
    on gfx950 ETALON_SIM_EXIT=0 ETALON_SIM_LIMIT=100 "$ETALON" list --device 0
expect 0 'a row without a device says why' 'mqa_logits_omp  *no  *a device: the context has no device' \
    clean "$ETALON" list
for command in list explain check run; do
    case $command in
    list) arguments= ;;
    explain) arguments=mqa_logits ;;
    check) arguments=$vector ;;
    run) arguments="$vector -o $dir/result" ;;
    esac
    # shellcheck disable=SC2086 # words
    expect 2 "$command without a GPU" 'device 0: OpenMP sees 0 ' clean "$ETALON" $command --device 0 $arguments
    # shellcheck disable=SC2086 # words
    expect 2 "$command with a device that is no number" '--device: "x", expected a number' \
        clean "$ETALON" $command --device x $arguments
done
expect 2 'a negative device' '--device: -1, expected 0 or more' clean "$ETALON" list --device -1
expect 2 'a device too many' 'device 1: OpenMP sees 1 ' on gfx950 "$ETALON" list --device 1

# bench
# -----
keys='"kv_gbs":[0-9.e-]*,.*"isa":"gfx[0-9]*",.*"device":0,"route":"ROUTE","buffers":[0-9]*,"buffer_bytes":[0-9]*}$'
timed() { # ROUTE OP SHAPE ARGUMENT...
    route=$1 op=$2 shape=$3
    shift 3
    expect 0 "bench of $op, $route" "\"op\":\"$op\",.*\"kernel\":\"${op}_omp\",.*$(echo "$keys" |
        sed "s/ROUTE/$route/")" on gfx950 "$bench" --device 0 --json --repeat 1 --seconds 0 --op "$op" --shape "$shape" "$@"
}
timed device pa_mtp batch=2,ctx=40,pattern=page-shuffle --rotate 0
timed stream pa_mtp batch=1,ctx=40 --rotate 0 --stream
timed device fmha_varlen batch=2,q_len=5,ctx=33,causal=1 --rotate 0
timed device mqa_logits_paged batch=2,ctx=40,heads=4,pattern=page-shuffle --rotate 0
timed device mqa_logits m=3,n=40,pattern=causal --rotate 0.1
# 0.1 MiB of 40 keys of 128 bytes and 3 x 40 logits, 5.6 KB, and one more
if grep -q '"buffers":20,' "$dir/out"; then
    ok 'buffers rotate'
else
    not_ok 'buffers rotate' "$(cat "$dir/out")"
fi
timed stream mqa_logits m=3,n=40,pattern=causal --rotate 0.1 --stream
expect 0 'a table for readers' '^mqa_logits .* gfx1250 ' on gfx1250 "$bench" --device 0 --repeat 1 --seconds 0 \
    --rotate 0 --op mqa_logits --shape m=3,n=40
expect 2 'bench with a row of the host' 'mqa_logits_ref: the tensors are not in host memory' on gfx950 "$bench" \
    --device 0 --op mqa_logits --shape m=3,n=4 --kernel mqa_logits_ref
expect 2 'bench without a GPU' 'device 0: OpenMP sees 0 ' clean "$bench" --device 0
expect 2 'a stream without a device' '--stream: expected --device' clean "$bench" --stream
expect 2 'threads beside a device' '--threads: ' on gfx950 "$bench" --device 0 --threads 1,2
expect 2 'bench with a device that is no number' '--device: "x"' clean "$bench" --device x

# xcheck: rows
# ------------
# every_row WHAT ROWS CODE: of the last command, by every route, on some cases each.
every_row() {
    routes=$(grep -c ': [1-9][0-9]* passed, [0-9]* refused, 0 failed' "$dir/out")
    if [ "$3" -eq 0 ] && [ "$2" -gt 0 ] && [ "$routes" -eq $((3 * $2)) ]; then
        ok "$1: $2, by 3 routes each"
    else
        not_ok "$1" "exit $3, $routes of $((3 * $2)) lines
$(cat "$dir/err" "$dir/out")"
    fi
    sed -n -e '/^# [a-z]/p' -e '/ passed, .* failed/s/^/# /p' "$dir/out"
}

# check_rows ARCH SCHEDULE OP CASES: rows of all architectures. The simulator is slow: some seconds, by small cases; with
# a sanitizer it is ten times slower.
largest=500000
has_sanitizer && largest=100000
check_rows() {
    rows=$("$ETALON" list | grep -c "^$3 .*  a device")
    on "$1" ETALON_SIM_SEED="$2" "$xcheck" --device 0 --op "$3" --cases "$4" --largest $largest
    every_row "rows of $3 on $1, schedule $2" "$rows" $?
}

# check_own_rows ARCH SCHEDULE: those of this one alone, of each operation that has some. What they serve is larger, and a
# call of mqa_logits takes seconds.
check_own_rows() {
    ops=$("$ETALON" list | sed -n "s/^\([a-z_]*\) .*  a $1 device.*/\1/p" | sort -u)
    for op in $ops; do
        if has_sanitizer; then
            skip "rows of $op for $1 alone" 'a sanitizer is on'
            continue
        fi
        rows=$("$ETALON" list | grep -c "^$op .*  a $1 device") cases=32
        [ "$op" = mqa_logits ] && cases=16
        on_all "$1" ETALON_SIM_SEED="$2" "$xcheck" --device 0 --kernel "$1" --op "$op" --cases $cases --largest 6000000
        every_row "rows of $op for $1 alone, schedule $2" "$rows" $?
    done
    [ -n "$ops" ] || skip "rows for $1 alone" 'there is none'
}
check_rows gfx950 0 mqa_logits 30
check_rows gfx950 3 mqa_logits_paged 16
check_rows gfx950 2 pa_mtp 18
check_rows gfx950 1 fmha_varlen 38
check_rows gfx1250 3 mqa_logits 30
check_rows gfx1250 1 mqa_logits_paged 16
check_rows gfx1250 0 pa_mtp 18
check_rows gfx1250 6 fmha_varlen 38
check_own_rows gfx950 5
check_own_rows gfx1250 7
expect 2 'xcheck without a GPU' 'device 0: OpenMP sees 0 ' clean "$xcheck" --device 0
expect 2 'a route without a device' '--route and --largest are for --device' clean "$xcheck" --route stream
expect 2 'an unknown route' 'not a value' clean "$xcheck" --device 0 --route boat
expect 1 'a device that fails costs a call, and no more' 'mqa_logits_omp on a stream: 0 passed, 0 refused, 1 failed' \
    on gfx950 ETALON_SIM_LIMIT=100 "$xcheck" --device 0 --op mqa_logits --seed $seed --case 0

# xcheck: broken kernels
# ----------------------
# A simulated device has half of the machine's memory, and tensors of 5 GiB may not fit.
small=$(awk '/^MemTotal/ && $2 < 11 * 1048576 { print "this machine has " $2 " KiB of memory" }' /proc/meminfo)
check_broken() { # ARCH ARGUMENT...
    arch=$1
    shift
    on "$arch" "$xcheck" --device 0 --kernel broken --seed $seed --cases 52 --largest 1000000 "$@"
    code=$?
    if [ -n "$small" ] && [ $code -eq 1 ] && grep -q '_sound: .* 0 failed$' "$dir/out" &&
        [ "$(grep -c 'NOT CAUGHT' "$dir/out")" -eq "$(grep -c '_32_bit: NOT CAUGHT' "$dir/out")" ]; then
        skip "broken kernels of $arch whose addresses wrap" "$small"
        code=0
    fi
    if [ $code -eq 0 ]; then
        ok "every broken kernel of $arch is caught, and the sound one passes"
    else
        not_ok "every broken kernel of $arch is caught, and the sound one passes" "exit $code
$(cat "$dir/err" "$dir/out")"
    fi
    sed -n 's/^\(broken_.*: caught\)/# \1/p' "$dir/out"
}
if [ $largest -lt 500000 ]; then
    skip 'broken kernels' 'a sanitizer is on'
    finish
fi
check_broken gfx950
caught=$(grep -c '^broken_.*: caught in case' "$dir/out")
if [ "$caught" -ge 8 ]; then
    ok "$caught broken kernels"
else
    not_ok 'at least 8 broken kernels' "$caught were caught"
fi
check_broken gfx1250 --op mqa_logits

# A failure tells as much as one on the host does.
on gfx950 "$xcheck" --device 0 --kernel broken_mqa_logits_omp_kv_scale --seed $seed --case 0
cp "$dir/out" "$dir/report"
for pattern in 'first \[.*\]: got .*, expected .* within .*, off by .*, [0-9]* ulp$' '^    want .*\[.*\]' \
    '^  pattern: ' '^  replay: \./xcheck --op mqa_logits --kernel .* --device 0 --route device$'; do
    expect 0 "a report has $pattern" "$pattern" cp "$dir/report" "$dir/out"
done
replay=$(sed -n 's|^  replay: \./xcheck ||p' "$dir/report" | head -n 1)
# shellcheck disable=SC2086 # options, one a word
on gfx950 "$xcheck" $replay
if cmp -s "$dir/out" "$dir/report"; then
    ok 'the replay line gives the same report'
else
    not_ok 'the replay line gives the same report' "$(diff "$dir/out" "$dir/report")"
fi
finish
