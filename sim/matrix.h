/* Matrix instructions: what one row of matrix.def says of an MFMA (gfx950) or a WMMA (gfx1250). */
#ifndef ETALON_SIM_MATRIX_H
#define ETALON_SIM_MATRIX_H

#include "convert.h"
#include "machine.h"

/* Elements beyond the small floats of convert.h; they share its numbering. */
enum {
    SIM_MATRIX_F32 = SIM_SMALL_FORMATS,
    SIM_MATRIX_F64,
    SIM_MATRIX_I8,
    SIM_MATRIX_IU8, /* signed where the operand's bit of neg_lo is set */
    SIM_MATRIX_I32,
    SIM_MATRIX_CHOSEN /* FP8, BF8, FP6, BF6 or FP4: by cbsz and blgp, or by matrix_a_fmt and matrix_b_fmt */
};

/* D[b][i][j] = C[b][i][j] + sum over k of A[b][i][k] * B[b][k][j], with b < blocks, i < m, j < n, k < depth. */
typedef struct sim_shape {
    uint8_t m, n, depth, blocks;
    uint8_t a, b, c, d; /* elements */
    uint8_t run;        /* consecutive k that a lane holds before its next run; 0: all that it holds */
    uint8_t scale;      /* k that share a scale: 16 or 32; 0: no scales */
    uint8_t arch;       /* sim_arch */
    /* gfx950: passes of 4 cycles. gfx1250: V_NOPs between D and a VALU instruction that uses it; one more before a
     * WMMA's A or B does. `passes_small` is for A and B of at most 6 bits each, where the instruction lets one choose.
     * */
    uint8_t passes, passes_small;
    /* For the issue model: cycles that the matrix unit of a SIMD is busy. gfx950: 4 * passes. gfx1250: from the rate
     * that its vendor states, see matrix.def. */
    uint8_t cycles, cycles_small;
} sim_shape;

/* The shape of an instruction of class SIM_XDL, SIM_SGEMM or SIM_WMMA; NULL: of another class, or without one. */
const sim_shape *sim_matrix_shape(const sim_instruction *inst);
/* Passes and busy cycles of the instruction, with the operands' formats taken into account; 0: not a matrix
 * instruction. */
int sim_matrix_passes(const sim_instruction *inst);
int sim_matrix_cycles(const sim_instruction *inst);

/* The element of A (which 0) or B (1): the chosen format where there is a choice. */
int sim_matrix_element(const sim_instruction *inst, int which);
int sim_matrix_element_bits(int element);

#endif
