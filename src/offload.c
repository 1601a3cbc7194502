#include "offload.h"

#ifndef HAVE_OFFLOAD

etalon_status offload_open(int32_t number, const code_object *objects, offload_device **to)
{
    (void)objects;
    (void)to;
    return etalon_reject(ETALON_ERROR_UNSUPPORTED,
                         "device %" PRId32 ": this library was built without offload (configure says why)", number);
}

void offload_close(offload_device *d)
{
    (void)d;
}

const launch_place *offload_place(const offload_device *d)
{
    (void)d;
    return NULL;
}

etalon_status offload_require(const offload_device *d, const char *op, const char *name, const void *first,
                              size_t bytes)
{
    (void)d;
    (void)op;
    (void)name;
    (void)first;
    (void)bytes;
    return ETALON_OK;
}

#else

#include <omp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct offload_device {
    int32_t            number;
    launch_place       place;
    const launch_api  *own_api; /* HSA or CUDA */
    launcher          *own;
    pthread_mutex_t    lock; /* of what follows */
    launcher          *hip;  /* NULL until a call brings a stream */
    const code_object *objects;
};

/* Reaching a device
 * -----------------
 * LLVM 19 to 22, by what was seen of them:
 *   - Only `target` objects of interop: those of `targetsync` do not exist on AMD, claim to be CUDA's in LLVM 19 to 21,
 *     and abort the process of LLVM 22 when they are used or destroyed.
 *   - omp_get_interop_*() of omp_interop_none is a null pointer's dereference.
 *   - fr_id and vendor of AMD's object read as CUDA's before LLVM 22. The device context tells: only CUDA has one.
 *   - CUDA's device 0 reads as NULL. The context tells its device.
 *   - interop passes OpenMP's device number where the plugin expects its own index, and LLVM 22 crashes where those
 *     differ: check_numbers().
 */

/* The numbers are the plugin's if all of OpenMP's devices are one maker's and all of that maker's GPUs are OpenMP's. */
static etalon_status check_numbers(int count)
{
    const int amd = launch_hsa_devices(), nvidia = launch_cuda_devices();
    if ((amd == count && nvidia == 0) || (nvidia == count && amd == 0))
        return ETALON_OK;
    return etalon_reject(
        ETALON_ERROR_DEVICE,
        "OpenMP counts %d devices, HSA %d GPUs, CUDA %d: a device is reached only where all are of one "
        "kind (ROCR_VISIBLE_DEVICES and CUDA_VISIBLE_DEVICES leave GPUs out; no other library may bring "
        "OpenMP images for the CPU)",
        count, amd, nvidia);
}

static etalon_status ask_interop(int32_t number, launch_place *place)
{
    omp_interop_t o = omp_interop_none;
    int           code = 0;
    {
#pragma omp interop init(target : o) device(number)
    }
    if (o == omp_interop_none)
        return etalon_reject(ETALON_ERROR_DEVICE, "device %" PRId32 ": OpenMP has no interop object for it", number);
    place->context = omp_get_interop_ptr(o, omp_ipr_device_context, &code);
    if (place->context == NULL)
        place->agent = (uint64_t)(uintptr_t)omp_get_interop_ptr(o, omp_ipr_device, &code);
    {
#pragma omp interop destroy(o)
    }
    if (place->context == NULL && place->agent == 0)
        return etalon_reject(ETALON_ERROR_DEVICE,
                             "device %" PRId32 ": OpenMP's interop object tells neither agent nor context", number);
    return place->context != NULL ? launch_cuda_describe(place) : launch_hsa_describe(place);
}

static etalon_status reach(int32_t number, launch_place *place)
{
    const int   count = omp_get_num_devices();
    const char *policy = getenv("OMP_TARGET_OFFLOAD");
    if (number < 0 || number >= count)
        return etalon_reject(ETALON_ERROR_DEVICE,
                             "device %" PRId32 ": OpenMP sees %d that this library has images for%s%s", number, count,
                             policy == NULL ? "" : "; OMP_TARGET_OFFLOAD is ", policy == NULL ? "" : policy);
    TRY(check_numbers(count));
    return ask_interop(number, place);
}

static etalon_status fill(offload_device *d)
{
    TRY(reach(d->number, &d->place));
    d->own_api = d->place.context != NULL ? &launch_cuda : &launch_hsa;
    return d->own_api->open(&d->place, d->objects, &d->own);
}

etalon_status offload_open(int32_t number, const code_object *objects, offload_device **to)
{
    offload_device *d = calloc(1, sizeof *d);
    if (d == NULL)
        return etalon_reject(ETALON_ERROR_OUT_OF_MEMORY, "device %" PRId32 ": %zu bytes", number, sizeof *d);
    d->number = number;
    d->objects = objects;
    pthread_mutex_init(&d->lock, NULL);
    const etalon_status status = fill(d);
    if (status != ETALON_OK)
        offload_close(d);
    else
        *to = d;
    return status;
}

void offload_close(offload_device *d)
{
    if (d == NULL)
        return;
    launch_hip.close(d->hip);
    if (d->own_api != NULL)
        d->own_api->close(d->own);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

int32_t offload_number(const offload_device *d)
{
    return d->number;
}

const launch_place *offload_place(const offload_device *d)
{
    return &d->place;
}

static etalon_status want_hip(offload_device *d)
{
    pthread_mutex_lock(&d->lock);
    const etalon_status status = d->hip != NULL ? ETALON_OK : launch_hip.open(&d->place, d->objects, &d->hip);
    pthread_mutex_unlock(&d->lock);
    return status;
}

etalon_status offload_run(offload_device *d, void *stream, const launch_step *steps, int count)
{
    if (stream == NULL || d->own_api == &launch_cuda)
        return d->own_api->run(d->own, stream, steps, count);
    TRY(want_hip(d));
    return launch_hip.run(d->hip, stream, steps, count);
}

/* Memory
 * ------
 * By functions that say when they fail: a target enter data that finds no memory, or a range that another mapping
 * overlaps, ends the process.
 */
void *offload_alloc(const offload_device *d, size_t bytes)
{
    return omp_target_alloc(bytes, d->number);
}

void offload_free(const offload_device *d, void *at)
{
    omp_target_free(at, d->number);
}

etalon_status offload_require(const offload_device *d, const char *op, const char *name, const void *first,
                              size_t bytes)
{
    const char *const ends[] = { first, (const char *)first + bytes - 1 };
    for (int i = 0; i < 2; i++)
        REQUIRE(d->own_api->knows(d->own, ends[i]), "%s: %s: %p is no memory that device %" PRId32 " knows", op, name,
                (const void *)ends[i], d->number);
    return ETALON_OK;
}

static etalon_status copy_to_device(const offload_map *m, const offload_copy *c, const char *from)
{
    const int32_t number = m->device->number;
    if (omp_target_memcpy(c->device, from, c->bytes, 0, 0, number, omp_get_initial_device()) != 0)
        return etalon_reject(ETALON_ERROR_DEVICE, "%s: device %" PRId32 ": OpenMP could not copy %zu bytes there",
                             m->op, number, c->bytes);
    return ETALON_OK;
}

static etalon_status copy_to_host(const offload_map *m, const offload_copy *c, char *to)
{
    const int32_t number = m->device->number;
    if (omp_target_memcpy(to, c->device, c->bytes, 0, 0, omp_get_initial_device(), number) != 0)
        return etalon_reject(ETALON_ERROR_DEVICE, "%s: device %" PRId32 ": OpenMP could not copy %zu bytes back", m->op,
                             number, c->bytes);
    return ETALON_OK;
}

/* What the caller has mapped is used where it lies. *there stays NULL where nothing is mapped. */
static etalon_status find_mapped(const offload_device *d, const char *op, const char *name, const char *first,
                                 size_t bytes, char **there)
{
    *there = omp_get_mapped_ptr(first, d->number);
    const char *last = omp_get_mapped_ptr(first + bytes - 1, d->number);
    REQUIRE((*there == NULL) == (last == NULL) && (last == NULL || last == *there + bytes - 1),
            "%s: %s: only part of it is mapped to device %" PRId32, op, name, d->number);
    return ETALON_OK;
}

static bool overlap(const offload_copy *c, const char *first, const char *last)
{
    return c->host < last && first < c->host + c->bytes;
}

/* One copy for inputs that lie across each other, as K and V of one cache do. */
static void add_input(offload_map *m, char *first, char *last)
{
    for (int i = 0; i < m->count;) {
        const offload_copy c = m->copies[i];
        if (!overlap(&c, first, last)) {
            i++;
            continue;
        }
        first = c.host < first ? c.host : first;
        last = c.host + c.bytes > last ? c.host + c.bytes : last;
        m->copies[i] = m->copies[--m->count];
        i = 0; /* the union may meet those that it missed before */
    }
    m->copies[m->count++] = (offload_copy){ .host = first, .bytes = (size_t)(last - first) };
}

static etalon_status send(offload_map *m, offload_copy *c, const char *from)
{
    c->device = offload_alloc(m->device, c->bytes);
    if (c->device == NULL)
        return etalon_reject(ETALON_ERROR_DEVICE, "%s: device %" PRId32 ": OpenMP found no %zu bytes there", m->op,
                             m->device->number, c->bytes);
    return copy_to_device(m, c, from);
}

static void span_of(const etalon_tensor *t, char **first, char **last)
{
    uintptr_t from, to;
    tensor_span(t, &from, &to);
    *first = (char *)from;
    *last = (char *)to;
}

static bool stays(const etalon_tensor *t)
{
    return tensor_absent(t) || tensor_empty(t);
}

static etalon_status enter_inputs(offload_map *m, etalon_tensor *const *tensors, const char *const *names, int count)
{
    char *there[OFFLOAD_MAX_TENSORS] = { NULL };
    for (int i = 0; i < count; i++) {
        char *first, *last;
        if (stays(tensors[i]))
            continue;
        span_of(tensors[i], &first, &last);
        TRY(find_mapped(m->device, m->op, names[i], first, (size_t)(last - first), &there[i]));
        if (there[i] != NULL)
            there[i] += (char *)tensors[i]->data - first;
        else
            add_input(m, first, last);
    }
    m->inputs = m->count;
    for (int i = 0; i < m->inputs; i++)
        TRY(send(m, &m->copies[i], m->copies[i].host));
    for (int i = 0; i < count; i++) {
        if (stays(tensors[i]))
            continue;
        const char *data = tensors[i]->data;
        for (int c = 0; c < m->inputs && there[i] == NULL; c++)
            if (overlap(&m->copies[c], data, data + 1))
                there[i] = m->copies[c].device + (data - m->copies[c].host);
        tensors[i]->data = there[i];
    }
    return ETALON_OK;
}

/* Row-major over the elements: from the view to `dense`, or back. */
static void move_elements(const etalon_tensor *t, char *dense, bool back)
{
    const int64_t bytes = (int64_t)etalon_dtype_bytes(t->dtype);
    int64_t       at[ETALON_MAX_RANK] = { 0 };
    for (int32_t d = 0; d >= 0; dense += bytes) {
        char *element = t->data;
        for (int32_t i = 0; i < t->rank; i++)
            element += at[i] * t->stride[i] * bytes;
        memcpy(back ? element : dense, back ? dense : element, (size_t)bytes);
        for (d = t->rank - 1; d >= 0 && ++at[d] == t->shape[d]; d--)
            at[d] = 0;
    }
}

/* Between the elements of an output that has gaps lies somebody else's data: only the elements travel. */
static etalon_status enter_scattered(offload_map *m, etalon_tensor *t, offload_copy *c)
{
    const etalon_tensor dense = etalon_tensor_dense(NULL, t->dtype, t->rank, t->shape);
    c->bytes = etalon_dtype_bytes(t->dtype);
    for (int32_t d = 0; d < t->rank; d++)
        c->bytes *= (size_t)t->shape[d];
    c->host = malloc(c->bytes);
    if (c->host == NULL)
        return etalon_reject(ETALON_ERROR_DEVICE, "%s: no %zu bytes to collect an output in", m->op, c->bytes);
    m->scattered[m->count - 1] = *t;
    move_elements(t, c->host, false);
    memcpy(t->stride, dense.stride, sizeof t->stride);
    TRY(send(m, c, c->host));
    t->data = c->device;
    return ETALON_OK;
}

/* Outputs go there, too: a kernel may leave elements as they were. */
static etalon_status enter_output(offload_map *m, etalon_tensor *t, const char *name)
{
    char *first, *last, *there;
    span_of(t, &first, &last);
    TRY(find_mapped(m->device, m->op, name, first, (size_t)(last - first), &there));
    if (there == NULL) {
        offload_copy *c = &m->copies[m->count++];
        *c = (offload_copy){ .host = first, .bytes = (size_t)(last - first) };
        if (!tensor_dense(t))
            return enter_scattered(m, t, c);
        TRY(send(m, c, c->host));
        there = c->device;
    }
    t->data = there + ((char *)t->data - first);
    return ETALON_OK;
}

static etalon_status enter_host(offload_map *m, etalon_tensor *const *tensors, const char *const *names, int inputs,
                                int count)
{
    TRY(enter_inputs(m, tensors, names, inputs));
    for (int i = inputs; i < count; i++)
        if (!stays(tensors[i]))
            TRY(enter_output(m, tensors[i], names[i]));
    for (int i = 0; i < count; i++)
        tensors[i]->device = m->device->number;
    return ETALON_OK;
}

/* A host pointer in a tensor that says it is on the device would end the process, or the device. */
static etalon_status require_all(const offload_device *d, const char *op, etalon_tensor *const *tensors,
                                 const char *const *names, int count)
{
    for (int i = 0; i < count; i++) {
        char *first, *last;
        if (stays(tensors[i]))
            continue;
        span_of(tensors[i], &first, &last);
        TRY(offload_require(d, op, names[i], first, (size_t)(last - first)));
    }
    return ETALON_OK;
}

etalon_status offload_enter(const offload_device *d, const char *op, void *stream, etalon_tensor *const *tensors,
                            const char *const *names, int inputs, int count, offload_map *map)
{
    memset(map, 0, sizeof *map);
    map->device = d;
    map->op = op;
    const int32_t device = tensors[0]->device; /* all have the same */
    if (device != ETALON_HOST) {
        REQUIRE(device == d->number, "%s: the tensors are on device %" PRId32 ", the context's is %" PRId32, op, device,
                d->number);
        return require_all(d, op, tensors, names, count);
    }
    REQUIRE(stream == NULL, "%s: a stream, and the tensors are on the host", op);
    const etalon_status status = enter_host(map, tensors, names, inputs, count);
    return status == ETALON_OK ? status : offload_exit(map, status);
}

etalon_status offload_exit(offload_map *m, etalon_status status)
{
    for (int i = 0; i < m->count; i++) {
        offload_copy  *c = &m->copies[i];
        etalon_tensor *t = &m->scattered[i];
        if (status == ETALON_OK && i >= m->inputs)
            status = copy_to_host(m, c, c->host);
        if (status == ETALON_OK && t->rank > 0)
            move_elements(t, c->host, true);
        if (c->device != NULL)
            offload_free(m->device, c->device);
        if (t->rank > 0)
            free(c->host);
    }
    return status;
}

#endif
