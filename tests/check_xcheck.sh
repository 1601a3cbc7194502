# xcheck over the rows of this machine, over them again without the fast ones, and over the kernels that are broken on
# purpose. ETALON_SEED draws other cases for the rows; the broken ones meet those of one seed.
. "$top_srcdir/tests/tap.sh"
xcheck=$top_builddir/tests/xcheck
seed=20261129

dir=$(mktemp -d "${TMPDIR:-/tmp}/etalon-xcheck.XXXXXX") || exit 99
trap 'rm -rf "$dir"' EXIT INT TERM

# Good rows: every line that counts cases is a test.
check_rows() { # WHAT ARGUMENT...
    what=$1
    shift
    "$xcheck" "$@" >"$dir/rows" 2>"$dir/stderr"
    code=$?
    lines=$(grep -c ' passed, .* refused, .* failed' "$dir/rows")
    if [ "$code" -eq 0 ] && [ "$lines" -gt 0 ]; then
        ok "$what: $lines rows"
    else
        not_ok "$what" "exit $code
$(cat "$dir/stderr" "$dir/rows")"
    fi
    sed -n -e '/ passed, .* failed/s/^/# /p' -e '/^# /p' "$dir/rows"
}

check_rows "every row" --effort check

for without in amx avx512,amx avx512,amx,avx2,neon; do
    ETALON_DISABLE=$without check_rows "rows that serve with ETALON_DISABLE=$without" --seed $seed --cases 4
done

# Broken kernels: all at once; then each line is a test.
"$xcheck" --kernel broken --seed $seed >"$dir/broken" 2>&1
code=$?
caught=$(grep -c '^broken_.*: caught in case' "$dir/broken")
if [ "$code" -eq 0 ]; then
    ok "every broken kernel is caught, and the sound ones pass"
else
    not_ok "every broken kernel is caught, and the sound ones pass" "exit $code
$(grep -v ': caught in case' "$dir/broken")"
fi
if [ "$caught" -ge 20 ]; then
    ok "$caught broken kernels"
else
    not_ok "at least 20 broken kernels" "$caught were caught"
fi
sed -n 's/^\(broken_.*: caught\)/# \1/p' "$dir/broken"

# A failure is told well: element, distance, neighbours, picture, pattern, and a line that replays it.
"$xcheck" --kernel broken_fmha_varlen_every_16th_row --seed $seed --case 1 >"$dir/report" 2>&1
expect() { # WHAT PATTERN
    if grep -Eq -e "$2" "$dir/report"; then
        ok "$1"
    else
        not_ok "$1" "no line matches $2:
$(cat "$dir/report")"
    fi
}
expect "a report has index, both values, bound and ulp" '^  first \[15, 0, 0\]: got .*, expected .* within .*, off by .*, [0-9]+ ulp$'
expect "a report has the neighbours" '^    want .*\[.*\]'
expect "a report has a picture" '^ +[0-9]+ \++$'
expect "a report names the pattern" '^  pattern: every 16th token, from 15 on; every head; every column \('
expect "a report says how to replay it" '^  replay: \./xcheck --op fmha_varlen --kernel '

replay=$(sed -n 's|^  replay: \./xcheck ||p' "$dir/report" | head -n 1)
# shellcheck disable=SC2086 # options, one a word
"$xcheck" $replay >"$dir/replayed" 2>&1
if grep -E '^  (first|worst|pattern)' "$dir/report" >"$dir/a" && grep -E '^  (first|worst|pattern)' "$dir/replayed" >"$dir/b" &&
    cmp -s "$dir/a" "$dir/b"; then
    ok "the replay line gives the same report"
else
    not_ok "the replay line gives the same report" "$(diff "$dir/a" "$dir/b")"
fi

for pattern in second_wave:'tokens 32 to 63 of every 64' last_page:'wrong are the sequences whose last page is not full'; do
    name=${pattern%%:*}
    case $name in
    last_page) op=pa_mtp ;;
    *) op=fmha_varlen ;;
    esac
    "$xcheck" --kernel "broken_${op}_$name" --seed $seed --cases 24 >"$dir/report" 2>&1
    expect "the picture of $name" "${pattern#*:}"
done

"$xcheck" --json --op merge_states >"$dir/json" 2>&1
if [ "$(grep -c '^{"kernel":"merge_states_ref","op":"merge_states","passed":[0-9]*,"refused":0,"failed":0,"good":true}$' "$dir/json")" -eq 1 ] &&
    [ "$(wc -l <"$dir/json")" -eq 1 ]; then
    ok "--json prints a line a kernel"
else
    not_ok "--json prints a line a kernel" "$(cat "$dir/json")"
fi

for bad in '--kernel pa_mtp_hope' '--op hope' '--effort much' '--cases 0' '--cases x' '--seed x' 'word'; do
    # shellcheck disable=SC2086 # options, one a word
    "$xcheck" $bad >"$dir/out" 2>&1
    code=$?
    if [ "$code" -eq 2 ] && [ -s "$dir/out" ]; then
        ok "$bad is refused"
    else
        not_ok "$bad is refused" "exit $code: $(cat "$dir/out")"
    fi
done
finish
