#include "tensor.h"

#include <stdlib.h>
#include <string.h>

const char *etalon_dtype_name(etalon_dtype dtype)
{
    switch (dtype) {
#define DTYPE(dtype, name, bytes, kind) \
    case dtype:                         \
        return name;
#include "dtype.def"
#undef DTYPE
    case ETALON_DTYPE_NONE:
        break;
    }
    return "none";
}

size_t etalon_dtype_bytes(etalon_dtype dtype)
{
    switch (dtype) {
#define DTYPE(dtype, name, bytes, kind) \
    case dtype:                         \
        return bytes;
#include "dtype.def"
#undef DTYPE
    case ETALON_DTYPE_NONE:
        break;
    }
    return 0;
}

etalon_tensor etalon_tensor_dense(void *data, etalon_dtype dtype, int32_t rank, const int64_t *shape)
{
    etalon_tensor t = { .data = data, .dtype = dtype, .device = ETALON_HOST, .rank = rank };
    int64_t       stride = 1;
    if (rank < 0 || rank > ETALON_MAX_RANK)
        return t; /* every operation refuses it */
    for (int32_t d = rank - 1; d >= 0; d--) {
        t.shape[d] = shape[d];
        t.stride[d] = stride;
        if (__builtin_mul_overflow(stride, shape[d], &stride))
            stride = 0;
    }
    return t;
}

/* Sum of (extent - 1) * |stride| in bytes; false where it leaves 63 bits. */
static bool reach_bytes(const etalon_tensor *t, int64_t *reach)
{
    const int64_t bytes = (int64_t)etalon_dtype_bytes(t->dtype);
    *reach = bytes;
    for (int32_t d = 0; d < t->rank; d++) {
        int64_t step, far;
        if (t->stride[d] == INT64_MIN || __builtin_mul_overflow(llabs(t->stride[d]), bytes, &step) ||
            __builtin_mul_overflow(step, t->shape[d] - 1, &far) || __builtin_add_overflow(*reach, far, reach))
            return false;
    }
    return true;
}

static bool elements_fit(const etalon_tensor *t)
{
    int64_t elements = (int64_t)etalon_dtype_bytes(t->dtype);
    for (int32_t d = 0; d < t->rank; d++)
        if (__builtin_mul_overflow(elements, t->shape[d], &elements))
            return false;
    return true;
}

static void dtype_list(uint32_t dtypes, char *text, size_t bytes)
{
    text[0] = '\0';
    for (int d = 0; d < 32; d++) {
        if (!(dtypes & DTYPE_BIT(d)))
            continue;
        if (text[0] != '\0')
            strncat(text, " or ", bytes - strlen(text) - 1);
        strncat(text, etalon_dtype_name((etalon_dtype)d), bytes - strlen(text) - 1);
    }
}

etalon_status tensor_check(const char *op, const char *name, const etalon_tensor *t, int32_t rank, uint32_t dtypes)
{
    REQUIRE(!tensor_absent(t), "%s: %s: missing", op, name);
    REQUIRE(t->rank == rank, "%s: %s: rank %" PRId32 ", expected %" PRId32, op, name, t->rank, rank);
    if ((unsigned)t->dtype >= 32 || !(dtypes & DTYPE_BIT(t->dtype))) {
        char want[128];
        dtype_list(dtypes, want, sizeof want);
        REQUIRE(false, "%s: %s: dtype %s, expected %s", op, name, etalon_dtype_name(t->dtype), want);
    }
    for (int32_t d = 0; d < rank; d++)
        REQUIRE(t->shape[d] >= 0, "%s: %s.shape[%" PRId32 "]: %" PRId64 ", expected 0 or more", op, name, d,
                t->shape[d]);
    REQUIRE((uintptr_t)t->data % etalon_dtype_bytes(t->dtype) == 0,
            "%s: %s: address %p, expected a multiple of %zu (%s)", op, name, t->data, etalon_dtype_bytes(t->dtype),
            etalon_dtype_name(t->dtype));
    REQUIRE(tensor_empty(t) || elements_fit(t), "%s: %s: the number of elements overflows 64 bits", op, name);
    int64_t reach;
    REQUIRE(tensor_empty(t) || reach_bytes(t, &reach), "%s: %s: shape times stride overflows 64 bits", op, name);
    return ETALON_OK;
}

etalon_status tensor_check_extent(const char *op, const char *name, const etalon_tensor *t, int32_t dim, int64_t want,
                                  const char *rule)
{
    REQUIRE(t->shape[dim] == want, "%s: %s.shape[%" PRId32 "]: %" PRId64 ", expected %" PRId64 " (%s)", op, name, dim,
            t->shape[dim], want, rule);
    return ETALON_OK;
}

/* Of the dimensions with more than one element that are not done, the one with the least |stride|; -1 if none is
 * left. */
static int32_t next_by_stride(const etalon_tensor *t, bool *done)
{
    int32_t least = -1;
    for (int32_t d = 0; d < t->rank; d++)
        if (!done[d] && t->shape[d] > 1 && (least < 0 || llabs(t->stride[d]) < llabs(t->stride[least])))
            least = d;
    if (least >= 0)
        done[least] = true;
    return least;
}

/* By rising |stride|, each dimension must step over all that the smaller ones reach. */
static etalon_status check_distinct(const char *op, const char *name, const etalon_tensor *t)
{
    int64_t reach = 0;
    bool    done[ETALON_MAX_RANK] = { false };
    for (int32_t d; (d = next_by_stride(t, done)) >= 0;) {
        REQUIRE(llabs(t->stride[d]) > reach,
                "%s: %s.stride[%" PRId32 "]: %" PRId64 ", expected more than %" PRId64 ": elements would overlap", op,
                name, d, t->stride[d], reach);
        reach += (t->shape[d] - 1) * llabs(t->stride[d]);
    }
    return ETALON_OK;
}

void tensor_span(const etalon_tensor *t, uintptr_t *first, uintptr_t *last)
{
    const int64_t bytes = (int64_t)etalon_dtype_bytes(t->dtype);
    *first = (uintptr_t)t->data;
    *last = *first + (uintptr_t)bytes;
    for (int32_t d = 0; d < t->rank; d++) {
        const int64_t far = (t->shape[d] - 1) * t->stride[d] * bytes;
        if (far < 0)
            *first -= (uintptr_t)-far;
        else
            *last += (uintptr_t)far;
    }
}

/* No dimension steps past the end of what the smaller ones cover. */
bool tensor_dense(const etalon_tensor *t)
{
    int64_t reach = 0;
    bool    done[ETALON_MAX_RANK] = { false };
    for (int32_t d; (d = next_by_stride(t, done)) >= 0;) {
        if (llabs(t->stride[d]) > reach + 1)
            return false;
        reach += (t->shape[d] - 1) * llabs(t->stride[d]);
    }
    return true;
}

etalon_status tensor_check_output(const char *op, const char *name, const etalon_tensor *t, const char *const *names,
                                  const etalon_tensor *const *inputs, int count)
{
    if (tensor_empty(t))
        return ETALON_OK;
    TRY(check_distinct(op, name, t));
    uintptr_t first, last;
    tensor_span(t, &first, &last);
    for (int i = 0; i < count && tensor_dense(t); i++) {
        if (tensor_absent(inputs[i]) || tensor_empty(inputs[i]))
            continue;
        uintptr_t from, to;
        tensor_span(inputs[i], &from, &to);
        REQUIRE(last <= from || to <= first || !tensor_dense(inputs[i]), "%s: %s: overlaps %s in memory", op, name,
                names[i]);
    }
    return ETALON_OK;
}

etalon_status tensor_check_device(const char *op, const char *const *names, const etalon_tensor *const *tensors,
                                  int count)
{
    int first = -1;
    for (int i = 0; i < count; i++) {
        if (tensor_absent(tensors[i]))
            continue;
        REQUIRE(tensors[i]->device >= ETALON_HOST, "%s: %s.device: %" PRId32 ", expected a device number or %d (host)",
                op, names[i], tensors[i]->device, ETALON_HOST);
        if (first < 0)
            first = i;
        REQUIRE(tensors[i]->device == tensors[first]->device,
                "%s: %s.device: %" PRId32 ", expected %" PRId32 " (that of %s)", op, names[i], tensors[i]->device,
                tensors[first]->device, names[first]);
    }
    return ETALON_OK;
}

etalon_status tensor_check_cu_seqlens(const char *op, const char *name, const etalon_tensor *t, int64_t total,
                                      const char *rule)
{
    const int64_t last = t->shape[0] - 1;
    REQUIRE(index_at(t, 0) == 0, "%s: %s[0]: %" PRId64 ", expected 0", op, name, index_at(t, 0));
    for (int64_t b = 0; b < last; b++)
        REQUIRE(index_at(t, b + 1) >= index_at(t, b),
                "%s: %s[%" PRId64 "]: %" PRId64 ", expected at least %" PRId64 ": it must not decrease", op, name,
                b + 1, index_at(t, b + 1), index_at(t, b));
    REQUIRE(index_at(t, last) == total, "%s: %s[%" PRId64 "]: %" PRId64 ", expected %" PRId64 " (%s)", op, name, last,
            index_at(t, last), total, rule);
    return ETALON_OK;
}
