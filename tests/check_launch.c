/* The launchers, by a kernel of the test's own: order of steps, threads, streams of the caller's, errors. Runs on the GPUs
 * that OpenMP sees, which tests/check_offload.sh simulates; ETALON_DEVICES says how many there have to be.
 *   check_launch            everything but the next
 *   check_launch failing    a kernel that fails, where ETALON_SIM_LIMIT makes the long ones fail
 */
#include "testing.h"

#include "offload.h"

#include "offload/probe.h"

#include <dlfcn.h>
#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>

#include "../sim/runtime/hip_api.h"

enum { COUNT = 1000, THREADS_OF_GROUP = 64, GROUPS = (COUNT + THREADS_OF_GROUP - 1) / THREADS_OF_GROUP };

/* The probe's objects, ended as code_objects is. */
static const code_object *probes(void)
{
    static const char *const arches[] = { "gfx950", "gfx1250", "sm_90" };
    static unsigned char     bytes[3][1 << 16];
    static code_object       objects[4];
    const char              *directory = getenv("ETALON_PROBES");
    int                      count = 0;
    ck_assert_msg(directory != NULL, "ETALON_PROBES is not set");
    for (int i = 0; i < 3; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/probe.%s.%s", directory, arches[i], i < 2 ? "co" : "ptx");
        FILE *file = fopen(path, "rb");
        if (file == NULL)
            continue;
        const size_t size = fread(bytes[i], 1, sizeof bytes[i] - 1, file);
        fclose(file);
        objects[count++] = (code_object){ "probe", arches[i], bytes[i], bytes[i] + size };
    }
    ck_assert_msg(count > 0, "no probe in %s", directory);
    objects[count] = (code_object){ NULL, NULL, NULL, NULL };
    return objects;
}

static int device_count(void)
{
    const char *want = getenv("ETALON_DEVICES");
    ck_assert_msg(want != NULL && omp_get_num_devices() == atoi(want), "OpenMP sees %d devices, expected %s",
                  omp_get_num_devices(), want);
    return omp_get_num_devices();
}

/* One device, and x and y there. */
typedef struct fixture {
    offload_device *device;
    float           host[COUNT], *x, *y;
    float           want; /* y[i] / (i + 1) */
} fixture;

static void send(const fixture *f, float *to)
{
    ck_assert_int_eq(
        omp_target_memcpy(to, f->host, sizeof f->host, 0, 0, offload_number(f->device), omp_get_initial_device()), 0);
}

static void set_up(fixture *f, int number)
{
    ck_assert_ok(offload_open(number, probes(), &f->device));
    f->x = offload_alloc(f->device, sizeof f->host);
    f->y = offload_alloc(f->device, sizeof f->host);
    ck_assert(f->x != NULL && f->y != NULL);
    for (int i = 0; i < COUNT; i++)
        f->host[i] = (float)(i + 1);
    send(f, f->x);
    send(f, f->y);
    f->want = 1;
}

static void tear_down(fixture *f)
{
    offload_free(f->device, f->x);
    offload_free(f->device, f->y);
    offload_close(f->device);
}

/* So many steps, of which each adds a multiple of x. */
static etalon_status run(fixture *f, void *stream, int steps, int rounds)
{
    probe_args  args[LAUNCH_MAX_STEPS + 1];
    launch_step step[LAUNCH_MAX_STEPS + 1];
    for (int i = 0; i < steps; i++) {
        args[i] = (probe_args){ .x = f->x, .y = f->y, .count = COUNT, .a = (float)(i + 1), .rounds = rounds };
        step[i] = (launch_step){ .stem = "probe",
                                 .groups = { GROUPS, 1, 1 },
                                 .threads = THREADS_OF_GROUP,
                                 .args = &args[i],
                                 .args_bytes = sizeof args[i] };
    }
    const etalon_status status = offload_run(f->device, stream, step, steps);
    for (int i = 0; i < steps && status == ETALON_OK; i++)
        f->want += (float)(i + 1) * (float)rounds;
    return status;
}

/* Small whole numbers: exact. */
static void verify(fixture *f)
{
    ck_assert_int_eq(
        omp_target_memcpy(f->host, f->y, sizeof f->host, 0, 0, omp_get_initial_device(), offload_number(f->device)), 0);
    for (int i = 0; i < COUNT; i++)
        if (f->host[i] != f->want * (float)(i + 1))
            ck_abort_msg("device %d: y[%d] is %g, expected %g", offload_number(f->device), i, (double)f->host[i],
                         (double)(f->want * (float)(i + 1)));
}

START_TEST(steps_in_order)
{
    for (int d = 0; d < device_count(); d++) {
        fixture f;
        set_up(&f, d);
        ck_assert_ok(run(&f, NULL, 0, 1));
        verify(&f);
        ck_assert_ok(run(&f, NULL, 1, 1));
        verify(&f);
        ck_assert_ok(run(&f, NULL, LAUNCH_MAX_STEPS, 1));
        verify(&f);
        for (int i = 0; i < 40; i++) /* around the queue */
            ck_assert_ok(run(&f, NULL, 3, 1));
        verify(&f);
        tear_down(&f);
    }
}
END_TEST

static void *run_many(void *data)
{
    fixture      *f = data;
    etalon_status status = ETALON_OK;
    for (int i = 0; i < 20 && status == ETALON_OK; i++)
        status = run(f, NULL, 2, 1);
    return status == ETALON_OK ? NULL : (void *)"failed";
}

/* More threads than lanes, all on one device, each with memory of its own. */
START_TEST(threads_side_by_side)
{
    enum { THREADS = 9 };
    static fixture f[THREADS];
    pthread_t      thread[THREADS];
    set_up(&f[0], 0);
    for (int i = 1; i < THREADS; i++) {
        set_up(&f[i], 0);
        offload_close(f[i].device);
        f[i].device = f[0].device;
    }
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, run_many, &f[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        void *failed;
        pthread_join(thread[i], &failed);
        ck_assert_ptr_null(failed);
    }
    for (int i = 0; i < THREADS; i++) {
        verify(&f[i]);
        offload_free(f[i].device, f[i].x);
        offload_free(f[i].device, f[i].y);
    }
    offload_close(f[0].device);
}
END_TEST

START_TEST(refusals)
{
    fixture     f;
    launch_step step = { .stem = "nothing", .groups = { 1, 1, 1 }, .threads = 64 };
    set_up(&f, 0);
    ck_assert_rejects(offload_run(f.device, NULL, &step, 1), ETALON_ERROR_DEVICE, "no kernel etalon_nothing was built");
    ck_assert_rejects(run(&f, NULL, LAUNCH_MAX_STEPS + 1, 1), ETALON_ERROR_DEVICE, "too many steps");
    const char many[LAUNCH_MAX_KERNARG] = { 0 };
    step =
        (launch_step){ .stem = "probe", .groups = { 1, 1, 1 }, .threads = 64, .args = many, .args_bytes = sizeof many };
    ck_assert_rejects(offload_run(f.device, NULL, &step, 1), ETALON_ERROR_DEVICE, "2048 bytes of arguments");
    step = (launch_step){ .stem = "probe", .groups = { 1u << 26, 1, 1 }, .threads = 64 };
    ck_assert_rejects(offload_run(f.device, NULL, &step, 1), ETALON_ERROR_DEVICE, "4294967296 work-items");
    ck_assert_ok(run(&f, NULL, 1, 1)); /* as if nothing had been */
    verify(&f);
    tear_down(&f);
}
END_TEST

START_TEST(devices_that_are_not_there)
{
    offload_device *device = NULL;
    ck_assert_rejects(offload_open(device_count(), probes(), &device), ETALON_ERROR_DEVICE, "OpenMP sees ");
    ck_assert_rejects(offload_open(INT32_MAX, probes(), &device), ETALON_ERROR_DEVICE, "device 2147483647: ");
    const code_object none[] = { { "probe", "gfx000", NULL, NULL }, { NULL, NULL, NULL, NULL } };
    ck_assert_rejects(offload_open(0, none, &device), ETALON_ERROR_DEVICE, "no kernel was built for gfx");
    ck_assert_ptr_null(device);
}
END_TEST

static unsigned char *truncated(const code_object *o, size_t *size)
{
    *size = code_object_bytes(o) / 2;
    unsigned char *bytes = malloc(*size);
    memcpy(bytes, o->bytes, *size);
    return bytes;
}

START_TEST(broken_object)
{
    offload_device *device = NULL;
    code_object     broken[4];
    int             count = 0;
    for (const code_object *o = probes(); o->stem != NULL; o++) {
        size_t         size;
        unsigned char *bytes = truncated(o, &size);
        broken[count++] = (code_object){ "probe", o->arch, bytes, bytes + size };
    }
    broken[count] = (code_object){ NULL, NULL, NULL, NULL };
    ck_assert_rejects(offload_open(0, broken, &device), ETALON_ERROR_DEVICE, "HSA: probe: ");
    ck_assert_ptr_null(device);
    for (int i = 0; i < count; i++)
        free((void *)(uintptr_t)broken[i].bytes);
}
END_TEST

/* A process without HIP has no stream of HIP's. First of the tests with streams. */
START_TEST(stream_without_hip)
{
    fixture f;
    set_up(&f, 0);
    ck_assert_rejects(run(&f, ETALON_STREAM_DEFAULT, 1, 1), ETALON_ERROR_DEVICE,
                      "libamdhip64.so is not in this process");
    verify(&f);
    tear_down(&f);
}
END_TEST

#define HIP_FUNCTIONS(F)    \
    F(hipSetDevice)         \
    F(hipGetDevice)         \
    F(hipStreamCreate)      \
    F(hipStreamDestroy)     \
    F(hipStreamSynchronize) \
    F(hipLaunchHostFunc)    \
    F(hipDeviceSynchronize) \
    F(hipMemGetInfo)

static struct {
#define F(name) __typeof__(name) *name;
    HIP_FUNCTIONS(F)
#undef F
} hip;

static void load_hip(void)
{
    void *library = dlopen("libamdhip64.so", RTLD_NOW);
    ck_assert_msg(library != NULL, "%s", dlerror());
#define F(name) ck_assert_ptr_nonnull(*(void **)&hip.name = dlsym(library, #name));
    HIP_FUNCTIONS(F)
#undef F
}

START_TEST(streams)
{
    load_hip();
    for (int d = 0; d < device_count(); d++) {
        fixture     f;
        hipStream_t stream;
        int         current = -1;
        set_up(&f, d);
        ck_assert_int_eq(hip.hipSetDevice(d), hipSuccess);
        ck_assert_int_eq(hip.hipStreamCreate(&stream), hipSuccess);
        ck_assert_int_eq(hip.hipSetDevice(device_count() - 1), hipSuccess); /* whichever is current */
        ck_assert_ok(run(&f, stream, 3, 1));
        ck_assert_ok(run(&f, stream, 5, 1));
        ck_assert_int_eq(hip.hipStreamSynchronize(stream), hipSuccess);
        verify(&f);
        ck_assert_ok(run(&f, ETALON_STREAM_DEFAULT, 1, 1));
        ck_assert_int_eq(hip.hipSetDevice(d), hipSuccess);
        ck_assert_int_eq(hip.hipDeviceSynchronize(), hipSuccess);
        verify(&f);
        ck_assert_ok(run(&f, stream, 1, 1));
        ck_assert_int_eq(hip.hipGetDevice(&current), hipSuccess);
        ck_assert_int_eq(current, d);
        ck_assert_int_eq(hip.hipStreamDestroy(stream), hipSuccess);
        tear_down(&f);
    }
}
END_TEST

START_TEST(stream_of_another_device)
{
    fixture     f;
    hipStream_t stream;
    load_hip();
    set_up(&f, 0);
    ck_assert_int_eq(hip.hipSetDevice(device_count() - 1), hipSuccess);
    ck_assert_int_eq(hip.hipStreamCreate(&stream), hipSuccess);
    if (device_count() > 1)
        ck_assert_rejects(run(&f, stream, 1, 1), ETALON_ERROR_DEVICE,
                          "HIP: hipModuleLaunchKernel: invalid device context");
    else
        ck_assert_ok(run(&f, stream, 1, 1));
    int current = -1;
    ck_assert_int_eq(hip.hipGetDevice(&current), hipSuccess);
    ck_assert_int_eq(current, device_count() - 1);
    ck_assert_int_eq(hip.hipStreamDestroy(stream), hipSuccess);
    tear_down(&f);
}
END_TEST

static void wait_for_leave(void *leave)
{
    while (!atomic_load((atomic_bool *)leave))
        sched_yield();
}

/* The stream stands still until the test lets it go on: a call that waits for it would never return. Nor may a call,
 * after the first, take memory of the device. */
START_TEST(stream_is_not_waited_for)
{
    fixture     f;
    hipStream_t stream;
    atomic_bool leave = false;
    size_t      before, after, total;
    load_hip();
    set_up(&f, 0);
    ck_assert_int_eq(hip.hipSetDevice(0), hipSuccess);
    ck_assert_int_eq(hip.hipStreamCreate(&stream), hipSuccess);
    ck_assert_ok(run(&f, stream, 1, 1));
    ck_assert_int_eq(hip.hipStreamSynchronize(stream), hipSuccess);
    ck_assert_int_eq(hip.hipMemGetInfo(&before, &total), hipSuccess);
    ck_assert_int_eq(hip.hipLaunchHostFunc(stream, wait_for_leave, &leave), hipSuccess);
    const float done = f.want;
    for (int i = 0; i < 5; i++)
        ck_assert_ok(run(&f, stream, 4, 1));
    ck_assert_int_eq(hip.hipMemGetInfo(&after, &total), hipSuccess);
    ck_assert_uint_eq(before, after);
    const float want = f.want;
    f.want = done;
    verify(&f); /* nothing has run */
    f.want = want;
    atomic_store(&leave, true);
    ck_assert_int_eq(hip.hipStreamSynchronize(stream), hipSuccess);
    verify(&f);
    ck_assert_int_eq(hip.hipStreamDestroy(stream), hipSuccess);
    tear_down(&f);
}
END_TEST

/* A queue that failed is replaced: the next call is as good as the first. */
START_TEST(kernel_fails)
{
    fixture f;
    set_up(&f, 0);
    ck_assert_ok(run(&f, NULL, 1, 1));
    for (int i = 0; i < 6; i++) /* in every lane */
        ck_assert_rejects(run(&f, NULL, 2, 100000), ETALON_ERROR_DEVICE, "HSA: probe: ");
    send(&f, f.y); /* what they had done by then is nobody's business */
    f.want = 1;
    for (int i = 0; i < 6; i++)
        ck_assert_ok(run(&f, NULL, 2, 1));
    verify(&f);
    tear_down(&f);
}
END_TEST

static void fill(TCase *tcase)
{
    tcase_add_test(tcase, steps_in_order);
    tcase_add_test(tcase, threads_side_by_side);
    tcase_add_test(tcase, refusals);
    tcase_add_test(tcase, devices_that_are_not_there);
    tcase_add_test(tcase, broken_object);
    tcase_add_test(tcase, stream_without_hip);
    tcase_add_test(tcase, streams);
    tcase_add_test(tcase, stream_of_another_device);
    tcase_add_test(tcase, stream_is_not_waited_for);
}

static void fill_failing(TCase *tcase)
{
    tcase_add_test(tcase, kernel_fails);
}

/* No fork: the plugin's threads and the runtime's would be missing in the child. */
int main(int argc, char **argv)
{
    setenv("CK_FORK", "no", 1);
    return testing_main("launch", argc > 1 && strcmp(argv[1], "failing") == 0 ? fill_failing : fill);
}
