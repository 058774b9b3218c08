/* pretokenize.c - cuts text into words by the steps of a pre-tokenizer; the common regular
 * expressions run as loops by hand. */
#include "text/tokenizer/pretokenize.h"

#include <stdlib.h>
#include <string.h>

#include "base/platform.h"
#include "text/unicode/unicode_class.h"

enum { MAX_CUTS = 32 };

void tp_cut_space_release(tp_cut_space *space)
{
    free(space->matches);
    free(space->pieces);
    free(space->next_pieces);
    tp_buf_release(&space->shadow);
    tp_buf_release(&space->prefixed);
    tp_regex_space_release(space);
    *space = (tp_cut_space){0};
}

static void push(struct tp_cut_match **list, size_t *n, size_t *cap, struct tp_cut_match match)
{
    *TP_VEC_PUSH(*list, *n, *cap) = match;
}

/* Empty pieces count while matches are merged; drop_empty() removes them. */
static void add_piece(tp_cut_space *space, size_t begin, size_t end)
{
    push(&space->next_pieces, &space->n_next, &space->next_cap,
         (struct tp_cut_match){begin, end, false});
}

static void drop_empty(tp_cut_space *space, size_t first)
{
    size_t n = first;
    for (size_t i = first; i < space->n_next; i++)
        if (space->next_pieces[i].begin < space->next_pieces[i].end)
            space->next_pieces[n++] = space->next_pieces[i];
    space->n_next = n;
}

static void find_literal(tp_slice literal, tp_cut_space *space, const char *text, size_t begin,
                         size_t end)
{
    const char *found;
    while (begin < end && (found = memmem(text + begin, end - begin, literal.data, literal.len))) {
        size_t at = (size_t)(found - text);
        if (begin < at)
            tp_cut_add_match(space, begin, at, false);
        tp_cut_add_match(space, at, at + literal.len, true);
        begin = at + literal.len;
    }
    if (begin < end)
        tp_cut_add_match(space, begin, end, false);
}

/* Every character of which `is` holds is a match. */
static void find_characters(bool (*is)(uint32_t), tp_cut_space *space, const char *text,
                            size_t begin, size_t end)
{
    size_t between = begin;
    for (size_t at = begin, len; at < end; at += len) {
        uint32_t cp = 0;
        len = tp_utf8_decode(text + at, end - at, &cp);
        bool hit = len && is(cp);
        len = len ? len : 1;
        if (!hit)
            continue;
        if (between < at)
            tp_cut_add_match(space, between, at, false);
        tp_cut_add_match(space, at, at + len, true);
        between = at + len;
    }
    if (between < end)
        tp_cut_add_match(space, between, end, false);
}

static void find_words(tp_word_scanner scan, tp_cut_space *space, const char *text, size_t begin,
                       size_t end)
{
    for (size_t at = begin, next; at < end; at = next) {
        next = begin + scan(text + begin, end - begin, at - begin);
        tp_cut_add_match(space, at, next, true);
    }
}

/* A match joins the piece before it, unless that ends in a match already. */
static void merge_with_previous(tp_cut_space *space)
{
    bool after_match = false;
    size_t first = space->n_next;
    for (size_t i = 0; i < space->n_matches; i++) {
        struct tp_cut_match m = space->matches[i];
        if (m.is_match && !after_match && space->n_next > first)
            space->next_pieces[space->n_next - 1].end = m.end;
        else
            add_piece(space, m.begin, m.end);
        after_match = m.is_match;
    }
}

/* A match joins the piece after it, unless that begins with a match already: the
 * same from the end, so the pieces are first found in reverse. */
static void merge_with_next(tp_cut_space *space)
{
    bool before_match = false;
    size_t first = space->n_next;
    for (size_t i = space->n_matches; i-- > 0;) {
        struct tp_cut_match m = space->matches[i];
        if (m.is_match && !before_match && space->n_next > first)
            space->next_pieces[space->n_next - 1].begin = m.begin;
        else
            add_piece(space, m.begin, m.end);
        before_match = m.is_match;
    }
    for (size_t i = first, j = space->n_next; i + 1 < j; i++) {
        struct tp_cut_match m = space->next_pieces[i];
        space->next_pieces[i] = space->next_pieces[--j];
        space->next_pieces[j] = m;
    }
}

static void merge_contiguous(tp_cut_space *space)
{
    for (size_t i = 0; i < space->n_matches;) {
        size_t first = i;
        while (i < space->n_matches && space->matches[i].is_match == space->matches[first].is_match)
            i++;
        add_piece(space, space->matches[first].begin, space->matches[i - 1].end);
    }
}

static void apply_behavior(const tp_cut *cut, tp_cut_space *space)
{
    if (cut->invert)
        for (size_t i = 0; i < space->n_matches; i++)
            space->matches[i].is_match = !space->matches[i].is_match;
    switch (cut->behavior) {
    case TP_SPLIT_ISOLATED:
    case TP_SPLIT_REMOVED:
        for (size_t i = 0; i < space->n_matches; i++)
            if (cut->behavior == TP_SPLIT_ISOLATED || !space->matches[i].is_match)
                add_piece(space, space->matches[i].begin, space->matches[i].end);
        break;
    case TP_SPLIT_MERGED_WITH_PREVIOUS:
        merge_with_previous(space);
        break;
    case TP_SPLIT_MERGED_WITH_NEXT:
        merge_with_next(space);
        break;
    case TP_SPLIT_CONTIGUOUS:
        merge_contiguous(space);
        break;
    }
}

static void cut_piece(const tp_cut *cut, tp_cut_space *space, const char *text, size_t begin,
                      size_t end)
{
    size_t first = space->n_next;
    space->n_matches = 0;
    switch (cut->kind) {
    case TP_CUT_SCAN:
        find_words(cut->scan, space, text, begin, end);
        break;
    case TP_CUT_REGEX:
        tp_regex_find_all(cut->regex, space, text, begin, end);
        break;
    case TP_CUT_LITERAL:
        find_literal(cut->literal, space, text, begin, end);
        break;
    case TP_CUT_DIGITS:
        find_characters(tp_unicode_is_numeric, space, text, begin, end);
        break;
    case TP_CUT_PUNCTUATION:
        find_characters(tp_unicode_is_punctuation, space, text, begin, end);
        break;
    case TP_CUT_BYTE_LEVEL:
        break;
    }
    apply_behavior(cut, space);
    drop_empty(space, first);
}

static void emit_words(tp_word_scanner scan, const char *text, size_t n, size_t base,
                       tp_word_fn emit, void *context)
{
    if (!scan) {
        emit(context, text, n, base, 0);
        return;
    }
    for (size_t at = 0, next; at < n; at = next) {
        next = scan(text, n, at);
        emit(context, text + at, next - at, base + at, 0);
    }
}

/* A space goes in front of a piece that does not begin with one. */
static void emit_prefixed(const tp_cut *cut, tp_cut_space *space, const char *text, size_t n,
                          size_t base, tp_word_fn emit, void *context)
{
    if (text[0] == ' ') {
        emit_words(cut->scan, text, n, base, emit, context);
        return;
    }
    tp_buf_clear(&space->prefixed);
    tp_buf_addc(&space->prefixed, ' ');
    tp_buf_add(&space->prefixed, text, n);
    const char *prefixed = space->prefixed.data;
    n++;
    for (size_t at = 0, next; at < n; at = next) {
        next = cut->scan ? cut->scan(prefixed, n, at) : n;
        emit(context, prefixed + at, next - at, base + (at ? at - 1 : 0), at == 0);
    }
}

void tp_pretokenize(const tp_pretokenizer *pretokenizer, tp_cut_space *space, const char *text,
                    size_t n, tp_word_fn emit, void *context)
{
    const tp_cut *last = &pretokenizer->cuts[pretokenizer->n - 1];
    if (pretokenizer->n == 1 && !last->add_prefix_space) {
        if (n)
            emit_words(last->scan, text, n, 0, emit, context);
        return;
    }
    space->n_pieces = 0;
    if (n)
        push(&space->pieces, &space->n_pieces, &space->pieces_cap,
             (struct tp_cut_match){0, n, false});
    for (size_t i = 0; i + 1 < pretokenizer->n; i++) {
        space->n_next = 0;
        for (size_t j = 0; j < space->n_pieces; j++)
            cut_piece(&pretokenizer->cuts[i], space, text, space->pieces[j].begin,
                      space->pieces[j].end);
        struct tp_cut_match *list = space->pieces;
        size_t cap = space->pieces_cap;
        space->pieces = space->next_pieces;
        space->n_pieces = space->n_next;
        space->pieces_cap = space->next_cap;
        space->next_pieces = list;
        space->next_cap = cap;
    }
    for (size_t j = 0; j < space->n_pieces; j++) {
        size_t begin = space->pieces[j].begin, length = space->pieces[j].end - begin;
        if (last->add_prefix_space)
            emit_prefixed(last, space, text + begin, length, begin, emit, context);
        else
            emit_words(last->scan, text + begin, length, begin, emit, context);
    }
}

bool tp_pretokenizer_has_regex(const tp_pretokenizer *pretokenizer)
{
    for (size_t i = 0; i < pretokenizer->n; i++)
        if (pretokenizer->cuts[i].kind == TP_CUT_REGEX)
            return true;
    return false;
}

void tp_pretokenizer_release(tp_pretokenizer *pretokenizer)
{
    for (size_t i = 0; i < pretokenizer->n; i++)
        tp_regex_free(pretokenizer->cuts[i].regex);
    *pretokenizer = (tp_pretokenizer){0};
}

static tp_status parse_behavior(const char *name, const tp_json *spec, tp_split_behavior *ret,
                                tp_error *err)
{
    static const char *const names[] = {"Isolated", "Removed", "MergedWithPrevious",
                                        "MergedWithNext", "Contiguous"};
    const char *text = tp_json_str(tp_json_get(spec, "behavior"));
    if (!text)
        text = "Isolated";
    for (size_t i = 0; i < TP_COUNTOF(names); i++)
        if (strcmp(text, names[i]) == 0) {
            *ret = (tp_split_behavior)i;
            return TP_OK;
        }
    return tp_fail(err, TP_ERR_FORMAT,
                   "%s:%u: behavior '%s' is none of Isolated, Removed, MergedWithPrevious, "
                   "MergedWithNext, Contiguous",
                   name, (unsigned)spec->line, text);
}

static tp_word_scanner known_scanner(tp_slice pattern)
{
    if (tp_slice_is(pattern, tp_regex_gpt2))
        return tp_scan_gpt2;
    if (tp_slice_is(pattern, tp_regex_llama3))
        return tp_scan_llama3;
    if (tp_slice_is(pattern, tp_regex_qwen2))
        return tp_scan_qwen2;
    return NULL;
}

static tp_status parse_split(tp_arena *arena, const char *name, const tp_json *spec, tp_cut *cut,
                             tp_error *err)
{
    const tp_json *pattern = tp_json_get(spec, "pattern");
    const tp_json *regex = tp_json_get(pattern, "Regex");
    const tp_json *literal = tp_json_get(pattern, "String");
    TP_TRY(parse_behavior(name, spec, &cut->behavior, err));
    tp_json_bool(tp_json_get(spec, "invert"), &cut->invert);

    if (tp_json_str(literal) && literal->text.len) {
        cut->kind = TP_CUT_LITERAL;
        cut->literal.len = literal->text.len;
        cut->literal.data = tp_arena_strndup(arena, literal->text.data, literal->text.len);
        return TP_OK;
    }
    if (!tp_json_str(regex) || !regex->text.len)
        return tp_fail(err, TP_ERR_FORMAT,
                       "%s:%u: pre-tokenizer 'Split' needs a pattern with 'Regex' or "
                       "'String' that is not empty",
                       name, (unsigned)spec->line);
    cut->kind = TP_CUT_SCAN;
    cut->scan = known_scanner(regex->text);
    /* The known expressions match everywhere, so nothing lies between matches. */
    if (cut->scan && cut->behavior == TP_SPLIT_ISOLATED)
        return TP_OK;
    cut->kind = TP_CUT_REGEX;
    tp_status status = tp_regex_compile(regex->text.data, regex->text.len, &cut->regex, err);
    if (status != TP_OK)
        return tp_error_prefix(err, status, "%s:%u: ", name, (unsigned)regex->line);
    return TP_OK;
}

static tp_status parse_cut(tp_arena *arena, const char *name, const tp_json *spec, tp_cut *cut,
                           tp_error *err)
{
    const char *type = tp_json_str(tp_json_get(spec, "type"));
    *cut = (tp_cut){0};
    if (!type)
        return tp_fail(err, TP_ERR_FORMAT, "%s:%u: a pre-tokenizer without 'type'", name,
                       (unsigned)spec->line);
    if (strcmp(type, "Split") == 0)
        return parse_split(arena, name, spec, cut, err);
    if (strcmp(type, "Digits") == 0) {
        bool individual = false;
        tp_json_bool(tp_json_get(spec, "individual_digits"), &individual);
        cut->kind = TP_CUT_DIGITS;
        cut->behavior = individual ? TP_SPLIT_ISOLATED : TP_SPLIT_CONTIGUOUS;
        return TP_OK;
    }
    if (strcmp(type, "Punctuation") == 0) {
        cut->kind = TP_CUT_PUNCTUATION;
        return parse_behavior(name, spec, &cut->behavior, err);
    }
    if (strcmp(type, "ByteLevel") == 0) {
        bool use_regex = true;
        cut->kind = TP_CUT_BYTE_LEVEL;
        tp_json_bool(tp_json_get(spec, "add_prefix_space"), &cut->add_prefix_space);
        tp_json_bool(tp_json_get(spec, "use_regex"), &use_regex);
        cut->scan = use_regex ? tp_scan_gpt2 : NULL;
        return TP_OK;
    }
    return tp_fail(err, TP_ERR_UNSUPPORTED,
                   "%s:%u: pre-tokenizer '%s' is not supported; Split, Digits, Punctuation, "
                   "ByteLevel and Sequence are",
                   name, (unsigned)spec->line, type);
}

/* Two steps that one scanner does at once. */
static void fuse(tp_pretokenizer *p)
{
    if (p->n != 2 || p->cuts[1].add_prefix_space)
        return;
    tp_cut first = p->cuts[0], last = p->cuts[1];
    bool digits = first.kind == TP_CUT_DIGITS && first.behavior == TP_SPLIT_ISOLATED;
    if (digits && last.scan)
        last.scan = tp_scan_smollm2;
    else if (first.kind == TP_CUT_SCAN && !last.scan)
        last.scan = first.scan;
    else
        return;
    p->cuts[0] = last;
    p->n = 1;
}

tp_status tp_pretokenizer_parse(tp_arena *arena, const char *name, const tp_json *spec,
                                tp_pretokenizer *ret, tp_error *err)
{
    if (!spec || spec->type != TP_JSON_OBJECT)
        return tp_fail(err, TP_ERR_UNSUPPORTED,
                       "%s: 'pre_tokenizer' is missing or null; only byte-level BPE is supported, "
                       "whose pre-tokenizer is or ends with 'ByteLevel'",
                       name);
    const char *type = tp_json_str(tp_json_get(spec, "type"));
    const tp_json *list = NULL, *first = spec;
    if (type && strcmp(type, "Sequence") == 0) {
        list = tp_json_get(spec, "pretokenizers");
        first = list && list->type == TP_JSON_ARRAY ? list->child : NULL;
    }
    size_t n = list ? list->n : 1;
    if (!first || n > MAX_CUTS)
        return tp_fail(err, TP_ERR_FORMAT, "%s:%u: 'Sequence' needs 1 to %d pre-tokenizers", name,
                       (unsigned)spec->line, MAX_CUTS);

    tp_pretokenizer p = {.cuts = tp_arena_array(arena, tp_cut, n)};
    tp_status status = TP_OK;
    for (const tp_json *v = first; v && status == TP_OK && p.n < n; v = v->next) {
        status = parse_cut(arena, name, v, &p.cuts[p.n], err);
        p.n += status == TP_OK;
        bool is_last = p.n == n;
        if (status == TP_OK && (p.cuts[p.n - 1].kind == TP_CUT_BYTE_LEVEL) != is_last)
            status = tp_fail(err, TP_ERR_UNSUPPORTED,
                             "%s:%u: pre-tokenizer 'ByteLevel' must be the last one, and "
                             "there must be one",
                             name, (unsigned)v->line);
    }
    if (status != TP_OK) {
        tp_pretokenizer_release(&p);
        return status;
    }
    fuse(&p);
    *ret = p;
    return TP_OK;
}
