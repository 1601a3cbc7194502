#!/bin/sh
# Every mutant of the simulator's test kernels and of the library's in assembly shows, or stands in the list of
# equivalents: much work, so `make check-mutants` runs it and `make check` does not.
#   AMDGCN_CC    clang with the AMDGPU target (clang-22)
#   AMD_FLAGS    of a kernel in HIP, as the build compiles it
#   SIM_KERNELS  the driver, tests/check_sim_kernels
#   MUTANTS      all: of the library's large kernels, too (make check-mutants-long)
. "${top_srcdir:-.}/tests/tap.sh"

AMDGCN_CC=${AMDGCN_CC:-clang-22}
SIM_KERNELS=${SIM_KERNELS:-tests/check_sim_kernels}
PYTHON=${PYTHON:-python3}
top_builddir=${top_builddir:-.}
command -v "$AMDGCN_CC" >/dev/null 2>&1 || skip_all "no $AMDGCN_CC"
command -v "$PYTHON" >/dev/null 2>&1 || skip_all "no $PYTHON"
[ -x "$SIM_KERNELS" ] || skip_all "no $SIM_KERNELS: the simulator is not built"

work=$(mktemp -d "${TMPDIR:-/tmp}/etalon-mutants.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT

# mutants NAME_ARCH [SYMBOL]
mutants() {
    name=$1${2:+:$2}
    if out=$("$PYTHON" "$top_srcdir/tests/mutate.py" --clang "$AMDGCN_CC" --quiet ${2:+--symbol "$2"} \
        --include "$top_srcdir/asm" --equivalent "$top_srcdir/tests/sim/mutants-equivalent.txt" "$top_srcdir/tests/sim/$1.s" \
        "$SIM_KERNELS" "$name" 2>&1); then
        ok "$(printf '%s\n' "$out" | tail -n 1)"
    else
        not_ok "$name" "$out"
    fi
}

for arch in gfx950 gfx1250; do
    mutants gemm_e4m3_$arch
    mutants scan_u32_$arch
    for symbol in saxpy reduce flag; do
        mutants run_$arch $symbol
    done
done
mutants run_gfx1250 named

# library STEM SAMPLE [KINDS]: a kernel of the library, whose driver is the test program check_<op>_<arch>
library() {
    arch=${1##*_}
    driver=$top_builddir/tests/check_$(echo "$1" | sed -E 's/^(pa_mtp|fmha_varlen|mqa_logits)_.*_([a-z0-9]+)$/\1_\2/')
    if [ ! -x "$driver" ]; then
        skip "$1" "no $driver"
        return
    fi
    text=$top_srcdir/asm/$arch/$1.s
    if [ ! -f "$text" ]; then
        text=$work/$1.s
        # shellcheck disable=SC2086 # flags are words
        if ! out=$("$AMDGCN_CC" $AMD_FLAGS --offload-arch="$arch" -S "$top_srcdir/hip/$1.hip" -o "$text" 2>&1); then
            not_ok "$1 is compiled" "$out"
            return
        fi
    fi
    if out=$("$PYTHON" "$top_srcdir/tests/mutate.py" --clang "$AMDGCN_CC" --quiet --sample "$2" ${3:+--kinds "$3"} \
        --include "$top_srcdir/asm" --include "$top_srcdir/hip" \
        --equivalent "$top_srcdir/tests/sim/mutants-equivalent.txt" "$text" "$driver" "$1" 2>&1); then
        ok "$(printf '%s\n' "$out" | tail -n 1)"
    else
        not_ok "$1" "$out"
    fi
}

library pa_mtp_reduce_d256_gfx950 0/1
# Hours: whole what keeps instructions in order and lanes apart, of the rest one in 40. What the compiler makes is
# another's with the next one: of that the order alone.
if [ "${MUTANTS:-}" = all ]; then
    order=waits,nops,barriers,m0_setups,lanes
    for stem in pa_mtp_e4m3_d256_gqa16_page16_gfx950 pa_mtp_e4m3_d256_gqa8_page16_gfx950 \
        pa_mtp_e4m3_d256_gqa4_page16_gfx950 fmha_varlen_e4m3_d192x128_causal_gfx1250 \
        fmha_varlen_e4m3_d192x128_gfx1250; do
        library $stem 0/1 $order
        library $stem 7/40 offsets,constants,formats,execs
    done
    library pa_mtp_plan_gfx950 0/1 $order
    for config in h32_d128 h32_d128_small h64_d128 h64_d128_small; do
        library mqa_logits_e4m3_${config}_gfx950 0/1 $order
    done
fi

finish
