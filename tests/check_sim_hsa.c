/* The stand-in for libhsa-runtime64.so, as a launcher sees it: queues, packets, signals, copies, access, refusals.
 *
 * ETALON_SIM_LIBRARIES names the directory of the library, ETALON_SIM_KERNELS that of runtime_ARCH.co
 * (tests/sim/runtime_ARCH.s). That the unmodified OpenMP plugin runs on it: check_sim_offload.sh.
 */
#include "testing.h"

#include "../sim/runtime/hsa_api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

/* The library
 * -----------
 */
#define FUNCTIONS(F)                             \
    F(hsa_init)                                  \
    F(hsa_shut_down)                             \
    F(hsa_status_string)                         \
    F(hsa_system_get_info)                       \
    F(hsa_iterate_agents)                        \
    F(hsa_agent_get_info)                        \
    F(hsa_agent_iterate_isas)                    \
    F(hsa_isa_get_info_alt)                      \
    F(hsa_amd_agent_iterate_memory_pools)        \
    F(hsa_amd_memory_pool_get_info)              \
    F(hsa_amd_agent_memory_pool_get_info)        \
    F(hsa_amd_memory_pool_allocate)              \
    F(hsa_amd_memory_pool_free)                  \
    F(hsa_amd_agents_allow_access)               \
    F(hsa_amd_memory_lock)                       \
    F(hsa_amd_memory_unlock)                     \
    F(hsa_amd_memory_fill)                       \
    F(hsa_memory_copy)                           \
    F(hsa_amd_memory_async_copy)                 \
    F(hsa_amd_pointer_info)                      \
    F(hsa_signal_create)                         \
    F(hsa_amd_signal_create)                     \
    F(hsa_signal_destroy)                        \
    F(hsa_signal_load_scacquire)                 \
    F(hsa_signal_store_relaxed)                  \
    F(hsa_signal_store_screlease)                \
    F(hsa_signal_subtract_screlease)             \
    F(hsa_signal_wait_scacquire)                 \
    F(hsa_amd_signal_async_handler)              \
    F(hsa_amd_register_system_event_handler)     \
    F(hsa_code_object_reader_create_from_memory) \
    F(hsa_code_object_reader_destroy)            \
    F(hsa_code_object_deserialize)               \
    F(hsa_code_object_destroy)                   \
    F(hsa_executable_create)                     \
    F(hsa_executable_create_alt)                 \
    F(hsa_executable_destroy)                    \
    F(hsa_executable_load_agent_code_object)     \
    F(hsa_executable_load_code_object)           \
    F(hsa_executable_freeze)                     \
    F(hsa_executable_validate)                   \
    F(hsa_executable_get_symbol_by_name)         \
    F(hsa_executable_iterate_symbols)            \
    F(hsa_executable_symbol_get_info)            \
    F(hsa_queue_create)                          \
    F(hsa_queue_destroy)                         \
    F(hsa_queue_load_read_index_scacquire)       \
    F(hsa_queue_add_write_index_relaxed)

#define DECLARE(f) static __typeof__(f) *p_##f;
FUNCTIONS(DECLARE)

#define ONE(f) +1
_Static_assert(0 FUNCTIONS(ONE) == 48, "what LLVM 22's plugin looks up");

static const char *const     arch_name[] = { "gfx950", "gfx1250" };
static hsa_agent_t           cpu, gpu[3];
static int                   gpus;
static hsa_amd_memory_pool_t fine, kernarg, device[3], lds;

static const char *environment(const char *name)
{
    const char *value = getenv(name);
    ck_assert_msg(value != NULL, "%s is not set", name);
    return value;
}

#define ck_assert_hsa(call, want)                                                                      \
    do {                                                                                               \
        const hsa_status_t status_ = p_##call;                                                         \
        ck_assert_msg(status_ == (want), "%s: 0x%x, expected 0x%x", #call, status_, (unsigned)(want)); \
    } while (0)

#define ck_assert_hsa_ok(call) ck_assert_hsa(call, HSA_STATUS_SUCCESS)

static hsa_status_t take_agent(hsa_agent_t agent, void *none)
{
    uint32_t kind;
    (void)none;
    ck_assert_hsa_ok(hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &kind));
    if (kind == HSA_DEVICE_TYPE_CPU)
        cpu = agent;
    else
        gpu[gpus++] = agent;
    return HSA_STATUS_SUCCESS;
}

static hsa_status_t take_pool(hsa_amd_memory_pool_t pool, void *to_device)
{
    uint32_t segment, flags;
    ck_assert_hsa_ok(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &segment));
    ck_assert_hsa_ok(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, &flags));
    if (segment == HSA_AMD_SEGMENT_GROUP)
        lds = pool;
    else if (flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT)
        kernarg = pool;
    else if (flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED)
        fine = pool;
    else if (to_device != NULL)
        *(hsa_amd_memory_pool_t *)to_device = pool;
    return HSA_STATUS_SUCCESS;
}

/* A process of Check's runs one test, so the environment is read anew in each. */
static void open_library(int arch, const char *devices)
{
    char path[4096];
    setenv("ETALON_SIM_ARCH", arch_name[arch], 1);
    setenv("ETALON_SIM_DEVICES", devices, 1);
    snprintf(path, sizeof path, "%s/libhsa-runtime64.so", environment("ETALON_SIM_LIBRARIES"));
    void *library = dlopen(path, RTLD_NOW);
    ck_assert_msg(library != NULL, "%s", dlerror());
#define LOOK_UP(f)                               \
    p_##f = (__typeof__(f) *)dlsym(library, #f); \
    ck_assert_msg(p_##f != NULL, #f);
    FUNCTIONS(LOOK_UP)
}

static void start(int arch, const char *devices)
{
    open_library(arch, devices);
    ck_assert_hsa_ok(hsa_init());
    ck_assert_hsa_ok(hsa_iterate_agents(take_agent, NULL));
    ck_assert_int_eq(gpus, atoi(devices));
    ck_assert_hsa_ok(hsa_amd_agent_iterate_memory_pools(cpu, take_pool, NULL));
    for (int i = 0; i < gpus; i++)
        ck_assert_hsa_ok(hsa_amd_agent_iterate_memory_pools(gpu[i], take_pool, &device[i]));
}

static void *allocate(hsa_amd_memory_pool_t pool, size_t bytes)
{
    void *at;
    ck_assert_hsa_ok(hsa_amd_memory_pool_allocate(pool, bytes, 0, &at));
    return at;
}

/* What a test leaves to the end of its process. */
static uint64_t kept[64];
static int      kept_count;

static void keep(uint64_t handle)
{
    ck_assert_int_lt(kept_count, 64);
    kept[kept_count++] = handle;
}

static hsa_signal_t signal_of(int64_t value)
{
    hsa_signal_t s;
    ck_assert_hsa_ok(hsa_signal_create(value, 0, NULL, &s));
    keep(s.handle);
    return s;
}

static int64_t wait_for_zero(hsa_signal_t s)
{
    return p_hsa_signal_wait_scacquire(s, HSA_SIGNAL_CONDITION_EQ, 0, UINT64_MAX, HSA_WAIT_STATE_BLOCKED);
}

/* Code
 * ----
 */
typedef struct kernel {
    uint64_t object;
    uint32_t kernarg_bytes, lds_bytes, scratch_bytes;
} kernel;

static const void *read_code(const char *arch, size_t *size)
{
    static char bytes[1 << 20];
    char        path[4096];
    snprintf(path, sizeof path, "%s/runtime_%s.co", environment("ETALON_SIM_KERNELS"), arch);
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "cannot open %s", path);
    *size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    return bytes;
}

static hsa_executable_t load(int arch, hsa_agent_t agent)
{
    hsa_code_object_reader_t reader;
    hsa_executable_t         e;
    uint32_t                 wrong = 7;
    size_t                   size;
    const void              *bytes = read_code(arch_name[arch], &size);
    ck_assert_hsa_ok(hsa_code_object_reader_create_from_memory(bytes, size, &reader));
    ck_assert_hsa_ok(hsa_executable_create_alt(1, 0, "", &e));
    keep(e.handle);
    ck_assert_hsa_ok(hsa_executable_load_agent_code_object(e, agent, reader, "", NULL));
    ck_assert_hsa_ok(hsa_executable_freeze(e, ""));
    ck_assert_hsa_ok(hsa_executable_validate(e, &wrong));
    ck_assert_uint_eq(wrong, 0);
    ck_assert_hsa(hsa_executable_load_agent_code_object(e, agent, reader, "", NULL),
                  HSA_STATUS_ERROR_FROZEN_EXECUTABLE);
    ck_assert_hsa_ok(hsa_code_object_reader_destroy(reader));
    return e;
}

static kernel find(hsa_executable_t e, hsa_agent_t agent, const char *name)
{
    hsa_executable_symbol_t s;
    kernel                  k;
    uint32_t                kind;
    ck_assert_hsa_ok(hsa_executable_get_symbol_by_name(e, name, &agent, &s));
    ck_assert_hsa_ok(hsa_executable_symbol_get_info(s, HSA_EXECUTABLE_SYMBOL_INFO_TYPE, &kind));
    ck_assert_uint_eq(kind, HSA_SYMBOL_KIND_KERNEL);
    ck_assert_hsa_ok(hsa_executable_symbol_get_info(s, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, &k.object));
    ck_assert_hsa_ok(
        hsa_executable_symbol_get_info(s, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE, &k.kernarg_bytes));
    ck_assert_hsa_ok(
        hsa_executable_symbol_get_info(s, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE, &k.lds_bytes));
    ck_assert_hsa_ok(
        hsa_executable_symbol_get_info(s, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE, &k.scratch_bytes));
    return k;
}

/* Queues and packets
 * ------------------
 */
typedef struct queue {
    hsa_queue_t *hsa;
    atomic_uint  failed; /* status that the callback was told */
} queue;

static void note_failure(hsa_status_t status, hsa_queue_t *which, void *to)
{
    queue *q = to;
    (void)which;
    atomic_store(&q->failed, status);
}

static void open_queue(queue *q, hsa_agent_t agent)
{
    atomic_store(&q->failed, 0);
    ck_assert_hsa_ok(hsa_queue_create(agent, 64, 0, note_failure, q, UINT32_MAX, UINT32_MAX, &q->hsa));
}

static hsa_kernel_dispatch_packet_t packet_of(const kernel *k, void *arguments, uint32_t groups, uint32_t block,
                                              hsa_signal_t done)
{
    return (hsa_kernel_dispatch_packet_t){
        .header = HSA_PACKET_TYPE_KERNEL_DISPATCH | 2 << 9 | 2 << 11,
        .setup = 1,
        .workgroup_size_x = (uint16_t)block,
        .workgroup_size_y = 1,
        .workgroup_size_z = 1,
        .grid_size_x = groups * block,
        .grid_size_y = 1,
        .grid_size_z = 1,
        .private_segment_size = k->scratch_bytes,
        .group_segment_size = k->lds_bytes,
        .kernel_object = k->object,
        .kernarg_address = arguments,
        .completion_signal = done,
    };
}

/* The header is stored last. */
static uint64_t put(queue *q, const void *packet)
{
    hsa_kernel_dispatch_packet_t p;
    memcpy(&p, packet, sizeof p);
    const uint64_t                      at = p_hsa_queue_add_write_index_relaxed(q->hsa, 1);
    hsa_kernel_dispatch_packet_t *const slot = (hsa_kernel_dispatch_packet_t *)q->hsa->base_address + at % q->hsa->size;
    memcpy((char *)slot + 4, (char *)&p + 4, sizeof p - 4);
    __atomic_store_n((uint32_t *)slot, (uint32_t)p.header | (uint32_t)p.setup << 16, __ATOMIC_RELEASE);
    return at;
}

static void submit(queue *q, const void *packet)
{
    p_hsa_signal_store_screlease(q->hsa->doorbell_signal, (int64_t)put(q, packet));
}

typedef struct stamp_arguments {
    uint32_t *p, value, unused;
} stamp_arguments;

static stamp_arguments *stamp_of(uint32_t *p, uint32_t value)
{
    stamp_arguments *a = allocate(kernarg, sizeof *a);
    ck_assert_hsa_ok(hsa_amd_agents_allow_access(1, gpu, NULL, a));
    *a = (stamp_arguments){ p, value, 0 };
    return a;
}

/* Two words that the GPU and the host see. */
static uint32_t *shared_words(void)
{
    uint32_t *p = allocate(fine, 8);
    ck_assert_hsa_ok(hsa_amd_agents_allow_access(1, gpu, NULL, p));
    p[0] = p[1] = 0;
    return p;
}

/* Agents and pools
 * ----------------
 */
static hsa_status_t take_isa(hsa_isa_t isa, void *to)
{
    *(hsa_isa_t *)to = isa;
    return HSA_STATUS_SUCCESS;
}

START_TEST(agents)
{
    open_library(_i, "3");
    ck_assert_hsa(hsa_iterate_agents(take_agent, NULL), HSA_STATUS_ERROR_NOT_INITIALIZED);
    ck_assert_hsa(hsa_shut_down(), HSA_STATUS_ERROR_NOT_INITIALIZED);
    start(_i, "3");
    uint32_t          lanes, length, feature, size[3], bus[3];
    char              name[64], isa_name[64], other[64];
    hsa_isa_t         isa = { 0 };
    const char *const want[] = { "amdgcn-amd-amdhsa--gfx950:sramecc+:xnack-", "amdgcn-amd-amdhsa--gfx1250" };
    for (int i = 0; i < 3; i++) {
        ck_assert_hsa_ok(hsa_agent_get_info(gpu[i], HSA_AGENT_INFO_NAME, name));
        ck_assert_str_eq(name, arch_name[_i]);
        ck_assert_hsa_ok(hsa_agent_get_info(gpu[i], HSA_AGENT_INFO_WAVEFRONT_SIZE, &lanes));
        ck_assert_uint_eq(lanes, _i == 0 ? 64 : 32);
        ck_assert_hsa_ok(hsa_agent_get_info(gpu[i], HSA_AGENT_INFO_FEATURE, &feature));
        ck_assert_uint_eq(feature, 1);
        ck_assert_hsa_ok(hsa_agent_get_info(gpu[i], HSA_AMD_AGENT_INFO_BDFID, &bus[i]));
        ck_assert_hsa_ok(hsa_agent_iterate_isas(gpu[i], take_isa, &isa));
        ck_assert_hsa_ok(hsa_isa_get_info_alt(isa, HSA_ISA_INFO_NAME_LENGTH, &length));
        ck_assert_uint_eq(length, strlen(want[_i]) + 1);
        ck_assert_hsa_ok(hsa_isa_get_info_alt(isa, HSA_ISA_INFO_NAME, isa_name));
        ck_assert_str_eq(isa_name, want[_i]);
    }
    ck_assert_uint_ne(bus[0], bus[1]);
    ck_assert_hsa_ok(hsa_agent_get_info(gpu[0], HSA_AMD_AGENT_INFO_UUID, name));
    ck_assert_hsa_ok(hsa_agent_get_info(gpu[1], HSA_AMD_AGENT_INFO_UUID, other));
    ck_assert_uint_eq(strlen(name), 20);
    ck_assert_str_ne(name, other);
    ck_assert_hsa(hsa_agent_get_info((hsa_agent_t){ 99 }, HSA_AGENT_INFO_NAME, name), HSA_STATUS_ERROR_INVALID_AGENT);
    ck_assert_hsa(hsa_agent_get_info(gpu[0], 0x7777, name), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    ck_assert_hsa_ok(hsa_amd_memory_pool_get_info(lds, HSA_AMD_MEMORY_POOL_INFO_SIZE, size));
    ck_assert_uint_eq(size[0], (_i == 0 ? 160u : 320u) * 1024);
    uint32_t access;
    ck_assert_hsa_ok(
        hsa_amd_agent_memory_pool_get_info(gpu[1], device[0], HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS, &access));
    ck_assert_uint_eq(access, HSA_AMD_MEMORY_POOL_ACCESS_DISALLOWED_BY_DEFAULT);
    const char *text;
    ck_assert_hsa_ok(hsa_status_string(HSA_STATUS_ERROR_INVALID_AGENT, &text));
    ck_assert_ptr_nonnull(strstr(text, "HSA_STATUS_ERROR_INVALID_AGENT"));
    ck_assert_hsa(hsa_status_string(12345, &text), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    ck_assert_hsa_ok(hsa_shut_down());
}
END_TEST

START_TEST(bad_environment)
{
    setenv(_i == 0 ? "ETALON_SIM_CHECK" : "ETALON_SIM_THREADS", "plenty", 1);
    open_library(0, "1");
    ck_assert_hsa(hsa_init(), HSA_STATUS_ERROR_OUT_OF_RESOURCES);
}
END_TEST

/* Launches
 * --------
 */
START_TEST(packets_in_order)
{
    start(_i, "1");
    queue        q;
    const kernel k = find(load(_i, gpu[0]), gpu[0], "stamp.kd");
    uint32_t    *p = shared_words();
    hsa_signal_t done = signal_of(200);
    open_queue(&q, gpu[0]);
    for (uint32_t i = 1; i <= 200; i++) { /* three times around the queue */
        hsa_kernel_dispatch_packet_t packet = packet_of(&k, stamp_of(p, i), 1, 32, done);
        while (i - p_hsa_queue_load_read_index_scacquire(q.hsa) > q.hsa->size)
            usleep(100);
        submit(&q, &packet);
    }
    ck_assert_int_eq(wait_for_zero(done), 0);
    ck_assert_uint_eq(p[0], 200);
    ck_assert_uint_eq(p[1], 199);
    ck_assert_uint_eq(p_hsa_queue_load_read_index_scacquire(q.hsa), 200);
    ck_assert_uint_eq(atomic_load(&q.failed), 0);
    ck_assert_hsa_ok(hsa_queue_destroy(q.hsa));
    ck_assert_hsa_ok(hsa_signal_destroy(done));
}
END_TEST

/* One doorbell for several packets, the first of which comes last. */
START_TEST(late_header)
{
    start(_i, "1");
    queue        q;
    const kernel k = find(load(_i, gpu[0]), gpu[0], "stamp.kd");
    uint32_t    *p = shared_words();
    hsa_signal_t done = signal_of(2);
    open_queue(&q, gpu[0]);
    const uint64_t                      first = p_hsa_queue_add_write_index_relaxed(q.hsa, 1);
    const hsa_kernel_dispatch_packet_t  one = packet_of(&k, stamp_of(p, 1), 1, 32, done);
    const hsa_kernel_dispatch_packet_t  two = packet_of(&k, stamp_of(p, 2), 1, 32, done);
    hsa_kernel_dispatch_packet_t *const slot = (hsa_kernel_dispatch_packet_t *)q.hsa->base_address + first;
    submit(&q, &two);
    usleep(20000);
    ck_assert_uint_eq(p[0], 0);
    memcpy((char *)slot + 4, (const char *)&one + 4, sizeof one - 4);
    __atomic_store_n((uint32_t *)slot, (uint32_t)one.header | (uint32_t)one.setup << 16, __ATOMIC_RELEASE);
    p_hsa_signal_store_relaxed(q.hsa->doorbell_signal, (int64_t)first);
    wait_for_zero(done);
    ck_assert_uint_eq(p[1], 1);
    ck_assert_uint_eq(p[0], 2);
    ck_assert_hsa_ok(hsa_queue_destroy(q.hsa));
}
END_TEST

START_TEST(barriers)
{
    start(_i, "1");
    queue                q;
    const kernel         k = find(load(_i, gpu[0]), gpu[0], "stamp.kd");
    uint32_t            *p = shared_words();
    hsa_signal_t         a = signal_of(1), b = signal_of(1), done = signal_of(1), past = signal_of(1);
    hsa_barrier_packet_t barrier = { .header = HSA_PACKET_TYPE_BARRIER_AND, .dep_signal = { a, { 0 }, b } };
    open_queue(&q, gpu[0]);
    submit(&q, &barrier);
    const hsa_kernel_dispatch_packet_t packet = packet_of(&k, stamp_of(p, 1), 1, 32, done);
    submit(&q, &packet);
    p_hsa_signal_store_relaxed(b, 0);
    usleep(20000);
    ck_assert_uint_eq(p[0], 0);
    p_hsa_signal_subtract_screlease(a, 1);
    wait_for_zero(done);
    ck_assert_uint_eq(p[0], 1);

    p_hsa_signal_store_relaxed(a, 1);
    p_hsa_signal_store_relaxed(b, 1);
    barrier.header = HSA_PACKET_TYPE_BARRIER_OR;
    barrier.completion_signal = past;
    submit(&q, &barrier);
    usleep(20000);
    ck_assert_int_eq(p_hsa_signal_load_scacquire(past), 1);
    p_hsa_signal_store_relaxed(b, 0);
    ck_assert_int_eq(wait_for_zero(past), 0);
    barrier.header = HSA_PACKET_TYPE_BARRIER_AND; /* a is never met: the queue ends all the same */
    submit(&q, &barrier);
    ck_assert_hsa_ok(hsa_queue_destroy(q.hsa));
}
END_TEST

/* Each packet is refused, its queue told, and its completion never signalled. */
static void spoil(int how, hsa_kernel_dispatch_packet_t *p)
{
    switch (how) {
    case 0:
        p->setup = 0;
        break;
    case 1:
        p->kernel_object += 8;
        break;
    case 2:
        p->kernarg_address = NULL;
        break;
    case 3:
        p->kernarg_address = (char *)p->kernarg_address + 8; /* the segment ends too soon */
        break;
    case 4:
        p->workgroup_size_x = 0;
        break;
    case 5:
        p->workgroup_size_y = 2;
        break;
    case 6:
        p->header = HSA_PACKET_TYPE_AGENT_DISPATCH;
        break;
    case 7:
        p->group_segment_size = 400 * 1024;
        break;
    case 8: /* memory that the agent may not read */
        p->kernarg_address = allocate(kernarg, 16);
        break;
    }
}

enum { WAYS = 9 };

START_TEST(bad_packets)
{
    start(0, "1");
    queue        q;
    const kernel k = find(load(0, gpu[0]), gpu[0], "stamp.kd");
    hsa_signal_t done = signal_of(1);
    open_queue(&q, gpu[0]);
    hsa_kernel_dispatch_packet_t packet = packet_of(&k, stamp_of(shared_words(), 1), 1, 64, done);
    spoil(_i, &packet);
    submit(&q, &packet);
    for (int i = 0; atomic_load(&q.failed) == 0 && i < 10000; i++)
        usleep(1000);
    ck_assert_uint_ne(atomic_load(&q.failed), 0);
    ck_assert_int_eq(p_hsa_signal_load_scacquire(done), 1);
    packet = packet_of(&k, stamp_of(shared_words(), 1), 1, 64, done);
    submit(&q, &packet); /* the queue takes no more */
    usleep(20000);
    ck_assert_int_eq(p_hsa_signal_load_scacquire(done), 1);
    ck_assert_hsa_ok(hsa_queue_destroy(q.hsa));
}
END_TEST

START_TEST(failure_without_callback)
{
    start(0, "1");
    queue        q;
    const kernel k = find(load(0, gpu[0]), gpu[0], "stamp.kd");
    ck_assert_hsa_ok(hsa_queue_create(gpu[0], 64, 0, NULL, NULL, UINT32_MAX, UINT32_MAX, &q.hsa));
    hsa_kernel_dispatch_packet_t packet = packet_of(&k, NULL, 1, 64, signal_of(1));
    submit(&q, &packet);
    sleep(100);
}
END_TEST

START_TEST(bad_queues)
{
    start(0, "1");
    hsa_queue_t *q;
    ck_assert_hsa(hsa_queue_create(gpu[0], 63, 0, NULL, NULL, 0, 0, &q), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    ck_assert_hsa(hsa_queue_create(gpu[0], 0, 0, NULL, NULL, 0, 0, &q), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    ck_assert_hsa(hsa_queue_create(cpu, 64, 0, NULL, NULL, 0, 0, &q), HSA_STATUS_ERROR_INVALID_QUEUE_CREATION);
    ck_assert_hsa(hsa_queue_create((hsa_agent_t){ 0 }, 64, 0, NULL, NULL, 0, 0, &q), HSA_STATUS_ERROR_INVALID_AGENT);
    ck_assert_hsa(hsa_queue_destroy(NULL), HSA_STATUS_ERROR_INVALID_QUEUE);
}
END_TEST

/* Code objects
 * ------------
 */
static hsa_status_t count_kernel(hsa_executable_t e, hsa_executable_symbol_t s, void *count)
{
    char     name[64] = { 0 };
    uint32_t length;
    (void)e;
    ck_assert_hsa_ok(hsa_executable_symbol_get_info(s, HSA_EXECUTABLE_SYMBOL_INFO_NAME_LENGTH, &length));
    ck_assert_hsa_ok(hsa_executable_symbol_get_info(s, HSA_EXECUTABLE_SYMBOL_INFO_NAME, name));
    ck_assert_uint_eq(strlen(name), length);
    ++*(int *)count;
    return HSA_STATUS_SUCCESS;
}

START_TEST(symbols)
{
    start(_i, "2");
    const hsa_executable_t  e = load(_i, gpu[1]);
    hsa_executable_symbol_t s, again;
    uint64_t                address;
    uint32_t                bytes, table[4];
    int                     count = 0;
    ck_assert_hsa_ok(hsa_executable_iterate_symbols(e, count_kernel, &count));
    ck_assert_int_eq(count, 6);
    ck_assert_hsa_ok(hsa_executable_get_symbol_by_name(e, "table", &gpu[1], &s));
    ck_assert_hsa_ok(hsa_executable_get_symbol_by_name(e, "table", NULL, &again));
    ck_assert_uint_eq(s.handle, again.handle);
    ck_assert_hsa_ok(hsa_executable_symbol_get_info(s, HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS, &address));
    ck_assert_hsa_ok(hsa_executable_symbol_get_info(s, HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_SIZE, &bytes));
    ck_assert_uint_eq(bytes, 16);
    ck_assert_hsa_ok(hsa_memory_copy(table, (void *)(uintptr_t)address, sizeof table));
    ck_assert_uint_eq(table[3], 7);
    ck_assert_hsa(hsa_executable_get_symbol_by_name(e, "stamp.kd", &gpu[0], &s), HSA_STATUS_ERROR_INVALID_SYMBOL_NAME);
    ck_assert_hsa(hsa_executable_get_symbol_by_name(e, "stump.kd", &gpu[1], &s), HSA_STATUS_ERROR_INVALID_SYMBOL_NAME);
    ck_assert_hsa_ok(hsa_executable_destroy(e));
}
END_TEST

START_TEST(bad_code)
{
    start(_i, "1");
    static char              zeros[4096];
    hsa_code_object_reader_t reader;
    hsa_code_object_t        object;
    hsa_executable_t         e;
    size_t                   size;
    const void              *bytes = read_code(arch_name[1 - _i], &size);
    ck_assert_hsa_ok(hsa_executable_create(1, 0, "", &e));
    keep(e.handle);
    ck_assert_hsa_ok(hsa_code_object_reader_create_from_memory(bytes, size, &reader));
    ck_assert_hsa(hsa_executable_load_agent_code_object(e, gpu[0], reader, "", NULL),
                  HSA_STATUS_ERROR_INVALID_CODE_OBJECT);
    ck_assert_hsa_ok(hsa_code_object_reader_destroy(reader));
    ck_assert_hsa_ok(hsa_code_object_reader_create_from_memory(zeros, sizeof zeros, &reader));
    ck_assert_hsa(hsa_executable_load_agent_code_object(e, gpu[0], reader, "", NULL),
                  HSA_STATUS_ERROR_INVALID_CODE_OBJECT);
    ck_assert_hsa(hsa_executable_load_agent_code_object(e, cpu, reader, "", NULL), HSA_STATUS_ERROR_INVALID_AGENT);
    ck_assert_hsa_ok(hsa_code_object_reader_destroy(reader));
    bytes = read_code(arch_name[_i], &size);
    ck_assert_hsa_ok(hsa_code_object_deserialize((void *)bytes, size, "", &object));
    ck_assert_hsa_ok(hsa_executable_load_code_object(e, gpu[0], object, ""));
    ck_assert_hsa_ok(hsa_code_object_destroy(object));
    ck_assert_uint_ne(find(e, gpu[0], "saxpy.kd").object, 0);
    ck_assert_hsa(hsa_code_object_reader_create_from_memory(NULL, 1, &reader), HSA_STATUS_ERROR_INVALID_ARGUMENT);
}
END_TEST

/* Memory
 * ------
 */
START_TEST(copies)
{
    start(0, "2");
    enum { N = 1 << 16 };
    static uint32_t host[N], back[N];
    uint32_t       *x = allocate(device[0], sizeof host), *y = allocate(device[1], sizeof host);
    hsa_signal_t    first = signal_of(1), second = signal_of(1), third = signal_of(1);
    void           *locked, *locked_back;
    for (uint32_t i = 0; i < N; i++)
        host[i] = i * 2654435761u;
    ck_assert_hsa(hsa_amd_memory_async_copy(x, gpu[0], host, cpu, sizeof host, 0, NULL, first),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT); /* not locked */
    ck_assert_hsa_ok(hsa_amd_memory_lock(host, sizeof host, NULL, 0, &locked));
    ck_assert_hsa_ok(hsa_amd_memory_lock(back, sizeof back, gpu, 2, &locked_back));
    ck_assert_hsa_ok(
        hsa_amd_memory_async_copy(locked_back, cpu, y, gpu[1], sizeof host, 1, &second, third)); /* waits for them */
    ck_assert_hsa_ok(hsa_amd_memory_async_copy(y, gpu[1], x, gpu[0], sizeof host, 1, &first, second));
    usleep(10000);
    ck_assert_int_eq(p_hsa_signal_load_scacquire(third), 1);
    ck_assert_hsa_ok(hsa_amd_memory_async_copy(x, gpu[0], locked, cpu, sizeof host, 0, NULL, first));
    wait_for_zero(third);
    ck_assert_mem_eq(back, host, sizeof host);
    ck_assert_hsa_ok(hsa_amd_memory_unlock(host));
    ck_assert_hsa_ok(hsa_amd_memory_unlock(back));
    ck_assert_hsa(hsa_amd_memory_unlock(back), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    ck_assert_hsa_ok(hsa_amd_memory_fill(x, 0xDEADBEEF, N));
    ck_assert_hsa(hsa_amd_memory_fill(x, 0, N + 1), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    ck_assert_hsa(hsa_memory_copy(back, x + 1, sizeof back), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    ck_assert_hsa_ok(hsa_memory_copy(back, x, sizeof back));
    ck_assert_uint_eq(back[N - 1], 0xDEADBEEF);
    ck_assert_hsa_ok(hsa_amd_memory_pool_free(x));
    ck_assert_hsa(hsa_amd_memory_pool_free(x), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    ck_assert_hsa(hsa_amd_memory_pool_free(y + 1), HSA_STATUS_ERROR_INVALID_ALLOCATION);
}
END_TEST

/* Ranges that overlap are locked as often as each is. */
START_TEST(overlapping_locks)
{
    start(0, "1");
    static char            host[3 * 4096];
    void                  *at;
    hsa_amd_pointer_info_t info = { .size = sizeof info };
    ck_assert_hsa_ok(hsa_amd_memory_lock(host, 4096, NULL, 0, &at));
    ck_assert_hsa_ok(hsa_amd_memory_lock(host + 8192, 4096, NULL, 0, &at));
    ck_assert_hsa_ok(hsa_amd_memory_lock(host + 2048, 8192, NULL, 0, &at));
    ck_assert_ptr_eq(at, host + 2048);
    ck_assert_hsa_ok(hsa_amd_pointer_info(host + 5000, &info, NULL, NULL, NULL));
    ck_assert_uint_eq(info.type, HSA_EXT_POINTER_TYPE_LOCKED);
    ck_assert_uint_eq(info.sizeInBytes, sizeof host);
    ck_assert_hsa_ok(hsa_amd_memory_unlock(host));
    ck_assert_hsa_ok(hsa_amd_memory_unlock(host + 8192));
    ck_assert_hsa_ok(hsa_amd_pointer_info(host + 5000, &info, NULL, NULL, NULL));
    ck_assert_uint_eq(info.type, HSA_EXT_POINTER_TYPE_LOCKED);
    ck_assert_hsa_ok(hsa_amd_memory_unlock(host + 2048));
    ck_assert_hsa_ok(hsa_amd_pointer_info(host + 5000, &info, NULL, NULL, NULL));
    ck_assert_uint_eq(info.type, HSA_EXT_POINTER_TYPE_UNKNOWN);
}
END_TEST

START_TEST(pointers)
{
    start(0, "3");
    char                  *x = allocate(device[1], 100);
    hsa_agent_t           *list = NULL;
    uint32_t               count = 0;
    hsa_amd_pointer_info_t info = { .size = sizeof info };
    ck_assert_hsa_ok(hsa_amd_agents_allow_access(1, &gpu[2], NULL, x));
    ck_assert_hsa_ok(hsa_amd_pointer_info(x + 99, &info, malloc, &count, &list));
    ck_assert_uint_eq(info.type, HSA_EXT_POINTER_TYPE_HSA);
    ck_assert_ptr_eq(info.agentBaseAddress, x);
    ck_assert_uint_eq(info.sizeInBytes, 100);
    ck_assert_uint_eq(info.agentOwner.handle, gpu[1].handle);
    ck_assert_uint_eq(count, 2);
    ck_assert_uint_eq(list[0].handle, gpu[1].handle);
    ck_assert_uint_eq(list[1].handle, gpu[2].handle);
    free(list);
    hsa_amd_pointer_info_t small = { .size = 8, .sizeInBytes = 4711 }; /* of an older caller */
    ck_assert_hsa_ok(hsa_amd_pointer_info(x, &small, NULL, NULL, NULL));
    ck_assert_uint_eq(small.type, HSA_EXT_POINTER_TYPE_HSA);
    ck_assert_uint_eq(small.sizeInBytes, 4711);
    ck_assert_hsa_ok(hsa_amd_pointer_info(&info, &small, NULL, NULL, NULL));
    ck_assert_uint_eq(small.type, HSA_EXT_POINTER_TYPE_UNKNOWN);
}
END_TEST

/* A kernel that uses memory of the host before it is allowed is found out. */
START_TEST(memory_not_allowed)
{
    char path[] = "/tmp/etalon-hsa.XXXXXX", text[4096];
    close(mkstemp(path));
    setenv("ETALON_SIM_REPORT", path, 1);
    start(_i, "1");
    queue        q;
    const kernel k = find(load(_i, gpu[0]), gpu[0], "stamp.kd");
    uint32_t    *p = allocate(fine, 8);
    hsa_signal_t done = signal_of(1);
    open_queue(&q, gpu[0]);
    const hsa_kernel_dispatch_packet_t packet = packet_of(&k, stamp_of(p, 1), 1, 32, done);
    submit(&q, &packet);
    wait_for_zero(done);
    FILE *file = fopen(path, "r");
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    unlink(path);
    ck_assert_msg(strstr(text, "bounds") != NULL, "%s", text);
    ck_assert_hsa_ok(hsa_queue_destroy(q.hsa));
}
END_TEST

/* Signals
 * -------
 */
static void *lower(void *to)
{
    usleep(30000);
    p_hsa_signal_subtract_screlease(*(hsa_signal_t *)to, 3);
    return NULL;
}

static double seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Whoever waits sleeps: "active" is a hint. */
START_TEST(waiting)
{
    start(0, "1");
    pthread_t    thread;
    hsa_signal_t s = signal_of(5);
    pthread_create(&thread, NULL, lower, &s);
    ck_assert_int_eq(p_hsa_signal_wait_scacquire(s, HSA_SIGNAL_CONDITION_LT, 5, UINT64_MAX, HSA_WAIT_STATE_ACTIVE), 2);
    pthread_join(thread, NULL);
    const double cpu_before = seconds(CLOCK_PROCESS_CPUTIME_ID), before = seconds(CLOCK_MONOTONIC);
    ck_assert_int_eq(p_hsa_signal_wait_scacquire(s, HSA_SIGNAL_CONDITION_EQ, 0, 300000000, HSA_WAIT_STATE_ACTIVE), 2);
    const double took = seconds(CLOCK_MONOTONIC) - before;
    ck_assert_msg(took >= 0.3, "%g", took);
    ck_assert_msg(seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_before < 0.1, "it spins");
    ck_assert_int_eq(p_hsa_signal_wait_scacquire(s, HSA_SIGNAL_CONDITION_GTE, 2, 0, HSA_WAIT_STATE_BLOCKED), 2);
    ck_assert_int_eq(p_hsa_signal_wait_scacquire(s, HSA_SIGNAL_CONDITION_NE, 2, 0, HSA_WAIT_STATE_BLOCKED), 2);
}
END_TEST

typedef struct notes {
    atomic_int   calls, last;
    hsa_signal_t signal;
} notes;

/* Wants to be called again until the second time. */
static bool note(int64_t value, void *to)
{
    notes *n = to;
    atomic_store(&n->last, (int)value);
    p_hsa_signal_store_relaxed(n->signal, 9);
    return atomic_fetch_add(&n->calls, 1) == 0;
}

START_TEST(handlers)
{
    start(0, "1");
    notes n = { .signal = signal_of(9) };
    ck_assert_hsa_ok(hsa_amd_signal_async_handler(n.signal, HSA_SIGNAL_CONDITION_LT, 5, note, &n));
    usleep(10000);
    ck_assert_int_eq(atomic_load(&n.calls), 0);
    for (int i = 1; i <= 3; i++) {
        p_hsa_signal_store_screlease(n.signal, i);
        for (int k = 0; atomic_load(&n.calls) < (i < 3 ? i : 2) && k < 5000; k++)
            usleep(1000);
        usleep(2000);
    }
    ck_assert_int_eq(atomic_load(&n.calls), 2);
    ck_assert_int_eq(atomic_load(&n.last), 2);
}
END_TEST

static void fill(TCase *tcase)
{
    tcase_add_loop_test(tcase, agents, 0, 2);
    tcase_add_loop_test(tcase, bad_environment, 0, 2);
    tcase_add_loop_test(tcase, packets_in_order, 0, 2);
    tcase_add_loop_test(tcase, late_header, 0, 2);
    tcase_add_loop_test(tcase, barriers, 0, 2);
    tcase_add_loop_test(tcase, bad_packets, 0, WAYS);
    tcase_add_test_raise_signal(tcase, failure_without_callback, SIGABRT);
    tcase_add_test(tcase, bad_queues);
    tcase_add_loop_test(tcase, symbols, 0, 2);
    tcase_add_loop_test(tcase, bad_code, 0, 2);
    tcase_add_test(tcase, copies);
    tcase_add_test(tcase, overlapping_locks);
    tcase_add_test(tcase, pointers);
    tcase_add_loop_test(tcase, memory_not_allowed, 0, 2);
    tcase_add_test(tcase, waiting);
    tcase_add_test(tcase, handlers);
}

int main(void)
{
    return testing_main("sim_hsa", fill);
}
