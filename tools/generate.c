#include "generate.h"

#include "element.h"
#include "random.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))

enum { MAX_ENTRIES = 16, MAX_METADATA = 16, MAX_REQUESTS = 1 << 20 };

/* Keys
 * ----
 */
enum {
    PA = 1 << ORACLE_PA_MTP,
    FMHA = 1 << ORACLE_FMHA_VARLEN,
    MQA = 1 << ORACLE_MQA_LOGITS,
    PAGED = 1 << ORACLE_MQA_LOGITS_PAGED,
    MERGE = 1 << ORACLE_MERGE_STATES,
    ATTENTION = PA | FMHA,
    LOGITS = MQA | PAGED
};

typedef struct shape {
    int64_t batch, q_len, ctx, heads, kv_heads, dim, v_dim, page, spare, causal, window_left, window_right, descale;
    int64_t m, n, requests, clean, tokens, next_n, columns;
    int64_t dtype, q_dtype, index, layout;
    double  gap;
} shape;

typedef enum key_kind { KEY_INTEGER, KEY_DTYPE, KEY_INDEX, KEY_LAYOUT, KEY_REAL } key_kind;

typedef struct shape_key {
    const char *name;
    key_kind    kind;
    size_t      offset;
    unsigned    ops;
    int64_t     low; /* the least integer that makes sense */
    const char *text;
} shape_key;

#define KEY(member) offsetof(shape, member)

static const shape_key keys[] = {
    { "batch", KEY_INTEGER, KEY(batch), ATTENTION | PAGED, 0, "sequences" },
    { "q_len", KEY_INTEGER, KEY(q_len), ATTENTION, 0, "query tokens a sequence, at most" },
    { "next_n", KEY_INTEGER, KEY(next_n), PAGED, 1, "query rows a sequence" },
    { "ctx", KEY_INTEGER, KEY(ctx), ATTENTION | PAGED, 0,
      "keys a sequence, at most; of a paged cache its query tokens included" },
    { "tokens", KEY_INTEGER, KEY(tokens), MERGE, 0, "tokens" },
    { "m", KEY_INTEGER, KEY(m), MQA, 0, "query rows" },
    { "n", KEY_INTEGER, KEY(n), MQA, 0, "keys" },
    { "heads", KEY_INTEGER, KEY(heads), ATTENTION | LOGITS | MERGE, 1, "query heads" },
    { "kv_heads", KEY_INTEGER, KEY(kv_heads), ATTENTION, 1, "KV heads, a divisor of heads" },
    { "dim", KEY_INTEGER, KEY(dim), ATTENTION | LOGITS | MERGE, 1, "head dim of q and k" },
    { "v_dim", KEY_INTEGER, KEY(v_dim), ATTENTION, 0, "head dim of v; 0: dim" },
    { "page", KEY_INTEGER, KEY(page), PA | PAGED, 1, "tokens a page" },
    { "spare", KEY_INTEGER, KEY(spare), PA | PAGED, -1, "pages that no sequence uses; -1: the pattern's" },
    { "layout", KEY_LAYOUT, KEY(layout), PA, 0, "nhd or hnd" },
    { "requests", KEY_INTEGER, KEY(requests), MQA, 1, "requests of multi-req" },
    { "clean", KEY_INTEGER, KEY(clean), LOGITS, 0, "1: -inf outside the window" },
    { "max_seqlen_k", KEY_INTEGER, KEY(columns), MQA, 0, "columns of compressed logits; 0: not compressed" },
    { "max_context_len", KEY_INTEGER, KEY(columns), PAGED, 0, "columns of the logits; 0: as many as blocks hold" },
    { "causal", KEY_INTEGER, KEY(causal), ATTENTION, 0, "1: bottom-right causal" },
    { "window_left", KEY_INTEGER, KEY(window_left), ATTENTION, -1, "keys to the left of the diagonal; -1: all" },
    { "window_right", KEY_INTEGER, KEY(window_right), ATTENTION, -1, "keys to the right of the diagonal; -1: all" },
    { "descale", KEY_INTEGER, KEY(descale), ATTENTION, 0, "0: none, 1: one a tensor, 2: one a (sequence, KV head)" },
    { "dtype", KEY_DTYPE, KEY(dtype), ATTENTION | LOGITS | MERGE, 0,
      "of keys and values (merge_states: of out_a, out_b)" },
    { "q_dtype", KEY_DTYPE, KEY(q_dtype), PA | LOGITS, 0, "of q" },
    { "index", KEY_INDEX, KEY(index), ATTENTION | LOGITS, 0, "i32 or i64, of lengths and windows" },
    { "gap", KEY_REAL, KEY(gap), ATTENTION, 0, "nats between the hot key and the others; 0: 112 / sqrt(dim)" },
};

static const shape defaults[] = {
    [ORACLE_PA_MTP] = { .batch = 4,
                        .q_len = 4,
                        .ctx = 500,
                        .heads = 16,
                        .kv_heads = 1,
                        .dim = 256,
                        .page = 16,
                        .spare = -1,
                        .causal = 1,
                        .window_left = -1,
                        .window_right = -1,
                        .descale = 1,
                        .dtype = ETALON_E4M3FN,
                        .q_dtype = ETALON_BF16,
                        .index = ETALON_I32,
                        .layout = ETALON_KV_NHD },
    [ORACLE_FMHA_VARLEN] = { .batch = 4,
                             .q_len = 64,
                             .ctx = 129,
                             .heads = 4,
                             .kv_heads = 2,
                             .dim = 192,
                             .v_dim = 128,
                             .window_left = -1,
                             .window_right = -1,
                             .descale = 1,
                             .dtype = ETALON_E4M3FN,
                             .index = ETALON_I32 },
    [ORACLE_MQA_LOGITS] = { .m = 48,
                            .n = 210,
                            .heads = 32,
                            .dim = 128,
                            .requests = 4,
                            .clean = 1,
                            .dtype = ETALON_E4M3FN,
                            .q_dtype = ETALON_E4M3FN,
                            .index = ETALON_I32 },
    [ORACLE_MQA_LOGITS_PAGED] = { .batch = 4,
                                  .next_n = 2,
                                  .ctx = 210,
                                  .heads = 32,
                                  .dim = 128,
                                  .page = 64,
                                  .spare = -1,
                                  .clean = 1,
                                  .dtype = ETALON_E4M3FN,
                                  .q_dtype = ETALON_E4M3FN,
                                  .index = ETALON_I32 },
    [ORACLE_MERGE_STATES] = { .tokens = 33, .heads = 5, .dim = 64, .dtype = ETALON_F32 },
};

/* Patterns
 * --------
 * A pattern is a choice in each of these; the first of each is that of `random`.
 */
enum lengths { LENGTHS_EQUAL, LENGTHS_RAGGED, LENGTHS_EMPTY, LENGTHS_UNASKED };
enum hot { HOT_NONE, HOT_FIRST, HOT_MIDDLE, HOT_LAST };
enum numbers { NUMBERS_NORMAL, NUMBERS_PEAKED, NUMBERS_SATURATED, NUMBERS_SUBNORMAL, NUMBERS_ZERO_Q };
enum values { VALUES_RANDOM, VALUES_ONES, VALUES_ONE_HOT };
enum padding { PADDING_NONE, PADDING_JUNK, PADDING_NAN, PADDING_PAST_END };
enum windows {
    WINDOWS_ALL,
    WINDOWS_CAUSAL,
    WINDOWS_CP,
    WINDOWS_MISALIGNED,
    WINDOWS_REQUESTS,
    WINDOWS_EMPTY,
    WINDOWS_PAST_END,
    WINDOWS_MIDDLE
};

typedef struct pattern {
    const char  *name;
    unsigned     ops;
    const char  *text;
    enum lengths lengths;
    enum hot     hot;
    enum numbers numbers;
    enum values  values;
    enum padding padding;
    enum windows windows;
    bool         negative;
} pattern;

static const pattern patterns[] = {
    { "random", ATTENTION | LOGITS | MERGE, "normal numbers, equal lengths", .lengths = LENGTHS_EQUAL },
    { "underflow", ATTENTION, "one hot key comes first, then a tail of the other sign", .hot = HOT_FIRST },
    { "hotkey-middle", ATTENTION, "the hot key comes in the middle", .hot = HOT_MIDDLE },
    { "hotkey-last", ATTENTION, "the hot key is the last one that every row sees", .hot = HOT_LAST },
    { "one-hot", ATTENTION, "v[j] is 1 in dimension j mod v_dim: out shows which keys were seen",
      .values = VALUES_ONE_HOT },
    { "v-ones", ATTENTION, "v is 1: out is 1, however the scores lie", .values = VALUES_ONES,
      .numbers = NUMBERS_PEAKED },
    { "uniform", ATTENTION, "q is 0: out is the mean of v, lse the logarithm of the visible keys",
      .numbers = NUMBERS_ZERO_Q },
    { "poisoned", ATTENTION | LOGITS, "NaN wherever nothing may be read: padding, spare pages, tails, unseen keys",
      .padding = PADDING_NAN, .lengths = LENGTHS_UNASKED, .windows = WINDOWS_MIDDLE },
    { "page-shuffle", PA | PAGED, "pages in random order among spare ones that hold junk", .padding = PADDING_JUNK },
    { "ragged", ATTENTION | PAGED, "lengths vary from sequence to sequence", .lengths = LENGTHS_RAGGED },
    { "empty", ATTENTION | LOGITS | MERGE, "no keys, no queries, fewer keys than queries, empty sides",
      .lengths = LENGTHS_EMPTY, .windows = WINDOWS_EMPTY },
    { "past-end", PA | LOGITS, "page ids out of range after a sequence's end; windows that reach past the keys",
      .padding = PADDING_PAST_END, .windows = WINDOWS_PAST_END },
    { "peaked", ATTENTION | MERGE, "scores with a standard deviation of 8", .numbers = NUMBERS_PEAKED },
    { "saturated", ATTENTION | LOGITS, "every |x| is the largest finite value", .numbers = NUMBERS_SATURATED },
    { "subnormal", ATTENTION | LOGITS, "every FP8 value is subnormal", .numbers = NUMBERS_SUBNORMAL },
    { "causal", MQA, "each row sees the keys up to its own, aligned at the end", .windows = WINDOWS_CAUSAL },
    { "cp", MQA, "causal windows of two chunks from both ends, as context parallelism deals them",
      .windows = WINDOWS_CP },
    { "misaligned", MQA, "windows that start and end anywhere", .windows = WINDOWS_MISALIGNED },
    { "multi-req", MQA, "causal windows of several requests in one chunk", .windows = WINDOWS_REQUESTS },
    { "negative-weights", LOGITS, "no weight is positive, so that zeros come out negative", .negative = true },
};

static const pattern *find_pattern(const oracle_op *op, const char *name, tensorfile_error *error)
{
    char known[384] = "";
    for (int i = 0; i < COUNT(patterns); i++) {
        if (!(patterns[i].ops & 1u << op->id))
            continue;
        if (strcmp(patterns[i].name, name) == 0)
            return &patterns[i];
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", known[0] == '\0' ? "" : ", ",
                 patterns[i].name);
    }
    oracle_fail(error, "pattern: \"%.64s\" is unknown to %s, expected one of %s", name, op->name, known);
    return NULL;
}

void generate_list_patterns(const oracle_op *op, FILE *to)
{
    for (int i = 0; i < COUNT(patterns); i++)
        if (patterns[i].ops & 1u << op->id)
            fprintf(to, "%-16s  %s\n", patterns[i].name, patterns[i].text);
}

static void print_default(const shape_key *key, const shape *s, FILE *to)
{
    const char *at = (const char *)s + key->offset;
    if (key->kind == KEY_REAL)
        fprintf(to, "%-16s  %-7g  %s\n", key->name, *(const double *)at, key->text);
    else if (key->kind == KEY_INTEGER)
        fprintf(to, "%-16s  %-7" PRId64 "  %s\n", key->name, *(const int64_t *)at, key->text);
    else if (key->kind == KEY_LAYOUT)
        fprintf(to, "%-16s  %-7s  %s\n", key->name, *(const int64_t *)at == ETALON_KV_NHD ? "nhd" : "hnd", key->text);
    else
        fprintf(to, "%-16s  %-7s  %s\n", key->name, etalon_dtype_name((etalon_dtype) * (const int64_t *)at), key->text);
}

void generate_list_keys(const oracle_op *op, FILE *to)
{
    for (int i = 0; i < COUNT(keys); i++)
        if (keys[i].ops & 1u << op->id)
            print_default(&keys[i], &defaults[op->id], to);
}

/* Reading a shape
 * ---------------
 */
static const shape_key *find_key(const oracle_op *op, const char *name, size_t length, tensorfile_error *error)
{
    char known[256] = "";
    for (int i = 0; i < COUNT(keys); i++) {
        if (!(keys[i].ops & 1u << op->id))
            continue;
        if (strlen(keys[i].name) == length && memcmp(keys[i].name, name, length) == 0)
            return &keys[i];
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", known[0] == '\0' ? "" : ", ",
                 keys[i].name);
    }
    oracle_fail(error, "shape: key \"%.*s\" is unknown to %s, expected one of %s", length > 64 ? 64 : (int)length, name,
                op->name, known);
    return NULL;
}

static bool read_integer(const shape_key *key, const char *text, int64_t *x, tensorfile_error *error)
{
    char *end;
    errno = 0;
    *x = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0)
        return oracle_fail(error, "shape %s: \"%.64s\", expected a 64-bit integer", key->name, text);
    return *x >= key->low ||
           oracle_fail(error, "shape %s: %" PRId64 ", expected %" PRId64 " or more", key->name, *x, key->low);
}

static bool read_word(const shape_key *key, const char *text, int64_t *x, tensorfile_error *error)
{
    static const struct {
        key_kind    kind;
        const char *text;
        int64_t     value;
    } words[] = {
        { KEY_DTYPE, "e4m3fn", ETALON_E4M3FN }, { KEY_DTYPE, "e4m3fnuz", ETALON_E4M3FNUZ },
        { KEY_DTYPE, "bf16", ETALON_BF16 },     { KEY_DTYPE, "f32", ETALON_F32 },
        { KEY_INDEX, "i32", ETALON_I32 },       { KEY_INDEX, "i64", ETALON_I64 },
        { KEY_LAYOUT, "nhd", ETALON_KV_NHD },   { KEY_LAYOUT, "hnd", ETALON_KV_HND },
    };
    char known[64] = "";
    for (int i = 0; i < COUNT(words); i++) {
        if (words[i].kind != key->kind)
            continue;
        if (strcmp(words[i].text, text) == 0) {
            *x = words[i].value;
            return true;
        }
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", known[0] == '\0' ? "" : ", ",
                 words[i].text);
    }
    return oracle_fail(error, "shape %s: \"%.64s\", expected one of %s", key->name, text, known);
}

static bool read_gap(const shape_key *key, const char *text, double *x, tensorfile_error *error)
{
    char *end;
    *x = strtod(text, &end);
    return (end != text && *end == '\0' && *x >= 0.0 && *x <= 1e4) ||
           oracle_fail(error, "shape %s: \"%.64s\", expected a number from 0 to 10000", key->name, text);
}

static bool read_pair(const oracle_op *op, const char *pair, shape *s, tensorfile_error *error)
{
    const size_t     length = strcspn(pair, "=");
    const shape_key *key = find_key(op, pair, length, error);
    if (key == NULL)
        return false;
    if (pair[length] != '=')
        return oracle_fail(error, "shape %s: no value, expected %s=VALUE", key->name, key->name);
    const char *value = pair + length + 1;
    char       *at = (char *)s + key->offset;
    switch (key->kind) {
    case KEY_INTEGER:
        return read_integer(key, value, (int64_t *)at, error);
    case KEY_REAL:
        return read_gap(key, value, (double *)at, error);
    default:
        return read_word(key, value, (int64_t *)at, error);
    }
}

static bool read_shape(const oracle_op *op, const char *text, shape *s, tensorfile_error *error)
{
    char *copy = strdup(text), *rest = copy;
    bool  ok = copy != NULL || oracle_fail(error, "shape: no memory");
    for (char *pair; ok && (pair = strsep(&rest, ",")) != NULL;)
        ok = read_pair(op, pair, s, error);
    free(copy);
    return ok;
}

/* Sizes
 * -----
 * Every tensor is at most this large, whatever the pattern draws.
 */
typedef struct sizes {
    int64_t bytes;
    bool    overflow;
} sizes;

static void add_size(sizes *all, int64_t dtype, const int64_t *factors, int count)
{
    int64_t bytes = (int64_t)etalon_dtype_bytes((etalon_dtype)dtype);
    for (int i = 0; i < count; i++)
        all->overflow |= __builtin_mul_overflow(bytes, factors[i], &bytes);
    all->overflow |= __builtin_add_overflow(all->bytes, bytes, &all->bytes);
}

#define ADD(all, dtype, ...) \
    add_size(all, dtype, (const int64_t[]){ __VA_ARGS__ }, COUNT(((const int64_t[]){ __VA_ARGS__ })))

static int64_t pages_of(const shape *s, int64_t tokens)
{
    return tokens / s->page + (tokens % s->page != 0);
}

enum { SPARE_PAGES = 3, SPARE_COLUMNS = 2 };

static void add_pool(sizes *all, const shape *s)
{
    int64_t used, pages;
    all->overflow |= __builtin_mul_overflow(pages_of(s, s->ctx), s->batch, &used);
    all->overflow |= __builtin_add_overflow(used, s->spare > 0 ? s->spare : SPARE_PAGES, &pages);
    ADD(all, s->dtype, pages, s->page, s->kv_heads, s->dim);
    ADD(all, s->dtype, pages, s->page, s->kv_heads, s->v_dim);
    ADD(all, ETALON_I32, s->batch, pages_of(s, s->ctx));
}

static void add_attention(sizes *all, const oracle_op *op, const shape *s)
{
    const int64_t q_dtype = op->id == ORACLE_PA_MTP ? s->q_dtype : s->dtype;
    ADD(all, q_dtype, s->batch, s->q_len, s->heads, s->dim);
    ADD(all, ETALON_F32, s->batch, s->q_len, s->heads, s->v_dim);
    ADD(all, ETALON_F64, s->batch, 8); /* lengths, descales */
    ADD(all, ETALON_F32, s->batch, s->kv_heads, 3);
    if (op->id == ORACLE_PA_MTP) {
        add_pool(all, s);
        return;
    }
    ADD(all, s->dtype, s->batch, s->ctx, s->kv_heads, s->dim);
    ADD(all, s->dtype, s->batch, s->ctx, s->kv_heads, s->v_dim);
}

static void add_blocks(sizes *all, const shape *s)
{
    int64_t used, blocks;
    all->overflow |= __builtin_mul_overflow(pages_of(s, s->ctx) + SPARE_COLUMNS, s->batch, &used);
    all->overflow |= __builtin_add_overflow(used, s->spare > 0 ? s->spare : SPARE_PAGES, &blocks);
    ADD(all, ETALON_U8, blocks, s->page, s->dim + (int64_t)sizeof(float));
    ADD(all, s->q_dtype, s->batch, s->next_n, s->heads, s->dim);
    ADD(all, ETALON_F32, s->batch, s->next_n, s->heads);
    ADD(all, ETALON_F64, s->batch, s->next_n);
    ADD(all, ETALON_I32, s->batch, pages_of(s, s->ctx) + SPARE_COLUMNS);
    if (s->columns > 0)
        ADD(all, ETALON_F32, s->batch, s->next_n, s->columns);
    else
        ADD(all, ETALON_F32, s->batch, s->next_n, pages_of(s, s->ctx) + SPARE_COLUMNS, s->page);
}

static bool check_sizes(const oracle_op *op, const shape *s, tensorfile_error *error)
{
    sizes        all = { 0 };
    const double memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    if (ATTENTION & 1u << op->id)
        add_attention(&all, op, s);
    if (op->id == ORACLE_MQA_LOGITS_PAGED)
        add_blocks(&all, s);
    if (op->id == ORACLE_MQA_LOGITS) {
        ADD(&all, s->q_dtype, s->m, s->heads, s->dim);
        ADD(&all, s->dtype, s->n, s->dim);
        ADD(&all, ETALON_F32, s->m, s->heads);
        ADD(&all, ETALON_F32, s->m, s->columns > 0 ? s->columns : s->n);
        ADD(&all, ETALON_F64, s->m, 2);
        ADD(&all, ETALON_F32, s->n);
    }
    if (op->id == ORACLE_MERGE_STATES)
        ADD(&all, s->dtype, s->tokens, s->heads, s->dim, 4);
    if (all.overflow)
        return oracle_fail(error, "shape: the tensors' bytes overflow 64 bits");
    return (double)all.bytes <= memory ||
           oracle_fail(error, "shape: the tensors take %" PRId64 " bytes, this machine has %.0f bytes of memory",
                       all.bytes, memory);
}

static bool check_rules(const oracle_op *op, const shape *s, tensorfile_error *error)
{
    const bool attends = ATTENTION & 1u << op->id;
    if (s->dim > ETALON_MAX_HEAD_DIM || s->v_dim > ETALON_MAX_HEAD_DIM)
        return oracle_fail(error, "shape dim, v_dim: %" PRId64 ", %" PRId64 ", expected at most %d", s->dim, s->v_dim,
                           ETALON_MAX_HEAD_DIM);
    if (s->requests > MAX_REQUESTS)
        return oracle_fail(error, "shape requests: %" PRId64 ", expected at most %d", s->requests, MAX_REQUESTS);
    if (attends && s->heads % s->kv_heads != 0)
        return oracle_fail(error, "shape heads: %" PRId64 ", expected a multiple of kv_heads %" PRId64, s->heads,
                           s->kv_heads);
    if (attends && (s->descale > 2 || s->causal > 1))
        return oracle_fail(error, "shape descale, causal: %" PRId64 ", %" PRId64 ", expected at most 2 and 1",
                           s->descale, s->causal);
    if (attends && (s->window_left > INT32_MAX || s->window_right > INT32_MAX))
        return oracle_fail(error, "shape window_left, window_right: expected 32-bit integers");
    return true;
}

static bool check_index(const shape *s, int64_t most, tensorfile_error *error)
{
    return s->index == ETALON_I64 || most <= INT32_MAX ||
           oracle_fail(error, "shape index: i32 cannot hold %" PRId64 ", expected i64", most);
}

/* Files
 * -----
 */
typedef struct generator {
    const oracle_op  *op;
    shape             s;
    const pattern    *p;
    random_state      random;
    tensorfile       *file;
    tensorfile_error *error;
} generator;

/* A zeroed tensor of that name; NULL if there is no memory. */
static etalon_tensor *add_tensor(generator *g, const char *name, int64_t dtype, int32_t rank, const int64_t *extents)
{
    tensorfile_entry *entry = &g->file->entries[g->file->count];
    if (!oracle_allocate(name, (etalon_dtype)dtype, rank, extents, &entry->tensor, g->error))
        return NULL;
    g->file->count++;
    entry->name = strdup(name);
    return entry->name == NULL ? NULL : &entry->tensor;
}

#define TENSOR(g, name, dtype, ...) \
    add_tensor(g, name, dtype, COUNT(((const int64_t[]){ __VA_ARGS__ })), (const int64_t[]){ __VA_ARGS__ })

static bool add_metadata(generator *g, const char *key, const char *value)
{
    tensorfile_pair *pair = &g->file->metadata[g->file->metadata_count++];
    pair->key = strdup(key);
    pair->value = strdup(value);
    return (pair->key != NULL && pair->value != NULL) || oracle_fail(g->error, "metadata %s: no memory", key);
}

static bool add_integer(generator *g, const char *key, int64_t x)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, x);
    return add_metadata(g, key, text);
}

static bool add_real(generator *g, const char *key, double x)
{
    char text[40];
    snprintf(text, sizeof text, "%.17g", x);
    return add_metadata(g, key, text);
}

static void set_index(etalon_tensor *t, int64_t i, int64_t x)
{
    if (t->dtype == ETALON_I64)
        ((int64_t *)t->data)[i] = x;
    else
        ((int32_t *)t->data)[i] = (int32_t)x;
}

static void set(etalon_tensor *t, int64_t i, float x)
{
    char *at = (char *)t->data + i * (int64_t)etalon_dtype_bytes(t->dtype);
    if (t->dtype == ETALON_E4M3FN)
        *(uint8_t *)at = e4m3fn_of_f32(x, FP8_SATURATE);
    else if (t->dtype == ETALON_E4M3FNUZ)
        *(uint8_t *)at = e4m3fnuz_of_f32(x, FP8_SATURATE);
    else
        element_store(at, t->dtype, x);
}

static bool is_fp8(int64_t dtype)
{
    return dtype == ETALON_E4M3FN || dtype == ETALON_E4M3FNUZ;
}

/* Numbers
 * -------
 */
static double largest(int64_t dtype)
{
    return dtype == ETALON_E4M3FNUZ ? 240.0 : 448.0; /* the wider formats take E4M3FN's, which it shall reach as well */
}

static double sign(generator *g)
{
    return random_bits(&g->random) >> 63 ? -1.0 : 1.0;
}

/* A stored number of the pattern's kind; std is that of the normal ones. */
static float draw(generator *g, int64_t dtype, double std)
{
    switch (g->p->numbers) {
    case NUMBERS_SATURATED:
        return (float)(sign(g) * largest(dtype));
    case NUMBERS_SUBNORMAL: {
        const double quantum = dtype == ETALON_E4M3FNUZ ? 0x1p-10 : 0x1p-9;
        const double size = quantum * (double)random_between(&g->random, 1, 7);
        return (float)(sign(g) * size);
    }
    default:
        return (float)(random_normal(&g->random) * std);
    }
}

static void draw_all(generator *g, etalon_tensor *t, double std)
{
    const int64_t n = oracle_elements(t);
    for (int64_t i = 0; i < n; i++)
        set(t, i, draw(g, t->dtype, std));
}

/* Attention
 * ---------
 */
typedef struct sequences {
    int64_t *q, *k; /* lengths */
    int64_t  q_total, k_total;
} sequences;

static void draw_lengths(generator *g, int64_t i, int64_t *q, int64_t *k)
{
    const shape *s = &g->s;
    *q = s->q_len;
    *k = s->ctx;
    switch (g->p->lengths) {
    case LENGTHS_RAGGED:
        *q = s->q_len > 0 ? random_between(&g->random, 1, s->q_len) : 0;
        *k = random_between(&g->random, *q < s->ctx ? *q : s->ctx, s->ctx);
        return;
    case LENGTHS_EMPTY: /* no keys, fewer keys than queries, no queries, neither */
        if (i % 4 == 0)
            *k = 0;
        else if (i % 4 == 1)
            *k = s->q_len / 2 < s->ctx ? s->q_len / 2 : s->ctx;
        else if (i % 4 == 2)
            *q = 0;
        return;
    case LENGTHS_UNASKED: /* keys that no query asks for */
        if (i % 4 == 1)
            *q = 0;
        return;
    case LENGTHS_EQUAL:
        return;
    }
}

static bool draw_sequences(generator *g, sequences *all)
{
    all->q = calloc((size_t)g->s.batch + 1, sizeof *all->q);
    all->k = calloc((size_t)g->s.batch + 1, sizeof *all->k);
    if (all->q == NULL || all->k == NULL)
        return oracle_fail(g->error, "shape batch: no memory for %" PRId64 " lengths", g->s.batch);
    for (int64_t b = 0; b < g->s.batch; b++) {
        draw_lengths(g, b, &all->q[b], &all->k[b]);
        all->q_total += all->q[b];
        all->k_total += all->k[b];
    }
    return check_index(&g->s, all->q_total, g->error) && check_index(&g->s, all->k_total, g->error);
}

static bool add_cu_seqlens(generator *g, const char *name, const int64_t *lengths)
{
    etalon_tensor *t = TENSOR(g, name, g->s.index, g->s.batch + 1);
    if (t == NULL)
        return false;
    int64_t sum = 0;
    for (int64_t b = 0; b < g->s.batch; b++)
        set_index(t, b + 1, sum += lengths[b]);
    return true;
}

/* A descale of the pattern: of saturated and subnormal numbers what brings them near 1, else `usual`. */
static double tensor_descale(const generator *g, int64_t dtype, double usual)
{
    if (g->p->numbers == NUMBERS_SATURATED)
        return 1.0 / largest(dtype);
    return g->p->numbers == NUMBERS_SUBNORMAL ? 0x1p7 : usual;
}

/* Exact weights and values of 1 want no descale. */
static bool descaled(const generator *g, int64_t dtype)
{
    return is_fp8(dtype) && g->s.descale > 0 && g->p->hot == HOT_NONE && g->p->values == VALUES_RANDOM;
}

static bool add_descale(generator *g, const char *name, int64_t dtype, double usual)
{
    if (!descaled(g, dtype))
        return true;
    etalon_tensor *t =
        g->s.descale == 1 ? TENSOR(g, name, ETALON_F32, 1) : TENSOR(g, name, ETALON_F32, g->s.batch, g->s.kv_heads);
    if (t == NULL)
        return false;
    for (int64_t i = 0; i < oracle_elements(t); i++) {
        const double vary = g->s.descale == 1 ? 1.0 : 0.5 + random_uniform(&g->random);
        set(t, i, (float)(tensor_descale(g, dtype, usual) * vary));
    }
    return true;
}

static int64_t query_dtype(const generator *g)
{
    return g->op->id == ORACLE_PA_MTP ? g->s.q_dtype : g->s.dtype;
}

#define HOT_Q 8.0 /* both exact in every format; their product over sqrt(192) is the gap of the known case */
#define HOT_K 14.0
#define PEAK 8.0

/* 1 / sqrt(dim), as scores of unit variance want it; or what makes HOT_Q HOT_K the wanted gap. */
static double softmax_scale(const generator *g)
{
    double scale = 1.0 / sqrt((double)g->s.dim);
    if (g->p->hot != HOT_NONE && g->s.gap > 0.0)
        return g->s.gap / (HOT_Q * HOT_K);
    if (g->p->numbers == NUMBERS_SATURATED && !descaled(g, query_dtype(g)))
        scale /= largest(query_dtype(g));
    if (g->p->numbers == NUMBERS_SATURATED && !descaled(g, g->s.dtype))
        scale /= largest(g->s.dtype);
    return scale;
}

static bool add_queries(generator *g, int64_t tokens)
{
    etalon_tensor *q = TENSOR(g, "q", query_dtype(g), tokens, g->s.heads, g->s.dim);
    if (q == NULL)
        return false;
    if (g->p->numbers == NUMBERS_ZERO_Q)
        return true;
    if (g->p->hot == HOT_NONE) /* k's descale is 2: without one of 1/2, q itself has half the size */
        draw_all(g, q, descaled(g, query_dtype(g)) || !descaled(g, g->s.dtype) ? 1.0 : 0.5);
    for (int64_t i = 0; g->p->hot != HOT_NONE && i < tokens * g->s.heads; i++)
        set(q, i * g->s.dim, (float)HOT_Q);
    return true;
}

static int64_t hot_key(const generator *g, int64_t q, int64_t k)
{
    switch (g->p->hot) {
    case HOT_FIRST:
        return 0;
    case HOT_MIDDLE:
        return k / 2;
    case HOT_LAST:
        return g->s.causal && q > 0 ? (k > q ? k - q : 0) : k - 1;
    case HOT_NONE:
        break;
    }
    return -1;
}

/* Keys that no row of the sequence sees: all if it has no rows, else those left of the first row's window. */
static bool unseen(const generator *g, int64_t q, int64_t k, int64_t j)
{
    return g->p->padding == PADDING_NAN && (q == 0 || (g->s.window_left >= 0 && j < k - q - g->s.window_left));
}

/* Rows of one key in K and V at element offsets. */
static void draw_key(generator *g, etalon_tensor *k, int64_t at, int64_t j, int64_t hot, bool nan)
{
    const double std = g->p->numbers == NUMBERS_PEAKED ? PEAK : 1.0;
    for (int64_t d = 0; d < g->s.dim; d++) {
        const float drawn = draw(g, k->dtype, std);
        const float exact = d == 0 && j == hot ? (float)HOT_K : 0.0f;
        set(k, at + d, nan ? NAN : g->p->hot == HOT_NONE ? drawn : exact);
    }
}

static void draw_value(generator *g, etalon_tensor *v, int64_t at, int64_t j, int64_t hot, bool nan)
{
    for (int64_t d = 0; d < g->s.v_dim; d++) {
        float x = draw(g, v->dtype, 1.0);
        if (g->p->values == VALUES_ONES)
            x = 1.0f;
        else if (g->p->values == VALUES_ONE_HOT)
            x = j % g->s.v_dim == d ? 1.0f : 0.0f;
        else if (g->p->hot != HOT_NONE)
            x = j == hot ? 1.0f : -1.0f;
        set(v, at + d, nan ? NAN : x);
    }
}

static bool add_packed(generator *g, const sequences *all)
{
    const shape   *s = &g->s;
    etalon_tensor *k = TENSOR(g, "k", s->dtype, all->k_total, s->kv_heads, s->dim);
    etalon_tensor *v = k == NULL ? NULL : TENSOR(g, "v", s->dtype, all->k_total, s->kv_heads, s->v_dim);
    if (v == NULL)
        return false;
    int64_t row = 0;
    for (int64_t b = 0; b < s->batch; b++)
        for (int64_t j = 0; j < all->k[b]; j++)
            for (int64_t h = 0; h < s->kv_heads; h++, row++) {
                const int64_t hot = hot_key(g, all->q[b], all->k[b]);
                const bool    nan = unseen(g, all->q[b], all->k[b], j);
                draw_key(g, k, row * s->dim, j, hot, nan);
                draw_value(g, v, row * s->v_dim, j, hot, nan);
            }
    return true;
}

/* Page ids, and the page table. */
typedef struct pool {
    int64_t  pages, columns;
    int32_t *order; /* order[i]: the page that the i-th used one is */
} pool;

static void shuffle(generator *g, int32_t *x, int64_t n)
{
    for (int64_t i = n - 1; i > 0; i--) {
        const int64_t j = random_between(&g->random, 0, i);
        const int32_t swap = x[i];
        x[i] = x[j];
        x[j] = swap;
    }
}

static bool plan_pool(generator *g, const sequences *all, pool *pages)
{
    const bool plain = g->p->padding == PADDING_NONE;
    pages->pages = g->s.spare >= 0 ? g->s.spare : plain ? 0 : SPARE_PAGES;
    for (int64_t b = 0; b < g->s.batch; b++) {
        const int64_t own = pages_of(&g->s, all->k[b]);
        pages->pages += own;
        pages->columns = own > pages->columns ? own : pages->columns;
    }
    pages->columns += plain ? 0 : SPARE_COLUMNS;
    if (pages->pages > INT32_MAX)
        return oracle_fail(g->error, "shape ctx, page: %" PRId64 " pages, expected at most %d", pages->pages,
                           INT32_MAX);
    pages->order = calloc((size_t)pages->pages + 1, sizeof *pages->order);
    if (pages->order == NULL)
        return oracle_fail(g->error, "shape ctx: no memory for %" PRId64 " pages", pages->pages);
    for (int64_t i = 0; i < pages->pages; i++)
        pages->order[i] = (int32_t)i;
    if (!plain)
        shuffle(g, pages->order, pages->pages);
    return true;
}

static int64_t slot_row(const shape *s, int64_t page, int64_t slot, int64_t head)
{
    if (s->layout == ETALON_KV_NHD)
        return (page * s->page + slot) * s->kv_heads + head;
    return (page * s->kv_heads + head) * s->page + slot;
}

static float padding_value(const generator *g)
{
    return g->p->padding == PADDING_NONE ? 0.0f : g->p->padding == PADDING_JUNK ? 50.0f : NAN;
}

static int32_t padding_page(const generator *g)
{
    return g->p->padding == PADDING_NONE ? 0 : g->p->padding == PADDING_PAST_END ? INT32_MAX : -1;
}

static void fill_pool(generator *g, const sequences *all, const pool *pages, etalon_tensor *k, etalon_tensor *v,
                      etalon_tensor *table)
{
    const shape *s = &g->s;
    int64_t      used = 0;
    for (int64_t i = 0; i < oracle_elements(table); i++)
        set_index(table, i, padding_page(g));
    for (int64_t b = 0; b < s->batch; b++) {
        const int64_t hot = hot_key(g, all->q[b], all->k[b]), own = pages_of(s, all->k[b]);
        for (int64_t i = 0; i < own; i++)
            set_index(table, b * pages->columns + i, pages->order[used + i]);
        for (int64_t j = 0; j < all->k[b]; j++)
            for (int64_t h = 0; h < s->kv_heads; h++) {
                const int64_t row = slot_row(s, pages->order[used + j / s->page], j % s->page, h);
                const bool    nan = unseen(g, all->q[b], all->k[b], j);
                draw_key(g, k, row * s->dim, j, hot, nan);
                draw_value(g, v, row * s->v_dim, j, hot, nan);
            }
        used += own;
    }
}

static etalon_tensor *add_cache(generator *g, const char *name, int64_t pages, int64_t dim)
{
    const shape   *s = &g->s;
    etalon_tensor *t = s->layout == ETALON_KV_NHD ? TENSOR(g, name, s->dtype, pages, s->page, s->kv_heads, dim)
                                                  : TENSOR(g, name, s->dtype, pages, s->kv_heads, s->page, dim);
    for (int64_t i = 0; t != NULL && i < oracle_elements(t); i++)
        set(t, i, padding_value(g));
    return t;
}

static bool add_paged(generator *g, const sequences *all)
{
    pool           pages = { 0 };
    bool           ok = plan_pool(g, all, &pages);
    etalon_tensor *k = ok ? add_cache(g, "k_cache", pages.pages, g->s.dim) : NULL;
    etalon_tensor *v = k != NULL ? add_cache(g, "v_cache", pages.pages, g->s.v_dim) : NULL;
    etalon_tensor *table = v != NULL ? TENSOR(g, "block_tables", ETALON_I32, g->s.batch, pages.columns) : NULL;
    etalon_tensor *lengths = table != NULL ? TENSOR(g, "seq_lens", g->s.index, g->s.batch) : NULL;
    if (lengths != NULL)
        fill_pool(g, all, &pages, k, v, table);
    for (int64_t b = 0; lengths != NULL && b < g->s.batch; b++)
        set_index(lengths, b, all->k[b]);
    free(pages.order);
    return lengths != NULL;
}

static bool add_attention_metadata(generator *g)
{
    bool ok = add_real(g, "softmax_scale", softmax_scale(g)) && add_integer(g, "causal", g->s.causal);
    if (g->s.window_left >= 0)
        ok = ok && add_integer(g, "window_left", g->s.window_left);
    if (g->s.window_right >= 0)
        ok = ok && add_integer(g, "window_right", g->s.window_right);
    if (g->op->id == ORACLE_PA_MTP)
        return ok && add_metadata(g, "kv_layout", g->s.layout == ETALON_KV_NHD ? "NHD" : "HND");
    return ok && add_integer(g, "max_seqlen_q", g->s.q_len) && add_integer(g, "max_seqlen_k", g->s.ctx);
}

static bool generate_attention(generator *g)
{
    const bool packed = g->op->id == ORACLE_FMHA_VARLEN;
    sequences  all = { 0 };
    if (packed && g->p->padding == PADDING_NAN && g->s.window_left < 0)
        g->s.window_left = g->s.ctx / 4; /* packed keys have no padding: some are made unseen */
    const bool ok = draw_sequences(g, &all) && add_queries(g, all.q_total) &&
                    add_cu_seqlens(g, "cu_seqlens_q", all.q) &&
                    (packed ? add_packed(g, &all) && add_cu_seqlens(g, "cu_seqlens_k", all.k) : add_paged(g, &all)) &&
                    add_descale(g, "q_descale", query_dtype(g), 0.5) && add_descale(g, "k_descale", g->s.dtype, 2.0) &&
                    add_descale(g, "v_descale", g->s.dtype, 0.25) && add_attention_metadata(g);
    free(all.q);
    free(all.k);
    return ok;
}

/* Indexer logits
 * --------------
 */
static void request_window(const shape *s, int64_t m, int64_t *ks, int64_t *ke)
{
    const int64_t r = m * s->requests / s->m; /* rows and keys are dealt to the requests evenly */
    const int64_t next_row = ((r + 1) * s->m + s->requests - 1) / s->requests;
    const int64_t last = (r + 1) * s->n / s->requests;
    *ks = r * s->n / s->requests;
    *ke = last - (next_row - 1 - m);
}

static void draw_window(generator *g, int64_t m, int64_t *ks, int64_t *ke)
{
    const shape *s = &g->s;
    *ks = 0;
    *ke = s->n;
    switch (g->p->windows) {
    case WINDOWS_ALL:
        return;
    case WINDOWS_CAUSAL:
        *ke = s->n - s->m + m + 1;
        return;
    case WINDOWS_CP:
        *ke = m < s->m / 2 ? s->n / 4 + m + 1 : s->n - s->m + m + 1;
        return;
    case WINDOWS_MISALIGNED:
        *ks = random_between(&g->random, 0, s->n / 2) | 1;
        *ke = random_between(&g->random, *ks, s->n > *ks ? s->n : *ks);
        return;
    case WINDOWS_REQUESTS:
        request_window(s, m, ks, ke);
        return;
    case WINDOWS_EMPTY: /* empty, inverted, at either end, one key, all keys */
        *ks = (const int64_t[]){ s->n / 3, s->n / 2, 0, s->n, s->n / 3, 0 }[m % 6];
        *ke = (const int64_t[]){ s->n / 3, s->n / 4, 0, s->n, s->n / 3 + 1, s->n }[m % 6];
        return;
    case WINDOWS_PAST_END:
        *ks = (const int64_t[]){ -5, s->n / 2, s->n + 7, INT32_MIN }[m % 4];
        *ke = s->n + random_between(&g->random, 1, 1000);
        return;
    case WINDOWS_MIDDLE:
        *ks = s->n / 4 + random_between(&g->random, 0, s->n / 8);
        *ke = m % 5 == 4 ? *ks : s->n * 3 / 4 - random_between(&g->random, 0, s->n / 8);
        return;
    }
}

static bool add_windows(generator *g)
{
    etalon_tensor *ks = TENSOR(g, "cu_seqlen_ks", g->s.index, g->s.m);
    etalon_tensor *ke = ks == NULL ? NULL : TENSOR(g, "cu_seqlen_ke", g->s.index, g->s.m);
    if (ke == NULL)
        return false;
    for (int64_t m = 0; m < g->s.m; m++) {
        int64_t first, last;
        draw_window(g, m, &first, &last);
        set_index(ks, m, first);
        set_index(ke, m, last);
    }
    return true;
}

/* NaN in every key outside [n / 4, 3 n / 4), and in q and the weights of every row whose window is empty. */
static void poison_unseen(const shape *s, etalon_tensor *q, etalon_tensor *k, etalon_tensor *scale,
                          etalon_tensor *weights)
{
    for (int64_t n = 0; n < s->n; n++) {
        if (n >= s->n / 4 && n < s->n * 3 / 4)
            continue;
        set(scale, n, NAN);
        for (int64_t d = 0; d < s->dim; d++)
            set(k, n * s->dim + d, NAN);
    }
    for (int64_t m = 4; m < s->m; m += 5)
        for (int64_t h = 0; h < s->heads; h++) {
            set(weights, m * s->heads + h, NAN);
            for (int64_t d = 0; d < s->dim; d++)
                set(q, (m * s->heads + h) * s->dim + d, NAN);
        }
}

static void draw_weights(generator *g, etalon_tensor *weights)
{
    for (int64_t i = 0; i < oracle_elements(weights); i++) {
        const double x = random_normal(&g->random) * 0x1p-6;
        set(weights, i, (float)(g->p->negative && x > 0.0 ? -x : x));
    }
}

static bool generate_mqa_logits(generator *g)
{
    const shape *s = &g->s;
    if (!check_index(s, s->n + 1000, g->error))
        return false;
    etalon_tensor *q = TENSOR(g, "q", s->q_dtype, s->m, s->heads, s->dim);
    etalon_tensor *k = q == NULL ? NULL : TENSOR(g, "k", s->dtype, s->n, s->dim);
    etalon_tensor *scale = k == NULL ? NULL : TENSOR(g, "kv_scale", ETALON_F32, s->n);
    etalon_tensor *weights = scale == NULL ? NULL : TENSOR(g, "weights", ETALON_F32, s->m, s->heads);
    if (weights == NULL || !add_windows(g))
        return false;
    draw_all(g, q, 1.0);
    draw_all(g, k, 1.0);
    for (int64_t n = 0; n < s->n; n++) /* a power of two, as checkpoints hold them */
        set(scale, n, f32_of_e8m0((uint8_t)random_between(&g->random, 127 - 6, 127)));
    draw_weights(g, weights);
    if (g->p->padding == PADDING_NAN)
        poison_unseen(s, q, k, scale, weights);
    return add_integer(g, "clean_logits", s->clean != 0) &&
           (s->columns == 0 || add_integer(g, "max_seqlen_k", s->columns));
}

/* Indexer logits over a paged cache
 * ---------------------------------
 */
/* Keys that row t of sequence b sees: up to its own token, which is one of the last. */
static int64_t draw_context(generator *g, int64_t b, int64_t t, int64_t ctx)
{
    const int64_t own = ctx - g->s.next_n + t + 1;
    if (g->p->lengths == LENGTHS_EMPTY && b % 3 == 0)
        return 0;
    if (g->p->lengths == LENGTHS_EMPTY && b % 3 == 1) /* fewer keys than rows */
        return t + 1 - (g->s.next_n + 1) / 2;
    return own < 0 ? 0 : own;
}

static bool add_contexts(generator *g, sequences *all)
{
    const shape   *s = &g->s;
    etalon_tensor *lens = TENSOR(g, "context_lens", s->index, s->batch, s->next_n);
    all->k = calloc((size_t)s->batch + 1, sizeof *all->k);
    if (lens == NULL || all->k == NULL)
        return lens != NULL && oracle_fail(g->error, "shape batch: no memory for %" PRId64 " lengths", s->batch);
    for (int64_t b = 0; b < s->batch; b++) {
        const bool    ragged = g->p->lengths == LENGTHS_RAGGED;
        const int64_t ctx =
            ragged ? random_between(&g->random, s->next_n < s->ctx ? s->next_n : s->ctx, s->ctx) : s->ctx;
        for (int64_t t = 0; t < s->next_n; t++) {
            const int64_t seen = draw_context(g, b, t, ctx);
            set_index(lens, b * s->next_n + t, seen);
            all->k[b] = seen > all->k[b] ? seen : all->k[b];
        }
    }
    return true;
}

/* Slot `slot` of a block: its key, and its scale after the keys of all slots. */
static void draw_slot(generator *g, etalon_tensor *cache, int64_t block, int64_t slot, bool nan)
{
    const shape  *s = &g->s;
    char         *at = (char *)cache->data + block * s->page * (s->dim + (int64_t)sizeof(float));
    const float   scale = nan ? NAN : f32_of_e8m0((uint8_t)random_between(&g->random, 127 - 6, 127));
    etalon_tensor key = etalon_tensor_dense(at + slot * s->dim, (etalon_dtype)s->dtype, 1, &s->dim);
    for (int64_t d = 0; d < s->dim; d++)
        set(&key, d, nan ? NAN : draw(g, s->dtype, 1.0));
    memcpy(at + s->page * s->dim + slot * (int64_t)sizeof scale, &scale, sizeof scale);
}

/* Slots that no row sees: zeros, numbers that a careless kernel would take, or NaN. */
static void fill_blocks(generator *g, const sequences *all, const pool *pages, etalon_tensor *cache,
                        etalon_tensor *table)
{
    const shape *s = &g->s;
    for (int64_t i = 0; i < pages->pages * s->page && g->p->padding != PADDING_NONE; i++)
        draw_slot(g, cache, i / s->page, i % s->page, g->p->padding != PADDING_JUNK);
    for (int64_t i = 0; i < oracle_elements(table); i++)
        set_index(table, i, padding_page(g));
    for (int64_t b = 0, used = 0; b < s->batch; used += pages_of(s, all->k[b++])) {
        for (int64_t i = 0; i < pages_of(s, all->k[b]); i++)
            set_index(table, b * pages->columns + i, pages->order[used + i]);
        for (int64_t n = 0; n < all->k[b]; n++)
            draw_slot(g, cache, pages->order[used + n / s->page], n % s->page, false);
    }
}

static bool add_blocks_of(generator *g, const sequences *all)
{
    const shape   *s = &g->s;
    pool           pages = { 0 };
    bool           ok = plan_pool(g, all, &pages);
    etalon_tensor *cache =
        ok ? TENSOR(g, "kv_cache", s->dtype, pages.pages, s->page, s->dim + (int64_t)sizeof(float)) : NULL;
    etalon_tensor *table = cache == NULL ? NULL : TENSOR(g, "block_tables", ETALON_I32, s->batch, pages.columns);
    if (table != NULL)
        fill_blocks(g, all, &pages, cache, table);
    free(pages.order);
    return table != NULL;
}

static bool generate_mqa_logits_paged(generator *g)
{
    const shape *s = &g->s;
    sequences    all = { 0 };
    if (s->page * s->dim % (int64_t)sizeof(float) != 0)
        return oracle_fail(g->error, "shape page, dim: %" PRId64 " x %" PRId64 " bytes, expected a multiple of 4",
                           s->page, s->dim);
    bool           ok = check_index(s, s->ctx, g->error) && add_contexts(g, &all) && add_blocks_of(g, &all);
    etalon_tensor *q = ok ? TENSOR(g, "q", s->q_dtype, s->batch, s->next_n, s->heads, s->dim) : NULL;
    etalon_tensor *weights = q == NULL ? NULL : TENSOR(g, "weights", ETALON_F32, s->batch * s->next_n, s->heads);
    free(all.k);
    if (weights == NULL)
        return false;
    draw_all(g, q, 1.0);
    draw_weights(g, weights);
    return add_integer(g, "clean_logits", s->clean != 0) &&
           (s->columns == 0 || add_integer(g, "max_context_len", s->columns));
}

/* Merging
 * -------
 */
/* One side: its lse in [H, T] and out in [T, H, D]; without keys, lse is `empty` and out NaN, which is never read. */
static bool add_side(generator *g, const char *out_name, const char *lse_name, int64_t turn, float empty)
{
    const shape   *s = &g->s;
    etalon_tensor *out = TENSOR(g, out_name, s->dtype, s->tokens, s->heads, s->dim);
    etalon_tensor *lse = out == NULL ? NULL : TENSOR(g, lse_name, ETALON_F32, s->heads, s->tokens);
    if (lse == NULL)
        return false;
    const double std = g->p->numbers == NUMBERS_PEAKED ? 4.0 * PEAK : 1.0;
    for (int64_t t = 0; t < s->tokens; t++)
        for (int64_t h = 0; h < s->heads; h++) {
            const bool none = g->p->lengths == LENGTHS_EMPTY && ((t + h) % 4 == turn || (t + h) % 4 == 2);
            set(lse, h * s->tokens + t, none ? empty : (float)(random_normal(&g->random) * std));
            for (int64_t d = 0; d < s->dim; d++) {
                const float x = (float)random_normal(&g->random);
                set(out, (t * s->heads + h) * s->dim + d, none ? NAN : x);
            }
        }
    return true;
}

static bool generate_merge_states(generator *g)
{
    if (is_fp8(g->s.dtype))
        return oracle_fail(g->error, "shape dtype: %s, expected f32 or bf16",
                           etalon_dtype_name((etalon_dtype)g->s.dtype));
    return add_side(g, "out_a", "lse_a", 0, -INFINITY) && add_side(g, "out_b", "lse_b", 1, INFINITY);
}

/* Requests
 * --------
 */
static bool allocate_file(tensorfile *file, tensorfile_error *error)
{
    *file = (tensorfile){ 0 };
    file->entries = calloc(MAX_ENTRIES, sizeof *file->entries);
    file->metadata = calloc(MAX_METADATA, sizeof *file->metadata);
    return (file->entries != NULL && file->metadata != NULL) || oracle_fail(error, "no memory");
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const tensorfile_entry *)a)->name, ((const tensorfile_entry *)b)->name);
}

static bool fill_file(generator *g)
{
    if (!add_metadata(g, "op", g->op->name) || !add_metadata(g, "pattern", g->p->name))
        return false;
    switch (g->op->id) {
    case ORACLE_MQA_LOGITS:
        return generate_mqa_logits(g);
    case ORACLE_MQA_LOGITS_PAGED:
        return generate_mqa_logits_paged(g);
    case ORACLE_MERGE_STATES:
        return generate_merge_states(g);
    default:
        return generate_attention(g);
    }
}

bool generate(const generate_request *request, tensorfile *file, tensorfile_error *error)
{
    generator g = { .op = request->op, .s = defaults[request->op->id], .file = file, .error = error };
    *file = (tensorfile){ 0 };
    g.random = random_seed(request->seed);
    g.p = find_pattern(request->op, request->pattern == NULL ? "random" : request->pattern, error);
    if (g.p == NULL)
        return false;
    for (int i = 0; i < request->shape_count; i++)
        if (!read_shape(request->op, request->shape[i], &g.s, error))
            return false;
    if (g.s.v_dim == 0)
        g.s.v_dim = g.s.dim;
    if (!check_rules(request->op, &g.s, error) || !check_sizes(request->op, &g.s, error) || !allocate_file(file, error))
        return false;
    char seed[32];
    snprintf(seed, sizeof seed, "%" PRIu64, request->seed);
    if (!fill_file(&g) || !add_metadata(&g, "seed", seed))
        return false;
    qsort(file->entries, (size_t)file->count, sizeof *file->entries, by_name);
    return true;
}

bool generate_expected(const etalon_context *ctx, tensorfile *file, tensorfile_error *error)
{
    oracle_problem problem;
    oracle_result  result = { 0 };
    bool           ok =
        oracle_bind(file, NULL, &problem, error) && oracle_run(ctx, &problem, problem.op->reference, &result, error);
    for (int i = 0; ok && i < problem.op->output_count; i++) {
        tensorfile_entry *entry = &file->entries[file->count];
        entry->name = strdup(oracle_first_name(problem.op->outputs[i].expected));
        if (entry->name == NULL)
            ok = oracle_fail(error, "no memory");
        entry->tensor = result.tensor[i];
        result.tensor[i].data = NULL; /* the file owns it now */
        file->count++;
    }
    oracle_result_free(&result);
    if (ok)
        qsort(file->entries, (size_t)file->count, sizeof *file->entries, by_name);
    return ok;
}

void generate_free(tensorfile *file)
{
    for (int i = 0; i < file->count; i++) {
        free(file->entries[i].name);
        free(file->entries[i].tensor.data);
    }
    for (int i = 0; i < file->metadata_count; i++) {
        free(file->metadata[i].key);
        free(file->metadata[i].value);
    }
    free(file->entries);
    free(file->metadata);
    *file = (tensorfile){ 0 };
}
