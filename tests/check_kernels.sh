# doc/KERNELS.md says of each kernel for one architecture what its object takes, and none spills.
#   ETALON_SIM    etalon-sim
. "$top_srcdir/tests/tap.sh"

[ -x "$ETALON_SIM" ] || skip_all "no $ETALON_SIM: the simulator is not built"

# resources FILE: "wave64, 216 VGPRs, ... 0 of scratch"
resources() {
    "$ETALON_SIM" list "$1" | sed -n -E 's/^  (wave.*of scratch),.*/\1/p'
}

found=0
for source in "$top_srcdir"/asm/*/*.s "$top_srcdir"/hip/*_gfx*.hip; do
    stem=$(basename "${source%.*}")
    case $source in
    *.s) object=$top_builddir/asm/${stem##*_}/$stem.co ;;
    *) object=$top_builddir/hip/$stem.${stem##*_}.co ;;
    esac
    [ -f "$object" ] || continue
    found=1
    has=$(resources "$object")
    if grep -qxF "\`$stem\`: $has" "$top_srcdir/doc/KERNELS.md"; then
        ok "$stem: $has"
    else
        not_ok "$stem" "doc/KERNELS.md lacks: \`$stem\`: $has"
    fi
    case $has in
    *", 0 of scratch") ok "$stem does not spill" ;;
    *) not_ok "$stem does not spill" "$has" ;;
    esac
done
[ $found -eq 1 ] || skip_all 'no kernel was made'
finish
