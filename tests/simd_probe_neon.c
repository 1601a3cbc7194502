#define SIMD_BYTES 16
#define PROBE neon
#include "simd_probe.h"
