/* How fast the simulator is: seconds for c = a * b of E4M3 matrices, tests/sim/gemm_e4m3_ARCH.s, without checks and
 * with all.
 *
 *   sim_gemm OBJECT SIZE THREADS REPEATS
 *
 * The last three may be left out. OBJECT is gemm_e4m3_ARCH.co; SIZE is M = N = K, a multiple of 128 (1024). Prints the
 * best and the median of REPEATS (5) dispatches for each mode, and the peak of the memory that the process has used.
 */
#include "sim.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { TILE = 64, MOST_REPEATS = 99 };

typedef struct problem { /* the kernel's arguments */
    void    *a, *b, *c;
    uint32_t m, n, k;
    float    scale;
} problem;

static void die(const char *what)
{
    fprintf(stderr, "sim_gemm: %s: %s\n", what, sim_last_error());
    exit(EXIT_FAILURE);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static sim_object *load(sim_device *device, const char *path)
{
    static uint8_t bytes[1 << 20];
    FILE          *from = fopen(path, "rb");
    if (from == NULL) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    const size_t size = fread(bytes, 1, sizeof bytes, from);
    fclose(from);
    sim_object *object = sim_object_load(device, bytes, size);
    if (object == NULL)
        die(path);
    return object;
}

/* A matrix of E4M3 values between -1.875 and 1.875. */
static void *matrix(sim_device *device, size_t count, uint32_t state, const char *name)
{
    uint8_t *at = sim_allocate(device, count, name);
    if (at == NULL)
        die(name);
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        at[i] = (uint8_t)((state >> 24) & 0xBF);
    }
    sim_mark_written(device, at, count);
    return at;
}

static void time_mode(sim_arch arch, const char *path, uint32_t size, int repeats, sim_options options,
                      const char *mode)
{
    double      seconds[MOST_REPEATS];
    sim_device *device = sim_device_create(arch, &options);
    if (device == NULL)
        die("device");
    const sim_kernel *kernel = sim_object_kernel_at(load(device, path), 0);
    const size_t      count = (size_t)size * size;
    const problem     p = { .a = matrix(device, count, 1, "a"),
                            .b = matrix(device, count, 2, "b"),
                            .c = sim_allocate(device, sizeof(float) * count, "c"),
                            .m = size,
                            .n = size,
                            .k = size,
                            .scale = 1.0f };
    const uint32_t    group = 4 * kernel->wave_size;
    for (int i = 0; i < repeats; i++) {
        const sim_dispatch d = { .kernel = kernel,
                                 .grid = { size / TILE * group, size / TILE, 1 },
                                 .group = { group, 1, 1 },
                                 .kernarg = &p,
                                 .kernarg_bytes = sizeof p };
        const double       start = now();
        if (!sim_run(device, &d))
            die("dispatch");
        seconds[i] = now() - start;
    }
    qsort(seconds, (size_t)repeats, sizeof seconds[0], by_value);
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    printf("%-24s %8.3f s best %8.3f s median %8.1f MMAC/s %6ld MiB %" PRIu32 " findings\n", mode, seconds[0],
           seconds[repeats / 2], (double)count * size / seconds[0] / 1e6, used.ru_maxrss / 1024,
           sim_finding_count(device));
    fflush(stdout);
    for (uint32_t i = 0; i < sim_finding_count(device); i++)
        sim_print_finding(stderr, sim_finding_at(device, i));
    sim_device_destroy(device);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: sim_gemm OBJECT SIZE THREADS REPEATS\n");
        return EXIT_FAILURE;
    }
    const uint32_t size = argc > 2 ? (uint32_t)atoi(argv[2]) : 1024;
    const int      threads = argc > 3 ? atoi(argv[3]) : 0, repeats = argc > 4 ? atoi(argv[4]) : 5;
    const sim_arch arch = strstr(argv[1], "gfx1250") != NULL ? SIM_GFX1250 : SIM_GFX950;
    if (size == 0 || size % 128 != 0 || repeats < 1 || repeats > MOST_REPEATS) {
        fprintf(stderr, "sim_gemm: SIZE is a multiple of 128, REPEATS at most %d\n", MOST_REPEATS);
        return EXIT_FAILURE;
    }
    printf("%s, %" PRIu32 "^3, threads %d (0: all cores)\n", argv[1], size, threads);
    time_mode(arch, argv[1], size, repeats, (sim_options){ .threads = threads }, "no checks");
    time_mode(arch, argv[1], size, repeats, (sim_options){ .threads = threads, .checks = SIM_CHECK_ALL }, "all checks");
    time_mode(arch, argv[1], size, repeats, (sim_options){ .threads = threads, .checks = SIM_CHECK_ALL, .seed = 3 },
              "all checks, late, mixed");
    return EXIT_SUCCESS;
}
