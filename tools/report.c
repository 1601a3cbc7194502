#include "program.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

json_t *report_number(double x)
{
    if (isnan(x))
        return json_string("nan");
    if (isinf(x))
        return json_string(x > 0 ? "inf" : "-inf");
    return json_real(x);
}

static json_t *report_element(const measure_element *e, int64_t rank)
{
    json_t *object = json_object(), *index = json_array();
    for (int64_t d = 0; d < rank; d++)
        json_array_append_new(index, json_integer(e->index[d]));
    json_object_set_new(object, "index", index);
    json_object_set_new(object, "got", report_number(e->got));
    json_object_set_new(object, "want", report_number(e->want));
    json_object_set_new(object, "bound", report_number(e->bound));
    json_object_set_new(object, "ulp", e->ulp == INT64_MAX ? json_null() : json_integer(e->ulp));
    return object;
}

json_t *report_measure(const measure *m)
{
    json_t *object = json_object();
    json_object_set_new(object, "elements", json_integer(m->elements));
    json_object_set_new(object, "compared", json_integer(m->compared));
    json_object_set_new(object, "max_bound_ratio", report_number(m->max_bound_ratio));
    json_object_set_new(object, "max_abs", report_number(m->max_abs));
    json_object_set_new(object, "rms", report_number(m->rms));
    json_object_set_new(object, "max_err_over_std", report_number(m->max_err_over_std));
    json_object_set_new(object, "cosine", report_number(m->cosine));
    json_object_set_new(object, "calc_diff", report_number(m->calc_diff));
    json_object_set_new(object, "max_ulp", m->max_ulp == INT64_MAX ? json_null() : json_integer(m->max_ulp));
    json_object_set_new(object, "over_bound", json_integer(m->over_bound));
    json_object_set_new(object, "inf_mismatches", json_integer(m->inf_mismatches));
    json_object_set_new(object, "nan_mismatches", json_integer(m->nan_mismatches));
    json_object_set_new(object, "unwritten", json_integer(m->unwritten));
    json_object_set_new(object, "worst", m->has_worst ? report_element(&m->worst, m->rank) : json_null());
    json_object_set_new(object, "first", m->has_first ? report_element(&m->first, m->rank) : json_null());
    return object;
}

void report_json(json_t *object)
{
    json_dumpf(object, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER);
    putchar('\n');
    fflush(stdout);
    json_decref(object);
}

static void print_element(const char *name, const char *which, const measure_element *e, int64_t rank)
{
    char index[160];
    measure_index_text(e, rank, index, sizeof index);
    printf("    %s%s: got %.9g, want %.9g", name, index, e->got, e->want);
    if (!isnan(e->bound))
        printf(", bound %.3g", e->bound);
    if (e->ulp != INT64_MAX)
        printf(", %" PRId64 " ulp", e->ulp);
    printf(" (%s)\n", which);
}

void report_failure(const char *name, const measure *m)
{
    if (m->has_worst)
        print_element(name, "the worst", &m->worst, m->rank);
    if (m->has_first)
        print_element(name, "the first bad one", &m->first, m->rank);
    printf("    %s: of %" PRId64 " elements %" PRId64 " over the bound, %" PRId64 " infinity mismatches, %" PRId64
           " NaN mismatches, %" PRId64 " unwritten\n",
           name, m->elements, m->over_bound, m->inf_mismatches, m->nan_mismatches, m->unwritten);
}

void report_shape(const etalon_tensor *t, char *text, size_t bytes)
{
    snprintf(text, bytes, "[");
    for (int32_t d = 0; d < t->rank; d++)
        snprintf(text + strlen(text), bytes - strlen(text), "%s%" PRId64, d == 0 ? "" : ", ", t->shape[d]);
    snprintf(text + strlen(text), bytes - strlen(text), "]");
}
