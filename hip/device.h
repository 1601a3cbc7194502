/* The little of a device language that the portable kernels need, for clang alone: no header of ROCm or CUDA.
 *
 *   clang -x hip  --offload-arch=gfx950    --offload-device-only -nogpuinc -nogpulib
 *   clang -x hip  --offload-arch=gfx1250   the same
 *   clang -x cuda --cuda-gpu-arch=sm_90    --cuda-device-only -nocudainc -nocudalib
 *
 * A workgroup is WORKGROUP work-items along x. Kernels speak through LDS and barriers only, so waves of 32 and of 64
 * lanes run the same source. Grid sizes come as arguments: no hidden argument is read.
 */
#ifndef ETALON_HIP_DEVICE_H
#define ETALON_HIP_DEVICE_H

#include <etalon/types.h>

#include "workgroup.h"

#define DEVICE static inline __attribute__((device, always_inline))
#define SHARED static __attribute__((shared))
#define GLOBAL __attribute__((address_space(1)))

/* At most 256 VGPRs: two workgroups a CU on gfx950, and on gfx1250 none that takes a change of VGPR_MSB to reach. */
#if defined(__AMDGCN__)
#define KERNEL                                                                                                 \
    extern "C" __attribute__((global, amdgpu_flat_work_group_size(WORKGROUP, WORKGROUP), amdgpu_num_vgpr(256), \
                              amdgpu_waves_per_eu(2)))
#else
#define KERNEL extern "C" __attribute__((global, launch_bounds(WORKGROUP, 2)))
#endif

typedef float    float4v __attribute__((ext_vector_type(4)));
typedef uint32_t uint2v __attribute__((ext_vector_type(2)));
typedef uint32_t uint4v __attribute__((ext_vector_type(4)));

/* Opaque at each call: what follows from it is worked out anew, where a compiler would keep it in a register through
 * every loop around. */
DEVICE int device_opaque(int x)
{
#if defined(__AMDGCN__)
    __asm__ volatile("" : "+v"(x));
#else
    __asm__ volatile("" : "+r"(x));
#endif
    return x;
}

DEVICE int device_item()
{
#if defined(__AMDGCN__)
    const uint32_t item = __builtin_amdgcn_workitem_id_x();
#else
    const uint32_t item = __nvvm_read_ptx_sreg_tid_x();
#endif
    return device_opaque((int)item) & (WORKGROUP - 1);
}

DEVICE int64_t device_group()
{
#if defined(__AMDGCN__)
    return (int64_t)__builtin_amdgcn_workgroup_id_x();
#else
    return (int64_t)__nvvm_read_ptx_sreg_ctaid_x();
#endif
}

/* All of the workgroup meet, and see each other's LDS. */
DEVICE void device_barrier()
{
#if defined(__AMDGCN__)
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
#else
    __syncthreads();
#endif
}

/* The lanes of a wave see each other's LDS; 32 of them or more run as one. */
DEVICE void device_wave_barrier()
{
#if defined(__AMDGCN__)
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
    __builtin_amdgcn_wave_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
#else
    __nvvm_bar_warp_sync(0xFFFFFFFFu);
#endif
}

/* What is above is issued before what is below: else reads of LDS are moved up until registers run out. */
DEVICE void device_in_order()
{
#if defined(__AMDGCN__)
    __builtin_amdgcn_sched_barrier(0);
#endif
}

template <typename T> DEVICE T device_least(T a, T b)
{
    return a < b ? a : b;
}

template <typename T> DEVICE T device_most(T a, T b)
{
    return a > b ? a : b;
}

DEVICE int64_t device_ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* a / b for a >= 0 and b > 0: the machines divide 64 bits by some hundred instructions. */
DEVICE int64_t device_divide(int64_t a, int64_t b)
{
    if (((a | b) >> 32) == 0)
        return (int64_t)((uint32_t)a / (uint32_t)b);
    return a / b;
}

/* Bits
 * ----
 */
DEVICE float device_float(uint32_t bits)
{
    return __builtin_bit_cast(float, bits);
}

DEVICE uint32_t device_bits(float x)
{
    return __builtin_bit_cast(uint32_t, x);
}

DEVICE bool device_finite(float x)
{
    return (device_bits(x) & 0x7F800000u) != 0x7F800000u;
}

/* Memory, by addresses
 * --------------------
 */
template <typename T> DEVICE T device_load(uint64_t at)
{
    return *(const GLOBAL T *)at;
}

template <typename T> DEVICE void device_store(uint64_t at, T x)
{
    *(GLOBAL T *)at = x;
}

DEVICE int64_t device_index(uint64_t base, int32_t wide, int64_t stride, int64_t i)
{
    if (wide)
        return device_load<int64_t>(base + (uint64_t)(i * stride * 8));
    return device_load<int32_t>(base + (uint64_t)(i * stride * 4));
}

/* Numbers
 * -------
 * An FP8 code's exponent and mantissa, as those of an fp32 number, are it times 2^(bias - 127): subnormals too.
 */
DEVICE float device_e4m3fn(uint32_t code)
{
    const float x = device_float((code & 0x80) << 24 | (code & 0x7F) << 20) * 0x1p120f;
    return (code & 0x7F) == 0x7F ? device_float(0x7FC00000u) : x;
}

DEVICE float device_e4m3fnuz(uint32_t code)
{
    const float x = device_float((code & 0x80) << 24 | (code & 0x7F) << 20) * 0x1p119f;
    return (code & 0xFF) == 0x80 ? device_float(0x7FC00000u) : x;
}

DEVICE float device_fp8(etalon_dtype dtype, uint32_t code)
{
    return dtype == ETALON_E4M3FN ? device_e4m3fn(code) : device_e4m3fnuz(code);
}

/* Four E4M3FN codes by the machine's own conversion, which is exact and keeps NaN. */
DEVICE float4v device_e4m3fn_four(uint32_t codes)
{
#if defined(__AMDGCN__)
    const auto low = __builtin_amdgcn_cvt_pk_f32_fp8((int)codes, false);
    const auto high = __builtin_amdgcn_cvt_pk_f32_fp8((int)codes, true);
    return float4v{ low[0], low[1], high[0], high[1] };
#else
    typedef _Float16 half2v __attribute__((ext_vector_type(2)));
    uint32_t         low, high;
    __asm__("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(low) : "h"((uint16_t)codes));
    __asm__("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(high) : "h"((uint16_t)(codes >> 16)));
    const half2v a = __builtin_bit_cast(half2v, low), b = __builtin_bit_cast(half2v, high);
    return float4v{ (float)a.x, (float)a.y, (float)b.x, (float)b.y };
#endif
}

DEVICE int64_t device_bytes(etalon_dtype dtype)
{
    return dtype == ETALON_F32 ? 4 : dtype == ETALON_BF16 ? 2 : 1;
}

DEVICE float device_element(etalon_dtype dtype, uint64_t at)
{
    if (dtype == ETALON_F32)
        return device_load<float>(at);
    if (dtype == ETALON_BF16)
        return device_float((uint32_t)device_load<uint16_t>(at) << 16);
    return device_fp8(dtype, device_load<uint8_t>(at));
}

/* Nearest even; overflow goes to infinity, NaN stays. */
DEVICE uint16_t device_bf16(float x)
{
    const uint32_t bits = device_bits(x);
    if (x != x)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

DEVICE void device_store_element(etalon_dtype dtype, uint64_t at, float x)
{
    if (dtype == ETALON_BF16)
        device_store<uint16_t>(at, device_bf16(x));
    else
        device_store<float>(at, x);
}

/* Where the elements of a row lie. `quads`: so many times four elements stand together, aligned to their size; 0, 1
 * or 4. */
typedef struct device_row {
    etalon_dtype dtype;
    int32_t      quads;
    int64_t      stride; /* elements */
} device_row;

/* Elements [d, d + 4) of the row at that address; zeros from `dims` on. */
DEVICE float4v device_four(device_row row, uint64_t at, int64_t d, int64_t dims)
{
    float4v x = 0.0f;
    if (row.quads && d + 4 <= dims) {
        if (row.dtype == ETALON_F32)
            return device_load<float4v>(at + (uint64_t)(4 * d));
        if (row.dtype == ETALON_BF16) {
            const uint2v two = device_load<uint2v>(at + (uint64_t)(2 * d));
            return float4v{ device_float(two.x << 16), device_float(two.x & 0xFFFF0000u), device_float(two.y << 16),
                            device_float(two.y & 0xFFFF0000u) };
        }
        const uint32_t codes = device_load<uint32_t>(at + (uint64_t)d);
        for (int i = 0; i < 4; i++)
            x[i] = device_fp8(row.dtype, codes >> 8 * i & 0xFF);
        return x;
    }
    const int64_t step = row.stride * device_bytes(row.dtype);
    for (int i = 0; i < 4; i++)
        if (d + i < dims)
            x[i] = device_element(row.dtype, at + (uint64_t)((d + i) * step));
    return x;
}

/* 2^n for whole n <= 0; 0 where fp32 has no normal number. */
DEVICE float device_power_of_two(float n)
{
    return n < -126.0f ? 0.0f : device_float((uint32_t)((int32_t)n + 127) << 23);
}

/* 2^x for x <= 0, to about two units in the last place; 0 below 2^-126; NaN stays. The polynomial is that of
 * exp(x ln 2) around 0, fitted to [-1/2, 1/2]. NVIDIA's own instruction errs by 2^-22.7 at most: measured, all x from
 * -126 on. */
DEVICE float device_exp2(float x)
{
#if defined(__AMDGCN__)
    const bool  tiny = x < -126.0f;
    const float shift = 0x1.8p23f; /* adding it rounds to a whole number, which its low bits then hold */
    const float safe = tiny ? 0.0f : x;
    const float moved = safe + shift, f = safe - (moved - shift);
    float       q = 0x1.ffcbfcp-17f; /* ln(2)^7 / 7! */
    q = __builtin_fmaf(q, f, 0x1.430912p-13f);
    q = __builtin_fmaf(q, f, 0x1.5d87fep-10f);
    q = __builtin_fmaf(q, f, 0x1.3b2ab6p-7f);
    q = __builtin_fmaf(q, f, 0x1.c6b08ep-5f);
    q = __builtin_fmaf(q, f, 0x1.ebfbep-3f);
    q = __builtin_fmaf(q, f, 0x1.62e43p-1f);
    q = __builtin_fmaf(q, f, 1.0f);
    return tiny ? 0.0f : q * device_float((device_bits(moved) << 23) + 0x3F800000u);
#else
    float y;
    __asm__("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#endif
}

/* ln x for normal x > 0; NaN stays. With x = 2^n y, y in [sqrt(1/2), sqrt(2)) and f = (y - 1) / (y + 1):
 * ln y = 2 (f + f^3/3 + ...), of which f^11/11 is below 2^-31. */
DEVICE float device_ln(float x)
{
    if (x != x)
        return x;
    const uint32_t bits = device_bits(x) - 0x3F3504F3u /* sqrt(1/2) */;
    const float    n = (float)((int32_t)bits >> 23), y = device_float((bits & 0x7FFFFFu) + 0x3F3504F3u);
    const float    f = (y - 1.0f) / (y + 1.0f), g = f * f;
    float          q = 2.0f / 9.0f;
    q = __builtin_fmaf(q, g, 2.0f / 7.0f);
    q = __builtin_fmaf(q, g, 2.0f / 5.0f);
    q = __builtin_fmaf(q, g, 2.0f / 3.0f);
    return __builtin_fmaf(n, 0x1.62e43p-1f, __builtin_fmaf(n, -0x1.05c61p-29f, __builtin_fmaf(f * g, q, 2.0f * f)));
}

/* A compensated sum [NEUMAIER]: its value is sum + lost. */
DEVICE void device_add(float &sum, float &lost, float x)
{
    const float total = sum + x, part = total - sum;
    lost += (sum - (total - part)) + (x - part);
    sum = total;
}

/* Products of rows
 * ----------------
 * S = A B^T of ROWS rows A, fp32 in LDS, and KEYS rows B, straight from memory: each of their elements is read and
 * converted once. S[key][row] then goes to LDS, [KEYS][PAD_ROWS]; a wave touches the keys of its own work-items alone.
 * Registers add up 32 products or fewer, then such sums: the docstrings' bounds count on it.
 */
enum {
    ROWS = 16,
    KEYS = WORKGROUP,
    DIMS = 256,         /* of A in LDS at a time */
    PAD_ROWS = ROWS + 4 /* four rows of each key are read or written without conflict */
};

/* Where element [r, d] of A is in LDS. The four neighbouring work-items that have a quarter of the dims each read from
 * different banks. */
DEVICE int device_place(int d, int r)
{
    return d * ROWS + d / 16 * 4 + r;
}

enum { STAGE = DIMS * ROWS + DIMS / 16 * 4 };

/* The machine's own conversion serves: 16 E4M3FN codes at an aligned address. */
DEVICE bool device_codes(device_row row, int64_t dims)
{
    return row.dtype == ETALON_E4M3FN && row.quads == 4 && dims % 16 == 0;
}

#if defined(__AMDGCN__)
#define TENSOR_CORES 0
#else
#define TENSOR_CORES 1

/* Tensor cores of NVIDIA: c += a b, 16 x 8 x 8, a and b TF32. FP8 and BF16 are exact in TF32, and an fp32 number is
 * the sum of two to 2^-23. When the nine addends are aligned, each but the largest loses less than u / 2 of that, and
 * the sum is cut to fp32, 2 u: a step errs by 6 u of the products' magnitudes so far, a chain of four by 24 u. Plain
 * FMA reaches two thirds of its rate at best here: three operands want more than the two banks of registers give.
 *
 * Lane 4 g + t has a[g or g + 8][t or t + 4], b[t or t + 4][g] and c[g or g + 8][2 t or 2 t + 1].
 */
DEVICE void device_tensor(float4v &c, float4v a, float b0, float b1)
{
    float c0 = c.x, c1 = c.y, c2 = c.z, c3 = c.w;
    __asm__("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
            "{%0, %1, %2, %3};"
            : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
            : "r"(device_bits(a.x)), "r"(device_bits(a.y)), "r"(device_bits(a.z)), "r"(device_bits(a.w)),
              "r"(device_bits(b0)), "r"(device_bits(b1)));
    c = float4v{ c0, c1, c2, c3 };
}

/* x to 22 bits, so that two numbers of TF32 hold it. */
DEVICE float device_two_tf32(float x)
{
    return x != x ? device_float(0x7FC00000u) : device_float((device_bits(x) + 2) & 0xFFFFFFFCu);
}

/* The upper of the two. */
DEVICE float4v device_tf32(float4v x)
{
    for (int i = 0; i < 4; i++)
        x[i] = device_float(device_bits(x[i]) & 0xFFFFE000u);
    return x;
}

/* The lower; 0 of infinity. */
DEVICE float4v device_tf32_rest(float4v x, float4v high)
{
    for (int i = 0; i < 4; i++)
        x[i] = x[i] == high[i] ? 0.0f : x[i] - high[i];
    return x;
}

/* Codes that the workgroup does not read again: they would drive spilled registers out of the first-level cache. DRAM
 * gives their whole line at once. */
DEVICE uint32_t device_four_codes_once(uint64_t at)
{
    uint32_t x;
    __asm__("ld.global.L1::no_allocate.L2::128B.u32 %0, [%1];" : "=r"(x) : "l"(at));
    return x;
}

DEVICE uint4v device_sixteen_codes_once(uint64_t at)
{
    uint32_t x, y, z, w;
    __asm__("ld.global.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
            : "=r"(x), "=r"(y), "=r"(z), "=r"(w)
            : "l"(at));
    return uint4v{ x, y, z, w };
}

/* Lane 4 g + t has the dims 64 n + 16 t .. + 15 of keys g: step i of eight in those takes two of them, which are k = t
 * and k = t + 4 of both operands. */
DEVICE int device_tensor_place(int d, int r)
{
    const int step = d / 64 * 8 + d % 16 / 2, lane = r % 8 * 4 + d % 64 / 16;
    return (step * 32 + lane) * 4 + d % 2 * 2 + r / 8;
}

typedef struct device_tensor_codes {
    uint4v keys[4]; /* of the keys 8 n + g of the wave */
} device_tensor_codes;

/* Dims d .. d + 15 of the keys; zeros from `dims` on. */
template <bool ONCE> DEVICE device_tensor_codes device_tensor_load(const uint64_t at[4], int64_t d, int64_t dims)
{
    device_tensor_codes x;
#pragma unroll
    for (int n = 0; n < 4; n++) {
        const uint64_t from = at[n] + (uint64_t)d;
        x.keys[n] = d >= dims ? 0 : ONCE ? device_sixteen_codes_once(from) : device_load<uint4v>(from);
    }
    return x;
}

/* s[n] += 64 dims of A, from step `step` on, times those of the keys. SPLIT: A takes two numbers of TF32. */
template <bool SPLIT>
DEVICE void device_tensor_multiply(const float *a, int step, const device_tensor_codes &x, float4v s[4])
{
    enum { FOLD = SPLIT ? 1 : 2 /* quads of dims: chains of four steps */ };
    const int lane = device_item() % 32;
#pragma unroll
    for (int fold = 0; fold < 4; fold += FOLD) {
        float4v part[4] = { 0.0f, 0.0f, 0.0f, 0.0f };
#pragma unroll
        for (int quad = fold; quad < fold + FOLD; quad++) {
            float4v y[4];
#pragma unroll
            for (int n = 0; n < 4; n++)
                y[n] = device_e4m3fn_four(x.keys[n][quad]);
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const float4v all = *(const float4v *)(a + ((step + 2 * quad + i) * 32 + lane) * 4);
                const float4v high = SPLIT ? device_tf32(all) : all, low = device_tf32_rest(all, high);
#pragma unroll
                for (int n = 0; SPLIT && n < 4; n++)
                    device_tensor(part[n], low, y[n][2 * i], y[n][2 * i + 1]);
#pragma unroll
                for (int n = 0; n < 4; n++)
                    device_tensor(part[n], high, y[n][2 * i], y[n][2 * i + 1]);
            }
        }
        for (int n = 0; n < 4; n++)
            s[n] += part[n];
    }
}

/* s += the staged dims of A from d on, times those of 32 keys a wave. */
template <bool SPLIT, bool ONCE>
DEVICE void device_tensor_products(const float *a, const uint64_t *b_at, int64_t d, int64_t dims, int width,
                                   float4v s[4])
{
    const int      lane = device_item() % 32, first = device_item() - lane;
    const int      steps = (int)(device_least<int64_t>(DIMS, dims - d) + 63) / 64;
    const int64_t  mine = d + lane % 4 * 16;
    const uint64_t at[4] = { b_at[first + lane / 4], b_at[first + 8 + lane / 4], b_at[first + 16 + lane / 4],
                             b_at[first + 24 + lane / 4] };
    if (first >= width)
        return;
    device_tensor_codes next = device_tensor_load<ONCE>(at, mine, dims);
#pragma unroll 1
    for (int i = 0; i < steps; i++) {
        const device_tensor_codes now = next;
        if (i + 1 < steps)
            next = device_tensor_load<ONCE>(at, mine + 64 * (i + 1), dims);
        device_tensor_multiply<SPLIT>(a, 8 * i, now, s);
    }
}

DEVICE void device_tensor_store(float *lds, const float4v s[4])
{
    const int lane = device_item() % 32, first = device_item() - lane;
    for (int n = 0; n < 4; n++)
        for (int i = 0; i < 4; i++)
            lds[(first + 8 * n + lane % 4 * 2 + i % 2) * PAD_ROWS + lane / 4 + i / 2 * 8] = s[n][i];
}

#endif

/* Dims [d, d + DIMS) of A; zeros from `dims` on, up to whole 64. A work-item reads of row i % ROWS, at that address; 0
 * for a row of zeros. */
template <bool CODES> DEVICE void device_stage(float *to, uint64_t at, device_row row, int64_t d, int64_t dims)
{
    const int r = device_item() % ROWS, quads = ((int)device_least<int64_t>(DIMS, dims - d) + 63) / 64 * 16;
#pragma unroll 1
    for (int quad = device_item() / ROWS; quad < quads; quad += WORKGROUP / ROWS) {
        const float4v x = at == 0 ? 0.0f : device_four(row, at, d + 4 * quad, dims);
        for (int i = 0; i < 4; i++)
#if TENSOR_CORES
            if (CODES)
                to[device_tensor_place(4 * quad + i, r)] = device_two_tf32(x[i]);
            else
#endif
                to[device_place(4 * quad + i, r)] = x[i];
    }
}

/* part[j][r / 4][r % 4] += A[r, d .. d + 4) . y[j] */
DEVICE void device_multiply_four(const float *a, int d, const float4v y[4], float4v part[4][4])
{
#pragma unroll
    for (int i = 0; i < 4; i++) {
#pragma unroll
        for (int rq = 0; rq < 4; rq++) {
            const float4v x = *(const float4v *)(a + device_place(d, 4 * rq) + i * ROWS);
#pragma unroll
            for (int j = 0; j < 4; j++)
                part[j][rq] = __builtin_elementwise_fma((float4v)y[j][i], x, part[j][rq]);
        }
        if (i % 2 == 1)
            device_in_order();
    }
}

/* The same of the 16 dims from d on, which are those from k on of the keys. */
template <bool CODES>
DEVICE void device_multiply_sixteen(const float *a, int d, const uint64_t at[4], device_row row, int64_t k,
                                    int64_t dims, float4v part[4][4])
{
    if (CODES) {
        uint4v codes[4];
#pragma unroll
        for (int j = 0; j < 4; j++)
            codes[j] = device_load<uint4v>(at[j] + (uint64_t)k);
#pragma unroll
        for (int quad = 0; quad < 4; quad++) {
            float4v y[4];
#pragma unroll
            for (int j = 0; j < 4; j++)
                y[j] = device_e4m3fn_four(codes[j][quad]);
            device_multiply_four(a, d + 4 * quad, y, part);
        }
        return;
    }
#pragma unroll 1
    for (int quad = 0; quad < 4; quad++) {
        float4v y[4];
#pragma unroll
        for (int j = 0; j < 4; j++)
            y[j] = device_four(row, at[j], device_opaque((int)k + 4 * quad), dims);
        device_multiply_four(a, d + 4 * quad, y, part);
    }
}

/* s[j] += the four work-items' part[j], each of them keeping four rows; through LDS. */
DEVICE void device_fold(float *lds, const float4v part[4][4], float4v s[4])
{
    float *const       own = lds + device_item() * PAD_ROWS;
    const float *const four = lds + device_item() / 4 * 4 * PAD_ROWS + device_item() % 4 * 4;
#pragma unroll
    for (int j = 0; j < 4; j++) {
#pragma unroll
        for (int rq = 0; rq < 4; rq++)
            *(float4v *)(own + 4 * rq) = part[j][rq];
        device_wave_barrier();
        const float4v low = *(const float4v *)four + *(const float4v *)(four + PAD_ROWS);
        s[j] += low + (*(const float4v *)(four + 2 * PAD_ROWS) + *(const float4v *)(four + 3 * PAD_ROWS));
        device_wave_barrier();
    }
}

/* s += the staged dims of A from d on, times B's. b_at[n]: address of row n, some row's where n >= width. By plain FMA,
 * four neighbouring work-items have four keys, and each every fourth 16 dims of them; s[j] of item i then is rows
 * 4 (i % 4) .. + 3 of key i / 4 * 4 + j. split: A is neither FP8 nor BF16. ONCE: the workgroup does
 * not read these rows again. */
template <bool CODES, bool ONCE>
DEVICE void device_multiply(const float *a, const uint64_t *b_at, device_row row, bool split, int64_t d, int64_t dims,
                            int width, float *lds, float4v s[4])
{
#if TENSOR_CORES
    if constexpr (CODES) {
        if (split)
            device_tensor_products<true, ONCE>(a, b_at, d, dims, width, s);
        else
            device_tensor_products<false, ONCE>(a, b_at, d, dims, width, s);
        return;
    }
#endif
    enum { FOLD_DIMS = 4 * 32 };
    const int      first = device_item() / 4 * 4, mine = device_item() % 4 * 16;
    const int      staged = (int)device_least<int64_t>(DIMS, dims - d);
    const uint64_t at[4] = { b_at[first], b_at[first + 1], b_at[first + 2], b_at[first + 3] };
    (void)split;
#pragma unroll 1
    for (int from = 0; from < staged; from += FOLD_DIMS) {
        const int to = first < width ? device_least<int>(from + FOLD_DIMS, staged) : from;
        float4v   part[4][4] = {};
#pragma unroll 1
        for (int i = from + mine; i < to; i += 64)
            device_multiply_sixteen<CODES>(a, i, at, row, d + i, dims, part);
        device_fold(lds, part, s);
    }
}

/* S to LDS. */
template <bool CODES> DEVICE void device_store_products(float *lds, const float4v s[4])
{
#if TENSOR_CORES
    if constexpr (CODES) {
        device_tensor_store(lds, s);
        return;
    }
#endif
    const int first = device_item() / 4 * 4, rows = device_item() % 4 * 4;
    for (int j = 0; j < 4; j++)
        *(float4v *)(lds + (first + j) * PAD_ROWS + rows) = s[j];
}

#endif
