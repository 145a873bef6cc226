/* Calls the small model with the sizes in its arguments, and writes the results to a file. */
#define TILEWRIGHT_STDIO
#include "small.h"

static void fill(float *x, int64_t count, int64_t seed) {
  for (int64_t k = 0; k < count; k++) x[k] = (float)((k * 37 + seed * 11) % 41 - 20) / 8.0f;
}

int main(int argc, char **argv) {
  tw_runtime runtime = tw_stdlib_runtime();
  small_model *model;
  tw_error error;
  int64_t bytes;
  if (argc < 4) return 2;
  void *weights = tw_read_file(argv[1], &bytes);
  FILE *out = fopen(argv[2], "wb");
  if (!out) return 2;
  if (small_open(&runtime, weights, bytes, &model, &error)) {
    printf("open: %d %s\n", error.code, error.message);
    return 1;
  }
  for (int k = 3; k < argc; k++) {
    int64_t n = atol(argv[k]), sx[2] = {n, 24}, sy[2] = {n, 40};
    float *x = malloc((size_t)n * 24 * 4 + 4), *y = malloc((size_t)n * 40 * 4 + 4);
    fill(x, n * 24, 1);
    fill(y, n * 40, 2);
    tw_tensor tx = tw_describe(x, sx, 2, 2, 32), ty = tw_describe(y, sy, 2, 2, 32);
    tw_result *c, *d;
    if (small_main(model, &tx, &ty, &c, &d, &error)) {
      printf("main: %d %d %s\n", error.code, error.parameter, error.message);
      return 1;
    }
    fwrite(c->tensor.data, 4, (size_t)(n * 40), out);
    fwrite(d->tensor.data, 4, (size_t)n, out);
    tw_release(c);
    tw_release(d);
    free(x);
    free(y);
  }
  fclose(out);
  small_close(model);
  free(weights);
  return 0;
}
