/* What a kernel of pa_mtp may assume: the only thing it sees of a call. */
#ifndef ETALON_PA_MTP_PROBLEM_H
#define ETALON_PA_MTP_PROBLEM_H

#include "attention_check.h"
#include "gate.h"

#include <etalon/pa_mtp.h>

/* Filled by pa_mtp_check alone. The caches read [pages, page_size, Hkv, D] whatever the layout: strides tell. */
typedef struct pa_mtp_problem {
    int64_t              tokens, heads, kv_heads, d_qk, d_v;
    int64_t              batch, pages, page_size;
    etalon_tensor        q, k, v, block_tables, seq_lens, cu_seqlens_q, out, lse;
    attention_descales   descale;
    attention_mask       mask;
    double               softmax_scale;
    int32_t              device;
    etalon_model_options model;
    const char          *kernel; /* the row that the caller named, or NULL */
} pa_mtp_problem;

/* The one place that doubts the caller. */
etalon_status pa_mtp_check(const etalon_pa_mtp_args *args, pa_mtp_problem *p);

/* Why the kernel for gfx950 with so many query heads a KV head does not serve it; NULL if it does. */
const char *pa_mtp_refuse_gfx950(const pa_mtp_problem *p, int64_t ratio);

/* What a kernel does with a problem whose tensors lie on the device, `work` too. */
typedef etalon_status pa_mtp_launch(const etalon_context *ctx, const char *stem, const pa_mtp_problem *there,
                                    void *work, void *stream);

/* Has the problem there, with so many bytes of workspace, while `launch` runs. */
etalon_status pa_mtp_on_device(const etalon_context *ctx, const pa_mtp_problem *p, etalon_workspace work, size_t bytes,
                               const char *stem, pa_mtp_launch *launch);

#define KERNEL(stem, needs, workspace, refuse)                                        \
    size_t etalon_##stem##_workspace(const etalon_context *ctx, const void *problem); \
    etalon_status etalon_##stem(const etalon_context *ctx, const pa_mtp_problem *p, etalon_workspace work);
#include "pa_mtp_kernels.def"
#undef KERNEL

#endif
