/* The scalar ALU: the frame around the formulas of salu.def, and scalar operands for everyone. */
#include "convert.h"
#include "machine.h"
#include "opcodes.h"
#include "valu.h"

#include <math.h>

/* Operands
 * --------
 */
static uint64_t special_value(const sim_wave *w, uint16_t special)
{
    switch (special) {
    case SIM_SRC_SCC:
        return w->scc;
    case SIM_SRC_VCCZ:
        return (sim_scalar64(w, SIM_VCC) & sim_all_lanes(w)) == 0;
    case SIM_SRC_EXECZ:
        return sim_exec(w) == 0;
    case SIM_SHARED_BASE:
        return SIM_SHARED_APERTURE;
    case SIM_SHARED_LIMIT:
        return SIM_SHARED_APERTURE | UINT32_MAX;
    case SIM_PRIVATE_BASE:
        return SIM_PRIVATE_APERTURE;
    case SIM_PRIVATE_LIMIT:
        return SIM_PRIVATE_APERTURE | UINT32_MAX;
    case SIM_FLAT_SCRATCH_LO: /* read as 64 bits where an address is made */
        return SIM_PRIVATE_APERTURE;
    default: /* SIM_FLAT_SCRATCH_HI */
        return SIM_PRIVATE_APERTURE >> 32;
    }
}

/* Apertures are 64-bit values whose upper word is what a 32-bit read gives (ISA: SRC_SHARED_BASE). */
static bool is_aperture(uint16_t special)
{
    return special >= SIM_SHARED_BASE && special <= SIM_PRIVATE_LIMIT;
}

uint32_t sim_scalar_source(const sim_wave *w, const sim_operand *o)
{
    switch (o->kind) {
    case SIM_SCALAR:
        return w->s[o->reg];
    case SIM_INTEGER:
    case SIM_REAL:
        return (uint32_t)valu_uniform(w, o, T_F32);
    case SIM_SPECIAL:
        return (uint32_t)(special_value(w, o->reg) >> (is_aperture(o->reg) ? 32 : 0));
    default:
        return 0;
    }
}

uint64_t sim_scalar_source64(const sim_wave *w, const sim_operand *o, bool is_real)
{
    switch (o->kind) {
    case SIM_SCALAR:
        return sim_scalar64(w, o->reg);
    case SIM_INTEGER:
    case SIM_REAL:
        return valu_uniform(w, o, is_real ? T_F64 : T_U64);
    case SIM_SPECIAL:
        return special_value(w, o->reg);
    default:
        return 0;
    }
}

void sim_set_scalar(sim_wave *w, const sim_operand *o, uint32_t x)
{
    if (o->kind == SIM_SCALAR)
        w->s[o->reg] = x;
}

static void set_pair(sim_wave *w, const sim_operand *o, uint64_t x)
{
    if (o->kind == SIM_SCALAR)
        sim_set_scalar64(w, o->reg, x);
}

/* Formulas that take more than an expression
 * ------------------------------------------
 */
static inline bool overflows(int64_t sum)
{
    return sum != (int32_t)sum;
}

static inline uint32_t magnitude(uint32_t a)
{
    return (int32_t)a < 0 ? 0u - a : a;
}

static inline uint64_t field(uint64_t a, uint32_t offset, uint32_t width)
{
    return a >> offset & (width >= 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1u);
}

static inline uint64_t signed_field(int64_t a, uint32_t offset, uint32_t width)
{
    const uint64_t bits = field((uint64_t)(a >> offset), 0, width);
    return width == 0 ? 0 : width >= 64 ? bits : (uint64_t)((int64_t)(bits << (64 - width)) >> (64 - width));
}

static inline uint64_t reversed(uint64_t a)
{
    uint64_t to = 0;
    for (int i = 0; i < 64; i++)
        to |= (a >> i & 1) << (63 - i);
    return to;
}

/* Leading bits equal to the sign, of `width`; -1 if all are. */
static inline int32_t sign_run(int64_t a, int width)
{
    const uint64_t differs = (uint64_t)(a ^ a >> 63);
    return differs == 0 ? -1 : __builtin_clzll(differs) - (64 - width);
}

static inline uint64_t replicated(uint32_t a)
{
    uint64_t to = 0;
    for (int i = 0; i < 32; i++)
        to |= (uint64_t)(a >> i & 1 ? 3 : 0) << 2 * i;
    return to;
}

static inline uint64_t quadmask(uint64_t a)
{
    uint64_t to = 0;
    for (int i = 0; i < 16; i++)
        to |= (uint64_t)((a >> 4 * i & 15) != 0) << i;
    return to;
}

static inline uint64_t whole_quads(uint64_t a)
{
    uint64_t to = 0;
    for (int i = 0; i < 16; i++)
        to |= (uint64_t)((a >> 4 * i & 15) != 0 ? 15 : 0) << 4 * i;
    return to;
}

static inline bool is_nan(float a, float b)
{
    return isnan(a) || isnan(b);
}

/* A number wins over a NaN, and +0 is above -0. */
static inline float smaller(float a, float b)
{
    return isnan(a) ? b : isnan(b) || a < b || (a == b && signbit(a)) ? a : b;
}

static inline float larger(float a, float b)
{
    return isnan(a) ? b : isnan(b) || a > b || (a == b && !signbit(a)) ? a : b;
}

/* a * b is exact in double and the sum has at most 41 bits wherever an F16 is not saturated: one rounding. */
static inline float fused_half(float a, float b, float d)
{
    return sim_f32_of_f16(sim_encode(SIM_F16, (double)a * b + d, false));
}

static inline uint32_t half_toward_zero(float a)
{
    const uint32_t nearest = sim_f16_of_f32(a);
    return fabsf(sim_f32_of_f16(nearest)) > fabsf(a) ? nearest - 1 : nearest;
}

/* One handler for each row
 * ------------------------
 */
#define C_U32 uint32_t
#define C_I32 int32_t
#define C_U64 uint64_t
#define C_I64 int64_t
#define C_F32 float
#define C_F16 float
#define GET_U32(o) sim_scalar_source(w, o)
#define GET_I32(o) (int32_t)sim_scalar_source(w, o)
#define GET_U64(o) sim_scalar_source64(w, o, false)
#define GET_I64(o) (int64_t)((o)->kind == SIM_INTEGER ? valu_uniform(w, o, T_I64) : sim_scalar_source64(w, o, false))
#define GET_F32(o) sim_float_of(sim_scalar_source(w, o))
#define GET_F16(o) sim_f32_of_f16((uint32_t)valu_uniform(w, o, T_F16) & 0xFFFFu)
#define PUT_U32(o, v) sim_set_scalar(w, o, v)
#define PUT_I32(o, v) sim_set_scalar(w, o, (uint32_t)(v))
#define PUT_U64(o, v) set_pair(w, o, v)
#define PUT_I64(o, v) set_pair(w, o, (uint64_t)(v))
#define PUT_F32(o, v) sim_set_scalar(w, o, sim_bits_of(v))
#define PUT_F16(o, v) sim_set_scalar(w, o, sim_f16_of_f32(v))

#define SOURCE(name, type, n) const C_##type name = GET_##type(&inst->operand[n]);
#define HANDLER(name, ...)                                           \
    static void run_##name(sim_wave *w, const sim_instruction *inst) \
    {                                                                \
        __VA_ARGS__                                                  \
    }
#define RESULT(D, formula)             \
    const C_##D to = (C_##D)(formula); \
    PUT_##D(&inst->operand[0], to);
#define S1(name, arches, D, A, formula) HANDLER(name, SOURCE(a, A, 1) RESULT(D, formula))
#define S1C(name, arches, D, A, formula, bit) HANDLER(name, SOURCE(a, A, 1) RESULT(D, formula) w->scc = (bit);)
#define S1D(name, arches, D, A, formula) HANDLER(name, SOURCE(a, A, 1) SOURCE(d, D, 0) RESULT(D, formula))
#define S1R(name, arches, D, A, formula) \
    HANDLER(name, const bool scc = w->scc; SOURCE(a, A, 1) SOURCE(d, D, 0) RESULT(D, formula))
#define S2(name, arches, D, A, B, formula) HANDLER(name, SOURCE(a, A, 1) SOURCE(b, B, 2) RESULT(D, formula))
#define S2D(name, arches, D, A, B, formula) \
    HANDLER(name, SOURCE(a, A, 1) SOURCE(b, B, 2) SOURCE(d, D, 0) RESULT(D, formula))
#define S2C(name, arches, D, A, B, formula, bit) \
    HANDLER(name, SOURCE(a, A, 1) SOURCE(b, B, 2) RESULT(D, formula) w->scc = (bit);)
#define S2R(name, arches, D, A, B, formula) \
    HANDLER(name, const bool scc = w->scc; SOURCE(a, A, 1) SOURCE(b, B, 2) RESULT(D, formula))
#define S2CR(name, arches, D, A, B, formula, bit) \
    HANDLER(name, const bool scc = w->scc; SOURCE(a, A, 1) SOURCE(b, B, 2) RESULT(D, formula) w->scc = (bit);)
#define S3(name, arches, D, A, B, C, formula) \
    HANDLER(name, SOURCE(a, A, 1) SOURCE(b, B, 2) SOURCE(c, C, 3) RESULT(D, formula))
/* A 16-bit constant is printed unsigned. */
#define CONSTANT const int32_t k = (int16_t)inst->operand[1].value;
#define K1(name, arches, flags, formula) \
    HANDLER(name, CONSTANT SOURCE(d, U32, 0)(void) d; PUT_U32(&inst->operand[0], formula);)
#define K1C(name, arches, formula, bit) \
    HANDLER(name, CONSTANT SOURCE(d, U32, 0) PUT_U32(&inst->operand[0], formula); w->scc = (bit);)
#define C2(name, arches, A, B, formula) HANDLER(name, SOURCE(a, A, 0) SOURCE(b, B, 1) w->scc = (formula);)
#define CK(name, A, formula) HANDLER(name, SOURCE(a, A, 0) CONSTANT w->scc = (formula);)
#define CF(type, A)                                        \
    C2(s_cmp_lt_##type, GFX1250, A, A, a < b)              \
    C2(s_cmp_eq_##type, GFX1250, A, A, a == b)             \
    C2(s_cmp_le_##type, GFX1250, A, A, a <= b)             \
    C2(s_cmp_gt_##type, GFX1250, A, A, a > b)              \
    C2(s_cmp_lg_##type, GFX1250, A, A, a<b || a> b)        \
    C2(s_cmp_ge_##type, GFX1250, A, A, a >= b)             \
    C2(s_cmp_o_##type, GFX1250, A, A, !is_nan(a, b))       \
    C2(s_cmp_u_##type, GFX1250, A, A, is_nan(a, b))        \
    C2(s_cmp_nge_##type, GFX1250, A, A, !(a >= b))         \
    C2(s_cmp_nlg_##type, GFX1250, A, A, !(a < b || a > b)) \
    C2(s_cmp_ngt_##type, GFX1250, A, A, !(a > b))          \
    C2(s_cmp_nle_##type, GFX1250, A, A, !(a <= b))         \
    C2(s_cmp_neq_##type, GFX1250, A, A, !(a == b))         \
    C2(s_cmp_nlt_##type, GFX1250, A, A, !(a < b))
#define EXEC(name, arches, before, formula)                                                                          \
    HANDLER(name##_b32, SOURCE(a, U32, 1) const uint32_t exec = w->s[SIM_EXEC], to = (formula); w->s[SIM_EXEC] = to; \
            PUT_U32(&inst->operand[0], (before) ? exec : to); w->scc = to != 0;)                                     \
    HANDLER(name##_b64, SOURCE(a, U64, 1) const uint64_t exec = sim_scalar64(w, SIM_EXEC), to = (formula);           \
            sim_set_scalar64(w, SIM_EXEC, to); PUT_U64(&inst->operand[0], (before) ? exec : to); w->scc = to != 0;)
#define SPECIAL(name, arches, results, flags, run)

/* By M0: the number of a register moves, of a pair by whole registers. */
static bool is_outside(sim_wave *w, const sim_instruction *inst, int reg, int count)
{
    if (reg >= 0 && reg + count <= SIM_VCC + 2)
        return false;
    sim_fail(w, inst, "M0 points outside the scalars");
    return true;
}

static void move_scalars(sim_wave *w, const sim_instruction *inst, int to_offset, int from_offset)
{
    sim_operand to = inst->operand[0], from = inst->operand[1];
    const int   count = to.count > 1 ? 2 : 1;
    if (is_outside(w, inst, to.reg + to_offset, count))
        return;
    if (from.kind == SIM_SCALAR && is_outside(w, inst, from.reg + from_offset, count))
        return;
    to.reg = (uint16_t)(to.reg + to_offset);
    from.reg = (uint16_t)(from.reg + (from.kind == SIM_SCALAR ? from_offset : 0));
    if (count == 2)
        set_pair(w, &to, sim_scalar_source64(w, &from, false));
    else
        sim_set_scalar(w, &to, sim_scalar_source(w, &from));
}

static void run_movrels(sim_wave *w, const sim_instruction *inst)
{
    move_scalars(w, inst, 0, (int)w->s[SIM_M0]);
}

static void run_movreld(sim_wave *w, const sim_instruction *inst)
{
    move_scalars(w, inst, (int)w->s[SIM_M0], 0);
}

/* M0[9:0] moves the source, M0[25:16] the result. */
static void run_movrelsd_2(sim_wave *w, const sim_instruction *inst)
{
    move_scalars(w, inst, (int)(w->s[SIM_M0] >> 16 & 0x3FF), (int)(w->s[SIM_M0] & 0x3FF));
}

/* The program counter has moved on to the next instruction. */
static void run_getpc(sim_wave *w, const sim_instruction *inst)
{
    set_pair(w, &inst->operand[0], w->pc);
}

static void run_setpc(sim_wave *w, const sim_instruction *inst)
{
    w->pc = sim_scalar_source64(w, &inst->operand[0], false);
}

static void run_swappc(sim_wave *w, const sim_instruction *inst)
{
    const uint64_t to = sim_scalar_source64(w, &inst->operand[1], false);
    set_pair(w, &inst->operand[0], w->pc);
    w->pc = to;
}

static void run_add_pc(sim_wave *w, const sim_instruction *inst)
{
    w->pc += (uint64_t)GET_I64(&inst->operand[0]);
}

static void run_call(sim_wave *w, const sim_instruction *inst)
{
    set_pair(w, &inst->operand[0], w->pc);
    w->pc += (uint64_t)((int64_t)(int16_t)inst->operand[1].value * 4);
}

#include "salu.def"

#undef S1
#undef S1C
#undef S1D
#undef S1R
#undef S2
#undef S2D
#undef S2C
#undef S2R
#undef S2CR
#undef S3
#undef K1
#undef K1C
#undef C2
#undef CK
#undef EXEC
#undef SPECIAL

#define GFX950 SIM_ON_GFX950
#define GFX1250 SIM_ON_GFX1250
#define BOTH SIM_ON_BOTH
#define ROW(name, arches, results, flags) { #name, arches, SIM_SALU, results, flags, run_##name, NULL },
#define S1(name, arches, D, A, formula) ROW(name, arches, 1, 0)
#define S1C(name, arches, D, A, formula, bit) ROW(name, arches, 1, SIM_WRITES_SCC)
#define S1D(name, arches, D, A, formula) ROW(name, arches, 1, SIM_READS_RESULT)
#define S1R(name, arches, D, A, formula) ROW(name, arches, 1, SIM_READS_SCC | SIM_READS_RESULT)
#define S2(name, arches, D, A, B, formula) ROW(name, arches, 1, 0)
#define S2D(name, arches, D, A, B, formula) ROW(name, arches, 1, SIM_READS_RESULT)
#define S2C(name, arches, D, A, B, formula, bit) ROW(name, arches, 1, SIM_WRITES_SCC)
#define S2R(name, arches, D, A, B, formula) ROW(name, arches, 1, SIM_READS_SCC)
#define S2CR(name, arches, D, A, B, formula, bit) ROW(name, arches, 1, SIM_READS_SCC | SIM_WRITES_SCC)
#define S3(name, arches, D, A, B, C, formula) ROW(name, arches, 1, 0)
#define K1(name, arches, flags, formula) ROW(name, arches, 1, flags)
#define K1C(name, arches, formula, bit) ROW(name, arches, 1, SIM_READS_RESULT | SIM_WRITES_SCC)
#define C2(name, arches, A, B, formula) ROW(name, arches, 0, SIM_WRITES_SCC)
#define CK(name, A, formula) ROW(name, GFX950, 0, SIM_WRITES_SCC)
#define EXEC(name, arches, before, formula)                                  \
    ROW(name##_b32, (arches) & GFX1250, 1, SIM_WRITES_EXEC | SIM_WRITES_SCC) \
    ROW(name##_b64, arches, 1, SIM_WRITES_EXEC | SIM_WRITES_SCC)
#define SPECIAL(name, arches, results, flags, run) { #name, arches, SIM_SALU, results, flags, run, NULL },

const sim_opcode sim_salu_opcodes[] = {
#include "salu.def"
    { .name = NULL },
};
