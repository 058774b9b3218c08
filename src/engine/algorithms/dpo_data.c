/* dpo_data.c - from the configuration to pairs, and which of them are for validation. */
#include <math.h>

#include "base/strings.h"
#include "engine/algorithms/dpo_internal.h"
#include "engine/data/order.h"

static tp_status read_file(trainer *t, const tp_data_source_options *source, tp_preferences *ret,
                           tp_error *err)
{
    const dpo *d = t->own;
    TP_OWN(tp_buf) prompt = {0}, system = {0};
    tp_preference_options options = {.path = source->data_path,
                                     .prompt_key = source->rows.prompt_key,
                                     .chosen_key = source->chosen_key,
                                     .rejected_key = source->rejected_key,
                                     .separator = source->rows.separator,
                                     .renderer = d->renderer,
                                     .skip_bad = t->o->data.skip_bad_rows,
                                     .progress = tp_trainer_keep_going,
                                     .user = t};
    TP_TRY(tp_prompt_file_read(source->rows.prompt_file, true, &prompt, &options.prompt_template,
                               err));
    TP_TRY(tp_prompt_file_read(source->rows.system_prompt_file, false, &system,
                               &options.system_prompt, err));
    return tp_preferences_read(&options, ret, err);
}

static void add_pair(dpo_pairs *to, const tp_preference_pair *pair)
{
    to->v[to->n++] = (dpo_pair){.pair = pair, .ref_chosen = NAN, .ref_rejected = NAN};
}

static void reserve(dpo_pairs *p, uint64_t n) { p->v = tp_new(n, sizeof *p->v); }

static tp_status split(trainer *t, tp_error *err)
{
    dpo *d = t->own;
    double share = t->o->data.train.split_validation_size;
    uint64_t n = d->file.n, held = d->val_file.n ? 0 : tp_held_out(n, share);
    reserve(&d->train, n);
    reserve(&d->validation, d->val_file.n ? d->val_file.n : n);
    for (uint64_t i = 0; i < d->val_file.n; i++)
        add_pair(&d->validation, &d->val_file.pairs[i]);
    if (held >= n)
        return tp_fail(err, TP_ERR_CONFIG,
                       "data.train.split_validation_size %g of %llu pairs leaves nothing to train "
                       "on",
                       share, (unsigned long long)n);
    for (uint64_t i = 0; i < n; i++) {
        bool is_held = tp_is_held_out((uint64_t)t->o->seed, n, held, i);
        add_pair(is_held ? &d->validation : &d->train, &d->file.pairs[i]);
    }
    return TP_OK;
}

static void describe(const tp_preferences *p, const char *path, tp_buf *out)
{
    tp_buf_addf(out, "%s: %llu pair%s (%s), %llu tokens, longest pair %llu", path,
                (unsigned long long)p->n, tp_plural((uint64_t)p->n), p->kind,
                (unsigned long long)p->n_tokens, (unsigned long long)p->longest_pair);
    const struct {
        uint64_t n;
        const char *what;
    } counts[] = {{p->n_bad, "rows left out because they are malformed"},
                  {p->n_empty, "left out because an answer is empty"},
                  {p->n_truncated, "answers cut to policy.max_total_sequence_length"},
                  {p->n_straddling, "answers whose first token begins in the prompt"},
                  {p->n_equal, "pairs of equal answers"},
                  {p->n_early, "differ before their last message, which alone is learned (as in "
                               "NeMo RL; TRL learns all that differs)"},
                  {p->n_system, "with a column \"system\", which is not read (nor by TRL)"}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (counts[i].n)
            tp_buf_addf(out, "; %llu %s", (unsigned long long)counts[i].n, counts[i].what);
}

static void show_source(const tp_preferences *p, const char *path, tp_buf *out)
{
    tp_buf_adds(out, "data: ");
    describe(p, path, out);
    tp_buf_addc(out, '\n');
}

static void show_answer(const trainer *t, const char *name, const tp_preference_answer *a,
                        tp_buf *out)
{
    tp_buf_addf(out, "%s, %d tokens, %d of them the answer (marked \">\"):\n", name, a->n,
                a->n_targets);
    tp_render_show(t->tokenizer, a->ids, a->mask, (size_t)a->n, 256, out);
}

static void send_example(trainer *t)
{
    const dpo *d = t->own;
    TP_OWN(tp_buf) text = {0};
    show_source(&d->file, t->o->data.train.data_path, &text);
    if (d->val_file.n)
        show_source(&d->val_file, t->o->data.validation.data_path, &text);
    show_answer(t, "chosen", &d->file.pairs[0].chosen, &text);
    show_answer(t, "rejected", &d->file.pairs[0].rejected, &text);
    tp_train_event event = {.kind = TP_EVENT_EXAMPLE, .text = tp_buf_str(&text)};
    tp_trainer_send(t, &event);
}

static void fingerprint(trainer *t)
{
    const dpo *d = t->own;
    TP_OWN(tp_buf) text = {0};
    tp_buf_addf(&text, "dpo|%s|%s|%llu|%lld|%d|%llu|%llu", d->file.source_hash,
                tp_tokenizer_fingerprint(t->tokenizer), (unsigned long long)d->train.n,
                (long long)t->o->policy.train_global_batch_size, t->o->data.shuffle,
                (unsigned long long)d->file.n_tokens, (unsigned long long)t->o->seed);
    tp_trainer_fingerprint(t, tp_buf_str(&text));
}

tp_status tp_dpo_open_data(trainer *t, tp_error *err)
{
    dpo *d = t->own;
    const char *template_text;
    TP_TRY(tp_trainer_chat_template(t, &d->template_text, &template_text, err));
    tp_render_options render = {.chat_template = template_text,
                                .variables = t->o->policy.template_variables,
                                .add_bos = t->o->data.add_bos,
                                .add_eos = t->o->data.add_eos,
                                .only_unmask_final = true,
                                .max_seq_length = tp_trainer_longest(t)};
    TP_TRY(tp_renderer_new(t->tokenizer, &render, &d->renderer, err));
    return read_file(t, &t->o->data.train, &d->file, err);
}

tp_status tp_dpo_open_validation(trainer *t, tp_error *err)
{
    dpo *d = t->own;
    return t->o->data.validation.data_path && d->renderer
               ? read_file(t, &t->o->data.validation, &d->val_file, err)
               : TP_OK;
}

void tp_dpo_describe_data(const trainer *t, tp_buf *out)
{
    const dpo *d = t->own;
    tp_buf_addf(out, "all rows of ");
    describe(&d->file, t->o->data.train.data_path, out);
}

void tp_dpo_describe_validation(const trainer *t, tp_buf *out)
{
    const dpo *d = t->own;
    double share = t->o->data.train.split_validation_size;
    if (d->val_file.n)
        describe(&d->val_file, t->o->data.validation.data_path, out);
    else if (isfinite(share) && share > 0)
        tp_buf_addf(out, "a share of %g of the training data", share);
    else
        tp_buf_adds(out, "none (data.validation.data_path, data.train.split_validation_size)");
}

tp_status tp_dpo_split_data(trainer *t, tp_error *err)
{
    const dpo *d = t->own;
    TP_TRY(split(t, err));
    double sequences = 2 * (double)d->file.n;
    t->avg_context = 0.5 * ((double)d->file.n_tokens / sequences + 1);
    fingerprint(t);
    send_example(t);
    return TP_OK;
}

void tp_dpo_close_data(dpo *d)
{
    free(d->train.v);
    free(d->validation.v);
    tp_preferences_release(&d->file);
    tp_preferences_release(&d->val_file);
    tp_renderer_free(d->renderer);
    tp_buf_release(&d->template_text);
}
