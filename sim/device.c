/* Devices: options, allocations, findings, errors. */
#include "counters.h"
#include "device.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* On both sides of an allocation, never touched, so free of cost: a tile or some rows of overrun hit nobody else. */
enum { REDZONE_BYTES = 64 * 1024 };
/* Freed allocations whose addresses are not given out again. Their pages are returned at once. */
enum { QUARANTINED = 256 };

/* Errors
 * ------
 */
static _Thread_local char last_error[SIM_ERROR_BYTES] = "";

const char *sim_last_error(void)
{
    return last_error;
}

void sim_set_error(const char *format, ...)
{
    char    text[sizeof last_error]; /* an argument may be sim_last_error() itself */
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    memcpy(last_error, text, sizeof text);
}

/* Names
 * -----
 */
static const char *const arch_name[SIM_ARCHS] = { [SIM_GFX950] = "gfx950", [SIM_GFX1250] = "gfx1250" };

const char *sim_arch_name(sim_arch arch)
{
    return (unsigned)arch < SIM_ARCHS ? arch_name[arch] : "unknown";
}

bool sim_arch_of_name(const char *name, sim_arch *arch)
{
    for (int a = 0; a < SIM_ARCHS; a++) {
        if (strcmp(name, arch_name[a]) == 0) {
            *arch = (sim_arch)a;
            return true;
        }
    }
    sim_set_error("unknown architecture \"%s\": gfx950 or gfx1250", name);
    return false;
}

static const struct {
    const char *name, *what;
} check_row[SIM_CHECKS] = {
#define CHECK(id, name, what) [id] = { name, what },
#include "checks.def"
#undef CHECK
};

const char *sim_check_name(sim_check check)
{
    return (unsigned)check < SIM_CHECKS ? check_row[check].name : "unknown";
}

static bool checks_of_name(const char *name, size_t length, uint32_t *checks)
{
    if (length == 3 && memcmp(name, "all", 3) == 0) {
        *checks = SIM_CHECK_ALL;
        return true;
    }
    if (length == 4 && memcmp(name, "none", 4) == 0) {
        *checks = SIM_CHECK_NONE;
        return true;
    }
    for (int c = 0; c < SIM_CHECKS; c++) {
        if (strlen(check_row[c].name) == length && memcmp(name, check_row[c].name, length) == 0) {
            *checks = 1u << c;
            return true;
        }
    }
    sim_set_error("unknown check \"%.*s\"", (int)length, name);
    return false;
}

bool sim_checks_of_names(const char *names, uint32_t *checks)
{
    uint32_t set = names[0] == '-' ? SIM_CHECK_ALL : SIM_CHECK_NONE;
    for (const char *at = names;; at++) {
        const bool minus = *at == '-';
        at += minus;
        const size_t length = strcspn(at, ",");
        uint32_t     named;
        if (!checks_of_name(at, length, &named))
            return false;
        set = minus ? set & ~named : set | named;
        at += length;
        if (*at == '\0')
            break;
    }
    *checks = set;
    return true;
}

/* Allocations
 * -----------
 * One array, sorted by address: live ones and those in quarantine. A dispatch works on a copy of it.
 */
typedef struct allocation {
    sim_range range;
    void     *mapping; /* with the redzones; NULL: registered memory of the host's own */
    size_t    mapping_bytes;
    uint32_t  uses;  /* of registered memory: how often it is registered */
    uint64_t  freed; /* 0, or when: a running number */
} allocation;

struct sim_memory {
    allocation *at;
    uint32_t    count, room;
    uint64_t    allocated, freed; /* ever */
    uint32_t    quarantined;
};

/* The first allocation that begins beyond an address. */
static uint32_t allocation_above(const sim_memory *memory, uint64_t address)
{
    uint32_t low = 0, high = memory->count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (memory->at[middle].range.first <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static allocation *allocation_of(const sim_memory *memory, uint64_t address)
{
    const uint32_t above = allocation_above(memory, address);
    if (above == 0 || address >= memory->at[above - 1].range.last)
        return NULL;
    return &memory->at[above - 1];
}

static bool insert(sim_memory *memory, allocation new, const char *name)
{
    if (memory->count == memory->room) {
        const uint32_t room = memory->room == 0 ? 64 : 2 * memory->room;
        allocation    *grown = realloc(memory->at, room * sizeof *grown);
        if (grown == NULL) {
            sim_set_error("out of memory for the table of allocations");
            return false;
        }
        memory->at = grown;
        memory->room = room;
    }
    new.range.number = ++memory->allocated;
    if (name != NULL && name[0] != '\0')
        snprintf(new.range.name, sizeof new.range.name, "%s", name);
    else
        snprintf(new.range.name, sizeof new.range.name, "allocation %" PRIu64, new.range.number);
    const uint32_t i = allocation_above(memory, new.range.first);
    memmove(&memory->at[i + 1], &memory->at[i], (memory->count - i) * sizeof memory->at[0]);
    memory->at[i] = new;
    memory->count++;
    return true;
}

static void erase(sim_memory *memory, allocation *gone)
{
    if (gone->mapping != NULL)
        munmap(gone->mapping, gone->mapping_bytes);
    free(gone->range.written);
    const size_t i = (size_t)(gone - memory->at);
    memmove(gone, gone + 1, (memory->count - i - 1) * sizeof *gone);
    memory->count--;
}

static size_t page_round(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (bytes + page - 1) / page * page;
}

void *sim_allocate(sim_device *device, size_t bytes, const char *name)
{
    if (bytes == 0 || bytes > SIZE_MAX / 4) {
        sim_set_error("cannot allocate %zu bytes", bytes);
        return NULL;
    }
    const size_t mapping_bytes = page_round(bytes) + 2 * (size_t)REDZONE_BYTES;
    uint8_t     *mapping =
        mmap(NULL, mapping_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    uint8_t *written = calloc(bytes / 8 + 1, 1);
    if (mapping == MAP_FAILED || written == NULL) {
        if (mapping != MAP_FAILED)
            munmap(mapping, mapping_bytes);
        free(written);
        sim_set_error("out of memory: %zu bytes", bytes);
        return NULL;
    }
    const uint64_t first = (uint64_t)(uintptr_t)(mapping + REDZONE_BYTES);
    const allocation new = { .range = { .first = first, .last = first + bytes, .written = written },
                             .mapping = mapping,
                             .mapping_bytes = mapping_bytes };
    pthread_mutex_lock(&device->lock);
    const bool ok = insert(device->memory, new, name);
    pthread_mutex_unlock(&device->lock);
    if (!ok) {
        munmap(mapping, mapping_bytes);
        free(written);
        return NULL;
    }
    return mapping + REDZONE_BYTES;
}

/* Empties the quarantine to its limit. The caller holds device->lock, and device->running: no map names what goes. */
static void shrink_quarantine(sim_memory *memory)
{
    while (memory->quarantined > QUARANTINED) {
        allocation *oldest = NULL;
        for (uint32_t i = 0; i < memory->count; i++) {
            allocation *a = &memory->at[i];
            if (a->freed != 0 && (oldest == NULL || a->freed < oldest->freed))
                oldest = a;
        }
        erase(memory, oldest);
        memory->quarantined--;
    }
}

bool sim_free(sim_device *device, void *at)
{
    const uint64_t address = (uint64_t)(uintptr_t)at;
    const bool     idle = pthread_mutex_trylock(&device->running) == 0;
    pthread_mutex_lock(&device->lock);
    sim_memory *memory = device->memory;
    allocation *a = allocation_of(memory, address);
    const bool  ok = a != NULL && a->range.first == address && a->mapping != NULL && !a->range.freed;
    if (ok) {
        a->range.freed = true;
        a->freed = ++memory->freed;
        madvise(a->mapping, a->mapping_bytes, MADV_DONTNEED);
        memory->quarantined++;
        if (idle)
            shrink_quarantine(memory);
    } else if (a != NULL && a->range.freed) {
        sim_set_error("%p is freed already", at);
    } else {
        sim_set_error("%p is not the beginning of an allocation", at);
    }
    pthread_mutex_unlock(&device->lock);
    if (idle)
        pthread_mutex_unlock(&device->running);
    return ok;
}

bool sim_register(sim_device *device, void *at, size_t bytes, const char *name)
{
    const uint64_t first = (uint64_t)(uintptr_t)at;
    if (at == NULL || bytes == 0 || bytes > UINT64_MAX - first) {
        sim_set_error("cannot register %zu bytes at %p", bytes, at);
        return false;
    }
    pthread_mutex_lock(&device->lock);
    sim_memory    *memory = device->memory;
    const uint32_t above = allocation_above(memory, first + bytes - 1);
    allocation    *below = above == 0 ? NULL : &memory->at[above - 1]; /* the last that begins before the end */
    bool           ok;
    if (below != NULL && below->mapping == NULL && below->range.first == first && below->range.last == first + bytes) {
        below->uses++;
        ok = true;
    } else if (below != NULL && below->range.last > first) {
        sim_set_error("%zu bytes at %p overlap `%s`", bytes, at, below->range.name);
        ok = false;
    } else {
        const allocation new = { .range = { .first = first, .last = first + bytes }, .uses = 1 };
        ok = insert(memory, new, name);
    }
    pthread_mutex_unlock(&device->lock);
    return ok;
}

bool sim_unregister(sim_device *device, void *at)
{
    pthread_mutex_lock(&device->lock);
    allocation *a = allocation_of(device->memory, (uint64_t)(uintptr_t)at);
    const bool  ok = a != NULL && a->mapping == NULL && a->range.first == (uint64_t)(uintptr_t)at;
    if (!ok)
        sim_set_error("%p is not the beginning of registered memory", at);
    else if (--a->uses == 0)
        erase(device->memory, a);
    pthread_mutex_unlock(&device->lock);
    return ok;
}

bool sim_find(const sim_device *device, const void *at, void **base, size_t *bytes)
{
    sim_device *locked = (sim_device *)device;
    pthread_mutex_lock(&locked->lock);
    const allocation *a = allocation_of(device->memory, (uint64_t)(uintptr_t)at);
    const bool        ok = a != NULL && !a->range.freed;
    if (ok) {
        *base = (void *)(uintptr_t)a->range.first;
        *bytes = (size_t)(a->range.last - a->range.first);
    } else {
        sim_set_error("%p is in no allocation", at);
    }
    pthread_mutex_unlock(&locked->lock);
    return ok;
}

void sim_mark_written(sim_device *device, const void *at, size_t bytes)
{
    const uint64_t address = (uint64_t)(uintptr_t)at;
    pthread_mutex_lock(&device->lock);
    const allocation *a = allocation_of(device->memory, address);
    if (a != NULL && !a->range.freed)
        sim_range_mark(&a->range, address, bytes);
    pthread_mutex_unlock(&device->lock);
}

static sim_memory *memory_create(void)
{
    return calloc(1, sizeof(sim_memory));
}

static void memory_destroy(sim_memory *memory)
{
    while (memory->count > 0)
        erase(memory, &memory->at[memory->count - 1]);
    free(memory->at);
    free(memory);
}

/* Bits of what is written. Bytes of the bitmap that belong whole to the span are stored, shared ones are or-ed. */
void sim_range_mark(const sim_range *range, uint64_t at, uint64_t bytes)
{
    if (range->written == NULL || bytes == 0 || at < range->first || at >= range->last)
        return;
    const uint64_t first = at - range->first;
    const uint64_t span = range->last - at < bytes ? range->last - at : bytes;
    const uint64_t last = first + span - 1, first_byte = first / 8, last_byte = last / 8;
    const uint8_t  head = (uint8_t)(0xFFu << first % 8), tail = (uint8_t)(0xFFu >> (7 - last % 8));
    if (first_byte == last_byte) {
        const uint8_t mask = head & tail;
        if ((__atomic_load_n(&range->written[first_byte], __ATOMIC_RELAXED) & mask) != mask)
            __atomic_fetch_or(&range->written[first_byte], mask, __ATOMIC_RELAXED);
        return;
    }
    __atomic_fetch_or(&range->written[first_byte], head, __ATOMIC_RELAXED);
    for (uint64_t i = first_byte + 1; i < last_byte; i++)
        __atomic_store_n(&range->written[i], 0xFF, __ATOMIC_RELAXED);
    __atomic_fetch_or(&range->written[last_byte], tail, __ATOMIC_RELAXED);
}

bool sim_range_is_written(const sim_range *range, uint64_t at, uint64_t bytes)
{
    if (range->written == NULL)
        return true;
    for (uint64_t i = at - range->first, end = i + bytes; i < end;) {
        const uint8_t  bits = __atomic_load_n(&range->written[i / 8], __ATOMIC_RELAXED);
        const uint64_t left = 8 - i % 8, count = end - i < left ? end - i : left;
        const uint8_t  mask = (uint8_t)((0xFFu >> (8 - count)) << i % 8);
        if ((bits & mask) != mask)
            return false;
        i += count;
    }
    return true;
}

/* The map of a dispatch
 * ---------------------
 */
struct sim_map {
    uint64_t  serial; /* no map before had it: an address may come again */
    uint32_t  count;
    sim_range range[];
};

sim_map *sim_map_create(sim_device *device)
{
    static atomic_uint_fast64_t maps;
    pthread_mutex_lock(&device->lock);
    sim_memory *memory = device->memory;
    shrink_quarantine(memory);
    sim_map *map = malloc(sizeof *map + memory->count * sizeof map->range[0]);
    if (map == NULL) {
        sim_set_error("out of memory for a copy of the table of allocations");
    } else {
        map->serial = atomic_fetch_add(&maps, 1) + 1;
        map->count = memory->count;
        for (uint32_t i = 0; i < memory->count; i++)
            map->range[i] = memory->at[i].range;
    }
    pthread_mutex_unlock(&device->lock);
    return map;
}

void sim_map_destroy(sim_map *map)
{
    free(map);
}

/* The first range that begins beyond an address. */
static uint32_t range_above(const sim_map *map, uint64_t address)
{
    uint32_t low = 0, high = map->count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (map->range[middle].first <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool holds(const sim_range *range, uint64_t at, uint64_t bytes)
{
    return at >= range->first && at < range->last && bytes <= range->last - at;
}

const sim_range *sim_map_find(const sim_map *map, uint64_t at, uint64_t bytes)
{
    static _Thread_local struct {
        uint64_t serial;
        uint32_t index;
    } last;
    if (last.serial == map->serial && holds(&map->range[last.index], at, bytes))
        return &map->range[last.index];
    const uint32_t above = range_above(map, at);
    if (above == 0 || !holds(&map->range[above - 1], at, bytes))
        return NULL;
    last.serial = map->serial;
    last.index = above - 1;
    return &map->range[above - 1];
}

void sim_map_describe(const sim_map *map, uint64_t at, char *to, size_t size)
{
    const uint32_t   above = range_above(map, at);
    const sim_range *below = above == 0 ? NULL : &map->range[above - 1];
    const sim_range *next = above == map->count ? NULL : &map->range[above];
    const sim_range *near = below;
    const char      *where;
    uint64_t         distance;
    if (below != NULL && at < below->last) {
        distance = at - below->first;
        where = "into";
    } else if (below != NULL && (next == NULL || at - below->last <= next->first - at)) {
        distance = at - below->last;
        where = "behind";
    } else if (next != NULL) {
        near = next;
        distance = next->first - at;
        where = "before";
    } else {
        snprintf(to, size, "0x%" PRIx64 ": there is no allocation", at);
        return;
    }
    /* Further away than memory has ever been allocated around it, the neighbour explains nothing. */
    if (strcmp(where, "into") != 0 && distance > REDZONE_BYTES + (near->last - near->first))
        snprintf(to, size, "0x%" PRIx64 ": far from every allocation", at);
    else
        snprintf(to, size, "0x%" PRIx64 ": %" PRIu64 " bytes %s `%s` (%" PRIu64 " bytes%s)", at, distance, where,
                 near->name, near->last - near->first, near->freed ? ", freed" : "");
}

/* The device
 * ----------
 */
sim_device *sim_device_create(sim_arch arch, const sim_options *options)
{
    if ((unsigned)arch >= SIM_ARCHS) {
        sim_set_error("unknown architecture %d", (int)arch);
        return NULL;
    }
    sim_device *device = calloc(1, sizeof *device);
    sim_memory *memory = memory_create();
    if (device == NULL || memory == NULL) {
        free(device);
        free(memory);
        sim_set_error("out of memory for a device");
        return NULL;
    }
    device->arch = arch;
    device->memory = memory;
    if (options != NULL)
        device->options = *options;
    pthread_mutex_init(&device->lock, NULL);
    pthread_mutex_init(&device->running, NULL);
    return device;
}

void sim_device_destroy(sim_device *device)
{
    if (device == NULL)
        return;
    while (device->objects != NULL) {
        sim_object *object = device->objects;
        sim_object_unload(object); /* takes it off the list */
    }
    sim_findings_clear(device);
    free(device->record);
    sim_results_destroy(device->results);
    memory_destroy(device->memory);
    pthread_mutex_destroy(&device->running);
    pthread_mutex_destroy(&device->lock);
    free(device);
}

sim_arch sim_device_arch(const sim_device *device)
{
    return device->arch;
}

void sim_device_set_options(sim_device *device, const sim_options *options)
{
    pthread_mutex_lock(&device->running);
    device->options = *options;
    pthread_mutex_unlock(&device->running);
}

/* Findings
 * --------
 * Kept sorted by kernel, PC and check, and of one such place by dispatch, workgroup, wave and time: what is kept and
 * printed does not depend on which thread came first. Those beyond options.findings of a place are only counted, in
 * the first one's `times`.
 */
struct sim_record {
    sim_finding finding;
    uint64_t    dispatch, order, executed;
};

uint64_t sim_wave_order(const sim_wave *w)
{
    const sim_group    *g = w->group;
    const sim_dispatch *d = g->dispatch;
    if (d == NULL)
        return (uint64_t)w->id;
    const uint64_t groups_x = (d->grid[0] + (uint64_t)d->group[0] - 1) / d->group[0];
    const uint64_t groups_y = (d->grid[1] + (uint64_t)d->group[1] - 1) / d->group[1];
    const uint64_t group = g->id[0] + groups_x * (g->id[1] + groups_y * g->id[2]);
    return group * SIM_MAX_WAVES + (uint64_t)w->id;
}

static int compare_numbers(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int compare_places(const sim_record *a, const sim_record *b)
{
    const int kernel = strcmp(a->finding.kernel, b->finding.kernel);
    const int pc = compare_numbers(a->finding.pc, b->finding.pc);
    return kernel != 0 ? kernel : pc != 0 ? pc : compare_numbers(a->finding.check, b->finding.check);
}

static int compare_times(const sim_record *a, const sim_record *b)
{
    const int dispatch = compare_numbers(a->dispatch, b->dispatch), order = compare_numbers(a->order, b->order);
    const int executed = compare_numbers(a->executed, b->executed);
    if (dispatch != 0 || order != 0)
        return dispatch != 0 ? dispatch : order;
    return executed != 0 ? executed : (a->finding.lane > b->finding.lane) - (a->finding.lane < b->finding.lane);
}

/* The first record that is not before a place. */
static uint32_t first_of_place(const sim_device *device, const sim_record *place)
{
    uint32_t low = 0, high = device->records;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (compare_places(device->record[middle], place) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Makes room at `i`, or fails silently: a finding that does not fit in memory is lost. */
static bool record_insert(sim_device *device, uint32_t i, const sim_record *new)
{
    if (device->records == device->record_room) {
        const uint32_t room = device->record_room == 0 ? 64 : 2 * device->record_room;
        sim_record   **grown = realloc(device->record, room * sizeof(sim_record *));
        if (grown == NULL)
            return false;
        device->record = grown;
        device->record_room = room;
    }
    sim_record *copy = malloc(sizeof *copy);
    if (copy == NULL)
        return false;
    *copy = *new;
    memmove(&device->record[i + 1], &device->record[i], (device->records - i) * sizeof device->record[0]);
    device->record[i] = copy;
    device->records++;
    return true;
}

/* Where a new record belongs among the `count` of its place, which begin at `first`. */
static uint32_t position(const sim_device *device, uint32_t first, uint32_t count, const sim_record *new)
{
    uint32_t i = first;
    while (i < first + count && compare_times(device->record[i], new) <= 0)
        i++;
    return i;
}

static void format_finding(sim_record *record, const sim_instruction *inst, const char *format, va_list list)
{
    snprintf(record->finding.text, sizeof record->finding.text, "%s",
             inst != NULL && inst->text != NULL ? inst->text : "");
    vsnprintf(record->finding.detail, sizeof record->finding.detail, format, list);
}

static void keep(sim_device *device, sim_record *new, const sim_instruction *inst, const char *format, va_list list)
{
    const uint32_t limit = device->options.findings == 0 ? 1 : device->options.findings;
    const uint32_t first = first_of_place(device, new);
    uint32_t       count = 0;
    while (first + count < device->records && compare_places(device->record[first + count], new) == 0)
        count++;
    const uint32_t at = position(device, first, count, new);
    if (count >= limit && at == first + count) { /* later than all that are kept: no need for its words */
        device->record[first]->finding.times++;
        return;
    }
    uint64_t beyond = 0; /* occurrences counted in the first one, besides itself */
    if (count > 0) {
        beyond = device->record[first]->finding.times - 1;
        device->record[first]->finding.times = 1;
    }
    format_finding(new, inst, format, list);
    if (record_insert(device, at, new))
        count++;
    if (count > limit) {
        const uint32_t last = first + count - 1;
        free(device->record[last]);
        memmove(&device->record[last], &device->record[last + 1],
                (device->records - last - 1) * sizeof device->record[0]);
        device->records--;
        beyond++;
    }
    if (count > 0)
        device->record[first]->finding.times += beyond;
}

/* The offset of an instruction, or of the next one, from its kernel's entry. */
static uint64_t offset_in_kernel(const sim_wave *w, const sim_instruction *inst)
{
    const sim_dispatch *dispatch = w->group->dispatch;
    return (inst != NULL ? inst->pc : w->pc) - (dispatch != NULL ? dispatch->kernel->entry : 0);
}

static const char *kernel_name(const sim_wave *w)
{
    return w->group->dispatch != NULL ? w->group->dispatch->kernel->name : "";
}

void sim_report(sim_wave *w, const sim_instruction *inst, sim_check check, int lane, const char *format, ...)
{
    sim_device *device = w->group->device;
    if (!sim_checks(w, check) || device == NULL)
        return;
    sim_record record = { .finding = { .check = check,
                                       .pc = offset_in_kernel(w, inst),
                                       .group = { w->group->id[0], w->group->id[1], w->group->id[2] },
                                       .wave = w->id,
                                       .lane = lane,
                                       .times = 1 },
                          .dispatch = device->dispatches,
                          .order = sim_wave_order(w),
                          .executed = w->executed };
    snprintf(record.finding.kernel, sizeof record.finding.kernel, "%s", kernel_name(w));
    va_list list;
    va_start(list, format);
    pthread_mutex_lock(&device->lock);
    keep(device, &record, inst, format, list);
    pthread_mutex_unlock(&device->lock);
    va_end(list);
}

void sim_fail(sim_wave *w, const sim_instruction *inst, const char *format, ...)
{
    const sim_group *g = w->group;
    char             words[sizeof last_error - 512];
    va_list          list;
    va_start(list, format);
    vsnprintf(words, sizeof words, format, list);
    va_end(list);
    w->status = SIM_FAILED;
    const bool has_text = inst != NULL && inst->text != NULL;
    sim_set_error("%s+0x%" PRIx64 "%s%s: %s (workgroup %u,%u,%u wave %d)", kernel_name(w), offset_in_kernel(w, inst),
                  has_text ? ": " : "", has_text ? inst->text : "", words, g->id[0], g->id[1], g->id[2], w->id);
    sim_device *device = g->device;
    if (device == NULL)
        return;
    const uint64_t order = sim_wave_order(w);
    pthread_mutex_lock(&device->lock);
    if (!device->failed || order < device->failed_order) {
        device->failed = true;
        device->failed_order = order;
        memcpy(device->error, last_error, sizeof device->error);
    }
    pthread_mutex_unlock(&device->lock);
    atomic_store(&device->stop, true);
}

uint32_t sim_finding_count(const sim_device *device)
{
    return device->records;
}

const sim_finding *sim_finding_at(const sim_device *device, uint32_t i)
{
    return i < device->records ? &device->record[i]->finding : NULL;
}

void sim_findings_clear(sim_device *device)
{
    pthread_mutex_lock(&device->lock);
    for (uint32_t i = 0; i < device->records; i++)
        free(device->record[i]);
    device->records = 0;
    pthread_mutex_unlock(&device->lock);
}

void sim_print_finding(FILE *to, const sim_finding *finding)
{
    const sim_finding *f = finding;
    fprintf(to, "%s: %s\n", sim_check_name(f->check), check_row[f->check].what);
    fprintf(to, "    at     %s+0x%" PRIx64 "  %s\n", f->kernel, f->pc, f->text);
    fprintf(to, "    in     workgroup %" PRIu32 ",%" PRIu32 ",%" PRIu32 "  wave %d", f->group[0], f->group[1],
            f->group[2], f->wave);
    if (f->lane >= 0)
        fprintf(to, "  lane %d", f->lane);
    fprintf(to, "\n    found  %s\n    times  %" PRIu64 "\n", f->detail, f->times);
}
