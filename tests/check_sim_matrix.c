/* Every MFMA and WMMA, against layouts written a second time from the ISA manuals and sums in exact or wider
 * arithmetic.
 *
 * What an instruction computes is read off its name here, not out of the simulator's table; a row of that table whose
 * name this file cannot read fails. Layout tests use small integers (halves, of FP4), different in each place, with
 * other data in A than in B: every sum is exact in any order, so bits are compared. Where A and B have one layout,
 * exchanging two k in both cannot be seen by anyone; mixed widths and scales that differ by block show it.
 */
#include "convert.h"
#include "machine.h"
#include "matrix.h"
#include "opcodes.h"
#include "testing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { D_AT = 0, A_AT = 64, B_AT = 96, C_AT = 128, SCALE_A_AT = 192, SCALE_B_AT = 200, FILE_REGISTERS = 1024 };
enum { MAX_M = 32, MAX_K = 128, MAX_ROWS = 64 /* of all blocks */ };

/* As ck_assert_msg, which writes to its parent process at each call: too slow for the elements of matrices. */
#define EXPECT(condition, ...)         \
    do {                               \
        if (!(condition))              \
            ck_abort_msg(__VA_ARGS__); \
    } while (0)

/* What a name says
 * ----------------
 */
typedef enum type { FP8, BF8, FP6, BF6, FP4, F16, BF16, F32, F64, I8, IU8, I32 } type;

static const struct {
    const char *name;
    int         bits, exponent, mantissa, bias; /* of floats */
} types[] = {
    [FP8] = { "fp8", 8, 4, 3, 7 },      [BF8] = { "bf8", 8, 5, 2, 15 },    [FP6] = { "fp6", 6, 2, 3, 1 },
    [BF6] = { "bf6", 6, 3, 2, 3 },      [FP4] = { "fp4", 4, 2, 1, 1 },     [F16] = { "f16", 16, 5, 10, 15 },
    [BF16] = { "bf16", 16, 8, 7, 127 }, [F32] = { "f32", 32, 8, 23, 127 }, [F64] = { "f64", 64, 11, 52, 1023 },
    [I8] = { "i8", 8, 0, 0, 0 },        [IU8] = { "iu8", 8, 0, 0, 0 },     [I32] = { "i32", 32, 0, 0, 0 },
};

typedef struct product {
    const char *name;
    sim_arch    arch;
    int         m, n, k, blocks;
    type        a, b, c, d;
    bool        chosen; /* f8f6f4 */
    int         scale;  /* k of one scale; 0: none */
} product;

static type type_named(const char *name)
{
    for (int t = FP8; t <= I32; t++)
        if (strcmp(types[t].name, name) == 0)
            return (type)t;
    ck_abort_msg("no type \"%s\"", name);
    return FP8;
}

/* v_mfma_[scale_]D_MxNxK[_Bb]_A[_B], v_wmma_[scale_|scale16_]D_MxNxK_A[_B] */
static product read_name(const char *name)
{
    product p = { .name = name, .blocks = 1 };
    char    words[80];
    ck_assert_int_lt(strlen(name), sizeof words);
    strcpy(words, name);
    char *word = strtok(words, "_");
    ck_assert_str_eq(word, "v");
    word = strtok(NULL, "_");
    p.arch = strcmp(word, "wmma") == 0 ? SIM_GFX1250 : SIM_GFX950;
    ck_assert(p.arch == SIM_GFX1250 || strcmp(word, "mfma") == 0);
    word = strtok(NULL, "_");
    if (strncmp(word, "scale", 5) == 0) {
        p.scale = strcmp(word, "scale16") == 0 ? 16 : 32;
        word = strtok(NULL, "_");
    }
    const bool mixed = strcmp(word, "bf16f32") == 0; /* C is F32 */
    p.d = mixed ? BF16 : type_named(word);
    p.c = mixed ? F32 : p.d;
    ck_assert_int_eq(sscanf(strtok(NULL, "_"), "%dx%dx%d", &p.m, &p.n, &p.k), 3);
    word = strtok(NULL, "_");
    if (word[strlen(word) - 1] == 'b') {
        p.blocks = atoi(word);
        word = strtok(NULL, "_");
    }
    p.chosen = strcmp(word, "f8f6f4") == 0;
    if (p.chosen) {
        p.a = p.b = FP8;
    } else if (strcmp(word, "f4") == 0) {
        p.a = p.b = FP4;
    } else {
        p.a = type_named(word);
        word = strtok(NULL, "_");
        p.b = word == NULL ? p.a : type_named(word);
    }
    return p;
}

static int lanes_of(const product *p)
{
    return p->arch == SIM_GFX950 ? 64 : 32;
}

/* Layouts: the tables of CDNA4 ISA 7.1.4, 7.1.5 and CDNA5 ISA 7.12
 * ------------------------------------------------------------------
 */
typedef struct place {
    int block, row, k;
} place;

/* Of item e of lane l of A (of B with n for m). */
static place factor_place(const product *p, type t, int rows, int l, int e)
{
    const int bits = types[t].bits;
    if (p->arch == SIM_GFX1250) {
        const int h = l / 16;
        if (rows == 32) /* 32x128 of 4 bits: rows 16 to 31 in the second eight registers */
            return (place){ 0, l % 16 + 16 * (e / 64), 64 * (e % 64 / 32) + 32 * h + e % 32 };
        if (bits == 32)
            return (place){ 0, l % 16, 2 * h + e };
        if (bits == 16 || (bits == 8 && !p->chosen))
            return (place){ 0, l % 16, 16 * (e / 8) + 8 * h + e % 8 };
        if (bits == 8)
            return (place){ 0, l % 16, 32 * (e / 16) + 16 * h + e % 16 };
        return (place){ 0, l % 16, 64 * (e / 32) + 32 * h + e % 32 };
    }
    if (p->chosen && bits == 8)
        return p->m == 16 ? (place){ 0, l % 16, 64 * (e / 16) + 16 * (l / 16) + e % 16 }
                          : (place){ 0, l % 32, 32 * (e / 16) + 16 * (l / 32) + e % 16 };
    const int consecutive = p->k * rows * p->blocks / 64; /* K_L */
    return (place){ l / rows % p->blocks, l % rows, consecutive * (l / (rows * p->blocks)) + e };
}

/* Of item e of lane l of C or D; column in k. */
static place result_place(const product *p, int l, int e)
{
    if (p->arch == SIM_GFX1250)
        return (place){ 0, 16 * (e / 8) + 8 * (l / 16) + e % 8, l % 16 };
    if (p->d == F64)
        return p->m == 16 ? (place){ 0, 4 * e + l / 16, l % 16 } : (place){ l / 16, l / 4 % 4, l % 4 };
    if (p->m == 4)
        return (place){ l / 4, e, l % 4 };
    if (p->m == 16)
        return (place){ e / 4, 4 * (l / 16) + e % 4, l % 16 };
    return (place){ e / 16, 8 * (e % 16 / 4) + 4 * (l / 32) + e % 4, l % 32 };
}

/* Codes
 * -----
 */
/* By definition; special codes of the formats that have them. */
static double value_of(type t, uint64_t code)
{
    const int exponent = types[t].exponent, mantissa = types[t].mantissa, bias = types[t].bias;
    if (t == I8 || t == I32)
        return t == I8 ? (double)(int8_t)code : (double)(int32_t)code;
    if (t == IU8)
        return (double)(uint8_t)code;
    const uint64_t field = code >> mantissa & ((1u << exponent) - 1u), m = code & ((UINT64_C(1) << mantissa) - 1);
    const double   sign = (code >> (exponent + mantissa) & 1) != 0 ? -1.0 : 1.0;
    if (t == FP8 && (code & 0x7F) == 0x7F)
        return NAN;
    if (t != FP8 && t != FP6 && t != BF6 && t != FP4 && field == (1u << exponent) - 1u)
        return m != 0 ? NAN : sign * INFINITY;
    if (field == 0)
        return sign * ldexp((double)m, 1 - bias - mantissa);
    return sign * ldexp((double)(m + (UINT64_C(1) << mantissa)), (int)field - bias - mantissa);
}

/* The code of a value that the type has. */
static uint64_t code_of(type t, double x)
{
    if (t == F64) {
        uint64_t code;
        memcpy(&code, &x, sizeof code);
        return code;
    }
    if (t == F32 || t == BF16) {
        const float f = (float)x;
        uint32_t    code;
        memcpy(&code, &f, sizeof code);
        ck_assert(t == F32 || (code & 0xFFFF) == 0);
        return t == F32 ? code : code >> 16;
    }
    if (types[t].exponent == 0)
        return (uint64_t)(int64_t)x & (t == I32 ? 0xFFFFFFFFu : 0xFFu);
    const int    mantissa = types[t].mantissa, bias = types[t].bias;
    const double size = fabs(x);
    int          exponent;
    frexp(size, &exponent); /* size in [2^(exponent - 1), 2^exponent) */
    const int field = exponent - 1 + bias;
    uint64_t  code = (uint64_t)ldexp(size, bias - 1 + mantissa);
    if (size != 0 && field > 0)
        code =
            ((uint64_t)field << mantissa) + (uint64_t)ldexp(size, mantissa + 1 - exponent) - (UINT64_C(1) << mantissa);
    code |= signbit(x) ? UINT64_C(1) << (types[t].bits - 1) : 0;
    EXPECT(value_of(t, code) == x, "%g is no %s", x, types[t].name);
    return code;
}

/* A wave and its registers
 * ------------------------
 */
typedef struct machine {
    sim_group group;
    sim_wave  wave;
} machine;

static void machine_init(machine *mach, sim_arch arch)
{
    memset(mach, 0, sizeof *mach);
    mach->group.arch = arch;
    mach->wave.group = &mach->group;
    mach->wave.lanes = arch == SIM_GFX950 ? 64 : 32;
    mach->wave.v = calloc((size_t)FILE_REGISTERS * 64, sizeof *mach->wave.v);
    ck_assert_ptr_nonnull(mach->wave.v);
}

static void machine_free(machine *mach)
{
    free(mach->wave.v);
}

/* Bits at..at+bits-1 of a lane's registers from `reg` on, little-endian across registers. */
static void put_bits(sim_wave *w, int reg, int lane, int at, int bits, uint64_t code)
{
    for (int left = bits; left > 0;) {
        const int      shift = at % 32, count = left < 32 - shift ? left : 32 - shift;
        uint32_t      *word = &w->v[(reg + at / 32) * w->lanes + lane];
        const uint32_t mask = (0xFFFFFFFFu >> (32 - count)) << shift;
        *word = (*word & ~mask) | ((uint32_t)code << shift & mask);
        code >>= count;
        at += count;
        left -= count;
    }
}

static uint64_t get_bits(const sim_wave *w, int reg, int lane, int at, int bits)
{
    uint64_t code = 0;
    for (int got = 0; got < bits;) {
        const int      shift = (at + got) % 32, count = bits - got < 32 - shift ? bits - got : 32 - shift;
        const uint32_t part = w->v[(reg + (at + got) / 32) * w->lanes + lane] >> shift & 0xFFFFFFFFu >> (32 - count);
        code |= (uint64_t)part << got;
        got += count;
    }
    return code;
}

/* The matrices of one instruction, and what surrounds them. */
typedef struct sample {
    product  p;
    uint64_t a[MAX_ROWS][MAX_K], b[MAX_ROWS][MAX_K]; /* codes; B by column */
    uint64_t c[MAX_ROWS][MAX_M];
    double   scale_a[MAX_M][8], scale_b[MAX_M][8];
    char     suffix[160];            /* modifiers, with a space in front */
    char     c_text[24], scales[40]; /* operands, or "" for the registers' */
    int      lane_a[64], lane_b[64]; /* the lane that is read in place of each */
    bool     a_unsigned, b_unsigned; /* IU8 */
} sample;

static int factor_items(const product *p, int rows)
{
    return rows * p->k * p->blocks / lanes_of(p);
}

static int result_items(const product *p)
{
    return p->m * p->n * p->blocks / lanes_of(p);
}

static void print_tuple(char *to, size_t size, char file, int reg, int count)
{
    if (count == 1)
        snprintf(to, size, "%c%d", file, reg);
    else
        snprintf(to, size, "%c[%d:%d]", file, reg, reg + count - 1);
}

static int registers_of(type t, int items)
{
    return items * types[t].bits / 32;
}

static sample *new_sample(const product *p)
{
    sample *s = calloc(1, sizeof *s);
    ck_assert_ptr_nonnull(s);
    s->p = *p;
    for (int l = 0; l < 64; l++)
        s->lane_a[l] = s->lane_b[l] = l;
    for (int i = 0; i < MAX_M; i++)
        for (int j = 0; j < 8; j++)
            s->scale_a[i][j] = s->scale_b[i][j] = 1.0;
    return s;
}

/* The text of the instruction with A, B, C and D at their places. */
static void print_instruction(const sample *s, char *to, size_t size)
{
    const product *p = &s->p;
    char           d[24], a[24], b[24], c[24], scales[40] = "", formats[96] = "";
    print_tuple(d, sizeof d, 'v', D_AT, registers_of(p->d, result_items(p)));
    print_tuple(a, sizeof a, 'v', A_AT, registers_of(p->a, factor_items(p, p->m)));
    print_tuple(b, sizeof b, 'v', B_AT, registers_of(p->b, factor_items(p, p->n)));
    print_tuple(c, sizeof c, 'v', C_AT, registers_of(p->c, result_items(p)));
    if (p->scale == 16)
        snprintf(scales, sizeof scales, ", v[%d:%d], v[%d:%d]", SCALE_A_AT, SCALE_A_AT + 1, SCALE_B_AT, SCALE_B_AT + 1);
    else if (p->scale == 32)
        snprintf(scales, sizeof scales, ", v%d, v%d", SCALE_A_AT, SCALE_B_AT);
    if (p->chosen && p->arch == SIM_GFX950)
        snprintf(formats, sizeof formats, " cbsz:%d blgp:%d", (int)p->a, (int)p->b);
    else if (p->chosen) {
        static const char *const name[] = { "FP8", "BF8", "FP6", "BF6", "FP4" };
        snprintf(formats, sizeof formats, " matrix_a_fmt:MATRIX_FMT_%s matrix_b_fmt:MATRIX_FMT_%s", name[p->a],
                 name[p->b]);
    }
    snprintf(to, size, "%s %s, %s, %s, %s%s%s%s", p->name, d, a, b, s->c_text[0] != 0 ? s->c_text : c,
             s->scales[0] != 0 ? s->scales : scales, s->suffix, formats);
}

/* Writes the registers, runs, and returns whether the wave is still alive; D is in the wave's registers. */
static bool run(machine *mach, const sample *s)
{
    const product *p = &s->p;
    sim_wave      *w = &mach->wave;
    for (int l = 0; l < w->lanes; l++) {
        for (int e = 0; e < factor_items(p, p->m); e++) {
            const place at = factor_place(p, p->a, p->m, l, e);
            put_bits(w, A_AT, l, e * types[p->a].bits, types[p->a].bits, s->a[at.block * p->m + at.row][at.k]);
        }
        for (int e = 0; e < factor_items(p, p->n); e++) {
            const place at = factor_place(p, p->b, p->n, l, e);
            put_bits(w, B_AT, l, e * types[p->b].bits, types[p->b].bits, s->b[at.block * p->n + at.row][at.k]);
        }
        for (int e = 0; e < result_items(p); e++) {
            const place at = result_place(p, l, e);
            put_bits(w, C_AT, l, e * types[p->c].bits, types[p->c].bits, s->c[at.block * p->m + at.row][at.k]);
        }
    }
    for (int r = 0; r < registers_of(p->d, result_items(p)) + 1; r++)
        for (int l = 0; l < w->lanes; l++)
            w->v[(D_AT + r) * w->lanes + l] = 0xDEADBEEFu;
    char text[400];
    print_instruction(s, text, sizeof text);
    sim_instruction inst;
    ck_assert_msg(sim_parse(p->arch, text, &inst), "%s: %s", text, sim_last_error());
    ck_assert_str_eq(inst.op->name, p->name);
    w->status = SIM_RUNNING;
    inst.op->run(w, &inst);
    if (w->status == SIM_RUNNING) /* nothing behind D is written */
        for (int l = 0; l < w->lanes; l++)
            EXPECT(w->v[registers_of(p->d, result_items(p)) * w->lanes + l] == 0xDEADBEEFu, "%s writes behind D",
                   p->name);
    return w->status == SIM_RUNNING;
}

/* A's code at a place, as the multiplier reads it: from the lane that stands in for the one that holds it. */
static double a_value(const sample *s, int block, int row, int k, int lane, int item)
{
    const product *p = &s->p;
    if (s->lane_a[lane] == lane)
        return value_of(p->a == IU8 && !s->a_unsigned ? I8 : p->a, s->a[block * p->m + row][k]);
    const place at = factor_place(p, p->a, p->m, s->lane_a[lane], item);
    return value_of(p->a, s->a[at.block * p->m + at.row][at.k]);
}

static double b_value(const sample *s, int block, int column, int k, int lane, int item)
{
    const product *p = &s->p;
    if (s->lane_b[lane] == lane)
        return value_of(p->b == IU8 && !s->b_unsigned ? I8 : p->b, s->b[block * p->n + column][k]);
    const place at = factor_place(p, p->b, p->n, s->lane_b[lane], item);
    return value_of(p->b, s->b[at.block * p->n + at.row][at.k]);
}

/* Every product of the result at a place: sum, and sum of sizes, without C. */
typedef struct sums {
    long double sum, size;
} sums;

typedef struct dense {
    double a[MAX_ROWS][MAX_K], b[MAX_ROWS][MAX_K];
} dense;

/* Good until the next call: fresh memory each time would cost more than the products. */
static const dense *values_of_sample(const sample *s)
{
    const product *p = &s->p;
    static dense   values_of_last;
    dense         *values = &values_of_last;
    for (int l = 0; l < lanes_of(p); l++) {
        for (int e = 0; e < factor_items(p, p->m); e++) {
            const place at = factor_place(p, p->a, p->m, l, e);
            values->a[at.block * p->m + at.row][at.k] = a_value(s, at.block, at.row, at.k, l, e);
        }
        for (int e = 0; e < factor_items(p, p->n); e++) {
            const place at = factor_place(p, p->b, p->n, l, e);
            values->b[at.block * p->n + at.row][at.k] = b_value(s, at.block, at.row, at.k, l, e);
        }
    }
    return values;
}

static sums sums_at(const sample *s, const dense *values, place at)
{
    const product *p = &s->p;
    sums           result = { 0, 0 };
    for (int k = 0; k < p->k; k++) {
        long double term = (long double)values->a[at.block * p->m + at.row][k] * values->b[at.block * p->n + at.k][k];
        if (p->scale != 0)
            term *= (long double)s->scale_a[at.row][k / p->scale] * s->scale_b[at.k][k / p->scale];
        result.sum += term;
        result.size += fabsl(term);
    }
    return result;
}

static uint64_t result_code(machine *mach, const product *p, int l, int e)
{
    return get_bits(&mach->wave, D_AT, l, e * types[p->d].bits, types[p->d].bits);
}

/* Compares bits: every sum is exact. */
static void check_exact(machine *mach, const sample *s)
{
    const product *p = &s->p;
    ck_assert_msg(run(mach, s), "%s fails: %s", p->name, sim_last_error());
    const dense *values = values_of_sample(s);
    for (int l = 0; l < lanes_of(p); l++) {
        for (int e = 0; e < result_items(p); e++) {
            const place  at = result_place(p, l, e);
            const double want =
                (double)sums_at(s, values, at).sum + value_of(p->c, s->c[at.block * p->m + at.row][at.k]);
            const uint64_t got = result_code(mach, p, l, e);
            EXPECT(got == code_of(p->d, want == 0 ? 0.0 : want),
                   "%s%s (%s, %s): D[%d][%d][%d], lane %d item %d: got %g, want %g", p->name, s->suffix,
                   types[p->a].name, types[p->b].name, at.block, at.row, at.k, l, e, value_of(p->d, got), want);
        }
    }
}

/* Data
 * ----
 */
static uint32_t random_state;

static uint32_t draw(uint32_t below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    return random_state % below;
}

/* A small integer that the type has: so small that sums are exact in the result too. */
static double small_integer(const product *p, type t)
{
    if (p->d == F16 || p->d == BF16)
        return (double)draw(3) - 1.0; /* |sum| <= 128 + |C|: exact in eleven bits, and in BF16's eight with K of 32 */
    static const double fp4[] = { -6, -4, -3, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3, 4, 6 };
    if (t == FP4)
        return fp4[draw(15)];
    if (t == BF6 || t == BF8)
        return (double)draw(9) - 4.0;
    if (t == FP6)
        return (double)draw(15) - 7.0;
    if (t == I8)
        return (double)draw(256) - 128.0;
    if (t == IU8)
        return draw(128);
    if (t == FP8)
        return (double)draw(33) - 16.0;
    return (double)draw(255) - 127.0;
}

static void fill_small(sample *s)
{
    const product *p = &s->p;
    for (int block = 0; block < p->blocks; block++) {
        for (int k = 0; k < p->k; k++) {
            for (int i = 0; i < p->m; i++)
                s->a[block * p->m + i][k] = code_of(p->a, small_integer(p, p->a));
            for (int j = 0; j < p->n; j++)
                s->b[block * p->n + j][k] = code_of(p->b, small_integer(p, p->b));
        }
        for (int i = 0; i < p->m; i++)
            for (int j = 0; j < p->n; j++)
                s->c[block * p->m + i][j] = code_of(p->c, (double)draw(p->d == F16 || p->d == BF16 ? 64 : 1000));
    }
}

static bool same_product(const product *p, type a, type b)
{
    return p->a == a && p->b == b;
}

/* Calls `check` for each row of the table, and each pair of formats where there is a choice. */
static void each_product(void (*check)(const product *p))
{
    int count = 0;
    for (const sim_opcode *op = sim_matrix_opcodes; op->name != NULL; op++, count++) {
        product p = read_name(op->name);
        ck_assert_uint_eq(op->arches, 1u << p.arch);
        for (int a = FP8; a <= FP4; a++) {
            for (int b = FP8; b <= FP4; b++) {
                if (!p.chosen && (a != FP8 || b != FP8))
                    continue;
                if (p.chosen) {
                    p.a = (type)a;
                    p.b = (type)b;
                }
                check(&p);
            }
        }
    }
    ck_assert_int_eq(count, 40 + 29); /* MFMA and WMMA of the manuals' tables */
}

/* Scales that differ from block to block, and from row to row. */
static void put_scales(machine *mach, sample *s, int byte)
{
    const product *p = &s->p;
    sim_wave      *w = &mach->wave;
    if (p->scale == 0)
        return;
    for (int which = 0; which < 2; which++) {
        const int rows = which == 0 ? p->m : p->n, reg = which == 0 ? SCALE_A_AT : SCALE_B_AT;
        for (int r = 0; r < 2; r++)
            for (int l = 0; l < w->lanes; l++)
                w->v[(reg + r) * w->lanes + l] = 0x9C3E11F0u * (uint32_t)(l + r + 1); /* not to be read */
        for (int row = 0; row < rows; row++) {
            for (int block = 0; block < p->k / p->scale; block++) {
                const int power = (int)((row * 5 + block * 3 + which) % 4) - 1;
                (which == 0 ? s->scale_a : s->scale_b)[row][block] = ldexp(1.0, power);
                const uint64_t code = (uint64_t)(127 + power);
                if (p->arch == SIM_GFX950)
                    put_bits(w, reg, row + p->m * block, 8 * byte, 8, code);
                else
                    put_bits(w, reg, row + (rows == 32 ? 0 : 16 * (byte % 2)), 8 * block, 8, code);
            }
        }
    }
    if (p->arch == SIM_GFX950 && byte != 0)
        snprintf(s->suffix, sizeof s->suffix, " op_sel:[%d,%d,0] op_sel_hi:[%d,%d,0]", byte % 2, byte % 2, byte / 2,
                 byte / 2);
    else if (p->arch == SIM_GFX950)
        strcpy(s->suffix, " op_sel_hi:[0,0,0]");
    else if (byte % 2 == 1)
        snprintf(s->suffix, sizeof s->suffix, "%s matrix_b_scale:MATRIX_SCALE_ROW1",
                 p->m == 32 ? "" : " matrix_a_scale:MATRIX_SCALE_ROW1");
}

/* As the disassembler prints it, B's column of 16 lanes in row 1 where A has 32 rows. */
static void check_layout(const product *p)
{
    machine mach;
    machine_init(&mach, p->arch);
    for (int round = 0; round < 4; round++) {
        sample *s = new_sample(p);
        fill_small(s);
        if (p->a == IU8)
            s->a_unsigned = s->b_unsigned = true;
        put_scales(&mach, s, round);
        if (p->m == 32 && p->scale != 0 && p->arch == SIM_GFX1250 && round % 2 == 1)
            strcpy(s->suffix, " matrix_b_scale:MATRIX_SCALE_ROW1");
        check_exact(&mach, s);
        free(s);
    }
    machine_free(&mach);
}

START_TEST(every_shape_multiplies_by_the_layouts)
{
    random_state = 1234567;
    each_product(check_layout);
}
END_TEST

/* One k at a time: A is different in each place, B is one at one k. D is then a column of A, times small numbers. */
static void check_each_k(const product *p)
{
    if (p->d == F16 || p->d == BF16)
        return; /* the F32 forms have the same operands */
    if (p->chosen && p->b != (type)((p->a + 2) % 5))
        return; /* each format on each side, mostly with one of another width */
    machine mach;
    machine_init(&mach, p->arch);
    sample *s = new_sample(p);
    put_scales(&mach, s, 0);
    for (int which = 0; which < 2; which++) {
        for (int k = 0; k < p->k; k++) {
            fill_small(s);
            s->a_unsigned = s->b_unsigned = true;
            for (int block = 0; block < p->blocks; block++)
                for (int other = 0; other < p->k; other++)
                    for (int i = 0; i < (which == 0 ? p->n : p->m); i++)
                        (which == 0 ? s->b : s->a)[block * (which == 0 ? p->n : p->m) + i][other] =
                            code_of(which == 0 ? p->b : p->a, other == k ? 1.0 + i % 2 : 0.0);
            check_exact(&mach, s);
        }
    }
    free(s);
    machine_free(&mach);
}

START_TEST(every_k_meets_its_partner)
{
    random_state = 7654321;
    each_product(check_each_k);
}
END_TEST

/* Any finite codes. */
static uint64_t random_code(type t)
{
    uint64_t code;
    do {
        code = t == F64 ? (uint64_t)draw(UINT32_MAX) << 32 | draw(UINT32_MAX) : draw(UINT32_MAX);
        code &= t == F64 ? UINT64_MAX : (UINT64_C(1) << types[t].bits) - 1;
        if (t == F32) /* within 2^+-30 */
            code = (code & 0x807FFFFFu) | (uint64_t)(97 + draw(60)) << 23;
        if (t == BF16)
            code = (code & 0x807Fu) | (uint64_t)(97 + draw(60)) << 7;
        if (t == F64)
            code = (code & 0x800FFFFFFFFFFFFFu) | (uint64_t)(993 + draw(60)) << 52;
        if (t == F16 && (code & 0x7C00) > 0x4C00) /* |x| < 32: F16 results stay finite */
            code ^= 0x4000;
    } while (isnan(value_of(t, code)) || isinf(value_of(t, code)));
    return code;
}

/* Units of the last place of D, as a part of a value: half of one for the rounding, one for other orders of F64's
 * chain. */
static long double rounding(type d)
{
    return d == F16 ? 0x1p-11L : d == BF16 ? 0x1p-8L : d == F64 ? 0x1p-50L : 0;
}

static void check_random(const product *p)
{
    if (p->d == I32)
        return; /* exact above */
    machine mach;
    machine_init(&mach, p->arch);
    sample *s = new_sample(p);
    for (int block = 0; block < p->blocks; block++) {
        for (int k = 0; k < p->k; k++) {
            for (int i = 0; i < p->m; i++)
                s->a[block * p->m + i][k] = p->d == F16 && p->a == BF8 ? draw(0x40) : random_code(p->a);
            for (int j = 0; j < p->n; j++)
                s->b[block * p->n + j][k] = p->d == F16 && p->b == BF8 ? draw(0x40) : random_code(p->b);
        }
        for (int i = 0; i < p->m; i++)
            for (int j = 0; j < p->n; j++)
                s->c[block * p->m + i][j] = random_code(p->c);
    }
    put_scales(&mach, s, 1);
    ck_assert_msg(run(&mach, s), "%s fails: %s", p->name, sim_last_error());
    const dense *values = values_of_sample(s);
    for (int l = 0; l < lanes_of(p); l++) {
        for (int e = 0; e < result_items(p); e++) {
            const place       at = result_place(p, l, e);
            const sums        t = sums_at(s, values, at);
            const double      c = value_of(p->c, s->c[at.block * p->m + at.row][at.k]);
            const double      got = value_of(p->d, result_code(&mach, p, l, e));
            const long double want = t.sum + c, bound = 1e-5L * (t.size + fabsl(c)) + rounding(p->d) * fabsl(want);
            if (p->d == F16 && fabsl(want) >= 65520)
                EXPECT(isinf(got), "%s: got %g, want Inf", p->name, got);
            else
                EXPECT(fabsl(got - want) <= bound, "%s: D[%d][%d]: got %.9g, want %.9Lg, bound %.3Lg", p->name, at.row,
                       at.k, got, want, bound);
        }
    }
    free(s);
    machine_free(&mach);
}

START_TEST(random_data_is_near_the_exact_sum)
{
    random_state = 99;
    each_product(check_random);
}
END_TEST

/* Numbers at the edge
 * -------------------
 */
/* All of A, B one, C zero. */
static sample *ones(const char *name, type a, type b)
{
    product p = read_name(name);
    if (p.chosen) {
        p.a = a;
        p.b = b;
    }
    ck_assert(same_product(&p, a, b));
    sample *s = new_sample(&p);
    for (int k = 0; k < p.k; k++)
        for (int i = 0; i < MAX_ROWS; i++) {
            s->a[i][k] = code_of(p.a, 1.0);
            s->b[i][k] = code_of(p.b, 1.0);
        }
    return s;
}

/* The result's code at row, column of block 0. */
static uint64_t code_at(machine *mach, const product *p, int row, int column)
{
    for (int l = 0; l < lanes_of(p); l++)
        for (int e = 0; e < result_items(p); e++) {
            const place at = result_place(p, l, e);
            if (at.block == 0 && at.row == row && at.k == column)
                return result_code(mach, p, l, e);
        }
    ck_abort_msg("no place");
    return 0;
}

static const struct {
    const char *name;
    type        a, b;
    uint64_t    nan;
} float_forms[] = {
    { "v_mfma_f32_16x16x128_f8f6f4", FP8, BF8, 0x7FC00000 },  { "v_mfma_f32_32x32x64_f8f6f4", BF8, FP4, 0x7FC00000 },
    { "v_mfma_f32_16x16x32_fp8_bf8", FP8, BF8, 0x7FC00000 },  { "v_mfma_f32_16x16x32_bf16", BF16, BF16, 0x7FC00000 },
    { "v_mfma_f32_4x4x4_16b_f16", F16, F16, 0x7FC00000 },     { "v_mfma_f32_32x32x2_f32", F32, F32, 0x7FC00000 },
    { "v_wmma_f32_16x16x128_fp8_bf8", FP8, BF8, 0x7FC00000 }, { "v_wmma_f16_16x16x64_bf8_bf8", BF8, BF8, 0x7E00 },
    { "v_wmma_bf16_16x16x32_bf16", BF16, BF16, 0x7FC0 },      { "v_wmma_f32_16x16x32_f16", F16, F16, 0x7FC00000 },
};

enum { FLOAT_FORMS = sizeof float_forms / sizeof float_forms[0] };

static uint64_t nan_code(type t)
{
    return t == FP8 ? 0xFF : t == BF8 ? 0x7D : t == F16 ? 0x7C01 : t == BF16 ? 0xFF81 : 0xFFA00000;
}

static uint64_t inf_code(type t)
{
    return t == BF8 ? 0x7C : t == F16 ? 0x7C00 : t == BF16 ? 0x7F80 : 0x7F800000;
}

static uint64_t sign_code(type t)
{
    return UINT64_C(1) << (types[t].bits - 1);
}

/* NaN of A makes its row NaN, of B its column, of C its place; the rest is untouched. */
START_TEST(nan_spreads_and_is_quiet)
{
    sample        *s = ones(float_forms[_i].name, float_forms[_i].a, float_forms[_i].b);
    const product *p = &s->p;
    machine        mach;
    machine_init(&mach, p->arch);
    s->a[2][p->k - 1] = nan_code(p->a);
    if (p->b != FP4)
        s->b[1][0] = nan_code(p->b);
    s->c[0][3] = p->c == F32 ? 0x7F800001 : p->c == F16 ? 0xFC01 : 0x7F81;
    ck_assert(run(&mach, s));
    for (int i = 0; i < p->m; i++)
        for (int j = 0; j < p->n; j++) {
            const bool is_nan = i == 2 || (j == 1 && p->b != FP4) || (i == 0 && j == 3);
            EXPECT(code_at(&mach, p, i, j) == (is_nan ? float_forms[_i].nan : code_of(p->d, p->k)),
                   "%s: D[%d][%d] = 0x%llx", p->name, i, j, (unsigned long long)code_at(&mach, p, i, j));
        }
    free(s);
    machine_free(&mach);
}
END_TEST

/* Inf * 1, Inf * 0, Inf - Inf, Inf of C. */
START_TEST(infinity_follows_ieee)
{
    sample        *s = ones(float_forms[_i].name, float_forms[_i].a, float_forms[_i].b);
    const product *p = &s->p;
    machine        mach;
    machine_init(&mach, p->arch);
    const bool a_has = p->a != FP8;
    const type t = a_has ? p->a : p->b;
    uint64_t  *row0 = a_has ? s->a[0] : s->b[0], *row1 = a_has ? s->a[1] : s->b[1];
    uint64_t  *row2 = a_has ? s->a[2] : s->b[2];
    row0[0] = inf_code(t);                /* +Inf */
    row1[1] = inf_code(t) | sign_code(t); /* -Inf */
    row2[0] = inf_code(t);                /* meets a zero in column (row) 3 */
    (a_has ? s->b[3] : s->a[3])[0] = 0;
    ck_assert(run(&mach, s));
    const int      rows[4][2] = { { 0, 0 }, { 1, 0 }, { 2, 3 }, { 3, 0 } };
    const uint64_t inf = inf_code(p->d), nan = float_forms[_i].nan;
    const uint64_t want[4] = { inf, inf | sign_code(p->d), nan, code_of(p->d, p->k) };
    for (int n = 0; n < 4; n++) {
        const int i = a_has ? rows[n][0] : rows[n][1], j = a_has ? rows[n][1] : rows[n][0];
        ck_assert_msg(n == 3 || code_at(&mach, p, i, j) == want[n], "%s: D[%d][%d] = 0x%llx", p->name, i, j,
                      (unsigned long long)code_at(&mach, p, i, j));
    }
    /* +Inf of a product and -Inf of C */
    s->c[0][0] = inf_code(p->c) | sign_code(p->c);
    s->c[3][2] = inf_code(p->c) | sign_code(p->c);
    ck_assert(run(&mach, s));
    ck_assert_uint_eq(code_at(&mach, p, 0, 0), nan);
    if (a_has)
        ck_assert_uint_eq(code_at(&mach, p, 3, 2), inf | sign_code(p->d));
    free(s);
    machine_free(&mach);
}
END_TEST

/* Denormals of inputs, of C and of results are kept. */
START_TEST(denormals_are_kept)
{
    machine mach;
    sample *s = ones("v_mfma_f32_16x16x4_f32", F32, F32);
    machine_init(&mach, SIM_GFX950);
    for (int k = 0; k < 4; k++)
        s->a[1][k] = k == 0 ? 1 : 0;
    s->c[1][0] = 2;
    s->c[1][1] = sign_code(F32) | 1;
    ck_assert(run(&mach, s));
    ck_assert_uint_eq(code_at(&mach, &s->p, 1, 0), 3);
    ck_assert_uint_eq(code_at(&mach, &s->p, 1, 1), 0);
    ck_assert_uint_eq(code_at(&mach, &s->p, 1, 2), 1);
    free(s);
    machine_free(&mach);

    s = ones("v_wmma_f16_16x16x32_f16", F16, F16);
    machine_init(&mach, SIM_GFX1250);
    for (int k = 0; k < 32; k++)
        s->a[5][k] = 1; /* 2^-24 */
    ck_assert(run(&mach, s));
    ck_assert_uint_eq(code_at(&mach, &s->p, 5, 0), 32);
    ck_assert_uint_eq(code_at(&mach, &s->p, 6, 0), code_of(F16, 32));
    free(s);
    machine_free(&mach);

    /* Every code of every small format, against one. */
    static const type small[] = { FP8, BF8, FP6, BF6, FP4 };
    for (int t = 0; t < 5; t++) {
        for (int first = 0; first < 1 << types[small[t]].bits; first += 16) {
            s = ones("v_mfma_f32_16x16x128_f8f6f4", small[t], FP8);
            machine_init(&mach, SIM_GFX950);
            for (int i = 0; i < 16; i++)
                for (int k = 0; k < 128; k++)
                    s->a[i][k] = k == 77 ? (uint64_t)(first + i) : 0;
            ck_assert(run(&mach, s));
            for (int i = 0; i < 16; i++) {
                const double want = value_of(small[t], (uint64_t)(first + i));
                ck_assert_uint_eq(code_at(&mach, &s->p, i, 3),
                                  isnan(want) ? 0x7FC00000 : code_of(F32, want == 0 ? 0.0 : want));
            }
            free(s);
            machine_free(&mach);
        }
    }
}
END_TEST

/* Too large a sum is Inf, or with FP16_OVFL the largest number: of F32 on gfx950 only. */
START_TEST(overflow_depends_on_the_mode)
{
    static const struct {
        const char *name;
        type        t;
        double      x;
        uint64_t    inf, clamped;
    } row[] = {
        { "v_mfma_f32_16x16x4_f32", F32, 0x1p127, 0x7F800000, 0x7F7FFFFF },
        { "v_mfma_f32_16x16x32_bf16", BF16, 0x1p127, 0x7F800000, 0x7F7FFFFF },
        { "v_wmma_f32_16x16x32_bf16", BF16, 0x1p127, 0x7F800000, 0x7F800000 },
        { "v_wmma_bf16_16x16x32_bf16", BF16, 0x1p127, 0x7F80, 0x7F7F },
        { "v_wmma_f16_16x16x32_f16", F16, 256, 0x7C00, 0x7BFF },
        { "v_wmma_f16_16x16x128_fp8_fp8", FP8, 448, 0x7C00, 0x7BFF },
    };
    for (size_t r = 0; r < sizeof row / sizeof row[0]; r++) {
        for (int mode = 0; mode < 2; mode++) {
            sample *s = ones(row[r].name, row[r].t, row[r].t);
            machine mach;
            machine_init(&mach, s->p.arch);
            for (int k = 0; k < s->p.k; k++) {
                s->a[1][k] = code_of(row[r].t, row[r].x);
                s->a[2][k] = code_of(row[r].t, -row[r].x);
                s->b[0][k] = code_of(row[r].t, row[r].x);
            }
            s->c[3][3] = inf_code(s->p.c);
            mach.wave.mode = mode == 1 ? SIM_MODE_FP16_OVFL : 0;
            ck_assert(run(&mach, s));
            const uint64_t want = mode == 1 ? row[r].clamped : row[r].inf;
            ck_assert_uint_eq(code_at(&mach, &s->p, 1, 0), want);
            ck_assert_uint_eq(code_at(&mach, &s->p, 2, 0), want | sign_code(s->p.d));
            ck_assert_uint_eq(code_at(&mach, &s->p, 4, 4), code_of(s->p.d, s->p.k));
            ck_assert_uint_eq(code_at(&mach, &s->p, 3, 3), inf_code(s->p.d)); /* an infinity that was one stays */
            free(s);
            machine_free(&mach);
        }
    }
}
END_TEST

/* One rounding, to nearest even: 2^24 + 1 + 1 from C and two products is 2^24 + 2; 2^24 + 1 is a tie. */
START_TEST(result_is_rounded_once)
{
    machine mach;
    sample *s = ones("v_mfma_f32_16x16x32_f16", F16, F16);
    machine_init(&mach, SIM_GFX950);
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 32; k++)
            s->a[i][k] = k <= i ? code_of(F16, 1.0) : 0;
        s->c[i][0] = code_of(F32, 0x1p24);
    }
    ck_assert(run(&mach, s));
    ck_assert_uint_eq(code_at(&mach, &s->p, 0, 0), code_of(F32, 0x1p24));
    ck_assert_uint_eq(code_at(&mach, &s->p, 1, 0), code_of(F32, 0x1p24 + 2));
    ck_assert_uint_eq(code_at(&mach, &s->p, 2, 0), code_of(F32, 0x1p24 + 4));
    free(s);
    machine_free(&mach);
}
END_TEST

/* Integers wrap, or saturate with clamp or FP16_OVFL; IU8 takes signs from neg_lo. */
START_TEST(integers_wrap_or_saturate)
{
    static const struct {
        const char *name, *suffix;
        uint32_t    mode;
        bool        saturates;
    } row[] = {
        { "v_mfma_i32_16x16x64_i8", "", 0, false },
        { "v_mfma_i32_16x16x64_i8", "", SIM_MODE_FP16_OVFL, true },
        { "v_wmma_i32_16x16x64_iu8", " neg_lo:[1,1,0]", 0, false },
        { "v_wmma_i32_16x16x64_iu8", " neg_lo:[1,1,0]", SIM_MODE_FP16_OVFL, true },
        { "v_wmma_i32_16x16x64_iu8", " neg_lo:[1,1,0] clamp", 0, true },
    };
    for (size_t r = 0; r < sizeof row / sizeof row[0]; r++) {
        sample *s = ones(row[r].name, read_name(row[r].name).a, read_name(row[r].name).b);
        machine mach;
        machine_init(&mach, s->p.arch);
        strcpy(s->suffix, row[r].suffix);
        mach.wave.mode = row[r].mode;
        for (int k = 0; k < 64; k++)
            s->a[1][k] = 0xFF;   /* -1 */
        s->c[0][0] = 0x7FFFFFF0; /* + 64 */
        s->c[1][0] = 0x80000001; /* - 64 */
        ck_assert(run(&mach, s));
        ck_assert_uint_eq(code_at(&mach, &s->p, 0, 0), row[r].saturates ? 0x7FFFFFFF : 0x7FFFFFF0u + 64u);
        ck_assert_uint_eq(code_at(&mach, &s->p, 1, 0), row[r].saturates ? 0x80000000 : 0x80000001u - 64u);
        ck_assert_uint_eq(code_at(&mach, &s->p, 1, 1), (uint32_t)-64);
        free(s);
        machine_free(&mach);
    }
    for (int signs = 0; signs < 4; signs++) {
        product p = read_name("v_wmma_i32_16x16x64_iu8");
        sample *s = new_sample(&p);
        machine mach;
        machine_init(&mach, SIM_GFX1250);
        random_state = 5;
        for (int k = 0; k < 64; k++)
            for (int i = 0; i < 16; i++) {
                s->a[i][k] = draw(256);
                s->b[i][k] = draw(256);
            }
        s->a_unsigned = (signs & 1) == 0;
        s->b_unsigned = (signs & 2) == 0;
        snprintf(s->suffix, sizeof s->suffix, " neg_lo:[%d,%d,0]", signs & 1, signs >> 1);
        check_exact(&mach, s);
        free(s);
        machine_free(&mach);
    }
}
END_TEST

/* Operands and modifiers
 * ----------------------
 */
START_TEST(c_may_be_an_inline_constant)
{
    static const struct {
        const char *name, *c;
        uint64_t    code; /* of every item of C */
    } row[] = {
        { "v_mfma_f32_16x16x32_f16", "0", 0 },
        { "v_mfma_f32_16x16x32_f16", "1.0", 0x3F800000 },
        { "v_mfma_f32_16x16x32_f16", "-4.0", 0xC0800000 },
        { "v_mfma_f32_16x16x32_f16", "64", 64 }, /* a denormal */
        { "v_mfma_i32_16x16x64_i8", "-16", 0xFFFFFFF0 },
        { "v_mfma_i32_16x16x64_i8", "1.0", 0x3F800000 },
        { "v_mfma_f64_16x16x4_f64", "0.5", 0x3FE0000000000000 },
        { "v_mfma_f64_16x16x4_f64", "0", 0 },
        { "v_wmma_f32_16x16x32_bf16", "2.0", 0x40000000 },
        { "v_wmma_f16_16x16x32_f16", "2.0", 0x4000 },
        { "v_wmma_bf16_16x16x32_bf16", "2.0", 0x4000 },
        { "v_wmma_bf16f32_16x16x32_bf16", "2.0", 0x40000000 },
        { "v_wmma_i32_16x16x64_iu8", "33", 33 },
    };
    for (size_t r = 0; r < sizeof row / sizeof row[0]; r++) {
        const product p = read_name(row[r].name);
        sample       *s = new_sample(&p);
        machine       mach;
        machine_init(&mach, p.arch);
        random_state = 77 + (uint32_t)r;
        fill_small(s);
        s->a_unsigned = s->b_unsigned = true;
        for (int i = 0; i < p.m; i++)
            for (int j = 0; j < p.n; j++)
                s->c[i][j] = row[r].code;
        if (row[r].code == 64 && p.d == F32) /* 64 * 2^-149 vanishes beside anything else */
            memset(s->a, 0, sizeof s->a);
        strcpy(s->c_text, row[r].c);
        check_exact(&mach, s);
        free(s);
        machine_free(&mach);
    }
}
END_TEST

START_TEST(c_of_wmma_takes_neg_and_abs)
{
    static const char *const names[] = { "v_wmma_f32_16x16x32_f16", "v_wmma_f16_16x16x32_f16",
                                         "v_wmma_f32_16x16x64_fp8_fp8", "v_wmma_f32_16x16x4_f32",
                                         "v_wmma_scale_f32_16x16x128_f8f6f4" };
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
        for (int mod = 1; mod < 4; mod++) {
            sample *s = ones(names[n], read_name(names[n]).a, read_name(names[n]).b);
            machine mach;
            machine_init(&mach, SIM_GFX1250);
            put_scales(&mach, s, 0);
            for (int k = 0; k < s->p.k; k++)
                s->a[0][k] = 0;
            s->c[0][0] = code_of(s->p.c, -3.0);
            s->c[0][1] = code_of(s->p.c, 5.0);
            snprintf(s->suffix, sizeof s->suffix, " neg_lo:[0,0,%d] neg_hi:[0,0,%d]", mod & 1, mod >> 1);
            ck_assert(run(&mach, s));
            const double size3 = (mod & 2) != 0 ? 3.0 : -3.0, sign = (mod & 1) != 0 ? -1.0 : 1.0;
            ck_assert_uint_eq(code_at(&mach, &s->p, 0, 0), code_of(s->p.d, sign * size3));
            ck_assert_uint_eq(code_at(&mach, &s->p, 0, 1), code_of(s->p.d, sign * 5.0));
            free(s);
            machine_free(&mach);
        }
    }
}
END_TEST

START_TEST(f64_takes_neg)
{
    for (int mod = 0; mod < 8; mod++) {
        sample *s = ones("v_mfma_f64_16x16x4_f64", F64, F64);
        machine mach;
        machine_init(&mach, SIM_GFX950);
        for (int k = 0; k < 4; k++)
            s->a[3][k] = code_of(F64, 2.5);
        s->c[3][7] = code_of(F64, 100.0);
        snprintf(s->suffix, sizeof s->suffix, " neg:[%d,%d,%d]", mod & 1, mod >> 1 & 1, mod >> 2);
        ck_assert(run(&mach, s));
        const double sign = ((mod ^ mod >> 1) & 1) != 0 ? -1.0 : 1.0, c = (mod & 4) != 0 ? -100.0 : 100.0;
        ck_assert_uint_eq(code_at(&mach, &s->p, 3, 7), code_of(F64, sign * 10.0 + c));
        free(s);
        machine_free(&mach);
    }
}
END_TEST

/* CDNA4 ISA 7.1.6: all legal cbsz, abid and blgp of all shapes that have them. */
START_TEST(lanes_are_broadcast)
{
    random_state = 31;
    int count = 0;
    for (const sim_opcode *op = sim_matrix_opcodes; op->name != NULL; op++) {
        const product p = read_name(op->name);
        if (p.arch != SIM_GFX950 || p.chosen || p.a == F64)
            continue;
        machine mach;
        machine_init(&mach, p.arch);
        for (int cbsz = 0; cbsz <= 4 && 1 << cbsz <= p.blocks; cbsz++) {
            for (int abid = 0; abid < 1 << cbsz; abid++) {
                for (int blgp = 0; blgp < 8; blgp++) {
                    sample *s = new_sample(&p);
                    fill_small(s);
                    for (int l = 0; l < 64; l++) {
                        const int size = 64 / (1 << cbsz);
                        s->lane_a[l] = l % size + size * abid;
                        const int by_blgp[8] = { l,      l % 32,      l % 32 + 32, (l + 16) % 64,
                                                 l % 16, l % 16 + 16, l % 16 + 32, l % 16 + 48 };
                        s->lane_b[l] = by_blgp[blgp];
                    }
                    snprintf(s->suffix, sizeof s->suffix, " cbsz:%d abid:%d blgp:%d", cbsz, abid, blgp);
                    check_exact(&mach, s);
                    free(s);
                    count++;
                }
            }
        }
        machine_free(&mach);
    }
    ck_assert_int_gt(count, 300);
}
END_TEST

START_TEST(accumulation_registers_are_operands)
{
    machine mach;
    machine_init(&mach, SIM_GFX950);
    sim_instruction inst;
    ck_assert(sim_parse(SIM_GFX950, "v_mfma_f32_16x16x4_f32 a[8:11], a3, v5, a[8:11]", &inst));
    for (int l = 0; l < 64; l++) {
        const float a = (float)(l % 16), b = 2.0f;
        memcpy(&mach.wave.v[(256 + 3) * 64 + l], &a, sizeof a);
        memcpy(&mach.wave.v[5 * 64 + l], &b, sizeof b);
        mach.wave.v[(256 + 8) * 64 + l] = 0x3F800000;
    }
    inst.op->run(&mach.wave, &inst);
    for (int l = 0; l < 64; l++) {
        float d;
        memcpy(&d, &mach.wave.v[(256 + 8 + 1) * 64 + l], sizeof d);
        ck_assert_float_eq(d, (float)(4 * (l / 16) + 1) * 8.0f);
        memcpy(&d, &mach.wave.v[(256 + 8) * 64 + l], sizeof d);
        ck_assert_float_eq(d, (float)(4 * (l / 16)) * 8.0f + 1.0f);
    }
    machine_free(&mach);
}
END_TEST

/* EXEC has no say; D may be C, and even A or B: all is read before anything is written. */
START_TEST(exec_is_ignored_and_results_may_overlap)
{
    machine mach, other;
    machine_init(&mach, SIM_GFX950);
    machine_init(&other, SIM_GFX950);
    random_state = 8;
    for (int r = 64; r < 80; r++)
        for (int l = 0; l < 64; l++)
            mach.wave.v[r * 64 + l] = other.wave.v[r * 64 + l] = draw(UINT32_MAX) & 0xBFBFBFBFu;
    sim_instruction inst, apart;
    ck_assert(sim_parse(SIM_GFX950, "v_mfma_f32_16x16x128_f8f6f4 v[66:69], v[64:71], v[72:79], v[64:67]", &inst));
    ck_assert(sim_parse(SIM_GFX950, "v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[64:71], v[72:79], v[64:67]", &apart));
    other.wave.s[SIM_EXEC] = other.wave.s[SIM_EXEC + 1] = 0xFFFFFFFFu;
    inst.op->run(&mach.wave, &inst);
    apart.op->run(&other.wave, &apart);
    ck_assert_mem_eq(mach.wave.v + 66 * 64, other.wave.v, 4 * 64 * sizeof(uint32_t));
    machine_free(&mach);
    machine_free(&other);
}
END_TEST

/* s_set_vgpr_msb moves A, B, C and D, each by its own bits, but not the scales. */
START_TEST(high_registers_of_gfx1250)
{
    machine mach;
    machine_init(&mach, SIM_GFX1250);
    sim_wave       *w = &mach.wave;
    sim_instruction inst;
    ck_assert(sim_parse(SIM_GFX1250, "v_wmma_scale_f32_16x16x128_f8f6f4 v[0:7], v[16:31], v[32:47], v[48:55], v60, v61",
                        &inst));
    w->msb[0] = 1; /* A */
    w->msb[1] = 2; /* B */
    w->msb[2] = 3; /* C */
    w->msb[3] = 1; /* D */
    for (int l = 0; l < 32; l++) {
        for (int r = 0; r < 16; r++) {
            w->v[(256 + 16 + r) * 32 + l] = 0x38383838; /* 1.0 */
            w->v[(512 + 32 + r) * 32 + l] = 0x40404040; /* 2.0 */
        }
        for (int r = 0; r < 8; r++)
            w->v[(768 + 48 + r) * 32 + l] = 0x42280000; /* 42.0 */
        w->v[60 * 32 + l] = 0x80808080;                 /* 2.0 */
        w->v[61 * 32 + l] = 0x7E7E7E7E;                 /* 0.5 */
    }
    inst.op->run(w, &inst);
    ck_assert_int_eq(w->status, SIM_RUNNING);
    for (int r = 0; r < 8; r++)
        for (int l = 0; l < 32; l++) {
            EXPECT(w->v[(256 + r) * 32 + l] == code_of(F32, 256.0 + 42.0), "v%d lane %d", 256 + r, l);
            EXPECT(w->v[r * 32 + l] == 0, "v%d lane %d is written", r, l);
        }
    /* Beyond the last register. */
    w->msb[3] = 3;
    ck_assert(sim_parse(SIM_GFX1250, "v_wmma_f32_16x16x32_f16 v[252:259], v[16:23], v[32:39], 0", &inst) == false ||
              (inst.op->run(w, &inst), w->status == SIM_FAILED));
    machine_free(&mach);
}
END_TEST

/* Scales
 * ------
 */
START_TEST(scale_operands_of_gfx1250)
{
    static const struct {
        const char *scales, *suffix;
        double      scale;
    } row[] = {
        { ", s2, s3", "", 8.0 * 0.25 }, { ", s2, 0", "", 8.0 },           { ", 0, s3", "", 0.25 },
        { ", 0, 0", "", 1.0 },          { ", v192, s3", "", 0.5 * 0.25 },
    };
    for (size_t r = 0; r < sizeof row / sizeof row[0]; r++) {
        sample *s = ones("v_wmma_scale_f32_16x16x128_f8f6f4", FP8, FP8);
        machine mach;
        machine_init(&mach, SIM_GFX1250);
        mach.wave.s[2] = 0xDEADBE00u | 130;
        mach.wave.s[3] = 0xDEADBE00u | 125;
        for (int l = 0; l < 32; l++)
            mach.wave.v[SCALE_A_AT * 32 + l] = 0x7E7E7E7E;
        strcpy(s->scales, row[r].scales);
        strcpy(s->suffix, row[r].suffix);
        ck_assert_msg(run(&mach, s), "%s: %s", row[r].scales, sim_last_error());
        for (int i = 0; i < 16; i++)
            for (int j = 0; j < 16; j++)
                ck_assert_uint_eq(code_at(&mach, &s->p, i, j), code_of(F32, 128.0 * row[r].scale));
        free(s);
        machine_free(&mach);
    }
}
END_TEST

/* Legal and illegal pairs of formats, and what a code of each is. */
START_TEST(scale_formats_of_gfx1250)
{
    static const struct {
        type        a, b;
        const char *suffix;
        uint32_t    code_a, code_b;
        double      value; /* of the product of both scales; negative: refused */
    } row[] = {
        { FP4, FP8, " matrix_a_scale_fmt:MATRIX_SCALE_FMT_E5M3", 0x7B, 127, 1.375 },
        { FP4, FP8, " matrix_a_scale_fmt:MATRIX_SCALE_FMT_E5M3", 0x01, 127, 0x1p-17 },
        { FP4, FP8, " matrix_a_scale_fmt:MATRIX_SCALE_FMT_E5M3", 0xFE, 127, 114688 },
        { FP4, FP8, " matrix_a_scale_fmt:MATRIX_SCALE_FMT_E5M3", 0xFF, 127, NAN },
        { FP4, FP4, " matrix_a_scale_fmt:MATRIX_SCALE_FMT_E4M3 matrix_b_scale_fmt:MATRIX_SCALE_FMT_E4M3", 0x7E, 0x3C,
          448 * 1.5 },
        { FP4, FP4, " matrix_a_scale_fmt:MATRIX_SCALE_FMT_E4M3 matrix_b_scale_fmt:MATRIX_SCALE_FMT_E4M3", 0x7F, 0x3C,
          NAN },
        { FP8, FP4, " matrix_b_scale_fmt:MATRIX_SCALE_FMT_E4M3", 128, 0x34, 2 * 0.75 },
        { FP8, FP6, "", 0, 254, 1.0 },
        { BF8, FP6, "", 255, 127, NAN },
        { FP8, FP8, " matrix_a_scale_fmt:MATRIX_SCALE_FMT_E5M3", 0, 0, -1 },
        { FP6, FP4, " matrix_a_scale_fmt:MATRIX_SCALE_FMT_E4M3", 0, 0, -1 },
        { FP4, FP4, " matrix_a_scale_fmt:MATRIX_SCALE_FMT_E4M3 matrix_b_scale_fmt:MATRIX_SCALE_FMT_E5M3", 0, 0, -1 },
        { FP4, FP4, " matrix_a_scale_fmt:MATRIX_SCALE_FMT_E4M3", 0, 0, -1 },
    };
    for (size_t r = 0; r < sizeof row / sizeof row[0]; r++) {
        for (int sixteen = 0; sixteen < 2; sixteen++) {
            sample *s = ones(sixteen ? "v_wmma_scale16_f32_16x16x128_f8f6f4" : "v_wmma_scale_f32_16x16x128_f8f6f4",
                             row[r].a, row[r].b);
            machine mach;
            machine_init(&mach, SIM_GFX1250);
            for (int l = 0; l < 32; l++)
                for (int reg = 0; reg < 2; reg++) {
                    mach.wave.v[(SCALE_A_AT + reg) * 32 + l] = row[r].code_a * 0x01010101u;
                    mach.wave.v[(SCALE_B_AT + reg) * 32 + l] = row[r].code_b * 0x01010101u;
                }
            strcpy(s->suffix, row[r].suffix);
            const bool ran = run(&mach, s);
            ck_assert_int_eq(ran, !(row[r].value < 0));
            if (ran)
                ck_assert_uint_eq(code_at(&mach, &s->p, 7, 9),
                                  isnan(row[r].value) ? 0x7FC00000 : code_of(F32, 128 * row[r].value));
            free(s);
            machine_free(&mach);
        }
    }
}
END_TEST

/* A NaN scale makes its row or column NaN, even where the block is zero; extremes of E8M0 do not overflow on the way.
 * */
START_TEST(e8m0_extremes)
{
    machine mach;
    sample *s = ones("v_mfma_scale_f32_32x32x64_f8f6f4", FP8, FP8);
    machine_init(&mach, SIM_GFX950);
    for (int l = 0; l < 64; l++)
        mach.wave.v[SCALE_A_AT * 64 + l] = mach.wave.v[SCALE_B_AT * 64 + l] = 0x7F;
    mach.wave.v[SCALE_A_AT * 64 + 3 + 32] = 0xFF; /* row 3, second block */
    mach.wave.v[SCALE_B_AT * 64 + 5] = 0xFF;      /* column 5, first block */
    mach.wave.v[SCALE_A_AT * 64 + 1] = 254;       /* row 1: 2^127 in its first block */
    mach.wave.v[SCALE_B_AT * 64 + 2] = 0;         /* column 2: 2^-127 */
    mach.wave.v[SCALE_A_AT * 64 + 1 + 32] = 0;    /* row 1, second block: 2^-127 */
    mach.wave.v[SCALE_B_AT * 64 + 2 + 32] = 254;  /* column 2, second block: 2^127 */
    for (int k = 32; k < 64; k++)
        s->a[3][k] = 0;
    ck_assert(run(&mach, s));
    ck_assert_uint_eq(code_at(&mach, &s->p, 3, 0), 0x7FC00000);
    ck_assert_uint_eq(code_at(&mach, &s->p, 0, 5), 0x7FC00000);
    ck_assert_uint_eq(code_at(&mach, &s->p, 1, 2), code_of(F32, 64.0));
    ck_assert_uint_eq(code_at(&mach, &s->p, 1, 0), 0x7F800000); /* 32 * 2^127 */
    ck_assert_uint_eq(code_at(&mach, &s->p, 0, 0), code_of(F32, 64.0));
    free(s);
    machine_free(&mach);
}
END_TEST

/* Refusals
 * --------
 */
START_TEST(undefined_forms_are_refused)
{
    static const struct {
        sim_arch    arch;
        const char *text;
    } row[] = {
        { SIM_GFX950, "v_mfma_f32_16x16x32_f16 v[0:3], v[64:67], v[96:99], 0 cbsz:1" },
        { SIM_GFX950, "v_mfma_f32_16x16x32_f16 v[0:3], v[64:67], v[96:99], 0 abid:1" },
        { SIM_GFX950, "v_mfma_f32_4x4x4_16b_f16 v[0:3], v[64:65], v[96:97], 0 cbsz:5" },
        { SIM_GFX950, "v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[64:71], v[96:103], 0 cbsz:5" },
        { SIM_GFX1250, "v_wmma_f32_16x16x32_f16 v[0:7], v[64:71], v[96:103], 0 neg_lo:[1,0,0]" },
        { SIM_GFX1250, "v_wmma_f32_16x16x32_f16 v[0:7], v[64:71], v[96:103], 0 neg_hi:[0,1,0]" },
        { SIM_GFX1250, "v_wmma_scale_f32_16x16x128_f8f6f4 v[0:7], v[64:79], v[96:111], 0, 1.0, v1" },
        { SIM_GFX1250, "v_wmma_scale_f32_16x16x128_f8f6f4 v[0:7], v[64:79], v[96:111], 0, 5, v1" },
    };
    for (size_t r = 0; r < sizeof row / sizeof row[0]; r++) {
        machine         mach;
        sim_instruction inst;
        machine_init(&mach, row[r].arch);
        ck_assert_msg(sim_parse(row[r].arch, row[r].text, &inst), "%s: %s", row[r].text, sim_last_error());
        inst.op->run(&mach.wave, &inst);
        ck_assert_msg(mach.wave.status == SIM_FAILED, "%s runs", row[r].text);
        ck_assert_ptr_nonnull(strstr(sim_last_error(), row[r].text));
        machine_free(&mach);
    }
    sim_instruction inst; /* no row: their index layout is not known for certain */
    ck_assert(!sim_parse(SIM_GFX950, "v_smfmac_f32_16x16x32_f16 v[0:3], v[32:33], v[64:67], v200", &inst));
    ck_assert(!sim_parse(SIM_GFX1250, "v_swmmac_f32_16x16x64_f16 v[0:7], v[32:39], v[64:79], v200", &inst));
    ck_assert(!sim_parse(SIM_GFX950, "v_mfma_f32_16x16x8_xf32 v[0:3], v[32:33], v[64:65], 0", &inst));
}
END_TEST

/* CDNA4 ISA 7.1.2: cycles, four of them a pass. CDNA5: what LLVM 22's hazard recogniser puts between. */
START_TEST(passes_depend_on_the_operands)
{
    static const struct {
        sim_arch    arch;
        const char *text;
        int         passes;
    } row[] = {
        { SIM_GFX950, "v_mfma_f32_4x4x4_16b_f16 v[0:3], v[64:65], v[96:97], 0", 2 },
        { SIM_GFX950, "v_mfma_f32_16x16x32_bf16 v[0:3], v[64:67], v[96:99], 0", 4 },
        { SIM_GFX950, "v_mfma_f32_32x32x16_bf16 v[0:15], v[64:67], v[96:99], 0", 8 },
        { SIM_GFX950, "v_mfma_f32_32x32x2_f32 v[0:15], v64, v96, 0", 16 },
        { SIM_GFX950, "v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[64:71], v[96:103], 0", 8 },
        { SIM_GFX950, "v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[64:71], v[96:99], 0 blgp:4", 8 },
        { SIM_GFX950, "v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[64:67], v[96:103], 0 cbsz:4 blgp:1", 8 },
        { SIM_GFX950, "v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[64:69], v[96:99], 0 cbsz:2 blgp:4", 4 },
        { SIM_GFX950, "v_mfma_f32_32x32x64_f8f6f4 v[0:15], v[64:67], v[96:99], 0 cbsz:4 blgp:4", 8 },
        { SIM_GFX950, "v_mfma_f32_32x32x64_f8f6f4 v[0:15], v[64:71], v[96:103], 0", 16 },
        { SIM_GFX1250, "v_wmma_f32_16x16x32_bf16 v[0:7], v[64:71], v[96:103], 0", 4 },
        { SIM_GFX1250, "v_wmma_i32_16x16x64_iu8 v[0:7], v[64:71], v[96:103], 0", 8 },
        { SIM_GFX1250, "v_wmma_f32_16x16x128_f8f6f4 v[0:7], v[64:79], v[96:111], 0", 8 },
        { SIM_GFX1250,
          "v_wmma_f32_16x16x128_f8f6f4 v[0:7], v[64:71], v[96:107], 0 matrix_a_fmt:MATRIX_FMT_FP4 "
          "matrix_b_fmt:MATRIX_FMT_FP6",
          4 },
    };
    for (size_t r = 0; r < sizeof row / sizeof row[0]; r++) {
        sim_instruction inst;
        ck_assert_msg(sim_parse(row[r].arch, row[r].text, &inst), "%s: %s", row[r].text, sim_last_error());
        ck_assert_msg(sim_matrix_passes(&inst) == row[r].passes, "%s: %d passes, want %d", row[r].text,
                      sim_matrix_passes(&inst), row[r].passes);
        if (row[r].arch == SIM_GFX950)
            ck_assert_int_eq(sim_matrix_cycles(&inst), 4 * row[r].passes);
    }
}
END_TEST

static void fill(TCase *tcase)
{
    tcase_add_test(tcase, every_shape_multiplies_by_the_layouts);
    tcase_add_test(tcase, every_k_meets_its_partner);
    tcase_add_test(tcase, random_data_is_near_the_exact_sum);
    tcase_add_loop_test(tcase, nan_spreads_and_is_quiet, 0, FLOAT_FORMS);
    tcase_add_loop_test(tcase, infinity_follows_ieee, 0, FLOAT_FORMS);
    tcase_add_test(tcase, denormals_are_kept);
    tcase_add_test(tcase, overflow_depends_on_the_mode);
    tcase_add_test(tcase, result_is_rounded_once);
    tcase_add_test(tcase, integers_wrap_or_saturate);
    tcase_add_test(tcase, c_may_be_an_inline_constant);
    tcase_add_test(tcase, c_of_wmma_takes_neg_and_abs);
    tcase_add_test(tcase, f64_takes_neg);
    tcase_add_test(tcase, lanes_are_broadcast);
    tcase_add_test(tcase, accumulation_registers_are_operands);
    tcase_add_test(tcase, exec_is_ignored_and_results_may_overlap);
    tcase_add_test(tcase, high_registers_of_gfx1250);
    tcase_add_test(tcase, scale_operands_of_gfx1250);
    tcase_add_test(tcase, scale_formats_of_gfx1250);
    tcase_add_test(tcase, e8m0_extremes);
    tcase_add_test(tcase, undefined_forms_are_refused);
    tcase_add_test(tcase, passes_depend_on_the_operands);
}

int main(void)
{
    return testing_main("sim_matrix", fill);
}
