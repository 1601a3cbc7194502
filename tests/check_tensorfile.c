/* Tensor files: round trips, and what a reader must refuse, in which words. */
#include "testing.h"

#include "tensorfile.h"

#include <dirent.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char work[256]; /* directory of this program's files */

static void make_work(void)
{
    const char *const parent = getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp";
    snprintf(work, sizeof work, "%s/etalon-tensorfile.XXXXXX", parent);
    ck_assert_ptr_nonnull(mkdtemp(work));
}

/* Every file of a directory and of the directories in it, then itself. */
static void remove_all(const char *path)
{
    DIR *const directory = opendir(path);
    if (directory == NULL) {
        unlink(path);
        return;
    }
    const struct dirent *member;
    while ((member = readdir(directory)) != NULL) {
        char inner[512];
        snprintf(inner, sizeof inner, "%s/%s", path, member->d_name);
        if (strcmp(member->d_name, ".") != 0 && strcmp(member->d_name, "..") != 0)
            remove_all(inner);
    }
    closedir(directory);
    rmdir(path);
}

static void remove_work(void)
{
    remove_all(work);
}

/* A path below work; a static buffer for each of the last four calls. */
static const char *path_of(const char *name)
{
    static char paths[4][512];
    static int  next;
    char *const path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", work, name);
    return path;
}

static void store(const char *path, const void *bytes, size_t count)
{
    FILE *const f = fopen(path, "wb");
    ck_assert_msg(f != NULL, "%s", path);
    ck_assert_uint_eq(fwrite(bytes, 1, count, f), count);
    ck_assert_int_eq(fclose(f), 0);
}

/* The whole file, to be freed. */
static unsigned char *load(const char *path, size_t *count)
{
    FILE *const f = fopen(path, "rb");
    ck_assert_msg(f != NULL, "%s", path);
    fseek(f, 0, SEEK_END);
    *count = (size_t)ftell(f);
    rewind(f);
    unsigned char *const bytes = malloc(*count + 1);
    ck_assert_uint_eq(fread(bytes, 1, *count, f), *count);
    fclose(f);
    return bytes;
}

/* Names in a directory, hidden ones included. */
static int members_of(const char *path)
{
    DIR *const directory = opendir(path);
    int        count = 0;
    while (readdir(directory) != NULL)
        count++;
    closedir(directory);
    return count - 2; /* . and .. */
}

static void assert_refused(const char *path, const char *words)
{
    tensorfile       file;
    tensorfile_error error = { "" };
    const bool       done = tensorfile_read(path, &file, &error);
    ck_assert_msg(!done, "read, though it should say \"%s\"", words);
    ck_assert_msg(strstr(error.text, words) != NULL, "\"%s\" does not hold \"%s\"", error.text, words);
    ck_assert_ptr_null(file.entries);
    ck_assert_ptr_null(file.owner);
    ck_assert_int_eq(file.count, 0);
}

static void assert_reads(const char *path, tensorfile *file)
{
    tensorfile_error error = { "" };
    ck_assert_msg(tensorfile_read(path, file, &error), "%s", error.text);
}

static void assert_writes(const char *path, const tensorfile_entry *entries, int count, const tensorfile_pair *metadata,
                          int metadata_count)
{
    tensorfile_error error = { "" };
    ck_assert_msg(tensorfile_write(path, entries, count, metadata, metadata_count, &error), "%s", error.text);
}

static void assert_write_refused(const char *path, const tensorfile_entry *entries, int count,
                                 const tensorfile_pair *metadata, int metadata_count, const char *words)
{
    tensorfile_error error = { "" };
    ck_assert_msg(!tensorfile_write(path, entries, count, metadata, metadata_count, &error),
                  "written, though it should say \"%s\"", words);
    ck_assert_msg(strstr(error.text, words) != NULL, "\"%s\" does not hold \"%s\"", error.text, words);
}

/* Length, header, data_bytes bytes of data counting up. */
static void store_safetensors(const char *path, const char *header, size_t header_bytes, size_t data_bytes)
{
    unsigned char *const all = malloc(8 + header_bytes + data_bytes);
    for (int i = 0; i < 8; i++)
        all[i] = (unsigned char)((uint64_t)header_bytes >> 8 * i);
    memcpy(all + 8, header, header_bytes);
    for (size_t i = 0; i < data_bytes; i++)
        all[8 + header_bytes + i] = (unsigned char)i;
    store(path, all, 8 + header_bytes + data_bytes);
    free(all);
}

/* Round trips */

static const etalon_dtype dtypes[] = { ETALON_F64,    ETALON_F32,      ETALON_F16,  ETALON_BF16,
                                       ETALON_E4M3FN, ETALON_E4M3FNUZ, ETALON_E5M2, ETALON_E8M0,
                                       ETALON_I64,    ETALON_I32,      ETALON_U8 };

enum { DTYPES = sizeof dtypes / sizeof dtypes[0] };

static const int64_t shapes[][ETALON_MAX_RANK] = { { 0 },       { 7 },          { 3, 5 },
                                                   { 2, 3, 4 }, { 2, 1, 3, 2 }, { 1, 2, 3, 1, 5 } };

static void fill(unsigned char *bytes, size_t count, uint32_t seed)
{
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525 + 1013904223; /* Numerical Recipes' generator */
        bytes[i] = (unsigned char)(seed >> 24);
    }
}

static size_t bytes_of(const etalon_tensor *t)
{
    size_t bytes = etalon_dtype_bytes(t->dtype);
    for (int32_t d = 0; d < t->rank; d++)
        bytes *= (size_t)t->shape[d];
    return bytes;
}

static void assert_same_tensor(const etalon_tensor *got, const etalon_tensor *want, const char *name)
{
    ck_assert_msg(got != NULL, "%s is missing", name);
    ck_assert_msg(got->dtype == want->dtype && got->rank == want->rank && got->device == ETALON_HOST, "%s", name);
    const etalon_tensor dense = etalon_tensor_dense(NULL, want->dtype, want->rank, want->shape);
    for (int32_t d = 0; d < want->rank; d++) {
        ck_assert_int_eq(got->shape[d], want->shape[d]);
        ck_assert_int_eq(got->stride[d], dense.stride[d]);
    }
    ck_assert_ptr_nonnull(got->data);
    ck_assert_msg((uintptr_t)got->data % etalon_dtype_bytes(got->dtype) == 0, "%s is not aligned", name);
    ck_assert_msg(memcmp(got->data, want->data, bytes_of(want)) == 0, "%s: other bytes", name);
}

/* One file with a tensor of every dtype, of rank _i; names so that their order is not that of the file. */
START_TEST(every_dtype_round_trips)
{
    unsigned char         data[DTYPES][8 * 64];
    char                  names[DTYPES][16];
    tensorfile_entry      entries[DTYPES];
    const tensorfile_pair metadata[] = { { "op", "pa_mtp" }, { "zwölf \"12\"", "\n" }, { "", "" } };
    for (int i = 0; i < DTYPES; i++) {
        fill(data[i], sizeof data[i], (uint32_t)(DTYPES * _i + i));
        snprintf(names[i], sizeof names[i], "%c%d", 'a' + i * 7 % DTYPES, i);
        entries[i] = (tensorfile_entry){ names[i], etalon_tensor_dense(data[i], dtypes[i], _i, shapes[_i]) };
    }
    const char *const path = path_of("round.safetensors");
    assert_writes(path, entries, DTYPES, metadata, 3);
    tensorfile file;
    assert_reads(path, &file);
    ck_assert_int_eq(file.count, DTYPES);
    for (int i = 0; i < DTYPES; i++)
        assert_same_tensor(tensorfile_find(&file, names[i]), &entries[i].tensor, etalon_dtype_name(dtypes[i]));
    for (int i = 1; i < DTYPES; i++)
        ck_assert_str_lt(file.entries[i - 1].name, file.entries[i].name);
    ck_assert_int_eq(file.metadata_count, 3);
    for (int i = 0; i < 3; i++)
        ck_assert_str_eq(tensorfile_metadata(&file, metadata[i].key), metadata[i].value);
    ck_assert_ptr_null(tensorfile_find(&file, "nobody"));
    ck_assert_ptr_null(tensorfile_metadata(&file, "nobody"));
    tensorfile_free(&file);
}
END_TEST

/* The file itself: header padded to 8 bytes, every tensor on a multiple of its size, nothing between and behind. */
START_TEST(written_data_is_aligned)
{
    static unsigned char data[64];
    const int64_t        three = 3;
    tensorfile_entry     entries[DTYPES];
    char                 names[DTYPES][8];
    for (int i = 0; i < DTYPES; i++) {
        snprintf(names[i], sizeof names[i], "t%d", i);
        entries[i] = (tensorfile_entry){ names[i], etalon_tensor_dense(data, dtypes[DTYPES - 1 - i], 1, &three) };
    }
    const char *const path = path_of("aligned.safetensors");
    for (int count = 0; count <= DTYPES; count++) { /* other counts, other lengths of the JSON */
        size_t bytes, data_bytes = 0;
        assert_writes(path, entries, count, NULL, 0);
        unsigned char *const all = load(path, &bytes);
        const size_t         length = all[0] | (size_t)all[1] << 8;
        ck_assert_uint_eq(length % 8, 0);
        for (int i = 0; i < count; i++) {
            char key[128];
            snprintf(key, sizeof key, "\"%s\":{\"dtype\"", names[i]);
            const char *const info = memmem(all + 8, length, key, strlen(key));
            ck_assert_msg(info != NULL, "%s", key);
            const char *const begin = strstr(info, "\"data_offsets\":[") + strlen("\"data_offsets\":[");
            ck_assert_uint_eq(strtoul(begin, NULL, 10) % etalon_dtype_bytes(entries[i].tensor.dtype), 0);
            data_bytes += bytes_of(&entries[i].tensor);
        }
        ck_assert_uint_eq(bytes, 8 + length + data_bytes);
        free(all);
    }
}
END_TEST

START_TEST(empty_tensors_round_trip)
{
    const int64_t          none[] = { 3, 0, 4 };
    const int64_t          one = 1;
    uint32_t               value = 0x01020304;
    const tensorfile_entry entries[] = {
        { "a", etalon_tensor_dense(NULL, ETALON_F32, 3, none) },
        { "b", etalon_tensor_dense(&value, ETALON_I32, 1, &one) },
        { "c", etalon_tensor_dense(NULL, ETALON_F64, 3, none) },
        { "d", etalon_tensor_dense(NULL, ETALON_U8, 3, none) },
    };
    assert_writes(path_of("empty.safetensors"), entries, 4, NULL, 0);
    tensorfile file;
    assert_reads(path_of("empty.safetensors"), &file);
    ck_assert_int_eq(file.count, 4);
    for (int i = 0; i < 4; i++) {
        ck_assert_ptr_nonnull(file.entries[i].tensor.data);
        ck_assert_int_eq(file.entries[i].tensor.rank, entries[i].tensor.rank);
        ck_assert_mem_eq(file.entries[i].tensor.shape, entries[i].tensor.shape, sizeof none);
    }
    ck_assert_uint_eq(*(uint32_t *)file.entries[1].tensor.data, value);
    tensorfile_free(&file);
}
END_TEST

START_TEST(no_tensor_at_all_round_trips)
{
    tensorfile file;
    assert_writes(path_of("nothing.safetensors"), NULL, 0, NULL, 0);
    assert_reads(path_of("nothing.safetensors"), &file);
    ck_assert_int_eq(file.count, 0);
    tensorfile_free(&file);
}
END_TEST

/* Element [i, j, k] of a [3, 4, 5] array under several views. */
static const struct {
    const char *name;
    int64_t     first, shape[3], stride[3];
} views[] = {
    { "dense", 0, { 3, 4, 5 }, { 20, 5, 1 } },         { "transposed", 0, { 5, 4, 3 }, { 1, 5, 20 } },
    { "every other", 0, { 2, 2, 5 }, { 40, 10, 1 } },  { "column", 2, { 3, 4, 1 }, { 20, 5, 99 } },
    { "backwards", 59, { 3, 4, 5 }, { -20, -5, -1 } }, { "broadcast", 20, { 6, 4, 5 }, { 0, 5, 1 } },
    { "one", 33, { 1, 1, 1 }, { 7, 8, 9 } },           { "none", 0, { 3, 0, 5 }, { 20, 0, 1 } },
};

START_TEST(strided_views_are_written_dense)
{
    const etalon_dtype kinds[] = { ETALON_F64, ETALON_I32, ETALON_BF16, ETALON_U8 };
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        const size_t  bytes = etalon_dtype_bytes(kinds[k]);
        unsigned char data[60 * 8];
        for (size_t i = 0; i < 60; i++) {
            memset(data + i * bytes, 0, bytes);
            data[i * bytes] = (unsigned char)i;
        }
        etalon_tensor t = etalon_tensor_dense(data + (size_t)views[_i].first * bytes, kinds[k], 3, views[_i].shape);
        memcpy(t.stride, views[_i].stride, sizeof views[_i].stride);
        const tensorfile_entry entry = { "x", t };
        assert_writes(path_of("strided.safetensors"), &entry, 1, NULL, 0);
        tensorfile file;
        assert_reads(path_of("strided.safetensors"), &file);
        const unsigned char *at = tensorfile_find(&file, "x")->data;
        for (int64_t i = 0; i < t.shape[0]; i++) {
            for (int64_t j = 0; j < t.shape[1]; j++) {
                for (int64_t l = 0; l < t.shape[2]; l++, at += bytes) {
                    const int64_t want = views[_i].first + i * t.stride[0] + j * t.stride[1] + l * t.stride[2];
                    ck_assert_msg(*at == want, "%s: %d, expected %" PRId64, views[_i].name, *at, want);
                }
            }
        }
        tensorfile_free(&file);
    }
}
END_TEST

/* A header of any length: data that lies unaligned in the file must not do so in memory. */
START_TEST(unaligned_data_is_copied)
{
    static const char header[] = "{\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                                 "\"d\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[1,9]},"
                                 "\"h\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[9,13]},"
                                 "\"w\":{\"dtype\":\"I32\",\"shape\":[],\"data_offsets\":[13,17]}}";
    char              padded[sizeof header + 8];
    snprintf(padded, sizeof padded, "%s%*s", header, _i, "");
    store_safetensors(path_of("unaligned.safetensors"), padded, strlen(padded), 17);
    tensorfile file;
    assert_reads(path_of("unaligned.safetensors"), &file);
    for (int i = 0; i < file.count; i++) {
        const etalon_tensor *const t = &file.entries[i].tensor;
        ck_assert_msg((uintptr_t)t->data % etalon_dtype_bytes(t->dtype) == 0, "%s", file.entries[i].name);
    }
    ck_assert_uint_eq(*(uint64_t *)tensorfile_find(&file, "d")->data, 0x0807060504030201);
    ck_assert_uint_eq(((uint16_t *)tensorfile_find(&file, "h")->data)[1], 0x0C0B);
    ck_assert_uint_eq(*(uint32_t *)tensorfile_find(&file, "w")->data, 0x100F0E0D);
    tensorfile_free(&file);
}
END_TEST

/* The mapping is private: what a user writes into a tensor does not reach the file. */
START_TEST(writing_into_a_tensor_leaves_the_file)
{
    static const char header[] = "{\"x\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}";
    const char *const path = path_of("private.safetensors");
    size_t            before, after;
    tensorfile        file;
    store_safetensors(path, header, strlen(header), 4);
    unsigned char *const was = load(path, &before);
    assert_reads(path, &file);
    memset(tensorfile_find(&file, "x")->data, 0xEE, 4);
    tensorfile_free(&file);
    unsigned char *const is = load(path, &after);
    ck_assert_uint_eq(before, after);
    ck_assert_mem_eq(was, is, before);
    free(was);
    free(is);
}
END_TEST

/* Larger than memory, were it not for the holes: 1 TiB of sparse file, its last bytes read. */
START_TEST(a_huge_file_is_mapped_not_copied)
{
    static const char header[] =
        "{\"x\":{\"dtype\":\"U8\",\"shape\":[1024,1073741824],\"data_offsets\":[0,1099511627776]}}";
    const char *const path = path_of("huge.safetensors");
    store_safetensors(path, header, strlen(header), 0);
    if (truncate(path, (off_t)(8 + strlen(header)) + ((off_t)1 << 40)) != 0) {
        printf("# a_huge_file_is_mapped_not_copied: left out: the file system holds no file of 1 TiB\n");
        unlink(path);
        return;
    }
    tensorfile file;
    assert_reads(path, &file);
    const etalon_tensor *const t = tensorfile_find(&file, "x");
    ck_assert_uint_eq(((unsigned char *)t->data)[1023 * t->stride[0] + 1073741823], 0);
    tensorfile_free(&file);
    unlink(path);
}
END_TEST

START_TEST(shipped_vectors_read)
{
    const char *const vectors = getenv("ETALON_VECTORS");
    ck_assert_msg(vectors != NULL, "ETALON_VECTORS is not set");
    char       path[512];
    tensorfile file;
    snprintf(path, sizeof path, "%s/pa_mtp-ragged-gqa8.safetensors", vectors);
    assert_reads(path, &file);
    ck_assert_str_eq(tensorfile_metadata(&file, "op"), "pa_mtp");
    const etalon_tensor *const k = tensorfile_find(&file, "k_cache");
    ck_assert_int_eq(k->dtype, ETALON_E4M3FN);
    ck_assert_int_eq(k->rank, 4);
    ck_assert_int_eq(k->shape[1], 16);
    tensorfile_free(&file);
}
END_TEST

/* Malformed safetensors */

#define ONE(dtype, shape, offsets) "{\"x\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}}"
#define F32_AT(name, offsets) "\"" name "\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":" offsets "}"

static const struct {
    const char *header;
    size_t      data_bytes;
    const char *words;
} malformed[] = {
    { "", 8, "header: not a JSON object" },
    { "[]", 0, "header: not a JSON object" },
    { " {}", 0, "header: not a JSON object" },
    { "\"x\"", 0, "header: not a JSON object" },
    { "{", 0, "header: malformed JSON at byte" },
    { "{}x", 0, "header: malformed JSON at byte" },
    { "{\"x\":\"\xFF\"}", 0, "header: malformed JSON at byte" },
    { "{\"a\\u0000b\":1}", 0, "header: malformed JSON at byte" },
    { "{" F32_AT("x", "[0,8]") "," F32_AT("x", "[0,8]") "}", 8, "duplicate object key" },
    { "{\"x\":1}", 0, "x: not an object" },
    { "{\"x\":null}", 0, "x: not an object" },
    { "{\"x\":{\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "x: dtype: missing" },
    { ONE("7", "[2]", "[0,8]"), 8, "x: dtype: missing, or not a string" },
    { ONE("\"F31\"", "[2]", "[0,8]"), 8, "x: dtype \"F31\"" },
    { ONE("\"BOOL\"", "[2]", "[0,2]"), 2, "x: dtype \"BOOL\": not one that is read here" },
    { ONE("\"f32\"", "[2]", "[0,8]"), 8, "x: dtype \"f32\"" },
    { "{\"x\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", 8, "x: shape: missing" },
    { ONE("\"F32\"", "{}", "[0,8]"), 8, "x: shape: missing, or not an array" },
    { ONE("\"F32\"", "[2.0]", "[0,8]"), 8, "x.shape[0]: not an integer" },
    { ONE("\"F32\"", "[1,\"2\"]", "[0,8]"), 8, "x.shape[1]: not an integer" },
    { ONE("\"F32\"", "[2,-2]", "[0,8]"), 8, "x.shape[1]: -2, expected 0 or more" },
    { ONE("\"F32\"", "[-1,-2]", "[0,8]"), 8, "x.shape[0]: -1, expected 0 or more" },
    { ONE("\"F32\"", "[1,1,1,1,1,2]", "[0,8]"), 8, "x: more than 5 dimensions" },
    { ONE("\"F32\"", "[4294967296,4294967296]", "[0,8]"), 8, "x.shape[1]: 4294967296: shape times dtype overflows" },
    { ONE("\"F64\"", "[1152921504606846976]", "[0,8]"), 8, "x.shape[0]: 1152921504606846976: shape times dtype" },
    { ONE("\"U8\"", "[0,4294967296,4294967296]", "[0,0]"), 0, "shape times dtype overflows" },
    { ONE("\"F32\"", "[99999999999999999999]", "[0,8]"), 8, "too big integer" },
    { "{\"x\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, "x: data_offsets: missing" },
    { ONE("\"F32\"", "[2]", "[0]"), 8, "x: data_offsets: missing, or not two integers" },
    { ONE("\"F32\"", "[2]", "[0,8,16]"), 8, "x: data_offsets: missing, or not two integers" },
    { ONE("\"F32\"", "[2]", "[0,8.0]"), 8, "x: data_offsets: missing, or not two integers" },
    { ONE("\"F32\"", "[2]", "[-8,0]"), 8, "x: data_offsets: [-8, 0], expected 0 <= begin <= end" },
    { ONE("\"F32\"", "[2]", "[8,0]"), 8, "x: data_offsets: [8, 0], expected 0 <= begin <= end" },
    { ONE("\"F32\"", "[2]", "[0,8]"), 7, "x: data_offsets[1]: 8, but the file has 7 bytes of data (truncated file)" },
    { ONE("\"F32\"", "[2]", "[0,9223372036854775807]"), 8, "x: data_offsets[1]: 9223372036854775807, but" },
    { ONE("\"F32\"", "[3]", "[0,8]"), 8, "x: 8 bytes of data, expected 12 (shape times dtype)" },
    { ONE("\"BF16\"", "[2]", "[0,8]"), 8, "x: 8 bytes of data, expected 4 (shape times dtype)" },
    { ONE("\"F32\"", "[]", "[0,0]"), 0, "x: 0 bytes of data, expected 4" },
    { ONE("\"F32\"", "[2]", "[0,8]"), 9, "data: 9 bytes, expected 8 (end of the last tensor): trailing bytes" },
    { ONE("\"F32\"", "[2]", "[4,12]"), 12, "x: data_offsets[0]: 4, expected 0: a gap" },
    { "{}", 1, "data: 1 bytes, expected 0" },
    { "{" F32_AT("a", "[0,8]") "," F32_AT("b", "[12,20]") "}", 20, "b: data_offsets[0]: 12, expected 8: a gap" },
    { "{" F32_AT("b", "[4,12]") "," F32_AT("a", "[0,8]") "}", 12, "b: data_offsets[0]: 4, expected 8: overlaps a" },
    { "{" F32_AT("a", "[0,8]") "," F32_AT("b", "[0,8]") "}", 8, ": data_offsets[0]: 0, expected 8: overlaps" },
    { "{\"__metadata__\":[]}", 0, "__metadata__: not an object of strings" },
    { "{\"__metadata__\":{\"causal\":1}}", 0, "__metadata__: the value of \"causal\" is not a string" },
    { "{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}", 0, "duplicate object key" },
    { "{\"q\\n\xC3\xA9\":1}", 0, "q???: not an object" },
};

START_TEST(malformed_safetensors_are_refused)
{
    const char *const path = path_of("malformed.safetensors");
    store_safetensors(path, malformed[_i].header, strlen(malformed[_i].header), malformed[_i].data_bytes);
    assert_refused(path, malformed[_i].words);
}
END_TEST

START_TEST(bad_lengths_are_refused)
{
    static const struct {
        unsigned char length[8];
        const char   *words;
    } lengths[] = {
        { { 3 }, "header: length 3, but only 2 bytes follow (truncated file)" },
        { { 0xFF, 0xE0, 0xF5, 0x05 }, "header: length 99999999, but only 2 bytes follow" },
        { { 0x00, 0xE1, 0xF5, 0x05 }, "header: length 100000000, but only 2 bytes follow" },
        { { 0x01, 0xE1, 0xF5, 0x05 }, "header: length 100000001, expected at most 100000000" },
        { { 0, 0, 0, 0, 0, 0, 0, 0x80 }, "header: length 9223372036854775808, expected at most" },
        { { 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF }, "header: length 18446744073709551615, expected at most" },
    };
    const char *const path = path_of("length.safetensors");
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        unsigned char bytes[10];
        memcpy(bytes, lengths[i].length, 8);
        memcpy(bytes + 8, "{}", 2);
        store(path, bytes, sizeof bytes);
        assert_refused(path, lengths[i].words);
    }
}
END_TEST

START_TEST(other_kinds_of_files_are_named)
{
    const char *const path = path_of("other");
    store(path, "\x93NUMPY\x01\x00\x02\x00{}", 12);
    assert_refused(path, "a single .npy file");
    store(path, "PK\x03\x04 and more", 13);
    assert_refused(path, "a zip archive");
    store(path, "", 0);
    assert_refused(path, "header: the file has 0 bytes, expected 8 and more");
    assert_refused(path_of("nobody"), "cannot be opened: No such file or directory");
    assert_refused("", "cannot be opened: No such file or directory");
    assert_refused("/dev/null", "not a regular file");
    ck_assert_int_eq(mkfifo(path_of("fifo"), 0600), 0);
    assert_refused(path_of("fifo"), "not a regular file");
}
END_TEST

/* A small file of several dtypes with metadata, to be damaged. */
static unsigned char *good_file(const char *path, size_t *bytes, size_t *header_end)
{
    static unsigned char   data[64];
    const int64_t          shape[] = { 2, 3 };
    const tensorfile_entry entries[] = {
        { "q", etalon_tensor_dense(data, ETALON_BF16, 2, shape) },
        { "k_cache", etalon_tensor_dense(data, ETALON_E4M3FN, 2, shape) },
        { "seq_lens", etalon_tensor_dense(data, ETALON_I64, 1, shape) },
        { "k_descale", etalon_tensor_dense(data, ETALON_F32, 0, NULL) },
    };
    const tensorfile_pair metadata[] = { { "op", "pa_mtp" }, { "causal", "1" } };
    fill(data, sizeof data, 1);
    assert_writes(path, entries, 4, metadata, 2);
    unsigned char *const all = load(path, bytes);
    *header_end = 8 + (all[0] | (size_t)all[1] << 8);
    return all;
}

START_TEST(every_truncation_is_refused)
{
    size_t               bytes, header_end;
    const char *const    path = path_of("truncated.safetensors");
    unsigned char *const all = good_file(path, &bytes, &header_end);
    ck_assert_uint_gt(bytes, header_end);
    for (size_t count = 0; count < bytes; count++) {
        store(path, all, count);
        assert_refused(path, count < 8            ? "header: the file has"
                             : count < header_end ? "(truncated file)"
                                                  : "truncated file");
    }
    free(all);
}
END_TEST

/* Reads every byte that a file says it has: the sanitizers watch. */
static unsigned touch(const tensorfile *file)
{
    unsigned sum = 0;
    for (int i = 0; i < file->count; i++) {
        const etalon_tensor *const t = &file->entries[i].tensor;
        const size_t               bytes = bytes_of(t);
        ck_assert_uint_eq((uintptr_t)t->data % etalon_dtype_bytes(t->dtype), 0);
        for (size_t b = 0; b < bytes; b++)
            sum += ((const unsigned char *)t->data)[b];
    }
    return sum;
}

/* Flips one to three bits of the first `limit` bytes, thousands of times: read or refused with a sentence. */
static void flip_bits(const char *path, const char *victim, const unsigned char *all, size_t bytes, size_t limit)
{
    enum { ROUNDS = 3000 };
    uint32_t             seed = 20240607;
    int                  refused = 0;
    unsigned char *const bad = malloc(bytes);
    for (int round = 0; round < ROUNDS; round++) {
        memcpy(bad, all, bytes);
        for (int flips = round % 3; flips >= 0; flips--) {
            seed = seed * 1664525 + 1013904223;
            bad[(seed >> 8) % limit] ^= (unsigned char)(1u << (seed >> 5 & 7));
        }
        store(victim, bad, bytes);
        tensorfile       file;
        tensorfile_error error = { "" };
        if (tensorfile_read(path, &file, &error)) {
            touch(&file);
            tensorfile_free(&file);
        } else {
            ck_assert_msg(error.text[0] != '\0', "round %d: no sentence", round);
            refused++;
        }
    }
    free(bad);
    ck_assert_int_gt(refused, ROUNDS / 2); /* most of a header matters */
}

START_TEST(flipped_bits_never_crash)
{
    size_t               bytes, header_end;
    const char *const    path = path_of("flipped.safetensors");
    unsigned char *const all = good_file(path, &bytes, &header_end);
    flip_bits(path, path, all, bytes, header_end);
    free(all);
}
END_TEST

/* Writing that fails */

static tensorfile_entry one_entry(void)
{
    static uint32_t value = 7;
    return (tensorfile_entry){ "x", etalon_tensor_dense(&value, ETALON_I32, 0, NULL) };
}

START_TEST(a_failed_write_leaves_the_old_file)
{
    char             directory[300];
    const int64_t    shape[] = { 2, -1, 1, 1, 1 };
    int32_t          value[2] = { 1, 2 };
    tensorfile_entry twice[] = { one_entry(), one_entry() };
    tensorfile_entry reserved = one_entry(), no_dtype = one_entry(), far = one_entry(), rank = one_entry(),
                     no_data = one_entry(), not_utf8 = one_entry(), large = one_entry();
    tensorfile_entry negative = { "x", etalon_tensor_dense(value, ETALON_I32, 2, shape) };
    const int64_t    many[] = { INT64_MAX / 2, 3 };
    tensorfile_pair  same[] = { { "a", "1" }, { "a", "2" } }, bad_value[] = { { "a", "\xC3" } };
    reserved.name = "__metadata__";
    no_dtype.tensor.dtype = ETALON_DTYPE_NONE;
    far.tensor.device = 0;
    rank.tensor.rank = 6;
    no_data.tensor.data = NULL;
    not_utf8.name = "\xFF";
    large.tensor = etalon_tensor_dense(value, ETALON_U8, 2, many);
    const struct {
        const tensorfile_entry *entries;
        int                     count;
        const tensorfile_pair  *metadata;
        int                     metadata_count;
        const char             *words;
    } bad[] = {
        { twice, 2, NULL, 0, "tensor \"x\": given twice" },
        { &reserved, 1, NULL, 0, "__metadata__: a name that safetensors keeps for itself" },
        { &no_dtype, 1, NULL, 0, "x: dtype: none that safetensors has" },
        { &far, 1, NULL, 0, "x.device: 0, expected -1 (host)" },
        { &rank, 1, NULL, 0, "x: rank 6, expected 0 to 5" },
        { &negative, 1, NULL, 0, "x.shape[1]: -1, expected 0 or more" },
        { &large, 1, NULL, 0, "x.shape[1]: 3: shape times dtype overflows" },
        { &no_data, 1, NULL, 0, "x: no data" },
        { &not_utf8, 1, NULL, 0, "tensor \"?\": cannot be written as JSON" },
        { twice, 1, same, 2, "metadata \"a\": given twice" },
        { twice, 1, bad_value, 1, "metadata \"a\": cannot be written as JSON" },
    };
    snprintf(directory, sizeof directory, "%s", path_of("failing"));
    ck_assert_int_eq(mkdir(directory, 0700), 0);
    const char *const path = path_of("failing/out.safetensors");
    store(path, "as it was", 9);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_write_refused(path, bad[i].entries, bad[i].count, bad[i].metadata, bad[i].metadata_count, bad[i].words);
        size_t               bytes;
        unsigned char *const is = load(path, &bytes);
        ck_assert_uint_eq(bytes, 9);
        ck_assert_mem_eq(is, "as it was", 9);
        free(is);
        ck_assert_int_eq(members_of(directory), 1);
    }
}
END_TEST

/* For this process: a write beyond it fails instead of ending the process. Returns the limit before. */
static rlim_t limit_file_size(rlim_t bytes)
{
    struct rlimit limit;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    const rlim_t before = limit.rlim_cur;
    limit.rlim_cur = bytes;
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    return before;
}

START_TEST(a_full_disk_is_told)
{
    const tensorfile_entry entry = one_entry();
    char                   directory[300];
    snprintf(directory, sizeof directory, "%s", path_of("full"));
    ck_assert_int_eq(mkdir(directory, 0700), 0);
    /* A limit on the size of files stands in for the disk: the write itself fails, after the file was opened. */
    const int64_t          shape = 1 << 20;
    unsigned char *const   data = calloc(1, 1 << 20);
    const tensorfile_entry large = { "x", etalon_tensor_dense(data, ETALON_U8, 1, &shape) };
    const char *const      path = path_of("full/out.safetensors");
    assert_writes(path, &entry, 1, NULL, 0);
    const rlim_t before = limit_file_size(1 << 16);
    assert_write_refused(path, &large, 1, NULL, 0, "cannot be written: File too large");
    limit_file_size(before);
    free(data);
    ck_assert_int_eq(members_of(directory), 1);
    tensorfile file;
    assert_reads(path, &file);
    ck_assert_int_eq(tensorfile_find(&file, "x")->dtype, ETALON_I32);
    tensorfile_free(&file);
}
END_TEST

/* Gives up root's right to write everywhere, in this test's own process; false where tests share one. */
static bool become_nobody(void)
{
    enum { NOBODY = 65534 };
    const char *const fork_mode = getenv("CK_FORK");
    if ((fork_mode != NULL && strcmp(fork_mode, "no") == 0) || chmod(work, 0711) != 0 || setuid(NOBODY) != 0)
        return false;
    return prctl(PR_SET_DUMPABLE, 1) == 0; /* a leak checker must still be able to look */
}

START_TEST(unwritable_paths_are_refused)
{
    const tensorfile_entry entry = one_entry();
    assert_write_refused(path_of("nobody/out"), &entry, 1, NULL, 0, "cannot be written: No such file or directory");
    assert_write_refused(work, &entry, 1, NULL, 0, "cannot be written: not a regular file");
    assert_write_refused("/dev/null", &entry, 1, NULL, 0, "cannot be written: not a regular file");
    assert_write_refused("", &entry, 1, NULL, 0, "cannot be written: No such file or directory");
    store(path_of("file"), "", 0);
    assert_write_refused(path_of("file/out"), &entry, 1, NULL, 0, "cannot be written: Not a directory");
    ck_assert_int_eq(mkdir(path_of("read-only"), 0500), 0);
    ck_assert_int_eq(chmod(path_of("file"), 0400), 0);
    if (geteuid() == 0 && !become_nobody()) {
        printf("# unwritable_paths_are_refused: the read-only paths are left out: root may write everywhere\n");
        return;
    }
    assert_write_refused(path_of("read-only/out"), &entry, 1, NULL, 0, "cannot be written: Permission denied");
    assert_write_refused(path_of("file"), &entry, 1, NULL, 0, "cannot be written: Permission denied");
}
END_TEST

START_TEST(permissions_follow_umask)
{
    const tensorfile_entry entry = one_entry();
    struct stat            status;
    const mode_t           before = umask(027);
    assert_writes(path_of("mode.safetensors"), &entry, 1, NULL, 0);
    umask(before);
    ck_assert_int_eq(stat(path_of("mode.safetensors"), &status), 0);
    ck_assert_uint_eq(status.st_mode & 0777, 0640);
}
END_TEST

START_TEST(a_link_stays_a_link)
{
    const tensorfile_entry entry = one_entry();
    struct stat            status;
    tensorfile             file;
    store(path_of("target.safetensors"), "", 0);
    ck_assert_int_eq(symlink("target.safetensors", path_of("link.safetensors")), 0);
    assert_writes(path_of("link.safetensors"), &entry, 1, NULL, 0);
    ck_assert_int_eq(lstat(path_of("link.safetensors"), &status), 0);
    ck_assert(S_ISLNK(status.st_mode));
    assert_reads(path_of("target.safetensors"), &file);
    tensorfile_free(&file);
}
END_TEST

START_TEST(a_name_without_a_directory_is_written_here)
{
    const tensorfile_entry entry = one_entry();
    tensorfile             file;
    ck_assert_int_eq(chdir(work), 0);
    assert_writes("here.safetensors", &entry, 1, NULL, 0);
    assert_reads("here.safetensors", &file);
    tensorfile_free(&file);
}
END_TEST

/* Directories */

/* A new directory below work. */
static const char *new_directory(const char *name)
{
    const char *const path = path_of(name);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    return path;
}

static void store_in(const char *directory, const char *name, const void *bytes, size_t count)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    store(path, bytes, count);
}

/* A .npy file of the version, with `data_bytes` bytes of data counting up; the header as it is given. */
static size_t npy_of(unsigned char *all, int version, const char *header, size_t data_bytes)
{
    const size_t length = strlen(header), first = version == 1 ? 10 : 12;
    memcpy(all, "\x93NUMPY", 6);
    all[6] = (unsigned char)version;
    all[7] = 0;
    for (size_t i = 8; i < first; i++)
        all[i] = (unsigned char)(length >> 8 * (i - 8));
    memcpy(all + first, header, length);
    for (size_t i = 0; i < data_bytes; i++)
        all[first + length + i] = (unsigned char)i;
    return first + length + data_bytes;
}

static void store_npy(const char *directory, const char *name, int version, const char *header, size_t data_bytes)
{
    unsigned char all[1024];
    store_in(directory, name, all, npy_of(all, version, header, data_bytes));
}

START_TEST(npy_types_are_read)
{
    static const struct {
        const char  *descr, *sidecar;
        etalon_dtype want;
    } rows[] = {
        { "<f8", NULL, ETALON_F64 },
        { "<f4", NULL, ETALON_F32 },
        { "<f2", NULL, ETALON_F16 },
        { "<i8", NULL, ETALON_I64 },
        { "<i4", NULL, ETALON_I32 },
        { "|u1", NULL, ETALON_U8 },
        { "|u1", "U8", ETALON_U8 },
        { "<f4", "F32", ETALON_F32 },
        { "|u1", "F8_E4M3", ETALON_E4M3FN },
        { "|V1", "torch.float8_e4m3fnuz", ETALON_E4M3FNUZ },
        { "<V1", "e8m0", ETALON_E8M0 },
        { "<f1", "float8_e5m2", ETALON_E5M2 },
        { "<V2", "BF16", ETALON_BF16 },
        { "|V2", "bf16", ETALON_BF16 },
        { "<i2", "torch.bfloat16", ETALON_BF16 },
        { "<u2", "F16", ETALON_F16 },
        { "|i1", "F8_E5M2", ETALON_E5M2 },
    };
    const char *const directory = new_directory("npy");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char         header[128], sidecar[128] = "{}";
        const size_t bytes = etalon_dtype_bytes(rows[i].want);
        snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (2, 3), }%*s\n",
                 rows[i].descr, (int)i % 8, "");
        if (rows[i].sidecar != NULL)
            snprintf(sidecar, sizeof sidecar, "{\"q.dtype\": \"%s\", \"op\": \"pa_mtp\"}", rows[i].sidecar);
        store_in(directory, "metadata.json", sidecar, strlen(sidecar));
        store_npy(directory, "q.npy", 1 + (int)i % 3, header, 6 * bytes);
        tensorfile file;
        assert_reads(directory, &file);
        ck_assert_int_eq(file.count, 1);
        const etalon_tensor *const t = tensorfile_find(&file, "q");
        ck_assert_msg(t->dtype == rows[i].want, "%s: %s", rows[i].descr, etalon_dtype_name(t->dtype));
        ck_assert_int_eq(t->rank, 2);
        ck_assert_int_eq(t->shape[1], 3);
        ck_assert_uint_eq((uintptr_t)t->data % bytes, 0);
        for (size_t b = 0; b < 6 * bytes; b++)
            ck_assert_uint_eq(((unsigned char *)t->data)[b], b);
        if (rows[i].sidecar != NULL)
            ck_assert_str_eq(tensorfile_metadata(&file, "op"), "pa_mtp");
        tensorfile_free(&file);
    }
}
END_TEST

START_TEST(npy_headers_are_python)
{
    static const struct {
        const char *header;
        int32_t     rank;
        int64_t     shape[3];
    } rows[] = {
        { "{'descr': '|u1', 'fortran_order': False, 'shape': (), }\n", 0, { 0 } },
        { "{'descr': '|u1', 'fortran_order': False, 'shape': (6,)}\n", 1, { 6 } },
        { "{\"shape\":(2,3,),\"descr\":\"|u1\",\"fortran_order\":False}", 2, { 2, 3 } },
        { " { 'descr' : '|u1' , 'fortran_order' : False , 'shape' : ( 1 , 2 , 0 ) , } \n", 3, { 1, 2, 0 } },
    };
    const char *const directory = new_directory("python");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t bytes = 1;
        for (int32_t d = 0; d < rows[i].rank; d++)
            bytes *= (size_t)rows[i].shape[d];
        store_npy(directory, "x.npy", 1, rows[i].header, bytes);
        tensorfile file;
        assert_reads(directory, &file);
        ck_assert_int_eq(file.entries[0].tensor.rank, rows[i].rank);
        ck_assert_mem_eq(file.entries[0].tensor.shape, rows[i].shape, sizeof rows[i].shape);
        tensorfile_free(&file);
    }
}
END_TEST

#define NPY(descr, order, shape) "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape ", }\n"

static const struct {
    const char *header;
    size_t      data_bytes;
    const char *sidecar, *words;
} bad_npy[] = {
    { NPY("'>f4'", "False", "(2,)"), 8, NULL, "x.npy: descr '>f4': big-endian" },
    { NPY("'<c8'", "False", "(2,)"), 16, NULL, "x.npy: descr '<c8': not a type" },
    { NPY("'|b1'", "False", "(2,)"), 2, NULL, "x.npy: descr '|b1': not a type" },
    { NPY("'<f44444444444444444'", "False", "(2,)"), 8, NULL, "x.npy: header: malformed at" },
    { NPY("[('a', '<f4')]", "False", "(2,)"), 8, NULL, "x.npy: descr: a structured type" },
    { NPY("'<f4'", "True", "(2, 2)"), 16, NULL, "x.npy: fortran_order: True, expected False" },
    { NPY("'<f4'", "0", "(2,)"), 8, NULL, "x.npy: header: malformed at \"0" },
    { NPY("'<f4'", "False", "(2)"), 8, NULL, "x.npy: header: malformed" },
    { NPY("'<f4'", "False", "[2]"), 8, NULL, "x.npy: header: malformed" },
    { NPY("'<f4'", "False", "2"), 8, NULL, "x.npy: header: malformed" },
    { NPY("'<f4'", "False", "(,)"), 8, NULL, "x.npy: header: malformed" },
    { NPY("'<f4'", "False", "(2 2)"), 16, NULL, "x.npy: header: malformed" },
    { NPY("'<f4'", "False", "(2.0,)"), 8, NULL, "x.npy: header: malformed" },
    { NPY("'<f4'", "False", "(-2,)"), 8, NULL, "x.shape[0]: -2, expected 0 or more" },
    { NPY("'<f4'", "False", "(99999999999999999999,)"), 8, NULL, "x.npy: header: malformed" },
    { NPY("'<f4'", "False", "(4294967296, 4294967296)"), 8, NULL, "shape times dtype overflows" },
    { NPY("'<f4'", "False", "(1, 1, 1, 1, 1, 2)"), 8, NULL, "x: more than 5 dimensions" },
    { NPY("'<f4'", "False", "(2,)"), 7, NULL, "x: 7 bytes of data, expected 8" },
    { NPY("'<f4'", "False", "(2,)"), 9, NULL, "x: 9 bytes of data, expected 8" },
    { NPY("'<f4'", "False", "(2,)") "x", 8, NULL, "x.npy: header: malformed at \"x\"" },
    { "{'descr': '<f4', 'shape': (2,)}", 8, NULL, "x.npy: header: descr, fortran_order or shape is missing" },
    { "{'descr': '<f4', 'descr': '<f4', 'shape': (2,)}", 8, NULL, "x.npy: header: descr stands twice" },
    { "{'descr': '<f4', 'more': 1}", 8, NULL, "x.npy: header: unknown key \"more\"" },
    { "{'descr': '<f4' 'shape': (2,)}", 8, NULL, "x.npy: header: malformed" },
    { "{'descr': '<f4", 8, NULL, "x.npy: header: malformed" },
    { "{'descr'", 8, NULL, "x.npy: header: malformed" },
    { "{", 8, NULL, "x.npy: header: malformed" },
    { "", 8, NULL, "x.npy: header: malformed" },
    { "()", 8, NULL, "x.npy: header: malformed at \"()\"" },
    { NPY("'|V1'", "False", "(2,)"), 2, NULL, "x.npy: descr '|V1' names no number format: metadata.json must" },
    { NPY("'<V2'", "False", "(2,)"), 4, NULL, "{\"x.dtype\": \"F8_E4M3\"}" },
    { NPY("'<i2'", "False", "(2,)"), 4, NULL, "names no number format" },
    { NPY("'|V1'", "False", "(2,)"), 2, "{\"x.dtype\": \"BF16\"}", "descr '|V1' does not hold bf16" },
    { NPY("'<i4'", "False", "(2,)"), 8, "{\"x.dtype\": \"F32\"}", "descr '<i4' does not hold f32" },
    { NPY("'|V1'", "False", "(2,)"), 2, "{\"x.dtype\": \"FP8\"}", "metadata.json: x.dtype: dtype \"FP8\"" },
    { NPY("'|u1'", "False", "(2,)"), 2, "{\"op\": 1}", "metadata.json: the value of \"op\" is not a string" },
    { NPY("'|u1'", "False", "(2,)"), 2, "[]", "metadata.json: not a JSON object" },
    { NPY("'|u1'", "False", "(2,)"), 2, "{\"a\": \"1\", \"a\": \"1\"}", "metadata.json: malformed JSON" },
    { NPY("'|u1'", "False", "(2,)"), 2, "", "metadata.json: malformed JSON" },
};

START_TEST(malformed_npy_are_refused)
{
    const char *const directory = new_directory("bad-npy");
    store_npy(directory, "x.npy", 1 + _i % 3, bad_npy[_i].header, bad_npy[_i].data_bytes);
    if (bad_npy[_i].sidecar != NULL)
        store_in(directory, "metadata.json", bad_npy[_i].sidecar, strlen(bad_npy[_i].sidecar));
    assert_refused(directory, bad_npy[_i].words);
    remove_all(directory);
}
END_TEST

START_TEST(npy_beginnings_are_checked)
{
    static const struct {
        const char *bytes;
        size_t      count;
        const char *words;
    } rows[] = {
        { "", 0, "x.npy: does not begin as a .npy file does" },
        { "\x93NUMPY\x01\x00", 8, "x.npy: does not begin" },
        { "\x93NUMPZ\x01\x00\x02\x00{}", 12, "x.npy: does not begin" },
        { "\x93NUMPY\x04\x00\x02\x00{}", 12, "x.npy: version 4.0, expected 1.0 to 3.0" },
        { "\x93NUMPY\x00\x00\x02\x00{}", 12, "x.npy: version 0.0" },
        { "\x93NUMPY\x01\x01\x02\x00{}", 12, "x.npy: version 1.1" },
        { "\x93NUMPY\x01\x00\x03\x00{}", 12, "x.npy: header: length 3, but the file has 12 bytes (truncated file)" },
        { "\x93NUMPY\x02\x00\x02\x00", 10, "x.npy: header: length 0, but the file has 10 bytes (truncated file)" },
        { "\x93NUMPY\x02\x00\xFF\xFF\xFF\xFF{}", 14, "x.npy: header: length 4294967295, but" },
    };
    const char *const directory = new_directory("beginnings");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        store_in(directory, "x.npy", rows[i].bytes, rows[i].count);
        assert_refused(directory, rows[i].words);
    }
}
END_TEST

START_TEST(flipped_bits_of_npy_never_crash)
{
    unsigned char all[1024];
    char          directory[300], victim[512];
    const size_t  bytes = npy_of(all, 1, NPY("'<f4'", "False", "(2, 3)"), 24);
    snprintf(directory, sizeof directory, "%s", new_directory("flipped-npy"));
    snprintf(victim, sizeof victim, "%s/x.npy", directory);
    flip_bits(directory, victim, all, bytes, bytes - 24);
}
END_TEST

START_TEST(flipped_bits_of_meta_never_crash)
{
    static const char meta[] = "torch.Size([2, 3])\ntorch.float32\n";
    char              directory[300], victim[512];
    snprintf(directory, sizeof directory, "%s", new_directory("flipped-meta"));
    snprintf(victim, sizeof victim, "%s/x.meta", directory);
    store_in(directory, "x.bin", "\0\1\2\3\4\5\6\7\0\1\2\3\4\5\6\7\0\1\2\3\4\5\6\7", 24);
    flip_bits(directory, victim, (const unsigned char *)meta, strlen(meta), strlen(meta));
}
END_TEST

START_TEST(aiter_dumps_are_read)
{
    static const struct {
        const char  *meta;
        etalon_dtype dtype;
        int32_t      rank;
        int64_t      shape[3];
    } rows[] = {
        { "torch.Size([2, 3, 4])\ntorch.float8_e4m3fn\n", ETALON_E4M3FN, 3, { 2, 3, 4 } },
        { "torch.Size([6])\ntorch.float32", ETALON_F32, 1, { 6 } },
        { "torch.Size([])\ntorch.int64\n", ETALON_I64, 0, { 0 } },
        { "torch.Size([0, 3])\ntorch.bfloat16\n", ETALON_BF16, 2, { 0, 3 } },
        { "2,3,4\nuint8\n", ETALON_U8, 3, { 2, 3, 4 } },
        { "2 3 4\r\nbf16\r\n", ETALON_BF16, 3, { 2, 3, 4 } },
        { "[2, 3]\nF8_E5M2\n\n", ETALON_E5M2, 2, { 2, 3 } },
        { "(2,)\nfloat8_e8m0fnu\n", ETALON_E8M0, 1, { 2 } },
        { "()\nfloat16\n", ETALON_F16, 0, { 0 } },
    };
    const char *const directory = new_directory("aiter");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        unsigned char data[64];
        size_t        bytes = etalon_dtype_bytes(rows[i].dtype);
        for (int32_t d = 0; d < rows[i].rank; d++)
            bytes *= (size_t)rows[i].shape[d];
        fill(data, sizeof data, (uint32_t)i);
        store_in(directory, "k_cache.bin", data, bytes);
        store_in(directory, "k_cache.meta", rows[i].meta, strlen(rows[i].meta));
        tensorfile file;
        assert_reads(directory, &file);
        const etalon_tensor want = etalon_tensor_dense(data, rows[i].dtype, rows[i].rank, rows[i].shape);
        assert_same_tensor(tensorfile_find(&file, "k_cache"), &want, rows[i].meta);
        tensorfile_free(&file);
    }
}
END_TEST

static const struct {
    const char *meta;
    size_t      data_bytes;
    const char *words;
} bad_meta[] = {
    { "", 8, "x.meta: one line, expected two" },
    { "torch.Size([2])", 8, "x.meta: one line, expected two" },
    { "torch.Size([2])\n", 8, "x.meta: dtype \"\"" },
    { "\nfloat32\n", 8, "x.meta: shape \"\", expected as in" },
    { "torch.Size([2)\nfloat32\n", 8, "x.meta: shape \"torch.Size([2)\"" },
    { "torch.Size(2)\nfloat32\n", 8, "x.meta: shape \"torch.Size(2)\"" },
    { "[2\nfloat32\n", 8, "x.meta: shape \"[2\"" },
    { "two\nfloat32\n", 8, "x.meta: shape \"two\"" },
    { "2x3\nfloat32\n", 24, "x.meta: shape \"2x3\"" },
    { "2,,3\nfloat32\n", 24, "x.meta: shape \"2,,3\"" },
    { ",2\nfloat32\n", 8, "x.meta: shape \",2\"" },
    { "2.0\nfloat32\n", 8, "x.meta: shape \"2.0\"" },
    { "-2\nfloat32\n", 8, "x.shape[0]: -2, expected 0 or more" },
    { "99999999999999999999\nfloat32\n", 8, "x.meta: shape \"99999999999999999999\"" },
    { "4294967296 4294967296\nfloat32\n", 8, "shape times dtype overflows" },
    { "1 1 1 1 1 1\nfloat32\n", 4, "x: more than 5 dimensions" },
    { "2\ntorch.complex64\n", 16, "x.meta: dtype \"torch.complex64\"" },
    { "2\ntorch.F32\n", 8, "x.meta: dtype \"torch.F32\"" },
    { "2\nfloat32\nmore\n", 8, "x.meta: more than two lines" },
    { "2\nfloat32\n", 7, "x: 7 bytes of data, expected 8" },
    { "2\nfloat32\n", 12, "x: 12 bytes of data, expected 8" },
};

START_TEST(malformed_meta_are_refused)
{
    static const unsigned char data[32];
    const char *const          directory = new_directory("bad-meta");
    store_in(directory, "x.meta", bad_meta[_i].meta, strlen(bad_meta[_i].meta));
    store_in(directory, "x.bin", data, bad_meta[_i].data_bytes);
    assert_refused(directory, bad_meta[_i].words);
    remove_all(directory);
}
END_TEST

START_TEST(directories_are_checked)
{
    const char *const directory = new_directory("checked");
    assert_refused(directory, "a directory without NAME.npy and without NAME.bin + NAME.meta");
    store_in(directory, "README", "not a tensor", 12);
    store_in(directory, ".hidden.npy", "not a tensor", 12);
    assert_refused(directory, "a directory without NAME.npy");
    store_in(directory, "x.bin", "1234", 4);
    assert_refused(directory, "x.bin: has no x.meta beside it");
    store_in(directory, "x.meta", "2\nF16\n", 6);
    tensorfile file;
    assert_reads(directory, &file);
    ck_assert_int_eq(file.count, 1);
    tensorfile_free(&file);
    store_npy(directory, "x.npy", 1, NPY("'|u1'", "False", "(4,)"), 4);
    assert_refused(directory, "x: stands in the directory twice");
    store_npy(directory, "a.npy", 1, NPY("'|u1'", "False", "(4,)"), 4);
    assert_refused(directory, "x: stands in the directory twice");
    store_in(directory, "y.meta", "2\nF16\n", 6);
    assert_refused(directory, "y.meta: has no y.bin beside it");
    char inner[512];
    snprintf(inner, sizeof inner, "%s/b.npy", directory);
    ck_assert_int_eq(mkdir(inner, 0700), 0);
    assert_refused(directory, "b.npy: not a regular file");
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_unchecked_fixture(t, make_work, remove_work);
    tcase_add_loop_test(t, every_dtype_round_trips, 0, sizeof shapes / sizeof shapes[0]);
    tcase_add_test(t, written_data_is_aligned);
    tcase_add_test(t, empty_tensors_round_trip);
    tcase_add_test(t, no_tensor_at_all_round_trips);
    tcase_add_loop_test(t, strided_views_are_written_dense, 0, sizeof views / sizeof views[0]);
    tcase_add_loop_test(t, unaligned_data_is_copied, 0, 8);
    tcase_add_test(t, writing_into_a_tensor_leaves_the_file);
    tcase_add_test(t, a_huge_file_is_mapped_not_copied);
    tcase_add_test(t, shipped_vectors_read);
    tcase_add_loop_test(t, malformed_safetensors_are_refused, 0, sizeof malformed / sizeof malformed[0]);
    tcase_add_test(t, bad_lengths_are_refused);
    tcase_add_test(t, other_kinds_of_files_are_named);
    tcase_add_test(t, every_truncation_is_refused);
    tcase_add_test(t, flipped_bits_never_crash);
    tcase_add_test(t, a_failed_write_leaves_the_old_file);
    tcase_add_test(t, a_full_disk_is_told);
    tcase_add_test(t, unwritable_paths_are_refused);
    tcase_add_test(t, permissions_follow_umask);
    tcase_add_test(t, a_link_stays_a_link);
    tcase_add_test(t, a_name_without_a_directory_is_written_here);
    tcase_add_test(t, npy_types_are_read);
    tcase_add_test(t, npy_headers_are_python);
    tcase_add_loop_test(t, malformed_npy_are_refused, 0, sizeof bad_npy / sizeof bad_npy[0]);
    tcase_add_test(t, npy_beginnings_are_checked);
    tcase_add_test(t, flipped_bits_of_npy_never_crash);
    tcase_add_test(t, aiter_dumps_are_read);
    tcase_add_loop_test(t, malformed_meta_are_refused, 0, sizeof bad_meta / sizeof bad_meta[0]);
    tcase_add_test(t, flipped_bits_of_meta_never_crash);
    tcase_add_test(t, directories_are_checked);
}

int main(void)
{
    return testing_main("tensorfile", add_tests);
}
