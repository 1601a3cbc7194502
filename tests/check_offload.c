/* Calls served by a device, on the GPUs that OpenMP sees, which tests/check_offload.sh simulates; ETALON_DEVICES says how
 * many there have to be. Mostly of mqa_logits, the simplest operation; tests/xcheck.c runs all rows on all kinds of cases.
 *   check_offload           everything but what follows
 *   check_offload rows      all rows that the device has: for contexts without ETALON_DISABLE
 *   check_offload none      no device there, whatever the reason
 *   check_offload few       for valgrind: a call of each kind
 *   check_offload failing   kernels that fail, as ETALON_SIM_LIMIT makes them
 */
#include "testing.h"

#include "cases.h"
#include "context.h"
#include "gate.h"
#include "mqa_logits.h"
#include "offload.h"
#include "qualify.h"
#include "twin.h"

#include <dlfcn.h>
#include <math.h>
#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>

#include "../sim/runtime/hip_api.h"

static const etalon_workspace no_workspace = { 0 };

static int device_count(void)
{
    const char *want = getenv("ETALON_DEVICES");
    ck_assert_msg(want != NULL && omp_get_num_devices() == atoi(want), "OpenMP sees %d devices, expected %s",
                  omp_get_num_devices(), want);
    return omp_get_num_devices();
}

static etalon_status create(int32_t device, etalon_context **ctx)
{
    etalon_context_options options = ETALON_CONTEXT_OPTIONS_INIT;
    options.device = device;
    return etalon_context_create(&options, ctx);
}

/* With the workspace that the row asks for. */
static etalon_status call(const etalon_context *ctx, const etalon_mqa_logits_args *args)
{
    etalon_workspace work = { 0 };
    ck_assert_ok(etalon_mqa_logits_workspace_bytes(ctx, args, &work.bytes));
    work.data = aligned_alloc(ETALON_WORKSPACE_ALIGN, work.bytes);
    const etalon_status status = etalon_mqa_logits(ctx, args, work);
    free(work.data);
    return status;
}

static void compare(const etalon_mqa_logits_args *args)
{
    twin_mqa_logits_result twin;
    twin_mqa_logits(args, &twin);
    for (int64_t i = 0; i < twin.m * twin.n; i++) {
        const double        got = cases_get(&args->logits, i), want = twin.logits[i];
        const etalon_tensor row = cases_fix(args->logits, 0, i / twin.n), cell = cases_cut(row, 0, i % twin.n, 1);
        const double        error = got == want ? 0.0 : fabs(got - want);
        if (isnan(want))
            cases_untouched(&cell, "outside the window");
        else
            cases_require(error <= (isinf(want) ? 0.0 : twin.bound[i]),
                          "logits[%" PRId64 "]: %.9g, twin %.9g, bound %.3g", i, got, want, twin.bound[i]);
    }
    twin_mqa_logits_free(&twin);
}

/* Contexts
 * --------
 */
START_TEST(devices_of_contexts)
{
    etalon_context *ctx = NULL;
    ck_assert_rejects(create(-2, &ctx), ETALON_ERROR_INVALID_ARGUMENT, "context_create: device: -2");
    ck_assert_rejects(create(device_count(), &ctx), ETALON_ERROR_DEVICE, "OpenMP sees ");
    ck_assert_ptr_null(ctx);
    for (int d = ETALON_HOST; d < device_count(); d++) {
        ck_assert_ok(create(d, &ctx));
        ck_assert_int_eq((ctx->have & NEEDS_DEVICE) != 0, d != ETALON_HOST);
        ck_assert_int_eq(ctx->device != NULL, d != ETALON_HOST);
        etalon_context_destroy(ctx);
    }
    for (int i = 0; i < 20; i++) { /* nothing that runs out */
        ck_assert_ok(create(0, &ctx));
        etalon_context_destroy(ctx);
    }
}
END_TEST

/* LLVM's own agent of each device is another one: the numbers mean what OpenMP means. */
START_TEST(places_differ)
{
    etalon_context *ctx[16];
    for (int d = 0; d < device_count(); d++) {
        ck_assert_ok(create(d, &ctx[d]));
        ck_assert_int_eq(offload_number(ctx[d]->device), d);
        for (int e = 0; e < d; e++) {
            ck_assert_str_ne(offload_place(ctx[d]->device)->pci, offload_place(ctx[e]->device)->pci);
            ck_assert_uint_ne(offload_place(ctx[d]->device)->agent, offload_place(ctx[e]->device)->agent);
        }
    }
    for (int d = 0; d < device_count(); d++)
        etalon_context_destroy(ctx[d]);
}
END_TEST

START_TEST(no_device)
{
    etalon_context *ctx = NULL;
    ck_assert_int_eq(omp_get_num_devices(), 0);
    ck_assert_rejects(create(0, &ctx), ETALON_ERROR_DEVICE, "device 0: OpenMP sees 0 ");
    const char *policy = getenv("OMP_TARGET_OFFLOAD");
    if (policy != NULL)
        ck_assert_ptr_nonnull(strstr(etalon_last_error(), policy));
    ck_assert_ok(create(ETALON_HOST, &ctx)); /* the CPU is none the worse */
    etalon_context_destroy(ctx);
}
END_TEST

/* Tensors on the host
 * -------------------
 */
START_TEST(host_tensors)
{
    enum { CASES = 12 };
    rng r = rng_make(cases_seed(), 501);
    for (int i = 0; i < CASES; i++) {
        etalon_context *ctx;
        mqa_logits_case c;
        mqa_logits_draw(&c, &r);
        ck_assert_ok(create(i % device_count(), &ctx));
        cases_poison_outputs(&c.memory);
        c.args.kernel = i % 2 ? "mqa_logits_omp" : NULL;
        ck_assert_ok(etalon_mqa_logits(ctx, &c.args, no_workspace));
        cases_verify(&c.memory);
        compare(&c.args);
        etalon_context_destroy(ctx);
        cases_free(&c.memory);
    }
}
END_TEST

typedef struct chosen {
    const char *row;
} chosen;

static void note_taken(void *user, const char *kernel, const char *reason)
{
    if (reason == NULL)
        ((chosen *)user)->row = kernel;
}

/* ETALON_DISABLE from here on; what it was. */
static const char *disable(const char *list)
{
    static char kept[2][64];
    static int  turn;
    const char *was = getenv("ETALON_DISABLE");
    snprintf(kept[turn ^= 1], sizeof kept[0], "%s", was == NULL ? "" : was);
    setenv("ETALON_DISABLE", list, 1);
    return kept[turn];
}

/* Which row serves: the device's where the context has one, the host's otherwise, unless ETALON_DISABLE says so. */
START_TEST(rows_that_serve)
{
    rng             r = rng_make(cases_seed(), 502);
    mqa_logits_case c;
    etalon_context *ctx;
    chosen          taken;
    mqa_logits_make(&c, &r, 3, 40, 4, 32);
    ck_assert_ok(create(0, &ctx));
    ck_assert_ok(etalon_mqa_logits_explain(ctx, &c.args, note_taken, &taken));
    ck_assert_str_eq(taken.row, "mqa_logits_omp");
    etalon_context_destroy(ctx);
    const char *kept = disable("offload");
    ck_assert_ok(create(0, &ctx));
    ck_assert_ok(etalon_mqa_logits_explain(ctx, &c.args, note_taken, &taken));
    ck_assert_str_ne(taken.row, "mqa_logits_omp");
    etalon_context_destroy(ctx);
    disable(kept);
    ck_assert_ok(create(ETALON_HOST, &ctx));
    c.args.kernel = "mqa_logits_omp";
    ck_assert_rejects(etalon_mqa_logits(ctx, &c.args, no_workspace), ETALON_ERROR_UNSUPPORTED,
                      "the context has no device");
    etalon_context_destroy(ctx);
    cases_free(&c.memory);
}
END_TEST

static void map_tensor(const etalon_tensor *t, int device, bool all)
{
    uintptr_t first, last;
    tensor_span(t, &first, &last);
    const size_t bytes = all ? last - first : (last - first) / 2;
    void        *there = omp_target_alloc(bytes, device);
    ck_assert_ptr_nonnull(there);
    ck_assert_int_eq(omp_target_memcpy(there, (void *)first, bytes, 0, 0, device, omp_get_initial_device()), 0);
    ck_assert_int_eq(omp_target_associate_ptr((void *)first, there, bytes, 0, device), 0);
}

static void unmap_tensor(const etalon_tensor *t, int device, bool back)
{
    uintptr_t first, last;
    tensor_span(t, &first, &last);
    void *there = omp_get_mapped_ptr((void *)first, device);
    if (back)
        ck_assert_int_eq(omp_target_memcpy((void *)first, there, last - first, 0, 0, omp_get_initial_device(), device),
                         0);
    ck_assert_int_eq(omp_target_disassociate_ptr((void *)first, device), 0);
    omp_target_free(there, device);
}

/* What the caller mapped is used where it lies: host memory may say something else, and outputs stay there. */
START_TEST(mapped_tensors)
{
    rng             r = rng_make(cases_seed(), 503);
    mqa_logits_case c;
    etalon_context *ctx;
    const int       d = device_count() - 1;
    mqa_logits_make(&c, &r, 5, 100, 4, 64);
    ck_assert_ok(create(d, &ctx));
    cases_poison_outputs(&c.memory);
    unsigned char *k = c.args.k.data, kept[100 * 64];
    memcpy(kept, k, sizeof kept);
    map_tensor(&c.args.k, d, true);
    map_tensor(&c.args.logits, d, true);
    memset(k, 0x7F, sizeof kept); /* NaN */
    ck_assert_ok(etalon_mqa_logits(ctx, &c.args, no_workspace));
    cases_untouched(&c.args.logits, "logits on the host");
    memcpy(k, kept, sizeof kept);
    unmap_tensor(&c.args.logits, d, true);
    compare(&c.args);
    unmap_tensor(&c.args.k, d, false);
    cases_verify(&c.memory);

    cases_poison_outputs(&c.memory); /* nothing is left of the mapping */
    ck_assert_ok(etalon_mqa_logits(ctx, &c.args, no_workspace));
    compare(&c.args);

    map_tensor(&c.args.k, d, false);
    cases_poison_outputs(&c.memory);
    ck_assert_rejects(etalon_mqa_logits(ctx, &c.args, no_workspace), ETALON_ERROR_INVALID_ARGUMENT,
                      "mqa_logits: k: only part of it is mapped to device");
    cases_untouched(&c.args.logits, "logits");
    unmap_tensor(&c.args.k, d, false);
    etalon_context_destroy(ctx);
    cases_free(&c.memory);
}
END_TEST

/* What the caller mapped may lie where the row for the device's architecture does not reach: another one serves. */
START_TEST(mapped_at_any_address)
{
    const int64_t         q_lens[] = { 3 }, k_lens[] = { 40 };
    const attention_shape shape = { .b = 1,
                                    .hq = 4,
                                    .hkv = 1,
                                    .dqk = 256,
                                    .dv = 256,
                                    .q_lens = q_lens,
                                    .k_lens = k_lens,
                                    .q = ETALON_BF16,
                                    .causal = 1 };
    enum { ASIDE = 4 };
    rng             r = rng_make(cases_seed(), 504);
    pa_mtp_case     c;
    twin_attention  twin;
    etalon_context *ctx;
    uintptr_t       first, last;
    const int       d = device_count() - 1;
    pa_mtp_make(&c, &r, &shape);
    ck_assert_ok(create(d, &ctx));
    tensor_span(&c.args.k_cache, &first, &last);
    char *const there = omp_target_alloc(last - first + ASIDE, d);
    ck_assert_ptr_nonnull(there);
    ck_assert_int_eq(omp_target_memcpy(there, (void *)first, last - first, ASIDE, 0, d, omp_get_initial_device()), 0);
    ck_assert_int_eq(omp_target_associate_ptr((void *)first, there + ASIDE, last - first, 0, d), 0);
    cases_poison_outputs(&c.memory);
    ck_assert_ok(etalon_pa_mtp(ctx, &c.args, no_workspace));
    ck_assert_int_eq(omp_target_disassociate_ptr((void *)first, d), 0);
    omp_target_free(there, d);
    twin_pa_mtp(&c.args, &twin);
    for (int64_t i = 0; i < cases_count(&c.args.out); i++)
        ck_assert_double_le(fabs(cases_get(&c.args.out, i) - twin.out[i]), twin.out_bound[i]);
    twin_attention_free(&twin);
    etalon_context_destroy(ctx);
    cases_free(&c.memory);
}
END_TEST

/* Two inputs across each other, as K and V of one cache: q's heads and k's rows alternate in one buffer. */
START_TEST(interleaved_inputs)
{
    enum { M = 6, H = 1, N = 6, D = 32 };
    static unsigned char both[2 * M * D];
    rng                  r = rng_make(cases_seed(), 504);
    mqa_logits_case      c;
    etalon_context      *ctx;
    mqa_logits_make(&c, &r, M, N, H, D);
    for (int i = 0; i < M; i++) {
        memcpy(both + 2 * i * D, (char *)c.args.q.data + i * D, D);
        memcpy(both + (2 * i + 1) * D, (char *)c.args.k.data + i * D, D);
    }
    etalon_mqa_logits_args a = c.args;
    a.q.data = both;
    a.q.stride[0] = 2 * D;
    a.k.data = both + D;
    a.k.stride[0] = 2 * D;
    ck_assert_ok(create(0, &ctx));
    cases_poison_outputs(&c.memory);
    ck_assert_ok(etalon_mqa_logits(ctx, &a, no_workspace));
    compare(&a);
    compare(&c.args);
    etalon_context_destroy(ctx);
    cases_free(&c.memory);
}
END_TEST

/* No memory is an answer: of the directive it is the process's end. Two keys that lie so far apart that no device holds
 * what is between; nobody looks there before the device has said so. */
START_TEST(device_memory_runs_out)
{
    rng             r = rng_make(cases_seed(), 505);
    mqa_logits_case c;
    etalon_context *ctx;
    mqa_logits_make(&c, &r, 4, 2, 4, 64);
    ck_assert_ok(create(0, &ctx));
    etalon_mqa_logits_args far = c.args;
    far.k.stride[0] = (int64_t)1 << 44;
    cases_poison_outputs(&c.memory);
    for (int i = 0; i < 5; i++)
        ck_assert_rejects(etalon_mqa_logits(ctx, &far, no_workspace), ETALON_ERROR_DEVICE,
                          "mqa_logits: device 0: OpenMP found no 17592186044480 bytes there");
    cases_untouched(&c.args.logits, "logits");
    ck_assert_ok(etalon_mqa_logits(ctx, &c.args, no_workspace));
    compare(&c.args);
    etalon_context_destroy(ctx);
    cases_free(&c.memory);
}
END_TEST

/* Threads, each with its own call, on one context. */
typedef struct job {
    const etalon_context *ctx;
    mqa_logits_case       c;
    etalon_status         status;
} job;

static void *run_job(void *data)
{
    job *j = data;
    for (int i = 0; i < 3 && j->status == ETALON_OK; i++)
        j->status = etalon_mqa_logits(j->ctx, &j->c.args, no_workspace);
    return NULL;
}

START_TEST(threads_share_a_context)
{
    enum { THREADS = 6 };
    static job      jobs[THREADS];
    pthread_t       thread[THREADS];
    rng             r = rng_make(cases_seed(), 506);
    etalon_context *ctx;
    ck_assert_ok(create(device_count() - 1, &ctx));
    for (int i = 0; i < THREADS; i++) {
        jobs[i] = (job){ .ctx = ctx };
        mqa_logits_make(&jobs[i].c, &r, 3 + i, 50, 4, 64);
        cases_poison_outputs(&jobs[i].c.memory);
    }
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, run_job, &jobs[i]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(jobs[i].status, ETALON_OK);
        compare(&jobs[i].c.args);
        cases_verify(&jobs[i].c.memory);
        cases_free(&jobs[i].c.memory);
    }
    etalon_context_destroy(ctx);
}
END_TEST

/* Tensors on the device
 * ---------------------
 */
enum { TENSORS = 7 };

static void views(etalon_mqa_logits_args *a, etalon_tensor *to[TENSORS])
{
    etalon_tensor *const all[] = { &a->q,     &a->k, &a->kv_scale, &a->weights, &a->cu_seqlen_ks, &a->cu_seqlen_ke,
                                   &a->logits };
    memcpy(to, all, sizeof all);
}

/* The view of a copy on the device. */
static void send_there(etalon_tensor *t, int device)
{
    uintptr_t first, last;
    tensor_span(t, &first, &last);
    char *at = omp_target_alloc(last - first, device);
    ck_assert_ptr_nonnull(at);
    ck_assert_int_eq(omp_target_memcpy(at, (void *)first, last - first, 0, 0, device, omp_get_initial_device()), 0);
    t->data = at + ((uintptr_t)t->data - first);
    t->device = device;
}

/* The arguments over copies on the device. */
static etalon_mqa_logits_args move_there(const etalon_mqa_logits_args *args, int device)
{
    etalon_mqa_logits_args there = *args;
    etalon_tensor         *t[TENSORS];
    views(&there, t);
    for (int i = 0; i < TENSORS; i++)
        send_there(t[i], device);
    return there;
}

static void fetch(const etalon_tensor *to, const etalon_tensor *from)
{
    uintptr_t first, last;
    tensor_span(to, &first, &last);
    ck_assert_int_eq(
        omp_target_memcpy((void *)first, from->data, last - first, 0, 0, omp_get_initial_device(), from->device), 0);
}

static void free_there(etalon_mqa_logits_args *there)
{
    etalon_tensor *t[TENSORS];
    views(there, t);
    for (int i = 0; i < TENSORS; i++)
        omp_target_free(t[i]->data, t[i]->device);
}

START_TEST(device_tensors)
{
    rng r = rng_make(cases_seed(), 507);
    for (int d = 0; d < device_count(); d++) {
        etalon_context *ctx, *host;
        mqa_logits_case c;
        mqa_logits_make(&c, &r, 9, 130, 5, 40);
        cases_poison_outputs(&c.memory);
        ck_assert_ok(create(d, &ctx));
        ck_assert_ok(create(ETALON_HOST, &host));
        etalon_mqa_logits_args there = move_there(&c.args, d);
        size_t                 bytes = 1;
        ck_assert_ok(etalon_mqa_logits_workspace_bytes(ctx, &there, &bytes));
        ck_assert_uint_eq(bytes, 0);
        ck_assert_ok(etalon_mqa_logits(ctx, &there, no_workspace));
        cases_untouched(&c.args.logits, "logits on the host");
        fetch(&c.args.logits, &there.logits);
        compare(&c.args);
        ck_assert_rejects(etalon_mqa_logits(host, &there, no_workspace), ETALON_ERROR_UNSUPPORTED,
                          "not in host memory");
        etalon_tensor *t[TENSORS];
        views(&there, t);
        for (int i = 0; i < TENSORS; i++)
            t[i]->device = d + 1;
        ck_assert_rejects(etalon_mqa_logits(ctx, &there, no_workspace), ETALON_ERROR_INVALID_ARGUMENT,
                          "mqa_logits: the tensors are on device ");
        for (int i = 0; i < TENSORS; i++)
            t[i]->device = d;
        free_there(&there);
        etalon_context_destroy(ctx);
        etalon_context_destroy(host);
        cases_free(&c.memory);
    }
}
END_TEST

/* Tensors that say they are on the device, one of which lies on the host, or begins or ends where nothing is: refused
 * before anything runs. */
START_TEST(host_pointers_in_device_tensors)
{
    static const char *const names[TENSORS] = { "q",     "k", "kv_scale", "weights", "cu_seqlen_ks", "cu_seqlen_ke",
                                                "logits" };
    rng                      r = rng_make(cases_seed(), 512);
    etalon_context          *ctx;
    mqa_logits_case          c;
    etalon_tensor           *on_host[TENSORS], *t[TENSORS];
    mqa_logits_make(&c, &r, 9, 130, 5, 40);
    cases_poison_outputs(&c.memory);
    ck_assert_ok(create(0, &ctx));
    etalon_mqa_logits_args there = move_there(&c.args, 0);
    views(&c.args, on_host);
    views(&there, t);
    for (int i = 0; i < TENSORS; i++) {
        char *kept = t[i]->data, words[64];
        void *half = omp_target_alloc(16, 0);
        void *bad[] = { on_host[i]->data, (char *)(uintptr_t)0x1000, half };
        snprintf(words, sizeof words, "mqa_logits: %s: 0x", names[i]);
        for (size_t j = 0; j < sizeof bad / sizeof bad[0]; j++) {
            t[i]->data = bad[j];
            ck_assert_rejects(etalon_mqa_logits(ctx, &there, no_workspace), ETALON_ERROR_INVALID_ARGUMENT, words);
            ck_assert_ptr_nonnull(strstr(etalon_last_error(), "is no memory that device 0 knows"));
        }
        t[i]->data = kept;
        omp_target_free(half, 0);
    }
    fetch(&c.args.logits, &there.logits);
    cases_untouched(&c.args.logits, "logits on the device");
    ck_assert_ok(etalon_mqa_logits(ctx, &there, no_workspace));
    fetch(&c.args.logits, &there.logits);
    compare(&c.args);
    free_there(&there);
    etalon_context_destroy(ctx);
    cases_free(&c.memory);
}
END_TEST

#define HIP_FUNCTIONS(F)    \
    F(hipStreamCreate)      \
    F(hipStreamDestroy)     \
    F(hipStreamSynchronize) \
    F(hipLaunchHostFunc)    \
    F(hipMemGetInfo)

static struct {
#define F(name) __typeof__(name) *name;
    HIP_FUNCTIONS(F)
#undef F
} hip;

static void load_hip(void)
{
    void *library = dlopen("libamdhip64.so", RTLD_NOW);
    ck_assert_msg(library != NULL, "%s", dlerror());
#define F(name) ck_assert_ptr_nonnull(*(void **)&hip.name = dlsym(library, #name));
    HIP_FUNCTIONS(F)
#undef F
}

static void wait_for_leave(void *leave)
{
    while (!atomic_load((atomic_bool *)leave))
        sched_yield();
}

START_TEST(streams)
{
    rng              r = rng_make(cases_seed(), 508);
    etalon_context  *ctx;
    mqa_logits_case  c;
    etalon_workspace work = { 0 };
    hipStream_t      stream;
    load_hip();
    mqa_logits_make(&c, &r, 9, 130, 5, 40);
    ck_assert_ok(create(0, &ctx));
    ck_assert_int_eq(hip.hipStreamCreate(&stream), hipSuccess);
    work.stream = stream;
    cases_poison_outputs(&c.memory);
    ck_assert_rejects(etalon_mqa_logits(ctx, &c.args, work), ETALON_ERROR_INVALID_ARGUMENT,
                      "a stream, and the tensors are on the host");
    cases_untouched(&c.args.logits, "logits");
    etalon_mqa_logits_args there = move_there(&c.args, 0);
    ck_assert_ok(etalon_mqa_logits(ctx, &there, work));
    ck_assert_int_eq(hip.hipStreamSynchronize(stream), hipSuccess);
    fetch(&c.args.logits, &there.logits);
    compare(&c.args);
    ck_assert_int_eq(hip.hipStreamDestroy(stream), hipSuccess);
    free_there(&there);
    etalon_context_destroy(ctx);
    cases_free(&c.memory);
}
END_TEST

/* Three kernels and a workspace
 * -----------------------------
 */
enum { PA_MTP_TENSORS = 8 };

static void pa_mtp_views(etalon_pa_mtp_args *a, etalon_tensor *to[PA_MTP_TENSORS])
{
    etalon_tensor *const all[] = { &a->q,        &a->k_cache,      &a->v_cache, &a->block_tables,
                                   &a->seq_lens, &a->cu_seqlens_q, &a->out,     &a->lse };
    memcpy(to, all, sizeof all);
}

static void compare_attention(const etalon_pa_mtp_args *args)
{
    twin_attention twin;
    twin_pa_mtp(args, &twin);
    for (int64_t i = 0; i < twin.t * twin.hq * twin.dv; i++)
        cases_require(fabs(cases_get(&args->out, i) - twin.out[i]) <= twin.out_bound[i], "out[%" PRId64 "]", i);
    for (int64_t i = 0; i < twin.t * twin.hq; i++)
        cases_require(fabs(cases_get(&args->lse, i) - twin.lse[i]) <= twin.lse_bound[i], "lse[%" PRId64 "]", i);
    twin_attention_free(&twin);
}

/* A call is put on the stream and that is all: it returns while the stream stands still, and takes no memory. */
START_TEST(stages_on_a_stream)
{
    const attention_shape shape = { .b = 2,
                                    .hq = 4,
                                    .hkv = 2,
                                    .dqk = 32,
                                    .dv = 16,
                                    .q_lens = (int64_t[]){ 3, 1 },
                                    .k_lens = (int64_t[]){ 700, 30 },
                                    .causal = 1,
                                    .page_size = 16,
                                    .spare_pages = 2 };
    rng                   r = rng_make(cases_seed(), 511);
    etalon_context       *ctx;
    pa_mtp_case           c;
    etalon_tensor        *t[PA_MTP_TENSORS];
    hipStream_t           stream;
    etalon_workspace      work = { 0 };
    size_t                before, after, total;
    atomic_bool           leave = false;
    load_hip();
    pa_mtp_make(&c, &r, &shape);
    ck_assert_ok(create(0, &ctx));
    ck_assert_int_eq(hip.hipStreamCreate(&stream), hipSuccess);
    cases_poison_outputs(&c.memory);
    etalon_pa_mtp_args there = c.args;
    pa_mtp_views(&there, t);
    for (int i = 0; i < PA_MTP_TENSORS; i++)
        send_there(t[i], 0);
    ck_assert_ok(etalon_pa_mtp_workspace_bytes(ctx, &there, &work.bytes));
    ck_assert_uint_gt(work.bytes, 0);
    ck_assert_ptr_nonnull(work.data = offload_alloc(ctx->device, work.bytes));
    work.stream = stream;
    work.bytes--;
    ck_assert_rejects(etalon_pa_mtp(ctx, &there, work), ETALON_ERROR_WORKSPACE_TOO_SMALL, "(pa_mtp_omp)");
    work.bytes++;
    etalon_workspace host = work;
    ck_assert_ptr_nonnull(host.data = aligned_alloc(ETALON_WORKSPACE_ALIGN, work.bytes));
    ck_assert_rejects(etalon_pa_mtp(ctx, &there, host), ETALON_ERROR_INVALID_ARGUMENT, "pa_mtp: workspace: 0x");
    free(host.data);
    ck_assert_ok(etalon_pa_mtp(ctx, &there, work));
    ck_assert_int_eq(hip.hipStreamSynchronize(stream), hipSuccess);
    fetch(&c.args.out, &there.out);
    fetch(&c.args.lse, &there.lse);
    compare_attention(&c.args);
    uint32_t *first = cases_bits(&c.args.out);

    cases_poison_outputs(&c.memory);
    etalon_tensor poisoned = c.args.out;
    ck_assert_int_eq(omp_target_memcpy(there.out.data, poisoned.data, (size_t)cases_count(&poisoned) * 4, 0, 0, 0,
                                       omp_get_initial_device()),
                     0);
    ck_assert_int_eq(hip.hipMemGetInfo(&before, &total), hipSuccess);
    ck_assert_int_eq(hip.hipLaunchHostFunc(stream, wait_for_leave, &leave), hipSuccess);
    for (int i = 0; i < 4; i++)
        ck_assert_ok(etalon_pa_mtp(ctx, &there, work));
    ck_assert_int_eq(hip.hipMemGetInfo(&after, &total), hipSuccess);
    ck_assert_uint_eq(before, after);
    fetch(&c.args.out, &there.out);
    cases_untouched(&c.args.out, "out before the stream went on");
    atomic_store(&leave, true);
    ck_assert_int_eq(hip.hipStreamSynchronize(stream), hipSuccess);
    fetch(&c.args.out, &there.out);
    uint32_t *last = cases_bits(&c.args.out);
    ck_assert_mem_eq(first, last, (size_t)cases_count(&c.args.out) * sizeof *first);

    free(first);
    free(last);
    for (int i = 0; i < PA_MTP_TENSORS; i++)
        omp_target_free(t[i]->data, 0);
    offload_free(ctx->device, work.data);
    ck_assert_int_eq(hip.hipStreamDestroy(stream), hipSuccess);
    etalon_context_destroy(ctx);
    cases_free(&c.memory);
}
END_TEST

/* Known answers
 * -------------
 */
/* The kernels of wrong.hip as the objects of the library for this architecture, ended as code_objects is. */
static void read_wrong(const char *arch, code_object to[LAUNCH_MAX_KERNELS + 1])
{
    static unsigned char bytes[1 << 18];
    char                 path[4096];
    int                  count = 0;
    snprintf(path, sizeof path, "%s/wrong.%s.co", getenv("ETALON_PROBES"), arch);
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s is not there", path);
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    ck_assert_uint_lt(size, sizeof bytes);
    for (const code_object *o = code_objects; o->stem != NULL; o++)
        if (strcmp(o->arch, arch) == 0) {
            ck_assert_int_lt(count, LAUNCH_MAX_KERNELS);
            to[count++] = (code_object){ o->stem, o->arch, bytes, bytes + size };
        }
    to[count] = (code_object){ NULL, NULL, NULL, NULL };
}

typedef struct asked {
    const char *kernel;
    char        reason[256];
} asked;

static void note_reason(void *user, const char *kernel, const char *reason)
{
    asked *a = user;
    if (strcmp(kernel, a->kernel) == 0)
        snprintf(a->reason, sizeof a->reason, "%s", reason == NULL ? "taken" : reason);
}

static const char *reason_of(const etalon_context *ctx, const etalon_mqa_logits_args *args, const char *kernel)
{
    static asked a;
    a.kernel = kernel;
    ck_assert_ok(etalon_mqa_logits_explain(ctx, args, note_reason, &a));
    return a.reason;
}

/* What the library reads in the objects that this device runs, against the numbers of the runtime that loads them. */
START_TEST(objects_use_what_they_say)
{
    void *library = dlopen("libamdhip64.so", RTLD_NOW);
    ck_assert_msg(library != NULL, "%s", dlerror());
#define F(name) __typeof__(name) *name##_ = (__typeof__(name##_))dlsym(library, #name);
    F(hipModuleLoadData)
    F(hipModuleGetFunction)
    F(hipFuncGetAttribute)
    F(hipModuleUnload)
#undef F
    etalon_context         *ctx;
    etalon_code_object_info info;
    int                     seen = 0, index = 0;
    ck_assert_ok(create(0, &ctx));
    for (; etalon_code_object_get(index, &info) == ETALON_OK; index++) {
        char          symbol[128];
        int           registers, lds, scratch;
        hipModule_t   module;
        hipFunction_t function;
        if (strcmp(info.arch, offload_place(ctx->device)->arch) != 0)
            continue;
        seen++;
        snprintf(symbol, sizeof symbol, "etalon_%s", info.kernel);
        ck_assert_int_eq(hipModuleLoadData_(&module, code_objects[index].bytes), hipSuccess);
        ck_assert_int_eq(hipModuleGetFunction_(&function, module, symbol), hipSuccess);
        ck_assert_int_eq(hipFuncGetAttribute_(&registers, HIP_FUNC_ATTRIBUTE_NUM_REGS, function), hipSuccess);
        ck_assert_int_eq(hipFuncGetAttribute_(&lds, HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function), hipSuccess);
        ck_assert_int_eq(hipFuncGetAttribute_(&scratch, HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, function), hipSuccess);
        ck_assert_int_eq(info.registers, registers);
        ck_assert_int_eq(info.lds_bytes, lds);
        ck_assert_int_eq(info.scratch_bytes, scratch);
        ck_assert_int_eq(hipModuleUnload_(module), hipSuccess);
    }
    ck_assert_int_gt(seen, 0);
    ck_assert_rejects(etalon_code_object_get(index, &info), ETALON_ERROR_INVALID_ARGUMENT, "there is no such object");
    ck_assert_rejects(etalon_code_object_get(-1, &info), ETALON_ERROR_INVALID_ARGUMENT, "code_object_get: index: -1");
    ck_assert_rejects(etalon_code_object_get(0, NULL), ETALON_ERROR_INVALID_ARGUMENT, "info: NULL");
    etalon_context_destroy(ctx);
}
END_TEST

/* Rows that need a device and nothing that this context lacks. */
static int device_rows(const etalon_context *ctx, const gate_row *rows[64])
{
    int count = 0;
    for (int g = 0; g < GATE_COUNT; g++)
        for (int i = 0; i < gates[g]->count; i++) {
            const gate_row *row = &gates[g]->rows[i];
            if ((row->needs & NEEDS_DEVICE) == 0 || (row->needs & ~ctx->have) != 0)
                continue;
            ck_assert_int_lt(count, 64);
            rows[count++] = row;
        }
    return count;
}

static const char *why_unqualified(const etalon_context *ctx, const char *name)
{
    for (int i = 0; i < ctx->unqualified_count; i++)
        if (strcmp(ctx->unqualified[i].row->name, name) == 0)
            return ctx->unqualified[i].reason;
    return NULL;
}

/* Kernels that never do what they should, in the place of the library's. */
START_TEST(wrong_kernels_do_not_serve)
{
    rng             r = rng_make(cases_seed(), 510);
    mqa_logits_case c;
    etalon_context *ctx;
    code_object     objects[LAUNCH_MAX_KERNELS + 1];
    const gate_row *rows[64];
    mqa_logits_make(&c, &r, 4, 70, 4, 64);
    ck_assert_ok(create(0, &ctx));
    const int count = device_rows(ctx, rows);
    ck_assert_int_ge(count, 3);
    for (int i = 0; i < ctx->unqualified_count; i++) /* those of the library do serve */
        ck_abort_msg("%s: %s", ctx->unqualified[i].row->name, ctx->unqualified[i].reason);
    read_wrong(offload_place(ctx->device)->arch, objects);
    offload_close(ctx->device);
    ck_assert_ok(offload_open(0, objects, &ctx->device));
    ck_assert_ok(qualify(ctx));
    ck_assert_int_eq(ctx->unqualified_count, count);
    for (int i = 0; i < count; i++) {
        const char *why = why_unqualified(ctx, rows[i]->name);
        ck_assert_msg(why != NULL && strncmp(why, "not qualified: ", 15) == 0 && strstr(why, " of a known answer is "),
                      "%s: %s", rows[i]->name, why);
    }
    ck_assert_str_eq(reason_of(ctx, &c.args, "mqa_logits_omp"), why_unqualified(ctx, "mqa_logits_omp"));
    cases_poison_outputs(&c.memory);
    ck_assert_ok(call(ctx, &c.args)); /* by the next row */
    compare(&c.args);
    etalon_kernel_info info;
    int                unavailable = 0;
    for (int i = 0; etalon_kernel_get(ctx, i, &info) == ETALON_OK; i++)
        if (why_unqualified(ctx, info.name) != NULL) {
            ck_assert_int_eq(info.available, 0);
            unavailable++;
        }
    ck_assert_int_eq(unavailable, count);
    c.args.kernel = "mqa_logits_omp";
    cases_poison_outputs(&c.memory);
    ck_assert_ok(etalon_mqa_logits(ctx, &c.args, no_workspace)); /* by name all the same */
    cases_untouched(&c.args.logits, "logits of a kernel that writes none");
    etalon_context_destroy(ctx);
    cases_free(&c.memory);
}
END_TEST

/* Those of the device's architecture are there, those of others are not, and ETALON_DISABLE takes them away. */
START_TEST(rows_of_one_architecture)
{
    static const char *const lists[] = { "", "gfx950,gfx1250", "offload" };
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        etalon_context    *ctx;
        etalon_kernel_info info;
        uint32_t           want, seen = NEEDS_NONE;
        const char        *kept = disable(lists[i]);
        ck_assert_ok(create(0, &ctx));
        disable(kept);
        want = features_of_device(offload_place(ctx->device)->arch);
        ck_assert_ok(features_disable(lists[i], &want));
        ck_assert_uint_eq(ctx->have & NEEDS_DEVICE, want);
        for (int g = 0, index = 0; g < GATE_COUNT; g++)
            for (int row = 0; row < gates[g]->count; row++, index++) {
                const uint32_t needs = gates[g]->rows[row].needs & NEEDS_DEVICE;
                ck_assert_ok(etalon_kernel_get(ctx, index, &info));
                ck_assert_msg(needs == NEEDS_NONE || info.available == ((needs & ~want) == 0), "%s with \"%s\"",
                              info.name, lists[i]);
                seen |= needs;
            }
        ck_assert_uint_ne(seen & NEEDS_OFFLOAD, 0);
        etalon_context_destroy(ctx);
    }
}
END_TEST

START_TEST(kernel_fails)
{
    rng             r = rng_make(cases_seed(), 509);
    mqa_logits_case c;
    etalon_context *ctx;
    mqa_logits_make(&c, &r, 4, 70, 4, 64);
    ck_assert_ok(create(0, &ctx));
    c.args.kernel = "mqa_logits_omp";
    for (int i = 0; i < 8; i++)
        ck_assert_rejects(etalon_mqa_logits(ctx, &c.args, no_workspace), ETALON_ERROR_DEVICE, "HSA: mqa_logits_omp: ");
    c.args.kernel = NULL; /* it never qualified, so the host serves */
    ck_assert_ptr_nonnull(strstr(why_unqualified(ctx, "mqa_logits_omp"), "not qualified: HSA: mqa_logits_omp: "));
    ck_assert_ok(call(ctx, &c.args));
    compare(&c.args);
    etalon_mqa_logits_args there = move_there(&c.args, 0);
    ck_assert_rejects(etalon_mqa_logits(ctx, &there, no_workspace), ETALON_ERROR_UNSUPPORTED, "not in host memory");
    free_there(&there);
    etalon_context_destroy(ctx);
    cases_free(&c.memory);
}
END_TEST

static void fill(TCase *tcase)
{
    tcase_add_test(tcase, devices_of_contexts);
    tcase_add_test(tcase, places_differ);
    tcase_add_test(tcase, host_tensors);
    tcase_add_test(tcase, rows_that_serve);
    tcase_add_test(tcase, mapped_tensors);
    tcase_add_test(tcase, mapped_at_any_address);
    tcase_add_test(tcase, interleaved_inputs);
    tcase_add_test(tcase, device_memory_runs_out);
    tcase_add_test(tcase, threads_share_a_context);
    tcase_add_test(tcase, device_tensors);
    tcase_add_test(tcase, host_pointers_in_device_tensors);
    tcase_add_test(tcase, streams);
    tcase_add_test(tcase, stages_on_a_stream);
    tcase_add_test(tcase, objects_use_what_they_say);
}

static void fill_rows(TCase *tcase)
{
    tcase_add_test(tcase, rows_of_one_architecture);
    tcase_add_test(tcase, wrong_kernels_do_not_serve);
}

static void fill_few(TCase *tcase)
{
    tcase_add_test(tcase, interleaved_inputs);
    tcase_add_test(tcase, device_memory_runs_out);
    tcase_add_test(tcase, device_tensors);
    tcase_add_test(tcase, stages_on_a_stream);
}

static void fill_none(TCase *tcase)
{
    tcase_add_test(tcase, no_device);
}

static void fill_failing(TCase *tcase)
{
    tcase_add_test(tcase, kernel_fails);
}

/* No fork: the plugin's threads and the runtime's would be missing in the child. */
int main(int argc, char **argv)
{
    const char *which = argc > 1 ? argv[1] : "";
    setenv("CK_FORK", "no", 1);
    return testing_main("offload", strcmp(which, "none") == 0      ? fill_none
                                   : strcmp(which, "few") == 0     ? fill_few
                                   : strcmp(which, "rows") == 0    ? fill_rows
                                   : strcmp(which, "failing") == 0 ? fill_failing
                                                                   : fill);
}
