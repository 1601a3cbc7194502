/* Matrix instructions: MFMA of gfx950 and WMMA of gfx1250.
 *
 * A lane's registers are a row of items, packed little-endian. An item of A is (block, row, k), of B (block, column,
 * k); matrix.def says which. Both operands become doubles in the order [item][lane]: there the rows of one k lie side
 * by side, so that all layouts are one table of offsets by k.
 *
 * Numerics. Products are exact in double; they are summed in double, k ascending (block of a scale by block); C is
 * added last; one rounding to the result, to nearest even. Denormals are kept, a NaN result is 0x7FC00000 (F16 0x7E00,
 * BF16 0x7FC0). MODE's FP16_OVFL makes a finite sum that is out of range the largest number, and integers saturate
 * (CDNA4 ISA 7.1.2, CDNA5 7.12; not F32 results of WMMA). The order and the inner precision of hardware are not
 * documented: no program should depend on the last bits. F64 is a chain of FMA from C on, k ascending.
 */
#include "matrix.h"

#include "opcodes.h"

#include <math.h>

#if defined(__x86_64__) && defined(__GNUC__)
#define HAVE_AVX2 1
#include <immintrin.h>
#endif

#define INLINE static inline __attribute__((always_inline))

enum {
    MAX_VALUES = 32 * 128,     /* of A: 32x16x128 */
    MAX_RESULTS = 2 * 32 * 32, /* 32x32x1, two blocks */
    MAX_WORDS = 16 * 64,       /* of A or B, with 64 lanes: f8f6f4 has 8, gfx1250 16 of 32 lanes */
    MAX_DEPTH = 128
};

static const uint32_t NAN_F32 = 0x7FC00000u;

/* What an instruction is
 * ----------------------
 */
int sim_matrix_element_bits(int element)
{
    switch (element) {
    case SIM_MATRIX_F32:
    case SIM_MATRIX_I32:
        return 32;
    case SIM_MATRIX_F64:
        return 64;
    case SIM_MATRIX_I8:
    case SIM_MATRIX_IU8:
        return 8;
    default:
        return sim_format_bits((sim_format)element);
    }
}

int sim_matrix_element(const sim_instruction *inst, int which)
{
    const sim_shape *shape = inst->op->detail;
    const int        element = which == 0 ? shape->a : shape->b;
    if (element != SIM_MATRIX_CHOSEN)
        return element;
    if (shape->arch == SIM_GFX950)
        return which == 0 ? inst->cbsz : inst->blgp;
    return which == 0 ? inst->a_format : inst->b_format;
}

const sim_shape *sim_matrix_shape(const sim_instruction *inst)
{
    const int kind = inst->op->kind;
    return kind == SIM_XDL || kind == SIM_SGEMM || kind == SIM_WMMA ? inst->op->detail : NULL;
}

static bool has_small_operands(const sim_instruction *inst)
{
    for (int which = 0; which < 2; which++) {
        const int element = sim_matrix_element(inst, which);
        if (element != SIM_FP6 && element != SIM_BF6 && element != SIM_FP4)
            return false;
    }
    return true;
}

int sim_matrix_passes(const sim_instruction *inst)
{
    const sim_shape *shape = sim_matrix_shape(inst);
    if (shape == NULL)
        return 0;
    return has_small_operands(inst) ? shape->passes_small : shape->passes;
}

int sim_matrix_cycles(const sim_instruction *inst)
{
    const sim_shape *shape = sim_matrix_shape(inst);
    if (shape == NULL)
        return 0;
    return has_small_operands(inst) ? shape->cycles_small : shape->cycles;
}

/* Layouts
 * -------
 */
/* A or B of one instruction. A set of registers holds the rows (columns, of B) that its lanes name: all, or 16 of a
 * WMMA's 32. */
typedef struct factor {
    int             element, bits;
    int             sets, items; /* items of a lane in one set */
    const uint16_t *offset;      /* of row 0 of block 0 at k, in value[item][lane] */
    double          value[MAX_VALUES] __attribute__((aligned(32)));
} factor;

static int lanes_of(const sim_shape *shape)
{
    return shape->arch == SIM_GFX950 ? 64 : 32;
}

static int rows_of_set(const sim_shape *shape, int rows)
{
    return rows == 32 && shape->arch == SIM_GFX1250 ? 16 : rows;
}

/* Lanes with the same row (and block), which share its k among them. */
static int groups_of(const sim_shape *shape)
{
    return lanes_of(shape) / (rows_of_set(shape, shape->m) * shape->blocks);
}

/* k splits into: within a run, lane group, number of the run. Of f8f6f4, runs have 16 bytes or else 32 items: CDNA4
 * 7.1.5.1, CDNA5 7.12.6.1. */
static void lay_out(const sim_shape *shape, int bits, uint16_t *offset)
{
    const int groups = groups_of(shape), lanes = lanes_of(shape), rows = rows_of_set(shape, shape->m);
    const int chosen = bits == 8 ? 16 : 32;
    const int run = shape->a == SIM_MATRIX_CHOSEN ? chosen : shape->run != 0 ? shape->run : shape->depth / groups;
    for (int k = 0; k < shape->depth; k++) {
        const int item = k / (run * groups) * run + k % run, group = k / run % groups;
        offset[k] = (uint16_t)(item * lanes + group * shape->blocks * rows);
    }
}

/* Row (of all blocks: block * m + i) of item `e` of the result in the lane group `q` of n lanes. CDNA4 ISA 7.1.4.2,
 * solved for i and b; CDNA5 7.12.2. */
static int result_row(const sim_shape *shape, int e, int q)
{
    if (shape->arch == SIM_GFX1250)
        return 16 * (e / 8) + 8 * q + e % 8;
    const int m = shape->m, n = shape->n;
    const int height = shape->d == SIM_MATRIX_F64 ? 1 : 4;
    const int blocks = (64 + n * m / height - 1) / (n * m / height); /* of an item over all lanes */
    const int groups = 64 / blocks / n;                              /* of `height` rows, of a block, in an item */
    const int tall = m / (height * groups);
    const int i = e % height + height * (q % groups + groups * (e / height % tall));
    return (q / groups + blocks * (e / height / tall)) * m + i;
}

/* What lay_out and result_row say of each shape, made before main. */
enum { MAX_PLACES = 64 }; /* items of a lane's result, times groups of n lanes */

typedef struct layout {
    uint16_t offset[2][MAX_DEPTH]; /* of operands of 8 or more bits; of less */
    uint16_t row[MAX_PLACES];      /* [item][lane group] */
} layout;

static const layout *layout_of(const sim_shape *shape);

/* Values
 * ------
 */
/* By the definition of the format, without a table, so that it becomes vector code: significand * 2^exponent. */
INLINE float value_of_small(uint32_t code, int exponent_bits, int mantissa_bits, int bias)
{
    const uint32_t field = code >> mantissa_bits & ((1u << exponent_bits) - 1u);
    const uint32_t mantissa = code & ((1u << mantissa_bits) - 1u);
    const uint32_t is_normal = field != 0;
    const float    significand = (float)(int32_t)(mantissa | is_normal << mantissa_bits);
    const float    power = sim_float_of((field + 1u - is_normal + (uint32_t)(127 - bias - mantissa_bits)) << 23);
    const uint32_t sign = code >> (exponent_bits + mantissa_bits) << 31;
    return sim_float_of(sim_bits_of(significand * power) | sign);
}

/* `otherwise`, or `special` where `is_special`: by masks, for GCC makes a branch of a choice that an FP operation
 * feeds. */
INLINE float choose(bool is_special, uint32_t special, float otherwise)
{
    const uint32_t mask = 0u - (uint32_t)is_special;
    return sim_float_of((special & mask) | (sim_bits_of(otherwise) & ~mask));
}

INLINE float value_of_fp8(uint32_t code)
{
    return choose((code & 0x7Fu) == 0x7Fu, NAN_F32, value_of_small(code, 4, 3, 7));
}

/* With Inf and NaN: BF8, F16. */
INLINE float value_of_ieee(uint32_t code, int exponent_bits, int mantissa_bits, int bias)
{
    const uint32_t infinity = ((1u << exponent_bits) - 1u) << mantissa_bits;
    const uint32_t size = code & (infinity | ((1u << mantissa_bits) - 1u));
    const uint32_t sign = code >> (exponent_bits + mantissa_bits) << 31;
    const float    special = choose(size > infinity, NAN_F32, sim_float_of(0x7F800000u | sign));
    return choose(size >= infinity, sim_bits_of(special), value_of_small(code, exponent_bits, mantissa_bits, bias));
}

/* Each item of `bits` bits in all lanes, by the expression of its `code`; an item of 6 bits may lie across two
 * registers. By way of float, whose vectors have as many lanes as those of the codes. */
#define DECODE(bits, expression)                                                                                   \
    for (int e = 0; e < items; e++) {                                                                              \
        const int       shift = e * (bits) % 32, left = shift + (bits) > 32 ? 32 - shift : 31;                     \
        const uint32_t *low = words + e * (bits) / 32 * lanes, *high = shift + (bits) > 32 ? low + lanes : low;    \
        const uint32_t  mask = 0xFFFFFFFFu >> (32 - (bits));                                                       \
        float           row[SIM_MAX_LANES];                                                                        \
        for (int l = 0; l < lanes; l++) {                                                                          \
            const uint32_t code = (32 % (bits) == 0 ? low[l] >> shift : low[l] >> shift | high[l] << left) & mask; \
            row[l] = (expression);                                                                                 \
        }                                                                                                          \
        for (int l = 0; l < lanes; l++)                                                                            \
            value[e * lanes + l] = row[l];                                                                         \
    }

INLINE void decode(const uint32_t *words, int element, bool is_signed, int items, int lanes, double *restrict value)
{
    switch (element) {
    case SIM_FP8:
        DECODE(8, value_of_fp8(code))
        break;
    case SIM_BF8:
        DECODE(8, value_of_ieee(code, 5, 2, 15))
        break;
    case SIM_FP6:
        DECODE(6, value_of_small(code, 2, 3, 1))
        break;
    case SIM_BF6:
        DECODE(6, value_of_small(code, 3, 2, 3))
        break;
    case SIM_FP4:
        DECODE(4, value_of_small(code, 2, 1, 1))
        break;
    case SIM_F16:
        DECODE(16, value_of_ieee(code, 5, 10, 15))
        break;
    case SIM_BF16:
        DECODE(16, sim_f32_of_bf16(code))
        break;
    case SIM_MATRIX_F32:
        DECODE(32, sim_float_of(code))
        break;
    case SIM_MATRIX_I8:
    case SIM_MATRIX_IU8:
        if (is_signed)
            DECODE(8, (int8_t)code)
        else
            DECODE(8, code)
        break;
    default: /* F64: one item, two registers */
        for (int l = 0; l < lanes; l++)
            value[l] = sim_double_of(words[l] | (uint64_t)words[lanes + l] << 32);
    }
}

/* Products
 * --------
 * to[i][j] = sum of a[k][i] * b[k][j] over `ks` values of k, for a tile of ROWS x columns.
 */
enum { ROWS = 2, COLUMNS = 16 };

INLINE void multiply_plain(const double *a, const uint16_t *at_a, const double *b, const uint16_t *at_b, int ks,
                           int columns, double *restrict to)
{
    double sum[ROWS][COLUMNS] = { { 0 } };
    for (int k = 0; k < ks; k++) {
        const double *x = a + at_a[k], *y = b + at_b[k];
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < columns; j++)
                sum[i][j] += x[i] * y[j];
    }
    memcpy(to, sum, sizeof sum);
}

#ifdef HAVE_AVX2
/* The same sums in the same order. Fused or not makes no difference: the products are exact. */
__attribute__((target("avx2,fma"))) static void multiply_avx2(const double *a, const uint16_t *at_a, const double *b,
                                                              const uint16_t *at_b, int ks, double *restrict to)
{
    __m256d sum0[4] = { _mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd() };
    __m256d sum1[4] = { _mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd() };
    for (int k = 0; k < ks; k++) {
        const double *x = a + at_a[k], *y = b + at_b[k];
        const __m256d x0 = _mm256_broadcast_sd(x), x1 = _mm256_broadcast_sd(x + 1);
        for (int v = 0; v < 4; v++) {
            const __m256d yv = _mm256_loadu_pd(y + 4 * v);
            sum0[v] = _mm256_fmadd_pd(x0, yv, sum0[v]);
            sum1[v] = _mm256_fmadd_pd(x1, yv, sum1[v]);
        }
    }
    for (int v = 0; v < 4; v++) {
        _mm256_storeu_pd(to + 4 * v, sum0[v]);
        _mm256_storeu_pd(to + COLUMNS + 4 * v, sum1[v]);
    }
}
#endif

INLINE void multiply(const bool avx2, const double *a, const uint16_t *at_a, const double *b, const uint16_t *at_b,
                     int ks, int columns, double *restrict to)
{
#ifdef HAVE_AVX2
    if (avx2 && columns == COLUMNS) {
        multiply_avx2(a, at_a, b, at_b, ks, to);
        return;
    }
#endif
    (void)avx2;
    if (columns == COLUMNS)
        multiply_plain(a, at_a, b, at_b, ks, COLUMNS, to);
    else
        multiply_plain(a, at_a, b, at_b, ks, 4, to);
}

/* Scales of A or B: value[row][block of k]. */
typedef struct scales {
    float value[32][8];
} scales;

typedef struct problem {
    const sim_shape *shape;
    const layout    *layout;
    factor           a, b;
    scales           scale_a, scale_b;
    uint32_t         c[MAX_RESULTS], d[MAX_RESULTS];                /* words [register][lane] */
    double           sum[MAX_RESULTS] __attribute__((aligned(32))); /* [block][row][column] */
} problem;

INLINE void multiply_all(const bool avx2, problem *p)
{
    const sim_shape *shape = p->shape;
    const int        m = shape->m, n = shape->n, columns = n < COLUMNS ? n : COLUMNS;
    const int        ks = shape->scale != 0 ? shape->scale : shape->depth;
    const int        rows_of_set = m / p->a.sets;
    const int        set_values = p->a.items * (shape->arch == SIM_GFX950 ? 64 : 32);
    for (int block = 0; block < shape->blocks; block++) {
        for (int i = 0; i < m; i += ROWS) {
            const double *a = p->a.value + i / rows_of_set * set_values + block * rows_of_set + i % rows_of_set;
            for (int j = 0; j < n; j += columns) {
                const double *b = p->b.value + block * n + j;
                double       *sum = p->sum + (size_t)((block * m + i) * n + j);
                for (int k = 0; k < shape->depth; k += ks) {
                    double part[ROWS][COLUMNS];
                    multiply(avx2, a, p->a.offset + k, b, p->b.offset + k, ks, columns, part[0]);
                    for (int r = 0; r < ROWS; r++) {
                        if (shape->scale == 0) {
                            memcpy(sum + r * n, part[r], (size_t)columns * sizeof(double));
                            continue;
                        }
                        const double scale = p->scale_a.value[i + r][k / ks];
                        for (int c = 0; c < columns; c++) {
                            const double term = part[r][c] * (scale * p->scale_b.value[j + c][k / ks]);
                            sum[r * n + c] = k == 0 ? term : sum[r * n + c] + term;
                        }
                    }
                }
            }
        }
    }
}

/* Results
 * -------
 */
/* {ABS, NEG} of C. */
typedef struct modifiers {
    bool negate, absolute;
} modifiers;

INLINE double modified(double c, modifiers mod)
{
    const double size = mod.absolute ? fabs(c) : c;
    return mod.negate ? -size : size;
}

INLINE uint32_t f32_result(double x)
{
    const uint32_t bits = sim_bits_of((float)x);
    return x != x ? NAN_F32 : bits;
}

static uint32_t saturated_f32(double x)
{
    const float f = (float)x;
    return isfinite(x) && isinf(f) ? sim_bits_of(copysignf(0x1.fffffep127f, f)) : f32_result(x);
}

/* Above the maximum or below the minimum, or else its low 32 bits. |x| < 2^53. */
static uint32_t i32_result(double x, bool saturate)
{
    const int64_t i = (int64_t)x;
    if (saturate && i > INT32_MAX)
        return INT32_MAX;
    if (saturate && i < INT32_MIN)
        return (uint32_t)INT32_MIN;
    return (uint32_t)(uint64_t)i;
}

static uint32_t half_result(sim_format format, double x, bool saturate)
{
    if (isnan(x))
        return format == SIM_F16 ? 0x7E00u : 0x7FC0u;
    return sim_encode(format, x, saturate && isfinite(x));
}

static double c_value(const problem *p, int lanes, int e, int lane)
{
    switch (p->shape->c) {
    case SIM_F16:
    case SIM_BF16:
        return sim_decode((sim_format)p->shape->c, p->c[e / 2 * lanes + lane] >> 16 * (e % 2));
    case SIM_MATRIX_I32:
        return (int32_t)p->c[e * lanes + lane];
    default:
        return sim_float_of(p->c[e * lanes + lane]);
    }
}

static void put_result(problem *p, int lanes, int e, int lane, double x, bool saturate)
{
    const int format = p->shape->d;
    if (format == SIM_MATRIX_I32) {
        p->d[e * lanes + lane] = i32_result(x, saturate);
    } else if (format == SIM_MATRIX_F32) {
        p->d[e * lanes + lane] = saturate ? saturated_f32(x) : f32_result(x);
    } else {
        const uint32_t half = half_result((sim_format)format, x, saturate) << 16 * (e % 2);
        uint32_t      *word = &p->d[e / 2 * lanes + lane];
        *word = e % 2 == 0 ? half : *word | half;
    }
}

INLINE void finish(problem *p, int lanes, modifiers mod, bool saturate)
{
    const sim_shape *shape = p->shape;
    const int        n = shape->n, items = shape->m * n * shape->blocks / lanes;
    const bool       plain = shape->c == SIM_MATRIX_F32 && shape->d == SIM_MATRIX_F32 && !saturate;
    for (int e = 0; e < items; e++) {
        for (int q = 0; q < lanes / n; q++) {
            const double *restrict sum = p->sum + p->layout->row[e * (lanes / n) + q] * n;
            const int at = e * lanes + q * n;
            if (plain)
                for (int j = 0; j < n; j++)
                    p->d[at + j] = f32_result(sum[j] + modified(sim_float_of(p->c[at + j]), mod));
            else
                for (int j = 0; j < n; j++)
                    put_result(p, lanes, e, q * n + j, sum[j] + modified(c_value(p, lanes, e, q * n + j), mod),
                               saturate);
        }
    }
}

/* F64: neg, as the disassembler prints it, of A, B and C. */
static void run_f64(problem *p, uint32_t negate)
{
    const sim_shape *shape = p->shape;
    const int        m = shape->m, n = shape->n;
    for (int e = 0; e < m * n * shape->blocks / 64; e++) {
        for (int lane = 0; lane < 64; lane++) {
            const int row = p->layout->row[e * (64 / n) + lane / n], block = row / m;
            uint32_t *low = &p->c[2 * e * 64 + lane];
            double    d = sim_double_of(low[0] | (uint64_t)low[64] << 32);
            d = (negate & 4) != 0 ? -d : d;
            for (int k = 0; k < shape->depth; k++) {
                const double a = p->a.value[p->a.offset[k] + block * m + row % m];
                const double b = p->b.value[p->b.offset[k] + block * n + lane % n];
                d = fma(((negate ^ negate >> 1) & 1) != 0 ? -a : a, b, d);
            }
            const uint64_t bits = isnan(d) ? 0x7FF8000000000000u : sim_bits_of_double(d);
            p->d[2 * e * 64 + lane] = (uint32_t)bits;
            p->d[(2 * e + 1) * 64 + lane] = (uint32_t)(bits >> 32);
        }
    }
}

/* Operands
 * --------
 */
enum { OPERAND_D, OPERAND_A, OPERAND_B, OPERAND_C, OPERAND_SCALE_A, OPERAND_SCALE_B };

/* The words [register][lane] of a tuple; NULL: fails. s_set_vgpr_msb may have moved it beyond the file. */
static uint32_t *tuple(sim_wave *w, const sim_instruction *inst, const sim_operand *o, int registers)
{
    const int limit = w->lanes == 64 ? SIM_VECTORS_GFX950 : SIM_VECTORS_GFX1250;
    const int first = (int)((sim_vector(w, o, 0) - w->v) / w->lanes);
    if ((o->kind != SIM_VECTOR && o->kind != SIM_ACC) || o->count != registers || first + registers > limit) {
        sim_fail(w, inst, "not a tuple of %d vector registers", registers);
        return NULL;
    }
    return sim_vector(w, o, 0);
}

/* CDNA4 ISA 7.1.6: A from the lanes of one of 2^cbsz blocks, B from permuted lanes. */
static int lane_of_a(const sim_instruction *inst, int lane)
{
    const int size = 64 >> inst->cbsz;
    return lane % size + size * inst->abid;
}

static int lane_of_b(const sim_instruction *inst, int lane)
{
    switch (inst->blgp) {
    case 0:
        return lane;
    case 1:
    case 2:
        return lane % 32 + 32 * (inst->blgp - 1);
    case 3:
        return (lane + 16) % 64;
    default:
        return lane % 16 + 16 * (inst->blgp - 4);
    }
}

static bool may_broadcast(const sim_shape *shape)
{
    return shape->arch == SIM_GFX950 && shape->a != SIM_MATRIX_CHOSEN && shape->a != SIM_MATRIX_F64;
}

static bool broadcast_is_legal(const sim_instruction *inst)
{
    const sim_shape *shape = inst->op->detail;
    return !may_broadcast(shape) ||
           (inst->cbsz <= 4 && 1 << inst->cbsz <= shape->blocks && inst->abid < 1 << inst->cbsz && inst->blgp <= 7);
}

/* The words of A or B as the multiplier sees them: `copy` if lanes are broadcast. */
static const uint32_t *broadcast(const sim_instruction *inst, int which, const uint32_t *words, int registers,
                                 uint32_t *copy)
{
    if (!may_broadcast(inst->op->detail) || (which == 0 ? inst->cbsz : inst->blgp) == 0)
        return words;
    for (int r = 0; r < registers; r++)
        for (int l = 0; l < 64; l++)
            copy[r * 64 + l] = words[r * 64 + (which == 0 ? lane_of_a(inst, l) : lane_of_b(inst, l))];
    return copy;
}

INLINE bool load_factor(sim_wave *w, const sim_instruction *inst, problem *p, int which)
{
    factor *f = which == 0 ? &p->a : &p->b;
    f->element = sim_matrix_element(inst, which);
    if (p->shape->a == SIM_MATRIX_CHOSEN && f->element > SIM_FP4) {
        sim_fail(w, inst, "operand format %d does not exist", f->element);
        return false;
    }
    f->bits = sim_matrix_element_bits(f->element);
    f->sets = (which == 0 ? p->shape->m : p->shape->n) / rows_of_set(p->shape, p->shape->m);
    f->items = p->shape->depth / groups_of(p->shape);
    f->offset = p->layout->offset[f->bits < 8];
    const int       registers = f->sets * f->items * f->bits / 32;
    const uint32_t *words = tuple(w, inst, &inst->operand[OPERAND_A + which], registers);
    if (words == NULL)
        return false;
    uint32_t copy[MAX_WORDS];
    words = broadcast(inst, which, words, registers, copy);
    const bool is_signed = f->element == SIM_MATRIX_I8 || (inst->neg_lo >> which & 1) != 0;
    if (w->lanes == 64)
        decode(words, f->element, is_signed, f->sets * f->items, 64, f->value);
    else
        decode(words, f->element, is_signed, f->sets * f->items, 32, f->value);
    return true;
}

/* C is registers or an inline constant, which every item then is. */
static bool load_c(sim_wave *w, const sim_instruction *inst, problem *p, int registers)
{
    const sim_operand *o = &inst->operand[OPERAND_C];
    const int          element = p->shape->c;
    if (o->kind == SIM_VECTOR || o->kind == SIM_ACC) {
        const uint32_t *words = tuple(w, inst, o, registers);
        if (words != NULL)
            memcpy(p->c, words, (size_t)registers * (size_t)w->lanes * sizeof *words);
        return words != NULL;
    }
    uint64_t bits = (uint64_t)o->value;
    if ((o->kind != SIM_INTEGER && o->kind != SIM_REAL) || o->literal) {
        sim_fail(w, inst, "C is neither vector registers nor an inline constant");
        return false;
    }
    if (o->kind == SIM_REAL && element == SIM_MATRIX_F64)
        bits = sim_bits_of_double(o->real);
    else if (o->kind == SIM_REAL && (element == SIM_F16 || element == SIM_BF16))
        bits = sim_encode((sim_format)element, o->real, false);
    else if (o->kind == SIM_REAL)
        bits = sim_bits_of((float)o->real);
    if (element == SIM_F16 || element == SIM_BF16)
        bits = (bits & 0xFFFFu) * 0x10001u;
    for (int r = 0; r < registers; r++)
        for (int l = 0; l < w->lanes; l++)
            p->c[r * w->lanes + l] = (uint32_t)(element == SIM_MATRIX_F64 && r % 2 == 1 ? bits >> 32 : bits);
    return true;
}

/* gfx950: lane = row + m * block of k, and a byte that op_sel and op_sel_hi choose (not printed: 0). E8M0. */
static bool load_scales_gfx950(sim_wave *w, const sim_instruction *inst, const sim_shape *shape, int which, scales *to)
{
    const uint32_t *word = tuple(w, inst, &inst->operand[OPERAND_SCALE_A + which], 1);
    if (word == NULL)
        return false;
    const int high = inst->has_op_sel_hi ? inst->op_sel_hi >> which & 1 : 0;
    const int shift = 8 * (2 * high + (inst->op_sel >> which & 1));
    for (int row = 0; row < shape->m; row++)
        for (int block = 0; block < shape->depth / shape->scale; block++)
            to->value[row][block] = sim_value_of_e8m0[word[row + shape->m * block] >> shift & 0xFFu];
    return true;
}

/* MATRIX_SCALE_FMT_*: E8, E5M3, E4M3. */
static float scale_value(int format, uint32_t code)
{
    return format == 0   ? sim_value_of_e8m0[code]
           : format == 1 ? sim_value_of_e5m3[code]
                         : sim_value_of_fp8[code & 0x7Fu];
}

/* CDNA5 ISA 7.12.6: F8 and F6 take E8M0; F4 any, but against F4 the same, or E8M0 on both sides. */
static bool scale_formats_are_legal(const sim_instruction *inst)
{
    const bool a_is_fp4 = sim_matrix_element(inst, 0) == SIM_FP4, b_is_fp4 = sim_matrix_element(inst, 1) == SIM_FP4;
    if (inst->a_scale_format > 2 || inst->b_scale_format > 2)
        return false;
    if (a_is_fp4 && b_is_fp4)
        return inst->a_scale_format == inst->b_scale_format;
    return (a_is_fp4 || inst->a_scale_format == 0) && (b_is_fp4 || inst->b_scale_format == 0);
}

/* gfx1250: byte j of a lane's 4 (or 8, of two registers) is block j of k; 16 rows lie in lanes 0 to 15 or 16 to 31, 32
 * rows in all. A scalar register's low byte is every scale; the constant 0 is 1.0. s_set_vgpr_msb does not apply. */
static bool load_scales_gfx1250(sim_wave *w, const sim_instruction *inst, const sim_shape *shape, int which, scales *to)
{
    const sim_operand *o = &inst->operand[OPERAND_SCALE_A + which];
    const int          format = which == 0 ? inst->a_scale_format : inst->b_scale_format;
    const int          half = which == 0 ? inst->a_scale_row : inst->b_scale_row;
    const int          rows = which == 0 ? shape->m : shape->n, blocks = shape->depth / shape->scale;
    const bool         is_scalar = o->kind == SIM_SCALAR, is_zero = o->kind == SIM_INTEGER && o->value == 0;
    if (!is_scalar && !is_zero && (o->kind != SIM_VECTOR || o->count != blocks / 4 || (rows == 32 && half != 0))) {
        sim_fail(w, inst, "this scale operand is not supported");
        return false;
    }
    for (int row = 0; row < rows; row++) {
        for (int block = 0; block < blocks; block++) {
            float value = 1.0f;
            if (is_scalar) {
                value = scale_value(format, w->s[o->reg] & 0xFFu);
            } else if (!is_zero) {
                const uint32_t *word = w->v + (size_t)(o->reg + block / 4) * (size_t)w->lanes;
                value = scale_value(format, word[row + 16 * half] >> 8 * (block % 4) & 0xFFu);
            }
            to->value[row][block] = value;
        }
    }
    return true;
}

static bool load_scales(sim_wave *w, const sim_instruction *inst, problem *p)
{
    if (p->shape->scale == 0)
        return true;
    if (p->shape->arch == SIM_GFX950)
        return load_scales_gfx950(w, inst, p->shape, 0, &p->scale_a) &&
               load_scales_gfx950(w, inst, p->shape, 1, &p->scale_b);
    if (!scale_formats_are_legal(inst)) {
        sim_fail(w, inst, "these formats of scales and operands do not go together");
        return false;
    }
    return load_scales_gfx1250(w, inst, p->shape, 0, &p->scale_a) &&
           load_scales_gfx1250(w, inst, p->shape, 1, &p->scale_b);
}

/* CDNA5 ISA 7.12: of the modifiers, only those of C exist; those of A and B of IU8 say which are signed. */
static bool modifiers_are_legal(const sim_instruction *inst, const sim_shape *shape)
{
    if (shape->arch == SIM_GFX950)
        return shape->a == SIM_MATRIX_F64 || (inst->neg_lo == 0 && inst->neg_hi == 0 && !inst->clamp);
    if (shape->a == SIM_MATRIX_IU8)
        return (inst->neg_lo & 4) == 0 && inst->neg_hi == 0;
    return (inst->neg_lo & 3) == 0 && (inst->neg_hi & 3) == 0 && !inst->clamp;
}

static void check_reuse(sim_wave *w, const sim_instruction *inst)
{
    if ((inst->a_reuse || inst->b_reuse) && w->previous_wmma != inst->op)
        sim_report(w, inst, SIM_CHECK_ADVICE, -1,
                   "matrix_a_reuse and matrix_b_reuse are undefined unless the previous WMMA is the same instruction");
    w->previous_wmma = inst->op;
}

INLINE void run(const bool avx2, sim_wave *w, const sim_instruction *inst)
{
    const sim_shape *shape = inst->op->detail;
    const int registers = shape->m * shape->n * shape->blocks * sim_matrix_element_bits(shape->d) / 32 / w->lanes;
    const int c_registers = shape->m * shape->n * shape->blocks * sim_matrix_element_bits(shape->c) / 32 / w->lanes;
    problem   p;
    p.shape = shape;
    p.layout = layout_of(shape);
    if (!modifiers_are_legal(inst, shape) || !broadcast_is_legal(inst)) {
        sim_fail(w, inst, "this modifier is undefined here");
        return;
    }
    uint32_t *d = tuple(w, inst, &inst->operand[OPERAND_D], registers);
    if (d == NULL || !load_factor(w, inst, &p, 0) || !load_factor(w, inst, &p, 1) ||
        !load_c(w, inst, &p, c_registers) || !load_scales(w, inst, &p))
        return;
    const bool overflow = (w->mode & SIM_MODE_FP16_OVFL) != 0;
    const bool saturate = inst->clamp || (overflow && !(shape->arch == SIM_GFX1250 && shape->d == SIM_MATRIX_F32));
    if (shape->d == SIM_MATRIX_F64) {
        run_f64(&p, inst->neg_lo);
    } else {
        const modifiers mod = { (inst->neg_lo & 4) != 0, (inst->neg_hi & 4) != 0 };
        multiply_all(avx2, &p);
        finish(&p, w->lanes, mod, saturate);
    }
    memcpy(d, p.d, (size_t)registers * (size_t)w->lanes * sizeof *d);
    if (shape->arch == SIM_GFX1250)
        check_reuse(w, inst);
}

#ifdef HAVE_AVX2
__attribute__((target("avx2,fma"))) static void run_avx2(sim_wave *w, const sim_instruction *inst)
{
    run(true, w, inst);
}
#endif

static void run_plain(sim_wave *w, const sim_instruction *inst)
{
    run(false, w, inst);
}

static void run_matrix(sim_wave *w, const sim_instruction *inst)
{
#ifdef HAVE_AVX2
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        run_avx2(w, inst);
        return;
    }
#endif
    run_plain(w, inst);
}

/* The table
 * ---------
 */
/* Names of elements, as matrix.def has them. */
enum {
    ELEMENT_FP8 = SIM_FP8,
    ELEMENT_BF8 = SIM_BF8,
    ELEMENT_FP4 = SIM_FP4,
    ELEMENT_F16 = SIM_F16,
    ELEMENT_BF16 = SIM_BF16,
    ELEMENT_F32 = SIM_MATRIX_F32,
    ELEMENT_F64 = SIM_MATRIX_F64,
    ELEMENT_I8 = SIM_MATRIX_I8,
    ELEMENT_IU8 = SIM_MATRIX_IU8,
    ELEMENT_I32 = SIM_MATRIX_I32,
    ELEMENT_CHOSEN = SIM_MATRIX_CHOSEN
};

enum {
#define MFMA(name, ...) SHAPE_##name,
#define WMMA(name, ...) SHAPE_##name,
#include "matrix.def"
#undef MFMA
#undef WMMA
    SHAPES
};

static const sim_shape shapes[SHAPES] = {
#define MFMA(name, class, m_, n_, k, blocks_, a_, b_, c_, d_, passes_, small, scale_) \
    { .arch = SIM_GFX950,                                                             \
      .m = m_,                                                                        \
      .n = n_,                                                                        \
      .depth = k,                                                                     \
      .blocks = blocks_,                                                              \
      .a = ELEMENT_##a_,                                                              \
      .b = ELEMENT_##b_,                                                              \
      .c = ELEMENT_##c_,                                                              \
      .d = ELEMENT_##d_,                                                              \
      .scale = scale_,                                                                \
      .passes = passes_,                                                              \
      .passes_small = small,                                                          \
      .cycles = 4 * (passes_),                                                        \
      .cycles_small = 4 * (small) },
#define WMMA(name, m_, k, a_, b_, c_, d_, run_, passes_, small, cycles_, cycles_small_, scale_) \
    { .arch = SIM_GFX1250,                                                                      \
      .m = m_,                                                                                  \
      .n = 16,                                                                                  \
      .depth = k,                                                                               \
      .blocks = 1,                                                                              \
      .a = ELEMENT_##a_,                                                                        \
      .b = ELEMENT_##b_,                                                                        \
      .c = ELEMENT_##c_,                                                                        \
      .d = ELEMENT_##d_,                                                                        \
      .run = run_,                                                                              \
      .scale = scale_,                                                                          \
      .passes = passes_,                                                                        \
      .passes_small = small,                                                                    \
      .cycles = cycles_,                                                                        \
      .cycles_small = cycles_small_ },
#include "matrix.def"
#undef MFMA
#undef WMMA
};

static layout layouts[SHAPES];

__attribute__((constructor)) static void make_layouts(void)
{
    for (int s = 0; s < SHAPES; s++) {
        const sim_shape *shape = &shapes[s];
        const int        lanes = lanes_of(shape), groups = lanes / shape->n;
        lay_out(shape, 8, layouts[s].offset[0]);
        lay_out(shape, 4, layouts[s].offset[1]);
        for (int e = 0; e < shape->m * shape->n * shape->blocks / lanes; e++)
            for (int q = 0; q < groups; q++)
                layouts[s].row[e * groups + q] = (uint16_t)result_row(shape, e, q);
    }
}

static const layout *layout_of(const sim_shape *shape)
{
    return &layouts[shape - shapes];
}

const sim_opcode sim_matrix_opcodes[] = {
#define MFMA(name, class, ...)                                                                        \
    { #name,      SIM_ON_GFX950,        SIM_##class, 1, SIM_IGNORES_EXEC | SIM_CROSS_LANE | SIM_EVEN, \
      run_matrix, &shapes[SHAPE_##name] },
#define WMMA(name, ...)                                                                                       \
    { #name,      SIM_ON_GFX1250,       SIM_WMMA, 1, SIM_IGNORES_EXEC | SIM_CROSS_LANE | SIM_WANTS_ALL_LANES, \
      run_matrix, &shapes[SHAPE_##name] },
#include "matrix.def"
#undef MFMA
#undef WMMA
    { NULL, 0, 0, 0, 0, NULL, NULL }
};
