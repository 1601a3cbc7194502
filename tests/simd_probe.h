/* What one instruction set makes of simd.h: included with SIMD_BYTES and PROBE, a suffix, set. */
#include "simd.h"
#include "simd_probes.h"

#define PROBE_JOIN2(a, b) a##b
#define PROBE_JOIN(a, b) PROBE_JOIN2(a, b)

/* y[i] = 2^x[i]; n is a multiple of 16. */
void PROBE_JOIN(probe_exp2_, PROBE)(const float *x, float *y, int64_t n)
{
    for (int64_t i = 0; i < n; i += SIMD_LANES)
        simd_store(y + i, simd_exp2(simd_load(x + i)));
}

/* y[i] = the value of code x[i], NaN codes aside; n is a multiple of 16. */
void PROBE_JOIN(probe_decode_, PROBE)(const uint8_t *x, float *y, int64_t n, etalon_dtype dtype)
{
    for (int64_t i = 0; i < n; i += 16) {
        byte16 codes;
        memcpy(&codes, x + i, sizeof codes);
        simd_decode16_to(codes, y + i);
    }
    for (int64_t i = 0; i < n; i++)
        y[i] *= simd_fp8_of(dtype).unit;
}

/* The same, thirty-two codes at a time where that is a way of its own; n is a multiple of 32. */
void PROBE_JOIN(probe_decode_wide_, PROBE)(const uint8_t *x, float *y, int64_t n, etalon_dtype dtype)
{
#if SIMD_BYTES >= 32
    for (int64_t i = 0; i < n; i += 32) {
        byte32 codes;
        vfloat to[SIMD_THIRTY_TWO];
        memcpy(&codes, x + i, sizeof codes);
        simd_decode32(codes, to);
        for (int v = 0; v < SIMD_THIRTY_TWO; v++)
            simd_store(y + i + v * SIMD_LANES, to[v] * simd_fp8_of(dtype).unit);
    }
#else
    PROBE_JOIN(probe_decode_, PROBE)(x, y, n, dtype);
#endif
}

/* The same into memory. */
void PROBE_JOIN(probe_decode_wide_to_, PROBE)(const uint8_t *x, float *y, int64_t n, etalon_dtype dtype)
{
#if SIMD_BYTES >= 32
    for (int64_t i = 0; i < n; i += 32) {
        byte32 codes;
        memcpy(&codes, x + i, sizeof codes);
        simd_decode32_to(codes, y + i);
    }
    for (int64_t i = 0; i < n; i++)
        y[i] *= simd_fp8_of(dtype).unit;
#else
    PROBE_JOIN(probe_decode_, PROBE)(x, y, n, dtype);
#endif
}

float PROBE_JOIN(probe_sum_, PROBE)(const float *x)
{
    return simd_sum(simd_load(x));
}

/* y[i] = the sum of vector i of eight. */
void PROBE_JOIN(probe_sum8_, PROBE)(const float *x, float *y)
{
    vfloat all[8];
    for (int i = 0; i < 8; i++)
        all[i] = simd_load(x + i * SIMD_LANES);
#if SIMD_BYTES >= 32
    const float8 sums = simd_sum8(all);
    memcpy(y, &sums, sizeof sums);
#else
    for (int i = 0; i < 8; i++)
        y[i] = simd_sum(all[i]);
#endif
}

int PROBE_JOIN(probe_lanes_, PROBE)(void)
{
    return SIMD_LANES;
}
