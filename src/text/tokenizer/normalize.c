/* normalize.c - NFC, NFD, NFKC and NFKD by utf8proc, replacement, lowercase, prefixes. */
#include "text/tokenizer/normalize.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/platform.h"
#include "text/unicode/unicode_class.h"

enum {
    FIRST_COMBINING_LEAD = 0xcc, /* UTF-8 lead byte of U+0300: all below is NFC already */
    BEFORE_FINALS = 0x11a7,      /* no final of Hangul, though utf8proc 2.8 composes it as one */
    RUN_MAX = 4096,              /* code points normalised at once */
    DECOMPOSED_MAX = 32          /* room for one code point's decomposition (18 at most) */
};

void tp_norm_map_release(tp_norm_map *map)
{
    free(map->pieces);
    *map = (tp_norm_map){0};
}

static void map_add(tp_norm_map *map, size_t to, size_t from, bool identical)
{
    if (!map)
        return;
    if (map->n && identical && map->pieces[map->n - 1].identical) {
        const struct tp_norm_piece *last = &map->pieces[map->n - 1];
        if (to - last->to == from - last->from)
            return;
    }
    if (map->n == map->cap) {
        map->cap = 2 * map->cap + 16;
        map->pieces = tp_grow(map->pieces, map->cap, sizeof *map->pieces);
    }
    map->pieces[map->n++] = (struct tp_norm_piece){to, from, identical};
}

size_t tp_norm_map_find(const tp_norm_map *map, size_t at)
{
    if (map->n == 0)
        return at;
    size_t low = 0, high = map->n; /* the last piece that begins at or before `at` */
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (map->pieces[middle].to <= at)
            low = middle;
        else
            high = middle;
    }
    const struct tp_norm_piece *piece = &map->pieces[low];
    return piece->from + (piece->identical ? at - piece->to : 0);
}

/* map = from the outcome of `step`, which is n bytes long, to the beginning of `before`. */
static void map_compose(tp_norm_map *map, const tp_norm_map *before, const tp_norm_map *step,
                        size_t n)
{
    size_t next = 0; /* the first piece of `before` that begins behind the place looked at */
    map->n = 0;
    for (size_t i = 0; i < step->n; i++) {
        struct tp_norm_piece piece = step->pieces[i];
        size_t end = i + 1 < step->n ? step->pieces[i + 1].to : n;
        while (next < before->n && before->pieces[next].to <= piece.from)
            next++;
        bool known = next == 0 || before->pieces[next - 1].identical;
        map_add(map, piece.to, tp_norm_map_find(before, piece.from), piece.identical && known);
        for (; piece.identical && next < before->n; next++) {
            const struct tp_norm_piece *b = &before->pieces[next];
            size_t to = piece.to + (b->to - piece.from);
            if (to >= end)
                break;
            map_add(map, to, b->from, b->identical);
        }
    }
}

void tp_norm_space_release(tp_norm_space *space)
{
    free(space->points);
    tp_buf_release(&space->spare);
    tp_norm_map_release(&space->before);
    tp_norm_map_release(&space->step);
    *space = (tp_norm_space){0};
}

bool tp_normalize_is_identity(const tp_normalizer *normalizer, const char *text, size_t n)
{
    if (normalizer->n == 0)
        return true;
    if (normalizer->n > 1 || normalizer->steps[0].kind != TP_NORMALIZE_NFC)
        return false;
    uint8_t high = 0;
    for (size_t i = 0; i < n; i++)
        high |= (uint8_t)text[i] >= FIRST_COMBINING_LEAD;
    return !high;
}

static utf8proc_option_t form_options(tp_normalize_kind kind)
{
    bool compatible = kind == TP_NORMALIZE_NFKC || kind == TP_NORMALIZE_NFKD;
    return (utf8proc_option_t)(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE |
                               (compatible ? UTF8PROC_COMPAT : 0));
}

/* Does nothing before this code point interact with it?  True for starters that
 * never follow another in a composition; marks and the vowels and finals of Hangul
 * are the ones that do.  Saying no too often is harmless. */
static bool is_boundary(int32_t cp, utf8proc_option_t options)
{
    if (cp < 0x300)
        return true;
    int32_t first[DECOMPOSED_MAX];
    int boundclass = 0;
    if (utf8proc_decompose_char(cp, first, DECOMPOSED_MAX, options, &boundclass) < 1)
        return true;
    utf8proc_category_t category = utf8proc_category(first[0]);
    bool is_mark = category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME;
    bool is_jamo = first[0] >= 0x1160 && first[0] <= 0x11ff;
    return !is_mark && !is_jamo;
}

/* Code points that Unicode gained after version 9 and that its forms change.  The tokenizers
 * library has the forms of version 9: they are as any letter there. */
static bool is_after_unicode_9(uint32_t cp)
{
    static const uint32_t ranges[][2] = {
        {0x7fd, 0x7fd},     {0x898, 0x89f},     {0x8ca, 0x8d3},     {0x9fe, 0x9fe},
        {0xc3c, 0xc3c},     {0xd3b, 0xd3c},     {0xeba, 0xeba},     {0x1715, 0x1715},
        {0x1abf, 0x1ace},   {0x1df6, 0x1dfa},   {0x32ff, 0x32ff},   {0xa7f2, 0xa7f4},
        {0xa82c, 0xa82c},   {0xab69, 0xab69},   {0x10781, 0x10785}, {0x10787, 0x107b0},
        {0x107b2, 0x107ba}, {0x10d24, 0x10d27}, {0x10eab, 0x10eac}, {0x10efd, 0x10eff},
        {0x10f46, 0x10f50}, {0x10f82, 0x10f85}, {0x11070, 0x11070}, {0x1133b, 0x1133b},
        {0x1145e, 0x1145e}, {0x11839, 0x1183a}, {0x11930, 0x11930}, {0x11938, 0x11938},
        {0x1193d, 0x1193e}, {0x11943, 0x11943}, {0x119e0, 0x119e0}, {0x11a34, 0x11a34},
        {0x11a47, 0x11a47}, {0x11a99, 0x11a99}, {0x11d42, 0x11d42}, {0x11d44, 0x11d45},
        {0x11d97, 0x11d97}, {0x11f41, 0x11f42}, {0x16ff0, 0x16ff1}, {0x1e030, 0x1e06d},
        {0x1e08f, 0x1e08f}, {0x1e130, 0x1e136}, {0x1e2ae, 0x1e2ae}, {0x1e2ec, 0x1e2ef},
        {0x1e4ec, 0x1e4ef}, {0x1f16c, 0x1f16c}, {0x1fbf0, 0x1fbf9}};
    size_t low = 0, high = TP_COUNTOF(ranges);
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (cp > ranges[mid][1])
            low = mid + 1;
        else
            high = mid;
    }
    return low < TP_COUNTOF(ranges) && cp >= ranges[low][0];
}

static void push_decomposed(tp_norm_space *space, int32_t cp, utf8proc_option_t options)
{
    if (space->n_points + DECOMPOSED_MAX > space->cap) {
        space->cap = 2 * space->cap + RUN_MAX;
        space->points = tp_grow(space->points, space->cap, sizeof *space->points);
    }
    int boundclass = 0;
    utf8proc_ssize_t n = utf8proc_decompose_char(cp, space->points + space->n_points,
                                                 DECOMPOSED_MAX, options, &boundclass);
    TP_ASSERT(n >= 0 && n <= DECOMPOSED_MAX);
    space->n_points += (size_t)n;
}

static uint8_t combining_class(int32_t cp)
{
    return (uint8_t)utf8proc_get_property(cp)->combining_class;
}

/* Stable, in linear time: a text may be nothing but marks. */
static void sort_by_class(int32_t *points, size_t n)
{
    if (n < 2)
        return;
    size_t start[257] = {0};
    for (size_t i = 0; i < n; i++)
        start[combining_class(points[i]) + 1]++;
    for (size_t class = 0; class < 256; class ++)
        start[class + 1] += start[class];
    int32_t few[64];
    int32_t *sorted = n <= 64 ? few : tp_grow(NULL, n, sizeof *sorted);
    for (size_t i = 0; i < n; i++)
        sorted[start[combining_class(points[i])]++] = points[i];
    memcpy(points, sorted, n * sizeof *points);
    if (sorted != few)
        free(sorted);
}

static void order_marks(int32_t *points, size_t n)
{
    for (size_t i = 0; i < n;) {
        if (combining_class(points[i]) == 0) {
            i++;
            continue;
        }
        size_t begin = i;
        while (i < n && combining_class(points[i]) != 0)
            i++;
        sort_by_class(points + begin, i - begin);
    }
}

/* A stretch of text on its way through a Unicode form. */
typedef struct {
    tp_normalize_kind kind;
    tp_norm_space *space;
    const char *text;
    size_t from; /* where in text the waiting code points begin */
    tp_buf *out;
    tp_norm_map *map;
} form_run;

/* Write the code points that wait; they are text[from..end). */
static void flush_run(form_run *run, size_t end)
{
    tp_norm_space *space = run->space;
    size_t to = run->out->len;
    if (space->n_points == 0)
        return;
    order_marks(space->points, space->n_points);
    utf8proc_ssize_t n = (utf8proc_ssize_t)space->n_points;
    if (run->kind == TP_NORMALIZE_NFC || run->kind == TP_NORMALIZE_NFKC)
        n = utf8proc_normalize_utf32(space->points, n, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    for (utf8proc_ssize_t i = 0; i < n; i++) {
        char utf8[4];
        tp_buf_add(run->out, utf8, tp_utf8_encode((uint32_t)space->points[i], utf8));
    }
    space->n_points = 0;
    bool identical = run->out->len - to == end - run->from &&
                     memcmp(run->out->data + to, run->text + run->from, end - run->from) == 0;
    map_add(run->map, to, run->from, identical);
}

static void copy_unchanged(form_run *run, size_t begin, size_t n)
{
    flush_run(run, begin);
    map_add(run->map, run->out->len, begin, true);
    tp_buf_add(run->out, run->text + begin, n);
}

/* Bytes at the start of the text that NFC leaves alone whatever follows: code
 * points below U+0300, without the last, which may take a mark. */
static size_t plain_length(const char *text, size_t n)
{
    size_t i = 0;
    while (i < n && (uint8_t)text[i] < FIRST_COMBINING_LEAD)
        i++;
    if (i == n || i == 0)
        return i;
    bool two = i > 1 && ((uint8_t)text[i - 1] & 0xc0) == 0x80;
    return i - (two ? 2 : 1);
}

/* One Unicode form.  The text is cut where nothing interacts across the cut: at
 * every such place when a map is wanted, else only to bound the run. */
static void apply_form(tp_normalize_kind kind, tp_norm_space *space, const char *text, size_t n,
                       tp_buf *out, tp_norm_map *map)
{
    form_run run = {.kind = kind, .space = space, .text = text, .out = out, .map = map};
    utf8proc_option_t options = form_options(kind);
    size_t limit = map ? 1 : RUN_MAX;
    space->n_points = 0;
    for (size_t i = 0, len; i < n; i += len) {
        len = kind == TP_NORMALIZE_NFC ? plain_length(text + i, n - i) : 0;
        if (len) {
            copy_unchanged(&run, i, len);
            continue;
        }
        uint32_t cp = 0;
        len = tp_utf8_decode(text + i, n - i, &cp);
        if (len == 0 || is_after_unicode_9(cp)) {
            len = len ? len : 1;
            copy_unchanged(&run, i, len);
            continue;
        }
        if (cp == BEFORE_FINALS || (space->n_points >= limit && is_boundary((int32_t)cp, options)))
            flush_run(&run, i);
        if (space->n_points == 0)
            run.from = i;
        push_decomposed(space, (int32_t)cp, options);
    }
    flush_run(&run, n);
}

static void apply_lowercase(const char *text, size_t n, tp_buf *out, tp_norm_map *map)
{
    for (size_t i = 0, len; i < n; i += len) {
        uint32_t cp;
        size_t to = out->len;
        len = tp_utf8_decode(text + i, n - i, &cp);
        if (len == 0) {
            len = 1;
            tp_buf_addc(out, text[i]);
        } else if (cp == 0x130) { /* the one capital whose small form is two code points */
            tp_buf_adds(out, "i\xcc\x87");
        } else {
            char utf8[4];
            tp_buf_add(out, utf8,
                       tp_utf8_encode((uint32_t)utf8proc_tolower((utf8proc_int32_t)cp), utf8));
        }
        map_add(map, to, i, out->len - to == len);
    }
}

static size_t leading_space(const char *text, size_t n)
{
    size_t i = 0;
    for (size_t len; i < n && tp_class_at(text + i, n - i, &len) == TP_CLASS_SPACE; i += len)
        ;
    return i;
}

/* Length without the white space at the end. */
static size_t without_trailing_space(const char *text, size_t n)
{
    while (n) {
        size_t begin = n - 1, len;
        while (begin > 0 && n - begin < 4 && ((uint8_t)text[begin] & 0xc0) == 0x80)
            begin--;
        if (tp_class_at(text + begin, n - begin, &len) != TP_CLASS_SPACE || begin + len != n)
            break;
        n = begin;
    }
    return n;
}

static void apply_strip(const tp_normalize_step *step, const char *text, size_t n, tp_buf *out,
                        tp_norm_map *map)
{
    size_t begin = step->strip_left ? leading_space(text, n) : 0;
    size_t end = step->strip_right ? without_trailing_space(text, n) : n;
    map_add(map, 0, begin, true);
    if (begin < end)
        tp_buf_add(out, text + begin, end - begin);
}

static void apply_prepend(const tp_normalize_step *step, const char *text, size_t n, tp_buf *out,
                          tp_norm_map *map)
{
    if (n == 0)
        return;
    map_add(map, 0, 0, false);
    tp_buf_add(out, step->to.data, step->to.len);
    map_add(map, out->len, 0, true);
    tp_buf_add(out, text, n);
}

static void apply_replace(const tp_normalize_step *step, const char *text, size_t n, tp_buf *out,
                          tp_norm_map *map)
{
    for (size_t at = 0, len; at < n; at += len + step->from.len) {
        const char *found = memmem(text + at, n - at, step->from.data, step->from.len);
        len = found ? (size_t)(found - (text + at)) : n - at;
        if (len) {
            map_add(map, out->len, at, true);
            tp_buf_add(out, text + at, len);
        }
        if (!found)
            break;
        map_add(map, out->len, at + len, false);
        tp_buf_add(out, step->to.data, step->to.len);
    }
}

static void apply_step(const tp_normalize_step *step, tp_norm_space *space, const char *text,
                       size_t n, tp_buf *out, tp_norm_map *map)
{
    switch (step->kind) {
    case TP_NORMALIZE_NFC:
    case TP_NORMALIZE_NFD:
    case TP_NORMALIZE_NFKC:
    case TP_NORMALIZE_NFKD:
        apply_form(step->kind, space, text, n, out, map);
        break;
    case TP_NORMALIZE_LOWERCASE:
        apply_lowercase(text, n, out, map);
        break;
    case TP_NORMALIZE_STRIP:
        apply_strip(step, text, n, out, map);
        break;
    case TP_NORMALIZE_PREPEND:
        apply_prepend(step, text, n, out, map);
        break;
    case TP_NORMALIZE_REPLACE:
        apply_replace(step, text, n, out, map);
        break;
    }
}

static void swap_maps(tp_norm_map *a, tp_norm_map *b)
{
    tp_norm_map kept = *a;
    *a = *b;
    *b = kept;
}

void tp_normalize(const tp_normalizer *normalizer, tp_norm_space *space, const char *text, size_t n,
                  tp_buf *out, tp_norm_map *map)
{
    tp_buf_clear(out);
    if (map)
        map->n = 0;
    if (normalizer->n)
        apply_step(&normalizer->steps[0], space, text, n, out, map);
    else
        tp_buf_add(out, text, n);
    for (size_t i = 1; i < normalizer->n; i++) {
        tp_buf before = space->spare;
        space->spare = *out;
        *out = before;
        tp_buf_clear(out);
        space->step.n = 0;
        apply_step(&normalizer->steps[i], space, space->spare.data, space->spare.len, out,
                   map ? &space->step : NULL);
        if (!map)
            continue;
        swap_maps(map, &space->before);
        map_compose(map, &space->before, &space->step, out->len);
    }
}
