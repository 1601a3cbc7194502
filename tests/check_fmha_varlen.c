/* The contract of fmha_varlen: what it refuses and in which words, which row serves a call, and a case worked by
 * hand. */
#include "fmha_varlen.h"
#include "fp8.h"
#include "testing.h"

#include <math.h>

enum { TOTAL_Q = 4, TOTAL_K = 5, HEADS = 4, KV_HEADS = 2, D_QK = 6, D_V = 3, BATCH = 2 };

/* Two sequences: 3 query rows on 2 keys, 1 on 3. */
typedef struct fixture {
    etalon_fmha_varlen_args args;
    uint8_t                 q[TOTAL_Q * HEADS * D_QK], k[TOTAL_K * KV_HEADS * D_QK], v[TOTAL_K * KV_HEADS * D_V];
    int32_t                 cu_q[BATCH + 1], cu_k[BATCH + 1];
    float                   out[TOTAL_Q * HEADS * D_V], lse[HEADS * TOTAL_Q];
    float                   descale, per_head[BATCH * KV_HEADS];
    etalon_context         *ctx;
} fixture;

static etalon_tensor dense(void *data, etalon_dtype dtype, int32_t rank, int64_t n0, int64_t n1, int64_t n2)
{
    const int64_t shape[] = { n0, n1, n2 };
    return etalon_tensor_dense(data, dtype, rank, shape);
}

static void set_up(fixture *f)
{
    *f = (fixture){ .args = ETALON_FMHA_VARLEN_ARGS_INIT,
                    .cu_q = { 0, 3, 4 },
                    .cu_k = { 0, 2, 5 },
                    .descale = 1,
                    .per_head = { 1, 1, 1, 1 } };
    for (size_t i = 0; i < sizeof f->q; i++)
        f->q[i] = e4m3fn_of_f32(0.25f * (float)((int)(i % 7) - 3), FP8_SATURATE);
    for (size_t i = 0; i < sizeof f->k; i++)
        f->k[i] = e4m3fn_of_f32(0.125f * (float)((int)(i % 11) - 5), FP8_SATURATE);
    for (size_t i = 0; i < sizeof f->v; i++)
        f->v[i] = e4m3fn_of_f32(0.5f * (float)((int)(i % 5) - 2), FP8_SATURATE);
    for (int i = 0; i < TOTAL_Q * HEADS * D_V; i++)
        f->out[i] = -77.0f;
    for (int i = 0; i < HEADS * TOTAL_Q; i++)
        f->lse[i] = -77.0f;
    etalon_fmha_varlen_args *a = &f->args;
    a->q = dense(f->q, ETALON_E4M3FN, 3, TOTAL_Q, HEADS, D_QK);
    a->k = dense(f->k, ETALON_E4M3FN, 3, TOTAL_K, KV_HEADS, D_QK);
    a->v = dense(f->v, ETALON_E4M3FN, 3, TOTAL_K, KV_HEADS, D_V);
    a->cu_seqlens_q = dense(f->cu_q, ETALON_I32, 1, BATCH + 1, 0, 0);
    a->cu_seqlens_k = dense(f->cu_k, ETALON_I32, 1, BATCH + 1, 0, 0);
    a->out = dense(f->out, ETALON_F32, 3, TOTAL_Q, HEADS, D_V);
    a->lse = dense(f->lse, ETALON_F32, 2, HEADS, TOTAL_Q, 0);
    a->q_descale = dense(&f->descale, ETALON_F32, 0, 0, 0, 0);
    a->k_descale = dense(f->per_head, ETALON_F32, 2, BATCH, KV_HEADS, 0);
    a->max_seqlen_q = 3;
    a->max_seqlen_k = 3;
    ck_assert_ok(etalon_context_create(NULL, &f->ctx));
}

static etalon_status run(fixture *f)
{
    etalon_workspace    work = { 0 };
    const etalon_status refused = etalon_fmha_varlen_workspace_bytes(f->ctx, &f->args, &work.bytes);
    if (refused != ETALON_OK)
        return refused;
    work.data = aligned_alloc(ETALON_WORKSPACE_ALIGN, work.bytes);
    const etalon_status status = etalon_fmha_varlen(f->ctx, &f->args, work);
    free(work.data);
    return status;
}

/* One statement breaks a good call: the sentence holds the words, and no output changed. */
#define REJECT(statement, words)                                          \
    do {                                                                  \
        fixture f;                                                        \
        set_up(&f);                                                       \
        etalon_fmha_varlen_args *a = &f.args;                             \
        statement;                                                        \
        (void)a;                                                          \
        ck_assert_rejects(run(&f), ETALON_ERROR_INVALID_ARGUMENT, words); \
        for (int i = 0; i < TOTAL_Q * HEADS * D_V; i++)                   \
            ck_assert_float_eq(f.out[i], -77.0f);                         \
        for (int i = 0; i < HEADS * TOTAL_Q; i++)                         \
            ck_assert_float_eq(f.lse[i], -77.0f);                         \
        etalon_context_destroy(f.ctx);                                    \
    } while (0)

START_TEST(accepts_the_good_call)
{
    fixture f;
    set_up(&f);
    ck_assert_ok(run(&f));
    for (int i = 0; i < TOTAL_Q * HEADS * D_V; i++)
        ck_assert(isfinite(f.out[i]) && f.out[i] != -77.0f);
    etalon_context_destroy(f.ctx);
}
END_TEST

START_TEST(refuses_wrong_tensors)
{
    REJECT(a->q.data = NULL, "fmha_varlen: q: missing");
    REJECT(a->k.data = NULL, "fmha_varlen: k: missing");
    REJECT(a->v.data = NULL, "fmha_varlen: v: missing");
    REJECT(a->cu_seqlens_q.data = NULL, "fmha_varlen: cu_seqlens_q: missing");
    REJECT(a->cu_seqlens_k.data = NULL, "fmha_varlen: cu_seqlens_k: missing");
    REJECT(a->out.data = NULL, "fmha_varlen: out: missing");
    REJECT(a->q.dtype = ETALON_U8, "q: dtype u8, expected f32 or bf16 or e4m3fn or e4m3fnuz");
    REJECT(a->k.dtype = ETALON_E4M3FNUZ, "k: dtype e4m3fnuz, expected e4m3fn");
    REJECT(a->v.dtype = ETALON_E5M2, "v: dtype e5m2, expected e4m3fn");
    REJECT(a->cu_seqlens_k.dtype = ETALON_I64, "cu_seqlens_k: dtype i64, expected i32");
    REJECT(a->out.dtype = ETALON_F64, "out: dtype f64, expected f32 or bf16");
    REJECT(a->k.rank = 4, "k: rank 4, expected 3");
    REJECT(a->v.shape[1] = -2, "v.shape[1]: -2, expected 0 or more");
    REJECT(a->k.shape[0] = INT64_MAX / 2, "k: the number of elements overflows 64 bits");
    REJECT(a->v.stride[0] = INT64_MIN, "v: shape times stride overflows 64 bits");
}
END_TEST

START_TEST(refuses_wrong_extents)
{
    REJECT(a->q.shape[1] = 0, "0 query heads, expected 1 or more");
    REJECT((a->k.shape[1] = 0, a->v.shape[1] = 0), "0 KV heads, expected 1 or more");
    REJECT(a->q.shape[1] = 3, "3 query heads, expected a multiple of the 2 KV heads");
    REJECT(a->q.shape[2] = 0, "head dim of q: 0, expected 1 to 576");
    REJECT(a->v.shape[2] = 600, "head dim of v: 600, expected 1 to 576");
    REJECT(a->k.shape[2] = 5, "k.shape[2]: 5, expected 6 (head dim of q)");
    REJECT(a->v.shape[0] = 4, "v.shape[0]: 4, expected 5 (tokens of k)");
    REJECT(a->cu_seqlens_q.shape[0] = 0, "cu_seqlens_q.shape[0]: 0, expected B + 1");
    REJECT(a->cu_seqlens_k.shape[0] = 2, "cu_seqlens_k.shape[0]: 2, expected 3");
    REJECT(a->out.shape[0] = 3, "out.shape[0]: 3, expected 4 (tokens of q)");
    REJECT(a->lse.shape[1] = 3, "lse.shape[1]: 3, expected 4 (rows of q)");
    REJECT(a->k_descale.shape[1] = 1, "k_descale.shape[1]: 1, expected 2 (Hkv)");
    REJECT(a->q_descale.rank = 3, "q_descale: rank 3, expected (), (1) or (B, Hkv)");
}
END_TEST

START_TEST(refuses_wrong_scalars_and_content)
{
    REJECT(a->softmax_scale = -0.5, "softmax_scale: -0.5, expected finite and positive");
    REJECT(f.descale = NAN, "q_descale[0, 0]: nan, expected finite and positive");
    REJECT(f.per_head[2] = 0.0f, "k_descale[1, 0]: 0, expected finite and positive");
    REJECT(a->max_seqlen_q = 2, "max_seqlen_q: 2, but sequence 0 has 3");
    REJECT(a->max_seqlen_k = 2, "max_seqlen_k: 2, but sequence 1 has 3");
    REJECT(a->max_seqlen_k = -1, "max_seqlen_k: -1, expected 0 or more");
    REJECT(f.cu_q[0] = -1, "cu_seqlens_q[0]: -1, expected 0");
    REJECT((f.cu_k[1] = 6), "cu_seqlens_k[2]: 5, expected at least 6: it must not decrease");
    REJECT(f.cu_k[2] = 4, "cu_seqlens_k[2]: 4, expected 5 (tokens of k)");
    REJECT(a->model.tile_keys = -32, "model.tile_keys: -32");
    REJECT(a->model.p_terms = -1, "model.p_terms: -1, expected 1 or 2, or 0 for 1");
}
END_TEST

START_TEST(refuses_wrong_memory)
{
    REJECT(a->out.stride[0] = 11, "out.stride[0]: 11, expected more than 11: elements would overlap");
    REJECT(a->cu_seqlens_k.device = 3, "cu_seqlens_k.device: 3, expected -1 (that of q)");
    REJECT(a->k_descale.device = 0, "k_descale.device: 0, expected -1 (that of q)");
    REJECT(a->q.device = -2, "q.device: -2, expected a device number or -1 (host)");
    REJECT(a->lse.data = f.out, "out: overlaps lse in memory");
}
END_TEST

/* Five spellings of windows that a gate of kernels without windows must tell apart. */
static const struct {
    int32_t   causal, left, right;
    int64_t   sq, sk, i;
    key_range see;
} windows[] = {
    { 0, -1, -1, 4, 4, 1, { 0, 4 } },
    { 0, -9, -1, 4, 4, 1, { 0, 4 } },
    { 1, -1, -1, 4, 4, 1, { 0, 2 } },
    { 1, -1, 3, 4, 4, 1, { 0, 2 } },
    { 0, -1, 0, 4, 4, 1, { 0, 2 } },
    { 0, 0, -1, 4, 4, 1, { 1, 4 } },
    { 0, 0, 0, 4, 4, 1, { 1, 2 } },
    { 1, 0, 0, 4, 4, 3, { 3, 4 } },
    { 1, 1, -1, 4, 4, 3, { 2, 4 } },
    { 1, -1, -1, 5, 2, 2, { 0, 0 } },
    { 1, -1, -1, 5, 2, 3, { 0, 1 } },
    { 1, -1, -1, 5, 2, 4, { 0, 2 } },
    { 0, 1, 1, 1, 9, 0, { 7, 9 } },
    { 0, 2, 0, 6, 2, 0, { 0, 0 } },
    { 1, -1, -1, 1, 7, 0, { 0, 7 } },
    { 0, -1, -1, 3, 0, 1, { 0, 0 } },
    { 0, INT32_MAX, INT32_MAX, 2, 3, 1, { 0, 3 } },
};

START_TEST(windows_are_normalised)
{
    const attention_mask mask = attention_mask_of(windows[_i].causal, windows[_i].left, windows[_i].right);
    const key_range      see = attention_visible(mask, windows[_i].i, windows[_i].sq, windows[_i].sk);
    ck_assert_int_eq(see.first, windows[_i].see.first);
    ck_assert_int_eq(see.last, windows[_i].see.last);
}
END_TEST

/* Keys and values in host memory, of which fast rows ask FP8 and unit stride in the head dim. */
#define KEYS(dtype_, k_, v_)                                                                                         \
    {                                                                                                                \
        .device = ETALON_HOST, .d_qk = 192, .d_v = 128, .k = { .dtype = dtype_, .rank = 3, .stride = { [2] = k_ } }, \
        .v = {                                                                                                       \
            .dtype = dtype_,                                                                                         \
            .rank = 3,                                                                                               \
            .stride = { [2] = v_ }                                                                                   \
        }                                                                                                            \
    }

/* On a device, as kernels for one architecture want it. */
#define PREFILL(dtype_, d_, out_, left_, right_)                                                                    \
    {                                                                                                               \
        .device = 0, .total_q = 100, .total_k = 300, .heads = 8, .kv_heads = 2, .batch = 1, .d_qk = 192, .d_v = d_, \
        .mask = { left_, right_ },                                                                                  \
        .q = { .dtype = dtype_, .rank = 3, .shape = { 100, 8, 192 }, .stride = { 1536, 192, 1 } },                  \
        .k = { .dtype = dtype_, .rank = 3, .shape = { 300, 2, 192 }, .stride = { 384, 192, 1 } },                   \
        .v = { .dtype = dtype_, .rank = 3, .shape = { 300, 2, d_ }, .stride = { 2 * (d_), d_, 1 } }, .out = {       \
            .dtype = out_,                                                                                          \
            .rank = 3,                                                                                              \
            .shape = { 100, 8, d_ },                                                                                \
            .stride = { 8 * (d_), d_, 1 }                                                                           \
        }                                                                                                           \
    }

enum { EVERYTHING = NEEDS_AMX | NEEDS_AVX2 | NEEDS_AVX512 | NEEDS_NEON };

static const struct {
    fmha_varlen_problem p;
    uint32_t            have;
    const char         *want; /* NULL: none */
} choices[] = {
#ifdef HAVE_GFX1250
    { PREFILL(ETALON_E4M3FN, 128, ETALON_BF16, 1000, 1000), NEEDS_GFX1250 | NEEDS_OFFLOAD,
      "fmha_varlen_e4m3_d192x128_gfx1250" },
    { PREFILL(ETALON_E4M3FN, 128, ETALON_BF16, 1000, 0), NEEDS_GFX1250 | NEEDS_OFFLOAD,
      "fmha_varlen_e4m3_d192x128_causal_gfx1250" },
    { PREFILL(ETALON_E4M3FN, 128, ETALON_BF16, 1000, 0), NEEDS_OFFLOAD, "fmha_varlen_omp" },
    { PREFILL(ETALON_E4M3FN, 128, ETALON_BF16, 20, 0), NEEDS_GFX1250 | NEEDS_OFFLOAD, "fmha_varlen_omp" },
    { PREFILL(ETALON_E4M3FN, 128, ETALON_BF16, 1000, 20), NEEDS_GFX1250 | NEEDS_OFFLOAD, "fmha_varlen_omp" },
    { PREFILL(ETALON_E4M3FN, 128, ETALON_F32, 1000, 0), NEEDS_GFX1250 | NEEDS_OFFLOAD, "fmha_varlen_omp" },
    { PREFILL(ETALON_E4M3FN, 192, ETALON_BF16, 1000, 0), NEEDS_GFX1250 | NEEDS_OFFLOAD, "fmha_varlen_omp" },
    { PREFILL(ETALON_E4M3FNUZ, 128, ETALON_BF16, 1000, 0), NEEDS_GFX1250 | NEEDS_OFFLOAD, "fmha_varlen_omp" },
#endif
#ifdef HAVE_OFFLOAD
    { KEYS(ETALON_E4M3FN, 1, 1), EVERYTHING | NEEDS_OFFLOAD, "fmha_varlen_omp" },
    { KEYS(ETALON_BF16, 1, 1), NEEDS_OFFLOAD, "fmha_varlen_omp" },
    { { .device = 0 }, EVERYTHING | NEEDS_OFFLOAD, "fmha_varlen_omp" },
#endif
#ifdef HAVE_AMX
    { KEYS(ETALON_E4M3FN, 1, 1), NEEDS_AMX | NEEDS_AVX512 | NEEDS_AVX2, "fmha_varlen_amx" },
    { KEYS(ETALON_E4M3FNUZ, 1, 1), NEEDS_AMX | NEEDS_AVX512, "fmha_varlen_amx" },
#endif
#ifdef HAVE_AVX2
    { KEYS(ETALON_E4M3FN, 1, 1), NEEDS_AMX | NEEDS_AVX2, "fmha_varlen_avx2" }, /* AMX without AVX-512 */
#endif
#ifdef HAVE_AVX512
    { KEYS(ETALON_E4M3FN, 1, 1), NEEDS_AVX512 | NEEDS_AVX2, "fmha_varlen_avx512" },
    { KEYS(ETALON_E4M3FNUZ, 1, 1), NEEDS_AVX512, "fmha_varlen_avx512" },
#endif
#ifdef HAVE_AVX2
    { KEYS(ETALON_E4M3FN, 1, 1), NEEDS_AVX2, "fmha_varlen_avx2" },
    { KEYS(ETALON_E4M3FNUZ, 1, 1), NEEDS_AVX2, "fmha_varlen_avx2" },
#endif
#ifdef HAVE_NEON
    { KEYS(ETALON_E4M3FN, 1, 1), NEEDS_NEON, "fmha_varlen_neon" },
#endif
    { KEYS(ETALON_E4M3FN, 1, 1), NEEDS_NONE, "fmha_varlen_generic" },
    { KEYS(ETALON_E4M3FNUZ, 1, 1), NEEDS_NAME, "fmha_varlen_generic" },
    { KEYS(ETALON_BF16, 1, 1), EVERYTHING, "fmha_varlen_ref" },
    { KEYS(ETALON_F32, 1, 1), EVERYTHING | NEEDS_NAME, "fmha_varlen_ref" },
    { KEYS(ETALON_E4M3FN, 1, 2), EVERYTHING, "fmha_varlen_ref" },
    { KEYS(ETALON_E4M3FN, 2, 1), EVERYTHING, "fmha_varlen_ref" },
    { KEYS(ETALON_E4M3FN, -1, 1), NEEDS_NONE, "fmha_varlen_ref" },
    { { .device = 0 }, EVERYTHING | NEEDS_NAME, NULL },
};

START_TEST(gate_selects)
{
    const gate_row *row = gate_select(&fmha_varlen_gate, choices[_i].have, &choices[_i].p);
    if (choices[_i].want == NULL)
        ck_assert_ptr_null(row);
    else
        ck_assert_str_eq(row->name, choices[_i].want);
}
END_TEST

START_TEST(the_model_answers_to_its_name)
{
    fixture f;
    set_up(&f);
    float exact[TOTAL_Q * HEADS * D_V];
    f.args.kernel = "fmha_varlen_ref";
    ck_assert_ok(run(&f));
    memcpy(exact, f.out, sizeof exact);
    f.args.kernel = "fmha_varlen_model";
    ck_assert_ok(run(&f));
    ck_assert_int_ne(memcmp(exact, f.out, sizeof exact), 0);
    f.args.kernel = "fmha_varlen_ref";
    ck_assert_ok(run(&f));
    ck_assert_int_eq(memcmp(exact, f.out, sizeof exact), 0);
    etalon_context_destroy(f.ctx);
}
END_TEST

/* Bottom-right causal with more queries than keys: rows 0..3 of sequence 0 see 0, 1, 2 keys. */
START_TEST(worked_by_hand)
{
    fixture f;
    set_up(&f);
    f.args.causal = 1;
    memset(f.q, 0, sizeof f.q);
    for (int j = 0; j < TOTAL_K; j++)
        memset(&f.v[j * KV_HEADS * D_V], e4m3fn_of_f32((float)(j + 1), FP8_SATURATE), KV_HEADS * D_V);
    ck_assert_ok(run(&f));
    const float mean[TOTAL_Q] = { 0, 1, (1 + 2) / 2.0f, (3 + 4 + 5) / 3.0f };
    const float keys[TOTAL_Q] = { 0, 1, 2, 3 };
    const float tolerance = 5 * 4 * 0x1p-24f; /* four roundings of values up to 5 */
    for (int t = 0; t < TOTAL_Q; t++)
        for (int h = 0; h < HEADS; h++) {
            if (t == 0)
                ck_assert(f.lse[h * TOTAL_Q + t] == -INFINITY);
            else
                ck_assert_float_eq_tol(f.lse[h * TOTAL_Q + t], logf(keys[t]), tolerance);
            for (int d = 0; d < D_V; d++)
                ck_assert_float_eq_tol(f.out[(t * HEADS + h) * D_V + d], mean[t], tolerance);
        }
    etalon_context_destroy(f.ctx);
}
END_TEST

static void fill(TCase *tcase)
{
    tcase_add_test(tcase, accepts_the_good_call);
    tcase_add_test(tcase, refuses_wrong_tensors);
    tcase_add_test(tcase, refuses_wrong_extents);
    tcase_add_test(tcase, refuses_wrong_scalars_and_content);
    tcase_add_test(tcase, refuses_wrong_memory);
    tcase_add_loop_test(tcase, windows_are_normalised, 0, sizeof windows / sizeof windows[0]);
    tcase_add_loop_test(tcase, gate_selects, 0, sizeof choices / sizeof choices[0]);
    tcase_add_test(tcase, the_model_answers_to_its_name);
    tcase_add_test(tcase, worked_by_hand);
}

int main(void)
{
    return testing_main("fmha_varlen", fill);
}
