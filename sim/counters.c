/* Counts of a dispatch, and the estimate of a simple issue model.
 *
 * The model. A workgroup keeps units of its compute unit busy for so many cycles; the units work side by side, so that
 * the busiest bounds the time of a CU. The fullest CU runs ceil(workgroups / CUs) of them. Beside the CU's units stand
 * the memory that all share (distinct bytes over its bandwidth) and latency: a CU has at most as many bytes in flight
 * as its resident waves have asked for and not waited for, and each stays for the latency. The estimate is the largest
 * of these times. It knows nothing of dependences, of what one wave waits for, of caches, of clocks that change: a
 * kernel may take much longer, and its order of bottlenecks is all that should be read from it.
 *
 * Cycles of an instruction, on one of a CU's four SIMDs unless said otherwise:
 *   VALU     gfx950: 64 lanes over 16 lanes of a SIMD, 4 cycles, packed FP32 too. gfx1250: 32 over 32, 1 cycle.
 *   TRANS    a quarter of that rate.
 *   matrix   passes of four cycles (CDNA4 ISA 7.1.2); gfx1250: see matrix.def.
 *   SALU     1; gfx950 has one scalar unit for the CU, gfx1250 one for each SIMD.
 *   LDS      of the CU: bytes of all active lanes over 128 bytes a cycle, and the cycles of bank conflicts.
 *   vector memory   of the CU: bytes of all active lanes over 64 bytes a cycle.
 */
#include "counters.h"

#include "device.h"
#include "matrix.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The machines
 * ------------
 */
typedef struct machine_row {
    const char *name;
    double      clock;     /* Hz */
    double      bandwidth; /* of memory, bytes a second */
    double      latency;   /* of memory, seconds */
    int         units;     /* CUs; of gfx1250 the WGP is meant */
    int         scalar_units;
    int         valu_cycles, trans_cycles;
    int         vector_file, vector_granule, most_waves; /* registers of a lane in a SIMD; waves of a SIMD */
    int         lds_bytes, lds_granule;
} machine_row;

enum { SIMDS = 4, LDS_BYTES_A_CYCLE = 128, GLOBAL_BYTES_A_CYCLE = 64 };

/* gfx950: MI355X as its vendor states it: 256 CUs, 2.4 GHz, 8 TB/s, 160 KiB of LDS a CU; allocation granules as LLVM 22
 * has them. gfx1250: MI455X, 19.6 TB/s as its vendor states it; 256 units and the clock of MI355X are assumptions.
 * Memory latency of both: 1.5 us under load, what streaming kernels on MI355X were seen to have to cover. LDS: 128
 * bytes a cycle by AMD's CDNA4 white paper, the same assumed of gfx1250. Vector memory: 64 bytes a cycle and CU, of
 * CDNA3, assumed of both. */
static const machine_row machines[SIM_ARCHS] = {
    [SIM_GFX950] = { .name = "MI355X",
                     .clock = 2.4e9,
                     .bandwidth = 8e12,
                     .latency = 1.5e-6,
                     .units = 256,
                     .scalar_units = 1,
                     .valu_cycles = 4,
                     .trans_cycles = 16,
                     .vector_file = 512,
                     .vector_granule = 8,
                     .most_waves = 8,
                     .lds_bytes = 160 * 1024,
                     .lds_granule = 1280 },
    [SIM_GFX1250] = { .name = "MI455X",
                      .clock = 2.4e9,
                      .bandwidth = 19.6e12,
                      .latency = 1.5e-6,
                      .units = 256,
                      .scalar_units = SIMDS,
                      .valu_cycles = 1,
                      .trans_cycles = 4,
                      .vector_file = 1024,
                      .vector_granule = 16,
                      .most_waves = 16,
                      .lds_bytes = 320 * 1024,
                      .lds_granule = 2048 },
};

/* Counts
 * ------
 */
typedef struct tally {
    uint64_t executed;
    uint64_t valu, trans, matrix, scalar; /* cycles of a SIMD, or of a scalar unit */
    uint64_t passes;                      /* of gfx950's matrix instructions */
    uint64_t lds_bytes, conflicts;
    uint64_t read, written; /* bytes of global memory, as lanes asked for them */
} tally;

typedef struct pc_row {
    const sim_instruction *inst;
    uint64_t               pc;
    char                   text[96]; /* the code may be gone when the report is printed */
    tally                  count;
} pc_row;

/* Rows by instruction, a hash table with open addressing. */
typedef struct pc_table {
    pc_row  *row;
    uint32_t used, room; /* room is a power of two */
} pc_table;

/* Lines of 64 bytes, and which of their bytes were touched. */
typedef struct line {
    uint64_t number; /* address / 64 + 1; 0: free */
    uint64_t bytes;
} line;

typedef struct line_set {
    line    *at;
    uint64_t used, room;
} line_set;

enum { MOST_IN_FLIGHT = 64 }; /* operations: what the wait counters hold */

/* Loads of a wave that it has not waited for: sizes, oldest first. */
typedef struct flight {
    uint32_t size[MOST_IN_FLIGHT];
    uint32_t count;
    uint64_t bytes;
} flight;

struct sim_counters {
    sim_results *results;
    tally        total;
    uint64_t     by_class[SIM_CLASSES];
    pc_table     pcs;
    line_set     lines;
    flight       flight[SIM_MAX_WAVES];
    uint64_t     most_bytes; /* in flight, of the wave that has the most */
    bool         is_incomplete;
};

struct sim_results {
    sim_launch_shape launch;
    char             kernel[128];
    pthread_mutex_t  lock;
    uint64_t         groups; /* that have ended */
    tally            total;
    uint64_t         by_class[SIM_CLASSES];
    pc_table         pcs;
    line_set         lines;
    uint64_t         most_bytes;
    bool             is_incomplete; /* out of memory for rows or lines */
};

static void add(tally *to, const tally *t)
{
    to->executed += t->executed;
    to->valu += t->valu;
    to->trans += t->trans;
    to->matrix += t->matrix;
    to->scalar += t->scalar;
    to->passes += t->passes;
    to->lds_bytes += t->lds_bytes;
    to->conflicts += t->conflicts;
    to->read += t->read;
    to->written += t->written;
}

/* Tables
 * ------
 */
static uint64_t hash(uint64_t x)
{
    x *= 0x9E3779B97F4A7C15u; /* 2^64 / golden ratio */
    return x ^ x >> 32;
}

static pc_row *find_row(const pc_table *t, const sim_instruction *inst)
{
    uint64_t i = hash((uintptr_t)inst) & (t->room - 1);
    while (t->row[i].inst != NULL && t->row[i].inst != inst)
        i = (i + 1) & (t->room - 1);
    return &t->row[i];
}

static bool grow_rows(pc_table *t)
{
    const pc_table old = *t;
    t->room = old.room != 0 ? 2 * old.room : 256;
    t->row = calloc(t->room, sizeof *t->row);
    if (t->row == NULL) {
        *t = old;
        return false;
    }
    for (uint32_t i = 0; i < old.room; i++)
        if (old.row[i].inst != NULL)
            *find_row(t, old.row[i].inst) = old.row[i];
    free(old.row);
    return true;
}

/* The instruction's row, new if need be; NULL: out of memory. */
static pc_row *row_of(pc_table *t, const sim_instruction *inst)
{
    if (2 * t->used >= t->room && !grow_rows(t))
        return NULL;
    pc_row *row = find_row(t, inst);
    if (row->inst == NULL) {
        row->inst = inst;
        row->pc = inst->pc;
        snprintf(row->text, sizeof row->text, "%s", inst->text != NULL ? inst->text : "");
        t->used++;
    }
    return row;
}

static line *find_line(const line_set *s, uint64_t number)
{
    uint64_t i = hash(number) & (s->room - 1);
    while (s->at[i].number != 0 && s->at[i].number != number)
        i = (i + 1) & (s->room - 1);
    return &s->at[i];
}

static bool touch_line(line_set *s, uint64_t number, uint64_t bytes)
{
    if (2 * s->used >= s->room) {
        const line_set old = *s;
        s->room = old.room != 0 ? 2 * old.room : 1024;
        s->at = calloc(s->room, sizeof *s->at);
        if (s->at == NULL) {
            *s = old;
            return false;
        }
        for (uint64_t i = 0; i < old.room; i++)
            if (old.at[i].number != 0)
                *find_line(s, old.at[i].number) = old.at[i];
        free(old.at);
    }
    line *l = find_line(s, number);
    s->used += l->number == 0;
    l->number = number;
    l->bytes |= bytes;
    return true;
}

static uint64_t distinct_bytes(const line_set *s)
{
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < s->room; i++)
        bytes += (uint64_t)__builtin_popcountll(s->at[i].bytes);
    return bytes;
}

/* Counting
 * --------
 */
/* Bytes of LDS that an instruction moves: registers that it loads, or all but the address of those that it reads. */
static uint64_t lds_bytes(const sim_wave *w, const sim_instruction *inst)
{
    uint64_t registers = 0;
    for (int i = 0; i < inst->write_count; i++)
        registers += inst->write[i].kind != SIM_SCALAR ? inst->write[i].count : 0;
    if (registers == 0) {
        for (int i = 0; i < inst->read_count; i++)
            registers += inst->read[i].kind != SIM_SCALAR ? inst->read[i].count : 0;
        registers -= registers != 0;
    }
    return 4 * registers * (uint64_t)__builtin_popcountll(sim_exec(w));
}

static tally cost(const sim_wave *w, const sim_instruction *inst)
{
    const machine_row *m = &machines[w->group->arch];
    tally              t = { .executed = 1 };
    switch (inst->op->kind) {
    case SIM_VALU:
        t.valu = (uint64_t)m->valu_cycles;
        break;
    case SIM_TRANS:
        t.trans = (uint64_t)m->trans_cycles;
        break;
    case SIM_XDL:
    case SIM_SGEMM:
    case SIM_WMMA:
        t.matrix = (uint64_t)sim_matrix_cycles(inst);
        t.passes = w->group->arch == SIM_GFX950 ? (uint64_t)sim_matrix_passes(inst) : 0;
        break;
    case SIM_SALU:
    case SIM_BRANCH:
        t.scalar = 1;
        break;
    case SIM_DS:
        t.lds_bytes = lds_bytes(w, inst);
        break;
    default:
        break;
    }
    return t;
}

/* Keeps the newest `n` loads in flight. */
static void land(flight *f, uint32_t n)
{
    if (f->count <= n)
        return;
    const uint32_t gone = f->count - n;
    for (uint32_t i = 0; i < gone; i++)
        f->bytes -= f->size[i];
    memmove(f->size, f->size + gone, n * sizeof *f->size);
    f->count = n;
}

/* How many operations of vector memory a wait leaves; -1: it is not for them. */
static int left_by_wait(const sim_instruction *inst)
{
    const char *name = inst->op->name;
    if (strcmp(name, "s_waitcnt") == 0)
        return inst->vmcnt;
    const int64_t n = inst->operand[0].value;
    if (strcmp(name, "s_wait_loadcnt_dscnt") == 0)
        return (int)(n >> 8 & 0x3F);
    if (strcmp(name, "s_wait_loadcnt") == 0 || strcmp(name, "s_wait_asynccnt") == 0 ||
        strcmp(name, "s_wait_tensorcnt") == 0)
        return (int)(n & 0x3F);
    return -1;
}

void sim_counters_instruction(sim_wave *w, const sim_instruction *inst)
{
    sim_counters *c = w->counters;
    const tally   t = cost(w, inst);
    add(&c->total, &t);
    c->by_class[inst->op->kind]++;
    if (inst->op->kind == SIM_WAIT) {
        const int left = left_by_wait(inst);
        if (left >= 0)
            land(&c->flight[w->id], (uint32_t)left);
    }
    if (!c->results->launch.per_pc)
        return;
    pc_row *row = row_of(&c->pcs, inst);
    if (row != NULL)
        add(&row->count, &t);
    else
        c->is_incomplete = true;
}

static void add_bytes(sim_counters *c, const sim_instruction *inst, const tally *t)
{
    add(&c->total, t);
    pc_row *row = c->results->launch.per_pc ? row_of(&c->pcs, inst) : NULL;
    if (row != NULL)
        add(&row->count, t);
}

void sim_counters_global(sim_wave *w, const sim_instruction *inst, uint64_t bytes, bool is_write)
{
    sim_counters *c = w->counters;
    const tally   t = { .read = is_write ? 0 : bytes, .written = is_write ? bytes : 0 };
    add_bytes(c, inst, &t);
    if (inst->op->kind == SIM_SMEM)
        return;
    flight *f = &c->flight[w->id];
    if (f->count == MOST_IN_FLIGHT) /* it stalls until the oldest is there */
        land(f, MOST_IN_FLIGHT - 1);
    f->size[f->count++] = (uint32_t)t.read;
    f->bytes += t.read;
    if (f->bytes > c->most_bytes)
        c->most_bytes = f->bytes;
}

void sim_counters_lds(sim_wave *w, const sim_instruction *inst, uint32_t conflict_cycles)
{
    const tally t = { .conflicts = conflict_cycles };
    add_bytes(w->counters, inst, &t);
}

void sim_counters_touch(sim_wave *w, uint64_t address, uint64_t bytes)
{
    sim_counters *c = w->counters;
    if (!c->results->launch.per_pc)
        return;
    while (bytes > 0) {
        const uint64_t first = address % 64, count = bytes < 64 - first ? bytes : 64 - first;
        const uint64_t mask = (count == 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1) << first;
        if (!touch_line(&c->lines, address / 64 + 1, mask))
            c->is_incomplete = true;
        address += count;
        bytes -= count;
    }
}

/* Life
 * ----
 */
sim_results *sim_results_create(const sim_launch_shape *launch)
{
    sim_results *r = calloc(1, sizeof *r);
    if (r == NULL)
        return NULL;
    r->launch = *launch;
    snprintf(r->kernel, sizeof r->kernel, "%s", launch->kernel);
    r->launch.kernel = r->kernel;
    pthread_mutex_init(&r->lock, NULL);
    return r;
}

void sim_results_destroy(sim_results *results)
{
    if (results == NULL)
        return;
    pthread_mutex_destroy(&results->lock);
    free(results->pcs.row);
    free(results->lines.at);
    free(results);
}

sim_counters *sim_counters_create(sim_results *results)
{
    if (results == NULL)
        return NULL;
    sim_counters *c = calloc(1, sizeof *c);
    if (c != NULL)
        c->results = results;
    return c;
}

void sim_counters_destroy(sim_counters *counters)
{
    if (counters == NULL)
        return;
    free(counters->pcs.row);
    free(counters->lines.at);
    free(counters);
}

static void add_tables(sim_results *r, const sim_counters *c)
{
    for (uint32_t i = 0; i < c->pcs.room; i++) {
        const pc_row *row = &c->pcs.row[i];
        pc_row       *to = row->inst != NULL ? row_of(&r->pcs, row->inst) : NULL;
        if (to != NULL)
            add(&to->count, &row->count);
        else if (row->inst != NULL)
            r->is_incomplete = true;
    }
    for (uint64_t i = 0; i < c->lines.room; i++)
        if (c->lines.at[i].number != 0 && !touch_line(&r->lines, c->lines.at[i].number, c->lines.at[i].bytes))
            r->is_incomplete = true;
}

void sim_counters_end_group(sim_counters *counters)
{
    if (counters == NULL)
        return;
    sim_results *r = counters->results;
    pthread_mutex_lock(&r->lock);
    r->groups++;
    add(&r->total, &counters->total);
    for (int i = 0; i < SIM_CLASSES; i++)
        r->by_class[i] += counters->by_class[i];
    if (counters->most_bytes > r->most_bytes)
        r->most_bytes = counters->most_bytes;
    add_tables(r, counters);
    r->is_incomplete = r->is_incomplete || counters->is_incomplete;
    pthread_mutex_unlock(&r->lock);
    if (counters->pcs.room != 0)
        memset(counters->pcs.row, 0, counters->pcs.room * sizeof *counters->pcs.row);
    if (counters->lines.room != 0)
        memset(counters->lines.at, 0, counters->lines.room * sizeof *counters->lines.at);
    const sim_counters fresh = { .results = r,
                                 .pcs = { counters->pcs.row, 0, counters->pcs.room },
                                 .lines = { counters->lines.at, 0, counters->lines.room } };
    *counters = fresh;
}

/* The report
 * ----------
 */
static uint64_t round_up(uint64_t x, uint64_t granule)
{
    return (x + granule - 1) / granule * granule;
}

/* Workgroups that the fullest CU gets, one after another or side by side. */
static uint64_t rounds_of(const sim_launch_shape *l)
{
    const uint64_t units = (uint64_t)machines[l->arch].units;
    return (l->groups + units - 1) / units;
}

/* Resident workgroups of a CU by each limit, and those of the fullest CU. */
typedef struct occupancy {
    uint64_t by_vectors, by_lds, by_waves; /* waves of a SIMD by registers; workgroups of a CU by LDS, by waves */
    uint64_t groups, waves;                /* that fit in a CU */
    uint64_t resident;                     /* waves, of the fullest CU */
} occupancy;

static occupancy occupancy_of(const sim_launch_shape *l)
{
    const machine_row *m = &machines[l->arch];
    const uint64_t     vectors = round_up(l->vectors != 0 ? l->vectors : 1, (uint64_t)m->vector_granule);
    occupancy          o;
    o.by_vectors = (uint64_t)m->vector_file / vectors;
    if (o.by_vectors > (uint64_t)m->most_waves)
        o.by_vectors = (uint64_t)m->most_waves;
    o.by_lds =
        l->lds_bytes == 0 ? UINT64_MAX : (uint64_t)m->lds_bytes / round_up(l->lds_bytes, (uint64_t)m->lds_granule);
    o.by_waves = o.by_vectors * SIMDS / (l->waves != 0 ? l->waves : 1);
    o.groups = o.by_waves < o.by_lds ? o.by_waves : o.by_lds;
    o.groups = o.groups == 0 ? 1 : o.groups; /* it did run: what LLVM rounds up may not fit by these granules */
    o.waves = o.groups * l->waves;
    const uint64_t rounds = rounds_of(l);
    o.resident = (rounds < o.groups ? rounds : o.groups) * l->waves;
    return o;
}

typedef struct bound {
    const char *unit;
    double      seconds;
} bound;

enum { BOUNDS = 8 };

/* Times by unit, as the head of this file has it. `distinct` 0: unknown, take what was asked for. */
static int bounds_of(const sim_results *r, const occupancy *o, uint64_t distinct, bound *to)
{
    const sim_launch_shape *l = &r->launch;
    const machine_row      *m = &machines[l->arch];
    const tally            *t = &r->total;
    const double            groups = l->groups != 0 ? (double)l->groups : 1.0;
    const double            share = (double)rounds_of(l) / groups; /* of all the work, in the fullest CU */
    const double            cycle = 1.0 / m->clock;
    /* Fewer waves than SIMDs leave some idle. */
    const double waves = (double)o->resident < SIMDS ? (double)(o->resident != 0 ? o->resident : 1) : SIMDS;
    const double simd = share / waves * cycle, unit = share * cycle;
    const double memory = (double)(distinct != 0 ? distinct : t->read) + (double)t->written;
    const double in_flight = (double)r->most_bytes * (double)o->resident;
    int          n = 0;
    to[n++] = (bound){ "matrix unit", (double)t->matrix * simd };
    to[n++] = (bound){ "VALU", (double)(t->valu + t->trans) * simd };
    to[n++] = (bound){ "scalar unit", (double)t->scalar * unit / m->scalar_units };
    to[n++] = (bound){ "LDS", ((double)t->lds_bytes / LDS_BYTES_A_CYCLE + (double)t->conflicts) * unit };
    to[n++] = (bound){ "vector memory", (double)(t->read + t->written) / GLOBAL_BYTES_A_CYCLE * unit };
    to[n++] = (bound){ "memory bandwidth", memory / m->bandwidth };
    to[n++] = (bound){ "latency, by bytes in flight",
                       in_flight > 0 ? (double)t->read * share / in_flight * m->latency : 0.0 };
    return n;
}

static void print_classes(FILE *to, const sim_results *r)
{
    static const char *const names[SIM_CLASSES] = {
        [SIM_SALU] = "SALU",
        [SIM_SMEM] = "SMEM",
        [SIM_BRANCH] = "branch",
        [SIM_VALU] = "VALU",
        [SIM_TRANS] = "TRANS",
        [SIM_XDL] = "MFMA",
        [SIM_SGEMM] = "MFMA f32 f64",
        [SIM_WMMA] = "WMMA",
        [SIM_DS] = "DS",
        [SIM_LOAD] = "load",
        [SIM_STORE] = "store",
        [SIM_ATOMIC] = "atomic",
        [SIM_FLAT] = "flat",
        [SIM_LDS_DMA] = "LDS-DMA",
        [SIM_ASYNC] = "async copy",
        [SIM_TENSOR] = "tensor copy",
        [SIM_WAIT] = "wait",
        [SIM_BARRIER_OP] = "barrier",
        [SIM_NOP] = "nop",
        [SIM_END] = "end",
    };
    fprintf(to, "instructions: %" PRIu64 "\n", r->total.executed);
    for (int i = 0; i < SIM_CLASSES; i++)
        if (r->by_class[i] != 0)
            fprintf(to, "  %-14s %14" PRIu64 "\n", names[i] != NULL ? names[i] : "other", r->by_class[i]);
}

static void print_occupancy(FILE *to, const sim_results *r, const occupancy *o)
{
    const sim_launch_shape *l = &r->launch;
    fprintf(to, "occupancy: %" PRIu64 " workgroups, %" PRIu64 " waves of a CU\n", o->groups, o->waves);
    fprintf(to, "  %" PRIu32 " vector registers: %" PRIu64 " waves of a SIMD, %" PRIu64 " workgroups\n", l->vectors,
            o->by_vectors, o->by_waves);
    if (l->lds_bytes != 0)
        fprintf(to, "  %" PRIu32 " bytes of LDS: %" PRIu64 " workgroups\n", l->lds_bytes, o->by_lds);
}

static void print_counts(FILE *to, const sim_results *r, const occupancy *o, uint64_t distinct)
{
    const tally *t = &r->total;
    fprintf(to, "VALU cycles: %" PRIu64 ", TRANS %" PRIu64 "; matrix cycles: %" PRIu64, t->valu, t->trans, t->matrix);
    if (r->launch.arch == SIM_GFX950)
        fprintf(to, " (%" PRIu64 " passes)", t->passes);
    fprintf(to, "\nLDS: %" PRIu64 " bytes, %" PRIu64 " cycles of bank conflicts\n", t->lds_bytes, t->conflicts);
    fprintf(to, "global memory: %" PRIu64 " bytes read, %" PRIu64 " written", t->read, t->written);
    if (distinct != 0)
        fprintf(to, "; %" PRIu64 " distinct bytes read, each %.2f times", distinct, (double)t->read / (double)distinct);
    fprintf(to, "\nbytes in flight: at most %" PRIu64 " of a wave, %" PRIu64 " of a CU\n", r->most_bytes,
            r->most_bytes * o->resident);
}

static void print_estimate(FILE *to, const sim_results *r, const occupancy *o, uint64_t distinct)
{
    const machine_row *m = &machines[r->launch.arch];
    bound              bounds[BOUNDS];
    const int          n = bounds_of(r, o, distinct, bounds);
    int                worst = 0;
    for (int i = 1; i < n; i++)
        worst = bounds[i].seconds > bounds[worst].seconds ? i : worst;
    fprintf(to, "estimate, not a measurement: %.2f us, bound by %s\n", bounds[worst].seconds * 1e6, bounds[worst].unit);
    fprintf(to,
            "  model: %s, %d CUs at %.1f GHz, %.1f TB/s; the fullest CU, each unit at its rate, all side by side;\n"
            "  no dependences, no caches, latency %.1f us\n",
            m->name, m->units, m->clock * 1e-9, m->bandwidth * 1e-12, m->latency * 1e6);
    for (int i = 0; i < n; i++)
        fprintf(to, "  %-28s %12.2f us\n", bounds[i].unit, bounds[i].seconds * 1e6);
}

static int by_pc(const void *a, const void *b)
{
    const pc_row *x = a, *y = b;
    return x->pc < y->pc ? -1 : x->pc > y->pc;
}

static void print_pcs(FILE *to, const sim_results *r)
{
    pc_row *rows = malloc((r->pcs.used + 1) * sizeof *rows);
    if (rows == NULL)
        return;
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->pcs.room; i++)
        if (r->pcs.row[i].inst != NULL)
            rows[n++] = r->pcs.row[i];
    qsort(rows, n, sizeof *rows, by_pc);
    fprintf(to, "%8s %12s %12s %12s %12s %12s  %s\n", "pc", "executed", "cycles", "conflicts", "read", "written",
            "instruction");
    for (uint32_t i = 0; i < n; i++) {
        const tally *t = &rows[i].count;
        fprintf(to, "%8" PRIx64 " %12" PRIu64 " %12" PRIu64 " %12" PRIu64 " %12" PRIu64 " %12" PRIu64 "  %s\n",
                rows[i].pc - r->launch.entry, t->executed,
                t->valu + t->trans + t->matrix + t->scalar + t->lds_bytes / LDS_BYTES_A_CYCLE, t->conflicts, t->read,
                t->written, rows[i].text);
    }
    free(rows);
}

void sim_print_report(FILE *to, const sim_device *device, bool per_pc)
{
    const sim_results *r = device->results;
    if (r == NULL) {
        fprintf(to, "no dispatch has been counted\n");
        return;
    }
    const occupancy o = occupancy_of(&r->launch);
    const uint64_t  distinct = distinct_bytes(&r->lines);
    fprintf(to, "%s on %s: %" PRIu64 " workgroups of %" PRIu32 " waves\n", r->kernel, sim_arch_name(r->launch.arch),
            r->launch.groups, r->launch.waves);
    if (r->groups != r->launch.groups)
        fprintf(to, "only %" PRIu64 " workgroups have ended: the counts are theirs\n", r->groups);
    if (r->is_incomplete)
        fprintf(to, "out of memory while counting: rows and distinct bytes are too few\n");
    print_classes(to, r);
    print_occupancy(to, r, &o);
    print_counts(to, r, &o, distinct);
    print_estimate(to, r, &o, distinct);
    if (per_pc)
        print_pcs(to, r);
}
