# The C sources are as .clang-format says. One version decides, since versions differ in their answers.
. "$top_srcdir/tests/tap.sh"
format=clang-format-22
command -v $format >/dev/null 2>&1 || skip_all "$format is not installed"
cd "$top_srcdir" || exit 1

for file in include/etalon/*.h src/*.[ch] ref/*.[ch] sim/*.[ch] sim/runtime/*.[ch] tools/*.[ch] tests/*.[ch] bench/*.[ch]; do
    if messages=$($format --dry-run --Werror "$file" 2>&1); then
        ok "$file"
    else
        not_ok "$file" "run: $format -i $file
$messages"
    fi
done
finish
