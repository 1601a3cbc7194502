/* The stand-in for libamdhip64.so, as a program sees it: through dlopen.
 *
 * ETALON_SIM_LIBRARIES names the directory of the libraries, ETALON_SIM_KERNELS that of runtime_ARCH.co
 * (tests/sim/runtime_ARCH.s).
 */
#include "testing.h"

#include "../sim/runtime/hip_api.h"
#include "../sim/runtime/hsa_api.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

/* The library
 * -----------
 */
#define FUNCTIONS(F)               \
    F(hipInit)                     \
    F(hipGetLastError)             \
    F(hipPeekAtLastError)          \
    F(hipGetErrorName)             \
    F(hipGetErrorString)           \
    F(hipGetDeviceCount)           \
    F(hipGetDevice)                \
    F(hipSetDevice)                \
    F(hipDeviceGetPCIBusId)        \
    F(hipDeviceGetAttribute)       \
    F(hipGetDeviceProperties)      \
    F(hipGetDevicePropertiesR0600) \
    F(hipDeviceSynchronize)        \
    F(hipDeviceEnablePeerAccess)   \
    F(hipDeviceDisablePeerAccess)  \
    F(hipMalloc)                   \
    F(hipMallocAsync)              \
    F(hipFree)                     \
    F(hipFreeAsync)                \
    F(hipHostMalloc)               \
    F(hipHostFree)                 \
    F(hipHostRegister)             \
    F(hipHostUnregister)           \
    F(hipMemGetInfo)               \
    F(hipMemGetAddressRange)       \
    F(hipPointerGetAttributes)     \
    F(hipMemcpy)                   \
    F(hipMemcpyAsync)              \
    F(hipMemset)                   \
    F(hipMemsetAsync)              \
    F(hipMemsetD32)                \
    F(hipModuleLoad)               \
    F(hipModuleLoadData)           \
    F(hipModuleUnload)             \
    F(hipModuleGetFunction)        \
    F(hipModuleGetGlobal)          \
    F(hipFuncGetAttribute)         \
    F(hipModuleLaunchKernel)       \
    F(hipExtModuleLaunchKernel)    \
    F(hipStreamCreate)             \
    F(hipStreamCreateWithFlags)    \
    F(hipStreamDestroy)            \
    F(hipStreamSynchronize)        \
    F(hipStreamQuery)              \
    F(hipStreamWaitEvent)          \
    F(hipLaunchHostFunc)           \
    F(hipStreamBeginCapture)       \
    F(hipStreamIsCapturing)        \
    F(hipEventCreate)              \
    F(hipEventDestroy)             \
    F(hipEventRecord)              \
    F(hipEventSynchronize)         \
    F(hipEventQuery)               \
    F(hipEventElapsedTime)

#define DECLARE(f) static __typeof__(f) *p_##f;
FUNCTIONS(DECLARE)

static const char *const arch_name[] = { "gfx950", "gfx1250" };
static void             *library;

static const char *environment(const char *name)
{
    const char *value = getenv(name);
    ck_assert_msg(value != NULL, "%s is not set", name);
    return value;
}

/* A process of Check's runs one test, so the environment is read anew in each. */
static void open_library(int arch, const char *devices)
{
    char path[4096];
    setenv("ETALON_SIM_ARCH", arch_name[arch], 1);
    setenv("ETALON_SIM_DEVICES", devices, 1);
    snprintf(path, sizeof path, "%s/libamdhip64.so", environment("ETALON_SIM_LIBRARIES"));
    library = dlopen(path, RTLD_NOW);
    ck_assert_msg(library != NULL, "%s", dlerror());
#define LOOK_UP(f)                               \
    p_##f = (__typeof__(f) *)dlsym(library, #f); \
    ck_assert_msg(p_##f != NULL, #f);
    FUNCTIONS(LOOK_UP)
}

#define ck_assert_hip(call, want)                                                                \
    do {                                                                                         \
        const hipError_t error_ = p_##call;                                                      \
        ck_assert_msg(error_ == (want), "%s: %s, expected %s", #call, p_hipGetErrorName(error_), \
                      p_hipGetErrorName(want));                                                  \
    } while (0)

#define ck_assert_hip_ok(call) ck_assert_hip(call, hipSuccess)

/* What a test leaves to the end of its process. */
static void *kept[64];
static int   kept_count;

static void keep(void *what)
{
    ck_assert_int_lt(kept_count, 64);
    kept[kept_count++] = what;
}

static hipModule_t load_module(int arch)
{
    char        path[4096];
    hipModule_t module;
    snprintf(path, sizeof path, "%s/runtime_%s.co", environment("ETALON_SIM_KERNELS"), arch_name[arch]);
    ck_assert_hip_ok(hipModuleLoad(&module, path));
    keep(module);
    return module;
}

static hipFunction_t function(hipModule_t module, const char *name)
{
    hipFunction_t f;
    ck_assert_hip_ok(hipModuleGetFunction(&f, module, name));
    return f;
}

static void *device_memory(size_t bytes)
{
    void *at;
    ck_assert_hip_ok(hipMalloc(&at, bytes));
    return at;
}

/* A file for findings; what it holds. */
static char report_path[] = "/tmp/etalon-hip.XXXXXX";

static void report_to_file(void)
{
    const int file = mkstemp(report_path);
    ck_assert_int_ge(file, 0);
    close(file);
    setenv("ETALON_SIM_REPORT", report_path, 1);
}

static const char *report(void)
{
    static char text[65536];
    FILE       *file = fopen(report_path, "r");
    ck_assert_ptr_nonnull(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    unlink(report_path);
    return text;
}

/* Devices
 * -------
 */
static void *device_of_thread(void *to)
{
    ck_assert_int_eq(p_hipGetDevice(to), hipSuccess);
    return NULL;
}

START_TEST(devices)
{
    open_library(_i, "3");
    int count, device = -1, value;
    ck_assert_hip_ok(hipInit(0));
    ck_assert_hip_ok(hipGetDeviceCount(&count));
    ck_assert_int_eq(count, 3);
    ck_assert_hip(hipSetDevice(3), hipErrorInvalidDevice);
    ck_assert_hip(hipSetDevice(-1), hipErrorInvalidDevice);
    ck_assert_int_eq(p_hipPeekAtLastError(), hipErrorInvalidDevice);
    ck_assert_int_eq(p_hipGetLastError(), hipErrorInvalidDevice);
    ck_assert_int_eq(p_hipGetLastError(), hipSuccess);
    ck_assert_hip_ok(hipSetDevice(2));
    pthread_t thread;
    pthread_create(&thread, NULL, device_of_thread, &device);
    pthread_join(thread, NULL);
    ck_assert_int_eq(device, 0);
    ck_assert_hip_ok(hipGetDevice(&device));
    ck_assert_int_eq(device, 2);
    ck_assert_hip_ok(hipDeviceGetAttribute(&value, hipDeviceAttributeWarpSize, 1));
    ck_assert_int_eq(value, _i == 0 ? 64 : 32);
    ck_assert_hip_ok(hipDeviceGetAttribute(&value, hipDeviceAttributeMaxSharedMemoryPerBlock, 1));
    ck_assert_int_eq(value, (_i == 0 ? 160 : 320) * 1024);
    ck_assert_hip(hipDeviceGetAttribute(&value, 4711, 1), hipErrorInvalidValue);
    char bus[3][32];
    for (int i = 0; i < 3; i++)
        ck_assert_hip_ok(hipDeviceGetPCIBusId(bus[i], sizeof bus[i], i));
    ck_assert_str_ne(bus[0], bus[1]);
    ck_assert_str_ne(bus[1], bus[2]);
}
END_TEST

/* The two structs have their names and numbers at other places. */
START_TEST(properties)
{
    open_library(_i, "1");
    hipDeviceProp_tR0600 new;
    hipDeviceProp_tR0000 old;
    memset(&new, 0xFF, sizeof new);
    memset(&old, 0xFF, sizeof old);
    ck_assert_hip_ok(hipGetDevicePropertiesR0600(&new, 0));
    ck_assert_hip_ok(hipGetDeviceProperties(&old, 0));
    const char *const name[] = { "gfx950:sramecc+:xnack-", "gfx1250" };
    ck_assert_str_eq((char *)&new + 1160, name[_i]);
    ck_assert_str_eq((char *)&old + 396, name[_i]);
    ck_assert_str_eq(new.name, old.name);
    ck_assert_int_eq(new.warpSize, _i == 0 ? 64 : 32);
    ck_assert_int_eq(old.warpSize, new.warpSize);
    ck_assert_int_eq(old.multiProcessorCount, new.multiProcessorCount);
    ck_assert_uint_eq(old.totalGlobalMem, new.totalGlobalMem);
    ck_assert_hip(hipGetDeviceProperties(&old, 1), hipErrorInvalidDevice);
}
END_TEST

START_TEST(bad_environment)
{
    setenv("ETALON_SIM_SEED", "many", 1);
    open_library(0, "1");
    int count = 7;
    ck_assert_hip(hipGetDeviceCount(&count), hipErrorNoDevice);
    ck_assert_int_eq(count, 0);
    ck_assert_hip(hipInit(0), hipErrorNoDevice);
}
END_TEST

/* Memory
 * ------
 */
START_TEST(memory)
{
    open_library(0, "2");
    enum { N = 1000 };
    uint32_t host[N], back[N], *x = device_memory(sizeof host), *y = device_memory(sizeof host);
    for (int i = 0; i < N; i++)
        host[i] = (uint32_t)i * 2654435761u;
    ck_assert_hip_ok(hipMemcpy(x, host, sizeof host, hipMemcpyHostToDevice));
    ck_assert_hip_ok(hipMemcpy(y, x, sizeof host, hipMemcpyDeviceToDevice));
    ck_assert_hip_ok(hipMemsetD32(y + 3, 0x01020304, 2));
    ck_assert_hip_ok(hipMemset(y + 7, 0xAB, 3));
    ck_assert_hip_ok(hipMemcpy(back, y, sizeof back, hipMemcpyDeviceToHost));
    host[3] = host[4] = 0x01020304;
    memset(&host[7], 0xAB, 3);
    ck_assert_mem_eq(back, host, sizeof host);

    hipPointerAttribute_t attributes;
    ck_assert_hip_ok(hipPointerGetAttributes(&attributes, x + 5));
    ck_assert_int_eq(attributes.type, hipMemoryTypeDevice);
    ck_assert_int_eq(attributes.device, 0);
    ck_assert_ptr_eq(attributes.devicePointer, x + 5);
    ck_assert_hip_ok(hipPointerGetAttributes(&attributes, host));
    ck_assert_int_eq(attributes.type, hipMemoryTypeUnregistered);
    void *pinned, *base;
    ck_assert_hip_ok(hipHostMalloc(&pinned, 64, 0));
    ck_assert_hip_ok(hipPointerGetAttributes(&attributes, pinned));
    ck_assert_int_eq(attributes.type, hipMemoryTypeHost);
    size_t bytes, available, total;
    ck_assert_hip_ok(hipMemGetAddressRange(&base, &bytes, x + 9));
    ck_assert_ptr_eq(base, x);
    ck_assert_uint_eq(bytes, sizeof host);
    ck_assert_hip_ok(hipMemGetInfo(&available, &total));
    ck_assert_uint_eq(total - available, 2 * sizeof host);
    ck_assert_hip_ok(hipHostFree(pinned));
    ck_assert_hip_ok(hipFree(x));
    ck_assert_hip_ok(hipFree(y));
    ck_assert_hip_ok(hipFree(NULL));
}
END_TEST

START_TEST(bad_memory)
{
    open_library(0, "1");
    enum { N = 64 };
    char  host[2 * N] = { 0 }, *x = device_memory(N);
    void *none;
    ck_assert_hip(hipMemcpy(x, host, N + 1, hipMemcpyHostToDevice), hipErrorInvalidValue);
    ck_assert_hip(hipMemcpy(host, x + 1, N, hipMemcpyDeviceToHost), hipErrorInvalidValue);
    ck_assert_hip(hipMemcpy(host + N, host, N, hipMemcpyHostToDevice), hipErrorInvalidValue);
    ck_assert_hip(hipMemcpy(NULL, host, N, hipMemcpyDefault), hipErrorInvalidValue);
    ck_assert_hip(hipMemset(x, 0, N + 1), hipErrorInvalidValue);
    ck_assert_hip(hipMemset(host, 0, N), hipErrorInvalidValue);
    ck_assert_hip(hipFree(x + 1), hipErrorInvalidValue);
    ck_assert_hip(hipFree(host), hipErrorInvalidValue);
    ck_assert_hip(hipHostFree(x), hipErrorInvalidValue);
    ck_assert_hip(hipMalloc(NULL, N), hipErrorInvalidValue);
    ck_assert_hip(hipMalloc(&none, SIZE_MAX / 2), hipErrorOutOfMemory);
    ck_assert_ptr_null(none);
    ck_assert_hip_ok(hipHostRegister(host, sizeof host, 0));
    ck_assert_hip(hipHostRegister(host, sizeof host, 0), hipErrorHostMemoryAlreadyRegistered);
    ck_assert_hip_ok(hipHostUnregister(host));
    ck_assert_hip(hipHostUnregister(host), hipErrorHostMemoryNotRegistered);
    ck_assert_hip_ok(hipFree(x));
    ck_assert_hip(hipFree(x), hipErrorInvalidValue);
}
END_TEST

/* Launches
 * --------
 */
enum { ITEMS = 1000, BLOCK = 256, BLOCKS = (ITEMS + BLOCK - 1) / BLOCK };

typedef struct saxpy_arguments {
    float    a;
    uint32_t n;
    void    *x, *y;
} saxpy_arguments;

static float saxpy_x(int i)
{
    return (float)i * 0.37f - 100;
}

static void fill_saxpy(saxpy_arguments *s)
{
    float x[ITEMS], y[ITEMS];
    for (int i = 0; i < ITEMS; i++) {
        x[i] = saxpy_x(i);
        y[i] = 1.0f / (float)(i + 1);
    }
    *s = (saxpy_arguments){ 3.1f, ITEMS, device_memory(sizeof x), device_memory(sizeof y) };
    ck_assert_hip_ok(hipMemcpy(s->x, x, sizeof x, hipMemcpyHostToDevice));
    ck_assert_hip_ok(hipMemcpy(s->y, y, sizeof y, hipMemcpyHostToDevice));
}

/* v_fmac_f32 rounds once, as fmaf does. */
static void check_saxpy(const saxpy_arguments *s)
{
    float y[ITEMS];
    ck_assert_hip_ok(hipMemcpy(y, s->y, sizeof y, hipMemcpyDeviceToHost));
    for (int i = 0; i < ITEMS; i++) {
        const float want = fmaf(s->a, saxpy_x(i), 1.0f / (float)(i + 1));
        ck_assert_msg(y[i] == want, "y[%d]: %.9g, expected %.9g", i, (double)y[i], (double)want);
    }
}

START_TEST(launch_with_pointers)
{
    report_to_file();
    open_library(_i, "1");
    saxpy_arguments s;
    fill_saxpy(&s);
    const hipModule_t m = load_module(_i);
    void             *pointers[] = { &s.a, &s.n, &s.x, &s.y };
    ck_assert_hip_ok(hipModuleLaunchKernel(function(m, "saxpy"), BLOCKS, 1, 1, BLOCK, 1, 1, 0, NULL, pointers, NULL));
    ck_assert_hip_ok(hipDeviceSynchronize());
    check_saxpy(&s);
    ck_assert_hip_ok(hipModuleUnload(m));
    ck_assert_str_eq(report(), "");
}
END_TEST

START_TEST(launch_with_buffer)
{
    report_to_file();
    open_library(_i, "1");
    saxpy_arguments s;
    fill_saxpy(&s);
    const hipFunction_t f = function(load_module(_i), "saxpy");
    size_t              bytes = sizeof s;
    void *extra[] = { HIP_LAUNCH_PARAM_BUFFER_POINTER, &s, HIP_LAUNCH_PARAM_BUFFER_SIZE, &bytes, HIP_LAUNCH_PARAM_END };
    ck_assert_hip_ok(hipModuleLaunchKernel(f, BLOCKS, 1, 1, BLOCK, 1, 1, 0, NULL, NULL, extra));
    check_saxpy(&s);
    ck_assert_str_eq(report(), "");
}
END_TEST

/* hipExtModuleLaunchKernel counts work-items. */
START_TEST(launch_of_items)
{
    open_library(_i, "1");
    saxpy_arguments s;
    fill_saxpy(&s);
    const hipFunction_t f = function(load_module(_i), "saxpy");
    void               *pointers[] = { &s.a, &s.n, &s.x, &s.y };
    hipEvent_t          start, stop;
    float               elapsed = -1;
    ck_assert_hip_ok(hipEventCreate(&start));
    ck_assert_hip_ok(hipEventCreate(&stop));
    ck_assert_hip_ok(
        hipExtModuleLaunchKernel(f, BLOCKS * BLOCK, 1, 1, BLOCK, 1, 1, 0, NULL, pointers, NULL, start, stop, 0));
    ck_assert_hip(hipEventElapsedTime(&elapsed, start, stop), hipErrorNotReady);
    ck_assert_hip_ok(hipEventSynchronize(stop));
    ck_assert_hip_ok(hipEventElapsedTime(&elapsed, start, stop));
    ck_assert(elapsed > 0);
    ck_assert_hip_ok(hipEventDestroy(start));
    ck_assert_hip_ok(hipEventDestroy(stop));
    check_saxpy(&s);
}
END_TEST

START_TEST(launch_with_dynamic_lds)
{
    report_to_file();
    open_library(_i, "1");
    uint32_t           *p = device_memory(64 * 4), back[64];
    const hipFunction_t f = function(load_module(_i), "dynamic");
    ck_assert_hip_ok(hipModuleLaunchKernel(f, 1, 1, 1, 64, 1, 1, 64 * 4, NULL, (void *[]){ &p }, NULL));
    ck_assert_hip_ok(hipMemcpy(back, p, sizeof back, hipMemcpyDeviceToHost));
    for (uint32_t i = 0; i < 64; i++)
        ck_assert_uint_eq(back[i], i);
    ck_assert_hip(hipModuleLaunchKernel(f, 1, 1, 1, 64, 1, 1, 321 * 1024, NULL, (void *[]){ &p }, NULL),
                  hipErrorInvalidConfiguration);
    ck_assert_str_eq(report(), "");
}
END_TEST

START_TEST(launch_without_metadata)
{
    open_library(_i, "1");
    const hipFunction_t f = function(load_module(_i), "plain");
    struct {
        uint32_t *p, value;
    } arguments = { device_memory(4), 0xC0FFEE };
    size_t   bytes = 12;
    uint32_t back = 0;
    void    *extra[] = { HIP_LAUNCH_PARAM_BUFFER_POINTER, &arguments, HIP_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                         HIP_LAUNCH_PARAM_END };
    ck_assert_hip_ok(hipModuleLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, extra));
    ck_assert_hip_ok(hipMemcpy(&back, arguments.p, 4, hipMemcpyDeviceToHost));
    ck_assert_uint_eq(back, 0xC0FFEE);
    ck_assert_hip(
        hipModuleLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, (void *[]){ &arguments.p, &arguments.value }, NULL),
        hipErrorInvalidValue);
}
END_TEST

START_TEST(bad_launches)
{
    open_library(_i, "2");
    saxpy_arguments s;
    fill_saxpy(&s);
    const hipModule_t   m = load_module(_i);
    const hipFunction_t f = function(m, "saxpy");
    void               *pointers[] = { &s.a, &s.n, &s.x, &s.y };
    size_t              bytes = sizeof s - 1, many = 41;
    void *small[] = { HIP_LAUNCH_PARAM_BUFFER_POINTER, &s, HIP_LAUNCH_PARAM_BUFFER_SIZE, &bytes, HIP_LAUNCH_PARAM_END };
    void *large[] = { HIP_LAUNCH_PARAM_BUFFER_POINTER, &s, HIP_LAUNCH_PARAM_BUFFER_SIZE, &many, HIP_LAUNCH_PARAM_END };
    ck_assert_hip(hipModuleLaunchKernel(f, 1, 1, 1, 257, 1, 1, 0, NULL, pointers, NULL), hipErrorInvalidConfiguration);
    ck_assert_hip(hipModuleLaunchKernel(f, 0, 1, 1, 64, 1, 1, 0, NULL, pointers, NULL), hipErrorInvalidConfiguration);
    ck_assert_hip(hipModuleLaunchKernel(f, 1u << 31, 1, 1, 64, 1, 1, 0, NULL, pointers, NULL),
                  hipErrorInvalidConfiguration);
    ck_assert_hip(hipModuleLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, NULL, NULL, NULL), hipErrorInvalidValue);
    ck_assert_hip(hipModuleLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, NULL, pointers, small), hipErrorInvalidValue);
    ck_assert_hip(hipModuleLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, NULL, NULL, small), hipErrorInvalidValue);
    ck_assert_hip(hipModuleLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, NULL, NULL, large), hipErrorInvalidValue);
    ck_assert_hip(hipModuleLaunchKernel(NULL, 1, 1, 1, 64, 1, 1, 0, NULL, pointers, NULL), hipErrorInvalidHandle);
    ck_assert_hip(hipModuleLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, (hipStream_t)&s, pointers, NULL),
                  hipErrorInvalidHandle);
    ck_assert_hip_ok(hipSetDevice(1));
    ck_assert_hip(hipModuleLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, NULL, pointers, NULL), hipErrorInvalidContext);
    hipFunction_t none;
    ck_assert_hip(hipModuleGetFunction(&none, m, "sbxpy"), hipErrorNotFound);
    int value;
    ck_assert_hip_ok(hipFuncGetAttribute(&value, HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f));
    ck_assert_int_eq(value, 256);
}
END_TEST

START_TEST(bad_modules)
{
    open_library(_i, "1");
    static char file[1 << 20];
    char        path[4096];
    hipModule_t m;
    snprintf(path, sizeof path, "%s/runtime_%s.co", environment("ETALON_SIM_KERNELS"), arch_name[1 - _i]);
    ck_assert_hip(hipModuleLoad(&m, path), hipErrorInvalidImage);
    ck_assert_hip(hipModuleLoad(&m, "/nonexistent"), hipErrorFileNotFound);
    ck_assert_hip(hipModuleLoad(&m, "/"), hipErrorFileNotFound);
    ck_assert_hip(hipModuleLoad(&m, "/dev/null"), hipErrorInvalidImage);
    ck_assert_hip(hipModuleLoadData(&m, "no code object, and long enough to look at"), hipErrorInvalidImage);
    ck_assert_hip(hipModuleLoadData(&m, "CCOB, a compressed bundle of clang's"), hipErrorInvalidImage);
    ck_assert_hip(hipModuleLoadData(&m, NULL), hipErrorInvalidValue);
    ck_assert_hip(hipModuleUnload(NULL), hipErrorInvalidHandle);
    snprintf(path, sizeof path, "%s/runtime_%s.co", environment("ETALON_SIM_KERNELS"), arch_name[_i]);
    FILE *from = fopen(path, "rb");
    ck_assert_ptr_nonnull(from);
    const size_t size = fread(file, 1, sizeof file, from);
    fclose(from);
    ck_assert_uint_gt(size, 64);
    ck_assert_hip_ok(hipModuleLoadData(&m, file));
    ck_assert_hip_ok(hipModuleUnload(m));
    memset(file + 18, 0, 2); /* e_machine */
    ck_assert_hip(hipModuleLoadData(&m, file), hipErrorInvalidImage);
}
END_TEST

START_TEST(variables)
{
    open_library(_i, "1");
    static const uint32_t want[4] = { 2, 3, 5, 7 };
    const hipModule_t     m = load_module(_i);
    void                 *at;
    size_t                bytes;
    uint32_t              back[4];
    ck_assert_hip_ok(hipModuleGetGlobal(&at, &bytes, m, "table"));
    ck_assert_uint_eq(bytes, sizeof want);
    ck_assert_hip_ok(hipMemcpy(back, at, sizeof back, hipMemcpyDeviceToHost));
    ck_assert_mem_eq(back, want, sizeof want);
    ck_assert_hip(hipModuleGetGlobal(&at, &bytes, m, "tables"), hipErrorNotFound);
}
END_TEST

/* Streams and events
 * ------------------
 * stamp: p[1] = p[0], p[0] = value.
 */
typedef struct stamps {
    hipFunction_t f;
    uint32_t     *p; /* memory of the host that the device sees */
} stamps;

static stamps open_stamps(int arch)
{
    open_library(arch, "1");
    stamps s = { .f = function(load_module(arch), "stamp") };
    ck_assert_hip_ok(hipHostMalloc((void **)&s.p, 8, 0));
    s.p[0] = s.p[1] = 0;
    return s;
}

static void stamp(const stamps *s, hipStream_t stream, uint32_t value)
{
    void *p = s->p;
    ck_assert_hip_ok(hipModuleLaunchKernel(s->f, 1, 1, 1, 32, 1, 1, 0, stream, (void *[]){ &p, &value }, NULL));
}

START_TEST(nothing_runs_unless_awaited)
{
    const stamps s = open_stamps(_i);
    hipStream_t  stream;
    ck_assert_hip_ok(hipStreamCreate(&stream));
    stamp(&s, stream, 1);
    ck_assert_uint_eq(s.p[0], 0);
    ck_assert_hip_ok(hipStreamSynchronize(stream));
    ck_assert_uint_eq(s.p[0], 1);
    stamp(&s, stream, 2);
    stamp(&s, stream, 3);
    ck_assert_hip(hipStreamQuery(stream), hipErrorNotReady);
    ck_assert_hip_ok(hipStreamQuery(stream));
    ck_assert_uint_eq(s.p[1], 2);
    ck_assert_uint_eq(s.p[0], 3);
    stamp(&s, stream, 4);
    ck_assert_hip_ok(hipStreamDestroy(stream));
    ck_assert_uint_eq(s.p[0], 4);
    ck_assert_hip(hipStreamSynchronize(stream), hipErrorInvalidHandle);
}
END_TEST

/* Non-blocking streams: the one that is awaited runs, another only where an event says so. */
START_TEST(events_order_streams)
{
    const stamps s = open_stamps(_i);
    hipStream_t  a, b;
    hipEvent_t   event;
    ck_assert_hip_ok(hipStreamCreateWithFlags(&a, hipStreamNonBlocking));
    ck_assert_hip_ok(hipStreamCreateWithFlags(&b, hipStreamNonBlocking));
    ck_assert_hip_ok(hipEventCreate(&event));
    ck_assert_hip_ok(hipEventQuery(event));
    stamp(&s, a, 1);
    stamp(&s, b, 2);
    ck_assert_hip_ok(hipStreamSynchronize(b));
    ck_assert_uint_eq(s.p[0], 2);
    ck_assert_uint_eq(s.p[1], 0);
    ck_assert_hip_ok(hipEventRecord(event, a));
    stamp(&s, a, 3);
    ck_assert_hip_ok(hipStreamWaitEvent(b, event, 0));
    stamp(&s, b, 4);
    ck_assert_hip_ok(hipStreamSynchronize(b));
    ck_assert_uint_eq(s.p[1], 1);
    ck_assert_uint_eq(s.p[0], 4);
    ck_assert_hip_ok(hipDeviceSynchronize());
    ck_assert_uint_eq(s.p[1], 4);
    ck_assert_uint_eq(s.p[0], 3);
    stamp(&s, a, 5);
    ck_assert_hip_ok(hipEventRecord(event, a));
    ck_assert_hip(hipEventQuery(event), hipErrorNotReady);
    ck_assert_hip_ok(hipEventSynchronize(event));
    ck_assert_uint_eq(s.p[0], 5);
    ck_assert_hip_ok(hipEventRecord(event, a));
    ck_assert_hip_ok(hipEventDestroy(event));
    ck_assert_hip_ok(hipStreamSynchronize(a));
}
END_TEST

/* The legacy stream and a blocking one wait for each other; a non-blocking one stands apart. */
START_TEST(legacy_stream_orders_blocking_ones)
{
    const stamps s = open_stamps(_i);
    hipStream_t  blocking, apart;
    ck_assert_hip_ok(hipStreamCreate(&blocking));
    ck_assert_hip_ok(hipStreamCreateWithFlags(&apart, hipStreamNonBlocking));
    stamp(&s, apart, 9);
    stamp(&s, blocking, 1);
    stamp(&s, NULL, 2);
    stamp(&s, blocking, 3);
    ck_assert_hip_ok(hipStreamSynchronize(blocking));
    ck_assert_uint_eq(s.p[1], 2);
    ck_assert_uint_eq(s.p[0], 3);
    stamp(&s, blocking, 4);
    stamp(&s, hipStreamLegacy, 5);
    ck_assert_hip_ok(hipStreamSynchronize(NULL));
    ck_assert_uint_eq(s.p[1], 4);
    ck_assert_uint_eq(s.p[0], 5);
    ck_assert_hip_ok(hipStreamSynchronize(apart));
    ck_assert_uint_eq(s.p[0], 9);
    for (uint32_t i = 0; i < 1000; i++) /* more than a queue holds, and each waits for the other's */
        stamp(&s, i % 2 == 0 ? NULL : blocking, 100 + i);
    ck_assert_hip_ok(hipDeviceSynchronize());
    ck_assert_uint_eq(s.p[1], 1098);
    ck_assert_uint_eq(s.p[0], 1099);
}
END_TEST

static void note_stamp(void *to)
{
    uint32_t *const *pair = to;
    *pair[1] = *pair[0];
}

/* Pinned memory is copied in the stream's order, memory that nobody pinned before the call returns. */
START_TEST(work_in_stream_order)
{
    stamps      s = open_stamps(_i);
    hipStream_t stream;
    uint32_t    seen = 77, *pinned, *x, pageable = 6;
    ck_assert_hip_ok(hipStreamCreate(&stream));
    ck_assert_hip_ok(hipHostMalloc((void **)&pinned, 4, 0));
    ck_assert_hip_ok(hipMallocAsync((void **)&x, 4, stream));
    *pinned = 5;
    stamp(&s, stream, 1);
    uint32_t *pair[] = { s.p, &seen };
    ck_assert_hip_ok(hipLaunchHostFunc(stream, note_stamp, pair));
    ck_assert_hip_ok(hipMemcpyAsync(x, pinned, 4, hipMemcpyHostToDevice, stream));
    *pinned = 6; /* too early, and it shows */
    ck_assert_uint_eq(seen, 77);
    ck_assert_hip_ok(hipStreamSynchronize(stream));
    ck_assert_uint_eq(seen, 1);
    ck_assert_hip_ok(hipMemcpy(&seen, x, 4, hipMemcpyDeviceToHost));
    ck_assert_uint_eq(seen, 6);
    ck_assert_hip_ok(hipMemsetAsync(x, 0x11, 4, stream));
    ck_assert_hip_ok(hipMemcpyAsync(pinned, x, 4, hipMemcpyDeviceToHost, stream));
    ck_assert_uint_eq(*pinned, 6);
    ck_assert_hip_ok(hipMemcpyAsync(x, &pageable, 4, hipMemcpyHostToDevice, stream));
    pageable = 0;
    ck_assert_uint_eq(*pinned, 0x11111111);
    ck_assert_hip_ok(hipMemcpy(&seen, x, 4, hipMemcpyDeviceToHost));
    ck_assert_uint_eq(seen, 6);
    ck_assert_hip_ok(hipFreeAsync(x, stream));
    ck_assert_hip_ok(hipStreamSynchronize(stream));
    ck_assert_hip(hipFree(x), hipErrorInvalidValue);
}
END_TEST

START_TEST(no_capture)
{
    open_library(_i, "1");
    hipStream_t stream;
    int         status = 7;
    ck_assert_hip_ok(hipStreamCreate(&stream));
    ck_assert_hip(hipStreamBeginCapture(stream, 0), hipErrorNotSupported);
    ck_assert_hip_ok(hipStreamIsCapturing(stream, &status));
    ck_assert_int_eq(status, 0);
}
END_TEST

/* Findings and faults
 * -------------------
 */
static void launch_early(int arch)
{
    saxpy_arguments s;
    fill_saxpy(&s);
    const hipFunction_t f = function(load_module(arch), "saxpy_early");
    void               *pointers[] = { &s.a, &s.n, &s.x, &s.y };
    for (int i = 0; i < 2; i++)
        ck_assert_hip_ok(hipModuleLaunchKernel(f, BLOCKS, 1, 1, BLOCK, 1, 1, 0, NULL, pointers, NULL));
    ck_assert_hip_ok(hipDeviceSynchronize());
}

/* One line for two launches, with the instruction that reads too early. */
START_TEST(finding)
{
    report_to_file();
    open_library(_i, "1");
    launch_early(_i);
    const char *text = report(), *first = strstr(text, "v_fmac_f32");
    ck_assert_msg(first != NULL && strstr(text, "wait") != NULL && strstr(text, "saxpy_early") != NULL, "%s", text);
    ck_assert_msg(strstr(first + 1, "v_fmac_f32") == NULL, "%s", text);
}
END_TEST

START_TEST(no_finding_without_checks)
{
    report_to_file();
    setenv("ETALON_SIM_CHECK", "none", 1);
    open_library(_i, "1");
    launch_early(_i);
    ck_assert_str_eq(report(), "");
}
END_TEST

static int status_of_child(int arch, const char *asked)
{
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        setenv("ETALON_SIM_EXIT", asked, 1);
        open_library(arch, "1");
        launch_early(arch);
        exit(0);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

START_TEST(exit_status)
{
    report_to_file();
    ck_assert_int_eq(status_of_child(_i, "1"), 1);
    ck_assert_int_eq(status_of_child(_i, "0"), 0);
    ck_assert_ptr_nonnull(strstr(report(), " finding")); /* the line that sums up */
}
END_TEST

/* A kernel that fails takes the device with it. */
START_TEST(fault)
{
    report_to_file();
    setenv("ETALON_SIM_LIMIT", "10000", 1);
    stamps              s = open_stamps(_i);
    const hipFunction_t f = function(load_module(_i), "spin");
    ck_assert_hip_ok(hipModuleLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
    ck_assert_hip(hipDeviceSynchronize(), hipErrorLaunchFailure);
    uint32_t value = 1;
    void    *p = s.p;
    ck_assert_hip(hipModuleLaunchKernel(s.f, 1, 1, 1, 32, 1, 1, 0, NULL, (void *[]){ &p, &value }, NULL),
                  hipErrorLaunchFailure);
    ck_assert_int_eq(p_hipGetLastError(), hipErrorLaunchFailure);
    ck_assert_ptr_nonnull(strstr(report(), "deadlock"));
}
END_TEST

/* Memory of one device is not another's before it is allowed. */
START_TEST(peers)
{
    report_to_file();
    open_library(_i, "2");
    uint32_t *p = device_memory(8), value = 1, back[2] = { 7, 7 };
    ck_assert_hip_ok(hipMemset(p, 0, 8));
    ck_assert_hip_ok(hipSetDevice(1));
    const hipFunction_t f = function(load_module(_i), "stamp");
    ck_assert_hip(hipDeviceDisablePeerAccess(0), hipErrorPeerAccessNotEnabled);
    ck_assert_hip_ok(hipDeviceEnablePeerAccess(0, 0));
    ck_assert_hip(hipDeviceEnablePeerAccess(0, 0), hipErrorPeerAccessAlreadyEnabled);
    ck_assert_hip(hipDeviceEnablePeerAccess(1, 0), hipErrorInvalidDevice);
    ck_assert_hip_ok(hipModuleLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, (void *[]){ &p, &value }, NULL));
    ck_assert_hip_ok(hipMemcpy(back, p, 8, hipMemcpyDeviceToHost));
    ck_assert_uint_eq(back[0], 1);
    ck_assert_str_eq(report(), "");
}
END_TEST

START_TEST(not_peers)
{
    report_to_file();
    open_library(_i, "2");
    uint32_t *p = device_memory(8), value = 1;
    ck_assert_hip_ok(hipMemset(p, 0, 8));
    ck_assert_hip_ok(hipSetDevice(1));
    const hipFunction_t f = function(load_module(_i), "stamp");
    ck_assert_hip_ok(hipModuleLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, (void *[]){ &p, &value }, NULL));
    ck_assert_hip_ok(hipDeviceSynchronize());
    ck_assert_ptr_nonnull(strstr(report(), "bounds"));
}
END_TEST

/* HSA's memory in HIP
 * -------------------
 * A kernel may use what OpenMP allocated through HSA; hipMemset and hipFree may not, as AMD's do not.
 */
#define HSA(f) ((__typeof__(f) *)dlsym(library, #f))

static hsa_status_t last_agent(hsa_agent_t agent, void *to)
{
    *(hsa_agent_t *)to = agent;
    return HSA_STATUS_SUCCESS;
}

static hsa_status_t first_pool(hsa_amd_memory_pool_t pool, void *to)
{
    *(hsa_amd_memory_pool_t *)to = pool;
    return HSA_STATUS_INFO_BREAK;
}

START_TEST(memory_of_hsa)
{
    report_to_file();
    open_library(_i, "1");
    hsa_agent_t           gpu = { 0 };
    hsa_amd_memory_pool_t pool = { 0 };
    uint32_t             *p, value = 42, back[2], zeros[2] = { 0, 0 };
    ck_assert_uint_eq(HSA(hsa_init)(), HSA_STATUS_SUCCESS);
    ck_assert_uint_eq(HSA(hsa_iterate_agents)(last_agent, &gpu), HSA_STATUS_SUCCESS);
    ck_assert_uint_eq(HSA(hsa_amd_agent_iterate_memory_pools)(gpu, first_pool, &pool), HSA_STATUS_INFO_BREAK);
    ck_assert_uint_eq(HSA(hsa_amd_memory_pool_allocate)(pool, 8, 0, (void **)&p), HSA_STATUS_SUCCESS);
    ck_assert_uint_eq(HSA(hsa_memory_copy)(p, zeros, 8), HSA_STATUS_SUCCESS);
    const hipFunction_t f = function(load_module(_i), "stamp");
    ck_assert_hip_ok(hipModuleLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, (void *[]){ &p, &value }, NULL));
    ck_assert_hip_ok(hipDeviceSynchronize());
    ck_assert_uint_eq(HSA(hsa_memory_copy)(back, p, 8), HSA_STATUS_SUCCESS);
    ck_assert_uint_eq(back[0], 42);
    ck_assert_hip(hipMemset(p, 0, 8), hipErrorInvalidValue);
    ck_assert_hip(hipFree(p), hipErrorInvalidValue);
    ck_assert_hip(hipMemcpy(p, back, 8, hipMemcpyHostToDevice), hipErrorInvalidValue);
    ck_assert_uint_eq(HSA(hsa_amd_memory_pool_free)(p), HSA_STATUS_SUCCESS);
    ck_assert_str_eq(report(), "");
}
END_TEST

static void fill(TCase *tcase)
{
    tcase_add_loop_test(tcase, devices, 0, 2);
    tcase_add_loop_test(tcase, properties, 0, 2);
    tcase_add_test(tcase, bad_environment);
    tcase_add_test(tcase, memory);
    tcase_add_test(tcase, bad_memory);
    tcase_add_loop_test(tcase, launch_with_pointers, 0, 2);
    tcase_add_loop_test(tcase, launch_with_buffer, 0, 2);
    tcase_add_loop_test(tcase, launch_of_items, 0, 2);
    tcase_add_loop_test(tcase, launch_with_dynamic_lds, 0, 2);
    tcase_add_loop_test(tcase, launch_without_metadata, 0, 2);
    tcase_add_loop_test(tcase, bad_launches, 0, 2);
    tcase_add_loop_test(tcase, bad_modules, 0, 2);
    tcase_add_loop_test(tcase, variables, 0, 2);
    tcase_add_loop_test(tcase, nothing_runs_unless_awaited, 0, 2);
    tcase_add_loop_test(tcase, events_order_streams, 0, 2);
    tcase_add_loop_test(tcase, legacy_stream_orders_blocking_ones, 0, 2);
    tcase_add_loop_test(tcase, work_in_stream_order, 0, 2);
    tcase_add_loop_test(tcase, no_capture, 0, 2);
    tcase_add_loop_test(tcase, finding, 0, 2);
    tcase_add_loop_test(tcase, no_finding_without_checks, 0, 2);
    tcase_add_loop_test(tcase, exit_status, 0, 2);
    tcase_add_loop_test(tcase, fault, 0, 2);
    tcase_add_loop_test(tcase, peers, 0, 2);
    tcase_add_loop_test(tcase, not_peers, 0, 2);
    tcase_add_loop_test(tcase, memory_of_hsa, 0, 2);
}

int main(void)
{
    return testing_main("sim_hip", fill);
}
