/* The tensor data mover of gfx1250: tensor_load_to_lds, tensor_store_from_lds (CDNA5 ISA 10.11).
 *
 * A tile of up to five dimensions moves between memory and LDS. Memory is strided, LDS dense but for padding, which
 * loads insert and stores ignore. An element whose index is at or beyond the tensor's extent, counted from the tile's
 * own origin, loads as 0 and is not stored. Descriptor bits whose meaning no two sources agree on stop the wave.
 */
#include "memory.h"

#include <string.h>

/* Groups 0 to 3 of the descriptor, 4 + 8 + 4 + 4 SGPRs; a group that is not given counts as zeros. */
enum { GROUP0 = 0, GROUP1 = 4, GROUP2 = 12, GROUP3 = 16, DESCRIPTOR = 20, DIMENSIONS = 5 };

typedef struct tile {
    uint64_t memory;
    uint32_t lds, element; /* bytes of an element */
    uint64_t extent[DIMENSIONS];
    uint32_t size[DIMENSIONS];   /* 0: the dimension is not used, and not bounded */
    uint64_t stride[DIMENSIONS]; /* elements; [0] is 1 */
    bool     gather, wide_indices;
    uint32_t index[16]; /* rows, in gather mode */
    uint32_t interval;  /* bytes between pads; 0: none */
    uint32_t pad;
} tile;

/* `count` bits from bit `first` of the descriptor's 32-bit words at `group`. */
static uint64_t field(const uint32_t *d, int group, int first, int count)
{
    uint64_t x = 0;
    for (int i = 0; i < count; i++)
        x |= (uint64_t)(d[group + (first + i) / 32] >> (first + i) % 32 & 1) << i;
    return x;
}

static const char *refusal(const uint32_t *d, bool has_groups)
{
    const bool gather = field(d, GROUP0, 31, 1) != 0;
    if (field(d, GROUP0, 0, 2) > 1)
        return "a descriptor count other than 0 and 1";
    if (field(d, GROUP0, 2, 3) != 0 || field(d, GROUP0, 10, 20) != 0)
        return "reserved bits of the descriptor's group 0";
    if (field(d, GROUP0, 121, 5) != 0)
        return "reserved bits above the descriptor's global address";
    if (field(d, GROUP0, 126, 2) != 2)
        return "a descriptor type other than 2";
    if (field(d, GROUP1, 0, 16) != 0)
        return "a workgroup mask outside of a cluster";
    if (field(d, GROUP1, 18, 1) != 0)
        return "atomic_barrier_enable";
    if (field(d, GROUP1, 19, 1) != 0)
        return "iterate_enable";
    if (field(d, GROUP1, 21, 1) != 0)
        return "early_timeout";
    if (field(d, GROUP1, 112, 16) == 0)
        return "a tile whose dimension 0 is 0";
    if (gather && !has_groups)
        return "gather mode without groups 2 and 3";
    if (gather && field(d, GROUP1, 128, 16) > (field(d, GROUP0, 30, 1) != 0 ? 8 : 16))
        return "more rows than gather mode has indices";
    if (!gather && !has_groups && field(d, GROUP1, 144, 16) > 1)
        return "a third dimension without groups 2 and 3";
    return NULL;
}

static void read_indices(const uint32_t *d, tile *t)
{
    t->wide_indices = field(d, GROUP0, 30, 1) != 0;
    const int bits = t->wide_indices ? 32 : 16;
    for (int i = 0; i < 256 / bits; i++)
        t->index[i] = (uint32_t)field(d, GROUP2, i * bits, bits);
}

static tile tile_of(const uint32_t *d, bool has_groups, bool is_store)
{
    tile t = { .memory = field(d, GROUP0, 64, 57),
               .lds = (uint32_t)field(d, GROUP0, 32, 32),
               .element = 1u << field(d, GROUP1, 16, 2),
               .gather = field(d, GROUP0, 31, 1) != 0 };
    t.extent[0] = field(d, GROUP1, 48, 32);
    t.extent[1] = field(d, GROUP1, 80, 32);
    t.size[0] = (uint32_t)field(d, GROUP1, 112, 16);
    t.size[1] = (uint32_t)field(d, GROUP1, 128, 16);
    t.stride[0] = 1;
    t.stride[1] = field(d, GROUP1, 160, 48);
    if (t.gather) {
        read_indices(d, &t);
    } else if (has_groups) {
        t.size[2] = (uint32_t)field(d, GROUP1, 144, 16);
        t.stride[2] = field(d, GROUP1, 208, 48);
        t.extent[2] = field(d, GROUP2, 0, 32);
        t.extent[3] = field(d, GROUP2, 32, 32);
        t.stride[3] = field(d, GROUP2, 64, 48);
        t.size[3] = (uint32_t)field(d, GROUP2, 112, 16);
        t.stride[4] = field(d, GROUP3, 0, 48);
        t.extent[4] = field(d, GROUP3, 48, 32);
        t.size[4] = (uint32_t)field(d, GROUP3, 80, 16);
    }
    if (field(d, GROUP1, 20, 1) != 0 && !is_store) {
        t.interval = 8u << field(d, GROUP1, 22, 3);
        t.pad = 4 * ((uint32_t)field(d, GROUP1, 25, 7) + 1);
    }
    return t;
}

/* Bytes of a row within the tensor, from its start. */
static uint32_t row_inside(const tile *t, const uint32_t at[DIMENSIONS])
{
    for (int i = 1; i < DIMENSIONS; i++) {
        const uint64_t index = i == 1 && t->gather ? t->index[at[1]] : at[i];
        if (t->size[i] != 0 && index >= t->extent[i])
            return 0;
    }
    const uint64_t inside = t->extent[0] < t->size[0] ? t->extent[0] : t->size[0];
    return (uint32_t)inside * t->element;
}

static uint64_t row_address(const tile *t, const uint32_t at[DIMENSIONS])
{
    uint64_t element = 0;
    for (int i = 1; i < DIMENSIONS; i++)
        element += (i == 1 && t->gather ? t->index[at[1]] : at[i]) * t->stride[i];
    return t->memory + element * t->element;
}

/* A place in LDS, and how many bytes of the interval since the last pad are full: it is not reset at a row's end. */
typedef struct cursor {
    uint32_t lds, since;
    uint64_t moved; /* bytes of memory so far */
} cursor;

/* Moves `bytes` of a row: up to the next pad at a time. `memory` NULL: zeros, or nothing for a store. */
static void move_run(sim_wave *w, sim_pending *p, const tile *t, cursor *c, uint8_t *memory, uint32_t bytes,
                     bool is_store)
{
    while (bytes != 0) {
        const uint32_t room = t->interval == 0 ? bytes : t->interval - c->since, run = bytes < room ? bytes : room;
        if (!is_store || memory != NULL) {
            uint8_t *lds = sim_host_lds(w, p, -1, c->lds, run, is_store ? SIM_READ : SIM_WRITE);
            if (lds == NULL && is_store)
                memset(memory, 0, run);
            else if (is_store)
                memcpy(memory, lds, run);
            else if (lds != NULL && memory != NULL)
                memcpy(lds, memory, run);
            else if (lds != NULL)
                memset(lds, 0, run);
        }
        if (memory != NULL)
            memory += run;
        c->lds += run;
        c->since += run;
        bytes -= run;
        if (t->interval != 0 && c->since >= t->interval) {
            c->since = 0;
            c->lds += t->pad;
        }
    }
}

static void move_row(sim_wave *w, sim_pending *p, const tile *t, const uint32_t at[DIMENSIONS], cursor *c,
                     bool is_store)
{
    const uint32_t whole = t->size[0] * t->element, inside = row_inside(t, at);
    uint8_t       *memory = NULL;
    if (inside != 0)
        memory = sim_host_global(w, p, -1, row_address(t, at), inside, is_store ? SIM_WRITE : SIM_READ);
    c->moved += memory != NULL ? inside : 0;
    move_run(w, p, t, c, memory, inside, is_store);
    move_run(w, p, t, c, NULL, whole - inside, is_store);
}

/* Rows in the order of LDS: dimension 1 runs fastest. */
static bool next_row(const tile *t, uint32_t at[DIMENSIONS])
{
    for (int i = 1; i < DIMENSIONS; i++) {
        if (++at[i] < t->size[i])
            return true;
        at[i] = 0;
    }
    return false;
}

/* Out of range rows are handled only where indices do not decrease (CDNA5 ISA 10.11.3.2). */
static void check_indices(sim_wave *w, const sim_pending *p, const tile *t)
{
    bool decreases = false, outside = false;
    for (uint32_t i = 0; i < t->size[1]; i++) {
        decreases |= i != 0 && t->index[i] < t->index[i - 1];
        outside |= t->index[i] >= t->extent[1];
    }
    if (decreases && outside)
        sim_report(w, p->inst, SIM_CHECK_ADVICE, -1, "row indices decrease and one is out of range: undefined");
}

static void move_tile(sim_wave *w, sim_pending *p, bool is_store)
{
    const bool has_groups = p->inst->operand_count > 2 && p->inst->operand[2].kind == SIM_SCALAR;
    const tile t = tile_of(p->own, has_groups, is_store);
    uint32_t   at[DIMENSIONS] = { 0 };
    cursor     c = { t.lds, 0, 0 };
    if (t.gather)
        check_indices(w, p, &t);
    do {
        move_row(w, p, &t, at, &c, is_store);
    } while (w->status != SIM_FAILED && next_row(&t, at));
    if (c.moved != 0) /* one operation, however many rows */
        sim_count_global(w, p->inst, c.moved, is_store);
}

static void perform_load(sim_wave *w, sim_pending *p)
{
    move_tile(w, p, false);
}

static void perform_store(sim_wave *w, sim_pending *p)
{
    move_tile(w, p, true);
}

static void perform_nothing(sim_wave *w, sim_pending *p)
{
    (void)w;
    (void)p;
}

static void copy_group(const sim_wave *w, const sim_instruction *inst, int operand, int count, uint32_t *to)
{
    const bool given = operand < inst->operand_count && inst->operand[operand].kind == SIM_SCALAR;
    for (int i = 0; i < count; i++)
        to[i] = given ? w->s[inst->operand[operand].reg + i] : 0;
}

static void run_tensor(sim_wave *w, const sim_instruction *inst, void (*perform)(sim_wave *, sim_pending *))
{
    uint32_t d[DESCRIPTOR];
    copy_group(w, inst, 0, 4, d + GROUP0);
    copy_group(w, inst, 1, 8, d + GROUP1);
    copy_group(w, inst, 2, 4, d + GROUP2);
    copy_group(w, inst, 3, 4, d + GROUP3);
    const bool  has_groups = inst->operand_count > 2 && inst->operand[2].kind == SIM_SCALAR;
    const bool  is_empty = field(d, GROUP0, 0, 2) == 0;
    const char *why = is_empty ? NULL : refusal(d, has_groups);
    if (why != NULL) {
        sim_fail(w, inst, "unsupported: %s", why);
        return;
    }
    sim_pending local, *p = sim_memory_open(w, inst, &local, 1u << SIM_TENSORCNT, SIM_IN_ORDER, SIM_DOMAIN_TENSOR);
    if (p == NULL)
        return;
    p->mask = 0; /* not of lanes: EXEC is ignored */
    memcpy(p->own, d, sizeof d);
    p->perform = is_empty ? perform_nothing : perform;
    sim_memory_issue(w, p);
}

void sim_tensor_load(sim_wave *w, const sim_instruction *inst)
{
    run_tensor(w, inst, perform_load);
}

void sim_tensor_store(sim_wave *w, const sim_instruction *inst)
{
    run_tensor(w, inst, perform_store);
}
