/* runs.c - notes and names of recorded runs, for the commands that read them. */
#include "cli/runs.h"

#include <fnmatch.h>
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

bool tp_runs_wanted(const char *tag, char **words, int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(words[i], tag) == 0 || fnmatch(words[i], tag, 0) == 0)
            return true;
    return false;
}

static bool discard(void *user, const char *text, size_t n)
{
    (void)user;
    (void)text;
    (void)n;
    return false;
}

/* The library says what is wrong with a tag; nothing is written. */
tp_status tp_runs_check_tags(tp_metrics *m, char **words, int n, tp_error *err)
{
    tp_error own = {0};
    tp_status status = n ? tp_metrics_write_json(m, TP_POINTS_NATIVE, (const char *const *)words,
                                                 (size_t)n, discard, NULL, &own)
                         : TP_OK;
    if (status == TP_OK || own.status == TP_ERR_OUTPUT)
        return TP_OK;
    *err = own;
    return status;
}
