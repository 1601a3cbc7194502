/* Take what the kernels in hip/ take, and write nothing. */
typedef struct wrong_args {
    char bytes[768];
} wrong_args;

#define KERNEL extern "C" __attribute__((global)) void

KERNEL etalon_fmha_varlen_omp(wrong_args) {}
KERNEL etalon_mqa_logits_omp(wrong_args) {}
KERNEL etalon_pa_mtp_omp(wrong_args) {}
KERNEL etalon_pa_mtp_plan_omp(wrong_args) {}
KERNEL etalon_pa_mtp_reduce_omp(wrong_args) {}
