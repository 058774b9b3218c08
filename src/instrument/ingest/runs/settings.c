/* settings.c - what a run was started with, from the places where others write it down. */
#include <string.h>

#include "instrument/ingest/runs/event_record.h"
#include "instrument/ingest/runs/rows.h"

void tp_flat_row_settings(tp_metrics *m, const tp_flat_row *row)
{
    for (size_t i = 0; i < row->n; i++) {
        const tp_flat_row_member *x = &row->members[i];
        char number[32];
        tp_slice value = tp_flat_row_text(row, x);
        if (x->is_number && !x->is_text && isfinite(x->value))
            value = (tp_slice){number, tp_json_f64_text(x->value, number)};
        else if (x->is_number && !x->is_text)
            value = isnan(x->value) ? TP_SLICE("NaN") : TP_SLICE("Infinity");
        tp_recorded_setting_add(m, tp_flat_row_tag(row, x), value);
    }
}

/* HParamsPluginData{3 SessionStartInfo{1 map<string, Value{2 number, 3 text, 4 bool}>}} */
static void hparam(tp_metrics *m, tp_slice entry)
{
    tp_proto_field f, v;
    tp_slice key = {0}, value = {0};
    char number[32];
    while (tp_proto_next(&entry, &f)) {
        if (f.wire == 2 && f.number == 1)
            key = f.bytes;
        if (f.wire != 2 || f.number != 2)
            continue;
        while (tp_proto_next(&f.bytes, &v)) {
            if (v.wire == 1 && v.number == 2)
                value = (tp_slice){number, isfinite(tp_proto_double(&v))
                                               ? tp_json_f64_text(tp_proto_double(&v), number)
                                               : 0};
            else if (v.wire == 2 && v.number == 3)
                value = v.bytes;
            else if (v.wire == 0 && v.number == 4)
                value = v.bits ? TP_SLICE("true") : TP_SLICE("false");
        }
    }
    if (key.data)
        tp_recorded_setting_add(m, key, value);
}

void tp_rows_hparams(tp_metrics *m, tp_slice content)
{
    tp_proto_field f, s;
    while (tp_proto_next(&content, &f)) {
        if (f.wire != 2 || f.number != 3)
            continue;
        while (tp_proto_next(&f.bytes, &s))
            if (s.wire == 2 && s.number == 1)
                hparam(m, s.bytes);
    }
}

/* transformers writes its arguments as a text "args/text_summary" that is JSON; the model's are
 * many and belong to the model. */
void tp_rows_text_settings(tp_metrics *m, tp_slice tag, tp_slice text)
{
    TP_OWN(tp_flat_row) row = {0};
    while (text.len && strchr(" \t\r\n", text.data[0]))
        text = (tp_slice){text.data + 1, text.len - 1};
    if (!tp_slice_is(tag, "args/text_summary") || !text.len || text.data[0] != '{')
        return;
    if (tp_flat_row_parse(&row, "args/text_summary", text.data, text.len, NULL) == TP_OK)
        tp_flat_row_settings(m, &row);
}
