# The documents are true to the tree: bibliography keys resolve, the README shows the example that the tests compile.
. "$top_srcdir/tests/tap.sh"

readme_example() {
    sed -n '/^```c$/,/^```$/p' "$top_srcdir/README.md" | sed '1d;$d'
}

# In comments and prose; an array's extent is not a key.
keys_used() {
    cd "$top_srcdir" && { grep -hE '(^ |/)\*' include/etalon/*.h src/*.[ch] ref/*.[ch] tools/*.[ch] bench/*.[ch] && cat README.md doc/*.md; } |
        grep -oE '(^|[^]a-z])\[[A-Z][A-Z0-9]+(-[A-Z0-9]+)*\]' | grep -oE '\[.*' | sort -u
}

keys_known() {
    grep -oE '^\[[A-Z0-9-]+\]' "$top_srcdir/doc/BIBLIOGRAPHY" | sort -u
}

unknown=$(keys_used | while read -r key; do keys_known | grep -qxF -e "$key" || echo "$key"; done)
if [ -z "$unknown" ]; then
    ok "every bibliography key resolves"
else
    not_ok "every bibliography key resolves" "add to doc/BIBLIOGRAPHY: $unknown"
fi

unused=$(keys_known | while read -r key; do keys_used | grep -qxF -e "$key" || echo "$key"; done)
if [ -z "$unused" ]; then
    ok "every entry of doc/BIBLIOGRAPHY is used"
else
    not_ok "every entry of doc/BIBLIOGRAPHY is used" "drop from doc/BIBLIOGRAPHY: $unused"
fi

if difference=$(readme_example | diff - "$top_srcdir/tests/example.c"); then
    ok "the README's C example is tests/example.c"
else
    not_ok "the README's C example is tests/example.c" "$difference"
fi

broken=$(cd "$top_srcdir" && grep -oE '\]\([A-Za-z0-9_./-]+\)' README.md CONTRIBUTING.md doc/*.md | sed 's/^\([^:]*\):](\(.*\))$/\1 \2/' |
    while read -r file target; do [ -e "$(dirname "$file")/$target" ] || echo "$file: $target"; done)
if [ -z "$broken" ]; then
    ok "links between documents resolve"
else
    not_ok "links between documents resolve" "$broken"
fi
finish
