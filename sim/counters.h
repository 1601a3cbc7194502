/* Counts of one dispatch: what execution tells them, and who keeps them (counters.c). Where a wave's counters are NULL
 * nothing is called.
 *
 * A sim_results belongs to the device, and is of the last dispatch. A thread counts in a sim_counters of its own for
 * each workgroup that it has begun, without locks; the end of a workgroup adds it to the results.
 */
#ifndef ETALON_SIM_COUNTERS_H
#define ETALON_SIM_COUNTERS_H

#include "machine.h"

typedef struct sim_results sim_results;

/* What limits how many workgroups fit, and names the kernel. */
typedef struct sim_launch_shape {
    const char *kernel;
    sim_arch    arch;
    uint64_t    entry; /* PCs are printed relative to it */
    uint64_t    groups;
    uint32_t    waves, vectors; /* waves of a workgroup; registers of a wave, accumulators included */
    uint32_t    lds_bytes;      /* of a workgroup, dynamic LDS included */
    bool        per_pc;         /* also a row for each instruction, and which bytes are read */
} sim_launch_shape;

/* NULL: out of memory; then nothing is counted. */
sim_results *sim_results_create(const sim_launch_shape *launch);
void sim_results_destroy(sim_results *results);

sim_counters *sim_counters_create(sim_results *results);
void sim_counters_destroy(sim_counters *counters);
/* Adds what was counted to the results, and begins again. */
void sim_counters_end_group(sim_counters *counters);

void sim_counters_instruction(sim_wave *w, const sim_instruction *inst);
void sim_counters_touch(sim_wave *w, uint64_t address, uint64_t bytes);

/* execute.c, each instruction, before it runs. */
static inline void sim_count_instruction(sim_wave *w, const sim_instruction *inst)
{
    if (w->counters != NULL)
        sim_counters_instruction(w, inst);
}

/* memory.c: bytes of global memory that are about to be read. */
static inline void sim_count_touch(sim_wave *w, uint64_t address, uint64_t bytes)
{
    if (w->counters != NULL)
        sim_counters_touch(w, address, bytes);
}

void sim_counters_global(sim_wave *w, const sim_instruction *inst, uint64_t bytes, bool is_write);
void sim_counters_lds(sim_wave *w, const sim_instruction *inst, uint32_t conflict_cycles);

/* Bytes that an operation moves from or to global memory, of all lanes. */
static inline void sim_count_global(sim_wave *w, const sim_instruction *inst, uint64_t bytes, bool is_write)
{
    if (w->counters != NULL)
        sim_counters_global(w, inst, bytes, is_write);
}

/* Cycles that a DS operation takes beyond those without bank conflicts. */
static inline void sim_count_lds(sim_wave *w, const sim_instruction *inst, uint32_t conflict_cycles)
{
    if (w->counters != NULL)
        sim_counters_lds(w, inst, conflict_cycles);
}

/* Bank conflicts of one access of `bytes` a lane (4, 8, 12 or 16; less counts as 4) at the lanes' LDS addresses: over
 * the phases in which the lanes are served, the largest number of distinct words in one bank, less one (lds.c). */
uint32_t sim_lds_conflicts(sim_arch arch, uint32_t bytes, bool is_write, const uint32_t *address, uint64_t mask);

#endif
