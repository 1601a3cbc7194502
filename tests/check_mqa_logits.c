/* The contract of mqa_logits: what it refuses and in which words, which row serves a call, and a case worked by hand.
 * */
#include "fp8.h"
#include "mqa_logits.h"
#include "testing.h"

#include <math.h>

enum { M = 3, N = 4, H = 2, D = 5 };

typedef struct fixture {
    etalon_mqa_logits_args args;
    uint8_t                q[M * H * D], k[N * D];
    float                  kv_scale[N], weights[M * H], logits[M * N];
    int32_t                ks[M], ke[M];
    etalon_context        *ctx;
} fixture;

static etalon_tensor dense(void *data, etalon_dtype dtype, int32_t rank, int64_t n0, int64_t n1, int64_t n2)
{
    const int64_t shape[] = { n0, n1, n2 };
    return etalon_tensor_dense(data, dtype, rank, shape);
}

static void set_up(fixture *f)
{
    *f = (fixture){
        .args = ETALON_MQA_LOGITS_ARGS_INIT, .ks = { 0, 1, 2 }, .ke = { 2, 9, 2 }, .kv_scale = { 1, 2, 4, 0.5f }
    };
    for (int i = 0; i < M * H * D; i++)
        f->q[i] = e4m3fn_of_f32((float)(i % 4 - 1), FP8_SATURATE);
    for (int i = 0; i < N * D; i++)
        f->k[i] = e4m3fn_of_f32((float)(i % 3 - 1), FP8_SATURATE);
    for (int i = 0; i < M * H; i++)
        f->weights[i] = i % 2 ? -0.5f : 2.0f;
    for (int i = 0; i < M * N; i++)
        f->logits[i] = -77.0f;
    etalon_mqa_logits_args *a = &f->args;
    a->q = dense(f->q, ETALON_E4M3FN, 3, M, H, D);
    a->k = dense(f->k, ETALON_E4M3FN, 2, N, D, 0);
    a->kv_scale = dense(f->kv_scale, ETALON_F32, 1, N, 0, 0);
    a->weights = dense(f->weights, ETALON_F32, 2, M, H, 0);
    a->cu_seqlen_ks = dense(f->ks, ETALON_I32, 1, M, 0, 0);
    a->cu_seqlen_ke = dense(f->ke, ETALON_I32, 1, M, 0, 0);
    a->logits = dense(f->logits, ETALON_F32, 2, M, N, 0);
    ck_assert_ok(etalon_context_create(NULL, &f->ctx));
}

static etalon_status run(fixture *f)
{
    etalon_workspace    work = { 0 };
    const etalon_status refused = etalon_mqa_logits_workspace_bytes(f->ctx, &f->args, &work.bytes);
    if (refused != ETALON_OK)
        return refused;
    work.data = aligned_alloc(ETALON_WORKSPACE_ALIGN, work.bytes);
    const etalon_status status = etalon_mqa_logits(f->ctx, &f->args, work);
    free(work.data);
    return status;
}

/* One statement breaks a good call: the sentence holds the words, and no output changed. */
#define REJECT(statement, words)                                          \
    do {                                                                  \
        fixture f;                                                        \
        set_up(&f);                                                       \
        etalon_mqa_logits_args *a = &f.args;                              \
        statement;                                                        \
        ck_assert_rejects(run(&f), ETALON_ERROR_INVALID_ARGUMENT, words); \
        for (int i = 0; i < M * N; i++)                                   \
            ck_assert_float_eq(f.logits[i], -77.0f);                      \
        etalon_context_destroy(f.ctx);                                    \
    } while (0)

START_TEST(refuses_wrong_tensors)
{
    REJECT(a->q.data = NULL, "mqa_logits: q: missing");
    REJECT(a->k.data = NULL, "mqa_logits: k: missing");
    REJECT(a->kv_scale.data = NULL, "mqa_logits: kv_scale: missing");
    REJECT(a->weights.data = NULL, "mqa_logits: weights: missing");
    REJECT(a->cu_seqlen_ks.data = NULL, "mqa_logits: cu_seqlen_ks: missing");
    REJECT(a->cu_seqlen_ke.data = NULL, "mqa_logits: cu_seqlen_ke: missing");
    REJECT(a->logits.data = NULL, "mqa_logits: logits: missing");
    REJECT(a->q.dtype = ETALON_BF16, "q: dtype bf16, expected e4m3fn or e4m3fnuz");
    REJECT(a->k.dtype = ETALON_U8, "k: dtype u8, expected e4m3fn or e4m3fnuz");
    REJECT(a->weights.dtype = ETALON_F64, "weights: dtype f64, expected f32");
    REJECT(a->logits.dtype = ETALON_BF16, "logits: dtype bf16, expected f32");
    REJECT(a->k.rank = 3, "k: rank 3, expected 2");
    REJECT(a->size = 3, "args.size: 3");
}
END_TEST

START_TEST(refuses_wrong_extents_and_memory)
{
    REJECT(a->q.shape[1] = 0, "q.shape[1]: 0 heads, expected 1 or more");
    REJECT(a->q.shape[2] = 600, "q.shape[2]: head dim 600, expected 1 to 576");
    REJECT(a->k.shape[1] = 4, "k.shape[1]: 4, expected 5 (D of q)");
    REJECT(a->kv_scale.shape[0] = 3, "kv_scale.shape[0]: 3, expected 4 (N of k)");
    REJECT(a->weights.shape[1] = 3, "weights.shape[1]: 3, expected 2 (H of q)");
    REJECT(a->cu_seqlen_ke.shape[0] = 2, "cu_seqlen_ke.shape[0]: 2, expected 3 (M of q)");
    REJECT(a->logits.shape[1] = 3, "logits.shape[1]: 3, expected 4 (N of k)");
    REJECT(a->max_seqlen_k = 3, "logits.shape[1]: 4, expected 3 (max_seqlen_k)");
    REJECT(a->max_seqlen_k = -1, "max_seqlen_k: -1, expected 0 or more");
    REJECT(a->logits.stride[0] = 3, "logits.stride[0]: 3, expected more than 3: elements would overlap");
    REJECT(a->logits.data = f.weights, "logits: overlaps weights in memory");
    REJECT(a->weights.device = 1, "weights.device: 1, expected -1 (that of q)");
}
END_TEST

/* Keys in host memory, of which fast rows ask FP8 and unit stride in the head dim. */
#define KEYS(dtype_, k_)                                                                                     \
    {                                                                                                        \
        .device = ETALON_HOST, .h = 32, .d = 128, .k = {.dtype = dtype_, .rank = 2, .stride = { [1] = k_ } } \
    }

/* Dense tensors of 32 or 64 heads. */
#define FIELD(m_, n_, h_, compressed_)                                                                        \
    {                                                                                                         \
        .device = 0, .m = m_, .n = n_, .columns = n_, .compressed = compressed_, .h = h_, .d = 128,           \
        .q = { .dtype = ETALON_E4M3FN, .rank = 3, .shape = { m_, h_, 128 }, .stride = { h_ * 128, 128, 1 } }, \
        .k = { .dtype = ETALON_E4M3FN, .rank = 2, .shape = { n_, 128 }, .stride = { 128, 1 } },               \
        .kv_scale = { .dtype = ETALON_F32, .rank = 1, .shape = { n_ }, .stride = { 1 } },                     \
        .weights = { .dtype = ETALON_F32, .rank = 2, .shape = { m_, h_ }, .stride = { h_, 1 } }, .logits = {  \
            .dtype = ETALON_F32,                                                                              \
            .rank = 2,                                                                                        \
            .shape = { m_, n_ },                                                                              \
            .stride = { n_, 1 }                                                                               \
        }                                                                                                     \
    }

enum { EVERYTHING = NEEDS_AMX | NEEDS_AVX2 | NEEDS_AVX512 | NEEDS_NEON };

static const struct {
    mqa_logits_problem p;
    uint32_t           have;
    const char        *want; /* NULL: none */
} choices[] = {
#ifdef HAVE_GFX950
    { FIELD(4096, 32768, 32, false), NEEDS_OFFLOAD | NEEDS_GFX950, "mqa_logits_e4m3_h32_d128_gfx950" },
    { FIELD(8192, 8192, 64, false), NEEDS_OFFLOAD | NEEDS_GFX950, "mqa_logits_e4m3_h64_d128_gfx950" },
    { FIELD(1, 131072, 32, false), NEEDS_OFFLOAD | NEEDS_GFX950, "mqa_logits_e4m3_h32_d128_small_gfx950" },
    { FIELD(61, 1024, 64, false), NEEDS_OFFLOAD | NEEDS_GFX950, "mqa_logits_e4m3_h64_d128_small_gfx950" },
    { FIELD(64, 64, 16, false), NEEDS_OFFLOAD | NEEDS_GFX950, "mqa_logits_omp" },
    { FIELD(4096, 32768, 32, true), NEEDS_OFFLOAD | NEEDS_GFX950, "mqa_logits_omp" },
    { FIELD(4096, 32768, 32, false), NEEDS_OFFLOAD, "mqa_logits_omp" },
#endif
#ifdef HAVE_OFFLOAD
    { KEYS(ETALON_E4M3FN, 1), EVERYTHING | NEEDS_OFFLOAD, "mqa_logits_omp" },
    { KEYS(ETALON_BF16, 1), NEEDS_OFFLOAD, "mqa_logits_omp" },
    { { .device = 0 }, EVERYTHING | NEEDS_OFFLOAD, "mqa_logits_omp" },
#endif
#ifdef HAVE_AMX
    { KEYS(ETALON_E4M3FN, 1), NEEDS_AMX | NEEDS_AVX512 | NEEDS_AVX2, "mqa_logits_amx" },
    { KEYS(ETALON_E4M3FNUZ, 1), NEEDS_AMX | NEEDS_AVX512, "mqa_logits_amx" },
#endif
#ifdef HAVE_AVX2
    { KEYS(ETALON_E4M3FN, 1), NEEDS_AMX | NEEDS_AVX2, "mqa_logits_avx2" }, /* AMX without AVX-512 */
#endif
#ifdef HAVE_AVX512
    { KEYS(ETALON_E4M3FN, 1), NEEDS_AVX512 | NEEDS_AVX2, "mqa_logits_avx512" },
    { KEYS(ETALON_E4M3FNUZ, 1), NEEDS_AVX512, "mqa_logits_avx512" },
#endif
#ifdef HAVE_AVX2
    { KEYS(ETALON_E4M3FN, 1), NEEDS_AVX2, "mqa_logits_avx2" },
    { KEYS(ETALON_E4M3FNUZ, 1), NEEDS_AVX2, "mqa_logits_avx2" },
#endif
#ifdef HAVE_NEON
    { KEYS(ETALON_E4M3FN, 1), NEEDS_NEON, "mqa_logits_neon" },
#endif
    { KEYS(ETALON_E4M3FN, 1), NEEDS_NONE, "mqa_logits_generic" },
    { KEYS(ETALON_E4M3FNUZ, 1), NEEDS_NAME, "mqa_logits_generic" },
    { KEYS(ETALON_E4M3FN, 2), EVERYTHING, "mqa_logits_ref" },
    { KEYS(ETALON_E4M3FN, -1), NEEDS_NONE, "mqa_logits_ref" },
    { { .device = 0 }, EVERYTHING | NEEDS_NAME, NULL },
};

START_TEST(gate_selects)
{
    const gate_row *row = gate_select(&mqa_logits_gate, choices[_i].have, &choices[_i].p);
    if (choices[_i].want == NULL)
        ck_assert_ptr_null(row);
    else
        ck_assert_str_eq(row->name, choices[_i].want);
}
END_TEST

#ifdef HAVE_GFX950
/* Why the rows for gfx950 do not serve a problem: one change of one that they serve. */
START_TEST(gfx950_refuses)
{
    const gate_row                 *row = gate_find(&mqa_logits_gate, "mqa_logits_e4m3_h32_d128_gfx950");
    const gate_row                 *small = gate_find(&mqa_logits_gate, "mqa_logits_e4m3_h32_d128_small_gfx950");
    const gate_row                 *wide = gate_find(&mqa_logits_gate, "mqa_logits_e4m3_h64_d128_gfx950");
    static const mqa_logits_problem served = FIELD(4096, 32768, 32, false), few = FIELD(8, 4096, 32, false);
#define REFUSES(row, from, change, words)                                                                 \
    do {                                                                                                  \
        mqa_logits_problem p = from;                                                                      \
        change;                                                                                           \
        const char *why = gate_why_not(row, NEEDS_OFFLOAD | NEEDS_GFX950, &p);                            \
        ck_assert_msg(why != NULL && strcmp(why, words) == 0, "%s: %s", #change, why == NULL ? "" : why); \
    } while (0)
#define SERVES(row, from, change)                                              \
    do {                                                                       \
        mqa_logits_problem p = from;                                           \
        change;                                                                \
        const char *why = gate_why_not(row, NEEDS_OFFLOAD | NEEDS_GFX950, &p); \
        ck_assert_msg(why == NULL, "%s: %s", #change, why);                    \
    } while (0)
    REFUSES(row, served, p.h = 64, "H is not 32");
    REFUSES(wide, served, p.h = 32, "H is not 64");
    REFUSES(row, served, p.d = 64, "D is not 128");
    REFUSES(row, served, p.compressed = true, "logits are compressed");
    REFUSES(row, served, p.q.dtype = ETALON_E4M3FNUZ, "q or k is not E4M3FN");
    REFUSES(row, served, p.k.dtype = ETALON_E4M3FNUZ, "q or k is not E4M3FN");
    REFUSES(row, served, p.q.stride[2] = 2, "the head dim of q or k is not contiguous");
    REFUSES(row, served, p.k.stride[1] = -1, "the head dim of q or k is not contiguous");
    REFUSES(row, served, p.q.stride[1] = 129, "rows of q or k do not begin at multiples of 4 bytes");
    REFUSES(row, served, p.k.data = (void *)(uintptr_t)2, "rows of q or k do not begin at multiples of 4 bytes");
    REFUSES(row, served, p.weights.stride[1] = 2, "the heads of weights are not contiguous");
    REFUSES(row, served, p.logits.stride[1] = 4096, "the columns of logits are not contiguous");
    REFUSES(row, served, p.logits.shape[1] = 2048, "logits have not a column for each key");
    REFUSES(row, served, p.n = p.logits.shape[1] = (1 << 30) + 1, "N is above 2^30");
    REFUSES(row, served, p.k.stride[0] = 1 << 25, "a row of k begins before the last, or 32 MiB or more behind it");
    REFUSES(row, served, p.k.stride[0] = -128, "a row of k begins before the last, or 32 MiB or more behind it");
    REFUSES(row, served, p.kv_scale.stride[0] = -1,
            "an element of kv_scale lies before the last, or 32 MiB or more behind it");
    REFUSES(row, served, p.kv_scale.stride[0] = 1 << 23,
            "an element of kv_scale lies before the last, or 32 MiB or more behind it");
    REFUSES(row, served, p.logits.stride[0] = -32768, "a block of rows of logits runs backwards, or over 4 GiB");
    REFUSES(row, served, p.logits.stride[0] = 1 << 26, "a block of rows of logits runs backwards, or over 4 GiB");
    REFUSES(row, served, p.m = 3 << 20, "M is more than 16 launches take");
    REFUSES(small, served, (void)0, "so many rows and keys are faster in larger blocks of rows");
    SERVES(row, few, (void)0);
    SERVES(small, few, (void)0);
    SERVES(row, served, p.k.stride[0] = 1039680);
    SERVES(row, served, p.q.stride[0] = -65536);
    SERVES(row, served, p.weights.stride[0] = 0);
    SERVES(row, served, p.logits.stride[0] = 1 << 20);
    SERVES(row, served, p.ks.stride[0] = -3);
#undef SERVES
#undef REFUSES
}
END_TEST
#endif

static const struct {
    int64_t   ks, ke;
    key_range see;
} windows[] = {
    { 0, 4, { 0, 4 } }, { -3, 2, { 0, 2 } }, { 1, 99, { 1, 4 } },         { 3, 3, { 3, 3 } },
    { 3, 1, { 3, 3 } }, { 9, 12, { 4, 4 } }, { INT32_MIN, -1, { 0, 0 } },
};

/* Compressed: a window has as many keys as there are columns. */
static const struct {
    int64_t   ks, ke, columns;
    key_range see;
} compressed[] = {
    { 0, 4, 2, { 0, 2 } }, { -3, 2, 3, { 0, 2 } }, { 1, 99, 2, { 1, 3 } },
    { 3, 3, 2, { 3, 3 } }, { 9, 12, 2, { 4, 4 } }, { 2, 4, INT64_MAX, { 2, 4 } },
};

START_TEST(compressed_windows_have_columns)
{
    int64_t                  ks = compressed[_i].ks, ke = compressed[_i].ke;
    const mqa_logits_problem p = { .n = N,
                                   .columns = compressed[_i].columns,
                                   .compressed = true,
                                   .ks = dense(&ks, ETALON_I64, 1, 1, 0, 0),
                                   .ke = dense(&ke, ETALON_I64, 1, 1, 0, 0) };
    const key_range          see = mqa_logits_window(&p, 0);
    ck_assert_int_eq(see.first, compressed[_i].see.first);
    ck_assert_int_eq(see.last, compressed[_i].see.last);
    ck_assert_int_eq(mqa_logits_origin(&p, see), see.first);
}
END_TEST

START_TEST(windows_are_clamped)
{
    int64_t                  ks = windows[_i].ks, ke = windows[_i].ke;
    const mqa_logits_problem p = { .n = N,
                                   .ks = dense(&ks, ETALON_I64, 1, 1, 0, 0),
                                   .ke = dense(&ke, ETALON_I64, 1, 1, 0, 0) };
    const key_range          see = mqa_logits_window(&p, 0);
    ck_assert_int_eq(see.first, windows[_i].see.first);
    ck_assert_int_eq(see.last, windows[_i].see.last);
}
END_TEST

/* Small integers: every sum is exact, so the formula in double must agree to the bit. */
static double expected(const fixture *f, int m, int n)
{
    double sum = 0.0;
    if (n >= N || n < f->ks[m] || n >= f->ke[m])
        return f->args.clean_logits ? -(double)INFINITY : -77.0;
    for (int h = 0; h < H; h++) {
        double s = 0.0;
        for (int d = 0; d < D; d++)
            s += (double)(((m * H + h) * D + d) % 4 - 1) * (double)((n * D + d) % 3 - 1);
        sum += (double)f->weights[m * H + h] * (s > 0.0 ? s : 0.0);
    }
    return sum * (double)f->kv_scale[n];
}

START_TEST(worked_by_hand)
{
    for (int clean = 0; clean < 2; clean++) {
        fixture f;
        set_up(&f);
        f.args.clean_logits = clean;
        ck_assert_ok(run(&f));
        for (int m = 0; m < M; m++)
            for (int n = 0; n < N; n++)
                ck_assert_double_eq((double)f.logits[m * N + n], expected(&f, m, n));
        etalon_context_destroy(f.ctx);
    }
}
END_TEST

/* Fewer columns than a window has keys, as many, more than there are keys; rows that are padded by one element. */
START_TEST(compressed_by_hand)
{
    for (int i = 0; i < 10; i++) {
        const int64_t columns = i / 2 + 1, row = columns + 1;
        fixture       f;
        float         logits[M * 6];
        set_up(&f);
        for (int c = 0; c < M * 6; c++)
            logits[c] = -77.0f;
        f.args.clean_logits = i % 2;
        f.args.max_seqlen_k = columns;
        f.args.logits = dense(logits, ETALON_F32, 2, M, columns, 0);
        f.args.logits.stride[0] = row;
        ck_assert_ok(run(&f));
        for (int m = 0; m < M; m++) {
            for (int c = 0; c < columns; c++)
                ck_assert_double_eq((double)logits[m * row + c], expected(&f, m, f.ks[m] + c));
            ck_assert_double_eq((double)logits[m * row + columns], -77.0);
        }
        etalon_context_destroy(f.ctx);
    }
}
END_TEST

static void fill(TCase *tcase)
{
    tcase_add_test(tcase, refuses_wrong_tensors);
    tcase_add_test(tcase, refuses_wrong_extents_and_memory);
    tcase_add_loop_test(tcase, gate_selects, 0, sizeof choices / sizeof choices[0]);
#ifdef HAVE_GFX950
    tcase_add_test(tcase, gfx950_refuses);
#endif
    tcase_add_loop_test(tcase, windows_are_clamped, 0, sizeof windows / sizeof windows[0]);
    tcase_add_loop_test(tcase, compressed_windows_have_columns, 0, sizeof compressed / sizeof compressed[0]);
    tcase_add_test(tcase, worked_by_hand);
    tcase_add_test(tcase, compressed_by_hand);
}

int main(void)
{
    return testing_main("mqa_logits", fill);
}
