/* Branches, waits, barriers, the end of a wave, and the registers that s_getreg and s_setreg reach. */
#include "device.h"
#include "opcodes.h"

/* Operands
 * --------
 */
/* The 16-bit field of the instruction, which is printed unsigned. */
static int simm16(const sim_instruction *inst)
{
    return (int16_t)inst->operand[0].value;
}

static uint64_t vcc(const sim_wave *w)
{
    return sim_scalar64(w, SIM_VCC) & sim_all_lanes(w);
}

/* A result of one or two scalar registers. */
static void set_result(sim_wave *w, const sim_instruction *inst, uint64_t value)
{
    const sim_operand *to = &inst->operand[0];
    sim_operand        low = *to;
    low.count = 1;
    sim_set_scalar(w, &low, (uint32_t)value);
    if (to->count < 2)
        return;
    sim_operand high = low;
    high.reg++;
    sim_set_scalar(w, &high, (uint32_t)(value >> 32));
}

static void nothing(sim_wave *w, const sim_instruction *inst)
{
    (void)w, (void)inst;
}

/* Waits
 * -----
 */
static const sim_counter counters[SIM_COUNTERS] = {
    [SIM_VMCNT] = SIM_VMCNT, [SIM_LGKMCNT] = SIM_LGKMCNT,   [SIM_STORECNT] = SIM_STORECNT,   [SIM_DSCNT] = SIM_DSCNT,
    [SIM_KMCNT] = SIM_KMCNT, [SIM_ASYNCCNT] = SIM_ASYNCCNT, [SIM_TENSORCNT] = SIM_TENSORCNT,
};

/* expcnt counts nothing that a compute kernel does. */
static void wait_fields(sim_wave *w, const sim_instruction *inst)
{
    if (inst->vmcnt >= 0)
        sim_wait(w, SIM_VMCNT, (uint32_t)inst->vmcnt);
    if (inst->lgkmcnt >= 0)
        sim_wait(w, SIM_LGKMCNT, (uint32_t)inst->lgkmcnt);
}

static void wait_one(sim_wave *w, const sim_instruction *inst)
{
    const sim_counter *counter = inst->op->detail;
    sim_wait(w, *counter, (uint32_t)inst->operand[0].value);
}

/* s_wait_loadcnt_dscnt, s_wait_storecnt_dscnt: bits 13 to 8 the named one, bits 5 to 0 DScnt. */
static void wait_two(sim_wave *w, const sim_instruction *inst)
{
    const sim_counter *counter = inst->op->detail;
    sim_wait(w, *counter, (uint32_t)inst->operand[0].value >> 8 & 63);
    sim_wait(w, SIM_DSCNT, (uint32_t)inst->operand[0].value & 63);
}

static void wait_idle(sim_wave *w, const sim_instruction *inst)
{
    (void)inst;
    for (int i = 0; i < SIM_COUNTERS; i++)
        sim_wait(w, counters[i], 0);
}

/* Barriers
 * --------
 * M0 holds a barrier's number in bits 5 to 0 and a number of members in bits 22 to 16, as LLVM lays it for
 * llvm.amdgcn.s.barrier.init and .signal.var.
 */
static int barrier_number(const sim_wave *w, const sim_operand *o)
{
    return o->kind == SIM_SCALAR ? (int)(w->s[o->reg] & 63) : (int)o->value;
}

static uint32_t member_number(const sim_wave *w)
{
    return w->s[SIM_M0] >> 16 & 127;
}

static void barrier(sim_wave *w, const sim_instruction *inst)
{
    sim_barrier_signal(w, inst, -1);
    if (w->status != SIM_FAILED)
        sim_barrier_wait(w, inst, -1);
}

/* With a number of members in M0, a signal sets it. */
static void barrier_signal(sim_wave *w, const sim_instruction *inst)
{
    const sim_operand *o = &inst->operand[0];
    const int          id = barrier_number(w, o);
    sim_barrier       *b = sim_barrier_of(w, id);
    if (b != NULL && o->kind == SIM_SCALAR && member_number(w) != 0)
        b->members = member_number(w);
    sim_barrier_signal(w, inst, id);
}

/* SCC: nobody has signalled this generation before; 0 where the barrier does nothing. */
static void barrier_signal_isfirst(sim_wave *w, const sim_instruction *inst)
{
    const sim_barrier *b = sim_barrier_of(w, barrier_number(w, &inst->operand[0]));
    w->scc = b != NULL && b->arrived == 0;
    barrier_signal(w, inst);
}

static void barrier_wait(sim_wave *w, const sim_instruction *inst)
{
    sim_barrier_wait(w, inst, simm16(inst));
}

static void barrier_init(sim_wave *w, const sim_instruction *inst)
{
    sim_barrier_init(w, inst, barrier_number(w, &inst->operand[0]), member_number(w));
}

static void barrier_join(sim_wave *w, const sim_instruction *inst)
{
    sim_barrier_join(w, inst, barrier_number(w, &inst->operand[0]));
}

static void barrier_leave(sim_wave *w, const sim_instruction *inst)
{
    w->scc = sim_barrier_leave(w, inst);
}

/* Bit 0 valid, bits 10 to 4 members, bits 22 to 16 signals, as the trap handler of the Linux driver reads it. */
static void get_barrier_state(sim_wave *w, const sim_instruction *inst)
{
    const sim_barrier *b = sim_barrier_of(w, barrier_number(w, &inst->operand[1]));
    set_result(w, inst, b == NULL ? 0 : 1u | (b->members & 127) << 4 | (b->arrived & 127) << 16);
}

/* Ends
 * ----
 */
static void trap(sim_wave *w, const sim_instruction *inst)
{
    sim_fail(w, inst, "the kernel trapped (%d)", simm16(inst));
}

static void halt(sim_wave *w, const sim_instruction *inst)
{
    if ((simm16(inst) & 1) != 0)
        sim_fail(w, inst, "the kernel halts");
}

static void code_end(sim_wave *w, const sim_instruction *inst)
{
    sim_fail(w, inst, "the wave has run past the end of the kernel");
}

enum { MSG_DEALLOC_VGPRS = 3, MSG_RTN_GET_REALTIME = 131 };

static void send_message(sim_wave *w, const sim_instruction *inst)
{
    if (w->group->arch != SIM_GFX1250 || inst->operand[0].value != MSG_DEALLOC_VGPRS)
        sim_fail(w, inst, "nobody takes this message");
}

static void send_message_for(sim_wave *w, const sim_instruction *inst)
{
    if (inst->operand[1].value == MSG_RTN_GET_REALTIME)
        set_result(w, inst, w->executed);
    else
        sim_fail(w, inst, "nobody answers this message");
}

static void sleep(sim_wave *w, const sim_instruction *inst)
{
    (void)inst;
    w->status = SIM_SLEEPING;
    w->sleep = 1;
}

static void get_time(sim_wave *w, const sim_instruction *inst)
{
    set_result(w, inst, w->executed);
}

/* State
 * -----
 */
enum {
    MODE = 1,
    STATUS = 2,
    TRAPSTS = 3,
    HW_ID = 4,
    XCC_ID = 20,
    HW_ID1 = 23,
    HW_ID2 = 24,
    SCHED_MODE = 26,
    IB_STS2 = 28,
    CYCLES_LO = 29,
    CYCLES_HI = 30
};

enum {
    XCDS = 8, /* of an MI350: consecutive workgroups go to them in turn */
    MODE_ROUND = 0x0F,
    MODE_SKIPS = 1 << 27 | 1 << 28, /* gfx950: GPR_IDX_EN, VSKIP */
    MODE_MSB = 12                   /* gfx1250: bits 19 to 12, two each for dst, src0, src1, src2 */
};

/* The two bits of each slot in MODE, by sim_operand.slot. */
static const int mode_msb_shift[4] = { MODE_MSB + 2, MODE_MSB + 4, MODE_MSB + 6, MODE_MSB };

static uint32_t mode_of(const sim_wave *w)
{
    uint32_t mode = w->mode;
    if (w->group->arch == SIM_GFX1250)
        for (int slot = 0; slot < 4; slot++)
            mode |= (uint32_t)w->msb[slot] << mode_msb_shift[slot];
    return mode;
}

/* False: not modelled. Waves go to the SIMDs in turn; which compute unit a workgroup is on is nobody's business. */
static bool register_value(const sim_wave *w, int id, uint32_t *value)
{
    const bool     is_950 = w->group->arch == SIM_GFX950;
    const uint32_t wave = (uint32_t)w->id, simd = wave % 4, slot = wave / 4;
    const uint64_t group = sim_wave_order(w) / SIM_MAX_WAVES;
    if (id == MODE)
        *value = mode_of(w);
    else if (id == STATUS) /* SCC, EXECZ, VCCZ, IN_TG, VALID */
        *value = (is_950 ? w->scc : 0u) | (uint32_t)(sim_exec(w) == 0) << 9 | (uint32_t)(vcc(w) == 0) << 10 |
                 (uint32_t)(w->group->wave_count > 1) << 11 | 1u << 16;
    else if (is_950 && id == TRAPSTS)
        *value = 0;
    else if (is_950 && id == HW_ID)
        *value = slot | simd << 4;
    else if (is_950 && id == XCC_ID)
        *value = (uint32_t)(group % XCDS);
    else if (!is_950 && id == HW_ID1)
        *value = slot | simd << 8;
    else if (!is_950 && (id == HW_ID2 || id == SCHED_MODE || id == IB_STS2))
        *value = 0; /* IB_STS2: not in a cluster */
    else if (!is_950 && id == CYCLES_LO)
        *value = (uint32_t)w->executed;
    else if (!is_950 && id == CYCLES_HI)
        *value = (uint32_t)(w->executed >> 32);
    else
        return false;
    return true;
}

static int field_offset(const sim_operand *o)
{
    return (int)(o->value & 31);
}

static uint32_t field_mask(const sim_operand *o)
{
    const int size = (int)(o->value >> 8);
    return size >= 32 ? UINT32_MAX : (1u << size) - 1;
}

static void get_register(sim_wave *w, const sim_instruction *inst)
{
    const sim_operand *field = &inst->operand[1];
    uint32_t           value;
    if (register_value(w, field->reg, &value))
        set_result(w, inst, value >> field_offset(field) & field_mask(field));
    else
        sim_fail(w, inst, "hardware register %d is not modelled", field->reg);
}

/* Rounding modes that are not modelled fail where they are used: valu.c. */
static void set_mode(sim_wave *w, const sim_instruction *inst, uint32_t mode)
{
    if (w->group->arch == SIM_GFX950 && (mode & MODE_SKIPS) != 0)
        sim_fail(w, inst, "VSKIP and GPR indexing are not modelled");
    else
        w->mode = mode;
}

static void set_msb(sim_wave *w, uint32_t mode)
{
    for (int slot = 0; slot < 4; slot++)
        w->msb[slot] = mode >> mode_msb_shift[slot] & 3;
}

/* gfx1250: a write of MODE with a constant also takes bits 19 to 12 of the constant for VGPR_MSB, whatever field it
 * names (LLVM, AMDGPULowerVGPREncoding: "clobbers VGPR MSB bits[12:19]"). */
static void take_msb_of_constant(sim_wave *w, const sim_instruction *inst, uint32_t constant)
{
    const uint32_t bits = 0xFFu << MODE_MSB, before = mode_of(w) & bits;
    set_msb(w, constant);
    if ((constant & bits) != before)
        sim_report(w, inst, SIM_CHECK_ERRATUM, -1,
                   "bits 19 to 12 of the constant overwrite VGPR_MSB: 0x%02X becomes 0x%02X", before >> MODE_MSB,
                   constant >> MODE_MSB & 0xFF);
}

static void set_mode_field(sim_wave *w, const sim_instruction *inst, const sim_operand *field, uint32_t source)
{
    const uint32_t mask = field_mask(field) << field_offset(field);
    const uint32_t mode = (mode_of(w) & ~mask) | (source << field_offset(field) & mask);
    if (w->group->arch != SIM_GFX1250) {
        set_mode(w, inst, mode);
        return;
    }
    set_mode(w, inst, mode & ~(0xFFu << MODE_MSB));
    if (inst->operand[1].kind == SIM_INTEGER)
        take_msb_of_constant(w, inst, source);
    else
        set_msb(w, mode);
}

static void set_register(sim_wave *w, const sim_instruction *inst)
{
    const sim_operand *field = &inst->operand[0];
    const uint32_t     source = sim_scalar_source(w, &inst->operand[1]);
    if (field->reg == MODE)
        set_mode_field(w, inst, field, source);
    else if (w->group->arch == SIM_GFX1250 && field->reg == SCHED_MODE)
        sim_report(w, inst, SIM_CHECK_ADVICE, -1,
                   "in this mode hardware may leave dependences to s_wait_alu, unchecked here");
    else
        sim_fail(w, inst, "hardware register %d cannot be set", field->reg);
}

static void set_round_mode(sim_wave *w, const sim_instruction *inst)
{
    set_mode(w, inst, (w->mode & ~(uint32_t)MODE_ROUND) | ((uint32_t)simm16(inst) & MODE_ROUND));
}

static void set_denorm_mode(sim_wave *w, const sim_instruction *inst)
{
    set_mode(w, inst, (w->mode & ~0xF0u) | ((uint32_t)simm16(inst) & 15) << 4);
}

/* Bits 7 to 0: two each for src0, src1, src2, dst. Bits 15 to 8 are the state before, for the reader. */
static void set_vgpr_msb(sim_wave *w, const sim_instruction *inst)
{
    for (int slot = 0; slot < 4; slot++)
        w->msb[slot] = (uint8_t)(simm16(inst) >> 2 * slot & 3);
}

/* The table
 * ---------
 */
#define BRANCH(name, arches, flags, condition)                       \
    static void run_##name(sim_wave *w, const sim_instruction *inst) \
    {                                                                \
        if (condition)                                               \
            w->pc = inst->pc + inst->bytes + 4 * simm16(inst);       \
    }
#define WAIT(name, counter)
#define WAIT_TWO(name, counter)
#define NOTHING(name, arches, class)
#define DO(name, arches, class, results, flags, function)
#include "control.def"
#undef BRANCH
#undef WAIT
#undef WAIT_TWO
#undef NOTHING
#undef DO

const sim_opcode sim_control_opcodes[] = {
#define BRANCH(name, arches, flags, condition) { #name, SIM_ON_##arches, SIM_BRANCH, 0, flags, run_##name, NULL },
#define WAIT(name, counter) { #name, SIM_ON_GFX1250, SIM_WAIT, 0, 0, wait_one, &counters[counter] },
#define WAIT_TWO(name, counter) { #name, SIM_ON_GFX1250, SIM_WAIT, 0, 0, wait_two, &counters[counter] },
#define NOTHING(name, arches, class) { #name, SIM_ON_##arches, class, 0, 0, nothing, NULL },
#define DO(name, arches, class, results, flags, function) \
    { #name, SIM_ON_##arches, class, results, flags, function, NULL },
#include "control.def"
#undef BRANCH
#undef WAIT
#undef WAIT_TWO
#undef NOTHING
#undef DO
    { NULL, 0, 0, 0, 0, NULL, NULL },
};
