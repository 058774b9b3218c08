/* cuts.h - a file cut short anywhere gives its beginning and says so; one with flipped bits
 * gives something, or an error with words. */
#ifndef TP_TESTS_SUPPORT_CUTS_H
#define TP_TESTS_SUPPORT_CUTS_H

#include <stdint.h>

typedef struct {
    int n;                /* cuts, or flips */
    int refused;          /* nothing was readable: an error */
    uint64_t least, most; /* rows that were read of a file that was not refused */
} tp_cut_result;

/* Cut at `n_cuts` random places; fails the test when a row is not the whole file's, when
 * there is no note, or when a cut behind the first rows is refused. */
tp_cut_result ingest_check_cuts(const char *path, int n_cuts, uint64_t seed);
/* The same of the text within a .gz. */
tp_cut_result ingest_check_cuts_inside(const char *path, int n_cuts, uint64_t seed);
/* One to eight random bits at a time. */
tp_cut_result ingest_check_flips(const char *path, int n_flips, uint64_t seed);

#endif
