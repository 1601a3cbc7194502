/* Samples: every number as likely as any other, each output bit for bit that of the whole problem, wrong ones found and
 * named, and little memory for a large file. */
#include "testing.h"

#include "generate.h"
#include "random.h"
#include "sample.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <math.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define SLACK 0x1p-10 /* kernels that add up a bound's sums in different orders differ by far less */

static glob_t vectors;

/* A problem computed whole by its reference row, and a sample of it. */
typedef struct subject {
    const char      *name;
    etalon_context  *ctx;
    tensorfile       file;
    bool             generated;
    oracle_problem   problem;
    oracle_result    whole;
    sample           sample;
    tensorfile_error error;
} subject;

#define ck_assert_done(s, call) ck_assert_msg(call, "%s: %s", (s)->name, (s)->error.text)

static void compute_whole(subject *s)
{
    const etalon_context_options one = { .size = sizeof one,
                                         .threads = 1,
                                         .device = ETALON_HOST }; /* one row has no work for more */
    ck_assert_ok(etalon_context_create(&one, &s->ctx));
    ck_assert_done(s, oracle_bind(&s->file, NULL, &s->problem, &s->error));
    ck_assert_done(s, oracle_run(s->ctx, &s->problem, s->problem.op->reference, &s->whole, &s->error));
}

static void open_vector(subject *s, int i)
{
    *s = (subject){ .name = vectors.gl_pathv[i] };
    ck_assert_done(s, tensorfile_read(s->name, &s->file, &s->error));
    compute_whole(s);
}

static void open_generated(subject *s, const char *op, const char *pattern, const char *shape)
{
    *s = (subject){ .name = shape, .generated = true };
    const generate_request request = {
        .op = oracle_find_op(op, &s->error), .shape = &s->name, .shape_count = 1, .pattern = pattern, .seed = 3
    };
    ck_assert_done(s, generate(&request, &s->file, &s->error));
    compute_whole(s);
}

static void draw(subject *s, int64_t count, uint64_t seed)
{
    sample_free(&s->sample);
    ck_assert_done(s, sample_draw(&s->problem, count, seed, &s->sample, &s->error));
}

static void close_subject(subject *s)
{
    sample_free(&s->sample);
    oracle_result_free(&s->whole);
    (s->generated ? generate_free : tensorfile_free)(&s->file);
    etalon_context_destroy(s->ctx);
}

/* Drawing
 * -------
 */
START_TEST(draws_are_fair)
{
    enum { OF = 7, COUNT = 3, SETS = 35 /* 7 choose 3 */, EACH = 200, MOST_OFF = 70 /* 5 sqrt(200) */ };
    int     seen[1 << OF] = { 0 }, sets = 0;
    subject s;
    open_generated(&s, "merge_states", NULL, "tokens=7,heads=1,dim=1");
    for (uint64_t seed = 0; seed < SETS * EACH; seed++) {
        int set = 0;
        draw(&s, COUNT, seed);
        ck_assert_int_eq(s.sample.count, COUNT);
        ck_assert_int_eq(s.sample.of, OF);
        for (int n = 0; n < COUNT; n++) {
            const int64_t x = s.sample.number[n];
            ck_assert_int_ge(x, 0);
            ck_assert_int_lt(x, OF);
            ck_assert(n == 0 || x > s.sample.number[n - 1]);
            set |= 1 << x;
        }
        seen[set]++;
    }
    for (int set = 0; set < 1 << OF; set++) {
        ck_assert(seen[set] == 0 || abs(seen[set] - EACH) < MOST_OFF);
        sets += seen[set] > 0;
    }
    ck_assert_int_eq(sets, SETS);
    close_subject(&s);
}
END_TEST

START_TEST(draws_follow_the_seed)
{
    enum { COUNT = 40 };
    int64_t first[COUNT];
    subject s;
    open_generated(&s, "mqa_logits", NULL, "m=48,n=210,heads=1,dim=1");
    draw(&s, COUNT, 5);
    ck_assert_int_eq(s.sample.of, 48 * 210);
    ck_assert_str_eq(sample_unit(&s.sample), "elements");
    memcpy(first, s.sample.number, sizeof first);
    draw(&s, COUNT, 5);
    ck_assert_mem_eq(first, s.sample.number, sizeof first);
    draw(&s, COUNT, 6);
    ck_assert_mem_ne(first, s.sample.number, sizeof first);
    draw(&s, INT64_MAX, 5);
    ck_assert_int_eq(s.sample.count, s.sample.of);
    for (int64_t n = 0; n < s.sample.count; n++)
        ck_assert_int_eq(s.sample.number[n], n);
    close_subject(&s);
}
END_TEST

/* The same bits, the same verdicts
 * --------------------------------
 */
static void expect_same_bits(subject *s, const char *kernel, const oracle_result *whole)
{
    oracle_result sampled;
    ck_assert_done(s, sample_run(s->ctx, &s->sample, kernel, &sampled, &s->error));
    for (int o = 0; o < s->problem.op->output_count; o++) {
        etalon_tensor want;
        ck_assert_done(s, sample_gather(&s->sample, o, &whole->tensor[o], &want, &s->error));
        ck_assert_int_eq(oracle_elements(&want), oracle_elements(&sampled.tensor[o]));
        ck_assert_msg(memcmp(sampled.tensor[o].data, want.data, (size_t)oracle_elements(&want) * sizeof(float)) == 0,
                      "%s: %s: output %d of the sample is not that of the whole", s->name, kernel, o);
        free(want.data);
    }
    oracle_result_free(&sampled);
}

static etalon_tensor expected(subject *s, int output)
{
    const tensorfile_entry *entry;
    ck_assert_done(s, oracle_find_tensor(&s->file, s->problem.op->outputs[output].expected, &entry, &s->error));
    ck_assert_msg(entry != NULL, "%s: no %s", s->name, s->problem.op->outputs[output].expected);
    return entry->tensor;
}

static verdict judge_whole(subject *s, const bound *b, bound_class class, int output, const etalon_tensor *got)
{
    verdict v;
    ck_assert_done(s, bound_judge(b, class, output, got, &s->whole.tensor[output], false, &v, &s->error));
    return v;
}

static verdict judge_sample(subject *s, const bound *b, bound_class class, int output, const etalon_tensor *got)
{
    verdict       v;
    etalon_tensor x, y;
    ck_assert_done(s, sample_gather(&s->sample, output, got, &x, &s->error));
    ck_assert_done(s, sample_gather(&s->sample, output, &s->whole.tensor[output], &y, &s->error));
    ck_assert_done(s, sample_judge(&s->sample, b, class, output, &x, &y, false, &v, &s->error));
    free(x.data);
    free(y.data);
    return v;
}

/* A bound over a row's own keys is at most that over all keys of its sequence. */
static void expect_same_verdict(subject *s, const bound *all, const bound *some, bound_class class, int output,
                                const etalon_tensor *got)
{
    const verdict want = judge_whole(s, all, class, output, got), is = judge_sample(s, some, class, output, got);
    ck_assert_msg(want.pass == is.pass, "%s: output %d: %d by the whole, %d by the sample", s->name, output, want.pass,
                  is.pass);
    ck_assert_int_eq(want.m.elements, is.m.elements);
    ck_assert_int_eq(want.m.compared, is.m.compared);
    ck_assert_int_eq(want.m.inf_mismatches, is.m.inf_mismatches);
    ck_assert_int_eq(want.m.nan_mismatches, is.m.nan_mismatches);
    ck_assert_int_eq(want.unbounded_rows, is.unbounded_rows);
    ck_assert_double_eq(want.m.max_abs, is.m.max_abs);
    ck_assert_double_ge(is.m.max_bound_ratio, want.m.max_bound_ratio * (1.0 - SLACK));
    ck_assert_double_ge(is.row_ratio, want.row_ratio * (1.0 - SLACK));
}

/* Expected tensors, and zeros in their place. */
START_TEST(vector_agrees)
{
    subject s;
    open_vector(&s, _i);
    draw(&s, INT64_MAX, 1);
    expect_same_bits(&s, s.problem.op->reference, &s.whole);
    bound all, some;
    ck_assert_done(&s, bound_prepare(s.ctx, &s.problem, BOUND_FP8, &all, &s.error));
    ck_assert_done(&s, sample_bound(s.ctx, &s.sample, BOUND_FP8, &some, &s.error));
    for (int o = 0; o < s.problem.op->output_count; o++) {
        const etalon_tensor good = expected(&s, o);
        etalon_tensor       zeros;
        ck_assert_done(&s, oracle_allocate("zeros", ETALON_BF16, good.rank, good.shape, &zeros, &s.error));
        for (bound_class class = BOUND_FP32; class <= BOUND_FP8; class ++) {
            expect_same_verdict(&s, &all, &some, class, o, &good);
            expect_same_verdict(&s, &all, &some, class, o, &zeros);
            ck_assert_msg(!judge_sample(&s, &some, class, o, &zeros).pass, "%s: zeros pass", s.name);
        }
        free(zeros.data);
    }
    bound_free(&all);
    bound_free(&some);
    close_subject(&s);
}
END_TEST

static const struct {
    const char *op, *pattern, *shape;
} problems[] = {
    { "pa_mtp", "page-shuffle",
      "batch=3,ctx=70,q_len=5,heads=8,kv_heads=2,dim=32,page=7,layout=hnd,descale=2,index=i64" },
    { "pa_mtp", "ragged", "batch=4,ctx=70,q_len=5,heads=4,kv_heads=4,dim=24,v_dim=40,page=16,descale=2" },
    { "pa_mtp", "poisoned", "batch=2,ctx=300,heads=4,dim=32,causal=0,window_left=9,window_right=2" },
    { "pa_mtp", "random", "batch=2,ctx=300,heads=4,dim=32,window_left=130" },
    { "pa_mtp", "random", "batch=2,ctx=30,heads=4,dim=32,window_left=0" },
    { "pa_mtp", "random", "batch=2,ctx=30,heads=4,dim=32,causal=0,window_left=3" },
    { "pa_mtp", "random", "batch=2,ctx=30,heads=4,dim=32,causal=0,window_right=1,dtype=bf16,q_dtype=f32,descale=0" },
    { "pa_mtp", "empty", "ctx=20,heads=4,dim=32" },
    { "fmha_varlen", "ragged", "ctx=150,q_len=60,heads=6,kv_heads=3,dim=24,v_dim=16,causal=1,descale=2,index=i64" },
    { "fmha_varlen", "random", "batch=2,ctx=17,q_len=40,dim=32,v_dim=32,causal=1" },
    { "fmha_varlen", "random", "batch=2,ctx=300,q_len=40,dim=32,v_dim=32,causal=0,window_left=140,window_right=5" },
    { "fmha_varlen", "random", "batch=2,ctx=40,q_len=40,dim=32,v_dim=32,causal=0,window_left=3" },
    { "fmha_varlen", "random", "batch=2,ctx=10,q_len=40,dim=32,v_dim=32,causal=0,window_left=30,window_right=0" },
    { "fmha_varlen", "empty", "dim=32,v_dim=32" },
    { "mqa_logits", "misaligned", "m=9,n=40,heads=4,dim=32,clean=0" },
    { "mqa_logits", "poisoned", "m=9,n=40,heads=4,dim=32,index=i64" },
    { "mqa_logits", "past-end", "m=9,n=40,heads=4,dim=32" },
    { "mqa_logits", "misaligned", "m=9,n=40,heads=4,dim=32,max_seqlen_k=11" },
    { "mqa_logits", "past-end", "m=9,n=40,heads=4,dim=32,max_seqlen_k=50,clean=0" },
    { "mqa_logits_paged", "page-shuffle", "batch=3,next_n=3,ctx=70,heads=4,dim=33,page=12,dtype=e4m3fnuz" },
    { "mqa_logits_paged", "poisoned", "batch=2,next_n=2,ctx=70,heads=4,dim=32,clean=0,max_context_len=50" },
    { "mqa_logits_paged", "empty", "next_n=4,ctx=20,heads=4,dim=32,index=i64,max_context_len=100" },
    { "merge_states", "empty", "tokens=9,heads=3,dim=8" },
    { "merge_states", "peaked", "tokens=9,heads=3,dim=8,dtype=bf16" },
};

/* Every mask, layout and descale, on the rows whose bits depend on a row alone; in whole and in part. */
START_TEST(problem_agrees)
{
    subject       s;
    oracle_result model;
    char          name[64];
    open_generated(&s, problems[_i].op, problems[_i].pattern, problems[_i].shape);
    snprintf(name, sizeof name, "%s_model", problems[_i].op);
    const bool attends = s.problem.op->id == ORACLE_PA_MTP || s.problem.op->id == ORACLE_FMHA_VARLEN;
    if (attends)
        ck_assert_done(&s, oracle_run(s.ctx, &s.problem, name, &model, &s.error));
    for (int64_t count = 17; count > 0; count = count == 17 ? INT64_MAX : 0) {
        draw(&s, count, 1);
        expect_same_bits(&s, s.problem.op->reference, &s.whole);
        if (attends)
            expect_same_bits(&s, name, &model);
    }
    if (attends)
        oracle_result_free(&model);
    close_subject(&s);
}
END_TEST

/* Wrong elements
 * --------------
 */
enum { DRAWN = 12 };

static bool is_drawn(const sample *s, int64_t number)
{
    for (int64_t n = 0; n < s->count; n++)
        if (s->number[n] == number)
            return true;
    return false;
}

/* Spoils the last element of one output number and judges. */
static verdict judge_spoilt(subject *s, const bound *b, bound_class class, int output, int64_t number, int64_t *index)
{
    etalon_tensor got = expected(s, output);
    const int64_t outer = number / s->sample.inner, inner = number % s->sample.inner;
    index[0] = output == 0 ? outer : inner;
    index[1] = output == 0 ? inner : outer;
    index[2] = got.rank == 3 ? got.shape[2] - 1 : 0;
    float      *at = (float *)got.data + index[0] * got.stride[0] + index[1] * got.stride[1] + index[2];
    const float was = *at;
    *at = isfinite(was) ? was + 1e4f : 0.0f; /* a private mapping */
    const verdict v = judge_sample(s, b, class, output, &got);
    *at = was;
    return v;
}

static void expect_found(subject *s, const bound *b, bound_class class, int output, int64_t n)
{
    int64_t       index[3];
    const verdict v = judge_spoilt(s, b, class, output, s->sample.number[n], index);
    const size_t  bytes = (size_t)v.m.rank * sizeof index[0];
    ck_assert_msg(!v.pass, "%s: output %d: a wrong element passes", s->name, output);
    ck_assert(v.m.has_worst && v.m.has_first);
    ck_assert_mem_eq(v.m.worst.index, index, bytes);
    ck_assert_mem_eq(v.m.first.index, index, bytes);
    if (v.rows_over > 0)
        ck_assert_mem_eq(v.row, index, sizeof v.row);
}

START_TEST(wrong_elements_are_found)
{
    subject s;
    bound   b;
    open_vector(&s, _i);
    draw(&s, DRAWN, 2);
    ck_assert_int_eq(s.sample.count, DRAWN);
    ck_assert_done(&s, sample_bound(s.ctx, &s.sample, BOUND_FP8, &b, &s.error));
    for (int o = 0; o < s.problem.op->output_count; o++)
        for (bound_class class = BOUND_FP32; class <= BOUND_FP8; class ++) {
            int64_t other = 0, index[3];
            for (int64_t n = 0; n < DRAWN; n++)
                expect_found(&s, &b, class, o, n);
            while (is_drawn(&s.sample, other))
                other++;
            ck_assert(judge_spoilt(&s, &b, class, o, other, index).pass);
        }
    bound_free(&b);
    close_subject(&s);
}
END_TEST

/* calc_diff of a sample
 * ---------------------
 * All elements 1 % off are beyond doubt. One that is far off says little about those that were not drawn.
 */
static int64_t largest(const etalon_tensor *t)
{
    const float *x = t->data;
    int64_t      at = 0;
    for (int64_t n = 0; n < oracle_elements(t); n++)
        if (isfinite(x[n]) && !(isfinite(x[at]) && fabsf(x[n]) <= fabsf(x[at])))
            at = n;
    return at;
}

static verdict judge_scaled(subject *s, const bound *b, double all, double one)
{
    verdict       v;
    etalon_tensor got;
    oracle_result want;
    ck_assert_done(s, sample_run(s->ctx, &s->sample, s->problem.op->reference, &want, &s->error));
    ck_assert_done(s, oracle_allocate("got", ETALON_F32, 2, want.tensor[0].shape, &got, &s->error));
    const int64_t far = largest(&want.tensor[0]);
    for (int64_t n = 0; n < s->sample.count; n++)
        ((float *)got.data)[n] = (float)(((const float *)want.tensor[0].data)[n] * (n == far ? one : all));
    ck_assert_done(s, sample_judge(&s->sample, b, BOUND_FP8, 0, &got, &want.tensor[0], false, &v, &s->error));
    free(got.data);
    oracle_result_free(&want);
    return v;
}

START_TEST(calc_diff_fails_beyond_doubt)
{
    static const struct {
        int64_t count;
        double  all, one;
        bool    over;
    } cases[] = {
        { 2000, 1.01, 1.01, true }, /* r = 5e-5, ten times the bar */
        { 2000, 1.0, 1.0, false },     { 100, 1.01, 1.01, true },
        { 100, 1.0, 1.1, false },      /* one of a hundred: the standard error is about r itself */
        { 10, 1.01, 1.01, false },     /* too few to tell */
        { INT64_MAX, 1.0, 3.0, true }, /* nothing is left to chance: the rule as it is */
    };
    subject s;
    bound   b;
    open_generated(&s, "mqa_logits", "random", _i % 2 == 0 ? "m=30,n=80,heads=4,dim=32" : "m=40,n=60,heads=4,dim=32");
    draw(&s, cases[_i].count, 1);
    ck_assert_done(&s, sample_bound(s.ctx, &s.sample, BOUND_FP8, &b, &s.error));
    const verdict v = judge_scaled(&s, &b, cases[_i].all, cases[_i].one);
    ck_assert_msg(v.calc_diff_over == cases[_i].over, "calc_diff %g of a sample of %" PRId64, v.m.calc_diff,
                  s.sample.count);
    ck_assert(!v.calc_diff_over || !v.pass);
    ck_assert((v.m.calc_diff > 5e-6 /* the bar */) == (cases[_i].one > 1.0));
    bound_free(&b);
    close_subject(&s);
}
END_TEST

/* A file of 20 GiB
 * ----------------
 * Sparse, so that it takes no room: zeros are FP8 numbers, and lengths and pages are written.
 */
enum { PAGES = 81920, KV_HEADS = 8, PAGE = 64, DIM = 256, BATCH = 5120, Q_LEN = 2, HEADS = 16 };

static bool write_indices(int file, off_t at)
{
    const int page_count = PAGES / BATCH, keys = page_count * PAGE;
    int32_t  *all = malloc((size_t)(PAGES + BATCH + BATCH + 1) * sizeof *all), *next = all;
    for (int i = 0; i < PAGES; i++)
        *next++ = PAGES - 1 - i;
    for (int b = 0; b <= BATCH; b++)
        *next++ = b * Q_LEN;
    for (int b = 0; b < BATCH; b++)
        *next++ = keys;
    const size_t bytes = (size_t)((char *)next - (char *)all);
    const bool   ok = pwrite(file, all, bytes, at) == (ssize_t)bytes;
    free(all);
    return ok;
}

static bool write_sparse(const char *path)
{
    char          header[1200];
    const int64_t table = 4LL * PAGES, cu = table + 4LL * (BATCH + 1), lens = cu + 4LL * BATCH;
    const int64_t out = lens + 2LL * BATCH * Q_LEN * HEADS * DIM, q = out + 1LL * BATCH * Q_LEN * HEADS * DIM;
    const int64_t cache = 1LL * PAGES * KV_HEADS * PAGE * DIM, k = q + cache, v = k + cache;
    const int     length = snprintf(
        header, sizeof header,
        "{\"__metadata__\":{\"op\":\"pa_mtp\",\"kv_layout\":\"HND\"},"
        "\"block_tables\":{\"dtype\":\"I32\",\"shape\":[%d,%d],\"data_offsets\":[0,%" PRId64 "]},"
        "\"cu_seqlens_q\":{\"dtype\":\"I32\",\"shape\":[%d],\"data_offsets\":[%" PRId64 ",%" PRId64 "]},"
        "\"seq_lens\":{\"dtype\":\"I32\",\"shape\":[%d],\"data_offsets\":[%" PRId64 ",%" PRId64 "]},"
        "\"out\":{\"dtype\":\"BF16\",\"shape\":[%d,%d,%d],\"data_offsets\":[%" PRId64 ",%" PRId64 "]},"
        "\"q\":{\"dtype\":\"F8_E4M3\",\"shape\":[%d,%d,%d],\"data_offsets\":[%" PRId64 ",%" PRId64 "]},"
        "\"k_cache\":{\"dtype\":\"F8_E4M3\",\"shape\":[%d,%d,%d,%d],\"data_offsets\":[%" PRId64 ",%" PRId64 "]},"
        "\"v_cache\":{\"dtype\":\"F8_E4M3\",\"shape\":[%d,%d,%d,%d],\"data_offsets\":[%" PRId64 ",%" PRId64 "]}}",
        BATCH, PAGES / BATCH, table, BATCH + 1, table, cu, BATCH, cu, lens, BATCH * Q_LEN, HEADS, DIM, lens, out,
        BATCH * Q_LEN, HEADS, DIM, out, q, PAGES, KV_HEADS, PAGE, DIM, q, k, PAGES, KV_HEADS, PAGE, DIM, k, v);
    const int padded = (length + 7) / 8 * 8, file = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    memset(header + length, ' ', (size_t)(padded - length));
    const uint64_t prefix = (uint64_t)padded;
    const bool     ok = file >= 0 && pwrite(file, &prefix, 8, 0) == 8 &&
                        pwrite(file, header, (size_t)padded, 8) == padded && write_indices(file, 8 + padded) &&
                        ftruncate(file, 8 + padded + v) == 0;
    const int      cause = errno;
    if (file >= 0)
        close(file);
    if (!ok)
        printf("# skipped: a sparse file of %" PRId64 " bytes: %s\n", v, strerror(cause));
    fflush(stdout);
    return ok;
}

/* Runs etalon check on it; the exit code, and the most memory that it had at once, in bytes. */
static int check_file(const char *path, int64_t *peak)
{
    struct rusage usage;
    int           status;
    const char   *program = getenv("ETALON");
    ck_assert_msg(program != NULL, "ETALON is not set");
    const pid_t child = fork();
    if (child == 0) {
        execl(program, program, "check", "--sample", "64", path, (char *)NULL);
        _exit(127);
    }
    ck_assert(child > 0 && wait4(child, &status, 0, &usage) == child && WIFEXITED(status));
    *peak = usage.ru_maxrss * 1024LL;
    return WEXITSTATUS(status);
}

START_TEST(huge_file_takes_little_memory)
{
    enum {
        BYTES_MOST = 1 << 30
    }; /* of 20 << 30 in the file; 64 rows read 32 << 20, and the system maps what is near */
    char        directory[256], path[300];
    int64_t     peak = 0;
    int         code = 0;
    const char *temporary = getenv("TMPDIR");
    snprintf(directory, sizeof directory, "%s/etalon-sample.XXXXXX", temporary == NULL ? "/tmp" : temporary);
    ck_assert(mkdtemp(directory) != NULL);
    snprintf(path, sizeof path, "%s/huge", directory);
    if (write_sparse(path))
        code = check_file(path, &peak);
    unlink(path);
    rmdir(directory);
    ck_assert_int_eq(code, 0);
    ck_assert_msg(peak < BYTES_MOST, "%" PRId64 " bytes of memory", peak);
}
END_TEST

static void fill(TCase *tcase)
{
    char        pattern[4096];
    const char *directory = getenv("ETALON_VECTORS");
    snprintf(pattern, sizeof pattern, "%s/*.safetensors", directory == NULL ? "tests/vectors" : directory);
    if (glob(pattern, 0, NULL, &vectors) != 0) {
        printf("Bail out! no vector matches %s\n", pattern);
        exit(EXIT_FAILURE);
    }
    tcase_add_test(tcase, draws_are_fair);
    tcase_add_test(tcase, draws_follow_the_seed);
    tcase_add_loop_test(tcase, vector_agrees, 0, (int)vectors.gl_pathc);
    tcase_add_loop_test(tcase, problem_agrees, 0, (int)(sizeof problems / sizeof problems[0]));
    tcase_add_loop_test(tcase, wrong_elements_are_found, 0, (int)vectors.gl_pathc);
    tcase_add_loop_test(tcase, calc_diff_fails_beyond_doubt, 0, 6);
    tcase_add_test(tcase, huge_file_takes_little_memory);
}

int main(void)
{
    return testing_main("sample", fill);
}
