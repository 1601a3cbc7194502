#include "launch.h"

#include <dlfcn.h>
#include <string.h>

void *launch_library(const char *const *names)
{
    void *library = NULL;
    for (int i = 0; names[i] != NULL && library == NULL; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_NOLOAD);
    return library;
}

bool launch_load(void *library, const launch_symbol *symbols, int count, const char **missing)
{
    for (int i = 0; i < count; i++) {
        *symbols[i].to = dlsym(library, symbols[i].name);
        if (*symbols[i].to == NULL) {
            *missing = symbols[i].name;
            return false;
        }
    }
    return true;
}

int launch_find(const code_object *const *kernels, int count, const char *stem)
{
    for (int i = 0; i < count; i++)
        if (strcmp(kernels[i]->stem, stem) == 0)
            return i;
    return -1;
}

etalon_status launch_choose(const char *runtime, const char *arch, const code_object *objects,
                            const code_object *kernels[LAUNCH_MAX_KERNELS], int *count)
{
    *count = 0;
    for (const code_object *o = objects; o->stem != NULL && *count < LAUNCH_MAX_KERNELS; o++)
        if (strcmp(o->arch, arch) == 0)
            kernels[(*count)++] = o;
    if (*count == 0)
        return etalon_reject(ETALON_ERROR_DEVICE, "%s: no kernel was built for %s", runtime, arch);
    return ETALON_OK;
}
