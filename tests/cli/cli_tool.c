/* cli_tool.c - what shell tests cannot do themselves.
 *
 *     cli_tool get FILE a.b.0.c    print a member of a JSON file; fails when there is none
 *     cli_tool keys FILE a.b       print the keys of an object, one per line
 *     cli_tool lines FILE          every line is one JSON value; prints how many
 *     cli_tool flip FILE BIT       flip one bit, counted from the start of the file
 *     cli_tool patch FILE AT TEXT  overwrite bytes at an offset */
#include <stdio.h>
#include <string.h>

#include "base/files.h"
#include "base/json.h"

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

int main(int argc, char **argv)
{
    tp_error err = {0};
    int64_t at;
    if (argc < 3)
        return 2;
    if (tp_arena_init(&arena, (size_t)1 << 30, &err) != TP_OK ||
        tp_file_read(argv[2], 0, &text, &err) != TP_OK)
        return complain(&err);
    char empty[] = "", *path = argc > 3 ? argv[3] : empty;
    if (strcmp(argv[1], "get") == 0)
        return get(argv[2], path);
    if (strcmp(argv[1], "keys") == 0)
        return keys(argv[2], path);
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
