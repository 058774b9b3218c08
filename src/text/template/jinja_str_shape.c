/* jinja_str_shape.c - methods of strings that change case, pad and classify. */
#include "text/template/jinja_str.h"

enum { BYTES_PER_TURN = 1024 };

static tp_status case_method(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                             const char *what, tp_python_case to, tp_any *ret)
{
    TP_TRY(tp_jinja_bind(run, what, args, NULL, 0, 0, NULL));
    return tp_jinja_change_case(run, to, self->text, ret);
}

static tp_status m_upper(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                         tp_any *ret)
{
    return case_method(run, self, args, "upper()", TP_CASE_UPPER, ret);
}

static tp_status m_lower(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                         tp_any *ret)
{
    return case_method(run, self, args, "lower()", TP_CASE_LOWER, ret);
}

static tp_status m_title(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                         tp_any *ret)
{
    return case_method(run, self, args, "title()", TP_CASE_TITLE, ret);
}

static tp_status m_capitalize(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                              tp_any *ret)
{
    return case_method(run, self, args, "capitalize()", TP_CASE_CAPITAL, ret);
}

static tp_status m_swapcase(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                            tp_any *ret)
{
    return case_method(run, self, args, "swapcase()", TP_CASE_SWAP, ret);
}

static tp_status pad_method(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                            const char *what, char side, tp_any *ret)
{
    tp_any out[2];
    tp_slice fill = TP_SLICE(" ");
    int64_t width = 0;
    TP_TRY(tp_jinja_bind(run, what, args, (const char *const[]){NULL, NULL}, 2, 1, out));
    TP_TRY(tp_jinja_want_int(run, what, &out[0], &width));
    if (out[1].type != TP_ANY_MISSING)
        TP_TRY(tp_jinja_want_text(run, what, &out[1], &fill));
    if (side == '^')
        return tp_jinja_center(run, self->text, width, fill, ret);
    int64_t room = width - (int64_t)tp_utf8_count(self->text.data, self->text.len);
    return tp_jinja_pad_text(run, self->text, side == '>' ? room : 0, side == '<' ? room : 0, fill,
                             ret);
}

static tp_status m_ljust(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                         tp_any *ret)
{
    return pad_method(run, self, args, "ljust()", '<', ret);
}

static tp_status m_rjust(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                         tp_any *ret)
{
    return pad_method(run, self, args, "rjust()", '>', ret);
}

static tp_status m_center(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                          tp_any *ret)
{
    return pad_method(run, self, args, "center()", '^', ret);
}

static tp_status m_zfill(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                         tp_any *ret)
{
    tp_any out;
    int64_t width = 0;
    tp_slice s = self->text;
    tp_jinja_text text = {.run = run};
    TP_TRY(tp_jinja_bind(run, "zfill()", args, (const char *const[]){NULL}, 1, 1, &out));
    TP_TRY(tp_jinja_want_int(run, "zfill()", &out, &width));
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

/* True when the text is not empty and all its characters are such. */
static tp_status all_method(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                            const char *what, bool (*is)(uint32_t), bool of_empty, tp_any *ret)
{
    tp_slice s = self->text;
    TP_TRY(tp_jinja_bind(run, what, args, NULL, 0, 0, NULL));
    TP_TRY(tp_jinja_charge(run, s.len / BYTES_PER_TURN));
    bool all = s.len ? true : of_empty;
    for (size_t at = 0, len; at < s.len && all; at += len) {
        uint32_t cp = 0;
        len = tp_utf8_length(s.data + at, s.len - at);
        tp_utf8_decode(s.data + at, len, &cp);
        all = is(cp);
    }
    *ret = tp_any_bool(all);
    return TP_OK;
}

static bool is_ascii(uint32_t cp) { return cp < 128; }

static tp_status m_isascii(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                           tp_any *ret)
{
    return all_method(run, self, args, "isascii()", is_ascii, true, ret);
}

static tp_status m_isalpha(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                           tp_any *ret)
{
    return all_method(run, self, args, "isalpha()", tp_python_is_alpha, false, ret);
}

static tp_status m_isalnum(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                           tp_any *ret)
{
    return all_method(run, self, args, "isalnum()", tp_python_is_alnum, false, ret);
}

static tp_status m_isdigit(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                           tp_any *ret)
{
    return all_method(run, self, args, "isdigit()", tp_python_is_digit, false, ret);
}

static tp_status m_isdecimal(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                             tp_any *ret)
{
    return all_method(run, self, args, "isdecimal()", tp_python_is_decimal, false, ret);
}

static tp_status m_isnumeric(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                             tp_any *ret)
{
    return all_method(run, self, args, "isnumeric()", tp_python_is_numeric, false, ret);
}

static tp_status m_isspace(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                           tp_any *ret)
{
    return all_method(run, self, args, "isspace()", tp_python_is_space, false, ret);
}

static tp_status m_isprintable(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                               tp_any *ret)
{
    return all_method(run, self, args, "isprintable()", tp_python_is_printable, true, ret);
}

static tp_status m_isupper(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                           tp_any *ret)
{
    TP_TRY(tp_jinja_bind(run, "isupper()", args, NULL, 0, 0, NULL));
    *ret = tp_any_bool(tp_jinja_is_cased(self->text, true));
    return TP_OK;
}

static tp_status m_islower(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                           tp_any *ret)
{
    TP_TRY(tp_jinja_bind(run, "islower()", args, NULL, 0, 0, NULL));
    *ret = tp_any_bool(tp_jinja_is_cased(self->text, false));
    return TP_OK;
}

/* Capitals after what has no case, small letters after what has. */
static tp_status m_istitle(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                           tp_any *ret)
{
    tp_slice s = self->text;
    bool after_cased = false, any = false;
    TP_TRY(tp_jinja_bind(run, "istitle()", args, NULL, 0, 0, NULL));
    *ret = tp_any_bool(false);
    for (size_t at = 0, len; at < s.len; at += len) {
        uint32_t cp = 0;
        len = tp_utf8_length(s.data + at, s.len - at);
        tp_utf8_decode(s.data + at, len, &cp);
        bool capital = tp_python_is_upper(cp) || tp_python_is_title(cp);
        bool small = tp_python_is_lower(cp);
        if ((capital && after_cased) || (small && !after_cased))
            return TP_OK;
        after_cased = capital || small;
        any |= after_cased;
    }
    *ret = tp_any_bool(any);
    return TP_OK;
}

const tp_jinja_function tp_jinja_shape_methods[] = {{"capitalize", m_capitalize},
                                                    {"center", m_center},
                                                    {"isalnum", m_isalnum},
                                                    {"isalpha", m_isalpha},
                                                    {"isascii", m_isascii},
                                                    {"isdecimal", m_isdecimal},
                                                    {"isdigit", m_isdigit},
                                                    {"islower", m_islower},
                                                    {"isnumeric", m_isnumeric},
                                                    {"isprintable", m_isprintable},
                                                    {"isspace", m_isspace},
                                                    {"istitle", m_istitle},
                                                    {"isupper", m_isupper},
                                                    {"ljust", m_ljust},
                                                    {"lower", m_lower},
                                                    {"rjust", m_rjust},
                                                    {"swapcase", m_swapcase},
                                                    {"title", m_title},
                                                    {"upper", m_upper},
                                                    {"zfill", m_zfill},
                                                    {NULL, NULL}};
