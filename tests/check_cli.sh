#!/bin/sh
# The etalon program: exit codes, sentences about bad input, round trips, determinism, machine-readable output.
. "${top_srcdir:-.}/tests/tap.sh"

dir=$(mktemp -d "${TMPDIR:-/tmp}/etalon-cli.XXXXXX") || exit 99
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT INT TERM

# expect CODE WHAT WORDS COMMAND...: the exit code, and the words on either stream (none if WORDS is empty).
expect() {
    code=$1 what=$2 words=$3
    shift 3
    "$@" >"$dir/stdout" 2>"$dir/stderr"
    got=$?
    if [ "$got" -ne "$code" ]; then
        not_ok "$what" "exit $got, expected $code: $* $(cat "$dir/stderr")"
    elif [ -n "$words" ] && ! grep -qF -e "$words" "$dir/stdout" "$dir/stderr"; then
        not_ok "$what" "no \"$words\" in: $(cat "$dir/stdout" "$dir/stderr")"
    else
        ok "$what"
    fi
}

same_bytes() {
    if cmp -s "$2" "$3"; then
        ok "$1"
    else
        not_ok "$1" "$2 and $3 differ"
    fi
}

# gen NAME OP ...: a problem that the tests need.
gen() {
    name=$1
    shift
    "$ETALON" gen "$@" -o "$dir/$name" || not_ok "gen $*"
}

# u64 N: eight bytes, little endian.
u64() {
    n=$1
    for i in 1 2 3 4 5 6 7 8; do
        printf "\\$(printf %03o $((n % 256)))"
        n=$((n / 256))
    done
}

# tensors NAME HEADER [BYTES]: a safetensors file with that header and as many zero bytes.
tensors() {
    {
        u64 ${#2}
        printf %s "$2"
        head -c "${3:-0}" /dev/zero
    } >"$dir/$1"
}

# Usage
expect 0 '--version' 'etalon ' "$ETALON" --version
expect 0 '--help' 'usage: etalon' "$ETALON" --help
for command in check run compare gen list explain; do
    expect 0 "$command --help" "usage: etalon $command" "$ETALON" $command --help
    expect 2 "$command with an unknown option" '--help' "$ETALON" $command --no-such-option
done
expect 2 'no command' 'usage:' "$ETALON"
expect 2 'unknown command' 'no command is named "chek"' "$ETALON" chek
expect 2 'check without a file' 'no file' "$ETALON" check
expect 2 'run without -o' '-o OUT' "$ETALON" run "$dir/none"
expect 2 'compare with one file' 'expected two files' "$ETALON" compare "$dir/none"
expect 2 'gen without an operation' 'expected one operation' "$ETALON" gen -o "$dir/none"
expect 2 'gen without -o' 'no -o FILE' "$ETALON" gen pa_mtp
expect 2 'threads that are no number' '--threads: "many"' "$ETALON" list --threads many
expect 2 'negative threads' 'threads: -1' "$ETALON" list --threads -1
expect 2 'unknown tolerance' 'expected fp32 or fp8' "$ETALON" check --tolerance fp16 "$dir/none"
expect 2 'negative tolerance' 'not negative' "$ETALON" compare --tolerance-abs -1 a b
expect 2 'seed out of range' '--seed' "$ETALON" gen pa_mtp --seed 18446744073709551616 -o "$dir/none"

# The vectors
expect 0 'every vector passes' ', 0 failed' "$ETALON" check "$ETALON_VECTORS"/*.safetensors
expect 0 'a vector passes with every row' 'pa_mtp_model' \
    "$ETALON" check --kernel all "$ETALON_VECTORS/pa_mtp-ragged-gqa8.safetensors"
expect 0 'a named row' 'fmha_varlen_ref' "$ETALON" check --kernel fmha_varlen_ref \
    "$ETALON_VECTORS/fmha-v-ones.safetensors"
expect 2 'a row that is not there' 'no row is named "fmha_varlen_none"' \
    "$ETALON" check --kernel fmha_varlen_none "$ETALON_VECTORS/fmha-v-ones.safetensors"

# A wrong byte: the exponent of the last element of the last tensor in the file, which the sentence must name.
cp "$ETALON_VECTORS/real-mqa_logits.safetensors" "$dir/wrong"
chmod u+w "$dir/wrong"
size=$(wc -c <"$dir/wrong")
printf '\145' | dd of="$dir/wrong" bs=1 seek=$((size - 1 - 4 * 1499)) conv=notrunc 2>/dev/null
expect 1 'a wrong byte fails' 'logits[127, 0]' "$ETALON" check "$dir/wrong"
expect 2 'bad input wins over a difference' 'FAIL' "$ETALON" check "$dir/wrong" "$dir/none"
expect 2 'the files after a bad one are checked' '1 passed, 1 failed' "$ETALON" check "$dir/none" "$dir/wrong" \
    "$ETALON_VECTORS/fmha-v-ones.safetensors"

# Round trips, for every operation and pattern
for op in pa_mtp fmha_varlen mqa_logits mqa_logits_paged merge_states; do
    expect 0 "list of the patterns of $op" random "$ETALON" gen $op --pattern list
    expect 0 "list of the keys of $op" dim "$ETALON" gen $op --shape list
    for pattern in $("$ETALON" gen $op --pattern list | sed 's/ .*//'); do
        gen in $op --pattern "$pattern" --expected --seed 7
        expect 0 "$op $pattern passes" '1 passed, 0 failed' "$ETALON" check "$dir/in"
    done
    gen in $op --expected
    expect 0 "run $op" "" "$ETALON" run --kernel ${op}_ref "$dir/in" -o "$dir/out"
    out=out lse=lse
    case $op in
    mqa_logits*) out=logits lse=logits ;;
    esac
    expect 0 "run writes what gen expects of $op" '1 passed, 0 failed' \
        "$ETALON" compare --got $out --ref expected_$out "$dir/out" "$dir/in"
    expect 0 "and its lse, for $op" '1 passed, 0 failed' \
        "$ETALON" compare --got $lse --ref expected_$lse "$dir/out" "$dir/in"
    expect 0 "a result compared with itself, $op" ', 0 failed' "$ETALON" compare "$dir/out" "$dir/out"
    gen again $op --expected
    same_bytes "gen $op writes the same bytes twice" "$dir/in" "$dir/again"
    gen other $op --expected --seed 2
    if cmp -s "$dir/in" "$dir/other"; then
        not_ok "another seed, another problem, $op" "--seed 2 wrote the bytes of --seed 1"
    else
        ok "another seed, another problem, $op"
    fi
    expect 1 "two problems of $op differ" FAIL "$ETALON" compare "$dir/in" "$dir/other"
    for threads in 1 2 5; do
        "$ETALON" run --threads $threads "$dir/in" -o "$dir/out$threads"
    done
    same_bytes "run $op on 1 and 2 threads" "$dir/out1" "$dir/out2"
    same_bytes "run $op on 1 and 5 threads" "$dir/out1" "$dir/out5"
    expect 0 "explain $op" "${op}_ref" "$ETALON" explain $op
    expect 0 "explain a file of $op" taken "$ETALON" explain "$dir/in"
done

# Shapes that the defaults do not reach
for shape in layout=hnd,index=i64,page=7,kv_heads=2 dtype=e4m3fnuz,q_dtype=e4m3fnuz,descale=2 dtype=bf16,q_dtype=f32 \
    batch=0 q_len=0 ctx=0 window_left=5,causal=0,window_right=0 dim=1,v_dim=3,ctx=17; do
    gen in pa_mtp --shape $shape,ctx=40 --expected
    expect 0 "pa_mtp $shape" '1 passed, 0 failed' "$ETALON" check "$dir/in"
done
for shape in causal=1,index=i64 dtype=bf16 dtype=f32,descale=0 descale=2,dtype=e4m3fnuz batch=0 heads=6,kv_heads=3; do
    gen in fmha_varlen --shape $shape --expected
    expect 0 "fmha_varlen $shape" '1 passed, 0 failed' "$ETALON" check "$dir/in"
done
for shape in m=0 n=0 clean=0 dtype=e4m3fnuz,index=i64 heads=1,dim=1 max_seqlen_k=7 max_seqlen_k=300,clean=0; do
    gen in mqa_logits --shape $shape --pattern misaligned --expected
    expect 0 "mqa_logits $shape" '1 passed, 0 failed' "$ETALON" check "$dir/in"
done

for shape in batch=0 ctx=0 clean=0 next_n=1 next_n=8,ctx=5 dtype=e4m3fnuz,index=i64 heads=1,dim=1 page=1,dim=20 \
    max_context_len=7 max_context_len=300,clean=0 page=1072,q_dtype=e4m3fnuz; do
    gen in mqa_logits_paged --shape $shape --pattern page-shuffle --expected
    expect 0 "mqa_logits_paged $shape" '1 passed, 0 failed' "$ETALON" check "$dir/in"
done
expect 2 'a block whose scales are not aligned' 'shape page, dim: 1 x 5 bytes, expected a multiple of 4' \
    "$ETALON" gen mqa_logits_paged --shape page=1,dim=5 -o "$dir/none"
gen in mqa_logits_paged --shape clean=0 --expected
expect 2 'a negative width' 'max_context_len: -1, expected 0 or more' "$ETALON" check --set max_context_len=-1 "$dir/in"
expect 2 'another width, another shape' 'expected_logits: shape [8, 256], expected [8, 7]' "$ETALON" check --set max_context_len=7 "$dir/in"

# Output files are whole or as they were
gen in mqa_logits
echo precious >"$dir/kept"
cp "$dir/kept" "$dir/copy"
tensors truncated '{"q":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}' 3
expect 2 'run on a truncated file' "$dir/truncated" "$ETALON" run "$dir/truncated" -o "$dir/kept"
same_bytes 'a failed run leaves the output as it was' "$dir/kept" "$dir/copy"
expect 2 'gen with a wrong key' 'key "colour" is unknown to mqa_logits' \
    "$ETALON" gen mqa_logits --shape colour=1 -o "$dir/kept"
same_bytes 'a failed gen leaves the output as it was' "$dir/kept" "$dir/copy"
expect 2 'an output in no directory' "$dir/none/out" "$ETALON" run "$dir/in" -o "$dir/none/out"
mkdir "$dir/output"
"$ETALON" run "$dir/in" -o "$dir/output/out"
if [ "$(ls -A "$dir/output")" = out ]; then
    ok 'nothing is left beside the output'
else
    not_ok 'nothing is left beside the output' "$(ls -A "$dir/output")"
fi

# Bad input: one sentence with tensor, value and rule, exit 2
expect 2 'a file that is not there' 'No such file' "$ETALON" check "$dir/none"
expect 2 'truncated data' "$dir/truncated" "$ETALON" check "$dir/truncated"
{ u64 1000000; printf '{}'; } >"$dir/bad"
expect 2 'a header longer than the file' "$dir/bad" "$ETALON" check "$dir/bad"
{ u64 9223372036854775807; printf '{}'; } >"$dir/bad"
expect 2 'a header of 2^63 - 1 bytes' "$dir/bad" "$ETALON" check "$dir/bad"
printf 'abc' >"$dir/bad"
expect 2 'three bytes' "$dir/bad" "$ETALON" check "$dir/bad"
tensors bad '{"q":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},"k":{"dtype":"F32","shape":[4],"data_offsets":[8,24]}}' 24
expect 2 'overlapping offsets' "$dir/bad" "$ETALON" check "$dir/bad"
tensors bad '{"q":{"dtype":"F33","shape":[4],"data_offsets":[0,16]}}' 16
expect 2 'an unknown dtype' 'F33' "$ETALON" check "$dir/bad"
tensors bad '{"q":{"dtype":"F32","shape":[-4],"data_offsets":[0,16]}}' 16
expect 2 'a negative extent' '-4' "$ETALON" check "$dir/bad"
tensors bad '{"q":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,16]}}' 16
expect 2 'extents beyond 64 bits' 'q' "$ETALON" check "$dir/bad"
tensors bad '{"q":{"dtype":"F32",' 0
expect 2 'half a header' "$dir/bad" "$ETALON" check "$dir/bad"
tensors bad '{"q":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}' 16
expect 2 'no operation' 'metadata op: missing' "$ETALON" check "$dir/bad"
expect 2 'an unknown operation' 'op: "conv" is unknown' "$ETALON" check --op conv "$dir/bad"
expect 2 'a missing tensor' 'tensor k_cache is missing' "$ETALON" check --op pa_mtp "$dir/bad"
tensors bad '{"__metadata__":{"op":"sort"},"q":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}' 16
expect 2 'an unknown operation in the file' 'op: "sort" is unknown' "$ETALON" check "$dir/bad"
gen in mqa_logits
expect 2 'nothing to check' 'nothing to check' "$ETALON" check "$dir/in"
if [ "$(id -u)" -ne 0 ]; then
    cp "$dir/in" "$dir/unreadable"
    chmod 0 "$dir/unreadable"
    expect 2 'an unreadable file' 'Permission denied' "$ETALON" check "$dir/unreadable"
    mkdir "$dir/sealed"
    chmod 555 "$dir/sealed"
    expect 2 'an unwritable directory' 'Permission denied' "$ETALON" run "$dir/in" -o "$dir/sealed/out"
else
    skip 'an unreadable file' 'root reads everything'
    skip 'an unwritable directory' 'root writes everywhere'
fi
expect 2 'a directory as output' "$dir/output" "$ETALON" run "$dir/in" -o "$dir/output"

# fmha WORDS WHAT SED: a small fmha_varlen file, its header or metadata edited.
#   q, k [2, 2, 1], v [2, 2, 1], F32; cu_seqlens I32 [2]: {0, 2}
fmha() {
    header='{"__metadata__":{"op":"fmha_varlen","causal":"0"},"cu_seqlens_k":{"dtype":"I32","shape":[2],"data_offsets":[0,8]},"cu_seqlens_q":{"dtype":"I32","shape":[2],"data_offsets":[8,16]},"expected_out":{"dtype":"F32","shape":[2,2,1],"data_offsets":[16,32]},"k":{"dtype":"F32","shape":[2,2,1],"data_offsets":[32,48]},"q":{"dtype":"F32","shape":[2,2,1],"data_offsets":[48,64]},"v":{"dtype":"F32","shape":[2,2,1],"data_offsets":[64,80]}}'
    header=$(printf %s "$header" | sed "$1")
    {
        u64 ${#header}
        printf %s "$header"
        printf "\\0\\0\\0\\0\\$(printf %03o "$2")\\0\\0\\0\\0\\0\\0\\0\\002\\0\\0\\0"
        head -c 64 /dev/zero
    } >"$dir/fmha"
}
fmha '' 2
expect 0 'a file written by hand' '1 passed, 0 failed' "$ETALON" check "$dir/fmha"
fmha '' 1
expect 2 'cu_seqlens that do not reach the end' 'cu_seqlens_k[1]: 1, expected 2' "$ETALON" check "$dir/fmha"
fmha 's/"causal":"0"/"causal":"perhaps"/' 2
expect 2 'metadata that is no flag' 'metadata causal: "perhaps", expected 0 or 1' "$ETALON" check "$dir/fmha"
fmha 's/"causal":"0"/"softmax_scale":"0.5x"/' 2
expect 2 'metadata that is no number' 'metadata softmax_scale: "0.5x"' "$ETALON" check "$dir/fmha"
fmha 's/"causal":"0"/"softmax_scale":"-1"/' 2
expect 2 'a negative softmax scale' 'softmax_scale' "$ETALON" check "$dir/fmha"
fmha 's/"causal":"0"/"window_left":"99999999999"/' 2
expect 2 'a window beyond 32 bits' 'metadata window_left' "$ETALON" check "$dir/fmha"
fmha 's/\("k":{"dtype":"F32","shape":\[2,\)2,1/\12/' 2
expect 2 'a wrong rank' 'k: rank 2, expected 3' "$ETALON" check "$dir/fmha"
fmha 's/\("k":{"dtype":"\)F32","shape":\[2,2,1/\1I32","shape":[2,2,1/' 2
expect 2 'a wrong dtype' 'k: dtype i32' "$ETALON" check "$dir/fmha"
fmha 's/\("expected_out":{"dtype":"F32","shape":\[\)2,2,1/\12,1,2/' 2
expect 2 'an expected tensor of another shape' 'expected_out: shape [2, 1, 2], expected [2, 2, 1]' \
    "$ETALON" check "$dir/fmha"
fmha 's/"v":/"value":/' 2
expect 0 'another name of a tensor' '1 passed' "$ETALON" check "$dir/fmha"
fmha 's/"v":/"vv":/' 2
expect 2 'a misspelt tensor' 'tensor v is missing' "$ETALON" check "$dir/fmha"
fmha 's/"expected_out"/"expected_oot"/' 2
expect 2 'a misspelt expectation' 'nothing to check' "$ETALON" check "$dir/fmha"
fmha 's/"expected_out"/"got_out"/' 2
expect 0 'a result of another kernel' '(file)' "$ETALON" check "$dir/fmha"
fmha 's/\("\(q\)":{"dtype":"F32","shape":\[2,\)2,1/\10,2/; s/"data_offsets":\[48,64\]/"data_offsets":[48,48]/; s/\[64,80\]/[48,64]/' 2
head -c $(($(wc -c <"$dir/fmha") - 16)) "$dir/fmha" >"$dir/bad"
expect 2 'zero heads' 'head' "$ETALON" check "$dir/bad"
fmha 's/\("k":{"dtype":"F32","shape":\[2,\)2,1/\11,2/' 2
expect 2 'a head dim that does not fit' 'k.shape' "$ETALON" check "$dir/fmha"

# Contents, patched into generated files: the offsets come from the header.
# patch FILE TENSOR ELEMENT BYTES: overwrites an element of four bytes.
patch() {
    header=$(od -An -tu4 -N4 "$1" | tr -d ' ')
    offset=$(head -c $((header + 8)) "$1" | tail -c "$header" |
        sed "s/.*\"$2\":{[^}]*\"data_offsets\":\[\([0-9]*\),.*/\1/")
    printf "$4" | dd of="$1" bs=1 seek=$((8 + header + offset + 4 * $3)) conv=notrunc 2>/dev/null
}
gen paged pa_mtp --expected --shape batch=2,ctx=40
cp "$dir/paged" "$dir/bad"
patch "$dir/bad" block_tables 0 '\377\377\377\377'
expect 2 'a page id of -1' 'block_tables[0, 0]: page -1' "$ETALON" check "$dir/bad"
patch "$dir/bad" block_tables 0 '\377\377\377\177'
expect 2 'a page id out of range' 'block_tables[0, 0]: page 2147483647' "$ETALON" check "$dir/bad"
cp "$dir/paged" "$dir/bad"
patch "$dir/bad" seq_lens 1 '\377\377\377\377'
expect 2 'a negative length' 'seq_lens[1]: -1' "$ETALON" check "$dir/bad"
patch "$dir/bad" seq_lens 1 '\377\0\0\0'
expect 2 'a length beyond the page table' 'seq_lens[1]: 255' "$ETALON" check "$dir/bad"
cp "$dir/paged" "$dir/bad"
patch "$dir/bad" cu_seqlens_q 1 '\011\0\0\0'
expect 2 'cu_seqlens that decrease' 'cu_seqlens_q[2]: 8' "$ETALON" check "$dir/bad"
cp "$dir/paged" "$dir/bad"
patch "$dir/bad" k_descale 0 '\0\0\300\177'
expect 2 'a descale that is NaN' 'k_descale' "$ETALON" check "$dir/bad"
patch "$dir/bad" k_descale 0 '\0\0\0\0'
expect 2 'a descale of zero' 'k_descale' "$ETALON" check "$dir/bad"
expect 2 'heads that do not divide' 'multiple of kv_heads 3' "$ETALON" gen pa_mtp --shape kv_heads=3 -o "$dir/bad"
expect 2 'run names the sentence too' 'k_descale' "$ETALON" run "$dir/bad" -o "$dir/out"
expect 2 'explain names the sentence too' 'k_descale' "$ETALON" explain "$dir/bad"

# Sizes
expect 2 'sizes beyond 64 bits' 'overflow 64 bits' \
    "$ETALON" gen pa_mtp --shape batch=4294967296,ctx=4294967296 -o "$dir/huge"
expect 2 'sizes beyond memory' 'bytes of memory' "$ETALON" gen mqa_logits --shape m=4194304,n=4194304 -o "$dir/huge"
expect 2 'a number beyond 64 bits' '64-bit integer' "$ETALON" gen mqa_logits --shape m=99999999999999999999 -o "$dir/huge"
expect 2 'a head dim beyond the contract' 'at most 576' "$ETALON" gen fmha_varlen --shape dim=577 -o "$dir/huge"
expect 2 'an unknown pattern' 'expected one of random' "$ETALON" gen merge_states --pattern cp -o "$dir/huge"
if [ -e "$dir/huge" ]; then
    not_ok 'a refused problem leaves no file' "$(ls -l "$dir/huge")"
else
    ok 'a refused problem leaves no file'
fi

# compare
gen a merge_states
expect 0 'a file equals itself' '4 passed, 0 failed' "$ETALON" compare "$dir/a" "$dir/a"
gen b merge_states --pattern peaked
expect 1 'another file differs' FAIL "$ETALON" compare "$dir/a" "$dir/b"
expect 0 'a wide tolerance' '4 passed, 0 failed' "$ETALON" compare --tolerance-abs 1000 "$dir/a" "$dir/b"
expect 2 'a name that is not there' 'tensor out_c is missing' "$ETALON" compare --got out_c "$dir/a" "$dir/b"
gen c merge_states --shape tokens=3
expect 1 'other shapes' 'shape [33, 5, 64], and [3, 5, 64]' "$ETALON" compare "$dir/a" "$dir/c"
expect 2 'no name in common' 'shares no tensor name' "$ETALON" compare "$dir/a" "$dir/in"

# Scalars from the command line. A weight 13.5 nats below the largest vanishes under a fixed scale alone.
gen tail fmha_varlen --pattern underflow --shape gap=13.5,ctx=16384,batch=1 --expected
expect 1 'a fixed scale of P loses the tail' FAIL "$ETALON" check --kernel fmha_varlen_model "$dir/tail"
for policy in tile block32; do
    expect 0 "p_scale=$policy on the same" '' "$ETALON" check --kernel fmha_varlen_model --set p_scale=$policy "$dir/tail"
done
expect 0 'p_terms=2 beside it' '' "$ETALON" check --kernel fmha_varlen_model --set p_scale=tile --set p_terms=2 "$dir/tail"
expect 2 'too many terms' 'model.p_terms: 3, expected 1 or 2' \
    "$ETALON" check --kernel fmha_varlen_model --set p_terms=3 "$dir/tail"
expect 1 'another mask is another problem' FAIL "$ETALON" check --set causal=1 --set softmax_scale=0.01 "$dir/tail"
expect 0 'run notes what was set' '' "$ETALON" run --set causal=1 "$dir/tail" -o "$dir/causal"
expect 0 'the key set' '"set":"causal=1"' cat "$dir/causal"
expect 0 'explain takes it too' taken "$ETALON" explain --set window_left=3 pa_mtp
expect 2 'an unknown scalar' '--set clean=1: fmha_varlen has no such scalar' "$ETALON" check --set clean=1 "$dir/tail"
expect 2 'no value' '--set causal: expected KEY=VALUE' "$ETALON" check --set causal "$dir/tail"
expect 2 'no policy' 'p_scale: "best", expected fixed, tile or block32' "$ETALON" check --set p_scale=best "$dir/tail"

# Rows that are asked for BF16: the verdict allows for it, and a result in the file is still held to F32.
expect 0 'out in BF16' '1 passed' "$ETALON" check --set out_dtype=bf16 "$dir/tail"
expect 0 'the model too, q of BF16 rounded' '1 passed' \
    "$ETALON" check --kernel pa_mtp_model --set out_dtype=bf16 "$ETALON_VECTORS/pa_mtp-ragged-gqa8.safetensors"
expect 0 'a sample of it' '20 of' "$ETALON" check --sample 20 --set out_dtype=bf16 "$dir/tail"
expect 0 'run writes it' '' "$ETALON" run --set out_dtype=bf16 "$dir/tail" -o "$dir/short"
expect 0 'the dtype' '"out":{"dtype":"BF16"' cat "$dir/short"
expect 2 'no such dtype' 'out_dtype: "f16", expected f32 or bf16' "$ETALON" check --set out_dtype=f16 "$dir/tail"

# Samples
gen some fmha_varlen --expected --shape batch=2,ctx=40,q_len=30
expect 0 'a sample says how many of how many' '10 of 240 rows' "$ETALON" check --sample 10 "$dir/some"
expect 0 'a sample of more than there is' '240 of 240 rows' "$ETALON" check --sample 1000 "$dir/some"
expect 0 'a sample in JSON' '"sampled":10,"of":240,"unit":"rows","seed":"3"' \
    "$ETALON" check --json --sample 10 --seed 3 "$dir/some"
expect 0 'a sample of every row of the table' 'fmha_varlen_model' "$ETALON" check --kernel all --sample 10 "$dir/some"
expect 0 'a sample of every vector' ', 0 failed' "$ETALON" check --sample 20 "$ETALON_VECTORS"/*.safetensors
expect 0 'a sample is computed by the reference' 'fmha_varlen_ref' "$ETALON" check --sample 10 "$dir/some"
for count in 0 -1 many 1x '' 9223372036854775808; do
    expect 2 "--sample '$count'" "--sample: \"$count\", expected a number from 1" \
        "$ETALON" check --sample "$count" "$dir/some"
done
expect 2 'a seed that is no number' '--seed: "x"' "$ETALON" check --sample 10 --seed x "$dir/some"
expect 2 'a seed without a sample' '--seed: nothing is drawn without --sample' "$ETALON" check --seed 2 "$dir/some"
expect 0 'a sample of no rows' '0 of 0 rows' sh -c '"$ETALON" gen pa_mtp --shape batch=0 --expected -o "$1" &&
    "$ETALON" check --sample 5 "$1"' sh "$dir/none_at_all"

# Every row is wrong, as another mask makes it: whichever are drawn fail, the same ones for the same seed.
"$ETALON" check --set softmax_scale=1 --sample 3 --seed 7 "$dir/some" >"$dir/first"
"$ETALON" check --set softmax_scale=1 --sample 3 --seed 7 "$dir/some" >"$dir/second"
"$ETALON" check --set softmax_scale=1 --sample 3 --seed 8 "$dir/some" >"$dir/third"
expect 0 'wrong rows are named' 'out[' cat "$dir/first"
same_bytes 'the same seed, the same sample' "$dir/first" "$dir/second"
if cmp -s "$dir/first" "$dir/third"; then
    not_ok 'another seed, another sample' "$(cat "$dir/third")"
else
    ok 'another seed, another sample'
fi

# A wrong element fails the samples that hold it and no other one.
gen few mqa_logits --expected --shape m=8,n=20,heads=2,dim=16
patch "$dir/few" expected_logits 25 '\0\100\234\105' # 5000
expect 1 'a wrong element in the sample' 'logits[1, 5]' "$ETALON" check --sample 160 "$dir/few"
expect 0 'a wrong element outside the sample' '1 of 160 elements' "$ETALON" check --sample 1 "$dir/few"

# Machines
python=
for candidate in python3 python; do
    if command -v $candidate >/dev/null 2>&1 && $candidate -c 'import json' 2>/dev/null; then
        python=$candidate
        break
    fi
done
json() {
    what=$1
    shift
    "$@" >"$dir/json" 2>"$dir/stderr"
    if [ -n "$python" ] && $python -c '
import json, sys
def refuse(word): raise ValueError(word)
rows = [json.loads(line, parse_constant=refuse) for line in open(sys.argv[1])]
assert rows and all(isinstance(row, dict) for row in rows)' "$dir/json" 2>"$dir/stderr"; then
        ok "$what"
    elif [ -z "$python" ] && [ -s "$dir/json" ] && ! grep -qv '^{".*}$' "$dir/json"; then
        ok "$what"
    else
        not_ok "$what" "$(cat "$dir/stderr" "$dir/json")"
    fi
}
json 'check --json' "$ETALON" check --json --kernel all "$dir/wrong" "$dir/none" \
    "$ETALON_VECTORS/pa_mtp-ragged-gqa8.safetensors" "$ETALON_VECTORS/fmha-hotkey-middle.safetensors"
json 'compare --json' "$ETALON" compare --json "$dir/a" "$dir/c"
json 'list --json' "$ETALON" list --json
expect 0 'list --objects names its columns' 'scratch_bytes' "$ETALON" list --objects
expect 1 'the verdict in JSON' '"verdict":"FAIL"' "$ETALON" check --json "$dir/wrong"
expect 0 'list names the rows' 'merge_states_ref' "$ETALON" list

finish
