/* What the stand-in runtimes share: the devices that the environment asks for, memory, dispatches, findings.
 *
 * libhsa-runtime64.so holds this part and the simulator; libamdhip64.so is linked with it, as AMD's is. So a pointer of
 * one is a pointer of the other. The environment (etalon-sim(1) has the same list):
 *
 *   ETALON_SIM_ARCH     gfx950 (default) or gfx1250
 *   ETALON_SIM_DEVICES  how many GPUs, 1 by default
 *   ETALON_SIM_CHECK    what to check: all (default), none, or names of checks.def
 *   ETALON_SIM_SEED     schedule: 0 (default) waves in order, else one that is drawn from this number
 *   ETALON_SIM_THREADS  threads that run workgroups; 0 (default): as many as there are cores
 *   ETALON_SIM_LIMIT    instructions of a wave after which it counts as running for ever; 0 (default): 2^27
 *   ETALON_SIM_REPORT   file that findings are appended to, in place of standard error
 *   ETALON_SIM_COUNTERS 1: counters and the estimate after each dispatch; 2: also for each instruction
 *   ETALON_SIM_EXIT     1: a process that would end with status 0 ends with 1 if there were findings
 */
#ifndef ETALON_RUNTIME_H
#define ETALON_RUNTIME_H

#include "../sim.h"

enum { RUNTIME_MAX_DEVICES = 16, RUNTIME_HOST = -1 };

/* An allocation, or memory of the program's own that was locked. */
typedef struct runtime_memory {
    void    *at;
    size_t   bytes;
    int      owner;   /* device number or RUNTIME_HOST */
    uint32_t devices; /* bit n: device n may access it */
    uint32_t tag;     /* the runtime's own */
    bool     locked;  /* the program's own */
} runtime_memory;

#pragma GCC visibility push(default)

/* Reads the environment and creates the devices, once. False: no device, a sentence was printed. */
bool runtime_start(void);
int runtime_device_count(void);
sim_arch runtime_arch(void);
sim_device *runtime_device(int device);

/* "etalon-sim: sentence" on standard error. */
void runtime_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* NULL: no memory. Memory of a device is the device's own, so a kernel that reads what nobody has written is found out;
 * memory of the host counts as written, and no device may access it before runtime_allow. */
void *runtime_allocate(int owner, size_t bytes, uint32_t tag);
bool runtime_free(void *at);
bool runtime_allow(const void *at, uint32_t devices);
void runtime_allow_all(int owner, uint32_t devices); /* all that the owner has */
/* The live allocation or variable of a code object that holds `at`. */
bool runtime_find(const void *at, runtime_memory *to);
/* Memory of the program's own: as often unlocked as locked. Locked ranges may overlap. */
bool runtime_lock(void *at, size_t bytes, uint32_t devices, uint32_t tag);
bool runtime_unlock(void *at);

/* False, with a sentence printed: the range does not fit into the allocation that it begins in. `what`: "copy to". */
bool runtime_fits(const void *at, size_t bytes, const char *what);
bool runtime_copy(void *to, const void *from, size_t bytes);
/* `count` times the low `width` bytes of the pattern; width 1, 2 or 4. */
bool runtime_fill(void *to, uint32_t pattern, size_t width, size_t count);

/* Runs on the device, one dispatch at a time, and prints what it found. False: a sentence was printed. */
bool runtime_dispatch(int device, const sim_dispatch *dispatch);

/* Facts of the arch that both runtimes tell. */
typedef struct runtime_facts {
    const char *product;
    uint32_t    wave_size, compute_units, waves_per_unit, simds_per_unit, lds_bytes, registers;
    uint32_t    major, minor, stepping; /* of the gfx number */
} runtime_facts;

const runtime_facts *runtime_describe(void);
/* What a device has: half of the host's memory, for it is the host's. */
size_t runtime_memory_bytes(void);
size_t runtime_memory_used(int device);

#pragma GCC visibility pop

#endif
