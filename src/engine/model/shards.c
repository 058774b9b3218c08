/* shards.c - parsing model.safetensors.index.json and opening the shards that it names. */
#include "engine/model/shards.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/files.h"
#include "text/json/json.h"

enum {
    MAX_INDEX_BYTES = 64 << 20,
    MAX_FILES = 4096,
    MAX_LISTED = 700 /* bytes of an error that names may take */
};

/* A list of names for a message, cut when it grows too long. */
typedef struct {
    tp_buf text;
    size_t n;
} name_list;

static void list_name(name_list *list, const char *name)
{
    if (list->text.len < MAX_LISTED)
        tp_buf_addf(&list->text, "%s%.120s", list->n ? ", " : "", name);
    else if (!tp_str_ends(list->text.data, ", ..."))
        tp_buf_adds(&list->text, ", ...");
    list->n++;
}

static bool is_plain_name(const char *name)
{
    return name[0] && name[0] != '.' && !strchr(name, '/') && !strchr(name, '\\');
}

static tp_status visit_map(const char *name, const tp_json *map, tp_shard_visit visit,
                           void *context, tp_error *err)
{
    for (const tp_json *v = map->child; v; v = v->next) {
        const char *file = tp_json_str(v);
        if (!file || strlen(file) != v->text.len || !is_plain_name(file))
            return tp_fail(err, TP_ERR_FORMAT,
                           "%s:%u: tensor '%.200s' must be in a plain file name, not \"%.200s\"",
                           name, v->line, v->key.data, file ? file : "(not a string)");
        if (strlen(v->key.data) != v->key.len)
            return tp_fail(err, TP_ERR_FORMAT, "%s:%u: a name contains a NUL byte", name, v->line);
        TP_TRY(visit(context, v->key.data, file, err));
    }
    return TP_OK;
}

tp_status tp_shards_parse_index(const char *name, const char *text, size_t n, tp_shard_visit visit,
                                void *context, tp_error *err)
{
    TP_OWN(tp_arena) arena = {0};
    const tp_json *root = NULL;
    tp_json_options options = {.max_bytes = MAX_INDEX_BYTES};
    if (n > MAX_INDEX_BYTES)
        return tp_fail(err, TP_ERR_FORMAT, "%s: %zu bytes are too many for an index", name, n);
    TP_TRY(tp_arena_init(&arena, n * 64 + (64 << 10), err));
    tp_status status = tp_json_parse(&arena, name, text, n, &options, &root, err);
    const tp_json *map = status == TP_OK ? tp_json_get(root, "weight_map") : NULL;
    if (status == TP_OK && (!map || map->type != TP_JSON_OBJECT || map->n == 0))
        status = tp_fail(err, TP_ERR_FORMAT,
                         "%s: expected \"weight_map\", an object from tensor to file", name);
    if (status == TP_OK)
        status = visit_map(name, map, visit, context, err);
    return status;
}

typedef struct {
    const char *folder;
    tp_shards *shards;
    char *names[MAX_FILES]; /* of the files, opened or not */
    tp_safetensors *opened[MAX_FILES];
    size_t n_names, last;
    name_list missing_files, missing_tensors;
} opening;

static tp_status open_named(opening *o, const char *file, tp_error *err)
{
    if (o->n_names == MAX_FILES)
        return tp_fail(err, TP_ERR_FORMAT, "%s: the index names more than %d files", o->folder,
                       MAX_FILES);
    TP_OWN(tp_buf) path = {0};
    tp_buf_addf(&path, "%s/%s", o->folder, file);
    o->last = o->n_names;
    o->names[o->n_names++] = tp_strdup(file);
    if (tp_file_exists(path.data))
        TP_TRY(tp_safetensors_open(path.data, &o->opened[o->last], err));
    else
        list_name(&o->missing_files, file);
    return TP_OK;
}

static tp_status visit(void *context, const char *tensor, const char *file, tp_error *err)
{
    opening *o = context;
    /* Tensors of one file mostly follow one another. */
    if (o->n_names == 0 || strcmp(o->names[o->last], file) != 0) {
        for (o->last = 0; o->last < o->n_names; o->last++)
            if (strcmp(o->names[o->last], file) == 0)
                break;
        if (o->last == o->n_names)
            TP_TRY(open_named(o, file, err));
    }
    const tp_safetensors *st = o->opened[o->last];
    if (st && !tp_safetensors_find(st, tensor))
        list_name(&o->missing_tensors, tensor);
    return TP_OK;
}

static tp_status complain(const opening *o, tp_error *err)
{
    const name_list *files = &o->missing_files, *tensors = &o->missing_tensors;
    if (files->n)
        return tp_fail(err, TP_ERR_IO,
                       "%s: %zu of %zu weight files are missing: %s; download the folder again",
                       o->folder, files->n, o->n_names, tp_buf_str(&files->text));
    if (tensors->n)
        return tp_fail(err, TP_ERR_FORMAT,
                       "%s: %zu tensors of the index are not in the files it names: %s", o->folder,
                       tensors->n, tp_buf_str(&tensors->text));
    return TP_OK;
}

static tp_status open_indexed(const char *folder, const char *index, tp_shards *ret, tp_error *err)
{
    TP_FREED opening *o = tp_new(1, sizeof *o);
    o->folder = folder;
    TP_OWN(tp_buf) text = {0};
    tp_status status = tp_file_read(index, MAX_INDEX_BYTES, &text, err);
    if (status == TP_OK)
        status = tp_shards_parse_index(index, tp_buf_str(&text), text.len, visit, o, err);
    if (status == TP_OK)
        status = complain(o, err);
    tp_shards shards = {.files = tp_new(o->n_names + 1, sizeof *shards.files), .n = o->n_names};
    for (size_t i = 0; i < o->n_names; i++) {
        shards.files[i] = o->opened[i];
        free(o->names[i]);
    }
    tp_buf_release(&o->missing_files.text);
    tp_buf_release(&o->missing_tensors.text);
    TP_HAND_OVER(status, ret, shards, tp_shards_close(&shards));
}

static tp_status open_single(const char *path, tp_shards *ret, tp_error *err)
{
    tp_safetensors *st;
    TP_TRY(tp_safetensors_open(path, &st, err));
    tp_safetensors **files = tp_new(1, sizeof *files);
    files[0] = st;
    *ret = (tp_shards){.files = files, .n = 1};
    return TP_OK;
}

static tp_status nothing_to_open(const char *folder, tp_error *err)
{
    bool has_pickle = tp_file_exists(tp_path_of("%s/pytorch_model.bin", folder).text);
    if (has_pickle)
        return tp_fail(err, TP_ERR_UNSUPPORTED,
                       "%s has its weights in pytorch_model.bin, a format that can run code; "
                       "convert it: python -c \"from transformers import AutoModelForCausalLM as "
                       "M; M.from_pretrained('%s').save_pretrained('%s')\"",
                       folder, folder, folder);
    return tp_fail(err, TP_ERR_IO,
                   "%s has neither model.safetensors nor model.safetensors.index.json; fetch all "
                   "files of the model",
                   folder);
}

tp_status tp_shards_open(const char *folder, tp_shards *ret, tp_error *err)
{
    TP_OWN(tp_buf) single = {0}, index = {0};
    tp_buf_addf(&single, "%s/model.safetensors", folder);
    tp_buf_addf(&index, "%s/model.safetensors.index.json", folder);
    return tp_file_exists(single.data)  ? open_single(single.data, ret, err)
           : tp_file_exists(index.data) ? open_indexed(folder, index.data, ret, err)
                                        : nothing_to_open(folder, err);
}

void tp_shards_close(tp_shards *shards)
{
    for (size_t i = 0; i < shards->n; i++)
        tp_safetensors_close(shards->files[i]);
    free(shards->files);
    *shards = (tp_shards){0};
}
