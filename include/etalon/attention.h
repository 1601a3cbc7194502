/* What pa_mtp and fmha_varlen share: masks, descales, options of the rounding model. */
#ifndef ETALON_ATTENTION_H
#define ETALON_ATTENTION_H

#include <etalon/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The softmax that both operations compute
 * ----------------------------------------
 * For query row i of a sequence with Sq query rows and Sk keys, c = Sk - Sq (bottom-right alignment):
 *
 *   visible(i) = { j : 0 <= j < Sk,
 *                      j <= i + c                 if causal,
 *                      j >= i + c - window_left   if window_left >= 0,
 *                      j <= i + c + window_right  if window_right >= 0 }
 *   s[j]   = softmax_scale * (q_descale * q[i, :]) . (k_descale * k[j, :])
 *   lse[i] = ln sum_{j visible} exp(s[j])
 *   out[i] = sum_{j visible} exp(s[j] - lse[i]) * (v_descale * v[j, :])
 *
 * A negative window is unlimited and 0 has zero width; causal makes window_right 0. A row that sees no key, or a
 * sequence without keys, gives out = 0 and lse = -inf. Memory outside the visible keys is never interpreted: NaN
 * there reaches no output. NaN in a visible key or in q reaches the outputs of the rows that see it.
 */

#define ETALON_WINDOW_UNLIMITED (-1)

/* How a row that rounds the weights P = exp(s - m) to E4M3FN scales them first. Keys are walked in tiles, ascending;
 * tiles and blocks are counted from key 0 of the sequence.
 *
 *   FIXED     P^ = e4m3(2^8 exp(s - m)), m the running maximum up to and including the tile: weights of a tile under an
 *             older, larger maximum fall below 2^-18 of it and vanish                     [FA3], [SGL-MTP]
 *   TILE      P^ = e4m3(2^8 exp(s - m_t)), m_t the tile's own maximum; the tile's P^ V is then weighted by exp(m_t - m)
 *   BLOCK32   as FIXED without the 2^8, but each block of 32 keys is divided before rounding by its own power of two,
 *             X = 2^ceil(log2(max P / 448)), as an E8M0 operand scale does                    [OCP-MX]
 *
 * x being what is rounded, P^ has p_terms of them: t[1] = e4m3(x), t[2] = e4m3(x - t[1]), as a kernel does that
 * multiplies V by the rest of P too.
 */
typedef enum etalon_p_scale { ETALON_P_SCALE_FIXED = 0, ETALON_P_SCALE_TILE, ETALON_P_SCALE_BLOCK32 } etalon_p_scale;

/* Read by the `_model` rows only. */
typedef struct etalon_model_options {
    etalon_p_scale p_scale;
    int32_t        tile_keys; /* keys a tile: a multiple of 32 up to 1024; 0: 128 */
    int32_t        p_terms;   /* E4M3 terms of P: 1 or 2; 0: 1 */
} etalon_model_options;

#ifdef __cplusplus
}
#endif

#endif
