/* Code objects: an ELF file in memory of the device, its kernels with their metadata, its variables. */
#include "device.h"
#include "elffile.h"
#include "metadata.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct sim_object {
    sim_device  *device;
    sim_object  *next;
    uint8_t     *block; /* of the device's memory */
    uint64_t     base;  /* guest address of the image's address 0 */
    uint64_t     code_first, code_last;
    sim_code    *code;
    sim_kernel  *kernels;
    uint32_t     kernel_count;
    sim_symbol  *symbols; /* defined ones; the names are ours */
    uint32_t     symbol_count;
    sim_metadata metadata; /* owns the names of kernels and arguments that it describes */
};

/* Kernel descriptors
 * ------------------
 */
enum {
    DESCRIPTOR_BYTES = sizeof(sim_descriptor),
    CODE_ALIGNMENT = 256,
    SGPRS = 106 /* s0 to s101 and what shares their file */
};

static uint32_t bits(uint32_t word, unsigned first, unsigned count)
{
    return word >> first & ((1u << count) - 1u);
}

/* Registers that the descriptor asks for. gfx950 splits one file: AGPRs begin at accum_offset. */
static void count_registers(sim_kernel *kernel, const sim_descriptor *d, sim_arch arch)
{
    const uint32_t blocks = bits(d->rsrc1, 0, 6) + 1;
    if (arch == SIM_GFX1250) {
        kernel->vgprs = 16 * blocks;
        kernel->sgprs = SGPRS; /* every wave has all */
        return;
    }
    const uint32_t all = 8 * blocks, accum_offset = 4 * (bits(d->rsrc3, 0, 6) + 1);
    const uint32_t sgprs = 16 * (bits(d->rsrc1, 6, 4) / 2 + 1);
    kernel->vgprs = accum_offset < all ? accum_offset : all;
    kernel->agprs = all - kernel->vgprs;
    kernel->sgprs = sgprs < SGPRS ? sgprs : SGPRS;
}

static bool in_code(const sim_object *object, uint64_t address)
{
    return address >= object->code_first && address < object->code_last;
}

static bool read_descriptor(const sim_object *object, sim_kernel *kernel, sim_arch arch)
{
    enum { WAVE32 = 10 };
    sim_descriptor d;
    memcpy(&d, (const void *)(uintptr_t)kernel->descriptor, sizeof d);
    kernel->entry = kernel->descriptor + (uint64_t)d.entry;
    if (!in_code(object, kernel->entry)) {
        sim_set_error("code object: the entry of %.80s is not in the code", kernel->name);
        return false;
    }
    if (kernel->entry % CODE_ALIGNMENT != 0) {
        sim_set_error("code object: the entry of %.80s is not aligned to %d bytes", kernel->name, CODE_ALIGNMENT);
        return false;
    }
    kernel->wave_size = bits(d.properties, WAVE32, 1) != 0 ? 32 : 64;
    if (kernel->wave_size != (arch == SIM_GFX950 ? 64u : 32u)) {
        sim_set_error("code object: %.80s wants waves of %u lanes, %s has others", kernel->name, kernel->wave_size,
                      sim_arch_name(arch));
        return false;
    }
    kernel->lds_bytes = d.lds_bytes;
    kernel->scratch_bytes = d.private_bytes;
    kernel->kernarg_bytes = d.kernarg_bytes;
    count_registers(kernel, &d, arch);
    return true;
}

/* Loading
 * -------
 */
static bool keep_symbols(sim_object *object, const sim_elf *elf)
{
    const uint32_t count = sim_elf_symbol_count(elf);
    object->symbols = calloc((size_t)count + 1, sizeof object->symbols[0]);
    if (object->symbols == NULL) {
        sim_set_error("code object: out of memory");
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        sim_symbol symbol;
        if (!sim_elf_symbol_at(elf, i, &symbol))
            return false;
        if (!symbol.is_defined || !(symbol.is_function || symbol.is_object))
            continue;
        if (symbol.value < elf->low || symbol.value > elf->high || symbol.size > elf->high - symbol.value) {
            sim_set_error("code object: symbol %.80s lies outside of the image", symbol.name);
            return false;
        }
        symbol.name = strdup(symbol.name);
        if (symbol.name == NULL) {
            sim_set_error("code object: out of memory");
            return false;
        }
        object->symbols[object->symbol_count++] = symbol;
    }
    return true;
}

static const sim_symbol *find_symbol(const sim_object *object, const char *name)
{
    for (uint32_t i = 0; i < object->symbol_count; i++)
        if (strcmp(object->symbols[i].name, name) == 0)
            return &object->symbols[i];
    return NULL;
}

/* "name.kd": the length of the name, or 0 if it is none. */
static size_t kernel_name_length(const sim_symbol *symbol)
{
    const size_t length = strlen(symbol->name);
    const bool   is_descriptor = symbol->is_object && symbol->size == DESCRIPTOR_BYTES && length > 3 &&
                                 strcmp(symbol->name + length - 3, ".kd") == 0;
    return is_descriptor ? length - 3 : 0;
}

static const sim_metadata_kernel *metadata_of(const sim_object *object, const char *symbol)
{
    for (uint32_t i = 0; i < object->metadata.kernel_count; i++)
        if (strcmp(object->metadata.kernels[i].symbol, symbol) == 0)
            return &object->metadata.kernels[i];
    return NULL;
}

static bool check_arguments(const sim_kernel *kernel)
{
    for (uint32_t i = 0; i < kernel->argument_count; i++) {
        const sim_argument *a = &kernel->arguments[i];
        if ((uint64_t)a->offset + a->bytes <= kernel->kernarg_bytes)
            continue;
        sim_set_error("code object: argument %u of %.80s lies outside of its %u bytes", i, kernel->name,
                      kernel->kernarg_bytes);
        return false;
    }
    return true;
}

/* Hand-written kernels may come without metadata: the descriptor is enough to run them. */
static bool describe_kernel(sim_object *object, sim_kernel *kernel, const sim_symbol *symbol)
{
    enum { LARGEST_GROUP = 1024 };
    const sim_metadata_kernel *m = metadata_of(object, symbol->name);
    if (!read_descriptor(object, kernel, sim_device_arch(object->device)))
        return false;
    kernel->max_group = LARGEST_GROUP;
    if (m == NULL)
        return true;
    kernel->arguments = m->arguments;
    kernel->argument_count = m->argument_count;
    if (m->kernarg_bytes > kernel->kernarg_bytes)
        kernel->kernarg_bytes = m->kernarg_bytes;
    if (m->max_group != 0 && m->max_group < LARGEST_GROUP)
        kernel->max_group = m->max_group;
    return check_arguments(kernel);
}

static bool find_kernels(sim_object *object)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < object->symbol_count; i++)
        count += kernel_name_length(&object->symbols[i]) != 0;
    object->kernels = calloc((size_t)count + 1, sizeof object->kernels[0]);
    for (uint32_t i = 0; i < object->symbol_count && object->kernels != NULL; i++) {
        const sim_symbol *symbol = &object->symbols[i];
        const size_t      length = kernel_name_length(symbol);
        if (length == 0)
            continue;
        sim_kernel *kernel = &object->kernels[object->kernel_count];
        kernel->name = strndup(symbol->name, length);
        if (kernel->name == NULL)
            break;
        object->kernel_count++;
        kernel->object = object;
        kernel->descriptor = object->base + symbol->value;
        if (!describe_kernel(object, kernel, symbol))
            return false;
    }
    if (object->kernels == NULL || object->kernel_count < count) {
        sim_set_error("code object: out of memory");
        return false;
    }
    return true;
}

/* A kernel that the metadata names must be there; that of a library without kernels is empty. */
static bool check_metadata(const sim_object *object)
{
    for (uint32_t i = 0; i < object->metadata.kernel_count; i++) {
        const char       *name = object->metadata.kernels[i].symbol;
        const sim_symbol *symbol = find_symbol(object, name);
        if (symbol != NULL && kernel_name_length(symbol) != 0)
            continue;
        sim_set_error("code object: the descriptor %.80s that the metadata names is not there", name);
        return false;
    }
    return true;
}

static void mark_loaded(void *context, uint8_t *at, size_t bytes)
{
    sim_mark_written(context, at, bytes);
}

static bool load(sim_object *object, const void *bytes, size_t size)
{
    sim_elf        elf;
    const uint8_t *metadata = NULL;
    size_t         metadata_bytes;
    const sim_arch arch = sim_device_arch(object->device);
    if (!sim_elf_open(&elf, arch, bytes, size) || !sim_elf_metadata(&elf, &metadata, &metadata_bytes) ||
        !sim_metadata_read(&object->metadata, metadata, metadata_bytes) || !keep_symbols(object, &elf) ||
        !check_metadata(object))
        return false;
    object->block = sim_allocate(object->device, (size_t)(elf.high - elf.low), "code object");
    if (object->block == NULL)
        return false;
    /* Addresses of the image are multiples of what the sections want; so must the block's be, and pages are enough. */
    if ((uintptr_t)object->block % 4096 != 0) {
        sim_set_error("code object: its memory does not begin at a page");
        return false;
    }
    if (!sim_elf_load(&elf, object->block, mark_loaded, object->device))
        return false;
    object->base = (uint64_t)(uintptr_t)object->block - elf.low;
    object->code_first = object->base + elf.code;
    object->code_last = object->base + elf.code_end;
    object->code = sim_code_create(arch, (const void *)(uintptr_t)object->code_first, (size_t)(elf.code_end - elf.code),
                                   object->code_first);
    return object->code != NULL && find_kernels(object);
}

static void release(sim_object *object)
{
    sim_code_destroy(object->code);
    for (uint32_t i = 0; i < object->kernel_count; i++)
        free((char *)object->kernels[i].name);
    free(object->kernels);
    for (uint32_t i = 0; i < object->symbol_count; i++)
        free((char *)object->symbols[i].name);
    free(object->symbols);
    sim_metadata_free(&object->metadata);
    if (object->block != NULL)
        sim_free(object->device, object->block);
    free(object);
}

sim_object *sim_object_load(sim_device *device, const void *bytes, size_t size)
{
    sim_object *object = calloc(1, sizeof *object);
    if (object == NULL) {
        sim_set_error("code object: out of memory");
        return NULL;
    }
    object->device = device;
    if (!load(object, bytes, size)) {
        release(object);
        return NULL;
    }
    pthread_mutex_lock(&device->lock);
    object->next = device->objects;
    device->objects = object;
    pthread_mutex_unlock(&device->lock);
    return object;
}

void sim_object_unload(sim_object *object)
{
    if (object == NULL)
        return;
    sim_device *device = object->device;
    pthread_mutex_lock(&device->running); /* a dispatch may still execute its code */
    pthread_mutex_lock(&device->lock);
    sim_object **link = &device->objects;
    while (*link != object)
        link = &(*link)->next;
    *link = object->next;
    pthread_mutex_unlock(&device->lock);
    pthread_mutex_unlock(&device->running);
    release(object);
}

/* Questions
 * ---------
 */
sim_code *sim_object_code(const sim_object *object)
{
    return object->code;
}

uint32_t sim_object_kernel_count(const sim_object *object)
{
    return object->kernel_count;
}

const sim_kernel *sim_object_kernel_at(const sim_object *object, uint32_t i)
{
    return i < object->kernel_count ? &object->kernels[i] : NULL;
}

const sim_kernel *sim_object_kernel(const sim_object *object, const char *name)
{
    for (uint32_t i = 0; i < object->kernel_count; i++)
        if (strcmp(object->kernels[i].name, name) == 0)
            return &object->kernels[i];
    sim_set_error("code object: no kernel %.200s", name);
    return NULL;
}

const sim_kernel *sim_kernel_of_descriptor(const sim_device *device, uint64_t address)
{
    sim_device       *locked = (sim_device *)device;
    const sim_kernel *found = NULL;
    pthread_mutex_lock(&locked->lock);
    for (const sim_object *object = device->objects; object != NULL && found == NULL; object = object->next)
        for (uint32_t i = 0; i < object->kernel_count && found == NULL; i++)
            if (object->kernels[i].descriptor == address)
                found = &object->kernels[i];
    pthread_mutex_unlock(&locked->lock);
    if (found == NULL)
        sim_set_error("no kernel descriptor at 0x%" PRIx64, address);
    return found;
}

bool sim_object_variable(const sim_object *object, const char *name, void **at, size_t *bytes)
{
    const sim_symbol *symbol = find_symbol(object, name);
    if (symbol == NULL || !symbol->is_object || kernel_name_length(symbol) != 0) {
        sim_set_error("code object: no variable %.200s", name);
        return false;
    }
    *at = (void *)(uintptr_t)(object->base + symbol->value);
    *bytes = (size_t)symbol->size;
    return true;
}

/* Hidden arguments
 * ----------------
 */
typedef struct launch {
    uint32_t blocks[3], remainder[3], dims;
} launch;

static launch launch_of(const sim_dispatch *dispatch)
{
    launch l = { .dims = 1 };
    for (int i = 0; i < 3; i++) {
        const uint32_t group = dispatch->group[i] == 0 ? 1 : dispatch->group[i]; /* sim_run rejects it, not we */
        l.blocks[i] = dispatch->grid[i] / group;                                 /* whole ones */
        l.remainder[i] = dispatch->grid[i] % group;
        if (dispatch->grid[i] > 1)
            l.dims = (uint32_t)i + 1;
    }
    return l;
}

/* The value of a hidden argument. What needs a host's services (printf, hostcall, enqueue, heap) is 0: absent. */
static uint64_t hidden_value(const char *kind, const sim_dispatch *dispatch, const launch *l)
{
    const struct {
        const char *kind;
        uint64_t    value;
    } values[] = {
        { "hidden_block_count_x", l->blocks[0] },
        { "hidden_block_count_y", l->blocks[1] },
        { "hidden_block_count_z", l->blocks[2] },
        { "hidden_group_size_x", dispatch->group[0] },
        { "hidden_group_size_y", dispatch->group[1] },
        { "hidden_group_size_z", dispatch->group[2] },
        { "hidden_remainder_x", l->remainder[0] },
        { "hidden_remainder_y", l->remainder[1] },
        { "hidden_remainder_z", l->remainder[2] },
        { "hidden_grid_dims", l->dims },
        { "hidden_dynamic_lds_size", dispatch->dynamic_lds },
        { "hidden_private_base", SIM_PRIVATE_APERTURE >> 32 },
        { "hidden_shared_base", SIM_SHARED_APERTURE >> 32 },
    };
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        if (strcmp(kind, values[i].kind) == 0)
            return values[i].value;
    return 0;
}

void sim_kernarg_fill(const sim_dispatch *dispatch, void *kernarg)
{
    const sim_kernel *kernel = dispatch->kernel;
    const launch      l = launch_of(dispatch);
    for (uint32_t i = 0; i < kernel->argument_count; i++) {
        const sim_argument *a = &kernel->arguments[i];
        if (strncmp(a->kind, "hidden_", 7) != 0)
            continue;
        const uint64_t value = hidden_value(a->kind, dispatch, &l);
        memset((uint8_t *)kernarg + a->offset, 0, a->bytes); /* in the segment: check_arguments() */
        memcpy((uint8_t *)kernarg + a->offset, &value, a->bytes < sizeof value ? a->bytes : sizeof value);
    }
}

/* Disassembly
 * -----------
 */
/* Where a kernel's code ends: its symbol says, or the next kernel's entry, or the code does. */
static uint64_t code_end(const sim_object *object, const sim_kernel *kernel)
{
    const sim_symbol *symbol = find_symbol(object, kernel->name);
    uint64_t          end = object->code_last;
    if (symbol != NULL && symbol->is_function && symbol->size > 0 && object->base + symbol->value == kernel->entry &&
        symbol->size <= object->code_last - kernel->entry)
        return kernel->entry + symbol->size;
    for (uint32_t i = 0; i < object->kernel_count; i++)
        if (object->kernels[i].entry > kernel->entry && object->kernels[i].entry < end)
            end = object->kernels[i].entry;
    return end;
}

static void disassemble(FILE *to, const sim_object *object, const sim_kernel *kernel)
{
    const uint64_t end = code_end(object, kernel);
    fprintf(to, "%s:\n", kernel->name);
    for (uint64_t pc = kernel->entry, bytes; pc < end; pc += bytes) {
        char text[512];
        bytes = sim_code_text(object->code, pc, text, sizeof text);
        if (bytes == 0) {
            uint32_t word;
            memcpy(&word, (const void *)(uintptr_t)pc, sizeof word);
            fprintf(to, "%8" PRIx64 "    .long 0x%08" PRIx32 "\n", pc - kernel->entry, word);
            bytes = sizeof word;
            continue;
        }
        const bool is_supported = sim_code_at(object->code, pc) != NULL;
        fprintf(to, "%8" PRIx64 "    %s%s\n", pc - kernel->entry, text, is_supported ? "" : "    // not supported");
    }
}

bool sim_disassemble(FILE *to, const sim_object *object, const char *kernel)
{
    if (kernel != NULL) {
        const sim_kernel *one = sim_object_kernel(object, kernel);
        if (one != NULL)
            disassemble(to, object, one);
        return one != NULL;
    }
    for (uint32_t i = 0; i < object->kernel_count; i++)
        disassemble(to, object, &object->kernels[i]);
    return true;
}
