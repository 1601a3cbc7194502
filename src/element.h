/* One element of any floating-point or FP8 dtype, to and from fp32. */
#ifndef ETALON_ELEMENT_H
#define ETALON_ELEMENT_H

#include "fp8.h"

#include <etalon/types.h>

/* NaN for a dtype that is not a number format. F64 is rounded to fp32. */
static inline float element_load(const void *at, etalon_dtype dtype)
{
    switch (dtype) {
    case ETALON_F64:
        return (float)*(const double *)at;
    case ETALON_F32:
        return *(const float *)at;
    case ETALON_F16:
        return f32_of_f16(*(const uint16_t *)at);
    case ETALON_BF16:
        return f32_of_bf16(*(const uint16_t *)at);
    case ETALON_E4M3FN:
        return f32_of_e4m3fn(*(const uint8_t *)at);
    case ETALON_E4M3FNUZ:
        return f32_of_e4m3fnuz(*(const uint8_t *)at);
    case ETALON_E5M2:
        return f32_of_e5m2(*(const uint8_t *)at);
    case ETALON_E8M0:
        return f32_of_e8m0(*(const uint8_t *)at);
    default:
        return NAN;
    }
}

/* n elements, `stride` elements apart. Some loops stand apart so that a compiler can vectorise them. */
static inline void element_load_row(float *row, const void *at, etalon_dtype dtype, int64_t stride, int64_t n)
{
    if (dtype == ETALON_E4M3FN && stride == 1) {
        for (int64_t i = 0; i < n; i++)
            row[i] = f32_of_e4m3fn(((const uint8_t *)at)[i]);
        return;
    }
    if (dtype == ETALON_BF16 && stride == 1) {
        for (int64_t i = 0; i < n; i++)
            row[i] = f32_of_bf16(((const uint16_t *)at)[i]);
        return;
    }
    const int64_t bytes = stride * (int64_t)etalon_dtype_bytes(dtype);
    for (int64_t i = 0; i < n; i++)
        row[i] = element_load((const char *)at + i * bytes, dtype);
}

/* F32 or BF16. */
static inline void element_store(void *at, etalon_dtype dtype, float x)
{
    if (dtype == ETALON_BF16)
        *(uint16_t *)at = bf16_of_f32(x);
    else
        *(float *)at = x;
}

/* n elements, `stride` elements apart. */
static inline void element_store_row(void *at, etalon_dtype dtype, int64_t stride, const float *row, int64_t n)
{
    if (dtype == ETALON_F32 && stride == 1) {
        memcpy(at, row, (size_t)n * sizeof *row);
        return;
    }
    if (dtype == ETALON_BF16 && stride == 1) {
        for (int64_t i = 0; i < n; i++)
            ((uint16_t *)at)[i] = bf16_of_f32(row[i]);
        return;
    }
    const int64_t bytes = stride * (int64_t)etalon_dtype_bytes(dtype);
    for (int64_t i = 0; i < n; i++)
        element_store((char *)at + i * bytes, dtype, row[i]);
}

#endif
