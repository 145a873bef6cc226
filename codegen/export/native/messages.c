/* Writer of error messages. Functions that write entire messages are generated from the table of
 * messages that all loaders share; they are included after this file. */

/* Error paths are not inlined: inlining them enlarges a library by about 20 KB. */
#define COLD __attribute__((noinline, cold))

typedef struct {
  tw_error *error; /* may be null */
  int32_t used;    /* bytes of the message so far */
} tw_writer;

/* A failed check with the numbers that the call recorded. */
typedef struct {
  const tw_site *site;
  const uint64_t *numbers;
} tw_failure;

COLD static void put(tw_writer *w, const char *text) {
  if (!w->error) return;
  while (text && *text && w->used < (int32_t)sizeof w->error->message - 1)
    w->error->message[w->used++] = *text++;
  w->error->message[w->used] = 0;
}

typedef struct {
  char text[24];
  int32_t start;
} tw_digits;

COLD static tw_digits digits_of_unsigned(uint64_t rest) {
  tw_digits d;
  int32_t k = 23;
  d.text[k] = 0;
  do {
    d.text[--k] = (char)('0' + rest % 10);
    rest /= 10;
  } while (rest);
  d.start = k;
  return d;
}

COLD static tw_digits digits_of(int64_t value) {
  tw_digits d = digits_of_unsigned(value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
  if (value < 0) d.text[--d.start] = '-';
  return d;
}

COLD static void put_number(tw_writer *w, int64_t value) {
  tw_digits d = digits_of(value);
  put(w, d.text + d.start);
}

COLD static void put_unsigned(tw_writer *w, uint64_t value) {
  tw_digits d = digits_of_unsigned(value);
  put(w, d.text + d.start);
}

COLD static void put_tuple(tw_writer *w, const int64_t *values, int32_t count) {
  put(w, "(");
  for (int32_t k = 0; k < count; k++) {
    if (k) put(w, ", ");
    put_number(w, values[k]);
  }
  put(w, count == 1 ? ",)" : ")");
}

COLD static void put_shape(tw_writer *w, const tw_tensor *t) { put_tuple(w, t->shape, t->ndim); }

COLD static void put_strides(tw_writer *w, const tw_tensor *t) {
  if (t->strides)
    put_tuple(w, t->strides, t->ndim);
  else
    put(w, "null");
}

/* The shape that a result has; the tensor is not one of the caller. */
static void put_result_shape(tw_writer *w, const tw_tensor *t) __attribute__((unused));
COLD static void put_result_shape(tw_writer *w, const tw_tensor *t) { put_shape(w, t); }

COLD static void put_actual_dtype(tw_writer *w, const tw_tensor *t) {
  static const char *const kinds[] = {"i", "u", "f", 0, "bf", 0, "bool"};
  const char *kind = t->dtype_code < 7 ? kinds[t->dtype_code] : 0;
  if (kind) {
    put(w, kind);
  } else {
    put(w, "DLPack code ");
    put_number(w, t->dtype_code);
    put(w, " with bits ");
  }
  if (t->dtype_code != 6 || t->dtype_bits != 8) put_number(w, t->dtype_bits);
  if (t->dtype_lanes != 1) {
    put(w, "x");
    put_number(w, t->dtype_lanes);
  }
}

COLD static void put_actual_device(tw_writer *w, const tw_tensor *t) {
  if (t->device_type == 2) {
    put(w, "cuda:");
  } else {
    put(w, "DLPack device ");
    put_number(w, t->device_type);
    put(w, ":");
  }
  put_number(w, t->device_id);
}

COLD static void put_symbols(tw_writer *w, const tw_failure *f, int32_t first) {
  for (int32_t k = 0; k + first < 4 && f->site->names[k]; k++) {
    if (k) put(w, ", ");
    put(w, f->site->names[k]);
    put(w, " = ");
    put_number(w, (int64_t)f->numbers[k + first]);
  }
}

COLD static void put_values(tw_writer *w, const tw_failure *f) {
  if (f->site->names[0]) put(w, " for ");
  put_symbols(w, f, 0);
}

/* The expected value: the term, its value, and the symbols that it depends on. */
COLD static void put_term(tw_writer *w, const tw_failure *f) {
  tw_digits d = digits_of((int64_t)f->numbers[0]);
  put(w, f->site->text);
  if (equal_text(f->site->text, d.text + d.start)) return;
  put(w, " = ");
  put(w, d.text + d.start);
  int is_symbol = 0;
  for (int32_t k = 0; k < 2 && f->site->names[k]; k++)
    is_symbol |= equal_text(f->site->text, f->site->names[k]);
  if (is_symbol) {
    put(w, " from the other arguments");
  } else if (f->site->names[0]) {
    put(w, " (with ");
    put_symbols(w, f, 2);
    put(w, " from the other arguments)");
  }
}

static void clear_error(tw_error *error) {
  if (error) {
    error->code = 0;
    error->parameter = -1;
    error->message[0] = 0;
  }
}

COLD static tw_writer begin(tw_error *error) {
  tw_writer w = {error, 0};
  clear_error(error);
  return w;
}

static int32_t finish(tw_writer w, int32_t code) {
  if (w.error) w.error->code = code;
  return code;
}
