// The part of the JavaScript loaders that converts and checks arguments. An export contains it in the
// loader, which defines MESSAGES.

// @BEGIN@
const DTYPES = @DTYPES@; // by name: the name of NumPy, the DLPack code, and the number of bits
const BYTE = 8;
const COMPLEX = 5; // the DLPack code of complex numbers, which are pairs of items of an array
const ARRAYS = {
  f32: Float32Array, f64: Float64Array, i8: Int8Array, i16: Int16Array, i32: Int32Array,
  i64: BigInt64Array, u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, u64: BigUint64Array,
  bool: Uint8Array,
};

/** Whether the elements are complex: the real part of each is before its imaginary part. */
function isComplex(dtype) {
  return DTYPES[dtype][1] === COMPLEX;
}

/** The array type of a dtype; one that JavaScript lacks is represented by its bits. */
function arrayOf(dtype) {
  if (isComplex(dtype)) return ARRAYS[`f${DTYPES[dtype][2] / 2}`];
  return ARRAYS[dtype] ?? (DTYPES[dtype][2] <= BYTE ? Uint8Array : Uint16Array);
}

/** The length of an array of elements; those of less than 8 bits are packed in bytes. */
function lengthOf(dtype, count) {
  const bits = DTYPES[dtype][2];
  if (isComplex(dtype)) return 2 * count;
  return bits < BYTE ? Math.ceil((count * bits) / BYTE) : count;
}

/** The item of an array of elements that all equal a number; packed elements fill its bytes. */
function filling(dtype, number) {
  const bits = DTYPES[dtype][2];
  if (bits >= BYTE) {
    return arrayOf(dtype).name.startsWith("Big") ? BigInt(number) : number;
  }
  let byte = 0;
  for (let k = 0; k < BYTE; k += bits) byte |= (Number(number) & (2 ** bits - 1)) << k;
  return byte;
}

/** An invalid file or call. `code` is the error code of the module, or 0. */
export class ModelError extends Error {
  constructor(message, code = 0) {
    super(message);
    this.name = "ModelError";
    this.code = code;
  }
}

function text(name, fields) {
  return MESSAGES[name][1].replace(/\{(\w+)\}/g, (_, field) => String(fields[field]));
}

/** Return the error of a message at a location. */
function failure(name, where, fields) {
  const message = text(name, fields);
  return new ModelError(where ? `${where}: ${message}` : message, MESSAGES[name][0]);
}

function inFunction(facts) {
  return text("in_function", { function: facts.name });
}

function inParameter(facts, { name, annotation }) {
  return text("in_parameter", { function: facts.name, parameter: name, annotation });
}

function typeName(value) {
  return value?.constructor?.name ?? String(value);
}

function integer(where, argument) {
  if (typeof argument !== "bigint" && !Number.isSafeInteger(argument)) {
    throw failure("argument_type", where, {
      kind: "a safe integer or a BigInt",
      actual_type: typeof argument === "number" ? argument : typeName(argument),
      reason: "",
    });
  }
  const value = BigInt(argument);
  if (value !== BigInt.asIntN(64, value)) throw failure("integer_range", where, { actual: value });
  return value;
}

/** Reject written arguments that share memory with others: the module sees copies, which do not. */
function checkAliases(facts, locations, values) {
  const data = values.map((argument) => argument?.data);
  const views = data.map((d) => (ArrayBuffer.isView(d) ? d : null));
  facts.params.forEach((param, k) => {
    if (param.access === "in" || views[k] === null) return;
    const end = views[k].byteOffset + views[k].byteLength;
    views.forEach((other, j) => {
      if (j === k || other === null || other.buffer !== views[k].buffer) return;
      const otherEnd = other.byteOffset + other.byteLength;
      if (other.byteOffset >= end || views[k].byteOffset >= otherEnd) return;
      throw failure("alias", locations[k], {
        parameter: param.name,
        access: param.access,
        other: facts.params[j].name,
        other_access: facts.params[j].access,
      });
    });
  });
}

/** Check that an argument is an array of the right type and of the size of its shape. */
function checkArray(where, param, argument) {
  const kind = arrayOf(param.dtype);
  const { data, shape } = argument ?? {};
  if (!ArrayBuffer.isView(data) || !Array.isArray(shape)) {
    throw failure("argument_type", where, {
      kind: `{ data: ${kind.name}, shape: [...] }`,
      actual_type: typeName(argument),
      reason: "",
    });
  }
  if (!(data instanceof kind)) {
    const actual = Object.keys(ARRAYS).find((name) => data instanceof ARRAYS[name]);
    throw failure("dtype", where, { dtype: param.dtype, actual_dtype: actual ?? typeName(data) });
  }
  shape.forEach((actual, dim) => {
    if (!Number.isSafeInteger(actual)) throw failure("invalid_dimension", where, { dim, actual });
    if (actual < 0) throw failure("negative_dimension", where, { dim, actual });
  });
  const expected = lengthOf(param.dtype, shape.reduce((a, b) => a * b, 1));
  if (expected !== data.length) {
    throw failure("data_length", where, { shape: dims(shape), expected, actual: data.length });
  }
}

/** Return a shape as text. */
function dims(shape) {
  return shape.length === 1 ? `(${shape},)` : `(${shape.join(", ")})`;
}
