/* What this process may use; immutable after creation. */
#ifndef ETALON_CONTEXT_H
#define ETALON_CONTEXT_H

#include "features.h"

struct etalon_context {
    uint32_t have;    /* features of the CPU, less those of ETALON_DISABLE */
    int      threads; /* 0: as many as OpenMP would take */
};

/* Threads for a parallel region with this much independent work. */
int context_threads(const etalon_context *ctx, int64_t tasks);

#endif
