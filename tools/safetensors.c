/* safetensors: 8 bytes of header length, little-endian; a JSON object {name: {dtype, shape, data_offsets}}, the offsets
 * [begin, end) counted from the end of the header; the data, without gaps. Source: the format's README. */
#include "tensorfile_formats.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char METADATA[] = "__metadata__";

enum { LENGTH_BYTES = 8 };

/* One tensor of the header. */
typedef struct place {
    const char     *name;
    tensorfile_form form;
    int64_t         begin, end;
} place;

/* What people hand over instead. */
static bool refuse_others(tensorfile_bytes all, tensorfile_error *error)
{
    static const struct {
        const char *magic, *is;
    } others[] = {
        { "\x93NUMPY", "a single .npy file, which has no tensor name; put NAME.npy into a directory and give that" },
        { "PK\x03\x04", "a zip archive, as torch.save and numpy.savez write it, and not safetensors" },
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (all.count >= strlen(others[i].magic) && memcmp(all.at, others[i].magic, strlen(others[i].magic)) == 0)
            return tensorfile_fail(error, "%s", others[i].is);
    return true;
}

static bool split(tensorfile_bytes all, tensorfile_bytes *header, tensorfile_bytes *data, tensorfile_error *error)
{
    if (!refuse_others(all, error))
        return false;
    if (all.count < LENGTH_BYTES)
        return tensorfile_fail(error, "header: the file has %zu bytes, expected %d and more", all.count, LENGTH_BYTES);
    uint64_t length = 0;
    for (int i = LENGTH_BYTES - 1; i >= 0; i--)
        length = length << 8 | all.at[i];
    if (length > TENSORFILE_MAX_JSON)
        return tensorfile_fail(error, "header: length %" PRIu64 ", expected at most %d", length, TENSORFILE_MAX_JSON);
    if (length > all.count - LENGTH_BYTES)
        return tensorfile_fail(error, "header: length %" PRIu64 ", but only %zu bytes follow (truncated file)", length,
                               all.count - LENGTH_BYTES);
    *header = (tensorfile_bytes){ all.at + LENGTH_BYTES, (size_t)length };
    *data = (tensorfile_bytes){ header->at + length, all.count - LENGTH_BYTES - (size_t)length };
    if (length == 0 || header->at[0] != '{')
        return tensorfile_fail(error, "header: not a JSON object: it must begin with '{'");
    return true;
}

static bool read_dtype(place *p, const json_t *info, tensorfile_error *error)
{
    const char *const name = json_string_value(json_object_get(info, "dtype"));
    if (name == NULL)
        return tensorfile_fail(error, "%.100s: dtype: missing, or not a string", p->name);
    p->form.dtype = tensorfile_safetensors_dtype(name);
    if (p->form.dtype == ETALON_DTYPE_NONE)
        return tensorfile_fail(error, "%.100s: dtype \"%.100s\": not one that is read here", p->name, name);
    return true;
}

static bool read_shape(place *p, const json_t *info, tensorfile_error *error)
{
    const json_t *const shape = json_object_get(info, "shape");
    if (!json_is_array(shape))
        return tensorfile_fail(error, "%.100s: shape: missing, or not an array", p->name);
    for (size_t d = 0; d < json_array_size(shape); d++) {
        const json_t *const extent = json_array_get(shape, d);
        if (!json_is_integer(extent))
            return tensorfile_fail(error, "%.100s.shape[%zu]: not an integer", p->name, d);
        if (!tensorfile_add_extent(&p->form, p->name, json_integer_value(extent), error))
            return false;
    }
    return true;
}

static bool read_offsets(place *p, const json_t *info, tensorfile_bytes data, tensorfile_error *error)
{
    const json_t *const offsets = json_object_get(info, "data_offsets");
    const json_t *const begin = json_array_get(offsets, 0), *const end = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(begin) || !json_is_integer(end))
        return tensorfile_fail(error, "%.100s: data_offsets: missing, or not two integers", p->name);
    p->begin = json_integer_value(begin);
    p->end = json_integer_value(end);
    if (p->begin < 0 || p->end < p->begin)
        return tensorfile_fail(error, "%.100s: data_offsets: [%" PRId64 ", %" PRId64 "], expected 0 <= begin <= end",
                               p->name, p->begin, p->end);
    if ((uint64_t)p->end > data.count)
        return tensorfile_fail(
            error, "%.100s: data_offsets[1]: %" PRId64 ", but the file has %zu bytes of data (truncated file)", p->name,
            p->end, data.count);
    return true;
}

static bool read_place(place *p, const char *name, const json_t *info, tensorfile_bytes data, tensorfile_error *error)
{
    *p = (place){ .name = name };
    if (!json_is_object(info))
        return tensorfile_fail(error, "%.100s: not an object with dtype, shape and data_offsets", name);
    return read_dtype(p, info, error) && read_shape(p, info, error) && read_offsets(p, info, data, error);
}

static int compare_places(const void *a, const void *b)
{
    const place *const x = a, *const y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

/* Each tensor begins where the one before it ends, and the last one ends the file. */
static bool check_places(const place *places, size_t count, tensorfile_bytes data, tensorfile_error *error)
{
    int64_t end = 0;
    for (size_t i = 0; i < count; i++) {
        const place *const p = &places[i];
        if (p->begin < end)
            return tensorfile_fail(error, "%.100s: data_offsets[0]: %" PRId64 ", expected %" PRId64 ": overlaps %.100s",
                                   p->name, p->begin, end, places[i - 1].name);
        if (p->begin > end)
            return tensorfile_fail(
                error, "%.100s: data_offsets[0]: %" PRId64 ", expected %" PRId64 ": a gap that belongs to no tensor",
                p->name, p->begin, end);
        end = p->end;
    }
    if ((uint64_t)end != data.count)
        return tensorfile_fail(error, "data: %zu bytes, expected %" PRId64 " (end of the last tensor): trailing bytes",
                               data.count, end);
    return true;
}

static bool add_places(tensorfile *file, const place *places, size_t count, tensorfile_bytes data,
                       tensorfile_error *error)
{
    for (size_t i = 0; i < count; i++) {
        const place *const     p = &places[i];
        const tensorfile_bytes part = { data.at + p->begin, (size_t)(p->end - p->begin) };
        if (!tensorfile_add(file, p->name, &p->form, part, error))
            return false;
    }
    return true;
}

static bool read_places(tensorfile *file, json_t *header, place *places, tensorfile_bytes data, tensorfile_error *error)
{
    size_t      count = 0;
    const char *name;
    json_t     *info;
    json_object_foreach(header, name, info)
    {
        if (strcmp(name, METADATA) == 0) {
            if (!tensorfile_add_metadata(file, info, METADATA, error))
                return false;
        } else if (!read_place(&places[count++], name, info, data, error)) {
            return false;
        }
    }
    qsort(places, count, sizeof places[0], compare_places);
    return check_places(places, count, data, error) && add_places(file, places, count, data, error);
}

bool safetensors_read(tensorfile *file, const char *path, tensorfile_error *error)
{
    tensorfile_bytes all = { 0 }, text = { 0 }, data = { 0 };
    if (!tensorfile_map(file, AT_FDCWD, path, &all, error) || !split(all, &text, &data, error))
        return false;
    json_t *const header = tensorfile_json(text, "header", error);
    if (header == NULL)
        return false;
    place *const places = calloc(json_object_size(header) + 1 /* calloc(0) may be NULL */, sizeof *places);
    const bool   done =
        places != NULL ? read_places(file, header, places, data, error) : tensorfile_fail(error, "out of memory");
    free(places);
    json_decref(header);
    return done;
}

/* Writing */

static bool set(json_t *object, const char *key, json_t *value, const char *what, tensorfile_error *error)
{
    if (json_object_get(object, key) != NULL) {
        json_decref(value);
        return tensorfile_fail(error, "%s \"%.100s\": given twice", what, key);
    }
    if (value == NULL || json_object_set_new(object, key, value) != 0)
        return tensorfile_fail(error, "%s \"%.100s\": cannot be written as JSON (not UTF-8, or out of memory)", what,
                               key);
    return true;
}

static bool check_entry(const tensorfile_entry *entry, size_t *bytes, tensorfile_error *error)
{
    const etalon_tensor *const t = &entry->tensor;
    tensorfile_form            form = { .dtype = t->dtype };
    if (strcmp(entry->name, METADATA) == 0)
        return tensorfile_fail(error, "%s: a name that safetensors keeps for itself", METADATA);
    if (tensorfile_safetensors_name(t->dtype) == NULL)
        return tensorfile_fail(error, "%.100s: dtype: none that safetensors has", entry->name);
    if (t->device != ETALON_HOST)
        return tensorfile_fail(error, "%.100s.device: %" PRId32 ", expected %d (host)", entry->name, t->device,
                               ETALON_HOST);
    if (t->rank < 0 || t->rank > ETALON_MAX_RANK)
        return tensorfile_fail(error, "%.100s: rank %" PRId32 ", expected 0 to %d", entry->name, t->rank,
                               ETALON_MAX_RANK);
    for (int32_t d = 0; d < t->rank; d++)
        if (!tensorfile_add_extent(&form, entry->name, t->shape[d], error))
            return false;
    if (!tensorfile_form_bytes(&form, entry->name, bytes, error))
        return false;
    if (t->data == NULL && *bytes > 0)
        return tensorfile_fail(error, "%.100s: no data", entry->name);
    return true;
}

/* NULL without memory. */
static json_t *shape_json(const etalon_tensor *t)
{
    json_t *shape = json_array();
    for (int32_t d = 0; d < t->rank && shape != NULL; d++) {
        if (json_array_append_new(shape, json_integer(t->shape[d])) != 0) {
            json_decref(shape);
            shape = NULL;
        }
    }
    return shape;
}

static bool add_info(json_t *header, const tensorfile_entry *entry, int64_t *end, tensorfile_error *error)
{
    size_t  bytes;
    int64_t begin = *end;
    if (!check_entry(entry, &bytes, error))
        return false;
    if (__builtin_add_overflow(begin, bytes, end))
        return tensorfile_fail(error, "%.100s: ends beyond 63 bits of bytes", entry->name);
    return set(header, entry->name,
               json_pack("{s:s, s:o, s:[I, I]}", "dtype", tensorfile_safetensors_name(entry->tensor.dtype), "shape",
                         shape_json(&entry->tensor), "data_offsets", (json_int_t)begin, (json_int_t)*end),
               "tensor", error);
}

static bool add_metadata(json_t *header, const tensorfile_pair *pairs, int count, tensorfile_error *error)
{
    if (count == 0)
        return true;
    json_t *const object = json_object();
    if (!set(header, METADATA, object, "metadata", error))
        return false;
    for (int i = 0; i < count; i++)
        if (!set(object, pairs[i].key, json_string(pairs[i].value), "metadata", error))
            return false;
    return true;
}

static bool add_infos(json_t *header, const tensorfile_entry *const *order, int count, tensorfile_error *error)
{
    int64_t end = 0;
    for (int i = 0; i < count; i++)
        if (!add_info(header, order[i], &end, error))
            return false;
    return true;
}

/* The length and the JSON, padded with spaces so that the data begins on a multiple of 8. */
static bool write_header(FILE *out, const json_t *header, tensorfile_error *error)
{
    char *const text = json_dumps(header, JSON_COMPACT);
    if (text == NULL)
        return tensorfile_fail(error, "header: out of memory");
    const size_t bytes = strlen(text), padded = (bytes + LENGTH_BYTES - 1) / LENGTH_BYTES * LENGTH_BYTES;
    const bool   fits = padded <= TENSORFILE_MAX_JSON;
    for (int i = 0; i < LENGTH_BYTES && fits; i++)
        putc((int)(padded >> 8 * i & 0xFF), out);
    if (fits)
        fprintf(out, "%s%*s", text, (int)(padded - bytes), "");
    free(text);
    return fits || tensorfile_fail(error, "header: %zu bytes, expected at most %d", padded, TENSORFILE_MAX_JSON);
}

/* The dimension from which on the elements lie one after another, and how many those are. */
static int32_t dense_from(const etalon_tensor *t, int64_t *run)
{
    int32_t d = t->rank;
    for (*run = 1; d > 0 && (t->shape[d - 1] == 1 || t->stride[d - 1] == *run); d--)
        *run *= t->shape[d - 1];
    return d;
}

static void write_part(FILE *out, const etalon_tensor *t, int32_t dim, int32_t dense, int64_t run, const char *at)
{
    const size_t bytes = etalon_dtype_bytes(t->dtype);
    if (dim == dense) {
        fwrite(at, bytes, (size_t)run, out);
        return;
    }
    for (int64_t i = 0; i < t->shape[dim] && !ferror(out); i++)
        write_part(out, t, dim + 1, dense, run, at + i * t->stride[dim] * (int64_t)bytes);
}

static bool is_empty(const etalon_tensor *t)
{
    for (int32_t d = 0; d < t->rank; d++)
        if (t->shape[d] == 0)
            return true;
    return false;
}

static void write_tensor(FILE *out, const etalon_tensor *t)
{
    int64_t run;
    if (is_empty(t))
        return;
    const int32_t dense = dense_from(t, &run);
    write_part(out, t, 0, dense, run, t->data);
}

/* Wide dtypes first: then each begins on a multiple of its size. Entries of one size keep their order. */
static void order_entries(const tensorfile_entry *entries, int count, const tensorfile_entry **order)
{
    static const size_t sizes[] = { 8, 4, 2, 1, 0 /* no dtype; refused later */ };
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (int i = 0; i < count; i++)
            if (etalon_dtype_bytes(entries[i].tensor.dtype) == sizes[s])
                *order++ = &entries[i];
}

static bool write_ordered(FILE *out, const tensorfile_entry *const *order, int count, const tensorfile_pair *metadata,
                          int metadata_count, tensorfile_error *error)
{
    json_t *const header = json_object();
    const bool done = add_metadata(header, metadata, metadata_count, error) && add_infos(header, order, count, error) &&
                      write_header(out, header, error);
    json_decref(header);
    for (int i = 0; i < count && done; i++)
        write_tensor(out, &order[i]->tensor);
    if (done && (fflush(out) != 0 || ferror(out)))
        return tensorfile_fail(error, "cannot be written: %s", strerror(errno));
    return done;
}

bool safetensors_write(FILE *out, const tensorfile_entry *entries, int count, const tensorfile_pair *metadata,
                       int metadata_count, tensorfile_error *error)
{
    const tensorfile_entry **const order = calloc((size_t)count + 1, sizeof *order);
    if (order == NULL)
        return tensorfile_fail(error, "out of memory");
    order_entries(entries, count, order);
    const bool done = write_ordered(out, order, count, metadata, metadata_count, error);
    free(order);
    return done;
}
