/* Opens the library of the first argument, asks for a context on the device of the second, closes it, twice: prints "ok"
 * or the sentence each time. Built also with an OpenMP image for the host's processor, as a program of somebody else's may
 * be. */
#include <etalon/types.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static int create(void *library, int device)
{
    etalon_context_options              options = ETALON_CONTEXT_OPTIONS_INIT;
    etalon_context                     *ctx = NULL;
    __typeof__(etalon_context_create)  *make = (__typeof__(make))dlsym(library, "etalon_context_create");
    __typeof__(etalon_context_destroy) *destroy = (__typeof__(destroy))dlsym(library, "etalon_context_destroy");
    __typeof__(etalon_last_error)      *sentence = (__typeof__(sentence))dlsym(library, "etalon_last_error");
    if (make == NULL || destroy == NULL || sentence == NULL)
        return puts("a function is missing"), 1;
    options.device = device;
    const etalon_status status = make(&options, &ctx);
    puts(status == ETALON_OK ? "ok" : sentence());
    destroy(ctx);
    return 0;
}

int main(int argc, char **argv)
{
#ifdef WITH_IMAGE
    int here = argc;
#pragma omp target map(tofrom : here)
    here++;
    if (here != argc + 1)
        return 1;
#endif
    for (int i = 0; i < 2 && argc == 3; i++) {
        void *library = dlopen(argv[1], RTLD_NOW);
        if (library == NULL)
            return puts(dlerror()), 1;
        if (create(library, atoi(argv[2])) != 0)
            return 1;
        dlclose(library);
    }
    return argc != 3;
}
