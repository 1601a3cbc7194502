/* View arithmetic, and the checks that every operation makes of its tensors. */
#ifndef ETALON_TENSOR_H
#define ETALON_TENSOR_H

#include "error.h"

#include <stdbool.h>

/* Keys that one row sees, half open; first == last where it sees none. */
typedef struct key_range {
    int64_t first, last;
} key_range;

/* Which dtypes an argument may have: one bit each. */
#define DTYPE_BIT(dtype) (1u << (dtype))
#define DTYPES_FP8 (DTYPE_BIT(ETALON_E4M3FN) | DTYPE_BIT(ETALON_E4M3FNUZ))
#define DTYPES_INDEX (DTYPE_BIT(ETALON_I32) | DTYPE_BIT(ETALON_I64))
#define DTYPES_OUT (DTYPE_BIT(ETALON_BF16) | DTYPE_BIT(ETALON_F32))
#define DTYPES_OPERAND (DTYPES_FP8 | DTYPES_OUT)

static inline bool dtype_is_fp8(etalon_dtype dtype)
{
    return dtype == ETALON_E4M3FN || dtype == ETALON_E4M3FNUZ || dtype == ETALON_E5M2;
}

static inline bool tensor_absent(const etalon_tensor *t)
{
    return t->data == NULL;
}

static inline bool tensor_empty(const etalon_tensor *t)
{
    for (int32_t d = 0; d < t->rank; d++)
        if (t->shape[d] == 0)
            return true;
    return false;
}

/* Lowest and one past the highest byte that the elements of a view that has some touch. */
void tensor_span(const etalon_tensor *t, uintptr_t *first, uintptr_t *last);

/* Every byte of the span belongs to an element, be it to several (broadcasts). Only then does an overlap of spans prove
 * an overlap of elements. */
bool tensor_dense(const etalon_tensor *t);

/* Address of an element, in bytes from data; the caller has checked the indices. */
static inline char *tensor_at2(const etalon_tensor *t, int64_t i0, int64_t i1)
{
    const int64_t bytes = (int64_t)etalon_dtype_bytes(t->dtype);
    return (char *)t->data + (i0 * t->stride[0] + i1 * t->stride[1]) * bytes;
}

static inline char *tensor_at3(const etalon_tensor *t, int64_t i0, int64_t i1, int64_t i2)
{
    const int64_t bytes = (int64_t)etalon_dtype_bytes(t->dtype);
    return (char *)t->data + (i0 * t->stride[0] + i1 * t->stride[1] + i2 * t->stride[2]) * bytes;
}

/* Element i of an index vector, I32 or I64. */
static inline int64_t index_at(const etalon_tensor *t, int64_t i)
{
    if (t->dtype == ETALON_I64)
        return ((const int64_t *)t->data)[i * t->stride[0]];
    return ((const int32_t *)t->data)[i * t->stride[0]];
}

/* Present, rank and dtype as told, extents not negative, every element's offset within 63 bits of bytes. */
etalon_status tensor_check(const char *op, const char *name, const etalon_tensor *t, int32_t rank, uint32_t dtypes);

/* The extent in one dimension; `rule` names where the number comes from ("D of q"). */
etalon_status tensor_check_extent(const char *op, const char *name, const etalon_tensor *t, int32_t dim, int64_t want,
                                  const char *rule);

/* No element stands twice, and a dense output shares no memory with a dense input (`names` and `inputs` in step). */
etalon_status tensor_check_output(const char *op, const char *name, const etalon_tensor *t, const char *const *names,
                                  const etalon_tensor *const *inputs, int count);

/* All present tensors live on one device. `names` and `tensors` run in step. */
etalon_status tensor_check_device(const char *op, const char *const *names, const etalon_tensor *const *tensors,
                                  int count);

/* cu_seqlens: starts at 0, does not decrease, ends at total. Host memory only. */
etalon_status tensor_check_cu_seqlens(const char *op, const char *name, const etalon_tensor *t, int64_t total,
                                      const char *rule);

#endif
