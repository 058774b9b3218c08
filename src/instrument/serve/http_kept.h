/* http_kept.h - answers kept for a moment for all who ask the same: what many clients do costs what
 * one does, and a page that is asked for again and again takes a tenth of a processor at most.
 *
 * One thread at a time. */
#ifndef TP_INSTRUMENT_SERVE_HTTP_KEPT_H
#define TP_INSTRUMENT_SERVE_HTTP_KEPT_H

#include <stdbool.h>
#include <stdint.h>

enum { TP_HTTP_KEPT = 24 };

typedef struct {
    char *key; /* NULL: a free place */
    void *answer;
    double made_s, cost_s; /* when it was made, and the processor time that this took */
    uint64_t n_news;       /* that had been told of then */
    bool is_immutable;     /* its address changes with its contents */
} tp_http_kept;

typedef struct {
    void (*release)(void *answer);
    tp_http_kept places[TP_HTTP_KEPT];
} tp_http_keeper;

/* The answer, NULL where there is none that is good still: for 60 s where it is immutable, else for
 * 0.5 s while there are no news; in any case ten times as long as it took to make. */
void *tp_http_kept_find(const tp_http_keeper *k, const char *key, uint64_t n_news, double now_s);
/* In the place of the same that is old, of nothing, or of the oldest.  Takes key and answer. */
void tp_http_kept_add(tp_http_keeper *k, const tp_http_kept *fresh);
void tp_http_kept_release(tp_http_keeper *k);

#endif
