/* The bug catalogue: faults that were reported against attention kernels in the field, each as a small input with
 * its right answer. A test carries the number of its entry.
 *
 * Entries without a test of their own here, and why:
 *
 *   B12 B17 B19 B25 B36 B43 B48 B49 B63 B65   numbers that the catalogue does not use
 *   B31       an integer division in a segment reduction; its input, empty parts merged, is B24 and B30
 *   B42       races of GPU kernels in shared memory; B41 and `twenty_repeats` are the CPU's share
 *   B53       scale interleave of an MXFP4 cache, a format that no operation here takes
 *   B58 B62   faults of the quantiser, which runs before these operations
 *
 * B33, B45, B46, B50 and B51 are about the paged form of the indexer; they are tested in the other forms, too: empty
 * windows, tables of several sequences, rows of several requests, lengths around 2048, distinct scales. */
#include "cases.h"
#include "testing.h"
#include "twin.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <sys/mman.h>

#define LENS(...) ((const int64_t[]){ __VA_ARGS__ })
#define COUNT_OF(list) (sizeof(list) / sizeof((list)[0]))

static rng stream(int number)
{
    return rng_make(cases_seed(), 0xB000u + (uint64_t)number);
}

/* Address space without memory behind it: only the pages that are touched cost anything. NULL, and a line that says
 * so, where the system refuses. */
typedef struct sparse {
    void  *data;
    size_t bytes;
} sparse;

static bool sparse_make(sparse *s, int64_t bytes)
{
    s->bytes = (size_t)bytes;
    s->data = mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (s->data != MAP_FAILED)
        return true;
    printf("# skipped: %zu bytes of address space: %s\n", s->bytes, strerror(errno));
    fflush(stdout);
    return false;
}

static void sparse_free(sparse *s)
{
    munmap(s->data, s->bytes);
}

static etalon_tensor strided(void *data, etalon_dtype dtype, int32_t rank, const int64_t *shape, const int64_t *stride)
{
    etalon_tensor t = { .data = data, .dtype = dtype, .device = ETALON_HOST, .rank = rank };
    for (int32_t d = 0; d < rank; d++) {
        t.shape[d] = shape[d];
        t.stride[d] = stride[d];
    }
    return t;
}

/* q, k and weights without their signs: no relu hides a key, every logit is above 0. */
static void make_positive(const mqa_logits_case *c)
{
    const etalon_tensor *tensors[] = { &c->args.q, &c->args.k, &c->args.weights };
    for (int t = 0; t < 3; t++)
        for (int64_t i = 0; i < cases_count(tensors[t]); i++)
            cases_set(tensors[t], i, 0.125 + fabs(cases_get(tensors[t], i)));
}

/* 6.1 Addresses
 * ------------- */

/* The pages of a compact case stand at ids[0], ids[1], ... of another cache: the same bits must come out. */
static void same_from_pages(const pa_mtp_case *compact, etalon_tensor k_cache, etalon_tensor v_cache,
                            const int64_t *ids)
{
    cases_memory        memory = { .count = 0 };
    const etalon_tensor from = compact->args.block_tables;
    etalon_pa_mtp_args  far = compact->args;
    far.k_cache = k_cache;
    far.v_cache = v_cache;
    far.block_tables = cases_tensor(&memory, NULL, CASES_INPUT, ETALON_I32, 2, from.shape);
    for (int64_t i = 0; i < from.shape[1]; i++) {
        cases_set(&far.block_tables, i, (double)ids[i]);
        const int64_t id = (int64_t)cases_get(&from, i);
        for (int side = 0; side < 2; side++) {
            const etalon_tensor a = cases_fix(side ? compact->args.v_cache : compact->args.k_cache, 0, id);
            const etalon_tensor b = cases_fix(side ? v_cache : k_cache, 0, ids[i]);
            cases_copy(&b, &a);
        }
    }
    far.out = cases_tensor(&memory, NULL, CASES_OUTPUT, compact->args.out.dtype, 3, compact->args.out.shape);
    far.lse = cases_tensor(&memory, NULL, CASES_OUTPUT, ETALON_F32, 2, compact->args.lse.shape);
    cases_seal(&memory);
    ck_assert_ok(cases_run_pa_mtp(&compact->args, 2));
    ck_assert_ok(cases_run_pa_mtp(&far, 2));
    cases_same_bits(&far.out, &compact->args.out, "out");
    cases_same_bits(&far.lse, &compact->args.lse, "lse");
    cases_verify(&memory);
    cases_free(&memory);
}

/* One sequence over `pages` full pages; one KV head, so that a page is page_size * dim bytes. */
static void compact_case(pa_mtp_case *c, int number, int64_t pages, int64_t page_size, int64_t dim)
{
    rng                   r = stream(number);
    const attention_shape s = { .b = 1,
                                .hq = 2,
                                .hkv = 1,
                                .dqk = dim,
                                .dv = dim,
                                .q_lens = LENS(2),
                                .k_lens = LENS(pages * page_size),
                                .page_size = page_size,
                                .causal = 1 };
    pa_mtp_make(c, &r, &s);
}

/* A sparse cache of `pages` pages, `stride` bytes apart, in which the compact case's pages move to `ids`. */
static void check_far_pages(int number, int64_t pages, int64_t page_size, int64_t dim, int64_t stride,
                            const int64_t *ids, int64_t used)
{
    const int64_t page_bytes = page_size * dim, span = (pages - 1) * stride + page_bytes;
    sparse        k, v;
    pa_mtp_case   c;
    if (!sparse_make(&k, span))
        return;
    if (sparse_make(&v, span)) {
        compact_case(&c, number, used, page_size, dim);
        same_from_pages(
            &c, strided(k.data, ETALON_E4M3FN, 4, LENS(pages, page_size, 1, dim), LENS(stride, dim, dim, 1)),
            strided(v.data, ETALON_E4M3FN, 4, LENS(pages, page_size, 1, dim), LENS(stride, dim, dim, 1)), ids);
        cases_free(&c.memory);
        sparse_free(&v);
    }
    sparse_free(&k);
}

START_TEST(B01_block_id_beyond_16_bits)
{
    /* 4096 bytes a page: 2^20 of them are 4 GiB */
    check_far_pages(1, (1 << 20) + 6, 16, 256, 4096,
                    LENS(65535, 65536, 67000, 1 << 19, (1 << 20) - 1, 1 << 20, (1 << 20) + 5), 7);
}
END_TEST

START_TEST(B02_page_of_one_token_past_8_million_pages)
{
    check_far_pages(2, 8401239, 1, 256, 256, LENS(16435, 8388607, 8388608, 8401238), 4);
}
END_TEST

START_TEST(B03_last_page_ends_at_2_31_or_2_32)
{
    static const int64_t ends[] = { (INT64_C(1) << 31) - 1, INT64_C(1) << 31, (INT64_C(1) << 31) + 1,
                                    (INT64_C(1) << 32) - 1, INT64_C(1) << 32, (INT64_C(1) << 32) + 1 };
    check_far_pages(3, 2, 16, 64, ends[_i] - 16 * 64, LENS(1, 0), 2);
}
END_TEST

START_TEST(B07_page_id_beyond_24_bits)
{
    check_far_pages(7, (1 << 24) + 2, 1, 256, 256, LENS((1 << 24) - 1, 1 << 24, (1 << 24) + 1), 3);
}
END_TEST

START_TEST(B08_block_stride_wider_than_the_block)
{
    /* 1 435 968 bytes from page to page: the span passes 2^31 at page 1496 and 2^32 at page 2991 */
    check_far_pages(8, 3000, 64, 584 / 8, 1435968, LENS(1494, 1495, 1496, 2990, 2991, 2999), 6);
}
END_TEST

/* Rows of K `stride` bytes apart: each single-key window must give what the compact rows give. */
static void check_far_keys(int number, int64_t stride, const int64_t *rows, int64_t count)
{
    enum { D = 128, H = 4 };
    const int64_t   n = rows[count - 1] + 1;
    rng             r = stream(number);
    mqa_logits_case c, far;
    sparse          k;
    if (!sparse_make(&k, (n - 1) * stride + D))
        return;
    mqa_logits_make(&c, &r, count, count, H, D);
    make_positive(&c);
    mqa_logits_make(&far, &r, count, n, 1, 1); /* for its kv_scale, windows and logits */
    far.args.q = c.args.q;
    far.args.weights = c.args.weights;
    far.args.k = strided(k.data, ETALON_E4M3FN, 2, LENS(n, D), LENS(stride, 1));
    for (int64_t i = 0; i < count; i++) {
        const etalon_tensor to = cases_fix(far.args.k, 0, rows[i]), from = cases_fix(c.args.k, 0, i);
        cases_copy(&to, &from);
        cases_set(&far.args.kv_scale, rows[i], cases_get(&c.args.kv_scale, i));
        cases_set(&far.args.cu_seqlen_ks, i, (double)rows[i]);
        cases_set(&far.args.cu_seqlen_ke, i, (double)rows[i] + 1.0);
    }
    ck_assert_ok(cases_run_mqa_logits(&c.args, 2));
    ck_assert_ok(cases_run_mqa_logits(&far.args, 2));
    for (int64_t i = 0; i < count; i++) {
        const etalon_tensor row = cases_fix(far.args.logits, 0, i), want_row = cases_fix(c.args.logits, 0, i);
        const etalon_tensor got = cases_cut(row, 0, rows[i], 1), want = cases_cut(want_row, 0, i, 1);
        cases_same_bits(&got, &want, "logit");
        ck_assert_double_gt(cases_get(&got, 0), 0.0);
    }
    cases_free(&c.memory);
    cases_free(&far.memory);
    sparse_free(&k);
}

START_TEST(B05_key_rows_past_2_gib)
{
    check_far_keys(5, 1002240, LENS(1, 2142, 2143, 4285), 4); /* 2^31 between 2142 and 2143, 2^32 before 4286 */
    check_far_keys(5, 1002240, LENS(0, 4286), 2);
}
END_TEST

/* Blocks `stride` bytes apart: one sequence for each of the blocks, which must give what compact blocks give. */
static void check_far_blocks(int number, int64_t stride, const int64_t *blocks, int64_t count)
{
    enum { D = 32, H = 2, SIZE = 64, BYTES = SIZE * (D + 4), MOST = 8 };
    int64_t               lens[MOST];
    rng                   r = stream(number);
    mqa_logits_paged_case c;
    sparse                pool;
    if (!sparse_make(&pool, blocks[count - 1] * stride + BYTES))
        return;
    for (int64_t b = 0; b < count; b++)
        lens[b] = SIZE - b;
    mqa_logits_paged_make(&c, &r, &(mqa_logits_paged_shape){ .b = count, .next_n = 1, .h = H, .d = D, .lens = lens });
    ck_assert_ok(cases_run_mqa_logits_paged(&c.args, 2));
    uint32_t                    *want = cases_bits(&c.args.logits);
    etalon_mqa_logits_paged_args far = c.args;
    const etalon_tensor          table = cases_tensor(&c.memory, NULL, CASES_INPUT, ETALON_I32, 2, LENS(count, 1));
    far.kv_cache =
        strided(pool.data, ETALON_E4M3FN, 3, LENS(blocks[count - 1] + 1, SIZE, D + 4), LENS(stride, D + 4, 1));
    far.block_tables = table;
    for (int64_t b = 0; b < count; b++) {
        const etalon_tensor from = cases_fix(c.args.kv_cache, 0, (int64_t)cases_get(&c.args.block_tables, b));
        const etalon_tensor to = cases_fix(far.kv_cache, 0, blocks[b]);
        cases_copy(&to, &from);
        cases_set(&table, b, (double)blocks[b]);
    }
    cases_poison_outputs(&c.memory);
    ck_assert_ok(cases_run_mqa_logits_paged(&far, 2));
    uint32_t *got = cases_bits(&far.logits);
    ck_assert_mem_eq(got, want, sizeof *got * (size_t)cases_count(&far.logits));
    free(got);
    free(want);
    cases_free(&c.memory);
    sparse_free(&pool);
}

START_TEST(B05_blocks_past_2_gib)
{
    check_far_blocks(105, 1002240, LENS(1, 2142, 2143, 4285, 4286), 5);
}
END_TEST

START_TEST(B06_blocks_at_another_stride)
{
    check_far_blocks(106, 1039680, LENS(0, 2064, 2065, 2066, 4131), 5);
}
END_TEST

START_TEST(B06_key_rows_at_another_stride)
{
    check_far_keys(6, 1039680, LENS(2064, 2065, 2066, 4131), 4);
}
END_TEST

START_TEST(B04_wide_output_rows)
{
    enum { M = 516, N = 5, LDO = 1 << 20 };
    rng             r = stream(4);
    mqa_logits_case c;
    sparse          logits;
    if (!sparse_make(&logits, INT64_C(4) * ((M - 1) * (int64_t)LDO + N)))
        return;
    mqa_logits_make(&c, &r, M, N, 4, 32);
    cases_fill(&c.args.cu_seqlen_ke, 4.0);
    ck_assert_ok(cases_run_mqa_logits(&c.args, 2));
    etalon_mqa_logits_args wide = c.args;
    wide.logits = strided(logits.data, ETALON_F32, 2, LENS(M, N), LENS(LDO, 1));
    cases_fill(&wide.logits, 77.0); /* and zeros between the rows */
    ck_assert_ok(cases_run_mqa_logits(&wide, 2));
    cases_same_bits(&wide.logits, &c.args.logits, "logits");
    for (int64_t m = 0; m + 1 < M; m++)
        ck_assert_double_eq(((const float *)logits.data)[m * LDO + N], 0.0);
    cases_free(&c.memory);
    sparse_free(&logits);
}
END_TEST

/* 3 x (2^30 + 1) logits: the last index is past 2^31, its byte past 2^33. One key, broadcast by stride 0. */
START_TEST(B11_output_index_past_2_31)
{
    enum { M = 3 };
    const int64_t   n = (INT64_C(1) << 30) + 1;
    rng             r = stream(11);
    mqa_logits_case c;
    sparse          logits;
    if (!sparse_make(&logits, INT64_C(4) * M * n))
        return;
    mqa_logits_make(&c, &r, M, 1, 2, 16);
    ck_assert_ok(cases_run_mqa_logits(&c.args, 2));
    etalon_mqa_logits_args far = c.args;
    far.k = strided(c.args.k.data, ETALON_E4M3FN, 2, LENS(n, 16), LENS(0, 1));
    far.kv_scale = strided(c.args.kv_scale.data, ETALON_F32, 1, LENS(n), LENS(0));
    far.logits = strided(logits.data, ETALON_F32, 2, LENS(M, n), LENS(n, 1));
    far.clean_logits = 0;
    cases_fill(&c.args.cu_seqlen_ks, (double)n - 1.0);
    cases_fill(&c.args.cu_seqlen_ke, (double)n);
    ck_assert_ok(cases_run_mqa_logits(&far, 2));
    const etalon_tensor last = cases_cut(far.logits, 1, n - 1, 1), before = cases_cut(far.logits, 1, n - 2, 1);
    cases_same_bits(&last, &c.args.logits, "last column");
    for (int64_t m = 0; m < M; m++)
        ck_assert_double_eq(cases_get(&before, m), 0.0);
    cases_free(&c.memory);
    sparse_free(&logits);
}
END_TEST

START_TEST(B09_interleaved_kv_pool)
{
    rng             r = stream(9), again = r;
    attention_shape s = {
        .b = 2, .hq = 4, .hkv = 2, .dqk = 32, .dv = 32, .q_lens = LENS(4, 2), .k_lens = LENS(50, 33), .causal = 1
    };
    s.layout = (etalon_kv_layout)_i;
    pa_mtp_case apart, pool;
    pa_mtp_make(&apart, &r, &s);
    s.interleaved = true;
    pa_mtp_make(&pool, &again, &s); /* the same draws: the same tables and values */
    ck_assert_int_eq(pool.args.k_cache.stride[0], 2 * apart.args.k_cache.stride[0]);
    ck_assert_ok(cases_run_pa_mtp(&apart.args, 2));
    ck_assert_ok(cases_run_pa_mtp(&pool.args, 2));
    cases_same_bits(&pool.args.out, &apart.args.out, "out");
    cases_free(&apart.memory);
    cases_free(&pool.memory);
}
END_TEST

/* Tokens 8 MiB apart: byte offsets pass 2^31 at token 256 and 2^32 at token 512. */
START_TEST(B10_token_stride_of_8_mib)
{
    enum { TOKENS = 520, D = 16 };
    const int64_t         stride = INT64_C(8) << 20;
    rng                   r = stream(10);
    const attention_shape s = {
        .b = 1, .hq = 1, .hkv = 1, .dqk = D, .dv = D, .q_lens = LENS(TOKENS), .k_lens = LENS(TOKENS), .causal = 1
    };
    fmha_varlen_case c;
    sparse           pool;
    if (!sparse_make(&pool, (TOKENS - 1) * stride + 4096))
        return;
    fmha_varlen_make(&c, &r, &s);
    etalon_fmha_varlen_args far = c.args;
    etalon_tensor          *tensors[] = { &far.q, &far.k, &far.v, &far.out };
    for (int i = 0; i < 4; i++) { /* all in one pool, 1 KiB apart */
        etalon_tensor to = strided((char *)pool.data + 1024 * i, tensors[i]->dtype, 3, LENS(TOKENS, 1, D),
                                   LENS(stride / (int64_t)etalon_dtype_bytes(tensors[i]->dtype), D, 1));
        if (i < 3)
            cases_copy(&to, tensors[i]);
        *tensors[i] = to;
    }
    ck_assert_ok(cases_run_fmha_varlen(&c.args, 2));
    ck_assert_ok(cases_run_fmha_varlen(&far, 2));
    cases_same_bits(&far.out, &c.args.out, "out");
    cases_free(&c.memory);
    sparse_free(&pool);
}
END_TEST

START_TEST(B13_k_and_v_with_different_strides)
{
    rng                   r = stream(13);
    const attention_shape s = { .b = 1, .hq = 2, .hkv = 2, .dqk = 16, .dv = 16, .q_lens = LENS(9), .k_lens = LENS(40) };
    fmha_varlen_case      c;
    fmha_varlen_make(&c, &r, &s);
    const etalon_tensor twice = cases_tensor(&c.memory, NULL, CASES_INPUT, ETALON_E4M3FN, 3, LENS(80, 2, 16));
    etalon_tensor       second = cases_cut(twice, 0, 0, 40);
    second.stride[0] *= 2; /* every second row; the others stay NaN */
    cases_copy(&second, &c.args.k);
    cases_seal(&c.memory);
    ck_assert_ok(cases_run_fmha_varlen(&c.args, 2));
    uint32_t *dense = cases_bits(&c.args.out);
    c.args.k = second;
    cases_poison_outputs(&c.memory);
    ck_assert_ok(cases_run_fmha_varlen(&c.args, 2));
    uint32_t *apart = cases_bits(&c.args.out);
    ck_assert_mem_eq(dense, apart, sizeof *dense * (size_t)cases_count(&c.args.out));
    free(dense);
    free(apart);
    cases_verify(&c.memory);
    cases_free(&c.memory);
}
END_TEST

START_TEST(B14_v_as_a_transposed_view)
{
    enum { L = 62, H = 3, D = 16 };
    rng                   r = stream(14);
    const attention_shape s = {
        .b = 1, .hq = H, .hkv = H, .dqk = D, .dv = D, .q_lens = LENS(L), .k_lens = LENS(L), .causal = 1
    };
    fmha_varlen_case c;
    fmha_varlen_make(&c, &r, &s);
    const etalon_tensor heads_first = cases_tensor(&c.memory, NULL, CASES_INPUT, ETALON_E4M3FN, 3, LENS(H, D, L));
    const etalon_tensor view = cases_swap(cases_swap(heads_first, 0, 2), 1, 2); /* [L, H, D], unit stride in L */
    cases_copy(&view, &c.args.v);
    cases_seal(&c.memory);
    ck_assert_int_eq(view.stride[0], 1);
    etalon_fmha_varlen_args turned_args = c.args;
    turned_args.v = view;
    c.args.kernel = cases_kernel_fmha_varlen(&turned_args);
    ck_assert_ok(cases_run_fmha_varlen(&c.args, 2));
    uint32_t *dense = cases_bits(&c.args.out);
    c.args.v = view;
    cases_poison_outputs(&c.memory);
    ck_assert_ok(cases_run_fmha_varlen(&c.args, 2));
    uint32_t *turned = cases_bits(&c.args.out);
    ck_assert_mem_eq(dense, turned, sizeof *dense * (size_t)cases_count(&c.args.out));
    free(dense);
    free(turned);
    cases_free(&c.memory);
}
END_TEST

/* Two sequences in a pool of 40 pages: one length each; one length for both, or one for each page, is refused. */
START_TEST(B15_lengths_belong_to_sequences)
{
    rng                   r = stream(15);
    const attention_shape s = { .b = 2,
                                .hq = 1,
                                .hkv = 1,
                                .dqk = 8,
                                .dv = 8,
                                .q_lens = LENS(1, 1),
                                .k_lens = LENS(20, 40),
                                .spare_pages = 34,
                                .causal = 1 };
    pa_mtp_case           c;
    twin_attention        twin;
    pa_mtp_make(&c, &r, &s);
    ck_assert_int_eq(c.args.k_cache.shape[0], 40);
    ck_assert_ok(cases_run_pa_mtp(&c.args, 2));
    twin_pa_mtp(&c.args, &twin);
    for (int64_t i = 0; i < cases_count(&c.args.out); i++)
        cases_require(fabs(cases_get(&c.args.out, i) - twin.out[i]) <= twin.out_bound[i], "out[%" PRId64 "]", i);
    twin_attention_free(&twin);
    cases_poison_outputs(&c.memory);
    const int64_t wrong[] = { 1, 40 };
    for (int i = 0; i < 2; i++) {
        c.args.seq_lens = cases_tensor(&c.memory, NULL, CASES_INPUT, ETALON_I32, 1, &wrong[i]);
        cases_fill(&c.args.seq_lens, 20.0);
        ck_assert_rejects(cases_run_pa_mtp(&c.args, 1), ETALON_ERROR_INVALID_ARGUMENT, "seq_lens");
    }
    cases_untouched(&c.args.out, "out");
    cases_free(&c.memory);
}
END_TEST

/* 1024 identical sequences of four tokens and 16 heads: 2^22 / 64 rows, all alike. */
START_TEST(B16_many_sequences)
{
    enum { B = 1024 };
    int64_t q_lens[B], k_lens[B];
    for (int b = 0; b < B; b++)
        q_lens[b] = 4, k_lens[b] = 5;
    rng                   r = stream(16);
    const attention_shape s = {
        .b = B, .hq = 16, .hkv = 1, .dqk = 16, .dv = 8, .q_lens = q_lens, .k_lens = k_lens, .causal = 1
    };
    pa_mtp_case c;
    pa_mtp_make(&c, &r, &s);
    cases_fill(&c.args.block_tables, cases_get(&c.args.block_tables, 0));
    const etalon_tensor first_q = cases_cut(c.args.q, 0, 0, 4), first = cases_cut(c.args.out, 0, 0, 4);
    for (int64_t b = 1; b < B; b++) {
        const etalon_tensor q = cases_cut(c.args.q, 0, 4 * b, 4);
        cases_copy(&q, &first_q);
    }
    ck_assert_ok(cases_run_pa_mtp(&c.args, 2));
    for (int64_t b = 1; b < B; b++) {
        const etalon_tensor out = cases_cut(c.args.out, 0, 4 * b, 4);
        cases_same_bits(&out, &first, "out");
    }
    cases_free(&c.memory);
}
END_TEST

/* 6.2 NaN, infinity, empty, masked
 * -------------------------------- */

static void expect_empty(const etalon_tensor *out, const etalon_tensor *lse, int64_t token)
{
    for (int64_t h = 0; h < out->shape[1]; h++) {
        cases_require(cases_get(lse, h * lse->shape[1] + token) == -(double)INFINITY, "lse of token %" PRId64 ": %g",
                      token, cases_get(lse, h * lse->shape[1] + token));
        for (int64_t d = 0; d < out->shape[2]; d++)
            cases_require(cases_get(out, (token * out->shape[1] + h) * out->shape[2] + d) == 0.0,
                          "out of token %" PRId64, token);
    }
}

static void expect_finite(const etalon_tensor *t)
{
    for (int64_t i = 0; i < cases_count(t); i++)
        cases_require(isfinite(cases_get(t, i)), "element %" PRId64 ": %g", i, cases_get(t, i));
}

START_TEST(B18_fully_masked_rows)
{
    rng                   r = stream(18);
    const attention_shape s = {
        .b = 1, .hq = 2, .hkv = 1, .dqk = 16, .dv = 2, .q_lens = LENS(5), .k_lens = LENS(2), .causal = 1
    };
    fmha_varlen_case c;
    fmha_varlen_make(&c, &r, &s);
    cases_fill(&c.args.v, 0.0);
    cases_set(&c.args.v, 0, 1.0); /* V[0] = e_0, V[1] = e_1 */
    cases_set(&c.args.v, 3, 1.0);
    ck_assert_ok(cases_run_fmha_varlen(&c.args, 2));
    for (int64_t token = 0; token < 3; token++)
        expect_empty(&c.args.out, &c.args.lse, token);
    for (int64_t h = 0; h < 2; h++) {
        ck_assert_double_eq(cases_get(&c.args.out, (3 * 2 + h) * 2), 1.0);
        ck_assert_double_eq(cases_get(&c.args.out, (3 * 2 + h) * 2 + 1), 0.0);
        ck_assert(cases_get(&c.args.out, (4 * 2 + h) * 2) > 0.0 && cases_get(&c.args.out, (4 * 2 + h) * 2 + 1) > 0.0);
    }
    cases_free(&c.memory);
}
END_TEST

/* A merge of one token and head, two values. NaN in the out of a side whose LSE is infinite. */
typedef struct merged {
    double out, lse;
} merged;

static merged merge(double out_a, double lse_a, double out_b, double lse_b)
{
    merge_states_case c = { .args = ETALON_MERGE_STATES_ARGS_INIT };
    etalon_tensor    *outs[] = { &c.args.out_a, &c.args.out_b, &c.args.out },
                  *lses[] = { &c.args.lse_a, &c.args.lse_b, &c.args.lse };
    for (int i = 0; i < 3; i++) {
        const cases_role role = i < 2 ? CASES_INPUT : CASES_OUTPUT;
        *outs[i] = cases_tensor(&c.memory, NULL, role, ETALON_F32, 3, LENS(1, 1, 1));
        *lses[i] = cases_tensor(&c.memory, NULL, role, ETALON_F32, 2, LENS(1, 1));
    }
    cases_fill(&c.args.out_a, out_a);
    cases_fill(&c.args.lse_a, lse_a);
    cases_fill(&c.args.out_b, out_b);
    cases_fill(&c.args.lse_b, lse_b);
    cases_seal(&c.memory);
    ck_assert_ok(cases_run_merge_states(&c.args, 1));
    cases_verify(&c.memory);
    const merged m = { cases_get(&c.args.out, 0), cases_get(&c.args.lse, 0) };
    cases_free(&c.memory);
    return m;
}

static void expect_merged(merged m, double out, double lse)
{
    ck_assert_double_eq(m.out, out);
    ck_assert_double_eq(m.lse, lse);
}

START_TEST(B20_merge_of_empty_sides)
{
    expect_merged(merge(NAN, -(double)INFINITY, NAN, -(double)INFINITY), 0.0, -(double)INFINITY);
    expect_merged(merge(0.1f, -3.7f, NAN, -(double)INFINITY), 0.1f, -3.7f);
    expect_merged(merge(NAN, -(double)INFINITY, 0.1f, -3.7f), 0.1f, -3.7f);
    expect_merged(merge(0.0, -(double)INFINITY, 0.1f, -300.0), 0.1f,
                  -300.0); /* a finite stand-in for -inf would win here */
}
END_TEST

START_TEST(B21_plus_infinity_is_empty)
{
    expect_merged(merge(NAN, INFINITY, 0.3f, 2.5), 0.3f, 2.5);
    expect_merged(merge(0.3f, 2.5, NAN, INFINITY), 0.3f, 2.5);
    expect_merged(merge(NAN, INFINITY, NAN, -(double)INFINITY), 0.0, -(double)INFINITY);
    expect_merged(merge(NAN, INFINITY, NAN, INFINITY), 0.0, -(double)INFINITY);
}
END_TEST

START_TEST(B22_empty_kv_in_a_ragged_batch)
{
    rng                   r = stream(22);
    const attention_shape s = { .b = 4,
                                .hq = 2,
                                .hkv = 1,
                                .dqk = 16,
                                .dv = 8,
                                .q_lens = LENS(3, 2, 0, 1),
                                .k_lens = LENS(0, 4, 3, 2),
                                .causal = _i };
    fmha_varlen_case      c;
    twin_attention        twin;
    fmha_varlen_make(&c, &r, &s);
    ck_assert_ok(cases_run_fmha_varlen(&c.args, 2));
    for (int64_t token = 0; token < 3; token++)
        expect_empty(&c.args.out, &c.args.lse, token);
    twin_fmha_varlen(&c.args, &twin);
    for (int64_t i = 0; i < cases_count(&c.args.out); i++)
        cases_require(fabs(cases_get(&c.args.out, i) - twin.out[i]) <= twin.out_bound[i], "out[%" PRId64 "]", i);
    twin_attention_free(&twin);
    cases_verify(&c.memory);
    cases_free(&c.memory);
}
END_TEST

/* Every combination of no sequences, no rows, no keys. */
START_TEST(B23_empty_extents)
{
    const int64_t         b = _i & 1, rows = _i & 2 ? 2 : 0, keys = _i & 4 ? 3 : 0;
    rng                   r = stream(23);
    const attention_shape s = { .b = b, .hq = 2, .hkv = 2, .dqk = 8, .dv = 8, .q_lens = &rows, .k_lens = &keys };
    fmha_varlen_case      c;
    pa_mtp_case           paged;
    fmha_varlen_make(&c, &r, &s);
    pa_mtp_make(&paged, &r, &s);
    ck_assert_ok(cases_run_fmha_varlen(&c.args, 2));
    ck_assert_ok(cases_run_pa_mtp(&paged.args, 2));
    for (int64_t token = 0; token < b * rows && keys == 0; token++) {
        expect_empty(&c.args.out, &c.args.lse, token);
        expect_empty(&paged.args.out, &paged.args.lse, token);
    }
    cases_written(&c.args.out, "out");
    cases_written(&paged.args.out, "out");
    cases_verify(&c.memory);
    cases_verify(&paged.memory);
    cases_free(&c.memory);
    cases_free(&paged.memory);
}
END_TEST

START_TEST(B24_combine_of_empty_splits)
{
    merged m = { NAN, -(double)INFINITY };
    for (int split = 0; split < 4; split++)
        m = merge(m.out, m.lse, NAN, -(double)INFINITY);
    expect_merged(m, 0.0, -(double)INFINITY);
}
END_TEST

/* Keys split into `splits` chunks of ceil(L / splits), the last ones empty; parts are poisoned before they are
 * computed, merged in place. Returns the largest distance from one call. */
static double split_distance(const fmha_varlen_case *c, int64_t keys, int64_t splits)
{
    cases_memory             memory = { .count = 0 };
    etalon_merge_states_args m = ETALON_MERGE_STATES_ARGS_INIT;
    etalon_fmha_varlen_args  part = c->args;
    m.out_a = cases_tensor(&memory, NULL, CASES_OUTPUT, ETALON_F32, 3, c->args.out.shape);
    m.lse_a = cases_tensor(&memory, NULL, CASES_OUTPUT, ETALON_F32, 2, c->args.lse.shape);
    m.out = m.out_a;
    m.lse = m.lse_a;
    m.out_b = part.out = cases_tensor(&memory, NULL, CASES_OUTPUT, ETALON_F32, 3, c->args.out.shape);
    m.lse_b = part.lse = cases_tensor(&memory, NULL, CASES_OUTPUT, ETALON_F32, 2, c->args.lse.shape);
    part.cu_seqlens_k = cases_tensor(&memory, NULL, CASES_INPUT, ETALON_I32, 1, LENS(2));
    cases_fill(&m.lse_a, -(double)INFINITY);
    const int64_t size = (keys + splits - 1) / splits;
    for (int64_t i = 0; i < splits; i++) {
        const int64_t first = i * size < keys ? i * size : keys, last = first + size < keys ? first + size : keys;
        part.k = cases_cut(c->args.k, 0, first, last - first);
        part.v = cases_cut(c->args.v, 0, first, last - first);
        cases_set(&part.cu_seqlens_k, 0, 0.0);
        cases_set(&part.cu_seqlens_k, 1, (double)(last - first));
        cases_poison(&part.out);
        cases_poison(&part.lse);
        ck_assert_ok(cases_run_fmha_varlen(&part, 1));
        ck_assert_ok(cases_run_merge_states(&m, 1));
    }
    double most = 0.0;
    for (int64_t i = 0; i < cases_count(&m.out); i++) {
        cases_require(isfinite(cases_get(&m.out, i)), "%" PRId64 " keys, %" PRId64 " splits: not finite", keys, splits);
        most = fmax(most, fabs(cases_get(&m.out, i) - cases_get(&c->args.out, i)));
    }
    cases_free(&memory);
    return most;
}

/* V of magnitude at most 1. A part is off by at most its own bound, 2 e + gamma(160), a merge by (8 + 2 gap) u; the
 * gap between two LSEs of these scores stays below 16, and an LSE error of e + gamma(128) + u |lse| moves a weight
 * by a quarter of that, times a distance of 2. Summed over the merges, and once more for the whole call. */
static double split_allowance(const twin_attention *whole, int64_t splits)
{
    double e = 0.0;
    for (int64_t i = 0; i < whole->t * whole->hq; i++)
        e = fmax(e, whole->e[i]);
    const double part = twin_out_relative(e), lse = twin_lse_bound(e, 16.0);
    return 2.0 * part + (double)splits * (lse + (8.0 + 2.0 * 16.0) * TWIN_U);
}

static void check_splits(int number, int64_t keys, int64_t splits)
{
    rng                   r = stream(number);
    const attention_shape s = { .b = 1, .hq = 2, .hkv = 1, .dqk = 16, .dv = 8, .q_lens = LENS(2), .k_lens = &keys };
    fmha_varlen_case      c;
    twin_attention        twin;
    fmha_varlen_make(&c, &r, &s);
    for (int64_t i = 0; i < cases_count(&c.args.v); i++)
        cases_set(&c.args.v, i, 2.0 * rng_unit(&r) - 1.0);
    ck_assert_ok(cases_run_fmha_varlen(&c.args, 1));
    twin_fmha_varlen(&c.args, &twin);
    const double distance = split_distance(&c, keys, splits), most = split_allowance(&twin, splits);
    ck_assert_msg(distance <= most, "%" PRId64 " keys, %" PRId64 " splits: %.3g apart, allowed %.3g", keys, splits,
                  distance, most);
    twin_attention_free(&twin);
    cases_free(&c.memory);
}

START_TEST(B26_splits_of_short_sequences)
{
    static const int64_t splits[] = { 1, 8, 16, 32, 64 };
    for (int64_t keys = 1; keys <= 40; keys += 3)
        check_splits(26, keys, splits[_i]);
}
END_TEST

START_TEST(B27_one_split_count_for_long_and_short)
{
    check_splits(27, 2048, 16);
    check_splits(27, 5, 16);
}
END_TEST

/* Page 0 holds NaN and is nobody's; entries past the end name it, or nothing; L % 16 = 1 and the rest of the page is
 * NaN. */
static void check_poisoned_page_0(double padding)
{
    rng                   r = stream(28);
    const attention_shape s = {
        .b = 2, .hq = 4, .hkv = 1, .dqk = 32, .dv = 32, .q_lens = LENS(4, 4), .k_lens = LENS(49, 17), .causal = 1
    };
    pa_mtp_case c;
    pa_mtp_make(&c, &r, &s);
    const int64_t width = c.args.block_tables.shape[1];
    for (int64_t i = 2; i < width; i++)
        cases_set(&c.args.block_tables, width + i, padding);
    cases_seal(&c.memory);
    const uint8_t first = *(const uint8_t *)c.args.v_cache.data;
    ck_assert(isnan(twin_load(&first, ETALON_E4M3FN)));
    ck_assert_ok(cases_run_pa_mtp(&c.args, 2));
    expect_finite(&c.args.out);
    uint32_t *out = cases_bits(&c.args.out);
    for (int64_t b = 0; b < 2; b++) /* zeros in place of the NaN: the same bits */
        for (int64_t j = s.k_lens[b]; j % 16 != 0; j++) {
            const etalon_tensor v = pa_mtp_slot(&c.args, &c.args.v_cache, b, j),
                                k = pa_mtp_slot(&c.args, &c.args.k_cache, b, j);
            cases_fill(&v, 0.0);
            cases_fill(&k, 0.0);
        }
    ck_assert_ok(cases_run_pa_mtp(&c.args, 2));
    uint32_t *clean = cases_bits(&c.args.out);
    ck_assert_mem_eq(out, clean, sizeof *out * (size_t)cases_count(&c.args.out));
    free(out);
    free(clean);
    cases_free(&c.memory);
}

START_TEST(B28_oob_tail_page_holds_nan)
{
    check_poisoned_page_0(-1.0);
    check_poisoned_page_0(INT32_MAX);
}
END_TEST

START_TEST(B29_null_block_0_holds_nan)
{
    check_poisoned_page_0(0.0);
}
END_TEST

START_TEST(B30_seq_len_0)
{
    rng                   r = stream(30);
    const attention_shape s = { .b = 3,
                                .hq = 4,
                                .hkv = 2,
                                .dqk = 32,
                                .dv = 16,
                                .q_lens = LENS(2, 2, 2),
                                .k_lens = LENS(20, 0, 7),
                                .causal = 1,
                                .index = _i ? ETALON_I64 : ETALON_I32 };
    pa_mtp_case           c;
    pa_mtp_make(&c, &r, &s);
    ck_assert_ok(cases_run_pa_mtp(&c.args, 2));
    expect_empty(&c.args.out, &c.args.lse, 2);
    expect_empty(&c.args.out, &c.args.lse, 3);
    expect_finite(&c.args.out);
    for (int64_t token = 0; token < 6; token++)
        cases_require(isfinite(cases_get(&c.args.lse, token)) == (token / 2 != 1), "lse[%" PRId64 "]", token);
    cases_free(&c.memory);
}
END_TEST

START_TEST(B32_nan_in_a_key_scale)
{
    rng             r = stream(32);
    mqa_logits_case c;
    mqa_logits_make(&c, &r, 3, 10, 4, 16);
    cases_set(&c.args.kv_scale, 4, (double)NAN);
    cases_set(&c.args.cu_seqlen_ks, 1, 5.0); /* row 1 does not see key 4; rows 0 and 2 do */
    ck_assert_ok(cases_run_mqa_logits(&c.args, 2));
    for (int64_t i = 0; i < 30; i++) {
        const double x = cases_get(&c.args.logits, i);
        if (i / 10 == 1 && i % 10 < 5)
            cases_require(x == -(double)INFINITY, "logits[%" PRId64 "]: %g", i, x);
        else
            cases_require(isnan(x) == (i % 10 == 4), "logits[%" PRId64 "]: %g", i, x);
    }
    cases_free(&c.memory);
}
END_TEST

START_TEST(B33_all_windows_empty)
{
    rng             r = stream(33);
    mqa_logits_case c;
    mqa_logits_make(&c, &r, 3, 65, 4, 16);
    cases_fill(&c.args.cu_seqlen_ke, 0.0);
    c.args.clean_logits = 0;
    ck_assert_ok(cases_run_mqa_logits(&c.args, 2));
    cases_untouched(&c.args.logits, "logits");
    c.args.clean_logits = 1;
    ck_assert_ok(cases_run_mqa_logits(&c.args, 2));
    for (int64_t i = 0; i < 3 * 65; i++)
        cases_require(cases_get(&c.args.logits, i) == -(double)INFINITY, "logits[%" PRId64 "]", i);
    cases_free(&c.memory);
}
END_TEST

START_TEST(B33_all_contexts_empty)
{
    rng                   r = stream(133);
    mqa_logits_paged_case c;
    mqa_logits_paged_make(&c, &r,
                          &(mqa_logits_paged_shape){
                              .b = 3, .next_n = 1, .h = 4, .d = 16, .lens = LENS(0, 0, 0), .max_context_len = 65 });
    c.args.clean_logits = 0;
    ck_assert_ok(cases_run_mqa_logits_paged(&c.args, 2));
    cases_untouched(&c.args.logits, "logits");
    c.args.clean_logits = 1;
    ck_assert_ok(cases_run_mqa_logits_paged(&c.args, 2));
    for (int64_t i = 0; i < 3 * 65; i++)
        cases_require(cases_get(&c.args.logits, i) == -(double)INFINITY, "logits[%" PRId64 "]", i);
    cases_free(&c.memory);
}
END_TEST

/* q = 0 and V = 1, not causal: every weight is equal, and the sum of L ones over L is 1 exactly. */
START_TEST(B34_tail_of_the_last_tile_weighs_nothing)
{
    static const int64_t  keys[] = { 1, 15, 16, 17, 64, 127, 128, 129, 255, 256, 257 };
    rng                   r = stream(34);
    const attention_shape s = { .b = 1, .hq = 2, .hkv = 1, .dqk = 16, .dv = 8, .q_lens = LENS(3), .k_lens = &keys[_i] };
    pa_mtp_case           c;
    pa_mtp_make(&c, &r, &s);
    cases_fill(&c.args.q, 0.0);
    for (int64_t j = 0; j < keys[_i]; j++) {
        const etalon_tensor v = pa_mtp_slot(&c.args, &c.args.v_cache, 0, j);
        cases_fill(&v, 1.0);
    }
    static const char *const kernels[] = { "pa_mtp_ref", "pa_mtp_model" };
    for (int k = 0; k < 2; k++) {
        c.args.kernel = kernels[k];
        cases_poison_outputs(&c.memory);
        ck_assert_ok(cases_run_pa_mtp(&c.args, 2));
        for (int64_t i = 0; i < cases_count(&c.args.out); i++)
            cases_require(cases_get(&c.args.out, i) == 1.0, "%s: out[%" PRId64 "]: %.9g", kernels[k], i,
                          cases_get(&c.args.out, i));
    }
    cases_free(&c.memory);
}
END_TEST

/* Support of every row over one-hot values: V[j] = e_j, so out[i, j] != 0 says that row i sees key j. */
static void check_support(int number, int64_t rows, int64_t keys, int32_t causal)
{
    rng                   r = stream(number);
    const attention_shape s = {
        .b = 1, .hq = 1, .hkv = 1, .dqk = 8, .dv = keys, .q_lens = &rows, .k_lens = &keys, .causal = causal
    };
    fmha_varlen_case c;
    fmha_varlen_make(&c, &r, &s);
    cases_fill(&c.args.v, 0.0);
    for (int64_t j = 0; j < keys; j++)
        cases_set(&c.args.v, j * keys + j, 1.0);
    ck_assert_ok(cases_run_fmha_varlen(&c.args, 2));
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < keys; j++)
            cases_require((cases_get(&c.args.out, i * keys + j) != 0.0) == (!causal || j <= i + keys - rows),
                          "%" PRId64 " rows, %" PRId64 " keys: row %" PRId64 ", key %" PRId64, rows, keys, i, j);
    cases_free(&c.memory);
}

START_TEST(B35_rows_before_the_first_tile_edge)
{
    check_support(35, 200, 200, 1);
}
END_TEST

START_TEST(B37_bad_arguments_are_refused)
{
    rng                   r = stream(37);
    const attention_shape s = { .b = 1,
                                .hq = 2,
                                .hkv = 2,
                                .dqk = 8,
                                .dv = 8,
                                .q_lens = LENS(2),
                                .k_lens = LENS(3),
                                .k_descale = CASES_DESCALE_ONE };
    fmha_varlen_case      c;
    fmha_varlen_make(&c, &r, &s);
    etalon_fmha_varlen_args a = c.args;
    a.k.shape[1] = a.v.shape[1] = 0;
    ck_assert_rejects(cases_run_fmha_varlen(&a, 1), ETALON_ERROR_INVALID_ARGUMENT, "head");
    a = c.args;
    a.q.shape[1] = a.out.shape[1] = a.lse.shape[0] = 0;
    ck_assert_rejects(cases_run_fmha_varlen(&a, 1), ETALON_ERROR_INVALID_ARGUMENT, "head");
    a = c.args;
    a.k_descale.device = 0;
    ck_assert_rejects(cases_run_fmha_varlen(&a, 1), ETALON_ERROR_INVALID_ARGUMENT, "device");
    a = c.args;
    a.cu_seqlens_k.device = 1;
    ck_assert_rejects(cases_run_fmha_varlen(&a, 1), ETALON_ERROR_INVALID_ARGUMENT, "device");
    static const double bad[] = { 0.0, -1.0, (double)NAN, (double)INFINITY };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        cases_set(&c.args.k_descale, 0, bad[i]);
        ck_assert_rejects(cases_run_fmha_varlen(&c.args, 1), ETALON_ERROR_INVALID_ARGUMENT, "k_descale");
    }
    cases_set(&c.args.k_descale, 0, 1.0);
    for (size_t i = 1; i < COUNT_OF(bad); i++) {
        a = c.args;
        a.softmax_scale = bad[i];
        ck_assert_rejects(cases_run_fmha_varlen(&a, 1), ETALON_ERROR_INVALID_ARGUMENT, "softmax_scale");
    }
    cases_untouched(&c.args.out, "out");
    cases_untouched(&c.args.lse, "lse");
    cases_free(&c.memory);
}
END_TEST

/* relu gives 0, the weight is negative: 0 of either sign, and not -inf. */
START_TEST(B38_zero_with_a_negative_weight)
{
    rng             r = stream(38);
    mqa_logits_case c;
    mqa_logits_make(&c, &r, 2, 3, 2, 8);
    cases_fill(&c.args.q, 1.0);
    cases_fill(&c.args.k, -1.0);
    cases_fill(&c.args.weights, -2.0);
    const etalon_tensor zero_key = cases_fix(c.args.k, 0, 1);
    memset(zero_key.data, 0x80, 8); /* -0 */
    ck_assert_ok(cases_run_mqa_logits(&c.args, 1));
    for (int64_t i = 0; i < 6; i++)
        ck_assert_double_eq(cases_get(&c.args.logits, i), 0.0);
    cases_fill(&c.args.k, 1.0);
    cases_fill(&c.args.kv_scale, 0.5);
    ck_assert_ok(cases_run_mqa_logits(&c.args, 1));
    for (int64_t i = 0; i < 6; i++)
        ck_assert_double_eq(cases_get(&c.args.logits, i), -16.0); /* 2 heads * -2 * 8 * 0.5 */
    cases_free(&c.memory);
}
END_TEST

/* 6.3 Batches, splits, repeats
 * ---------------------------- */

START_TEST(B39_identical_requests_of_q_len_6)
{
    rng                   r = stream(39);
    const attention_shape s = {
        .b = 3, .hq = 8, .hkv = 1, .dqk = 32, .dv = 32, .q_lens = LENS(6, 6, 6), .k_lens = LENS(33, 33, 33), .causal = 1
    };
    pa_mtp_case c;
    pa_mtp_make(&c, &r, &s);
    const etalon_tensor q0 = cases_cut(c.args.q, 0, 0, 6);
    for (int64_t b = 1; b < 3; b++) {
        const etalon_tensor q = cases_cut(c.args.q, 0, 6 * b, 6);
        cases_copy(&q, &q0);
        for (int64_t j = 0; j < 33; j++)
            for (int side = 0; side < 2; side++) {
                const etalon_tensor *cache = side ? &c.args.v_cache : &c.args.k_cache;
                const etalon_tensor  to = pa_mtp_slot(&c.args, cache, b, j), from = pa_mtp_slot(&c.args, cache, 0, j);
                cases_copy(&to, &from);
            }
    }
    ck_assert_ok(cases_run_pa_mtp(&c.args, 2));
    const etalon_tensor first = cases_cut(c.args.out, 0, 0, 6);
    for (int64_t b = 1; b < 3; b++) {
        const etalon_tensor out = cases_cut(c.args.out, 0, 6 * b, 6);
        cases_same_bits(&out, &first, "out");
    }
    cases_free(&c.memory);
}
END_TEST

START_TEST(B40_alone_and_in_a_batch_of_8)
{
    int64_t q_lens[8], k_lens[8];
    for (int64_t b = 0; b < 8; b++)
        q_lens[b] = 4, k_lens[b] = b == 5 ? 77 : 200 + b;
    rng             r = stream(40);
    attention_shape s = {
        .b = 8, .hq = 4, .hkv = 1, .dqk = 32, .dv = 16, .q_lens = q_lens, .k_lens = k_lens, .causal = 1
    };
    pa_mtp_case c, one;
    pa_mtp_make(&c, &r, &s);
    s.b = 1, s.q_lens = q_lens + 5, s.k_lens = k_lens + 5;
    pa_mtp_make(&one, &r, &s);
    one.args.q = cases_cut(c.args.q, 0, 20, 4);
    one.args.k_cache = c.args.k_cache;
    one.args.v_cache = c.args.v_cache;
    one.args.block_tables = cases_cut(c.args.block_tables, 0, 5, 1);
    ck_assert_ok(cases_run_pa_mtp(&c.args, 5));
    ck_assert_ok(cases_run_pa_mtp(&one.args, 1));
    const etalon_tensor out = cases_cut(c.args.out, 0, 20, 4);
    cases_same_bits(&one.args.out, &out, "out");
    cases_free(&c.memory);
    cases_free(&one.memory);
}
END_TEST

START_TEST(B41_repeats_of_the_indexer)
{
    rng             r = stream(41);
    mqa_logits_case c;
    mqa_logits_make(&c, &r, 16, 512, 16, _i == 0 ? 32 : 64);
    make_positive(&c);
    ck_assert_ok(cases_run_mqa_logits(&c.args, 1));
    uint32_t *first = cases_bits(&c.args.logits);
    for (int i = 0; i < 20; i++) {
        const int threads = 1 + i % 5;
        cases_poison_outputs(&c.memory);
        ck_assert_ok(cases_run_mqa_logits(&c.args, threads));
        uint32_t *now = cases_bits(&c.args.logits);
        ck_assert_mem_eq(first, now, sizeof *now * 16 * 512);
        free(now);
    }
    for (int64_t i = 0; i < 16 * 512; i++)
        cases_require(cases_get(&c.args.logits, i) > 0.0, "logits[%" PRId64 "]: 0 inside the window", i);
    free(first);
    cases_free(&c.memory);
}
END_TEST

/* Every tensor ends at a page without access; q rows are few, lengths short, tables exact. A read past any of them
 * is a fault. */
START_TEST(B44_short_q_before_a_guard_page)
{
    for (int64_t rows = 1; rows <= 8; rows++) {
        rng                   r = stream(44);
        const attention_shape s = { .b = 1,
                                    .hq = 1,
                                    .hkv = 1,
                                    .dqk = 5,
                                    .dv = 3,
                                    .q_lens = &rows,
                                    .k_lens = LENS(rows + 8),
                                    .causal = 1,
                                    .q = ETALON_BF16 };
        pa_mtp_case           c;
        pa_mtp_make(&c, &r, &s);
        ck_assert_ok(cases_run_pa_mtp(&c.args, 2));
        expect_finite(&c.args.out);
        cases_verify(&c.memory);
        cases_free(&c.memory);
    }
}
END_TEST

START_TEST(B45_q_len_1_to_8_with_distinct_tables)
{
    const int64_t         n = _i;
    rng                   r = stream(45);
    const attention_shape s = {
        .b = 3, .hq = 2, .hkv = 1, .dqk = 16, .dv = 8, .q_lens = LENS(n, n, n), .k_lens = LENS(40, 17, 65), .causal = 1
    };
    pa_mtp_case    c;
    twin_attention twin;
    pa_mtp_make(&c, &r, &s);
    ck_assert_ok(cases_run_pa_mtp(&c.args, 2));
    twin_pa_mtp(&c.args, &twin);
    for (int64_t i = 0; i < cases_count(&c.args.out); i++)
        cases_require(fabs(cases_get(&c.args.out, i) - twin.out[i]) <= twin.out_bound[i], "out[%" PRId64 "]", i);
    twin_attention_free(&twin);
    cases_free(&c.memory);
}
END_TEST

/* The paged logits against the twin's, where the twin has a number; -inf is exact. */
static void expect_paged_twin(const etalon_mqa_logits_paged_args *args)
{
    twin_mqa_logits_result twin;
    twin_mqa_logits_paged(args, &twin);
    for (int64_t i = 0; i < twin.m * twin.n; i++) {
        const double got = cases_get(&args->logits, i), want = twin.logits[i];
        cases_require(got == want || fabs(got - want) <= twin.bound[i], "logits[%" PRId64 "]: %.9g, twin %.9g", i, got,
                      want);
    }
    twin_mqa_logits_free(&twin);
}

START_TEST(B45_next_n_1_to_8_with_distinct_tables)
{
    enum { B = 3, MOST = 8 };
    static const int64_t  longest[B] = { 130, 5, 65 };
    int64_t               lens[B * MOST];
    rng                   r = stream(145);
    mqa_logits_paged_case c;
    for (int64_t i = 0; i < B * _i; i++)
        lens[i] = longest[i / _i] - _i + i % _i + 1; /* of the second sequence below 0 */
    mqa_logits_paged_make(&c, &r, &(mqa_logits_paged_shape){ .b = B, .next_n = _i, .h = 4, .d = 32, .lens = lens });
    ck_assert_ok(cases_run_mqa_logits_paged(&c.args, 2));
    expect_paged_twin(&c.args);
    cases_verify(&c.memory);
    cases_free(&c.memory);
}
END_TEST

/* Tokens of two requests, one and three, as rows of next_n = 1 that name their request's blocks. */
START_TEST(B46_tokens_of_two_requests)
{
    enum { H = 3, D = 16 };
    rng                   r = stream(146);
    mqa_logits_paged_case c, one;
    mqa_logits_paged_make(
        &c, &r, &(mqa_logits_paged_shape){ .b = 2, .next_n = 3, .h = H, .d = D, .lens = LENS(0, 0, 70, 63, 64, 65) });
    mqa_logits_paged_make(
        &one, &r, &(mqa_logits_paged_shape){ .b = 4, .next_n = 1, .h = H, .d = D, .lens = LENS(70, 63, 64, 65) });
    ck_assert_ok(cases_run_mqa_logits_paged(&c.args, 2));
    etalon_mqa_logits_paged_args a = one.args;
    a.kv_cache = c.args.kv_cache;
    for (int64_t row = 0; row < 4; row++) { /* rows 2 to 5 of the other call */
        const etalon_tensor q = cases_fix(cases_fix(c.args.q, 0, (row + 2) / 3), 0, (row + 2) % 3),
                            to = cases_fix(cases_fix(a.q, 0, row), 0, 0), w = cases_fix(c.args.weights, 0, row + 2),
                            w_to = cases_fix(a.weights, 0, row);
        cases_copy(&to, &q);
        cases_copy(&w_to, &w);
        for (int64_t i = 0; i < 2; i++)
            cases_set(&a.block_tables, 2 * row + i, cases_get(&c.args.block_tables, (row + 2) / 3 * 2 + i));
    }
    ck_assert_ok(cases_run_mqa_logits_paged(&a, 2));
    const etalon_tensor rows = cases_cut(c.args.logits, 0, 2, 4);
    cases_same_bits(&a.logits, &rows, "logits");
    cases_free(&c.memory);
    cases_free(&one.memory);
}
END_TEST

/* Rows of two requests over one K: one token that sees keys 0 to 6, three that see keys 7 to 7 + t. */
START_TEST(B46_rows_of_two_requests)
{
    rng             r = stream(46);
    mqa_logits_case c;
    mqa_logits_make(&c, &r, 4, 12, 3, 16);
    static const int ks[] = { 0, 7, 7, 7 }, ke[] = { 7, 10, 11, 12 };
    for (int64_t m = 0; m < 4; m++) {
        cases_set(&c.args.cu_seqlen_ks, m, ks[m]);
        cases_set(&c.args.cu_seqlen_ke, m, ke[m]);
    }
    ck_assert_ok(cases_run_mqa_logits(&c.args, 2));
    for (int64_t i = 0; i < 48; i++)
        cases_require(isfinite(cases_get(&c.args.logits, i)) == (i % 12 >= ks[i / 12] && i % 12 < ke[i / 12]),
                      "logits[%" PRId64 "]", i);
    cases_free(&c.memory);
}
END_TEST

/* LSE rows further apart than T. */
START_TEST(B47_padded_lse_rows)
{
    rng                   r = stream(47);
    const attention_shape s = {
        .b = 2, .hq = 3, .hkv = 1, .dqk = 16, .dv = 8, .q_lens = LENS(3, 4), .k_lens = LENS(9, 11), .causal = 1
    };
    fmha_varlen_case c;
    fmha_varlen_make(&c, &r, &s);
    ck_assert_ok(cases_run_fmha_varlen(&c.args, 2));
    const etalon_tensor     padded = cases_tensor(&c.memory, NULL, CASES_OUTPUT, ETALON_F32, 2, LENS(3, 64));
    etalon_fmha_varlen_args a = c.args;
    a.lse = cases_cut(padded, 1, 0, 7);
    ck_assert_ok(cases_run_fmha_varlen(&a, 2));
    cases_same_bits(&a.lse, &c.args.lse, "lse");
    const etalon_tensor rest = cases_cut(padded, 1, 7, 57);
    cases_untouched(&rest, "padding");
    cases_free(&c.memory);
}
END_TEST

START_TEST(B50_context_around_2048)
{
    static const int64_t  keys[] = { 2047, 2048, 2049, 4097 };
    rng                   r = stream(50);
    const attention_shape s = { .b = 1,
                                .hq = 1,
                                .hkv = 1,
                                .dqk = 16,
                                .dv = 8,
                                .q_lens = LENS(2),
                                .k_lens = &keys[_i],
                                .causal = 1,
                                .page_size = 64 };
    pa_mtp_case           c;
    twin_attention        twin;
    mqa_logits_case       m;
    pa_mtp_make(&c, &r, &s);
    ck_assert_ok(cases_run_pa_mtp(&c.args, 2));
    twin_pa_mtp(&c.args, &twin);
    for (int64_t i = 0; i < cases_count(&c.args.out); i++)
        cases_require(fabs(cases_get(&c.args.out, i) - twin.out[i]) <= twin.out_bound[i], "out[%" PRId64 "]", i);
    twin_mqa_logits_result logits;
    mqa_logits_make(&m, &r, 1, keys[_i], 4, 16);
    ck_assert_ok(cases_run_mqa_logits(&m.args, 2));
    twin_mqa_logits(&m.args, &logits);
    for (int64_t i = 0; i < keys[_i]; i++)
        cases_require(fabs(cases_get(&m.args.logits, i) - logits.logits[i]) <= logits.bound[i], "logits[%" PRId64 "]",
                      i);
    twin_mqa_logits_free(&logits);
    cases_free(&m.memory);
    twin_attention_free(&twin);
    cases_free(&c.memory);
}
END_TEST

START_TEST(B50_paged_context_around_2048)
{
    static const int64_t  keys[] = { 2047, 2048, 2049, 4097 };
    rng                   r = stream(150);
    mqa_logits_paged_case c;
    mqa_logits_paged_make(
        &c, &r,
        &(mqa_logits_paged_shape){ .b = 1, .next_n = 2, .h = 4, .d = 16, .lens = LENS(keys[_i] - 1, keys[_i]) });
    ck_assert_ok(cases_run_mqa_logits_paged(&c.args, 2));
    expect_paged_twin(&c.args);
    cases_free(&c.memory);
}
END_TEST

/* 6.4 Caches and scales
 * --------------------- */

/* kv_scale[n] = 2^(n % 5 - 2): each key has its own. */
START_TEST(B51_every_key_has_its_own_scale)
{
    enum { N = 65 };
    rng             r = stream(51);
    mqa_logits_case c;
    mqa_logits_make(&c, &r, 2, N, 4, 32);
    cases_fill(&c.args.kv_scale, 1.0);
    ck_assert_ok(cases_run_mqa_logits(&c.args, 2));
    uint32_t *plain = cases_bits(&c.args.logits);
    for (int64_t n = 0; n < N; n++)
        cases_set(&c.args.kv_scale, n, ldexp(1.0, (int)(n % 5) - 2));
    ck_assert_ok(cases_run_mqa_logits(&c.args, 2));
    for (int64_t i = 0; i < 2 * N; i++) {
        float before;
        memcpy(&before, &plain[i], sizeof before);
        cases_require(cases_get(&c.args.logits, i) == ldexp((double)before, (int)(i % N % 5) - 2),
                      "logits[%" PRId64 "]", i);
    }
    free(plain);
    cases_free(&c.memory);
}
END_TEST

/* Block 64, 65 keys, each row of its own and scale 2^(n % 5 - 2): the bits of the dense operation on gathered rows. */
START_TEST(B51_paged_is_dense_on_gathered_rows)
{
    enum { N = 65, H = 4, D = 32 };
    rng                   r = stream(151);
    mqa_logits_paged_case c;
    mqa_logits_case       gathered;
    mqa_logits_paged_make(
        &c, &r,
        &(mqa_logits_paged_shape){ .b = 1, .next_n = 2, .h = H, .d = D, .lens = LENS(64, N), .max_context_len = N });
    mqa_logits_make(&gathered, &r, 2, N, H, D);
    for (int64_t n = 0; n < N; n++) {
        const etalon_tensor key = mqa_logits_paged_key(&c.args, 0, n), scale = mqa_logits_paged_scale(&c.args, 0, n);
        const etalon_tensor to = cases_fix(gathered.args.k, 0, n);
        cases_copy(&to, &key);
        cases_set(&scale, 0, ldexp(1.0, (int)(n % 5) - 2));
        cases_set(&gathered.args.kv_scale, n, ldexp(1.0, (int)(n % 5) - 2));
    }
    gathered.args.q = cases_fix(c.args.q, 0, 0);
    gathered.args.weights = c.args.weights;
    cases_set(&gathered.args.cu_seqlen_ke, 0, 64.0);
    ck_assert_ok(cases_run_mqa_logits_paged(&c.args, 2));
    ck_assert_ok(cases_run_mqa_logits(&gathered.args, 2));
    cases_same_bits(&c.args.logits, &gathered.args.logits, "logits");
    cases_free(&c.memory);
    cases_free(&gathered.memory);
}
END_TEST

START_TEST(B52_nothing_is_stored_past_column_n)
{
    enum { N = 4097 };
    rng             r = stream(52);
    mqa_logits_case c;
    mqa_logits_make(&c, &r, 2, N, 1, 8);
    const etalon_tensor wide = cases_tensor(&c.memory, NULL, CASES_OUTPUT, ETALON_F32, 2, LENS(2, N + 255));
    c.args.logits = cases_cut(wide, 1, 0, N);
    for (int clean = 0; clean < 2; clean++) {
        c.args.clean_logits = clean;
        cases_poison_outputs(&c.memory);
        ck_assert_ok(cases_run_mqa_logits(&c.args, 2));
        const etalon_tensor rest = cases_cut(wide, 1, N, 255);
        cases_untouched(&rest, "past column N");
        cases_written(&c.args.logits, "logits");
    }
    cases_free(&c.memory);
}
END_TEST

START_TEST(B54_strided_descales_are_honoured)
{
    enum { B = 2, HKV = 3 };
    rng                   r = stream(54);
    const attention_shape s = { .b = B,
                                .hq = HKV,
                                .hkv = HKV,
                                .dqk = 16,
                                .dv = 8,
                                .q_lens = LENS(2, 2),
                                .k_lens = LENS(9, 20),
                                .q_descale = CASES_DESCALE_HEADS,
                                .k_descale = CASES_DESCALE_HEADS,
                                .v_descale = CASES_DESCALE_HEADS };
    fmha_varlen_case      c;
    fmha_varlen_make(&c, &r, &s);
    ck_assert_ok(cases_run_fmha_varlen(&c.args, 2));
    uint32_t      *dense = cases_bits(&c.args.out);
    etalon_tensor *descales[] = { &c.args.q_descale, &c.args.k_descale, &c.args.v_descale };
    for (int i = 0; i < 3; i++) { /* transposed, every second element; the others are NaN */
        const etalon_tensor storage = cases_tensor(&c.memory, NULL, CASES_INPUT, ETALON_F32, 2, LENS(HKV, 2 * B));
        etalon_tensor       view = cases_swap(storage, 0, 1);
        view.shape[0] = B;
        view.stride[0] *= 2;
        cases_copy(&view, descales[i]);
        *descales[i] = view;
    }
    ck_assert_ok(cases_run_fmha_varlen(&c.args, 2));
    uint32_t *apart = cases_bits(&c.args.out);
    ck_assert_mem_eq(dense, apart, sizeof *dense * (size_t)cases_count(&c.args.out));
    free(dense);
    free(apart);
    cases_free(&c.memory);
}
END_TEST

/* 6.5 Scales, formats, rounding
 * ----------------------------- */

/* The same codes as E4M3FN and as E4M3FNUZ: half the value; 0x80 is -0 in one and NaN in the other. */
START_TEST(B55_each_operand_by_its_own_format)
{
    static const etalon_dtype formats[2] = { ETALON_E4M3FN, ETALON_E4M3FNUZ };
    const etalon_dtype        q = formats[_i & 1], k = formats[_i >> 1];
    const double              factor = (q == ETALON_E4M3FN ? 1.0 : 0.5) * (k == ETALON_E4M3FN ? 1.0 : 0.5);
    rng                       r = stream(55);
    mqa_logits_case           c;
    mqa_logits_make(&c, &r, 2, 5, 2, 16);
    for (int64_t i = 0; i < cases_count(&c.args.k); i++) /* no zero: E4M3FN's -0 is another's NaN */
        if (cases_get(&c.args.k, i) == 0.0)
            cases_set(&c.args.k, i, 1.0);
    for (int64_t i = 0; i < cases_count(&c.args.q); i++)
        if (cases_get(&c.args.q, i) == 0.0)
            cases_set(&c.args.q, i, 1.0);
    ck_assert_ok(cases_run_mqa_logits(&c.args, 1));
    uint32_t *plain = cases_bits(&c.args.logits);
    c.args.q.dtype = q;
    c.args.k.dtype = k;
    ck_assert_ok(cases_run_mqa_logits(&c.args, 1));
    for (int64_t i = 0; i < 10; i++) {
        float before;
        memcpy(&before, &plain[i], sizeof before);
        ck_assert_double_eq(cases_get(&c.args.logits, i), factor * (double)before);
    }
    free(plain);
    *(uint8_t *)cases_at(&c.args.k, 3 * 16) = 0x80; /* key 3, dim 0 */
    ck_assert_ok(cases_run_mqa_logits(&c.args, 1));
    for (int64_t i = 0; i < 10; i++)
        ck_assert_int_eq(isnan(cases_get(&c.args.logits, i)) != 0, i % 5 == 3 && k == ETALON_E4M3FNUZ);
    cases_free(&c.memory);
}
END_TEST

/* One key 1 of dim 1 and scale 1: the lse of the model row is q as it was rounded, so that every BF16 value can be
 * seen. */
static void model_lse_of_q(pa_mtp_case *c, int64_t tokens, etalon_dtype dtype)
{
    rng                   r = stream(56);
    const attention_shape s = {
        .b = 1, .hq = 1, .hkv = 1, .dqk = 1, .dv = 1, .q_lens = &tokens, .k_lens = LENS(1), .q = dtype
    };
    pa_mtp_make(c, &r, &s);
    const etalon_tensor k = pa_mtp_slot(&c->args, &c->args.k_cache, 0, 0);
    cases_fill(&k, 1.0);
    c->args.softmax_scale = 1.0;
    c->args.kernel = "pa_mtp_model";
}

START_TEST(B56_all_bf16_to_e4m3)
{
    pa_mtp_case c;
    model_lse_of_q(&c, 65536, ETALON_BF16);
    for (int64_t code = 0; code < 65536; code++) {
        const uint16_t bits = (uint16_t)code;
        memcpy(cases_at(&c.args.q, code), &bits, sizeof bits);
    }
    ck_assert_ok(cases_run_pa_mtp(&c.args, 2));
    for (int64_t code = 0; code < 65536; code++) {
        const double want = twin_round(cases_get(&c.args.q, code), ETALON_E4M3FN), got = cases_get(&c.args.lse, code);
        cases_require(isnan(want) ? isnan(got) != 0 : got == want, "bf16 0x%04" PRIx64 ": %g, expected %g", code, got,
                      want);
    }
    static const struct {
        double x, rounded;
    } named[] = { { 300.0, 288.0 }, { 448.0, 448.0 }, { 17.0, 16.0 } };
    for (size_t i = 0; i < COUNT_OF(named); i++)
        ck_assert_double_eq(twin_round(named[i].x, ETALON_E4M3FN), named[i].rounded);
    cases_free(&c.memory);
}
END_TEST

START_TEST(B57_overflow_saturates)
{
    static const double in[] = { 448.0,       464.0,  464.0001, 480.0, 1000.0, (double)INFINITY, -(double)INFINITY,
                                 (double)NAN, 0x1p-10 };
    static const double want[] = { 448.0, 448.0, 448.0, 448.0, 448.0, 448.0, -448.0, (double)NAN, 0.0 };
    pa_mtp_case         c;
    model_lse_of_q(&c, COUNT_OF(in), ETALON_F32);
    for (size_t i = 0; i < COUNT_OF(in); i++)
        cases_set(&c.args.q, (int64_t)i, in[i]);
    ck_assert_ok(cases_run_pa_mtp(&c.args, 1));
    for (size_t i = 0; i < COUNT_OF(in); i++) {
        const double got = cases_get(&c.args.lse, (int64_t)i);
        ck_assert_msg(isnan(want[i]) ? isnan(got) : got == want[i], "%g: %g, expected %g", in[i], got, want[i]);
    }
    cases_free(&c.memory);
}
END_TEST

START_TEST(B59_descale_shapes)
{
    static const int32_t  ranks[] = { 0, 1, 2 };
    rng                   r = stream(59);
    const attention_shape s = {
        .b = 2, .hq = 4, .hkv = 2, .dqk = 16, .dv = 8, .q_lens = LENS(2, 2), .k_lens = LENS(9, 20)
    };
    pa_mtp_case c;
    pa_mtp_make(&c, &r, &s);
    uint32_t *before = NULL;
    for (size_t i = 0; i < COUNT_OF(ranks); i++) {
        const etalon_tensor t =
            cases_tensor(&c.memory, NULL, CASES_INPUT, ETALON_F32, ranks[i], ranks[i] == 1 ? LENS(1) : LENS(2, 2));
        cases_fill(&t, 0.7);
        c.args.q_descale = c.args.k_descale = c.args.v_descale = t;
        ck_assert_ok(cases_run_pa_mtp(&c.args, 2));
        uint32_t *now = cases_bits(&c.args.out);
        if (before != NULL)
            ck_assert_mem_eq(before, now, sizeof *now * (size_t)cases_count(&c.args.out));
        free(before);
        before = now;
    }
    free(before);
    c.args.k_descale =
        cases_tensor(&c.memory, NULL, CASES_INPUT, ETALON_F32, 1, LENS(2)); /* neither (1) nor (B, Hkv) */
    cases_fill(&c.args.k_descale, 1.0);
    ck_assert_rejects(cases_run_pa_mtp(&c.args, 1), ETALON_ERROR_INVALID_ARGUMENT, "k_descale");
    cases_free(&c.memory);
}
END_TEST

START_TEST(B60_descale_of_a_bf16_cache_is_an_error)
{
    rng                   r = stream(60);
    const attention_shape s = { .b = 1,
                                .hq = 1,
                                .hkv = 1,
                                .dqk = 8,
                                .dv = 8,
                                .q_lens = LENS(1),
                                .k_lens = LENS(9),
                                .q = ETALON_BF16,
                                .kv = ETALON_BF16 };
    pa_mtp_case           c;
    pa_mtp_make(&c, &r, &s);
    const etalon_tensor descale = cases_tensor(&c.memory, NULL, CASES_INPUT, ETALON_F32, 1, LENS(1));
    cases_fill(&descale, 7.0);
    etalon_pa_mtp_args a = c.args;
    a.k_descale = descale;
    ck_assert_rejects(cases_run_pa_mtp(&a, 1), ETALON_ERROR_INVALID_ARGUMENT, "k_descale");
    a = c.args;
    a.v_descale = descale;
    ck_assert_rejects(cases_run_pa_mtp(&a, 1), ETALON_ERROR_INVALID_ARGUMENT, "v_descale");
    a = c.args;
    a.q_descale = descale;
    ck_assert_rejects(cases_run_pa_mtp(&a, 1), ETALON_ERROR_INVALID_ARGUMENT, "q_descale");
    cases_untouched(&c.args.out, "out");
    cases_free(&c.memory);
}
END_TEST

/* q_descale 1/2, k_descale 2, v_descale 1/4 give the bits of inputs that were scaled themselves. */
START_TEST(B61_every_descale_is_applied_once)
{
    static const double   factors[] = { 0.5, 2.0, 0.25 };
    rng                   r = stream(61);
    const attention_shape s = { .b = 1,
                                .hq = 2,
                                .hkv = 1,
                                .dqk = 16,
                                .dv = 8,
                                .q_lens = LENS(3),
                                .k_lens = LENS(20),
                                .q_descale = CASES_DESCALE_ONE,
                                .k_descale = CASES_DESCALE_ONE,
                                .v_descale = CASES_DESCALE_ONE };
    fmha_varlen_case      c;
    fmha_varlen_make(&c, &r, &s);
    etalon_tensor *values[] = { &c.args.q, &c.args.k, &c.args.v };
    etalon_tensor *descales[] = { &c.args.q_descale, &c.args.k_descale, &c.args.v_descale };
    for (int i = 0; i < 3; i++) {
        cases_set(descales[i], 0, factors[i]);
        for (int64_t j = 0; j < cases_count(values[i]); j++) /* 1/8 to 2: a power of two more or less stays normal */
            cases_set(values[i], j,
                      copysign(0.125 + fmin(fabs(cases_get(values[i], j)), 1.875), cases_get(values[i], j)));
    }
    ck_assert_ok(cases_run_fmha_varlen(&c.args, 1));
    uint32_t *out = cases_bits(&c.args.out), *lse = cases_bits(&c.args.lse);
    for (int i = 0; i < 3; i++) {
        for (int64_t j = 0; j < cases_count(values[i]); j++)
            cases_set(values[i], j, factors[i] * cases_get(values[i], j));
        *descales[i] = (etalon_tensor){ 0 };
    }
    ck_assert_ok(cases_run_fmha_varlen(&c.args, 1));
    uint32_t *out_now = cases_bits(&c.args.out), *lse_now = cases_bits(&c.args.lse);
    ck_assert_mem_eq(out, out_now, sizeof *out * (size_t)cases_count(&c.args.out));
    ck_assert_mem_eq(lse, lse_now, sizeof *lse * (size_t)cases_count(&c.args.lse));
    free(out);
    free(lse);
    free(out_now);
    free(lse_now);
    cases_free(&c.memory);
}
END_TEST

/* Hot key: 16384 keys of score 0 but one of `gap` nats. Exactly, with a = exp(gap) and n = 16383,
 *   V = +1 there and -1 elsewhere: O = (a - n) / (a + n);   V = 0 there and 1 elsewhere: mass = n / (a + n);
 *   LSE = ln(a + n). */
enum { HOT_KEYS = 16384, HOT_D = 192, HOT_TILE = 128 };

static const struct hot {
    double gap, out, mass; /* as published, to the digits there; gap 0: the default scale, 112 / sqrt(192) */
} hots[] = { { 0.0, -0.6699, 0.8349 },
             { 8.0, -0.6921, 0.8461 },
             { 11.0, 0.5703, 0.2148 },
             { 13.5, 0.9561, 0.02197 },
             { 15.0, 0.9900, 0.00499 } };

static const int64_t hot_positions[] = { 0, 1, HOT_KEYS / 2, HOT_KEYS - 1 };

/* Column 0 of V is +-1, column 1 is the mass. */
static void hot_case(fmha_varlen_case *c, double gap, int64_t at)
{
    rng                   r = stream(64);
    const attention_shape s = {
        .b = 1, .hq = 1, .hkv = 1, .dqk = HOT_D, .dv = 2, .q_lens = LENS(1), .k_lens = LENS(HOT_KEYS)
    };
    fmha_varlen_make(c, &r, &s);
    memset(c->args.q.data, 0, HOT_D);
    memset(c->args.k.data, 0, HOT_KEYS * (size_t)HOT_D);
    cases_set(&c->args.q, 0, 8.0);
    cases_set(&c->args.k, at * HOT_D, 14.0);
    for (int64_t j = 0; j < HOT_KEYS; j++) {
        cases_set(&c->args.v, 2 * j, j == at ? 1.0 : -1.0);
        cases_set(&c->args.v, 2 * j + 1, j == at ? 0.0 : 1.0);
    }
    c->args.softmax_scale = gap / 112.0;
    cases_seal(&c->memory);
}

START_TEST(B64_hot_key_of_the_reference)
{
    const struct hot *h = &hots[_i];
    const double      gap = h->gap == 0.0 ? 112.0 / sqrt(192.0) : h->gap, a = exp(gap), n = HOT_KEYS - 1;
    ck_assert_double_eq_tol((a - n) / (a + n), h->out, 1e-4); /* the table's digits */
    ck_assert_double_eq_tol(n / (a + n), h->mass, 1e-4);
    if (_i == 0) {
        ck_assert_double_eq_tol((a - n) / (a + n), -0.669892, 5e-7);
        ck_assert_double_eq_tol(log(a + n), 9.884387, 5e-7);
    }
    for (size_t i = 0; i < COUNT_OF(hot_positions); i++) {
        fmha_varlen_case c;
        twin_attention   twin;
        hot_case(&c, h->gap, hot_positions[i]);
        ck_assert_ok(cases_run_fmha_varlen(&c.args, 2));
        twin_fmha_varlen(&c.args, &twin);
        const double wants[] = { (a - n) / (a + n), n / (a + n) };
        for (int d = 0; d < 2; d++)
            ck_assert_msg(fabs(cases_get(&c.args.out, d) - wants[d]) <= twin.out_bound[d],
                          "gap %g at %" PRId64 ": %.9g, expected %.9g", gap, hot_positions[i],
                          cases_get(&c.args.out, d), wants[d]);
        ck_assert_msg(fabs(cases_get(&c.args.lse, 0) - log(a + n)) <= twin.lse_bound[0], "gap %g: lse %.9g", gap,
                      cases_get(&c.args.lse, 0));
        twin_attention_free(&twin);
        cases_free(&c.memory);
    }
}
END_TEST

/* The rounding model with tile or block maxima loses at most the weights that share the hot key's tile (or block of
 * 32), and half a code of the hot one. */
START_TEST(B64_hot_key_of_the_local_scales)
{
    static const struct {
        etalon_p_scale p_scale;
        double         share;
    } policies[] = { { ETALON_P_SCALE_TILE, HOT_TILE - 1 }, { ETALON_P_SCALE_BLOCK32, 31 } };
    const double gap = hots[_i].gap == 0.0 ? 112.0 / sqrt(192.0) : hots[_i].gap, a = exp(gap), n = HOT_KEYS - 1;
    for (size_t p = 0; p < COUNT_OF(policies); p++)
        for (size_t i = 0; i < COUNT_OF(hot_positions); i++) {
            fmha_varlen_case c;
            twin_attention   twin;
            hot_case(&c, hots[_i].gap, hot_positions[i]);
            c.args.kernel = "fmha_varlen_model";
            c.args.model = (etalon_model_options){ .p_scale = policies[p].p_scale, .tile_keys = HOT_TILE };
            ck_assert_ok(cases_run_fmha_varlen(&c.args, 2));
            twin_fmha_varlen_model(&c.args, &twin);
            const double mass = n / (a + n), got = cases_get(&c.args.out, 1);
            /* BLOCK32 rounds the tail after division by the running maximum, with a relative error of 2^-4 at most */
            const double lost = policies[p].p_scale == ETALON_P_SCALE_TILE
                                    ? policies[p].share / (a + n)
                                    : policies[p].share / (a + n) + 0x1p-4 * mass;
            ck_assert_msg(fabs(got - mass) <= lost + twin.out_bound[1], "gap %g at %" PRId64 ": mass %.9g, exact %.9g",
                          gap, hot_positions[i], got, mass);
            ck_assert_msg(fabs(cases_get(&c.args.lse, 0) - log(a + n)) <= twin.lse_bound[0], "gap %g: lse %.9g", gap,
                          cases_get(&c.args.lse, 0));
            twin_attention_free(&twin);
            cases_free(&c.memory);
        }
}
END_TEST

/* Tiles and blocks are counted from key 0 of the sequence, not from the first key of a window: each position of the
 * hot key takes other tail weights with it, and the mass column shows every one of them. */
START_TEST(B64_hot_key_in_a_window)
{
    static const int64_t positions[] = { 5, 6, 31, 32, 36, 37, HOT_KEYS / 2, HOT_KEYS - 1 };
    for (size_t i = 0; i < COUNT_OF(positions); i++) {
        fmha_varlen_case c;
        twin_attention   twin;
        hot_case(&c, 13.5, positions[i]);
        c.args.window_left = HOT_KEYS - 1 - 5; /* the first visible key is 5 */
        c.args.kernel = "fmha_varlen_model";
        c.args.model = (etalon_model_options){ .p_scale = (etalon_p_scale)_i, .tile_keys = HOT_TILE };
        ck_assert_ok(cases_run_fmha_varlen(&c.args, 2));
        twin_fmha_varlen_model(&c.args, &twin);
        for (int d = 0; d < 2; d++)
            ck_assert_msg(fabs(cases_get(&c.args.out, d) - twin.out[d]) <= twin.out_bound[d],
                          "policy %d, hot key %" PRId64 ": out[%d] %.9g, twin %.9g, bound %.3g", _i, positions[i], d,
                          cases_get(&c.args.out, d), twin.out[d], twin.out_bound[d]);
        twin_attention_free(&twin);
        cases_free(&c.memory);
    }
}
END_TEST

/* What the fixed scale is known to do, so that the model stays honest: past 10 * ln 2 + 8 * ln 2 nats under an older
 * maximum the tail rounds to nothing, while the same tail before the hot key survives. */
START_TEST(B64_hot_key_of_the_fixed_scale)
{
    const double a = exp(13.5), n = HOT_KEYS - 1;
    for (int last = 0; last < 2; last++) {
        fmha_varlen_case c;
        hot_case(&c, 13.5, last ? HOT_KEYS - 1 : 0);
        c.args.kernel = "fmha_varlen_model";
        c.args.model = (etalon_model_options){ .p_scale = ETALON_P_SCALE_FIXED, .tile_keys = HOT_TILE };
        ck_assert_ok(cases_run_fmha_varlen(&c.args, 2));
        const double mass = cases_get(&c.args.out, 1);
        if (last)
            ck_assert_double_eq_tol(mass, n / (a + n), (HOT_TILE - 1) / (a + n) + twin_out_relative(0.0));
        else
            ck_assert_double_eq(mass, 0.0);
        cases_free(&c.memory);
    }
}
END_TEST

/* V = 1 over 65536 keys with random q and k: 1 for the reference, and for the model 1 within half a code of every
 * weight. */
START_TEST(B64_v_ones_at_64k_keys)
{
    enum { KEYS = 65536, D = 192 };
    rng                   r = stream(65);
    const attention_shape s = { .b = 1, .hq = 1, .hkv = 1, .dqk = D, .dv = 1, .q_lens = LENS(1), .k_lens = LENS(KEYS) };
    fmha_varlen_case      c;
    fmha_varlen_make(&c, &r, &s);
    cases_fill(&c.args.v, 1.0);
    twin_attention twin;
    if (_i == 0) {
        ck_assert_ok(cases_run_fmha_varlen(&c.args, 2));
        twin_fmha_varlen(&c.args, &twin);
        ck_assert_double_eq_tol(cases_get(&c.args.out, 0), 1.0, twin.out_bound[0]);
    } else {
        c.args.kernel = "fmha_varlen_model";
        c.args.model.p_scale = (etalon_p_scale)(_i - 1);
        ck_assert_ok(cases_run_fmha_varlen(&c.args, 2));
        twin_fmha_varlen_model(&c.args, &twin);
        ck_assert_double_eq_tol(cases_get(&c.args.out, 0), twin.out[0], twin.out_bound[0]);
        ck_assert_double_eq_tol(cases_get(&c.args.out, 0), 1.0, twin.loss_bound[0] + twin.out_bound[0]);
    }
    ck_assert_double_eq_tol(cases_get(&c.args.lse, 0), twin.lse[0], twin.lse_bound[0]);
    twin_attention_free(&twin);
    cases_free(&c.memory);
}
END_TEST

/* 3072 and 64 uniform keys: the suffix weighs 64 / 3136 = 2.041 %; logarithms to the base 2 would give 0.374 %. */
START_TEST(B66_lse_is_a_natural_logarithm)
{
    const merged m = merge(0.0, log(3072.0), 1.0, log(64.0));
    const double gap = log(48.0),
                 bound = (8.0 + 2.0 * gap) * TWIN_U + TWIN_U * gap * 8.0; /* the inputs were rounded to fp32 */
    ck_assert_double_eq_tol(m.out, 64.0 / 3136.0, bound);
    ck_assert_double_eq_tol(m.lse, log(3136.0), 4.0 * TWIN_U + 2.0 * TWIN_U * log(3136.0));
}
END_TEST

START_TEST(B67_lse_layout)
{
    enum { H = 5, T = 251 };
    rng                   r = stream(67);
    const attention_shape s = {
        .b = 1, .hq = H, .hkv = 1, .dqk = 1, .dv = 1, .q_lens = LENS(T), .k_lens = LENS(1), .q = ETALON_F32
    };
    fmha_varlen_case c;
    fmha_varlen_make(&c, &r, &s);
    cases_set(&c.args.k, 0, 1.0);
    c.args.softmax_scale = 1.0;
    for (int64_t t = 0; t < T; t++)
        for (int64_t h = 0; h < H; h++)
            cases_set(&c.args.q, t * H + h, (double)(1000 * h + t)); /* one key 1: the lse is the score is q */
    ck_assert_ok(cases_run_fmha_varlen(&c.args, 2));
    const float *lse = c.args.lse.data;
    for (int64_t i = 0; i < H * T; i++)
        cases_require(lse[i] == (float)(1000 * (i / T) + i % T), "lse[%" PRId64 "]: %g", i, (double)lse[i]);
    cases_free(&c.memory);
}
END_TEST

/* A scale of 1/8 is q / 8 at scale 1, bit for bit; and another scale is another result. */
START_TEST(B68_softmax_scale_is_used)
{
    rng                   r = stream(68);
    const attention_shape s = { .b = 1,
                                .hq = 2,
                                .hkv = 1,
                                .dqk = 64,
                                .dv = 8,
                                .q_lens = LENS(3),
                                .k_lens = LENS(20),
                                .q = ETALON_BF16,
                                .causal = 1 };
    pa_mtp_case           c;
    pa_mtp_make(&c, &r, &s);
    uint32_t           *bits[4];
    static const double scales[] = { 0.125, 0.0 /* 1 / sqrt(64) */, 0.1, 1.0 };
    for (int i = 0; i < 4; i++) {
        c.args.softmax_scale = scales[i];
        for (int64_t j = 0; j < cases_count(&c.args.q) && scales[i] == 1.0; j++)
            cases_set(&c.args.q, j, 0.125 * cases_get(&c.args.q, j));
        ck_assert_ok(cases_run_pa_mtp(&c.args, 2));
        bits[i] = cases_bits(&c.args.lse);
    }
    const size_t bytes = sizeof *bits[0] * (size_t)cases_count(&c.args.lse);
    ck_assert_mem_eq(bits[0], bits[1], bytes);
    ck_assert_mem_ne(bits[0], bits[2], bytes);
    ck_assert_mem_eq(bits[0], bits[3], bytes);
    for (int i = 0; i < 4; i++)
        free(bits[i]);
    cases_free(&c.memory);
}
END_TEST

/* 6.6 Masks, shapes, capacity
 * --------------------------- */

START_TEST(B69_causal_support)
{
    static const int64_t rows[] = { 1, 2, 127, 128, 129, 255, 257 }, more[] = { 0, 1, -1, 64 };
    for (size_t i = 0; i < COUNT_OF(more); i++)
        if (rows[_i] + more[i] > 0) /* without keys: B22 */
            check_support(69, rows[_i], rows[_i] + more[i], 1);
}
END_TEST

/* A table that is exactly as long as the sequence, then a page without access; one key more than the table holds is
 * refused before anything is read; so are tables, lengths and q that do not belong to the batch. */
START_TEST(B70_never_past_the_page_table)
{
    rng                   r = stream(70);
    const attention_shape s = {
        .b = 2, .hq = 2, .hkv = 1, .dqk = 8, .dv = 8, .q_lens = LENS(1, 2), .k_lens = LENS(48, 33), .causal = 1
    };
    pa_mtp_case c;
    pa_mtp_make(&c, &r, &s);
    ck_assert_int_eq(c.args.block_tables.shape[1], 3);
    ck_assert_ok(cases_run_pa_mtp(&c.args, 2));
    cases_verify(&c.memory);
    cases_poison_outputs(&c.memory);
    cases_set(&c.args.seq_lens, 1, 49.0);
    ck_assert_rejects(cases_run_pa_mtp(&c.args, 2), ETALON_ERROR_INVALID_ARGUMENT, "seq_lens[1]");
    cases_set(&c.args.seq_lens, 1, -1.0);
    ck_assert_rejects(cases_run_pa_mtp(&c.args, 2), ETALON_ERROR_INVALID_ARGUMENT, "seq_lens[1]");
    cases_set(&c.args.seq_lens, 1, 33.0);
    static const double pages[] = { -1.0, 7.0, INT32_MAX, INT32_MIN }; /* 1 + 3 + 3 pages exist */
    const double        last = cases_get(&c.args.block_tables, 5);
    for (size_t i = 0; i < COUNT_OF(pages); i++) {
        cases_set(&c.args.block_tables, 5, pages[i]);
        ck_assert_rejects(cases_run_pa_mtp(&c.args, 2), ETALON_ERROR_INVALID_ARGUMENT, "block_tables[1, 2]");
    }
    cases_set(&c.args.block_tables, 5, last);
    etalon_pa_mtp_args a = c.args;
    a.block_tables.shape[0] = 1;
    ck_assert_rejects(cases_run_pa_mtp(&a, 2), ETALON_ERROR_INVALID_ARGUMENT, "block_tables");
    a = c.args;
    a.q.shape[0] = a.out.shape[0] = a.lse.shape[1] = 2; /* fewer rows than cu_seqlens_q says */
    ck_assert_rejects(cases_run_pa_mtp(&a, 2), ETALON_ERROR_INVALID_ARGUMENT, "cu_seqlens_q");
    a = c.args;
    a.cu_seqlens_q.shape[0] = 2;
    ck_assert_rejects(cases_run_pa_mtp(&a, 2), ETALON_ERROR_INVALID_ARGUMENT, "cu_seqlens_q");
    a = c.args;
    a.v_cache.shape[0] = 4;
    ck_assert_rejects(cases_run_pa_mtp(&a, 2), ETALON_ERROR_INVALID_ARGUMENT, "v_cache");
    cases_untouched(&c.args.out, "out");
    cases_untouched(&c.args.lse, "lse");
    cases_free(&c.memory);
}
END_TEST

/* Head dims that kernels elsewhere take for 128 in silence. */
START_TEST(B70_every_head_dim)
{
    static const int64_t  dims[] = { 1, 63, 64, 65, 80, 96, 127, 128, 192, 255, 256, 257, 512, 576 };
    const int64_t         dim = dims[_i];
    rng                   r = stream(71);
    const attention_shape s = {
        .b = 1, .hq = 1, .hkv = 1, .dqk = dim, .dv = dim, .q_lens = LENS(2), .k_lens = LENS(19), .causal = 1
    };
    pa_mtp_case    c;
    twin_attention twin;
    pa_mtp_make(&c, &r, &s);
    ck_assert_ok(cases_run_pa_mtp(&c.args, 2));
    twin_pa_mtp(&c.args, &twin);
    for (int64_t i = 0; i < cases_count(&c.args.out); i++)
        cases_require(fabs(cases_get(&c.args.out, i) - twin.out[i]) <= twin.out_bound[i], "out[%" PRId64 "]", i);
    twin_attention_free(&twin);
    etalon_pa_mtp_args a = c.args;
    a.q.shape[2] = a.k_cache.shape[3] = 577;
    a.q.stride[2] = a.k_cache.stride[3] = 0;
    ck_assert_rejects(cases_run_pa_mtp(&a, 2), ETALON_ERROR_INVALID_ARGUMENT, "577");
    cases_free(&c.memory);
}
END_TEST

static void fill_rows(TCase *tcase)
{
    tcase_add_test(tcase, B01_block_id_beyond_16_bits);
    tcase_add_test(tcase, B02_page_of_one_token_past_8_million_pages);
    tcase_add_loop_test(tcase, B03_last_page_ends_at_2_31_or_2_32, 0, 6);
    tcase_add_test(tcase, B04_wide_output_rows);
    tcase_add_test(tcase, B05_key_rows_past_2_gib);
    tcase_add_test(tcase, B05_blocks_past_2_gib);
    tcase_add_test(tcase, B06_key_rows_at_another_stride);
    tcase_add_test(tcase, B06_blocks_at_another_stride);
    tcase_add_test(tcase, B07_page_id_beyond_24_bits);
    tcase_add_test(tcase, B08_block_stride_wider_than_the_block);
    tcase_add_loop_test(tcase, B09_interleaved_kv_pool, 0, 2);
    tcase_add_test(tcase, B10_token_stride_of_8_mib);
    tcase_add_test(tcase, B11_output_index_past_2_31);
    tcase_add_test(tcase, B13_k_and_v_with_different_strides);
    tcase_add_test(tcase, B14_v_as_a_transposed_view);
    tcase_add_test(tcase, B15_lengths_belong_to_sequences);
    tcase_add_test(tcase, B16_many_sequences);
    tcase_add_test(tcase, B18_fully_masked_rows);
    tcase_add_loop_test(tcase, B22_empty_kv_in_a_ragged_batch, 0, 2);
    tcase_add_loop_test(tcase, B23_empty_extents, 0, 8);
    tcase_add_test(tcase, B24_combine_of_empty_splits);
    tcase_add_loop_test(tcase, B26_splits_of_short_sequences, 0, 5);
    tcase_add_test(tcase, B27_one_split_count_for_long_and_short);
    tcase_add_test(tcase, B28_oob_tail_page_holds_nan);
    tcase_add_test(tcase, B29_null_block_0_holds_nan);
    tcase_add_loop_test(tcase, B30_seq_len_0, 0, 2);
    tcase_add_test(tcase, B32_nan_in_a_key_scale);
    tcase_add_test(tcase, B33_all_windows_empty);
    tcase_add_test(tcase, B33_all_contexts_empty);
    tcase_add_loop_test(tcase, B34_tail_of_the_last_tile_weighs_nothing, 0, 11);
    tcase_add_test(tcase, B35_rows_before_the_first_tile_edge);
    tcase_add_test(tcase, B37_bad_arguments_are_refused);
    tcase_add_test(tcase, B38_zero_with_a_negative_weight);
    tcase_add_test(tcase, B39_identical_requests_of_q_len_6);
    tcase_add_test(tcase, B40_alone_and_in_a_batch_of_8);
    tcase_add_loop_test(tcase, B41_repeats_of_the_indexer, 0, 2);
    tcase_add_test(tcase, B44_short_q_before_a_guard_page);
    tcase_add_loop_test(tcase, B45_q_len_1_to_8_with_distinct_tables, 1, 9);
    tcase_add_loop_test(tcase, B45_next_n_1_to_8_with_distinct_tables, 1, 9);
    tcase_add_test(tcase, B46_rows_of_two_requests);
    tcase_add_test(tcase, B46_tokens_of_two_requests);
    tcase_add_test(tcase, B47_padded_lse_rows);
    tcase_add_loop_test(tcase, B50_context_around_2048, 0, 4);
    tcase_add_loop_test(tcase, B50_paged_context_around_2048, 0, 4);
    tcase_add_test(tcase, B51_every_key_has_its_own_scale);
    tcase_add_test(tcase, B51_paged_is_dense_on_gathered_rows);
    tcase_add_test(tcase, B52_nothing_is_stored_past_column_n);
    tcase_add_test(tcase, B54_strided_descales_are_honoured);
    tcase_add_loop_test(tcase, B55_each_operand_by_its_own_format, 0, 4);
    tcase_add_test(tcase, B59_descale_shapes);
    tcase_add_test(tcase, B60_descale_of_a_bf16_cache_is_an_error);
    tcase_add_test(tcase, B61_every_descale_is_applied_once);
    tcase_add_loop_test(tcase, B64_hot_key_of_the_reference, 0, (int)COUNT_OF(hots));
    tcase_add_loop_test(tcase, B64_v_ones_at_64k_keys, 0, 4);
    tcase_add_test(tcase, B66_lse_is_a_natural_logarithm);
    tcase_add_test(tcase, B67_lse_layout);
    tcase_add_test(tcase, B68_softmax_scale_is_used);
    tcase_add_loop_test(tcase, B69_causal_support, 0, 7);
    tcase_add_test(tcase, B70_never_past_the_page_table);
    tcase_add_loop_test(tcase, B70_every_head_dim, 0, 14);
}

/* What runs the model rows or merge_states alone. */
static void fill_once(TCase *tcase)
{
    tcase_add_test(tcase, B20_merge_of_empty_sides);
    tcase_add_test(tcase, B21_plus_infinity_is_empty);
    tcase_add_test(tcase, B56_all_bf16_to_e4m3);
    tcase_add_test(tcase, B57_overflow_saturates);
    tcase_add_loop_test(tcase, B64_hot_key_of_the_local_scales, 0, (int)COUNT_OF(hots));
    tcase_add_test(tcase, B64_hot_key_of_the_fixed_scale);
    tcase_add_loop_test(tcase, B64_hot_key_in_a_window, 0, 3);
}

int main(void)
{
    return cases_main("catalogue", fill_rows, fill_once);
}
