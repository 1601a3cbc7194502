/* etalon: checks, runs, compares and generates problems of FP8 attention operations. */
#include "program.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

typedef struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} command;

static const command commands[] = {
    { "check", cmd_check,
      "etalon check [--kernel STEM|all] [--op OP] [--set KEY=VALUE]... [--tolerance fp32|fp8] [--sample N [--seed S]]\n"
      "             [--json] [--threads N] [--device N] FILE...\n"
      "\n"
      "Computes each file's operation and compares with its expected_* tensors. A result of another kernel in the file "
      "(out,\n"
      "lse, logits) is compared with what was computed; its line reads (file).\n"
      "\n"
      "  --kernel STEM     the row of the kernel table to run, or all\n"
      "  --op OP           the operation, where the file's metadata does not name it\n"
      "  --set KEY=VALUE   a scalar in place of the file's metadata: causal=0, softmax_scale=0.1, and of the _model "
      "rows\n"
      "                    p_scale=fixed|tile|block32, tile_keys=128, p_terms=1|2; of\n"
      "                    attention out_dtype=f32|bf16\n"
      "  --tolerance T     class of the bounds for results in the file: fp8 (default) or fp32\n"
      "  --sample N        verifies N outputs instead of all: rows (token, head); of mqa_logits, elements. Computed by "
      "the\n"
      "                    reference, unless --kernel names a row; reads no more of a file than they depend on\n"
      "  --seed S          which ones (default 1)\n"
      "  --json            one JSON object a line\n"
      "  --threads N       threads, 0 for as many as there are\n"
      "  --device N        GPU, by OpenMP's number: its rows serve, too\n"
      "\n"
      "Exit: 0 all pass, 1 something differs, 2 bad usage or input.\n" },
    { "run", cmd_run,
      "etalon run [--kernel STEM] [--op OP] [--set KEY=VALUE]... [--threads N] [--device N] FILE -o OUT\n"
      "\n"
      "Computes the file's operation and writes its outputs with the file's metadata as safetensors.\n"
      "  --device N        GPU, by OpenMP's number: its rows serve, too\n" },
    { "compare", cmd_compare,
      "etalon compare [--got NAME] [--ref NAME] [--tolerance-abs X] [--tolerance-rel Y] [--json] A B\n"
      "\n"
      "Compares tensors of A with those of the same name in B, or one pair of names. Equal means equal values, NaN at "
      "the\n"
      "same places; with tolerances, |a - b| <= X + Y |b|.\n"
      "\n"
      "Exit: 0 all equal, 1 something differs, 2 bad usage or input.\n" },
    { "gen", cmd_gen,
      "etalon gen OP [--shape KEY=VALUE[,KEY=VALUE]...] [--pattern NAME] [--seed N] [--expected] [--threads N] -o "
      "FILE\n"
      "\n"
      "Writes a problem of the operation, the same bytes for the same arguments on any machine.\n"
      "\n"
      "  --shape ...       extents and dtypes; --shape list prints the keys and their defaults\n"
      "  --pattern NAME    what the numbers look like (default random); --pattern list prints the patterns\n"
      "  --seed N          default 1\n"
      "  --expected        adds expected_* tensors, computed by the reference\n" },
    { "list", cmd_list,
      "etalon list [--json] [--objects] [--threads N] [--device N]\n"
      "\n"
      "Prints the rows of all kernel tables: what each needs, and whether this machine has it, or why not.\n"
      "  --device N        GPU, by OpenMP's number: a row of it is available once it gave the known answers there\n"
      "  --objects         instead, the kernels for GPUs in the library: bytes, registers, LDS, scratch\n" },
    { "explain", cmd_explain,
      "etalon explain [--kernel STEM] [--op OP] [--set KEY=VALUE]... [--threads N] [--device N] OP|FILE\n"
      "\n"
      "Prints for each row of the kernel table whether it serves the file's call, and why not. For an operation, the "
      "call is\n"
      "the default problem of etalon gen.\n"
      "  --device N        GPU, by OpenMP's number: its rows serve, too\n" },
};

enum { COMMANDS = sizeof commands / sizeof commands[0] };

/* Messages
 * --------
 */
void program_error(const char *subject, const char *format, ...)
{
    va_list list;
    program_progress_end();
    fputs("etalon: ", stderr);
    if (subject != NULL)
        fprintf(stderr, "%s: ", subject);
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
}

bool program_add_setting(program_settings *settings, const char *text)
{
    enum { MOST = sizeof settings->text / sizeof settings->text[0] };
    if (settings->count == MOST) {
        program_error(NULL, "--set %s: given more than %d times", text, MOST);
        return false;
    }
    settings->text[settings->count++] = text;
    return true;
}

bool program_bind(const tensorfile *file, const oracle_op *op, const program_settings *settings,
                  oracle_problem *problem, tensorfile_error *error)
{
    if (!oracle_bind(file, op, problem, error))
        return false;
    for (int i = 0; i < settings->count; i++)
        if (!oracle_set(problem, settings->text[i], error))
            return false;
    return true;
}

static const command *find_command(const char *name)
{
    for (int i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

int program_help(const char *name)
{
    printf("usage: %s", find_command(name)->help);
    return 0;
}

int program_bad_usage(const char *name)
{
    fprintf(stderr, "Try \"etalon %s --help\".\n", name);
    return EXIT_BAD;
}

/* text NULL: *number stays. */
static bool read_number(const char *option, const char *text, int32_t *number)
{
    char *end = NULL;
    if (text == NULL)
        return true;
    errno = 0;
    const long value = strtol(text, &end, 10);
    *number = (int32_t)value;
    if (end != text && *end == '\0' && errno == 0 && value == *number)
        return true;
    program_error(NULL, "%s: \"%s\", expected a number", option, text);
    return false;
}

etalon_context *program_context(const char *threads, const char *device)
{
    etalon_context_options options = ETALON_CONTEXT_OPTIONS_INIT;
    etalon_context        *ctx;
    if (!read_number("--threads", threads, &options.threads) || !read_number("--device", device, &options.device))
        return NULL;
    if (device != NULL && options.device < 0) {
        program_error(NULL, "--device: %" PRId32 ", expected 0 or more", options.device);
        return NULL;
    }
    if (etalon_context_create(&options, &ctx) == ETALON_OK)
        return ctx;
    program_error(NULL, "%s", etalon_last_error());
    return NULL;
}

bool program_seed(const char *text, uint64_t *seed)
{
    char *end;
    errno = 0;
    *seed = strtoull(text, &end, 0);
    if (end != text && *end == '\0' && errno == 0 && strchr(text, '-') == NULL)
        return true;
    program_error(NULL, "--seed: \"%s\", expected a number from 0 to 2^64 - 1", text);
    return false;
}

bool program_op(const char *name, const oracle_op **op)
{
    tensorfile_error error;
    *op = NULL;
    if (name == NULL || (*op = oracle_find_op(name, &error)) != NULL)
        return true;
    program_error(NULL, "%s", error.text);
    return false;
}

/* Progress
 * --------
 * A timer writes the text once a second. Its handler may interrupt anything, on any thread, so it calls write() and
 * nothing else, and a new text goes into the slot that the handler does not look at.
 */
static struct {
    char                  text[2][256];
    volatile sig_atomic_t slot; /* -1: show nothing */
    volatile sig_atomic_t shown;
    int                   next;
    bool                  ticking;
} progress = { .slot = -1 };

static void show_progress(int signal_number)
{
    const int saved = errno, slot = progress.slot;
    (void)signal_number;
    if (slot >= 0 && write(STDERR_FILENO, progress.text[slot], strlen(progress.text[slot])) >= 0)
        progress.shown = 1;
    errno = saved;
}

static void start_timer(void)
{
    const struct sigaction action = { .sa_handler = show_progress, .sa_flags = SA_RESTART };
    const struct itimerval second = { .it_interval = { .tv_sec = 1 }, .it_value = { .tv_sec = 1 } };
    progress.ticking = sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &second, NULL) == 0;
}

void program_progress(const char *format, ...)
{
    if (!isatty(STDERR_FILENO))
        return;
    char   *text = progress.text[progress.next];
    va_list list;
    va_start(list, format);
    const int length = snprintf(text, sizeof progress.text[0], "\r\033[K");
    vsnprintf(text + length, sizeof progress.text[0] - (size_t)length, format, list);
    va_end(list);
    progress.slot = progress.next;
    progress.next = 1 - progress.next;
    if (!progress.ticking)
        start_timer();
}

void program_progress_end(void)
{
    static const char clear[] = "\r\033[K";
    progress.slot = -1;
    if (progress.shown && write(STDERR_FILENO, clear, sizeof clear - 1) >= 0)
        progress.shown = 0;
}

/* The program
 * -----------
 */
static void print_usage(FILE *to)
{
    fputs("usage: etalon COMMAND ...\n"
          "\n"
          "  check FILE...     compute, compare with what the file expects or what a kernel wrote\n"
          "  run FILE -o OUT   compute, write the outputs\n"
          "  compare A B       compare the tensors of two files\n"
          "  gen OP -o FILE    write a problem: random, or one on which kernels were wrong\n"
          "  list              rows of all kernel tables\n"
          "  explain OP|FILE   which row serves a call, and why not the others\n"
          "\n"
          "etalon COMMAND --help tells more; etalon --version prints the version.\n",
          to);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_usage(stderr);
        return EXIT_BAD;
    }
    if (strcmp(argv[1], "--help") == 0) {
        print_usage(stdout);
        return 0;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("etalon %s\n", etalon_version());
        return 0;
    }
    const command *c = find_command(argv[1]);
    if (c == NULL) {
        program_error(NULL, "no command is named \"%s\"", argv[1]);
        print_usage(stderr);
        return EXIT_BAD;
    }
    argv[1] = argv[0]; /* getopt's messages start with it */
    const int code = c->run(argc - 1, argv + 1);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        program_error("standard output", "%s", strerror(errno));
        return EXIT_BAD;
    }
    return code;
}
