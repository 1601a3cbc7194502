/* The contract of pa_mtp: what it refuses and in which words, which row serves a call, and a case worked by hand. */
#include "pa_mtp.h"
#include "fp8.h"
#include "testing.h"

#include <math.h>

enum { TOKENS = 3, HEADS = 4, KV_HEADS = 2, DIM = 8, PAGES = 4, PAGE = 2, BATCH = 2, COLUMNS = 3 };

/* Two sequences: 2 query tokens on 5 keys, 1 on 2. */
typedef struct fixture {
    etalon_pa_mtp_args args;
    uint16_t           q[TOKENS * HEADS * DIM];
    uint8_t            k[PAGES * PAGE * KV_HEADS * DIM], v[PAGES * PAGE * KV_HEADS * DIM];
    int32_t            table[BATCH * COLUMNS];
    int64_t            lens[BATCH];
    int32_t            cu[BATCH + 1];
    float              out[TOKENS * HEADS * DIM], lse[HEADS * TOKENS];
    float              descale[3], per_head[BATCH * KV_HEADS];
    etalon_context    *ctx;
} fixture;

static etalon_tensor dense(void *data, etalon_dtype dtype, int32_t rank, int64_t n0, int64_t n1, int64_t n2, int64_t n3)
{
    const int64_t shape[] = { n0, n1, n2, n3 };
    return etalon_tensor_dense(data, dtype, rank, shape);
}

static void set_up(fixture *f)
{
    *f = (fixture){ .args = ETALON_PA_MTP_ARGS_INIT,
                    .table = { 2, 0, 3, 1, -1, -1 },
                    .lens = { 5, 2 },
                    .cu = { 0, 2, 3 },
                    .descale = { 1, 1, 1 },
                    .per_head = { 1, 1, 1, 1 } };
    for (int i = 0; i < TOKENS * HEADS * DIM; i++) {
        f->q[i] = bf16_of_f32(0.25f * (float)(i % 7 - 3));
        f->out[i] = -77.0f;
    }
    for (int i = 0; i < HEADS * TOKENS; i++)
        f->lse[i] = -77.0f;
    for (int i = 0; i < PAGES * PAGE * KV_HEADS * DIM; i++) {
        f->k[i] = e4m3fn_of_f32(0.125f * (float)(i % 11 - 5), FP8_SATURATE);
        f->v[i] = e4m3fn_of_f32(0.5f * (float)(i % 5 - 2), FP8_SATURATE);
    }
    etalon_pa_mtp_args *a = &f->args;
    a->q = dense(f->q, ETALON_BF16, 3, TOKENS, HEADS, DIM, 0);
    a->k_cache = dense(f->k, ETALON_E4M3FN, 4, PAGES, PAGE, KV_HEADS, DIM);
    a->v_cache = dense(f->v, ETALON_E4M3FN, 4, PAGES, PAGE, KV_HEADS, DIM);
    a->block_tables = dense(f->table, ETALON_I32, 2, BATCH, COLUMNS, 0, 0);
    a->seq_lens = dense(f->lens, ETALON_I64, 1, BATCH, 0, 0, 0);
    a->cu_seqlens_q = dense(f->cu, ETALON_I32, 1, BATCH + 1, 0, 0, 0);
    a->out = dense(f->out, ETALON_F32, 3, TOKENS, HEADS, DIM, 0);
    a->lse = dense(f->lse, ETALON_F32, 2, HEADS, TOKENS, 0, 0);
    a->q_descale = (etalon_tensor){ 0 };
    a->k_descale = dense(&f->descale[1], ETALON_F32, 1, 1, 0, 0, 0);
    a->v_descale = dense(f->per_head, ETALON_F32, 2, BATCH, KV_HEADS, 0, 0);
    ck_assert_ok(etalon_context_create(NULL, &f->ctx));
}

static etalon_status run(fixture *f)
{
    etalon_workspace    work = { 0 };
    const etalon_status refused = etalon_pa_mtp_workspace_bytes(f->ctx, &f->args, &work.bytes);
    if (refused != ETALON_OK)
        return refused;
    work.data = aligned_alloc(ETALON_WORKSPACE_ALIGN, work.bytes);
    const etalon_status status = etalon_pa_mtp(f->ctx, &f->args, work);
    free(work.data);
    return status;
}

/* One statement breaks a good call: the sentence holds the words, and no output changed. */
#define REJECT(statement, words)                                          \
    do {                                                                  \
        fixture f;                                                        \
        set_up(&f);                                                       \
        etalon_pa_mtp_args *a = &f.args;                                  \
        statement;                                                        \
        (void)a;                                                          \
        ck_assert_rejects(run(&f), ETALON_ERROR_INVALID_ARGUMENT, words); \
        for (int i = 0; i < TOKENS * HEADS * DIM; i++)                    \
            ck_assert_float_eq(f.out[i], -77.0f);                         \
        for (int i = 0; i < HEADS * TOKENS; i++)                          \
            ck_assert_float_eq(f.lse[i], -77.0f);                         \
        etalon_context_destroy(f.ctx);                                    \
    } while (0)

START_TEST(accepts_the_good_call)
{
    fixture f;
    set_up(&f);
    ck_assert_ok(run(&f));
    for (int i = 0; i < TOKENS * HEADS * DIM; i++)
        ck_assert(isfinite(f.out[i]) && f.out[i] != -77.0f);
    etalon_context_destroy(f.ctx);
}
END_TEST

START_TEST(refuses_wrong_tensors)
{
    REJECT(a->q.data = NULL, "pa_mtp: q: missing");
    REJECT(a->k_cache.data = NULL, "pa_mtp: k_cache: missing");
    REJECT(a->v_cache.data = NULL, "pa_mtp: v_cache: missing");
    REJECT(a->block_tables.data = NULL, "pa_mtp: block_tables: missing");
    REJECT(a->seq_lens.data = NULL, "pa_mtp: seq_lens: missing");
    REJECT(a->cu_seqlens_q.data = NULL, "pa_mtp: cu_seqlens_q: missing");
    REJECT(a->out.data = NULL, "pa_mtp: out: missing");
    REJECT(a->q.rank = 2, "q: rank 2, expected 3");
    REJECT(a->q.dtype = ETALON_U8, "q: dtype u8, expected f32 or bf16 or e4m3fn or e4m3fnuz");
    REJECT(a->v_cache.dtype = ETALON_E4M3FNUZ, "v_cache: dtype e4m3fnuz, expected e4m3fn");
    REJECT(a->block_tables.dtype = ETALON_I64, "block_tables: dtype i64, expected i32");
    REJECT(a->seq_lens.dtype = ETALON_F32, "seq_lens: dtype f32, expected i64 or i32");
    REJECT(a->out.dtype = ETALON_F16, "out: dtype f16, expected f32 or bf16");
    REJECT(a->lse.dtype = ETALON_BF16, "lse: dtype bf16, expected f32");
    REJECT(a->q.shape[0] = -1, "q.shape[0]: -1, expected 0 or more");
    REJECT(a->q.shape[0] = INT64_MAX, "q: the number of elements overflows 64 bits");
    REJECT(a->k_cache.stride[0] = INT64_MAX / 2, "k_cache: shape times stride overflows 64 bits");
}
END_TEST

START_TEST(refuses_wrong_extents)
{
    REJECT(a->q.shape[1] = 0, "0 query heads, expected 1 or more");
    REJECT((a->k_cache.shape[2] = 0, a->v_cache.shape[2] = 0), "0 KV heads, expected 1 or more");
    REJECT(a->q.shape[1] = 3, "3 query heads, expected a multiple of the 2 KV heads");
    REJECT(a->q.shape[2] = 577, "head dim of q: 577, expected 1 to 576");
    REJECT(a->k_cache.shape[3] = 4, "k_cache.shape[3]: 4, expected 8 (head dim of q)");
    REJECT(a->v_cache.shape[0] = 3, "v_cache.shape[0]: 3, expected 4 (that of k_cache)");
    REJECT((a->k_cache.shape[1] = 0, a->v_cache.shape[1] = 0), "page_size: 0, expected 1 or more");
    REJECT(a->seq_lens.shape[0] = 1, "seq_lens.shape[0]: 1, expected 2 (rows of block_tables)");
    REJECT(a->cu_seqlens_q.shape[0] = 2, "cu_seqlens_q.shape[0]: 2, expected 3 (rows of block_tables + 1)");
    REJECT(a->out.shape[2] = 4, "out.shape[2]: 4, expected 8 (head dim of v_cache)");
    REJECT(a->lse.shape[0] = 3, "lse.shape[0]: 3, expected 4 (Hq)");
    REJECT(a->kv_layout = (etalon_kv_layout)7, "kv_layout: 7");
}
END_TEST

START_TEST(refuses_wrong_scalars)
{
    REJECT(a->softmax_scale = -1.0, "softmax_scale: -1, expected finite and positive");
    REJECT(a->softmax_scale = NAN, "softmax_scale: nan, expected finite and positive");
    REJECT(a->softmax_scale = INFINITY, "softmax_scale: inf, expected finite and positive");
    REJECT(f.descale[1] = 0.0f, "k_descale[0, 0]: 0, expected finite and positive");
    REJECT(f.descale[1] = NAN, "k_descale[0, 0]: nan, expected finite and positive");
    REJECT(f.per_head[3] = -2.0f, "v_descale[1, 1]: -2, expected finite and positive");
    REJECT(a->v_descale.shape[0] = 1, "v_descale.shape[0]: 1, expected 2 (B)");
    REJECT(a->k_descale.shape[0] = 2, "k_descale.shape[0]: 2, expected 1 (one factor a tensor)");
    REJECT(a->q_descale = a->k_descale, "q_descale: given, but q is bf16 and not FP8");
    REJECT(a->model.p_scale = (etalon_p_scale)9, "model.p_scale: 9");
    REJECT(a->model.tile_keys = 48, "model.tile_keys: 48, expected a multiple of 32");
    REJECT(a->model.tile_keys = 2048, "model.tile_keys: 2048, expected a multiple of 32 up to 1024");
    REJECT(a->model.p_terms = 3, "model.p_terms: 3, expected 1 or 2, or 0 for 1");
    REJECT(a->size = 0, "args.size: 0");
}
END_TEST

START_TEST(refuses_wrong_content)
{
    REJECT(f.cu[0] = 1, "cu_seqlens_q[0]: 1, expected 0");
    REJECT((f.cu[1] = 3, f.cu[2] = 2), "cu_seqlens_q[2]: 2, expected at least 3: it must not decrease");
    REJECT(f.cu[2] = 2, "cu_seqlens_q[2]: 2, expected 3 (tokens of q)");
    REJECT(f.lens[1] = -4, "seq_lens[1]: -4, expected 0 or more");
    REJECT(f.lens[0] = 7, "seq_lens[0]: 7 keys fill 4 pages of 2, expected at most the 3 columns");
    REJECT(f.lens[0] = INT64_MAX, "expected at most the 3 columns");
    REJECT(f.table[1] = 4, "block_tables[0, 1]: page 4, expected 0 to 3");
    REJECT(f.table[3] = -1, "block_tables[1, 0]: page -1, expected 0 to 3");
}
END_TEST

START_TEST(refuses_wrong_memory)
{
    REJECT(a->out.stride[1] = 4, "out.stride[1]: 4, expected more than 7: elements would overlap");
    REJECT(a->lse.stride[0] = 0, "lse.stride[0]: 0, expected more than 0: elements would overlap");
    REJECT(a->seq_lens.device = 0, "seq_lens.device: 0, expected -1 (that of q)");
    REJECT(a->lse.data = f.out, "out: overlaps lse in memory");
    REJECT((a->out.dtype = ETALON_BF16, a->out.data = f.q), "out: overlaps q in memory");
}
END_TEST

START_TEST(refuses_what_is_not_there)
{
    fixture f;
    set_up(&f);
    ck_assert_rejects(etalon_pa_mtp(NULL, &f.args, (etalon_workspace){ 0 }), ETALON_ERROR_INVALID_ARGUMENT,
                      "ctx: NULL");
    ck_assert_rejects(etalon_pa_mtp(f.ctx, NULL, (etalon_workspace){ 0 }), ETALON_ERROR_INVALID_ARGUMENT, "args: NULL");
    ck_assert_rejects(etalon_pa_mtp_workspace_bytes(f.ctx, &f.args, NULL), ETALON_ERROR_INVALID_ARGUMENT,
                      "bytes: NULL");
    ck_assert_rejects(etalon_pa_mtp_explain(f.ctx, &f.args, NULL, NULL), ETALON_ERROR_INVALID_ARGUMENT, "row: NULL");
    f.args.kernel = "pa_mtp_hope";
    ck_assert_rejects(run(&f), ETALON_ERROR_UNSUPPORTED, "no row is named \"pa_mtp_hope\"");
    etalon_context_destroy(f.ctx);
}
END_TEST

/* Keys and values in host memory, of which fast rows ask FP8 and unit stride in the head dim. */
#define KEYS(dtype_, k_, v_)                                                \
    {                                                                       \
        .device = ETALON_HOST, .heads = 16, .d_qk = 256, .page_size = 16,   \
        .k = { .dtype = dtype_, .rank = 4, .stride = { [3] = k_ } }, .v = { \
            .dtype = dtype_,                                                \
            .rank = 4,                                                      \
            .stride = { [3] = v_ }                                          \
        }                                                                   \
    }

/* One token of each of three sequences. */
#define DECODE(heads_, kv_heads_)                                                                            \
    {                                                                                                        \
        .device = ETALON_HOST, .tokens = 3, .batch = 3, .heads = heads_, .kv_heads = kv_heads_, .d_qk = 256, \
        .page_size = 16, .k = { .dtype = ETALON_E4M3FN, .rank = 4, .stride = { [3] = 1 } }, .v = {           \
            .dtype = ETALON_E4M3FN,                                                                          \
            .rank = 4,                                                                                       \
            .stride = { [3] = 1 }                                                                            \
        }                                                                                                    \
    }

#ifdef HAVE_GFX950
/* What the kernels for gfx950 are made for, on the device: four tokens of each of three sequences. */
#define CACHE_OF_GFX950 \
    { .dtype = ETALON_E4M3FN, .rank = 4, .shape = { 99, 16, 1, 256 }, .stride = { 4096, 256, 256, 1 } }
#define VERIFY(ratio_)                                                                                                \
    {                                                                                                                 \
        .device = 0, .tokens = 12, .batch = 3, .heads = ratio_, .kv_heads = 1, .d_qk = 256, .d_v = 256, .pages = 99,  \
        .page_size = 16, .mask = { INT64_MAX, 0 }, .k = CACHE_OF_GFX950, .v = CACHE_OF_GFX950,                        \
        .q = { .dtype = ETALON_BF16, .rank = 3, .shape = { 12, ratio_, 256 }, .stride = { ratio_ * 256, 256, 1 } },   \
        .out = { .dtype = ETALON_BF16, .rank = 3, .shape = { 12, ratio_, 256 }, .stride = { ratio_ * 256, 256, 1 } }, \
        .block_tables = {                                                                                             \
            .dtype = ETALON_I32,                                                                                      \
            .rank = 2,                                                                                                \
            .shape = { 3, 33 },                                                                                       \
            .stride = { 33, 1 }                                                                                       \
        }                                                                                                             \
    }
#endif

enum { EVERYTHING = NEEDS_AMX | NEEDS_AVX2 | NEEDS_AVX512 | NEEDS_NEON };

static const struct {
    pa_mtp_problem p;
    uint32_t       have;
    const char    *want; /* NULL: none */
} choices[] = {
#ifdef HAVE_GFX950
    { VERIFY(16), EVERYTHING | NEEDS_OFFLOAD | NEEDS_GFX950, "pa_mtp_e4m3_d256_gqa16_page16_gfx950" },
    { VERIFY(8), NEEDS_OFFLOAD | NEEDS_GFX950, "pa_mtp_e4m3_d256_gqa8_page16_gfx950" },
    { VERIFY(4), NEEDS_OFFLOAD | NEEDS_GFX950, "pa_mtp_e4m3_d256_gqa4_page16_gfx950" },
    { VERIFY(2), NEEDS_OFFLOAD | NEEDS_GFX950, "pa_mtp_omp" },
    { VERIFY(16), NEEDS_OFFLOAD | NEEDS_GFX1250, "pa_mtp_omp" },
#endif
#ifdef HAVE_OFFLOAD
    { KEYS(ETALON_E4M3FN, 1, 1), EVERYTHING | NEEDS_OFFLOAD, "pa_mtp_omp" },
    { KEYS(ETALON_BF16, 1, 1), NEEDS_OFFLOAD, "pa_mtp_omp" },
    { { .device = 0 }, EVERYTHING | NEEDS_OFFLOAD, "pa_mtp_omp" },
#endif
#ifdef HAVE_AMX
    { DECODE(16, 8), NEEDS_AMX | NEEDS_AVX512, "pa_mtp_amx" }, /* two query rows a key; one: the next row */
#ifdef HAVE_AVX512
    { DECODE(16, 16), NEEDS_AMX | NEEDS_AVX512, "pa_mtp_avx512" },
#endif
    { KEYS(ETALON_E4M3FN, 1, 1), NEEDS_AMX | NEEDS_AVX512 | NEEDS_AVX2, "pa_mtp_amx" },
    { KEYS(ETALON_E4M3FNUZ, 1, 1), NEEDS_AMX | NEEDS_AVX512, "pa_mtp_amx" },
#endif
#ifdef HAVE_AVX2
    { KEYS(ETALON_E4M3FN, 1, 1), NEEDS_AMX | NEEDS_AVX2, "pa_mtp_avx2" }, /* AMX without AVX-512 */
#endif
#ifdef HAVE_AVX512
    { KEYS(ETALON_E4M3FN, 1, 1), NEEDS_AVX512 | NEEDS_AVX2, "pa_mtp_avx512" },
    { KEYS(ETALON_E4M3FNUZ, 1, 1), NEEDS_AVX512, "pa_mtp_avx512" },
#endif
#ifdef HAVE_AVX2
    { KEYS(ETALON_E4M3FN, 1, 1), NEEDS_AVX2, "pa_mtp_avx2" },
    { KEYS(ETALON_E4M3FNUZ, 1, 1), NEEDS_AVX2, "pa_mtp_avx2" },
#endif
#ifdef HAVE_NEON
    { KEYS(ETALON_E4M3FN, 1, 1), NEEDS_NEON, "pa_mtp_neon" },
#endif
    { KEYS(ETALON_E4M3FN, 1, 1), NEEDS_NONE, "pa_mtp_generic" },
    { KEYS(ETALON_E4M3FNUZ, 1, 1), NEEDS_NAME, "pa_mtp_generic" },
    { KEYS(ETALON_BF16, 1, 1), EVERYTHING, "pa_mtp_ref" },
    { KEYS(ETALON_F32, 1, 1), EVERYTHING | NEEDS_NAME, "pa_mtp_ref" },
    { KEYS(ETALON_E4M3FN, 1, 2), EVERYTHING, "pa_mtp_ref" },
    { KEYS(ETALON_E4M3FN, 2, 1), EVERYTHING, "pa_mtp_ref" },
    { KEYS(ETALON_E4M3FN, -1, 1), NEEDS_NONE, "pa_mtp_ref" },
    { { .device = 0 }, EVERYTHING | NEEDS_NAME, NULL },
};

#ifdef HAVE_GFX950
/* The row for so many query heads a KV head says these words of a problem that is otherwise made for it. */
static void gfx950_refuses(int64_t ratio, const pa_mtp_problem *p, const char *words)
{
    char name[64];
    snprintf(name, sizeof name, "pa_mtp_e4m3_d256_gqa%d_page16_gfx950", (int)ratio);
    const gate_row *row = gate_find(&pa_mtp_gate, name);
    ck_assert_ptr_nonnull(row);
    const char *why = row->refuse(p);
    if (words == NULL || why == NULL)
        ck_assert_msg(why == words, "%s: %s", name, why == NULL ? "taken" : why);
    else
        ck_assert_msg(strstr(why, words) != NULL, "%s: \"%s\" does not hold \"%s\"", name, why, words);
}

#define GFX950_REFUSES(ratio, change, words)              \
    do {                                                  \
        pa_mtp_problem p = (pa_mtp_problem)VERIFY(ratio); \
        change;                                           \
        gfx950_refuses(ratio, &p, words);                 \
    } while (0)

START_TEST(gfx950_refuses_in_words)
{
    static const int64_t ratios[] = { 16, 8, 4 };
    static const char   *others[] = { "have 16 query heads", "have 8 query heads", "have 4 query heads" };
    static const char   *long_q[] = { "q_len 5 and more", "q_len 9 and more", "q_len 17 and more" };
    int32_t              cu[] = { 0, 1, 1, 12 };
    for (int i = 0; i < 3; i++) {
        GFX950_REFUSES(ratios[i], (void)p, NULL);
        GFX950_REFUSES(ratios[i], p.q.dtype = ETALON_E4M3FN, NULL);
        GFX950_REFUSES(ratios[i], p.q.dtype = ETALON_F32, "q is neither BF16 nor E4M3FN");
        GFX950_REFUSES(ratios[i], p.k.dtype = ETALON_E4M3FNUZ, "k is not E4M3FN");
        GFX950_REFUSES(ratios[i], p.d_qk = 192, "a head dim is not 256");
        GFX950_REFUSES(ratios[i], p.d_v = 128, "a head dim is not 256");
        GFX950_REFUSES(ratios[i], p.page_size = 64, "a page does not hold 16 keys");
        GFX950_REFUSES(ratios[i], p.heads *= 2, others[i]);
        GFX950_REFUSES(ratios[i], p.kv_heads = 2, others[i]);
        GFX950_REFUSES(ratios[i], (p.heads *= 2, p.kv_heads = 2), NULL);
        GFX950_REFUSES(ratios[i], p.mask.left = 1000, "a window to the left");
        GFX950_REFUSES(ratios[i], p.mask.right = 7, NULL);
        GFX950_REFUSES(ratios[i], p.q.stride[1] = 260, "rows of q, k or v are not 16-byte aligned");
        GFX950_REFUSES(ratios[i], p.k.data = (void *)(uintptr_t)4104, "rows of q, k or v are not 16-byte aligned");
        GFX950_REFUSES(ratios[i], (p.device = ETALON_HOST, p.k.data = (void *)(uintptr_t)4104), NULL);
        GFX950_REFUSES(ratios[i], p.v.stride[3] = 2, "gaps in the head dim");
        GFX950_REFUSES(ratios[i], p.v.stride[0] = 4104, "rows of q, k or v are not 16-byte aligned");
        GFX950_REFUSES(ratios[i], p.out.stride[2] = 2, "rows of out are not aligned");
        GFX950_REFUSES(ratios[i], p.out.data = (void *)(uintptr_t)4, "rows of out are not aligned");
        GFX950_REFUSES(ratios[i], (p.out.dtype = ETALON_F32, p.out.stride[0] += 2), "rows of out are not aligned");
        GFX950_REFUSES(ratios[i], p.k.stride[1] = (1 << 26) + 16, "more than 2^26 bytes apart");
        GFX950_REFUSES(ratios[i], p.v.stride[1] = -256, "or backwards");
        GFX950_REFUSES(ratios[i], p.k.stride[0] = INT64_C(1) << 40, NULL);
        GFX950_REFUSES(ratios[i], p.block_tables.stride[1] = 2, "block_tables has gaps");
        GFX950_REFUSES(ratios[i], p.block_tables.shape[1] = 1 << 27, "more than 2^31 keys");
        GFX950_REFUSES(ratios[i], p.batch = INT32_MAX, "or parts");
        GFX950_REFUSES(ratios[i], p.block_tables.shape[1] = 1 << 26, NULL);
        GFX950_REFUSES(ratios[i], (p.block_tables.shape[1] = 1 << 26, p.batch = 256), "more than 2^31 tiles");
        GFX950_REFUSES(ratios[i], p.tokens = 3 * (64 / ratios[i]), NULL);
        GFX950_REFUSES(ratios[i], p.tokens = 3 * (64 / ratios[i]) + 1, long_q[i]);
        /* on the host the lengths can be read */
        GFX950_REFUSES(
            ratios[i],
            (p.device = ETALON_HOST, p.cu_seqlens_q = etalon_tensor_dense(cu, ETALON_I32, 1, (int64_t[]){ 4 })),
            64 / ratios[i] < 11 ? long_q[i] : NULL);
    }
}
END_TEST
#endif

START_TEST(gate_selects)
{
    const gate_row *row = gate_select(&pa_mtp_gate, choices[_i].have, &choices[_i].p);
    if (choices[_i].want == NULL)
        ck_assert_ptr_null(row);
    else
        ck_assert_str_eq(row->name, choices[_i].want);
}
END_TEST

START_TEST(a_device_tensor_finds_no_kernel)
{
    fixture f;
    set_up(&f);
    etalon_tensor *const all[] = { &f.args.q,        &f.args.k_cache,     &f.args.v_cache,   &f.args.block_tables,
                                   &f.args.seq_lens, &f.args.out,         &f.args.k_descale, &f.args.v_descale,
                                   &f.args.lse,      &f.args.cu_seqlens_q };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        all[i]->device = 0;
    ck_assert_rejects(run(&f), ETALON_ERROR_UNSUPPORTED, "the tensors are not in host memory");
    etalon_context_destroy(f.ctx);
}
END_TEST

/* 1M keys: the ceiling of the contract is 64 MiB. */
START_TEST(workspace_does_not_grow_with_the_keys)
{
    fixture f;
    set_up(&f);
    enum { KEYS = 1 << 20 };
    int32_t *table = calloc(KEYS / PAGE, sizeof *table); /* every page id is 0 */
    f.args.block_tables = dense(table, ETALON_I32, 2, 1, KEYS / PAGE, 0, 0);
    f.lens[0] = KEYS;
    f.args.seq_lens.shape[0] = 1;
    f.args.cu_seqlens_q.shape[0] = 2;
    f.cu[1] = TOKENS;
    f.args.v_descale = (etalon_tensor){ 0 };
    for (int i = 0; i < pa_mtp_gate.count; i++) {
        size_t bytes = SIZE_MAX;
        if ((pa_mtp_gate.rows[i].needs & (f.ctx->have | NEEDS_NAME)) != pa_mtp_gate.rows[i].needs)
            continue; /* not on this CPU */
        f.args.kernel = pa_mtp_gate.rows[i].name;
        ck_assert_ok(etalon_pa_mtp_workspace_bytes(f.ctx, &f.args, &bytes));
        ck_assert_uint_lt(bytes, (size_t)64 << 20);
    }
    free(table);
    etalon_context_destroy(f.ctx);
}
END_TEST

typedef struct account {
    int         served;
    const char *by; /* the row */
} account;

static void count_served(void *user, const char *kernel, const char *reason)
{
    account *told = user;
    if (reason == NULL) {
        told->by = kernel;
        told->served++;
    } else if (strcmp(kernel, "pa_mtp_model") == 0) {
        ck_assert_str_eq(reason, "by name only");
    }
}

START_TEST(explain_names_the_row_that_serves)
{
    fixture f;
    account told = { 0, NULL };
    set_up(&f);
    pa_mtp_problem  p;
    const gate_row *row;
    ck_assert_ok(pa_mtp_check(&f.args, &p));
    ck_assert_ok(gate_choose(&pa_mtp_gate, f.ctx, NULL, &p, &row));
    ck_assert_ok(etalon_pa_mtp_explain(f.ctx, &f.args, count_served, &told));
    ck_assert_int_eq(told.served, 1);
    ck_assert_str_eq(told.by, row->name);
    etalon_context_destroy(f.ctx);
}
END_TEST

/* q = 0: every visible key weighs the same. Sequence 0 has 5 keys and 2 tokens: they see 4 and 5 of them. */
START_TEST(worked_by_hand)
{
    fixture f;
    set_up(&f);
    memset(f.q, 0, sizeof f.q);
    for (int slot = 0; slot < PAGES * PAGE; slot++)
        memset(&f.v[slot * KV_HEADS * DIM], e4m3fn_of_f32((float)slot, FP8_SATURATE), KV_HEADS * DIM);
    f.per_head[0] = 2.0f; /* sequence 0, KV head 0: query heads 0 and 1 */
    ck_assert_ok(run(&f));
    /* pages 2, 0, 3: slots 4 5 0 1 6; page 1: slots 2 3 */
    const float mean[TOKENS] = { (4 + 5 + 0 + 1) / 4.0f, (4 + 5 + 0 + 1 + 6) / 5.0f, (2 + 3) / 2.0f };
    const float keys[TOKENS] = { 4, 5, 2 };
    const float tolerance = 10 * 4 * 0x1p-24f; /* four roundings of values below 10 */
    for (int t = 0; t < TOKENS; t++)
        for (int h = 0; h < HEADS; h++) {
            const float factor = t < 2 && h < 2 ? 2.0f : 1.0f;
            ck_assert_float_eq_tol(f.lse[h * TOKENS + t], logf(keys[t]), tolerance);
            for (int d = 0; d < DIM; d++)
                ck_assert_float_eq_tol(f.out[(t * HEADS + h) * DIM + d], factor * mean[t], tolerance);
        }
    etalon_context_destroy(f.ctx);
}
END_TEST

static void fill(TCase *tcase)
{
    tcase_add_test(tcase, accepts_the_good_call);
    tcase_add_test(tcase, refuses_wrong_tensors);
    tcase_add_test(tcase, refuses_wrong_extents);
    tcase_add_test(tcase, refuses_wrong_scalars);
    tcase_add_test(tcase, refuses_wrong_content);
    tcase_add_test(tcase, refuses_wrong_memory);
    tcase_add_test(tcase, refuses_what_is_not_there);
    tcase_add_loop_test(tcase, gate_selects, 0, sizeof choices / sizeof choices[0]);
#ifdef HAVE_GFX950
    tcase_add_test(tcase, gfx950_refuses_in_words);
#endif
    tcase_add_test(tcase, a_device_tensor_finds_no_kernel);
    tcase_add_test(tcase, workspace_does_not_grow_with_the_keys);
    tcase_add_test(tcase, explain_names_the_row_that_serves);
    tcase_add_test(tcase, worked_by_hand);
}

int main(void)
{
    return testing_main("pa_mtp", fill);
}
