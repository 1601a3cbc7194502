/* The metadata of a code object: what the runtime needs to know of each kernel, in msgpack. */
#ifndef ETALON_SIM_METADATA_H
#define ETALON_SIM_METADATA_H

#include "sim.h"

typedef struct sim_metadata_kernel {
    char         *name, *symbol; /* symbol: of the descriptor, name.kd */
    sim_argument *arguments;
    uint32_t      argument_count, kernarg_bytes, max_group, vgprs, agprs, sgprs, wave_size;
} sim_metadata_kernel;

typedef struct sim_metadata {
    sim_metadata_kernel *kernels;
    uint32_t             kernel_count;
} sim_metadata;

/* No bytes are no kernels. What is read before an error is freed. */
bool sim_metadata_read(sim_metadata *metadata, const uint8_t *bytes, size_t size);
void sim_metadata_free(sim_metadata *metadata);

#endif
