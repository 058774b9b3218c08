/* csv.h - records of comma- or tab-separated values, as RFC 4180 has them. */
#ifndef TP_INSTRUMENT_INGEST_RUNS_CSV_H
#define TP_INSTRUMENT_INGEST_RUNS_CSV_H

#include "base/strings.h"

typedef struct {
    tp_buf text; /* the fields, one after another, a NUL behind each */
    size_t *at;  /* where each begins; n + 1 of them, the last one behind all */
    size_t n, cap;
} tp_csv_record;

void tp_csv_release(tp_csv_record *r);
static inline const char *tp_csv_field(const tp_csv_record *r, size_t i)
{
    return r->text.data + r->at[i];
}

/* The record that `text` begins with: bytes used, 0 where its end is not there yet.  With
 * `is_final` the end of the text is one. */
size_t tp_csv_next(tp_csv_record *r, const char *text, size_t n, char separator, bool is_final);
/* ',', ';' or '\t', whichever the line has most; 0: none. */
char tp_csv_separator(const char *line, size_t n);

#endif
