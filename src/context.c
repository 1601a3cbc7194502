#include "context.h"

#include "error.h"

#include <stdlib.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

enum { MAX_THREADS = 1024 }; /* a typing error, rather than a machine */

etalon_status etalon_context_create(const etalon_context_options *options, etalon_context **ctx)
{
    REQUIRE(ctx != NULL, "context_create: ctx: NULL");
    etalon_context_options have = ETALON_CONTEXT_OPTIONS_INIT;
    REQUIRE(options == NULL || options->size >= sizeof options->size,
            "context_create: options.size: %zu, expected sizeof(etalon_context_options)", options->size);
    if (options != NULL)
        memcpy(&have, options, options->size < sizeof have ? options->size : sizeof have);
    REQUIRE(have.threads >= 0 && have.threads <= MAX_THREADS, "context_create: threads: %" PRId32 ", expected 0 to %d",
            have.threads, MAX_THREADS);
    uint32_t features = features_detect();
    TRY(features_disable(getenv("ETALON_DISABLE"), &features));
    etalon_context *made = calloc(1, sizeof *made);
    if (made == NULL)
        return etalon_reject(ETALON_ERROR_OUT_OF_MEMORY, "context_create: %zu bytes", sizeof *made);
    made->have = features;
    made->threads = have.threads;
    *ctx = made;
    return ETALON_OK;
}

void etalon_context_destroy(etalon_context *ctx)
{
    free(ctx);
}

int context_threads(const etalon_context *ctx, int64_t tasks)
{
#ifdef _OPENMP
    const int64_t most = ctx->threads > 0 ? ctx->threads : omp_get_max_threads();
    return (int)(tasks < 1 ? 1 : tasks < most ? tasks : most);
#else
    (void)ctx;
    (void)tasks;
    return 1;
#endif
}
