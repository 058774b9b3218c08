#include "engine/data/dataset.h"
#include "engine/data/schema.h"

static void add_if(tp_buf *out, uint64_t n, const char *what)
{
    if (n)
        tp_buf_addf(out, ", %llu %s", (unsigned long long)n, what);
}

void tp_dataset_report_text(const tp_dataset_report *r, tp_buf *out)
{
    const tp_cache_counts *c = &r->counts;
    char tokens[32], targets[32], bytes[32], rate[32], seconds[32];
    tp_buf_addf(out, "rows       %s (%s)%s\n", tp_schema_name((tp_schema_kind)c->schema),
                c->schema_detected ? "detected" : "configured",
                r->uses_chat_template ? ", chat template" : "");
    tp_buf_addf(out, "examples   %llu to train, %llu to validate", (unsigned long long)r->n_train,
                (unsigned long long)r->n_validation);
    add_if(out, c->n_truncated, "cut to the longest length");
    add_if(out, c->n_masked, "left out with nothing to learn");
    add_if(out, c->n_bad, "bad rows left out");
    add_if(out, c->n_straddling, "with a token across the start of an answer");
    tp_buf_addf(out, "\ntokens     %s, %s to be learned, longest example %llu\n",
                tp_human_count((double)c->n_tokens, tokens),
                tp_human_count((double)c->n_targets, targets), (unsigned long long)c->longest);
    if (r->first_bad[0])
        tp_buf_addf(out, "first bad  %s\n", r->first_bad);
    if (r->cache_hit)
        tp_buf_addf(out, "cache      found %s in %s\n", r->cache_path,
                    tp_human_seconds(r->seconds, seconds));
    else
        tp_buf_addf(out, "cache      made %s in %s (%s/s, %s tokens/s)\n", r->cache_path,
                    tp_human_seconds(r->seconds, seconds), tp_human_bytes(r->bytes_per_s, bytes),
                    tp_human_count(r->tokens_per_s, rate));
    if (r->rebuilt_because[0])
        tp_buf_addf(out, "           again, because %s\n", r->rebuilt_because);
}

static void count_member(tp_json_w *w, const char *key, uint64_t n)
{
    tp_json_w_put_i64(w, key, (int64_t)n);
}

void tp_dataset_report_json(const tp_dataset_report *r, tp_json_w *w)
{
    const tp_cache_counts *c = &r->counts;
    tp_json_w_put_str(w, "schema", tp_schema_name((tp_schema_kind)c->schema));
    tp_json_w_put_bool(w, "schema_detected", c->schema_detected);
    tp_json_w_put_bool(w, "chat_template", r->uses_chat_template);
    count_member(w, "rows", c->n_rows);
    count_member(w, "examples", c->n_examples);
    count_member(w, "train_examples", r->n_train);
    count_member(w, "validation_examples", r->n_validation);
    count_member(w, "tokens", c->n_tokens);
    count_member(w, "trained_tokens", c->n_targets);
    count_member(w, "truncated", c->n_truncated);
    count_member(w, "skipped_without_targets", c->n_masked);
    count_member(w, "skipped_bad", c->n_bad);
    count_member(w, "straddling", c->n_straddling);
    count_member(w, "longest", c->longest);
    count_member(w, "source_bytes", c->source_bytes);
    tp_json_w_put_bool(w, "cache_hit", r->cache_hit);
    tp_json_w_put_str(w, "cache_path", r->cache_path);
    tp_json_w_put_str(w, "rebuilt_because", r->rebuilt_because[0] ? r->rebuilt_because : NULL);
    tp_json_w_put_f64(w, "seconds", r->seconds);
    tp_json_w_put_f64(w, "tokens_per_s", r->tokens_per_s);
    tp_json_w_put_f64(w, "bytes_per_s", r->bytes_per_s);
}
