/* etalon-sim: runs kernels for gfx950 and gfx1250 on a CPU, and reports what hardware would punish. */
#include "random.h"
#include "../sim/sim.h"

#include <etalon/version.h>

#include <elf.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Exit codes beside 0. */
enum { EXIT_FINDINGS = 1, EXIT_BAD = 2 };

static const char run_help[] =
    "etalon-sim run OBJECT --kernel NAME --grid X[,Y[,Z]] --block X[,Y[,Z]] [--arg ARGUMENT]... [--lds BYTES]\n"
    "               [--out NAME=FILE]... [--print NAME:TYPE[:COUNT]]... [--check all|none|LIST] [--schedules N]\n"
    "               [--seed S] [--threads N] [--limit N] [--arch ARCH] [--json]\n"
    "\n"
    "Launches a kernel of a code object as hipModuleLaunchKernel does, and prints what was found.\n"
    "\n"
    "  --kernel NAME     may be left out where the object has one\n"
    "  --grid X,Y,Z      workgroups; what is left out is 1\n"
    "  --block X,Y,Z     work-items of a workgroup\n"
    "  --arg ARGUMENT    in the kernel's order; hidden arguments are filled in:\n"
    "      TYPE:VALUE            i8 i16 i32 i64 u8 u16 u32 u64 f32 f64, as i32:-5 or u64:0x10 or f32:0.5\n"
    "      hex:BYTES             the bytes of a struct, as hex:0000803f\n"
    "      buf:NAME:BYTES        the address of a new buffer; BYTES may end in K, M or G. Nobody has written it\n"
    "      buf:NAME:BYTES=FILL   zero; ramp[:TYPE]: 0, 1, 2 ... (u32); random[:SEED[:TYPE]]: bytes, or floats in\n"
    "                            [-1, 1) and integers; TYPE:VALUE in each element; file:PATH\n"
    "      buf:NAME[+BYTES]      the address of a buffer that an argument before made\n"
    "  --lds BYTES       dynamic LDS\n"
    "  --out NAME=FILE   writes a buffer afterwards\n"
    "  --print NAME:TYPE[:COUNT]  prints the first elements of a buffer afterwards (16)\n"
    "  --check ...       all (default), none, or names joined by commas, a minus before one to leave it out; list\n"
    "                    prints them\n"
    "  --schedules N     runs N times in different orders (1)\n"
    "  --seed S          the first order: 0 (default) waves in order and memory at once, else drawn from S\n"
    "  --threads N       threads, 0 (default) for as many as there are cores\n"
    "  --limit N         instructions of a wave after which it counts as running for ever\n"
    "  --arch ARCH       gfx950 or gfx1250, of a bundle that has both\n"
    "  --json            findings as one JSON object a line\n"
    "\n"
    "Exit: 0 nothing found, 1 findings, 2 bad usage, an object or an instruction that is not supported, a fault.\n";

static const char report_help[] =
    "etalon-sim report OBJECT --kernel NAME --grid X[,Y[,Z]] --block X[,Y[,Z]] [--arg ARGUMENT]... [--per-pc] ...\n"
    "\n"
    "Launches as run does, and prints counters and an estimate of what bounds the kernel: an estimate, not a\n"
    "measurement. Options as those of run, but that nothing is checked unless --check says so.\n"
    "\n"
    "  --per-pc          also one line an instruction\n";

static const char disasm_help[] = "etalon-sim disasm OBJECT [--kernel NAME] [--arch ARCH]\n"
                                  "\n"
                                  "Prints the instructions of a kernel, or of all, as the simulator reads them.\n";

static const char list_help[] =
    "etalon-sim list OBJECT [--arch ARCH] [--json]\n"
    "\n"
    "Prints the kernels of an object: registers, LDS, scratch, largest workgroup, arguments.\n";

static void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void complain(const char *format, ...)
{
    va_list list;
    fputs("etalon-sim: ", stderr);
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
}

/* What the command line says
 * --------------------------
 */
enum { MOST = 64 }; /* of arguments, and of the buffers to write or to print */

typedef struct request {
    const char *object, *kernel, *arch;
    uint32_t    grid[3], block[3];
    bool        has_grid, has_block, per_pc, json, report;
    uint32_t    lds;
    const char *argument[MOST], *out[MOST], *print[MOST];
    int         arguments, outs, prints;
    uint64_t    schedules;
    sim_options options;
} request;

static bool parse_number(const char *text, uint64_t most, uint64_t *to)
{
    char *end;
    errno = 0;
    *to = strtoull(text, &end, 0);
    return end != text && *end == '\0' && errno == 0 && strchr(text, '-') == NULL && *to <= most;
}

static bool take_number(const char *option, const char *text, uint64_t least, uint64_t most, uint64_t *to)
{
    if (parse_number(text, most, to) && *to >= least)
        return true;
    complain("--%s: \"%s\", expected a number from %" PRIu64 " to %" PRIu64, option, text, least, most);
    return false;
}

static bool parse_extents(const char *text, uint32_t to[3])
{
    char copy[64], *at = copy;
    if (strlen(text) >= sizeof copy)
        return false;
    strcpy(copy, text);
    to[0] = to[1] = to[2] = 1;
    for (int n = 0; at != NULL; n++) {
        uint64_t x;
        if (n == 3 || !parse_number(strsep(&at, ","), UINT32_MAX, &x) || x == 0)
            return false;
        to[n] = (uint32_t)x;
    }
    return true;
}

static bool take_extents(const char *option, const char *text, uint32_t to[3])
{
    if (parse_extents(text, to))
        return true;
    complain("--%s: \"%s\", expected X, X,Y or X,Y,Z with numbers from 1 to %" PRIu32, option, text, UINT32_MAX);
    return false;
}

static bool take_text(const char *option, const char *text, const char **list, int *count)
{
    if (*count < MOST) {
        list[(*count)++] = text;
        return true;
    }
    complain("--%s %s: given more than %d times", option, text, MOST);
    return false;
}

static bool take_checks(const char *text, uint32_t *checks)
{
    if (sim_checks_of_names(text, checks))
        return true;
    complain("--check: %s", sim_last_error());
    return false;
}

/* Types and numbers
 * -----------------
 */
typedef enum type_kind { SIGNED, UNSIGNED, FLOAT } type_kind;

typedef struct type {
    char      name[4];
    type_kind kind;
    size_t    bytes;
} type;

static const type types[] = {
    { "i8", SIGNED, 1 },    { "i16", SIGNED, 2 },   { "i32", SIGNED, 4 },   { "i64", SIGNED, 8 }, { "u8", UNSIGNED, 1 },
    { "u16", UNSIGNED, 2 }, { "u32", UNSIGNED, 4 }, { "u64", UNSIGNED, 8 }, { "f32", FLOAT, 4 },  { "f64", FLOAT, 8 },
};

static const type *find_type(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strlen(types[i].name) == length && memcmp(types[i].name, name, length) == 0)
            return &types[i];
    return NULL;
}

static bool put_float(const type *t, double x, void *to)
{
    const float narrow = (float)x;
    memcpy(to, t->bytes == 4 ? (const void *)&narrow : &x, t->bytes);
    return true;
}

static bool put_value(const type *t, const char *text, void *to)
{
    char *end;
    errno = 0;
    if (t->kind == FLOAT) {
        const double x = strtod(text, &end);
        return end != text && *end == '\0' && put_float(t, x, to);
    }
    const unsigned bits = 8 * (unsigned)t->bytes;
    uint64_t       x;
    if (t->kind == SIGNED) {
        const int64_t y = strtoll(text, &end, 0), most = INT64_MAX >> (64 - bits);
        if (y < -most - 1 || y > most)
            return false;
        x = (uint64_t)y;
    } else {
        x = strtoull(text, &end, 0);
        if (strchr(text, '-') != NULL || x > UINT64_MAX >> (64 - bits))
            return false;
    }
    memcpy(to, &x, t->bytes); /* little endian, as the GPU and every host that this runs on */
    return end != text && *end == '\0' && errno == 0;
}

static void print_value(const type *t, const void *at)
{
    if (t->kind == FLOAT) {
        float  narrow;
        double wide;
        memcpy(t->bytes == 4 ? (void *)&narrow : &wide, at, t->bytes);
        printf(" %.9g", t->bytes == 4 ? (double)narrow : wide);
        return;
    }
    uint64_t x = 0;
    memcpy(&x, at, t->bytes);
    const unsigned unused = 64 - 8 * (unsigned)t->bytes;
    if (t->kind == SIGNED)
        printf(" %" PRId64, (int64_t)(x << unused) >> unused);
    else
        printf(" %" PRIu64, x);
}

static bool parse_bytes(const char *text, uint64_t *to)
{
    static const char units[] = "KMG";
    char              digits[32];
    const size_t      length = strlen(text);
    if (length == 0 || length >= sizeof digits)
        return false;
    memcpy(digits, text, length + 1);
    const char *unit = strchr(units, digits[length - 1]);
    if (unit != NULL)
        digits[length - 1] = '\0';
    const int shift = unit == NULL ? 0 : 10 * (int)(unit - units + 1);
    if (!parse_number(digits, UINT64_MAX >> shift, to))
        return false;
    *to <<= shift;
    return *to > 0;
}

/* Files
 * -----
 */
/* To the end, whatever it is: a pipe has no size, and a directory claims one. */
static void *read_file(const char *path, size_t *size)
{
    FILE  *file = fopen(path, "rbe");
    char  *bytes = NULL;
    size_t room = 0;
    bool   ok = file != NULL;
    for (*size = 0; ok && feof(file) == 0;) {
        if (*size == room) {
            room = room == 0 ? 1 << 16 : 2 * room;
            char *grown = realloc(bytes, room);
            ok = grown != NULL;
            bytes = ok ? grown : bytes;
        }
        if (ok)
            *size += fread(bytes + *size, 1, room - *size, file);
        ok = ok && ferror(file) == 0;
    }
    if (!ok) {
        complain("%s: %s", path, strerror(errno));
        free(bytes);
        bytes = NULL;
    }
    if (file != NULL)
        fclose(file);
    return bytes;
}

static bool write_file(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wbe");
    bool  ok = file != NULL && fwrite(bytes, 1, size, file) == size;
    if (file != NULL)
        ok = fclose(file) == 0 && ok;
    if (!ok)
        complain("%s: %s", path, strerror(errno));
    return ok;
}

/* The object and its kernel
 * -------------------------
 */
typedef struct image {
    void    *bytes;
    size_t   size;
    sim_arch arch;
} image;

/* By e_flags of an ELF file. A bundle is tried as either. */
static bool find_arch(const char *path, image *im)
{
    enum { MACHINE = 0xFF, GFX950 = 0x4F, GFX1250 = 0x49 };
    Elf64_Ehdr header;
    if (im->size >= sizeof header && memcmp(im->bytes, ELFMAG, SELFMAG) == 0) {
        memcpy(&header, im->bytes, sizeof header);
        const unsigned machine = header.e_flags & MACHINE;
        im->arch = machine == GFX1250 ? SIM_GFX1250 : SIM_GFX950;
        if (header.e_machine == 224 /* EM_AMDGPU */ && (machine == GFX950 || machine == GFX1250))
            return true;
        complain("%s: an ELF file of machine %u, flags 0x%x; expected AMDGPU, gfx950 or gfx1250", path,
                 header.e_machine, header.e_flags);
        return false;
    }
    int found = 0;
    for (int a = 0; a < SIM_ARCHS; a++) {
        sim_device *device = sim_device_create((sim_arch)a, &(sim_options){ 0 });
        sim_object *object = device == NULL ? NULL : sim_object_load(device, im->bytes, im->size);
        if (object != NULL) {
            im->arch = (sim_arch)a;
            found++;
            sim_object_unload(object);
        }
        if (device != NULL)
            sim_device_destroy(device);
    }
    if (found == 0)
        complain("%s: %s", path, sim_last_error());
    else if (found > 1)
        complain("%s: has code for gfx950 and gfx1250: say which with --arch", path);
    return found == 1;
}

static bool open_image(const request *r, image *im)
{
    *im = (image){ 0 };
    im->bytes = read_file(r->object, &im->size);
    if (im->bytes == NULL)
        return false;
    if (r->arch != NULL && !sim_arch_of_name(r->arch, &im->arch)) {
        complain("--arch: %s", sim_last_error());
        return false;
    }
    return r->arch != NULL || find_arch(r->object, im);
}

static sim_object *load_image(const request *r, const image *im, sim_device **device)
{
    sim_object *object = NULL;
    *device = sim_device_create(im->arch, &r->options);
    if (*device != NULL)
        object = sim_object_load(*device, im->bytes, im->size);
    if (object == NULL)
        complain("%s: %s", r->object, sim_last_error());
    return object;
}

static const sim_kernel *find_kernel(const request *r, const sim_object *object)
{
    const uint32_t    count = sim_object_kernel_count(object);
    const sim_kernel *k = NULL;
    if (r->kernel != NULL)
        k = sim_object_kernel(object, r->kernel);
    else if (count == 1)
        k = sim_object_kernel_at(object, 0);
    if (k != NULL)
        return k;
    if (r->kernel != NULL)
        complain("%s: no kernel is named \"%s\"", r->object, r->kernel);
    else
        complain("%s: has %" PRIu32 " kernels: say which with --kernel", r->object, count);
    for (uint32_t i = 0; i < count; i++)
        fprintf(stderr, "  %s\n", sim_object_kernel_at(object, i)->name);
    return NULL;
}

/* Arguments
 * ---------
 */
typedef struct buffer {
    char   name[40];
    char  *at; /* in the device's memory */
    size_t bytes;
} buffer;

typedef struct launch {
    const request *request;
    sim_device    *device;
    buffer         buffer[MOST];
    int            buffers;
} launch;

static buffer *find_buffer(launch *l, const char *name, size_t length)
{
    for (int i = 0; i < l->buffers; i++)
        if (strlen(l->buffer[i].name) == length && memcmp(l->buffer[i].name, name, length) == 0)
            return &l->buffer[i];
    return NULL;
}

static void ramp(const type *t, char *to, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (t->kind == FLOAT)
            put_float(t, (double)i, to + i * t->bytes);
        else
            memcpy(to + i * t->bytes, &(uint64_t){ i }, t->bytes);
    }
}

static void randomise(const type *t, uint64_t seed, char *to, size_t count)
{
    random_state r = random_seed(seed);
    for (size_t i = 0; i < count; i++) {
        if (t->kind == FLOAT)
            put_float(t, 2 * random_uniform(&r) - 1, to + i * t->bytes);
        else
            memcpy(to + i * t->bytes, &(uint64_t){ random_bits(&r) }, t->bytes);
    }
}

static bool fill_from_file(const char *path, buffer *b)
{
    size_t size;
    char  *bytes = read_file(path, &size);
    if (bytes == NULL)
        return false;
    const bool ok = size == b->bytes;
    if (ok)
        memcpy(b->at, bytes, size);
    else
        complain("%s: %zu bytes, expected the %zu of buffer %s", path, size, b->bytes, b->name);
    free(bytes);
    return ok;
}

/* "random", "random:SEED" or "random:SEED:TYPE", the text behind the word. */
static bool fill_random(const char *text, buffer *b)
{
    const type *t = find_type("u8", 2);
    uint64_t    seed = 1;
    if (*text == ':') {
        char        number[32];
        const char *rest = strchr(++text, ':');
        const int   length = rest == NULL ? (int)strlen(text) : (int)(rest - text);
        snprintf(number, sizeof number, "%.*s", length, text);
        if (!parse_number(number, UINT64_MAX, &seed))
            return false;
        text += length;
        if (rest != NULL && (t = find_type(rest + 1, strlen(rest + 1))) == NULL)
            return false;
        text += strlen(text);
    }
    if (*text != '\0' || b->bytes % t->bytes != 0)
        return false;
    randomise(t, seed, b->at, b->bytes / t->bytes);
    return true;
}

static bool fill_ramp(const char *text, buffer *b)
{
    const type *t = *text == ':' ? find_type(text + 1, strlen(text + 1)) : find_type("u32", 3);
    if ((*text != ':' && *text != '\0') || t == NULL || b->bytes % t->bytes != 0)
        return false;
    ramp(t, b->at, b->bytes / t->bytes);
    return true;
}

static bool fill_value(const char *text, buffer *b)
{
    const char *colon = strchr(text, ':');
    const type *t = colon == NULL ? NULL : find_type(text, (size_t)(colon - text));
    if (t == NULL || b->bytes % t->bytes != 0 || !put_value(t, colon + 1, b->at))
        return false;
    for (size_t i = t->bytes; i < b->bytes; i += t->bytes)
        memcpy(b->at + i, b->at, t->bytes);
    return true;
}

static bool fill_buffer(launch *l, const char *argument, const char *fill, buffer *b)
{
    bool ok;
    if (strncmp(fill, "file:", 5) == 0) {
        if (!fill_from_file(fill + 5, b))
            return false;
        ok = true;
    } else if (strcmp(fill, "zero") == 0) {
        memset(b->at, 0, b->bytes);
        ok = true;
    } else if (strncmp(fill, "ramp", 4) == 0) {
        ok = fill_ramp(fill + 4, b);
    } else if (strncmp(fill, "random", 6) == 0) {
        ok = fill_random(fill + 6, b);
    } else {
        ok = fill_value(fill, b);
    }
    if (!ok)
        complain("--arg %s: expected zero, ramp[:TYPE], random[:SEED[:TYPE]], file:PATH or TYPE:VALUE behind =, and a "
                 "size that is a multiple of the type's",
                 argument);
    else
        sim_mark_written(l->device, b->at, b->bytes);
    return ok;
}

/* "NAME", "NAME+OFFSET", "NAME:BYTES" or "NAME:BYTES=FILL": the address. */
static bool make_buffer(launch *l, const char *argument, const char *text, uint64_t *address)
{
    const size_t length = strcspn(text, ":+=");
    buffer      *b = find_buffer(l, text, length);
    uint64_t     bytes = 0;
    if (text[length] != ':') {
        const bool ok =
            b != NULL && text[length] != '=' && (text[length] == '\0' || parse_bytes(text + length + 1, &bytes));
        if (!ok)
            complain("--arg %s: expected the name of a buffer before, or buf:NAME:BYTES", argument);
        else
            *address = (uint64_t)(uintptr_t)b->at + bytes;
        return ok;
    }
    const char  *size = text + length + 1, *equals = strchr(size, '=');
    const size_t digits = equals == NULL ? strlen(size) : (size_t)(equals - size);
    char         number[32];
    snprintf(number, sizeof number, "%.*s", (int)(digits < sizeof number ? digits : 0), size);
    if (b != NULL || length == 0 || length >= sizeof b->name || !parse_bytes(number, &bytes)) {
        complain("--arg %s: expected buf:NAME:BYTES with a new name of less than %zu letters", argument,
                 sizeof b->name);
        return false;
    }
    b = &l->buffer[l->buffers];
    memcpy(b->name, text, length);
    b->name[length] = '\0';
    b->bytes = bytes;
    b->at = sim_allocate(l->device, bytes, b->name);
    if (b->at == NULL) {
        complain("--arg %s: %s", argument, sim_last_error());
        return false;
    }
    l->buffers++;
    *address = (uint64_t)(uintptr_t)b->at;
    return equals == NULL || fill_buffer(l, argument, equals + 1, b);
}

static bool read_hex(const char *text, char *to, size_t room, size_t *bytes)
{
    const size_t digits = strlen(text);
    if (digits == 0 || digits % 2 != 0 || digits / 2 > room || strspn(text, "0123456789abcdefABCDEF") != digits)
        return false;
    for (size_t i = 0; i < digits; i += 2)
        to[i / 2] = (char)strtoul((const char[]){ text[i], text[i + 1], '\0' }, NULL, 16);
    *bytes = digits / 2;
    return true;
}

/* The bytes of one argument. */
static bool read_argument(launch *l, const char *argument, char *to, size_t room, size_t *bytes)
{
    const char  *colon = strchr(argument, ':');
    const size_t length = colon == NULL ? 0 : (size_t)(colon - argument);
    uint64_t     address;
    if (length == 3 && memcmp(argument, "buf", 3) == 0) {
        if (!make_buffer(l, argument, colon + 1, &address))
            return false;
        memcpy(to, &address, *bytes = sizeof address);
        return true;
    }
    if (length == 3 && memcmp(argument, "hex", 3) == 0 && read_hex(colon + 1, to, room, bytes))
        return true;
    const type *t = find_type(argument, length);
    if (t != NULL && put_value(t, colon + 1, to)) {
        *bytes = t->bytes;
        return true;
    }
    complain("--arg %s: expected TYPE:VALUE, hex:BYTES or buf:NAME:BYTES[=FILL]", argument);
    return false;
}

static bool is_hidden(const sim_argument *a)
{
    return strncmp(a->kind, "hidden_", 7) == 0;
}

/* The i-th argument that the caller gives; NULL: there are not so many. */
static const sim_argument *explicit_argument(const sim_kernel *k, int i)
{
    for (uint32_t n = 0; n < k->argument_count; n++)
        if (!is_hidden(&k->arguments[n]) && i-- == 0)
            return &k->arguments[n];
    return NULL;
}

static int explicit_count(const sim_kernel *k)
{
    int n = 0;
    while (explicit_argument(k, n) != NULL)
        n++;
    return n;
}

/* Where an argument goes: by the metadata or, without, behind the one before, aligned to its size. */
static bool place_argument(const sim_kernel *k, int i, const char *text, size_t bytes, size_t *offset)
{
    const sim_argument *a = explicit_argument(k, i);
    if (a != NULL && a->bytes != bytes) {
        complain("--arg %s: %zu bytes, argument %d of %s (%s%s%s) takes %" PRIu32, text, bytes, i, k->name, a->name,
                 *a->name == '\0' ? "" : ", ", a->kind, a->bytes);
        return false;
    }
    if (a != NULL) {
        *offset = a->offset;
        return true;
    }
    const size_t alignment = bytes >= 8 ? 8 : bytes;
    *offset = (*offset + alignment - 1) / alignment * alignment;
    if (*offset + bytes <= k->kernarg_bytes)
        return true;
    complain("--arg %s: ends at byte %zu, and %s takes %" PRIu32 " bytes of arguments", text, *offset + bytes, k->name,
             k->kernarg_bytes);
    return false;
}

static bool read_arguments(launch *l, const sim_kernel *k, char *kernarg)
{
    const request *r = l->request;
    const bool     described = k->argument_count != 0;
    if (described && explicit_count(k) != r->arguments) {
        complain("%s: takes %d arguments, %d are given", k->name, explicit_count(k), r->arguments);
        for (int i = 0; i < explicit_count(k); i++) {
            const sim_argument *a = explicit_argument(k, i);
            fprintf(stderr, "  %d: %s, %s, %" PRIu32 " bytes\n", i, *a->name == '\0' ? "-" : a->name, a->kind,
                    a->bytes);
        }
        return false;
    }
    size_t end = 0;
    for (int i = 0; i < r->arguments; i++) {
        char   bytes[4096];
        size_t count, offset = end;
        if (!read_argument(l, r->argument[i], bytes, sizeof bytes, &count) ||
            !place_argument(k, i, r->argument[i], count, &offset))
            return false;
        memcpy(kernarg + offset, bytes, count);
        end = offset + count;
    }
    if (described || end == k->kernarg_bytes)
        return true;
    complain("%s: takes %" PRIu32 " bytes of arguments, %zu are given", k->name, k->kernarg_bytes, end);
    return false;
}

/* Findings of all schedules
 * -------------------------
 */
typedef struct found {
    sim_finding finding;
    uint64_t    seed;
} found;

typedef struct result {
    found *list;
    size_t count, room;
    char **contents; /* of the buffers after the first schedule */
} result;

static bool same_place(const sim_finding *a, const sim_finding *b)
{
    return a->check == b->check && a->pc == b->pc && strcmp(a->kernel, b->kernel) == 0;
}

static bool keep_finding(result *all, const sim_finding *f, uint64_t seed)
{
    for (size_t i = 0; i < all->count; i++) {
        if (same_place(&all->list[i].finding, f)) {
            all->list[i].finding.times += f->times;
            return true;
        }
    }
    if (all->count == all->room) {
        const size_t room = all->room == 0 ? 16 : 2 * all->room;
        found       *grown = realloc(all->list, room * sizeof *grown);
        if (grown == NULL)
            return false;
        all->list = grown;
        all->room = room;
    }
    all->list[all->count++] = (found){ *f, seed };
    return true;
}

static void print_json(json_t *object)
{
    char *text = json_dumps(object, JSON_COMPACT);
    if (text != NULL)
        puts(text);
    free(text);
    json_decref(object);
}

static json_t *finding_json(const found *f)
{
    const sim_finding *x = &f->finding;
    return json_pack("{s:s, s:s, s:I, s:s, s:[I,I,I], s:i, s:i, s:s, s:I, s:o}", "check", sim_check_name(x->check),
                     "kernel", x->kernel, "pc", (json_int_t)x->pc, "instruction", x->text, "workgroup",
                     (json_int_t)x->group[0], (json_int_t)x->group[1], (json_int_t)x->group[2], "wave", x->wave, "lane",
                     x->lane, "detail", x->detail, "times", (json_int_t)x->times, "seed",
                     json_sprintf("%" PRIu64, f->seed));
}

static void print_found(const request *r, const result *all)
{
    for (size_t i = 0; i < all->count; i++) {
        if (r->json) {
            print_json(finding_json(&all->list[i]));
            continue;
        }
        sim_print_finding(stdout, &all->list[i].finding);
        if (r->schedules > 1)
            printf("  first with --seed %" PRIu64 "\n", all->list[i].seed);
    }
    if (!r->json && all->count != 0)
        printf("%zu finding%s\n", all->count, all->count == 1 ? "" : "s");
}

/* Some kernels may depend on the order, as those that add floats atomically: a note, no finding. */
static bool compare_results(const launch *l, uint64_t seed, result *all)
{
    if (all->contents == NULL) {
        all->contents = calloc(MOST, sizeof *all->contents);
        for (int i = 0; all->contents != NULL && i < l->buffers; i++) {
            all->contents[i] = malloc(l->buffer[i].bytes);
            if (all->contents[i] == NULL)
                return false;
            memcpy(all->contents[i], l->buffer[i].at, l->buffer[i].bytes);
        }
        return all->contents != NULL;
    }
    for (int i = 0; i < l->buffers; i++) {
        const buffer *b = &l->buffer[i];
        size_t        at = 0;
        while (at < b->bytes && b->at[at] == all->contents[i][at])
            at++;
        if (at < b->bytes)
            fprintf(stderr, "etalon-sim: note: with --seed %" PRIu64 " buffer %s differs from byte %zu on\n", seed,
                    b->name, at);
    }
    return true;
}

/* Outputs
 * -------
 */
static bool write_outputs(launch *l)
{
    for (int i = 0; i < l->request->outs; i++) {
        const char   *text = l->request->out[i];
        const size_t  length = strcspn(text, "=");
        const buffer *b = find_buffer(l, text, length);
        if (b == NULL || text[length] == '\0') {
            complain("--out %s: expected NAME=FILE, the name of a buffer", text);
            return false;
        }
        if (!write_file(text + length + 1, b->at, b->bytes))
            return false;
    }
    return true;
}

static bool print_buffer(launch *l, const char *text)
{
    const size_t  length = strcspn(text, ":");
    const buffer *b = find_buffer(l, text, length);
    const char   *name = text[length] == '\0' ? text + length : text + length + 1;
    const size_t  type_length = strcspn(name, ":");
    const type   *t = find_type(name, type_length);
    uint64_t      count = 16;
    if (b == NULL || t == NULL ||
        (name[type_length] == ':' && !parse_number(name + type_length + 1, SIZE_MAX, &count))) {
        complain("--print %s: expected NAME:TYPE[:COUNT], the name of a buffer", text);
        return false;
    }
    printf("%s:", b->name);
    for (size_t i = 0; i < count && (i + 1) * t->bytes <= b->bytes; i++)
        print_value(t, b->at + i * t->bytes);
    putchar('\n');
    return true;
}

static bool print_buffers(launch *l)
{
    for (int i = 0; i < l->request->prints; i++)
        if (!print_buffer(l, l->request->print[i]))
            return false;
    return true;
}

/* run and report
 * --------------
 */
static bool set_grid(const request *r, sim_dispatch *d)
{
    for (int i = 0; i < 3; i++) {
        const uint64_t items = (uint64_t)r->grid[i] * r->block[i];
        if (items > UINT32_MAX) {
            complain("--grid: %" PRIu32 " workgroups of %" PRIu32 " are more than 2^32 - 1 work-items", r->grid[i],
                     r->block[i]);
            return false;
        }
        d->grid[i] = (uint32_t)items;
        d->group[i] = r->block[i];
    }
    return true;
}

/* A deadlock ends a dispatch too soon, but it is the kernel's fault and was found. */
static bool is_deadlock(const sim_device *device)
{
    for (uint32_t i = 0; i < sim_finding_count(device); i++)
        if (sim_finding_at(device, i)->check == SIM_CHECK_DEADLOCK)
            return true;
    return false;
}

/* Runs, keeps the findings; false after an error. `last`: the results are to be written. */
static bool dispatch(launch *l, const sim_kernel *k, uint64_t seed, bool last, result *all)
{
    const request *r = l->request;
    sim_dispatch   d = { .kernel = k, .dynamic_lds = r->lds, .kernarg_bytes = k->kernarg_bytes };
    char          *kernarg = calloc(1, (size_t)k->kernarg_bytes + 1);
    if (kernarg == NULL || !set_grid(r, &d)) {
        free(kernarg);
        return false;
    }
    d.kernarg = kernarg;
    sim_kernarg_fill(&d, kernarg);
    bool ok = read_arguments(l, k, kernarg);
    if (ok && !sim_run(l->device, &d) && !is_deadlock(l->device)) {
        complain("%s", sim_last_error());
        ok = false;
    }
    free(kernarg);
    for (uint32_t i = 0; i < sim_finding_count(l->device); i++)
        ok = keep_finding(all, sim_finding_at(l->device, i), seed) && ok;
    ok = ok && compare_results(l, seed, all);
    if (ok && last && r->report)
        sim_print_report(stdout, l->device, r->per_pc);
    return ok && (!last || (write_outputs(l) && print_buffers(l)));
}

/* Each schedule has a device of its own, so that memory is as new. */
static bool run_schedule(const request *r, const image *im, uint64_t i, result *all)
{
    launch  l = { .request = r };
    request with = *r;
    with.options.seed += i;
    sim_object       *object = load_image(&with, im, &l.device);
    const sim_kernel *k = object == NULL ? NULL : find_kernel(r, object);
    const bool        ok = k != NULL && dispatch(&l, k, with.options.seed, i + 1 == r->schedules, all);
    if (object != NULL)
        sim_object_unload(object);
    if (l.device != NULL)
        sim_device_destroy(l.device);
    return ok;
}

static int run_all(const request *r)
{
    image  im;
    result all = { 0 };
    bool   ok = open_image(r, &im);
    for (uint64_t i = 0; ok && i < r->schedules; i++)
        ok = run_schedule(r, &im, i, &all);
    print_found(r, &all);
    free(im.bytes);
    for (int i = 0; all.contents != NULL && i < MOST; i++)
        free(all.contents[i]);
    free(all.contents);
    const size_t count = all.count;
    free(all.list);
    if (!ok)
        return EXIT_BAD;
    return count == 0 ? 0 : EXIT_FINDINGS;
}

/* list and disasm
 * ---------------
 */
static json_t *kernel_json(const sim_kernel *k)
{
    json_t *arguments = json_array();
    for (uint32_t i = 0; i < k->argument_count; i++) {
        const sim_argument *a = &k->arguments[i];
        json_array_append_new(arguments, json_pack("{s:s, s:s, s:i, s:i}", "name", a->name, "kind", a->kind, "offset",
                                                   (int)a->offset, "bytes", (int)a->bytes));
    }
    return json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:o}", "kernel", k->name, "vgprs", (int)k->vgprs,
                     "agprs", (int)k->agprs, "sgprs", (int)k->sgprs, "lds", (int)k->lds_bytes, "scratch",
                     (int)k->scratch_bytes, "kernarg", (int)k->kernarg_bytes, "wave", (int)k->wave_size, "max_block",
                     (int)k->max_group, "arguments", arguments);
}

static void print_kernel(const sim_kernel *k)
{
    printf("%s\n  wave%" PRIu32 ", %" PRIu32 " VGPRs, %" PRIu32 " AGPRs, %" PRIu32 " SGPRs, %" PRIu32
           " bytes of LDS, %" PRIu32 " of scratch, %" PRIu32 " of arguments, at most %" PRIu32 " work-items\n",
           k->name, k->wave_size, k->vgprs, k->agprs, k->sgprs, k->lds_bytes, k->scratch_bytes, k->kernarg_bytes,
           k->max_group);
    for (uint32_t i = 0; i < k->argument_count; i++) {
        const sim_argument *a = &k->arguments[i];
        if (!is_hidden(a))
            printf("  %4" PRIu32 "  %2" PRIu32 " bytes  %-16s %s\n", a->offset, a->bytes, a->kind, a->name);
    }
}

static bool list_kernels(const request *r, const sim_object *object)
{
    for (uint32_t i = 0; i < sim_object_kernel_count(object); i++) {
        const sim_kernel *k = sim_object_kernel_at(object, i);
        if (r->json)
            print_json(kernel_json(k));
        else
            print_kernel(k);
    }
    return true;
}

static bool disassemble(const request *r, const sim_object *object)
{
    const uint32_t count = r->kernel != NULL ? 1 : sim_object_kernel_count(object);
    for (uint32_t i = 0; i < count; i++) {
        const sim_kernel *k = r->kernel != NULL ? find_kernel(r, object) : sim_object_kernel_at(object, i);
        if (k == NULL)
            return false;
        if (!sim_disassemble(stdout, object, k->name)) {
            complain("%s: %s", r->object, sim_last_error());
            return false;
        }
    }
    return true;
}

static int with_object(const request *r, bool (*act)(const request *, const sim_object *))
{
    image       im;
    sim_device *device = NULL;
    sim_object *object = open_image(r, &im) ? load_image(r, &im, &device) : NULL;
    const bool  ok = object != NULL && act(r, object);
    if (object != NULL)
        sim_object_unload(object);
    if (device != NULL)
        sim_device_destroy(device);
    free(im.bytes);
    return ok ? 0 : EXIT_BAD;
}

/* The program
 * -----------
 */
static int list_checks(void)
{
    static const char *const what[] = {
#define CHECK(id, name, text) text,
#include "../sim/checks.def"
#undef CHECK
    };
    for (int i = 0; i < SIM_CHECKS; i++)
        printf("%-16s %s\n", sim_check_name((sim_check)i), what[i]);
    return 0;
}

static int act_list(const request *r)
{
    return with_object(r, list_kernels);
}

static int act_disasm(const request *r)
{
    return with_object(r, disassemble);
}

enum {
    KERNEL = 1,
    GRID,
    BLOCK,
    ARG,
    LDS,
    OUT,
    PRINT,
    CHECK_NAMES,
    SCHEDULES,
    SEED,
    THREADS,
    LIMIT,
    ARCH,
    JSON,
    PER_PC,
    HELP
};

#define BIT(option) (1u << (option))

static const struct {
    const char *name, *help;
    uint32_t    options;
    int (*act)(const request *);
} commands[] = {
    { "run", run_help,
      BIT(KERNEL) | BIT(GRID) | BIT(BLOCK) | BIT(ARG) | BIT(LDS) | BIT(OUT) | BIT(PRINT) | BIT(CHECK_NAMES) |
          BIT(SCHEDULES) | BIT(SEED) | BIT(THREADS) | BIT(LIMIT) | BIT(ARCH) | BIT(JSON),
      run_all },
    { "report", report_help,
      BIT(KERNEL) | BIT(GRID) | BIT(BLOCK) | BIT(ARG) | BIT(LDS) | BIT(OUT) | BIT(PRINT) | BIT(CHECK_NAMES) |
          BIT(SCHEDULES) | BIT(SEED) | BIT(THREADS) | BIT(LIMIT) | BIT(ARCH) | BIT(JSON) | BIT(PER_PC),
      run_all },
    { "disasm", disasm_help, BIT(KERNEL) | BIT(ARCH), act_disasm },
    { "list", list_help, BIT(ARCH) | BIT(JSON), act_list },
};

enum { COMMANDS = sizeof commands / sizeof commands[0] };

static const struct option long_options[] = {
    { "kernel", required_argument, NULL, KERNEL },
    { "grid", required_argument, NULL, GRID },
    { "block", required_argument, NULL, BLOCK },
    { "arg", required_argument, NULL, ARG },
    { "lds", required_argument, NULL, LDS },
    { "out", required_argument, NULL, OUT },
    { "print", required_argument, NULL, PRINT },
    { "check", required_argument, NULL, CHECK_NAMES },
    { "schedules", required_argument, NULL, SCHEDULES },
    { "seed", required_argument, NULL, SEED },
    { "threads", required_argument, NULL, THREADS },
    { "limit", required_argument, NULL, LIMIT },
    { "arch", required_argument, NULL, ARCH },
    { "json", no_argument, NULL, JSON },
    { "per-pc", no_argument, NULL, PER_PC },
    { "help", no_argument, NULL, HELP },
    { 0 },
};

static bool take_option(int option, const char *text, request *r)
{
    uint64_t x = 0;
    bool     ok = true;
    switch (option) {
    case KERNEL:
        r->kernel = text;
        break;
    case GRID:
        ok = r->has_grid = take_extents("grid", text, r->grid);
        break;
    case BLOCK:
        ok = r->has_block = take_extents("block", text, r->block);
        break;
    case ARG:
        ok = take_text("arg", text, r->argument, &r->arguments);
        break;
    case LDS:
        ok = take_number("lds", text, 0, UINT32_MAX, &x);
        r->lds = (uint32_t)x;
        break;
    case OUT:
        ok = take_text("out", text, r->out, &r->outs);
        break;
    case PRINT:
        ok = take_text("print", text, r->print, &r->prints);
        break;
    case CHECK_NAMES:
        ok = take_checks(text, &r->options.checks);
        break;
    case SCHEDULES:
        ok = take_number("schedules", text, 1, UINT32_MAX, &r->schedules);
        break;
    case SEED:
        ok = take_number("seed", text, 0, UINT64_MAX, &r->options.seed);
        break;
    case THREADS:
        ok = take_number("threads", text, 0, 1024, &x);
        r->options.threads = (int)x;
        break;
    case LIMIT:
        ok = take_number("limit", text, 1, UINT64_MAX, &r->options.limit);
        break;
    case ARCH:
        r->arch = text;
        break;
    case JSON:
        r->json = true;
        break;
    case PER_PC:
        r->per_pc = r->options.counters = true;
        break;
    }
    return ok;
}

static int bad_usage(const char *name)
{
    fprintf(stderr, "Try \"etalon-sim %s --help\".\n", name);
    return EXIT_BAD;
}

static int run_command(int number, int argc, char **argv)
{
    const char *name = commands[number].name;
    const bool  launches = commands[number].act == run_all, report = commands[number].help == report_help;
    request r = { .schedules = 1, .report = report, .options = { .checks = report ? SIM_CHECK_NONE : SIM_CHECK_ALL } };
    for (int o; (o = getopt_long(argc, argv, "", long_options, NULL)) != -1;) {
        if (o == HELP) {
            printf("usage: %s", commands[number].help);
            return 0;
        }
        if (o == CHECK_NAMES && launches && strcmp(optarg, "list") == 0)
            return list_checks();
        if (o == '?')
            return bad_usage(name);
        if ((commands[number].options & BIT(o)) == 0) {
            complain("%s: takes no --%s", name, long_options[o - 1].name);
            return bad_usage(name);
        }
        if (!take_option(o, optarg, &r))
            return bad_usage(name);
    }
    if (argc - optind != 1) {
        complain("%s: expected one code object", name);
        return bad_usage(name);
    }
    r.object = argv[optind];
    if (launches && (!r.has_grid || !r.has_block)) {
        complain("%s: --grid and --block are missing", name);
        return bad_usage(name);
    }
    return commands[number].act(&r);
}

static void print_usage(FILE *to)
{
    fputs(
        "usage: etalon-sim COMMAND OBJECT ...\n"
        "\n"
        "  run OBJECT --grid X --block N --arg ...   run a kernel for gfx950 or gfx1250, report what is wrong with it\n"
        "  report OBJECT ...                         the same, and print counters and an estimate\n"
        "  disasm OBJECT                             print its instructions\n"
        "  list OBJECT                               print its kernels\n"
        "\n"
        "etalon-sim COMMAND --help tells more; etalon-sim --version prints the version.\n",
        to);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_usage(stderr);
        return EXIT_BAD;
    }
    if (strcmp(argv[1], "--help") == 0) {
        print_usage(stdout);
        return 0;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("etalon-sim %s\n", ETALON_VERSION);
        return 0;
    }
    int number = 0;
    while (number < COMMANDS && strcmp(argv[1], commands[number].name) != 0)
        number++;
    if (number == COMMANDS) {
        complain("no command is named \"%s\"", argv[1]);
        print_usage(stderr);
        return EXIT_BAD;
    }
    argv[1] = argv[0]; /* getopt's messages start with it */
    const int code = run_command(number, argc - 1, argv + 1);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        complain("standard output: %s", strerror(errno));
        return EXIT_BAD;
    }
    return code;
}
