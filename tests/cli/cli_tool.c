/* cli_tool.c - what shell tests cannot do themselves.
 *
 *     cli_tool get FILE a.b.0.c    print a member of a JSON file; fails when there is none
 *     cli_tool keys FILE a.b       print the keys of an object, one per line
 *     cli_tool lines FILE          every line is one JSON value; prints how many
 *     cli_tool holds FILE a.b ALL  every member of a.b is in ALL with the same value; prints
 *                                  those that are not
 *     cli_tool flip FILE BIT       flip one bit, counted from the start of the file
 *     cli_tool patch FILE AT TEXT  overwrite bytes at an offset
 *     cli_tool points RUN EVENTS   every figure of RUN is in EVENTS as a float32, and no other;
 *                                  prints those that are not, and how many there are
 *     cli_tool valid SCHEMA FILE   FILE is a JSON value as the schema says; prints what is not
 *     cli_tool valid-lines SCHEMA FILE   each line of it is
 *     cli_tool plan CONFIG K=V...  bytes that the library plans for a recipe */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/files.h"
#include "json_schema.h"
#include "temper/analysis.h"
#include "temper/plan.h"
#include "text/json/json.h"

static tp_arena arena;
static tp_buf text;

static int complain(const tp_error *err)
{
    fprintf(stderr, "cli_tool: %s\n", err->message);
    return 1;
}

/* In JSON Lines, text up to `end`. */
static const tp_json *parse(const char *path, const char *from, size_t n)
{
    tp_error err = {0};
    const tp_json *root;
    if (tp_json_parse(&arena, path, from, n, NULL, &root, &err) == TP_OK)
        return root;
    complain(&err);
    return NULL;
}

static const tp_json *walk(const tp_json *at, char *path)
{
    for (char *key = strtok(path, "."); key && at; key = strtok(NULL, ".")) {
        int64_t index;
        if (at->type == TP_JSON_ARRAY && tp_str_to_i64(key, &index)) {
            at = at->child;
            while (at && index-- > 0)
                at = at->next;
        } else
            at = tp_json_get(at, key);
    }
    return at;
}

static int get(const char *file, char *path)
{
    const tp_json *at = walk(parse(file, tp_buf_str(&text), text.len), path);
    tp_buf out = {0};
    tp_json_w w;
    if (!at)
        return 1;
    tp_json_w_init(&w, &out, 0);
    tp_json_w_value(&w, at);
    puts(tp_json_str(at) ? tp_json_str(at) : tp_buf_str(&out));
    tp_buf_release(&out);
    return 0;
}

static int keys(const char *file, char *path)
{
    const tp_json *at = walk(parse(file, tp_buf_str(&text), text.len), path);
    if (!at)
        return 1;
    for (const tp_json *m = at->child; m; m = m->next)
        printf("%.*s\n", (int)m->key.len, m->key.data);
    return 0;
}

/* Differences between a value and what should hold it, member by member. */
static int differences(const tp_json *part, const tp_json *all, const char *name)
{
    int n = 0;
    if (!all || part->type != all->type) {
        printf("%s: %s\n", name, all ? "of another type" : "missing");
        return 1;
    }
    if (part->type == TP_JSON_OBJECT || part->type == TP_JSON_ARRAY) {
        const tp_json *other = all->child;
        if (part->type == TP_JSON_ARRAY && part->n != all->n) {
            printf("%s: %zu elements, not %zu\n", name, all->n, part->n);
            return 1;
        }
        for (const tp_json *m = part->child; m; m = m->next) {
            char below[512];
            bool is_array = part->type == TP_JSON_ARRAY;
            snprintf(below, sizeof below, "%s.%.*s", name, (int)m->key.len,
                     is_array ? "" : m->key.data);
            n += differences(m, is_array ? other : tp_json_get(all, m->key.data), below);
            other = is_array ? other->next : other;
        }
        return n;
    }
    double wanted, got;
    bool is_equal = tp_slice_eq(part->text, all->text);
    if (!is_equal && part->type == TP_JSON_NUMBER)
        is_equal = tp_json_f64(part, &wanted) && tp_json_f64(all, &got) && wanted == got;
    if (is_equal)
        return 0;
    printf("%s: %.*s, not %.*s\n", name, (int)all->text.len, all->text.data, (int)part->text.len,
           part->text.data);
    return 1;
}

static int holds(const char *file, char *path, const char *other)
{
    tp_error err = {0};
    const tp_json *part = walk(parse(file, tp_buf_str(&text), text.len), path);
    tp_buf all = {0};
    if (!part || tp_file_read(other, 0, &all, &err) != TP_OK)
        return complain(&err);
    const tp_json *root = parse(other, all.data, all.len);
    bool holds_all = root && differences(part, root, "") == 0;
    tp_buf_release(&all);
    return !holds_all;
}

static int lines(const char *file)
{
    int n = 0;
    const char *at = tp_buf_str(&text), *end = at + text.len;
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t length = stop ? (size_t)(stop - at) : (size_t)(end - at);
        if (!parse(file, at, length))
            return 1;
        n++;
        at += length + 1;
    }
    printf("%d\n", n);
    return 0;
}

static int overwrite(const char *file, int64_t at, const char *bytes, size_t n)
{
    FILE *f = fopen(file, "r+b");
    bool ok = f && fseek(f, (long)at, SEEK_SET) == 0 && fwrite(bytes, 1, n, f) == n;
    if (f)
        ok = fclose(f) == 0 && ok;
    return !ok;
}

/* The library's planned bytes of a recipe. */
static int plan(const char *recipe, const char *const *overrides, size_t n)
{
    tp_error err;
    tp_training_plan p = {.size = sizeof p};
    if (tp_training_plan_compute(recipe, overrides, n, &p, &err) != TP_OK)
        return complain(&err);
    printf("%llu\n", (unsigned long long)p.peak_bytes);
    return 0;
}

/* Points of a tag that differ. */
static size_t differ(tp_metrics *run, size_t tag, tp_metrics *events, size_t *n_points)
{
    const tp_metric_point *a, *b;
    size_t other = tp_metrics_find(events, tp_metrics_tag(run, tag)), bad = 0;
    size_t n = tp_metrics_points(run, tag, TP_POINTS_NATIVE, &a);
    size_t m = other == SIZE_MAX ? 0 : tp_metrics_points(events, other, TP_POINTS_NATIVE, &b);
    *n_points += n;
    for (size_t i = 0; i < n && i < m; i++) {
        double value = (double)(float)a[i].value;
        bad +=
            a[i].step != b[i].step || !(b[i].value == value || (isnan(value) && isnan(b[i].value)));
    }
    bad += n > m ? n - m : m - n;
    if (bad)
        printf("%s: %zu of %zu\n", tp_metrics_tag(run, tag), bad, n);
    return bad;
}

static int points(const char *run_path, const char *events_path)
{
    tp_metrics *run, *events;
    tp_error err = {0};
    size_t bad = 0, n = 0;
    if (tp_metrics_open(run_path, NULL, &run, &err) != TP_OK)
        return complain(&err);
    if (tp_metrics_open(events_path, NULL, &events, &err) != TP_OK) {
        tp_metrics_close(run);
        return complain(&err);
    }
    for (size_t i = 0; i < tp_metrics_count(run); i++)
        bad += differ(run, i, events, &n);
    bad += tp_metrics_count(run) != tp_metrics_count(events);
    printf("%zu\n", n);
    tp_metrics_close(run);
    tp_metrics_close(events);
    return bad != 0;
}

/* FILE, or each of its lines, against the schema. */
static int valid(const char *schema_path, const char *path, bool by_lines)
{
    static tp_buf other; /* reachable to the end, as `text` is */
    tp_error err = {0};
    int n = 0;
    const tp_json *schema = parse(schema_path, text.data, text.len);
    if (!schema || tp_file_read(path, 0, &other, &err) != TP_OK)
        return complain(&err);
    const char *at = tp_buf_str(&other), *end = at + other.len;
    while (at < end) {
        const char *stop = by_lines ? memchr(at, '\n', (size_t)(end - at)) : end;
        stop = stop ? stop : end;
        const tp_json *value = stop > at ? parse(path, at, (size_t)(stop - at)) : NULL;
        n += value ? json_schema_faults(schema, value) : stop > at;
        at = stop + 1;
    }
    return n != 0;
}

int main(int argc, char **argv)
{
    tp_error err = {0};
    int64_t at;
    if (argc < 3)
        return 2;
    if (strcmp(argv[1], "plan") == 0)
        return plan(argv[2], (const char *const *)argv + 3, (size_t)argc - 3);
    if (strcmp(argv[1], "points") == 0 && argc == 4)
        return points(argv[2], argv[3]);
    if (tp_arena_init(&arena, (size_t)1 << 30, &err) != TP_OK ||
        tp_file_read(argv[2], 0, &text, &err) != TP_OK)
        return complain(&err);
    char empty[] = "", *path = argc > 3 ? argv[3] : empty;
    if (strcmp(argv[1], "get") == 0)
        return get(argv[2], path);
    if (strncmp(argv[1], "valid", 5) == 0 && argc == 4)
        return valid(argv[2], argv[3], argv[1][5] != 0);
    if (strcmp(argv[1], "keys") == 0)
        return keys(argv[2], path);
    if (strcmp(argv[1], "holds") == 0 && argc == 5)
        return holds(argv[2], path, argv[4]);
    if (strcmp(argv[1], "lines") == 0)
        return lines(argv[2]);
    if (strcmp(argv[1], "flip") == 0 && tp_str_to_i64(path, &at) && at >= 0 &&
        (size_t)at / 8 < text.len) {
        char byte = (char)(text.data[at / 8] ^ (1 << (at % 8)));
        return overwrite(argv[2], at / 8, &byte, 1);
    }
    if (strcmp(argv[1], "patch") == 0 && argc == 5 && tp_str_to_i64(path, &at))
        return overwrite(argv[2], at, argv[4], strlen(argv[4]));
    return 2;
}
