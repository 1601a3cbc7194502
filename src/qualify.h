/* Self-qualification: a kernel for a device serves calls only after it has given known answers on that very device. */
#ifndef ETALON_QUALIFY_H
#define ETALON_QUALIFY_H

#include "gate.h"

#include <stdbool.h>

/* Runs every row of every table that the device of ctx can run, and notes in ctx those that failed, with the reason. */
etalon_status qualify(etalon_context *ctx);

/* Whether one of the known answers is of a problem that the row takes. Needs no device. */
bool qualify_knows(const etalon_context *ctx, const gate *table, const gate_row *row);

#endif
