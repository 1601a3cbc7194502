/* Vector instructions that are more than a formula a lane: across lanes, by M0, scaled conversions. */
#include "valu_special.h"

#include "opcodes.h"

#include <math.h>

/* Across lanes
 * ------------
 */
void sim_run_readlane(sim_wave *w, const sim_instruction *inst)
{
    const uint32_t lane = (uint32_t)valu_uniform(w, &inst->operand[2], T_U32) % (uint32_t)w->lanes;
    sim_set_scalar(w, &inst->operand[0], sim_vector(w, &inst->operand[1], 0)[lane]);
}

/* Lane 0 if EXEC is 0. */
void sim_run_readfirstlane(sim_wave *w, const sim_instruction *inst)
{
    const uint64_t exec = sim_exec(w);
    const int      lane = exec == 0 ? 0 : __builtin_ctzll(exec);
    lane_row       room;
    sim_set_scalar(w, &inst->operand[0], valu_word(w, &inst->operand[1], 0, T_U32, room)[lane]);
}

void sim_run_writelane(sim_wave *w, const sim_instruction *inst)
{
    const uint32_t lane = (uint32_t)valu_uniform(w, &inst->operand[2], T_U32) % (uint32_t)w->lanes;
    sim_vector(w, &inst->operand[0], 0)[lane] = (uint32_t)valu_uniform(w, &inst->operand[1], T_U32);
}

void sim_run_swap(sim_wave *w, const sim_instruction *inst)
{
    uint32_t *a = sim_vector(w, &inst->operand[0], 0), *b = sim_vector(w, &inst->operand[1], 0);
    lane_row  old;
    memcpy(old, a, (size_t)w->lanes * sizeof *a);
    valu_write(a, b, sim_exec(w), w->lanes);
    valu_write(b, old, sim_exec(w), w->lanes);
}

/* Swaps the upper half of each group of the destination with the lower half of the source's: groups of 64 or 32
 * lanes. A lane whose EXEC bit is off is not written; bound_ctrl and fi are as for other permutes. */
void sim_run_permlane_swap(sim_wave *w, const sim_instruction *inst)
{
    const int      half = *(const int *)inst->op->detail;
    const uint64_t exec = sim_exec(w);
    uint32_t      *d = sim_vector(w, &inst->operand[0], 0), *s = sim_vector(w, &inst->operand[1], 0);
    for (int l = 0; l < w->lanes; l++) {
        if ((l & half) != 0)
            continue;
        const uint32_t low = s[l], high = d[l + half];
        if ((exec >> l & 1) != 0)
            s[l] = high;
        if ((exec >> (l + half) & 1) != 0)
            d[l + half] = low;
    }
}

/* result[l] = source[from[l]] for the lanes of EXEC. A source lane that is off reads as it stands with
 * `fetch_inactive`, else 0 with `bound_ctrl`, else the lane is not written. */
static void permute(sim_wave *w, const sim_instruction *inst, const int *from, bool fetch_inactive, bool bound_ctrl)
{
    const uint64_t  exec = sim_exec(w);
    lane_row        room, t;
    const uint32_t *s = valu_word(w, &inst->operand[1], 0, T_U32, room);
    uint64_t        mask = exec;
    for (int l = 0; l < w->lanes; l++) {
        const bool there = fetch_inactive || (exec >> from[l] & 1) != 0;
        t[l] = there ? s[from[l]] : 0;
        if (!there && !bound_ctrl)
            mask &= ~(UINT64_C(1) << l);
    }
    valu_write(sim_vector(w, &inst->operand[0], 0), t, mask, w->lanes);
}

/* Each lane of a row of 16 takes the lane that its four bits say, of its own row or of the other row of its half
 * wave. */
void sim_run_permlane16(sim_wave *w, const sim_instruction *inst)
{
    const permlane16 *how = inst->op->detail;
    lane_row          room;
    const uint32_t   *by_lane = how->by_lane ? valu_word(w, &inst->operand[2], 0, T_U32, room) : NULL;
    uint64_t          nibbles = 0;
    int               from[SIM_MAX_LANES];
    if (!how->by_lane)
        nibbles = (uint32_t)valu_uniform(w, &inst->operand[2], T_U32) | valu_uniform(w, &inst->operand[3], T_U32) << 32;
    for (int l = 0; l < w->lanes; l++) {
        const int i = (int)(how->by_lane ? by_lane[l] & 15 : nibbles >> 4 * (l & 15) & 15);
        from[l] = ((l & ~15) ^ how->other) + i;
    }
    permute(w, inst, from, (inst->op_sel & 1) != 0, (inst->op_sel >> 1 & 1) != 0);
}

/* Swaps the halves of a wave of 64; does nothing to one of 32 (RDNA3 ISA: V_PERMLANE64_B32), which is all that
 * gfx1250 has. */
void sim_run_permlane64(sim_wave *w, const sim_instruction *inst)
{
    (void)w, (void)inst;
}

/* Groups of a power of two of lanes: what HIP's __shfl, __shfl_up, __shfl_down and __shfl_xor ask for. A lane that
 * would leave its group keeps its own value. */
void sim_run_permlane(sim_wave *w, const sim_instruction *inst)
{
    const permlane_kind kind = *(const permlane_kind *)inst->op->detail;
    const uint32_t      which = (uint32_t)valu_uniform(w, &inst->operand[2], T_U32);
    const uint32_t      width = (uint32_t)valu_uniform(w, &inst->operand[3], T_U32) & 63;
    int                 from[SIM_MAX_LANES];
    if (width == 0 || (width & (width - 1)) != 0 || width > (uint32_t)w->lanes) {
        sim_fail(w, inst, "a group of %u lanes is not a power of two up to the wave", width);
        return;
    }
    for (int l = 0; l < w->lanes; l++) {
        const int i = l & ((int)width - 1), group = l - i;
        int       to = i;
        if (kind == LANE_BCAST)
            to = (int)(which & 63 & (width - 1));
        else if (kind == LANE_UP)
            to = which <= (uint32_t)i ? i - (int)which : i;
        else if (kind == LANE_DOWN)
            to = which < width - (uint32_t)i ? i + (int)which : i;
        else
            to = ((which & 63) ^ (uint32_t)i) < width ? (int)((which & 63) ^ (uint32_t)i) : i;
        from[l] = group + to;
    }
    permute(w, inst, from, true, false);
}

/* Registers by M0
 * ---------------
 */
void sim_run_movrel(sim_wave *w, const sim_instruction *inst)
{
    const relative *how = inst->op->detail;
    const int       offset = (int)w->s[SIM_M0], registers = SIM_VECTORS_GFX1250;
    sim_operand     to = inst->operand[0], from = inst->operand[1];
    const int       last_from = from.reg + 256 * w->msb[from.slot] + (how->source ? offset : 0);
    const int       last_to = to.reg + 256 * w->msb[to.slot] + (how->result ? offset : 0);
    if (last_from < 0 || last_from >= registers || last_to < 0 || last_to >= registers) {
        sim_fail(w, inst, "M0 = %d points outside the registers", offset);
        return;
    }
    if (how->result)
        to.reg = (uint16_t)(to.reg + offset);
    lane_row        room;
    const uint32_t *s = how->source ? sim_vector(w, &from, offset) : valu_word(w, &from, 0, T_U32, room);
    valu_write(sim_vector(w, &to, 0), s, sim_exec(w), w->lanes);
}

/* Two words at a time
 * -------------------
 */
/* Low: a word of the first source; high: a word of the second. op_sel chooses both: LLVM makes of elements 1 and 2 of two
 * pairs an op_sel:[1,0], of a copy an op_sel:[0,1]. */
void sim_run_pk_mov(sim_wave *w, const sim_instruction *inst)
{
    const int       first = inst->op_sel & 1, second = inst->op_sel >> 1 & 1;
    lane_row        room[2], t[2];
    const uint32_t *a = valu_word(w, &inst->operand[1], first, T_U64, room[0]);
    const uint32_t *b = valu_word(w, &inst->operand[2], second, T_U64, room[1]);
    memcpy(t[0], a, (size_t)w->lanes * sizeof t[0][0]);
    memcpy(t[1], b, (size_t)w->lanes * sizeof t[1][0]);
    for (int i = 0; i < 2; i++)
        valu_write(sim_vector(w, &inst->operand[0], i), t[i], sim_exec(w), w->lanes);
}

/* V_DIV_SCALE: the numerator or denominator `a` of c / b, scaled where the quotient's reciprocal or remainder would
 * leave the range, and whether v_div_fmas has to undo it. The manual's third case scales a huge denominator *up*,
 * which overflows; down is what makes the sequence right, and the numerator goes with it in the fourth case. */
typedef struct scale_limits {
    int span;     /* distance of exponents from where the quotient is too near the top */
    int tiny;     /* biased exponent below which a numerator's remainder may be denormal */
    int step;     /* log2 of the scale */
    int smallest; /* of a normal number */
    int bias;
} scale_limits;

static const scale_limits LIMITS_F32 = { 96, 23, 64, -126, 127 }, LIMITS_F64 = { 768, 53, 128, -1022, 1023 };

/* floor(log2 |a|) + bias as the format's exponent field has it: 0 for denormals. */
static int exponent_field(double a, const scale_limits *limits)
{
    int exponent;
    if (!isfinite(a))
        return 2 * limits->bias + 1;
    frexp(a, &exponent);
    return a == 0 || exponent - 1 < limits->smallest ? 0 : exponent - 1 + limits->bias;
}

/* Whether c / b, not 0, is below the smallest normal number. Quotients of doubles do not fit a double: long double. */
static bool quotient_is_denormal(double c, double b, const scale_limits *limits)
{
    const long double q = fabsl((long double)c / (long double)b);
    return q != 0 && q < ldexpl(1.0L, limits->smallest);
}

static double div_scale(double a, double b, double c, const scale_limits *limits, bool *undo)
{
    const int of_b = exponent_field(b, limits), of_c = exponent_field(c, limits);
    *undo = false;
    if (b == 0 || c == 0)
        return NAN;
    if (isnan(b) || isnan(c))
        return a;
    if (of_c - of_b >= limits->span) {
        *undo = true;
        return a == b ? ldexp(a, limits->step) : a;
    }
    if (of_b == 0)
        return ldexp(a, limits->step);
    const bool reciprocal = quotient_is_denormal(1.0, b, limits), quotient = quotient_is_denormal(c, b, limits);
    if (reciprocal && quotient) {
        *undo = true;
        return a == b ? ldexp(a, -limits->step) : a;
    }
    if (reciprocal)
        return ldexp(a, -limits->step);
    if (quotient) {
        *undo = true;
        return a == c ? ldexp(a, limits->step) : a;
    }
    return of_c <= limits->tiny ? ldexp(a, limits->step) : a;
}

static double lane_value(const sim_wave *w, const sim_operand *o, int l, bool wide)
{
    lane_row       room[2];
    const uint32_t low = valu_word(w, o, 0, wide ? T_F64 : T_F32, room[0])[l];
    double         v = sim_float_of(low);
    if (wide)
        v = sim_double_of(low | (uint64_t)valu_word(w, o, 1, T_F64, room[1])[l] << 32);
    v = o->absolute ? fabs(v) : v;
    return o->negate ? -v : v;
}

void sim_run_div_scale(sim_wave *w, const sim_instruction *inst)
{
    const bool          wide = *(const bool *)inst->op->detail;
    const scale_limits *limits = wide ? &LIMITS_F64 : &LIMITS_F32;
    const uint64_t      exec = sim_exec(w);
    lane_row            t[2];
    uint64_t            mask = 0;
    for (int l = 0; l < w->lanes; l++) {
        bool         undo;
        const double v = div_scale(lane_value(w, &inst->operand[2], l, wide), lane_value(w, &inst->operand[3], l, wide),
                                   lane_value(w, &inst->operand[4], l, wide), limits, &undo);
        mask |= (uint64_t)undo << l;
        t[0][l] = wide ? (uint32_t)sim_bits_of_double(v) : sim_bits_of((float)v);
        t[1][l] = (uint32_t)(sim_bits_of_double(v) >> 32);
    }
    for (int i = 0; i <= (int)wide; i++)
        valu_write(sim_vector(w, &inst->operand[0], i), t[i], exec, w->lanes);
    const sim_operand *to = &inst->operand[1];
    if (to->kind == SIM_SCALAR && w->lanes == 64)
        sim_set_scalar64(w, to->reg, mask & exec);
    else if (to->kind == SIM_SCALAR)
        w->s[to->reg] = (uint32_t)(mask & exec);
}

/* Conversions to a byte
 * ---------------------
 */
/* Of gfx950 op_sel[3:2] names the byte, of gfx1250 byte_sel; the others stay. */
void sim_run_to_byte(sim_wave *w, const sim_instruction *inst)
{
    const to_byte     *how = inst->op->detail;
    const int          byte = inst->byte_sel != 0 ? inst->byte_sel : inst->op_sel >> 2 & 3;
    const bool         saturate = (w->mode & SIM_MODE_FP16_OVFL) != 0;
    const sim_format   to = inst->clamp && how->to == SIM_FP8 ? SIM_E5M3 : how->to;
    const sim_operand *o = &inst->operand[1];
    lane_row           room, seeds, t;
    const uint32_t    *s = valu_word(w, o, 0, how->half ? T_F16 : T_F32, room);
    const uint32_t    *seed = valu_word(w, &inst->operand[2], 0, T_U32, seeds);
    uint32_t          *d = sim_vector(w, &inst->operand[0], 0);
    const bool         high = how->half && ((inst->op_sel & 1) != 0 || o->select == SIM_WORD_1);
    for (int l = 0; l < w->lanes; l++) {
        float v = how->half ? sim_f32_of_f16((high ? s[l] >> 16 : s[l]) & 0xFFFF) : sim_float_of(s[l]);
        v = o->absolute ? fabsf(v) : v;
        v = o->negate ? -v : v;
        const uint32_t code = sim_encode_stochastic(to, v, seed[l], saturate);
        t[l] = (d[l] & ~(0xFFu << 8 * byte)) | code << 8 * byte;
    }
    valu_write(d, t, sim_exec(w), w->lanes);
}

/* Scaled conversions
 * ------------------
 */
static int bits_of(uint8_t format)
{
    return format == OF_F32 ? 32 : sim_format_bits((sim_format)format);
}

/* Registers that `items` of a format fill. */
static int words_of(uint8_t format, int items)
{
    return (items * bits_of(format) + 31) / 32;
}

/* `width` bits from bit `at` of words that lie `stride` apart. */
static uint32_t take_bits(const uint32_t *words, int stride, int at, int width)
{
    const int      i = at / 32, shift = at % 32;
    const uint64_t low = words[i * stride];
    const uint64_t high = shift + width > 32 ? words[(i + 1) * stride] : 0;
    const uint64_t bits = (low | high << 32) >> shift;
    return (uint32_t)(width == 32 ? bits : bits & ((1u << width) - 1u));
}

static double item_value(uint8_t format, uint32_t bits)
{
    return format == OF_F32 ? (double)sim_float_of(bits) : (double)sim_decode((sim_format)format, bits);
}

static uint32_t item_code(const scaled *how, double v, uint32_t seed, bool saturate)
{
    if (how->to == OF_F32)
        return sim_bits_of((float)v);
    if ((how->how & STOCHASTIC) != 0)
        return sim_encode_stochastic((sim_format)how->to, v, seed, saturate);
    return sim_encode((sim_format)how->to, v, saturate);
}

/* The first bit of the source's items: gfx950 chooses a byte by op_sel[1:0] or a word by op_sel[0]. */
static int first_source_bit(const sim_instruction *inst, const scaled *how)
{
    const int used = how->items * bits_of(how->from);
    if ((how->how & DOWN) != 0)
        return used == 16 && (inst->op_sel & 1) != 0 ? 16 : 0; /* one half */
    return used == 8 ? 8 * (inst->op_sel & 3) : used == 16 ? 16 * (inst->op_sel & 1) : 0;
}

/* The first bit of the result in its register: a byte by op_sel[3:2], a word by the bit behind the sources. */
static int first_result_bit(const sim_instruction *inst, const scaled *how)
{
    const int used = how->items * bits_of(how->to);
    const int sources = inst->operand_count - 1;
    return used == 8 ? 8 * (inst->op_sel >> 2 & 3) : used == 16 ? 16 * (inst->op_sel >> sources & 1) : 0;
}

/* The lane and byte of a block's E8M0, laid out as WMMA's scales are: lane l % 16 of a half of the wave holds a row's
 * bytes. scale_sel: bit 0 says blocks of 16 and not of 32. Items of 8 bits: both halves of a wave lie in one block of
 * 32, but in two of 16; bits 2:1 are the first byte. Narrower items: the halves lie in neighbouring blocks of 32, two
 * apart in blocks of 16; bit 1 is the upper pair of bytes (of blocks of 32) or the second byte (of 16). The top bit
 * is the half that holds the scales. LLVM's MLIR lowering of scaled_ext_packed_matrix; the manual's text is not at
 * hand [M]. */
static double block_scale(const uint32_t *scales, const sim_instruction *inst, uint8_t from, int l)
{
    const bool eight = bits_of(from) == 8, blocks_of_16 = (inst->scale_sel & 1) != 0;
    const int  upper = l >> 4 & 1;
    int        byte, half;
    if (eight) {
        byte = (inst->scale_sel >> 1 & 3) + (blocks_of_16 ? upper : 0);
        half = inst->scale_sel >> 3 & 1;
    } else {
        const int second = inst->scale_sel >> 1 & 1;
        byte = blocks_of_16 ? second + 2 * upper : 2 * second + upper;
        half = inst->scale_sel >> 2 & 1;
    }
    return sim_value_of_e8m0[scales[16 * half + (l & 15)] >> 8 * (byte & 3) & 0xFF];
}

/* 2^(exponent - 127) of an F32's exponent field; of Inf and NaN: NaN (CDNA4 ISA: V_CVT_SCALEF32_*). */
static double exponent_scale(uint32_t bits)
{
    return sim_value_of_e8m0[bits >> 23 & 0xFF];
}

enum { MOST_ITEMS = 32 };

/* One lane: items out of `from` (words `stride` apart), scaled exactly, rounded once, into `to`. */
static void convert_lane(const scaled *how, const sim_instruction *inst, const uint32_t *from, int stride, double scale,
                         uint32_t seed, bool saturate, uint32_t *to)
{
    const int width = bits_of(how->from), to_width = bits_of(how->to);
    const int source = first_source_bit(inst, how), result = first_result_bit(inst, how);
    for (int i = 0; i < how->items; i++) {
        double v = item_value(how->from, take_bits(from, stride, source + i * width, width));
        v = (how->how & DOWN) != 0 ? v / scale : v * scale;
        const uint64_t code = item_code(how, v, seed, saturate);
        const int      at = result + i * to_width, shift = at % 32;
        const uint64_t bits = (to_width == 32 ? UINT32_MAX : (UINT64_C(1) << to_width) - 1u) << shift;
        uint32_t      *word = to + at / 32;
        word[0] = (word[0] & ~(uint32_t)bits) | (uint32_t)(code << shift);
        if (shift + to_width > 32)
            word[1] = (word[1] & ~(uint32_t)(bits >> 32)) | (uint32_t)(code << shift >> 32);
    }
}

void sim_run_scaled(sim_wave *w, const sim_instruction *inst)
{
    const scaled *how = inst->op->detail;
    const bool    two = (how->how & TWO_SOURCES) != 0;
    const int     in_words = two ? 1 : words_of(how->from, how->items), out_words = words_of(how->to, how->items);
    const int     n = w->lanes, scale_operand = inst->operand_count - 1;
    const bool    saturate = (w->mode & SIM_MODE_FP16_OVFL) != 0;
    static _Thread_local uint32_t from[MOST_ITEMS * SIM_MAX_LANES], to[SIM_MAX_LANES][MOST_ITEMS + 1];
    lane_row                      room, scale_room, seed_room;
    for (int k = 0; k < (two ? 2 : in_words); k++) {
        const sim_operand *o = &inst->operand[two ? 1 + k : 1];
        const uint32_t    *word = valu_word(w, o, two ? 0 : k, T_F32, room);
        for (int l = 0; l < n; l++) {
            uint32_t bits = word[l];
            bits = two && o->absolute ? bits & 0x7FFFFFFFu : bits;
            from[k * SIM_MAX_LANES + l] = two && o->negate ? bits ^ 0x80000000u : bits;
        }
    }
    const uint32_t *scales = valu_word(w, &inst->operand[scale_operand], 0, T_F32, scale_room);
    const uint32_t *seeds = valu_word(w, &inst->operand[scale_operand - 1], 0, T_U32, seed_room);
    for (int l = 0; l < n; l++) {
        for (int i = 0; i < out_words; i++)
            to[l][i] = sim_vector(w, &inst->operand[0], i)[l];
        const bool   block = (how->how & BLOCK_SCALE) != 0;
        const double scale = block ? block_scale(scales, inst, how->from, l) : exponent_scale(scales[l]);
        convert_lane(how, inst, from + l, SIM_MAX_LANES, scale, seeds[l], saturate, to[l]);
    }
    for (int i = 0; i < out_words; i++) {
        for (int l = 0; l < n; l++)
            room[l] = to[l][i];
        valu_write(sim_vector(w, &inst->operand[0], i), room, sim_exec(w), n);
    }
}
