#include "bench.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static double median(const series *s)
{
    return quantile(s, 0.5);
}

static double spread(const series *s)
{
    return s->count > 1 ? (quantile(s, 0.75) - quantile(s, 0.25)) / median(s) : NAN;
}

typedef struct report {
    double ms, spread, gflops, peak, peak_fraction, peak_spread, sgemm, vs_sgemm, vs_ref, decode_ms, vs_decode, kv_gbs,
        scaling;
    bool ref_scaled;
} report;

const row *find_row(const bench *b, const char *kernel, int turn)
{
    for (int i = 0; i < b->count; i++)
        if (b->rows[i].turn == turn && strcmp(b->rows[i].kernel, kernel) == 0)
            return &b->rows[i];
    return NULL;
}

/* The median over the rounds; of a row that ran but once, by the medians of both. */
static double beside(const row *r, const series *rounds, double once)
{
    return r->once ? once : median(rounds);
}

static report report_of(const bench *b, const row *r)
{
    const row   *ref = find_row(b, b->problem.problem.op->reference, r->turn);
    const double seconds = median(&r->seconds), decode = median(&b->decode[r->turn][r->isa]);
    report       x = {
        .ms = seconds * 1e3, .spread = spread(&r->seconds), .gflops = b->problem.flops / seconds * 1e-9, .kv_gbs = NAN
    };
    x.peak = median(&b->fma_rate[r->turn][r->isa]);
    x.peak_fraction = beside(r, &r->vs_fma, x.gflops / x.peak);
    x.peak_spread = spread(&r->vs_fma);
    x.sgemm = median(&b->gemm_rate[r->turn]);
    x.vs_sgemm = beside(r, &r->vs_gemm, x.gflops / x.sgemm);
    x.vs_ref = ref == NULL ? NAN : median(&ref->seconds) / seconds;
    x.ref_scaled = ref != NULL && ref->scaled;
    x.decode_ms = decode * 1e3;
    x.vs_decode = beside(r, &r->vs_decode, seconds / decode);
    const oracle_id id = b->problem.problem.op->id;
    if (is_on_device(b) || id == ORACLE_PA_MTP || id == ORACLE_MQA_LOGITS_PAGED)
        x.kv_gbs = (double)b->problem.kv_bytes / seconds * 1e-9;
    x.scaling = beside(r, &r->scaling, median(&find_row(b, r->kernel, 0)->seconds) / seconds);
    return x;
}

static void set_real(json_t *object, const char *key, double x)
{
    json_object_set_new(object, key, isfinite(x) ? json_real(x) : json_null());
}

static const char *isa_name(const bench *b, const row *r)
{
    return is_on_device(b) ? device_arch(b->ctx[0]) : yardstick_isa_name(r->isa);
}

static const char *route_name(const bench *b)
{
    return !is_on_device(b) ? "host" : b->stream.handle != NULL ? "stream" : "device";
}

static void print_json(const bench *b, const row *r)
{
    const report x = report_of(b, r);
    json_t      *o = json_object();
    json_object_set_new(o, "op", json_string(b->shape.op));
    json_object_set_new(o, "shape", json_string(b->shape.name));
    json_object_set_new(o, "kernel", json_string(r->kernel));
    json_object_set_new(o, "threads", json_integer(b->o.threads[r->turn]));
    set_real(o, "median_ms", x.ms);
    set_real(o, "spread", x.spread);
    set_real(o, "gflops", x.gflops);
    set_real(o, "peak_fraction", x.peak_fraction);
    set_real(o, "peak_fraction_spread", x.peak_spread);
    set_real(o, "vs_sgemm", x.vs_sgemm);
    set_real(o, "vs_ref", x.vs_ref);
    json_object_set_new(o, "vs_ref_scaled", json_boolean(x.ref_scaled));
    json_object_set_new(o, "runs", json_integer(r->scaled ? 0 : r->seconds.count));
    set_real(o, "min_ms", quantile(&r->seconds, 0.0) * 1e3);
    set_real(o, "max_ms", quantile(&r->seconds, 1.0) * 1e3);
    set_real(o, "scaling", x.scaling);
    set_real(o, "kv_gbs", x.kv_gbs);
    set_real(o, "vs_decode", x.vs_decode);
    set_real(o, "decode_ms", x.decode_ms);
    json_object_set_new(o, "isa", json_string(isa_name(b, r)));
    set_real(o, "peak_gflops", x.peak);
    set_real(o, "sgemm_gflops", x.sgemm);
    json_object_set_new(o, "sgemm", json_string(b->gemm.what));
    set_real(o, "others", b->others);
    set_real(o, "pairs", b->problem.pairs);
    set_real(o, "flops", b->problem.flops);
    json_object_set_new(o, "workspace_bytes", json_integer((json_int_t)r->work.bytes));
    set_real(o, "memory_bytes", r->memory);
    json_object_set_new(o, "device", is_on_device(b) ? json_integer(b->o.device) : json_null());
    json_object_set_new(o, "route", json_string(route_name(b)));
    json_object_set_new(o, "buffers", json_integer(is_on_device(b) ? b->rotation.count : 1));
    json_object_set_new(o, "buffer_bytes", is_on_device(b) ? json_integer(b->rotation.bytes) : json_null());
    json_dumpf(o, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER);
    putchar('\n');
    json_decref(o);
}

/* "12.3", or "-" for what was not measured. Static storage, one for each of the last sixteen calls. */
static const char *cell(const char *format, double x)
{
    static char text[16][32];
    static int  turn;
    char       *at = text[turn++ % 16];
    if (isfinite(x))
        snprintf(at, sizeof text[0], format, x);
    else
        strcpy(at, "-");
    return at;
}

static const char *const format_row = "%-16s %-22s %-24s %7s %10s %7s %8s %6s %-9s %7s %8s %8s %7s %6s %8s\n";

static void cpu_name(char *name, size_t bytes)
{
    char  line[256];
    FILE *file = fopen("/proc/cpuinfo", "r");
    snprintf(name, bytes, "unknown");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "model name", 10) == 0 && strchr(line, ':') != NULL) {
            snprintf(name, bytes, "%.*s", (int)strcspn(strchr(line, ':') + 2, "\n"), strchr(line, ':') + 2);
            break;
        }
    if (file != NULL)
        fclose(file);
}

static void print_columns(void)
{
    printf(format_row, "#op", "shape", "kernel", "threads", "ms", "spread", "GFLOP/s", "%peak", "of", "/sgemm", "/ref",
           "/decode", "GB/s", "MiB", "scaling"); /* no blanks within a word: bench/plot.gp reads columns */
}

static void print_device_header(const bench *b)
{
    printf("# etalon %s; device %d, %s; tensors there, %.0f MiB before one is used again; %s\n", etalon_version(),
           b->o.device, device_arch(b->ctx[0]), b->o.rotate_mib,
           b->stream.handle != NULL ? "calls on a stream, waited for together" : "each call waited for");
    print_columns();
}

/* Lines that start with # are for readers; the rest is a table of words. */
static void print_header(const bench *b)
{
    const char *policy = getenv("OMP_WAIT_POLICY");
    char        name[128];
    cpu_name(name, sizeof name);
    printf("# etalon %s; %s, %ld CPUs; threads wait: %s%s\n", etalon_version(), name, sysconf(_SC_NPROCESSORS_ONLN),
           policy == NULL ? "as the OpenMP library likes" : policy, b->bound ? "; each on a CPU of its own" : "");
    printf("# sgemm: %s\n", b->gemm.what);
    for (int t = 0; t < b->o.thread_counts; t++) {
        printf("# multiply-adds in registers, %d thread%s:", b->o.threads[t], b->o.threads[t] == 1 ? "" : "s");
        for (int isa = 0; isa < ISA_COUNT; isa++)
            if (yardstick_isa_here((yardstick_isa)isa))
                printf(" %s %.1f GFLOP/s", yardstick_isa_name((yardstick_isa)isa),
                       yardstick_fma((yardstick_isa)isa, b->o.threads[t]));
        putchar('\n');
    }
    print_columns();
}

static void print_row(const bench *b, const row *r)
{
    const report x = report_of(b, r);
    char         ms[32], ref[32], spread_text[32];
    snprintf(ms, sizeof ms, "%s%s", r->scaled ? "~" : "", cell("%.3f", x.ms));
    snprintf(ref, sizeof ref, "%s%s", x.ref_scaled ? "~" : "", cell("%.1f", x.vs_ref));
    snprintf(spread_text, sizeof spread_text, "%s%s", cell("%.1f", 100.0 * x.spread), isfinite(x.spread) ? "%" : "");
    printf(format_row, b->shape.op, b->shape.name, r->kernel, cell("%.0f", b->o.threads[r->turn]), ms, spread_text,
           cell("%.1f", x.gflops), cell("%.1f", 100.0 * x.peak_fraction), isa_name(b, r), cell("%.2f", x.vs_sgemm), ref,
           cell("%.2f", x.vs_decode), cell("%.2f", x.kv_gbs), cell("%.1f", r->memory / 0x1p20),
           cell("%.2f", x.scaling));
}

void print_rows(bench *b)
{
    if (!b->header && !b->o.json)
        (is_on_device(b) ? print_device_header : print_header)(b);
    b->header = true;
    for (int i = 0; i < b->count; i++) {
        if (!b->rows[i].shown)
            continue;
        if (b->o.json)
            print_json(b, &b->rows[i]);
        else
            print_row(b, &b->rows[i]);
    }
    if (!b->o.json && is_on_device(b) && b->rotation.bytes < b->o.rotate_mib * 0x1p20)
        printf("# %s: %d buffers, %.1f MiB: caches may have held them\n", b->shape.name, b->rotation.count,
               (double)b->rotation.bytes / 0x1p20);
    if (!b->o.json && !is_on_device(b) && b->others > 0.05)
        printf("# %s: other programs took %.0f %% of the CPUs meanwhile; times are too bad\n", b->shape.name,
               100.0 * b->others);
    fflush(stdout);
}
