/* A runtime on POSIX threads: as many as asked, each with a share of every parallel loop. */
#define TILEWRIGHT_STDIO
#include "product.h"
#include <pthread.h>

typedef struct {
  tw_body body;
  void *environment;
  int64_t begin, end, worker;
  int32_t code;
} share;

static int loops;

static void *work(void *given) {
  share *s = given;
  s->code = s->body(s->environment, s->begin, s->end, s->worker);
  return 0;
}

static int32_t parallel(void *context, tw_body body, int64_t stop, void *environment) {
  int64_t threads = *(int64_t *)context;
  pthread_t handles[16];
  share shares[16];
  loops++;
  for (int64_t k = 0; k < threads; k++) {
    share s = {body, environment, stop * k / threads, stop * (k + 1) / threads, k, 0};
    shares[k] = s;
    pthread_create(&handles[k], 0, work, &shares[k]);
  }
  int32_t code = 0;
  for (int64_t k = 0; k < threads; k++) {
    pthread_join(handles[k], 0);
    if (!code) code = shares[k].code;
  }
  return code;
}

int main(int argc, char **argv) {
  int64_t threads = argc > 1 ? atoi(argv[1]) : 1, shape[2] = {300, 300};
  tw_runtime runtime = {TW_ABI_VERSION, &threads, tw_stdlib_alloc, tw_stdlib_free, parallel,
                        threads};
  product_model *model;
  tw_error error;
  tw_result *c;
  static float a[300 * 300], b[300 * 300];
  for (int k = 0; k < 300 * 300; k++) {
    a[k] = (float)(k % 7 - 3);
    b[k] = (float)(k % 5 - 2);
  }
  /* No weights: the header alone. */
  int64_t bytes;
  void *weights = tw_read_file("product.safetensors", &bytes);
  if (product_open(&runtime, weights, bytes, &model, &error)) {
    printf("%d %s\n", error.code, error.message);
    return 0;
  }
  tw_tensor ta = tw_describe(a, shape, 2, 2, 32), tb = tw_describe(b, shape, 2, 2, 32);
  if (product_main(model, &ta, &tb, &c, &error)) {
    printf("%d %s\n", error.code, error.message);
    return 1;
  }
  int wrong = 0;
  for (int i = 0; i < 300; i++)
    for (int j = 0; j < 300; j++) {
      float sum = 0;
      for (int k = 0; k < 300; k++) sum += a[i * 300 + k] * b[k * 300 + j];
      wrong += sum != ((float *)c->tensor.data)[i * 300 + j];
    }
  printf("%d wrong, %s\n", wrong, loops ? "parallel" : "serial");
  tw_release(c);
  product_close(model);
  free(weights);
  return 0;
}
