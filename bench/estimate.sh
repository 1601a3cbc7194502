#!/bin/sh
# What the simulator's counters say of the kernels for one architecture: a row a problem, microseconds of each unit as
# `etalon-sim` estimates them (doc/SIMULATOR.md), all kernels of a call added up. No measurement.
#   ETALON        tools/etalon
#   SIM_RUNTIME   where the simulator's stand-ins for libhsa-runtime64.so and libamdhip64.so are
set -eu
if [ ! -e "$SIM_RUNTIME/libhsa-runtime64.so" ]; then
    echo 'bench-sim: this build has no simulator' >&2
    exit 1
fi
work=$(mktemp -d "${TMPDIR:-/tmp}/etalon-estimate.XXXXXX")
trap 'rm -rf "$work"' EXIT

# The last LAUNCHES reports are the call's; those before them are of the known answers that qualify the kernel.
summary='
/^etalon_.* on gfx/ { n++ }
/^estimate, / { sub(/.*bound by /, ""); bound[n] = $0 }
/^  [a-zA-Z, ]+ +[0-9.]+ us$/ {
    time = $(NF - 1); name = $0; sub(/^ +/, "", name); sub(/ +[0-9.]+ us$/, "", name); unit[n, name] = time
    if (time > most[n]) most[n] = time
}
END {
    if (n < launches) exit 1
    for (i = n - launches + 1; i <= n; i++) {
        matrix += unit[i, "matrix unit"]; valu += unit[i, "VALU"]; lds += unit[i, "LDS"]
        memory += unit[i, "memory bandwidth"]; latency += unit[i, "latency, by bytes in flight"]; all += most[i]
        if (most[i] > most[by]) by = i
    }
    printf "%-12s %-22s %-42s %9.2f %9.2f %9.2f %9.2f %9.2f %9.2f  %s\n", op, shape, kernel, matrix, valu, lds, memory,
           latency, all, bound[by]
}'

estimate() { # OP SHAPE LAUNCHES KERNEL GEN_ARGUMENT...
    op=$1 shape=$2 launches=$3 kernel=$4 set=
    shift 4
    [ "$op" != fmha_varlen ] || set='--set out_dtype=bf16'
    "$ETALON" gen "$op" "$@" -o "$work/in.safetensors"
    if ! LD_LIBRARY_PATH=$SIM_RUNTIME${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} ETALON_SIM_ARCH=${kernel##*_} \
        ETALON_SIM_DEVICES=1 ETALON_SIM_CHECK=none ETALON_SIM_COUNTERS=1 \
        "$ETALON" run --device 0 --kernel "$kernel" $set "$work/in.safetensors" -o "$work/out.safetensors" >"$work/report" 2>&1; then
        tail -n 3 "$work/report" >&2
        exit 1
    fi
    awk -v op="$op" -v shape="$shape" -v kernel="$kernel" -v launches="$launches" "$summary" "$work/report"
}

printf '%-12s %-22s %-42s %9s %9s %9s %9s %9s %9s  %s\n' op shape kernel matrix VALU LDS memory latency 'sum, us' 'bound by'
for heads in 16 8 4; do
    estimate pa_mtp "1x35k q4 Hq$heads" 3 pa_mtp_e4m3_d256_gqa${heads}_page16_gfx950 \
        --shape batch=1,ctx=35000,q_len=4,dim=256,heads=$heads
done
estimate pa_mtp '16x2k q4 Hq16' 3 pa_mtp_e4m3_d256_gqa16_page16_gfx950 --shape batch=16,ctx=2048,q_len=4,dim=256
for heads in 32 64; do
    estimate mqa_logits "256x8k H$heads causal" 1 mqa_logits_e4m3_h${heads}_d128_gfx950 \
        --shape m=256,n=8192,heads=$heads --pattern causal
    estimate mqa_logits "8x8k H$heads causal" 1 mqa_logits_e4m3_h${heads}_d128_small_gfx950 \
        --shape m=8,n=8192,heads=$heads --pattern causal
done
for mask in 0 1; do
    kernel=fmha_varlen_e4m3_d192x128_gfx1250
    [ $mask = 0 ] || kernel=fmha_varlen_e4m3_d192x128_causal_gfx1250
    estimate fmha_varlen "1x1k H8 causal=$mask" 1 $kernel \
        --shape batch=1,q_len=1024,ctx=1024,heads=8,kv_heads=8,causal=$mask
done
