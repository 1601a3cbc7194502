/* What every Check program of the test suite shares. */
#ifndef ETALON_TESTING_H
#define ETALON_TESTING_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How much of a test runs: `few` under a sanitizer, whose instructions cost several times as much, and where the build
 * says -DTESTING_FEW. */
#if defined(__has_feature) && !defined(TESTING_FEW)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define TESTING_FEW
#endif
#endif
#if (defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)) && !defined(TESTING_FEW)
#define TESTING_FEW
#endif
#ifdef TESTING_FEW
#define TESTING_CASES(all, few) (few)
#else
#define TESTING_CASES(all, few) (all)
#endif

/* Runs one suite of one test case and prints TAP. Call it from main. Fixtures belong inside the tests: an OpenMP
 * region in this process before Check forks would leave libgomp's children without threads. */
static inline int testing_main(const char *name, void (*fill)(TCase *))
{
    Suite *suite = suite_create(name);
    TCase *tcase = tcase_create(name);
    tcase_set_timeout(tcase, 300);
    fill(tcase);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* The failed call's sentence in the message. */
#define ck_assert_ok(call)                                                                                            \
    do {                                                                                                              \
        const etalon_status status_ = (call);                                                                         \
        ck_assert_msg(status_ == ETALON_OK, "%s: %s: %s", #call, etalon_status_string(status_), etalon_last_error()); \
    } while (0)

/* The call fails with that status, and the sentence holds the given words. */
#define ck_assert_rejects(call, want, words)                                                            \
    do {                                                                                                \
        const etalon_status status_ = (call);                                                           \
        ck_assert_msg(status_ == (want), "%s: got %s, wanted %s", #call, etalon_status_string(status_), \
                      etalon_status_string(want));                                                      \
        ck_assert_msg(strstr(etalon_last_error(), (words)) != NULL, "\"%s\" does not hold \"%s\"",      \
                      etalon_last_error(), (words));                                                    \
    } while (0)

#endif
