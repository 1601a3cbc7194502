/* What a machine can do, measured: multiply-adds in registers, sgemm, decoding FP8. */
#ifndef ETALON_YARDSTICK_H
#define ETALON_YARDSTICK_H

#include <stdbool.h>
#include <stdint.h>

/* Instruction sets, ascending. BASELINE is what the compiler was told: SSE2 on x86-64, NEON on AArch64. */
typedef enum yardstick_isa { ISA_BASELINE, ISA_AVX2, ISA_AVX512, ISA_AMX, ISA_COUNT } yardstick_isa;

const char *yardstick_isa_name(yardstick_isa isa);
bool yardstick_isa_here(yardstick_isa isa);

/** The instruction set that a kernel is written for, by the last word of its name. */
yardstick_isa yardstick_isa_of(const char *kernel);

/** Seconds on the monotonic clock. */
double yardstick_now(void);

/** Threads that a parallel region may have here; 1 without OpenMP. */
int yardstick_most_threads(void);

/** GFLOP/s of independent multiply-adds in registers on so many threads at once; takes about 10 ms. In fp32; for AMX, of BF16
 * operands into fp32. */
double yardstick_fma(yardstick_isa isa, int threads);

/**
 * Seconds in which so many threads decode n E4M3FN codes to fp32, each into a buffer of its own that stays in L1. The
 * numbers come as multiples of 2^8 (kernels fold that into the descale), NaN as NaN.
 */
double yardstick_decode(yardstick_isa isa, int threads, const uint8_t *codes, int64_t n);

/** True if every code decodes to the number that it stands for. */
bool yardstick_decode_is_exact(yardstick_isa isa);

/* cblas_sgemm of the OpenBLAS that the loader finds. */
typedef struct yardstick_gemm {
    void *library; /* NULL: there is none */
    char  what[160];
    void (*set_threads)(int);
    void (*sgemm)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float *a, int lda,
                  const float *b, int ldb, float beta, float *c, int ldc);
    float *a, *b, *c;
    int    n;
} yardstick_gemm;

/** Loads OpenBLAS for products of n x n matrices; where that fails, `what` says why. */
void yardstick_gemm_open(yardstick_gemm *gemm, int n);

/** GFLOP/s of one product. */
double yardstick_gemm_run(const yardstick_gemm *gemm, int threads);

void yardstick_gemm_close(yardstick_gemm *gemm);

#endif
