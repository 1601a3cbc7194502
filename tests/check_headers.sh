# Every public header compiles alone, as C and as C++, and includes nothing that is not installed.
. "$top_srcdir/tests/tap.sh"
work=$(mktemp -d "${TMPDIR:-/tmp}/etalon-headers.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
flags="-I$top_builddir/include -I$top_srcdir/include -Wall -Wextra -Werror -pedantic -fsyntax-only"

cxx=
echo 'int main() { return 0; }' >"$work/probe.cc"
for candidate in "$CC -x c++" g++ clang++ c++; do
    if $candidate -std=c++11 -fsyntax-only "$work/probe.cc" >/dev/null 2>&1; then
        cxx=$candidate
        break
    fi
done

compiles() { # WHAT COMMAND...
    what=$1
    shift
    if messages=$("$@" 2>&1); then
        ok "$what"
    else
        not_ok "$what" "$messages"
    fi
}

for path in "$top_srcdir"/include/etalon/*.h "$top_builddir/include/etalon/version.h"; do
    header=etalon/$(basename "$path")
    printf '#include <%s>\nint not_empty;\n' "$header" >"$work/alone.c"
    cp "$work/alone.c" "$work/alone.cc"
    compiles "$header as C" $CC -std=c11 $flags "$work/alone.c"
    if [ -n "$cxx" ]; then
        compiles "$header as C++" $cxx -std=c++11 $flags "$work/alone.cc"
    else
        skip "$header as C++" "no C++ compiler"
    fi
    foreign=$(grep -E '^ *# *include' "$path" | grep -vE '<(etalon/[a-z_]+|stddef|stdint|stdbool)\.h>')
    if [ -z "$foreign" ]; then
        ok "$header includes installed headers only"
    else
        not_ok "$header includes installed headers only" "$foreign"
    fi
done
finish
