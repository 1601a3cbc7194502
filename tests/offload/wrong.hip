/* Kernels of the names of all that the library has for the architecture: they take what those take, and write nothing. */
typedef struct wrong_args {
    char bytes[768];
} wrong_args;

#define WRONG(stem) extern "C" __attribute__((global)) void etalon_##stem(wrong_args) {}

#if defined(__gfx950__)
#define WRONG_gfx950(stem) WRONG(stem)
#define WRONG_gfx1250(stem)
#else
#define WRONG_gfx950(stem)
#define WRONG_gfx1250(stem) WRONG(stem)
#endif
#define WRONG_sm_90(stem)

#define OBJECT(stem, arch, file) WRONG_##arch(stem)
#include "src/code_objects.def"
