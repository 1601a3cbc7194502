/* The copies of simd_probe.h. */
#ifndef ETALON_SIMD_PROBES_H
#define ETALON_SIMD_PROBES_H

#include <etalon/types.h>

#define PROBES(isa)                                                                     \
    void probe_exp2_##isa(const float *x, float *y, int64_t n);                         \
    void probe_decode_##isa(const uint8_t *x, float *y, int64_t n, etalon_dtype dtype); \
    float probe_sum_##isa(const float *x);                                              \
    int probe_lanes_##isa(void)
PROBES(generic);
PROBES(avx2);
PROBES(avx512);
PROBES(neon);
#undef PROBES

#endif
