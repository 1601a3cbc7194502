#!/bin/sh
# What `make check-gpu` needs, for a machine that has a driver and nothing else: bundle.sh DIRECTORY PROGRAM...
# Every library that the programs load goes along, but those of the C library: one as new is expected there.
#   top_srcdir, top_builddir, ETALON_VECTORS
set -e
directory=$1
shift
rm -rf "$directory"
mkdir -p "$directory/bin" "$directory/lib" "$directory/tests/gpu" "$directory/vectors"
for program in "$@"; do # behind libtool's script, where it made one
    real=$(dirname "$program")/.libs/$(basename "$program")
    [ -f "$real" ] || real=$program
    cp "$real" "$directory/bin/"
done

export LD_LIBRARY_PATH="$top_builddir/src/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
for file in $(ldd "$directory"/bin/* | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p' | sort -u); do
    case $(basename "$file") in
    libc.so.* | libm.so.* | libdl.so.* | libpthread.so.* | librt.so.* | ld-linux*) ;;
    *) cp -L "$file" "$directory/lib/" ;;
    esac
done
# Names that are opened, or linked, without a version.
for name in libomp libomptarget; do
    for file in "$directory/lib/$name".so.*; do
        [ -f "$file" ] && ln -sf "$(basename "$file")" "$directory/lib/$name.so"
    done
done
chmod u+w "$directory"/lib/* && strip --strip-unneeded "$directory"/lib/*.so.* "$directory"/bin/*

cp "$top_srcdir/tests/tap.sh" "$directory/tests/"
cp "$top_srcdir/tests/gpu/check.sh" "$directory/tests/gpu/"
cp "$ETALON_VECTORS"/*.safetensors "$directory/vectors/"
cat >"$directory/check" <<'SCRIPT'
#!/bin/sh
# Checks every row for a device on the GPUs of this machine: ./check [OPTION of xcheck]... What else is in bin/ wants the
# same LD_LIBRARY_PATH.
here=$(cd "$(dirname "$0")" && pwd)
LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} ETALON=$here/bin/etalon XCHECK=$here/bin/xcheck \
    ETALON_VECTORS=${ETALON_VECTORS-$here/vectors} exec sh "$here/tests/gpu/check.sh" "$@"
SCRIPT
chmod +x "$directory/check"
tar -C "$(dirname "$directory")" -cJf "$directory.tar.xz" "$(basename "$directory")"
echo "$directory.tar.xz: $(du -h "$directory.tar.xz" | cut -f1)"
