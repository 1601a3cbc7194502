/* Types that every operation shares: status, data types, tensor views, context, workspace. */
#ifndef ETALON_TYPES_H
#define ETALON_TYPES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define ETALON_API __attribute__((visibility("default")))
#else
#define ETALON_API
#endif

/* Status
 * ------
 * Functions return 0 or a negative class. The classes:
 *
 *   ETALON_ERROR_INVALID_ARGUMENT     wrong on any machine: a line of the contract does not hold
 *   ETALON_ERROR_UNSUPPORTED          right, but no kernel here serves it
 *   ETALON_ERROR_WORKSPACE_TOO_SMALL  fewer bytes, or less aligned, than etalon_<op>_workspace_bytes said
 *   ETALON_ERROR_DEVICE               a device runtime failed; its text is in etalon_last_error()
 *   ETALON_ERROR_OUT_OF_MEMORY        etalon_context_create could not allocate
 *
 * On error no output element has been written, except after ETALON_ERROR_DEVICE, when outputs are undefined.
 */
typedef enum etalon_status {
    ETALON_OK = 0,
    ETALON_ERROR_INVALID_ARGUMENT = -1,
    ETALON_ERROR_UNSUPPORTED = -2,
    ETALON_ERROR_WORKSPACE_TOO_SMALL = -3,
    ETALON_ERROR_DEVICE = -4,
    ETALON_ERROR_OUT_OF_MEMORY = -5
} etalon_status;

/** Static text for a status; any integer is allowed. */
ETALON_API const char *etalon_status_string(int status);

/**
 * The sentence about the latest failure on this thread: the argument, its value and the rule it breaks.
 * Meaningful only after a function has failed on this thread; success does not clear it. Never NULL.
 */
ETALON_API const char *etalon_last_error(void);

/** "major.minor.micro" of the library that is running; compare with ETALON_VERSION of the headers. */
ETALON_API const char *etalon_version(void);

/* Data types
 * ----------
 * Bit layouts, largest finite value, and what has no number:
 *
 *   E4M3FN    1-4-3, bias 7,  448,  0x7F and 0xFF are NaN, no infinity          [OFP8]
 *   E4M3FNUZ  1-4-3, bias 8,  240,  0x80 is NaN, no infinity, no negative zero
 *   E5M2      1-5-2, bias 15, 57344, IEEE-like infinity and NaN                  [OFP8]
 *   E8M0      2^(x - 127), 0xFF is NaN                                           [OCP-MX]
 *   BF16      the upper half of an IEEE binary32
 */
typedef enum etalon_dtype {
    ETALON_DTYPE_NONE = 0,
    ETALON_F64,
    ETALON_F32,
    ETALON_F16,
    ETALON_BF16,
    ETALON_E4M3FN,
    ETALON_E4M3FNUZ,
    ETALON_E5M2,
    ETALON_E8M0,
    ETALON_I64,
    ETALON_I32,
    ETALON_U8
} etalon_dtype;

/** Name of a data type ("e4m3fn"), or "none". */
ETALON_API const char *etalon_dtype_name(etalon_dtype dtype);

/** Bytes of one element, or 0. */
ETALON_API size_t etalon_dtype_bytes(etalon_dtype dtype);

/* Tensor views
 * ------------
 * A view borrows memory. Extents and strides have DLPack's meaning and are counted in elements; a stride may be any
 * value, 0 (broadcast) included; in an output each stride steps over all that the smaller ones reach, so that no
 * element stands twice. data is aligned to its dtype. data == NULL marks an absent optional tensor; a tensor without
 * elements may have any other data pointer.
 */
#define ETALON_MAX_RANK 5
#define ETALON_MAX_HEAD_DIM 576 /* MLA decode, 512 + 64 */
#define ETALON_HOST (-1)        /* device number of host memory; OpenMP's omp_initial_device */

typedef struct etalon_tensor {
    void        *data; /* address of element [0, ..., 0] */
    etalon_dtype dtype;
    int32_t      device; /* ETALON_HOST or an OpenMP device number */
    int32_t      rank;
    int64_t      shape[ETALON_MAX_RANK];  /* elements */
    int64_t      stride[ETALON_MAX_RANK]; /* elements, not bytes */
} etalon_tensor;

/**
 * A contiguous (row-major) host tensor over data. rank in [0, ETALON_MAX_RANK]; shape may be NULL for rank 0.
 * Strides that do not fit 64 bits are left at 0; every operation refuses such a view.
 */
ETALON_API etalon_tensor etalon_tensor_dense(void *data, etalon_dtype dtype, int32_t rank, const int64_t *shape);

/* Workspace
 * ---------
 * Scratch memory of the caller. etalon_<op>_workspace_bytes() tells how much the kernel that will serve these
 * arguments needs, a multiple of ETALON_WORKSPACE_ALIGN, 0 included; data is aligned to that. The content means nothing before or after.
 *
 * For tensors on a device it is memory of that device, and the call may be put on a stream of the caller's own: a
 * hipStream_t or a CUstream of that device, or ETALON_STREAM_DEFAULT, the default stream of the runtime, for which
 * callers of HIP and CUDA themselves write 0. Then the call returns without waiting and is ordered like any kernel of the
 * stream; from the second call on, nothing is allocated, loaded or waited for, so that a graph can capture it. Without a
 * stream a call is done when it returns, and expects that its inputs are, too. Tensors on the host take no stream.
 */
#define ETALON_WORKSPACE_ALIGN 256
#define ETALON_STREAM_DEFAULT ((void *)1)

typedef struct etalon_workspace {
    void  *data;
    size_t bytes;
    void  *stream; /* NULL: none */
} etalon_workspace;

/* Context
 * -------
 * What this process may use. Immutable after creation, shared freely between threads. Results do not depend on it
 * beyond the choice of kernel: any number of threads gives the same bits.
 *
 * A context may have a device: then rows for that device serve, and host tensors are copied there and back, in the way
 * of OpenMP's target data: what the caller has mapped already (target enter data) is used where it lies and not copied;
 * what is mapped in part is refused. Tensors that lie on the device are used in place, and their device is the context's;
 * an address that the device's runtime does not know is refused, unless the device reaches all memory of the process.
 * At creation each of these rows has to give known answers on that device. One that fails serves only calls that name it;
 * etalon_<op>_explain() says why.
 *
 * A context has the features of this CPU that kernels ask for. The environment variable ETALON_DISABLE, read at
 * creation, takes some away: "avx512,avx2" leaves the rows that need neither; those of AMX need AVX-512, too. It never
 * adds one.
 *
 * ETALON_FMHA_VARLEN_WAVES, read at creation, too, is 1, 2 or 4: waves of a workgroup of fmha_varlen's kernels for gfx1250
 * alone, instead of as many as suit the problem. It changes no bit of a result. Empty, it counts as not given.
 */
typedef struct etalon_context etalon_context;

typedef struct etalon_context_options {
    size_t  size;    /* sizeof(etalon_context_options), set by ETALON_CONTEXT_OPTIONS_INIT */
    int32_t threads; /* threads of a host kernel; 0: as many as OpenMP would take; ignored without OpenMP */
    int32_t device;  /* OpenMP's number of a GPU, or ETALON_HOST: none */
} etalon_context_options;

#define ETALON_CONTEXT_OPTIONS_INIT { sizeof(etalon_context_options), 0, ETALON_HOST }

/**
 * @param options  NULL for the defaults
 * @retval ETALON_ERROR_INVALID_ARGUMENT  ctx is NULL, or threads is negative or above 1024, device is below ETALON_HOST,
 *                                        or ETALON_DISABLE holds a name that is not amx, avx2, avx512, neon, offload,
 *                                        gfx950 or gfx1250, or ETALON_FMHA_VARLEN_WAVES is neither 1, 2, 4 nor empty
 * @retval ETALON_ERROR_DEVICE            there is no such device, or its runtime failed
 * @retval ETALON_ERROR_OUT_OF_MEMORY
 */
ETALON_API etalon_status etalon_context_create(const etalon_context_options *options, etalon_context **ctx);

/** NULL is allowed. */
ETALON_API void etalon_context_destroy(etalon_context *ctx);

/* Kernels
 * -------
 * Every operation has one table of kernels, best first. A call is served by the first row that this context can run
 * and that does not refuse the problem. `const char *kernel` in the arguments names a row instead; a named row is
 * used or the call fails, and rows marked "by name only" are reached in no other way.
 */
typedef struct etalon_kernel_info {
    const char *op;        /* "mqa_logits" */
    const char *name;      /* "mqa_logits_ref" */
    const char *needs;     /* what it needs, in words; "" if nothing */
    int         available; /* 1 if ctx has that and select may choose the row */
} etalon_kernel_info;

/**
 * Rows of all tables, in table order.
 * @retval ETALON_ERROR_INVALID_ARGUMENT  index is not in [0, number of rows), or ctx or info is NULL
 */
ETALON_API etalon_status etalon_kernel_get(const etalon_context *ctx, int index, etalon_kernel_info *info);

typedef struct etalon_code_object_info {
    const char *kernel;        /* "mqa_logits_omp" */
    const char *arch;          /* "gfx950"; "sm_90", for which the object is PTX */
    size_t      bytes;         /* of the object */
    int         registers;     /* VGPRs of a work-item; -1 where the object does not tell, as PTX */
    int         lds_bytes;     /* of a workgroup, static; or -1 */
    int         scratch_bytes; /* of a work-item; or -1 */
} etalon_code_object_info;

/**
 * The kernels for GPUs that the library carries, one for each kernel and architecture.
 * @retval ETALON_ERROR_INVALID_ARGUMENT  index is not in [0, number of objects), or info is NULL
 */
ETALON_API etalon_status etalon_code_object_get(int index, etalon_code_object_info *info);

/** Called once a row, in table order; reason is NULL for the row that serves the call. */
typedef void etalon_explain_fn(void *user, const char *kernel, const char *reason);

#ifdef __cplusplus
}
#endif

#endif
