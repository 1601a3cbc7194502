/* The part of the HIP runtime's interface that the stand-in has: devices, memory, modules, launches, streams, events.
 * Types and values are those of ROCm 6 and 7; hipGetDeviceProperties without a suffix fills the struct of ROCm 5, as
 * AMD's library does. Names of functions are those of the library, not of the macros in AMD's header.
 */
#ifndef ETALON_HIP_API_H
#define ETALON_HIP_API_H

#include <stddef.h>
#include <stdint.h>

typedef int hipError_t;

#define HIP_ERRORS(E)                                                                          \
    E(hipSuccess, 0, "no error")                                                               \
    E(hipErrorInvalidValue, 1, "invalid argument")                                             \
    E(hipErrorOutOfMemory, 2, "out of memory")                                                 \
    E(hipErrorNotInitialized, 3, "initialization error")                                       \
    E(hipErrorInvalidConfiguration, 9, "invalid configuration argument")                       \
    E(hipErrorInvalidSymbol, 13, "invalid device symbol")                                      \
    E(hipErrorInvalidDevicePointer, 17, "invalid device pointer")                              \
    E(hipErrorInvalidMemcpyDirection, 21, "invalid copy direction for memcpy")                 \
    E(hipErrorNoDevice, 100, "no device is detected")                                          \
    E(hipErrorInvalidDevice, 101, "invalid device ordinal")                                    \
    E(hipErrorInvalidImage, 200, "device kernel image is invalid")                             \
    E(hipErrorInvalidContext, 201, "invalid device context")                                   \
    E(hipErrorNoBinaryForGpu, 209, "no kernel image is available for execution on the device") \
    E(hipErrorFileNotFound, 301, "file not found")                                             \
    E(hipErrorInvalidHandle, 400, "invalid resource handle")                                   \
    E(hipErrorNotFound, 500, "named symbol not found")                                         \
    E(hipErrorNotReady, 600, "device not ready")                                               \
    E(hipErrorIllegalAddress, 700, "an illegal memory access was encountered")                 \
    E(hipErrorPeerAccessAlreadyEnabled, 704, "peer access is already enabled")                 \
    E(hipErrorPeerAccessNotEnabled, 705, "peer access has not been enabled")                   \
    E(hipErrorHostMemoryAlreadyRegistered, 712, "memory is already registered")                \
    E(hipErrorHostMemoryNotRegistered, 713, "memory is not registered")                        \
    E(hipErrorLaunchFailure, 719, "unspecified launch failure")                                \
    E(hipErrorNotSupported, 801, "operation not supported")                                    \
    E(hipErrorUnknown, 999, "unknown error")

enum {
#define E(name, value, text) name = value,
    HIP_ERRORS(E)
#undef E
};

typedef int                        hipDevice_t;
typedef struct ihipCtx_t          *hipCtx_t;
typedef struct ihipStream_t       *hipStream_t;
typedef struct ihipEvent_t        *hipEvent_t;
typedef struct ihipModule_t       *hipModule_t;
typedef struct ihipModuleSymbol_t *hipFunction_t;
typedef void                      *hipDeviceptr_t;
typedef void (*hipStreamCallback_t)(hipStream_t stream, hipError_t status, void *data);
typedef void (*hipHostFn_t)(void *data);

#define hipStreamLegacy ((hipStream_t)1)
#define hipStreamPerThread ((hipStream_t)2)

enum { hipStreamDefault = 0, hipStreamNonBlocking = 1 };
enum { hipEventDisableTiming = 2 };

typedef enum hipMemcpyKind {
    hipMemcpyHostToHost,
    hipMemcpyHostToDevice,
    hipMemcpyDeviceToHost,
    hipMemcpyDeviceToDevice,
    hipMemcpyDefault,
    hipMemcpyDeviceToDeviceNoCU = 1024
} hipMemcpyKind;

enum { hipMemoryTypeUnregistered = 0, hipMemoryTypeHost = 1, hipMemoryTypeDevice = 2 };

typedef struct hipPointerAttribute_t {
    int      type, device;
    void    *devicePointer, *hostPointer;
    int      isManaged;
    unsigned allocationFlags;
} hipPointerAttribute_t;

/* Of hipModuleLaunchKernel's last argument. */
#define HIP_LAUNCH_PARAM_BUFFER_POINTER ((void *)1)
#define HIP_LAUNCH_PARAM_BUFFER_SIZE ((void *)2)
#define HIP_LAUNCH_PARAM_END ((void *)3)

enum {
    HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
    HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
    HIP_FUNC_ATTRIBUTE_CONST_SIZE_BYTES = 2,
    HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3,
    HIP_FUNC_ATTRIBUTE_NUM_REGS = 4,
    HIP_FUNC_ATTRIBUTE_PTX_VERSION = 5,
    HIP_FUNC_ATTRIBUTE_BINARY_VERSION = 6,
    HIP_FUNC_ATTRIBUTE_CACHE_MODE_CA = 7,
    HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8
};

/* hipDeviceGetAttribute */
enum {
    hipDeviceAttributeEccEnabled = 0,
    hipDeviceAttributeAsyncEngineCount = 2,
    hipDeviceAttributeCanMapHostMemory = 3,
    hipDeviceAttributeClockRate = 5,
    hipDeviceAttributeComputeMode = 6,
    hipDeviceAttributeConcurrentKernels = 8,
    hipDeviceAttributeConcurrentManagedAccess = 9,
    hipDeviceAttributeCooperativeLaunch = 10,
    hipDeviceAttributeIntegrated = 16,
    hipDeviceAttributeKernelExecTimeout = 18,
    hipDeviceAttributeL2CacheSize = 19,
    hipDeviceAttributeComputeCapabilityMajor = 23,
    hipDeviceAttributeManagedMemory = 24,
    hipDeviceAttributeMaxBlockDimX = 26,
    hipDeviceAttributeMaxBlockDimY = 27,
    hipDeviceAttributeMaxBlockDimZ = 28,
    hipDeviceAttributeMaxGridDimX = 29,
    hipDeviceAttributeMaxGridDimY = 30,
    hipDeviceAttributeMaxGridDimZ = 31,
    hipDeviceAttributeMaxThreadsPerBlock = 56,
    hipDeviceAttributeMaxThreadsPerMultiProcessor = 57,
    hipDeviceAttributeMemoryBusWidth = 59,
    hipDeviceAttributeMemoryClockRate = 60,
    hipDeviceAttributeComputeCapabilityMinor = 61,
    hipDeviceAttributeMultiprocessorCount = 63,
    hipDeviceAttributePageableMemoryAccess = 65,
    hipDeviceAttributePciBusId = 67,
    hipDeviceAttributePciDeviceId = 68,
    hipDeviceAttributePciDomainId = 69,
    hipDeviceAttributeMaxRegistersPerBlock = 71,
    hipDeviceAttributeMaxRegistersPerMultiprocessor = 72,
    hipDeviceAttributeMaxSharedMemoryPerBlock = 74,
    hipDeviceAttributeSharedMemPerBlockOptin = 75,
    hipDeviceAttributeSharedMemPerMultiprocessor = 76,
    hipDeviceAttributeTotalConstantMemory = 83,
    hipDeviceAttributeUnifiedAddressing = 85,
    hipDeviceAttributeWarpSize = 87,
    hipDeviceAttributeMemoryPoolsSupported = 88,
    hipDeviceAttributeMaxSharedMemoryPerMultiprocessor = 10002,
    hipDeviceAttributeAsicRevision = 10012,
    hipDeviceAttributePhysicalMultiProcessorCount = 10015
};

/* Bits of hipDeviceArch_t that matter, from bit 0: 32-bit atomics (5 bits), 64-bit atomics (2), doubles, vote, ballot,
 * shuffle, funnel shift, fence, syncthreads_*, surfaces, 3-D grids, dynamic parallelism. */
enum { HIP_ARCH = 0x1FFFF & ~(1 << 14 | 1 << 16) };

typedef struct hipDeviceProp_tR0600 {
    char     name[256];
    uint8_t  uuid[16], luid[8];
    unsigned luidDeviceNodeMask;
    size_t   totalGlobalMem, sharedMemPerBlock;
    int      regsPerBlock, warpSize;
    size_t   memPitch;
    int      maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], clockRate;
    size_t   totalConstMem;
    int      major, minor;
    size_t   textureAlignment, texturePitchAlignment;
    int      deviceOverlap, multiProcessorCount, kernelExecTimeoutEnabled, integrated, canMapHostMemory, computeMode;
    int      textures_and_surfaces[40]; /* limits of their extents */
    size_t   surfaceAlignment;
    int      concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver, asyncEngineCount;
    int      unifiedAddressing, memoryClockRate, memoryBusWidth, l2CacheSize, persistingL2CacheMaxSize;
    int      maxThreadsPerMultiProcessor, streamPrioritiesSupported, globalL1CacheSupported, localL1CacheSupported;
    size_t   sharedMemPerMultiprocessor;
    int      regsPerMultiprocessor, managedMemory, isMultiGpuBoard, multiGpuBoardGroupID, hostNativeAtomicSupported;
    int      singleToDoublePrecisionPerfRatio, pageableMemoryAccess, concurrentManagedAccess;
    int      computePreemptionSupported, canUseHostPointerForRegisteredMem;
    int      cooperativeLaunch, cooperativeMultiDeviceLaunch;
    size_t   sharedMemPerBlockOptin;
    int      pageableMemoryAccessUsesHostPageTables, directManagedMemAccessFromHost, maxBlocksPerMultiProcessor;
    int      accessPolicyMaxWindowSize;
    size_t   reservedSharedMemPerBlock;
    int      hostRegisterSupported, sparseHipArraySupported, hostRegisterReadOnlySupported;
    int      timelineSemaphoreInteropSupported, memoryPoolsSupported, gpuDirectRDMASupported;
    unsigned gpuDirectRDMAFlushWritesOptions;
    int      gpuDirectRDMAWritesOrdering;
    unsigned memoryPoolSupportedHandleTypes;
    int      deferredMappingHipArraySupported, ipcEventSupported, clusterLaunch, unifiedFunctionPointers;
    int      reserved[63], hipReserved[32];
    char     gcnArchName[256];
    size_t   maxSharedMemoryPerMultiProcessor;
    int      clockInstructionRate;
    unsigned arch;
    void    *hdpMemFlushCntl, *hdpRegFlushCntl;
    int      cooperativeMultiDeviceUnmatched[4], isLargeBar, asicRevision;
} hipDeviceProp_tR0600;

typedef struct hipDeviceProp_tR0000 { /* ROCm 5 */
    char     name[256];
    size_t   totalGlobalMem, sharedMemPerBlock;
    int      regsPerBlock, warpSize, maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3];
    int      clockRate, memoryClockRate, memoryBusWidth;
    size_t   totalConstMem;
    int      major, minor, multiProcessorCount, l2CacheSize, maxThreadsPerMultiProcessor, computeMode;
    int      clockInstructionRate;
    unsigned arch;
    int      concurrentKernels, pciDomainID, pciBusID, pciDeviceID;
    size_t   maxSharedMemoryPerMultiProcessor;
    int      isMultiGpuBoard, canMapHostMemory, gcnArch;
    char     gcnArchName[256];
    int      integrated, cooperativeLaunch, cooperativeMultiDeviceLaunch;
    int      textures[7];
    void    *hdpMemFlushCntl, *hdpRegFlushCntl;
    size_t   memPitch, textureAlignment, texturePitchAlignment;
    int      kernelExecTimeoutEnabled, ECCEnabled, tccDriver, cooperativeMultiDeviceUnmatched[4];
    int      isLargeBar, asicRevision, managedMemory, directManagedMemAccessFromHost, concurrentManagedAccess;
    int      pageableMemoryAccess, pageableMemoryAccessUsesHostPageTables;
} hipDeviceProp_tR0000;

_Static_assert(sizeof(hipDeviceProp_tR0600) == 1472 && offsetof(hipDeviceProp_tR0600, gcnArchName) == 1160,
               "as ROCm 6 has it");
_Static_assert(sizeof(hipDeviceProp_tR0000) == 792 && offsetof(hipDeviceProp_tR0000, gcnArchName) == 396 &&
                   offsetof(hipDeviceProp_tR0000, memPitch) == 712 &&
                   offsetof(hipDeviceProp_tR0000, asicRevision) == 768,
               "as ROCm 5 has it");

#pragma GCC visibility push(default)

hipError_t hipInit(unsigned flags);
hipError_t hipDriverGetVersion(int *version);
hipError_t hipRuntimeGetVersion(int *version);
hipError_t hipGetLastError(void);
hipError_t hipPeekAtLastError(void);
const char *hipGetErrorName(hipError_t error);
const char *hipGetErrorString(hipError_t error);
hipError_t hipDrvGetErrorName(hipError_t error, const char **text);
hipError_t hipDrvGetErrorString(hipError_t error, const char **text);

hipError_t hipGetDeviceCount(int *count);
hipError_t hipGetDevice(int *device);
hipError_t hipSetDevice(int device);
hipError_t hipDeviceGet(hipDevice_t *device, int number);
hipError_t hipDeviceGetName(char *name, int bytes, hipDevice_t device);
hipError_t hipDeviceTotalMem(size_t *bytes, hipDevice_t device);
hipError_t hipDeviceComputeCapability(int *major, int *minor, hipDevice_t device);
hipError_t hipDeviceGetPCIBusId(char *id, int bytes, int device);
hipError_t hipDeviceGetAttribute(int *value, int attribute, int device);
hipError_t hipGetDeviceProperties(hipDeviceProp_tR0000 *properties, int device);
hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_tR0600 *properties, int device);
hipError_t hipDeviceSynchronize(void);
hipError_t hipDeviceCanAccessPeer(int *can, int device, int peer);
hipError_t hipDeviceEnablePeerAccess(int peer, unsigned flags);
hipError_t hipDeviceDisablePeerAccess(int peer);
hipError_t hipDeviceGetStreamPriorityRange(int *least, int *greatest);

hipError_t hipMalloc(void **at, size_t bytes);
hipError_t hipExtMallocWithFlags(void **at, size_t bytes, unsigned flags);
hipError_t hipMallocAsync(void **at, size_t bytes, hipStream_t stream);
hipError_t hipFree(void *at);
hipError_t hipFreeAsync(void *at, hipStream_t stream);
hipError_t hipHostMalloc(void **at, size_t bytes, unsigned flags);
hipError_t hipHostFree(void *at);
hipError_t hipHostRegister(void *at, size_t bytes, unsigned flags);
hipError_t hipHostUnregister(void *at);
hipError_t hipHostGetDevicePointer(void **device, void *host, unsigned flags);
hipError_t hipMemGetInfo(size_t *available, size_t *total);
hipError_t hipMemGetAddressRange(hipDeviceptr_t *base, size_t *bytes, hipDeviceptr_t at);
hipError_t hipPointerGetAttributes(hipPointerAttribute_t *attributes, const void *at);
hipError_t hipMemcpy(void *to, const void *from, size_t bytes, hipMemcpyKind kind);
hipError_t hipMemcpyAsync(void *to, const void *from, size_t bytes, hipMemcpyKind kind, hipStream_t stream);
hipError_t hipMemcpyWithStream(void *to, const void *from, size_t bytes, hipMemcpyKind kind, hipStream_t stream);
hipError_t hipMemcpyHtoD(hipDeviceptr_t to, void *from, size_t bytes);
hipError_t hipMemcpyDtoH(void *to, hipDeviceptr_t from, size_t bytes);
hipError_t hipMemcpyDtoD(hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes);
hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t to, void *from, size_t bytes, hipStream_t stream);
hipError_t hipMemcpyDtoHAsync(void *to, hipDeviceptr_t from, size_t bytes, hipStream_t stream);
hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes, hipStream_t stream);
hipError_t hipMemset(void *at, int value, size_t bytes);
hipError_t hipMemsetAsync(void *at, int value, size_t bytes, hipStream_t stream);
hipError_t hipMemsetD8(hipDeviceptr_t at, unsigned char value, size_t count);
hipError_t hipMemsetD8Async(hipDeviceptr_t at, unsigned char value, size_t count, hipStream_t stream);
hipError_t hipMemsetD16(hipDeviceptr_t at, unsigned short value, size_t count);
hipError_t hipMemsetD16Async(hipDeviceptr_t at, unsigned short value, size_t count, hipStream_t stream);
hipError_t hipMemsetD32(hipDeviceptr_t at, int value, size_t count);
hipError_t hipMemsetD32Async(hipDeviceptr_t at, int value, size_t count, hipStream_t stream);

hipError_t hipModuleLoad(hipModule_t *module, const char *path);
hipError_t hipModuleLoadData(hipModule_t *module, const void *image);
hipError_t hipModuleLoadDataEx(hipModule_t *module, const void *image, unsigned count, int *options, void **values);
hipError_t hipModuleUnload(hipModule_t module);
hipError_t hipModuleGetFunction(hipFunction_t *function, hipModule_t module, const char *name);
hipError_t hipModuleGetGlobal(hipDeviceptr_t *at, size_t *bytes, hipModule_t module, const char *name);
hipError_t hipFuncGetAttribute(int *value, int attribute, hipFunction_t function);
hipError_t hipFuncSetAttribute(const void *function, int attribute, int value);
hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                 unsigned block_x, unsigned block_y, unsigned block_z, unsigned dynamic_lds,
                                 hipStream_t stream, void **arguments, void **extra);
hipError_t hipExtModuleLaunchKernel(hipFunction_t function, uint32_t items_x, uint32_t items_y, uint32_t items_z,
                                    uint32_t block_x, uint32_t block_y, uint32_t block_z, size_t dynamic_lds,
                                    hipStream_t stream, void **arguments, void **extra, hipEvent_t start,
                                    hipEvent_t stop, uint32_t flags);

hipError_t hipStreamCreate(hipStream_t *stream);
hipError_t hipStreamCreateWithFlags(hipStream_t *stream, unsigned flags);
hipError_t hipStreamCreateWithPriority(hipStream_t *stream, unsigned flags, int priority);
hipError_t hipStreamDestroy(hipStream_t stream);
hipError_t hipStreamSynchronize(hipStream_t stream);
hipError_t hipStreamQuery(hipStream_t stream);
hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned flags);
hipError_t hipStreamGetFlags(hipStream_t stream, unsigned *flags);
hipError_t hipStreamGetPriority(hipStream_t stream, int *priority);
hipError_t hipStreamGetDevice(hipStream_t stream, hipDevice_t *device);
hipError_t hipStreamAddCallback(hipStream_t stream, hipStreamCallback_t callback, void *data, unsigned flags);
hipError_t hipLaunchHostFunc(hipStream_t stream, hipHostFn_t function, void *data);
hipError_t hipStreamBeginCapture(hipStream_t stream, int mode);
hipError_t hipStreamEndCapture(hipStream_t stream, void **graph);
hipError_t hipStreamIsCapturing(hipStream_t stream, int *status);

hipError_t hipEventCreate(hipEvent_t *event);
hipError_t hipEventCreateWithFlags(hipEvent_t *event, unsigned flags);
hipError_t hipEventDestroy(hipEvent_t event);
hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream);
hipError_t hipEventSynchronize(hipEvent_t event);
hipError_t hipEventQuery(hipEvent_t event);
hipError_t hipEventElapsedTime(float *milliseconds, hipEvent_t start, hipEvent_t stop);

#pragma GCC visibility pop

#endif
