/* lever_set.h - levers as the instrument sees them: names, and settings that somebody else knows.
 */
#ifndef TP_INSTRUMENT_EXPERIMENT_LEVER_SET_H
#define TP_INSTRUMENT_EXPERIMENT_LEVER_SET_H

#include "base/arena.h"
#include "base/strings.h"

typedef enum { TP_PUT_OFF, TP_PUT_ON, TP_PUT_AS_IS } tp_put;

typedef struct {
    const char *name, *what;
    tp_put recipe; /* how the recipe has it; TP_PUT_AS_IS: unknown */
} tp_set_lever;

typedef struct {
    const tp_set_lever *levers;
    size_t n;
    /* The settings that put each lever so: "key=value" each, in the arena. */
    tp_status (*settings)(void *user, const tp_put *put, tp_arena *arena, const char *const **ret,
                          size_t *ret_n, tp_error *err);
    /* Settings as a recipe that inherits from `parent`, NULL: from none. */
    tp_status (*recipe)(const char *parent, const char *const *settings, size_t n, tp_buf *out,
                        tp_error *err);
    void *user;
} tp_lever_set;

#endif
