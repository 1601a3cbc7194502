#include "logits.h"

bool logits_are_of(const oracle_op *op)
{
    return op->id == ORACLE_MQA_LOGITS || op->id == ORACLE_MQA_LOGITS_PAGED;
}

static bool paged(const oracle_problem *problem)
{
    return problem->op->id == ORACLE_MQA_LOGITS_PAGED;
}

bool logits_are_clean(const oracle_problem *problem)
{
    return (paged(problem) ? problem->args.mqa_logits_paged.clean_logits : problem->args.mqa_logits.clean_logits) != 0;
}

static int64_t clamp(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

static int64_t columns_of(const oracle_problem *problem)
{
    int64_t shape[3];
    oracle_output_shape(problem, 0, shape);
    return shape[1];
}

/* The view at index i of its first dimension, without that. */
static etalon_tensor at(etalon_tensor t, int64_t i)
{
    t.data = (char *)t.data + i * t.stride[0] * (int64_t)etalon_dtype_bytes(t.dtype);
    t.rank--;
    for (int32_t d = 0; d < t.rank; d++) {
        t.shape[d] = t.shape[d + 1];
        t.stride[d] = t.stride[d + 1];
    }
    return t;
}

int64_t logits_origin(const oracle_problem *problem, int64_t m)
{
    const etalon_mqa_logits_args *p = &problem->args.mqa_logits;
    if (paged(problem) || p->max_seqlen_k <= 0)
        return 0;
    return clamp(oracle_index(&p->cu_seqlen_ks, m), 0, p->k.shape[0]);
}

static logits_window paged_window(const oracle_problem *problem, int64_t m)
{
    const etalon_mqa_logits_paged_args *p = &problem->args.mqa_logits_paged;
    const int64_t                       next_n = p->q.shape[1], room = p->block_tables.shape[1] * p->kv_cache.shape[1];
    const int64_t                       columns = columns_of(problem);
    const etalon_tensor                 lens = at(p->context_lens, m / next_n);
    return (logits_window){ 0, clamp(oracle_index(&lens, m % next_n), 0, room < columns ? room : columns) };
}

logits_window logits_window_of(const oracle_problem *problem, int64_t m)
{
    const etalon_mqa_logits_args *p = &problem->args.mqa_logits;
    if (paged(problem))
        return paged_window(problem, m);
    const int64_t n = p->k.shape[0], first = clamp(oracle_index(&p->cu_seqlen_ks, m), 0, n);
    const int64_t last = clamp(oracle_index(&p->cu_seqlen_ke, m), first, n), origin = logits_origin(problem, m);
    return (logits_window){ first - origin, clamp(last - origin, 0, columns_of(problem)) };
}

const etalon_tensor *logits_weights(const oracle_problem *problem)
{
    return paged(problem) ? &problem->args.mqa_logits_paged.weights : &problem->args.mqa_logits.weights;
}

etalon_tensor logits_query(const oracle_problem *problem, int64_t m)
{
    const etalon_mqa_logits_paged_args *p = &problem->args.mqa_logits_paged;
    if (paged(problem))
        return at(at(p->q, m / p->q.shape[1]), m % p->q.shape[1]);
    return at(problem->args.mqa_logits.q, m);
}

/* Slot n % block_size of its block: the keys of all slots come first, then their scales. */
static etalon_tensor paged_key(const etalon_mqa_logits_paged_args *p, int64_t b, int64_t n, float *scale)
{
    const int64_t       size = p->kv_cache.shape[1], d = p->q.shape[3], slot = n % size;
    const etalon_tensor table = at(p->block_tables, b);
    const char         *block = (const char *)p->kv_cache.data + oracle_index(&table, n / size) * p->kv_cache.stride[0];
    *scale = *(const float *)(block + size * d + slot * (int64_t)sizeof *scale);
    return etalon_tensor_dense((char *)(uintptr_t)(block + slot * d),
                               p->kv_cache.dtype == ETALON_U8 ? p->q.dtype : p->kv_cache.dtype, 1, &d);
}

etalon_tensor logits_key(const oracle_problem *problem, int64_t m, int64_t column, float *scale)
{
    const etalon_mqa_logits_args *p = &problem->args.mqa_logits;
    if (paged(problem))
        return paged_key(&problem->args.mqa_logits_paged, m / problem->args.mqa_logits_paged.q.shape[1], column, scale);
    const int64_t n = column + logits_origin(problem, m);
    *scale = ((const float *)p->kv_scale.data)[n * p->kv_scale.stride[0]];
    return at(p->k, n);
}
