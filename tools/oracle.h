/* Problems of the operations as the `etalon` program sees them: bound to named tensors, run, judged by name. */
#ifndef ETALON_ORACLE_H
#define ETALON_ORACLE_H

#include "tensorfile.h"

#include <etalon/etalon.h>

/* The arguments of one call of any operation. */
typedef union oracle_args {
    etalon_pa_mtp_args           pa_mtp;
    etalon_fmha_varlen_args      fmha_varlen;
    etalon_mqa_logits_args       mqa_logits;
    etalon_mqa_logits_paged_args mqa_logits_paged;
    etalon_merge_states_args     merge_states;
} oracle_args;

typedef enum oracle_id {
    ORACLE_PA_MTP,
    ORACLE_FMHA_VARLEN,
    ORACLE_MQA_LOGITS,
    ORACLE_MQA_LOGITS_PAGED,
    ORACLE_MERGE_STATES
} oracle_id;

/* One argument: the names under which a file may hold it, "q_descale|q_scale", and its place in the arguments. */
typedef struct oracle_input {
    const char *names; /* the first one is ours */
    size_t      offset;
    bool        required;
} oracle_input;

typedef enum oracle_kind {
    ORACLE_REAL,
    ORACLE_FLAG,
    ORACLE_I32,
    ORACLE_I64,
    ORACLE_LAYOUT,
    ORACLE_P_SCALE,
    ORACLE_OUT_DTYPE
} oracle_kind;

/* One scalar argument, which files hold as text in their metadata. */
typedef struct oracle_scalar {
    const char *names;
    oracle_kind kind;
    size_t      offset;
} oracle_scalar;

/* Dimension `dim` of the tensor at `offset` of the arguments. */
typedef struct oracle_dim {
    size_t  offset;
    int32_t dim;
} oracle_dim;

/* An extent of an output: that of a tensor, times another's unless its offset is 0; but a positive int64_t at `scalar`
 * of the arguments, unless that is 0. */
typedef struct oracle_extent {
    oracle_dim of, times;
    size_t     scalar;
} oracle_extent;

typedef struct oracle_output {
    const char   *names;    /* of a result that a file brings along */
    const char   *expected; /* of what it should be */
    size_t        offset;
    int32_t       rank;
    oracle_extent shape[3];
} oracle_output;

enum { ORACLE_OUTPUTS = 2 }; /* at most: out and lse */

typedef struct oracle_op {
    oracle_id            id;
    const char          *name;
    const char          *reference; /* the row that is the formula */
    const oracle_input  *inputs;
    int                  input_count;
    const oracle_scalar *scalars;
    int                  scalar_count;
    const oracle_output *outputs;
    int                  output_count;
    size_t               kernel; /* offset of `const char *kernel` */
    void (*init)(oracle_args *args);
    etalon_status (*run)(const etalon_context *ctx, const oracle_args *args, etalon_workspace work);
    etalon_status (*workspace_bytes)(const etalon_context *ctx, const oracle_args *args, size_t *bytes);
    etalon_status (*explain)(const etalon_context *ctx, const oracle_args *args, etalon_explain_fn *row, void *user);
} oracle_op;

/* All operations, ending with one without a name. */
extern const oracle_op oracle_ops[];

/* A call whose inputs are set and whose outputs are not. */
typedef struct oracle_problem {
    const oracle_op *op;
    oracle_args      args; /* of the outputs, the dtype alone is read */
} oracle_problem;

/* What a call wrote: dense, in the order of op->outputs; F32, but for an `out` that was asked for in another dtype. */
typedef struct oracle_result {
    etalon_tensor tensor[ORACLE_OUTPUTS];
} oracle_result;

/** Writes the sentence and returns false. */
bool oracle_fail(tensorfile_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** The operation of that name; NULL, with a sentence that lists them, if there is none. */
const oracle_op *oracle_find_op(const char *name, tensorfile_error *error);

/** True if `name` is one of "a|b|c". */
bool oracle_is_name(const char *names, const char *name);

/** The first of "a|b|c", cut off; a static buffer for each of the last four calls. */
const char *oracle_first_name(const char *names);

/** The tensor that the file holds under one of the names, or NULL. False if it holds two of them. */
bool oracle_find_tensor(const tensorfile *file, const char *names, const tensorfile_entry **entry,
                        tensorfile_error *error);

/**
 * Fills the arguments from a file's tensors and metadata. op NULL: metadata key "op" names the operation.
 * The problem borrows the file's memory.
 */
bool oracle_bind(const tensorfile *file, const oracle_op *op, oracle_problem *problem, tensorfile_error *error);

/** Sets a scalar argument from "key=value", a metadata key of the operation and its text. */
bool oracle_set(oracle_problem *problem, const char *setting, tensorfile_error *error);

/** Of an output: F32, unless the tensor in the arguments has another one. */
etalon_dtype oracle_output_dtype(const oracle_problem *problem, int output);

/** Extents of an output that the inputs call for; 0 where an input has too few dimensions. */
void oracle_output_shape(const oracle_problem *problem, int output, int64_t *shape);

/** A dense host tensor on the heap; a sentence if its bytes overflow 64 bits or exceed this machine's memory. */
bool oracle_allocate(const char *name, etalon_dtype dtype, int32_t rank, const int64_t *shape, etalon_tensor *t,
                     tensorfile_error *error);

/** Takes back that `out` was asked for in another dtype: its bits are then what the operation rounds. */
void oracle_want_f32(oracle_problem *problem);

/** Elements of a tensor. */
int64_t oracle_elements(const etalon_tensor *t);

/**
 * Runs every check of the operation, and calls row() as etalon_<op>_explain does. kernel may be NULL. The outputs need
 * no memory for that.
 */
bool oracle_explain(const etalon_context *ctx, const oracle_problem *problem, const char *kernel,
                    etalon_explain_fn *row, void *user, tensorfile_error *error);

/** The row that serves the problem; NULL, with the reason, if none does. Static storage. */
const char *oracle_serving_row(const etalon_context *ctx, const oracle_problem *problem, tensorfile_error *error);

/** Computes into poisoned memory. kernel NULL: the row that serves the problem. Free the result, failure or not. */
bool oracle_run(const etalon_context *ctx, const oracle_problem *problem, const char *kernel, oracle_result *result,
                tensorfile_error *error);

void oracle_result_free(oracle_result *result);

/** Element of an I32 or I64 vector. */
int64_t oracle_index(const etalon_tensor *t, int64_t i);

#endif
