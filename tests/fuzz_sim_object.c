/* The loader under random damage.
 *
 *   fuzz_sim_object CORPUS [--seconds N] [--seed S] [--keep DIRECTORY]
 *
 * replays the files of a directory, then changes them at random for N seconds (0 by default). A sanitizer's report, a
 * crash or a hang is the finding. --keep leaves each changed file there as `last` before it is loaded: what crashed is
 * what is left. LLVMFuzzerTestOneInput is the same entry for libFuzzer, when built with -DLIBFUZZER.
 */
#include "device.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void load(sim_arch arch, const uint8_t *bytes, size_t size)
{
    static sim_device *devices[SIM_ARCHS];
    if (devices[arch] == NULL)
        devices[arch] = sim_device_create(arch, &(sim_options){ .checks = SIM_CHECK_NONE });
    sim_object *object = sim_object_load(devices[arch], bytes, size);
    if (object == NULL)
        return;
    FILE *nowhere = fopen("/dev/null", "w");
    if (nowhere != NULL) {
        sim_disassemble(nowhere, object, NULL);
        fclose(nowhere);
    }
    for (uint32_t i = 0; i < sim_object_kernel_count(object); i++) {
        const sim_kernel  *kernel = sim_object_kernel_at(object, i);
        const sim_dispatch dispatch = { .kernel = kernel, .grid = { 7, 5, 3 }, .group = { 2, 2, 2 } };
        uint8_t           *kernarg = malloc((size_t)kernel->kernarg_bytes + 1); /* an exact block: ASan sees its end */
        if (kernarg != NULL)
            sim_kernarg_fill(&dispatch, kernarg);
        free(kernarg);
    }
    sim_object_unload(object);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    for (int arch = 0; arch < SIM_ARCHS; arch++)
        load((sim_arch)arch, bytes, size);
    return 0;
}

#ifndef LIBFUZZER

enum { MOST_FILES = 256, MOST_BYTES = 1 << 16 };

typedef struct file {
    uint8_t *bytes;
    size_t   size;
} file;

static uint64_t state = 1;

/* xorshift64* */
static uint32_t random_below(uint32_t below)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (uint32_t)((state * 0x2545F4914F6CDD1Du >> 32) % below);
}

static int read_corpus(const char *directory, file *files)
{
    DIR *open = opendir(directory);
    int  count = 0;
    if (open == NULL)
        return 0;
    for (struct dirent *d = readdir(open); d != NULL && count < MOST_FILES; d = readdir(open)) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", directory, d->d_name);
        FILE *from = d->d_name[0] == '.' ? NULL : fopen(path, "rb");
        if (from == NULL)
            continue;
        uint8_t *bytes = malloc(MOST_BYTES);
        if (bytes != NULL)
            files[count++] = (file){ bytes, fread(bytes, 1, MOST_BYTES, from) };
        fclose(from);
    }
    closedir(open);
    return count;
}

/* Numbers that bounds are wrong about. */
static const uint64_t edges[] = { 0,
                                  1,
                                  0x7F,
                                  0x80,
                                  0xFF,
                                  0xFFFF,
                                  0x7FFFFFFF,
                                  0x80000000,
                                  UINT32_MAX,
                                  INT64_MAX,
                                  (uint64_t)1 << 63,
                                  UINT64_MAX - 63,
                                  UINT64_MAX };

/* One change: a bit, a byte, an edge in place of a number, a piece moved, cut or taken from another file. */
static void change(file *f, const file *other)
{
    const uint32_t size = (uint32_t)f->size, at = random_below(size), left = size - at;
    const uint32_t aligned = at & ~7u;
    const uint64_t edge = edges[random_below(sizeof edges / sizeof edges[0])];
    const uint32_t piece = 1 + random_below(left < 64 ? left : 64);
    switch (random_below(8)) {
    case 0:
        f->bytes[at] ^= (uint8_t)(1u << random_below(8));
        break;
    case 1:
        f->bytes[at] = (uint8_t)random_below(256);
        break;
    case 2: /* headers, tables and most of their fields are aligned */
        memcpy(f->bytes + aligned, &edge, size - aligned < 8 ? size - aligned : 8);
        break;
    case 3:
        memcpy(f->bytes + at, &edge, left < 4 ? left : 4);
        break;
    case 4:
        memmove(f->bytes + at, f->bytes + random_below(size - piece + 1), piece);
        break;
    case 5:
        if (at + piece <= other->size)
            memcpy(f->bytes + at, other->bytes + at, piece);
        break;
    case 6: /* a small step: off by one is where bounds are */
        f->bytes[at] = (uint8_t)(f->bytes[at] + (random_below(2) == 0 ? 1 : 255));
        break;
    default:
        if (random_below(16) == 0) /* most cut files end at the first check */
            f->size = at + 1;
        break;
    }
}

static void keep_last(const char *directory, const file *f)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/last", directory);
    FILE *to = fopen(path, "wb");
    if (to == NULL)
        return;
    fwrite(f->bytes, 1, f->size, to);
    fclose(to);
}

static uint64_t mutate_for(long seconds, const file *files, int count, const char *keep)
{
    uint64_t     runs = 0;
    const time_t end = time(NULL) + seconds;
    while (time(NULL) < end) {
        const file *from = &files[random_below((uint32_t)count)];
        file        f = { malloc(from->size), from->size };
        if (f.bytes == NULL)
            break;
        memcpy(f.bytes, from->bytes, from->size);
        for (uint32_t changes = 1 + random_below(8); changes > 0; changes--)
            change(&f, &files[random_below((uint32_t)count)]);
        uint8_t *exact = malloc(f.size);
        if (exact != NULL)
            memcpy(exact, f.bytes, f.size);
        if (keep != NULL)
            keep_last(keep, &f);
        if (exact != NULL)
            LLVMFuzzerTestOneInput(exact, f.size);
        free(exact);
        free(f.bytes);
        runs++;
    }
    return runs;
}

int main(int argc, char **argv)
{
    static file files[MOST_FILES];
    long        seconds = 0;
    const char *directory = NULL, *keep = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc)
            seconds = strtol(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
            state = strtoull(argv[++i], NULL, 0) | 1;
        else if (strcmp(argv[i], "--keep") == 0 && i + 1 < argc)
            keep = argv[++i];
        else
            directory = argv[i];
    }
    if (directory == NULL) {
        fprintf(stderr, "usage: %s CORPUS [--seconds N] [--seed S] [--keep DIRECTORY]\n", argv[0]);
        return 2;
    }
    const int count = read_corpus(directory, files);
    if (count == 0) {
        fprintf(stderr, "%s: no file in %s\n", argv[0], directory);
        return 2;
    }
    for (int i = 0; i < count; i++)
        LLVMFuzzerTestOneInput(files[i].bytes, files[i].size);
    printf("%d files replayed\n", count);
    if (seconds > 0)
        printf("%" PRIu64 " changed files in %ld s\n", mutate_for(seconds, files, count, keep), seconds);
    for (int i = 0; i < count; i++)
        free(files[i].bytes);
    return 0;
}

#endif
