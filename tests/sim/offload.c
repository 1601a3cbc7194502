/* OpenMP on whatever GPUs there are: on each it maps data, asks for the agent, and runs a kernel that needs no device
 * runtime of OpenMP's. Prints a line for each device and "devices N"; exit 1 if a number is wrong.
 */
#include <gpuintrin.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

enum { COUNT = 1000, BIG = 1 << 19 /* 2 MiB: by another way than small copies */ };

static int bad_copies(int device)
{
    static int host[BIG], back[BIG];
    int        bad = 0;
    for (int i = 0; i < BIG; i++)
        host[i] = i * 3 + device;
    int *there = omp_target_alloc(sizeof host, device);
    if (there == NULL)
        return 1;
    bad += omp_target_memcpy(there, host, sizeof host, 0, 0, device, omp_get_initial_device()) != 0;
    bad += omp_target_memcpy(back, there, sizeof host, 0, 0, omp_get_initial_device(), device) != 0;
    omp_target_free(there, device);
    for (int i = 0; i < BIG; i++)
        bad += back[i] != host[i];
    return bad;
}

static int bad_maps(int device)
{
    int x[COUNT], y[COUNT], *there = NULL, bad = 0;
    for (int i = 0; i < COUNT; i++) {
        x[i] = i ^ device;
        y[i] = -1;
    }
#pragma omp target enter data map(to : x) device(device)
    there = omp_get_mapped_ptr(x, device);
    bad += there == NULL || there == x;
    bad += omp_target_memcpy(y, there, sizeof y, 0, 0, omp_get_initial_device(), device) != 0;
    for (int i = 0; i < COUNT; i++) {
        bad += y[i] != (i ^ device);
        x[i] = 0;
    }
#pragma omp target exit data map(from : x) device(device)
    for (int i = 0; i < COUNT; i++)
        bad += x[i] != (i ^ device);
    return bad;
}

/* The kernel is the compiler's, the launch the plugin's. Both compilations have to use the same variables. */
static int bad_kernel(int device)
{
    float x[COUNT], y[COUNT];
    int   bad = 0;
    for (int i = 0; i < COUNT; i++) {
        x[i] = (float)i;
        y[i] = -1;
    }
#pragma omp target teams ompx_bare num_teams(4) thread_limit(256) map(to : x) map(tofrom : y) device(device)
    {
        unsigned i = COUNT; /* no kernel on the host */
#if defined(__AMDGCN__)
        i = __gpu_block_id(0) * __gpu_num_threads(0) + __gpu_thread_id(0);
#endif
        if (i < COUNT)
            y[i] = 2 * x[i] + 1;
    }
    for (int i = 0; i < COUNT; i++)
        bad += y[i] != 2 * (float)i + 1;
    return bad;
}

static int bad_interop(int device)
{
    omp_interop_t o = omp_interop_none;
    int           bad = 0, code;
#pragma omp interop init(target : o) device(device)
    if (o == omp_interop_none)
        return 1;
    const char *name = omp_get_interop_str(o, omp_ipr_fr_name, &code);
    bad += name == NULL || strcmp(name, "hsa") != 0;
    bad += omp_get_interop_ptr(o, omp_ipr_device, &code) == NULL;
#pragma omp interop destroy(o)
    return bad;
}

int main(void)
{
    int bad = 0;
    for (int d = 0; d < omp_get_num_devices(); d++) {
        const int copies = bad_copies(d), maps = bad_maps(d), kernel = bad_kernel(d), interop = bad_interop(d);
        printf("device %d: wrong copies %d, maps %d, kernel %d, interop %d\n", d, copies, maps, kernel, interop);
        bad += copies + maps + kernel + interop;
    }
    printf("devices %d\n", omp_get_num_devices());
    return bad != 0;
}
