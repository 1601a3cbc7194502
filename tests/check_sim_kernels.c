/* Whole kernels on the simulator, written by hand and compiled, with every check on: the right results, the same under
 * every schedule, and no finding.
 *
 * The kernels are tests/sim/STEM_ARCH.s and tests/sim/STEM.hip, assembled and compiled beside the tests, in the
 * directory that ETALON_SIM_KERNELS names. With arguments this is the driver of tests/mutate.py instead of a test:
 *
 *   check_sim_kernels STEM_ARCH[:SYMBOL] OBJECT...
 *
 * runs a kernel of each code object at the shapes and schedules of the test, and prints a line for each: "ok",
 * "finding ...", "failed ...", "wrong ..." or "crash ...". STEM_ARCH is that of a row of `kernel` below, the first if
 * there is no SYMBOL.
 */
#include "testing.h"

#include "sim.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SCHEDULES = 8 };

/* Devices with an object
 * ----------------------
 */
typedef struct rig {
    sim_device       *device;
    const sim_kernel *kernel;
    char              trouble[512]; /* "": none so far */
} rig;

#define trouble_of(r, ...) \
    ((r)->trouble[0] == '\0' ? (void)snprintf((r)->trouble, sizeof(r)->trouble, __VA_ARGS__) : (void)0)

static void *read_whole(const char *path, size_t *size)
{
    FILE *from = fopen(path, "rb");
    if (from == NULL || fseek(from, 0, SEEK_END) != 0) {
        fprintf(stderr, "cannot read %s\n", path);
        exit(EXIT_FAILURE);
    }
    *size = (size_t)ftell(from);
    rewind(from);
    void *bytes = malloc(*size);
    if (bytes == NULL || fread(bytes, 1, *size, from) != *size) {
        fprintf(stderr, "cannot read %s\n", path);
        exit(EXIT_FAILURE);
    }
    fclose(from);
    return bytes;
}

static void rig_open(rig *r, const char *path, sim_arch arch, const char *symbol, uint64_t seed, int threads)
{
    /* A mutant may loop for ever: no kernel here executes a hundredth of this. */
    const sim_options options = { .checks = SIM_CHECK_ALL, .seed = seed, .threads = threads, .limit = 1000000 };
    size_t            size;
    void             *bytes = read_whole(path, &size);
    *r = (rig){ .device = sim_device_create(arch, &options) };
    const sim_object *object = r->device == NULL ? NULL : sim_object_load(r->device, bytes, size);
    r->kernel = object == NULL ? NULL : sim_object_kernel(object, symbol);
    if (r->kernel == NULL)
        trouble_of(r, "failed %s: %s", path, sim_last_error());
    free(bytes);
}

/* Memory of the device with a copy of the host's bytes, or filled with NaNs and not written if there are none. */
static void *to_device(rig *r, const void *bytes, size_t size, const char *name)
{
    void *at = sim_allocate(r->device, size, name);
    if (at == NULL) {
        trouble_of(r, "failed %s", sim_last_error());
        return NULL;
    }
    if (bytes != NULL) {
        memcpy(at, bytes, size);
        sim_mark_written(r->device, at, size);
    } else {
        memset(at, 0xFF, size);
    }
    return at;
}

/* The explicit arguments in front of the hidden ones, if the kernel has any. */
static void run(rig *r, const uint32_t grid[2], uint32_t group, const void *arguments, size_t bytes)
{
    uint8_t      kernarg[1024] = { 0 };
    sim_dispatch d = { .kernel = r->kernel, .grid = { grid[0] * group, grid[1], 1 }, .group = { group, 1, 1 } };
    memcpy(kernarg, arguments, bytes);
    if (r->kernel->kernarg_bytes > sizeof kernarg || r->kernel->kernarg_bytes < bytes) {
        trouble_of(r, "failed %" PRIu32 " bytes of arguments", r->kernel->kernarg_bytes);
        return;
    }
    sim_kernarg_fill(&d, kernarg);
    d.kernarg = kernarg;
    d.kernarg_bytes = r->kernel->kernarg_bytes;
    const bool ran = sim_run(r->device, &d);
    if (sim_finding_count(r->device) != 0) {
        const sim_finding *f = sim_finding_at(r->device, 0);
        trouble_of(r, "finding %s: +0x%" PRIx64 ": %s: %s", sim_check_name(f->check), f->pc, f->text, f->detail);
    }
    if (!ran)
        trouble_of(r, "failed %s", sim_last_error());
}

/* Values
 * ------
 */
static uint32_t hash(uint32_t x)
{
    x = (x ^ x >> 16) * 0x7FEB352Du;
    x = (x ^ x >> 15) * 0x846CA68Bu;
    return x ^ x >> 16;
}

static float real_of_e4m3(uint8_t x)
{
    const int   exponent = x >> 3 & 15, mantissa = x & 7;
    const float size = exponent == 0 ? ldexpf((float)mantissa, -9) : ldexpf((float)(8 + mantissa), exponent - 10);
    return (x & 0x80) != 0 ? -size : size;
}

/* Element i of a draw. `exact`: an integer from -15 to 15, so that every sum of up to 2^16 products is exact in F32 in
 * any order, and a value in the wrong place shows as a wrong sum. Else any finite value. */
static uint8_t draw_e4m3(uint32_t i, uint32_t salt, bool exact)
{
    static const uint8_t code_of_integer[16] = { 0x00, 0x38, 0x40, 0x44, 0x48, 0x4A, 0x4C, 0x4E,
                                                 0x50, 0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57 };
    const uint32_t       x = hash(i ^ hash(salt));
    if (exact)
        return (uint8_t)(code_of_integer[x >> 8 & 15] | (x & 0x80));
    return (x & 0x7F) == 0x7F ? 0 : (uint8_t)x; /* S.1111.111 is NaN */
}

/* The product of two E4M3 matrices
 * --------------------------------
 */
typedef struct gemm_arguments {
    const void *a, *b;
    void       *c;
    uint32_t    m, n, k;
    float       scale;
} gemm_arguments;

_Static_assert(offsetof(gemm_arguments, a) == 0 && offsetof(gemm_arguments, b) == 8 &&
                   offsetof(gemm_arguments, c) == 16 && offsetof(gemm_arguments, m) == 24 &&
                   offsetof(gemm_arguments, scale) == 36 && sizeof(gemm_arguments) == 40,
               "KA_ of gemm_e4m3_ARCH.s");

/* c and the sums of |a b|, in double: all products and sums of these sizes are exact there but for the last bits. */
static void gemm_on_host(const gemm_arguments *g, double *c, double *size)
{
    float real[256];
    for (int i = 0; i < 256; i++)
        real[i] = real_of_e4m3((uint8_t)i);
    for (uint32_t m = 0; m < g->m; m++)
        for (uint32_t k = 0; k < g->k; k++) {
            const double a = real[((const uint8_t *)g->a)[m * g->k + k]];
            for (uint32_t n = 0; n < g->n; n++) {
                const double ab = a * real[((const uint8_t *)g->b)[k * g->n + n]];
                c[m * g->n + n] += ab;
                size[m * g->n + n] += fabs(ab);
            }
        }
}

/* One rounding for each product of 128 terms that is added, and one for the scale: gamma(n) = n u / (1 - n u). */
static double gemm_bound(const gemm_arguments *g, double size)
{
    const double n = (g->k + 127) / 128 + 1, u = 0x1p-24;
    return n * u / (1 - n * u) * g->scale * size;
}

static void gemm_compare(rig *r, const gemm_arguments *g, bool exact)
{
    double *want = calloc((size_t)g->m * g->n, sizeof *want), *size = calloc((size_t)g->m * g->n, sizeof *size);
    gemm_on_host(g, want, size);
    for (uint32_t i = 0; i < g->m * g->n; i++) {
        const double got = ((const float *)g->c)[i], expected = want[i] * g->scale;
        if (!(fabs(got - expected) <= (exact ? 0 : gemm_bound(g, size[i]))))
            trouble_of(r,
                       "wrong c[%" PRIu32 ", %" PRIu32 "] of %" PRIu32 " x %" PRIu32 " x %" PRIu32 ": %a, expected %a",
                       i / g->n, i % g->n, g->m, g->n, g->k, got, expected);
    }
    free(want);
    free(size);
}

/* Runs one shape; `c` [M, N] receives the result, to be compared with other schedules'. */
static void gemm_run(rig *r, const uint32_t shape[3], uint32_t group, bool exact, float *c)
{
    const uint32_t m = shape[0], n = shape[1], k = shape[2], grid[2] = { (n + 63) / 64, (m + 63) / 64 };
    uint8_t       *bytes = malloc((size_t)(m > n ? m : n) * k);
    for (uint32_t i = 0; i < m * k; i++)
        bytes[i] = draw_e4m3(i, 1, exact);
    void *a = to_device(r, bytes, (size_t)m * k, "a");
    for (uint32_t i = 0; i < k * n; i++)
        bytes[i] = draw_e4m3(i, 2, exact);
    void *b = to_device(r, bytes, (size_t)k * n, "b");
    free(bytes);
    const gemm_arguments g = { a, b, to_device(r, NULL, sizeof(float) * m * n, "c"), m, n, k, exact ? 0.25f : 0.0371f };
    if (r->trouble[0] == '\0')
        run(r, grid, group, &g, sizeof g);
    if (r->trouble[0] == '\0')
        gemm_compare(r, &g, exact);
    memcpy(c, g.c, sizeof(float) * m * n);
    sim_free(r->device, a);
    sim_free(r->device, b);
    sim_free(r->device, g.c);
}

/* Sums: tests/sim/scan_u32_ARCH.s, and saxpy and reduce of tests/sim/run_ARCH.s
 * -----------------------------------------------------------------------------
 */
typedef struct vector_arguments {
    void    *p, *q;
    uint32_t n;
    float    a;
} vector_arguments;

enum { SCAN_ARGUMENTS = 16, RUN_ARGUMENTS = 24 };

_Static_assert(offsetof(vector_arguments, q) == 8 && offsetof(vector_arguments, n) == 16 &&
                   offsetof(vector_arguments, a) == 20 && sizeof(vector_arguments) == RUN_ARGUMENTS,
               "arguments of scan_u32_ARCH.s and run_ARCH.s");

static void compare_words(rig *r, const uint32_t *got, const uint32_t *want, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (got[i] != want[i])
            trouble_of(r, "wrong q[%" PRIu32 "] of %" PRIu32 ": 0x%08" PRIx32 ", expected 0x%08" PRIx32, i, count,
                       got[i], want[i]);
}

/* p [n] and q [m], q written or not, and what q must be afterwards. Consumes `p` and `want`. */
static void vector_run(rig *r, uint32_t groups, uint32_t group, size_t bytes, uint32_t *p, uint32_t n,
                       const uint32_t *q, uint32_t *want, uint32_t m, void *result)
{
    const vector_arguments v = { to_device(r, p, 4 * n, "p"), to_device(r, q, 4 * m, "q"), n, -1.25f };
    const uint32_t         grid[2] = { groups, 1 };
    if (r->trouble[0] == '\0')
        run(r, grid, group, &v, bytes);
    if (r->trouble[0] == '\0')
        compare_words(r, v.q, want, m);
    memcpy(result, v.q, 4 * m);
    sim_free(r->device, v.p);
    sim_free(r->device, v.q);
    free(p);
    free(want);
}

static uint32_t *draw_words(uint32_t count, uint32_t salt)
{
    uint32_t *words = malloc(4 * (size_t)count);
    for (uint32_t i = 0; i < count; i++)
        words[i] = hash(i ^ hash(salt));
    return words;
}

/* shape[0] workgroups */
static void scan_run(rig *r, const uint32_t shape[3], uint32_t group, bool exact, float *result)
{
    const uint32_t n = shape[0] * group, lanes = group / 4;
    uint32_t      *p = draw_words(n, exact), *want = calloc(n, 4);
    for (uint32_t wave = 0; wave < n / lanes; wave++) {
        const uint32_t *y = p + (wave ^ 1) * lanes;
        uint32_t        sum = 0, running = 0;
        for (uint32_t i = 0; i < lanes; i++)
            sum += y[i];
        for (uint32_t i = 0; i < lanes; i++)
            want[wave * lanes + lanes - 1 - i] = (running += y[i]) + sum;
    }
    vector_run(r, shape[0], group, SCAN_ARGUMENTS, p, n, NULL, want, n, result);
}

static void reduce_run(rig *r, const uint32_t shape[3], uint32_t group, bool exact, float *result)
{
    const uint32_t n = shape[0] * group;
    uint32_t      *p = draw_words(n, exact), *want = calloc(shape[0], 4);
    for (uint32_t i = 0; i < n; i++)
        want[i / group] += p[i];
    vector_run(r, shape[0], group, RUN_ARGUMENTS, p, n, NULL, want, shape[0], result);
}

/* Of shape[0] workgroups each stores 7. */
static void flag_run(rig *r, const uint32_t shape[3], uint32_t group, bool exact, float *result)
{
    uint32_t *p = calloc(1, 4), *want = malloc(4 * (size_t)shape[0]);
    (void)exact;
    for (uint32_t i = 0; i < shape[0]; i++)
        want[i] = 7;
    vector_run(r, shape[0], group, RUN_ARGUMENTS, p, 1, NULL, want, shape[0], result);
}

/* Wave i stores 100 and the number of the wave that it meets. */
static void named_run(rig *r, const uint32_t shape[3], uint32_t group, bool exact, float *result)
{
    const uint32_t n = group / 32;
    uint32_t      *p = calloc(1, 4), *want = malloc(4 * (size_t)n);
    (void)exact;
    for (uint32_t i = 0; i < n; i++)
        want[i] = 100 + (i ^ 1);
    vector_run(r, shape[0], group, RUN_ARGUMENTS, p, 1, NULL, want, n, result);
}

/* shape[0] values; the last workgroup is cut. */
static void saxpy_run(rig *r, const uint32_t shape[3], uint32_t group, bool exact, float *result)
{
    const uint32_t n = shape[0];
    float         *p = malloc(4 * n), *q = malloc(4 * n), *want = malloc(4 * n);
    for (uint32_t i = 0; i < n; i++) {
        p[i] = (float)(hash(i) >> 8) * (exact ? 1.0f : 0x1p-20f);
        q[i] = (float)(hash(i + n) >> 8) * (exact ? 1.0f : 0x1p-22f);
        want[i] = fmaf(-1.25f, p[i], q[i]);
    }
    vector_run(r, (n + group - 1) / group, group, RUN_ARGUMENTS, (uint32_t *)p, n, (uint32_t *)q, (uint32_t *)want, n,
               result);
    free(q);
}

/* Kernels and shapes
 * ------------------
 */
enum { SHAPES = 21, MOST = 256 * 256 };

typedef struct kernel_row {
    const char *stem, *symbol; /* STEM_ARCH.co; the kernel in it */
    sim_arch    arch;
    bool        compiled;
    uint32_t    group;
    void (*run)(rig *r, const uint32_t shape[3], uint32_t group, bool exact, float *result);
    uint32_t shape[SHAPES][3]; /* results are MOST floats at most */
} kernel_row;

#define WHOLE_TILES { { 64, 64, 128 }, { 128, 64, 256 }, { 64, 192, 384 }, { 192, 128, 640 }, { 128, 128, 1024 } }
/* Any size, and c ends behind each row that a lane may hold. */
#define RAGGED_TILES                                                                                           \
    {                                                                                                          \
        { 64, 64, 128 }, { 65, 80, 257 }, { 1, 1, 1 },    { 63, 130, 511 }, { 33, 17, 640 }, { 129, 64, 130 }, \
        { 2, 17, 32 },   { 3, 17, 32 },   { 4, 17, 32 },  { 5, 17, 32 },    { 6, 17, 32 },   { 7, 17, 32 },    \
        { 8, 17, 32 },   { 17, 17, 32 },  { 18, 17, 32 }, { 19, 17, 32 },   { 20, 17, 32 },  { 21, 17, 32 },   \
        { 22, 17, 32 },  { 23, 17, 32 },  { 24, 17, 32 },                                                      \
    }

#define LENGTHS { { 1 }, { 255 }, { 256 }, { 1000 } }
#define WORKGROUPS { { 1 }, { 3 }, { 16 } }

static const kernel_row kernel[] = {
    { "gemm_e4m3", "etalon_gemm_e4m3_gfx950", SIM_GFX950, false, 256, gemm_run, WHOLE_TILES },
    { "gemm_e4m3", "etalon_gemm_e4m3_gfx1250", SIM_GFX1250, false, 128, gemm_run, RAGGED_TILES },
    { "gemm_e4m3_hip_O1", "gemm_e4m3", SIM_GFX950, true, 256, gemm_run, RAGGED_TILES },
    { "gemm_e4m3_hip_O1", "gemm_e4m3", SIM_GFX1250, true, 128, gemm_run, RAGGED_TILES },
    { "gemm_e4m3_hip_O2", "gemm_e4m3", SIM_GFX950, true, 256, gemm_run, RAGGED_TILES },
    { "gemm_e4m3_hip_O2", "gemm_e4m3", SIM_GFX1250, true, 128, gemm_run, RAGGED_TILES },
    { "scan_u32", "etalon_scan_u32_gfx950", SIM_GFX950, false, 256, scan_run, WORKGROUPS },
    { "scan_u32", "etalon_scan_u32_gfx1250", SIM_GFX1250, false, 128, scan_run, WORKGROUPS },
    { "run", "saxpy", SIM_GFX950, false, 256, saxpy_run, LENGTHS },
    { "run", "saxpy", SIM_GFX1250, false, 256, saxpy_run, LENGTHS },
    { "run", "reduce", SIM_GFX950, false, 256, reduce_run, WORKGROUPS },
    { "run", "reduce", SIM_GFX1250, false, 256, reduce_run, WORKGROUPS },
    { "run", "flag", SIM_GFX950, false, 128, flag_run, WORKGROUPS },
    { "run", "flag", SIM_GFX1250, false, 64, flag_run, WORKGROUPS },
    { "run", "named", SIM_GFX1250, false, 128, named_run, { { 1 } } },
};

enum { KERNELS = sizeof kernel / sizeof kernel[0] };

static void run_all_shapes(rig *r, const kernel_row *k, float (*result)[MOST])
{
    for (int i = 0; i < SHAPES && k->shape[i][0] != 0 && r->trouble[0] == '\0'; i++)
        for (int exact = 1; exact >= 0; exact--)
            k->run(r, k->shape[i], k->group, exact != 0, result[2 * i + !exact]);
}

static void object_path(char *to, size_t size, const kernel_row *k)
{
    const char *directory = getenv("ETALON_SIM_KERNELS");
    ck_assert_msg(directory != NULL, "ETALON_SIM_KERNELS is not set");
    snprintf(to, size, "%s/%s_%s.co", directory, k->stem, sim_arch_name(k->arch));
}

/* The test: each kernel under every schedule
 * ------------------------------------------
 */
START_TEST(kernel_is_right_and_clean_under_every_schedule)
{
    const kernel_row *k = &kernel[_i];
    char              path[4096];
    object_path(path, sizeof path, k);
    if (k->compiled && access(path, R_OK) != 0) {
        printf("# skipped: no %s, which needs clang for AMD GPUs\n", path);
        return;
    }
    float (*first)[MOST] = calloc(2 * SHAPES, sizeof *first), (*again)[MOST] = calloc(2 * SHAPES, sizeof *again);
    for (uint64_t seed = 0; seed < SCHEDULES; seed++) {
        rig r;
        rig_open(&r, path, k->arch, k->symbol, seed, 1 + (int)(seed % 2));
        if (r.trouble[0] == '\0')
            run_all_shapes(&r, k, seed == 0 ? first : again);
        ck_assert_msg(r.trouble[0] == '\0', "%s, seed %" PRIu64 ": %s", path, seed, r.trouble);
        ck_assert_msg(seed == 0 || memcmp(first, again, 2 * SHAPES * sizeof *first) == 0,
                      "%s: other bits with seed %" PRIu64, path, seed);
        sim_device_destroy(r.device);
    }
    free(first);
    free(again);
}
END_TEST

static void fill(TCase *tcase)
{
    tcase_add_loop_test(tcase, kernel_is_right_and_clean_under_every_schedule, 0, KERNELS);
}

/* The driver
 * ----------
 */
static void print_verdict(const kernel_row *k, const char *path)
{
    float (*result)[MOST] = calloc(2 * SHAPES, sizeof *result);
    rig r = { .trouble = "" };
    for (uint64_t seed = 0; seed < SCHEDULES && r.trouble[0] == '\0'; seed++) {
        rig_open(&r, path, k->arch, k->symbol, seed, 1);
        if (r.trouble[0] == '\0')
            run_all_shapes(&r, k, result);
        sim_device_destroy(r.device);
    }
    printf("%s\n", r.trouble[0] == '\0' ? "ok" : r.trouble);
    free(result);
}

static const kernel_row *row_of(const char *name)
{
    for (int i = 0; i < KERNELS; i++) {
        char stem[256], whole[256];
        snprintf(stem, sizeof stem, "%s_%s", kernel[i].stem, sim_arch_name(kernel[i].arch));
        snprintf(whole, sizeof whole, "%s_%s:%s", kernel[i].stem, sim_arch_name(kernel[i].arch), kernel[i].symbol);
        if (strcmp(name, stem) == 0 || strcmp(name, whole) == 0)
            return &kernel[i];
    }
    return NULL;
}

/* A process for each object: a mutant may take the simulator with it, and that is a verdict too. */
static int drive(const char *name, char *const *path)
{
    const kernel_row *k = row_of(name);
    if (k == NULL) {
        fprintf(stderr, "check_sim_kernels: no kernel %s\n", name);
        return EXIT_FAILURE;
    }
    for (; *path != NULL; path++) {
        fflush(stdout);
        const pid_t child = fork();
        if (child == 0) {
            alarm(60);
            print_verdict(k, *path);
            fflush(stdout);
            _exit(EXIT_SUCCESS);
        }
        int status = 0;
        waitpid(child, &status, 0);
        if (!WIFEXITED(status))
            printf("crash signal %d\n", WTERMSIG(status));
    }
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    if (argc > 2)
        return drive(argv[1], argv + 2);
    return testing_main("sim_kernels", fill);
}
