#include "features.h"

#include "error.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

static const struct {
    uint32_t    bit;
    const char *option;
} features[] = {
#define FEATURE(bit, number, option, what, missing) { bit, option },
#include "features.def"
#undef FEATURE
};

enum { FEATURE_COUNT = sizeof features / sizeof features[0] };

#if defined(__x86_64__)

/* XCR0: the register state that the operating system saves. */
enum {
    STATE_YMM = 1 << 1 | 1 << 2,                      /* xmm and the upper halves of ymm */
    STATE_ZMM = STATE_YMM | 1 << 5 | 1 << 6 | 1 << 7, /* k0 to k7, the upper halves of zmm, zmm16 to zmm31 */
    STATE_TILES = 1 << 17 | 1 << 18                   /* their shape, their data */
};

/* Of leaf 7: compilers disagree about the names. */
enum { BIT_AMX_BF16 = 1 << 22, BIT_AMX_TILE = 1 << 24 };

static bool has_all(uint32_t set, uint32_t bits)
{
    return (set & bits) == bits;
}

/* By its opcode's mnemonic: the intrinsic would want -mxsave for the whole file. */
static uint32_t saved_state(void)
{
    uint32_t low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

/* Linux saves tiles for a process that asked for it: once, for all of its threads. */
static bool tiles_are_granted(void)
{
#ifdef __linux__
    enum { ASK_FOR_STATE = 0x1023 /* ARCH_REQ_XCOMP_PERM */, TILE_DATA = 18 };
    return syscall(SYS_arch_prctl, ASK_FOR_STATE, TILE_DATA) == 0;
#else
    return false;
#endif
}

uint32_t features_detect(void)
{
    uint32_t a, b1, b7, c1, c7, d1, d7;
    if (!__get_cpuid(1, &a, &b1, &c1, &d1) || !__get_cpuid_count(7, 0, &a, &b7, &c7, &d7))
        return NEEDS_NONE;
    if (!has_all(c1, bit_OSXSAVE | bit_AVX | bit_FMA | bit_F16C) || !has_all(b7, bit_AVX2))
        return NEEDS_NONE; /* no CPU has AVX-512 without these */
    const uint32_t state = saved_state();
    uint32_t       have = NEEDS_NONE;
    if (has_all(state, STATE_YMM))
        have |= NEEDS_AVX2;
    if (has_all(state, STATE_ZMM) && has_all(b7, bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL))
        have |= NEEDS_AVX512;
    if (have & NEEDS_AVX512 && has_all(state, STATE_TILES) && has_all(d7, BIT_AMX_TILE | BIT_AMX_BF16) &&
        has_all(c7, bit_AVX512VBMI) && tiles_are_granted())
        have |= NEEDS_AMX;
    return have;
}

#elif defined(__aarch64__) && defined(__ARM_NEON)

uint32_t features_detect(void)
{
    return NEEDS_NEON; /* part of the architecture */
}

#else

uint32_t features_detect(void)
{
    return NEEDS_NONE;
}

#endif

static bool is_option(int i, const char *name, size_t length)
{
    return features[i].option != NULL && strlen(features[i].option) == length &&
           strncmp(features[i].option, name, length) == 0;
}

static etalon_status reject_name(const char *name, size_t length)
{
    char   known[128] = "";
    size_t end = 0;
    for (int i = 0; i < FEATURE_COUNT; i++)
        if (features[i].option != NULL)
            end += (size_t)snprintf(known + end, sizeof known - end, "%s%s", end > 0 ? ", " : "", features[i].option);
    return etalon_reject(ETALON_ERROR_INVALID_ARGUMENT,
                         "context_create: ETALON_DISABLE: \"%.*s\", expected names of %s",
                         (int)(length < 64 ? length : 64), name, known);
}

uint32_t features_of_device(const char *arch)
{
    uint32_t have = NEEDS_OFFLOAD;
    for (int i = 0; i < FEATURE_COUNT; i++)
        if ((features[i].bit & NEEDS_DEVICE) != 0 && strcmp(features[i].option, arch) == 0)
            have |= features[i].bit;
    return have;
}

const char *features_arch(uint32_t needs)
{
    for (int i = 0; i < FEATURE_COUNT; i++)
        if ((needs & features[i].bit & NEEDS_DEVICE & ~NEEDS_OFFLOAD) != 0)
            return features[i].option;
    return NULL;
}

etalon_status features_disable(const char *list, uint32_t *have)
{
    uint32_t left = *have;
    for (const char *name = list; name != NULL && *name != '\0';) {
        const size_t length = strcspn(name, ",");
        int          i = 0;
        while (i < FEATURE_COUNT && !is_option(i, name, length))
            i++;
        if (i == FEATURE_COUNT && length > 0)
            return reject_name(name, length);
        if (i < FEATURE_COUNT)
            left &= ~(features[i].bit == NEEDS_OFFLOAD ? NEEDS_DEVICE : features[i].bit);
        name += length + (name[length] == ',');
    }
    *have = left;
    return ETALON_OK;
}
