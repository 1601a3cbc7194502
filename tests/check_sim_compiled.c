/* Kernels of tests/sim/compiled.h, as a compiler makes them at three levels of optimisation, against the host's.
 *
 * The objects are compiled_OLEVEL_ARCH.co, of tests/sim/compiled.hip, in the directory that ETALON_SIM_KERNELS names.
 */
#include "testing.h"

#include "sim.h"

#include "sim/compiled.h"

enum { LEVELS = 3, GROUPS = 6, ITEMS = GROUPS * GROUP };

typedef void formula(const u32 *a, const u32 *b, u32 *o);

static const struct {
    const char *name;
    formula    *host;
} kernels[] = {
#define ROW(name) { #name, name }
    ROW(shuffle), ROW(steps),  ROW(votes), ROW(first_of_branch), ROW(exchange),     ROW(scan),
    ROW(bins),    ROW(totals), ROW(calls), ROW(wide_integers),   ROW(small_floats), ROW(vectors),
};
enum { KERNELS = sizeof kernels / sizeof kernels[0] };

/* Advice is stricter than compilers are. */
#define CHECKS (SIM_CHECK_ALL & ~(1u << SIM_CHECK_ADVICE))

/* Waves in turn; memory late; both at random, and completions out of order. */
static const uint64_t seeds[] = { 0, 1, 3, 6 };

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

static sim_object *load(sim_device *device, int level)
{
    const char *directory = getenv("ETALON_SIM_KERNELS");
    char        path[4096];
    size_t      size;
    ck_assert_msg(directory != NULL, "ETALON_SIM_KERNELS is not set");
    snprintf(path, sizeof path, "%s/compiled_O%d_%s.co", directory, level, sim_arch_name(sim_device_arch(device)));
    void             *bytes = read_whole(path, &size);
    sim_object *const object = sim_object_load(device, bytes, size);
    ck_assert_msg(object != NULL, "%s: %s", path, sim_last_error());
    free(bytes);
    return object;
}

/* Of every size, half of them small: by a generator that is the same everywhere. */
static u32 draw(u32 *state)
{
    *state = *state * 1664525u + 1013904223u;
    const u32 x = *state ^ *state >> 15;
    return (x & 1) != 0 ? x : x >> (x >> 8 & 31);
}

static u32 *items(sim_device *device, const char *name, u32 *state)
{
    u32 *at = sim_allocate(device, ITEMS * sizeof *at, name);
    ck_assert_msg(at != NULL, "%s", sim_last_error());
    for (int i = 0; i < ITEMS; i++)
        at[i] = state == NULL ? 0 : draw(state);
    sim_mark_written(device, at, ITEMS * sizeof *at);
    return at;
}

static void run(sim_device *device, const sim_kernel *kernel, const u32 *a, const u32 *b, u32 *o)
{
    const void *const  argument[3] = { a, b, o };
    const sim_dispatch d = { .kernel = kernel, .grid = { ITEMS, 1, 1 }, .group = { GROUP, 1, 1 } };
    char               kernarg[1024] = { 0 };
    ck_assert_uint_le(kernel->kernarg_bytes, sizeof kernarg);
    memcpy(kernarg, argument, sizeof argument);
    sim_kernarg_fill(&d, kernarg);
    sim_dispatch with = d;
    with.kernarg = kernarg;
    with.kernarg_bytes = kernel->kernarg_bytes;
    ck_assert_msg(sim_run(device, &with), "%s: %s", kernel->name, sim_last_error());
}

static void run_on_host(formula *host, int lanes, const u32 *a, const u32 *b, u32 *o)
{
    compiled_lanes = lanes;
    for (compiled_base = 0; compiled_base < ITEMS; compiled_base += GROUP)
        for (compiled_item = 0; compiled_item < GROUP; compiled_item++)
            host(a, b, o);
}

static void assert_clean(const sim_device *device)
{
    for (uint32_t i = 0; i < sim_finding_count(device); i++)
        sim_print_finding(stderr, sim_finding_at(device, i));
    ck_assert_uint_eq(sim_finding_count(device), 0);
}

START_TEST(compiled_kernels_are_the_host_s)
{
    const int         k = _i % KERNELS, level = 1 + _i / KERNELS % LEVELS;
    const sim_options options = { .checks = CHECKS };
    sim_device       *device = sim_device_create((sim_arch)(_i / KERNELS / LEVELS), &options);
    ck_assert_msg(device != NULL, "%s", sim_last_error());
    const sim_kernel *kernel = sim_object_kernel(load(device, level), kernels[k].name);
    ck_assert_msg(kernel != NULL, "%s: %s", kernels[k].name, sim_last_error());
    u32        state = 20240607;
    u32       *a = items(device, "a", &state), *b = items(device, "b", &state);
    static u32 want[ITEMS];
    memset(want, 0, sizeof want);
    run_on_host(kernels[k].host, (int)kernel->wave_size, a, b, want);
    for (size_t s = 0; s < sizeof seeds / sizeof seeds[0]; s++) {
        const sim_options in_order = { .checks = CHECKS, .seed = seeds[s] };
        sim_device_set_options(device, &in_order);
        u32 *o = items(device, "o", NULL);
        run(device, kernel, a, b, o);
        for (int i = 0; i < ITEMS; i++)
            ck_assert_msg(o[i] == want[i], "%s at -O%d, seed %d, item %d: 0x%x, expected 0x%x", kernels[k].name, level,
                          (int)seeds[s], i, o[i], want[i]);
        assert_clean(device);
    }
    sim_device_destroy(device);
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_loop_test(t, compiled_kernels_are_the_host_s, 0, KERNELS * LEVELS * SIM_ARCHS);
}

int main(void)
{
    return testing_main("sim_compiled", fill);
}
