/* Memory functions that compilers call implicitly, for libraries and programs without libc. */

#define TW_INNER __attribute__((visibility("hidden")))

TW_INNER void *memset(void *to, int value, __SIZE_TYPE__ bytes) {
  unsigned char *t = to;
  while (bytes--) *t++ = (unsigned char)value;
  return to;
}

TW_INNER void *memmove(void *to, const void *from, __SIZE_TYPE__ bytes) {
  unsigned char *t = to;
  const unsigned char *f = from;
  if (WORD(t) <= WORD(f))
    while (bytes--) *t++ = *f++;
  else
    while (bytes--) t[bytes] = f[bytes];
  return to;
}

TW_INNER void *memcpy(void *to, const void *from, __SIZE_TYPE__ bytes) {
  return memmove(to, from, bytes);
}
