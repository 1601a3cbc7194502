/* A decoded instruction: what decode.c makes of the disassembler's text, once for each PC, and what everything else
 * reads. */
#ifndef ETALON_SIM_INSTRUCTION_H
#define ETALON_SIM_INSTRUCTION_H

#include "sim.h"

typedef struct sim_wave        sim_wave;
typedef struct sim_instruction sim_instruction;

/* Scalar registers by number: s0 to s105, then these. The numbers are ours and the same for both arches. */
enum {
    SIM_VCC = 106,
    SIM_TTMP = 108, /* ttmp0 to ttmp15 */
    SIM_M0 = 124,
    SIM_EXEC = 126,
    SIM_SCALARS = 128
};

typedef enum sim_operand_kind {
    SIM_NONE,   /* "off" and "null": reads 0, takes no result */
    SIM_SCALAR, /* reg, count */
    /* reg, count; of gfx1250 only the low 8 bits of the number: s_set_vgpr_msb adds the rest when it runs */
    SIM_VECTOR,
    SIM_ACC, /* AGPR of gfx950 */
    /* value: an inline integer, sign-extended, or (literal) bits as they stand, count * 32 of them. A 16-bit field
     * (branch targets, s_movk, barrier numbers ...) is printed unsigned: who reads it extends the sign. A literal of
     * 32 bits for a double is its high half. */
    SIM_INTEGER,
    SIM_REAL,    /* an inline float constant, as 1.0 or 0.15915494: its width is the instruction's */
    SIM_SPECIAL, /* reg is a sim_special */
    SIM_HWREG    /* reg = id, value = offset | size << 8 */
} sim_operand_kind;

typedef enum sim_special {
    SIM_SRC_SCC,
    SIM_SRC_VCCZ,
    SIM_SRC_EXECZ,
    SIM_SHARED_BASE,
    SIM_SHARED_LIMIT,
    SIM_PRIVATE_BASE,
    SIM_PRIVATE_LIMIT,
    SIM_FLAT_SCRATCH_LO, /* gfx1250's src_flat_scratch_base_lo, _hi */
    SIM_FLAT_SCRATCH_HI
} sim_special;

/* SDWA selections, and the halves of true16 (.l, .h). */
typedef enum sim_select {
    SIM_DWORD,
    SIM_BYTE_0,
    SIM_BYTE_1,
    SIM_BYTE_2,
    SIM_BYTE_3,
    SIM_WORD_0,
    SIM_WORD_1
} sim_select;

typedef struct sim_operand {
    uint8_t  kind, count; /* count: 32-bit registers */
    uint16_t reg;
    uint8_t  slot;   /* which two bits of s_set_vgpr_msb apply: 0 to 2 sources, 3 destination, SIM_NO_SLOT */
    uint8_t  select; /* sim_select */
    bool     literal, negate, absolute, sext;
    int64_t  value;
    double   real;
} sim_operand;

/* What an instruction is to the counters, the hazard table and the wait counters. */
typedef enum sim_class {
    SIM_SALU,
    SIM_SMEM,
    SIM_BRANCH,
    SIM_VALU,
    SIM_TRANS, /* exp, log, rcp, rsq, sqrt, sin, cos */
    SIM_XDL,   /* MFMA but for fp32 and fp64 inputs */
    SIM_SGEMM, /* MFMA with fp32 or fp64 inputs */
    SIM_WMMA,
    SIM_DS,
    SIM_LOAD, /* global, buffer, scratch */
    SIM_STORE,
    SIM_ATOMIC,
    SIM_FLAT,    /* may be LDS: counts in two counters on gfx950 */
    SIM_LDS_DMA, /* global_load_lds_*, buffer_load_* lds */
    SIM_ASYNC,   /* gfx1250 *_async_to_lds, *_async_from_lds */
    SIM_TENSOR,  /* gfx1250 TDM */
    SIM_WAIT,
    SIM_BARRIER_OP,
    SIM_NOP, /* s_nop, v_nop is SIM_VALU, s_delay_alu, s_clause, s_setprio, prefetch ... */
    SIM_END,
    SIM_CLASSES
} sim_class;

/* Flags of an opcode. */
enum {
    SIM_READS_RESULT = 1 << 0, /* the destination is a source too: fmac, mac, partial writes, swaps */
    SIM_READS_VCC = 1 << 1,    /* without naming it */
    SIM_WRITES_VCC = 1 << 2,
    SIM_WRITES_EXEC = 1 << 3, /* v_cmpx, s_*_saveexec: without naming it */
    SIM_READS_M0 = 1 << 4,
    SIM_READS_SCC = 1 << 5,
    SIM_WRITES_SCC = 1 << 6,
    SIM_IGNORES_EXEC = 1 << 7,    /* readlane, writelane, MFMA, permlane swaps, TDM ... */
    SIM_WANTS_ALL_LANES = 1 << 8, /* result is undefined unless EXEC is all ones */
    SIM_CROSS_LANE = 1 << 9,      /* a lane of the result depends on others of a source */
    SIM_COPIES = 1 << 10,         /* moves bits without interpreting them: what is undefined stays so, unreported */
    SIM_EVEN = 1 << 11,           /* register tuples want even numbers (gfx950) */
    SIM_RESULT_IS_SOURCE =
        1 << 12,               /* the first operand is printed where a result is, but is only read (stores' data ...) */
    SIM_BOTH_WRITTEN = 1 << 13 /* v_permlane*_swap, v_swap: the first two operands are read and written */
};

typedef void sim_handler(sim_wave *wave, const sim_instruction *inst);

/* A row of instructions.def: one mnemonic without its encoding suffix (_e32, _e64, _dpp, _sdwa ...). */
typedef struct sim_opcode {
    const char  *name;
    uint8_t      arches;  /* 1 << sim_arch, joined */
    uint8_t      kind;    /* sim_class */
    uint8_t      results; /* how many operands, from the first one, are written */
    uint32_t     flags;
    sim_handler *run;
    const void  *detail; /* the handler's own: a lane function, a shape, a width */
} sim_opcode;

#define SIM_ON_GFX950 (1 << SIM_GFX950)
#define SIM_ON_GFX1250 (1 << SIM_GFX1250)
#define SIM_ON_BOTH (SIM_ON_GFX950 | SIM_ON_GFX1250)

typedef enum sim_dpp {
    SIM_DPP_NONE,
    SIM_DPP_QUAD_PERM, /* dpp_arg: four times two bits */
    SIM_DPP_ROW_SHL,
    SIM_DPP_ROW_SHR,
    SIM_DPP_ROW_ROR,
    SIM_DPP_WAVE_SHL,
    SIM_DPP_WAVE_SHR,
    SIM_DPP_WAVE_ROL,
    SIM_DPP_WAVE_ROR,
    SIM_DPP_ROW_MIRROR,
    SIM_DPP_ROW_HALF_MIRROR,
    SIM_DPP_ROW_BCAST, /* 15 or 31 */
    SIM_DPP_ROW_NEWBCAST,
    SIM_DPP_ROW_SHARE,
    SIM_DPP_ROW_XMASK,
    SIM_DPP8 /* dpp_arg: eight times three bits */
} sim_dpp;

enum { SIM_MAX_OPERANDS = 8, SIM_MAX_SPANS = 12 };
enum { SIM_NO_SLOT = 4 }; /* scales of WMMA: s_set_vgpr_msb does not reach them */

/* Registers that an instruction reads or writes: of operands, and implied ones. */
typedef struct sim_span {
    uint8_t  kind;    /* SIM_SCALAR, SIM_VECTOR, SIM_ACC */
    uint8_t  slot;    /* as of the operand */
    uint8_t  operand; /* number of the operand, or 255 if implied */
    uint8_t  count;
    uint16_t reg;
} sim_span;

/* What the checks derive from the fields below at the first execution (facts.c): all zero from decode. */
typedef struct sim_facts {
    uint32_t ready;
    uint16_t lint;          /* findings of the instruction alone: bits of facts.c */
    uint8_t  rule, truth;   /* how undefined bits pass from sources to results: defined.c */
    uint8_t  longest;       /* wait states that it may ask of what follows */
    uint8_t  passes;        /* of a matrix instruction */
    uint64_t first, second; /* rows of hazards.def that it may be the first or second of */
    uint32_t what;          /* properties: bits of facts.c */
} sim_facts;

struct sim_instruction {
    const sim_opcode *op;
    uint64_t          pc; /* guest address */
    uint8_t           bytes;
    uint8_t           operand_count;
    sim_operand       operand[SIM_MAX_OPERANDS]; /* as printed, results first */
    uint8_t           read_count, write_count;
    sim_span          read[SIM_MAX_SPANS], write[SIM_MAX_SPANS];

    int32_t  offset;                            /* offset:N */
    uint8_t  offset0, offset1;                  /* of two-address DS forms */
    uint8_t  op_sel, op_sel_hi, neg_lo, neg_hi; /* bit n: operand n of the sources; the destination's bit as printed */
    bool     has_op_sel_hi;                     /* printed; where it is not, the default depends on the instruction */
    bool     clamp, e64, sdwa;
    uint8_t  omod;                   /* 0; 1: * 2, 2: * 4, 3: / 2 */
    uint8_t  dst_select, dst_unused; /* SDWA; dst_unused 0 PAD, 1 SEXT, 2 PRESERVE */
    uint8_t  dpp, row_mask, bank_mask;
    bool     bound_ctrl, fetch_inactive;
    uint32_t dpp_arg;
    uint8_t  cbsz, abid, blgp;               /* MFMA */
    uint8_t  a_format, b_format;             /* gfx1250: MATRIX_FMT_FP8 0, BF8 1, FP6 2, BF6 3, FP4 4 */
    uint8_t  a_scale_format, b_scale_format; /* E8 0, E5M3 1, E4M3 2 */
    uint8_t  a_scale_row, b_scale_row;
    bool     a_reuse, b_reuse;
    uint32_t bitop3;
    bool     offen, idxen, lds, scale_offset;
    bool     glc;                    /* sc0, glc, or th:TH_ATOMIC_RETURN: an atomic returns what was there */
    int16_t  vmcnt, lgkmcnt, expcnt; /* s_waitcnt; -1: not printed, nothing to wait for */
    uint32_t swizzle;                /* ds_swizzle_b32's offset field */
    uint8_t  byte_sel;               /* gfx1250: byte_sel:N of fp8 conversions */
    uint8_t  scale_sel;              /* gfx1250: scale_sel:N of v_cvt_scale_pk* */
    uint8_t  index_key;              /* sparse matrix products */

    const sim_instruction *dual; /* VOPD: the second half; both read before either writes */
    const char            *text; /* as disassembled, both halves */

    sim_facts facts;
};

const sim_opcode *sim_opcode_find(const char *name, sim_arch arch); /* NULL: unknown */
uint32_t sim_opcode_count(void);
const sim_opcode *sim_opcode_at(uint32_t i);

/* The decoded code of one object. */
typedef struct sim_code sim_code;

sim_code *sim_code_create(sim_arch arch, const void *code, size_t bytes, uint64_t address);
void sim_code_destroy(sim_code *code);
/* The instruction at a PC, decoded at the first call; thread-safe. NULL with sim_last_error: outside the code,
 * undecodable, or a mnemonic or modifier that is not in the table: the sentence has its text. */
const sim_instruction *sim_code_at(sim_code *code, uint64_t pc);
/* The disassembler's text alone, which needs no row in the table: the instruction's bytes, or 0 with sim_last_error. */
size_t sim_code_text(sim_code *code, uint64_t pc, char *text, size_t size);
/* One line of assembly to an instruction, for tests: text as the disassembler prints it. The instruction keeps the
 * pointer to the text; the second half of a VOPD pair lives until the thread parses the next pair. */
bool sim_parse(sim_arch arch, const char *text, sim_instruction *to);

#endif
