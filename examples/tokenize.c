/* tokenize.c - a text as token ids, and back.
 *
 *     tokenize FOLDER TEXT
 *
 * FOLDER holds tokenizer.json: any Hugging Face folder with a byte-level BPE. */
#include <stdio.h>
#include <string.h>

#include <temper/tokenizer.h>

static tp_status show(const tp_tokenizer *tok, const char *text, tp_error *err)
{
    int32_t *ids;
    char *back;
    size_t n, n_back;
    tp_status status =
        tp_tokenizer_to_ids(tok, NULL, text, strlen(text), TP_ENCODE_SPECIAL, &ids, &n, err);
    if (status != TP_OK)
        return status;
    for (size_t i = 0; i < n; i++)
        printf("%6d  %s\n", (int)ids[i], tp_tokenizer_token(tok, ids[i]));
    status = tp_tokenizer_to_text(tok, ids, n, false, &back, &n_back, err);
    tp_free(ids);
    if (status != TP_OK)
        return status;
    printf("%zu tokens for %zu bytes, back: %s\n", n, strlen(text), back);
    tp_free(back);
    return TP_OK;
}

int main(int argc, char **argv)
{
    tp_tokenizer *tok = NULL;
    tp_error err;
    if (argc != 3) {
        fprintf(stderr, "usage: tokenize FOLDER TEXT\n");
        return 2;
    }
    tp_status status = tp_tokenizer_load(argv[1], &tok, &err);
    if (status == TP_OK)
        status = show(tok, argv[2], &err);
    if (status != TP_OK)
        fprintf(stderr, "tokenize: %s\n", err.message);
    tp_tokenizer_free(tok);
    return status == TP_OK ? 0 : 1;
}
