#include "error.h"

#include <etalon/version.h>
#include <stdarg.h>
#include <stdio.h>

static _Thread_local char last_error[512];

const char *etalon_status_string(int status)
{
    switch (status) {
#define STATUS(class, text) \
    case class:             \
        return text;
#include "status.def"
#undef STATUS
    }
    return "unknown status";
}

const char *etalon_last_error(void)
{
    return last_error;
}

const char *etalon_version(void)
{
    return ETALON_VERSION;
}

etalon_status etalon_reject(etalon_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(last_error, sizeof last_error, format, arguments);
    va_end(arguments);
    return status;
}
