/* The kernels of run_gfx950.s as a compiler makes them, for both architectures: with a hidden argument (the workgroup's size), LDS,
 * barriers, an array in scratch and a call of an intrinsic that becomes an atomic. No header and no device library is needed.
 */
#define KERNEL extern "C" __attribute__((global, amdgpu_flat_work_group_size(1, 256)))

static __attribute__((device)) int item(void)
{
    return __builtin_amdgcn_workgroup_id_x() * __builtin_amdgcn_workgroup_size_x() + __builtin_amdgcn_workitem_id_x();
}

KERNEL void saxpy(const float *p, float *q, int n, float a)
{
    const int i = item();
    if (i < n)
        q[i] = a * p[i] + q[i];
}

KERNEL void reduce(const int *p, int *q)
{
    static __attribute__((shared)) int sum[256];
    const int                          x = __builtin_amdgcn_workitem_id_x();
    sum[x] = p[item()];
    for (int half = 128; half > 0; half /= 2) {
        __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
        __builtin_amdgcn_s_barrier();
        __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
        if (x < half)
            sum[x] += sum[x + half];
    }
    if (x == 0)
        q[__builtin_amdgcn_workgroup_id_x()] = sum[0];
}

/* q[v]: how many of p have the value v (0 to 15), counted in an array of each work-item that its indices keep in scratch. */
KERNEL void histogram(const int *p, int *q, int n)
{
    volatile int count[16] = {};
    for (int k = 0; k < 32; k++) {
        const int i = item() * 32 + k;
        if (i < n)
            count[p[i]]++;
    }
    for (int v = 0; v < 16; v++)
        __atomic_fetch_add(&q[v], count[v], __ATOMIC_RELAXED);
}
