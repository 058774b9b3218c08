/* conversions_data.c - models, data sets and templates of another trainer.  What rows have to be,
 * and which files hold them, is for the user to say: nothing is downloaded, and a recipe with ???
 * does not run before it is said. */
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/platform.h"
#include "config/import/import_rows.h"

static bool looks_like_file(const char *name)
{
    return access(name, R_OK) == 0 || tp_str_ends(name, ".jsonl") || tp_str_ends(name, ".json");
}

/* `wants`: what else the rows have to be, in sentences; empty: as they are. */
static void put_file(tp_import *im, const char *role, const char *target, const tp_json *name,
                     const tp_buf *wants)
{
    const char *text = tp_json_str(name);
    if (text && looks_like_file(text) && !wants->len) {
        tp_import_put_json(im, tp_import_role(im, role), target, name);
        return;
    }
    tp_import_put(im, role, target, "???");
    tp_import_mark(im, role, TP_IMPORT_OPEN, "A file of JSON Lines; nothing is downloaded.%s",
                   wants->len ? wants->data : "");
}

static void put_model(tp_import *im)
{
    const char *name = tp_import_word(im, "model");
    if (!name || !strcmp(name, "???")) {
        tp_import_put(im, "model", "policy.model_name", "???");
        tp_import_mark(im, "model", TP_IMPORT_OPEN, "A folder; Temper downloads nothing.");
    } else
        tp_import_put_json(im, tp_import_role(im, "model"), "policy.model_name",
                           tp_import_role(im, "model")->value);
}

/* ---- Axolotl's data sets ---- */

/* The members of a data set that are known, by what they mean. */
static const struct {
    const char *key;
    const char *target; /* NULL: none */
    const char *usual;  /* values that say nothing; NULL: any */
    const char *wants;  /* what another value asks of the rows; NULL: it is refused */
} members[] = {
    {"path", NULL, NULL, NULL},
    {"name", NULL, NULL, NULL},
    {"ds_type", NULL, NULL, NULL},
    {"data_files", NULL, NULL, NULL},
    {"revision", NULL, NULL, NULL},
    {"trust_remote_code", NULL, NULL, NULL},
    {"preprocess_shards", NULL, NULL, NULL},
    {"field", "text_key", NULL, NULL},
    {"field_messages", "chat_key", NULL, NULL},
    {"field_tools", "tool_key", NULL, NULL},
    {"field_system", "system_key", NULL, NULL},
    {"field_chosen", "chosen_key", NULL, NULL},
    {"field_rejected", "rejected_key", NULL, NULL},
    {"type", NULL, "chat_template|completion|chat_template.default",
     "it has around them what type %s puts there"},
    {"chat_template", NULL, "tokenizer_default", NULL},
    {"message_property_mappings", NULL,
     "{\"role\":\"role\",\"content\":\"content\"}|{\"content\":\"content\",\"role\":\"role\"}",
     "members of a message are named role and content, not %s"},
    {"message_field_role", NULL, "role", "the member %s of a message is named role"},
    {"message_field_content", NULL, "content", "the member %s of a message is named content"},
    {"roles", NULL, "{}", "roles are named system, user and assistant, not %s"},
    {"shards", NULL, "1", "it has one of %s parts"},
    {"roles_to_train", NULL, "[\"assistant\"]|[\"gpt\",\"assistant\"]|[\"assistant\",\"gpt\"]",
     NULL},
    {"train_on_eos", NULL, "turn", NULL},
    {"train_on_eot", NULL, "turn", NULL},
};

/* One of the two lists of Axolotl's, and the section that it becomes. */
typedef struct {
    const char *role, *section; /* "datasets", "data.train" */
} data_sets;

static void put_column(tp_import *im, data_sets at, const char *key, const tp_json *v)
{
    tp_import_put_json(im, tp_import_role(im, at.role),
                       tp_arena_printf(&im->arena, "%s.%s", at.section, key), v);
}

static void take_member(tp_import *im, data_sets at, const tp_json *v, tp_buf *wants)
{
    for (size_t i = 0; i < TP_COUNTOF(members); i++) {
        const char *usual = members[i].usual;
        if (!tp_slice_is(v->key, members[i].key))
            continue;
        if (members[i].target)
            put_column(im, at, members[i].target, v);
        if (!usual || tp_import_one_of(tp_import_spelled(im, v), usual))
            return;
        if (members[i].wants) {
            TP_OWN(tp_buf) value = {0};
            tp_import_value(v, &value);
            tp_buf_adds(wants, wants->len ? "; " : " See that ");
            for (const char *p = members[i].wants; *p; p++)
                if (p[0] == '%' && p[1] == 's')
                    tp_buf_adds(wants, tp_buf_str(&value)), p++;
                else
                    tp_buf_addc(wants, *p);
            return;
        }
        break;
    }
    tp_import_mark(im, at.role, TP_IMPORT_REFUSED, "%s[0].%.60s is not known here.", at.role,
                   v->key.data);
}

/* A part of the rows, as train[:5%] is. */
static bool is_part(const tp_json *v)
{
    const char *split = tp_slice_is(v->key, "split") ? tp_json_str(v) : NULL;
    return split && strchr(split, '[');
}

/* A template that has a name in another trainer; its text is there. */
static void ask_for_template(tp_import *im, const char *role, const char *name)
{
    tp_import_put(im, role, "policy.tokenizer.chat_template", "???");
    tp_import_mark(im, role, TP_IMPORT_OPEN,
                   "A .jinja file with Axolotl's template %.40s, or default: the tokenizer's own.",
                   name);
}

/* What Axolotl's strategies take from columns that the file does not name. */
static void put_usual_columns(tp_import *im, data_sets at, const tp_json *one)
{
    static const tp_json text = {.type = TP_JSON_STRING, .text = {"text", 4}};
    static const tp_json system = {.type = TP_JSON_STRING, .text = {"system", 6}};
    const char *type = tp_json_str(tp_json_get(one, "type"));
    if (!type || !tp_import_is(im, "sft"))
        return;
    if (!strcmp(type, "completion") && !tp_json_get(one, "field"))
        put_column(im, at, "text_key", &text);
    if (!strcmp(type, "completion"))
        tp_import_mark(im, at.role, TP_IMPORT_USED,
                       "A text longer than sequence_len is cut; Axolotl trains on all its parts.");
    if (!strcmp(type, "chat_template") && !tp_json_get(one, "field_system"))
        put_column(im, at, "system_key", &system);
}

static void put_data_sets(tp_import *im, data_sets at)
{
    const tp_import_key *key = tp_import_role(im, at.role);
    const tp_json *list = key->value, *one = list->type == TP_JSON_ARRAY ? list->child : NULL;
    const tp_json *files = tp_json_get(one, "data_files");
    const char *template = tp_json_str(tp_json_get(one, "chat_template"));
    TP_OWN(tp_buf) wants = {0};
    if (files && files->type == TP_JSON_ARRAY)
        files = files->n == 1 ? files->child : NULL;
    if (list->type == TP_JSON_ARRAY && list->n > 1)
        tp_buf_addf(&wants, " See that it has the rows of all %zu data sets", list->n);
    for (const tp_json *v = one ? one->child : NULL; v; v = v->next)
        if (is_part(v))
            tp_buf_addf(&wants, "%s of the rows it has those of %.40s",
                        wants.len ? ";" : " See that", v->text.data);
        else if (v->type != TP_JSON_NULL && !tp_slice_is(v->key, "split"))
            take_member(im, at, v, &wants);
    put_usual_columns(im, at, one);
    if (wants.len)
        tp_buf_addc(&wants, '.');
    put_file(im, at.role, tp_arena_printf(&im->arena, "%s.data_path", at.section),
             files ? files : tp_json_get(one, "path"), &wants);
    if (template && strcmp(template, "tokenizer_default") != 0)
        ask_for_template(im, "chat_template", template);
}

/* ---- templates, tokens, plug-ins ---- */

static void put_templates(tp_import *im)
{
    const char *word = tp_import_word(im, "chat_template");
    const tp_import_key *special = tp_import_role(im, "special_tokens");
    if (word && !tp_import_one_of(word, "tokenizer_default|jinja"))
        ask_for_template(im, "chat_template", word);
    for (const tp_json *v = special ? special->value->child : NULL; v; v = v->next)
        if (!tp_slice_is(v->key, "pad_token") && v->type != TP_JSON_NULL) {
            tp_import_put(im, "special_tokens", "policy.tokenizer.name", "???");
            tp_import_mark(im, "special_tokens", TP_IMPORT_OPEN,
                           "The tokenizer is what its folder says: the model's, or another, in "
                           "which %.40s is that.",
                           v->key.data);
        }
}

/* Kernels and loggers of Axolotl; what else a plug-in does is not known. */
static void judge_plugins(tp_import *im)
{
    static const char harmless[] = "axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin|"
                                   "axolotl.integrations.liger.LigerPlugin|"
                                   "axolotl.integrations.kernels.KernelsPlugin|"
                                   "axolotl.integrations.lm_eval.LMEvalPlugin|"
                                   "axolotl.integrations.swanlab.SwanLabPlugin";
    const tp_import_key *key = tp_import_role(im, "plugins");
    const tp_json *list = key ? key->value : NULL;
    if (!list)
        return;
    tp_import_mark(im, "plugins", TP_IMPORT_IDLE, "Kernels and loggers are Temper's own.");
    for (const tp_json *v = list->child; v; v = v->next)
        if (!tp_json_str(v) || !tp_import_one_of(tp_json_str(v), harmless))
            tp_import_mark(im, "plugins", TP_IMPORT_REFUSED, "%.100s: what it does is not known.",
                           tp_json_str(v) ? tp_json_str(v) : "an entry");
}

/* ---- conversations ---- */

/* The beginning of a file, up to the end of its first line; false: none, or it is not to be seen.
 */
static bool read_first_line(const char *path, tp_buf *out)
{
    enum { MOST = 1 << 21 };
    char part[1 << 14];
    int fd;
    int64_t size;
    ssize_t n = 0;
    bool has_end = false;
    if (tp_input_open(path, TP_INPUT_FILE, &fd, &size, NULL) != TP_OK)
        return false;
    while (!has_end && out->len < MOST && (n = read(fd, part, sizeof part)) > 0) {
        const char *end = memchr(part, '\n', (size_t)n);
        has_end = end != NULL;
        tp_buf_add(out, part, end ? (size_t)(end - part) : (size_t)n);
    }
    close(fd);
    return out->len > 0 && (has_end || n == 0);
}

/* The first row of the data, where it is here to be seen; else NULL. */
static const tp_json *first_row(tp_import *im)
{
    const char *path = tp_json_str(tp_config_find(im->recipe, "data.train.data_path"));
    TP_OWN(tp_buf) text = {0};
    const tp_json *row = NULL;
    if (!path || !strcmp(path, "???") || !read_first_line(path, &text))
        return NULL;
    char *line = tp_arena_strndup(&im->arena, text.data, text.len);
    if (tp_json_parse(&im->arena, path, line, text.len, &TP_JSON_TOLERANT, &row, NULL) != TP_OK)
        return NULL;
    return row->type == TP_JSON_OBJECT ? row : NULL;
}

static bool has_conversation(const tp_json *row)
{
    return tp_json_get(row, "messages") || tp_json_get(row, "conversations");
}

static void put_text_field(tp_import *im, const tp_json *row)
{
    tp_import_key *key = tp_import_role(im, "text_field");
    const char *name = tp_import_word(im, "text_field");
    if (!key || !name)
        return;
    if (has_conversation(row) || tp_json_get(row, "prompt"))
        tp_import_mark(im, "text_field", TP_IMPORT_IDLE,
                       "Rows have messages or a prompt, which TRL looks at first.");
    else if (tp_json_get(row, name) || strcmp(name, "text") != 0)
        tp_import_put(im, "text_field", "data.train.text_key", "%s", name);
    else
        key->becomes = NULL;
}

static bool is_given(const tp_import *im, const char *name)
{
    for (size_t i = 0; i < im->n_keys; i++)
        if (im->keys[i].line && !strcmp(im->keys[i].key, name))
            return true;
    return false;
}

/* TRL puts a chat template around conversations alone, whatever template it is given. */
static void put_no_template(tp_import *im)
{
    static const char target[] = "policy.tokenizer.chat_template";
    static const char why[] = "Rows are plain text, around which TRL puts no chat template.";
    for (size_t i = 0; i < im->n_keys; i++)
        if (im->keys[i].becomes && !strcmp(im->keys[i].becomes, target)) {
            im->keys[i].state = TP_IMPORT_IDLE;
            im->keys[i].remark = why;
        }
    tp_import_put(im, "dataset", target, "null");
    tp_import_mark(im, "dataset", TP_IMPORT_USED, "%s", why);
}

/* Strings alone, of which TRL's trainer makes no conversation. */
static bool is_plain(const tp_import *im, const tp_json *row)
{
    const tp_json *chosen = tp_json_get(row, "chosen");
    bool has_text = tp_json_str(tp_json_get(row, "prompt")) != NULL;
    if (tp_import_is(im, "sft"))
        return has_text && !has_conversation(row) && tp_json_str(tp_json_get(row, "completion"));
    return has_text ? !chosen || tp_json_str(chosen) : tp_json_str(chosen) != NULL;
}

/* Scripts that name the column of prompts, or a system prompt, make conversations of them. */
static void judge_template(tp_import *im, const tp_json *row)
{
    tp_import_key *key = tp_import_role(im, tp_import_word(im, "mixture") ? "mixture" : "dataset");
    if (!key || is_given(im, "dataset_prompt_column") || is_given(im, "system_prompt"))
        return;
    if (!row)
        key->remark = tp_arena_printf(&im->arena,
                                      "%s%sTRL puts no chat template around rows of plain "
                                      "text: for such policy.tokenizer.chat_template=null.",
                                      key->remark ? key->remark : "", key->remark ? " " : "");
    else if (is_plain(im, row))
        put_no_template(im);
}

static void put_preferences(tp_import *im)
{
    const tp_import_key *loss = tp_import_role(im, "dpo_loss");
    const tp_json *v = loss ? loss->value : NULL;
    const char *rl = tp_import_word(im, "rl");
    if (v && v->type == TP_JSON_ARRAY)
        v = v->n == 1 ? v->child : NULL;
    const char *word = rl && !strcmp(rl, "ipo") ? "ipo" : v ? tp_json_str(v) : NULL;
    if (rl && !tp_import_one_of(rl, "dpo|ipo"))
        tp_import_mark(im, "rl", TP_IMPORT_REFUSED, "Known here: dpo, ipo, grpo.");
    if (!word || !tp_import_one_of(word, "sigmoid|ipo")) {
        tp_import_mark(im, "dpo_loss", TP_IMPORT_REFUSED, "Known here: sigmoid, ipo.");
        return;
    }
    tp_import_put(im, "dpo_loss", "dpo.preference_loss", "%s", word);
    tp_import_put(im, "dpo_loss", "dpo.preference_average_log_probs", "%s",
                  strcmp(word, "ipo") ? "false" : "true");
}

/* TRL's data set, or several that a script puts together. */
static void put_data_set(tp_import *im)
{
    static const tp_buf nothing = {0};
    TP_OWN(tp_buf) merged = {0};
    const tp_import_key *mixture = tp_import_role(im, "mixture");
    if (mixture && mixture->value->type != TP_JSON_NULL) {
        tp_buf_adds(&merged, " One data set is read: put the rows of all into it.");
        put_file(im, "mixture", "data.train.data_path", NULL, &merged);
        tp_import_key *name = tp_import_role(im, "dataset");
        if (name && !name->line)
            name->becomes = NULL; /* the mixture is asked for, not this */

    } else
        put_file(im, "dataset", "data.train.data_path", tp_import_role(im, "dataset")->value,
                 &nothing);
}

void tp_import_data(tp_import *im)
{
    const tp_import_key *test = tp_import_role(im, "test_datasets");
    put_model(im);
    if (tp_import_role(im, "datasets"))
        put_data_sets(im, (data_sets){"datasets", "data.train"});
    else if (tp_import_role(im, "dataset"))
        put_data_set(im);
    if (test && test->value->type == TP_JSON_ARRAY)
        put_data_sets(im, (data_sets){"test_datasets", "data.validation"});
    put_templates(im);
    const tp_json *row = first_row(im);
    put_text_field(im, row);
    judge_template(im, row);
    judge_plugins(im);
    if (tp_import_is(im, "dpo"))
        put_preferences(im);
    if (tp_import_role(im, "system_prompt") && tp_import_word(im, "system_prompt")) {
        tp_import_put(im, "system_prompt", "data.default.system_prompt_file", "???");
        tp_import_mark(im, "system_prompt", TP_IMPORT_OPEN, "A file with that text.");
    }
    if (tp_import_role(im, "assistant_only_loss") && !tp_import_flag(im, "assistant_only_loss"))
        tp_import_mark(im, "assistant_only_loss",
                       has_conversation(row) ? TP_IMPORT_REFUSED : TP_IMPORT_USED,
                       "Of rows with messages TRL then learns every token, Temper what the "
                       "assistant says, as with assistant_only_loss: true; other rows are learned "
                       "alike.");
}
