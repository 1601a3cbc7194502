/* The gfx950 kernels of mqa_logits on the simulator: every layout of windows, clean or not, with all checks and under
 * several schedules, against the float64 twin within the docstring's bound and to the element where nothing is seen.
 *
 *   ETALON_SEED=N check_mqa_logits_gfx950    replays; a failure names the seed and the case
 *
 * The code objects are the library's, in the directory that ETALON_HIP_KERNELS names.
 */
#include "cases.h"
#include "testing.h"
#include "twin.h"

#include "mqa_logits_gfx950.h"
#include "sim.h"

#include <inttypes.h>
#include <math.h>

/* Kernels
 * -------
 */
static const struct kernel {
    const char *stem;
    int64_t     heads;
    bool        small;
} kernels[] = { { "mqa_logits_e4m3_h32_d128_gfx950", 32, false },
                { "mqa_logits_e4m3_h32_d128_small_gfx950", 32, true },
                { "mqa_logits_e4m3_h64_d128_gfx950", 64, false },
                { "mqa_logits_e4m3_h64_d128_small_gfx950", 64, true } };

enum { KERNELS = sizeof kernels / sizeof kernels[0] };

/* A device with the tensors of one case
 * -------------------------------------
 */
typedef struct rig {
    sim_device   *device;
    sim_object   *object;
    cases_memory *memory;
    void         *block[CASES_BLOCKS];
} rig;

static sim_object *load(sim_device *device, const char *stem)
{
    char        path[4096];
    const char *directory = getenv("ETALON_HIP_KERNELS");
    ck_assert_msg(directory != NULL, "ETALON_HIP_KERNELS is not set");
    snprintf(path, sizeof path, "%s/%s.gfx950.co", directory, stem);
    FILE *from = fopen(path, "rb");
    ck_assert_msg(from != NULL, "cannot open %s", path);
    ck_assert_int_eq(fseek(from, 0, SEEK_END), 0);
    const size_t size = (size_t)ftell(from);
    void        *bytes = malloc(size);
    rewind(from);
    ck_assert_uint_eq(fread(bytes, 1, size, from), size);
    fclose(from);
    sim_object *object = sim_object_load(device, bytes, size);
    ck_assert_msg(object != NULL, "%s: %s", path, sim_last_error());
    free(bytes);
    return object;
}

static rig rig_open(cases_memory *memory, const char *stem, uint64_t schedule)
{
    const sim_options options = { .checks = SIM_CHECK_ALL, .seed = schedule };
    rig               r = { .device = sim_device_create(SIM_GFX950, &options), .memory = memory };
    cases_require(r.device != NULL, "%s", sim_last_error());
    r.object = load(r.device, stem);
    for (int i = 0; i < memory->count; i++) {
        const cases_block *b = &memory->block[i];
        r.block[i] = sim_allocate(r.device, b->bytes > 0 ? b->bytes : 1, "tensor");
        cases_require(r.block[i] != NULL, "%s", sim_last_error());
        memcpy(r.block[i], b->data, b->bytes);
        const int64_t count = b->role == CASES_INPUT ? cases_count(&b->view) : 0;
        for (int64_t e = 0; e < count; e++)
            sim_mark_written(r.device, (char *)r.block[i] + ((unsigned char *)cases_at(&b->view, e) - b->data),
                             etalon_dtype_bytes(b->view.dtype));
    }
    return r;
}

static void rig_close(rig *r)
{
    for (int i = 0; i < r->memory->count; i++)
        memcpy(r->memory->block[i].data, r->block[i], r->memory->block[i].bytes);
    cases_verify(r->memory);
    sim_object_unload(r->object);
    sim_device_destroy(r->device);
}

static void rig_move(const rig *r, etalon_tensor *t)
{
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

static void rig_run(const rig *r, const struct kernel *k, const mqa_logits_gfx950 *args)
{
    char          name[96];
    unsigned char kernarg[1024] = { 0 };
    const int     items = 64 * (k->small ? MQA_LOGITS_GFX950_SMALL_WAVES : MQA_LOGITS_GFX950_WAVES);
    snprintf(name, sizeof name, "etalon_%s", k->stem);
    sim_dispatch d = { .kernel = sim_object_kernel(r->object, name),
                       .grid = { (uint32_t)(args->groups * items), 1, 1 },
                       .group = { (uint32_t)items, 1, 1 },
                       .kernarg = kernarg };
    ck_assert_msg(d.kernel != NULL, "%s: %s", name, sim_last_error());
    d.kernarg_bytes = d.kernel->kernarg_bytes;
    ck_assert_uint_le(d.kernarg_bytes, sizeof kernarg);
    memcpy(kernarg, args, sizeof *args);
    sim_kernarg_fill(&d, kernarg);
    cases_require(sim_run(r->device, &d), "ETALON_SEED=%" PRIu64 ": %s: %s", cases_seed(), k->stem, sim_last_error());
    for (uint32_t i = 0; i < sim_finding_count(r->device); i++)
        sim_print_finding(stderr, sim_finding_at(r->device, i));
    cases_require(sim_finding_count(r->device) == 0, "ETALON_SEED=%" PRIu64 ": %s: findings", cases_seed(), k->stem);
}

/* Into the case's output, which begins poisoned. */
static void run(mqa_logits_case *c, const struct kernel *k, uint64_t schedule, int32_t groups)
{
    mqa_logits_problem p;
    ck_assert_ok(mqa_logits_check(&c->args, &p));
    cases_poison_outputs(&c->memory);
    rig                  r = rig_open(&c->memory, k->stem, schedule);
    etalon_tensor *const tensors[] = { &p.q, &p.k, &p.kv_scale, &p.weights, &p.ks, &p.ke, &p.logits };
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++)
        rig_move(&r, tensors[i]);
    const mqa_logits_gfx950 args = mqa_logits_gfx950_of(&p, 0, p.m, groups);
    rig_run(&r, k, &args);
    rig_close(&r);
}

/* Problems
 * --------
 */
static const char *const layouts[] = { "all keys", "causal",   "context-parallel", "misaligned",
                                       "empty",    "past_end", "multi_req",        "sliding" };

enum { LAYOUTS = sizeof layouts / sizeof layouts[0] };

static void window_of(int layout, int64_t row, int64_t m, int64_t n, rng *r, int64_t *first, int64_t *last)
{
    const int64_t of = m > 4 ? m / 4 : 1, request = row / of;
    *first = 0;
    *last = n;
    switch (layout) {
    case 1:
        *last = n - m + row + 1;
        break;
    case 2:
        *last = (row < m / 2 ? row : n - m + row) + 1;
        break;
    case 3:
        *first = rng_between(r, 0, n / 2), *last = rng_between(r, *first, n);
        break;
    case 4:
        *last = row % 2 == 0 ? n - row : row % 3 == 0 ? -5 : 0;
        break;
    case 5:
        *first = row % 3 == 0 ? -7 : n - 9 * row, *last = n + row * 3;
        break;
    case 6:
        *first = request * n / 5, *last = *first + row % of + n / 5;
        break;
    case 7:
        *last = n - m + row + 1, *first = *last - 40;
        break;
    default:
        break;
    }
}

static void set_windows(mqa_logits_case *c, int layout, rng *r)
{
    const int64_t m = c->args.q.shape[0], n = c->args.k.shape[0];
    for (int64_t row = 0; row < m; row++) {
        int64_t first, last;
        window_of(layout, row, m, n, r, &first, &last);
        cases_set(&c->args.cu_seqlen_ks, row, (double)first);
        cases_set(&c->args.cu_seqlen_ke, row, (double)last);
    }
    cases_seal(&c->memory);
}

static double worst;

static void compare(const etalon_mqa_logits_args *args, const char *what)
{
    twin_mqa_logits_result twin;
    twin_mqa_logits(args, &twin);
    for (int64_t i = 0; i < twin.m * twin.n; i++) {
        const double        got = cases_get(&args->logits, i), want = twin.logits[i];
        const etalon_tensor cell = cases_cut(cases_fix(args->logits, 0, i / twin.n), 0, i % twin.n, 1);
        if (isnan(want) && !args->clean_logits) {
            cases_untouched(&cell, what);
            continue;
        }
        if (isnan(want) && isnan(got))
            continue;
        const double error = got == want ? 0.0 : fabs(got - want), bound = isinf(want) ? 0.0 : twin.bound[i];
        cases_require(error <= bound,
                      "ETALON_SEED=%" PRIu64 ": %s: logits[%" PRId64 ", %" PRId64 "]: %.9g, twin %.9g, bound %.3g",
                      cases_seed(), what, i / twin.n, i % twin.n, got, want, bound);
        if (bound > 0.0 && error / bound > worst)
            worst = error / bound;
    }
    twin_mqa_logits_free(&twin);
}

/* Every kernel, layout and way to leave what is not seen; a schedule each. */
START_TEST(windows)
{
    const struct kernel *k = &kernels[_i / (2 * LAYOUTS)];
    const int            layout = _i / 2 % LAYOUTS, clean = _i % 2;
    rng                  r = rng_make(cases_seed(), (uint64_t)_i);
    char                 what[128];
    snprintf(what, sizeof what, "%s, %s, %s", k->stem, layouts[layout], clean ? "clean" : "not clean");
    mqa_logits_case c;
    const int64_t   m = rng_between(&r, 1, 40), n = rng_between(&r, m + 50, m + 500);
    mqa_logits_make(&c, &r, m, n, k->heads, MQA_LOGITS_GFX950_DIM);
    c.args.clean_logits = clean;
    set_windows(&c, layout, &r);
    run(&c, k, (uint64_t)(_i % 8), _i % 3 == 0 ? 8 : 16);
    compare(&c.args, what);
    printf("# %s: error / bound up to %.3f\n", what, worst);
    cases_free(&c.memory);
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_loop_test(t, windows, 0, KERNELS * LAYOUTS * 2);
}

int main(void)
{
    return testing_main("check_mqa_logits_gfx950", fill);
}
