/* What execution tells the checks. All of it is free to be empty: with checks off, wave->watch is NULL and nothing is
 * called.
 *
 * An event is one memory operation of a wave: memory.c numbers them as they are issued, from 1, in each wave. The
 * checks map registers to the event that will write or still reads them, and bytes of LDS to the events that touched
 * them.
 */
#ifndef ETALON_SIM_CHECK_H
#define ETALON_SIM_CHECK_H

#include "machine.h"

typedef enum sim_access_kind { SIM_READ, SIM_WRITE, SIM_READ_WRITE /* atomic */ } sim_access_kind;

sim_watch *sim_watch_create(const sim_wave *w);
/* execute.c, once after sim_watch_create: the dispatch has set s0 to s(sgprs - 1) and v0 to v(vgprs - 1); the others
 * count as never written. Without this call every SGPR, and v0 to v2, count as set. */
void sim_check_launched(sim_wave *w, int sgprs, int vgprs);
void sim_watch_destroy(sim_watch *watch);
sim_lds_map *sim_lds_map_create(const sim_group *g);
void sim_lds_map_destroy(sim_lds_map *map);

/* execute.c, around each instruction. Before: pending and undefined registers, wait states, EXEC, alignment, overlap,
 * limits. After: what the instruction wrote, and how defined it is. */
void sim_check_before(sim_wave *w, const sim_instruction *inst);
void sim_check_after(sim_wave *w, const sim_instruction *inst);

/* memory.c. At issue: the operation gets an event of the counter(s) and holds the registers that it will write
 * (`loads`, lanes `mask`). At completion the registers are free; `waited`: by a wait of the program, not by the end of
 * the wave. */
void sim_check_issue(sim_wave *w, const sim_instruction *inst, uint64_t event, sim_counter counter, uint64_t mask);
void sim_check_complete(sim_wave *w, const sim_instruction *inst, uint64_t event, bool waited);

/* memory.c, each access of one lane, when it takes effect. Return false: the access must not be made (out of bounds: a
 * load gives 0, a store is dropped). `lane` -1: not of one lane (scalar, TDM). `address` in LDS counts from the
 * workgroup's base. */
bool sim_check_global(sim_wave *w, const sim_instruction *inst, uint64_t event, int lane, uint64_t address,
                      uint32_t bytes, sim_access_kind kind);
bool sim_check_lds(sim_wave *w, const sim_instruction *inst, uint64_t event, int lane, uint32_t address, uint32_t bytes,
                   sim_access_kind kind);
/* sim_check_global marks what it is told of as written in sim_range.written; sim_check_lds does the same for LDS, but
 * for bytes that come from undefined registers or memory. */
/* Whether bytes just loaded are all written; the check remembers it for the registers they go to. */
void sim_check_loaded(sim_wave *w, const sim_operand *to, int reg, int lane, bool written);
bool sim_lds_written(const sim_group *g, uint32_t address, uint32_t bytes);

/* execute.c: the wave signals and has passed a barrier (generation: of sim_barrier). */
void sim_check_signal(sim_wave *w, const sim_instruction *inst, int id, uint32_t generation);
void sim_check_passed(sim_wave *w, const sim_instruction *inst, int id, uint32_t generation);
/* The workgroup has ended. */
void sim_check_group_end(sim_group *g);

/* What the workgroups of a dispatch did to memory: execute.c makes one for each dispatch and hands it to every
 * sim_group as `global_map`; NULL: no check of races between workgroups. `groups`: how many the dispatch has. */
typedef struct sim_global_map sim_global_map;
sim_global_map *sim_global_map_create(uint64_t groups);
void sim_global_map_destroy(sim_global_map *map);

/* hazards.c: wait states of doc/SIMULATOR.md, along the executed path. */
void sim_hazards_before(sim_wave *w, const sim_instruction *inst);
void sim_hazards_after(sim_wave *w, const sim_instruction *inst);
/* Wait states that must lie between `first` and `second`: 0, none. VGPRs as numbered, without s_set_vgpr_msb. */
int sim_hazard_states(sim_arch arch, const sim_instruction *first, const sim_instruction *second);

#endif
