#include "pa_mtp.h"

#define OP "pa_mtp"

/* [pages, Hkv, page_size, D] seen as [pages, page_size, Hkv, D]. */
static etalon_tensor as_nhd(etalon_tensor cache, etalon_kv_layout layout)
{
    if (layout == ETALON_KV_HND) {
        const int64_t slots = cache.shape[2], slot = cache.stride[2];
        cache.shape[2] = cache.shape[1];
        cache.stride[2] = cache.stride[1];
        cache.shape[1] = slots;
        cache.stride[1] = slot;
    }
    return cache;
}

static etalon_status check_tensors(const etalon_pa_mtp_args *a)
{
    TRY(tensor_check(OP, "q", &a->q, 3, DTYPES_OPERAND));
    TRY(tensor_check(OP, "k_cache", &a->k_cache, 4, DTYPES_OPERAND));
    TRY(tensor_check(OP, "v_cache", &a->v_cache, 4, DTYPE_BIT(a->k_cache.dtype)));
    TRY(tensor_check(OP, "block_tables", &a->block_tables, 2, DTYPE_BIT(ETALON_I32)));
    TRY(tensor_check(OP, "seq_lens", &a->seq_lens, 1, DTYPES_INDEX));
    TRY(tensor_check(OP, "cu_seqlens_q", &a->cu_seqlens_q, 1, DTYPES_INDEX));
    TRY(tensor_check(OP, "out", &a->out, 3, DTYPES_OUT));
    REQUIRE(a->kv_layout == ETALON_KV_NHD || a->kv_layout == ETALON_KV_HND,
            OP ": kv_layout: %d, expected a value of etalon_kv_layout", (int)a->kv_layout);
    return ETALON_OK;
}

static etalon_status check_extents(const etalon_pa_mtp_args *a, const pa_mtp_problem *p)
{
    TRY(attention_check_heads(OP, p->heads, p->kv_heads, p->d_qk, p->d_v));
    REQUIRE(p->page_size >= 1, OP ": page_size: %" PRId64 ", expected 1 or more", p->page_size);
    TRY(tensor_check_extent(OP, "k_cache", &a->k_cache, 3, p->d_qk, "head dim of q"));
    for (int32_t dim = 0; dim < 3; dim++)
        TRY(tensor_check_extent(OP, "v_cache", &a->v_cache, dim, a->k_cache.shape[dim], "that of k_cache"));
    TRY(tensor_check_extent(OP, "seq_lens", &a->seq_lens, 0, p->batch, "rows of block_tables"));
    TRY(tensor_check_extent(OP, "cu_seqlens_q", &a->cu_seqlens_q, 0, p->batch + 1, "rows of block_tables + 1"));
    TRY(tensor_check_extent(OP, "out", &a->out, 0, p->tokens, "tokens of q"));
    TRY(tensor_check_extent(OP, "out", &a->out, 1, p->heads, "heads of q"));
    TRY(tensor_check_extent(OP, "out", &a->out, 2, p->d_v, "head dim of v_cache"));
    TRY(attention_check_lse(OP, &a->lse, p->heads, p->tokens));
    TRY(attention_check_descale(OP, "q_descale", &a->q_descale, "q", &a->q, p->batch, p->kv_heads));
    TRY(attention_check_descale(OP, "k_descale", &a->k_descale, "k_cache", &a->k_cache, p->batch, p->kv_heads));
    TRY(attention_check_descale(OP, "v_descale", &a->v_descale, "v_cache", &a->v_cache, p->batch, p->kv_heads));
    return ETALON_OK;
}

static etalon_status check_memory(const etalon_pa_mtp_args *a)
{
    const char *const names[] = { "q",         "k_cache",   "v_cache",   "block_tables", "seq_lens", "cu_seqlens_q",
                                  "q_descale", "k_descale", "v_descale", "lse",          "out" };
    const etalon_tensor *const all[] = { &a->q,         &a->k_cache,      &a->v_cache,   &a->block_tables,
                                         &a->seq_lens,  &a->cu_seqlens_q, &a->q_descale, &a->k_descale,
                                         &a->v_descale, &a->lse,          &a->out };
    enum { INPUTS = 9, ALL = 11 };
    TRY(tensor_check_device(OP, names, all, ALL));
    if (!tensor_absent(&a->lse))
        TRY(tensor_check_output(OP, "lse", &a->lse, names, all, INPUTS));
    return tensor_check_output(OP, "out", &a->out, names, all, INPUTS + 1); /* lse included */
}

/* Host memory only: lengths, and every page id that a key of some sequence needs. */
static etalon_status check_content(const pa_mtp_problem *p)
{
    TRY(tensor_check_cu_seqlens(OP, "cu_seqlens_q", &p->cu_seqlens_q, p->tokens, "tokens of q"));
    for (int64_t b = 0; b < p->batch; b++) {
        const int64_t keys = index_at(&p->seq_lens, b), room = p->block_tables.shape[1];
        REQUIRE(keys >= 0, OP ": seq_lens[%" PRId64 "]: %" PRId64 ", expected 0 or more", b, keys);
        const int64_t need = keys / p->page_size + (keys % p->page_size != 0);
        REQUIRE(need <= room,
                OP ": seq_lens[%" PRId64 "]: %" PRId64 " keys fill %" PRId64 " pages of %" PRId64
                   ", expected at most the %" PRId64 " columns of block_tables",
                b, keys, need, p->page_size, room);
        for (int64_t j = 0; j < need; j++) {
            const int32_t page = *(const int32_t *)tensor_at2(&p->block_tables, b, j);
            REQUIRE(page >= 0 && page < p->pages,
                    OP ": block_tables[%" PRId64 ", %" PRId64 "]: page %" PRId32 ", expected 0 to %" PRId64, b, j, page,
                    p->pages - 1);
        }
    }
    return ETALON_OK;
}

etalon_status pa_mtp_check(const etalon_pa_mtp_args *args, pa_mtp_problem *p)
{
    etalon_pa_mtp_args a;
    TRY(gate_copy_args(OP, &a, sizeof a, args, args == NULL ? 0 : args->size));
    TRY(check_tensors(&a));
    const etalon_tensor k = as_nhd(a.k_cache, a.kv_layout), v = as_nhd(a.v_cache, a.kv_layout);
    *p = (pa_mtp_problem){ .tokens = a.q.shape[0],
                           .heads = a.q.shape[1],
                           .kv_heads = k.shape[2],
                           .d_qk = a.q.shape[2],
                           .d_v = v.shape[3],
                           .batch = a.block_tables.shape[0],
                           .pages = k.shape[0],
                           .page_size = k.shape[1],
                           .q = a.q,
                           .k = k,
                           .v = v,
                           .block_tables = a.block_tables,
                           .seq_lens = a.seq_lens,
                           .cu_seqlens_q = a.cu_seqlens_q,
                           .out = a.out,
                           .lse = a.lse,
                           .descale = { a.q_descale, a.k_descale, a.v_descale },
                           .mask = attention_mask_of(a.causal, a.window_left, a.window_right),
                           .device = a.q.device,
                           .kernel = a.kernel };
    TRY(check_extents(&a, p));
    TRY(attention_check_scale(OP, a.softmax_scale, p->d_qk, &p->softmax_scale));
    TRY(attention_check_model(OP, &a.model, &p->model));
    TRY(check_memory(&a));
    return p->device == ETALON_HOST ? check_content(p) : ETALON_OK;
}
