/* etalon gen: writes problems. */
#include "program.h"
#include "generate.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

typedef struct gen {
    generate_request request;
    const char      *out, *threads;
    bool             expected;
} gen;

static bool add_expected(const gen *g, tensorfile *file, tensorfile_error *error)
{
    if (!g->expected)
        return true;
    etalon_context *ctx = program_context(g->threads, NULL);
    if (ctx == NULL)
        return oracle_fail(error, "no context");
    program_progress("%s: %s", g->out, g->request.op->reference);
    const bool ok = generate_expected(ctx, file, error);
    etalon_context_destroy(ctx);
    return ok;
}

static int write_problem(const gen *g)
{
    tensorfile       file = { 0 };
    tensorfile_error error;
    const char      *about = NULL;
    program_progress("%s: numbers", g->out);
    bool ok = generate(&g->request, &file, &error) && add_expected(g, &file, &error);
    if (ok) {
        about = g->out;
        ok = tensorfile_write(g->out, file.entries, file.count, file.metadata, file.metadata_count, &error);
    }
    program_progress_end();
    if (!ok)
        program_error(about, "%s", error.text);
    generate_free(&file);
    return ok ? 0 : EXIT_BAD;
}

static bool is_list(const char *text)
{
    return text != NULL && strcmp(text, "list") == 0;
}

/* The operation is known by now. */
static int generate_or_list(gen *g, bool list_keys)
{
    if (list_keys) {
        generate_list_keys(g->request.op, stdout);
        return 0;
    }
    if (is_list(g->request.pattern)) {
        generate_list_patterns(g->request.op, stdout);
        return 0;
    }
    if (g->out == NULL) {
        program_error(NULL, "gen: no -o FILE");
        return program_bad_usage("gen");
    }
    return write_problem(g);
}

int cmd_gen(int argc, char **argv)
{
    enum { SHAPE = 1, PATTERN, SEED, EXPECTED, THREADS, HELP };
    static const struct option options[] = {
        { "shape", required_argument, NULL, SHAPE }, { "pattern", required_argument, NULL, PATTERN },
        { "seed", required_argument, NULL, SEED },   { "expected", no_argument, NULL, EXPECTED },
        { "output", required_argument, NULL, 'o' },  { "threads", required_argument, NULL, THREADS },
        { "help", no_argument, NULL, HELP },         { 0 },
    };
    const char **shape = calloc((size_t)argc, sizeof *shape);
    gen          g = { .request = { .shape = shape, .seed = 1 } };
    bool         list_keys = false;
    int          code = shape == NULL ? EXIT_BAD : 0;
    for (int o; code == 0 && (o = getopt_long(argc, argv, "o:", options, NULL)) != -1;) {
        switch (o) {
        case SHAPE:
            list_keys = list_keys || is_list(optarg);
            shape[g.request.shape_count++] = optarg;
            break;
        case PATTERN:
            g.request.pattern = optarg;
            break;
        case SEED:
            if (!program_seed(optarg, &g.request.seed))
                code = program_bad_usage("gen");
            break;
        case EXPECTED:
            g.expected = true;
            break;
        case 'o':
            g.out = optarg;
            break;
        case THREADS:
            g.threads = optarg;
            break;
        case HELP:
            free(shape);
            return program_help("gen");
        default:
            code = program_bad_usage("gen");
        }
    }
    if (code == 0 && argc - optind != 1) {
        program_error(NULL, "gen: expected one operation");
        code = program_bad_usage("gen");
    }
    if (code == 0 && !program_op(argv[optind], &g.request.op))
        code = EXIT_BAD;
    if (code == 0)
        code = generate_or_list(&g, list_keys);
    free(shape);
    return code;
}
