/* The sentence behind etalon_last_error(). */
#ifndef ETALON_ERROR_H
#define ETALON_ERROR_H

#include <etalon/types.h>
#include <inttypes.h>

/* Records the sentence for this thread and returns status. */
etalon_status etalon_reject(etalon_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* In a check: returns INVALID_ARGUMENT with a sentence unless condition holds. */
#define REQUIRE(condition, ...)                                               \
    do {                                                                      \
        if (!(condition))                                                     \
            return etalon_reject(ETALON_ERROR_INVALID_ARGUMENT, __VA_ARGS__); \
    } while (0)

/* In a check: returns early where another check failed. */
#define TRY(call)                          \
    do {                                   \
        const etalon_status try_ = (call); \
        if (try_ != ETALON_OK)             \
            return try_;                   \
    } while (0)

#endif
