/* prompts.c - questions from a generator or from rows of a file, split and described. */
#include "engine/reward/prompts.h"

#include "base/platform.h"
#include "base/strings.h"
#include "engine/data/lines.h"
#include "engine/data/order.h"
#include "engine/reward/environment_kind.h"
#include "engine/reward/prompts_file.h"
#include "text/json/tree.h"

/* A line of the file, without its newline. */
typedef struct {
    size_t begin, n;
    uint64_t line;
} place;

struct tp_prompts {
    tp_split split;
    bool is_split; /* the rows of a file were divided */
    uint64_t n;

    /* a generator */
    const tp_environment_kind *kind;
    void *settings;
    tp_config *own; /* for a generator without a section */

    /* a file */
    char *path;
    tp_buf text, system_prompt, prompt_template;
    tp_schema_options row_options;
    place *places;
    size_t n_places, longest;
    char hash[33];
};

/* ---- generators ---- */

static tp_status open_generator(tp_prompts *p, const tp_prompts_options *o, tp_error *err)
{
    const tp_settings_table *table = &p->kind->generator;
    tp_config *config = o->config;
    p->settings = tp_new(1, table->size);
    if (o->generator && o->generator->type != TP_JSON_NULL) {
        TP_TRY(tp_config_bind_section(config, o->generator, table->options, table->n, p->settings,
                                      err));
    } else {
        TP_TRY(tp_config_load(&p->own, NULL, err));
        TP_TRY(tp_config_bind(p->own, table->options, table->n, p->settings, err));
    }
    tp_made_counts *counts = p->settings;
    if (counts->seed == TP_OPT_UNSET_INT)
        counts->seed = (int64_t)o->seed;
    TP_TRY(p->kind->check(p->settings, err));
    p->n = (uint64_t)(p->split == TP_SPLIT_TRAIN ? counts->n_examples : counts->n_validation);
    return TP_OK;
}

static tp_status get_made(const tp_prompts *p, uint64_t index, tp_arena *arena, tp_prompt *ret,
                          tp_error *err)
{
    tp_made_prompt made = {0};
    p->kind->make(p->settings, p->split, index, &made);
    tp_prompt prompt = {.truth = tp_arena_strndup(arena, made.truth.data, made.truth.len),
                        .text = tp_arena_strndup(arena, made.text.data, made.text.len)};
    prompt.id = tp_arena_printf(arena, "%s/%s/%llu", p->kind->name, tp_split_name(p->split),
                                (unsigned long long)index);
    tp_json *messages = tp_tree_new(arena, TP_JSON_ARRAY);
    tp_tree_append(messages,
                   tp_tree_message(arena, "user", (tp_slice){prompt.text, made.text.len}));
    prompt.messages = messages;
    tp_status status =
        tp_json_parse(arena, prompt.id, made.row.data, made.row.len, NULL, &prompt.row, err);
    tp_buf_release(&made.text);
    tp_buf_release(&made.truth);
    tp_buf_release(&made.row);
    if (status == TP_OK)
        *ret = prompt;
    return status;
}

/* ---- files ---- */

static void add_place(tp_prompts *p, place at)
{
    if ((p->n_places & (p->n_places - 1)) == 0) /* full at each power of two */
        p->places = tp_grow(p->places, p->n_places ? 2 * p->n_places : 1, sizeof *p->places);
    p->places[p->n_places++] = at;
    p->longest = TP_MAX(p->longest, at.n);
}

static tp_status read_lines(tp_prompts *p, tp_error *err)
{
    TP_CLEANUP(tp_lines_close) tp_lines lines = {0};
    tp_status status = tp_rows_open(&lines, p->path, err);
    while (status == TP_OK && !lines.at_end) {
        status = tp_lines_next(&lines, err);
        if (status != TP_OK)
            break;
        const char *at = lines.buffer, *end = lines.buffer + lines.wave;
        for (uint64_t line = lines.line; at < end; line++) {
            tp_slice text = tp_line_take(&at, end);
            if (tp_line_is_blank(text))
                continue;
            add_place(p, (place){p->text.len, text.len, line});
            tp_buf_add(&p->text, text.data, text.len);
        }
    }
    if (status == TP_OK)
        tp_lines_hash(&lines, p->hash);
    return status;
}

/* Keep the rows of one split, in file order. */
static tp_status keep_split(tp_prompts *p, const tp_prompts_options *o, tp_error *err)
{
    uint64_t n = p->n_places, n_held = tp_held_out(n, o->split_validation_size), n_kept = 0;
    if (n_held == 0)
        return TP_OK;
    p->is_split = true;
    if (n_held >= n)
        return tp_fail(err, TP_ERR_CONFIG,
                       "'%s': split_validation_size %g of %llu rows leaves nothing to train on",
                       p->path, o->split_validation_size, (unsigned long long)n);
    for (uint64_t i = 0; i < n; i++) {
        bool held = tp_is_held_out(o->seed, n, n_held, i);
        if (held == (p->split == TP_SPLIT_VALIDATION))
            p->places[n_kept++] = p->places[i];
    }
    p->n_places = n_kept;
    return TP_OK;
}

static tp_status get_row(const tp_prompts *p, uint64_t index, tp_arena *arena, tp_prompt *ret,
                         tp_error *err)
{
    const place *at = &p->places[index];
    tp_row row = {.file = p->path, .line = at->line, .text = p->text.data + at->begin, .n = at->n};
    return tp_prompt_row_read(&p->row_options, &row, arena, ret, err);
}

/* Every row once, so that a bad one is told before the work begins. */
static tp_status check_rows(const tp_prompts *p, tp_error *err)
{
    TP_OWN(tp_arena) arena = {0};
    TP_TRY(tp_arena_init(&arena, tp_prompt_row_arena_bytes(&p->row_options, p->longest), err));
    for (uint64_t i = 0; i < p->n; i++) {
        tp_prompt prompt;
        tp_arena_rewind(&arena, 0);
        TP_TRY(get_row(p, i, &arena, &prompt, err));
    }
    return TP_OK;
}

static tp_status read_option_files(tp_prompts *p, const tp_prompts_options *o, tp_error *err)
{
    p->row_options = o->rows;
    TP_TRY(tp_prompt_file_read(o->rows.system_prompt_file, false, &p->system_prompt,
                               &p->row_options.system_prompt, err));
    return tp_prompt_file_read(o->rows.prompt_file, true, &p->prompt_template,
                               &p->row_options.prompt_template, err);
}

static tp_status open_file(tp_prompts *p, const tp_prompts_options *o, tp_error *err)
{
    p->path = tp_strdup(o->data_path);
    TP_TRY(read_option_files(p, o, err));
    TP_TRY(read_lines(p, err));
    TP_TRY(keep_split(p, o, err));
    if (p->n_places == 0)
        return tp_fail(err, TP_ERR_FORMAT, "'%s' has no rows; one JSON object per line is needed",
                       p->path);
    p->n = p->n_places;
    if (o->max_samples && p->n > o->max_samples)
        p->n = o->max_samples;
    return check_rows(p, err);
}

/* ---- the interface ---- */

tp_status tp_prompts_check_source(const char *dataset_name, const char *data_path, tp_error *err)
{
    const tp_environment_kind *kind = dataset_name ? tp_environment_kind_find(dataset_name) : NULL;
    if (data_path || (kind && kind->make))
        return TP_OK;
    return tp_fail(err, TP_ERR_CONFIG,
                   dataset_name
                       ? "\"%.60s\" makes no questions; arithmetic and countdown do.  Named data "
                         "sets are not downloaded: give a JSONL file with data_path"
                       : "there are no questions%.0s; give a JSONL file with data_path, or "
                         "dataset_name: arithmetic or countdown",
                   dataset_name ? dataset_name : "");
}

static tp_status open_any(tp_prompts *p, const tp_prompts_options *o, tp_error *err)
{
    TP_TRY(tp_prompts_check_source(o->dataset_name, o->data_path, err));
    if (o->data_path)
        return open_file(p, o, err);
    p->kind = tp_environment_kind_find(o->dataset_name);
    TP_TRY(open_generator(p, o, err));
    if (o->max_samples && p->n > o->max_samples)
        p->n = o->max_samples;
    return TP_OK;
}

tp_status tp_prompts_open(const tp_prompts_options *options, tp_prompts **ret, tp_error *err)
{
    tp_prompts *p = tp_new(1, sizeof *p);
    p->split = options->split;
    TP_HAND_OVER(open_any(p, options, err), ret, p, tp_prompts_close(p));
}

void tp_prompts_close(tp_prompts *p)
{
    if (!p)
        return;
    free(p->settings);
    tp_config_release(p->own);
    free(p->path);
    tp_buf_release(&p->text);
    tp_buf_release(&p->system_prompt);
    tp_buf_release(&p->prompt_template);
    free(p->places);
    free(p);
}

uint64_t tp_prompts_count(const tp_prompts *prompts) { return prompts->n; }

bool tp_prompts_are_made(const tp_prompts *prompts) { return prompts->kind != NULL; }

size_t tp_prompts_arena_bytes(const tp_prompts *p)
{
    return p->kind ? (size_t)1 << 20 : tp_prompt_row_arena_bytes(&p->row_options, p->longest);
}

tp_status tp_prompts_get(const tp_prompts *p, uint64_t index, tp_arena *arena, tp_prompt *ret,
                         tp_error *err)
{
    TP_ASSERT(index < p->n);
    return p->kind ? get_made(p, index, arena, ret, err) : get_row(p, index, arena, ret, err);
}

void tp_prompts_describe(const tp_prompts *p, tp_buf *out)
{
    if (p->kind) {
        p->kind->describe(p->settings, out);
    } else {
        const tp_schema_options *o = &p->row_options;
        tp_buf_addf(out, "%s (%s)", p->path, p->hash);
        if (o->prompt_template)
            tp_buf_adds(out, ", with a prompt template");
        if (o->system_prompt)
            tp_buf_adds(out, ", with a system prompt");
    }
    tp_buf_addf(out, ", %llu prompt%s", (unsigned long long)p->n, tp_plural((uint64_t)p->n));
    if (p->kind || p->is_split)
        tp_buf_addf(out, " of %s", tp_split_name(p->split));
}
