/* The parts of the table of opcodes: each ends with a row whose name is NULL and lies beside its handlers. */
#ifndef ETALON_SIM_OPCODES_H
#define ETALON_SIM_OPCODES_H

#include "instruction.h"

extern const sim_opcode sim_salu_opcodes[];    /* salu.c */
extern const sim_opcode sim_valu_opcodes[];    /* valu.c */
extern const sim_opcode sim_memory_opcodes[];  /* memory.c */
extern const sim_opcode sim_matrix_opcodes[];  /* matrix.c */
extern const sim_opcode sim_control_opcodes[]; /* control.c */

#endif
