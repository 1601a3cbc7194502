/* DS instructions: LDS loads, stores and atomics, transposed reads, permutations of lanes, bank conflicts.
 *
 * An address of LDS counts from the workgroup's base and wraps at 32 bits. Beyond the workgroup's LDS a load gives 0
 * and a store is dropped (CDNA3 ISA, data share; the check reports it).
 */
#include "memory.h"

#include <string.h>

/* Addresses and requests
 * ----------------------
 */
static sim_pending *open_ds(sim_wave *w, const sim_instruction *inst, sim_pending *local)
{
    return sim_memory_open(w, inst, local, sim_ds_counter(w), SIM_IN_ORDER, SIM_DOMAIN_DS);
}

/* One address: in p->second, as LDS addresses have 32 bits. */
static void single_addresses(sim_wave *w, sim_pending *p, int operand)
{
    const uint32_t *v = sim_vector(w, &p->inst->operand[operand], 0);
    const uint32_t  offset = (uint32_t)p->inst->offset;
    SIM_EACH_LANE (lane, p->mask)
        p->second[lane] = v[lane] + offset;
}

static void count_conflicts(sim_wave *w, const sim_pending *p, const uint32_t *address, bool is_write)
{
    if (w->counters != NULL)
        sim_count_lds(w, p->inst, sim_lds_conflicts(w->group->arch, p->access->bytes, is_write, address, p->mask));
}

/* Tells the check which dwords of the lanes of `ok` were never written. */
static void tell_loaded(sim_wave *w, const sim_pending *p, uint64_t ok, const uint32_t *address, int first)
{
    if (w->watch == NULL || !sim_checks(w, SIM_CHECK_UNINITIALISED))
        return;
    const uint32_t bytes = p->access->bytes, step = bytes < 4 ? bytes : 4;
    SIM_EACH_LANE (lane, p->mask & ok) {
        if (sim_lds_written(w->group, address[lane], bytes))
            continue;
        for (uint32_t i = 0; i < bytes; i += step)
            sim_check_loaded(w, &p->inst->operand[0], first + (int)(i / 4), (int)lane,
                             sim_lds_written(w->group, address[lane] + i, step));
    }
}

static void clear_lanes(uint32_t *data, int lanes, int dwords, uint64_t mask)
{
    for (int i = 0; mask != 0 && i < dwords; i++)
        SIM_EACH_LANE (lane, mask)
            data[i * lanes + (int)lane] = 0;
}

/* Loads at one of the addresses into p->data from dword `first`. */
static void load_at(sim_wave *w, sim_pending *p, const uint32_t *address, int first)
{
    uint8_t       *at[SIM_MAX_LANES];
    uint32_t      *data = p->data + first * w->lanes;
    const uint32_t bytes = p->access->bytes;
    const uint64_t ok = sim_resolve_lds(w, p, p->mask, address, bytes, SIM_READ, at);
    clear_lanes(data, w->lanes, sim_dwords_of(bytes), p->mask & ~ok);
    sim_move_in(data, w->lanes, ok, bytes, p->access->sign, at);
    tell_loaded(w, p, ok, address, first);
    count_conflicts(w, p, address, false);
}

static void store_at(sim_wave *w, sim_pending *p, const uint32_t *address, int first)
{
    uint8_t       *at[SIM_MAX_LANES];
    const uint32_t bytes = p->access->bytes;
    const uint64_t ok = sim_resolve_lds(w, p, p->mask, address, bytes, SIM_WRITE, at);
    sim_move_out(p->data + first * w->lanes, w->lanes, ok, bytes, p->access->half, at);
    count_conflicts(w, p, address, true);
}

/* One address
 * -----------
 */
static void perform_load(sim_wave *w, sim_pending *p)
{
    load_at(w, p, p->second, 0);
}

static void perform_store(sim_wave *w, sim_pending *p)
{
    store_at(w, p, p->second, 0);
}

void sim_ds_load(sim_wave *w, const sim_instruction *inst)
{
    const sim_access *access = inst->op->detail;
    sim_pending       local, *p = open_ds(w, inst, &local);
    if (p == NULL)
        return;
    single_addresses(w, p, 1);
    sim_memory_result(w, p, &inst->operand[0], sim_dwords_of(access->bytes), access->half == SIM_WHOLE);
    p->perform = perform_load;
    sim_memory_issue(w, p);
}

void sim_ds_store(sim_wave *w, const sim_instruction *inst)
{
    const sim_access *access = inst->op->detail;
    sim_pending       local, *p = open_ds(w, inst, &local);
    if (p == NULL)
        return;
    single_addresses(w, p, 0);
    p->dwords = sim_dwords_of(access->bytes);
    sim_memory_take(w, p, &inst->operand[1], 0, p->dwords);
    p->perform = perform_store;
    sim_memory_issue(w, p);
}

/* LDS address M0[15:0] + offset + lane * 4. */
static void thread_addresses(sim_wave *w, sim_pending *p)
{
    const uint32_t base = (w->s[SIM_M0] & 0xFFFF) + (uint32_t)p->inst->offset;
    SIM_EACH_LANE (lane, p->mask)
        p->second[lane] = base + 4 * (uint32_t)lane;
}

void sim_ds_load_addtid(sim_wave *w, const sim_instruction *inst)
{
    sim_pending local, *p = open_ds(w, inst, &local);
    if (p == NULL)
        return;
    thread_addresses(w, p);
    sim_memory_result(w, p, &inst->operand[0], 1, true);
    p->perform = perform_load;
    sim_memory_issue(w, p);
}

void sim_ds_store_addtid(sim_wave *w, const sim_instruction *inst)
{
    sim_pending local, *p = open_ds(w, inst, &local);
    if (p == NULL)
        return;
    thread_addresses(w, p);
    p->dwords = 1;
    sim_memory_take(w, p, &inst->operand[0], 0, 1);
    p->perform = perform_store;
    sim_memory_issue(w, p);
}

/* Two addresses
 * -------------
 * The first in p->second, the other one in the low halves of p->address.
 */
static void pair_addresses(sim_wave *w, sim_pending *p, int operand)
{
    const sim_instruction *inst = p->inst;
    const uint32_t        *v = sim_vector(w, &inst->operand[operand], 0);
    const uint32_t         unit = 4u * p->access->unit;
    SIM_EACH_LANE (lane, p->mask) {
        p->second[lane] = v[lane] + unit * inst->offset0;
        p->address[lane] = (uint32_t)(v[lane] + unit * inst->offset1);
    }
}

static void other_addresses(const sim_pending *p, uint32_t to[SIM_MAX_LANES])
{
    SIM_EACH_LANE (lane, p->mask)
        to[lane] = (uint32_t)p->address[lane];
}

static void perform_load2(sim_wave *w, sim_pending *p)
{
    uint32_t other[SIM_MAX_LANES];
    other_addresses(p, other);
    load_at(w, p, p->second, 0);
    load_at(w, p, other, sim_dwords_of(p->access->bytes));
}

static void perform_store2(sim_wave *w, sim_pending *p)
{
    uint32_t other[SIM_MAX_LANES];
    other_addresses(p, other);
    store_at(w, p, p->second, 0);
    store_at(w, p, other, sim_dwords_of(p->access->bytes));
}

/* Data of a two-address store: one operand each. */
static void take_pair(sim_wave *w, sim_pending *p, int operand)
{
    const int dwords = sim_dwords_of(p->access->bytes);
    p->dwords = 2 * dwords;
    sim_memory_take(w, p, &p->inst->operand[operand], 0, dwords);
    sim_memory_take(w, p, &p->inst->operand[operand + 1], dwords, dwords);
}

void sim_ds_load2(sim_wave *w, const sim_instruction *inst)
{
    sim_pending local, *p = open_ds(w, inst, &local);
    if (p == NULL)
        return;
    pair_addresses(w, p, 1);
    sim_memory_result(w, p, &inst->operand[0], 2 * sim_dwords_of(p->access->bytes), true);
    p->perform = perform_load2;
    sim_memory_issue(w, p);
}

void sim_ds_store2(sim_wave *w, const sim_instruction *inst)
{
    sim_pending local, *p = open_ds(w, inst, &local);
    if (p == NULL)
        return;
    pair_addresses(w, p, 0);
    take_pair(w, p, 1);
    p->perform = perform_store2;
    sim_memory_issue(w, p);
}

/* Atomics
 * -------
 */
static uint64_t data_of(const sim_pending *p, int lanes, int first, int dwords, uint64_t lane)
{
    uint64_t x = p->data[first * lanes + (int)lane];
    if (dwords == 2)
        x |= (uint64_t)p->data[(first + 1) * lanes + (int)lane] << 32;
    return x;
}

/* At one of the addresses, with the data from dword `first`; the old values go to `old`. False after sim_fail. */
static bool atomic_at(sim_wave *w, sim_pending *p, const uint32_t *address, int first, uint32_t *old)
{
    const int      lanes = w->lanes, dwords = p->access->type >= SIM_U64 ? 2 : 1;
    const bool     two = p->access->op == SIM_CMPSWAP || p->access->op == SIM_MASKED_OR;
    uint8_t       *at[SIM_MAX_LANES];
    const uint64_t ok = sim_resolve_lds(w, p, p->mask, address, p->access->bytes, SIM_READ_WRITE, at);
    SIM_EACH_LANE (lane, p->mask) {
        uint64_t       was = 0;
        const uint64_t x = data_of(p, lanes, first, dwords, lane);
        const uint64_t y = two ? data_of(p, lanes, first + dwords, dwords, lane) : 0;
        const bool     aligned = (address[lane] & (p->access->bytes - 1u)) == 0;
        if ((ok >> lane & 1) != 0 && (!aligned || !sim_atomic(p->access, at[lane], x, y, &was))) {
            sim_fail(w, p->inst, "memory fault: lane %d, atomic at LDS 0x%x, which is not a multiple of %d", (int)lane,
                     address[lane], p->access->bytes);
            return false;
        }
        for (int j = 0; j < dwords; j++)
            old[j * lanes + (int)lane] = (uint32_t)(was >> 32 * j);
    }
    if (p->to != NULL)
        tell_loaded(w, p, ok, address, first);
    count_conflicts(w, p, address, true);
    return true;
}

static void perform_atomic(sim_wave *w, sim_pending *p)
{
    uint32_t *old = p->own + 4 * w->lanes; /* behind the data */
    if (!atomic_at(w, p, p->second, 0, old))
        return;
    p->data = old;
    p->dwords = p->access->type >= SIM_U64 ? 2 : 1;
}

static void run_atomic(sim_wave *w, const sim_instruction *inst, bool returns)
{
    const sim_access *access = inst->op->detail;
    const int         first = returns ? 1 : 0, dwords = access->type >= SIM_U64 ? 2 : 1;
    sim_pending       local, *p = open_ds(w, inst, &local);
    if (p == NULL)
        return;
    single_addresses(w, p, first);
    if (returns)
        sim_memory_result(w, p, &inst->operand[0], dwords, false);
    if (access->op == SIM_CMPSWAP || access->op == SIM_MASKED_OR) {
        take_pair(w, p, first + 1);
    } else {
        p->dwords = dwords;
        sim_memory_take(w, p, &inst->operand[first + 1], 0, dwords);
    }
    p->perform = perform_atomic;
    sim_memory_issue(w, p);
}

void sim_ds_atomic(sim_wave *w, const sim_instruction *inst)
{
    run_atomic(w, inst, false);
}

void sim_ds_atomic_rtn(sim_wave *w, const sim_instruction *inst)
{
    run_atomic(w, inst, true);
}

static void perform_exchange2(sim_wave *w, sim_pending *p)
{
    const int dwords = sim_dwords_of(p->access->bytes);
    uint32_t  other[SIM_MAX_LANES], *old = p->own + 4 * w->lanes;
    other_addresses(p, other);
    if (!atomic_at(w, p, p->second, 0, old) || !atomic_at(w, p, other, dwords, old + dwords * w->lanes))
        return;
    p->data = old;
}

void sim_ds_exchange2(sim_wave *w, const sim_instruction *inst)
{
    sim_pending local, *p = open_ds(w, inst, &local);
    if (p == NULL)
        return;
    pair_addresses(w, p, 1);
    sim_memory_result(w, p, &inst->operand[0], 2 * sim_dwords_of(p->access->bytes), false);
    take_pair(w, p, 2);
    p->perform = perform_exchange2;
    sim_memory_issue(w, p);
}

/* Transposed reads
 * ----------------
 * Element e of lane d is element m of the bytes that lane s has loaded at its own address. Lanes go in groups of 16 (8
 * for 16-bit elements on gfx1250): ds_read_b64_tr_b16 after measured layouts, ds_read_b64_tr_b8 after code that runs on
 * gfx950, gfx1250's after CDNA5 ISA 10.9.2.
 */
typedef struct source {
    int lane, element;
} source;

static inline source transposed_from(sim_arch arch, int size, int d, int e)
{
    if (arch == SIM_GFX950)
        return size == 2 ? (source){ (d & ~15) + 4 * e + (d >> 2 & 3), d & 3 }
                         : (source){ (d & ~15) + 2 * e + (d >> 3 & 1), d & 7 };
    return size == 2 ? (source){ (d & ~7) + e, d & 7 }
                     : (source){ (d & 16) + e % 4 + 4 * (d >> 3 & 1) + 8 * (e / 4), d & 7 };
}

/* Inlined where arch, bytes and size are constants: a table of moves. */
static inline __attribute__((always_inline)) void transpose_as(sim_arch arch, uint32_t *to, const uint32_t *from,
                                                               int lanes, int bytes, int size)
{
    const uint32_t keep = size == 1 ? 0xFF : 0xFFFF;
    for (int d = 0; d < lanes; d++)
        for (int i = 0; i < bytes / 4; i++) {
            uint32_t x = 0;
            for (int e = i * 4 / size; e < (i + 1) * 4 / size; e++) {
                const source s = transposed_from(arch, size, d, e);
                const int    byte = s.element * size;
                x |= (from[byte / 4 * lanes + s.lane] >> byte % 4 * 8 & keep) << e * size % 4 * 8;
            }
            to[i * lanes + d] = x;
        }
}

static void transpose(sim_arch arch, uint32_t *to, const uint32_t *from, int size)
{
    if (arch == SIM_GFX950 && size == 1)
        transpose_as(SIM_GFX950, to, from, 64, 8, 1);
    else if (arch == SIM_GFX950)
        transpose_as(SIM_GFX950, to, from, 64, 8, 2);
    else if (size == 1)
        transpose_as(SIM_GFX1250, to, from, 32, 8, 1);
    else
        transpose_as(SIM_GFX1250, to, from, 32, 16, 2);
}

void sim_transpose_gfx1250(uint32_t *to, const uint32_t *from, uint32_t bytes)
{
    transpose(SIM_GFX1250, to, from, bytes == 8 ? 1 : 2);
}

/* `written`: lanes whose loaded bytes are all written. */
static void tell_transposed(sim_wave *w, const sim_pending *p, uint64_t written)
{
    const int size = p->access->unit, each = 4 / size;
    SIM_EACH_LANE (lane, p->mask)
        for (int i = 0; i < p->dwords; i++) {
            bool known = true;
            for (int e = i * each; e < (i + 1) * each; e++)
                known &= (written >> transposed_from(w->group->arch, size, (int)lane, e).lane & 1) != 0;
            sim_check_loaded(w, &p->inst->operand[0], i, (int)lane, known);
        }
}

void sim_tell_transposed(sim_wave *w, const sim_pending *p, uint64_t written)
{
    if (w->watch != NULL && sim_checks(w, SIM_CHECK_UNINITIALISED))
        tell_transposed(w, p, written);
}

static void perform_load_tr(sim_wave *w, sim_pending *p)
{
    const int      lanes = w->lanes;
    const uint32_t bytes = p->access->bytes;
    uint8_t       *at[SIM_MAX_LANES];
    uint32_t       loaded[4 * SIM_MAX_LANES];
    SIM_EACH_LANE (lane, p->mask)
        if (w->watch != NULL && (p->second[lane] & (bytes - 1)) != 0)
            sim_report(w, p->inst, SIM_CHECK_ALIGNMENT, (int)lane, "LDS address 0x%x, which is not a multiple of %u",
                       p->second[lane], bytes);
    const uint64_t ok = sim_resolve_lds(w, p, p->mask, p->second, bytes, SIM_READ, at);
    if (ok != sim_all_lanes(w)) /* of disabled lanes, and beyond LDS */
        memset(loaded, 0, sizeof loaded);
    sim_move_in(loaded, lanes, ok, bytes, false, at);
    transpose(w->group->arch, p->own, loaded, p->access->unit);
    uint64_t written = sim_all_lanes(w);
    if (w->watch != NULL)
        SIM_EACH_LANE (lane, ok)
            written &= ~((uint64_t)!sim_lds_written(w->group, p->second[lane], bytes) << lane);
    sim_tell_transposed(w, p, written);
    count_conflicts(w, p, p->second, false);
}

void sim_ds_load_tr(sim_wave *w, const sim_instruction *inst)
{
    sim_pending local, *p = open_ds(w, inst, &local);
    if (p == NULL)
        return;
    if (w->group->arch == SIM_GFX1250) /* ignores EXEC: CDNA5 ISA, DS_LOAD_TR */
        p->mask = sim_all_lanes(w);
    single_addresses(w, p, 1);
    sim_memory_result(w, p, &inst->operand[0], sim_dwords_of(p->access->bytes), false);
    p->perform = perform_load_tr;
    sim_memory_issue(w, p);
}

/* Permutations of lanes
 * ---------------------
 * They use the DS path, and its counter, but no LDS. p->own: the values that go to the result.
 */
static void perform_permutation(sim_wave *w, sim_pending *p)
{
    (void)w;
    (void)p;
}

static void issue_permutation(sim_wave *w, sim_pending *p)
{
    sim_memory_result(w, p, &p->inst->operand[0], 1, false);
    p->perform = perform_permutation;
    sim_memory_issue(w, p);
}

/* Lane l takes the value of lane (address / 4) mod lanes; of a disabled one 0, unless `fetch_inactive`. */
static void gather(sim_wave *w, const sim_instruction *inst, bool fetch_inactive)
{
    sim_pending local, *p = open_ds(w, inst, &local);
    if (p == NULL)
        return;
    const uint32_t *address = sim_vector(w, &inst->operand[1], 0), *data = sim_vector(w, &inst->operand[2], 0);
    SIM_EACH_LANE (lane, p->mask) {
        const uint32_t from = (address[lane] + (uint32_t)inst->offset) / 4 % (uint32_t)w->lanes;
        p->own[lane] = fetch_inactive || (p->mask >> from & 1) != 0 ? data[from] : 0;
    }
    issue_permutation(w, p);
}

void sim_ds_bpermute(sim_wave *w, const sim_instruction *inst)
{
    gather(w, inst, false);
}

void sim_ds_bpermute_fi(sim_wave *w, const sim_instruction *inst)
{
    gather(w, inst, true);
}

/* Lane l gives its value to lane (address / 4) mod lanes; of several the highest wins; who gets none has 0. */
void sim_ds_permute(sim_wave *w, const sim_instruction *inst)
{
    sim_pending local, *p = open_ds(w, inst, &local);
    if (p == NULL)
        return;
    const uint32_t *address = sim_vector(w, &inst->operand[1], 0), *data = sim_vector(w, &inst->operand[2], 0);
    memset(p->own, 0, (size_t)w->lanes * sizeof *p->own);
    SIM_EACH_LANE (lane, p->mask)
        p->own[(address[lane] + (uint32_t)inst->offset) / 4 % (uint32_t)w->lanes] = data[lane];
    issue_permutation(w, p);
}

/* The source lane by the offset field: [15] quads, two bits for each lane; else, within 32, and [4:0], or [9:5], xor
 * [14:10]. */
static int swizzled(uint32_t field, int lane)
{
    if (field >= 0x8000)
        return (lane & ~3) | (int)(field >> 2 * (lane & 3) & 3);
    return (lane & ~31) | (((lane & (int)(field & 31)) | (int)(field >> 5 & 31)) ^ (int)(field >> 10 & 31));
}

void sim_ds_swizzle(sim_wave *w, const sim_instruction *inst)
{
    if (inst->swizzle >= 0xC000) { /* the direction of rotations is not documented well enough */
        sim_fail(w, inst, "unsupported: swizzle(%s)", inst->swizzle >= 0xE000 ? "FFT" : "ROTATE");
        return;
    }
    sim_pending local, *p = open_ds(w, inst, &local);
    if (p == NULL)
        return;
    const uint32_t *data = sim_vector(w, &inst->operand[1], 0);
    SIM_EACH_LANE (lane, p->mask) {
        const int from = swizzled(inst->swizzle, (int)lane);
        p->own[lane] = (p->mask >> from & 1) != 0 ? data[from] : 0;
    }
    issue_permutation(w, p);
}

static void perform_nothing(sim_wave *w, sim_pending *p)
{
    (void)w;
    (void)p;
}

void sim_ds_nothing(sim_wave *w, const sim_instruction *inst)
{
    sim_pending local, *p = open_ds(w, inst, &local);
    if (p == NULL)
        return;
    p->mask = 0;
    p->perform = perform_nothing;
    sim_memory_issue(w, p);
}

/* Bank conflicts
 * --------------
 * Lanes that are served together, for each width (measured on gfx950 by others, writes of 16 bytes after
 * documentation). On gfx1250 nothing is known: all 32 lanes a dword at a time on 64 banks.
 */
static const uint64_t read_b128[] = { 0x000000000FF0F00Fu, 0x00000000F00F0FF0u, 0x0FF0F00F00000000u,
                                      0xF00F0FF000000000u };
static const uint64_t read_b96[] = {
    0x0000000000F0000Fu, 0x00000000000F00F0u, 0x00000000F0000F00u, 0x000000000F00F000u,
    0x00F0000F00000000u, 0x000F00F000000000u, 0xF0000F0000000000u, 0x0F00F00000000000u
};
static const uint64_t halves[] = { 0x00000000FFFFFFFFu, 0xFFFFFFFF00000000u };
static const uint64_t quarters[] = { 0x000000000000FFFFu, 0x00000000FFFF0000u, 0x0000FFFF00000000u,
                                     0xFFFF000000000000u };
static const uint64_t eighths[] = {
    0x00000000000000FFu, 0x000000000000FF00u, 0x0000000000FF0000u, 0x00000000FF000000u,
    0x000000FF00000000u, 0x0000FF0000000000u, 0x00FF000000000000u, 0xFF00000000000000u
};

typedef struct phases {
    const uint64_t *lanes;
    int             count, banks;
} phases;

static phases phases_of(uint32_t bytes, bool is_write)
{
    if (bytes <= 4 || (bytes == 8 && !is_write))
        return (phases){ halves, 2, 64 };
    if (bytes == 8)
        return (phases){ quarters, 4, 32 };
    if (is_write)
        return (phases){ eighths, 8, 32 };
    return bytes == 12 ? (phases){ read_b96, 8, 32 } : (phases){ read_b128, 4, 64 };
}

/* The common case, quickly: no bank has two words. */
static bool is_free(const uint32_t *address, uint64_t mask, uint32_t first, uint32_t last, uint32_t banks)
{
    uint32_t word[64];
    uint64_t taken = 0;
    SIM_EACH_LANE (lane, mask)
        for (uint32_t i = first; i < last; i++) {
            const uint32_t x = address[lane] / 4 + i, bank = x & (banks - 1);
            if ((taken >> bank & 1) != 0 && word[bank] != x)
                return false;
            taken |= 1ull << bank;
            word[bank] = x;
        }
    return true;
}

/* The largest number of distinct words in one bank, less one: words `first` to `last` of each lane. */
static uint32_t conflicts_of(const uint32_t *address, uint64_t mask, uint32_t first, uint32_t last, uint32_t banks)
{
    uint32_t word[4 * SIM_MAX_LANES], next[4 * SIM_MAX_LANES], words = 0, worst = 0;
    uint16_t head[64], size[64]; /* a list of distinct words for each bank; entries count from 1 */
    if (is_free(address, mask, first, last, banks))
        return 0;
    memset(head, 0, sizeof head);
    memset(size, 0, sizeof size);
    SIM_EACH_LANE (lane, mask)
        for (uint32_t i = first; i < last; i++) {
            const uint32_t x = address[lane] / 4 + i, bank = x % banks;
            uint32_t       at = head[bank];
            while (at != 0 && word[at - 1] != x)
                at = next[at - 1];
            if (at != 0)
                continue;
            word[words] = x;
            next[words] = head[bank];
            head[bank] = (uint16_t)++words;
            size[bank]++;
            worst = size[bank] > worst ? size[bank] : worst;
        }
    return worst == 0 ? 0 : worst - 1;
}

uint32_t sim_lds_conflicts(sim_arch arch, uint32_t bytes, bool is_write, const uint32_t *address, uint64_t mask)
{
    const uint32_t words = bytes <= 4 ? 1 : bytes / 4;
    uint32_t       cycles = 0;
    if (arch == SIM_GFX1250) {
        for (uint32_t i = 0; i < words; i++)
            cycles += conflicts_of(address, mask, i, i + 1, 64);
        return cycles;
    }
    const phases p = phases_of(bytes, is_write);
    for (int i = 0; i < p.count; i++)
        cycles += conflicts_of(address, mask & p.lanes[i], 0, words, (uint32_t)p.banks);
    return cycles;
}
