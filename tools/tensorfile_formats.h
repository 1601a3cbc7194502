/* Between tensorfile.c and the formats: what a reader of one format fills in. */
#ifndef ETALON_TENSORFILE_FORMATS_H
#define ETALON_TENSORFILE_FORMATS_H

#include "tensorfile.h"

#include <jansson.h>
#include <stdio.h>

enum { TENSORFILE_MAX_JSON = 100000000 /* bytes of a safetensors header: the limit of the reference implementation */ };

typedef struct tensorfile_bytes {
    unsigned char *at; /* never NULL */
    size_t         count;
} tensorfile_bytes;

/* What a file says of a tensor, before anything is believed. */
typedef struct tensorfile_form {
    etalon_dtype dtype;
    int32_t      rank;
    int64_t      shape[ETALON_MAX_RANK];
} tensorfile_form;

/* Writes the sentence, in printable ASCII; returns false, so that a reader can end with it. */
bool tensorfile_fail(tensorfile_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Maps a regular file for as long as `file` lives: private, writable, and past the last byte nothing is promised. */
bool tensorfile_map(tensorfile *file, int directory, const char *path, tensorfile_bytes *bytes,
                    tensorfile_error *error);

/* Parses one JSON object without duplicate keys; `what` names it in the sentence. The caller drops the reference. */
json_t *tensorfile_json(tensorfile_bytes text, const char *what, tensorfile_error *error);

/* Adds the pairs of an object of strings; `what` names it in the sentence. */
bool tensorfile_add_metadata(tensorfile *file, const json_t *object, const char *what, tensorfile_error *error);

/* Appends a dimension: an extent of 0 or more, and at most ETALON_MAX_RANK of them. */
bool tensorfile_add_extent(tensorfile_form *form, const char *name, int64_t extent, tensorfile_error *error);

/* Bytes of a dense tensor; refuses what does not fit 63 bits, an extent of 0 counted as 1, so that strides fit too. */
bool tensorfile_form_bytes(const tensorfile_form *form, const char *name, size_t *bytes, tensorfile_error *error);

/* Appends an entry over data, which must have exactly the bytes of the form and live as long as `file`. Data that is
 * not aligned for its dtype is copied. */
bool tensorfile_add(tensorfile *file, const char *name, const tensorfile_form *form, tensorfile_bytes data,
                    tensorfile_error *error);

/* "F8_E4M3": the name of a dtype in safetensors, or NULL. */
const char *tensorfile_safetensors_name(etalon_dtype dtype);

/* The dtype with that name in safetensors, or ETALON_DTYPE_NONE. */
etalon_dtype tensorfile_safetensors_dtype(const char *name);

/* As above, and also PyTorch's name with or without "torch.", and etalon's own. */
etalon_dtype tensorfile_any_dtype(const char *name);

/* The formats. `member` is a file name of the open directory, its suffix included. */
bool safetensors_read(tensorfile *file, const char *path, tensorfile_error *error);
bool safetensors_write(FILE *out, const tensorfile_entry *entries, int count, const tensorfile_pair *metadata,
                       int metadata_count, tensorfile_error *error);
bool npy_read(tensorfile *file, int directory, const char *member, tensorfile_error *error);
bool aiter_read_bin(tensorfile *file, int directory, const char *member, tensorfile_error *error);
bool aiter_check_meta(tensorfile *file, int directory, const char *member, tensorfile_error *error);

#endif
