/* sized.c - copying public structs whose size differs from this version's: completed with
 * zeros, or refused. */
#include "base/sized.h"

#include <string.h>

static size_t size_of(const void *sized)
{
    size_t size;
    memcpy(&size, sized, sizeof size);
    return size;
}

tp_status tp_sized_check(const void *theirs, const char *what, tp_error *err)
{
    if (theirs && size_of(theirs) < sizeof(size_t))
        return tp_fail(err, TP_ERR_ARG, "%s: size is %zu; set it to sizeof(%s)", what,
                       size_of(theirs), what);
    return TP_OK;
}

tp_status tp_sized_read(void *own, size_t own_size, const void *theirs, const char *what,
                        tp_error *err)
{
    memset(own, 0, own_size);
    if (!theirs)
        return TP_OK;
    TP_TRY(tp_sized_check(theirs, what, err));
    size_t size = size_of(theirs);
    for (size_t i = own_size; i < size; i++)
        if (((const char *)theirs)[i])
            return tp_fail(err, TP_ERR_UNSUPPORTED,
                           "%s: a member that this version of the library (%s) does not know is "
                           "set; leave it zero or use a newer library",
                           what, TEMPER_VERSION);
    memcpy(own, theirs, size < own_size ? size : own_size);
    return TP_OK;
}

void tp_sized_write(void *theirs, const void *own, size_t own_size)
{
    if (!theirs)
        return;
    size_t size = size_of(theirs), n = size < own_size ? size : own_size;
    memcpy((char *)theirs + sizeof size, (const char *)own + sizeof size, n - sizeof size);
}
