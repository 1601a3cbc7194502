#include "gpu.h"

#ifndef HAVE_OFFLOAD

/* No context has a device, so that none of these has anything to do. */
const char *device_arch(const etalon_context *ctx)
{
    (void)ctx;
    return "none";
}

void *device_alloc(int32_t device, size_t bytes)
{
    (void)device;
    (void)bytes;
    return NULL;
}

void device_free(int32_t device, void *at)
{
    (void)device;
    (void)at;
}

bool device_send(int32_t device, void *to, const void *from, size_t bytes)
{
    (void)device;
    (void)to;
    (void)from;
    return bytes == 0;
}

bool device_fetch(int32_t device, void *to, const void *from, size_t bytes)
{
    return device_send(device, to, from, bytes);
}

bool device_stream_open(const etalon_context *ctx, device_stream *s)
{
    (void)ctx;
    *s = (device_stream){ .failed = "this build has no offload" };
    return false;
}

bool device_stream_wait(device_stream *s)
{
    (void)s;
    return false;
}

void device_stream_close(device_stream *s)
{
    (void)s;
}

#else

#include "context.h"
#include "offload.h"

#include "../sim/runtime/hip_api.h" /* the interface's types and numbers; its functions are looked up by name */

#include <dlfcn.h>
#include <omp.h>
#include <string.h>

const char *device_arch(const etalon_context *ctx)
{
    return offload_place(ctx->device)->arch;
}

/* Memory
 * ------
 */
void *device_alloc(int32_t device, size_t bytes)
{
    return omp_target_alloc(bytes, device);
}

void device_free(int32_t device, void *at)
{
    omp_target_free(at, device);
}

bool device_send(int32_t device, void *to, const void *from, size_t bytes)
{
    return bytes == 0 || omp_target_memcpy(to, from, bytes, 0, 0, device, omp_get_initial_device()) == 0;
}

bool device_fetch(int32_t device, void *to, const void *from, size_t bytes)
{
    return bytes == 0 || omp_target_memcpy(to, from, bytes, 0, 0, omp_get_initial_device(), device) == 0;
}

/* Streams
 * -------
 */
#define HIP_FUNCTIONS(F)    \
    F(hipGetDeviceCount)    \
    F(hipDeviceGetPCIBusId) \
    F(hipSetDevice)         \
    F(hipStreamCreate)      \
    F(hipStreamDestroy)     \
    F(hipStreamSynchronize)

static struct {
#define F(name) __typeof__(name) *name;
    HIP_FUNCTIONS(F)
#undef F
} hip;

enum { NON_BLOCKING = 1 /* CU_STREAM_NON_BLOCKING */ };

static struct {
    int (*cuCtxPushCurrent_v2)(void *context);
    int (*cuCtxPopCurrent_v2)(void **context);
    int (*cuStreamCreate)(void **stream, unsigned flags);
    int (*cuStreamDestroy_v2)(void *stream);
    int (*cuStreamSynchronize)(void *stream);
} cuda;

static const launch_symbol hip_symbols[] = {
#define F(name) { #name, (void **)&hip.name },
    HIP_FUNCTIONS(F)
#undef F
};

#define CUDA_SYMBOL(name) { #name, (void **)&cuda.name }
static const launch_symbol cuda_symbols[] = { CUDA_SYMBOL(cuCtxPushCurrent_v2), CUDA_SYMBOL(cuCtxPopCurrent_v2),
                                              CUDA_SYMBOL(cuStreamCreate), CUDA_SYMBOL(cuStreamDestroy_v2),
                                              CUDA_SYMBOL(cuStreamSynchronize) };

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))

static bool load(const char *const *names, const launch_symbol *symbols, int count, device_stream *s)
{
    void *library = NULL;
    for (int i = 0; names[i] != NULL && library == NULL; i++)
        library = dlopen(names[i], RTLD_NOW);
    if (library == NULL) {
        s->failed = names[0];
        return false;
    }
    return launch_load(library, symbols, count, &s->failed);
}

static bool is_done(device_stream *s, const char *function, int code)
{
    if (code != 0) {
        s->failed = function;
        s->code = code;
    }
    return code == 0;
}

/* The call's name and result; both runtimes return 0 where they succeed. */
#define DONE(s, call) is_done(s, #call, (int)(call))

/* HIP has numbers of its own; the address on the bus is the same. */
static bool choose_hip_device(const launch_place *place, device_stream *s)
{
    int  count = 0;
    char pci[32];
    if (!DONE(s, hip.hipGetDeviceCount(&count)))
        return false;
    for (int i = 0; i < count; i++)
        if (hip.hipDeviceGetPCIBusId(pci, sizeof pci, i) == hipSuccess && strcmp(pci, place->pci) == 0)
            return DONE(s, hip.hipSetDevice(i));
    s->failed = "HIP does not see the device";
    return false;
}

static bool open_hip(const launch_place *place, device_stream *s)
{
    static const char *const names[] = { "libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", NULL };
    hipStream_t              stream = NULL;
    if (!load(names, hip_symbols, COUNT(hip_symbols), s) || !choose_hip_device(place, s) ||
        !DONE(s, hip.hipStreamCreate(&stream)))
        return false;
    s->handle = stream;
    return true;
}

static bool open_cuda(const launch_place *place, device_stream *s)
{
    static const char *const names[] = { "libcuda.so.1", "libcuda.so", NULL };
    s->context = place->context;
    if (!load(names, cuda_symbols, COUNT(cuda_symbols), s) || !DONE(s, cuda.cuCtxPushCurrent_v2(s->context)))
        return false;
    const bool ok = DONE(s, cuda.cuStreamCreate(&s->handle, NON_BLOCKING));
    void      *popped;
    return DONE(s, cuda.cuCtxPopCurrent_v2(&popped)) && ok;
}

bool device_stream_open(const etalon_context *ctx, device_stream *s)
{
    const launch_place *place = offload_place(ctx->device);
    *s = (device_stream){ 0 };
    return place->context != NULL ? open_cuda(place, s) : open_hip(place, s);
}

bool device_stream_wait(device_stream *s)
{
    if (s->context == NULL)
        return DONE(s, hip.hipStreamSynchronize(s->handle));
    void *popped;
    if (!DONE(s, cuda.cuCtxPushCurrent_v2(s->context)))
        return false;
    const bool ok = DONE(s, cuda.cuStreamSynchronize(s->handle));
    return DONE(s, cuda.cuCtxPopCurrent_v2(&popped)) && ok;
}

void device_stream_close(device_stream *s)
{
    if (s->handle == NULL)
        return;
    if (s->context == NULL)
        hip.hipStreamDestroy(s->handle);
    else
        cuda.cuStreamDestroy_v2(s->handle);
    *s = (device_stream){ 0 };
}

#endif
