#include "cases.h"

#include "testing.h"
#include "twin.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

/* Random numbers
 * -------------- */

uint64_t cases_seed(void)
{
    const char *text = getenv("ETALON_SEED");
    return text != NULL ? strtoull(text, NULL, 0) : 20261129u;
}

static uint64_t splitmix(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

rng rng_make(uint64_t seed, uint64_t stream)
{
    uint64_t state = seed ^ splitmix(&stream);
    rng      r;
    for (int i = 0; i < 4; i++)
        r.state[i] = splitmix(&state);
    return r;
}

static uint64_t rotate(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

uint64_t rng_bits(rng *r)
{
    uint64_t      *s = r->state;
    const uint64_t result = rotate(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return result;
}

int64_t rng_below(rng *r, int64_t n)
{
    return (int64_t)(rng_bits(r) % (uint64_t)n);
}

int64_t rng_between(rng *r, int64_t first, int64_t last)
{
    return first + rng_below(r, last - first + 1);
}

double rng_unit(rng *r)
{
    return (double)(rng_bits(r) >> 11) * 0x1p-53;
}

double rng_normal(rng *r)
{
    const double radius = sqrt(-2.0 * log(1.0 - rng_unit(r)));
    return radius * cos(6.283185307179586 * rng_unit(r));
}

bool rng_chance(rng *r, int percent)
{
    return rng_below(r, 100) < percent;
}

int64_t rng_pick(rng *r, const int64_t *list, size_t count)
{
    return list[rng_below(r, (int64_t)count)];
}

void rng_shuffle(rng *r, int64_t *list, int64_t count)
{
    for (int64_t i = count - 1; i > 0; i--) {
        const int64_t j = rng_below(r, i + 1), x = list[i];
        list[i] = list[j];
        list[j] = x;
    }
}

/* Memory
 * ------ */

enum { PATTERN = 0xA5 };

/* NaN of our own making, or for indices a number far outside of every range. */
static uint32_t poison_bits(etalon_dtype dtype)
{
    switch (dtype) {
    case ETALON_BF16:
        return 0x7FC5;
    case ETALON_F32:
        return 0x7FC5A5A5;
    case ETALON_E4M3FNUZ:
        return 0x80;
    case ETALON_E4M3FN:
        return 0xFF;
    default:
        return 0x8BADF00D;
    }
}

static void poison_element(void *at, etalon_dtype dtype)
{
    const uint32_t bits = poison_bits(dtype);
    const int64_t  wide = (int32_t)bits;
    memcpy(at, dtype == ETALON_I64 ? (const void *)&wide : (const void *)&bits, etalon_dtype_bytes(dtype));
}

static void poison_block(const cases_block *block)
{
    const size_t bytes = etalon_dtype_bytes(block->view.dtype);
    for (size_t at = 0; at < block->bytes; at += bytes)
        poison_element(block->data + at, block->view.dtype);
}

/* Strides for the dimensions in the given memory order, innermost first; the elements that the block spans. */
static int64_t lay_out(etalon_tensor *t, rng *r)
{
    int64_t order[ETALON_MAX_RANK], reach = 1;
    for (int32_t d = 0; d < t->rank; d++)
        order[d] = t->rank - 1 - d;
    if (r != NULL && rng_chance(r, 40))
        rng_shuffle(r, order, t->rank);
    for (int32_t i = 0; i < t->rank; i++) {
        const int64_t gap = r == NULL || rng_chance(r, 50) ? 0 : rng_between(r, 1, 5);
        t->stride[order[i]] = reach + gap;
        reach = t->shape[order[i]] > 0 ? (t->shape[order[i]] - 1) * (reach + gap) + reach : reach;
    }
    return reach;
}

/* Some dimensions run backwards; data moves to the element that becomes [0, ..., 0]. */
static void reverse_some(etalon_tensor *t, rng *r)
{
    const int64_t bytes = (int64_t)etalon_dtype_bytes(t->dtype);
    for (int32_t d = 0; d < t->rank; d++)
        if (t->shape[d] > 0 && rng_chance(r, 8)) {
            t->data = (char *)t->data + (t->shape[d] - 1) * t->stride[d] * bytes;
            t->stride[d] = -t->stride[d];
        }
}

etalon_tensor cases_tensor(cases_memory *memory, rng *r, cases_role role, etalon_dtype dtype, int32_t rank,
                           const int64_t *shape)
{
    cases_require(memory->count < CASES_BLOCKS, "more than %d tensors", CASES_BLOCKS);
    cases_block  *block = &memory->block[memory->count++];
    etalon_tensor t = { .dtype = dtype, .device = ETALON_HOST, .rank = rank };
    for (int32_t d = 0; d < rank; d++)
        t.shape[d] = shape[d];
    const bool   plain = r == NULL || rng_chance(r, 40);
    const size_t bytes = (size_t)lay_out(&t, plain ? NULL : r) * etalon_dtype_bytes(dtype);
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), inside = (bytes + page - 1) / page * page;
    const bool   at_front = r != NULL && rng_chance(r, 30);
    *block = (cases_block){ .bytes = bytes, .map_bytes = inside + 2 * page, .role = role };
    block->map = mmap(NULL, block->map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cases_require(block->map != MAP_FAILED, "mmap: %s", strerror(errno));
    memset(block->map + page, PATTERN, inside);
    cases_require(mprotect(block->map, page, PROT_NONE) == 0 &&
                      mprotect(block->map + page + inside, page, PROT_NONE) == 0,
                  "mprotect");
    block->data = block->map + page + (at_front ? 0 : inside - bytes);
    t.data = block->data;
    if (!plain)
        reverse_some(&t, r);
    block->view = t;
    poison_block(block);
    return t;
}

void cases_seal(cases_memory *memory)
{
    for (int i = 0; i < memory->count; i++) {
        cases_block *block = &memory->block[i];
        if (block->role != CASES_INPUT)
            continue;
        free(block->snapshot);
        block->snapshot = malloc(block->bytes);
        memcpy(block->snapshot, block->data, block->bytes);
    }
}

void cases_poison_outputs(cases_memory *memory)
{
    for (int i = 0; i < memory->count; i++)
        if (memory->block[i].role == CASES_OUTPUT)
            poison_block(&memory->block[i]);
}

/* 1 for each byte of the block that belongs to an element of its view. */
static unsigned char *element_bytes(const cases_block *block)
{
    unsigned char *mark = calloc(1, block->bytes);
    const size_t   bytes = etalon_dtype_bytes(block->view.dtype);
    for (int64_t i = 0; i < cases_count(&block->view); i++)
        memset(mark + ((unsigned char *)cases_at(&block->view, i) - block->data), 1, bytes);
    return mark;
}

static void verify_gaps(const cases_block *block, int number)
{
    unsigned char *mark = element_bytes(block);
    const size_t   bytes = etalon_dtype_bytes(block->view.dtype);
    for (size_t at = 0; at < block->bytes; at += bytes) {
        unsigned char want[8];
        poison_element(want, block->view.dtype);
        cases_require(mark[at] || memcmp(block->data + at, want, bytes) == 0,
                      "tensor %d: wrote between its elements, %zu bytes in", number, at);
    }
    free(mark);
}

static void verify_pattern(const cases_block *block, const unsigned char *from, const unsigned char *to, int number)
{
    for (const unsigned char *at = from; at < to; at++)
        cases_require(*at == PATTERN, "tensor %d: wrote outside, %td bytes from its start", number, at - block->data);
}

void cases_verify(const cases_memory *memory)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (int i = 0; i < memory->count; i++) {
        const cases_block *block = &memory->block[i];
        verify_pattern(block, block->map + page, block->data, i);
        verify_pattern(block, block->data + block->bytes, block->map + block->map_bytes - page, i);
        if (block->role == CASES_OUTPUT)
            verify_gaps(block, i);
        else
            cases_require(memcmp(block->data, block->snapshot, block->bytes) == 0, "tensor %d: an input changed", i);
    }
}

void cases_free(cases_memory *memory)
{
    for (int i = 0; i < memory->count; i++) {
        munmap(memory->block[i].map, memory->block[i].map_bytes);
        free(memory->block[i].snapshot);
    }
    memory->count = 0;
}

/* Elements
 * -------- */

int64_t cases_count(const etalon_tensor *t)
{
    int64_t count = 1;
    for (int32_t d = 0; d < t->rank; d++)
        count *= t->shape[d];
    return count;
}

void *cases_at(const etalon_tensor *t, int64_t i)
{
    int64_t offset = 0;
    for (int32_t d = t->rank - 1; d >= 0; d--) {
        offset += i % t->shape[d] * t->stride[d];
        i /= t->shape[d];
    }
    return (char *)t->data + offset * (int64_t)etalon_dtype_bytes(t->dtype);
}

double cases_get(const etalon_tensor *t, int64_t i)
{
    return twin_load(cases_at(t, i), t->dtype);
}

void cases_set(const etalon_tensor *t, int64_t i, double x)
{
    twin_store(cases_at(t, i), t->dtype, x);
}

void cases_fill(const etalon_tensor *t, double x)
{
    for (int64_t i = 0; i < cases_count(t); i++)
        cases_set(t, i, x);
}

/* Large tensors draw from so many encoded values: to draw and to encode each element would take seconds. */
enum { LARGE = 1 << 16, LARGE_VALUES = 4096 };

static void fill_large(const etalon_tensor *t, rng *r, double sigma)
{
    static unsigned char values[LARGE_VALUES][8];
    for (int i = 0; i < LARGE_VALUES; i++)
        twin_store(values[i], t->dtype, sigma * rng_normal(r));
    for (int64_t i = 0; i < cases_count(t); i++)
        memcpy(cases_at(t, i), values[rng_below(r, LARGE_VALUES)], etalon_dtype_bytes(t->dtype));
}

void cases_fill_normal(const etalon_tensor *t, rng *r, double sigma)
{
    const int64_t count = cases_count(t);
    if (count > LARGE) {
        fill_large(t, r, sigma);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        cases_set(t, i, sigma * rng_normal(r));
}

void cases_copy(const etalon_tensor *to, const etalon_tensor *from)
{
    cases_require(cases_count(to) == cases_count(from) && to->dtype == from->dtype, "a copy of another kind");
    for (int64_t i = 0; i < cases_count(to); i++)
        memcpy(cases_at(to, i), cases_at(from, i), etalon_dtype_bytes(to->dtype));
}

void cases_poison(const etalon_tensor *t)
{
    for (int64_t i = 0; i < cases_count(t); i++)
        poison_element(cases_at(t, i), t->dtype);
}

etalon_tensor cases_fix(etalon_tensor t, int32_t dim, int64_t index)
{
    t.data = (char *)t.data + index * t.stride[dim] * (int64_t)etalon_dtype_bytes(t.dtype);
    for (int32_t d = dim; d + 1 < t.rank; d++) {
        t.shape[d] = t.shape[d + 1];
        t.stride[d] = t.stride[d + 1];
    }
    t.rank--;
    return t;
}

etalon_tensor cases_cut(etalon_tensor t, int32_t dim, int64_t first, int64_t extent)
{
    t.data = (char *)t.data + first * t.stride[dim] * (int64_t)etalon_dtype_bytes(t.dtype);
    t.shape[dim] = extent;
    return t;
}

etalon_tensor cases_swap(etalon_tensor t, int32_t a, int32_t b)
{
    const int64_t shape = t.shape[a], stride = t.stride[a];
    t.shape[a] = t.shape[b];
    t.stride[a] = t.stride[b];
    t.shape[b] = shape;
    t.stride[b] = stride;
    return t;
}

uint32_t *cases_bits(const etalon_tensor *t)
{
    uint32_t *bits = calloc((size_t)cases_count(t) + 1, sizeof *bits);
    for (int64_t i = 0; i < cases_count(t); i++)
        memcpy(&bits[i], cases_at(t, i), etalon_dtype_bytes(t->dtype));
    return bits;
}

void cases_same_bits(const etalon_tensor *a, const etalon_tensor *b, const char *what)
{
    cases_require(a->dtype == b->dtype && a->rank == b->rank, "%s: dtype or rank", what);
    for (int32_t d = 0; d < a->rank; d++)
        cases_require(a->shape[d] == b->shape[d], "%s: shape[%" PRId32 "]", what, d);
    const size_t bytes = etalon_dtype_bytes(a->dtype);
    for (int64_t i = 0; i < cases_count(a); i++)
        cases_require(memcmp(cases_at(a, i), cases_at(b, i), bytes) == 0, "%s: element %" PRId64 ": %.9g and %.9g",
                      what, i, cases_get(a, i), cases_get(b, i));
}

static bool poisoned(const etalon_tensor *t, int64_t i)
{
    unsigned char want[8];
    poison_element(want, t->dtype);
    return memcmp(cases_at(t, i), want, etalon_dtype_bytes(t->dtype)) == 0;
}

void cases_written(const etalon_tensor *t, const char *what)
{
    for (int64_t i = 0; i < cases_count(t); i++)
        cases_require(!poisoned(t, i), "%s: element %" PRId64 " was not written", what, i);
}

void cases_untouched(const etalon_tensor *t, const char *what)
{
    for (int64_t i = 0; i < cases_count(t); i++)
        cases_require(poisoned(t, i), "%s: element %" PRId64 " was written: %.9g", what, i, cases_get(t, i));
}

/* Rows
 * ---- */

int cases_rows(cases_row *rows)
{
    etalon_context    *ctx;
    etalon_kernel_info info;
    int                count = 0;
    if (etalon_context_create(NULL, &ctx) != ETALON_OK)
        abort();
    while (etalon_kernel_get(ctx, count, &info) == ETALON_OK) {
        if (count == CASES_ROWS)
            abort();
        rows[count++] = (cases_row){ info.op, info.name, info.needs, info.available != 0 };
    }
    etalon_context_destroy(ctx);
    return count;
}

int cases_row_number(const char *name)
{
    static cases_row rows[CASES_ROWS]; /* asked for at every call */
    static int       count;
    if (count == 0)
        count = cases_rows(rows);
    for (int i = 0; i < count; i++)
        if (strcmp(rows[i].name, name) == 0)
            return i;
    abort();
}

void *cases_shared(size_t bytes)
{
    void *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
        abort();
    return data;
}

static const char *target;       /* of this process's test case; NULL: a call without a kernel is the gate's */
static int64_t    *runs_of_rows; /* shared; NULL outside of cases_main */

/* Check calls a fixture without arguments: one function a target. */
#define TARGETS(T) T(ref) T(generic) T(neon) T(avx2) T(avx512) T(amx)

#define USE(name)                \
    static void use_##name(void) \
    {                            \
        target = #name;          \
    }
TARGETS(USE)

static const struct {
    const char *name;
    void (*use)(void);
} targets[] = {
#define ROW(name) { #name, use_##name },
    TARGETS(ROW)
};

enum { TARGET_COUNT = sizeof targets / sizeof targets[0] };

static bool is_for(const cases_row *row, const char *name)
{
    const size_t op = strlen(row->op);
    return row->name[op] == '_' && strcmp(row->name + op + 1, name) == 0;
}

static bool any_available(const char *name)
{
    cases_row rows[CASES_ROWS];
    const int count = cases_rows(rows);
    bool      any = false;
    for (int i = 0; i < count; i++)
        any = any || (rows[i].available && is_for(&rows[i], name));
    return any;
}

static void add_case(Suite *suite, const char *name, void (*fill)(TCase *), void (*use)(void))
{
    TCase *tcase = tcase_create(name);
    tcase_set_timeout(tcase, 300);
    if (use != NULL)
        tcase_add_checked_fixture(tcase, use, NULL);
    fill(tcase);
    suite_add_tcase(suite, tcase);
}

/* The number of available rows that ran nothing. */
static int report_rows(void)
{
    cases_row rows[CASES_ROWS];
    const int count = cases_rows(rows);
    int       idle = 0;
    for (int i = 0; i < count; i++) {
        if (rows[i].available || runs_of_rows[i] > 0)
            printf("# %s: %" PRId64 " calls%s\n", rows[i].name, runs_of_rows[i],
                   runs_of_rows[i] > 0 ? "" : ": the row was not tested");
        else if (strcmp(rows[i].needs, "by name only") != 0)
            printf("# skip %s: not available here (%s)\n", rows[i].name, rows[i].needs);
        idle += rows[i].available && runs_of_rows[i] == 0;
    }
    return idle;
}

int cases_main(const char *name, void (*fill_rows)(TCase *), void (*fill_once)(TCase *))
{
    Suite *suite = suite_create(name);
    printf("# ETALON_SEED=%" PRIu64 "\n", cases_seed());
    fflush(stdout); /* before Check forks */
    runs_of_rows = cases_shared(CASES_ROWS * sizeof *runs_of_rows);
    if (fill_once != NULL)
        add_case(suite, name, fill_once, NULL);
    for (int i = 0; i < TARGET_COUNT; i++)
        if (any_available(targets[i].name))
            add_case(suite, targets[i].name, fill_rows, targets[i].use);
    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return report_rows() == 0 && failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Calls
 * ----- */

static etalon_workspace workspace_make(size_t bytes)
{
    const size_t     whole = (bytes + ETALON_WORKSPACE_ALIGN - 1) / ETALON_WORKSPACE_ALIGN * ETALON_WORKSPACE_ALIGN;
    etalon_workspace work = { .bytes = bytes };
    if (bytes > 0)
        work.data = memset(aligned_alloc(ETALON_WORKSPACE_ALIGN, whole), 0xFF /* NaN in every format */, whole);
    return work;
}

/* A call that names no kernel goes to the target's row, if that serves it; what the gate refuses it leaves untouched. */
#define RUN(op)                                                                       \
    etalon_status cases_run_##op(const etalon_##op##_args *args, int threads)         \
    {                                                                                 \
        char               row[64];                                                   \
        etalon_##op##_args named = *args;                                             \
        snprintf(row, sizeof row, #op "_%s", target == NULL ? "" : target);           \
        named.kernel = row;                                                           \
        etalon_status status = ETALON_ERROR_UNSUPPORTED;                              \
        if (args->kernel == NULL && target != NULL)                                   \
            status = run_##op(&named, threads);                                       \
        return status == ETALON_ERROR_UNSUPPORTED ? run_##op(args, threads) : status; \
    }

#define RUN_ROW(op)                                                              \
    static etalon_status run_##op(const etalon_##op##_args *args, int threads)   \
    {                                                                            \
        etalon_context_options options = ETALON_CONTEXT_OPTIONS_INIT;            \
        etalon_context        *ctx;                                              \
        size_t                 bytes;                                            \
        options.threads = threads;                                               \
        etalon_status status = etalon_context_create(&options, &ctx);            \
        if (status != ETALON_OK)                                                 \
            return status;                                                       \
        status = etalon_##op##_workspace_bytes(ctx, args, &bytes);               \
        if (status == ETALON_OK) {                                               \
            const etalon_workspace work = workspace_make(bytes);                 \
            status = etalon_##op(ctx, args, work);                               \
            free(work.data);                                                     \
        }                                                                        \
        if (status == ETALON_OK && args->kernel != NULL && runs_of_rows != NULL) \
            runs_of_rows[cases_row_number(args->kernel)]++;                      \
        etalon_context_destroy(ctx);                                             \
        return status;                                                           \
    }

RUN_ROW(pa_mtp)
RUN_ROW(fmha_varlen)
RUN_ROW(mqa_logits)
RUN_ROW(mqa_logits_paged)
RUN_ROW(merge_states)
RUN(pa_mtp)
RUN(fmha_varlen)
RUN(mqa_logits)
RUN(mqa_logits_paged)
RUN(merge_states)

#define KERNEL_FOR(op)                                                                   \
    const char *cases_kernel_##op(const etalon_##op##_args *args)                        \
    {                                                                                    \
        static char        row[64];                                                      \
        etalon_##op##_args named = *args;                                                \
        etalon_context    *ctx;                                                          \
        size_t             bytes;                                                        \
        snprintf(row, sizeof row, #op "_%s", target == NULL ? "ref" : target);           \
        named.kernel = row;                                                              \
        ck_assert_ok(etalon_context_create(NULL, &ctx));                                 \
        const etalon_status status = etalon_##op##_workspace_bytes(ctx, &named, &bytes); \
        etalon_context_destroy(ctx);                                                     \
        return status == ETALON_ERROR_UNSUPPORTED ? #op "_ref" : row;                    \
    }

KERNEL_FOR(pa_mtp)
KERNEL_FOR(fmha_varlen)

/* Problems
 * -------- */

#define SHAPE(...) ((const int64_t[]){ __VA_ARGS__ })

static etalon_dtype dtype_or(etalon_dtype dtype, etalon_dtype otherwise)
{
    return dtype == ETALON_DTYPE_NONE ? otherwise : dtype;
}

static bool is_fp8(etalon_dtype dtype)
{
    return dtype == ETALON_E4M3FN || dtype == ETALON_E4M3FNUZ;
}

static etalon_tensor descale(cases_memory *memory, rng *r, const attention_shape *s, cases_descale kind)
{
    const int64_t heads[2] = { s->b, s->hkv }, one[1] = { 1 };
    if (kind == CASES_DESCALE_ABSENT)
        return (etalon_tensor){ 0 };
    const int32_t       rank = kind == CASES_DESCALE_SCALAR ? 0 : kind == CASES_DESCALE_ONE ? 1 : 2;
    const etalon_tensor t =
        cases_tensor(memory, s->strided ? r : NULL, CASES_INPUT, ETALON_F32, rank, rank == 2 ? heads : one);
    for (int64_t i = 0; i < cases_count(&t); i++)
        cases_set(&t, i, exp2(2.0 * rng_unit(r) - 1.0));
    return t;
}

/* From 0 on, running sums of lens. */
static etalon_tensor cumulative(cases_memory *memory, rng *r, const attention_shape *s, const int64_t *lens)
{
    const etalon_tensor t =
        cases_tensor(memory, s->strided ? r : NULL, CASES_INPUT, dtype_or(s->index, ETALON_I32), 1, SHAPE(s->b + 1));
    int64_t sum = 0;
    for (int64_t b = 0; b <= s->b; b++) {
        cases_set(&t, b, (double)sum);
        sum += b < s->b ? lens[b] : 0;
    }
    return t;
}

static int64_t sum_of(const int64_t *list, int64_t count)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += list[i];
    return sum;
}

/* So that the scores of normal values spread as wanted, descales of about 1 aside. */
static double softmax_scale(const attention_shape *s)
{
    const double sigma = s->sigma == 0.0 ? 1.0 : s->sigma;
    return s->spread == 0.0 ? 0.0 : s->spread / (sigma * sigma * sqrt((double)s->dqk));
}

static int64_t pages_of(const attention_shape *s, int64_t b)
{
    return (s->k_lens[b] + s->page_size - 1) / s->page_size;
}

etalon_tensor pa_mtp_slot(const etalon_pa_mtp_args *args, const etalon_tensor *cache, int64_t b, int64_t j)
{
    const bool          hnd = args->kv_layout == ETALON_KV_HND;
    const int64_t       page_size = cache->shape[hnd ? 2 : 1];
    const etalon_tensor table = cases_fix(args->block_tables, 0, b);
    const etalon_tensor page = cases_fix(*cache, 0, (int64_t)cases_get(&table, j / page_size));
    return cases_fix(page, hnd ? 1 : 0, j % page_size);
}

static void make_caches(pa_mtp_case *c, rng *r, const attention_shape *s, int64_t pages)
{
    const etalon_dtype dtype = dtype_or(s->kv, ETALON_E4M3FN);
    const bool         hnd = s->layout == ETALON_KV_HND;
    const int64_t      inner = hnd ? s->hkv : s->page_size, outer = hnd ? s->page_size : s->hkv;
    rng               *layout = s->strided ? r : NULL;
    if (s->interleaved) {
        const etalon_tensor pool =
            cases_tensor(&c->memory, layout, CASES_INPUT, dtype, 5, SHAPE(pages, 2, inner, outer, s->dqk));
        c->args.k_cache = cases_fix(pool, 1, 0);
        c->args.v_cache = cases_fix(pool, 1, 1);
        return;
    }
    c->args.k_cache = cases_tensor(&c->memory, layout, CASES_INPUT, dtype, 4, SHAPE(pages, inner, outer, s->dqk));
    c->args.v_cache = cases_tensor(&c->memory, layout, CASES_INPUT, dtype, 4, SHAPE(pages, inner, outer, s->dv));
}

/* Pages in random order, never page 0 unless every page is needed; entries past the end are what nobody may read. */
static void make_tables(pa_mtp_case *c, rng *r, const attention_shape *s, int64_t pages)
{
    int64_t most = 0, next = 0;
    for (int64_t b = 0; b < s->b; b++)
        most = pages_of(s, b) > most ? pages_of(s, b) : most;
    int64_t *ids = calloc((size_t)pages + 1, sizeof *ids);
    for (int64_t i = 0; i + 1 < pages; i++)
        ids[i] = i + 1;
    rng_shuffle(r, ids, pages > 0 ? pages - 1 : 0);
    const int64_t width = most + (s->strided ? rng_below(r, 3) : 0);
    c->args.block_tables =
        cases_tensor(&c->memory, s->strided ? r : NULL, CASES_INPUT, ETALON_I32, 2, SHAPE(s->b, width));
    for (int64_t b = 0; b < s->b; b++)
        for (int64_t i = 0; i < width; i++) {
            const bool used = i < pages_of(s, b);
            cases_set(&c->args.block_tables, b * width + i,
                      used ? (double)ids[next++] : (double)RNG_PICK(r, -1, INT32_MIN, INT32_MAX, 0));
        }
    free(ids);
}

void pa_mtp_make(pa_mtp_case *c, rng *r, const attention_shape *shape)
{
    attention_shape s = *shape;
    s.page_size = s.page_size == 0 ? 16 : s.page_size;
    const double       sigma = s.sigma == 0.0 ? 1.0 : s.sigma;
    const etalon_dtype index = dtype_or(s.index, ETALON_I32), q = dtype_or(s.q, ETALON_E4M3FN);
    const int64_t      tokens = sum_of(s.q_lens, s.b);
    rng               *layout = s.strided ? r : NULL;
    *c = (pa_mtp_case){ .args = ETALON_PA_MTP_ARGS_INIT };
    int64_t pages = 1 + s.spare_pages; /* page 0 is nobody's */
    for (int64_t b = 0; b < s.b; b++)
        pages += pages_of(&s, b);
    c->args.kv_layout = s.layout;
    c->args.q = cases_tensor(&c->memory, layout, CASES_INPUT, q, 3, SHAPE(tokens, s.hq, s.dqk));
    cases_fill_normal(&c->args.q, r, sigma);
    make_caches(c, r, &s, pages);
    make_tables(c, r, &s, pages);
    c->args.seq_lens = cases_tensor(&c->memory, layout, CASES_INPUT, index, 1, SHAPE(s.b));
    for (int64_t b = 0; b < s.b; b++) {
        cases_set(&c->args.seq_lens, b, (double)s.k_lens[b]);
        for (int64_t j = 0; j < s.k_lens[b]; j++) {
            const etalon_tensor k = pa_mtp_slot(&c->args, &c->args.k_cache, b, j);
            const etalon_tensor v = pa_mtp_slot(&c->args, &c->args.v_cache, b, j);
            cases_fill_normal(&k, r, sigma);
            cases_fill_normal(&v, r, 1.0);
        }
    }
    c->args.cu_seqlens_q = cumulative(&c->memory, r, &s, s.q_lens);
    c->args.q_descale = descale(&c->memory, r, &s, is_fp8(q) ? s.q_descale : CASES_DESCALE_ABSENT);
    const bool kv8 = is_fp8(c->args.k_cache.dtype);
    c->args.k_descale = descale(&c->memory, r, &s, kv8 ? s.k_descale : CASES_DESCALE_ABSENT);
    c->args.v_descale = descale(&c->memory, r, &s, kv8 ? s.v_descale : CASES_DESCALE_ABSENT);
    c->args.out =
        cases_tensor(&c->memory, layout, CASES_OUTPUT, dtype_or(s.out, ETALON_F32), 3, SHAPE(tokens, s.hq, s.dv));
    if (!s.no_lse)
        c->args.lse = cases_tensor(&c->memory, layout, CASES_OUTPUT, ETALON_F32, 2, SHAPE(s.hq, tokens));
    c->args.softmax_scale = softmax_scale(&s);
    c->args.causal = s.causal;
    c->args.window_left = s.window_left - 1;
    c->args.window_right = s.window_right - 1;
    cases_seal(&c->memory);
}

void fmha_varlen_make(fmha_varlen_case *c, rng *r, const attention_shape *s)
{
    const double       sigma = s->sigma == 0.0 ? 1.0 : s->sigma;
    const etalon_dtype dtype = dtype_or(s->q, ETALON_E4M3FN);
    const int64_t      tq = sum_of(s->q_lens, s->b), tk = sum_of(s->k_lens, s->b);
    rng               *layout = s->strided ? r : NULL;
    *c = (fmha_varlen_case){ .args = ETALON_FMHA_VARLEN_ARGS_INIT };
    c->args.q = cases_tensor(&c->memory, layout, CASES_INPUT, dtype, 3, SHAPE(tq, s->hq, s->dqk));
    c->args.k = cases_tensor(&c->memory, layout, CASES_INPUT, dtype, 3, SHAPE(tk, s->hkv, s->dqk));
    c->args.v = cases_tensor(&c->memory, layout, CASES_INPUT, dtype, 3, SHAPE(tk, s->hkv, s->dv));
    cases_fill_normal(&c->args.q, r, sigma);
    cases_fill_normal(&c->args.k, r, sigma);
    cases_fill_normal(&c->args.v, r, 1.0);
    c->args.cu_seqlens_q = cumulative(&c->memory, r, s, s->q_lens);
    c->args.cu_seqlens_k = cumulative(&c->memory, r, s, s->k_lens);
    c->args.q_descale = descale(&c->memory, r, s, is_fp8(dtype) ? s->q_descale : CASES_DESCALE_ABSENT);
    c->args.k_descale = descale(&c->memory, r, s, is_fp8(dtype) ? s->k_descale : CASES_DESCALE_ABSENT);
    c->args.v_descale = descale(&c->memory, r, s, is_fp8(dtype) ? s->v_descale : CASES_DESCALE_ABSENT);
    c->args.out =
        cases_tensor(&c->memory, layout, CASES_OUTPUT, dtype_or(s->out, ETALON_F32), 3, SHAPE(tq, s->hq, s->dv));
    if (!s->no_lse)
        c->args.lse = cases_tensor(&c->memory, layout, CASES_OUTPUT, ETALON_F32, 2, SHAPE(s->hq, tq));
    c->args.softmax_scale = softmax_scale(s);
    c->args.causal = s->causal;
    c->args.window_left = s->window_left - 1;
    c->args.window_right = s->window_right - 1;
    for (int64_t b = 0; b < s->b && s->give_max_seqlens; b++) {
        c->args.max_seqlen_q = s->q_lens[b] > c->args.max_seqlen_q ? s->q_lens[b] : c->args.max_seqlen_q;
        c->args.max_seqlen_k = s->k_lens[b] > c->args.max_seqlen_k ? s->k_lens[b] : c->args.max_seqlen_k;
    }
    cases_seal(&c->memory);
}

static void mqa_logits_values(mqa_logits_case *c, rng *r)
{
    cases_fill_normal(&c->args.q, r, 1.0);
    cases_fill_normal(&c->args.k, r, 1.0);
    cases_fill_normal(&c->args.weights, r, 0.25);
    for (int64_t n = 0; n < c->args.kv_scale.shape[0]; n++)
        cases_set(&c->args.kv_scale, n, exp2(4.0 * rng_unit(r) - 3.0));
}

static void mqa_logits_tensors(mqa_logits_case *c, rng *layout, const int64_t *mnhd, int64_t max_seqlen_k,
                               etalon_dtype q, etalon_dtype k, etalon_dtype start, etalon_dtype end)
{
    const int64_t m = mnhd[0], n = mnhd[1], h = mnhd[2], d = mnhd[3];
    cases_memory *memory = &c->memory;
    *c = (mqa_logits_case){ .args = ETALON_MQA_LOGITS_ARGS_INIT };
    c->args.q = cases_tensor(memory, layout, CASES_INPUT, q, 3, SHAPE(m, h, d));
    c->args.k = cases_tensor(memory, layout, CASES_INPUT, k, 2, SHAPE(n, d));
    c->args.kv_scale = cases_tensor(memory, layout, CASES_INPUT, ETALON_F32, 1, SHAPE(n));
    c->args.weights = cases_tensor(memory, layout, CASES_INPUT, ETALON_F32, 2, SHAPE(m, h));
    c->args.cu_seqlen_ks = cases_tensor(memory, layout, CASES_INPUT, start, 1, SHAPE(m));
    c->args.cu_seqlen_ke = cases_tensor(memory, layout, CASES_INPUT, end, 1, SHAPE(m));
    c->args.logits =
        cases_tensor(memory, layout, CASES_OUTPUT, ETALON_F32, 2, SHAPE(m, max_seqlen_k > 0 ? max_seqlen_k : n));
    c->args.max_seqlen_k = max_seqlen_k;
}

void mqa_logits_make(mqa_logits_case *c, rng *r, int64_t m, int64_t n, int64_t h, int64_t d)
{
    mqa_logits_tensors(c, NULL, SHAPE(m, n, h, d), 0, ETALON_E4M3FN, ETALON_E4M3FN, ETALON_I32, ETALON_I32);
    mqa_logits_values(c, r);
    cases_fill(&c->args.cu_seqlen_ks, 0.0);
    cases_fill(&c->args.cu_seqlen_ke, (double)n);
    cases_seal(&c->memory);
}

void mqa_logits_compress(mqa_logits_case *c, int64_t max_seqlen_k)
{
    const int64_t shape[2] = { c->args.q.shape[0], max_seqlen_k };
    c->args.logits = cases_tensor(&c->memory, NULL, CASES_OUTPUT, ETALON_F32, 2, shape);
    c->args.max_seqlen_k = max_seqlen_k;
}

/* Keys that some row of sequence b sees. */
static int64_t paged_keys(const mqa_logits_paged_shape *s, int64_t b)
{
    const int64_t room = s->table * s->block_size, columns = s->max_context_len > 0 ? s->max_context_len : room;
    int64_t       most = 0;
    for (int64_t t = 0; t < s->next_n; t++)
        most = s->lens[b * s->next_n + t] > most ? s->lens[b * s->next_n + t] : most;
    most = most < columns ? most : columns;
    return most < room ? most : room;
}

static int64_t paged_blocks(const mqa_logits_paged_shape *s, int64_t b)
{
    return (paged_keys(s, b) + s->block_size - 1) / s->block_size;
}

static etalon_tensor paged_slot(const etalon_mqa_logits_paged_args *args, int64_t block, int64_t slot)
{
    const int64_t      d = args->kv_cache.shape[args->kv_cache.rank - 1] - 4;
    const etalon_dtype dtype = args->kv_cache.dtype == ETALON_U8 ? args->q.dtype : args->kv_cache.dtype;
    return etalon_tensor_dense((char *)args->kv_cache.data + block * args->kv_cache.stride[0] + slot * d, dtype, 1, &d);
}

static etalon_tensor paged_scale(const etalon_mqa_logits_paged_args *args, int64_t block, int64_t slot)
{
    const int64_t size = args->kv_cache.shape[1], d = args->kv_cache.shape[args->kv_cache.rank - 1] - 4;
    char         *at = (char *)args->kv_cache.data + block * args->kv_cache.stride[0] + size * d + 4 * slot;
    return etalon_tensor_dense(at, ETALON_F32, 0, NULL);
}

static int64_t paged_block(const etalon_mqa_logits_paged_args *args, int64_t b, int64_t n)
{
    const etalon_tensor row = cases_fix(args->block_tables, 0, b);
    return (int64_t)cases_get(&row, n / args->kv_cache.shape[1]);
}

etalon_tensor mqa_logits_paged_key(const etalon_mqa_logits_paged_args *args, int64_t b, int64_t n)
{
    return paged_slot(args, paged_block(args, b, n), n % args->kv_cache.shape[1]);
}

etalon_tensor mqa_logits_paged_scale(const etalon_mqa_logits_paged_args *args, int64_t b, int64_t n)
{
    return paged_scale(args, paged_block(args, b, n), n % args->kv_cache.shape[1]);
}

/* All NaN. Bytes between blocks are none of its elements. */
static void make_cache(mqa_logits_paged_case *c, const mqa_logits_paged_shape *s, int64_t blocks)
{
    const int64_t       bytes = s->block_size * (s->d + 4);
    const etalon_tensor raw = cases_tensor(&c->memory, NULL, CASES_INPUT, ETALON_U8, 2, SHAPE(blocks, bytes + s->gap));
    const int64_t three[3] = { blocks, s->block_size, s->d + 4 }, four[4] = { blocks, s->block_size, 1, s->d + 4 };
    etalon_tensor cache = etalon_tensor_dense(raw.data, dtype_or(s->kv, ETALON_E4M3FN), s->head_axis ? 4 : 3,
                                              s->head_axis ? four : three);
    cache.stride[0] = raw.stride[0];
    c->args.kv_cache = cache;
    c->memory.block[c->memory.count - 1].view = cache;
    for (int64_t i = 0; i < blocks * s->block_size; i++) {
        const etalon_tensor key = paged_slot(&c->args, i / s->block_size, i % s->block_size);
        const etalon_tensor scale = paged_scale(&c->args, i / s->block_size, i % s->block_size);
        cases_poison(&key);
        cases_poison(&scale);
    }
}

/* Blocks in random order, never block 0. */
static void make_block_tables(mqa_logits_paged_case *c, rng *r, const mqa_logits_paged_shape *s, int64_t blocks)
{
    int64_t  next = 0;
    int64_t *ids = calloc((size_t)blocks + 1, sizeof *ids);
    for (int64_t i = 0; i + 1 < blocks; i++)
        ids[i] = i + 1;
    rng_shuffle(r, ids, blocks > 0 ? blocks - 1 : 0);
    c->args.block_tables =
        cases_tensor(&c->memory, s->strided ? r : NULL, CASES_INPUT, ETALON_I32, 2, SHAPE(s->b, s->table));
    for (int64_t b = 0; b < s->b; b++)
        for (int64_t i = 0; i < s->table; i++)
            cases_set(&c->args.block_tables, b * s->table + i,
                      i < paged_blocks(s, b) ? (double)ids[next++] : (double)RNG_PICK(r, -1, INT32_MIN, INT32_MAX, 0));
    free(ids);
}

static void fill_keys(mqa_logits_paged_case *c, rng *r, const mqa_logits_paged_shape *s)
{
    for (int64_t b = 0; b < s->b; b++)
        for (int64_t n = 0; n < paged_keys(s, b); n++) {
            const etalon_tensor key = mqa_logits_paged_key(&c->args, b, n),
                                scale = mqa_logits_paged_scale(&c->args, b, n);
            cases_fill_normal(&key, r, 1.0);
            cases_set(&scale, 0, exp2(4.0 * rng_unit(r) - 3.0));
        }
}

void mqa_logits_paged_make(mqa_logits_paged_case *c, rng *r, const mqa_logits_paged_shape *shape)
{
    mqa_logits_paged_shape s = *shape;
    rng                   *layout = s.strided ? r : NULL;
    const int64_t          rows = s.b * s.next_n;
    int64_t                blocks = 1 + s.spare_blocks; /* block 0 is nobody's */
    s.block_size = s.block_size == 0 ? 64 : s.block_size;
    for (int64_t i = 0; i < rows && shape->table == 0; i++)
        s.table = (s.lens[i] + s.block_size - 1) / s.block_size > s.table
                      ? (s.lens[i] + s.block_size - 1) / s.block_size
                      : s.table;
    for (int64_t b = 0; b < s.b; b++)
        blocks += paged_blocks(&s, b);
    *c = (mqa_logits_paged_case){ .args = ETALON_MQA_LOGITS_PAGED_ARGS_INIT };
    c->args.q =
        cases_tensor(&c->memory, layout, CASES_INPUT, dtype_or(s.q, ETALON_E4M3FN), 4, SHAPE(s.b, s.next_n, s.h, s.d));
    c->args.weights = cases_tensor(&c->memory, layout, CASES_INPUT, ETALON_F32, 2, SHAPE(rows, s.h));
    c->args.context_lens =
        cases_tensor(&c->memory, layout, CASES_INPUT, dtype_or(s.index, ETALON_I32), 2, SHAPE(s.b, s.next_n));
    cases_fill_normal(&c->args.q, r, 1.0);
    cases_fill_normal(&c->args.weights, r, 0.25);
    for (int64_t i = 0; i < rows; i++)
        cases_set(&c->args.context_lens, i, (double)s.lens[i]);
    make_cache(c, &s, blocks);
    make_block_tables(c, r, &s, blocks);
    fill_keys(c, r, &s);
    c->args.max_context_len = s.max_context_len;
    c->args.logits = cases_tensor(&c->memory, layout, CASES_OUTPUT, ETALON_F32, 2,
                                  SHAPE(rows, s.max_context_len > 0 ? s.max_context_len : s.table * s.block_size));
    cases_seal(&c->memory);
}

/* Draws
 * ----- */

#define DRAW_BATCH 5

static int64_t draw_length(rng *r)
{
    return RNG_PICK(r, 0, 1, 2, 3, 15, 16, 17, 31, 32, 33, 37, 63, 64, 65, 101, 127, 128, 129, 131, 255, 256, 257);
}

static int64_t draw_dim(rng *r)
{
    return RNG_PICK(r, 1, 2, 3, 7, 8, 13, 16, 31, 32, 33, 48, 64, 65, 96, 128, 129);
}

static cases_descale draw_descale(rng *r)
{
    return (cases_descale)RNG_PICK(r, CASES_DESCALE_ABSENT, CASES_DESCALE_SCALAR, CASES_DESCALE_ONE,
                                   CASES_DESCALE_HEADS);
}

static int32_t draw_window(rng *r)
{
    return (int32_t)RNG_PICK(r, 0, 0, 0, 1, 2, 5, 17, 33, 65, 400, INT32_MAX);
}

static attention_shape draw_shape(rng *r)
{
    attention_shape s = { .b = RNG_PICK(r, 0, 1, 1, 2, 2, 3, 4, DRAW_BATCH), .hkv = RNG_PICK(r, 1, 1, 2, 3) };
    s.hq = s.hkv * RNG_PICK(r, 1, 1, 2, 3, 4, 5, 8);
    s.dqk = draw_dim(r);
    s.dv = rng_chance(r, 30) ? s.dqk : draw_dim(r);
    if (rng_chance(r, 4)) { /* the largest head, few of them */
        s.hq = s.hkv = 1;
        s.dqk = ETALON_MAX_HEAD_DIM;
        s.dv = RNG_PICK(r, ETALON_MAX_HEAD_DIM, 512);
    }
    s.q = (etalon_dtype)RNG_PICK(r, ETALON_E4M3FN, ETALON_E4M3FN, ETALON_E4M3FNUZ, ETALON_BF16, ETALON_F32);
    s.kv = (etalon_dtype)RNG_PICK(r, ETALON_E4M3FN, ETALON_E4M3FN, ETALON_E4M3FNUZ, ETALON_BF16, ETALON_F32);
    s.out = (etalon_dtype)RNG_PICK(r, ETALON_BF16, ETALON_F32);
    s.index = (etalon_dtype)RNG_PICK(r, ETALON_I32, ETALON_I64);
    s.strided = rng_chance(r, 70);
    s.sigma = rng_chance(r, 70) ? 1.0 : (double)RNG_PICK(r, 8, 32); /* FP8's wider codes */
    s.spread = s.sigma == 1.0 && rng_chance(r, 50) ? 0.0 : 0.5 * (double)RNG_PICK(r, 1, 2, 4, 12);
    s.q_descale = draw_descale(r);
    s.k_descale = draw_descale(r);
    s.v_descale = draw_descale(r);
    s.no_lse = rng_chance(r, 15);
    s.causal = rng_chance(r, 50);
    s.window_left = draw_window(r);
    s.window_right = draw_window(r);
    return s;
}

/* Keeps a case to about a hundredth of a second: rows times keys times dims. */
enum { DRAW_WORK = 1500000 };

static void trim(attention_shape *s, int64_t *q_lens, int64_t *k_lens, int64_t work)
{
    for (int64_t b = 0; b < s->b; b++) {
        const int64_t row = s->hq * (s->dqk + s->dv) * s->b;
        while (q_lens[b] * k_lens[b] * row > work)
            q_lens[b] > 8 ? (q_lens[b] /= 2) : (k_lens[b] /= 2);
    }
    s->q_lens = q_lens;
    s->k_lens = k_lens;
}

void pa_mtp_draw(pa_mtp_case *c, rng *r)
{
    attention_shape s = draw_shape(r);
    int64_t         q_lens[DRAW_BATCH], k_lens[DRAW_BATCH];
    for (int64_t b = 0; b < s.b; b++) {
        q_lens[b] = rng_below(r, 9);
        k_lens[b] = draw_length(r);
    }
    s.page_size = RNG_PICK(r, 1, 2, 3, 16, 16, 17, 64, 128);
    s.spare_pages = rng_below(r, 4);
    s.layout = rng_chance(r, 40) ? ETALON_KV_HND : ETALON_KV_NHD;
    s.interleaved = s.dqk == s.dv && rng_chance(r, 60);
    trim(&s, q_lens, k_lens, DRAW_WORK);
    pa_mtp_make(c, r, &s);
}

void fmha_varlen_draw(fmha_varlen_case *c, rng *r)
{
    attention_shape s = draw_shape(r);
    int64_t         q_lens[DRAW_BATCH], k_lens[DRAW_BATCH];
    for (int64_t b = 0; b < s.b; b++) {
        q_lens[b] = draw_length(r);
        k_lens[b] = rng_chance(r, 30) ? q_lens[b] : draw_length(r);
    }
    s.give_max_seqlens = rng_chance(r, 50);
    trim(&s, q_lens, k_lens, DRAW_WORK);
    fmha_varlen_make(c, r, &s);
}

/* More keys than a split holds, at small head dims: up to three tiles of some thousand keys, and a ragged neighbour. */
static void draw_long(attention_shape *s, rng *r, int64_t *q_lens, int64_t *k_lens)
{
    s->hkv = RNG_PICK(r, 1, 1, 2);
    s->hq = s->hkv * RNG_PICK(r, 1, 2);
    s->dqk = RNG_PICK(r, 1, 4, 8, 11, 16);
    s->dv = RNG_PICK(r, 1, 3, 8, 16);
    for (int64_t b = 0; b < s->b; b++) {
        q_lens[b] = RNG_PICK(r, 1, 1, 2, 3);
        k_lens[b] = b == 0 ? RNG_PICK(r, 4095, 4096, 4097, 5001, 8192, 8193, 12289) : draw_length(r);
    }
}

/* Query rows that share a KV head: 4 tokens x 16 heads, 5 x 8, up to 130, and 300 rows of one head. */
static void draw_rows(attention_shape *s, rng *r, int64_t *q_lens, int64_t *k_lens)
{
    const int64_t group = RNG_PICK(r, 1, 2, 3, 4, 5, 8, 16, 16, 64, 130);
    s->hkv = RNG_PICK(r, 1, 1, 2);
    s->hq = s->hkv * group;
    s->dqk = RNG_PICK(r, 1, 5, 8, 12, 16, 33);
    s->dv = RNG_PICK(r, 1, 4, 7, 16, 24);
    for (int64_t b = 0; b < s->b; b++) {
        q_lens[b] = group == 1 && rng_chance(r, 40)    ? 300
                    : group == 16 && rng_chance(r, 50) ? 4
                    : group == 8 && rng_chance(r, 50)  ? 5
                                                       : rng_between(r, 1, 130 / group);
        k_lens[b] = rng_chance(r, 50) ? q_lens[b] + rng_below(r, 40) : draw_length(r);
    }
}

static void draw_dims(attention_shape *s, rng *r, int64_t *q_lens, int64_t *k_lens)
{
    s->hkv = 1;
    s->hq = RNG_PICK(r, 1, 1, 2, 5);
    s->dqk = rng_between(r, 1, ETALON_MAX_HEAD_DIM);
    s->dv = rng_between(r, 1, ETALON_MAX_HEAD_DIM);
    for (int64_t b = 0; b < s->b; b++) {
        q_lens[b] = rng_between(r, 1, 5);
        k_lens[b] = rng_between(r, 1, 200);
    }
}

/* Work for some hundredths of a second, so that the long ones stay long. */
enum { DRAW_FAR_WORK = 4 * DRAW_WORK };

static attention_shape draw_far(rng *r, int64_t *q_lens, int64_t *k_lens)
{
    attention_shape s = draw_shape(r);
    s.b = RNG_PICK(r, 1, 1, 2);
    s.kv = (etalon_dtype)RNG_PICK(r, ETALON_E4M3FN, ETALON_E4M3FN, ETALON_E4M3FNUZ);
    static void (*const kinds[])(attention_shape *, rng *, int64_t *, int64_t *) = { draw_long, draw_rows, draw_dims };
    kinds[rng_below(r, 3)](&s, r, q_lens, k_lens);
    s.strided = rng_chance(r, 30); /* fast rows refuse head dims with gaps */
    s.window_left = rng_chance(r, 20) ? s.window_left : 0;
    s.window_right = rng_chance(r, 20) ? s.window_right : 0;
    trim(&s, q_lens, k_lens, DRAW_FAR_WORK);
    return s;
}

void pa_mtp_draw_far(pa_mtp_case *c, rng *r)
{
    int64_t         q_lens[DRAW_BATCH], k_lens[DRAW_BATCH];
    attention_shape s = draw_far(r, q_lens, k_lens);
    s.page_size = RNG_PICK(r, 1, 3, 16, 16, 64, 1072);
    s.layout = rng_chance(r, 40) ? ETALON_KV_HND : ETALON_KV_NHD;
    s.interleaved = s.dqk == s.dv && rng_chance(r, 60);
    pa_mtp_make(c, r, &s);
}

void fmha_varlen_draw_far(fmha_varlen_case *c, rng *r)
{
    int64_t         q_lens[DRAW_BATCH], k_lens[DRAW_BATCH];
    attention_shape s = draw_far(r, q_lens, k_lens);
    s.q = s.kv;
    fmha_varlen_make(c, r, &s);
}

/* Shapes of the field
 * ------------------- */

static attention_shape draw_tuned(rng *r)
{
    attention_shape s = draw_shape(r);
    s.b = RNG_PICK(r, 1, 2, 3);
    s.hkv = RNG_PICK(r, 1, 1, 2);
    s.kv = ETALON_E4M3FN;
    s.out = rng_chance(r, 75) ? ETALON_BF16 : ETALON_F32;
    s.index = rng_chance(r, 95) ? ETALON_I32 : ETALON_I64;
    s.strided = rng_chance(r, 5);
    s.window_left = rng_chance(r, 5) ? s.window_left : 0;
    s.window_right = rng_chance(r, 5) ? s.window_right : 0;
    return s;
}

/* 1 to 4 tokens to verify, ragged, by 16, 8 or 4 query heads a KV head. */
void pa_mtp_draw_tuned(pa_mtp_case *c, rng *r)
{
    int64_t         q_lens[DRAW_BATCH], k_lens[DRAW_BATCH];
    attention_shape s = draw_tuned(r);
    s.hq = s.hkv * RNG_PICK(r, 16, 8, 4);
    s.dqk = s.dv = 256;
    s.q = rng_chance(r, 85) ? ETALON_BF16 : ETALON_E4M3FN;
    s.page_size = 16;
    s.spare_pages = rng_below(r, 4);
    s.layout = rng_chance(r, 10) ? ETALON_KV_HND : ETALON_KV_NHD;
    s.interleaved = rng_chance(r, 30);
    for (int64_t b = 0; b < s.b; b++) {
        q_lens[b] = rng_chance(r, 90) ? rng_between(r, 1, 4) : rng_below(r, 9);
        k_lens[b] = rng_chance(r, 90) ? q_lens[b] + draw_length(r) : draw_length(r);
    }
    trim(&s, q_lens, k_lens, DRAW_FAR_WORK);
    pa_mtp_make(c, r, &s);
}

/* Prefill, with any number of query heads a KV head. */
void fmha_varlen_draw_tuned(fmha_varlen_case *c, rng *r)
{
    int64_t         q_lens[DRAW_BATCH], k_lens[DRAW_BATCH];
    attention_shape s = draw_tuned(r);
    s.hq = s.hkv * RNG_PICK(r, 1, 1, 2, 3, 4, 8);
    s.dqk = 192;
    s.dv = 128;
    s.q = ETALON_E4M3FN;
    s.give_max_seqlens = rng_chance(r, 50);
    for (int64_t b = 0; b < s.b; b++) {
        q_lens[b] = draw_length(r);
        k_lens[b] = rng_chance(r, 30) ? q_lens[b] : draw_length(r);
    }
    trim(&s, q_lens, k_lens, DRAW_FAR_WORK);
    fmha_varlen_make(c, r, &s);
}

typedef enum windows { ALL_KEYS, CAUSAL, REQUESTS, SLIDING, ANY, WITH_EMPTY, WINDOWS } windows;

/* [first, end) of row m of `rows`, over n keys. */
static void draw_one_window(rng *r, windows kind, int64_t m, int64_t rows, int64_t n, int64_t *first, int64_t *end)
{
    const int64_t causal = n - rows + m + 1, request = 1 + rows / 3;
    *first = 0;
    *end = n;
    switch (kind) {
    case ALL_KEYS:
    case WINDOWS:
        break;
    case CAUSAL:
        *end = causal;
        break;
    case REQUESTS: /* rows of a request see its keys alone */
        *first = m / request * request * n / rows;
        *end = (m / request + 1) * request * n / rows;
        break;
    case SLIDING:
        *end = causal;
        *first = causal - 33;
        break;
    case ANY: /* at no boundary of a tile */
        *first = rng_below(r, n + 1);
        *end = rng_below(r, n + 8);
        break;
    case WITH_EMPTY:
        *end = m % 2 == 0 ? causal : 0;
        break;
    }
}

static void mqa_logits_from(mqa_logits_case *c, rng *r, int64_t *mnhd, int64_t work)
{
    while (mnhd[0] * mnhd[1] * mnhd[2] * mnhd[3] > work)
        mnhd[0] > mnhd[1] ? (mnhd[0] /= 2) : (mnhd[1] /= 2);
    const etalon_dtype formats[2] = { ETALON_E4M3FN, ETALON_E4M3FNUZ }, indices[2] = { ETALON_I32, ETALON_I64 };
    const int64_t      n = mnhd[1];
    const int64_t      width = rng_chance(r, 35) ? RNG_PICK(r, 1, n / 2 + 1, n + 1, n + 300) : 0;
    mqa_logits_tensors(c, rng_chance(r, 70) ? r : NULL, mnhd, width, formats[rng_below(r, 2)], formats[rng_below(r, 2)],
                       indices[rng_below(r, 2)], indices[rng_below(r, 2)]);
    mqa_logits_values(c, r);
    for (int64_t m = 0; m < mnhd[0]; m++) {
        cases_set(&c->args.cu_seqlen_ks, m, (double)RNG_PICK(r, 0, 0, -3, n / 3, n / 2, n - 1, n, n + 5, INT32_MIN));
        cases_set(&c->args.cu_seqlen_ke, m, (double)RNG_PICK(r, n, n, n / 2, n / 2 + 1, 0, -1, 1, n + 7, INT32_MAX));
    }
    if (rng_chance(r, 30)) { /* scales of the field: powers of two, and 0 */
        for (int64_t i = 0; i < n; i++)
            cases_set(&c->args.kv_scale, i, rng_chance(r, 10) ? 0.0 : exp2((double)rng_between(r, -12, 3)));
    }
    c->args.clean_logits = rng_chance(r, 50);
    cases_seal(&c->memory);
}

void mqa_logits_draw(mqa_logits_case *c, rng *r)
{
    int64_t mnhd[4] = { RNG_PICK(r, 0, 1, 2, 3, 7, 17, 31, 32, 33), draw_length(r),
                        RNG_PICK(r, 1, 2, 3, 7, 8, 16, 32, 33), draw_dim(r) };
    mqa_logits_from(c, r, mnhd, DRAW_WORK);
}

void mqa_logits_draw_far(mqa_logits_case *c, rng *r)
{
    int64_t few[4] = { rng_between(r, 1, 5), rng_between(r, 1, 300), rng_between(r, 1, 70),
                       rng_between(r, 1, ETALON_MAX_HEAD_DIM) };
    int64_t many[4] = { rng_between(r, 1, 9), RNG_PICK(r, 4095, 4096, 4097, 8193), RNG_PICK(r, 1, 2, 5), draw_dim(r) };
    int64_t rows[4] = { rng_between(r, 1, 300), draw_length(r), RNG_PICK(r, 1, 4, 32, 64), RNG_PICK(r, 1, 8, 13) };
    int64_t *const kinds[3] = { few, many, rows };
    mqa_logits_from(c, r, kinds[rng_below(r, 3)], DRAW_FAR_WORK);
}

void mqa_logits_draw_tuned(mqa_logits_case *c, rng *r)
{
    const windows kind = (windows)rng_below(r, WINDOWS);
    int64_t       mnhd[4] = { RNG_PICK(r, 1, 2, 3, 7, 17, 31, 32, 33), draw_length(r), RNG_PICK(r, 32, 64), 128 };
    while (mnhd[0] * mnhd[1] * mnhd[2] * mnhd[3] > 2 * DRAW_FAR_WORK)
        mnhd[0] > mnhd[1] ? (mnhd[0] /= 2) : (mnhd[1] /= 2);
    mqa_logits_tensors(c, rng_chance(r, 15) ? r : NULL, mnhd, 0, ETALON_E4M3FN, ETALON_E4M3FN, ETALON_I32, ETALON_I32);
    mqa_logits_values(c, r);
    for (int64_t m = 0; m < mnhd[0]; m++) {
        int64_t first, end;
        draw_one_window(r, kind, m, mnhd[0], mnhd[1], &first, &end);
        cases_set(&c->args.cu_seqlen_ks, m, (double)first);
        cases_set(&c->args.cu_seqlen_ke, m, (double)end);
    }
    c->args.clean_logits = rng_chance(r, 50);
    cases_seal(&c->memory);
}

enum { DRAW_PAGED_ROWS = 40 };

/* Lengths of the rows of a sequence: 1-D ones of the field, which grow by a key a row, or any. */
static void draw_lens(mqa_logits_paged_shape *s, rng *r, int64_t *lens, int64_t most)
{
    for (int64_t b = 0; b < s->b; b++) {
        const int64_t own = most > 1000 ? most - rng_below(r, 3) : draw_length(r) % (most + 1);
        const bool    ragged = rng_chance(r, 30);
        for (int64_t t = 0; t < s->next_n; t++)
            lens[b * s->next_n + t] = ragged ? draw_length(r) % (most + 1) : own - s->next_n + t + 1; /* < 0, too */
    }
    s->lens = lens;
}

static void mqa_logits_paged_from(mqa_logits_paged_case *c, rng *r, mqa_logits_paged_shape *s, int64_t most,
                                  int64_t work)
{
    int64_t      lens[DRAW_PAGED_ROWS];
    etalon_dtype formats[3] = { ETALON_E4M3FN, ETALON_E4M3FNUZ, ETALON_U8 };
    while (s->b * s->next_n * s->h * s->d * most > work)
        most /= 2;
    draw_lens(s, r, lens, most);
    s->block_size = s->block_size * s->d % 4 == 0 ? s->block_size : 4 * s->block_size;
    s->table = (most + s->block_size - 1) / s->block_size + rng_below(r, 2);
    if (rng_chance(r, 10) && s->b > 0) /* all that there is room for */
        lens[rng_below(r, s->b * s->next_n)] = INT32_MAX;
    s->max_context_len = rng_chance(r, 50) ? RNG_PICK(r, 1, most / 2 + 1, most + 1, most + 300) : 0;
    s->spare_blocks = rng_below(r, 3);
    s->gap = 4 * RNG_PICK(r, 0, 0, 1, 5, 16);
    s->q = formats[rng_below(r, 2)];
    s->kv = formats[rng_below(r, 3)];
    s->index = (etalon_dtype)RNG_PICK(r, ETALON_I32, ETALON_I64);
    s->strided = rng_chance(r, 60);
    s->head_axis = rng_chance(r, 50);
    mqa_logits_paged_make(c, r, s);
    c->args.clean_logits = rng_chance(r, 50);
}

void mqa_logits_paged_draw(mqa_logits_paged_case *c, rng *r)
{
    mqa_logits_paged_shape s = { .b = RNG_PICK(r, 0, 1, 2, 3, 5),
                                 .next_n = rng_between(r, 1, 8),
                                 .h = RNG_PICK(r, 1, 2, 3, 8, 16, 32, 33),
                                 .d = draw_dim(r),
                                 .block_size = RNG_PICK(r, 1, 2, 3, 16, 32, 64, 64, 64) };
    mqa_logits_paged_from(c, r, &s, 257, DRAW_WORK);
}

/* Many keys, many heads, any head dim. */
void mqa_logits_paged_draw_far(mqa_logits_paged_case *c, rng *r)
{
    mqa_logits_paged_shape kinds[3] = {
        { .b = 1, .next_n = rng_between(r, 1, 8), .h = RNG_PICK(r, 1, 2), .d = RNG_PICK(r, 1, 8, 13) },
        { .b = 2, .next_n = rng_between(r, 1, 8), .h = RNG_PICK(r, 64, 128, 200), .d = RNG_PICK(r, 4, 32, 128) },
        { .b = 1, .next_n = 1, .h = rng_between(r, 1, 70), .d = rng_between(r, 1, ETALON_MAX_HEAD_DIM) },
    };
    const int            kind = (int)rng_below(r, 3);
    static const int64_t most[3] = { 8192, 257, 257 };
    kinds[kind].block_size = RNG_PICK(r, 16, 64, 64, 1072);
    mqa_logits_paged_from(c, r, &kinds[kind], most[kind], DRAW_FAR_WORK);
}

void merge_states_draw(merge_states_case *c, rng *r)
{
    const int64_t      t = RNG_PICK(r, 0, 1, 2, 5, 17), h = RNG_PICK(r, 1, 2, 3, 8), d = draw_dim(r);
    const etalon_dtype dtypes[2] = { ETALON_F32, ETALON_BF16 }, in = dtypes[rng_below(r, 2)];
    rng               *layout = rng_chance(r, 70) ? r : NULL;
    *c = (merge_states_case){ .args = ETALON_MERGE_STATES_ARGS_INIT };
    etalon_tensor *out[2] = { &c->args.out_a, &c->args.out_b }, *lse[2] = { &c->args.lse_a, &c->args.lse_b };
    for (int side = 0; side < 2; side++) {
        *out[side] = cases_tensor(&c->memory, layout, CASES_INPUT, in, 3, SHAPE(t, h, d));
        *lse[side] = cases_tensor(&c->memory, layout, CASES_INPUT, ETALON_F32, 2, SHAPE(h, t));
        for (int64_t row = 0; row < h * t; row++) {
            const etalon_tensor cell = cases_fix(cases_fix(*out[side], 0, row % t), 0, row / t);
            const bool          empty = rng_chance(r, 25);
            cases_set(lse[side], row,
                      empty ? (rng_chance(r, 50) ? -(double)INFINITY : (double)INFINITY) : 4.0 * rng_normal(r));
            if (!empty) /* an empty side keeps its NaN */
                cases_fill_normal(&cell, r, 1.0);
        }
    }
    c->args.out = cases_tensor(&c->memory, layout, CASES_OUTPUT, dtypes[rng_below(r, 2)], 3, SHAPE(t, h, d));
    if (rng_chance(r, 80))
        c->args.lse = cases_tensor(&c->memory, layout, CASES_OUTPUT, ETALON_F32, 2, SHAPE(h, t));
    cases_seal(&c->memory);
}
