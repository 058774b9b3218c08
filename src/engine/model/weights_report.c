/* weights_report.c - what is said about the files that weights were found in. */
#include <string.h>

#include "engine/model/weights.h"

void tp_weights_note_unused(tp_weights *w, const char *name)
{
    char *names = w->report.unused_names;
    size_t used = strlen(names), room = sizeof w->report.unused_names - used;
    w->report.n_unused++;
    if (strlen(name) + 3 <= room)
        snprintf(names + used, room, "%s%s", used ? ", " : "", name);
}

void tp_weights_take(tp_weights *w, size_t param, const char *file, tp_dtype dtype, size_t bytes)
{
    w->from[param] = file;
    w->dtypes[param] = dtype;
    w->report.n_loaded++;
    w->report.n_bytes += bytes;
    if (strcmp(w->model->params[param].name, w->model->embedding_name) == 0)
        w->report.file_dtype = dtype;
}
