/* One wave of the simulator with registers and nothing else: runs lines of assembly for the tests of instructions. */
#ifndef ETALON_SIM_FIXTURE_H
#define ETALON_SIM_FIXTURE_H

#include "testing.h"

#include "machine.h"

#include <stdarg.h>
#include <string.h>

typedef struct sim_fixture {
    sim_group group;
    sim_wave  wave;
} sim_fixture;

/* MODE as clang's kernels start: nearest even, denormals kept; gfx950 also DX10_CLAMP and IEEE. */
enum { FIXTURE_MODE_GFX950 = 0x3F0, FIXTURE_MODE_GFX1250 = 0x0F0 };

static inline sim_fixture *sim_fixture_create(sim_arch arch)
{
    sim_fixture *f = calloc(1, sizeof *f);
    ck_assert_ptr_nonnull(f);
    f->group.arch = arch;
    f->group.wave = &f->wave;
    f->group.wave_count = 1;
    sim_wave *w = &f->wave;
    w->group = &f->group;
    w->lanes = arch == SIM_GFX950 ? 64 : 32;
    w->mode = arch == SIM_GFX950 ? FIXTURE_MODE_GFX950 : FIXTURE_MODE_GFX1250;
    w->v = calloc(SIM_VECTORS_GFX1250, (size_t)w->lanes * sizeof *w->v);
    ck_assert_ptr_nonnull(w->v);
    sim_set_exec(w, UINT64_MAX);
    return f;
}

static inline void sim_fixture_destroy(sim_fixture *f)
{
    free(f->wave.v);
    free(f);
}

static inline uint32_t *sim_fixture_vector(sim_fixture *f, int reg)
{
    return f->wave.v + (size_t)reg * (size_t)f->wave.lanes;
}

/* All lanes of a vector register. */
static inline void sim_fixture_fill(sim_fixture *f, int reg, uint32_t x)
{
    for (int l = 0; l < f->wave.lanes; l++)
        sim_fixture_vector(f, reg)[l] = x;
}

/* Runs one line; the program counter stays unless the line moves it. False: it stopped, see sim_last_error(). */
static inline bool sim_fixture_try(sim_fixture *f, const char *text)
{
    sim_instruction inst;
    ck_assert_msg(sim_parse(f->group.arch, text, &inst), "%s: %s", text, sim_last_error());
    f->wave.status = SIM_RUNNING;
    inst.op->run(&f->wave, &inst);
    return f->wave.status != SIM_FAILED;
}

static inline void sim_fixture_run(sim_fixture *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
static inline void sim_fixture_run(sim_fixture *f, const char *format, ...)
{
    char    text[256];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    ck_assert_msg(sim_fixture_try(f, text), "%s: %s", text, sim_last_error());
}

/* A generator for test data: xorshift, one state a test. */
static inline uint64_t sim_fixture_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

#endif
