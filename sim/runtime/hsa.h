/* What the two files of the HSA stand-in share. */
#ifndef ETALON_HSA_H
#define ETALON_HSA_H

#include "hsa_api.h"
#include "runtime.h"

/* Agent 1 is the CPU; GPU n is agent n + 2. */
enum { HSA_CPU = 1, HSA_FIRST_GPU = 2 };

/* Device number, RUNTIME_HOST for the CPU; false: no such agent, or not initialised. */
bool hsa_device_of_agent(hsa_agent_t agent, int *device);

#endif
