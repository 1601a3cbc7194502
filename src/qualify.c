#include "qualify.h"

#include "element.h"
#include "fmha_varlen.h"
#include "mqa_logits_paged.h"
#include "pa_mtp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (int)(sizeof array / sizeof array[0])

/* Inputs are small whole numbers, so that products and sums are exact in any order; the reference on the host gives the
 * answers. A row is asked the first question of its operation that it serves: the first one is for rows that take any
 * shape, the others for rows that want the field's.
 */
static const uint8_t  e4m3fn_digit[5] = { 0xC0, 0xB8, 0x00, 0x38, 0x40 };         /* -2 to 2 */
static const uint16_t bf16_digit[5] = { 0xC000, 0xBF80, 0x0000, 0x3F80, 0x4000 }; /* the same */

/* Digits 0 to 4 in no simple order: a kernel that mixes up rows, heads or keys sees others. */
static int digit(int i)
{
    return (int)(((uint32_t)i * 2654435761u /* 2^32 / golden ratio */ >> 7) % 5);
}

/* What became of a question. */
typedef struct answer {
    bool   only_ask; /* whether the row would serve it, without a device */
    bool   refused;  /* by the row: not a question for it */
    char  *reason;   /* of a failure */
    size_t bytes;
} answer;

static bool failed(answer *a)
{
    snprintf(a->reason, a->bytes, "not qualified: %s", etalon_last_error());
    return false;
}

static bool refused(answer *a)
{
    a->refused = true;
    return false;
}

/* mqa_logits
 * ----------
 * Sums are exact: no tolerance. Rows that do not see all keys, one that sees none, extents that fill no tile; more
 * keys, for rows that stage them ahead.
 */
enum {
    MQA_ROWS = 5,
    MQA_KEYS = 70,
    MQA_MOST_KEYS = 600,
    MQA_MOST_HEADS = 64,
    MQA_MOST_DIMS = 128,
    MQA_SHORT = 4 /* columns that compressed logits have fewer than there are keys */
};

static const struct {
    int64_t m, n, h, d;
} mqa_shapes[] = { { MQA_ROWS, MQA_KEYS, 3, 20 }, { 3, MQA_MOST_KEYS, 32, 128 }, { 3, MQA_MOST_KEYS, 64, 128 } };

typedef struct mqa_memory {
    uint8_t q[MQA_ROWS * MQA_MOST_HEADS * MQA_MOST_DIMS], k[MQA_MOST_KEYS * MQA_MOST_DIMS];
    float   kv_scale[MQA_MOST_KEYS], weights[MQA_ROWS * MQA_MOST_HEADS];
    int32_t ks[MQA_ROWS], ke[MQA_ROWS];
    float   want[MQA_ROWS * MQA_MOST_KEYS], got[MQA_ROWS * MQA_MOST_KEYS];
} mqa_memory;

static etalon_mqa_logits_args mqa_question(mqa_memory *memory, int shape)
{
    const int64_t          m = mqa_shapes[shape].m, n = mqa_shapes[shape].n;
    const int64_t          h = mqa_shapes[shape].h, d = mqa_shapes[shape].d;
    etalon_mqa_logits_args a = ETALON_MQA_LOGITS_ARGS_INIT;
    for (int i = 0; i < m * h * d; i++)
        memory->q[i] = e4m3fn_digit[digit(i)];
    for (int i = 0; i < n * d; i++)
        memory->k[i] = e4m3fn_digit[digit(i + 7)];
    for (int i = 0; i < n; i++)
        memory->kv_scale[i] = i % 3 == 0 ? 0.5f : 2.0f;
    for (int i = 0; i < m * h; i++)
        memory->weights[i] = (float)(digit(i + 3) - 2);
    for (int i = 0; i < m; i++) {
        memory->ks[i] = 3 * i;
        memory->ke[i] = i == 1 ? 0 : (int32_t)n - i;
    }
    a.q = etalon_tensor_dense(memory->q, ETALON_E4M3FN, 3, (int64_t[]){ m, h, d });
    a.k = etalon_tensor_dense(memory->k, ETALON_E4M3FN, 2, (int64_t[]){ n, d });
    a.kv_scale = etalon_tensor_dense(memory->kv_scale, ETALON_F32, 1, (int64_t[]){ n });
    a.weights = etalon_tensor_dense(memory->weights, ETALON_F32, 2, (int64_t[]){ m, h });
    a.cu_seqlen_ks = etalon_tensor_dense(memory->ks, ETALON_I32, 1, (int64_t[]){ m });
    a.cu_seqlen_ke = etalon_tensor_dense(memory->ke, ETALON_I32, 1, (int64_t[]){ m });
    return a;
}

static bool mqa_run(const etalon_context *ctx, etalon_mqa_logits_args *a, const char *kernel, float *logits)
{
    const etalon_workspace none = { 0 };
    const int64_t          columns = a->max_seqlen_k > 0 ? a->max_seqlen_k : a->k.shape[0];
    a->kernel = kernel;
    a->logits = etalon_tensor_dense(logits, ETALON_F32, 2, (int64_t[]){ a->q.shape[0], columns });
    memset(logits, 0xFF, (size_t)(a->q.shape[0] * columns) * sizeof *logits); /* NaN, where nothing is written */
    return etalon_mqa_logits(ctx, a, none) == ETALON_OK;
}

/* A comparison that NaN fails. */
static bool logits_compare(const float *got, const float *want, int64_t rows, int64_t columns, answer *a)
{
    for (int64_t i = 0; i < rows * columns; i++)
        if (!(got[i] == want[i])) {
            snprintf(a->reason, a->bytes,
                     "not qualified: logits[%" PRId64 ", %" PRId64 "] of a known answer is %g, expected %g",
                     i / columns, i % columns, (double)got[i], (double)want[i]);
            return false;
        }
    return true;
}

static bool mqa_ask(const etalon_context *ctx, const gate_row *row, etalon_mqa_logits_args *a, mqa_memory *m,
                    answer *out)
{
    mqa_logits_problem problem;
    if (!mqa_run(ctx, a, "mqa_logits_ref", m->want) || mqa_logits_check(a, &problem) != ETALON_OK)
        return failed(out);
    if (row->refuse(&problem) != NULL)
        return refused(out);
    if (out->only_ask)
        return true;
    return mqa_run(ctx, a, row->name, m->got) ? logits_compare(m->got, m->want, a->q.shape[0], a->logits.shape[1], out)
                                              : failed(out);
}

/* Whole rows, and compressed ones of a row that takes them. */
static bool mqa_answers(const etalon_context *ctx, const gate_row *row, int shape, void *memory, answer *out)
{
    mqa_memory            *m = memory;
    etalon_mqa_logits_args a = mqa_question(m, shape);
    if (!mqa_ask(ctx, row, &a, m, out))
        return false;
    a.max_seqlen_k = a.k.shape[0] - MQA_SHORT;
    if (mqa_ask(ctx, row, &a, m, out))
        return true;
    const bool only_whole = out->refused;
    out->refused = false;
    return only_whole;
}

/* mqa_logits_paged
 * ----------------
 * The same keys in shuffled blocks, with scales that tell slots and blocks apart; rows of different lengths, one of 0.
 */
enum { PAGED_SEQUENCES = 2, PAGED_ROWS = 2, PAGED_MOST_BLOCKS = 2 * ((MQA_KEYS + 2) / 3), PAGED_MOST_SIZE = 64 };

static const struct {
    int64_t block_size, h, d;
} paged_shapes[] = { { 3, 3, 20 }, { 64, 32, 128 }, { 64, 64, 128 } };

enum {
    PAGED_MOST_ROWS = PAGED_SEQUENCES * PAGED_ROWS,
    PAGED_MOST_COLUMNS = MQA_KEYS + PAGED_MOST_SIZE,
    PAGED_MOST_BYTES = 4 * PAGED_MOST_SIZE * (128 + 4)
};

typedef struct paged_memory {
    uint8_t q[PAGED_MOST_ROWS * MQA_MOST_HEADS * 128];
    float   cache[PAGED_MOST_BYTES / 4]; /* aligned for its scales */
    float   weights[PAGED_MOST_ROWS * MQA_MOST_HEADS];
    int32_t lens[PAGED_MOST_ROWS], tables[PAGED_MOST_BLOCKS];
    float   want[PAGED_MOST_ROWS * PAGED_MOST_COLUMNS], got[PAGED_MOST_ROWS * PAGED_MOST_COLUMNS];
} paged_memory;

static void paged_fill_cache(uint8_t *cache, int64_t blocks, int64_t size, int64_t d)
{
    for (int64_t i = 0; i < blocks * size; i++) {
        uint8_t    *block = cache + i / size * size * (d + 4);
        const float scale = 1.0f / (float)(1 << i % 5);
        for (int64_t n = 0; n < d; n++)
            block[i % size * d + n] = e4m3fn_digit[digit((int)(i * d + n) + 7)];
        memcpy(block + size * d + 4 * (i % size), &scale, sizeof scale);
    }
}

static etalon_mqa_logits_paged_args paged_question(paged_memory *memory, int64_t size, int64_t h, int64_t d)
{
    static const int32_t         lens[PAGED_MOST_ROWS] = { MQA_KEYS - 1, MQA_KEYS, 0, 37 };
    const int64_t                rows = PAGED_MOST_ROWS, table = (MQA_KEYS + size - 1) / size, blocks = 2 * table;
    etalon_mqa_logits_paged_args a = ETALON_MQA_LOGITS_PAGED_ARGS_INIT;
    for (int i = 0; i < rows * h * d; i++)
        memory->q[i] = e4m3fn_digit[digit(i)];
    for (int i = 0; i < rows * h; i++)
        memory->weights[i] = (float)(digit(i + 3) - 2);
    for (int i = 0; i < blocks; i++)
        memory->tables[i] = (int32_t)(blocks - 1 - i);
    memcpy(memory->lens, lens, sizeof lens);
    paged_fill_cache((uint8_t *)memory->cache, blocks, size, d);
    a.q = etalon_tensor_dense(memory->q, ETALON_E4M3FN, 4, (int64_t[]){ PAGED_SEQUENCES, PAGED_ROWS, h, d });
    a.kv_cache = etalon_tensor_dense(memory->cache, ETALON_E4M3FN, 3, (int64_t[]){ blocks, size, d + 4 });
    a.weights = etalon_tensor_dense(memory->weights, ETALON_F32, 2, (int64_t[]){ rows, h });
    a.context_lens = etalon_tensor_dense(memory->lens, ETALON_I32, 2, (int64_t[]){ PAGED_SEQUENCES, PAGED_ROWS });
    a.block_tables = etalon_tensor_dense(memory->tables, ETALON_I32, 2, (int64_t[]){ PAGED_SEQUENCES, table });
    return a;
}

static bool paged_run(const etalon_context *ctx, etalon_mqa_logits_paged_args *a, const char *kernel, float *logits)
{
    const etalon_workspace none = { 0 };
    const int64_t          columns = a->block_tables.shape[1] * a->kv_cache.shape[1];
    a->kernel = kernel;
    a->logits = etalon_tensor_dense(logits, ETALON_F32, 2, (int64_t[]){ PAGED_MOST_ROWS, columns });
    memset(logits, 0xFF, (size_t)(PAGED_MOST_ROWS * columns) * sizeof *logits); /* NaN, where nothing is written */
    return etalon_mqa_logits_paged(ctx, a, none) == ETALON_OK;
}

static bool paged_answers(const etalon_context *ctx, const gate_row *row, int shape, void *memory, answer *out)
{
    paged_memory                *m = memory;
    etalon_mqa_logits_paged_args a =
        paged_question(m, paged_shapes[shape].block_size, paged_shapes[shape].h, paged_shapes[shape].d);
    mqa_logits_paged_problem problem;
    if (!paged_run(ctx, &a, "mqa_logits_paged_ref", m->want) || mqa_logits_paged_check(&a, &problem) != ETALON_OK)
        return failed(out);
    if (row->refuse(&problem) != NULL)
        return refused(out);
    if (out->only_ask)
        return true;
    return paged_run(ctx, &a, row->name, m->got)
               ? logits_compare(m->got, m->want, PAGED_MOST_ROWS, problem.columns, out)
               : failed(out);
}

/* pa_mtp and fmha_varlen
 * ----------------------
 * Scores are whole, and softmax_scale ln 2 makes all weights powers of two, which a row that rounds them to FP8 has
 * exactly, too. A quotient by their sum is left, and out in BF16. Four sequences: rows that see some of the keys, no row,
 * rows in front of the first key, a row without keys.
 */
enum {
    ATTENTION_BATCH = 4,
    ATTENTION_PAGES = 64, /* of `page_size` slots, at least 5 */
    ATTENTION_MOST_HEADS = 16,
    ATTENTION_MOST_ROWS = 153,
    ATTENTION_MOST_DIMS = 256,
    ATTENTION_MOST_OUT = ATTENTION_MOST_ROWS * 4 * 192,
    ATTENTION_MOST_SLOTS = ATTENTION_PAGES * 16 * 2
};

static const double ln2 = 0.69314718055994530942;

/* Few keys for rows that take any shape, and for those that work by large tiles more than a tile has. */
typedef struct attention_lengths {
    int32_t cu_q[ATTENTION_BATCH + 1], cu_k[ATTENTION_BATCH + 1];
} attention_lengths;

static const attention_lengths few = { { 0, 4, 4, 6, 7 }, { 0, 37, 46, 116, 116 } };
static const attention_lengths decode = { { 0, 4, 4, 6, 7 }, { 0, 200, 209, 279, 279 } };
static const attention_lengths prefill = { { 0, 150, 150, 152, ATTENTION_MOST_ROWS }, { 0, 200, 209, 279, 279 } };

typedef struct attention_shape {
    const attention_lengths *lengths;
    int64_t                  heads, kv_heads, d_qk, d_v, page_size;
    int32_t                  causal;
} attention_shape;

static int64_t attention_rows(const attention_shape *s)
{
    return s->lengths->cu_q[ATTENTION_BATCH];
}

typedef struct attention_answer {
    uint16_t out[ATTENTION_MOST_OUT];
    float    lse[ATTENTION_MOST_HEADS * ATTENTION_MOST_ROWS];
} attention_answer;

typedef struct attention_memory {
    uint16_t         q[ATTENTION_MOST_OUT]; /* of BF16, or E4M3FN in its first half */
    uint8_t          k[ATTENTION_MOST_SLOTS * ATTENTION_MOST_DIMS], v[ATTENTION_MOST_SLOTS * ATTENTION_MOST_DIMS];
    int32_t          table[ATTENTION_BATCH * ATTENTION_PAGES], lengths[ATTENTION_BATCH];
    attention_answer want, got;
} attention_memory;

/* Every eighth element of q is a digit other than 0, in places that differ from row to row: scores stay small enough for
 * more than one weight to count. */
static int sparse_digit(int i)
{
    return (uint32_t)i * 2246822519u >> 29 == 0 ? digit(i) : 2;
}

static void attention_fill(attention_memory *m)
{
    for (int i = 0; i < ATTENTION_MOST_SLOTS * ATTENTION_MOST_DIMS; i++) {
        m->k[i] = e4m3fn_digit[digit(i + 5)];
        m->v[i] = e4m3fn_digit[digit(i + 11)];
    }
}

static etalon_tensor attention_out(attention_answer *a, const attention_shape *s)
{
    memset(a, 0xFF, sizeof *a); /* NaN, where nothing is written */
    return etalon_tensor_dense(a->out, ETALON_BF16, 3, (int64_t[]){ attention_rows(s), s->heads, s->d_v });
}

static etalon_tensor attention_lse(attention_answer *a, const attention_shape *s)
{
    return etalon_tensor_dense(a->lse, ETALON_F32, 2, (int64_t[]){ s->heads, attention_rows(s) });
}

static etalon_tensor attention_index(const void *data, int64_t count)
{
    return etalon_tensor_dense((void *)(uintptr_t)data, ETALON_I32, 1, &count);
}

/* |v| <= 2, so out is within one step of BF16 there; an error of the order of the numbers is far outside. */
static bool attention_compare(const attention_memory *m, const attention_shape *s, answer *a)
{
    const double out_tolerance = 0x1p-7, lse_tolerance = 0x1p-10;
    for (int i = 0; i < attention_rows(s) * s->heads * s->d_v; i++) {
        const double want = (double)f32_of_bf16(m->want.out[i]), got = (double)f32_of_bf16(m->got.out[i]);
        if (!(fabs(got - want) <= out_tolerance)) {
            snprintf(a->reason, a->bytes, "not qualified: out[%d] of a known answer is %g, expected %g", i, got, want);
            return false;
        }
    }
    for (int i = 0; i < attention_rows(s) * s->heads; i++) {
        const double want = (double)m->want.lse[i], got = (double)m->got.lse[i];
        if (!(got == want || fabs(got - want) <= lse_tolerance)) {
            snprintf(a->reason, a->bytes, "not qualified: lse[%d] of a known answer is %g, expected %g", i, got, want);
            return false;
        }
    }
    return true;
}

static const attention_shape pa_mtp_shapes[] = {
    { &few, 6, 2, 20, 12, 5, 1 },
    { &decode, 16, 1, 256, 256, 16, 1 },
    { &decode, 8, 1, 256, 256, 16, 1 },
    { &decode, 4, 1, 256, 256, 16, 1 },
};

/* Pages in no simple order, none used twice. */
static void pa_mtp_fill_table(attention_memory *m, const attention_shape *s)
{
    int next = 0;
    for (int b = 0; b < ATTENTION_BATCH; b++) {
        m->lengths[b] = s->lengths->cu_k[b + 1] - s->lengths->cu_k[b];
        for (int64_t i = 0; i * s->page_size < m->lengths[b]; i++)
            m->table[b * ATTENTION_PAGES + i] = 7 * ++next % ATTENTION_PAGES;
    }
}

static etalon_pa_mtp_args pa_mtp_question(attention_memory *m, const attention_shape *s)
{
    etalon_pa_mtp_args a = ETALON_PA_MTP_ARGS_INIT;
    for (int i = 0; i < attention_rows(s) * s->heads * s->d_qk; i++)
        m->q[i] = bf16_digit[sparse_digit(i)];
    attention_fill(m);
    pa_mtp_fill_table(m, s);
    a.q = etalon_tensor_dense(m->q, ETALON_BF16, 3, (int64_t[]){ attention_rows(s), s->heads, s->d_qk });
    a.k_cache =
        etalon_tensor_dense(m->k, ETALON_E4M3FN, 4, (int64_t[]){ ATTENTION_PAGES, s->page_size, s->kv_heads, s->d_qk });
    a.v_cache =
        etalon_tensor_dense(m->v, ETALON_E4M3FN, 4, (int64_t[]){ ATTENTION_PAGES, s->page_size, s->kv_heads, s->d_v });
    a.block_tables = etalon_tensor_dense(m->table, ETALON_I32, 2, (int64_t[]){ ATTENTION_BATCH, ATTENTION_PAGES });
    a.seq_lens = attention_index(m->lengths, ATTENTION_BATCH);
    a.cu_seqlens_q = attention_index(s->lengths->cu_q, ATTENTION_BATCH + 1);
    a.softmax_scale = ln2;
    a.causal = s->causal;
    return a;
}

static bool pa_mtp_run(const etalon_context *ctx, etalon_pa_mtp_args *a, const attention_shape *s, const char *kernel,
                       attention_answer *to)
{
    const etalon_workspace none = { 0 }; /* rows of devices allocate their own for tensors on the host */
    a->kernel = kernel;
    a->out = attention_out(to, s);
    a->lse = attention_lse(to, s);
    return etalon_pa_mtp(ctx, a, none) == ETALON_OK;
}

static bool pa_mtp_answers(const etalon_context *ctx, const gate_row *row, int shape, void *memory, answer *out)
{
    const attention_shape *s = &pa_mtp_shapes[shape];
    attention_memory      *m = memory;
    etalon_pa_mtp_args     a = pa_mtp_question(m, s);
    pa_mtp_problem         problem;
    if (!pa_mtp_run(ctx, &a, s, "pa_mtp_ref", &m->want) || pa_mtp_check(&a, &problem) != ETALON_OK)
        return failed(out);
    if (row->refuse(&problem) != NULL)
        return refused(out);
    if (out->only_ask)
        return true;
    return pa_mtp_run(ctx, &a, s, row->name, &m->got) ? attention_compare(m, s, out) : failed(out);
}

static const attention_shape fmha_varlen_shapes[] = {
    { &few, 4, 2, 20, 12, 0, 1 },
    { &prefill, 4, 2, 192, 128, 0, 0 },
    { &prefill, 4, 2, 192, 128, 0, 1 },
};

static etalon_fmha_varlen_args fmha_varlen_question(attention_memory *m, const attention_shape *s)
{
    etalon_fmha_varlen_args a = ETALON_FMHA_VARLEN_ARGS_INIT;
    uint8_t                *q = (uint8_t *)m->q;
    for (int i = 0; i < attention_rows(s) * s->heads * s->d_qk; i++)
        q[i] = e4m3fn_digit[sparse_digit(i)];
    attention_fill(m);
    a.q = etalon_tensor_dense(q, ETALON_E4M3FN, 3, (int64_t[]){ attention_rows(s), s->heads, s->d_qk });
    a.k = etalon_tensor_dense(m->k, ETALON_E4M3FN, 3,
                              (int64_t[]){ s->lengths->cu_k[ATTENTION_BATCH], s->kv_heads, s->d_qk });
    a.v = etalon_tensor_dense(m->v, ETALON_E4M3FN, 3,
                              (int64_t[]){ s->lengths->cu_k[ATTENTION_BATCH], s->kv_heads, s->d_v });
    a.cu_seqlens_q = attention_index(s->lengths->cu_q, ATTENTION_BATCH + 1);
    a.cu_seqlens_k = attention_index(s->lengths->cu_k, ATTENTION_BATCH + 1);
    a.softmax_scale = ln2;
    a.causal = s->causal;
    return a;
}

static bool fmha_varlen_run(const etalon_context *ctx, etalon_fmha_varlen_args *a, const attention_shape *s,
                            const char *kernel, attention_answer *to)
{
    const etalon_workspace none = { 0 };
    a->kernel = kernel;
    a->out = attention_out(to, s);
    a->lse = attention_lse(to, s);
    return etalon_fmha_varlen(ctx, a, none) == ETALON_OK;
}

static bool fmha_varlen_answers(const etalon_context *ctx, const gate_row *row, int shape, void *memory, answer *out)
{
    const attention_shape  *s = &fmha_varlen_shapes[shape];
    attention_memory       *m = memory;
    etalon_fmha_varlen_args a = fmha_varlen_question(m, s);
    fmha_varlen_problem     problem;
    if (!fmha_varlen_run(ctx, &a, s, "fmha_varlen_ref", &m->want) || fmha_varlen_check(&a, &problem) != ETALON_OK)
        return failed(out);
    if (row->refuse(&problem) != NULL)
        return refused(out);
    if (out->only_ask)
        return true;
    return fmha_varlen_run(ctx, &a, s, row->name, &m->got) ? attention_compare(m, s, out) : failed(out);
}

/* All tables
 * ----------
 */
static const struct known {
    const gate *table;
    int         shapes;
    size_t      memory;
    bool (*answers)(const etalon_context *ctx, const gate_row *row, int shape, void *memory, answer *out);
} known[] = { { &mqa_logits_gate, COUNT(mqa_shapes), sizeof(mqa_memory), mqa_answers },
              { &mqa_logits_paged_gate, COUNT(paged_shapes), sizeof(paged_memory), paged_answers },
              { &pa_mtp_gate, COUNT(pa_mtp_shapes), sizeof(attention_memory), pa_mtp_answers },
              { &fmha_varlen_gate, COUNT(fmha_varlen_shapes), sizeof(attention_memory), fmha_varlen_answers } };

static bool ask(const etalon_context *ctx, const struct known *k, const gate_row *row, answer *a)
{
    void *memory = calloc(1, k->memory);
    bool  ok = false;
    if (memory == NULL)
        snprintf(a->reason, a->bytes, "not qualified: no %zu bytes for a known answer", k->memory);
    for (int i = 0; i < k->shapes && memory != NULL && a->refused; i++) {
        a->refused = false;
        ok = k->answers(ctx, row, i, memory, a);
    }
    free(memory);
    return ok;
}

/* An operation that is not among the known ones has no question either. */
static bool qualifies(const etalon_context *ctx, const gate *table, const gate_row *row, answer *a)
{
    a->refused = true;
    snprintf(a->reason, a->bytes, "not qualified: no known answer is for it");
    for (int i = 0; i < COUNT(known); i++)
        if (known[i].table == table)
            return ask(ctx, &known[i], row, a);
    return false;
}

bool qualify_knows(const etalon_context *ctx, const gate *table, const gate_row *row)
{
    char   reason[160];
    answer a = { .only_ask = true, .reason = reason, .bytes = sizeof reason };
    return qualifies(ctx, table, row, &a);
}

static bool is_here(const etalon_context *ctx, const gate_row *row)
{
    return (row->needs & NEEDS_DEVICE) != 0 && (row->needs & ~ctx->have) == 0;
}

/* Room for every row: none is left without an answer. */
static etalon_status make_room(etalon_context *ctx)
{
    size_t rows = 1;
    for (int g = 0; g < GATE_COUNT; g++)
        for (int i = 0; i < gates[g]->count; i++)
            rows += is_here(ctx, &gates[g]->rows[i]);
    free(ctx->unqualified);
    ctx->unqualified_count = 0;
    ctx->unqualified = calloc(rows, sizeof *ctx->unqualified);
    if (ctx->unqualified == NULL)
        return etalon_reject(ETALON_ERROR_OUT_OF_MEMORY, "context_create: %zu bytes", rows * sizeof *ctx->unqualified);
    return ETALON_OK;
}

etalon_status qualify(etalon_context *ctx)
{
    TRY(make_room(ctx));
    for (int g = 0; g < GATE_COUNT; g++)
        for (int i = 0; i < gates[g]->count; i++) {
            const gate_row *row = &gates[g]->rows[i];
            if (!is_here(ctx, row))
                continue;
            context_unqualified *u = &ctx->unqualified[ctx->unqualified_count];
            answer               a = { .reason = u->reason, .bytes = sizeof u->reason };
            u->row = row;
            if (!qualifies(ctx, gates[g], row, &a))
                ctx->unqualified_count++;
        }
    return ETALON_OK;
}
