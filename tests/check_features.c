/* Features of the CPU and of devices: the table, the names of ETALON_DISABLE, detection against what the compiler's runtime says. */
#include "testing.h"

#include "context.h"
#include "gate.h"

#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))

static const struct {
    uint32_t    bit;
    const char *option, *what, *missing;
} features[] = {
#define FEATURE(bit, number, option, what, missing) { bit, option, what, missing },
#include "features.def"
#undef FEATURE
};

START_TEST(table_is_well_formed)
{
    uint32_t seen = NEEDS_NONE;
    for (int i = 0; i < COUNT(features); i++) {
        ck_assert_uint_eq(features[i].bit & seen, 0);
        seen |= features[i].bit;
        ck_assert_int_eq(features[i].option == NULL, features[i].bit == NEEDS_NAME);
        if (features[i].option != NULL)
            ck_assert_ptr_nonnull(strstr(features[i].missing, features[i].option)); /* as one would disable it */
        ck_assert_str_eq(gate_needs(features[i].bit), features[i].what);
        ck_assert_str_eq(gate_lacks(features[i].bit), features[i].missing);
        for (int j = 0; j < i; j++)
            if (features[i].option != NULL && features[j].option != NULL)
                ck_assert_str_ne(features[i].option, features[j].option);
    }
}
END_TEST

enum { X86 = NEEDS_AMX | NEEDS_AVX2 | NEEDS_AVX512, ALL = X86 | NEEDS_NEON | NEEDS_DEVICE };

static const struct {
    const char *list;
    uint32_t    have, want;
    const char *words; /* of the refusal */
} lists[] = {
    { NULL, ALL, ALL, NULL },
    { "", ALL, ALL, NULL },
    { ",", ALL, ALL, NULL },
    { "avx2", ALL, ALL & ~NEEDS_AVX2, NULL },     /* that row alone */
    { "avx512", ALL, ALL & ~NEEDS_AVX512, NULL }, /* rows of AMX need both */
    { "amx", ALL, ALL & ~NEEDS_AMX, NULL },
    { "neon", ALL, X86 | NEEDS_DEVICE, NULL },
    { "offload", ALL, X86 | NEEDS_NEON, NULL }, /* and what it brings */
    { "gfx950", ALL, ALL & ~NEEDS_GFX950, NULL },
    { "gfx1250,neon", ALL, X86 | NEEDS_OFFLOAD | NEEDS_GFX950, NULL },
    { "avx512,avx2", ALL, NEEDS_AMX | NEEDS_NEON | NEEDS_DEVICE, NULL },
    { ",avx2,,neon,", ALL, NEEDS_AMX | NEEDS_AVX512 | NEEDS_DEVICE, NULL },
    { "avx2,avx2", ALL, ALL & ~NEEDS_AVX2, NULL },
    { "avx512", NEEDS_AVX2, NEEDS_AVX2, NULL }, /* only removes */
    { "amx,avx512,avx2,neon", NEEDS_NONE, NEEDS_NONE, NULL },
    { "avx", ALL, ALL, "ETALON_DISABLE: \"avx\", expected names of amx, avx2, avx512, neon, offload, gfx950, gfx1250" },
    { "avx5120", ALL, ALL, "\"avx5120\"" },
    { "AVX2", ALL, ALL, "\"AVX2\"" },
    { "avx2, avx512", ALL, ALL, "\" avx512\"" }, /* avx2 stays, too */
    { "avx2;avx512", ALL, ALL, "\"avx2;avx512\"" },
    { "by name only", ALL, ALL, "\"by name only\"" },
    { "none", ALL, ALL, "\"none\"" },
    { "0123456789012345678901234567890123456789012345678901234567890123456789", ALL, ALL,
      "\"0123456789012345678901234567890123456789012345678901234567890123\", expected names of amx, avx2, avx512, "
      "neon, offload, gfx950, gfx1250" },
};

START_TEST(disable)
{
    uint32_t have = lists[_i].have;
    if (lists[_i].words == NULL)
        ck_assert_ok(features_disable(lists[_i].list, &have));
    else
        ck_assert_rejects(features_disable(lists[_i].list, &have), ETALON_ERROR_INVALID_ARGUMENT, lists[_i].words);
    ck_assert_uint_eq(have, lists[_i].want);
}
END_TEST

static const struct {
    const char *arch;
    uint32_t    want;
} devices[] = {
    { "gfx950", NEEDS_OFFLOAD | NEEDS_GFX950 },
    { "gfx1250", NEEDS_OFFLOAD | NEEDS_GFX1250 },
    { "sm_90", NEEDS_OFFLOAD },
    { "gfx9", NEEDS_OFFLOAD },
    { "gfx9500", NEEDS_OFFLOAD },
    { "avx2", NEEDS_OFFLOAD },
};

START_TEST(what_a_device_brings)
{
    const uint32_t got = features_of_device(devices[_i].arch);
    ck_assert_uint_eq(got, devices[_i].want);
    if (got == NEEDS_OFFLOAD)
        ck_assert_ptr_null(features_arch(got | NEEDS_AVX2 | NEEDS_NAME));
    else
        ck_assert_str_eq(features_arch(got | NEEDS_AVX2), devices[_i].arch);
}
END_TEST

#if defined(__x86_64__)
/* Whether the CPU executes an instruction on tiles for this process, which features_detect has asked for: in a child, which
 * dies of it otherwise. The bytes are LDTILECFG of a configuration in memory, TILEZERO of register 0, TILERELEASE.
 */
static bool tiles_work(void)
{
    static const uint8_t shape[64] __attribute__((aligned(64))) = { [0] = 1, [16] = 64, [48] = 16 };
    const pid_t          child = fork();
    if (child == 0) {
        __asm__ volatile(".byte 0xc4, 0xe2, 0x78, 0x49, 0x00\n" /* ldtilecfg (%rax) */
                         ".byte 0xc4, 0xe2, 0x7b, 0x49, 0xc0\n" /* tilezero %tmm0 */
                         ".byte 0xc4, 0xe2, 0x78, 0x49, 0xc0\n" /* tilerelease */
                         :
                         : "a"(shape)
                         : "memory");
        _exit(0);
    }
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
#endif

/* The compiler's runtime reads the same registers by code of its own; of tiles, the instructions tell. */
START_TEST(detection_agrees_with_the_compiler)
{
    const uint32_t have = features_detect();
    ck_assert_uint_eq(have, features_detect());
    ck_assert_uint_eq(have & NEEDS_NAME, 0);
#if defined(__x86_64__)
    __builtin_cpu_init();
    const int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
    const int avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                       __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    ck_assert_int_eq((have & NEEDS_AVX2) != 0, avx2 != 0);
    ck_assert_int_eq((have & NEEDS_AVX512) != 0, avx512 != 0);
    ck_assert_int_eq((have & NEEDS_AMX) != 0, avx512 && tiles_work());
    ck_assert_uint_eq(have & NEEDS_NEON, 0);
#elif defined(__aarch64__)
    ck_assert_uint_eq(have, NEEDS_NEON);
#else
    ck_assert_uint_eq(have, NEEDS_NONE);
#endif
}
END_TEST

/* Tests run forked: the environment is this test's own. */
START_TEST(context_reads_the_environment)
{
    etalon_context *ctx = NULL;
    ck_assert_int_eq(setenv("ETALON_DISABLE", "avx512", 1), 0);
    ck_assert_ok(etalon_context_create(NULL, &ctx));
    ck_assert_uint_eq(ctx->have, features_detect() & ~(uint32_t)NEEDS_AVX512);
    ck_assert_int_eq(setenv("ETALON_DISABLE", "amx,avx512,avx2,neon", 1), 0);
    ck_assert_uint_eq(ctx->have, features_detect() & ~(uint32_t)NEEDS_AVX512); /* read once */
    etalon_context_destroy(ctx);
    ck_assert_ok(etalon_context_create(NULL, &ctx));
    ck_assert_uint_eq(ctx->have, NEEDS_NONE);
    etalon_context_destroy(ctx);
    ck_assert_int_eq(unsetenv("ETALON_DISABLE"), 0);
    ck_assert_ok(etalon_context_create(NULL, &ctx));
    ck_assert_uint_eq(ctx->have, features_detect());
    etalon_context_destroy(ctx);
}
END_TEST

START_TEST(context_refuses_an_unknown_name)
{
    etalon_context *ctx = NULL;
    ck_assert_int_eq(setenv("ETALON_DISABLE", "avx512,sse9", 1), 0);
    ck_assert_rejects(etalon_context_create(NULL, &ctx), ETALON_ERROR_INVALID_ARGUMENT, "ETALON_DISABLE: \"sse9\"");
    ck_assert_ptr_null(ctx);
}
END_TEST

/* Whatever a row needs besides: without AVX-512 there is none for AMX. */
START_TEST(rows_of_amx_need_avx512)
{
    etalon_context *ctx = NULL;
    ck_assert_int_eq(setenv("ETALON_DISABLE", "avx512", 1), 0);
    ck_assert_ok(etalon_context_create(NULL, &ctx));
    etalon_kernel_info info;
    for (int i = 0; etalon_kernel_get(ctx, i, &info) == ETALON_OK; i++)
        ck_assert(strstr(info.name, "_amx") == NULL || !info.available);
    etalon_context_destroy(ctx);
}
END_TEST

/* A row whose feature is disabled says so, and a call that names it fails. */
START_TEST(disabled_rows_are_not_available)
{
    etalon_context *ctx = NULL;
    ck_assert_int_eq(setenv("ETALON_DISABLE", "amx,avx512,avx2,neon", 1), 0);
    ck_assert_ok(etalon_context_create(NULL, &ctx));
    etalon_kernel_info info;
    for (int i = 0; etalon_kernel_get(ctx, i, &info) == ETALON_OK; i++)
        ck_assert_int_eq(info.available, info.needs[0] == '\0');
    etalon_context_destroy(ctx);
}
END_TEST

static void fill(TCase *tcase)
{
    tcase_add_test(tcase, table_is_well_formed);
    tcase_add_loop_test(tcase, disable, 0, COUNT(lists));
    tcase_add_loop_test(tcase, what_a_device_brings, 0, COUNT(devices));
    tcase_add_test(tcase, detection_agrees_with_the_compiler);
    tcase_add_test(tcase, context_reads_the_environment);
    tcase_add_test(tcase, context_refuses_an_unknown_name);
    tcase_add_test(tcase, rows_of_amx_need_avx512);
    tcase_add_test(tcase, disabled_rows_are_not_available);
}

int main(void)
{
    return testing_main("features", fill);
}
