/* What the parts of the vector ALU share: operands as rows of lanes, and results written under EXEC. */
#ifndef ETALON_SIM_VALU_H
#define ETALON_SIM_VALU_H

#include "convert.h"
#include "machine.h"

/* How an operand's bits are read. S*: results that may saturate. */
typedef enum lane_type {
    T_NONE,
    T_U32,
    T_I32,
    T_F32,
    T_U64,
    T_I64,
    T_F64,
    T_U16,
    T_I16,
    T_F16,
    T_BF16,
    T_SU32,
    T_SI32,
    T_SU16,
    T_SI16,
    T_MASK
} lane_type;

typedef struct lane_rows lane_rows;
typedef void lane_function(const lane_rows *x);

/* Sources and results of one instruction as arrays of lanes; the second row of a pair of registers is its high word. */
struct lane_rows {
    int                    n;
    uint32_t              *d[2];
    uint32_t              *carry; /* a second result of a bit a lane */
    const uint32_t        *s[4][2];
    const sim_instruction *inst;
    uint64_t               vcc;
    bool                   clamp, ieee, saturate; /* MODE.IEEE (gfx950), MODE.FP16_OVFL */
};

typedef struct lane_shape {
    lane_function *lanes, *lanes_fma; /* the same compiled for hosts with FMA; NULL: there is none */
    uint8_t        result, source[3], sources;
    uint16_t       options;
} lane_shape;

enum {
    OPT_H0 = 1 << 0,
    OPT_FLUSH = 1 << 1,
    OPT_ACC = 1 << 2, /* the old result is the last source */
    OPT_BYTE = 1 << 3,
    OPT_E5M3 = 1 << 4,
    OPT_CARRY = 1 << 5,
    OPT_HIGH = 1 << 6, /* mixhi: the high half is written */
    OPT_DOT = 1 << 7,
    OPT_WIDE = 1 << 8 /* dot products of 16-bit elements */
};

typedef uint32_t lane_row[SIM_MAX_LANES];

static inline bool lane_type_is_pair(uint8_t type)
{
    return type == T_U64 || type == T_I64 || type == T_F64;
}

static inline bool lane_type_is_half(uint8_t type)
{
    return (type >= T_U16 && type <= T_BF16) || type == T_SU16 || type == T_SI16;
}

static inline bool lane_type_is_float(uint8_t type)
{
    return type == T_F32 || type == T_F64 || type == T_F16 || type == T_BF16;
}

/* The bits of a constant or scalar operand as `type` reads it. */
uint64_t valu_uniform(const sim_wave *w, const sim_operand *o, uint8_t type);
/* One word of an operand for all lanes: word `i` of a tuple, or a broadcast; no modifiers. `room` is used where
 * needed. */
const uint32_t *valu_word(const sim_wave *w, const sim_operand *o, int i, uint8_t type, uint32_t *room);
/* Writes t[lane] to a register's lanes of `mask`. */
void valu_write(uint32_t *to, const uint32_t *t, uint64_t mask, int lanes);
/* 0 or all ones a lane. */
void valu_expand(uint32_t *to, uint64_t mask, int lanes);

#endif
