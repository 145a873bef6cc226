/* The thread pool of the runtime library, for loaders in other languages. The loader owns the words
 * of the pool, and stores the addresses of system functions in them (see NAME.py). */

extern int32_t tw_pool_parallel(void *pool, tw_body body, int64_t stop, void *environment);
extern void tw_close_pool(void *pool);

#define TW_JOINED(a, b) a##_##b
#define TW_NAMED(a, b) TW_JOINED(a, b)

/* The function parallel of a tw_runtime whose context is the pool. */
TW_EXPORT int32_t TW_NAMED(TW_NAME, pool_parallel)(void *pool, tw_body body, int64_t stop,
                                                   void *environment) {
  return tw_pool_parallel(pool, body, stop, environment);
}

/* Request the workers to stop; the caller joins them. */
TW_EXPORT void TW_NAMED(TW_NAME, pool_close)(void *pool) { tw_close_pool(pool); }
