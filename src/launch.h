/* Launching kernels of our own through the runtime of the device's maker, each loaded by dlopen: HSA and HIP for AMD, the
 * CUDA driver for NVIDIA.
 *
 * A launcher belongs to one device and has all kernels for its architecture loaded, so that a run neither allocates nor
 * loads. Threads may share it.
 */
#ifndef ETALON_LAUNCH_H
#define ETALON_LAUNCH_H

#include "code_objects.h"
#include "error.h"

#include <stdbool.h>

enum {
    LAUNCH_MAX_STEPS = 16,     /* kernels of one call */
    LAUNCH_MAX_KERNELS = 64,   /* of one architecture */
    LAUNCH_MAX_KERNARG = 2048, /* bytes of arguments, hidden ones included */
};

/* A device as its maker's runtime knows it. */
typedef struct launch_place {
    uint64_t agent;    /* HSA; 0 on NVIDIA */
    void    *context;  /* CUDA: the primary context, in which OpenMP allocates; NULL on AMD */
    char     arch[32]; /* whose code objects it runs: "gfx950" */
    char     pci[16];  /* "0000:c1:00.0"; "" on NVIDIA */
    int32_t  units;    /* compute units; 0: not told */
} launch_place;

typedef struct launch_step {
    const char *stem;      /* the kernel etalon_<stem> */
    uint32_t    groups[3]; /* grid, in workgroups */
    uint32_t    threads;   /* of a workgroup, in one dimension */
    uint32_t    lds_bytes; /* dynamic */
    const void *args;      /* one struct by value */
    size_t      args_bytes;
} launch_step;

typedef struct launcher launcher;

typedef struct launch_api {
    const char *name;
    /* Loads the kernels of place->arch. `objects` ends with a stem of NULL and outlives the launcher. */
    etalon_status (*open)(const launch_place *place, const code_object *objects, launcher **to);
    void (*close)(launcher *l); /* NULL is allowed */
    /* Runs the steps one after the other. On `stream` they are only put there; without one they are done at return. */
    etalon_status (*run)(launcher *l, void *stream, const launch_step *steps, int count);
    /* Whether the runtime knows memory there that a kernel may touch; NULL: it cannot tell. */
    bool (*knows)(const launcher *l, const void *at);
} launch_api;

extern const launch_api launch_hsa;  /* takes no stream */
extern const launch_api launch_hip;  /* wants one */
extern const launch_api launch_cuda; /* takes both */

/* GPUs of that maker, as far as its runtime is in this process; 0 where it is not. */
int launch_hsa_devices(void);
int launch_cuda_devices(void);

/* Fills arch, pci and units of a place whose agent, or context, is set. */
etalon_status launch_hsa_describe(launch_place *place);
etalon_status launch_cuda_describe(launch_place *place);

/* One function of a runtime: its name, and the pointer to fill. */
typedef struct launch_symbol {
    const char *name;
    void      **to;
} launch_symbol;

/* A library that is in this process under one of the names; NULL: none. Nothing is loaded that is not: a device that
 * OpenMP has found, or a stream that a caller has made, brought its runtime along; a second copy would know neither. */
void *launch_library(const char *const *names);

/* False: one of the functions is missing, and *missing is its name. */
bool launch_load(void *library, const launch_symbol *symbols, int count, const char **missing);

/* The place of the kernel in `objects` restricted to `arch`; -1: none. */
int launch_find(const code_object *const *kernels, int count, const char *stem);

/* Those objects of the architecture; an error if there are none, or too many. */
etalon_status launch_choose(const char *runtime, const char *arch, const code_object *objects,
                            const code_object *kernels[LAUNCH_MAX_KERNELS], int *count);

#endif
