/* Arguments: the weights, the number of tokens, and a tensor of the state.
 *
 * Reads a prompt and generates tokens with a cache that grows by one row per token, in a state with
 * a capacity. Prints the tokens, the address of the cache, and the allocations besides those of the
 * results. */
#define TILEWRIGHT_STDIO
#include "decoder.h"

enum { PROMPT = 3, MOST = 1000 };
static int64_t allocations;
static tw_error error;

static void *counted(void *context, int64_t bytes, int64_t alignment) {
  allocations++;
  return tw_stdlib_alloc(context, bytes, alignment);
}

/* Return the next token after `count` tokens, of which the model has read `past`; or -1. */
static int64_t step(decoder_model *model, decoder_state *state, int64_t *tokens, int64_t past,
                    int64_t count) {
  static int64_t ones[MOST];
  for (int64_t k = 0; k < count; k++) ones[k] = 1;
  int64_t read[2] = {1, count - past}, all[2] = {1, count}, best = 0;
  tw_tensor ids = tw_describe(tokens + past, read, 2, 0, 64);
  tw_tensor mask = tw_describe(ones, all, 2, 0, 64);
  tw_result *logits;
  if (decoder_main(model, &ids, &mask, state, &logits, &error)) {
    printf("%d %s\n", error.code, error.message);
    return -1;
  }
  int64_t classes = logits->tensor.shape[2];
  const float *x = (const float *)logits->tensor.data + (logits->tensor.shape[1] - 1) * classes;
  for (int64_t k = 1; k < classes; k++)
    if (x[k] > x[best]) best = k;
  tw_release(logits);
  return best;
}

int main(int argc, char **argv) {
  tw_runtime runtime = tw_stdlib_runtime();
  runtime.alloc = counted;
  decoder_model *model;
  decoder_state *state;
  int64_t bytes, tokens[MOST] = {5, 17, 42}, past = 0;
  if (argc < 4) return 2;
  int64_t count = PROMPT, longest = PROMPT + atoi(argv[2]);
  if (longest > MOST) return 2;
  void *weights = tw_read_file(argv[1], &bytes);
  if (decoder_open(&runtime, weights, bytes, &model, &error)) return 1;
  if (decoder_state_create(model, longest - 1, &state, &error)) return 1;
  const void *before = decoder_state_tensor(state, argv[3])->data;
  int64_t planned = allocations;
  while (count < longest) {
    int64_t token = step(model, state, tokens, past, count);
    if (token < 0) return 1;
    past = count;
    tokens[count++] = token;
    printf("%d ", (int)token);
  }
  printf("\n%d allocations\n", (int)(allocations - planned - (longest - PROMPT)));
  printf("%d\n", decoder_state_tensor(state, argv[3])->data == before);
  step(model, state, tokens, past, count); /* one row more than the capacity */
  printf("end\n");
  decoder_close(model);
  decoder_state_destroy(state);
  free(weights);
  return 0;
}
