/* Memory instructions of the simulator: each mnemonic against memory as bytes, waits against all states that hardware
 * may be in, the tensor mover against a second reading of its pseudo-code. */
#include "testing.h"

#include "check.h"
#include "counters.h"
#include "device.h"
#include "machine.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <string.h>

enum { MEMORY_BYTES = 1 << 16, LDS_BYTES = 1 << 15, SCRATCH_BYTES = 256, VECTORS = 1024, TEXTS = 256 };

typedef struct bench {
    sim_device     *device;
    sim_map        *map;
    uint8_t        *memory; /* MEMORY_BYTES, guest and host address */
    uint8_t        *lds, *scratch;
    uint32_t       *v;
    sim_group       group;
    sim_wave        wave;
    int             texts;
    char            text[TEXTS][128];
    sim_instruction inst[TEXTS];
} bench;

static uint32_t hash(uint32_t x)
{
    x ^= x >> 16;
    x *= 0x7FEB352Du;
    x ^= x >> 15;
    x *= 0x846CA68Bu;
    return x ^ x >> 16;
}

static void fill(uint8_t *at, size_t bytes, uint32_t seed)
{
    for (size_t i = 0; i < bytes; i++)
        at[i] = (uint8_t)hash((uint32_t)i + seed * 0x10001u);
}

static bench *bench_create(sim_arch arch, bool late)
{
    bench *b = calloc(1, sizeof *b);
    ck_assert_ptr_nonnull(b);
    const sim_options options = { .threads = 1 };
    b->device = sim_device_create(arch, &options);
    ck_assert_ptr_nonnull(b->device);
    b->memory = sim_allocate(b->device, MEMORY_BYTES, "memory");
    ck_assert_ptr_nonnull(b->memory);
    b->map = sim_map_create(b->device);
    const int lanes = arch == SIM_GFX950 ? 64 : 32;
    b->lds = malloc(LDS_BYTES);
    b->scratch = malloc((size_t)lanes * SCRATCH_BYTES);
    b->v = malloc((size_t)VECTORS * (size_t)lanes * sizeof *b->v);
    fill(b->memory, MEMORY_BYTES, 1);
    fill(b->lds, LDS_BYTES, 2);
    fill(b->scratch, (size_t)lanes * SCRATCH_BYTES, 3);
    fill((uint8_t *)b->v, (size_t)VECTORS * (size_t)lanes * sizeof *b->v, 4);
    b->group = (sim_group){ .map = b->map,
                            .arch = arch,
                            .lds = b->lds,
                            .lds_bytes = LDS_BYTES,
                            .wave_count = 1,
                            .wave = &b->wave,
                            .late = late };
    b->wave = (sim_wave){
        .group = &b->group, .lanes = lanes, .v = b->v, .scratch = b->scratch, .scratch_bytes = SCRATCH_BYTES
    };
    sim_set_exec(&b->wave, UINT64_MAX);
    return b;
}

static void bench_destroy(bench *b)
{
    sim_memory_release(&b->wave);
    sim_map_destroy(b->map);
    sim_device_destroy(b->device);
    free(b->lds);
    free(b->scratch);
    free(b->v);
    free(b);
}

static uint32_t *reg(const bench *b, int number)
{
    return b->v + (size_t)number * (size_t)b->wave.lanes;
}

static void set64(bench *b, int number, int lane, uint64_t x)
{
    reg(b, number)[lane] = (uint32_t)x;
    reg(b, number + 1)[lane] = (uint32_t)(x >> 32);
}

static uint64_t guest(const void *at)
{
    return (uint64_t)(uintptr_t)at;
}

static void run_quiet(bench *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void run_quiet(bench *b, const char *format, ...)
{
    const int i = b->texts++ % TEXTS;
    va_list   list;
    va_start(list, format);
    vsnprintf(b->text[i], sizeof b->text[i], format, list);
    va_end(list);
    if (!sim_parse(b->group.arch, b->text[i], &b->inst[i]))
        ck_abort_msg("%s: %s", b->text[i], sim_last_error());
    b->inst[i].op->run(&b->wave, &b->inst[i]);
}

#define run(b, ...)                               \
    do {                                          \
        run_quiet(b, __VA_ARGS__);                \
        if ((b)->wave.status == SIM_FAILED)       \
            ck_abort_msg("%s", sim_last_error()); \
    } while (0)

#define run_fails(b, words, ...)                                                                                \
    do {                                                                                                        \
        run_quiet(b, __VA_ARGS__);                                                                              \
        ck_assert_msg((b)->wave.status == SIM_FAILED, "did not fail: %s", (b)->text[((b)->texts - 1) % TEXTS]); \
        ck_assert_msg(strstr(sim_last_error(), words) != NULL, "\"%s\" lacks \"%s\"", sim_last_error(), words); \
        (b)->wave.status = SIM_RUNNING;                                                                         \
    } while (0)

/* EXEC patterns: all, a scattered half, one lane, none. */
static const uint64_t masks[] = { UINT64_MAX, 0xA5C3960F1E2D7B84u, 1ull << 7, 0 };
enum { MASKS = sizeof masks / sizeof masks[0] };

static bool active(const bench *b, int lane)
{
    return (sim_exec(&b->wave) >> lane & 1) != 0;
}

/* Loads and stores
 * ----------------
 */
typedef struct width {
    const char *old_name, *new_name; /* gfx950, gfx1250 */
    int         bytes;
    int         sign;  /* 1: extended by sign */
    int         shift; /* d16: 0 low half, 16 high half; -1: whole */
} width;

static const width loads[] = {
    { "ubyte", "u8", 1, 0, -1 },         { "sbyte", "i8", 1, 1, -1 },
    { "ushort", "u16", 2, 0, -1 },       { "sshort", "i16", 2, 1, -1 },
    { "dword", "b32", 4, 0, -1 },        { "dwordx2", "b64", 8, 0, -1 },
    { "dwordx3", "b96", 12, 0, -1 },     { "dwordx4", "b128", 16, 0, -1 },
    { "ubyte_d16", "d16_u8", 1, 0, 0 },  { "ubyte_d16_hi", "d16_hi_u8", 1, 0, 16 },
    { "sbyte_d16", "d16_i8", 1, 1, 0 },  { "sbyte_d16_hi", "d16_hi_i8", 1, 1, 16 },
    { "short_d16", "d16_b16", 2, 0, 0 }, { "short_d16_hi", "d16_hi_b16", 2, 0, 16 },
};
enum { LOADS = sizeof loads / sizeof loads[0] };

static const width stores[] = {
    { "byte", "b8", 1, 0, -1 },
    { "short", "b16", 2, 0, -1 },
    { "dword", "b32", 4, 0, -1 },
    { "dwordx2", "b64", 8, 0, -1 },
    { "dwordx3", "b96", 12, 0, -1 },
    { "dwordx4", "b128", 16, 0, -1 },
    { "byte_d16_hi", "d16_hi_b8", 1, 0, 16 },
    { "short_d16_hi", "d16_hi_b16", 2, 0, 16 },
};
enum { STORES = sizeof stores / sizeof stores[0] };

/* The same names as DS instructions have them. */
static const width ds_loads[] = {
    { "ds_read_u8", "ds_load_u8", 1, 0, -1 },          { "ds_read_i8", "ds_load_i8", 1, 1, -1 },
    { "ds_read_u16", "ds_load_u16", 2, 0, -1 },        { "ds_read_i16", "ds_load_i16", 2, 1, -1 },
    { "ds_read_b32", "ds_load_b32", 4, 0, -1 },        { "ds_read_b64", "ds_load_b64", 8, 0, -1 },
    { "ds_read_b96", "ds_load_b96", 12, 0, -1 },       { "ds_read_b128", "ds_load_b128", 16, 0, -1 },
    { "ds_read_u8_d16", "ds_load_u8_d16", 1, 0, 0 },   { "ds_read_u8_d16_hi", "ds_load_u8_d16_hi", 1, 0, 16 },
    { "ds_read_i8_d16", "ds_load_i8_d16", 1, 1, 0 },   { "ds_read_i8_d16_hi", "ds_load_i8_d16_hi", 1, 1, 16 },
    { "ds_read_u16_d16", "ds_load_u16_d16", 2, 0, 0 }, { "ds_read_u16_d16_hi", "ds_load_u16_d16_hi", 2, 0, 16 },
};
enum { DS_LOADS = sizeof ds_loads / sizeof ds_loads[0] };

static const width ds_stores[] = {
    { "ds_write_b8", "ds_store_b8", 1, 0, -1 },
    { "ds_write_b16", "ds_store_b16", 2, 0, -1 },
    { "ds_write_b32", "ds_store_b32", 4, 0, -1 },
    { "ds_write_b64", "ds_store_b64", 8, 0, -1 },
    { "ds_write_b96", "ds_store_b96", 12, 0, -1 },
    { "ds_write_b128", "ds_store_b128", 16, 0, -1 },
    { "ds_write_b8_d16_hi", "ds_store_b8_d16_hi", 1, 0, 16 },
    { "ds_write_b16_d16_hi", "ds_store_b16_d16_hi", 2, 0, 16 },
};
enum { DS_STORES = sizeof ds_stores / sizeof ds_stores[0] };

static const char *name_on(const width *w, sim_arch arch)
{
    return arch == SIM_GFX950 ? w->old_name : w->new_name;
}

/* What register i of a lane holds after a load from `at`, by arithmetic on bytes. */
static uint32_t loaded(const width *w, const uint8_t *at, int i, uint32_t before)
{
    int64_t x = 0;
    for (int k = 0; k < (w->bytes < 4 ? w->bytes : 4); k++)
        x += (int64_t)at[4 * i + k] << 8 * k;
    if (w->sign && x >= (int64_t)1 << (8 * w->bytes - 1))
        x -= (int64_t)1 << 8 * w->bytes;
    if (w->shift < 0)
        return (uint32_t)x;
    const uint32_t keep = w->shift == 0 ? 0xFFFF0000u : 0x0000FFFFu;
    return (before & keep) | ((uint32_t)x & 0xFFFFu) << w->shift;
}

enum { TO = 8, REGISTERS = 6 }; /* one register on either side of the four of a result */

static void remember(const bench *b, uint32_t *copy)
{
    memcpy(copy, reg(b, TO - 1), REGISTERS * (size_t)b->wave.lanes * sizeof *copy);
}

/* v[8..] after a load: active lanes have what lies at at[lane] (NULL: zeros), everything else is as before. */
static void check_loaded(const bench *b, const width *w, const uint8_t *const *at, const uint32_t *before)
{
    static const uint8_t zeros[16];
    const int            lanes = b->wave.lanes, dwords = w->bytes < 4 ? 1 : w->bytes / 4;
    for (int i = -1; i < REGISTERS - 1; i++)
        for (int lane = 0; lane < lanes; lane++) {
            const uint32_t was = before[(i + 1) * lanes + lane], got = reg(b, TO + i)[lane];
            const uint8_t *from = at[lane] == NULL ? zeros : at[lane];
            const bool     written = i >= 0 && i < dwords && active(b, lane);
            const uint32_t want = written ? loaded(w, from, i, was) : was;
            if (got != want)
                ck_abort_msg("%s: v%d lane %d: 0x%08" PRIx32 ", wanted 0x%08" PRIx32, b->text[(b->texts - 1) % TEXTS],
                             TO + i, lane, got, want);
        }
}

/* A copy of memory in which a test stores by bytes what the instruction should. */
static void store_bytes(const bench *b, const width *w, uint8_t *at, int first, int lane)
{
    for (int k = 0; k < w->bytes; k++)
        at[k] = (uint8_t)(reg(b, first + k / 4)[lane] >> (8 * (k % 4) + (w->shift < 0 ? 0 : w->shift)));
}

static void check_memory(const bench *b, const uint8_t *got, const uint8_t *want, size_t bytes)
{
    if (memcmp(got, want, bytes) == 0)
        return;
    size_t i = 0;
    while (got[i] == want[i])
        i++;
    ck_abort_msg("%s: byte %zu is 0x%02x, wanted 0x%02x", b->text[(b->texts - 1) % TEXTS], i, got[i], want[i]);
}

/* A place of its own for each lane, in no order, unaligned where `odd`. */
static uint32_t place(int lane, int odd)
{
    return 4096u + 32u * (uint32_t)(lane * 29 % 64) + (uint32_t)(odd ? lane % 4 : 0);
}

typedef enum place_form {
    OFF,
    SADDR,
    FLAT_GLOBAL,
    FLAT_LDS,
    FLAT_SCRATCH,
    SCRATCH_V,
    SCRATCH_S,
    SCRATCH_SV,
    BUFFER,
    FORMS
} place_form;

/* Sets up registers for an access of `bytes` in the form, prints what follows the data, and says where each lane goes.
 * */
static const char *prepare(bench *b, place_form f, int odd, uint8_t *at[64])
{
    static const char *const behind[FORMS] = {
        [OFF] = "off offset:-24",     [SADDR] = "s[4:5] offset:-24", [FLAT_GLOBAL] = "offset:40",
        [FLAT_LDS] = "offset:40",     [FLAT_SCRATCH] = "offset:40",  [SCRATCH_V] = "off offset:-16",
        [SCRATCH_S] = "s6 offset:12", [SCRATCH_SV] = "s6 offset:-4", [BUFFER] = "s[8:11], s12 offen offset:16",
    };
    for (int lane = 0; lane < b->wave.lanes; lane++) {
        const uint32_t p = place(lane, odd), q = p % 128;
        switch (f) {
        case OFF:
            at[lane] = b->memory + p;
            set64(b, 0, lane, guest(at[lane] + 24));
            break;
        case SADDR:
            at[lane] = b->memory + p;
            reg(b, 0)[lane] = p + 24 - 512;
            break;
        case FLAT_GLOBAL:
            at[lane] = b->memory + p;
            set64(b, 0, lane, guest(at[lane] - 40));
            break;
        case FLAT_LDS:
            at[lane] = b->lds + p;
            set64(b, 0, lane, SIM_SHARED_APERTURE + p - 40);
            break;
        case FLAT_SCRATCH: { /* on gfx1250 the address names a lane, here the neighbour */
            const int      owner = b->group.arch == SIM_GFX950 ? lane : lane ^ 1;
            const uint64_t base = SIM_PRIVATE_APERTURE + (b->group.arch == SIM_GFX950 ? 0 : (uint64_t)owner << 52);
            at[lane] = b->scratch + owner * SCRATCH_BYTES + q + 40;
            set64(b, 0, lane, base + q);
            break;
        }
        case SCRATCH_V:
            at[lane] = b->scratch + lane * SCRATCH_BYTES + q;
            reg(b, 0)[lane] = q + 16;
            break;
        case SCRATCH_S:
            at[lane] = b->scratch + lane * SCRATCH_BYTES + 32 + 12;
            break;
        case SCRATCH_SV:
            at[lane] = b->scratch + lane * SCRATCH_BYTES + 32 + q - 4;
            reg(b, 0)[lane] = q;
            break;
        default:
            at[lane] = b->memory + p;
            reg(b, 0)[lane] = p - 16 - 64;
            break;
        }
    }
    sim_set_scalar64(&b->wave, 4, guest(b->memory + 512));
    b->wave.s[6] = 32;
    sim_set_scalar64(&b->wave, 8, guest(b->memory));
    sim_set_scalar64(&b->wave, 10, MEMORY_BYTES);
    if (b->group.arch == SIM_GFX1250) { /* 57 bits of address, then 45 bits of size */
        sim_set_scalar64(&b->wave, 8, guest(b->memory) | (uint64_t)MEMORY_BYTES << 57);
        sim_set_scalar64(&b->wave, 10, MEMORY_BYTES >> 7);
    }
    b->wave.s[12] = 64;
    return behind[f];
}

static const char *prefix_of(place_form f)
{
    return f <= SADDR ? "global" : f <= FLAT_SCRATCH ? "flat" : f <= SCRATCH_SV ? "scratch" : "buffer";
}

static const char *address_of(place_form f)
{
    return f == OFF || (f >= FLAT_GLOBAL && f <= FLAT_SCRATCH) ? "v[0:1]" : f == SCRATCH_S ? "off" : "v0";
}

/* "v8", "v[8:11]" */
static const char *tuple(int first, int bytes)
{
    static _Thread_local char text[4][32];
    static _Thread_local int  next;
    char                     *to = text[next++ % 4];
    if (bytes <= 4)
        snprintf(to, sizeof text[0], "v%d", first);
    else
        snprintf(to, sizeof text[0], "v[%d:%d]", first, first + bytes / 4 - 1);
    return to;
}

static void one_load(bench *b, const width *w, place_form f, int odd)
{
    uint8_t    *at[64];
    uint32_t    before[REGISTERS * 64];
    const char *behind = prepare(b, f, odd, at), *comma = f >= FLAT_GLOBAL && f <= FLAT_SCRATCH ? "" : ",";
    remember(b, before);
    run(b, "%s_load_%s %s, %s%s %s", prefix_of(f), name_on(w, b->group.arch), tuple(TO, w->bytes), address_of(f), comma,
        behind);
    if (b->group.late) {
        ck_assert_mem_eq(reg(b, TO - 1), before, REGISTERS * (size_t)b->wave.lanes * 4); /* nothing yet */
        sim_wait(&b->wave, SIM_VMCNT, 0);
        sim_wait(&b->wave, b->group.arch == SIM_GFX950 ? SIM_LGKMCNT : SIM_DSCNT, 0);
    }
    check_loaded(b, w, (const uint8_t *const *)at, before);
}

START_TEST(loads_of_every_width)
{
    const sim_arch arch = _i & 1;
    bench         *b = bench_create(arch, (_i & 2) != 0);
    for (int m = 0; m < MASKS; m++) {
        sim_set_exec(&b->wave, masks[m]);
        for (int i = 0; i < LOADS; i++)
            for (place_form f = 0; f < FORMS; f++)
                for (int odd = 0; odd < 2; odd++)
                    one_load(b, &loads[i], f, odd);
    }
    bench_destroy(b);
}
END_TEST

static void one_store(bench *b, const width *w, place_form f, int odd)
{
    static uint8_t want[MEMORY_BYTES], want_lds[LDS_BYTES], want_scratch[64 * SCRATCH_BYTES];
    uint8_t       *at[64];
    const char    *behind = prepare(b, f, odd, at), *comma = f >= FLAT_GLOBAL && f <= FLAT_SCRATCH ? "" : ",";
    const size_t   scratch_bytes = (size_t)b->wave.lanes * SCRATCH_BYTES;
    memcpy(want, b->memory, sizeof want);
    memcpy(want_lds, b->lds, sizeof want_lds);
    memcpy(want_scratch, b->scratch, scratch_bytes);
    uint8_t  *real[] = { b->memory, b->lds, b->scratch }, *copy[] = { want, want_lds, want_scratch };
    const int space = f == FLAT_LDS ? 1 : f >= FLAT_SCRATCH && f <= SCRATCH_SV ? 2 : 0;
    for (int lane = 0; lane < b->wave.lanes; lane++)
        if (active(b, lane))
            store_bytes(b, w, copy[space] + (at[lane] - real[space]), TO, lane);
    if (f == BUFFER)
        run(b, "buffer_store_%s %s, v0, %s", name_on(w, b->group.arch), tuple(TO, w->bytes), behind);
    else
        run(b, "%s_store_%s %s, %s%s %s", prefix_of(f), name_on(w, b->group.arch), address_of(f), tuple(TO, w->bytes),
            comma, behind);
    fill((uint8_t *)reg(b, TO), 4 * (size_t)b->wave.lanes * 4,
         (uint32_t)(b->texts + 77)); /* the data is taken at issue */
    if (b->group.late) {
        sim_wait(&b->wave, b->group.arch == SIM_GFX950 ? SIM_VMCNT : SIM_STORECNT, 0);
        sim_wait(&b->wave, b->group.arch == SIM_GFX950 ? SIM_LGKMCNT : SIM_DSCNT, 0);
    }
    check_memory(b, b->memory, want, sizeof want);
    check_memory(b, b->lds, want_lds, sizeof want_lds);
    check_memory(b, b->scratch, want_scratch, scratch_bytes);
}

START_TEST(stores_of_every_width)
{
    const sim_arch arch = _i & 1;
    bench         *b = bench_create(arch, (_i & 2) != 0);
    for (int m = 0; m < MASKS; m++) {
        sim_set_exec(&b->wave, masks[m]);
        for (int i = 0; i < STORES; i++)
            for (place_form f = 0; f < FORMS; f++)
                for (int odd = 0; odd < 2; odd++)
                    one_store(b, &stores[i], f, odd);
    }
    bench_destroy(b);
}
END_TEST

/* The 32-bit offset beside a scalar base: unsigned on gfx950, signed and scaled on gfx1250. */
START_TEST(scalar_base_offsets)
{
    static const width dword = { "dword", "b32", 4, 0, -1 };
    uint32_t           before[REGISTERS * 64];
    uint8_t           *at[64];
    bench             *b = bench_create(SIM_GFX950, false);
    for (int lane = 0; lane < 64; lane++) {
        at[lane] = b->memory + place(lane, 0);
        reg(b, 0)[lane] = 0x80000000u + place(lane, 0);
    }
    sim_set_scalar64(&b->wave, 4, guest(b->memory) - 0x80000000u);
    remember(b, before);
    run(b, "global_load_dword v8, v0, s[4:5]");
    check_loaded(b, &dword, (const uint8_t *const *)at, before);
    bench_destroy(b);

    b = bench_create(SIM_GFX1250, false);
    for (int lane = 0; lane < 32; lane++) {
        at[lane] = b->memory + place(lane, 0);
        reg(b, 0)[lane] = place(lane, 0) - 0x8000u; /* negative for all */
    }
    sim_set_scalar64(&b->wave, 4, guest(b->memory) + 0x8000u - 4);
    remember(b, before);
    run(b, "global_load_b32 v8, v0, s[4:5] offset:4");
    check_loaded(b, &dword, (const uint8_t *const *)at, before);
    for (int scaled = 0; scaled < LOADS; scaled++) {
        const width *w = &loads[scaled];
        for (int lane = 0; lane < 32; lane++) {
            at[lane] = b->memory + 0x8000 + 24 + (lane % 2 ? lane : -lane) * w->bytes;
            reg(b, 0)[lane] = (uint32_t)(lane % 2 ? lane : -lane);
        }
        sim_set_scalar64(&b->wave, 4, guest(b->memory) + 0x8000u);
        remember(b, before);
        run(b, "global_load_%s %s, v0, s[4:5] offset:24 scale_offset", w->new_name, tuple(TO, w->bytes));
        check_loaded(b, w, (const uint8_t *const *)at, before);
        remember(b, before);
        run(b, "flat_load_%s %s, v0, s[4:5] offset:24 scale_offset", w->new_name, tuple(TO, w->bytes));
        check_loaded(b, w, (const uint8_t *const *)at, before);
    }
    /* Scratch scales the VGPR only. */
    for (int lane = 0; lane < 32; lane++) {
        at[lane] = b->scratch + lane * SCRATCH_BYTES + 8 * (lane % 8) + 32;
        reg(b, 0)[lane] = (uint32_t)(lane % 8);
    }
    static const width two = { "dwordx2", "b64", 8, 0, -1 };
    b->wave.s[6] = 32;
    remember(b, before);
    run(b, "scratch_load_b64 v[8:9], v0, s6 scale_offset");
    check_loaded(b, &two, (const uint8_t *const *)at, before);
    /* Cluster loads are plain ones here; the thread's number as address. */
    for (int lane = 0; lane < 32; lane++) {
        at[lane] = b->memory + 0x8000 + 8 + 4 * lane;
        set64(b, 0, lane, guest(at[lane]));
    }
    remember(b, before);
    run(b, "cluster_load_b32 v8, v[0:1], off");
    check_loaded(b, &dword, (const uint8_t *const *)at, before);
    remember(b, before);
    run(b, "global_load_addtid_b32 v8, s[4:5] offset:8");
    check_loaded(b, &dword, (const uint8_t *const *)at, before);
    run(b, "global_store_addtid_b32 v9, s[4:5] offset:8");
    for (int lane = 0; lane < 32; lane++)
        ck_assert_mem_eq(at[lane], &reg(b, 9)[lane], 4);
    bench_destroy(b);
}
END_TEST

/* s_set_vgpr_msb counts as at issue, for what is written later too. */
START_TEST(high_registers)
{
    bench *b = bench_create(SIM_GFX1250, _i != 0);
    for (int lane = 0; lane < 32; lane++)
        set64(b, 256 + 0, lane, guest(b->memory + 16 * lane));
    b->wave.msb[0] = 1;
    b->wave.msb[3] = 2;
    run(b, "global_load_b128 v[8:11], v[0:1], off");
    b->wave.msb[0] = b->wave.msb[3] = 0;
    sim_wait(&b->wave, SIM_VMCNT, 0);
    for (int lane = 0; lane < 32; lane++)
        for (int i = 0; i < 4; i++)
            ck_assert_mem_eq(&reg(b, 512 + 8 + i)[lane], b->memory + 16 * lane + 4 * i, 4);
    bench_destroy(b);
}
END_TEST

/* What was never written is told of the register that the load named, whatever s_set_vgpr_msb is at completion. */
START_TEST(high_registers_with_checks)
{
    bench *b = bench_create(SIM_GFX1250, true);
    b->group.device = b->device;
    b->group.checks = 1u << SIM_CHECK_UNINITIALISED;
    b->group.lds_map = sim_lds_map_create(&b->group);
    b->wave.watch = sim_watch_create(&b->wave); /* v0 to v2 count as set */
    ck_assert_ptr_nonnull(b->wave.watch);
    for (int lane = 0; lane < 32; lane++)
        set64(b, 4, lane, guest(b->memory + 8 * lane));
    sim_instruction use;
    ck_assert(sim_parse(SIM_GFX1250, "global_load_b32 v2, v[0:1], off", &use));
    sim_check_before(&b->wave, &use);
    ck_assert_uint_eq(sim_finding_count(b->device), 0);
    if (_i == 0)
        sim_mark_written(b->device, b->memory, 256);
    run(b, "global_load_b64 v[0:1], v[4:5], off");
    b->wave.msb[3] = 2;
    sim_wait(&b->wave, SIM_VMCNT, 0);
    b->wave.msb[3] = 0;
    sim_check_before(&b->wave, &use);
    ck_assert_uint_eq(sim_finding_count(b->device) != 0, _i);
    sim_watch_destroy(b->wave.watch);
    sim_lds_map_destroy(b->group.lds_map);
    bench_destroy(b);
}
END_TEST

START_TEST(faults)
{
    bench *b = bench_create(SIM_GFX950, _i != 0);
    for (int lane = 0; lane < 64; lane++)
        set64(b, 0, lane, guest(b->memory + 4 * lane));
    set64(b, 0, 9, guest(b->memory + MEMORY_BYTES - 3)); /* one byte over */
    if (b->group.late) {
        run(b, "global_load_dword v8, v[0:1], off");
        sim_wait(&b->wave, SIM_VMCNT, 0);
        ck_assert_int_eq(b->wave.status, SIM_FAILED);
        ck_assert_ptr_nonnull(strstr(sim_last_error(), "memory fault: lane 9"));
    } else {
        run_fails(b, "memory fault: lane 9", "global_load_dword v8, v[0:1], off");
        run_fails(b, "memory fault: lane 9", "global_store_dword v[0:1], v8, off");
        run_fails(b, "memory fault: lane 9", "global_atomic_add v[0:1], v8, off");
        run_fails(b, "memory fault: lane 9", "global_load_lds_dword v[0:1], off");
        sim_set_exec(&b->wave, ~(1ull << 9));
        run(b, "global_load_dword v8, v[0:1], off");
        set64(b, 0, 3, guest(b->memory + 2));
        run_fails(b, "atomic at", "global_atomic_add v[0:1], v8, off");
        sim_set_scalar64(&b->wave, 4, guest(b->memory + MEMORY_BYTES - 4));
        run_fails(b, "memory fault: lane -1", "s_load_dwordx2 s[8:9], s[4:5], 0x0");
        reg(b, 2)[0] = SCRATCH_BYTES - 3;
        sim_set_exec(&b->wave, 1);
        run_fails(b, "scratch", "scratch_load_dword v8, v2, off");
        reg(b, 2)[0] = 3;
        run_fails(b, "scratch", "scratch_load_dword v8, v2, off offset:-4");
        run_fails(b, "4-bit", "ds_read_b64_tr_b4 v[8:9], v2");
        run_fails(b, "6-bit", "ds_read_b96_tr_b6 v[8:10], v2");
        run_fails(b, "append", "ds_append v8 offset:4");
        run_fails(b, "ROTATE", "ds_swizzle_b32 v8, v2 offset:swizzle(ROTATE,0,3)");
        run_fails(b, "FFT", "ds_swizzle_b32 v8, v2 offset:swizzle(FFT,3)");
    }
    bench_destroy(b);
}
END_TEST

/* Buffers
 * -------
 */
static void set_buffer(bench *b, uint64_t base, uint32_t stride, uint64_t records, uint32_t high_bits)
{
    if (b->group.arch == SIM_GFX950) {
        b->wave.s[8] = (uint32_t)base;
        b->wave.s[9] = (uint32_t)(base >> 32) | stride << 16;
        b->wave.s[10] = (uint32_t)records;
        b->wave.s[11] = high_bits;
        return;
    }
    sim_set_scalar64(&b->wave, 8, base | records << 57);
    sim_set_scalar64(&b->wave, 10, records >> 7 | (uint64_t)stride << 44 | (uint64_t)high_bits << 60);
}

/* A range rule says how many bytes of a lane count; what is beyond reads 0 and is not stored. */
static void check_buffer_load(bench *b, const char *text, const uint8_t *const *at, const int *valid, const width *w)
{
    uint32_t       before[REGISTERS * 64];
    uint8_t        seen[64][16];
    const uint8_t *from[64];
    for (int lane = 0; lane < b->wave.lanes; lane++) {
        memset(seen[lane], 0, 16);
        if (valid[lane] != 0)
            memcpy(seen[lane], at[lane], (size_t)valid[lane]);
        from[lane] = seen[lane];
    }
    remember(b, before);
    run(b, "buffer_load_%s %s, %s", name_on(w, b->group.arch), tuple(TO, w->bytes), text);
    check_loaded(b, w, from, before);
}

static void check_buffer_store(bench *b, const char *text, uint8_t *const *at, const int *valid, const width *w)
{
    static uint8_t want[MEMORY_BYTES];
    memcpy(want, b->memory, sizeof want);
    for (int lane = 0; lane < b->wave.lanes; lane++)
        for (int k = 0; k < valid[lane] && active(b, lane); k++)
            want[at[lane] - b->memory + k] = (uint8_t)(reg(b, TO + k / 4)[lane] >> 8 * (k % 4));
    run(b, "buffer_store_%s %s, %s", name_on(w, b->group.arch), tuple(TO, w->bytes), text);
    check_memory(b, b->memory, want, sizeof want);
}

START_TEST(buffer_range_raw)
{
    const sim_arch     arch = _i;
    bench             *b = bench_create(arch, false);
    static const width some[] = { { "ubyte", "u8", 1, 0, -1 },     { "ushort", "u16", 2, 0, -1 },
                                  { "dword", "b32", 4, 0, -1 },    { "dwordx2", "b64", 8, 0, -1 },
                                  { "dwordx3", "b96", 12, 0, -1 }, { "dwordx4", "b128", 16, 0, -1 } };
    static const width put[] = { { "byte", "b8", 1, 0, -1 },      { "short", "b16", 2, 0, -1 },
                                 { "dword", "b32", 4, 0, -1 },    { "dwordx2", "b64", 8, 0, -1 },
                                 { "dwordx3", "b96", 12, 0, -1 }, { "dwordx4", "b128", 16, 0, -1 } };
    const uint64_t     records = 1030; /* not a multiple of 4 */
    for (int m = 0; m < MASKS; m++)
        for (int i = 0; i < 6; i++) {
            uint8_t *at[64];
            int      valid[64];
            sim_set_exec(&b->wave, masks[m]);
            set_buffer(b, guest(b->memory + 4096), 0, records, 0);
            b->wave.s[12] = 8;
            for (int lane = 0; lane < b->wave.lanes; lane++) {
                /* The last lanes reach over the end; one far away, where a 32-bit sum wraps on gfx950. */
                const uint32_t voffset = lane == 5 ? 0xFFFFFFF8u : (uint32_t)(16 * 60 + lane);
                reg(b, 0)[lane] = voffset;
                const uint64_t sum = arch == SIM_GFX950 ? (uint32_t)(voffset + 16) : (uint64_t)voffset + 16;
                const uint64_t start = sum + 8;
                const int      bytes = some[i].bytes, step = bytes < 4 ? bytes : 4;
                at[lane] = b->memory + 4096 + (start < MEMORY_BYTES ? start : 0);
                valid[lane] = 0;
                while (valid[lane] < bytes && start + (uint64_t)valid[lane] + (uint64_t)step <= records)
                    valid[lane] += step;
            }
            check_buffer_load(b, "v0, s[8:11], s12 offen offset:16", (const uint8_t *const *)at, valid, &some[i]);
            check_buffer_store(b, "v0, s[8:11], s12 offen offset:16", at, valid, &put[i]);
        }
    /* No VGPR: all lanes at one place. */
    uint8_t *at[64];
    int      valid[64];
    sim_set_exec(&b->wave, UINT64_MAX);
    for (int lane = 0; lane < 64; lane++) {
        at[lane] = b->memory + 4096 + 24;
        valid[lane] = 4;
    }
    check_buffer_load(b, "off, s[8:11], s12 offset:16", (const uint8_t *const *)at, valid, &some[2]);
    bench_destroy(b);
}
END_TEST

START_TEST(buffer_range_structured)
{
    const sim_arch     arch = _i;
    static const width two = { "dwordx2", "b64", 8, 0, -1 };
    bench             *b = bench_create(arch, false);
    uint8_t           *at[64];
    int                valid[64];
    /* Records of 20 bytes, 30 of them; gfx950 counts records, gfx1250 bytes. */
    set_buffer(b, guest(b->memory + 4096), 20, arch == SIM_GFX950 ? 30 : 600, 0);
    for (int lane = 0; lane < b->wave.lanes; lane++) {
        const int index = 31 - lane % 32, offset = lane % 5 * 4;
        reg(b, 0)[lane] = (uint32_t)index;
        reg(b, 1)[lane] = (uint32_t)offset;
        at[lane] = b->memory + 4096 + 20 * index + offset + 4;
        const int end = 20 * index + offset + 4;
        valid[lane] = arch == SIM_GFX950 ? (index < 30 ? 8 : 0) : end + 8 <= 600 ? 8 : end + 4 <= 600 ? 4 : 0;
    }
    check_buffer_load(b, "v[0:1], s[8:11], 0 idxen offen offset:4", (const uint8_t *const *)at, valid, &two);
    check_buffer_store(b, "v[0:1], s[8:11], 0 idxen offen offset:4", at, valid, &two);
    if (arch == SIM_GFX1250) {
        /* OOB select 1: also within the record; stride 5 scaled by 4. */
        sim_set_scalar64(&b->wave, 10, 600 >> 7 | 5ull << 44 | 1ull << 58 | 1ull << 61);
        for (int lane = 0; lane < 32; lane++) {
            const int in_record = 20 - ((int)reg(b, 1)[lane] + 4);
            if (in_record < valid[lane])
                valid[lane] = in_record / 4 * 4;
        }
        check_buffer_load(b, "v[0:1], s[8:11], 0 idxen offen offset:4", (const uint8_t *const *)at, valid, &two);
        sim_set_scalar64(&b->wave, 10, 1ull << 60);
        run_fails(b, "swizzle", "buffer_load_b32 v8, v0, s[8:11], 0 offen");
        sim_set_scalar64(&b->wave, 10, 1ull << 63);
        run_fails(b, "type", "buffer_load_b32 v8, v0, s[8:11], 0 offen");
    } else {
        b->wave.s[9] |= 1u << 31;
        run_fails(b, "swizzle", "buffer_load_dword v8, v0, s[8:11], 0 offen");
        b->wave.s[9] &= ~(1u << 31);
        b->wave.s[11] = 1u << 23;
        run_fails(b, "lane's number", "buffer_load_dword v8, v0, s[8:11], 0 offen");
    }
    bench_destroy(b);
}
END_TEST

/* Scalar loads
 * ------------
 */
START_TEST(scalar_loads)
{
    static const struct {
        const char *old_name, *new_name;
        int         bytes, sign;
    } rows[] = { { NULL, "u8", 1, 0 },         { NULL, "i8", 1, 1 },         { NULL, "u16", 2, 0 },
                 { NULL, "i16", 2, 1 },        { "dword", "b32", 4, 0 },     { "dwordx2", "b64", 8, 0 },
                 { NULL, "b96", 12, 0 },       { "dwordx4", "b128", 16, 0 }, { "dwordx8", "b256", 32, 0 },
                 { "dwordx16", "b512", 64, 0 } };
    const sim_arch arch = _i & 1;
    bench         *b = bench_create(arch, (_i & 2) != 0);
    for (int buffer = 0; buffer < 2; buffer++)
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            const char *name = arch == SIM_GFX950 ? rows[i].old_name : rows[i].new_name;
            if (name == NULL)
                continue;
            const int dwords = rows[i].bytes < 4 ? 1 : rows[i].bytes / 4;
            char      to[16];
            snprintf(to, sizeof to, dwords == 1 ? "s%d" : "s[%d:%d]", 32, 32 + dwords - 1);
            for (int form = 0; form < 3; form++) {
                sim_set_scalar64(&b->wave, 4, guest(b->memory + 256));
                set_buffer(b, guest(b->memory + 256), 0, 512, 0);
                b->wave.s[13] = 0x47; /* low bits do not count for dwords */
                static const char *const offsets[] = { "0x24", "s13", "s13 offset:0x18" };
                int64_t                  offset = form == 0 ? 0x24 : form == 1 ? 0x47 : 0x47 + 0x18;
                if (rows[i].bytes >= 4)
                    offset = offset / 4 * 4;
                for (int k = 0; k < 20; k++)
                    b->wave.s[30 + k] = 0xDEAD0000u + (uint32_t)k;
                run(b, "%s_%s %s, %s, %s", buffer ? "s_buffer_load" : "s_load", name, to, buffer ? "s[8:11]" : "s[4:5]",
                    offsets[form]);
                if (b->group.late)
                    ck_assert_uint_eq(b->wave.s[32], 0xDEAD0002u);
                sim_wait(&b->wave, arch == SIM_GFX950 ? SIM_LGKMCNT : SIM_KMCNT, 0);
                const width w = { "", "", rows[i].bytes, rows[i].sign, -1 };
                for (int k = 0; k < 20 && dwords < 16; k++) {
                    const bool     inside = k >= 2 && k < 2 + dwords;
                    const uint32_t want =
                        inside ? loaded(&w, b->memory + 256 + offset, k - 2, 0) : 0xDEAD0000u + (uint32_t)k;
                    ck_assert_msg(b->wave.s[30 + k] == want, "%s: s%d", b->text[(b->texts - 1) % TEXTS], 30 + k);
                }
                for (int k = 0; k < dwords; k++)
                    ck_assert_uint_eq(b->wave.s[32 + k], loaded(&w, b->memory + 256 + offset, k, 0));
            }
        }
    /* Negative immediates; a buffer's end: dwords beyond it are 0. */
    sim_set_scalar64(&b->wave, 4, guest(b->memory + 256));
    run(b, arch == SIM_GFX950 ? "s_load_dword s32, s[4:5], -0x14" : "s_load_b32 s32, s[4:5], -0x14");
    set_buffer(b, guest(b->memory + 256), 0, 0x2B, 0);
    run(b, arch == SIM_GFX950 ? "s_buffer_load_dwordx4 s[36:39], s[8:11], 0x20"
                              : "s_buffer_load_b128 s[36:39], s[8:11], 0x20");
    sim_wait(&b->wave, arch == SIM_GFX950 ? SIM_LGKMCNT : SIM_KMCNT, 0);
    ck_assert_mem_eq(&b->wave.s[32], b->memory + 256 - 0x14, 4);
    ck_assert_mem_eq(&b->wave.s[36], b->memory + 256 + 0x20, 8);
    ck_assert_uint_eq(b->wave.s[38], 0);
    ck_assert_uint_eq(b->wave.s[39], 0);
    if (arch == SIM_GFX950) { /* a stride makes records of it */
        set_buffer(b, guest(b->memory + 256), 8, 5, 0);
        run(b, "s_buffer_load_dwordx4 s[36:39], s[8:11], 0x20");
        sim_wait(&b->wave, SIM_LGKMCNT, 0);
        ck_assert_mem_eq(&b->wave.s[36], b->memory + 256 + 0x20, 8);
        ck_assert_uint_eq(b->wave.s[38], 0);
    } else {
        b->wave.s[13] = 5;
        run(b, "s_load_b64 s[36:37], s[4:5], s13 offset:0x10 scale_offset");
        sim_wait(&b->wave, SIM_KMCNT, 0);
        ck_assert_mem_eq(&b->wave.s[36], b->memory + 256 + 0x10 + 40, 8);
    }
    bench_destroy(b);
}
END_TEST

/* Atomics
 * -------
 * Each row: what is there, the operands, what is there afterwards. Values are bits.
 */
typedef struct atomic_row {
    const char *old_name, *new_name; /* behind global_atomic_; NULL: the arch has none */
    const char *ds_old,
        *ds_new; /* "add u32" of ds_add_u32 and ds_add_rtn_u32; "!" first: rtn form only, as it stands */
    int      bytes;
    uint64_t was, first, second, now; /* second: of compare and swap, what is compared with */
} atomic_row;

#define NAN32 0x7FC00000u
#define ONES UINT64_MAX
static const atomic_row atomics[] = {
    { "add", "add_u32", "add u32", "add u32", 4, 0xFFFFFFFF, 3, 0, 2 },
    { "add_x2", "add_u64", "add u64", "add u64", 8, 0xFFFFFFFFFFFFFFFF, 3, 0, 2 },
    { "sub", "sub_u32", "sub u32", "sub u32", 4, 2, 3, 0, 0xFFFFFFFF },
    { "sub_x2", "sub_u64", "sub u64", "sub u64", 8, 0x100000000, 1, 0, 0xFFFFFFFF },
    { NULL, NULL, "rsub u32", "rsub u32", 4, 2, 7, 0, 5 },
    { NULL, NULL, "rsub u64", "rsub u64", 8, 3, 1, 0, 0xFFFFFFFFFFFFFFFE },
    { NULL, "sub_clamp_u32", NULL, "sub_clamp u32", 4, 5, 7, 0, 0 },
    { NULL, "sub_clamp_u32", NULL, "sub_clamp u32", 4, 9, 7, 0, 2 },
    { NULL, "cond_sub_u32", NULL, "cond_sub u32", 4, 5, 7, 0, 5 },
    { NULL, "cond_sub_u32", NULL, "cond_sub u32", 4, 7, 7, 0, 0 },
    { "smin", "min_i32", "min i32", "min i32", 4, 1, 0x80000000, 0, 0x80000000 },
    { "smin", "min_i32", "min i32", "min i32", 4, 0xFFFFFFFE, 0xFFFFFFFF, 0, 0xFFFFFFFE },
    { "umin", "min_u32", "min u32", "min u32", 4, 1, 0x80000000, 0, 1 },
    { "smax", "max_i32", "max i32", "max i32", 4, 1, 0x80000000, 0, 1 },
    { "umax", "max_u32", "max u32", "max u32", 4, 1, 0x80000000, 0, 0x80000000 },
    { "smin_x2", "min_i64", "min i64", "min i64", 8, 1, 0x8000000000000000, 0, 0x8000000000000000 },
    { "umin_x2", "min_u64", "min u64", "min u64", 8, 0x100000000, 0xFFFFFFFF, 0, 0xFFFFFFFF },
    { "smax_x2", "max_i64", "max i64", "max i64", 8, 0xFFFFFFFFFFFFFFFF, 0, 0, 0 },
    { "umax_x2", "max_u64", "max u64", "max u64", 8, 0xFFFFFFFFFFFFFFFF, 0, 0, 0xFFFFFFFFFFFFFFFF },
    { "and", "and_b32", "and b32", "and b32", 4, 0xFF00FF00, 0x0FF00FF0, 0, 0x0F000F00 },
    { "and_x2", "and_b64", "and b64", "and b64", 8, 0xF0F0F0F0F0F0F0F0, 0xFF00FF00FF00FF00, 0, 0xF000F000F000F000 },
    { "or", "or_b32", "or b32", "or b32", 4, 0xFF00FF00, 0x0FF00FF0, 0, 0xFFF0FFF0 },
    { "or_x2", "or_b64", "or b64", "or b64", 8, 0xF000000000000001, 0x0F00000000000002, 0, 0xFF00000000000003 },
    { "xor", "xor_b32", "xor b32", "xor b32", 4, 0xFF00FF00, 0x0FF00FF0, 0, 0xF0F0F0F0 },
    { "xor_x2", "xor_b64", "xor b64", "xor b64", 8, 0xFF00FF0000000000, 0x0FF00FF000000001, 0, 0xF0F0F0F000000001 },
    { "inc", "inc_u32", "inc u32", "inc u32", 4, 4, 5, 0, 5 },
    { "inc", "inc_u32", "inc u32", "inc u32", 4, 5, 5, 0, 0 },
    { "inc_x2", "inc_u64", "inc u64", "inc u64", 8, 0xFFFFFFFF, 0xFFFFFFFFFF, 0, 0x100000000 },
    { "dec", "dec_u32", "dec u32", "dec u32", 4, 0, 5, 0, 5 },
    { "dec", "dec_u32", "dec u32", "dec u32", 4, 6, 5, 0, 5 },
    { "dec", "dec_u32", "dec u32", "dec u32", 4, 5, 5, 0, 4 },
    { "dec_x2", "dec_u64", "dec u64", "dec u64", 8, 0x100000000, 0x200000000, 0, 0xFFFFFFFF },
    { "swap", "swap_b32", "!ds_wrxchg_rtn_b32", "!ds_storexchg_rtn_b32", 4, 0x12345678, 0x9ABCDEF0, 0, 0x9ABCDEF0 },
    { "swap_x2", "swap_b64", "!ds_wrxchg_rtn_b64", "!ds_storexchg_rtn_b64", 8, 1, 0x9ABCDEF012345678, 0,
      0x9ABCDEF012345678 },
    { "cmpswap", "cmpswap_b32", "cmpst b32", "cmpstore b32", 4, 7, 9, 7, 9 },
    { "cmpswap", "cmpswap_b32", "cmpst b32", "cmpstore b32", 4, 7, 9, 8, 7 },
    { "cmpswap_x2", "cmpswap_b64", "cmpst b64", "cmpstore b64", 8, 0x700000000, 9, 0x700000000, 9 },
    { "cmpswap_x2", "cmpswap_b64", "cmpst b64", "cmpstore b64", 8, 0x700000001, 9, 0x700000000, 0x700000001 },
    { NULL, NULL, "cmpst f32", NULL, 4, 0x80000000, 0x3F800000, 0, 0x3F800000 }, /* -0 equals 0 */
    { NULL, NULL, "cmpst f32", NULL, 4, NAN32, 0x3F800000, NAN32, NAN32 },
    { NULL, NULL, "cmpst f64", NULL, 8, 0x8000000000000000, 5, 0, 5 },
    { "add_f32", "add_f32", "add f32", "add f32", 4, 0x3F800000, 0x40000000, 0, 0x40400000 }, /* 1 + 2 */
    { "add_f32", "add_f32", "add f32", "add f32", 4, 0x4B800000, 0x3F800000, 0, 0x4B800000 }, /* 2^24 + 1: to even */
    { "add_f32", "add_f32", "add f32", "add f32", 4, 0x00000001, 0x00000001, 0, 0x00000002 }, /* denormals */
    { "add_f64", "add_f64", "add f64", "add f64", 8, 0x3FF0000000000000, 0x3CA0000000000000, 0, 0x3FF0000000000000 },
    { "add_f64", "add_f64", "add f64", "add f64", 8, 0x3FF0000000000000, 0x4000000000000000, 0, 0x4008000000000000 },
    { "min_f64", "min_num_f64", "min f64", "min_num f64", 8, 0x7FF8000000000000, 0x4000000000000000, 0,
      0x4000000000000000 },
    { "min_f64", "min_num_f64", "min f64", "min_num f64", 8, 0, 0x8000000000000000, 0, 0x8000000000000000 },
    { "max_f64", "max_num_f64", "max f64", "max_num f64", 8, 0x8000000000000000, 0, 0, 0 },
    { "max_f64", "max_num_f64", "max f64", "max_num f64", 8, 0x4000000000000000, 0x7FF8000000000000, 0,
      0x4000000000000000 },
    { NULL, "min_num_f32", "min f32", "min_num f32", 4, 0xBF800000, 0x3F800000, 0, 0xBF800000 },
    { NULL, "min_num_f32", "min f32", "min_num f32", 4, NAN32, 0x3F800000, 0, 0x3F800000 },
    { NULL, "max_num_f32", "max f32", "max_num f32", 4, 0x3F800000, NAN32, 0, 0x3F800000 },
    { NULL, "max_num_f32", "max f32", "max_num f32", 4, 0x80000000, 0, 0, 0 },
    /* 1 + 0.5 and 65504 + 16 (a tie, to even: Inf) */
    { "pk_add_f16", "pk_add_f16", "pk_add f16", "pk_add f16", 4, 0x7BFF3C00, 0x4C003800, 0, 0x7C003E00 },
    { "pk_add_f16", "pk_add_f16", "pk_add f16", "pk_add f16", 4, 0x00018001, 0x00018001, 0, 0x00028002 },
    /* 1 + 2^-8 (a tie, to even) and 1 + 3 * 2^-8 (up) */
    { "pk_add_bf16", "pk_add_bf16", "pk_add bf16", "pk_add bf16", 4, 0x3F803F80, 0x3C403B80, 0, 0x3F823F80 },
    { NULL, NULL, "mskor b32", "mskor b32", 4, 0xFFFF0000, 0x00FF00FF, 0x00120034, 0xFF120034 },
    { NULL, NULL, "mskor b64", "mskor b64", 8, ONES, 0xFFFFFFFF00000000, 0x0000000500000000, 0x00000005FFFFFFFF },
};
enum { ATOMICS = sizeof atomics / sizeof atomics[0] };

static void put(bench *b, int number, int bytes, uint64_t x)
{
    for (int lane = 0; lane < b->wave.lanes; lane++) {
        reg(b, number)[lane] = (uint32_t)x;
        if (bytes == 8)
            reg(b, number + 1)[lane] = (uint32_t)(x >> 32);
    }
}

static void place_values(bench *b, const atomic_row *r, uint8_t *const *at)
{
    for (int lane = 0; lane < b->wave.lanes; lane++)
        memcpy(at[lane], &r->was, (size_t)r->bytes);
}

/* Active lanes have changed memory, and (returns) have the old value in v[8..]; nothing else has changed. */
static void check_atomic(const bench *b, const atomic_row *r, uint8_t *const *at, bool returns, const uint32_t *before)
{
    const char    *text = b->text[(b->texts - 1) % TEXTS];
    const width    w = { "", "", r->bytes, 0, -1 };
    const uint8_t *old[64];
    for (int lane = 0; lane < b->wave.lanes; lane++) {
        uint64_t got = 0;
        memcpy(&got, at[lane], (size_t)r->bytes);
        const uint64_t want = active(b, lane) ? r->now : r->was;
        if (got != want)
            ck_abort_msg("%s lane %d: 0x%" PRIx64 ", wanted 0x%" PRIx64, text, lane, got, want);
        old[lane] = (const uint8_t *)&r->was; /* little-endian, as all of the tests */
    }
    if (returns)
        check_loaded(b, &w, old, before);
}

static void wait_all(bench *b)
{
    for (int c = 0; c < SIM_COUNTERS; c++)
        sim_wait(&b->wave, (sim_counter)c, 0);
}

static void one_atomic(bench *b, const atomic_row *r, place_form f, bool returns)
{
    const char *name = b->group.arch == SIM_GFX950 ? r->old_name : r->new_name;
    const char *modifier = !returns ? "" : b->group.arch == SIM_GFX950 ? " sc0" : " th:TH_ATOMIC_RETURN";
    const bool  compares = strncmp(name, "cmpswap", 7) == 0;
    uint8_t    *at[64];
    uint32_t    before[REGISTERS * 64];
    const char *behind = prepare(b, f, 0, at);
    place_values(b, r, at);
    if (f == BUFFER) { /* data and result share v[8..] */
        put(b, TO, r->bytes, r->first);
        put(b, TO + r->bytes / 4, r->bytes, r->second);
        remember(b, before);
        run(b, "buffer_atomic_%s %s, v0, %s%s", name, tuple(TO, r->bytes * (compares ? 2 : 1)), behind, modifier);
    } else {
        put(b, 16, r->bytes, r->first);
        put(b, 16 + r->bytes / 4, r->bytes, r->second);
        remember(b, before);
        run(b, "%s_atomic_%s %s%s%s, %s%s %s%s", prefix_of(f), name, returns ? tuple(TO, r->bytes) : "",
            returns ? ", " : "", address_of(f), tuple(16, r->bytes * (compares ? 2 : 1)),
            f == FLAT_GLOBAL || f == FLAT_LDS ? "" : ",", behind, modifier);
    }
    put(b, 16, 8, 0x5555555555555555);
    wait_all(b);
    check_atomic(b, r, at, returns, before);
}

START_TEST(memory_atomics)
{
    const sim_arch arch = _i & 1;
    bench         *b = bench_create(arch, (_i & 2) != 0);
    for (int m = 0; m < MASKS; m++) {
        sim_set_exec(&b->wave, masks[m]);
        for (int i = 0; i < ATOMICS; i++) {
            const atomic_row *r = &atomics[i];
            if ((arch == SIM_GFX950 ? r->old_name : r->new_name) == NULL)
                continue;
            static const place_form forms[] = { OFF, SADDR, FLAT_GLOBAL, FLAT_LDS, BUFFER };
            for (int f = 0; f < 5; f++)
                for (int returns = 0; returns < 2; returns++)
                    one_atomic(b, r, forms[f], returns);
        }
    }
    bench_destroy(b);
}
END_TEST

/* Out of a buffer's range: dropped whole, the result 0. */
START_TEST(buffer_atomics_out_of_range)
{
    bench *b = bench_create(SIM_GFX950, false);
    set_buffer(b, guest(b->memory), 0, 100, 0);
    for (int lane = 0; lane < 64; lane++)
        reg(b, 0)[lane] = (uint32_t)(8 * lane); /* lane 12 has bytes 96 to 103: 4 of them are in range */
    uint64_t was[64];
    memcpy(was, b->memory, sizeof was);
    put(b, TO, 8, 1);
    run(b, "buffer_atomic_add_x2 v[8:9], v0, s[8:11], 0 offen sc0");
    for (int lane = 0; lane < 64; lane++) {
        const uint64_t returned = reg(b, TO)[lane] | (uint64_t)reg(b, TO + 1)[lane] << 32;
        uint64_t       now;
        memcpy(&now, b->memory + 8 * lane, 8);
        ck_assert_uint_eq(returned, lane < 12 ? was[lane] : 0);
        ck_assert_uint_eq(now, was[lane] + (lane < 12 ? 1 : 0));
    }
    bench_destroy(b);
}
END_TEST

START_TEST(ds_atomics)
{
    const sim_arch arch = _i & 1;
    bench         *b = bench_create(arch, (_i & 2) != 0);
    for (int m = 0; m < MASKS; m++) {
        sim_set_exec(&b->wave, masks[m]);
        for (int i = 0; i < ATOMICS; i++) {
            const atomic_row *r = &atomics[i];
            const char       *name = arch == SIM_GFX950 ? r->ds_old : r->ds_new;
            if (name == NULL)
                continue;
            for (int returns = name[0] == '!'; returns < 2; returns++) {
                char        mnemonic[64];
                const char *space = strchr(name, ' ');
                const bool  two = strncmp(name, "cmps", 4) == 0 || strncmp(name, "mskor", 5) == 0;
                /* ds_cmpst names what is compared first, ds_cmpstore last */
                const bool swapped = strncmp(name, "cmpst ", 6) == 0;
                if (name[0] == '!')
                    snprintf(mnemonic, sizeof mnemonic, "%s", name + 1);
                else
                    snprintf(mnemonic, sizeof mnemonic, "ds_%.*s_%s%s", (int)(space - name), name,
                             returns ? "rtn_" : "", space + 1);
                uint8_t *at[64];
                uint32_t before[REGISTERS * 64];
                for (int lane = 0; lane < b->wave.lanes; lane++) {
                    at[lane] = b->lds + place(lane, 0);
                    reg(b, 2)[lane] = place(lane, 0) - 24;
                }
                place_values(b, r, at);
                put(b, 16, r->bytes, swapped ? r->second : r->first);
                put(b, 20, r->bytes, swapped ? r->first : r->second);
                remember(b, before);
                run(b, "%s %s%sv2, %s%s%s offset:24", mnemonic, returns ? tuple(TO, r->bytes) : "", returns ? ", " : "",
                    tuple(16, r->bytes), two ? ", " : "", two ? tuple(20, r->bytes) : "");
                wait_all(b);
                check_atomic(b, r, at, returns, before);
            }
        }
    }
    bench_destroy(b);
}
END_TEST

/* Lanes that hit the same place take turns, lowest first here; and threads do not lose any. */
typedef struct adder {
    bench *b;
    int    rounds;
} adder;

static void *add_often(void *arg)
{
    adder *a = arg;
    for (int i = 0; i < a->rounds; i++) {
        run_quiet(a->b, "global_atomic_add v[0:1], v2, off");
        run_quiet(a->b, "global_atomic_add_f64 v[4:5], v[6:7], off");
    }
    return NULL;
}

START_TEST(atomics_of_threads)
{
    bench    *b[2] = { bench_create(SIM_GFX950, false), bench_create(SIM_GFX950, false) };
    pthread_t thread[2];
    adder     a[2];
    const int rounds = 500;
    memset(b[0]->memory, 0, 16);
    b[1]->group.map = b[0]->map;
    for (int t = 0; t < 2; t++) {
        for (int lane = 0; lane < 64; lane++) {
            set64(b[t], 0, lane, guest(b[0]->memory));
            set64(b[t], 4, lane, guest(b[0]->memory + 8));
            reg(b[t], 2)[lane] = 3;
            set64(b[t], 6, lane, 0x3FF0000000000000); /* 1.0 */
        }
        a[t] = (adder){ b[t], rounds };
        ck_assert_int_eq(pthread_create(&thread[t], NULL, add_often, &a[t]), 0);
    }
    for (int t = 0; t < 2; t++)
        pthread_join(thread[t], NULL);
    uint32_t count;
    double   sum;
    memcpy(&count, b[0]->memory, 4);
    memcpy(&sum, b[0]->memory + 8, 8);
    ck_assert_uint_eq(count, 2u * 64u * 3u * (unsigned)rounds);
    ck_assert_double_eq(sum, 2.0 * 64 * rounds);
    run(b[0], "global_atomic_add v8, v[0:1], v2, off sc0");
    uint64_t total = 0;
    for (int lane = 0; lane < 64; lane++)
        total += reg(b[0], 8)[lane];
    ck_assert_uint_eq(total, 64 * (uint64_t)count + 3 * (64 * 63 / 2)); /* each saw another one's sum */
    bench_destroy(b[0]);
    bench_destroy(b[1]);
}
END_TEST

/* LDS
 * ---
 */
START_TEST(ds_single)
{
    static uint8_t want[LDS_BYTES];
    const sim_arch arch = _i & 1;
    bench         *b = bench_create(arch, (_i & 2) != 0);
    for (int m = 0; m < MASKS; m++) {
        sim_set_exec(&b->wave, masks[m]);
        for (int odd = 0; odd < 2; odd++) {
            uint8_t *at[64];
            uint32_t before[REGISTERS * 64];
            for (int i = 0; i < DS_LOADS; i++) {
                const width *w = &ds_loads[i];
                for (int lane = 0; lane < b->wave.lanes;
                     lane++) { /* some lanes beyond the end, one of them by a byte */
                    const uint32_t p = lane == 3   ? LDS_BYTES - (uint32_t)w->bytes
                                       : lane == 7 ? LDS_BYTES - (uint32_t)w->bytes + 1
                                       : lane == 8 ? 0xFFFFFFF0u
                                                   : place(lane, odd);
                    at[lane] = lane == 7 || lane == 8 ? NULL : b->lds + p;
                    reg(b, 2)[lane] = p - 20;
                }
                remember(b, before);
                run(b, "%s %s, v2 offset:20", name_on(w, arch), tuple(TO, w->bytes));
                wait_all(b);
                check_loaded(b, w, (const uint8_t *const *)at, before);
            }
            for (int i = 0; i < DS_STORES; i++) {
                const width *w = &ds_stores[i];
                memcpy(want, b->lds, sizeof want);
                for (int lane = 0; lane < b->wave.lanes; lane++) {
                    const uint32_t p = lane == 7 ? LDS_BYTES - (uint32_t)w->bytes + 1 : place(lane, odd);
                    reg(b, 2)[lane] = p - 20;
                    if (active(b, lane) && lane != 7)
                        store_bytes(b, w, want + p, TO, lane);
                }
                run(b, "%s v2, %s offset:20", name_on(w, arch), tuple(TO, w->bytes));
                put(b, TO, 8, 0x0102030405060708u * (uint64_t)(i + 1)); /* the data is taken at issue */
                wait_all(b);
                check_memory(b, b->lds, want, sizeof want);
            }
        }
    }
    bench_destroy(b);
}
END_TEST

START_TEST(ds_two_addresses)
{
    static const struct {
        const char *load[2], *store[2], *exchange[2];
        int         bytes, step;
    } rows[] = {
        { { "ds_read2_b32", "ds_load_2addr_b32" },
          { "ds_write2_b32", "ds_store_2addr_b32" },
          { "ds_wrxchg2_rtn_b32", "ds_storexchg_2addr_rtn_b32" },
          4,
          4 },
        { { "ds_read2_b64", "ds_load_2addr_b64" },
          { "ds_write2_b64", "ds_store_2addr_b64" },
          { "ds_wrxchg2_rtn_b64", "ds_storexchg_2addr_rtn_b64" },
          8,
          8 },
        { { "ds_read2st64_b32", "ds_load_2addr_stride64_b32" },
          { "ds_write2st64_b32", "ds_store_2addr_stride64_b32" },
          { "ds_wrxchg2st64_rtn_b32", "ds_storexchg_2addr_stride64_rtn_b32" },
          4,
          256 },
        { { "ds_read2st64_b64", "ds_load_2addr_stride64_b64" },
          { "ds_write2st64_b64", "ds_store_2addr_stride64_b64" },
          { "ds_wrxchg2st64_rtn_b64", "ds_storexchg_2addr_stride64_rtn_b64" },
          8,
          512 },
    };
    static uint8_t want[LDS_BYTES];
    const sim_arch arch = _i & 1;
    bench         *b = bench_create(arch, (_i & 2) != 0);
    for (int m = 0; m < MASKS; m++) {
        sim_set_exec(&b->wave, masks[m]);
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            const int bytes = rows[i].bytes, dwords = bytes / 4;
            /* From address 8 * lane: the second offset reaches beyond the end for the high lanes of the large strides.
             * */
            const int first = 3, second = rows[i].step == 4   ? 255
                                          : rows[i].step == 8 ? 200
                                                              : LDS_BYTES / rows[i].step - 1;
            for (int lane = 0; lane < b->wave.lanes; lane++)
                reg(b, 2)[lane] = (uint32_t)(8 * lane);
            for (int kind = 0; kind < 3; kind++) {
                const char *name = (kind == 0 ? rows[i].load : kind == 1 ? rows[i].store : rows[i].exchange)[arch];
                uint32_t    want_v[4][64];
                memcpy(want, b->lds, sizeof want);
                for (int k = 0; k < 2; k++)
                    for (int lane = 0; lane < b->wave.lanes; lane++) {
                        const int  p = 8 * lane + (k == 0 ? first : second) * rows[i].step;
                        const bool inside = p + bytes <= LDS_BYTES;
                        for (int j = 0; j < dwords; j++) {
                            uint32_t *to = &want_v[k * dwords + j][lane];
                            *to = reg(b, TO + k * dwords + j)[lane];
                            if (!active(b, lane))
                                continue;
                            if (kind != 1) {
                                *to = 0;
                                if (inside)
                                    memcpy(to, want + p + 4 * j, 4);
                            }
                            if (kind != 0 && inside)
                                memcpy(want + p + 4 * j, &reg(b, (k == 0 ? 16 : 20) + j)[lane], 4);
                        }
                    }
                if (kind == 1)
                    run(b, "%s v2, %s, %s offset0:%d offset1:%d", name, tuple(16, bytes), tuple(20, bytes), first,
                        second);
                else if (kind == 0)
                    run(b, "%s %s, v2 offset0:%d offset1:%d", name, tuple(TO, 2 * bytes), first, second);
                else
                    run(b, "%s %s, v2, %s, %s offset0:%d offset1:%d", name, tuple(TO, 2 * bytes), tuple(16, bytes),
                        tuple(20, bytes), first, second);
                wait_all(b);
                check_memory(b, b->lds, want, sizeof want);
                for (int j = 0; j < 2 * dwords; j++)
                    for (int lane = 0; lane < b->wave.lanes; lane++)
                        if (reg(b, TO + j)[lane] != want_v[j][lane])
                            ck_abort_msg("%s: v%d lane %d", name, TO + j, lane);
            }
        }
    }
    bench_destroy(b);
}
END_TEST

START_TEST(ds_thread_addresses)
{
    const sim_arch arch = _i & 1;
    bench         *b = bench_create(arch, (_i & 2) != 0);
    b->wave.s[SIM_M0] = 0xABCD0040;
    run(b, arch == SIM_GFX950 ? "ds_read_addtid_b32 v8 offset:20" : "ds_load_addtid_b32 v8 offset:20");
    run(b, arch == SIM_GFX950 ? "ds_write_addtid_b32 v9 offset:1024" : "ds_store_addtid_b32 v9 offset:1024");
    wait_all(b);
    for (int lane = 0; lane < b->wave.lanes; lane++) {
        ck_assert_mem_eq(&reg(b, 8)[lane], b->lds + 0x40 + 20 + 4 * lane, 4);
        ck_assert_mem_eq(&reg(b, 9)[lane], b->lds + 0x40 + 1024 + 4 * lane, 4);
    }
    bench_destroy(b);
}
END_TEST

/* Transposed reads, as tiles: on gfx950, 16 lanes read a tile whose columns come out; the tables of the layout
 * otherwise. */
typedef struct pair {
    int lane, element;
} pair;

static pair tr950_b16(int d, int e)
{
    return (pair){ (d & ~15) + 4 * e + ((d >> 2) & 3), d & 3 };
}

static pair tr950_b8(int d, int e)
{
    return (pair){ (d & ~15) + 2 * e + ((d >> 3) & 1), d & 7 };
}

static pair tr1250_b8(int d, int e)
{
    return (pair){ (d & 16) + e % 4 + 4 * ((d >> 3) & 1) + 8 * (e / 4), d & 7 };
}

static pair tr1250_b16(int d, int e)
{
    return (pair){ (d & ~7) + e, d & 7 };
}

static void one_transposed(bench *b, const char *name, int bytes, int size, pair (*from)(int, int), uint8_t *const *at)
{
    run(b, "%s", name);
    wait_all(b);
    for (int lane = 0; lane < b->wave.lanes; lane++)
        for (int e = 0; e < bytes / size; e++) {
            const pair p = from(lane, e);
            uint8_t    got[16];
            for (int i = 0; i < bytes / 4; i++)
                memcpy(got + 4 * i, &reg(b, TO + i)[lane], 4);
            if (memcmp(got + e * size, at[p.lane] + p.element * size, (size_t)size) != 0)
                ck_abort_msg("%s: lane %d element %d is not that of lane %d, %d", name, lane, e, p.lane, p.element);
        }
}

START_TEST(transposed)
{
    uint8_t *at[64], *global[64];
    bench   *b = bench_create(SIM_GFX950, _i != 0);
    for (int lane = 0; lane < 64; lane++) {
        at[lane] = b->lds + 16 * (lane * 29 % 64) + 64;
        reg(b, 2)[lane] = (uint32_t)(16 * (lane * 29 % 64));
    }
    one_transposed(b, "ds_read_b64_tr_b16 v[8:9], v2 offset:64", 8, 2, tr950_b16, at);
    one_transposed(b, "ds_read_b64_tr_b8 v[8:9], v2 offset:64", 8, 1, tr950_b8, at);
    /* The property that kernels use: a 16 x 16 tile of bytes in rows of 16, lanes 2r and 2r + 1 reading row r's halves,
     * gives lane d column d, rows 0 to 7 (one half of them each for d mod 16 < 8 and above: element e is row e). */
    for (int lane = 0; lane < 64; lane++)
        reg(b, 2)[lane] = (uint32_t)(256 * (lane / 16) + 8 * (lane % 16));
    run(b, "ds_read_b64_tr_b8 v[8:9], v2");
    wait_all(b);
    for (int lane = 0; lane < 64; lane++)
        for (int e = 0; e < 8; e++)
            ck_assert_uint_eq(reg(b, 8 + e / 4)[lane] >> 8 * (e % 4) & 0xFF,
                              b->lds[256 * (lane / 16) + 16 * e + lane % 16]);
    bench_destroy(b);

    b = bench_create(SIM_GFX1250, _i != 0);
    for (int lane = 0; lane < 32; lane++) {
        at[lane] = b->lds + 16 * (lane * 13 % 32) + 64;
        reg(b, 2)[lane] = (uint32_t)(16 * (lane * 13 % 32));
        global[lane] = b->memory + 16 * (lane * 7 % 32);
        set64(b, 0, lane, guest(global[lane]));
    }
    one_transposed(b, "global_load_tr8_b64 v[8:9], v[0:1], off", 8, 1, tr1250_b8, global);
    one_transposed(b, "global_load_tr16_b128 v[8:11], v[0:1], off", 16, 2, tr1250_b16, global);
    sim_set_exec(&b->wave, 0x55); /* the DS forms ignore it */
    one_transposed(b, "ds_load_tr8_b64 v[8:9], v2 offset:64", 8, 1, tr1250_b8, at);
    one_transposed(b, "ds_load_tr16_b128 v[8:11], v2 offset:64", 16, 2, tr1250_b16, at);
    run_fails(b, "4-bit", "ds_load_tr4_b64 v[8:9], v2");
    run_fails(b, "6-bit", "ds_load_tr6_b96 v[8:10], v2");
    run_fails(b, "4-bit", "global_load_tr4_b64 v[8:9], v[0:1], off");
    run_fails(b, "6-bit", "global_load_tr6_b96 v[8:10], v[0:1], off");
    run_fails(b, "barrier objects", "ds_atomic_barrier_arrive_rtn_b64 v[8:9], v2, v[4:5]");
    run_fails(b, "barrier objects", "ds_atomic_async_barrier_arrive_b64 v2 offset:8");
    bench_destroy(b);
}
END_TEST

START_TEST(permutations)
{
    const sim_arch arch = _i & 1;
    for (int m = 0; m < MASKS; m++) {
        bench    *b = bench_create(arch, (_i & 2) != 0);
        const int lanes = b->wave.lanes;
        uint32_t  data[64], was[64], want[64];
        sim_set_exec(&b->wave, masks[m]);
        for (int lane = 0; lane < lanes; lane++) {
            reg(b, 2)[lane] = hash((uint32_t)lane) | 1; /* the two low bits do not count */
            data[lane] = reg(b, 3)[lane];
            was[lane] = reg(b, 8)[lane];
        }
        run(b, "ds_bpermute_b32 v8, v2, v3 offset:12");
        wait_all(b);
        for (int lane = 0; lane < lanes; lane++) {
            const int from = (int)((reg(b, 2)[lane] + 12) / 4 % (uint32_t)lanes);
            want[lane] = !active(b, lane) ? was[lane] : active(b, from) ? data[from] : 0;
        }
        ck_assert_mem_eq(reg(b, 8), want, (size_t)lanes * 4);

        run(b, "ds_permute_b32 v3, v2, v3"); /* onto its own data */
        wait_all(b);
        for (int lane = 0; lane < lanes; lane++) {
            want[lane] = active(b, lane) ? 0 : data[lane];
            for (int from = 0; from < lanes && active(b, lane); from++)
                if (active(b, from) && reg(b, 2)[from] / 4 % (uint32_t)lanes == (uint32_t)lane)
                    want[lane] = data[from];
        }
        ck_assert_mem_eq(reg(b, 3), want, (size_t)lanes * 4);
        if (arch == SIM_GFX1250) {
            memcpy(data, reg(b, 3), sizeof want / 2);
            memcpy(was, reg(b, 8), sizeof want / 2);
            run(b, "ds_bpermute_fi_b32 v8, v2, v3");
            wait_all(b);
            for (int lane = 0; lane < lanes; lane++)
                want[lane] = active(b, lane) ? data[reg(b, 2)[lane] / 4 % 32] : was[lane];
            ck_assert_mem_eq(reg(b, 8), want, (size_t)lanes * 4);
        }
        bench_destroy(b);
    }
}
END_TEST

/* Each mode's meaning in words, against its printed form. */
static int swap16(int lane)
{
    return lane ^ 16;
}
static int reverse8(int lane)
{
    return lane / 8 * 8 + 7 - lane % 8;
}
static int broadcast16_3(int lane)
{
    return lane / 16 * 16 + 3;
}
static int quads_3120(int lane)
{
    static const int to[] = { 3, 1, 2, 0 };
    return lane / 4 * 4 + to[lane % 4];
}
static int bits_01pi0(int lane)
{
    return (lane & 32) + 8 + (lane & 4) + ((lane & 2) ^ 2);
}

START_TEST(swizzles)
{
    static const struct {
        const char *text;
        int (*from)(int);
    } rows[] = { { "swizzle(SWAP,16)", swap16 },
                 { "swizzle(REVERSE,8)", reverse8 },
                 { "swizzle(BROADCAST,16,3)", broadcast16_3 },
                 { "swizzle(QUAD_PERM,3,1,2,0)", quads_3120 },
                 { "swizzle(BITMASK_PERM,\"01pi0\")", bits_01pi0 } };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (int m = 0; m < MASKS; m++) {
            bench   *b = bench_create(_i & 1, (_i & 2) != 0);
            uint32_t was[64];
            sim_set_exec(&b->wave, masks[m]);
            memcpy(was, reg(b, 8), (size_t)b->wave.lanes * 4);
            run(b, "ds_swizzle_b32 v8, v3 offset:%s", rows[i].text);
            wait_all(b);
            for (int lane = 0; lane < b->wave.lanes; lane++) {
                const int      from = rows[i].from(lane);
                const uint32_t want = !active(b, lane) ? was[lane] : active(b, from) ? reg(b, 3)[from] : 0;
                ck_assert_msg(reg(b, 8)[lane] == want, "%s lane %d", rows[i].text, lane);
            }
            bench_destroy(b);
        }
}
END_TEST

/* Copies between memory and LDS
 * -----------------------------
 */
START_TEST(lds_dma)
{
    static const struct {
        const char *name;
        int         bytes, sign, step;
    } rows[] = { { "ubyte", 1, 0, 4 }, { "sbyte", 1, 1, 4 },     { "ushort", 2, 0, 4 },   { "sshort", 2, 1, 4 },
                 { "dword", 4, 0, 4 }, { "dwordx3", 12, 0, 16 }, { "dwordx4", 16, 0, 16 } };
    static uint8_t want[LDS_BYTES];
    bench         *b = bench_create(SIM_GFX950, _i != 0);
    for (int m = 0; m < MASKS; m++)
        for (int form = 0; form < 4; form++)
            for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
                uint8_t    *at[64];
                const width w = { "", "", rows[i].bytes, rows[i].sign, -1 };
                const char *behind = prepare(b, form < 2 ? (int)form : BUFFER, 0, at);
                const int   offset = form < 2 ? -24 : 16;
                sim_set_exec(&b->wave, masks[m]);
                b->wave.s[SIM_M0] = 0xFFFC0000u + 0x803; /* bits 17 to 2 count */
                b->wave.s[SIM_M0] += 0x400;
                memcpy(want, b->lds, sizeof want);
                for (int lane = 0; lane < 64; lane++) {
                    if (form == 3)
                        at[lane] = b->memory + 64 + 16;
                    for (int k = 0; k < (rows[i].bytes + 3) / 4 && active(b, lane); k++) {
                        const uint32_t x = loaded(&w, at[lane], k, 0);
                        memcpy(want + 0xC00 + offset + lane * rows[i].step + 4 * k, &x, 4);
                    }
                }
                if (form < 2)
                    run(b, "global_load_lds_%s %s, %s", rows[i].name, form == 0 ? "v[0:1]" : "v0", behind);
                else if (form == 2)
                    run(b, "buffer_load_%s v0, %s lds", rows[i].name, behind);
                else
                    run(b, "buffer_load_%s off, s[8:11], s12 offset:16 lds", rows[i].name);
                b->wave.s[SIM_M0] = 0; /* taken at issue */
                wait_all(b);
                check_memory(b, b->lds, want, sizeof want);
            }
    bench_destroy(b);
}
END_TEST

START_TEST(async_copies)
{
    static const struct {
        const char *name;
        int         bytes;
    } rows[] = { { "b8", 1 }, { "b32", 4 }, { "b64", 8 }, { "b128", 16 } };
    static uint8_t want[LDS_BYTES], want_memory[MEMORY_BYTES];
    bench         *b = bench_create(SIM_GFX1250, _i != 0);
    for (int m = 0; m < MASKS; m++)
        for (int form = 0; form < 3; form++)
            for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
                uint8_t    *at[64];
                const char *behind = prepare(b, form == 0 ? OFF : SADDR, 0, at), *v = form == 0 ? "v[0:1]" : "v0";
                char        scaled[64];
                sim_set_exec(&b->wave, masks[m]);
                if (form == 2) {
                    snprintf(scaled, sizeof scaled, "%s scale_offset", behind);
                    behind = scaled;
                    for (int lane = 0; lane < 32; lane++) {
                        reg(b, 0)[lane] = (uint32_t)(8 + 5 * lane);
                        at[lane] = b->memory + 512 - 24 + (8 + 5 * lane) * rows[i].bytes;
                    }
                }
                memcpy(want, b->lds, sizeof want);
                memcpy(want_memory, b->memory, sizeof want_memory);
                for (int lane = 0; lane < 32; lane++) {
                    const uint32_t p = 1024u + (uint32_t)(lane * 11 % 32) * 20;
                    reg(b, 3)[lane] = lane == 9 ? LDS_BYTES + 24u : p; /* one lane is out of LDS */
                    if (active(b, lane) && lane != 9)
                        memcpy(want + p - 24, at[lane], (size_t)rows[i].bytes);
                }
                run(b, "%s_load_async_to_lds_%s v3, %s, %s", m & 1 ? "cluster" : "global", rows[i].name, v, behind);
                wait_all(b);
                check_memory(b, b->lds, want, sizeof want);

                fill(b->lds, LDS_BYTES, (uint32_t)(100 + i));
                for (int lane = 0; lane < 32; lane++)
                    if (active(b, lane)) {
                        if (lane == 9)
                            memset(want_memory + (at[lane] - b->memory), 0, (size_t)rows[i].bytes);
                        else
                            memcpy(want_memory + (at[lane] - b->memory), b->lds + reg(b, 3)[lane] - 24,
                                   (size_t)rows[i].bytes);
                    }
                run(b, "global_store_async_from_lds_%s %s, v3, %s", rows[i].name, v, behind);
                wait_all(b);
                check_memory(b, b->memory, want_memory, sizeof want_memory);
            }
    bench_destroy(b);
}
END_TEST

/* The tensor mover
 * ----------------
 * Descriptors are written bit by bit; the second implementation walks every element by itself.
 */
typedef struct tensor {
    uint64_t address;
    uint32_t lds;
    int      size_code; /* log2 of an element's bytes */
    uint64_t extent[5];
    uint32_t tile[5];
    uint64_t stride[5]; /* [1]: tensor_dim0_stride ... */
    bool     pad, gather, wide;
    uint32_t interval, amount, index[16];
} tensor;

static void set_bits(uint32_t *d, int first, int count, uint64_t x)
{
    for (int i = 0; i < count; i++) {
        d[(first + i) / 32] &= ~(1u << (first + i) % 32);
        d[(first + i) / 32] |= (uint32_t)(x >> i & 1) << (first + i) % 32;
    }
}

static void write_descriptor(bench *b, const tensor *t)
{
    uint32_t *g0 = &b->wave.s[16], *g1 = &b->wave.s[20], *g2 = &b->wave.s[28], *g3 = &b->wave.s[32];
    memset(g0, 0, 20 * sizeof *g0);
    set_bits(g0, 0, 2, 1);
    set_bits(g0, 30, 1, t->wide);
    set_bits(g0, 31, 1, t->gather);
    set_bits(g0, 32, 32, t->lds);
    set_bits(g0, 64, 57, t->address);
    set_bits(g0, 126, 2, 2);
    set_bits(g1, 16, 2, (uint64_t)t->size_code);
    set_bits(g1, 20, 1, t->pad);
    set_bits(g1, 22, 3, t->interval);
    set_bits(g1, 25, 7, t->amount);
    set_bits(g1, 48, 32, t->extent[0]);
    set_bits(g1, 80, 32, t->extent[1]);
    set_bits(g1, 112, 16, t->tile[0]);
    set_bits(g1, 128, 16, t->tile[1]);
    set_bits(g1, 144, 16, t->tile[2]);
    set_bits(g1, 160, 48, t->stride[1]);
    set_bits(g1, 208, 48, t->stride[2]);
    if (t->gather) {
        for (int i = 0; i < (t->wide ? 8 : 16); i++)
            set_bits(g2, i * (t->wide ? 32 : 16), t->wide ? 32 : 16, t->index[i]);
        return;
    }
    set_bits(g2, 0, 32, t->extent[2]);
    set_bits(g2, 32, 32, t->extent[3]);
    set_bits(g2, 64, 48, t->stride[3]);
    set_bits(g2, 112, 16, t->tile[3]);
    set_bits(g3, 0, 48, t->stride[4]);
    set_bits(g3, 48, 32, t->extent[4]);
    set_bits(g3, 80, 16, t->tile[4]);
}

static uint32_t used(uint32_t tile)
{
    return tile == 0 ? 1 : tile;
}

/* The manual's pseudo-code (10.11.2) as it stands, an element at a time, with five loops. */
static void move_by_element(const tensor *t, uint8_t *lds, bool is_store)
{
    const uint32_t size = 1u << t->size_code;
    uint32_t       l = t->lds, n = 0, i[5];
    for (i[4] = 0; i[4] < used(t->tile[4]); i[4]++)
        for (i[3] = 0; i[3] < used(t->tile[3]); i[3]++)
            for (i[2] = 0; i[2] < used(t->tile[2]); i[2]++)
                for (i[1] = 0; i[1] < used(t->tile[1]); i[1]++)
                    for (i[0] = 0; i[0] < t->tile[0]; i[0]++) {
                        const uint64_t row = t->gather ? t->index[i[1]] : i[1];
                        uint64_t       m = i[0] + row * t->stride[1];
                        bool           inside = i[0] < t->extent[0] && (t->tile[1] == 0 || row < t->extent[1]);
                        for (int d = 2; d < 5; d++) {
                            m += i[d] * t->stride[d];
                            inside &= t->tile[d] == 0 || i[d] < t->extent[d];
                        }
                        uint8_t *memory = (uint8_t *)(uintptr_t)(t->address + m * size);
                        if (is_store && inside)
                            memcpy(memory, lds + l, size);
                        for (uint32_t k = 0; !is_store && k < size; k++)
                            lds[l + k] = inside ? memory[k] : 0;
                        l += size;
                        n += size;
                        if (t->pad && !is_store && n >> 3 >= 1u << t->interval) {
                            n = 0;
                            l += 4 * (t->amount + 1);
                        }
                    }
}

static uint32_t draw(uint32_t *state, uint32_t below)
{
    *state = hash(*state + 0x9E3779B9u);
    return *state % below;
}

static tensor draw_tensor(bench *b, uint32_t *state, int dimensions)
{
    tensor                t = { .address = guest(b->memory + 4096 + draw(state, 64)),
                                .lds = draw(state, 256),
                                .size_code = (int)draw(state, 4),
                                .pad = draw(state, 2) != 0,
                                .interval = draw(state, 5),
                                .amount = draw(state, 5) };
    static const uint32_t most[] = { 16, 5, 3, 2, 2 }; /* with pads at most 960 * 28 bytes: within LDS */
    uint64_t              pitch = 1;
    for (int d = 0; d < 5; d++) {
        t.tile[d] = d < dimensions ? 1 + draw(state, most[d]) : 0;
        t.extent[d] = draw(state, 3) == 0 ? draw(state, most[d] + 1) : t.tile[d] + 5;
        t.stride[d] = pitch;
        pitch *= d < dimensions ? t.tile[d] + draw(state, 3) : 1;
    }
    t.tile[1] = draw(state, 9) == 0 && dimensions < 3 ? 0 : t.tile[1]; /* one row, not bounded */
    if (dimensions == 2 && t.tile[1] != 0 && draw(state, 2) != 0) {
        t.gather = true;
        t.wide = draw(state, 2) != 0;
        t.tile[1] = 1 + draw(state, t.wide ? 8 : 16);
        t.extent[1] = 6 + draw(state, 6);
        for (int i = 0, row = 0; i < 16; i++)
            t.index[i] = (uint32_t)(row += (int)draw(state, 3));
    }
    return t;
}

static void one_tensor(bench *b, const tensor *t, int groups, bool is_store)
{
    static uint8_t           want[LDS_BYTES], memory[MEMORY_BYTES];
    static const char *const text[2][2] = { { "tensor_load_to_lds s[16:19], s[20:27]",
                                              "tensor_load_to_lds s[16:19], s[20:27], s[28:31], s[32:35]" },
                                            { "tensor_store_from_lds s[16:19], s[20:27]",
                                              "tensor_store_from_lds s[16:19], s[20:27], s[28:31], s[32:35]" } };
    write_descriptor(b, t);
    memcpy(want, b->lds, sizeof want);
    memcpy(memory, b->memory, sizeof memory);
    move_by_element(t, is_store ? b->lds : want, is_store); /* stores change memory in place ... */
    if (is_store) {
        static uint8_t moved[MEMORY_BYTES];
        memcpy(moved, b->memory, sizeof moved);
        memcpy(b->memory, memory, sizeof memory); /* ... and that is taken back */
        memcpy(memory, moved, sizeof memory);
    }
    run(b, "%s", text[is_store][groups]);
    memset(&b->wave.s[16], 0xEE, 20 * 4); /* the descriptor is taken at issue */
    sim_wait(&b->wave, SIM_TENSORCNT, 0);
    ck_assert_msg(b->wave.status != SIM_FAILED, "%s", sim_last_error());
    check_memory(b, b->lds, want, sizeof want);
    check_memory(b, b->memory, memory, sizeof memory);
}

START_TEST(tensors)
{
    bench   *b = bench_create(SIM_GFX1250, _i != 0);
    uint32_t state = 2026;
    sim_set_exec(&b->wave, 0); /* ignored */
    for (int round = 0; round < 400; round++) {
        const int    dimensions = 1 + round % 5;
        const tensor t = draw_tensor(b, &state, dimensions);
        one_tensor(b, &t, dimensions > 2 || t.gather, false);
        fill(b->lds, LDS_BYTES, (uint32_t)round);
        one_tensor(b, &t, dimensions > 2 || t.gather, true);
    }
    bench_destroy(b);
}
END_TEST

START_TEST(tensor_refusals)
{
    static const struct {
        int         group, first, count, value;
        const char *words;
    } rows[] = { { 0, 0, 2, 2, "count" },    { 0, 2, 1, 1, "reserved" },          { 0, 121, 1, 1, "reserved" },
                 { 0, 126, 2, 1, "type" },   { 1, 0, 16, 1, "cluster" },          { 1, 18, 1, 1, "atomic_barrier" },
                 { 1, 19, 1, 1, "iterate" }, { 1, 21, 1, 1, "early_timeout" },    { 1, 112, 16, 0, "dimension 0" },
                 { 0, 31, 1, 1, "gather" },  { 1, 144, 16, 2, "third dimension" } };
    bench       *b = bench_create(SIM_GFX1250, false);
    const tensor t = { .address = guest(b->memory), .extent = { 8, 8 }, .tile = { 8, 8 }, .stride = { 1, 8 } };
    uint8_t      before[LDS_BYTES];
    memcpy(before, b->lds, sizeof before);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        write_descriptor(b, &t);
        set_bits(&b->wave.s[rows[i].group == 0 ? 16 : 20], rows[i].first, rows[i].count, (uint64_t)rows[i].value);
        run_fails(b, rows[i].words, "tensor_load_to_lds s[16:19], s[20:27]");
    }
    write_descriptor(b, &t);
    set_bits(&b->wave.s[16], 31, 1, 1);
    set_bits(&b->wave.s[20], 128, 16, 17);
    run_fails(b, "more rows", "tensor_load_to_lds s[16:19], s[20:27], s[28:31], s[32:35]");
    write_descriptor(b, &t);
    set_bits(&b->wave.s[16], 0, 2, 0); /* nothing to do */
    run(b, "tensor_load_to_lds s[16:19], s[20:27]");
    check_memory(b, b->lds, before, sizeof before);
    /* Beyond memory: a fault; beyond LDS: dropped. */
    tensor far = t;
    far.lds = LDS_BYTES - 32;
    write_descriptor(b, &far);
    run(b, "tensor_load_to_lds s[16:19], s[20:27]");
    ck_assert_mem_eq(b->lds + LDS_BYTES - 32, b->memory, 32);
    far = t;
    far.address = guest(b->memory + MEMORY_BYTES - 60);
    write_descriptor(b, &far);
    run_fails(b, "memory fault", "tensor_load_to_lds s[16:19], s[20:27]");
    bench_destroy(b);
}
END_TEST

/* Waits
 * -----
 * Late: an operation takes effect when no state that hardware may be in has it outstanding. The states are all subsets
 * of the operations issued in which those of an ordered class that are done are older than those that are not; a wait
 * for n leaves the subsets with at most n members of the counter.
 */
enum { OPS = 7 };

typedef struct op_kind {
    const char *text; /* %d: its own result register */
    sim_counter counter;
    int         order; /* class within the counter; 0: none */
    bool        scalar;
} op_kind;

static const op_kind kinds950[] = { { "global_load_dword v%d, v[0:1], off", SIM_VMCNT, 1, false },
                                    { "ds_read_b32 v%d, v2", SIM_LGKMCNT, 1, false },
                                    { "s_load_dword s%d, s[4:5], 0x0", SIM_LGKMCNT, 0, true } };
static const op_kind kinds1250[] = { { "global_load_b32 v%d, v[0:1], off", SIM_VMCNT, 1, false },
                                     { "ds_load_b32 v%d, v2", SIM_DSCNT, 1, false },
                                     { "s_load_b32 s%d, s[4:5], 0x0", SIM_KMCNT, 0, true } };

/* Whether some state after the waits still has operation `i` outstanding. `alive`: bit per subset of operations. */
static bool may_be_outstanding(const bool *alive, int count, int i)
{
    for (int set = 0; set < 1 << count; set++)
        if (alive[set] && (set >> i & 1) != 0)
            return true;
    return false;
}

static bool is_state(int set, const op_kind *const *ops, int count)
{
    for (int i = 0; i < count; i++)
        for (int j = i + 1; j < count; j++)
            if (ops[i]->counter == ops[j]->counter && ops[i]->order == ops[j]->order && ops[i]->order != 0 &&
                (set >> i & 1) != 0 && (set >> j & 1) == 0)
                return false; /* the younger one is done, the older one is not */
    return true;
}

static uint32_t *result_of(bench *b, const op_kind *k, int i)
{
    return k->scalar ? &b->wave.s[20 + i] : reg(b, 20 + i);
}

START_TEST(waits)
{
    const sim_arch       arch = _i & 1;
    const op_kind *const kinds = arch == SIM_GFX950 ? kinds950 : kinds1250;
    uint32_t             state = 7;
    for (int round = 0; round < 100; round++) {
        bench *b = bench_create(arch, true);
        b->group.reorder = round & 1;
        for (int lane = 0; lane < b->wave.lanes; lane++)
            set64(b, 0, lane, guest(b->memory));
        put(b, 2, 4, 0);
        sim_set_scalar64(&b->wave, 4, guest(b->memory));
        const op_kind *ops[OPS];
        bool           alive[1 << OPS];
        for (int i = 0; i < OPS; i++) {
            ops[i] = &kinds[draw(&state, 3)];
            *result_of(b, ops[i], i) = 0xAAAAAAAA;
            run(b, ops[i]->text, 20 + i);
        }
        for (int set = 0; set < 1 << OPS; set++)
            alive[set] = is_state(set, ops, OPS);
        for (int step = 0; step < 4; step++) {
            const sim_counter c = kinds[draw(&state, 3)].counter;
            const uint32_t    n = draw(&state, 4);
            sim_wait(&b->wave, c, n);
            for (int set = 0; set < 1 << OPS; set++) {
                uint32_t members = 0;
                for (int i = 0; i < OPS; i++)
                    members += (set >> i & 1) != 0 && ops[i]->counter == c;
                alive[set] &= members <= n;
            }
            for (int i = 0; i < OPS; i++) {
                const bool done = *result_of(b, ops[i], i) != 0xAAAAAAAA;
                if (done == may_be_outstanding(alive, OPS, i))
                    ck_abort_msg("round %d, wait %d for %u of counter %d: op %d", round, step, n, (int)c, i);
            }
        }
        sim_drain(&b->wave);
        for (int i = 0; i < OPS; i++)
            ck_assert_uint_ne(*result_of(b, ops[i], i), 0xAAAAAAAA);
        bench_destroy(b);
    }
}
END_TEST

/* A counter that would overflow stalls: the oldest has completed then. */
START_TEST(overflows)
{
    static const struct {
        sim_arch    arch;
        const char *text;
        int         limit;
    } rows[] = { { SIM_GFX950, "global_load_dword v%d, v[0:1], off", 63 },
                 { SIM_GFX950, "ds_read_b32 v%d, v2", 15 },
                 { SIM_GFX1250, "global_load_b32 v%d, v[0:1], off", 63 },
                 { SIM_GFX1250, "ds_load_b32 v%d, v2", 63 } };
    const int limit = rows[_i].limit;
    bench    *b = bench_create(rows[_i].arch, true);
    for (int lane = 0; lane < b->wave.lanes; lane++)
        set64(b, 0, lane, guest(b->memory));
    put(b, 2, 4, 0);
    for (int i = 0; i < limit + 3; i++) {
        put(b, 20 + i, 4, 0xAAAAAAAA);
        run(b, rows[_i].text, 20 + i);
        for (int k = 0; k <= i; k++)
            if ((reg(b, 20 + k)[0] != 0xAAAAAAAA) != (k <= i - limit))
                ck_abort_msg("after operation %d: operation %d", i, k);
    }
    bench_destroy(b);
}
END_TEST

/* A scalar counter with unordered operations: a stall says of none that it is complete, on hardware and here. */
START_TEST(overflow_of_scalar_loads)
{
    bench *b = bench_create(SIM_GFX950, true);
    sim_set_scalar64(&b->wave, 4, guest(b->memory));
    for (int i = 0; i < 20; i++) {
        b->wave.s[20 + i] = 0xAAAAAAAA;
        run(b, "s_load_dword s%d, s[4:5], 0x0", 20 + i);
    }
    for (int i = 0; i < 20; i++)
        ck_assert_uint_eq(b->wave.s[20 + i], 0xAAAAAAAA);
    sim_wait(&b->wave, SIM_LGKMCNT, 0);
    for (int i = 0; i < 20; i++)
        ck_assert_mem_eq(&b->wave.s[20 + i], b->memory, 4);
    bench_destroy(b);
}
END_TEST

/* What late means for memory: stores of one wave keep their order with its loads, whatever the counters. */
START_TEST(order_in_a_wave)
{
    bench *b = bench_create(SIM_GFX1250, true);
    for (int lane = 0; lane < 32; lane++)
        set64(b, 0, lane, guest(b->memory + 4 * lane));
    uint32_t was[32];
    memcpy(was, b->memory, sizeof was);
    run(b, "global_load_b32 v8, v[0:1], off");  /* sees what was there */
    run(b, "global_store_b32 v[0:1], v9, off"); /* another counter */
    run(b, "global_load_b32 v10, v[0:1], off"); /* sees the store */
    sim_wait(&b->wave, SIM_STORECNT, 0);
    ck_assert_mem_eq(b->memory, reg(b, 9), sizeof was);
    sim_wait(&b->wave, SIM_VMCNT, 0);
    ck_assert_mem_eq(reg(b, 8), was, sizeof was);
    ck_assert_mem_eq(reg(b, 10), reg(b, 9), sizeof was);

    /* LDS operations are ordered among themselves; a copy to LDS is not ordered with them. */
    for (int lane = 0; lane < 32; lane++)
        reg(b, 2)[lane] = reg(b, 3)[lane] = (uint32_t)(4 * lane);
    memcpy(was, b->lds, sizeof was);
    run(b, "global_load_async_to_lds_b32 v3, v[0:1], off");
    run(b, "ds_load_b32 v11, v2");
    run(b, "ds_store_b32 v2, v12");
    run(b, "ds_load_b32 v13, v2");
    ck_assert_mem_eq(b->lds, was, sizeof was);
    sim_wait(&b->wave, SIM_DSCNT, 1);
    ck_assert_mem_eq(b->lds, reg(b, 12), sizeof was);
    ck_assert_mem_eq(reg(b, 11), was, sizeof was);
    ck_assert_mem_ne(reg(b, 13), reg(b, 12), sizeof was);
    sim_wait(&b->wave, SIM_DSCNT, 0);
    ck_assert_mem_eq(reg(b, 13), reg(b, 12), sizeof was);
    sim_wait(&b->wave, SIM_ASYNCCNT, 0);
    ck_assert_mem_eq(b->lds, b->memory, sizeof was);

    /* Nobody waits for it, but it happens. */
    run(b, "global_store_b32 v[0:1], v14, off");
    ck_assert_mem_ne(b->memory, reg(b, 14), sizeof was);
    sim_memory_settle(&b->wave);
    ck_assert_mem_eq(b->memory, reg(b, 14), sizeof was);
    ck_assert_uint_eq(b->wave.outstanding[SIM_STORECNT], 1);
    run(b, "global_store_b32 v[0:1], v15, off");
    sim_drain(&b->wave);
    ck_assert_mem_eq(b->memory, reg(b, 15), sizeof was);
    ck_assert_ptr_null(b->wave.oldest);
    bench_destroy(b);
}
END_TEST

/* Flat operations need both counters, and on gfx950 only a wait for 0 of each says that they are done. */
START_TEST(flat_waits)
{
    for (sim_arch arch = 0; arch < SIM_ARCHS; arch++) {
        bench            *b = bench_create(arch, true);
        const sim_counter ds = arch == SIM_GFX950 ? SIM_LGKMCNT : SIM_DSCNT;
        for (int lane = 0; lane < b->wave.lanes; lane++)
            set64(b, 0, lane, guest(b->memory));
        put(b, 2, 4, 0);
        put(b, 20, 4, 0xAAAAAAAA);
        run(b, arch == SIM_GFX950 ? "flat_load_dword v20, v[0:1]" : "flat_load_b32 v20, v[0:1]");
        run(b, arch == SIM_GFX950 ? "global_load_dword v21, v[0:1], off" : "global_load_b32 v21, v[0:1], off");
        run(b, arch == SIM_GFX950 ? "ds_read_b32 v22, v2" : "ds_load_b32 v22, v2");
        sim_wait(&b->wave, SIM_VMCNT, 1);
        sim_wait(&b->wave, ds, 1);
        ck_assert_int_eq(reg(b, 20)[0] != 0xAAAAAAAA, arch == SIM_GFX1250);
        sim_wait(&b->wave, SIM_VMCNT, 0);
        ck_assert_int_eq(reg(b, 20)[0] != 0xAAAAAAAA, arch == SIM_GFX1250);
        sim_wait(&b->wave, ds, 0);
        ck_assert_mem_eq(&reg(b, 20)[0], b->memory, 4);
        bench_destroy(b);
    }
}
END_TEST

/* Write-backs and invalidations count, hints do not. */
START_TEST(caches)
{
    bench *b = bench_create(SIM_GFX950, true);
    run(b, "buffer_wbl2 sc0 sc1");
    run(b, "buffer_inv sc1");
    run(b, "s_dcache_inv");
    run(b, "s_dcache_wb");
    ck_assert_uint_eq(b->wave.outstanding[SIM_VMCNT], 2);
    ck_assert_uint_eq(b->wave.outstanding[SIM_LGKMCNT], 0);
    bench_destroy(b);
    b = bench_create(SIM_GFX1250, true);
    run(b, "global_wb scope:SCOPE_SYS");
    run(b, "global_wbinv scope:SCOPE_SYS");
    run(b, "global_inv scope:SCOPE_DEV");
    run(b, "global_prefetch_b8 v2, s[2:3] offset:4");
    run(b, "s_prefetch_data s[2:3], 0x10, s3, 4");
    run(b, "s_prefetch_inst s[0:1], 0x0, s2, 1");
    ck_assert_uint_eq(b->wave.outstanding[SIM_STORECNT], 2);
    ck_assert_uint_eq(b->wave.outstanding[SIM_VMCNT], 1);
    bench_destroy(b);
}
END_TEST

/* Bank conflicts
 * --------------
 * By counting, for each bank of each phase, the words that no earlier lane of the phase has touched.
 */
static int phase950(int bytes, bool is_write, int lane)
{
    const int l = lane & 31, high = lane / 32;
    if (bytes <= 4 || (bytes == 8 && !is_write))
        return high;
    if (is_write)
        return lane / (bytes == 8 ? 16 : 8);
    if (bytes == 16)
        return 2 * high + !(l < 4 || (l >= 12 && l < 16) || (l >= 20 && l < 28));
    static const int of_quad[] = { 0, 1, 2, 3, 1, 0, 3, 2 }; /* 96 bits: lanes 0-3 with 20-23, 4-7 with 16-19 ... */
    return 4 * high + of_quad[l / 4];
}

static uint32_t conflicts_by_counting(int bytes, bool is_write, const uint32_t *address, uint64_t mask)
{
    const uint32_t banks = bytes <= 4 || (!is_write && bytes != 12) ? 64 : 32,
                   words = bytes < 4 ? 1 : (uint32_t)bytes / 4;
    uint32_t       total = 0;
    for (int phase = 0; phase < 8; phase++) {
        uint32_t worst = 1;
        for (uint32_t bank = 0; bank < banks; bank++) {
            uint32_t seen[256], count = 0;
            for (int lane = 0; lane < 64; lane++)
                for (uint32_t i = 0; i < words; i++) {
                    const uint32_t x = address[lane] / 4 + i;
                    if ((mask >> lane & 1) == 0 || phase950(bytes, is_write, lane) != phase || x % banks != bank)
                        continue;
                    bool is_new = true;
                    for (uint32_t k = 0; k < count; k++)
                        is_new &= seen[k] != x;
                    if (is_new)
                        seen[count++] = x;
                }
            worst = count > worst ? count : worst;
        }
        total += worst - 1;
    }
    return total;
}

START_TEST(bank_conflicts)
{
    static const int sizes[] = { 1, 2, 4, 8, 12, 16 };
    uint32_t         address[64], state = 5;
    for (int round = 0; round < 200; round++) {
        const uint32_t stride = 4 * draw(&state, 70), span = 1 + draw(&state, 4096);
        const uint64_t mask = round % 3 == 0 ? masks[round / 3 % MASKS] : UINT64_MAX;
        for (int lane = 0; lane < 64; lane++)
            address[lane] = round % 2 ? stride * (uint32_t)lane : 4 * draw(&state, span);
        for (int i = 0; i < 6; i++)
            for (int is_write = 0; is_write < 2; is_write++)
                ck_assert_uint_eq(sim_lds_conflicts(SIM_GFX950, (uint32_t)sizes[i], is_write, address, mask),
                                  conflicts_by_counting(sizes[i], is_write, address, mask));
    }
    /* Known patterns: consecutive words are free, a stride of 256 bytes puts 32 lanes on one bank; one word is
     * broadcast. */
    for (int lane = 0; lane < 64; lane++)
        address[lane] = 4 * (uint32_t)lane;
    ck_assert_uint_eq(sim_lds_conflicts(SIM_GFX950, 4, false, address, UINT64_MAX), 0);
    ck_assert_uint_eq(sim_lds_conflicts(SIM_GFX1250, 4, false, address, 0xFFFFFFFF), 0);
    for (int lane = 0; lane < 64; lane++)
        address[lane] = 256 * (uint32_t)lane;
    ck_assert_uint_eq(sim_lds_conflicts(SIM_GFX950, 4, false, address, UINT64_MAX), 62);
    ck_assert_uint_eq(sim_lds_conflicts(SIM_GFX1250, 16, false, address, 0xFFFFFFFF), 4 * 31);
    for (int lane = 0; lane < 64; lane++)
        address[lane] = 16 * (uint32_t)lane;
    ck_assert_uint_eq(sim_lds_conflicts(SIM_GFX950, 16, false, address, UINT64_MAX), 0);
    ck_assert_uint_eq(sim_lds_conflicts(SIM_GFX950, 16, true, address, UINT64_MAX), 0);
    memset(address, 0, sizeof address);
    ck_assert_uint_eq(sim_lds_conflicts(SIM_GFX950, 16, false, address, UINT64_MAX), 0);
}
END_TEST

/* Loops: bit 0 the arch, bit 1 late. */
static void fill_case(TCase *t)
{
    tcase_add_loop_test(t, loads_of_every_width, 0, 4);
    tcase_add_loop_test(t, stores_of_every_width, 0, 4);
    tcase_add_test(t, scalar_base_offsets);
    tcase_add_loop_test(t, high_registers, 0, 2);
    tcase_add_loop_test(t, high_registers_with_checks, 0, 2);
    tcase_add_loop_test(t, faults, 0, 2);
    tcase_add_loop_test(t, buffer_range_raw, 0, 2);
    tcase_add_loop_test(t, buffer_range_structured, 0, 2);
    tcase_add_loop_test(t, scalar_loads, 0, 4);
    tcase_add_loop_test(t, memory_atomics, 0, 4);
    tcase_add_test(t, buffer_atomics_out_of_range);
    tcase_add_loop_test(t, ds_atomics, 0, 4);
    tcase_add_test(t, atomics_of_threads);
    tcase_add_loop_test(t, ds_single, 0, 4);
    tcase_add_loop_test(t, ds_two_addresses, 0, 4);
    tcase_add_loop_test(t, ds_thread_addresses, 0, 4);
    tcase_add_loop_test(t, transposed, 0, 2);
    tcase_add_loop_test(t, permutations, 0, 4);
    tcase_add_loop_test(t, swizzles, 0, 4);
    tcase_add_loop_test(t, lds_dma, 0, 2);
    tcase_add_loop_test(t, async_copies, 0, 2);
    tcase_add_loop_test(t, tensors, 0, 2);
    tcase_add_test(t, tensor_refusals);
    tcase_add_loop_test(t, waits, 0, 2);
    tcase_add_loop_test(t, overflows, 0, 4);
    tcase_add_test(t, overflow_of_scalar_loads);
    tcase_add_test(t, order_in_a_wave);
    tcase_add_test(t, flat_waits);
    tcase_add_test(t, caches);
    tcase_add_test(t, bank_conflicts);
}

int main(void)
{
    return testing_main("sim_memory", fill_case);
}
