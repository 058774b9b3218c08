/* tokenizer_parts.c - normalizer, post-processor and decoder of a tokenizer.json. */
#include <string.h>

#include "base/platform.h"
#include "text/tokenizer/tokenizer_internal.h"

enum { MAX_STEPS = 32, MAX_AROUND = 64 };

/* The elements of {"type": "Sequence", `member`: [...]}, or the thing alone. */
static tp_status flatten(const tp_tokenizer *tok, const tp_json *spec, const char *member,
                         const tp_json *ret[MAX_STEPS], size_t *ret_n, tp_error *err)
{
    const char *type = tp_json_str(tp_json_get(spec, "type"));
    if (!type || strcmp(type, "Sequence") != 0) {
        ret[0] = spec;
        *ret_n = 1;
        return TP_OK;
    }
    const tp_json *list = tp_json_get(spec, member);
    if (!list || list->type != TP_JSON_ARRAY || list->n > MAX_STEPS)
        return tp_fail(err, TP_ERR_FORMAT, "%s:%u: 'Sequence' needs an array '%s' of at most %d",
                       tok->name, (unsigned)spec->line, member, MAX_STEPS);
    *ret_n = 0;
    for (const tp_json *v = list->child; v; v = v->next)
        ret[(*ret_n)++] = v;
    return TP_OK;
}

static tp_status unsupported(const tp_tokenizer *tok, const tp_json *spec, const char *what,
                             const char *supported, tp_error *err)
{
    const char *type = tp_json_str(tp_json_get(spec, "type"));
    return tp_fail(err, TP_ERR_UNSUPPORTED, "%s:%u: %s '%s' is not supported; %s are", tok->name,
                   (unsigned)spec->line, what, type ? type : "(without type)", supported);
}

static tp_slice keep(tp_arena *arena, const tp_json *v)
{
    return (tp_slice){tp_arena_strndup(arena, v->text.data, v->text.len), v->text.len};
}

static tp_status parse_normalize_step(tp_tokenizer *tok, const tp_json *spec,
                                      tp_normalize_step *step, tp_error *err)
{
    static const char *const names[] = {"NFC",       "NFD",   "NFKC",    "NFKD",
                                        "Lowercase", "Strip", "Prepend", "Replace"};
    const char *type = tp_json_str(tp_json_get(spec, "type"));
    size_t kind = 0;
    while (type && kind < TP_COUNTOF(names) && strcmp(type, names[kind]) != 0)
        kind++;
    if (!type || kind == TP_COUNTOF(names))
        return unsupported(tok, spec, "normalizer",
                           "NFC, NFD, NFKC, NFKD, Lowercase, Strip, Prepend, Replace and Sequence",
                           err);
    *step = (tp_normalize_step){.kind = (tp_normalize_kind)kind};
    tp_json_bool(tp_json_get(spec, "strip_left"), &step->strip_left);
    tp_json_bool(tp_json_get(spec, "strip_right"), &step->strip_right);
    const tp_json *from = tp_json_get(tp_json_get(spec, "pattern"), "String");
    const tp_json *to =
        tp_json_get(spec, step->kind == TP_NORMALIZE_PREPEND ? "prepend" : "content");
    if (step->kind == TP_NORMALIZE_REPLACE) {
        if (!tp_json_str(from) || !from->text.len)
            return tp_fail(err, TP_ERR_UNSUPPORTED,
                           "%s:%u: normalizer 'Replace' is supported with a 'String' pattern that "
                           "is not empty, not with a regular expression",
                           tok->name, (unsigned)spec->line);
        step->from = keep(&tok->arena, from);
    }
    if (step->kind == TP_NORMALIZE_REPLACE || step->kind == TP_NORMALIZE_PREPEND) {
        if (!tp_json_str(to))
            return tp_fail(err, TP_ERR_FORMAT, "%s:%u: normalizer '%s' without its text", tok->name,
                           (unsigned)spec->line, type);
        step->to = keep(&tok->arena, to);
    }
    return TP_OK;
}

tp_status tp_normalizer_parse(tp_tokenizer *tok, const tp_json *spec, tp_error *err)
{
    const tp_json *parts[MAX_STEPS];
    size_t n = 0;
    if (!spec || spec->type == TP_JSON_NULL)
        return TP_OK;
    TP_TRY(flatten(tok, spec, "normalizers", parts, &n, err));
    tp_normalize_step *steps = tp_arena_array(&tok->arena, tp_normalize_step, n);
    for (size_t i = 0; i < n; i++)
        TP_TRY(parse_normalize_step(tok, parts[i], &steps[i], err));
    tok->normalizer = (tp_normalizer){steps, n};
    return TP_OK;
}

/* What a post-processor puts around a text. */
typedef struct {
    int32_t prefix[MAX_AROUND], suffix[MAX_AROUND];
    size_t n_prefix, n_suffix;
} around;

static tp_status check_id(const tp_tokenizer *tok, const tp_json *v, int32_t *ret, tp_error *err)
{
    int64_t id = -1;
    if (!tp_json_i64(v, &id) || id < 0 || id >= tok->bpe.n_ids || !tok->bpe.tokens[id].spelling)
        return tp_fail(err, TP_ERR_FORMAT,
                       "%s:%u: the post-processor adds token id %s, which no token has", tok->name,
                       v ? (unsigned)v->line : 0, v && v->text.data ? v->text.data : "(missing)");
    *ret = (int32_t)id;
    return TP_OK;
}

static tp_status push_id(const tp_tokenizer *tok, const tp_json *v, bool after, around *a,
                         tp_error *err)
{
    int32_t id = 0;
    size_t *n = after ? &a->n_suffix : &a->n_prefix;
    TP_TRY(check_id(tok, v, &id, err));
    if (*n == MAX_AROUND)
        return tp_fail(err, TP_ERR_UNSUPPORTED,
                       "%s:%u: the post-processor adds more than %d tokens", tok->name,
                       (unsigned)v->line, MAX_AROUND);
    (after ? a->suffix : a->prefix)[(*n)++] = id;
    return TP_OK;
}

/* "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}] */
static tp_status parse_template(const tp_tokenizer *tok, const tp_json *spec, around *a,
                                tp_error *err)
{
    const tp_json *single = tp_json_get(spec, "single");
    int n_sequences = 0;
    for (const tp_json *v = single && single->type == TP_JSON_ARRAY ? single->child : NULL; v;
         v = v->next) {
        const tp_json *special = tp_json_get(v, "SpecialToken");
        if (!special) {
            n_sequences += tp_json_get(v, "Sequence") != NULL;
            continue;
        }
        const char *name = tp_json_str(tp_json_get(special, "id"));
        const tp_json *token = name ? tp_json_get(tp_json_get(spec, "special_tokens"), name) : NULL;
        const tp_json *ids = tp_json_get(token, "ids");
        if (!ids || ids->type != TP_JSON_ARRAY)
            return tp_fail(err, TP_ERR_FORMAT,
                           "%s:%u: the template's token '%s' is not in its 'special_tokens'",
                           tok->name, (unsigned)v->line, name ? name : "(without id)");
        for (const tp_json *id = ids->child; id; id = id->next)
            TP_TRY(push_id(tok, id, n_sequences > 0, a, err));
    }
    if (n_sequences != 1)
        return tp_fail(
            err, TP_ERR_UNSUPPORTED,
            "%s:%u: 'TemplateProcessing' needs a 'single' with the sequence exactly once",
            tok->name, (unsigned)spec->line);
    return TP_OK;
}

static tp_status parse_processor(const tp_tokenizer *tok, const tp_json *spec, around *a,
                                 tp_error *err)
{
    const char *type = tp_json_str(tp_json_get(spec, "type"));
    if (type && strcmp(type, "ByteLevel") == 0)
        return TP_OK; /* concerns offsets alone */
    if (type && strcmp(type, "TemplateProcessing") == 0)
        return parse_template(tok, spec, a, err);
    if (type && (strcmp(type, "RobertaProcessing") == 0 || strcmp(type, "BertProcessing") == 0)) {
        TP_TRY(push_id(tok, tp_json_at(tp_json_get(spec, "cls"), 1), false, a, err));
        return push_id(tok, tp_json_at(tp_json_get(spec, "sep"), 1), true, a, err);
    }
    return unsupported(tok, spec, "post-processor",
                       "TemplateProcessing, ByteLevel, RobertaProcessing, BertProcessing and "
                       "Sequence",
                       err);
}

static int32_t *keep_ids(tp_arena *arena, const int32_t *ids, size_t n)
{
    int32_t *copy = tp_arena_array(arena, int32_t, n);
    if (n)
        memcpy(copy, ids, n * sizeof *ids);
    return copy;
}

tp_status tp_postprocessor_parse(tp_tokenizer *tok, const tp_json *spec, tp_error *err)
{
    const tp_json *parts[MAX_STEPS];
    size_t n = 0;
    if (!spec || spec->type == TP_JSON_NULL)
        return TP_OK;
    TP_TRY(flatten(tok, spec, "processors", parts, &n, err));
    around all = {0};
    for (size_t i = 0; i < n; i++) { /* each wraps what the ones before made */
        around one = {0};
        TP_TRY(parse_processor(tok, parts[i], &one, err));
        if (all.n_prefix + one.n_prefix > MAX_AROUND || all.n_suffix + one.n_suffix > MAX_AROUND)
            return tp_fail(err, TP_ERR_UNSUPPORTED, "%s: the post-processor adds over %d tokens",
                           tok->name, MAX_AROUND);
        memmove(all.prefix + one.n_prefix, all.prefix, all.n_prefix * sizeof *all.prefix);
        memcpy(all.prefix, one.prefix, one.n_prefix * sizeof *all.prefix);
        memcpy(all.suffix + all.n_suffix, one.suffix, one.n_suffix * sizeof *all.suffix);
        all.n_prefix += one.n_prefix;
        all.n_suffix += one.n_suffix;
    }
    tok->prefix = keep_ids(&tok->arena, all.prefix, all.n_prefix);
    tok->suffix = keep_ids(&tok->arena, all.suffix, all.n_suffix);
    tok->n_prefix = all.n_prefix;
    tok->n_suffix = all.n_suffix;
    return TP_OK;
}

tp_status tp_decoder_check(const tp_tokenizer *tok, const tp_json *spec, tp_error *err)
{
    const tp_json *parts[MAX_STEPS];
    size_t n = 0;
    bool byte_level = false;
    if (!spec || spec->type == TP_JSON_NULL)
        return tp_fail(err, TP_ERR_UNSUPPORTED,
                       "%s: 'decoder' is missing or null; byte-level BPE needs 'ByteLevel'",
                       tok->name);
    TP_TRY(flatten(tok, spec, "decoders", parts, &n, err));
    for (size_t i = 0; i < n; i++) {
        const char *type = tp_json_str(tp_json_get(parts[i], "type"));
        if (type && strcmp(type, "ByteLevel") == 0)
            byte_level = true;
        else if (!type || strcmp(type, "Fuse") != 0) /* Fuse joins: nothing to do */
            return unsupported(tok, parts[i], "decoder", "ByteLevel, Fuse and Sequence", err);
    }
    if (!byte_level)
        return tp_fail(err, TP_ERR_UNSUPPORTED, "%s:%u: the decoder has no 'ByteLevel'", tok->name,
                       (unsigned)spec->line);
    return TP_OK;
}
