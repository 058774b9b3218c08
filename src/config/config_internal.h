/* config_internal.h - the tree behind config.h.
 *
 * A node begins with a tp_json, and all links lead to nodes, so the tree can be
 * read as JSON and a tp_json of it can be taken for its node.  Nodes are never
 * freed alone; the configuration's arena holds them. */
#ifndef TP_CONFIG_CONFIG_INTERNAL_H
#define TP_CONFIG_CONFIG_INTERNAL_H

#include <string.h>

#include "config/config.h"

enum {
    TP_CONFIG_ARENA_BYTES = 64 << 20,
    TP_CONFIG_MAX_NODES = 20000,
    TP_CONFIG_MAX_DEPTH = TP_JSON_MAX_DEPTH,
    TP_CONFIG_MAX_TEXT = 1 << 20, /* of one string made by interpolation */
    TP_CONFIG_MAX_FILES = 100
};

typedef enum { TP_NODE_NEW, TP_NODE_BUSY, TP_NODE_RESOLVED } tp_node_state;

typedef struct tp_config_node tp_config_node;
struct tp_config_node {
    tp_json value; /* first: see above */
    tp_config_node *parent;
    const char *origin;
    tp_node_state state; /* of interpolation */
    bool replaces;       /* had `_override_: true`, or took the place of no section */
    bool is_derived;     /* what an interpolation gave */
};

/* A list in the arena, in the order of arrival. */
typedef struct tp_config_remark {
    const char *text;   /* a fault; or the key that is missing, or without effect */
    const char *detail; /* its origin, or the reason */
    struct tp_config_remark *next;
} tp_config_remark;

typedef struct {
    tp_config_remark *first, *last;
    size_t n;
} tp_config_remarks;

struct tp_config {
    tp_arena arena;
    tp_config_node *root;
    size_t n_nodes, n_files;
    tp_config_remarks faults, missing, idle; /* see config_faults.c */
    const char *file, *notice, *missing_text;
    tp_config_translate translate;
    bool is_bound, is_old; /* is_old: its files are YAML 1.1 */
    const char *files[16]; /* real paths of the files being read, outermost first */
    int n_open_files;
};

static inline tp_config_node *tp_node_of(const tp_json *v)
{
    return (tp_config_node *)(uintptr_t)v;
}

static inline bool tp_node_is_container(const tp_config_node *node)
{
    return node->value.type == TP_JSON_OBJECT || node->value.type == TP_JSON_ARRAY;
}

/* A string, or NULL. */
static inline const char *tp_node_text(const tp_config_node *node)
{
    return tp_json_str(&node->value);
}

/* `???`: to be set by the user. */
bool tp_node_is_missing(const tp_config_node *node);

tp_status tp_node_new(tp_config *config, tp_json_type type, const char *origin,
                      tp_config_node **ret, tp_error *err);
tp_status tp_node_text_copy(tp_config *config, const char *text, size_t n, tp_slice *ret,
                            tp_error *err);
/* A copy of a tree.  `file` is its source: origins become "file:line"; when NULL
 * they are `origin`, and when both are NULL the tree is one of nodes and they stay.
 * `depth` counts the levels above. */
tp_status tp_node_import(tp_config *config, const tp_json *tree, const char *file,
                         const char *origin, int depth, tp_config_node **ret, tp_error *err);
tp_config_node *tp_node_child(const tp_config_node *parent, tp_slice name); /* key or index */
void tp_node_append(tp_config_node *parent, tp_slice key, tp_config_node *child);
/* Put `node` in the place of `old`, under its key. */
void tp_node_replace(tp_config_node *old, tp_config_node *node);
void tp_node_remove(tp_config_node *node);
int tp_node_depth(const tp_config_node *node);
/* "policy.scheduler.0.name"; the root is "the configuration". */
void tp_node_path(const tp_config_node *node, tp_buf *out);

/* Cut the next part off a dotted path; false at the end. */
bool tp_path_next(tp_slice *path, tp_slice *ret_part);
tp_config_node *tp_path_find(tp_config_node *start, tp_slice path);

/* "origin: path: message" */
tp_status tp_node_fail(const tp_config_node *node, tp_error *err, const char *fmt, ...)
    TP_PRINTF(3, 4);

/* config_faults.c: at most TP_CONFIG_MAX_FAULTS are kept, all are counted. */
enum { TP_CONFIG_MAX_FAULTS = 40 };
void tp_config_remark_add(tp_config *config, tp_config_remarks *list, const char *text,
                          const char *detail);
/* A sentence of tp_option.doc without its full stop. */
static inline int tp_sentence_len(const char *text)
{
    size_t n = strlen(text);
    return (int)(n && text[n - 1] == '.' ? n - 1 : n);
}
/* Write the list of keys without effect into config->notice. */
void tp_config_make_notice(tp_config *config);

/* A table of options, on its way into a struct. */
typedef struct {
    tp_config *config;
    tp_config_node *root; /* names of the table start here ... */
    const char *prefix;   /* ... which is this path of the configuration: "" or "env.math." */
    const tp_option *table;
    size_t n;
    char *target;
} tp_binder;

/* config_keys.c: note every key that the table does not have as a fault. */
void tp_binder_check_keys(const tp_binder *b);

/* The section that `node` stands for, where its text is one whole reference to it, unresolved;
 * otherwise NULL. */
tp_status tp_config_section(tp_config_node *node, const tp_config_node **ret, tp_error *err);

/* Replace interpolations everywhere below `node`. */
tp_status tp_config_resolve(tp_config *config, tp_config_node *node, tp_error *err);

#endif
