/* lines.c - a file read in waves of whole lines, hashed as it is read. */
#include "engine/data/lines.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/files.h"
#include "base/platform.h"

enum { WAVE_BYTES = 4 << 20 };

/* A folder in the place of a file: the first file in it that could be meant. */
tp_status tp_rows_refuse_folder(const char *path, tp_error *err)
{
    TP_OWN(tp_buf) first = {0};
    if (!tp_dir_exists(path))
        return TP_OK;
    int n = tp_dir_count(path, ".jsonl", &first);
    return tp_fail(err, TP_ERR_IO,
                   "'%s' is a folder; name the file in it whose lines are JSON objects%s%s", path,
                   n ? ", such as " : "", tp_buf_str(&first));
}

tp_status tp_lines_open(tp_lines *lines, const char *path, tp_error *err)
{
    int fd;
    int64_t size;
    TP_TRY(tp_input_open(path, TP_INPUT_FILE, &fd, &size, err));
    *lines =
        (tp_lines){.path = path, .fd = fd, .size = (uint64_t)size, .line = 1, .cap = WAVE_BYTES};
    lines->buffer = tp_grow(NULL, lines->cap, 1);
    lines->hash = XXH3_createState();
    TP_HAVE(lines->hash);
    XXH3_128bits_reset(lines->hash);
    return TP_OK;
}

tp_status tp_rows_open(tp_lines *lines, const char *path, tp_error *err)
{
    TP_TRY(tp_rows_refuse_folder(path, err));
    TP_TRY(tp_lines_open(lines, path, err));
    lines->holds_rows = true;
    return TP_OK;
}

void tp_lines_close(tp_lines *lines)
{
    if (!lines->buffer)
        return;
    close(lines->fd);
    free(lines->buffer);
    XXH3_freeState(lines->hash);
    *lines = (tp_lines){0};
}

void tp_lines_hash(const tp_lines *lines, char ret_hash[33])
{
    tp_hash_digest(lines->hash, ret_hash);
}

tp_slice tp_line_take(const char **text, const char *end)
{
    const char *begin = *text, *stop = memchr(begin, '\n', (size_t)(end - begin));
    *text = stop ? stop + 1 : end;
    return (tp_slice){begin, (size_t)((stop ? stop : end) - begin)};
}

bool tp_line_is_blank(tp_slice line)
{
    for (size_t i = 0; i < line.len; i++)
        if (line.data[i] != ' ' && line.data[i] != '\t' && line.data[i] != '\r')
            return false;
    return true;
}

static tp_status fill(tp_lines *lines, tp_error *err)
{
    while (lines->len < lines->cap) {
        ssize_t got = read(lines->fd, lines->buffer + lines->len, lines->cap - lines->len);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return tp_fail(err, TP_ERR_IO, "cannot read %s: %s", lines->path, strerror(errno));
        if (got == 0) {
            lines->at_end = true;
            return TP_OK;
        }
        XXH3_128bits_update(lines->hash, lines->buffer + lines->len, (size_t)got);
        lines->len += (size_t)got;
        lines->done += (size_t)got;
    }
    return TP_OK;
}

static tp_status too_long(const tp_lines *lines, uint64_t line, tp_error *err)
{
    return tp_fail(err, TP_ERR_FORMAT,
                   "%s:%llu: the line is longer than 64 MiB; one JSON object per line is needed",
                   lines->path, (unsigned long long)line);
}

/* Read until the buffer holds the end of a line, or the file's. */
static tp_status fill_whole_lines(tp_lines *lines, tp_error *err)
{
    for (;;) {
        size_t before = lines->len;
        TP_TRY(fill(lines, err));
        const char *last = memrchr(lines->buffer + before, '\n', lines->len - before);
        if (lines->at_end || last) {
            lines->wave = lines->at_end ? lines->len : (size_t)(last + 1 - lines->buffer);
            return TP_OK;
        }
        if (lines->cap > TP_LONGEST_LINE)
            return too_long(lines, lines->line, err);
        lines->cap = TP_MIN(2 * lines->cap, (size_t)TP_LONGEST_LINE + WAVE_BYTES);
        lines->buffer = tp_grow(lines->buffer, lines->cap, 1);
    }
}

static tp_status measure(tp_lines *lines, tp_error *err)
{
    const char *text = lines->buffer, *end = text + lines->wave;
    lines->n_lines = 0;
    lines->longest = 0;
    while (text < end) {
        size_t n = tp_line_take(&text, end).len;
        if (n > TP_LONGEST_LINE)
            return too_long(lines, lines->line + lines->n_lines, err);
        lines->longest = TP_MAX(lines->longest, n);
        lines->n_lines++;
    }
    return TP_OK;
}

static bool starts(const tp_lines *lines, const char *magic, size_t n)
{
    return lines->wave >= n && memcmp(lines->buffer, magic, n) == 0;
}

static tp_status refuse(const tp_lines *lines, const char *what, tp_error *err)
{
    return tp_fail(err, TP_ERR_FORMAT,
                   "%s %s; one JSON object per line is needed, such as {\"prompt\": \"...\", "
                   "\"completion\": \"...\"}",
                   lines->path, what);
}

/* No line of the wave begins as an object does. */
static bool has_no_object(const char *text, const char *end)
{
    while (text < end) {
        tp_slice line = tp_line_take(&text, end);
        size_t i = 0;
        while (i < line.len && (line.data[i] == ' ' || line.data[i] == '\t'))
            i++;
        if (i < line.len && line.data[i] == '{')
            return false;
    }
    return true;
}

/* Names with commas or tabs between them, as no value of JSON begins. */
static bool is_table(const char *text, const char *end)
{
    bool is_name = text < end && (*text == '"' || *text == '_' || (*text >= 'A' && *text <= 'Z') ||
                                  (*text >= 'a' && *text <= 'z'));
    if (!is_name)
        return false;
    tp_slice line = tp_line_take(&text, end);
    return memchr(line.data, ',', line.len) || memchr(line.data, '\t', line.len);
}

static tp_status check_start(tp_lines *lines, tp_error *err)
{
    const char *path = lines->path;
    if (starts(lines, "\xef\xbb\xbf", 3))
        memset(lines->buffer, ' ', 3);
    if (starts(lines, "\xff\xfe", 2) || starts(lines, "\xfe\xff", 2))
        return tp_fail(err, TP_ERR_FORMAT, "%s is UTF-16; convert it with `iconv -t UTF-8`", path);
    if (starts(lines, "\x1f\x8b", 2))
        return tp_fail(err, TP_ERR_FORMAT, "%s is compressed; unpack it with gunzip", path);
    if (starts(lines, "PAR1", 4))
        return tp_fail(err, TP_ERR_FORMAT,
                       "%s is Parquet; convert it to JSON lines, such as with pandas: "
                       "read_parquet(FILE).to_json(OUT, orient=\"records\", lines=True)",
                       path);
    size_t i = 0;
    while (i < lines->wave && (lines->buffer[i] == ' ' || lines->buffer[i] == '\t' ||
                               lines->buffer[i] == '\r' || lines->buffer[i] == '\n'))
        i++;
    if (i == lines->wave && lines->at_end && lines->holds_rows)
        return refuse(lines, "is empty", err);
    if (i < lines->wave && lines->buffer[i] == '[')
        return tp_fail(err, TP_ERR_FORMAT,
                       "%s is a JSON array; one object per line is needed, as `jq -c '.[]'` makes "
                       "of it",
                       path);
    if (is_table(lines->buffer + i, lines->buffer + lines->wave))
        return tp_fail(err, TP_ERR_FORMAT,
                       "%s begins like a table in CSV; one JSON object per line is needed, as "
                       "`mlr --icsv --ojsonl cat` (Miller) makes of it",
                       path);
    if (!lines->holds_rows || !has_no_object(lines->buffer + i, lines->buffer + lines->wave))
        return TP_OK;
    bool is_text = !memchr(lines->buffer, 0, lines->wave);
    return refuse(lines, is_text ? "has no line that begins with '{'" : "is no text", err);
}

tp_status tp_lines_next(tp_lines *lines, tp_error *err)
{
    TP_ASSERT(!lines->at_end);
    bool first = lines->done == 0;
    lines->line += lines->n_lines;
    lines->n_lines = 0;
    memmove(lines->buffer, lines->buffer + lines->wave, lines->len - lines->wave);
    lines->len -= lines->wave;
    lines->wave = 0;
    TP_TRY(fill_whole_lines(lines, err));
    if (first)
        TP_TRY(check_start(lines, err));
    return measure(lines, err);
}
