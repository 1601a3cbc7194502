/* bench: times the rows of the kernel tables, beside what the machine can do. */
#include "bench.h"

#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef _OPENMP
#include <omp.h>
#endif

enum { EXIT_BAD = 2 };

static const char help[] =
    "usage: bench [--op OP]... [--shape NAME|KEY=VALUE,...]... [--kernel STEM|all]... [--threads N,...]\n"
    "             [--repeat N] [--seconds S] [--ref-seconds S] [--gemm N] [--keep-openblas-env] [--json]\n"
    "             [--device N [--stream] [--rotate MIB]]\n"
    "       bench --list\n"
    "\n"
    "Times kernels on random numbers from a fixed seed. Rows take turns, round after round, each between two runs of\n"
    "its yardsticks; ratios are medians over the rounds, so that they hold on a machine that others use too.\n"
    "\n"
    "  --op OP               pa_mtp, fmha_varlen, mqa_logits or mqa_logits_paged; default: all\n"
    "  --shape ...           a name of --list; or keys of `etalon gen OP --shape list`, pattern=NAME last (with --op)\n"
    "  --kernel STEM         default: every row that can serve the call; all: those reached by name only, too\n"
    "  --threads N,...       default: the machine's\n"
    "  --repeat N            rounds, at least (default 7)\n"
    "  --seconds S           seconds of rounds for each shape, at least (default 1)\n"
    "  --ref-seconds S       a reference that would take longer is scaled from a small problem (default 20)\n"
    "  --gemm N              sgemm multiplies N x N matrices (default 1024)\n"
    "  --keep-openblas-env   leave OPENBLAS_CORETYPE, which picks the kernels, as it is\n"
    "  --json                one object a line, null for what was not measured\n"
    "  --device N            rows of the GPU with that number of OpenMP's, with tensors there, in place of the host's\n"
    "  --stream              calls of a round are put on a stream and waited for together; else each is by itself\n"
    "  --rotate MIB          calls take copies of the tensors in turn, as many as make so much between two uses of "
    "one,\n"
    "                        and so find nothing in a cache (default 512; 0: one copy)\n"
    "  --list                named shapes, and kernels\n"
    "\n"
    "  ms        median of the runs; a reference that takes seconds runs once\n"
    "  spread    interquartile range / median\n"
    "  GFLOP/s   over visible (query, key) pairs: attention 2 (Dqk + Dv) a pair and query head, mqa_logits 2 D H a "
    "pair;\n"
    "            exponentials, masks, relu, weights, scales and decoding are not counted\n"
    "  %peak     of multiply-adds in registers (amx: of bf16) before and after, same threads and instruction set\n"
    "  /sgemm    GFLOP/s over that of OpenBLAS before and after, same threads\n"
    "  /ref      how many times as fast as the reference; ~: the reference was scaled from a small problem\n"
    "  /decode   time over that of decoding the FP8 K and V once into L1 and nothing else, same threads\n"
    "  GB/s      of K and V that some row sees, each byte once\n"
    "  MiB       of memory beyond the tensors at its peak, workspace and stacks included; for all threads together\n"
    "Of rows of a device: ms, spread, GFLOP/s, and GB/s for every operation.\n"
    "\n"
    "Exit: 0, 1 a kernel failed, 2 bad usage.\n";

void complain(const char *format, ...)
{
    va_list list;
    fputs("bench: ", stderr);
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
}

bool has_name(const names *all, const char *name)
{
    for (int i = 0; i < all->count; i++)
        if (strcmp(all->at[i], name) == 0)
            return true;
    return false;
}

/* Shapes
 * ------
 */
static int time_shape(bench *b, const bench_shape *shape)
{
    tensorfile_error error;
    b->shape = *shape;
    int code = 0;
    if (!bench_make(shape, &b->problem, &error)) {
        complain("%s %s: %s", shape->op, shape->name, error.text);
        code = EXIT_BAD;
    } else if (is_on_device(b) &&
               !rotation_make(&b->problem, b->o.device, (int64_t)(b->o.rotate_mib * 0x1p20), &b->rotation, &error)) {
        complain("%s %s: %s", shape->op, shape->name, error.text);
        code = 1;
    } else if (!add_rows(b)) {
        code = EXIT_BAD;
    } else if (!time_rows(b)) {
        code = 1;
    } else {
        print_rows(b);
    }
    free_rows(b);
    rotation_free(&b->rotation);
    bench_free(&b->problem);
    return code;
}

/* No --op: those of the shapes and kernels that are named, else all. */
static bool wants_op(const bench *b, const char *op)
{
    if (b->o.ops.count > 0)
        return has_name(&b->o.ops, op);
    if (b->o.kernels.count == 0 || has_name(&b->o.kernels, "all"))
        return true;
    etalon_kernel_info info;
    for (int i = 0; etalon_kernel_get(b->ctx[0], i, &info) == ETALON_OK; i++)
        if (strcmp(info.op, op) == 0 && has_name(&b->o.kernels, info.name))
            return true;
    return false;
}

static int time_named_shapes(bench *b, const char *op, int *found)
{
    for (int i = 0; i < b->o.shapes.count; i++) {
        bench_shape      shape;
        tensorfile_error error;
        const char      *name = b->o.shapes.at[i];
        if (!bench_find_shape(op, name, &shape, &error)) {
            if (b->o.ops.count != 1)
                continue; /* another operation's */
            complain("%s", error.text);
            return EXIT_BAD;
        }
        (*found)++;
        const int code = time_shape(b, &shape);
        if (code != 0)
            return code;
    }
    return 0;
}

static int time_default_shapes(bench *b, const char *op)
{
    for (const bench_shape *s = bench_shapes; s->name != NULL; s++) {
        if (strcmp(s->op, op) != 0 || s->large)
            continue;
        const int code = time_shape(b, s);
        if (code != 0)
            return code;
    }
    return 0;
}

static const char *const timed_ops[] = { "pa_mtp", "fmha_varlen", "mqa_logits", "mqa_logits_paged" };

enum { TIMED_OPS = sizeof timed_ops / sizeof timed_ops[0] };

static int time_all(bench *b)
{
    int found = 0;
    for (int i = 0; i < TIMED_OPS; i++) {
        if (!wants_op(b, timed_ops[i]))
            continue;
        const int code =
            b->o.shapes.count > 0 ? time_named_shapes(b, timed_ops[i], &found) : time_default_shapes(b, timed_ops[i]);
        if (code != 0)
            return code;
    }
    if (found < b->o.shapes.count) {
        complain("--shape: a name is unknown to the operations that are timed; see --list");
        return EXIT_BAD;
    }
    return 0;
}

static int list(const bench *b)
{
    for (const bench_shape *s = bench_shapes; s->name != NULL; s++)
        printf("shape   %-16s  %-22s  %-7s  %s%s%s%s%s%s%s\n", s->op, s->name, s->large ? "large" : "default", s->text,
               strcmp(s->pattern, "random") == 0 ? "" : ",pattern=",
               strcmp(s->pattern, "random") == 0 ? "" : s->pattern, s->queries == NULL ? "" : "; queries ",
               s->queries == NULL ? "" : s->queries, s->keys == NULL ? "" : "; keys ", s->keys == NULL ? "" : s->keys);
    etalon_kernel_info info;
    for (int i = 0; etalon_kernel_get(b->ctx[0], i, &info) == ETALON_OK; i++)
        printf("kernel  %-16s  %-22s  %-7s  %s\n", info.op, info.name, info.available ? "yes" : "no", info.needs);
    return 0;
}

/* Options
 * -------
 */
static bool add_name(names *all, const char *name)
{
    if (all->count == MOST_NAMES)
        complain("%s: more than %d", name, MOST_NAMES);
    else
        all->at[all->count++] = name;
    return all->count <= MOST_NAMES && all->at[all->count - 1] == name;
}

static bool read_number(const char *option, const char *text, double low, double high, double *x)
{
    char *end;
    *x = strtod(text, &end);
    if (end != text && *end == '\0' && *x >= low && *x <= high)
        return true;
    complain("%s: \"%s\", expected a number from %g to %g", option, text, low, high);
    return false;
}

static bool read_count(const char *option, const char *text, int high, int *x)
{
    double     number;
    const bool ok = read_number(option, text, 1, high, &number);
    *x = ok ? (int)number : 0;
    if (ok && *x != number)
        complain("%s: \"%s\", expected a whole number", option, text);
    return ok && *x == number;
}

static bool read_threads(options *o, char *text)
{
    o->thread_counts = 0;
    for (char *one; (one = strsep(&text, ",")) != NULL;) {
        if (o->thread_counts == MOST_THREAD_COUNTS) {
            complain("--threads: more than %d numbers", MOST_THREAD_COUNTS);
            return false;
        }
        if (!read_count("--threads", one, 1024, &o->threads[o->thread_counts++]))
            return false;
    }
    return true;
}

static bool read_options(int argc, char **argv, options *o, bool *helped)
{
    enum {
        OP = 1,
        SHAPE,
        KERNEL,
        THREADS,
        REPEAT,
        SECONDS,
        REF_SECONDS,
        GEMM,
        KEEP,
        JSON,
        LIST,
        DEVICE,
        STREAM,
        ROTATE,
        HELP
    };
    double                     number;
    static const struct option all[] = {
        { "op", required_argument, NULL, OP },
        { "shape", required_argument, NULL, SHAPE },
        { "kernel", required_argument, NULL, KERNEL },
        { "threads", required_argument, NULL, THREADS },
        { "repeat", required_argument, NULL, REPEAT },
        { "seconds", required_argument, NULL, SECONDS },
        { "ref-seconds", required_argument, NULL, REF_SECONDS },
        { "gemm", required_argument, NULL, GEMM },
        { "keep-openblas-env", no_argument, NULL, KEEP },
        { "json", no_argument, NULL, JSON },
        { "list", no_argument, NULL, LIST },
        { "device", required_argument, NULL, DEVICE },
        { "stream", no_argument, NULL, STREAM },
        { "rotate", required_argument, NULL, ROTATE },
        { "help", no_argument, NULL, HELP },
        { 0 },
    };
    bool ok = true;
    for (int c; ok && (c = getopt_long(argc, argv, "", all, NULL)) != -1;) {
        switch (c) {
        case OP:
            ok = add_name(&o->ops, optarg);
            break;
        case SHAPE:
            ok = add_name(&o->shapes, optarg);
            break;
        case KERNEL:
            ok = add_name(&o->kernels, optarg);
            break;
        case THREADS:
            ok = read_threads(o, optarg);
            break;
        case REPEAT:
            ok = read_count("--repeat", optarg, 1000000, &o->repeat);
            break;
        case SECONDS:
            ok = read_number("--seconds", optarg, 0, 1e6, &o->seconds);
            break;
        case REF_SECONDS:
            ok = read_number("--ref-seconds", optarg, 0, 1e9, &o->ref_seconds);
            break;
        case GEMM:
            ok = read_count("--gemm", optarg, 16384, &o->gemm_size);
            break;
        case KEEP:
            o->keep_openblas_env = true;
            break;
        case JSON:
            o->json = true;
            break;
        case LIST:
            o->list = true;
            break;
        case DEVICE:
            ok = read_number("--device", optarg, 0, INT32_MAX, &number);
            o->device = ok ? (int)number : ETALON_HOST;
            break;
        case STREAM:
            o->stream = true;
            break;
        case ROTATE:
            ok = read_number("--rotate", optarg, 0, 1e6, &o->rotate_mib);
            break;
        case HELP:
            *helped = true;
            break;
        default:
            ok = false;
        }
    }
    if (ok && optind < argc)
        complain("\"%s\": expected options only", argv[optind]);
    if (ok && o->device == ETALON_HOST && o->stream)
        complain("--stream: expected --device beside it");
    if (ok && o->device != ETALON_HOST && o->thread_counts > 1)
        complain("--threads: of a device's rows there is but one time");
    return ok && optind == argc && (o->device != ETALON_HOST ? o->thread_counts <= 1 : !o->stream);
}

static bool is_kernel(const bench *b, const char *name)
{
    etalon_kernel_info info;
    for (int i = 0; etalon_kernel_get(b->ctx[0], i, &info) == ETALON_OK; i++)
        if (strcmp(info.name, name) == 0)
            return true;
    return strcmp(name, "all") == 0;
}

static bool check_names(const bench *b)
{
    for (int i = 0; i < b->o.ops.count; i++) {
        bool known = false;
        for (int j = 0; j < TIMED_OPS; j++)
            known = known || strcmp(b->o.ops.at[i], timed_ops[j]) == 0;
        if (!known) {
            complain("--op: \"%s\", expected pa_mtp, fmha_varlen, mqa_logits or mqa_logits_paged", b->o.ops.at[i]);
            return false;
        }
    }
    for (int i = 0; i < b->o.kernels.count; i++)
        if (!is_kernel(b, b->o.kernels.at[i])) {
            complain("--kernel: \"%s\" is no kernel; see --list", b->o.kernels.at[i]);
            return false;
        }
    for (int i = 0; i < b->o.shapes.count; i++)
        if (strchr(b->o.shapes.at[i], '=') != NULL && b->o.ops.count != 1) {
            complain("--shape %s: expected one --op beside it", b->o.shapes.at[i]);
            return false;
        }
    return true;
}

/* Threads of two libraries share the cores here, OpenMP's and OpenBLAS's. Those that wait must sleep, or they take time
 * from the others. OpenMP libraries read the environment before main, so the program starts again with what it wants.
 */
static void start_again(char **argv)
{
    if (getenv("OMP_WAIT_POLICY") != NULL)
        return;
    setenv("OMP_WAIT_POLICY", "passive", 1);
    setenv("OPENBLAS_THREAD_TIMEOUT", "14", 0); /* sleep after 2^14 cycles */
    execv("/proc/self/exe", argv);              /* where that fails: as the libraries like */
    unsetenv("OMP_WAIT_POLICY");
}

static bool create_contexts(bench *b)
{
#ifndef _OPENMP
    if (b->o.thread_counts > 1 || b->o.threads[0] > 1) {
        complain("--threads: this build has no OpenMP, and so one thread");
        return false;
    }
#endif
    for (int t = 0; t < b->o.thread_counts; t++) {
        etalon_context_options want = ETALON_CONTEXT_OPTIONS_INIT;
        want.threads = b->o.threads[t];
        want.device = b->o.device;
        if (etalon_context_create(&want, &b->ctx[t]) != ETALON_OK) {
            complain("%s", etalon_last_error());
            return false;
        }
    }
    return true;
}

static bool check_decoders(void)
{
    for (int isa = 0; isa < ISA_COUNT; isa++)
        if (yardstick_isa_here((yardstick_isa)isa) && !yardstick_decode_is_exact((yardstick_isa)isa)) {
            complain("the %s decoder of the yardstick is wrong", yardstick_isa_name((yardstick_isa)isa));
            return false;
        }
    return true;
}

static void open_gemm(bench *b)
{
    if (!b->o.keep_openblas_env)
        unsetenv("OPENBLAS_CORETYPE"); /* it picks kernels of another CPU */
    yardstick_gemm_open(&b->gemm, b->o.gemm_size);
    for (int t = 0; b->gemm.library != NULL && t < b->o.thread_counts; t++)
        yardstick_gemm_run(&b->gemm, b->o.threads[t]);
    if (b->gemm.library == NULL && b->o.json)
        complain("no ratio to sgemm: %s", b->gemm.what);
}

/* Each thread onto a CPU of its own, while there are enough: one that was asleep may else wake beside another, and two
 * threads then take turns on one CPU. OpenBLAS's threads are free to run where OpenMP's sleep.
 */
static void bind_threads(bench *b)
{
#if defined(__linux__) && defined(_OPENMP)
    cpu_set_t all;
    int       most = 1;
    for (int t = 0; t < b->o.thread_counts; t++)
        most = b->o.threads[t] > most ? b->o.threads[t] : most;
    if (sched_getaffinity(0, sizeof all, &all) != 0 || CPU_COUNT(&all) < most)
        return;
    bool bound = true;
#pragma omp parallel num_threads(most) reduction(&& : bound)
    {
        cpu_set_t one;
        int       cpu = 0;
        for (int before = omp_get_thread_num(); before > 0 || !CPU_ISSET(cpu, &all); cpu++)
            before -= CPU_ISSET(cpu, &all) != 0;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        bound = sched_setaffinity(0, sizeof one, &one) == 0;
    }
    b->bound = bound;
#else
    (void)b;
#endif
}

/* A device has no yardsticks of its own here. */
static bool open_stream(bench *b)
{
    snprintf(b->gemm.what, sizeof b->gemm.what, "not beside a device");
    if (!b->o.stream || device_stream_open(b->ctx[0], &b->stream))
        return true;
    complain("--stream: %s: %d", b->stream.failed, b->stream.code);
    return false;
}

static int act(bench *b)
{
    if (b->o.thread_counts == 0)
        b->o.threads[b->o.thread_counts++] = is_on_device(b) ? 1 : yardstick_most_threads();
    if (!create_contexts(b) || !check_names(b) || !check_decoders())
        return EXIT_BAD;
    if (b->o.list)
        return list(b);
    if (is_on_device(b) && !open_stream(b))
        return 1;
    if (!is_on_device(b)) {
        open_gemm(b);
        note_memory(b);
        bind_threads(b);
    }
    const int code = time_all(b);
    device_stream_close(&b->stream);
    yardstick_gemm_close(&b->gemm);
    return code;
}

int main(int argc, char **argv)
{
    static bench b = { .o = { .repeat = 7,
                              .gemm_size = 1024,
                              .seconds = 1.0,
                              .ref_seconds = 20.0,
                              .device = ETALON_HOST,
                              .rotate_mib = 512.0 } };
    bool         helped = false;
    int          code = 0;
    start_again(argv);
    if (!read_options(argc, argv, &b.o, &helped)) {
        fputs("Try \"bench --help\".\n", stderr);
        return EXIT_BAD;
    }
    if (helped)
        fputs(help, stdout);
    else
        code = act(&b);
    for (int t = 0; t < MOST_THREAD_COUNTS; t++)
        etalon_context_destroy(b.ctx[t]);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        complain("standard output: %s", strerror(errno));
        return EXIT_BAD;
    }
    return code;
}
