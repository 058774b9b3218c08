/* csv.c - metrics as a table of text: a column per tag and a line per step, or a line per figure.
 *
 * Which column is the step and which the time: as for JSON rows.  An empty field is no figure.
 *
 * A chart that Weights & Biases exports has a column "RUN - METRIC" for each run, with "...__MIN"
 * and "...__MAX" behind it.  FILE#RUN is one of those runs, its columns called METRIC. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/platform.h"
#include "base/strings.h"
#include "base/vec.h"
#include "instrument/ingest/runs/reader.h"
#include "instrument/ingest/runs/rows.h"
#include "instrument/ingest/runs/steps.h"
#include "instrument/ingest/runs/tail.h"
#include "instrument/ingest/string_table.h"

/* ---- records, as RFC 4180 has them ---- */

typedef struct {
    tp_buf text; /* the fields, one after another, a NUL behind each */
    size_t *at;  /* where each begins; n + 1 of them, the last one behind all */
    size_t n, cap;
    bool is_open; /* its last field is in quotes that do not end */
} record;

static const char *field_of(const record *r, size_t i) { return r->text.data + r->at[i]; }

static void release_record(record *r)
{
    tp_buf_release(&r->text);
    free(r->at);
    *r = (record){0};
}

static const char separators[] = {',', '\t', ';'};

/* Behind the field in quotes that begins at line[i], or n. */
static size_t behind_quotes(const char *line, size_t n, size_t i)
{
    for (i++; i < n; i++) {
        if (line[i] != '"')
            continue;
        if (i + 1 == n || line[i + 1] != '"')
            return i + 1;
        i++;
    }
    return n;
}

/* That which the line has most, not counting those in quotes; 0: none. */
static char separator_of(const char *line, size_t n)
{
    size_t best = 0, counts[sizeof separators] = {0};
    char ret = 0;
    bool is_begin = true;
    for (size_t i = 0; i < n && line[i] != '\n'; i++) {
        if (is_begin && line[i] == '"')
            i = behind_quotes(line, n, i);
        if (i == n || line[i] == '\n')
            break;
        const char *mark = memchr(separators, line[i], sizeof separators);
        is_begin = mark || (is_begin && line[i] == ' ');
        if (mark)
            counts[mark - separators]++;
    }
    for (size_t k = 0; k < sizeof separators; k++)
        if (counts[k] > best) {
            best = counts[k];
            ret = separators[k];
        }
    return ret;
}

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

static void begin_field(record *r)
{
    r->at = tp_vec_room(r->at, &r->cap, r->n + 2, sizeof *r->at);
    r->at[r->n] = r->text.len;
}

/* Blanks around a field are none of it. */
static void end_field(record *r)
{
    size_t begin = r->at[r->n];
    while (r->text.len > begin && is_blank(r->text.data[r->text.len - 1]))
        r->text.len--;
    while (begin < r->text.len && is_blank(r->text.data[begin]))
        begin++;
    r->at[r->n] = begin;
    tp_buf_addc(&r->text, 0);
    r->at[++r->n] = r->text.len;
}

/* There are only blanks in the field yet: a quote begins it. */
static bool begins_here(record *r)
{
    size_t begin = r->at[r->n];
    for (size_t i = begin; i < r->text.len; i++)
        if (!is_blank(r->text.data[i]))
            return false;
    r->text.len = begin;
    return true;
}

/* A field in quotes from text[i] on, which is the quote; the place behind it, or n + 1. */
static size_t quoted(record *r, const char *text, size_t n, size_t i)
{
    for (i++; i < n; i++) {
        if (text[i] != '"')
            tp_buf_addc(&r->text, text[i]);
        else if (i + 1 < n && text[i + 1] == '"')
            tp_buf_addc(&r->text, text[i++]);
        else
            return i + 1;
    }
    return n + 1;
}

/* The record that `text` begins with: bytes used, 0 where its end is not there yet.  With
 * `is_final` the end of the text is one. */
static size_t read_record(record *r, const char *text, size_t n, char separator, bool is_final)
{
    size_t i = 0;
    tp_buf_clear(&r->text);
    r->n = 0;
    begin_field(r);
    for (;;) {
        if (i < n && text[i] == '"' && begins_here(r))
            i = quoted(r, text, n, i);
        r->is_open = i > n;
        if (i >= n) {
            end_field(r);
            return is_final ? n : 0;
        }
        char c = text[i++];
        if (c == '\n') {
            end_field(r);
            return i;
        }
        if (c == separator) {
            end_field(r);
            begin_field(r);
        } else if (c != '\r' || (i < n && text[i] != '\n')) {
            tp_buf_addc(&r->text, c);
        }
    }
}

/* A field as a number: also "nan", "inf" and their kin; an empty one is none. */
static bool number_of(const char *text, double *ret)
{
    size_t n = strlen(text);
    if (tp_flat_row_spelled((tp_slice){text, n}, ret))
        return true;
    char *end; /* what is too large for a double is infinite, as in JSON Lines */
    if (strspn(text, "0123456789.eE+-") != n)
        return false; /* 0x10 and nan(1) are numbers of C alone */
    double v = strtod(text, &end);
    if (end == text || *end)
        return false;
    *ret = v;
    return true;
}

/* Of the fields of a line: how many are numbers, how many words. */
static size_t numbers_of(const record *r, size_t *ret_words)
{
    double unused;
    size_t n = 0;
    *ret_words = 0;
    for (size_t i = 0; i < r->n; i++) {
        bool is_number = number_of(field_of(r, i), &unused);
        n += is_number;
        *ret_words += !is_number && *field_of(r, i);
    }
    return n;
}

/* Is a line of comment the names of this one?  It has figures, and as many fields or no word. */
static bool names_it(const char *comment, size_t n_comment, const char *text, size_t n)
{
    TP_CLEANUP(release_record) record line = {0};
    char separator = separator_of(comment, n_comment);
    size_t n_words;
    read_record(&line, comment, n_comment, separator, true);
    size_t n_names = line.n;
    read_record(&line, text, n, separator, true);
    return numbers_of(&line, &n_words) && (line.n == n_names || !n_words);
}

static bool is_empty_line(const char *text, size_t n)
{
    size_t i = 0;
    while (i < n && (is_blank(text[i]) || text[i] == '\r' || text[i] == '\n'))
        i++;
    return i == n;
}

/* Where the line of names begins: behind a byte order mark, and behind lines of comment as
 * Stable-Baselines3's Monitor writes one ('#{"t_start": ...}').  The last of them with a separator
 * is itself the names (NumPy's "# step,loss") where the first line that is no comment and not empty
 * has its figures.  n: that is not there yet; with `is_final` a line needs no newline. */
static size_t before_names(const char *text, size_t n, bool is_final)
{
    size_t at = tp_utf8_mark(text, n), end, comment = n, n_comment = 0;
    if (at == n || text[at] != '#')
        return at;
    for (;; at = end) {
        const char *newline = memchr(text + at, '\n', n - at);
        if (at == n || (!newline && !is_final))
            return n;
        end = newline ? (size_t)(newline + 1 - text) : n;
        if (text[at] == '#' && separator_of(text + at, end - at)) {
            comment = at;
            n_comment = end - at;
        } else if (text[at] != '#' && !is_empty_line(text + at, end - at)) {
            break;
        }
    }
    return n_comment && names_it(text + comment, n_comment, text + at, end - at) ? comment : at;
}

/* "# step" is called step; "#" alone is a name. */
static void unmark_names(record *names)
{
    const char *first = field_of(names, 0);
    if (*first == '#' && first[1])
        names->at[0] += 1 + strspn(first + 1, " \t");
}

/* The table of runs that Weights & Biases exports: a row is a whole run, not a step of one. */
static bool is_of_runs(const record *names)
{
    static const char *const columns[] = {"Name", "State", "Created", "Runtime"};
    size_t n = 0;
    for (size_t k = 0; k < TP_COUNTOF(columns); k++)
        for (size_t i = 0; i < names->n && n == k; i++)
            n += strcmp(field_of(names, i), columns[k]) == 0;
    return n == TP_COUNTOF(columns);
}

/* ---- the run ---- */

enum { MAX_RECORD_BYTES = 16 << 20 };

/* Of a column's fields that are no numbers: figures with commas ("0,5", "1,234"), other texts. */
enum { HAS_COMMAS = 1, HAS_TEXT = 2 };

typedef struct {
    tp_tail tail;
    char separator;
    record names, fields;
    bool has_names;
    char *twice;                       /* a name that two columns have, or NULL */
    uint8_t *seen;                     /* by column: HAS_COMMAS, HAS_TEXT */
    uint64_t n_rows, n_bad, first_bad; /* of another number of fields; where */
    int64_t unended_size; /* of the file, when its last record without a newline was taken; or 0 */
    tp_flat_row row;
    tp_string_table runs; /* of a chart of W&B; 0 is no run */
} state;

static size_t first_line(const tp_run_place *place)
{
    const char *end = memchr(place->head, '\n', place->n_head);
    return end ? (size_t)(end - place->head) : place->n_head;
}

static bool is_table(const tp_run_place *place)
{
    size_t n = first_line(place);
    if (place->is_dir || !n || place->head[0] == '{' || place->head[0] == '[' ||
        memchr(place->head, 0, place->n_head))
        return false;
    bool is_named = tp_str_ends(place->base, ".csv") || tp_str_ends(place->base, ".tsv");
    return is_named || separator_of(place->head, n);
}

static char *file_of(const tp_run_place *place)
{
    if (!place->is_dir)
        return is_table(place) ? tp_strdup(place->path) : NULL;
    if (tp_place_has_file(place, "metrics.csv"))
        return tp_place_join(place->path, "metrics.csv");
    return tp_place_only(place, ".csv");
}

static tp_status open_run(tp_metrics *m, const tp_run_place *place, tp_error *err)
{
    (void)err;
    state *s = tp_vec_new(1, sizeof *s);
    TP_FREED char *path = file_of(place);
    tp_tail_init(&s->tail, path);
    tp_string_table_init(&s->runs);
    m->state = s;
    return TP_OK;
}

static void close_run(tp_metrics *m)
{
    state *s = m->state;
    tp_tail_release(&s->tail);
    release_record(&s->names);
    release_record(&s->fields);
    tp_flat_row_release(&s->row);
    tp_string_table_release(&s->runs);
    free(s->twice);
    free(s->seen);
    free(s);
}

static bool is_number_with_commas(const char *text)
{
    const char *comma = strchr(text, ',');
    size_t n = strlen(text);
    return comma && comma > text && isdigit((unsigned char)comma[-1]) &&
           isdigit((unsigned char)comma[1]) && strspn(text, "0123456789.,+-eE ") == n;
}

enum { N_DASH = 3 };

/* Behind the last " - " of the name of a column; NULL: there is none. */
static const char *metric_of(const char *name)
{
    const char *ret = NULL;
    for (const char *at = name; (at = strstr(at, " - ")); at++)
        ret = at + N_DASH;
    return ret;
}

/* What a column is called in a run; NULL: that one has another run's figures. */
static const char *name_within(const char *name, const char *run)
{
    const char *metric = run ? metric_of(name) : NULL;
    size_t n = metric ? (size_t)(metric - name) - N_DASH : 0;
    if (!metric)
        return name;
    return strlen(run) == n && memcmp(name, run, n) == 0 ? metric : NULL;
}

/* The line as a row of names and values, as a JSON object would be one. */
static void make_row(state *s, const char *run)
{
    tp_flat_row *row = &s->row;
    tp_buf_clear(&row->text);
    row->n = 0;
    for (size_t i = 0; i < s->names.n && i < s->fields.n; i++) {
        const char *name = name_within(field_of(&s->names, i), run);
        const char *text = field_of(&s->fields, i);
        if (!name || !*text || !*name)
            continue;
        tp_flat_row_member *x = TP_VEC_PUSH(row->members, row->n, row->cap);
        x->tag = row->text.len;
        x->n_tag = strlen(name);
        tp_buf_adds(&row->text, name);
        x->is_number = number_of(text, &x->value);
        x->is_text = !x->is_number;
        if (x->is_text)
            s->seen[i] |= is_number_with_commas(text) ? HAS_COMMAS : HAS_TEXT;
        x->said = row->text.len;
        x->n_said = strlen(text);
        tp_buf_adds(&row->text, text);
    }
}

static void take_line(tp_metrics *m, state *s)
{
    bool is_blank = s->fields.n == 1 && !*field_of(&s->fields, 0);
    if (is_blank)
        return;
    if (s->fields.n != s->names.n && s->n_bad++ == 0)
        s->first_bad = s->n_rows + 2;
    make_row(s, m->run);
    tp_flat_row_record(m, &s->row, (int64_t)s->n_rows);
    s->n_rows++;
}

/* One record, whatever lines it takes.  *ret_more false: none is complete. */
static tp_status next_record(const tp_metrics *m, state *s, record *r, bool *ret_more,
                             tp_error *err)
{
    for (size_t want = 1;;) {
        bool has;
        TP_TRY(tp_tail_need(&s->tail, want, &has, err));
        size_t here = s->tail.at ? (size_t)(s->tail.end - s->tail.at) : 0;
        size_t begin =
            here && !s->has_names ? before_names(s->tail.at, here, !has && !m->is_followed) : 0;
        const char *text = s->tail.at + begin;
        if (here > begin && !s->has_names) {
            s->separator = separator_of(text, here - begin);
            s->separator = s->separator ? s->separator : ',';
        }
        size_t used = here > begin ? read_record(r, text, here - begin, s->separator, false) : 0;
        tp_tail_skip(&s->tail, used ? begin + used : 0);
        *ret_more = used > 0;
        if (used || !has)
            return TP_OK;
        if (here > MAX_RECORD_BYTES)
            return tp_fail(err, TP_ERR_FORMAT,
                           "'%s': the record at byte %llu is longer than %d bytes: a quote that "
                           "does not end?",
                           s->tail.path, (unsigned long long)tp_tail_offset(&s->tail),
                           MAX_RECORD_BYTES);
        want = 2 * here;
    }
}

/* The last line may lack its newline: it counts when it has all its fields, unless somebody waits
 * for more.  When the file grows everything is read again, for its last number may have been half
 * of one. */
static void take_unended(tp_metrics *m, state *s)
{
    size_t here = s->tail.at ? (size_t)(s->tail.end - s->tail.at) : 0;
    if (!here || !s->has_names || m->is_followed)
        return;
    size_t used = read_record(&s->fields, s->tail.at, here, s->separator, true);
    if (used && s->fields.n == s->names.n && !s->fields.is_open) {
        take_line(m, s);
        tp_tail_skip(&s->tail, used);
        s->unended_size = tp_file_size(s->tail.path);
    }
}

static void take_names(state *s)
{
    unmark_names(&s->names);
    const char **sorted = tp_vec_new(s->names.n, sizeof *sorted);
    for (size_t i = 0; i < s->names.n; i++)
        sorted[i] = field_of(&s->names, i);
    qsort(sorted, s->names.n, sizeof *sorted, tp_str_order);
    free(s->twice);
    s->twice = NULL;
    for (size_t i = 1; i < s->names.n && !s->twice; i++)
        if (*sorted[i] && strcmp(sorted[i - 1], sorted[i]) == 0)
            s->twice = tp_strdup(sorted[i]);
    free(sorted);
    free(s->seen);
    s->seen = tp_vec_new(s->names.n, sizeof *s->seen);
    s->has_names = true;
}

static bool is_name_with(const char *name, const char *stem, const char *end)
{
    size_t n = strlen(stem);
    return strncmp(name, stem, n) == 0 && strcmp(name + n, end) == 0;
}

/* Whose columns a chart of W&B has. */
static void list_runs(state *s)
{
    tp_string_table_release(&s->runs);
    tp_string_table_init(&s->runs);
    for (size_t i = 0; i + 2 < s->names.n; i++) {
        const char *name = field_of(&s->names, i), *metric = metric_of(name);
        if (metric && is_name_with(field_of(&s->names, i + 1), name, "__MIN") &&
            is_name_with(field_of(&s->names, i + 2), name, "__MAX"))
            tp_string_add(&s->runs, name, (size_t)(metric - name) - N_DASH);
    }
}

static const char *names_of_runs(const state *s, tp_buf *out)
{
    for (uint32_t i = 1; i < s->runs.n && i <= 20; i++)
        tp_buf_addf(out, "%s%s", i > 1 ? ", " : "", tp_string_get(&s->runs, i));
    return tp_buf_str(out);
}

static tp_status find_run(const tp_metrics *m, const state *s, tp_error *err)
{
    uint32_t which;
    TP_OWN(tp_buf) names = {0};
    if (!m->run || (tp_string_find(&s->runs, m->run, strlen(m->run), &which) && which > 0))
        return TP_OK;
    if (s->runs.n < 2)
        return tp_fail(err, TP_ERR_CONFIG, "'%s' is one run, without a name: leave out '%s'",
                       s->tail.path, m->run);
    return tp_fail(err, TP_ERR_CONFIG, "'%s' has no run '%s'; it has: %s", s->tail.path, m->run,
                   names_of_runs(s, &names));
}

static tp_status read_records(tp_metrics *m, state *s, tp_error *err)
{
    bool more = true;
    if (!s->has_names) {
        TP_TRY(next_record(m, s, &s->names, &more, err));
        if (more) {
            take_names(s);
            if (is_of_runs(&s->names))
                return tp_fail(err, TP_ERR_FORMAT,
                               "'%s' is W&B's table of runs (columns Name, State, Created, "
                               "Runtime), a row for each run and no steps: export the chart of a "
                               "metric instead",
                               s->tail.path);
            list_runs(s);
            TP_TRY(find_run(m, s, err));
        }
    }
    while (more) {
        TP_TRY(next_record(m, s, &s->fields, &more, err));
        if (more)
            take_line(m, s);
    }
    take_unended(m, s);
    return TP_OK;
}

static tp_status read_run(tp_metrics *m, bool *ret_again, tp_error *err)
{
    state *s = m->state;
    bool has_grown = s->unended_size && tp_file_size(s->tail.path) != s->unended_size;
    if (has_grown || tp_tail_was_replaced(&s->tail)) {
        TP_FREED char *path = tp_strdup(s->tail.path);
        tp_tail_release(&s->tail);
        tp_tail_init(&s->tail, path);
        s->has_names = false;
        s->n_rows = s->n_bad = 0;
        s->unended_size = 0;
        *ret_again = true;
        return TP_OK;
    }
    tp_status status = read_records(m, s, err);
    tp_tail_pause(&s->tail);
    return status;
}

bool tp_csv_has_steps(const tp_run_place *place)
{
    TP_CLEANUP(release_record) record names = {0};
    size_t at = before_names(place->head, place->n_head, place->n_head < sizeof place->head),
           n = place->n_head - at;
    bool ret = false;
    if (!is_table(place))
        return false;
    read_record(&names, place->head + at, n, separator_of(place->head + at, n), true);
    unmark_names(&names);
    for (size_t i = 0; i < names.n && !ret && !is_of_runs(&names); i++)
        ret = tp_flat_row_is_step_name(field_of(&names, i));
    return ret;
}

/* Columns that have figures with commas, and no text beside numbers. */
static size_t columns_with_commas(const state *s, tp_buf *out)
{
    size_t n = 0;
    for (size_t i = 0; i < s->names.n && s->has_names; i++) {
        if (s->seen[i] != HAS_COMMAS)
            continue;
        if (n++ < 20)
            tp_buf_addf(out, "%s'%.100s'", n > 1 ? ", " : "", field_of(&s->names, i));
    }
    if (n > 20)
        tp_buf_addf(out, ", ... (%zu)", n);
    return n;
}

static void say(tp_metrics *m)
{
    const state *s = m->state;
    int64_t size = tp_file_size(s->tail.path);
    tp_row_steps_say(m);
    if (s->twice)
        tp_notes_add(&m->notes, TP_NOTE_WARNING,
                     "'%s': several columns are called '%.100s', only the last of them is read",
                     s->tail.path, s->twice);
    if (s->runs.n > 2 && !m->run) { /* the first text of the table is the empty one */
        TP_OWN(tp_buf) names = {0};
        tp_notes_add(&m->notes, TP_NOTE_WARNING,
                     "'%s' has columns of %zu runs, and a metric is taken from the first that has "
                     "it; name one run as '%s#%s': %s",
                     s->tail.path, s->runs.n - 1, s->tail.path, tp_string_get(&s->runs, 1),
                     names_of_runs(s, &names));
    }
    TP_OWN(tp_buf) commas = {0};
    size_t n_commas = columns_with_commas(s, &commas);
    if (n_commas)
        tp_notes_add(
            &m->notes, TP_NOTE_WARNING,
            "'%s': figures with a comma, as 0,5 or 1,234, are not read (a decimal point, as "
            "0.5, is needed): column%s %s",
            s->tail.path, tp_plural(n_commas), commas.data);
    else if (s->n_rows && !m->n_shown)
        tp_notes_add(&m->notes, TP_NOTE_WARNING,
                     "'%s': no column but those of steps and times has numbers (with a decimal "
                     "point, as 0.5)",
                     s->tail.path);
    if (s->n_bad)
        tp_notes_add(
            &m->notes, TP_NOTE_WARNING,
            "'%s': %llu record%s with another number of fields than the line of names, the "
            "first is record %llu",
            s->tail.path, (unsigned long long)s->n_bad, tp_plural((uint64_t)s->n_bad),
            (unsigned long long)s->first_bad);
    if (s->unended_size)
        tp_notes_add(&m->notes, TP_NOTE_WARNING,
                     "'%s': the last line has no newline: its last field may be cut short",
                     s->tail.path);
    if (size > 0 && (uint64_t)size > tp_tail_offset(&s->tail))
        tp_notes_add(
            &m->notes, TP_NOTE_WARNING,
            "'%s': the last record, at byte %llu, is incomplete: cut short, or still being "
            "written",
            s->tail.path, (unsigned long long)tp_tail_offset(&s->tail));
}

const tp_run_reader tp_run_reader_csv = {
    .name = "csv",
    .about = "tables (CSV) of metrics",
    .has_names = true,
    .has_reruns = true,
    .file_of = file_of,
    .open = open_run,
    .read = read_run,
    .say = say,
    .close = close_run,
};
