/* Every check of the simulator: a short script that must be reported, its repaired twin that must not, and what is
 * easily taken for a mistake and is none.
 *
 * With an argument the program is a filter for tests/witness_hazards.py: `--states gfx950` reads lines "first ;
 * second" of assembly and prints the wait states that hazards.def wants between the two.
 */
#include "testing.h"

#include "check.h"
#include "device.h"
#include "sim.h"

#include <inttypes.h>
#include <unistd.h>

/* Workgroups that run a script
 * ----------------------------
 * A line is "text", which every wave of every workgroup executes in turn, or "G.W: text" for one wave. Barriers
 * block: a wave that waits must not come before the others have arrived.
 *
 * s[2:3] data (written), s[4:5] fresh (never written), s[6:7] counter; s8 = 0, s9 = 64, and so on known to s31.
 * v0 = 4 * lane, v1 = lane, v2 = 0; other VGPRs were never written. LDS: 4096 bytes.
 */
enum { GROUPS = 2, MAX_LINES = 64, LDS_BYTES = 4096, DATA_BYTES = 4096 };

typedef struct machine {
    sim_device     *device;
    sim_map        *map;
    sim_global_map *global_map;
    sim_kernel      kernel;
    sim_dispatch    dispatch;
    uint32_t        descriptor[16];
    sim_group       group[GROUPS];
    sim_wave       *wave[GROUPS];
    void           *data, *fresh, *counter;
    sim_instruction line[MAX_LINES];
    char           *text[MAX_LINES];
    int             lines;
} machine;

static void start_wave(machine *m, sim_group *g, sim_wave *w, int id)
{
    const bool is_950 = g->arch == SIM_GFX950;
    *w = (sim_wave){ .group = g, .id = id, .lanes = is_950 ? 64 : 32 };
    for (int i = 0; i < SIM_BARRIERS; i++)
        w->signalled[i] = 1;
    w->v = calloc((size_t)(is_950 ? SIM_VECTORS_GFX950 : SIM_VECTORS_GFX1250) * (size_t)w->lanes, 4);
    ck_assert_ptr_nonnull(w->v);
    for (int l = 0; l < w->lanes; l++) {
        w->v[l] = (uint32_t)(4 * l);
        w->v[w->lanes + l] = (uint32_t)l;
    }
    sim_set_exec(w, sim_all_lanes(w));
    sim_set_scalar64(w, 2, (uint64_t)(uintptr_t)m->data);
    sim_set_scalar64(w, 4, (uint64_t)(uintptr_t)m->fresh);
    sim_set_scalar64(w, 6, (uint64_t)(uintptr_t)m->counter);
    w->s[9] = 64;
    w->watch = sim_watch_create(w);
    ck_assert_ptr_nonnull(w->watch);
    sim_check_launched(w, 32, 3);
}

static void start_group(machine *m, sim_arch arch, int number, int waves)
{
    sim_group *g = &m->group[number];
    *g = (sim_group){ .device = m->device,
                      .dispatch = &m->dispatch,
                      .map = m->map,
                      .arch = arch,
                      .id = { (uint32_t)number, 0, 0 },
                      .lds = calloc(1, LDS_BYTES),
                      .lds_bytes = LDS_BYTES,
                      .wave_count = waves,
                      .global_map = m->global_map,
                      .checks = SIM_CHECK_ALL };
    m->wave[number] = calloc((size_t)waves, sizeof *m->wave[number]);
    g->wave = m->wave[number];
    g->barrier[0].members = (uint32_t)waves;
    g->lds_map = sim_lds_map_create(g);
    ck_assert_ptr_nonnull(g->lds_map);
    for (int i = 0; i < waves; i++)
        start_wave(m, g, &g->wave[i], i);
}

/* `vectors`, `accs`: registers that the descriptor asks for. */
static machine *machine_create(sim_arch arch, int waves, uint32_t vectors, uint32_t accs, bool late)
{
    machine          *m = calloc(1, sizeof *m);
    const sim_options options = { .checks = SIM_CHECK_ALL };
    m->device = sim_device_create(arch, &options);
    ck_assert_msg(m->device != NULL, "%s", sim_last_error());
    m->data = sim_allocate(m->device, DATA_BYTES, "data");
    m->fresh = sim_allocate(m->device, DATA_BYTES, "fresh");
    m->counter = sim_allocate(m->device, 64, "counter");
    memset(m->data, 0, DATA_BYTES);
    memset(m->counter, 0, 64);
    sim_mark_written(m->device, m->data, DATA_BYTES);
    sim_mark_written(m->device, m->counter, 64);
    m->map = sim_map_create(m->device);
    m->global_map = sim_global_map_create(GROUPS);
    m->descriptor[12] = arch == SIM_GFX950 ? (vectors + accs) / 8 - 1 : vectors / 16 - 1;
    m->descriptor[12] |= 13 << 6; /* 112 SGPRs */
    m->descriptor[11] = arch == SIM_GFX950 ? vectors / 4 - 1 : 0;
    m->kernel = (sim_kernel){ .name = "script", .descriptor = (uint64_t)(uintptr_t)m->descriptor };
    m->dispatch = (sim_dispatch){ .kernel = &m->kernel,
                                  .grid = { (uint32_t)(GROUPS * waves * 64), 1, 1 },
                                  .group = { (uint32_t)(waves * 64), 1, 1 } };
    for (int g = 0; g < GROUPS; g++) {
        start_group(m, arch, g, waves);
        m->group[g].late = late;
    }
    return m;
}

static void machine_destroy(machine *m)
{
    for (int g = 0; g < GROUPS; g++) {
        for (int i = 0; i < m->group[g].wave_count; i++) {
            sim_wave *w = &m->group[g].wave[i];
            sim_drain(w);
            sim_watch_destroy(w->watch);
            free(w->v);
        }
        sim_check_group_end(&m->group[g]);
        sim_lds_map_destroy(m->group[g].lds_map);
        free(m->group[g].lds);
        free(m->wave[g]);
    }
    sim_global_map_destroy(m->global_map);
    sim_map_destroy(m->map);
    sim_device_destroy(m->device);
    for (int i = 0; i < m->lines; i++)
        free(m->text[i]);
    free(m);
}

static void execute(sim_wave *w, const sim_instruction *inst)
{
    ck_assert_msg(w->status == SIM_RUNNING, "wave %d cannot execute %s", w->id, inst->text);
    w->executed++;
    sim_check_before(w, inst);
    sim_hazards_before(w, inst);
    inst->op->run(w, inst);
    sim_hazards_after(w, inst);
    sim_check_after(w, inst);
    ck_assert_msg(w->status != SIM_FAILED, "%s: %s", inst->text, sim_last_error());
}

static void run_line(machine *m, const char *line, size_t length)
{
    int group = -1, wave = -1, skip = 0;
    if (length > 5 && line[1] == '.' && line[3] == ':') {
        group = line[0] - '0';
        wave = line[2] - '0';
        skip = 5;
    }
    ck_assert_int_lt(m->lines, MAX_LINES);
    sim_instruction *inst = &m->line[m->lines];
    m->text[m->lines] = strndup(line + skip, length - (size_t)skip);
    ck_assert_msg(sim_parse(m->group[0].arch, m->text[m->lines], inst), "%s", sim_last_error());
    inst->pc = (uint64_t)(4 * m->lines++);
    for (int g = 0; g < GROUPS; g++)
        for (int i = 0; i < m->group[g].wave_count; i++)
            if ((group < 0 || group == g) && (wave < 0 || wave == i))
                execute(&m->group[g].wave[i], inst);
}

static void run_script(machine *m, const char *script)
{
    while (*script != '\0') {
        const size_t length = strcspn(script, "\n");
        if (length > 0)
            run_line(m, script, length);
        script += length + (script[length] == '\n');
    }
}

/* Findings
 * --------
 */
static const sim_finding *find(const machine *m, sim_check check)
{
    for (uint32_t i = 0; i < sim_finding_count(m->device); i++)
        if (sim_finding_at(m->device, i)->check == check)
            return sim_finding_at(m->device, i);
    return NULL;
}

static void all_findings(const machine *m, char *to, size_t size)
{
    to[0] = '\0';
    for (uint32_t i = 0; i < sim_finding_count(m->device); i++) {
        const sim_finding *f = sim_finding_at(m->device, i);
        const size_t       used = strlen(to);
        snprintf(to + used, size - used, "\n  %s at +0x%" PRIx64 " %s: %s", sim_check_name(f->check), f->pc, f->text,
                 f->detail);
    }
}

typedef struct pair {
    sim_arch    arch;
    int         waves;
    sim_check   check;
    const char *bad, *good;
    const char *words; /* in the finding */
} pair;

static void check_bad(const pair *p, bool late)
{
    char     words[4096];
    machine *m = machine_create(p->arch, p->waves, 256, p->arch == SIM_GFX950 ? 256 : 0, late);
    run_script(m, p->bad);
    for (int g = 0; g < GROUPS; g++)
        for (int i = 0; i < m->group[g].wave_count; i++)
            sim_drain(&m->group[g].wave[i]);
    all_findings(m, words, sizeof words);
    const sim_finding *f = find(m, p->check);
    ck_assert_msg(f != NULL, "not reported (%s)%s:\n%s%s", sim_check_name(p->check), late ? ", late" : "", p->bad,
                  words);
    ck_assert_msg(p->words == NULL || strstr(f->detail, p->words) != NULL, "\"%s\" does not hold \"%s\":\n%s",
                  f->detail, p->words, p->bad);
    machine_destroy(m);
}

static void check_good(const pair *p, bool late)
{
    char     words[4096];
    machine *m = machine_create(p->arch, p->waves, 256, p->arch == SIM_GFX950 ? 256 : 0, late);
    run_script(m, p->good);
    for (int g = 0; g < GROUPS; g++)
        for (int i = 0; i < m->group[g].wave_count; i++)
            sim_drain(&m->group[g].wave[i]);
    all_findings(m, words, sizeof words);
    ck_assert_msg(sim_finding_count(m->device) == 0, "a false alarm%s:\n%s%s", late ? ", late" : "", p->good, words);
    machine_destroy(m);
}

/* Scripts: bad, good. A NULL: there is no such twin. */
#define LINES(...) __VA_ARGS__
static const pair pairs[] = {
#define PAIR(arch, waves, check, bad, good, words) { SIM_##arch, waves, check, bad, good, words },
#include "check_sim_checks.def"
#undef PAIR
};

START_TEST(bad_is_reported)
{
    if (pairs[_i].bad == NULL)
        return;
    check_bad(&pairs[_i], false);
    check_bad(&pairs[_i], true);
}
END_TEST

START_TEST(good_is_not)
{
    if (pairs[_i].good == NULL)
        return;
    check_good(&pairs[_i], false);
    check_good(&pairs[_i], true);
}
END_TEST

START_TEST(every_check_has_a_script)
{
    /* Barriers and deadlocks are execute.c's, advice is in no way a mistake. */
    const uint32_t elsewhere = 1u << SIM_CHECK_BARRIER | 1u << SIM_CHECK_DEADLOCK | 1u << SIM_CHECK_REGISTER_LIMIT;
    uint32_t       seen = elsewhere;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        if (pairs[i].bad != NULL)
            seen |= 1u << pairs[i].check;
    ck_assert_uint_eq(seen, SIM_CHECK_ALL);
}
END_TEST

/* Registers beyond the descriptor's
 * ---------------------------------
 */
static uint32_t findings_with(sim_arch arch, uint32_t vectors, uint32_t accs, const char *script, sim_check check)
{
    machine *m = machine_create(arch, 1, vectors, accs, false);
    run_script(m, script);
    uint32_t found = 0;
    for (uint32_t i = 0; i < sim_finding_count(m->device); i++)
        found += sim_finding_at(m->device, i)->check == check;
    machine_destroy(m);
    return found;
}

START_TEST(register_limit)
{
    const sim_check check = SIM_CHECK_REGISTER_LIMIT;
    ck_assert_uint_eq(findings_with(SIM_GFX950, 16, 0, "v_mov_b32_e32 v15, v0", check), 0);
    ck_assert_uint_eq(findings_with(SIM_GFX950, 16, 0, "v_mov_b32_e32 v16, v0", check), 1);
    ck_assert_uint_eq(findings_with(SIM_GFX950, 16, 0, "v_accvgpr_write_b32 a0, v0", check), 1);
    ck_assert_uint_eq(findings_with(SIM_GFX950, 16, 16, "v_accvgpr_write_b32 a15, v0", check), 0);
    ck_assert_uint_eq(findings_with(SIM_GFX950, 16, 16, "v_accvgpr_write_b32 a16, v0", check), 1);
    ck_assert_uint_eq(findings_with(SIM_GFX1250, 32, 0, "v_mov_b32_e32 v31, v0", check), 0);
    ck_assert_uint_eq(findings_with(SIM_GFX1250, 32, 0, "v_mov_b32_e32 v32, v0", check), 1);
    /* With s_set_vgpr_msb the number is 256 more. */
    ck_assert_uint_eq(findings_with(SIM_GFX1250, 288, 0, "s_set_vgpr_msb 0x40\nv_mov_b32_e32 v31, v0", check), 0);
    ck_assert_uint_eq(findings_with(SIM_GFX1250, 288, 0, "s_set_vgpr_msb 0x40\nv_mov_b32_e32 v32, v0", check), 1);
}
END_TEST

/* What the report says
 * --------------------
 */
START_TEST(a_missing_wait_names_both_sides)
{
    machine *m = machine_create(SIM_GFX950, 1, 256, 256, false);
    run_script(m, "global_load_dword v4, v0, s[2:3]\n"
                  "global_load_dword v5, v0, s[2:3] offset:256\n"
                  "v_mov_b32_e32 v6, v4");
    const sim_finding *f = find(m, SIM_CHECK_MISSING_WAIT);
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(f->pc, 8);
    ck_assert_str_eq(f->text, "v_mov_b32_e32 v6, v4");
    ck_assert_ptr_nonnull(strstr(f->detail, "reads v4"));
    ck_assert_ptr_nonnull(strstr(f->detail, "global_load_dword v4, v0, s[2:3]"));
    ck_assert_ptr_nonnull(strstr(f->detail, "+0x0"));
    ck_assert_ptr_nonnull(strstr(f->detail, "s_waitcnt vmcnt(1)"));
    machine_destroy(m);
}
END_TEST

START_TEST(an_lds_race_names_both_sides)
{
    machine *m = machine_create(SIM_GFX950, 2, 256, 256, false);
    run_script(m, "0.0: ds_write_b32 v0, v1\n"
                  "0.0: s_waitcnt lgkmcnt(0)\n"
                  "0.1: ds_read_b32 v4, v0 offset:4");
    const sim_finding *f = find(m, SIM_CHECK_LDS_RACE);
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(f->wave, 1);
    ck_assert_int_eq(f->lane, 0);
    ck_assert_uint_eq(f->pc, 8);
    ck_assert_ptr_nonnull(strstr(f->detail, "LDS byte 4,"));
    ck_assert_ptr_nonnull(strstr(f->detail, "\"ds_write_b32 v0, v1\" at +0x0 of wave 0"));
    machine_destroy(m);
}
END_TEST

/* The filter
 * ----------
 */
static int print_states(const char *name)
{
    char     line[512];
    sim_arch arch;
    if (!sim_arch_of_name(name, &arch))
        return 2;
    while (fgets(line, sizeof line, stdin) != NULL) {
        sim_instruction first, second;
        line[strcspn(line, "\n")] = '\0';
        char *semicolon = strstr(line, " ; ");
        if (semicolon == NULL)
            return 2;
        *semicolon = '\0';
        if (!sim_parse(arch, line, &first) || !sim_parse(arch, semicolon + 3, &second))
            printf("? %s\n", sim_last_error());
        else
            printf("%d\n", sim_hazard_states(arch, &first, &second));
    }
    return 0;
}

static void fill(TCase *tc)
{
    const int count = (int)(sizeof pairs / sizeof pairs[0]);
    tcase_add_loop_test(tc, bad_is_reported, 0, count);
    tcase_add_loop_test(tc, good_is_not, 0, count);
    tcase_add_test(tc, every_check_has_a_script);
    tcase_add_test(tc, register_limit);
    tcase_add_test(tc, a_missing_wait_names_both_sides);
    tcase_add_test(tc, an_lds_race_names_both_sides);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--states") == 0)
        return print_states(argv[2]);
    return testing_main("sim_checks", fill);
}
