/* Code objects: what a linker made is read as llvm-readelf reads it; what is broken is refused in words. */
#include "testing.h"

#include "device.h"

#include <elf.h>
#include <inttypes.h>

/* Files
 * -----
 */
typedef struct file {
    uint8_t *bytes;
    size_t   size;
} file;

/* tests/sim/corpus: saxpy_*.co is clang-22 -O2's, stripped, of
 *     y[i] += a * x[i] for i < n, arguments y, x, a, n;
 * in code object versions 4, 5 and (no _v) 6, and in a bundle. reloc_gfx950.co is ld.lld-22's, of a kernel without
 * metadata, a table of pointers, and 100 zeros in .bss. literal_at_end_gfx950.co is damaged: LLVM alone crashes at it.
 * tests/fuzz_sim_object.c starts from all of them. */
static file read_corpus(const char *name)
{
    char        path[4096];
    const char *top = getenv("top_srcdir");
    snprintf(path, sizeof path, "%s/tests/sim/corpus/%s", top == NULL ? "." : top, name);
    FILE *from = fopen(path, "rb");
    ck_assert_msg(from != NULL, "%s cannot be read (top_srcdir names the source tree)", path);
    file f = { .bytes = malloc(65536) };
    f.size = fread(f.bytes, 1, 65536, from);
    fclose(from);
    ck_assert_uint_gt(f.size, sizeof(Elf64_Ehdr));
    return f;
}

static sim_device *device_of(sim_arch arch)
{
    const sim_options options = { .checks = SIM_CHECK_NONE };
    sim_device       *device = sim_device_create(arch, &options);
    ck_assert_msg(device != NULL, "%s", sim_last_error());
    return device;
}

static Elf64_Ehdr *header_of(file f)
{
    return (Elf64_Ehdr *)f.bytes;
}

static Elf64_Phdr *segment_of(file f, uint32_t type, int which)
{
    Elf64_Phdr *segment = (Elf64_Phdr *)(f.bytes + header_of(f)->e_phoff);
    for (int i = 0; i < header_of(f)->e_phnum; i++)
        if (segment[i].p_type == type && which-- == 0)
            return &segment[i];
    ck_abort_msg("no such segment");
    return NULL;
}

static Elf64_Shdr *section_of(file f, uint32_t type)
{
    Elf64_Shdr *section = (Elf64_Shdr *)(f.bytes + header_of(f)->e_shoff);
    for (int i = 0; i < header_of(f)->e_shnum; i++)
        if (section[i].sh_type == type)
            return &section[i];
    ck_abort_msg("no such section");
    return NULL;
}

/* The loaded object, of a device that lives as long. */
typedef struct loaded {
    file        f;
    sim_device *device;
    sim_object *object;
} loaded;

static loaded load(const char *name, sim_arch arch)
{
    loaded l = { .f = read_corpus(name), .device = device_of(arch) };
    l.object = sim_object_load(l.device, l.f.bytes, l.f.size);
    ck_assert_msg(l.object != NULL, "%s: %s", name, sim_last_error());
    return l;
}

static void unload(loaded *l)
{
    sim_object_unload(l->object);
    sim_device_destroy(l->device);
    free(l->f.bytes);
}

/* Kernels
 * -------
 * The numbers of llvm-readelf --notes and of the .amdhsa_ directives that llvm-objdump prints of .rodata.
 */
static const struct {
    const char *file, *name;
    sim_arch    arch;
    uint32_t    kernarg, lds, scratch, vgprs, agprs, sgprs, wave, group, arguments;
} kernels[] = {
    { "saxpy_gfx950.co", "saxpy", SIM_GFX950, 280, 0, 0, 8, 0, 16, 64, 1024, 17 },
    { "saxpy_gfx1250.co", "saxpy", SIM_GFX1250, 280, 0, 0, 16, 0, 106, 32, 1024, 17 },
    { "saxpy_v5_gfx950.co", "saxpy", SIM_GFX950, 280, 0, 0, 8, 0, 16, 64, 1024, 17 },
    { "saxpy_v4_gfx950.co", "saxpy", SIM_GFX950, 24, 0, 0, 8, 0, 16, 64, 1024, 4 }, /* group size from the packet */
    { "bundle_gfx950.co", "saxpy", SIM_GFX950, 280, 0, 0, 8, 0, 16, 64, 1024, 17 },
    /* next_free_vgpr 100 in blocks of 8, of which accum_offset 64 are v; next_free_sgpr 40 and 6 for VCC, FLAT_SCRATCH,
     * XNACK_MASK, in blocks of 16 */
    { "reloc_gfx950.co", "bare", SIM_GFX950, 24, 1280, 16, 64, 40, 48, 64, 1024, 0 },
};

START_TEST(kernel_is_described)
{
    loaded            l = load(kernels[_i].file, kernels[_i].arch);
    const sim_kernel *k = sim_object_kernel(l.object, kernels[_i].name);
    ck_assert_msg(k != NULL, "%s", sim_last_error());
    ck_assert_uint_eq(sim_object_kernel_count(l.object), 1);
    ck_assert_ptr_eq(sim_object_kernel_at(l.object, 0), k);
    ck_assert_ptr_null(sim_object_kernel_at(l.object, 1));
    ck_assert_str_eq(k->name, kernels[_i].name);
    ck_assert_ptr_eq(k->object, l.object);
    ck_assert_uint_eq(k->kernarg_bytes, kernels[_i].kernarg);
    ck_assert_uint_eq(k->lds_bytes, kernels[_i].lds);
    ck_assert_uint_eq(k->scratch_bytes, kernels[_i].scratch);
    ck_assert_uint_eq(k->vgprs, kernels[_i].vgprs);
    ck_assert_uint_eq(k->agprs, kernels[_i].agprs);
    ck_assert_uint_eq(k->sgprs, kernels[_i].sgprs);
    ck_assert_uint_eq(k->wave_size, kernels[_i].wave);
    ck_assert_uint_eq(k->max_group, kernels[_i].group);
    ck_assert_uint_eq(k->argument_count, kernels[_i].arguments);
    ck_assert_uint_eq(k->entry % 256, 0);
    ck_assert_ptr_eq(sim_kernel_of_descriptor(l.device, k->descriptor), k);
    ck_assert_ptr_null(sim_kernel_of_descriptor(l.device, k->descriptor + 64));
    ck_assert_ptr_null(sim_object_kernel(l.object, "nothing"));
    ck_assert_ptr_nonnull(strstr(sim_last_error(), "no kernel nothing"));
    ck_assert_msg(sim_code_at(sim_object_code(l.object), k->entry) != NULL, "%s", sim_last_error());
    unload(&l);
}
END_TEST

START_TEST(arguments_are_listed)
{
    static const struct {
        const char *kind;
        uint32_t    offset, bytes;
    } want[] = { { "global_buffer", 0, 8 },
                 { "global_buffer", 8, 8 },
                 { "by_value", 16, 4 },
                 { "by_value", 20, 4 },
                 { "hidden_block_count_x", 24, 4 },
                 { "hidden_block_count_y", 28, 4 },
                 { "hidden_block_count_z", 32, 4 },
                 { "hidden_group_size_x", 36, 2 },
                 { "hidden_group_size_y", 38, 2 } };
    loaded            l = load("saxpy_gfx950.co", SIM_GFX950);
    const sim_kernel *k = sim_object_kernel_at(l.object, 0);
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        ck_assert_str_eq(k->arguments[i].kind, want[i].kind);
        ck_assert_uint_eq(k->arguments[i].offset, want[i].offset);
        ck_assert_uint_eq(k->arguments[i].bytes, want[i].bytes);
        ck_assert_ptr_nonnull(k->arguments[i].name);
    }
    unload(&l);
}
END_TEST

/* 1000 x 3 work-items in groups of 256 x 2: three whole groups and 232 items, one whole group and 1 item. */
START_TEST(hidden_arguments_are_filled)
{
    loaded            l = load("saxpy_gfx950.co", SIM_GFX950);
    const sim_kernel *k = sim_object_kernel_at(l.object, 0);
    uint8_t           kernarg[280 + 8];
    memset(kernarg, 0xA5, sizeof kernarg);
    const sim_dispatch dispatch = { .kernel = k, .grid = { 1000, 3, 1 }, .group = { 256, 2, 1 } };
    sim_kernarg_fill(&dispatch, kernarg);
    const struct {
        uint32_t offset, bytes, value;
    } want[] = { { 24, 4, 3 },   { 28, 4, 1 }, { 32, 4, 1 }, { 36, 2, 256 }, { 38, 2, 2 }, { 40, 2, 1 },
                 { 42, 2, 232 }, { 44, 2, 1 }, { 46, 2, 0 }, { 64, 8, 0 },   { 88, 2, 2 } };
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        uint64_t got = 0;
        memcpy(&got, kernarg + want[i].offset, want[i].bytes);
        ck_assert_msg(got == want[i].value, "offset %u: %" PRIu64 ", wanted %u", want[i].offset, got, want[i].value);
    }
    for (int i = 0; i < 24; i++) /* the caller's */
        ck_assert_uint_eq(kernarg[i], 0xA5);
    for (size_t i = 280; i < sizeof kernarg; i++)
        ck_assert_uint_eq(kernarg[i], 0xA5);
    unload(&l);
}
END_TEST

/* Memory
 * ------
 */
static uint8_t *variable(loaded *l, const char *name, size_t want)
{
    void  *at;
    size_t bytes;
    ck_assert_msg(sim_object_variable(l->object, name, &at, &bytes), "%s", sim_last_error());
    ck_assert_uint_eq(bytes, want);
    void  *base;
    size_t whole;
    ck_assert_msg(sim_find(l->device, at, &base, &whole), "%s", sim_last_error());
    return at;
}

/* pointers = { counter + 4, hidden, absent }: R_AMDGPU_ABS64, RELATIVE64, and ABS64 of a weak symbol that nobody
 * defines. hidden follows pointers and holds 7. */
START_TEST(pointers_are_relocated)
{
    loaded         l = load("reloc_gfx950.co", SIM_GFX950);
    const uint8_t *counter = variable(&l, "counter", 8), *pointers = variable(&l, "pointers", 24);
    uint64_t       value[3], number;
    memcpy(&number, counter, 8);
    ck_assert_uint_eq(number, 42);
    memcpy(value, pointers, sizeof value);
    ck_assert_uint_eq(value[0], (uintptr_t)counter + 4);
    ck_assert_uint_eq(value[1], (uintptr_t)pointers + 24);
    ck_assert_int_eq(*(const int32_t *)(uintptr_t)value[1], 7);
    ck_assert_uint_eq(value[2], 0);
    const uint8_t *zeros = variable(&l, "zeros", 100);
    for (int i = 0; i < 100; i++)
        ck_assert_uint_eq(zeros[i], 0);
    void  *at;
    size_t bytes;
    ck_assert(!sim_object_variable(l.object, "bare.kd", &at, &bytes));
    ck_assert(!sim_object_variable(l.object, "absent", &at, &bytes));
    unload(&l);
}
END_TEST

/* Two objects of the same file are two; unloading one frees its memory and leaves the other. */
START_TEST(objects_are_independent)
{
    loaded      l = load("reloc_gfx950.co", SIM_GFX950);
    sim_object *second = sim_object_load(l.device, l.f.bytes, l.f.size);
    ck_assert_ptr_nonnull(second);
    const uint64_t descriptor = sim_object_kernel_at(second, 0)->descriptor;
    ck_assert_ptr_eq(sim_kernel_of_descriptor(l.device, descriptor)->object, second);
    sim_object_unload(second);
    ck_assert_ptr_null(sim_kernel_of_descriptor(l.device, descriptor));
    void  *base;
    size_t bytes;
    ck_assert(!sim_find(l.device, (void *)(uintptr_t)descriptor, &base, &bytes));
    ck_assert_uint_eq(*variable(&l, "counter", 8), 42);
    unload(&l);
}
END_TEST

/* Text of a kernel, as llvm-objdump 22 prints it. */
START_TEST(kernel_is_disassembled)
{
    loaded l = load("saxpy_gfx950.co", SIM_GFX950);
    char  *text = NULL;
    size_t bytes;
    FILE  *to = open_memstream(&text, &bytes);
    ck_assert(sim_disassemble(to, l.object, "saxpy"));
    ck_assert(!sim_disassemble(to, l.object, "nothing"));
    fclose(to);
    ck_assert_int_eq(strncmp(text, "saxpy:\n       0    s_load_dword s3, s[0:1], 0x24\n", 48), 0);
    ck_assert_ptr_nonnull(strstr(text, "\n      6c    v_fmac_f32_e32 v5, s4, v4\n"));
    ck_assert_str_eq(text + bytes - 21, "      78    s_endpgm\n");
    free(text);
    unload(&l);
}
END_TEST

/* Bundles
 * -------
 */
static void put(file *f, const void *bytes, size_t size)
{
    memcpy(f->bytes + f->size, bytes, size);
    f->size += size;
}

static void put64(file *f, uint64_t value)
{
    put(f, &value, sizeof value);
}

/* As clang-offload-bundler lays one out: an empty host entry, an entry of another GPU, ours behind it. */
static file bundle_of(file elf, const char *name)
{
    static const char *const others[] = { "host-x86_64-unknown-linux--", "hipv4-amdgcn-amd-amdhsa--gfx942" };
    const uint64_t           start = 4096;
    file                     f = { .bytes = calloc(1, start + elf.size) };
    put(&f, "__CLANG_OFFLOAD_BUNDLE__", 24);
    put64(&f, 3);
    for (int i = 0; i < 2; i++) {
        put64(&f, start);
        put64(&f, 0);
        put64(&f, strlen(others[i]));
        put(&f, others[i], strlen(others[i]));
    }
    put64(&f, start);
    put64(&f, elf.size);
    put64(&f, strlen(name));
    put(&f, name, strlen(name));
    memcpy(f.bytes + start, elf.bytes, elf.size);
    f.size = start + elf.size;
    return f;
}

static const struct {
    const char *name, *words; /* words: of the error; NULL: it loads */
} bundles[] = {
    { "hipv4-amdgcn-amd-amdhsa--gfx950", NULL },
    { "hipv4-amdgcn-amd-amdhsa--gfx950:sramecc+:xnack-", NULL },
    { "hipv4-amdgcn-amd-amdhsa--gfx9500", "nothing for gfx950" },
    { "hipv4-amdgcn-amd-amdhsa--gfx95", "nothing for gfx950" },
};

START_TEST(bundle_is_opened)
{
    file        elf = read_corpus("saxpy_gfx950.co"), f = bundle_of(elf, bundles[_i].name);
    sim_device *device = device_of(SIM_GFX950);
    sim_object *object = sim_object_load(device, f.bytes, f.size);
    if (bundles[_i].words == NULL)
        ck_assert_msg(object != NULL, "%s", sim_last_error());
    else
        ck_assert(object == NULL && strstr(sim_last_error(), bundles[_i].words) != NULL);
    sim_device_destroy(device); /* unloads */
    free(f.bytes);
    free(elf.bytes);
}
END_TEST

/* Broken files
 * ------------
 * Each breaks one thing of a good file.
 */
static void break_magic(file *f)
{
    f->bytes[0] = 'e';
}

static void break_class(file *f)
{
    f->bytes[EI_CLASS] = ELFCLASS32;
}

static void break_order(file *f)
{
    f->bytes[EI_DATA] = ELFDATA2MSB;
}

static void break_machine(file *f)
{
    header_of(*f)->e_machine = EM_X86_64;
}

static void break_osabi(file *f)
{
    f->bytes[EI_OSABI] = ELFOSABI_LINUX;
}

static void break_version_low(file *f)
{
    f->bytes[EI_ABIVERSION] = 1; /* code object 3 */
}

static void break_version_high(file *f)
{
    f->bytes[EI_ABIVERSION] = 5;
}

static void break_mach(file *f)
{
    header_of(*f)->e_flags = (header_of(*f)->e_flags & ~0xFFu) | 0x4C; /* gfx942 */
}

static void break_type(file *f)
{
    header_of(*f)->e_type = ET_REL;
}

static void break_program_headers(file *f)
{
    header_of(*f)->e_phoff = f->size - 8;
}

static void break_program_headers_far(file *f)
{
    header_of(*f)->e_phoff = UINT64_MAX - 16;
}

static void break_section_headers(file *f)
{
    header_of(*f)->e_shoff = UINT64_MAX - 16;
}

static void break_entry_size(file *f)
{
    header_of(*f)->e_phentsize = 8;
}

static void break_segment_end(file *f)
{
    segment_of(*f, PT_LOAD, 1)->p_offset = f->size;
}

static void break_segment_size(file *f)
{
    segment_of(*f, PT_LOAD, 1)->p_memsz = UINT64_MAX;
}

static void break_segment_file(file *f)
{
    segment_of(*f, PT_LOAD, 1)->p_memsz = 1;
}

static void break_segment_address(file *f)
{
    segment_of(*f, PT_LOAD, 1)->p_vaddr = UINT64_MAX - 64;
}

static void break_distance(file *f)
{
    segment_of(*f, PT_LOAD, 2)->p_vaddr = (uint64_t)1 << 40;
}

static void break_code(file *f)
{
    segment_of(*f, PT_LOAD, 1)->p_flags = PF_R;
}

static void break_symbols(file *f)
{
    section_of(*f, SHT_DYNSYM)->sh_type = SHT_PROGBITS;
}

static void break_symbols_end(file *f)
{
    section_of(*f, SHT_DYNSYM)->sh_size = (uint64_t)1 << 40;
}

static void break_strings(file *f)
{
    section_of(*f, SHT_DYNSYM)->sh_link = 0xFFFF;
}

static void break_strings_size(file *f)
{
    Elf64_Shdr *section = (Elf64_Shdr *)(f->bytes + header_of(*f)->e_shoff);
    section[section_of(*f, SHT_DYNSYM)->sh_link].sh_size = 1;
}

static Elf64_Sym *symbol_of(file f, int which)
{
    return (Elf64_Sym *)(f.bytes + section_of(f, SHT_DYNSYM)->sh_offset) + which;
}

static void break_symbol_value(file *f)
{
    symbol_of(*f, 3)->st_value = (uint64_t)1 << 50;
}

static void break_symbol_size(file *f)
{
    symbol_of(*f, 6)->st_size = (uint64_t)1 << 50;
}

static Elf64_Rela *relocation_of(file f, int which)
{
    return (Elf64_Rela *)(f.bytes + section_of(f, SHT_RELA)->sh_offset) + which;
}

static void break_relocation_type(file *f)
{
    relocation_of(*f, 0)->r_info = ELF64_R_INFO(0, 7); /* R_AMDGPU_GOTPCREL: a linker's to resolve */
}

static void break_relocation_place(file *f)
{
    relocation_of(*f, 0)->r_offset = (uint64_t)1 << 40;
}

static void break_relocation_end(file *f)
{
    relocation_of(*f, 0)->r_offset = 0x3540 - 4; /* the image ends at .bss: 0x34b8 + 0x88 */
}

static void break_relocation_symbol(file *f)
{
    relocation_of(*f, 1)->r_info = ELF64_R_INFO(99, 3);
}

static void break_weak(file *f)
{
    symbol_of(*f, 1)->st_info = ELF64_ST_INFO(STB_GLOBAL, STT_NOTYPE);
}

static void break_relocation_entries(file *f)
{
    section_of(*f, SHT_RELA)->sh_entsize = 16;
}

/* The descriptor of reloc_gfx950.co is symbol 3. */
static uint8_t *descriptor_of(file f)
{
    return f.bytes + symbol_of(f, 3)->st_value; /* addresses and offsets are the same in its segment */
}

static void break_entry(file *f)
{
    const int64_t far = (int64_t)1 << 40;
    memcpy(descriptor_of(*f) + 16, &far, sizeof far);
}

static void break_entry_alignment(file *f)
{
    segment_of(*f, PT_LOAD, 1)->p_vaddr -= 4; /* the code begins earlier, and the entry with it */
    int64_t entry;
    memcpy(&entry, descriptor_of(*f) + 16, sizeof entry);
    entry -= 4;
    memcpy(descriptor_of(*f) + 16, &entry, sizeof entry);
}

static void break_wave(file *f)
{
    descriptor_of(*f)[57] |= 4; /* bit 10 of the properties: wave32 */
}

/* The contents of the metadata's note: 12 bytes of header and "AMDGPU\0" padded to 8 stand before. */
static uint8_t *metadata_of(file f)
{
    return f.bytes + segment_of(f, PT_NOTE, 0)->p_offset + 20;
}

static void break_note(file *f)
{
    const uint32_t size = 1 << 30;
    memcpy(f->bytes + segment_of(*f, PT_NOTE, 0)->p_offset + 4, &size, sizeof size);
}

static void break_note_segment(file *f)
{
    segment_of(*f, PT_NOTE, 0)->p_filesz = (uint64_t)1 << 40;
}

static void break_metadata_root(file *f)
{
    metadata_of(*f)[0] = 0x01; /* a number */
}

static void break_metadata_byte(file *f)
{
    metadata_of(*f)[0] = 0xC1; /* begins nothing */
}

static void break_metadata_count(file *f)
{
    const uint8_t map32[] = { 0xDF, 0xFF, 0xFF, 0xFF, 0xFF };
    memcpy(metadata_of(*f), map32, sizeof map32);
}

/* Replaces a string in the metadata by one of the same length. */
static void replace(file *f, const char *old, const char *new)
{
    const uint8_t *end = f->bytes + f->size - strlen(old);
    for (uint8_t *at = metadata_of(*f); at < end; at++)
        if (memcmp(at, old, strlen(old)) == 0) {
            memcpy(at, new, strlen(old));
            return;
        }
    ck_abort_msg("no %s", old);
}

static void break_metadata_symbol(file *f)
{
    replace(f, "saxpy.kd", "saxpy.dk");
}

static void break_metadata_name(file *f)
{
    replace(f, ".symbol", ".sybmol");
}

static void break_metadata_kind(file *f)
{
    replace(f, ".value_kind", ".value_dnik");
}

/* No bytes of arguments, by the descriptor and by the metadata. */
static void break_kernarg(file *f)
{
    int i = 0;
    while (symbol_of(*f, i)->st_size != 64)
        i++;
    memset(f->bytes + symbol_of(*f, i)->st_value + 8, 0, 4);
    replace(f, ".kernarg_segment_size", ".kernarg_segment_ezis");
}

static const struct {
    const char *file, *words;
    void (*damage)(file *);
    sim_arch arch;
} broken[] = {
    { "saxpy_gfx950.co", "not an ELF file", break_magic, SIM_GFX950 },
    { "saxpy_gfx950.co", "not a little-endian ELF64", break_class, SIM_GFX950 },
    { "saxpy_gfx950.co", "not a little-endian ELF64", break_order, SIM_GFX950 },
    { "saxpy_gfx950.co", "for machine 62", break_machine, SIM_GFX950 },
    { "saxpy_gfx950.co", "OS ABI 3", break_osabi, SIM_GFX950 },
    { "saxpy_gfx950.co", "ABI version 1", break_version_low, SIM_GFX950 },
    { "saxpy_gfx950.co", "ABI version 5", break_version_high, SIM_GFX950 },
    { "saxpy_gfx950.co", "mach 0x4c", break_mach, SIM_GFX950 },
    { "saxpy_gfx1250.co", "mach 0x49", NULL, SIM_GFX950 },
    { "saxpy_gfx950.co", "the device is gfx1250", NULL, SIM_GFX1250 },
    { "saxpy_gfx950.co", "not linked yet", break_type, SIM_GFX950 },
    { "saxpy_gfx950.co", "a program header lies beyond", break_program_headers, SIM_GFX950 },
    { "saxpy_gfx950.co", "a program header lies beyond", break_program_headers_far, SIM_GFX950 },
    { "saxpy_gfx950.co", "a program header lies beyond", break_entry_size, SIM_GFX950 },
    { "saxpy_gfx950.co", "a section header lies beyond", break_section_headers, SIM_GFX950 },
    { "saxpy_gfx950.co", "a segment lies beyond", break_segment_end, SIM_GFX950 },
    { "saxpy_gfx950.co", "a segment lies beyond", break_segment_file, SIM_GFX950 },
    { "saxpy_gfx950.co", "a segment is too large", break_segment_size, SIM_GFX950 },
    { "saxpy_gfx950.co", "a segment is too large", break_segment_address, SIM_GFX950 },
    { "saxpy_gfx950.co", "the image is too large", break_distance, SIM_GFX950 },
    { "saxpy_gfx950.co", "no segment with code", break_code, SIM_GFX950 },
    { "saxpy_gfx950.co", "no table of dynamic symbols", break_symbols, SIM_GFX950 },
    { "saxpy_gfx950.co", "a malformed table of symbols", break_symbols_end, SIM_GFX950 },
    { "saxpy_gfx950.co", "has no strings", break_strings, SIM_GFX950 },
    { "saxpy_gfx950.co", "beyond the strings", break_strings_size, SIM_GFX950 },
    { "reloc_gfx950.co", "symbol bare.kd lies outside", break_symbol_value, SIM_GFX950 },
    { "reloc_gfx950.co", "symbol zeros lies outside", break_symbol_size, SIM_GFX950 },
    { "reloc_gfx950.co", "relocation type 7 is not supported", break_relocation_type, SIM_GFX950 },
    { "reloc_gfx950.co", "a relocation outside of the image", break_relocation_place, SIM_GFX950 },
    { "reloc_gfx950.co", "a relocation outside of the image", break_relocation_end, SIM_GFX950 },
    { "reloc_gfx950.co", "a symbol that is not in the table", break_relocation_symbol, SIM_GFX950 },
    { "reloc_gfx950.co", "symbol absent is not defined", break_weak, SIM_GFX950 },
    { "reloc_gfx950.co", "a malformed table of relocations", break_relocation_entries, SIM_GFX950 },
    { "reloc_gfx950.co", "the entry of bare is not in the code", break_entry, SIM_GFX950 },
    { "reloc_gfx950.co", "the entry of bare is not aligned", break_entry_alignment, SIM_GFX950 },
    { "reloc_gfx950.co", "bare wants waves of 32 lanes", break_wave, SIM_GFX950 },
    { "saxpy_gfx950.co", "a note is cut off", break_note, SIM_GFX950 },
    { "saxpy_gfx950.co", "notes lie beyond", break_note_segment, SIM_GFX950 },
    { "saxpy_gfx950.co", "a map is missing", break_metadata_root, SIM_GFX950 },
    { "saxpy_gfx950.co", "a byte that begins nothing", break_metadata_byte, SIM_GFX950 },
    { "saxpy_gfx950.co", "metadata: cut off", break_metadata_count, SIM_GFX950 },
    { "saxpy_gfx950.co", "saxpy.dk that the metadata names is not there", break_metadata_symbol, SIM_GFX950 },
    { "saxpy_gfx950.co", "a kernel without .name or .symbol", break_metadata_name, SIM_GFX950 },
    { "saxpy_gfx950.co", "an argument without .value_kind", break_metadata_kind, SIM_GFX950 },
    { "saxpy_gfx950.co", "argument 0 of saxpy lies outside of its 0 bytes", break_kernarg, SIM_GFX950 },
};

START_TEST(broken_file_is_refused)
{
    file f = read_corpus(broken[_i].file);
    if (broken[_i].damage != NULL)
        broken[_i].damage(&f);
    sim_device *device = device_of(broken[_i].arch);
    ck_assert_msg(sim_object_load(device, f.bytes, f.size) == NULL, "loads, wanted \"%s\"", broken[_i].words);
    ck_assert_msg(strstr(sim_last_error(), broken[_i].words) != NULL, "\"%s\" does not hold \"%s\"", sim_last_error(),
                  broken[_i].words);
    sim_device_destroy(device);
    free(f.bytes);
}
END_TEST

/* Every prefix of a file, in memory that ends where it does. The headers of sections come last, so all are refused. */
START_TEST(prefix_is_refused)
{
    file        f = read_corpus("saxpy_gfx950.co");
    sim_device *device = device_of(SIM_GFX950);
    for (size_t n = 0; n < f.size; n++) {
        uint8_t *exact = malloc(n + (n == 0));
        memcpy(exact, f.bytes, n);
        ck_assert_msg(sim_object_load(device, exact, n) == NULL, "%zu of %zu bytes load", n, f.size);
        ck_assert_uint_gt(strlen(sim_last_error()), 0);
        free(exact);
    }
    sim_device_destroy(device);
    free(f.bytes);
}
END_TEST

static void fill(TCase *tcase)
{
    tcase_add_loop_test(tcase, kernel_is_described, 0, sizeof kernels / sizeof kernels[0]);
    tcase_add_test(tcase, arguments_are_listed);
    tcase_add_test(tcase, hidden_arguments_are_filled);
    tcase_add_test(tcase, pointers_are_relocated);
    tcase_add_test(tcase, objects_are_independent);
    tcase_add_test(tcase, kernel_is_disassembled);
    tcase_add_loop_test(tcase, bundle_is_opened, 0, sizeof bundles / sizeof bundles[0]);
    tcase_add_loop_test(tcase, broken_file_is_refused, 0, sizeof broken / sizeof broken[0]);
    tcase_add_test(tcase, prefix_is_refused);
}

int main(void)
{
    return testing_main("sim_object", fill);
}
