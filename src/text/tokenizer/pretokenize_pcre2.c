/* pretokenize_pcre2.c - splitting by any other regular expression.
 *
 * PCRE2 runs over a shadow of the text in which each byte that is not UTF-8 is
 * U+001A, a control character of one byte: offsets stay, and it is of no class.
 * Searches are bounded; one that hits a limit leaves the rest of its piece whole
 * and is counted. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/log.h"
#include "text/tokenizer/pretokenize.h"
#include "text/tokenizer/regex_translate.h"

enum {
    MATCH_LIMIT = 10 * 1000 * 1000, /* steps of one search */
    HEAP_LIMIT_KIB = 256 * 1024,
    JIT_STACK_MAX = 4 * 1024 * 1024
};

struct tp_regex {
    pcre2_code *code;
};

tp_status tp_regex_compile(const char *pattern, size_t n, tp_regex **ret, tp_error *err)
{
    TP_OWN(tp_buf) translated = {0};
    TP_TRY(tp_regex_translate(pattern, n, &translated, err));

    int code = 0;
    PCRE2_SIZE offset = 0;
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    if (context)
        pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    pcre2_code *compiled = pcre2_compile(
        (PCRE2_SPTR)tp_buf_str(&translated), translated.len,
        PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &code, &offset, context);
    pcre2_compile_context_free(context);
    if (!compiled) {
        char message[160];
        pcre2_get_error_message(code, (PCRE2_UCHAR *)message, sizeof message);
        return tp_fail(err, TP_ERR_FORMAT, "regular expression '%.*s': %s",
                       (int)(n < 200 ? n : 200), pattern, message);
    }
    tp_regex *regex = tp_new(1, sizeof *regex);
    regex->code = compiled;
    /* Machine code is a matter of speed; the interpreter does the same. */
    (void)pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE);
    *ret = regex;
    return TP_OK;
}

void tp_regex_free(tp_regex *regex)
{
    if (!regex)
        return;
    pcre2_code_free(regex->code);
    free(regex);
}

void tp_regex_unicode_version(char ret[TP_REGEX_VERSION_MAX])
{
    ret[0] = 0;
    if (pcre2_config(PCRE2_CONFIG_UNICODE_VERSION, NULL) <= TP_REGEX_VERSION_MAX)
        (void)pcre2_config(PCRE2_CONFIG_UNICODE_VERSION, ret);
}

void tp_regex_space_release(tp_cut_space *space)
{
    pcre2_match_data_free(space->match_data);
    pcre2_match_context_free(space->match_context);
    pcre2_jit_stack_free(space->jit_stack);
    space->match_data = space->match_context = space->jit_stack = NULL;
}

static void prepare(tp_cut_space *space)
{
    if (space->match_data)
        return;
    space->match_data = pcre2_match_data_create(1, NULL);
    space->match_context = pcre2_match_context_create(NULL);
    space->jit_stack = pcre2_jit_stack_create(32 * 1024, JIT_STACK_MAX, NULL);
    TP_ASSERT(space->match_data && space->match_context);
    pcre2_set_match_limit(space->match_context, MATCH_LIMIT);
    pcre2_set_heap_limit(space->match_context, HEAP_LIMIT_KIB);
    pcre2_jit_stack_assign(space->match_context, NULL, space->jit_stack);
}

/* The text as valid UTF-8 of the same length: itself, or the shadow. */
static const char *valid_text(tp_cut_space *space, const char *text, size_t n)
{
    if (tp_utf8_valid(text, n))
        return text;
    tp_buf_clear(&space->shadow);
    tp_buf_add(&space->shadow, text, n);
    char *shadow = space->shadow.data;
    for (size_t at = 0, len; at < n; at += len) {
        uint32_t cp;
        len = tp_utf8_decode(text + at, n - at, &cp);
        if (len == 0) {
            shadow[at] = 0x1a;
            len = 1;
        }
    }
    return shadow;
}

/* The next match from `at` on; false when there is none. */
static bool find_next(const tp_regex *regex, tp_cut_space *space, const char *text, size_t n,
                      size_t at, size_t *ret_begin, size_t *ret_end)
{
    uint32_t options = PCRE2_NO_UTF_CHECK;
    int rc = pcre2_match(regex->code, (PCRE2_SPTR)text, n, at, options, space->match_data,
                         space->match_context);
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
        rc = pcre2_match(regex->code, (PCRE2_SPTR)text, n, at, options | PCRE2_NO_JIT,
                         space->match_data, space->match_context);
    if (rc < 0) {
        if (rc != PCRE2_ERROR_NOMATCH && !space->has_given_up) {
            space->has_given_up = true;
            tp_log(TP_LOG_WARNING, "tokenizer",
                   "the pre-tokenizer's regular expression hit a limit of PCRE2 in a text of %zu "
                   "bytes: the rest of that text is one word, and its ids may differ",
                   n);
        }
        return false;
    }
    const PCRE2_SIZE *bounds = pcre2_get_ovector_pointer(space->match_data);
    *ret_begin = bounds[0];
    *ret_end = bounds[1];
    return bounds[0] <= bounds[1];
}

static size_t next_character(const char *text, size_t n, size_t at)
{
    do
        at++;
    while (at < n && ((unsigned char)text[at] & 0xc0) == 0x80);
    return at;
}

void tp_regex_find_all(const tp_regex *regex, tp_cut_space *space, const char *text, size_t begin,
                       size_t end)
{
    prepare(space);
    size_t n = end - begin, from = 0, covered = 0, match_begin, match_end;
    size_t last_end = SIZE_MAX; /* of the last match */
    const char *valid = valid_text(space, text + begin, n);
    while (from <= n && find_next(regex, space, valid, n, from, &match_begin, &match_end)) {
        /* An empty match right after another one does not count. */
        if (match_begin == match_end && match_end == last_end) {
            from = next_character(valid, n, from);
            continue;
        }
        if (covered < match_begin)
            tp_cut_add_match(space, begin + covered, begin + match_begin, false);
        tp_cut_add_match(space, begin + match_begin, begin + match_end, true);
        covered = from = last_end = match_end;
    }
    if (covered < n)
        tp_cut_add_match(space, begin + covered, end, false);
}
