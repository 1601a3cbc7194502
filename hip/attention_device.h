/* Attention of a group of rows over a range of their keys: what the portable kernels of pa_mtp and fmha_varlen run.
 *
 * A group is up to 16 query rows of one sequence that share a KV head, row r being token r / G and query head r % G of
 * the G that the KV head serves. Keys come in tiles of 256:
 *
 *   S = Q K^T            device_multiply()
 *   P = 2^(c S - M)      c = scale log2(e); M the running maximum, rounded up to a whole number
 *   l, O += sums over P  in blocks of 64 keys or fewer; a tile's sum is added with compensation [NEUMAIER]
 *
 * K and V go from memory to registers, each element to one work-item, which converts it; Q and P lie in LDS.
 * With a whole M every rescaling is by a power of two and exact, so the error does not grow with the number of keys.
 * A key that a row does not see has P = 0 and is left out of S by selection; where V is not finite, P V leaves it out,
 * too: 0 * NaN of a masked key reaches nothing.
 */
#ifndef ETALON_ATTENTION_DEVICE_H
#define ETALON_ATTENTION_DEVICE_H

#include "device.h"

#include "attention_omp.h"

static_assert(ATTENTION_OMP_ROWS == ROWS && ATTENTION_OMP_KEYS == KEYS, "groups and tiles are what is multiplied");

/* A row's token, counted in all of q, and query head. */
typedef struct attention_place {
    int64_t token, head;
} attention_place;

typedef struct attention_lds {
    float           q[STAGE];           /* some head dims */
    float           p[KEYS * PAD_ROWS]; /* S, then P, then sums of O */
    uint64_t        k_at[KEYS], v_at[KEYS], q_at[ROWS];
    attention_place place[ROWS];
    int64_t         see_first[ROWS], see_last[ROWS];
    int32_t         first[ROWS], last[ROWS]; /* the tile's keys that a row sees */
    float           part[2][WORKGROUP];
    float           m[ROWS], l[ROWS], l_lost[ROWS], factor[ROWS];
} attention_lds;

/* A group, and the keys to go through. */
typedef struct attention_group {
    int64_t b, kv_head;
    int64_t first_q, sq; /* first token of the sequence, and how many */
    int64_t first_k, sk; /* without a table: first key of the sequence */
    int64_t first_row, rows;
    int64_t from, to; /* keys */
} attention_group;

/* Keys that tokens [i, i + n) of a sequence see, from the first one's first to the last one's last. */
typedef struct attention_range {
    int64_t first, last;
} attention_range;

DEVICE attention_range attention_visible(const attention_omp &a, int64_t i, int64_t n, int64_t sq, int64_t sk)
{
    const int64_t   diagonal = i + sk - sq;
    attention_range see = { device_most<int64_t>(0, diagonal - a.left),
                            device_least(sk, diagonal + n - 1 + a.right + 1) };
    if (see.first >= see.last)
        see.first = see.last = 0;
    return see;
}

DEVICE int64_t attention_ratio(const attention_omp &a)
{
    return device_divide(a.heads, a.kv_heads);
}

DEVICE int64_t attention_cu_q(const attention_omp &a, int64_t b)
{
    return device_index(a.cu_seqlens_q, a.cu_seqlens_q_wide, a.cu_seqlens_q_stride, b);
}

DEVICE int64_t attention_length(const attention_omp &a, int64_t b)
{
    return device_index(a.lengths, a.lengths_wide, a.lengths_stride, b);
}

/* Keys that the group sees. */
DEVICE attention_range attention_group_sees(const attention_omp &a, const attention_group &g)
{
    const int64_t ratio = attention_ratio(a);
    const int64_t first = device_divide(g.first_row, ratio), last = device_divide(g.first_row + g.rows - 1, ratio);
    return attention_visible(a, first, last - first + 1, g.sq, g.sk);
}

DEVICE float attention_descale(const attention_omp &a, int which, int64_t b, int64_t kv_head)
{
    if (a.descale[which] == 0)
        return 1.0f;
    const int64_t *stride = a.descale_stride[which];
    return device_load<float>(a.descale[which] + (uint64_t)((b * stride[0] + kv_head * stride[1]) * 4));
}

/* Row r of the group. */
DEVICE attention_place attention_place_of(const attention_omp &a, const attention_group &g, int64_t r)
{
    const int64_t ratio = attention_ratio(a), i = device_divide(g.first_row + r, ratio);
    return { g.first_q + i, g.kv_head * ratio + (g.first_row + r - i * ratio) };
}

DEVICE void attention_store(const attention_omp &a, attention_place at, int64_t d, float x)
{
    const int64_t offset = at.token * a.out_stride[0] + at.head * a.out_stride[1] + d * a.out_stride[2];
    device_store_element(a.out_dtype, a.out + (uint64_t)(offset * device_bytes(a.out_dtype)), x);
}

/* ln(2^m l): m is whole, and its product with the upper part of ln 2 rounds once. */
DEVICE void attention_store_lse(const attention_omp &a, attention_place at, bool empty, float m, float l)
{
    if (a.lse == 0)
        return;
    const float    lse = __builtin_fmaf(m, 0x1.62e43p-1f, __builtin_fmaf(m, -0x1.05c61p-29f, device_ln(l)));
    const uint64_t to = a.lse + (uint64_t)((at.head * a.lse_stride[0] + at.token * a.lse_stride[1]) * 4);
    device_store<float>(to, empty ? -__builtin_inff() : lse);
}

/* Rows of the group: what they see, where their q is. */
DEVICE void attention_begin(const attention_omp &a, const attention_group &g, attention_lds &t)
{
    const int r = device_item();
    if (r >= ROWS)
        return;
    attention_range see = { 0, 0 };
    t.q_at[r] = 0;
    if (r < g.rows) {
        const attention_place at = attention_place_of(a, g, r);
        see = attention_visible(a, at.token - g.first_q, 1, g.sq, g.sk);
        t.place[r] = at;
        t.q_at[r] = a.q + (uint64_t)((at.token * a.q_stride[0] + at.head * a.q_stride[1]) * device_bytes(a.q_dtype));
    }
    t.see_first[r] = see.first;
    t.see_last[r] = see.last;
    t.m[r] = -__builtin_inff();
    t.l[r] = t.l_lost[r] = 0.0f;
}

/* Where key j is: its page, and its slot there. */
typedef struct attention_slot {
    int32_t page;
    int64_t slot;
} attention_slot;

DEVICE attention_slot attention_slot_of(const attention_omp &a, const attention_group &g, int64_t j)
{
    if (a.table == 0)
        return { 0, g.first_k + j };
    const int64_t n = device_divide(j, a.page_size), entry = g.b * a.table_stride[0] + n * a.table_stride[1];
    return { device_load<int32_t>(a.table + (uint64_t)(entry * 4)), j - n * a.page_size };
}

DEVICE uint64_t attention_row_at(const attention_omp &a, const attention_group &g, const attention_slot &at,
                                 uint64_t base, const int64_t *stride)
{
    const int64_t row = at.page * stride[0] + at.slot * stride[1] + g.kv_head * stride[2];
    return base + (uint64_t)(row * device_bytes(a.kv_dtype));
}

/* The tile of `width` keys from `first` on: addresses of a work-item's key, and what each row sees of it. */
DEVICE void attention_tile(const attention_omp &a, const attention_group &g, attention_lds &t, const attention_slot &at,
                           int64_t first, int width)
{
    const int i = device_item();
    t.k_at[i] = attention_row_at(a, g, at, a.k, a.k_stride);
    t.v_at[i] = attention_row_at(a, g, at, a.v, a.v_stride);
    if (i < ROWS) {
        t.first[i] = (int)device_least<int64_t>(device_most<int64_t>(t.see_first[i] - first, 0), width);
        t.last[i] = (int)device_least<int64_t>(device_most<int64_t>(t.see_last[i] - first, 0), width);
    }
}

/* S of the tile, into LDS; ends before the barrier that makes it visible. Q is there if `staged`. */
template <bool CODES> DEVICE void attention_scores(const attention_omp &a, attention_lds &t, int width, bool staged)
{
    const device_row q = { a.q_dtype, a.q_quads, a.q_stride[2] }, k = { a.kv_dtype, a.k_quads, a.k_stride[3] };
    float4v          s[4] = { 0.0f, 0.0f, 0.0f, 0.0f };
#pragma unroll 1
    for (int64_t d = 0; d < a.d_qk; d += DIMS) {
        if (!staged) {
            if (d > 0)
                device_barrier();
            device_stage<CODES>(t.q, t.q_at[device_item() % ROWS], q, d, a.d_qk);
            device_barrier();
        }
        device_multiply<CODES, true>(t.q, t.k_at, k, a.q_dtype == ETALON_F32, d, a.d_qk, width, t.p, s);
    }
    device_store_products<CODES>(t.p, s);
}

/* P in place of S, and the rows' m, l and factor for O, which the next barrier makes visible. Work-item i takes every
 * 16th key of row i % 16. MASKED: some row does not see some key. */
template <bool MASKED> DEVICE void attention_weights(attention_lds &t, float c, float c_low)
{
    enum { PARTS = WORKGROUP / ROWS, EACH = KEYS / PARTS };
    const int   r = device_item() % ROWS, part = device_item() / ROWS, first = t.first[r], last = t.last[r];
    const float before = t.m[r];
    float       s[EACH], m = -__builtin_inff(), l = 0.0f;
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int key = part + i * PARTS;
        s[i] = t.p[key * PAD_ROWS + r];
        const bool seen = !MASKED || (first <= key && key < last);
        m = seen && s[i] > m ? s[i] : m; /* NaN is passed over: its weight is NaN all the same */
    }
    t.part[0][part * ROWS + r] = m;
    device_barrier();
#pragma unroll
    for (int i = 0; i < PARTS; i++)
        m = device_most(m, t.part[0][i * ROWS + r]);
    m = device_most(before, __builtin_ceilf(m * c));
    const float base = m == -__builtin_inff() ? 0.0f : m; /* -inf: every score so far is NaN */
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int   key = part + i * PARTS;
        const float p = device_exp2(__builtin_fmaf(s[i], c_low, __builtin_fmaf(s[i], c, -base)));
#if TENSOR_CORES
        const float weight = !MASKED || (first <= key && key < last) ? device_two_tf32(p) : 0.0f;
#else
        const float weight = !MASKED || (first <= key && key < last) ? p : 0.0f;
#endif
        t.p[key * PAD_ROWS + r] = weight;
        l += weight;
    }
    t.part[1][part * ROWS + r] = l;
    device_barrier();
    if (part != 0)
        return;
#pragma unroll
    for (int i = 1; i < PARTS; i++)
        l += t.part[1][i * ROWS + r];
    const float factor = before == -__builtin_inff() ? 1.0f : device_power_of_two(before - m);
    float       sum = factor * t.l[r], lost = factor * t.l_lost[r];
    device_add(sum, lost, l);
    t.l[r] = sum;
    t.l_lost[r] = lost;
    t.factor[r] = factor;
    t.m[r] = m;
}

/* O of a work-item: four head dims each of four rows. */
typedef struct attention_sums {
    float4v sum[4], lost[4];
} attention_sums;

DEVICE void attention_add_part(float4v &sum, float4v &lost, float factor, float4v part)
{
    const float4v before = factor * sum, total = before + part, taken = total - before;
    lost = factor * lost + ((before - (total - taken)) + (part - taken));
    sum = total;
}

/* How P V is split among the work-items: 2^dims_log2 of them have four head dims each from `d` on, and as many keys. */
typedef struct attention_split {
    int     dims_log2;
    int64_t d;
} attention_split;

DEVICE attention_split attention_split_of(const attention_omp &a, int64_t d)
{
    return { a.d_v - d > 128 ? 6 : a.d_v - d > 64 ? 5 : 4, d };
}

/* Four head dims of a row, from d on. */
typedef struct attention_cell {
    int     row;
    int64_t d;
} attention_cell;

/* part[r] += P[r, key] V[key, d .. d + 4) */
DEVICE void attention_multiply_key(const attention_lds &t, int key, float4v v, float4v part[ROWS])
{
#pragma unroll
    for (int rq = 0; rq < ROWS / 4; rq++) {
        const float4v p = *(const float4v *)(t.p + key * PAD_ROWS + 4 * rq);
#pragma unroll
        for (int i = 0; i < 4; i++)
            part[4 * rq + i] = __builtin_elementwise_fma((float4v)p[i], v, part[4 * rq + i]);
    }
    device_in_order();
}

/* V's four codes of eight keys. */
enum { KEYS_AHEAD = 8 };

typedef struct attention_codes {
    uint32_t key[KEYS_AHEAD];
} attention_codes;

DEVICE attention_codes attention_load(const attention_lds &t, int key, int64_t d)
{
    attention_codes x;
#pragma unroll
    for (int i = 0; i < KEYS_AHEAD; i++)
        x.key[i] = device_load<uint32_t>(t.v_at[key + i] + (uint64_t)d);
    return x;
}

DEVICE int attention_dims_of(attention_split by)
{
    return 4 * (device_item() & ((1 << by.dims_log2) - 1));
}

/* The n-th four of O. */
DEVICE attention_cell attention_cell_of(attention_split by, int n)
{
    return { 4 * n + (device_item() >> by.dims_log2), by.d + attention_dims_of(by) };
}

DEVICE bool attention_has_cells(attention_split by)
{
    return device_item() < 4 << by.dims_log2;
}

/* P V of a work-item's keys, part[r] of row r. Keys beyond the tile have P = 0. */
template <bool CODES>
DEVICE void attention_multiply_values(const attention_omp &a, const attention_lds &t, int64_t d, int first, int last,
                                      float4v part[ROWS])
{
    const device_row row = { a.kv_dtype, a.v_quads, a.v_stride[3] };
    if (d >= a.d_v || first >= last)
        return;
    if (!CODES) {
#pragma unroll 1
        for (int key = first; key < last; key++)
            attention_multiply_key(t, key, device_four(row, t.v_at[key], d, a.d_v), part);
        return;
    }
    attention_codes next = attention_load(t, first, d);
#pragma unroll 1
    for (int key = first; key < last; key += KEYS_AHEAD) {
        const attention_codes now = next;
        if (key + KEYS_AHEAD < last)
            next = attention_load(t, key + KEYS_AHEAD, d);
#pragma unroll
        for (int i = 0; i < KEYS_AHEAD; i++)
            attention_multiply_key(t, key + i, device_e4m3fn_four(now.key[i]), part);
    }
}

/* The same anew, by selection, where V that some row does not see may not be finite. */
DEVICE void attention_select_values(const attention_omp &a, const attention_lds &t, int64_t d, int first, int last,
                                    float4v part[ROWS])
{
    const device_row row = { a.kv_dtype, a.v_quads, a.v_stride[3] };
    float4v          zeros = 0.0f;
    for (int r = 0; r < ROWS; r++)
        zeros += part[r] * 0.0f;
    if (device_finite(zeros.x + zeros.y + zeros.z + zeros.w))
        return;
    for (int r = 0; r < ROWS; r++)
        part[r] = 0.0f;
#pragma unroll 1
    for (int key = first; key < last; key++) {
        const float4v v = device_four(row, t.v_at[key], d, a.d_v);
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            if (t.first[r] <= key && key < t.last[r])
                part[r] += t.p[key * PAD_ROWS + r] * v;
    }
}

/* Joins the work-items' parts and adds them to O, four rows at a time, through P's LDS; begins with a barrier. */
DEVICE void attention_join(attention_lds &t, attention_split by, const float4v part[ROWS], attention_sums &o)
{
    float4v *const four = (float4v *)t.p;
    const int      dims = 1 << by.dims_log2, split = device_item() >> by.dims_log2, dq = device_item() & (dims - 1);
#pragma unroll
    for (int n = 0; n < 4; n++) {
        device_barrier();
#pragma unroll
        for (int i = 0; i < 4; i++)
            four[(split * 4 + i) * dims + dq] = part[4 * n + i];
        device_barrier();
        if (!attention_has_cells(by))
            continue;
        float4v sum = 0.0f;
#pragma unroll 4
        for (int other = 0; other < WORKGROUP / dims; other++)
            sum += four[other * 4 * dims + device_item()];
        attention_add_part(o.sum[n], o.lost[n], t.factor[attention_cell_of(by, n).row], sum);
    }
}

#if TENSOR_CORES

/* Tensor cores: a wave has 32 head dims, 2^waves_log2 waves those of a split, which has its share of the keys. Lane
 * 4 g + t reads four dims from 4 g on of keys 2 t and 2 t + 1 of each eight, which are k = t and k = t + 4. Product i
 * of four then has the dims 8 t + i and 8 t + 4 + i of rows g and g + 8. Sixteen steps for 64 keys, each within 6 u of
 * what has been added up: 96 u of the docstring's 160.
 */
typedef struct attention_waves {
    int     waves_log2;
    int64_t d;
} attention_waves;

DEVICE attention_waves attention_waves_of(const attention_omp &a, int64_t d)
{
    return { a.d_v - d > 128 ? 3 : a.d_v - d > 64 ? 2 : 1, d };
}

DEVICE int attention_split_number(attention_waves by)
{
    return device_item() / 32 >> by.waves_log2;
}

DEVICE int64_t attention_wave_d(attention_waves by)
{
    return by.d + (device_item() / 32 & ((1 << by.waves_log2) - 1)) * 32;
}

/* The n-th four of O, and of the products. */
DEVICE attention_cell attention_cell_of(attention_waves by, int n)
{
    const int lane = device_item() % 32;
    return { lane / 4 + n / 2 * 8, attention_wave_d(by) + lane % 4 * 8 + n % 2 * 4 };
}

DEVICE bool attention_has_cells(attention_waves by)
{
    return attention_split_number(by) == 0;
}

/* 32 keys' worth of a lane's codes; zeros from head dim d_v on. */
typedef struct attention_tensor_codes {
    uint32_t even[4], odd[4];
} attention_tensor_codes;

DEVICE attention_tensor_codes attention_tensor_load(const attention_lds &t, int key, int64_t d, int64_t d_v)
{
    attention_tensor_codes x;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const uint64_t *const at = t.v_at + key + 8 * i + device_item() % 4 * 2;
        x.even[i] = d < d_v ? device_four_codes_once(at[0] + (uint64_t)d) : 0;
        x.odd[i] = d < d_v ? device_four_codes_once(at[1] + (uint64_t)d) : 0;
    }
    return x;
}

DEVICE void attention_tensor_multiply(const float *p, uint32_t even, uint32_t odd, float4v product[4])
{
    const float4v all = { p[0], p[8], p[PAD_ROWS], p[PAD_ROWS + 8] };
    const float4v high = device_tf32(all), low = all - high;
    const float4v x = device_e4m3fn_four(even), y = device_e4m3fn_four(odd);
#pragma unroll
    for (int i = 0; i < 4; i++)
        device_tensor(product[i], low, x[i], y[i]);
#pragma unroll
    for (int i = 0; i < 4; i++)
        device_tensor(product[i], high, x[i], y[i]);
}

/* part += P V of keys [first, last), in blocks of 64 keys. */
DEVICE void attention_tensor_values(const attention_omp &a, const attention_lds &t, attention_waves by, int first,
                                    int last, float4v part[4])
{
    const int     lane = device_item() % 32;
    const int64_t d = attention_wave_d(by) + lane / 4 * 4;
    if (first >= last)
        return;
    attention_tensor_codes next = attention_tensor_load(t, first, d, a.d_v);
#pragma unroll 1
    for (int block = first; block < last; block += 64) {
        float4v product[4] = { 0.0f, 0.0f, 0.0f, 0.0f };
#pragma unroll 1
        for (int key = block; key < device_least(block + 64, last); key += 32) {
            const attention_tensor_codes now = next;
            if (key + 32 < last)
                next = attention_tensor_load(t, key + 32, d, a.d_v);
#pragma unroll
            for (int i = 0; i < 4; i++)
                attention_tensor_multiply(t.p + (key + 8 * i + lane % 4 * 2) * PAD_ROWS + lane / 4, now.even[i],
                                          now.odd[i], product);
        }
#pragma unroll
        for (int n = 0; n < 4; n++)
            part[n] += float4v{ product[0][n], product[1][n], product[2][n], product[3][n] };
    }
}

/* The same anew, by selection, where V that some row does not see may not be finite. */
DEVICE void attention_tensor_select(const attention_omp &a, const attention_lds &t, attention_waves by, int first,
                                    int last, float4v part[4])
{
    const float4v zeros = (part[0] + part[1]) * 0.0f + (part[2] + part[3]) * 0.0f;
    if (device_finite(zeros.x + zeros.y + zeros.z + zeros.w))
        return;
#pragma unroll
    for (int n = 0; n < 4; n++) {
        const attention_cell cell = attention_cell_of(by, n);
        float4v              all = 0.0f, sum = 0.0f;
        if (cell.d >= a.d_v)
            continue;
#pragma unroll 1
        for (int key = device_most(first, t.first[cell.row]); key < device_least(last, t.last[cell.row]); key++) {
            sum += t.p[key * PAD_ROWS + cell.row] *
                   device_e4m3fn_four(device_load<uint32_t>(t.v_at[key] + (uint64_t)cell.d));
            if (key % 64 == 63) {
                all += sum;
                sum = 0.0f;
            }
        }
        part[n] = all + sum;
    }
}

/* O += P V of the tile; the splits after the first give their parts to it through P's LDS. */
DEVICE void attention_tensor_add(const attention_omp &a, attention_lds &t, attention_waves by, int width, bool masked,
                                 attention_sums &o)
{
    float4v *const four = (float4v *)t.p;
    const int      threads = 32 << by.waves_log2, keys = KEYS * threads / WORKGROUP;
    const int      first = attention_split_number(by) * keys, last = device_least(first + keys, width);
    float4v        part[4] = { 0.0f, 0.0f, 0.0f, 0.0f };
    attention_tensor_values(a, t, by, first, last, part);
    if (masked)
        attention_tensor_select(a, t, by, first, last, part);
    if (threads < WORKGROUP) {
        device_barrier();
        for (int n = 0; n < 4 && !attention_has_cells(by); n++)
            four[n * WORKGROUP + device_item()] = part[n];
        device_barrier();
    }
    if (!attention_has_cells(by))
        return;
#pragma unroll
    for (int n = 0; n < 4; n++) {
#pragma unroll 1
        for (int other = threads; other < WORKGROUP; other += threads)
            part[n] += four[n * WORKGROUP + device_item() + other];
        attention_add_part(o.sum[n], o.lost[n], t.factor[attention_cell_of(by, n).row], part[n]);
    }
}

#endif

/* O += P V of the tile. */
template <bool CODES>
DEVICE void attention_values(const attention_omp &a, attention_lds &t, int64_t from_d, int width, bool masked,
                             attention_sums &o)
{
#if TENSOR_CORES
    if constexpr (CODES) {
        attention_tensor_add(a, t, attention_waves_of(a, from_d), width, masked, o);
        return;
    }
#endif
    const attention_split by = attention_split_of(a, from_d);
    const int             first = device_item() >> by.dims_log2 << by.dims_log2;
    const int             last = device_least(first + (1 << by.dims_log2), width);
    const int64_t         d = from_d + attention_dims_of(by);
    float4v               part[ROWS] = {};
    attention_multiply_values<CODES>(a, t, d, first, last, part);
    if (masked)
        attention_select_values(a, t, d, first, last, part);
    attention_join(t, by, part, o);
}

/* The result of a group: into out and lse if `to` is 0, else O [16][d_v], m [16] and l [16] there. */
template <typename BY>
DEVICE void attention_end(const attention_omp &a, const attention_group &g, const attention_lds &t, BY by,
                          const attention_sums &o, uint64_t to)
{
    const float descale = attention_descale(a, 2, g.b, g.kv_head);
#pragma unroll
    for (int n = 0; n < 4; n++) {
        const attention_cell cell = attention_cell_of(by, n);
        const int            r = cell.row;
        if (!attention_has_cells(by) || r >= g.rows)
            continue;
        const float4v x = o.sum[n] + o.lost[n];
        const bool    empty = t.see_first[r] >= t.see_last[r];
        for (int i = 0; i < 4; i++) {
            const int64_t d = cell.d + i;
            if (d >= a.d_v)
                continue;
            if (to != 0)
                device_store<float>(to + (uint64_t)((r * a.d_v + d) * 4), x[i]);
            else
                attention_store(a, t.place[r], d, empty ? 0.0f : descale * (x[i] / (t.l[r] + t.l_lost[r])));
        }
    }
    const int r = device_item();
    if (r >= g.rows || by.d > 0)
        return;
    const float l = t.l[r] + t.l_lost[r];
    if (to != 0) {
        device_store<float>(to + (uint64_t)((ROWS * a.d_v + r) * 4), t.m[r]);
        device_store<float>(to + (uint64_t)((ROWS * (a.d_v + 1) + r) * 4), l);
    } else {
        attention_store_lse(a, t.place[r], t.see_first[r] >= t.see_last[r], t.m[r], l);
    }
}

/* Keys that every row of the group sees. */
DEVICE attention_range attention_all_see(const attention_omp &a, const attention_group &g)
{
    const int64_t ratio = attention_ratio(a);
    const int64_t first = device_divide(g.first_row, ratio), last = device_divide(g.first_row + g.rows - 1, ratio);
    return { attention_visible(a, last, 1, g.sq, g.sk).first, attention_visible(a, first, 1, g.sq, g.sk).last };
}

/* O of DIMS head dims from d on. */
template <bool CODES>
DEVICE void attention_run(const attention_omp &a, const attention_group &g, attention_lds &t, int64_t d, uint64_t to)
{
    const double          scale = (double)(float)(a.softmax_scale * (double)attention_descale(a, 0, g.b, g.kv_head) *
                                                  (double)attention_descale(a, 1, g.b, g.kv_head)) *
                                  0x1.71547652b82fep+0 /* log2(e) */;
    const float           c = (float)scale, c_low = (float)(scale - (double)c);
    const attention_range all = attention_all_see(a, g);
    const int             i = device_item();
    attention_sums        o = {};
    attention_begin(a, g, t);
    attention_slot at = { 0, 0 };
    if (g.from < g.to)
        at = attention_slot_of(a, g, device_least(g.from + i, g.to - 1));
#pragma unroll 1
    for (int64_t first = g.from; first < g.to; first += KEYS) {
        const int  width = (int)device_least<int64_t>(KEYS, g.to - first);
        const bool masked = first < all.first || first + KEYS > all.last || width < KEYS;
        device_barrier();
        attention_tile(a, g, t, at, first, width);
        at = attention_slot_of(a, g, device_least(first + KEYS + i, g.to - 1)); /* of the next tile */
        device_barrier();
        attention_scores<CODES>(a, t, width, a.d_qk <= DIMS && first != g.from);
        device_barrier();
        if (masked)
            attention_weights<true>(t, c, c_low);
        else
            attention_weights<false>(t, c, c_low);
        device_barrier();
        attention_values<CODES>(a, t, d, width, masked, o);
    }
    device_barrier();
#if TENSOR_CORES
    if constexpr (CODES)
        attention_end(a, g, t, attention_waves_of(a, d), o, to);
    else
        attention_end(a, g, t, attention_split_of(a, d), o, to);
#else
    attention_end(a, g, t, attention_split_of(a, d), o, to);
#endif
    device_barrier();
}

/* S is worked out anew for each DIMS of V's head dims: registers have no room for more of O. */
DEVICE void attention_run_group(const attention_omp &a, const attention_group &g, attention_lds &t, uint64_t to)
{
    const device_row k = { a.kv_dtype, a.k_quads, a.k_stride[3] }, v = { a.kv_dtype, a.v_quads, a.v_stride[3] };
    const bool       codes = device_codes(k, a.d_qk) && device_codes(v, a.d_v);
    for (int64_t d = 0; d < a.d_v; d += DIMS)
        if (codes)
            attention_run<true>(a, g, t, d, to);
        else
            attention_run<false>(a, g, t, d, to);
}

#endif
