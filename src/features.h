/* Features of the CPU and of a context's device: one bit each, from the table in features.def. */
#ifndef ETALON_FEATURES_H
#define ETALON_FEATURES_H

#include <etalon/types.h>

/* What a kernel needs and a context has. */
enum {
    NEEDS_NONE = 0,
#define FEATURE(bit, number, option, what, missing) bit = 1 << number,
#include "features.def"
#undef FEATURE
    NEEDS_DEVICE = NEEDS_OFFLOAD | NEEDS_GFX950 | NEEDS_GFX1250 /* what no context has without a device */
};

/* What a device of that architecture brings. */
uint32_t features_of_device(const char *arch);

/* The architecture that these needs are of: "gfx950"; NULL: none in particular. */
const char *features_arch(uint32_t needs);

/* What this CPU has and its operating system saves at a switch of threads. */
uint32_t features_detect(void);

/* Takes the features from `have` that the list names ("avx512,avx2"; NULL and "" name none); "offload" takes all that
 * a device brings. An unknown name is refused and leaves `have` as it was. */
etalon_status features_disable(const char *list, uint32_t *have);

#endif
