/* What tests/offload/probe.hip takes. */
#ifndef ETALON_PROBE_H
#define ETALON_PROBE_H

typedef struct probe_args {
    const float *x;
    float       *y;
    long long    count;
    float        a;
    int          rounds;
} probe_args;

#endif
