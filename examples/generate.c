/* generate.c - continue a text, word by word as it comes.
 *
 *     generate MODEL TEXT
 *
 * MODEL is a Hugging Face folder, a checkpoint, or the folder of a run. */
#include <stdio.h>
#include <string.h>

#include <temper/generator.h>

static bool print(void *user, const tp_text_piece *piece)
{
    FILE *out = (FILE *)user;
    fwrite(piece->text, 1, piece->n_text, out);
    return fflush(out) == 0; /* nobody reads any more: stop */
}

static tp_status run(tp_text_generator *gen, const char *text, tp_error *err)
{
    tp_text_result result = {.size = sizeof result};
    tp_text_request request = {
        .size = sizeof request, .max_new_tokens = 32, .on_piece = print, .user = stdout};
    tp_status status = tp_text_generator_continue(gen, text, strlen(text), &request, &result, err);
    if (status == TP_OK)
        printf("\n[%s: %lld parameters, %lld + %lld tokens, %s]\n",
               tp_model_get_info(tp_text_generator_model(gen))->family,
               (long long)tp_model_param_count(tp_text_generator_model(gen)),
               (long long)result.prompt_tokens, (long long)result.new_tokens,
               result.hit_stop ? "ended by itself" : "cut");
    return status;
}

int main(int argc, char **argv)
{
    tp_text_generator *gen = NULL;
    tp_error err;
    if (argc != 3) {
        fprintf(stderr, "usage: generate MODEL TEXT\n");
        return 2;
    }
    tp_text_generator_options options = {.size = sizeof options, .precision = "float32"};
    tp_status status = tp_text_generator_open(argv[1], &options, &gen, &err);
    if (status == TP_OK)
        status = run(gen, argv[2], &err);
    if (status != TP_OK)
        fprintf(stderr, "generate: %s\n", err.message);
    tp_text_generator_free(gen);
    return status == TP_OK ? 0 : 1;
}
