/* Where a result is wrong, as a picture: a grid over the first two axes, a grid over the first and tiles of the last,
 * and a line that names the pattern if it is regular. */
#include "xcheck.h"

#include <inttypes.h>

enum { GRID_LINES = 48, GRID_COLUMNS = 96, COLUMN_TILE = 16 };

/* Flags: '.' right, '#' beyond its bound, 'N' NaN or infinity on one side, '_' unwritten. In a cell that stands for
 * several elements the gravest shows; a cell that is partly right shows '+' in place of '#'. */
static int gravity(char flag)
{
    return (int)(strchr(".#N_", flag) - ".#N_");
}

typedef struct cell {
    int64_t all, wrong;
    char    worst;
} cell;

static void cell_add(cell *c, char flag)
{
    c->all++;
    c->wrong += flag != '.';
    if (c->worst == '\0' || gravity(flag) > gravity(c->worst))
        c->worst = flag;
}

static char cell_char(const cell *c)
{
    if (c->all == 0)
        return ' ';
    return c->worst == '#' && c->wrong < c->all ? '+' : c->worst;
}

/* Elements of two axes, and how many of them one character covers. */
typedef struct grid {
    int64_t lines, columns, line_step, column_step;
    cell   *cells;
} grid;

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static grid grid_make(int64_t lines, int64_t columns, int64_t column_step)
{
    grid g = { .line_step = ceil_div(lines, GRID_LINES), .column_step = column_step };
    while (ceil_div(columns, g.column_step) > GRID_COLUMNS)
        g.column_step *= 2;
    g.line_step = g.line_step < 1 ? 1 : g.line_step;
    g.lines = ceil_div(lines, g.line_step);
    g.columns = ceil_div(columns, g.column_step);
    g.cells = calloc((size_t)(g.lines * g.columns) + 1, sizeof *g.cells);
    return g;
}

static void grid_add(grid *g, int64_t line, int64_t column, char flag)
{
    cell_add(&g->cells[line / g->line_step * g->columns + column / g->column_step], flag);
}

static void grid_print(const grid *g, const char *line, const char *column, FILE *to)
{
    fprintf(to, "  %s down", line);
    if (g->line_step > 1)
        fprintf(to, " (%" PRId64 " a line)", g->line_step);
    fprintf(to, ", %s across", column);
    if (g->column_step > 1)
        fprintf(to, " (%" PRId64 " a character)", g->column_step);
    fprintf(to, "; . right  # wrong  + partly wrong  N NaN or infinity  _ unwritten\n");
    for (int64_t i = 0; i < g->lines; i++) {
        fprintf(to, "  %6" PRId64 " ", i * g->line_step);
        for (int64_t j = 0; j < g->columns; j++)
            fputc(cell_char(&g->cells[i * g->columns + j]), to);
        fputc('\n', to);
    }
}

/* Patterns along one axis
 * ----------------------- */

/* Fits "wrong[i] depends on i % period alone", with one run of wrong positions in each period; 0: none does. */
static int64_t period_of(const bool *wrong, int64_t n)
{
    for (int64_t period = 2; 2 * period <= n; period++) {
        bool fits = true;
        for (int64_t i = period; i < n && fits; i++)
            fits = wrong[i] == wrong[i - period];
        if (fits)
            return period;
    }
    return 0;
}

/* First and last wrong position of [0, n), and whether they are one run. */
typedef struct run {
    int64_t first, last, count;
} run;

static run run_of(const bool *wrong, int64_t n)
{
    run r = { -1, -1, 0 };
    for (int64_t i = 0; i < n; i++)
        if (wrong[i]) {
            r.first = r.count == 0 ? i : r.first;
            r.last = i;
            r.count++;
        }
    return r;
}

static bool is_one_run(const run *r)
{
    return r->count == r->last - r->first + 1;
}

/* Writes which positions are wrong; false if there is no rule to it. */
static bool axis_words(const char *name, const bool *wrong, int64_t n, char *text, size_t bytes)
{
    const run r = run_of(wrong, n);
    if (r.count == n) {
        snprintf(text, bytes, "every %s", name);
        return true;
    }
    if (r.count == 1) {
        snprintf(text, bytes, "%s %" PRId64 "%s", name, r.first, r.first == n - 1 ? " (the last)" : "");
        return true;
    }
    if (is_one_run(&r)) {
        snprintf(text, bytes, "%ss %" PRId64 " to %" PRId64 "%s", name, r.first, r.last,
                 r.last == n - 1 ? " (the end)" : "");
        return true;
    }
    const int64_t period = period_of(wrong, n);
    const run     inner = run_of(wrong, period);
    if (period == 0 || !is_one_run(&inner))
        return false;
    if (inner.count == 1)
        snprintf(text, bytes, "every %" PRId64 "%s %s, from %" PRId64 " on", period,
                 period % 10 == 2 && period % 100 != 12   ? "nd"
                 : period % 10 == 3 && period % 100 != 13 ? "rd"
                                                          : "th",
                 name, inner.first);
    else
        snprintf(text, bytes, "%ss %" PRId64 " to %" PRId64 " of every %" PRId64, name, inner.first, inner.last,
                 period);
    return true;
}

/* Positions of an axis at which something is wrong. */
static void project(const xcheck_picture *p, int32_t axis, bool *wrong)
{
    int64_t inner = 1, count = 1;
    for (int32_t d = 0; d < p->rank; d++) {
        count *= p->shape[d];
        inner *= d > axis ? p->shape[d] : 1;
    }
    for (int64_t i = 0; i < count; i++)
        if (p->flags[i] != '.')
            wrong[i / inner % p->shape[axis]] = true;
}

static void name_pattern(const xcheck_picture *p, FILE *to)
{
    char    words[3][96];
    int64_t product = 1, wrong = 0, all = 1;
    bool    regular = true;
    for (int32_t d = 0; d < p->rank; d++) {
        bool *at = calloc((size_t)p->shape[d] + 1, sizeof *at);
        project(p, d, at);
        regular = axis_words(p->axis[d], at, p->shape[d], words[d], sizeof words[d]) && regular;
        product *= run_of(at, p->shape[d]).count;
        all *= p->shape[d];
        free(at);
    }
    for (int64_t i = 0; i < all; i++)
        wrong += p->flags[i] != '.';
    fprintf(to, "  pattern: ");
    /* The axes tell the whole story only if most of what they single out is wrong. */
    if (!regular || 2 * wrong < product) {
        fprintf(to, "none that is regular, %" PRId64 " of %" PRId64 " elements\n", wrong, all);
        return;
    }
    for (int32_t d = 0; d < p->rank; d++)
        fprintf(to, "%s%s", d > 0 ? "; " : "", words[d]);
    fprintf(to, "%s (%" PRId64 " of %" PRId64 " elements)\n", wrong == product ? "" : ", most of them", wrong, all);
}

void xcheck_draw(const xcheck_picture *p, FILE *to)
{
    const int64_t inner = p->rank == 3 ? p->shape[2] : 1, columns = p->shape[p->rank - 1];
    int64_t       all = inner * p->shape[0] * p->shape[1];
    grid          cells = grid_make(p->shape[0], p->shape[1], 1);
    for (int64_t i = 0; i < all; i++)
        grid_add(&cells, i / inner / p->shape[1], i / inner % p->shape[1], p->flags[i]);
    grid_print(&cells, p->axis[0], p->axis[1], to);
    free(cells.cells);
    if (p->rank == 3) {
        grid tiles = grid_make(p->shape[0], columns, columns > COLUMN_TILE ? COLUMN_TILE : 1);
        for (int64_t i = 0; i < all; i++)
            grid_add(&tiles, i / inner / p->shape[1], i % columns, p->flags[i]);
        grid_print(&tiles, p->axis[0], p->axis[2], to);
        free(tiles.cells);
    }
    name_pattern(p, to);
}
