/* run_record.c - run.json read back. */
#include "engine/checkpoint/run_record.h"

#include <string.h>

#include "base/files.h"
#include "text/json/json.h"

enum { MAX_RUN_JSON = 16 << 20 };

static void copy_text(const tp_json *value, char *out, size_t size)
{
    const char *text = tp_json_str(value);
    if (text && strlen(text) < size)
        strcpy(out, text);
}

/* An attempt that is still "running" in the file was killed: its process no longer holds the
 * lock. */
static void add_attempt(const tp_json *attempt, tp_buf *out)
{
    if (out->len)
        tp_buf_adds(out, ",\n    ");
    tp_json_w w = tp_json_w_open(out, 0, '{');
    for (const tp_json *m = attempt->child; m; m = m->next) {
        const char *word = tp_json_str(m);
        tp_json_w_key(&w, m->key.data);
        if (strcmp(m->key.data, "state") == 0 && word && strcmp(word, "running") == 0)
            tp_json_w_str(&w, "killed");
        else
            tp_json_w_value(&w, m);
    }
    tp_json_w_end(&w, '}');
}

static tp_status read_members(const char *dir, const char *path, const tp_json *root,
                              tp_run_record *r, tp_error *err)
{
    char folder[4096] = "";
    if (!tp_json_i64(tp_json_get(root, "attempt"), &r->attempt))
        return tp_fail(err, TP_ERR_FORMAT, "'%s' has no attempt number", path);
    (void)!tp_json_i64(tp_json_get(root, "step"), &r->step);
    const char *state = tp_json_str(tp_json_get(root, "state"));
    r->is_finished = state && strcmp(state, "finished") == 0;
    copy_text(tp_json_get(root, "id"), r->id, sizeof r->id);
    copy_text(tp_json_get(root, "model_folder"), r->model, sizeof r->model);
    copy_text(tp_json_get(tp_json_get(root, "machine"), "isa"), r->isa, sizeof r->isa);
    copy_text(tp_json_get(root, "checkpoint_dir"), folder, sizeof folder);
    if (folder[0] == '/')
        strcpy(r->checkpoint_dir, folder);
    else if (folder[0] && snprintf(r->checkpoint_dir, sizeof r->checkpoint_dir, "%s/%s", dir,
                                   folder) >= (int)sizeof r->checkpoint_dir)
        r->checkpoint_dir[0] = 0;
    const tp_json *attempts = tp_json_get(root, "attempts");
    for (const tp_json *a = attempts && attempts->type == TP_JSON_ARRAY ? attempts->child : NULL; a;
         a = a->next)
        if (a->type == TP_JSON_OBJECT)
            add_attempt(a, &r->attempts);
    return TP_OK;
}

tp_status tp_run_record_read(const char *dir, tp_run_record *ret, tp_error *err)
{
    TP_OWN(tp_buf) path = {0};
    TP_OWN(tp_arena) arena = {0};
    const tp_json *root;
    tp_run_record r = {0};
    tp_buf_addf(&path, "%s/run.json", dir);
    TP_TRY(tp_json_read(&arena, path.data, MAX_RUN_JSON, NULL, &root, err));
    TP_HAND_OVER(read_members(dir, path.data, root, &r, err), ret, r, tp_run_record_release(&r));
}

void tp_run_record_release(tp_run_record *record)
{
    tp_buf_release(&record->attempts);
    *record = (tp_run_record){0};
}

char *tp_run_record_path(const char *dir, const char *path, char *out)
{
    char *base = realpath(dir, NULL), *whole = realpath(path, NULL);
    size_t n = base ? strlen(base) : 0;
    const char *shown = whole ? whole : path;
    if (n && whole && strncmp(whole, base, n) == 0 && whole[n] == '/')
        shown = whole + n + 1;
    snprintf(out, 4096, "%s", shown);
    free(base);
    free(whole);
    return out;
}
