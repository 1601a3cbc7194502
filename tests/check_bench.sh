# The benchmark runs: every kernel that serves a tiny problem gives one line with all keys. No time is judged.
. "$top_srcdir/tests/tap.sh"
bench=$top_builddir/bench/bench

dir=$(mktemp -d "${TMPDIR:-/tmp}/etalon-bench.XXXXXX") || exit 99
trap 'rm -rf "$dir"' EXIT INT TERM

keys="op shape kernel threads median_ms spread gflops peak_fraction peak_fraction_spread vs_sgemm vs_ref vs_ref_scaled runs min_ms
max_ms scaling
kv_gbs vs_decode decode_ms isa peak_gflops sgemm_gflops sgemm pairs flops workspace_bytes memory_bytes device route
buffers buffer_bytes"

# quick ARGUMENT...: one round over small matrices; what it says of kernels that it leaves out goes to stderr.
quick() {
    "$bench" --repeat 1 --seconds 0 --gemm 64 "$@" >"$dir/stdout" 2>"$dir/stderr"
}

check_bad() { # WHAT WORDS ARGUMENT...
    what=$1 words=$2
    shift 2
    quick "$@"
    code=$?
    if [ $code -eq 2 ] && grep -qF -e "$words" "$dir/stderr"; then
        ok "$what"
    else
        not_ok "$what" "exit $code, expected 2 and \"$words\": $(cat "$dir/stderr")"
    fi
}

missing_keys() { # LINE
    for key in $keys; do
        case $1 in
        *"\"$key\":"*) ;;
        *) printf ' %s' "$key" ;;
        esac
    done
}

# Rows of the operation's table that this machine has: all that `bench --list` does not refuse for want of a feature.
rows_here() {
    "$bench" --list | awk -v op="$1" '$1 == "kernel" && $2 == op && ($4 == "yes" || $5 == "by") { print $3 }'
}

check_op() { # OP SHAPE
    if ! quick --json --kernel all --op "$1" --shape "$2"; then
        not_ok "$1: every kernel runs" "$(cat "$dir/stderr")"
        return
    fi
    for kernel in $(rows_here "$1"); do
        line=$(grep -F "\"kernel\":\"$kernel\"" "$dir/stdout")
        absent=$(missing_keys "$line")
        if [ -z "$line" ]; then
            not_ok "$kernel: one line" "it has none: $(cat "$dir/stderr")"
        elif [ -n "$absent" ]; then
            not_ok "$kernel: all keys" "missing:$absent in $line"
        else
            ok "$kernel: one line with all keys"
        fi
    done
    python=$(command -v "${ETALON_PYTHON:-python3}")
    if [ -z "$python" ]; then
        skip "$1: every line is JSON" "there is no python3"
    elif message=$("$python" -c 'import json, sys
for line in sys.stdin:
    row = json.loads(line)
    assert row["op"] == sys.argv[1] and row["threads"] >= 1 and row["median_ms"] > 0 and row["flops"] > 0, line' \
        "$1" <"$dir/stdout" 2>&1); then
        ok "$1: every line is JSON"
    else
        not_ok "$1: every line is JSON" "$message"
    fi
}

"$bench" --list >"$dir/list" && grep -q '^shape  *pa_mtp  *1x35k-gqa16  *default' "$dir/list" &&
    grep -q '^kernel  *mqa_logits  *mqa_logits_ref ' "$dir/list" && ok '--list' || not_ok '--list' "$(cat "$dir/list")"

check_op pa_mtp batch=2,ctx=40,pattern=page-shuffle
check_op fmha_varlen batch=2,q_len=5,ctx=33,causal=1
check_op mqa_logits m=3,n=40,pattern=causal
check_op mqa_logits_paged batch=2,next_n=3,ctx=70,heads=4,pattern=page-shuffle

# The pairs that are counted: 2 sequences of 4 rows and 16 heads, of which row i sees 37 + i keys.
quick --json --kernel pa_mtp_ref --op pa_mtp --shape batch=2,ctx=40
if grep -q '"pairs":4928\.0,"flops":5046272\.0,' "$dir/stdout"; then
    ok "visible pairs of pa_mtp"
else
    not_ok "visible pairs of pa_mtp" "expected 2 * 16 * (37 + 38 + 39 + 40) = 4928, times 2 (256 + 256): $(cat "$dir/stdout")"
fi

# 2 sequences of 3 rows, of which row t sees 68 + t keys.
quick --json --kernel mqa_logits_paged_ref --op mqa_logits_paged --shape batch=2,next_n=3,ctx=70,heads=4
if grep -q '"pairs":414\.0,"flops":423936\.0,' "$dir/stdout"; then
    ok "visible pairs of mqa_logits_paged"
else
    not_ok "visible pairs of mqa_logits_paged" "expected 2 * (68 + 69 + 70) = 414, times 2 * 4 * 128: $(cat "$dir/stdout")"
fi

if quick --kernel mqa_logits_ref --op mqa_logits --shape m=3,n=40 && [ "$(grep -cv '^#' "$dir/stdout")" -eq 1 ]; then
    ok "a table for readers"
else
    not_ok "a table for readers" "$(cat "$dir/stdout" "$dir/stderr")"
fi

quick --json --ref-seconds 0 --op mqa_logits --shape m=3,n=40
if grep -F '"mqa_logits_ref"' "$dir/stdout" | grep -F '"runs":0' | grep -qF '"vs_ref_scaled":true'; then
    ok "a reference that was scaled says so"
else
    not_ok "a reference that was scaled says so" "$(cat "$dir/stdout" "$dir/stderr")"
fi

check_bad 'unknown operation' '--op: "pa"' --op pa
check_bad 'unknown kernel' '"pa_mtp_fast" is no kernel' --kernel pa_mtp_fast
check_bad 'unknown shape' 'is no shape of pa_mtp' --op pa_mtp --shape 9x9
check_bad 'unknown shape of any operation' 'see --list' --shape 9x9
check_bad 'unknown key' 'shape: key "b" is unknown' --op pa_mtp --shape b=1
check_bad 'a shape of no operation' 'expected one --op' --shape batch=1
check_bad 'repeat of nothing' '--repeat: "0"' --repeat 0
check_bad 'threads that are no number' '--threads: "x"' --threads 1,x
finish
