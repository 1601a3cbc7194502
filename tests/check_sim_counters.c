/* The report: counts, occupancy and the bottleneck of a few instructions, against numbers worked out by hand here. */
#include "counters.h"
#include "device.h"
#include "testing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct bench {
    sim_device    device;
    sim_group     group;
    sim_wave      wave;
    sim_counters *counters;
} bench;

static void bench_init(bench *b, const sim_launch_shape *launch)
{
    memset(b, 0, sizeof *b);
    b->device.arch = b->group.arch = launch->arch;
    b->device.results = sim_results_create(launch);
    b->counters = sim_counters_create(b->device.results);
    ck_assert_ptr_nonnull(b->counters);
    b->wave.group = &b->group;
    b->wave.lanes = launch->arch == SIM_GFX950 ? 64 : 32;
    b->wave.counters = b->counters;
    sim_set_exec(&b->wave, sim_all_lanes(&b->wave));
}

static void bench_free(bench *b)
{
    sim_counters_destroy(b->counters);
    sim_results_destroy(b->device.results);
}

static void count(bench *b, sim_instruction *inst, const char *text, int times)
{
    if (inst->op == NULL)
        ck_assert_msg(sim_parse(b->group.arch, text, inst), "%s: %s", text, sim_last_error());
    inst->text = text;
    for (int i = 0; i < times; i++)
        sim_count_instruction(&b->wave, inst);
}

/* The whole report; free it. */
static char *report(const bench *b, bool per_pc)
{
    char  *text = NULL;
    size_t size = 0;
    FILE  *to = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(to);
    sim_print_report(to, &b->device, per_pc);
    fclose(to);
    return text;
}

static void expect_words(const char *text, const char *words)
{
    ck_assert_msg(strstr(text, words) != NULL, "\"%s\" is not in:\n%s", words, text);
}

/* 512 workgroups on 256 CUs: the fullest has two. One MFMA of eight passes is 32 cycles; 300 a workgroup of four waves
 * on four SIMDs: 2 * 300 * 32 / 4 = 4800 cycles, 2 us at 2.4 GHz. */
START_TEST(matrix_bound)
{
    bench                  b;
    const sim_launch_shape launch = { "gemm", SIM_GFX950, 0, 512, 4, 128, 32768, false };
    bench_init(&b, &launch);
    for (int g = 0; g < 512; g++) {
        static sim_instruction mfma;
        count(&b, &mfma, "v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[8:15], v[16:23], v[0:3]", 300);
        sim_counters_end_group(b.counters);
    }
    char *text = report(&b, false);
    expect_words(text, "gemm on gfx950: 512 workgroups of 4 waves\n");
    expect_words(text, "instructions: 153600\n");
    expect_words(text, "matrix cycles: 4915200 (1228800 passes)");
    expect_words(text, "occupancy: 4 workgroups, 16 waves of a CU\n"); /* 512 / 128 registers: 4 waves of a SIMD */
    expect_words(text, "32768 bytes of LDS: 4 workgroups\n");          /* 163840 / (26 * 1280) */
    expect_words(text, "estimate, not a measurement: 2.00 us, bound by matrix unit\n");
    ck_assert_ptr_null(strstr(text, "only "));
    free(text);
    bench_free(&b);
}
END_TEST

/* Loads of 1 KiB read the same bytes. Two are in flight, a wait leaves one, and the third makes two again. */
START_TEST(bytes_are_counted_once_and_in_flight)
{
    bench                  b;
    const sim_launch_shape launch = { "copy", SIM_GFX950, 0x1000, 1, 1, 32, 0, true };
    bench_init(&b, &launch);
    sim_instruction load = { .op = NULL }, one = { .op = NULL }, none = { .op = NULL };
    load.pc = 0x1010;
    static const sim_opcode loads = { "global_load_dwordx4", SIM_ON_GFX950, SIM_LOAD, 1, 0, NULL, NULL };
    static const sim_opcode waits = { "s_waitcnt", SIM_ON_GFX950, SIM_WAIT, 0, 0, NULL, NULL };
    load.op = &loads;
    one.op = none.op = &waits;
    one.vmcnt = 1;
    none.vmcnt = -1; /* lgkmcnt only */
    for (int i = 0; i < 2; i++) {
        count(&b, &load, "global_load_dwordx4 v[0:3], v4, s[0:1]", 1);
        sim_count_global(&b.wave, &load, 1024, false);
        for (int lane = 0; lane < 64; lane++)
            sim_count_touch(&b.wave, 0x70000030 + 16 * (uint64_t)lane, 16); /* across lines of 64 bytes */
    }
    count(&b, &none, "s_waitcnt lgkmcnt(0)", 1);
    count(&b, &one, "s_waitcnt vmcnt(1)", 1);
    count(&b, &load, "global_load_dwordx4 v[0:3], v4, s[0:1]", 1);
    sim_count_global(&b.wave, &load, 1024, false);
    sim_counters_end_group(b.counters);
    char *text = report(&b, true);
    expect_words(text, "global memory: 3072 bytes read, 0 written; 1024 distinct bytes read, each 3.00 times\n");
    expect_words(text, "bytes in flight: at most 2048 of a wave, 2048 of a CU\n"); /* that has one wave */
    expect_words(text, "occupancy: 32 workgroups, 32 waves of a CU\n");
    expect_words(text, "  latency, by bytes in flight          2.25 us\n"); /* 3072 / 2048 of 1.5 us */
    expect_words(text, "2.25 us, bound by latency, by bytes in flight\n");
    expect_words(text,
                 "      10            3            0            0         3072            0  global_load_dwordx4");
    free(text);
    bench_free(&b);
}
END_TEST

/* wave32: a VALU instruction is one cycle, TRANS four; 64 + 4 * 16 = 128 cycles of one wave. */
START_TEST(valu_bound_of_gfx1250)
{
    bench                  b;
    const sim_launch_shape launch = { "exp", SIM_GFX1250, 0, 1, 1, 100, 0, false };
    bench_init(&b, &launch);
    static const sim_opcode valu = { "v_add_f32", SIM_ON_GFX1250, SIM_VALU, 1, 0, NULL, NULL };
    static const sim_opcode trans = { "v_exp_f32", SIM_ON_GFX1250, SIM_TRANS, 1, 0, NULL, NULL };
    sim_instruction         add = { .op = &valu }, exp = { .op = &trans };
    count(&b, &add, "v_add_f32_e32 v0, v1, v2", 64);
    count(&b, &exp, "v_exp_f32_e32 v0, v1", 16);
    char *text = report(&b, false);
    expect_words(text, "only 0 workgroups have ended: the counts are theirs\n");
    free(text);
    sim_counters_end_group(b.counters);
    text = report(&b, false);
    expect_words(text, "VALU cycles: 64, TRANS 64; matrix cycles: 0\n");
    expect_words(text, "100 vector registers: 9 waves of a SIMD, 36 workgroups\n"); /* 1024 / 112 */
    expect_words(text, "0.05 us, bound by VALU\n"); /* 128 / 2.4 GHz: one wave, on one SIMD */
    free(text);
    bench_free(&b);
}
END_TEST

START_TEST(nothing_counted)
{
    bench b;
    memset(&b, 0, sizeof b);
    char *text = report(&b, true);
    ck_assert_str_eq(text, "no dispatch has been counted\n");
    free(text);
}
END_TEST

static void fill(TCase *tcase)
{
    tcase_add_test(tcase, matrix_bound);
    tcase_add_test(tcase, bytes_are_counted_once_and_in_flight);
    tcase_add_test(tcase, valu_bound_of_gfx1250);
    tcase_add_test(tcase, nothing_counted);
}

int main(void)
{
    return testing_main("sim_counters", fill);
}
