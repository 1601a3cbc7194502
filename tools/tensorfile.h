/* Named tensors in files: safetensors, a directory of .npy, or a directory of aiter's .bin + .meta. */
#ifndef ETALON_TENSORFILE_H
#define ETALON_TENSORFILE_H

#include <etalon/types.h>
#include <stdbool.h>

typedef struct tensorfile_entry {
    char         *name;
    etalon_tensor tensor; /* dense, host memory owned by the tensorfile (a private mapping: writing changes no file) */
} tensorfile_entry;

typedef struct tensorfile_pair {
    char *key, *value;
} tensorfile_pair;

typedef struct tensorfile {
    tensorfile_entry *entries; /* by name, ascending */
    int               count;
    tensorfile_pair  *metadata; /* __metadata__ of safetensors; metadata.json of a directory */
    int               metadata_count;
    void             *owner; /* mappings and buffers behind the entries */
} tensorfile;

/* One sentence, without the path: tensor, value, rule. Printable ASCII; what is not becomes '?'. */
typedef struct tensorfile_error {
    char text[512];
} tensorfile_error;

/**
 * Reads path: a directory holds NAME.npy or NAME.bin + NAME.meta files and optionally metadata.json (one object of
 * strings); anything else is a safetensors file, which is mapped and not copied.
 *
 *   safetensors   F64, F32, F16, BF16, F8_E4M3, F8_E4M3FNUZ, F8_E5M2, F8_E8M0, I64, I32, U8; at most 100 MB of header
 *   NAME.npy      versions 1 to 3, little-endian, C order: f8, f4, f2, i8, i4, u1. A file that holds only bytes (V1, V2
 *                 and f1, as NumPy saves the types of ml_dtypes; u1, i1, u2, i2, as an integer view of a torch tensor)
 *                 has the dtype that metadata.json gives: {"NAME.dtype": "F8_E4M3"}
 *   NAME.meta     two lines: the shape, "torch.Size([8, 16, 256])", "8,16,256" or "8 16 256"; the dtype,
 *                 "torch.float8_e4m3fn". NAME.bin is the little-endian data and nothing else
 *
 * Names of dtypes in metadata.json and NAME.meta are those of safetensors, of PyTorch (with or without "torch.") or
 * etalon_dtype_name(). Data is aligned for its dtype: what lies unaligned in a file is copied, everything else is
 * mapped, so that a file may be larger than memory. A file that another process shortens meanwhile raises SIGBUS.
 *
 * Refuses, with a sentence: what cannot be opened, a truncated or oversized header, malformed JSON, unknown dtypes,
 * negative or overflowing extents, offsets that overlap, leave gaps or leave the file, byte counts that differ from
 * shape times dtype, more than ETALON_MAX_RANK dimensions, Fortran order, big-endian data, a directory without tensors.
 * On failure *file is empty.
 */
bool tensorfile_read(const char *path, tensorfile *file, tensorfile_error *error);

/* An empty (zeroed) tensorfile is allowed. */
void tensorfile_free(tensorfile *file);

/* The entry of that name, or NULL. */
const etalon_tensor *tensorfile_find(const tensorfile *file, const char *name);

/* The value of that metadata key, or NULL. */
const char *tensorfile_metadata(const tensorfile *file, const char *key);

/**
 * Writes a safetensors file: to a temporary beside path, which is then renamed, so that path is either whole or as it
 * was. Tensors may have any strides; they are written dense, the widest dtypes first, so that all are aligned in the
 * file. An existing regular file is replaced (a symbolic link stays: its target is replaced); anything else that exists
 * is refused.
 */
bool tensorfile_write(const char *path, const tensorfile_entry *entries, int count, const tensorfile_pair *metadata,
                      int metadata_count, tensorfile_error *error);

#endif
