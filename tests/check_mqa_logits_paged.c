/* The contract of mqa_logits_paged: what it takes, what it refuses and in which words, which row serves a call, and a
 * case worked by hand. */
#include "mqa_logits_paged.h"

#include "fp8.h"
#include "testing.h"

#include <math.h>

enum { B = 2, T = 2, H = 2, D = 6, BLOCKS = 5, SIZE = 2, TABLE = 3, ROWS = B * T, COLUMNS = TABLE * SIZE };
enum { BLOCK_BYTES = SIZE * (D + 4) };

typedef struct fixture {
    etalon_mqa_logits_paged_args args;
    uint8_t                      q[B * T * H * D];
    _Alignas(float) uint8_t cache[BLOCKS * BLOCK_BYTES];
    float           weights[ROWS * H], logits[ROWS * 8];
    int32_t         lens[B * T], tables[B * TABLE];
    etalon_context *ctx;
} fixture;

static etalon_tensor dense(void *data, etalon_dtype dtype, int32_t rank, int64_t n0, int64_t n1, int64_t n2, int64_t n3)
{
    const int64_t shape[] = { n0, n1, n2, n3 };
    return etalon_tensor_dense(data, dtype, rank, shape);
}

static double key_digit(int block, int slot, int d)
{
    return (double)((block * 7 + slot * 3 + d * 5) % 5 - 2);
}

static float scale_of(int block, int slot)
{
    return ldexpf(1.0f, block - 2 * slot);
}

/* Planar: the keys of all slots, then their scales. */
static void fill_cache(fixture *f)
{
    for (int block = 0; block < BLOCKS; block++)
        for (int slot = 0; slot < SIZE; slot++) {
            const float scale = scale_of(block, slot);
            uint8_t    *at = f->cache + block * BLOCK_BYTES;
            for (int d = 0; d < D; d++)
                at[slot * D + d] = e4m3fn_of_f32((float)key_digit(block, slot, d), FP8_SATURATE);
            memcpy(at + SIZE * D + slot * 4, &scale, sizeof scale);
        }
}

static void set_up(fixture *f)
{
    *f =
        (fixture){ .args = ETALON_MQA_LOGITS_PAGED_ARGS_INIT, .lens = { 2, 3, 0, 5 }, .tables = { 3, 1, -1, 4, 0, 2 } };
    for (int i = 0; i < B * T * H * D; i++)
        f->q[i] = e4m3fn_of_f32((float)(i % 4 - 1), FP8_SATURATE);
    for (int i = 0; i < ROWS * H; i++)
        f->weights[i] = i % 2 ? -0.5f : 2.0f;
    for (int i = 0; i < ROWS * 8; i++)
        f->logits[i] = -77.0f;
    fill_cache(f);
    etalon_mqa_logits_paged_args *a = &f->args;
    a->q = dense(f->q, ETALON_E4M3FN, 4, B, T, H, D);
    a->kv_cache = dense(f->cache, ETALON_E4M3FN, 3, BLOCKS, SIZE, D + 4, 0);
    a->weights = dense(f->weights, ETALON_F32, 2, ROWS, H, 0, 0);
    a->context_lens = dense(f->lens, ETALON_I32, 2, B, T, 0, 0);
    a->block_tables = dense(f->tables, ETALON_I32, 2, B, TABLE, 0, 0);
    a->logits = dense(f->logits, ETALON_F32, 2, ROWS, COLUMNS, 0, 0);
    ck_assert_ok(etalon_context_create(NULL, &f->ctx));
}

static etalon_status run(fixture *f)
{
    etalon_workspace    work = { 0 };
    const etalon_status refused = etalon_mqa_logits_paged_workspace_bytes(f->ctx, &f->args, &work.bytes);
    if (refused != ETALON_OK)
        return refused;
    work.data = aligned_alloc(ETALON_WORKSPACE_ALIGN, work.bytes);
    const etalon_status status = etalon_mqa_logits_paged(f->ctx, &f->args, work);
    free(work.data);
    return status;
}

/* One statement breaks a good call: the sentence holds the words, and no output changed. */
#define REJECT(statement, words)                                          \
    do {                                                                  \
        fixture f;                                                        \
        set_up(&f);                                                       \
        etalon_mqa_logits_paged_args *a = &f.args;                        \
        (void)a;                                                          \
        statement;                                                        \
        ck_assert_rejects(run(&f), ETALON_ERROR_INVALID_ARGUMENT, words); \
        for (int i = 0; i < ROWS * 8; i++)                                \
            ck_assert_float_eq(f.logits[i], -77.0f);                      \
        etalon_context_destroy(f.ctx);                                    \
    } while (0)

START_TEST(refuses_wrong_tensors)
{
    REJECT(a->q.data = NULL, "mqa_logits_paged: q: missing");
    REJECT(a->kv_cache.data = NULL, "mqa_logits_paged: kv_cache: missing");
    REJECT(a->weights.data = NULL, "mqa_logits_paged: weights: missing");
    REJECT(a->context_lens.data = NULL, "mqa_logits_paged: context_lens: missing");
    REJECT(a->block_tables.data = NULL, "mqa_logits_paged: block_tables: missing");
    REJECT(a->logits.data = NULL, "mqa_logits_paged: logits: missing");
    REJECT(a->q.dtype = ETALON_BF16, "q: dtype bf16, expected e4m3fn or e4m3fnuz");
    REJECT(a->q.rank = 3, "q: rank 3, expected 4");
    REJECT(a->kv_cache.dtype = ETALON_F32, "kv_cache: dtype f32, expected e4m3fn or e4m3fnuz or u8");
    REJECT(a->kv_cache.rank = 2, "kv_cache: rank 2, expected 3");
    REJECT(a->kv_cache = dense(f.cache, ETALON_U8, 4, BLOCKS, SIZE, 2, (D + 4) / 2),
           "kv_cache.shape[2]: 2, expected 1");
    REJECT(a->weights.dtype = ETALON_BF16, "weights: dtype bf16, expected f32");
    REJECT(a->context_lens.rank = 1, "context_lens: rank 1, expected 2");
    REJECT(a->context_lens.dtype = ETALON_F32, "context_lens: dtype f32, expected i64 or i32");
    REJECT(a->block_tables.dtype = ETALON_I64, "block_tables: dtype i64, expected i32");
    REJECT(a->logits.dtype = ETALON_BF16, "logits: dtype bf16, expected f32");
    REJECT(a->size = 3, "args.size: 3");
}
END_TEST

START_TEST(refuses_wrong_extents)
{
    REJECT(a->q.shape[1] = 0, "q.shape[1]: next_n 0, expected 1 or more");
    REJECT(a->q.shape[2] = 0, "q.shape[2]: 0 heads, expected 1 or more");
    REJECT(a->q.shape[3] = 600, "q.shape[3]: head dim 600, expected 1 to 576");
    REJECT(a->kv_cache.shape[1] = 0, "kv_cache.shape[1]: block_size 0, expected 1 or more");
    REJECT(a->kv_cache.shape[2] = D, "kv_cache.shape[2]: 6, expected 10 (D of q and 4 bytes of scale)");
    REJECT(a->weights.shape[0] = B, "weights.shape[0]: 2, expected 4 (B next_n of q)");
    REJECT(a->weights.shape[1] = 1, "weights.shape[1]: 1, expected 2 (H of q)");
    REJECT(a->context_lens.shape[0] = 1, "context_lens.shape[0]: 1, expected 2 (B of q)");
    REJECT(a->context_lens.shape[1] = 1, "context_lens.shape[1]: 1, expected 2 (next_n of q)");
    REJECT(a->block_tables.shape[0] = 1, "block_tables.shape[0]: 1, expected 2 (B of q)");
    REJECT(a->logits.shape[0] = 3, "logits.shape[0]: 3, expected 4 (B next_n of q)");
    REJECT(a->logits.shape[1] = 5, "logits.shape[1]: 5, expected 6 (columns of block_tables times block_size)");
    REJECT(a->max_context_len = 5, "logits.shape[1]: 6, expected 5 (max_context_len)");
    REJECT(a->max_context_len = -1, "max_context_len: -1, expected 0 or more");
    REJECT((a->block_tables.shape[1] = INT64_MAX / 2 + 1, a->block_tables.stride[1] = 0), "overflow");
}
END_TEST

START_TEST(refuses_wrong_memory)
{
    REJECT(a->kv_cache.stride[2] = 2, "kv_cache.stride[2]: 2, expected 1: a block has no gaps");
    REJECT(a->kv_cache.stride[1] = D + 5, "kv_cache.stride[1]: 11, expected 10 (D + 4): a block has no gaps");
    REJECT((a->kv_cache.stride[0] = BLOCK_BYTES + 2, a->kv_cache.shape[0] = 4),
           "kv_cache.stride[0]: 22, expected a multiple of 4");
    REJECT((a->kv_cache.data = f.cache + 2, a->kv_cache.shape[0] = 4), "expected a multiple of 4");
    REJECT((a->kv_cache = dense(f.cache, ETALON_U8, 3, BLOCKS, 1, D + 4, 0), a->logits.shape[1] = TABLE),
           "kv_cache: 1 x 6 bytes of keys a block, expected a multiple of 4");
    REJECT(a->logits.stride[0] = 5, "logits.stride[0]: 5, expected more than 5: elements would overlap");
    REJECT(a->logits.data = f.weights, "logits: overlaps weights in memory");
    REJECT(a->weights.device = 1, "weights.device: 1, expected -1 (that of q)");
}
END_TEST

/* Of row 1 of sequence 0, three keys need blocks 0 and 1 of its table, of row 1 of sequence 1, five need all three. */
START_TEST(refuses_wrong_blocks)
{
    REJECT(f.tables[0] = -1, "block_tables[0, 0]: block -1, expected 0 to 4");
    REJECT(f.tables[1] = 5, "block_tables[0, 1]: block 5, expected 0 to 4");
    REJECT(f.tables[5] = INT32_MIN, "block_tables[1, 2]: block -2147483648, expected 0 to 4");
    REJECT(f.lens[0] = INT32_MAX, "block_tables[0, 2]: block -1, expected 0 to 4");
    REJECT((f.lens[0] = 5), "block_tables[0, 2]: block -1, expected 0 to 4");
    REJECT(a->kv_cache.shape[0] = 0, "block_tables[0, 0]: block 3, expected 0 to -1");
}
END_TEST

/* The formula, key by key; -77 where nothing is written. */
static double expected(const fixture *f, int m, int n, bool clean)
{
    const int b = m / T, block = f->tables[b * TABLE + n / SIZE], slot = n % SIZE;
    double    sum = 0.0;
    if (n >= f->lens[m])
        return clean ? -(double)INFINITY : -77.0;
    for (int h = 0; h < H; h++) {
        double s = 0.0;
        for (int d = 0; d < D; d++)
            s += (double)(((m * H + h) * D + d) % 4 - 1) * key_digit(block, slot, d);
        sum += (double)f->weights[m * H + h] * (s > 0.0 ? s : 0.0);
    }
    return sum * (double)scale_of(block, slot);
}

/* Small integers: every sum is exact, so the formula in double must agree to the bit. */
static void check(fixture *f, int64_t columns)
{
    const bool clean = f->args.clean_logits != 0;
    ck_assert_ok(run(f));
    for (int m = 0; m < ROWS; m++)
        for (int n = 0; n < 8; n++) {
            const double got = (double)f->logits[m * f->args.logits.stride[0] + n];
            if (n < columns)
                ck_assert_double_eq(got, expected(f, m, n, clean));
            else if (f->args.logits.stride[0] == 8)
                ck_assert_double_eq(got, -77.0); /* the padding of a row */
        }
    etalon_context_destroy(f->ctx);
}

/* Each with and without clean_logits. */
#define ACCEPT(statement, columns)                     \
    do {                                               \
        for (int clean = 0; clean < 2; clean++) {      \
            fixture f;                                 \
            set_up(&f);                                \
            f.args.clean_logits = clean;               \
            etalon_mqa_logits_paged_args *a = &f.args; \
            (void)a;                                   \
            statement;                                 \
            check(&f, columns);                        \
        }                                              \
    } while (0)

START_TEST(worked_by_hand)
{
    ACCEPT(, COLUMNS);
    ACCEPT(a->logits.stride[0] = 8, COLUMNS); /* padded rows */
    ACCEPT(a->kv_cache.dtype = ETALON_U8, COLUMNS);
    ACCEPT(a->kv_cache = dense(f.cache, ETALON_U8, 4, BLOCKS, SIZE, 1, D + 4), COLUMNS);
    ACCEPT(f.tables[2] = INT32_MAX, COLUMNS); /* past the longest row */
    ACCEPT((f.lens[0] = INT32_MIN, f.lens[1] = -3), COLUMNS);
    ACCEPT(f.lens[3] = 6, COLUMNS);
    /* fewer columns than a row's keys */
    ACCEPT((a->max_context_len = 4, a->logits.shape[1] = 4, a->logits.stride[0] = 8), 4);
}
END_TEST

/* Nothing is read of a cache without blocks, and nothing written for no sequences. */
START_TEST(zero_extents)
{
    fixture f;
    set_up(&f);
    memset(f.lens, 0, sizeof f.lens);
    f.args.kv_cache.shape[0] = 0;
    check(&f, COLUMNS);
    set_up(&f);
    f.args.q.shape[0] = f.args.context_lens.shape[0] = f.args.block_tables.shape[0] = 0;
    f.args.weights.shape[0] = f.args.logits.shape[0] = 0;
    ck_assert_ok(run(&f));
    ck_assert_float_eq(f.logits[0], -77.0f);
    etalon_context_destroy(f.ctx);
}
END_TEST

/* More columns than room: -inf in the rest if clean. */
START_TEST(columns_beyond_the_room)
{
    for (int clean = 0; clean < 2; clean++) {
        fixture f;
        set_up(&f);
        f.args.clean_logits = clean;
        f.args.max_context_len = 8;
        f.args.logits = dense(f.logits, ETALON_F32, 2, ROWS, 8, 0, 0);
        f.lens[3] = INT32_MAX;
        ck_assert_ok(run(&f));
        for (int m = 0; m < ROWS; m++)
            for (int n = COLUMNS; n < 8; n++)
                ck_assert_float_eq(f.logits[m * 8 + n], clean ? -INFINITY : -77.0f);
        ck_assert(isfinite(f.logits[3 * 8 + COLUMNS - 1]));
        etalon_context_destroy(f.ctx);
    }
}
END_TEST

#define KEYS(dtype_)                                                      \
    {                                                                     \
        .device = ETALON_HOST, .h = 64, .d = 128, .k = {.dtype = dtype_ } \
    }

enum { EVERYTHING = NEEDS_AMX | NEEDS_AVX2 | NEEDS_AVX512 | NEEDS_NEON };

static const struct {
    mqa_logits_paged_problem p;
    uint32_t                 have;
    const char              *want; /* NULL: none */
} choices[] = {
#ifdef HAVE_OFFLOAD
    { KEYS(ETALON_E4M3FN), EVERYTHING | NEEDS_OFFLOAD, "mqa_logits_paged_omp" },
    { { .device = 0 }, EVERYTHING | NEEDS_OFFLOAD, "mqa_logits_paged_omp" },
#endif
#ifdef HAVE_AMX
    { KEYS(ETALON_E4M3FN), NEEDS_AMX | NEEDS_AVX512 | NEEDS_AVX2, "mqa_logits_paged_amx" },
    { KEYS(ETALON_E4M3FNUZ), NEEDS_AMX | NEEDS_AVX512, "mqa_logits_paged_amx" },
#endif
#ifdef HAVE_AVX512
    { KEYS(ETALON_E4M3FN), NEEDS_AVX512 | NEEDS_AVX2, "mqa_logits_paged_avx512" },
#endif
#ifdef HAVE_AVX2
    { KEYS(ETALON_E4M3FN), NEEDS_AMX | NEEDS_AVX2, "mqa_logits_paged_avx2" }, /* AMX without AVX-512 */
#endif
#ifdef HAVE_NEON
    { KEYS(ETALON_E4M3FN), NEEDS_NEON, "mqa_logits_paged_neon" },
#endif
    { KEYS(ETALON_E4M3FN), NEEDS_NONE, "mqa_logits_paged_generic" },
    { KEYS(ETALON_E4M3FNUZ), NEEDS_NAME, "mqa_logits_paged_generic" },
    { { .device = 0 }, EVERYTHING | NEEDS_NAME, NULL },
};

START_TEST(gate_selects)
{
    const gate_row *row = gate_select(&mqa_logits_paged_gate, choices[_i].have, &choices[_i].p);
    if (choices[_i].want == NULL)
        ck_assert_ptr_null(row);
    else
        ck_assert_str_eq(row->name, choices[_i].want);
}
END_TEST

/* The last row of the table takes what it is named for. */
START_TEST(the_reference_is_named)
{
    fixture f;
    set_up(&f);
    f.args.kernel = "mqa_logits_paged_ref";
    check(&f, COLUMNS);
    set_up(&f);
    f.args.kernel = "mqa_logits_ref";
    ck_assert_rejects(run(&f), ETALON_ERROR_UNSUPPORTED, "no row is named \"mqa_logits_ref\"");
    etalon_context_destroy(f.ctx);
}
END_TEST

static void fill(TCase *tcase)
{
    tcase_add_test(tcase, refuses_wrong_tensors);
    tcase_add_test(tcase, refuses_wrong_extents);
    tcase_add_test(tcase, refuses_wrong_memory);
    tcase_add_test(tcase, refuses_wrong_blocks);
    tcase_add_test(tcase, worked_by_hand);
    tcase_add_test(tcase, zero_extents);
    tcase_add_test(tcase, columns_beyond_the_room);
    tcase_add_loop_test(tcase, gate_selects, 0, sizeof choices / sizeof choices[0]);
    tcase_add_test(tcase, the_reference_is_named);
}

int main(void)
{
    return testing_main("mqa_logits_paged", fill);
}
