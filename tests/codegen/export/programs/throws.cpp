/* A function parallel that throws an exception through the library in every second call. */
#define TILEWRIGHT_STDIO
#include "product.h"
#include <stdexcept>

static bool throwing;
static int blocks;

static void *counted_alloc(void *context, int64_t bytes, int64_t alignment) {
  blocks++;
  return tw_stdlib_alloc(context, bytes, alignment);
}

static void counted_free(void *context, void *memory) {
  blocks -= memory != nullptr;
  tw_stdlib_free(context, memory);
}

static int32_t parallel(void *, tw_body body, int64_t stop, void *environment) {
  if (throwing) throw std::runtime_error("host");
  return body(environment, 0, stop, 0);
}

int main() {
  enum { SIDE = 300, CALLS = 20 };
  static float a[SIDE * SIDE];
  int64_t bytes, shape[2] = {SIDE, SIDE};
  void *weights = tw_read_file("product.safetensors", &bytes);
  tw_runtime runtime = tw_stdlib_runtime();
  tw_tensor t = tw_describe(a, shape, 2, 2, 32);
  product_model *model;
  tw_result *c;
  int caught = 0, returned = 0;
  runtime.alloc = counted_alloc;
  runtime.free = counted_free;
  runtime.parallel = parallel;
  runtime.threads = 2;
  if (product_open(&runtime, weights, bytes, &model, nullptr)) return 1;
  for (int k = 0; k < CALLS; k++) {
    throwing = k % 2;
    try {
      if (product_main(model, &t, &t, &c, nullptr)) return 2;
      tw_release(c);
      returned++;
    } catch (const std::runtime_error &) {
      caught++;
    }
  }
  product_close(model);
  printf("%d calls, %d caught, %d returned, %d models, %d blocks\n", +CALLS, caught, returned,
         (int)product_live_models(), blocks);
  free(weights);
  return 0;
}
