/* Generates tokens with a state, twice from the same start, and with two states in turn. Prints the
 * tokens, and the allocations per token besides those of the results. */
#define TILEWRIGHT_STDIO
#include "decoder.h"

enum { COUNT = 200, MOST = 256 };
static int64_t allocations;
static tw_error error;
static decoder_state *probed; /* the state that is reset in the middle of the next call */

static void *counted(void *context, int64_t bytes, int64_t alignment) {
  allocations++;
  if (probed) {
    tw_error inner;
    if (decoder_state_reset(probed, &inner)) printf("%d %s\n", inner.code, inner.message);
    probed = 0;
  }
  return tw_stdlib_alloc(context, bytes, alignment);
}

static int failed(const char *where, int32_t code) {
  if (code) printf("%s: %d %d %s\n", where, error.code, error.parameter, error.message);
  return code != 0;
}

/* Return the next token, or -1 after an error. */
static int64_t step(decoder_model *model, decoder_state *state, int64_t token, int64_t position) {
  int64_t square[2] = {1, 1}, one[1] = {1}, best = 0;
  tw_tensor ids = tw_describe(&token, square, 2, 0, 64), at = tw_describe(&position, one, 1, 0, 64);
  tw_result *logits;
  if (failed("main", decoder_main(model, &ids, &at, state, &logits, &error))) return -1;
  const float *x = (const float *)logits->tensor.data;
  for (int64_t k = 1; k < logits->tensor.shape[2]; k++)
    if (x[k] > x[best]) best = k;
  tw_release(logits);
  return best;
}

int main(int argc, char **argv) {
  tw_runtime runtime = tw_stdlib_runtime();
  runtime.alloc = counted;
  decoder_model *model;
  decoder_state *state, *other;
  int64_t bytes, tokens[MOST] = {3}, again = 3, left = 3, right = 90;
  if (argc < 2) return 2;
  void *weights = tw_read_file(argv[1], &bytes);
  if (failed("open", decoder_open(&runtime, weights, bytes, &model, &error))) return 1;
  if (failed("state", decoder_state_create(model, &state, &error))) return 1;
  if (failed("state", decoder_state_create(model, &other, &error))) return 1;
  for (int64_t k = 0; k < COUNT; k++) {
    int64_t before = allocations;
    tokens[k + 1] = step(model, state, tokens[k], k);
    if (tokens[k + 1] < 0) return 1;
    if (k && allocations - before != 1) printf("%d allocations\n", (int)(allocations - before));
    printf("%d ", (int)tokens[k + 1]);
  }
  printf("\n");
  if (failed("reset", decoder_state_reset(state, &error))) return 1;
  for (int64_t k = 0; k < COUNT; k++) {
    again = step(model, state, again, k);
    if (again != tokens[k + 1]) printf("token %d differs after a reset\n", (int)k);
  }
  if (failed("reset", decoder_state_reset(state, &error))) return 1;
  for (int64_t k = 0; k < COUNT; k++) {
    left = step(model, state, left, k);
    right = step(model, other, right, k);
    if (left != tokens[k + 1]) printf("token %d differs in turn\n", (int)k);
    printf("%d ", (int)right);
  }
  printf("\n");
  const tw_tensor *cache = decoder_state_tensor(other, "key_cache_0");
  printf("%d %d %d\n", cache->ndim, (int)cache->shape[2], !decoder_state_tensor(other, "none"));
  if (decoder_main(model, cache, cache, 0, &(tw_result *){0}, &error)) printf("%s\n", error.message);
  probed = other;
  step(model, other, 1, COUNT);
  step(model, state, 1, 1000);
  step(model, state, 1, 0);
  decoder_close(model);
  decoder_state_destroy(state);
  decoder_state_destroy(other);
  free(weights);
  return 0;
}
