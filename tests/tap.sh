# TAP for the shell tests: source it, report each check with ok or not_ok, and end with finish.
tap_count=0
tap_failed=0

ok() {
    tap_count=$((tap_count + 1))
    echo "ok $tap_count - $*"
}

# not_ok WHAT [FIX]: the second line says what to do about it.
not_ok() {
    tap_count=$((tap_count + 1))
    tap_failed=$((tap_failed + 1))
    echo "not ok $tap_count - $1"
    if [ $# -gt 1 ]; then
        printf '%s\n' "$2" | sed 's/^/# /'
    fi
}

skip() {
    tap_count=$((tap_count + 1))
    echo "ok $tap_count - $1 # SKIP $2"
}

skip_all() {
    echo "1..0 # SKIP $*"
    exit 0
}

finish() {
    echo "1..$tap_count"
    [ "$tap_failed" -eq 0 ]
    exit
}
