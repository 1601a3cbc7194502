/* Cases of xcheck: drawn problems, the generator's patterns, and tensors whose rows lie gibibytes apart; and the
 * yardsticks around one case. */
#include "xcheck.h"

#include "generate.h"
#include "testing.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

etalon_tensor *xcheck_output(const oracle_op *op, oracle_args *args, int i)
{
    return (etalon_tensor *)((char *)args + op->outputs[i].offset);
}

etalon_tensor *xcheck_input(const oracle_op *op, oracle_args *args, int i)
{
    return (etalon_tensor *)((char *)args + op->inputs[i].offset);
}

static bool lies_in(const etalon_tensor *t, const cases_block *block)
{
    const unsigned char *at = t->data;
    return at != NULL && at >= block->map && at < block->map + block->map_bytes;
}

const char *xcheck_block_name(const xcheck_case *c, int i)
{
    oracle_args args = c->args;
    for (int n = 0; n < c->op->input_count; n++)
        if (lies_in(xcheck_input(c->op, &args, n), &c->memory.block[i]))
            return oracle_first_name(c->op->inputs[n].names);
    for (int n = 0; n < c->op->output_count; n++)
        if (lies_in(xcheck_output(c->op, &args, n), &c->memory.block[i]))
            return oracle_first_name(c->op->outputs[n].names);
    return "a tensor of the harness";
}

/* Patterns
 * -------- */

int xcheck_patterns(const oracle_op *op, char names[][XCHECK_PATTERN_NAME])
{
    char  *text = NULL;
    size_t bytes = 0;
    int    count = 0;
    FILE  *memory = open_memstream(&text, &bytes);
    cases_require(memory != NULL, "open_memstream: %s", strerror(errno));
    generate_list_patterns(op, memory);
    fclose(memory);
    for (const char *line = text; *line != '\0' && count < XCHECK_PATTERNS; count++) {
        cases_require(sscanf(line, "%23s", names[count]) == 1, "no pattern in \"%s\"", line);
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    free(text);
    return count;
}

static const char *pick_text(rng *r, const char *const *list, int64_t count)
{
    return list[rng_below(r, count)];
}

/* Shapes of attention: small ones, and long rows of few heads, where small weights add up to what a kernel must not
 * lose. ln 2^18 = 12.48 nats below the largest, 2^8 exp(-gap) is half of E4M3FN's least number: a gap of 12.6 loses all
 * of 8192 weights, and with them 8192 exp(-12.6) = 0.027 of the largest. */
typedef enum length { SHORT, TUNED, LONG, FAR } length;

/* TUNED: as SHORT, by the shapes that rows of one architecture serve. */
static void tuned_attention_text(rng *r, bool paged, FILE *to)
{
    const int64_t kv_heads = RNG_PICK(r, 1, 1, 2), group = paged ? RNG_PICK(r, 16, 8, 4) : RNG_PICK(r, 1, 2, 4);
    fprintf(to, "batch=%d,q_len=%d,ctx=%d", (int)rng_between(r, 1, 3), (int)rng_between(r, 1, 4),
            (int)RNG_PICK(r, 40, 65, 100, 129));
    fprintf(to, ",heads=%" PRId64 ",kv_heads=%" PRId64, kv_heads * group, kv_heads);
    fprintf(to, paged ? ",dim=256,v_dim=256,page=16,q_dtype=bf16" : ",dim=192,v_dim=128");
    fprintf(to, ",descale=%d,dtype=e4m3fn,index=i32", (int)rng_below(r, 3));
}

static void attention_shape_text(rng *r, bool paged, length l, FILE *to)
{
    static const char *const dtypes[] = { "e4m3fn", "e4m3fn", "e4m3fnuz", "bf16", "f32" };
    static const char *const layouts[] = { "nhd", "hnd" };
    const int64_t            ctx = l == FAR ? 65536 : l == LONG ? 8192 : RNG_PICK(r, 65, 129, 200, 300);
    const int64_t            kv_heads = l == SHORT ? RNG_PICK(r, 1, 1, 2) : 1, group = RNG_PICK(r, 1, 2, 4, 8);
    const int64_t            q_len = paged || l != SHORT ? rng_between(r, 1, 4) : RNG_PICK(r, 1, 4, 33, 64);
    const int64_t            dim = l == SHORT ? RNG_PICK(r, 8, 16, 32, 33, 64, 128) : 16;
    const int64_t            v_dim = l == SHORT ? RNG_PICK(r, 0, 16, 40) : 8;
    const char              *dtype = pick_text(r, dtypes, l == SHORT ? 5 : 3);
    const int                descale = strncmp(dtype, "e4m3", 4) == 0 ? (int)rng_below(r, 3) : 0;
    fprintf(to, "batch=%d,q_len=%" PRId64 ",ctx=%" PRId64, l == SHORT ? (int)rng_between(r, 1, 3) : 1, q_len, ctx);
    fprintf(to, ",heads=%" PRId64 ",kv_heads=%" PRId64, kv_heads * (l == SHORT ? group : 1), kv_heads);
    fprintf(to, ",dim=%" PRId64 ",v_dim=%" PRId64 ",descale=%d,dtype=%s", dim, v_dim, descale, dtype);
    fprintf(to, ",index=%s", rng_chance(r, 50) ? "i32" : "i64");
    if (l != SHORT)
        fprintf(to, ",gap=%s", l == LONG ? "12.6" : "13.5");
    if (paged)
        fprintf(to, ",page=%d,layout=%s,q_dtype=%s", (int)RNG_PICK(r, 1, 3, 16, 16, 64), pick_text(r, layouts, 2),
                pick_text(r, dtypes, 5));
}

static const char *const fp8[] = { "e4m3fn", "e4m3fnuz" };

static void logits_shape_text(rng *r, length l, FILE *to)
{
    if (l == TUNED)
        fprintf(to, "m=%d,n=%d,heads=%d,dim=128,clean=%d,dtype=e4m3fn,q_dtype=e4m3fn", (int)RNG_PICK(r, 3, 17),
                (int)RNG_PICK(r, 64, 100, 130), (int)RNG_PICK(r, 32, 64), (int)rng_below(r, 2));
    else
        fprintf(to, "m=%d,n=%d,heads=%d,dim=%d,clean=%d,dtype=%s,q_dtype=%s,max_seqlen_k=%d",
                (int)RNG_PICK(r, 8, 17, 32), (int)RNG_PICK(r, 64, 100, 257), (int)RNG_PICK(r, 1, 4, 32),
                (int)RNG_PICK(r, 16, 33, 128), (int)rng_below(r, 2), pick_text(r, fp8, 2), pick_text(r, fp8, 2),
                (int)RNG_PICK(r, 0, 0, 0, 40, 300));
}

static void paged_logits_shape_text(rng *r, FILE *to)
{
    fprintf(to, "batch=%d,next_n=%d,ctx=%d,heads=%d,dim=%d,page=%d,clean=%d,dtype=%s,q_dtype=%s,max_context_len=%d",
            (int)rng_between(r, 1, 5), (int)rng_between(r, 1, 8), (int)RNG_PICK(r, 64, 65, 100, 257),
            (int)RNG_PICK(r, 1, 4, 32), (int)RNG_PICK(r, 16, 33, 128), (int)RNG_PICK(r, 4, 16, 64, 64),
            (int)rng_below(r, 2), pick_text(r, fp8, 2), pick_text(r, fp8, 2), (int)RNG_PICK(r, 0, 0, 40, 300));
}

static void pattern_shape(rng *r, const oracle_op *op, length l, char *text, size_t bytes)
{
    static const char *const wide[] = { "f32", "bf16" };
    FILE                    *to = fmemopen(text, bytes, "w");
    cases_require(to != NULL, "fmemopen: %s", strerror(errno));
    switch (op->id) {
    case ORACLE_PA_MTP:
    case ORACLE_FMHA_VARLEN:
        if (l == TUNED)
            tuned_attention_text(r, op->id == ORACLE_PA_MTP, to);
        else
            attention_shape_text(r, op->id == ORACLE_PA_MTP, l, to);
        break;
    case ORACLE_MQA_LOGITS:
        logits_shape_text(r, l, to);
        break;
    case ORACLE_MQA_LOGITS_PAGED:
        paged_logits_shape_text(r, to);
        break;
    case ORACLE_MERGE_STATES:
        fprintf(to, "tokens=%d,heads=%d,dim=%d,dtype=%s", (int)RNG_PICK(r, 1, 5, 17), (int)RNG_PICK(r, 1, 3, 8),
                (int)RNG_PICK(r, 1, 16, 65), pick_text(r, wide, 2));
        break;
    }
    fclose(to);
}

/* Its blocks have no gaps. */
static bool is_cache(const xcheck_case *c, const etalon_tensor *t)
{
    return c->op->id == ORACLE_MQA_LOGITS_PAGED && t == &c->args.mqa_logits_paged.kv_cache;
}

/* The file's tensors, copied into memory that watches over them. */
static void bind_guarded(xcheck_case *c, const tensorfile *file, length l)
{
    tensorfile_error error;
    oracle_problem   problem;
    rng             *layout = rng_chance(&c->random, l == TUNED ? 5 : 40) ? &c->random : NULL;
    cases_require(oracle_bind(file, c->op, &problem, &error), "%s", error.text);
    c->args = problem.args;
    for (int i = 0; i < c->op->input_count; i++) {
        etalon_tensor *t = xcheck_input(c->op, &c->args, i);
        if (t->data == NULL)
            continue;
        const etalon_tensor from = *t;
        *t = cases_tensor(&c->memory, is_cache(c, t) ? NULL : layout, CASES_INPUT, from.dtype, from.rank, from.shape);
        cases_copy(t, &from);
    }
    for (int i = 0; i < c->op->output_count; i++) {
        int64_t            shape[3];
        const etalon_dtype dtype =
            !logits_are_of(c->op) && i == 0 && rng_chance(&c->random, 50) ? ETALON_BF16 : ETALON_F32;
        oracle_output_shape(&problem, i, shape);
        *xcheck_output(c->op, &c->args, i) =
            cases_tensor(&c->memory, layout, CASES_OUTPUT, dtype, c->op->outputs[i].rank, shape);
    }
    cases_seal(&c->memory);
}

static void make_pattern(xcheck_case *c, const char *pattern, length l)
{
    char                   shape[256];
    tensorfile             file;
    tensorfile_error       error;
    const char            *shapes[] = { shape };
    const generate_request request = { c->op, shapes, 1, pattern, rng_bits(&c->random) >> 1 };
    pattern_shape(&c->random, c->op, l, shape, sizeof shape);
    cases_require(generate(&request, &file, &error), "generate %s %s: %s", pattern, shape, error.text);
    bind_guarded(c, &file, l);
    generate_free(&file);
    snprintf(c->source, sizeof c->source, "pattern %s%s", pattern,
             l == FAR     ? ", 65536 keys"
             : l == LONG  ? ", 8192 keys"
             : l == TUNED ? ", a tuned shape"
                          : "");
}

/* Draws
 * ----- */

#define TAKE(name, how)                                \
    do {                                               \
        name##_case drawn;                             \
        name##_##how(&drawn, &c->random);              \
        c->memory = drawn.memory;                      \
        c->args = (oracle_args){ .name = drawn.args }; \
    } while (0)

static void make_draw(xcheck_case *c)
{
    snprintf(c->source, sizeof c->source, "draw");
    switch (c->op->id) {
    case ORACLE_PA_MTP:
        TAKE(pa_mtp, draw);
        break;
    case ORACLE_FMHA_VARLEN:
        TAKE(fmha_varlen, draw);
        break;
    case ORACLE_MQA_LOGITS:
        TAKE(mqa_logits, draw);
        break;
    case ORACLE_MQA_LOGITS_PAGED:
        TAKE(mqa_logits_paged, draw);
        break;
    case ORACLE_MERGE_STATES:
        TAKE(merge_states, draw);
        break;
    }
}

static void make_far(xcheck_case *c)
{
    snprintf(c->source, sizeof c->source, "draw at the far ends");
    switch (c->op->id) {
    case ORACLE_PA_MTP:
        TAKE(pa_mtp, draw_far);
        break;
    case ORACLE_FMHA_VARLEN:
        TAKE(fmha_varlen, draw_far);
        break;
    case ORACLE_MQA_LOGITS:
        TAKE(mqa_logits, draw_far);
        break;
    case ORACLE_MQA_LOGITS_PAGED:
        TAKE(mqa_logits_paged, draw_far);
        break;
    case ORACLE_MERGE_STATES:
        TAKE(merge_states, draw);
        break;
    }
}

static void make_tuned(xcheck_case *c)
{
    snprintf(c->source, sizeof c->source, "draw of a tuned shape");
    switch (c->op->id) {
    case ORACLE_PA_MTP:
        TAKE(pa_mtp, draw_tuned);
        break;
    case ORACLE_FMHA_VARLEN:
        TAKE(fmha_varlen, draw_tuned);
        break;
    case ORACLE_MQA_LOGITS:
        TAKE(mqa_logits, draw_tuned);
        break;
    case ORACLE_MQA_LOGITS_PAGED:
        TAKE(mqa_logits_paged, draw);
        break;
    case ORACLE_MERGE_STATES:
        TAKE(merge_states, draw);
        break;
    }
}

/* Addresses that do not fit 32 bits
 * ---------------------------------
 * The rows of the first dimension of a tensor move so far apart that the last ones lie 2^31 and 2^32 bytes away. Only
 * the pages that hold a row exist: whoever computes an address in 32 bits meets a page without access. */

enum { WIDE_ROWS_MOST = 4096 };
#define WIDE_SPAN ((int64_t)5 << 30)

static bool may_spread(const etalon_tensor *t)
{
    if (t->data == NULL || t->shape[0] < 2 || t->shape[0] > WIDE_ROWS_MOST)
        return false;
    int64_t reach = 1; /* elements of one row, which must stay one dense stretch */
    for (int32_t d = t->rank - 1; d > 0; d--) {
        if (t->stride[d] != reach)
            return false;
        reach *= t->shape[d];
    }
    return reach > 0;
}

/* Read-only in the end: a kernel that writes to its input faults. */
static void spread(xcheck_case *c, int slot, etalon_tensor *t)
{
    const int64_t       page = (int64_t)sysconf(_SC_PAGESIZE), bytes = (int64_t)etalon_dtype_bytes(t->dtype);
    const int64_t       apart = WIDE_SPAN / (t->shape[0] - 1) / page * page;
    const etalon_tensor from = *t;
    int64_t             row = bytes;
    for (int32_t d = 1; d < t->rank; d++)
        row *= t->shape[d];
    const int64_t whole = (row + page - 1) / page * page;
    c->wide_bytes[slot] = (size_t)((t->shape[0] - 1) * apart + whole + 2 * page);
    void *map = mmap(NULL, c->wide_bytes[slot], PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    cases_require(map != MAP_FAILED, "mmap of %zu bytes: %s", c->wide_bytes[slot], strerror(errno));
    c->wide[slot] = map;
    t->data = (char *)map + page + whole - row; /* rows end at the end of a page */
    t->stride[0] = apart / bytes;
    for (int64_t i = 0; i < t->shape[0]; i++)
        cases_require(mprotect((char *)map + page + i * apart, (size_t)whole, PROT_READ | PROT_WRITE) == 0,
                      "mprotect: %s", strerror(errno));
    cases_copy(t, &from);
    for (int64_t i = 0; i < t->shape[0]; i++)
        cases_require(mprotect((char *)map + page + i * apart, (size_t)whole, PROT_READ) == 0, "mprotect: %s",
                      strerror(errno));
}

int xcheck_wide_slot(const xcheck_case *c, const etalon_tensor *t)
{
    for (int i = 0; i < 2; i++)
        if (c->wide[i] != NULL && (char *)t->data >= (char *)c->wide[i] &&
            (char *)t->data < (char *)c->wide[i] + c->wide_bytes[i])
            return i;
    return -1;
}

/* Tensors whose first dimension counts pages, tokens or keys. */
static void make_wide(xcheck_case *c)
{
    switch (c->op->id) {
    case ORACLE_PA_MTP:
        if (may_spread(&c->args.pa_mtp.k_cache))
            spread(c, 0, &c->args.pa_mtp.k_cache);
        if (may_spread(&c->args.pa_mtp.v_cache))
            spread(c, 1, &c->args.pa_mtp.v_cache);
        break;
    case ORACLE_FMHA_VARLEN:
        if (may_spread(&c->args.fmha_varlen.k))
            spread(c, 0, &c->args.fmha_varlen.k);
        if (may_spread(&c->args.fmha_varlen.v))
            spread(c, 1, &c->args.fmha_varlen.v);
        break;
    case ORACLE_MQA_LOGITS:
        if (may_spread(&c->args.mqa_logits.q))
            spread(c, 0, &c->args.mqa_logits.q);
        if (may_spread(&c->args.mqa_logits.k))
            spread(c, 1, &c->args.mqa_logits.k);
        break;
    case ORACLE_MQA_LOGITS_PAGED:
        if (may_spread(&c->args.mqa_logits_paged.q))
            spread(c, 0, &c->args.mqa_logits_paged.q);
        if (may_spread(&c->args.mqa_logits_paged.kv_cache))
            spread(c, 1, &c->args.mqa_logits_paged.kv_cache);
        break;
    case ORACLE_MERGE_STATES:
        if (may_spread(&c->args.merge_states.out_a))
            spread(c, 0, &c->args.merge_states.out_a);
        break;
    }
    if (c->wide[0] != NULL || c->wide[1] != NULL)
        snprintf(c->source + strlen(c->source), sizeof c->source - strlen(c->source), ", rows spread over 5 GiB");
}

/* Cases
 * ----- */

static uint64_t hash_of(const char *text)
{
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * 1099511628211u;
    return hash;
}

static void draw_model(etalon_model_options *model, rng *r)
{
    model->p_scale = (etalon_p_scale)RNG_PICK(r, ETALON_P_SCALE_FIXED, ETALON_P_SCALE_TILE, ETALON_P_SCALE_BLOCK32);
    model->tile_keys = 128; /* the tile that the bound of FP8 kernels is stated for */
}

static bool is_hot(const char *pattern)
{
    return strncmp(pattern, "hotkey", 6) == 0 || strcmp(pattern, "underflow") == 0 || strcmp(pattern, "v-ones") == 0;
}

/* 64k keys take a second, so that `check` leaves them out. */
static length draw_length(xcheck_case *c, const char *pattern, xcheck_effort effort)
{
    const bool attends = c->op->id == ORACLE_PA_MTP || c->op->id == ORACLE_FMHA_VARLEN;
    rng        tuned = rng_make(c->seed, (uint64_t)c->number);
    if (attends && effort != XCHECK_CHECK && rng_chance(&c->random, 4))
        return FAR;
    if (attends && is_hot(pattern) && rng_chance(&c->random, 70))
        return LONG;
    return rng_chance(&tuned, 30) ? TUNED : SHORT;
}

/* Windows of width 0, which some take for none: rare among the draws, and so every eighth of them. */
static void narrow_window(xcheck_case *c)
{
    if (c->op->id == ORACLE_PA_MTP)
        c->args.pa_mtp.window_left = 0;
    if (c->op->id == ORACLE_FMHA_VARLEN)
        c->args.fmha_varlen.window_left = 0;
}

/* Every second case is a pattern, in turn; of the others every fourth is at the far ends, and every fourth of a shape
 * that rows of one architecture serve. */
void xcheck_case_make(xcheck_case *c, const oracle_op *op, uint64_t seed, int64_t number, xcheck_effort effort)
{
    char patterns[XCHECK_PATTERNS][XCHECK_PATTERN_NAME];
    *c = (xcheck_case){ .op = op, .seed = seed, .number = number };
    c->random = rng_make(seed, hash_of(op->name) + (uint64_t)number);
    if (number % 2 == 0) {
        const char *pattern = patterns[number / 2 % xcheck_patterns(op, patterns)];
        make_pattern(c, pattern, draw_length(c, pattern, effort));
    } else if (number / 2 % 4 == 3) {
        make_far(c);
    } else if (number / 2 % 4 == 1) {
        make_tuned(c);
    } else {
        make_draw(c);
    }
    if (number % 16 == 5)
        narrow_window(c);
    if (number % 5 == 1)
        make_wide(c);
    if (op->id == ORACLE_PA_MTP)
        draw_model(&c->args.pa_mtp.model, &c->random);
    if (op->id == ORACLE_FMHA_VARLEN)
        draw_model(&c->args.fmha_varlen.model, &c->random);
}

void xcheck_case_free(xcheck_case *c)
{
    cases_free(&c->memory);
    for (int i = 0; i < 2; i++)
        if (c->wide[i] != NULL)
            munmap(c->wide[i], c->wide_bytes[i]);
    *c = (xcheck_case){ 0 };
}

/* Yardsticks
 * ---------- */

static double attention_work(const etalon_tensor *q, double keys, int64_t dv)
{
    return (double)q->shape[0] * (double)q->shape[1] * keys * (double)(q->shape[2] + dv);
}

static double longest(const etalon_tensor *lens)
{
    double most = 0.0;
    for (int64_t b = 0; b < lens->shape[0]; b++)
        most = fmax(most, cases_get(lens, b));
    return most;
}

/* Multiplications of the float64 twin, at most. */
static double twin_work(const xcheck_case *c)
{
    switch (c->op->id) {
    case ORACLE_PA_MTP:
        return attention_work(&c->args.pa_mtp.q, longest(&c->args.pa_mtp.seq_lens), c->args.pa_mtp.v_cache.shape[3]);
    case ORACLE_FMHA_VARLEN:
        return attention_work(&c->args.fmha_varlen.q, (double)c->args.fmha_varlen.k.shape[0],
                              c->args.fmha_varlen.v.shape[2]);
    case ORACLE_MQA_LOGITS:
        return attention_work(&c->args.mqa_logits.q, (double)c->args.mqa_logits.k.shape[0], 0);
    case ORACLE_MQA_LOGITS_PAGED:
        return (double)cases_count(&c->args.mqa_logits_paged.q) * (double)c->args.mqa_logits_paged.logits.shape[1];
    case ORACLE_MERGE_STATES:
        return 0.0;
    }
    return 0.0;
}

double xcheck_case_work(const xcheck_case *c)
{
    return twin_work(c);
}

void xcheck_yardsticks_begin(xcheck_yardsticks *y, xcheck_case *c, etalon_context *ctx, xcheck_effort effort)
{
    const double most = effort == XCHECK_CHECK ? 1e6 : 2e8; /* some hundredths of a second; about two seconds */
    *y = (xcheck_yardsticks){ .c = c, .ctx = ctx, .with_twin = twin_work(c) <= most };
}

static void reference_free(xcheck_reference *r)
{
    bound_free(&r->bounds);
    oracle_result_free(&r->result);
    free(r->rounded_q.data);
}

void xcheck_yardsticks_end(xcheck_yardsticks *y)
{
    for (int i = 0; i < 2; i++) {
        reference_free(&y->reference[i]);
        twin_attention_free(&y->twin[i].attention);
        twin_mqa_logits_free(&y->twin[i].logits);
    }
    *y = (xcheck_yardsticks){ 0 };
}

const xcheck_reference *xcheck_reference_of(xcheck_yardsticks *y, bound_class class)
{
    xcheck_reference *r = &y->reference[class];
    tensorfile_error  error;
    if (r->ready)
        return r;
    r->problem = (oracle_problem){ y->c->op, y->c->args };
    oracle_want_f32(&r->problem); /* the case's own out may be BF16 */
    if (class == BOUND_FP8 && bound_may_round_q(&r->problem)) {
        const oracle_problem wide = r->problem;
        cases_require(bound_round_q(&wide, &r->rounded_q, &r->problem, &error), "%s", error.text);
    }
    cases_require(oracle_run(y->ctx, &r->problem, y->c->op->reference, &r->result, &error), "%s", error.text);
    cases_require(bound_prepare(y->ctx, &r->problem, class, &r->bounds, &error), "%s", error.text);
    r->ready = true;
    return r;
}

static etalon_tensor dense_f64(double *data, const etalon_tensor *like)
{
    return etalon_tensor_dense(data, ETALON_F64, like->rank, like->shape);
}

static void run_twin(xcheck_case *c, bool model, xcheck_twin *t)
{
    switch (c->op->id) {
    case ORACLE_PA_MTP:
        (model ? twin_pa_mtp_model : twin_pa_mtp)(&c->args.pa_mtp, &t->attention);
        break;
    case ORACLE_FMHA_VARLEN:
        (model ? twin_fmha_varlen_model : twin_fmha_varlen)(&c->args.fmha_varlen, &t->attention);
        break;
    case ORACLE_MQA_LOGITS:
        twin_mqa_logits(&c->args.mqa_logits, &t->logits);
        break;
    case ORACLE_MQA_LOGITS_PAGED:
        twin_mqa_logits_paged(&c->args.mqa_logits_paged, &t->logits);
        break;
    case ORACLE_MERGE_STATES:
        twin_merge_states(&c->args.merge_states, &t->attention);
        break;
    }
}

const xcheck_twin *xcheck_twin_of(xcheck_yardsticks *y, bool model)
{
    xcheck_twin *t = &y->twin[model];
    if (t->ready)
        return t;
    run_twin(y->c, model, t);
    const bool logits = logits_are_of(y->c->op);
    t->want[0] = dense_f64(logits ? t->logits.logits : t->attention.out, xcheck_output(y->c->op, &y->c->args, 0));
    t->bound[0] = logits ? t->logits.bound : t->attention.out_bound;
    if (y->c->op->output_count > 1) {
        const int64_t shape[2] = { t->attention.hq, t->attention.t };
        t->want[1] = etalon_tensor_dense(t->attention.lse, ETALON_F64, 2, shape);
        t->bound[1] = t->attention.lse_bound;
    }
    t->ready = true;
    return t;
}
