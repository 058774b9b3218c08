/* baseline.h - a profile kept under a name, and two of them compared.
 *
 * runs/profiles/NAME/ is the run folder of the profiled steps; profile.json in it holds the
 * figures of every timed step, so that comparing later needs no run. */
#ifndef TP_INSTRUMENT_PROFILE_BASELINE_H
#define TP_INSTRUMENT_PROFILE_BASELINE_H

#include "base/arena.h"
#include "instrument/analyze/change.h"
#include "instrument/profile/profile.h"
#include "text/json/json.h"

enum { TP_PROFILE_COMPARED = 12 };

typedef struct {
    char name[48];
    double before_s, after_s; /* means per step; NaN: not in that profile */
    double ratio, lo, hi;     /* after / before: of geometric means, when there are enough */
    tp_change_evidence e;     /* of the logarithms; p adjusted for the number of rows */
    tp_change verdict;
} tp_profile_change;

typedef struct {
    char name[256], made[32], notes[512]; /* of the baseline; what makes them hard to compare */
    tp_profile_change step;
    tp_profile_change ops[TP_PROFILE_COMPARED]; /* largest changes first */
    int n_ops;
    double before_peak, after_peak; /* bytes */
} tp_profile_comparison;

/* "runs/profiles/NAME", or TP_ERR_ARG when the name is no single folder name. */
TP_CHECKED tp_status tp_profile_dir(const char *name, char *ret, size_t cap, tp_error *err);

/* The profile.json at `path`, parsed into `arena`. */
TP_CHECKED tp_status tp_profile_read(const char *path, tp_arena *arena, const tp_json **ret,
                                     tp_error *err);
/* Of a parsed one what a comparison asks for; texts stay in its arena.
 * tp_profile_data_release() it, unless it fails. */
TP_CHECKED tp_status tp_profile_data_of(const tp_json *profile, const char *path,
                                        tp_profile_data *ret, tp_error *err);

/* The file of a baseline, parsed into `arena`. */
TP_CHECKED tp_status tp_profile_load(const char *name, tp_arena *arena, const tp_json **ret,
                                     tp_error *err);
TP_CHECKED tp_status tp_profile_compare(const tp_json *baseline, const char *name,
                                        const tp_profile_data *d, tp_profile_comparison *ret,
                                        tp_error *err);

#endif
