/* Text of the disassembler to an instruction: what sim_parse does, with a place for the second half of a pair. */
#ifndef ETALON_SIM_PARSE_H
#define ETALON_SIM_PARSE_H

#include "instruction.h"

/* `second` is written, and to->dual points to it, if the text is a VOPD pair. The instructions point to the text. */
bool sim_parse_pair(sim_arch arch, const char *text, sim_instruction *to, sim_instruction *second);

#endif
