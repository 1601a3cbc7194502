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

float PROBE_JOIN(probe_sum_, PROBE)(const float *x)
{
    return simd_sum(simd_load(x));
}

int PROBE_JOIN(probe_lanes_, PROBE)(void)
{
    return SIMD_LANES;
}
