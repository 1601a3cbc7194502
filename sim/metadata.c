/* A reader of msgpack (github.com/msgpack/msgpack/blob/master/spec.md), and of the maps in it that say what a kernel is
 * (LLVM's AMDGPUUsage, "Code Object V5 Metadata"). Sizes in the data are claims: memory is asked for what is there. */
#include "metadata.h"

#include "machine.h"

#include <stdlib.h>
#include <string.h>

/* msgpack
 * -------
 */
typedef struct packed {
    const uint8_t *at, *end;
} packed;

typedef enum packed_kind { NIL, BOOLEAN, INTEGER, REAL, STRING, BINARY, ARRAY, MAP, EXTENSION } packed_kind;

typedef struct item {
    packed_kind    kind;
    uint64_t       number; /* INTEGER (two's complement), BOOLEAN */
    const uint8_t *bytes;  /* STRING, BINARY, EXTENSION */
    uint32_t       count;  /* bytes, or items; of a MAP: pairs */
} item;

enum { DEEPEST = 16 }; /* arrays and maps in each other: metadata has four */

static bool fail(const char *what)
{
    sim_set_error("code object: metadata: %s", what);
    return false;
}

/* A big-endian number of 1 to 8 bytes. */
static bool take_number(packed *p, unsigned bytes, uint64_t *number)
{
    if ((size_t)(p->end - p->at) < bytes)
        return fail("cut off");
    *number = 0;
    for (unsigned i = 0; i < bytes; i++)
        *number = *number << 8 | *p->at++;
    return true;
}

static uint64_t extend_sign(uint64_t number, unsigned bytes)
{
    const uint64_t sign = (uint64_t)1 << (8 * bytes - 1);
    return (number ^ sign) - sign;
}

/* A header with `length_bytes` of length, then `extra` + length bytes. */
static bool take_bytes(packed *p, item *to, packed_kind kind, unsigned length_bytes, uint32_t fixed, uint32_t extra)
{
    uint64_t length = fixed;
    if (length_bytes > 0 && !take_number(p, length_bytes, &length))
        return false;
    length += extra;
    if ((uint64_t)(p->end - p->at) < length)
        return fail("cut off");
    *to = (item){ .kind = kind, .bytes = p->at, .count = (uint32_t)length };
    p->at += length;
    return true;
}

static bool take_count(packed *p, item *to, packed_kind kind, unsigned bytes)
{
    uint64_t count;
    if (!take_number(p, bytes, &count))
        return false;
    *to = (item){ .kind = kind, .count = (uint32_t)count };
    return true;
}

static bool take_integer(packed *p, item *to, unsigned bytes, bool is_signed)
{
    if (!take_number(p, bytes, &to->number))
        return false;
    to->kind = INTEGER;
    if (is_signed)
        to->number = extend_sign(to->number, bytes);
    return true;
}

/* One item; of an array or a map only its count. */
static bool take_item(packed *p, item *to)
{
    uint64_t tag;
    if (!take_number(p, 1, &tag))
        return false;
    *to = (item){ .kind = NIL };
    if (tag < 0x80 || tag >= 0xE0) {
        *to = (item){ .kind = INTEGER, .number = extend_sign(tag, 1) };
        return true;
    }
    if (tag < 0xA0) {
        *to = (item){ .kind = tag < 0x90 ? MAP : ARRAY, .count = (uint32_t)tag & 0x0F };
        return true;
    }
    if (tag < 0xC0)
        return take_bytes(p, to, STRING, 0, (uint32_t)tag & 0x1F, 0);
    switch (tag) {
    case 0xC0:
        return true;
    case 0xC2:
    case 0xC3:
        *to = (item){ .kind = BOOLEAN, .number = tag & 1 };
        return true;
    case 0xC4:
    case 0xC5:
    case 0xC6:
        return take_bytes(p, to, BINARY, 1u << (tag - 0xC4), 0, 0);
    case 0xC7:
    case 0xC8:
    case 0xC9: /* a byte of type follows the length */
        return take_bytes(p, to, EXTENSION, 1u << (tag - 0xC7), 0, 1);
    case 0xCA:
    case 0xCB:
        to->kind = REAL;
        return take_number(p, tag == 0xCA ? 4 : 8, &to->number);
    case 0xCC:
    case 0xCD:
    case 0xCE:
    case 0xCF:
        return take_integer(p, to, 1u << (tag - 0xCC), false);
    case 0xD0:
    case 0xD1:
    case 0xD2:
    case 0xD3:
        return take_integer(p, to, 1u << (tag - 0xD0), true);
    case 0xD4:
    case 0xD5:
    case 0xD6:
    case 0xD7:
    case 0xD8:
        return take_bytes(p, to, EXTENSION, 0, 1u << (tag - 0xD4), 1);
    case 0xD9:
    case 0xDA:
    case 0xDB:
        return take_bytes(p, to, STRING, 1u << (tag - 0xD9), 0, 0);
    case 0xDC:
    case 0xDD:
        return take_count(p, to, ARRAY, tag == 0xDC ? 2 : 4);
    case 0xDE:
    case 0xDF:
        return take_count(p, to, MAP, tag == 0xDE ? 2 : 4);
    default:
        return fail("a byte that begins nothing");
    }
}

static bool skip_item(packed *p, int depth)
{
    item head;
    if (depth == DEEPEST)
        return fail("nested too deep");
    if (!take_item(p, &head))
        return false;
    const uint64_t items = head.kind == MAP ? 2 * (uint64_t)head.count : head.kind == ARRAY ? head.count : 0;
    for (uint64_t i = 0; i < items; i++)
        if (!skip_item(p, depth + 1))
            return false;
    return true;
}

static bool take_string(packed *p, char **to)
{
    item s;
    if (!take_item(p, &s))
        return false;
    if (s.kind != STRING)
        return fail("a string is missing");
    char *copy = malloc((size_t)s.count + 1);
    if (copy == NULL)
        return fail("out of memory");
    memcpy(copy, s.bytes, s.count);
    copy[s.count] = '\0';
    free(*to);
    *to = copy;
    return true;
}

static bool take_u32(packed *p, uint32_t *to)
{
    item n;
    if (!take_item(p, &n))
        return false;
    if (n.kind != INTEGER || n.number > UINT32_MAX)
        return fail("a number is missing or out of range");
    *to = (uint32_t)n.number;
    return true;
}

/* Begins a map or an array, and says how many items there can be: a claim of more than the bytes left is an error. */
static bool take_items(packed *p, packed_kind kind, uint32_t *count)
{
    item head;
    if (!take_item(p, &head))
        return false;
    if (head.kind != kind)
        return fail(kind == MAP ? "a map is missing" : "an array is missing");
    if (head.count > (uint64_t)(p->end - p->at))
        return fail("cut off");
    *count = head.count;
    return true;
}

static bool key_is(const item *key, const char *name)
{
    return key->kind == STRING && key->count == strlen(name) && memcmp(key->bytes, name, key->count) == 0;
}

/* Kernels
 * -------
 */
/* Where the values of a map go, by key; other keys are skipped. */
typedef struct field {
    const char *key;
    bool        is_string;
    size_t      offset;
} field;

static bool take_fields(packed *p, const field *fields, void *to, bool (*other)(packed *, const item *key, void *to))
{
    uint32_t count;
    if (!take_items(p, MAP, &count))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        item key;
        if (!take_item(p, &key))
            return false;
        const field *f = fields;
        while (f->key != NULL && !key_is(&key, f->key))
            f++;
        void *value = (char *)to + f->offset;
        if (!(f->key == NULL ? other(p, &key, to) : f->is_string ? take_string(p, value) : take_u32(p, value)))
            return false;
    }
    return true;
}

static bool skip_other(packed *p, const item *key, void *to)
{
    (void)key;
    (void)to;
    return skip_item(p, 0);
}

static bool take_arguments(packed *p, sim_metadata_kernel *kernel)
{
    static const field fields[] = { { ".name", true, offsetof(sim_argument, name) },
                                    { ".value_kind", true, offsetof(sim_argument, kind) },
                                    { ".offset", false, offsetof(sim_argument, offset) },
                                    { ".size", false, offsetof(sim_argument, bytes) },
                                    { NULL, false, 0 } };
    uint32_t           count;
    if (!take_items(p, ARRAY, &count))
        return false;
    if (kernel->arguments != NULL)
        return fail("a kernel has .args twice");
    kernel->arguments = calloc((size_t)count + 1, sizeof kernel->arguments[0]);
    if (kernel->arguments == NULL)
        return fail("out of memory");
    while (kernel->argument_count < count) {
        sim_argument *a = &kernel->arguments[kernel->argument_count++];
        if (!take_fields(p, fields, a, skip_other))
            return false;
        if (a->kind == NULL)
            return fail("an argument without .value_kind");
        if (a->name == NULL && (a->name = strdup("")) == NULL)
            return fail("out of memory");
    }
    return true;
}

static bool take_kernel_other(packed *p, const item *key, void *to)
{
    return key_is(key, ".args") ? take_arguments(p, to) : skip_item(p, 0);
}

static bool take_kernel(packed *p, sim_metadata_kernel *kernel)
{
    static const field fields[] = {
        { ".name", true, offsetof(sim_metadata_kernel, name) },
        { ".symbol", true, offsetof(sim_metadata_kernel, symbol) },
        { ".kernarg_segment_size", false, offsetof(sim_metadata_kernel, kernarg_bytes) },
        { ".max_flat_workgroup_size", false, offsetof(sim_metadata_kernel, max_group) },
        { ".vgpr_count", false, offsetof(sim_metadata_kernel, vgprs) },
        { ".agpr_count", false, offsetof(sim_metadata_kernel, agprs) },
        { ".sgpr_count", false, offsetof(sim_metadata_kernel, sgprs) },
        { ".wavefront_size", false, offsetof(sim_metadata_kernel, wave_size) },
        { NULL, false, 0 },
    };
    if (!take_fields(p, fields, kernel, take_kernel_other))
        return false;
    return kernel->name != NULL && kernel->symbol != NULL ? true : fail("a kernel without .name or .symbol");
}

static bool take_kernels(packed *p, sim_metadata *metadata)
{
    uint32_t count;
    if (!take_items(p, ARRAY, &count))
        return false;
    if (metadata->kernels != NULL)
        return fail("amdhsa.kernels twice");
    metadata->kernels = calloc((size_t)count + 1, sizeof metadata->kernels[0]);
    if (metadata->kernels == NULL)
        return fail("out of memory");
    while (metadata->kernel_count < count)
        if (!take_kernel(p, &metadata->kernels[metadata->kernel_count++]))
            return false;
    return true;
}

static bool take_version(packed *p)
{
    uint32_t count, major, minor;
    if (!take_items(p, ARRAY, &count))
        return false;
    if (count != 2 || !take_u32(p, &major) || !take_u32(p, &minor) || major != 1)
        return fail("amdhsa.version is not 1.x");
    return true;
}

static bool take_root_other(packed *p, const item *key, void *to)
{
    return key_is(key, "amdhsa.kernels")   ? take_kernels(p, to)
           : key_is(key, "amdhsa.version") ? take_version(p)
                                           : skip_item(p, 0);
}

bool sim_metadata_read(sim_metadata *metadata, const uint8_t *bytes, size_t size)
{
    static const field none[] = { { NULL, false, 0 } };
    *metadata = (sim_metadata){ .kernel_count = 0 };
    packed p = { bytes, bytes + size };
    if (size == 0 || take_fields(&p, none, metadata, take_root_other))
        return true;
    sim_metadata_free(metadata);
    return false;
}

void sim_metadata_free(sim_metadata *metadata)
{
    for (uint32_t k = 0; k < metadata->kernel_count; k++) {
        sim_metadata_kernel *kernel = &metadata->kernels[k];
        for (uint32_t a = 0; a < kernel->argument_count; a++) {
            free((char *)kernel->arguments[a].name);
            free((char *)kernel->arguments[a].kind);
        }
        free(kernel->arguments);
        free(kernel->name);
        free(kernel->symbol);
    }
    free(metadata->kernels);
    *metadata = (sim_metadata){ .kernel_count = 0 };
}
