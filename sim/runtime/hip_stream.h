/* Streams of the HIP stand-in: queues of operations that run as late as the interface allows.
 *
 * Nothing runs when it is enqueued. A stream runs when somebody waits for it, in the thread that waits: a
 * synchronisation, a blocking copy, a free, a query (one operation each), or too long a queue. So a program that
 * forgets to wait sees what it may see on hardware, every time: the host reads old data, and streams that no event
 * orders run in the wrong order.
 * The legacy stream (NULL) and the streams that were not created non-blocking order each other as they do in HIP.
 */
#ifndef ETALON_HIP_STREAM_H
#define ETALON_HIP_STREAM_H

#include "hip_api.h"
#include "runtime.h"

typedef enum hip_operation_kind {
    HIP_LAUNCH,
    HIP_COPY,
    HIP_FILL,
    HIP_FREE,
    HIP_RECORD,
    HIP_WAIT,
    HIP_CALL,
    HIP_CALLBACK
} hip_operation_kind;

typedef struct hip_operation {
    hip_operation_kind    kind;
    uint64_t              number;   /* in the order of the calls */
    sim_dispatch          dispatch; /* owns its kernarg */
    void                 *to;
    const void           *from;
    size_t                bytes, width; /* of a fill: count and width */
    uint32_t              pattern;
    hipEvent_t            event;
    uint64_t              after_stream, after; /* of a wait: the stream's id and the number there */
    hipHostFn_t           call;
    hipStreamCallback_t   callback;
    void                 *data;
    struct hip_operation *next;
} hip_operation;

/* The stream that a handle means; NULL: none. */
hipStream_t hip_stream_of(hipStream_t handle);
hipStream_t hip_stream_legacy(int device);
int hip_stream_device(hipStream_t stream);

/* Takes over *what. Returns an error that the device has had; `wait`: and runs the stream up to there. */
hipError_t hip_enqueue(hipStream_t stream, const hip_operation *what, bool wait);
hipError_t hip_stream_wait(hipStream_t stream);
hipError_t hip_device_wait(int device);

/* The calling thread's. */
extern __thread int hip_device;
hipError_t hip_result(hipError_t error);

#endif
