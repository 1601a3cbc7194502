#!/bin/sh
# The loader on files that once broke it, and on those changed at random for a few seconds.
# FUZZ_SECONDS asks for more: ten minutes before a release.
. "${top_srcdir:-.}/tests/tap.sh"

fuzz=${top_builddir:-.}/tests/fuzz_sim_object
if log=$("$fuzz" "$top_srcdir/tests/sim/corpus" --seconds "${FUZZ_SECONDS:-3}" 2>&1); then
    ok "$(echo "$log" | tr '\n' ' ')"
else
    not_ok "fuzz_sim_object" "$log"
fi
finish
