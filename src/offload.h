/* One GPU, through OpenMP: its memory, and its runtime's own handle for our launchers. The only file that knows OpenMP's
 * device side is src/offload.c.
 */
#ifndef ETALON_OFFLOAD_H
#define ETALON_OFFLOAD_H

#include "launch.h"
#include "tensor.h"

typedef struct offload_device offload_device;

/* `number` is OpenMP's. UNSUPPORTED where the library was built without offload, DEVICE where there is no such GPU, where
 * it cannot be reached, or where none of `objects` (ended by a stem of NULL) is for it. */
etalon_status offload_open(int32_t number, const code_object *objects, offload_device **to);
void offload_close(offload_device *d); /* NULL is allowed */

int32_t offload_number(const offload_device *d);
const launch_place *offload_place(const offload_device *d);

/* Runs kernels one after the other. On a stream of the caller's they are only put there, and the first call loads them
 * into the runtime of the stream; without one they are done at return. Threads may call side by side. */
etalon_status offload_run(offload_device *d, void *stream, const launch_step *steps, int count);

/* Refuses [first, first + bytes) if the device's runtime does not know the memory at one of its ends. */
etalon_status offload_require(const offload_device *d, const char *op, const char *name, const void *first,
                              size_t bytes);

/* Memory of the device; NULL: none left. */
void *offload_alloc(const offload_device *d, size_t bytes);
void offload_free(const offload_device *d, void *at);

/* What one call has of host tensors on the device. */
enum { OFFLOAD_MAX_TENSORS = 24 };

typedef struct offload_copy {
    char  *host, *device;
    size_t bytes;
} offload_copy;

typedef struct offload_map {
    const offload_device *device;
    const char           *op;
    offload_copy          copies[OFFLOAD_MAX_TENSORS];    /* ours: to be freed */
    int                   count, inputs;                  /* copies of inputs first: those of outputs go back */
    etalon_tensor         scattered[OFFLOAD_MAX_TENSORS]; /* per copy; rank > 0: where its elements belong */
} offload_map;

/* Turns the views of an operation's tensors, outputs last, into views of what lies on the device. Tensors there stay as
 * they are. Those on the host are copied, unless the caller has mapped them, as target data map() would; only this tells
 * when memory runs out, where the directive ends the process. Absent and empty tensors stay untouched. */
etalon_status offload_enter(const offload_device *d, const char *op, void *stream, etalon_tensor *const *tensors,
                            const char *const *names, int inputs, int count, offload_map *map);

/* Copies what `status` makes worth it back to the host, frees, and returns status or what went wrong here. */
etalon_status offload_exit(offload_map *map, etalon_status status);

#endif
