/* What the parts of the benchmark share: options, and the rows that are timed. */
#ifndef ETALON_BENCH_H
#define ETALON_BENCH_H

#include "gpu.h"
#include "rotation.h"
#include "yardstick.h"

enum { MOST_NAMES = 16, MOST_THREAD_COUNTS = 8, MOST_ROWS = 128 };

typedef struct names {
    const char *at[MOST_NAMES];
    int         count;
} names;

typedef struct options {
    names  ops, shapes, kernels;
    int    threads[MOST_THREAD_COUNTS], thread_counts;
    int    repeat, gemm_size;
    double seconds, ref_seconds;
    bool   keep_openblas_env, json, list;
    int    device;     /* OpenMP's number; ETALON_HOST: the rows of the host are timed */
    bool   stream;     /* calls are put on one, and waited for together */
    double rotate_mib; /* between two uses of a tensor */
} options;

typedef struct series {
    double *at;
    int     count, room;
} series;

/* A kernel at one number of threads. */
typedef struct row {
    const char      *kernel;
    yardstick_isa    isa;
    int              turn; /* index of the number of threads */
    bool             reference, shown, once, scaled;
    etalon_workspace work;
    double           warm;   /* seconds of the first run */
    double           memory; /* bytes beyond the tensors; NaN: unknown */
    series           seconds;
    /* one of each round: shares of what the yardsticks gave before and after, and of the first number of threads */
    double round;
    series vs_fma, vs_gemm, vs_decode, scaling;
} row;

typedef struct bench {
    options         o;
    yardstick_gemm  gemm;
    etalon_context *ctx[MOST_THREAD_COUNTS];
    bool            bound;  /* each thread to a CPU of its own */
    device_stream   stream; /* without a handle: calls are waited for, one by one */
    /* of the shape that is timed */
    bench_shape   shape;
    bench_problem problem;
    rotation      rotation; /* of its tensors on the device */
    row           rows[MOST_ROWS];
    int           count;
    series        gemm_rate[MOST_THREAD_COUNTS], fma_rate[MOST_THREAD_COUNTS][ISA_COUNT],
        decode[MOST_THREAD_COUNTS][ISA_COUNT];
    double      others;          /* share of the CPUs that other programs took in the rounds; NaN: unknown */
    double      memory_before;   /* resident bytes before any kernel ran; NaN: unknown */
    bool        header;          /* printed */
    const char *told[MOST_ROWS]; /* kernels that were left out */
    int         told_count;
} bench;

/** "bench: sentence" on stderr. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** True if rows of a device are timed, with tensors there. */
static inline bool is_on_device(const bench *b)
{
    return b->o.device != ETALON_HOST;
}

/** True if the name is among them. */
bool has_name(const names *all, const char *name);

/** A quantile, between neighbours by their distance; NaN of nothing. Sorts the series. */
double quantile(const series *s, double q);

/** Notes how much memory the program has without tensors and kernels. */
void note_memory(bench *b);

/** Rows for the shape's problem. False: a kernel that was named does not serve it. */
bool add_rows(bench *b);
void free_rows(bench *b);

/** The kernel's row at a number of threads, by its index; NULL: there is none. At index 0 every kernel with rows has one. */
const row *find_row(const bench *b, const char *kernel, int turn);

/** Runs rows, each between two runs of its yardsticks, round after round. False: a kernel failed. */
bool time_rows(bench *b);

/** The lines of the rows that are shown. */
void print_rows(bench *b);

#endif
