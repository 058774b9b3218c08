/* row_message.h - what a message of a row may be, its text, and the tools of the row: the same for
 * what is learned and for what is asked. */
#ifndef TP_ENGINE_DATA_ROW_MESSAGE_H
#define TP_ENGINE_DATA_ROW_MESSAGE_H

#include "engine/data/row_place.h"

/* Where a message stands in its row. */
typedef struct {
    const char *list; /* the member that holds the messages */
    size_t index;
} tp_message_place;

/* TP_ERR_FORMAT at a member of the message, or at the message itself where `key` is NULL. */
tp_status tp_message_fail(const tp_row *row, tp_message_place at, const char *key, tp_error *err,
                          const char *what);

/* An object with a role and with content: text, a list of parts that are text, or, of an assistant
 * that calls tools, none. */
TP_CHECKED tp_status tp_message_check(const tp_row *row, tp_message_place at,
                                      const tp_json *message, tp_error *err);

bool tp_message_has_role(const tp_json *message, const char *role);

/* The role of whom ShareGPT's "from" names; NULL: nobody that is known. */
const char *tp_message_speaker(tp_slice from);

/* What the assistant says, in either way of writing. */
bool tp_message_is_answer(const tp_json *message);

/* Parts one after the other, what is no text left out; NULL where there is no content. */
tp_slice tp_message_text(tp_arena *arena, const tp_json *message);

/* TP_ERR_FORMAT names a member with pictures or sounds. */
TP_CHECKED tp_status tp_row_refuse_media(const tp_row *row, const tp_json *object, tp_error *err);

/* A list of signatures under `key`, or the same as JSON in a string, which keeps the columns of a
 * table uniform; NULL where there are none.  A row with chat_template_kwargs, pictures or sounds is
 * refused. */
TP_CHECKED tp_status tp_tools_read(const tp_row *row, const tp_json *object, const char *key,
                                   tp_arena *arena, const tp_json **ret, tp_error *err);

#endif
