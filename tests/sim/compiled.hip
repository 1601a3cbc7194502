/* tests/sim/compiled.h for the GPU. */
#define COMPILED_ON_DEVICE
#include "compiled.h"
