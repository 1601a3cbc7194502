# The exported names: headers = src/libetalon.map = the shared library.
. "$top_srcdir/tests/tap.sh"
work=$(mktemp -d "${TMPDIR:-/tmp}/etalon-symbols.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT

# A declaration may break over lines, but ETALON_API and the name stand on its first one.
cat "$top_srcdir"/include/etalon/*.h | sed -n 's/^ETALON_API [^(]*[ *]\(etalon_[a-z0-9_]*\)(.*/\1/p' | sort >"$work/headers"
sed -n 's/^ *\(etalon_[a-z0-9_]*\);.*/\1/p' "$top_srcdir/src/libetalon.map" | sort >"$work/map"

compare() { # WHAT A B FIX
    if difference=$(diff "$work/$2" "$work/$3"); then
        ok "$1"
    else
        not_ok "$1" "$4
$difference"
    fi
}

declared=$(cat "$top_srcdir"/include/etalon/*.h | grep -c '^ETALON_API ')
if [ "$declared" -eq "$(wc -l <"$work/headers")" ] && [ "$declared" -gt 0 ]; then
    ok "$declared declarations read from the headers"
else
    not_ok "$declared declarations in the headers, $(wc -l <"$work/headers") of them read" \
        "write a declaration as: ETALON_API <type> etalon_<name>(..."
fi
compare "headers = map" headers map "< is missing in src/libetalon.map, > in include/etalon"

library=$top_builddir/src/.libs/libetalon.so
if [ -f "$library" ]; then
    # nm lists the version node as well, as an absolute symbol: keep code and data.
    $NM -D --defined-only "$library" | awk '$2 ~ /^[BDGRSTVWi]$/ { sub(/@.*/, "", $3); print $3 }' | sort >"$work/library"
    compare "map = library" map library "< is not exported by the library, > is exported and not in src/libetalon.map"
else
    skip "map = library" "no shared library in this build"
fi
finish
