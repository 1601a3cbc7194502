/* What simd_amx.h makes of numbers, element by element of a tile's row. */
#define SIMD_BYTES 64
#define SIMD_AMX 1
#include "simd_amx.h"
#include "simd_probes.h"

/* y[i] = the value of code x[i], i < 64, as it stands in a tile of q. */
void probe_amx_codes(const uint8_t *x, float *y, etalon_dtype dtype)
{
    const simd_fp8 format = simd_fp8_of(dtype);
    uint16_t       tiles[2 * AMX_TILE];
    amx_pack_codes(format, x, AMX_CODES, tiles, AMX_TILE);
    for (int d = 0; d < AMX_CODES; d++)
        y[d] = format.unit * f32_of_bf16(tiles[d % 2 * AMX_TILE + d / 4 * 2 + d / 2 % 2]);
}

/* y[t][i] = term t of x[i], i < 32. */
void probe_amx_split(const float *x, float *y)
{
    uint16_t tiles[AMX_TERMS * AMX_TILE];
    amx_split(simd_load(x), simd_load(x + SIMD_LANES), AMX_TERMS, tiles);
    for (int t = 0; t < AMX_TERMS; t++)
        for (int i = 0; i < AMX_STEP; i++)
            y[t * AMX_STEP + i] = f32_of_bf16(tiles[t * AMX_TILE + i % 16 * 2 + i / 16]);
}

/* c[16 * 16] = a b for A [16 rows][16 pairs][2] and B [16 pairs][16 columns][2]. */
void probe_amx_multiply(const uint16_t *a, const uint16_t *b, float *c)
{
    const amx_product p = { .a = a, .b = b, .b_column = 0, .steps = 1, .terms = 1 };
    float             twice[AMX_ROWS * 2 * AMX_ROWS];
    amx_begin(AMX_ROWS);
    amx_multiply(&p, AMX_ROWS, 2, false, twice, 2 * AMX_ROWS);
    amx_end();
    for (int r = 0; r < AMX_ROWS; r++)
        memcpy(c + r * AMX_ROWS, twice + r * 2 * AMX_ROWS, AMX_ROWS * sizeof *c);
}
