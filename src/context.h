/* What this process may use; immutable after creation. */
#ifndef ETALON_CONTEXT_H
#define ETALON_CONTEXT_H

#include <etalon/types.h>

/* What a kernel needs and a context has, one bit each. */
enum {
    NEEDS_NONE = 0,
    NEEDS_NAME = 1 << 0 /* reached by name only: in no context's set */
};

struct etalon_context {
    uint32_t have;
    int      threads; /* 0: as many as OpenMP would take */
};

/* Threads for a parallel region with this much independent work. */
int context_threads(const etalon_context *ctx, int64_t tasks);

#endif
