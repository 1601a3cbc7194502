#!/bin/sh
# The table of wait states against LLVM's: witness_hazards.py.
. "${top_srcdir:-.}/tests/tap.sh"

python=${ETALON_PYTHON:-python3}
command -v "$python" >/dev/null 2>&1 || skip_all "no $python (ETALON_PYTHON names another)"
exec "$python" "$top_srcdir/tests/witness_hazards.py" "$top_builddir/tests/check_sim_checks"
