#include "attention_check.h"

#include <math.h>

enum { MODEL_TILE = 128, MODEL_TILE_STEP = 32 };

/* Beyond any key and far from overflow when two of them are added. */
static const int64_t unlimited = INT64_MAX / 4;

attention_mask attention_mask_of(int32_t causal, int32_t window_left, int32_t window_right)
{
    return (attention_mask){ .left = window_left < 0 ? unlimited : window_left,
                             .right = causal             ? 0
                                      : window_right < 0 ? unlimited
                                                         : window_right };
}

key_range attention_visible(attention_mask mask, int64_t i, int64_t sq, int64_t sk)
{
    const int64_t diagonal = i + sk - sq;
    const int64_t first = diagonal - mask.left, last = diagonal + mask.right + 1;
    key_range     see = { first < 0 ? 0 : first, last > sk ? sk : last };
    if (see.first >= see.last)
        see.first = see.last = 0;
    return see;
}

float attention_descale(const etalon_tensor *descale, int64_t b, int64_t kv_head)
{
    if (tensor_absent(descale))
        return 1.0f;
    if (descale->rank < 2)
        return *(const float *)descale->data;
    return *(const float *)tensor_at2(descale, b, kv_head);
}

int64_t attention_sequence(const etalon_tensor *cu_seqlens, int64_t t)
{
    int64_t low = 0, high = cu_seqlens->shape[0] - 1; /* cu[low] <= t < cu[high] */
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (index_at(cu_seqlens, middle) <= t)
            low = middle;
        else
            high = middle;
    }
    return low;
}

etalon_status attention_check_heads(const char *op, int64_t heads, int64_t kv_heads, int64_t d_qk, int64_t d_v)
{
    REQUIRE(heads >= 1, "%s: %" PRId64 " query heads, expected 1 or more", op, heads);
    REQUIRE(kv_heads >= 1, "%s: %" PRId64 " KV heads, expected 1 or more", op, kv_heads);
    REQUIRE(heads % kv_heads == 0, "%s: %" PRId64 " query heads, expected a multiple of the %" PRId64 " KV heads", op,
            heads, kv_heads);
    REQUIRE(d_qk >= 1 && d_qk <= ETALON_MAX_HEAD_DIM, "%s: head dim of q: %" PRId64 ", expected 1 to %d", op, d_qk,
            ETALON_MAX_HEAD_DIM);
    REQUIRE(d_v >= 1 && d_v <= ETALON_MAX_HEAD_DIM, "%s: head dim of v: %" PRId64 ", expected 1 to %d", op, d_v,
            ETALON_MAX_HEAD_DIM);
    return ETALON_OK;
}

static etalon_status check_factor(const char *op, const char *name, const etalon_tensor *descale, int64_t b, int64_t h)
{
    const double factor = attention_descale(descale, b, h);
    REQUIRE(isfinite(factor) && factor > 0.0, "%s: %s[%" PRId64 ", %" PRId64 "]: %g, expected finite and positive", op,
            name, b, h, factor);
    return ETALON_OK;
}

etalon_status attention_check_descale(const char *op, const char *name, const etalon_tensor *descale,
                                      const char *of_name, const etalon_tensor *of, int64_t batch, int64_t kv_heads)
{
    if (tensor_absent(descale))
        return ETALON_OK;
    REQUIRE(dtype_is_fp8(of->dtype), "%s: %s: given, but %s is %s and not FP8", op, name, of_name,
            etalon_dtype_name(of->dtype));
    const int32_t rank = descale->rank;
    REQUIRE(rank >= 0 && rank <= 2, "%s: %s: rank %" PRId32 ", expected (), (1) or (B, Hkv)", op, name, rank);
    TRY(tensor_check(op, name, descale, rank, DTYPE_BIT(ETALON_F32)));
    if (rank == 1)
        TRY(tensor_check_extent(op, name, descale, 0, 1, "one factor a tensor"));
    if (rank == 2) {
        TRY(tensor_check_extent(op, name, descale, 0, batch, "B"));
        TRY(tensor_check_extent(op, name, descale, 1, kv_heads, "Hkv"));
    }
    if (descale->device != ETALON_HOST)
        return ETALON_OK;
    if (rank < 2)
        return check_factor(op, name, descale, 0, 0);
    for (int64_t b = 0; b < batch; b++)
        for (int64_t h = 0; h < kv_heads; h++)
            TRY(check_factor(op, name, descale, b, h));
    return ETALON_OK;
}

etalon_status attention_check_scale(const char *op, double softmax_scale, int64_t d_qk, double *scale)
{
    REQUIRE(isfinite(softmax_scale) && softmax_scale >= 0.0,
            "%s: softmax_scale: %g, expected finite and positive, or 0 for 1 / sqrt(Dqk)", op, softmax_scale);
    *scale = softmax_scale > 0.0 ? softmax_scale : 1.0 / sqrt((double)d_qk);
    return ETALON_OK;
}

etalon_status attention_check_model(const char *op, const etalon_model_options *options, etalon_model_options *checked)
{
    REQUIRE(options->p_scale >= ETALON_P_SCALE_FIXED && options->p_scale <= ETALON_P_SCALE_BLOCK32,
            "%s: model.p_scale: %d, expected a value of etalon_p_scale", op, (int)options->p_scale);
    REQUIRE(options->tile_keys >= 0 && options->tile_keys <= ATTENTION_MAX_TILE &&
                options->tile_keys % MODEL_TILE_STEP == 0,
            "%s: model.tile_keys: %" PRId32 ", expected a multiple of %d up to %d, or 0 for %d", op, options->tile_keys,
            MODEL_TILE_STEP, ATTENTION_MAX_TILE, MODEL_TILE);
    REQUIRE(options->p_terms >= 0 && options->p_terms <= 2,
            "%s: model.p_terms: %" PRId32 ", expected 1 or 2, or 0 for 1", op, options->p_terms);
    *checked = *options;
    if (checked->tile_keys == 0)
        checked->tile_keys = MODEL_TILE;
    if (checked->p_terms == 0)
        checked->p_terms = 1;
    return ETALON_OK;
}

etalon_status attention_check_lse(const char *op, const etalon_tensor *lse, int64_t heads, int64_t tokens)
{
    if (tensor_absent(lse))
        return ETALON_OK;
    TRY(tensor_check(op, "lse", lse, 2, DTYPE_BIT(ETALON_F32)));
    TRY(tensor_check_extent(op, "lse", lse, 0, heads, "Hq"));
    TRY(tensor_check_extent(op, "lse", lse, 1, tokens, "rows of q"));
    return ETALON_OK;
}
