#include <etalon/etalon.h>
#include <stdio.h>
#include <stdlib.h>

/* One head of dim 2, two queries on two keys, E4M3FN codes: 0x38 is 1 and 0x40 is 2. */
static unsigned char q[4] = { 0x38, 0, 0, 0x38 }, k[4] = { 0x40, 0, 0, 0x40 }, v[4] = { 0x38, 0, 0, 0x38 };
static int           cu[2] = { 0, 2 };
static float         out[4], lse[2];

int main(void)
{
    const int64_t           rows[] = { 2, 1, 2 }, bounds[] = { 2 }, row[] = { 1, 2 };
    etalon_context         *ctx = NULL;
    etalon_workspace        work = { 0 };
    etalon_fmha_varlen_args args = ETALON_FMHA_VARLEN_ARGS_INIT;
    args.q = etalon_tensor_dense(q, ETALON_E4M3FN, 3, rows);
    args.k = etalon_tensor_dense(k, ETALON_E4M3FN, 3, rows);
    args.v = etalon_tensor_dense(v, ETALON_E4M3FN, 3, rows);
    args.cu_seqlens_q = args.cu_seqlens_k = etalon_tensor_dense(cu, ETALON_I32, 1, bounds);
    args.out = etalon_tensor_dense(out, ETALON_F32, 3, rows);
    args.lse = etalon_tensor_dense(lse, ETALON_F32, 2, row);

    int bad = etalon_context_create(NULL, &ctx) || etalon_fmha_varlen_workspace_bytes(ctx, &args, &work.bytes);
    work.data = aligned_alloc(ETALON_WORKSPACE_ALIGN, work.bytes);
    if (bad || etalon_fmha_varlen(ctx, &args, work)) {
        fprintf(stderr, "%s\n", etalon_last_error());
        return 1;
    }
    printf("out %.4f %.4f | %.4f %.4f  lse %.4f %.4f\n", out[0], out[1], out[2], out[3], lse[0], lse[1]);
    free(work.data);
    etalon_context_destroy(ctx);
    return 0;
}
