/* The gfx950 kernels of mqa_logits on the simulator: every layout of windows, clean or not, with all checks and under
 * several schedules, against the float64 twin within the docstring's bound and to the element where nothing is seen.
 *
 *   ETALON_SEED=N check_mqa_logits_gfx950    replays; a failure names the seed and the case
 *
 *   check_mqa_logits_gfx950 STEM OBJECT...
 *
 * runs those objects in place of the kernel's and prints a line for each, "ok" or what shows that it is broken: a driver
 * for tests/mutate.py.
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
#include <sys/wait.h>
#include <unistd.h>

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

static const char *other_object; /* than the library's */
static uint64_t    limit;        /* of instructions that a wave of it may execute; 0: the simulator's */

static sim_object *load(sim_device *device, const char *stem)
{
    char        path[4096];
    const char *directory = getenv("ETALON_HIP_KERNELS");
    ck_assert_msg(directory != NULL || other_object != NULL, "ETALON_HIP_KERNELS is not set");
    snprintf(path, sizeof path, "%s/%s.gfx950.co", directory, stem);
    if (other_object != NULL)
        snprintf(path, sizeof path, "%s", other_object);
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

static rig rig_open(cases_memory *memory, const char *stem, const sim_options *options)
{
    rig r = { .device = sim_device_create(SIM_GFX950, options), .memory = memory };
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

/* `report`: what the simulator counted and estimates, to be freed. */
static void rig_run(const rig *r, const struct kernel *k, const mqa_logits_gfx950 *args, char **report)
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
    if (report == NULL)
        return;
    size_t bytes;
    FILE  *to = open_memstream(report, &bytes);
    sim_print_report(to, r->device, true);
    fclose(to);
}

/* Into the case's output, which begins poisoned. */
static void run_reported(mqa_logits_case *c, const struct kernel *k, const sim_options *options, int32_t groups,
                         char **report)
{
    mqa_logits_problem p;
    ck_assert_ok(mqa_logits_check(&c->args, &p));
    cases_poison_outputs(&c->memory);
    rig                  r = rig_open(&c->memory, k->stem, options);
    etalon_tensor *const tensors[] = { &p.q, &p.k, &p.kv_scale, &p.weights, &p.ks, &p.ke, &p.logits };
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++)
        rig_move(&r, tensors[i]);
    const mqa_logits_gfx950 args = mqa_logits_gfx950_of(&p, 0, p.m, groups);
    rig_run(&r, k, &args, report);
    rig_close(&r);
}

static void run(mqa_logits_case *c, const struct kernel *k, uint64_t schedule, int32_t groups)
{
    const sim_options options = { .checks = SIM_CHECK_ALL, .seed = schedule, .limit = limit };
    run_reported(c, k, &options, groups, NULL);
}

/* Problems
 * --------
 */
enum {
    ALL_KEYS,
    CAUSAL,
    CONTEXT_PARALLEL,
    MISALIGNED,
    EMPTY,
    PAST_END,
    MULTI_REQUEST,
    SLIDING,
    PREFIX,
    SPARSE,
    LAYOUTS
};

static const char *const layouts[LAYOUTS] = { "all keys", "causal",    "context-parallel", "misaligned", "empty",
                                              "past_end", "multi_req", "sliding",          "prefix",     "sparse" };

static void window_of(int layout, int64_t row, int64_t m, int64_t n, rng *r, int64_t *first, int64_t *last)
{
    const int64_t of = m > 4 ? m / 4 : 1, request = row / of;
    *first = 0;
    *last = n;
    switch (layout) {
    case CAUSAL:
        *last = n - m + row + 1;
        break;
    case CONTEXT_PARALLEL:
        *last = (row < m / 2 ? row : n - m + row) + 1;
        break;
    case MISALIGNED:
        *first = rng_between(r, 0, n / 2), *last = rng_between(r, *first, n);
        break;
    case EMPTY:
        *last = row % 2 == 0 ? n - row : row % 3 == 0 ? -5 : 0;
        break;
    case PAST_END:
        *first = row % 3 == 0 ? -7 : n - 9 * row, *last = n + row * 3;
        break;
    case MULTI_REQUEST:
        *first = request * n / 5, *last = *first + row % of + n / 5;
        break;
    case SLIDING:
        *last = n - m + row + 1, *first = *last - 40;
        break;
    case PREFIX:
        *last = (m - 1 - row) % 7 == 0 ? 40 : 0;
        break;
    case SPARSE:
        *last = row == 70 || row >= m - 2 ? n : 0;
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
    static const int32_t groups[3] = { 1, 3, 16 };
    char                 what[128];
    snprintf(what, sizeof what, "%s, %s, %s", k->stem, layouts[layout], clean ? "clean" : "not clean");
    mqa_logits_case c;
    const int64_t   m = rng_between(&r, 1, 40), n = rng_between(&r, m + 50, m + 500);
    mqa_logits_make(&c, &r, m, n, k->heads, MQA_LOGITS_GFX950_DIM);
    c.args.clean_logits = clean;
    set_windows(&c, layout, &r);
    run(&c, k, (uint64_t)(_i % 8), groups[_i % 3]);
    compare(&c.args, what);
    printf("# %s: error / bound up to %.3f\n", what, worst);
    cases_free(&c.memory);
}
END_TEST

/* A case of the kernel's heads with these windows. */
static void make(mqa_logits_case *c, rng *r, const struct kernel *k, int64_t m, int64_t n, int layout, int clean)
{
    mqa_logits_make(c, r, m, n, k->heads, MQA_LOGITS_GFX950_DIM);
    c->args.clean_logits = clean;
    set_windows(c, layout, r);
}

/* The same bits under every schedule, in every repeat, and however many workgroups share the call. */
START_TEST(repeats)
{
    enum { REPEATS = 20, SHARES = 3 };
    static const int32_t groups[SHARES] = { 1, 2, 24 };
    const struct kernel *k = &kernels[_i];
    rng                  r = rng_make(cases_seed(), (uint64_t)(1000 + _i));
    mqa_logits_case      c;
    uint32_t            *first = NULL;
    make(&c, &r, k, 11, 700, 1, _i % 2); /* eleven tiles, most of them seen by all rows */
    const int64_t count = cases_count(&c.args.logits);
    for (int i = 0; i < TESTING_CASES(REPEATS, 4); i++) {
        run(&c, k, (uint64_t)(i % 8), groups[i / 8 % SHARES]);
        uint32_t *const bits = cases_bits(&c.args.logits);
        for (int64_t e = 0; first != NULL && e < count; e++)
            cases_require(bits[e] == first[e], "%s: repeat %d: element %" PRId64 ": 0x%08x, first 0x%08x", k->stem, i,
                          e, bits[e], first[e]);
        if (first == NULL)
            first = bits;
        else
            free(bits);
    }
    compare(&c.args, k->stem);
    free(first);
    cases_free(&c.memory);
}
END_TEST

/* DeepGEMM's measure, against the reference in fp32. */
START_TEST(calc_diff)
{
    const struct kernel *k = &kernels[_i];
    rng                  r = rng_make(cases_seed(), (uint64_t)(2000 + _i));
    mqa_logits_case      c;
    double               xy = 0.0, squares = 0.0;
    make(&c, &r, k, 33, 450, 1, 1);
    run(&c, k, 0, 8);
    const int64_t count = cases_count(&c.args.logits);
    double       *got = malloc((size_t)count * sizeof *got);
    for (int64_t i = 0; i < count; i++)
        got[i] = cases_get(&c.args.logits, i);
    c.args.kernel = "mqa_logits_ref";
    cases_poison_outputs(&c.memory);
    ck_assert_ok(cases_run_mqa_logits(&c.args, 1));
    for (int64_t i = 0; i < count; i++) {
        const double want = cases_get(&c.args.logits, i);
        cases_require(isinf(want) == isinf(got[i]), "%s: element %" PRId64 ": %g, reference %g", k->stem, i, got[i],
                      want);
        if (isinf(want))
            continue;
        xy += got[i] * want;
        squares += got[i] * got[i] + want * want;
    }
    const double diff = 1.0 - 2.0 * xy / squares;
    printf("# %s: calc_diff %.3g\n", k->stem, diff);
    ck_assert_msg(diff < 5e-6, "%s: calc_diff %g", k->stem, diff);
    free(got);
    cases_free(&c.memory);
}
END_TEST

/* Rows with gaps between, an output wider than N, I64 windows and scales that stand apart. What lies in the gaps is NaN
 * in inputs, and stays as it was in the output. */
static etalon_tensor wide(cases_memory *memory, cases_role role, etalon_dtype dtype, int32_t rank, const int64_t *shape,
                          const int64_t *gap)
{
    int64_t room[3];
    for (int32_t d = 0; d < rank; d++)
        room[d] = shape[d] + gap[d];
    etalon_tensor t = cases_tensor(memory, NULL, role, dtype, rank, room);
    for (int32_t d = 0; d < rank; d++)
        t = cases_cut(t, d, 0, shape[d]);
    return t;
}

static void widen(mqa_logits_case *c, const mqa_logits_case *dense)
{
    const int64_t m = dense->args.q.shape[0], n = dense->args.k.shape[0];
    *c = (mqa_logits_case){ .args = dense->args };
#define WIDE(field, role, rank, ...) \
    c->args.field =                  \
        wide(&c->memory, role, dense->args.field.dtype, rank, dense->args.field.shape, (int64_t[]){ __VA_ARGS__ })
    WIDE(q, CASES_INPUT, 3, 0, 3, 16);
    WIDE(k, CASES_INPUT, 2, 0, 48);
    WIDE(weights, CASES_INPUT, 2, 1, 5);
    WIDE(logits, CASES_OUTPUT, 2, 2, 61);
#undef WIDE
    const int64_t two[2] = { n, 3 }, rows[2] = { m, 2 };
    c->args.kv_scale = cases_fix(cases_tensor(&c->memory, NULL, CASES_INPUT, ETALON_F32, 2, two), 1, 1);
    c->args.cu_seqlen_ks = cases_fix(cases_tensor(&c->memory, NULL, CASES_INPUT, ETALON_I64, 2, rows), 1, 0);
    c->args.cu_seqlen_ke = cases_fix(cases_tensor(&c->memory, NULL, CASES_INPUT, ETALON_I64, 2, rows), 1, 1);
    cases_copy(&c->args.q, &dense->args.q);
    cases_copy(&c->args.k, &dense->args.k);
    cases_copy(&c->args.kv_scale, &dense->args.kv_scale);
    cases_copy(&c->args.weights, &dense->args.weights);
    for (int64_t row = 0; row < m; row++) {
        cases_set(&c->args.cu_seqlen_ks, row, cases_get(&dense->args.cu_seqlen_ks, row) - (row % 5 == 0 ? 1e12 : 0.0));
        cases_set(&c->args.cu_seqlen_ke, row, cases_get(&dense->args.cu_seqlen_ke, row));
    }
    cases_seal(&c->memory);
}

static void gaps_untouched(const mqa_logits_case *c)
{
    const int64_t m = c->args.q.shape[0], n = c->args.k.shape[0];
    for (int i = 0; i < c->memory.count; i++) {
        const cases_block *b = &c->memory.block[i];
        if (b->role != CASES_OUTPUT)
            continue;
        const etalon_tensor beyond = cases_cut(b->view, 1, n, b->view.shape[1] - n),
                            below = cases_cut(b->view, 0, m, b->view.shape[0] - m);
        cases_untouched(&beyond, "beyond column N");
        cases_untouched(&below, "below row M");
    }
}

START_TEST(strides)
{
    const struct kernel *k = &kernels[_i / 2];
    rng                  r = rng_make(cases_seed(), (uint64_t)(3000 + _i));
    mqa_logits_case      dense, c;
    make(&dense, &r, k, 35, 203, 3, _i % 2);
    widen(&c, &dense);
    run(&c, k, (uint64_t)(_i % 8), 8);
    compare(&c.args, k->stem);
    gaps_untouched(&c);
    cases_free(&c.memory);
    cases_free(&dense.memory);
}
END_TEST

/* NaN in a key, a scale, a query, a weight: in what sees it, and nowhere else. */
START_TEST(nan_stays)
{
    const struct kernel *k = &kernels[_i / 4];
    const int            kind = _i % 4;
    rng                  r = rng_make(cases_seed(), (uint64_t)(4000 + _i));
    mqa_logits_case      c;
    make(&c, &r, k, 9, 150, 3, 1);
    etalon_tensor *const tensors[4] = { &c.args.k, &c.args.kv_scale, &c.args.q, &c.args.weights };
    etalon_tensor        element = *tensors[kind];
    element.data = cases_at(&element, rng_below(&r, cases_count(&element)));
    element.rank = 0;
    if (element.dtype == ETALON_E4M3FN)
        cases_poison(&element);
    else
        cases_set(&element, 0, (double)NAN);
    cases_seal(&c.memory);
    run(&c, k, (uint64_t)(_i % 8), 8);
    twin_mqa_logits_result twin;
    twin_mqa_logits(&c.args, &twin);
    for (int64_t i = 0; i < twin.m * twin.n; i++)
        cases_require(isnan(twin.logits[i]) == isnan(cases_get(&c.args.logits, i)),
                      "%s: element %" PRId64 ": %g, twin %g", k->stem, i, cases_get(&c.args.logits, i), twin.logits[i]);
    twin_mqa_logits_free(&twin);
    cases_free(&c.memory);
}
END_TEST

/* Tile edges, one row and one key, more workgroups than tiles, more blocks than workgroups. */
START_TEST(edges)
{
    enum { MANY = -1 }; /* more blocks than are cut one by one */
    static const struct {
        int64_t m, n;
        int32_t groups;
    } shapes[] = { { 1, 1, 8 },    { 1, 64, 16 },   { 2, 65, 8 },   { 4, 127, 64 },  { 5, 128, 8 }, { 16, 31, 8 },
                   { 17, 33, 24 }, { 33, 63, 8 },   { 300, 40, 8 }, { 1, 1500, 64 }, { 8, 900, 8 }, { 31, 320, 8 },
                   { 32, 1, 8 },   { 260, 70, 16 }, { 3, 449, 8 },  { MANY, 20, 40 } };
    enum { SHAPES = sizeof shapes / sizeof shapes[0] };
    const struct kernel *k = &kernels[_i];
    const int64_t        many = MQA_LOGITS_GRID_FEW * mqa_logits_gfx950_block(k->heads, k->small) + 1;
    for (int i = 0; i < (k->small ? SHAPES : SHAPES - 1); i++) { /* the last one takes its time */
        rng             r = rng_make(cases_seed(), (uint64_t)(5000 + 100 * _i + i));
        mqa_logits_case c;
        make(&c, &r, k, shapes[i].m == MANY ? many : shapes[i].m, shapes[i].n, i % 3 == 2 ? 1 : 0, i % 2);
        run(&c, k, (uint64_t)(i % 8), shapes[i].groups);
        compare(&c.args, k->stem);
        cases_free(&c.memory);
    }
}
END_TEST

/* Counts
 * ------
 */
/* The number behind `label`. */
static double number_of(const char *report, const char *label)
{
    const char *at = strstr(report, label);
    ck_assert_msg(at != NULL, "no \"%s\" in:\n%s", label, report);
    return strtod(at + strlen(label), NULL);
}

/* Bytes that copies to LDS read: the sixth column of their rows. */
static int64_t copied(const char *report)
{
    int64_t sum = 0;
    for (const char *line = report; line != NULL; line = strchr(line, '\n')) {
        const char *end = strchr(++line, '\n'), *copy = strstr(line, "global_load_lds");
        long long   executed, cycles, conflicts, bytes;
        unsigned    pc;
        if (copy != NULL && (end == NULL || copy < end) &&
            sscanf(line, "%x %lld %lld %lld %lld", &pc, &executed, &cycles, &conflicts, &bytes) == 5)
            sum += bytes;
    }
    return sum;
}

/* Every key once for a block of rows, no bank conflict to speak of, and 16 relu a cycle and CU or more: 64 tiles for a
 * workgroup, a quarter of its share of 4096 rows and 32768 keys. */
START_TEST(counts)
{
    const struct kernel *k = &kernels[_i];
    const int64_t        rows = mqa_logits_gfx950_block(k->heads, k->small), n = TESTING_CASES(2048, 1024);
    const sim_options    options = { .counters = true };
    rng                  r = rng_make(cases_seed(), (uint64_t)(6000 + _i));
    mqa_logits_case      c;
    char                *report;
    mqa_logits_make(&c, &r, 2 * rows, n, k->heads, MQA_LOGITS_GFX950_DIM);
    const int64_t keys = c.args.k.shape[0];
    run_reported(&c, k, &options, 1, &report);
    ck_assert_int_eq(copied(report), 2 * keys * (MQA_LOGITS_GFX950_DIM + 4));
    const double conflicts = number_of(strstr(report, "\nLDS: "), "bytes,"), lds = number_of(report, "\nLDS: ");
    ck_assert_msg(conflicts * 128.0 < 0.01 * lds, "%s: %g cycles of bank conflicts", k->stem, conflicts);
    const double cycles = number_of(report, "estimate, not a measurement:") * 2400.0;
    const double rate = (double)(2 * rows * keys * k->heads) / cycles;
    printf("# %s: %.1f relu a cycle and CU, by the simulator's estimate\n", k->stem, rate);
    ck_assert_msg(rate >= 16.0, "%s: %g relu a cycle and CU", k->stem, rate);
    free(report);
    cases_free(&c.memory);
}
END_TEST

/* What the compiler made of it: registers, no spills, and a loop as it was written. */
START_TEST(code)
{
    const struct kernel *k = &kernels[_i];
    const sim_options    options = { 0 };
    char                 name[96], *text;
    size_t               bytes;
    sim_device          *device = sim_device_create(SIM_GFX950, &options);
    sim_object          *object = load(device, k->stem);
    snprintf(name, sizeof name, "etalon_%s", k->stem);
    const sim_kernel *kernel = sim_object_kernel(object, name);
    ck_assert_uint_eq(kernel->scratch_bytes, 0);
    ck_assert_uint_le(kernel->vgprs + kernel->agprs, 256);
    ck_assert_uint_le((k->small ? 2 : 1) * kernel->lds_bytes, 160 * 1024);
    FILE *to = open_memstream(&text, &bytes);
    ck_assert(sim_disassemble(to, object, name));
    fclose(to);
    /* The way through a tile that all rows see: ten products of a step's first half, sixteen in all, and between them
     * nothing but what is meant to be there. */
    int         products = 0, others = 0, relu = 0, add = 0;
    const char *line = text;
    ck_assert_ptr_null(strstr(text, "v_pk_fma"));
    ck_assert_ptr_null(strstr(text, "v_accvgpr"));
    ck_assert_ptr_null(strstr(text, "scratch_"));
    for (; (line = strstr(line, "s_setprio 1")) != NULL;) {
        const char *end = strstr(line, "s_cmp_ge_i32"), *nop = strstr(line, "s_nop");
        ck_assert_ptr_nonnull(end);
        ck_assert_msg(nop == NULL || nop > end, "%s: s_nop in the loop:\n%.600s", k->stem, line);
        for (; line < end; line = strchr(line, '\n') + 1) {
            char op[64] = "";
            sscanf(line, "%*x %63s", op);
            products += strncmp(op, "v_mfma_", 7) == 0;
            relu += strncmp(op, "v_maximum3_f32", 14) == 0;
            add += strncmp(op, "v_fmac_f32", 10) == 0 || strncmp(op, "v_mul_f32", 9) == 0;
            others += op[0] == 'v' && strncmp(op, "v_mfma_", 7) != 0 && strncmp(op, "v_maximum3_f32", 14) != 0 &&
                      strncmp(op, "v_fmac_f32", 10) != 0 && strncmp(op, "v_mul_f32", 9) != 0;
        }
    }
    const int pairs = (int)(MQA_LOGITS_GFX950_WAVE_HEADS / k->heads / 2); /* all but the last are added up on the way */
    ck_assert_int_eq(products, 2 * 8);
    ck_assert_int_eq(relu, 2 * 64);
    ck_assert_int_eq(add, 2 * (64 + pairs - 1));
    ck_assert_int_eq(others, 2 * 2 * (pairs - 1));
    free(text);
    sim_object_unload(object);
    sim_device_destroy(device);
}
END_TEST

/* The table of doc/KERNELS.md says how a workgroup is made up. */
START_TEST(documented)
{
    const struct kernel *k = &kernels[_i];
    const char          *root = getenv("top_srcdir");
    char                 path[4096], line[1024], label[128];
    unsigned             rows = 0, waves = 0;
    snprintf(label, sizeof label, "| `%s` |", k->stem);
    snprintf(path, sizeof path, "%s/doc/KERNELS.md", root == NULL ? "." : root);
    FILE *from = fopen(path, "r");
    ck_assert_ptr_nonnull(from);
    while (fgets(line, sizeof line, from) != NULL)
        if (strncmp(line, label, strlen(label)) == 0)
            ck_assert_int_eq(sscanf(line + strlen(label), "%u |%u |", &rows, &waves), 2);
    fclose(from);
    ck_assert_int_eq(rows, mqa_logits_gfx950_block(k->heads, k->small));
    ck_assert_uint_eq(waves, k->small ? MQA_LOGITS_GFX950_SMALL_WAVES : MQA_LOGITS_GFX950_WAVES);
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_loop_test(t, windows, 0, KERNELS * LAYOUTS * 2);
    tcase_add_loop_test(t, repeats, 0, KERNELS);
    tcase_add_loop_test(t, calc_diff, 0, KERNELS);
    tcase_add_loop_test(t, strides, 0, KERNELS * 2);
    tcase_add_loop_test(t, nan_stays, 0, KERNELS * 4);
    tcase_add_loop_test(t, edges, 0, KERNELS);
    tcase_add_loop_test(t, counts, 0, KERNELS);
    tcase_add_loop_test(t, code, 0, KERNELS);
    tcase_add_loop_test(t, documented, 0, KERNELS);
}

/* Mutants
 * -------
 * A process each, which ends as it likes. The cases make every branch of the kernels run, cheap and telling ones first.
 */
static const struct kernel *driven;

typedef struct drive_case {
    int64_t  blocks, rows, n; /* M: so many blocks and rows more */
    int      layout, clean, wide;
    int32_t  groups;
    uint64_t schedule;
} drive_case;

static void drive_one(const struct kernel *k, const drive_case *d, int i)
{
    rng             r = rng_make(cases_seed(), (uint64_t)(7000 + i));
    mqa_logits_case dense, c;
    make(&dense, &r, k, d->blocks * mqa_logits_gfx950_block(k->heads, k->small) + d->rows, d->n, d->layout, d->clean);
    if (d->wide)
        widen(&c, &dense);
    else
        c = dense;
    run(&c, k, d->schedule, d->groups);
    compare(&c.args, k->stem);
    if (d->wide) {
        gaps_untouched(&c);
        cases_free(&dense.memory);
    }
    cases_free(&c.memory);
}

START_TEST(drive)
{
    enum { NARROW, WIDE, KEEP = 0, CLEAN };
    static const drive_case cases[] = {
        /* a part of a block; the line, cut in what all rows see, in what is filled behind keys, and before them */
        { 0, 9, 230, CAUSAL, CLEAN, NARROW, 1, 3 },
        { 3, 0, 200, CAUSAL, CLEAN, NARROW, 2, 1 },
        { 4, 0, 1500, PREFIX, CLEAN, NARROW, 3, 1 },
        { 2, 1, 300, SLIDING, CLEAN, NARROW, 2, 1 },
        /* filled by who multiplies; the last tile, not a whole one, in each place of LDS as it is first filled */
        { 1, 0, 300, SLIDING, CLEAN, NARROW, 1, 1 },
        { 0, 2, 20, ALL_KEYS, KEEP, WIDE, 1, 1 },
        { 0, 2, 100, ALL_KEYS, CLEAN, NARROW, 1, 3 },
        { 0, 2, 150, ALL_KEYS, KEEP, NARROW, 1, 5 },
        { 0, 2, 300, CAUSAL, CLEAN, WIDE, 1, 7 },
        /* every count of tile_wait(): no half stored by all lanes, then all of them */
        { 0, 2, 830, EMPTY, KEEP, NARROW, 1, 1 },
        { 1, 0, 830, ALL_KEYS, KEEP, NARROW, 1, 5 },
        { 1, 0, 896, ALL_KEYS, KEEP, NARROW, 1, 3 },
        /* parts that begin and end anywhere, more of them than tiles, fewer workgroups than blocks */
        { 0, 17, 200, MISALIGNED, KEEP, NARROW, 12, 1 },
        { 0, 17, 330, MISALIGNED, CLEAN, NARROW, 3, 0 },
        { 2, 3, 330, MISALIGNED, CLEAN, WIDE, 4, 1 },
        { 1, 3, 330, MISALIGNED, CLEAN, WIDE, 14, 3 },
        { 3, 3, 100, MULTI_REQUEST, CLEAN, NARROW, 9, 1 },
        { 3, 5, 200, EMPTY, CLEAN, NARROW, 5, 7 },
        { 3, 0, 200, PAST_END, KEEP, WIDE, 20, 7 },
        /* rows and blocks of several waves' items */
        { 65, 1, 300, SPARSE, KEEP, NARROW, 3, 3 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        drive_one(driven, &cases[i], (int)i);
}
END_TEST

static void fill_drive(TCase *t)
{
    tcase_add_test(t, drive);
}

static int drive_all(const struct kernel *k, char **objects)
{
    for (; *objects != NULL; objects++) {
        int         status = 0;
        const pid_t child = fork();
        if (child == 0) {
            other_object = *objects;
            if (freopen("/dev/null", "w", stdout) == NULL || freopen("/dev/null", "w", stderr) == NULL)
                _exit(2);
            driven = k;
            limit = 1 << 20; /* a hundred times what the cases take */
            _exit(testing_main("drive", fill_drive));
        }
        waitpid(child, &status, 0);
        printf("%s\n", WIFEXITED(status) && WEXITSTATUS(status) == 0 ? "ok" : "failed");
        fflush(stdout);
    }
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    for (int i = 0; i < KERNELS && argc > 2; i++)
        if (strcmp(argv[1], kernels[i].stem) == 0)
            return drive_all(&kernels[i], argv + 2);
    return testing_main("check_mqa_logits_gfx950", fill);
}
