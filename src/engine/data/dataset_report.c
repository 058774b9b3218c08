/* dataset_report.c - what became of the rows of a data set, in words. */
#include "base/strings.h"
#include "engine/data/dataset.h"
#include "engine/data/schema.h"

static void add_if(tp_buf *out, uint64_t n, const char *what)
{
    if (n)
        tp_buf_addf(out, ", %llu %s", (unsigned long long)n, what);
}

static void add_losses(tp_buf *out, const tp_cache_counts *c)
{
    add_if(out, c->n_truncated, "cut to the longest length");
    add_if(out, c->n_masked, "left out with nothing to learn");
    add_if(out, c->n_bad, "bad rows left out");
    add_if(out, c->n_straddling, "with a token across the start of an answer");
}

static void add_unread(tp_buf *out, const tp_cache_counts *c)
{
    int n = 0;
    for (unsigned i = 0; tp_unread_columns[i].name; i++)
        if (c->unread >> i & 1)
            tp_buf_addf(out, "%s%s%s",
                        n++ ? ", " : ", columns not read: ", tp_unread_columns[i].name,
                        tp_unread_columns[i].remedy);
}

static const char *template_of(const tp_dataset_report *r)
{
    return r->learns_headers       ? ", chat template, headers of answers are learned "
                                     "(data.add_generation_prompt=false)"
           : r->uses_chat_template ? ", chat template"
                                   : "";
}

void tp_dataset_report_line(const tp_dataset_report *r, tp_buf *out)
{
    const tp_cache_counts *c = &r->counts;
    tp_buf_addf(out, "all %llu row%s read (%s, %s%s), %llu example%s, longest %llu tokens",
                (unsigned long long)c->n_rows, tp_plural((uint64_t)c->n_rows),
                tp_schema_name((tp_schema_kind)c->schema),
                c->schema_detected ? "detected" : "configured", template_of(r),
                (unsigned long long)c->n_examples, tp_plural((uint64_t)c->n_examples),
                (unsigned long long)c->longest);
    if (c->n_examples)
        tp_buf_addf(out, ", mean %.4g", (double)c->n_tokens / (double)c->n_examples);
    add_losses(out, c);
    add_unread(out, c);
}

void tp_dataset_report_text(const tp_dataset_report *r, tp_buf *out)
{
    const tp_cache_counts *c = &r->counts;
    char tokens[32], targets[32], bytes[32], rate[32], seconds[32];
    tp_buf_addf(out, "rows       %s (%s)%s\n", tp_schema_name((tp_schema_kind)c->schema),
                c->schema_detected ? "detected" : "configured", template_of(r));
    tp_buf_addf(out, "examples   %llu to train, %llu to validate", (unsigned long long)r->n_train,
                (unsigned long long)r->n_validation);
    add_losses(out, c);
    add_unread(out, c);
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
