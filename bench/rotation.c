#include "rotation.h"

#include "gpu.h"
#include "tensor.h"

#include <inttypes.h>
#include <stdlib.h>

enum { MOST_COPIES = 256, ALIGN = 256 };

/* All tensors of a call. */
static int collect(const oracle_op *op, oracle_args *args, etalon_tensor **tensors)
{
    int count = 0;
    for (int i = 0; i < op->input_count; i++)
        tensors[count++] = (etalon_tensor *)((char *)args + op->inputs[i].offset);
    for (int i = 0; i < op->output_count; i++)
        tensors[count++] = (etalon_tensor *)((char *)args + op->outputs[i].offset);
    return count;
}

enum { MOST_TENSORS = 16 };

static size_t span_of(const etalon_tensor *t, const char **first)
{
    uintptr_t from, to;
    tensor_span(t, &from, &to);
    *first = (const char *)from;
    return to - from;
}

static size_t room_for(const oracle_op *op, oracle_args args)
{
    etalon_tensor *tensors[MOST_TENSORS];
    const char    *first;
    size_t         bytes = 0;
    for (int i = 0, count = collect(op, &args, tensors); i < count; i++)
        if (!tensor_absent(tensors[i]) && !tensor_empty(tensors[i]))
            bytes += (span_of(tensors[i], &first) + ALIGN - 1) / ALIGN * ALIGN;
    return bytes;
}

/* Another copy; false: the device has no memory for it, or OpenMP failed. */
static bool add_copy(const bench_problem *p, size_t room, rotation *r)
{
    etalon_tensor *tensors[MOST_TENSORS];
    oracle_args   *args = &r->args[r->count];
    char          *at = device_alloc(r->device, room);
    bool           ok = at != NULL;
    *args = p->args;
    r->memory[r->count] = at;
    for (int i = 0, count = collect(p->problem.op, args, tensors); i < count && ok; i++) {
        etalon_tensor *t = tensors[i];
        const char    *first;
        if (tensor_absent(t))
            continue;
        t->device = r->device;
        if (tensor_empty(t))
            continue;
        const size_t bytes = span_of(t, &first);
        ok = device_send(r->device, at, first, bytes);
        t->data = at + ((const char *)t->data - first);
        at += (bytes + ALIGN - 1) / ALIGN * ALIGN;
    }
    if (!ok && r->memory[r->count] != NULL)
        device_free(r->device, r->memory[r->count]);
    r->count += ok;
    return ok;
}

bool rotation_make(const bench_problem *p, int32_t device, int64_t bytes, rotation *r, tensorfile_error *error)
{
    int64_t      touched = p->kv_bytes + 1;
    const size_t room = room_for(p->problem.op, p->args);
    *r = (rotation){ .device = device,
                     .args = calloc(MOST_COPIES, sizeof *r->args),
                     .memory = calloc(MOST_COPIES, sizeof *r->memory) };
    if (r->args == NULL || r->memory == NULL)
        return oracle_fail(error, "no memory");
    for (int i = 0; i < p->problem.op->output_count; i++)
        touched += oracle_elements(&p->result.tensor[i]) * (int64_t)sizeof(float);
    const int64_t want = 1 + (bytes + touched - 1) / touched;
    while (r->count < want && r->count < MOST_COPIES && add_copy(p, room, r))
        ;
    r->bytes = r->count * touched;
    return r->count > 0 || oracle_fail(error, "device %" PRId32 " has no %zu bytes", device, room);
}

void rotation_free(rotation *r)
{
    for (int i = 0; i < r->count; i++)
        device_free(r->device, r->memory[i]);
    free(r->args);
    free(r->memory);
    *r = (rotation){ 0 };
}

oracle_args rotation_next(rotation *r)
{
    return r->args[r->next++ % r->count];
}
