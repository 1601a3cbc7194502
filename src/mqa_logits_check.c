#include "mqa_logits.h"

#define OP "mqa_logits"

static etalon_status check_tensors(const etalon_mqa_logits_args *a)
{
    TRY(tensor_check(OP, "q", &a->q, 3, DTYPES_FP8));
    TRY(tensor_check(OP, "k", &a->k, 2, DTYPES_FP8));
    TRY(tensor_check(OP, "kv_scale", &a->kv_scale, 1, DTYPE_BIT(ETALON_F32)));
    TRY(tensor_check(OP, "weights", &a->weights, 2, DTYPE_BIT(ETALON_F32)));
    TRY(tensor_check(OP, "cu_seqlen_ks", &a->cu_seqlen_ks, 1, DTYPES_INDEX));
    TRY(tensor_check(OP, "cu_seqlen_ke", &a->cu_seqlen_ke, 1, DTYPES_INDEX));
    TRY(tensor_check(OP, "logits", &a->logits, 2, DTYPE_BIT(ETALON_F32)));
    return ETALON_OK;
}

static etalon_status check_extents(const etalon_mqa_logits_args *a)
{
    const int64_t m = a->q.shape[0], h = a->q.shape[1], d = a->q.shape[2], n = a->k.shape[0];
    REQUIRE(h >= 1, OP ": q.shape[1]: %" PRId64 " heads, expected 1 or more", h);
    REQUIRE(d >= 1 && d <= ETALON_MAX_HEAD_DIM, OP ": q.shape[2]: head dim %" PRId64 ", expected 1 to %d", d,
            ETALON_MAX_HEAD_DIM);
    TRY(tensor_check_extent(OP, "k", &a->k, 1, d, "D of q"));
    TRY(tensor_check_extent(OP, "kv_scale", &a->kv_scale, 0, n, "N of k"));
    TRY(tensor_check_extent(OP, "weights", &a->weights, 0, m, "M of q"));
    TRY(tensor_check_extent(OP, "weights", &a->weights, 1, h, "H of q"));
    TRY(tensor_check_extent(OP, "cu_seqlen_ks", &a->cu_seqlen_ks, 0, m, "M of q"));
    TRY(tensor_check_extent(OP, "cu_seqlen_ke", &a->cu_seqlen_ke, 0, m, "M of q"));
    TRY(tensor_check_extent(OP, "logits", &a->logits, 0, m, "M of q"));
    REQUIRE(a->max_seqlen_k >= 0, OP ": max_seqlen_k: %" PRId64 ", expected 0 or more", a->max_seqlen_k);
    if (a->max_seqlen_k > 0)
        TRY(tensor_check_extent(OP, "logits", &a->logits, 1, a->max_seqlen_k, "max_seqlen_k"));
    else
        TRY(tensor_check_extent(OP, "logits", &a->logits, 1, n, "N of k"));
    return ETALON_OK;
}

etalon_status mqa_logits_check(const etalon_mqa_logits_args *args, mqa_logits_problem *p)
{
    etalon_mqa_logits_args a;
    TRY(gate_copy_args(OP, &a, sizeof a, args, args == NULL ? 0 : args->size));
    const char *const          names[] = { "q", "k", "kv_scale", "weights", "cu_seqlen_ks", "cu_seqlen_ke", "logits" };
    const etalon_tensor *const all[] = { &a.q,     &a.k, &a.kv_scale, &a.weights, &a.cu_seqlen_ks, &a.cu_seqlen_ke,
                                         &a.logits };
    enum { INPUTS = 6, ALL = 7 };
    TRY(check_tensors(&a));
    TRY(check_extents(&a));
    TRY(tensor_check_device(OP, names, all, ALL));
    TRY(tensor_check_output(OP, "logits", &a.logits, names, all, INPUTS));
    *p = (mqa_logits_problem){ .m = a.q.shape[0],
                               .n = a.k.shape[0],
                               .h = a.q.shape[1],
                               .d = a.q.shape[2],
                               .columns = a.logits.shape[1],
                               .compressed = a.max_seqlen_k > 0,
                               .q = a.q,
                               .k = a.k,
                               .kv_scale = a.kv_scale,
                               .weights = a.weights,
                               .ks = a.cu_seqlen_ks,
                               .ke = a.cu_seqlen_ke,
                               .logits = a.logits,
                               .device = a.q.device,
                               .clean = a.clean_logits != 0,
                               .kernel = a.kernel };
    return ETALON_OK;
}

static int64_t clamp(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

key_range mqa_logits_window(const mqa_logits_problem *p, int64_t m)
{
    const int64_t first = clamp(index_at(&p->ks, m), 0, p->n);
    const int64_t most = p->compressed && p->columns < p->n - first ? first + p->columns : p->n;
    return (key_range){ first, clamp(index_at(&p->ke, m), first, most) };
}
