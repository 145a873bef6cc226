/* A cache that grows by one row per call: the arena is allocated rarely. Prints the number of calls
 * with a wrong result, and the number of allocations besides those of the results. */
#include <math.h>
#define TILEWRIGHT_STDIO
#include "growing.h"

enum { WIDTH = 16, MOST = 1000 };
static float x[MOST * WIDTH], w[WIDTH * WIDTH];
static int64_t allocations;

static void *counted(void *context, int64_t bytes, int64_t alignment) {
  allocations++;
  return tw_stdlib_alloc(context, bytes, alignment);
}

int main(void) {
  int64_t bytes, wrong = 0;
  tw_error error;
  growing_model *model;
  tw_runtime runtime = tw_stdlib_runtime();
  runtime.alloc = counted;
  void *weights = tw_read_file("growing.safetensors", &bytes);
  if (growing_open(&runtime, weights, bytes, &model, &error)) return 1;
  for (int64_t k = 0; k < MOST * WIDTH; k++) x[k] = (float)(k % 7) / 8;
  for (int64_t k = 0; k < WIDTH; k++) w[k * WIDTH + k] = 2;
  int64_t square[2] = {WIDTH, WIDTH};
  tw_tensor tw = tw_describe(w, square, 2, 2, 32);
  int64_t before = allocations;
  for (int64_t n = 1; n <= MOST; n++) {
    int64_t shape[2] = {n, WIDTH};
    tw_tensor tx = tw_describe(x, shape, 2, 2, 32);
    tw_result *y;
    if (growing_main(model, &tx, &tw, &y, &error)) {
      printf("%d %s\n", error.code, error.message);
      return 1;
    }
    const float *found = (const float *)y->tensor.data;
    for (int64_t i = 0; i < n * WIDTH; i += 13)
      if (fabsf(found[i] - 8 * x[i]) > 1e-4f) wrong++;
    tw_release(y);
  }
  printf("%d %d\n", (int)wrong, (int)(allocations - before - MOST));
  growing_close(model);
  free(weights);
  return 0;
}
