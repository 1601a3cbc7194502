#define SIMD_BYTES 16
#define SIMD_STEM mqa_logits_neon
#include "mqa_logits_simd.h"
