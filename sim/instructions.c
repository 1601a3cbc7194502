/* The table of opcodes as one: its parts, sorted by name at the first look. */
#include "opcodes.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static const sim_opcode *const parts[] = { sim_salu_opcodes, sim_valu_opcodes, sim_memory_opcodes, sim_matrix_opcodes,
                                           sim_control_opcodes };

enum { PARTS = sizeof parts / sizeof parts[0] };

static const sim_opcode **sorted; /* lives as long as the process */
static uint32_t           count;

static int by_name(const void *a, const void *b)
{
    const sim_opcode *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static void sort_parts(void)
{
    uint32_t rows = 0;
    for (int p = 0; p < PARTS; p++)
        for (const sim_opcode *op = parts[p]; op->name != NULL; op++)
            rows++;
    sorted = malloc((rows + 1) * sizeof *sorted);
    if (sorted == NULL)
        return;
    for (int p = 0; p < PARTS; p++)
        for (const sim_opcode *op = parts[p]; op->name != NULL; op++)
            sorted[count++] = op;
    qsort(sorted, count, sizeof *sorted, by_name);
}

static void sort_once(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, sort_parts);
}

uint32_t sim_opcode_count(void)
{
    sort_once();
    return count;
}

const sim_opcode *sim_opcode_at(uint32_t i)
{
    sort_once();
    return i < count ? sorted[i] : NULL;
}

/* The first row whose name is not less. */
static uint32_t lower_bound(const char *name)
{
    uint32_t first = 0, end = count;
    while (first < end) {
        const uint32_t middle = first + (end - first) / 2;
        if (strcmp(sorted[middle]->name, name) < 0)
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

const sim_opcode *sim_opcode_find(const char *name, sim_arch arch)
{
    sort_once();
    /* A name may have a row for each arch: v_cmpx_* names its mask on one of them only. */
    for (uint32_t i = lower_bound(name); i < count && strcmp(sorted[i]->name, name) == 0; i++)
        if ((sorted[i]->arches >> arch & 1) != 0)
            return sorted[i];
    return NULL;
}
