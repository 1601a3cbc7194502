#define SIMD_BYTES 64
#define SIMD_PAGED 1
#define SIMD_STEM mqa_logits_paged_avx512
#include "mqa_logits_simd.h"
