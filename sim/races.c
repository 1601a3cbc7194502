/* Memory: bounds, what is written, races on LDS between waves, races on memory between workgroups.
 *
 * LDS. An operation is outstanding, then a wait of its wave covers it, then the next barrier signal of that wave
 * publishes it. Each wave knows of each other wave the last signal that a barrier brought it (a vector clock). Two
 * accesses of different waves to a byte, one a write, are ordered only if the earlier one was published by a signal
 * that the later one's wave knew of when it issued the later one. In one wave, DS instructions are in order among
 * each other, and so are LDS-DMA loads of gfx950; every other pair (LDS-DMA, async, TDM against DS) wants the wait
 * before the later one is issued. Atomics do not race with atomics. Everything is by byte, in flat arrays: the last
 * writer of a byte, and for each wave its last read and its last atomic operation.
 *
 * Memory, between workgroups. A dword has its last writer, and its reader or "several", in one 64-bit word that
 * threads exchange atomically. Bytes of the writer and the readers count apart, so that workgroups may share a dword.
 * What a workgroup wrote is released by a device-scope atomic (or a store with device scope) that a wave of it issues
 * once the stores are complete: no wave of the workgroup has signalled a barrier with stores outstanding, the issuing
 * wave has none itself, and the stores were written back (gfx950 buffer_wbl2, gfx1250 global_wb) or had device scope
 * themselves. A returning atomic, or a load with device scope, of the same address acquires all that was released
 * there; plain loads may use it after buffer_inv or global_inv. Workgroups number up to 2^20 - 2, releases of one up
 * to 255 (then later writes count as released).
 */
#include "device.h"
#include "watch.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* LDS
 * ---
 */
enum { WAVE_BITS = 5 };
_Static_assert(SIM_MAX_WAVES == 1 << WAVE_BITS, "a wave's number fits into a shadow word");

/* A barrier's clocks of one generation. */
typedef struct meeting {
    uint32_t generation;
    bool     used;
    uint32_t clock[SIM_MAX_WAVES];
} meeting;

enum { MEETINGS = 4 }; /* generations of a barrier that may be alive at once: two */

/* How far the workgroup's accesses to memory are known to others. */
typedef struct acquired {
    uint32_t group;
    uint8_t  epoch;
} acquired;

typedef struct acquisitions {
    acquired *of;
    uint32_t  count, room;
} acquisitions;

struct sim_lds_map {
    uint32_t  bytes;
    int       waves;
    uint32_t *writer; /* [byte]: number << WAVE_BITS | wave */
    uint32_t *reader; /* [wave][byte]: number among the wave's operations on LDS */
    uint32_t *atomic; /* [wave][byte], from the first atomic on */
    uint8_t  *written;
    meeting   barrier[SIM_BARRIERS][MEETINGS];

    /* The workgroup, to others. */
    uint32_t     group;         /* number, from 1 */
    uint8_t      epoch;         /* releases so far */
    bool         dirty;         /* stores since the last write-back */
    acquisitions known, coming; /* coming: not usable by plain loads before an invalidation */
};

static uint32_t group_number(const sim_group *g)
{
    const sim_dispatch *d = g->dispatch;
    if (d == NULL || d->group[0] == 0 || d->group[1] == 0)
        return g->id[0] + 1;
    const uint64_t x = (d->grid[0] + d->group[0] - 1) / d->group[0], y = (d->grid[1] + d->group[1] - 1) / d->group[1];
    const uint64_t number = g->id[0] + x * (g->id[1] + y * g->id[2]) + 1;
    return number > UINT32_MAX ? UINT32_MAX : (uint32_t)number;
}

sim_lds_map *sim_lds_map_create(const sim_group *g)
{
    sim_lds_map *map = calloc(1, sizeof *map);
    if (map == NULL)
        return NULL;
    const size_t bytes = g->lds_bytes + 16; /* never an empty block */
    map->bytes = g->lds_bytes;
    map->waves = g->wave_count;
    map->group = group_number(g);
    map->writer = calloc(bytes, sizeof *map->writer);
    map->reader = calloc(bytes * (size_t)g->wave_count, sizeof *map->reader);
    map->written = calloc(bytes, 1);
    if (map->writer == NULL || map->reader == NULL || map->written == NULL) {
        sim_lds_map_destroy(map);
        return NULL;
    }
    return map;
}

void sim_lds_map_destroy(sim_lds_map *map)
{
    if (map == NULL)
        return;
    free(map->writer);
    free(map->reader);
    free(map->atomic);
    free(map->written);
    free(map->known.of);
    free(map->coming.of);
    free(map);
}

void sim_races_create(sim_watch *k, const sim_wave *w)
{
    (void)w;
    k->snapshot = calloc(SIM_SNAPSHOTS, sizeof *k->snapshot);
    k->lds_events = 1; /* 0: none */
}

void sim_races_destroy(sim_watch *k)
{
    free(k->snapshot);
    free(k->lds);
}

/* Whether what the workgroup wrote before `by` is complete and visible when that is issued: see the top of the file. */
static bool may_release(const sim_wave *w, const sim_operation *by)
{
    const sim_group *g = w->group;
    if (g->lds_map->dirty)
        return false;
    for (uint32_t i = 0; i < w->watch->opened; i++) {
        const sim_operation *op = &w->watch->open[i];
        const uint32_t       what = op->inst->facts.what;
        if (op != by && (what & SIM_FACT_STORES) != 0 && (what & (SIM_FACT_DS | SIM_FACT_ATOMIC)) == 0)
            return false;
    }
    for (int i = 0; i < g->wave_count; i++)
        if (i != w->id && g->wave[i].watch != NULL && g->wave[i].watch->leaked)
            return false;
    return true;
}

void sim_races_issue(sim_wave *w, const sim_instruction *inst, sim_operation *op)
{
    const uint32_t what = sim_facts_of(inst)->what;
    op->snapshot = w->watch->passed;
    if (w->group->lds_map == NULL || (what & SIM_FACT_STORES) == 0 || (what & SIM_FACT_DS) != 0)
        return;
    if ((what & (SIM_FACT_ATOMIC | SIM_FACT_DEVICE_SCOPE)) != 0)
        op->releases = may_release(w, op);
    else
        w->group->lds_map->dirty = true;
}

/* The operation's number among the wave's operations on LDS, 0: not tracked. */
static uint32_t lds_number(sim_watch *k, sim_operation *op)
{
    if (op->lds != 0)
        return op->lds;
    if (k->lds_events >= 1u << (32 - WAVE_BITS))
        return 0;
    if (k->lds_events >= k->lds_room) {
        const uint32_t room = k->lds_room == 0 ? 256 : 2 * k->lds_room;
        sim_lds_event *more = realloc(k->lds, room * sizeof *more);
        if (more == NULL)
            return 0;
        k->lds = more;
        k->lds_room = room;
    }
    k->lds[k->lds_events] = (sim_lds_event){ .inst = op->inst };
    op->lds = k->lds_events++;
    return op->lds;
}

void sim_races_complete(sim_wave *w, const sim_operation *op)
{
    sim_watch *k = w->watch;
    if (op->lds == 0)
        return;
    k->lds[op->lds].epoch = k->epoch;
    k->lds[op->lds].last = (uint32_t)k->last_event;
}

static int barrier_slot(int id)
{
    return id > 0 && id < SIM_BARRIERS ? id : 0;
}

static meeting *meeting_of(sim_lds_map *map, int id, uint32_t generation)
{
    meeting *m = &map->barrier[barrier_slot(id)][generation % MEETINGS];
    if (!m->used || m->generation != generation) {
        memset(m, 0, sizeof *m);
        m->generation = generation;
        m->used = true;
    }
    return m;
}

static void join(uint32_t *to, const uint32_t *from, int waves)
{
    for (int i = 0; i < waves; i++)
        to[i] = to[i] < from[i] ? from[i] : to[i];
}

static bool has_stores_outstanding(const sim_watch *k)
{
    for (uint32_t i = 0; i < k->opened; i++)
        if ((k->open[i].inst->facts.what & SIM_FACT_STORES) != 0 && (k->open[i].inst->facts.what & SIM_FACT_DS) == 0)
            return true;
    return false;
}

void sim_check_signal(sim_wave *w, const sim_instruction *inst, int id, uint32_t generation)
{
    sim_watch   *k = w->watch;
    sim_lds_map *map = w->group->lds_map;
    (void)inst;
    if (map == NULL || id < -1)
        return;
    meeting *m = meeting_of(map, id, generation);
    join(m->clock, k->clock, map->waves);
    m->clock[w->id] = k->epoch++;
    k->leaked = has_stores_outstanding(k);
}

void sim_check_passed(sim_wave *w, const sim_instruction *inst, int id, uint32_t generation)
{
    sim_watch   *k = w->watch;
    sim_lds_map *map = w->group->lds_map;
    (void)inst;
    if (map == NULL || id < -1 || k->snapshot == NULL)
        return;
    join(k->clock, meeting_of(map, id, generation)->clock, map->waves);
    k->passed++;
    memcpy(k->snapshot[k->passed % SIM_SNAPSHOTS], k->clock, sizeof k->clock);
}

void sim_check_group_end(sim_group *g)
{
    (void)g; /* what the workgroup leaves behind is in the shadow of memory */
}

/* What the issuing wave knew when it issued the operation; beyond the ring's reach, the oldest that is left. */
static const uint32_t *clock_at(const sim_watch *k, const sim_operation *op)
{
    const uint32_t age = k->passed - op->snapshot;
    const uint32_t from = age < SIM_SNAPSHOTS ? op->snapshot : k->passed - SIM_SNAPSHOTS + 1;
    return k->snapshot[from % SIM_SNAPSHOTS];
}

/* Whether the earlier event of a wave is in order before the operation `op` of wave w. */
static bool is_ordered(const sim_wave *w, const sim_operation *op, int wave, uint32_t number)
{
    const sim_lds_event *event = &w->group->wave[wave].watch->lds[number];
    if (wave != w->id)
        return event->epoch != 0 && event->epoch <= clock_at(w->watch, op)[wave];
    if (number == op->lds)
        return true;
    const sim_facts *a = sim_facts_of(event->inst), *b = sim_facts_of(op->inst);
    /* A flat access to LDS goes the way of DS instructions. */
    const bool a_is_ds = (a->what & SIM_FACT_COPIES_IN) == 0, b_is_ds = (b->what & SIM_FACT_COPIES_IN) == 0;
    if ((a_is_ds && b_is_ds) || (!a_is_ds && !b_is_ds && w->group->arch == SIM_GFX950))
        return true;
    return event->epoch != 0 && event->last < (uint32_t)op->event;
}

static void report_race(sim_wave *w, const sim_operation *op, int lane, uint32_t address, sim_access_kind kind,
                        int wave, uint32_t number, const char *other)
{
    static const char *const verb[] = { "reads", "writes", "updates" };
    const sim_wave          *u = &w->group->wave[wave];
    const sim_lds_event     *event = &u->watch->lds[number];
    const char *missing = wave == w->id                     ? "no wait lies between"
                          : event->epoch == 0               ? "and no wait of that wave covers it"
                          : event->epoch == u->watch->epoch ? "and that wave has not signalled a barrier since"
                                                            : "and no barrier lies between";
    sim_report(w, op->inst, SIM_CHECK_LDS_RACE, lane,
               "%s LDS byte %u, which \"%s\" at +0x%" PRIx64 " of wave %d %s, %s", verb[kind], address,
               event->inst->text, sim_offset(w, event->inst), wave, other, missing);
}

/* Holds `count` shadow words of one wave against the operation. Equal neighbours, which are the rule, are looked at
 * once. */
static bool meets_wave(sim_wave *w, const sim_operation *op, int lane, uint32_t address, uint32_t bytes,
                       sim_access_kind kind, int wave, const uint32_t *shadow, const char *other)
{
    uint32_t last = 0;
    for (uint32_t i = 0; i < bytes; i++) {
        if (shadow[i] == last)
            continue;
        last = shadow[i];
        if (last != 0 && !is_ordered(w, op, wave, last)) {
            report_race(w, op, lane, address + i, kind, wave, last, other);
            return true;
        }
    }
    return false;
}

static bool meets_writer(sim_wave *w, const sim_operation *op, int lane, uint32_t address, uint32_t bytes,
                         sim_access_kind kind)
{
    const uint32_t *writer = w->group->lds_map->writer + address;
    uint32_t        last = 0;
    for (uint32_t i = 0; i < bytes; i++) {
        if (writer[i] == last)
            continue;
        last = writer[i];
        const int wave = (int)(last & (SIM_MAX_WAVES - 1));
        if (last != 0 && !is_ordered(w, op, wave, last >> WAVE_BITS)) {
            report_race(w, op, lane, address + i, kind, wave, last >> WAVE_BITS, "writes");
            return true;
        }
    }
    return false;
}

static void fill_words(uint32_t *to, uint32_t count, uint32_t word)
{
    for (uint32_t i = 0; i < count; i++)
        to[i] = word;
}

static bool has_atomics(sim_lds_map *map)
{
    if (map->atomic == NULL)
        map->atomic = calloc(((size_t)map->bytes + 16) * (size_t)map->waves, sizeof *map->atomic);
    return map->atomic != NULL;
}

static void race_lds(sim_wave *w, sim_operation *op, int lane, uint32_t address, uint32_t bytes, sim_access_kind kind)
{
    sim_lds_map   *map = w->group->lds_map;
    const size_t   row = (size_t)map->bytes + 16;
    const uint32_t number = lds_number(w->watch, op);
    if (number == 0)
        return;
    bool found = meets_writer(w, op, lane, address, bytes, kind);
    for (int u = 0; u < map->waves && !found; u++) {
        const size_t at = row * (size_t)u + address;
        if (kind != SIM_READ)
            found = meets_wave(w, op, lane, address, bytes, kind, u, map->reader + at, "reads");
        if (!found && kind != SIM_READ_WRITE && map->atomic != NULL)
            found = meets_wave(w, op, lane, address, bytes, kind, u, map->atomic + at, "updates");
    }
    const size_t own = row * (size_t)w->id + address;
    if (kind == SIM_READ)
        fill_words(map->reader + own, bytes, number);
    else if (kind == SIM_WRITE)
        fill_words(map->writer + address, bytes, number << WAVE_BITS | (uint32_t)w->id);
    else if (has_atomics(map))
        fill_words(map->atomic + own, bytes, number);
}

/* Which data operand a call is about: of two-address forms the first call of a lane has the first. */
static int operand_of_call(sim_operation *op, int lane)
{
    const uint64_t bit = lane < 0 ? 0 : UINT64_C(1) << lane;
    const bool     again = (op->second & bit) != 0;
    op->second |= bit;
    return again;
}

static void mark_lds(sim_wave *w, sim_operation *op, int lane, uint32_t address, uint32_t bytes)
{
    uint8_t *written = w->group->lds_map->written + address;
    if (op == NULL || lane < 0 || (op->unknown == NULL && op->unwritten == 0)) {
        memset(written, 1, bytes);
        return;
    }
    if (op->unknown == NULL) {
        memset(written, (op->unwritten >> lane & 1) == 0, bytes);
        return;
    }
    const int       data = sim_data_operand(op->inst), count = op->inst->operand[data].count;
    const uint32_t *unknown = op->unknown + (size_t)(operand_of_call(op, lane) * count * w->lanes);
    for (uint32_t i = 0; i < bytes; i++) {
        uint32_t bits = unknown[(int)(i / 4) * w->lanes + lane];
        if (bytes < 4) /* of a high half too */
            bits |= bits >> 16;
        written[i] = (bits >> 8 * (i % 4) & 0xFF) == 0;
    }
}

bool sim_check_lds(sim_wave *w, const sim_instruction *inst, uint64_t event, int lane, uint32_t address, uint32_t bytes,
                   sim_access_kind kind)
{
    const sim_group *g = w->group;
    if (bytes > g->lds_bytes || address > g->lds_bytes - bytes) {
        sim_report(w, inst, SIM_CHECK_LDS_BOUNDS, lane, "%u bytes at byte %u of the workgroup's %u bytes of LDS", bytes,
                   address, g->lds_bytes);
        return false;
    }
    if (g->lds_map == NULL)
        return true;
    sim_operation *op = sim_operation_of(w->watch, event);
    if (op != NULL && sim_checks(w, SIM_CHECK_LDS_RACE))
        race_lds(w, op, lane, address, bytes, kind);
    if (kind == SIM_WRITE)
        mark_lds(w, op, lane, address, bytes);
    return true;
}

bool sim_lds_written(const sim_group *g, uint32_t address, uint32_t bytes)
{
    const sim_lds_map *map = g->lds_map;
    if (map == NULL || bytes > map->bytes || address > map->bytes - bytes)
        return true;
    return memchr(map->written + address, 0, bytes) == NULL;
}

/* Memory between workgroups
 * -------------------------
 */
enum {
    GROUP_BITS = 20,
    SEVERAL = (1 << GROUP_BITS) - 1, /* readers */
    PAGE_BITS = 14,                  /* bytes of memory that a page of the shadow covers */
    PAGE_WORDS = 1 << (PAGE_BITS - 2),
    SHARDS = 64,
    LAST_EPOCH = UINT8_MAX
};

/* A dword of memory: writer 20 bits, its bytes 4, its epoch 8; the same of its reader. */
typedef struct dword {
    uint32_t writer, reader;
    uint8_t  written, read, write_epoch, read_epoch;
} dword;

static dword unpack(uint64_t x)
{
    return (dword){ .writer = x & SEVERAL,
                    .written = x >> 20 & 15,
                    .write_epoch = x >> 24 & 0xFF,
                    .reader = x >> 32 & SEVERAL,
                    .read = x >> 52 & 15,
                    .read_epoch = x >> 56 & 0xFF };
}

static uint64_t pack(dword d)
{
    return d.writer | (uint64_t)d.written << 20 | (uint64_t)d.write_epoch << 24 | (uint64_t)d.reader << 32 |
           (uint64_t)d.read << 52 | (uint64_t)d.read_epoch << 56;
}

typedef struct page {
    struct page *next;
    uint64_t     number;
    uint64_t     word[PAGE_WORDS];
} page;

/* An address through which workgroups synchronise. */
typedef struct meeting_place {
    struct meeting_place *next;
    uint64_t              address;
    acquisitions          released;
} meeting_place;

typedef struct shard {
    pthread_mutex_t lock;
    page           *page[64];
    meeting_place  *place[64];
} shard;

struct sim_global_map {
    uint64_t groups;
    shard    shard[SHARDS];
};

sim_global_map *sim_global_map_create(uint64_t groups)
{
    if (groups >= SEVERAL)
        return NULL; /* more than the shadow can tell apart */
    sim_global_map *map = calloc(1, sizeof *map);
    if (map == NULL)
        return NULL;
    map->groups = groups;
    for (int i = 0; i < SHARDS; i++)
        pthread_mutex_init(&map->shard[i].lock, NULL);
    return map;
}

void sim_global_map_destroy(sim_global_map *map)
{
    if (map == NULL)
        return;
    for (int i = 0; i < SHARDS; i++) {
        for (int j = 0; j < 64; j++) {
            for (page *p = map->shard[i].page[j], *next; p != NULL; p = next) {
                next = p->next;
                free(p);
            }
            for (meeting_place *p = map->shard[i].place[j], *next; p != NULL; p = next) {
                next = p->next;
                free(p->released.of);
                free(p);
            }
        }
        pthread_mutex_destroy(&map->shard[i].lock);
    }
    free(map);
}

static page *find_page(sim_global_map *map, uint64_t number)
{
    shard *s = &map->shard[number % SHARDS];
    page **list = &s->page[number / SHARDS % 64];
    pthread_mutex_lock(&s->lock);
    page *p = *list;
    while (p != NULL && p->number != number)
        p = p->next;
    if (p == NULL && (p = calloc(1, sizeof *p)) != NULL) {
        p->number = number;
        p->next = *list;
        *list = p;
    }
    pthread_mutex_unlock(&s->lock);
    return p;
}

/* The wave remembers its last pages: an access takes no lock. */
static page *page_of(sim_wave *w, uint64_t address)
{
    sim_watch     *k = w->watch;
    const uint64_t number = address >> PAGE_BITS;
    const unsigned i = number % 8;
    if (k->page[i] == NULL || k->page_number[i] != number) {
        k->page[i] = find_page(w->group->global_map, number);
        k->page_number[i] = number;
    }
    return k->page[i];
}

/* Acquiring and releasing. */
static void acquire_one(acquisitions *a, acquired x)
{
    for (uint32_t i = 0; i < a->count; i++)
        if (a->of[i].group == x.group) {
            a->of[i].epoch = a->of[i].epoch > x.epoch ? a->of[i].epoch : x.epoch;
            return;
        }
    if (a->count == a->room) {
        const uint32_t room = a->room == 0 ? 16 : 2 * a->room;
        acquired      *more = realloc(a->of, room * sizeof *more);
        if (more == NULL)
            return;
        a->of = more;
        a->room = room;
    }
    a->of[a->count++] = x;
}

static void acquire_all(acquisitions *to, const acquisitions *from)
{
    for (uint32_t i = 0; i < from->count; i++)
        acquire_one(to, from->of[i]);
}

static bool is_acquired(const acquisitions *a, uint32_t group, uint8_t epoch)
{
    for (uint32_t i = 0; i < a->count; i++)
        if (a->of[i].group == group)
            return epoch < a->of[i].epoch || a->of[i].epoch == LAST_EPOCH;
    return false;
}

static meeting_place *find_place(shard *s, uint64_t address, bool make)
{
    meeting_place **list = &s->place[address / 4 / SHARDS % 64];
    meeting_place  *p = *list;
    while (p != NULL && p->address != address)
        p = p->next;
    if (p == NULL && make && (p = calloc(1, sizeof *p)) != NULL) {
        p->address = address;
        p->next = *list;
        *list = p;
    }
    return p;
}

static void synchronise(sim_wave *w, const sim_operation *op, uint64_t address, bool releases, bool acquires)
{
    sim_lds_map *own = w->group->lds_map;
    shard       *s = &w->group->global_map->shard[address / 4 % SHARDS];
    releases = releases && op->releases;
    pthread_mutex_lock(&s->lock);
    meeting_place *p = find_place(s, address, releases);
    if (p != NULL) {
        if (releases) {
            own->epoch += own->epoch < LAST_EPOCH;
            acquire_one(&p->released, (acquired){ own->group, own->epoch });
            acquire_all(&p->released, &own->known);
        }
        if (acquires)
            acquire_all(&own->coming, &p->released);
    }
    pthread_mutex_unlock(&s->lock);
}

void sim_races_before(sim_wave *w, const sim_instruction *inst)
{
    sim_lds_map *own = w->group->lds_map;
    if (own == NULL)
        return;
    if ((inst->facts.what & SIM_FACT_WRITES_BACK) != 0)
        own->dirty = false;
    if ((inst->facts.what & SIM_FACT_INVALIDATES) != 0)
        acquire_all(&own->known, &own->coming);
}

/* Accesses. */
static bool is_known(const sim_lds_map *own, uint32_t group, uint8_t epoch, bool device_scope)
{
    return group == own->group || is_acquired(&own->known, group, epoch) ||
           (device_scope && is_acquired(&own->coming, group, epoch));
}

static void report_global(sim_wave *w, const sim_instruction *inst, int lane, uint64_t address, const char *verb,
                          uint32_t group, const char *other)
{
    char where[128] = "", who[40] = "several workgroups";
    if (w->group->map != NULL)
        sim_map_describe(w->group->map, address, where, sizeof where);
    if (group != SEVERAL)
        snprintf(who, sizeof who, "workgroup number %u", group - 1);
    sim_report(w, inst, SIM_CHECK_GLOBAL_RACE, lane, "%s 0x%" PRIx64 " (%s), which %s %s with nothing to order them",
               verb, address, where, who, other);
}

typedef struct global_access {
    bool     writes, atomic, device_scope;
    uint8_t  bytes; /* of the dword */
    uint32_t group;
    uint8_t  epoch;
} global_access;

/* Who is in the way, 0: nobody; `other`: what that one did. */
static uint32_t conflict(const sim_lds_map *own, const dword *d, const global_access *a, const char **other)
{
    if (d->writer != 0 && (d->written & a->bytes) != 0 && !is_known(own, d->writer, d->write_epoch, a->device_scope)) {
        *other = "wrote";
        return d->writer;
    }
    if (!a->writes || a->atomic || d->reader == 0 || (d->read & a->bytes) == 0)
        return 0;
    *other = "read";
    if (d->reader == SEVERAL)
        return SEVERAL;
    return is_known(own, d->reader, d->read_epoch, true) ? 0 : d->reader;
}

static dword record(dword d, const global_access *a)
{
    if (a->atomic)
        return d; /* atomics race with plain accesses only: with the ones that are there */
    if (a->writes) {
        d.written = d.writer == a->group ? d.written | a->bytes : a->bytes;
        d.writer = a->group;
        d.write_epoch = a->epoch;
        return d;
    }
    if (d.reader == 0 || d.reader == a->group) {
        d.reader = a->group;
        d.read_epoch = a->epoch;
    } else {
        d.reader = SEVERAL;
    }
    d.read |= a->bytes;
    return d;
}

static bool race_dword(sim_wave *w, const sim_instruction *inst, int lane, uint64_t address, const global_access *a)
{
    page *p = page_of(w, address);
    if (p == NULL)
        return false;
    uint64_t   *word = &p->word[address / 4 % PAGE_WORDS];
    uint64_t    old = __atomic_load_n(word, __ATOMIC_RELAXED), new;
    const char *other = "";
    uint32_t    group;
    do {
        const dword d = unpack(old);
        group = conflict(w->group->lds_map, &d, a, &other);
        new = pack(record(d, a));
    } while (new != old && !__atomic_compare_exchange_n(word, &old, new, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    if (group == 0)
        return false;
    report_global(w, inst, lane, address, a->writes ? "writes" : "reads", group, other);
    return true;
}

static void race_global(sim_wave *w, const sim_instruction *inst, uint64_t event, int lane, uint64_t address,
                        uint32_t bytes, sim_access_kind kind)
{
    sim_lds_map     *own = w->group->lds_map;
    const sim_facts *facts = sim_facts_of(inst);
    const bool       device_scope = (facts->what & SIM_FACT_DEVICE_SCOPE) != 0;
    sim_operation   *op = sim_operation_of(w->watch, event);
    global_access    a = { .writes = kind != SIM_READ,
                           .atomic = kind == SIM_READ_WRITE || (device_scope && bytes <= 8),
                           .device_scope = device_scope,
                           .group = own->group,
                           .epoch = own->epoch };
    if (a.atomic && op != NULL) {
        const bool acquires = kind == SIM_READ || (kind == SIM_READ_WRITE && inst->glc);
        synchronise(w, op, address, a.writes, acquires);
    }
    for (uint64_t at = address; at < address + bytes; at = (at | 3) + 1) {
        const uint64_t end = (at | 3) + 1 < address + bytes ? (at | 3) + 1 : address + bytes;
        a.bytes = (uint8_t)(((1u << (end - at)) - 1) << (at & 3));
        if (race_dword(w, inst, lane, at & ~UINT64_C(3), &a))
            return;
    }
}

static bool is_inside(const sim_range *range, uint64_t address, uint32_t bytes)
{
    return range != NULL && address >= range->first && address < range->last && range->last - address >= bytes;
}

static const sim_range *range_of(sim_wave *w, uint64_t address, uint32_t bytes)
{
    sim_watch *k = w->watch;
    if (!is_inside(k->range, address, bytes))
        k->range = w->group->map == NULL ? NULL : sim_map_find(w->group->map, address, bytes);
    return k->range;
}

bool sim_check_global(sim_wave *w, const sim_instruction *inst, uint64_t event, int lane, uint64_t address,
                      uint32_t bytes, sim_access_kind kind)
{
    static const char *const verb[] = { "reads", "writes", "updates" };
    const sim_range         *range = range_of(w, address, bytes);
    if (range == NULL || range->freed) {
        char where[128] = "";
        if (w->group->map != NULL)
            sim_map_describe(w->group->map, address, where, sizeof where);
        sim_report(w, inst, SIM_CHECK_BOUNDS, lane, "%s %u bytes at 0x%" PRIx64 ": %s", verb[kind], bytes, address,
                   where);
        return !sim_checks(w, SIM_CHECK_BOUNDS) && range != NULL;
    }
    if (kind != SIM_READ)
        sim_range_mark(range, address, bytes);
    else if ((sim_facts_of(inst)->what & SIM_FACT_COPIES_IN) != 0 && lane >= 0 &&
             !sim_range_is_written(range, address, bytes)) {
        sim_operation *op = sim_operation_of(w->watch, event);
        if (op != NULL)
            op->unwritten |= UINT64_C(1) << lane;
    }
    if (w->group->global_map != NULL && w->group->lds_map != NULL)
        race_global(w, inst, event, lane, address, bytes, kind);
    return true;
}
