/* s[j] = scale * q . k[j];  lse = ln sum_j exp(s[j]);  out = sum_j exp(s[j] - lse) * v_descale * v[j].
 *
 * Sums over keys go block by block, and the block sums are added with compensation [NEUMAIER], so that the error does
 * not grow with the number of keys. The scores are computed twice, once for the maximum: nothing is stored per key.
 */
#include "attend.h"

#include "dot.h"
#include "element.h"

enum { BLOCK_KEYS = 64 };

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* A compensated sum: its value is sum + lost. */
typedef struct compensated {
    float sum, lost;
} compensated;

static void compensated_add(compensated *c, float x)
{
    const float sum = c->sum + x;
    c->lost += fabsf(c->sum) >= fabsf(x) ? (c->sum - sum) + x : (x - sum) + c->sum;
    c->sum = sum;
}

static void load_key(const attend_keys *keys, int64_t j, float *k)
{
    const char *at = attend_key_at(keys, keys->k, keys->k_page, keys->k_slot, j);
    element_load_row(k, at, keys->dtype, keys->k_stride, keys->d_qk);
}

static void load_value(const attend_keys *keys, int64_t j, float *v)
{
    const char *at = attend_key_at(keys, keys->v, keys->v_page, keys->v_slot, j);
    element_load_row(v, at, keys->dtype, keys->v_stride, keys->d_v);
}

static float score(const attend_keys *keys, const attend_row *row, int64_t j)
{
    float k[ETALON_MAX_HEAD_DIM];
    load_key(keys, j, k);
    return row->scale * dot(row->q, k, keys->d_qk);
}

/* NaN scores are passed over here; their weights are NaN all the same. */
static float max_score(const attend_keys *keys, const attend_row *row)
{
    float m = -INFINITY;
    for (int64_t j = row->see.first; j < row->see.last; j++) {
        const float s = score(keys, row, j);
        m = s > m ? s : m;
    }
    return m;
}

static void zero_row(float *out, int64_t n)
{
    for (int64_t d = 0; d < n; d++)
        out[d] = 0.0f;
}

/* out[d] += factor * sum_j weight[j] * v[j, d] over a block of n keys from first. */
static void add_block(const attend_keys *keys, int64_t first, int64_t n, const float *weight, float factor,
                      compensated *out)
{
    float block[ETALON_MAX_HEAD_DIM] = { 0 }, v[ETALON_MAX_HEAD_DIM];
    for (int64_t j = 0; j < n; j++) {
        load_value(keys, first + j, v);
        for (int64_t d = 0; d < keys->d_v; d++)
            block[d] += weight[j] * v[d];
    }
    for (int64_t d = 0; d < keys->d_v; d++)
        compensated_add(&out[d], factor * block[d]);
}

static void finish_row(const attend_keys *keys, const attend_row *row, const compensated *sum, float l, float *out)
{
    for (int64_t d = 0; d < keys->d_v; d++)
        out[d] = row->v_descale * ((sum[d].sum + sum[d].lost) / l);
}

/* max_j s[j], and sum_j exp(s[j] - m). */
typedef struct softmax_total {
    float m, l;
} softmax_total;

static softmax_total attend_exactly(const attend_keys *keys, const attend_row *row, float *out)
{
    const float m = max_score(keys, row);
    compensated total = { 0 }, sum[ETALON_MAX_HEAD_DIM] = { 0 };
    for (int64_t first = row->see.first; first < row->see.last; first += BLOCK_KEYS) {
        const int64_t n = least(row->see.last - first, BLOCK_KEYS);
        float         p[BLOCK_KEYS], l = 0.0f;
        for (int64_t j = 0; j < n; j++) {
            p[j] = expf(score(keys, row, first + j) - m);
            l += p[j];
        }
        compensated_add(&total, l);
        add_block(keys, first, n, p, 1.0f, sum);
    }
    const float l = total.sum + total.lost;
    finish_row(keys, row, sum, l, out);
    return (softmax_total){ m, l };
}

float attend(const attend_keys *keys, const attend_row *row, float *out)
{
    if (row->see.first >= row->see.last) {
        zero_row(out, keys->d_v);
        return -INFINITY;
    }
    const softmax_total total = attend_exactly(keys, row, out);
    return total.m + logf(total.l);
}

/* The sum of the E4M3 terms of x: exact, since 18 bits hold what lies between 448 and 2^-9. */
static float rounded(float x, int32_t terms)
{
    float sum = 0.0f;
    for (int32_t t = 0; t < terms; t++)
        sum += f32_of_e4m3fn(e4m3fn_of_f32(x - sum, FP8_SATURATE));
    return sum;
}

/* P in (0, 1] times 2^8 fills the range of E4M3FN: its maximum, 256, is exact. */
static void round_weights(float *p, int64_t n, int32_t terms)
{
    for (int64_t j = 0; j < n; j++)
        p[j] = 0x1p-8f * rounded(0x1p8f * p[j], terms);
}

/* Each 32 keys, counted from key 0 of the sequence, under a power of two of their own. */
static void round_weights_block32(float *p, int64_t first, int64_t n, int32_t terms)
{
    for (int64_t j = 0, next; j < n; j = next) {
        const int64_t end = (first + j) / 32 * 32 + 32 - first;
        float         most = 0.0f;
        next = least(end, n);
        for (int64_t i = j; i < next; i++)
            most = p[i] > most ? p[i] : most;
        if (most == 0.0f)
            continue; /* all vanished, or NaN: nothing to scale by */
        const float scale = f32_of_e8m0(e8m0_ceil_of_f32(most / 448 /* largest finite E4M3FN */));
        for (int64_t i = j; i < next; i++)
            p[i] = scale * rounded(p[i] / scale, terms);
    }
}

float attend_model(const attend_keys *keys, const attend_row *row, const etalon_model_options *model, float *out)
{
    if (row->see.first >= row->see.last)
        return attend(keys, row, out);
    const softmax_total total = attend_exactly(keys, row, out);
    compensated         sum[ETALON_MAX_HEAD_DIM] = { 0 };
    float               running = -INFINITY;
    for (int64_t first = row->see.first, next; first < row->see.last; first = next) {
        const int64_t end = (first / model->tile_keys + 1) * model->tile_keys;
        float         p[ATTENTION_MAX_TILE], tile = -INFINITY;
        next = least(end, row->see.last);
        for (int64_t j = 0; j < next - first; j++) {
            p[j] = score(keys, row, first + j);
            tile = p[j] > tile ? p[j] : tile;
        }
        running = tile > running ? tile : running;
        const float m = model->p_scale == ETALON_P_SCALE_TILE ? tile : running;
        for (int64_t j = 0; j < next - first; j++)
            p[j] = expf(p[j] - m);
        if (model->p_scale == ETALON_P_SCALE_BLOCK32)
            round_weights_block32(p, first, next - first, model->p_terms);
        else
            round_weights(p, next - first, model->p_terms);
        for (int64_t j = first; j < next; j += BLOCK_KEYS)
            add_block(keys, j, least(next - j, BLOCK_KEYS), p + (j - first), expf(m - total.m), sum);
    }
    finish_row(keys, row, sum, total.l, out);
    return total.m + logf(total.l);
}

void attend_store(const float *out, float lse, const etalon_tensor *to_out, const etalon_tensor *to_lse, int64_t t,
                  int64_t h)
{
    element_store_row(tensor_at3(to_out, t, h, 0), to_out->dtype, to_out->stride[2], out, to_out->shape[2]);
    if (!tensor_absent(to_lse))
        *(float *)tensor_at2(to_lse, h, t) = lse;
}
