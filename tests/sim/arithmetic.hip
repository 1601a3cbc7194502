/* tests/sim/arithmetic.h for the GPU. */
#define ARITHMETIC_ON_DEVICE
#include "arithmetic.h"
