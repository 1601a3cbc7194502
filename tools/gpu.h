/* A GPU as a caller of the library sees it, for tests and benchmarks: memory there by OpenMP, and streams of the
 * caller's own by HIP or by CUDA's driver. For programs that have the library's internal names. */
#ifndef ETALON_GPU_H
#define ETALON_GPU_H

#include <etalon/types.h>

#include <stdbool.h>

/** "gfx950", "sm_90"; the context has a device. */
const char *device_arch(const etalon_context *ctx);

/** Memory of the device, aligned for any tensor; NULL: none left. */
void *device_alloc(int32_t device, size_t bytes);
void device_free(int32_t device, void *at);

/** Between host and device; false: OpenMP failed. 0 bytes are always done. */
bool device_send(int32_t device, void *to, const void *from, size_t bytes);
bool device_fetch(int32_t device, void *to, const void *from, size_t bytes);

/* A stream of the context's device, which loads the runtime that makes streams. */
typedef struct device_stream {
    void       *handle;  /* hipStream_t or CUstream: etalon_workspace.stream */
    void       *context; /* CUDA's; NULL: HIP's stream */
    const char *failed;  /* the function that failed last, or what is missing */
    int         code;    /* what it returned */
} device_stream;

/** False: s->failed and s->code say why. */
bool device_stream_open(const etalon_context *ctx, device_stream *s);
/** Returns once all that was put on the stream is done. */
bool device_stream_wait(device_stream *s);
void device_stream_close(device_stream *s);

#endif
