/* Memory operations between issue and completion, the waits that complete them, and where guest memory lies in the
 * host. */
#include "memory.h"

#include "device.h"

#include <stdlib.h>
#include <string.h>

#define BIT(counter) (1u << (counter))

/* Requests
 * --------
 */
static bool is_queued(const sim_wave *w)
{
    return w->watch != NULL || w->group->late;
}

/* The largest value of a counter: where one more operation stalls. gfx950: simm16 of s_waitcnt; gfx1250: CDNA5 ISA
 * 5.7.1 (TENSORCNT's width is not stated there; 63 as ASYNCCNT's). */
static uint32_t counter_limit(sim_arch arch, sim_counter counter)
{
    if (arch == SIM_GFX950)
        return counter == SIM_VMCNT ? 63 : 15;
    return counter == SIM_KMCNT ? 31 : 63;
}

static void stall(sim_wave *w, uint32_t counters)
{
    for (int c = 0; c < SIM_COUNTERS; c++) {
        const uint32_t limit = counter_limit(w->group->arch, c);
        if ((counters >> c & 1) != 0 && w->outstanding[c] >= limit)
            sim_wait(w, c, limit - 1);
    }
}

sim_pending *sim_memory_open(sim_wave *w, const sim_instruction *inst, sim_pending *local, uint32_t counters,
                             uint8_t order, uint8_t domains)
{
    sim_pending *p = local;
    if (is_queued(w)) {
        stall(w, counters);
        p = w->pool;
        if (p != NULL)
            w->pool = p->next;
        else if ((p = malloc(sizeof *p)) == NULL) {
            sim_fail(w, inst, "out of memory for a request");
            return NULL;
        }
        p->event = ++w->events;
    } else {
        p->event = 0;
    }
    p->inst = inst;
    p->access = inst->op->detail;
    p->perform = NULL;
    p->finish = NULL;
    p->mask = sim_exec(w);
    p->counters = p->needs = counters;
    p->order = order;
    p->domains = domains;
    p->performed = false;
    p->partial = false;
    p->dwords = 0;
    p->to = NULL;
    p->data = p->own;
    memcpy(p->msb, w->msb, sizeof p->msb);
    return p;
}

/* Registers are numbered as at issue while a request runs. */
static void run_with_msb(sim_wave *w, sim_pending *p, void (*run)(sim_wave *, sim_pending *))
{
    uint8_t now[sizeof w->msb];
    memcpy(now, w->msb, sizeof now);
    memcpy(w->msb, p->msb, sizeof now);
    run(w, p);
    memcpy(w->msb, now, sizeof now);
}

/* Performs a request, after the older ones of its domains. */
static void perform_in_order(sim_wave *w, sim_pending *p)
{
    if (p->performed)
        return;
    for (sim_pending *q = w->oldest; q != p; q = q->next) {
        if (!q->performed && (q->domains & p->domains) != 0) {
            q->performed = true;
            run_with_msb(w, q, q->perform);
        }
    }
    p->performed = true;
    run_with_msb(w, p, p->perform);
}

void sim_memory_issue(sim_wave *w, sim_pending *p)
{
    if (p->event == 0) {
        p->perform(w, p);
        if (p->finish != NULL)
            p->finish(w, p);
        return;
    }
    p->next = NULL;
    p->previous = w->newest;
    if (w->newest != NULL)
        w->newest->next = p;
    else
        w->oldest = p;
    w->newest = p;
    for (int c = 0; c < SIM_COUNTERS; c++)
        w->outstanding[c] += p->counters >> c & 1;
    if (w->watch != NULL)
        sim_check_issue(w, p->inst, p->event, (sim_counter)__builtin_ctz(p->counters), p->mask);
    if (!w->group->late) {
        p->performed = true;
        p->perform(w, p);
        if (p->finish != NULL)
            p->finish(w, p);
    }
}

static void unlink_request(sim_wave *w, sim_pending *p)
{
    if (p->previous != NULL)
        p->previous->next = p->next;
    else
        w->oldest = p->next;
    if (p->next != NULL)
        p->next->previous = p->previous;
    else
        w->newest = p->previous;
    p->next = w->pool;
    w->pool = p;
}

static void complete_waited(sim_wave *w, sim_pending *p)
{
    sim_check_complete(w, p->inst, p->event, true);
}

static void complete_ended(sim_wave *w, sim_pending *p)
{
    sim_check_complete(w, p->inst, p->event, false);
}

static void complete(sim_wave *w, sim_pending *p, bool waited)
{
    if (w->group->late) {
        perform_in_order(w, p);
        if (p->finish != NULL)
            run_with_msb(w, p, p->finish);
    }
    if (w->watch != NULL)
        run_with_msb(w, p, waited ? complete_waited : complete_ended);
    unlink_request(w, p);
}

/* Operation i is complete when at most n operations of a counter are outstanding if the smallest set that must be
 * outstanding with it has more than n members: i alone where it is unordered, else i and all younger ones of its order.
 * */
void sim_wait(sim_wave *w, sim_counter counter, uint32_t n)
{
    if (w->outstanding[counter] > n)
        w->outstanding[counter] = n;
    uint32_t from[SIM_ORDERS] = { 0 };
    for (const sim_pending *p = w->oldest; p != NULL; p = p->next)
        from[p->order] += p->needs >> counter & 1;
    /* Unordered ones complete newest first where the schedule asks for it, the others oldest first. */
    const bool   newest_first = w->group->reorder;
    sim_pending *next;
    for (sim_pending *p = newest_first ? w->newest : NULL; n == 0 && p != NULL; p = next) {
        next = p->previous;
        if (p->order != SIM_UNORDERED || (p->needs >> counter & 1) == 0)
            continue;
        p->needs &= ~BIT(counter);
        if (p->needs == 0)
            complete(w, p, true);
    }
    for (sim_pending *p = w->oldest; p != NULL; p = next) {
        next = p->next;
        if ((p->needs >> counter & 1) == 0)
            continue;
        const uint32_t set = p->order == SIM_UNORDERED ? 1 : from[p->order]--;
        if (set <= n)
            continue;
        p->needs &= ~BIT(counter);
        if (p->needs == 0)
            complete(w, p, true);
    }
}

void sim_drain(sim_wave *w)
{
    while (w->oldest != NULL)
        complete(w, w->oldest, false);
    sim_memory_release(w);
}

void sim_memory_settle(sim_wave *w)
{
    for (sim_pending *p = w->oldest; p != NULL; p = p->next)
        perform_in_order(w, p);
}

void sim_memory_release(sim_wave *w)
{
    while (w->oldest != NULL)
        unlink_request(w, w->oldest);
    while (w->pool != NULL) {
        sim_pending *p = w->pool;
        w->pool = p->next;
        free(p);
    }
    memset(w->outstanding, 0, sizeof w->outstanding);
}

void sim_memory_take(sim_wave *w, sim_pending *p, const sim_operand *o, int first, int dwords)
{
    if (!w->group->late && first == 0 && dwords == p->dwords) {
        p->data = sim_vector(w, o, 0);
        return;
    }
    const size_t lanes = (size_t)w->lanes;
    p->data = p->own;
    memcpy(p->own + (size_t)first * lanes, sim_vector(w, o, 0), (size_t)dwords * lanes * sizeof *p->own);
}

void sim_memory_result(sim_wave *w, sim_pending *p, const sim_operand *o, int dwords, bool direct)
{
    p->dwords = dwords;
    p->to = sim_vector(w, o, 0);
    p->data = direct && !w->group->late ? p->to : p->own;
    p->finish = sim_memory_finish;
}

void sim_memory_finish(sim_wave *w, sim_pending *p)
{
    if (p->data == p->to)
        return;
    const int lanes = w->lanes;
    const int half = p->access == NULL ? SIM_WHOLE : p->access->half;
    if (half == SIM_WHOLE) {
        for (int i = 0; i < p->dwords; i++)
            SIM_EACH_LANE (lane, p->mask)
                p->to[i * lanes + lane] = p->data[i * lanes + lane];
        return;
    }
    /* The other half of the register stays (with SRAM ECC on, LLVM assumes that it does not: no kernel should count on
     * it). */
    SIM_EACH_LANE (lane, p->mask) {
        const uint32_t was = p->to[lane], in = p->data[lane];
        p->to[lane] = half == SIM_LOW ? (was & 0xFFFF0000u) | (in & 0xFFFFu) : (was & 0xFFFFu) | in << 16;
    }
}

/* Where guest memory lies in the host
 * -----------------------------------
 */
/* The check has its own finding; this keeps the simulator from following the address. */
static uint8_t *memory_fault(sim_wave *w, const sim_pending *p, int lane, uint64_t address, uint64_t bytes)
{
    char where[160];
    sim_map_describe(w->group->map, address, where, sizeof where);
    sim_fail(w, p->inst, "memory fault: lane %d, %llu bytes at 0x%llx: %s", lane, (unsigned long long)bytes,
             (unsigned long long)address, where);
    return NULL;
}

void sim_check_aligned(sim_wave *w, const sim_pending *p, int lane, uint64_t address, uint32_t bytes)
{
    const uint32_t want = bytes < 4 ? bytes : 4;
    if (want > 1 && (address & (want - 1)) != 0) /* the runtimes allow it; buffers and older modes do not */
        sim_report(w, p->inst, SIM_CHECK_ADVICE, lane, "%u bytes at 0x%llx, which is not a multiple of %u", bytes,
                   (unsigned long long)address, want);
}

/* Tells who keeps account of bytes what the lanes of one allocation read or write. */
static void account(sim_wave *w, const sim_range *range, uint64_t address, uint64_t bytes, sim_access_kind kind)
{
    if (kind != SIM_READ)
        sim_range_mark(range, address, bytes);
    else
        sim_count_touch(w, address, bytes);
}

uint8_t *sim_host_global(sim_wave *w, sim_pending *p, int lane, uint64_t address, uint64_t bytes, sim_access_kind kind)
{
    if (w->watch != NULL && !sim_check_global(w, p->inst, p->event, lane, address, (uint32_t)bytes, kind))
        return NULL;
    const sim_range *range = sim_map_find(w->group->map, address, bytes);
    if (range == NULL || range->freed)
        return memory_fault(w, p, lane, address, bytes);
    if (kind == SIM_READ || w->watch == NULL) /* the check marks what it is told of */
        account(w, range, address, bytes, kind);
    return (uint8_t *)(uintptr_t)address; /* guest addresses are host addresses */
}

bool sim_global_written(sim_wave *w, uint64_t address, uint64_t bytes)
{
    const sim_range *range = sim_map_find(w->group->map, address, bytes);
    return range == NULL || sim_range_is_written(range, address, bytes);
}

static void account_lanes(sim_wave *w, const sim_range *range, const sim_pending *p, uint64_t mask, uint64_t low,
                          uint64_t high, uint32_t bytes, sim_access_kind kind)
{
    uint64_t next = low;
    bool     dense = true;
    SIM_EACH_LANE (lane, mask) {
        dense &= p->address[lane] == next;
        next += bytes;
    }
    if (dense) {
        account(w, range, low, high - low, kind);
        return;
    }
    SIM_EACH_LANE (lane, mask)
        account(w, range, p->address[lane], bytes, kind);
}

/* All lanes at once: they lie in one allocation. */
static bool resolve_span(sim_wave *w, const sim_pending *p, uint64_t mask, uint32_t bytes, sim_access_kind kind)
{
    uint64_t low = UINT64_MAX, high = 0;
    SIM_EACH_LANE (lane, mask) {
        const uint64_t address = p->address[lane];
        low = address < low ? address : low;
        high = address > high ? address : high;
    }
    if (high > UINT64_MAX - bytes)
        return false;
    const sim_range *range = sim_map_find(w->group->map, low, high - low + bytes);
    if (range == NULL || range->freed)
        return false;
    if (kind == SIM_READ ? w->counters != NULL : range->written != NULL)
        account_lanes(w, range, p, mask, low, high + bytes, bytes, kind);
    return true;
}

uint64_t sim_resolve_global(sim_wave *w, sim_pending *p, uint64_t mask, uint32_t bytes, const uint8_t *valid,
                            sim_access_kind kind, uint8_t *at[SIM_MAX_LANES])
{
    if (w->watch == NULL && valid == NULL && mask != 0 && resolve_span(w, p, mask, bytes, kind)) {
        SIM_EACH_LANE (lane, mask)
            at[lane] = (uint8_t *)(uintptr_t)p->address[lane];
        return mask;
    }
    uint64_t ok = 0;
    SIM_EACH_LANE (lane, mask) {
        const uint32_t of_lane = valid == NULL ? bytes : valid[lane];
        if (of_lane == 0 || w->status == SIM_FAILED)
            continue;
        if (w->watch != NULL)
            sim_check_aligned(w, p, (int)lane, p->address[lane], bytes);
        at[lane] = sim_host_global(w, p, (int)lane, p->address[lane], of_lane, kind);
        ok |= (uint64_t)(at[lane] != NULL) << lane;
    }
    return ok;
}

uint8_t *sim_host_lds(sim_wave *w, sim_pending *p, int lane, uint32_t address, uint32_t bytes, sim_access_kind kind)
{
    if (w->watch != NULL && !sim_check_lds(w, p->inst, p->event, lane, address, bytes, kind))
        return NULL;
    if (bytes > w->group->lds_bytes || address > w->group->lds_bytes - bytes)
        return NULL;
    return w->group->lds + address;
}

uint64_t sim_resolve_lds(sim_wave *w, sim_pending *p, uint64_t mask, const uint32_t *address, uint32_t bytes,
                         sim_access_kind kind, uint8_t *at[SIM_MAX_LANES])
{
    uint64_t ok = 0;
    if (w->watch == NULL) {
        uint8_t *const lds = w->group->lds;
        const uint32_t size = w->group->lds_bytes, last = size < bytes ? 0 : size - bytes;
        if (size < bytes)
            return 0;
        SIM_EACH_LANE (lane, mask) {
            const bool inside = address[lane] <= last;
            at[lane] = inside ? lds + address[lane] : NULL;
            ok |= (uint64_t)inside << lane;
        }
        return ok;
    }
    SIM_EACH_LANE (lane, mask) {
        sim_check_aligned(w, p, (int)lane, address[lane], bytes);
        at[lane] = sim_host_lds(w, p, (int)lane, address[lane], bytes, kind);
        ok |= (uint64_t)(at[lane] != NULL) << lane;
    }
    return ok;
}

/* Data
 * ----
 */
void sim_move_in(uint32_t *data, int lanes, uint64_t mask, uint32_t bytes, bool sign, uint8_t *const at[SIM_MAX_LANES])
{
    if (bytes < 4) {
        SIM_EACH_LANE (lane, mask)
            data[lane] = sim_load_small(at[lane], bytes, sign);
    } else if (bytes == 16) {
        SIM_EACH_LANE (lane, mask) {
            uint32_t x[4];
            memcpy(x, at[lane], sizeof x);
            for (int i = 0; i < 4; i++)
                data[i * lanes + (int)lane] = x[i];
        }
    } else {
        for (int i = 0; i < (int)bytes / 4; i++)
            SIM_EACH_LANE (lane, mask)
                memcpy(data + i * lanes + lane, at[lane] + 4 * i, 4);
    }
}

void sim_move_out(const uint32_t *data, int lanes, uint64_t mask, uint32_t bytes, uint8_t half,
                  uint8_t *const at[SIM_MAX_LANES])
{
    if (bytes < 4) {
        SIM_EACH_LANE (lane, mask) {
            const uint32_t x = half == SIM_HIGH ? data[lane] >> 16 : data[lane];
            const uint8_t  low = (uint8_t)x, high = (uint8_t)(x >> 8);
            at[lane][0] = low;
            if (bytes == 2)
                at[lane][1] = high;
        }
        return;
    }
    if (bytes != 16) {
        for (int i = 0; i < (int)bytes / 4; i++)
            SIM_EACH_LANE (lane, mask)
                memcpy(at[lane] + 4 * i, data + i * lanes + lane, 4);
        return;
    }
    SIM_EACH_LANE (lane, mask) {
        uint32_t x[4];
        for (int i = 0; i < 4; i++)
            x[i] = data[i * lanes + (int)lane];
        memcpy(at[lane], x, sizeof x);
    }
}
