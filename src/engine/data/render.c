/* render.c - rendering examples with a chat template and marking the tokens of the assistant,
 * by generation blocks or by prefixes. */
#include "engine/data/render.h"

#include <string.h>

#include "base/platform.h"
#include "base/terminal.h"
#include "engine/data/row_message.h"
#include "text/template/chat_context.h"

struct tp_renderer {
    const tp_tokenizer *tok;
    tp_render_options options;
    const char *template_text; /* NULL: none */
    tp_template *template;
    bool asked_for_none; /* chat_template: "" */
    bool has_blocks[2];  /* for conversations without tools, and with them */
    int32_t bos, eos;    /* -1: not to be added */
};

/* Each of a tokenizer's two templates has generation blocks, or has none; a block that a template
 * leaves out of an answer leaves it out on purpose. */
static tp_status find_blocks(tp_renderer *r, tp_error *err)
{
    bool is_own = r->template_text == tp_tokenizer_chat_template(r->tok);
    for (int has_tools = 0; has_tools < 2; has_tools++) {
        const char *text = is_own ? tp_tokenizer_template_for(r->tok, has_tools) : r->template_text;
        tp_template *side;
        if (!text)
            continue;
        TP_TRY(tp_template_parse("chat template", text, strlen(text), &side, err));
        r->has_blocks[has_tools] = tp_template_has_generation(side);
        tp_template_free(side);
    }
    return TP_OK;
}

tp_status tp_renderer_new(const tp_tokenizer *tok, const tp_render_options *options,
                          tp_renderer **ret, tp_error *err)
{
    tp_renderer r = {.tok = tok, .options = *options, .bos = -1, .eos = -1};
    r.template_text =
        options->chat_template ? options->chat_template : tp_tokenizer_chat_template(tok);
    if (r.template_text && !r.template_text[0])
        r.template_text = NULL;
    r.asked_for_none = options->chat_template && !options->chat_template[0];
    if (r.template_text) {
        TP_TRY(find_blocks(&r, err));
        TP_TRY(tp_template_parse("chat template", r.template_text, strlen(r.template_text),
                                 &r.template, err));
    }
    if (options->add_bos)
        r.bos = tp_tokenizer_bos(tok);
    if (options->add_eos)
        r.eos = tp_tokenizer_eos(tok);
    *ret = tp_grow(NULL, 1, sizeof **ret);
    **ret = r;
    return TP_OK;
}

void tp_renderer_free(tp_renderer *renderer)
{
    if (!renderer)
        return;
    tp_template_free(renderer->template);
    free(renderer);
}

const tp_tokenizer *tp_renderer_tokenizer(const tp_renderer *renderer) { return renderer->tok; }
const char *tp_renderer_template(const tp_renderer *renderer) { return renderer->template_text; }

bool tp_renderer_learns_headers(const tp_renderer *renderer)
{
    return renderer->options.learn_header && renderer->template_text &&
           !(renderer->has_blocks[0] && renderer->has_blocks[1]);
}

void tp_rendered_init(tp_rendered *r, const tp_renderer *renderer)
{
    *r = (tp_rendered){.scratch = tp_tokenizer_scratch_new(renderer->tok)};
}

void tp_rendered_release(tp_rendered *r)
{
    if (!r)
        return;
    if (r->scratch)
        tp_tokenizer_scratch_free(r->scratch);
    tp_ids_release(&r->ids);
    tp_ids_release(&r->starts);
    tp_buf_release(&r->mask);
    tp_buf_release(&r->text);
    tp_buf_release(&r->other);
    tp_spans_release(&r->spans);
    tp_template_memory_release(&r->memory);
    *r = (tp_rendered){0};
}

typedef struct {
    const tp_renderer *renderer;
    const tp_example *example;
    const tp_row *row;
    tp_arena *arena;
    tp_rendered *out;
    tp_error *err;
} rendering;

static void add_span(tp_rendered *r, size_t begin, size_t end)
{
    if (r->spans.n == r->spans_cap) {
        r->spans_cap = r->spans_cap ? 2 * r->spans_cap : 8;
        r->spans.begin = tp_grow(r->spans.begin, r->spans_cap, sizeof(size_t));
        r->spans.end = tp_grow(r->spans.end, r->spans_cap, sizeof(size_t));
    }
    r->spans.begin[r->spans.n] = begin;
    r->spans.end[r->spans.n++] = end;
}

static tp_status apply_template(rendering *r, size_t n_messages, bool generation_prompt,
                                tp_buf *out, tp_spans *spans)
{
    size_t mark = tp_arena_mark(r->arena);
    tp_json *context = tp_chat_context_new(r->arena);
    tp_chat_context_messages(r->arena, context, r->example->messages, n_messages);
    tp_chat_context_share(r->arena, context, "tools", r->example->tools);
    tp_chat_context_finish(r->arena, r->renderer->tok, r->renderer->options.variables,
                           generation_prompt, context);

    tp_buf_clear(out);
    tp_error inner;
    tp_status status =
        tp_chat_context_render(r->renderer->template, context, &r->out->memory, out, spans, &inner);
    tp_arena_rewind(r->arena, mark);
    if (status != TP_OK)
        return tp_row_fail(r->row, status, r->err, "%s", inner.message);
    return TP_OK;
}

/* Is message i one to learn from? */
static bool is_target(const rendering *r, const tp_json *message, size_t i)
{
    bool is_last = i + 1 == r->example->messages->n;
    return tp_message_has_role(message, "assistant") && i >= r->example->first_target &&
           (is_last || !r->renderer->options.only_unmask_final);
}

static bool is_prefix(const tp_buf *prefix, const tp_buf *whole)
{
    return prefix->len <= whole->len &&
           (prefix->len == 0 || memcmp(prefix->data, whole->data, prefix->len) == 0);
}

static tp_status not_a_prefix(rendering *r, size_t i, bool with_prompt)
{
    return tp_row_fail(
        r->row, TP_ERR_FORMAT, r->err,
        "the chat template renders %s message %zu otherwise than in the whole conversation (it "
        "rewrites earlier turns, or its generation prompt differs), so what the assistant wrote "
        "cannot be told apart; set sft.only_unmask_final, or use a template with "
        "{%% generation %%} blocks",
        with_prompt ? "the start of" : "the conversation up to", i);
}

/* What stands before an assistant that begins. */
static tp_status render_nothing(rendering *r)
{
    if (apply_template(r, 0, !r->renderer->options.learn_header, &r->out->other, NULL) == TP_OK)
        return TP_OK;
    return tp_row_fail(
        r->row, TP_ERR_FORMAT, r->err,
        "the conversation begins with the assistant, and the chat template renders no conversation "
        "without messages, so where the answer begins cannot be told; set sft.only_unmask_final, "
        "use a template with {%% generation %%} blocks, or begin with a system or user message");
}

static tp_status spans_by_prefix(rendering *r)
{
    tp_rendered *out = r->out;
    bool with_prompt = !r->renderer->options.learn_header;
    size_t n = r->example->messages->n, i = 0;
    out->spans.n = 0;
    TP_TRY(apply_template(r, n, false, &out->text, NULL));
    for (const tp_json *m = r->example->messages->child; m; m = m->next, i++) {
        if (!is_target(r, m, i))
            continue;
        if (i == 0)
            TP_TRY(render_nothing(r));
        else
            TP_TRY(apply_template(r, i, with_prompt, &out->other, NULL));
        size_t begin = out->other.len, end = out->text.len;
        if (!is_prefix(&out->other, &out->text))
            return not_a_prefix(r, i, with_prompt);
        if (i + 1 < n) {
            TP_TRY(apply_template(r, i + 1, false, &out->other, NULL));
            end = out->other.len;
            if (!is_prefix(&out->other, &out->text))
                return not_a_prefix(r, i, false);
        }
        if (begin > end)
            return not_a_prefix(r, i, with_prompt);
        add_span(out, begin, end);
    }
    return TP_OK;
}

/* Where the last block begins that has the content: at its edge, or else within it. */
static bool find_content(const tp_rendered *out, tp_slice content, size_t *ret)
{
    size_t n = content.len;
    for (int anywhere = 0; anywhere < 2 && n; anywhere++)
        for (size_t i = out->spans.n; i-- > 0;) {
            const char *block = out->text.data + out->spans.begin[i];
            size_t len = out->spans.end[i] - out->spans.begin[i];
            if (len < n)
                continue;
            *ret = out->spans.begin[i];
            if (anywhere
                    ? memmem(block, len, content.data, n) != NULL
                    : !memcmp(block, content.data, n) || !memcmp(block + len - n, content.data, n))
                return true;
        }
    return false;
}

/* Where the text of message `first` begins: behind that of those before it; where a template
 * rewrites them, the last block that has its content. */
static tp_status find_begin(rendering *r, size_t first, size_t *ret)
{
    tp_rendered *out = r->out;
    const tp_json *m = r->example->messages->child;
    for (int with_prompt = 1; with_prompt >= 0; with_prompt--) {
        TP_TRY(apply_template(r, first, with_prompt, &out->other, NULL));
        *ret = out->other.len;
        if (is_prefix(&out->other, &out->text))
            return TP_OK;
    }
    for (size_t i = 0; i < first; i++)
        m = m->next;
    if (find_content(out, tp_message_text(r->arena, m), ret))
        return TP_OK;
    return not_a_prefix(r, first, true);
}

/* Keeps what lies behind the text before message `first`. */
static tp_status keep_from(rendering *r, size_t first)
{
    tp_spans *spans = &r->out->spans;
    size_t n_kept = 0, begin;
    if (first == 0)
        return TP_OK;
    TP_TRY(find_begin(r, first, &begin));
    for (size_t i = 0; i < spans->n; i++) {
        if (spans->end[i] <= begin)
            continue;
        spans->begin[n_kept] = TP_MAX(spans->begin[i], begin);
        spans->end[n_kept++] = spans->end[i];
    }
    spans->n = n_kept;
    return TP_OK;
}

/* Which spans count: those of a prompt given as messages are not to be learned, and blocks do not
 * say which message they belong to.  As many as there are answers come in their order; a template
 * may also have none for an empty answer, one around several, or another for what ends the text. */
static tp_status choose_spans(rendering *r)
{
    tp_spans *spans = &r->out->spans;
    size_t n_assistant = 0, n_kept = 0, i = 0;
    for (const tp_json *m = r->example->messages->child; m; m = m->next)
        n_assistant += tp_message_has_role(m, "assistant");
    if (n_assistant != spans->n)
        return keep_from(r, r->renderer->options.only_unmask_final ? r->example->messages->n - 1
                                                                   : r->example->first_target);
    size_t span = 0;
    for (const tp_json *m = r->example->messages->child; m; m = m->next, i++) {
        if (!tp_message_has_role(m, "assistant"))
            continue;
        if (is_target(r, m, i)) {
            spans->begin[n_kept] = spans->begin[span];
            spans->end[n_kept++] = spans->end[span];
        }
        span++;
    }
    spans->n = n_kept;
    return TP_OK;
}

static tp_status spans_by_blocks(rendering *r)
{
    tp_spans_release(&r->out->spans);
    r->out->spans_cap = 0;
    TP_TRY(apply_template(r, r->example->messages->n, false, &r->out->text, &r->out->spans));
    r->out->spans_cap = r->out->spans.n;
    return choose_spans(r);
}

/* Mask by byte ranges: token k covers text from starts[k] to the next start behind it; tokens of
 * one character that normalising composed share both. */
static void mask_spans(tp_rendered *out, size_t first)
{
    size_t span = 0, next = 0, n = out->ids.len - first;
    for (size_t k = 0; k < n; k++) {
        size_t begin = (size_t)out->starts.data[k];
        while (next < n && (size_t)out->starts.data[next] <= begin)
            next++;
        size_t end = next < n ? (size_t)out->starts.data[next] : out->text.len;
        while (span < out->spans.n && out->spans.end[span] <= begin)
            span++;
        bool inside = span < out->spans.n && out->spans.begin[span] < end &&
                      out->spans.begin[span] < out->spans.end[span];
        if (inside && begin < out->spans.begin[span])
            out->straddles = true;
        tp_buf_addc(&out->mask, inside);
    }
}

static void add_id(tp_rendered *out, int32_t id, bool learned)
{
    tp_ids_add(&out->ids, id);
    tp_buf_addc(&out->mask, learned);
}

static void encode(rendering *r, const char *text, size_t n, tp_ids *starts)
{
    tp_encode_options options = {.parse_special = true};
    tp_tokenizer_encode(r->renderer->tok, r->out->scratch, text, n, options, &r->out->ids, starts);
}

/* Does the text end with the end of sequence that add_eos asks for?  Templates often put a newline
 * behind that of the last turn; no model is asked to write it, so it is cut off, unless a block of
 * the template says that it is learned. */
static bool trim_behind_eos(rendering *r)
{
    tp_buf *text = &r->out->text;
    const char *eos =
        r->renderer->eos >= 0 ? tp_tokenizer_token(r->renderer->tok, r->renderer->eos) : NULL;
    size_t n = text->len;
    while (n && text->data[n - 1] == '\n')
        n--;
    size_t n_eos = eos ? strlen(eos) : 0;
    if (!n_eos || n < n_eos || memcmp(text->data + n - n_eos, eos, n_eos) != 0)
        return false;
    const tp_spans *spans = &r->out->spans;
    bool in_block = r->renderer->has_blocks[r->example->tools != NULL] && spans->n &&
                    spans->end[spans->n - 1] > n;
    if (!in_block)
        text->len = n;
    return true;
}

static void finish_with_eos(rendering *r, bool learned)
{
    tp_rendered *out = r->out;
    int32_t eos = r->renderer->eos;
    if (eos >= 0 && (out->ids.len == 0 || out->ids.data[out->ids.len - 1] != eos))
        add_id(out, eos, learned);
}

static tp_status render_template(rendering *r)
{
    tp_rendered *out = r->out;
    if (r->renderer->has_blocks[r->example->tools != NULL])
        TP_TRY(spans_by_blocks(r));
    else
        TP_TRY(spans_by_prefix(r));
    bool ends = trim_behind_eos(r);
    encode(r, out->text.data, out->text.len, &out->starts);
    size_t first = 0;
    int32_t bos = r->renderer->bos;
    if (bos >= 0 && (out->ids.len == 0 || out->ids.data[0] != bos)) {
        tp_ids_add(&out->ids, bos);
        memmove(out->ids.data + 1, out->ids.data, (out->ids.len - 1) * sizeof *out->ids.data);
        out->ids.data[0] = bos;
        tp_buf_addc(&out->mask, 0);
        first = 1;
    }
    mask_spans(out, first);
    size_t n = r->example->messages->n;
    if (!ends)
        finish_with_eos(r, n && is_target(r, tp_json_at(r->example->messages, n - 1), n - 1));
    return TP_OK;
}

static void add_part(rendering *r, tp_slice text, bool learned)
{
    size_t before = r->out->ids.len;
    if (text.len)
        encode(r, text.data, text.len, NULL);
    for (size_t k = before; k < r->out->ids.len; k++)
        tp_buf_addc(&r->out->mask, learned);
}

/* A prompt and the separator are tokenised as one piece, as generation will do. */
static void add_prompt(rendering *r, tp_slice text, const char *separator)
{
    tp_buf_clear(&r->out->text);
    tp_buf_add(&r->out->text, text.data, text.len);
    tp_buf_adds(&r->out->text, separator);
    add_part(r, (tp_slice){tp_buf_str(&r->out->text), r->out->text.len}, false);
}

static tp_status render_joined(rendering *r)
{
    if (!r->example->is_pair && !r->renderer->asked_for_none)
        return tp_row_fail(r->row, TP_ERR_CONFIG, r->err,
                           "the rows are conversations, but the tokenizer has no chat template; "
                           "give one with policy.tokenizer.chat_template, or null to join "
                           "the contents");
    size_t i = 0;
    bool learned = false;
    if (r->renderer->bos >= 0)
        add_id(r->out, r->renderer->bos, false);
    for (const tp_json *m = r->example->messages->child; m; m = m->next, i++) {
        tp_slice text = tp_message_text(r->arena, m);
        learned = is_target(r, m, i);
        if (r->example->is_pair && i + 1 == r->example->first_target)
            add_prompt(r, text, r->example->separator);
        else
            add_part(r, text, learned);
    }
    finish_with_eos(r, learned);
    return TP_OK;
}

static void render_text(rendering *r)
{
    if (r->renderer->bos >= 0)
        add_id(r->out, r->renderer->bos, false);
    add_part(r, r->example->text, true);
    finish_with_eos(r, true);
}

static void finish(tp_rendered *out, size_t max_seq_length)
{
    if (max_seq_length && out->ids.len > max_seq_length) {
        out->ids.len = out->mask.len = max_seq_length;
        out->truncated = true;
    }
    if (out->mask.len)
        out->mask.data[0] = 0;
    for (size_t k = 0; k < out->mask.len; k++)
        out->n_targets += (size_t)out->mask.data[k];
}

tp_status tp_render(const tp_renderer *renderer, const tp_example *example, const tp_row *row,
                    tp_arena *arena, tp_rendered *ret, tp_error *err)
{
    rendering r = {renderer, example, row, arena, ret, err};
    ret->ids.len = ret->starts.len = 0;
    tp_buf_clear(&ret->mask);
    ret->n_targets = 0;
    ret->truncated = ret->straddles = false;
    if (example->is_text)
        render_text(&r);
    else if (renderer->template)
        TP_TRY(render_template(&r));
    else
        TP_TRY(render_joined(&r));
    finish(ret, renderer->options.max_seq_length);
    return TP_OK;
}

/* ---- for people: which tokens are learned ---- */

/* A newline is written out and breaks the line, so that it can be seen. */
static void show_run(const char *text, size_t n, bool learned, tp_buf *out)
{
    const char *mark = learned ? "> " : "| ";
    tp_buf_adds(out, mark);
    for (size_t i = 0; i < n;) {
        uint32_t cp = 0;
        size_t len = tp_utf8_decode(text + i, n - i, &cp);
        if (len && cp == '\n') {
            tp_buf_adds(out, "\\n");
            if (i + 1 < n)
                tp_buf_addf(out, "\n%s", mark);
        } else {
            tp_buf_add_shown(out, text + i, len ? len : 1, true);
        }
        i += len ? len : 1;
    }
    tp_buf_addc(out, '\n');
}

void tp_render_show(const tp_tokenizer *tok, const int32_t *ids, const uint8_t *mask, size_t n,
                    size_t max_tokens, tp_buf *out)
{
    TP_OWN(tp_buf) text = {0};
    size_t shown = max_tokens ? TP_MIN(n, max_tokens) : n;
    for (size_t begin = 0; begin < shown;) {
        size_t end = begin + 1;
        while (end < shown && !mask[end] == !mask[begin])
            end++;
        tp_buf_clear(&text);
        tp_tokenizer_decode(tok, ids + begin, end - begin, false, &text);
        show_run(tp_buf_str(&text), text.len, mask[begin], out);
        begin = end;
    }
    if (shown < n)
        tp_buf_addf(out, "  ... and %zu more tokens\n", n - shown);
}
