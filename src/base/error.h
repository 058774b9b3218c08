/* error.h - how a function says that it failed.
 *
 * A fallible function returns tp_status and takes `tp_error *err` last.  On
 * success it leaves *err alone; on failure it fills *err and leaves its output
 * arguments as they were.  Library code never prints and never exits: the
 * command at the top decides what a failure looks like to the user.
 *
 * tp_status and tp_error themselves are public: temper/error.h.
 *
 * Broken invariants are not errors.  They are bugs: TP_ASSERT() stops there. */
#ifndef TP_BASE_ERROR_H
#define TP_BASE_ERROR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/no_memory.h"
#include "temper/error.h"

#define TP_PRINTF(f, a) __attribute__((format(printf, f, a)))

/* In a function whose last parameters are `fmt, ...`: what they say, into an array; what is too
 * long for it is cut. */
#define TP_FORMAT(array, fmt)                          \
    do {                                               \
        va_list ap_;                                   \
        va_start(ap_, fmt);                            \
        vsnprintf((array), sizeof(array), (fmt), ap_); \
        va_end(ap_);                                   \
    } while (0)

/* Fill *err (which may be NULL) and return `status`, so a failure is one line:
 *     return tp_fail(err, TP_ERR_FORMAT, "header of %zu bytes exceeds file", n); */
#define tp_fail(err, status, ...) tp_error_set((err), (status), __FILE__, __LINE__, __VA_ARGS__)

/* The same with a list, whose items begin with TP_ERROR_ITEM (terminal.h) and were cleaned by
 * tp_buf_add_shown() each.  Every other message is one line: a line break in it was quoted. */
#define tp_fail_list(err, status, list) \
    tp_error_set_list((err), (status), __FILE__, __LINE__, (list))

/* Hand a failure of `call` to our own caller. */
#define TP_TRY(call)                    \
    do {                                \
        tp_status try_status_ = (call); \
        if (try_status_ != TP_OK)       \
            return try_status_;         \
    } while (0)

/* The end of a function that makes something: it becomes the caller's where `call` succeeds, and is
 * given back where not.
 *     TP_HAND_OVER(fill(thing, err), ret, thing, tp_thing_free(thing)); */
#define TP_HAND_OVER(call, ret, made, give_back) \
    do {                                         \
        tp_status made_status_ = (call);         \
        if (made_status_ == TP_OK)               \
            *(ret) = (made);                     \
        else                                     \
            give_back;                           \
        return made_status_;                     \
    } while (0)

/* Locals that are given back where their scope ends, on every way out of it, so that TP_TRY() may
 * stand anywhere below:
 *     TP_OWN(tp_buf) text = {0};                                   tp_buf_release(&text)
 *     TP_CLEANUP(tp_recipe_close) tp_recipe recipe = {0};          tp_recipe_close(&recipe)
 *     TP_FREED double *x = NULL;                                   free(x)
 * They have a value from the start.  What outlives the scope is no such local. */
#define TP_CLEANUP(function) __attribute__((cleanup(function)))
#define TP_OWN(type) TP_CLEANUP(type##_release) type
#define TP_FREED TP_CLEANUP(tp_free_local)

static inline void tp_free_local(void *local) { free(*(void **)local); }

/* At the beginning of a public function: `has` says that the arguments are there. */
#define TP_NEED(has, err)                                                           \
    do {                                                                            \
        if (!(has))                                                                 \
            return tp_fail((err), TP_ERR_ARG, "%s: an argument is NULL", __func__); \
    } while (0)

#define TP_ASSERT(cond)                                                     \
    do {                                                                    \
        if (!(cond)) {                                                      \
            fprintf(stderr, "%s:%d: bug: %s\n", __FILE__, __LINE__, #cond); \
            abort();                                                        \
        }                                                                   \
    } while (0)

tp_status tp_error_set(tp_error *err, tp_status status, const char *file, int line, const char *fmt,
                       ...) TP_PRINTF(5, 6);

tp_status tp_error_set_list(tp_error *err, tp_status status, const char *file, int line,
                            const char *list);

/* Put "while loading 'x': " in front of the message on its way up.  Returns
 * err->status (or `status` when err is NULL), so it can end a function. */
tp_status tp_error_prefix(tp_error *err, tp_status status, const char *fmt, ...) TP_PRINTF(3, 4);

#endif
