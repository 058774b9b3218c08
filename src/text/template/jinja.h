/* jinja.h - a template as tokens and as a tree.
 *
 *     text --lex--> tokens --parse--> nodes        (once, in the template's arena)
 *     nodes + context --run--> text                (jinja_run.h)
 *
 * Grammar, precedence and white space are those of jinja2 3.1 with trim_blocks and
 * lstrip_blocks, loop controls and {% generation %}.  Names are interned: a symbol
 * is the index of a name in the template. */
#ifndef TP_TEXT_TEMPLATE_JINJA_H
#define TP_TEXT_TEMPLATE_JINJA_H

#include "base/arena.h"
#include "base/error.h"
#include "base/strings.h"
#include "text/template/jinja_value.h"

enum {
    TP_JINJA_MAX_NESTING = 64,    /* of expressions, and of blocks, in the source */
    TP_JINJA_MAX_SOURCE = 4 << 20 /* bytes */
};

typedef enum {
    TP_JINJA_TOKEN_EOF,
    TP_JINJA_TOKEN_DATA,
    TP_JINJA_TOKEN_PRINT_BEGIN, /* {{ */
    TP_JINJA_TOKEN_PRINT_END,
    TP_JINJA_TOKEN_BLOCK_BEGIN, /* {% */
    TP_JINJA_TOKEN_BLOCK_END,
    TP_JINJA_TOKEN_NAME,
    TP_JINJA_TOKEN_STRING,
    TP_JINJA_TOKEN_INTEGER,
    TP_JINJA_TOKEN_FLOAT,
    TP_JINJA_TOKEN_OPERATOR
} tp_jinja_token_type;

typedef struct {
    tp_jinja_token_type type;
    uint32_t line; /* from 1 */
    tp_slice text; /* data, name, operator as written; string unescaped */
    tp_any value;  /* of a literal */
} tp_jinja_token;

/* All tokens of `text`, the last one EOF.  Everything is in `arena`. */
TP_CHECKED tp_status tp_jinja_lex(tp_arena *arena, const char *name, const char *text, size_t n,
                                  tp_jinja_token **ret, size_t *ret_n, tp_error *err);

typedef enum {
    /* expressions: which kids and what else they have */
    TP_JINJA_NODE_CONST,   /* value */
    TP_JINJA_NODE_NAME,    /* symbol */
    TP_JINJA_NODE_TUPLE,   /* kids */
    TP_JINJA_NODE_LIST,    /* kids */
    TP_JINJA_NODE_DICT,    /* kids: key, value, key, value ... */
    TP_JINJA_NODE_ATTR,    /* kids[0], text */
    TP_JINJA_NODE_ITEM,    /* kids[0], kids[1] the key */
    TP_JINJA_NODE_SLICE,   /* kids[0], then start, stop, step or NULL */
    TP_JINJA_NODE_CALL,    /* kids[0], call */
    TP_JINJA_NODE_FILTER,  /* kids[0] or NULL (a block's text), text, call */
    TP_JINJA_NODE_TEST,    /* kids[0], text, call */
    TP_JINJA_NODE_NOT,     /* kids[0] */
    TP_JINJA_NODE_NEGATE,  /* kids[0] */
    TP_JINJA_NODE_PLUS,    /* kids[0] */
    TP_JINJA_NODE_CHAIN,   /* kids; ops[i] between kids[i] and kids[i + 1], left to right */
    TP_JINJA_NODE_CONCAT,  /* kids */
    TP_JINJA_NODE_COMPARE, /* kids; ops as in a CHAIN, all of them must hold */
    TP_JINJA_NODE_AND,     /* kids */
    TP_JINJA_NODE_OR,      /* kids */
    TP_JINJA_NODE_COND,    /* kids: value, condition, value, condition ... [, otherwise] */
    TP_JINJA_NODE_NSREF,   /* symbol, text: target of {% set ns.x = %} */
    /* statements */
    TP_JINJA_NODE_BODY,       /* kids */
    TP_JINJA_NODE_DATA,       /* text */
    TP_JINJA_NODE_PRINT,      /* kids */
    TP_JINJA_NODE_IF,         /* kids: condition, body, condition, body ... [, else body] */
    TP_JINJA_NODE_FOR,        /* kids: target, iterable, body, else or NULL, filter or NULL */
    TP_JINJA_NODE_SET,        /* kids: target, value */
    TP_JINJA_NODE_SET_BLOCK,  /* kids: target, filter or NULL, body */
    TP_JINJA_NODE_MACRO,      /* symbol, macro */
    TP_JINJA_NODE_CALL_BLOCK, /* kids[0] a CALL; macro */
    TP_JINJA_NODE_WITH,       /* kids: target, value ..., body */
    TP_JINJA_NODE_GENERATION, /* kids[0] body */
    TP_JINJA_NODE_BREAK,
    TP_JINJA_NODE_CONTINUE
} tp_jinja_node_kind;

typedef enum {
    TP_JINJA_OP_ADD,
    TP_JINJA_OP_SUB,
    TP_JINJA_OP_MUL,
    TP_JINJA_OP_DIV,
    TP_JINJA_OP_FLOORDIV,
    TP_JINJA_OP_MOD,
    TP_JINJA_OP_POW,
    TP_JINJA_OP_EQ,
    TP_JINJA_OP_NE,
    TP_JINJA_OP_LT,
    TP_JINJA_OP_LE,
    TP_JINJA_OP_GT,
    TP_JINJA_OP_GE,
    TP_JINJA_OP_IN,
    TP_JINJA_OP_NOT_IN
} tp_jinja_op;

typedef struct tp_jinja_node tp_jinja_node;

/* Arguments of a call, filter or test. */
typedef struct {
    tp_jinja_node **args; /* positional */
    size_t n_args;
    tp_slice *names; /* keyword */
    tp_jinja_node **values;
    size_t n_keywords;
    tp_jinja_node *more_args, *more_keywords; /* *x, **x, or NULL */
} tp_jinja_call;

typedef struct {
    tp_slice name;            /* empty: the body of a call block */
    uint32_t *params;         /* symbols */
    tp_jinja_node **defaults; /* of each parameter, or NULL */
    size_t n_params;
    tp_jinja_node *body;
    bool uses_caller, uses_varargs, uses_kwargs;
    bool caller_is_param;
} tp_jinja_macro;

struct tp_jinja_node {
    uint8_t kind;
    uint32_t line;
    uint32_t symbol;
    uint32_t n_kids;
    tp_jinja_node **kids;
    uint8_t *ops;
    tp_slice text;
    union {
        tp_any value;
        tp_jinja_call *call;
        tp_jinja_macro *macro;
    };
};

struct tp_template {
    tp_arena arena; /* owns all */
    char *name;
    tp_jinja_node *body;
    tp_slice *names; /* by symbol */
    uint32_t n_names;
    uint32_t symbol_loop, symbol_caller, symbol_varargs, symbol_kwargs;
    bool has_generation;
};

/* Fill a zeroed template whose arena and name are set. */
TP_CHECKED tp_status tp_jinja_parse(struct tp_template *t, const char *text, size_t n,
                                    tp_error *err);

/* The parser at work, shared by its files. */
typedef struct tp_jinja_parser {
    struct tp_template *t;
    const tp_jinja_token *tokens;
    size_t n_tokens, at;
    size_t depth;     /* of nested expressions and blocks */
    size_t n_loops;   /* that a break here could leave */
    size_t n_ifs;     /* conditions around: unknown filters are then errors at run time */
    size_t for_depth; /* any for around, across macros */
    struct tp_jinja_names {
        uint32_t *slots; /* symbol + 1; 0 is empty */
        size_t n_slots;
    } index;
    bool *uses_caller, *uses_varargs, *uses_kwargs; /* of the macro being parsed, or NULL */
    tp_error *err;
    /* What is further up: brackets and arguments hold expressions. */
    tp_status (*expression)(struct tp_jinja_parser *p, tp_jinja_node **ret);
    tp_status (*primary)(struct tp_jinja_parser *p, bool with_namespace, tp_jinja_node **ret);
} tp_jinja_parser;

tp_status tp_jinja_syntax_error(const tp_jinja_parser *p, uint32_t line, const char *fmt, ...)
    TP_PRINTF(3, 4);
/* "expected <wanted>, found ...". */
tp_status tp_jinja_unexpected(const tp_jinja_parser *p, const char *wanted);
const tp_jinja_token *tp_jinja_peek(const tp_jinja_parser *p);
bool tp_jinja_is_op(const tp_jinja_parser *p, const char *op);
bool tp_jinja_is_name(const tp_jinja_parser *p, const char *name);
bool tp_jinja_skip_op(tp_jinja_parser *p, const char *op);
bool tp_jinja_skip_name(tp_jinja_parser *p, const char *name);
TP_CHECKED tp_status tp_jinja_expect_op(tp_jinja_parser *p, const char *op);
TP_CHECKED tp_status tp_jinja_expect_name(tp_jinja_parser *p, tp_slice *ret);
uint32_t tp_jinja_symbol(tp_jinja_parser *p, tp_slice name);
tp_jinja_node *tp_jinja_new(tp_jinja_parser *p, tp_jinja_node_kind kind, uint32_t line,
                            size_t n_kids);

/* A list of nodes that grows in the arena. */
typedef struct {
    tp_jinja_node **items;
    size_t n, cap;
} tp_jinja_list;
void tp_jinja_push(tp_jinja_parser *p, tp_jinja_list *list, tp_jinja_node *node);
tp_jinja_node *tp_jinja_new_list(tp_jinja_parser *p, tp_jinja_node_kind kind, uint32_t line,
                                 const tp_jinja_list *list);

/* How a comma-separated list ends, and what it may hold. */
typedef struct {
    bool simple;         /* names and literals only: targets */
    bool no_condition;   /* "x if y" is not taken */
    bool parenthesised;  /* may be empty */
    bool with_namespace; /* ns.x may be a target */
} tp_jinja_tuple_options;

/* One level of nesting down: an error past the limit.  p->depth-- goes back up. */
TP_CHECKED tp_status tp_jinja_deeper(tp_jinja_parser *p);
tp_jinja_node *tp_jinja_new_const(tp_jinja_parser *p, uint32_t line, tp_any value);
TP_CHECKED tp_status tp_jinja_parse_primary(tp_jinja_parser *p, bool with_namespace,
                                            tp_jinja_node **ret);
TP_CHECKED tp_status tp_jinja_parse_postfix(tp_jinja_parser *p, tp_jinja_node *node,
                                            tp_jinja_node **ret);
TP_CHECKED tp_status tp_jinja_parse_filters_and_tests(tp_jinja_parser *p, tp_jinja_node *node,
                                                      tp_jinja_node **ret);
TP_CHECKED tp_status tp_jinja_parse_expression(tp_jinja_parser *p, tp_jinja_node **ret);
TP_CHECKED tp_status tp_jinja_parse_tuple(tp_jinja_parser *p, tp_jinja_tuple_options options,
                                          tp_jinja_node **ret);
TP_CHECKED tp_status tp_jinja_parse_filters(tp_jinja_parser *p, tp_jinja_node *node,
                                            bool inline_first, tp_jinja_node **ret);

/* Is there a filter, a test of this name (jinja_filters.c, jinja_tests.c)? */
bool tp_jinja_has_filter(tp_slice name);
bool tp_jinja_has_test(tp_slice name);

#endif
