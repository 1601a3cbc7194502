/* fmha_varlen_e4m3_d192x128_gfx1250 and its causal twin on the simulator: problems that are drawn, golden vectors, and
 * what broke other kernels, under eight schedules with all checks, against the float64 twin.
 *
 * Each tensor has an allocation of its own in the simulated device. Bytes between its elements count as never written,
 * so a kernel that lets one decide anything is found; outputs begin poisoned.
 *
 *   ETALON_SEED=N check_fmha_varlen_gfx1250    replays; a failure names the seed and the stream of its case
 *   ETALON_CASES=N             draws so many cases more
 *
 * With arguments this is the driver of tests/mutate.py instead of a test:
 *
 *   check_fmha_varlen_gfx1250 STEM OBJECT...
 *
 * runs the kernel STEM of each code object on a few problems, and prints a line for each: "ok", "finding ...",
 * "failed ...", "wrong ..." where the bits differ from those of the library's own kernel, or "crash ...".
 */
#include "cases.h"
#include "oracle.h"
#include "testing.h"
#include "twin.h"

#include "code_objects.h"
#include "context.h"
#include "fmha_varlen_gfx1250.h"
#include "sim.h"

#include <glob.h>
#include <inttypes.h>
#include <math.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SCHEDULES = 8, STREAM = 1000 };

static uint64_t stream_now;

#define CASE_FORMAT "ETALON_SEED=%" PRIu64 " stream %" PRIu64
#define CASE_VALUES cases_seed(), stream_now

static rng next_case(int kind, int number)
{
    stream_now = (uint64_t)(STREAM * (kind + 1) + number);
    return rng_make(cases_seed(), stream_now);
}

/* A device with the tensors of one case
 * -------------------------------------
 */
typedef struct rig {
    sim_device   *device;
    cases_memory *memory;
    void         *block[CASES_BLOCKS]; /* the allocation of each of the case's blocks */
} rig;

/* Instructions that a wave may take; 0: as many as it likes. */
static uint64_t most_instructions;

static rig rig_open(uint64_t schedule, uint32_t checks)
{
    const sim_options options = { .checks = checks, .seed = schedule, .limit = most_instructions };
    rig               r = { .device = sim_device_create(SIM_GFX1250, &options) };
    cases_require(r.device != NULL, "%s", sim_last_error());
    return r;
}

static void rig_copy_in(rig *r, cases_memory *memory)
{
    r->memory = memory;
    for (int i = 0; i < memory->count; i++) {
        const cases_block *b = &memory->block[i];
        r->block[i] = sim_allocate(r->device, b->bytes > 0 ? b->bytes : 1, "tensor");
        cases_require(r->block[i] != NULL, "%s", sim_last_error());
        memcpy(r->block[i], b->data, b->bytes);
        const int64_t count = b->role == CASES_INPUT ? cases_count(&b->view) : 0;
        for (int64_t e = 0; e < count; e++)
            sim_mark_written(r->device, (char *)r->block[i] + ((unsigned char *)cases_at(&b->view, e) - b->data),
                             etalon_dtype_bytes(b->view.dtype));
    }
}

static void rig_copy_out(const rig *r)
{
    for (int i = 0; i < r->memory->count; i++)
        memcpy(r->memory->block[i].data, r->block[i], r->memory->block[i].bytes);
}

static void rig_move(const rig *r, etalon_tensor *t)
{
    for (int i = 0; t->data != NULL && i < r->memory->count; i++) {
        const cases_block   *b = &r->memory->block[i];
        const unsigned char *at = t->data;
        if (at >= b->map && at < b->map + b->map_bytes) {
            t->data = (char *)r->block[i] + (at - b->data);
            return;
        }
    }
    cases_require(t->data == NULL, "a tensor that is not of the case");
}

/* The library's kernel, or what stands here instead. */
static const code_object *stand_in;

static sim_object *rig_load(const rig *r, const char *stem)
{
    const code_object *o = stand_in != NULL ? stand_in : code_object_find(stem, "gfx1250");
    return o == NULL ? NULL : sim_object_load(r->device, o->bytes, code_object_bytes(o));
}

static const char *stem_of(const fmha_varlen_problem *p)
{
    return p->mask.right == 0 ? "fmha_varlen_e4m3_d192x128_causal_gfx1250" : "fmha_varlen_e4m3_d192x128_gfx1250";
}

typedef struct way { /* to run a case */
    uint64_t schedule;
    int      waves;
    uint32_t unchecked; /* checks of the simulator that are left out */
    FILE    *report;    /* NULL, or what receives the counters */
} way;

/* Runs the problem, whose tensors are on the device. False: `trouble` says what was wrong. */
static bool rig_run(const rig *r, const fmha_varlen_problem *p, way how, char trouble[512])
{
    char                      name[80];
    const char               *stem = stem_of(p);
    sim_object               *object = rig_load(r, stem);
    const fmha_varlen_gfx1250 args = fmha_varlen_gfx1250_of(p, how.waves);
    const uint32_t            items = (uint32_t)how.waves * FMHA_VARLEN_GFX1250_WAVE;
    snprintf(name, sizeof name, "etalon_%s", stem);
    const sim_dispatch d = { .kernel = object == NULL ? NULL : sim_object_kernel(object, name),
                             .grid = { args.places * items, (uint32_t)p->kv_heads, 1 },
                             .group = { items, 1, 1 },
                             .kernarg = &args,
                             .kernarg_bytes = sizeof args };
    bool               ok = false;
    if (d.kernel == NULL || d.kernel->kernarg_bytes != sizeof args || !sim_run(r->device, &d)) {
        snprintf(trouble, 512, "failed %.400s", sim_last_error());
    } else if (sim_finding_count(r->device) > 0) {
        const sim_finding *f = sim_finding_at(r->device, 0);
        snprintf(trouble, 512, "finding %s at +0x%" PRIx64 " %s: %s", sim_check_name(f->check), f->pc, f->text,
                 f->detail);
    } else {
        ok = true;
    }
    if (ok && how.report != NULL)
        sim_print_report(how.report, r->device, false);
    if (object != NULL)
        sim_object_unload(object);
    return ok;
}

/* Into the outputs of the case. */
static bool run_or_tell(fmha_varlen_case *c, way how, char trouble[512])
{
    rig                 r = rig_open(how.schedule, SIM_CHECK_ALL & ~how.unchecked);
    fmha_varlen_problem p;
    bool                ok = true;
    cases_require(fmha_varlen_check(&c->args, &p) == ETALON_OK, "%s", etalon_last_error());
    const char *why = fmha_varlen_gfx1250_refuse(&p, p.mask.right == 0);
    cases_require(why == NULL, CASE_FORMAT ": refused: %s", CASE_VALUES, why);
    cases_poison_outputs(&c->memory);
    rig_copy_in(&r, &c->memory);
    etalon_tensor *const all[] = { &p.q,   &p.k,   &p.v,         &p.cu_seqlens_q, &p.cu_seqlens_k,
                                   &p.out, &p.lse, &p.descale.q, &p.descale.k,    &p.descale.v };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        rig_move(&r, all[i]);
    if (p.total_q > 0)
        ok = rig_run(&r, &p, how, trouble);
    rig_copy_out(&r);
    sim_device_destroy(r.device);
    return ok;
}

static void run(fmha_varlen_case *c, way how)
{
    char trouble[512];
    cases_require(run_or_tell(c, how, trouble), CASE_FORMAT ": %s", CASE_VALUES, trouble);
    cases_verify(&c->memory);
}

/* Problems
 * --------
 */

static attention_shape shape_of(int64_t batch, int64_t heads, int64_t kv_heads, const int64_t *q_lens,
                                const int64_t *k_lens)
{
    return (attention_shape){ .b = batch,
                              .hq = heads,
                              .hkv = kv_heads,
                              .dqk = 192,
                              .dv = 128,
                              .out = ETALON_BF16,
                              .q_lens = q_lens,
                              .k_lens = k_lens };
}

/* How a tensor [T, H, D] lies in memory; gaps are NaN. */
typedef enum layout {
    DENSE,
    PADDED_ROWS,
    HEADS_FIRST,
    SPARE_HEADS, /* as the parts of one tensor of q, k and v are */
    LAYOUTS
} layout;

static etalon_tensor lay_out(cases_memory *memory, const etalon_tensor *t, cases_role role, layout how, int64_t gap)
{
    const int64_t tokens = t->shape[0], heads = t->shape[1], dim = t->shape[2];
    const int64_t padded[3] = { tokens, heads, dim + gap }, swapped[3] = { heads, tokens, dim + 16 };
    const int64_t spare[3] = { tokens, heads + 2, dim };
    etalon_tensor view = *t;
    if (how == PADDED_ROWS)
        view = cases_cut(cases_tensor(memory, NULL, role, t->dtype, 3, padded), 2, 0, dim);
    if (how == HEADS_FIRST)
        view = cases_cut(cases_swap(cases_tensor(memory, NULL, role, t->dtype, 3, swapped), 0, 1), 2, 16, dim);
    if (how == SPARE_HEADS)
        view = cases_cut(cases_tensor(memory, NULL, role, t->dtype, 3, spare), 1, 1, heads);
    if (how != DENSE && role == CASES_INPUT)
        cases_copy(&view, t);
    return view;
}

static void lay_out_all(fmha_varlen_case *c, layout q, layout k, layout v, layout out)
{
    c->args.q = lay_out(&c->memory, &c->args.q, CASES_INPUT, q, 13);
    c->args.k = lay_out(&c->memory, &c->args.k, CASES_INPUT, k, 13);
    c->args.v = lay_out(&c->memory, &c->args.v, CASES_INPUT, v, 13);
    c->args.out = lay_out(&c->memory, &c->args.out, CASES_OUTPUT, out, 5);
    cases_seal(&c->memory);
}

static int64_t draw_length(rng *r)
{
    return RNG_PICK(r, 0, 1, 2, 15, 16, 17, 63, 64, 65, 100, 127, 128, 129, 150, 192, 255, 257, 300);
}

/* `shift`: the same problem in other layouts. */
static void draw(fmha_varlen_case *c, rng *r, int shift)
{
    int64_t         q_lens[4], k_lens[4];
    attention_shape s = shape_of(RNG_PICK(r, 1, 1, 2, 3, 4), 0, RNG_PICK(r, 1, 1, 2, 3), q_lens, k_lens);
    const int64_t   group = RNG_PICK(r, 1, 1, 2, 3, 5, 8, 16);
    s.hq = s.hkv * group;
    for (int64_t b = 0; b < s.b; b++) {
        q_lens[b] = (draw_length(r) + group - 1) / group;
        k_lens[b] = rng_chance(r, 25) ? q_lens[b] : draw_length(r);
    }
    s.index = (etalon_dtype)RNG_PICK(r, ETALON_I32, ETALON_I64);
    s.sigma = rng_chance(r, 70) ? 1.0 : (double)RNG_PICK(r, 8, 32);
    s.spread = 0.5 * (double)RNG_PICK(r, 1, 2, 2, 4, 12);
    s.q_descale = (cases_descale)rng_below(r, 4);
    s.k_descale = (cases_descale)rng_below(r, 4);
    s.v_descale = (cases_descale)rng_below(r, 4);
    s.no_lse = rng_chance(r, 15);
    s.causal = rng_chance(r, 60);
    s.give_max_seqlens = rng_chance(r, 50);
    fmha_varlen_make(c, r, &s);
    layout all[4];
    for (int i = 0; i < 4; i++)
        all[i] = (layout)((rng_below(r, LAYOUTS) + shift) % LAYOUTS);
    lay_out_all(c, all[0], all[1], all[2], all[3]);
}

static void poison_element(const etalon_tensor *t, int64_t i)
{
    etalon_tensor element = *t;
    element.data = cases_at(t, i);
    element.rank = 0;
    cases_poison(&element);
}

/* Against the twin
 * ----------------
 * Two E4M3 terms leave of a weight p no more than max(2^-8 p, 2^-10), in units of its tile; the sum of a tile's p is 16 or
 * more, unless the tile is 2^-24 of another. So what a tile adds to o is off by no more than 2^-8 + 128 * 2^-10 / 16 of
 * its sum times the largest |v|, what it adds to the divisor by as much of its sum. */
#define ROUNDING (0x1p-8 + 128 * 0x1p-10 / 16)

static double worst_out, worst_lse; /* error over bound, for the log */

static void within(double got, double want, double bound, const char *what, int64_t i, double *worst)
{
    if (isnan(want)) {
        cases_require(isnan(got), CASE_FORMAT ": %s[%" PRId64 "]: %.9g, twin NaN", CASE_VALUES, what, i, got);
        return;
    }
    const double error = got == want ? 0.0 : fabs(got - want);
    cases_require(error <= bound, CASE_FORMAT ": %s[%" PRId64 "]: %.9g, twin %.9g, error %.3g, bound %.3g", CASE_VALUES,
                  what, i, got, want, error, bound);
    if (bound > 0.0 && error / bound > *worst)
        *worst = error / bound;
}

/* The largest |v| of the sequence's keys for a KV head, dequantised; NaN left out. */
static double largest_v(const etalon_fmha_varlen_args *a, int64_t b, int64_t kv_head)
{
    const int64_t first = (int64_t)cases_get(&a->cu_seqlens_k, b), last = (int64_t)cases_get(&a->cu_seqlens_k, b + 1);
    double        largest = 0.0;
    for (int64_t n = first; n < last; n++)
        for (int64_t d = 0; d < 128; d++)
            largest = fmax(largest, fabs(cases_get(&a->v, (n * a->v.shape[1] + kv_head) * 128 + d)));
    const etalon_tensor *factor = &a->v_descale;
    return factor->data == NULL ? largest
                                : largest * cases_get(factor, factor->rank == 2 ? b * a->v.shape[1] + kv_head : 0);
}

static void compare_out(const etalon_fmha_varlen_args *a, const twin_attention *twin, int64_t b, int64_t head)
{
    const double  largest = largest_v(a, b, head / (twin->hq / a->v.shape[1]));
    const int64_t first = (int64_t)cases_get(&a->cu_seqlens_q, b), last = (int64_t)cases_get(&a->cu_seqlens_q, b + 1);
    for (int64_t token = first; token < last; token++)
        for (int64_t d = 0; d < 128; d++) {
            const int64_t i = (token * twin->hq + head) * 128 + d;
            if (!(twin->e[head * twin->t + token] > 0x1p-6)) /* the docstring states no bound beyond */
                within(cases_get(&a->out, i), twin->out[i],
                       twin->out_bound[i] + ROUNDING * (largest + fabs(twin->out[i])) * (1.0 + 0x1p-6), "out", i,
                       &worst_out);
        }
}

/* The sum goes over the tiles, 32 pairs in each; c, the logarithm and their sum round four times more. */
static double lse_bound(const etalon_fmha_varlen_args *a, const twin_attention *twin, int64_t i)
{
    const double tiles = (double)a->k.shape[0] / 128.0 + 1.0;
    return isinf(twin->lse[i]) ? 0.0
                               : twin->lse_bound[i] + twin_gamma(tiles + 64.0) + 4.0 * TWIN_U * fabs(twin->lse[i]);
}

static void compare(fmha_varlen_case *c)
{
    const etalon_fmha_varlen_args *a = &c->args;
    twin_attention                 twin;
    twin_fmha_varlen(a, &twin);
    for (int64_t b = 0; b + 1 < a->cu_seqlens_q.shape[0]; b++)
        for (int64_t head = 0; head < twin.hq; head++)
            compare_out(a, &twin, b, head);
    for (int64_t i = 0; a->lse.data != NULL && i < cases_count(&a->lse); i++)
        within(cases_get(&a->lse, i), twin.lse[i], lse_bound(a, &twin, i), "lse", i, &worst_lse);
    cases_written(&a->out, "out");
    if (a->lse.data != NULL)
        cases_written(&a->lse, "lse");
    twin_attention_free(&twin);
}

static void check(fmha_varlen_case *c, way how)
{
    run(c, how);
    compare(c);
    cases_free(&c->memory);
}

static const int waves_of[] = { 4, 1, 2 };

/* A small batch with everything in it, under every schedule: GQA, ragged, no q, no keys, more q than keys. */
START_TEST(schedules)
{
    const int64_t    q_lens[] = { 40, 0, 33, 5, 70 }, k_lens[] = { 300, 17, 20, 0, 150 };
    attention_shape  s = shape_of(5, 4, 2, q_lens, k_lens);
    rng              r = next_case(0, _i);
    fmha_varlen_case c;
    s.causal = _i / SCHEDULES;
    s.q_descale = s.k_descale = s.v_descale = CASES_DESCALE_HEADS;
    fmha_varlen_make(&c, &r, &s);
    lay_out_all(&c, (layout)(_i % LAYOUTS), (layout)(_i / 2 % LAYOUTS), (layout)((_i + 1) % LAYOUTS),
                (layout)((_i + 2) % LAYOUTS));
    check(&c, (way){ .schedule = (uint64_t)_i % SCHEDULES, .waves = waves_of[_i % 3] });
}
END_TEST

/* The bits of both outputs, one after the other; the caller frees them. */
static uint32_t *bits_of(const fmha_varlen_case *c, size_t *count)
{
    const size_t out = (size_t)cases_count(&c->args.out);
    const size_t lse = c->args.lse.data == NULL ? 0 : (size_t)cases_count(&c->args.lse);
    uint32_t    *all = calloc(out + lse + 1, sizeof *all), *part = cases_bits(&c->args.out);
    memcpy(all, part, out * sizeof *all);
    free(part);
    part = lse == 0 ? NULL : cases_bits(&c->args.lse);
    if (part != NULL)
        memcpy(all + out, part, lse * sizeof *all);
    free(part);
    *count = out + lse;
    return all;
}

/* The same problem in other layouts, by other workgroups, under another schedule. */
static void same_bits_otherwise(const fmha_varlen_case *c, const rng *start, int number)
{
    size_t    count, again;
    uint32_t *want = bits_of(c, &count);
    for (int shift = 1; shift < LAYOUTS; shift++) {
        fmha_varlen_case other;
        rng              r = *start;
        draw(&other, &r, shift);
        run(&other, (way){ .schedule = (uint64_t)(number + shift), .waves = waves_of[(number + shift) % 3] });
        uint32_t *got = bits_of(&other, &again);
        cases_require(count == again && memcmp(got, want, count * sizeof *got) == 0, CASE_FORMAT ": other bits",
                      CASE_VALUES);
        free(got);
        cases_free(&other.memory);
    }
    free(want);
}

START_TEST(drawn)
{
    enum { CASES = TESTING_CASES(3, 1) };
    for (int i = 0; i < CASES; i++) {
        rng              r = next_case(1, _i + SCHEDULES * i);
        fmha_varlen_case c;
        draw(&c, &r, 0);
        check(&c, (way){ .schedule = (uint64_t)_i, .waves = waves_of[i % 3] });
    }
    printf("# out: error / bound up to %.3f, lse: up to %.3f\n", worst_out, worst_lse);
}
END_TEST

START_TEST(drawn_more)
{
    rng              r = next_case(13, _i);
    const rng        start = r;
    fmha_varlen_case c;
    draw(&c, &r, 0);
    run(&c, (way){ .schedule = (uint64_t)(_i % SCHEDULES), .waves = waves_of[_i % 3] });
    compare(&c);
    same_bits_otherwise(&c, &start, _i);
    cases_free(&c.memory);
}
END_TEST

/* Golden vectors
 * --------------
 */
static glob_t vectors;

static etalon_tensor copy_of(cases_memory *memory, const etalon_tensor *t)
{
    if (t->data == NULL)
        return *t;
    const etalon_tensor to = cases_tensor(memory, NULL, CASES_INPUT, t->dtype, t->rank, t->shape);
    cases_copy(&to, t);
    return to;
}

static void case_of_file(fmha_varlen_case *c, const etalon_fmha_varlen_args *a)
{
    const int64_t out[3] = { a->q.shape[0], a->q.shape[1], a->v.shape[2] }, lse[2] = { a->q.shape[1], a->q.shape[0] };
    *c = (fmha_varlen_case){ .args = *a };
    etalon_tensor *const all[] = {
        &c->args.q,         &c->args.k,         &c->args.v,        &c->args.cu_seqlens_q, &c->args.cu_seqlens_k,
        &c->args.q_descale, &c->args.k_descale, &c->args.v_descale
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        *all[i] = copy_of(&c->memory, all[i]);
    c->args.out = cases_tensor(&c->memory, NULL, CASES_OUTPUT, ETALON_BF16, 3, out);
    c->args.lse = cases_tensor(&c->memory, NULL, CASES_OUTPUT, ETALON_F32, 2, lse);
    cases_seal(&c->memory);
}

START_TEST(golden)
{
    tensorfile       file;
    tensorfile_error error;
    oracle_problem   problem;
    fmha_varlen_case c;
    ck_assert_msg(tensorfile_read(vectors.gl_pathv[_i], &file, &error), "%s", error.text);
    ck_assert_msg(oracle_bind(&file, NULL, &problem, &error), "%s", error.text);
    case_of_file(&c, &problem.args.fmha_varlen);
    run(&c, (way){ .schedule = (uint64_t)_i, .waves = waves_of[_i % 3] });
    const etalon_tensor *out = tensorfile_find(&file, "expected_out"), *lse = tensorfile_find(&file, "expected_lse");
    for (int64_t i = 0; i < cases_count(out); i++) /* the issue's own bounds, beside the twin's below */
        within(cases_get(&c.args.out, i), cases_get(out, i), 0.055, vectors.gl_pathv[_i], i, &worst_out);
    for (int64_t i = 0; i < cases_count(lse); i++)
        within(cases_get(&c.args.lse, i), cases_get(lse, i), 1e-3, vectors.gl_pathv[_i], i, &worst_lse);
    compare(&c);
    cases_free(&c.memory);
    tensorfile_free(&file);
}
END_TEST

/* Small weights
 * -------------
 */

/* One key whose score is `gap` above that of all others, whose V is -1 where its own is 1. */
static void make_hot_key(fmha_varlen_case *c, int64_t keys, int64_t hot, double gap)
{
    const int64_t         q_lens[] = { 64 }, k_lens[] = { keys };
    const attention_shape s = shape_of(1, 1, 1, q_lens, k_lens);
    rng                   r = next_case(2, 0);
    fmha_varlen_make(c, &r, &s);
    cases_fill(&c->args.q, 0.0);
    cases_fill(&c->args.k, 0.0);
    cases_fill(&c->args.v, -1.0);
    for (int64_t i = 0; i < q_lens[0]; i++)
        cases_set(&c->args.q, i * 192, 8.0);
    cases_set(&c->args.k, hot * 192, 14.0);
    for (int64_t d = 0; d < 128; d++)
        cases_set(&c->args.v, hot * 128 + d, 1.0);
    c->args.softmax_scale = gap / (8.0 * 14.0);
    cases_seal(&c->memory);
}

static const double gaps[] = { 8.0, 8.0829037686547604 /* 8 * 14 / sqrt(192): the seed's review */, 11.0, 13.5, 15.0,
                               40.0 };

enum { GAPS = sizeof gaps / sizeof gaps[0], PLACES = 3 };

START_TEST(hot_key)
{
    const int64_t    keys = _i / PLACES == 1 ? TESTING_CASES(16384, 2048) : 1024;
    const int64_t    hot[PLACES] = { 0, keys / 2, keys - 1 };
    fmha_varlen_case c;
    make_hot_key(&c, keys, hot[_i % PLACES], gaps[_i / PLACES]);
    check(&c, (way){ .schedule = (uint64_t)_i, .waves = 1 });
}
END_TEST

/* A constant V is itself, whatever the weights: 64 k keys, some of them far above the rest. */
START_TEST(constant_v)
{
    const int64_t    q_lens[] = { 64 }, k_lens[] = { _i == 0 ? TESTING_CASES(65536, 4096) : 2048 };
    attention_shape  s = shape_of(1, 1, 1, q_lens, k_lens);
    rng              r = next_case(3, _i);
    fmha_varlen_case c;
    s.spread = _i == 0 ? 4.0 : 1.0;
    fmha_varlen_make(&c, &r, &s);
    cases_fill(&c.args.v, 1.0);
    cases_seal(&c.memory);
    run(&c, (way){ .waves = 1, .unchecked = SIM_CHECK_ALL });
    for (int64_t i = 0; i < cases_count(&c.args.out); i++)
        cases_require(cases_get(&c.args.out, i) == 1.0, "out[%" PRId64 "]: %.9g of ones", i, cases_get(&c.args.out, i));
    cases_free(&c.memory);
}
END_TEST

typedef struct errors {
    double squares, most, ab, aa, bb;
} errors;

static void errors_add(errors *e, double got, double want)
{
    e->squares += (got - want) * (got - want);
    e->most = fmax(e->most, fabs(got - want));
    e->ab += got * want;
    e->aa += got * got;
    e->bb += want * want;
}

static double cosine(const errors *e)
{
    return e->ab / sqrt(e->aa * e->bb);
}

/* Rows of a few keys, peaked ones, sinks: as near to the model of two terms as to the exact result, and nearer to that
 * than the policy of one fixed scale. */
START_TEST(accuracy)
{
    const int64_t    q_lens[] = { 40, 64 }, k_lens[] = { 40, 700 };
    attention_shape  s = shape_of(2, 2, 1, q_lens, k_lens);
    rng              r = next_case(4, _i);
    fmha_varlen_case c;
    twin_attention   exact, model, fixed;
    errors           ours = { 0 }, modelled = { 0 }, theirs = { 0 };
    const double     spreads[] = { 1.0, 3.0, 1.0 };
    s.spread = spreads[_i];
    s.causal = 1;
    fmha_varlen_make(&c, &r, &s);
    for (int64_t n = 0; n < 4 && _i == 2; n++) { /* sinks: keys that every row likes, and a V of mean 1 */
        for (int64_t d = 0; d < 192; d++)
            cases_set(&c.args.k, (40 + n) * 192 + d, d == 0 ? 16.0 : 0.0);
        for (int64_t t = 40; t < 104; t++)
            for (int64_t h = 0; h < 2; h++)
                cases_set(&c.args.q, (t * 2 + h) * 192, 8.0);
    }
    for (int64_t i = 0; i < cases_count(&c.args.v) && _i == 2; i++)
        cases_set(&c.args.v, i, cases_get(&c.args.v, i) + 1.0);
    cases_seal(&c.memory);
    run(&c, (way){ .waves = 4 });
    compare(&c);
    twin_fmha_varlen(&c.args, &exact);
    c.args.model = (etalon_model_options){ .p_scale = ETALON_P_SCALE_TILE, .p_terms = 2 };
    twin_fmha_varlen_model(&c.args, &model);
    c.args.model = (etalon_model_options){ .p_scale = ETALON_P_SCALE_FIXED };
    twin_fmha_varlen_model(&c.args, &fixed);
    for (int64_t i = 0; i < cases_count(&c.args.out); i++) {
        errors_add(&ours, cases_get(&c.args.out, i), exact.out[i]);
        errors_add(&modelled, cases_get(&c.args.out, i), model.out[i]);
        errors_add(&theirs, twin_round(fixed.out[i], ETALON_BF16), exact.out[i]);
    }
    printf("# cosine %.9f, to the model %.9f, largest error %.4f, rms %.5f; fixed scale: %.9f, %.4f, %.5f\n",
           cosine(&ours), cosine(&modelled), ours.most, sqrt(ours.squares / (double)cases_count(&c.args.out)),
           cosine(&theirs), theirs.most, sqrt(theirs.squares / (double)cases_count(&c.args.out)));
    ck_assert_double_ge(cosine(&ours), 0.999997);
    ck_assert_double_ge(cosine(&modelled), 0.999997);
    ck_assert_double_lt(ours.most, 0.055);
    ck_assert_double_lt(ours.squares, theirs.squares);
    twin_attention_free(&exact);
    twin_attention_free(&model);
    twin_attention_free(&fixed);
    cases_free(&c.memory);
}
END_TEST

/* Parts of the keys, merged by their LSE, give what one call gives, wherever they are cut. */
START_TEST(chunks_merge)
{
    enum { PREFIX = 300, CHUNK = 70 };
    const int64_t    cuts[] = { 1, 77, 128, 256, 299, PREFIX };
    const int64_t    q_lens[] = { CHUNK }, k_lens[] = { PREFIX + CHUNK };
    attention_shape  s = shape_of(1, 2, 1, q_lens, k_lens);
    rng              r = next_case(5, _i);
    fmha_varlen_case whole;
    const int64_t    out_shape[3] = { CHUNK, 2, 128 }, lse_shape[2] = { 2, CHUNK };
    const int64_t    cut = cuts[_i];
    etalon_tensor    out[2], lse[2], both, both_lse;
    s.causal = 1;
    s.spread = 4.0;
    fmha_varlen_make(&whole, &r, &s);
    run(&whole, (way){ .waves = 4 });
    compare(&whole);
    cases_memory memory = { 0 };
    for (int part = 0; part < 2; part++) {
        fmha_varlen_case    piece = { .args = whole.args };
        const int64_t       first = part == 0 ? 0 : cut, count = part == 0 ? cut : PREFIX + CHUNK - cut;
        const etalon_tensor k = cases_cut(whole.args.k, 0, first, count), v = cases_cut(whole.args.v, 0, first, count);
        piece.args.k = copy_of(&piece.memory, &k);
        piece.args.v = copy_of(&piece.memory, &v);
        piece.args.q = copy_of(&piece.memory, &whole.args.q);
        piece.args.cu_seqlens_q = copy_of(&piece.memory, &whole.args.cu_seqlens_q);
        piece.args.cu_seqlens_k = copy_of(&piece.memory, &whole.args.cu_seqlens_k);
        cases_set(&piece.args.cu_seqlens_k, 1, (double)count);
        piece.args.causal = part == 1; /* the prefix is seen whole */
        piece.args.softmax_scale = whole.args.softmax_scale;
        piece.args.out = cases_tensor(&piece.memory, NULL, CASES_OUTPUT, ETALON_BF16, 3, out_shape);
        piece.args.lse = cases_tensor(&piece.memory, NULL, CASES_OUTPUT, ETALON_F32, 2, lse_shape);
        cases_seal(&piece.memory);
        run(&piece, (way){ .schedule = (uint64_t)part, .waves = 2 });
        compare(&piece);
        out[part] = copy_of(&memory, &piece.args.out);
        lse[part] = copy_of(&memory, &piece.args.lse);
        cases_free(&piece.memory);
    }
    both = cases_tensor(&memory, NULL, CASES_OUTPUT, ETALON_BF16, 3, out_shape);
    both_lse = cases_tensor(&memory, NULL, CASES_OUTPUT, ETALON_F32, 2, lse_shape);
    etalon_merge_states_args merge = ETALON_MERGE_STATES_ARGS_INIT;
    merge.out_a = out[0];
    merge.lse_a = lse[0];
    merge.out_b = out[1];
    merge.lse_b = lse[1];
    merge.out = both;
    merge.lse = both_lse;
    ck_assert_ok(cases_run_merge_states(&merge, 1));
    const double largest = largest_v(&whole.args, 0, 0);
    for (int64_t i = 0; i < cases_count(&both); i++) /* both sides are off by their rounding, and BF16 rounds thrice */
        within(cases_get(&both, i), cases_get(&whole.args.out, i),
               2.0 * 2.0 * ROUNDING * largest + 3 * 0x1p-8 * largest, "merged out", i, &worst_out);
    for (int64_t i = 0; i < cases_count(&both_lse); i++)
        within(cases_get(&both_lse, i), cases_get(&whole.args.lse, i), 1e-5, "merged lse", i, &worst_lse);
    cases_free(&memory);
    cases_free(&whole.memory);
}
END_TEST

/* NaN, infinities
 * ---------------
 */

/* NaN in q, or in keys of which some rows see more than others: it reaches those who see it, and nobody else. Without a
 * causal mask they are all of the sequence. */
START_TEST(nan_reaches_who_sees_it)
{
    const int64_t    q_lens[] = { 150, 20 }, k_lens[] = { 200, 260 };
    attention_shape  s = shape_of(2, 2, 1, q_lens, k_lens);
    rng              r = next_case(6, _i);
    fmha_varlen_case c;
    s.causal = _i < 4;
    fmha_varlen_make(&c, &r, &s);
    const etalon_tensor *const all[] = { &c.args.q, &c.args.k, &c.args.v, &c.args.v };
    const int                  which = _i % 4;
    const int64_t              rows = all[which]->shape[0] * all[which]->shape[1];
    for (int i = 0; i < 3; i++) {
        const int64_t row = i == 0 ? rows - 1 : which == 3 ? 120 + 9 * i : rng_below(&r, rows);
        poison_element(all[which], row * all[which]->shape[2] + rng_below(&r, all[which]->shape[2]));
    }
    cases_seal(&c.memory);
    check(&c, (way){ .schedule = (uint64_t)_i, .waves = waves_of[_i % 3] });
}
END_TEST

/* A sequence for each register that holds a tile of V, with NaN in it alone: the last key, which a causal mask shows one
 * token of two. So a tile ends behind each of its keys once. */
static void make_lone_nans(fmha_varlen_case *c, rng *r, bool causal, int64_t heads)
{
    enum { SEQUENCES = 128 };
    int64_t         q_lens[SEQUENCES], k_lens[SEQUENCES];
    attention_shape s = shape_of(SEQUENCES, heads, 1, q_lens, k_lens);
    s.causal = causal;
    for (int i = 0; i < SEQUENCES; i++) {
        q_lens[i] = 2;
        k_lens[i] = 16 * (i % 8) + 4 * (i / 8 % 2) + 8 * (i / 16 % 2) + i / 32 + 1;
    }
    fmha_varlen_make(c, r, &s);
    for (int64_t i = 0, last = -1; i < SEQUENCES; i++) {
        last += k_lens[i];
        *(unsigned char *)cases_at(&c->args.v, last * 128 + 16 * (i / 16) + rng_below(r, 16)) = 0x7F;
    }
    cases_seal(&c->memory);
}

START_TEST(lone_nans)
{
    rng              r = next_case(12, _i);
    fmha_varlen_case c;
    make_lone_nans(&c, &r, _i == 0, 1);
    check(&c, (way){ .waves = 1, .unchecked = SIM_CHECK_ALL });
}
END_TEST

/* Factors that make every score, or no score, matter, up to where FP32 no longer tells keys apart. */
START_TEST(far_descales)
{
    const double     factors[] = { 1e-20, 1e-30, 1e3, 1e4 };
    const int64_t    q_lens[] = { 20 }, k_lens[] = { 150 };
    attention_shape  s = shape_of(1, 1, 1, q_lens, k_lens);
    rng              r = next_case(7, _i);
    fmha_varlen_case c;
    s.q_descale = s.k_descale = CASES_DESCALE_ONE;
    fmha_varlen_make(&c, &r, &s);
    cases_set(&c.args.q_descale, 0, factors[_i]);
    cases_set(&c.args.k_descale, 0, factors[_i]);
    cases_seal(&c.memory);
    run(&c, (way){ .waves = 1 });
    if (_i < 2)
        compare(&c);
    for (int64_t i = 0; i < cases_count(&c.args.out); i++)
        cases_require(isfinite(cases_get(&c.args.out, i)), "out[%" PRId64 "]: %g, lse %g", i, cases_get(&c.args.out, i),
                      cases_get(&c.args.lse, i / 128));
    cases_free(&c.memory);
}
END_TEST

/* The same bits
 * -------------
 */
START_TEST(same_bits_in_any_layout_and_launch)
{
    uint32_t *first = NULL;
    for (int i = 0; i < 6; i++) {
        const int64_t    q_lens[] = { 50, 33 }, k_lens[] = { 100, 280 };
        attention_shape  s = shape_of(2, 6, 2, q_lens, k_lens);
        rng              r = next_case(8, _i);
        fmha_varlen_case c;
        size_t           count;
        s.causal = _i;
        s.spread = 4.0;
        fmha_varlen_make(&c, &r, &s);
        const layout how = (layout)(i % LAYOUTS);
        lay_out_all(&c, how, (layout)((how + i / 2) % LAYOUTS), how, (layout)((how + 1) % LAYOUTS));
        run(&c, (way){ .schedule = (uint64_t)i, .waves = waves_of[i % 3] });
        uint32_t *bits = bits_of(&c, &count);
        if (i > 0)
            ck_assert_mem_eq(bits, first, sizeof *bits * count);
        free(i > 0 ? first : NULL);
        first = bits;
        cases_free(&c.memory);
    }
    free(first);
}
END_TEST

/* Budgets
 * -------
 */
static uint64_t number_after(const char *text, const char *words)
{
    const char *at = strstr(text, words);
    ck_assert_msg(at != NULL, "no \"%s\" in the report", words);
    return strtoull(at + strlen(words), NULL, 10);
}

/* The report of a run; the caller frees it. */
static char *report_of(fmha_varlen_case *c, int waves)
{
    enum { LONGEST = 1 << 14 };
    char *text = calloc(1, LONGEST);
    FILE *report = tmpfile();
    ck_assert(text != NULL && report != NULL);
    run(c, (way){ .waves = waves, .report = report });
    rewind(report);
    ck_assert_uint_lt(fread(text, 1, LONGEST, report), LONGEST);
    fclose(report);
    return text;
}

/* K and V cross the bus once for each workgroup of rows and KV head, and under a causal mask only what its rows see. */
START_TEST(bytes_that_are_read)
{
    enum { TOKENS = 384, GROUPS = TOKENS * 2 / 256, HEADS = 2 };
    const int64_t    lens[] = { TOKENS };
    attention_shape  s = shape_of(1, 2 * HEADS, HEADS, lens, lens);
    rng              r = next_case(9, _i);
    fmha_varlen_case c;
    s.causal = _i;
    fmha_varlen_make(&c, &r, &s);
    char    *text = report_of(&c, 4);
    uint64_t keys = 0; /* a workgroup has 128 tokens: 2 heads each */
    for (uint64_t g = 1; g <= GROUPS; g++)
        keys += _i == 0 ? TOKENS : 128 * g;
    const uint64_t q = TOKENS * 2 * HEADS * 192, kv = keys * HEADS * (192 + 128);
    const uint64_t read = number_after(text, "global memory: "), small = 512 * (GROUPS + 1) * HEADS * 4 /* arguments */;
    ck_assert_uint_ge(read, q + kv);
    ck_assert_uint_le(read, q + kv + small);
    compare(&c);
    cases_free(&c.memory);
    free(text);
}
END_TEST

/* Cycles of a wave in a tile, by the simulator's model: what six tiles take more than two. */
START_TEST(cycles_of_a_tile)
{
    enum { FEW = 2, MANY = 6, COUNTS = 3, MATRIX = 1088, VECTOR = 1440 };
    static const char *const words[COUNTS] = { "matrix cycles: ", "VALU cycles: ", "TRANS " };
    uint64_t                 cycles[COUNTS] = { 0 };
    for (int many = 0; many < 2; many++) {
        const int64_t         q_lens[] = { 64 }, k_lens[] = { 128 * (many ? MANY : FEW) };
        const attention_shape s = shape_of(1, 1, 1, q_lens, k_lens);
        rng                   r = next_case(11, 0);
        fmha_varlen_case      c;
        fmha_varlen_make(&c, &r, &s);
        char *text = report_of(&c, 1);
        for (int i = 0; i < COUNTS; i++)
            cycles[i] = number_after(strstr(text, "\nVALU cycles: "), words[i]) - cycles[i];
        cases_free(&c.memory);
        free(text);
    }
    for (int i = 0; i < COUNTS; i++)
        cycles[i] /= MANY - FEW;
    printf("# cycles of a wave in a tile: matrix %" PRIu64 ", VALU %" PRIu64 ", TRANS %" PRIu64 "\n", cycles[0],
           cycles[1], cycles[2]);
    ck_assert_uint_eq(cycles[0], MATRIX);
    ck_assert_uint_le(cycles[1] + cycles[2], VECTOR);
}
END_TEST

START_TEST(budgets)
{
    const char *const stems[] = { "fmha_varlen_e4m3_d192x128_gfx1250", "fmha_varlen_e4m3_d192x128_causal_gfx1250" };
    char              name[80];
    const rig         r = rig_open(0, SIM_CHECK_NONE);
    sim_object       *object = rig_load(&r, stems[_i]);
    snprintf(name, sizeof name, "etalon_%s", stems[_i]);
    const sim_kernel *kernel = sim_object_kernel(object, name);
    ck_assert_ptr_nonnull(kernel);
    ck_assert_uint_eq(kernel->vgprs, 1024); /* one wave a SIMD */
    ck_assert_uint_le(kernel->sgprs, 106);
    ck_assert_uint_eq(kernel->lds_bytes, 144 * 1024);
    ck_assert_uint_eq(kernel->scratch_bytes, 0);
    ck_assert_uint_eq(kernel->wave_size, FMHA_VARLEN_GFX1250_WAVE);
    ck_assert_uint_eq(kernel->max_group, FMHA_VARLEN_GFX1250_WAVE * FMHA_VARLEN_GFX1250_MOST_WAVES);
    ck_assert_uint_eq(kernel->kernarg_bytes, sizeof(fmha_varlen_gfx1250));
    sim_device_destroy(r.device);
}
END_TEST

/* The host's part
 * ---------------
 */

/* n / group of every row that may come, through the kernel's multiplication. */
START_TEST(division)
{
    const int64_t groups[] = { 1, 2, 3, 5, 6, 7, 8, 12, 16, 96, 127, 128, 1000, 65537 };
    for (size_t g = 0; g < sizeof groups / sizeof groups[0]; g++) {
        const fmha_varlen_problem p = { .heads = groups[g], .kv_heads = 1, .total_q = 1, .batch = 1 };
        const fmha_varlen_gfx1250 a = fmha_varlen_gfx1250_of(&p, 1);
        for (int i = 0; i < 4000; i++) {
            rng            r = next_case(10, i);
            const uint32_t n = i < 2000 ? (uint32_t)i : (uint32_t)rng_below(&r, INT64_C(1) << 31);
            const uint32_t got = (uint32_t)((uint64_t)(2 * n) * a.magic >> 32) >> a.shift;
            cases_require(got == n / groups[g], "%" PRIu32 " / %" PRId64 ": %" PRIu32, n, groups[g], got);
        }
    }
}
END_TEST

START_TEST(waves)
{
    static const struct {
        int64_t tokens, heads, kv_heads, units;
        int     wanted, want;
    } table[] = {
        { 16384, 96, 96, 256, 0, 4 },   { 12288, 1, 1, 256, 0, 1 },
        { 256 * 256, 1, 1, 256, 0, 4 }, { 256 * 256 - 1, 1, 1, 256, 0, 2 },
        { 128 * 256, 1, 1, 256, 0, 2 }, { 128 * 256 - 1, 1, 1, 256, 0, 1 },
        { 1, 1, 1, 256, 0, 1 },         { 4096, 64, 4, 256, 0, 4 },
        { 16384, 96, 96, 256, 2, 2 },   { 1, 1, 1, 256, 4, 4 },
        { 0, 1, 1, 256, 0, 1 },
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const fmha_varlen_problem p = { .total_q = table[i].tokens,
                                        .heads = table[i].heads,
                                        .kv_heads = table[i].kv_heads };
        const etalon_context      ctx = { .fmha_varlen_waves = table[i].wanted };
        ck_assert_int_eq(fmha_varlen_gfx1250_waves(&ctx, &p, table[i].units), table[i].want);
    }
}
END_TEST

/* What the kernels take, and in which words the check or the gate refuses
 * -----------------------------------------------------------------------
 */

/* On device 0, at an address of its own: only the check of host memory looks at data. */
static etalon_tensor tensor_of(uint64_t place, etalon_dtype dtype, int32_t rank, int64_t a, int64_t b, int64_t c)
{
    etalon_tensor t = {
        .data = (void *)(uintptr_t)(place << 44), .dtype = dtype, .device = 0, .rank = rank, .shape = { a, b, c }
    };
    int64_t stride = 1;
    for (int32_t d = rank - 1; d >= 0; d--) {
        t.stride[d] = stride;
        stride *= t.shape[d];
    }
    return t;
}

enum { TABLE_Q = 100, TABLE_K = 300, TABLE_BATCH = 3, TABLE_HEADS = 8, TABLE_KV_HEADS = 2 };

static float one = 1.0f;

static etalon_fmha_varlen_args plain_args(void)
{
    etalon_fmha_varlen_args a = ETALON_FMHA_VARLEN_ARGS_INIT;
    a.q = tensor_of(1, ETALON_E4M3FN, 3, TABLE_Q, TABLE_HEADS, 192);
    a.k = tensor_of(2, ETALON_E4M3FN, 3, TABLE_K, TABLE_KV_HEADS, 192);
    a.v = tensor_of(3, ETALON_E4M3FN, 3, TABLE_K, TABLE_KV_HEADS, 128);
    a.out = tensor_of(4, ETALON_BF16, 3, TABLE_Q, TABLE_HEADS, 128);
    a.lse = tensor_of(5, ETALON_F32, 2, TABLE_HEADS, TABLE_Q, 1);
    a.cu_seqlens_q = tensor_of(6, ETALON_I32, 1, TABLE_BATCH + 1, 1, 1);
    a.cu_seqlens_k = tensor_of(7, ETALON_I32, 1, TABLE_BATCH + 1, 1, 1);
    return a;
}

/* CASE(name, what becomes of the arguments `a`, the words; NULL: it is taken) */
#define GATE_CASES                                                                                                    \
    CASE(plain, (void)a, NULL)                                                                                        \
    CASE(causal, a->causal = 1, NULL)                                                                                 \
    CASE(no_lse, a->lse = (etalon_tensor){ 0 }, NULL)                                                                 \
    CASE(one_kv_head_each, (a->k.shape[1] = a->v.shape[1] = TABLE_HEADS), NULL)                                       \
    CASE(wide_indices, (a->cu_seqlens_q.dtype = a->cu_seqlens_k.dtype = ETALON_I64), NULL)                            \
    CASE(mixed_indices, a->cu_seqlens_q.dtype = ETALON_I64, "cu_seqlens_k: dtype")                                    \
    CASE(longest_not_given, (a->max_seqlen_q = a->max_seqlen_k = 0), NULL)                                            \
    CASE(longest_given, (a->max_seqlen_q = 50, a->max_seqlen_k = 120), NULL)                                          \
    CASE(longest_negative, a->max_seqlen_q = -1, "max_seqlen_q: -1")                                                  \
    CASE(no_token, (a->q.shape[0] = a->out.shape[0] = a->lse.shape[1] = 0), NULL)                                     \
    CASE(no_key, (a->k.shape[0] = a->v.shape[0] = 0), NULL)                                                           \
    /* dtypes */                                                                                                      \
    CASE(fnuz, (a->q.dtype = a->k.dtype = a->v.dtype = ETALON_E4M3FNUZ), "q is not E4M3FN")                           \
    CASE(bf16, (a->q.dtype = a->k.dtype = a->v.dtype = ETALON_BF16), "q is not E4M3FN")                               \
    CASE(f32, (a->q.dtype = a->k.dtype = a->v.dtype = ETALON_F32), "q is not E4M3FN")                                 \
    CASE(mixed_k, a->k.dtype = ETALON_E4M3FNUZ, "k: dtype")                                                           \
    CASE(mixed_v, a->v.dtype = ETALON_BF16, "v: dtype")                                                               \
    CASE(bytes, a->q.dtype = ETALON_U8, "q: dtype")                                                                   \
    CASE(out_f32, a->out.dtype = ETALON_F32, "out is not BF16")                                                       \
    CASE(out_fp8, a->out.dtype = ETALON_E4M3FN, "out: dtype")                                                         \
    CASE(lse_bf16, a->lse.dtype = ETALON_BF16, "lse: dtype")                                                          \
    /* extents */                                                                                                     \
    CASE(narrow_q, (a->q.shape[2] = a->k.shape[2] = 128), "the head dim of q is not 192")                             \
    CASE(wide_v,                                                                                                      \
         (a->v = tensor_of(3, ETALON_E4M3FN, 3, TABLE_K, TABLE_KV_HEADS, 192),                                        \
          a->out = tensor_of(4, ETALON_BF16, 3, TABLE_Q, TABLE_HEADS, 192)),                                          \
         "the head dim of v is not 128")                                                                              \
    CASE(other_k, a->k.shape[2] = 128, "k.shape[2]")                                                                  \
    CASE(no_head, (a->q.shape[1] = a->out.shape[1] = a->lse.shape[0] = 0), "0 query heads")                           \
    CASE(no_kv_head, (a->k.shape[1] = a->v.shape[1] = 0), "0 KV heads")                                               \
    CASE(odd_heads, (a->k.shape[1] = a->v.shape[1] = 3), "a multiple of the 3 KV heads")                              \
    CASE(other_v_heads, a->v.shape[1] = 1, "v.shape[1]")                                                              \
    CASE(other_v_tokens, a->v.shape[0] = 299, "v.shape[0]")                                                           \
    CASE(other_batch, a->cu_seqlens_k.shape[0] = 3, "cu_seqlens_k.shape[0]")                                          \
    CASE(other_lse, a->lse.shape[1] = 99, "lse.shape[1]")                                                             \
    CASE(many_kv_heads,                                                                                               \
         (a->q.shape[0] = a->k.shape[0] = a->v.shape[0] = a->out.shape[0] = a->lse.shape[1] = 1,                      \
          a->q.shape[1] = a->k.shape[1] = a->v.shape[1] = a->out.shape[1] = a->lse.shape[0] = 65536),                 \
         "more than 65535 KV heads")                                                                                  \
    CASE(many_rows,                                                                                                   \
         (a->q.shape[0] = a->out.shape[0] = a->lse.shape[1] = INT64_C(1) << 29, a->lse.stride[0] = INT64_C(1) << 29), \
         "2^31 rows or keys")                                                                                         \
    /* windows: "none" in five spellings, then those that are some */                                                 \
    CASE(window_minus_one, (a->window_left = a->window_right = -1), NULL)                                             \
    CASE(window_negative, (a->window_left = -7, a->window_right = INT32_MIN), NULL)                                   \
    CASE(window_beyond, (a->window_left = a->window_right = INT32_MAX), NULL)                                         \
    CASE(window_of_all_keys, (a->max_seqlen_q = a->max_seqlen_k = a->window_left = a->window_right = 120), NULL)      \
    CASE(window_to_the_first_key,                                                                                     \
         (a->max_seqlen_q = 50, a->max_seqlen_k = 120, a->window_left = 119, a->window_right = 49), NULL)             \
    CASE(causal_ignores_the_right, (a->causal = 1, a->window_right = 5), NULL)                                        \
    CASE(window_right_of_no_width, a->window_right = 0, NULL)                                                         \
    CASE(window_left_of_no_width, a->window_left = 0, "the left window is limited")                                   \
    CASE(diagonal, (a->window_left = a->window_right = 0), "the left window is limited")                              \
    CASE(causal_diagonal, (a->causal = 1, a->window_left = 0), "the left window is limited")                          \
    CASE(window_one_key_short, (a->max_seqlen_k = 120, a->window_left = 118), "the left window is limited")           \
    CASE(window_right, a->window_right = 5, "the right window is limited")                                            \
    CASE(window_one_row_short, (a->max_seqlen_q = 50, a->window_right = 48), "the right window is limited")           \
    CASE(longest_unknown, a->window_left = 298, "the left window is limited")                                         \
    /* descales */                                                                                                    \
    CASE(descale_scalar, a->q_descale = tensor_of(8, ETALON_F32, 0, 1, 1, 1), NULL)                                   \
    CASE(descale_one, (a->k_descale = tensor_of(8, ETALON_F32, 1, 1, 1, 1), a->v_descale = a->k_descale), NULL)       \
    CASE(descale_heads, a->v_descale = tensor_of(8, ETALON_F32, 2, TABLE_BATCH, TABLE_KV_HEADS, 1), NULL)             \
    CASE(descale_batch, a->v_descale = tensor_of(8, ETALON_F32, 1, TABLE_BATCH, 1, 1), "v_descale.shape[0]")          \
    CASE(descale_query_heads, a->q_descale = tensor_of(8, ETALON_F32, 2, TABLE_BATCH, TABLE_HEADS, 1),                \
         "q_descale.shape[1]")                                                                                        \
    CASE(descale_three, a->q_descale = tensor_of(8, ETALON_F32, 3, 1, 1, 1), "q_descale")                             \
    CASE(descale_bf16, a->q_descale = tensor_of(8, ETALON_BF16, 1, 1, 1, 1), "q_descale: dtype")                      \
    CASE(descale_on_host,                                                                                             \
         (a->k_descale = tensor_of(8, ETALON_F32, 1, 1, 1, 1), a->k_descale.data = &one,                              \
          a->k_descale.device = ETALON_HOST),                                                                         \
         "k_descale")                                                                                                 \
    CASE(descale_elsewhere, (a->k_descale = tensor_of(8, ETALON_F32, 1, 1, 1, 1), a->k_descale.device = 1),           \
         "k_descale")                                                                                                 \
    CASE(descale_far,                                                                                                 \
         (a->v_descale = tensor_of(8, ETALON_F32, 2, TABLE_BATCH, TABLE_KV_HEADS, 1),                                 \
          a->v_descale.stride[0] = INT64_C(1) << 29),                                                                 \
         "a descale stride is not within")                                                                            \
    /* places */                                                                                                      \
    CASE(q_on_host, a->q.device = ETALON_HOST, "device")                                                              \
    CASE(k_elsewhere, a->k.device = 1, "k")                                                                           \
    CASE(cu_seqlens_on_host, a->cu_seqlens_q.device = ETALON_HOST, "cu_seqlens_q")                                    \
    CASE(cu_seqlens_k_on_host, a->cu_seqlens_k.device = ETALON_HOST, "cu_seqlens_k")                                  \
    CASE(lse_on_host, a->lse.device = ETALON_HOST, "lse")                                                             \
    CASE(no_q, a->q.data = NULL, "q")                                                                                 \
    CASE(no_out, a->out.data = NULL, "out")                                                                           \
    /* strides */                                                                                                     \
    CASE(scattered_q, (a->q.stride[2] = 2, a->q.stride[1] = 400, a->q.stride[0] = 4000),                              \
         "a head dim is not contiguous")                                                                              \
    CASE(scattered_out, (a->out.stride[2] = 2, a->out.stride[1] = 400, a->out.stride[0] = 4000),                      \
         "a head dim is not contiguous")                                                                              \
    CASE(token_near, (a->k.stride[0] = (1 << 24) - 1, a->v.stride[0] = (1 << 24) - 1), NULL)                          \
    CASE(token_far, a->k.stride[0] = 1 << 24, "a token stride is not within")                                         \
    CASE(out_token_near, a->out.stride[0] = (1 << 23) - 1, NULL)                                                      \
    CASE(out_token_far, a->out.stride[0] = 1 << 23, "a token stride is not within")                                   \
    CASE(head_near, a->v.stride[1] = INT32_MAX, NULL)                                                                 \
    CASE(head_far, a->v.stride[1] = INT64_C(1) << 31, "a head stride is not within")                                  \
    CASE(token_backwards, a->q.stride[0] = -2000, "a token stride is not within")                                     \
    CASE(head_backwards, a->k.stride[1] = -192, "a head stride is not within")                                        \
    CASE(lse_backwards, a->lse.stride[1] = -1, "a stride of lse is negative")                                         \
    CASE(lse_tokens_first, (a->lse.stride[0] = 1, a->lse.stride[1] = TABLE_HEADS), NULL)                              \
    /* scalars */                                                                                                     \
    CASE(scale_given, a->softmax_scale = 0.1, NULL)                                                                   \
    CASE(scale_negative, a->softmax_scale = -0.1, "softmax_scale")                                                    \
    CASE(scale_nan, a->softmax_scale = (double)NAN, "softmax_scale")

#define CASE(name, change, words)                         \
    static void change_##name(etalon_fmha_varlen_args *a) \
    {                                                     \
        change;                                           \
    }
GATE_CASES
#undef CASE

static const struct {
    const char *name, *words;
    void (*change)(etalon_fmha_varlen_args *a);
} gate_cases[] = {
#define CASE(name, change, words) { #name, words, change_##name },
    GATE_CASES
#undef CASE
};

enum { GATE_CASE_COUNT = sizeof gate_cases / sizeof gate_cases[0] };

START_TEST(taken_or_refused)
{
    etalon_fmha_varlen_args a = plain_args();
    fmha_varlen_problem     p;
    gate_cases[_i].change(&a);
    const etalon_status status = fmha_varlen_check(&a, &p);
    const bool          causal = status == ETALON_OK && p.mask.right == 0;
    const char         *why = status == ETALON_OK ? fmha_varlen_gfx1250_refuse(&p, causal) : etalon_last_error();
    const char         *words = gate_cases[_i].words;
    if (words == NULL)
        ck_assert_msg(why == NULL, "%s: refused: %s", gate_cases[_i].name, why);
    else
        ck_assert_msg(why != NULL && strstr(why, words) != NULL, "%s: \"%s\" does not hold \"%s\"", gate_cases[_i].name,
                      why == NULL ? "taken" : why, words);
    if (status == ETALON_OK && why == NULL && p.max_seqlen_q != 1) /* one of the two alone */
        ck_assert_ptr_nonnull(fmha_varlen_gfx1250_refuse(&p, !causal));
}
END_TEST

static void fill(TCase *t)
{
    const char *more = getenv("ETALON_CASES");
    tcase_add_loop_test(t, drawn_more, 0, more == NULL ? 1 : atoi(more));
    tcase_add_loop_test(t, schedules, 0, TESTING_CASES(2 * SCHEDULES, 3));
    tcase_add_loop_test(t, drawn, 0, TESTING_CASES(SCHEDULES, 3));
    tcase_add_loop_test(t, golden, 0, (int)vectors.gl_pathc);
    tcase_add_loop_test(t, hot_key, 0, TESTING_CASES(GAPS * PLACES, PLACES));
    tcase_add_loop_test(t, constant_v, 0, 2);
    tcase_add_loop_test(t, accuracy, 0, 3);
    tcase_add_loop_test(t, chunks_merge, 0, TESTING_CASES(6, 1));
    tcase_add_loop_test(t, nan_reaches_who_sees_it, 0, 8);
    tcase_add_loop_test(t, lone_nans, 0, 2);
    tcase_add_loop_test(t, far_descales, 0, 4);
    tcase_add_loop_test(t, same_bits_in_any_layout_and_launch, 0, 2);
    tcase_add_loop_test(t, bytes_that_are_read, 0, 2);
    tcase_add_test(t, cycles_of_a_tile);
    tcase_add_loop_test(t, budgets, 0, 2);
    tcase_add_test(t, division);
    tcase_add_test(t, waves);
    tcase_add_loop_test(t, taken_or_refused, 0, GATE_CASE_COUNT);
}

/* Mutants
 * -------
 */

/* Groups that 64 is no multiple of, descales for each head, rows without a key. Behind the last key of the batch, which is
 * in another part of a tile in each of these problems, nothing may be read. */
static void mutant_groups(fmha_varlen_case *c, rng *r, bool causal)
{
    const int64_t   q_lens[] = { 35, 0, 20, 25 }, k_lens[] = { 10, 20, 0, 530 };
    attention_shape s = shape_of(4, 6, 2, q_lens, k_lens);
    s.causal = causal;
    s.index = ETALON_I64;
    s.spread = 1.0;
    s.q_descale = s.k_descale = s.v_descale = CASES_DESCALE_HEADS;
    fmha_varlen_make(c, r, &s);
    lay_out_all(c, PADDED_ROWS, PADDED_ROWS, PADDED_ROWS, PADDED_ROWS);
}

/* Two keys of the first and the second tile that a token likes best by far, and scores that spread; no lse. Together with
 * the groups above the last row of a sequence is in each block of a wave. */
static void mutant_far_keys(fmha_varlen_case *c, rng *r, bool causal)
{
    const int64_t   q_lens[] = { 61, 45 }, k_lens[] = { 285, 10 };
    attention_shape s = shape_of(2, 4, 2, q_lens, k_lens);
    s.causal = causal;
    s.spread = 6.0;
    s.no_lse = true;
    fmha_varlen_make(c, r, &s);
    for (int64_t d = 0; d < 192; d++)
        for (int64_t key = 5; key <= 140; key += 135)
            cases_set(&c->args.k, (key * 2 + 1) * 192 + d, 4.0 * cases_get(&c->args.q, (3 * 4 + 2) * 192 + d));
    lay_out_all(c, SPARE_HEADS, SPARE_HEADS, SPARE_HEADS, SPARE_HEADS);
}

/* Every block of rows ends at every key of a tile, a wave at a tile, and each column of V has NaN in another key. */
static void mutant_diagonals(fmha_varlen_case *c, rng *r, bool causal)
{
    const int64_t   q_lens[] = { 128, 128, 128, 128, 128, 5 }, k_lens[] = { 128, 144, 160, 192, 176, 10 };
    attention_shape s = shape_of(6, 1, 1, q_lens, k_lens);
    s.causal = causal;
    fmha_varlen_make(c, r, &s);
    for (int64_t b = 0, first = 0; b < 5; first += k_lens[b++])
        for (int64_t d = 0; d < 128; d++) {
            poison_element(&c->args.v, (first + (37 * d + 11 * b) % k_lens[b]) * 128 + d);
            cases_set(&c->args.v, (first + (37 * d + 11 * b + 5) % k_lens[b]) * 128 + d, 448.0); /* its neighbour */
        }
    lay_out_all(c, DENSE, DENSE, DENSE, PADDED_ROWS);
}

/* Every block of rows. */
static void mutant_tails(fmha_varlen_case *c, rng *r, bool causal)
{
    make_lone_nans(c, r, causal, 32);
}

static void mutant_problem(fmha_varlen_case *c, int number, bool causal)
{
    static void (*const make[])(fmha_varlen_case *, rng *, bool) = { mutant_groups, mutant_far_keys, mutant_diagonals,
                                                                     mutant_tails };
    rng r = rng_make(7, (uint64_t)number);
    make[number](c, &r, causal);
}

enum { MUTANT_RUNS = 4 };

/* Of the library's own kernel. */
static uint32_t *wanted_bits[MUTANT_RUNS];

/* The bits of the outputs; NULL, with what is wrong. */
static uint32_t *run_mutant(const char *stem, int number, size_t *count, char trouble[512])
{
    fmha_varlen_case c;
    const way        how = { .schedule = (uint64_t)(3 - number),
                             .waves = waves_of[number % 3],
                             .unchecked = number == 3 ? SIM_CHECK_ALL : SIM_CHECK_NONE };
    mutant_problem(&c, number, strstr(stem, "_causal_") != NULL);
    uint32_t *bits = run_or_tell(&c, how, trouble) ? bits_of(&c, count) : NULL;
    cases_free(&c.memory);
    return bits;
}

/* The first trouble, or "ok". */
static void try_mutant(const char *stem, char trouble[512])
{
    for (int i = 0; i < MUTANT_RUNS; i++) {
        size_t    count;
        uint32_t *bits = run_mutant(stem, i, &count, trouble);
        if (bits == NULL)
            return;
        const bool same = memcmp(bits, wanted_bits[i], sizeof *bits * count) == 0;
        free(bits);
        if (!same) {
            snprintf(trouble, 512, "wrong bits, problem %d", i);
            return;
        }
    }
    snprintf(trouble, 512, "ok");
}

static bool read_object(const char *path, code_object *to)
{
    FILE *from = fopen(path, "rb");
    if (from == NULL || fseek(from, 0, SEEK_END) != 0)
        return false;
    const long     size = ftell(from);
    unsigned char *bytes = malloc((size_t)size + 1);
    rewind(from);
    const bool ok = fread(bytes, 1, (size_t)size, from) == (size_t)size;
    fclose(from);
    *to = (code_object){ .stem = "mutant", .arch = "gfx1250", .bytes = bytes, .end = bytes + size };
    return ok;
}

/* In a process of its own: a mutant may bring the simulator's host down. */
static void drive(const char *stem, const char *path)
{
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        char        trouble[512] = "failed: cannot read it";
        code_object object;
        stand_in = &object;
        most_instructions = 100000; /* it takes 20 000 */
        if (read_object(path, &object))
            try_mutant(stem, trouble);
        puts(trouble);
        fflush(stdout);
        _exit(0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        printf("crash %d\n", status);
}

static int run_tests(void)
{
    char        pattern[4096];
    const char *directory = getenv("ETALON_VECTORS");
    snprintf(pattern, sizeof pattern, "%s/*fmha*.safetensors", directory == NULL ? "tests/vectors" : directory);
    if (glob(pattern, 0, NULL, &vectors) != 0) {
        fprintf(stderr, "no vectors: %s\n", pattern);
        return EXIT_FAILURE;
    }
    const int status = testing_main("fmha_varlen_gfx1250", fill);
    globfree(&vectors);
    return status;
}

static int run_mutants(const char *stem, char **paths)
{
    char   trouble[512];
    size_t count;
    for (int i = 0; i < MUTANT_RUNS; i++) {
        wanted_bits[i] = run_mutant(stem, i, &count, trouble);
        if (wanted_bits[i] == NULL) {
            fprintf(stderr, "%s: %s\n", stem, trouble);
            return EXIT_FAILURE;
        }
    }
    for (; *paths != NULL; paths++)
        drive(stem, *paths);
    for (int i = 0; i < MUTANT_RUNS; i++)
        free(wanted_bits[i]);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    return argc > 1 ? run_mutants(argv[1], argv + 2) : run_tests();
}
