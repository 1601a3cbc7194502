/* The kernels for GPUs that this library carries: one object for each kernel and architecture, made by hip/local.mk and
 * asm/local.mk. */
#ifndef ETALON_CODE_OBJECTS_H
#define ETALON_CODE_OBJECTS_H

#include <stddef.h>

typedef struct code_object {
    const char          *stem;        /* it defines the kernel etalon_<stem> */
    const char          *arch;        /* "gfx950", "sm_90" */
    const unsigned char *bytes, *end; /* ELF; for NVIDIA PTX, with a zero behind it */
} code_object;

/* What a kernel wants of a compute unit. */
typedef struct code_object_use {
    unsigned registers;     /* VGPRs of a work-item, those of accumulation included */
    unsigned lds_bytes;     /* static */
    unsigned scratch_bytes; /* of a work-item: spills */
} code_object_use;

/* Ends with a stem of NULL. */
extern const code_object code_objects[];

/* NULL: there is none. */
const code_object *code_object_find(const char *stem, const char *arch);

static inline size_t code_object_bytes(const code_object *object)
{
    return (size_t)(object->end - object->bytes);
}

/* False where the object does not tell: PTX. */
int code_object_uses(const code_object *object, code_object_use *use);

#endif
