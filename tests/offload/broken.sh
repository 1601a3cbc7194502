#!/bin/sh
# Kernels for AMD GPUs that are wrong on purpose: broken.sh SOURCES DIRECTORY COMPILER FLAG...
# makes DIRECTORY/broken_ROW_NAME.ARCH.co for the kernels of tests/broken_device.def, each of the library's own source
# with one edit. An edit that changes nothing is an error: the source has moved on. gfx1250 has those of mqa_logits_omp
# alone: the mistakes are the same there, and the rest takes time.
set -e
sources=$1 directory=$2
shift 2
work=$(mktemp -d "${TMPDIR:-/tmp}/etalon-broken.XXXXXX")
trap 'rm -rf "$work"' EXIT INT TERM
mkdir -p "$directory"

# broken ROW STEM NAME FILE EDIT COMPILER FLAG...: FILE, of which STEM.hip is made, as sed's EDIT leaves it.
broken() {
    row=$1 stem=$2 name=$3 file=$4 edit=$5
    shift 5
    rm -rf "$work/hip"
    mkdir "$work/hip"
    cp "$sources"/*.h "$sources/$stem.hip" "$work/hip/"
    chmod u+w "$work/hip"/* # of a read-only source
    sed -e "$edit" "$sources/$file" >"$work/hip/$file"
    if [ "$name" != sound ] && cmp -s "$sources/$file" "$work/hip/$file"; then
        echo "broken.sh: $row $name: the edit of $file changes nothing" >&2
        exit 1
    fi
    case $row in
    mqa_logits_omp) arches='gfx950 gfx1250' ;;
    *) arches=gfx950 ;;
    esac
    for arch in $arches; do
        "$@" -w --offload-arch=$arch "$work/hip/$stem.hip" -o "$directory/broken_${row}_$name.$arch.co"
    done
}

mqa() {
    name=$1 edit=$2
    shift 2
    broken mqa_logits_omp mqa_logits_omp "$name" mqa_logits_device.h "$edit" "$@"
}
paged() {
    name=$1 file=$2 edit=$3
    shift 3
    broken mqa_logits_paged_omp mqa_logits_paged_omp "$name" "$file" "$edit" "$@"
}
pa() {
    name=$1 edit=$2
    shift 2
    broken pa_mtp_omp pa_mtp_omp "$name" attention_device.h "$edit" "$@"
}
fmha() {
    name=$1 edit=$2
    shift 2
    broken fmha_varlen_omp fmha_varlen_omp "$name" attention_device.h "$edit" "$@"
}

mqa sound '' "$@"
mqa unwritten_tail 's/key < t\.last\[row\])/key < t.last[row] \&\& key < (at.last \& ~7))/' "$@"
mqa window_end 's/key < t\.last\[row\]/key <= t.last[row]/' "$@"
mqa kv_scale 's/row, scale \* sum/row, sum/' "$@"
mqa keys_32_bit 's/a\.k + (uint64_t)(n \*/a.k + (uint64_t)(uint32_t)(n */' "$@"
mqa reads_past_end 's/device_least(device_most(device_item(), at\.first), at\.last - 1)/device_item()/' "$@"
mqa unmoved 's/origin = a\.compressed ? first : 0/origin = 0/' "$@"
mqa race '/^ *device_stage<CODES>(t\.q/ { n; d; }' "$@"
paged first_scale mqa_logits_paged_omp.hip 's/at\.slot \* a\.kv_scale_stride \* 4/0/' "$@"
paged table_row mqa_logits_paged_omp.hip 's/(b \* p\.table_stride\[0\] \* 4)/(0)/' "$@"
paged one_context mqa_logits_paged_omp.hip 's/(b \* p\.context_stride/(0 * p.context_stride/' "$@"
paged blocks_32_bit mqa_logits_paged_omp.hip 's/a\.k + (uint64_t)(at\.block/a.k + (uint64_t)(uint32_t)(at.block/' "$@"
paged past_end mqa_logits_device.h 's/device_least(device_most(device_item(), at\.first), at\.last - 1)/device_item()/' "$@"
pa wrong_page 's/n \* a\.table_stride\[1\]/(n \& ~1ll) * a.table_stride[1]/' "$@"
pa pages_32_bit 's/(uint64_t)(row \* device/(uint64_t)(uint32_t)(row * device/' "$@"
pa k_descale 's/(double)attention_descale(a, 1, g\.b, g\.kv_head)/1.0/' "$@"
pa past_end 's/device_least(g\.from + i, g\.to - 1)/g.from + i/; s/if (t\.first\[r\] <= key \&\& key < t\.last\[r\])/if (true)/' "$@"
broken pa_mtp_omp pa_mtp_reduce_omp reduce_weight pa_mtp_reduce_omp.hip 's/device_power_of_two(m - most)/1.0f/' "$@"
fmha off_by_one 's/diagonal + n - 1 + a\.right + 1/diagonal + n - 1 + a.right/' "$@"
fmha stale_max 's/device_power_of_two(before - m)/1.0f/' "$@"
fmha lse_base_2 's/float    lse = /float    lse = 0x1.715476p+0f * /' "$@"
fmha gqa_swapped 's/g\.kv_head \* ratio + \((g\.first_row + r - i \* ratio)\)/g.kv_head + \1 * a.kv_heads/' "$@"
fmha race '/^ *attention_scores<CODES>(a, t/ { n; d; }' "$@"
