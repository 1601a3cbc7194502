/* How workgroups share a call of mqa_logits on gfx950, against every other way to share it that the model of cost knows:
 * any number of workgroups along the line, and the grid of others, a workgroup for each block of rows and each of S
 * parts of its keys, blocks in one order or the other, on CUs as they become free. The choice must be within 5 % of the
 * best of them on every shape of the field and every layout of windows, and no tile may be left out or done twice.
 */
#include "testing.h"

#include "mqa_logits_gfx950.h"

#include <inttypes.h>
#include <stdint.h>

enum { UNITS = MQA_LOGITS_GFX950_GROUPS, MOST_BLOCKS = 4096 };

typedef struct window {
    int64_t first, last;
} window;

/* Layouts
 * -------
 */
static int64_t random_below(uint64_t *state, int64_t n)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)(*state >> 33) % n;
}

/* `requests` of m / requests rows, one after the other, each causal among its own n / requests keys. */
static window requests(int64_t row, int64_t m, int64_t n, int64_t count)
{
    const int64_t rows = (m + count - 1) / count, keys = n / count, of = row / rows;
    const int64_t last = keys - rows + row % rows + 1;
    return (window){ of * keys, of * keys + (last < 0 ? 0 : last) };
}

/* A rank of a group of two has the first and the last quarter of the rows. */
static window halves(int64_t row, int64_t m, int64_t n)
{
    return (window){ 0, row < m / 2 ? (n * (row + 1)) / (2 * m) : n - (n * (m - row - 1)) / (2 * m) };
}

typedef enum layout { CAUSAL, FOUR, CONTEXT, SLIDING, EMPTY, MISALIGNED, POOLED, LAYOUTS } layout;

static const char *const layout_names[LAYOUTS] = { "causal",     "four requests",         "context-parallel",
                                                   "sliding",    "every other row empty", "misaligned",
                                                   "pooled by 4" };

static window window_of(layout l, int64_t row, int64_t m, int64_t n, uint64_t *state)
{
    window w = requests(row, m, n, 1);
    switch (l) {
    case FOUR:
        return requests(row, m, n, 4);
    case CONTEXT:
        return halves(row, m, n);
    case SLIDING:
        w.first = w.last - 2048;
        break;
    case EMPTY:
        w.last = row % 2 == 0 ? w.last : 0;
        break;
    case MISALIGNED:
        w.first = random_below(state, n), w.last = w.first + random_below(state, n);
        break;
    case POOLED:
        w.last = (4 * n - m + row + 1) / 4;
        break;
    default:
        break;
    }
    return w;
}

/* Blocks
 * ------
 * As mqa_logits_device_gfx950.h works them out.
 */
static int64_t clamp(int64_t x, int64_t n)
{
    return x < 0 ? 0 : x > n ? n : x;
}

static int32_t blocks_of(const mqa_logits_grid *g, layout l, int64_t m, int64_t n, mqa_logits_grid_block *b)
{
    const int32_t count = (int32_t)((m + g->rows - 1) / g->rows);
    uint64_t      state = 1;
    ck_assert_int_le(count, MOST_BLOCKS);
    for (int32_t i = 0; i < count; i++)
        b[i] = (mqa_logits_grid_block){ .lo = INT32_MAX };
    for (int64_t row = 0; row < m; row++) {
        const window           w = window_of(l, row, m, n, &state);
        const int32_t          first = (int32_t)clamp(w.first, n), last = (int32_t)clamp(w.last, n);
        mqa_logits_grid_block *of = &b[row / g->rows];
        if (first >= last)
            continue;
        of->lo = first / MQA_LOGITS_GRID_KEYS < of->lo ? first / MQA_LOGITS_GRID_KEYS : of->lo;
        const int32_t hi = (last + MQA_LOGITS_GRID_KEYS - 1) / MQA_LOGITS_GRID_KEYS;
        of->hi = hi > of->hi ? hi : of->hi;
        of->live++;
    }
    return count;
}

static int64_t line_of(const mqa_logits_grid *g, const mqa_logits_grid_block *b, int32_t count)
{
    int64_t line = 0;
    for (int32_t i = 0; i < count; i++)
        line += mqa_logits_grid_cost(g, b[i]);
    return line;
}

/* Ways to share
 * -------------
 */
typedef struct place {
    int32_t block, tile;
} place;

/* `groups` parts of the line; at[groups] is its end. */
static void cut(const mqa_logits_grid *g, const mqa_logits_grid_block *b, int32_t count, int32_t groups, place *at)
{
    const int64_t line = line_of(g, b, count);
    int64_t       begin = 0;
    int32_t       block = 0;
    for (int32_t i = 0; i <= groups; i++) {
        const int64_t where = mqa_logits_grid_cut(line, i, groups);
        while (block < count && where >= begin + mqa_logits_grid_cost(g, b[block]))
            begin += mqa_logits_grid_cost(g, b[block++]);
        at[i] = (place){ block, block < count ? mqa_logits_grid_find(g, b[block], where - begin) : 0 };
    }
}

static int64_t cost_between(const mqa_logits_grid *g, const mqa_logits_grid_block *b, int32_t count, place from,
                            place to)
{
    int64_t cost = 0;
    for (int32_t i = from.block; i <= to.block && i < count; i++)
        cost += mqa_logits_grid_span(g, b[i], i == from.block ? from.tile : 0, i == to.block ? to.tile : g->tiles);
    return cost;
}

/* CUs, of which the first to be free takes the next workgroup: a heap. */
typedef struct units {
    int64_t busy[UNITS];
} units;

static void take(units *u, int64_t cost)
{
    int     i = 0;
    int64_t at = u->busy[0] + cost;
    for (int child; (child = 2 * i + 1) < UNITS; i = child) {
        child += child + 1 < UNITS && u->busy[child + 1] < u->busy[child];
        if (u->busy[child] >= at)
            break;
        u->busy[i] = u->busy[child];
    }
    u->busy[i] = at;
}

static int64_t last_free(const units *u)
{
    int64_t most = 0;
    for (int i = 0; i < UNITS; i++)
        most = u->busy[i] > most ? u->busy[i] : most;
    return most;
}

static int64_t of_line(const mqa_logits_grid *g, const mqa_logits_grid_block *b, int32_t count, int32_t groups)
{
    static place at[4 * UNITS + 1];
    units        u = { { 0 } };
    cut(g, b, count, groups, at);
    for (int32_t i = 0; i < groups; i++)
        take(&u, cost_between(g, b, count, at[i], at[i + 1]));
    return last_free(&u);
}

/* Part s of S of a block's own tiles, and of those to fill. */
static int64_t part_cost(const mqa_logits_grid *g, mqa_logits_grid_block b, int32_t s, int32_t splits)
{
    const int64_t seen = b.hi > b.lo ? b.hi - b.lo : 0, fill = g->tiles - seen;
    const int64_t tiles = seen * (s + 1) / splits - seen * s / splits;
    return mqa_logits_grid_tile(g, b.live) * tiles + (tiles > 0 ? MQA_LOGITS_GRID_BEGIN : 0) +
           mqa_logits_grid_fill(g) * (fill * (s + 1) / splits - fill * s / splits);
}

static int64_t of_splits(const mqa_logits_grid *g, const mqa_logits_grid_block *b, int32_t count, int32_t splits,
                         bool reverse)
{
    units u = { { 0 } };
    for (int32_t s = 0; s < splits; s++)
        for (int32_t i = 0; i < count; i++)
            take(&u, part_cost(g, b[reverse ? count - 1 - i : i], s, splits));
    return last_free(&u);
}

/* Parts of blocks, as the kernels choose them. */
typedef struct few {
    int64_t longest; /* < 0: they do not */
    int64_t count, line;
    int32_t limit, alone;
} few;

static few few_with(const mqa_logits_grid *g, const mqa_logits_grid_block *b, int32_t count, int32_t limit,
                    int32_t alone)
{
    few     f = { .limit = limit, .alone = alone };
    int64_t longest = 0;
    for (int32_t i = 0; i < count; i++) {
        const mqa_logits_grid_parts p = mqa_logits_grid_cuts(g, b[i], limit, alone);
        f.count += p.count;
        f.line += p.line;
        longest = p.longest > longest ? p.longest : longest;
    }
    f.longest = mqa_logits_grid_longest(g, f.count, longest, f.line, UNITS);
    return f;
}

static few few_of(const mqa_logits_grid *g, const mqa_logits_grid_block *b, int32_t count)
{
    few     best = { .longest = -1 };
    int64_t work = 0;
    int32_t tile = 1;
    for (int32_t i = 0; i < count; i++) {
        const int32_t own = mqa_logits_grid_tile(g, b[i].live);
        work += mqa_logits_grid_work(g, b[i]);
        tile = mqa_logits_grid_seen(b[i]) > 0 && own > tile ? own : tile;
    }
    for (int32_t way = 0; way < 2 * MQA_LOGITS_GRID_LIMITS && count <= MQA_LOGITS_GRID_FEW && work > 0; way++) {
        const few f = few_with(g, b, count, mqa_logits_grid_limit(work, tile, count, UNITS, way / 2), way % 2);
        if (f.longest >= 0 && (best.longest < 0 || f.longest < best.longest))
            best = f;
    }
    if (!mqa_logits_grid_few(best.longest, line_of(g, b, count), UNITS))
        best.longest = -1;
    return best;
}

static int64_t share(int64_t count, int64_t part, int64_t parts)
{
    return mqa_logits_grid_share((int32_t)count, (int32_t)part + 1, (int32_t)parts) -
           mqa_logits_grid_share((int32_t)count, (int32_t)part, (int32_t)parts);
}

static int64_t of_parts(const mqa_logits_grid *g, const mqa_logits_grid_block *b, int32_t count, few f)
{
    int64_t       most = 0;
    const int64_t fill = mqa_logits_grid_fill(g), left = UNITS - f.count;
    for (int32_t i = 0; i < count; i++) {
        const mqa_logits_grid_parts p = mqa_logits_grid_cuts(g, b[i], f.limit, f.alone);
        const int32_t               seen = mqa_logits_grid_seen(b[i]), filled = p.line > 0 ? 0 : g->tiles - seen;
        for (int32_t s = 0; s < p.count; s++) {
            const int64_t cost = MQA_LOGITS_GRID_BEGIN + share(seen, s, p.count) * mqa_logits_grid_tile(g, b[i].live) +
                                 share(filled, s, p.count) * fill;
            most = cost > most ? cost : most;
        }
    }
    for (int64_t s = 0; s < left; s++)
        most = share(f.line, s, left) * fill > most ? share(f.line, s, left) * fill : most;
    return most;
}

static int64_t chosen(const mqa_logits_grid *g, const mqa_logits_grid_block *b, int32_t count)
{
    const few f = few_of(g, b, count);
    return f.longest >= 0 ? of_parts(g, b, count, f) : of_line(g, b, count, UNITS);
}

static int64_t best_of_all(const mqa_logits_grid *g, const mqa_logits_grid_block *b, int32_t count)
{
    int64_t best = INT64_MAX;
    for (int32_t groups = 1; groups <= 4 * UNITS; groups++) {
        const int64_t cost = of_line(g, b, count, groups);
        best = cost < best ? cost : best;
    }
    for (int32_t splits = 1; splits <= g->tiles && (splits <= 64 || splits * count <= 64 * UNITS);
         splits += splits < 32 ? 1 : splits / 8)
        for (int reverse = 0; reverse < 2; reverse++) {
            const int64_t cost = of_splits(g, b, count, splits, reverse != 0);
            best = cost < best ? cost : best;
        }
    return best;
}

/* Shapes
 * ------
 */
static const struct {
    int64_t m, n;
} shapes[] = { { 8192, 8192 },   { 4096, 32768 },  { 2048, 65536 }, { 1024, 131072 }, { 16384, 32000 }, { 4096, 4096 },
               { 16384, 16384 }, { 32768, 32768 }, { 8192, 32768 }, { 16384, 65536 }, { 1024, 4096 },   { 1024, 16384 },
               { 1024, 65664 },  { 2048, 4096 },   { 2048, 16384 }, { 2048, 131072 }, { 1, 1 },         { 1, 16 },
               { 1, 113 },       { 17, 76 },       { 61, 113 },     { 61, 1024 },     { 128, 1024 },    { 1024, 1024 },
               { 1024, 1560 },   { 64, 8192 },     { 4, 131072 },   { 128, 65536 } };

enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static mqa_logits_grid_block blocks[MOST_BLOCKS];

/* The row that the gate would take. */
static mqa_logits_grid grid_of(int64_t m, int64_t n, int64_t heads, bool clean)
{
    const mqa_logits_grid small = mqa_logits_gfx950_grid(heads, n, clean, true);
    const mqa_logits_grid large = mqa_logits_gfx950_grid(heads, n, clean, false);
    return mqa_logits_grid_whole(&small, m, UNITS) <= mqa_logits_grid_whole(&large, m, UNITS) ? small : large;
}

START_TEST(near_the_best)
{
    const int64_t m = shapes[_i].m, n = shapes[_i].n;
    double        worst = 0.0;
    for (int l = 0; l < LAYOUTS; l++)
        for (int kind = 0; kind < 4; kind++) {
            const mqa_logits_grid g = grid_of(m, n, kind / 2 ? 64 : 32, kind % 2 != 0);
            const int32_t         count = blocks_of(&g, (layout)l, m, n, blocks);
            const int64_t         cost = chosen(&g, blocks, count), best = best_of_all(&g, blocks, count);
            const double          ratio = best > 0 ? (double)cost / (double)best : 1.0;
            worst = ratio > worst ? ratio : worst;
            if (ratio > 1.05)
                fprintf(stderr, "# %" PRId64 " x %" PRId64 ", %s, H %d, clean %d: %" PRId64 ", best %" PRId64 "\n", m,
                        n, layout_names[l], kind / 2 ? 64 : 32, kind % 2, cost, best);
        }
    printf("# %" PRId64 " x %" PRId64 ": at most %.3f of the best\n", m, n, worst);
    ck_assert_msg(worst <= 1.05, "%" PRId64 " x %" PRId64 ": %.3f of the best", m, n, worst);
}
END_TEST

/* The parts follow each other from the first tile of the first block to the last tile that anything is to be done for. */
START_TEST(covers)
{
    static place  at[UNITS + 1];
    const int64_t m = shapes[_i].m, n = shapes[_i].n;
    for (int l = 0; l < LAYOUTS; l++)
        for (int clean = 0; clean < 2; clean++) {
            const mqa_logits_grid g = grid_of(m, n, 32, clean != 0);
            const int32_t         count = blocks_of(&g, (layout)l, m, n, blocks);
            cut(&g, blocks, count, UNITS, at);
            place begin = { 0, 0 };
            for (int32_t i = 0; i <= UNITS; i++) {
                ck_assert_msg(at[i].block > begin.block || (at[i].block == begin.block && at[i].tile >= begin.tile),
                              "part %d begins before its predecessor", i);
                ck_assert_int_le(at[i].tile, g.tiles);
                begin = at[i];
            }
            ck_assert_int_eq(at[UNITS].block, count);
            while (at[0].block > 0 && mqa_logits_grid_cost(&g, blocks[at[0].block - 1]) == 0)
                at[0].block--;
            ck_assert(at[0].block == 0 && at[0].tile == 0);
        }
}
END_TEST

/* floor(line * group / groups), by digits of two bits. */
static int64_t cut_by_digits(int64_t line, int64_t group, int64_t groups)
{
    int64_t quotient = 0, rest = 0;
    for (int shift = 46; shift >= 0; shift -= 2) {
        rest = 4 * rest + (line >> shift & 3) * group;
        quotient = 4 * quotient + rest / groups;
        rest %= groups;
    }
    return quotient;
}

START_TEST(cuts)
{
    uint64_t state = 7;
    for (int i = 0; i < 100000; i++) {
        const int64_t line = (random_below(&state, 1 << 24) << 24 | random_below(&state, 1 << 24)) >> i % 48;
        const int64_t groups = i % 3 == 0 ? 65536 : random_below(&state, 65536 >> i % 16) + 1;
        const int64_t group = i % 5 == 0 ? groups : random_below(&state, groups),
                      want = cut_by_digits(line, group, groups);
        ck_assert_int_eq(mqa_logits_grid_cut(line, (int32_t)group, (int32_t)groups), want);
        if (line <= INT32_MAX)
            ck_assert_int_eq(mqa_logits_grid_share((int32_t)line, (int32_t)group, (int32_t)groups), want);
    }
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_test(t, cuts);
    tcase_add_loop_test(t, near_the_best, 0, SHAPES);
    tcase_add_loop_test(t, covers, 0, SHAPES);
}

int main(void)
{
    return testing_main("check_mqa_logits_grid", fill);
}
