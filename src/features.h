/* CPU features: one bit each, from the table in features.def. */
#ifndef ETALON_FEATURES_H
#define ETALON_FEATURES_H

#include <etalon/types.h>

/* What a kernel needs and a context has. */
enum {
    NEEDS_NONE = 0,
#define FEATURE(bit, number, option, what, missing) bit = 1 << number,
#include "features.def"
#undef FEATURE
};

/* What this CPU has and its operating system saves at a switch of threads. */
uint32_t features_detect(void);

/* Takes the features from `have` that the list names ("avx512,avx2"; NULL and "" name none). An unknown name is
 * refused and leaves `have` as it was. */
etalon_status features_disable(const char *list, uint32_t *have);

#endif
