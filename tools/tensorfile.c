#include "tensorfile_formats.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tensor data is used as it lies in the file");

bool tensorfile_fail(tensorfile_error *error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    for (char *c = error->text; *c != '\0'; c++)
        if (*c < 0x20 || *c > 0x7E)
            *c = '?';
    return false;
}

static bool out_of_memory(tensorfile_error *error)
{
    return tensorfile_fail(error, "out of memory");
}

/* Names of dtypes */

static const struct {
    etalon_dtype dtype;
    const char  *safetensors, *torch;
} dtypes[] = {
    { ETALON_F64, "F64", "float64" },
    { ETALON_F32, "F32", "float32" },
    { ETALON_F16, "F16", "float16" },
    { ETALON_BF16, "BF16", "bfloat16" },
    { ETALON_E4M3FN, "F8_E4M3", "float8_e4m3fn" },
    { ETALON_E4M3FNUZ, "F8_E4M3FNUZ", "float8_e4m3fnuz" },
    { ETALON_E5M2, "F8_E5M2", "float8_e5m2" },
    { ETALON_E8M0, "F8_E8M0", "float8_e8m0fnu" },
    { ETALON_I64, "I64", "int64" },
    { ETALON_I32, "I32", "int32" },
    { ETALON_U8, "U8", "uint8" },
};

enum { DTYPES = sizeof dtypes / sizeof dtypes[0] };

const char *tensorfile_safetensors_name(etalon_dtype dtype)
{
    for (int i = 0; i < DTYPES; i++)
        if (dtypes[i].dtype == dtype)
            return dtypes[i].safetensors;
    return NULL;
}

etalon_dtype tensorfile_safetensors_dtype(const char *name)
{
    for (int i = 0; i < DTYPES; i++)
        if (strcmp(dtypes[i].safetensors, name) == 0)
            return dtypes[i].dtype;
    return ETALON_DTYPE_NONE;
}

etalon_dtype tensorfile_any_dtype(const char *name)
{
    static const char prefix[] = "torch.";
    const char *const torch = strncmp(name, prefix, strlen(prefix)) == 0 ? name + strlen(prefix) : name;
    for (int i = 0; i < DTYPES; i++)
        if (strcmp(dtypes[i].torch, torch) == 0 || strcmp(etalon_dtype_name(dtypes[i].dtype), name) == 0)
            return dtypes[i].dtype;
    return tensorfile_safetensors_dtype(name);
}

/* Memory behind the entries */

typedef struct block {
    struct block *next;
    void         *mapping; /* NULL: the content follows the block itself */
    size_t        bytes;
} block;

static void release(block *first)
{
    while (first != NULL) {
        block *const next = first->next;
        if (first->mapping != NULL)
            munmap(first->mapping, first->bytes);
        free(first);
        first = next;
    }
}

static block *own(tensorfile *file, size_t content_bytes)
{
    block *const made = content_bytes > SIZE_MAX - sizeof *made ? NULL : malloc(sizeof *made + content_bytes);
    if (made != NULL) {
        *made = (block){ .next = file->owner };
        file->owner = made;
    }
    return made;
}

/* Where a tensor without elements, or a file without bytes, points to: aligned for every dtype. */
static uint64_t nowhere;

/* MAP_NORESERVE: a private writable mapping would otherwise count against memory, and a larger file be refused. */
static bool map_open(tensorfile *file, int descriptor, const char *at, tensorfile_bytes *bytes, tensorfile_error *error)
{
    struct stat status;
    if (fstat(descriptor, &status) != 0)
        return tensorfile_fail(error, "%scannot be opened: %s", at, strerror(errno));
    if (!S_ISREG(status.st_mode))
        return tensorfile_fail(error, "%snot a regular file", at);
    *bytes = (tensorfile_bytes){ (unsigned char *)&nowhere, (size_t)status.st_size };
    if (status.st_size == 0)
        return true;
    block *const owned = own(file, 0);
    if (owned == NULL)
        return out_of_memory(error);
    void *const mapping = mmap(NULL, bytes->count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, descriptor, 0);
    if (mapping == MAP_FAILED)
        return tensorfile_fail(error, "%scannot be mapped: %s", at, strerror(errno));
    owned->mapping = bytes->at = mapping;
    owned->bytes = bytes->count;
    return true;
}

bool tensorfile_map(tensorfile *file, int directory, const char *path, tensorfile_bytes *bytes, tensorfile_error *error)
{
    char at[300] = "";
    if (directory != AT_FDCWD)
        snprintf(at, sizeof at, "%s: ", path);
    const int descriptor = openat(directory, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK /* a FIFO must not wait */);
    if (descriptor < 0)
        return tensorfile_fail(error, "%scannot be opened: %s", at, strerror(errno));
    const bool done = map_open(file, descriptor, at, bytes, error);
    close(descriptor);
    return done;
}

/* Metadata */

json_t *tensorfile_json(tensorfile_bytes text, const char *what, tensorfile_error *error)
{
    if (text.count > TENSORFILE_MAX_JSON) {
        tensorfile_fail(error, "%s: %zu bytes, expected at most %d", what, text.count, TENSORFILE_MAX_JSON);
        return NULL;
    }
    json_error_t  problem;
    json_t *const object = json_loadb((const char *)text.at, text.count, JSON_REJECT_DUPLICATES, &problem);
    if (object == NULL) {
        tensorfile_fail(error, "%s: malformed JSON at byte %d: %s", what, problem.position, problem.text);
        return NULL;
    }
    if (!json_is_object(object)) {
        tensorfile_fail(error, "%s: not a JSON object", what);
        json_decref(object);
        return NULL;
    }
    return object;
}

/* Room for one more element behind `count` of them: the array doubles whenever count reaches a power of two. */
static void *grown(void *array, int count, size_t bytes)
{
    const bool full = (count & (count - 1)) == 0;
    return full ? realloc(array, (count == 0 ? 1 : 2 * (size_t)count) * bytes) : array;
}

bool tensorfile_add_metadata(tensorfile *file, const json_t *object, const char *what, tensorfile_error *error)
{
    if (!json_is_object(object))
        return tensorfile_fail(error, "%s: not an object of strings", what);
    const char *key;
    json_t     *value;
    json_object_foreach((json_t *)object, key, value)
    {
        if (!json_is_string(value))
            return tensorfile_fail(error, "%s: the value of \"%.100s\" is not a string", what, key);
        tensorfile_pair *const pairs = grown(file->metadata, file->metadata_count, sizeof *pairs);
        if (pairs == NULL)
            return out_of_memory(error);
        file->metadata = pairs;
        tensorfile_pair *const pair = &pairs[file->metadata_count++];
        *pair = (tensorfile_pair){ strdup(key), strdup(json_string_value(value)) };
        if (pair->key == NULL || pair->value == NULL)
            return out_of_memory(error);
    }
    return true;
}

/* Entries */

bool tensorfile_add_extent(tensorfile_form *form, const char *name, int64_t extent, tensorfile_error *error)
{
    if (form->rank == ETALON_MAX_RANK)
        return tensorfile_fail(error, "%.100s: more than %d dimensions", name, ETALON_MAX_RANK);
    if (extent < 0)
        return tensorfile_fail(error, "%.100s.shape[%" PRId32 "]: %" PRId64 ", expected 0 or more", name, form->rank,
                               extent);
    form->shape[form->rank++] = extent;
    return true;
}

bool tensorfile_form_bytes(const tensorfile_form *form, const char *name, size_t *bytes, tensorfile_error *error)
{
    int64_t most = (int64_t)etalon_dtype_bytes(form->dtype);
    bool    empty = false;
    for (int32_t d = 0; d < form->rank; d++) {
        empty = empty || form->shape[d] == 0;
        if (__builtin_mul_overflow(most, form->shape[d] == 0 ? 1 : form->shape[d], &most))
            return tensorfile_fail(error, "%.100s.shape[%" PRId32 "]: %" PRId64 ": shape times dtype overflows 63 bits",
                                   name, d, form->shape[d]);
    }
    *bytes = empty ? 0 : (size_t)most;
    return true;
}

/* `data` itself where it is aligned for the dtype, else a copy; NULL without memory. */
static void *align(tensorfile *file, tensorfile_bytes data, size_t alignment)
{
    if (data.count == 0)
        return &nowhere;
    if ((uintptr_t)data.at % alignment == 0)
        return data.at;
    block *const owned = own(file, data.count);
    return owned == NULL ? NULL : memcpy(owned + 1, data.at, data.count);
}

bool tensorfile_add(tensorfile *file, const char *name, const tensorfile_form *form, tensorfile_bytes data,
                    tensorfile_error *error)
{
    size_t bytes;
    if (!tensorfile_form_bytes(form, name, &bytes, error))
        return false;
    if (data.count != bytes)
        return tensorfile_fail(error, "%.100s: %zu bytes of data, expected %zu (shape times dtype)", name, data.count,
                               bytes);
    tensorfile_entry *const entries = grown(file->entries, file->count, sizeof *entries);
    if (entries == NULL)
        return out_of_memory(error);
    file->entries = entries;
    tensorfile_entry *const entry = &entries[file->count++];
    void *const             at = align(file, data, etalon_dtype_bytes(form->dtype));
    *entry = (tensorfile_entry){ strdup(name), etalon_tensor_dense(at, form->dtype, form->rank, form->shape) };
    return (entry->name != NULL && at != NULL) || out_of_memory(error);
}

/* Reading */

static bool has_suffix(const char *name, const char *suffix)
{
    const size_t length = strlen(name), tail = strlen(suffix);
    return length > tail && strcmp(name + length - tail, suffix) == 0;
}

static bool read_sidecar(tensorfile *file, int directory, tensorfile_error *error)
{
    static const char sidecar[] = "metadata.json";
    if (faccessat(directory, sidecar, F_OK, 0) != 0)
        return true;
    tensorfile_bytes text;
    if (!tensorfile_map(file, directory, sidecar, &text, error))
        return false;
    json_t *const object = tensorfile_json(text, sidecar, error);
    const bool    done = object != NULL && tensorfile_add_metadata(file, object, sidecar, error);
    json_decref(object);
    return done;
}

static bool read_member(tensorfile *file, int directory, const char *member, tensorfile_error *error)
{
    static const struct {
        const char *suffix;
        bool (*read)(tensorfile *file, int directory, const char *member, tensorfile_error *error);
    } formats[] = { { ".npy", npy_read }, { ".bin", aiter_read_bin }, { ".meta", aiter_check_meta } };
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (has_suffix(member, formats[i].suffix))
            return formats[i].read(file, directory, member, error);
    return true;
}

static int is_visible(const struct dirent *member)
{
    return member->d_name[0] != '.';
}

/* In the order of the names, so that of several faults always the same one is told. */
static bool read_members(tensorfile *file, const char *path, int directory, tensorfile_error *error)
{
    struct dirent **members;
    const int       count = scandir(path, &members, is_visible, alphasort);
    if (count < 0)
        return tensorfile_fail(error, "cannot be listed: %s", strerror(errno));
    bool done = true;
    for (int i = 0; i < count; i++) {
        done = done && read_member(file, directory, members[i]->d_name, error);
        free(members[i]);
    }
    free(members);
    if (done && file->count == 0)
        return tensorfile_fail(error, "a directory without NAME.npy and without NAME.bin + NAME.meta");
    return done;
}

static bool read_directory(tensorfile *file, const char *path, tensorfile_error *error)
{
    const int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return tensorfile_fail(error, "cannot be opened: %s", strerror(errno));
    const bool done = read_sidecar(file, directory, error) && read_members(file, path, directory, error);
    close(directory);
    return done;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const tensorfile_entry *)a)->name, ((const tensorfile_entry *)b)->name);
}

static bool sort_entries(tensorfile *file, tensorfile_error *error)
{
    if (file->count == 0)
        return true;
    qsort(file->entries, (size_t)file->count, sizeof file->entries[0], compare_names);
    for (int i = 1; i < file->count; i++)
        if (compare_names(&file->entries[i - 1], &file->entries[i]) == 0)
            return tensorfile_fail(error, "%.100s: stands in the directory twice", file->entries[i].name);
    return true;
}

bool tensorfile_read(const char *path, tensorfile *file, tensorfile_error *error)
{
    struct stat status;
    *file = (tensorfile){ 0 };
    const bool directory = stat(path, &status) == 0 && S_ISDIR(status.st_mode);
    if ((directory ? read_directory : safetensors_read)(file, path, error) && sort_entries(file, error))
        return true;
    tensorfile_free(file);
    return false;
}

void tensorfile_free(tensorfile *file)
{
    for (int i = 0; i < file->count; i++)
        free(file->entries[i].name);
    free(file->entries);
    for (int i = 0; i < file->metadata_count; i++) {
        free(file->metadata[i].key);
        free(file->metadata[i].value);
    }
    free(file->metadata);
    release(file->owner);
    *file = (tensorfile){ 0 };
}

const etalon_tensor *tensorfile_find(const tensorfile *file, const char *name)
{
    for (int i = 0; i < file->count; i++)
        if (strcmp(file->entries[i].name, name) == 0)
            return &file->entries[i].tensor;
    return NULL;
}

const char *tensorfile_metadata(const tensorfile *file, const char *key)
{
    for (int i = 0; i < file->metadata_count; i++)
        if (strcmp(file->metadata[i].key, key) == 0)
            return file->metadata[i].value;
    return NULL;
}

/* Writing */

typedef struct output {
    char *path;      /* the file to be replaced: where a symbolic link leads, if path is one */
    char *temporary; /* beside it */
    FILE *stream;
} output;

/* The path to replace; NULL, with a sentence, where something stands there that a rename must not replace. */
static char *resolve(const char *path, tensorfile_error *error)
{
    struct stat status;
    char       *target;
    if (stat(path, &status) != 0) {
        target = strdup(path);
    } else if (!S_ISREG(status.st_mode)) {
        tensorfile_fail(error, "cannot be written: not a regular file");
        return NULL;
    } else if (access(path, W_OK) != 0) {
        tensorfile_fail(error, "cannot be written: %s", strerror(errno));
        return NULL;
    } else {
        target = realpath(path, NULL);
    }
    if (target == NULL)
        tensorfile_fail(error, "cannot be written: %s", strerror(errno));
    return target;
}

/* open rather than mkstemp: it gives the file the permissions that umask says. */
static int open_temporary(output *out)
{
    enum { TRIES = 100 }; /* names that interrupted processes of the same number, or other threads, have left */
    const char *const slash = strrchr(out->path, '/');
    const int         directory = slash == NULL ? 0 : (int)(slash - out->path) + 1;
    int               descriptor = -1;
    for (int i = 0; i < TRIES; i++) {
        if (asprintf(&out->temporary, "%.*s.etalon-%ld-%d.tmp", directory, out->path, (long)getpid(), i) < 0) {
            out->temporary = NULL;
            return -1;
        }
        descriptor = open(out->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (descriptor >= 0)
            return descriptor;
        const bool taken = errno == EEXIST;
        free(out->temporary);
        out->temporary = NULL;
        if (!taken)
            return -1;
    }
    return -1;
}

static bool output_open(output *out, const char *path, tensorfile_error *error)
{
    *out = (output){ .path = resolve(path, error) };
    if (out->path == NULL)
        return false;
    const int descriptor = open_temporary(out);
    if (descriptor >= 0)
        out->stream = fdopen(descriptor, "wb");
    if (out->stream != NULL)
        return true;
    tensorfile_fail(error, "cannot be written: %s", strerror(errno));
    if (descriptor >= 0)
        close(descriptor);
    return false;
}

/* Puts the temporary in place if all went well so far, else takes it away. */
static bool output_close(output *out, bool done, tensorfile_error *error)
{
    if (out->stream != NULL && fclose(out->stream) != 0 && done)
        done = tensorfile_fail(error, "cannot be written: %s", strerror(errno));
    if (done && rename(out->temporary, out->path) != 0)
        done = tensorfile_fail(error, "cannot be written: %s", strerror(errno));
    if (!done && out->temporary != NULL)
        unlink(out->temporary);
    free(out->temporary);
    free(out->path);
    return done;
}

bool tensorfile_write(const char *path, const tensorfile_entry *entries, int count, const tensorfile_pair *metadata,
                      int metadata_count, tensorfile_error *error)
{
    output     out;
    const bool done = output_open(&out, path, error) &&
                      safetensors_write(out.stream, entries, count, metadata, metadata_count, error);
    return output_close(&out, done, error);
}
