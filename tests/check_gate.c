/* The gate: selection over a table of its own, named rows, workspaces, explanations, the tables of all operations. */
#include "testing.h"

#include "gate.h"
#include "qualify.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))

/* A context may have these; no real kernel needs them. */
enum { NEEDS_LENS = 1 << 30, NEEDS_PRISM = 1 << 29 };

/* What the table below is asked to serve. */
typedef struct optics {
    int    width;
    bool   narrow_refuses;
    size_t workspace;
} optics;

static const char *ran; /* the row that ran last */
static const void *ran_problem;

static etalon_status run(const char *name, const void *problem)
{
    ran = name;
    ran_problem = problem;
    return ETALON_OK;
}

static etalon_status run_fast(const etalon_context *ctx, const void *problem, etalon_workspace work)
{
    (void)ctx, (void)work;
    return run("optics_fast", problem);
}

static etalon_status run_narrow(const etalon_context *ctx, const void *problem, etalon_workspace work)
{
    (void)ctx, (void)work;
    return run("optics_narrow", problem);
}

static etalon_status run_model(const etalon_context *ctx, const void *problem, etalon_workspace work)
{
    (void)ctx, (void)work;
    return run("optics_model", problem);
}

static etalon_status run_plain(const etalon_context *ctx, const void *problem, etalon_workspace work)
{
    (void)ctx, (void)work, (void)problem;
    return etalon_reject(ETALON_ERROR_DEVICE, "plain: broke");
}

static size_t wanted_workspace(const etalon_context *ctx, const void *problem)
{
    (void)ctx;
    return ((const optics *)problem)->workspace;
}

static const char *refuse_unless_wide(const void *problem)
{
    return ((const optics *)problem)->width >= 64 ? NULL : "width is below 64";
}

static const char *refuse_narrow(const void *problem)
{
    const optics *o = problem;
    return o->narrow_refuses ? "told to refuse" : o->width <= 32 ? NULL : "width is above 32";
}

static const char *refuse_unless_positive(const void *problem)
{
    return ((const optics *)problem)->width > 0 ? NULL : "width is not positive";
}

static const gate_row rows[] = {
    { "optics_fast", NEEDS_LENS | NEEDS_PRISM, gate_no_workspace, refuse_unless_wide, run_fast },
    { "optics_narrow", NEEDS_PRISM, wanted_workspace, refuse_narrow, run_narrow },
    { "optics_model", NEEDS_NAME, gate_no_workspace, gate_refuse_none, run_model },
    { "optics_plain", NEEDS_NONE, wanted_workspace, refuse_unless_positive, run_plain },
    { "optics_model_wide", NEEDS_NAME, gate_no_workspace, refuse_unless_wide, run_model },
};

static const gate table = { "optics", rows, COUNT(rows) };

enum { ALL = NEEDS_LENS | NEEDS_PRISM };

/* ---- selection ---- */

static const struct {
    uint32_t    have;
    optics      problem;
    const char *want; /* NULL: none */
} selections[] = {
    { ALL, { .width = 64 }, "optics_fast" },
    { ALL, { .width = 32 }, "optics_narrow" },
    { ALL, { .width = 48 }, "optics_plain" },
    { ALL, { .width = 32, .narrow_refuses = true }, "optics_plain" },
    { ALL, { .width = 0 }, "optics_narrow" },
    { ALL, { .width = 0, .narrow_refuses = true }, NULL }, /* by-name rows are never selected */
    { NEEDS_LENS, { .width = 64 }, "optics_plain" },       /* one of two needs is not enough */
    { NEEDS_PRISM, { .width = 64 }, "optics_plain" },
    { NEEDS_PRISM, { .width = 32 }, "optics_narrow" },
    { NEEDS_NONE, { .width = 32 }, "optics_plain" },
    { NEEDS_NONE, { .width = 64 }, "optics_plain" },
    { NEEDS_NONE, { .width = 0 }, NULL },
};

START_TEST(select_the_first_row_that_serves)
{
    const optics    problem = selections[_i].problem;
    const gate_row *row = gate_select(&table, selections[_i].have, &problem);
    const gate_row *again = gate_select(&table, selections[_i].have, &problem);
    ck_assert_ptr_eq(row, again);
    ck_assert_int_eq(row == NULL, selections[_i].want == NULL);
    if (row != NULL)
        ck_assert_str_eq(row->name, selections[_i].want);
    ck_assert_mem_eq(&problem, &selections[_i].problem, sizeof problem);
}
END_TEST

START_TEST(why_not)
{
    const optics wide = { .width = 64 }, narrow = { .width = 8 };
    ck_assert_ptr_null(gate_why_not(&rows[0], ALL, &wide));
    ck_assert_str_eq(gate_why_not(&rows[0], ALL, &narrow), "width is below 64");
    ck_assert_ptr_nonnull(gate_why_not(&rows[0], NEEDS_LENS, &wide));
    ck_assert_str_eq(gate_why_not(&rows[2], ALL, &wide), "by name only");
    ck_assert_ptr_null(gate_why_not(&rows[2], ALL | NEEDS_NAME, &wide));
}
END_TEST

START_TEST(words_for_needs)
{
    ck_assert_str_eq(gate_needs(NEEDS_NONE), "");
    ck_assert_str_eq(gate_needs(NEEDS_NAME), "by name only");
    ck_assert_str_eq(gate_needs(NEEDS_AVX2), "AVX2, FMA, F16C");
    ck_assert_str_eq(gate_needs(NEEDS_AVX512 | NEEDS_AVX2), "AVX2, FMA, F16C");
    ck_assert_str_eq(gate_lacks(NEEDS_NONE), "");
    ck_assert_str_eq(gate_lacks(NEEDS_NAME), "by name only");
    ck_assert_str_eq(gate_lacks(NEEDS_AVX2), "the CPU lacks AVX2, FMA or F16C, or ETALON_DISABLE has avx2");
}
END_TEST

START_TEST(find_by_name)
{
    for (int i = 0; i < table.count; i++)
        ck_assert_ptr_eq(gate_find(&table, rows[i].name), &rows[i]);
    static const char *const strangers[] = {
        "", "optics", "optics_fas", "optics_fastest", "OPTICS_FAST", "etalon_optics_fast"
    };
    for (int i = 0; i < COUNT(strangers); i++)
        ck_assert_ptr_null(gate_find(&table, strangers[i]));
}
END_TEST

/* ---- the choice for a call ---- */

static const struct {
    uint32_t    have;
    optics      problem;
    const char *name;  /* NULL: select */
    const char *want;  /* the row, or NULL */
    const char *words; /* of the refusal */
} choices[] = {
    { ALL, { .width = 64 }, NULL, "optics_fast", NULL },
    { ALL, { .width = 64 }, "optics_plain", "optics_plain", NULL }, /* a named row beats the better ones */
    { ALL, { .width = 64 }, "optics_model", "optics_model", NULL },
    { NEEDS_NONE, { .width = 64 }, "optics_model", "optics_model", NULL },
    { ALL, { .width = 8 }, "optics_fast", NULL, "optics: optics_fast: width is below 64" },
    { ALL, { .width = 8 }, "optics_model_wide", NULL, "optics: optics_model_wide: width is below 64" },
    { NEEDS_NONE, { .width = 64 }, "optics_fast", NULL, "optics: optics_fast: " }, /* the context has no lens */
    { ALL, { .width = 64 }, "optics_slow", NULL, "optics: kernel: no row is named \"optics_slow\"" },
    { ALL, { .width = 64 }, "", NULL, "no row is named \"\"" },
    /* The last row that may be selected answers for the table, not the by-name row after it. */
    { NEEDS_NONE, { .width = 0 }, NULL, NULL, "optics: optics_plain: width is not positive" },
};

START_TEST(choose)
{
    const etalon_context ctx = { .have = choices[_i].have };
    const gate_row      *row = NULL;
    if (choices[_i].words != NULL)
        ck_assert_rejects(gate_choose(&table, &ctx, choices[_i].name, &choices[_i].problem, &row),
                          ETALON_ERROR_UNSUPPORTED, choices[_i].words);
    else {
        ck_assert_ok(gate_choose(&table, &ctx, choices[_i].name, &choices[_i].problem, &row));
        ck_assert_str_eq(row->name, choices[_i].want);
    }
    ck_assert_int_eq(ctx.have, choices[_i].have);
}
END_TEST

/* ---- running ---- */

static _Alignas(ETALON_WORKSPACE_ALIGN) char scratch[1024];

static const struct {
    size_t           wanted;
    etalon_workspace work;
    const char      *words; /* NULL: it runs */
} workspaces[] = {
    { 0, { NULL, 0, NULL }, NULL },
    { 0, { scratch + 1, 3, NULL }, NULL }, /* who wants none does not look at it */
    { 512, { scratch, 512, NULL }, NULL },
    { 512, { scratch + ETALON_WORKSPACE_ALIGN, 768, NULL }, NULL },
    { 512, { scratch, 511, NULL }, "optics: workspace: 511 bytes, expected 512 (optics_narrow)" },
    { 512, { scratch, 0, NULL }, "optics: workspace: 0 bytes, expected 512" },
    { 512, { NULL, 512, NULL }, "optics: workspace: 0 bytes, expected 512" },
    { 512, { scratch + 1, 1000, NULL }, "is not aligned to 256 bytes" },
    { 512, { scratch + ETALON_WORKSPACE_ALIGN / 2, 768, NULL }, "is not aligned to 256 bytes" },
    { SIZE_MAX, { scratch, sizeof scratch, NULL }, "optics: workspace: 1024 bytes, expected 18446744073709551615" },
};

START_TEST(workspace)
{
    const etalon_context ctx = { .have = ALL };
    const optics         problem = { .width = 8, .workspace = workspaces[_i].wanted };
    ran = NULL;
    if (workspaces[_i].words == NULL) {
        ck_assert_ok(gate_run(&table, &rows[1], &ctx, &problem, workspaces[_i].work));
        ck_assert_str_eq(ran, "optics_narrow");
        ck_assert_ptr_eq(ran_problem, &problem);
    } else {
        ck_assert_rejects(gate_run(&table, &rows[1], &ctx, &problem, workspaces[_i].work),
                          ETALON_ERROR_WORKSPACE_TOO_SMALL, workspaces[_i].words);
        ck_assert_ptr_null(ran);
    }
}
END_TEST

START_TEST(the_status_of_the_kernel_is_that_of_the_call)
{
    const etalon_context   ctx = { .have = ALL };
    const optics           problem = { .width = 8 };
    const etalon_workspace none = { NULL, 0, NULL };
    ck_assert_rejects(gate_run(&table, &rows[3], &ctx, &problem, none), ETALON_ERROR_DEVICE, "plain: broke");
    ck_assert_uint_eq(gate_no_workspace(&ctx, &problem), 0);
    ck_assert_ptr_null(gate_refuse_none(&problem));
}
END_TEST

/* ---- explain ---- */

typedef struct account {
    int         count, served;
    const char *reason[COUNT(rows)];
} account;

static void note(void *user, const char *kernel, const char *reason)
{
    account *a = user;
    ck_assert_int_lt(a->count, COUNT(rows));
    ck_assert_str_eq(kernel, rows[a->count].name); /* in table order */
    a->reason[a->count++] = reason;
    a->served += reason == NULL;
}

static const struct {
    uint32_t    have;
    optics      problem;
    const char *name;
    const char *reason[COUNT(rows)]; /* NULL: this row serves */
} accounts[] = {
    { ALL,
      { .width = 64 },
      NULL,
      { NULL, "width is above 32", "by name only", "an earlier row serves it", "by name only" } },
    { ALL, { .width = 48 }, NULL, { "width is below 64", "width is above 32", "by name only", NULL, "by name only" } },
    { ALL,
      { .width = 0, .narrow_refuses = true },
      NULL,
      { "width is below 64", "told to refuse", "by name only", "width is not positive", "by name only" } },
    { ALL,
      { .width = 64 },
      "optics_model",
      { "another row is named", "width is above 32", NULL, "another row is named", "by name only" } },
    { ALL,
      { .width = 8 },
      "optics_model_wide",
      { "width is below 64", "another row is named", "by name only", "another row is named", "width is below 64" } },
};

START_TEST(explain)
{
    const etalon_context ctx = { .have = accounts[_i].have };
    account              told = { .count = 0 };
    int                  serving = 0;
    ck_assert_ok(gate_explain(&table, &ctx, accounts[_i].name, &accounts[_i].problem, note, &told));
    ck_assert_int_eq(told.count, COUNT(rows));
    for (int i = 0; i < COUNT(rows); i++) {
        ck_assert_int_eq(told.reason[i] == NULL, accounts[_i].reason[i] == NULL);
        if (told.reason[i] != NULL)
            ck_assert_str_eq(told.reason[i], accounts[_i].reason[i]);
        serving += accounts[_i].reason[i] == NULL;
    }
    ck_assert_int_eq(told.served, serving);
}
END_TEST

START_TEST(explain_knows_no_such_row)
{
    const etalon_context ctx = { .have = ALL };
    const optics         problem = { .width = 64 };
    account              told = { .count = 0 };
    ck_assert_rejects(gate_explain(&table, &ctx, "optics_slow", &problem, note, &told), ETALON_ERROR_UNSUPPORTED,
                      "no row is named \"optics_slow\"");
    ck_assert_int_eq(told.count, 0);
}
END_TEST

/* explain and choose name the same row. */
START_TEST(explain_agrees_with_choose)
{
    const etalon_context ctx = { .have = selections[_i].have };
    account              told = { .count = 0 };
    const gate_row      *row = NULL;
    ck_assert_ok(gate_explain(&table, &ctx, NULL, &selections[_i].problem, note, &told));
    const bool served = gate_choose(&table, &ctx, NULL, &selections[_i].problem, &row) == ETALON_OK;
    ck_assert_int_eq(told.served, served);
    if (served)
        ck_assert_ptr_null(told.reason[row - rows]);
}
END_TEST

/* ---- arguments of other ages ---- */

typedef struct arguments {
    size_t size;
    int    first, second;
} arguments;

START_TEST(copy_of_arguments)
{
    const arguments args = { sizeof args, 7, 8 };
    arguments       copy;
    memset(&copy, 0x5A, sizeof copy);
    ck_assert_ok(gate_copy_args("optics", &copy, sizeof copy, &args, args.size));
    ck_assert_int_eq(copy.first, 7);
    ck_assert_int_eq(copy.second, 8);

    memset(&copy, 0x5A, sizeof copy); /* an older caller */
    ck_assert_ok(gate_copy_args("optics", &copy, sizeof copy, &args, offsetof(arguments, second)));
    ck_assert_int_eq(copy.first, 7);
    ck_assert_int_eq(copy.second, 0);

    struct {
        arguments known;
        int       guard;
    } newer; /* a newer caller: nothing past the copy is written */
    newer.guard = 99;
    ck_assert_ok(gate_copy_args("optics", &newer.known, sizeof newer.known, &args, sizeof args + 64));
    ck_assert_int_eq(newer.known.second, 8);
    ck_assert_int_eq(newer.guard, 99);

    ck_assert_rejects(gate_copy_args("optics", &copy, sizeof copy, NULL, 0), ETALON_ERROR_INVALID_ARGUMENT,
                      "optics: args: NULL");
    ck_assert_rejects(gate_copy_args("optics", &copy, sizeof copy, &args, 0), ETALON_ERROR_INVALID_ARGUMENT,
                      "optics: args.size: 0,");
    ck_assert_rejects(gate_copy_args("optics", &copy, sizeof copy, &args, sizeof(size_t) - 1),
                      ETALON_ERROR_INVALID_ARGUMENT, "optics: args.size: 7,");
}
END_TEST

/* ---- the tables of the operations ---- */

START_TEST(real_rows_are_well_formed)
{
    const gate *g = gates[_i];
    ck_assert_int_ge(g->count, 1);
    for (int i = 0; i < g->count; i++) {
        const gate_row *row = &g->rows[i];
        const size_t    root = strlen(g->op);
        ck_assert_int_eq(strncmp(row->name, g->op, root), 0);
        ck_assert_int_eq(row->name[root], '_');
        ck_assert_ptr_eq(gate_find(g, row->name), row); /* so no name stands twice */
        ck_assert(row->workspace != NULL && row->refuse != NULL && row->run != NULL);
        ck_assert_int_eq(gate_needs(row->needs)[0] == '\0', row->needs == NEEDS_NONE); /* every need has its words */
    }
}
END_TEST

static const char *refuse_all(const void *problem)
{
    (void)problem;
    return "never";
}

/* A row of a device without a question of src/qualify.c would never serve, whatever the device. */
START_TEST(rows_of_devices_have_known_answers)
{
    etalon_context *ctx;
    ck_assert_ok(etalon_context_create(NULL, &ctx));
    for (int i = 0; i < gates[_i]->count; i++) {
        gate_row row = gates[_i]->rows[i];
        if ((row.needs & NEEDS_DEVICE) == 0)
            continue;
        ck_assert_msg(qualify_knows(ctx, gates[_i], &row), "%s: src/qualify.c has no problem that it takes", row.name);
        row.refuse = refuse_all;
        ck_assert(!qualify_knows(ctx, gates[_i], &row));
        ck_assert(!qualify_knows(ctx, &table, &row)); /* of an operation that src/qualify.c does not have */
    }
    etalon_context_destroy(ctx);
}
END_TEST

/* etalon_kernel_get counts through all rows of all tables, in order. */
START_TEST(kernel_get)
{
    etalon_context *ctx;
    int             index = 0;
    ck_assert_ok(etalon_context_create(NULL, &ctx));
    for (int g = 0; g < GATE_COUNT; g++)
        for (int i = 0; i < gates[g]->count; i++, index++) {
            const gate_row    *row = &gates[g]->rows[i];
            etalon_kernel_info info;
            ck_assert_ok(etalon_kernel_get(ctx, index, &info));
            ck_assert_str_eq(info.op, gates[g]->op);
            ck_assert_str_eq(info.name, row->name);
            ck_assert_str_eq(info.needs, gate_needs(row->needs));
            ck_assert_int_eq(info.available, (row->needs & ctx->have) == row->needs);
            ck_assert(!(row->needs & NEEDS_NAME) || !info.available);
        }
    const int outside[] = { index, index + 1, INT_MAX, -1, INT_MIN };
    for (int i = 0; i < COUNT(outside); i++) {
        etalon_kernel_info info = { .name = "untouched" };
        char               words[32];
        snprintf(words, sizeof words, "kernel_get: index: %d,", outside[i]);
        ck_assert_rejects(etalon_kernel_get(ctx, outside[i], &info), ETALON_ERROR_INVALID_ARGUMENT, words);
        ck_assert_str_eq(info.name, "untouched");
    }
    etalon_kernel_info info;
    ck_assert_rejects(etalon_kernel_get(NULL, 0, &info), ETALON_ERROR_INVALID_ARGUMENT, "ctx: NULL");
    ck_assert_rejects(etalon_kernel_get(ctx, 0, NULL), ETALON_ERROR_INVALID_ARGUMENT, "info: NULL");
    etalon_context_destroy(ctx);
}
END_TEST

static void fill(TCase *tcase)
{
    tcase_add_loop_test(tcase, select_the_first_row_that_serves, 0, COUNT(selections));
    tcase_add_test(tcase, why_not);
    tcase_add_test(tcase, words_for_needs);
    tcase_add_test(tcase, find_by_name);
    tcase_add_loop_test(tcase, choose, 0, COUNT(choices));
    tcase_add_loop_test(tcase, workspace, 0, COUNT(workspaces));
    tcase_add_test(tcase, the_status_of_the_kernel_is_that_of_the_call);
    tcase_add_loop_test(tcase, explain, 0, COUNT(accounts));
    tcase_add_test(tcase, explain_knows_no_such_row);
    tcase_add_loop_test(tcase, explain_agrees_with_choose, 0, COUNT(selections));
    tcase_add_test(tcase, copy_of_arguments);
    tcase_add_loop_test(tcase, real_rows_are_well_formed, 0, GATE_COUNT);
    tcase_add_loop_test(tcase, rows_of_devices_have_known_answers, 0, GATE_COUNT);
    tcase_add_test(tcase, kernel_get);
}

int main(void)
{
    return testing_main("gate", fill);
}
