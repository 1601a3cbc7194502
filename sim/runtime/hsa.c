/* The stand-in for libhsa-runtime64.so: agents, memory pools, code objects. Signals, copies and queues: hsa_queue.c.
 *
 * Access is as strict as on a discrete GPU: memory of the host, kernel arguments included, and memory of another GPU
 * belong to no kernel before hsa_amd_agents_allow_access.
 */
#include "hsa.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static atomic_int users; /* hsa_init less hsa_shut_down */

hsa_status_t hsa_init(void)
{
    if (!runtime_start())
        return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    atomic_fetch_add(&users, 1);
    return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_shut_down(void)
{
    int now = atomic_load(&users);
    while (now > 0)
        if (atomic_compare_exchange_weak(&users, &now, now - 1))
            return HSA_STATUS_SUCCESS;
    return HSA_STATUS_ERROR_NOT_INITIALIZED;
}

hsa_status_t hsa_status_string(hsa_status_t status, const char **text)
{
    static const struct {
        hsa_status_t status;
        const char  *text;
    } row[] = {
#define S(name, value, text) { name, #name ": " text },
        HSA_STATUSES(S)
#undef S
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        if (row[i].status == status) {
            *text = row[i].text;
            return HSA_STATUS_SUCCESS;
        }
    }
    return HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

/* Values that are asked for
 * -------------------------
 */
static hsa_status_t give(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
    return HSA_STATUS_SUCCESS;
}

static hsa_status_t give_bool(void *to, bool x)
{
    return give(to, &x, sizeof x);
}

static hsa_status_t give_u16(void *to, uint16_t x)
{
    return give(to, &x, sizeof x);
}

static hsa_status_t give_u32(void *to, uint32_t x)
{
    return give(to, &x, sizeof x);
}

static hsa_status_t give_u64(void *to, uint64_t x)
{
    return give(to, &x, sizeof x);
}

static hsa_status_t give_size(void *to, size_t x)
{
    return give(to, &x, sizeof x);
}

static hsa_status_t give_zeros(void *to, size_t bytes)
{
    memset(to, 0, bytes);
    return HSA_STATUS_SUCCESS;
}

static hsa_status_t give_name(void *to, const char *name)
{
    char field[64] = { 0 };
    memcpy(field, name, strnlen(name, sizeof field - 1));
    return give(to, field, sizeof field);
}

/* System and agents
 * -----------------
 */
static uint64_t nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

hsa_status_t hsa_system_get_info(uint32_t attribute, void *value)
{
    switch (attribute) {
    case HSA_SYSTEM_INFO_VERSION_MAJOR:
        return give_u16(value, 1);
    case HSA_SYSTEM_INFO_VERSION_MINOR:
        return give_u16(value, 2);
    case HSA_SYSTEM_INFO_TIMESTAMP:
        return give_u64(value, nanoseconds());
    case HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY:
        return give_u64(value, 1000000000);
    case HSA_SYSTEM_INFO_SIGNAL_MAX_WAIT:
        return give_u64(value, UINT64_MAX);
    case HSA_SYSTEM_INFO_ENDIANNESS:
        return give_u32(value, 0);
    case HSA_SYSTEM_INFO_MACHINE_MODEL:
        return give_u32(value, 1);
    case HSA_SYSTEM_INFO_EXTENSIONS:
        return give_zeros(value, 128);
    case HSA_AMD_SYSTEM_INFO_SVM_SUPPORTED:
    case HSA_AMD_SYSTEM_INFO_SVM_ACCESSIBLE_BY_DEFAULT:
    case HSA_AMD_SYSTEM_INFO_XNACK_ENABLED:
        return give_bool(value, false);
    }
    return HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

bool hsa_device_of_agent(hsa_agent_t agent, int *device)
{
    *device = agent.handle == HSA_CPU ? RUNTIME_HOST : (int)agent.handle - HSA_FIRST_GPU;
    return agent.handle >= HSA_CPU && agent.handle < HSA_FIRST_GPU + (uint64_t)runtime_device_count();
}

hsa_status_t hsa_iterate_agents(hsa_agent_callback *callback, void *data)
{
    if (atomic_load(&users) == 0)
        return HSA_STATUS_ERROR_NOT_INITIALIZED;
    for (uint64_t i = HSA_CPU; i < HSA_FIRST_GPU + (uint64_t)runtime_device_count(); i++) {
        const hsa_status_t status = callback((hsa_agent_t){ i }, data);
        if (status != HSA_STATUS_SUCCESS)
            return status;
    }
    return HSA_STATUS_SUCCESS;
}

static hsa_status_t give_uuid(void *to, int device)
{
    char text[22];
    snprintf(text, sizeof text, device == RUNTIME_HOST ? "CPU-XX" : "GPU-%016x", (unsigned)device + 1);
    return give(to, text, 21);
}

/* What only a GPU has. */
static hsa_status_t gpu_info(int device, uint32_t attribute, void *value)
{
    static const uint16_t   group_max[3] = { 1024, 1024, 1024 };
    static const hsa_dim3_t grid_max = { INT32_MAX, UINT16_MAX, UINT16_MAX };
    const runtime_facts    *fact = runtime_describe();
    switch (attribute) {
    case HSA_AGENT_INFO_WAVEFRONT_SIZE:
        return give_u32(value, fact->wave_size);
    case HSA_AGENT_INFO_WORKGROUP_MAX_DIM:
        return give(value, group_max, sizeof group_max);
    case HSA_AGENT_INFO_WORKGROUP_MAX_SIZE:
        return give_u32(value, 1024);
    case HSA_AGENT_INFO_GRID_MAX_DIM:
        return give(value, &grid_max, sizeof grid_max);
    case HSA_AGENT_INFO_GRID_MAX_SIZE:
        return give_u32(value, UINT32_MAX);
    case HSA_AGENT_INFO_FBARRIER_MAX_SIZE:
        return give_u32(value, 0);
    case HSA_AGENT_INFO_QUEUES_MAX:
        return give_u32(value, 128);
    case HSA_AGENT_INFO_QUEUE_MIN_SIZE:
        return give_u32(value, 64);
    case HSA_AGENT_INFO_QUEUE_MAX_SIZE:
        return give_u32(value, 131072);
    case HSA_AGENT_INFO_ISA:
        return give_u64(value, (uint64_t)device + 1);
    case HSA_AGENT_INFO_FAST_F16_OPERATION:
        return give_bool(value, true);
    case HSA_AMD_AGENT_INFO_COOPERATIVE_COMPUTE_UNIT_COUNT:
        return give_u32(value, fact->compute_units);
    case HSA_AMD_AGENT_INFO_MEMORY_AVAIL:
        return give_u64(value, runtime_memory_bytes() - runtime_memory_used(device));
    case HSA_AMD_AGENT_INFO_TIMESTAMP_FREQUENCY:
        return give_u64(value, 100000000);
    }
    return HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

hsa_status_t hsa_agent_get_info(hsa_agent_t agent, uint32_t attribute, void *value)
{
    int device;
    if (!hsa_device_of_agent(agent, &device))
        return HSA_STATUS_ERROR_INVALID_AGENT;
    const bool           gpu = device != RUNTIME_HOST;
    const runtime_facts *fact = runtime_describe();
    switch (attribute) {
    case HSA_AGENT_INFO_NAME:
        return give_name(value, gpu ? sim_arch_name(runtime_arch()) : "CPU");
    case HSA_AGENT_INFO_VENDOR_NAME:
        return give_name(value, gpu ? "AMD" : "CPU");
    case HSA_AMD_AGENT_INFO_PRODUCT_NAME:
        return give_name(value, gpu ? fact->product : "host");
    case HSA_AGENT_INFO_FEATURE:
        return give_u32(value, gpu);
    case HSA_AGENT_INFO_MACHINE_MODEL:
        return give_u32(value, 1);
    case HSA_AGENT_INFO_PROFILE:
        return give_u32(value, gpu ? 0 : 1);
    case HSA_AGENT_INFO_DEFAULT_FLOAT_ROUNDING_MODE:
        return give_u32(value, 2);
    case HSA_AGENT_INFO_DEVICE:
        return give_u32(value, gpu ? HSA_DEVICE_TYPE_GPU : HSA_DEVICE_TYPE_CPU);
    case HSA_AGENT_INFO_NODE:
    case HSA_AMD_AGENT_INFO_DRIVER_NODE_ID:
        return give_u32(value, (uint32_t)(device + 1));
    case HSA_AGENT_INFO_CACHE_SIZE:
        return give_zeros(value, 16);
    case HSA_AGENT_INFO_EXTENSIONS:
        return give_zeros(value, 128);
    case HSA_AGENT_INFO_VERSION_MAJOR:
    case HSA_AGENT_INFO_VERSION_MINOR:
        return give_u16(value, 1);
    case HSA_AGENT_INFO_QUEUES_MAX:
    case HSA_AGENT_INFO_QUEUE_MIN_SIZE:
    case HSA_AGENT_INFO_QUEUE_MAX_SIZE:
        return gpu ? gpu_info(device, attribute, value) : give_u32(value, 0);
    case HSA_AGENT_INFO_QUEUE_TYPE:
    case HSA_AMD_AGENT_INFO_CHIP_ID:
    case HSA_AMD_AGENT_INFO_MAX_CLOCK_FREQUENCY:
    case HSA_AMD_AGENT_INFO_MAX_ADDRESS_WATCH_POINTS:
    case HSA_AMD_AGENT_INFO_MEMORY_WIDTH:
    case HSA_AMD_AGENT_INFO_MEMORY_MAX_FREQUENCY:
    case HSA_AMD_AGENT_INFO_DOMAIN:
    case HSA_AMD_AGENT_INFO_ASIC_REVISION:
        return give_u32(value, 0);
    case HSA_AMD_AGENT_INFO_BDFID:
        return give_u32(value, (uint32_t)(device + 1) << 8);
    case HSA_AMD_AGENT_INFO_CACHELINE_SIZE:
        return give_u32(value, gpu ? 128 : 64);
    case HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT:
        return give_u32(value, gpu ? fact->compute_units : 1);
    case HSA_AMD_AGENT_INFO_MAX_WAVES_PER_CU:
        return give_u32(value, gpu ? fact->waves_per_unit : 0);
    case HSA_AMD_AGENT_INFO_NUM_SIMDS_PER_CU:
        return give_u32(value, gpu ? fact->simds_per_unit : 0);
    case HSA_AMD_AGENT_INFO_NUM_SHADER_ENGINES:
    case HSA_AMD_AGENT_INFO_NUM_SHADER_ARRAYS_PER_SE:
        return give_u32(value, gpu);
    case HSA_AMD_AGENT_INFO_COOPERATIVE_QUEUES:
    case HSA_AMD_AGENT_INFO_SVM_DIRECT_HOST_ACCESS:
        return give_bool(value, false);
    case HSA_AMD_AGENT_INFO_UUID:
        return give_uuid(value, device);
    }
    return gpu ? gpu_info(device, attribute, value) : HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

hsa_status_t hsa_agent_iterate_isas(hsa_agent_t agent, hsa_isa_callback *callback, void *data)
{
    int device;
    if (!hsa_device_of_agent(agent, &device))
        return HSA_STATUS_ERROR_INVALID_AGENT;
    return device == RUNTIME_HOST ? HSA_STATUS_SUCCESS : callback((hsa_isa_t){ (uint64_t)device + 1 }, data);
}

hsa_status_t hsa_isa_get_info_alt(hsa_isa_t isa, uint32_t attribute, void *value)
{
    char name[64];
    if (isa.handle == 0 || isa.handle > (uint64_t)runtime_device_count())
        return HSA_STATUS_ERROR_INVALID_ISA;
    const int length = snprintf(name, sizeof name, "amdgcn-amd-amdhsa--%s%s", sim_arch_name(runtime_arch()),
                                runtime_arch() == SIM_GFX950 ? ":sramecc+:xnack-" : "");
    if (attribute == HSA_ISA_INFO_NAME_LENGTH)
        return give_u32(value, (uint32_t)length + 1);
    if (attribute == HSA_ISA_INFO_NAME)
        return give(value, name, (size_t)length + 1);
    return HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

/* Memory
 * ------
 * A pool's handle is its kind and, in the bits above, its agent.
 */
enum { POOL_FINE = 1, POOL_KERNARG, POOL_COARSE, POOL_DEVICE, POOL_LDS };

static bool split_pool(hsa_amd_memory_pool_t pool, int *kind, int *device)
{
    *kind = (int)(pool.handle & 0xFF);
    return hsa_device_of_agent((hsa_agent_t){ pool.handle >> 8 }, device) &&
           (*device == RUNTIME_HOST ? *kind >= POOL_FINE && *kind <= POOL_COARSE
                                    : *kind >= POOL_DEVICE && *kind <= POOL_LDS);
}

hsa_status_t hsa_amd_agent_iterate_memory_pools(hsa_agent_t agent, hsa_pool_callback *callback, void *data)
{
    int device;
    if (!hsa_device_of_agent(agent, &device))
        return HSA_STATUS_ERROR_INVALID_AGENT;
    const uint64_t first = device == RUNTIME_HOST ? POOL_FINE : POOL_DEVICE;
    const uint64_t last = device == RUNTIME_HOST ? POOL_COARSE : POOL_LDS;
    for (uint64_t kind = first; kind <= last; kind++) {
        const hsa_status_t status = callback((hsa_amd_memory_pool_t){ kind | agent.handle << 8 }, data);
        if (status != HSA_STATUS_SUCCESS)
            return status;
    }
    return HSA_STATUS_SUCCESS;
}

static uint32_t global_flags(int kind)
{
    switch (kind) {
    case POOL_FINE:
        return HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED;
    case POOL_KERNARG:
        return HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED | HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT;
    case POOL_LDS:
        return 0;
    }
    return HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED;
}

hsa_status_t hsa_amd_memory_pool_get_info(hsa_amd_memory_pool_t pool, uint32_t attribute, void *value)
{
    int kind, device;
    if (!split_pool(pool, &kind, &device))
        return HSA_STATUS_ERROR_INVALID_MEMORY_POOL;
    switch (attribute) {
    case HSA_AMD_MEMORY_POOL_INFO_SEGMENT:
        return give_u32(value, kind == POOL_LDS ? HSA_AMD_SEGMENT_GROUP : HSA_AMD_SEGMENT_GLOBAL);
    case HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS:
        return give_u32(value, global_flags(kind));
    case HSA_AMD_MEMORY_POOL_INFO_SIZE:
    case HSA_AMD_MEMORY_POOL_INFO_ALLOC_MAX_SIZE:
        return give_size(value, kind == POOL_LDS ? runtime_describe()->lds_bytes : runtime_memory_bytes());
    case HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED:
        return give_bool(value, kind != POOL_LDS);
    case HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_GRANULE:
    case HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALIGNMENT:
        return give_size(value, kind == POOL_LDS ? 0 : 4096);
    case HSA_AMD_MEMORY_POOL_INFO_ACCESSIBLE_BY_ALL:
        return give_bool(value, false);
    }
    return HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

hsa_status_t hsa_amd_agent_memory_pool_get_info(hsa_agent_t agent, hsa_amd_memory_pool_t pool, uint32_t attribute,
                                                void *value)
{
    int kind, owner, device;
    if (!hsa_device_of_agent(agent, &device))
        return HSA_STATUS_ERROR_INVALID_AGENT;
    if (!split_pool(pool, &kind, &owner))
        return HSA_STATUS_ERROR_INVALID_MEMORY_POOL;
    if (attribute == HSA_AMD_AGENT_MEMORY_POOL_INFO_NUM_LINK_HOPS)
        return give_u32(value, owner != device);
    if (attribute != HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS)
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    if (owner == device)
        return give_u32(value, HSA_AMD_MEMORY_POOL_ACCESS_ALLOWED_BY_DEFAULT);
    return give_u32(value, kind == POOL_LDS ? HSA_AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED
                                            : HSA_AMD_MEMORY_POOL_ACCESS_DISALLOWED_BY_DEFAULT);
}

hsa_status_t hsa_amd_memory_pool_allocate(hsa_amd_memory_pool_t pool, size_t bytes, uint32_t flags, void **at)
{
    int kind, owner;
    (void)flags;
    if (at == NULL || bytes == 0)
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    if (!split_pool(pool, &kind, &owner))
        return HSA_STATUS_ERROR_INVALID_MEMORY_POOL;
    if (kind == POOL_LDS)
        return HSA_STATUS_ERROR_INVALID_ALLOCATION;
    *at = runtime_allocate(owner, bytes, global_flags(kind));
    return *at == NULL ? HSA_STATUS_ERROR_OUT_OF_RESOURCES : HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_amd_memory_pool_free(void *at)
{
    return at == NULL || runtime_free(at) ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_INVALID_ALLOCATION;
}

static bool devices_of(const hsa_agent_t *agents, uint32_t count, uint32_t *devices)
{
    *devices = 0;
    for (uint32_t i = 0; i < count; i++) {
        int device;
        if (!hsa_device_of_agent(agents[i], &device))
            return false;
        if (device != RUNTIME_HOST)
            *devices |= 1u << device;
    }
    return true;
}

hsa_status_t hsa_amd_agents_allow_access(uint32_t count, const hsa_agent_t *agents, const uint32_t *flags,
                                         const void *at)
{
    uint32_t devices;
    if (flags != NULL || count == 0 || agents == NULL || at == NULL)
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    if (!devices_of(agents, count, &devices))
        return HSA_STATUS_ERROR_INVALID_AGENT;
    return runtime_allow(at, devices) ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_INVALID_ALLOCATION;
}

hsa_status_t hsa_amd_memory_lock(void *host, size_t bytes, hsa_agent_t *agents, int count, void **at)
{
    uint32_t devices = (1u << runtime_device_count()) - 1; /* no list: all */
    if (host == NULL || bytes == 0 || at == NULL || (agents == NULL) != (count == 0) || count < 0)
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    if (agents != NULL && !devices_of(agents, (uint32_t)count, &devices))
        return HSA_STATUS_ERROR_INVALID_AGENT;
    if (!runtime_lock(host, bytes, devices, HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED))
        return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    *at = host;
    return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_amd_memory_unlock(void *host)
{
    return runtime_unlock(host) ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

hsa_status_t hsa_amd_memory_fill(void *at, uint32_t value, size_t count)
{
    if (at == NULL || (uintptr_t)at % 4 != 0)
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    return runtime_fill(at, value, 4, count) ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

hsa_status_t hsa_memory_copy(void *to, const void *from, size_t bytes)
{
    if (to == NULL || from == NULL)
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    return runtime_copy(to, from, bytes) ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

static hsa_status_t list_accessible(uint32_t devices, void *(*allocate)(size_t), uint32_t *count, hsa_agent_t **list)
{
    *count = (uint32_t)__builtin_popcount(devices);
    if (list == NULL || *count == 0)
        return HSA_STATUS_SUCCESS;
    *list = allocate(*count * sizeof **list);
    if (*list == NULL)
        return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    for (uint32_t i = 0, n = 0; i < RUNTIME_MAX_DEVICES; i++)
        if (devices >> i & 1)
            (*list)[n++] = (hsa_agent_t){ i + HSA_FIRST_GPU };
    return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_amd_pointer_info(const void *at, hsa_amd_pointer_info_t *info, void *(*allocate)(size_t),
                                  uint32_t *count, hsa_agent_t **accessible)
{
    if (at == NULL || info == NULL || info->size == 0 || (accessible != NULL && (allocate == NULL || count == NULL)))
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    hsa_amd_pointer_info_t told = { .size = info->size < sizeof told ? info->size : (uint32_t)sizeof told,
                                    .type = HSA_EXT_POINTER_TYPE_UNKNOWN };
    runtime_memory         m = { 0 };
    if (runtime_find(at, &m)) {
        told.type = m.locked ? HSA_EXT_POINTER_TYPE_LOCKED : HSA_EXT_POINTER_TYPE_HSA;
        told.agentBaseAddress = told.hostBaseAddress = m.at;
        told.sizeInBytes = m.bytes;
        told.agentOwner.handle = m.owner == RUNTIME_HOST ? HSA_CPU : (uint64_t)m.owner + HSA_FIRST_GPU;
        told.global_flags = m.tag;
    }
    memcpy(info, &told, told.size);
    return count == NULL ? HSA_STATUS_SUCCESS : list_accessible(m.devices, allocate, count, accessible);
}

/* Code objects
 * ------------
 */
typedef struct code_bytes { /* of a reader: the caller's, which must outlive it */
    const void *bytes;
    size_t      size;
} code_bytes;

typedef struct symbol {
    char              name[256];
    const sim_kernel *kernel; /* NULL: a variable */
    int               device;
    void             *at;
    size_t            bytes;
    struct symbol    *next;
} symbol;

typedef struct loaded {
    sim_object    *object;
    int            device;
    struct loaded *next;
} loaded;

typedef struct executable {
    loaded         *first, **last;
    symbol         *symbols; /* that were asked for */
    pthread_mutex_t lock;
    bool            frozen;
} executable;

static void *pointer(uint64_t handle)
{
    return (void *)(uintptr_t)handle;
}

static uint64_t handle(const void *at)
{
    return (uint64_t)(uintptr_t)at;
}

static hsa_status_t create_code(const void *bytes, size_t size, uint64_t *to)
{
    if (bytes == NULL || size == 0 || to == NULL)
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    code_bytes *code = malloc(sizeof *code);
    if (code == NULL)
        return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    *code = (code_bytes){ bytes, size };
    *to = handle(code);
    return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_code_object_reader_create_from_memory(const void *bytes, size_t size, hsa_code_object_reader_t *to)
{
    return create_code(bytes, size, &to->handle);
}

hsa_status_t hsa_code_object_reader_destroy(hsa_code_object_reader_t reader)
{
    free(pointer(reader.handle));
    return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_code_object_deserialize(void *bytes, size_t size, const char *options, hsa_code_object_t *to)
{
    (void)options;
    return create_code(bytes, size, &to->handle);
}

hsa_status_t hsa_code_object_destroy(hsa_code_object_t object)
{
    free(pointer(object.handle));
    return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_executable_create_alt(uint32_t profile, uint32_t rounding, const char *options, hsa_executable_t *to)
{
    (void)profile;
    (void)rounding;
    (void)options;
    executable *e = calloc(1, sizeof *e);
    if (e == NULL)
        return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    e->last = &e->first;
    pthread_mutex_init(&e->lock, NULL);
    to->handle = handle(e);
    return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_executable_create(uint32_t profile, uint32_t state, const char *options, hsa_executable_t *to)
{
    const hsa_status_t status = hsa_executable_create_alt(profile, 0, options, to);
    if (status == HSA_STATUS_SUCCESS)
        ((executable *)pointer(to->handle))->frozen = state != 0;
    return status;
}

hsa_status_t hsa_executable_destroy(hsa_executable_t which)
{
    executable *e = pointer(which.handle);
    if (e == NULL)
        return HSA_STATUS_ERROR_INVALID_EXECUTABLE;
    for (loaded *l = e->first; l != NULL;) {
        loaded *next = l->next;
        sim_object_unload(l->object);
        free(l);
        l = next;
    }
    for (symbol *s = e->symbols; s != NULL;) {
        symbol *next = s->next;
        free(s);
        s = next;
    }
    pthread_mutex_destroy(&e->lock);
    free(e);
    return HSA_STATUS_SUCCESS;
}

static hsa_status_t load(executable *e, hsa_agent_t agent, const code_bytes *code, uint64_t *to)
{
    int device;
    if (e == NULL)
        return HSA_STATUS_ERROR_INVALID_EXECUTABLE;
    if (code == NULL)
        return HSA_STATUS_ERROR_INVALID_CODE_OBJECT_READER;
    if (e->frozen)
        return HSA_STATUS_ERROR_FROZEN_EXECUTABLE;
    if (!hsa_device_of_agent(agent, &device) || device == RUNTIME_HOST)
        return HSA_STATUS_ERROR_INVALID_AGENT;
    loaded *l = calloc(1, sizeof *l);
    if (l == NULL)
        return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    l->device = device;
    l->object = sim_object_load(runtime_device(device), code->bytes, code->size);
    if (l->object == NULL) {
        runtime_complain("%s", sim_last_error());
        free(l);
        return HSA_STATUS_ERROR_INVALID_CODE_OBJECT;
    }
    *e->last = l;
    e->last = &l->next;
    if (to != NULL)
        *to = handle(l);
    return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_executable_load_agent_code_object(hsa_executable_t which, hsa_agent_t agent,
                                                   hsa_code_object_reader_t reader, const char *options,
                                                   hsa_loaded_code_object_t *to)
{
    (void)options;
    return load(pointer(which.handle), agent, pointer(reader.handle), to == NULL ? NULL : &to->handle);
}

hsa_status_t hsa_executable_load_code_object(hsa_executable_t which, hsa_agent_t agent, hsa_code_object_t object,
                                             const char *options)
{
    (void)options;
    return load(pointer(which.handle), agent, pointer(object.handle), NULL);
}

hsa_status_t hsa_executable_freeze(hsa_executable_t which, const char *options)
{
    executable *e = pointer(which.handle);
    (void)options;
    if (e->frozen)
        return HSA_STATUS_ERROR_FROZEN_EXECUTABLE;
    e->frozen = true;
    return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_executable_validate(hsa_executable_t which, uint32_t *result)
{
    (void)which;
    *result = 0;
    return HSA_STATUS_SUCCESS;
}

/* "NAME.kd" is the kernel NAME; anything else a variable. */
static bool resolve(const loaded *l, const char *name, symbol *to)
{
    const size_t length = strlen(name);
    if (length > 3 && length - 3 < sizeof to->name && strcmp(name + length - 3, ".kd") == 0) {
        char kernel[sizeof to->name];
        memcpy(kernel, name, length - 3);
        kernel[length - 3] = '\0';
        to->kernel = sim_object_kernel(l->object, kernel);
    }
    if (to->kernel == NULL && !sim_object_variable(l->object, name, &to->at, &to->bytes))
        return false;
    to->device = l->device;
    snprintf(to->name, sizeof to->name, "%s", name);
    return true;
}

/* The one that was given before, or a new one. */
static const symbol *keep_symbol(executable *e, const symbol *found)
{
    pthread_mutex_lock(&e->lock);
    symbol *s = e->symbols;
    while (s != NULL && (s->device != found->device || strcmp(s->name, found->name) != 0))
        s = s->next;
    if (s == NULL && (s = malloc(sizeof *s)) != NULL) {
        *s = *found;
        s->next = e->symbols;
        e->symbols = s;
    }
    pthread_mutex_unlock(&e->lock);
    return s;
}

hsa_status_t hsa_executable_get_symbol_by_name(hsa_executable_t which, const char *name, const hsa_agent_t *agent,
                                               hsa_executable_symbol_t *to)
{
    executable *e = pointer(which.handle);
    int         device;
    if (e == NULL)
        return HSA_STATUS_ERROR_INVALID_EXECUTABLE;
    if (name == NULL || to == NULL)
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    if (agent != NULL && !hsa_device_of_agent(*agent, &device))
        return HSA_STATUS_ERROR_INVALID_AGENT;
    for (const loaded *l = e->first; l != NULL; l = l->next) {
        symbol found = { 0 };
        if ((agent != NULL && l->device != device) || !resolve(l, name, &found))
            continue;
        to->handle = handle(keep_symbol(e, &found));
        return to->handle == 0 ? HSA_STATUS_ERROR_OUT_OF_RESOURCES : HSA_STATUS_SUCCESS;
    }
    return HSA_STATUS_ERROR_INVALID_SYMBOL_NAME;
}

/* The kernels alone. */
hsa_status_t hsa_executable_iterate_symbols(hsa_executable_t which, hsa_symbol_callback *callback, void *data)
{
    executable *e = pointer(which.handle);
    if (e == NULL)
        return HSA_STATUS_ERROR_INVALID_EXECUTABLE;
    for (const loaded *l = e->first; l != NULL; l = l->next) {
        for (uint32_t i = 0; i < sim_object_kernel_count(l->object); i++) {
            symbol found = { .kernel = sim_object_kernel_at(l->object, i), .device = l->device };
            snprintf(found.name, sizeof found.name, "%s.kd", found.kernel->name);
            const hsa_executable_symbol_t s = { handle(keep_symbol(e, &found)) };
            const hsa_status_t            status = callback(which, s, data);
            if (status != HSA_STATUS_SUCCESS)
                return status;
        }
    }
    return HSA_STATUS_SUCCESS;
}

static hsa_status_t kernel_info(const sim_kernel *k, uint32_t attribute, void *value)
{
    switch (attribute) {
    case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT:
        return give_u64(value, k->descriptor);
    case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE:
        return give_u32(value, k->kernarg_bytes);
    case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_ALIGNMENT:
        return give_u32(value, 64);
    case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE:
        return give_u32(value, k->lds_bytes);
    case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE:
        return give_u32(value, k->scratch_bytes);
    case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_DYNAMIC_CALLSTACK:
        return give_bool(value, false);
    }
    return HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

static hsa_status_t variable_info(const symbol *s, uint32_t attribute, void *value)
{
    switch (attribute) {
    case HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS:
        return give_u64(value, handle(s->at));
    case HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_SIZE:
        return give_u32(value, (uint32_t)s->bytes);
    }
    return HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

hsa_status_t hsa_executable_symbol_get_info(hsa_executable_symbol_t which, uint32_t attribute, void *value)
{
    const symbol *s = pointer(which.handle);
    if (s == NULL)
        return HSA_STATUS_ERROR_INVALID_EXECUTABLE_SYMBOL;
    switch (attribute) {
    case HSA_EXECUTABLE_SYMBOL_INFO_TYPE:
        return give_u32(value, s->kernel != NULL ? HSA_SYMBOL_KIND_KERNEL : HSA_SYMBOL_KIND_VARIABLE);
    case HSA_EXECUTABLE_SYMBOL_INFO_NAME_LENGTH:
        return give_u32(value, (uint32_t)strlen(s->name));
    case HSA_EXECUTABLE_SYMBOL_INFO_NAME:
        return give(value, s->name, strlen(s->name));
    case HSA_EXECUTABLE_SYMBOL_INFO_LINKAGE:
        return give_u32(value, 1);
    case HSA_EXECUTABLE_SYMBOL_INFO_IS_DEFINITION:
        return give_bool(value, true);
    case HSA_EXECUTABLE_SYMBOL_INFO_AGENT:
        return give_u64(value, (uint64_t)s->device + HSA_FIRST_GPU);
    }
    return s->kernel != NULL ? kernel_info(s->kernel, attribute, value) : variable_info(s, attribute, value);
}
