/* The portable kernels on the simulator: drawn problems on gfx950 and gfx1250, under several schedules with all checks,
 * against the float64 twin within the docstring's bound and against the reference's placing of NaN and -inf.
 *
 * Each tensor has an allocation of its own in the simulated device. Bytes between its elements count as never written,
 * so a kernel that lets one decide anything is found; outputs begin poisoned.
 *
 *   ETALON_SEED=N check_hip    replays; a failure names the seed and the stream of its case
 *
 * The code objects are the library's, in the directory that ETALON_HIP_KERNELS names.
 */
#include "cases.h"
#include "testing.h"
#include "twin.h"

#include "fmha_varlen_omp.h"
#include "mqa_logits_omp.h"
#include "mqa_logits_paged_omp.h"
#include "pa_mtp_omp.h"
#include "sim.h"

#include <inttypes.h>
#include <math.h>

enum { SCHEDULES = 4, STREAM = 1000000 };

static uint64_t    stream_now;
static const char *arch_now = "";

#define CASE_FORMAT "ETALON_SEED=%" PRIu64 " stream %" PRIu64 " on %s"
#define CASE_VALUES cases_seed(), stream_now, arch_now

/* A device with the tensors of one case
 * -------------------------------------
 */
typedef struct rig {
    sim_device   *device;
    cases_memory *memory;
    void         *block[CASES_BLOCKS]; /* the allocation of each of the case's blocks */
    const char   *arch;
} rig;

static rig rig_open(sim_arch arch, uint64_t schedule)
{
    const sim_options options = { .checks = SIM_CHECK_ALL, .seed = schedule };
    rig               r = { .device = sim_device_create(arch, &options), .arch = sim_arch_name(arch) };
    arch_now = r.arch;
    cases_require(r.device != NULL, "%s", sim_last_error());
    return r;
}

static void rig_close(rig *r)
{
    sim_device_destroy(r->device);
}

/* The case's memory on the device; outputs as poisoned as they are. */
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

/* Back, inputs too: cases_verify() then tells whether they changed. */
static void rig_copy_out(const rig *r)
{
    for (int i = 0; i < r->memory->count; i++)
        memcpy(r->memory->block[i].data, r->block[i], r->memory->block[i].bytes);
    cases_verify(r->memory);
}

/* A host view's twin on the device. */
static void rig_move(const rig *r, etalon_tensor *t)
{
    if (t->data == NULL)
        return;
    for (int i = 0; i < r->memory->count; i++) {
        const cases_block   *b = &r->memory->block[i];
        const unsigned char *at = t->data;
        if (at >= b->map && at < b->map + b->map_bytes) {
            t->data = (char *)r->block[i] + (at - b->data);
            return;
        }
    }
    ck_abort_msg("a tensor that is not of the case");
}

static void rig_move_all(const rig *r, etalon_tensor *const *tensors, size_t count)
{
    for (size_t i = 0; i < count; i++)
        rig_move(r, tensors[i]);
}

#define RIG_MOVE(r, ...)                                       \
    rig_move_all((r), (etalon_tensor *const[]){ __VA_ARGS__ }, \
                 sizeof((etalon_tensor *const[]){ __VA_ARGS__ }) / sizeof(etalon_tensor *))

static sim_object *rig_load(const rig *r, const char *stem)
{
    char        path[4096];
    const char *directory = getenv("ETALON_HIP_KERNELS");
    ck_assert_msg(directory != NULL, "ETALON_HIP_KERNELS is not set");
    snprintf(path, sizeof path, "%s/%s.%s.co", directory, stem, r->arch);
    FILE *from = fopen(path, "rb");
    ck_assert_msg(from != NULL, "cannot open %s", path);
    ck_assert_int_eq(fseek(from, 0, SEEK_END), 0);
    const size_t size = (size_t)ftell(from);
    void        *bytes = malloc(size);
    rewind(from);
    ck_assert_uint_eq(fread(bytes, 1, size, from), size);
    fclose(from);
    sim_object *object = sim_object_load(r->device, bytes, size);
    ck_assert_msg(object != NULL, "%s: %s", path, sim_last_error());
    free(bytes);
    return object;
}

/* Runs etalon_STEM with one argument, without a finding. No groups: nothing to do. */
static void rig_run(const rig *r, const char *stem, const void *args, size_t bytes, int64_t groups)
{
    enum { ITEMS = 256 };
    char          name[64];
    unsigned char kernarg[4096] = { 0 };
    if (groups == 0)
        return;
    sim_object *object = rig_load(r, stem);
    snprintf(name, sizeof name, "etalon_%s", stem);
    sim_dispatch d = { .kernel = sim_object_kernel(object, name),
                       .grid = { (uint32_t)groups * ITEMS, 1, 1 },
                       .group = { ITEMS, 1, 1 },
                       .kernarg = kernarg };
    ck_assert_msg(d.kernel != NULL, "%s: %s", name, sim_last_error());
    d.kernarg_bytes = d.kernel->kernarg_bytes;
    ck_assert_uint_le(bytes, d.kernarg_bytes);
    ck_assert_uint_le(d.kernarg_bytes, sizeof kernarg);
    memcpy(kernarg, args, bytes);
    sim_kernarg_fill(&d, kernarg);
    cases_require(sim_run(r->device, &d), CASE_FORMAT ": %s: %s", CASE_VALUES, stem, sim_last_error());
    for (uint32_t i = 0; i < sim_finding_count(r->device); i++)
        sim_print_finding(stderr, sim_finding_at(r->device, i));
    cases_require(sim_finding_count(r->device) == 0, CASE_FORMAT ": %s: findings", CASE_VALUES, stem);
    sim_object_unload(object);
}

/* _i counts schedules within architectures. */
#define ARCH_OF(i) ((sim_arch)((i) / SCHEDULES))
#define SCHEDULE_OF(i) ((uint64_t)((i) % SCHEDULES))

/* The case's own numbers are the same on every architecture, and others under every schedule. */
static rng next_case(int test, int number, int kind)
{
    stream_now = (uint64_t)(STREAM * (kind + 1) + test % SCHEDULES * 1000 + number);
    return rng_make(cases_seed(), stream_now);
}

/* Ratio of error and bound, the worst of a test, for the log: without BF16, whose rounding hides the rest. */
static double worst;

/* NaN where the twin has it. */
static void within(double got, double want, double bound, const char *what, int64_t i, bool counts)
{
    if (isnan(want)) {
        cases_require(isnan(got), CASE_FORMAT ": %s[%" PRId64 "]: %.9g, twin NaN", CASE_VALUES, what, i, got);
        return;
    }
    const double error = got == want ? 0.0 : fabs(got - want);
    cases_require(error <= bound, CASE_FORMAT ": %s[%" PRId64 "]: %.9g, twin %.9g, error %.3g, bound %.3g", CASE_VALUES,
                  what, i, got, want, error, bound);
    if (counts && bound > 0.0 && error / bound > worst)
        worst = error / bound;
}

/* NaN in some elements of an input: it must reach what sees it, and nothing else. Not the poison's NaN, which outputs
 * begin with. */
static void sprinkle(rng *r, cases_memory *memory, const etalon_tensor *t)
{
    const bool    fp8 = t->dtype == ETALON_E4M3FN || t->dtype == ETALON_E4M3FNUZ;
    const int64_t count = cases_count(t);
    for (int i = 0; i < 2 && count > 0; i++) {
        etalon_tensor element = *t;
        element.data = cases_at(t, rng_below(r, count));
        element.rank = 0;
        if (fp8)
            cases_poison(&element);
        else
            cases_set(&element, 0, (double)NAN);
    }
    cases_seal(memory);
}

/* mqa_logits
 * ----------
 */
static void logits_compare(const etalon_tensor *logits, bool clean, twin_mqa_logits_result *twin)
{
    for (int64_t i = 0; i < twin->m * twin->n; i++) {
        const double        got = cases_get(logits, i), want = twin->logits[i];
        const etalon_tensor row = cases_fix(*logits, 0, i / twin->n), cell = cases_cut(row, 0, i % twin->n, 1);
        if (isnan(want) && !clean)
            cases_untouched(&cell, "outside the window");
        else
            within(got, want, isinf(want) ? 0.0 : twin->bound[i], "logits", i, true);
    }
    twin_mqa_logits_free(twin);
}

static void mqa_logits_compare(const etalon_mqa_logits_args *args)
{
    twin_mqa_logits_result twin;
    twin_mqa_logits(args, &twin);
    logits_compare(&args->logits, args->clean_logits, &twin);
}

/* Into the outputs of the case. `most`: workgroups at most. */
static void mqa_logits_run(mqa_logits_case *c, sim_arch arch, uint64_t schedule, int64_t most)
{
    rig                r = rig_open(arch, schedule);
    mqa_logits_problem p;
    ck_assert_ok(mqa_logits_check(&c->args, &p));
    cases_poison_outputs(&c->memory);
    rig_copy_in(&r, &c->memory);
    RIG_MOVE(&r, &p.q, &p.k, &p.kv_scale, &p.weights, &p.ks, &p.ke, &p.logits);
    const mqa_logits_omp args = mqa_logits_omp_of(&p, most);
    rig_run(&r, "mqa_logits_omp", &args, sizeof args, args.groups);
    rig_copy_out(&r);
    rig_close(&r);
}

START_TEST(mqa_logits_within_bound)
{
    enum { CASES = TESTING_CASES(12, 4) };
    for (int i = 0; i < CASES; i++) {
        rng             r = next_case(_i, i, 0);
        mqa_logits_case c;
        if (i % 4 == 3)
            mqa_logits_draw_far(&c, &r);
        else
            mqa_logits_draw(&c, &r);
        if (i % 4 == 1) {
            c.args.clean_logits = 1; /* the twin says NaN for what stays untouched */
            sprinkle(&r, &c.memory, &c.args.q);
            sprinkle(&r, &c.memory, &c.args.k);
            sprinkle(&r, &c.memory, &c.args.weights);
        }
        mqa_logits_run(&c, ARCH_OF(_i), SCHEDULE_OF(_i), i % 2 ? 3 : 1000);
        mqa_logits_compare(&c.args);
        cases_free(&c.memory);
    }
    printf("# mqa_logits: error / bound up to %.3f\n", worst);
}
END_TEST

/* mqa_logits_paged
 * ----------------
 */
static void mqa_logits_paged_run(mqa_logits_paged_case *c, sim_arch arch, uint64_t schedule, int64_t most)
{
    rig                      r = rig_open(arch, schedule);
    mqa_logits_paged_problem p;
    ck_assert_ok(mqa_logits_paged_check(&c->args, &p));
    cases_poison_outputs(&c->memory);
    rig_copy_in(&r, &c->memory);
    RIG_MOVE(&r, &p.q, &p.k, &p.kv_scale, &p.weights, &p.context_lens, &p.block_tables, &p.logits);
    const mqa_logits_paged_omp args = mqa_logits_paged_omp_of(&p, most);
    rig_run(&r, "mqa_logits_paged_omp", &args, sizeof args, args.a.groups);
    rig_copy_out(&r);
    rig_close(&r);
}

static void mqa_logits_paged_compare(const etalon_mqa_logits_paged_args *args)
{
    twin_mqa_logits_result twin;
    twin_mqa_logits_paged(args, &twin);
    logits_compare(&args->logits, args->clean_logits, &twin);
}

START_TEST(mqa_logits_paged_within_bound)
{
    enum { CASES = TESTING_CASES(8, 4) };
    for (int i = 0; i < CASES; i++) {
        rng                   r = next_case(_i, i, 7);
        mqa_logits_paged_case c;
        if (i % 4 == 3)
            mqa_logits_paged_draw_far(&c, &r);
        else
            mqa_logits_paged_draw(&c, &r);
        if (i % 4 == 1) {
            c.args.clean_logits = 1; /* the twin says NaN for what stays untouched */
            sprinkle(&r, &c.memory, &c.args.q);
            sprinkle(&r, &c.memory, &c.args.weights);
            if (cases_count(&c.args.context_lens) > 0 && cases_get(&c.args.context_lens, 0) >= 1.0) {
                const etalon_tensor key = mqa_logits_paged_key(&c.args, 0, 0);
                sprinkle(&r, &c.memory, &key);
            }
        }
        mqa_logits_paged_run(&c, ARCH_OF(_i), SCHEDULE_OF(_i), i % 2 ? 3 : 1000);
        mqa_logits_paged_compare(&c.args);
        cases_free(&c.memory);
    }
    printf("# mqa_logits_paged: error / bound up to %.3f\n", worst);
}
END_TEST

/* Attention
 * ---------
 */
static void attention_compare(const etalon_tensor *out, const etalon_tensor *lse, twin_attention *twin)
{
    for (int64_t i = 0; i < cases_count(out); i++) {
        const int64_t token = i / twin->dv / twin->hq, head = i / twin->dv % twin->hq;
        if (!(twin->e[head * twin->t + token] > 0x1p-6)) /* the docstring states no bound beyond */
            within(cases_get(out, i), twin->out[i], twin->out_bound[i], "out", i, out->dtype == ETALON_F32);
    }
    for (int64_t i = 0; lse->data != NULL && i < cases_count(lse); i++)
        within(cases_get(lse, i), twin->lse[i], isinf(twin->lse[i]) ? 0.0 : twin->lse_bound[i], "lse", i, true);
    cases_written(out, "out");
    if (lse->data != NULL)
        cases_written(lse, "lse");
    twin_attention_free(twin);
}

/* How a call is cut: tasks that the plan aims at, workgroups at most. */
typedef struct cut {
    int64_t wanted, most;
} cut;

static void pa_mtp_run(pa_mtp_case *c, sim_arch arch, uint64_t schedule, cut by)
{
    rig            r = rig_open(arch, schedule);
    pa_mtp_problem p;
    ck_assert_ok(pa_mtp_check(&c->args, &p));
    cases_poison_outputs(&c->memory);
    rig_copy_in(&r, &c->memory);
    RIG_MOVE(&r, &p.q, &p.k, &p.v, &p.block_tables, &p.seq_lens, &p.cu_seqlens_q, &p.out, &p.lse, &p.descale.q,
             &p.descale.k, &p.descale.v);
    void *const work = sim_allocate(r.device, pa_mtp_omp_workspace(&p, by.wanted), "workspace");
    cases_require(work != NULL, "%s", sim_last_error());
    const pa_mtp_omp args = pa_mtp_omp_of(&p, (uint64_t)(uintptr_t)work, by.wanted, by.most);
    if (args.a.groups > 0) {
        rig_run(&r, "pa_mtp_plan_omp", &args, sizeof args, 1);
        rig_run(&r, "pa_mtp_omp", &args, sizeof args, args.a.groups);
        rig_run(&r, "pa_mtp_reduce_omp", &args, sizeof args, args.reduce_groups);
    }
    rig_copy_out(&r);
    rig_close(&r);
}

/* Few tasks on many workgroups, many on few. */
static const cut cuts[] = { { 1, 1000 }, { 64, 7 }, { 8, 1000 }, { 1000, 3 } };

enum { CUTS = sizeof cuts / sizeof cuts[0] };

static void pa_mtp_check_case(pa_mtp_case *c, int test, int number)
{
    twin_attention twin;
    pa_mtp_run(c, ARCH_OF(test), SCHEDULE_OF(test), cuts[number % CUTS]);
    twin_pa_mtp(&c->args, &twin);
    attention_compare(&c->args.out, &c->args.lse, &twin);
    cases_free(&c->memory);
}

START_TEST(pa_mtp_within_bound)
{
    enum { CASES = TESTING_CASES(12, 4) };
    for (int i = 0; i < CASES; i++) {
        rng         r = next_case(_i, i, 1);
        pa_mtp_case c;
        if (i % 3 == 2)
            pa_mtp_draw_far(&c, &r);
        else
            pa_mtp_draw(&c, &r);
        if (i % 4 == 1) {
            sprinkle(&r, &c.memory, &c.args.q);
            sprinkle(&r, &c.memory, &c.args.k_cache);
            sprinkle(&r, &c.memory, &c.args.v_cache);
        }
        pa_mtp_check_case(&c, _i, i);
    }
    printf("# pa_mtp: error / bound up to %.3f\n", worst);
}
END_TEST

static void fmha_varlen_run(fmha_varlen_case *c, sim_arch arch, uint64_t schedule, int64_t most)
{
    rig                 r = rig_open(arch, schedule);
    fmha_varlen_problem p;
    ck_assert_ok(fmha_varlen_check(&c->args, &p));
    cases_poison_outputs(&c->memory);
    rig_copy_in(&r, &c->memory);
    RIG_MOVE(&r, &p.q, &p.k, &p.v, &p.cu_seqlens_q, &p.cu_seqlens_k, &p.out, &p.lse, &p.descale.q, &p.descale.k,
             &p.descale.v);
    const fmha_varlen_omp args = fmha_varlen_omp_of(&p, most);
    rig_run(&r, "fmha_varlen_omp", &args, sizeof args, args.a.groups);
    rig_copy_out(&r);
    rig_close(&r);
}

START_TEST(fmha_varlen_within_bound)
{
    enum { CASES = TESTING_CASES(12, 4) };
    for (int i = 0; i < CASES; i++) {
        rng              r = next_case(_i, i, 2);
        fmha_varlen_case c;
        twin_attention   twin;
        if (i % 3 == 2)
            fmha_varlen_draw_far(&c, &r);
        else
            fmha_varlen_draw(&c, &r);
        if (i % 4 == 1) {
            sprinkle(&r, &c.memory, &c.args.q);
            sprinkle(&r, &c.memory, &c.args.k);
            sprinkle(&r, &c.memory, &c.args.v);
        }
        fmha_varlen_run(&c, ARCH_OF(_i), SCHEDULE_OF(_i), i % 2 ? 3 : 1000);
        twin_fmha_varlen(&c.args, &twin);
        attention_compare(&c.args.out, &c.args.lse, &twin);
        cases_free(&c.memory);
    }
    printf("# fmha_varlen: error / bound up to %.3f\n", worst);
}
END_TEST

/* Under a causal mask the first of four tokens sees 37 of 40 keys, so NaN in the others' K and V is no part of it; with
 * a window of 20, neither is NaN in the first keys, which nobody sees. */
START_TEST(pa_mtp_masked_nan_reaches_nothing)
{
    const int64_t   q_lens[] = { 4 }, k_lens[] = { 40 };
    attention_shape shape = { .b = 1,
                              .hq = 2,
                              .hkv = 1,
                              .dqk = 8,
                              .dv = 8,
                              .q_lens = q_lens,
                              .k_lens = k_lens,
                              .causal = 1,
                              .window_left = 21,
                              .page_size = 16 };
    for (int i = 0; i < 6; i++) { /* NaN in K or in V; FP8, by the machine's conversion or not, or BF16 */
        rng            r = next_case(0, i, 5);
        pa_mtp_case    c;
        twin_attention twin;
        shape.kv = i / 2 == 2 ? ETALON_BF16 : ETALON_E4M3FN;
        shape.dqk = shape.dv = i / 2 == 1 ? 16 : 8;
        pa_mtp_make(&c, &r, &shape);
        const etalon_tensor *cache = i % 2 == 0 ? &c.args.k_cache : &c.args.v_cache;
        const int64_t        keys[] = { 0, 15, 38 };
        for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++) {
            const etalon_tensor slot = pa_mtp_slot(&c.args, cache, 0, keys[k]);
            cases_poison(&slot);
        }
        cases_seal(&c.memory);
        pa_mtp_run(&c, (sim_arch)_i, (uint64_t)i, cuts[0]);
        twin_pa_mtp(&c.args, &twin);
        attention_compare(&c.args.out, &c.args.lse, &twin);
        ck_assert(isfinite(cases_get(&c.args.out, 0)));
        cases_free(&c.memory);
    }
}
END_TEST

/* What the machine's own conversion of 16 codes at a time serves, in one pass over the keys and in two. */
START_TEST(codes_within_bound)
{
    const int64_t         q_lens[] = { 3, 1 }, k_lens[] = { 300, 37 };
    const attention_shape shapes[] = {
        { .b = 2, .hq = 16, .hkv = 2, .dqk = 208, .dv = 192, .q = ETALON_BF16, .page_size = 16, .causal = 1 },
        { .b = 1, .hq = 5, .hkv = 1, .dqk = 288, .dv = 272, .q = ETALON_F32, .page_size = 64, .causal = 1 },
        { .b = 2, .hq = 2, .hkv = 1, .dqk = 16, .dv = 32, .q = ETALON_E4M3FN, .page_size = 1, .window_left = 200 },
    };
    enum { COUNT = sizeof shapes / sizeof shapes[0] };
    const int       i = SCHEDULE_OF(_i) % (COUNT + 1);
    rng             r = next_case(_i, i, 6);
    pa_mtp_case     attention;
    mqa_logits_case logits;
    if (i == COUNT) {
        mqa_logits_make(&logits, &r, 3, 300, 20, 144);
        sprinkle(&r, &logits.memory, &logits.args.k);
        mqa_logits_run(&logits, ARCH_OF(_i), SCHEDULE_OF(_i), 2);
        mqa_logits_compare(&logits.args);
        cases_free(&logits.memory);
        return;
    }
    attention_shape shape = shapes[i];
    shape.q_lens = q_lens;
    shape.k_lens = k_lens;
    shape.kv = ETALON_E4M3FN;
    shape.out = ETALON_F32;
    pa_mtp_make(&attention, &r, &shape);
    sprinkle(&r, &attention.memory, &attention.args.v_cache);
    pa_mtp_check_case(&attention, _i, i);
}
END_TEST

/* One plan on one workgroup and on many, under another schedule: the same bits. */
START_TEST(pa_mtp_has_the_same_bits_on_any_grid)
{
    enum { CASES = 2 };
    for (int i = 0; i < CASES; i++) {
        rng         r = next_case(0, i, 3);
        pa_mtp_case c;
        pa_mtp_draw_far(&c, &r);
        pa_mtp_run(&c, (sim_arch)_i, 0, (cut){ 16, 1 });
        uint32_t *first = cases_bits(&c.args.out);
        pa_mtp_run(&c, (sim_arch)_i, 3, (cut){ 16, 1000 });
        uint32_t *second = cases_bits(&c.args.out);
        ck_assert_mem_eq(first, second, sizeof *first * (size_t)cases_count(&c.args.out));
        free(first);
        free(second);
        cases_free(&c.memory);
    }
}
END_TEST

/* Every segment gives V = 1 its weight, small beside the hot key's or not: 16 k keys in one segment, and in many. */
START_TEST(pa_mtp_of_ones_is_one)
{
    const int64_t         q_lens[] = { 1 }, k_lens[] = { 16384 };
    const attention_shape shape = {
        .b = 1, .hq = 2, .hkv = 1, .dqk = 8, .dv = 4, .q_lens = q_lens, .k_lens = k_lens, .spread = 4.0, .page_size = 64
    };
    rng         r = next_case(0, 0, 4);
    pa_mtp_case c;
    pa_mtp_make(&c, &r, &shape);
    cases_fill(&c.args.v_cache, 1.0);
    cases_seal(&c.memory);
    for (int i = 0; i < 2; i++) { /* one segment, and many */
        twin_attention twin;
        pa_mtp_run(&c, (sim_arch)_i, (uint64_t)i, cuts[i]);
        twin_pa_mtp(&c.args, &twin);
        attention_compare(&c.args.out, &c.args.lse, &twin);
        for (int64_t n = 0; n < cases_count(&c.args.out); n++)
            within(cases_get(&c.args.out, n), 1.0, twin_gamma(160), "out of ones", n, true);
    }
    cases_free(&c.memory);
}
END_TEST

static void fill(TCase *t)
{
    enum { BOTH = SIM_ARCHS * SCHEDULES };
    tcase_add_loop_test(t, mqa_logits_within_bound, 0, BOTH);
    tcase_add_loop_test(t, mqa_logits_paged_within_bound, 0, BOTH);
    tcase_add_loop_test(t, pa_mtp_within_bound, 0, BOTH);
    tcase_add_loop_test(t, fmha_varlen_within_bound, 0, BOTH);
    tcase_add_loop_test(t, codes_within_bound, 0, BOTH);
    tcase_add_loop_test(t, pa_mtp_masked_nan_reaches_nothing, 0, SIM_ARCHS);
    tcase_add_loop_test(t, pa_mtp_has_the_same_bits_on_any_grid, 0, SIM_ARCHS);
    tcase_add_loop_test(t, pa_mtp_of_ones_is_one, 0, SIM_ARCHS);
}

int main(void)
{
    return testing_main("hip", fill);
}
