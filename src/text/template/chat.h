/* chat.h - chat templates: the Jinja subset that model folders use.
 *
 * A template is untrusted data: rendering is bounded in output bytes, loop
 * iterations and depth.  Output is byte for byte what jinja2 gives under
 * transformers' settings (trim_blocks, lstrip_blocks, loopcontrols, tojson as
 * json.dumps). */
#ifndef TP_TEXT_TEMPLATE_CHAT_H
#define TP_TEXT_TEMPLATE_CHAT_H

#include "base/arena.h"
#include "base/error.h"
#include "base/strings.h"
#include "text/json/json.h"

typedef struct tp_template tp_template;

typedef struct {
    size_t max_output_bytes; /* 0 = 64 MiB */
    uint64_t max_iterations; /* 0 = 10 million loop turns, calls and other steps */
    int64_t now;             /* what strftime_now() shows: seconds since 1970 of the local
                                clock; 0 = the time it is */
} tp_template_limits;

/* `name` is what errors call the template. */
TP_CHECKED tp_status tp_template_parse(const char *name, const char *text, size_t n,
                                       tp_template **ret, tp_error *err);
void tp_template_free(tp_template *t);

/* Byte ranges of the output that {% generation %} blocks produced. */
typedef struct {
    size_t *begin, *end; /* n each, malloc'ed; tp_spans_release() */
    size_t n;
} tp_spans;
void tp_spans_release(tp_spans *spans);

/* Memory of the renders of one thread, one after the other; zeroed before the first. */
typedef struct {
    tp_arena arena;
} tp_template_memory;
void tp_template_memory_release(tp_template_memory *memory);

/* Render with the members of the JSON object `context` as variables (messages,
 * tools, add_generation_prompt, bos_token ...).  Appends to *out.  `memory` and
 * ret_spans may be NULL.  raise_exception() in the template is TP_ERR_FORMAT with its message. */
TP_CHECKED tp_status tp_template_render(const tp_template *t, const tp_json *context,
                                        const tp_template_limits *limits,
                                        tp_template_memory *memory, tp_buf *out,
                                        tp_spans *ret_spans, tp_error *err);

/* True when the template has {% generation %} blocks. */
bool tp_template_has_generation(const tp_template *t);

/* What a configuration says of a chat template: NULL (none), "default" (the tokenizer's own), the
 * path of a .jinja file, which is read into `file`, or the template.  *ret is as in
 * tp_render_options.  Text that neither is a path nor puts anything in is refused. */
TP_CHECKED tp_status tp_chat_template_setting(const char *setting, tp_buf *file, const char **ret,
                                              tp_error *err);

#endif
