/* Details of the rows of valu_special.def. */
#ifndef ETALON_SIM_VALU_SPECIAL_H
#define ETALON_SIM_VALU_SPECIAL_H

#include "valu.h"

typedef struct permlane16 {
    int  other;   /* 16: the other row of the pair */
    bool by_lane; /* a selector a lane, not a nibble of two scalars */
} permlane16;

typedef enum permlane_kind { LANE_BCAST, LANE_UP, LANE_DOWN, LANE_XOR } permlane_kind;

typedef struct relative {
    bool source, result;
} relative;

typedef struct to_byte {
    sim_format to;
    bool       half; /* from F16, else F32 */
} to_byte;

/* Items are packed from bit 0 up, over as many registers as they need. UP multiplies by the scale, DOWN divides. */
enum {
    UP = 0,
    DOWN = 1,
    STOCHASTIC = 2,
    TWO_SOURCES = 4 /* one item each */,
    BLOCK_SCALE = 8 /* E8M0 of the matrix */
};
enum { OF_F32 = SIM_SMALL_FORMATS };

typedef struct scaled {
    uint8_t from, to, items, how;
} scaled;

sim_handler sim_run_readlane, sim_run_readfirstlane, sim_run_writelane, sim_run_swap;
sim_handler sim_run_permlane_swap, sim_run_permlane16, sim_run_permlane64, sim_run_permlane;
sim_handler sim_run_movrel, sim_run_pk_mov, sim_run_div_scale, sim_run_to_byte, sim_run_scaled;

#endif
