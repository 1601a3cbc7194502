# A compiler of others as a witness: kernels that Triton makes for gfx950 and gfx1250 run in the simulator, against numpy.
. "$top_srcdir/tests/tap.sh"
python=${ETALON_PYTHON:-python3}
: "${ETALON_SIM:=$top_builddir/tools/etalon-sim}"
export ETALON_SIM

[ -x "$ETALON_SIM" ] || skip_all "no simulator: $ETALON_SIM is not there"
command -v "$python" >/dev/null 2>&1 || skip_all "no $python (ETALON_PYTHON names another)"
for package in numpy triton; do
    "$python" -c "import $package" >/dev/null 2>&1 || skip_all "$python has no $package (ETALON_PYTHON names another)"
done
"$python" -c 'import triton; exit(tuple(map(int, triton.__version__.split(".")[:2])) < (3, 9))' ||
    skip_all "$python has a triton before 3.9, which knows gfx1250 less well"

TRITON_CACHE_DIR=$(mktemp -d "${TMPDIR:-/tmp}/etalon-triton.XXXXXX") || exit 99
export TRITON_CACHE_DIR
trap 'rm -rf "$TRITON_CACHE_DIR"' EXIT INT TERM
"$python" "$top_srcdir/tests/witness_triton.py"
