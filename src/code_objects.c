#include "code_objects.h"

#include "error.h"

#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* On a page, as a loader of files has it. The zero behind it is for PTX, which is a string. */
#define OBJECT(stem, arch, file)                                                         \
    extern const unsigned char object_##stem##_##arch[], object_##stem##_##arch##_end[]; \
    __asm__(".pushsection .rodata.etalon_objects,\"a\"\n"                                \
            ".balign 4096\n"                                                             \
            "object_" #stem "_" #arch ":\n"                                              \
            ".incbin \"" file "\"\n"                                                     \
            "object_" #stem "_" #arch "_end:\n"                                          \
            ".byte 0\n"                                                                  \
            ".popsection\n");
#include "src/code_objects.def"
#undef OBJECT

const code_object code_objects[] = {
#define OBJECT(stem, arch, file) { #stem, #arch, object_##stem##_##arch, object_##stem##_##arch##_end },
#include "src/code_objects.def"
#undef OBJECT
    { NULL, NULL, NULL, NULL },
};

/* The descriptor of a kernel, 64 bytes: LLVM's AMDGPU usage guide, "Kernel Descriptor". */
enum {
    DESCRIPTOR_LDS = 0,
    DESCRIPTOR_SCRATCH = 4,
    DESCRIPTOR_RSRC3 = 44,
    DESCRIPTOR_RSRC1 = 48,
    DESCRIPTOR_BYTES = 64
};

/* The least significant field of rsrc1 counts VGPRs in granules, less one. */
static unsigned vgpr_granule(const char *arch)
{
    return strcmp(arch, "gfx1250") == 0 ? 16 /* wave32, 1024 VGPRs */ : 8 /* wave64, 512 */;
}

static uint32_t word_at(const unsigned char *at)
{
    uint32_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/* The code objects of this library are whole: the build has just linked them. A symbol of the dynamic table lies at its
 * address, and in these objects' read-only segment address and file offset are the same. */
static const unsigned char *find_descriptor(const code_object *object)
{
    Elf64_Ehdr header;
    char       want[128];
    memcpy(&header, object->bytes, sizeof header);
    snprintf(want, sizeof want, "etalon_%s.kd", object->stem);
    for (int i = 0; i < header.e_shnum; i++) {
        Elf64_Shdr table, names;
        memcpy(&table, object->bytes + header.e_shoff + (size_t)i * sizeof table, sizeof table);
        if (table.sh_type != SHT_DYNSYM)
            continue;
        memcpy(&names, object->bytes + header.e_shoff + table.sh_link * sizeof names, sizeof names);
        for (size_t at = 0; at < table.sh_size; at += sizeof(Elf64_Sym)) {
            Elf64_Sym symbol;
            memcpy(&symbol, object->bytes + table.sh_offset + at, sizeof symbol);
            if (strcmp((const char *)object->bytes + names.sh_offset + symbol.st_name, want) == 0 &&
                symbol.st_value + DESCRIPTOR_BYTES <= code_object_bytes(object))
                return object->bytes + symbol.st_value;
        }
    }
    return NULL;
}

/* gfx950 splits one file: the AGPRs begin behind fours of VGPRs that the least significant field of rsrc3 counts. */
static unsigned vgprs_of(const unsigned char *descriptor, const char *arch)
{
    const unsigned all = ((word_at(descriptor + DESCRIPTOR_RSRC1) & 63) + 1) * vgpr_granule(arch);
    const unsigned split = ((word_at(descriptor + DESCRIPTOR_RSRC3) & 63) + 1) * 4;
    return strcmp(arch, "gfx950") == 0 && split < all ? split : all;
}

int code_object_uses(const code_object *object, code_object_use *use)
{
    const unsigned char *descriptor = NULL;
    if (code_object_bytes(object) > sizeof(Elf64_Ehdr) && memcmp(object->bytes, ELFMAG, SELFMAG) == 0)
        descriptor = find_descriptor(object);
    if (descriptor == NULL)
        return 0;
    *use = (code_object_use){
        .registers = vgprs_of(descriptor, object->arch),
        .lds_bytes = word_at(descriptor + DESCRIPTOR_LDS),
        .scratch_bytes = word_at(descriptor + DESCRIPTOR_SCRATCH),
    };
    return 1;
}

const code_object *code_object_find(const char *stem, const char *arch)
{
    for (const code_object *o = code_objects; o->stem != NULL; o++)
        if (strcmp(o->stem, stem) == 0 && strcmp(o->arch, arch) == 0)
            return o;
    return NULL;
}

etalon_status etalon_code_object_get(int index, etalon_code_object_info *info)
{
    int i = 0;
    REQUIRE(info != NULL, "code_object_get: info: NULL");
    while (i < index && code_objects[i].stem != NULL)
        i++;
    REQUIRE(index >= 0 && code_objects[i].stem != NULL, "code_object_get: index: %d, there is no such object", index);
    const code_object *o = &code_objects[i];
    code_object_use    use = { 0 };
    const int          known = code_object_uses(o, &use);
    *info = (etalon_code_object_info){ .kernel = o->stem,
                                       .arch = o->arch,
                                       .bytes = code_object_bytes(o),
                                       .registers = known ? (int)use.registers : -1,
                                       .lds_bytes = known ? (int)use.lds_bytes : -1,
                                       .scratch_bytes = known ? (int)use.scratch_bytes : -1 };
    return ETALON_OK;
}
