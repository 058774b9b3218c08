/* views.h - which of the recorded points count, by whose rules.
 *
 *               bad checksum          START               step not above the last   written twice
 *   native      file ends             later ones purge    purges without version    both kept
 *   accumulator file ends             each purges         the same                  both kept
 *   fast        kept if it parses     ignored             purges, per tag           the last
 *   all         left out, read on     ignored             kept                      both kept
 *   latest      left out, read on     each purges         the later file's counts   the last
 *
 * Measured with TensorBoard 2.21 (docs/formats/runs.md).  A run of another format has only the last
 * two, and superseded attempts for `latest`. */
#ifndef TP_INSTRUMENT_INGEST_RUNS_VIEWS_H
#define TP_INSTRUMENT_INGEST_RUNS_VIEWS_H

#include "instrument/ingest/runs/recorded.h"

/* keep[i] of every point of the series (s->n bytes): 1 or 0.  Returns how many count;
 * *ret_eligible those that the view saw at all, purged or not. */
size_t tp_view_keep(const tp_metrics *m, const tp_recorded_series *s, tp_points_view view,
                    uint8_t *keep, size_t *ret_eligible);

/* How many points `latest` leaves out because of later ones of the series, though their values are
 * others.  Of formats in which one run may be appended to another. */
size_t tp_view_left_out(const tp_metrics *m, const tp_recorded_series *s);

/* Does every point count, in the order in which they came, for `latest`?  Found without a look at
 * them, however many there are. */
bool tp_view_is_plain(const tp_metrics *m, const tp_recorded_series *s);

/* How many points of the series shown at `index` count for `latest`; the first and the last of
 * them, as far as there are any. */
size_t tp_view_ends(tp_metrics *m, size_t index, tp_metric_point *ret_first,
                    tp_metric_point *ret_last);

/* The points of the series shown at `index` that count, into m->scratch: how many; *ret_eligible as
 * above. */
size_t tp_view_select(tp_metrics *m, size_t index, tp_points_view view, size_t *ret_eligible);

#endif
