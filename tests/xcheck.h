/* What the parts of xcheck share.
 *
 * A kernel under test is a row of a gate, reached by its name through the public call, or one that tests/broken.c or
 * tests/offload/broken.sh breaks on purpose. A case is a problem drawn from (seed, operation, number), in memory
 * between pages without access; for a row of a device also in memory there. Every kernel meets the same cases and the
 * same yardsticks.
 *
 * A check that fails leaves the case as tests of Check do, by ck_abort_msg(); so do those of cases.h. The name of the
 * check that was running then is the yardstick that caught the kernel.
 */
#ifndef ETALON_XCHECK_H
#define ETALON_XCHECK_H

#include "bound.h"
#include "cases.h"
#include "code_objects.h"
#include "gpu.h"
#include "logits.h"
#include "oracle.h"
#include "twin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

/* A broken kernel sees what a row of a gate sees: the checked problem. */
typedef etalon_status xcheck_run_fn(const etalon_context *ctx, const void *problem);

/* Where the tensors of the calls lie: with the host, with the device, or there and the call is put on a stream. A row
 * of a device is three kernels under test, one for each. */
typedef enum xcheck_route { XCHECK_HOST, XCHECK_DEVICE, XCHECK_STREAM, XCHECK_ROUTES } xcheck_route;

typedef struct xcheck_kernel {
    const oracle_op *op;
    const char      *name, *what; /* what: of a broken kernel, what is wrong with it; else NULL */
    bound_class class;
    bool           model;     /* rounds P as args->model says */
    bool           sound;     /* broken in nothing: every case must pass */
    xcheck_run_fn *run;       /* NULL: a row of a gate */
    const char    *row;       /* its name */
    const char    *arch;      /* the one that the row is for: "gfx950"; NULL: any */
    bool           of_device; /* the row is a device's */
    xcheck_route   route;
    const char    *stem; /* of a device's broken kernel: the code object that it has instead; else NULL */
} xcheck_kernel;

enum { XCHECK_KERNELS = 192 };

/* Appends the kernels of tests/broken.c, or those of a device; the new count. */
int broken_list(xcheck_kernel *kernels, int count);
int broken_device_list(xcheck_kernel *kernels, int count);

/* Checks the arguments and runs a broken kernel on the problem, as the entry of an operation does. */
etalon_status broken_call(const xcheck_kernel *kernel, const etalon_context *ctx, const oracle_args *args);

typedef enum xcheck_effort { XCHECK_CHECK, XCHECK_LONG, XCHECK_SOAK } xcheck_effort;

/* Cases
 * ----- */

typedef struct xcheck_case {
    const oracle_op *op;
    uint64_t         seed;
    int64_t          number;
    rng              random;     /* for what is drawn besides: layouts, properties */
    char             source[96]; /* where the problem comes from, in words */
    cases_memory     memory;
    oracle_args      args;
    void            *wide[2]; /* mappings of gibibytes, few pages of which exist; not part of memory */
    size_t           wide_bytes[2];
} xcheck_case;

void xcheck_case_make(xcheck_case *c, const oracle_op *op, uint64_t seed, int64_t number, xcheck_effort effort);
void xcheck_case_free(xcheck_case *c);

/* Multiplications, at most. */
double xcheck_case_work(const xcheck_case *c);

/* The slot of c->wide whose rows the tensor is; -1: none. */
int xcheck_wide_slot(const xcheck_case *c, const etalon_tensor *t);

/* Names of the generator's patterns for the operation. */
enum { XCHECK_PATTERNS = 32, XCHECK_PATTERN_NAME = 24 };
int xcheck_patterns(const oracle_op *op, char names[][XCHECK_PATTERN_NAME]);

/* Output i of the arguments; absent outputs have no data. */
etalon_tensor *xcheck_output(const oracle_op *op, oracle_args *args, int i);
etalon_tensor *xcheck_input(const oracle_op *op, oracle_args *args, int i);

/* The name of the tensor whose memory is block i. */
const char *xcheck_block_name(const xcheck_case *c, int i);

/* Yardsticks
 * ---------- */

/* The reference's result and the bounds around it, for one class of kernels. */
typedef struct xcheck_reference {
    bool           ready;
    oracle_problem problem;
    etalon_tensor  rounded_q; /* FP8 units round a wide q first; else no data */
    oracle_result  result;
    bound          bounds;
} xcheck_reference;

/* In float64; for the `_model` rows with their rounding. */
typedef struct xcheck_twin {
    bool                   ready;
    twin_attention         attention; /* merge_states too */
    twin_mqa_logits_result logits;
    etalon_tensor          want[ORACLE_OUTPUTS]; /* F64 views of the above */
    double                *bound[ORACLE_OUTPUTS];
} xcheck_twin;

typedef struct xcheck_yardsticks {
    xcheck_case     *c;
    etalon_context  *ctx; /* of rows that need nothing of the CPU */
    bool             with_twin;
    xcheck_reference reference[2]; /* by bound_class */
    xcheck_twin      twin[2];      /* 1: of the model */
} xcheck_yardsticks;

void xcheck_yardsticks_begin(xcheck_yardsticks *y, xcheck_case *c, etalon_context *ctx, xcheck_effort effort);
void xcheck_yardsticks_end(xcheck_yardsticks *y);
const xcheck_reference *xcheck_reference_of(xcheck_yardsticks *y, bound_class class);
const xcheck_twin *xcheck_twin_of(xcheck_yardsticks *y, bool model);

/* Calls
 * ----- */

enum { XCHECK_CONTEXTS = 3 };

typedef struct xcheck_trial {
    const xcheck_kernel *kernel;
    xcheck_case         *c;
    xcheck_yardsticks   *y;
    etalon_context      *ctx[XCHECK_CONTEXTS]; /* of 1, 2 and 5 threads; with a device there is but one */
    int                  contexts;
    int32_t              device;
    device_stream        stream; /* of the device; opened when first needed */
    bool                 lost;   /* the device failed: nobody knows what it does next */
    int                  report; /* where a simulator writes what it finds; -1: nowhere */
    off_t                report_read;
    xcheck_effort        effort;
    bool                 quiet;                  /* no reports */
    char                *stage;                  /* the check that is running: shared with the parent */
    uint32_t            *poison[ORACLE_OUTPUTS]; /* bits of the outputs before a call */
} xcheck_trial;

void xcheck_stage(xcheck_trial *t, const char *name);

/* One call with args, whose outputs lie in memory and are poisoned first. Its workspace stands against a page without
 * access. ETALON_ERROR_UNSUPPORTED: the row refuses; any other failure fails the case. */
etalon_status xcheck_call(xcheck_trial *t, int context, const oracle_args *args, cases_memory *memory);

/* The same call with copies of the tensors on the device: they lie between zones of known bytes, or flush with what was
 * allocated, inputs have to stay as they are, and the outputs are copied back. */
etalon_status xcheck_call_there(xcheck_trial *t, etalon_context *ctx, const oracle_args *args);

/* A context with this device, whose rows of devices serve by their names alone. */
etalon_status xcheck_device_context(int32_t device, const code_object *objects, etalon_context **to);

/* A context whose device runs the broken kernel; NULL, with a sentence, if its object cannot be had. */
etalon_context *xcheck_broken_context(const xcheck_kernel *kernel, int32_t device, char *error, size_t bytes);

/* All checks of one kernel on one case. ETALON_ERROR_UNSUPPORTED: the row refuses it. */
etalon_status xcheck_try(xcheck_trial *t);

/* Judges and properties
 * --------------------- */

/* Fails the case, with a report, where an output of args is off. bound: of one element; NaN mismatches count. */
typedef double xcheck_bound_fn(const void *user, int output, const int64_t *index, double want);

void xcheck_compare(xcheck_trial *t, const oracle_args *args, int output, const etalon_tensor *want,
                    xcheck_bound_fn *limit, const void *user);
void xcheck_judge(xcheck_trial *t, const oracle_args *args);

/* Checks of the algebra, numbered; each leaves the case as it found it. */
int xcheck_property_count(const oracle_op *op);
void xcheck_property(xcheck_trial *t, int number);

/* True if the element is specified: outside a window without clean_logits nothing is. */
bool xcheck_specified(const oracle_op *op, const oracle_args *args, const int64_t *index);

void xcheck_index(const etalon_tensor *t, int64_t i, int64_t *index);
const void *xcheck_at(const etalon_tensor *t, const int64_t *index);
double xcheck_value(const etalon_tensor *t, const int64_t *index);

/* Pictures
 * -------- */

/* What is wrong with each element, row-major; '.': nothing. */
typedef struct xcheck_picture {
    const char    *flags;
    int32_t        rank;
    const int64_t *shape;
    const char    *axis[3]; /* "token", "head", "column" */
} xcheck_picture;

/* Grids of characters and one line that names the pattern. */
void xcheck_draw(const xcheck_picture *p, FILE *to);

#endif
