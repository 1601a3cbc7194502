/* The kernels of pa_mtp for gfx950 on the simulator: every schedule with all checks and no finding, against the
 * float64 twin.
 *
 *   ETALON_SEED=N check_pa_mtp_gfx950    replays; a failure names the seed and the stream of its case
 */
#include "cases.h"
#include "testing.h"
#include "twin.h"

#include "bound.h"
#include "code_objects.h"
#include "oracle.h"
#include "pa_mtp_gfx950.h"
#include "sim.h"

#include <inttypes.h>
#include <math.h>
#include <sys/mman.h>
#include <sys/resource.h>

static uint64_t stream_now;

#define CASE_FORMAT "ETALON_SEED=%" PRIu64 " stream %" PRIu64
#define CASE_VALUES cases_seed(), stream_now

/* A device with the tensors of one case
 * -------------------------------------
 */
typedef struct rig {
    sim_device   *device;
    cases_memory *memory;
    void         *block[CASES_BLOCKS];
} rig;

static rig rig_open(const sim_options *options)
{
    rig r = { .device = sim_device_create(SIM_GFX950, options) };
    cases_require(r.device != NULL, "%s", sim_last_error());
    return r;
}

static bool block_has(const cases_block *b, const etalon_tensor *t)
{
    const unsigned char *const at = t->data;
    return at >= b->map && at < b->map + b->map_bytes;
}

/* What of a cache is some sequence's key counts as written: no other byte may be read. */
static void rig_mark_keys(const rig *r, const etalon_pa_mtp_args *args, const etalon_tensor *cache, int block)
{
    const cases_block *b = &r->memory->block[block];
    for (int64_t n = 0; n < cases_count(&args->seq_lens); n++)
        for (int64_t key = 0; key < (int64_t)cases_get(&args->seq_lens, n); key++) {
            const etalon_tensor slot = pa_mtp_slot(args, cache, n, key);
            for (int64_t h = 0; h < slot.shape[0]; h++) {
                const unsigned char *const row = cases_fix(slot, 0, h).data;
                sim_mark_written(r->device, (char *)r->block[block] + (row - b->data), (size_t)slot.shape[1]);
            }
        }
}

static void rig_copy_in(rig *r, cases_memory *memory, const etalon_pa_mtp_args *args)
{
    r->memory = memory;
    for (int i = 0; i < memory->count; i++) {
        const cases_block *b = &memory->block[i];
        r->block[i] = sim_allocate(r->device, b->bytes > 0 ? b->bytes : 1, "tensor");
        cases_require(r->block[i] != NULL, "%s", sim_last_error());
        memcpy(r->block[i], b->data, b->bytes);
        const bool has_k = block_has(b, &args->k_cache), has_v = block_has(b, &args->v_cache);
        if (has_k)
            rig_mark_keys(r, args, &args->k_cache, i);
        if (has_v)
            rig_mark_keys(r, args, &args->v_cache, i);
        const int64_t count = b->role == CASES_INPUT && !has_k && !has_v ? cases_count(&b->view) : 0;
        for (int64_t e = 0; e < count; e++)
            sim_mark_written(r->device, (char *)r->block[i] + ((unsigned char *)cases_at(&b->view, e) - b->data),
                             etalon_dtype_bytes(b->view.dtype));
    }
}

static void rig_copy_out(const rig *r)
{
    for (int i = 0; i < r->memory->count; i++)
        memcpy(r->memory->block[i].data, r->block[i], r->memory->block[i].bytes);
    cases_verify(r->memory);
}

static void rig_move(const rig *r, etalon_tensor *t)
{
    if (t->data == NULL)
        return;
    for (int i = 0; i < r->memory->count; i++) {
        const cases_block *b = &r->memory->block[i];
        if (block_has(b, t)) {
            t->data = (char *)r->block[i] + ((unsigned char *)t->data - b->data);
            return;
        }
    }
    ck_abort_msg("a tensor that is not of the case");
}

/* A mutant, and the kernel whose place it takes. */
static const char *mutant_of, *mutant;

static sim_object *load_mutant(const rig *r)
{
    static unsigned char bytes[1 << 18];
    FILE *const          from = fopen(mutant, "rb");
    ck_assert_msg(from != NULL, "cannot open %s", mutant);
    const size_t size = fread(bytes, 1, sizeof bytes, from);
    fclose(from);
    ck_assert_uint_lt(size, sizeof bytes);
    return sim_object_load(r->device, bytes, size);
}

static sim_object *rig_load(const rig *r, const char *stem)
{
    const code_object *o = code_object_find(stem, "gfx950");
    ck_assert_msg(o != NULL, "no code object %s", stem);
    sim_object *object = mutant != NULL && strcmp(stem, mutant_of) == 0
                             ? load_mutant(r)
                             : sim_object_load(r->device, o->bytes, code_object_bytes(o));
    ck_assert_msg(object != NULL, "%s: %s", stem, sim_last_error());
    return object;
}

/* What the simulator counted of the latest dispatch, by the words of its report. */
static char report[8192];

static void rig_report(const rig *r)
{
    FILE *to = fmemopen(report, sizeof report, "w");
    ck_assert_ptr_nonnull(to);
    sim_print_report(to, r->device, false);
    fclose(to);
}

/* The number behind the words. */
static double reported(const char *words)
{
    const char *at = strstr(report, words);
    ck_assert_msg(at != NULL, "no \"%s\" in: %s", words, report);
    return strtod(at + strlen(words), NULL);
}

/* Runs etalon_STEM without a finding. */
static void rig_run(const rig *r, const char *stem, const pa_mtp_gfx950 *args, int64_t x, int64_t y, uint32_t items)
{
    char        name[80];
    sim_object *object = rig_load(r, stem);
    snprintf(name, sizeof name, "etalon_%s", stem);
    sim_dispatch d = { .kernel = sim_object_kernel(object, name),
                       .grid = { (uint32_t)x * items, (uint32_t)y, 1 },
                       .group = { items, 1, 1 },
                       .kernarg = args,
                       .kernarg_bytes = sizeof *args };
    ck_assert_msg(d.kernel != NULL, "%s: %s", name, sim_last_error());
    ck_assert_uint_eq(d.kernel->kernarg_bytes, sizeof *args);
    cases_require(sim_run(r->device, &d), CASE_FORMAT ": %s: %s", CASE_VALUES, stem, sim_last_error());
    for (uint32_t i = 0; i < sim_finding_count(r->device); i++)
        sim_print_finding(stderr, sim_finding_at(r->device, i));
    cases_require(sim_finding_count(r->device) == 0, CASE_FORMAT ": %s: findings", CASE_VALUES, stem);
    rig_report(r);
    sim_object_unload(object);
}

/* A call: the problem on the device, and its argument, which a test may change before the kernels run. */
typedef struct call {
    rig            r;
    pa_mtp_problem p;
    pa_mtp_gfx950  args;
    char           stem[80];
} call;

static call call_open(pa_mtp_case *c, const sim_options *options, int64_t wanted)
{
    call k = { .r = rig_open(options) };
    ck_assert_ok(pa_mtp_check(&c->args, &k.p));
    cases_poison_outputs(&c->memory);
    rig_copy_in(&k.r, &c->memory, &c->args);
    etalon_tensor *const tensors[] = {
        &k.p.q,   &k.p.k,   &k.p.v,         &k.p.block_tables, &k.p.seq_lens, &k.p.cu_seqlens_q,
        &k.p.out, &k.p.lse, &k.p.descale.q, &k.p.descale.k,    &k.p.descale.v
    };
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++)
        rig_move(&k.r, tensors[i]);
    void *const work = sim_allocate(k.r.device, pa_mtp_gfx950_layout_of(&k.p, wanted).bytes, "workspace");
    cases_require(work != NULL, "%s", sim_last_error());
    k.args = pa_mtp_gfx950_of(&k.p, (uint64_t)(uintptr_t)work, wanted);
    snprintf(k.stem, sizeof k.stem, "pa_mtp_e4m3_d256_gqa%d_page16_gfx950", (int)k.args.ratio);
    return k;
}

static void call_plan(const call *k)
{
    rig_run(&k->r, "pa_mtp_plan_gfx950", &k->args, 1, 1, PA_MTP_GFX950_PLAN_ITEMS);
}

static void call_reduce(const call *k)
{
    rig_run(&k->r, "pa_mtp_reduce_d256_gfx950", &k->args, k->p.tokens, k->p.heads, PA_MTP_GFX950_REDUCE_ITEMS);
}

enum { POISON = 0xA5 };

static void poison_part(float *part, int64_t rows)
{
    (void)rows;
    memset(part, POISON, PA_MTP_GFX950_PART * sizeof *part);
}

/* Rows that a task does not have are not stored. */
static void rows_stored(float *part, int64_t rows)
{
    enum { D = PA_MTP_GFX950_D, ROWS = PA_MTP_GFX950_ROWS };
    const uint32_t poison = POISON * 0x01010101U;
    for (int64_t row = rows; row < ROWS; row++)
        for (int64_t d = 0; d < D + 2; d++)
            cases_require(memcmp(part + (d < D ? row * D + d : ROWS * d + row), &poison, sizeof poison) == 0,
                          CASE_FORMAT ": row %" PRId64 " of %" PRId64 " is stored", CASE_VALUES, row, rows);
}

static void each_part(const call *k, void (*act)(float *part, int64_t rows))
{
    const pa_mtp_gfx950_task *task = (const pa_mtp_gfx950_task *)(uintptr_t)k->args.tasks;
    float *const              parts = (float *)(uintptr_t)k->args.parts;
    for (int64_t i = 0; i < k->args.most_tasks; i++)
        for (int64_t h = 0; task[i].b >= 0 && h < k->p.kv_heads; h++)
            act(parts + (i * k->args.kv_heads + h) * PA_MTP_GFX950_PART, task[i].tokens * k->args.ratio);
}

static void call_main(const call *k)
{
    each_part(k, poison_part);
    rig_run(&k->r, k->stem, &k->args, k->args.most_tasks, k->p.kv_heads, PA_MTP_GFX950_ITEMS);
    each_part(k, rows_stored);
}

static void call_close(call *k)
{
    rig_copy_out(&k->r);
    sim_device_destroy(k->r.device);
}

static void run(pa_mtp_case *c, const sim_options *options, int64_t wanted)
{
    call k = call_open(c, options, wanted);
    call_plan(&k);
    call_main(&k);
    call_reduce(&k);
    call_close(&k);
}

/* Instructions of a wave, so that a mutant that never ends ends. */
enum { MOST_INSTRUCTIONS = 100000 };

/* Every check, under that schedule. */
static void run_checked(pa_mtp_case *c, uint64_t schedule, int64_t wanted)
{
    run(c, &(sim_options){ .checks = SIM_CHECK_ALL, .seed = schedule, .limit = MOST_INSTRUCTIONS }, wanted);
}

/* The float64 twin
 * ----------------
 */

/* q as the kernels take it: E4M3FN. */
static void twin_of(pa_mtp_case *c, twin_attention *twin)
{
    etalon_pa_mtp_args args = c->args;
    if (args.q.dtype != ETALON_E4M3FN) {
        args.q = cases_tensor(&c->memory, NULL, CASES_INPUT, ETALON_E4M3FN, 3, args.q.shape);
        for (int64_t i = 0; i < cases_count(&args.q); i++)
            cases_set(&args.q, i, cases_get(&c->args.q, i));
        cases_seal(&c->memory);
    }
    twin_pa_mtp(&args, twin);
}

/* Ratio of error and bound, the worst of a test, for the log. */
static double worst;

static void within(double got, double want, double most, const char *what, int64_t i)
{
    if (isnan(want)) {
        cases_require(isnan(got), CASE_FORMAT ": %s[%" PRId64 "]: %.9g, twin NaN", CASE_VALUES, what, i, got);
        return;
    }
    const double error = got == want ? 0.0 : fabs(got - want);
    cases_require(error <= most, CASE_FORMAT ": %s[%" PRId64 "]: %.9g, twin %.9g, error %.3g, bound %.3g", CASE_VALUES,
                  what, i, got, want, error, most);
    if (most > 0.0 && error / most > worst)
        worst = error / most;
}

/* What two terms of E4M3FN lose: 2^-8 of each weight, 2^-4 of 2^-4, on top of the docstring's relative bound; and
 * 2^-22 of the largest of its 32, all of which together weigh no more than the row. */
static double out_bound(const twin_attention *t, int64_t i, bool is_bf16, double most_v)
{
    const int64_t row = i / t->dv;
    const double  e = t->e[row % t->hq * t->t + row / t->hq];
    const double  bf16 = is_bf16 ? 0x1p-8 * fabs(t->out[i]) : 0.0,
                  size = (t->out_bound[i] - bf16) / twin_out_relative(e);
    return t->out_bound[i] + 0x1p-8 * size * (is_bf16 ? 1.0 + 0x1p-8 : 1.0) + 32.0 * 0x1p-22 * most_v;
}

/* Largest |v * descale|. */
static double most_v_of(const pa_mtp_case *c)
{
    double v = 0.0, descale = c->args.v_descale.data == NULL ? 1.0 : 0.0;
    for (int64_t i = 0; i < cases_count(&c->args.v_cache); i++)
        v = fmax(v, fabs(cases_get(&c->args.v_cache, i)));
    for (int64_t i = 0; c->args.v_descale.data != NULL && i < cases_count(&c->args.v_descale); i++)
        descale = fmax(descale, cases_get(&c->args.v_descale, i));
    return v * descale;
}

static void compare_to(const pa_mtp_case *c, const twin_attention *twin)
{
    const etalon_tensor *out = &c->args.out, *lse = &c->args.lse;
    const double         most_v = most_v_of(c);
    for (int64_t i = 0; i < cases_count(out); i++) {
        const int64_t row = i / twin->dv;
        const bool    empty = isinf(twin->lse[row % twin->hq * twin->t + row / twin->hq]);
        within(cases_get(out, i), twin->out[i], empty ? 0.0 : out_bound(twin, i, out->dtype == ETALON_BF16, most_v),
               "out", i);
    }
    for (int64_t i = 0; lse->data != NULL && i < cases_count(lse); i++)
        within(cases_get(lse, i), twin->lse[i], isinf(twin->lse[i]) ? 0.0 : fmin(twin->lse_bound[i], 1e-4), "lse", i);
    cases_written(out, "out");
    if (lse->data != NULL)
        cases_written(lse, "lse");
}

static void compare(pa_mtp_case *c)
{
    twin_attention twin;
    twin_of(c, &twin);
    compare_to(c, &twin);
    twin_attention_free(&twin);
}

/* Cases
 * -----
 */
static const int64_t ratios[] = { 16, 8, 4 };

enum { RATIOS = 3, SCHEDULES = 8 };

static attention_shape shape_of(int64_t ratio, int64_t b, const int64_t *q_lens, const int64_t *k_lens)
{
    return (attention_shape){ .b = b,
                              .hq = ratio,
                              .hkv = 1,
                              .dqk = 256,
                              .dv = 256,
                              .q_lens = q_lens,
                              .k_lens = k_lens,
                              .q = ETALON_BF16,
                              .kv = ETALON_E4M3FN,
                              .page_size = 16,
                              .causal = 1 };
}

#define SHAPE_OF(ratio, q_lens, k_lens) shape_of((ratio), sizeof(q_lens) / sizeof(q_lens)[0], (q_lens), (k_lens))

static rng case_make(pa_mtp_case *c, const attention_shape *shape, int64_t stream)
{
    stream_now = (uint64_t)stream;
    rng r = rng_make(cases_seed(), stream_now);
    pa_mtp_make(c, &r, shape);
    return r;
}

static void serve(pa_mtp_case *c, uint64_t schedule, int64_t wanted)
{
    run_checked(c, schedule, wanted);
    compare(c);
    cases_free(&c->memory);
}

START_TEST(schedules_agree)
{
    const int64_t   q_lens[] = { 4, 1, 2 }, k_lens[] = { 300, 37, 2 };
    attention_shape shape = SHAPE_OF(ratios[_i], q_lens, k_lens);
    pa_mtp_case     c;
    uint32_t       *first = NULL;
    case_make(&c, &shape, _i);
    for (uint64_t schedule = 0; schedule < SCHEDULES; schedule++) {
        run_checked(&c, schedule, 3);
        uint32_t *bits = cases_bits(&c.args.out);
        if (first == NULL)
            first = bits;
        else
            ck_assert_mem_eq(first, bits, sizeof *bits * (size_t)cases_count(&c.args.out));
        if (bits != first)
            free(bits);
    }
    compare(&c);
    printf("# gqa%" PRId64 ": error / bound up to %.3f\n", ratios[_i], worst);
    free(first);
    cases_free(&c.memory);
}
END_TEST

/* Everything that the rows take, drawn: ragged lengths, more rows than a task has, layouts, dtypes, descales. */
static void draw(pa_mtp_case *c, int64_t ratio, int64_t stream)
{
    enum { B = 3 };
    int64_t         q_lens[B], k_lens[B];
    rng             r = rng_make(cases_seed(), (uint64_t)(1000 + stream));
    attention_shape shape = shape_of(ratio, 1 + rng_below(&r, B), q_lens, k_lens);
    for (int64_t b = 0; b < shape.b; b++) {
        q_lens[b] = rng_chance(&r, 80) ? rng_between(&r, 0, 64 / ratio) : 64 / ratio + rng_between(&r, 1, 3);
        k_lens[b] = rng_chance(&r, 80) ? RNG_PICK(&r, 1, 15, 16, 17, 127, 128, 129, 200, 255, 256, 257, 400)
                                       : RNG_PICK(&r, 0, 1, 2, 3);
    }
    if (q_lens[0] == 0)
        q_lens[0] = 1;
    shape.hkv = 1 + rng_below(&r, 2);
    shape.hq = ratio * shape.hkv;
    shape.q = rng_chance(&r, 60) ? ETALON_BF16 : ETALON_E4M3FN;
    shape.out = rng_chance(&r, 50) ? ETALON_BF16 : ETALON_F32;
    shape.index = rng_chance(&r, 50) ? ETALON_I64 : ETALON_I32;
    shape.layout = rng_chance(&r, 50) ? ETALON_KV_HND : ETALON_KV_NHD;
    shape.interleaved = rng_chance(&r, 30);
    shape.spare_pages = rng_below(&r, 3);
    shape.causal = rng_chance(&r, 70);
    shape.window_right = rng_chance(&r, 20) ? 1 + rng_below(&r, 6) : 0;
    shape.no_lse = rng_chance(&r, 20);
    shape.spread = RNG_PICK(&r, 0, 1, 3, 8);
    shape.q_descale = (cases_descale)rng_below(&r, 4);
    shape.k_descale = (cases_descale)rng_below(&r, 4);
    shape.v_descale = (cases_descale)rng_below(&r, 4);
    case_make(c, &shape, 2000 + stream);
}

START_TEST(drawn_within_bound)
{
    enum { CASES = 8 };
    for (int i = 0; i < TESTING_CASES(CASES, 2); i++) {
        pa_mtp_case c;
        draw(&c, ratios[_i], _i * 100 + i);
        run_checked(&c, (uint64_t)i, 1 + 2 * i);
        compare(&c);
        cases_free(&c.memory);
    }
    printf("# gqa%" PRId64 ": error / bound up to %.3f\n", ratios[_i], worst);
}
END_TEST

/* Last tiles of each kind in each buffer, for one block of rows and for two: whole, and a part whose pages are whole, a
 * part and absent; a first tile of one copy a page or of none. Rows and keys. */
enum { TAILS = 3, MOST_TAILS = 7 };

static const int64_t tails[TAILS][MOST_TAILS][2] = {
    { { 64, 446 }, { 32, 446 } },
    { { 32, 318 }, { 32, 256 }, { 32, 384 }, { 32, 190 }, { 32, 192 }, { 32, 62 }, { 32, 34 } },
    { { 64, 318 }, { 64, 256 }, { 64, 384 } },
};

/* All factors, and NaN in V's last key. */
static void make_tails(pa_mtp_case *c, int64_t ratio, int n)
{
    int64_t         q_lens[MOST_TAILS], k_lens[MOST_TAILS];
    attention_shape shape = shape_of(ratio, 0, q_lens, k_lens);
    for (; shape.b < MOST_TAILS && tails[n][shape.b][0] > 0; shape.b++) {
        q_lens[shape.b] = tails[n][shape.b][0] / ratio;
        k_lens[shape.b] = tails[n][shape.b][1];
    }
    shape.q_descale = shape.k_descale = shape.v_descale = CASES_DESCALE_HEADS;
    case_make(c, &shape, 6400 + n);
    for (int64_t b = 0; b < shape.b; b++)
        for (int64_t d = 0; d < 256; d += 5) {
            const etalon_tensor v = pa_mtp_slot(&c->args, &c->args.v_cache, b, k_lens[b] - 1);
            *(uint8_t *)cases_at(&v, d) = 0x7F;
        }
    cases_seal(&c->memory);
}

START_TEST(last_tiles)
{
    for (int n = 0; n < TAILS; n++) {
        pa_mtp_case c;
        make_tails(&c, ratios[_i], n);
        serve(&c, 1, 1);
    }
}
END_TEST

/* Accuracy
 * --------
 */

/* The rows of another kernel's test, contexts, heads and values as there: a quarter of the normal distribution. Its
 * measure: the largest error over the output's deviation. It has P in one term. */
static const struct {
    int64_t ctx, seqs, heads, kv_heads;
    double  k_descale, v_descale;
    double  other; /* what it measured */
} seeds[] = {
    { 1000, 2, 16, 1, 1.0, 1.0, 0.075 }, { 1000, 2, 16, 1, 0.5, 2.0, 0.075 }, { 1000, 2, 8, 1, 1.0, 1.0, 0.075 },
    { 777, 2, 32, 2, 1.0, 1.0, 0.083 },  { 8000, 3, 16, 1, 1.0, 1.0, 0.090 },
};

enum { SEEDS = sizeof seeds / sizeof seeds[0] };

static double error_over_deviation(const pa_mtp_case *c, const twin_attention *twin)
{
    const int64_t n = cases_count(&c->args.out);
    double        mean = 0.0, square = 0.0, error = 0.0;
    for (int64_t i = 0; i < n; i++) {
        mean += twin->out[i] / (double)n;
        square += twin->out[i] * twin->out[i] / (double)n;
        error = fmax(error, fabs(cases_get(&c->args.out, i) - twin->out[i]));
    }
    return error / sqrt(square - mean * mean);
}

START_TEST(seed_rows)
{
    const int64_t   q_lens[] = { 4, 4, 4 }, ctx = seeds[_i].ctx, k_lens[] = { ctx, ctx, ctx };
    attention_shape shape = shape_of(seeds[_i].heads / seeds[_i].kv_heads, seeds[_i].seqs, q_lens, k_lens);
    pa_mtp_case     c;
    twin_attention  exact, rounded;
    shape.hq = seeds[_i].heads;
    shape.hkv = seeds[_i].kv_heads;
    shape.sigma = 0.25;
    shape.k_descale = shape.v_descale = CASES_DESCALE_ONE;
    case_make(&c, &shape, 3000 + _i);
    cases_set(&c.args.k_descale, 0, seeds[_i].k_descale);
    cases_set(&c.args.v_descale, 0, seeds[_i].v_descale);
    cases_seal(&c.memory);
    run(&c, &(sim_options){ 0 }, 256 / seeds[_i].kv_heads);
    twin_pa_mtp(&c.args, &exact);
    twin_of(&c, &rounded);
    compare_to(&c, &rounded);
    const double got = error_over_deviation(&c, &exact), of_p = error_over_deviation(&c, &rounded);
    printf("# ctx %" PRId64 ": max_err_over_std %.4f, of P alone %.4f\n", ctx, got, of_p);
    ck_assert_double_le(got, seeds[_i].other / 4.0);
    ck_assert_double_le(of_p, seeds[_i].other / 8.0);
    twin_attention_free(&exact);
    twin_attention_free(&rounded);
    cases_free(&c.memory);
}
END_TEST

/* The golden vectors, within the class of kernels that round q and P to FP8. */
static const char *const vectors[] = { "pa_mtp-ctx1000-gqa16-descale", "pa_mtp-ragged-gqa8", "real-pa_mtp" };

enum { VECTORS = sizeof vectors / sizeof vectors[0] };

START_TEST(golden_vectors)
{
    char             path[4096];
    const char      *directory = getenv("ETALON_VECTORS");
    tensorfile       file;
    tensorfile_error error;
    oracle_problem   problem, rounded;
    oracle_result    want;
    etalon_tensor    q;
    etalon_context  *ctx;
    bound            b;
    verdict          judged;
    pa_mtp_case      c = { .args = ETALON_PA_MTP_ARGS_INIT };
    ck_assert_msg(directory != NULL, "ETALON_VECTORS is not set");
    snprintf(path, sizeof path, "%s/%s.safetensors", directory, vectors[_i]);
    ck_assert_ok(etalon_context_create(NULL, &ctx));
    ck_assert_msg(tensorfile_read(path, &file, &error), "%s", error.text);
    ck_assert_msg(oracle_bind(&file, NULL, &problem, &error), "%s", error.text);
    ck_assert_msg(bound_round_q(&problem, &q, &rounded, &error), "%s", error.text);
    ck_assert_msg(oracle_run(ctx, &rounded, problem.op->reference, &want, &error), "%s", error.text);
    ck_assert_msg(bound_prepare(ctx, &rounded, BOUND_FP8, &b, &error), "%s", error.text);
    c.args = problem.args.pa_mtp;
    etalon_tensor *const inputs[] = { &c.args.q,        &c.args.k_cache,      &c.args.v_cache,   &c.args.block_tables,
                                      &c.args.seq_lens, &c.args.cu_seqlens_q, &c.args.q_descale, &c.args.k_descale,
                                      &c.args.v_descale };
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
        if (inputs[i]->data == NULL)
            continue;
        const etalon_tensor own =
            cases_tensor(&c.memory, NULL, CASES_INPUT, inputs[i]->dtype, inputs[i]->rank, inputs[i]->shape);
        cases_copy(&own, inputs[i]);
        *inputs[i] = own;
    }
    cases_seal(&c.memory);
    c.args.out = cases_tensor(&c.memory, NULL, CASES_OUTPUT, ETALON_F32, 3, c.args.q.shape);
    c.args.lse = cases_tensor(&c.memory, NULL, CASES_OUTPUT, ETALON_F32, 2,
                              (const int64_t[]){ c.args.q.shape[1], c.args.q.shape[0] });
    run_checked(&c, (uint64_t)_i, 16);
    const etalon_tensor *got[] = { &c.args.out, &c.args.lse };
    for (int o = 0; o < 2; o++) {
        ck_assert_msg(bound_judge(&b, BOUND_FP8, o, got[o], &want.tensor[o], true, &judged, &error), "%s", error.text);
        printf("# %s, output %d: error / bound %.3f\n", vectors[_i], o, verdict_ratio(&judged));
        ck_assert(judged.pass);
        ck_assert_double_le(verdict_ratio(&judged), 0.30);
    }
    bound_free(&b);
    oracle_result_free(&want);
    free(q.data);
    tensorfile_free(&file);
    cases_free(&c.memory);
    etalon_context_destroy(ctx);
}
END_TEST

/* One hot key of `gap` nats over keys of score 0: V = +1 there and -1 elsewhere, and V = 0 there and 1 elsewhere. The
 * first is the published counter-example. */
static const struct {
    double gap, out, lse;
} hots[] = { { 8.082904, -0.669892, 9.884387 }, { 13.5, 0.9561, 13.5222 }, { 15.0, 0.9900, 15.0050 } };

enum { HOTS = sizeof hots / sizeof hots[0], HOT_KEYS = 16384 };

START_TEST(small_weights_stay)
{
    static const int64_t at[] = { 1, HOT_KEYS - 1 };
    const int64_t        q_lens[] = { 1 }, k_lens[] = { HOT_KEYS };
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        attention_shape shape = SHAPE_OF(4, q_lens, k_lens);
        pa_mtp_case     c;
        case_make(&c, &shape, 4000);
        cases_fill(&c.args.q, 0.0);
        for (int64_t h = 0; h < 4; h++)
            cases_set(&c.args.q, h * 256, 8.0);
        for (int64_t j = 0; j < HOT_KEYS; j++) {
            const etalon_tensor k = pa_mtp_slot(&c.args, &c.args.k_cache, 0, j);
            const etalon_tensor v = pa_mtp_slot(&c.args, &c.args.v_cache, 0, j);
            cases_fill(&k, 0.0);
            for (int64_t d = 0; d < 256; d++)
                cases_set(&v, d, d % 2 ? (j == at[i] ? 0.0 : 1.0) : (j == at[i] ? 1.0 : -1.0));
            if (j == at[i])
                cases_set(&k, 0, 14.0);
        }
        c.args.softmax_scale = hots[_i].gap / 112.0;
        cases_seal(&c.memory);
        run(&c, &(sim_options){ 0 }, i % 2 ? 1 : 40);
        const double a = exp(hots[_i].gap), n = HOT_KEYS - 1, mass = n / (a + n);
        ck_assert_double_eq_tol((a - n) / (a + n), hots[_i].out, 1e-4);
        ck_assert_double_eq_tol(log(a + n), hots[_i].lse, 1e-4);
        /* The 31 keys that share the hot one's block are 2^-22 of it off at most each. */
        const double tail = twin_out_relative(0.0) + 0x1p-8 * mass + 31.0 * 0x1p-22 * (1.0 - mass);
        for (int64_t d = 0; d < 4 * 256; d++)
            within(cases_get(&c.args.out, d), d % 2 ? mass : (a - n) / (a + n),
                   d % 2 ? tail : tail + 0x1p-8 * (1.0 - mass), "out", d);
        within(cases_get(&c.args.lse, 0), log(a + n), 1e-4, "lse", 0);
        cases_free(&c.memory);
    }
    printf("# gap %g: error / bound up to %.3f\n", hots[_i].gap, worst);
}
END_TEST

/* Maxima that grow from tile to tile, by less and by more than what O is rescaled for; each row's scores are those of
 * one key in 32 times the row's own factor, up and down. */
static void make_growth(pa_mtp_case *c, int64_t ratio, int64_t tokens, int64_t stream)
{
    enum { KEYS = 900 };
    const int64_t   q_lens[] = { tokens }, k_lens[] = { KEYS };
    attention_shape shape = SHAPE_OF(ratio, q_lens, k_lens);
    rng             r = case_make(c, &shape, stream);
    cases_fill(&c->args.q, 0.0);
    for (int64_t row = 0; row < tokens * ratio; row++)
        cases_set(&c->args.q, row * 256 + rng_below(&r, 4),
                  row % 3 == 0 ? -1.0 - (double)(row % 8) : 1.0 + (double)(row % 8));
    for (int64_t j = 0; j < KEYS; j++) {
        const etalon_tensor k = pa_mtp_slot(&c->args, &c->args.k_cache, 0, j);
        cases_fill(&k, 0.0);
        for (int64_t d = 0; d < 4; d++)
            cases_set(&k, d, (double)(j / 128 * 2) + rng_unit(&r));
    }
    c->args.softmax_scale = 0.6;
    cases_seal(&c->memory);
}

START_TEST(growing_maxima)
{
    for (int i = 0; i < 2; i++) {
        pa_mtp_case c;
        make_growth(&c, ratios[_i], (i + 1) * 32 / ratios[_i], 4500 + _i * 2 + i);
        run_checked(&c, (uint64_t)_i, 1 + i);
        compare(&c);
        cases_free(&c.memory);
    }
    printf("# gqa%" PRId64 ": error / bound up to %.3f\n", ratios[_i], worst);
}
END_TEST

/* V = 1 gives 1, of 64 Ki keys too; to what fp32 and two terms lose. */
START_TEST(ones_give_one)
{
    const int64_t   q_lens[] = { 1 }, k_lens[] = { TESTING_CASES(65536, 4096) };
    attention_shape shape = SHAPE_OF(4, q_lens, k_lens);
    pa_mtp_case     c;
    shape.spread = 4.0;
    case_make(&c, &shape, 5000);
    cases_fill(&c.args.v_cache, 1.0);
    cases_seal(&c.memory);
    run(&c, &(sim_options){ 0 }, 32);
    for (int64_t i = 0; i < cases_count(&c.args.out); i++)
        within(cases_get(&c.args.out, i), 1.0, twin_gamma(160) + 0x1p-8, "out of ones", i);
    printf("# ones: error / bound up to %.3f\n", worst);
    cases_free(&c.memory);
}
END_TEST

/* Bytes that must not matter, and ones that must
 * ----------------------------------------------
 */

/* Keys 296 .. 298 of 300 are seen by the last of four tokens, or by two or three. NaN in their K or V must reach these
 * and no other; as in page tails, spare pages and page 0, where pa_mtp_make has left it. */
START_TEST(nan_reaches_who_sees_it)
{
    const int64_t q_lens[] = { 4, 3 }, k_lens[] = { 300, 20 };
    for (int i = 0; i < 6; i++) {
        attention_shape shape = SHAPE_OF(ratios[_i], q_lens, k_lens);
        pa_mtp_case     c;
        shape.spare_pages = 2;
        rng                  r = case_make(&c, &shape, 6000 + _i * 10 + i);
        const etalon_tensor *cache = i % 2 ? &c.args.v_cache : &c.args.k_cache;
        const int64_t        keys[] = { 297 + i / 2, i == 3 ? 298 : 5 };
        for (int n = 0; n < (i < 2 ? 1 : 2); n++) {
            etalon_tensor element = pa_mtp_slot(&c.args, cache, 0, keys[n]);
            element.data = cases_at(&element, rng_below(&r, 256));
            element.rank = 0;
            *(uint8_t *)element.data = i < 4 ? 0x7F : 0xFF;
        }
        cases_seal(&c.memory);
        run_checked(&c, (uint64_t)i, 1 + 2 * (i % 2));
        compare(&c);
        int64_t finite = 0;
        for (int64_t d = 0; d < cases_count(&c.args.out); d++)
            finite += isfinite(cases_get(&c.args.out, d));
        ck_assert_int_gt(finite, 0);
        cases_free(&c.memory);
    }
}
END_TEST

/* NaN of V in half of the columns, in a key that not all tokens see, or in the last that all do; in the first tile, the
 * second, at their beginnings, and across two. */
static void make_nan(pa_mtp_case *c, int64_t ratio, int64_t tokens)
{
    const int64_t   q_lens[] = { tokens, tokens, tokens, tokens, tokens, tokens, 2 };
    const int64_t   k_lens[] = { 107, 235, 127 + tokens, 255 + tokens, 128 + tokens / 2, 256 + tokens / 2, 20 };
    attention_shape shape = SHAPE_OF(ratio, q_lens, k_lens);
    rng             r = case_make(c, &shape, 6000);
    for (int64_t b = 0; b < shape.b; b++) {
        for (int64_t d = 0; d < 256; d++) {
            const int64_t       back = rng_below(&r, 2 * (q_lens[b] + 1));
            const etalon_tensor v = pa_mtp_slot(&c->args, &c->args.v_cache, b, k_lens[b] - 1 - back);
            if (back <= q_lens[b])
                *(uint8_t *)cases_at(&v, d) = d % 2 ? 0x7F : 0xFF;
        }
    }
    cases_seal(&c->memory);
}

START_TEST(nan_in_any_column)
{
    for (int64_t tokens = 32 / ratios[_i]; tokens <= 64 / ratios[_i]; tokens *= 2) {
        pa_mtp_case c;
        make_nan(&c, ratios[_i], tokens);
        serve(&c, 3, 1);
    }
}
END_TEST

START_TEST(large_q_saturates)
{
    const int64_t       q_lens[] = { 2 }, k_lens[] = { 150 };
    attention_shape     shape = SHAPE_OF(ratios[_i], q_lens, k_lens);
    pa_mtp_case         c;
    static const double large[] = { 448.0, 449.0, 480.0, -500.0, 1e30, -1e30, INFINITY, -INFINITY };
    case_make(&c, &shape, 7000 + _i);
    for (size_t i = 0; i < sizeof large / sizeof large[0]; i++)
        cases_set(&c.args.q, (int64_t)i * 37, large[i]);
    cases_set(&c.args.q, ratios[_i] * 256 + 3, (double)NAN);
    c.args.softmax_scale = 0x1p-12;
    cases_seal(&c.memory);
    run_checked(&c, 5, 2);
    compare(&c);
    ck_assert(isnan(cases_get(&c.args.out, ratios[_i] * 256)));
    ck_assert(isfinite(cases_get(&c.args.out, 0)));
    cases_free(&c.memory);
}
END_TEST

/* More tokens than keys, so many that a task has none; no keys; no tokens. */
static void make_without_keys(pa_mtp_case *c, int64_t ratio, int64_t stream)
{
    const int64_t   q_lens[] = { 64 / ratio + 4, 2, 0, 1 }, k_lens[] = { 2, 0, 50, 1 };
    attention_shape shape = SHAPE_OF(ratio, q_lens, k_lens);
    case_make(c, &shape, stream);
}

/* 0 and -inf where a row sees nothing. */
START_TEST(rows_without_keys)
{
    const int64_t first = 64 / ratios[_i] + 4; /* tokens of the first sequence, which has two keys */
    pa_mtp_case   c;
    make_without_keys(&c, ratios[_i], 8000 + _i);
    run_checked(&c, (uint64_t)_i, 7);
    compare(&c);
    for (int64_t token = 0; token < first + 2; token++) {
        if (token == first - 2 || token == first - 1)
            continue;
        ck_assert_double_eq(cases_get(&c.args.out, token * ratios[_i] * 256), 0.0);
        ck_assert_double_eq(cases_get(&c.args.lse, token), -(double)INFINITY);
    }
    cases_free(&c.memory);
}
END_TEST

/* Addresses
 * ---------
 */

/* Page ids from `from` on, the caches that much lower: the same bytes, by addresses that do not fit 32 bits. */
static void serve_far_pages(int64_t ratio, int64_t from, uint64_t schedule)
{
    const int64_t         q_lens[] = { 3, 1 }, k_lens[] = { 170, 40 };
    const attention_shape shape = SHAPE_OF(ratio, q_lens, k_lens);
    pa_mtp_case           c;
    case_make(&c, &shape, 9000 + ratio);
    call                 k = call_open(&c, &(sim_options){ .checks = SIM_CHECK_ALL, .seed = schedule }, 2);
    const etalon_tensor *table = &k.p.block_tables;
    for (int64_t n = 0; n < cases_count(table); n++)
        *(uint32_t *)cases_at(table, n) += (uint32_t)from;
    k.args.k -= (uint64_t)(from * k.args.k_page);
    k.args.v -= (uint64_t)(from * k.args.v_page);
    call_plan(&k);
    call_main(&k);
    call_reduce(&k);
    for (int64_t n = 0; n < cases_count(table); n++)
        *(uint32_t *)cases_at(table, n) -= (uint32_t)from;
    call_close(&k);
    compare(&c);
    cases_free(&c.memory);
}

START_TEST(far_pages)
{
    static const int64_t from[] = { 1 << 20, (1 << 20) + 12345, INT32_MAX - 1000 };
    for (size_t i = 0; i < sizeof from / sizeof from[0]; i++)
        serve_far_pages(ratios[_i], from[i], i);
}
END_TEST

/* Parts whose number is beyond 2^22: as if there were so many KV heads, of which one is launched; so many that one byte
 * more in a part would carry into the upper half of its address. */
static void serve_far_parts(int64_t ratio, uint64_t schedule)
{
    enum { HEADS = 4226754, WANTED = 3, TASKS = 4, PART_BYTES = PA_MTP_GFX950_PART * 4 };
    const int64_t         q_lens[] = { 2, 1 }, k_lens[] = { 300, 40 };
    const attention_shape shape = SHAPE_OF(ratio, q_lens, k_lens);
    pa_mtp_case           c;
    case_make(&c, &shape, 10000 + ratio);
    call         k = call_open(&c, &(sim_options){ .checks = SIM_CHECK_ALL, .seed = schedule }, WANTED);
    const size_t step = (size_t)HEADS * PART_BYTES, all = step * TASKS, page = 4096;
    char *const  parts = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ck_assert_ptr_ne(parts, MAP_FAILED);
    for (int i = 0; i < TASKS; i++) {
        char *const  part = parts + (size_t)i * step;
        const size_t before = (size_t)((uintptr_t)part % page);
        ck_assert_int_eq(mprotect(part - before, PART_BYTES + page, PROT_READ | PROT_WRITE), 0);
        ck_assert(sim_register(k.r.device, part, PART_BYTES, "part"));
    }
    k.args.parts = (uint64_t)(uintptr_t)parts;
    call_plan(&k);
    k.args.kv_heads = HEADS;
    call_main(&k);
    call_reduce(&k);
    call_close(&k);
    munmap(parts, all);
    compare(&c);
    cases_free(&c.memory);
}

START_TEST(far_parts)
{
    serve_far_parts(ratios[_i], 3);
}
END_TEST

/* Segments
 * --------
 */
START_TEST(any_number_of_segments)
{
    enum { MOST = 64 };
    const int64_t   q_lens[] = { 1 }, k_lens[] = { MOST * PA_MTP_GFX950_TILE };
    attention_shape shape = SHAPE_OF(4, q_lens, k_lens);
    pa_mtp_case     c;
    twin_attention  twin;
    case_make(&c, &shape, 11000);
    twin_of(&c, &twin);
    static const int64_t numbers[] = { 1, 64, 2, 63, 3, 4, 5, 7, 8, 13, 16, 22, 33, 43 };
    enum { NUMBERS = sizeof numbers / sizeof numbers[0] };
    for (int i = 0; i < TESTING_CASES(NUMBERS, 3); i++) {
        run(&c, &(sim_options){ .seed = (uint64_t)i % SCHEDULES }, numbers[i]);
        compare_to(&c, &twin);
    }
    printf("# 1 to %d segments: error / bound up to %.3f\n", MOST, worst);
    twin_attention_free(&twin);
    cases_free(&c.memory);
}
END_TEST

/* The plan of lengths that differ much: every key of every token in one task, no task longer than an even share, and
 * about as many tasks as are wanted. */
/* More sequences than the plan takes at a time; the longest task's part of an even share. */
static double plan_evenly(int64_t ratio, uint64_t schedule)
{
    enum { B = 300, WANTED = 64 };
    int64_t         q_lens[B], k_lens[B], keys = 0;
    rng             r = rng_make(cases_seed(), 12000 + (uint64_t)ratio);
    pa_mtp_case     c;
    attention_shape shape = shape_of(ratio, B, q_lens, k_lens);
    for (int64_t b = 0; b < B; b++) {
        q_lens[b] = b == 17 ? 0 : rng_between(&r, 1, 4);
        k_lens[b] = b % 100 == 50 ? 5000 : rng_below(&r, 20);
        keys += q_lens[b] > 0 ? k_lens[b] : 0;
    }
    case_make(&c, &shape, 12000 + ratio);
    call k = call_open(&c, &(sim_options){ .checks = SIM_CHECK_ALL, .seed = schedule }, WANTED);
    call_plan(&k);
    const pa_mtp_gfx950_task *task = (const pa_mtp_gfx950_task *)(uintptr_t)k.args.tasks;
    const pa_mtp_gfx950_row  *row = (const pa_mtp_gfx950_row *)(uintptr_t)k.args.rows;
    int64_t                   seen = 0, most = 0, count = 0, token = 0;
    for (int64_t i = 0; i < k.args.most_tasks; i++) {
        if (task[i].b < 0)
            continue;
        ck_assert_int_eq(i, count);
        ck_assert_int_lt(task[i].first, task[i].last);
        seen += task[i].last - task[i].first;
        most = task[i].last - task[i].first > most ? task[i].last - task[i].first : most;
        count++;
    }
    ck_assert_int_eq(seen, keys);
    ck_assert_int_le(most, keys / WANTED + PA_MTP_GFX950_TILE);
    ck_assert_int_le(count, WANTED + B);
    for (int64_t b = 0; b < B; token += q_lens[b], b++)
        for (int64_t i = 0; i < q_lens[b]; i++) {
            const pa_mtp_gfx950_row *at = &row[token + i];
            int64_t                  next = 0;
            for (int64_t s = 0; s < at->count; s++) {
                const pa_mtp_gfx950_task *t = &task[at->task + s * at->step];
                ck_assert_int_eq(t->b, b);
                ck_assert_int_eq(t->first, next);
                ck_assert_int_eq(t->limit + (token + i - t->token), k_lens[b] - q_lens[b] + i + 1);
                ck_assert_int_eq(at->row, (token + i - t->token) * ratio);
                next = t->last;
            }
            ck_assert_int_eq(next, k_lens[b]);
        }
    sim_device_destroy(k.r.device);
    cases_free(&c.memory);
    return (double)most * WANTED / (double)keys;
}

START_TEST(plan_is_even)
{
    printf("# the longest task is %.2f of an even share\n", plan_evenly(ratios[_i], (uint64_t)_i));
}
END_TEST

/* The reduction alone, on rows and parts of our own: segments of which every third has no weight and NaN for O, and no
 * weight in 64 at a stretch. Token 0 has all of them, token 1 every other one. */
static void join_own_parts(int64_t ratio, etalon_dtype dtype, uint64_t schedule)
{
    enum { SEGMENTS = 198, KV_HEADS = 2, TOKENS = 2 };
    const int64_t   q_lens[] = { TOKENS }, k_lens[] = { 20 };
    attention_shape shape = SHAPE_OF(ratio, q_lens, k_lens);
    pa_mtp_case     c;
    rng             r = rng_make(cases_seed(), 13001);
    shape.hkv = KV_HEADS;
    shape.hq = KV_HEADS * ratio;
    shape.out = dtype;
    case_make(&c, &shape, 13000);
    call                     k = call_open(&c, &(sim_options){ .checks = SIM_CHECK_ALL, .seed = schedule }, SEGMENTS);
    float *const             parts = (float *)(uintptr_t)k.args.parts;
    pa_mtp_gfx950_row *const rows = (pa_mtp_gfx950_row *)(uintptr_t)k.args.rows;
    double (*const sum)[TOKENS * KV_HEADS * 16][257] = calloc(1, sizeof *sum);
    for (int64_t s = 0; s < SEGMENTS; s++)
        for (int64_t h = 0; h < KV_HEADS; h++) {
            float *const part = parts + (s * KV_HEADS + h) * PA_MTP_GFX950_PART;
            for (int64_t row = 0; row < TOKENS * ratio; row++) {
                const int64_t token = row / ratio, head = h * ratio + row % ratio;
                const bool    empty = s % 3 == 0 || (s >= 64 && s < 128), counts = !empty && (token == 0 || s % 2 == 1);
                const float   m = (float)rng_between(&r, -20, 20), l = (float)rng_between(&r, 200, 400);
                double *const to = (*sum)[token * KV_HEADS * ratio + head];
                part[64 * 256 + row] = empty ? 1e6f : m;
                part[64 * 256 + 64 + row] = empty ? 0.0f : l;
                to[256] += counts ? exp2((double)m) * (double)l : 0.0;
                for (int64_t d = 0; d < 256; d++) {
                    part[row * 256 + d] = empty ? NAN : (float)(d - s + row);
                    to[d] += counts ? exp2((double)m) * (double)(d - s + row) : 0.0;
                }
            }
            sim_mark_written(k.r.device, part, PA_MTP_GFX950_PART * sizeof *part);
        }
    rows[0] = (pa_mtp_gfx950_row){ .task = 0, .step = 1, .count = SEGMENTS, .row = 0 };
    rows[1] = (pa_mtp_gfx950_row){ .task = 1, .step = 2, .count = SEGMENTS / 2, .row = (int32_t)ratio };
    sim_mark_written(k.r.device, rows, TOKENS * sizeof *rows);
    call_reduce(&k);
    call_close(&k);
    for (int64_t i = 0; i < cases_count(&c.args.out); i++) {
        const double *of = (*sum)[i / 256], want = of[i % 256] / of[256];
        within(cases_get(&c.args.out, i), want,
               twin_gamma(160) * 2.0 + (dtype == ETALON_BF16 ? 0x1p-8 * fabs(want) : 0.0), "out", i);
    }
    for (int64_t i = 0; i < cases_count(&c.args.lse); i++)
        within(cases_get(&c.args.lse, i), log((*sum)[i % TOKENS * KV_HEADS * ratio + i / TOKENS][256] / 256.0), 1e-5,
               "lse", i);
    free(sum);
    cases_free(&c.memory);
}

START_TEST(reduce_skips_empty_segments)
{
    join_own_parts(ratios[_i], _i == 1 ? ETALON_BF16 : ETALON_F32, 3 + (uint64_t)_i);
}
END_TEST

/* Counts
 * ------
 */

/* Segments of the length that 16 sequences of 35 000 keys have on 256 CUs: each byte of K and V is read once, no bank
 * conflicts, 48 KiB on their way, and in the time that the bytes take at 8 TB/s over 256 CUs, the matrix unit and the
 * VALU are busy for less than this share. */
static const double shares[] = { 0.60, 0.32, 0.18 };

START_TEST(counts)
{
    enum { B = 4, KEYS = 2304, SEGMENT = 2304 };
    int64_t         q_lens[B], k_lens[B];
    attention_shape shape = shape_of(ratios[_i], B, q_lens, k_lens);
    pa_mtp_case     c;
    for (int64_t b = 0; b < B; b++) {
        q_lens[b] = 4;
        k_lens[b] = KEYS;
    }
    case_make(&c, &shape, 14000 + _i);
    call k = call_open(&c, &(sim_options){ .counters = true }, B * KEYS / SEGMENT);
    call_plan(&k);
    call_main(&k);
    const double kv = (double)B * KEYS * 512, q = 2.0 * (double)cases_count(&c.args.q), tables = 4.0 * B * KEYS / 16;
    const double plan = 32.0 * k.args.most_tasks * 8, arguments = 328.0 * k.args.most_tasks * 8;
    const double read = reported("global memory: ");
    const double cycles = (reported("VALU cycles: ") + reported(", TRANS ") + reported("matrix cycles: ")) / 4.0;
    const double share = cycles / (kv / (8e12 / 256.0 / 2.4e9));
    printf("# gqa%" PRId64 ": %.4f of K and V read with their tables, busy %.1f %% of their time\n", ratios[_i],
           (read - q) / kv, 100.0 * share);
    ck_assert_double_ge(read, kv);
    ck_assert_double_le(read, kv + q + tables + plan + arguments);
    ck_assert_ptr_nonnull(strstr(report, ", 0 cycles of bank conflicts"));
    ck_assert_double_ge(reported(" of a wave, "), 48.0 * 1024);
    ck_assert_double_le(share, shares[_i]);
    call_reduce(&k);
    call_close(&k);
    cases_free(&c.memory);
}
END_TEST

/* Mutants
 * -------
 * check_pa_mtp_gfx950 STEM OBJECT...: "ok" or what is wrong with each object in the place of the kernel STEM, as
 * tests/mutate.py wants it. The cases make every branch of the kernels run.
 */
static void mutant_reduces(void)
{
    const int64_t   q_lens[] = { 4, 2, 0, 1 }, k_lens[] = { 2, 0, 50, 1 };
    attention_shape shape = SHAPE_OF(4, q_lens, k_lens);
    pa_mtp_case     c;
    serve_far_parts(8, 1);
    join_own_parts(16, ETALON_F32, 3);
    join_own_parts(4, ETALON_BF16, 4);
    shape.no_lse = true;
    case_make(&c, &shape, 8000);
    serve(&c, 5, 7);
}

/* Tiles that end in the middle of a page's copies, as the first, second, third and fourth of a task, and at each of the
 * eight keys that a lane has of a row; and page ids of more tiles than a wave reads at a time. */
static void mutant_copies(int64_t ratio, int64_t tokens)
{
    const int64_t k_lens[] = { 122, 250, 378, 506, 123, 124, 125, 100, 101, 102, 103, 251, 252, 253, 228,
                               229, 230, 231, 2,   6,   14,  130, 134, 142, 258, 262, 270, 386, 390, 398 };
    enum { B = sizeof k_lens / sizeof k_lens[0] };
    int64_t         q_lens[B];
    const int64_t   one[] = { tokens }, many[] = { 66 * PA_MTP_GFX950_TILE + 5 };
    attention_shape shape = shape_of(ratio, B, q_lens, k_lens), longer = SHAPE_OF(ratio, one, many);
    pa_mtp_case     c;
    for (int i = 0; i < B; i++)
        q_lens[i] = i % 3 == 1 ? 1 : tokens;
    case_make(&c, &shape, 6100);
    serve(&c, 3, 1);
    longer.spread = 3.0;
    case_make(&c, &longer, 6101);
    serve(&c, 1, 1);
}

/* What is cheap and tells much comes first. */
static void mutant_runs(int64_t ratio)
{
    pa_mtp_case c;
    for (int n = 0; n < TAILS; n++) {
        make_tails(&c, ratio, n);
        serve(&c, 1, 1);
    }
    for (int64_t tokens = 32 / ratio; tokens <= 64 / ratio; tokens *= 2) {
        make_growth(&c, ratio, tokens, 6300);
        serve(&c, (uint64_t)(tokens * ratio / 32), 1);
    }
    for (int64_t i = 0; i < 5; i++) {
        draw(&c, ratio, i + (ratio == 16 ? 0 : 5));
        serve(&c, (uint64_t)i + 1, 1 + i);
    }
    make_without_keys(&c, ratio, 8000);
    serve(&c, 2, 7);
    for (int64_t tokens = 32 / ratio; tokens <= 64 / ratio; tokens *= 2) {
        make_nan(&c, ratio, tokens);
        serve(&c, 3, 1);
    }
    serve_far_pages(ratio, (1 << 20) + 12345, 2);
    serve_far_parts(ratio, 3);
    mutant_copies(ratio, 1);
    mutant_copies(ratio, 64 / ratio);
}

static void mutant_plans(void)
{
    pa_mtp_case c;
    make_without_keys(&c, 4, 8000);
    serve(&c, 2, 7);
    for (uint64_t schedule = 0; schedule < RATIOS; schedule++)
        plan_evenly(ratios[schedule], schedule);
}

START_TEST(mutant_serves)
{
    /* Of CPU time: on a busy machine a limit in seconds would make every mutant show. */
    const struct rlimit limit = { .rlim_cur = 120, .rlim_max = 120 };
    int64_t             ratio = 4;
    ck_assert_int_eq(setrlimit(RLIMIT_CPU, &limit), 0);
    sscanf(mutant_of, "pa_mtp_e4m3_d256_gqa%" SCNd64, &ratio);
    if (freopen("/dev/null", "w", stderr) == NULL)
        ck_abort_msg("no /dev/null");
    if (strstr(mutant_of, "reduce") != NULL)
        mutant_reduces();
    else if (strstr(mutant_of, "plan") != NULL)
        mutant_plans();
    else
        mutant_runs(ratio);
}
END_TEST

/* In a process of its own, which a mutant may take down. */
static bool mutant_shows(void)
{
    Suite *suite = suite_create("mutant");
    TCase *tcase = tcase_create("mutant");
    tcase_add_test(tcase, mutant_serves);
    tcase_set_timeout(tcase, 0);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_SILENT);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}

static int mutants(char **list)
{
    mutant_of = list[0];
    for (int i = 1; list[i] != NULL; i++) {
        mutant = list[i];
        puts(mutant_shows() ? "wrong" : "ok");
        fflush(stdout);
    }
    return EXIT_SUCCESS;
}

static void fill(TCase *t)
{
    tcase_add_loop_test(t, schedules_agree, 0, RATIOS);
    tcase_add_loop_test(t, drawn_within_bound, 0, RATIOS);
    tcase_add_loop_test(t, last_tiles, 0, RATIOS);
    tcase_add_loop_test(t, seed_rows, 0, TESTING_CASES(SEEDS, 1));
    tcase_add_loop_test(t, golden_vectors, 0, VECTORS);
    tcase_add_loop_test(t, small_weights_stay, 0, TESTING_CASES(HOTS, 1));
    tcase_add_loop_test(t, growing_maxima, 0, RATIOS);
    tcase_add_test(t, ones_give_one);
    tcase_add_loop_test(t, nan_reaches_who_sees_it, 0, RATIOS);
    tcase_add_loop_test(t, nan_in_any_column, 0, RATIOS);
    tcase_add_loop_test(t, large_q_saturates, 0, RATIOS);
    tcase_add_loop_test(t, rows_without_keys, 0, RATIOS);
    tcase_add_loop_test(t, far_pages, 0, RATIOS);
    tcase_add_loop_test(t, far_parts, 0, RATIOS);
    tcase_add_test(t, any_number_of_segments);
    tcase_add_loop_test(t, plan_is_even, 0, RATIOS);
    tcase_add_loop_test(t, reduce_skips_empty_segments, 0, RATIOS);
    tcase_add_loop_test(t, counts, 0, RATIOS);
}

int main(int argc, char **argv)
{
    if (argc > 2)
        return mutants(argv + 1);
    return testing_main("pa_mtp_gfx950", fill);
}
