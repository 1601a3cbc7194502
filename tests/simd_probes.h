/* The copies of simd_probe.h. */
#ifndef ETALON_SIMD_PROBES_H
#define ETALON_SIMD_PROBES_H

#include <etalon/types.h>

#define PROBES(isa)                                                                             \
    void probe_exp2_##isa(const float *x, float *y, int64_t n);                                 \
    void probe_decode_##isa(const uint8_t *x, float *y, int64_t n, etalon_dtype dtype);         \
    void probe_decode_wide_##isa(const uint8_t *x, float *y, int64_t n, etalon_dtype dtype);    \
    void probe_decode_wide_to_##isa(const uint8_t *x, float *y, int64_t n, etalon_dtype dtype); \
    float probe_sum_##isa(const float *x);                                                      \
    void probe_sum8_##isa(const float *x, float *y);                                            \
    int probe_lanes_##isa(void)
PROBES(generic);
PROBES(avx2);
PROBES(avx512);
PROBES(neon);
#undef PROBES

void probe_amx_codes(const uint8_t *x, float *y, etalon_dtype dtype);
void probe_amx_split(const float *x, float *y);
void probe_amx_multiply(const uint16_t *a, const uint16_t *b, float *c);

#endif
