/* xcheck: every row of every gate against every yardstick, on cases drawn from a seed.
 *
 *   xcheck [--op OP] [--kernel STEM|all|broken] [--seed S] [--case N | --cases N] [--effort check|long|soak]
 *          [--list] [--json]
 *
 * Exit status: 0, all rows passed (and, of the broken kernels, all were caught); 1, not so; 2, wrong options; 3, the
 * harness itself failed.
 *
 * Cases run in a child process, one after another, so that a kernel that faults costs one case: the parent notes which
 * kernel it was and starts a new child at the next one. The parent itself never enters an OpenMP region, after which a
 * fork would have no threads. In the child a case is a test of Check without a fork, so that checks may leave it from
 * anywhere. */
#include "xcheck.h"

#include "context.h"
#include "gate.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_PASS, EXIT_WRONG, EXIT_USAGE, EXIT_BROKEN };

/* Of a child that ended itself. */
enum { CHILD_DONE, CHILD_FAULT = 40, CHILD_HARNESS };

enum { SECONDS_A_CASE = 300 };

typedef struct options {
    const char   *op, *kernel;
    uint64_t      seed;
    int64_t       one, cases; /* one: -1: all */
    xcheck_effort effort;
    bool          list, json;
} options;

/* What children tell their parent. */
typedef struct tally {
    int64_t passed, refused, failed, first_failed;
    char    reason[160]; /* of the latest refusal */
    char    caught_by[32], message[400];
} tally;

typedef struct shared {
    int64_t       number;  /* the case */
    int           kernel;  /* the one that runs, or that comes next */
    bool          running; /* a kernel, and not the harness */
    char          stage[32], message[400];
    tally         of[XCHECK_KERNELS];
    xcheck_kernel kernels[XCHECK_KERNELS];
    int           count;
} shared;

typedef struct session {
    options        o;
    xcheck_kernel *kernels; /* shared->kernels */
    int            count;
    bool           named; /* one kernel by its name: reports of broken ones are shown, too */
    shared        *shared;
    /* of the child */
    xcheck_case       c;
    xcheck_yardsticks y;
    xcheck_trial      trial;
    etalon_context   *yard_ctx;
    const oracle_op  *op;
} session;

static session here;

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

/* Rows compute on FP8 units if they are a `_model`, or if their stem has a token that says so. */
static xcheck_kernel row_kernel(const etalon_kernel_info *info)
{
    tensorfile_error error;
    const size_t     length = strlen(info->name);
    const bool       model = length > 6 && strcmp(info->name + length - 6, "_model") == 0;
    const bool       logits = strcmp(info->op, "mqa_logits") == 0;
    const bool       fp8 = strstr(info->name, "_e4m3_") != NULL;
    return (xcheck_kernel){ .op = oracle_find_op(info->op, &error),
                            .name = info->name,
                            .class = model || fp8 ? BOUND_FP8 : BOUND_FP32,
                            .model = model && !logits };
}

/* A row that this context lacks is told, and not run. */
static bool is_here(const etalon_kernel_info *info)
{
    return info->available != 0 || strcmp(info->needs, gate_needs(NEEDS_NAME)) == 0;
}

static etalon_status create_context(int threads, etalon_context **ctx)
{
    etalon_context_options with = ETALON_CONTEXT_OPTIONS_INIT;
    with.threads = threads;
    return etalon_context_create(&with, ctx);
}

static void add_rows(session *s)
{
    etalon_context    *ctx;
    etalon_kernel_info info;
    if (create_context(0, &ctx) != ETALON_OK) {
        complain("%s", etalon_last_error());
        _exit(EXIT_USAGE);
    }
    for (int i = 0; etalon_kernel_get(ctx, i, &info) == ETALON_OK && s->shared->count < XCHECK_KERNELS; i++) {
        if (is_here(&info))
            s->kernels[s->shared->count++] = row_kernel(&info);
        else if (!s->o.json)
            printf("# skip %s: not available here (needs %s)\n", info.name, info.needs);
    }
    etalon_context_destroy(ctx);
    fflush(stdout);
    _exit(EXIT_PASS);
}

/* In a child: what a device's runtime starts in a process does not outlive a fork. Names are static strings. */
static bool ask_for_rows(session *s)
{
    int         status;
    const pid_t pid = (fflush(stdout), fork());
    if (pid == 0)
        add_rows(s);
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_PASS;
}

static bool wanted(const options *o, const xcheck_kernel *k)
{
    if (o->op != NULL && strcmp(o->op, k->op->name) != 0)
        return false;
    if (strcmp(o->kernel, "all") == 0)
        return k->run == NULL;
    if (strcmp(o->kernel, "broken") == 0)
        return k->run != NULL;
    return strcmp(o->kernel, k->name) == 0;
}

static bool choose_kernels(session *s)
{
    int kept = 0;
    s->count = broken_list(s->kernels, s->shared->count);
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
    return k->run != NULL && !k->sound && !s->named && s->shared->of[kernel].failed > 0;
}

/* Children
 * -------- */

static void note_refusal(tally *t)
{
    t->refused++;
    snprintf(t->reason, sizeof t->reason, "%s", etalon_last_error());
}

static void try_kernel(session *s, int kernel)
{
    s->shared->kernel = kernel;
    s->trial.kernel = &s->kernels[kernel];
    s->trial.quiet = s->kernels[kernel].run != NULL && !s->named && !s->kernels[kernel].sound;
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

static void open_contexts(session *s)
{
    static const int threads[XCHECK_CONTEXTS] = { 1, 2, 5 };
    for (int i = 0; i < XCHECK_CONTEXTS; i++)
        if (create_context(threads[i], &s->trial.ctx[i]) != ETALON_OK)
            _exit(CHILD_HARNESS);
    if (etalon_context_create(NULL, &s->yard_ctx) != ETALON_OK)
        _exit(CHILD_HARNESS);
    s->yard_ctx->have = 0; /* yardsticks come from rows that need nothing, so that no other row measures itself */
    s->trial.c = &s->c;
    s->trial.y = &s->y;
    s->trial.effort = s->o.effort;
    s->trial.stage = s->shared->stage;
}

static void fail_kernel(session *s);

/* Never returns. */
static void child(session *s, int64_t last)
{
    catch_faults();
    open_contexts(s);
    while (s->shared->number < last) {
        alarm(SECONDS_A_CASE);
        if (run_case(s)) {
            s->shared->number++;
            s->shared->kernel = 0;
        } else if (!s->shared->running) {
            fflush(stdout);
            _exit(CHILD_HARNESS);
        } else {
            fail_kernel(s);
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
    printf("%s, case %" PRId64 ", yardstick %s: %s\n", k->name, sh->number, sh->stage, sh->message);
    printf("  replay: ./xcheck --op %s --kernel %s --seed %" PRIu64 " --case %" PRId64, k->op->name, k->name, s->o.seed,
           sh->number);
    if (s->o.effort != XCHECK_CHECK)
        printf(" --effort %s", efforts[s->o.effort]);
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
    if (k->run == NULL || k->sound || s->named)
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

/* All cases of one operation. False: the harness failed. */
static bool run_op(session *s, const oracle_op *op)
{
    const int64_t first = s->o.one >= 0 ? s->o.one : 0, last = s->o.one >= 0 ? s->o.one + 1 : s->o.cases;
    s->op = op;
    s->shared->number = first;
    s->shared->kernel = 0;
    for (;;) {
        int         status;
        const pid_t pid = (fflush(stdout), fork());
        if (pid == 0)
            child(s, last);
        if (pid < 0 || waitpid(pid, &status, 0) != pid)
            return false;
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
    if (k->run != NULL && !k->sound)
        return t->failed > 0;
    return t->failed == 0 && (t->passed > 0 || s->o.one >= 0);
}

static void print_result(const session *s, int i)
{
    const xcheck_kernel *k = &s->kernels[i];
    const tally         *t = &s->shared->of[i];
    const bool           broken = k->run != NULL && !k->sound;
    if (s->o.json) {
        printf("{\"kernel\":");
        print_text(k->name);
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
        printf("%s: %" PRId64 " passed, %" PRId64 " refused, %" PRId64 " failed%s%s%s\n", k->name, t->passed,
               t->refused, t->failed, t->refused > 0 ? "; refuses: " : "", t->refused > 0 ? t->reason : "",
               t->passed + t->failed == 0 ? ": THE ROW WAS NOT TESTED" : "");
    }
}

static void list_kernels(const session *s)
{
    for (int i = 0; i < s->count; i++)
        printf("%-12s  %-32s  %s  %s\n", s->kernels[i].op->name, s->kernels[i].name,
               s->kernels[i].class == BOUND_FP8 ? "fp8 " : "fp32",
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
    static const struct option names[] = { { "op", required_argument, NULL, 'o' },
                                           { "kernel", required_argument, NULL, 'k' },
                                           { "seed", required_argument, NULL, 's' },
                                           { "case", required_argument, NULL, 'c' },
                                           { "cases", required_argument, NULL, 'n' },
                                           { "effort", required_argument, NULL, 'e' },
                                           { "list", no_argument, NULL, 'l' },
                                           { "json", no_argument, NULL, 'j' },
                                           { 0 } };
    *o = (options){ .kernel = "all", .seed = cases_seed(), .one = -1 };
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
    if (o->cases == 0)
        o->cases = cases_of_effort[o->effort];
    return true;
}

int main(int argc, char **argv)
{
    session         *s = &here;
    tensorfile_error error;
    if (!read_options(argc, argv, &s->o))
        return EXIT_USAGE;
    if (s->o.op != NULL && oracle_find_op(s->o.op, &error) == NULL)
        return complain("%s", error.text);
    s->shared = cases_shared(sizeof *s->shared);
    s->kernels = s->shared->kernels;
    if (!ask_for_rows(s))
        return complain("no context can be created");
    if (!choose_kernels(s))
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
        if (any && !run_op(s, op))
            return EXIT_BROKEN;
    }
    bool good = true;
    for (int i = 0; i < s->count; i++) {
        print_result(s, i);
        good = good && is_good(s, i);
    }
    return good ? EXIT_PASS : EXIT_WRONG;
}
