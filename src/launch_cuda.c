#include "launch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The driver's interface, as far as it is used here: CUDA Driver API, versions 12 and 13. */
typedef int                 CUresult, CUdevice;
typedef struct CUctx_st    *CUcontext;
typedef struct CUmod_st    *CUmodule;
typedef struct CUfunc_st   *CUfunction;
typedef struct CUstream_st *CUstream;
enum { CUDA_SUCCESS = 0, CU_STREAM_NON_BLOCKING = 1 };
enum { CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76 };
enum { CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8, UNASKED_SHARED_BYTES = 48 << 10 };
#define CU_LAUNCH_PARAM_END ((void *)0)
#define CU_LAUNCH_PARAM_BUFFER_POINTER ((void *)1)
#define CU_LAUNCH_PARAM_BUFFER_SIZE ((void *)2)

/* field, name in the library, parameters */
#define FUNCTIONS(F)                                                                                                  \
    F(init, cuInit, (unsigned))                                                                                       \
    F(error_string, cuGetErrorString, (CUresult, const char **))                                                      \
    F(device_count, cuDeviceGetCount, (int *))                                                                        \
    F(device_attribute, cuDeviceGetAttribute, (int *, int, CUdevice))                                                 \
    F(push, cuCtxPushCurrent_v2, (CUcontext))                                                                         \
    F(pop, cuCtxPopCurrent_v2, (CUcontext *))                                                                         \
    F(context_device, cuCtxGetDevice, (CUdevice *))                                                                   \
    F(load, cuModuleLoadData, (CUmodule *, const void *))                                                             \
    F(unload, cuModuleUnload, (CUmodule))                                                                             \
    F(function, cuModuleGetFunction, (CUfunction *, CUmodule, const char *))                                          \
    F(set_attribute, cuFuncSetAttribute, (CUfunction, int, int))                                                      \
    F(pointer_attribute, cuPointerGetAttribute, (void *, int, uint64_t))                                              \
    F(launch, cuLaunchKernel,                                                                                         \
      (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **, void **)) \
    F(stream_create, cuStreamCreate, (CUstream *, unsigned))                                                          \
    F(stream_destroy, cuStreamDestroy_v2, (CUstream))                                                                 \
    F(stream_wait, cuStreamSynchronize, (CUstream))

static struct {
#define F(field, name, parameters) CUresult(*field) parameters;
    FUNCTIONS(F)
#undef F
} cuda;

/* Streams of our own for callers without one, so that threads do not wait for each other. OpenMP's interop has one, too,
 * but LLVM 22 aborts when it is handed back. */
enum { LANES = 4 };

typedef struct lane {
    pthread_mutex_t lock;
    CUstream        stream;
} lane;

struct launcher {
    CUcontext          context;
    const code_object *objects[LAUNCH_MAX_KERNELS];
    CUmodule           modules[LAUNCH_MAX_KERNELS];
    CUfunction         functions[LAUNCH_MAX_KERNELS];
    int                count, module_count;
    lane               lanes[LANES];
    int                lane_count;
    atomic_uint        next;
    int                reaches_all; /* memory of the process, whether the driver knows it or not */
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const char    *missing = "libcuda.so is not in this process"; /* NULL: the functions are there */

/* The plugin of OpenMP opens the first name, other programs the second. Where they are two files, they are two drivers. */
static void load_functions(void)
{
    static const char *const   names[] = { "libcuda.so", "libcuda.so.1", NULL };
    static const launch_symbol symbols[] = {
#define F(field, name, parameters) { #name, (void **)&cuda.field },
        FUNCTIONS(F)
#undef F
    };
    void *library = launch_library(names);
    if (library != NULL && launch_load(library, symbols, sizeof symbols / sizeof symbols[0], &missing))
        missing = NULL;
}

static bool is_loaded(void)
{
    pthread_once(&once, load_functions);
    return missing == NULL;
}

static etalon_status reject(const char *what, CUresult result)
{
    const char *text = NULL;
    if (cuda.error_string(result, &text) != CUDA_SUCCESS || text == NULL)
        text = "unknown error";
    return etalon_reject(ETALON_ERROR_DEVICE, "CUDA: %s: %s (%d)", what, text, result);
}

#define CUDA(field, ...)                                \
    do {                                                \
        const CUresult cuda_ = cuda.field(__VA_ARGS__); \
        if (cuda_ != CUDA_SUCCESS)                      \
            return reject(#field, cuda_);               \
    } while (0)

/* Which context is current depends on what OpenMP did on this thread before: ours is, for the length of `call`. */
#define IN_CONTEXT(context, status, call) \
    do {                                  \
        CUcontext ours = NULL;            \
        CUDA(push, context);              \
        status = (call);                  \
        cuda.pop(&ours);                  \
    } while (0)

int launch_cuda_devices(void)
{
    int count = 0;
    if (!is_loaded() || cuda.init(0) != CUDA_SUCCESS || cuda.device_count(&count) != CUDA_SUCCESS)
        return 0;
    return count;
}

/* PTX for sm_90 serves it and what came after. */
static etalon_status describe_current(launch_place *place)
{
    enum { OLDEST = 90 };
    CUdevice device = 0;
    int      major = 0, minor = 0;
    CUDA(context_device, &device);
    CUDA(device_attribute, &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    CUDA(device_attribute, &minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
    const int capability = major * 10 + minor;
    snprintf(place->arch, sizeof place->arch, "sm_%d", capability < OLDEST ? capability : OLDEST);
    place->pci[0] = '\0';
    return ETALON_OK;
}

etalon_status launch_cuda_describe(launch_place *place)
{
    etalon_status status;
    if (!is_loaded())
        return etalon_reject(ETALON_ERROR_DEVICE, "CUDA: %s", missing);
    IN_CONTEXT(place->context, status, describe_current(place));
    return status;
}

static etalon_status fill(launcher *l)
{
    enum { PAGEABLE_MEMORY_ACCESS = 88 /* CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS */ };
    CUdevice device;
    CUDA(context_device, &device);
    CUDA(device_attribute, &l->reaches_all, PAGEABLE_MEMORY_ACCESS, device);
    for (; l->module_count < l->count; l->module_count++)
        CUDA(load, &l->modules[l->module_count], l->objects[l->module_count]->bytes);
    for (int i = 0; i < l->count; i++) {
        char name[128] = "etalon_";
        strncat(name, l->objects[i]->stem, sizeof name - sizeof "etalon_");
        CUDA(function, &l->functions[i], l->modules[i], name);
    }
    for (; l->lane_count < LANES; l->lane_count++) {
        CUDA(stream_create, &l->lanes[l->lane_count].stream, CU_STREAM_NON_BLOCKING);
        pthread_mutex_init(&l->lanes[l->lane_count].lock, NULL);
    }
    return ETALON_OK;
}

static etalon_status empty(launcher *l)
{
    for (int i = 0; i < l->lane_count; i++) {
        cuda.stream_destroy(l->lanes[i].stream);
        pthread_mutex_destroy(&l->lanes[i].lock);
    }
    for (int i = 0; i < l->module_count; i++)
        cuda.unload(l->modules[i]);
    return ETALON_OK;
}

static etalon_status empty_in_context(launcher *l)
{
    etalon_status status;
    IN_CONTEXT(l->context, status, empty(l));
    return status;
}

static void close_cuda(launcher *l)
{
    if (l == NULL)
        return;
    empty_in_context(l);
    free(l);
}

static etalon_status choose_and_fill(launcher *l, const launch_place *place, const code_object *objects)
{
    etalon_status status;
    TRY(launch_choose("CUDA", place->arch, objects, l->objects, &l->count));
    IN_CONTEXT(l->context, status, fill(l));
    return status;
}

static etalon_status open_cuda(const launch_place *place, const code_object *objects, launcher **to)
{
    if (!is_loaded())
        return etalon_reject(ETALON_ERROR_DEVICE, "CUDA: %s", missing);
    launcher *l = calloc(1, sizeof *l);
    if (l == NULL)
        return etalon_reject(ETALON_ERROR_OUT_OF_MEMORY, "CUDA: %zu bytes", sizeof *l);
    l->context = place->context;
    const etalon_status status = choose_and_fill(l, place, objects);
    if (status != ETALON_OK)
        close_cuda(l);
    else
        *to = l;
    return status;
}

static etalon_status launch_all(const launcher *l, CUstream stream, const launch_step *steps, int count)
{
    for (int i = 0; i < count; i++) {
        const launch_step *s = &steps[i];
        const int          k = launch_find(l->objects, l->count, s->stem);
        size_t             bytes = s->args_bytes;
        if (k < 0)
            return etalon_reject(ETALON_ERROR_DEVICE, "CUDA: no kernel etalon_%s was built for this device", s->stem);
        if (s->lds_bytes > UNASKED_SHARED_BYTES)
            CUDA(set_attribute, l->functions[k], CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)s->lds_bytes);
        void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, (void *)(uintptr_t)s->args, CU_LAUNCH_PARAM_BUFFER_SIZE,
                          &bytes, CU_LAUNCH_PARAM_END };
        CUDA(launch, l->functions[k], s->groups[0], s->groups[1], s->groups[2], s->threads, 1, 1, s->lds_bytes, stream,
             NULL, extra);
    }
    return ETALON_OK;
}

static etalon_status launch_and_wait(const launcher *l, CUstream stream, const launch_step *steps, int count)
{
    const etalon_status status = launch_all(l, stream, steps, count);
    CUDA(stream_wait, stream);
    return status;
}

/* A lane that is free, or the one whose turn it is. */
static lane *take_lane(launcher *l)
{
    const unsigned first = atomic_fetch_add_explicit(&l->next, 1, memory_order_relaxed);
    for (unsigned i = 0; i < LANES; i++)
        if (pthread_mutex_trylock(&l->lanes[(first + i) % LANES].lock) == 0)
            return &l->lanes[(first + i) % LANES];
    pthread_mutex_lock(&l->lanes[first % LANES].lock);
    return &l->lanes[first % LANES];
}

static etalon_status run_in_lane(launcher *l, const lane *a, const launch_step *steps, int count)
{
    etalon_status status;
    IN_CONTEXT(l->context, status, launch_and_wait(l, a->stream, steps, count));
    return status;
}

/* ETALON_STREAM_DEFAULT is CU_STREAM_LEGACY, and needs no translation. */
static etalon_status run_cuda(launcher *l, void *stream, const launch_step *steps, int count)
{
    etalon_status status;
    if (stream != NULL) {
        IN_CONTEXT(l->context, status, launch_all(l, stream, steps, count));
        return status;
    }
    lane *a = take_lane(l);
    status = run_in_lane(l, a, steps, count);
    pthread_mutex_unlock(&a->lock);
    return status;
}

/* A pointer that the driver does not know has no attribute. */
static bool knows_cuda(const launcher *l, const void *at)
{
    enum { MEMORY_TYPE = 2 /* CU_POINTER_ATTRIBUTE_MEMORY_TYPE */ };
    unsigned type;
    return l->reaches_all || cuda.pointer_attribute(&type, MEMORY_TYPE, (uint64_t)(uintptr_t)at) == CUDA_SUCCESS;
}

const launch_api launch_cuda = { "CUDA", open_cuda, close_cuda, run_cuda, knows_cuda };
