/* tensorfile_copy IN OUT: reads a tensor file or directory of any format, writes safetensors. For tests/witness.py. */
#include "tensorfile.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    tensorfile       file;
    tensorfile_error error;
    if (argc != 3) {
        fprintf(stderr, "usage: tensorfile_copy IN OUT\n");
        return EXIT_FAILURE;
    }
    if (!tensorfile_read(argv[1], &file, &error)) {
        fprintf(stderr, "%s: %s\n", argv[1], error.text);
        return EXIT_FAILURE;
    }
    const bool done = tensorfile_write(argv[2], file.entries, file.count, file.metadata, file.metadata_count, &error);
    if (!done)
        fprintf(stderr, "%s: %s\n", argv[2], error.text);
    tensorfile_free(&file);
    return done ? EXIT_SUCCESS : EXIT_FAILURE;
}
