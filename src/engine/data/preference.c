/* preference.c - rows of TRL's preference schemas as a prompt and two answers. */
#include "engine/data/preference.h"

#include <string.h>

#include "base/platform.h"
#include "base/vec.h"
#include "engine/data/lines.h"
#include "engine/data/row_message.h"
#include "engine/data/row_place.h"

struct tp_preference_reader {
    const tp_preference_options *options;
    const char *prompt_key, *chosen_key, *rejected_key;
    tp_schema schema;
    tp_arena arena;
    tp_rendered rendered[2];
    uint64_t cap; /* of the pairs */
};

static const char *or_default(const char *s, const char *usual) { return s ? s : usual; }

static tp_status copy_name(char *out, size_t size, const char *name, tp_error *err)
{
    if (strlen(name) >= size)
        return tp_fail(err, TP_ERR_CONFIG, "the column name \"%.60s...\" is too long", name);
    strcpy(out, name);
    return TP_OK;
}

static tp_status set_schema(tp_preference_reader *r, tp_error *err)
{
    const tp_preference_options *o = r->options;
    tp_schema *s = &r->schema;
    *s = (tp_schema){.kind = TP_SCHEMA_PROMPT_COMPLETION,
                     .system_prompt = o->system_prompt,
                     .prompt_template = o->prompt_template};
    strcpy(s->first, "prompt");
    strcpy(s->second, "completion");
    strcpy(s->tools, "tools");
    if (o->prompt_template)
        TP_TRY(tp_prompt_format_check("data.prompt_file", o->prompt_template, err));
    return copy_name(s->separator, sizeof s->separator, or_default(o->separator, ""), err);
}

tp_status tp_preference_reader_new(const tp_preference_options *options, size_t longest_row,
                                   tp_preference_reader **ret, tp_error *err)
{
    tp_preference_reader *r = tp_grow(NULL, 1, sizeof *r);
    tp_schema_options texts = {.system_prompt = options->system_prompt,
                               .prompt_template = options->prompt_template};
    *r = (tp_preference_reader){.options = options,
                                .prompt_key = or_default(options->prompt_key, "prompt"),
                                .chosen_key = or_default(options->chosen_key, "chosen"),
                                .rejected_key = or_default(options->rejected_key, "rejected")};
    tp_status status = set_schema(r, err);
    if (status == TP_OK)
        status = tp_arena_init(&r->arena, 2 * tp_schema_arena_bytes(&texts, longest_row), err);
    if (status != TP_OK) {
        free(r);
        return status;
    }
    for (int i = 0; i < 2; i++)
        tp_rendered_init(&r->rendered[i], options->renderer);
    *ret = r;
    return TP_OK;
}

void tp_preference_reader_free(tp_preference_reader *r)
{
    if (!r)
        return;
    for (int i = 0; i < 2; i++)
        tp_rendered_release(&r->rendered[i]);
    tp_arena_release(&r->arena);
    free(r);
}

/* ---- one row as prompt and two completions ---- */

typedef struct {
    tp_json prompt, answers[2]; /* copies whose keys and siblings are ours */
    bool has_prompt;
    const char *kind;
} triple;

static tp_json copy_of(const tp_json *v, const char *key)
{
    tp_json copy = *v;
    copy.key = tp_slice_of(key);
    copy.next = NULL;
    return copy;
}

static bool is_side(const tp_json *v)
{
    return v && (v->type == TP_JSON_STRING || v->type == TP_JSON_ARRAY);
}

static tp_status refuse_message(const tp_row *row, const tp_row_step *path, tp_error *err)
{
    return tp_row_fail_at(
        row, path, 1, err,
        "\"%s\" is a message of LLaMA-Factory; lists of messages are needed, as `jq -c 'def m: "
        "{role: ({human: \"user\", gpt: \"assistant\"}[.from] // .from), content: .value}; "
        ". + {prompt: [.conversations[] | m], chosen: [.chosen | m], rejected: [.rejected | m]} | "
        "del(.conversations)'` makes them",
        path->key);
}

static tp_status need_side(const tp_row *row, const tp_json *object, const char *key,
                           const tp_json **ret, tp_error *err)
{
    tp_row_step path[] = {{.key = key}};
    const tp_json *v = tp_json_get(object, key);
    if (!v)
        return tp_row_fail_at(row, NULL, 0, err,
                              "\"%s\" is missing from this preference row; rows with one answer "
                              "are trained on with sft",
                              key);
    if (tp_json_get(v, "from"))
        return refuse_message(row, path, err);
    if (!is_side(v))
        return tp_row_fail_at(row, path, 1, err,
                              "\"%s\" is %s; a string or a list of messages is "
                              "needed",
                              key, tp_row_type_name(v));
    *ret = v;
    return TP_OK;
}

/* NeMo RL's list of ranked completions. */
static tp_status read_ranked(const tp_row *row, const tp_json *object, triple *ret, tp_error *err)
{
    const tp_json *list = tp_json_get(object, "completions"), *prompt;
    tp_row_step path[] = {{.key = "completions"}, {.index = 0}, {.key = "rank"}};
    const tp_json *sides[2] = {NULL, NULL};
    double ranks[2];
    if (list->type != TP_JSON_ARRAY || list->n != 2)
        return tp_row_fail_at(row, path, 1, err, "\"completions\" must be a list of exactly two");
    TP_TRY(need_side(row, object, "context", &prompt, err));
    size_t i = 0;
    for (const tp_json *c = list->child; c; c = c->next, i++) {
        path[1].index = i;
        sides[i] = tp_json_get(c, "completion");
        if (!tp_json_f64(tp_json_get(c, "rank"), &ranks[i]))
            return tp_row_fail_at(row, path, 2, err, "completions[%zu] has no number as rank", i);
        if (!is_side(sides[i]))
            return tp_row_fail_at(row, path, 2, err,
                                  "completions[%zu] has no completion: a string or a list of "
                                  "messages",
                                  i);
    }
    if (ranks[0] == ranks[1])
        return tp_row_fail_at(row, path, 1, err,
                              "both completions have rank %g; the lower one is the better one",
                              ranks[0]);
    int best = ranks[1] < ranks[0];
    *ret = (triple){
        .prompt = copy_of(prompt, "prompt"),
        .has_prompt = true,
        .answers = {copy_of(sides[best], "completion"), copy_of(sides[!best], "completion")},
        .kind = "context, completions"};
    return TP_OK;
}

/* What two strings begin with, up to a character both have, and not a space behind which
 * the answers begin; of a string that begins the other, all but its last character.  As
 * TRL's extract_prompt. */
static size_t common_start(tp_slice a, tp_slice b)
{
    size_t n = 0, least = TP_MIN(a.len, b.len);
    while (n < least && a.data[n] == b.data[n])
        n++;
    bool is_start = n == least && n > 0;
    n -= is_start;
    while (n > 0 && ((unsigned char)a.data[n] & 0xc0) == 0x80)
        n--;
    if (is_start)
        return n;
    return n > 0 && a.data[n - 1] == ' ' ? n - 1 : n;
}

/* Without a prompt: lists keep it (the last message is what is learned), strings are cut
 * where they part. */
static void split_prompt(tp_arena *arena, triple *t)
{
    tp_json *a = &t->answers[0], *b = &t->answers[1];
    t->kind = "chosen, rejected";
    if (a->type == TP_JSON_ARRAY)
        return;
    size_t n = common_start(a->text, b->text);
    t->prompt = (tp_json){.type = TP_JSON_STRING,
                          .key = tp_slice_of("prompt"),
                          .text = {tp_arena_strndup(arena, a->text.data, n), n}};
    t->has_prompt = true;
    for (int i = 0; i < 2; i++) {
        t->answers[i].text.data += n;
        t->answers[i].text.len -= n;
    }
}

/* Some data sets repeat the question as a text beside answers that are whole conversations:
 * then the conversations have it (TRL's maybe_extract_prompt).  Answers that begin with the
 * assistant are answers to the text. */
static bool begins_itself(const tp_json *answer)
{
    const tp_json *first = answer->type == TP_JSON_ARRAY ? answer->child : NULL;
    const char *role = first ? tp_json_str(tp_json_get(first, "role")) : NULL;
    return role && strcmp(role, "assistant") != 0;
}

static bool are_same(const tp_json *a, const tp_json *b)
{
    if (a->type != b->type || a->n != b->n || a->text.len != b->text.len ||
        (a->text.len && memcmp(a->text.data, b->text.data, a->text.len) != 0))
        return false;
    for (a = a->child, b = b->child; a && b; a = a->next, b = b->next)
        if (a->key.len != b->key.len ||
            (a->key.len && memcmp(a->key.data, b->key.data, a->key.len) != 0) || !are_same(a, b))
            return false;
    return !a && !b;
}

/* More than the last message differs: what is learned is not all that TRL would learn. */
static bool part_early(const triple *t)
{
    const tp_json *a = t->answers[0].child, *b = t->answers[1].child;
    if (t->answers[0].type != TP_JSON_ARRAY || t->answers[1].type != TP_JSON_ARRAY)
        return false;
    while (a && b && a->next && b->next && are_same(a, b)) {
        a = a->next;
        b = b->next;
    }
    return a && b && (a->next || b->next);
}

/* What two transcripts begin with has the text, or the first message of the list. */
static bool stands_before(const tp_json *v, const triple *t)
{
    const tp_json *a = &t->answers[0], *b = &t->answers[1];
    if (v->type == TP_JSON_ARRAY) {
        const tp_json *value = tp_json_get(v->child, "value");
        v = value ? value : tp_json_get(v->child, "content");
    }
    if (a->type != TP_JSON_STRING || !tp_json_str(v))
        return false;
    size_t n = common_start(a->text, b->text);
    return memmem(a->text.data, n, v->text.data, v->text.len) != NULL;
}

/* Answers without a prompt may have it in a column of another name, as Intel's Orca has it in
 * "question": then what they answer is not to be left out. */
static tp_status refuse_other_prompt(const tp_preference_reader *r, const tp_row *row,
                                     const tp_json *object, const triple *ret, tp_error *err)
{
    static const char *const names[] = {"question", "instruction", "input",         "query",
                                        "problem",  "system",      "conversations", "messages"};
    const tp_json *prompt = tp_json_get(object, r->prompt_key);
    if (r->options->prompt_key)
        return tp_row_fail_at(row, NULL, 0, err,
                              "\"%s\" is %s in this preference row; a string or a list of "
                              "messages is needed",
                              r->prompt_key, tp_row_type_name(prompt));
    for (size_t i = 0; i < TP_COUNTOF(names); i++) {
        const tp_json *v = tp_json_get(object, names[i]);
        if (is_side(v) && v->n + v->text.len > 0 && !stands_before(v, ret))
            return tp_row_fail_at(
                row, NULL, 0, err,
                "chosen and rejected have no \"%s\" before them, and \"%s\" would "
                "be left out; name the prompt with data.train.prompt_key, or "
                "remove that column",
                r->prompt_key, names[i]);
    }
    return TP_OK;
}

static tp_status read_triple(tp_preference_reader *r, const tp_row *row, const tp_json *object,
                             triple *ret, tp_error *err)
{
    if (object->type != TP_JSON_OBJECT)
        return tp_row_fail_at(row, NULL, 0, err, "a row must be a JSON object, this is %s",
                              tp_row_type_name(object));
    TP_TRY(tp_row_refuse_media(row, object, err));
    if (tp_json_get(object, "completions") && !tp_json_get(object, r->chosen_key))
        return read_ranked(row, object, ret, err);
    const tp_json *chosen, *rejected, *prompt = tp_json_get(object, r->prompt_key);
    TP_TRY(need_side(row, object, r->chosen_key, &chosen, err));
    TP_TRY(need_side(row, object, r->rejected_key, &rejected, err));
    *ret = (triple){.answers = {copy_of(chosen, "completion"), copy_of(rejected, "completion")}};
    if (chosen->type != rejected->type)
        return tp_row_fail_at(row, NULL, 0, err,
                              "one answer is a string, the other a list of messages");
    if (!prompt || prompt->type == TP_JSON_NULL) {
        if (!begins_itself(chosen) || !begins_itself(rejected))
            TP_TRY(refuse_other_prompt(r, row, object, ret, err));
        split_prompt(&r->arena, ret);
        return TP_OK;
    }
    if (prompt->type == TP_JSON_STRING && begins_itself(chosen) && begins_itself(rejected)) {
        ret->kind = "chosen, rejected; their conversations have the prompt";
        return TP_OK;
    }
    TP_TRY(need_side(row, object, r->prompt_key, &prompt, err));
    ret->prompt = copy_of(prompt, "prompt");
    ret->has_prompt = true;
    ret->kind = "prompt, chosen, rejected";
    return TP_OK;
}

/* ---- tokens ---- */

static tp_status render_answer(tp_preference_reader *r, const tp_row *row, const triple *t,
                               const tp_json *rest[2], int which, tp_error *err)
{
    tp_example example;
    tp_schema schema = r->schema;
    static const char *const names[2] = {"tools", "chat_template_kwargs"};
    tp_json parts[4], object = {.type = TP_JSON_OBJECT, .child = parts};
    int n = 0;
    if (t->has_prompt)
        parts[n++] = t->prompt;
    parts[n++] = t->answers[which];
    if (!t->has_prompt) { /* a whole conversation */
        schema.kind = TP_SCHEMA_MESSAGES;
        strcpy(schema.first, "completion");
    }
    for (int i = 0; i < 2; i++)
        if (rest[i])
            parts[n++] = copy_of(rest[i], names[i]);
    for (int i = 0; i + 1 < n; i++)
        parts[i].next = &parts[i + 1];
    object.n = (size_t)n;
    TP_TRY(tp_schema_read_object(&schema, row, &object, &r->arena, &example, err));
    return tp_render(r->options->renderer, &example, row, &r->arena, &r->rendered[which], err);
}

static tp_preference_answer keep(tp_preferences *p, const tp_rendered *r)
{
    tp_preference_answer a = {.ids = (const int32_t *)(uintptr_t)p->ids.len,
                              .mask = (const uint8_t *)(uintptr_t)p->masks.len,
                              .n = (int32_t)r->ids.len,
                              .n_targets = (int32_t)r->n_targets};
    for (size_t k = 0; k < r->ids.len; k++)
        tp_ids_add(&p->ids, r->ids.data[k]);
    tp_buf_add(&p->masks, r->mask.data, r->mask.len);
    p->n_truncated += r->truncated;
    p->n_straddling += r->straddles;
    p->n_tokens += r->ids.len;
    return a;
}

static bool are_equal(const tp_rendered *a, const tp_rendered *b)
{
    return a->ids.len == b->ids.len &&
           memcmp(a->ids.data, b->ids.data, a->ids.len * sizeof(int32_t)) == 0;
}

static void keep_pair(tp_preference_reader *r, const tp_row *row, tp_preferences *p)
{
    const tp_rendered *chosen = &r->rendered[0], *rejected = &r->rendered[1];
    if (!chosen->n_targets || !rejected->n_targets) {
        p->n_empty++;
        return;
    }
    p->n_equal += are_equal(chosen, rejected);
    p->longest_pair = TP_MAX(p->longest_pair, chosen->ids.len + rejected->ids.len);
    *TP_VEC_PUSH(p->pairs, p->n, r->cap) = (tp_preference_pair){
        .chosen = keep(p, chosen), .rejected = keep(p, rejected), .line = row->line};
}

tp_status tp_preference_read_row(tp_preference_reader *r, const tp_row *row, tp_preferences *p,
                                 tp_error *err)
{
    tp_json_options options = tp_row_json_options(row);
    size_t mark = tp_arena_mark(&r->arena);
    const tp_json *object;
    triple t = {0};
    tp_status status =
        tp_json_parse(&r->arena, row->file, row->text, row->n, &options, &object, err);
    if (status == TP_OK)
        status = read_triple(r, row, object, &t, err);
    for (int i = 0; i < 2 && status == TP_OK; i++) {
        const tp_json *rest[] = {tp_json_get(object, "tools"),
                                 tp_json_get(object, "chat_template_kwargs")};
        status = render_answer(r, row, &t, rest, i, err);
    }
    if (status == TP_OK) {
        p->kind = p->kind ? p->kind : t.kind;
        const tp_json *system = tp_json_get(object, "system");
        p->n_early += part_early(&t);
        p->n_system += system && system->text.len > 0;
        keep_pair(r, row, p);
    }
    tp_arena_rewind(&r->arena, mark);
    return status;
}

/* ---- a file ---- */

static void resolve(tp_preferences *p, tp_preference_answer *a)
{
    a->ids = p->ids.data + (uintptr_t)a->ids;
    a->mask = (const uint8_t *)p->masks.data + (uintptr_t)a->mask;
}

static tp_status handle_bad(const tp_preference_options *o, tp_preferences *p, tp_status status,
                            const tp_error *inner, tp_error *err)
{
    p->n_bad++;
    if (!p->first_bad[0])
        snprintf(p->first_bad, sizeof p->first_bad, "%s", inner->message);
    if (status == TP_ERR_CONFIG || o->skip_bad == 0)
        return tp_fail(err, status, "%s", inner->message);
    if (o->skip_bad > 0 && p->n_bad > (uint64_t)o->skip_bad)
        return tp_fail(err, status,
                       "more than data.skip_bad_rows = %lld rows are wrong; the first: %s",
                       (long long)o->skip_bad, p->first_bad);
    return TP_OK;
}

static tp_status read_wave(const tp_preference_options *o, const tp_lines *lines, tp_preferences *p,
                           uint64_t *cap, tp_error *err)
{
    tp_preference_reader *reader;
    TP_TRY(tp_preference_reader_new(o, lines->longest, &reader, err));
    reader->cap = *cap;
    tp_status status = TP_OK;
    const char *at = lines->buffer, *end = lines->buffer + lines->wave;
    for (uint64_t line = lines->line; at < end && status == TP_OK; line++) {
        tp_slice text = tp_line_take(&at, end);
        tp_error inner;
        if (tp_line_is_blank(text))
            continue;
        tp_row row = {o->path, line, text.data, text.len};
        status = tp_preference_read_row(reader, &row, p, &inner);
        if (status != TP_OK)
            status = handle_bad(o, p, status, &inner, err);
    }
    *cap = reader->cap;
    tp_preference_reader_free(reader);
    return status;
}

static tp_status read_file(const tp_preference_options *o, tp_preferences *p, tp_error *err)
{
    TP_CLEANUP(tp_lines_close) tp_lines lines = {0};
    uint64_t cap = 0;
    char what[256];
    snprintf(what, sizeof what, "tokenising %s", o->path);
    TP_TRY(tp_rows_open(&lines, o->path, err));
    do {
        TP_TRY(tp_lines_next(&lines, err));
        TP_TRY(read_wave(o, &lines, p, &cap, err));
        if (o->progress && !o->progress(o->user, what, lines.done, lines.size))
            return tp_fail(err, TP_ERR_INTERRUPTED, "stopped while reading '%s'", o->path);
    } while (!lines.at_end);
    tp_lines_hash(&lines, p->source_hash);
    return TP_OK;
}

tp_status tp_preferences_read(const tp_preference_options *options, tp_preferences *ret,
                              tp_error *err)
{
    tp_preferences p = {0};
    tp_status status = read_file(options, &p, err);
    if (status == TP_OK && p.n == 0)
        status = tp_fail(err, TP_ERR_CONFIG, "'%s' has no pair to learn from", options->path);
    if (status != TP_OK) {
        tp_preferences_release(&p);
        return status;
    }
    for (uint64_t i = 0; i < p.n; i++) {
        resolve(&p, &p.pairs[i].chosen);
        resolve(&p, &p.pairs[i].rejected);
    }
    *ret = p;
    return TP_OK;
}

void tp_preferences_release(tp_preferences *p)
{
    free(p->pairs);
    tp_ids_release(&p->ids);
    tp_buf_release(&p->masks);
    *p = (tp_preferences){0};
}
