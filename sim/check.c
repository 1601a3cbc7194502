/* The checks that are about one wave: registers that memory operations still write, and rules of single instructions.
 * What is defined: defined.c. Who touches memory, and when: races.c. Wait states: hazards.c. */
#include "watch.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

uint64_t sim_offset(const sim_wave *w, const sim_instruction *inst)
{
    const sim_dispatch *d = w->group->dispatch;
    return inst->pc - (d != NULL && d->kernel != NULL ? d->kernel->entry : 0);
}

/* A wave's watch
 * --------------
 */
static int vectors_of(const sim_wave *w)
{
    return w->group->arch == SIM_GFX950 ? SIM_VECTORS_GFX950 : SIM_VECTORS_GFX1250;
}

static void set_unknown(sim_watch *k, int first, int count)
{
    for (int i = first; i < first + count; i++)
        sim_put_bit(k->unknown, i, true);
}

static uint32_t field(uint64_t descriptor, int at, int first, int bits)
{
    uint32_t word;
    memcpy(&word, (const uint8_t *)(uintptr_t)descriptor + at, sizeof word);
    return word >> first & ((1u << bits) - 1);
}

/* What the descriptor gives a wave (AMDGPU usage guide, kernel descriptor): VGPRs in blocks of 8 or 16; gfx950 splits
 * them at accum_offset, and has SGPRs in blocks of 16. */
static void read_limits(sim_watch *k, const sim_wave *w)
{
    enum { RSRC3 = 44, RSRC1 = 48 };
    const sim_dispatch *d = w->group->dispatch;
    if (d == NULL || d->kernel == NULL || d->kernel->descriptor == 0)
        return;
    const uint64_t at = d->kernel->descriptor;
    const uint32_t blocks = field(at, RSRC1, 0, 6) + 1;
    if (w->group->arch == SIM_GFX1250) {
        k->vector_limit = 16 * blocks;
        return;
    }
    const uint32_t offset = 4 * (field(at, RSRC3, 0, 6) + 1);
    k->vector_limit = 8 * blocks < offset ? 8 * blocks : offset;
    k->acc_limit = 8 * blocks - k->vector_limit;
    k->scalar_limit = 16 * (field(at, RSRC1, 6, 4) / 2 + 1);
}

sim_watch *sim_watch_create(const sim_wave *w)
{
    sim_watch *k = calloc(1, sizeof *k);
    if (k == NULL)
        return NULL;
    /* Zeros: no bit known. Pages of registers that nobody uses are never touched. */
    k->known = calloc((size_t)vectors_of(w) * (size_t)w->lanes, sizeof *k->known);
    k->open_room = 64;
    k->open = malloc(k->open_room * sizeof *k->open);
    if (k->known == NULL || k->open == NULL) {
        sim_watch_destroy(k);
        return NULL;
    }
    read_limits(k, w);
    set_unknown(k, 0, vectors_of(w));
    memset(k->known_scalar, 0xFF, sizeof k->known_scalar);
    k->scc_known = true;
    k->epoch = 1;
    sim_races_create(k, w);
    memset(k->known, 0xFF, 3 * (size_t)w->lanes * sizeof *k->known);
    for (int i = 0; i < 3; i++)
        sim_put_bit(k->unknown, i, false);
    return k;
}

void sim_watch_destroy(sim_watch *k)
{
    if (k == NULL)
        return;
    for (uint32_t i = 0; i < k->opened; i++)
        free(k->open[i].unknown);
    sim_races_destroy(k);
    free(k->open);
    free(k->known);
    free(k);
}

void sim_check_launched(sim_wave *w, int sgprs, int vgprs)
{
    sim_watch *k = w->watch;
    /* Which ttmp registers are set depends on the trap handler as well; EXEC is all ones. */
    for (int i = 0; i < SIM_TTMP; i++) {
        k->known_scalar[i] = i < sgprs ? UINT32_MAX : 0;
        sim_put_bit(k->unknown, SIM_SCALAR_BASE + i, i >= sgprs);
    }
    for (int i = 0; i < 3; i++) {
        memset(sim_known_row(w, i), i < vgprs ? 0xFF : 0, (size_t)w->lanes * sizeof *k->known);
        sim_put_bit(k->unknown, i, i >= vgprs);
    }
    k->scc_known = false;
}

/* Operations outstanding
 * ----------------------
 */
/* Index of the event among the open operations, or where it would be. */
static uint32_t open_index(const sim_watch *k, uint64_t event)
{
    uint32_t first = 0, end = k->opened;
    while (first < end) {
        const uint32_t middle = first + (end - first) / 2;
        if (k->open[middle].event < event)
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

sim_operation *sim_operation_of(sim_watch *k, uint64_t event)
{
    if (k->opened > 0 && k->open[k->opened - 1].event == event)
        return &k->open[k->opened - 1];
    const uint32_t i = open_index(k, event);
    return i < k->opened && k->open[i].event == event ? &k->open[i] : NULL;
}

static sim_operation *open_operation(sim_watch *k, uint64_t event)
{
    if (k->opened == k->open_room) {
        sim_operation *more = realloc(k->open, 2 * k->open_room * sizeof *more);
        if (more == NULL)
            return NULL;
        k->open = more;
        k->open_room *= 2;
    }
    sim_operation *op = &k->open[k->opened++];
    memset(op, 0, sizeof *op);
    op->event = event;
    return op;
}

static void hold(sim_watch *k, const sim_operation *op, const sim_reach *r)
{
    for (int reg = r->first; reg < r->first + r->count; reg++) {
        sim_put_bit(k->pending, reg, true);
        k->holder[reg] = (uint32_t)op->event;
    }
}

static void release(sim_watch *k, const sim_operation *op, const sim_reach *r)
{
    for (int reg = r->first; reg < r->first + r->count; reg++)
        if (k->holder[reg] == (uint32_t)op->event)
            sim_put_bit(k->pending, reg, false);
}

/* Address translations
 * --------------------
 * Of gfx1250: an operation whose address faults runs again, from the registers as they are then. XCNT counts those that
 * may; compilers wait for it before they change an address or data (LLVM 22: SIInsertWaitcnts). Vector memory and
 * scalar memory do not mix: hardware finishes the ones before it begins with the others. What the tensor mover reads
 * again no source says. */
static bool is_translated(const sim_wave *w, const sim_instruction *inst)
{
    switch (inst->op->kind) {
    case SIM_SMEM:
    case SIM_LOAD:
    case SIM_STORE:
    case SIM_ATOMIC:
    case SIM_FLAT:
    case SIM_ASYNC:
        return w->group->arch == SIM_GFX1250;
    default:
        return false;
    }
}

static void read_again(sim_watch *k, const sim_instruction *inst, const sim_operation *op, int first, int count)
{
    for (int reg = first; reg < first + count; reg++) {
        sim_put_bit(k->sources, reg, true);
        k->reader[reg] = op->translation;
        k->reads_again[reg] = inst;
    }
}

static void begin_translation(sim_watch *k, const sim_instruction *inst, sim_operation *op)
{
    const bool scalar = inst->op->kind == SIM_SMEM;
    if (scalar != k->translates_scalars)
        k->translated = k->translations;
    k->translates_scalars = scalar;
    op->translation = ++k->translations;
    for (int i = 0; i < k->reaches.reads; i++)
        read_again(k, inst, op, k->reaches.read[i].first, k->reaches.read[i].count);
    if (!scalar)
        read_again(k, inst, op, SIM_SCALAR_BASE + SIM_EXEC, 1);
}

/* What has come back was translated, and of vector memory all that is older; scalar loads have no order. */
static void end_translation(sim_watch *k, const sim_operation *op)
{
    if (op->translation == 0 || op->translation <= k->translated)
        return;
    if (op->inst->op->kind != SIM_SMEM) {
        k->translated = op->translation;
        return;
    }
    for (int i = 0; i < SIM_SCALARS; i++)
        if (k->reader[SIM_SCALAR_BASE + i] == op->translation)
            sim_put_bit(k->sources, SIM_SCALAR_BASE + i, false);
}

static void wait_translations(sim_watch *k, const sim_instruction *inst)
{
    const uint32_t n = inst->operand_count > 0 ? (uint32_t)inst->operand[0].value : 0;
    if (n != 0 && k->translates_scalars) /* no order: only 0 says something */
        return;
    if (n < k->translations && k->translations - n > k->translated)
        k->translated = k->translations - n;
}

static void check_source(sim_wave *w, const sim_instruction *inst, int reg)
{
    sim_watch *k = w->watch;
    char       name[16];
    sim_put_bit(k->sources, reg, false);
    if (k->reader[reg] > k->translated)
        sim_report(w, inst, SIM_CHECK_ADVICE, -1,
                   "overwrites %s, which \"%s\" at +0x%" PRIx64
                   " reads again if its address faults: needs s_wait_xcnt %" PRIu32,
                   sim_register_name(w->group->arch, reg, name, sizeof name), k->reads_again[reg]->text,
                   sim_offset(w, k->reads_again[reg]), k->translates_scalars ? 0 : k->translations - k->reader[reg]);
}

static void check_sources(sim_wave *w, const sim_instruction *inst)
{
    sim_watch *k = w->watch;
    if (is_translated(w, inst) && (inst->op->kind == SIM_SMEM) == k->translates_scalars)
        return; /* in order */
    for (int i = 0; i < k->reaches.writes; i++) {
        const sim_reach *r = &k->reaches.write[i];
        for (int reg = r->first; reg < r->first + r->count; reg++)
            if (sim_bit(k->sources, reg))
                check_source(w, inst, reg);
    }
}

void sim_check_issue(sim_wave *w, const sim_instruction *inst, uint64_t event, sim_counter counter, uint64_t mask)
{
    sim_watch *k = w->watch;
    if (sim_operation_of(k, event) != NULL)
        return; /* the second counter of a flat operation */
    sim_operation *op = open_operation(k, event);
    if (op == NULL)
        return;
    if (k->at != inst)
        sim_reach_all(w, inst, &k->reaches);
    op->inst = inst;
    op->mask = mask;
    op->counter = (uint8_t)counter;
    k->last_event = event;
    for (int i = 0; i < k->reaches.writes && op->writes < 2; i++) {
        const sim_reach *r = &k->reaches.write[i];
        /* An operation without lanes writes no register. */
        if (mask == 0 && r->first < SIM_SCALAR_BASE)
            continue;
        op->write[op->writes++] = *r;
        hold(k, op, r);
    }
    if (is_translated(w, inst))
        begin_translation(k, inst, op);
    sim_defined_issue(w, inst, op);
    sim_races_issue(w, inst, op);
}

void sim_check_complete(sim_wave *w, const sim_instruction *inst, uint64_t event, bool waited)
{
    sim_watch     *k = w->watch;
    const uint32_t at = open_index(k, event);
    (void)inst;
    (void)waited; /* what the end of the wave completes, no signal publishes any more */
    if (at == k->opened || k->open[at].event != event)
        return;
    sim_operation *op = &k->open[at];
    for (int i = 0; i < op->writes; i++)
        release(k, op, &op->write[i]);
    end_translation(k, op);
    sim_races_complete(w, op);
    free(op->unknown);
    memmove(op, op + 1, (size_t)(k->opened - at - 1) * sizeof *op);
    k->opened--;
}

/* Missing waits
 * -------------
 * No source is pending: stores, DS instructions and atomics read theirs at issue (but see above); on gfx950 the data of
 * wide stores are what the wait-state table covers. */

static const char *wait_name(sim_arch arch, int counter)
{
    static const char *const gfx950[SIM_COUNTERS] = { [SIM_VMCNT] = "vmcnt", [SIM_LGKMCNT] = "lgkmcnt" };
    static const char *const gfx1250[SIM_COUNTERS] = { [SIM_VMCNT] = "loadcnt",     [SIM_STORECNT] = "storecnt",
                                                       [SIM_DSCNT] = "dscnt",       [SIM_KMCNT] = "kmcnt",
                                                       [SIM_ASYNCCNT] = "asynccnt", [SIM_TENSORCNT] = "tensorcnt" };
    const char              *name = arch == SIM_GFX950 ? gfx950[counter] : gfx1250[counter];
    return name != NULL ? name : "?";
}

/* The largest count whose wait guarantees the operation: that of the later ones in its counter, and 0 as soon as
 * scalar loads, which come back in any order, share it. */
static int covering_count(const sim_watch *k, const sim_operation *op)
{
    int later = 0;
    for (uint32_t i = 0; i < k->opened; i++) {
        if (k->open[i].counter != op->counter)
            continue;
        if (k->open[i].inst->op->kind == SIM_SMEM || k->open[i].inst->op->kind == SIM_FLAT)
            return 0;
        later += k->open[i].event > op->event;
    }
    return later;
}

static void report_pending(sim_wave *w, const sim_instruction *inst, int reg, const char *verb)
{
    sim_watch           *k = w->watch;
    const sim_operation *op = sim_operation_of(k, k->holder[reg]);
    const sim_arch       arch = w->group->arch;
    char                 name[16];
    if (op == NULL || !sim_checks(w, SIM_CHECK_MISSING_WAIT))
        return;
    sim_report(w, inst, SIM_CHECK_MISSING_WAIT, -1,
               arch == SIM_GFX950 ? "%s %s, which \"%s\" at +0x%" PRIx64 " may still write: needs s_waitcnt %s(%d)"
                                  : "%s %s, which \"%s\" at +0x%" PRIx64 " may still write: needs s_wait_%s %d",
               verb, sim_register_name(arch, reg, name, sizeof name), op->inst->text, sim_offset(w, op->inst),
               wait_name(arch, op->counter), covering_count(k, op));
}

static int first_pending(const sim_watch *k, const sim_reach *r)
{
    for (int reg = r->first; reg < r->first + r->count; reg++)
        if (sim_bit(k->pending, reg))
            return reg;
    return -1;
}

/* Loads of one in-order class come back in order: a later one may overwrite, or fill the other half of, what an
 * earlier one writes. */
static bool comes_after(const sim_watch *k, const sim_instruction *inst, int reg)
{
    const sim_operation *op = sim_operation_of((sim_watch *)(uintptr_t)k, k->holder[reg]);
    const int            kind = inst->op->kind;
    return op != NULL && op->inst->op->kind == kind && (kind == SIM_LOAD || kind == SIM_DS);
}

static void check_pending(sim_wave *w, const sim_instruction *inst)
{
    const sim_watch *k = w->watch;
    for (int i = 0; i < k->reaches.reads; i++) {
        const sim_reach *r = &k->reaches.read[i];
        const int        reg = sim_any_bit(k->pending, r) ? first_pending(k, r) : -1;
        const bool       is_kept_part = r->operand == 0 && inst->op->results > 0;
        if (reg >= 0 && !(is_kept_part && comes_after(k, inst, reg)))
            report_pending(w, inst, reg, "reads");
    }
    for (int i = 0; i < k->reaches.writes; i++) {
        const sim_reach *r = &k->reaches.write[i];
        const int        reg = sim_any_bit(k->pending, r) ? first_pending(k, r) : -1;
        if (reg >= 0 && !comes_after(k, inst, reg))
            report_pending(w, inst, reg, "writes");
    }
}

/* Rules of single instructions
 * ----------------------------
 */
static bool overlap_holds(const sim_watch *k, int wanted)
{
    /* Low numbers overlap; with s_set_vgpr_msb the registers may still differ. */
    for (int i = 0; i < k->reaches.reads; i++)
        if ((wanted >> k->reaches.read[i].operand & 1) != 0 && k->reaches.writes > 0 &&
            sim_meet(&k->reaches.write[0], &k->reaches.read[i]))
            return true;
    return false;
}

static void report_lint(sim_wave *w, const sim_instruction *inst, uint16_t lint)
{
    const sim_watch *k = w->watch;
    if ((lint & SIM_LINT_EVEN) != 0)
        sim_report(w, inst, SIM_CHECK_ALIGNMENT, -1, "a tuple of registers begins at an odd number");
    if ((lint & SIM_LINT_OVERLAP_AB) != 0 && overlap_holds(k, 1 << 1 | 1 << 2))
        sim_report(w, inst, SIM_CHECK_OVERLAP, -1, "D overlaps A or B, which is read while D is written");
    if ((lint & SIM_LINT_OVERLAP_C) != 0 && overlap_holds(k, 1 << 3))
        sim_report(w, inst, SIM_CHECK_OVERLAP, -1, "D overlaps C without being the same registers");
    if ((lint & SIM_LINT_OVERLAP_CVT) != 0 && overlap_holds(k, 0xFE))
        sim_report(w, inst, SIM_CHECK_OVERLAP, -1, "the result overlaps a source of a conversion of many steps");
    if ((lint & SIM_LINT_PK_FMA) != 0)
        sim_report(w, inst, SIM_CHECK_ERRATUM, -1, "v_pk_fma_f32 with op_sel:[0,1,0] at times miscomputes on gfx950");
}

static void check_lanes(sim_wave *w, const sim_instruction *inst)
{
    const uint64_t missing = sim_all_lanes(w) & ~sim_exec(w);
    if (missing != 0)
        sim_report(w, inst, SIM_CHECK_EXEC, __builtin_ctzll(missing), "wants every lane enabled; EXEC is 0x%" PRIx64,
                   sim_exec(w));
}

static uint32_t limit_of(const sim_wave *w, int reg, int *number, char *file)
{
    const sim_watch *k = w->watch;
    if (reg >= SIM_SCALAR_BASE) {
        *number = reg - SIM_SCALAR_BASE;
        *file = 's';
        /* vcc and what lies above are no part of the allocation's question; gfx1250 gives every wave all of them. */
        return *number >= SIM_VCC || w->group->arch == SIM_GFX1250 ? 0 : k->scalar_limit;
    }
    const bool is_acc = w->group->arch == SIM_GFX950 && reg >= 256;
    *number = is_acc ? reg - 256 : reg;
    *file = is_acc ? 'a' : 'v';
    return is_acc && k->acc_limit == 0 ? UINT32_MAX : is_acc ? k->acc_limit : k->vector_limit;
}

static void check_limit(sim_wave *w, const sim_instruction *inst, const sim_reach *r)
{
    int            number;
    char           file;
    const uint32_t limit = limit_of(w, r->first + r->count - 1, &number, &file);
    if (limit == UINT32_MAX)
        sim_report(w, inst, SIM_CHECK_REGISTER_LIMIT, -1, "%c%d: the descriptor asks for none", file, number);
    else if (limit != 0 && (uint32_t)number >= limit)
        sim_report(w, inst, SIM_CHECK_REGISTER_LIMIT, -1, "%c%d: the descriptor asks for %u", file, number, limit);
}

static void check_limits(sim_wave *w, const sim_instruction *inst)
{
    const sim_watch *k = w->watch;
    if (k->vector_limit == 0)
        return; /* a wave without a kernel */
    for (int i = 0; i < k->reaches.reads; i++)
        check_limit(w, inst, &k->reaches.read[i]);
    for (int i = 0; i < k->reaches.writes; i++)
        check_limit(w, inst, &k->reaches.write[i]);
}

static void check_m0(sim_wave *w, const sim_instruction *inst)
{
    if (!w->watch->m0_set)
        sim_report(w, inst, SIM_CHECK_M0, -1, "M0 was never set");
}

void sim_check_before(sim_wave *w, const sim_instruction *inst)
{
    sim_watch       *k = w->watch;
    const sim_facts *facts = sim_facts_of(inst);
    sim_reach_all(w, inst, &k->reaches);
    k->at = inst;
    if (facts->lint != 0)
        report_lint(w, inst, facts->lint);
    if ((inst->op->flags & SIM_WANTS_ALL_LANES) != 0)
        check_lanes(w, inst);
    if ((facts->what & SIM_FACT_M0) != 0)
        check_m0(w, inst);
    if ((facts->what & (SIM_FACT_WRITES_BACK | SIM_FACT_INVALIDATES)) != 0)
        sim_races_before(w, inst);
    check_limits(w, inst);

    if (inst->op->kind == SIM_WAIT && strcmp(inst->op->name, "s_wait_xcnt") == 0)
        wait_translations(k, inst);

    bool pending = false, unknown = false, stale = false, is_source = false;
    for (int i = 0; i < k->reaches.reads; i++) {
        pending |= sim_any_bit(k->pending, &k->reaches.read[i]);
        unknown |= sim_any_bit(k->unknown, &k->reaches.read[i]);
    }
    for (int i = 0; i < k->reaches.writes; i++) {
        pending |= sim_any_bit(k->pending, &k->reaches.write[i]);
        stale |= sim_any_bit(k->unknown, &k->reaches.write[i]);
        is_source |= sim_any_bit(k->sources, &k->reaches.write[i]);
    }
    if (is_source)
        check_sources(w, inst);
    if (pending)
        check_pending(w, inst);
    unknown |= !k->scc_known && (inst->op->flags & (SIM_READS_SCC | SIM_WRITES_SCC)) != 0;
    if ((unknown || stale) && sim_checks(w, SIM_CHECK_UNINITIALISED)) {
        sim_instruction room;
        sim_defined_before(w, sim_direct(w, inst, &room), !unknown);
    }
}

void sim_check_after(sim_wave *w, const sim_instruction *inst)
{
    sim_watch *k = w->watch;
    if (!k->m0_set)
        for (int i = 0; i < inst->write_count; i++) {
            const sim_span *s = &inst->write[i];
            k->m0_set |= s->kind == SIM_SCALAR && s->reg <= SIM_M0 && SIM_M0 < s->reg + s->count;
        }
}
