#define SIMD_BYTES 16
#define PROBE generic
#include "simd_probe.h"
