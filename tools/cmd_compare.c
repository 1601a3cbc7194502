/* etalon compare: two tensors, or all tensors of the same name in two files. */
#include "program.h"

#include "element.h"

#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct compare {
    const char *path[2];
    tensorfile  file[2];
    const char *name[2]; /* NULL: every name that both files hold */
    double      absolute, relative;
    bool        json;
    int         width; /* of the name column */
    int         passed, failed;
} compare;

typedef struct tolerance {
    double               absolute, relative;
    const etalon_tensor *want;
} tolerance;

/* Files hold dense tensors: the element's place in memory order. */
static int64_t place(const etalon_tensor *t, const int64_t *index)
{
    int64_t at = 0;
    for (int32_t d = 0; d < t->rank; d++)
        at = at * t->shape[d] + index[d];
    return at;
}

static double element_bound(const void *user, const int64_t *index)
{
    const tolerance *t = user;
    if (t->relative == 0.0)
        return t->absolute;
    const char *at = (const char *)t->want->data + place(t->want, index) * (int64_t)etalon_dtype_bytes(t->want->dtype);
    return t->absolute + t->relative * fabs((double)element_load(at, t->want->dtype));
}

static bool is_integer(etalon_dtype dtype)
{
    return dtype == ETALON_I32 || dtype == ETALON_I64 || dtype == ETALON_U8 || dtype == ETALON_E8M0;
}

static int64_t integer_at(const etalon_tensor *t, int64_t i)
{
    if (t->dtype == ETALON_I64)
        return ((const int64_t *)t->data)[i];
    return t->dtype == ETALON_I32 ? ((const int32_t *)t->data)[i] : ((const uint8_t *)t->data)[i];
}

static void set_element(measure_element *e, const etalon_tensor *shape, int64_t i, int64_t got, int64_t want)
{
    for (int32_t d = shape->rank - 1; d >= 0; d--) {
        e->index[d] = i % shape->shape[d];
        i /= shape->shape[d];
    }
    e->got = (double)got;
    e->want = (double)want;
    e->bound = 0.0;
    e->ulp = INT64_MAX; /* integers have none */
}

/* Integers, and the codes of E8M0: equal or not. */
static bool compare_integers(const etalon_tensor *got, const etalon_tensor *want, measure *m)
{
    *m = (measure){ .rank = got->rank, .elements = oracle_elements(got), .compared = oracle_elements(got) };
    for (int64_t i = 0; i < m->elements; i++) {
        const int64_t x = integer_at(got, i), y = integer_at(want, i);
        const double  difference = fabs((double)x - (double)y);
        if (x == y)
            continue;
        m->over_bound++;
        if (!m->has_first)
            set_element(&m->first, got, i, x, y);
        if (!m->has_worst || difference > m->max_abs)
            set_element(&m->worst, got, i, x, y);
        m->has_first = m->has_worst = true;
        m->max_abs = fmax(m->max_abs, difference);
    }
    m->max_bound_ratio = m->over_bound > 0 ? INFINITY : 0.0;
    return true;
}

static bool same_shape(const etalon_tensor *a, const etalon_tensor *b)
{
    return a->rank == b->rank && memcmp(a->shape, b->shape, (size_t)a->rank * sizeof a->shape[0]) == 0;
}

/* False, with the reason, if there is nothing to measure. */
static bool measure_pair(const compare *c, const etalon_tensor *got, const etalon_tensor *want, measure *m,
                         tensorfile_error *error)
{
    if (!same_shape(got, want)) {
        char a[160], b[160];
        report_shape(got, a, sizeof a);
        report_shape(want, b, sizeof b);
        return oracle_fail(error, "shape %s, and %s in %s", a, b, c->path[1]);
    }
    if (is_integer(got->dtype) && is_integer(want->dtype))
        return compare_integers(got, want, m);
    const tolerance t = { c->absolute, c->relative, want };
    return measure_compare(got, want, element_bound, &t, m) ||
           oracle_fail(error, "dtype %s, and %s in %s: no common measure", etalon_dtype_name(got->dtype),
                       etalon_dtype_name(want->dtype), c->path[1]);
}

static void print_json(const compare *c, const char *got, const char *want, const measure *m, bool pass)
{
    json_t *object = report_measure(m);
    json_object_set_new(object, "got_file", json_string(c->path[0]));
    json_object_set_new(object, "got", json_string(got));
    json_object_set_new(object, "ref_file", json_string(c->path[1]));
    json_object_set_new(object, "ref", json_string(want));
    json_object_set_new(object, "verdict", json_string(pass ? "PASS" : "FAIL"));
    report_json(object);
}

static void print_text(const compare *c, const char *name, const measure *m, bool pass)
{
    printf("%-*s  %-7s  %9.3g  %9.3g  %9.3g  %9.3g  %12.9f  %9.2e", c->width, name, pass ? "PASS" : "FAIL",
           m->max_bound_ratio, m->max_abs, m->rms, m->max_err_over_std, m->cosine, m->calc_diff);
    if (m->max_ulp == INT64_MAX)
        printf("  %10s\n", "-");
    else
        printf("  %10" PRId64 "\n", m->max_ulp);
    if (!pass)
        report_failure(name, m);
}

static void print_unmeasured(const compare *c, const char *name, const char *reason)
{
    if (c->json)
        report_json(json_pack("{s:s,s:s,s:s,s:s,s:s}", "got_file", c->path[0], "got", name, "ref_file", c->path[1],
                              "verdict", "FAIL", "reason", reason));
    else
        printf("%-*s  FAIL     %s\n", c->width, name, reason);
}

static void compare_pair(compare *c, const tensorfile_entry *got, const etalon_tensor *want, const char *want_name)
{
    measure          m;
    tensorfile_error error;
    if (!measure_pair(c, &got->tensor, want, &m, &error)) {
        c->failed++;
        print_unmeasured(c, got->name, error.text);
        return;
    }
    const bool pass = measure_ok(&m);
    *(pass ? &c->passed : &c->failed) += 1;
    if (c->json)
        print_json(c, got->name, want_name, &m, pass);
    else
        print_text(c, got->name, &m, pass);
}

static const tensorfile_entry *find_entry(const compare *c, int side, const char *name)
{
    for (int i = 0; i < c->file[side].count; i++)
        if (strcmp(c->file[side].entries[i].name, name) == 0)
            return &c->file[side].entries[i];
    return NULL;
}

static bool compare_named(compare *c)
{
    const tensorfile_entry *pair[2];
    for (int side = 0; side < 2; side++) {
        pair[side] = find_entry(c, side, c->name[side]);
        if (pair[side] == NULL) {
            program_error(c->path[side], "tensor %s is missing", c->name[side]);
            return false;
        }
    }
    compare_pair(c, pair[0], &pair[1]->tensor, c->name[1]);
    return true;
}

static bool compare_common(compare *c)
{
    int common = 0;
    for (int i = 0; i < c->file[0].count; i++) {
        const tensorfile_entry *got = &c->file[0].entries[i], *want = find_entry(c, 1, got->name);
        if (want == NULL)
            continue;
        common++;
        compare_pair(c, got, &want->tensor, want->name);
    }
    if (common == 0)
        program_error(c->path[0], "shares no tensor name with %s", c->path[1]);
    return common > 0;
}

static void print_header(compare *c)
{
    c->width = 6;
    for (int i = 0; i < c->file[0].count; i++)
        if ((int)strlen(c->file[0].entries[i].name) > c->width)
            c->width = (int)strlen(c->file[0].entries[i].name);
    if (!c->json)
        printf("%-*s  %-7s  %9s  %9s  %9s  %9s  %12s  %9s  %10s\n", c->width, "tensor", "verdict", "err/bound",
               "max abs", "rms", "err/std", "cosine", "calc_diff", "max ulp");
}

static int compare_files(compare *c)
{
    tensorfile_error error;
    for (int side = 0; side < 2; side++)
        if (!tensorfile_read(c->path[side], &c->file[side], &error)) {
            program_error(c->path[side], "%s", error.text);
            return EXIT_BAD;
        }
    print_header(c);
    if (!(c->name[0] != NULL ? compare_named(c) : compare_common(c)))
        return EXIT_BAD;
    if (!c->json)
        printf("%d passed, %d failed\n", c->passed, c->failed);
    return c->failed > 0 ? EXIT_DIFFERS : 0;
}

static bool read_tolerance(const char *option, const char *text, double *x)
{
    char *end;
    *x = strtod(text, &end);
    if (end != text && *end == '\0' && *x >= 0.0 && isfinite(*x))
        return true;
    program_error(NULL, "--%s: \"%s\", expected a number that is not negative", option, text);
    return false;
}

int cmd_compare(int argc, char **argv)
{
    enum { GOT = 1, REF, ABSOLUTE, RELATIVE, JSON, HELP };
    static const struct option options[] = {
        { "got", required_argument, NULL, GOT },
        { "ref", required_argument, NULL, REF },
        { "tolerance-abs", required_argument, NULL, ABSOLUTE },
        { "tolerance-rel", required_argument, NULL, RELATIVE },
        { "json", no_argument, NULL, JSON },
        { "help", no_argument, NULL, HELP },
        { 0 },
    };
    compare c = { 0 };
    for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (o) {
        case GOT:
            c.name[0] = optarg;
            break;
        case REF:
            c.name[1] = optarg;
            break;
        case ABSOLUTE:
            if (!read_tolerance("tolerance-abs", optarg, &c.absolute))
                return program_bad_usage("compare");
            break;
        case RELATIVE:
            if (!read_tolerance("tolerance-rel", optarg, &c.relative))
                return program_bad_usage("compare");
            break;
        case JSON:
            c.json = true;
            break;
        case HELP:
            return program_help("compare");
        default:
            return program_bad_usage("compare");
        }
    }
    if (argc - optind != 2) {
        program_error(NULL, "compare: expected two files");
        return program_bad_usage("compare");
    }
    for (int side = 0; side < 2; side++) {
        c.path[side] = argv[optind + side];
        if (c.name[side] == NULL)
            c.name[side] = c.name[1 - side]; /* one name given: the same in both */
    }
    const int code = compare_files(&c);
    tensorfile_free(&c.file[0]);
    tensorfile_free(&c.file[1]);
    return code;
}
