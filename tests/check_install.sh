# What make install puts down serves a user: the README's example compiles by pkg-config and runs, and so does the program.
. "$top_srcdir/tests/tap.sh"
work=$(mktemp -d "${TMPDIR:-/tmp}/etalon-install.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
root=$work/root

step() { # WHAT COMMAND...: the rest stands on it
    what=$1
    shift
    if messages=$("$@" 2>&1); then
        ok "$what"
    else
        not_ok "$what" "$messages"
        finish
    fi
}

# This make is not a child of the one that runs the tests: no flags, no job server of that one.
step "make install" env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL "$MAKE" -C "$top_builddir" install DESTDIR="$root"

LD_LIBRARY_PATH=$root$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH

if command -v "${PKG_CONFIG:-none}" >/dev/null 2>&1; then
    # pkg-config puts the staging root in front of the paths in etalon.pc.
    pkg() {
        PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_PATH=$root$libdir/pkgconfig "$PKG_CONFIG" "$@" etalon
    }
    step "the example compiles" $CC -std=c11 -Wall -Wextra -Werror $CFLAGS $(pkg --cflags) \
        "$top_srcdir/tests/example.c" -o "$work/example" $LDFLAGS $(pkg --libs) -lm
    step "the example runs" "$work/example"
else
    skip "the example" "no pkg-config"
fi
step "the installed program runs" "$root$bindir/etalon" list
step "the manual page is installed" find "$root" -name etalon.1 -exec test -s {} +
finish
