/* NAME.bin and NAME.meta, as aiter's tensor_dump writes them: the bytes of a contiguous tensor, and str() of its shape
 * and of its dtype, a line each. */
#include "tensorfile_formats.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_META = 4096 /* two short lines; more is another kind of file */ };

static void member_name(const char *member, const char *suffix, char *name, size_t bytes)
{
    snprintf(name, bytes, "%.*s", (int)(strlen(member) - strlen(suffix)), member);
}

/* Takes white space from both ends. */
static char *trim(char *text)
{
    static const char space[] = " \t\r";
    text += strspn(text, space);
    size_t length = strlen(text);
    while (length > 0 && strchr(space, text[length - 1]) != NULL)
        length--;
    text[length] = '\0';
    return text;
}

/* Takes one pair of brackets away: true if it stood there. */
static bool unwrap(char **text, const char *open, const char *close)
{
    const size_t length = strlen(*text), first = strlen(open), last = strlen(close);
    if (length < first + last || strncmp(*text, open, first) != 0 || strcmp(*text + length - last, close) != 0)
        return false;
    (*text)[length - last] = '\0';
    *text += first;
    return true;
}

static bool bad_shape(const char *name, const char *line, tensorfile_error *error)
{
    return tensorfile_fail(error, "%.100s.meta: shape \"%.100s\", expected as in torch.Size([8, 16, 256]) or 8,16,256",
                           name, line);
}

/* An integer, then a comma, white space or the end. */
static bool take_extent(char **at, int64_t *extent)
{
    char *end;
    errno = 0;
    *extent = strtoll(*at, &end, 10);
    if (errno != 0 || end == *at || (*end != '\0' && strchr(", \t", *end) == NULL))
        return false;
    end += strspn(end, " \t");
    end += *end == ',';
    *at = end + strspn(end, " \t");
    return true;
}

static bool read_shape(const char *name, char *line, tensorfile_form *form, tensorfile_error *error)
{
    char shown[101];
    snprintf(shown, sizeof shown, "%s", line);
    const bool wrapped = unwrap(&line, "torch.Size([", "])") || unwrap(&line, "[", "]") || unwrap(&line, "(", ")");
    char      *at = trim(line);
    if (*at == '\0' && !wrapped)
        return bad_shape(name, shown, error);
    while (*at != '\0') {
        int64_t extent;
        if (!take_extent(&at, &extent))
            return bad_shape(name, shown, error);
        if (!tensorfile_add_extent(form, name, extent, error))
            return false;
    }
    return true;
}

static bool read_dtype(const char *name, const char *line, tensorfile_form *form, tensorfile_error *error)
{
    form->dtype = tensorfile_any_dtype(line);
    if (form->dtype == ETALON_DTYPE_NONE)
        return tensorfile_fail(error, "%.100s.meta: dtype \"%.100s\": not one that is read here", name, line);
    return true;
}

static bool read_meta(const char *name, tensorfile_bytes text, tensorfile_form *form, tensorfile_error *error)
{
    char lines[MAX_META + 1];
    if (text.count > MAX_META || memchr(text.at, '\0', text.count) != NULL)
        return tensorfile_fail(error, "%.100s.meta: not two lines of text", name);
    memcpy(lines, text.at, text.count);
    lines[text.count] = '\0';
    char *const shape = lines, *const split = strchr(lines, '\n');
    if (split == NULL)
        return tensorfile_fail(error, "%.100s.meta: one line, expected two: shape and dtype", name);
    *split = '\0';
    char *const dtype = split + 1, *const last = strchr(dtype, '\n');
    if (last != NULL && last[1 + strspn(last + 1, " \t\r\n")] != '\0')
        return tensorfile_fail(error, "%.100s.meta: more than two lines", name);
    if (last != NULL)
        *last = '\0';
    return read_shape(name, trim(shape), form, error) && read_dtype(name, trim(dtype), form, error);
}

bool aiter_read_bin(tensorfile *file, int directory, const char *member, tensorfile_error *error)
{
    char             name[NAME_MAX + 1], meta[NAME_MAX + sizeof ".meta"];
    tensorfile_bytes text, data;
    tensorfile_form  form = { 0 };
    member_name(member, ".bin", name, sizeof name);
    snprintf(meta, sizeof meta, "%s.meta", name);
    if (faccessat(directory, meta, F_OK, 0) != 0)
        return tensorfile_fail(error, "%.100s.bin: has no %.100s.meta beside it", name, name);
    return tensorfile_map(file, directory, meta, &text, error) && read_meta(name, text, &form, error) &&
           tensorfile_map(file, directory, member, &data, error) && tensorfile_add(file, name, &form, data, error);
}

bool aiter_check_meta(tensorfile *file, int directory, const char *member, tensorfile_error *error)
{
    char name[NAME_MAX + 1], bin[NAME_MAX + sizeof ".bin"];
    (void)file;
    member_name(member, ".meta", name, sizeof name);
    snprintf(bin, sizeof bin, "%s.bin", name);
    return faccessat(directory, bin, F_OK, 0) == 0 ||
           tensorfile_fail(error, "%.100s.meta: has no %.100s.bin beside it", name, name);
}
