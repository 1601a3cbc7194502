/* Dispatches on the simulator: real kernels, schedules, refusals, deadlocks, findings, memory.
 *
 * The kernels are tests/sim/run_ARCH.s and tests/sim/run.hip, assembled and compiled beside the tests, in the directory
 * that ETALON_SIM_KERNELS names.
 */
#include "testing.h"

#include "device.h"
#include "sim.h"
#include "sim/arithmetic.h"

#include <inttypes.h>
#include <math.h>
#include <unistd.h>

/* Devices with an object
 * ----------------------
 */
typedef struct rig {
    sim_arch    arch;
    sim_device *device;
    sim_object *object;
} rig;

typedef struct arguments { /* of every kernel of run_ARCH.s */
    void    *p, *q;
    uint32_t n;
    float    a;
} arguments;

static const char *const arch_name[SIM_ARCHS] = { "gfx950", "gfx1250" };

static void kernel_path(char *to, size_t size, const char *stem, sim_arch arch)
{
    const char *directory = getenv("ETALON_SIM_KERNELS");
    ck_assert_msg(directory != NULL, "ETALON_SIM_KERNELS is not set");
    snprintf(to, size, "%s/%s_%s.co", directory, stem, arch_name[arch]);
}

static void *read_whole(const char *path, size_t *size)
{
    FILE *from = fopen(path, "rb");
    ck_assert_msg(from != NULL, "cannot open %s", path);
    ck_assert_int_eq(fseek(from, 0, SEEK_END), 0);
    *size = (size_t)ftell(from);
    rewind(from);
    void *bytes = malloc(*size);
    ck_assert_uint_eq(fread(bytes, 1, *size, from), *size);
    fclose(from);
    return bytes;
}

static rig open_rig(const char *stem, sim_arch arch, sim_options options)
{
    char path[4096];
    kernel_path(path, sizeof path, stem, arch);
    size_t size;
    void  *bytes = read_whole(path, &size);
    rig    r = { .arch = arch, .device = sim_device_create(arch, &options) };
    ck_assert_msg(r.device != NULL, "%s", sim_last_error());
    r.object = sim_object_load(r.device, bytes, size);
    ck_assert_msg(r.object != NULL, "%s: %s", path, sim_last_error());
    free(bytes);
    return r;
}

static void close_rig(rig *r)
{
    sim_device_destroy(r->device);
}

static uint32_t *words(rig *r, size_t count, const char *name)
{
    uint32_t *at = sim_allocate(r->device, 4 * count, name);
    ck_assert_msg(at != NULL, "%s", sim_last_error());
    return at;
}

/* Words that count as written. */
static uint32_t *filled(rig *r, size_t count, const char *name, uint32_t value)
{
    uint32_t *at = words(r, count, name);
    for (size_t i = 0; i < count; i++)
        at[i] = value;
    sim_mark_written(r->device, at, 4 * count);
    return at;
}

static sim_dispatch dispatch_of(const rig *r, const char *kernel, uint32_t grid, uint32_t group, const arguments *args)
{
    const sim_kernel *k = sim_object_kernel(r->object, kernel);
    ck_assert_msg(k != NULL, "%s: %s", kernel, sim_last_error());
    return (sim_dispatch){
        .kernel = k, .grid = { grid, 1, 1 }, .group = { group, 1, 1 }, .kernarg = args, .kernarg_bytes = sizeof *args
    };
}

static bool run_line(rig *r, const char *kernel, uint32_t grid, uint32_t group, const arguments *args)
{
    const sim_dispatch d = dispatch_of(r, kernel, grid, group, args);
    return sim_run(r->device, &d);
}

static void print_findings(const rig *r)
{
    for (uint32_t i = 0; i < sim_finding_count(r->device); i++)
        sim_print_finding(stderr, sim_finding_at(r->device, i));
}

#define ck_assert_runs(call) ck_assert_msg(call, "%s: %s", #call, sim_last_error())

#define ck_assert_fails(call, words)                                                                              \
    do {                                                                                                          \
        ck_assert_msg(!(call), "%s did not fail", #call);                                                         \
        ck_assert_msg(strstr(sim_last_error(), (words)) != NULL, "\"%s\" does not hold \"%s\"", sim_last_error(), \
                      (words));                                                                                   \
    } while (0)

static void assert_clean(const rig *r)
{
    if (sim_finding_count(r->device) != 0)
        print_findings(r);
    ck_assert_uint_eq(sim_finding_count(r->device), 0);
}

static const sim_finding *finding_of(const rig *r, sim_check check)
{
    for (uint32_t i = 0; i < sim_finding_count(r->device); i++)
        if (sim_finding_at(r->device, i)->check == check)
            return sim_finding_at(r->device, i);
    print_findings(r);
    ck_abort_msg("no finding of %s", sim_check_name(check));
    return NULL;
}

/* Values of a small generator: the same on every machine. */
static uint32_t draw(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Schedules that every correct kernel is run under: in order, late, out of order, both, and random orders of waves. */
enum { SCHEDULES = 8 };

/* Both architectures, all schedules: _i counts them. */
#define ARCH_OF(i) ((sim_arch)((i) / SCHEDULES))
#define SEED_OF(i) ((uint64_t)((i) % SCHEDULES))

/* Real kernels
 * ------------
 */
static void check_saxpy(rig *r, uint32_t n, uint32_t grid, const void *kernarg, size_t kernarg_bytes, float *p,
                        float *q)
{
    const sim_kernel  *k = sim_object_kernel(r->object, "saxpy");
    const sim_dispatch d = {
        .kernel = k, .grid = { grid, 1, 1 }, .group = { 256, 1, 1 }, .kernarg = kernarg, .kernarg_bytes = kernarg_bytes
    };
    float   *want = malloc(n * sizeof *want);
    uint32_t state = 7;
    for (uint32_t i = 0; i < n; i++) {
        p[i] = (float)draw(&state) / 65536.0f - 128.0f;
        q[i] = (float)draw(&state) / 65536.0f - 128.0f;
        want[i] = fmaf(-1.25f, p[i], q[i]); /* v_fmac and the contracted source: one rounding */
    }
    sim_mark_written(r->device, p, n * sizeof *p);
    sim_mark_written(r->device, q, n * sizeof *q);
    ck_assert_runs(sim_run(r->device, &d));
    for (uint32_t i = 0; i < n; i++)
        ck_assert_msg(q[i] == want[i], "q[%" PRIu32 "]: %a, expected %a", i, q[i], want[i]);
    free(want);
    assert_clean(r);
}

START_TEST(saxpy_is_right_under_every_schedule)
{
    static const uint32_t shape[][2] = { { 1000, 1024 }, { 1000, 1000 }, { 1, 1 }, { 257, 257 }, { 256, 512 } };
    rig r = open_rig("run", ARCH_OF(_i),
                     (sim_options){ .checks = SIM_CHECK_ALL, .seed = SEED_OF(_i), .threads = 1 + _i % 3 });
    for (size_t i = 0; i < sizeof shape / sizeof shape[0]; i++) {
        const uint32_t  n = shape[i][0];
        float          *p = (float *)words(&r, n, "p"), *q = (float *)words(&r, n, "q");
        const arguments args = { p, q, n, -1.25f };
        check_saxpy(&r, n, shape[i][1], &args, sizeof args, p, q);
        ck_assert(sim_free(r.device, p) && sim_free(r.device, q));
    }
    close_rig(&r);
}
END_TEST

START_TEST(reduction_is_right_under_every_schedule)
{
    enum { GROUPS = 7 };
    rig       r = open_rig("run", ARCH_OF(_i),
                           (sim_options){ .checks = SIM_CHECK_ALL, .seed = SEED_OF(_i), .threads = 1 + _i % 3 });
    uint32_t *p = words(&r, 256 * GROUPS, "p"), *q = words(&r, GROUPS, "q"), state = 1, want[GROUPS] = { 0 };
    for (int i = 0; i < 256 * GROUPS; i++) {
        p[i] = draw(&state);
        want[i / 256] += p[i];
    }
    sim_mark_written(r.device, p, 4 * 256 * GROUPS);
    const arguments args = { p, q, 0, 0 };
    ck_assert_runs(run_line(&r, "reduce", 256 * GROUPS, 256, &args));
    ck_assert_mem_eq(q, want, sizeof want);
    assert_clean(&r);
    close_rig(&r);
}
END_TEST

/* Each work-item of a 3-D grid runs once, with the right numbers, also where workgroups at its ends are cut. */
START_TEST(grid_of_three_axes_visits_every_item_once)
{
    static const uint32_t shape[][6] = { { 8, 8, 8, 8, 8, 8 },  { 5, 3, 2, 8, 2, 1 },  { 17, 5, 9, 4, 2, 8 },
                                         { 1, 1, 64, 1, 1, 8 }, { 3, 16, 1, 1, 5, 1 }, { 15, 15, 15, 7, 4, 2 } };
    rig                   r = open_rig("run", ARCH_OF(_i), (sim_options){ .seed = SEED_OF(_i), .threads = 2 });
    for (size_t s = 0; s < sizeof shape / sizeof shape[0]; s++) {
        const uint32_t *grid = shape[s], *group = shape[s] + 3;
        uint32_t       *p = filled(&r, 512 * 512, "p", 0), *want = calloc(512 * 512, 4);
        const arguments args = { p, NULL, 0, 0 };
        sim_dispatch    d = dispatch_of(&r, "visit", 1, 1, &args);
        memcpy(d.grid, grid, sizeof d.grid);
        memcpy(d.group, group, sizeof d.group);
        for (uint32_t z = 0; z < grid[2]; z++)
            for (uint32_t y = 0; y < grid[1]; y++)
                for (uint32_t x = 0; x < grid[0]; x++)
                    want[512 * (x / group[0] + 8 * (y / group[1]) + 64 * (z / group[2])) + x % group[0] +
                         8 * (y % group[1]) + 64 * (z % group[2])]++;
        ck_assert_runs(sim_run(r.device, &d));
        ck_assert_mem_eq(p, want, 4 * 512 * 512);
        free(want);
        ck_assert(sim_free(r.device, p));
    }
    close_rig(&r);
}
END_TEST

START_TEST(wave_that_spins_sees_the_other_wave)
{
    enum { GROUPS = 5 };
    rig             r = open_rig("run", ARCH_OF(_i), (sim_options){ .checks = SIM_CHECK_ALL, .seed = SEED_OF(_i) });
    uint32_t       *q = words(&r, GROUPS, "q");
    const arguments args = { q, q, 0, 0 };
    const uint32_t  group = r.arch == SIM_GFX950 ? 128 : 64;
    ck_assert_runs(run_line(&r, "flag", GROUPS * group, group, &args));
    for (int i = 0; i < GROUPS; i++)
        ck_assert_uint_eq(q[i], 7);
    assert_clean(&r);
    close_rig(&r);
}
END_TEST

/* More workgroups than threads, each waiting for all the others. */
START_TEST(barrier_over_the_grid_ends)
{
    enum { GROUPS = 100 };
    rig             r = open_rig("run", ARCH_OF(_i), (sim_options){ .seed = SEED_OF(_i), .threads = 2 });
    const uint32_t  lanes = r.arch == SIM_GFX950 ? 64 : 32;
    uint32_t       *p = filled(&r, 1, "p", 0), *q = filled(&r, GROUPS, "q", 0);
    const arguments args = { p, q, GROUPS, 0 };
    ck_assert_runs(run_line(&r, "meet", GROUPS * lanes, lanes, &args));
    for (int i = 0; i < GROUPS; i++)
        ck_assert_uint_eq(q[i], GROUPS);
    close_rig(&r);
}
END_TEST

START_TEST(named_barriers_pair_waves)
{
    rig       r = open_rig("run", SIM_GFX1250, (sim_options){ .checks = SIM_CHECK_ALL, .seed = (uint64_t)_i });
    uint32_t *q = words(&r, 4, "q");
    ck_assert_runs(run_line(&r, "named", 128, 128, &(arguments){ q, q, 0, 0 }));
    for (uint32_t i = 0; i < 4; i++)
        ck_assert_uint_eq(q[i], 100 + (i ^ 1));
    assert_clean(&r);
    close_rig(&r);
}
END_TEST

START_TEST(one_wave_signals_first)
{
    enum { GROUPS = 3 };
    rig       r = open_rig("run", SIM_GFX1250, (sim_options){ .seed = (uint64_t)_i });
    uint32_t *p = filled(&r, 1, "p", 0), *q = words(&r, GROUPS, "q");
    ck_assert_runs(run_line(&r, "first", 128 * GROUPS, 128, &(arguments){ p, q, 0, 0 }));
    ck_assert_uint_eq(p[0], GROUPS);
    for (int i = 0; i < GROUPS; i++)
        ck_assert_uint_eq(q[i], 4);
    /* One wave: barriers do nothing, and nobody is first. */
    p[0] = 0;
    ck_assert_runs(run_line(&r, "first", 32, 32, &(arguments){ p, q, 0, 0 }));
    ck_assert_uint_eq(p[0], 0);
    close_rig(&r);
}
END_TEST

START_TEST(arguments_are_preloaded)
{
    rig             r = open_rig("run", (sim_arch)_i, (sim_options){ .checks = SIM_CHECK_ALL });
    uint32_t       *q = words(&r, 3, "q");
    const uint32_t  lanes = r.arch == SIM_GFX950 ? 64 : 32;
    const arguments args = { q, q, 40, 0 };
    ck_assert_runs(run_line(&r, "preload", 3 * lanes, lanes, &args));
    for (uint32_t i = 0; i < 3; i++)
        ck_assert_uint_eq(q[i], 40 + i);
    assert_clean(&r);
    close_rig(&r);
}
END_TEST

START_TEST(wave_begins_with_its_state)
{
    rig             r = open_rig("run", (sim_arch)_i, (sim_options){ .seed = 0 });
    uint32_t       *q = words(&r, 8 * 9, "q");
    const arguments args = { q, q, 0, 0 };
    ck_assert_runs(run_line(&r, "state", 8 * 40 + 7, 40, &args)); /* waves of 40 and 7 items, or of 32, 8 and 7 */
    for (uint32_t i = 0; i < 9; i++) {
        const uint32_t *got = q + 8 * i;
        const uint64_t  items = i < 8 ? 40 : 7;
        ck_assert_uint_eq(got[0], r.arch == SIM_GFX950 ? i % 8 : 0);
        /* The assembler's defaults: fp64 and fp16 denormals, fp32 flushed; DX10_CLAMP on gfx950. */
        ck_assert_uint_eq(got[1], r.arch == SIM_GFX950 ? 0x1C0 : 0x0C0);
        if (r.arch == SIM_GFX950)
            ck_assert_uint_eq(got[2] | (uint64_t)got[3] << 32, (UINT64_C(1) << items) - 1);
        ck_assert_uint_eq(got[4], 8);
    }
    close_rig(&r);
}
END_TEST

/* As clang makes them
 * -------------------
 */
/* Says so where there are none: they need clang with the AMDGPU target when the tests are built. */
static bool have_hip(const char *stem, sim_arch arch)
{
    char path[4096];
    kernel_path(path, sizeof path, stem, arch);
    if (access(path, R_OK) == 0)
        return true;
    printf("# skipped: no %s, which needs clang for AMD GPUs\n", path);
    return false;
}

static const char *const hip_stem[] = { "run_hip_O1", "run_hip_O2" };

enum { HIP_STEMS = sizeof hip_stem / sizeof hip_stem[0] };

static bool open_hip(rig *r, int i, uint32_t checks)
{
    const char    *stem = hip_stem[i / (SIM_ARCHS * SCHEDULES)];
    const int      rest = i % (SIM_ARCHS * SCHEDULES);
    const sim_arch arch = ARCH_OF(rest);
    if (!have_hip(stem, arch))
        return false;
    *r = open_rig(stem, arch, (sim_options){ .checks = checks, .seed = SEED_OF(rest), .threads = 2 });
    return true;
}

/* Runs with the explicit arguments in front of the hidden ones. */
static bool run_hip(rig *r, const char *kernel, uint32_t grid, uint32_t group, const void *args, size_t bytes)
{
    uint8_t      kernarg[4096] = { 0 };
    sim_dispatch d = dispatch_of(r, kernel, grid, group, NULL);
    ck_assert_uint_le(d.kernel->kernarg_bytes, sizeof kernarg);
    memcpy(kernarg, args, bytes);
    sim_kernarg_fill(&d, kernarg);
    d.kernarg = kernarg;
    d.kernarg_bytes = d.kernel->kernarg_bytes;
    return sim_run(r->device, &d);
}

START_TEST(compiled_saxpy_is_right)
{
    rig r;
    if (!open_hip(&r, _i, SIM_CHECK_ALL))
        return;
    enum { N = 1000 };
    float *p = (float *)words(&r, N, "p"), *q = (float *)words(&r, N, "q");
    const struct {
        void *p, *q;
        int   n;
        float a;
    } args = { p, q, N, -1.25f };
    uint8_t      kernarg[4096] = { 0 };
    sim_dispatch d = dispatch_of(&r, "saxpy", 1024, 256, NULL);
    memcpy(kernarg, &args, sizeof args);
    sim_kernarg_fill(&d, kernarg);
    check_saxpy(&r, N, 1024, kernarg, d.kernel->kernarg_bytes, p, q);
    close_rig(&r);
}
END_TEST

START_TEST(compiled_reduction_is_right)
{
    rig r;
    if (!open_hip(&r, _i, SIM_CHECK_ALL))
        return;
    enum { GROUPS = 3 };
    uint32_t *p = words(&r, 256 * GROUPS, "p"), *q = words(&r, GROUPS, "q"), state = 3, want[GROUPS] = { 0 };
    for (int i = 0; i < 256 * GROUPS; i++) {
        p[i] = draw(&state);
        want[i / 256] += p[i];
    }
    sim_mark_written(r.device, p, 4 * 256 * GROUPS);
    void *const args[2] = { p, q };
    ck_assert_runs(run_hip(&r, "reduce", 256 * GROUPS, 256, args, sizeof args));
    ck_assert_mem_eq(q, want, sizeof want);
    assert_clean(&r);
    close_rig(&r);
}
END_TEST

START_TEST(compiled_histogram_is_right)
{
    rig r;
    if (!open_hip(&r, _i, SIM_CHECK_ALL))
        return;
    enum { N = 5000 };
    uint32_t *p = words(&r, N, "p"), *q = filled(&r, 16, "q", 0), state = 9, want[16] = { 0 };
    for (int i = 0; i < N; i++) {
        p[i] = draw(&state) % 16;
        want[p[i]]++;
    }
    sim_mark_written(r.device, p, 4 * N);
    const struct {
        void *p, *q;
        int   n;
    } args = { p, q, N };
    ck_assert_runs(run_hip(&r, "histogram", 160, 80, &args, sizeof args));
    ck_assert_mem_eq(q, want, sizeof want);
    assert_clean(&r);
    close_rig(&r);
}
END_TEST

/* Each kernel of tests/sim/arithmetic.h, as three levels of optimisation make it, against the host's. */
typedef enum fill_kind { INTEGERS, FLOATS, DOUBLES } fill_kind;

static const struct {
    const char *name;
    void (*host)(const void *a, const void *b, void *o);
    uint8_t a_bytes, b_bytes, o_bytes; /* of an element */
    uint8_t a_kind, b_kind, o_kind;
} arithmetic[] = {
#define ROW(name, a, b, o, ak, bk, ok) { #name, name, a, b, o, ak, bk, ok }
    ROW(divide_i32, 4, 4, 4, INTEGERS, INTEGERS, INTEGERS), ROW(divide_u32, 4, 4, 4, INTEGERS, INTEGERS, INTEGERS),
    ROW(divide_i64, 8, 8, 8, INTEGERS, INTEGERS, INTEGERS), ROW(divide_f32, 4, 4, 4, FLOATS, FLOATS, FLOATS),
    ROW(divide_f64, 8, 8, 8, DOUBLES, DOUBLES, DOUBLES),    ROW(root_f32, 4, 4, 4, FLOATS, FLOATS, FLOATS),
    ROW(dot_f32, 4, 4, 4, FLOATS, FLOATS, FLOATS),          ROW(extremes_f32, 4, 4, 4, FLOATS, FLOATS, FLOATS),
    ROW(convert_f32, 4, 4, 4, FLOATS, FLOATS, INTEGERS),    ROW(mixed_f64, 8, 8, 8, DOUBLES, DOUBLES, DOUBLES),
    ROW(scale_f32, 4, 4, 4, FLOATS, INTEGERS, FLOATS),      ROW(compare_f32, 4, 4, 4, FLOATS, FLOATS, INTEGERS),
    ROW(bits_u32, 4, 4, 4, INTEGERS, INTEGERS, INTEGERS),   ROW(bits_u64, 8, 8, 8, INTEGERS, INTEGERS, INTEGERS),
    ROW(shorts, 2, 2, 2, INTEGERS, INTEGERS, INTEGERS),     ROW(bytes, 1, 1, 4, INTEGERS, INTEGERS, INTEGERS),
    ROW(branches, 4, 4, 4, INTEGERS, INTEGERS, INTEGERS),   ROW(stack, 4, 4, 4, INTEGERS, INTEGERS, INTEGERS),
#undef ROW
};

enum { ARITHMETIC = sizeof arithmetic / sizeof arithmetic[0], LEVELS = 3, ITEMS = 512, SLOTS = ITEMS * 8 + 64 };

/* Integers of every magnitude; floats with zeros, of exponents that neither overflow nor vanish. */
static void fill_slots(void *to, int bytes, int kind, uint32_t *state)
{
    for (int i = 0; i < SLOTS / bytes; i++) {
        const uint32_t high = draw(state), low = draw(state);
        const int32_t  x = (int32_t)(high << 16 ^ low);
        const uint64_t word = (uint64_t)(uint32_t)x << 32 | high;
        const uint64_t integer = i % 3 == 0 ? word >> low % 64 : word;
        const double   real = i % 37 == 0 ? 0.0 : ldexp(x, -20 - (int)(high % 12));
        const float    single = (float)real;
        const void    *from = kind == DOUBLES ? (const void *)&real : kind == FLOATS ? (const void *)&single : &integer;
        memcpy((char *)to + i * bytes, from, (size_t)bytes);
    }
}

static bool is_nan_of(const void *at, int kind)
{
    float  single;
    double real;
    memcpy(&single, at, sizeof single);
    if (kind == FLOATS)
        return isnan(single);
    memcpy(&real, at, sizeof real);
    return isnan(real);
}

START_TEST(compiled_arithmetic_is_the_host_s)
{
    const sim_arch arch = (sim_arch)(_i / LEVELS);
    char           stem[32];
    snprintf(stem, sizeof stem, "arithmetic_O%d", 1 + _i % LEVELS);
    if (!have_hip(stem, arch))
        return;
    uint32_t state = 17;
    rig      r = open_rig(stem, arch, (sim_options){ .checks = SIM_CHECK_ALL, .seed = 3 });
    for (int k = 0; k < ARITHMETIC; k++) {
        void *a = words(&r, SLOTS / 4, "a"), *b = words(&r, SLOTS / 4, "b");
        char *o = (char *)words(&r, SLOTS / 4, "o"), want[SLOTS] = { 0 };
        fill_slots(a, arithmetic[k].a_bytes, arithmetic[k].a_kind, &state);
        fill_slots(b, arithmetic[k].b_bytes, arithmetic[k].b_kind, &state);
        sim_mark_written(r.device, a, SLOTS);
        sim_mark_written(r.device, b, SLOTS);
        void *const args[3] = { a, b, o };
        ck_assert_runs(run_hip(&r, arithmetic[k].name, ITEMS, 64, args, sizeof args));
        for (arithmetic_item = 0; arithmetic_item < ITEMS; arithmetic_item++)
            arithmetic[k].host(a, b, want);
        const int bytes = arithmetic[k].o_bytes, kind = arithmetic[k].o_kind;
        for (int i = 0; i < ITEMS; i++) {
            const char *x = o + i * bytes, *y = want + i * bytes;
            if (kind != INTEGERS && is_nan_of(x, kind) && is_nan_of(y, kind)) /* payloads are nobody's promise */
                continue;
            uint64_t got = 0, expected = 0;
            memcpy(&got, x, (size_t)bytes);
            memcpy(&expected, y, (size_t)bytes);
            ck_assert_msg(got == expected, "%s[%d]: 0x%" PRIx64 ", expected 0x%" PRIx64, arithmetic[k].name, i, got,
                          expected);
        }
        assert_clean(&r);
        ck_assert(sim_free(r.device, a) && sim_free(r.device, b) && sim_free(r.device, o));
    }
    close_rig(&r);
}
END_TEST

/* What is refused
 * ---------------
 */
START_TEST(bad_dispatches_are_refused)
{
    static const struct {
        uint32_t    grid[3], group[3], lds;
        int         kernarg; /* bytes more or less */
        const char *words;
    } row[] = {
        { { 0, 1, 1 }, { 1, 1, 1 }, 0, 0, "grid.x is 0" },
        { { 1, 1, 0 }, { 1, 1, 1 }, 0, 0, "grid.z is 0" },
        { { 1, 1, 1 }, { 1, 0, 1 }, 0, 0, "group.y is 0" },
        { { 2048, 1, 1 }, { 1025, 1, 1 }, 0, 0, "group.x is 1025, more than 1024" },
        { { 2048, 2, 1 }, { 1024, 2, 1 }, 0, 0, "2048 work-items, the kernel takes 1024" },
        { { 64, 1, 1 }, { 64, 1, 1 }, 0, -8, "16 bytes of kernel arguments, the kernel takes 24" },
        { { 64, 1, 1 }, { 64, 1, 1 }, 0, 8, "32 bytes of kernel arguments, the kernel takes 24" },
        { { 64, 1, 1 }, { 64, 1, 1 }, 320 * 1024, 0, "bytes of LDS" },
    };
    rig r = open_rig("run", (sim_arch)_i, (sim_options){ .seed = 0 });
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        const uint8_t kernarg[32] = { 0 };
        sim_dispatch  d = dispatch_of(&r, "reduce", 1, 1, (const void *)kernarg);
        memcpy(d.grid, row[i].grid, sizeof d.grid);
        memcpy(d.group, row[i].group, sizeof d.group);
        d.dynamic_lds = row[i].lds;
        d.kernarg_bytes = (size_t)(24 + row[i].kernarg);
        ck_assert_fails(sim_run(r.device, &d), row[i].words);
        ck_assert_ptr_nonnull(strstr(sim_last_error(), "reduce"));
    }
    sim_dispatch d = dispatch_of(&r, "saxpy", 1, 1, NULL);
    ck_assert_fails(sim_run(r.device, &d), "the kernel arguments are NULL");
    ck_assert_fails(sim_run(r.device, &(sim_dispatch){ .grid = { 1, 1, 1 } }), "without a kernel");
    close_rig(&r);
}
END_TEST

/* What a descriptor can ask for and no wave can have. */
START_TEST(impossible_kernels_are_refused)
{
    rig              r = open_rig("run", (sim_arch)_i, (sim_options){ .seed = 0 });
    const uint8_t    kernarg[24] = { 0 };
    sim_dispatch     d = dispatch_of(&r, "visit", 1024, 1024, (const void *)kernarg);
    sim_kernel       k = *d.kernel;
    const sim_kernel sound = k;
    d.kernel = &k;
    k.wave_size = 96 - k.wave_size;
    ck_assert_fails(sim_run(r.device, &d), "waves of");
    k = sound;
    k.vgprs = r.arch == SIM_GFX950 ? 136 : 144; /* 4 waves of 128 on a SIMD of gfx950, 8 of 128 on gfx1250 */
    ck_assert_fails(sim_run(r.device, &d), "vector registers for each of");
    k = sound;
    k.scratch_bytes = r.arch == SIM_GFX950 ? 131057 : 2097145; /* the field's maximum over the lanes, rounded up */
    ck_assert_fails(sim_run(r.device, &d), "bytes of scratch for a wave");
    k = sound;
    k.max_group = 256;
    ck_assert_fails(sim_run(r.device, &d), "1024 work-items, the kernel takes 256");
    close_rig(&r);
}
END_TEST

typedef struct caller {
    rig      *r;
    uint32_t *p;
    bool      ok;
} caller;

static void *call_visit(void *argument)
{
    caller         *c = argument;
    const arguments args = { c->p, NULL, 0, 0 };
    sim_dispatch    d = { .kernel = sim_object_kernel(c->r->object, "visit"),
                          .grid = { 64, 8, 8 },
                          .group = { 8, 8, 8 },
                          .kernarg = &args,
                          .kernarg_bytes = sizeof args };
    c->ok = true;
    for (int i = 0; i < 10; i++)
        c->ok = sim_run(c->r->device, &d) && c->ok;
    return NULL;
}

START_TEST(callers_in_several_threads_take_turns)
{
    enum { CALLERS = 4 };
    rig       r = open_rig("run", (sim_arch)_i, (sim_options){ .checks = SIM_CHECK_ALL, .threads = 2 });
    caller    c[CALLERS];
    pthread_t thread[CALLERS];
    for (int i = 0; i < CALLERS; i++) {
        c[i] = (caller){ &r, filled(&r, 512 * 8, "p", 0), false };
        ck_assert_int_eq(pthread_create(&thread[i], NULL, call_visit, &c[i]), 0);
    }
    for (int i = 0; i < CALLERS; i++) {
        ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
        ck_assert(c[i].ok);
        for (int k = 0; k < 512 * 8; k++)
            ck_assert_uint_eq(c[i].p[k], 10);
    }
    assert_clean(&r);
    close_rig(&r);
}
END_TEST

/* The largest LDS that a workgroup can have, and one byte more. */
START_TEST(lds_limit_is_the_hardware_s)
{
    const uint32_t  most = ((sim_arch)_i == SIM_GFX950 ? 160 : 320) * 1024;
    rig             r = open_rig("run", (sim_arch)_i, (sim_options){ .seed = 0 });
    uint32_t       *p = filled(&r, 256, "p", 1), *q = words(&r, 1, "q");
    const arguments args = { p, q, 0, 0 };
    sim_dispatch    d = dispatch_of(&r, "reduce", 256, 256, &args);
    d.dynamic_lds = most - 1024;
    ck_assert_runs(sim_run(r.device, &d));
    ck_assert_uint_eq(q[0], 256);
    d.dynamic_lds++;
    ck_assert_fails(sim_run(r.device, &d), "bytes of LDS");
    close_rig(&r);
}
END_TEST

START_TEST(unsupported_instruction_is_named)
{
    rig             r = open_rig("run", (sim_arch)_i, (sim_options){ .seed = 0 });
    uint32_t       *p = filled(&r, 512 * 8, "p", 0);
    const arguments args = { p, p, 0, 0 };
    ck_assert_fails(run_line(&r, "unsupported", 64, 64, &args), "unsupported+0x4");
    ck_assert_ptr_nonnull(strstr(sim_last_error(), r.arch == SIM_GFX950 ? "s_set_gpr_idx_on" : "s_rfe_i64"));
    /* The device goes on to serve. */
    ck_assert_runs(run_line(&r, "visit", 64, 8, &args));
    close_rig(&r);
}
END_TEST

START_TEST(trap_is_reported)
{
    rig       r = open_rig("run", (sim_arch)_i, (sim_options){ .threads = 2 });
    uint32_t *p = words(&r, 1, "p");
    ck_assert_fails(run_line(&r, "trapped", 6400, 64, &(arguments){ p, p, 0, 0 }),
                    "trapped+0x0: s_trap 2: the kernel trapped");
    close_rig(&r);
}
END_TEST

START_TEST(endless_loop_is_a_deadlock)
{
    rig r = open_rig("run", (sim_arch)_i, (sim_options){ .checks = SIM_CHECK_ALL, .seed = 5, .limit = 5000 });
    const uint32_t lanes = r.arch == SIM_GFX950 ? 64 : 32;
    uint32_t      *p = words(&r, 1, "p");
    ck_assert_fails(run_line(&r, "endless", 3 * lanes, 3 * lanes, &(arguments){ p, p, 0, 0 }),
                    "deadlock: 5000 instructions");
    ck_assert_ptr_nonnull(strstr(sim_last_error(), "wave 0 runs at +0x"));
    ck_assert_ptr_nonnull(strstr(sim_last_error(), "wave 2 runs at +0x"));
    ck_assert_uint_le(finding_of(&r, SIM_CHECK_DEADLOCK)->pc, 4);
    close_rig(&r);
}
END_TEST

/* Hardware lets the waves that remain pass: a finding, not a failure. One, whatever the schedule. */
START_TEST(barrier_mismatch_is_found)
{
    rig            r = open_rig("run", ARCH_OF(_i), (sim_options){ .checks = SIM_CHECK_ALL, .seed = SEED_OF(_i) });
    const uint32_t lanes = r.arch == SIM_GFX950 ? 64 : 32;
    uint32_t      *p = words(&r, 1, "p");
    ck_assert_runs(run_line(&r, "mismatch", 8 * lanes, 4 * lanes, &(arguments){ p, p, 0, 0 }));
    const sim_finding *f = finding_of(&r, SIM_CHECK_BARRIER);
    ck_assert_str_eq(f->kernel, "mismatch");
    ck_assert_uint_eq(f->times, 2); /* workgroups */
    ck_assert_uint_eq(f->group[0], 0);
    ck_assert_ptr_nonnull(strstr(f->detail, "3 of 4 waves have ended"));
    ck_assert_uint_eq(sim_finding_count(r.device), 1);
    close_rig(&r);
}
END_TEST

START_TEST(wait_without_signal_is_found_and_does_not_end)
{
    rig       r = open_rig("run", SIM_GFX1250, (sim_options){ .checks = SIM_CHECK_ALL, .seed = (uint64_t)_i });
    uint32_t *p = words(&r, 1, "p");
    ck_assert_fails(run_line(&r, "stuck", 64, 64, &(arguments){ p, p, 0, 0 }), "no wave can go on");
    ck_assert_ptr_nonnull(strstr(sim_last_error(), "wave 0 waits for barrier -1 at +0x"));
    ck_assert_ptr_nonnull(strstr(sim_last_error(), "wave 1 waits for barrier -1 at +0x"));
    finding_of(&r, SIM_CHECK_BARRIER);
    close_rig(&r);
}
END_TEST

/* Findings
 * --------
 */
START_TEST(overrun_is_found_with_the_allocation_s_name)
{
    rig             r = open_rig("run", (sim_arch)_i, (sim_options){ .checks = SIM_CHECK_ALL, .threads = 2 });
    const uint32_t  lanes = r.arch == SIM_GFX950 ? 64 : 32;
    uint32_t       *p = filled(&r, 10, "weights", 0);
    const arguments args = { p, p, 10, 0 };
    ck_assert_runs(run_line(&r, "overrun", 5 * lanes, lanes, &args));
    const sim_finding *f = finding_of(&r, SIM_CHECK_BOUNDS);
    ck_assert_ptr_nonnull(strstr(f->detail, "0 bytes behind `weights` (40 bytes)"));
    ck_assert_str_eq(f->kernel, "overrun");
    ck_assert_uint_eq(f->times, 5);
    ck_assert_uint_eq(f->group[0], 0);
    ck_assert_int_eq(f->wave, 0);
    ck_assert_int_eq(f->lane, 0);
    ck_assert_ptr_nonnull(strstr(f->text, "global_load"));

    char  *printed = NULL;
    size_t size = 0;
    FILE  *to = open_memstream(&printed, &size);
    sim_print_finding(to, f);
    fclose(to);
    ck_assert_ptr_nonnull(strstr(printed, "bounds: an access outside of every allocation"));
    ck_assert_ptr_nonnull(strstr(printed, "overrun+0x"));
    ck_assert_ptr_nonnull(strstr(printed, "workgroup 0,0,0  wave 0  lane 0"));
    free(printed);

    /* Freed memory is another sentence. */
    sim_findings_clear(r.device);
    ck_assert_uint_eq(sim_finding_count(r.device), 0);
    ck_assert(sim_free(r.device, p));
    ck_assert_runs(run_line(&r, "overrun", lanes, lanes, &(arguments){ p, p, 2, 0 }));
    ck_assert_ptr_nonnull(strstr(finding_of(&r, SIM_CHECK_BOUNDS)->detail, "freed"));
    close_rig(&r);
}
END_TEST

/* As many of each place as the options say, those of the lowest workgroups, and the count of all. */
START_TEST(findings_do_not_depend_on_threads)
{
    for (int threads = 1; threads <= 4; threads++) {
        rig r =
            open_rig("run", (sim_arch)_i, (sim_options){ .checks = SIM_CHECK_ALL, .threads = threads, .findings = 3 });
        const uint32_t  lanes = r.arch == SIM_GFX950 ? 64 : 32;
        uint32_t       *p = filled(&r, 10, "p", 0);
        const arguments args = { p, p, 10, 0 };
        ck_assert_runs(run_line(&r, "overrun", 40 * lanes, lanes, &args));
        ck_assert_uint_eq(sim_finding_count(r.device), 3);
        uint64_t times = 0;
        for (uint32_t i = 0; i < 3; i++) {
            const sim_finding *f = sim_finding_at(r.device, i);
            ck_assert_int_eq(f->check, SIM_CHECK_BOUNDS);
            ck_assert_uint_eq(f->group[0], i);
            times += f->times;
        }
        ck_assert_uint_eq(times, 40);
        ck_assert_ptr_null(sim_finding_at(r.device, 3));
        close_rig(&r);
    }
}
END_TEST

START_TEST(repeated_runs_have_the_same_bits)
{
    enum { GROUPS = 50 };
    uint32_t first[GROUPS];
    for (int run = 0; run < 3; run++) {
        rig       r = open_rig("run", (sim_arch)_i, (sim_options){ .seed = 2, .threads = 1 + run });
        uint32_t *p = words(&r, 256 * GROUPS, "p"), *q = words(&r, GROUPS, "q"), state = 5;
        for (int i = 0; i < 256 * GROUPS; i++)
            p[i] = draw(&state);
        ck_assert_runs(run_line(&r, "reduce", 256 * GROUPS, 256, &(arguments){ p, q, 0, 0 }));
        if (run == 0)
            memcpy(first, q, sizeof first);
        ck_assert_mem_eq(first, q, sizeof first);
        close_rig(&r);
    }
}
END_TEST

START_TEST(names_of_checks)
{
    uint32_t checks = 0;
    ck_assert(sim_checks_of_names("all", &checks));
    ck_assert_uint_eq(checks, SIM_CHECK_ALL);
    ck_assert(sim_checks_of_names("none", &checks));
    ck_assert_uint_eq(checks, 0);
    ck_assert(sim_checks_of_names("wait,lds-race", &checks));
    ck_assert_uint_eq(checks, 1u << SIM_CHECK_MISSING_WAIT | 1u << SIM_CHECK_LDS_RACE);
    ck_assert(sim_checks_of_names("all,-advice", &checks));
    ck_assert_uint_eq(checks, SIM_CHECK_ALL & ~(1u << SIM_CHECK_ADVICE));
    ck_assert(sim_checks_of_names("-advice", &checks));
    ck_assert_uint_eq(checks, SIM_CHECK_ALL & ~(1u << SIM_CHECK_ADVICE));
    for (int c = 0; c < SIM_CHECKS; c++) {
        ck_assert(sim_checks_of_names(sim_check_name((sim_check)c), &checks));
        ck_assert_uint_eq(checks, 1u << c);
    }
    checks = 77;
    ck_assert_fails(sim_checks_of_names("wait,races", &checks), "\"races\"");
    ck_assert_fails(sim_checks_of_names("", &checks), "unknown check");
    ck_assert_fails(sim_checks_of_names("wait,", &checks), "unknown check");
    ck_assert_uint_eq(checks, 77);
}
END_TEST

/* Memory
 * ------
 */
START_TEST(memory_is_named_found_and_freed_once)
{
    sim_device *d = sim_device_create(SIM_GFX950, NULL);
    char       *a = sim_allocate(d, 1000, "a"), *b = sim_allocate(d, 3, NULL);
    void       *base;
    size_t      bytes;
    ck_assert(sim_find(d, a + 999, &base, &bytes));
    ck_assert_ptr_eq(base, a);
    ck_assert_uint_eq(bytes, 1000);
    ck_assert(!sim_find(d, a + 1000, &base, &bytes));
    ck_assert(!sim_find(d, a - 1, &base, &bytes));
    ck_assert_fails(sim_free(d, a + 1), "not the beginning");
    ck_assert(sim_free(d, a));
    ck_assert_fails(sim_free(d, a), "freed already");
    ck_assert(!sim_find(d, a, &base, &bytes));
    ck_assert(sim_find(d, b, &base, &bytes));
    ck_assert_ptr_null(sim_allocate(d, 0, "nothing"));
    ck_assert_ptr_null(sim_allocate(d, SIZE_MAX / 2, "everything"));
    /* Its address is not given out again. */
    for (int i = 0; i < 50; i++)
        ck_assert_ptr_ne(sim_allocate(d, 1000, "c"), a);
    sim_device_destroy(d);
}
END_TEST

START_TEST(registered_memory_is_counted)
{
    sim_device *d = sim_device_create(SIM_GFX1250, NULL);
    char        host[64];
    void       *base;
    size_t      bytes;
    ck_assert(sim_register(d, host, 32, "host"));
    ck_assert(sim_register(d, host, 32, "host"));
    ck_assert_fails(sim_register(d, host + 8, 32, "overlap"), "overlap `host`");
    ck_assert(sim_register(d, host + 32, 32, "behind"));
    ck_assert_fails(sim_free(d, host), "not the beginning");
    ck_assert(sim_unregister(d, host));
    ck_assert(sim_find(d, host, &base, &bytes));
    ck_assert(sim_unregister(d, host));
    ck_assert(!sim_find(d, host, &base, &bytes));
    ck_assert_fails(sim_unregister(d, host), "registered");
    sim_device_destroy(d);
}
END_TEST

/* Against a byte for each bit. */
START_TEST(written_bytes_are_kept_by_bits)
{
    enum { BYTES = 77 };
    uint32_t state = 11;
    for (int round = 0; round < 2000; round++) {
        uint8_t         bits[BYTES / 8 + 1] = { 0 };
        bool            want[BYTES] = { false };
        const sim_range range = { .first = 1000, .last = 1000 + BYTES, .written = bits };
        for (int i = 0; i < 3; i++) {
            const uint32_t at = draw(&state) % BYTES, count = draw(&state) % (BYTES - at + 1);
            sim_range_mark(&range, 1000 + at, count);
            for (uint32_t k = 0; k < count; k++)
                want[at + k] = true;
        }
        const uint32_t at = draw(&state) % BYTES, count = 1 + draw(&state) % (BYTES - at);
        bool           all = true;
        for (uint32_t k = 0; k < count; k++)
            all = all && want[at + k];
        ck_assert(sim_range_is_written(&range, 1000 + at, count) == all);
    }
}
END_TEST

START_TEST(map_finds_and_describes)
{
    sim_device *d = sim_device_create(SIM_GFX950, NULL);
    uint8_t    *at[20];
    for (int i = 0; i < 20; i++) {
        char name[16];
        snprintf(name, sizeof name, "m%d", i);
        at[i] = sim_allocate(d, (size_t)(100 + i), name);
    }
    sim_free(d, at[3]);
    sim_map *map = sim_map_create(d);
    char     words[200], want[200];
    for (int i = 0; i < 20; i++) {
        const uint64_t   first = (uint64_t)(uintptr_t)at[i];
        const sim_range *range = sim_map_find(map, first + 50, (uint64_t)(50 + i));
        ck_assert_ptr_nonnull(range);
        ck_assert_uint_eq(range->first, first);
        ck_assert(range->freed == (i == 3));
        ck_assert_ptr_null(sim_map_find(map, first + 50, (uint64_t)(51 + i)));
        ck_assert_ptr_null(sim_map_find(map, first - 1, 1));
        ck_assert_ptr_null(sim_map_find(map, first + 100 + (uint64_t)i, 1));
        sim_map_describe(map, first + 100 + (uint64_t)i + 8, words, sizeof words);
        snprintf(want, sizeof want, "8 bytes behind `m%d` (%d bytes%s)", i, 100 + i, i == 3 ? ", freed" : "");
        ck_assert_msg(strstr(words, want) != NULL, "\"%s\" does not hold \"%s\"", words, want);
        sim_map_describe(map, first - 8, words, sizeof words);
        snprintf(want, sizeof want, "8 bytes before `m%d`", i);
        ck_assert_msg(strstr(words, want) != NULL, "\"%s\" does not hold \"%s\"", words, want);
    }
    ck_assert_ptr_null(sim_map_find(map, UINT64_MAX - 3, 8));
    ck_assert_ptr_null(sim_map_find(map, 0, 1));
    sim_map_destroy(map);
    sim_device_destroy(d);
}
END_TEST

static void fill(TCase *t)
{
    enum { BOTH = SIM_ARCHS * SCHEDULES };
    tcase_add_loop_test(t, saxpy_is_right_under_every_schedule, 0, BOTH);
    tcase_add_loop_test(t, reduction_is_right_under_every_schedule, 0, BOTH);
    tcase_add_loop_test(t, grid_of_three_axes_visits_every_item_once, 0, BOTH);
    tcase_add_loop_test(t, wave_that_spins_sees_the_other_wave, 0, BOTH);
    tcase_add_loop_test(t, barrier_over_the_grid_ends, 0, BOTH);
    tcase_add_loop_test(t, named_barriers_pair_waves, 0, SCHEDULES);
    tcase_add_loop_test(t, one_wave_signals_first, 0, SCHEDULES);
    tcase_add_loop_test(t, arguments_are_preloaded, 0, SIM_ARCHS);
    tcase_add_loop_test(t, wave_begins_with_its_state, 0, SIM_ARCHS);
    tcase_add_loop_test(t, compiled_saxpy_is_right, 0, HIP_STEMS * BOTH);
    tcase_add_loop_test(t, compiled_reduction_is_right, 0, HIP_STEMS * BOTH);
    tcase_add_loop_test(t, compiled_histogram_is_right, 0, HIP_STEMS * BOTH);
    tcase_add_loop_test(t, compiled_arithmetic_is_the_host_s, 0, SIM_ARCHS * LEVELS);
    tcase_add_loop_test(t, bad_dispatches_are_refused, 0, SIM_ARCHS);
    tcase_add_loop_test(t, impossible_kernels_are_refused, 0, SIM_ARCHS);
    tcase_add_loop_test(t, callers_in_several_threads_take_turns, 0, SIM_ARCHS);
    tcase_add_loop_test(t, lds_limit_is_the_hardware_s, 0, SIM_ARCHS);
    tcase_add_loop_test(t, unsupported_instruction_is_named, 0, SIM_ARCHS);
    tcase_add_loop_test(t, trap_is_reported, 0, SIM_ARCHS);
    tcase_add_loop_test(t, endless_loop_is_a_deadlock, 0, SIM_ARCHS);
    tcase_add_loop_test(t, barrier_mismatch_is_found, 0, BOTH);
    tcase_add_loop_test(t, wait_without_signal_is_found_and_does_not_end, 0, SCHEDULES);
    tcase_add_loop_test(t, overrun_is_found_with_the_allocation_s_name, 0, SIM_ARCHS);
    tcase_add_loop_test(t, findings_do_not_depend_on_threads, 0, SIM_ARCHS);
    tcase_add_loop_test(t, repeated_runs_have_the_same_bits, 0, SIM_ARCHS);
    tcase_add_test(t, names_of_checks);
    tcase_add_test(t, memory_is_named_found_and_freed_once);
    tcase_add_test(t, registered_memory_is_counted);
    tcase_add_test(t, written_bytes_are_kept_by_bits);
    tcase_add_test(t, map_finds_and_describes);
}

int main(void)
{
    return testing_main("sim_run", fill);
}
