/* Self-qualification: a kernel for a device serves calls only after it has given known answers on that very device. */
#ifndef ETALON_QUALIFY_H
#define ETALON_QUALIFY_H

#include "context.h"

/* Runs every row of every table that a device of ctx can run, and notes in ctx those that failed, with the reason. */
void qualify(etalon_context *ctx);

#endif
