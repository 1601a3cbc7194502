/* What the checks remember of a wave and of a workgroup: shared by check.c, defined.c, races.c and hazards.c. */
#ifndef ETALON_SIM_WATCH_H
#define ETALON_SIM_WATCH_H

#include "check.h"

/* Registers of a wave in one numbering: VGPRs and AGPRs as they lie in sim_wave.v, then the scalar ones. */
enum {
    SIM_SCALAR_BASE = SIM_VECTORS_GFX1250,
    SIM_REGISTERS = SIM_SCALAR_BASE + SIM_SCALARS,
    SIM_REGISTER_WORDS = SIM_REGISTERS / 64 + 2, /* a span may look one word ahead */
    SIM_SNAPSHOTS = 64,
    SIM_HAZARD_RING = 32 /* more than the most wait states that a row asks for */
};

/* Findings of an instruction alone: sim_facts.lint. */
enum {
    SIM_LINT_EVEN = 1 << 0,
    SIM_LINT_OVERLAP_AB = 1 << 1,
    SIM_LINT_OVERLAP_C = 1 << 2,
    SIM_LINT_OVERLAP_CVT = 1 << 3,
    SIM_LINT_PK_FMA = 1 << 4
};

/* Properties of an instruction: sim_facts.what. */
enum {
    SIM_FACT_M0 = 1 << 0,           /* reads M0, named or not */
    SIM_FACT_DEVICE_SCOPE = 1 << 1, /* sc1, SCOPE_DEV, SCOPE_SYS: bypasses what is not shared by the device */
    SIM_FACT_WRITES_BACK = 1 << 2,  /* buffer_wbl2, global_wb */
    SIM_FACT_INVALIDATES = 1 << 3,  /* buffer_inv, global_inv */
    SIM_FACT_ATOMIC = 1 << 4,
    SIM_FACT_LANE_MASK = 1 << 5,     /* its last scalar source has a bit a lane: v_cndmask, carries, v_div_fmas */
    SIM_FACT_STORES = 1 << 6,        /* writes memory */
    SIM_FACT_PERMUTE = 1 << 7,       /* a DS instruction that moves registers and touches no LDS */
    SIM_FACT_DS = 1 << 8,            /* in order with the wave's other DS instructions */
    SIM_FACT_COPIES_IN = 1 << 9,     /* memory to LDS: LDS-DMA, async, TDM */
    SIM_FACT_SOURCE_BY_M0 = 1 << 10, /* movrels: the source is M0 registers on */
    SIM_FACT_RESULT_BY_M0 = 1 << 11  /* movreld */
};

/* Registers of one span, s_set_vgpr_msb applied. */
typedef struct sim_reach {
    uint16_t first;
    uint8_t  count, operand;
} sim_reach;

enum { SIM_MAX_REACHES = 2 * SIM_MAX_SPANS }; /* both halves of a VOPD */

typedef struct sim_reaches {
    int       reads, writes;
    sim_reach read[SIM_MAX_REACHES], write[SIM_MAX_REACHES];
} sim_reaches;

/* A memory operation between issue and completion. */
typedef struct sim_operation {
    uint64_t               event;
    const sim_instruction *inst;
    uint64_t               mask;
    uint64_t               unwritten;   /* LDS-DMA and async: lanes whose source was never written */
    uint64_t               second;      /* lanes whose first of two addresses was seen */
    uint32_t              *unknown;     /* [register][lane] unknown bits of a store's data; NULL: none */
    uint32_t               lds;         /* number among the wave's operations on LDS; 0: none yet */
    uint32_t               snapshot;    /* barriers that the wave had passed */
    bool                   releases;    /* device-scope atomics: what the workgroup stored before is complete */
    uint32_t               translation; /* number among the wave's that XCNT counts; 0: not counted */
    uint8_t                counter, writes;
    sim_reach              write[2];
} sim_operation;

/* An operation on LDS, for ever: `epoch` 0 while it is outstanding, then the barrier signal of its wave that
 * publishes it. */
typedef struct sim_lds_event {
    const sim_instruction *inst;
    uint32_t               epoch, last; /* last: newest operation of the wave when it completed */
} sim_lds_event;

typedef struct sim_hazard_entry {
    const sim_instruction *inst;
    uint64_t               rows, states; /* rows of hazards.def; the wave's states right after it */
    sim_reaches            reaches;
} sim_hazard_entry;

struct sim_watch {
    sim_reaches            reaches; /* of the instruction `at` */
    const sim_instruction *at;
    uint32_t               vector_limit, acc_limit, scalar_limit; /* registers of the descriptor; 0: unknown */
    bool                   m0_set;

    /* Pending: registers that a memory operation will write, and which one. */
    uint64_t       pending[SIM_REGISTER_WORDS];
    uint32_t       holder[SIM_REGISTERS]; /* event */
    sim_operation *open;                  /* in order of issue */
    uint32_t       opened, open_room;
    uint64_t       last_event;

    /* gfx1250: registers that an operation reads again if its address faults, until XCNT says that it is translated. */
    uint64_t               sources[SIM_REGISTER_WORDS];
    uint32_t               reader[SIM_REGISTERS]; /* translation */
    const sim_instruction *reads_again[SIM_REGISTERS];
    uint32_t               translations, translated; /* issued; up to this one complete */
    bool                   translates_scalars;

    /* Defined: bits of registers that something wrote. A register whose bit in `unknown` is clear is known whole. */
    uint64_t  unknown[SIM_REGISTER_WORDS];
    uint32_t *known; /* [register][lane] */
    uint32_t  known_scalar[SIM_SCALARS];
    bool      scc_known;

    /* LDS races: clock[u] is the last signal of wave u that this wave knows of. */
    uint32_t epoch;
    uint32_t clock[SIM_MAX_WAVES];
    uint32_t passed;
    uint32_t (*snapshot)[SIM_MAX_WAVES]; /* clocks after the last barriers: [passed % SIM_SNAPSHOTS] */
    sim_lds_event *lds;
    uint32_t       lds_events, lds_room;

    /* Races between workgroups. */
    bool     leaked; /* signalled a barrier with stores outstanding */
    uint64_t page_number[8];
    void    *page[8];

    const sim_range *range; /* that the last access hit */

    /* Wait states. */
    uint64_t         states;
    uint64_t         live_rows;
    uint32_t         entries, entry; /* how many, and the next to take */
    sim_hazard_entry ring[SIM_HAZARD_RING];
};

static inline bool sim_any_bit(const uint64_t *bits, const sim_reach *r)
{
    const unsigned word = r->first / 64, shift = r->first % 64;
    const uint64_t window = bits[word] >> shift | (bits[word + 1] << 1) << (63 - shift);
    return (window & (r->count >= 64 ? UINT64_MAX : (UINT64_C(1) << r->count) - 1)) != 0;
}

static inline bool sim_bit(const uint64_t *bits, int i)
{
    return (bits[i / 64] >> (i % 64) & 1) != 0;
}

static inline void sim_put_bit(uint64_t *bits, int i, bool on)
{
    const uint64_t bit = UINT64_C(1) << (i % 64);
    bits[i / 64] = on ? bits[i / 64] | bit : bits[i / 64] & ~bit;
}

static inline bool sim_meet(const sim_reach *a, const sim_reach *b)
{
    return a->first < b->first + b->count && b->first < a->first + a->count;
}

/* "v5", "a3", "s7", "vcc_lo" ... of a number. */
const char *sim_register_name(sim_arch arch, int reg, char *to, size_t size);
/* Offset of an instruction from its kernel's entry. */
uint64_t sim_offset(const sim_wave *w, const sim_instruction *inst);

/* facts.c */
void sim_facts_fill(sim_instruction *inst);
static inline const sim_facts *sim_facts_of(const sim_instruction *inst)
{
    if (__atomic_load_n(&inst->facts.ready, __ATOMIC_ACQUIRE) == 0)
        sim_facts_fill((sim_instruction *)(uintptr_t)inst); /* decode made it, and made it writable */
    return &inst->facts;
}
void sim_reach_all(const sim_wave *w, const sim_instruction *inst, sim_reaches *to);
/* A movrel with the registers that M0 picks now; others as they are. */
const sim_instruction *sim_direct(const sim_wave *w, const sim_instruction *inst, sim_instruction *room);
/* The operand that is a store's or an atomic's data, -1: none; the second of a two-address form is the next one. */
int sim_data_operand(const sim_instruction *inst);
/* Bits of each 32 that the instruction writes of its first result: all, or a half or a byte. */
uint32_t sim_result_bits(const sim_instruction *inst);

/* hazards.c */
void sim_hazard_facts(const sim_instruction *inst, sim_facts *facts);

/* defined.c */
void sim_defined_facts(const sim_instruction *inst, sim_facts *facts);
/* `known`: no register that is read has undefined bits; one that is written has. */
void sim_defined_before(sim_wave *w, const sim_instruction *inst, bool known);
void sim_defined_issue(sim_wave *w, const sim_instruction *inst, sim_operation *op);
uint32_t *sim_known_row(const sim_wave *w, int reg);

/* races.c */
void sim_races_create(sim_watch *watch, const sim_wave *w);
void sim_races_destroy(sim_watch *watch);
void sim_races_issue(sim_wave *w, const sim_instruction *inst, sim_operation *op);
void sim_races_complete(sim_wave *w, const sim_operation *op);
void sim_races_before(sim_wave *w, const sim_instruction *inst); /* cache write-backs and invalidations */

/* The operation of an event, while it is outstanding. */
sim_operation *sim_operation_of(sim_watch *watch, uint64_t event);

#endif
