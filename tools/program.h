/* What the commands of the `etalon` program share. */
#ifndef ETALON_PROGRAM_H
#define ETALON_PROGRAM_H

#include "measure.h"
#include "oracle.h"

#include <jansson.h>

/* Exit codes beside 0. The graver one wins where a command sees several files. */
enum { EXIT_DIFFERS = 1, EXIT_BAD = 2 };

/* The commands: argv[0] is the command's name. */
int cmd_check(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_compare(int argc, char **argv);
int cmd_gen(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_explain(int argc, char **argv);

/* Texts of --set, "key=value". */
typedef struct program_settings {
    const char *text[16];
    int         count;
} program_settings;

/** Takes one more; false after an error. */
bool program_add_setting(program_settings *settings, const char *text);

/** oracle_bind(), and then the settings in place of the file's metadata. */
bool program_bind(const tensorfile *file, const oracle_op *op, const program_settings *settings,
                  oracle_problem *problem, tensorfile_error *error);

/** "etalon: SUBJECT: sentence" on stderr; subject may be NULL. */
void program_error(const char *subject, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Prints the command's help and returns 0. */
int program_help(const char *command);

/** After a bad option, about which getopt has complained: says where help is, returns EXIT_BAD. */
int program_bad_usage(const char *command);

/** A context with as many threads as the text says (NULL: as many as there are), and with the device of that number
 * (NULL: none); NULL after an error. */
etalon_context *program_context(const char *threads, const char *device);

/** A number from 0 to 2^64 - 1; false after an error. */
bool program_seed(const char *text, uint64_t *seed);

/** The operation of that name; false after an error. name NULL: *op is NULL. */
bool program_op(const char *name, const oracle_op **op);

/** From now on, and once the work has taken a second, stderr shows this text if it is a terminal. */
void program_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Takes the text off the terminal again: call it before printing. */
void program_progress_end(void);

/* Numbers of a comparison, for machines and for readers
 * -----------------------------------------------------
 */

/** A number; infinities and NaN, which JSON lacks, as the strings "inf", "-inf" and "nan". */
json_t *report_number(double x);

/** All numbers of a measure. */
json_t *report_measure(const measure *m);

/** Writes the object on a line of its own, and drops it. */
void report_json(json_t *object);

/** What is wrong with a tensor: its worst and its first bad element, and the counts. */
void report_failure(const char *name, const measure *m);

/** "[2, 3]" */
void report_shape(const etalon_tensor *t, char *text, size_t bytes);

#endif
