/* runs.c - recorded runs and their notes, for the commands that read them. */
#include "cli/runs.h"

#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

void tp_runs_say_notes(const tp_metrics *m)
{
    for (size_t i = 0; i < tp_metrics_notes(m); i++) {
        bool is_warning = false;
        const char *text = tp_metrics_note(m, i, &is_warning);
        char *shown = tp_text_shown(text, strlen(text), true);
        fprintf(stderr, "temper: %s: %s\n", is_warning ? "warning" : "note", shown);
        tp_free(shown);
    }
}

tp_status tp_runs_open(tp_metrics **runs, size_t *n, size_t most, const char *path, tp_error *err)
{
    if (*n == most)
        exit(tp_cli_refuse("", "more than %zu runs", most));
    tp_waiting_begin("temper: reading the runs");
    tp_status status = tp_metrics_open(path, NULL, &runs[*n], err);
    tp_waiting_end();
    if (status == TP_OK)
        tp_runs_say_notes(runs[(*n)++]);
    return status;
}
