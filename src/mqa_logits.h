/* What a kernel of mqa_logits may assume: the only thing it sees of a call. */
#ifndef ETALON_MQA_LOGITS_PROBLEM_H
#define ETALON_MQA_LOGITS_PROBLEM_H

#include "attend.h"
#include "gate.h"

#include <etalon/mqa_logits.h>

/* Keys in blocks of a cache: k and kv_scale are then those of block 0. */
typedef struct mqa_logits_pages {
    const int32_t *table; /* NULL: the keys are the rows of k */
    int64_t        table_stride, block_size;
    int64_t        k_bytes, scale_bytes; /* from one block to the next */
} mqa_logits_pages;

/* Filled by mqa_logits_check, or for one sequence by mqa_logits_paged_sequence. */
typedef struct mqa_logits_problem {
    int64_t       m, n, h, d;
    int64_t       columns;    /* of logits: n, unless compressed or paged */
    bool          compressed; /* key n of row m in column n - ks[m] */
    etalon_tensor q, k, kv_scale, weights, ks, ke, logits;
    int32_t       device;
    bool          clean;
    const char   *kernel; /* the row that the caller named, or NULL */

    mqa_logits_pages pages;
} mqa_logits_problem;

/* The one place that doubts the caller. */
etalon_status mqa_logits_check(const etalon_mqa_logits_args *args, mqa_logits_problem *p);

/* Keys that one row sees and has columns for. */
key_range mqa_logits_window(const mqa_logits_problem *p, int64_t m);

/* The row's logit of key n, whose window is `see`, stands in column n - mqa_logits_origin(). */
static inline int64_t mqa_logits_origin(const mqa_logits_problem *p, key_range see)
{
    return p->compressed ? see.first : 0;
}

/* The keys, and in the place of V their scales. */
static inline attend_keys mqa_logits_keys(const mqa_logits_problem *p)
{
    return (attend_keys){ .k = p->k.data,
                          .v = p->kv_scale.data,
                          .dtype = p->k.dtype,
                          .k_slot = p->k.stride[0],
                          .v_slot = p->kv_scale.stride[0] * (int64_t)sizeof(float),
                          .k_page = p->pages.k_bytes,
                          .v_page = p->pages.scale_bytes,
                          .k_stride = p->k.stride[1],
                          .v_stride = 1,
                          .d_qk = p->d,
                          .d_v = 1,
                          .page_size = p->pages.table == NULL ? INT64_MAX : p->pages.block_size,
                          .table = p->pages.table,
                          .table_stride = p->pages.table_stride };
}

static inline const uint8_t *mqa_logits_key(const attend_keys *keys, int64_t n)
{
    return (const uint8_t *)attend_key_at(keys, keys->k, keys->k_page, keys->k_slot, n);
}

static inline float mqa_logits_scale(const attend_keys *keys, int64_t n)
{
    return *(const float *)attend_key_at(keys, keys->v, keys->v_page, keys->v_slot, n);
}

/* What a kernel does with a problem whose tensors lie on the device. */
typedef etalon_status mqa_logits_launch(const etalon_context *ctx, const char *stem, const mqa_logits_problem *there,
                                        void *stream);

/* Has the problem there while `launch` runs. */
etalon_status mqa_logits_on_device(const etalon_context *ctx, const mqa_logits_problem *p, void *stream,
                                   const char *stem, mqa_logits_launch *launch);

#define KERNEL(stem, needs, workspace, refuse)                                        \
    size_t etalon_##stem##_workspace(const etalon_context *ctx, const void *problem); \
    etalon_status etalon_##stem(const etalon_context *ctx, const mqa_logits_problem *p, etalon_workspace work);
#include "mqa_logits_kernels.def"
#undef KERNEL

/* Of the rows for gfx950. */
const char *mqa_logits_refuse_h32_gfx950(const void *problem);
const char *mqa_logits_refuse_h32_small_gfx950(const void *problem);
const char *mqa_logits_refuse_h64_gfx950(const void *problem);
const char *mqa_logits_refuse_h64_small_gfx950(const void *problem);

#endif
