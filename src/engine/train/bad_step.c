/* bad_step.c - a step that was passed over: where it went wrong, and its record and batch in the
 * run's folder, bad-steps/step-N/. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/files.h"
#include "base/platform.h"
#include "engine/model/safetensors.h"
#include "engine/train/trainer_internal.h"

/* ---- where ---- */

static bool is_finite(const float *x, size_t n)
{
    float sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += 0 * x[i];
    return sum == 0;
}

static tp_status look_at(const tp_tensor *gradient, bool *ret_finite, tp_error *err)
{
    float x[4096];
    size_t begin, end;
    tp_tensor_held(gradient, &begin, &end);
    *ret_finite = true;
    for (size_t at = begin; at < end && *ret_finite; at += TP_COUNTOF(x)) {
        size_t n = TP_MIN(TP_COUNTOF(x), end - at);
        TP_TRY(tp_tensor_read_held(gradient, at * sizeof *x, x, n * sizeof *x, err));
        *ret_finite = is_finite(x, n);
    }
    return TP_OK;
}

/* "a, b and 3 more" */
static tp_status list_gradients(const tp_states *states, char *out, size_t cap, tp_error *err)
{
    size_t used = 0;
    int n_more = 0;
    out[0] = 0;
    for (size_t i = 0; i < states->n; i++) {
        bool finite = true;
        const tp_tensor *s = &states->items[i];
        if (s->role == TP_ROLE_GRADIENT && s->of && s->dtype == TP_DTYPE_F32)
            TP_TRY(look_at(s, &finite, err));
        if (finite)
            continue;
        if (used + strlen(s->of) + 32 < cap)
            used += (size_t)snprintf(out + used, cap - used, "%s%s", used ? ", " : "", s->of);
        else
            n_more++;
    }
    if (n_more)
        snprintf(out + used, cap - used, " and %d more", n_more);
    return TP_OK;
}

/* ---- what is kept ---- */

/* A step that comes again after a restore gets a folder of its own. */
static void folder_of(const trainer *t, char out[4096])
{
    char name[64];
    for (int again = 1;; again++) {
        snprintf(name, sizeof name,
                 again == 1 ? "bad-steps/step-%" PRId64 : "bad-steps/step-%" PRId64 "-%d",
                 t->state.step + 1, again);
        tp_run_path(t->run, name, out);
        if (!tp_dir_exists(out))
            return;
    }
}

static tp_status keep_batch(const trainer *t, const char *folder, uint32_t i,
                            const tp_batch_view *b, tp_error *err)
{
    int64_t n = tp_session_get_options(t->session)->tokens;
    const struct {
        const char *name;
        const void *data;
        tp_dtype dtype;
        int64_t n;
    } parts[] = {{"tokens", b->tokens, TP_DTYPE_I32, n},
                 {"positions", b->positions, TP_DTYPE_I32, n},
                 {"targets", b->targets, TP_DTYPE_I32, n},
                 {"loss_weights", b->loss_weights, TP_DTYPE_F32, n},
                 {"cu_seqlens", b->cu, TP_DTYPE_I32, n + 1}};
    tp_tensor_out out[TP_COUNTOF(parts)];
    for (size_t k = 0; k < TP_COUNTOF(parts); k++)
        out[k] = (tp_tensor_out){.name = parts[k].name,
                                 .dtype = parts[k].dtype,
                                 .rank = 1,
                                 .dim = {parts[k].n},
                                 .source = parts[k].data,
                                 .src_dtype = parts[k].dtype};
    return tp_safetensors_write(tp_path_of("%s/micro-%u.safetensors", folder, i).text, out,
                                TP_COUNTOF(out), err);
}

/* A folder that cannot be written is no reason for a run to end. */
static bool begin_folder(trainer *t, char folder[4096])
{
    char all[4096];
    tp_error why;
    if (t->n_kept_steps >= t->o->train.keep_bad_steps)
        return false;
    t->n_kept_steps++;
    folder_of(t, folder);
    bool ok = tp_dir_make(tp_run_path(t->run, "bad-steps", all), &why) == TP_OK &&
              tp_dir_make(folder, &why) == TP_OK;
    if (!ok)
        tp_trainer_notice(t, "the step is not kept: %s", why.message);
    return ok;
}

tp_status tp_bad_step_look(trainer *t, uint32_t n_micro, bad_step *ret, tp_error *err)
{
    tp_error why;
    bool searches = isnan(ret->spike);
    bool keeps = begin_folder(t, ret->folder);
    if (!keeps)
        ret->folder[0] = 0;
    if (searches)
        TP_TRY(list_gradients(tp_session_states(t->session), ret->gradients, sizeof ret->gradients,
                              err));
    for (uint32_t i = 0; i < n_micro; i++) {
        char where[256] = "";
        tp_batch_view view;
        TP_TRY(t->a->replay(t, i, &view, err));
        if (keeps && keep_batch(t, ret->folder, i, &view, &why) != TP_OK)
            tp_trainer_notice(t, "the batch is not kept: %s", why.message);
        if (searches)
            TP_TRY(tp_session_find_nonfinite(t->session, &view, where, sizeof where, err));
        ret->n_bad += where[0] != 0;
        if (where[0] && !ret->first[0])
            snprintf(ret->first, sizeof ret->first,
                     "first non-finite result: %s, micro-batch %u of %u", where, i + 1, n_micro);
    }
    if (searches)
        TP_TRY(tp_ranks_join_text(t, ret->first, sizeof ret->first, err));
    if (searches && !ret->first[0])
        snprintf(ret->first, sizeof ret->first,
                 "every result is finite when the step is run again: a fault of memory or of the "
                 "machine, or one that was asked for");
    return TP_OK;
}

static void put_record(const trainer *t, const step_result *r, const bad_step *b, tp_buf *out)
{
    tp_json_w w = tp_json_w_open(out, 2, '{');
    tp_json_w_put_i64(&w, "step", t->state.step + 1);
    tp_json_w_put_str(&w, "why", b->why);
    tp_json_w_put_f64(&w, "loss", r->loss);
    tp_json_w_put_f64(&w, "grad_norm", r->grad_norm);
    tp_json_w_put_f64(&w, "lr", r->lr);
    if (r->loss_scale != 0)
        tp_json_w_put_f64(&w, "loss_scale", r->loss_scale);
    if (!isnan(b->spike))
        tp_json_w_put_f64(&w, "robust_deviations", b->spike);
    else {
        tp_json_w_put_str(&w, "found", b->first);
        tp_json_w_put_i64(&w, "bad_micro_batches", b->n_bad);
        tp_json_w_put_str(&w, "bad_gradients", b->gradients);
    }
    tp_json_w_put_str(&w, "action", b->action);
    tp_json_w_put_i64(&w, "updates", t->state.updates);
    tp_json_w_put_i64(&w, "skipped_in_row", t->state.skipped_in_row);
    tp_json_w_close(&w, '}');
}

void tp_bad_step_record(trainer *t, const step_result *r, const bad_step *b)
{
    tp_error why;
    TP_OWN(tp_buf) text = {0};
    if (!b->folder[0])
        return;
    put_record(t, r, b, &text);
    if (tp_file_write_atomic(tp_path_of("%s/record.json", b->folder).text, text.data, text.len,
                             &why) != TP_OK)
        tp_trainer_notice(t, "the step is not kept: %s", why.message);
}
