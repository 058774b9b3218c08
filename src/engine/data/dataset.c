/* dataset.c - files split, tokenised once and opened as examples. */
#include "engine/data/dataset.h"

#include <string.h>
#include <xxhash.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "base/platform.h"
#include "engine/data/cache_shelf.h"
#include "engine/data/cache_store.h"
#include "engine/data/lines.h"
#include "engine/data/order.h"
#include "engine/data/render.h"
#include "engine/data/schema.h"
#include "engine/device/memory.h"

struct tp_dataset {
    const tp_tokenizer *tok;
    tp_buf source_name;
    tp_cache caches[TP_SPLITS]; /* the second only where the splits have files of their own */
    tp_sample_set sets[TP_SPLITS];
    void *index[TP_SPLITS]; /* memory of sets[].index */
    tp_cache_outcome outcomes[TP_SPLITS];
    tp_dataset_report report;
};

/* What is only needed while opening. */
typedef struct {
    const tp_dataset_options *options;
    tp_pool *pool;
    tp_dataset *ds;
    tp_buf folder, prompt, system;
    tp_schema_options schema;
    tp_renderer *renderer;
    char source_hash[33];
    tp_error *err;
} opening;

static tp_status check_options(const tp_dataset_options *o, tp_error *err)
{
    if (!o->data_path == !o->arithmetic)
        return tp_fail(err, TP_ERR_CONFIG,
                       "data.train needs either a data_path or the made-up arithmetic");
    if (!(o->split_validation_size >= 0 && o->split_validation_size < 1))
        return tp_fail(err, TP_ERR_CONFIG,
                       "data.train.split_validation_size is %g; it is a share from 0 to below 1",
                       o->split_validation_size);
    if (o->max_seq_length == 1)
        return tp_fail(err, TP_ERR_CONFIG,
                       "data.max_input_seq_length is 1; at least 2 are needed to predict a token");
    if (!o->arithmetic)
        return TP_OK;
    if (o->n_train == 0)
        return tp_fail(err, TP_ERR_CONFIG, "data.arithmetic.n_examples is 0; nothing to train on");
    return tp_arithmetic_check(o->arithmetic, err);
}

/* Whether the file has been seen before follows from all of it. */
static bool hear_of_reading(void *user, uint64_t done, uint64_t total)
{
    const opening *o = user;
    const tp_dataset_options *options = o->options;
    char what[256];
    snprintf(what, sizeof what, "reading %s", options->data_path);
    return !options->progress || options->progress(options->user, what, done, total);
}

static tp_status prepare(opening *o)
{
    const tp_dataset_options *options = o->options;
    o->schema = options->rows;
    TP_TRY(tp_prompt_file_read(options->rows.prompt_file, true, &o->prompt,
                               &o->schema.prompt_template, o->err));
    TP_TRY(tp_prompt_file_read(options->rows.system_prompt_file, false, &o->system,
                               &o->schema.system_prompt, o->err));
    tp_render_options render = {.chat_template = options->chat_template,
                                .variables = options->template_variables,
                                .add_bos = options->add_bos,
                                .add_eos = options->add_eos,
                                .only_unmask_final = options->only_unmask_final,
                                .learn_header = options->learn_header,
                                .max_seq_length = options->max_seq_length};
    TP_TRY(tp_renderer_new(o->ds->tok, &render, &o->renderer, o->err));
    TP_TRY(tp_cache_folder(options->cache_dir, options->fallback_dir, &o->folder, o->err));
    if (!options->data_path)
        return TP_OK;
    TP_TRY(tp_rows_refuse_folder(options->data_path, o->err));
    return tp_file_hash_slowly(options->data_path, hear_of_reading, o, o->source_hash, o->err);
}

/* Strings are hashed with their NUL, absent ones as a lone 0xff, so that no two lists
 * of strings look alike. */
static void hash_text(XXH3_state_t *state, const char *s)
{
    if (s)
        XXH3_128bits_update(state, s, strlen(s) + 1);
    else
        XXH3_128bits_update(state, "\xff", 1);
}

/* Everything that decides what a cache holds. */
static void make_key(const opening *o, tp_split split, uint64_t n_rows, char ret[33])
{
    const tp_dataset_options *options = o->options;
    const tp_schema_options *schema = &o->schema;
    TP_OWN(tp_buf) numbers = {0};
    tp_buf_addf(&numbers, "%d %d %d %d %d %zu %d %d %d", TP_CACHE_VERSION, options->add_bos,
                options->add_eos, options->only_unmask_final, options->learn_header,
                options->max_seq_length, tp_tokenizer_bos(o->ds->tok), tp_tokenizer_eos(o->ds->tok),
                tp_tokenizer_pad(o->ds->tok));
    const char *name, *token;
    for (size_t i = 0; (token = tp_tokenizer_named(o->ds->tok, i, &name)) != NULL; i++)
        tp_buf_addf(&numbers, " %s=%s", name, token);
    if (options->arithmetic) {
        tp_buf_addf(&numbers, " %s %llu ", tp_split_name(split), (unsigned long long)n_rows);
        tp_arithmetic_describe(options->arithmetic, &numbers);
    }
    TP_OWN(tp_buf) variables = {0};
    tp_json_text_tolerant(options->template_variables, &variables);
    const char *const texts[] = {
        o->source_hash,
        tp_tokenizer_fingerprint(o->ds->tok),
        numbers.data,
        tp_renderer_template(o->renderer),
        options->chat_template,
        schema->input_key,
        schema->output_key,
        schema->prompt_key,
        schema->chat_key,
        schema->text_key,
        schema->tool_key,
        schema->system_key,
        schema->separator,
        schema->system_prompt,
        schema->prompt_template,
        variables.data,
    };
    XXH3_state_t *state = XXH3_createState();
    TP_HAVE(state);
    XXH3_128bits_reset(state);
    for (size_t i = 0; i < TP_COUNTOF(texts); i++)
        hash_text(state, texts[i]);
    tp_hash_digest(state, ret);
    XXH3_freeState(state);
}

static tp_status obtain(opening *o, tp_split split, uint64_t n_rows)
{
    const tp_dataset_options *options = o->options;
    char key[33];
    tp_corpus corpus = {.path = options->data_path,
                        .arithmetic = options->arithmetic,
                        .split = split,
                        .n_rows = n_rows,
                        .schema = &o->schema,
                        .renderer = o->renderer,
                        .skip_bad = options->skip_bad,
                        .pool = o->pool,
                        .progress = options->progress,
                        .user = options->user};
    make_key(o, split, n_rows, key);
    return tp_cache_obtain(tp_buf_str(&o->folder), key, &corpus, o->source_hash,
                           &o->ds->caches[split], &o->ds->outcomes[split], o->err);
}

/* The two halves of one file, each in file order: validation is the share that a
 * permutation puts first. */
static tp_status split_file(opening *o)
{
    tp_dataset *ds = o->ds;
    const tp_cache *cache = &ds->caches[TP_SPLIT_TRAIN];
    uint64_t n = cache->counts.n_examples;
    double share = o->options->split_validation_size;
    ds->sets[TP_SPLIT_TRAIN] = (tp_sample_set){.cache = cache, .n = n};
    ds->sets[TP_SPLIT_VALIDATION] = (tp_sample_set){.cache = cache};
    uint64_t n_held = tp_held_out(n, share);
    if (n_held == 0)
        return TP_OK;
    if (n_held >= n)
        return tp_fail(o->err, TP_ERR_CONFIG,
                       "split_validation_size %g of %llu examples leaves nothing to train on",
                       share, (unsigned long long)n);
    uint64_t counts[TP_SPLITS] = {n - n_held, n_held};
    for (int s = 0; s < TP_SPLITS; s++) {
        ds->index[s] = tp_grow(NULL, counts[s], sizeof(uint64_t));
        ds->sets[s].index = ds->index[s];
        ds->sets[s].n = counts[s];
    }
    uint64_t next[TP_SPLITS] = {0};
    for (uint64_t i = 0; i < n; i++) {
        bool held = tp_is_held_out(o->options->seed, n, n_held, i);
        int s = held ? TP_SPLIT_VALIDATION : TP_SPLIT_TRAIN;
        ((uint64_t *)ds->index[s])[next[s]++] = i;
    }
    return TP_OK;
}

static void write_report(opening *o, double seconds)
{
    tp_dataset *ds = o->ds;
    tp_dataset_report *report = &ds->report;
    *report = (tp_dataset_report){.cache_hit = true,
                                  .cache_path = ds->caches[0].name,
                                  .rebuilt_because = "",
                                  .first_bad = "",
                                  .seconds = seconds,
                                  .n_train = ds->sets[TP_SPLIT_TRAIN].n,
                                  .n_validation = ds->sets[TP_SPLIT_VALIDATION].n};
    report->uses_chat_template = tp_renderer_template(o->renderer) != NULL;
    report->learns_headers = tp_renderer_learns_headers(o->renderer);
    double build_s = 0, tokens = 0, bytes = 0;
    for (int s = 0; s < TP_SPLITS && ds->caches[s].name; s++) {
        const tp_cache_outcome *outcome = &ds->outcomes[s];
        tp_cache_counts_add(&report->counts, &ds->caches[s].counts);
        if (outcome->hit)
            continue;
        report->cache_hit = false;
        build_s += outcome->build_s;
        tokens += (double)outcome->built.counts.n_tokens;
        bytes += (double)outcome->built.counts.source_bytes;
        if (outcome->rebuilt_because[0])
            report->rebuilt_because = outcome->rebuilt_because;
        if (outcome->built.first_bad_message[0])
            report->first_bad = outcome->built.first_bad_message;
    }
    if (build_s > 0) {
        report->tokens_per_s = tokens / build_s;
        report->bytes_per_s = bytes / build_s;
    }
    if (report->counts.schema == TP_SCHEMA_TEXT)
        report->uses_chat_template = report->learns_headers = false;
}

static tp_status open_all(opening *o)
{
    const tp_dataset_options *options = o->options;
    tp_dataset *ds = o->ds;
    TP_TRY(check_options(options, o->err));
    TP_TRY(prepare(o));
    if (options->data_path) {
        tp_buf_adds(&ds->source_name, options->data_path);
        TP_TRY(obtain(o, TP_SPLIT_TRAIN, 0));
        return split_file(o);
    }
    tp_buf_adds(&ds->source_name, "arithmetic");
    uint64_t counts[TP_SPLITS] = {options->n_train, options->n_validation};
    for (int s = 0; s < TP_SPLITS && counts[s] > 0; s++) {
        TP_TRY(obtain(o, (tp_split)s, counts[s]));
        ds->sets[s] =
            (tp_sample_set){.cache = &ds->caches[s], .n = ds->caches[s].counts.n_examples};
    }
    return TP_OK;
}

/* The limit is a wish: where it cannot be kept the run goes on and says so. */
static void trim_others(const opening *o)
{
    const char *keep[TP_SPLITS];
    size_t n = 0;
    tp_cache_freed freed;
    tp_error why;
    for (int s = 0; s < TP_SPLITS; s++) {
        const char *name = o->ds->caches[s].name, *slash = name ? strrchr(name, '/') : NULL;
        if (slash)
            keep[n++] = slash + 1;
    }
    if (!(o->options->cache_limit > 0))
        return;
    if (tp_cache_shelf_trim(tp_buf_str(&o->folder), o->options->cache_limit, keep, n, &freed,
                            &why) != TP_OK)
        tp_log(TP_LOG_NOTICE, "data", "data.cache_limit is not kept: %s", why.message);
    if (freed.n)
        tp_log(TP_LOG_NOTICE, "data",
               "%zu caches not used for longest (%s) were deleted: "
               "data.cache_limit",
               freed.n, tp_human_bytes((double)freed.bytes, TP_ROOM));
}

tp_status tp_dataset_open(const tp_dataset_options *options, const tp_tokenizer *tok, tp_pool *pool,
                          tp_dataset **ret, tp_error *err)
{
    double begin = tp_clock_s();
    tp_dataset *ds = tp_grow(NULL, 1, sizeof *ds);
    *ds = (tp_dataset){.tok = tok};
    opening o = {.options = options, .pool = pool, .ds = ds, .err = err};
    tp_status status = open_all(&o);
    if (status == TP_OK) {
        write_report(&o, tp_clock_s() - begin);
        trim_others(&o);
    }
    tp_renderer_free(o.renderer);
    tp_buf_release(&o.folder);
    tp_buf_release(&o.prompt);
    tp_buf_release(&o.system);
    TP_HAND_OVER(status, ret, ds, tp_dataset_close(ds));
}

void tp_dataset_close(tp_dataset *ds)
{
    if (!ds)
        return;
    for (int s = 0; s < TP_SPLITS; s++) {
        tp_cache_close(&ds->caches[s]);
        free(ds->index[s]);
    }
    tp_buf_release(&ds->source_name);
    free(ds);
}

const tp_dataset_report *tp_dataset_get_report(const tp_dataset *ds) { return &ds->report; }

const tp_sample_set *tp_dataset_set(const tp_dataset *ds, tp_split split)
{
    return &ds->sets[split];
}

tp_status tp_dataset_loader(const tp_dataset *ds, tp_split split, tp_loader_options options,
                            tp_loader **ret, tp_error *err)
{
    if (ds->sets[split].n == 0)
        return tp_fail(err, TP_ERR_CONFIG,
                       "%s has no %s examples; set data.train.split_validation_size, or "
                       "data.validation",
                       ds->source_name.data, tp_split_name(split));
    options.pack.vocab_size = tp_tokenizer_vocab_size(ds->tok);
    return tp_loader_open(&ds->sets[split], &options, ret, err);
}

tp_status tp_dataset_show(const tp_dataset *ds, tp_split split, uint64_t i, tp_buf *out,
                          tp_error *err)
{
    enum { SHOWN = 512 };
    const tp_sample_set *set = &ds->sets[split];
    tp_sample s;
    if (i >= set->n)
        return tp_fail(err, TP_ERR_ARG, "there is no %s example %llu of %llu", tp_split_name(split),
                       (unsigned long long)i, (unsigned long long)set->n);
    TP_TRY(tp_cache_get(set->cache, set->index ? set->index[i] : i, &s, err));
    TP_FREED int32_t *ids = tp_grow(NULL, s.n_tokens, sizeof *ids);
    TP_FREED uint8_t *mask = tp_grow(NULL, s.n_tokens, 1);
    tp_sample_tokens(set->cache, &s, ids, s.n_tokens);
    for (size_t k = 0; k < s.n_tokens; k++)
        mask[k] = tp_sample_mask(&s, k);
    tp_buf_addf(out, "%s:%llu (%s): %u tokens, %u to be learned (marked \">\")\n",
                ds->source_name.data, (unsigned long long)s.line, tp_split_name(split), s.n_tokens,
                s.n_targets);
    tp_render_show(ds->tok, ids, mask, s.n_tokens, SHOWN, out);
    return TP_OK;
}
