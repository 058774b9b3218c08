/* yaml.h - YAML configurations, read into and written from JSON trees.
 *
 * One document per text, YAML 1.2 core schema: plain scalars are null, booleans
 * (true, false), integers, floats (1e-5 and .inf among them) or else strings;
 * quoted and block scalars are strings, unless they have another tag.  What YAML
 * 1.1 reads in another way (yes, 010, 1_000, 12:30, -.5; PyYAML and OmegaConf do) is
 * refused.  Anchors, aliases and merge keys (<<) are
 * resolved into copies.  Refused: duplicate and non-scalar keys, tags other than
 * the core ones, cycles, and whatever exceeds the limits below (they also bound
 * what aliases may expand to).
 *
 * Numbers come out in JSON's spelling ("5." as "5.0", "0x10" as "16"); infinities
 * and not-a-number as "Infinity", "-Infinity", "NaN", which tp_json_f64() reads.
 * A member's `line` is the line of its key.  Errors say "name:line:column: ...". */
#ifndef TP_TEXT_YAML_YAML_H
#define TP_TEXT_YAML_YAML_H

#include "text/json/json.h"

enum {
    TP_YAML_MAX_BYTES = 4 << 20,
    TP_YAML_MAX_NODES = 20000, /* after expansion of aliases */
    TP_YAML_MAX_ANCHORS = 1000,
    TP_YAML_MAX_DEPTH = TP_JSON_MAX_DEPTH
};

/* An empty text is null.  Everything is in `arena`; one that is too small is an
 * error. */
TP_CHECKED tp_status tp_yaml_parse(tp_arena *arena, const char *name, const char *text, size_t n,
                                   const tp_json **ret, tp_error *err);

/* The same with the plain scalars of YAML 1.1: yes, no, on and off are booleans, 010 is
 * 8, 0b11 is 3, 1_000 is 1000, 1:30 is 90; 1e-5 is a number, as for OmegaConf. */
TP_CHECKED tp_status tp_yaml_parse_old(tp_arena *arena, const char *name, const char *text,
                                       size_t n, const tp_json **ret, tp_error *err);

/* The same with text for the plain scalars that the two versions read in two ways. */
TP_CHECKED tp_status tp_yaml_parse_words(tp_arena *arena, const char *name, const char *text,
                                         size_t n, const tp_json **ret, tp_error *err);

/* The whole text as one plain scalar, as if it stood alone: "1e-5" is a number,
 * "a: b #c" a string, and so is what YAML 1.1 reads in another way. */
TP_CHECKED tp_status tp_yaml_parse_plain(tp_arena *arena, const char *name, const char *text,
                                         const tp_json **ret, tp_error *err);

/* A remark for a leaf (a scalar, an empty container, a list written on one line),
 * put behind it as "# remark"; NULL for none. */
typedef const char *(*tp_yaml_remark)(void *context, const tp_json *leaf);

/* Append `root` as YAML that both this reader and YAML 1.1 readers (PyYAML's
 * safe_load) take for the same tree.  `remark` may be NULL. */
void tp_yaml_write_remarked(const tp_json *root, tp_buf *out, tp_yaml_remark remark, void *context);

#endif
