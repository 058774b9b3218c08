/* recognise.c - the sources and their tables; whose a file is, and of which algorithm. */
#include <string.h>

#include "base/platform.h"
#include "config/import/import_rows.h"

/* clang-format off */
static const tp_import_row trl_rows[] = {
#include "config/import/trl.def"
    {0}};
static const tp_import_row axolotl_rows[] = {
#include "config/import/axolotl.def"
    {0}};
/* clang-format on */

const tp_import_source tp_import_sources[] = {{"nemo-rl", "NeMo RL", NULL},
                                              {"trl", "TRL", trl_rows},
                                              {"axolotl", "Axolotl", axolotl_rows},
                                              {0}};

static const struct {
    const char *name;
    unsigned who;
} algorithms[] = {{"sft", TP_FOR_SFT}, {"dpo", TP_FOR_DPO}, {"grpo", TP_FOR_GRPO}};

tp_slice tp_import_named_here(const char *key)
{
    for (const tp_import_source *s = tp_import_sources; s->name; s++)
        for (const tp_import_row *row = s->rows; row && row->key; row++)
            if (row->target && strcmp(row->key, key) == 0)
                return (tp_slice){row->target, strcspn(row->target, ", ")};
    return (tp_slice){0};
}

unsigned tp_import_who(const char *algorithm)
{
    for (size_t i = 0; i < TP_COUNTOF(algorithms); i++)
        if (!strcmp(algorithms[i].name, algorithm))
            return algorithms[i].who;
    return 0;
}

tp_status tp_import_not_these(const char *path, const tp_json *root, tp_error *err)
{
    if (root->type != TP_JSON_OBJECT)
        return tp_fail(err, TP_ERR_FORMAT, "%s: a mapping of keys to values is needed", path);
    if (tp_json_get(root, "log_history"))
        return tp_fail(err, TP_ERR_FORMAT,
                       "%s is the log of a run, not its arguments; temper metrics reads it; "
                       "arguments are what training_args.to_json_string() writes",
                       path);
    if (tp_json_get(root, "eval") && tp_json_get(root, "generation"))
        return tp_fail(err, TP_ERR_FORMAT,
                       "%s is an evaluation: temper eval takes it as it is, without a recipe",
                       path);
    if (tp_json_get(root, "peft_type"))
        return tp_fail(err, TP_ERR_FORMAT,
                       "%s describes an adapter; policy.model_name=FOLDER trains on it", path);
    if (tp_json_get(root, "architectures"))
        return tp_fail(err, TP_ERR_FORMAT, "%s describes a model; policy.model_name is its folder",
                       path);
    return TP_OK;
}

static size_t count_known(const tp_json *root, const tp_import_row *rows)
{
    size_t n = 0;
    for (const tp_json *v = root->child; v; v = v->next)
        for (const tp_import_row *row = rows; row->key; row++)
            if (tp_import_matches(row, v->key.data)) {
                n++;
                break;
            }
    return n;
}

static const tp_import_source *recognise(const tp_json *root)
{
    if (tp_json_get(root, "policy") || tp_json_get(root, "defaults") ||
        tp_json_get(root, "loss_fn"))
        return &tp_import_sources[0];
    if (tp_json_get(root, "base_model"))
        return &tp_import_sources[2];
    size_t trl = count_known(root, trl_rows), axolotl = count_known(root, axolotl_rows);
    return !trl && !axolotl ? NULL : &tp_import_sources[trl >= axolotl ? 1 : 2];
}

tp_status tp_import_choose_source(tp_import *im, const tp_json *root, tp_error *err)
{
    const char *from = im->request.from;
    for (const tp_import_source *s = tp_import_sources; from && s->name; s++)
        if (!strcmp(s->name, from))
            im->source = s;
    if (from && !im->source)
        return tp_fail(err, TP_ERR_ARG, "unknown source '%.60s'; known are nemo-rl, trl, axolotl",
                       from);
    if (!from)
        im->source = recognise(root);
    if (!im->source)
        return tp_fail(err, TP_ERR_FORMAT,
                       "%s: none of its keys is one of NeMo RL, TRL or Axolotl; --from says whose "
                       "it is",
                       im->path);
    return TP_OK;
}

/* Axolotl says it; TRL's file is of the trainer that has most of its keys. */
static const char *find_algorithm(tp_import *im, const tp_json *root)
{
    const char *rl = tp_json_str(tp_json_get(root, "rl"));
    if (im->source->rows == axolotl_rows)
        return !rl ? "sft" : !strcmp(rl, "grpo") ? "grpo" : "dpo";
    size_t best = 0, most = 0;
    for (size_t a = 0; a < TP_COUNTOF(algorithms); a++) {
        size_t n = 0;
        for (const tp_json *v = root->child; v; v = v->next)
            n += tp_import_find(im, algorithms[a].who, v->key.data) != NULL;
        if (n > most) {
            most = n;
            best = a;
        }
    }
    return algorithms[best].name;
}

tp_status tp_import_choose_algorithm(tp_import *im, const tp_json *root, tp_error *err)
{
    const char *algorithm = im->request.algorithm;
    if (algorithm && !tp_import_who(algorithm))
        return tp_fail(err, TP_ERR_ARG, "unknown algorithm '%.60s'; known are sft, dpo, grpo",
                       algorithm);
    im->algorithm = algorithm ? algorithm : find_algorithm(im, root);
    return TP_OK;
}
