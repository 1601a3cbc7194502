#include "yardstick.h"

#include "features.h"
#include "fp8.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef _OPENMP
#include <omp.h>
#endif
#ifdef __x86_64__
#include <immintrin.h>
#endif
#ifdef __ARM_NEON
#include <arm_neon.h>
#endif

double yardstick_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int yardstick_most_threads(void)
{
#ifdef _OPENMP
    return omp_get_max_threads();
#else
    return 1;
#endif
}

/* Multiply-adds
 * -------------
 * Chains of x = x * a + b that do not wait for each other: latency times throughput of the units wants 8 to 10 of them,
 * and 12 fit the registers everywhere, beside a and b. x tends to b / (1 - a), a normal number. The compiler is told that
 * every step may have changed x, so that it neither merges steps nor moves them.
 */
#define FACTOR 0x1.ffep-1f /* 1 - 2^-12 */
#define TERM 0x1p-12f

enum { CHAINS = 12 };

#define STEP(x, step, reg) \
    x = step(x);           \
    __asm__ volatile("" : "+" reg(x))

#define NEON_STEP(x) vfmaq_f32(b, x, a)
#define PLAIN_STEP(x) x *a + b
#define AVX2_STEP(x) _mm256_fmadd_ps(x, a, b)
#define AVX512_STEP(x) _mm512_fmadd_ps(x, a, b)

#define CHAINS_BODY(vector, iterations, set, step, reg)                                                            \
    const vector a = set(FACTOR), b = set(TERM);                                                                   \
    vector       x0 = a, x1 = a, x2 = a, x3 = a, x4 = a, x5 = a, x6 = a, x7 = a, x8 = a, x9 = a, x10 = a, x11 = a; \
    for (int64_t n = iterations; n > 0; n--) {                                                                     \
        STEP(x0, step, reg);                                                                                       \
        STEP(x1, step, reg);                                                                                       \
        STEP(x2, step, reg);                                                                                       \
        STEP(x3, step, reg);                                                                                       \
        STEP(x4, step, reg);                                                                                       \
        STEP(x5, step, reg);                                                                                       \
        STEP(x6, step, reg);                                                                                       \
        STEP(x7, step, reg);                                                                                       \
        STEP(x8, step, reg);                                                                                       \
        STEP(x9, step, reg);                                                                                       \
        STEP(x10, step, reg);                                                                                      \
        STEP(x11, step, reg);                                                                                      \
    }

#if defined(__ARM_NEON)
static void chains_baseline(int64_t iterations)
{
    CHAINS_BODY(float32x4_t, iterations, vdupq_n_f32, NEON_STEP, "w")
}
#else
typedef float float4 __attribute__((vector_size(16)));

static float4 set4(float x)
{
    return (float4){ x, x, x, x };
}

static void chains_baseline(int64_t iterations)
{
#ifdef __x86_64__
    CHAINS_BODY(float4, iterations, set4, PLAIN_STEP, "x")
#else
    CHAINS_BODY(float4, iterations, set4, PLAIN_STEP, "m")
#endif
}
#endif

#ifdef __x86_64__
__attribute__((target("avx2,fma"))) static void chains_avx2(int64_t iterations)
{
    CHAINS_BODY(__m256, iterations, _mm256_set1_ps, AVX2_STEP, "x")
}

__attribute__((target("avx512f"))) static void chains_avx512(int64_t iterations)
{
    CHAINS_BODY(__m512, iterations, _mm512_set1_ps, AVX512_STEP, "v")
}
#endif

/* Tiles of 16 x 32 bf16 numbers, all of them 0, which is no faster. A product takes 16 cycles and waits 52 for the sums of
 * its own: four registers of sums keep the unit busy. By the opcodes, as not every compiler knows the mnemonics:
 * tdpbf16ps %tmm5, %tmm4, %tmm0 to %tmm3.
 */
#ifdef __x86_64__
enum { TILE_ITERATIONS = 8 }; /* for four products, 64 cycles: as long as 12 vectors each would take */

static void chains_amx(int64_t iterations)
{
    static const uint8_t shape[64]
        __attribute__((aligned(64))) = { [0] = 1,   [16] = 64, [18] = 64, [20] = 64, [22] = 64, [24] = 64, [26] = 64,
                                         [48] = 16, [49] = 16, [50] = 16, [51] = 16, [52] = 16, [53] = 16 };
    __asm__ volatile(".byte 0xc4, 0xe2, 0x78, 0x49, 0x00" /* ldtilecfg (%rax), which sets all registers to 0 */
                     :
                     : "a"(shape)
                     : "memory");
    for (int64_t n = iterations / TILE_ITERATIONS; n > 0; n--)
        __asm__ volatile(".byte 0xc4, 0xe2, 0x52, 0x5c, 0xc4\n"
                         ".byte 0xc4, 0xe2, 0x52, 0x5c, 0xcc\n"
                         ".byte 0xc4, 0xe2, 0x52, 0x5c, 0xd4\n"
                         ".byte 0xc4, 0xe2, 0x52, 0x5c, 0xdc\n");
    __asm__ volatile(".byte 0xc4, 0xe2, 0x78, 0x49, 0xc0"); /* tilerelease */
}
#endif

/* Decoding
 * --------
 * A code's bits, widened, are the fp16 number code * 2^-8, subnormal ones included: sign, exponent and mantissa only move.
 * All exponent bits set and the mantissa 7 is NaN, which fp16 writes as all ones.
 */
enum { DECODE_BLOCK = 1024 }; /* 4 KiB of fp32 */

static void decode_baseline(const uint8_t *codes, float *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = 0x1p-8f * f32_of_e4m3fn(codes[i]);
}

#ifdef __x86_64__
__attribute__((target("avx2,f16c"))) static void decode_avx2(const uint8_t *codes, float *to, int64_t n)
{
    const __m256i keep = _mm256_set1_epi16((short)0xBFFF), nan = _mm256_set1_epi16(0x3F80);
    int64_t       i = 0;
    for (; i + 16 <= n; i += 16) {
        const __m256i wide = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(codes + i)));
        __m256i       half = _mm256_and_si256(_mm256_srai_epi16(_mm256_slli_epi16(wide, 8), 1), keep);
        half = _mm256_or_si256(half, _mm256_cmpeq_epi16(_mm256_and_si256(half, nan), nan));
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm256_castsi256_si128(half)));
        _mm256_storeu_ps(to + i + 8, _mm256_cvtph_ps(_mm256_extracti128_si256(half, 1)));
    }
    decode_baseline(codes + i, to + i, n - i);
}

__attribute__((target("avx512f,avx512bw"))) static void decode_avx512(const uint8_t *codes, float *to, int64_t n)
{
    const __m512i keep = _mm512_set1_epi16((short)0xBFFF), nan = _mm512_set1_epi16(0x3F80);
    int64_t       i = 0;
    for (; i + 32 <= n; i += 32) {
        const __m512i   wide = _mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)(codes + i)));
        __m512i         half = _mm512_and_si512(_mm512_srai_epi16(_mm512_slli_epi16(wide, 8), 1), keep);
        const __mmask32 is_nan = _mm512_cmpeq_epi16_mask(_mm512_and_si512(half, nan), nan);
        half = _mm512_mask_set1_epi16(half, is_nan, -1);
        _mm512_storeu_ps(to + i, _mm512_cvtph_ps(_mm512_castsi512_si256(half)));
        _mm512_storeu_ps(to + i + 16, _mm512_cvtph_ps(_mm512_extracti64x4_epi64(half, 1)));
    }
    decode_baseline(codes + i, to + i, n - i);
}
#endif

/* Instruction sets
 * ----------------
 */
typedef struct isa {
    const char *name;
    void (*chains)(int64_t iterations);
    void (*decode)(const uint8_t *codes, float *to, int64_t n);
    int flops_per_iteration;
} isa;

static const isa isas[ISA_COUNT] = {
    [ISA_BASELINE] = { "baseline", chains_baseline, decode_baseline, 2 * 4 * CHAINS },
#ifdef __x86_64__
    [ISA_AVX2] = { "avx2", chains_avx2, decode_avx2, 2 * 8 * CHAINS },
    [ISA_AVX512] = { "avx512", chains_avx512, decode_avx512, 2 * 16 * CHAINS },
    [ISA_AMX] = { "amx", chains_amx, decode_avx512, 4 * 2 * 16 * 16 * 32 / TILE_ITERATIONS },
#else
    [ISA_AVX2] = { "avx2", NULL, NULL, 0 },
    [ISA_AVX512] = { "avx512", NULL, NULL, 0 },
    [ISA_AMX] = { "amx", NULL, NULL, 0 },
#endif
};

const char *yardstick_isa_name(yardstick_isa i)
{
    return isas[i].name;
}

bool yardstick_isa_here(yardstick_isa i)
{
#ifdef __x86_64__
    if (i == ISA_AVX2)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); /* and F16C: no CPU has AVX2 alone */
    if (i == ISA_AVX512)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
    if (i == ISA_AMX)
        return features_detect() & NEEDS_AMX;
#endif
    return i == ISA_BASELINE;
}

yardstick_isa yardstick_isa_of(const char *kernel)
{
    static const struct {
        const char   *word;
        yardstick_isa isa;
    } words[] = { { "_avx2", ISA_AVX2 }, { "_avx512", ISA_AVX512 }, { "_amx", ISA_AMX } };
    const char *last = strrchr(kernel, '_');
    for (size_t i = 0; last != NULL && i < sizeof words / sizeof words[0]; i++)
        if (strcmp(last, words[i].word) == 0)
            return words[i].isa;
    return ISA_BASELINE;
}

/* The sum of what the threads reach, each in its own time: CPUs that others share are not equally fast. */
double yardstick_fma(yardstick_isa i, int threads)
{
    const isa    *set = &isas[i];
    const int64_t iterations = 2000000; /* 24e6 vectors: 4 to 10 ms */
    double        rate = 0.0;
    (void)threads;
#pragma omp parallel num_threads(threads) reduction(+ : rate)
    {
#pragma omp barrier
        const double start = yardstick_now();
        set->chains(iterations);
        rate += (double)iterations * set->flops_per_iteration / (yardstick_now() - start);
    }
    return rate * 1e-9;
}

double yardstick_decode(yardstick_isa i, int threads, const uint8_t *codes, int64_t n)
{
    const isa    *set = &isas[i];
    const int64_t blocks = (n + DECODE_BLOCK - 1) / DECODE_BLOCK;
    const double  start = yardstick_now();
    (void)threads;
#pragma omp parallel num_threads(threads)
    {
        float  buffer[DECODE_BLOCK] __attribute__((aligned(64)));
        float *to = buffer;
#pragma omp for schedule(static)
        for (int64_t b = 0; b < blocks; b++) {
            const int64_t at = b * DECODE_BLOCK;
            set->decode(codes + at, to, n - at < DECODE_BLOCK ? n - at : DECODE_BLOCK);
            __asm__ volatile("" : : "r"(to) : "memory"); /* the buffer is read */
        }
    }
    return yardstick_now() - start;
}

bool yardstick_decode_is_exact(yardstick_isa i)
{
    uint8_t codes[256];
    float   got[256];
    for (int c = 0; c < 256; c++)
        codes[c] = (uint8_t)c;
    isas[i].decode(codes, got, 256);
    for (int c = 0; c < 256; c++) {
        const float want = f32_of_e4m3fn((uint8_t)c);
        if (!(isnan(want) ? isnan(got[c]) : got[c] * 0x1p8f == want))
            return false;
    }
    return true;
}

/* OpenBLAS
 * --------
 */
static void *symbol(yardstick_gemm *gemm, const char *name)
{
    void *at = dlsym(gemm->library, name);
    if (at == NULL)
        snprintf(gemm->what, sizeof gemm->what, "libopenblas.so.0 has no %s", name);
    return at;
}

static float *matrix(int n, float sign)
{
    float *at = malloc(sizeof *at * (size_t)n * (size_t)n);
    for (int64_t i = 0; at != NULL && i < (int64_t)n * n; i++)
        at[i] = sign * (float)(i * 7919 % 1021) / 1021.0f;
    return at;
}

void yardstick_gemm_open(yardstick_gemm *gemm, int n)
{
    *gemm = (yardstick_gemm){ .n = n };
    gemm->library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (gemm->library == NULL) {
        snprintf(gemm->what, sizeof gemm->what, "libopenblas.so.0 is not installed (Debian: libopenblas0)");
        return;
    }
    char *(*const config)(void) = (char *(*)(void))symbol(gemm, "openblas_get_config");
    char *(*const core)(void) = (char *(*)(void))symbol(gemm, "openblas_get_corename");
    gemm->set_threads = (void (*)(int))symbol(gemm, "openblas_set_num_threads");
    *(void **)&gemm->sgemm = symbol(gemm, "cblas_sgemm");
    gemm->a = matrix(n, 1.0f);
    gemm->b = matrix(n, -1.0f);
    gemm->c = matrix(n, 0.0f);
    if (config == NULL || core == NULL || gemm->set_threads == NULL || gemm->sgemm == NULL) {
        yardstick_gemm_close(gemm);
        return;
    }
    if (gemm->a == NULL || gemm->b == NULL || gemm->c == NULL) {
        snprintf(gemm->what, sizeof gemm->what, "no memory for three %d x %d matrices", n, n);
        yardstick_gemm_close(gemm);
        return;
    }
    char name[32] = "", version[32] = ""; /* "OpenBLAS 0.3.21 ..." */
    sscanf(config(), "%31s %31s", name, version);
    snprintf(gemm->what, sizeof gemm->what, "%s %s, %s kernels, %d^3", name, version, core(), n);
}

double yardstick_gemm_run(const yardstick_gemm *gemm, int threads)
{
    enum { ROW_MAJOR = 101, NO_TRANS = 111 };
    const int n = gemm->n;
    gemm->set_threads(threads);
    const double start = yardstick_now();
    gemm->sgemm(ROW_MAJOR, NO_TRANS, NO_TRANS, n, n, n, 1.0f, gemm->a, n, gemm->b, n, 0.0f, gemm->c, n);
    return 2.0 * n * n * n / (yardstick_now() - start) * 1e-9;
}

/* `what` stays. The library does too: its threads would not survive dlclose. */
void yardstick_gemm_close(yardstick_gemm *gemm)
{
    free(gemm->a);
    free(gemm->b);
    free(gemm->c);
    gemm->a = gemm->b = gemm->c = NULL;
    gemm->library = NULL;
}
