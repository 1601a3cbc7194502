#include "elffile.h"

#include "machine.h"

#include <inttypes.h>
#include <string.h>

/* Newer than some elf.h. */
enum {
    MACHINE_AMDGPU = 224,
    OSABI_HSA = 64,
    NOTE_METADATA = 32, /* NT_AMDGPU_METADATA */
    ABI_V4 = 2,         /* of EI_ABIVERSION: code object version 4; 3 is version 5, 4 is version 6 */
    ABI_V6 = 4,
    FLAGS_MACH = 0xFF,
    PAGE = 4096
};

static const uint8_t machs[SIM_ARCHS] = { [SIM_GFX950] = 0x4F, [SIM_GFX1250] = 0x49 };

/* Kernels are kilobytes: these stop a broken header, they are no limits of the format. */
#define LARGEST_IMAGE ((uint64_t)1 << 30)
#define LARGEST_CODE ((uint64_t)1 << 26)

/* Relocations of the ABI ("Relocation Records" of LLVM's AMDGPUUsage). Others belong to a linker's input. */
enum {
    RELOC_NONE = 0,
    RELOC_ABS32_LO = 1,
    RELOC_ABS32_HI = 2,
    RELOC_ABS64 = 3,
    RELOC_REL32 = 4,
    RELOC_REL64 = 5,
    RELOC_ABS32 = 6,
    RELOC_REL32_LO = 10,
    RELOC_REL32_HI = 11,
    RELOC_RELATIVE64 = 13
};

static bool fail(const char *what)
{
    sim_set_error("code object: %s", what);
    return false;
}

/* Copies out of the file; false: beyond its end. */
static bool read_at(const sim_elf *elf, uint64_t offset, void *to, size_t bytes)
{
    if (offset > elf->size || bytes > elf->size - offset)
        return false;
    memcpy(to, elf->bytes + offset, bytes);
    return true;
}

static bool holds(const sim_elf *elf, uint64_t offset, uint64_t bytes)
{
    return offset <= elf->size && bytes <= elf->size - offset;
}

/* The whole of a table of records, as its header in the file says it. */
static bool record_at(const sim_elf *elf, uint64_t table, uint32_t i, uint16_t entry_bytes, void *to, size_t bytes)
{
    const uint64_t offset = (uint64_t)i * entry_bytes;
    return entry_bytes >= bytes && table <= elf->size && read_at(elf, table + offset, to, bytes);
}

static bool segment_at(const sim_elf *elf, uint32_t i, Elf64_Phdr *segment)
{
    return record_at(elf, elf->header.e_phoff, i, elf->header.e_phentsize, segment, sizeof *segment) ||
           fail("a program header lies beyond the end of the file");
}

static bool section_at(const sim_elf *elf, uint32_t i, Elf64_Shdr *section)
{
    return record_at(elf, elf->header.e_shoff, i, elf->header.e_shentsize, section, sizeof *section) ||
           fail("a section header lies beyond the end of the file");
}

/* Bundles
 * -------
 * clang wraps device code: magic, number of entries, then of each: offset, size, length of its name, name. A name is
 * like hipv4-amdgcn-amd-amdhsa--gfx950, with features behind a colon.
 */
static const char bundle_magic[] = "__CLANG_OFFLOAD_BUNDLE__";

static bool is_name_of(const uint8_t *name, uint64_t length, const char *arch)
{
    const size_t arch_length = strlen(arch);
    for (uint64_t i = 0; i + arch_length < length; i++)
        if (name[i] == '-' && memcmp(name + i + 1, arch, arch_length) == 0 &&
            (i + 1 + arch_length == length || name[i + 1 + arch_length] == ':'))
            return true;
    return false;
}

static bool unbundle(sim_elf *elf, sim_arch arch)
{
    if (elf->size >= 4 && memcmp(elf->bytes, "CCOB", 4) == 0)
        return fail("a compressed bundle (clang's --no-offload-compress leaves it readable)");
    if (elf->size < sizeof bundle_magic - 1 || memcmp(elf->bytes, bundle_magic, sizeof bundle_magic - 1) != 0)
        return true;
    uint64_t at = sizeof bundle_magic - 1, entries;
    if (!read_at(elf, at, &entries, sizeof entries))
        return fail("a bundle is cut off");
    at += sizeof entries;
    for (uint64_t i = 0; i < entries; i++) {
        struct {
            uint64_t offset, size, name_length;
        } entry;
        if (!read_at(elf, at, &entry, sizeof entry) || !holds(elf, at + sizeof entry, entry.name_length))
            return fail("a bundle is cut off");
        at += sizeof entry;
        if (is_name_of(elf->bytes + at, entry.name_length, sim_arch_name(arch))) {
            if (!holds(elf, entry.offset, entry.size))
                return fail("an entry of a bundle lies beyond its end");
            elf->bytes += entry.offset;
            elf->size = (size_t)entry.size;
            return true;
        }
        at += entry.name_length;
    }
    sim_set_error("code object: the bundle has nothing for %s", sim_arch_name(arch));
    return false;
}

/* Headers
 * -------
 */
static bool check_header(const sim_elf *elf, sim_arch arch)
{
    const Elf64_Ehdr    *h = &elf->header;
    const unsigned char *ident = h->e_ident;
    if (memcmp(ident, ELFMAG, SELFMAG) != 0)
        return fail("not an ELF file");
    if (ident[EI_CLASS] != ELFCLASS64 || ident[EI_DATA] != ELFDATA2LSB || ident[EI_VERSION] != EV_CURRENT)
        return fail("not a little-endian ELF64");
    if (h->e_machine != MACHINE_AMDGPU) {
        sim_set_error("code object: for machine %u, not for AMDGPU (%d)", h->e_machine, MACHINE_AMDGPU);
        return false;
    }
    if (ident[EI_OSABI] != OSABI_HSA) {
        sim_set_error("code object: OS ABI %u, not HSA (%d)", ident[EI_OSABI], OSABI_HSA);
        return false;
    }
    if (ident[EI_ABIVERSION] < ABI_V4 || ident[EI_ABIVERSION] > ABI_V6) {
        sim_set_error("code object: ABI version %u, versions %d to %d (code object 4 to 6) are supported",
                      ident[EI_ABIVERSION], ABI_V4, ABI_V6);
        return false;
    }
    if ((h->e_flags & FLAGS_MACH) != machs[arch]) {
        sim_set_error("code object: for another GPU (mach 0x%x), the device is %s (mach 0x%x)", h->e_flags & FLAGS_MACH,
                      sim_arch_name(arch), machs[arch]);
        return false;
    }
    if (h->e_type != ET_DYN)
        return fail(h->e_type == ET_REL ? "not linked yet (ld.lld -shared does it)" : "not a shared object");
    return true;
}

/* The span of the image, and of its code. */
static bool measure_segments(sim_elf *elf)
{
    elf->low = elf->code = UINT64_MAX;
    elf->high = elf->code_end = 0;
    for (uint32_t i = 0; i < elf->header.e_phnum; i++) {
        Elf64_Phdr s;
        if (!segment_at(elf, i, &s))
            return false;
        if (s.p_type != PT_LOAD || s.p_memsz == 0)
            continue;
        if (s.p_filesz > s.p_memsz || !holds(elf, s.p_offset, s.p_filesz))
            return fail("a segment lies beyond the end of the file");
        if (s.p_memsz > LARGEST_IMAGE || s.p_vaddr > UINT64_MAX - s.p_memsz)
            return fail("a segment is too large");
        const uint64_t end = s.p_vaddr + s.p_memsz;
        elf->low = s.p_vaddr < elf->low ? s.p_vaddr : elf->low;
        elf->high = end > elf->high ? end : elf->high;
        if ((s.p_flags & PF_X) != 0 && s.p_filesz > 0) {
            const uint64_t code_end = s.p_vaddr + s.p_filesz;
            elf->code = s.p_vaddr < elf->code ? s.p_vaddr : elf->code;
            elf->code_end = code_end > elf->code_end ? code_end : elf->code_end;
        }
    }
    if (elf->high == 0 || elf->code_end == 0)
        return fail("no segment with code");
    elf->low -= elf->low % PAGE;
    if (elf->high - elf->low > LARGEST_IMAGE || elf->code_end - elf->code > LARGEST_CODE)
        return fail("the image is too large");
    return true;
}

static bool find_symbols(sim_elf *elf)
{
    for (uint32_t i = 0; i < elf->header.e_shnum; i++) {
        Elf64_Shdr s;
        if (!section_at(elf, i, &s))
            return false;
        if (s.sh_type != SHT_DYNSYM)
            continue;
        elf->symbols = s;
        if (s.sh_link >= elf->header.e_shnum || !section_at(elf, s.sh_link, &elf->strings))
            return fail("the table of symbols has no strings");
        if (elf->strings.sh_type != SHT_STRTAB || s.sh_entsize != sizeof(Elf64_Sym) ||
            !holds(elf, s.sh_offset, s.sh_size) || !holds(elf, elf->strings.sh_offset, elf->strings.sh_size))
            return fail("a malformed table of symbols");
        return true;
    }
    return fail("no table of dynamic symbols");
}

bool sim_elf_open(sim_elf *elf, sim_arch arch, const void *bytes, size_t size)
{
    *elf = (sim_elf){ .bytes = bytes, .size = size };
    if (!unbundle(elf, arch))
        return false;
    if (!read_at(elf, 0, &elf->header, sizeof elf->header))
        return fail("shorter than the header of an ELF file");
    return check_header(elf, arch) && measure_segments(elf) && find_symbols(elf);
}

/* Symbols
 * -------
 */
uint32_t sim_elf_symbol_count(const sim_elf *elf)
{
    return (uint32_t)(elf->symbols.sh_size / sizeof(Elf64_Sym));
}

bool sim_elf_symbol_at(const sim_elf *elf, uint32_t i, sim_symbol *symbol)
{
    Elf64_Sym s;
    if (i >= sim_elf_symbol_count(elf) || !read_at(elf, elf->symbols.sh_offset + (uint64_t)i * sizeof s, &s, sizeof s))
        return fail("a symbol that is not in the table");
    if (s.st_name >= elf->strings.sh_size)
        return fail("a symbol's name lies beyond the strings");
    const char *name = (const char *)elf->bytes + elf->strings.sh_offset + s.st_name;
    if (memchr(name, '\0', (size_t)(elf->strings.sh_size - s.st_name)) == NULL)
        return fail("a symbol's name does not end");
    *symbol = (sim_symbol){ .name = name,
                            .value = s.st_value,
                            .size = s.st_size,
                            .is_function = ELF64_ST_TYPE(s.st_info) == STT_FUNC,
                            .is_object = ELF64_ST_TYPE(s.st_info) == STT_OBJECT,
                            .is_defined = s.st_shndx != SHN_UNDEF,
                            .is_weak = ELF64_ST_BIND(s.st_info) == STB_WEAK };
    return true;
}

/* Notes
 * -----
 * Sizes of name and contents, type, name, contents; name and contents padded to words.
 */
static uint64_t word_round(uint64_t n)
{
    return (n + 3) & ~(uint64_t)3;
}

static bool find_note(const sim_elf *elf, uint64_t at, uint64_t end, const uint8_t **bytes, size_t *size)
{
    Elf64_Nhdr note;
    while (end - at >= sizeof note) {
        if (!read_at(elf, at, &note, sizeof note))
            return fail("a note is cut off");
        at += sizeof note;
        const uint64_t contents = word_round(note.n_namesz);
        if (contents > end - at || note.n_descsz > end - at - contents)
            return fail("a note is cut off");
        if (note.n_type == NOTE_METADATA && note.n_namesz == sizeof "AMDGPU" &&
            memcmp(elf->bytes + at, "AMDGPU", sizeof "AMDGPU") == 0) {
            *bytes = elf->bytes + at + contents;
            *size = note.n_descsz;
            return true;
        }
        const uint64_t step = contents + word_round(note.n_descsz);
        at = step > end - at ? end : at + step;
    }
    return true;
}

bool sim_elf_metadata(const sim_elf *elf, const uint8_t **bytes, size_t *size)
{
    *size = 0;
    for (uint32_t i = 0; i < elf->header.e_phnum && *size == 0; i++) {
        Elf64_Phdr s;
        if (!segment_at(elf, i, &s))
            return false;
        if (s.p_type != PT_NOTE)
            continue;
        if (!holds(elf, s.p_offset, s.p_filesz))
            return fail("notes lie beyond the end of the file");
        if (!find_note(elf, s.p_offset, s.p_offset + s.p_filesz, bytes, size))
            return false;
    }
    return true;
}

/* Loading
 * -------
 */
/* Bytes that a relocation changes; 0: of a type that is not for a loader. */
static size_t relocation_bytes(uint32_t type)
{
    switch (type) {
    case RELOC_ABS64:
    case RELOC_REL64:
    case RELOC_RELATIVE64:
        return 8;
    case RELOC_ABS32:
    case RELOC_ABS32_LO:
    case RELOC_ABS32_HI:
    case RELOC_REL32:
    case RELOC_REL32_LO:
    case RELOC_REL32_HI:
        return 4;
    default:
        return 0;
    }
}

/* The guest address that a relocation is about. `base`: of the image's address 0. */
static bool relocated_address(const sim_elf *elf, const Elf64_Rela *r, uint64_t base, uint64_t *address)
{
    const uint32_t number = ELF64_R_SYM(r->r_info);
    *address = (uint64_t)r->r_addend;
    if (ELF64_R_TYPE(r->r_info) == RELOC_RELATIVE64)
        *address += base;
    if (ELF64_R_TYPE(r->r_info) == RELOC_RELATIVE64 || number == STN_UNDEF)
        return true;
    sim_symbol symbol;
    if (!sim_elf_symbol_at(elf, number, &symbol))
        return false;
    if (symbol.is_defined) {
        *address += base + symbol.value;
    } else if (!symbol.is_weak) {
        sim_set_error("code object: symbol %.80s is not defined", symbol.name);
        return false;
    }
    return true;
}

static bool relocate(const sim_elf *elf, const Elf64_Rela *r, uint8_t *block, uint64_t base)
{
    const uint32_t type = ELF64_R_TYPE(r->r_info);
    const size_t   bytes = relocation_bytes(type);
    uint64_t       value;
    if (type == RELOC_NONE)
        return true;
    if (bytes == 0) {
        sim_set_error("code object: relocation type %u is not supported", type);
        return false;
    }
    if (r->r_offset < elf->low || r->r_offset >= elf->high || elf->high - r->r_offset < bytes)
        return fail("a relocation outside of the image");
    if (!relocated_address(elf, r, base, &value))
        return false;
    const uint64_t place = base + r->r_offset;
    if (type == RELOC_REL32 || type == RELOC_REL32_LO || type == RELOC_REL32_HI || type == RELOC_REL64)
        value -= place;
    if (type == RELOC_ABS32_HI || type == RELOC_REL32_HI)
        value >>= 32;
    memcpy(block + (r->r_offset - elf->low), &value, bytes);
    return true;
}

static bool relocate_all(const sim_elf *elf, uint8_t *block)
{
    const uint64_t base = (uint64_t)(uintptr_t)block - elf->low;
    for (uint32_t i = 0; i < elf->header.e_shnum; i++) {
        Elf64_Shdr s;
        if (!section_at(elf, i, &s))
            return false;
        if ((s.sh_flags & SHF_ALLOC) == 0 || (s.sh_type != SHT_RELA && s.sh_type != SHT_REL))
            continue;
        if (s.sh_type == SHT_REL || s.sh_entsize != sizeof(Elf64_Rela) || !holds(elf, s.sh_offset, s.sh_size))
            return fail("a malformed table of relocations");
        for (uint64_t r = 0; r < s.sh_size / sizeof(Elf64_Rela); r++) {
            Elf64_Rela relocation;
            memcpy(&relocation, elf->bytes + s.sh_offset + r * sizeof relocation, sizeof relocation);
            if (!relocate(elf, &relocation, block, base))
                return false;
        }
    }
    return true;
}

bool sim_elf_load(const sim_elf *elf, uint8_t *block, void (*loaded)(void *context, uint8_t *at, size_t bytes),
                  void *context)
{
    for (uint32_t i = 0; i < elf->header.e_phnum; i++) {
        Elf64_Phdr s;
        if (!segment_at(elf, i, &s))
            return false;
        if (s.p_type != PT_LOAD || s.p_memsz == 0)
            continue;
        uint8_t *at = block + (s.p_vaddr - elf->low); /* in the block, in the file: measure_segments() */
        memcpy(at, elf->bytes + s.p_offset, (size_t)s.p_filesz);
        loaded(context, at, (size_t)s.p_memsz);
    }
    return relocate_all(elf, block);
}
