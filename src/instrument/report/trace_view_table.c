/* trace_view_table.c - the views by name, made of trace_views.def. */
#include <string.h>

#include "instrument/report/trace_report.h"

const tp_trace_report_view tp_trace_report_views[] = {
#define VIEW(view, grid, keep, in_json, fill) {view, grid, keep, in_json, tp_view_##fill},
#include "instrument/report/trace_views.def"
#undef VIEW
    {0}};

bool tp_trace_report_view_exists(const char *view)
{
    for (const tp_trace_report_view *v = tp_trace_report_views; v->view; v++)
        if (strcmp(v->view, view) == 0)
            return true;
    return strcmp(view, "ranks") == 0;
}
