#include "bench.h"

#include <malloc.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* Series
 * ------
 */
static void add(series *s, double x)
{
    if (s->count == s->room) {
        const int room = s->room == 0 ? 64 : 2 * s->room;
        double   *at = realloc(s->at, sizeof *at * (size_t)room);
        if (at == NULL)
            return; /* a sample less */
        s->at = at;
        s->room = room;
    }
    s->at[s->count++] = x;
}

static void clear(series *s)
{
    free(s->at);
    *s = (series){ 0 };
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double quantile(const series *s, double q)
{
    if (s->count == 0)
        return NAN;
    qsort(s->at, (size_t)s->count, sizeof *s->at, ascending);
    const double at = q * (s->count - 1);
    const int    i = (int)at;
    return i + 1 < s->count ? s->at[i] + (at - i) * (s->at[i + 1] - s->at[i]) : s->at[i];
}

/* Memory
 * ------
 */
/* A line of /proc/self/status, in bytes; NaN where there is none. */
static double status_bytes(const char *key)
{
    double kib = NAN;
    char   line[128];
    FILE  *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, key, strlen(key)) == 0)
            kib = strtod(line + strlen(key), NULL);
    if (file != NULL)
        fclose(file);
    return kib * 1024.0;
}

/* Sets the peak of the resident memory back to what is resident now. */
static bool reset_peak(void)
{
    FILE *file = fopen("/proc/self/clear_refs", "w");
    if (file == NULL)
        return false;
    const bool ok = fputs("5", file) >= 0;
    return fclose(file) == 0 && ok;
}

void note_memory(bench *b)
{
    mallopt(M_MMAP_THRESHOLD, 1 << 17); /* fixed: what is freed goes back, and counts for no kernel */
    for (int t = 0; t < b->o.thread_counts; t++)
        yardstick_fma(ISA_BASELINE, b->o.threads[t]); /* the threads are there from now on */
    b->memory_before = status_bytes("VmRSS:");
}

/* Seconds that the machine's CPUs were busy, and those of this program among them; NaN where unknown. */
static double busy_seconds(void)
{
    double user, nice, system, idle, wait, irq, soft, steal;
    FILE  *file = fopen("/proc/stat", "r");
    int    count = 0;
    if (file != NULL) {
        count = fscanf(file, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &user, &nice, &system, &idle, &wait, &irq, &soft,
                       &steal);
        fclose(file);
    }
    return count == 8 ? (user + nice + system + irq + soft + steal) / (double)sysconf(_SC_CLK_TCK) : NAN;
}

static double own_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Rows
 * ----
 */
static bool call(bench *b, const row *r, const bench_problem *p)
{
    oracle_args      args = is_on_device(b) ? rotation_next(&b->rotation) : p->args;
    etalon_workspace work = r->work;
    work.stream = b->stream.handle;
    *(const char **)((char *)&args + p->problem.op->kernel) = r->kernel;
    const etalon_status status = p->problem.op->run(b->ctx[r->turn], &args, work);
    if (status != ETALON_OK)
        complain("%s: %s", r->kernel, etalon_last_error());
    return status == ETALON_OK;
}

/* So many calls, and what they put on a stream is done; the seconds of one. */
static bool run_many(bench *b, const row *r, const bench_problem *p, int calls, double *seconds)
{
    const double start = yardstick_now();
    for (int i = 0; i < calls; i++)
        if (!call(b, r, p))
            return false;
    if (b->stream.handle != NULL && !device_stream_wait(&b->stream)) {
        complain("%s: %s: %d", r->kernel, b->stream.failed, b->stream.code);
        return false;
    }
    *seconds = (yardstick_now() - start) / calls;
    return true;
}

static bool run(bench *b, const row *r, const bench_problem *p, double *seconds)
{
    return run_many(b, r, p, 1, seconds);
}

/* Fresh pages, which count as memory when the kernel touches them; aligned far beyond ETALON_WORKSPACE_ALIGN. */
static void map_workspace(row *r, size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    r->work = (etalon_workspace){ .data = at == MAP_FAILED ? NULL : at,
                                  .bytes = bytes }; /* without memory the call says so */
}

static void unmap_workspace(const bench *b, row *r)
{
    if (r->work.data != NULL && is_on_device(b))
        device_free(b->o.device, r->work.data);
    else if (r->work.data != NULL)
        munmap(r->work.data, r->work.bytes);
    r->work = (etalon_workspace){ 0 };
}

/* Workspace for the row; false, with the reason in etalon_last_error(), if it does not serve the problem. */
static bool provide_workspace(bench *b, row *r, const bench_problem *p)
{
    oracle_args args = is_on_device(b) ? b->rotation.args[0] : p->args;
    *(const char **)((char *)&args + p->problem.op->kernel) = r->kernel;
    size_t bytes;
    if (p->problem.op->workspace_bytes(b->ctx[r->turn], &args, &bytes) != ETALON_OK)
        return false;
    if (bytes > 0 && is_on_device(b))
        r->work = (etalon_workspace){ .data = device_alloc(b->o.device, bytes), .bytes = bytes };
    else if (bytes > 0)
        map_workspace(r, bytes);
    return true;
}

void free_rows(bench *b)
{
    for (int i = 0; i < b->count; i++) {
        unmap_workspace(b, &b->rows[i]);
        series *const all[] = { &b->rows[i].seconds, &b->rows[i].vs_fma, &b->rows[i].vs_gemm, &b->rows[i].vs_decode,
                                &b->rows[i].scaling };
        for (size_t j = 0; j < sizeof all / sizeof all[0]; j++)
            clear(all[j]);
    }
    for (int t = 0; t < MOST_THREAD_COUNTS; t++) {
        clear(&b->gemm_rate[t]);
        for (int i = 0; i < ISA_COUNT; i++) {
            clear(&b->fma_rate[t][i]);
            clear(&b->decode[t][i]);
        }
    }
    b->count = 0;
}

/* False if the reader has been told of the kernel. */
static bool add_told(bench *b, const char *kernel)
{
    for (int i = 0; i < b->told_count; i++)
        if (strcmp(b->told[i], kernel) == 0)
            return false;
    if (b->told_count < MOST_ROWS)
        b->told[b->told_count++] = kernel;
    return true;
}

/* A row for the kernel at every number of threads. False: a kernel that was named does not serve the call. */
static bool add_kernel(bench *b, const etalon_kernel_info *info)
{
    const bool named = has_name(&b->o.kernels, info->name), all = has_name(&b->o.kernels, "all");
    const bool reference = strcmp(info->name, b->problem.problem.op->reference) == 0;
    const bool shown = named || all || (b->o.kernels.count == 0 && info->available);
    if (!shown && !reference) {
        if (b->o.kernels.count == 0 && add_told(b, info->name))
            complain("%s: left out: %s", info->name, info->needs);
        return true;
    }
    for (int t = 0; t < b->o.thread_counts && b->count < MOST_ROWS; t++) {
        row r = { .kernel = info->name, .turn = t, .reference = reference, .shown = shown, .memory = NAN };
        r.isa = yardstick_isa_of(info->name);
        if (!provide_workspace(b, &r, &b->problem)) {
            complain("%s %s: left out: %s", b->shape.op, b->shape.name, etalon_last_error());
            return !named;
        }
        b->rows[b->count++] = r;
    }
    return true;
}

/* With a device: rows that take tensors there. Those of the host do not, and nobody asks why. */
static bool add_kernel_there(bench *b, const etalon_kernel_info *info)
{
    const bool named = has_name(&b->o.kernels, info->name), any = named || has_name(&b->o.kernels, "all");
    row        r = { .kernel = info->name, .shown = true, .memory = NAN };
    if (b->count == MOST_ROWS || (!any && b->o.kernels.count > 0))
        return true;
    if (!provide_workspace(b, &r, &b->problem)) {
        if (named)
            complain("%s %s: %s", b->shape.op, b->shape.name, etalon_last_error());
        return !named;
    }
    if (any || info->available) {
        b->rows[b->count++] = r;
        return true;
    }
    unmap_workspace(b, &r);
    if (add_told(b, info->name))
        complain("%s: left out: it gave no known answers on the device; etalon list --device %d tells", info->name,
                 b->o.device);
    return true;
}

bool add_rows(bench *b)
{
    etalon_kernel_info info;
    for (int i = 0; etalon_kernel_get(b->ctx[0], i, &info) == ETALON_OK; i++)
        if (strcmp(info.op, b->shape.op) == 0 && !(is_on_device(b) ? add_kernel_there : add_kernel)(b, &info))
            return false;
    if (is_on_device(b) && b->count == 0)
        complain("%s %s: left out: no row takes tensors on device %d", b->shape.op, b->shape.name, b->o.device);
    return true;
}

/* Timing
 * ------
 */
/* The reference is slow: how long it would take, by the better of two runs of a small problem of the kind. */
static bool estimate(bench *b, const row *r, double *seconds)
{
    bench_problem    small;
    tensorfile_error error;
    row              one = *r;
    double           first = 0.0, second = 0.0;
    one.work = (etalon_workspace){ 0 };
    bool ok = bench_make_small(&b->shape, &b->problem, &small, &error);
    if (!ok)
        complain("%s %s: %s", b->shape.op, b->shape.name, error.text);
    ok = ok && provide_workspace(b, &one, &small) && run(b, &one, &small, &first) && run(b, &one, &small, &second);
    *seconds = ok && small.flops > 0.0 ? fmin(first, second) * b->problem.flops / small.flops : 0.0;
    unmap_workspace(b, &one);
    bench_free(&small);
    return ok;
}

/* Runs the row and notes the memory beyond the tensors: at its peak, over what the program had before any kernel ran. What
 * kernels have left on the stacks of threads counts again, the workspaces of the others do not: their pages are given back.
 */
static bool run_watched(bench *b, row *r)
{
    const bool known = reset_peak();
    if (!run(b, r, &b->problem, &r->warm))
        return false;
    if (known)
        r->memory = fmax(0.0, status_bytes("VmHWM:") - b->memory_before - (double)b->problem.bytes);
    if (r->work.data != NULL)
        madvise(r->work.data, r->work.bytes, MADV_DONTNEED);
    return true;
}

/* The first run of a row: it warms the caches up, and shows the memory. */
static bool warm_up(bench *b, row *r)
{
    enum { SLOW = 1 }; /* seconds after which a reference runs no second time */
    if (is_on_device(b))
        return run(b, r, &b->problem, &r->warm) && run(b, r, &b->problem, &r->warm); /* the first one loads */
    if (r->reference) {
        double seconds;
        if (!estimate(b, r, &seconds))
            return false;
        if (seconds > b->o.ref_seconds) {
            r->once = r->scaled = true;
            add(&r->seconds, seconds);
            return true;
        }
    }
    if (!run_watched(b, r))
        return false;
    r->once = r->reference && r->warm > SLOW;
    if (r->once)
        add(&r->seconds, r->warm);
    return true;
}

/* Several runs of what is short, so that a round takes about as long for each. */
static int runs_a_round(double seconds)
{
    const double runs = 0.02 / seconds;
    return runs < 1.0 ? 1 : runs > 50.0 ? 50 : (int)runs;
}

static double decode_once(const bench *b, yardstick_isa isa, int threads)
{
    double seconds = 0.0;
    for (int i = 0; i < 2; i++)
        if (b->problem.elements[i] > 0)
            seconds += yardstick_decode(isa, threads, b->problem.codes[i], b->problem.elements[i]);
    return seconds;
}

static bool can_decode(const bench *b)
{
    return b->problem.codes[0] != NULL && b->problem.elements[0] > 0;
}

/* What the machine does at this moment: GFLOP/s, and seconds to decode K and V; NaN: not measured. */
typedef struct moment {
    double fma, gemm, decode;
} moment;

static moment look(bench *b, const row *r)
{
    const int threads = b->o.threads[r->turn];
    moment    now = { NAN, NAN, NAN };
    if (is_on_device(b) || !r->shown)
        return now;
    if (b->gemm.library != NULL)
        add(&b->gemm_rate[r->turn], now.gemm = yardstick_gemm_run(&b->gemm, threads));
    add(&b->fma_rate[r->turn][r->isa], now.fma = yardstick_fma(r->isa, threads));
    if (can_decode(b))
        add(&b->decode[r->turn][r->isa], now.decode = decode_once(b, r->isa, threads));
    return now;
}

/* Runs of one round between two looks at the yardsticks. Other programs and the clock of a shared machine change from
 * second to second; ratios of what was measured within a few hundredths of one do not.
 */
static bool row_round(bench *b, row *r)
{
    const int    runs = r->once ? 0 : runs_a_round(r->warm), together = b->stream.handle == NULL ? 1 : runs;
    const moment before = look(b, r);
    series       times = { 0 };
    for (int i = 0; i < runs; i += together) {
        double seconds;
        if (!run_many(b, r, &b->problem, together, &seconds)) {
            clear(&times);
            return false;
        }
        add(&r->seconds, seconds);
        add(&times, seconds);
    }
    r->round = quantile(&times, 0.5);
    clear(&times);
    if (runs == 0)
        return true;
    const moment after = look(b, r);
    const double gflops = b->problem.flops / r->round * 1e-9;
    add(&r->vs_fma, 2.0 * gflops / (before.fma + after.fma));
    add(&r->vs_gemm, 2.0 * gflops / (before.gemm + after.gemm));
    add(&r->vs_decode, 2.0 * r->round / (before.decode + after.decode));
    add(&r->scaling, find_row(b, r->kernel, 0)->round / r->round);
    return true;
}

bool time_rows(bench *b)
{
    for (int i = 0; i < b->count; i++)
        if (!warm_up(b, &b->rows[i]))
            return false;
    const double start = yardstick_now(), busy = busy_seconds(), own = own_seconds();
    for (int n = 0; n < b->o.repeat || yardstick_now() - start < b->o.seconds; n++) {
        for (int i = 0; i < b->count; i++)
            if (!row_round(b, &b->rows[i]))
                return false;
    }
    const double all = (yardstick_now() - start) * (double)sysconf(_SC_NPROCESSORS_ONLN);
    b->others = fmax(0.0, (busy_seconds() - busy - (own_seconds() - own)) / all);
    return true;
}
