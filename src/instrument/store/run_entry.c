/* run_entry.c - one row of the index: does it fit a filter, and how it looks as JSON. */
#include <string.h>

#include "instrument/store/run_index.h"

static bool holds(const char *text, const char *word, size_t n)
{
    return text && memmem(text, strlen(text), word, n);
}

static bool word_fits(const tp_run_entry *e, const char *word, size_t n)
{
    const struct {
        const char *name, *text;
    } parts[] = {{"path", e->path},   {"format", e->format},
                 {"state", e->state}, {"algorithm", e->algorithm},
                 {"model", e->model}, {"tag", e->tags},
                 {"kind", e->kind}};
    const char *colon = memchr(word, ':', n);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        size_t len = strlen(parts[i].name);
        if (colon && (size_t)(colon - word) == len && strncmp(word, parts[i].name, len) == 0)
            return holds(parts[i].text, colon + 1, n - len - 1);
    }
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (holds(parts[i].text, word, n))
            return true;
    return false;
}

bool tp_run_entry_fits(const tp_run_entry *entry, const char *filter)
{
    for (const char *p = filter ? filter : ""; entry && *p;) {
        size_t n = strcspn(p, " \t");
        if (n && !word_fits(entry, p, n))
            return false;
        p += n;
        p += strspn(p, " \t");
    }
    return entry != NULL;
}

static void put_last(tp_json_w *w, const char *key, bool is_known, double v)
{
    if (is_known)
        tp_json_w_put_f64(w, key, v);
    else
        tp_json_w_put_null(w, key);
}

void tp_run_entry_put(const tp_run_entry *e, tp_json_w *w)
{
    tp_json_w_begin(w, '{');
    tp_json_w_put_str(w, "id", e->id);
    tp_json_w_put_str(w, "path", e->path);
    tp_json_w_put_str(w, "kind", e->kind);
    tp_json_w_put_str(w, "format", e->format);
    tp_json_w_put_str(w, "state", e->state);
    tp_json_w_put_str(w, "algorithm", e->algorithm);
    tp_json_w_put_str(w, "model", e->model);
    tp_json_w_put_i64_if(w, "step", e->step >= 0, e->step);
    tp_json_w_put_i64_if(w, "max_steps", e->max_steps >= 0, e->max_steps);
    tp_json_w_put_known(w, "started", e->started);
    tp_json_w_put_known(w, "updated", e->updated);
    put_last(w, "loss", e->has_loss, e->loss);
    put_last(w, "reward", e->has_reward, e->reward);
    put_last(w, "tokens_per_s", e->has_rate, e->tokens_per_s);
    tp_json_w_put_i64(w, "n_metrics", e->n_metrics);
    tp_json_w_put_i64(w, "n_points", e->n_points);
    tp_json_w_put_i64(w, "bytes", e->bytes);
    tp_json_w_put_begin(w, "tags", '[');
    for (const char *p = e->tags; p && *p;) {
        size_t n = strcspn(p, " ");
        tp_json_w_strn(w, p, n);
        p += n + (p[n] == ' ');
    }
    tp_json_w_end(w, ']');
    tp_json_w_put_str(w, "problem", e->problem);
    tp_json_w_end(w, '}');
}
