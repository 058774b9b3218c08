/* signature.c - the signatures of ops.h, read from their text once per process. */
#include <ctype.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "engine/ir/ops.h"

#define KIND(name) #name,
static const char *const kind_names[TP_KIND_COUNT] = {TP_KINDS(KIND)};

static tp_operand_kind kind_named(const char *name)
{
    int k = 0;
    while (k < TP_KIND_COUNT && strcmp(kind_names[k], name) != 0)
        k++;
    TP_ASSERT(k < TP_KIND_COUNT);
    return (tp_operand_kind)k;
}

/* "name:kind[A,B]?^~" */
static tp_operand_spec parse_operand(const char *word)
{
    tp_operand_spec spec = {0};
    char kind[16], shape[48], marks[8] = "";
    int n = sscanf(word, "%15[^:]:%15[a-z][%47[^]]]%7s", spec.name, kind, shape, marks);
    TP_ASSERT(n >= 3);
    spec.kind = kind_named(kind);
    spec.any_shape = strcmp(shape, "..") == 0;
    char *second = strchr(spec.any_shape ? strcpy(shape, "T,C") : shape, ',');
    spec.rank = second ? 2 : 1;
    if (second)
        *second++ = 0;
    TP_ASSERT(strlen(shape) < sizeof spec.dim[0] && (!second || strlen(second) < sizeof *spec.dim));
    strcpy(spec.dim[0], shape);
    strcpy(spec.dim[1], second ? second : "1");
    spec.is_optional = strchr(marks, '?') != NULL;
    spec.swaps = strchr(marks, '^') != NULL;
    spec.through_bf16 = strchr(marks, '~') != NULL;
    return spec;
}

static int aliased_input(const tp_signature *s, const char *output)
{
    char accumulator[24];
    snprintf(accumulator, sizeof accumulator, "%s_acc", output);
    int same = tp_operand_find(s->in, s->n_in, output);
    return same >= 0 ? same : tp_operand_find(s->in, s->n_in, accumulator);
}

static void parse_signature(const char *text, tp_signature *s)
{
    char word[96];
    bool is_output = false;
    for (int used; sscanf(text, " %95s%n", word, &used) == 1; text += used) {
        if (strcmp(word, "->") == 0) {
            is_output = true;
            continue;
        }
        TP_ASSERT(is_output ? s->n_out < TP_MAX_OUT : s->n_in < TP_MAX_IN);
        *(is_output ? &s->out[s->n_out++] : &s->in[s->n_in++]) = parse_operand(word);
    }
    for (int k = 0; k < s->n_out; k++)
        s->alias[k] = aliased_input(s, s->out[k].name);
}

static tp_signature signatures[TP_OP_COUNT];

static void parse_all(void)
{
    for (int op = 0; op < TP_OP_COUNT; op++)
        parse_signature(tp_ops[op]->signature, &signatures[op]);
}

const tp_signature *tp_op_signature(tp_op op)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, parse_all);
    return &signatures[op];
}

int tp_operand_find(const tp_operand_spec *list, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(list[i].name, name) == 0)
            return i;
    return -1;
}

bool tp_op_out_fixed(tp_op op, int output)
{
    return tp_op_signature(op)->out[output].kind > TP_KIND_w;
}

bool tp_op_has_attribute(tp_op op, const char *name)
{
    size_t n = strlen(name);
    for (const char *s = tp_ops[op]->attributes; s && *s; s += strspn(s, ", ")) {
        size_t word = strcspn(s, ", ");
        if (word == n && memcmp(s, name, n) == 0)
            return true;
        s += word;
    }
    return false;
}

bool tp_op_has_gradient(tp_op op) { return tp_ops[op]->gradient || tp_ops[op]->gradients[0]; }

static double attribute(const char *name, size_t n, const tp_attrs *attrs)
{
#define ATTR(type, field)                                    \
    if (strlen(#field) == n && memcmp(name, #field, n) == 0) \
        return (double)attrs->field;
#include "engine/ir/attrs.def"
#undef ATTR
    TP_ASSERT(false && "an attribute");
    return NAN;
}

static double term(const char **s, const tp_letters *letters, const tp_attrs *attrs)
{
    const char *begin = *s;
    if (isdigit((unsigned char)*begin))
        return (double)strtol(begin, (char **)s, 10);
    if (isupper((unsigned char)*begin))
        return letters->value[(int)*(*s)++];
    size_t n = strspn(begin, "abcdefghijklmnopqrstuvwxyz_0123456789");
    *s += n;
    return attribute(begin, n, attrs);
}

double tp_dimension(const char *expression, const tp_letters *letters, const tp_attrs *attrs)
{
    const char *s = expression;
    double value = term(&s, letters, attrs);
    while (*s) {
        char symbol = *s++;
        double right = term(&s, letters, attrs);
        value = symbol == '*' ? value * right : symbol == '/' ? value / right : value + right;
    }
    return value;
}
