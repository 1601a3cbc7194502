/* One query row over the keys that it sees: the part that pa_mtp and fmha_varlen share. */
#ifndef ETALON_ATTEND_H
#define ETALON_ATTEND_H

#include "attention_check.h"

/* The keys of one (sequence, KV head). Key j is slot j % page_size of page table[j / page_size]; without a table the
 * keys are one page. */
typedef struct attend_keys {
    const char    *k, *v; /* slot 0 of page 0 */
    etalon_dtype   dtype;
    int64_t        k_slot, v_slot, k_page, v_page; /* bytes from one slot, or page, to the next */
    int64_t        k_stride, v_stride;             /* elements along the head dim */
    int64_t        d_qk, d_v;
    int64_t        page_size;
    const int32_t *table;
    int64_t        table_stride; /* elements */
} attend_keys;

/* Key j of K or V: base, page and slot are those of `keys`. */
static inline const char *attend_key_at(const attend_keys *keys, const char *base, int64_t page, int64_t slot,
                                        int64_t j)
{
    const int64_t id = keys->table == NULL ? 0 : keys->table[j / keys->page_size * keys->table_stride];
    return base + id * page + j % keys->page_size * slot;
}

/* One row: q decoded, and factors with all descales folded in. */
typedef struct attend_row {
    float     q[ETALON_MAX_HEAD_DIM];
    float     scale; /* softmax_scale * q_descale * k_descale */
    float     v_descale;
    key_range see;
} attend_row;

/* out[d] and the return value, the row's LSE, by the formula of <etalon/attention.h> in fp32. */
float attend(const attend_keys *keys, const attend_row *row, float *out);

/* The same with the weights rounded to E4M3FN; the LSE has the bits of attend(). */
float attend_model(const attend_keys *keys, const attend_row *row, const etalon_model_options *model, float *out);

/* Row (t, h) of out [T, H, D] and of lse [H, T], if that is present. */
void attend_store(const float *out, float lse, const etalon_tensor *to_out, const etalon_tensor *to_lse, int64_t t,
                  int64_t h);

#endif
