/* What the checks need to know of an instruction again and again: derived once, at its first execution. */
#include "matrix.h"
#include "watch.h"

#include <string.h>

static bool has_prefix(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

static bool has_text(const sim_instruction *inst, const char *part)
{
    return inst->text != NULL && strstr(inst->text, part) != NULL;
}

static bool is_vector(const sim_operand *o)
{
    return o->kind == SIM_VECTOR || o->kind == SIM_ACC;
}

/* In a numbering of our own, without s_set_vgpr_msb: on gfx1250 equal low bits are taken as equal registers only
 * where both operands take their high bits from the same slot or the caller looks again at run time. */
static sim_reach span_of(const sim_operand *o)
{
    return (sim_reach){ .first = (uint16_t)(o->kind == SIM_ACC ? 256 + o->reg : o->reg), .count = o->count };
}

static bool share(const sim_operand *a, const sim_operand *b)
{
    if (!is_vector(a) || !is_vector(b))
        return false;
    const sim_reach x = span_of(a), y = span_of(b);
    return sim_meet(&x, &y);
}

static bool is_same(const sim_operand *a, const sim_operand *b)
{
    return a->kind == b->kind && a->reg == b->reg && a->count == b->count;
}

static uint16_t lint_matrix(const sim_instruction *inst)
{
    uint16_t           lint = 0;
    const sim_operand *o = inst->operand;
    if (inst->operand_count < 4)
        return 0;
    /* CDNA4 ISA 7.1: a D of at most 4 registers is written after A and B are read. WMMA: the compiler never lets them
     * meet. */
    if ((o[0].count > 4 || inst->op->kind == SIM_WMMA) && (share(&o[0], &o[1]) || share(&o[0], &o[2])))
        lint |= SIM_LINT_OVERLAP_AB;
    if (share(&o[0], &o[3]) && !is_same(&o[0], &o[3]))
        lint |= SIM_LINT_OVERLAP_C;
    return lint;
}

/* CDNA5 ISA 7: v_cvt_scale* must not write what it reads. On gfx950 that holds for the forms of 32 elements only. */
static bool conversion_overlaps(const sim_instruction *inst, sim_arch arch)
{
    if (!has_prefix(inst->op->name, "v_cvt_scale") || (inst->op->flags & SIM_READS_RESULT) != 0)
        return false;
    if (arch == SIM_GFX950 && strstr(inst->op->name, "pk32") == NULL)
        return false;
    for (int i = 1; i < inst->operand_count; i++)
        if (share(&inst->operand[0], &inst->operand[i]))
            return true;
    return false;
}

static uint16_t lint_of(const sim_instruction *inst)
{
    const sim_opcode *op = inst->op;
    const sim_arch    arch = op->arches == SIM_ON_GFX1250 ? SIM_GFX1250 : SIM_GFX950;
    uint16_t          lint = 0;
    if ((op->flags & SIM_EVEN) != 0 && arch == SIM_GFX950)
        for (int i = 0; i < inst->operand_count; i++)
            if (is_vector(&inst->operand[i]) && inst->operand[i].count > 1 && inst->operand[i].reg % 2 != 0)
                lint |= SIM_LINT_EVEN;
    if (op->kind == SIM_XDL || op->kind == SIM_SGEMM || op->kind == SIM_WMMA)
        lint |= lint_matrix(inst);
    if (conversion_overlaps(inst, arch))
        lint |= SIM_LINT_OVERLAP_CVT;
    /* ROCm/rocMLIR PR 2459: op_sel:[0,1,0] at times computes something else on gfx950. */
    if (strcmp(op->name, "v_pk_fma_f32") == 0 && (inst->op_sel & 7) == 2)
        lint |= SIM_LINT_PK_FMA;
    return lint;
}

static bool takes_lane_mask(const char *name)
{
    static const char *const prefix[] = { "v_cndmask",   "v_addc",         "v_subb",
                                          "v_add_co_ci", "v_sub_co_ci",    "v_subrev_co_ci",
                                          "v_div_fmas",  "v_dual_cndmask", "v_pk_cndmask" };
    for (size_t i = 0; i < sizeof prefix / sizeof prefix[0]; i++)
        if (has_prefix(name, prefix[i]))
            return true;
    return false;
}

static bool touches_m0(const sim_instruction *inst)
{
    /* The message that gives the registers back, which compilers put before s_endpgm, has no payload. */
    if (has_text(inst, "MSG_DEALLOC_VGPRS"))
        return false;
    for (int i = 0; i < inst->read_count; i++)
        if (inst->read[i].kind == SIM_SCALAR && inst->read[i].reg <= SIM_M0 &&
            SIM_M0 < inst->read[i].reg + inst->read[i].count)
            return true;
    return (inst->op->flags & SIM_READS_M0) != 0;
}

static uint32_t what_of(const sim_instruction *inst)
{
    const sim_opcode *op = inst->op;
    uint32_t          what = 0;
    if (touches_m0(inst))
        what |= SIM_FACT_M0;
    if (has_text(inst, " sc1") || has_text(inst, "SCOPE_DEV") || has_text(inst, "SCOPE_SYS"))
        what |= SIM_FACT_DEVICE_SCOPE;
    if (strcmp(op->name, "buffer_wbl2") == 0 || strcmp(op->name, "global_wb") == 0 ||
        strcmp(op->name, "global_wbinv") == 0)
        what |= SIM_FACT_WRITES_BACK;
    if (strcmp(op->name, "buffer_inv") == 0 || strcmp(op->name, "global_inv") == 0 ||
        strcmp(op->name, "global_wbinv") == 0)
        what |= SIM_FACT_INVALIDATES;
    if (op->kind == SIM_ATOMIC || strstr(op->name, "_atomic_") != NULL)
        what |= SIM_FACT_ATOMIC;
    if (takes_lane_mask(op->name))
        what |= SIM_FACT_LANE_MASK;
    if (has_prefix(op->name, "ds_bpermute") || has_prefix(op->name, "ds_permute") || has_prefix(op->name, "ds_swizzle"))
        what |= SIM_FACT_PERMUTE;
    if (op->kind == SIM_STORE || op->kind == SIM_ATOMIC || strstr(op->name, "_store_") != NULL ||
        strstr(op->name, "_atomic_") != NULL || has_prefix(op->name, "tensor_store"))
        what |= SIM_FACT_STORES;
    if (has_prefix(op->name, "ds_"))
        what |= SIM_FACT_DS;
    if (op->kind == SIM_LDS_DMA || inst->lds || op->kind == SIM_ASYNC || op->kind == SIM_TENSOR)
        what |= SIM_FACT_COPIES_IN;
    /* s_movrelsd_2 has two numbers in M0. */
    if (strstr(op->name, "_movrels") != NULL && strstr(op->name, "_2_") == NULL)
        what |= SIM_FACT_SOURCE_BY_M0;
    if (strstr(op->name, "_movreld") != NULL || strstr(op->name, "_movrelsd_b") != NULL)
        what |= SIM_FACT_RESULT_BY_M0;
    return what;
}

void sim_facts_fill(sim_instruction *inst)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    if (inst->facts.ready == 0) {
        sim_facts *facts = &inst->facts;
        facts->lint = lint_of(inst);
        facts->what = what_of(inst);
        facts->passes = (uint8_t)sim_matrix_passes(inst);
        sim_hazard_facts(inst, facts);
        sim_defined_facts(inst, facts);
        __atomic_store_n(&facts->ready, 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
}

/* Registers
 * ---------
 */
static sim_reach reach_of(const sim_wave *w, const sim_span *span)
{
    sim_reach r = { .count = span->count, .operand = span->operand };
    switch (span->kind) {
    case SIM_SCALAR:
        r.first = (uint16_t)(SIM_SCALAR_BASE + span->reg);
        break;
    case SIM_ACC:
        r.first = (uint16_t)(256 + span->reg);
        break;
    default:
        r.first = (uint16_t)(span->reg + (w != NULL && span->slot < 4 ? 256 * w->msb[span->slot] : 0));
    }
    return r;
}

static void reach_more(const sim_wave *w, const sim_instruction *inst, sim_reaches *to)
{
    for (int i = 0; i < inst->read_count && to->reads < SIM_MAX_REACHES; i++)
        to->read[to->reads++] = reach_of(w, &inst->read[i]);
    for (int i = 0; i < inst->write_count && to->writes < SIM_MAX_REACHES; i++)
        to->write[to->writes++] = reach_of(w, &inst->write[i]);
}

/* False: none of the wave's. */
static bool move_reg(const sim_wave *w, uint8_t kind, uint16_t *reg, uint8_t slot)
{
    const int32_t by = (int32_t)w->s[SIM_M0], scalar = kind == SIM_SCALAR;
    const int32_t most = scalar ? SIM_SCALARS : SIM_VECTORS_GFX1250 - 256 * w->msb[slot < 4 ? slot : 0];
    if (by < -(int32_t)*reg || by >= most - *reg)
        return false;
    *reg = (uint16_t)(*reg + by);
    return true;
}

const sim_instruction *sim_direct(const sim_wave *w, const sim_instruction *inst, sim_instruction *room)
{
    if ((inst->facts.what & (SIM_FACT_SOURCE_BY_M0 | SIM_FACT_RESULT_BY_M0)) == 0)
        return inst;
    *room = *inst;
    bool inside = true;
    for (int n = 0; n < 2 && n < room->operand_count; n++) {
        const uint32_t by_m0 = n == 0 ? SIM_FACT_RESULT_BY_M0 : SIM_FACT_SOURCE_BY_M0;
        sim_operand   *o = &room->operand[n];
        if ((inst->facts.what & by_m0) == 0 || (o->kind != SIM_SCALAR && o->kind != SIM_VECTOR))
            continue;
        inside &= move_reg(w, o->kind, &o->reg, o->slot);
        for (int i = 0; i < room->read_count; i++)
            if (n == 1 && room->read[i].operand == n)
                room->read[i].reg = o->reg;
        for (int i = 0; i < room->write_count; i++)
            if (n == 0 && room->write[i].operand == n)
                room->write[i].reg = o->reg;
    }
    return inside ? room : inst; /* the handler fails the wave */
}

void sim_reach_all(const sim_wave *w, const sim_instruction *inst, sim_reaches *to)
{
    sim_instruction room;
    to->reads = to->writes = 0;
    if (w != NULL && (inst->facts.what & (SIM_FACT_SOURCE_BY_M0 | SIM_FACT_RESULT_BY_M0)) != 0)
        inst = sim_direct(w, inst, &room);
    reach_more(w, inst, to);
    if (inst->dual != NULL)
        reach_more(w, inst->dual, to);
}

const char *sim_register_name(sim_arch arch, int reg, char *to, size_t size)
{
    static const struct {
        int         reg;
        const char *name;
    } special[] = { { SIM_VCC, "vcc_lo" },
                    { SIM_VCC + 1, "vcc_hi" },
                    { SIM_M0, "m0" },
                    { SIM_EXEC, "exec_lo" },
                    { SIM_EXEC + 1, "exec_hi" } };
    const int scalar = reg - SIM_SCALAR_BASE;
    if (scalar < 0) {
        const bool is_acc = arch == SIM_GFX950 && reg >= 256;
        snprintf(to, size, "%c%d", is_acc ? 'a' : 'v', is_acc ? reg - 256 : reg);
        return to;
    }
    for (size_t i = 0; i < sizeof special / sizeof special[0]; i++)
        if (special[i].reg == scalar) {
            snprintf(to, size, "%s", special[i].name);
            return to;
        }
    if (scalar >= SIM_TTMP)
        snprintf(to, size, "ttmp%d", scalar - SIM_TTMP);
    else
        snprintf(to, size, "s%d", scalar);
    return to;
}

/* Operands
 * --------
 */
/* Reads facts.what, which sim_facts_fill derives first. */
int sim_data_operand(const sim_instruction *inst)
{
    const sim_opcode *op = inst->op;
    int               data;
    if ((inst->facts.what & SIM_FACT_PERMUTE) != 0)
        return -1;
    if ((inst->facts.what & SIM_FACT_DS) != 0) /* address, data; or result, address, data */
        return op->results + 1 < inst->operand_count && is_vector(&inst->operand[op->results + 1]) ? op->results + 1
                                                                                                   : -1;
    switch (op->kind) {
    case SIM_STORE:
    case SIM_ATOMIC:
    case SIM_FLAT:
        /* buffer_store: data, address, resource; buffer_atomic too, and what it returns comes in the data's place */
        if (strncmp(op->name, "buffer_", 7) == 0)
            data = 0;
        else if ((inst->facts.what & SIM_FACT_STORES) != 0)
            data = (inst->write_count > 0 ? 1 : 0) + 1;
        else
            return -1;
        break;
    default:
        return -1;
    }
    return data < inst->operand_count && is_vector(&inst->operand[data]) ? data : -1;
}

static uint32_t half(bool high)
{
    return high ? 0xFFFF0000u : 0x0000FFFFu;
}

/* What reads its result without accumulating into it writes one half, and keeps the other. */
static bool keeps_other_half(const sim_instruction *inst)
{
    static const char *const types[] = { "_f16", "_bf16", "_u16", "_i16", "_b16" };
    const char              *name = inst->op->name, *last = strrchr(name, '_');
    if (inst->op->kind != SIM_VALU || (inst->op->flags & SIM_READS_RESULT) == 0 || inst->sdwa ||
        strstr(name, "mac") != NULL || strstr(name, "_pk") != NULL)
        return false;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(last, types[i]) == 0)
            return true;
    return false;
}

/* The op_sel bit of the destination is the one after the sources' bits. */
uint32_t sim_result_bits(const sim_instruction *inst)
{
    const char *name = inst->op->name;
    if (inst->operand_count == 0)
        return UINT32_MAX;
    const bool has_high_select = (inst->op_sel >> (inst->operand_count - 1) & 1) != 0;
    switch (inst->operand[0].select) {
    case SIM_WORD_0:
        return half(false);
    case SIM_WORD_1:
        return half(true);
    default:
        break;
    }
    if (inst->sdwa && inst->dst_unused == 2)
        switch (inst->dst_select) {
        case SIM_BYTE_0:
        case SIM_BYTE_1:
        case SIM_BYTE_2:
        case SIM_BYTE_3:
            return 0xFFu << 8 * (inst->dst_select - SIM_BYTE_0);
        case SIM_WORD_0:
            return half(false);
        case SIM_WORD_1:
            return half(true);
        default:
            return UINT32_MAX;
        }
    if (strstr(name, "_d16_hi") != NULL)
        return half(true);
    if (strstr(name, "_d16") != NULL)
        return half(false);
    if (strstr(name, "mixlo") != NULL)
        return half(false);
    if (strstr(name, "mixhi") != NULL)
        return half(true);
    if (strstr(name, "v_cvt_sr_fp8") == name || strstr(name, "v_cvt_sr_bf8") == name ||
        strstr(name, "v_cvt_scalef32_sr_fp8") == name || strstr(name, "v_cvt_scalef32_sr_bf8") == name) {
        const int byte = inst->byte_sel != 0 ? inst->byte_sel : inst->op_sel >> 2 & 3;
        return 0xFFu << 8 * byte;
    }
    if (strstr(name, "v_cvt_pk_fp8_f") == name || strstr(name, "v_cvt_pk_bf8_f") == name ||
        strstr(name, "v_cvt_scalef32_pk_fp8") == name || strstr(name, "v_cvt_scalef32_pk_bf8") == name)
        return half(has_high_select || (inst->op_sel & 0x8) != 0);
    if (keeps_other_half(inst))
        return half(has_high_select);
    /* A VOP3 of 16 bits that is told to write the high half keeps the low one. */
    if (has_high_select && inst->op->kind == SIM_VALU && strncmp(name, "v_pk_", 5) != 0)
        return half(true);
    return UINT32_MAX;
}
