/* NAME.npy: "\x93NUMPY", version, header length, a Python dict literal, the data. Source: the documentation of NumPy's
 * format. */
#include "tensorfile_formats.h"

#include <limits.h>
#include <string.h>

/* The types that are read. Without a dtype of its own a file needs one from metadata.json; U8 may be given another. */
static const struct {
    const char  *descr;
    etalon_dtype dtype;
    size_t       bytes;
} descrs[] = {
    { "<f8", ETALON_F64, 8 },        { "<f4", ETALON_F32, 4 },        { "<f2", ETALON_F16, 2 },
    { "<i8", ETALON_I64, 8 },        { "<i4", ETALON_I32, 4 },        { "|u1", ETALON_U8, 1 },
    { "|i1", ETALON_DTYPE_NONE, 1 }, { "<i2", ETALON_DTYPE_NONE, 2 }, { "<u2", ETALON_DTYPE_NONE, 2 },
    { "|V1", ETALON_DTYPE_NONE, 1 }, { "|V2", ETALON_DTYPE_NONE, 2 }, { "<f1", ETALON_DTYPE_NONE, 1 },
    { "<V1", ETALON_DTYPE_NONE, 1 }, { "<V2", ETALON_DTYPE_NONE, 2 },
};

enum { DESCRS = sizeof descrs / sizeof descrs[0] };

/* The header being read: the text that is left, and what it said so far. */
typedef struct header {
    const char     *name;
    const char     *at, *end;
    char            descr[16];
    bool            has_descr, has_order, has_shape;
    tensorfile_form form;
} header;

static void skip_space(header *h)
{
    while (h->at < h->end && (*h->at == ' ' || *h->at == '\n' || *h->at == '\t' || *h->at == '\r'))
        h->at++;
}

static bool take(header *h, const char *token)
{
    const size_t length = strlen(token);
    skip_space(h);
    if ((size_t)(h->end - h->at) < length || memcmp(h->at, token, length) != 0)
        return false;
    h->at += length;
    return true;
}

/* A string without escapes, in either kind of quotes. */
static bool take_string(header *h, char *text, size_t bytes)
{
    const char *const quote = take(h, "'") ? "'" : take(h, "\"") ? "\"" : NULL;
    if (quote == NULL)
        return false;
    const char *const last = memchr(h->at, *quote, (size_t)(h->end - h->at));
    if (last == NULL || (size_t)(last - h->at) >= bytes || memchr(h->at, '\\', (size_t)(last - h->at)) != NULL)
        return false;
    memcpy(text, h->at, (size_t)(last - h->at));
    text[last - h->at] = '\0';
    h->at = last + 1;
    return true;
}

static bool take_integer(header *h, int64_t *value)
{
    const bool        negative = take(h, "-");
    const char *const first = h->at;
    for (*value = 0; h->at < h->end && *h->at >= '0' && *h->at <= '9'; h->at++)
        if (__builtin_mul_overflow(*value, 10, value) || __builtin_add_overflow(*value, *h->at - '0', value))
            return false;
    if (negative)
        *value = -*value;
    return h->at > first;
}

static bool malformed(const header *h, tensorfile_error *error)
{
    enum { SHOWN = 20 };
    const int left = h->end - h->at < SHOWN ? (int)(h->end - h->at) : SHOWN;
    return tensorfile_fail(error, "%.100s.npy: header: malformed at \"%.*s\"", h->name, left, h->at);
}

static bool read_descr(header *h, tensorfile_error *error)
{
    h->has_descr = true;
    if (take(h, "["))
        return tensorfile_fail(error, "%.100s.npy: descr: a structured type, expected a number type", h->name);
    return take_string(h, h->descr, sizeof h->descr) || malformed(h, error);
}

static bool read_order(header *h, tensorfile_error *error)
{
    h->has_order = true;
    if (take(h, "True"))
        return tensorfile_fail(error, "%.100s.npy: fortran_order: True, expected False (save numpy.ascontiguousarray)",
                               h->name);
    return take(h, "False") || malformed(h, error);
}

/* A tuple of integers: one alone must have its comma. */
static bool read_shape(header *h, tensorfile_error *error)
{
    h->has_shape = true;
    if (!take(h, "("))
        return malformed(h, error);
    bool comma = true;
    while (!take(h, ")")) {
        int64_t extent;
        if (!comma || !take_integer(h, &extent))
            return malformed(h, error);
        if (!tensorfile_add_extent(&h->form, h->name, extent, error))
            return false;
        comma = take(h, ",");
    }
    return comma || h->form.rank != 1 || malformed(h, error);
}

static bool read_value(header *h, const char *key, tensorfile_error *error)
{
    const struct {
        const char *key;
        bool        seen;
        bool (*read)(header *h, tensorfile_error *error);
    } keys[] = { { "descr", h->has_descr, read_descr },
                 { "fortran_order", h->has_order, read_order },
                 { "shape", h->has_shape, read_shape } };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (strcmp(keys[i].key, key) == 0)
            return keys[i].seen ? tensorfile_fail(error, "%.100s.npy: header: %s stands twice", h->name, key)
                                : keys[i].read(h, error);
    return tensorfile_fail(error, "%.100s.npy: header: unknown key \"%s\"", h->name, key);
}

static bool read_dict(header *h, tensorfile_error *error)
{
    if (!take(h, "{"))
        return malformed(h, error);
    bool comma = true;
    while (!take(h, "}")) {
        char key[32];
        if (!comma || !take_string(h, key, sizeof key) || !take(h, ":"))
            return malformed(h, error);
        if (!read_value(h, key, error))
            return false;
        comma = take(h, ",");
    }
    skip_space(h);
    if (h->at < h->end)
        return malformed(h, error);
    if (!h->has_descr || !h->has_order || !h->has_shape)
        return tensorfile_fail(error, "%.100s.npy: header: descr, fortran_order or shape is missing", h->name);
    return true;
}

/* The dtype that metadata.json gives the tensor: NONE if it says nothing. */
static bool find_sidecar(const tensorfile *file, const char *name, etalon_dtype *dtype, tensorfile_error *error)
{
    char key[NAME_MAX + sizeof ".dtype"];
    snprintf(key, sizeof key, "%s.dtype", name);
    const char *const value = tensorfile_metadata(file, key);
    *dtype = value == NULL ? ETALON_DTYPE_NONE : tensorfile_any_dtype(value);
    if (value != NULL && *dtype == ETALON_DTYPE_NONE)
        return tensorfile_fail(error, "metadata.json: %.100s: dtype \"%.100s\": not one that is read here", key, value);
    return true;
}

static bool choose_dtype(const tensorfile *file, header *h, tensorfile_error *error)
{
    etalon_dtype told;
    if (h->descr[0] == '>')
        return tensorfile_fail(error, "%.100s.npy: descr '%s': big-endian, expected little-endian", h->name, h->descr);
    int i = 0;
    while (i < DESCRS && strcmp(descrs[i].descr, h->descr) != 0)
        i++;
    if (i == DESCRS)
        return tensorfile_fail(error, "%.100s.npy: descr '%s': not a type that is read here", h->name, h->descr);
    if (!find_sidecar(file, h->name, &told, error))
        return false;
    const bool bytes_only = descrs[i].dtype == ETALON_DTYPE_NONE || descrs[i].dtype == ETALON_U8;
    if (told != ETALON_DTYPE_NONE && told != descrs[i].dtype &&
        !(bytes_only && etalon_dtype_bytes(told) == descrs[i].bytes))
        return tensorfile_fail(error, "%.100s.npy: descr '%s' does not hold %s, the dtype in metadata.json", h->name,
                               h->descr, etalon_dtype_name(told));
    h->form.dtype = told != ETALON_DTYPE_NONE ? told : descrs[i].dtype;
    if (h->form.dtype == ETALON_DTYPE_NONE)
        return tensorfile_fail(error,
                               "%.100s.npy: descr '%s' names no number format: metadata.json must, as in "
                               "{\"%.100s.dtype\": \"F8_E4M3\"}",
                               h->name, h->descr, h->name);
    return true;
}

/* Version 1 has two bytes of header length, 2 and 3 have four. */
static bool split(const char *name, tensorfile_bytes all, tensorfile_bytes *text, tensorfile_bytes *data,
                  tensorfile_error *error)
{
    static const unsigned char magic[] = { 0x93, 'N', 'U', 'M', 'P', 'Y' };
    enum { VERSION_AT = sizeof magic, LENGTH_AT = VERSION_AT + 2 };
    if (all.count < LENGTH_AT + 2 || memcmp(all.at, magic, sizeof magic) != 0)
        return tensorfile_fail(error, "%.100s.npy: does not begin as a .npy file does", name);
    const int major = all.at[VERSION_AT];
    if (major < 1 || major > 3 || all.at[VERSION_AT + 1] != 0)
        return tensorfile_fail(error, "%.100s.npy: version %d.%d, expected 1.0 to 3.0", name, major,
                               all.at[VERSION_AT + 1]);
    const size_t first = LENGTH_AT + (major == 1 ? 2 : 4);
    size_t       length = 0;
    for (size_t i = first; i > LENGTH_AT && first <= all.count; i--)
        length = length << 8 | all.at[i - 1];
    if (first > all.count || length > all.count - first)
        return tensorfile_fail(error, "%.100s.npy: header: length %zu, but the file has %zu bytes (truncated file)",
                               name, length, all.count);
    *text = (tensorfile_bytes){ all.at + first, length };
    *data = (tensorfile_bytes){ all.at + first + length, all.count - first - length };
    return true;
}

bool npy_read(tensorfile *file, int directory, const char *member, tensorfile_error *error)
{
    tensorfile_bytes all = { 0 }, text = { 0 }, data = { 0 };
    char             name[NAME_MAX + 1];
    snprintf(name, sizeof name, "%.*s", (int)(strlen(member) - strlen(".npy")), member);
    if (!tensorfile_map(file, directory, member, &all, error) || !split(name, all, &text, &data, error))
        return false;
    header h = { .name = name, .at = (const char *)text.at, .end = (const char *)text.at + text.count };
    return read_dict(&h, error) && choose_dtype(file, &h, error) && tensorfile_add(file, name, &h.form, data, error);
}
