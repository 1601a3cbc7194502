#include "context.h"

#include "error.h"
#include "offload.h"
#include "qualify.h"

#include <stdlib.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

enum { MAX_THREADS = 1024 }; /* a typing error, rather than a machine */

/* Empty is as good as not given: 0. */
static etalon_status read_waves(const char *text, int *waves)
{
    *waves = 0;
    if (text == NULL || *text == '\0')
        return ETALON_OK;
    REQUIRE(strchr("124", text[0]) != NULL && text[1] == '\0',
            "context_create: ETALON_FMHA_VARLEN_WAVES: \"%.64s\", expected 1, 2 or 4", text);
    *waves = text[0] - '0';
    return ETALON_OK;
}

static etalon_status add_device(etalon_context *ctx, int32_t number)
{
    TRY(offload_open(number, code_objects, &ctx->device));
    ctx->have &= ~(uint32_t)NEEDS_DEVICE | features_of_device(offload_place(ctx->device)->arch);
    return qualify(ctx);
}

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
    REQUIRE(have.device >= ETALON_HOST, "context_create: device: %" PRId32 ", expected a device number or %d (none)",
            have.device, ETALON_HOST);
    uint32_t features = features_detect() | (have.device != ETALON_HOST ? NEEDS_DEVICE : NEEDS_NONE);
    TRY(features_disable(getenv("ETALON_DISABLE"), &features));
    int waves;
    TRY(read_waves(getenv("ETALON_FMHA_VARLEN_WAVES"), &waves));
    etalon_context *made = calloc(1, sizeof *made);
    if (made == NULL)
        return etalon_reject(ETALON_ERROR_OUT_OF_MEMORY, "context_create: %zu bytes", sizeof *made);
    made->have = features;
    made->threads = have.threads;
    made->fmha_varlen_waves = waves;
    const etalon_status status = have.device == ETALON_HOST ? ETALON_OK : add_device(made, have.device);
    if (status != ETALON_OK)
        etalon_context_destroy(made);
    else
        *ctx = made;
    return status;
}

const char *context_why_unqualified(const etalon_context *ctx, const struct gate_row *row)
{
    for (int i = 0; i < ctx->unqualified_count; i++)
        if (ctx->unqualified[i].row == row)
            return ctx->unqualified[i].reason;
    return NULL;
}

void etalon_context_destroy(etalon_context *ctx)
{
    if (ctx != NULL) {
        offload_close(ctx->device);
        free(ctx->unqualified);
    }
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
