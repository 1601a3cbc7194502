#include "runtime.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct device {
    sim_device     *sim;
    pthread_mutex_t busy; /* one dispatch at a time */
} device;

/* What was printed: an instruction that is wrong in every launch is printed once. */
typedef struct place {
    sim_check     check;
    char          kernel[64];
    uint64_t      pc;
    struct place *next;
} place;

typedef struct allocation {
    runtime_memory     memory;
    uint32_t           locks;
    struct allocation *next;
} allocation;

static struct {
    bool            started;
    sim_arch        arch;
    int             count;
    device          device[RUNTIME_MAX_DEVICES];
    FILE           *report;
    pthread_mutex_t report_lock; /* of the places too */
    place          *places;
    uint32_t        findings;
    uint64_t        counters, exit;
    pthread_mutex_t memory_lock;
    allocation     *memory;
} runtime = { .report_lock = PTHREAD_MUTEX_INITIALIZER, .memory_lock = PTHREAD_MUTEX_INITIALIZER };

/* MI355X: 256 compute units of 4 SIMDs with 8 waves. Of gfx1250 the compiler tells 4 SIMDs with 16 waves and 1024
 * registers; how many units a product has is not published where the rest is from, and nothing here depends on it. */
static const runtime_facts facts[SIM_ARCHS] = {
    [SIM_GFX950] = { .product = "etalon simulator of gfx950",
                     .wave_size = 64,
                     .compute_units = 256,
                     .waves_per_unit = 32,
                     .simds_per_unit = 4,
                     .lds_bytes = 160 * 1024,
                     .registers = 131072, /* 4 SIMDs, 512 registers, 64 lanes */
                     .major = 9,
                     .minor = 5,
                     .stepping = 0 },
    [SIM_GFX1250] = { .product = "etalon simulator of gfx1250",
                      .wave_size = 32,
                      .compute_units = 256,
                      .waves_per_unit = 64,
                      .simds_per_unit = 4,
                      .lds_bytes = 320 * 1024,
                      .registers = 131072, /* 4 SIMDs, 1024 registers, 32 lanes */
                      .major = 12,
                      .minor = 5,
                      .stepping = 0 },
};

void runtime_complain(const char *format, ...)
{
    char    text[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    fprintf(stderr, "etalon-sim: %s\n", text);
}

/* Start and end
 * -------------
 */
static bool read_number(const char *name, uint64_t most, uint64_t otherwise, uint64_t *to)
{
    const char *text = getenv(name);
    *to = otherwise;
    if (text == NULL || *text == '\0')
        return true;
    char *end;
    errno = 0;
    *to = strtoull(text, &end, 0);
    if (*end == '\0' && errno == 0 && strchr(text, '-') == NULL && *to <= most)
        return true;
    runtime_complain("%s: \"%s\", expected a number from 0 to %llu", name, text, (unsigned long long)most);
    return false;
}

static bool read_arch(void)
{
    const char *text = getenv("ETALON_SIM_ARCH");
    runtime.arch = SIM_GFX950;
    if (text == NULL || *text == '\0' || sim_arch_of_name(text, &runtime.arch))
        return true;
    runtime_complain("ETALON_SIM_ARCH: \"%s\", expected gfx950 or gfx1250", text);
    return false;
}

static bool read_checks(uint32_t *checks)
{
    const char *text = getenv("ETALON_SIM_CHECK");
    *checks = SIM_CHECK_ALL;
    if (text == NULL || *text == '\0' || sim_checks_of_names(text, checks))
        return true;
    runtime_complain("ETALON_SIM_CHECK: %s", sim_last_error());
    return false;
}

static bool open_report(void)
{
    const char *path = getenv("ETALON_SIM_REPORT");
    runtime.report = path == NULL || *path == '\0' ? stderr : fopen(path, "ae");
    if (runtime.report == NULL) {
        runtime_complain("ETALON_SIM_REPORT: %s: %s", path, strerror(errno));
        return false;
    }
    setvbuf(runtime.report, NULL, _IOLBF, 0);
    return true;
}

/* A line that sums up, and the exit status: on_exit, because only it is told the status. The library stays loaded
 * (-z nodelete), so the handler is still there. Handlers that were registered before have not run yet and will not. */
static void at_exit(int status, void *none)
{
    (void)none;
    if (runtime.findings == 0)
        return;
    fprintf(runtime.report, "etalon-sim: %u finding%s\n", runtime.findings, runtime.findings == 1 ? "" : "s");
    if (status != 0 || runtime.exit == 0)
        return;
    fflush(NULL);
    _exit(1);
}

static bool create_devices(const sim_options *options, int count)
{
    for (int i = 0; i < count; i++) {
        device *d = &runtime.device[i];
        d->sim = sim_device_create(runtime.arch, options);
        if (d->sim == NULL) {
            runtime_complain("%s", sim_last_error());
            return false;
        }
        pthread_mutex_init(&d->busy, NULL);
        runtime.count++;
    }
    return true;
}

static void start(void)
{
    sim_options options = { 0 };
    uint64_t    devices, threads;
    if (!read_arch() || !read_checks(&options.checks) ||
        !read_number("ETALON_SIM_DEVICES", RUNTIME_MAX_DEVICES, 1, &devices) ||
        !read_number("ETALON_SIM_SEED", UINT64_MAX, 0, &options.seed) ||
        !read_number("ETALON_SIM_THREADS", 1024, 0, &threads) ||
        !read_number("ETALON_SIM_LIMIT", UINT64_MAX, 0, &options.limit) ||
        !read_number("ETALON_SIM_COUNTERS", 2, 0, &runtime.counters) ||
        !read_number("ETALON_SIM_EXIT", 1, 0, &runtime.exit) || !open_report())
        return;
    options.threads = (int)threads;
    options.counters = runtime.counters == 2;
    if (!create_devices(&options, (int)devices))
        return;
    on_exit(at_exit, NULL);
    runtime.started = true;
}

bool runtime_start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start);
    return runtime.started;
}

int runtime_device_count(void)
{
    return runtime.count;
}

sim_arch runtime_arch(void)
{
    return runtime.arch;
}

sim_device *runtime_device(int number)
{
    return runtime.device[number].sim;
}

const runtime_facts *runtime_describe(void)
{
    return &facts[runtime.arch];
}

/* Memory
 * ------
 */
static allocation **find_allocation(const void *at)
{
    allocation **link = &runtime.memory;
    while (*link != NULL && ((const char *)at < (char *)(*link)->memory.at ||
                             (const char *)at >= (char *)(*link)->memory.at + (*link)->memory.bytes))
        link = &(*link)->next;
    return link;
}

static allocation *add_allocation(const runtime_memory *memory)
{
    allocation *a = calloc(1, sizeof *a);
    if (a == NULL)
        return NULL;
    a->memory = *memory;
    a->next = runtime.memory;
    runtime.memory = a;
    return a;
}

static void remove_allocation(allocation **link)
{
    allocation *a = *link;
    *link = a->next;
    free(a);
}

static uint32_t bit_of(int owner)
{
    return owner == RUNTIME_HOST ? 0 : 1u << owner;
}

/* Takes the memory from the devices that it was lent to. */
static void withdraw(const runtime_memory *m)
{
    for (int i = 0; i < runtime.count; i++)
        if ((m->devices & ~bit_of(m->owner)) >> i & 1)
            sim_unregister(runtime_device(i), m->at);
}

static bool lend(runtime_memory *m, uint32_t devices)
{
    static const char name[] = "memory of the host";
    for (int i = 0; i < runtime.count; i++) {
        if ((devices & ~m->devices) >> i & 1) {
            if (!sim_register(runtime_device(i), m->at, m->bytes, m->owner == RUNTIME_HOST ? name : "memory of a peer"))
                return false;
            m->devices |= 1u << i;
        }
    }
    return true;
}

void *runtime_allocate(int owner, size_t bytes, uint32_t tag)
{
    enum { PAGE = 4096 };
    runtime_memory m = { .bytes = bytes, .owner = owner, .devices = bit_of(owner), .tag = tag };
    if (bytes == 0 || bytes > runtime_memory_bytes())
        return NULL;
    m.at = owner == RUNTIME_HOST ? aligned_alloc(PAGE, (bytes + PAGE - 1) / PAGE * PAGE)
                                 : sim_allocate(runtime_device(owner), bytes, "memory of the device");
    if (m.at == NULL)
        return NULL;
    pthread_mutex_lock(&runtime.memory_lock);
    const bool added = add_allocation(&m) != NULL;
    pthread_mutex_unlock(&runtime.memory_lock);
    if (added)
        return m.at;
    if (owner == RUNTIME_HOST)
        free(m.at);
    else
        sim_free(runtime_device(owner), m.at);
    return NULL;
}

bool runtime_free(void *at)
{
    pthread_mutex_lock(&runtime.memory_lock);
    allocation **link = find_allocation(at);
    const bool   ok = *link != NULL && (*link)->memory.at == at && !(*link)->memory.locked;
    if (ok) {
        const runtime_memory m = (*link)->memory;
        withdraw(&m);
        remove_allocation(link);
        if (m.owner == RUNTIME_HOST)
            free(m.at);
        else
            sim_free(runtime_device(m.owner), m.at);
    }
    pthread_mutex_unlock(&runtime.memory_lock);
    return ok;
}

bool runtime_allow(const void *at, uint32_t devices)
{
    pthread_mutex_lock(&runtime.memory_lock);
    allocation *a = *find_allocation(at);
    const bool  ok = a != NULL && lend(&a->memory, devices);
    pthread_mutex_unlock(&runtime.memory_lock);
    return ok;
}

void runtime_allow_all(int owner, uint32_t devices)
{
    pthread_mutex_lock(&runtime.memory_lock);
    for (allocation *a = runtime.memory; a != NULL; a = a->next)
        if (a->memory.owner == owner)
            lend(&a->memory, devices);
    pthread_mutex_unlock(&runtime.memory_lock);
}

bool runtime_find(const void *at, runtime_memory *to)
{
    pthread_mutex_lock(&runtime.memory_lock);
    const allocation *a = *find_allocation(at);
    if (a != NULL)
        *to = a->memory;
    pthread_mutex_unlock(&runtime.memory_lock);
    if (a != NULL)
        return true;
    *to = (runtime_memory){ 0 };
    for (int i = 0; i < runtime.count; i++) {
        if (sim_find(runtime_device(i), at, &to->at, &to->bytes)) {
            to->owner = i;
            to->devices = 1u << i;
            return true;
        }
    }
    return false;
}

/* Locked ranges that touch each other are one, with the locks of all. */
bool runtime_lock(void *at, size_t bytes, uint32_t devices, uint32_t tag)
{
    if (bytes == 0)
        return false;
    pthread_mutex_lock(&runtime.memory_lock);
    runtime_memory all = { .at = at, .bytes = bytes, .owner = RUNTIME_HOST, .tag = tag, .locked = true };
    uint32_t       locks = 1;
    bool           ok = true;
    for (allocation **link = &runtime.memory; ok && *link != NULL;) {
        const runtime_memory m = (*link)->memory;
        char                *first = all.at, *last = first + all.bytes, *m_first = m.at, *m_last = m_first + m.bytes;
        if (m_first >= last || m_last <= first) {
            link = &(*link)->next;
            continue;
        }
        ok = m.locked;
        if (!ok)
            break;
        withdraw(&m);
        locks += (*link)->locks;
        devices |= m.devices;
        remove_allocation(link);
        all.at = m_first < first ? m_first : first;
        all.bytes = (size_t)((m_last > last ? m_last : last) - (char *)all.at);
        link = &runtime.memory; /* the union may touch one that was passed */
    }
    allocation *a = ok ? add_allocation(&all) : NULL;
    ok = a != NULL && lend(&a->memory, devices);
    if (a != NULL)
        a->locks = locks;
    pthread_mutex_unlock(&runtime.memory_lock);
    return ok;
}

bool runtime_unlock(void *at)
{
    pthread_mutex_lock(&runtime.memory_lock);
    allocation **link = find_allocation(at);
    const bool   ok = *link != NULL && (*link)->memory.locked;
    if (ok && --(*link)->locks == 0) {
        withdraw(&(*link)->memory);
        remove_allocation(link);
    }
    pthread_mutex_unlock(&runtime.memory_lock);
    return ok;
}

bool runtime_fits(const void *at, size_t bytes, const char *what)
{
    runtime_memory m;
    if (!runtime_find(at, &m) || m.locked)
        return true;
    const size_t left = m.bytes - (size_t)((const char *)at - (char *)m.at);
    if (bytes <= left)
        return true;
    runtime_complain("%s %zu bytes at %p, where the allocation of %zu bytes has %zu left", what, bytes, at, m.bytes,
                     left);
    return false;
}

static void mark_written(void *at, size_t bytes)
{
    runtime_memory m;
    if (runtime_find(at, &m) && m.owner != RUNTIME_HOST)
        sim_mark_written(runtime_device(m.owner), at, bytes);
}

bool runtime_copy(void *to, const void *from, size_t bytes)
{
    if (bytes == 0)
        return true;
    if (!runtime_fits(from, bytes, "copy from") || !runtime_fits(to, bytes, "copy to"))
        return false;
    memmove(to, from, bytes);
    mark_written(to, bytes);
    return true;
}

bool runtime_fill(void *to, uint32_t pattern, size_t width, size_t count)
{
    char *at = to;
    if (count == 0)
        return true;
    if (count > SIZE_MAX / width || !runtime_fits(to, width * count, "fill of"))
        return false;
    for (size_t i = 0; i < count; i++)
        memcpy(at + i * width, &pattern, width);
    mark_written(to, width * count);
    return true;
}

size_t runtime_memory_bytes(void)
{
    return (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE) / 2;
}

size_t runtime_memory_used(int number)
{
    size_t used = 0;
    pthread_mutex_lock(&runtime.memory_lock);
    for (const allocation *a = runtime.memory; a != NULL; a = a->next)
        if (a->memory.owner == number)
            used += a->memory.bytes;
    pthread_mutex_unlock(&runtime.memory_lock);
    return used;
}

/* Dispatch
 * --------
 */
static bool is_new(const sim_finding *f)
{
    for (const place *p = runtime.places; p != NULL; p = p->next)
        if (p->check == f->check && p->pc == f->pc && strcmp(p->kernel, f->kernel) == 0)
            return false;
    place *p = calloc(1, sizeof *p);
    if (p != NULL) {
        p->check = f->check;
        p->pc = f->pc;
        memcpy(p->kernel, f->kernel, sizeof p->kernel);
        p->next = runtime.places;
        runtime.places = p;
    }
    return true;
}

static void print_results(device *d)
{
    pthread_mutex_lock(&runtime.report_lock);
    for (uint32_t i = 0; i < sim_finding_count(d->sim); i++) {
        const sim_finding *f = sim_finding_at(d->sim, i);
        if (is_new(f)) {
            sim_print_finding(runtime.report, f);
            runtime.findings++;
        }
    }
    sim_findings_clear(d->sim);
    if (runtime.counters != 0)
        sim_print_report(runtime.report, d->sim, runtime.counters == 2);
    pthread_mutex_unlock(&runtime.report_lock);
}

bool runtime_dispatch(int number, const sim_dispatch *dispatch)
{
    device *d = &runtime.device[number];
    pthread_mutex_lock(&d->busy);
    const bool ok = sim_run(d->sim, dispatch);
    print_results(d);
    if (!ok)
        runtime_complain("%s", sim_last_error());
    pthread_mutex_unlock(&d->busy);
    return ok;
}
