/* jinja_str_shape.c - methods of strings that change case, pad and classify. */
#include "text/template/jinja_str.h"

enum { BYTES_PER_TURN = 1024 };

static tp_status m_case(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    return tp_jinja_change_case(run, (tp_python_case)c->variant, c->self->text, ret);
}

static tp_status m_pad(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    tp_slice fill = TP_SLICE(" "), s = c->self->text;
    int64_t width = 0;
    TP_TRY(tp_jinja_want_int(run, c->what, &c->arg[0], &width));
    if (c->arg[1].type != TP_ANY_MISSING)
        TP_TRY(tp_jinja_want_text(run, c->what, &c->arg[1], &fill));
    if (c->variant == '^')
        return tp_jinja_center(run, s, width, fill, ret);
    int64_t room = width - (int64_t)tp_utf8_count(s.data, s.len);
    return tp_jinja_pad_text(run, s, c->variant == '>' ? room : 0, c->variant == '<' ? room : 0,
                             fill, ret);
}

static tp_status m_zfill(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    int64_t width = 0;
    tp_slice s = c->self->text;
    tp_jinja_text text = {.run = run};
    TP_TRY(tp_jinja_want_int(run, c->what, &c->arg[0], &width));
    size_t sign = s.len && (s.data[0] == '-' || s.data[0] == '+');
    int64_t room = width - (int64_t)tp_utf8_count(s.data, s.len);
    tp_any digits;
    TP_TRY(tp_jinja_pad_text(run, (tp_slice){s.data + sign, s.len - sign}, room, 0, TP_SLICE("0"),
                             &digits));
    TP_TRY(tp_jinja_add(&text, s.data, sign));
    TP_TRY(tp_jinja_add(&text, digits.text.data, digits.text.len));
    *ret = tp_jinja_text_value(&text);
    return TP_OK;
}

/* True when all characters of the text are such; `variant`: what an empty text is. */
static tp_status m_all(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    tp_slice s = c->self->text;
    TP_TRY(tp_jinja_charge(run, s.len / BYTES_PER_TURN));
    bool all = s.len || c->variant;
    for (size_t at = 0, len; at < s.len && all; at += len) {
        uint32_t cp = 0;
        len = tp_utf8_length(s.data + at, s.len - at);
        tp_utf8_decode(s.data + at, len, &cp);
        all = c->is(cp);
    }
    *ret = tp_any_bool(all);
    return TP_OK;
}

static tp_status m_is_cased(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    (void)run;
    *ret = tp_any_bool(tp_jinja_is_cased(c->self->text, c->variant == TP_CASE_UPPER));
    return TP_OK;
}

const tp_jinja_function tp_jinja_shape_methods[] = {
    {"capitalize()", m_case, "", TP_CASE_CAPITAL, NULL},
    {"center()", m_pad, "_ [_]", '^', NULL},
    {"isalnum()", m_all, "", false, tp_python_is_alnum},
    {"isalpha()", m_all, "", false, tp_python_is_alpha},
    {"isdigit()", m_all, "", false, tp_python_is_digit},
    {"islower()", m_is_cased, "", TP_CASE_LOWER, NULL},
    {"isspace()", m_all, "", false, tp_python_is_space},
    {"isupper()", m_is_cased, "", TP_CASE_UPPER, NULL},
    {"ljust()", m_pad, "_ [_]", '<', NULL},
    {"lower()", m_case, "", TP_CASE_LOWER, NULL},
    {"rjust()", m_pad, "_ [_]", '>', NULL},
    {"swapcase()", m_case, "", TP_CASE_SWAP, NULL},
    {"title()", m_case, "", TP_CASE_TITLE, NULL},
    {"upper()", m_case, "", TP_CASE_UPPER, NULL},
    {"zfill()", m_zfill, "_", 0, NULL},
    {0}};
