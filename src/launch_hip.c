#include "launch.h"

#include "../sim/runtime/hip_api.h" /* the interface's types and numbers; its functions are looked up by name */

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Launches on streams of the caller's own. Never a copy or a fill: HIP does not know the memory that OpenMP gives, and
 * only kernels may touch it. */
struct launcher {
    int                device; /* HIP's number, which ROCR_VISIBLE_DEVICES and HIP_VISIBLE_DEVICES make another one */
    const code_object *objects[LAUNCH_MAX_KERNELS];
    hipModule_t        modules[LAUNCH_MAX_KERNELS];
    hipFunction_t      functions[LAUNCH_MAX_KERNELS];
    int                count, module_count;
};

#define FUNCTIONS(F)        \
    F(hipGetErrorString)    \
    F(hipGetDeviceCount)    \
    F(hipGetDevice)         \
    F(hipSetDevice)         \
    F(hipDeviceGetPCIBusId) \
    F(hipModuleLoadData)    \
    F(hipModuleUnload)      \
    F(hipModuleGetFunction) \
    F(hipModuleLaunchKernel)

static struct {
#define F(name) __typeof__(name) *name;
    FUNCTIONS(F)
#undef F
} hip;

/* Under a lock and not once for all: the caller may load HIP after a first try. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool            loaded;

static etalon_status load_functions(void)
{
    static const char *const   names[] = { "libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
                                           NULL };
    static const launch_symbol symbols[] = {
#define F(name) { #name, (void **)&hip.name },
        FUNCTIONS(F)
#undef F
    };
    const char *missing = NULL;
    pthread_mutex_lock(&lock);
    if (!loaded) {
        void *library = launch_library(names);
        if (library == NULL && dlsym(RTLD_DEFAULT, "hipModuleLaunchKernel") != NULL)
            library = RTLD_DEFAULT; /* under another file name */
        missing = "libamdhip64.so is not in this process, so that no stream is";
        loaded = library != NULL && launch_load(library, symbols, sizeof symbols / sizeof symbols[0], &missing);
    }
    const bool ok = loaded;
    pthread_mutex_unlock(&lock);
    return ok ? ETALON_OK : etalon_reject(ETALON_ERROR_DEVICE, "HIP: %s", missing);
}

static etalon_status reject(const char *what, hipError_t error)
{
    return etalon_reject(ETALON_ERROR_DEVICE, "HIP: %s: %s (%d)", what, hip.hipGetErrorString(error), (int)error);
}

#define HIP(function, ...)                                 \
    do {                                                   \
        const hipError_t hip_ = hip.function(__VA_ARGS__); \
        if (hip_ != hipSuccess)                            \
            return reject(#function, hip_);                \
    } while (0)

/* HIP numbers devices in its own way; the address on the bus is the same for all. */
static etalon_status find_device(const launch_place *place, int *device)
{
    int count = 0;
    HIP(hipGetDeviceCount, &count);
    for (*device = 0; *device < count; ++*device) {
        char pci[32] = "";
        HIP(hipDeviceGetPCIBusId, pci, sizeof pci, *device);
        if (strcmp(pci, place->pci) == 0)
            return ETALON_OK;
    }
    return etalon_reject(ETALON_ERROR_DEVICE, "HIP: none of its %d devices is the one at %s", count, place->pci);
}

static void close_hip(launcher *l)
{
    if (l == NULL)
        return;
    for (int i = 0; i < l->module_count; i++)
        hip.hipModuleUnload(l->modules[i]);
    free(l);
}

static etalon_status load_kernels(launcher *l)
{
    for (; l->module_count < l->count; l->module_count++) {
        const code_object *o = l->objects[l->module_count];
        HIP(hipModuleLoadData, &l->modules[l->module_count], o->bytes);
    }
    for (int i = 0; i < l->count; i++) {
        char name[128] = "etalon_";
        strncat(name, l->objects[i]->stem, sizeof name - sizeof "etalon_");
        HIP(hipModuleGetFunction, &l->functions[i], l->modules[i], name);
    }
    return ETALON_OK;
}

/* Makes the launcher's device current for the length of `call`, which the caller's thread must not notice. */
#define ON_DEVICE(l, status, call)          \
    do {                                    \
        int before = 0;                     \
        HIP(hipGetDevice, &before);         \
        if (before != (l)->device)          \
            HIP(hipSetDevice, (l)->device); \
        status = (call);                    \
        if (before != (l)->device)          \
            HIP(hipSetDevice, before);      \
    } while (0)

static etalon_status fill(launcher *l, const launch_place *place, const code_object *objects)
{
    etalon_status status;
    TRY(launch_choose("HIP", place->arch, objects, l->objects, &l->count));
    TRY(find_device(place, &l->device));
    ON_DEVICE(l, status, load_kernels(l));
    return status;
}

static etalon_status open_hip(const launch_place *place, const code_object *objects, launcher **to)
{
    TRY(load_functions());
    launcher *l = calloc(1, sizeof *l);
    if (l == NULL)
        return etalon_reject(ETALON_ERROR_OUT_OF_MEMORY, "HIP: %zu bytes", sizeof *l);
    const etalon_status status = fill(l, place, objects);
    if (status != ETALON_OK)
        close_hip(l);
    else
        *to = l;
    return status;
}

static etalon_status launch_all(const launcher *l, hipStream_t stream, const launch_step *steps, int count)
{
    for (int i = 0; i < count; i++) {
        const launch_step *s = &steps[i];
        const int          k = launch_find(l->objects, l->count, s->stem);
        size_t             bytes = s->args_bytes;
        if (k < 0)
            return etalon_reject(ETALON_ERROR_DEVICE, "HIP: no kernel etalon_%s was built for this device", s->stem);
        void *extra[] = { HIP_LAUNCH_PARAM_BUFFER_POINTER, (void *)(uintptr_t)s->args, HIP_LAUNCH_PARAM_BUFFER_SIZE,
                          &bytes, HIP_LAUNCH_PARAM_END };
        HIP(hipModuleLaunchKernel, l->functions[k], s->groups[0], s->groups[1], s->groups[2], s->threads, 1, 1,
            s->lds_bytes, stream, NULL, extra);
    }
    return ETALON_OK;
}

static etalon_status run_hip(launcher *l, void *stream, const launch_step *steps, int count)
{
    etalon_status status;
    if (stream == NULL)
        return etalon_reject(ETALON_ERROR_DEVICE, "HIP: no stream");
    ON_DEVICE(l, status, launch_all(l, stream == ETALON_STREAM_DEFAULT ? NULL : stream, steps, count));
    return status;
}

const launch_api launch_hip = { "HIP", open_hip, close_hip, run_hip, NULL };
