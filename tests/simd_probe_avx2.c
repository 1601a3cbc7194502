#define SIMD_BYTES 32
#define PROBE avx2
#include "simd_probe.h"
