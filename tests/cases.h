/* Random problems for the tests: drawn from a printed seed, in memory that shows every access outside the contract.
 *
 * Each tensor has a mapping of its own that ends, or begins, at a page without access; the rest of the mapping is a
 * pattern that cases_verify() looks at. Elements that no view names (gaps between rows, slots past a sequence's end,
 * spare pages) are NaN in inputs, and a NaN of our own in outputs, which also marks what the library did not write.
 */
#ifndef ETALON_CASES_H
#define ETALON_CASES_H

#include <etalon/etalon.h>

#include <check.h>
#include <stdbool.h>

/* ck_assert_msg for the inside of loops: Check writes a line to a file for every assertion, those that hold
 * included. */
#define cases_require(condition, ...)  \
    do {                               \
        if (!(condition))              \
            ck_abort_msg(__VA_ARGS__); \
    } while (0)

/* Random numbers: xoshiro256**, seeded by splitmix64. */
typedef struct rng {
    uint64_t state[4];
} rng;

/* ETALON_SEED of the environment, or a fixed one. */
uint64_t cases_seed(void);

/* Streams of one seed are independent. */
rng rng_make(uint64_t seed, uint64_t stream);
uint64_t rng_bits(rng *r);
int64_t rng_below(rng *r, int64_t n);                     /* [0, n) */
int64_t rng_between(rng *r, int64_t first, int64_t last); /* both included */
double rng_unit(rng *r);                                  /* [0, 1) */
double rng_normal(rng *r);
bool rng_chance(rng *r, int percent);
int64_t rng_pick(rng *r, const int64_t *list, size_t count);
void rng_shuffle(rng *r, int64_t *list, int64_t count);

#define RNG_PICK(r, ...) \
    rng_pick((r), (const int64_t[]){ __VA_ARGS__ }, sizeof((const int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t))

/* Memory */

typedef enum cases_role {
    CASES_INPUT, /* must not change */
    CASES_OUTPUT /* poisoned before a call; gaps must keep their poison */
} cases_role;

typedef struct cases_block {
    unsigned char *map, *data, *snapshot;
    size_t         map_bytes, bytes;
    cases_role     role;
    etalon_tensor  view;
} cases_block;

enum { CASES_BLOCKS = 32 };

typedef struct cases_memory {
    cases_block block[CASES_BLOCKS];
    int         count;
} cases_memory;

/* A poisoned tensor. r == NULL: row-major and flush against the page without access; otherwise strides, order of the
 * dimensions in memory, gaps and the side of that page are drawn. */
etalon_tensor cases_tensor(cases_memory *memory, rng *r, cases_role role, etalon_dtype dtype, int32_t rank,
                           const int64_t *shape);

void cases_seal(cases_memory *memory);           /* inputs are complete from here on */
void cases_poison_outputs(cases_memory *memory); /* before every further call */
void cases_verify(const cases_memory *memory); /* inputs unchanged, pattern and gaps intact; fails the test otherwise */
void cases_free(cases_memory *memory);

/* Elements in row-major order, whatever the strides */

int64_t cases_count(const etalon_tensor *t);
void *cases_at(const etalon_tensor *t, int64_t i);
double cases_get(const etalon_tensor *t, int64_t i);
void cases_set(const etalon_tensor *t, int64_t i, double x);
void cases_fill(const etalon_tensor *t, double x);
void cases_fill_normal(const etalon_tensor *t, rng *r, double sigma);
void cases_copy(const etalon_tensor *to, const etalon_tensor *from); /* same shape and dtype, bit for bit */
void cases_poison(const etalon_tensor *t);

/* The view with one dimension fixed (and dropped), or cut to [first, first + extent). */
etalon_tensor cases_fix(etalon_tensor t, int32_t dim, int64_t index);
etalon_tensor cases_cut(etalon_tensor t, int32_t dim, int64_t first, int64_t extent);
etalon_tensor cases_swap(etalon_tensor t, int32_t a, int32_t b);

/* Fails the test with the index unless both views have the same shape and the same bits. */
void cases_same_bits(const etalon_tensor *a, const etalon_tensor *b, const char *what);
/* Fails the test if an element still has the poison of cases_poison_outputs. */
void cases_written(const etalon_tensor *t, const char *what);
/* Every element, bitwise equal to the poison. */
void cases_untouched(const etalon_tensor *t, const char *what);
/* A row-major copy of the bits; the caller frees it. */
uint32_t *cases_bits(const etalon_tensor *t);

/* Rows: the kernels of all tables, numbered as by etalon_kernel_get */

enum { CASES_ROWS = 128 };

typedef struct cases_row {
    const char *op, *name, *needs;
    bool        available; /* select may take it: this CPU has what it needs, and it is not by name only */
} cases_row;

/* The rows of this build; their number. */
int cases_rows(cases_row *rows);
int cases_row_number(const char *name);

/* Zeroed memory that the processes which Check forks have in common. */
void *cases_shared(size_t bytes);

/* main() of a program whose tests go over all rows. fill_rows() is one test case for each target that a row here is
 * for ("ref", "avx2"): in it a call that names no kernel names the row of its operation for that target, or none where
 * the table has no such row or the row refuses the problem. fill_once() is what no row has a say in, or NULL. Fails if
 * an available row ran nothing. */
int cases_main(const char *name, void (*fill_rows)(TCase *), void (*fill_once)(TCase *));

/* Calls with a context of that many threads (0: the default) and the workspace that the library asks for. */
etalon_status cases_run_pa_mtp(const etalon_pa_mtp_args *args, int threads);
etalon_status cases_run_fmha_varlen(const etalon_fmha_varlen_args *args, int threads);
etalon_status cases_run_mqa_logits(const etalon_mqa_logits_args *args, int threads);
etalon_status cases_run_mqa_logits_paged(const etalon_mqa_logits_paged_args *args, int threads);
etalon_status cases_run_merge_states(const etalon_merge_states_args *args, int threads);

/* The target's row if it serves these arguments, else the reference: for tests in which one row must serve two calls.
 * */
const char *cases_kernel_pa_mtp(const etalon_pa_mtp_args *args);
const char *cases_kernel_fmha_varlen(const etalon_fmha_varlen_args *args);

/* Problems */

typedef enum cases_descale {
    CASES_DESCALE_ABSENT = 0,
    CASES_DESCALE_SCALAR, /* () */
    CASES_DESCALE_ONE,    /* (1) */
    CASES_DESCALE_HEADS   /* (B, Hkv) */
} cases_descale;

/* What both attention operations have. Zeroed fields are the plain case: E4M3FN, F32 out, I32 indices, dense. */
typedef struct attention_shape {
    int64_t        b, hq, hkv, dqk, dv;
    const int64_t *q_lens, *k_lens; /* [b] */
    etalon_dtype   q, kv, out, index;
    bool           strided;
    double         sigma;  /* of the values before descales; 0: 1 */
    double         spread; /* wanted deviation of the scores; 0: softmax_scale stays at its default */
    cases_descale  q_descale, k_descale, v_descale;
    bool           no_lse;
    int32_t        causal, window_left, window_right; /* windows: 0 is unlimited, n is a width of n - 1 */
    /* pa_mtp only */
    int64_t          page_size, spare_pages;
    etalon_kv_layout layout;
    bool             interleaved; /* K and V in one pool, [pages, 2, ...]; needs dqk == dv */
    /* fmha_varlen only */
    bool give_max_seqlens;
} attention_shape;

typedef struct pa_mtp_case {
    cases_memory       memory;
    etalon_pa_mtp_args args;
} pa_mtp_case;

typedef struct fmha_varlen_case {
    cases_memory            memory;
    etalon_fmha_varlen_args args;
} fmha_varlen_case;

typedef struct mqa_logits_case {
    cases_memory           memory;
    etalon_mqa_logits_args args;
} mqa_logits_case;

/* Zeroed fields are the plain case: E4M3FN in both, I32, blocks of 64 one after another. */
typedef struct mqa_logits_paged_shape {
    int64_t        b, next_n, h, d;
    const int64_t *lens;              /* [b * next_n]; any number */
    int64_t        block_size, table; /* table: blocks of its rows; 0: what lens need */
    int64_t        max_context_len, spare_blocks;
    int64_t        gap; /* bytes between blocks, a multiple of 4 */
    etalon_dtype   q, kv, index;
    bool           strided, head_axis; /* head_axis: kv_cache has four dimensions */
} mqa_logits_paged_shape;

typedef struct mqa_logits_paged_case {
    cases_memory                 memory;
    etalon_mqa_logits_paged_args args;
} mqa_logits_paged_case;

typedef struct merge_states_case {
    cases_memory             memory;
    etalon_merge_states_args args;
} merge_states_case;

/* Values are drawn, everything is sealed. Pages are shuffled, page 0 and spare pages are poisoned, table entries
 * past the end are -1 or garbage. */
void pa_mtp_make(pa_mtp_case *c, rng *r, const attention_shape *shape);
void fmha_varlen_make(fmha_varlen_case *c, rng *r, const attention_shape *shape);

/* m, n, h, d; windows are all keys. r draws the values; layouts stay dense. */
void mqa_logits_make(mqa_logits_case *c, rng *r, int64_t m, int64_t n, int64_t h, int64_t d);

/* The same columns as `compressed` logits of that width. */
void mqa_logits_compress(mqa_logits_case *c, int64_t max_seqlen_k);

/* Blocks are shuffled; block 0, spare blocks and slots that no row sees are NaN, table entries past the end are what
 * nobody may read. */
void mqa_logits_paged_make(mqa_logits_paged_case *c, rng *r, const mqa_logits_paged_shape *shape);

/* Key n of sequence b, [D], and its scale, (). */
etalon_tensor mqa_logits_paged_key(const etalon_mqa_logits_paged_args *args, int64_t b, int64_t n);
etalon_tensor mqa_logits_paged_scale(const etalon_mqa_logits_paged_args *args, int64_t b, int64_t n);

/* Everything drawn: extents around tile edges and primes, dtypes, strides, options. */
void pa_mtp_draw(pa_mtp_case *c, rng *r);
void fmha_varlen_draw(fmha_varlen_case *c, rng *r);
void mqa_logits_draw(mqa_logits_case *c, rng *r);
void mqa_logits_paged_draw(mqa_logits_paged_case *c, rng *r);

/* The same with FP8 keys, at the far ends: more keys than a split holds, more rows than a group holds, any head dim. */
void pa_mtp_draw_far(pa_mtp_case *c, rng *r);
void fmha_varlen_draw_far(fmha_varlen_case *c, rng *r);
void mqa_logits_draw_far(mqa_logits_case *c, rng *r);
void mqa_logits_paged_draw_far(mqa_logits_paged_case *c, rng *r);
void merge_states_draw(merge_states_case *c, rng *r);

/* Of the shapes that rows of one architecture are tuned for, mostly in the layouts that they take. */
void pa_mtp_draw_tuned(pa_mtp_case *c, rng *r);
void fmha_varlen_draw_tuned(fmha_varlen_case *c, rng *r);
void mqa_logits_draw_tuned(mqa_logits_case *c, rng *r);

/* Key j of sequence b in a cache: [Hkv, D]. */
etalon_tensor pa_mtp_slot(const etalon_pa_mtp_args *args, const etalon_tensor *cache, int64_t b, int64_t j);

#endif
