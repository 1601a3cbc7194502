# Every row of src/*_kernels.def is here and was tested, or is named with what is missing: the compiler, or the CPU.
. "$top_srcdir/tests/tap.sh"
list=$("$ETALON" list) || { not_ok "etalon list" "$list"; finish; }

for row in $(sed -n 's/^KERNEL(\([A-Za-z0-9_]*\) *,.*/\1/p' "$top_srcdir"/src/*_kernels.def); do
    line=$(echo "$list" | awk -v row="$row" '$2 == row { $1 = $2 = ""; print; exit }')
    case $line in
    *yes*) ok "$row is available" ;;
    *"by name only") ok "$row is available by name" ;;
    *no*) skip "$row" "not on this CPU: needs${line##*no}" ;;
    *) skip "$row" "not built: configure says why" ;;
    esac
done
finish
