/* What the host needs to fill the arguments of the portable kernels. */
#ifndef ETALON_OMP_HOST_H
#define ETALON_OMP_HOST_H

#include "tensor.h"

#include "workgroup.h"

static inline uint64_t omp_address(const etalon_tensor *t)
{
    return (uint64_t)(uintptr_t)t->data;
}

/* Elements of the last dimension stand together in each row, aligned to their size: 4 if 16 of them do, 1 if 4. */
static inline int32_t omp_quads(const etalon_tensor *t)
{
    const int64_t bytes = (int64_t)etalon_dtype_bytes(t->dtype);
    const int32_t last = t->rank - 1;
    int64_t       together = 16;
    for (; together >= 4; together /= 4) {
        bool aligned = t->stride[last] == 1 && omp_address(t) % (uint64_t)(together * bytes) == 0;
        for (int32_t d = 0; d < last; d++)
            aligned = aligned && (t->shape[d] < 2 || t->stride[d] % together == 0);
        if (aligned)
            break;
    }
    return (int32_t)(together / 4);
}

#endif
