/* notes.h - what a reader wants the user to know about a file.
 *
 * A note is a sentence for people: what was found, what was done about it, what it means
 * for the figures.  Readers never print; the command shows the notes beside its result. */
#ifndef TP_INSTRUMENT_INGEST_NOTES_H
#define TP_INSTRUMENT_INGEST_NOTES_H

#include "base/error.h"

typedef enum {
    TP_NOTE_INFO,   /* good to know                                       */
    TP_NOTE_WARNING /* figures may be incomplete or wrong because of this */
} tp_note_level;

typedef struct {
    tp_note_level level;
    char *text;
} tp_note;

typedef struct {
    tp_note *list;
    size_t n, cap;
} tp_notes;

void tp_notes_add(tp_notes *notes, tp_note_level level, const char *fmt, ...) TP_PRINTF(3, 4);
void tp_notes_release(tp_notes *notes);

#endif
