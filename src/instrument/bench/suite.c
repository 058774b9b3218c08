/* suite.c - the benchmarks of a suite: those that are built in and those of YAML files, chosen by
 * pattern. */
#include "instrument/bench/suite.h"

#include <dirent.h>
#include <fnmatch.h>
#include <string.h>

#include "base/files.h"
#include "text/yaml/yaml.h"

enum { MAX_CASES = 2000, MAX_FILES = 256 };

tp_bench_case tp_bench_case_default(void)
{
    return (tp_bench_case){.kind = "train",
                           .model = "llama",
                           .precision = "float32",
                           .backend = "cpu",
                           .device = "cpu",
                           .origin = "built in",
                           .batch_size = 4,
                           .sequence_length = 512,
                           .steps = 10,
                           .warm_up = 2};
}

/* ---- one case ---- */

static void put_text(tp_json_w *w, const char *key, const char *v)
{
    if (!v)
        return;
    tp_json_w_put_str(w, key, v);
}

void tp_bench_case_request(const tp_bench_case *c, tp_buf *out)
{
    tp_json_w w = tp_json_w_open(out, 0, '{');
    put_text(&w, "benchmark", c->name);
    tp_json_w_key(&w, "options");
    if (c->extra)
        tp_json_w_value(&w, c->extra);
    else {
        tp_json_w_begin(&w, '{');
        put_text(&w, "name", c->name);
        put_text(&w, "kind", c->kind);
        put_text(&w, "model", c->model);
        put_text(&w, "precision", c->precision);
        put_text(&w, "backend", c->backend);
        put_text(&w, "device", c->device);
        tp_json_w_put_i64(&w, "batch_size", c->batch_size);
        tp_json_w_put_i64(&w, "sequence_length", c->sequence_length);
        tp_json_w_put_i64(&w, "steps", c->steps);
        tp_json_w_put_i64(&w, "warm_up", c->warm_up);
        tp_json_w_put_i64(&w, "threads", c->threads);
        tp_json_w_end(&w, '}');
    }
    tp_json_w_end(&w, '}');
}

typedef struct {
    const char *key;
    size_t offset;
    int64_t least, most; /* of numbers; both 0: a text */
} field;

#define TEXT(member)                                   \
    {                                                  \
#member, offsetof(tp_bench_case, member), 0, 0 \
    }
#define NUMBER(member, least, most)                           \
    {                                                         \
#member, offsetof(tp_bench_case, member), least, most \
    }
static const field fields[] = {TEXT(name),
                               TEXT(kind),
                               TEXT(model),
                               TEXT(precision),
                               TEXT(backend),
                               TEXT(device),
                               TEXT(command),
                               NUMBER(batch_size, 1, 1 << 20),
                               NUMBER(sequence_length, 2, 1 << 24),
                               NUMBER(steps, 1, 1 << 24),
                               NUMBER(warm_up, 0, 1 << 24),
                               NUMBER(threads, 0, 4096)};
#undef TEXT
#undef NUMBER

static tp_status set_field(const char *place, const tp_json *v, const field *f, tp_arena *arena,
                           tp_bench_case *c, tp_error *err)
{
    void *to = (char *)c + f->offset;
    int64_t number;
    if (f->most == 0) {
        if (!tp_json_str(v))
            return tp_fail(err, TP_ERR_CONFIG, "%s:%u: %s has to be text", place, v->line, f->key);
        *(const char **)to = tp_arena_strdup(arena, tp_json_str(v));
        return TP_OK;
    }
    if (!tp_json_i64(v, &number) || number < f->least || number > f->most)
        return tp_fail(err, TP_ERR_CONFIG, "%s:%u: %s is a whole number from %lld to %lld", place,
                       v->line, f->key, (long long)f->least, (long long)f->most);
    *(int64_t *)to = number;
    return TP_OK;
}

tp_status tp_bench_case_read(const char *place, const tp_json *object, tp_arena *arena,
                             tp_bench_case *ret, tp_error *err)
{
    tp_bench_case c = tp_bench_case_default();
    if (!object || object->type != TP_JSON_OBJECT)
        return tp_fail(err, TP_ERR_CONFIG, "%s: a benchmark has to be a mapping", place);
    for (const tp_json *v = object->child; v; v = v->next) {
        const field *f = NULL;
        for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
            f = strcmp(fields[i].key, v->key.data) == 0 ? &fields[i] : f;
        if (f)
            TP_TRY(set_field(place, v, f, arena, &c, err));
        else if (strcmp(v->key.data, "options") == 0 && v->type == TP_JSON_OBJECT)
            c.extra = v;
        else
            return tp_fail(err, TP_ERR_CONFIG,
                           "%s:%u: '%s' is not known here; known are name, kind, model, precision, "
                           "backend, device, command, batch_size, sequence_length, steps, warm_up, "
                           "threads and options",
                           place, v->line, v->key.data);
    }
    *ret = c;
    return TP_OK;
}

/* ---- the suite ---- */

static void add(tp_bench_suite *suite, const tp_bench_case *c)
{
    *TP_ARENA_PUSH(&suite->arena, suite->items, suite->n, suite->cap) = *c;
}

tp_status tp_bench_suite_init(tp_bench_suite *suite, tp_error *err)
{
    static const struct {
        const char *name, *kind, *model, *precision;
        int64_t batch_size, sequence_length;
    } rows[] = {
#define CASE(name, kind, model, precision, batch_size, length) \
    {name, kind, model, precision, batch_size, length},
#include "instrument/bench/suite.def"
#undef CASE
    };
    *suite = (tp_bench_suite){0};
    TP_TRY(tp_arena_init(&suite->arena, (size_t)256 << 20, err));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tp_bench_case c = tp_bench_case_default();
        c.name = rows[i].name;
        c.kind = rows[i].kind;
        c.model = rows[i].model;
        c.precision = rows[i].precision;
        c.batch_size = rows[i].batch_size;
        c.sequence_length = rows[i].sequence_length;
        add(suite, &c);
    }
    return TP_OK;
}

void tp_bench_suite_release(tp_bench_suite *suite)
{
    tp_arena_release(&suite->arena);
    *suite = (tp_bench_suite){0};
}

static tp_status add_entry(tp_bench_suite *suite, const char *path, const tp_json *entry,
                           tp_error *err)
{
    tp_bench_case c;
    TP_TRY(tp_bench_case_read(path, entry, &suite->arena, &c, err));
    bool runs_command = strcmp(c.kind, "command") == 0 || strcmp(c.kind, "worker") == 0;
    if (!c.name || !*c.name)
        return tp_fail(err, TP_ERR_CONFIG, "%s:%u: a benchmark needs a name", path, entry->line);
    if (runs_command != (c.command != NULL))
        return tp_fail(err, TP_ERR_CONFIG,
                       "%s:%u: 'command' belongs to the kinds command and worker, which need it",
                       path, entry->line);
    for (size_t i = 0; i < suite->n; i++) {
        if (strcmp(suite->items[i].name, c.name) == 0)
            return tp_fail(err, TP_ERR_CONFIG, "%s:%u: there is a benchmark '%s' already (%s)",
                           path, entry->line, c.name, suite->items[i].origin);
    }
    if (suite->n == MAX_CASES)
        return tp_fail(err, TP_ERR_CONFIG, "%s: more than %d benchmarks", path, MAX_CASES);
    c.origin = tp_arena_printf(&suite->arena, "%s:%u", path, entry->line);
    add(suite, &c);
    return TP_OK;
}

static tp_status add_file(tp_bench_suite *suite, const char *path, tp_error *err)
{
    TP_OWN(tp_buf) text = {0};
    const tp_json *root;
    tp_status status = tp_file_read(path, TP_YAML_MAX_BYTES, &text, err);
    if (status == TP_OK)
        status = tp_yaml_parse(&suite->arena, path, tp_buf_str(&text), text.len, &root, err);
    TP_TRY(status);
    const tp_json *list = tp_json_get(root, "benchmarks");
    if (!list)
        return add_entry(suite, path, root, err);
    if (list->type != TP_JSON_ARRAY || root->n != 1)
        return tp_fail(err, TP_ERR_CONFIG, "%s: \"benchmarks\" has to be a list, and alone", path);
    for (const tp_json *entry = list->child; entry; entry = entry->next)
        TP_TRY(add_entry(suite, path, entry, err));
    return TP_OK;
}

static int is_yaml(const struct dirent *entry)
{
    return tp_str_ends(entry->d_name, ".yaml") || tp_str_ends(entry->d_name, ".yml");
}

tp_status tp_bench_suite_add(tp_bench_suite *suite, const char *path, tp_error *err)
{
    struct dirent **entries;
    if (!tp_dir_exists(path))
        return add_file(suite, path, err);
    int n = scandir(path, &entries, is_yaml, alphasort);
    tp_status status = TP_OK;
    if (n < 0 || n > MAX_FILES)
        status = tp_fail(err, TP_ERR_IO, "'%s' cannot be listed, or has more than %d files", path,
                         MAX_FILES);
    for (int i = 0; i < n; i++) {
        char file[4096];
        snprintf(file, sizeof file, "%s/%s", path, entries[i]->d_name);
        if (status == TP_OK)
            status = add_file(suite, tp_arena_strdup(&suite->arena, file), err);
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
    return status;
}

bool tp_bench_matches(const char *name, const char *const *patterns, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t length = strlen(patterns[i]);
        if (length > 1 && patterns[i][length - 1] == '/')
            length--;
        bool is_part =
            strncmp(name, patterns[i], length) == 0 && (name[length] == '/' || name[length] == 0);
        if (is_part || fnmatch(patterns[i], name, 0) == 0)
            return true;
    }
    return n == 0;
}
