/* Dispatches: what is refused, what a wave begins with, who runs when, and barriers. */
#include "check.h"
#include "counters.h"
#include "device.h"

#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* The dispatch as the worker threads see it
 * -----------------------------------------
 */
/* Instructions that a wave may execute, where the options name no limit: some seconds. */
#define DEFAULT_LIMIT (UINT64_C(1) << 27)
/* What registers, scratch and LDS begin with if any check is on: a NaN that is easy to see, and no valid address. */
#define POISON 0xFFFFDEADu

enum {
    SPARE_VECTORS = 32,   /* behind the last register, for a tuple that begins in it: the widest has 32 */
    TURN = 1 << 16,       /* instructions of a wave before the next one runs, in order */
    SLICE = 1 << 18,      /* instructions of a workgroup, before its thread may begin another besides */
    MOST_RESIDENT = 256,  /* workgroups begun and not ended, of all threads together: one for each compute unit */
    MOST_USER_SGPRS = 32, /* of both architectures */
    DYNAMIC_STACK_BYTES =
        16 * 1024 /* added to the scratch of a kernel whose compiler could not tell how much it takes */
};

/* Properties of a kernel descriptor, in the order in which the values that they ask for are laid into SGPRs. */
enum {
    WANTS_PRIVATE_BUFFER = 1 << 0,
    WANTS_DISPATCH = 1 << 1,
    WANTS_QUEUE = 1 << 2,
    WANTS_KERNARG = 1 << 3,
    WANTS_DISPATCH_ID = 1 << 4,
    WANTS_FLAT_SCRATCH = 1 << 5,
    WANTS_PRIVATE_SIZE = 1 << 6,
    USES_DYNAMIC_STACK = 1 << 11
};

/* hsa_kernel_dispatch_packet_t: what the dispatch pointer of a kernel points to. */
typedef struct packet {
    uint16_t header, setup, group[3], reserved0;
    uint32_t grid[3], private_bytes, lds_bytes;
    uint64_t kernel, kernarg, reserved1, signal;
} packet;
_Static_assert(sizeof(packet) == 64, "as the ABI says");

typedef struct launch {
    sim_device          *device;
    const sim_dispatch  *dispatch;
    sim_descriptor       descriptor;
    sim_code            *code;
    sim_map             *map;
    sim_global_map      *global_map; /* NULL: races between workgroups are not looked for */
    int                  lanes;
    uint32_t             groups[3];
    uint64_t             group_count;
    atomic_uint_fast64_t next;     /* workgroup that no thread has taken */
    atomic_int           resident; /* workgroups begun and not ended */
    uint32_t             lds_bytes, scratch_bytes;
    uint64_t             entry, limit;
    uint32_t             user[MOST_USER_SGPRS];
    int                  user_count;
    uint8_t             *kernarg; /* a copy, registered with the device as `packet` and `queue` are */
    packet               packet;
    uint8_t queue[256]; /* of an amd_queue_t: no kernel of these architectures needs more than its address */
} launch;

/* A workgroup that runs: state that a thread keeps for the next one. */
typedef struct residence {
    sim_group         group;
    sim_wave          wave[SIM_MAX_WAVES];
    uint32_t         *vectors;  /* [wave][register][lane] */
    uint8_t          *scratch;  /* [wave][lane][byte] */
    sim_counters     *counters; /* NULL: out of memory for them */
    struct residence *next;
} residence;

/* Registers of one wave in memory. */
static size_t wave_vectors(const launch *l)
{
    const size_t file = l->device->arch == SIM_GFX950 ? SIM_VECTORS_GFX950 : SIM_VECTORS_GFX1250;
    return (file + SPARE_VECTORS) * (size_t)l->lanes;
}

/* Validation
 * ----------
 */
static bool is_grid_valid(const sim_dispatch *d)
{
    const sim_kernel *k = d->kernel;
    static const char axis[3] = { 'x', 'y', 'z' };
    uint64_t          items = 1;
    for (int i = 0; i < 3; i++) {
        if (d->grid[i] == 0 || d->group[i] == 0) {
            sim_set_error("%s: %s.%c is 0", k->name, d->grid[i] == 0 ? "grid" : "group", axis[i]);
            return false;
        }
        if (d->group[i] > 1024) { /* as wide as a packed work-item id */
            sim_set_error("%s: group.%c is %" PRIu32 ", more than 1024", k->name, axis[i], d->group[i]);
            return false;
        }
        items *= d->group[i];
    }
    const uint64_t most = k->max_group != 0 && k->max_group < 1024 ? k->max_group : 1024;
    if (items > most) {
        sim_set_error("%s: a workgroup has %" PRIu64 " work-items, the kernel takes %" PRIu64, k->name, items, most);
        return false;
    }
    return true;
}

static uint32_t group_number(const sim_dispatch *d, int axis)
{
    return (uint32_t)(((uint64_t)d->grid[axis] + d->group[axis] - 1) / d->group[axis]);
}

/* ttmp7 holds two numbers of 16 bits. */
static bool are_group_numbers_valid(const launch *l)
{
    for (int i = 1; i < 3; i++) {
        if (l->device->arch == SIM_GFX1250 && l->groups[i] > 65536) {
            sim_set_error("%s: %" PRIu32 " workgroups along %c, more than 65536", l->dispatch->kernel->name,
                          l->groups[i], "xyz"[i]);
            return false;
        }
    }
    return true;
}

static bool is_kernarg_valid(const sim_dispatch *d)
{
    const sim_kernel *k = d->kernel;
    if (d->kernarg_bytes != k->kernarg_bytes) {
        sim_set_error("%s: %zu bytes of kernel arguments, the kernel takes %" PRIu32, k->name, d->kernarg_bytes,
                      k->kernarg_bytes);
        return false;
    }
    if (d->kernarg == NULL && d->kernarg_bytes != 0) {
        sim_set_error("%s: the kernel arguments are NULL", k->name);
        return false;
    }
    return true;
}

/* The waves of a workgroup share the files of 4 SIMDs: 512 registers for each lane, or 1024. */
static bool do_registers_fit(const launch *l, int waves)
{
    const uint32_t file = l->device->arch == SIM_GFX950 ? 512 : 1024;
    const uint32_t asked = l->dispatch->kernel->vgprs + l->dispatch->kernel->agprs;
    const uint32_t on_simd = ((uint32_t)waves + 3) / 4;
    if (asked * on_simd <= file)
        return true;
    sim_set_error("%s: %" PRIu32 " vector registers for each of %d waves, a compute unit has %" PRIu32
                  " for each of 4 SIMDs",
                  l->dispatch->kernel->name, asked, waves, file);
    return false;
}

static bool does_lds_fit(const launch *l)
{
    const sim_dispatch *d = l->dispatch;
    const uint64_t      bytes = (uint64_t)d->kernel->lds_bytes + d->dynamic_lds;
    const uint32_t      most = (l->device->arch == SIM_GFX950 ? 160 : 320) * 1024;
    if (bytes <= most)
        return true;
    sim_set_error("%s: %" PRIu64 " bytes of LDS (%" PRIu32 " dynamic), a workgroup has at most %" PRIu32,
                  d->kernel->name, bytes, d->dynamic_lds, most);
    return false;
}

/* What a wave's descriptor can say: gfx950 13 bits of kilobytes, gfx1250 18 bits of 256 bytes. */
static bool does_scratch_fit(const launch *l)
{
    const sim_kernel *k = l->dispatch->kernel;
    const uint64_t    bytes = (uint64_t)k->scratch_bytes * (uint64_t)l->lanes;
    const uint64_t    most = l->device->arch == SIM_GFX950 ? 1024 * ((1 << 13) - 1) : 256 * ((1 << 18) - 1);
    if (bytes <= most)
        return true;
    sim_set_error("%s: %" PRIu64 " bytes of scratch for a wave, at most %" PRIu64 " can be had", k->name, bytes, most);
    return false;
}

static bool is_wave_size_valid(const launch *l)
{
    const sim_kernel *k = l->dispatch->kernel;
    if (k->wave_size == (uint32_t)l->lanes)
        return true;
    sim_set_error("%s: waves of %" PRIu32 " lanes, those of %s have %d", k->name, k->wave_size,
                  sim_arch_name(l->device->arch), l->lanes);
    return false;
}

/* The order of bits is the order of registers: see WANTS_. */
static bool lay_user_scalars(launch *l)
{
    const sim_descriptor *kd = &l->descriptor;
    const char           *name = l->dispatch->kernel->name;
    if ((kd->properties & (WANTS_PRIVATE_BUFFER | WANTS_FLAT_SCRATCH)) != 0) {
        sim_set_error("%s: asks for a scratch buffer in SGPRs; the scratch of %s is architected", name,
                      sim_arch_name(l->device->arch));
        return false;
    }
    const struct {
        int      property, count;
        uint64_t value;
    } row[] = {
        { WANTS_DISPATCH, 2, (uint64_t)(uintptr_t)&l->packet },
        { WANTS_QUEUE, 2, (uint64_t)(uintptr_t)l->queue },
        { WANTS_KERNARG, 2, (uint64_t)(uintptr_t)l->kernarg },
        { WANTS_DISPATCH_ID, 2, l->device->dispatches },
        { WANTS_PRIVATE_SIZE, 1, l->scratch_bytes },
    };
    int count = 0;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        if ((kd->properties & row[i].property) == 0)
            continue;
        l->user[count++] = (uint32_t)row[i].value;
        if (row[i].count == 2)
            l->user[count++] = (uint32_t)(row[i].value >> 32);
    }
    const int preloaded = kd->preload & 0x7F, from = kd->preload >> 7;
    const int asked = kd->rsrc2 >> 1 & (l->device->arch == SIM_GFX950 ? 31 : 63);
    if (count + preloaded > asked || asked > MOST_USER_SGPRS ||
        4 * (size_t)(from + preloaded) > (l->dispatch->kernel->kernarg_bytes + 3u) / 4 * 4) {
        sim_set_error(
            "%s: the descriptor has %d user SGPRs, and asks for %d and %d preloaded ones from argument byte %d", name,
            asked, count, preloaded, 4 * from);
        return false;
    }
    if (preloaded > 0)
        memcpy(&l->user[count], l->kernarg + 4 * from, 4 * (size_t)preloaded);
    l->user_count = asked;
    return true;
}

static int count_waves(uint64_t items, int lanes)
{
    return (int)((items + (uint64_t)lanes - 1) / (uint64_t)lanes);
}

/* Launching
 * ---------
 */
static bool prepare(launch *l, sim_device *device, const sim_dispatch *dispatch)
{
    const sim_kernel *k = dispatch->kernel;
    l->device = device;
    l->dispatch = dispatch;
    l->lanes = device->arch == SIM_GFX950 ? 64 : 32;
    l->code = sim_object_code(k->object);
    l->limit = device->options.limit == 0 ? DEFAULT_LIMIT : device->options.limit;
    if (!is_grid_valid(dispatch) || !is_kernarg_valid(dispatch) || !is_wave_size_valid(l) || !does_lds_fit(l) ||
        !does_scratch_fit(l))
        return false;
    memcpy(&l->descriptor, (const void *)(uintptr_t)k->descriptor, sizeof l->descriptor);
    for (int i = 0; i < 3; i++)
        l->groups[i] = group_number(dispatch, i);
    l->group_count = (uint64_t)l->groups[0] * l->groups[1] * l->groups[2];
    const uint64_t items = (uint64_t)dispatch->group[0] * dispatch->group[1] * dispatch->group[2];
    if (!are_group_numbers_valid(l) || !do_registers_fit(l, count_waves(items, l->lanes)))
        return false;
    l->lds_bytes = k->lds_bytes + dispatch->dynamic_lds;
    l->scratch_bytes = k->scratch_bytes;
    if ((l->descriptor.properties & USES_DYNAMIC_STACK) != 0)
        l->scratch_bytes += DYNAMIC_STACK_BYTES;

    /* A scalar load may be widened to the 16 bytes to which the segment is aligned. */
    const size_t kernarg_room = (dispatch->kernarg_bytes + 15) / 16 * 16 + 16;
    l->kernarg = aligned_alloc(64, (kernarg_room + 63) / 64 * 64);
    if (l->kernarg == NULL) {
        sim_set_error("%s: out of memory for the kernel arguments", k->name);
        return false;
    }
    memset(l->kernarg, 0, kernarg_room);
    if (dispatch->kernarg_bytes != 0)
        memcpy(l->kernarg, dispatch->kernarg, dispatch->kernarg_bytes);
    l->packet = (packet){ .header = 2, /* HSA_PACKET_TYPE_KERNEL_DISPATCH */
                          .setup = dispatch->grid[2] > 1   ? 3
                                   : dispatch->grid[1] > 1 ? 2
                                                           : 1,
                          .private_bytes = l->scratch_bytes,
                          .lds_bytes = l->lds_bytes,
                          .kernel = k->descriptor,
                          .kernarg = (uint64_t)(uintptr_t)l->kernarg };
    for (int i = 0; i < 3; i++) {
        l->packet.group[i] = (uint16_t)dispatch->group[i];
        l->packet.grid[i] = dispatch->grid[i];
    }
    /* On gfx950 code that loads the arguments itself precedes the entry of a kernel with preloaded ones: 256 bytes, for
     * firmware that does not preload (LLVM, AMDGPUUsage, "Preloaded Kernel Arguments"). */
    const bool has_loads = device->arch == SIM_GFX950 && (l->descriptor.preload & 0x7F) != 0;
    l->entry = k->entry + (has_loads ? 256 : 0);
    return lay_user_scalars(l);
}

/* Memory of the dispatch itself that its kernel may read. */
static bool register_memory(launch *l, bool on)
{
    const struct {
        void       *at;
        size_t      bytes;
        const char *name;
    } row[] = {
        { l->kernarg, (l->dispatch->kernarg_bytes + 15) / 16 * 16, "kernel arguments" },
        { &l->packet, sizeof l->packet, "dispatch packet" },
        { l->queue, sizeof l->queue, "queue" },
    };
    bool ok = true;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        if (row[i].bytes != 0)
            ok = (on ? sim_register(l->device, row[i].at, row[i].bytes, row[i].name)
                     : sim_unregister(l->device, row[i].at)) &&
                 ok;
    return ok;
}

static void *work(void *argument);

static int thread_number(const launch *l)
{
    cpu_set_t cpus;
    int       threads = l->device->options.threads;
    if (threads <= 0)
        threads = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
    return (uint64_t)threads > l->group_count ? (int)l->group_count : threads;
}

/* The calling thread works too; what threads cannot be had are done without. */
static void run_threads(launch *l)
{
    enum { MOST_THREADS = 256 };
    pthread_t thread[MOST_THREADS];
    const int wanted = thread_number(l) - 1;
    int       started = 0;
    while (started < wanted && started < MOST_THREADS && pthread_create(&thread[started], NULL, work, l) == 0)
        started++;
    work(l);
    for (int i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
}

static void begin_counters(const launch *l)
{
    sim_device            *device = l->device;
    const sim_dispatch    *d = l->dispatch;
    const sim_kernel      *k = d->kernel;
    const sim_launch_shape shape = {
        .kernel = k->name,
        .arch = device->arch,
        .entry = k->entry,
        .groups = l->group_count,
        .waves = (uint32_t)count_waves((uint64_t)d->group[0] * d->group[1] * d->group[2], l->lanes),
        .vectors = k->vgprs + k->agprs,
        .lds_bytes = l->lds_bytes,
        .per_pc = device->options.counters,
    };
    sim_results_destroy(device->results);
    device->results = sim_results_create(&shape);
}

static bool run_launch(launch *l)
{
    sim_device *device = l->device;
    begin_counters(l);
    if (!register_memory(l, true)) {
        register_memory(l, false);
        return false;
    }
    l->map = sim_map_create(device);
    if ((device->options.checks >> SIM_CHECK_GLOBAL_RACE & 1) != 0)
        l->global_map = sim_global_map_create(l->group_count);
    if (l->map != NULL)
        run_threads(l);
    const bool ok = l->map != NULL && !device->failed;
    if (device->failed)
        sim_set_error("%s", device->error);
    if (l->global_map != NULL)
        sim_global_map_destroy(l->global_map);
    sim_map_destroy(l->map);
    register_memory(l, false);
    return ok;
}

bool sim_run(sim_device *device, const sim_dispatch *dispatch)
{
    if (dispatch->kernel == NULL) {
        sim_set_error("a dispatch without a kernel");
        return false;
    }
    launch *l = calloc(1, sizeof *l);
    if (l == NULL) {
        sim_set_error("out of memory for a dispatch");
        return false;
    }
    pthread_mutex_lock(&device->running);
    device->dispatches++;
    device->failed = false;
    atomic_store(&device->stop, false);
    const bool ok = prepare(l, device, dispatch) && run_launch(l);
    pthread_mutex_unlock(&device->running);
    free(l->kernarg);
    free(l);
    return ok;
}

/* Workgroups: what they begin with
 * --------------------------------
 */
static uint64_t mix(uint64_t x)
{
    x += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

uint32_t sim_random(sim_group *g, uint32_t below)
{
    g->random = mix(g->random);
    return (uint32_t)((g->random >> 32) * below >> 32);
}

static void fill(void *to, size_t bytes, uint32_t word)
{
    uint32_t *at = to;
    for (size_t i = 0; i < bytes / 4; i++)
        at[i] = word;
    memset(at + bytes / 4, 0, bytes % 4);
}

/* SGPRs behind the user's: the workgroup's number, of the axes that are asked for. gfx1250 has it in ttmp registers.
 * Returns how many SGPRs have values. */
static int lay_system_scalars(const launch *l, sim_wave *w)
{
    const uint32_t rsrc2 = l->descriptor.rsrc2, *id = w->group->id;
    int            at = l->user_count;
    if (l->device->arch == SIM_GFX950) {
        for (int i = 0; i < 3; i++)
            if ((rsrc2 >> (7 + i) & 1) != 0)
                w->s[at++] = id[i];
        if ((rsrc2 >> 10 & 1) != 0) /* workgroup info: number of waves, as a kernel of compute sees it */
            w->s[at++] = (uint32_t)w->group->wave_count;
    } else {
        w->s[SIM_TTMP + 6] = 0; /* no cluster */
        w->s[SIM_TTMP + 7] = id[1] | id[2] << 16;
        w->s[SIM_TTMP + 8] = (uint32_t)w->id << 25; /* [29:25]: the wave's number in its workgroup */
        w->s[SIM_TTMP + 9] = id[0];
    }
    return at;
}

/* v0 of each work-item: x, y, z in 10 bits each, of the axes that are asked for. */
static void lay_work_items(const launch *l, sim_wave *w, const uint32_t size[3])
{
    const uint32_t axes = l->descriptor.rsrc2 >> 11 & 3;
    const uint32_t items = size[0] * size[1] * size[2];
    uint64_t       exec = 0;
    for (int lane = 0; lane < w->lanes; lane++) {
        const uint32_t item = (uint32_t)(w->id * w->lanes + lane);
        if (item >= items)
            break;
        const uint32_t x = item % size[0], y = item / size[0] % size[1], z = item / size[0] / size[1];
        w->v[lane] = x | (axes >= 1 ? y << 10 : 0) | (axes >= 2 ? z << 20 : 0);
        exec |= UINT64_C(1) << lane;
    }
    sim_set_exec(w, exec);
}

/* Round and denormal modes lie in rsrc1 as in MODE; the other bits that a descriptor sets are moved. */
static uint32_t initial_mode(sim_arch arch, uint32_t rsrc1)
{
    uint32_t mode = rsrc1 >> 12 & 0xFF;
    if (arch == SIM_GFX950)
        mode |= (rsrc1 >> 21 & 1) << 8 | (rsrc1 >> 23 & 1) << 9; /* DX10_CLAMP, IEEE */
    if ((rsrc1 >> 26 & 1) != 0)
        mode |= SIM_MODE_FP16_OVFL;
    return mode;
}

static void begin_wave(const launch *l, residence *r, int id, const uint32_t size[3])
{
    sim_wave         *w = &r->wave[id];
    sim_group        *g = &r->group;
    const uint32_t    word = g->checks != 0 ? POISON : 0;
    const size_t      lanes = (size_t)l->lanes;
    const sim_kernel *k = l->dispatch->kernel;
    *w = (sim_wave){ .group = g,
                     .id = id,
                     .lanes = l->lanes,
                     .pc = l->entry,
                     .mode = initial_mode(l->device->arch, l->descriptor.rsrc1),
                     .v = r->vectors + (size_t)id * wave_vectors(l),
                     .scratch_bytes = l->scratch_bytes,
                     .counters = r->counters };
    for (int i = 0; i < SIM_BARRIERS; i++)
        w->signalled[i] = 1;
    fill(w->s, sizeof w->s, word);
    w->s[SIM_EXEC] = w->s[SIM_EXEC + 1] = 0;
    memcpy(w->s, l->user, (size_t)l->user_count * 4);
    fill(w->v, k->vgprs * lanes * 4, word);
    fill(w->v + 256 * lanes, (k->agprs < 256 ? k->agprs : 256) * lanes * 4, word);
    if (l->scratch_bytes != 0) {
        w->scratch = r->scratch + (size_t)id * lanes * l->scratch_bytes;
        fill(w->scratch, lanes * l->scratch_bytes, word);
    }
    const int scalars = lay_system_scalars(l, w);
    lay_work_items(l, w, size);
    if (g->checks != 0) {
        w->watch = sim_watch_create(w);
        if (w->watch != NULL)
            sim_check_launched(w, scalars, 1);
    }
}

/* Workgroups at the end of a grid may be smaller, and have fewer waves. */
static void begin_group(const launch *l, residence *r, uint64_t number)
{
    const sim_dispatch *d = l->dispatch;
    sim_group          *g = &r->group;
    uint8_t            *lds = g->lds;
    const sim_options  *options = &l->device->options;
    *g = (sim_group){ .device = l->device,
                      .dispatch = d,
                      .code = l->code,
                      .map = l->map,
                      .global_map = l->global_map,
                      .arch = l->device->arch,
                      .lds = lds,
                      .lds_bytes = l->lds_bytes,
                      .wave = r->wave,
                      .checks = options->checks,
                      .late = (options->seed & 1) != 0,
                      .reorder = (options->seed & 2) != 0,
                      .random = mix(options->seed) ^ mix(number) };
    g->id[0] = (uint32_t)(number % l->groups[0]);
    g->id[1] = (uint32_t)(number / l->groups[0] % l->groups[1]);
    g->id[2] = (uint32_t)(number / l->groups[0] / l->groups[1]);
    uint32_t size[3];
    for (int i = 0; i < 3; i++) {
        const uint32_t left = d->grid[i] - g->id[i] * d->group[i];
        size[i] = left < d->group[i] ? left : d->group[i];
    }
    g->wave_count = count_waves((uint64_t)size[0] * size[1] * size[2], l->lanes);
    g->barrier[0].members = (uint32_t)g->wave_count;
    fill(g->lds, g->lds_bytes, g->checks != 0 ? POISON : 0);
    g->lds_map = g->checks != 0 ? sim_lds_map_create(g) : NULL;
    for (int i = 0; i < g->wave_count; i++)
        begin_wave(l, r, i, size);
}

static void end_group(sim_group *g)
{
    bool whole = true;
    for (int i = 0; i < g->wave_count; i++)
        whole = whole && g->wave[i].status == SIM_ENDED;
    if (whole && g->checks != 0)
        sim_check_group_end(g);
    for (int i = 0; i < g->wave_count; i++) {
        sim_memory_release(&g->wave[i]);
        if (g->wave[i].watch != NULL)
            sim_watch_destroy(g->wave[i].watch);
    }
    if (g->lds_map != NULL)
        sim_lds_map_destroy(g->lds_map);
    if (g->wave[0].counters != NULL)
        sim_counters_end_group(g->wave[0].counters);
}

/* Turns
 * -----
 */
static void run_wave(sim_wave *w, uint64_t turn)
{
    sim_code      *code = w->group->code;
    const uint64_t until = w->executed + turn;
    while (w->status == SIM_RUNNING && w->executed < until) {
        const sim_instruction *inst = sim_code_at(code, w->pc);
        if (inst == NULL) {
            sim_fail(w, NULL, "%s", sim_last_error());
            return;
        }
        w->executed++;
        if (w->watch != NULL) {
            sim_check_before(w, inst);
            sim_hazards_before(w, inst);
        }
        sim_count_instruction(w, inst);
        w->pc += inst->bytes;
        inst->op->run(w, inst);
        if (w->watch != NULL) {
            sim_hazards_after(w, inst);
            sim_check_after(w, inst);
        }
    }
}

/* A line on every wave of a workgroup that does not go on. */
static void describe_waves(const sim_group *g, char *to, size_t size)
{
    const uint64_t entry = g->dispatch->kernel->entry;
    size_t         at = 0;
    to[0] = '\0';
    for (int i = 0; i < g->wave_count && at < size; i++) {
        const sim_wave *w = &g->wave[i];
        const char     *comma = i == 0 ? "" : ", ";
        int             written;
        if (w->status == SIM_AT_BARRIER)
            written = snprintf(to + at, size - at, "%swave %d waits for barrier %d at +0x%" PRIx64, comma, i,
                               w->barrier, w->waiting->pc - entry);
        else if (w->status == SIM_ENDED)
            written = snprintf(to + at, size - at, "%swave %d has ended", comma, i);
        else
            written = snprintf(to + at, size - at, "%swave %d runs at +0x%" PRIx64, comma, i, w->pc - entry);
        at += written > 0 ? (size_t)written : 0;
    }
}

static void fail_stuck(sim_group *g)
{
    char      waves[SIM_ERROR_BYTES - 1024];
    sim_wave *first = NULL;
    for (int i = 0; i < g->wave_count && first == NULL; i++)
        if (g->wave[i].status == SIM_AT_BARRIER)
            first = &g->wave[i];
    describe_waves(g, waves, sizeof waves);
    sim_report(first, first->waiting, SIM_CHECK_BARRIER, -1, "no wave can go on: %s", waves);
    sim_fail(first, first->waiting, "no wave can go on: %s", waves);
}

static void fail_endless(sim_wave *w, uint64_t limit)
{
    char waves[SIM_ERROR_BYTES - 1024];
    describe_waves(w->group, waves, sizeof waves);
    const sim_instruction *inst = sim_code_at(w->group->code, w->pc);
    sim_report(w, inst, SIM_CHECK_DEADLOCK, -1, "%" PRIu64 " instructions, and no end: %s", limit, waves);
    sim_fail(w, inst, "deadlock: %" PRIu64 " instructions, and no end: %s", limit, waves);
}

/* The turn of a wave: how many instructions it may run. In a random schedule mostly few, of every magnitude. */
static uint64_t turn_of(sim_group *g, bool in_order)
{
    return in_order ? TURN : 1 + sim_random(g, 1u << sim_random(g, 9));
}

/* As many turns as there are waves; false: the workgroup has ended, or no wave of it can go on. */
static bool run_round(const launch *l, sim_group *g)
{
    const bool in_order = l->device->options.seed == 0;
    for (int i = 0; i < g->wave_count; i++) {
        sim_wave *w = &g->wave[in_order ? (uint32_t)i : sim_random(g, (uint32_t)g->wave_count)];
        if (w->status == SIM_SLEEPING && w->sleep-- == 0)
            w->status = SIM_RUNNING;
        if (w->status != SIM_RUNNING)
            continue;
        run_wave(w, turn_of(g, in_order));
        if (w->status != SIM_ENDED && w->status != SIM_FAILED && w->executed >= l->limit)
            fail_endless(w, l->limit);
        if (atomic_load_explicit(&l->device->stop, memory_order_relaxed))
            return false;
    }
    bool is_waiting = false;
    for (int i = 0; i < g->wave_count; i++) {
        if (g->wave[i].status == SIM_RUNNING || g->wave[i].status == SIM_SLEEPING)
            return true;
        is_waiting = is_waiting || g->wave[i].status == SIM_AT_BARRIER;
    }
    if (is_waiting)
        fail_stuck(g);
    return false;
}

/* True if every wave that could run is asleep: it waits for another workgroup. */
static bool is_asleep(const sim_group *g)
{
    for (int i = 0; i < g->wave_count; i++)
        if (g->wave[i].status == SIM_RUNNING)
            return false;
    return true;
}

static uint64_t executed(const sim_group *g)
{
    uint64_t sum = 0;
    for (int i = 0; i < g->wave_count; i++)
        sum += g->wave[i].executed;
    return sum;
}

/* Runs until the workgroup has ended (false), has run for long, or sleeps. Then it may wait for what its own waves or
 * other workgroups have yet to see in memory: hardware would have stored it by now. */
static bool run_slice(const launch *l, sim_group *g)
{
    const uint64_t until = executed(g) + SLICE;
    do {
        if (!run_round(l, g))
            return false;
    } while (!is_asleep(g) && executed(g) < until);
    for (int i = 0; i < g->wave_count; i++)
        sim_memory_settle(&g->wave[i]);
    return true;
}

/* Threads
 * -------
 */
static void residence_destroy(residence *r)
{
    if (r == NULL)
        return;
    free(r->vectors);
    free(r->scratch);
    free(r->group.lds);
    if (r->counters != NULL)
        sim_counters_destroy(r->counters);
    free(r);
}

static residence *residence_create(const launch *l)
{
    const sim_dispatch *d = l->dispatch;
    const int           waves = count_waves((uint64_t)d->group[0] * d->group[1] * d->group[2], l->lanes);
    residence          *r = calloc(1, sizeof *r);
    if (r == NULL)
        return NULL;
    r->vectors = calloc((size_t)waves * wave_vectors(l), sizeof *r->vectors);
    r->scratch = calloc((size_t)waves * (size_t)l->lanes, (size_t)l->scratch_bytes + 1);
    r->group.lds = calloc((size_t)l->lds_bytes + 64, 1); /* the widest access of a lane, begun inside, ends in it */
    if (r->vectors == NULL || r->scratch == NULL || r->group.lds == NULL) {
        residence_destroy(r);
        return NULL;
    }
    if (l->device->results != NULL)
        r->counters = sim_counters_create(l->device->results);
    return r;
}

static void fail_memory(launch *l)
{
    sim_device *device = l->device;
    pthread_mutex_lock(&device->lock);
    if (!device->failed) {
        device->failed = true;
        device->failed_order = 0;
        snprintf(device->error, sizeof device->error, "%s: out of memory for a workgroup", l->dispatch->kernel->name);
    }
    pthread_mutex_unlock(&device->lock);
    atomic_store(&device->stop, true);
}

/* Begins the next workgroup, in a residence of `spare` or a new one. NULL: there is none to begin, or no memory, which
 * is a failure only if the thread has nothing else to run. */
static residence *begin_next(launch *l, residence **spare, bool has_others)
{
    if (atomic_load_explicit(&l->next, memory_order_relaxed) >= l->group_count)
        return NULL;
    if (*spare == NULL)
        *spare = residence_create(l);
    if (*spare == NULL) {
        if (!has_others)
            fail_memory(l);
        return NULL;
    }
    const uint64_t number = atomic_fetch_add(&l->next, 1);
    if (number >= l->group_count)
        return NULL;
    residence *r = *spare;
    *spare = r->next;
    atomic_fetch_add(&l->resident, 1);
    begin_group(l, r, number);
    return r;
}

/* Takes workgroups one after another. One that runs for long may wait for another that has not begun (a barrier over
 * the grid, say): then more are begun besides, twice as many each time, as far as hardware would hold them. */
static void *work(void *argument)
{
    launch    *l = argument;
    residence *spare = NULL, *running = NULL;
    int        wanted = 1, count = 0;
    for (;;) {
        while (count < wanted) {
            residence *r = begin_next(l, &spare, count > 0);
            if (r == NULL)
                break;
            r->next = running;
            running = r;
            count++;
        }
        if (count == 0)
            break;
        bool any_ended = false;
        for (residence **at = &running; *at != NULL;) {
            residence *r = *at;
            if (run_slice(l, &r->group)) {
                at = &r->next;
                continue;
            }
            end_group(&r->group);
            atomic_fetch_sub(&l->resident, 1);
            *at = r->next;
            r->next = spare;
            spare = r;
            count--;
            any_ended = true;
        }
        if (atomic_load(&l->device->stop))
            break;
        if (any_ended)
            wanted = count > 1 ? count : 1;
        else if (atomic_load(&l->resident) < MOST_RESIDENT)
            wanted = 2 * count;
    }
    for (residence *r = running; r != NULL; r = r->next)
        end_group(&r->group);
    for (residence *lists[2] = { running, spare }, **list = lists; list < lists + 2; list++) {
        for (residence *r = *list, *next; r != NULL; r = next) {
            next = r->next;
            residence_destroy(r);
        }
    }
    return NULL;
}

/* Barriers
 * --------
 * A barrier completes when as many have signalled as it has members: its generation grows. A wave's wait is over when
 * the generation is the one that it needs (signalled[]). That is the hardware's bit for each wave, set when a barrier
 * completes and cleared by the wait, as long as a wave signals and waits in turns.
 */
static int barrier_index(const sim_wave *w, int id)
{
    if (w->group->wave_count == 1)
        return -1;
    return id == -1 ? 0 : id >= 1 && id < SIM_BARRIERS ? id : -1;
}

sim_barrier *sim_barrier_of(const sim_wave *w, int id)
{
    const int i = barrier_index(w, id);
    return i < 0 ? NULL : &w->group->barrier[i];
}

static int barrier_id(int index)
{
    return index == 0 ? -1 : index;
}

static void pass(sim_wave *w, const sim_instruction *inst, int index)
{
    const uint32_t generation = w->signalled[index] - 1;
    w->status = SIM_RUNNING;
    w->open &= ~(1u << index);
    w->signalled[index] = w->group->barrier[index].generation + 1;
    if (w->watch != NULL)
        sim_check_passed(w, inst, barrier_id(index), generation);
}

static void complete(sim_wave *w, int index)
{
    sim_group             *g = w->group;
    sim_barrier           *b = &g->barrier[index];
    const sim_instruction *first = b->first;
    if (index == 0 && b->members < (uint32_t)g->wave_count)
        sim_report(w, first, SIM_CHECK_BARRIER, -1, "%d of %d waves have ended and do not come to this barrier",
                   g->wave_count - (int)b->members, g->wave_count);
    b->arrived = 0;
    b->first = NULL;
    b->generation++;
    for (int i = 0; i < g->wave_count; i++) {
        sim_wave *other = &g->wave[i];
        if (other->status == SIM_AT_BARRIER && other->barrier == barrier_id(index) &&
            b->generation >= other->signalled[index])
            pass(other, other->waiting, index);
    }
}

static uint64_t offset_of(const sim_wave *w, const sim_instruction *inst)
{
    return inst->pc - w->group->dispatch->kernel->entry;
}

void sim_barrier_signal(sim_wave *w, const sim_instruction *inst, int id)
{
    const int index = barrier_index(w, id);
    if (index < 0)
        return;
    sim_barrier *b = &w->group->barrier[index];
    if (b->members == 0) {
        sim_fail(w, inst, "barrier %d has no members: it was not initialised", id);
        return;
    }
    if (b->arrived == 0)
        b->first = inst;
    else if (index == 0 && b->first->pc != inst->pc)
        sim_report(w, b->first, SIM_CHECK_ADVICE, -1, "another wave meets this barrier at +0x%" PRIx64,
                   offset_of(w, inst));
    if (index == 0 && (w->open >> index & 1) != 0)
        sim_report(w, inst, SIM_CHECK_BARRIER, -1, "the wave has signalled barrier %d already, and not waited for it",
                   id);
    w->signalled[index] = b->generation + 1;
    w->open |= 1u << index;
    if (w->watch != NULL)
        sim_check_signal(w, inst, id, b->generation);
    b->arrived++;
    if (b->arrived >= b->members)
        complete(w, index);
}

void sim_barrier_wait(sim_wave *w, const sim_instruction *inst, int id)
{
    if (id > 0 && w->joined == 0 && w->group->wave_count > 1) {
        sim_fail(w, inst, "waits for a named barrier, and has joined none");
        return;
    }
    const int number = id > 0 ? w->joined : id;
    const int index = barrier_index(w, number);
    if (index < 0)
        return;
    if (index == 0 && (w->open & 1) == 0)
        sim_report(w, inst, SIM_CHECK_BARRIER, -1, "waits for barrier %d, and has not signalled it", number);
    if (w->group->barrier[index].generation >= w->signalled[index]) {
        pass(w, inst, index);
        return;
    }
    w->status = SIM_AT_BARRIER;
    w->barrier = number;
    w->waiting = inst;
}

void sim_barrier_init(sim_wave *w, const sim_instruction *inst, int id, uint32_t members)
{
    const int index = barrier_index(w, id);
    if (index == 0 || (index < 0 && w->group->wave_count > 1)) {
        sim_fail(w, inst, "barrier %d is not a named one: 1 to 16", id);
        return;
    }
    if (index < 0)
        return;
    sim_barrier *b = &w->group->barrier[index];
    if (b->arrived != 0)
        sim_report(w, inst, SIM_CHECK_BARRIER, -1, "barrier %d is initialised while %" PRIu32 " have signalled it", id,
                   b->arrived);
    b->members = members;
    b->arrived = 0;
}

void sim_barrier_join(sim_wave *w, const sim_instruction *inst, int id)
{
    const int index = barrier_index(w, id);
    if (index == 0 || (index < 0 && w->group->wave_count > 1)) {
        sim_fail(w, inst, "barrier %d is not a named one: 1 to 16", id);
        return;
    }
    w->joined = id;
    if (index > 0)
        w->signalled[index] = w->group->barrier[index].generation + 1;
}

bool sim_barrier_leave(sim_wave *w, const sim_instruction *inst)
{
    (void)inst;
    const int index = w->joined == 0 ? -1 : barrier_index(w, w->joined);
    w->joined = 0;
    if (index < 0)
        return false;
    sim_barrier *b = &w->group->barrier[index];
    if (b->members > 0)
        b->members--;
    if (b->members > 0 && b->arrived >= b->members)
        complete(w, index);
    return true;
}

/* A wave that has signalled and ends still counts for that generation: its signal and its membership go together. */
void sim_end_wave(sim_wave *w, const sim_instruction *inst)
{
    (void)inst;
    sim_barrier *b = &w->group->barrier[0];
    sim_drain(w);
    if (w->status == SIM_FAILED)
        return;
    w->status = SIM_ENDED;
    if (w->group->wave_count == 1)
        return;
    b->members--;
    if (b->arrived > 0 && (w->open & 1) != 0 && w->signalled[0] == b->generation + 1)
        b->arrived--;
    if (b->arrived > 0 && b->arrived >= b->members)
        complete(w, 0);
}
