#define SIMD_BYTES 32
#define SIMD_STEM mqa_logits_avx2
#include "mqa_logits_simd.h"
