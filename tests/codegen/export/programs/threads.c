/* Models on the ready-made pool: several callers share it, and their results are those of one
 * thread bit for bit. Arguments: threads, callers, calls of each. */
#define TILEWRIGHT_PTHREADS
#include "product.h"
#include "other.h"
#include <string.h>
#include <sys/wait.h>

enum { SIDE = 300 };
static float a[SIDE * SIDE], b[SIDE * SIDE], wanted[2][SIDE * SIDE];
static product_model *product;
static other_model *other;
static tw_pool *pool;
static int64_t loops;
static int wrong, calls;

static int32_t counted(void *context, tw_body body, int64_t stop, void *environment) {
  __atomic_add_fetch(&loops, 1, __ATOMIC_RELAXED);
  return tw_pool_parallel(context, body, stop, environment);
}

static int call(int which, float *result) {
  int64_t shape[2] = {SIDE, SIDE};
  tw_tensor ta = tw_describe(a, shape, 2, 2, 32), tb = tw_describe(b, shape, 2, 2, 32);
  tw_error error;
  tw_result *c;
  if (which ? other_main(other, &ta, &tb, &c, &error) : product_main(product, &ta, &tb, &c, &error)) {
    printf("%d %s\n", error.code, error.message);
    return 1;
  }
  memcpy(result, c->tensor.data, sizeof wanted[0]);
  tw_release(c);
  return 0;
}

static void *caller(void *given) {
  float *result = malloc(sizeof wanted[0]);
  (void)given;
  for (int k = 0; k < calls; k++)
    if (call(k % 2, result) || memcmp(result, wanted[k % 2], sizeof wanted[0]))
      __atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
  free(result);
  return 0;
}

static int open_models(const tw_runtime *runtime) {
  int64_t bytes[2];
  tw_error error;
  void *weights[2] = {tw_read_file("product.safetensors", &bytes[0]),
                      tw_read_file("other.safetensors", &bytes[1])};
  int code = product_open(runtime, weights[0], bytes[0], &product, &error);
  if (!code) code = other_open(runtime, weights[1], bytes[1], &other, &error);
  if (code) printf("%d %s\n", error.code, error.message);
  free(weights[0]); /* the header alone: these models have no weights */
  free(weights[1]);
  return code;
}

static void close_models(void) {
  product_close(product);
  other_close(other);
}

/* Many short loops: every iteration runs once, the first error code wins, all workers finish. */
static int64_t marks[64];

static int32_t mark(void *environment, int64_t begin, int64_t end, int64_t worker) {
  int32_t code = 0;
  (void)worker;
  for (int64_t k = begin; k < end; k++) {
    marks[k]++;
    if (k == *(int64_t *)environment) code = 42;
  }
  return code;
}

static int stress(void) {
  int bad = 0;
  int64_t never = -1, last = 63;
  for (int k = 0; k < 20000; k++) {
    int64_t stop = 1 + k % 64;
    memset(marks, 0, sizeof marks);
    bad += tw_pool_parallel(pool, mark, stop, &never) != 0;
    for (int64_t j = 0; j < 64; j++) bad += marks[j] != (j < stop);
    if (k % 1000 == 0) bad += tw_pool_parallel(pool, mark, 64, &last) != 42;
  }
  return bad;
}

/* A forked child runs serially, and closes its copy of the pool without waiting for threads. */
static int fork_and_mark(void) {
  int64_t never = -1;
  int status = 1;
  pid_t child = fork();
  if (!child) {
    int bad = tw_pool_parallel(pool, mark, 64, &never);
    tw_pool_close(pool);
    _exit(bad);
  }
  return waitpid(child, &status, 0) != child || status != 0;
}

int main(int argc, char **argv) {
  int64_t threads = argc > 1 ? atoi(argv[1]) : 1;
  int callers = argc > 2 ? atoi(argv[2]) : 1;
  pthread_t handles[16];
  calls = argc > 3 ? atoi(argv[3]) : 2;
  for (int k = 0; k < SIDE * SIDE; k++) {
    a[k] = (float)(k % 11 - 3) / 7;
    b[k] = (float)(k % 5 - 2) / 3;
  }
  tw_runtime runtime = tw_stdlib_runtime();
  if (open_models(&runtime) || call(0, wanted[0]) || call(1, wanted[1])) return 1;
  close_models();
  pool = tw_pool_open(threads);
  runtime = tw_pool_runtime(pool);
  runtime.parallel = counted;
  int code = open_models(&runtime);
  if (!code) {
    for (int k = 0; k < callers; k++) pthread_create(&handles[k], 0, caller, 0);
    for (int k = 0; k < callers; k++) pthread_join(handles[k], 0);
    wrong += stress() + fork_and_mark();
    printf("%d wrong, %s\n", wrong, loops ? "parallel" : "serial");
    close_models();
  }
  tw_pool_close(pool);
  return 0;
}
