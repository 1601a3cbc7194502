# One name: a row of src/<op>_kernels.def, its file, the symbol in it, and a test that names it.
. "$top_srcdir/tests/tap.sh"
cd "$top_srcdir" || exit 1

# stem = root {_token} _target; the tokens in this order: dtype, dims, group, page, q, causal
tokens='(_(e4m3|bf16|f32))?(_[hd][0-9]+(x[0-9]+)?)*(_gqa[0-9]+)?(_page[0-9]+)?(_q[0-9]+)?(_causal)?(_small)?'
target='_(ref|model|generic|neon|avx2|avx512|amx|omp|gfx950|gfx1250|sm90)'

file_of() {
    for file in "ref/$1.c" "src/$1.c" "hip/$1.hip" asm/*/"$1.s"; do
        if [ -f "$file" ]; then
            echo "$file"
            return
        fi
    done
}

defines() { # FILE SYMBOL
    case $1 in
    *.s) grep -Eq "(^$2:|KERNEL_BEGIN[[:space:]]+$2([[:space:]]|\$))" "$1" ;;
    *) # a call stands indented; src/simd_row.h makes the name from the stem
        grep -Eq -e "^[A-Za-z_].*[ *]$2\(" -e "^#define SIMD_STEM ${2#etalon_}\$" "$1" ;;
    esac
}

# A kernel of one architecture is a row whose function, of the same name, src/ has beside it.
kernel_of() { # STEM
    for file in "hip/$1.hip" "asm/${1##*_}/$1.s"; do
        if [ -f "$file" ]; then
            echo "$file"
            return
        fi
    done
}

check_row() { # ROOT STEM
    case $2 in
    *_gfx950 | *_gfx1250 | *_sm90) file=$(kernel_of "$2") ;;
    *) file=$(file_of "$2") ;;
    esac
    if ! echo "$2" | grep -Eq "^$1$tokens$target\$"; then
        not_ok "$2" "expected $1[_token...]_target, tokens in the order dtype, dims, group, page, q, causal, small"
    elif [ -z "$file" ]; then
        not_ok "$2" "no file: expected ref/$2.c, src/$2.c, hip/$2.hip or asm/<target>/$2.s"
    elif ! defines "$file" "etalon_$2"; then
        not_ok "$2" "$file does not define etalon_$2"
    elif ! grep -qw -e "$2" tests/*.c; then
        not_ok "$2" "no test names it: add it to the gate table in tests/check_$1.c"
    else
        ok "$2: $file"
    fi
}

stems=
for def in src/*_kernels.def; do
    root=$(basename "$def" _kernels.def)
    rows=$(sed -n 's/^KERNEL(\([A-Za-z0-9_]*\) *,.*/\1/p' "$def")
    [ -n "$rows" ] || not_ok "$def" "the table has no row"
    for stem in $rows; do
        check_row "$root" "$stem"
        stems="$stems $stem "
    done
done

# The other way: a kernel's file without a row is a kernel that nobody can call.
for file in ref/*_ref.c ref/*_model.c src/*_generic.c src/*_neon.c src/*_avx2.c src/*_avx512.c src/*_amx.c src/*_omp.c; do
    [ -f "$file" ] || continue
    stem=$(basename "$file" .c)
    case $stems in
    *" $stem "*) ;;
    *) not_ok "$file" "no row in src/*_kernels.def names $stem" ;;
    esac
    defines "$file" "etalon_$stem" || not_ok "$file" "it does not define etalon_$stem"
done

# On a device a row may take several kernels: root _stage {_token} _target is of a row of that root and target that has
# these tokens, perhaps among others.
is_of_a_row() { # STEM
    pattern=$(echo "$1" | sed -E -e 's/_(plan|reduce)(_|$)/\2/' -e 's/(_([hd][0-9]+(x[0-9]+)?|e4m3|bf16|f32|gqa[0-9]+|page[0-9]+|q[0-9]+|causal))/*\1/g' -e 's/_([a-z0-9]+)$/*_\1/')
    [ "$pattern" != "$1" ] || return 1
    for row in $stems; do
        # shellcheck disable=SC2254 # a pattern
        case $row in
        $pattern) return 0 ;;
        esac
    done
    return 1
}

for file in hip/*.hip asm/*/*.s; do
    [ -f "$file" ] || continue
    stem=$(basename "$file" | sed 's/\.[a-z]*$//')
    case $stems in
    *" $stem "*) ;;
    *)
        if ! echo "$stem" | grep -Eq '_(plan|reduce)_' || ! is_of_a_row "$stem"; then
            not_ok "$file" "no row in src/*_kernels.def is $stem, nor one that it may be a stage of"
        fi
        ;;
    esac
    case $file in
    asm/*) [ "$(basename "$(dirname "$file")")" = "${stem##*_}" ] || not_ok "$file" "expected in asm/${stem##*_}" ;;
    esac
    defines "$file" "etalon_$stem" || not_ok "$file" "it does not define etalon_$stem"
done
finish
