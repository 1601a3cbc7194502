#define SIMD_BYTES 32
#define SIMD_PAGED 1
#define SIMD_STEM mqa_logits_paged_avx2
#include "mqa_logits_simd.h"
