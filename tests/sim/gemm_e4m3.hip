// c[m, n] = scale * sum_k a[m, k] * b[k, n], as tests/sim/gemm_e4m3_ARCH.s: of any size, for the compiler to schedule.
//
// A workgroup of 4 waves makes 64 x 64 of c, a wave 32 x 32 of it as 2 x 2 products of 16 x 16 x 128. Both tiles lie in
// LDS with k innermost; rows and columns outside of the matrices are zeros.

#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __device__ __attribute__((device))

typedef unsigned char byte;

#if defined(__gfx950__)
enum { LANES = 64, RESULTS = 4, WORDS = 8 };
#else
enum { LANES = 32, RESULTS = 8, WORDS = 16 };
#endif
enum { TILE = 64, DEPTH = 128, ROW = DEPTH + 16 /* against bank conflicts */ };

typedef float results __attribute__((ext_vector_type(RESULTS)));
typedef int   words __attribute__((ext_vector_type(WORDS)));
typedef int   quad __attribute__((ext_vector_type(4)));

// The lane's part of a row or column: 16 bytes from 16 g on, and again every LANES bytes.
static __device__ inline words load_part(const byte *row, int g)
{
    words w;
    for (int i = 0; i < WORDS / 4; i++) {
        const quad q = *(const quad *)(row + i * LANES + 16 * g);
        for (int j = 0; j < 4; j++)
            w[4 * i + j] = q[j];
    }
    return w;
}

static __device__ inline results multiply(words a, words b, results c)
{
#if defined(__gfx950__)
    return __builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(a, b, c, 0, 0, 0, 0, 0, 0);
#else
    return __builtin_amdgcn_wmma_f32_16x16x128_fp8_fp8(a, b, 0, c, false, false);
#endif
}

extern "C" __global__ __attribute__((amdgpu_flat_work_group_size(4 * LANES, 4 * LANES))) void
gemm_e4m3(const byte *a, const byte *b, float *c, int M, int N, int K, float scale)
{
    __shared__ alignas(16) byte tile_a[TILE * ROW], tile_b[TILE * ROW];
    const int item = __builtin_amdgcn_workitem_id_x(), wave = item / LANES, lane = item % LANES, g = lane / 16;
    const int m0 = TILE * __builtin_amdgcn_workgroup_id_y(), n0 = TILE * __builtin_amdgcn_workgroup_id_x();
    const int row = 32 * (wave / 2), column = 32 * (wave % 2);
    results   acc[2][2] = {};
    for (int k0 = 0; k0 < K; k0 += DEPTH) {
        for (int i = item; i < TILE * DEPTH; i += 4 * LANES) {
            const int r = i / DEPTH, k = i % DEPTH;
            tile_a[r * ROW + k] = m0 + r < M && k0 + k < K ? a[(long)(m0 + r) * K + k0 + k] : 0;
        }
        for (int i = item; i < TILE * DEPTH; i += 4 * LANES) {
            const int k = i / TILE, n = i % TILE;
            tile_b[n * ROW + k] = n0 + n < N && k0 + k < K ? b[(long)(k0 + k) * N + n0 + n] : 0;
        }
        __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
        __builtin_amdgcn_s_barrier();
        __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < 2; j++)
                acc[i][j] = multiply(load_part(tile_a + (row + 16 * i + lane % 16) * ROW, g),
                                     load_part(tile_b + (column + 16 * j + lane % 16) * ROW, g), acc[i][j]);
        __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
        __builtin_amdgcn_s_barrier();
        __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
    }
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            for (int r = 0; r < RESULTS; r++) {
                const int m = m0 + row + 16 * i + RESULTS * g + r, n = n0 + column + 16 * j + lane % 16;
                if (m < M && n < N)
                    c[(long)m * N + n] = scale * acc[i][j][r];
            }
}
