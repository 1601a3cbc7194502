/* etalon list, etalon explain: the kernel tables, and what they say to a call. */
#include "program.h"
#include "generate.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

static void print_row(const etalon_kernel_info *info, bool json)
{
    if (json)
        report_json(json_pack("{s:s,s:s,s:s,s:b}", "op", info->op, "kernel", info->name, "needs", info->needs,
                              "available", info->available));
    else
        printf("%-12s  %-36s  %-9s  %s\n", info->op, info->name, info->available ? "yes" : "no", info->needs);
}

int cmd_list(int argc, char **argv)
{
    enum { JSON = 1, THREADS, HELP };
    static const struct option options[] = {
        { "json", no_argument, NULL, JSON },
        { "threads", required_argument, NULL, THREADS },
        { "help", no_argument, NULL, HELP },
        { 0 },
    };
    bool        json = false;
    const char *threads = NULL;
    for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (o == HELP)
            return program_help("list");
        if (o == JSON)
            json = true;
        else if (o == THREADS)
            threads = optarg;
        else
            return program_bad_usage("list");
    }
    if (optind != argc) {
        program_error(NULL, "list: \"%s\": expected no argument", argv[optind]);
        return program_bad_usage("list");
    }
    etalon_context *ctx = program_context(threads);
    if (ctx == NULL)
        return EXIT_BAD;
    if (!json)
        printf("%-12s  %-36s  %-9s  %s\n", "op", "kernel", "available", "needs");
    etalon_kernel_info info;
    for (int i = 0; etalon_kernel_get(ctx, i, &info) == ETALON_OK; i++)
        print_row(&info, json);
    etalon_context_destroy(ctx);
    return 0;
}

static void print_reason(void *user, const char *kernel, const char *reason)
{
    (void)user;
    printf("%-36s  %s\n", kernel, reason == NULL ? "taken" : reason);
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
    enum { OP = 1, KERNEL, SET, THREADS, HELP };
    static const struct option options[] = {
        { "op", required_argument, NULL, OP },   { "kernel", required_argument, NULL, KERNEL },
        { "set", required_argument, NULL, SET }, { "threads", required_argument, NULL, THREADS },
        { "help", no_argument, NULL, HELP },     { 0 },
    };
    request     r = { 0 };
    const char *op_name = NULL, *threads = NULL;
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
        else
            return program_bad_usage("explain");
    }
    if (argc - optind != 1) {
        program_error(NULL, "explain: expected one operation or file");
        return program_bad_usage("explain");
    }
    etalon_context *ctx;
    if (!program_op(op_name, &r.op) || (ctx = program_context(threads)) == NULL)
        return EXIT_BAD;
    tensorfile_error error;
    const oracle_op *whole = oracle_find_op(argv[optind], &error);
    const bool ok = whole != NULL ? explain_op(ctx, whole, &r, &error) : explain_file(ctx, argv[optind], &r, &error);
    if (!ok)
        program_error(argv[optind], "%s", error.text);
    etalon_context_destroy(ctx);
    return ok ? 0 : EXIT_BAD;
}
