#include "oracle.h"

#include "measure.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Tables
 * ------
 * The names of golden files come first, then those under which other projects keep the same thing.
 */
#define IN(op, member) offsetof(etalon_##op##_args, member)
#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))

#define NAMES_Q "q|query"
#define NAMES_Q_DESCALE "q_descale|q_scale"
#define NAMES_K_DESCALE "k_descale|k_scale"
#define NAMES_V_DESCALE "v_descale|v_scale"
#define NAMES_CU_SEQLENS_Q "cu_seqlens_q|qo_indptr"
#define NAMES_OUT "out|got_out"
#define NAMES_LSE "lse|got_lse"
#define NAMES_LOGITS "logits|got_logits"
#define EXPECTED_OUT "expected_out|ref_out"
#define EXPECTED_LSE "expected_lse|ref_lse"
#define EXPECTED_LOGITS "expected_logits|ref_logits"

static const oracle_input pa_mtp_inputs[] = {
    { NAMES_Q, IN(pa_mtp, q), true },
    { "k_cache|key_cache|k", IN(pa_mtp, k_cache), true },
    { "v_cache|value_cache|v", IN(pa_mtp, v_cache), true },
    { "block_tables|block_table|page_table", IN(pa_mtp, block_tables), true },
    { "seq_lens|seq_len|seqused_k|cache_seqlens|context_lens", IN(pa_mtp, seq_lens), true },
    { NAMES_CU_SEQLENS_Q, IN(pa_mtp, cu_seqlens_q), true },
    { NAMES_Q_DESCALE, IN(pa_mtp, q_descale), false },
    { NAMES_K_DESCALE, IN(pa_mtp, k_descale), false },
    { NAMES_V_DESCALE, IN(pa_mtp, v_descale), false },
};

static const oracle_scalar pa_mtp_scalars[] = {
    { "softmax_scale|sm_scale", ORACLE_REAL, IN(pa_mtp, softmax_scale) },
    { "causal|is_causal", ORACLE_FLAG, IN(pa_mtp, causal) },
    { "window_left", ORACLE_I32, IN(pa_mtp, window_left) },
    { "window_right", ORACLE_I32, IN(pa_mtp, window_right) },
    { "kv_layout", ORACLE_LAYOUT, IN(pa_mtp, kv_layout) },
    { "p_scale", ORACLE_P_SCALE, IN(pa_mtp, model.p_scale) },
    { "tile_keys", ORACLE_I32, IN(pa_mtp, model.tile_keys) },
    { "p_terms", ORACLE_I32, IN(pa_mtp, model.p_terms) },
    { "out_dtype", ORACLE_OUT_DTYPE, IN(pa_mtp, out.dtype) },
};

static const oracle_output pa_mtp_outputs[] = {
    { NAMES_OUT,
      EXPECTED_OUT,
      IN(pa_mtp, out),
      3,
      { { .of = { IN(pa_mtp, q), 0 } }, { .of = { IN(pa_mtp, q), 1 } }, { .of = { IN(pa_mtp, v_cache), 3 } } } },
    { NAMES_LSE, EXPECTED_LSE, IN(pa_mtp, lse), 2, { { .of = { IN(pa_mtp, q), 1 } }, { .of = { IN(pa_mtp, q), 0 } } } },
};

static const oracle_input fmha_varlen_inputs[] = {
    { NAMES_Q, IN(fmha_varlen, q), true },
    { "k|key", IN(fmha_varlen, k), true },
    { "v|value", IN(fmha_varlen, v), true },
    { NAMES_CU_SEQLENS_Q, IN(fmha_varlen, cu_seqlens_q), true },
    { "cu_seqlens_k|kv_indptr", IN(fmha_varlen, cu_seqlens_k), true },
    { NAMES_Q_DESCALE, IN(fmha_varlen, q_descale), false },
    { NAMES_K_DESCALE, IN(fmha_varlen, k_descale), false },
    { NAMES_V_DESCALE, IN(fmha_varlen, v_descale), false },
};

static const oracle_scalar fmha_varlen_scalars[] = {
    { "softmax_scale|sm_scale", ORACLE_REAL, IN(fmha_varlen, softmax_scale) },
    { "causal|is_causal", ORACLE_FLAG, IN(fmha_varlen, causal) },
    { "window_left", ORACLE_I32, IN(fmha_varlen, window_left) },
    { "window_right", ORACLE_I32, IN(fmha_varlen, window_right) },
    { "max_seqlen_q", ORACLE_I64, IN(fmha_varlen, max_seqlen_q) },
    { "max_seqlen_k", ORACLE_I64, IN(fmha_varlen, max_seqlen_k) },
    { "p_scale", ORACLE_P_SCALE, IN(fmha_varlen, model.p_scale) },
    { "tile_keys", ORACLE_I32, IN(fmha_varlen, model.tile_keys) },
    { "p_terms", ORACLE_I32, IN(fmha_varlen, model.p_terms) },
    { "out_dtype", ORACLE_OUT_DTYPE, IN(fmha_varlen, out.dtype) },
};

static const oracle_output fmha_varlen_outputs[] = {
    { NAMES_OUT,
      EXPECTED_OUT,
      IN(fmha_varlen, out),
      3,
      { { .of = { IN(fmha_varlen, q), 0 } },
        { .of = { IN(fmha_varlen, q), 1 } },
        { .of = { IN(fmha_varlen, v), 2 } } } },
    { NAMES_LSE,
      EXPECTED_LSE,
      IN(fmha_varlen, lse),
      2,
      { { .of = { IN(fmha_varlen, q), 1 } }, { .of = { IN(fmha_varlen, q), 0 } } } },
};

static const oracle_input mqa_logits_inputs[] = {
    { NAMES_Q, IN(mqa_logits, q), true },
    { "k|kv", IN(mqa_logits, k), true },
    { "kv_scale|kv_scales|k_scale", IN(mqa_logits, kv_scale), true },
    { "weights|w", IN(mqa_logits, weights), true },
    { "cu_seqlen_ks|ks|_ks|cu_starts|cu_seqlen_k_start|cu_seq_len_k_start", IN(mqa_logits, cu_seqlen_ks), true },
    { "cu_seqlen_ke|ke|_ke|cu_ends|cu_seqlen_k_end|cu_seq_len_k_end", IN(mqa_logits, cu_seqlen_ke), true },
};

static const oracle_scalar mqa_logits_scalars[] = {
    { "clean_logits|clean", ORACLE_FLAG, IN(mqa_logits, clean_logits) },
    { "max_seqlen_k", ORACLE_I64, IN(mqa_logits, max_seqlen_k) },
};

static const oracle_output mqa_logits_outputs[] = {
    { NAMES_LOGITS,
      EXPECTED_LOGITS,
      IN(mqa_logits, logits),
      2,
      { { .of = { IN(mqa_logits, q), 0 } },
        { .of = { IN(mqa_logits, k), 0 }, .scalar = IN(mqa_logits, max_seqlen_k) } } },
};

static const oracle_input mqa_logits_paged_inputs[] = {
    { NAMES_Q, IN(mqa_logits_paged, q), true },
    { "kv_cache|fused_kv_cache|fused_kv|kv", IN(mqa_logits_paged, kv_cache), true },
    { "weights|w", IN(mqa_logits_paged, weights), true },
    { "context_lens|context_len|seq_lens", IN(mqa_logits_paged, context_lens), true },
    { "block_tables|block_table|page_table", IN(mqa_logits_paged, block_tables), true },
};

static const oracle_scalar mqa_logits_paged_scalars[] = {
    { "clean_logits|clean", ORACLE_FLAG, IN(mqa_logits_paged, clean_logits) },
    { "max_context_len|max_model_len", ORACLE_I64, IN(mqa_logits_paged, max_context_len) },
};

static const oracle_output mqa_logits_paged_outputs[] = {
    { NAMES_LOGITS,
      EXPECTED_LOGITS,
      IN(mqa_logits_paged, logits),
      2,
      { { .of = { IN(mqa_logits_paged, weights), 0 } },
        { .of = { IN(mqa_logits_paged, block_tables), 1 },
          .times = { IN(mqa_logits_paged, kv_cache), 1 },
          .scalar = IN(mqa_logits_paged, max_context_len) } } },
};

static const oracle_input merge_states_inputs[] = {
    { "out_a|prefix_output", IN(merge_states, out_a), true },
    { "lse_a|prefix_lse", IN(merge_states, lse_a), true },
    { "out_b|suffix_output", IN(merge_states, out_b), true },
    { "lse_b|suffix_lse", IN(merge_states, lse_b), true },
};

static const oracle_output merge_states_outputs[] = {
    { NAMES_OUT,
      EXPECTED_OUT,
      IN(merge_states, out),
      3,
      { { .of = { IN(merge_states, out_a), 0 } },
        { .of = { IN(merge_states, out_a), 1 } },
        { .of = { IN(merge_states, out_a), 2 } } } },
    { NAMES_LSE,
      EXPECTED_LSE,
      IN(merge_states, lse),
      2,
      { { .of = { IN(merge_states, out_a), 1 } }, { .of = { IN(merge_states, out_a), 0 } } } },
};

#define CALLS(op, OP)                                                                                             \
    static void init_##op(oracle_args *args)                                                                      \
    {                                                                                                             \
        const etalon_##op##_args init = ETALON_##OP##_ARGS_INIT;                                                  \
        args->op = init;                                                                                          \
    }                                                                                                             \
    static etalon_status run_##op(const etalon_context *ctx, const oracle_args *args, etalon_workspace work)      \
    {                                                                                                             \
        return etalon_##op(ctx, &args->op, work);                                                                 \
    }                                                                                                             \
    static etalon_status bytes_##op(const etalon_context *ctx, const oracle_args *args, size_t *bytes)            \
    {                                                                                                             \
        return etalon_##op##_workspace_bytes(ctx, &args->op, bytes);                                              \
    }                                                                                                             \
    static etalon_status explain_##op(const etalon_context *ctx, const oracle_args *args, etalon_explain_fn *row, \
                                      void *user)                                                                 \
    {                                                                                                             \
        return etalon_##op##_explain(ctx, &args->op, row, user);                                                  \
    }
CALLS(pa_mtp, PA_MTP)
CALLS(fmha_varlen, FMHA_VARLEN)
CALLS(mqa_logits, MQA_LOGITS)
CALLS(mqa_logits_paged, MQA_LOGITS_PAGED)
CALLS(merge_states, MERGE_STATES)

#define OP(name, id, scalars, scalar_count)                                                   \
    { id,          #name,        #name "_ref",   name##_inputs,         COUNT(name##_inputs), \
      scalars,     scalar_count, name##_outputs, COUNT(name##_outputs), IN(name, kernel),     \
      init_##name, run_##name,   bytes_##name,   explain_##name }

const oracle_op oracle_ops[] = {
    OP(pa_mtp, ORACLE_PA_MTP, pa_mtp_scalars, COUNT(pa_mtp_scalars)),
    OP(fmha_varlen, ORACLE_FMHA_VARLEN, fmha_varlen_scalars, COUNT(fmha_varlen_scalars)),
    OP(mqa_logits, ORACLE_MQA_LOGITS, mqa_logits_scalars, COUNT(mqa_logits_scalars)),
    OP(mqa_logits_paged, ORACLE_MQA_LOGITS_PAGED, mqa_logits_paged_scalars, COUNT(mqa_logits_paged_scalars)),
    OP(merge_states, ORACLE_MERGE_STATES, NULL, 0),
    { .name = NULL },
};

/* Names
 * -----
 */
bool oracle_fail(tensorfile_error *error, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(error->text, sizeof error->text, format, list);
    va_end(list);
    return false;
}

const oracle_op *oracle_find_op(const char *name, tensorfile_error *error)
{
    for (const oracle_op *op = oracle_ops; op->name != NULL; op++)
        if (strcmp(op->name, name) == 0)
            return op;
    oracle_fail(error,
                "op: \"%.64s\" is unknown, expected pa_mtp, fmha_varlen, mqa_logits, mqa_logits_paged or merge_states",
                name);
    return NULL;
}

/* The next of "a|b|c": its length, 0 at the end. */
static size_t next_name(const char **names)
{
    if (**names == '|')
        (*names)++;
    return strcspn(*names, "|");
}

bool oracle_is_name(const char *names, const char *name)
{
    for (size_t length; (length = next_name(&names)) > 0; names += length)
        if (strlen(name) == length && memcmp(name, names, length) == 0)
            return true;
    return false;
}

const char *oracle_first_name(const char *names)
{
    static char buffer[4][32];
    static int  turn;
    char       *text = buffer[turn++ % 4];
    snprintf(text, sizeof buffer[0], "%.*s", (int)strcspn(names, "|"), names);
    return text;
}

bool oracle_find_tensor(const tensorfile *file, const char *names, const tensorfile_entry **entry,
                        tensorfile_error *error)
{
    *entry = NULL;
    for (int i = 0; i < file->count; i++) {
        if (!oracle_is_name(names, file->entries[i].name))
            continue;
        if (*entry != NULL)
            return oracle_fail(error, "tensor %s: the file holds it as %s too", (*entry)->name, file->entries[i].name);
        *entry = &file->entries[i];
    }
    return true;
}

/* Scalars
 * -------
 */
static void *at(oracle_args *args, size_t offset)
{
    return (char *)args + offset;
}

static const etalon_tensor *tensor_at(const oracle_args *args, size_t offset)
{
    return (const etalon_tensor *)((const char *)args + offset);
}

static bool parse_real(const char *text, double *x)
{
    char *end;
    errno = 0;
    *x = strtod(text, &end);
    return end != text && *end == '\0' && (errno == 0 || fabs(*x) < 1.0);
}

static bool parse_integer(const char *text, int64_t low, int64_t high, int64_t *x)
{
    char *end;
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    *x = value;
    return end != text && *end == '\0' && errno == 0 && value >= low && value <= high;
}

static bool parse_flag(const char *text, int32_t *x)
{
    static const struct {
        const char *text;
        int32_t     value;
    } words[] = { { "0", 0 }, { "1", 1 }, { "false", 0 }, { "true", 1 }, { "False", 0 }, { "True", 1 } };
    for (int i = 0; i < COUNT(words); i++)
        if (strcmp(words[i].text, text) == 0) {
            *x = words[i].value;
            return true;
        }
    return false;
}

static bool parse_p_scale(const char *text, etalon_p_scale *x)
{
    static const char *const words[] = { [ETALON_P_SCALE_FIXED] = "fixed",
                                         [ETALON_P_SCALE_TILE] = "tile",
                                         [ETALON_P_SCALE_BLOCK32] = "block32" };
    for (int i = 0; i < COUNT(words); i++)
        if (strcmp(words[i], text) == 0) {
            *x = (etalon_p_scale)i;
            return true;
        }
    return false;
}

static bool parse_out_dtype(const char *text, etalon_dtype *x)
{
    const bool is_bf16 = strcmp(text, "bf16") == 0;
    *x = is_bf16 ? ETALON_BF16 : ETALON_F32;
    return is_bf16 || strcmp(text, "f32") == 0;
}

static bool set_scalar(const oracle_scalar *scalar, const char *key, const char *text, oracle_args *args,
                       tensorfile_error *error)
{
    int64_t integer;
    switch (scalar->kind) {
    case ORACLE_REAL:
        return parse_real(text, at(args, scalar->offset)) ||
               oracle_fail(error, "metadata %s: \"%.64s\", expected a number", key, text);
    case ORACLE_FLAG:
        return parse_flag(text, at(args, scalar->offset)) ||
               oracle_fail(error, "metadata %s: \"%.64s\", expected 0 or 1", key, text);
    case ORACLE_I32:
        if (!parse_integer(text, INT32_MIN, INT32_MAX, &integer))
            return oracle_fail(error, "metadata %s: \"%.64s\", expected a 32-bit integer", key, text);
        *(int32_t *)at(args, scalar->offset) = (int32_t)integer;
        return true;
    case ORACLE_I64:
        return parse_integer(text, INT64_MIN, INT64_MAX, at(args, scalar->offset)) ||
               oracle_fail(error, "metadata %s: \"%.64s\", expected a 64-bit integer", key, text);
    case ORACLE_LAYOUT:
        if (strcmp(text, "NHD") != 0 && strcmp(text, "HND") != 0)
            return oracle_fail(error, "metadata %s: \"%.64s\", expected NHD or HND", key, text);
        *(etalon_kv_layout *)at(args, scalar->offset) = text[0] == 'N' ? ETALON_KV_NHD : ETALON_KV_HND;
        return true;
    case ORACLE_P_SCALE:
        return parse_p_scale(text, at(args, scalar->offset)) ||
               oracle_fail(error, "metadata %s: \"%.64s\", expected fixed, tile or block32", key, text);
    case ORACLE_OUT_DTYPE:
        return parse_out_dtype(text, at(args, scalar->offset)) ||
               oracle_fail(error, "metadata %s: \"%.64s\", expected f32 or bf16", key, text);
    }
    return true;
}

static bool bind_scalar(const tensorfile *file, const oracle_scalar *scalar, oracle_args *args, tensorfile_error *error)
{
    const char *seen = NULL;
    for (int i = 0; i < file->metadata_count; i++) {
        const char *key = file->metadata[i].key;
        if (!oracle_is_name(scalar->names, key))
            continue;
        if (seen != NULL)
            return oracle_fail(error, "metadata %s: the file holds it as %s too", seen, key);
        seen = key;
        if (!set_scalar(scalar, key, file->metadata[i].value, args, error))
            return false;
    }
    return true;
}

bool oracle_set(oracle_problem *problem, const char *setting, tensorfile_error *error)
{
    char        key[32];
    const char *equals = strchr(setting, '=');
    if (equals == NULL)
        return oracle_fail(error, "--set %.64s: expected KEY=VALUE", setting);
    snprintf(key, sizeof key, "%.*s", (int)(equals - setting), setting);
    for (int i = 0; i < problem->op->scalar_count; i++)
        if (oracle_is_name(problem->op->scalars[i].names, key))
            return set_scalar(&problem->op->scalars[i], key, equals + 1, &problem->args, error);
    return oracle_fail(error, "--set %.64s: %s has no such scalar", setting, problem->op->name);
}

static bool bind_input(const tensorfile *file, const oracle_op *op, const oracle_input *input, oracle_args *args,
                       tensorfile_error *error)
{
    const tensorfile_entry *entry;
    if (!oracle_find_tensor(file, input->names, &entry, error))
        return false;
    if (entry == NULL && input->required)
        return oracle_fail(error, "%s: tensor %s is missing (accepted names: %s)", op->name,
                           oracle_first_name(input->names), input->names);
    if (entry != NULL)
        *(etalon_tensor *)at(args, input->offset) = entry->tensor;
    return true;
}

bool oracle_bind(const tensorfile *file, const oracle_op *op, oracle_problem *problem, tensorfile_error *error)
{
    const char *name = tensorfile_metadata(file, "op");
    if (op == NULL && name == NULL)
        return oracle_fail(error, "metadata op: missing; name the operation in the file or by --op");
    if (op == NULL && (op = oracle_find_op(name, error)) == NULL)
        return false;
    problem->op = op;
    op->init(&problem->args);
    for (int i = 0; i < op->input_count; i++)
        if (!bind_input(file, op, &op->inputs[i], &problem->args, error))
            return false;
    for (int i = 0; i < op->scalar_count; i++)
        if (!bind_scalar(file, &op->scalars[i], &problem->args, error))
            return false;
    return true;
}

/* Memory
 * ------
 */
static int64_t dim_of(const oracle_args *args, const oracle_dim *of)
{
    const etalon_tensor *t = tensor_at(args, of->offset);
    return of->dim < t->rank ? t->shape[of->dim] : 0;
}

static int64_t extent_of(const oracle_args *args, const oracle_extent *e)
{
    int64_t       extent = dim_of(args, &e->of);
    const int64_t given = e->scalar == 0 ? 0 : *(const int64_t *)((const char *)args + e->scalar);
    if (given > 0)
        return given;
    if (e->times.offset != 0 && __builtin_mul_overflow(extent, dim_of(args, &e->times), &extent))
        return INT64_MAX; /* whose bytes overflow, as the caller finds */
    return extent;
}

etalon_dtype oracle_output_dtype(const oracle_problem *problem, int output)
{
    const etalon_dtype dtype = tensor_at(&problem->args, problem->op->outputs[output].offset)->dtype;
    return dtype != ETALON_DTYPE_NONE ? dtype : ETALON_F32;
}

void oracle_want_f32(oracle_problem *problem)
{
    for (int i = 0; i < problem->op->output_count; i++)
        ((etalon_tensor *)at(&problem->args, problem->op->outputs[i].offset))->dtype = ETALON_F32;
}

void oracle_output_shape(const oracle_problem *problem, int output, int64_t *shape)
{
    const oracle_output *o = &problem->op->outputs[output];
    for (int32_t d = 0; d < o->rank; d++)
        shape[d] = extent_of(&problem->args, &o->shape[d]);
}

static bool bytes_of(etalon_dtype dtype, int32_t rank, const int64_t *shape, int64_t *bytes)
{
    *bytes = (int64_t)etalon_dtype_bytes(dtype);
    for (int32_t d = 0; d < rank; d++)
        if (__builtin_mul_overflow(*bytes, shape[d], bytes))
            return false;
    return true;
}

bool oracle_allocate(const char *name, etalon_dtype dtype, int32_t rank, const int64_t *shape, etalon_tensor *t,
                     tensorfile_error *error)
{
    int64_t      bytes;
    const double memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    if (!bytes_of(dtype, rank, shape, &bytes))
        return oracle_fail(error, "%s: its bytes overflow 64 bits", name);
    if ((double)bytes > memory)
        return oracle_fail(error, "%s: %" PRId64 " bytes, this machine has %.0f bytes of memory", name, bytes, memory);
    void *data = calloc(1, bytes > 0 ? (size_t)bytes : 1);
    if (data == NULL)
        return oracle_fail(error, "%s: %" PRId64 " bytes of memory cannot be had", name, bytes);
    *t = etalon_tensor_dense(data, dtype, rank, shape);
    return true;
}

int64_t oracle_elements(const etalon_tensor *t)
{
    int64_t elements = 1;
    for (int32_t d = 0; d < t->rank; d++)
        elements *= t->shape[d];
    return elements;
}

void oracle_result_free(oracle_result *result)
{
    for (int i = 0; i < ORACLE_OUTPUTS; i++)
        free(result->tensor[i].data);
    *result = (oracle_result){ 0 };
}

static bool allocate_outputs(const oracle_problem *problem, oracle_result *result, tensorfile_error *error)
{
    for (int i = 0; i < problem->op->output_count; i++) {
        const oracle_output *o = &problem->op->outputs[i];
        int64_t              shape[3];
        oracle_output_shape(problem, i, shape);
        const etalon_dtype dtype = oracle_output_dtype(problem, i);
        if (!oracle_allocate(oracle_first_name(o->names), dtype, o->rank, shape, &result->tensor[i], error))
            return false;
    }
    return true;
}

/* Calls
 * -----
 */
static oracle_args with_outputs(const oracle_problem *problem, const oracle_result *result, const char *kernel)
{
    oracle_args args = problem->args;
    for (int i = 0; i < problem->op->output_count; i++)
        *(etalon_tensor *)at(&args, problem->op->outputs[i].offset) = result->tensor[i];
    *(const char **)at(&args, problem->op->kernel) = kernel;
    return args;
}

/* Addresses that nothing reads or writes: the checks of a call want no memory for its results. */
typedef struct reservation {
    oracle_result outputs;
    void         *at[ORACLE_OUTPUTS];
    size_t        bytes[ORACLE_OUTPUTS];
} reservation;

static bool reserve_output(const oracle_problem *problem, int output, reservation *r, tensorfile_error *error)
{
    const oracle_output *o = &problem->op->outputs[output];
    int64_t              shape[3], bytes;
    const etalon_dtype   dtype = oracle_output_dtype(problem, output);
    oracle_output_shape(problem, output, shape);
    if (!bytes_of(dtype, o->rank, shape, &bytes))
        return oracle_fail(error, "%s: its bytes overflow 64 bits", oracle_first_name(o->names));
    const size_t length = bytes > 0 ? (size_t)bytes : 1;
    void *const  at = mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return oracle_fail(error, "%s: %" PRId64 " bytes of address space cannot be had", oracle_first_name(o->names),
                           bytes);
    r->at[output] = at;
    r->bytes[output] = length;
    r->outputs.tensor[output] = etalon_tensor_dense(at, dtype, o->rank, shape);
    return true;
}

static void release_outputs(const reservation *r)
{
    for (int i = 0; i < ORACLE_OUTPUTS; i++)
        if (r->at[i] != NULL)
            munmap(r->at[i], r->bytes[i]);
}

bool oracle_explain(const etalon_context *ctx, const oracle_problem *problem, const char *kernel,
                    etalon_explain_fn *row, void *user, tensorfile_error *error)
{
    reservation r = { 0 };
    bool        ok = true;
    for (int i = 0; ok && i < problem->op->output_count; i++)
        ok = reserve_output(problem, i, &r, error);
    if (ok) {
        const oracle_args args = with_outputs(problem, &r.outputs, kernel);
        ok = problem->op->explain(ctx, &args, row, user) == ETALON_OK || oracle_fail(error, "%s", etalon_last_error());
    }
    release_outputs(&r);
    return ok;
}

/* Remembers the row without a reason. */
static void note_serving(void *user, const char *kernel, const char *reason)
{
    if (reason == NULL)
        *(const char **)user = kernel;
}

const char *oracle_serving_row(const etalon_context *ctx, const oracle_problem *problem, tensorfile_error *error)
{
    const char *row = NULL;
    if (!oracle_explain(ctx, problem, NULL, note_serving, &row, error))
        return NULL;
    if (row == NULL)
        oracle_fail(error, "%s: no kernel takes it here; see etalon explain", problem->op->name);
    return row;
}

static bool call(const etalon_context *ctx, const oracle_op *op, const oracle_args *args, tensorfile_error *error)
{
    size_t bytes;
    if (op->workspace_bytes(ctx, args, &bytes) != ETALON_OK)
        return oracle_fail(error, "%s", etalon_last_error());
    const size_t rounded = (bytes + ETALON_WORKSPACE_ALIGN - 1) / ETALON_WORKSPACE_ALIGN * ETALON_WORKSPACE_ALIGN;
    void        *memory = bytes == 0 ? NULL : aligned_alloc(ETALON_WORKSPACE_ALIGN, rounded);
    if (bytes > 0 && memory == NULL)
        return oracle_fail(error, "workspace: %zu bytes of memory cannot be had", bytes);
    const etalon_status status = op->run(ctx, args, (etalon_workspace){ .data = memory, .bytes = bytes });
    free(memory);
    return status == ETALON_OK || oracle_fail(error, "%s", etalon_last_error());
}

bool oracle_run(const etalon_context *ctx, const oracle_problem *problem, const char *kernel, oracle_result *result,
                tensorfile_error *error)
{
    *result = (oracle_result){ 0 };
    if (!allocate_outputs(problem, result, error))
        return false;
    for (int i = 0; i < problem->op->output_count; i++)
        measure_poison(&result->tensor[i]);
    const oracle_args args = with_outputs(problem, result, kernel);
    return call(ctx, problem->op, &args, error);
}

int64_t oracle_index(const etalon_tensor *t, int64_t i)
{
    if (t->dtype == ETALON_I64)
        return ((const int64_t *)t->data)[i * t->stride[0]];
    return ((const int32_t *)t->data)[i * t->stride[0]];
}
