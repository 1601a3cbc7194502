/* What this process may use; immutable after creation. */
#ifndef ETALON_CONTEXT_H
#define ETALON_CONTEXT_H

#include "features.h"

/* A row that failed its known answers on the context's device. */
typedef struct context_unqualified {
    const struct gate_row *row;
    char                   reason[160];
} context_unqualified;

struct etalon_context {
    uint32_t have;    /* features of the CPU and the device, less those of ETALON_DISABLE */
    int      threads; /* 0: as many as OpenMP would take */

    int fmha_varlen_waves; /* of a workgroup on gfx1250: ETALON_FMHA_VARLEN_WAVES; 0: what suits the problem */

    struct offload_device *device;      /* NULL: none; NEEDS_OFFLOAD goes with it */
    context_unqualified   *unqualified; /* with room for all rows of devices; src/qualify.c */
    int                    unqualified_count;
};

/* Why the row may not serve unless it is named; NULL if it may. */
const char *context_why_unqualified(const etalon_context *ctx, const struct gate_row *row);

/* Threads for a parallel region with this much independent work. */
int context_threads(const etalon_context *ctx, int64_t tasks);

#endif
