/* jinja.h - a template as tokens and as a tree.
 *
 *     text --lex--> tokens --parse--> nodes        (once, in the template's arena)
 *     nodes + context --run--> text                (jinja_run.h)
 *
 * Grammar, precedence and white space are those of jinja2 3.1 with trim_blocks and
 * lstrip_blocks, loop controls and {% generation %}.  Names are interned: a symbol
 * is the index of a name in the template.
 *
 * A mistake in the source ends the parsing at once, from wherever it is seen: all that the
 * lexer and the parser make is in the arena, so there is nothing to give back on the way. */
#ifndef TP_TEXT_TEMPLATE_JINJA_H
#define TP_TEXT_TEMPLATE_JINJA_H

#include <setjmp.h>

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
    TP_JINJA_TOKEN_OPERATOR,
    TP_JINJA_TOKEN_STRING,
    TP_JINJA_TOKEN_NUMBER
} tp_jinja_token_type;

typedef struct {
    tp_jinja_token_type type;
    uint32_t line; /* from 1 */
    tp_slice text; /* as written; string unescaped */
    tp_any value;  /* of a number */
} tp_jinja_token;

typedef enum {
    /* expressions: which kids and what else they have */
    TP_JINJA_NODE_CONST,    /* value */
    TP_JINJA_NODE_NAME,     /* symbol; kid of a parameter: its default, or none */
    TP_JINJA_NODE_TUPLE,    /* kids */
    TP_JINJA_NODE_LIST,     /* kids */
    TP_JINJA_NODE_DICT,     /* kids: key, value, key, value ... */
    TP_JINJA_NODE_ATTR,     /* kid, text */
    TP_JINJA_NODE_ITEM,     /* kids: object, key */
    TP_JINJA_NODE_SLICE,    /* kids: object, then start, stop, step or NULL */
    TP_JINJA_NODE_CALL,     /* kids: callee, arguments */
    TP_JINJA_NODE_FILTER,   /* text; kids: value or NULL (a block's text), arguments */
    TP_JINJA_NODE_TEST,     /* text; kids: value, arguments */
    TP_JINJA_NODE_KEYWORD,  /* argument: text, kid */
    TP_JINJA_NODE_ARGS,     /* argument: *kid */
    TP_JINJA_NODE_KEYWORDS, /* argument: **kid */
    TP_JINJA_NODE_NOT,      /* kid */
    TP_JINJA_NODE_NEGATE,   /* kid */
    TP_JINJA_NODE_PLUS,     /* kid */
    TP_JINJA_NODE_CHAIN,    /* kids, each but the first with the op in front of it; left to right */
    TP_JINJA_NODE_CONCAT,   /* kids */
    TP_JINJA_NODE_COMPARE,  /* kids; ops as in a CHAIN, all of them must hold */
    TP_JINJA_NODE_AND,      /* kids */
    TP_JINJA_NODE_OR,       /* kids */
    TP_JINJA_NODE_COND,     /* kids: value, condition, value, condition ... [, otherwise] */
    TP_JINJA_NODE_NSREF,    /* symbol, text: target of {% set ns.x = %} */
    /* statements */
    TP_JINJA_NODE_BODY,       /* kids */
    TP_JINJA_NODE_DATA,       /* text */
    TP_JINJA_NODE_PRINT,      /* kid */
    TP_JINJA_NODE_IF,         /* kids: condition, body, condition, body ... [, else body] */
    TP_JINJA_NODE_FOR,        /* kids: target, iterable, condition or NULL, body, else or NULL */
    TP_JINJA_NODE_SET,        /* kids: target, value */
    TP_JINJA_NODE_SET_BLOCK,  /* kids: target, filter or NULL, body */
    TP_JINJA_NODE_MACRO,      /* symbol, macro; text: name, empty of a call block; kids: parameters,
                                 body */
    TP_JINJA_NODE_CALL_BLOCK, /* kids: CALL, MACRO */
    TP_JINJA_NODE_WITH,       /* kids: target, value ..., body */
    TP_JINJA_NODE_GENERATION, /* kid */
    TP_JINJA_NODE_BREAK,
    TP_JINJA_NODE_CONTINUE
} tp_jinja_node_kind;

/* In the order of their words in the parser's table. */
typedef enum {
    TP_JINJA_OP_EQ,
    TP_JINJA_OP_NE,
    TP_JINJA_OP_LT,
    TP_JINJA_OP_LE,
    TP_JINJA_OP_GT,
    TP_JINJA_OP_GE,
    TP_JINJA_OP_IN,
    TP_JINJA_OP_NOT_IN,
    TP_JINJA_OP_ADD,
    TP_JINJA_OP_SUB,
    TP_JINJA_OP_MUL,
    TP_JINJA_OP_DIV,
    TP_JINJA_OP_FLOORDIV,
    TP_JINJA_OP_MOD,
    TP_JINJA_OP_POW
} tp_jinja_op;

typedef struct tp_jinja_node tp_jinja_node;

/* Which of the names that every macro has its body mentions. */
typedef struct {
    bool uses_caller, uses_varargs, uses_kwargs;
    bool caller_is_param, caller_is_needed; /* a parameter; one without default */
} tp_jinja_macro;

struct tp_jinja_node {
    uint8_t kind, op;
    uint32_t line, symbol;
    size_t n_kids, cap;
    tp_jinja_node **kids;
    tp_slice text;
    union {
        tp_any value;
        tp_jinja_macro macro;
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
typedef struct {
    struct tp_template *t;
    tp_jinja_token *tokens; /* the last one is EOF */
    size_t n_tokens, cap, at;
    size_t depth;     /* of nested expressions and blocks */
    size_t n_loops;   /* that a break here could leave */
    size_t n_ifs;     /* conditions around: unknown filters are then errors at run time */
    size_t for_depth; /* any for around, across macros */
    uint32_t *slots;  /* of the names: symbol + 1; 0 is empty */
    size_t n_slots;
    tp_jinja_macro *macro; /* being parsed, or NULL */
    tp_error *err;
    tp_status status; /* of what failed */
    jmp_buf failed;
} tp_jinja_parser;

/* All tokens of `text`. */
void tp_jinja_lex(tp_jinja_parser *p, const char *text, size_t n);

/* The end of the parsing: "name:line: message". */
_Noreturn void tp_jinja_refuse(tp_jinja_parser *p, tp_status status, uint32_t line, const char *fmt,
                               ...) TP_PRINTF(4, 5);
#define tp_jinja_syntax_error(p, line, ...) tp_jinja_refuse((p), TP_ERR_FORMAT, (line), __VA_ARGS__)
/* "expected <wanted>, got ..." */
_Noreturn void tp_jinja_unexpected(tp_jinja_parser *p, const char *wanted);
const tp_jinja_token *tp_jinja_peek(const tp_jinja_parser *p);
bool tp_jinja_is_op(const tp_jinja_parser *p, const char *op);
bool tp_jinja_is_name(const tp_jinja_parser *p, const char *name);
bool tp_jinja_skip_op(tp_jinja_parser *p, const char *op);
bool tp_jinja_skip_name(tp_jinja_parser *p, const char *name);
void tp_jinja_expect_op(tp_jinja_parser *p, const char *op);
tp_slice tp_jinja_expect_name(tp_jinja_parser *p);
uint32_t tp_jinja_symbol(tp_jinja_parser *p, tp_slice name);
/* A node without kids; one more kid of a node, which may be NULL. */
tp_jinja_node *tp_jinja_new(tp_jinja_parser *p, tp_jinja_node_kind kind, uint32_t line);
void tp_jinja_push(tp_jinja_parser *p, tp_jinja_node *node, tp_jinja_node *kid);
/* One level of nesting down: an error past the limit.  p->depth-- goes back up. */
void tp_jinja_deeper(tp_jinja_parser *p);

/* How a comma-separated list ends, and what it may hold. */
typedef struct {
    bool simple;         /* names and literals only: targets */
    bool no_condition;   /* "x if y" is not taken */
    bool parenthesised;  /* may be empty */
    bool with_namespace; /* ns.x may be a target */
} tp_jinja_tuple_options;

tp_jinja_node *tp_jinja_parse_expression(tp_jinja_parser *p);
tp_jinja_node *tp_jinja_parse_tuple(tp_jinja_parser *p, tp_jinja_tuple_options options);
/* "|filter ..." behind `node`, which is NULL before a block's text; `node` where there is none. */
tp_jinja_node *tp_jinja_parse_filters(tp_jinja_parser *p, tp_jinja_node *node);

/* Is there a filter, a test of this name (jinja_filters.c, jinja_tests.c)? */
bool tp_jinja_has_filter(tp_slice name);
bool tp_jinja_has_test(tp_slice name);

#endif
