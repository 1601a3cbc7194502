/* A simulated AMD GPU: allocate, load a code object, dispatch, read findings and counters.
 *
 * Guest addresses are host addresses. Memory that a kernel may touch is what sim_allocate and sim_register name; every
 * access is looked up there. Functions that may fail return false or NULL and leave a sentence in sim_last_error(),
 * per thread. A dispatch runs its workgroups in parallel on all cores and returns when the last one has ended; nothing
 * is timed: the counters are counts. What is modelled, and from which source: doc/SIMULATOR.md.
 */
#ifndef ETALON_SIM_H
#define ETALON_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef enum sim_arch { SIM_GFX950, SIM_GFX1250, SIM_ARCHS } sim_arch;

/* Checks, one bit each: bit n is row n of checks.def, which has names and meanings. */
typedef enum sim_check {
#define CHECK(id, name, what) id,
#include "checks.def"
#undef CHECK
    SIM_CHECKS
} sim_check;

#define SIM_CHECK_NONE 0u
#define SIM_CHECK_ALL ((1u << SIM_CHECKS) - 1u)

/* Schedules. Seed 0 runs the waves of a workgroup in order, each until it waits, and completes a memory operation when
 * it is issued. Any other seed picks waves and lengths of their turns at random; odd ones complete memory operations
 * as late as the waits allow; those with bit 1 set (2, 3, 6, 7 ...) complete out of order what may. Results of a
 * correct kernel do not depend on it, and a seed always makes the same schedule within a workgroup. Options NULL are
 * all zero. */
typedef struct sim_options {
    uint32_t checks; /* bits of sim_check; with any set, registers and LDS begin as NaNs that read as 0xFFFFDEAD */
    uint64_t seed;
    int      threads;  /* 0: as many as there are cores */
    uint64_t limit;    /* instructions that a wave may execute before the dispatch is called a deadlock; 0: a default */
    uint32_t findings; /* findings kept of each (check, PC); 0: 1 */
    bool     counters; /* per-PC counters (per-kernel totals are always counted) */
} sim_options;

typedef struct sim_device sim_device;
typedef struct sim_object sim_object; /* a loaded code object */

typedef struct sim_argument { /* of a kernel's metadata */
    const char *name;         /* "" if the compiler left none */
    const char *kind;         /* .value_kind: by_value, global_buffer, hidden_... */
    uint32_t    offset, bytes;
} sim_argument;

typedef struct sim_kernel {
    const char       *name;
    const sim_object *object;
    uint64_t          descriptor, entry; /* guest addresses */
    uint32_t          kernarg_bytes, lds_bytes, scratch_bytes;
    /* that the descriptor asks for; gfx950 takes v and a from one file of 512 */
    uint32_t            vgprs, agprs, sgprs;
    uint32_t            wave_size, max_group;
    const sim_argument *arguments;
    uint32_t            argument_count;
} sim_kernel;

typedef struct sim_dispatch {
    const sim_kernel *kernel;
    uint32_t          grid[3];  /* work-items, not workgroups */
    uint32_t          group[3]; /* work-items of a workgroup */
    uint32_t          dynamic_lds;
    const void       *kernarg; /* as the kernel sees it, hidden arguments included: see sim_kernarg_fill */
    size_t            kernarg_bytes;
} sim_dispatch;

/* One finding: what, where, and how often. */
typedef struct sim_finding {
    sim_check check;
    char      kernel[64];
    uint64_t  pc;         /* offset from the kernel's entry */
    char      text[160];  /* the instruction */
    uint32_t  group[3];   /* workgroup of the first occurrence */
    int       wave, lane; /* lane -1: not of one lane */
    char      detail[240];
    uint64_t  times;
} sim_finding;

/* The runtime that stands in for HIP takes these from the library of the one for HSA. */
#pragma GCC visibility push(default)

const char *sim_last_error(void);
const char *sim_arch_name(sim_arch arch);
bool sim_arch_of_name(const char *name, sim_arch *arch);

sim_device *sim_device_create(sim_arch arch, const sim_options *options);
void sim_device_destroy(sim_device *device);
sim_arch sim_device_arch(const sim_device *device);
void sim_device_set_options(sim_device *device, const sim_options *options);

/* Memory. New memory counts as uninitialised until something writes it: the host through sim_mark_written (the
 * runtimes call it where data is copied in), or a kernel. Redzones lie on both sides; freed memory stays in quarantine
 * for a while. sim_register makes memory of the host's own accessible; it counts as written. */
void *sim_allocate(sim_device *device, size_t bytes, const char *name);
bool sim_free(sim_device *device, void *at);
bool sim_register(sim_device *device, void *at, size_t bytes, const char *name);
bool sim_unregister(sim_device *device, void *at);
void sim_mark_written(sim_device *device, const void *at, size_t bytes);
bool sim_find(const sim_device *device, const void *at, void **base,
              size_t *bytes); /* the allocation that holds `at` */

/* Code objects: ELF of the device's arch, code object version 4 to 6, relocated and copied into memory of the device.
 * */
sim_object *sim_object_load(sim_device *device, const void *bytes, size_t size);
void sim_object_unload(sim_object *object);
uint32_t sim_object_kernel_count(const sim_object *object);
const sim_kernel *sim_object_kernel_at(const sim_object *object, uint32_t i);
const sim_kernel *sim_object_kernel(const sim_object *object, const char *name);
const sim_kernel *sim_kernel_of_descriptor(const sim_device *device, uint64_t descriptor);
/* A global variable of the object: guest address and size, or false. */
bool sim_object_variable(const sim_object *object, const char *name, void **at, size_t *bytes);

/* Writes the hidden arguments (block counts, group sizes, remainders, grid dims, dynamic LDS ...) that the metadata
 * lists into a kernarg segment of kernel->kernarg_bytes. */
void sim_kernarg_fill(const sim_dispatch *dispatch, void *kernarg);

/* Runs; true if every wave reached s_endpgm (findings do not make it false). False: bad dispatch, unsupported
 * instruction, or a fault that no wave survives; the sentence names kernel, PC and instruction. */
bool sim_run(sim_device *device, const sim_dispatch *dispatch);

uint32_t sim_finding_count(const sim_device *device);
const sim_finding *sim_finding_at(const sim_device *device, uint32_t i);
void sim_findings_clear(sim_device *device);
const char *sim_check_name(sim_check check);
/* "all", "none" or names joined by commas, each with an optional minus; a list that begins with one takes away from
 * all. False: an unknown name. */
bool sim_checks_of_names(const char *names, uint32_t *checks);

void sim_print_finding(FILE *to, const sim_finding *finding);
/* Counters of the last dispatch, and the estimate of the issue model with its bottleneck; `per_pc`: one line an
 * instruction. */
void sim_print_report(FILE *to, const sim_device *device, bool per_pc);
bool sim_disassemble(FILE *to, const sim_object *object, const char *kernel);

#pragma GCC visibility pop

#endif
