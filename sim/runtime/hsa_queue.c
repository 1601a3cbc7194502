/* The stand-in for libhsa-runtime64.so: signals, copies and queues.
 *
 * Each queue has a thread that runs its packets one after the other; a thread makes the copies, another calls the
 * handlers of signals. All of them, and whoever waits for a signal, sleep on one condition variable.
 */
#include "hsa.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct queue queue;

/* The value lies where AMD's runtime has it, 8 bytes behind the handle. */
typedef struct signal {
    int64_t         kind;
    _Atomic int64_t value;
    queue          *rung; /* whose doorbell it is */
} signal;

struct queue {
    hsa_queue_t         hsa; /* first: its address is the queue's */
    _Atomic uint64_t    write_index, read_index;
    _Atomic int64_t     rung; /* the last packet that a doorbell told of */
    int                 device;
    pthread_t           thread;
    bool                stop, failed;
    hsa_queue_callback *callback;
    void               *data;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t  changed;
static pthread_once_t  once = PTHREAD_ONCE_INIT;

static void initialise(void)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

static void lock_all(void)
{
    pthread_once(&once, initialise);
    pthread_mutex_lock(&lock);
}

static void tell_and_unlock(void)
{
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

/* Signals
 * -------
 */
static signal *signal_at(hsa_signal_t s)
{
    return (signal *)(uintptr_t)s.handle;
}

static hsa_status_t create_signal(int64_t value, queue *rung, hsa_signal_t *to)
{
    signal *s = aligned_alloc(64, 64);
    if (s == NULL)
        return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    _Static_assert(sizeof *s <= 64 && offsetof(signal, value) == 8, "as amd_signal_t");
    *s = (signal){ .kind = 1, .value = value, .rung = rung };
    to->handle = (uint64_t)(uintptr_t)s;
    return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_signal_create(hsa_signal_value_t value, uint32_t count, const hsa_agent_t *consumers, hsa_signal_t *to)
{
    if (to == NULL || (count != 0 && consumers == NULL))
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    return create_signal(value, NULL, to);
}

hsa_status_t hsa_amd_signal_create(hsa_signal_value_t value, uint32_t count, const hsa_agent_t *consumers,
                                   uint64_t flags, hsa_signal_t *to)
{
    (void)flags;
    return hsa_signal_create(value, count, consumers, to);
}

hsa_status_t hsa_signal_destroy(hsa_signal_t s)
{
    if (s.handle == 0)
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    free(signal_at(s));
    return HSA_STATUS_SUCCESS;
}

hsa_signal_value_t hsa_signal_load_scacquire(hsa_signal_t s)
{
    return atomic_load(&signal_at(s)->value);
}

void hsa_signal_store_screlease(hsa_signal_t which, hsa_signal_value_t value)
{
    signal *s = signal_at(which);
    lock_all();
    atomic_store(&s->value, value);
    if (s->rung != NULL && value > s->rung->rung)
        s->rung->rung = value;
    tell_and_unlock();
}

void hsa_signal_store_relaxed(hsa_signal_t s, hsa_signal_value_t value)
{
    hsa_signal_store_screlease(s, value);
}

void hsa_signal_subtract_screlease(hsa_signal_t s, hsa_signal_value_t value)
{
    lock_all();
    atomic_fetch_sub(&signal_at(s)->value, value);
    tell_and_unlock();
}

static bool holds(int64_t value, uint32_t condition, int64_t compare)
{
    switch (condition) {
    case HSA_SIGNAL_CONDITION_EQ:
        return value == compare;
    case HSA_SIGNAL_CONDITION_NE:
        return value != compare;
    case HSA_SIGNAL_CONDITION_LT:
        return value < compare;
    }
    return value >= compare;
}

/* The timeout counts in ticks of the system clock: nanoseconds here. */
hsa_signal_value_t hsa_signal_wait_scacquire(hsa_signal_t s, uint32_t condition, hsa_signal_value_t compare,
                                             uint64_t timeout, uint32_t how)
{
    static const uint64_t second = 1000000000u, for_ever = UINT64_MAX / 2;
    struct timespec       until;
    int64_t               value;
    (void)how;
    if (timeout < for_ever) {
        clock_gettime(CLOCK_MONOTONIC, &until);
        const uint64_t nanoseconds = (uint64_t)until.tv_nsec + timeout % second;
        until.tv_sec += (time_t)(timeout / second + nanoseconds / second);
        until.tv_nsec = (long)(nanoseconds % second);
    }
    lock_all();
    bool late = false;
    while (!holds(value = atomic_load(&signal_at(s)->value), condition, compare) && !late) {
        if (timeout < for_ever)
            late = pthread_cond_timedwait(&changed, &lock, &until) != 0;
        else
            pthread_cond_wait(&changed, &lock);
    }
    pthread_mutex_unlock(&lock);
    return value;
}

static void finish(hsa_signal_t done)
{
    if (done.handle != 0)
        hsa_signal_subtract_screlease(done, 1);
}

/* Work that waits for signals: copies, and handlers
 * -------------------------------------------------
 * Two lists, each with a thread that does what is ready, oldest first.
 */
typedef struct job job;
struct job {
    bool (*ready)(const job *);
    bool (*run)(job *); /* without the lock; true: once more */
    job *next;

    hsa_signal_t *after; /* copies */
    uint32_t      count;
    void         *to;
    const void   *from;
    size_t        bytes;
    hsa_signal_t  done;

    hsa_signal_t            signal; /* handlers */
    uint32_t                condition;
    int64_t                 compare, value;
    hsa_amd_signal_handler *handler;
    void                   *data;
};

typedef struct worker {
    bool started;
    job *first;
} worker;

static worker copies, handlers;

static job *take_ready(worker *w)
{
    for (job **link = &w->first; *link != NULL; link = &(*link)->next) {
        job *j = *link;
        if (j->ready(j)) {
            *link = j->next;
            j->next = NULL;
            return j;
        }
    }
    return NULL;
}

static void add_last(worker *w, job *j)
{
    job **link = &w->first;
    while (*link != NULL)
        link = &(*link)->next;
    *link = j;
}

static void *work(void *arg)
{
    worker *w = arg;
    lock_all();
    for (;;) {
        job *j = take_ready(w);
        if (j == NULL) {
            pthread_cond_wait(&changed, &lock);
            continue;
        }
        pthread_mutex_unlock(&lock);
        const bool again = j->run(j);
        lock_all();
        if (again) {
            add_last(w, j);
        } else {
            free(j->after);
            free(j);
        }
    }
    return NULL;
}

static hsa_status_t start_job(worker *w, const job *what)
{
    job *j = malloc(sizeof *j);
    if (j == NULL)
        return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    *j = *what;
    lock_all();
    pthread_t thread;
    if (!w->started && pthread_create(&thread, NULL, work, w) == 0) {
        pthread_detach(thread);
        w->started = true;
    }
    const bool started = w->started;
    if (started)
        add_last(w, j);
    else
        free(j);
    tell_and_unlock();
    return started ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_OUT_OF_RESOURCES;
}

static bool copy_ready(const job *j)
{
    for (uint32_t i = 0; i < j->count; i++)
        if (j->after[i].handle != 0 && atomic_load(&signal_at(j->after[i])->value) != 0)
            return false;
    return true;
}

static bool run_copy(job *j)
{
    runtime_copy(j->to, j->from, j->bytes);
    finish(j->done);
    return false;
}

/* An engine reaches what its runtime knows: memory of a pool, of a code object, or locked. */
static bool is_reachable(const void *at, const char *what)
{
    runtime_memory m;
    if (runtime_find(at, &m))
        return true;
    runtime_complain("asynchronous copy %s %p: neither memory of a pool nor locked", what, at);
    return false;
}

hsa_status_t hsa_amd_memory_async_copy(void *to, hsa_agent_t to_agent, const void *from, hsa_agent_t from_agent,
                                       size_t bytes, uint32_t count, const hsa_signal_t *after, hsa_signal_t done)
{
    int device;
    if (to == NULL || from == NULL || (count == 0) != (after == NULL))
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    if (!hsa_device_of_agent(to_agent, &device) || !hsa_device_of_agent(from_agent, &device))
        return HSA_STATUS_ERROR_INVALID_AGENT;
    if (!is_reachable(from, "from") || !is_reachable(to, "to"))
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    job j = {
        .ready = copy_ready, .run = run_copy, .count = count, .to = to, .from = from, .bytes = bytes, .done = done
    };
    if (count != 0) {
        j.after = malloc(count * sizeof *after);
        if (j.after == NULL)
            return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
        memcpy(j.after, after, count * sizeof *after);
    }
    const hsa_status_t status = start_job(&copies, &j);
    if (status != HSA_STATUS_SUCCESS)
        free(j.after);
    return status;
}

static bool handler_ready(const job *j)
{
    return holds(atomic_load(&signal_at(j->signal)->value), j->condition, j->compare);
}

static bool run_handler(job *j)
{
    return j->handler(atomic_load(&signal_at(j->signal)->value), j->data);
}

hsa_status_t hsa_amd_signal_async_handler(hsa_signal_t s, uint32_t condition, hsa_signal_value_t compare,
                                          hsa_amd_signal_handler *handler, void *data)
{
    if (s.handle == 0 || handler == NULL)
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    return start_job(&handlers, &(job){ .ready = handler_ready,
                                        .run = run_handler,
                                        .signal = s,
                                        .condition = condition,
                                        .compare = compare,
                                        .handler = handler,
                                        .data = data });
}

/* Events tell of memory faults. A simulated kernel's bad access is a finding, and the kernel goes on. */
hsa_status_t hsa_amd_register_system_event_handler(hsa_amd_system_event_callback *callback, void *data)
{
    (void)data;
    return callback == NULL ? HSA_STATUS_ERROR_INVALID_ARGUMENT : HSA_STATUS_SUCCESS;
}

/* Queues
 * ------
 */
static bool refuse(const char *format, uint64_t a, uint64_t b)
{
    char text[200];
    snprintf(text, sizeof text, format, (unsigned long long)a, (unsigned long long)b);
    runtime_complain("dispatch packet: %s", text);
    return false;
}

static bool check_packet(int device, const hsa_kernel_dispatch_packet_t *p, const sim_kernel *k)
{
    runtime_memory m;
    const int      dimensions = p->setup & 3;
    if (dimensions == 0)
        return refuse("setup is %llu, expected 1 to 3 dimensions", p->setup, 0);
    if ((dimensions < 2 && (p->grid_size_y != 1 || p->workgroup_size_y != 1)) ||
        (dimensions < 3 && (p->grid_size_z != 1 || p->workgroup_size_z != 1)))
        return refuse("setup says %llu dimensions, and the sizes of the others are not 1", (uint64_t)dimensions, 0);
    if (p->group_segment_size < k->lds_bytes)
        return refuse("group_segment_size is %llu, the kernel needs %llu", p->group_segment_size, k->lds_bytes);
    if (p->private_segment_size < k->scratch_bytes)
        return refuse("private_segment_size is %llu, the kernel needs %llu", p->private_segment_size, k->scratch_bytes);
    if (k->kernarg_bytes == 0)
        return true;
    if (!runtime_find(p->kernarg_address, &m))
        return refuse("kernarg_address 0x%llx is not memory of a pool", (uint64_t)(uintptr_t)p->kernarg_address, 0);
    if ((m.devices >> device & 1) == 0)
        return refuse("kernarg_address 0x%llx: the agent was not allowed to access it",
                      (uint64_t)(uintptr_t)p->kernarg_address, 0);
    const size_t left = m.bytes - (size_t)((char *)p->kernarg_address - (char *)m.at);
    if (left < k->kernarg_bytes)
        return refuse("the kernarg segment has %llu bytes, the kernel reads %llu", left, k->kernarg_bytes);
    return true;
}

static hsa_status_t run_kernel(const queue *q, const hsa_kernel_dispatch_packet_t *p)
{
    const sim_kernel *k = sim_kernel_of_descriptor(runtime_device(q->device), p->kernel_object);
    if (k == NULL) {
        refuse("kernel_object 0x%llx is no kernel descriptor of this agent", p->kernel_object, 0);
        return HSA_STATUS_ERROR_INVALID_CODE_OBJECT;
    }
    if (!check_packet(q->device, p, k))
        return HSA_STATUS_ERROR_INVALID_PACKET_FORMAT;
    const sim_dispatch dispatch = {
        .kernel = k,
        .grid = { p->grid_size_x, p->grid_size_y, p->grid_size_z },
        .group = { p->workgroup_size_x, p->workgroup_size_y, p->workgroup_size_z },
        .dynamic_lds = p->group_segment_size - k->lds_bytes,
        .kernarg = p->kernarg_address,
        .kernarg_bytes = k->kernarg_bytes,
    };
    return runtime_dispatch(q->device, &dispatch) ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_EXCEPTION;
}

/* Of an AND packet all signals must be zero, of an OR packet one; none given: nothing to wait for. */
static bool barrier_met(const hsa_barrier_packet_t *p, bool all)
{
    int given = 0, zero = 0;
    for (int i = 0; i < 5; i++) {
        if (p->dep_signal[i].handle == 0)
            continue;
        given++;
        zero += atomic_load(&signal_at(p->dep_signal[i])->value) == 0;
    }
    return all || given == 0 ? zero == given : zero > 0;
}

static void wait_at_barrier(const queue *q, const hsa_barrier_packet_t *p, bool all)
{
    lock_all();
    while (!q->stop && !barrier_met(p, all))
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

/* The packet's completion signal lies at the same place in all kinds. */
static hsa_status_t run_packet(const queue *q, const hsa_kernel_dispatch_packet_t *p)
{
    switch (p->header & 0xFF) {
    case HSA_PACKET_TYPE_KERNEL_DISPATCH:
        return run_kernel(q, p);
    case HSA_PACKET_TYPE_BARRIER_AND:
        wait_at_barrier(q, (const hsa_barrier_packet_t *)p, true);
        return HSA_STATUS_SUCCESS;
    case HSA_PACKET_TYPE_BARRIER_OR:
        wait_at_barrier(q, (const hsa_barrier_packet_t *)p, false);
        return HSA_STATUS_SUCCESS;
    }
    runtime_complain("packet of type %u: expected a kernel dispatch or a barrier", p->header & 0xFFu);
    return HSA_STATUS_ERROR_INVALID_PACKET_FORMAT;
}

/* As on hardware, a queue that failed takes no more packets and the packet's completion is never signalled: whoever
 * waits for it without looking at the callback waits for ever. Without a callback nobody could know. */
static void fail(queue *q, hsa_status_t status)
{
    q->failed = true;
    if (q->callback == NULL) {
        runtime_complain("a queue without a callback failed");
        abort();
    }
    q->callback(status, &q->hsa, q->data);
}

static hsa_kernel_dispatch_packet_t *packet_at(const queue *q, uint64_t index)
{
    return (hsa_kernel_dispatch_packet_t *)q->hsa.base_address + (index & (q->hsa.size - 1));
}

/* A packet is there when a doorbell told of it or of a later one and its header, written last, says what it is. */
static bool packet_ready(const queue *q, uint64_t index)
{
    return (int64_t)index <= atomic_load(&q->rung) &&
           (__atomic_load_n(&packet_at(q, index)->header, __ATOMIC_ACQUIRE) & 0xFF) != HSA_PACKET_TYPE_INVALID;
}

static void *serve(void *arg)
{
    queue *q = arg;
    for (uint64_t index = 0;; index++) {
        lock_all();
        while (!q->stop && (q->failed || !packet_ready(q, index)))
            pthread_cond_wait(&changed, &lock);
        const bool stop = q->stop;
        pthread_mutex_unlock(&lock);
        if (stop)
            return NULL;
        hsa_kernel_dispatch_packet_t      *slot = packet_at(q, index);
        const hsa_kernel_dispatch_packet_t p = *slot;
        const hsa_status_t                 status = run_packet(q, &p);
        __atomic_store_n(&slot->header, (uint16_t)HSA_PACKET_TYPE_INVALID, __ATOMIC_RELEASE);
        atomic_store(&q->read_index, index + 1);
        if (status == HSA_STATUS_SUCCESS)
            finish(p.completion_signal);
        else
            fail(q, status);
    }
}

static void free_queue(queue *q)
{
    if (q->hsa.doorbell_signal.handle != 0)
        hsa_signal_destroy(q->hsa.doorbell_signal);
    free(q->hsa.base_address);
    free(q);
}

hsa_status_t hsa_queue_create(hsa_agent_t agent, uint32_t size, uint32_t type, hsa_queue_callback *callback, void *data,
                              uint32_t private_bytes, uint32_t group_bytes, hsa_queue_t **to)
{
    static atomic_uint_fast64_t ids;
    int                         device;
    (void)private_bytes;
    (void)group_bytes;
    if (!hsa_device_of_agent(agent, &device))
        return HSA_STATUS_ERROR_INVALID_AGENT;
    if (device == RUNTIME_HOST)
        return HSA_STATUS_ERROR_INVALID_QUEUE_CREATION;
    if (to == NULL || size == 0 || size > 131072 || (size & (size - 1)) != 0)
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    queue *q = calloc(1, sizeof *q);
    if (q == NULL)
        return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    q->hsa = (hsa_queue_t){ .type = type, .features = 1, .size = size, .id = ids++ };
    q->hsa.base_address = aligned_alloc(64, (size_t)size * sizeof(hsa_kernel_dispatch_packet_t));
    q->rung = -1;
    q->device = device;
    q->callback = callback;
    q->data = data;
    if (q->hsa.base_address == NULL || create_signal(-1, q, &q->hsa.doorbell_signal) != HSA_STATUS_SUCCESS) {
        free_queue(q);
        return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    }
    memset(q->hsa.base_address, 0, (size_t)size * sizeof(hsa_kernel_dispatch_packet_t));
    for (uint32_t i = 0; i < size; i++)
        packet_at(q, i)->header = HSA_PACKET_TYPE_INVALID;
    if (pthread_create(&q->thread, NULL, serve, q) != 0) {
        free_queue(q);
        return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    }
    *to = &q->hsa;
    return HSA_STATUS_SUCCESS;
}

/* Packets that have not begun are dropped. Not from the queue's own callback. */
hsa_status_t hsa_queue_destroy(hsa_queue_t *which)
{
    queue *q = (queue *)which;
    if (q == NULL || pthread_equal(q->thread, pthread_self()))
        return HSA_STATUS_ERROR_INVALID_QUEUE;
    lock_all();
    q->stop = true;
    tell_and_unlock();
    pthread_join(q->thread, NULL);
    free_queue(q);
    return HSA_STATUS_SUCCESS;
}

uint64_t hsa_queue_load_read_index_scacquire(const hsa_queue_t *which)
{
    return atomic_load(&((const queue *)which)->read_index);
}

uint64_t hsa_queue_add_write_index_relaxed(const hsa_queue_t *which, uint64_t by)
{
    return atomic_fetch_add(&((queue *)which)->write_index, by);
}
