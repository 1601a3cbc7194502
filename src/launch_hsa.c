#include "launch.h"

#include "../sim/runtime/hsa_api.h" /* the interface's types and numbers; its functions are looked up by name */

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Runs of several threads go side by side, each in a lane of its own: a queue, arguments for a call's kernels, and a
 * signal that its last kernel sets to 0. */
enum { LANES = 4, QUEUE_PACKETS = 64 };
_Static_assert((int)QUEUE_PACKETS >= (int)LAUNCH_MAX_STEPS, "a call's packets fit into an empty queue");

typedef struct lane {
    pthread_mutex_t  lock;
    hsa_queue_t     *queue;
    hsa_signal_t     done;
    char            *kernarg; /* LAUNCH_MAX_STEPS times LAUNCH_MAX_KERNARG bytes */
    _Atomic uint32_t failed;  /* of the queue, by its callback */
} lane;

typedef struct kernel {
    uint64_t object;
    uint32_t kernarg_bytes, lds_bytes, scratch_bytes;
} kernel;

struct launcher {
    hsa_agent_t        agent;
    hsa_executable_t   executables[LAUNCH_MAX_KERNELS];
    int                executable_count;
    const code_object *objects[LAUNCH_MAX_KERNELS];
    kernel             kernels[LAUNCH_MAX_KERNELS];
    int                count;
    lane               lanes[LANES];
    int                lane_count;
    atomic_uint        next;
    bool               reaches_all; /* memory of the process, whether the runtime knows it or not */
};

#define FUNCTIONS(F)                             \
    F(hsa_init)                                  \
    F(hsa_shut_down)                             \
    F(hsa_status_string)                         \
    F(hsa_iterate_agents)                        \
    F(hsa_system_get_info)                       \
    F(hsa_agent_get_info)                        \
    F(hsa_amd_agent_iterate_memory_pools)        \
    F(hsa_amd_memory_pool_get_info)              \
    F(hsa_amd_memory_pool_allocate)              \
    F(hsa_amd_memory_pool_free)                  \
    F(hsa_amd_agents_allow_access)               \
    F(hsa_amd_pointer_info)                      \
    F(hsa_code_object_reader_create_from_memory) \
    F(hsa_code_object_reader_destroy)            \
    F(hsa_executable_create_alt)                 \
    F(hsa_executable_load_agent_code_object)     \
    F(hsa_executable_freeze)                     \
    F(hsa_executable_get_symbol_by_name)         \
    F(hsa_executable_symbol_get_info)            \
    F(hsa_executable_destroy)                    \
    F(hsa_queue_create)                          \
    F(hsa_queue_destroy)                         \
    F(hsa_queue_add_write_index_relaxed)         \
    F(hsa_signal_create)                         \
    F(hsa_signal_destroy)                        \
    F(hsa_signal_store_relaxed)                  \
    F(hsa_signal_store_screlease)                \
    F(hsa_signal_wait_scacquire)

static struct {
#define F(name) __typeof__(name) *name;
    FUNCTIONS(F)
#undef F
} hsa;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const char    *missing = "libhsa-runtime64.so is not in this process"; /* NULL: the functions are there */

/* The plugin of OpenMP opens the first name, HIP is linked with the second; both are one file. */
static void load_functions(void)
{
    static const char *const   names[] = { "libhsa-runtime64.so", "libhsa-runtime64.so.1", NULL };
    static const launch_symbol symbols[] = {
#define F(name) { #name, (void **)&hsa.name },
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

static etalon_status reject(const char *what, hsa_status_t status)
{
    const char *text = NULL;
    if (hsa.hsa_status_string(status, &text) != HSA_STATUS_SUCCESS || text == NULL)
        text = "unknown status";
    return etalon_reject(ETALON_ERROR_DEVICE, "HSA: %s: %s (0x%x)", what, text, (unsigned)status);
}

#define HSA(function, ...)                                   \
    do {                                                     \
        const hsa_status_t hsa_ = hsa.function(__VA_ARGS__); \
        if (hsa_ != HSA_STATUS_SUCCESS)                      \
            return reject(#function, hsa_);                  \
    } while (0)

/* Agents
 * ------
 */
static hsa_status_t count_gpu(hsa_agent_t agent, void *data)
{
    enum { KERNEL_DISPATCH = 1 };
    uint32_t     device = HSA_DEVICE_TYPE_CPU, feature = 0;
    hsa_status_t status = hsa.hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &device);
    if (status == HSA_STATUS_SUCCESS)
        status = hsa.hsa_agent_get_info(agent, HSA_AGENT_INFO_FEATURE, &feature);
    if (status == HSA_STATUS_SUCCESS && device == HSA_DEVICE_TYPE_GPU && (feature & KERNEL_DISPATCH) != 0)
        ++*(int *)data;
    return status;
}

int launch_hsa_devices(void)
{
    int count = 0;
    if (!is_loaded() || hsa.hsa_init() != HSA_STATUS_SUCCESS)
        return 0;
    hsa.hsa_iterate_agents(count_gpu, &count);
    hsa.hsa_shut_down(); /* counted: the plugin holds it */
    return count;
}

etalon_status launch_hsa_describe(launch_place *place)
{
    const hsa_agent_t agent = { place->agent };
    char              name[64] = "";
    uint32_t          bdf = 0, domain = 0, units = 0;
    if (!is_loaded())
        return etalon_reject(ETALON_ERROR_DEVICE, "HSA: %s", missing);
    HSA(hsa_agent_get_info, agent, HSA_AGENT_INFO_NAME, name);
    HSA(hsa_agent_get_info, agent, HSA_AMD_AGENT_INFO_BDFID, &bdf);
    HSA(hsa_agent_get_info, agent, HSA_AMD_AGENT_INFO_DOMAIN, &domain);
    HSA(hsa_agent_get_info, agent, HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT, &units);
    place->units = (int32_t)units;
    snprintf(place->arch, sizeof place->arch, "%.*s", (int)sizeof place->arch - 1, name);
    snprintf(place->pci, sizeof place->pci, "%04x:%02x:%02x.%x", domain & 0xFFFF, bdf >> 8 & 0xFF, bdf >> 3 & 0x1F,
             bdf & 7);
    return ETALON_OK;
}

/* Kernels
 * -------
 */
static etalon_status load_kernel(launcher *l, int i)
{
    const code_object       *o = l->objects[i];
    kernel                  *k = &l->kernels[i];
    hsa_code_object_reader_t reader;
    hsa_executable_t         executable;
    hsa_executable_symbol_t  symbol;
    char                     name[128];
    snprintf(name, sizeof name, "etalon_%s.kd", o->stem);
    HSA(hsa_executable_create_alt, 1 /* full profile */, 0 /* default rounding */, "", &executable);
    l->executables[l->executable_count++] = executable;
    HSA(hsa_code_object_reader_create_from_memory, o->bytes, code_object_bytes(o), &reader);
    const hsa_status_t loaded = hsa.hsa_executable_load_agent_code_object(executable, l->agent, reader, "", NULL);
    if (loaded != HSA_STATUS_SUCCESS) {
        hsa.hsa_code_object_reader_destroy(reader);
        return reject(o->stem, loaded);
    }
    HSA(hsa_executable_freeze, executable, "");
    HSA(hsa_code_object_reader_destroy, reader);
    HSA(hsa_executable_get_symbol_by_name, executable, name, &l->agent, &symbol);
    const struct {
        uint32_t attribute;
        void    *to;
    } infos[] = {
        { HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, &k->object },
        { HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE, &k->kernarg_bytes },
        { HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE, &k->lds_bytes },
        { HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE, &k->scratch_bytes },
    };
    for (size_t j = 0; j < sizeof infos / sizeof infos[0]; j++)
        HSA(hsa_executable_symbol_get_info, symbol, infos[j].attribute, infos[j].to);
    if (k->kernarg_bytes > LAUNCH_MAX_KERNARG)
        return etalon_reject(ETALON_ERROR_DEVICE, "HSA: %s: %u bytes of arguments, at most %d are provided for",
                             o->stem, (unsigned)k->kernarg_bytes, LAUNCH_MAX_KERNARG);
    return ETALON_OK;
}

/* Lanes
 * -----
 */
/* A queue that failed runs nothing more and signals nothing: whoever waits has to be woken. */
static void queue_failed(hsa_status_t status, hsa_queue_t *queue, void *data)
{
    lane *a = data;
    (void)queue;
    atomic_store(&a->failed, status);
    hsa.hsa_signal_store_screlease(a->done, 0);
}

static etalon_status open_queue(launcher *l, lane *a)
{
    atomic_store(&a->failed, HSA_STATUS_SUCCESS);
    HSA(hsa_queue_create, l->agent, QUEUE_PACKETS, 0 /* several producers */, queue_failed, a, UINT32_MAX, UINT32_MAX,
        &a->queue);
    return ETALON_OK;
}

static hsa_status_t find_kernarg_pool(hsa_amd_memory_pool_t pool, void *data)
{
    uint32_t           flags = 0;
    const hsa_status_t status = hsa.hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, &flags);
    if (status == HSA_STATUS_SUCCESS && (flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT) != 0)
        *(hsa_amd_memory_pool_t *)data = pool;
    return status;
}

static hsa_status_t look_in_cpu(hsa_agent_t agent, void *data)
{
    uint32_t           device = HSA_DEVICE_TYPE_GPU;
    const hsa_status_t status = hsa.hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &device);
    if (status != HSA_STATUS_SUCCESS || device != HSA_DEVICE_TYPE_CPU)
        return status;
    return hsa.hsa_amd_agent_iterate_memory_pools(agent, find_kernarg_pool, data);
}

static etalon_status open_lane(launcher *l, hsa_amd_memory_pool_t pool)
{
    lane *a = &l->lanes[l->lane_count];
    HSA(hsa_signal_create, 0, 0, NULL, &a->done);
    pthread_mutex_init(&a->lock, NULL);
    l->lane_count++;
    HSA(hsa_amd_memory_pool_allocate, pool, (size_t)LAUNCH_MAX_STEPS * LAUNCH_MAX_KERNARG, 0, (void **)&a->kernarg);
    HSA(hsa_amd_agents_allow_access, 1, &l->agent, NULL, a->kernarg);
    return open_queue(l, a);
}

static void close_hsa(launcher *l)
{
    if (l == NULL)
        return;
    for (int i = 0; i < l->lane_count; i++) {
        lane *a = &l->lanes[i];
        if (a->queue != NULL)
            hsa.hsa_queue_destroy(a->queue);
        if (a->kernarg != NULL)
            hsa.hsa_amd_memory_pool_free(a->kernarg);
        hsa.hsa_signal_destroy(a->done);
        pthread_mutex_destroy(&a->lock);
    }
    for (int i = 0; i < l->executable_count; i++)
        hsa.hsa_executable_destroy(l->executables[i]);
    hsa.hsa_shut_down();
    free(l);
}

/* What an older runtime does not know of, it does not have. */
static bool system_has(uint32_t attribute)
{
    bool has = false;
    return hsa.hsa_system_get_info(attribute, &has) == HSA_STATUS_SUCCESS && has;
}

static etalon_status fill(launcher *l, const launch_place *place, const code_object *objects)
{
    hsa_amd_memory_pool_t pool = { 0 };
    l->agent.handle = place->agent;
    l->reaches_all =
        system_has(HSA_AMD_SYSTEM_INFO_XNACK_ENABLED) || system_has(HSA_AMD_SYSTEM_INFO_SVM_ACCESSIBLE_BY_DEFAULT);
    TRY(launch_choose("HSA", place->arch, objects, l->objects, &l->count));
    for (int i = 0; i < l->count; i++)
        TRY(load_kernel(l, i));
    HSA(hsa_iterate_agents, look_in_cpu, &pool);
    if (pool.handle == 0)
        return etalon_reject(ETALON_ERROR_DEVICE, "HSA: no memory pool for the arguments of kernels");
    for (int i = 0; i < LANES; i++)
        TRY(open_lane(l, pool));
    return ETALON_OK;
}

static etalon_status open_hsa(const launch_place *place, const code_object *objects, launcher **to)
{
    if (!is_loaded())
        return etalon_reject(ETALON_ERROR_DEVICE, "HSA: %s", missing);
    HSA(hsa_init);
    launcher *l = calloc(1, sizeof *l);
    if (l == NULL) {
        hsa.hsa_shut_down();
        return etalon_reject(ETALON_ERROR_OUT_OF_MEMORY, "HSA: %zu bytes", sizeof *l);
    }
    const etalon_status status = fill(l, place, objects);
    if (status != ETALON_OK)
        close_hsa(l);
    else
        *to = l;
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

/* Behind the arguments, in code objects of version 5 and later: workgroups, their size, the remainder (none: grids are
 * whole), the number of dimensions, dynamic LDS. A kernel that reads none of it has no room for it. */
static void fill_hidden(char *hidden, size_t room, const launch_step *s)
{
    enum { GROUP_COUNT = 0, GROUP_SIZE = 12, DIMENSIONS = 64, DYNAMIC_LDS = 120 };
    const uint16_t size[3] = { (uint16_t)s->threads, 1, 1 }, dimensions = 3;
    if (room >= DYNAMIC_LDS + sizeof s->lds_bytes)
        memcpy(hidden + DYNAMIC_LDS, &s->lds_bytes, sizeof s->lds_bytes);
    if (room >= DIMENSIONS + sizeof dimensions)
        memcpy(hidden + DIMENSIONS, &dimensions, sizeof dimensions);
    if (room >= GROUP_SIZE + sizeof size)
        memcpy(hidden + GROUP_SIZE, size, sizeof size);
    if (room >= GROUP_COUNT + sizeof s->groups)
        memcpy(hidden + GROUP_COUNT, s->groups, sizeof s->groups);
}

static void fill_arguments(char *to, const kernel *k, const launch_step *s)
{
    const size_t hidden = (s->args_bytes + 7) & ~(size_t)7;
    memset(to, 0, k->kernarg_bytes);
    memcpy(to, s->args, s->args_bytes);
    if (k->kernarg_bytes > hidden)
        fill_hidden(to + hidden, k->kernarg_bytes - hidden, s);
}

/* The header goes last: with it the packet is the queue's. The barrier bit: not before the packets in front are done. */
static void put_packet(const lane *a, int index, const kernel *k, const launch_step *s, bool last)
{
    enum { BARRIER = 1 << 8, ACQUIRE_SYSTEM = 2 << 9, RELEASE_SYSTEM = 2 << 11, DIMENSIONS = 3 };
    const uint64_t                id = hsa.hsa_queue_add_write_index_relaxed(a->queue, 1);
    hsa_kernel_dispatch_packet_t *p =
        (hsa_kernel_dispatch_packet_t *)a->queue->base_address + (id & (a->queue->size - 1));
    char *kernarg = a->kernarg + (size_t)index * LAUNCH_MAX_KERNARG;
    fill_arguments(kernarg, k, s);
    p->workgroup_size_x = (uint16_t)s->threads;
    p->workgroup_size_y = p->workgroup_size_z = 1;
    p->reserved0 = 0;
    p->grid_size_x = s->groups[0] * s->threads;
    p->grid_size_y = s->groups[1];
    p->grid_size_z = s->groups[2];
    p->private_segment_size = k->scratch_bytes;
    p->group_segment_size = k->lds_bytes + s->lds_bytes;
    p->kernel_object = k->object;
    p->kernarg_address = kernarg;
    p->reserved2 = 0;
    p->completion_signal = last ? a->done : (hsa_signal_t){ 0 };
    const uint32_t header = HSA_PACKET_TYPE_KERNEL_DISPATCH | BARRIER | ACQUIRE_SYSTEM | RELEASE_SYSTEM;
    __atomic_store_n((uint32_t *)(void *)p, header | (uint32_t)DIMENSIONS << 16, __ATOMIC_RELEASE);
    hsa.hsa_signal_store_screlease(a->queue->doorbell_signal, (hsa_signal_value_t)id);
}

static etalon_status check_step(const launcher *l, const launch_step *s, int *index)
{
    *index = launch_find(l->objects, l->count, s->stem);
    if (*index < 0)
        return etalon_reject(ETALON_ERROR_DEVICE, "HSA: no kernel etalon_%s was built for this device", s->stem);
    if (s->args_bytes > l->kernels[*index].kernarg_bytes)
        return etalon_reject(ETALON_ERROR_DEVICE, "HSA: %s: %zu bytes of arguments, the kernel reads %u", s->stem,
                             s->args_bytes, (unsigned)l->kernels[*index].kernarg_bytes);
    if ((uint64_t)s->groups[0] * s->threads > UINT32_MAX)
        return etalon_reject(ETALON_ERROR_DEVICE, "HSA: %s: %" PRIu64 " work-items in one dimension, at most 2^32 - 1",
                             s->stem, (uint64_t)s->groups[0] * s->threads);
    return ETALON_OK;
}

static etalon_status run_in_lane(launcher *l, lane *a, const launch_step *steps, const int *kernels, int count)
{
    if (atomic_load(&a->failed) != HSA_STATUS_SUCCESS || a->queue == NULL) { /* in an earlier call */
        if (a->queue != NULL)
            HSA(hsa_queue_destroy, a->queue);
        a->queue = NULL;
        TRY(open_queue(l, a));
    }
    hsa.hsa_signal_store_relaxed(a->done, 1);
    for (int i = 0; i < count; i++)
        put_packet(a, i, &l->kernels[kernels[i]], &steps[i], i == count - 1);
    while (hsa.hsa_signal_wait_scacquire(a->done, HSA_SIGNAL_CONDITION_LT, 1, UINT64_MAX, HSA_WAIT_STATE_BLOCKED) >= 1)
        ;
    const hsa_status_t failed = atomic_load(&a->failed);
    return failed == HSA_STATUS_SUCCESS ? ETALON_OK : reject(steps[count - 1].stem, failed);
}

static etalon_status run_hsa(launcher *l, void *stream, const launch_step *steps, int count)
{
    int kernels[LAUNCH_MAX_STEPS];
    if (stream != NULL || count > LAUNCH_MAX_STEPS)
        return etalon_reject(ETALON_ERROR_DEVICE, "HSA: %s",
                             stream != NULL ? "a stream is not HSA's" : "too many steps");
    for (int i = 0; i < count; i++)
        TRY(check_step(l, &steps[i], &kernels[i]));
    if (count == 0)
        return ETALON_OK;
    lane               *a = take_lane(l);
    const etalon_status status = run_in_lane(l, a, steps, kernels, count);
    pthread_mutex_unlock(&a->lock);
    return status;
}

/* HIP's memory is HSA's. */
static bool knows_hsa(const launcher *l, const void *at)
{
    hsa_amd_pointer_info_t info = { .size = sizeof info };
    return l->reaches_all || (hsa.hsa_amd_pointer_info(at, &info, NULL, NULL, NULL) == HSA_STATUS_SUCCESS &&
                              info.type != HSA_EXT_POINTER_TYPE_UNKNOWN);
}

const launch_api launch_hsa = { "HSA", open_hsa, close_hsa, run_hsa, knows_hsa };
