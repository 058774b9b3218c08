/* api.h - what the headers of the library share.
 *
 * The library is C: every function returns a status, takes a `tp_error *` last and never
 * prints or exits for what a user can cause.  Rules that hold everywhere, unless a
 * function says otherwise:
 *
 *   - Texts are UTF-8; those with a length need no NUL, those without end with one.
 *   - What comes back through `ret_` arguments is untouched on failure.
 *   - Memory handed out as `char **` or `int32_t **` belongs to the caller: tp_free().
 *     A `const` pointer belongs to the object it came from.
 *   - An options struct begins with `size`: set it to sizeof of the struct, leave what you
 *     do not care about zero.  A zero means the documented default, so a program that was
 *     compiled against an older header keeps its meaning.
 *   - Objects are free of hidden links: different objects may be used by different threads
 *     at once.  Tokenizers and models are read-only and may be shared.  Every header says of its
 *     functions which threads may call them ("Threads: ..."); what it says of "any" holds at any
 *     time, tp_free() included.
 *   - Memory that runs out is TP_ERR_NOMEM.  The call ends where it was, and an object that it
 *     worked on is good for nothing but its _free(). */
#ifndef TEMPER_API_H
#define TEMPER_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define TP_API __attribute__((visibility("default")))
#define TP_CHECKED __attribute__((warn_unused_result))
#else
#define TP_API
#define TP_CHECKED
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Give back what the library handed out; NULL is a no-op.  Threads: any, at once. */
TP_API void tp_free(void *memory);

#ifdef __cplusplus
}
#endif

#endif
