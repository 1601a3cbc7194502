/* The state of a simulated workgroup, and the accessors that handlers of instructions use. */
#ifndef ETALON_SIM_MACHINE_H
#define ETALON_SIM_MACHINE_H

#include "instruction.h"

#include <pthread.h>

enum {
    SIM_MAX_LANES = 64,
    SIM_VECTORS_GFX950 = 512, /* v0 to v255, then a0 to a255 */
    SIM_VECTORS_GFX1250 = 1024,
    SIM_MAX_WAVES = 32, /* of a workgroup */
    SIM_BARRIERS = 17   /* of a workgroup: 0 is the one that all share, 1 to 16 are named */
};

/* Apertures of flat addresses: bits 63 to 32 say LDS or scratch. Far above what a host maps. */
#define SIM_SHARED_APERTURE 0x0001000000000000u
#define SIM_PRIVATE_APERTURE 0x0002000000000000u

/* MODE bits that change results. */
#define SIM_MODE_FP16_OVFL (1u << 23)

typedef struct sim_group    sim_group;
typedef struct sim_pending  sim_pending;  /* a memory operation between issue and completion: memory.c */
typedef struct sim_watch    sim_watch;    /* what the checks know of a wave: check.c; NULL with checks off */
typedef struct sim_lds_map  sim_lds_map;  /* what the checks know of LDS: check.c; NULL with checks off */
typedef struct sim_counters sim_counters; /* counters.c */
typedef struct sim_map      sim_map;      /* allocations as they were when the dispatch began: device.c */

typedef enum sim_wave_status { SIM_RUNNING, SIM_AT_BARRIER, SIM_SLEEPING, SIM_ENDED, SIM_FAILED } sim_wave_status;

/* Wait counters. gfx950 uses the first two (vmcnt, lgkmcnt). */
typedef enum sim_counter {
    SIM_VMCNT,   /* gfx1250: LOADCNT */
    SIM_LGKMCNT, /* gfx950: DS and SMEM together */
    SIM_STORECNT,
    SIM_DSCNT,
    SIM_KMCNT,
    SIM_ASYNCCNT,
    SIM_TENSORCNT,
    SIM_COUNTERS
} sim_counter;

struct sim_wave {
    sim_group      *group;
    int             id;    /* in the workgroup */
    int             lanes; /* 64 or 32 */
    sim_wave_status status;
    uint64_t        pc; /* of the next instruction; a branch sets it while it runs */
    uint32_t        s[SIM_SCALARS];
    bool            scc;
    uint32_t        mode;
    uint8_t         msb[5]; /* s_set_vgpr_msb: added * 256 to src0, src1, src2, dst; [SIM_NO_SLOT] stays 0 */
    uint32_t       *v;      /* [register][lanes] */
    uint64_t        executed;

    int                    barrier;   /* that it waits for, while SIM_AT_BARRIER; -3: the cluster's */
    const sim_instruction *waiting;   /* the instruction that waits there */
    uint32_t signalled[SIM_BARRIERS]; /* the generation that its next wait needs: one after the one that it signalled */
    uint32_t open;                    /* bit n: it has signalled barrier n since it last waited for it */
    int      joined;                  /* named barrier that it has joined; 0: none */
    uint32_t sleep;                   /* rounds of the scheduler that s_sleep leaves */

    uint8_t     *scratch; /* [lanes][bytes] */
    uint32_t     scratch_bytes;
    sim_pending *oldest, *newest; /* memory operations in flight, in the order of issue */
    sim_pending *pool;            /* free ones */
    uint64_t     events;          /* memory operations issued: the number of the last one */
    uint32_t     outstanding[SIM_COUNTERS];

    sim_watch        *watch;
    sim_counters     *counters;
    const sim_opcode *previous_wmma; /* for the reuse hints: matrix.c */
};

typedef struct sim_barrier {
    uint32_t               members, arrived, generation; /* generation: how often it has completed */
    const sim_instruction *first;                        /* the instruction that arrived first of this generation */
} sim_barrier;

struct sim_group {
    sim_device            *device;
    const sim_dispatch    *dispatch;
    sim_code              *code;
    sim_map               *map;
    sim_arch               arch;
    uint32_t               id[3];
    uint8_t               *lds;
    uint32_t               lds_bytes;
    int                    wave_count;
    sim_wave              *wave;
    sim_barrier            barrier[SIM_BARRIERS];
    sim_lds_map           *lds_map;
    struct sim_global_map *global_map; /* of the dispatch: check.h; NULL with the check off */
    uint32_t               checks;
    bool                   late;    /* memory operations take effect as late as the waits allow */
    bool                   reorder; /* operations that may complete out of order do */
    uint64_t               random;  /* state of the schedule's generator */
};

/* Registers
 * ---------
 */
/* A register of a vector operand: `i` counts within a tuple. */
static inline uint32_t *sim_vector(const sim_wave *w, const sim_operand *o, int i)
{
    const int reg = o->kind == SIM_ACC ? 256 + o->reg + i : o->reg + i + 256 * w->msb[o->slot];
    return w->v + (size_t)reg * (size_t)w->lanes;
}

static inline uint64_t sim_scalar64(const sim_wave *w, int reg)
{
    return w->s[reg] | (uint64_t)w->s[reg + 1] << 32;
}

static inline void sim_set_scalar64(sim_wave *w, int reg, uint64_t x)
{
    w->s[reg] = (uint32_t)x;
    w->s[reg + 1] = (uint32_t)(x >> 32);
}

static inline uint64_t sim_all_lanes(const sim_wave *w)
{
    return w->lanes == 64 ? UINT64_MAX : 0xFFFFFFFFu;
}

static inline uint64_t sim_exec(const sim_wave *w)
{
    return sim_scalar64(w, SIM_EXEC) & sim_all_lanes(w);
}

static inline void sim_set_exec(sim_wave *w, uint64_t mask)
{
    w->s[SIM_EXEC] = (uint32_t)mask;
    if (w->lanes == 64)
        w->s[SIM_EXEC + 1] = (uint32_t)(mask >> 32);
}

/* A scalar source of 32 or 64 bits: a register, a constant (a float constant by the width and kind of the
 * instruction). */
uint32_t sim_scalar_source(const sim_wave *w, const sim_operand *o);                 /* salu.c */
uint64_t sim_scalar_source64(const sim_wave *w, const sim_operand *o, bool is_real); /* salu.c */
void sim_set_scalar(sim_wave *w, const sim_operand *o, uint32_t x);                  /* salu.c: NONE takes nothing */

/* Memory (memory.c)
 * -----------------
 */
/* Completes what must be complete when at most `n` operations of the counter may be outstanding. */
void sim_wait(sim_wave *w, sim_counter counter, uint32_t n);
/* Completes everything: at s_endpgm. */
void sim_drain(sim_wave *w);
/* Does to memory what is still in flight, without completing it: when no wave can go on, since hardware will do it
 * some day. */
void sim_memory_settle(sim_wave *w);
/* Forgets what is in flight and frees the requests: of each wave, however it ended. */
void sim_memory_release(sim_wave *w);

/* Findings and faults (device.c)
 * ------------------------------
 */
/* Records a finding if the check is on; `lane` -1: not of one lane. */
void sim_report(sim_wave *w, const sim_instruction *inst, sim_check check, int lane, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* Ends the wave, and with it the dispatch: an instruction or a modifier that is not supported, a fault. */
void sim_fail(sim_wave *w, const sim_instruction *inst, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Sets sim_last_error(). */
void sim_set_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

static inline bool sim_checks(const sim_wave *w, sim_check check)
{
    return (w->group->checks >> check & 1) != 0;
}

/* Allocations (device.c)
 * ----------------------
 */
typedef struct sim_range {
    uint64_t first, last; /* guest addresses [first, last) */
    uint64_t number;      /* of the allocation: names it in findings */
    uint8_t *written;     /* a bit a byte, or NULL: all written */
    bool     freed;
    char     name[40];
} sim_range;

/* The allocation that holds [at, at + bytes) whole, live or freed; NULL: none. Remembers the last hit of each thread.
 * */
const sim_range *sim_map_find(const sim_map *map, uint64_t at, uint64_t bytes);
/* Words for a finding: "8 bytes behind `out` (4096 bytes)". */
void sim_map_describe(const sim_map *map, uint64_t at, char *to, size_t size);

/* Execution (execute.c)
 * ---------------------
 */
/* Barriers by number: -1 the workgroup's, 1 to 16 named ones. Others do nothing: clusters have one workgroup, and the
 * trap barriers are privileged; nor does any in a workgroup of one wave. A wait with a number above 0 is for the
 * barrier that the wave has joined. What the checks are told as generation is the one that the signal belongs to. */
void sim_barrier_signal(sim_wave *w, const sim_instruction *inst, int id);
void sim_barrier_wait(sim_wave *w, const sim_instruction *inst, int id);
void sim_barrier_init(sim_wave *w, const sim_instruction *inst, int id, uint32_t members);
void sim_barrier_join(sim_wave *w, const sim_instruction *inst, int id);
bool sim_barrier_leave(sim_wave *w, const sim_instruction *inst); /* false: it had not joined one */
/* NULL: not a barrier that counts. */
sim_barrier *sim_barrier_of(const sim_wave *w, int id);
/* s_endpgm: completes the memory operations; the waves that remain need not wait for this one. */
void sim_end_wave(sim_wave *w, const sim_instruction *inst);
uint32_t sim_random(sim_group *g, uint32_t below);

#endif
