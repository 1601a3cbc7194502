/* A memory operation between issue and completion: what memory.c, lds.c and tdm.c share.
 *
 * A handler opens a request, fills in addresses and data, and issues it. With checks off and late off the request lives
 * on the handler's stack and takes effect at once. Otherwise it joins the wave's list until a wait guarantees its
 * completion:
 *
 * perform  reads or writes memory or LDS. At issue, or (late) when it must be: at completion, or before a younger
 * operation
 * of the same domain is performed. Operations of one domain keep their order; domains are what hardware orders
 *            without waits: vector memory, DS, async copies, tensor copies. SMEM is in none.
 *   finish   writes registers. At issue, or (late) at completion.
 */
#ifndef ETALON_SIM_MEMORY_H
#define ETALON_SIM_MEMORY_H

#include "check.h"
#include "counters.h"
#include "machine.h"

#include <string.h>

/* The lanes of a mask, lowest first. */
#define SIM_EACH_LANE(lane, mask)                 \
    for (uint64_t left_##lane = (mask), lane = 0; \
         left_##lane != 0 && (lane = (uint64_t)__builtin_ctzll(left_##lane), true); left_##lane &= left_##lane - 1)

typedef enum sim_space { SIM_GLOBAL, SIM_ANY_SPACE /* flat */, SIM_SCRATCH, SIM_BUFFER, SIM_LOCAL } sim_space;

typedef enum sim_half { SIM_WHOLE, SIM_LOW, SIM_HIGH } sim_half;

typedef enum sim_atomic_op {
    SIM_ADD,
    SIM_SUB,
    SIM_RSUB,      /* src - old */
    SIM_SUB_CLAMP, /* 0 if it would be negative */
    SIM_COND_SUB,  /* old if it would be negative */
    SIM_MIN,
    SIM_MAX,
    SIM_AND,
    SIM_OR,
    SIM_XOR,
    SIM_INC, /* old >= src ? 0 : old + 1 */
    SIM_DEC, /* old == 0 || old > src ? src : old - 1 */
    SIM_SWAP,
    SIM_CMPSWAP,
    SIM_MASKED_OR /* (old & ~first) | second */
} sim_atomic_op;

typedef enum sim_atomic_type {
    SIM_U32,
    SIM_I32,
    SIM_F32,
    SIM_PK_F16,
    SIM_PK_BF16,
    SIM_U64, /* the types from here have 64 bits */
    SIM_I64,
    SIM_F64
} sim_atomic_type;

/* The detail of a memory opcode. */
typedef struct sim_access {
    uint8_t space;
    uint8_t bytes; /* of a lane at one address: 1, 2, 4, 8, 12, 16 */
    uint8_t half;  /* of the register: d16 and d16_hi */
    bool    sign;  /* extended by sign */
    uint8_t
        unit; /* two-address DS forms: dwords that offset0 and offset1 count; transposed ones: bytes of an element */
    uint8_t op, type;
    bool    compare_first; /* compare and swap: the first data operand is what is compared (ds_cmpst) */
} sim_access;

enum { SIM_DOMAIN_VMEM = 1, SIM_DOMAIN_DS = 2, SIM_DOMAIN_ASYNC = 4, SIM_DOMAIN_TENSOR = 8 };

/* Which operations of one counter complete in order: those of one order, but for SIM_UNORDERED. */
enum { SIM_UNORDERED, SIM_IN_ORDER, SIM_ASYNC_STORES, SIM_ORDERS };

struct sim_pending {
    sim_pending           *next, *previous;
    const sim_instruction *inst;
    const sim_access      *access;
    void (*perform)(sim_wave *w, sim_pending *p);
    void (*finish)(sim_wave *w, sim_pending *p); /* NULL: no registers to write */
    uint64_t  event, mask;                       /* event 0: on a handler's stack */
    uint32_t  counters, needs;                   /* bits of sim_counter: counts in; not yet covered by a wait */
    uint8_t   order, domains;
    bool      performed;
    uint8_t   msb[sizeof((sim_wave *)0)->msb]; /* as at issue: registers' numbers depend on it */
    int       dwords;                          /* of a lane's result or data */
    uint32_t *to;                              /* registers of the result, [dword][lanes] */
    uint32_t *data;                 /* what goes to memory or comes from it, [dword][lanes]: registers or `own` */
    bool      partial;              /* buffers: some lanes have fewer than access->bytes in range */
    uint8_t   valid[SIM_MAX_LANES]; /* if partial: bytes in range, from the first one */
    uint64_t  address[SIM_MAX_LANES];
    uint32_t
        second[SIM_MAX_LANES]; /* two-address DS forms: the other address; copies to or from LDS: the LDS address */
    uint32_t own[8 * SIM_MAX_LANES];
};

/* A request of the instruction for the active lanes; `local` is used when it need not outlive the handler. Stalls as
 * hardware does where a counter would overflow. NULL after sim_fail: out of host memory. */
sim_pending *sim_memory_open(sim_wave *w, const sim_instruction *inst, sim_pending *local, uint32_t counters,
                             uint8_t order, uint8_t domains);
void sim_memory_issue(sim_wave *w, sim_pending *p);

/* The counter of DS operations. */
static inline uint32_t sim_ds_counter(const sim_wave *w)
{
    return 1u << (w->group->arch == SIM_GFX950 ? SIM_LGKMCNT : SIM_DSCNT);
}

/* Makes `dwords` registers of an operand the data, copied if the operation takes effect later; `first`: of the data. */
void sim_memory_take(sim_wave *w, sim_pending *p, const sim_operand *o, int first, int dwords);
/* The result goes to an operand; `direct`: perform may write the registers itself when it runs at issue. */
void sim_memory_result(sim_wave *w, sim_pending *p, const sim_operand *o, int dwords, bool direct);
/* The usual finish: the active lanes of `data` go to `to`, whole or a half. */
void sim_memory_finish(sim_wave *w, sim_pending *p);

/* Host memory behind guest addresses for the lanes of `mask`. Returns the lanes that may be accessed; the others' are
 * reported or have failed the wave. `bytes` at each. `valid`: fewer for some lanes, or NULL. */
uint64_t sim_resolve_global(sim_wave *w, sim_pending *p, uint64_t mask, uint32_t bytes, const uint8_t *valid,
                            sim_access_kind kind, uint8_t *at[SIM_MAX_LANES]);
uint64_t sim_resolve_lds(sim_wave *w, sim_pending *p, uint64_t mask, const uint32_t *address, uint32_t bytes,
                         sim_access_kind kind, uint8_t *at[SIM_MAX_LANES]);
/* One access that is not of a lane, or of one lane (lane -1: scalar, TDM). NULL: must not be made. */
uint8_t *sim_host_global(sim_wave *w, sim_pending *p, int lane, uint64_t address, uint64_t bytes, sim_access_kind kind);
uint8_t *sim_host_lds(sim_wave *w, sim_pending *p, int lane, uint32_t address, uint32_t bytes, sim_access_kind kind);
/* Reports an address that is no multiple of the access, or of a dword if that is less. */
void sim_check_aligned(sim_wave *w, const sim_pending *p, int lane, uint64_t address, uint32_t bytes);
/* Whether bytes of global memory count as written. */
bool sim_global_written(sim_wave *w, uint64_t address, uint64_t bytes);

/* One or two bytes, extended to a dword. */
static inline uint32_t sim_load_small(const uint8_t *at, uint32_t bytes, bool sign)
{
    if (bytes == 1)
        return sign ? (uint32_t)(int32_t)(int8_t)*at : *at;
    uint16_t x;
    memcpy(&x, at, sizeof x);
    return sign ? (uint32_t)(int32_t)(int16_t)x : x;
}

/* Moves `bytes` of each lane between memory and dwords of [dword][lanes]. Loads of less than a dword are extended to
 * one. */
void sim_move_in(uint32_t *data, int lanes, uint64_t mask, uint32_t bytes, bool sign, uint8_t *const at[SIM_MAX_LANES]);
void sim_move_out(const uint32_t *data, int lanes, uint64_t mask, uint32_t bytes, uint8_t half,
                  uint8_t *const at[SIM_MAX_LANES]);

/* An atomic operation on host memory; returns what was there. `first`, `second`: the data operands; false: not aligned.
 * */
bool sim_atomic(const sim_access *access, uint8_t *at, uint64_t first, uint64_t second, uint64_t *old);

static inline int sim_dwords_of(uint32_t bytes)
{
    return bytes <= 4 ? 1 : (int)(bytes / 4);
}

/* What a transposed load does with what each lane has loaded, `from` and `to` [dword][lanes] (lds.c). */
void sim_transpose_gfx1250(uint32_t *to, const uint32_t *from, uint32_t bytes);
/* Tells the check what a transposed load gives; `written`: lanes whose own bytes are all written. */
void sim_tell_transposed(sim_wave *w, const sim_pending *p, uint64_t written);

/* Handlers in lds.c and tdm.c that the table in memory.c names. */
sim_handler sim_ds_load, sim_ds_store, sim_ds_load2, sim_ds_store2, sim_ds_atomic, sim_ds_atomic_rtn, sim_ds_exchange2,
    sim_ds_load_tr, sim_ds_bpermute, sim_ds_bpermute_fi, sim_ds_permute, sim_ds_swizzle, sim_ds_load_addtid,
    sim_ds_store_addtid, sim_ds_nothing, sim_tensor_load, sim_tensor_store;

#endif
