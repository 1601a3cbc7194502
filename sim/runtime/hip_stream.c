#include "hip_stream.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LONGEST_QUEUE = 256 };

struct ihipStream_t {
    uint64_t       id;
    int            device, priority;
    unsigned       flags;
    bool           legacy, running;
    hip_operation *first, **last;
    uint32_t       length;
    hipStream_t    next;
};

struct ihipEvent_t {
    unsigned flags;
    bool     recorded, done, destroyed;
    int      device;
    uint64_t stream, number; /* of the last record */
    uint32_t uses;           /* operations that know it */
    double   milliseconds;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t  changed; /* a stream that ran does not run any more */
    hipStream_t     first;
    hipStream_t     legacy[RUNTIME_MAX_DEVICES];
    uint64_t        streams, operations;
    hipError_t      failed[RUNTIME_MAX_DEVICES];
} hip = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static __thread hipStream_t own_stream[RUNTIME_MAX_DEVICES];

/* Running
 * -------
 * With the lock held, but while an operation runs.
 */
static double milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static hipStream_t find_stream(uint64_t id)
{
    hipStream_t s = hip.first;
    while (s != NULL && s->id != id)
        s = s->next;
    return s;
}

static bool is_blocking(hipStream_t s)
{
    return (s->flags & hipStreamNonBlocking) == 0;
}

static void release_event(hipEvent_t event)
{
    if (event->uses == 0 && event->destroyed)
        free(event);
}

static hipError_t run_operation(int device, hipStream_t stream, const hip_operation *op)
{
    switch (op->kind) {
    case HIP_LAUNCH:
        return runtime_dispatch(device, &op->dispatch) ? hipSuccess : hipErrorLaunchFailure;
    case HIP_COPY:
        return runtime_copy(op->to, op->from, op->bytes) ? hipSuccess : hipErrorIllegalAddress;
    case HIP_FILL:
        return runtime_fill(op->to, op->pattern, op->width, op->bytes) ? hipSuccess : hipErrorIllegalAddress;
    case HIP_FREE:
        return runtime_free(op->to) ? hipSuccess : hipErrorIllegalAddress;
    case HIP_CALL:
        op->call(op->data);
        return hipSuccess;
    case HIP_CALLBACK:
        op->callback(stream, hip.failed[device], op->data);
        return hipSuccess;
    case HIP_RECORD:
    case HIP_WAIT:
        return hipSuccess; /* below, and in run_prerequisites */
    }
    return hipErrorUnknown;
}

static void end_operation(hip_operation *op)
{
    if (op->kind == HIP_RECORD) {
        hipEvent_t e = op->event;
        e->uses--;
        if (e->number == op->number) {
            e->done = true;
            e->milliseconds = milliseconds();
        }
        release_event(e);
    }
    free((void *)op->dispatch.kernarg);
    free(op);
}

static void run_up_to(hipStream_t s, uint64_t number);

static bool is_behind(hipStream_t s, uint64_t number)
{
    return s->running || (s->first != NULL && s->first->number <= number);
}

/* Runs one stream that must go before the operation; false: there is none left. Numbers only get smaller on the way. */
static bool run_prerequisite(hipStream_t s, const hip_operation *op)
{
    if (op->kind == HIP_WAIT) {
        hipStream_t other = find_stream(op->after_stream);
        if (other != NULL && other != s && other->first != NULL && other->first->number <= op->after) {
            run_up_to(other, op->after);
            return true;
        }
    }
    if (!is_blocking(s))
        return false;
    for (hipStream_t other = hip.first; other != NULL; other = other->next) {
        if (other != s && other->device == s->device && (other->legacy || (s->legacy && is_blocking(other))) &&
            other->first != NULL && other->first->number < op->number) {
            run_up_to(other, op->number);
            return true;
        }
    }
    return false;
}

/* An operation stays the first of its stream while it runs, so that others see that it has not ended. */
static void run_up_to(hipStream_t s, uint64_t number)
{
    while (s->first != NULL && s->first->number <= number) {
        hip_operation *op = s->first;
        if (s->running) {
            pthread_cond_wait(&hip.changed, &hip.lock);
            continue;
        }
        if (run_prerequisite(s, op))
            continue;
        const int device = s->device;
        s->running = true;
        pthread_mutex_unlock(&hip.lock);
        const hipError_t error = hip.failed[device] != hipSuccess && op->kind == HIP_LAUNCH
                                     ? hip.failed[device]
                                     : run_operation(device, s, op);
        pthread_mutex_lock(&hip.lock);
        if (error != hipSuccess && hip.failed[device] == hipSuccess)
            hip.failed[device] = error;
        s->running = false;
        s->first = op->next;
        s->length--;
        if (s->first == NULL)
            s->last = &s->first;
        end_operation(op);
        pthread_cond_broadcast(&hip.changed);
    }
}

static void run_device(int device)
{
    const uint64_t now = hip.operations;
    for (hipStream_t s = hip.first; s != NULL;) {
        if (s->device == device && is_behind(s, now) && s->first != NULL) {
            run_up_to(s, now);
            s = hip.first; /* the list may be another one */
        } else {
            s = s->next;
        }
    }
}

/* Streams
 * -------
 */
static hipStream_t create_stream(int device, unsigned flags, int priority)
{
    hipStream_t s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->device = device;
    s->flags = flags;
    s->priority = priority;
    s->last = &s->first;
    pthread_mutex_lock(&hip.lock);
    s->id = ++hip.streams;
    s->next = hip.first;
    hip.first = s;
    pthread_mutex_unlock(&hip.lock);
    return s;
}

hipStream_t hip_stream_legacy(int device)
{
    static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&once);
    if (hip.legacy[device] == NULL) {
        hip.legacy[device] = create_stream(device, hipStreamDefault, 0);
        if (hip.legacy[device] != NULL)
            hip.legacy[device]->legacy = true;
    }
    pthread_mutex_unlock(&once);
    return hip.legacy[device];
}

hipStream_t hip_stream_of(hipStream_t handle)
{
    if (handle == NULL || handle == hipStreamLegacy)
        return hip_stream_legacy(hip_device);
    if (handle == hipStreamPerThread) {
        if (own_stream[hip_device] == NULL)
            own_stream[hip_device] = create_stream(hip_device, hipStreamDefault, 0);
        return own_stream[hip_device];
    }
    pthread_mutex_lock(&hip.lock);
    hipStream_t s = hip.first;
    while (s != NULL && s != handle)
        s = s->next;
    pthread_mutex_unlock(&hip.lock);
    return s;
}

int hip_stream_device(hipStream_t s)
{
    return s->device;
}

/* Enqueues with the lock held. */
static bool append(hipStream_t s, const hip_operation *what)
{
    hip_operation *op = malloc(sizeof *op);
    if (op == NULL)
        return false;
    *op = *what;
    op->next = NULL;
    op->number = ++hip.operations;
    *s->last = op;
    s->last = &op->next;
    s->length++;
    return true;
}

hipError_t hip_enqueue(hipStream_t s, const hip_operation *what, bool wait)
{
    pthread_mutex_lock(&hip.lock);
    const bool ok = append(s, what);
    if (ok && (wait || s->length > LONGEST_QUEUE))
        run_up_to(s, hip.operations);
    const hipError_t error = ok ? hip.failed[s->device] : hipErrorOutOfMemory;
    pthread_mutex_unlock(&hip.lock);
    if (!ok)
        free((void *)what->dispatch.kernarg);
    return error;
}

hipError_t hip_stream_wait(hipStream_t s)
{
    pthread_mutex_lock(&hip.lock);
    run_up_to(s, hip.operations);
    const hipError_t error = hip.failed[s->device];
    pthread_mutex_unlock(&hip.lock);
    return error;
}

hipError_t hip_device_wait(int device)
{
    pthread_mutex_lock(&hip.lock);
    run_device(device);
    const hipError_t error = hip.failed[device];
    pthread_mutex_unlock(&hip.lock);
    return error;
}

#define STREAM(s, handle)                        \
    if (!runtime_start())                        \
        return hip_result(hipErrorNoDevice);     \
    const hipStream_t s = hip_stream_of(handle); \
    if (s == NULL)                               \
    return hip_result(hipErrorInvalidHandle)

hipError_t hipStreamCreateWithPriority(hipStream_t *stream, unsigned flags, int priority)
{
    if (!runtime_start())
        return hip_result(hipErrorNoDevice);
    if (stream == NULL || flags > hipStreamNonBlocking)
        return hip_result(hipErrorInvalidValue);
    *stream = create_stream(hip_device, flags, priority);
    return hip_result(*stream == NULL ? hipErrorOutOfMemory : hipSuccess);
}

hipError_t hipStreamCreateWithFlags(hipStream_t *stream, unsigned flags)
{
    return hipStreamCreateWithPriority(stream, flags, 0);
}

hipError_t hipStreamCreate(hipStream_t *stream)
{
    return hipStreamCreateWithPriority(stream, hipStreamDefault, 0);
}

hipError_t hipStreamDestroy(hipStream_t handle)
{
    STREAM(s, handle);
    if (s != handle)
        return hip_result(hipErrorInvalidHandle);
    const hipError_t error = hip_stream_wait(s);
    pthread_mutex_lock(&hip.lock);
    hipStream_t *link = &hip.first;
    while (*link != NULL && *link != s)
        link = &(*link)->next;
    if (*link != NULL)
        *link = s->next;
    pthread_mutex_unlock(&hip.lock);
    free(s);
    return hip_result(error);
}

hipError_t hipStreamSynchronize(hipStream_t handle)
{
    STREAM(s, handle);
    return hip_result(hip_stream_wait(s));
}

hipError_t hipDeviceSynchronize(void)
{
    return hip_result(runtime_start() ? hip_device_wait(hip_device) : hipErrorNoDevice);
}

hipError_t hipStreamQuery(hipStream_t handle)
{
    STREAM(s, handle);
    pthread_mutex_lock(&hip.lock);
    if (s->first != NULL && !s->running)
        run_up_to(s, s->first->number);
    const hipError_t error = s->first != NULL ? hipErrorNotReady : hip.failed[s->device];
    pthread_mutex_unlock(&hip.lock);
    return hip_result(error);
}

hipError_t hipStreamGetFlags(hipStream_t handle, unsigned *flags)
{
    STREAM(s, handle);
    *flags = s->flags;
    return hipSuccess;
}

hipError_t hipStreamGetPriority(hipStream_t handle, int *priority)
{
    STREAM(s, handle);
    *priority = s->priority;
    return hipSuccess;
}

hipError_t hipStreamGetDevice(hipStream_t handle, hipDevice_t *device)
{
    STREAM(s, handle);
    *device = s->device;
    return hipSuccess;
}

hipError_t hipDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least = *greatest = 0;
    return hipSuccess;
}

hipError_t hipStreamAddCallback(hipStream_t handle, hipStreamCallback_t callback, void *data, unsigned flags)
{
    STREAM(s, handle);
    if (callback == NULL || flags != 0)
        return hip_result(hipErrorInvalidValue);
    return hip_result(
        hip_enqueue(s, &(hip_operation){ .kind = HIP_CALLBACK, .callback = callback, .data = data }, false));
}

hipError_t hipLaunchHostFunc(hipStream_t handle, hipHostFn_t function, void *data)
{
    STREAM(s, handle);
    if (function == NULL)
        return hip_result(hipErrorInvalidValue);
    return hip_result(hip_enqueue(s, &(hip_operation){ .kind = HIP_CALL, .call = function, .data = data }, false));
}

/* No graphs: a caller that captures has to know. */
hipError_t hipStreamBeginCapture(hipStream_t handle, int mode)
{
    STREAM(s, handle);
    (void)s;
    (void)mode;
    return hip_result(hipErrorNotSupported);
}

hipError_t hipStreamEndCapture(hipStream_t handle, void **graph)
{
    STREAM(s, handle);
    (void)s;
    (void)graph;
    return hip_result(hipErrorNotSupported);
}

hipError_t hipStreamIsCapturing(hipStream_t handle, int *status)
{
    STREAM(s, handle);
    (void)s;
    *status = 0;
    return hipSuccess;
}

/* Events
 * ------
 */
hipError_t hipEventCreateWithFlags(hipEvent_t *event, unsigned flags)
{
    if (!runtime_start())
        return hip_result(hipErrorNoDevice);
    if (event == NULL)
        return hip_result(hipErrorInvalidValue);
    *event = calloc(1, sizeof **event);
    if (*event == NULL)
        return hip_result(hipErrorOutOfMemory);
    (*event)->flags = flags;
    (*event)->device = hip_device;
    return hipSuccess;
}

hipError_t hipEventCreate(hipEvent_t *event)
{
    return hipEventCreateWithFlags(event, 0);
}

hipError_t hipEventDestroy(hipEvent_t event)
{
    if (event == NULL)
        return hip_result(hipErrorInvalidHandle);
    pthread_mutex_lock(&hip.lock);
    event->destroyed = true;
    release_event(event);
    pthread_mutex_unlock(&hip.lock);
    return hipSuccess;
}

hipError_t hipEventRecord(hipEvent_t event, hipStream_t handle)
{
    STREAM(s, handle);
    if (event == NULL || event->device != s->device)
        return hip_result(hipErrorInvalidHandle);
    pthread_mutex_lock(&hip.lock);
    const bool ok = append(s, &(hip_operation){ .kind = HIP_RECORD, .event = event });
    if (ok) {
        event->recorded = true;
        event->done = false;
        event->stream = s->id;
        event->number = hip.operations;
        event->uses++;
    }
    const hipError_t error = ok ? hip.failed[s->device] : hipErrorOutOfMemory;
    pthread_mutex_unlock(&hip.lock);
    return hip_result(error);
}

/* An event that was never recorded is complete. */
static bool is_pending(const struct ihipEvent_t *event)
{
    return event->recorded && !event->done;
}

hipError_t hipEventSynchronize(hipEvent_t event)
{
    if (event == NULL)
        return hip_result(hipErrorInvalidHandle);
    pthread_mutex_lock(&hip.lock);
    if (is_pending(event))
        run_up_to(find_stream(event->stream), event->number);
    const hipError_t error = hip.failed[event->device];
    pthread_mutex_unlock(&hip.lock);
    return hip_result(error);
}

hipError_t hipEventQuery(hipEvent_t event)
{
    if (event == NULL)
        return hip_result(hipErrorInvalidHandle);
    pthread_mutex_lock(&hip.lock);
    hipStream_t s = is_pending(event) ? find_stream(event->stream) : NULL;
    if (s != NULL && !s->running)
        run_up_to(s, s->first->number);
    const hipError_t error = is_pending(event) ? hipErrorNotReady : hip.failed[event->device];
    pthread_mutex_unlock(&hip.lock);
    return hip_result(error);
}

hipError_t hipStreamWaitEvent(hipStream_t handle, hipEvent_t event, unsigned flags)
{
    STREAM(s, handle);
    if (event == NULL || flags != 0)
        return hip_result(hipErrorInvalidValue);
    pthread_mutex_lock(&hip.lock);
    const hip_operation wait = { .kind = HIP_WAIT, .after_stream = event->stream, .after = event->number };
    const bool          ok = !is_pending(event) || event->stream == s->id || append(s, &wait);
    pthread_mutex_unlock(&hip.lock);
    return hip_result(ok ? hipSuccess : hipErrorOutOfMemory);
}

/* Time of this machine between the two, while it simulated: no kernel's time. */
hipError_t hipEventElapsedTime(float *elapsed, hipEvent_t start, hipEvent_t stop)
{
    if (elapsed == NULL || start == NULL || stop == NULL)
        return hip_result(hipErrorInvalidValue);
    pthread_mutex_lock(&hip.lock);
    hipError_t error = hipSuccess;
    if (!start->recorded || !stop->recorded || (start->flags | stop->flags) & hipEventDisableTiming)
        error = hipErrorInvalidHandle;
    else if (is_pending(start) || is_pending(stop))
        error = hipErrorNotReady;
    else
        *elapsed = (float)(stop->milliseconds - start->milliseconds);
    pthread_mutex_unlock(&hip.lock);
    return hip_result(error);
}
