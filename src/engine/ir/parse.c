/* parse.c - the text form of a graph.
 *
 * One line is one node.  Names (%7) may be any number; they are mapped to fresh
 * references.  Types after ':' are checked against the op's rule, except that a
 * float activation may state another float dtype than the rule's default. */
#include <ctype.h>
#include <string.h>

#include "base/platform.h"
#include "engine/ir/graph.h"

enum { MAX_NAME = 1 << 20, MAX_TEXT = 64 << 20 };

typedef struct {
    const char *name;
    const char *at, *end; /* rest of the text */
    int line;
    tp_graph *g;
    tp_ref *refs; /* text number -> reference */
    tp_error *err;
} parser;

static tp_status bad(const parser *p, const char *what)
{
    return tp_fail(p->err, TP_ERR_FORMAT, "%s:%d: %s", p->name, p->line, what);
}

static void skip_blanks(parser *p)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\r'))
        p->at++;
}

static bool take(parser *p, char c)
{
    skip_blanks(p);
    if (p->at < p->end && *p->at == c) {
        p->at++;
        return true;
    }
    return false;
}

static bool take_word(parser *p, char *out, size_t cap)
{
    skip_blanks(p);
    size_t n = 0;
    while (p->at < p->end && (isalnum((unsigned char)*p->at) || strchr("_.+-", *p->at)) && *p->at) {
        if (n + 1 >= cap)
            return false;
        out[n++] = *p->at++;
    }
    out[n] = 0;
    return n > 0;
}

static bool take_int(parser *p, int64_t *ret)
{
    char word[32];
    return take_word(p, word, sizeof word) && tp_str_to_i64(word, ret);
}

static bool take_string(parser *p, tp_buf *out)
{
    if (!take(p, '"'))
        return false;
    tp_buf_clear(out);
    while (p->at < p->end && *p->at != '"' && *p->at != '\n') {
        bool is_escaped = *p->at == '\\' && p->at + 1 < p->end;
        p->at += is_escaped;
        if (*p->at == '\n')
            return false; /* print writes line breaks as \n */
        tp_buf_addc(out, is_escaped && *p->at == 'n' ? '\n' : *p->at);
        p->at++;
    }
    return take(p, '"') && strlen(tp_buf_str(out)) == out->len;
}

static tp_status take_type(parser *p, tp_value *ret)
{
    char word[16];
    tp_value v = {.rank = 1, .dim = {0, 1}};
    if (!take_word(p, word, sizeof word) || !tp_dtype_parse(word, &v.dtype))
        return bad(p, "expected a type such as f32[64,32]");
    if (!take(p, '[') || !take_int(p, &v.dim[0]))
        return bad(p, "expected [rows] or [rows,columns] after the dtype");
    if (take(p, ',')) {
        v.rank = 2;
        if (!take_int(p, &v.dim[1]))
            return bad(p, "expected a number of columns");
    }
    if (!take(p, ']') || !tp_shape_fits(v.dim))
        return bad(p, "a shape must be positive and below 2^48 elements");
    *ret = v;
    return TP_OK;
}

static tp_status take_ref(parser *p, int64_t *ret_number)
{
    if (!take(p, '%') || !take_int(p, ret_number) || *ret_number < 1 || *ret_number >= MAX_NAME)
        return bad(p, "expected a value such as %12");
    return TP_OK;
}

static bool set_int(int32_t *field, const char *text)
{
    int64_t v;
    if (!tp_str_to_i64(text, &v) || v < INT32_MIN || v > INT32_MAX)
        return false;
    *field = (int32_t)v;
    return true;
}

static bool set_float(float *field, const char *text)
{
    double v;
    if (!tp_str_to_f64(text, &v))
        return false;
    *field = (float)v;
    return true;
}

static bool set_attr(tp_attrs *a, const char *name, const char *text)
{
#define ATTR(type, field)          \
    if (strcmp(name, #field) == 0) \
        return _Generic((type)0, int32_t : set_int, float : set_float)(&a->field, text);
#include "engine/ir/attrs.def"
#undef ATTR
    return false;
}

static tp_status take_attrs(parser *p, tp_attrs *a)
{
    if (!take(p, '{'))
        return TP_OK;
    do {
        char name[32], text[48];
        if (!take_word(p, name, sizeof name) || !take(p, '=') || !take_word(p, text, sizeof text) ||
            !set_attr(a, name, text))
            return bad(p, "expected {attribute=value, ...} with known attributes");
    } while (take(p, ','));
    return take(p, '}') ? TP_OK : bad(p, "expected '}' after the attributes");
}

static bool line_ends(parser *p)
{
    skip_blanks(p);
    return p->at == p->end || *p->at == '\n' || *p->at == '#';
}

/* slice=0 slices=2 axis=0 length=64, of rows; and groups=3 */
static bool take_slice(parser *p, const char *word, tp_tensor_slice *s)
{
    const struct {
        const char *name;
        int32_t *field;
    } words[] = {
        {"slice", &s->index}, {"slices", &s->count}, {"axis", &s->axis}, {"groups", &s->groups}};
    int64_t v;
    if (!take(p, '=') || !take_int(p, &v) || v < 0)
        return false;
    if (strcmp(word, "length") == 0) {
        s->length = v;
        return true;
    }
    for (size_t i = 0; i < TP_COUNTOF(words); i++)
        if (strcmp(word, words[i].name) == 0 && v < 1 << 16) {
            *words[i].field = (int32_t)v;
            return true;
        }
    return false;
}

static bool is_slice_of(const tp_tensor *t)
{
    tp_tensor_slice s = t->slice;
    return s.count == 0 || (s.count > 1 && s.index < s.count && s.axis < t->rank && s.length > 0 &&
                            s.length % (s.groups ? s.groups : 1) == 0 &&
                            s.length < INT64_C(1) << 40 && tp_slice_length(s) == t->dim[s.axis]);
}

/* role=weight, or role=copy of "w" layout=panels */
static tp_status take_record(parser *p, tp_tensor *t, tp_buf *of)
{
    char word[32];
    if (!take_word(p, word, sizeof word) || strcmp(word, "role") != 0 || !take(p, '=') ||
        !take_word(p, word, sizeof word) || !tp_role_parse(word, &t->role))
        return bad(p, "expected role=weight|gradient|moment|copy|cache|adapter|constant");
    while (!line_ends(p)) {
        bool is_right = take_word(p, word, sizeof word);
        if (is_right && strcmp(word, "of") == 0)
            is_right = take_string(p, of);
        else if (is_right && strcmp(word, "layout") == 0)
            is_right = take(p, '=') && take_word(p, word, sizeof word) &&
                       tp_layout_parse(word, &t->layout);
        else
            is_right = is_right && take_slice(p, word, &t->slice);
        if (!is_right)
            return bad(p, "expected of \"WEIGHT\", layout=rows|panels|panels_t or slice=N ...");
    }
    if (!is_slice_of(t))
        return bad(p, "the slice does not fit the tensor");
    t->of = of->len ? of->data : NULL;
    return TP_OK;
}

static tp_status take_source(parser *p, tp_op op, int64_t number)
{
    tp_value v;
    tp_tensor t = {0};
    TP_OWN(tp_buf) name = {0}, of = {0};
    TP_TRY(take_type(p, &v));
    if (!take_string(p, &name))
        return bad(p, "expected the source's name in quotes");
    t.rank = v.rank;
    memcpy(t.dim, v.dim, sizeof t.dim);
    if (op == TP_OP_state)
        TP_TRY(take_record(p, &t, &of));
    t.name = tp_buf_str(&name);
    t.dtype = v.dtype;
    p->refs[number] = op == TP_OP_input ? tp_graph_input(p->g, t.name, v.dtype, v.rank, v.dim)
                                        : tp_graph_state(p->g, &t);
    return TP_OK;
}

static tp_status take_suffix(parser *p, tp_node *n, tp_buf *label)
{
    while (!line_ends(p)) {
        char word[32];
        if (*p->at == '"') {
            if (!take_string(p, label))
                return bad(p, "unterminated label");
            n->label = tp_arena_strdup(&p->g->arena, tp_buf_str(label));
            continue;
        }
        int64_t block;
        if (!take_word(p, word, sizeof word))
            return bad(p, "unexpected text at the end of the line");
        if (strcmp(word, "clone") == 0)
            n->is_clone = true;
        else if (strcmp(word, "block") == 0 && take(p, '=') && take_int(p, &block) && block >= 0 &&
                 block < INT16_MAX)
            n->block = (int16_t)block;
        else if (strcmp(word, "phase") == 0 && take(p, '=') && take_word(p, word, sizeof word) &&
                 (strcmp(word, "backward") == 0 || strcmp(word, "update") == 0))
            n->phase = word[0] == 'b' ? TP_PHASE_BACKWARD : TP_PHASE_UPDATE;
        else
            return bad(p, "expected block=N, phase=backward|update, clone or a label");
    }
    return TP_OK;
}

static tp_status take_op(parser *p, tp_op op, const int64_t *numbers, int n_numbers)
{
    tp_ref in[TP_MAX_IN] = {0}, first = 0;
    int n_in = 0;
    skip_blanks(p);
    while (p->at < p->end && (*p->at == '%' || *p->at == '_')) {
        int64_t number = 0;
        if (n_in == TP_MAX_IN)
            return bad(p, "too many operands");
        if (!take(p, '_')) {
            TP_TRY(take_ref(p, &number));
            if (!p->refs[number])
                return bad(p, "an operand is not defined above");
            in[n_in] = p->refs[number];
        }
        n_in++;
        if (!take(p, ','))
            break;
        skip_blanks(p);
    }
    tp_attrs attrs = {0};
    TP_TRY(take_attrs(p, &attrs));
    tp_error detail = {0};
    if (tp_graph_try_op(p->g, op, &attrs, n_in, in, NULL, &first, &detail) != TP_OK)
        return bad(p, detail.message);
    tp_node *n = &p->g->nodes[p->g->n_nodes - 1];
    if (n->n_out != n_numbers)
        return bad(p, "the op defines another number of values");
    for (int k = 0; k < n_numbers; k++)
        p->refs[numbers[k]] = n->out[k];
    if (take(p, ':'))
        for (int k = 0; k < n_numbers; k++) {
            tp_value type;
            if (k && !take(p, ','))
                return bad(p, "expected one type for each value");
            TP_TRY(take_type(p, &type));
            p->g->values[n->out[k]].dtype = type.dtype;
            if (type.rank != p->g->values[n->out[k]].rank ||
                memcmp(type.dim, p->g->values[n->out[k]].dim, sizeof type.dim) != 0)
                return bad(p, "the stated shape differs from the op's rule");
        }
    TP_OWN(tp_buf) label = {0};
    return take_suffix(p, n, &label);
}

static tp_status take_line(parser *p)
{
    char word[32];
    int64_t numbers[TP_MAX_OUT];
    int n = 0;
    if (line_ends(p))
        return TP_OK;
    if (*p->at != '%') {
        int64_t number;
        if (!take_word(p, word, sizeof word) || strcmp(word, "output") != 0)
            return bad(p, "expected '%N = op ...' or 'output %N'");
        TP_TRY(take_ref(p, &number));
        if (!p->refs[number])
            return bad(p, "the output is not defined above");
        tp_graph_output(p->g, p->refs[number]);
        return TP_OK;
    }
    do {
        if (n == TP_MAX_OUT)
            return bad(p, "too many values on the left");
        TP_TRY(take_ref(p, &numbers[n]));
        if (p->refs[numbers[n]])
            return bad(p, "a value is defined twice");
        n++;
    } while (take(p, ','));
    if (!take(p, '=') || !take_word(p, word, sizeof word))
        return bad(p, "expected '= op'");
    for (int op = 0; op < TP_OP_COUNT; op++) {
        if (strcmp(tp_ops[op]->name, word) != 0)
            continue;
        if (tp_ops[op]->traits & TP_OP_SOURCE)
            return n == 1 ? take_source(p, (tp_op)op, numbers[0])
                          : bad(p, "a source defines one value");
        return take_op(p, (tp_op)op, numbers, n);
    }
    return bad(p, "unknown op");
}

tp_status tp_graph_parse(const char *name, const char *text, size_t n, tp_graph *ret, tp_error *err)
{
    if (n > MAX_TEXT)
        return tp_fail(err, TP_ERR_FORMAT, "%s: a graph of %zu bytes is too large", name, n);
    tp_graph g;
    TP_TRY(tp_graph_init(&g, err));
    parser p = {.name = name, .at = text, .end = text + n, .line = 1, .g = &g, .err = err};
    p.refs = tp_new(MAX_NAME, sizeof *p.refs);
    tp_status status = TP_OK;
    while (p.at < p.end && status == TP_OK) {
        g.block = -1;
        g.phase = TP_PHASE_FORWARD;
        status = take_line(&p);
        if (status == TP_OK && !line_ends(&p))
            status = bad(&p, "unexpected text at the end of the line");
        while (status == TP_OK && p.at < p.end && *p.at++ != '\n')
            ;
        p.line++;
    }
    free(p.refs);
    if (status == TP_OK && (status = tp_graph_verify(&g, err)) != TP_OK)
        tp_error_prefix(err, status, "%s: ", name);
    TP_HAND_OVER(status, ret, g, tp_graph_release(&g));
}
