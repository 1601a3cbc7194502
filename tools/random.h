/* Random numbers with the same bits on every machine: xoshiro256**, seeded by splitmix64, and integer arithmetic.
 *
 * A normal number is the sum of twelve 32-bit uniform integers, less its mean: variance 1, within +-6, and without a
 * logarithm whose last bit differs between libraries. The only floating-point steps are exact, or single roundings.
 */
#ifndef ETALON_RANDOM_H
#define ETALON_RANDOM_H

#include <stdint.h>

typedef struct random_state {
    uint64_t s[4];
} random_state;

static inline uint64_t random_splitmix(uint64_t *x)
{
    uint64_t z = *x += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static inline random_state random_seed(uint64_t seed)
{
    random_state r;
    for (int i = 0; i < 4; i++)
        r.s[i] = random_splitmix(&seed);
    return r;
}

static inline uint64_t random_rotate(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

static inline uint64_t random_bits(random_state *r)
{
    const uint64_t result = random_rotate(r->s[1] * 5, 7) * 9, t = r->s[1] << 17;
    r->s[2] ^= r->s[0];
    r->s[3] ^= r->s[1];
    r->s[1] ^= r->s[2];
    r->s[0] ^= r->s[3];
    r->s[2] ^= t;
    r->s[3] = random_rotate(r->s[3], 45);
    return result;
}

/* An integer in [low, high]; the bias is below (high - low) / 2^64. */
static inline int64_t random_between(random_state *r, int64_t low, int64_t high)
{
    const uint64_t span = (uint64_t)(high - low) + 1;
    return low + (int64_t)(span == 0 ? random_bits(r) : random_bits(r) % span);
}

/* In [0, 1), a multiple of 2^-53. */
static inline double random_uniform(random_state *r)
{
    return (double)(random_bits(r) >> 11) * 0x1p-53;
}

static inline double random_normal(random_state *r)
{
    int64_t sum = -6 * ((int64_t)1 << 32) + 6; /* twelve times the mean, (2^32 - 1) / 2 */
    for (int i = 0; i < 6; i++) {
        const uint64_t bits = random_bits(r);
        sum += (int64_t)(bits >> 32) + (int64_t)(bits & 0xFFFFFFFF);
    }
    return (double)sum * 0x1p-32;
}

#endif
