/* The argument of the kernels of pa_mtp for gfx950: etalon_pa_mtp_plan_gfx950, one of etalon_pa_mtp_e4m3_d256_*_gfx950
 * and etalon_pa_mtp_reduce_d256_gfx950, which run in this order. */
#ifndef ETALON_PA_MTP_GFX950_H
#define ETALON_PA_MTP_GFX950_H

/* Offsets in the argument, as the kernels in assembly have them. */
#define KA_Q 0
#define KA_K 8
#define KA_OUT 24
#define KA_LSE 32
#define KA_Q_DESCALE 40
#define KA_K_DESCALE 48
#define KA_V_DESCALE 56
#define KA_TABLE 80
#define KA_TASKS 88
#define KA_ROWS 96
#define KA_PARTS 104
#define KA_Q_STRIDE 112
#define KA_K_PAGE 128
#define KA_K_HEAD 136
#define KA_V_PAGE 144
#define KA_V_HEAD 152
#define KA_OUT_STRIDE 160
#define KA_LSE_STRIDE 176
#define KA_TABLE_ROW 192
#define KA_Q_DESCALE_STRIDE 200
#define KA_K_DESCALE_STRIDE 216
#define KA_V_DESCALE_STRIDE 232
#define KA_K_SLOT 264
#define KA_SCALE 296
#define KA_Q_SHIFT 300
#define KA_KV_HEADS 304
#define KA_GQA 320
#define KA_SIZE 328

/* A part, in bytes: F32 O [64, 256], M [64], l [64]. */
#define PART_M (64 * 256 * 4)
#define PART_SIZE (PART_M + 2 * 64 * 4)

#ifndef __ASSEMBLER__

#include <etalon/types.h>

#include <stddef.h>

enum {
    PA_MTP_GFX950_D = 256,
    PA_MTP_GFX950_PAGE = 16,
    PA_MTP_GFX950_ROWS = 64,            /* of a task: (token, query head) of one sequence and KV head */
    PA_MTP_GFX950_TILE = 128,           /* keys: what a segment's length is a multiple of */
    PA_MTP_GFX950_PART = PART_SIZE / 4, /* F32 of a task and KV head */
    PA_MTP_GFX950_ITEMS = 512,          /* of a workgroup */
    PA_MTP_GFX950_PLAN_ITEMS = 256,
    PA_MTP_GFX950_REDUCE_ITEMS = 512
};

/* Of the plan: rows of one sequence, and keys that they read. b < 0: none. */
typedef struct pa_mtp_gfx950_task {
    int32_t b, token, tokens; /* the first, counted in all of q, and how many */
    int32_t first, last;      /* keys */
    int32_t limit;            /* the first token's keys end here, those of each later one a key later */
    int32_t unused[2];
} pa_mtp_gfx950_task;

/* Of the plan: where the parts of a token's rows are. */
typedef struct pa_mtp_gfx950_row {
    int32_t task, step, count; /* the first segment's task, to the next one's, and how many */
    int32_t row;               /* of the part: the token's first query head */
} pa_mtp_gfx950_row;

/* Addresses of element 0, 0 where absent; strides in bytes, 0 where one factor serves all. */
typedef struct pa_mtp_gfx950 {
    uint64_t q, k, v, out, lse;
    uint64_t descale[3];     /* of q, k and v */
    uint64_t cu_seqlens_q;   /* [B + 1] */
    uint64_t lengths;        /* [B] */
    uint64_t table;          /* [B, pages], unit stride in pages */
    uint64_t tasks, rows;    /* pa_mtp_gfx950_task [most_tasks], pa_mtp_gfx950_row [tokens] */
    uint64_t parts;          /* F32 [most_tasks, Hkv, PART] */
    int64_t  q_stride[2];    /* token, head */
    int64_t  k_page, k_head; /* of the page and the KV head */
    int64_t  v_page, v_head;
    int64_t  out_stride[2]; /* token, head */
    int64_t  lse_stride[2]; /* head, token */
    int64_t  table_row;
    int64_t  descale_stride[3][2]; /* sequence, KV head */
    int64_t  cu_seqlens_q_stride, lengths_stride;
    int32_t  k_slot, v_slot;
    int64_t  batch, tokens;
    int64_t  right;         /* keys right of the diagonal that a row sees, less than 2^31 */
    float    softmax_scale; /* times log2(e) */
    int32_t  q_shift;       /* log2 of the bytes of an element of q: 1 BF16, 0 E4M3FN */
    int32_t  kv_heads, heads;
    int32_t  most_tasks, wanted_tasks; /* of a KV head: what the plan may have, and what it aims at */
    int32_t  ratio;                    /* query heads of a KV head */
    int32_t  out_is_f32;               /* or BF16 */
} pa_mtp_gfx950;

#if defined(__cplusplus)
#define PA_MTP_GFX950_AT(field, at) static_assert(offsetof(pa_mtp_gfx950, field) == (at), #field)
#else
#define PA_MTP_GFX950_AT(field, at) _Static_assert(offsetof(pa_mtp_gfx950, field) == (at), #field)
#endif
PA_MTP_GFX950_AT(q, KA_Q);
PA_MTP_GFX950_AT(k, KA_K);
PA_MTP_GFX950_AT(out, KA_OUT);
PA_MTP_GFX950_AT(lse, KA_LSE);
PA_MTP_GFX950_AT(descale[0], KA_Q_DESCALE);
PA_MTP_GFX950_AT(descale[1], KA_K_DESCALE);
PA_MTP_GFX950_AT(descale[2], KA_V_DESCALE);
PA_MTP_GFX950_AT(table, KA_TABLE);
PA_MTP_GFX950_AT(tasks, KA_TASKS);
PA_MTP_GFX950_AT(rows, KA_ROWS);
PA_MTP_GFX950_AT(parts, KA_PARTS);
PA_MTP_GFX950_AT(q_stride, KA_Q_STRIDE);
PA_MTP_GFX950_AT(k_page, KA_K_PAGE);
PA_MTP_GFX950_AT(k_head, KA_K_HEAD);
PA_MTP_GFX950_AT(v_page, KA_V_PAGE);
PA_MTP_GFX950_AT(v_head, KA_V_HEAD);
PA_MTP_GFX950_AT(out_stride, KA_OUT_STRIDE);
PA_MTP_GFX950_AT(lse_stride, KA_LSE_STRIDE);
PA_MTP_GFX950_AT(table_row, KA_TABLE_ROW);
PA_MTP_GFX950_AT(descale_stride[0], KA_Q_DESCALE_STRIDE);
PA_MTP_GFX950_AT(descale_stride[1], KA_K_DESCALE_STRIDE);
PA_MTP_GFX950_AT(descale_stride[2], KA_V_DESCALE_STRIDE);
PA_MTP_GFX950_AT(k_slot, KA_K_SLOT);
PA_MTP_GFX950_AT(softmax_scale, KA_SCALE);
PA_MTP_GFX950_AT(q_shift, KA_Q_SHIFT);
PA_MTP_GFX950_AT(kv_heads, KA_KV_HEADS);
PA_MTP_GFX950_AT(ratio, KA_GQA);
#undef PA_MTP_GFX950_AT

#if !defined(__HIP__) && !defined(__CUDA__)

#include "omp_host.h"
#include "pa_mtp.h"

/* Tasks of a KV head that a plan can have at most: each group of rows has up to one segment that is not full. */
static inline int64_t pa_mtp_gfx950_most_tasks(const pa_mtp_problem *p, int64_t wanted)
{
    const int64_t rows = p->tokens * (p->heads / p->kv_heads);
    return wanted + rows / PA_MTP_GFX950_ROWS + p->batch;
}

/* Where the parts of a workspace begin, and where it ends. */
typedef struct pa_mtp_gfx950_layout {
    size_t rows, parts, bytes;
} pa_mtp_gfx950_layout;

static inline size_t pa_mtp_gfx950_aligned(int64_t bytes)
{
    const size_t align = ETALON_WORKSPACE_ALIGN;
    return ((size_t)bytes + align - 1) / align * align;
}

static inline pa_mtp_gfx950_layout pa_mtp_gfx950_layout_of(const pa_mtp_problem *p, int64_t wanted)
{
    const int64_t        tasks = pa_mtp_gfx950_most_tasks(p, wanted);
    pa_mtp_gfx950_layout l;
    l.rows = pa_mtp_gfx950_aligned(tasks * (int64_t)sizeof(pa_mtp_gfx950_task));
    l.parts = l.rows + pa_mtp_gfx950_aligned(p->tokens * (int64_t)sizeof(pa_mtp_gfx950_row));
    l.bytes = l.parts + pa_mtp_gfx950_aligned(tasks * p->kv_heads * PA_MTP_GFX950_PART * (int64_t)sizeof(float));
    return l;
}

/* `wanted` tasks for each KV head; `work` is the address of the workspace. */
static inline pa_mtp_gfx950 pa_mtp_gfx950_of(const pa_mtp_problem *p, uint64_t work, int64_t wanted)
{
    const pa_mtp_gfx950_layout l = pa_mtp_gfx950_layout_of(p, wanted);
    const int64_t q = (int64_t)etalon_dtype_bytes(p->q.dtype), o = (int64_t)etalon_dtype_bytes(p->out.dtype);
    pa_mtp_gfx950 args = { .q = omp_address(&p->q),
                           .k = omp_address(&p->k),
                           .v = omp_address(&p->v),
                           .out = omp_address(&p->out),
                           .lse = omp_address(&p->lse),
                           .cu_seqlens_q = omp_address(&p->cu_seqlens_q),
                           .lengths = omp_address(&p->seq_lens),
                           .table = omp_address(&p->block_tables),
                           .tasks = work,
                           .rows = work + l.rows,
                           .parts = work + l.parts,
                           .q_stride = { q * p->q.stride[0], q * p->q.stride[1] },
                           .k_page = p->k.stride[0],
                           .k_head = p->k.stride[2],
                           .v_page = p->v.stride[0],
                           .v_head = p->v.stride[2],
                           .out_stride = { o * p->out.stride[0], o * p->out.stride[1] },
                           .lse_stride = { 4 * p->lse.stride[0], 4 * p->lse.stride[1] },
                           .table_row = 4 * p->block_tables.stride[0],
                           .k_slot = (int32_t)p->k.stride[1],
                           .v_slot = (int32_t)p->v.stride[1],
                           .batch = p->batch,
                           .tokens = p->tokens,
                           .right = p->mask.right < INT32_MAX ? p->mask.right : INT32_MAX,
                           .softmax_scale = (float)(p->softmax_scale * 1.4426950408889634 /* log2(e) */),
                           .q_shift = p->q.dtype == ETALON_BF16,
                           .kv_heads = (int32_t)p->kv_heads,
                           .heads = (int32_t)p->heads,
                           .most_tasks = (int32_t)pa_mtp_gfx950_most_tasks(p, wanted),
                           .wanted_tasks = (int32_t)wanted,
                           .ratio = (int32_t)(p->heads / p->kv_heads),
                           .out_is_f32 = p->out.dtype == ETALON_F32 };
    const etalon_tensor *const descale[3] = { &p->descale.q, &p->descale.k, &p->descale.v };
    for (int i = 0; i < 3; i++) {
        args.descale[i] = omp_address(descale[i]);
        for (int32_t dim = 0; dim < 2 && descale[i]->rank == 2; dim++)
            args.descale_stride[i][dim] = 4 * descale[i]->stride[dim];
    }
    args.cu_seqlens_q_stride = (int64_t)etalon_dtype_bytes(p->cu_seqlens_q.dtype) * p->cu_seqlens_q.stride[0];
    args.lengths_stride = (int64_t)etalon_dtype_bytes(p->seq_lens.dtype) * p->seq_lens.stride[0];
    return args;
}

#endif

#endif

#endif
