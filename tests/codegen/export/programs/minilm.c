/* minilm WEIGHTS OUT REPEATS (BATCH LENGTH)...: writes the two results of each shape to OUT, and
 * prints the microseconds of a call at the last shape. */
#define _POSIX_C_SOURCE 199309L
#define TILEWRIGHT_STDIO
#include "minilm.h"
#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int refused(const tw_error *error) {
  fprintf(stderr, "%d %s\n", error->code, error->message);
  return 1;
}

static void write_result(FILE *out, tw_result *result) {
  int64_t count = 1;
  for (int k = 0; k < result->tensor.ndim; k++) count *= result->tensor.shape[k];
  fwrite(result->tensor.data, 4, (size_t)count, out);
  tw_release(result);
}

int main(int argc, char **argv) {
  tw_runtime runtime = tw_stdlib_runtime();
  minilm_model *model;
  tw_error error;
  tw_result *states, *pooled;
  int64_t bytes, ids[1024], mask[1024];
  if (argc < 6) return 2;
  int repeats = atoi(argv[3]);
  void *weights = tw_read_file(argv[1], &bytes);
  FILE *out = fopen(argv[2], "wb");
  if (!out) return 2;
  if (minilm_open(&runtime, weights, bytes, &model, &error)) return refused(&error);
  for (int a = 4; a + 1 < argc; a += 2) {
    int64_t shape[2] = {atol(argv[a]), atol(argv[a + 1])};
    if (shape[0] < 1 || shape[1] < 1 || shape[0] * shape[1] > 1024) return 2;
    for (int64_t k = 0; k < shape[0] * shape[1]; k++) {
      ids[k] = 1000 + k * 7919 % 29000;
      mask[k] = k % shape[1] < shape[1] - k / shape[1];
    }
    tw_tensor ti = tw_describe(ids, shape, 2, 0, 64), tm = tw_describe(mask, shape, 2, 0, 64);
    if (minilm_main(model, &ti, &tm, &states, &pooled, &error)) return refused(&error);
    write_result(out, states);
    write_result(out, pooled);
    if (a + 3 < argc || !repeats) continue;
    double begin = now();
    for (int k = 0; k < repeats; k++) {
      if (minilm_main(model, &ti, &tm, &states, &pooled, &error)) return refused(&error);
      tw_release(states);
      tw_release(pooled);
    }
    printf("%f\n", (now() - begin) / repeats);
  }
  fclose(out);
  minilm_close(model);
  free(weights);
  return 0;
}
