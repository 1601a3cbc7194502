/* The device, and what the parts of the simulator tell each other about it. */
#ifndef ETALON_SIM_DEVICE_H
#define ETALON_SIM_DEVICE_H

#include "machine.h"

#include <stdatomic.h>

enum { SIM_ERROR_BYTES = 4096 }; /* of the longest sentence: a deadlock names every wave */

typedef struct sim_memory  sim_memory;  /* allocations: device.c */
typedef struct sim_record  sim_record;  /* a finding with what orders it: device.c */
typedef struct sim_results sim_results; /* counters of the last dispatch: counters.c */

struct sim_device {
    sim_arch        arch;
    sim_options     options;
    pthread_mutex_t lock;    /* of memory, findings, error */
    pthread_mutex_t running; /* held while a dispatch runs: one at a time */
    sim_memory     *memory;
    sim_record    **record; /* sorted as they are printed */
    uint32_t        records, record_room;
    sim_object     *objects; /* a list that object.c keeps, under lock */
    sim_results    *results;
    uint64_t        dispatches;

    /* Of the dispatch that runs. */
    atomic_bool stop;
    bool        failed;
    uint64_t    failed_order; /* of workgroup and wave: the first one's sentence is kept, whatever the threads did */
    char        error[SIM_ERROR_BYTES];
};

/* A kernel descriptor (LLVM's AMDGPUUsage, "Kernel Descriptor"). */
typedef struct sim_descriptor {
    uint32_t lds_bytes, private_bytes, kernarg_bytes, reserved0;
    int64_t  entry; /* from the descriptor's own address */
    uint8_t  reserved1[20];
    uint32_t rsrc3, rsrc1, rsrc2;
    uint16_t properties, preload;
    uint32_t reserved2;
} sim_descriptor;

_Static_assert(sizeof(sim_descriptor) == 64, "as the ABI says");

/* The decoded code of an object, and the memory that holds it (object.c). */
sim_code *sim_object_code(const sim_object *object);

/* Allocations as they are now, for one dispatch. Memory freed meanwhile stays mapped while device->running is held. */
sim_map *sim_map_create(sim_device *device);
void sim_map_destroy(sim_map *map);

/* What is written of a range: bits of sim_range.written. Several threads may mark and ask at once. */
void sim_range_mark(const sim_range *range, uint64_t at, uint64_t bytes);
bool sim_range_is_written(const sim_range *range, uint64_t at, uint64_t bytes);

/* A number that orders the waves of a dispatch: by workgroup, x fastest, then by wave. */
uint64_t sim_wave_order(const sim_wave *w);

#endif
