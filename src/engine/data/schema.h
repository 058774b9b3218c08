/* schema.h - rows of a JSONL file, whatever their keys, as one kind of example.
 *
 * A row is recognised by its keys, unless the configuration names them:
 *
 *     messages             [{"role", "content"}], perhaps with tools
 *     sharegpt             conversations: [{"from", "value"}]
 *     prompt_completion    prompt, completion: two strings or two message lists
 *     alpaca               instruction, input (may be missing), output
 *     input_output         input, output
 *     question_answer      question, answer
 *     text                 text
 *
 * All but text become a conversation: a list of messages as JSON, ready for a chat
 * template.  Every complaint says "file:line:column: what is wrong; what to do". */
#ifndef TP_ENGINE_DATA_SCHEMA_H
#define TP_ENGINE_DATA_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/strings.h"
#include "text/json/json.h"

typedef enum {
    TP_SCHEMA_MESSAGES,
    TP_SCHEMA_SHAREGPT,
    TP_SCHEMA_PROMPT_COMPLETION,
    TP_SCHEMA_ALPACA,
    TP_SCHEMA_INPUT_OUTPUT,
    TP_SCHEMA_QUESTION_ANSWER,
    TP_SCHEMA_TEXT,
    TP_SCHEMA_KINDS
} tp_schema_kind;

const char *tp_schema_name(tp_schema_kind kind); /* "messages", ... */

/* What the configuration says of the rows of a file; NULL everywhere means: detect. */
typedef struct {
    const char *input_key, *output_key;           /* either one selects input_output */
    const char *prompt_key;                       /* selects prompt_completion */
    const char *chat_key;                         /* selects messages */
    const char *text_key;                         /* selects text */
    const char *tool_key;                         /* default "tools" */
    const char *system_key;                       /* (optional) column with a system prompt */
    const char *prompt_file, *system_prompt_file; /* (optional) what the next two are read from */
    const char *system_prompt;                    /* (optional) for conversations that bring none */
    const char *prompt_template; /* (optional) replaces the first user message; "{}" is
                                    its text, "{{" and "}}" are braces */
    const char *separator;       /* between prompt and answer where no chat template stands;
                                    NULL: "\n" for alpaca and question_answer, else "" */
} tp_schema_options;

typedef struct {
    tp_schema_kind kind;
    bool detected; /* false: the configuration said so */
    /* Member names: first and second are prompt and answer, or messages and "". */
    char first[128], second[128], extra[128], tools[128], system[128];
    char separator[32];
    const char *system_prompt, *prompt_template; /* as in the options */
} tp_schema;

/* Where a row stands; `text` is one line without its newline. */
typedef struct {
    const char *file;
    uint64_t line; /* from 1 */
    const char *text;
    size_t n;
} tp_row;

/* A row as the renderer wants it; everything in the arena it was made in. */
typedef struct {
    bool is_text;
    bool is_pair;          /* one prompt, one answer: makes sense without a chat template */
    tp_slice text;         /* is_text */
    tp_json *messages;     /* array of {"role", "content", ...}, otherwise */
    const tp_json *tools;  /* array, or NULL */
    size_t first_target;   /* messages before this one are never learned */
    const char *separator; /* between prompt and answer, without a chat template */
    uint64_t line;
    uint32_t unread; /* bit i: tp_unread_columns[i] says something, and is not learned from */
} tp_example;

/* Columns that rows have besides and other trainers learn from; closed by one without a name. */
typedef struct {
    const char *name, *remedy; /* " (...)" or "" */
} tp_unread_column;
extern const tp_unread_column tp_unread_columns[];

/* Check the options, and the keys of `row` where they leave the choice open. */
TP_CHECKED tp_status tp_schema_choose(const tp_schema_options *options, const tp_row *row,
                                      tp_arena *arena, tp_schema *ret, tp_error *err);

/* One row.  The arena needs tp_schema_arena_bytes(); rewind it between rows. */
TP_CHECKED tp_status tp_schema_read(const tp_schema *schema, const tp_row *row, tp_arena *arena,
                                    tp_example *ret, tp_error *err);
/* The same for a row that is parsed already; `row` is for messages. */
TP_CHECKED tp_status tp_schema_read_object(const tp_schema *schema, const tp_row *row,
                                           const tp_json *object, tp_arena *arena, tp_example *ret,
                                           tp_error *err);
size_t tp_schema_arena_bytes(const tp_schema_options *options, size_t longest_row);

/* An example of one prompt and one answer that stands in no file. */
void tp_schema_pair(const tp_schema *schema, const char *prompt, const char *answer,
                    tp_arena *arena, tp_example *ret);

/* Replace "{}" of `format` by `text`: Python's str.format() with one argument. */
TP_CHECKED tp_status tp_prompt_format_check(const char *name, const char *format, tp_error *err);
/* data.*.prompt_file (is_format) or system_prompt_file into `buf`: UTF-8 text of at most 1 MiB.
 * *ret is left alone where `path` is NULL. */
TP_CHECKED tp_status tp_prompt_file_read(const char *path, bool is_format, tp_buf *buf,
                                         const char **ret, tp_error *err);
char *tp_prompt_format(const char *format, tp_slice text, tp_arena *arena, size_t *ret_len);

/* "file:line: " and the message, for what concerns the row as a whole. */
tp_status tp_row_fail(const tp_row *row, tp_status status, tp_error *err, const char *fmt, ...)
    TP_PRINTF(4, 5);

#endif
