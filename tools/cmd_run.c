/* etalon run: computes what a file holds the inputs of, and writes the outputs. */
#include "program.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

typedef struct run {
    const oracle_op *op;
    const char      *kernel, *path, *out;
    program_settings settings;
} run;

/* Keys of this program's own: not taken over from the input. `set` holds the texts of --set. */
static bool is_own_key(const char *key)
{
    return strcmp(key, "op") == 0 || strcmp(key, "kernel") == 0 || strcmp(key, "set") == 0;
}

static void join_settings(const program_settings *settings, char *text, size_t bytes)
{
    text[0] = '\0';
    for (int i = 0; i < settings->count; i++)
        snprintf(text + strlen(text), bytes - strlen(text), "%s%s", i == 0 ? "" : " ", settings->text[i]);
}

/* The metadata of the input, op, kernel and settings as they were run. The pairs borrow their texts. */
static bool collect_metadata(const tensorfile *file, const char *op, const char *kernel, const char *set,
                             tensorfile_pair **pairs, int *count, tensorfile_error *error)
{
    *count = 0;
    *pairs = calloc((size_t)file->metadata_count + 3, sizeof **pairs);
    if (*pairs == NULL)
        return oracle_fail(error, "no memory");
    for (int i = 0; i < file->metadata_count; i++)
        if (!is_own_key(file->metadata[i].key))
            (*pairs)[(*count)++] = file->metadata[i];
    (*pairs)[(*count)++] = (tensorfile_pair){ (char *)"op", (char *)op };
    (*pairs)[(*count)++] = (tensorfile_pair){ (char *)"kernel", (char *)kernel };
    if (set[0] != '\0')
        (*pairs)[(*count)++] = (tensorfile_pair){ (char *)"set", (char *)set };
    return true;
}

static bool write_result(const run *r, const tensorfile *file, const oracle_problem *problem, const char *kernel,
                         const oracle_result *result, tensorfile_error *error)
{
    tensorfile_entry entries[ORACLE_OUTPUTS];
    tensorfile_pair *pairs;
    int              count;
    char             set[1024];
    join_settings(&r->settings, set, sizeof set);
    for (int i = 0; i < problem->op->output_count; i++)
        entries[i] = (tensorfile_entry){ (char *)oracle_first_name(problem->op->outputs[i].names), result->tensor[i] };
    const bool ok = collect_metadata(file, problem->op->name, kernel, set, &pairs, &count, error) &&
                    tensorfile_write(r->out, entries, problem->op->output_count, pairs, count, error);
    free(pairs);
    return ok;
}

/* A failure names the file that the sentence is about. */
static int run_file(const run *r, const etalon_context *ctx)
{
    tensorfile       file = { 0 };
    oracle_problem   problem;
    oracle_result    result = { 0 };
    tensorfile_error error;
    const char      *kernel = r->kernel, *about = r->path;
    bool ok = tensorfile_read(r->path, &file, &error) && program_bind(&file, r->op, &r->settings, &problem, &error) &&
              (kernel != NULL || (kernel = oracle_serving_row(ctx, &problem, &error)) != NULL);
    if (ok) {
        program_progress("%s: %s", r->path, kernel);
        ok = oracle_run(ctx, &problem, kernel, &result, &error);
    }
    if (ok) {
        about = r->out;
        ok = write_result(r, &file, &problem, kernel, &result, &error);
    }
    program_progress_end();
    if (!ok)
        program_error(about, "%s", error.text);
    oracle_result_free(&result);
    tensorfile_free(&file);
    return ok ? 0 : EXIT_BAD;
}

int cmd_run(int argc, char **argv)
{
    enum { OP = 1, KERNEL, SET, THREADS, DEVICE, HELP };
    static const struct option options[] = {
        { "op", required_argument, NULL, OP },
        { "kernel", required_argument, NULL, KERNEL },
        { "set", required_argument, NULL, SET },
        { "output", required_argument, NULL, 'o' },
        { "threads", required_argument, NULL, THREADS },
        { "device", required_argument, NULL, DEVICE },
        { "help", no_argument, NULL, HELP },
        { 0 },
    };
    run         r = { 0 };
    const char *op = NULL, *threads = NULL, *device = NULL;
    for (int o; (o = getopt_long(argc, argv, "o:", options, NULL)) != -1;) {
        switch (o) {
        case OP:
            op = optarg;
            break;
        case KERNEL:
            r.kernel = optarg;
            break;
        case SET:
            if (!program_add_setting(&r.settings, optarg))
                return EXIT_BAD;
            break;
        case 'o':
            r.out = optarg;
            break;
        case THREADS:
            threads = optarg;
            break;
        case DEVICE:
            device = optarg;
            break;
        case HELP:
            return program_help("run");
        default:
            return program_bad_usage("run");
        }
    }
    if (argc - optind != 1 || r.out == NULL) {
        program_error(NULL, "run: expected one FILE and -o OUT");
        return program_bad_usage("run");
    }
    r.path = argv[optind];
    etalon_context *ctx = NULL;
    if (!program_op(op, &r.op) || (ctx = program_context(threads, device)) == NULL)
        return EXIT_BAD;
    const int code = run_file(&r, ctx);
    etalon_context_destroy(ctx);
    return code;
}
