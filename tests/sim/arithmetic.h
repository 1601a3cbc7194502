/* Kernels whose source is compiled twice: for the GPU, and for the host, which says what the GPU must give to the bit.
 * KERNEL(name, type of a, of b, of o): item i makes o[i]. Nothing can be contracted into an fma but where it is one.
 */
#ifdef ARITHMETIC_ON_DEVICE
#define KERNEL(name, A, B, O) \
    extern "C" __attribute__((global, amdgpu_flat_work_group_size(1, 256))) void name(const A *a, const B *b, O *o)
#define ITEM ((int)(__builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x()))
#else
static int arithmetic_item;
#define KERNEL(name, A, B, O)                               \
    static void name##_item(const A *a, const B *b, O *o);  \
    static void name(const void *a, const void *b, void *o) \
    {                                                       \
        name##_item(a, b, o);                               \
    }                                                       \
    static void name##_item(const A *a, const B *b, O *o)
#define ITEM arithmetic_item
#endif

typedef unsigned           u32;
typedef unsigned long long u64;
typedef long long          i64;

KERNEL(divide_i32, int, int, int)
{
    const int i = ITEM, d = b[i] | 1;
    o[i] = (int)((u32)(a[i] / (d == -1 ? 1 : d)) * 3u + (u32)(a[i] % (d == -1 ? 1 : d)));
}

KERNEL(divide_u32, u32, u32, u32)
{
    const int i = ITEM;
    const u32 d = b[i] | 1;
    o[i] = a[i] / d * 3 + a[i] % d;
}

KERNEL(divide_i64, i64, i64, i64)
{
    const int i = ITEM;
    const i64 d = b[i] >> 20 | 1;
    o[i] = (i64)((u64)(a[i] / (d == -1 ? 1 : d)) * 3u + (u64)(a[i] % (d == -1 ? 1 : d)));
}

KERNEL(divide_f32, float, float, float)
{
    const int i = ITEM;
    o[i] = a[i] / b[i];
}

KERNEL(divide_f64, double, double, double)
{
    const int i = ITEM;
    o[i] = a[i] / b[i] + __builtin_sqrt(__builtin_fabs(a[i]));
}

KERNEL(root_f32, float, float, float)
{
    const int i = ITEM;
    o[i] = __builtin_sqrtf(__builtin_fabsf(a[i])) + b[i];
}

KERNEL(dot_f32, float, float, float)
{
    const int i = ITEM;
    float     sum = 0;
    for (int k = 0; k < 8; k++)
        sum = __builtin_fmaf(a[i + k], b[i + 2 * k], sum);
    o[i] = sum;
}

KERNEL(extremes_f32, float, float, float)
{
    const int i = ITEM;
    float     m = -1e30f;
    for (int k = 0; k < 16; k++) {
        m = __builtin_fmaxf(m, a[i + k]);
        m = __builtin_fminf(m, __builtin_fabsf(b[i]) * 1e9f);
    }
    o[i] = m;
}

KERNEL(convert_f32, float, float, int)
{
    const int   i = ITEM;
    const float x = __builtin_fminf(__builtin_fmaxf(a[i] * 1000, -1e8f), 1e8f);
    const float y = __builtin_fminf(__builtin_fabsf(b[i]), 1e8f);
    o[i] = (int)x + (int)(u32)y + (int)__builtin_rintf(x) + (int)__builtin_floorf(x) * 3 + (int)__builtin_ceilf(x) +
           (int)__builtin_truncf(x);
}

KERNEL(mixed_f64, double, double, double)
{
    const int    i = ITEM;
    const double x = a[i], y = b[i], product = x * y;
    o[i] = product + x + __builtin_floor(x) + __builtin_rint(y) + __builtin_fma(x, y, 1.5) + (double)(int)x +
           (double)(float)y + __builtin_fmin(x, y);
}

KERNEL(scale_f32, float, int, float)
{
    const int i = ITEM;
    o[i] = __builtin_ldexpf(a[i], (b[i] & 63) - 32) * (a[i] > 0 ? 1.0f : -2.0f);
}

KERNEL(compare_f32, float, float, int)
{
    const int   i = ITEM;
    const float x = a[i] / (b[i] - b[i]), y = b[i]; /* an infinity or a NaN */
    o[i] =
        (x != x) + 2 * (__builtin_isinf(x) != 0) + 4 * (y < a[i]) + 8 * !(y > a[i]) + 16 * (x > y) + 32 * (y == a[i]);
}

KERNEL(bits_u32, u32, u32, u32)
{
    const int i = ITEM;
    const u32 x = a[i], y = b[i];
    o[i] = (u32)__builtin_popcount(x) + (u32)__builtin_clz(x | 1) * 64 + (u32)__builtin_ctz(y | 0x80000000u) * 4096 +
           (x << (y & 31) | x >> (-y & 31)) + __builtin_bswap32(x) + (x > y ? x - y : 0);
}

KERNEL(bits_u64, u64, u64, u64)
{
    const int i = ITEM;
    const u64 x = a[i], y = b[i];
    o[i] = (u64)__builtin_popcountll(x) + (u64)__builtin_clzll(x | 1) * 64 + x * y + (x << (y & 63)) +
           (u64)((i64)x >> (y & 63)) + __builtin_bswap64(y) + (x > y ? x : y) + ((i64)x < (i64)y) + (x == y);
}

KERNEL(shorts, short, short, short)
{
    const int   i = ITEM;
    const short x = a[i], y = b[i];
    o[i] = (short)(x * y + (x > y ? x : y) - (short)(x >> 3) + (unsigned short)((unsigned short)y >> 2));
}

KERNEL(bytes, signed char, unsigned char, int)
{
    const int i = ITEM;
    int       sum = 0;
    for (int k = 0; k < 8; k++)
        sum += a[4 * i + 2 * k] * b[4 * i + k];
    o[i] = sum;
}

KERNEL(branches, u32, u32, u32)
{
    const int i = ITEM;
    u32       x = a[i], r = 0;
    for (u32 k = 0; k < (b[i] & 31); k++) {
        switch (x % 7) {
        case 0:
            r += x;
            break;
        case 1:
            r ^= x * 3;
            break;
        case 2:
            r -= k;
            break;
        case 3:
            r = r * 5 + 1;
            break;
        case 4:
            r += x >> 3;
            break;
        case 5:
            r ^= k << 4;
            break;
        default:
            r += 7;
        }
        x = x * 1664525u + 1013904223u;
        if (x >> 28 == 3)
            break;
    }
    o[i] = r;
}

KERNEL(stack, u32, u32, u32)
{
    const int    i = ITEM;
    volatile u32 t[32];
    for (u32 k = 0; k < 32; k++)
        t[k] = a[i] + k * b[i];
    u32 sum = 0;
    for (u32 k = 0; k < 32; k++)
        sum = sum * 31 + t[(sum + b[i] + k) & 31];
    o[i] = sum;
}
