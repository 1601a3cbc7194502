#include "mqa_logits_paged.h"

#define OP "mqa_logits_paged"

enum { SCALE = sizeof(float) };

static etalon_status check_tensors(const etalon_mqa_logits_paged_args *a)
{
    const int32_t rank = a->kv_cache.rank == 4 ? 4 : 3;
    TRY(tensor_check(OP, "q", &a->q, 4, DTYPES_FP8));
    TRY(tensor_check(OP, "kv_cache", &a->kv_cache, rank, DTYPES_FP8 | DTYPE_BIT(ETALON_U8)));
    if (rank == 4)
        TRY(tensor_check_extent(OP, "kv_cache", &a->kv_cache, 2, 1, "one head"));
    TRY(tensor_check(OP, "weights", &a->weights, 2, DTYPE_BIT(ETALON_F32)));
    TRY(tensor_check(OP, "context_lens", &a->context_lens, 2, DTYPES_INDEX));
    TRY(tensor_check(OP, "block_tables", &a->block_tables, 2, DTYPE_BIT(ETALON_I32)));
    TRY(tensor_check(OP, "logits", &a->logits, 2, DTYPE_BIT(ETALON_F32)));
    return ETALON_OK;
}

static etalon_status check_extents(const etalon_mqa_logits_paged_args *a, const mqa_logits_paged_problem *p)
{
    const int32_t last = a->kv_cache.rank - 1;
    int64_t       rows, room;
    REQUIRE(p->next_n >= 1, OP ": q.shape[1]: next_n %" PRId64 ", expected 1 or more", p->next_n);
    REQUIRE(p->h >= 1, OP ": q.shape[2]: %" PRId64 " heads, expected 1 or more", p->h);
    REQUIRE(p->d >= 1 && p->d <= ETALON_MAX_HEAD_DIM, OP ": q.shape[3]: head dim %" PRId64 ", expected 1 to %d", p->d,
            ETALON_MAX_HEAD_DIM);
    REQUIRE(!__builtin_mul_overflow(p->batch, p->next_n, &rows), OP ": q: B times next_n overflows 64 bits");
    REQUIRE(p->block_size >= 1, OP ": kv_cache.shape[1]: block_size %" PRId64 ", expected 1 or more", p->block_size);
    TRY(tensor_check_extent(OP, "kv_cache", &a->kv_cache, last, p->d + SCALE, "D of q and 4 bytes of scale"));
    TRY(tensor_check_extent(OP, "weights", &a->weights, 0, rows, "B next_n of q"));
    TRY(tensor_check_extent(OP, "weights", &a->weights, 1, p->h, "H of q"));
    TRY(tensor_check_extent(OP, "context_lens", &a->context_lens, 0, p->batch, "B of q"));
    TRY(tensor_check_extent(OP, "context_lens", &a->context_lens, 1, p->next_n, "next_n of q"));
    TRY(tensor_check_extent(OP, "block_tables", &a->block_tables, 0, p->batch, "B of q"));
    TRY(tensor_check_extent(OP, "logits", &a->logits, 0, rows, "B next_n of q"));
    REQUIRE(a->max_context_len >= 0, OP ": max_context_len: %" PRId64 ", expected 0 or more", a->max_context_len);
    REQUIRE(!__builtin_mul_overflow(a->block_tables.shape[1], p->block_size, &room),
            OP ": block_tables.shape[1]: %" PRId64 " blocks of %" PRId64 " keys overflow 64 bits",
            a->block_tables.shape[1], p->block_size);
    if (a->max_context_len > 0)
        return tensor_check_extent(OP, "logits", &a->logits, 1, a->max_context_len, "max_context_len");
    return tensor_check_extent(OP, "logits", &a->logits, 1, room, "columns of block_tables times block_size");
}

/* A block is one stretch of bytes, and its scales are aligned. */
static etalon_status check_blocks(const etalon_tensor *cache, const mqa_logits_paged_problem *p)
{
    const int32_t last = cache->rank - 1;
    if (tensor_empty(cache))
        return ETALON_OK;
    REQUIRE(cache->stride[last] == 1, OP ": kv_cache.stride[%" PRId32 "]: %" PRId64 ", expected 1: a block has no gaps",
            last, cache->stride[last]);
    REQUIRE(p->block_size == 1 || cache->stride[1] == p->d + SCALE,
            OP ": kv_cache.stride[1]: %" PRId64 ", expected %" PRId64 " (D + 4): a block has no gaps", cache->stride[1],
            p->d + SCALE);
    REQUIRE(p->block_size * p->d % SCALE == 0,
            OP ": kv_cache: %" PRId64 " x %" PRId64 " bytes of keys a block, expected a multiple of 4", p->block_size,
            p->d);
    REQUIRE(p->blocks == 1 || cache->stride[0] % SCALE == 0,
            OP ": kv_cache.stride[0]: %" PRId64 ", expected a multiple of 4", cache->stride[0]);
    REQUIRE((uintptr_t)cache->data % SCALE == 0, OP ": kv_cache: address %p, expected a multiple of 4", cache->data);
    return ETALON_OK;
}

static int64_t clamp(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

/* Keys that the longest row of sequence b sees. */
static int64_t longest_row(const mqa_logits_paged_problem *p, int64_t b)
{
    etalon_tensor lens = p->context_lens;
    int64_t       most = 0;
    lens.data = tensor_at2(&p->context_lens, b, 0);
    lens.stride[0] = lens.stride[1];
    for (int64_t t = 0; t < p->next_n; t++)
        most = clamp(index_at(&lens, t), most, p->n);
    return most;
}

/* Host memory only: every block id that a row needs. */
static etalon_status check_content(const mqa_logits_paged_problem *p)
{
    for (int64_t b = 0; b < p->batch; b++) {
        const int64_t keys = longest_row(p, b), need = keys / p->block_size + (keys % p->block_size != 0);
        for (int64_t j = 0; j < need; j++) {
            const int32_t block = *(const int32_t *)tensor_at2(&p->block_tables, b, j);
            REQUIRE(block >= 0 && block < p->blocks,
                    OP ": block_tables[%" PRId64 ", %" PRId64 "]: block %" PRId32 ", expected 0 to %" PRId64, b, j,
                    block, p->blocks - 1);
        }
    }
    return ETALON_OK;
}

static etalon_status check_memory(const etalon_mqa_logits_paged_args *a)
{
    const char *const          names[] = { "q", "kv_cache", "weights", "context_lens", "block_tables", "logits" };
    const etalon_tensor *const all[] = { &a->q,     &a->kv_cache, &a->weights, &a->context_lens, &a->block_tables,
                                         &a->logits };
    enum { INPUTS = 5, ALL = 6 };
    TRY(tensor_check_device(OP, names, all, ALL));
    return tensor_check_output(OP, "logits", &a->logits, names, all, INPUTS);
}

/* The two planes of the cache. */
static void split_cache(const etalon_tensor *cache, mqa_logits_paged_problem *p)
{
    p->k = (etalon_tensor){ .data = cache->data,
                            .dtype = cache->dtype == ETALON_U8 ? p->q.dtype : cache->dtype,
                            .device = cache->device,
                            .rank = 3,
                            .shape = { p->blocks, p->block_size, p->d },
                            .stride = { cache->stride[0], p->d, 1 } };
    p->kv_scale = (etalon_tensor){ .data = (char *)cache->data + p->block_size * p->d,
                                   .dtype = ETALON_F32,
                                   .device = cache->device,
                                   .rank = 2,
                                   .shape = { p->blocks, p->block_size },
                                   .stride = { cache->stride[0] / SCALE, 1 } };
}

etalon_status mqa_logits_paged_check(const etalon_mqa_logits_paged_args *args, mqa_logits_paged_problem *p)
{
    etalon_mqa_logits_paged_args a;
    TRY(gate_copy_args(OP, &a, sizeof a, args, args == NULL ? 0 : args->size));
    TRY(check_tensors(&a));
    *p = (mqa_logits_paged_problem){ .batch = a.q.shape[0],
                                     .next_n = a.q.shape[1],
                                     .h = a.q.shape[2],
                                     .d = a.q.shape[3],
                                     .columns = a.logits.shape[1],
                                     .blocks = a.kv_cache.shape[0],
                                     .block_size = a.kv_cache.shape[1],
                                     .q = a.q,
                                     .weights = a.weights,
                                     .context_lens = a.context_lens,
                                     .block_tables = a.block_tables,
                                     .logits = a.logits,
                                     .device = a.q.device,
                                     .clean = a.clean_logits != 0,
                                     .kernel = a.kernel };
    TRY(check_extents(&a, p));
    TRY(check_blocks(&a.kv_cache, p));
    TRY(check_memory(&a));
    p->n = clamp(a.block_tables.shape[1] * p->block_size, 0, p->columns);
    split_cache(&a.kv_cache, p);
    return p->device == ETALON_HOST ? check_content(p) : ETALON_OK;
}

/* The view without its first dimension, at index i of it. */
static etalon_tensor part(etalon_tensor t, int64_t i)
{
    t.data = (char *)t.data + i * t.stride[0] * (int64_t)etalon_dtype_bytes(t.dtype);
    t.rank--;
    for (int32_t d = 0; d < t.rank; d++) {
        t.shape[d] = t.shape[d + 1];
        t.stride[d] = t.stride[d + 1];
    }
    return t;
}

/* Rows [first, first + count). */
static etalon_tensor rows(etalon_tensor t, int64_t first, int64_t count)
{
    t.data = (char *)t.data + first * t.stride[0] * (int64_t)etalon_dtype_bytes(t.dtype);
    t.shape[0] = count;
    return t;
}

mqa_logits_problem mqa_logits_paged_sequence(const mqa_logits_paged_problem *p, int64_t b)
{
    static int32_t      zero;
    const etalon_tensor starts = { .data = &zero, .dtype = ETALON_I32, .device = ETALON_HOST, .rank = 1 };
    mqa_logits_problem  one = { .m = p->next_n,
                                .n = p->n,
                                .h = p->h,
                                .d = p->d,
                                .columns = p->columns,
                                .q = part(p->q, b),
                                .k = part(p->k, 0),
                                .kv_scale = part(p->kv_scale, 0),
                                .weights = rows(p->weights, b * p->next_n, p->next_n),
                                .ks = starts, /* 0 for every row, by a stride of 0 */
                                .ke = part(p->context_lens, b),
                                .logits = rows(p->logits, b * p->next_n, p->next_n),
                                .device = p->device,
                                .clean = p->clean };
    one.ks.shape[0] = p->next_n;
    one.pages = (mqa_logits_pages){ .table = (const int32_t *)tensor_at2(&p->block_tables, b, 0),
                                    .table_stride = p->block_tables.stride[1],
                                    .block_size = p->block_size,
                                    .k_bytes = p->k.stride[0],
                                    .scale_bytes = p->kv_scale.stride[0] * SCALE };
    return one;
}
