#include "fmha_varlen.h"

#define OP "fmha_varlen"

static etalon_status check_tensors(const etalon_fmha_varlen_args *a)
{
    TRY(tensor_check(OP, "q", &a->q, 3, DTYPES_OPERAND));
    TRY(tensor_check(OP, "k", &a->k, 3, DTYPE_BIT(a->q.dtype)));
    TRY(tensor_check(OP, "v", &a->v, 3, DTYPE_BIT(a->q.dtype)));
    TRY(tensor_check(OP, "cu_seqlens_q", &a->cu_seqlens_q, 1, DTYPES_INDEX));
    TRY(tensor_check(OP, "cu_seqlens_k", &a->cu_seqlens_k, 1, DTYPE_BIT(a->cu_seqlens_q.dtype)));
    TRY(tensor_check(OP, "out", &a->out, 3, DTYPES_OUT));
    return ETALON_OK;
}

static etalon_status check_extents(const etalon_fmha_varlen_args *a, const fmha_varlen_problem *p)
{
    TRY(attention_check_heads(OP, p->heads, p->kv_heads, p->d_qk, p->d_v));
    TRY(tensor_check_extent(OP, "k", &a->k, 2, p->d_qk, "head dim of q"));
    TRY(tensor_check_extent(OP, "v", &a->v, 0, p->total_k, "tokens of k"));
    TRY(tensor_check_extent(OP, "v", &a->v, 1, p->kv_heads, "heads of k"));
    REQUIRE(p->batch >= 0, OP ": cu_seqlens_q.shape[0]: 0, expected B + 1");
    TRY(tensor_check_extent(OP, "cu_seqlens_k", &a->cu_seqlens_k, 0, p->batch + 1, "that of cu_seqlens_q"));
    TRY(tensor_check_extent(OP, "out", &a->out, 0, p->total_q, "tokens of q"));
    TRY(tensor_check_extent(OP, "out", &a->out, 1, p->heads, "heads of q"));
    TRY(tensor_check_extent(OP, "out", &a->out, 2, p->d_v, "head dim of v"));
    TRY(attention_check_lse(OP, &a->lse, p->heads, p->total_q));
    TRY(attention_check_descale(OP, "q_descale", &a->q_descale, "q", &a->q, p->batch, p->kv_heads));
    TRY(attention_check_descale(OP, "k_descale", &a->k_descale, "k", &a->k, p->batch, p->kv_heads));
    TRY(attention_check_descale(OP, "v_descale", &a->v_descale, "v", &a->v, p->batch, p->kv_heads));
    REQUIRE(p->max_seqlen_q >= 0, OP ": max_seqlen_q: %" PRId64 ", expected 0 or more", p->max_seqlen_q);
    REQUIRE(p->max_seqlen_k >= 0, OP ": max_seqlen_k: %" PRId64 ", expected 0 or more", p->max_seqlen_k);
    return ETALON_OK;
}

static etalon_status check_memory(const etalon_fmha_varlen_args *a)
{
    const char *const          names[] = { "q",         "k",         "v",         "cu_seqlens_q", "cu_seqlens_k",
                                           "q_descale", "k_descale", "v_descale", "lse",          "out" };
    const etalon_tensor *const all[] = {
        &a->q,         &a->k,         &a->v,         &a->cu_seqlens_q, &a->cu_seqlens_k,
        &a->q_descale, &a->k_descale, &a->v_descale, &a->lse,          &a->out
    };
    enum { INPUTS = 8, ALL = 10 };
    TRY(tensor_check_device(OP, names, all, ALL));
    if (!tensor_absent(&a->lse))
        TRY(tensor_check_output(OP, "lse", &a->lse, names, all, INPUTS));
    return tensor_check_output(OP, "out", &a->out, names, all, INPUTS + 1); /* lse included */
}

/* Host memory only. A longest sequence that is given must hold for every sequence. */
static etalon_status check_longest(const char *name, const etalon_tensor *cu, int64_t given)
{
    for (int64_t b = 0; b + 1 < cu->shape[0]; b++) {
        const int64_t length = index_at(cu, b + 1) - index_at(cu, b);
        REQUIRE(given == 0 || length <= given, OP ": %s: %" PRId64 ", but sequence %" PRId64 " has %" PRId64, name,
                given, b, length);
    }
    return ETALON_OK;
}

static etalon_status check_content(const fmha_varlen_problem *p)
{
    TRY(tensor_check_cu_seqlens(OP, "cu_seqlens_q", &p->cu_seqlens_q, p->total_q, "tokens of q"));
    TRY(tensor_check_cu_seqlens(OP, "cu_seqlens_k", &p->cu_seqlens_k, p->total_k, "tokens of k"));
    TRY(check_longest("max_seqlen_q", &p->cu_seqlens_q, p->max_seqlen_q));
    TRY(check_longest("max_seqlen_k", &p->cu_seqlens_k, p->max_seqlen_k));
    return ETALON_OK;
}

etalon_status fmha_varlen_check(const etalon_fmha_varlen_args *args, fmha_varlen_problem *p)
{
    etalon_fmha_varlen_args a;
    TRY(gate_copy_args(OP, &a, sizeof a, args, args == NULL ? 0 : args->size));
    TRY(check_tensors(&a));
    *p = (fmha_varlen_problem){ .total_q = a.q.shape[0],
                                .total_k = a.k.shape[0],
                                .heads = a.q.shape[1],
                                .kv_heads = a.k.shape[1],
                                .d_qk = a.q.shape[2],
                                .d_v = a.v.shape[2],
                                .batch = a.cu_seqlens_q.shape[0] - 1,
                                .q = a.q,
                                .k = a.k,
                                .v = a.v,
                                .cu_seqlens_q = a.cu_seqlens_q,
                                .cu_seqlens_k = a.cu_seqlens_k,
                                .out = a.out,
                                .lse = a.lse,
                                .descale = { a.q_descale, a.k_descale, a.v_descale },
                                .mask = attention_mask_of(a.causal, a.window_left, a.window_right),
                                .max_seqlen_q = a.max_seqlen_q,
                                .max_seqlen_k = a.max_seqlen_k,
                                .device = a.q.device,
                                .kernel = a.kernel };
    TRY(check_extents(&a, p));
    TRY(attention_check_scale(OP, a.softmax_scale, p->d_qk, &p->softmax_scale));
    TRY(attention_check_model(OP, &a.model, &p->model));
    TRY(check_memory(&a));
    return p->device == ETALON_HOST ? check_content(p) : ETALON_OK;
}
