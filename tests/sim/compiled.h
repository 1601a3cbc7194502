/* Kernels in which work-items meet: lanes of a wave, LDS, atomics; and calls, and wide and small types. The host has a
 * formula for one item, from what the items of its wave or workgroup read, or adds up what all items do.
 *
 * KERNEL(name): item i of o[], from a[] and b[]. A workgroup has GROUP items, its first is BASE; a wave has LANES.
 */
typedef unsigned           u32;
typedef unsigned long long u64;
typedef unsigned char      u8;
typedef unsigned short     u16;

enum { GROUP = 64, BINS = 16 };

#ifdef COMPILED_ON_DEVICE
#define KERNEL(name)                                                                                      \
    extern "C" __attribute__((global, amdgpu_flat_work_group_size(GROUP, GROUP))) void name(const u32 *a, \
                                                                                            const u32 *b, u32 *o)
#define ITEM ((int)__builtin_amdgcn_workitem_id_x())
#define BASE ((int)(__builtin_amdgcn_workgroup_id_x() * GROUP))
#define DEVICE static __attribute__((device))
#define SHARED static __attribute__((shared))
#ifdef __gfx950__
#define LANES 64
#define BALLOT(x) ((u64)__builtin_amdgcn_ballot_w64(x))
#define LANE ((int)__builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0)))
#else
#define LANES 32
#define BALLOT(x) ((u64)__builtin_amdgcn_ballot_w32(x))
#define LANE ((int)__builtin_amdgcn_mbcnt_lo(~0u, 0))
#endif

DEVICE void meet(void)
{
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
#else
static int compiled_lanes, compiled_item, compiled_base;
#define KERNEL(name) static void name(const u32 *a, const u32 *b, u32 *o)
#define ITEM compiled_item
#define BASE compiled_base
#define LANES compiled_lanes
#define LANE (compiled_item % compiled_lanes)
#define WAVE (compiled_base + compiled_item - LANE) /* its first item */
#define DEVICE static
#endif
#define I (BASE + ITEM)

/* Any lane's value */
KERNEL(shuffle)
{
#ifdef COMPILED_ON_DEVICE
    o[I] = (u32)__builtin_amdgcn_ds_bpermute((int)(b[I] % LANES * 4), (int)a[I]);
#else
    o[I] = a[WAVE + (int)(b[I] % (u32)LANES)];
#endif
}

/* Steps of DPP that both arches have; 0 from beyond a row of 16 */
KERNEL(steps)
{
#ifdef COMPILED_ON_DEVICE
    (void)b;
#define STEP(control) (u32) __builtin_amdgcn_update_dpp(0, (int)a[I], control, 15, 15, true)
    o[I] = STEP(0x1B) + 3 * STEP(0x102) + 5 * STEP(0x113) + 7 * STEP(0x125) + 11 * STEP(0x140) + 13 * STEP(0x141);
#else
    (void)b;
    const int  row = LANE & ~15, x = LANE & 15;
    const u32 *of = a + WAVE + row;
    o[I] = of[x ^ 3] + 3 * (x + 2 < 16 ? of[x + 2] : 0) + 5 * (x >= 3 ? of[x - 3] : 0) + 7 * of[(x + 11) % 16] +
           11 * of[15 - x] + 13 * of[(x & 8) + 7 - (x & 7)];
#endif
}

/* Who of the wave: how many before this lane, how many in all */
KERNEL(votes)
{
#ifdef COMPILED_ON_DEVICE
    const u64 mask = BALLOT(a[I] > b[I]), before = mask & ((1ull << LANE) - 1);
    o[I] = (u32)__builtin_popcountll(before) * 100 + (u32)__builtin_popcountll(mask);
#else
    u32 before = 0, all = 0;
    for (int l = 0; l < LANES; l++) {
        const bool is = a[WAVE + l] > b[WAVE + l];
        before += is && l < LANE;
        all += is;
    }
    o[I] = before * 100 + all;
#endif
}

/* The first lane of those that took the same way, and a lane by number */
KERNEL(first_of_branch)
{
#ifdef COMPILED_ON_DEVICE
    u32 first;
    if ((a[I] & 4) != 0)
        first = (u32)__builtin_amdgcn_readfirstlane((int)(a[I] * 3));
    else
        first = (u32)__builtin_amdgcn_readfirstlane((int)(a[I] ^ 0x5555)) + 1;
    const int lane = __builtin_amdgcn_readfirstlane((int)b[I]) & (LANES - 1);
    o[I] = first + (u32)__builtin_amdgcn_readlane((int)b[I], lane);
#else
    int l = 0;
    while (((a[WAVE + l] ^ a[I]) & 4) != 0)
        l++;
    const u32 v = a[WAVE + l];
    o[I] = ((a[I] & 4) != 0 ? v * 3 : (v ^ 0x5555) + 1) + b[WAVE + (int)(b[WAVE] & (u32)(LANES - 1))];
#endif
}

/* The workgroup's values in another order, through LDS, in four widths */
KERNEL(exchange)
{
    const int from = (ITEM * 37 + 11) % GROUP;
#ifdef COMPILED_ON_DEVICE
    SHARED u8  bytes[GROUP];
    SHARED u16 halves[GROUP];
    SHARED u32 words[GROUP];
    SHARED u64 pairs[GROUP];
    bytes[ITEM] = (u8)a[I];
    halves[ITEM] = (u16)(a[I] >> 8);
    words[ITEM] = b[I];
    pairs[ITEM] = (u64)a[I] << 32 | b[I];
    meet();
    o[I] = bytes[from] + 257u * halves[from] + 31u * words[from] + (u32)(pairs[from] >> 20);
#else
    const u32 x = a[BASE + from], y = b[BASE + from];
    o[I] = (u8)x + 257u * (u16)(x >> 8) + 31u * y + (u32)(((u64)x << 32 | y) >> 20);
#endif
}

/* Running sums of the workgroup, in log2 steps */
KERNEL(scan)
{
    (void)b;
#ifdef COMPILED_ON_DEVICE
    SHARED u32 sum[2][GROUP];
    sum[0][ITEM] = a[I];
    int at = 0;
    for (int step = 1; step < GROUP; step *= 2, at ^= 1) {
        meet();
        sum[at ^ 1][ITEM] = sum[at][ITEM] + (ITEM >= step ? sum[at][ITEM - step] : 0);
    }
    o[I] = sum[at][ITEM];
#else
    u32 sum = 0;
    for (int k = 0; k <= ITEM; k++)
        sum += a[BASE + k];
    o[I] = sum;
#endif
}

/* Atomics in LDS, of every kind that gives the same in any order: o of item k is bin k's */
KERNEL(bins)
{
#ifdef COMPILED_ON_DEVICE
    SHARED u32   add[BINS], least[BINS], most[BINS], mixed[BINS], product[BINS];
    SHARED float real[BINS];
    if (ITEM < BINS) {
        add[ITEM] = mixed[ITEM] = most[ITEM] = 0;
        least[ITEM] = ~0u;
        product[ITEM] = 1;
        real[ITEM] = 0;
    }
    meet();
    const u32 bin = b[I] % BINS;
    __atomic_fetch_add(&add[bin], a[I], __ATOMIC_RELAXED);
    __atomic_fetch_min(&least[bin], a[I], __ATOMIC_RELAXED);
    __atomic_fetch_max(&most[bin], a[I], __ATOMIC_RELAXED);
    __atomic_fetch_xor(&mixed[bin], a[I], __ATOMIC_RELAXED);
    __atomic_fetch_add(&real[bin], (float)(a[I] & 1023), __ATOMIC_RELAXED);
    u32 old = 1; /* a guess: the checks take a plain read beside an atomic for a race */
    while (
        !__atomic_compare_exchange_n(&product[bin], &old, old * (a[I] | 1), false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
    meet();
    if (ITEM < BINS)
        o[I] =
            add[ITEM] + 3 * least[ITEM] + 5 * most[ITEM] + 7 * mixed[ITEM] + 11 * product[ITEM] + 13 * (u32)real[ITEM];
    else
        o[I] = 0;
#else
    u32 add = 0, least = ~0u, most = 0, mixed = 0, product = 1, real = 0;
    for (int k = 0; k < GROUP; k++) {
        const u32 x = a[BASE + k];
        if (b[BASE + k] % BINS != (u32)ITEM)
            continue;
        add += x;
        least = x < least ? x : least;
        most = x > most ? x : most;
        mixed ^= x;
        product *= x | 1;
        real += x & 1023;
    }
    o[I] = ITEM < BINS ? add + 3 * least + 5 * most + 7 * mixed + 11 * product + 13 * real : 0;
#endif
}

/* Atomics in memory, by all workgroups: o begins as zeros, and holds 5 * BINS results */
KERNEL(totals)
{
    const u32 bin = b[I] % BINS, x = a[I];
#ifdef COMPILED_ON_DEVICE
    __atomic_fetch_add(&o[bin], x, __ATOMIC_RELAXED);
    __atomic_fetch_max(&o[BINS + bin], x, __ATOMIC_RELAXED);
    __atomic_fetch_xor(&o[2 * BINS + bin], x, __ATOMIC_RELAXED);
    __atomic_fetch_add((float *)&o[3 * BINS + bin], (float)(x & 1023), __ATOMIC_RELAXED);
    u32 old = __atomic_load_n(&o[4 * BINS + bin], __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&o[4 * BINS + bin], &old, old + (x ^ 0x77), false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
        ;
#else
    float *sum = (float *)&o[3 * BINS + bin];
    o[bin] += x;
    o[BINS + bin] = x > o[BINS + bin] ? x : o[BINS + bin];
    o[2 * BINS + bin] ^= x;
    *sum += (float)(x & 1023);
    o[4 * BINS + bin] += x ^ 0x77;
#endif
}

/* From here on, the same source for both: calls, by name and through a table, and arithmetic that arithmetic.h lacks */
typedef u32 combine(u32 x, u32 y);

DEVICE __attribute__((noinline)) u32 gather(const u32 *from, u32 n)
{
    volatile u32 t[9];
    for (u32 k = 0; k < 9; k++)
        t[k] = from[k] + n;
    return t[n % 9] + t[8 - n % 9];
}

DEVICE __attribute__((noinline)) u32 sum_of(u32 x, u32 y)
{
    return x + y * 3;
}

DEVICE __attribute__((noinline)) u32 difference_of(u32 x, u32 y)
{
    return x - (y >> 3);
}

DEVICE __attribute__((noinline)) u32 larger_of(u32 x, u32 y)
{
    return x > y ? x : y;
}

KERNEL(calls)
{
    combine *volatile const table[] = { sum_of, difference_of, larger_of };
    u32 x = gather(&a[BASE], b[I] & 0xFF);
    for (u32 k = 0; k < 6; k++)
        x = table[(x + k) % 3](x, b[I]);
    o[I] = x;
}

KERNEL(wide_integers)
{
    typedef unsigned __int128 u128;
    const u64                 x = (u64)a[I] << 32 | b[I], y = (u64)b[I] << 29 ^ a[I];
    const u128                product = (u128)x * y + x, shifted = product << (a[I] & 127) | product >> (b[I] & 127);
    const u128                difference = shifted - ((u128)y << 50);
    o[I] = (u32)difference ^ (u32)(difference >> 32) * 3 ^ (u32)(difference >> 64) * 5 ^ (u32)(difference >> 96) * 7 ^
           (shifted < product);
}

/* The compilers that know BF16 as a type are fewer than those that can round to it. */
DEVICE float bf16_of(float x)
{
#ifdef COMPILED_ON_DEVICE
    return (float)(__bf16)x;
#else
    u32 bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000u;
    memcpy(&x, &bits, sizeof x);
    return x;
#endif
}

/* Every result is rounded at once, also where the host computes halves in more bits. */
KERNEL(small_floats)
{
    const float    x = (float)(int)a[I] * 0x1p-30f, y = (float)(int)b[I] * 0x1p-28f;
    const _Float16 h = (_Float16)x, g = (_Float16)y, product = (_Float16)(h * g), square = (_Float16)(g * g);
    const _Float16 sum = (_Float16)(product + h), quotient = (_Float16)(h / (_Float16)(square + (_Float16)1));
    float          r = (float)sum + (float)quotient * 3 + bf16_of(y * bf16_of(x));
    for (int k = 0; k < 3; k++)
        r = (float)(_Float16)(r * 0.75f) + bf16_of(r * 0.5f) * x;
    __builtin_memcpy(&o[I], &r, sizeof r);
}

KERNEL(vectors)
{
    typedef u32 four __attribute__((vector_size(16)));
    typedef u16 eight __attribute__((vector_size(16)));
    typedef u8  sixteen __attribute__((vector_size(16)));
    four        x, y;
    __builtin_memcpy(&x, a + (I & ~3), sizeof x);
    __builtin_memcpy(&y, b + (I & ~3), sizeof y);
    const eight   s = (eight)x * (eight)y - (eight)(x >> 3);
    const sixteen c = ((sixteen)x + (sixteen)y) ^ (sixteen)s;
    const four    is_larger = (four)(x > y), larger = (x & is_larger) | (y & ~is_larger);
    const four    z = (four)c + larger * (u32)(ITEM + 1);
    o[I] = z[0] + z[1] * 3 + z[2] * 5 + z[3] * 7 + z[ITEM & 3] * 11 + s[b[I] & 7] + c[a[I] & 15];
}
