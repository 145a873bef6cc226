/* The pool of threads that the support code brings, for loaders that are no C programs: its words
 * are the loader's, with the system's functions in them (NAME.py says which). */

extern int32_t tw_pool_parallel(void *pool, tw_body body, int64_t stop, void *environment);
extern void tw_close_pool(void *pool);

#define TW_JOINED(a, b) a##_##b
#define TW_NAMED(a, b) TW_JOINED(a, b)

/* parallel of a tw_runtime whose context is the pool. */
TW_EXPORT int32_t TW_NAMED(TW_NAME, pool_parallel)(void *pool, tw_body body, int64_t stop,
                                                   void *environment) {
  return tw_pool_parallel(pool, body, stop, environment);
}

/* Tell the workers to end; who asks joins them. */
TW_EXPORT void TW_NAMED(TW_NAME, pool_close)(void *pool) { tw_close_pool(pool); }
