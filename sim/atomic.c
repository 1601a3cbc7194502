/* Atomic operations on host memory: sequentially consistent, since workgroups run on several threads. */
#include "memory.h"

#include "convert.h"

static float min_max_f32(float a, float b, bool max)
{
    if (a != a)
        return b; /* a number wins over NaN */
    if (b != b)
        return a;
    if (a == b) /* -0 is less than +0 */
        return (sim_bits_of(a) >> 31 != 0) == max ? b : a;
    return (a < b) == max ? b : a;
}

static double min_max_f64(double a, double b, bool max)
{
    if (a != a)
        return b;
    if (b != b)
        return a;
    if (a == b)
        return (sim_bits_of_double(a) >> 63 != 0) == max ? b : a;
    return (a < b) == max ? b : a;
}

static uint32_t packed_add(uint32_t a, uint32_t b, bool bf16)
{
    uint32_t sum = 0;
    for (int i = 0; i < 32; i += 16) {
        const uint32_t x = a >> i & 0xFFFF, y = b >> i & 0xFFFF;
        /* Sums of two f16 or bf16 round to f32 and then to 16 bits as if once: 24 >= 2 * 11 + 2. */
        sum |= (bf16 ? sim_bf16_of_f32(sim_f32_of_bf16(x) + sim_f32_of_bf16(y))
                     : sim_f16_of_f32(sim_f32_of_f16(x) + sim_f32_of_f16(y)))
               << i;
    }
    return sum;
}

static uint64_t combine_float(const sim_access *access, uint64_t old, uint64_t src)
{
    const bool max = access->op == SIM_MAX;
    switch (access->type) {
    case SIM_F32: {
        const float a = sim_float_of((uint32_t)old), b = sim_float_of((uint32_t)src);
        return sim_bits_of(access->op == SIM_ADD ? a + b : min_max_f32(a, b, max));
    }
    case SIM_F64: {
        const double a = sim_double_of(old), b = sim_double_of(src);
        return sim_bits_of_double(access->op == SIM_ADD ? a + b : min_max_f64(a, b, max));
    }
    default:
        return packed_add((uint32_t)old, (uint32_t)src, access->type == SIM_PK_BF16);
    }
}

static bool is_float(uint8_t type)
{
    return type == SIM_F32 || type == SIM_F64 || type == SIM_PK_F16 || type == SIM_PK_BF16;
}

/* Whether a < b; 32-bit values have zeros above. */
static bool is_less(uint8_t type, uint64_t a, uint64_t b)
{
    return type == SIM_I32 ? (int32_t)a < (int32_t)b : type == SIM_I64 ? (int64_t)a < (int64_t)b : a < b;
}

/* The new value; bits above the type's are cut by who stores it. */
static uint64_t combine(const sim_access *access, uint64_t old, uint64_t first, uint64_t second)
{
    if (access->op == SIM_SWAP)
        return first;
    if (access->op == SIM_CMPSWAP) {
        const uint64_t expected = access->compare_first ? first : second, src = access->compare_first ? second : first;
        if (access->type == SIM_F32) /* compares as numbers: -0 equals +0, NaN nothing */
            return sim_float_of((uint32_t)old) == sim_float_of((uint32_t)expected) ? src : old;
        if (access->type == SIM_F64)
            return sim_double_of(old) == sim_double_of(expected) ? src : old;
        return old == expected ? src : old;
    }
    if (is_float(access->type))
        return combine_float(access, old, first);
    switch (access->op) {
    case SIM_ADD:
        return old + first;
    case SIM_SUB:
        return old - first;
    case SIM_RSUB:
        return first - old;
    case SIM_SUB_CLAMP:
        return old < first ? 0 : old - first;
    case SIM_COND_SUB:
        return old < first ? old : old - first;
    case SIM_MIN:
        return is_less(access->type, first, old) ? first : old;
    case SIM_MAX:
        return is_less(access->type, old, first) ? first : old;
    case SIM_AND:
        return old & first;
    case SIM_OR:
        return old | first;
    case SIM_XOR:
        return old ^ first;
    case SIM_INC:
        return old >= first ? 0 : old + 1;
    case SIM_DEC:
        return old == 0 || old > first ? first : old - 1;
    default:
        return (old & ~first) | second; /* SIM_MASKED_OR */
    }
}

bool sim_atomic(const sim_access *access, uint8_t *at, uint64_t first, uint64_t second, uint64_t *old)
{
    if (((uintptr_t)at & (access->bytes - 1u)) != 0)
        return false;
    if (access->type >= SIM_U64) {
        uint64_t *const x = (uint64_t *)(void *)at;
        *old = __atomic_load_n(x, __ATOMIC_SEQ_CST);
        while (!__atomic_compare_exchange_n(x, old, combine(access, *old, first, second), false, __ATOMIC_SEQ_CST,
                                            __ATOMIC_SEQ_CST))
            continue;
        return true;
    }
    uint32_t *const x = (uint32_t *)(void *)at;
    uint32_t        was = __atomic_load_n(x, __ATOMIC_SEQ_CST);
    while (!__atomic_compare_exchange_n(x, &was, (uint32_t)combine(access, was, first, second), false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_SEQ_CST))
        continue;
    *old = was;
    return true;
}
