# Other people's implementations as witnesses: files, FP8 codes and results against numpy, safetensors and ml_dtypes.
. "$top_srcdir/tests/tap.sh"
python=${ETALON_PYTHON:-python3}
: "${ETALON_FP8_TABLE:=$top_builddir/tests/fp8_table}" "${ETALON_TENSORFILE_COPY:=$top_builddir/tests/tensorfile_copy}"
export ETALON_FP8_TABLE ETALON_TENSORFILE_COPY

command -v "$python" >/dev/null 2>&1 || skip_all "no $python (ETALON_PYTHON names another)"
for package in numpy safetensors ml_dtypes; do
    "$python" -c "import $package" 2>/dev/null || skip_all "$python has no $package (ETALON_PYTHON names another)"
done
exec "$python" "$top_srcdir/tests/witness.py"
