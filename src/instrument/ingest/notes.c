/* notes.c - the list of a reader's notes. */
#include "instrument/ingest/notes.h"

#include <stdlib.h>

#include "base/strings.h"
#include "base/vec.h"

void tp_notes_add(tp_notes *notes, tp_note_level level, const char *fmt, ...)
{
    tp_buf text = {0};
    TP_BUF_FORMAT(&text, fmt);
    tp_note *note = TP_VEC_PUSH(notes->list, notes->n, notes->cap);
    note->level = level;
    note->text = text.data;
}

void tp_notes_release(tp_notes *notes)
{
    for (size_t i = 0; i < notes->n; i++)
        free(notes->list[i].text);
    free(notes->list);
    *notes = (tp_notes){0};
}
