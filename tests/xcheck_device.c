/* Calls with tensors on a device, and kernels for it that are broken on purpose. */
#include "xcheck.h"

#include "code_objects.h"
#include "context.h"
#include "offload.h"
#include "tensor.h"

#include <errno.h>
#include <inttypes.h>

/* Memory
 * ------
 * Every second case has zones of known bytes around its tensors, in which a write shows on any machine; the others lie
 * flush with what was allocated, where a simulator or a checker sees reads, too. The bytes are a NaN in every dtype but
 * E4M3FNUZ, and no index of anything. */
enum { ZONE = 4096, KNOWN = 0xFF, LANES = 16 /* bytes of the widest load: addresses modulo this are the host's */ };

/* Tensors of a call, and its workspace. */
enum { COPIES = 16 };

typedef struct copy {
    const char   *names; /* "k_cache|key_cache" */
    etalon_tensor host;  /* absent: the workspace */
    bool          input;
    char         *there, *sent;  /* sent: what was there before the call */
    size_t        before, bytes; /* the span lies so many bytes in */
    size_t        all;           /* with what is around it */
    int64_t       rows, row;     /* wide tensors: bytes of a row; else rows is 0 */
} copy;

typedef struct copies {
    int32_t device;
    copy    at[COPIES];
    int     count;
} copies;

/* Of the call that runs; what a failed one left is freed by the next. */
static copies current;

static void forget_copies(copies *all)
{
    for (int i = 0; i < all->count; i++) {
        if (all->at[i].there != NULL)
            device_free(all->device, all->at[i].there);
        free(all->at[i].sent);
    }
    all->count = 0;
}

static copy *add_copy(copies *all, const char *names, bool input)
{
    cases_require(all->count < COPIES, "more than %d tensors", COPIES);
    copy *c = &all->at[all->count++];
    *c = (copy){ .names = names, .input = input };
    return c;
}

static void send_bytes(const copies *all, const copy *c, size_t offset, const void *from, size_t bytes)
{
    cases_require(device_send(all->device, c->there + offset, from, bytes), "%s: %zu bytes could not be copied there",
                  oracle_first_name(c->names), bytes);
}

static void fetch_bytes(const copies *all, const copy *c, size_t offset, void *to, size_t bytes)
{
    cases_require(device_fetch(all->device, to, c->there + offset, bytes), "%s: %zu bytes could not be copied back",
                  oracle_first_name(c->names), bytes);
}

static void fill_known(copy *c)
{
    c->sent = malloc(c->all);
    cases_require(c->sent != NULL, "%zu bytes: %s", c->all, strerror(errno));
    memset(c->sent, KNOWN, c->all);
}

/* Of tensors whose rows lie gibibytes apart only the rows travel. */
static void send_rows(const copies *all, copy *c)
{
    const int64_t bytes = (int64_t)etalon_dtype_bytes(c->host.dtype);
    c->rows = c->host.shape[0];
    c->row = bytes;
    for (int32_t d = 1; d < c->host.rank; d++)
        c->row *= c->host.shape[d];
    for (int64_t i = 0; i < c->rows; i++) {
        const int64_t offset = i * c->host.stride[0] * bytes;
        send_bytes(all, c, c->before + (size_t)offset, (const char *)c->host.data + offset, (size_t)c->row);
    }
}

/* UNSUPPORTED: the device has no memory for a tensor of gibibytes. */
static etalon_status send_tensor(copies *all, const xcheck_case *c, etalon_tensor *t, const char *names, bool input)
{
    uintptr_t first, last;
    if (tensor_absent(t))
        return ETALON_OK;
    const etalon_tensor host = *t;
    t->device = all->device;
    if (tensor_empty(t))
        return ETALON_OK;
    tensor_span(t, &first, &last);
    const bool   wide = xcheck_wide_slot(c, t) >= 0;
    const size_t zone = wide || c->number % 2 != 0 ? 0 : ZONE;
    copy        *made = add_copy(all, names, input);
    made->host = host;
    made->before = zone + first % LANES;
    made->bytes = last - first;
    made->all = made->before + made->bytes + zone;
    made->there = device_alloc(all->device, made->all);
    if (made->there == NULL && wide)
        return etalon_reject(ETALON_ERROR_UNSUPPORTED, "the device has no %zu bytes for %s", made->all,
                             oracle_first_name(names));
    cases_require(made->there != NULL, "the device has no %zu bytes for %s", made->all, oracle_first_name(names));
    t->data = made->there + made->before + ((uintptr_t)host.data - first);
    if (wide) {
        send_rows(all, made);
        return ETALON_OK;
    }
    fill_known(made);
    memcpy(made->sent + made->before, (const void *)first, made->bytes);
    send_bytes(all, made, 0, made->sent, made->all);
    return ETALON_OK;
}

/* Without zones its bytes are left as they were allocated: a simulator tells who reads what nobody has written. */
static etalon_workspace send_workspace(copies *all, const xcheck_case *c, size_t bytes)
{
    const size_t zone = c->number % 2 != 0 ? 0 : ZONE;
    if (bytes == 0)
        return (etalon_workspace){ 0 };
    copy *made = add_copy(all, "the workspace", false);
    made->before = zone;
    made->bytes = bytes;
    made->all = bytes + 2 * zone;
    made->there = device_alloc(all->device, made->all);
    cases_require(made->there != NULL, "the device has no %zu bytes of workspace", made->all);
    if (zone > 0) {
        fill_known(made);
        send_bytes(all, made, 0, made->sent, made->all);
    }
    return (etalon_workspace){ .data = made->there + zone, .bytes = bytes };
}

/* After the call
 * --------------
 */
static void check_zone(const copies *all, const copy *c, size_t from, size_t to)
{
    unsigned char got[ZONE + LANES];
    fetch_bytes(all, c, from, got, to - from);
    for (size_t at = from; at < to; at++)
        cases_require(got[at - from] == KNOWN, "%s: wrote outside, %td bytes from its start",
                      oracle_first_name(c->names), (ptrdiff_t)at - (ptrdiff_t)c->before);
}

static void check_rows(const copies *all, const copy *c)
{
    char *got = malloc((size_t)c->row);
    bool  same = true;
    for (int64_t i = 0; i < c->rows && same; i++) {
        const int64_t offset = i * c->host.stride[0] * (int64_t)etalon_dtype_bytes(c->host.dtype);
        fetch_bytes(all, c, c->before + (size_t)offset, got, (size_t)c->row);
        same = memcmp(got, (const char *)c->host.data + offset, (size_t)c->row) == 0;
    }
    free(got);
    cases_require(same, "%s: an input changed", oracle_first_name(c->names));
}

/* Outputs come back whole: what is between their elements is verified on the host. */
static void check_copy(const copies *all, const copy *c)
{
    uintptr_t first, last;
    if (c->rows > 0) {
        check_rows(all, c);
        return;
    }
    if (c->sent != NULL) {
        check_zone(all, c, 0, c->before);
        check_zone(all, c, c->before + c->bytes, c->all);
    }
    if (tensor_absent(&c->host))
        return;
    char *got = malloc(c->bytes);
    fetch_bytes(all, c, c->before, got, c->bytes);
    const bool same = memcmp(got, c->sent + c->before, c->bytes) == 0;
    tensor_span(&c->host, &first, &last);
    if (!c->input)
        memcpy((void *)first, got, c->bytes);
    free(got);
    cases_require(!c->input || same, "%s: an input changed", oracle_first_name(c->names));
}

/* Calls
 * -----
 */
static void *stream_of(xcheck_trial *t, const etalon_context *ctx)
{
    device_stream *s = &t->stream;
    if (t->kernel->route != XCHECK_STREAM)
        return NULL;
    if (s->handle == NULL)
        cases_require(device_stream_open(ctx, s), "no stream: %s (%d)", s->failed, s->code);
    return s->handle;
}

static etalon_status run_there(xcheck_trial *t, etalon_context *ctx, const oracle_args *args)
{
    const oracle_op *op = t->kernel->op;
    size_t           bytes;
    etalon_status    status = op->workspace_bytes(ctx, args, &bytes);
    if (status != ETALON_OK)
        return status;
    etalon_workspace work = send_workspace(&current, t->c, bytes);
    work.stream = stream_of(t, ctx);
    status = op->run(ctx, args, work);
    if (status != ETALON_OK || work.stream == NULL || device_stream_wait(&t->stream))
        return status;
    return etalon_reject(ETALON_ERROR_DEVICE, "%s: %d", t->stream.failed, t->stream.code);
}

etalon_status xcheck_call_there(xcheck_trial *t, etalon_context *ctx, const oracle_args *args)
{
    const oracle_op *op = t->kernel->op;
    oracle_args      there = *args;
    forget_copies(&current);
    current.device = t->device;
    *(const char **)((char *)&there + op->kernel) = t->kernel->row;
    for (int i = 0; i < op->input_count; i++)
        TRY(send_tensor(&current, t->c, xcheck_input(op, &there, i), op->inputs[i].names, true));
    for (int i = 0; i < op->output_count; i++)
        TRY(send_tensor(&current, t->c, xcheck_output(op, &there, i), op->outputs[i].names, false));
    const etalon_status status = run_there(t, ctx, &there);
    for (int i = 0; i < current.count && status != ETALON_ERROR_DEVICE; i++)
        check_copy(&current, &current.at[i]);
    forget_copies(&current);
    return status;
}

/* Contexts
 * --------
 * Not by etalon_context_create(): rows are called by their names here, and need not qualify, which takes seconds on a
 * simulated device.
 */
etalon_status xcheck_device_context(int32_t device, const code_object *objects, etalon_context **to)
{
    etalon_context *ctx = NULL;
    uint32_t        brought = NEEDS_NONE;
    TRY(etalon_context_create(NULL, &ctx));
    etalon_status status = offload_open(device, objects, &ctx->device);
    if (status == ETALON_OK) {
        brought = features_of_device(offload_place(ctx->device)->arch);
        status = features_disable(getenv("ETALON_DISABLE"), &brought);
    }
    ctx->have |= brought;
    if (status != ETALON_OK)
        etalon_context_destroy(ctx);
    else
        *to = ctx;
    return status;
}

/* Broken kernels
 * --------------
 */
static const struct {
    const char *op, *name, *row, *stem, *what;
} broken[] = {
#define BROKEN(op, row, stem, name, what) { #op, "broken_" #row "_" #name, #row, #stem, what },
#include "broken_device.def"
#undef BROKEN
};

int broken_device_list(xcheck_kernel *kernels, int count)
{
    tensorfile_error error;
    for (size_t i = 0; i < sizeof broken / sizeof broken[0] && count < XCHECK_KERNELS; i++)
        kernels[count++] = (xcheck_kernel){ .op = oracle_find_op(broken[i].op, &error),
                                            .name = broken[i].name,
                                            .what = broken[i].what,
                                            .class = BOUND_FP32,
                                            .sound = strcmp(broken[i].what, "nothing") == 0,
                                            .row = broken[i].row,
                                            .of_device = true,
                                            .route = XCHECK_DEVICE,
                                            .stem = broken[i].stem };
    return count;
}

/* The whole file; NULL if it cannot be read. */
static unsigned char *read_file(const char *path, size_t *bytes)
{
    enum { MOST = 1 << 20 };
    unsigned char *at = malloc(MOST);
    FILE          *file = fopen(path, "rb");
    *bytes = file == NULL || at == NULL ? 0 : fread(at, 1, MOST, file);
    if (file != NULL)
        fclose(file);
    if (*bytes > 0)
        return at;
    free(at);
    return NULL;
}

/* The library's objects for one architecture, of which one is the file's. They outlive every context. */
static const code_object *with_broken_object(const xcheck_kernel *k, const char *arch, char *error, size_t room)
{
    static code_object objects[XCHECK_KERNELS][LAUNCH_MAX_KERNELS + 1];
    static int         used;
    const char        *directory = getenv("ETALON_BROKEN_OBJECTS");
    code_object       *list = objects[used++ % XCHECK_KERNELS];
    char               path[4096];
    size_t             bytes;
    int                count = 0;
    snprintf(path, sizeof path, "%s/%s.%s.co", directory == NULL ? "." : directory, k->name, arch);
    unsigned char *file = read_file(path, &bytes);
    if (file == NULL) {
        snprintf(error, room, "%s cannot be read: ETALON_BROKEN_OBJECTS names the directory", path);
        return NULL;
    }
    for (const code_object *o = code_objects; o->stem != NULL && count < LAUNCH_MAX_KERNELS; o++) {
        if (strcmp(o->arch, arch) != 0)
            continue;
        list[count] = *o;
        if (strcmp(o->stem, k->stem) == 0) {
            list[count].bytes = file;
            list[count].end = file + bytes;
        }
        count++;
    }
    list[count] = (code_object){ NULL, NULL, NULL, NULL };
    return list;
}

etalon_context *xcheck_broken_context(const xcheck_kernel *k, int32_t device, char *error, size_t bytes)
{
    etalon_context *ctx = NULL, *broken_ctx = NULL;
    if (xcheck_device_context(device, code_objects, &ctx) != ETALON_OK) {
        snprintf(error, bytes, "%s", etalon_last_error());
        return NULL;
    }
    const code_object *objects = with_broken_object(k, device_arch(ctx), error, bytes);
    etalon_context_destroy(ctx);
    if (objects != NULL && xcheck_device_context(device, objects, &broken_ctx) != ETALON_OK)
        snprintf(error, bytes, "%s", etalon_last_error());
    return broken_ctx;
}
