/* Memory operations: requests, waits, and the global, flat, scratch, buffer and scalar instructions.
 *
 * Sources: CDNA3 and CDNA4 ISA (chapters on FLAT, MUBUF, SMEM, data share), CDNA5 ISA chapters 8 to 11, LLVM's
 * AMDGPUUsage; what each marks as unclear is said where it matters.
 */
#include "memory.h"

#include "device.h"
#include "opcodes.h"

#include <stdlib.h>
#include <string.h>

#define BIT(counter) (1u << (counter))

/* Scratch of a lane: `offset` from its own start. */
static uint8_t *host_scratch(sim_wave *w, sim_pending *p, int lane, int64_t offset, uint32_t bytes)
{
    if (offset >= 0 && offset + bytes <= (int64_t)w->scratch_bytes)
        return w->scratch + (size_t)lane * w->scratch_bytes + offset;
    if (sim_checks(w, SIM_CHECK_BOUNDS))
        sim_report(w, p->inst, SIM_CHECK_BOUNDS, lane, "%u bytes at %lld of the lane's %u bytes of scratch", bytes,
                   (long long)offset, w->scratch_bytes);
    else
        sim_fail(w, p->inst, "memory fault: lane %d, %u bytes at %lld of the lane's %u bytes of scratch", lane, bytes,
                 (long long)offset, w->scratch_bytes);
    return NULL;
}

/* The space of one lane's address; flat addresses say it in bits 63 to 32. */
static sim_space space_of(const sim_pending *p, uint64_t address)
{
    if (p->access->space != SIM_ANY_SPACE)
        return p->access->space;
    const uint64_t aperture = address & 0xFFFFFFFF00000000u, lane_bits = UINT64_C(31) << 52;
    return aperture == SIM_SHARED_APERTURE                   ? SIM_LOCAL
           : (aperture & ~lane_bits) == SIM_PRIVATE_APERTURE ? SIM_SCRATCH
                                                             : SIM_GLOBAL;
}

/* Flat addresses of gfx1250's scratch have the lane that it belongs to in bits 56 to 52 (as LLVM makes the address of a
 * private variable), so lanes may reach each other's. On gfx950 they are offsets in the lane's own. */
static uint8_t *host_flat_scratch(sim_wave *w, sim_pending *p, int lane, uint64_t address, uint32_t bytes)
{
    if (p->access->space != SIM_ANY_SPACE || w->group->arch == SIM_GFX950)
        return host_scratch(w, p, lane, (int32_t)address, bytes);
    return host_scratch(w, p, (int)(address >> 52 & 31), (int32_t)address, bytes);
}

static uint64_t resolve_mixed(sim_wave *w, sim_pending *p, uint32_t bytes, sim_access_kind kind,
                              uint8_t *at[SIM_MAX_LANES])
{
    uint64_t ok = 0;
    SIM_EACH_LANE (lane, p->mask) {
        const uint64_t address = p->address[lane];
        if (w->status == SIM_FAILED)
            break;
        if (w->watch != NULL)
            sim_check_aligned(w, p, (int)lane, address, bytes);
        switch (space_of(p, address)) {
        case SIM_LOCAL:
            at[lane] = sim_host_lds(w, p, (int)lane, (uint32_t)address, bytes, kind);
            break;
        case SIM_SCRATCH:
            at[lane] = host_flat_scratch(w, p, (int)lane, address, bytes);
            break;
        default:
            at[lane] = sim_host_global(w, p, (int)lane, address, bytes, kind);
            break;
        }
        ok |= (uint64_t)(at[lane] != NULL) << lane;
    }
    return ok;
}

static uint64_t resolve(sim_wave *w, sim_pending *p, sim_access_kind kind, uint8_t *at[SIM_MAX_LANES])
{
    const uint32_t bytes = p->access->bytes;
    switch (p->access->space) {
    case SIM_GLOBAL:
        return sim_resolve_global(w, p, p->mask, bytes, NULL, kind, at);
    case SIM_BUFFER:
        return sim_resolve_global(w, p, p->mask, bytes, p->partial ? p->valid : NULL, kind, at);
    default:
        return resolve_mixed(w, p, bytes, kind, at);
    }
}

static bool is_written(sim_wave *w, const sim_pending *p, uint64_t address, uint32_t bytes)
{
    switch (space_of(p, address)) {
    case SIM_LOCAL:
        return sim_lds_written(w->group, (uint32_t)address, bytes);
    case SIM_SCRATCH:
        return true; /* not tracked */
    default:
        return sim_global_written(w, address, bytes);
    }
}

/* Tells the check which dwords of the lanes of `ok` were never written; what the other lanes have are zeros. */
static void tell_loaded(sim_wave *w, const sim_pending *p, uint64_t ok)
{
    if (w->watch == NULL || !sim_checks(w, SIM_CHECK_UNINITIALISED))
        return;
    SIM_EACH_LANE (lane, p->mask & ok) {
        const uint32_t bytes = p->partial ? p->valid[lane] : p->access->bytes, step = bytes < 4 ? bytes : 4;
        if (is_written(w, p, p->address[lane], bytes))
            continue;
        for (uint32_t i = 0; i < bytes; i += step)
            sim_check_loaded(w, &p->inst->operand[0], (int)(i / 4), (int)lane,
                             is_written(w, p, p->address[lane] + i, step));
    }
}

/* Buffers: the dwords of a lane that are in range; what is not loads as 0. */
static void move_in_partial(sim_pending *p, int lanes, uint64_t ok, uint8_t *const at[SIM_MAX_LANES])
{
    const uint32_t bytes = p->access->bytes;
    SIM_EACH_LANE (lane, ok) {
        if (bytes < 4) {
            p->data[lane] = sim_load_small(at[lane], bytes, p->access->sign);
            continue;
        }
        for (uint32_t i = 0; i < bytes; i += 4) {
            uint32_t x = 0;
            if (i < p->valid[lane])
                memcpy(&x, at[lane] + i, 4);
            p->data[i / 4 * (uint32_t)lanes + lane] = x;
        }
    }
}

static void move_out_partial(const sim_pending *p, int lanes, uint64_t ok, uint8_t *const at[SIM_MAX_LANES])
{
    SIM_EACH_LANE (lane, ok)
        if (p->access->bytes < 4)
            sim_move_out(p->data, lanes, 1ull << lane, p->access->bytes, p->access->half, at);
        else
            for (uint32_t i = 0; i < p->valid[lane]; i += 4)
                memcpy(at[lane] + i, p->data + i / 4 * (uint32_t)lanes + lane, 4);
}

static void clear_lanes(sim_pending *p, int lanes, uint64_t mask)
{
    for (int i = 0; mask != 0 && i < p->dwords; i++)
        SIM_EACH_LANE (lane, mask)
            p->data[i * lanes + (int)lane] = 0;
}

/* Reads memory into p->data, zeros where it must not. */
static uint64_t read_lanes(sim_wave *w, sim_pending *p)
{
    uint8_t       *at[SIM_MAX_LANES];
    const uint64_t ok = resolve(w, p, SIM_READ, at);
    clear_lanes(p, w->lanes, p->mask & ~ok);
    if (p->partial)
        move_in_partial(p, w->lanes, ok, at);
    else
        sim_move_in(p->data, w->lanes, ok, p->access->bytes, p->access->sign, at);
    return ok;
}

static uint64_t lane_count(uint64_t mask)
{
    return (uint64_t)__builtin_popcountll(mask);
}

static void perform_load(sim_wave *w, sim_pending *p)
{
    const uint64_t ok = read_lanes(w, p);
    tell_loaded(w, p, ok);
    sim_count_global(w, p->inst, lane_count(ok) * p->access->bytes, false);
}

static void perform_store(sim_wave *w, sim_pending *p)
{
    uint8_t       *at[SIM_MAX_LANES];
    const uint64_t ok = resolve(w, p, SIM_WRITE, at);
    if (p->partial)
        move_out_partial(p, w->lanes, ok, at);
    else
        sim_move_out(p->data, w->lanes, ok, p->access->bytes, p->access->half, at);
    sim_count_global(w, p->inst, lane_count(ok) * p->access->bytes, true);
}

/* p->data: the first operand, then the second one; the old values go to `own` behind them. */
static void perform_atomic(sim_wave *w, sim_pending *p)
{
    const int      lanes = w->lanes;
    const bool     wide = p->access->type >= SIM_U64, two = p->access->op == SIM_CMPSWAP;
    const int      dwords = wide ? 2 : 1;
    uint32_t      *old_at = p->own + 4 * lanes;
    uint8_t       *at[SIM_MAX_LANES];
    const uint64_t ok = resolve(w, p, SIM_READ_WRITE, at);
    if (p->to != NULL)
        tell_loaded(w, p, ok);
    SIM_EACH_LANE (lane, p->mask) {
        uint64_t x[2] = { 0, 0 }, old = 0;
        for (int i = 0; i < (two ? 2 : 1); i++)
            for (int j = 0; j < dwords; j++)
                x[i] |= (uint64_t)p->data[(i * dwords + j) * lanes + (int)lane] << 32 * j;
        if ((ok >> lane & 1) != 0 && !sim_atomic(p->access, at[lane], x[0], x[1], &old)) {
            sim_fail(w, p->inst, "memory fault: lane %d, atomic at 0x%llx, which is not a multiple of %d", (int)lane,
                     (unsigned long long)p->address[lane], p->access->bytes);
            return;
        }
        for (int j = 0; j < dwords; j++)
            old_at[j * lanes + (int)lane] = (uint32_t)(old >> 32 * j);
    }
    if (p->to != NULL) {
        p->data = old_at;
        p->dwords = dwords;
    }
    sim_count_global(w, p->inst, lane_count(ok) * p->access->bytes, true);
}

/* Addresses
 * ---------
 */
static uint64_t vector64(const uint32_t *v, int lanes, uint64_t lane)
{
    return v[lane] | (uint64_t)v[(uint64_t)lanes + lane] << 32;
}

/* Global and flat: v[64] + offset, or s[64] + v32 + offset. The 32-bit offset counts as unsigned on gfx950, as signed
 * on gfx1250 (CDNA5 ISA 10.2, and LLVM folds a sign extension into it). `s` NULL or NONE: no scalar address. */
static void flat_addresses(sim_wave *w, sim_pending *p, const sim_operand *v, const sim_operand *s)
{
    const int64_t   offset = p->inst->offset;
    const uint32_t *x = sim_vector(w, v, 0);
    if (s == NULL || s->kind == SIM_NONE) {
        SIM_EACH_LANE (lane, p->mask)
            p->address[lane] = vector64(x, w->lanes, lane) + (uint64_t)offset;
        return;
    }
    const uint64_t base = sim_scalar64(w, s->reg) + (uint64_t)offset;
    const int64_t  scale = p->inst->scale_offset ? p->access->bytes : 1;
    if (w->group->arch == SIM_GFX950)
        SIM_EACH_LANE (lane, p->mask)
            p->address[lane] = base + x[lane];
    else
        SIM_EACH_LANE (lane, p->mask)
            p->address[lane] = base + (uint64_t)((int32_t)x[lane] * scale);
}

/* Scratch: a signed offset into the lane's own memory. */
static void scratch_addresses(sim_wave *w, sim_pending *p, const sim_operand *v, const sim_operand *s)
{
    const bool      has_vector = v->kind != SIM_NONE, has_scalar = s->kind != SIM_NONE;
    const int64_t   base = p->inst->offset + (has_scalar ? (int64_t)(int32_t)sim_scalar_source(w, s) : 0);
    const int64_t   scale = p->inst->scale_offset ? p->access->bytes : 1;
    const uint32_t *x = has_vector ? sim_vector(w, v, 0) : NULL;
    SIM_EACH_LANE (lane, p->mask)
        p->address[lane] = (uint64_t)(base + (has_vector ? (int32_t)x[lane] * scale : 0));
}

typedef struct buffer_resource {
    uint64_t base, records;
    uint32_t stride;
    bool     structured; /* range check of gfx950 by index; of gfx1250 also by the place in the record */
    bool     ok;
} buffer_resource;

/* gfx950: base [47:0], stride [61:48], swizzle [63], records [95:64], add tid [119], type [127:126].
 * gfx1250: base [56:0], records [101:57], stride [121:108] times 1, 4, 8, 32 by [123:122], swizzle [124], OOB select
 * [125]. */
static buffer_resource resource_of(sim_wave *w, const sim_instruction *inst, const sim_operand *o)
{
    const uint64_t  low = sim_scalar64(w, o->reg), high = sim_scalar64(w, o->reg + 2);
    buffer_resource b = { .ok = true };
    bool            swizzle;
    if (w->group->arch == SIM_GFX950) {
        b.base = low & 0xFFFFFFFFFFFFu;
        b.records = (uint32_t)high;
        b.stride = (uint32_t)(low >> 48) & 0x3FFF;
        b.structured = inst->idxen && b.stride != 0;
        swizzle = low >> 63 != 0;
        if ((high >> 55 & 1) != 0) {
            sim_fail(w, inst, "unsupported: a buffer resource that adds the lane's number to the index");
            b.ok = false;
        }
    } else {
        static const uint8_t scale[] = { 1, 4, 8, 32 };
        b.base = low & 0x1FFFFFFFFFFFFFFu;
        b.records = (low >> 57 | high << 7) & 0x1FFFFFFFFFFFu;
        b.stride = (uint32_t)(high >> 44 & 0x3FFF) * scale[high >> 58 & 3];
        b.structured = (high >> 61 & 1) != 0;
        swizzle = (high >> 60 & 1) != 0;
    }
    if (high >> 62 != 0 || swizzle) {
        sim_fail(w, inst, "unsupported: a buffer resource %s", swizzle ? "with swizzle" : "whose type is not a buffer");
        b.ok = false;
    }
    return b;
}

/* Bytes of [offset, offset + bytes) below `end`, in whole dwords (bytes or words for less than one). */
static uint32_t bytes_below(uint64_t offset, uint32_t bytes, uint64_t end)
{
    const uint32_t step = bytes < 4 ? bytes : 4;
    const uint64_t room = offset >= end ? 0 : (end - offset) / step * step;
    return room < bytes ? (uint32_t)room : bytes;
}

/* Addresses and range check of one lane; returns the bytes in range. gfx950: raw, each dword ends at or before
 * `records` with the offset of the VGPR and the instruction wrapped to 32 bits; structured, the index is below
 * `records`. gfx1250 (CDNA5 ISA 9.4.1): in bytes, the index times the stride included; structured, each dword also ends
 * within the record. */
static uint32_t buffer_lane(sim_arch arch, const buffer_resource *b, sim_pending *p, uint64_t lane, uint32_t index,
                            uint32_t voffset, uint32_t soffset, uint32_t bytes)
{
    const uint64_t record = (uint64_t)b->stride * index;
    if (arch == SIM_GFX950) {
        const uint64_t offset = (uint64_t)(uint32_t)(voffset + (uint32_t)p->inst->offset) + soffset;
        p->address[lane] = b->base + record + offset;
        return b->structured ? (index < b->records ? bytes : 0) : bytes_below(offset, bytes, b->records);
    }
    const uint64_t offset = (uint64_t)(p->inst->offset + (int64_t)voffset);
    p->address[lane] = b->base + soffset + ((record + offset) & 0x1FFFFFFFFFFFu);
    const uint32_t in_buffer = bytes_below(record + offset + soffset, bytes, b->records);
    const uint32_t in_record = b->structured ? bytes_below(offset + soffset, bytes, b->stride) : bytes;
    return in_buffer < in_record ? in_buffer : in_record;
}

/* v: NONE, an offset, an index, or both. False after sim_fail. */
static bool buffer_addresses(sim_wave *w, sim_pending *p, const sim_operand *v, const sim_operand *resource,
                             const sim_operand *soffset)
{
    const sim_instruction *inst = p->inst;
    const buffer_resource  b = resource_of(w, inst, resource);
    const uint32_t         bytes = p->access->bytes, s = sim_scalar_source(w, soffset);
    if (!b.ok)
        return false;
    const uint32_t *index = inst->idxen ? sim_vector(w, v, 0) : NULL;
    const uint32_t *offset = inst->offen ? sim_vector(w, v, inst->idxen ? 1 : 0) : NULL;
    SIM_EACH_LANE (lane, p->mask) {
        const uint32_t in_range = buffer_lane(w->group->arch, &b, p, lane, index == NULL ? 0 : index[lane],
                                              offset == NULL ? 0 : offset[lane], s, bytes);
        p->valid[lane] = (uint8_t)in_range;
        p->partial |= in_range != bytes;
    }
    return true;
}

/* Vector memory instructions
 * --------------------------
 */
static uint32_t load_counters(const sim_wave *w, const sim_access *access)
{
    const bool flat = access->space == SIM_ANY_SPACE;
    return BIT(SIM_VMCNT) | (flat ? sim_ds_counter(w) : 0);
}

/* gfx950 counts stores with the loads. */
static uint32_t store_counters(const sim_wave *w, const sim_access *access)
{
    const bool flat = access->space == SIM_ANY_SPACE;
    return BIT(w->group->arch == SIM_GFX950 ? SIM_VMCNT : SIM_STORECNT) | (flat ? sim_ds_counter(w) : 0);
}

/* A flat operation returns from memory or from LDS: on gfx950 only a wait for 0 says that it has (CDNA4 ISA, FLAT
 * ordering). */
static sim_pending *open_vector(sim_wave *w, const sim_instruction *inst, sim_pending *local, uint32_t counters)
{
    const sim_access *access = inst->op->detail;
    const bool        flat = access->space == SIM_ANY_SPACE;
    return sim_memory_open(w, inst, local, counters,
                           flat && w->group->arch == SIM_GFX950 ? SIM_UNORDERED : SIM_IN_ORDER,
                           SIM_DOMAIN_VMEM | (flat ? SIM_DOMAIN_DS : 0));
}

/* Operands as printed: global and flat "v, [data,] s"; flat may lack the s; scratch "v, [data,] s"; buffer "[data,] v,
 * resource, soffset". `v`: number of the address operand. False after sim_fail. */
static bool addresses(sim_wave *w, sim_pending *p, int v, int s)
{
    const sim_operand *o = p->inst->operand;
    switch (p->access->space) {
    case SIM_BUFFER:
        return buffer_addresses(w, p, &o[v], &o[v + 1], &o[v + 2]);
    case SIM_SCRATCH:
        scratch_addresses(w, p, &o[v], &o[s]);
        return true;
    default:
        flat_addresses(w, p, &o[v], s < p->inst->operand_count ? &o[s] : NULL);
        return true;
    }
}

/* A request that is not issued after all. */
static void abandon(sim_wave *w, sim_pending *p)
{
    if (p->event == 0)
        return;
    p->next = w->pool;
    w->pool = p;
}

static sim_handler run_lds_dma;

static void run_load(sim_wave *w, const sim_instruction *inst)
{
    if (inst->lds) {
        run_lds_dma(w, inst);
        return;
    }
    const sim_access *access = inst->op->detail;
    sim_pending       local, *p = open_vector(w, inst, &local, load_counters(w, access));
    if (p == NULL)
        return;
    if (!addresses(w, p, 1, 2)) {
        abandon(w, p);
        return;
    }
    sim_memory_result(w, p, &inst->operand[0], sim_dwords_of(access->bytes), access->half == SIM_WHOLE);
    p->perform = perform_load;
    sim_memory_issue(w, p);
}

static void run_store(sim_wave *w, const sim_instruction *inst)
{
    const sim_access *access = inst->op->detail;
    const bool        buffer = access->space == SIM_BUFFER;
    sim_pending       local, *p = open_vector(w, inst, &local, store_counters(w, access));
    if (p == NULL)
        return;
    if (!addresses(w, p, buffer ? 1 : 0, 2)) {
        abandon(w, p);
        return;
    }
    p->dwords = sim_dwords_of(access->bytes);
    sim_memory_take(w, p, &inst->operand[buffer ? 0 : 1], 0, p->dwords);
    p->perform = perform_store;
    sim_memory_issue(w, p);
}

/* Returning or not: global and flat print the result before the address, buffers return to the data's registers. */
static void run_atomic(sim_wave *w, const sim_instruction *inst)
{
    const sim_access *access = inst->op->detail;
    const bool        buffer = access->space == SIM_BUFFER, returns = inst->glc;
    const int         first = !buffer && returns ? 1 : 0;
    sim_pending       local, *p;
    p = open_vector(w, inst, &local, returns ? load_counters(w, access) : store_counters(w, access));
    if (p == NULL)
        return;
    if (!addresses(w, p, buffer ? 1 : first, first + 2)) {
        abandon(w, p);
        return;
    }
    if (p->partial) /* all or nothing */
        SIM_EACH_LANE (lane, p->mask)
            p->valid[lane] = p->valid[lane] == access->bytes ? access->bytes : 0;
    const int dwords = sim_dwords_of(access->bytes);
    if (returns)
        sim_memory_result(w, p, &inst->operand[0], dwords, false);
    p->dwords = dwords * (access->op == SIM_CMPSWAP ? 2 : 1);
    sim_memory_take(w, p, &inst->operand[buffer ? 0 : first + 1], 0, p->dwords);
    p->perform = perform_atomic;
    sim_memory_issue(w, p);
}

/* global_load_addtid_b32, global_store_addtid_b32 (CDNA5 ISA 10.2, mode GT): s[64] + offset + lane * 4. */
static void thread_addresses(sim_wave *w, sim_pending *p)
{
    const uint64_t base = sim_scalar64(w, p->inst->operand[1].reg) + (uint64_t)(int64_t)p->inst->offset;
    SIM_EACH_LANE (lane, p->mask)
        p->address[lane] = base + 4 * lane;
}

static void run_load_addtid(sim_wave *w, const sim_instruction *inst)
{
    sim_pending local, *p = open_vector(w, inst, &local, load_counters(w, inst->op->detail));
    if (p == NULL)
        return;
    thread_addresses(w, p);
    sim_memory_result(w, p, &inst->operand[0], 1, true);
    p->perform = perform_load;
    sim_memory_issue(w, p);
}

static void run_store_addtid(sim_wave *w, const sim_instruction *inst)
{
    sim_pending local, *p = open_vector(w, inst, &local, store_counters(w, inst->op->detail));
    if (p == NULL)
        return;
    thread_addresses(w, p);
    p->dwords = 1;
    sim_memory_take(w, p, &inst->operand[0], 0, 1);
    p->perform = perform_store;
    sim_memory_issue(w, p);
}

/* global_load_tr8_b64, global_load_tr16_b128 (CDNA5 ISA 10.9, the layout is with the DS forms in lds.c). */
static void finish_transposed(sim_wave *w, sim_pending *p)
{
    (void)w;
    sim_transpose_gfx1250(p->to, p->data, p->access->bytes);
}

static void perform_load_tr(sim_wave *w, sim_pending *p)
{
    uint64_t written = sim_all_lanes(w);
    memset(p->own, 0, (size_t)(p->dwords * w->lanes) * sizeof *p->own); /* of disabled lanes */
    const uint64_t ok = read_lanes(w, p);
    if (w->watch != NULL)
        SIM_EACH_LANE (lane, ok)
            written &= ~((uint64_t)!sim_global_written(w, p->address[lane], p->access->bytes) << lane);
    sim_tell_transposed(w, p, written);
    sim_count_global(w, p->inst, lane_count(ok) * p->access->bytes, false);
}

static void run_load_tr(sim_wave *w, const sim_instruction *inst)
{
    if (sim_exec(w) == 0) /* CDNA5 ISA 10.9.2: as s_nop */
        return;
    const sim_access *access = inst->op->detail;
    sim_pending       local, *p = open_vector(w, inst, &local, load_counters(w, access));
    if (p == NULL)
        return;
    addresses(w, p, 1, 2);
    sim_memory_result(w, p, &inst->operand[0], sim_dwords_of(access->bytes), false);
    p->finish = finish_transposed;
    p->perform = perform_load_tr;
    sim_memory_issue(w, p);
}

/* Copies between memory and LDS
 * -----------------------------
 */
/* p->second: LDS addresses. x3 writes 12 of each 16 bytes; less than a dword is extended to one. Lanes of a buffer that
 * are out of range write zeros, or nothing: sources do not say. */
static void perform_lds_dma(sim_wave *w, sim_pending *p)
{
    const uint32_t bytes = p->access->bytes, to_lds = bytes < 4 ? 4 : bytes;
    uint8_t       *at[SIM_MAX_LANES];
    const uint64_t ok = read_lanes(w, p);
    if (p->partial)
        sim_report(w, p->inst, SIM_CHECK_ADVICE, -1,
                   "lanes out of the buffer's range: LDS takes zeros here, hardware may leave it as it is");
    const uint64_t there = sim_resolve_lds(w, p, p->mask, p->second, to_lds, SIM_WRITE, at);
    sim_move_out(p->data, w->lanes, there, to_lds, SIM_WHOLE, at);
    sim_count_global(w, p->inst, lane_count(ok) * bytes, false);
}

/* gfx950: the LDS address is M0[17:2] * 4 + offset + lane * 4 (x3, x4: * 16). The offset moves both sides. */
static void run_lds_dma(sim_wave *w, const sim_instruction *inst)
{
    const sim_access *access = inst->op->detail;
    const uint32_t    step = access->bytes <= 4 ? 4 : 16, base = (w->s[SIM_M0] & 0x3FFFC) + (uint32_t)inst->offset;
    sim_pending       local, *p = open_vector(w, inst, &local, BIT(SIM_VMCNT));
    if (p == NULL)
        return;
    if (!addresses(w, p, 0, 1)) {
        abandon(w, p);
        return;
    }
    SIM_EACH_LANE (lane, p->mask)
        p->second[lane] = base + step * (uint32_t)lane;
    p->dwords = sim_dwords_of(access->bytes);
    p->perform = perform_lds_dma;
    sim_memory_issue(w, p);
}

static void perform_async_load(sim_wave *w, sim_pending *p)
{
    const uint32_t bytes = p->access->bytes;
    uint8_t       *from[SIM_MAX_LANES], *to[SIM_MAX_LANES];
    const uint64_t read = sim_resolve_global(w, p, p->mask, bytes, NULL, SIM_READ, from);
    const uint64_t both = sim_resolve_lds(w, p, p->mask, p->second, bytes, SIM_WRITE, to);
    SIM_EACH_LANE (lane, both) {
        if ((read >> lane & 1) != 0)
            memcpy(to[lane], from[lane], bytes);
        else
            memset(to[lane], 0, bytes);
    }
    sim_count_global(w, p->inst, lane_count(read) * bytes, false);
}

static void perform_async_store(sim_wave *w, sim_pending *p)
{
    const uint32_t bytes = p->access->bytes;
    uint8_t       *from[SIM_MAX_LANES], *to[SIM_MAX_LANES];
    const uint64_t read = sim_resolve_lds(w, p, p->mask, p->second, bytes, SIM_READ, from);
    const uint64_t written = sim_resolve_global(w, p, p->mask, bytes, NULL, SIM_WRITE, to);
    SIM_EACH_LANE (lane, written) {
        if ((read >> lane & 1) != 0)
            memcpy(to[lane], from[lane], bytes);
        else
            memset(to[lane], 0, bytes);
    }
    sim_count_global(w, p->inst, lane_count(written) * bytes, true);
}

/* CDNA5 ISA 10.8: LDS[v[lds] + offset] and memory[address + offset]. Loads complete in order with loads, stores with
 * stores. */
static void run_async(sim_wave *w, const sim_instruction *inst, int lds, int v, uint8_t order,
                      void (*perform)(sim_wave *, sim_pending *))
{
    sim_pending local, *p = sim_memory_open(w, inst, &local, BIT(SIM_ASYNCCNT), order, SIM_DOMAIN_ASYNC);
    if (p == NULL)
        return;
    const uint32_t *to = sim_vector(w, &inst->operand[lds], 0);
    SIM_EACH_LANE (lane, p->mask)
        p->second[lane] = to[lane] + (uint32_t)inst->offset;
    addresses(w, p, v, 2);
    p->perform = perform;
    sim_memory_issue(w, p);
}

static void run_async_load(sim_wave *w, const sim_instruction *inst)
{
    run_async(w, inst, 0, 1, SIM_IN_ORDER, perform_async_load);
}

static void run_async_store(sim_wave *w, const sim_instruction *inst)
{
    run_async(w, inst, 1, 0, SIM_ASYNC_STORES, perform_async_store);
}

/* Scalar memory
 * -------------
 * p->address[0]: of the first byte; p->second[0]: bytes in range (buffers).
 */
static void perform_scalar(sim_wave *w, sim_pending *p)
{
    const uint32_t bytes = p->access->bytes, step = bytes < 4 ? bytes : 4;
    const uint32_t in_range = p->second[0];
    const bool     watch = w->watch != NULL && sim_checks(w, SIM_CHECK_UNINITIALISED);
    const uint8_t *at = in_range == 0 ? NULL : sim_host_global(w, p, -1, p->address[0], in_range, SIM_READ);
    for (uint32_t i = 0; i < bytes; i += step) {
        const bool there = at != NULL && i < in_range;
        uint32_t   x = 0;
        if (there && step == 4)
            memcpy(&x, at + i, 4);
        else if (there)
            x = sim_load_small(at, step, p->access->sign);
        p->data[i / 4] = x;
        if (watch)
            sim_check_loaded(w, &p->inst->operand[0], (int)(i / 4), -1,
                             !there || sim_global_written(w, p->address[0] + i, step));
    }
    sim_count_global(w, p->inst, at == NULL ? 0 : in_range, false);
}

static void finish_scalar(sim_wave *w, sim_pending *p)
{
    (void)w;
    if (p->to != NULL && p->data != p->to)
        memcpy(p->to, p->data, (size_t)p->dwords * sizeof *p->to);
}

/* Offset: an immediate (signed), a register, or a register and offset:. */
static uint64_t scalar_offset(sim_wave *w, const sim_instruction *inst)
{
    const sim_access  *access = inst->op->detail;
    const sim_operand *o = &inst->operand[2];
    const uint64_t     offset = (uint64_t)(int64_t)inst->offset;
    if (o->kind == SIM_INTEGER)
        return offset + (uint64_t)o->value;
    const uint64_t x = o->kind == SIM_NONE ? 0 : sim_scalar_source(w, o);
    return offset + x * (inst->scale_offset ? access->bytes : 1u);
}

static void run_scalar(sim_wave *w, const sim_instruction *inst)
{
    const sim_access  *access = inst->op->detail;
    const sim_operand *to = &inst->operand[0], *base = &inst->operand[1];
    const uint32_t     counter = BIT(w->group->arch == SIM_GFX950 ? SIM_LGKMCNT : SIM_KMCNT);
    uint64_t           offset = scalar_offset(w, inst);
    uint32_t           in_range = access->bytes;
    uint64_t           start = 0;
    if (access->space == SIM_BUFFER) {
        const buffer_resource b = resource_of(w, inst, base);
        if (!b.ok)
            return;
        const uint64_t size = w->group->arch == SIM_GFX950 && b.stride != 0 ? b.records * b.stride : b.records;
        offset = access->bytes < 4 ? offset : offset & ~(uint64_t)3;
        in_range = bytes_below(offset, access->bytes, size);
        start = b.base + offset;
    } else {
        start = sim_scalar64(w, base->reg) + offset;
    }
    sim_pending local, *p = sim_memory_open(w, inst, &local, counter, SIM_UNORDERED, 0);
    if (p == NULL)
        return;
    p->address[0] = access->bytes < 4 ? start : start & ~(uint64_t)3; /* the two low bits count as zero */
    p->second[0] = in_range;
    p->dwords = sim_dwords_of(access->bytes);
    p->to = to->kind == SIM_SCALAR ? &w->s[to->reg] : NULL;
    p->perform = perform_scalar;
    p->finish = finish_scalar;
    sim_memory_issue(w, p);
}

/* Caches
 * ------
 * There are none: but write-backs and invalidations count in the wait counters.
 */
static void perform_nothing(sim_wave *w, sim_pending *p)
{
    (void)w;
    (void)p;
}

static void run_counted(sim_wave *w, const sim_instruction *inst, uint32_t counter)
{
    sim_pending local, *p = sim_memory_open(w, inst, &local, counter, SIM_IN_ORDER, SIM_DOMAIN_VMEM);
    if (p == NULL)
        return;
    p->mask = 0;
    p->perform = perform_nothing;
    sim_memory_issue(w, p);
}

static void run_invalidate(sim_wave *w, const sim_instruction *inst)
{
    run_counted(w, inst, BIT(SIM_VMCNT));
}

static void run_write_back(sim_wave *w, const sim_instruction *inst)
{
    run_counted(w, inst, BIT(w->group->arch == SIM_GFX950 ? SIM_VMCNT : SIM_STORECNT));
}

static void run_nothing(sim_wave *w, const sim_instruction *inst)
{
    (void)w;
    (void)inst;
}

static void run_unsupported(sim_wave *w, const sim_instruction *inst)
{
    sim_fail(w, inst, "unsupported: %s", (const char *)inst->op->detail);
}

/* The table
 * ---------
 */
#define GFX950 SIM_ON_GFX950
#define GFX1250 SIM_ON_GFX1250
#define BOTH SIM_ON_BOTH
#define ACCESS(where, size, ...) (&(const sim_access){ .space = where, .bytes = size, __VA_ARGS__ })

#define ROW(name, arches, kind, results, flags, run, detail) { #name, arches, kind, results, flags, run, detail },

/* One mnemonic for each space; each arch has its own spelling. */
#define LOADS(arches, name, ...)                                                                                      \
    ROW(global_load_##name, arches, SIM_LOAD, 1, FLAGS_OF(__VA_ARGS__), run_load, LOAD_OF(SIM_GLOBAL, __VA_ARGS__))   \
    ROW(flat_load_##name, arches, SIM_FLAT, 1, FLAGS_OF(__VA_ARGS__), run_load, LOAD_OF(SIM_ANY_SPACE, __VA_ARGS__))  \
    ROW(scratch_load_##name, arches, SIM_LOAD, 1, FLAGS_OF(__VA_ARGS__), run_load, LOAD_OF(SIM_SCRATCH, __VA_ARGS__)) \
    ROW(buffer_load_##name, arches, SIM_LOAD, 1, FLAGS_OF(__VA_ARGS__), run_load, LOAD_OF(SIM_BUFFER, __VA_ARGS__))
#define FLAGS_OF(size, is_signed, part, flags) flags
#define LOAD_OF(where, size, is_signed, part, flags) ACCESS(where, size, .half = part, .sign = is_signed)
#define LOAD(old, new, ...) LOADS(GFX950, old, __VA_ARGS__) LOADS(GFX1250, new, __VA_ARGS__)

#define STORES(arches, name, size, part)                                                                   \
    ROW(global_store_##name, arches, SIM_STORE, 0, 0, run_store, ACCESS(SIM_GLOBAL, size, .half = part))   \
    ROW(flat_store_##name, arches, SIM_FLAT, 0, 0, run_store, ACCESS(SIM_ANY_SPACE, size, .half = part))   \
    ROW(scratch_store_##name, arches, SIM_STORE, 0, 0, run_store, ACCESS(SIM_SCRATCH, size, .half = part)) \
    ROW(buffer_store_##name, arches, SIM_STORE, 0, SIM_RESULT_IS_SOURCE, run_store,                        \
        ACCESS(SIM_BUFFER, size, .half = part))
#define STORE(old, new, size, part) STORES(GFX950, old, size, part) STORES(GFX1250, new, size, part)

/* Whether they return is a modifier: decode adds the result. */
#define ATOMIC_ON(arches, name, size, what, kind)                                                             \
    ROW(global_atomic_##name, arches, SIM_ATOMIC, 0, 0, run_atomic, ATOMIC_OF(SIM_GLOBAL, size, what, kind))  \
    ROW(flat_atomic_##name, arches, SIM_ATOMIC, 0, 0, run_atomic, ATOMIC_OF(SIM_ANY_SPACE, size, what, kind)) \
    ROW(buffer_atomic_##name, arches, SIM_ATOMIC, 0, 0, run_atomic, ATOMIC_OF(SIM_BUFFER, size, what, kind))
#define ATOMIC_OF(where, size, what, kind) ACCESS(where, size, .op = what, .type = kind)
#define ATOMIC(old, new, ...) ATOMIC_ON(GFX950, old, __VA_ARGS__) ATOMIC_ON(GFX1250, new, __VA_ARGS__)

#define DS_ROWS(old, new, results, flags, run, detail) \
    ROW(old, GFX950, SIM_DS, results, flags, run, detail) ROW(new, GFX1250, SIM_DS, results, flags, run, detail)
#define DS_LOAD(old, new, size, is_signed, part, flags) \
    DS_ROWS(old, new, 1, flags, sim_ds_load, ACCESS(SIM_LOCAL, size, .half = part, .sign = is_signed))
#define DS_STORE(old, new, size, part) DS_ROWS(old, new, 0, 0, sim_ds_store, ACCESS(SIM_LOCAL, size, .half = part))
#define DS_PAIR(run, results, old, new, size, step) \
    DS_ROWS(old, new, results, 0, run,              \
            ACCESS(SIM_LOCAL, size, .unit = (step) / 4, .op = SIM_SWAP, .type = (size) == 8 ? SIM_U64 : SIM_U32))
#define DS_ATOMIC_OF(size, what, kind, first) ACCESS(SIM_LOCAL, size, .op = what, .type = kind, .compare_first = first)
#define DS_ATOMIC(arches, name, suffix, size, what, kind, first)                                          \
    ROW(ds_##name##_##suffix, arches, SIM_DS, 0, 0, sim_ds_atomic, DS_ATOMIC_OF(size, what, kind, first)) \
    ROW(ds_##name##_rtn_##suffix, arches, SIM_DS, 1, 0, sim_ds_atomic_rtn, DS_ATOMIC_OF(size, what, kind, first))
#define DS_EXCHANGE(old, new, size, kind) \
    DS_ROWS(old, new, 1, 0, sim_ds_atomic_rtn, DS_ATOMIC_OF(size, SIM_SWAP, kind, false))

#define LDS_DMA(name, size, is_signed)                                             \
    ROW(global_load_lds_##name, GFX950, SIM_LDS_DMA, 0, SIM_READS_M0, run_lds_dma, \
        ACCESS(SIM_GLOBAL, size, .sign = is_signed))
#define ASYNC_ROW(name, flags, run, size) ROW(name, GFX1250, SIM_ASYNC, 0, flags, run, ACCESS(SIM_GLOBAL, size))
#define ASYNC(suffix, bytes)                                                                                  \
    ASYNC_ROW(global_load_async_to_lds_##suffix, SIM_RESULT_IS_SOURCE, run_async_load, bytes)                 \
    ASYNC_ROW(cluster_load_async_to_lds_##suffix, SIM_RESULT_IS_SOURCE | SIM_READS_M0, run_async_load, bytes) \
    ASYNC_ROW(global_store_async_from_lds_##suffix, 0, run_async_store, bytes)

#define SCALAR(arches, name, size, is_signed)                                                           \
    ROW(s_load_##name, arches, SIM_SMEM, 1, 0, run_scalar, ACCESS(SIM_GLOBAL, size, .sign = is_signed)) \
    ROW(s_buffer_load_##name, arches, SIM_SMEM, 1, 0, run_scalar, ACCESS(SIM_BUFFER, size, .sign = is_signed))

#define TRANSPOSED(name, arches, kind, flags, run, where, size, element) \
    ROW(name, arches, kind, 1, SIM_CROSS_LANE | flags, run, ACCESS(where, size, .unit = element))

#define UNSUPPORTED(name, arches, kind, results, why) ROW(name, arches, kind, results, 0, run_unsupported, why)

const sim_opcode sim_memory_opcodes[] = {
#include "memory.def"
    { NULL, 0, 0, 0, 0, NULL, NULL }
};
