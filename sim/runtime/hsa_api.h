/* The part of the HSA runtime's interface that LLVM 22's OpenMP plugin for AMD GPUs looks up: 48 functions, and the
 * types and numbers that they speak in. Declared here, so that no HSA package is needed to build. Layouts and values
 * are those of the HSA Runtime Programmer's Reference 1.2 and of AMD's extension; what the stand-in lacks is left out.
 */
#ifndef ETALON_HSA_API_H
#define ETALON_HSA_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint32_t hsa_status_t;

/* Status codes, and what hsa_status_string says. */
#define HSA_STATUSES(S)                                                                  \
    S(HSA_STATUS_SUCCESS, 0, "success")                                                  \
    S(HSA_STATUS_INFO_BREAK, 1, "a callback ended the iteration")                        \
    S(HSA_STATUS_ERROR_INVALID_MEMORY_POOL, 40, "no such memory pool")                   \
    S(HSA_STATUS_ERROR, 0x1000, "an error, and a sentence on standard error")            \
    S(HSA_STATUS_ERROR_INVALID_ARGUMENT, 0x1001, "an argument is not valid")             \
    S(HSA_STATUS_ERROR_INVALID_QUEUE_CREATION, 0x1002, "no queue of that kind")          \
    S(HSA_STATUS_ERROR_INVALID_ALLOCATION, 0x1003, "no such allocation")                 \
    S(HSA_STATUS_ERROR_INVALID_AGENT, 0x1004, "no such agent")                           \
    S(HSA_STATUS_ERROR_INVALID_SIGNAL, 0x1006, "no such signal")                         \
    S(HSA_STATUS_ERROR_INVALID_QUEUE, 0x1007, "no such queue")                           \
    S(HSA_STATUS_ERROR_OUT_OF_RESOURCES, 0x1008, "out of memory or of another resource") \
    S(HSA_STATUS_ERROR_INVALID_PACKET_FORMAT, 0x1009, "a packet that is not understood") \
    S(HSA_STATUS_ERROR_NOT_INITIALIZED, 0x100B, "hsa_init was not called")               \
    S(HSA_STATUS_ERROR_INVALID_ISA, 0x100F, "no such ISA")                               \
    S(HSA_STATUS_ERROR_INVALID_CODE_OBJECT, 0x1010, "a code object that cannot be used") \
    S(HSA_STATUS_ERROR_INVALID_EXECUTABLE, 0x1011, "no such executable")                 \
    S(HSA_STATUS_ERROR_FROZEN_EXECUTABLE, 0x1012, "the executable is frozen")            \
    S(HSA_STATUS_ERROR_INVALID_SYMBOL_NAME, 0x1013, "no symbol of that name")            \
    S(HSA_STATUS_ERROR_EXCEPTION, 0x1016, "a kernel failed")                             \
    S(HSA_STATUS_ERROR_INVALID_EXECUTABLE_SYMBOL, 0x1019, "no such executable symbol")   \
    S(HSA_STATUS_ERROR_INVALID_CODE_OBJECT_READER, 0x1021, "no such code object reader")

enum {
#define S(name, value, text) name = value,
    HSA_STATUSES(S)
#undef S
};

/* Handles */
typedef struct hsa_agent_s {
    uint64_t handle;
} hsa_agent_t;
typedef struct hsa_isa_s {
    uint64_t handle;
} hsa_isa_t;
typedef struct hsa_signal_s {
    uint64_t handle;
} hsa_signal_t;
typedef struct hsa_executable_s {
    uint64_t handle;
} hsa_executable_t;
typedef struct hsa_executable_symbol_s {
    uint64_t handle;
} hsa_executable_symbol_t;
typedef struct hsa_code_object_s {
    uint64_t handle;
} hsa_code_object_t;
typedef struct hsa_code_object_reader_s {
    uint64_t handle;
} hsa_code_object_reader_t;
typedef struct hsa_loaded_code_object_s {
    uint64_t handle;
} hsa_loaded_code_object_t;
typedef struct hsa_amd_memory_pool_s {
    uint64_t handle;
} hsa_amd_memory_pool_t;

typedef int64_t hsa_signal_value_t;

typedef struct hsa_dim3_s {
    uint32_t x, y, z;
} hsa_dim3_t;

/* hsa_system_get_info */
enum {
    HSA_SYSTEM_INFO_VERSION_MAJOR = 0,       /* u16 */
    HSA_SYSTEM_INFO_VERSION_MINOR = 1,       /* u16 */
    HSA_SYSTEM_INFO_TIMESTAMP = 2,           /* u64 */
    HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY = 3, /* u64, Hz */
    HSA_SYSTEM_INFO_SIGNAL_MAX_WAIT = 4,     /* u64 */
    HSA_SYSTEM_INFO_ENDIANNESS = 5,          /* u32; 0 little */
    HSA_SYSTEM_INFO_MACHINE_MODEL = 6,       /* u32; 1 large */
    HSA_SYSTEM_INFO_EXTENSIONS = 7,          /* 128 bytes of bits */
    HSA_AMD_SYSTEM_INFO_SVM_SUPPORTED = 0x201,
    HSA_AMD_SYSTEM_INFO_SVM_ACCESSIBLE_BY_DEFAULT = 0x202,
    HSA_AMD_SYSTEM_INFO_XNACK_ENABLED = 0x206
};

/* hsa_agent_get_info; u32 where nothing else is said */
enum {
    HSA_AGENT_INFO_NAME = 0,        /* 64 characters */
    HSA_AGENT_INFO_VENDOR_NAME = 1, /* 64 characters */
    HSA_AGENT_INFO_FEATURE = 2,     /* bit 0: kernel dispatch */
    HSA_AGENT_INFO_MACHINE_MODEL = 3,
    HSA_AGENT_INFO_PROFILE = 4,                     /* 0 base, 1 full */
    HSA_AGENT_INFO_DEFAULT_FLOAT_ROUNDING_MODE = 5, /* 2 to nearest */
    HSA_AGENT_INFO_WAVEFRONT_SIZE = 6,
    HSA_AGENT_INFO_WORKGROUP_MAX_DIM = 7, /* three u16 */
    HSA_AGENT_INFO_WORKGROUP_MAX_SIZE = 8,
    HSA_AGENT_INFO_GRID_MAX_DIM = 9, /* hsa_dim3_t */
    HSA_AGENT_INFO_GRID_MAX_SIZE = 10,
    HSA_AGENT_INFO_FBARRIER_MAX_SIZE = 11,
    HSA_AGENT_INFO_QUEUES_MAX = 12,
    HSA_AGENT_INFO_QUEUE_MIN_SIZE = 13,
    HSA_AGENT_INFO_QUEUE_MAX_SIZE = 14,
    HSA_AGENT_INFO_QUEUE_TYPE = 15,
    HSA_AGENT_INFO_NODE = 16,
    HSA_AGENT_INFO_DEVICE = 17,     /* 0 CPU, 1 GPU */
    HSA_AGENT_INFO_CACHE_SIZE = 18, /* four u32 */
    HSA_AGENT_INFO_ISA = 19,        /* hsa_isa_t */
    HSA_AGENT_INFO_EXTENSIONS = 20,
    HSA_AGENT_INFO_VERSION_MAJOR = 21,      /* u16 */
    HSA_AGENT_INFO_VERSION_MINOR = 22,      /* u16 */
    HSA_AGENT_INFO_FAST_F16_OPERATION = 24, /* bool */
    HSA_AMD_AGENT_INFO_CHIP_ID = 0xA000,
    HSA_AMD_AGENT_INFO_CACHELINE_SIZE = 0xA001,
    HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT = 0xA002,
    HSA_AMD_AGENT_INFO_MAX_CLOCK_FREQUENCY = 0xA003, /* MHz */
    HSA_AMD_AGENT_INFO_DRIVER_NODE_ID = 0xA004,
    HSA_AMD_AGENT_INFO_MAX_ADDRESS_WATCH_POINTS = 0xA005,
    HSA_AMD_AGENT_INFO_BDFID = 0xA006, /* PCI bus << 8 | device << 3 | function */
    HSA_AMD_AGENT_INFO_MEMORY_WIDTH = 0xA007,
    HSA_AMD_AGENT_INFO_MEMORY_MAX_FREQUENCY = 0xA008,
    HSA_AMD_AGENT_INFO_PRODUCT_NAME = 0xA009, /* 64 characters */
    HSA_AMD_AGENT_INFO_MAX_WAVES_PER_CU = 0xA00A,
    HSA_AMD_AGENT_INFO_NUM_SIMDS_PER_CU = 0xA00B,
    HSA_AMD_AGENT_INFO_NUM_SHADER_ENGINES = 0xA00C,
    HSA_AMD_AGENT_INFO_NUM_SHADER_ARRAYS_PER_SE = 0xA00D,
    HSA_AMD_AGENT_INFO_DOMAIN = 0xA00F,             /* of PCI */
    HSA_AMD_AGENT_INFO_COOPERATIVE_QUEUES = 0xA010, /* bool */
    HSA_AMD_AGENT_INFO_UUID = 0xA011,               /* 21 characters */
    HSA_AMD_AGENT_INFO_ASIC_REVISION = 0xA012,
    HSA_AMD_AGENT_INFO_SVM_DIRECT_HOST_ACCESS = 0xA013, /* bool */
    HSA_AMD_AGENT_INFO_COOPERATIVE_COMPUTE_UNIT_COUNT = 0xA014,
    HSA_AMD_AGENT_INFO_MEMORY_AVAIL = 0xA015,       /* u64 */
    HSA_AMD_AGENT_INFO_TIMESTAMP_FREQUENCY = 0xA016 /* u64, Hz */
};

enum { HSA_DEVICE_TYPE_CPU = 0, HSA_DEVICE_TYPE_GPU = 1 };
enum { HSA_ISA_INFO_NAME_LENGTH = 0, HSA_ISA_INFO_NAME = 1 };

/* Memory pools */
enum {
    HSA_AMD_MEMORY_POOL_INFO_SEGMENT = 0,                 /* u32 */
    HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS = 1,            /* u32 */
    HSA_AMD_MEMORY_POOL_INFO_SIZE = 2,                    /* size_t */
    HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED = 5,   /* bool */
    HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_GRANULE = 6,   /* size_t */
    HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALIGNMENT = 7, /* size_t */
    HSA_AMD_MEMORY_POOL_INFO_ACCESSIBLE_BY_ALL = 15,      /* bool */
    HSA_AMD_MEMORY_POOL_INFO_ALLOC_MAX_SIZE = 16          /* size_t */
};
enum { HSA_AMD_SEGMENT_GLOBAL = 0, HSA_AMD_SEGMENT_GROUP = 3 };
enum {
    HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT = 1,
    HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED = 2,
    HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED = 4
};
enum { HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS = 0, HSA_AMD_AGENT_MEMORY_POOL_INFO_NUM_LINK_HOPS = 1 };
enum {
    HSA_AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED = 0,
    HSA_AMD_MEMORY_POOL_ACCESS_ALLOWED_BY_DEFAULT = 1,
    HSA_AMD_MEMORY_POOL_ACCESS_DISALLOWED_BY_DEFAULT = 2
};
enum { HSA_EXT_POINTER_TYPE_UNKNOWN = 0, HSA_EXT_POINTER_TYPE_HSA = 1, HSA_EXT_POINTER_TYPE_LOCKED = 2 };

typedef struct hsa_amd_pointer_info_s {
    uint32_t    size; /* in: of the caller's struct; newer ones have more behind this */
    uint32_t    type;
    void       *agentBaseAddress, *hostBaseAddress;
    size_t      sizeInBytes;
    void       *userData;
    hsa_agent_t agentOwner;
    uint32_t    global_flags;
} hsa_amd_pointer_info_t;

/* Executables */
enum {
    HSA_EXECUTABLE_SYMBOL_INFO_TYPE = 0,        /* u32 */
    HSA_EXECUTABLE_SYMBOL_INFO_NAME_LENGTH = 1, /* u32, without the zero */
    HSA_EXECUTABLE_SYMBOL_INFO_NAME = 2,        /* characters without a zero */
    HSA_EXECUTABLE_SYMBOL_INFO_LINKAGE = 5,
    HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_SIZE = 9,                     /* u32 */
    HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE = 11,      /* u32 */
    HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_ALIGNMENT = 12, /* u32 */
    HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE = 13,        /* u32 */
    HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE = 14,      /* u32 */
    HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_DYNAMIC_CALLSTACK = 15,         /* bool */
    HSA_EXECUTABLE_SYMBOL_INFO_IS_DEFINITION = 17,                    /* bool */
    HSA_EXECUTABLE_SYMBOL_INFO_AGENT = 20,                            /* hsa_agent_t */
    HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS = 21,                 /* u64 */
    HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT = 22                     /* u64 */
};
enum { HSA_SYMBOL_KIND_VARIABLE = 0, HSA_SYMBOL_KIND_KERNEL = 1 };

/* Signals, queues, packets */
enum {
    HSA_SIGNAL_CONDITION_EQ = 0,
    HSA_SIGNAL_CONDITION_NE = 1,
    HSA_SIGNAL_CONDITION_LT = 2,
    HSA_SIGNAL_CONDITION_GTE = 3
};
enum { HSA_WAIT_STATE_BLOCKED = 0, HSA_WAIT_STATE_ACTIVE = 1 };
enum {
    HSA_PACKET_TYPE_VENDOR_SPECIFIC = 0,
    HSA_PACKET_TYPE_INVALID = 1,
    HSA_PACKET_TYPE_KERNEL_DISPATCH = 2,
    HSA_PACKET_TYPE_BARRIER_AND = 3,
    HSA_PACKET_TYPE_AGENT_DISPATCH = 4,
    HSA_PACKET_TYPE_BARRIER_OR = 5
};

typedef struct hsa_queue_s {
    uint32_t     type, features;
    void        *base_address;
    hsa_signal_t doorbell_signal;
    uint32_t     size, reserved1;
    uint64_t     id;
} hsa_queue_t;

typedef struct hsa_kernel_dispatch_packet_s {
    uint16_t     header, setup; /* header: type in bits 7 to 0; setup: dimensions in bits 1 to 0 */
    uint16_t     workgroup_size_x, workgroup_size_y, workgroup_size_z, reserved0;
    uint32_t     grid_size_x, grid_size_y, grid_size_z; /* work-items */
    uint32_t     private_segment_size, group_segment_size;
    uint64_t     kernel_object;
    void        *kernarg_address;
    uint64_t     reserved2;
    hsa_signal_t completion_signal;
} hsa_kernel_dispatch_packet_t;

typedef struct hsa_barrier_packet_s { /* of both kinds */
    uint16_t     header, reserved0;
    uint32_t     reserved1;
    hsa_signal_t dep_signal[5];
    uint64_t     reserved2;
    hsa_signal_t completion_signal;
} hsa_barrier_packet_t;

_Static_assert(sizeof(hsa_queue_t) == 40 && offsetof(hsa_queue_t, doorbell_signal) == 16, "as other code compiled it");
_Static_assert(sizeof(hsa_kernel_dispatch_packet_t) == 64 && sizeof(hsa_barrier_packet_t) == 64,
               "AQL packets are 64 bytes");
_Static_assert(offsetof(hsa_kernel_dispatch_packet_t, kernel_object) == 32, "as hardware reads it");
_Static_assert(offsetof(hsa_amd_pointer_info_t, global_flags) == 48, "as other code compiled it");

typedef hsa_status_t hsa_agent_callback(hsa_agent_t, void *);
typedef hsa_status_t hsa_isa_callback(hsa_isa_t, void *);
typedef hsa_status_t hsa_pool_callback(hsa_amd_memory_pool_t, void *);
typedef hsa_status_t hsa_symbol_callback(hsa_executable_t, hsa_executable_symbol_t, void *);
typedef void hsa_queue_callback(hsa_status_t, hsa_queue_t *, void *);
typedef bool hsa_amd_signal_handler(hsa_signal_value_t, void *);
typedef hsa_status_t hsa_amd_system_event_callback(const void *, void *);

#pragma GCC visibility push(default)

hsa_status_t hsa_init(void);
hsa_status_t hsa_shut_down(void);
hsa_status_t hsa_status_string(hsa_status_t status, const char **text);
hsa_status_t hsa_system_get_info(uint32_t attribute, void *value);

hsa_status_t hsa_iterate_agents(hsa_agent_callback *callback, void *data);
hsa_status_t hsa_agent_get_info(hsa_agent_t agent, uint32_t attribute, void *value);
hsa_status_t hsa_agent_iterate_isas(hsa_agent_t agent, hsa_isa_callback *callback, void *data);
hsa_status_t hsa_isa_get_info_alt(hsa_isa_t isa, uint32_t attribute, void *value);

hsa_status_t hsa_amd_agent_iterate_memory_pools(hsa_agent_t agent, hsa_pool_callback *callback, void *data);
hsa_status_t hsa_amd_memory_pool_get_info(hsa_amd_memory_pool_t pool, uint32_t attribute, void *value);
hsa_status_t hsa_amd_agent_memory_pool_get_info(hsa_agent_t agent, hsa_amd_memory_pool_t pool, uint32_t attribute,
                                                void *value);
hsa_status_t hsa_amd_memory_pool_allocate(hsa_amd_memory_pool_t pool, size_t bytes, uint32_t flags, void **at);
hsa_status_t hsa_amd_memory_pool_free(void *at);
hsa_status_t hsa_amd_agents_allow_access(uint32_t count, const hsa_agent_t *agents, const uint32_t *flags,
                                         const void *at);
hsa_status_t hsa_amd_memory_lock(void *host, size_t bytes, hsa_agent_t *agents, int count, void **at);
hsa_status_t hsa_amd_memory_unlock(void *host);
hsa_status_t hsa_amd_memory_fill(void *at, uint32_t value, size_t count);
hsa_status_t hsa_memory_copy(void *to, const void *from, size_t bytes);
hsa_status_t hsa_amd_memory_async_copy(void *to, hsa_agent_t to_agent, const void *from, hsa_agent_t from_agent,
                                       size_t bytes, uint32_t count, const hsa_signal_t *after, hsa_signal_t done);
hsa_status_t hsa_amd_pointer_info(const void *at, hsa_amd_pointer_info_t *info, void *(*allocate)(size_t),
                                  uint32_t *count, hsa_agent_t **accessible);

hsa_status_t hsa_signal_create(hsa_signal_value_t value, uint32_t count, const hsa_agent_t *consumers,
                               hsa_signal_t *to);
hsa_status_t hsa_amd_signal_create(hsa_signal_value_t value, uint32_t count, const hsa_agent_t *consumers,
                                   uint64_t flags, hsa_signal_t *to);
hsa_status_t hsa_signal_destroy(hsa_signal_t signal);
hsa_signal_value_t hsa_signal_load_scacquire(hsa_signal_t signal);
void hsa_signal_store_relaxed(hsa_signal_t signal, hsa_signal_value_t value);
void hsa_signal_store_screlease(hsa_signal_t signal, hsa_signal_value_t value);
void hsa_signal_subtract_screlease(hsa_signal_t signal, hsa_signal_value_t value);
hsa_signal_value_t hsa_signal_wait_scacquire(hsa_signal_t signal, uint32_t condition, hsa_signal_value_t compare,
                                             uint64_t timeout, uint32_t how);
hsa_status_t hsa_amd_signal_async_handler(hsa_signal_t signal, uint32_t condition, hsa_signal_value_t compare,
                                          hsa_amd_signal_handler *handler, void *data);
hsa_status_t hsa_amd_register_system_event_handler(hsa_amd_system_event_callback *callback, void *data);

hsa_status_t hsa_code_object_reader_create_from_memory(const void *bytes, size_t size, hsa_code_object_reader_t *to);
hsa_status_t hsa_code_object_reader_destroy(hsa_code_object_reader_t reader);
hsa_status_t hsa_code_object_deserialize(void *bytes, size_t size, const char *options, hsa_code_object_t *to);
hsa_status_t hsa_code_object_destroy(hsa_code_object_t object);
hsa_status_t hsa_executable_create(uint32_t profile, uint32_t state, const char *options, hsa_executable_t *to);
hsa_status_t hsa_executable_create_alt(uint32_t profile, uint32_t rounding, const char *options, hsa_executable_t *to);
hsa_status_t hsa_executable_destroy(hsa_executable_t executable);
hsa_status_t hsa_executable_load_agent_code_object(hsa_executable_t executable, hsa_agent_t agent,
                                                   hsa_code_object_reader_t reader, const char *options,
                                                   hsa_loaded_code_object_t *loaded);
hsa_status_t hsa_executable_load_code_object(hsa_executable_t executable, hsa_agent_t agent, hsa_code_object_t object,
                                             const char *options);
hsa_status_t hsa_executable_freeze(hsa_executable_t executable, const char *options);
hsa_status_t hsa_executable_validate(hsa_executable_t executable, uint32_t *result);
hsa_status_t hsa_executable_get_symbol_by_name(hsa_executable_t executable, const char *name, const hsa_agent_t *agent,
                                               hsa_executable_symbol_t *to);
hsa_status_t hsa_executable_iterate_symbols(hsa_executable_t executable, hsa_symbol_callback *callback, void *data);
hsa_status_t hsa_executable_symbol_get_info(hsa_executable_symbol_t symbol, uint32_t attribute, void *value);

hsa_status_t hsa_queue_create(hsa_agent_t agent, uint32_t size, uint32_t type, hsa_queue_callback *callback, void *data,
                              uint32_t private_bytes, uint32_t group_bytes, hsa_queue_t **to);
hsa_status_t hsa_queue_destroy(hsa_queue_t *queue);
uint64_t hsa_queue_load_read_index_scacquire(const hsa_queue_t *queue);
uint64_t hsa_queue_add_write_index_relaxed(const hsa_queue_t *queue, uint64_t by);

#pragma GCC visibility pop

#endif
