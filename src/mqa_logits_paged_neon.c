#define SIMD_BYTES 16
#define SIMD_PAGED 1
#define SIMD_STEM mqa_logits_paged_neon
#include "mqa_logits_simd.h"
