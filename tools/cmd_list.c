/* etalon list, etalon explain: the kernel tables, and what they say to a call. */
#include "program.h"
#include "generate.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

/* Why the rows of one table do not serve the default problem of the operation. */
enum { MOST_ROWS = 64 };

typedef struct reasons {
    const char *op; /* NULL: none has been asked yet */
    const char *kernel[MOST_ROWS], *reason[MOST_ROWS];
    int         count;
} reasons;

static void note_reason(void *user, const char *kernel, const char *reason)
{
    reasons *r = user;
    if (r->count == MOST_ROWS)
        return;
    r->kernel[r->count] = kernel;
    r->reason[r->count++] = reason;
}

/* Texts live as long as the context. */
static void ask_for_reasons(const etalon_context *ctx, const char *op, reasons *r)
{
    tensorfile       file;
    tensorfile_error error;
    oracle_problem   problem;
    *r = (reasons){ .op = op };
    const oracle_op *whole = oracle_find_op(op, &error);
    if (!generate(&(generate_request){ .op = whole, .seed = 1 }, &file, &error) ||
        !oracle_bind(&file, whole, &problem, &error) || !oracle_explain(ctx, &problem, NULL, note_reason, r, &error))
        program_error(op, "%s", error.text);
    generate_free(&file);
}

/* Why a row is not available; NULL where that is, or where its needs say as much. */
static const char *reason_of(const etalon_context *ctx, const etalon_kernel_info *info, reasons *r)
{
    if (info->available)
        return NULL;
    if (r->op == NULL || strcmp(r->op, info->op) != 0)
        ask_for_reasons(ctx, info->op, r);
    for (int i = 0; i < r->count; i++)
        if (strcmp(r->kernel[i], info->name) == 0 && r->reason[i] != NULL && strcmp(r->reason[i], info->needs) != 0)
            return r->reason[i];
    return NULL;
}

static void print_row(const etalon_kernel_info *info, const char *reason, bool json)
{
    if (json)
        report_json(json_pack("{s:s,s:s,s:s,s:b,s:s?}", "op", info->op, "kernel", info->name, "needs", info->needs,
                              "available", info->available, "reason", reason));
    else
        printf("%-16s  %-38s  %-9s  %s%s%s\n", info->op, info->name, info->available ? "yes" : "no", info->needs,
               reason == NULL ? "" : ": ", reason == NULL ? "" : reason);
}

static void print_object(const etalon_code_object_info *info, bool json)
{
    if (json)
        report_json(json_pack("{s:s,s:s,s:I,s:i,s:i,s:i}", "kernel", info->kernel, "arch", info->arch, "bytes",
                              (json_int_t)info->bytes, "registers", info->registers, "lds_bytes", info->lds_bytes,
                              "scratch_bytes", info->scratch_bytes));
    else
        printf("%-38s  %-8s  %8zu  %9d  %9d  %13d\n", info->kernel, info->arch, info->bytes, info->registers,
               info->lds_bytes, info->scratch_bytes);
}

/* -1 is printed as it is: what an object does not tell. */
static void list_objects(bool json)
{
    if (!json)
        printf("%-38s  %-8s  %8s  %9s  %9s  %13s\n", "kernel", "arch", "bytes", "registers", "lds_bytes",
               "scratch_bytes");
    etalon_code_object_info info;
    for (int i = 0; etalon_code_object_get(i, &info) == ETALON_OK; i++)
        print_object(&info, json);
}

int cmd_list(int argc, char **argv)
{
    enum { JSON = 1, THREADS, DEVICE, HELP, OBJECTS };
    static const struct option options[] = {
        { "json", no_argument, NULL, JSON },
        { "objects", no_argument, NULL, OBJECTS },
        { "threads", required_argument, NULL, THREADS },
        { "device", required_argument, NULL, DEVICE },
        { "help", no_argument, NULL, HELP },
        { 0 },
    };
    bool        json = false, objects = false;
    const char *threads = NULL, *device = NULL;
    for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (o == HELP)
            return program_help("list");
        if (o == JSON)
            json = true;
        else if (o == OBJECTS)
            objects = true;
        else if (o == THREADS)
            threads = optarg;
        else if (o == DEVICE)
            device = optarg;
        else
            return program_bad_usage("list");
    }
    if (optind != argc) {
        program_error(NULL, "list: \"%s\": expected no argument", argv[optind]);
        return program_bad_usage("list");
    }
    if (objects) {
        list_objects(json);
        return 0;
    }
    etalon_context *ctx = program_context(threads, device);
    if (ctx == NULL)
        return EXIT_BAD;
    if (!json)
        printf("%-16s  %-38s  %-9s  %s\n", "op", "kernel", "available", "needs");
    etalon_kernel_info info;
    reasons            r = { 0 };
    for (int i = 0; etalon_kernel_get(ctx, i, &info) == ETALON_OK; i++)
        print_row(&info, reason_of(ctx, &info, &r), json);
    etalon_context_destroy(ctx);
    return 0;
}

static void print_reason(void *user, const char *kernel, const char *reason)
{
    (void)user;
    printf("%-38s  %s\n", kernel, reason == NULL ? "taken" : reason);
}

/* What to explain beside the file or operation. */
typedef struct request {
    const oracle_op *op; /* of a file whose metadata does not name it, or NULL */
    const char      *kernel;
    program_settings settings;
} request;

static bool explain(const etalon_context *ctx, const tensorfile *file, const oracle_op *op, const request *r,
                    tensorfile_error *error)
{
    oracle_problem problem;
    return program_bind(file, op, &r->settings, &problem, error) &&
           oracle_explain(ctx, &problem, r->kernel, print_reason, NULL, error);
}

/* The default problem of an operation. */
static bool explain_op(const etalon_context *ctx, const oracle_op *op, const request *r, tensorfile_error *error)
{
    tensorfile file;
    const bool ok =
        generate(&(generate_request){ .op = op, .seed = 1 }, &file, error) && explain(ctx, &file, op, r, error);
    generate_free(&file);
    return ok;
}

static bool explain_file(const etalon_context *ctx, const char *path, const request *r, tensorfile_error *error)
{
    tensorfile file = { 0 };
    const bool ok = tensorfile_read(path, &file, error) && explain(ctx, &file, r->op, r, error);
    tensorfile_free(&file);
    return ok;
}

int cmd_explain(int argc, char **argv)
{
    enum { OP = 1, KERNEL, SET, THREADS, DEVICE, HELP };
    static const struct option options[] = {
        { "op", required_argument, NULL, OP },
        { "kernel", required_argument, NULL, KERNEL },
        { "set", required_argument, NULL, SET },
        { "threads", required_argument, NULL, THREADS },
        { "device", required_argument, NULL, DEVICE },
        { "help", no_argument, NULL, HELP },
        { 0 },
    };
    request     r = { 0 };
    const char *op_name = NULL, *threads = NULL, *device = NULL;
    for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (o == HELP)
            return program_help("explain");
        if (o == OP)
            op_name = optarg;
        else if (o == KERNEL)
            r.kernel = optarg;
        else if (o == SET && program_add_setting(&r.settings, optarg))
            continue;
        else if (o == THREADS)
            threads = optarg;
        else if (o == DEVICE)
            device = optarg;
        else
            return program_bad_usage("explain");
    }
    if (argc - optind != 1) {
        program_error(NULL, "explain: expected one operation or file");
        return program_bad_usage("explain");
    }
    etalon_context *ctx;
    if (!program_op(op_name, &r.op) || (ctx = program_context(threads, device)) == NULL)
        return EXIT_BAD;
    tensorfile_error error;
    const oracle_op *whole = oracle_find_op(argv[optind], &error);
    const bool ok = whole != NULL ? explain_op(ctx, whole, &r, &error) : explain_file(ctx, argv[optind], &r, &error);
    if (!ok)
        program_error(argv[optind], "%s", error.text);
    etalon_context_destroy(ctx);
    return ok ? 0 : EXIT_BAD;
}
