/* Contexts: options, limits, threads, no memory. */
#include "testing.h"

#include "context.h"

#include <sys/resource.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))

#ifndef __has_feature
#define __has_feature(name) 0
#endif

START_TEST(defaults)
{
    etalon_context *ctx = NULL;
    ck_assert_ok(etalon_context_create(NULL, &ctx));
    ck_assert_ptr_nonnull(ctx);
    ck_assert_int_eq(ctx->threads, 0);
    ck_assert_int_eq(ctx->have & NEEDS_NAME, 0);
    etalon_context_destroy(ctx);
    const etalon_context_options options = ETALON_CONTEXT_OPTIONS_INIT;
    ck_assert_uint_eq(options.size, sizeof options);
    ck_assert_int_eq(options.threads, 0);
}
END_TEST

START_TEST(destroy_takes_null)
{
    etalon_context_destroy(NULL);
}
END_TEST

START_TEST(no_place_for_the_context)
{
    ck_assert_rejects(etalon_context_create(NULL, NULL), ETALON_ERROR_INVALID_ARGUMENT, "ctx: NULL");
}
END_TEST

static const struct {
    int32_t     threads;
    const char *words; /* NULL: taken */
} limits[] = {
    { 0, NULL },
    { 1, NULL },
    { 1024, NULL },
    { -1, "threads: -1" },
    { 1025, "threads: 1025" },
    { INT32_MAX, "threads: 2147483647" },
    { INT32_MIN, "threads: -2147483648" },
};

START_TEST(thread_limits)
{
    etalon_context_options options = ETALON_CONTEXT_OPTIONS_INIT;
    etalon_context        *ctx = NULL;
    options.threads = limits[_i].threads;
    if (limits[_i].words == NULL) {
        ck_assert_ok(etalon_context_create(&options, &ctx));
        ck_assert_int_eq(ctx->threads, limits[_i].threads);
        etalon_context_destroy(ctx);
    } else {
        ck_assert_rejects(etalon_context_create(&options, &ctx), ETALON_ERROR_INVALID_ARGUMENT, limits[_i].words);
        ck_assert_ptr_null(ctx); /* untouched */
    }
}
END_TEST

/* A caller that was built when the struct ended before `threads`: what lies there now is not read. */
START_TEST(older_options)
{
    etalon_context_options options = { .size = offsetof(etalon_context_options, threads), .threads = -5 };
    etalon_context        *ctx = NULL;
    ck_assert_ok(etalon_context_create(&options, &ctx));
    ck_assert_int_eq(ctx->threads, 0);
    etalon_context_destroy(ctx);
}
END_TEST

/* Forgotten ETALON_CONTEXT_OPTIONS_INIT: a struct without a size holds nothing to go by. */
START_TEST(options_without_size)
{
    const etalon_context_options options = { .threads = 3 };
    etalon_context              *ctx = NULL;
    ck_assert_rejects(etalon_context_create(&options, &ctx), ETALON_ERROR_INVALID_ARGUMENT, "options.size: 0,");
    ck_assert_ptr_null(ctx);
}
END_TEST

/* A caller that was built when the struct has grown: the part known here is read. */
START_TEST(newer_options)
{
    struct {
        etalon_context_options known;
        uint64_t               more[4];
    } options = { { .size = sizeof options, .threads = 3, .device = ETALON_HOST }, { 1, 2, 3, 4 } };
    etalon_context *ctx = NULL;
    ck_assert_ok(etalon_context_create(&options.known, &ctx));
    ck_assert_int_eq(ctx->threads, 3);
    etalon_context_destroy(ctx);
}
END_TEST

/* ETALON_FMHA_VARLEN_WAVES; -1: it is refused. */
static const struct {
    const char *text;
    int         want;
} waves[] = {
    { NULL, 0 },   { "", 0 },      { "1", 1 },
    { "2", 2 },    { "4", 4 },     { "0", -1 },
    { "3", -1 },   { "5", -1 },    { "8", -1 },
    { "-1", -1 },  { "+2", -1 },   { " 2", -1 },
    { "2 ", -1 },  { "02", -1 },   { "12", -1 },
    { "124", -1 }, { "4x", -1 },   { "x", -1 },
    { "1,2", -1 }, { "four", -1 }, { "18446744073709551617", -1 },
};

START_TEST(waves_of_fmha_varlen)
{
    char            words[80];
    etalon_context *ctx = NULL;
    if (waves[_i].text == NULL)
        unsetenv("ETALON_FMHA_VARLEN_WAVES");
    else
        ck_assert_int_eq(setenv("ETALON_FMHA_VARLEN_WAVES", waves[_i].text, 1), 0);
    if (waves[_i].want < 0) {
        snprintf(words, sizeof words, "ETALON_FMHA_VARLEN_WAVES: \"%s\", expected 1, 2 or 4", waves[_i].text);
        ck_assert_rejects(etalon_context_create(NULL, &ctx), ETALON_ERROR_INVALID_ARGUMENT, words);
        ck_assert_ptr_null(ctx);
    } else {
        ck_assert_ok(etalon_context_create(NULL, &ctx));
        ck_assert_int_eq(ctx->fmha_varlen_waves, waves[_i].want);
        etalon_context_destroy(ctx);
    }
    unsetenv("ETALON_FMHA_VARLEN_WAVES");
}
END_TEST

/* As many as there is work for, at least one, at most what the options say; a library without OpenMP has one. */
START_TEST(threads_of_a_region)
{
    etalon_context_options options = ETALON_CONTEXT_OPTIONS_INIT;
    etalon_context        *ctx = NULL;
    options.threads = 8;
    ck_assert_ok(etalon_context_create(&options, &ctx));
    const int most = context_threads(ctx, INT64_MAX);
    ck_assert(most == 8 || most == 1);
    static const int64_t tasks[] = { INT64_MIN, -1, 0, 1, 2, 7, 8, 9, (int64_t)1 << 32, INT64_MAX };
    for (int i = 0; i < COUNT(tasks); i++) {
        const int64_t want = tasks[i] < 1 ? 1 : tasks[i] < most ? tasks[i] : most;
        ck_assert_int_eq(context_threads(ctx, tasks[i]), want);
    }
    etalon_context_destroy(ctx);
    ck_assert_ok(etalon_context_create(NULL, &ctx));
    ck_assert_int_ge(context_threads(ctx, INT64_MAX), 1);
    ck_assert_int_eq(context_threads(ctx, 1), 1);
    etalon_context_destroy(ctx);
}
END_TEST

#if !defined(__SANITIZE_ADDRESS__) && !__has_feature(address_sanitizer)
/* Blocks that were allocated to have no memory left, each holding the address of the one before. */
static void **use_up_memory(void)
{
    void **last = NULL;
    for (size_t bytes = 1 << 20; bytes >= sizeof(void *); bytes /= 2)
        for (void **block; (block = malloc(bytes)) != NULL; last = block)
            *block = last;
    return last;
}

START_TEST(no_memory)
{
    struct rlimit limit;
    ck_assert_int_eq(getrlimit(RLIMIT_AS, &limit), 0);
    const struct rlimit none = { .rlim_cur = 0, .rlim_max = limit.rlim_max };
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &none), 0);
    void              **last = use_up_memory();
    etalon_context     *ctx = NULL;
    const etalon_status status = etalon_context_create(NULL, &ctx);
    while (last != NULL) {
        void **block = last;
        last = *block;
        free(block);
    }
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &limit), 0);
    ck_assert_int_eq(status, ETALON_ERROR_OUT_OF_MEMORY);
    ck_assert_ptr_null(ctx);
    ck_assert_ptr_nonnull(strstr(etalon_last_error(), "bytes"));
}
END_TEST
#endif

static void fill(TCase *tcase)
{
    tcase_add_test(tcase, defaults);
    tcase_add_test(tcase, destroy_takes_null);
    tcase_add_test(tcase, no_place_for_the_context);
    tcase_add_loop_test(tcase, thread_limits, 0, COUNT(limits));
    tcase_add_test(tcase, older_options);
    tcase_add_test(tcase, options_without_size);
    tcase_add_test(tcase, newer_options);
    tcase_add_loop_test(tcase, waves_of_fmha_varlen, 0, COUNT(waves));
    tcase_add_test(tcase, threads_of_a_region);
#if !defined(__SANITIZE_ADDRESS__) && !__has_feature(address_sanitizer)
    tcase_add_test(tcase, no_memory);
#else
    puts("# skip no_memory: AddressSanitizer ends the process where malloc would return NULL");
    fflush(stdout); /* before Check forks */
#endif
}

int main(void)
{
    return testing_main("context", fill);
}
