/* What is defined: a bit for each bit of VGPRs, AGPRs and SGPRs, and one for SCC; a byte of LDS and of memory is
 * defined or is not.
 *
 * How it passes through an instruction:
 *   copies, selections, lane moves   bit by bit, from where the bit comes
 *   and, or, xor, not, bitop3 ...    a bit is undefined if undefined sources can change it: x & 0 is defined, and so
 * is x ^ x
 *   shifts, bit fields, v_perm       the bits move, if amount or selector is defined
 *   packed halves                    a half from its halves
 *   everything else                  the whole result of a lane is undefined if any bit read for the lane is
 * A partial write (SDWA, op_sel, d16, fp8 conversions) leaves the rest of the register as it was. v_cndmask looks at
 * the side that the lane takes; s_cselect too. Lanes that EXEC disables keep what they had.
 *
 * It is reported where it can matter to the outside: addresses, data stored to memory, conditions of branches, EXEC,
 * and operands of matrix instructions, which read every lane. After a report the result counts as defined: one
 * mistake, one finding.
 */
#include "memory.h"
#include "watch.h"

#include <stdlib.h>
#include <string.h>

typedef enum rule {
    RULE_ANY,
    RULE_COPY,
    RULE_BITS, /* truth: bit (a << 2 | b << 1 | c) is the result's */
    RULE_LEFT, /* operand 1 by operand 2 */
    RULE_RIGHT,
    RULE_LEFT_REV, /* operand 2 by operand 1 */
    RULE_RIGHT_REV,
    RULE_RIGHT_SIGNED_REV,
    RULE_LEFT_OR, /* (a << b) | c */
    RULE_FIELD,   /* unsigned bit field */
    RULE_FIELD_SIGNED,
    RULE_REVERSE,
    RULE_PERM,
    RULE_ALIGN, /* bits from an offset in a pair */
    RULE_ALIGN_BYTE,
    RULE_SELECT,
    RULE_PACK,
    RULE_CARRY,         /* sums and products: a bit of the result depends on those up to it */
    RULE_CARRY_SHIFTED, /* (a << b) + c */
    RULE_HALVES,
    RULE_DWORDS,
    RULE_DWORDS_MOVED,
    RULE_READLANE,
    RULE_FIRSTLANE,
    RULE_WRITELANE,
    RULE_SWAP,
    RULE_SWAP16,
    RULE_SWAP32,
    RULE_SAVEEXEC, /* truth: of the source and EXEC */
    RULE_BIT_TEST
} rule;

/* The longest prefix decides. Truth: bit (a << 2 | b << 1 | c). */
static const struct {
    const char *prefix;
    uint8_t     rule, truth;
} rules[] = {
    { "v_mov_b", RULE_COPY, 0 },
    { "v_dual_mov_b32", RULE_COPY, 0 },
    { "v_accvgpr", RULE_COPY, 0 },
    { "s_mov_b", RULE_COPY, 0 },
    { "v_and_b", RULE_BITS, 0xC0 },
    { "s_and_b", RULE_BITS, 0xC0 },
    { "v_or_b", RULE_BITS, 0xFC },
    { "s_or_b", RULE_BITS, 0xFC },
    { "v_xor_b", RULE_BITS, 0x3C },
    { "s_xor_b", RULE_BITS, 0x3C },
    { "v_xnor_b", RULE_BITS, 0xC3 },
    { "s_xnor_b", RULE_BITS, 0xC3 },
    { "s_nand_b", RULE_BITS, 0x3F },
    { "s_nor_b", RULE_BITS, 0x03 },
    { "s_andn2_b", RULE_BITS, 0x30 },
    { "s_and_not1_b", RULE_BITS, 0x30 },
    { "s_orn2_b", RULE_BITS, 0xF3 },
    { "s_or_not1_b", RULE_BITS, 0xF3 },
    { "v_not_b", RULE_BITS, 0x0F },
    { "s_not_b", RULE_BITS, 0x0F },
    { "v_or3_b", RULE_BITS, 0xFE },
    { "v_xor3_b", RULE_BITS, 0x96 },
    { "v_and_or_b", RULE_BITS, 0xEA },
    { "v_bfi_b32", RULE_BITS, 0xCA },
    { "v_bitop3_b", RULE_BITS, 0 },
    { "v_dual_bitop2_b32", RULE_BITS, 0 },
    { "v_lshlrev_b", RULE_LEFT_REV, 0 },
    { "v_dual_lshlrev_b32", RULE_LEFT_REV, 0 },
    { "v_lshrrev_b", RULE_RIGHT_REV, 0 },
    { "v_dual_lshrrev_b32", RULE_RIGHT_REV, 0 },
    { "v_ashrrev_i", RULE_RIGHT_SIGNED_REV, 0 },
    { "v_dual_ashrrev_i32", RULE_RIGHT_SIGNED_REV, 0 },
    { "v_lshl_or_b32", RULE_LEFT_OR, 0 },
    { "v_bfe_u32", RULE_FIELD, 0 },
    { "v_bfe_i32", RULE_FIELD_SIGNED, 0 },
    { "s_bfe_u32", RULE_ANY, 0 },
    { "s_lshl_b", RULE_LEFT, 0 },
    { "s_lshr_b", RULE_RIGHT, 0 },
    { "v_bfrev_b32", RULE_REVERSE, 0 },
    { "v_add_u", RULE_CARRY, 0 },
    { "v_add_nc_u", RULE_CARRY, 0 },
    { "v_add_co_u32", RULE_CARRY, 0 },
    { "v_add3_u32", RULE_CARRY, 0 },
    { "v_dual_add_nc_u32", RULE_CARRY, 0 },
    { "v_sub_u", RULE_CARRY, 0 },
    { "v_sub_nc_u", RULE_CARRY, 0 },
    { "v_sub_co_u32", RULE_CARRY, 0 },
    { "v_dual_sub_nc_u32", RULE_CARRY, 0 },
    { "v_subrev_u", RULE_CARRY, 0 },
    { "v_subrev_nc_u32", RULE_CARRY, 0 },
    { "v_xad_u32", RULE_CARRY, 0 },
    { "v_mul_lo_u", RULE_CARRY, 0 },
    { "v_mul_u64", RULE_CARRY, 0 },
    { "v_mul_u32_u24", RULE_CARRY, 0 },
    { "v_mad_u16", RULE_CARRY, 0 },
    { "v_mad_u32", RULE_CARRY, 0 },
    { "v_mad_u64_u32", RULE_CARRY, 0 },
    { "v_mad_nc_u64_u32", RULE_CARRY, 0 },
    { "v_lshl_add_u", RULE_CARRY_SHIFTED, 0 },
    { "v_perm_b32", RULE_PERM, 0 },
    { "v_alignbit_b32", RULE_ALIGN, 0 },
    { "v_alignbyte_b32", RULE_ALIGN_BYTE, 0 },
    { "v_cndmask_b", RULE_SELECT, 0 },
    { "v_dual_cndmask_b32", RULE_SELECT, 0 },
    { "s_cselect_b", RULE_SELECT, 0 },
    { "v_pack_b32_f16", RULE_PACK, 0 },
    { "v_pk_", RULE_HALVES, 0 },
    { "v_pk_add_f32", RULE_DWORDS, 0 },
    { "v_pk_mul_f32", RULE_DWORDS, 0 },
    { "v_pk_fma_f32", RULE_DWORDS, 0 },
    { "v_pk_mov_b32", RULE_DWORDS_MOVED, 0 },
    { "v_readlane", RULE_READLANE, 0 },
    { "v_readfirstlane", RULE_FIRSTLANE, 0 },
    { "v_writelane", RULE_WRITELANE, 0 },
    { "v_swap_b32", RULE_SWAP, 0 },
    { "v_permlane16_swap", RULE_SWAP16, 0 },
    { "v_permlane32_swap", RULE_SWAP32, 0 },
    { "s_and_saveexec", RULE_SAVEEXEC, 0xC0 },
    { "s_or_saveexec", RULE_SAVEEXEC, 0xFC },
    { "s_xor_saveexec", RULE_SAVEEXEC, 0x3C },
    { "s_andn2_saveexec", RULE_SAVEEXEC, 0x30 },
    { "s_and_not1_saveexec", RULE_SAVEEXEC, 0x30 },
    { "s_orn2_saveexec", RULE_SAVEEXEC, 0xF3 },
    { "s_or_not1_saveexec", RULE_SAVEEXEC, 0xF3 },
    { "s_andn1_saveexec", RULE_SAVEEXEC, 0x0C },
    { "s_and_not0_saveexec", RULE_SAVEEXEC, 0x0C },
    { "s_bitcmp", RULE_BIT_TEST, 0 },
};

/* Two halves, not a pair of 32 bits. */
static bool is_packed_halves(const char *name)
{
    return strncmp(name, "v_pk_", 5) == 0 && strstr(name, "32") == NULL && strstr(name, "64") == NULL;
}

void sim_defined_facts(const sim_instruction *inst, sim_facts *facts)
{
    size_t longest = 0;
    facts->rule = RULE_ANY;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        const size_t length = strlen(rules[i].prefix);
        if (length > longest && strncmp(inst->op->name, rules[i].prefix, length) == 0) {
            longest = length;
            facts->rule = rules[i].rule;
            facts->truth = rules[i].truth;
        }
    }
    if (facts->rule == RULE_HALVES && !is_packed_halves(inst->op->name))
        facts->rule = RULE_ANY;
    if (strncmp(inst->op->name, "v_bitop3", 8) == 0 || strcmp(inst->op->name, "v_dual_bitop2_b32") == 0)
        facts->truth = (uint8_t)inst->bitop3;
    /* A selection of bytes comes before the rule, and modifiers of sign are arithmetic. */
    if (inst->sdwa && facts->rule != RULE_COPY)
        facts->rule = RULE_ANY;
    for (int i = 0; i < inst->operand_count; i++)
        if (!inst->sdwa && inst->operand[i].select == SIM_WORD_1)
            facts->rule = RULE_ANY;
    /* Saturation looks at every bit; where op_sel says, a half moves. */
    if ((facts->rule == RULE_CARRY || facts->rule == RULE_CARRY_SHIFTED) && (inst->clamp || inst->op_sel != 0))
        facts->rule = RULE_ANY;
}

/* The bits of registers
 * ---------------------
 */
uint32_t *sim_known_row(const sim_wave *w, int reg)
{
    return w->watch->known + (size_t)reg * (size_t)w->lanes;
}

static int number_of(const sim_wave *w, const sim_operand *o, int i)
{
    switch (o->kind) {
    case SIM_SCALAR:
        return SIM_SCALAR_BASE + o->reg + i;
    case SIM_ACC:
        return 256 + o->reg + i;
    default:
        return o->reg + i + 256 * w->msb[o->slot];
    }
}

static bool is_vector(const sim_operand *o)
{
    return o->kind == SIM_VECTOR || o->kind == SIM_ACC;
}

/* Unknown bits of register i of an operand in a lane; constants have none. */
static uint32_t unknown_in(const sim_wave *w, const sim_operand *o, int i, int lane)
{
    const sim_watch *k = w->watch;
    if (o->kind == SIM_SCALAR)
        return ~k->known_scalar[o->reg + i];
    if (!is_vector(o))
        return 0;
    const int reg = number_of(w, o, i);
    return sim_bit(k->unknown, reg) ? ~sim_known_row(w, reg)[lane] : 0;
}

static uint32_t value_in(const sim_wave *w, const sim_operand *o, int i, int lane)
{
    switch (o->kind) {
    case SIM_SCALAR:
        return w->s[o->reg + i];
    case SIM_VECTOR:
    case SIM_ACC:
        return sim_vector(w, o, i)[lane];
    case SIM_INTEGER:
        return (uint32_t)((uint64_t)o->value >> 32 * i);
    default:
        return 0; /* inline reals and apertures meet no rule that looks at values */
    }
}

static void settle(sim_watch *k, int reg, int lanes)
{
    const uint32_t *known = k->known + (size_t)reg * (size_t)lanes;
    uint32_t        all = UINT32_MAX;
    for (int l = 0; l < lanes; l++)
        all &= known[l];
    sim_put_bit(k->unknown, reg, all != UINT32_MAX);
}

/* All ones for the lanes of a mask. */
static void spread(uint32_t *to, uint64_t mask, int lanes)
{
    for (int l = 0; l < lanes; l++)
        to[l] = -(uint32_t)(mask >> l & 1);
}

/* Gives the bits `bits` of the lanes of `mask` what `unknown` says; NULL: all known. */
static void put_vector(sim_wave *w, int reg, uint64_t mask, uint32_t bits, const uint32_t *unknown)
{
    sim_watch *k = w->watch;
    uint32_t  *known = sim_known_row(w, reg), taken[SIM_MAX_LANES], all = UINT32_MAX;
    if (unknown == NULL && bits == UINT32_MAX && mask == sim_all_lanes(w)) {
        memset(known, 0xFF, (size_t)w->lanes * sizeof *known);
        sim_put_bit(k->unknown, reg, false);
        return;
    }
    spread(taken, mask, w->lanes);
    for (int l = 0; l < w->lanes; l++) {
        const uint32_t change = taken[l] & bits;
        known[l] = (known[l] & ~change) | (change & ~(unknown == NULL ? 0 : unknown[l]));
        all &= known[l];
    }
    sim_put_bit(k->unknown, reg, all != UINT32_MAX);
}

static void put_scalar(sim_wave *w, int reg, uint32_t unknown)
{
    w->watch->known_scalar[reg] = ~unknown;
    sim_put_bit(w->watch->unknown, SIM_SCALAR_BASE + reg, unknown != 0);
}

static void report_use(sim_wave *w, const sim_instruction *inst, int reg, int lane, const char *use)
{
    char name[16];
    sim_report(w, inst, SIM_CHECK_UNINITIALISED, lane, "%s of %s, which was never written", use,
               sim_register_name(w->group->arch, reg, name, sizeof name));
}

/* What undefined EXEC enables nobody knows: reported once, then taken as it is. */
static void check_exec(sim_wave *w, const sim_instruction *inst)
{
    sim_watch *k = w->watch;
    for (int i = SIM_EXEC; i < SIM_EXEC + (w->lanes == 64 ? 2 : 1); i++)
        if (k->known_scalar[i] != UINT32_MAX) {
            sim_report(w, inst, SIM_CHECK_UNINITIALISED, -1, "EXEC becomes what was never written");
            put_scalar(w, i, 0);
        }
}

/* Vector instructions
 * -------------------
 */
enum { MOST_PLANES = 4 };

/* What an instruction makes of its results: bits of the first vector result, a plane for each register or one for
 * all, and bits of scalar ones. */
typedef struct flow {
    int      planes;
    uint32_t vector[MOST_PLANES][SIM_MAX_LANES];
    uint32_t scalar[2]; /* bits of the scalar result */
    uint64_t lanes;     /* lanes whose mask bit in a scalar result is unknown */
} flow;

static uint32_t select_bits(int select)
{
    switch (select) {
    case SIM_BYTE_0:
    case SIM_BYTE_1:
    case SIM_BYTE_2:
    case SIM_BYTE_3:
        return 0xFFu << 8 * (select - SIM_BYTE_0);
    case SIM_WORD_0:
        return 0xFFFFu;
    case SIM_WORD_1:
        return 0xFFFF0000u;
    default:
        return UINT32_MAX;
    }
}

static bool ends_in(const char *name, const char *end)
{
    const size_t a = strlen(name), b = strlen(end);
    return a >= b && strcmp(name + a - b, end) == 0;
}

/* Which bits of a source the instruction reads. Types are in the name's end; a packed or dot form reads them all. */
static uint32_t source_bits(const sim_instruction *inst, int operand)
{
    const char *name = inst->op->name;
    const int   source = operand - inst->op->results;
    const bool  high = source >= 0 && source < 3 && (inst->op_sel >> source & 1) != 0;
    if (inst->operand[operand].select != SIM_DWORD)
        return select_bits(inst->operand[operand].select);
    if (inst->op->kind != SIM_VALU && inst->op->kind != SIM_TRANS)
        return UINT32_MAX;
    if (strncmp(name, "v_cvt_pk_f32_fp8", 16) == 0 || strncmp(name, "v_cvt_pk_f32_bf8", 16) == 0 ||
        strncmp(name, "v_cvt_scalef32_pk_f32_fp8", 25) == 0 || strncmp(name, "v_cvt_scalef32_pk_f32_bf8", 25) == 0)
        return source == 0 ? (high ? 0xFFFF0000u : 0xFFFFu) : UINT32_MAX;
    if (ends_in(name, "_f32_fp8") || ends_in(name, "_f32_bf8"))
        return source == 0 ? 0xFFu << 8 * ((inst->byte_sel | (inst->op_sel & 3)) & 3) : UINT32_MAX;
    if (strstr(name, "_mix") != NULL) /* a half where op_sel_hi says so */
        return source >= 0 && source < 3 && inst->has_op_sel_hi && (inst->op_sel_hi >> source & 1) != 0
                   ? (high ? 0xFFFF0000u : 0xFFFFu)
                   : UINT32_MAX;
    if (strncmp(name, "v_cvt_f32_ubyte", 15) == 0)
        return 0xFFu << 8 * (name[15] - '0');
    if (strstr(name, "_u24") != NULL || strstr(name, "_i24") != NULL)
        return source < 2 ? 0xFFFFFFu : UINT32_MAX;
    if (strstr(name, "_pk") != NULL || strstr(name, "_dot") != NULL || strstr(name, "pack") != NULL)
        return UINT32_MAX;
    if (ends_in(name, "_f16") || ends_in(name, "_bf16") || ends_in(name, "_u16") || ends_in(name, "_i16") ||
        ends_in(name, "_b16"))
        return high ? 0xFFFF0000u : 0xFFFFu;
    return UINT32_MAX;
}

/* The lane that DPP takes its first source from, -1: none. Controls as in the table of DPP_CTRL of the CDNA4 ISA. */
static int dpp_lane(const sim_instruction *inst, int l, int lanes)
{
    const int row = l & ~15, in = l & 15, n = (int)inst->dpp_arg;
    int       from;
    switch (inst->dpp) {
    case SIM_DPP_QUAD_PERM:
        return (l & ~3) + (n >> 2 * (l & 3) & 3);
    case SIM_DPP_ROW_SHL:
        return in + n < 16 ? l + n : -1;
    case SIM_DPP_ROW_SHR:
        return in - n >= 0 ? l - n : -1;
    case SIM_DPP_ROW_ROR:
        return row + ((in - n) & 15);
    case SIM_DPP_WAVE_SHL:
        return l + 1 < lanes ? l + 1 : -1;
    case SIM_DPP_WAVE_SHR:
        return l - 1;
    case SIM_DPP_WAVE_ROL:
        return (l + 1) % lanes;
    case SIM_DPP_WAVE_ROR:
        return (l + lanes - 1) % lanes;
    case SIM_DPP_ROW_MIRROR:
        return row + 15 - in;
    case SIM_DPP_ROW_HALF_MIRROR:
        return (l & ~7) + 7 - (l & 7);
    case SIM_DPP_ROW_BCAST: /* the last lane of the row, or of the rows, before */
        from = (l & ~n) - 1;
        return from;
    case SIM_DPP_ROW_NEWBCAST:
    case SIM_DPP_ROW_SHARE:
        return row + (n & 15);
    case SIM_DPP_ROW_XMASK:
        return row + ((in ^ n) & 15);
    case SIM_DPP8:
        return (l & ~7) + (n >> 3 * (l & 7) & 7);
    default:
        return l;
    }
}

/* Unknown bits of register i of a source in a lane, through DPP where it has it. */
static uint32_t source_unknown(const sim_wave *w, const sim_instruction *inst, int operand, int i, int lane)
{
    const bool moved = inst->dpp != SIM_DPP_NONE && operand == inst->op->results;
    const int  from = moved ? dpp_lane(inst, lane, w->lanes) : lane;
    const bool there = from >= 0 && (!moved || inst->fetch_inactive || (sim_exec(w) >> from & 1) != 0);
    return there ? unknown_in(w, &inst->operand[operand], i, from) & source_bits(inst, operand) : 0;
}

/* The operand whose bits are one a lane, -1: VCC unnamed, -2: none. */
static int mask_operand(const sim_instruction *inst)
{
    if ((inst->facts.what & SIM_FACT_LANE_MASK) == 0)
        return -2;
    for (int i = inst->operand_count - 1; i >= inst->op->results; i--)
        if (inst->operand[i].kind == SIM_SCALAR)
            return i > inst->op->results + 1 || inst->operand_count <= inst->op->results + 2 ? i : -1;
    return -1;
}

static uint64_t mask_unknown(const sim_wave *w, int reg)
{
    const sim_watch *k = w->watch;
    const uint64_t   low = (uint32_t)~k->known_scalar[reg];
    return w->lanes == 32 ? low : low | (uint64_t)(uint32_t)~k->known_scalar[reg + 1] << 32;
}

static void add_unknown(const sim_wave *w, const sim_instruction *inst, int operand, bool is_result, uint32_t *any)
{
    const sim_watch   *k = w->watch;
    const sim_operand *o = &inst->operand[operand];
    const uint32_t     bits = is_result ? UINT32_MAX : source_bits(inst, operand);
    for (int i = 0; i < o->count; i++) {
        if (o->kind == SIM_SCALAR) {
            const uint32_t unknown = ~k->known_scalar[o->reg + i] & bits;
            for (int l = 0; l < w->lanes; l++)
                any[l] |= unknown;
        } else if (is_vector(o) && sim_bit(k->unknown, number_of(w, o, i))) {
            const uint32_t *known = sim_known_row(w, number_of(w, o, i));
            if (inst->dpp != SIM_DPP_NONE && operand == inst->op->results)
                for (int l = 0; l < w->lanes; l++)
                    any[l] |= source_unknown(w, inst, operand, i, l);
            else
                for (int l = 0; l < w->lanes; l++)
                    any[l] |= ~known[l] & bits;
        }
    }
}

/* Whole lanes: any bit that is read. */
static void flow_any(const sim_wave *w, const sim_instruction *inst, flow *f)
{
    const int      mask = mask_operand(inst);
    const uint64_t masked = mask == -2 ? 0 : mask_unknown(w, mask < 0 ? SIM_VCC : inst->operand[mask].reg);
    uint32_t      *any = f->vector[0];
    spread(any, masked, w->lanes);
    for (int o = 0; o < inst->operand_count; o++) {
        const bool is_result = o < inst->op->results;
        const bool is_read =
            !is_result || (o == 0 && (inst->op->flags & SIM_READS_RESULT) != 0 && sim_result_bits(inst) == UINT32_MAX);
        if (is_read && o != mask)
            add_unknown(w, inst, o, is_result, any);
    }
    if ((inst->op->flags & SIM_CROSS_LANE) != 0) {
        const uint64_t read = (inst->op->flags & SIM_IGNORES_EXEC) != 0 ? sim_all_lanes(w) : sim_exec(w);
        uint32_t       one = 0;
        for (int l = 0; l < w->lanes; l++)
            one |= (read >> l & 1) != 0 ? any[l] : 0;
        for (int l = 0; l < w->lanes; l++)
            any[l] = one;
    }
    f->planes = 1;
    for (int l = 0; l < w->lanes; l++) {
        f->lanes |= (uint64_t)(any[l] != 0) << l;
        any[l] = any[l] != 0 ? UINT32_MAX : 0;
    }
}

static uint32_t truth_of(uint8_t truth, uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t result = 0;
    for (int i = 0; i < 8; i++)
        if ((truth >> i & 1) != 0)
            result |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    return result;
}

/* Bits that some choice of the unknown ones changes. */
static uint32_t unknown_bits(uint8_t truth, const uint32_t value[3], const uint32_t unknown[3])
{
    const uint32_t base = truth_of(truth, value[0], value[1], value[2]);
    uint32_t       changed = 0;
    for (int flip = 1; flip < 8; flip++)
        changed |= base ^ truth_of(truth, value[0] ^ (flip & 4 ? unknown[0] : 0),
                                   value[1] ^ (flip & 2 ? unknown[1] : 0), value[2] ^ (flip & 1 ? unknown[2] : 0));
    return changed;
}

static bool is_zero_whatever(const sim_wave *w, const sim_instruction *inst)
{
    const char        *name = inst->op->name;
    const sim_operand *a = &inst->operand[inst->op->results], *b = a + 1;
    if (inst->operand_count < inst->op->results + 2 || a->kind != b->kind || (a->kind != SIM_SCALAR && !is_vector(a)) ||
        number_of(w, a, 0) != number_of(w, b, 0))
        return false;
    return strncmp(name + 1, "_xor_b", 6) == 0 || strncmp(name + 1, "_sub_u32", 8) == 0 ||
           strncmp(name + 1, "_sub_nc_u32", 11) == 0 || strncmp(name + 1, "_sub_co_i32", 11) == 0 ||
           strncmp(name + 1, "_sub_i32", 8) == 0;
}

/* The copies of a sign are as unknown as it is. */
static int64_t sign_extended(uint64_t x, unsigned bits)
{
    return (int64_t)(x << (64 - bits)) >> (64 - bits);
}

/* One dword, its low half, or two of a 64-bit operation, of which every bit's way is known. */
static uint64_t move_bits(rule r, uint8_t truth, const uint64_t value[3], const uint64_t unknown[3], int bits)
{
    const uint64_t whole = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
    const unsigned turn = (unsigned)bits - 1;
    uint64_t       result = 0;
    switch (r) {
    case RULE_COPY:
        return unknown[0];
    case RULE_BITS:
        for (int half = 0; half < (bits + 31) / 32; half++) {
            const uint32_t v[3] = { (uint32_t)(value[0] >> 32 * half), (uint32_t)(value[1] >> 32 * half),
                                    (uint32_t)(value[2] >> 32 * half) };
            const uint32_t u[3] = { (uint32_t)(unknown[0] >> 32 * half), (uint32_t)(unknown[1] >> 32 * half),
                                    (uint32_t)(unknown[2] >> 32 * half) };
            result |= (uint64_t)unknown_bits(truth, v, u) << 32 * half;
        }
        return result;
    case RULE_LEFT:
        return unknown[1] != 0 ? whole : unknown[0] << (value[1] & turn) & whole;
    case RULE_RIGHT:
        return unknown[1] != 0 ? whole : unknown[0] >> (value[1] & turn);
    case RULE_LEFT_REV:
        return unknown[0] != 0 ? whole : unknown[1] << (value[0] & turn) & whole;
    case RULE_RIGHT_REV:
        return unknown[0] != 0 ? whole : unknown[1] >> (value[0] & turn);
    case RULE_RIGHT_SIGNED_REV:
        return unknown[0] != 0 ? whole : sign_extended(unknown[1], (unsigned)bits) >> (value[0] & turn) & whole;
    case RULE_LEFT_OR:
        return unknown[1] != 0 ? whole : (unknown[0] << (value[1] & 31) | unknown[2]) & whole;
    case RULE_FIELD:
        if (unknown[1] != 0 || unknown[2] != 0)
            return whole;
        return unknown[0] >> (value[1] & 31) & ((UINT64_C(1) << (value[2] & 31)) - 1);
    case RULE_FIELD_SIGNED: {
        const unsigned width = (unsigned)value[2] & 31;
        if (unknown[1] != 0 || unknown[2] != 0)
            return whole;
        return width == 0 ? 0 : sign_extended(unknown[0] >> (value[1] & 31), width) & whole;
    }
    case RULE_REVERSE:
        for (int i = 0; i < bits; i++)
            result |= (unknown[0] >> i & 1) << (bits - 1 - i);
        return result;
    case RULE_ALIGN:
    case RULE_ALIGN_BYTE:
        if (unknown[2] != 0)
            return whole;
        return (unknown[0] << 32 | unknown[1]) >> (r == RULE_ALIGN ? value[2] & 31 : 8 * (value[2] & 3)) & whole;
    case RULE_PERM: /* S0 is bytes 4 to 7; 8 to 11 repeat a sign, the rest are constants */
        if (unknown[2] != 0)
            return whole;
        for (int i = 0; i < 4; i++) {
            const unsigned byte = value[2] >> 8 * i & 0xFF;
            const uint64_t pair = unknown[0] << 32 | unknown[1];
            const uint64_t of = byte < 8    ? pair >> 8 * byte & 0xFF
                                : byte < 12 ? (pair >> (16 * (byte - 8) + 15) & 1) * 0xFF
                                            : 0;
            result |= of << 8 * i;
        }
        return result;
    default:
        return whole;
    }
}

static bool moves_bits(int r)
{
    return r >= RULE_COPY && r <= RULE_ALIGN_BYTE;
}

static int dwords_moved(const sim_instruction *inst)
{
    return inst->operand_count > 0 && inst->operand[0].count == 2 ? 2 : 1;
}

static void flow_bits(const sim_wave *w, const sim_instruction *inst, flow *f)
{
    const sim_facts *facts = &inst->facts;
    const int        dwords = dwords_moved(inst);
    const int        bits = ends_in(inst->op->name, "16") ? 16 : 32 * dwords;
    f->planes = dwords;
    for (int l = 0; l < w->lanes; l++) {
        uint64_t value[3] = { 0 }, unknown[3] = { 0 };
        for (int s = 0; s < 3 && s + 1 < inst->operand_count; s++)
            for (int i = 0; i < dwords; i++) {
                const sim_operand *o = &inst->operand[s + 1];
                if (i > 0 && o->count < 2 && o->kind != SIM_INTEGER)
                    continue; /* the amount of a shift of 64 bits */
                value[s] |= (uint64_t)value_in(w, o, i, l) << 32 * i;
                unknown[s] |= (uint64_t)source_unknown(w, inst, s + 1, i, l) << 32 * i;
            }
        const uint64_t result = move_bits((rule)facts->rule, facts->truth, value, unknown, bits);
        for (int i = 0; i < dwords; i++)
            f->vector[i][l] = (uint32_t)(result >> 32 * i);
    }
}

/* v_cndmask_b32 vdst, src0, src1, mask: src1 where the bit is set. */
static void flow_select(const sim_wave *w, const sim_instruction *inst, flow *f)
{
    const int      mask = mask_operand(inst);
    const int      reg = mask < 0 ? SIM_VCC : inst->operand[mask].reg;
    const uint64_t unknown = mask_unknown(w, reg);
    const uint64_t chosen = w->lanes == 64 ? sim_scalar64(w, reg) : w->s[reg];
    f->planes = 1;
    for (int l = 0; l < w->lanes; l++) {
        const int from = (chosen >> l & 1) != 0 ? 2 : 1;
        f->vector[0][l] = (unknown >> l & 1) != 0 ? UINT32_MAX : source_unknown(w, inst, from, 0, l);
    }
}

/* Sums and products, of 16, 32 or 64 bits, with a carry or without: unknown from the lowest unknown bit on. */
static void flow_carry(const sim_wave *w, const sim_instruction *inst, flow *f)
{
    const int      first = inst->op->results, dwords = dwords_moved(inst);
    const uint64_t whole = ends_in(inst->op->name, "16") ? 0xFFFFu : UINT64_MAX;
    f->planes = dwords;
    for (int l = 0; l < w->lanes; l++) {
        uint64_t any = 0;
        for (int s = first; s < first + 3 && s < inst->operand_count; s++) {
            uint64_t unknown = source_unknown(w, inst, s, 0, l);
            if (dwords == 2 && inst->operand[s].count == 2)
                unknown |= (uint64_t)source_unknown(w, inst, s, 1, l) << 32;
            if (inst->facts.rule == RULE_CARRY_SHIFTED && s == first + 1)
                any = unknown != 0 ? UINT64_MAX : any << (value_in(w, &inst->operand[s], 0, l) & 31);
            else
                any |= unknown;
        }
        any = -(any & -any) & whole;
        for (int i = 0; i < dwords; i++)
            f->vector[i][l] = (uint32_t)(any >> 32 * i);
        f->lanes |= (uint64_t)(any != 0) << l;
    }
}

static uint32_t half_of(uint32_t x, bool high)
{
    return (high ? x >> 16 : x) & 0xFFFF;
}

/* v_pk_*: each half of the result from the chosen half of each source. */
static void flow_halves(const sim_wave *w, const sim_instruction *inst, flow *f)
{
    const unsigned high = inst->has_op_sel_hi ? inst->op_sel_hi : 7;
    f->planes = 1;
    for (int l = 0; l < w->lanes; l++) {
        uint32_t lo = 0, hi = 0;
        for (int s = 0; s < 3 && s + 1 < inst->operand_count; s++) {
            const uint32_t u = source_unknown(w, inst, s + 1, 0, l);
            lo |= half_of(u, (inst->op_sel >> s & 1) != 0);
            hi |= half_of(u, (high >> s & 1) != 0);
        }
        f->vector[0][l] = (lo != 0 ? 0xFFFFu : 0) | (hi != 0 ? 0xFFFF0000u : 0);
    }
}

/* v_pk_*_f32: each dword of the result from the chosen dword of each source. */
static void flow_dwords(const sim_wave *w, const sim_instruction *inst, flow *f)
{
    const unsigned chosen[2] = { inst->op_sel, inst->has_op_sel_hi ? inst->op_sel_hi : 7 };
    f->planes = 2;
    for (int i = 0; i < 2; i++)
        for (int l = 0; l < w->lanes; l++) {
            uint32_t any = 0;
            for (int s = 0; s < 3 && s + 1 < inst->operand_count; s++)
                any |= source_unknown(w, inst, s + 1, (int)(chosen[i] >> s & 1), l);
            f->vector[i][l] = any != 0 ? UINT32_MAX : 0;
        }
}

/* v_pk_mov_b32: a dword of the first source, then one of the second. */
static void flow_dwords_moved(const sim_wave *w, const sim_instruction *inst, flow *f)
{
    f->planes = 2;
    for (int l = 0; l < w->lanes; l++) {
        f->vector[0][l] = source_unknown(w, inst, 1, inst->op_sel & 1, l);
        f->vector[1][l] = source_unknown(w, inst, 2, inst->op_sel >> 1 & 1, l);
    }
}

static void flow_pack(const sim_wave *w, const sim_instruction *inst, flow *f)
{
    f->planes = 1;
    for (int l = 0; l < w->lanes; l++)
        f->vector[0][l] = half_of(source_unknown(w, inst, 1, 0, l), (inst->op_sel & 1) != 0) |
                          half_of(source_unknown(w, inst, 2, 0, l), (inst->op_sel & 2) != 0) << 16;
}

static void flow_lane(const sim_wave *w, const sim_instruction *inst, flow *f)
{
    const uint64_t exec = sim_exec(w);
    int            lane = exec == 0 ? 0 : __builtin_ctzll(exec);
    if (inst->facts.rule == RULE_READLANE) {
        if (unknown_in(w, &inst->operand[2], 0, 0) != 0) {
            f->scalar[0] = UINT32_MAX;
            return;
        }
        lane = (int)(value_in(w, &inst->operand[2], 0, 0) & (uint32_t)(w->lanes - 1));
    }
    f->scalar[0] = unknown_in(w, &inst->operand[1], 0, lane);
}

static void flow_of(const sim_wave *w, const sim_instruction *inst, flow *f)
{
    memset(f->scalar, 0, sizeof f->scalar);
    f->lanes = 0;
    f->planes = 0;
    if (is_zero_whatever(w, inst)) {
        f->planes = 1;
        memset(f->vector[0], 0, sizeof f->vector[0]);
        return;
    }
    switch (inst->facts.rule) {
    case RULE_SELECT:
        flow_select(w, inst, f);
        break;
    case RULE_HALVES:
        flow_halves(w, inst, f);
        break;
    case RULE_CARRY:
    case RULE_CARRY_SHIFTED:
        flow_carry(w, inst, f);
        break;
    case RULE_DWORDS:
        flow_dwords(w, inst, f);
        break;
    case RULE_DWORDS_MOVED:
        flow_dwords_moved(w, inst, f);
        break;
    case RULE_PACK:
        flow_pack(w, inst, f);
        break;
    case RULE_READLANE:
    case RULE_FIRSTLANE:
        flow_lane(w, inst, f);
        break;
    default:
        if (moves_bits(inst->facts.rule))
            flow_bits(w, inst, f);
        else
            flow_any(w, inst, f);
    }
}

/* A lane mask: bits of lanes that EXEC disables are 0. */
static void put_mask(sim_wave *w, const sim_span *span, const flow *f)
{
    const uint64_t unknown = f->lanes & sim_exec(w);
    put_scalar(w, span->reg, (uint32_t)unknown);
    if (span->count > 1)
        put_scalar(w, span->reg + 1, (uint32_t)(unknown >> 32));
}

static void commit_flow(sim_wave *w, const sim_instruction *inst, const flow *f)
{
    const uint64_t mask = (inst->op->flags & SIM_IGNORES_EXEC) != 0 ? sim_all_lanes(w) : sim_exec(w);
    const uint32_t bits = sim_result_bits(inst);
    const bool     reads_lane = inst->facts.rule == RULE_READLANE || inst->facts.rule == RULE_FIRSTLANE;
    for (int n = 0; n < inst->write_count; n++) {
        const sim_span *span = &inst->write[n];
        if (span->kind == SIM_SCALAR) {
            if (reads_lane)
                put_scalar(w, span->reg, f->scalar[0]);
            else
                put_mask(w, span, f);
            continue;
        }
        const sim_operand *o = &inst->operand[span->operand];
        for (int i = 0; i < o->count; i++)
            put_vector(w, number_of(w, o, i), mask, bits, f->vector[i < f->planes ? i : f->planes - 1]);
    }
    check_exec(w, inst);
}

static void swap_lanes(sim_wave *w, const sim_instruction *inst)
{
    sim_watch *k = w->watch;
    const int  a = number_of(w, &inst->operand[0], 0), b = number_of(w, &inst->operand[1], 0);
    uint32_t  *x = sim_known_row(w, a), *y = sim_known_row(w, b); /* vdst, src */
    for (int l = 0; l < w->lanes; l++) {
        int from = l, to = l; /* src[l] with vdst[to] */
        if (inst->facts.rule == RULE_SWAP32 ? l >= 32 : inst->facts.rule == RULE_SWAP16 && (l & 16) != 0)
            continue;
        if (inst->facts.rule == RULE_SWAP && (sim_exec(w) >> l & 1) == 0)
            continue;
        to += inst->facts.rule == RULE_SWAP32 ? 32 : inst->facts.rule == RULE_SWAP16 ? 16 : 0;
        const uint32_t t = y[from];
        y[from] = x[to];
        x[to] = t;
    }
    settle(k, a, w->lanes);
    settle(k, b, w->lanes);
}

static void write_lane(sim_wave *w, const sim_instruction *inst)
{
    const int      reg = number_of(w, &inst->operand[0], 0);
    const bool     anywhere = unknown_in(w, &inst->operand[2], 0, 0) != 0;
    const uint64_t lane = value_in(w, &inst->operand[2], 0, 0) & (uint32_t)(w->lanes - 1);
    uint32_t       unknown[SIM_MAX_LANES];
    for (int l = 0; l < w->lanes; l++)
        unknown[l] = anywhere ? UINT32_MAX : unknown_in(w, &inst->operand[1], 0, 0);
    put_vector(w, reg, anywhere ? sim_all_lanes(w) : UINT64_C(1) << lane, UINT32_MAX, unknown);
}

/* All sources are known, and so is what is written of the results. */
static void commit_known(sim_wave *w, const sim_instruction *inst)
{
    const uint64_t mask = (inst->op->flags & SIM_IGNORES_EXEC) != 0 ? sim_all_lanes(w) : sim_exec(w);
    for (int n = 0; n < inst->write_count; n++) {
        const sim_span *span = &inst->write[n];
        for (int i = 0; i < span->count; i++)
            if (span->kind == SIM_SCALAR)
                put_scalar(w, span->reg + i, 0);
            else if (sim_bit(w->watch->unknown, number_of(w, &inst->operand[span->operand], i)))
                put_vector(w, number_of(w, &inst->operand[span->operand], i), mask, sim_result_bits(inst), NULL);
    }
}

static void run_vector(sim_wave *w, const sim_instruction *inst, bool known)
{
    flow first, second;
    if (known && inst->facts.rule != RULE_WRITELANE) {
        commit_known(w, inst);
        if (inst->dual != NULL)
            commit_known(w, inst->dual);
        return;
    }
    switch (inst->facts.rule) {
    case RULE_SWAP:
    case RULE_SWAP16:
    case RULE_SWAP32:
        swap_lanes(w, inst);
        return;
    case RULE_WRITELANE:
        write_lane(w, inst);
        return;
    default:
        break;
    }
    flow_of(w, inst, &first);
    if (inst->dual != NULL) { /* both halves read before either writes */
        sim_facts_of(inst->dual);
        flow_of(w, inst->dual, &second);
        commit_flow(w, inst->dual, &second);
    }
    commit_flow(w, inst, &first);
}

/* Matrix instructions
 * -------------------
 */
/* Lanes of an operand that are read: every one, but for the scales of a WMMA, of which a row of 16 is. */
static uint64_t lanes_read(const sim_wave *w, const sim_instruction *inst, int operand)
{
    if (inst->op->kind != SIM_WMMA || operand < 4 || (operand == 4 && strstr(inst->op->name, "_32x16x") != NULL))
        return sim_all_lanes(w);
    const int row = operand == 4 ? inst->a_scale_row : inst->b_scale_row;
    return UINT64_C(0xFFFF) << 16 * row;
}

static void check_matrix_operand(sim_wave *w, const sim_instruction *inst, int operand)
{
    static const char *const name[] = { "D", "A", "B", "C", "scale of A", "scale of B" };
    const sim_operand *const o = &inst->operand[operand];
    const uint64_t           read = lanes_read(w, inst, operand);
    for (int i = 0; i < o->count && is_vector(o); i++) {
        const int reg = number_of(w, o, i);
        if (!sim_bit(w->watch->unknown, reg))
            continue;
        for (int l = 0; l < w->lanes; l++)
            if ((read >> l & 1) != 0 && sim_known_row(w, reg)[l] != UINT32_MAX) {
                report_use(w, inst, reg, l, operand < 6 ? name[operand] : "an operand");
                return;
            }
    }
}

static void run_matrix(sim_wave *w, const sim_instruction *inst)
{
    for (int o = 1; o < inst->operand_count; o++)
        check_matrix_operand(w, inst, o);
    for (int i = 0; i < inst->operand[0].count; i++)
        put_vector(w, number_of(w, &inst->operand[0], i), sim_all_lanes(w), UINT32_MAX, NULL);
}

/* Scalar instructions
 * -------------------
 */
static uint64_t scalar_unknown(const sim_wave *w, const sim_operand *o)
{
    uint64_t u = unknown_in(w, o, 0, 0);
    if (o->kind == SIM_SCALAR && o->count > 1)
        u |= (uint64_t)unknown_in(w, o, 1, 0) << 32;
    return u;
}

static uint64_t scalar_value(const sim_wave *w, const sim_operand *o)
{
    return value_in(w, o, 0, 0) | (uint64_t)(o->kind == SIM_INTEGER || o->count > 1 ? value_in(w, o, 1, 0) : 0) << 32;
}

static bool reads_unknown(const sim_wave *w, const sim_instruction *inst)
{
    const sim_watch *k = w->watch;
    if ((inst->op->flags & SIM_READS_SCC) != 0 && !k->scc_known)
        return true;
    for (int i = 0; i < inst->read_count; i++) {
        const sim_reach r = { .first = (uint16_t)(SIM_SCALAR_BASE + inst->read[i].reg), .count = inst->read[i].count };
        if (inst->read[i].kind == SIM_SCALAR && sim_any_bit(k->unknown, &r))
            return true;
    }
    return false;
}

static void put_result(sim_wave *w, const sim_instruction *inst, uint64_t unknown)
{
    const sim_operand *o = &inst->operand[0];
    if (inst->op->results == 0 || o->kind != SIM_SCALAR)
        return;
    for (int i = 0; i < o->count; i++)
        put_scalar(w, o->reg + i, i < 2 ? (uint32_t)(unknown >> 32 * i) : unknown != 0 ? UINT32_MAX : 0);
}

static uint64_t scalar_flow(const sim_wave *w, const sim_instruction *inst)
{
    const sim_facts *facts = &inst->facts;
    const uint64_t   whole = UINT64_MAX;
    uint64_t         value[3] = { 0 }, unknown[3] = { 0 };
    if (is_zero_whatever(w, inst))
        return 0;
    for (int s = 0; s < 3 && s + 1 < inst->operand_count; s++) {
        value[s] = scalar_value(w, &inst->operand[s + 1]);
        unknown[s] = scalar_unknown(w, &inst->operand[s + 1]);
    }
    if (facts->rule == RULE_SELECT)
        return !w->watch->scc_known ? whole : w->scc ? unknown[0] : unknown[1];
    if (moves_bits(facts->rule))
        return move_bits((rule)facts->rule, facts->truth, value, unknown, 32 * dwords_moved(inst));
    return reads_unknown(w, inst) ? whole : 0;
}

/* s_*_saveexec sdst, ssrc: sdst = EXEC; EXEC = ssrc op EXEC. */
static void save_exec(sim_wave *w, const sim_instruction *inst)
{
    const int      bits = w->lanes;
    const uint64_t value[3] = { scalar_value(w, &inst->operand[1]), sim_exec(w), 0 };
    const uint64_t unknown[3] = { scalar_unknown(w, &inst->operand[1]), 0, 0 };
    const uint64_t result = move_bits(RULE_BITS, inst->facts.truth, value, unknown, bits);
    put_result(w, inst, 0);
    put_scalar(w, SIM_EXEC, (uint32_t)result);
    if (bits == 64)
        put_scalar(w, SIM_EXEC + 1, (uint32_t)(result >> 32));
    w->watch->scc_known = result == 0;
    check_exec(w, inst);
}

static void run_scalar(sim_wave *w, const sim_instruction *inst)
{
    sim_watch *k = w->watch;
    if (inst->facts.rule == RULE_SAVEEXEC) {
        save_exec(w, inst);
        return;
    }
    bool any = reads_unknown(w, inst) && !is_zero_whatever(w, inst);
    if (inst->facts.rule == RULE_BIT_TEST && inst->operand_count == 2) {
        const uint64_t bit = scalar_value(w, &inst->operand[1]);
        any = scalar_unknown(w, &inst->operand[1]) != 0 ||
              (scalar_unknown(w, &inst->operand[0]) >> (bit & (inst->operand[0].count > 1 ? 63 : 31)) & 1) != 0;
    }
    const uint64_t unknown = scalar_flow(w, inst);
    put_result(w, inst, unknown);
    if ((inst->op->flags & SIM_WRITES_SCC) != 0)
        k->scc_known = inst->op->results > 0 && moves_bits(inst->facts.rule) ? unknown == 0 : !any;
    check_exec(w, inst);
}

/* A condition is undefined if its undefined bits decide: one defined bit of VCC that is set says "not zero". */
static bool is_vcc_decided(const sim_wave *w)
{
    const uint64_t unknown = mask_unknown(w, SIM_VCC);
    const uint64_t value = w->lanes == 64 ? sim_scalar64(w, SIM_VCC) : w->s[SIM_VCC];
    return unknown == 0 || (value & ~unknown) != 0;
}

static void run_branch(sim_wave *w, const sim_instruction *inst)
{
    if ((inst->op->flags & SIM_READS_SCC) != 0 && !w->watch->scc_known) {
        sim_report(w, inst, SIM_CHECK_UNINITIALISED, -1, "SCC, from what was never written, decides a branch");
        w->watch->scc_known = true;
    }
    if ((inst->op->flags & SIM_READS_VCC) != 0 && !is_vcc_decided(w)) {
        sim_report(w, inst, SIM_CHECK_UNINITIALISED, -1, "VCC, from what was never written, decides a branch");
        return;
    }
    for (int i = 0; i < inst->operand_count; i++)
        if (inst->operand[i].kind == SIM_SCALAR && scalar_unknown(w, &inst->operand[i]) != 0)
            report_use(w, inst, SIM_SCALAR_BASE + inst->operand[i].reg, -1, "the target");
}

/* Memory instructions
 * -------------------
 */
static uint64_t unknown_lanes(const sim_wave *w, const sim_operand *o, int i, uint32_t bits)
{
    uint64_t lanes = 0;
    for (int l = 0; l < w->lanes; l++)
        lanes |= (uint64_t)((unknown_in(w, o, i, l) & bits) != 0) << l;
    return lanes;
}

static void check_operand(sim_wave *w, const sim_instruction *inst, const sim_operand *o, uint32_t bits,
                          const char *use)
{
    if (o->kind == SIM_SCALAR) {
        for (int i = 0; i < o->count; i++)
            if (w->watch->known_scalar[o->reg + i] != UINT32_MAX) {
                report_use(w, inst, SIM_SCALAR_BASE + o->reg + i, -1, use);
                return;
            }
        return;
    }
    for (int i = 0; i < o->count && is_vector(o); i++) {
        const int reg = number_of(w, o, i);
        if (!sim_bit(w->watch->unknown, reg))
            continue;
        const uint64_t lanes = unknown_lanes(w, o, i, bits) & sim_exec(w);
        if (lanes != 0) {
            report_use(w, inst, reg, __builtin_ctzll(lanes), use);
            return;
        }
    }
}

/* Bits of the data registers that go to memory. */
static uint32_t data_bits(const sim_instruction *inst)
{
    const sim_access *access = inst->op->detail;
    if (access == NULL || access->bytes >= 4)
        return UINT32_MAX;
    return (access->bytes == 1 ? 0xFFu : 0xFFFFu) << (access->half == SIM_HIGH ? 16 : 0);
}

static bool is_two_data(const sim_instruction *inst)
{
    return strncmp(inst->op->name, "ds_", 3) == 0 && inst->operand_count > inst->op->results + 2 &&
           is_vector(&inst->operand[inst->op->results + 2]);
}

static bool goes_to_lds(const sim_instruction *inst)
{
    return (inst->facts.what & SIM_FACT_DS) != 0;
}

static bool is_named_scratch(const sim_instruction *inst)
{
    return strncmp(inst->op->name, "scratch_", 8) == 0;
}

/* The lanes that ds_bpermute and its kin read are the data operand's; which ones depends on addresses: every enabled
 * one. */
static void permute(sim_wave *w, const sim_instruction *inst)
{
    const bool         is_swizzle = strncmp(inst->op->name, "ds_swizzle", 10) == 0;
    const sim_operand *data = &inst->operand[is_swizzle ? 1 : 2];
    uint32_t           unknown[SIM_MAX_LANES];
    if (!is_swizzle)
        check_operand(w, inst, &inst->operand[1], UINT32_MAX, "the lane number");
    const bool backward = strncmp(inst->op->name, "ds_bpermute", 11) == 0;
    uint32_t   any = 0;
    for (int l = 0; l < w->lanes; l++)
        any |= (sim_exec(w) >> l & 1) != 0 ? unknown_in(w, data, 0, l) : 0;
    for (int l = 0; l < w->lanes; l++) {
        unknown[l] = any;
        if (backward) {
            const uint32_t from =
                (value_in(w, &inst->operand[1], 0, l) + (uint32_t)inst->offset) / 4 & (uint32_t)(w->lanes - 1);
            unknown[l] = (sim_exec(w) >> from & 1) != 0 ? unknown_in(w, data, 0, (int)from) : 0;
        }
    }
    put_vector(w, number_of(w, &inst->operand[0], 0), sim_exec(w), UINT32_MAX, unknown);
}

static void run_memory(sim_wave *w, const sim_instruction *inst)
{
    const int data = sim_data_operand(inst);
    const int results = inst->write_count > 0 ? 1 : 0;
    if ((inst->facts.what & SIM_FACT_PERMUTE) != 0) {
        permute(w, inst);
        return;
    }
    for (int i = 0; i < inst->operand_count; i++) {
        const bool is_data = data >= 0 && (i == data || (i == data + 1 && is_two_data(inst)));
        if (is_data && !goes_to_lds(inst) && !is_named_scratch(inst))
            check_operand(w, inst, &inst->operand[i], data_bits(inst), "data stored");
        if (!is_data && i >= results)
            check_operand(w, inst, &inst->operand[i], UINT32_MAX, "an address");
    }
}

void sim_defined_before(sim_wave *w, const sim_instruction *inst, bool known)
{
    switch (inst->op->kind) {
    case SIM_VALU:
    case SIM_TRANS:
        run_vector(w, inst, known);
        break;
    case SIM_XDL:
    case SIM_SGEMM:
    case SIM_WMMA:
        run_matrix(w, inst);
        break;
    case SIM_SALU:
        run_scalar(w, inst);
        break;
    case SIM_BRANCH:
        run_branch(w, inst);
        break;
    case SIM_SMEM:
    case SIM_DS:
    case SIM_LOAD:
    case SIM_STORE:
    case SIM_ATOMIC:
    case SIM_FLAT:
    case SIM_LDS_DMA:
    case SIM_ASYNC:
    case SIM_TENSOR:
        run_memory(w, inst);
        break;
    default:
        break;
    }
}

/* Unknown bits of what a DS instruction stores, as they are at issue. */
static void keep_data(sim_wave *w, const sim_instruction *inst, sim_operation *op)
{
    const int data = sim_data_operand(inst);
    if (data < 0 || !goes_to_lds(inst))
        return;
    const int      operands = is_two_data(inst) ? 2 : 1, count = inst->operand[data].count;
    const uint32_t bits = data_bits(inst);
    uint64_t       lanes = 0;
    for (int o = 0; o < operands; o++)
        for (int i = 0; i < count; i++)
            if (sim_bit(w->watch->unknown, number_of(w, &inst->operand[data + o], i)))
                lanes |= unknown_lanes(w, &inst->operand[data + o], i, bits);
    if ((lanes & op->mask) == 0)
        return;
    op->unknown = malloc((size_t)(operands * count * w->lanes) * sizeof *op->unknown);
    if (op->unknown == NULL)
        return;
    for (int o = 0; o < operands; o++)
        for (int i = 0; i < count; i++)
            for (int l = 0; l < w->lanes; l++)
                op->unknown[((o * count) + i) * w->lanes + l] = unknown_in(w, &inst->operand[data + o], i, l) & bits;
}

void sim_defined_issue(sim_wave *w, const sim_instruction *inst, sim_operation *op)
{
    sim_watch *k = w->watch;
    if (!sim_checks(w, SIM_CHECK_UNINITIALISED))
        return;
    keep_data(w, inst, op);
    if ((inst->facts.what & SIM_FACT_PERMUTE) != 0)
        return;
    const uint32_t bits = sim_result_bits(inst);
    for (int n = 0; n < op->writes; n++)
        for (int reg = op->write[n].first; reg < op->write[n].first + op->write[n].count; reg++) {
            if (!sim_bit(k->unknown, reg))
                continue;
            if (reg >= SIM_SCALAR_BASE)
                put_scalar(w, reg - SIM_SCALAR_BASE, 0);
            else
                put_vector(w, reg, op->mask, bits, NULL);
        }
}

void sim_check_loaded(sim_wave *w, const sim_operand *to, int reg, int lane, bool written)
{
    if (written)
        return;
    if (to->kind == SIM_SCALAR) {
        put_scalar(w, to->reg + reg, UINT32_MAX);
        return;
    }
    if (!is_vector(to) || lane < 0)
        return;
    const int number = number_of(w, to, reg);
    sim_known_row(w, number)[lane] = 0;
    sim_put_bit(w->watch->unknown, number, true);
}
