/* event_write.h - records of an event file as TensorBoard reads them; event_record.h reads them.
 *
 *     tp_event_put_version(&out, wall);               // the first record of a file
 *     tp_event_put_start(&out, wall, first_step);
 *
 *     tp_event_add_scalar(&summary, "train/loss", 0.5f, NULL);
 *     tp_event_put_summary(&out, wall, step, &summary);
 *
 * A scalar is a simple_value: TensorBoard's default reader has no points of other encodings. */
#ifndef TP_INSTRUMENT_INGEST_RUNS_EVENT_WRITE_H
#define TP_INSTRUMENT_INGEST_RUNS_EVENT_WRITE_H

#include "base/strings.h"

/* Wall times are seconds since 1970. */
void tp_event_put_version(tp_buf *out, double wall);
/* SessionLog START: points of this step and later that stand before it no longer count. */
void tp_event_put_start(tp_buf *out, double wall, int64_t step);
/* One value more; `description` is metadata, which the first value of a tag has, or NULL. */
void tp_event_add_scalar(tp_buf *summary, const char *tag, float value, const char *description);
void tp_event_put_summary(tp_buf *out, double wall, int64_t step, const tp_buf *summary);

#endif
