#include "problem.h"

#include "logits.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Shapes
 * ------
 * Page tables are shuffled, as a server's are after a while. Lengths in a name are thousands where it says k.
 */
#define PA "page-shuffle"
#define PREFILL(name, text)                                                         \
    { "fmha_varlen", name, text, "random", NULL, NULL, true },                      \
    {                                                                               \
        "fmha_varlen", name "-causal", text ",causal=1", "random", NULL, NULL, true \
    }
#define INDEXER(name, text)                                                 \
    { "mqa_logits", name, text, "random", NULL, NULL, true },               \
        { "mqa_logits", name "-causal", text, "causal", NULL, NULL, true }, \
    {                                                                       \
        "mqa_logits", name "-4req", text, "multi-req", NULL, NULL, true     \
    }

#define DECODE(count, batch)                                                                                     \
    { "mqa_logits_paged", count "x16k-n1-h64", batch ",next_n=1,ctx=16384,heads=64", PA, NULL, NULL, true },     \
        { "mqa_logits_paged", count "x32k-n2-h64", batch ",next_n=2,ctx=32768,heads=64", PA, NULL, NULL, true }, \
    {                                                                                                            \
        "mqa_logits_paged", count "x64k-n4-h64", batch ",next_n=4,ctx=65536,heads=64", PA, NULL, NULL, true      \
    }

const bench_shape bench_shapes[] = {
    { "pa_mtp", "1x35k-gqa16", "batch=1,ctx=35000,heads=16,kv_heads=1", PA, NULL, NULL, false },
    { "pa_mtp", "16x8k-gqa16", "batch=16,ctx=8192,heads=16,kv_heads=1", PA, NULL, NULL, false },
    { "pa_mtp", "1x35k-decode-gqa8", "batch=1,ctx=35000,q_len=1,heads=8,kv_heads=1", PA, NULL, NULL, false },
    { "pa_mtp", "1x35k-decode-mha", "batch=1,ctx=35000,q_len=1,heads=1,kv_heads=1", PA, NULL, NULL, false },
    { "pa_mtp", "4x35k-gqa16", "batch=4,ctx=35000,heads=16,kv_heads=1", PA, NULL, NULL, true },
    { "pa_mtp", "16x35k-gqa16", "batch=16,ctx=35000,heads=16,kv_heads=1", PA, NULL, NULL, true },
    { "pa_mtp", "16x70k-gqa16", "batch=16,ctx=70000,heads=16,kv_heads=1", PA, NULL, NULL, true },
    { "pa_mtp", "16x35k-gqa8", "batch=16,ctx=35000,heads=8,kv_heads=1", PA, NULL, NULL, true },
    { "pa_mtp", "16x35k-gqa4", "batch=16,ctx=35000,heads=4,kv_heads=1", PA, NULL, NULL, true },
    { "pa_mtp", "1x248k-gqa16", "batch=1,ctx=248000,heads=16,kv_heads=1", PA, NULL, NULL, true },
    { "pa_mtp", "128x282-gqa16", "batch=128,ctx=282,heads=16,kv_heads=1", PA, NULL, NULL, true },
    { "pa_mtp", "skewed-gqa16", "batch=16,ctx=248000,heads=16,kv_heads=1", PA, NULL,
      "248000,120000,76000,60000,34000,20000,9000,3000,1500,500,100,40,17,5,1,0", true },
    { "pa_mtp", "64x2k-20k-gqa16", "batch=64,ctx=20000,heads=16,kv_heads=1", PA, NULL,
      "2000,5000,8000,11000,14000,17000,20000", true },
    { "pa_mtp", "24x50k-78k-gqa16", "batch=24,ctx=78000,heads=16,kv_heads=1", PA, NULL, "50000,57000,64000,71000,78000",
      true },
    { "pa_mtp", "ragged-gqa16", "batch=4,ctx=90000,heads=16,kv_heads=1", PA, "4,1,2,3", "30000,12000,40000,90000",
      true },
    { "pa_mtp", "200k-3k-gqa16", "batch=2,ctx=200000,heads=16,kv_heads=1", PA, NULL, "200000,3000", true },

    { "fmha_varlen", "2k-x8", "batch=1,q_len=2048,ctx=2048,heads=8,kv_heads=8", "random", NULL, NULL, false },
    { "fmha_varlen", "2k-x8-causal", "batch=1,q_len=2048,ctx=2048,heads=8,kv_heads=8,causal=1", "random", NULL, NULL,
      false },
    { "fmha_varlen", "ragged", "batch=6,q_len=2048,ctx=2560,heads=8,kv_heads=8,causal=1", "random",
      "21,64,256,512,1200,2048", "21,1088,256,2560,1200,2048", false },
    PREFILL("2k-14k-x96", "batch=1,q_len=2048,ctx=14336,heads=96,kv_heads=96"),
    PREFILL("4k-x96", "batch=1,q_len=4096,ctx=4096,heads=96,kv_heads=96"),
    PREFILL("8k-x96", "batch=1,q_len=8192,ctx=8192,heads=96,kv_heads=96"),
    PREFILL("8k-14k-x96", "batch=1,q_len=8192,ctx=14336,heads=96,kv_heads=96"),
    PREFILL("12k-14k-x96", "batch=1,q_len=12288,ctx=14336,heads=96,kv_heads=96"),
    PREFILL("2x12k-14k-x96", "batch=2,q_len=12288,ctx=14336,heads=96,kv_heads=96"),
    PREFILL("16k-x96", "batch=1,q_len=16384,ctx=16384,heads=96,kv_heads=96"),
    PREFILL("16k-x32", "batch=1,q_len=16384,ctx=16384,heads=32,kv_heads=32"),
    PREFILL("16k-gqa16", "batch=1,q_len=16384,ctx=16384,heads=64,kv_heads=4"),
    PREFILL("4x4k-x128", "batch=4,q_len=4096,ctx=4096,heads=128,kv_heads=128"),
    PREFILL("12x1k-x128", "batch=12,q_len=1024,ctx=1024,heads=128,kv_heads=128"),
    PREFILL("8k-x16", "batch=1,q_len=8192,ctx=8192,heads=16,kv_heads=16"),
    PREFILL("8k-x12", "batch=1,q_len=8192,ctx=8192,heads=12,kv_heads=12"),
    PREFILL("8k-x64", "batch=1,q_len=8192,ctx=8192,heads=64,kv_heads=64"),

    { "mqa_logits", "256x8k-h32", "m=256,n=8192,heads=32", "random", NULL, NULL, false },
    { "mqa_logits", "256x8k-h32-causal", "m=256,n=8192,heads=32", "causal", NULL, NULL, false },
    { "mqa_logits", "256x8k-h32-4req", "m=256,n=8192,heads=32", "multi-req", NULL, NULL, false },
    INDEXER("8k-h32", "m=8192,n=8192,heads=32"),
    INDEXER("4kx32k-h32", "m=4096,n=32768,heads=32"),
    INDEXER("2kx64k-h32", "m=2048,n=65536,heads=32"),
    INDEXER("1kx128k-h32", "m=1024,n=131072,heads=32"),
    INDEXER("16kx32k-h32", "m=16384,n=32000,heads=32"),
    INDEXER("8k-h64", "m=8192,n=8192,heads=64"),
    INDEXER("8kx32k-h64", "m=8192,n=32768,heads=64"),

    { "mqa_logits_paged", "4x16k-h64", "batch=4,next_n=2,ctx=16384,heads=64", PA, NULL, NULL, false },
    { "mqa_logits_paged", "16x8k-h32", "batch=16,next_n=1,ctx=8192,heads=32", PA, NULL, NULL, false },
    DECODE("1", "batch=1"),
    DECODE("8", "batch=8"),
    { "mqa_logits_paged", "256x8k-h64", "batch=256,next_n=1,ctx=8192,heads=64", PA, NULL, NULL, true },
    { "mqa_logits_paged", "256x64k-h64", "batch=256,next_n=1,ctx=65536,heads=64", PA, NULL, NULL, true },
    { "mqa_logits_paged", "8x32k-n6-h64", "batch=8,next_n=6,ctx=32768,heads=64", PA, NULL, NULL, true },
    { "mqa_logits_paged", "1x112k-n4-h128", "batch=1,next_n=4,ctx=112592,heads=128", PA, NULL, NULL, true },
    { .name = NULL },
};

static bool take_text(const char *op, const char *text, bench_shape *shape, tensorfile_error *error)
{
    static char copy[16][256]; /* what `shape` points to from then on */
    static int  used;
    if (used == 16 || strlen(text) >= sizeof copy[0])
        return oracle_fail(error, "shape \"%.64s\": too many, or longer than %zu bytes", text, sizeof copy[0] - 1);
    char *at = strcpy(copy[used++], text);
    *shape = (bench_shape){ .op = op, .name = text, .text = at, .pattern = "random" };
    char *pattern = strncmp(at, "pattern=", 8) == 0 ? at : strstr(at, ",pattern=");
    if (pattern == NULL)
        return true;
    shape->pattern = strchr(pattern, '=') + 1;
    char *rest = strchr(shape->pattern, ',');
    *pattern = '\0';
    if (rest == NULL)
        return true;
    return oracle_fail(error, "shape \"%.64s\": expected pattern=%.32s last", text, shape->pattern);
}

bool bench_find_shape(const char *op, const char *name, bench_shape *shape, tensorfile_error *error)
{
    if (strchr(name, '=') != NULL)
        return take_text(op, name, shape, error);
    for (const bench_shape *s = bench_shapes; s->name != NULL; s++)
        if (strcmp(s->op, op) == 0 && strcmp(s->name, name) == 0) {
            *shape = *s;
            return true;
        }
    return oracle_fail(error, "shape: \"%.64s\" is no shape of %s; see --list", name, op);
}

/* Lengths
 * -------
 * The generator draws equal lengths; those of a list are cut out of them.
 */
static int64_t length_at(const char *list, int64_t i)
{
    int64_t count = 1;
    for (const char *at = list; *at != '\0'; at++)
        count += *at == ',';
    for (int64_t skip = i % count; skip > 0; skip--)
        list = strchr(list, ',') + 1;
    return strtoll(list, NULL, 10);
}

static void set_length(const etalon_tensor *t, int64_t i, int64_t x)
{
    if (t->dtype == ETALON_I64)
        ((int64_t *)t->data)[i] = x;
    else
        ((int32_t *)t->data)[i] = (int32_t)x;
}

/* Writes the prefix sums of a list to cu_seqlens; returns the last. */
static int64_t set_cu_seqlens(const etalon_tensor *cu, const char *list)
{
    int64_t sum = 0;
    for (int64_t b = 0; b + 1 < cu->shape[0]; b++)
        set_length(cu, b + 1, sum += length_at(list, b));
    return sum;
}

static void cut_pa_mtp(etalon_pa_mtp_args *a, const bench_shape *shape)
{
    if (shape->queries != NULL)
        a->q.shape[0] = set_cu_seqlens(&a->cu_seqlens_q, shape->queries);
    for (int64_t b = 0; shape->keys != NULL && b < a->seq_lens.shape[0]; b++)
        set_length(&a->seq_lens, b, length_at(shape->keys, b));
}

static void cut_fmha_varlen(etalon_fmha_varlen_args *a, const bench_shape *shape)
{
    if (shape->queries != NULL)
        a->q.shape[0] = set_cu_seqlens(&a->cu_seqlens_q, shape->queries);
    if (shape->keys != NULL)
        a->k.shape[0] = a->v.shape[0] = set_cu_seqlens(&a->cu_seqlens_k, shape->keys);
}

/* Counting
 * --------
 * attention    2 Dqk + 2 Dv for every visible pair and query head: the products Q K and P V. Not counted: exponentials,
 *              maxima, descales, decoding
 * mqa_logits   2 D H for every visible pair: the product Q K. Not counted: relu, weights, scale, decoding. The same of
 *              mqa_logits_paged
 */
typedef struct seen {
    double  pairs; /* of one head */
    int64_t keys;
} seen;

/* The definition of visible(i) in <etalon/attention.h>. */
static seen see_sequence(int64_t sq, int64_t sk, bool causal, int64_t left, int64_t right)
{
    seen    all = { 0 };
    int64_t least = sk, most = 0;
    for (int64_t i = 0; i < sq; i++) {
        const int64_t diagonal = i + sk - sq, reach = causal ? 0 : right;
        const int64_t first = left >= 0 && diagonal - left > 0 ? diagonal - left : 0;
        const int64_t last = reach >= 0 && diagonal + reach + 1 < sk ? diagonal + reach + 1 : sk;
        if (first >= last)
            continue;
        all.pairs += (double)(last - first);
        least = first < least ? first : least;
        most = last > most ? last : most;
    }
    all.keys = most > least ? most - least : 0;
    return all;
}

static void count_kv(bench_problem *p, const etalon_tensor *k, const etalon_tensor *v, int64_t rows)
{
    const etalon_tensor *tensors[2] = { k, v };
    for (int i = 0; i < 2 && tensors[i] != NULL; i++) {
        p->elements[i] = rows * tensors[i]->shape[tensors[i]->rank - 1];
        p->codes[i] = tensors[i]->dtype == ETALON_E4M3FN ? tensors[i]->data : NULL;
        p->kv_bytes += p->elements[i] * (int64_t)etalon_dtype_bytes(tensors[i]->dtype);
    }
}

static void count_attention(bench_problem *p, seen all, int64_t heads, int64_t kv_heads, const etalon_tensor *k,
                            const etalon_tensor *v)
{
    p->pairs = all.pairs * (double)heads;
    p->flops = 2.0 * p->pairs * (double)(k->shape[k->rank - 1] + v->shape[v->rank - 1]);
    count_kv(p, k, v, all.keys * kv_heads);
}

static void count_pa_mtp(bench_problem *p)
{
    const etalon_pa_mtp_args *a = &p->args.pa_mtp;
    seen                      all = { 0 };
    for (int64_t b = 0; b < a->seq_lens.shape[0]; b++) {
        const int64_t sq = oracle_index(&a->cu_seqlens_q, b + 1) - oracle_index(&a->cu_seqlens_q, b);
        const seen    one = see_sequence(sq, oracle_index(&a->seq_lens, b), a->causal, a->window_left, a->window_right);
        all.pairs += one.pairs;
        all.keys += one.keys;
    }
    count_attention(p, all, a->q.shape[1], a->k_cache.shape[a->kv_layout == ETALON_KV_NHD ? 2 : 1], &a->k_cache,
                    &a->v_cache);
}

static void count_fmha_varlen(bench_problem *p)
{
    const etalon_fmha_varlen_args *a = &p->args.fmha_varlen;
    seen                           all = { 0 };
    for (int64_t b = 0; b + 1 < a->cu_seqlens_q.shape[0]; b++) {
        const int64_t sq = oracle_index(&a->cu_seqlens_q, b + 1) - oracle_index(&a->cu_seqlens_q, b);
        const int64_t sk = oracle_index(&a->cu_seqlens_k, b + 1) - oracle_index(&a->cu_seqlens_k, b);
        const seen    one = see_sequence(sq, sk, a->causal, a->window_left, a->window_right);
        all.pairs += one.pairs;
        all.keys += one.keys;
    }
    count_attention(p, all, a->q.shape[1], a->k.shape[1], &a->k, &a->v);
}

static int64_t clamp(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

static void count_mqa_logits(bench_problem *p)
{
    const etalon_mqa_logits_args *a = &p->args.mqa_logits;
    const int64_t                 n = a->k.shape[0];
    int64_t                       least = n, most = 0;
    for (int64_t m = 0; m < a->q.shape[0]; m++) {
        const int64_t first = clamp(oracle_index(&a->cu_seqlen_ks, m), 0, n);
        const int64_t last = clamp(oracle_index(&a->cu_seqlen_ke, m), first, n);
        p->pairs += (double)(last - first);
        least = last > first && first < least ? first : least;
        most = last > first && last > most ? last : most;
    }
    p->flops = 2.0 * p->pairs * (double)(a->q.shape[1] * a->q.shape[2]);
    count_kv(p, &a->k, NULL, most > least ? most - least : 0);
}

static void count_mqa_logits_paged(bench_problem *p)
{
    const etalon_mqa_logits_paged_args *a = &p->args.mqa_logits_paged;
    const int64_t                       next_n = a->q.shape[1];
    int64_t                             keys = 0, most = 0;
    for (int64_t m = 0; m < a->logits.shape[0]; m++) {
        const int64_t last = logits_window_of(&p->problem, m).last;
        p->pairs += (double)last;
        most = m % next_n == 0 || last > most ? last : most;
        keys += m % next_n == next_n - 1 ? most : 0;
    }
    p->flops = 2.0 * p->pairs * (double)(a->q.shape[2] * a->q.shape[3]);
    count_kv(p, &a->kv_cache, NULL, keys); /* with their scales */
}

/* Problems
 * --------
 */
static bool allocate_outputs(bench_problem *p, tensorfile_error *error)
{
    p->args = p->problem.args;
    for (int i = 0; i < p->problem.op->output_count; i++) {
        const oracle_output *o = &p->problem.op->outputs[i];
        etalon_tensor       *t = &p->result.tensor[i];
        int64_t              shape[3];
        oracle_output_shape(&p->problem, i, shape);
        if (!oracle_allocate(oracle_first_name(o->names), ETALON_F32, o->rank, shape, t, error))
            return false;
        memset(t->data, 0xFF, (size_t)oracle_elements(t) * sizeof(float)); /* every page of it is there from now on */
        *(etalon_tensor *)((char *)&p->args + o->offset) = *t;
    }
    return true;
}

static int64_t pages_bytes(const etalon_tensor *t)
{
    const int64_t page = sysconf(_SC_PAGESIZE), bytes = oracle_elements(t) * (int64_t)etalon_dtype_bytes(t->dtype);
    return (bytes + page - 1) / page * page;
}

static int64_t tensor_bytes(const bench_problem *p)
{
    int64_t bytes = 0;
    for (int i = 0; i < p->file.count; i++)
        bytes += pages_bytes(&p->file.entries[i].tensor);
    for (int i = 0; i < p->problem.op->output_count; i++)
        bytes += pages_bytes(&p->result.tensor[i]);
    return bytes;
}

static bool make(const bench_shape *shape, const char *more, bench_problem *p, tensorfile_error *error)
{
    *p = (bench_problem){ 0 };
    const char *const      texts[] = { shape->text, more };
    const generate_request request = { .op = oracle_find_op(shape->op, error),
                                       .shape = texts,
                                       .shape_count = more == NULL ? 1 : 2,
                                       .pattern = shape->pattern,
                                       .seed = 1 };
    if (!generate(&request, &p->file, error) || !oracle_bind(&p->file, request.op, &p->problem, error))
        return false;
    const oracle_id id = request.op->id;
    if (id == ORACLE_PA_MTP && more == NULL)
        cut_pa_mtp(&p->problem.args.pa_mtp, shape);
    if (id == ORACLE_FMHA_VARLEN && more == NULL)
        cut_fmha_varlen(&p->problem.args.fmha_varlen, shape);
    if (!allocate_outputs(p, error))
        return false;
    if (id == ORACLE_PA_MTP)
        count_pa_mtp(p);
    else if (id == ORACLE_FMHA_VARLEN)
        count_fmha_varlen(p);
    else if (id == ORACLE_MQA_LOGITS_PAGED)
        count_mqa_logits_paged(p);
    else
        count_mqa_logits(p);
    p->bytes = tensor_bytes(p);
    return true;
}

bool bench_make(const bench_shape *shape, bench_problem *p, tensorfile_error *error)
{
    return make(shape, NULL, p, error);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t longest(const etalon_tensor *lengths)
{
    int64_t most = 0;
    for (int64_t b = 0; b < lengths->shape[0]; b++)
        most = oracle_index(lengths, b) > most ? oracle_index(lengths, b) : most;
    return most;
}

bool bench_make_small(const bench_shape *shape, const bench_problem *like, bench_problem *p, tensorfile_error *error)
{
    enum { KEYS = 2048, ROWS = 16 };
    const oracle_args *a = &like->args;
    char               more[96];
    if (like->problem.op->id == ORACLE_MQA_LOGITS)
        snprintf(more, sizeof more, "m=%" PRId64 ",n=%" PRId64, least(a->mqa_logits.q.shape[0], ROWS),
                 least(a->mqa_logits.k.shape[0], KEYS));
    else if (like->problem.op->id == ORACLE_MQA_LOGITS_PAGED) /* next_n stays: it is small */
        snprintf(more, sizeof more, "batch=1,ctx=%" PRId64,
                 least(logits_window_of(&like->problem, like->args.mqa_logits_paged.q.shape[1] - 1).last, KEYS));
    else if (like->problem.op->id == ORACLE_PA_MTP) /* q_len stays: it is small */
        snprintf(more, sizeof more, "batch=1,ctx=%" PRId64, least(longest(&a->pa_mtp.seq_lens), KEYS));
    else
        snprintf(more, sizeof more, "batch=1,q_len=%" PRId64 ",ctx=%" PRId64, least(a->fmha_varlen.q.shape[0], ROWS),
                 least(a->fmha_varlen.k.shape[0], KEYS));
    return make(shape, more, p, error);
}

void bench_free(bench_problem *p)
{
    oracle_result_free(&p->result);
    generate_free(&p->file);
    *p = (bench_problem){ 0 };
}
