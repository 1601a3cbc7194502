/* logits[m, n] = kv_scale[n] * sum_h weights[m, h] * relu(q[m, h, :] . k[n, :]), 32 or 64 heads of 128 dims, on gfx950.
 *
 * A workgroup holds a block of query rows in registers, each wave the 128 heads of its own rows and their weights. Keys
 * come in tiles of 64, each once for the block: copied to LDS while four tiles before it are multiplied, read from
 * there by every wave.
 *
 *   S[h, n] = q[m, h, :] . k[n, :]        v_mfma_f32_32x32x64_f8f6f4 twice, for 32 heads and 32 keys: a step
 *   s[n]    = sum_h w[m, h] * relu(S)     16 v_maximum3 and 16 v_fma of a lane, while the next step is multiplied
 *   logits  = kv_scale[n] * s[n]          halves of a wave have half of the heads each: one swap adds up two rows
 *
 * Lane l has key l % 32 of half a tile, and of its row 32 bytes at 64 j + 32 (l / 32) for product j: A and B name k
 * alike, so that the order in which the machine counts it does not matter. 16-byte chunk c of key n lies in LDS at chunk
 * c ^ (n / 2 % 8), by a permuted source of the copy: the 16 lanes that ds_read_b128 serves together then use all banks.
 *
 * vmcnt counts copies to LDS and stores of logits alike, in order. The copies are therefore invisible to the compiler,
 * whose waits would let none of them stay in flight, and waited for by tile_wait(), which knows how many stores stand
 * between.
 *
 * Half a tile that all rows of a wave see is stored as it is; one that none sees is skipped; all others are masked.
 *
 * Budget: 256 VGPRs, two waves a SIMD; LDS: five tiles of 8 KiB and their scales, and the windows of all blocks.
 * Source: CDNA4 ISA 7.1.4 (layouts), 9.1.9 (copies to LDS); [DSA] eq. 1
 */
#ifndef ETALON_MQA_LOGITS_DEVICE_GFX950_H
#define ETALON_MQA_LOGITS_DEVICE_GFX950_H

#include "device.h"

#include "mqa_logits_gfx950.h"
#include "mqa_logits_grid.h"

#define LDS __attribute__((address_space(3)))
#define CONSTANT __attribute__((address_space(4)))
#define METHOD inline __attribute__((device, always_inline))

typedef int   int8v __attribute__((ext_vector_type(8)));
typedef float float16v __attribute__((ext_vector_type(16)));
typedef int   int8u __attribute__((ext_vector_type(8), aligned(4)));
typedef float float4u __attribute__((ext_vector_type(4), aligned(4)));

enum {
    TILE = MQA_LOGITS_GRID_KEYS,
    HALF = 32,
    DIM = MQA_LOGITS_GFX950_DIM,
    SLOTS = 5, /* tiles in LDS: one that is read, four that are on their way */
    TILE_BYTES = TILE * DIM,
    SCALE_BYTES = TILE * 4,
    STEPS = 4, /* of half a tile: 32 heads each */
};

#define NEGATIVE_INFINITY device_float(0xFF800000u)

DEVICE int32_t uniform(int32_t x)
{
    return __builtin_amdgcn_readfirstlane(x);
}

DEVICE uint64_t uniform(uint64_t x)
{
    return (uint64_t)(uint32_t)uniform((int32_t)(x >> 32)) << 32 | (uint32_t)uniform((int32_t)x);
}

template <int N> DEVICE void wait_vmcnt()
{
    __asm__ volatile("s_waitcnt vmcnt(%0)" : : "n"(N) : "memory");
}

/* The compiler's own loads, and its reads of LDS, which it knows to be complete then. */
DEVICE void wait_loads()
{
    __builtin_amdgcn_s_waitcnt(0x0F70);
}

DEVICE void wait_lgkmcnt()
{
    __builtin_amdgcn_s_waitcnt(0xC07F);
}

/* Copies to LDS
 * -------------
 * One instruction takes 16 bytes of each lane's address to M0 + 16 lane, or 4 to M0 + 4 lane. An instruction must stand
 * between one that writes M0 and one that reads it; here always one that is needed anyway, or does nothing.
 */
template <int COPIES> struct copies {
    uint32_t keys_from[COPIES], scales_from; /* what a lane takes, behind the tile's first key and scale */
    uint64_t keys, scales;                   /* of the tile that is copied next */
    uint32_t keys_to, scales_to;             /* where this wave's part of slot 0 lies */
};

template <int LANES> DEVICE void copy(const copies<1> &c, const uint32_t from[1], uint32_t scales_from, uint32_t slot)
{
    uint64_t all;
    __asm__ volatile("s_mov_b32 m0, %1\n\t"
                     "s_mov_b64 %0, exec\n\t"
                     "global_load_lds_dwordx4 %3, %5\n\t"
                     "s_mov_b32 m0, %2\n\t"
                     "s_mov_b64 exec, %7\n\t"
                     "global_load_lds_dword %4, %6\n\t"
                     "s_mov_b64 exec, %0"
                     : "=&s"(all)
                     : "s"(c.keys_to + slot * TILE_BYTES), "s"(c.scales_to + slot * SCALE_BYTES), "v"(from[0]),
                       "v"(scales_from), "s"(c.keys), "s"(c.scales), "n"((1 << LANES) - 1)
                     : "memory");
}

template <int LANES> DEVICE void copy(const copies<2> &c, const uint32_t from[2], uint32_t scales_from, uint32_t slot)
{
    uint64_t all;
    __asm__ volatile("s_mov_b32 m0, %1\n\t"
                     "s_mov_b64 %0, exec\n\t"
                     "global_load_lds_dwordx4 %4, %7\n\t"
                     "s_mov_b32 m0, %2\n\t"
                     "s_mov_b64 %0, exec\n\t"
                     "global_load_lds_dwordx4 %5, %7\n\t"
                     "s_mov_b32 m0, %3\n\t"
                     "s_mov_b64 exec, %9\n\t"
                     "global_load_lds_dword %6, %8\n\t"
                     "s_mov_b64 exec, %0"
                     : "=&s"(all)
                     : "s"(c.keys_to + slot * TILE_BYTES), "s"(c.keys_to + slot * TILE_BYTES + 1024),
                       "s"(c.scales_to + slot * SCALE_BYTES), "v"(from[0]), "v"(from[1]), "v"(scales_from), "s"(c.keys),
                       "s"(c.scales), "n"((1 << LANES) - 1)
                     : "memory");
}

/* The kernel
 * ----------
 */
template <int HEADS, int WAVES, int BLOCKS> struct mqa_logits {
    enum {
        THREADS = 64 * WAVES,
        ROW_STEPS = HEADS / 32,            /* of a row */
        ROWS = STEPS / ROW_STEPS,          /* of a wave */
        PAIRS = ROWS / 2,                  /* of them, which one store takes */
        BLOCK = ROWS * WAVES,              /* rows */
        COPIES = 8 / WAVES,                /* of 8 keys, for a tile, by each wave */
        SCALES = TILE / WAVES,             /* which a wave copies */
        TILE_COPIES = COPIES + 1,          /* that vmcnt counts */
        TILE_STORES = 2 * PAIRS,           /* the same */
        WAYS = 2 * MQA_LOGITS_GRID_LIMITS, /* to cut few blocks */
    };
    static_assert(ROWS * HEADS == MQA_LOGITS_GFX950_WAVE_HEADS, "a wave holds so many");

    struct shared {
        uint8_t keys[SLOTS * TILE_BYTES], scales[SLOTS * SCALE_BYTES];
        int32_t lo[BLOCKS], hi[BLOCKS], live[BLOCKS];
        int64_t line[WAVES];
        int32_t cut[4];
        int32_t limit[WAYS], count[WAYS], filled[WAYS];
        int64_t longest[WAYS];
    };

    /* What a wave holds of its rows. */
    struct rows {
        int8v    q[STEPS][2];
        float    w[STEPS][16];
        int32_t  first[PAIRS], last[PAIRS], end[PAIRS]; /* the lane's row: keys that it sees; columns that it has */
        uint32_t at[PAIRS];                             /* where its column of half a tile lies, behind the block's */
        int32_t  all_first, all_last;                   /* keys that all rows see */
        int32_t  any_first, any_last;                   /* that one sees, or more */
    };

    /* Tiles from one place to another, line by line. */
    struct part {
        int32_t block, tile, last_block, last_tile;
        bool    fills; /* what no row sees, too */
    };

    struct keys {
        int8v k[2];
        float scale;
    };

    LDS shared     &s;
    mqa_logits_grid grid;
    int32_t         wave;

    /* Worked out anew, so that what follows from it need not stay in registers. */
    METHOD static int32_t lane_now()
    {
        return device_opaque((int32_t)__builtin_amdgcn_workitem_id_x()) & 63;
    }

    /* Loaded anew where it is needed: there are more arguments than scalar registers to spare. */
    METHOD static const CONSTANT mqa_logits_gfx950 &args()
    {
        const CONSTANT void *at = (const CONSTANT void *)__builtin_amdgcn_kernarg_segment_ptr();
        __asm__ volatile("" : "+s"(at));
        return *(const CONSTANT mqa_logits_gfx950 *)at;
    }

    /* Windows
     * -------
     */
    METHOD static int32_t clamp(int64_t x, int32_t low, int32_t high)
    {
        return x < low ? low : x > high ? high : (int32_t)x;
    }

    METHOD static int32_t first_of(const CONSTANT mqa_logits_gfx950 &a, int32_t row)
    {
        const uint64_t at = a.ks + (uint64_t)(row * a.ks_row);
        return clamp(a.ks_wide ? device_load<int64_t>(at) : device_load<int32_t>(at), 0, a.n);
    }

    METHOD static int32_t last_of(const CONSTANT mqa_logits_gfx950 &a, int32_t row)
    {
        const uint64_t at = a.ke + (uint64_t)(row * a.ke_row);
        return clamp(a.ke_wide ? device_load<int64_t>(at) : device_load<int32_t>(at), 0, a.n);
    }

    METHOD mqa_logits_grid_block block_of(int32_t b) const
    {
        return { s.lo[b], s.hi[b], s.live[b] };
    }

    METHOD void windows(int32_t blocks) const
    {
        const CONSTANT mqa_logits_gfx950 &a = args();
        const int32_t                     item = 64 * wave + lane_now();
        for (int32_t b = item; b < blocks; b += THREADS) {
            s.lo[b] = 0x7FFFFFFF;
            s.hi[b] = 0;
            s.live[b] = 0;
        }
        device_barrier();
        for (int32_t row = item; row < a.m; row += THREADS) {
            const int32_t first = first_of(a, row), last = last_of(a, row), b = row / BLOCK;
            if (first >= last)
                continue;
            __hip_atomic_fetch_min(&s.lo[b], first / TILE, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
            __hip_atomic_fetch_max(&s.hi[b], (last + TILE - 1) / TILE, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
            __hip_atomic_fetch_add(&s.live[b], 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
        }
        device_barrier();
    }

    METHOD static int64_t from_lane(int64_t x, int32_t other)
    {
        const uint32_t low = (uint32_t)__builtin_amdgcn_ds_bpermute(4 * other, (int32_t)x);
        const uint32_t high = (uint32_t)__builtin_amdgcn_ds_bpermute(4 * other, (int32_t)(x >> 32));
        return (int64_t)((uint64_t)high << 32 | low);
    }

    METHOD static int32_t from_lane(int32_t x, int32_t other)
    {
        return __builtin_amdgcn_ds_bpermute(4 * other, x);
    }

    /* The cost of the whole call; `before`: of what lies before this work-item's blocks, [from, to). */
    METHOD int64_t line_of(int32_t from, int32_t to, int64_t &before) const
    {
        const int32_t lane = lane_now();
        int64_t       own = 0, line = 0;
        for (int32_t b = from; b < to; b++)
            own += mqa_logits_grid_cost(&grid, block_of(b));
        int64_t sum = own;
        for (int32_t d = 1; d < 64; d *= 2) {
            const int64_t others = from_lane(sum, lane - d);
            sum += lane >= d ? others : 0;
        }
        if (lane == 63)
            s.line[wave] = sum;
        device_barrier();
        before = sum - own;
        for (int32_t w = 0; w < WAVES; w++) {
            before += w < wave ? s.line[w] : 0;
            line += s.line[w];
        }
        return line;
    }

    /* This workgroup's part of the line. */
    METHOD part part_of_line(int32_t blocks, int32_t group, int32_t from, int32_t to, int64_t at, int64_t line) const
    {
        const int32_t groups = args().groups, item = 64 * wave + lane_now();
        const int64_t begin = mqa_logits_grid_cut(line, group, groups),
                      end = mqa_logits_grid_cut(line, group + 1, groups);
        if (item < 4)
            s.cut[item] = item % 2 == 0 ? blocks : 0;
        device_barrier();
        for (int32_t b = from; b < to; b++) {
            const mqa_logits_grid_block block = block_of(b);
            const int64_t               cost = mqa_logits_grid_cost(&grid, block);
            if (begin >= at && begin < at + cost) {
                s.cut[0] = b;
                s.cut[1] = mqa_logits_grid_find(&grid, block, begin - at);
            }
            if (end >= at && end < at + cost) {
                s.cut[2] = b;
                s.cut[3] = mqa_logits_grid_find(&grid, block, end - at);
            }
            at += cost;
        }
        device_barrier();
        return { uniform(s.cut[0]), uniform(s.cut[1]), uniform(s.cut[2]), uniform(s.cut[3]), true };
    }

    /* Each way to cut few blocks; the waves share the ways, and lanes the blocks of one. */
    METHOD void try_ways(int32_t blocks, int64_t line) const
    {
        enum { LANES = 64 * WAVES / WAYS };
        const int32_t               lane = lane_now(), groups = args().groups, way = wave * (64 / LANES) + lane / LANES;
        const mqa_logits_grid_block own = lane < blocks ? block_of(lane) : mqa_logits_grid_block{ 0, 0, 0 };
        const bool                  sees = mqa_logits_grid_seen(own) > 0;
        const int64_t               begins = __builtin_popcountll(__builtin_amdgcn_ballot_w64(sees));
        int32_t                     tile = sees ? mqa_logits_grid_tile(&grid, own.live) : 1;
        for (int32_t d = 1; d < 64; d *= 2)
            tile = device_most(tile, from_lane(tile, lane ^ d));
        const int32_t limit =
            mqa_logits_grid_limit(line - begins * MQA_LOGITS_GRID_BEGIN, tile, blocks, groups, way / 2);
        int32_t count = 0, filled = 0, longest = 0;
        for (int32_t b = lane % LANES; b < blocks; b += LANES) {
            const mqa_logits_grid_parts p = mqa_logits_grid_cuts(&grid, block_of(b), limit, way % 2);
            count += p.count;
            filled += p.line;
            longest = device_most(longest, p.longest);
        }
        for (int32_t d = 1; d < LANES; d *= 2) {
            count += from_lane(count, lane ^ d);
            filled += from_lane(filled, lane ^ d);
            longest = device_most(longest, from_lane(longest, lane ^ d));
        }
        if (lane % LANES == 0) {
            s.limit[way] = limit;
            s.count[way] = count;
            s.filled[way] = filled;
            s.longest[way] = mqa_logits_grid_longest(&grid, count, longest, filled, groups);
        }
        device_barrier();
    }

    /* The way that ends first; negative: none is better than the line. */
    METHOD int32_t best_way(int64_t line) const
    {
        int64_t longest = -1;
        int32_t best = -1;
        for (int32_t way = 0; way < WAYS; way++) {
            const int64_t own = s.longest[way];
            const bool    better = own >= 0 && (longest < 0 || own < longest);
            longest = better ? own : longest;
            best = better ? way : best;
        }
        return uniform(mqa_logits_grid_few(longest, line, args().groups) ? best : -1);
    }

    /* Of the tiles of a block that no row sees, from left to right. */
    METHOD void fill_share(int32_t b, int32_t from, int32_t to) const
    {
        const int32_t lo = uniform(s.lo[b]), hi = uniform(s.hi[b]), seen = lo < hi ? hi - lo : 0;
        const int32_t left = seen > 0 ? lo : grid.tiles;
        fill(b, from, device_least(to, left));
        fill(b, device_most(from, left) + seen, to + seen);
    }

    /* This workgroup's part of a block, or of the tiles that are to be filled, which are filled here. */
    METHOD part part_of_block(int32_t blocks, int32_t group, int32_t way) const
    {
        const int32_t               lane = lane_now(), groups = args().groups, parts = uniform(s.count[way]);
        const mqa_logits_grid_block own = lane < blocks ? block_of(lane) : mqa_logits_grid_block{ 0, 0, 0 };
        mqa_logits_grid_parts       p = mqa_logits_grid_cuts(&grid, own, s.limit[way], way % 2);
        p.count = lane < blocks ? p.count : 0;
        p.line = lane < blocks ? p.line : 0;
        int32_t count = p.count, line = p.line;
        for (int32_t d = 1; d < 64; d *= 2) {
            const int32_t counts = from_lane(count, lane - d), lines = from_lane(line, lane - d);
            count += lane >= d ? counts : 0;
            line += lane >= d ? lines : 0;
        }
        if (group < parts) {
            const uint64_t mine = __builtin_amdgcn_ballot_w64(group >= count - p.count && group < count);
            const int32_t  b = __builtin_ctzll(mine), of = __builtin_amdgcn_readlane(p.count, b);
            const int32_t  k = group - (__builtin_amdgcn_readlane(count, b) - of);
            const int32_t  lo = uniform(s.lo[b]), seen = uniform(s.hi[b]) - lo;
            if (args().clean && __builtin_amdgcn_readlane(p.line, b) == 0)
                fill_share(b, mqa_logits_grid_share(grid.tiles - seen, k, of),
                           mqa_logits_grid_share(grid.tiles - seen, k + 1, of));
            return { b, lo + mqa_logits_grid_share(seen, k, of), b, lo + mqa_logits_grid_share(seen, k + 1, of),
                     false };
        }
        const int32_t all = uniform(s.filled[way]), left = groups - parts;
        const int32_t from = mqa_logits_grid_share(all, group - parts, left);
        const int32_t to = mqa_logits_grid_share(all, group - parts + 1, left);
        for (int32_t b = 0; b < blocks; b++) {
            const int32_t past = __builtin_amdgcn_readlane(line, b), at = past - __builtin_amdgcn_readlane(p.line, b);
            if (from < past && to > at)
                fill_share(b, device_most(from, at) - at, device_least(to, past) - at);
        }
        return { 0, 0, -1, 0, false };
    }

    /* Outside of all windows
     * ----------------------
     */
    METHOD void fill(int32_t b, int32_t from, int32_t to) const
    {
        const CONSTANT mqa_logits_gfx950 &a = args();
        const int32_t                     past = device_least(TILE * to, a.n);
#pragma unroll 1
        for (int32_t row = BLOCK * b + wave; row < device_least(BLOCK * (b + 1), a.m); row += WAVES) {
            const uint64_t at = a.logits + (uint64_t)(row * a.logits_row);
#pragma unroll 1
            for (int32_t n = TILE * from + lane_now(); n < past; n += TILE)
                device_store<float>(at + (uint64_t)n * 4, NEGATIVE_INFINITY);
        }
    }

    /* Loads
     * -----
     */
    METHOD void load_weights(float w[16], int32_t row, int32_t head) const
    {
        const CONSTANT mqa_logits_gfx950 &a = args();
        const uint64_t                    at = a.weights + (uint64_t)(row * a.weights_row + 4 * head);
#pragma unroll
        for (int32_t i = 0; i < 4; i++) {
            const float4u four = device_load<float4u>(at + (uint64_t)(32 * i));
            for (int32_t j = 0; j < 4; j++)
                w[4 * i + j] = four[j];
        }
    }

    /* Rows with keys go to the first waves, so that those without cost nothing where they stand between others. */
    METHOD rows load_rows(int32_t b) const
    {
        const CONSTANT mqa_logits_gfx950 &a = args();
        rows                              r;
        const int32_t                     lane = lane_now();
        const int32_t                     mine = BLOCK * b + lane;
        const bool                        there = lane < BLOCK && mine < a.m;
        const int32_t                     first = there ? first_of(a, mine) : 0, last = there ? last_of(a, mine) : 0;
        const bool                        live = first < last;
        const uint64_t                    lives = __builtin_amdgcn_ballot_w64(live);
        const uint32_t                    before =
            __builtin_amdgcn_mbcnt_hi((uint32_t)(lives >> 32), __builtin_amdgcn_mbcnt_lo((uint32_t)lives, 0));
        const int32_t place = live ? (int32_t)before : lane - (int32_t)before + __builtin_popcountll(lives);
        const int32_t order = __builtin_amdgcn_ds_permute(4 * place, lane);
        int32_t       row[ROWS];
        r.all_first = 0;
        r.all_last = r.any_first = 0x7FFFFFFF;
        r.any_last = 0;
        for (int32_t i = 0; i < ROWS; i++) {
            row[i] = __builtin_amdgcn_readlane(order, ROWS * wave + i);
            const int32_t from = __builtin_amdgcn_readlane(first, row[i]);
            const int32_t to = __builtin_amdgcn_readlane(last, row[i]);
            r.all_first = device_most(r.all_first, from);
            r.all_last = device_least(r.all_last, from < to ? to : 0);
            r.any_first = from < to ? device_least(r.any_first, from) : r.any_first;
            r.any_last = from < to ? device_most(r.any_last, to) : r.any_last;
        }
        r.all_first = uniform(r.all_first);
        r.all_last = uniform(r.all_last);
        r.any_first = uniform(r.any_first);
        r.any_last = uniform(r.any_last);
        for (int32_t p = 0; p < PAIRS; p++) {
            const int32_t own = lane < 32 ? row[2 * p] : row[2 * p + 1];
            r.first[p] = __builtin_amdgcn_ds_bpermute(4 * own, first);
            r.last[p] = __builtin_amdgcn_ds_bpermute(4 * own, last);
            r.end[p] = BLOCK * b + own < a.m ? a.n : 0;
            r.at[p] = (uint32_t)own * (uint32_t)a.logits_row + lane % 32 * 4;
        }
#pragma unroll
        for (int32_t t = 0; t < STEPS; t++) {
            const int32_t  at_row = device_least(BLOCK * b + row[t / ROW_STEPS], a.m - 1), head = t % ROW_STEPS * 32;
            const uint64_t at = a.q + (uint64_t)(at_row * a.q_row + (head + lane % 32) * a.q_head + lane / 32 * 32);
            for (int32_t j = 0; j < 2; j++)
                r.q[t][j] = device_load<int8u>(at + (uint64_t)(64 * j));
            load_weights(r.w[t], at_row, head + lane / 32 * 4);
        }
        return r;
    }

    METHOD void begin_copies(copies<COPIES> &c, int32_t tile) const
    {
        const CONSTANT mqa_logits_gfx950 &a = args();
        const int32_t                     lane = lane_now();
        for (int32_t i = 0; i < COPIES; i++) {
            const int32_t key = 8 * (wave * COPIES + i) + lane / 8;
            c.keys_from[i] = (uint32_t)(key * a.k_row) + (uint32_t)(16 * (lane % 8 ^ key / 2 % 8));
        }
        c.scales_from = (uint32_t)((wave * SCALES + lane) * a.kv_scale_row);
        c.keys = uniform(a.k + (uint64_t)((int64_t)tile * TILE * a.k_row));
        c.scales = uniform(a.kv_scale + (uint64_t)((int64_t)tile * TILE * a.kv_scale_row));
        c.keys_to = (uint32_t)uniform((int32_t)(uintptr_t)s.keys + wave * COPIES * 1024);
        c.scales_to = (uint32_t)uniform((int32_t)(uintptr_t)s.scales + wave * SCALES * 4);
    }

    /* The tile's keys from N on are the last one's. */
    METHOD void copy_tile(copies<COPIES> &c, int32_t tile, uint32_t slot) const
    {
        const CONSTANT mqa_logits_gfx950 &a = args();
        const int32_t                     past = a.n - 1 - tile * TILE;
        if (past >= TILE - 1) {
            copy<SCALES>(c, c.keys_from, c.scales_from, slot);
        } else {
            const int32_t lane = lane_now();
            uint32_t      from[COPIES];
            for (int32_t i = 0; i < COPIES; i++) {
                const int32_t key = 8 * (wave * COPIES + i) + lane / 8;
                from[i] = (uint32_t)(device_least(key, past) * a.k_row) + (uint32_t)(16 * (lane % 8 ^ key / 2 % 8));
            }
            copy<SCALES>(c, from, (uint32_t)(device_least(wave * SCALES + lane, past) * a.kv_scale_row), slot);
        }
        c.keys += (uint64_t)((int64_t)TILE * a.k_row);
        c.scales += (uint64_t)((int64_t)TILE * a.kv_scale_row);
    }

    /* Half a tile's keys out of LDS. Lane l takes chunks 4 j + 2 (l / 32) and the next. */
    METHOD static keys load_keys(const uint32_t at[4], uint32_t scale_at, uint32_t half)
    {
        keys k;
        for (int32_t j = 0; j < 2; j++) {
            const uint4v low = *(const LDS uint4v *)(at[2 * j] + half * HALF * DIM);
            const uint4v high = *(const LDS uint4v *)(at[2 * j + 1] + half * HALF * DIM);
            k.k[j] = __builtin_bit_cast(int8v, __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7));
        }
        k.scale = *(const LDS float *)(scale_at + half * HALF * 4);
        return k;
    }

    /* Products
     * --------
     * In assembly, since the order is the point: no compiler keeps it, and none knows that the results of a product are
     * not read before 20 other instructions. The instructions are separate statements where registers change hands.
     */
    METHOD static void multiply_first(float16v &to, int8v q, int8v k)
    {
        __asm__ volatile("v_mfma_f32_32x32x64_f8f6f4 %0, %1, %2, 0" : "=&v"(to) : "v"(q), "v"(k));
    }

    METHOD static void multiply_more(float16v &to, int8v q, int8v k)
    {
        __asm__ volatile("v_mfma_f32_32x32x64_f8f6f4 %0, %1, %2, %0" : "+&v"(to) : "v"(q), "v"(k));
    }

    /* A step that no other precedes: the wait states stand behind it. */
    METHOD static void multiply_alone(float16v &to, const int8v q[2], const int8v k[2])
    {
        __asm__ volatile("v_mfma_f32_32x32x64_f8f6f4 %0, %1, %3, 0\n\t"
                         "v_mfma_f32_32x32x64_f8f6f4 %0, %2, %4, %0\n\t"
                         "s_nop 15\n\t"
                         "s_nop 3"
                         : "+&v"(to)
                         : "v"(q[0]), "v"(q[1]), "v"(k[0]), "v"(k[1]));
    }

    /* sum += w[i] * relu(x[i]) for the step's first six heads of a lane, or as its beginning. */
#define RELU(to, x) "v_maximum3_f32 %" #to ", %" #x ", 0, 0\n\t"
#define ADD(from, w) "v_fmac_f32 %0, %" #from ", %" #w "\n\t"
#define TWO_HEADS(x, y, wx, wy) RELU(1, x) RELU(2, y) ADD(1, wx) ADD(2, wy)
    METHOD static void add_six(const float16v &x, const float w[16], bool first, float &sum)
    {
        float t0, t1;
        if (first)
            __asm__ volatile(RELU(1, 3) RELU(2, 4) "v_mul_f32 %0, %1, %9\n\t" ADD(2, 10) TWO_HEADS(5, 6, 11, 12)
                                 TWO_HEADS(7, 8, 13, 14)
                             : "=&v"(sum), "=&v"(t0), "=&v"(t1)
                             : "v"(x[0]), "v"(x[1]), "v"(x[2]), "v"(x[3]), "v"(x[4]), "v"(x[5]), "v"(w[0]), "v"(w[1]),
                               "v"(w[2]), "v"(w[3]), "v"(w[4]), "v"(w[5]));
        else
            __asm__ volatile(TWO_HEADS(3, 4, 9, 10) TWO_HEADS(5, 6, 11, 12) TWO_HEADS(7, 8, 13, 14)
                             : "+&v"(sum), "=&v"(t0), "=&v"(t1)
                             : "v"(x[0]), "v"(x[1]), "v"(x[2]), "v"(x[3]), "v"(x[4]), "v"(x[5]), "v"(w[0]), "v"(w[1]),
                               "v"(w[2]), "v"(w[3]), "v"(w[4]), "v"(w[5]));
    }

    /* The other ten. */
    METHOD static void add_ten(const float16v &x, const float w[16], float &sum)
    {
        float t0, t1;
        __asm__ volatile(TWO_HEADS(3, 4, 13, 14) TWO_HEADS(5, 6, 15, 16) TWO_HEADS(7, 8, 17, 18)
                             TWO_HEADS(9, 10, 19, 20) TWO_HEADS(11, 12, 21, 22)
                         : "+&v"(sum), "=&v"(t0), "=&v"(t1)
                         : "v"(x[6]), "v"(x[7]), "v"(x[8]), "v"(x[9]), "v"(x[10]), "v"(x[11]), "v"(x[12]), "v"(x[13]),
                           "v"(x[14]), "v"(x[15]), "v"(w[6]), "v"(w[7]), "v"(w[8]), "v"(w[9]), "v"(w[10]), "v"(w[11]),
                           "v"(w[12]), "v"(w[13]), "v"(w[14]), "v"(w[15]));
    }
#undef TWO_HEADS
#undef ADD
#undef RELU

    /* x of lanes 0 to 31 is that of both halves; of 32 to 63 y's; scaled. */
    METHOD static float add_halves(float x, float y, float scale)
    {
        __asm__ volatile("v_permlane32_swap_b32 %0, %1\n\t"
                         "v_add_f32 %0, %0, %1\n\t"
                         "v_mul_f32 %0, %0, %2"
                         : "+&v"(x), "+&v"(y)
                         : "v"(scale));
        return x;
    }

    /* Half a tile: sums over heads in the lane of (key, row of a pair), scaled. `next`: what the next half multiplies;
     * its first step is under way at return, in ahead, as this one's is at entry. The last 20 of a step's 32
     * instructions stand behind both products. Returns the end of the keys that all rows see, 0 where n is none: two
     * instructions that a swap has to wait for, anyway. */
    METHOD static int32_t half_tile(const rows &r, const keys &k, const keys &next, float16v &ahead, int32_t n,
                                    float out[PAIRS])
    {
        float    sum[ROWS];
        float16v other;
#pragma unroll
        for (int t = 0; t < STEPS; t++) {
            const int8v *const q = r.q[(t + 1) % STEPS];
            const keys        &by = t + 1 < STEPS ? k : next;
            const int          row = t / ROW_STEPS;
            float16v          &now = t % 2 == 0 ? ahead : other, &then = t % 2 == 0 ? other : ahead;
            __builtin_amdgcn_s_setprio(1);
            multiply_first(then, q[0], by.k[0]);
            add_six(now, r.w[t], t % ROW_STEPS == 0, sum[row]);
            if (t > 0 && t % (2 * ROW_STEPS) == 0)
                out[row / 2 - 1] = add_halves(sum[row - 2], sum[row - 1], k.scale);
            __builtin_amdgcn_s_setprio(0);
            multiply_more(then, q[1], by.k[1]);
            add_ten(now, r.w[t], sum[row]);
        }
        int32_t all_last;
        __asm__ volatile("s_cmp_ge_i32 %1, %2\n\t"
                         "s_cselect_b32 %0, %3, 0"
                         : "=s"(all_last)
                         : "s"(n), "s"(r.all_first), "s"(r.all_last)
                         : "scc");
        out[PAIRS - 1] = add_halves(sum[ROWS - 2], sum[ROWS - 1], k.scale);
        return all_last;
    }

    template <int HALF_OF> METHOD static void store(uint64_t block, uint32_t at, float x)
    {
        __asm__ volatile("global_store_dword %0, %1, %2 offset:%3"
                         :
                         : "v"(at), "v"(x), "s"(block), "n"(HALF_OF * HALF * 4)
                         : "memory");
    }

    template <int HALF_OF>
    METHOD void store_masked(const rows &r, uint64_t block, int32_t n, const float x[PAIRS]) const
    {
        const int32_t key = n + lane_now() % 32, clean = args().clean;
#pragma unroll
        for (int32_t p = 0; p < PAIRS; p++) {
            const bool seen = key >= r.first[p] && key < r.last[p];
            if (clean ? key < r.end[p] : seen)
                store<HALF_OF>(block, r.at[p], seen ? x[p] : NEGATIVE_INFINITY);
        }
    }

    /* Keys [n, n + 32) of all rows. True: every store was made. */
    template <int HALF_OF>
    METHOD bool half_tile_stored(const rows &r, const keys &k, const keys &next, float16v &ahead, uint64_t block,
                                 int32_t n) const
    {
        float out[PAIRS];
        if (n + HALF <= r.any_first || n >= r.any_last) {
            int32_t any = r.any_last;
            __asm__ volatile("" : "+s"(any)); /* no flag of it in all other halves */
            if (any > 0)
                multiply_alone(ahead, r.q[0], next.k);
            for (int32_t p = 0; p < PAIRS; p++)
                out[p] = NEGATIVE_INFINITY;
            store_masked<HALF_OF>(r, block, n, out);
            return false;
        }
        if (n + HALF > half_tile(r, k, next, ahead, n, out)) {
            store_masked<HALF_OF>(r, block, n, out);
            return false;
        }
#pragma unroll
        for (int32_t p = 0; p < PAIRS; p++)
            store<HALF_OF>(block, r.at[p], out[p]);
        return true;
    }

    /* This wave's part of the next tile is in LDS. Behind its copies follow those of `tiles` others, and if all halves
     * stored, the stores of four tiles. */
    METHOD static void tile_wait(int32_t tiles, bool stores)
    {
        enum { LATER = SLOTS - 2, STORES = (SLOTS - 1) * TILE_STORES };
        static_assert(LATER == 3, "as many cases as stand here");
        const int32_t kind = device_least<int32_t>(tiles, LATER) + (stores ? LATER + 1 : 0);
        if (kind == 7)
            wait_vmcnt<3 * TILE_COPIES + STORES>();
        else if (kind == 6)
            wait_vmcnt<2 * TILE_COPIES + STORES>();
        else if (kind == 5)
            wait_vmcnt<TILE_COPIES + STORES>();
        else if (kind == 4)
            wait_vmcnt<STORES>();
        else if (kind == 3)
            wait_vmcnt<3 * TILE_COPIES>();
        else if (kind == 2)
            wait_vmcnt<2 * TILE_COPIES>();
        else if (kind == 1)
            wait_vmcnt<TILE_COPIES>();
        else
            wait_vmcnt<0>();
    }

    METHOD static void barrier()
    {
        __asm__ volatile("s_barrier" : : : "memory");
    }

    METHOD static void meet()
    {
        wait_lgkmcnt();
        barrier();
    }

    /* Tiles [from, to) of block b, which a row of it sees. */
    METHOD void products(int32_t b, int32_t from, int32_t to) const
    {
        copies<COPIES> c;
        barrier(); /* nobody reads the slots any more: behind the last of them each has read the block's windows */
        begin_copies(c, from);
        for (int32_t i = 0; i < SLOTS && from + i < to; i++)
            copy_tile(c, from + i, (uint32_t)i);
        rows r = load_rows(b);
        wait_loads();
#pragma unroll
        for (int32_t t = 0; t < STEPS; t++) {
            __asm__ volatile("" : "+v"(r.q[t][0]), "+v"(r.q[t][1]));
#pragma unroll
            for (int32_t i = 0; i < 16; i++)
                __asm__ volatile("" : "+v"(r.w[t][i]));
        }
        barrier();

        const int32_t  lane = lane_now();
        const uint32_t keys_at =
            (uint32_t)(uintptr_t)s.keys + (uint32_t)(lane % 32 * DIM + 16 * (lane / 32 * 2 ^ lane / 2 % 8));
        const uint32_t scale_at = (uint32_t)(uintptr_t)s.scales + (uint32_t)(lane % 32 * 4);
        uint64_t       block =
            uniform(args().logits + (uint64_t)((int64_t)BLOCK * b * args().logits_row + (int64_t)from * TILE * 4));
        uint32_t at[4] = { keys_at, keys_at ^ 16, keys_at ^ 64, keys_at ^ 80 }, scale_now = scale_at;
        uint32_t slot = 0;
        int32_t  stored = 0; /* halves in a row of which every store was made */
        keys     low = load_keys(at, scale_now, 0), high;
        float16v ahead;
        multiply_alone(ahead, r.q[0], low.k);
#pragma unroll 1
        for (int32_t i = from; i < to; i++) {
            high = load_keys(at, scale_now, 1);
            stored = half_tile_stored<0>(r, low, high, ahead, block, i * TILE) ? stored + 1 : 0;
            tile_wait(to - 2 - i, stored >= 2 * (SLOTS - 1));
            meet();
            if (i + SLOTS < to)
                copy_tile(c, i + SLOTS, slot);
            if (i + 1 < to)
                slot = slot + 1 == SLOTS ? 0 : slot + 1;
            for (uint32_t j = 0; j < 4; j++)
                at[j] = (keys_at ^ (j % 2 * 16 + j / 2 * 64)) + slot * TILE_BYTES;
            scale_now = scale_at + slot * SCALE_BYTES;
            low = load_keys(at, scale_now, 0);
            stored = half_tile_stored<1>(r, high, low, ahead, block, i * TILE + HALF) ? stored + 1 : 0;
            block += TILE * 4;
        }
    }

    METHOD void run(int32_t group) const
    {
        const int32_t blocks = (args().m + BLOCK - 1) / BLOCK, each = (blocks + THREADS - 1) / THREADS;
        const int32_t from = device_least((64 * wave + lane_now()) * each, blocks),
                      to = device_least(from + each, blocks);
        int64_t       before;
        windows(blocks);
        const int64_t line = line_of(from, to, before);
        int32_t       way = -1;
        if (blocks <= MQA_LOGITS_GRID_FEW) {
            try_ways(blocks, line);
            way = best_way(line);
        }
        const part p =
            way >= 0 ? part_of_block(blocks, group, way) : part_of_line(blocks, group, from, to, before, line);
        for (int32_t b = p.block; b < blocks && b <= p.last_block; b++) {
            const int32_t left = b == p.block ? p.tile : 0, right = b == p.last_block ? p.last_tile : grid.tiles;
            const int32_t lo = uniform(s.lo[b]), hi = uniform(s.hi[b]);
            if (p.fills && args().clean) {
                fill(b, left, device_least(right, device_least(lo, hi)));
                fill(b, device_most(left, hi), right);
            }
            if (device_most(left, lo) < device_least(right, hi))
                products(b, device_most(left, lo), device_least(right, hi));
        }
    }
};

/* Neighbours on the line go to one XCD, whose cache they share: workgroups go to XCDs in turn. */
DEVICE int32_t mqa_logits_place(int32_t group, int32_t groups)
{
    const int32_t each = groups / MQA_LOGITS_GFX950_XCDS;
    if (groups % MQA_LOGITS_GFX950_XCDS != 0)
        return group;
    return group % MQA_LOGITS_GFX950_XCDS * each + group / MQA_LOGITS_GFX950_XCDS;
}

template <int HEADS, int WAVES, int BLOCKS>
DEVICE void mqa_logits_run(LDS typename mqa_logits<HEADS, WAVES, BLOCKS>::shared &s)
{
    typedef mqa_logits<HEADS, WAVES, BLOCKS> kernel;
    const CONSTANT mqa_logits_gfx950        &a = kernel::args();
    kernel                                   k = { s,
                                                   { kernel::BLOCK, (a.n + TILE - 1) / TILE, kernel::ROWS, a.clean },
                                                   uniform((int32_t)__builtin_amdgcn_workitem_id_x() / 64) };
    k.run(mqa_logits_place((int32_t)__builtin_amdgcn_workgroup_id_x(), a.groups));
}

#define MQA_LOGITS_KERNEL(waves)                                                                                      \
    extern "C" __attribute__((global, amdgpu_flat_work_group_size(64 * waves, 64 * waves), amdgpu_waves_per_eu(2, 2), \
                              amdgpu_num_vgpr(256)))

#endif
