/* xcheck: every row of every gate against every yardstick, on cases drawn from a seed.
 *
 *   xcheck [--op OP] [--kernel STEM|ARCH|all|broken] [--seed S] [--case N | --cases N] [--effort check|long|soak]
 *          [--device N [--route host|device|stream] [--largest WORK]] [--list] [--json]
 *
 * With --device the rows are those of that GPU (OpenMP's number), each by three routes: tensors on the host, which
 * the library copies; tensors on the device; and these with the call on a stream of the caller's. A simulated GPU takes
 * long over large cases: --largest leaves those of more multiplications out, unless --case names one. What a simulator
 * finds fails a case as a wrong number does. --kernel gfx950 takes the rows that no other architecture has.
 *
 * Exit status: 0, all rows passed (and, of the broken kernels, all were caught); 1, not so; 2, wrong options; 3, the
 * harness itself failed.
 *
 * Cases run in a child process, one after another, so that a kernel that faults costs one case: the parent notes which
 * kernel it was and starts a new child at the next one, as it does after a device has failed. A child is this program
 * started anew, for neither OpenMP's threads nor a device's runtime outlive a fork. In it a case is a test of Check
 * without a fork, so that checks may leave it from anywhere. */
#include "xcheck.h"

#include "context.h"
#include "gate.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_PASS, EXIT_WRONG, EXIT_USAGE, EXIT_BROKEN };

/* Of a child that ended itself. */
enum { CHILD_DONE, CHILD_FAULT = 40, CHILD_HARNESS, CHILD_LOST };

enum { SECONDS_A_CASE = 300, SECONDS_A_SIMULATED_CASE = 3000 };

/* Descriptors of the memory that parent and child share, and of what a simulator finds: by them a child knows itself. */
#define CHILD_VARIABLE "ETALON_XCHECK_CHILD"

typedef struct options {
    const char   *op, *kernel;
    uint64_t      seed;
    int64_t       one, cases; /* one: -1: all */
    xcheck_effort effort;
    int32_t       device;  /* OpenMP's number; ETALON_HOST: rows of the host alone */
    int           route;   /* -1: all */
    int64_t       largest; /* 0: any */
    bool          list, json;
} options;

static const char *const route_names[XCHECK_ROUTES] = { "host", "device", "stream" };

/* What children tell their parent. */
typedef struct tally {
    int64_t passed, refused, failed, first_failed;
    char    reason[160]; /* of the latest refusal */
    char    caught_by[32], message[400];
} tally;

typedef struct shared {
    oracle_id op;
    int64_t   number, last; /* the case, and the one after the last */
    int       kernel;       /* the one that runs, or that comes next */
    bool      running;      /* a kernel, and not the harness */
    int64_t   left_out;     /* cases that are too large */
    char      stage[32], message[400];
    tally     of[XCHECK_KERNELS];
} shared;

typedef struct session {
    options       o;
    xcheck_kernel kernels[XCHECK_KERNELS];
    int           count;
    bool          named; /* one kernel by its name: reports of broken ones are shown, too */
    bool          is_child;
    shared       *shared;
    /* of the child */
    etalon_context   *broken_ctx[XCHECK_KERNELS]; /* of a device's broken kernels */
    xcheck_case       c;
    xcheck_yardsticks y;
    xcheck_trial      trial;
    etalon_context   *ctx[XCHECK_CONTEXTS];
    etalon_context   *yard_ctx;
    const oracle_op  *op;
} session;

static session here = { .trial.report = -1 };

static int complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

static int complain(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fputs("xcheck: ", stderr);
    vfprintf(stderr, format, list);
    fputc('\n', stderr);
    va_end(list);
    return EXIT_USAGE;
}

/* Kernels
 * ------- */

static xcheck_kernel row_kernel(const etalon_kernel_info *info)
{
    tensorfile_error error;
    const char      *target = strrchr(info->name, '_');
    const bool       model = strcmp(target, "_model") == 0 && strncmp(info->op, "mqa_logits", 10) != 0;
    return (xcheck_kernel){ .op = oracle_find_op(info->op, &error),
                            .name = info->name,
                            .row = info->name,
                            .class = bound_class_of(info->name),
                            .model = model };
}

static const gate_row *find_row(const etalon_kernel_info *info)
{
    const gate_row *row = NULL;
    for (int i = 0; i < GATE_COUNT && row == NULL; i++)
        row = gate_find(gates[i], info->name);
    return row;
}

static etalon_status create_context(const session *s, int threads, etalon_context **ctx)
{
    etalon_context_options with = ETALON_CONTEXT_OPTIONS_INIT;
    with.threads = threads;
    if (s->o.device != ETALON_HOST)
        return xcheck_device_context(s->o.device, code_objects, ctx);
    return etalon_context_create(&with, ctx);
}

/* One kernel for a row of the host, one for each route where it is a device's. */
static void add_row(session *s, const etalon_kernel_info *info, const char *arch, bool of_device)
{
    for (int route = XCHECK_HOST; route < (of_device ? XCHECK_ROUTES : 1) && s->count < XCHECK_KERNELS; route++) {
        s->kernels[s->count] = row_kernel(info);
        s->kernels[s->count].of_device = of_device;
        s->kernels[s->count].arch = arch;
        s->kernels[s->count++].route = (xcheck_route)route;
    }
}

/* With a device, its rows: those that need what it brings. One that did not qualify there is called by its name all the
 * same. A row that this context lacks is told, and not run. */
static bool add_rows(session *s)
{
    etalon_context    *ctx;
    etalon_kernel_info info;
    if (create_context(s, 0, &ctx) != ETALON_OK)
        return complain("%s", etalon_last_error()), false;
    for (int i = 0; etalon_kernel_get(ctx, i, &info) == ETALON_OK; i++) {
        const gate_row *row = find_row(&info);
        const bool      of_device = (row->needs & NEEDS_DEVICE) != 0;
        const bool      lacking = (row->needs & ~ctx->have & ~NEEDS_NAME) != 0;
        if (!lacking && of_device == (s->o.device != ETALON_HOST))
            add_row(s, &info, features_arch(row->needs), of_device);
        else if (lacking && !s->o.json && !s->is_child)
            printf("# skip %s: not available here (needs %s)\n", info.name, info.needs);
    }
    etalon_context_destroy(ctx);
    return true;
}

static bool wanted(const options *o, const xcheck_kernel *k)
{
    if ((o->op != NULL && strcmp(o->op, k->op->name) != 0) || (o->route >= 0 && o->route != (int)k->route))
        return false;
    if (strcmp(o->kernel, "all") == 0)
        return k->what == NULL;
    if (strcmp(o->kernel, "broken") == 0)
        return k->what != NULL;
    return strcmp(o->kernel, k->name) == 0 || (k->arch != NULL && strcmp(o->kernel, k->arch) == 0);
}

static bool choose_kernels(session *s)
{
    int kept = 0;
    s->count = (s->o.device == ETALON_HOST ? broken_list : broken_device_list)(s->kernels, s->count);
    for (int i = 0; i < s->count; i++)
        if (wanted(&s->o, &s->kernels[i]))
            s->kernels[kept++] = s->kernels[i];
    s->count = kept;
    s->named = strcmp(s->o.kernel, "all") != 0 && strcmp(s->o.kernel, "broken") != 0;
    return kept > 0;
}

/* A broken kernel that was caught once has done its part, unless it is named. */
static bool is_through(const session *s, int kernel)
{
    const xcheck_kernel *k = &s->kernels[kernel];
    return k->what != NULL && !k->sound && !s->named && s->shared->of[kernel].failed > 0;
}

/* " on device tensors" */
static const char *route_text(const xcheck_kernel *k)
{
    static const char *const texts[XCHECK_ROUTES] = { " on host tensors", " on device tensors", " on a stream" };
    return k->of_device && k->what == NULL ? texts[k->route] : "";
}

/* Children
 * -------- */

static void note_refusal(tally *t)
{
    t->refused++;
    snprintf(t->reason, sizeof t->reason, "%s", etalon_last_error());
}

/* A context of the device for each broken kernel, and one for all its rows. */
static void use_context(session *s, int kernel)
{
    const xcheck_kernel *k = &s->kernels[kernel];
    if (k->stem != NULL && s->broken_ctx[kernel] == NULL)
        s->broken_ctx[kernel] = xcheck_broken_context(k, s->o.device, s->shared->message, sizeof s->shared->message);
    cases_require(k->stem == NULL || s->broken_ctx[kernel] != NULL, "%s", s->shared->message);
    s->trial.ctx[0] = k->stem == NULL ? s->ctx[0] : s->broken_ctx[kernel];
}

static void try_kernel(session *s, int kernel)
{
    s->shared->kernel = kernel;
    s->trial.kernel = &s->kernels[kernel];
    s->trial.quiet = s->kernels[kernel].what != NULL && !s->named && !s->kernels[kernel].sound;
    use_context(s, kernel);
    s->shared->running = true;
    if (xcheck_try(&s->trial) == ETALON_ERROR_UNSUPPORTED)
        note_refusal(&s->shared->of[kernel]);
    else
        s->shared->of[kernel].passed++;
    s->shared->running = false;
}

/* The test: the case of here.shared->number, from kernel here.shared->kernel on. */
START_TEST(one_case)
{
    session  *s = &here;
    const int from = s->shared->kernel;
    xcheck_yardsticks_end(&s->y);
    xcheck_case_free(&s->c);
    xcheck_case_make(&s->c, s->op, s->o.seed, s->shared->number, s->o.effort);
    if (s->o.one < 0 && s->o.largest > 0 && xcheck_case_work(&s->c) > (double)s->o.largest) {
        s->shared->left_out++;
        return;
    }
    xcheck_yardsticks_begin(&s->y, &s->c, s->yard_ctx, s->o.effort);
    for (int i = from; i < s->count; i++)
        if (s->kernels[i].op == s->op && !is_through(s, i))
            try_kernel(s, i);
}
END_TEST

/* Which tensor an address lies beside, or in. */
static void name_fault(const session *s, const unsigned char *at, char *text, size_t bytes)
{
    const long page = sysconf(_SC_PAGESIZE);
    for (int i = 0; i < s->c.memory.count; i++) {
        const cases_block *b = &s->c.memory.block[i];
        if (at < b->map || at >= b->map + b->map_bytes)
            continue;
        const bool before = at < b->data;
        snprintf(text, bytes, "touched the page without access %s %s: %td bytes %s", before ? "before" : "after",
                 xcheck_block_name(&s->c, i), before ? b->data - at : at - (b->data + b->bytes) + 1,
                 before ? "before its start" : "past its end");
        return;
    }
    for (int i = 0; i < 2; i++) {
        const unsigned char *map = s->c.wide[i];
        if (map == NULL || at < map || at >= map + s->c.wide_bytes[i])
            continue;
        snprintf(text, bytes, "touched what is not there %td bytes into a tensor of %zu, or wrote to it",
                 at - map - page, s->c.wide_bytes[i]);
        return;
    }
    snprintf(text, bytes, "touched address %p, which is in no tensor", (const void *)at);
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    name_fault(&here, info->si_addr, here.shared->message, sizeof here.shared->message);
    _exit(CHILD_FAULT);
}

static void catch_faults(void)
{
    struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
}

/* cases_verify() numbers the tensors; the reader knows their names. */
static void take_message(session *s, const char *text)
{
    int number, used = 0;
    if (sscanf(text, "tensor %d:%n", &number, &used) == 1 && used > 0 && number < s->c.memory.count)
        snprintf(s->shared->message, sizeof s->shared->message, "%s:%s", xcheck_block_name(&s->c, number), text + used);
    else
        snprintf(s->shared->message, sizeof s->shared->message, "%s", text);
}

static bool run_case(session *s)
{
    Suite *suite = suite_create("xcheck");
    TCase *tcase = tcase_create("xcheck");
    tcase_add_test(tcase, one_case);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_SILENT);
    const bool passed = srunner_ntests_failed(runner) == 0;
    if (!passed) {
        TestResult **failures = srunner_failures(runner);
        take_message(s, tr_msg(failures[0]));
        free(failures);
    }
    srunner_free(runner);
    return passed;
}

/* A device takes no threads of the host's. */
static void open_contexts(session *s)
{
    static const int threads[XCHECK_CONTEXTS] = { 1, 2, 5 };
    s->trial.contexts = s->o.device == ETALON_HOST ? XCHECK_CONTEXTS : 1;
    for (int i = 0; i < s->trial.contexts; i++) {
        if (create_context(s, threads[i], &s->ctx[i]) != ETALON_OK) {
            snprintf(s->shared->message, sizeof s->shared->message, "%s", etalon_last_error());
            _exit(CHILD_HARNESS);
        }
        s->trial.ctx[i] = s->ctx[i];
    }
    if (etalon_context_create(NULL, &s->yard_ctx) != ETALON_OK)
        _exit(CHILD_HARNESS);
    s->trial.device = s->o.device;
    s->yard_ctx->have = 0; /* yardsticks come from rows that need nothing, so that no other row measures itself */
    s->trial.c = &s->c;
    s->trial.y = &s->y;
    s->trial.effort = s->o.effort;
    s->trial.stage = s->shared->stage;
}

static void fail_kernel(session *s);

static int seconds_a_case(const session *s)
{
    return s->o.device != ETALON_HOST && getenv("ETALON_SIM_ARCH") != NULL ? SECONDS_A_SIMULATED_CASE : SECONDS_A_CASE;
}

/* Never returns. */
static void child(session *s)
{
    catch_faults();
    open_contexts(s);
    for (s->op = oracle_ops; s->op->id != s->shared->op;)
        s->op++;
    while (s->shared->number < s->shared->last) {
        alarm((unsigned)seconds_a_case(s));
        if (run_case(s)) {
            s->shared->number++;
            s->shared->kernel = 0;
        } else if (!s->shared->running) {
            fflush(stdout);
            _exit(CHILD_HARNESS);
        } else {
            fail_kernel(s);
            if (s->trial.lost)
                _exit(CHILD_LOST);
        }
    }
    fflush(stdout);
    _exit(CHILD_DONE);
}

/* Failures
 * -------- */

static void print_text(const char *text)
{
    putchar('"');
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            putchar('\\');
        putchar((unsigned char)*text < ' ' ? ' ' : *text);
    }
    putchar('"');
}

static void print_failure(const session *s, const xcheck_kernel *k)
{
    static const char *const efforts[] = { "check", "long", "soak" };
    const shared            *sh = s->shared;
    if (s->o.json) {
        printf("{\"failure\":");
        print_text(k->name);
        printf(",\"case\":%" PRId64 ",\"seed\":%" PRIu64 ",\"yardstick\":", sh->number, s->o.seed);
        print_text(sh->stage);
        printf(",\"message\":");
        print_text(sh->message);
        printf("}\n");
        return;
    }
    printf("%s%s, case %" PRId64 ", yardstick %s: %s\n", k->name, route_text(k), sh->number, sh->stage, sh->message);
    printf("  replay: ./xcheck --op %s --kernel %s --seed %" PRIu64 " --case %" PRId64, k->op->name, k->name, s->o.seed,
           sh->number);
    if (s->o.effort != XCHECK_CHECK)
        printf(" --effort %s", efforts[s->o.effort]);
    if (s->o.device != ETALON_HOST)
        printf(" --device %" PRId32 " --route %s", s->o.device, route_names[k->route]);
    putchar('\n');
}

/* Notes the failure of the kernel that runs, and moves on to the next. */
static void fail_kernel(session *s)
{
    shared              *sh = s->shared;
    tally               *t = &sh->of[sh->kernel];
    const xcheck_kernel *k = &s->kernels[sh->kernel];
    if (t->failed++ == 0) {
        t->first_failed = sh->number;
        snprintf(t->caught_by, sizeof t->caught_by, "%s", sh->stage);
        snprintf(t->message, sizeof t->message, "%s", sh->message);
    }
    if (k->what == NULL || k->sound || s->named)
        print_failure(s, k);
    fflush(stdout);
    sh->running = false;
    sh->kernel++;
}

/* What ended a child that did not end itself. */
static bool note_death(session *s, int status)
{
    shared *sh = s->shared;
    if (WIFEXITED(status) && WEXITSTATUS(status) == CHILD_FAULT)
        snprintf(sh->stage, sizeof sh->stage, "guard page");
    else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
        snprintf(sh->stage, sizeof sh->stage, "time");
        snprintf(sh->message, sizeof sh->message, "no result after %d seconds", SECONDS_A_CASE);
    } else if (WIFSIGNALED(status)) {
        snprintf(sh->stage, sizeof sh->stage, "crash");
        snprintf(sh->message, sizeof sh->message, "%s", strsignal(WTERMSIG(status)));
    } else {
        return false;
    }
    return sh->running;
}

/* This program again, with the same options; false: it cannot be started, or waited for. */
static bool run_child(char **argv, int *status)
{
    pid_t     pid;
    const int failed = (fflush(stdout), posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ));
    if (failed != 0)
        complain("no child: %s", strerror(failed));
    return failed == 0 && waitpid(pid, status, 0) == pid;
}

/* All cases of one operation. False: the harness failed. */
static bool run_op(session *s, const oracle_op *op, char **argv)
{
    s->shared->op = op->id;
    s->shared->number = s->o.one >= 0 ? s->o.one : 0;
    s->shared->last = s->o.one >= 0 ? s->o.one + 1 : s->o.cases;
    s->shared->kernel = 0;
    s->shared->left_out = 0;
    for (;;) {
        int status;
        if (!run_child(argv, &status))
            return false;
        if (WIFEXITED(status) && WEXITSTATUS(status) == CHILD_LOST)
            continue;
        if (WIFEXITED(status) && WEXITSTATUS(status) == CHILD_DONE)
            return true;
        if (!note_death(s, status)) {
            complain("%s, case %" PRId64 ": the harness failed: %s", op->name, s->shared->number, s->shared->message);
            return false;
        }
        fail_kernel(s);
    }
}

/* Results
 * ------- */

/* A row must have run and passed; a broken kernel must have been caught. A single case may be refused. */
static bool is_good(const session *s, int i)
{
    const xcheck_kernel *k = &s->kernels[i];
    const tally         *t = &s->shared->of[i];
    if (k->what != NULL && !k->sound)
        return t->failed > 0;
    return t->failed == 0 && (t->passed > 0 || s->o.one >= 0);
}

static void print_result(const session *s, int i)
{
    const xcheck_kernel *k = &s->kernels[i];
    const tally         *t = &s->shared->of[i];
    const bool           broken = k->what != NULL && !k->sound;
    if (s->o.json) {
        printf("{\"kernel\":");
        print_text(k->name);
        if (k->of_device)
            printf(",\"route\":\"%s\"", route_names[k->route]);
        printf(",\"op\":\"%s\",\"passed\":%" PRId64 ",\"refused\":%" PRId64 ",\"failed\":%" PRId64, k->op->name,
               t->passed, t->refused, t->failed);
        if (t->failed > 0) {
            printf(",\"first_failed\":%" PRId64 ",\"caught_by\":", t->first_failed);
            print_text(t->caught_by);
        }
        printf(",\"good\":%s}\n", is_good(s, i) ? "true" : "false");
    } else if (broken && t->failed > 0) {
        printf("%s: caught in case %" PRId64 " by %s: %s (%s)\n", k->name, t->first_failed, t->caught_by, k->what,
               t->message);
    } else if (broken) {
        printf("%s: NOT CAUGHT in %" PRId64 " cases: %s\n", k->name, t->passed, k->what);
    } else {
        printf("%s%s: %" PRId64 " passed, %" PRId64 " refused, %" PRId64 " failed%s%s%s\n", k->name, route_text(k),
               t->passed, t->refused, t->failed, t->refused > 0 ? "; refuses: " : "", t->refused > 0 ? t->reason : "",
               t->passed + t->failed == 0 ? ": THE ROW WAS NOT TESTED" : "");
    }
}

static void list_kernels(const session *s)
{
    for (int i = 0; i < s->count; i++)
        printf("%-12s  %-32s  %s  %s%s\n", s->kernels[i].op->name, s->kernels[i].name,
               s->kernels[i].class == BOUND_FP8 ? "fp8 " : "fp32", route_text(&s->kernels[i]),
               s->kernels[i].what == NULL ? "" : s->kernels[i].what);
}

/* Options
 * ------- */

static bool read_effort(const char *text, xcheck_effort *effort)
{
    static const char *const names[] = { "check", "long", "soak" };
    for (int i = 0; i < 3; i++)
        if (strcmp(text, names[i]) == 0) {
            *effort = (xcheck_effort)i;
            return true;
        }
    return false;
}

static bool read_route(const char *text, int *route)
{
    for (*route = 0; *route < XCHECK_ROUTES; ++*route)
        if (strcmp(text, route_names[*route]) == 0)
            return true;
    return false;
}

static bool read_number(const char *text, int64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoll(text, &end, 0);
    return errno == 0 && end != text && *end == '\0' && *number >= 0;
}

static bool read_option(options *o, int letter, const char *text)
{
    int64_t number;
    switch (letter) {
    case 'o':
        o->op = text;
        return true;
    case 'k':
        o->kernel = text;
        return true;
    case 'e':
        return read_effort(text, &o->effort);
    case 'l':
        return o->list = true;
    case 'j':
        return o->json = true;
    case 's':
        errno = 0;
        o->seed = strtoull(text, NULL, 0);
        return errno == 0 && *text >= '0' && *text <= '9';
    case 'd':
        if (!read_number(text, &number) || number > INT32_MAX)
            return false;
        o->device = (int32_t)number;
        return true;
    case 'r':
        return read_route(text, &o->route);
    case 'w':
        return read_number(text, &o->largest) && o->largest > 0;
    case 'c':
        return read_number(text, &o->one);
    case 'n':
        return read_number(text, &number) && (o->cases = number) > 0;
    }
    return false;
}

/* Cases an operation, by effort: some seconds, some minutes, some hours on one core. */
static const int64_t cases_of_effort[] = { 40, 1000, 20000 };

static bool read_options(int argc, char **argv, options *o)
{
    static const struct option names[] = {
        { "op", required_argument, NULL, 'o' },      { "kernel", required_argument, NULL, 'k' },
        { "seed", required_argument, NULL, 's' },    { "case", required_argument, NULL, 'c' },
        { "cases", required_argument, NULL, 'n' },   { "effort", required_argument, NULL, 'e' },
        { "device", required_argument, NULL, 'd' },  { "route", required_argument, NULL, 'r' },
        { "largest", required_argument, NULL, 'w' }, { "list", no_argument, NULL, 'l' },
        { "json", no_argument, NULL, 'j' },          { 0 }
    };
    *o = (options){ .kernel = "all", .seed = cases_seed(), .one = -1, .device = ETALON_HOST, .route = -1 };
    for (int letter; (letter = getopt_long(argc, argv, "", names, NULL)) != -1;)
        if (!read_option(o, letter, optarg)) {
            if (letter != '?')
                complain("%s: not a value of this option", optarg);
            return false;
        }
    if (optind < argc) {
        complain("%s: no argument is expected", argv[optind]);
        return false;
    }
    if (o->device == ETALON_HOST && (o->route > XCHECK_HOST || o->largest > 0)) {
        complain("--route and --largest are for --device N");
        return false;
    }
    if (o->cases == 0)
        o->cases = cases_of_effort[o->effort];
    return true;
}

/* Memory that a child finds by the descriptor; the second one is a file for what a simulator finds. */
static bool make_shared(session *s)
{
    const int fd = memfd_create("xcheck", 0), report = memfd_create("xcheck-report", 0);
    char      text[64];
    if (fd < 0 || report < 0 || ftruncate(fd, sizeof *s->shared) != 0)
        return false;
    snprintf(text, sizeof text, "%d,%d", fd, report);
    setenv(CHILD_VARIABLE, text, 1);
    snprintf(text, sizeof text, "/proc/self/fd/%d", report);
    setenv("ETALON_SIM_REPORT", text, 1);
    s->shared = mmap(NULL, sizeof *s->shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return s->shared != MAP_FAILED;
}

/* False: this is no child. */
static bool find_shared(session *s)
{
    const char *text = getenv(CHILD_VARIABLE);
    int         fd;
    if (text == NULL || sscanf(text, "%d,%d", &fd, &s->trial.report) != 2)
        return false;
    s->shared = mmap(NULL, sizeof *s->shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    s->trial.report_read = lseek(s->trial.report, 0, SEEK_END);
    return s->shared != MAP_FAILED;
}

int main(int argc, char **argv)
{
    session         *s = &here;
    tensorfile_error error;
    s->is_child = find_shared(s);
    if (!read_options(argc, argv, &s->o))
        return EXIT_USAGE;
    if (s->o.op != NULL && oracle_find_op(s->o.op, &error) == NULL)
        return complain("%s", error.text);
    if (!add_rows(s))
        return EXIT_USAGE;
    const bool any_kernel = choose_kernels(s);
    if (s->is_child)
        child(s);
    if (!make_shared(s))
        return complain("no memory for the children: %s", strerror(errno)), EXIT_BROKEN;
    if (!any_kernel)
        return complain("--kernel %s: there is no such kernel here; --list tells which there are", s->o.kernel);
    if (s->o.list) {
        list_kernels(s);
        return EXIT_PASS;
    }
    if (!s->o.json)
        printf("# seed %" PRIu64 "\n", s->o.seed);
    for (const oracle_op *op = oracle_ops; op->name != NULL; op++) {
        bool any = false;
        for (int i = 0; i < s->count; i++)
            any = any || s->kernels[i].op == op;
        if (any && !run_op(s, op, argv))
            return EXIT_BROKEN;
        if (any && !s->o.json && s->shared->left_out > 0)
            printf("# %s: %" PRId64 " of %" PRId64 " cases are of more than %" PRId64
                   " multiplications, and left out\n",
                   op->name, s->shared->left_out, s->o.cases, s->o.largest);
    }
    bool good = true;
    for (int i = 0; i < s->count; i++) {
        print_result(s, i);
        good = good && is_good(s, i);
    }
    return good ? EXIT_PASS : EXIT_WRONG;
}
