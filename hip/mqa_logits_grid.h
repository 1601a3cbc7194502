/* How the workgroups of mqa_logits' gfx950 kernels share a call: a model of its cost, for the kernels themselves and for
 * who wants to know. Pure.
 *
 * Rows come in blocks and keys in tiles; a block needs the tiles from `lo` on and before `hi`, which any of its rows
 * sees, and fills the others with -inf if the output is to be clean. Blocks one after the other, and in each its tiles
 * from left to right, make a line whose length is the cost of the call. Every workgroup takes the same length of it, cut
 * at tiles. So no layout of windows needs a case of its own: triangles of causal masks, several requests, windows that
 * begin anywhere, rows without keys.
 *
 * Each workgroup works the line out for itself: windows may lie in memory that the host cannot read, and a kernel that
 * only plans would take longer than the M loads that it saves.
 */
#ifndef ETALON_MQA_LOGITS_GRID_H
#define ETALON_MQA_LOGITS_GRID_H

#include <stdint.h>

#if defined(__HIP__)
#define GRID_FN static inline __attribute__((device, always_inline))
#else
#define GRID_FN static inline
#endif

enum {
    MQA_LOGITS_GRID_KEYS = 64, /* of a tile */
    /* Costs, in tenths of what a tile of 64 keys takes that all waves multiply. */
    MQA_LOGITS_GRID_TILE = 2,  /* of a tile: its way to LDS, barriers */
    MQA_LOGITS_GRID_LAYER = 4, /* of a tile, for each wave of the fullest SIMD that has rows with keys */
    MQA_LOGITS_GRID_FILL = 3,  /* of a tile of -inf: 8 KiB at a CU's share of 8 TB/s */
    MQA_LOGITS_GRID_BEGIN =
        20, /* of a block: Q, and the first keys, come over a latency of 1.5 us; a tile takes 0.9 us */
    MQA_LOGITS_GRID_SIMDS = 4,
};

typedef struct mqa_logits_grid {
    int32_t rows, tiles; /* rows of a block; tiles that cover N */
    int32_t wave_rows;   /* rows of a wave */
    int32_t clean;
} mqa_logits_grid;

typedef struct mqa_logits_grid_block {
    int32_t lo, hi; /* tiles that a row sees; lo >= hi: none */
    int32_t live;   /* rows with keys */
} mqa_logits_grid_block;

/* Of a tile that is multiplied. Rows with keys lie in the first waves, which go to SIMDs in turn. */
GRID_FN int32_t mqa_logits_grid_tile(const mqa_logits_grid *g, int32_t live)
{
    const int32_t waves = (live + g->wave_rows - 1) / g->wave_rows;
    return MQA_LOGITS_GRID_TILE + (waves + MQA_LOGITS_GRID_SIMDS - 1) / MQA_LOGITS_GRID_SIMDS * MQA_LOGITS_GRID_LAYER;
}

GRID_FN int32_t mqa_logits_grid_fill(const mqa_logits_grid *g)
{
    return g->clean ? (MQA_LOGITS_GRID_FILL * g->rows + 31) / 32 : 0;
}

/* Of tiles [first, last) of a block. */
GRID_FN int64_t mqa_logits_grid_span(const mqa_logits_grid *g, mqa_logits_grid_block b, int32_t first, int32_t last)
{
    const int32_t from = first > b.lo ? first : b.lo, to = last < b.hi ? last : b.hi;
    const int32_t seen = from < to ? to - from : 0;
    return (int64_t)mqa_logits_grid_tile(g, b.live) * seen + (seen > 0 ? MQA_LOGITS_GRID_BEGIN : 0) +
           (int64_t)mqa_logits_grid_fill(g) * (last - first - seen);
}

GRID_FN int64_t mqa_logits_grid_cost(const mqa_logits_grid *g, mqa_logits_grid_block b)
{
    return mqa_logits_grid_span(g, b, 0, g->tiles);
}

GRID_FN int32_t mqa_logits_grid_up(int64_t a, int32_t b)
{
    return b > 0 && a > 0 ? (int32_t)((uint32_t)(a + b - 1) / (uint32_t)b) : 0;
}

/* The tile of a block that a workgroup begins with whose part of the line begins `at` behind the block's beginning. */
GRID_FN int32_t mqa_logits_grid_find(const mqa_logits_grid *g, mqa_logits_grid_block b, int64_t at)
{
    const int32_t fill = mqa_logits_grid_fill(g), tile = mqa_logits_grid_tile(g, b.live);
    if (b.lo >= b.hi)
        return mqa_logits_grid_up(at, fill);
    const int64_t before = (int64_t)fill * b.lo, seen = MQA_LOGITS_GRID_BEGIN + (int64_t)tile * (b.hi - b.lo);
    if (at <= before)
        return mqa_logits_grid_up(at, fill);
    if (at <= before + seen)
        return b.lo + mqa_logits_grid_up(at - before - MQA_LOGITS_GRID_BEGIN, tile);
    return b.hi + mqa_logits_grid_up(at - before - seen, fill);
}

/* Where the part of workgroup `group` of `groups` begins on a line of that length. */
GRID_FN int64_t mqa_logits_grid_cut(int64_t line, int32_t group, int32_t groups)
{
    const uint64_t whole = (uint64_t)line / (uint32_t)groups, rest = (uint64_t)line % (uint32_t)groups;
    return (int64_t)(whole * (uint32_t)group + rest * (uint32_t)group / (uint32_t)groups);
}

/* Of `m` rows that see all tiles, on the fullest of `units` CUs. */
GRID_FN int64_t mqa_logits_grid_whole(const mqa_logits_grid *g, int64_t m, int64_t units)
{
    const int64_t blocks = (m + g->rows - 1) / g->rows, tiles = (blocks * g->tiles + units - 1) / units;
    return tiles * mqa_logits_grid_tile(g, (int32_t)(m < g->rows ? m : g->rows));
}

#endif
