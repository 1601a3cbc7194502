/* The stand-in for libamdhip64.so: devices, memory, modules and launches. Streams and events: hip_stream.c.
 *
 * As strict as AMD's library about whose memory it is: what another runtime allocated (OpenMP through HSA) a kernel may
 * use, and hipFree, hipMemset and a hipMemcpy of an explicit kind may not.
 */
#include "hip_stream.h"

#include <elf.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { VERSION = 60000000 }; /* ROCm 6: of the interface, not of an implementation */

/* Tags of memory; that of HSA has small ones, and a variable of a code object none. */
enum { OF_HIP = 1 << 8, OF_HIP_HOST = OF_HIP | 1 << 9, OF_HIP_REGISTERED = OF_HIP | 1 << 10 };

__thread int               hip_device;
static __thread hipError_t last_error;

/* Errors
 * ------
 */
hipError_t hip_result(hipError_t error)
{
    if (error != hipSuccess && error != hipErrorNotReady)
        last_error = error;
    return error;
}

hipError_t hipGetLastError(void)
{
    const hipError_t error = last_error;
    last_error = hipSuccess;
    return error;
}

hipError_t hipPeekAtLastError(void)
{
    return last_error;
}

static const struct {
    hipError_t  error;
    const char *name, *text;
} error_row[] = {
#define E(name, value, text) { name, #name, text },
    HIP_ERRORS(E)
#undef E
};

const char *hipGetErrorName(hipError_t error)
{
    for (size_t i = 0; i < sizeof error_row / sizeof error_row[0]; i++)
        if (error_row[i].error == error)
            return error_row[i].name;
    return "hipErrorUnknown";
}

const char *hipGetErrorString(hipError_t error)
{
    for (size_t i = 0; i < sizeof error_row / sizeof error_row[0]; i++)
        if (error_row[i].error == error)
            return error_row[i].text;
    return "unknown error";
}

hipError_t hipDrvGetErrorName(hipError_t error, const char **text)
{
    *text = hipGetErrorName(error);
    return hipSuccess;
}

hipError_t hipDrvGetErrorString(hipError_t error, const char **text)
{
    *text = hipGetErrorString(error);
    return hipSuccess;
}

/* Devices
 * -------
 */
#define START             \
    if (!runtime_start()) \
    return hip_result(hipErrorNoDevice)

#define DEVICE(device)                                      \
    START;                                                  \
    if ((device) < 0 || (device) >= runtime_device_count()) \
    return hip_result(hipErrorInvalidDevice)

hipError_t hipInit(unsigned flags)
{
    START;
    return hip_result(flags == 0 ? hipSuccess : hipErrorInvalidValue);
}

hipError_t hipDriverGetVersion(int *version)
{
    *version = VERSION;
    return hipSuccess;
}

hipError_t hipRuntimeGetVersion(int *version)
{
    *version = VERSION;
    return hipSuccess;
}

hipError_t hipGetDeviceCount(int *count)
{
    *count = 0;
    START;
    *count = runtime_device_count();
    return hipSuccess;
}

hipError_t hipGetDevice(int *device)
{
    START;
    *device = hip_device;
    return hipSuccess;
}

hipError_t hipSetDevice(int device)
{
    DEVICE(device);
    hip_device = device;
    return hipSuccess;
}

hipError_t hipDeviceGet(hipDevice_t *device, int number)
{
    DEVICE(number);
    *device = number;
    return hipSuccess;
}

hipError_t hipDeviceGetName(char *name, int bytes, hipDevice_t device)
{
    DEVICE(device);
    if (name == NULL || bytes <= 0)
        return hip_result(hipErrorInvalidValue);
    snprintf(name, (size_t)bytes, "%s", runtime_describe()->product);
    return hipSuccess;
}

hipError_t hipDeviceTotalMem(size_t *bytes, hipDevice_t device)
{
    DEVICE(device);
    *bytes = runtime_memory_bytes();
    return hipSuccess;
}

hipError_t hipDeviceComputeCapability(int *major, int *minor, hipDevice_t device)
{
    DEVICE(device);
    *major = (int)runtime_describe()->major;
    *minor = (int)runtime_describe()->minor;
    return hipSuccess;
}

/* Device n of HIP is GPU agent n of HSA, at bus n + 1 in both. */
hipError_t hipDeviceGetPCIBusId(char *id, int bytes, int device)
{
    DEVICE(device);
    if (id == NULL || bytes <= 0)
        return hip_result(hipErrorInvalidValue);
    snprintf(id, (size_t)bytes, "0000:%02x:00.0", (unsigned)device + 1);
    return hipSuccess;
}

hipError_t hipDeviceGetAttribute(int *value, int attribute, int device)
{
    DEVICE(device);
    const runtime_facts *fact = runtime_describe();
    const struct {
        int attribute, value;
    } row[] = {
        { hipDeviceAttributeEccEnabled, 1 },
        { hipDeviceAttributeAsyncEngineCount, 1 },
        { hipDeviceAttributeCanMapHostMemory, 1 },
        { hipDeviceAttributeClockRate, 0 },
        { hipDeviceAttributeComputeMode, 0 },
        { hipDeviceAttributeConcurrentKernels, 1 },
        { hipDeviceAttributeConcurrentManagedAccess, 0 },
        { hipDeviceAttributeCooperativeLaunch, 0 },
        { hipDeviceAttributeIntegrated, 0 },
        { hipDeviceAttributeKernelExecTimeout, 0 },
        { hipDeviceAttributeL2CacheSize, 0 },
        { hipDeviceAttributeComputeCapabilityMajor, (int)fact->major },
        { hipDeviceAttributeManagedMemory, 0 },
        { hipDeviceAttributeMaxBlockDimX, 1024 },
        { hipDeviceAttributeMaxBlockDimY, 1024 },
        { hipDeviceAttributeMaxBlockDimZ, 1024 },
        { hipDeviceAttributeMaxGridDimX, INT32_MAX },
        { hipDeviceAttributeMaxGridDimY, UINT16_MAX },
        { hipDeviceAttributeMaxGridDimZ, UINT16_MAX },
        { hipDeviceAttributeMaxThreadsPerBlock, 1024 },
        { hipDeviceAttributeMaxThreadsPerMultiProcessor, (int)(fact->waves_per_unit * fact->wave_size) },
        { hipDeviceAttributeMemoryBusWidth, 0 },
        { hipDeviceAttributeMemoryClockRate, 0 },
        { hipDeviceAttributeComputeCapabilityMinor, (int)fact->minor },
        { hipDeviceAttributeMultiprocessorCount, (int)fact->compute_units },
        { hipDeviceAttributePageableMemoryAccess, 0 },
        { hipDeviceAttributePciBusId, device + 1 },
        { hipDeviceAttributePciDeviceId, 0 },
        { hipDeviceAttributePciDomainId, 0 },
        { hipDeviceAttributeMaxRegistersPerBlock, (int)fact->registers },
        { hipDeviceAttributeMaxRegistersPerMultiprocessor, (int)fact->registers },
        { hipDeviceAttributeMaxSharedMemoryPerBlock, (int)fact->lds_bytes },
        { hipDeviceAttributeSharedMemPerBlockOptin, (int)fact->lds_bytes },
        { hipDeviceAttributeSharedMemPerMultiprocessor, (int)fact->lds_bytes },
        { hipDeviceAttributeTotalConstantMemory, INT32_MAX },
        { hipDeviceAttributeUnifiedAddressing, 1 },
        { hipDeviceAttributeWarpSize, (int)fact->wave_size },
        { hipDeviceAttributeMemoryPoolsSupported, 0 },
        { hipDeviceAttributeMaxSharedMemoryPerMultiprocessor, (int)fact->lds_bytes },
        { hipDeviceAttributeAsicRevision, 0 },
        { hipDeviceAttributePhysicalMultiProcessorCount, (int)fact->compute_units },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        if (row[i].attribute == attribute) {
            *value = row[i].value;
            return hipSuccess;
        }
    }
    return hip_result(hipErrorInvalidValue);
}

static void write_arch(char *name, size_t bytes)
{
    snprintf(name, bytes, "%s%s", sim_arch_name(runtime_arch()),
             runtime_arch() == SIM_GFX950 ? ":sramecc+:xnack-" : "");
}

static void fill_three(int to[3], int x, int y, int z)
{
    to[0] = x;
    to[1] = y;
    to[2] = z;
}

hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_tR0600 *p, int device)
{
    DEVICE(device);
    if (p == NULL)
        return hip_result(hipErrorInvalidValue);
    const runtime_facts *fact = runtime_describe();
    *p = (hipDeviceProp_tR0600){
        .uuid = { (uint8_t)(device + 1) },
        .totalGlobalMem = runtime_memory_bytes(),
        .sharedMemPerBlock = fact->lds_bytes,
        .regsPerBlock = (int)fact->registers,
        .warpSize = (int)fact->wave_size,
        .memPitch = INT32_MAX,
        .maxThreadsPerBlock = 1024,
        .totalConstMem = INT32_MAX,
        .major = (int)fact->major,
        .minor = (int)fact->minor,
        .multiProcessorCount = (int)fact->compute_units,
        .canMapHostMemory = 1,
        .concurrentKernels = 1,
        .ECCEnabled = 1,
        .pciBusID = device + 1,
        .asyncEngineCount = 1,
        .unifiedAddressing = 1,
        .maxThreadsPerMultiProcessor = (int)(fact->waves_per_unit * fact->wave_size),
        .sharedMemPerMultiprocessor = fact->lds_bytes,
        .regsPerMultiprocessor = (int)fact->registers,
        .sharedMemPerBlockOptin = fact->lds_bytes,
        .hostRegisterSupported = 1,
        .maxSharedMemoryPerMultiProcessor = fact->lds_bytes,
        .arch = HIP_ARCH,
    };
    snprintf(p->name, sizeof p->name, "%s", fact->product);
    write_arch(p->gcnArchName, sizeof p->gcnArchName);
    fill_three(p->maxThreadsDim, 1024, 1024, 1024);
    fill_three(p->maxGridSize, INT32_MAX, UINT16_MAX, UINT16_MAX);
    return hipSuccess;
}

hipError_t hipGetDeviceProperties(hipDeviceProp_tR0000 *p, int device)
{
    DEVICE(device);
    if (p == NULL)
        return hip_result(hipErrorInvalidValue);
    const runtime_facts *fact = runtime_describe();
    *p = (hipDeviceProp_tR0000){
        .totalGlobalMem = runtime_memory_bytes(),
        .sharedMemPerBlock = fact->lds_bytes,
        .regsPerBlock = (int)fact->registers,
        .warpSize = (int)fact->wave_size,
        .maxThreadsPerBlock = 1024,
        .totalConstMem = INT32_MAX,
        .major = (int)fact->major,
        .minor = (int)fact->minor,
        .multiProcessorCount = (int)fact->compute_units,
        .maxThreadsPerMultiProcessor = (int)(fact->waves_per_unit * fact->wave_size),
        .arch = HIP_ARCH,
        .concurrentKernels = 1,
        .pciBusID = device + 1,
        .maxSharedMemoryPerMultiProcessor = fact->lds_bytes,
        .canMapHostMemory = 1,
        .gcnArch = (int)(fact->major * 100 + fact->minor * 10 + fact->stepping),
        .memPitch = INT32_MAX,
        .ECCEnabled = 1,
    };
    snprintf(p->name, sizeof p->name, "%s", fact->product);
    write_arch(p->gcnArchName, sizeof p->gcnArchName);
    fill_three(p->maxThreadsDim, 1024, 1024, 1024);
    fill_three(p->maxGridSize, INT32_MAX, UINT16_MAX, UINT16_MAX);
    return hipSuccess;
}

/* Memory
 * ------
 */
static uint32_t all_devices(void)
{
    return (1u << runtime_device_count()) - 1;
}

/* peers[n]: the devices that may use the memory of device n, itself not counted. */
static struct {
    pthread_mutex_t lock;
    uint32_t        of[RUNTIME_MAX_DEVICES];
} peers = { .lock = PTHREAD_MUTEX_INITIALIZER };

hipError_t hipDeviceCanAccessPeer(int *can, int device, int peer)
{
    DEVICE(device);
    DEVICE(peer);
    *can = device != peer;
    return hipSuccess;
}

static hipError_t set_peer(int peer, bool allowed)
{
    DEVICE(peer);
    if (peer == hip_device)
        return hip_result(hipErrorInvalidDevice);
    pthread_mutex_lock(&peers.lock);
    const uint32_t bit = 1u << hip_device;
    const bool     was = (peers.of[peer] & bit) != 0;
    peers.of[peer] = allowed ? peers.of[peer] | bit : peers.of[peer] & ~bit;
    pthread_mutex_unlock(&peers.lock);
    if (was == allowed)
        return hip_result(allowed ? hipErrorPeerAccessAlreadyEnabled : hipErrorPeerAccessNotEnabled);
    return hipSuccess;
}

/* Of what the peer allocates from now on, and what it has. */
hipError_t hipDeviceEnablePeerAccess(int peer, unsigned flags)
{
    if (flags != 0)
        return hip_result(hipErrorInvalidValue);
    const hipError_t error = set_peer(peer, true);
    if (error == hipSuccess)
        runtime_allow_all(peer, 1u << hip_device);
    return error;
}

/* What was allowed stays so. */
hipError_t hipDeviceDisablePeerAccess(int peer)
{
    return set_peer(peer, false);
}

hipError_t hipMalloc(void **at, size_t bytes)
{
    START;
    if (at == NULL)
        return hip_result(hipErrorInvalidValue);
    *at = NULL;
    if (bytes == 0)
        return hipSuccess;
    *at = runtime_allocate(hip_device, bytes, OF_HIP);
    if (*at == NULL)
        return hip_result(hipErrorOutOfMemory);
    pthread_mutex_lock(&peers.lock);
    const uint32_t also = peers.of[hip_device];
    pthread_mutex_unlock(&peers.lock);
    if (also != 0)
        runtime_allow(*at, also);
    return hipSuccess;
}

hipError_t hipExtMallocWithFlags(void **at, size_t bytes, unsigned flags)
{
    (void)flags;
    return hipMalloc(at, bytes);
}

/* There at once, which is earlier than it has to be. */
hipError_t hipMallocAsync(void **at, size_t bytes, hipStream_t handle)
{
    START;
    const hipStream_t s = hip_stream_of(handle);
    if (s == NULL)
        return hip_result(hipErrorInvalidHandle);
    const int here = hip_device;
    hip_device = hip_stream_device(s);
    const hipError_t error = hipMalloc(at, bytes);
    hip_device = here;
    return error;
}

/* Memory that HIP has given, or a variable. */
static bool is_known(const void *at, runtime_memory *m)
{
    return runtime_find(at, m) && ((m->tag & OF_HIP) != 0 || m->tag == 0);
}

static bool is_start(const void *at, uint32_t tag, runtime_memory *m)
{
    return runtime_find(at, m) && m->at == at && m->tag == tag;
}

hipError_t hipFree(void *at)
{
    runtime_memory m;
    START;
    if (at == NULL)
        return hipSuccess;
    if (!is_start(at, OF_HIP, &m))
        return hip_result(hipErrorInvalidValue);
    const hipError_t error = hip_device_wait(m.owner);
    return hip_result(runtime_free(at) ? error : hipErrorInvalidValue);
}

hipError_t hipFreeAsync(void *at, hipStream_t handle)
{
    runtime_memory m;
    START;
    const hipStream_t s = hip_stream_of(handle);
    if (s == NULL)
        return hip_result(hipErrorInvalidHandle);
    if (at == NULL)
        return hipSuccess;
    if (!is_start(at, OF_HIP, &m))
        return hip_result(hipErrorInvalidValue);
    return hip_result(hip_enqueue(s, &(hip_operation){ .kind = HIP_FREE, .to = at }, false));
}

hipError_t hipHostMalloc(void **at, size_t bytes, unsigned flags)
{
    START;
    (void)flags;
    if (at == NULL)
        return hip_result(hipErrorInvalidValue);
    *at = NULL;
    if (bytes == 0)
        return hipSuccess;
    *at = runtime_allocate(RUNTIME_HOST, bytes, OF_HIP_HOST);
    if (*at != NULL && runtime_allow(*at, all_devices()))
        return hipSuccess;
    if (*at != NULL)
        runtime_free(*at);
    *at = NULL;
    return hip_result(hipErrorOutOfMemory);
}

static hipError_t wait_for_all(void)
{
    hipError_t error = hipSuccess;
    for (int i = 0; i < runtime_device_count(); i++) {
        const hipError_t now = hip_device_wait(i);
        error = error == hipSuccess ? now : error;
    }
    return error;
}

hipError_t hipHostFree(void *at)
{
    runtime_memory m;
    START;
    if (at == NULL)
        return hipSuccess;
    if (!is_start(at, OF_HIP_HOST, &m))
        return hip_result(hipErrorInvalidValue);
    const hipError_t error = wait_for_all();
    return hip_result(runtime_free(at) ? error : hipErrorInvalidValue);
}

hipError_t hipHostRegister(void *at, size_t bytes, unsigned flags)
{
    runtime_memory m;
    START;
    (void)flags;
    if (at == NULL || bytes == 0)
        return hip_result(hipErrorInvalidValue);
    if (is_known(at, &m))
        return hip_result(hipErrorHostMemoryAlreadyRegistered);
    return hip_result(runtime_lock(at, bytes, all_devices(), OF_HIP_REGISTERED) ? hipSuccess : hipErrorOutOfMemory);
}

hipError_t hipHostUnregister(void *at)
{
    runtime_memory m;
    START;
    if (!is_start(at, OF_HIP_REGISTERED, &m))
        return hip_result(hipErrorHostMemoryNotRegistered);
    const hipError_t error = wait_for_all();
    runtime_unlock(at);
    return hip_result(error);
}

hipError_t hipHostGetDevicePointer(void **device, void *host, unsigned flags)
{
    runtime_memory m;
    START;
    if (device == NULL || flags != 0 || !is_known(host, &m) || m.owner != RUNTIME_HOST)
        return hip_result(hipErrorInvalidValue);
    *device = host;
    return hipSuccess;
}

hipError_t hipMemGetInfo(size_t *available, size_t *total)
{
    START;
    *total = runtime_memory_bytes();
    *available = *total - runtime_memory_used(hip_device);
    return hipSuccess;
}

hipError_t hipMemGetAddressRange(hipDeviceptr_t *base, size_t *bytes, hipDeviceptr_t at)
{
    runtime_memory m;
    START;
    if (!is_known(at, &m))
        return hip_result(hipErrorNotFound);
    if (base != NULL)
        *base = m.at;
    if (bytes != NULL)
        *bytes = m.bytes;
    return hipSuccess;
}

hipError_t hipPointerGetAttributes(hipPointerAttribute_t *attributes, const void *at)
{
    runtime_memory m;
    START;
    if (attributes == NULL || at == NULL)
        return hip_result(hipErrorInvalidValue);
    *attributes = (hipPointerAttribute_t){ .type = hipMemoryTypeUnregistered, .device = -2 };
    if (!is_known(at, &m))
        return hipSuccess; /* as since ROCm 6 */
    *attributes = (hipPointerAttribute_t){
        .type = m.owner == RUNTIME_HOST ? hipMemoryTypeHost : hipMemoryTypeDevice,
        .device = m.owner == RUNTIME_HOST ? hip_device : m.owner,
        .devicePointer = (void *)at,
        .hostPointer = m.owner == RUNTIME_HOST ? (void *)at : NULL,
    };
    return hipSuccess;
}

/* Copies and fills
 * ----------------
 */
static bool fits_kind(hipMemcpyKind kind, bool to_known, bool from_known)
{
    switch (kind) {
    case hipMemcpyHostToHost:
    case hipMemcpyDefault:
        return true;
    case hipMemcpyHostToDevice:
        return to_known;
    case hipMemcpyDeviceToHost:
        return from_known;
    case hipMemcpyDeviceToDevice:
    case hipMemcpyDeviceToDeviceNoCU:
        return to_known && from_known;
    }
    return false;
}

/* With memory that HIP does not know the copy is made before the call returns: nobody pinned it. */
static hipError_t copy(void *to, const void *from, size_t bytes, hipMemcpyKind kind, hipStream_t handle, bool wait)
{
    runtime_memory m;
    START;
    const hipStream_t s = hip_stream_of(handle);
    if (s == NULL)
        return hip_result(hipErrorInvalidHandle);
    if (bytes == 0)
        return hipSuccess;
    if (to == NULL || from == NULL)
        return hip_result(hipErrorInvalidValue);
    const bool to_known = is_known(to, &m), from_known = is_known(from, &m);
    if (!fits_kind(kind, to_known, from_known)) {
        runtime_complain("copy of kind %d from %p to %p: %s is not memory that HIP knows", (int)kind, from, to,
                         to_known ? "the source" : "the destination");
        return hip_result(hipErrorInvalidValue);
    }
    if (!runtime_fits(from, bytes, "copy from") || !runtime_fits(to, bytes, "copy to"))
        return hip_result(hipErrorInvalidValue);
    const hip_operation op = { .kind = HIP_COPY, .to = to, .from = from, .bytes = bytes };
    return hip_result(hip_enqueue(s, &op, wait || !to_known || !from_known));
}

hipError_t hipMemcpy(void *to, const void *from, size_t bytes, hipMemcpyKind kind)
{
    return copy(to, from, bytes, kind, NULL, true);
}

hipError_t hipMemcpyAsync(void *to, const void *from, size_t bytes, hipMemcpyKind kind, hipStream_t stream)
{
    return copy(to, from, bytes, kind, stream, false);
}

hipError_t hipMemcpyWithStream(void *to, const void *from, size_t bytes, hipMemcpyKind kind, hipStream_t stream)
{
    return copy(to, from, bytes, kind, stream, true);
}

hipError_t hipMemcpyHtoD(hipDeviceptr_t to, void *from, size_t bytes)
{
    return copy(to, from, bytes, hipMemcpyHostToDevice, NULL, true);
}

hipError_t hipMemcpyDtoH(void *to, hipDeviceptr_t from, size_t bytes)
{
    return copy(to, from, bytes, hipMemcpyDeviceToHost, NULL, true);
}

hipError_t hipMemcpyDtoD(hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes)
{
    return copy(to, from, bytes, hipMemcpyDeviceToDevice, NULL, true);
}

hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t to, void *from, size_t bytes, hipStream_t stream)
{
    return copy(to, from, bytes, hipMemcpyHostToDevice, stream, false);
}

hipError_t hipMemcpyDtoHAsync(void *to, hipDeviceptr_t from, size_t bytes, hipStream_t stream)
{
    return copy(to, from, bytes, hipMemcpyDeviceToHost, stream, false);
}

hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes, hipStream_t stream)
{
    return copy(to, from, bytes, hipMemcpyDeviceToDevice, stream, false);
}

static hipError_t fill(void *at, uint32_t pattern, size_t width, size_t count, hipStream_t handle, bool wait)
{
    runtime_memory m;
    START;
    const hipStream_t s = hip_stream_of(handle);
    if (s == NULL)
        return hip_result(hipErrorInvalidHandle);
    if (count == 0)
        return hipSuccess;
    if (!is_known(at, &m) || count > SIZE_MAX / width || !runtime_fits(at, width * count, "fill of"))
        return hip_result(hipErrorInvalidValue);
    const hip_operation op = { .kind = HIP_FILL, .to = at, .bytes = count, .width = width, .pattern = pattern };
    return hip_result(hip_enqueue(s, &op, wait));
}

hipError_t hipMemset(void *at, int value, size_t bytes)
{
    return fill(at, (uint8_t)value, 1, bytes, NULL, true);
}

hipError_t hipMemsetAsync(void *at, int value, size_t bytes, hipStream_t stream)
{
    return fill(at, (uint8_t)value, 1, bytes, stream, false);
}

hipError_t hipMemsetD8(hipDeviceptr_t at, unsigned char value, size_t count)
{
    return fill(at, value, 1, count, NULL, true);
}

hipError_t hipMemsetD8Async(hipDeviceptr_t at, unsigned char value, size_t count, hipStream_t stream)
{
    return fill(at, value, 1, count, stream, false);
}

hipError_t hipMemsetD16(hipDeviceptr_t at, unsigned short value, size_t count)
{
    return fill(at, value, 2, count, NULL, true);
}

hipError_t hipMemsetD16Async(hipDeviceptr_t at, unsigned short value, size_t count, hipStream_t stream)
{
    return fill(at, value, 2, count, stream, false);
}

hipError_t hipMemsetD32(hipDeviceptr_t at, int value, size_t count)
{
    return fill(at, (uint32_t)value, 4, count, NULL, true);
}

hipError_t hipMemsetD32Async(hipDeviceptr_t at, int value, size_t count, hipStream_t stream)
{
    return fill(at, (uint32_t)value, 4, count, stream, false);
}

/* Modules
 * -------
 */
struct ihipModuleSymbol_t {
    const sim_kernel *kernel;
    hipModule_t       module;
    hipFunction_t     next;
};

struct ihipModule_t {
    sim_object     *object;
    int             device;
    pthread_mutex_t lock;
    hipFunction_t   functions;
};

/* How long an image is, which its caller does not tell: an ELF file up to the last thing that its headers point to, a
 * bundle of clang's up to its last part. 0: neither. */
static size_t elf_bytes(const void *image)
{
    Elf64_Ehdr header;
    if (memcmp(image, ELFMAG, SELFMAG) != 0)
        return 0;
    memcpy(&header, image, sizeof header);
    size_t size = header.e_shoff + (size_t)header.e_shnum * header.e_shentsize;
    for (int i = 0; i < header.e_phnum && header.e_phentsize == sizeof(Elf64_Phdr); i++) {
        Elf64_Phdr part;
        memcpy(&part, (const char *)image + header.e_phoff + (size_t)i * sizeof part, sizeof part);
        size = part.p_offset + part.p_filesz > size ? part.p_offset + part.p_filesz : size;
    }
    return size;
}

static size_t bundle_bytes(const void *image)
{
    static const char magic[] = "__CLANG_OFFLOAD_BUNDLE__";
    const char       *at = (const char *)image + sizeof magic - 1;
    uint64_t          count;
    size_t            size = 0;
    if (memcmp(image, magic, sizeof magic - 1) != 0)
        return 0;
    memcpy(&count, at, sizeof count);
    at += sizeof count;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t part[3]; /* offset, size, length of the name behind it */
        memcpy(part, at, sizeof part);
        size = part[0] + part[1] > size ? part[0] + part[1] : size;
        at += sizeof part + part[2];
    }
    return size;
}

static hipError_t load_object(hipModule_t *module, const void *bytes, size_t size)
{
    hipModule_t m = calloc(1, sizeof *m);
    *module = NULL;
    if (m == NULL)
        return hipErrorOutOfMemory;
    m->device = hip_device;
    m->object = sim_object_load(runtime_device(hip_device), bytes, size);
    if (m->object == NULL) {
        runtime_complain("%s", sim_last_error());
        free(m);
        return hipErrorInvalidImage;
    }
    pthread_mutex_init(&m->lock, NULL);
    *module = m;
    return hipSuccess;
}

hipError_t hipModuleLoadData(hipModule_t *module, const void *image)
{
    START;
    if (module == NULL || image == NULL)
        return hip_result(hipErrorInvalidValue);
    if (memcmp(image, "CCOB", 4) == 0) {
        runtime_complain("a compressed bundle: compile with --no-offload-compress");
        return hip_result(hipErrorInvalidImage);
    }
    const size_t elf = elf_bytes(image), size = elf != 0 ? elf : bundle_bytes(image);
    if (size != 0)
        return hip_result(load_object(module, image, size));
    runtime_complain("an image that is neither an ELF file nor a bundle");
    return hip_result(hipErrorInvalidImage);
}

hipError_t hipModuleLoadDataEx(hipModule_t *module, const void *image, unsigned count, int *options, void **values)
{
    (void)count;
    (void)options;
    (void)values;
    return hipModuleLoadData(module, image);
}

/* Read whole, with zeros behind, so that a file of a few bytes is safe to look at. */
static void *read_file(const char *path)
{
    enum { BEHIND = 64 };
    FILE  *file = fopen(path, "rbe");
    char  *bytes = NULL;
    size_t size = 0, room = 0;
    bool   ok = file != NULL;
    while (ok && feof(file) == 0) {
        if (size == room) {
            room = room == 0 ? 1 << 16 : 2 * room;
            char *grown = realloc(bytes, room + BEHIND);
            ok = grown != NULL;
            bytes = ok ? grown : bytes;
        }
        if (ok)
            size += fread(bytes + size, 1, room - size, file);
        ok = ok && ferror(file) == 0;
    }
    if (ok) {
        memset(bytes + size, 0, BEHIND);
    } else {
        runtime_complain("%s: %s", path, strerror(errno));
        free(bytes);
        bytes = NULL;
    }
    if (file != NULL)
        fclose(file);
    return bytes;
}

hipError_t hipModuleLoad(hipModule_t *module, const char *path)
{
    START;
    if (module == NULL || path == NULL)
        return hip_result(hipErrorInvalidValue);
    void *bytes = read_file(path);
    if (bytes == NULL)
        return hip_result(hipErrorFileNotFound);
    const hipError_t error = hipModuleLoadData(module, bytes);
    free(bytes);
    return error;
}

hipError_t hipModuleUnload(hipModule_t module)
{
    if (module == NULL)
        return hip_result(hipErrorInvalidHandle);
    const hipError_t error = hip_device_wait(module->device);
    sim_object_unload(module->object);
    while (module->functions != NULL) {
        hipFunction_t f = module->functions;
        module->functions = f->next;
        free(f);
    }
    pthread_mutex_destroy(&module->lock);
    free(module);
    return hip_result(error);
}

hipError_t hipModuleGetFunction(hipFunction_t *function, hipModule_t module, const char *name)
{
    if (function == NULL || name == NULL)
        return hip_result(hipErrorInvalidValue);
    *function = NULL;
    if (module == NULL)
        return hip_result(hipErrorInvalidHandle);
    const sim_kernel *kernel = sim_object_kernel(module->object, name);
    if (kernel == NULL)
        return hip_result(hipErrorNotFound);
    pthread_mutex_lock(&module->lock);
    hipFunction_t f = module->functions;
    while (f != NULL && f->kernel != kernel)
        f = f->next;
    if (f == NULL && (f = calloc(1, sizeof *f)) != NULL) {
        f->kernel = kernel;
        f->module = module;
        f->next = module->functions;
        module->functions = f;
    }
    pthread_mutex_unlock(&module->lock);
    *function = f;
    return hip_result(f == NULL ? hipErrorOutOfMemory : hipSuccess);
}

hipError_t hipModuleGetGlobal(hipDeviceptr_t *at, size_t *bytes, hipModule_t module, const char *name)
{
    void  *where;
    size_t size;
    if (module == NULL || name == NULL)
        return hip_result(hipErrorInvalidValue);
    if (!sim_object_variable(module->object, name, &where, &size))
        return hip_result(hipErrorNotFound);
    if (at != NULL)
        *at = where;
    if (bytes != NULL)
        *bytes = size;
    return hipSuccess;
}

hipError_t hipFuncGetAttribute(int *value, int attribute, hipFunction_t f)
{
    if (value == NULL || f == NULL)
        return hip_result(hipErrorInvalidValue);
    const sim_kernel *k = f->kernel;
    switch (attribute) {
    case HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = (int)k->max_group;
        return hipSuccess;
    case HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *value = (int)k->lds_bytes;
        return hipSuccess;
    case HIP_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
    case HIP_FUNC_ATTRIBUTE_CACHE_MODE_CA:
        *value = 0;
        return hipSuccess;
    case HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
        *value = (int)k->scratch_bytes;
        return hipSuccess;
    case HIP_FUNC_ATTRIBUTE_NUM_REGS:
        *value = (int)k->vgprs;
        return hipSuccess;
    case HIP_FUNC_ATTRIBUTE_PTX_VERSION:
    case HIP_FUNC_ATTRIBUTE_BINARY_VERSION:
        *value = (int)(runtime_describe()->major * 10 + runtime_describe()->minor);
        return hipSuccess;
    case HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = (int)(runtime_describe()->lds_bytes - k->lds_bytes);
        return hipSuccess;
    }
    return hip_result(hipErrorInvalidValue);
}

/* AMD GPUs need no leave for large LDS. */
hipError_t hipFuncSetAttribute(const void *function, int attribute, int value)
{
    (void)attribute;
    return hip_result(function == NULL || value < 0 ? hipErrorInvalidValue : hipSuccess);
}

/* Launches
 * --------
 */
static bool is_hidden(const sim_argument *a)
{
    return strncmp(a->kind, "hidden_", 7) == 0;
}

/* Behind the last argument that the caller gives. */
static size_t explicit_bytes(const sim_kernel *k)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < k->argument_count; i++)
        if (!is_hidden(&k->arguments[i]) && k->arguments[i].offset + k->arguments[i].bytes > bytes)
            bytes = k->arguments[i].offset + k->arguments[i].bytes;
    return bytes;
}

static bool read_pointers(const sim_kernel *k, void **arguments, char *kernarg)
{
    uint32_t n = 0;
    if (k->argument_count == 0 && k->kernarg_bytes != 0) {
        runtime_complain("%s: no metadata says which arguments it takes: pass them as a buffer", k->name);
        return false;
    }
    for (uint32_t i = 0; i < k->argument_count; i++) {
        const sim_argument *a = &k->arguments[i];
        if (is_hidden(a))
            continue;
        if (arguments == NULL || arguments[n] == NULL) {
            runtime_complain("%s: argument %u is missing", k->name, n);
            return false;
        }
        memcpy(kernarg + a->offset, arguments[n++], a->bytes);
    }
    return true;
}

static bool read_buffer(const sim_kernel *k, void **extra, char *kernarg)
{
    const void *from = NULL;
    size_t      bytes = 0;
    for (int i = 0; extra[i] != HIP_LAUNCH_PARAM_END; i += 2) {
        if (extra[i] == HIP_LAUNCH_PARAM_BUFFER_POINTER)
            from = extra[i + 1];
        else if (extra[i] == HIP_LAUNCH_PARAM_BUFFER_SIZE)
            memcpy(&bytes, extra[i + 1], sizeof bytes);
        else
            return false;
    }
    if (from == NULL || bytes < explicit_bytes(k) || bytes > k->kernarg_bytes) {
        runtime_complain("%s: a buffer of %zu bytes for arguments, the kernel reads %zu and with the hidden ones %u",
                         k->name, bytes, explicit_bytes(k), k->kernarg_bytes);
        return false;
    }
    memcpy(kernarg, from, bytes);
    return true;
}

static hipError_t check_launch(const sim_kernel *k, const uint64_t items[3], const uint32_t block[3], size_t dynamic)
{
    const uint64_t group = (uint64_t)block[0] * block[1] * block[2];
    for (int i = 0; i < 3; i++)
        if (block[i] == 0 || items[i] == 0 || items[i] > UINT32_MAX)
            return hipErrorInvalidConfiguration;
    if (group > k->max_group) {
        runtime_complain("%s: a block of %llu work-items, the kernel was compiled for at most %u", k->name,
                         (unsigned long long)group, k->max_group);
        return hipErrorInvalidConfiguration;
    }
    if (dynamic + k->lds_bytes > runtime_describe()->lds_bytes) {
        runtime_complain("%s: %zu bytes of LDS, %u of them static; there are %u", k->name, dynamic + k->lds_bytes,
                         k->lds_bytes, runtime_describe()->lds_bytes);
        return hipErrorInvalidConfiguration;
    }
    return hipSuccess;
}

static hipError_t launch(hipFunction_t f, const uint64_t items[3], const uint32_t block[3], size_t dynamic,
                         hipStream_t handle, void **arguments, void **extra)
{
    START;
    const hipStream_t s = hip_stream_of(handle);
    if (f == NULL || s == NULL)
        return hipErrorInvalidHandle;
    if (hip_stream_device(s) != f->module->device)
        return hipErrorInvalidContext;
    if (arguments != NULL && extra != NULL)
        return hipErrorInvalidValue;
    const sim_kernel *k = f->kernel;
    const hipError_t  error = check_launch(k, items, block, dynamic);
    if (error != hipSuccess)
        return error;
    hip_operation op = { .kind = HIP_LAUNCH,
                         .dispatch = { .kernel = k,
                                       .grid = { (uint32_t)items[0], (uint32_t)items[1], (uint32_t)items[2] },
                                       .group = { block[0], block[1], block[2] },
                                       .dynamic_lds = (uint32_t)dynamic,
                                       .kernarg_bytes = k->kernarg_bytes } };
    char         *kernarg = calloc(1, (size_t)k->kernarg_bytes + 1);
    if (kernarg == NULL)
        return hipErrorOutOfMemory;
    op.dispatch.kernarg = kernarg;
    sim_kernarg_fill(&op.dispatch, kernarg);
    if (!(extra != NULL ? read_buffer(k, extra, kernarg) : read_pointers(k, arguments, kernarg))) {
        free(kernarg);
        return hipErrorInvalidValue;
    }
    return hip_enqueue(s, &op, false);
}

hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                 unsigned block_x, unsigned block_y, unsigned block_z, unsigned dynamic_lds,
                                 hipStream_t stream, void **arguments, void **extra)
{
    const uint32_t block[3] = { block_x, block_y, block_z };
    const uint64_t items[3] = { (uint64_t)grid_x * block_x, (uint64_t)grid_y * block_y, (uint64_t)grid_z * block_z };
    return hip_result(launch(function, items, block, dynamic_lds, stream, arguments, extra));
}

hipError_t hipExtModuleLaunchKernel(hipFunction_t function, uint32_t items_x, uint32_t items_y, uint32_t items_z,
                                    uint32_t block_x, uint32_t block_y, uint32_t block_z, size_t dynamic_lds,
                                    hipStream_t stream, void **arguments, void **extra, hipEvent_t start,
                                    hipEvent_t stop, uint32_t flags)
{
    const uint32_t block[3] = { block_x, block_y, block_z };
    const uint64_t items[3] = { items_x, items_y, items_z };
    hipError_t     error = start == NULL ? hipSuccess : hipEventRecord(start, stream);
    (void)flags;
    if (error == hipSuccess)
        error = launch(function, items, block, dynamic_lds, stream, arguments, extra);
    if (error == hipSuccess && stop != NULL)
        error = hipEventRecord(stop, stream);
    return hip_result(error);
}
