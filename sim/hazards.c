/* Wait states that the hardware does not enforce, counted along the path that a wave executes: the rows of hazards.def.
 *
 * Each instruction that some row has as its first side stays in a short ring until no row can ask more of it; each
 * instruction is held against the ring by two masks of rows, so that the registers are looked at only where a row may
 * apply.
 */
#include "matrix.h"
#include "watch.h"

#include <string.h>

typedef enum meet { MEET, SAME, PART, ANY, HWREG, OTHER } meet;

/* Which registers of an instruction a side is about. */
typedef enum registers {
    NO_REGISTERS,
    RESULTS, /* vector registers written */
    SOURCES, /* vector registers read */
    SCALAR_RESULTS,
    SCALAR_SOURCES,
    PRODUCTS, /* A, B and scales of a matrix instruction */
    AB,       /* A and B alone */
    ADDEND,   /* C */
    DPP_OPERAND,
    SELECTOR, /* the last operand of v_readlane, v_writelane */
    DATA      /* of a store */
} registers;

static bool named(const sim_instruction *i, const char *prefix)
{
    return strncmp(i->op->name, prefix, strlen(prefix)) == 0;
}

static bool is_valu(const sim_instruction *i)
{
    return i->op->kind == SIM_VALU || i->op->kind == SIM_TRANS;
}

static bool is_mfma(const sim_instruction *i)
{
    return i->op->kind == SIM_XDL || i->op->kind == SIM_SGEMM;
}

static bool is_vmem(const sim_instruction *i)
{
    const int kind = i->op->kind;
    if (named(i, "ds_"))
        return false;
    return kind == SIM_LOAD || kind == SIM_STORE || kind == SIM_ATOMIC || kind == SIM_FLAT || kind == SIM_LDS_DMA ||
           kind == SIM_ASYNC;
}

static bool is_memory(const sim_instruction *i)
{
    return is_vmem(i) || named(i, "ds_");
}

static bool is_swap(const sim_instruction *i)
{
    return named(i, "v_permlane16_swap") || named(i, "v_permlane32_swap");
}

static bool writes_scalar(const sim_instruction *i, int reg)
{
    for (int n = 0; n < i->write_count; n++)
        if (i->write[n].kind == SIM_SCALAR && i->write[n].reg <= reg && reg < i->write[n].reg + i->write[n].count)
            return true;
    return false;
}

static bool is_wide_store(const sim_instruction *i)
{
    const int data = i->op->kind == SIM_STORE || i->op->kind == SIM_FLAT ? sim_data_operand(i) : -1;
    if (data < 0 || i->operand[data].count < 3)
        return false;
    /* ISA table 11: a buffer store with its offset in an SGPR has sent the data by then. */
    return !(named(i, "buffer_") && i->operand_count > 3 && i->operand[3].kind == SIM_SCALAR);
}

static bool is_cvt_pk(const sim_instruction *i)
{
    return named(i, "v_cvt_pk_fp8_f") || named(i, "v_cvt_pk_bf8_f") || named(i, "v_cvt_scalef32_pk_fp8") ||
           named(i, "v_cvt_scalef32_pk_bf8");
}

/* Results that pass the register file in part: selected halves and bytes, and conversions to fp8 with a select. */
static bool forwards_part(const sim_instruction *i)
{
    if (!is_valu(i))
        return false;
    return (i->sdwa && i->dst_select != SIM_DWORD) || (sim_result_bits(i) & 1) == 0 || named(i, "v_cvt_sr_fp8") ||
           named(i, "v_cvt_sr_bf8") || named(i, "v_cvt_scalef32_sr_fp8") || named(i, "v_cvt_scalef32_sr_bf8");
}

static bool is_lane_access(const sim_instruction *i)
{
    return named(i, "v_readlane") || named(i, "v_writelane");
}

static bool uses_m0(const sim_instruction *i)
{
    return i->op->kind == SIM_LDS_DMA || i->lds || named(i, "s_movrel") || named(i, "s_sendmsg") ||
           named(i, "s_ttrace");
}

/* Sides: the instructions, and which registers of theirs count. */
#define SIDES                                                                                                       \
    SIDE(XDL_D, RESULTS, i->op->kind == SIM_XDL, "an MFMA's D")                                                     \
    SIDE(XDL_C, ADDEND, i->op->kind == SIM_XDL, "an MFMA's C")                                                      \
    SIDE(SGEMM_D, RESULTS, i->op->kind == SIM_SGEMM, "an MFMA's D")                                                 \
    SIDE(SGEMM_C, ADDEND, i->op->kind == SIM_SGEMM, "an MFMA's C")                                                  \
    SIDE(MFMA_C, ADDEND, is_mfma(i), "an MFMA's C")                                                                 \
    SIDE(OTHER_PASSES_C, ADDEND, is_mfma(i), "the C of an MFMA with another number of passes")                      \
    SIDE(MFMA_AB, PRODUCTS, is_mfma(i), "an MFMA's A, B or scale")                                                  \
    SIDE(MFMA_SOURCES, SOURCES, is_mfma(i), "an MFMA's source")                                                     \
    SIDE(VALU_SOURCES, SOURCES, is_valu(i), "a VALU source")                                                        \
    SIDE(VALU_RESULTS, RESULTS, is_valu(i), "a VALU result")                                                        \
    SIDE(VALU_VECTOR, RESULTS, is_valu(i), "a VALU result")                                                         \
    SIDE(VALU_SCALAR, SCALAR_RESULTS, is_valu(i), "an SGPR that a VALU instruction wrote")                          \
    SIDE(VALU_SCALARS, SCALAR_SOURCES, is_valu(i), "an SGPR that a VALU instruction reads")                         \
    SIDE(VALU_VCC, NO_REGISTERS, is_valu(i) && writes_scalar(i, SIM_VCC), "VCC, which a VALU instruction wrote")    \
    SIDE(MEMORY_SOURCES, SOURCES, is_memory(i), "address or data of a memory instruction")                          \
    SIDE(MEMORY_RESULTS, RESULTS, is_memory(i), "the register that a load writes")                                  \
    SIDE(VMEM_SOURCES, SOURCES, is_vmem(i), "an address of a clause of loads")                                      \
    SIDE(VMEM_RESULTS, RESULTS, is_vmem(i), "the result of a load in the same clause")                              \
    SIDE(SMEM_SOURCES, SCALAR_SOURCES, i->op->kind == SIM_SMEM, "an address of a clause of scalar loads")           \
    SIDE(SMEM_RESULTS, SCALAR_RESULTS, i->op->kind == SIM_SMEM, "the result of a scalar load in the same clause")   \
    SIDE(CMPX, NO_REGISTERS, is_valu(i) && (i->op->flags & SIM_WRITES_EXEC) != 0, "EXEC, which v_cmpx wrote")       \
    SIDE(SWAP_SOURCES, SOURCES, is_swap(i), "what a lane swap reads")                                               \
    SIDE(TRANS_D, RESULTS, i->op->kind == SIM_TRANS, "a transcendental's result")                                   \
    SIDE(TRANS_SOURCE, SOURCES, i->op->kind == SIM_TRANS, "a transcendental's source")                              \
    SIDE(PLAIN_SOURCES, SOURCES, i->op->kind == SIM_VALU, "a VALU source")                                          \
    SIDE(PLAIN_RESULTS, RESULTS, i->op->kind == SIM_VALU, "a VALU result")                                          \
    SIDE(PART_D, RESULTS, forwards_part(i), "a part of a register")                                                 \
    SIDE(LANE_SELECT, SELECTOR, is_lane_access(i), "a lane select")                                                 \
    SIDE(READLANE_SOURCE, SOURCES, named(i, "v_readlane") || named(i, "v_readfirstlane"), "what a lane is read of") \
    SIDE(VMEM_SCALARS, SCALAR_SOURCES, is_vmem(i), "an SGPR of a vector memory instruction")                        \
    SIDE(DPP_SOURCE, DPP_OPERAND, i->dpp != SIM_DPP_NONE, "a DPP source")                                           \
    SIDE(DIV_FMAS, NO_REGISTERS, named(i, "v_div_fmas"), "VCC of v_div_fmas")                                       \
    SIDE(SALU_M0, NO_REGISTERS, i->op->kind == SIM_SALU && writes_scalar(i, SIM_M0), "M0, which SALU wrote")        \
    SIDE(M0_USER, NO_REGISTERS, uses_m0(i), "M0")                                                                   \
    SIDE(WIDE_STORE_DATA, DATA, is_wide_store(i), "a store's data")                                                 \
    SIDE(SETREG, NO_REGISTERS, named(i, "s_setreg"), "a hardware register")                                         \
    SIDE(HWREG_USER, NO_REGISTERS, named(i, "s_setreg") || named(i, "s_getreg"), "a hardware register")             \
    SIDE(DOT_D, RESULTS, named(i, "v_dot2") || named(i, "v_dot4") || named(i, "v_dot8"), "a dot product")           \
    SIDE(CVT_LOW_D, RESULTS, is_cvt_pk(i) && (sim_result_bits(i) & 1) != 0, "a low half")                           \
    SIDE(CVT_HIGH_RESULTS, RESULTS, is_cvt_pk(i) && (sim_result_bits(i) & 1) == 0, "the high half of the same")     \
    SIDE(WMMA_D, RESULTS, i->op->kind == SIM_WMMA, "a WMMA's D")                                                    \
    SIDE(WMMA_AB, AB, i->op->kind == SIM_WMMA, "a WMMA's A or B")                                                   \
    SIDE(WMMA_READS_AB, AB, i->op->kind == SIM_WMMA, "a WMMA's A or B")

typedef enum side {
#define SIDE(id, which, belongs, words) id,
    SIDES
#undef SIDE
} side;

static const struct {
    registers   which;
    const char *words;
} sides[] = {
#define SIDE(id, which, belongs, words) [id] = { which, words },
    SIDES
#undef SIDE
};

static bool belongs_to(side s, const sim_instruction *i)
{
    switch (s) {
#define SIDE(id, which, belongs, words) \
    case id:                            \
        return belongs;
        SIDES
#undef SIDE
    }
    return false;
}

#define ALWAYS(n) n, n, n, n
#define AFTER(n) UINT8_MAX, n, 0, 0 /* see states_of */

static const struct row {
    sim_arch  arch;
    side      first, second;
    meet      meet;
    uint8_t   states[4];
    sim_check check;
} rows[] = {
#define ROW(arch, first, second, meet, ...) ROW_(arch, first, second, meet, __VA_ARGS__)
#define ROW_(arch, first, second, meet, a, b, c, d, check) { SIM_##arch, first, second, meet, { a, b, c, d }, check },
#include "hazards.def"
#undef ROW
#undef ROW_
};

enum { ROWS = sizeof rows / sizeof rows[0] };
_Static_assert(ROWS <= 64, "sim_facts has a bit for each row");

static int states_of(const struct row *row, int passes)
{
    if (row->states[0] == UINT8_MAX)
        return passes + row->states[1];
    return row->states[passes >= 16 ? 3 : passes >= 8 ? 2 : passes >= 4 ? 1 : 0];
}

void sim_hazard_facts(const sim_instruction *inst, sim_facts *facts)
{
    facts->first = facts->second = 0;
    facts->longest = 0;
    for (int r = 0; r < ROWS; r++) {
        if ((inst->op->arches >> rows[r].arch & 1) == 0)
            continue;
        if (belongs_to(rows[r].first, inst)) {
            facts->first |= UINT64_C(1) << r;
            const int states = states_of(&rows[r], facts->passes);
            facts->longest = (uint8_t)(states > facts->longest ? states : facts->longest);
        }
        if (belongs_to(rows[r].second, inst))
            facts->second |= UINT64_C(1) << r;
    }
}

/* Registers of a side
 * -------------------
 */
static bool is_scalar(const sim_reach *r)
{
    return r->first >= SIM_SCALAR_BASE;
}

static bool counts(const sim_instruction *inst, registers which, const sim_reach *r)
{
    switch (which) {
    case NO_REGISTERS:
        return false;
    case RESULTS:
    case SOURCES:
        return !is_scalar(r);
    case SCALAR_RESULTS:
    case SCALAR_SOURCES:
        return is_scalar(r) && r->first < SIM_SCALAR_BASE + SIM_EXEC;
    case PRODUCTS:
        return !is_scalar(r) && (r->operand == 1 || r->operand == 2 || r->operand == 4 || r->operand == 5);
    case AB:
        return !is_scalar(r) && (r->operand == 1 || r->operand == 2);
    case ADDEND:
        return !is_scalar(r) && r->operand == 3;
    case DPP_OPERAND:
        return !is_scalar(r) && r->operand == inst->op->results;
    case SELECTOR:
        return is_scalar(r) && r->operand == 2;
    case DATA:
        return !is_scalar(r) && r->operand == sim_data_operand(inst);
    }
    return false;
}

static bool is_written(registers which)
{
    return which == RESULTS || which == SCALAR_RESULTS;
}

/* The first register that both sides have, -1: none. */
static int met_register(const struct row *row, const sim_instruction *a, const sim_reaches *x, const sim_instruction *b,
                        const sim_reaches *y)
{
    const registers  p = sides[row->first].which, q = sides[row->second].which;
    const sim_reach *from = is_written(p) ? x->write : x->read, *to = is_written(q) ? y->write : y->read;
    const int        froms = is_written(p) ? x->writes : x->reads, tos = is_written(q) ? y->writes : y->reads;
    for (int i = 0; i < froms; i++) {
        if (!counts(a, p, &from[i]))
            continue;
        for (int j = 0; j < tos; j++) {
            if (!counts(b, q, &to[j]) || !sim_meet(&from[i], &to[j]))
                continue;
            const bool same = from[i].first == to[j].first && from[i].count == to[j].count;
            if ((row->meet == SAME && !same) || (row->meet == PART && same))
                continue;
            return from[i].first > to[j].first ? from[i].first : to[j].first;
        }
    }
    return -1;
}

static int hardware_register(const sim_instruction *i)
{
    for (int n = 0; n < i->operand_count; n++)
        if (i->operand[n].kind == SIM_HWREG)
            return i->operand[n].reg;
    return -1;
}

/* Whether the row applies; `reg`: where they meet, -1: nowhere in particular. */
static bool applies(const struct row *row, const sim_instruction *a, const sim_reaches *x, const sim_instruction *b,
                    const sim_reaches *y, int *reg)
{
    *reg = -1;
    if (row->second == OTHER_PASSES_C && sim_facts_of(a)->passes == sim_facts_of(b)->passes)
        return false;
    switch (row->meet) {
    case ANY:
        return true;
    case HWREG:
        return hardware_register(a) == hardware_register(b);
    case OTHER:
        if (a->op == b->op)
            return false;
        break;
    default:
        break;
    }
    *reg = met_register(row, a, x, b, y);
    return *reg >= 0;
}

int sim_hazard_states(sim_arch arch, const sim_instruction *first, const sim_instruction *second)
{
    const sim_facts *a = sim_facts_of(first), *b = sim_facts_of(second);
    sim_reaches      x, y;
    int              most = 0;
    sim_reach_all(NULL, first, &x);
    sim_reach_all(NULL, second, &y);
    for (uint64_t left = a->first & b->second; left != 0; left &= left - 1) {
        const struct row *row = &rows[__builtin_ctzll(left)];
        int               reg;
        if (row->arch != arch || row->check != SIM_CHECK_WAIT_STATES || !applies(row, first, &x, second, &y, &reg))
            continue;
        const int states = states_of(row, a->passes);
        most = states > most ? states : most;
    }
    return most;
}

/* Along the path
 * --------------
 */
static void report_row(sim_wave *w, const sim_instruction *inst, const sim_hazard_entry *e, const struct row *row,
                       int reg, int wanted, int found)
{
    char        name[16], at[48] = "";
    const char *unit = row->arch == SIM_GFX1250 ? "VALU instructions" : "wait states";
    if (reg >= 0)
        snprintf(at, sizeof at, " of %s", sim_register_name(w->group->arch, reg, name, sizeof name));
    sim_report(w, inst, row->check, -1, "%s%s needs %d %s after \"%s\" at +0x%llx (%s), has %d",
               sides[row->second].words, at, wanted, unit, e->inst->text, (unsigned long long)sim_offset(w, e->inst),
               sides[row->first].words, found);
}

static void against(sim_wave *w, const sim_instruction *inst, const sim_hazard_entry *e, uint64_t both)
{
    const sim_watch *k = w->watch;
    const int        found = (int)(k->states - e->states);
    for (; both != 0; both &= both - 1) {
        const struct row *row = &rows[__builtin_ctzll(both)];
        const int         wanted = states_of(row, e->inst->facts.passes);
        int               reg;
        if (found < wanted && row->arch == w->group->arch &&
            applies(row, e->inst, &e->reaches, inst, &k->reaches, &reg))
            report_row(w, inst, e, row, reg, wanted, found);
    }
}

static void drop_old(sim_watch *k)
{
    while (k->entries > 0) {
        const sim_hazard_entry *oldest = &k->ring[(k->entry - k->entries) % SIM_HAZARD_RING];
        if (k->states - oldest->states < oldest->inst->facts.longest)
            return;
        k->entries--;
    }
    k->live_rows = 0;
}

void sim_hazards_before(sim_wave *w, const sim_instruction *inst)
{
    sim_watch       *k = w->watch;
    const sim_facts *facts = sim_facts_of(inst);
    if (k->at != inst)
        sim_reach_all(w, inst, &k->reaches);
    k->at = inst;
    if ((k->live_rows & facts->second) == 0)
        return;
    drop_old(k);
    uint64_t live = 0;
    for (uint32_t n = 1; n <= k->entries; n++) {
        const sim_hazard_entry *e = &k->ring[(k->entry - n) % SIM_HAZARD_RING];
        if (k->states - e->states >= e->inst->facts.longest)
            continue;
        live |= e->rows;
        if ((e->rows & facts->second) != 0)
            against(w, inst, e, e->rows & facts->second);
    }
    k->live_rows = live;
}

static unsigned states_taken(sim_arch arch, const sim_instruction *inst)
{
    if (arch == SIM_GFX1250)
        return inst->op->kind == SIM_VALU || inst->op->kind == SIM_TRANS || inst->op->kind == SIM_WMMA;
    if (strcmp(inst->op->name, "s_nop") == 0)
        return (unsigned)inst->operand[0].value + 1;
    return 1;
}

static void copy_reaches(sim_reaches *to, const sim_reaches *from)
{
    to->reads = from->reads;
    to->writes = from->writes;
    memcpy(to->read, from->read, (size_t)from->reads * sizeof from->read[0]);
    memcpy(to->write, from->write, (size_t)from->writes * sizeof from->write[0]);
}

void sim_hazards_after(sim_wave *w, const sim_instruction *inst)
{
    sim_watch       *k = w->watch;
    const sim_facts *facts = sim_facts_of(inst);
    k->states += inst->op->kind == SIM_NOP || w->group->arch == SIM_GFX1250 ? states_taken(w->group->arch, inst) : 1;
    if (facts->longest > 0) {
        sim_hazard_entry *e = &k->ring[k->entry++ % SIM_HAZARD_RING];
        k->entries += k->entries < SIM_HAZARD_RING;
        e->inst = inst;
        e->rows = facts->first;
        e->states = k->states;
        copy_reaches(&e->reaches, &k->reaches);
        k->live_rows |= facts->first;
    }
    k->at = NULL;
}
