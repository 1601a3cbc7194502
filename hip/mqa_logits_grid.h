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

/* Where the part of workgroup `group` of `groups` <= 65536 begins on a line of that length, < 2^48. The machine divides
 * 64 bits by some hundred instructions; so three digits of 16 bits. */
GRID_FN int64_t mqa_logits_grid_cut(int64_t line, int32_t group, int32_t groups)
{
    const uint32_t by = (uint32_t)groups, high = (uint32_t)(line >> 32), middle = (uint32_t)line >> 16;
    const uint32_t two = high % by << 16 | middle, three = two % by << 16 | ((uint32_t)line & 0xFFFF);
    const uint64_t whole = (uint64_t)(high / by) << 32 | (uint64_t)(two / by) << 16 | three / by;
    return (int64_t)(whole * (uint32_t)group + three % by * (uint32_t)group / by);
}

/* Few blocks
 * ----------
 * Where a workgroup gets a few tiles, what counts is that none gets one more than the others, and none the ends of two
 * blocks. What a block sees is cut into parts of its own then, so that none works longer than a limit. Tiles to fill are
 * a line of their own, for the workgroups that are left; or each part fills its share of its block's.
 */
enum {
    MQA_LOGITS_GRID_FEW = 64,   /* blocks */
    MQA_LOGITS_GRID_LIMITS = 8, /* that are tried, both ways */
};

/* What a limit means for a block: parts, tiles on the line to be filled, and how long the longest part works. */
typedef struct mqa_logits_grid_parts {
    int32_t count, line, longest;
} mqa_logits_grid_parts;

GRID_FN int32_t mqa_logits_grid_seen(mqa_logits_grid_block b)
{
    return b.lo < b.hi ? b.hi - b.lo : 0;
}

/* Without its beginning. */
GRID_FN int64_t mqa_logits_grid_work(const mqa_logits_grid *g, mqa_logits_grid_block b)
{
    const int32_t seen = mqa_logits_grid_seen(b);
    return (int64_t)mqa_logits_grid_tile(g, b.live) * seen + (int64_t)mqa_logits_grid_fill(g) * (g->tiles - seen);
}

/* Costs of at most 64 blocks, each of whose rows lie within 4 GiB, have 31 bits. */
GRID_FN int32_t mqa_logits_grid_divide(int64_t a, int64_t b)
{
    return (int32_t)((uint32_t)a / (uint32_t)b);
}

/* Limit i of the work of a part, whole tiles of that cost, for so much work in all. The first is the share of each, and
 * may be enough since who fills has the time in which others begin, too; each of the others is more than the one before. */
GRID_FN int32_t mqa_logits_grid_limit(int64_t work, int32_t tile, int32_t blocks, int32_t groups, int32_t i)
{
    const int32_t parts = groups - (i > 0 ? 2 * blocks * (i - 1) / MQA_LOGITS_GRID_LIMITS : 0);
    const int64_t share = parts > 0 ? mqa_logits_grid_divide(work + parts - 1, parts) : work;
    const int32_t most = 1 << 30, whole = (int32_t)(share < most ? share : most);
    if (i == 0)
        return whole > tile ? whole / tile * tile : tile;
    return (whole + tile - 1) / tile * tile;
}

GRID_FN mqa_logits_grid_parts mqa_logits_grid_cuts(const mqa_logits_grid *g, mqa_logits_grid_block b, int32_t limit,
                                                   int32_t alone)
{
    const int32_t seen = mqa_logits_grid_seen(b), fill = mqa_logits_grid_fill(g);
    const int32_t tile = mqa_logits_grid_tile(g, b.live), filled = fill > 0 ? g->tiles - seen : 0;
    const int32_t tiles = limit > tile ? limit / tile : 1, count = (seen + tiles - 1) / tiles;
    if (count == 0)
        return (mqa_logits_grid_parts){ 0, filled, 0 };
    const int32_t longest = (seen + count - 1) / count * tile;
    if (alone)
        return (mqa_logits_grid_parts){ count, filled, longest };
    return (mqa_logits_grid_parts){ count, 0, longest + (filled + count - 1) / count * fill };
}

/* How long the longest workgroup works, its beginning left out, if blocks have so many parts, of which the longest works
 * so long, and so many tiles on the line in all; negative: there are not so many workgroups. */
GRID_FN int64_t mqa_logits_grid_longest(const mqa_logits_grid *g, int64_t count, int64_t longest, int64_t line,
                                        int32_t groups)
{
    const int64_t left = groups - count;
    if (left < 0 || (line > 0 && left == 0))
        return -1;
    const int64_t filling =
        line > 0
            ? (int64_t)mqa_logits_grid_divide(line + left - 1, left) * mqa_logits_grid_fill(g) - MQA_LOGITS_GRID_BEGIN
            : 0;
    return longest > filling ? longest : filling;
}

/* Where part `part` of `parts` <= 65536 of so many tiles begins. */
GRID_FN int32_t mqa_logits_grid_share(int32_t count, int32_t part, int32_t parts)
{
    const uint32_t whole = (uint32_t)count / (uint32_t)parts, rest = (uint32_t)count % (uint32_t)parts;
    return (int32_t)(whole * (uint32_t)part + rest * (uint32_t)part / (uint32_t)parts);
}

/* Whether parts of blocks, the longest of which works so long, are better than parts of the line. */
GRID_FN int32_t mqa_logits_grid_few(int64_t longest, int64_t line, int32_t groups)
{
    return longest >= 0 && longest <= mqa_logits_grid_divide(line, groups) + MQA_LOGITS_GRID_BEGIN / 2;
}

/* Of `m` rows that see all tiles, on the fullest of `units` CUs. */
GRID_FN int64_t mqa_logits_grid_whole(const mqa_logits_grid *g, int64_t m, int64_t units)
{
    const int64_t blocks = (m + g->rows - 1) / g->rows, tiles = (blocks * g->tiles + units - 1) / units;
    return tiles * mqa_logits_grid_tile(g, (int32_t)(m < g->rows ? m : g->rows));
}

#endif
