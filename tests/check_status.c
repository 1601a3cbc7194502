/* Status texts, the error sentence of each thread, the version. */
#include "testing.h"

#include "error.h"

#include <etalon/version.h>
#include <limits.h>
#include <pthread.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))

static const struct {
    int         status;
    const char *text;
} texts[] = {
    { ETALON_OK, "success" },
    { ETALON_ERROR_INVALID_ARGUMENT, "invalid argument" },
    { ETALON_ERROR_UNSUPPORTED, "unsupported by every kernel here" },
    { ETALON_ERROR_WORKSPACE_TOO_SMALL, "workspace too small" },
    { ETALON_ERROR_DEVICE, "device runtime failed" },
    { ETALON_ERROR_OUT_OF_MEMORY, "out of memory" },
    { 1, "unknown status" },
    { ETALON_ERROR_OUT_OF_MEMORY - 1, "unknown status" },
    { INT_MAX, "unknown status" },
    { INT_MIN, "unknown status" },
};

START_TEST(status_text)
{
    ck_assert_str_eq(etalon_status_string(texts[_i].status), texts[_i].text);
}
END_TEST

/* The numbers are ABI. */
START_TEST(status_numbers)
{
    ck_assert_int_eq(ETALON_OK, 0);
    ck_assert_int_eq(ETALON_ERROR_INVALID_ARGUMENT, -1);
    ck_assert_int_eq(ETALON_ERROR_UNSUPPORTED, -2);
    ck_assert_int_eq(ETALON_ERROR_WORKSPACE_TOO_SMALL, -3);
    ck_assert_int_eq(ETALON_ERROR_DEVICE, -4);
    ck_assert_int_eq(ETALON_ERROR_OUT_OF_MEMORY, -5);
}
END_TEST

START_TEST(reject_records_the_sentence)
{
    ck_assert_str_eq(etalon_last_error(), ""); /* before any failure */
    ck_assert_int_eq(etalon_reject(ETALON_ERROR_DEVICE, "op: %s: %d", "x", 7), ETALON_ERROR_DEVICE);
    ck_assert_str_eq(etalon_last_error(), "op: x: 7");
    etalon_reject(ETALON_ERROR_UNSUPPORTED, "the next one");
    ck_assert_str_eq(etalon_last_error(), "the next one");
}
END_TEST

START_TEST(a_long_sentence_is_cut)
{
    char name[2000];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    etalon_reject(ETALON_ERROR_INVALID_ARGUMENT, "%s", name);
    const size_t length = strlen(etalon_last_error());
    ck_assert_uint_gt(length, 100);
    ck_assert_uint_lt(length, sizeof name);
    ck_assert_int_eq(strncmp(etalon_last_error(), name, length), 0);
}
END_TEST

static etalon_status positive(int x)
{
    REQUIRE(x > 0, "x: %d, expected more than 0", x);
    return ETALON_OK;
}

static etalon_status both_positive(int x, int y)
{
    TRY(positive(x));
    TRY(positive(y));
    return ETALON_OK;
}

START_TEST(require_and_try)
{
    ck_assert_ok(both_positive(1, 2));
    ck_assert_rejects(both_positive(-3, -4), ETALON_ERROR_INVALID_ARGUMENT, "x: -3, expected more than 0");
    ck_assert_rejects(both_positive(1, -4), ETALON_ERROR_INVALID_ARGUMENT, "x: -4,");
    ck_assert_ok(both_positive(1, 2));
    ck_assert_str_eq(etalon_last_error(), "x: -4, expected more than 0"); /* success does not clear it */
}
END_TEST

enum { THREADS = 4, ROUNDS = 1000 };

typedef struct worker {
    pthread_barrier_t *together;
    int                number;
    int                own, silent; /* rounds in which the thread read its own sentence; whether it began with none */
} worker;

static void *reject_and_read(void *at)
{
    worker *w = at;
    char    want[32];
    w->silent = strcmp(etalon_last_error(), "") == 0;
    for (int i = 0; i < ROUNDS; i++) {
        pthread_barrier_wait(w->together); /* every thread writes, and only then reads */
        etalon_reject(ETALON_ERROR_DEVICE, "thread %d round %d", w->number, i);
        pthread_barrier_wait(w->together);
        snprintf(want, sizeof want, "thread %d round %d", w->number, i);
        w->own += strcmp(etalon_last_error(), want) == 0;
    }
    return NULL;
}

START_TEST(every_thread_has_its_own_sentence)
{
    pthread_barrier_t together;
    pthread_t         threads[THREADS];
    worker            workers[THREADS];
    ck_assert_int_eq(pthread_barrier_init(&together, NULL, THREADS), 0);
    etalon_reject(ETALON_ERROR_DEVICE, "the main thread");
    for (int t = 0; t < THREADS; t++) {
        workers[t] = (worker){ .together = &together, .number = t };
        ck_assert_int_eq(pthread_create(&threads[t], NULL, reject_and_read, &workers[t]), 0);
    }
    for (int t = 0; t < THREADS; t++) {
        ck_assert_int_eq(pthread_join(threads[t], NULL), 0);
        ck_assert_int_eq(workers[t].own, ROUNDS);
        ck_assert(workers[t].silent);
    }
    ck_assert_str_eq(etalon_last_error(), "the main thread");
    pthread_barrier_destroy(&together);
}
END_TEST

START_TEST(version)
{
    ck_assert_str_eq(etalon_version(), ETALON_VERSION);
    int  major, minor, micro;
    char rest;
    ck_assert_int_eq(sscanf(etalon_version(), "%d.%d.%d%c", &major, &minor, &micro, &rest), 3);
}
END_TEST

static void fill(TCase *tcase)
{
    tcase_add_loop_test(tcase, status_text, 0, COUNT(texts));
    tcase_add_test(tcase, status_numbers);
    tcase_add_test(tcase, reject_records_the_sentence);
    tcase_add_test(tcase, a_long_sentence_is_cut);
    tcase_add_test(tcase, require_and_try);
    tcase_add_test(tcase, every_thread_has_its_own_sentence);
    tcase_add_test(tcase, version);
}

int main(void)
{
    return testing_main("status", fill);
}
