// Loader of an exported model for WebGPU, for pages and workers of browsers.
//
//   import { load } from "./@NAME@.mjs";
//   const model = await load(undefined, { onProgress });   // the files beside this module
//   const model = await load("https://host/model/");       // the files of a directory
//   const y = await model.run({ x: { data: new Float32Array(6), shape: [2, 3] } });
//   const data = await y.read();                           // copies the result from the device
//
// Arguments are { data, shape } with a typed array of the parameter's dtype, tensors on the device,
// or integers. A dtype without a typed array is passed as its bits, in Uint8Array or Uint16Array;
// elements of less than 8 bits are packed, element 0 in the low bits of a byte. Results are tensors
// on the device; several results are returned as an array. Arrays of written parameters are updated.
//
//   const x = model.upload("f32", { data, shape });        // stays on the device; x.free()
//   const state = model.newState({ batch: 4 });            // sizes of symbols, and initial arrays
//   const y = await model.main({ x }, state);              // without a state: model.state
//   const { data, shape } = await state.get("cache");      // state.set("cache", { data, shape })
//   state.reset(); state.free();
//
// After the device was lost, a call opens the model again; states and tensors are lost.

const NAME = "@NAME@";
const FUNCTIONS = @FUNCTIONS@;
const STATES = @STATES@;
const MESSAGES = @MESSAGES@;
const SHADERS = @SHADERS@; // by position: name, kernel, number of bindings, number of checks
const WEIGHTS = @WEIGHTS@; // name, offset in the file, and bytes, in the order of the file
const FEATURES = @FEATURES@; // required features, of the adapter and of the shading language
const BYTES = @BYTES@; // of the weights
const TENSOR = 56;
const ERROR = 512;
const RESULT = 32; // the offset of the tensor in a result
const DEVICE = 15; // the device type of WebGPU
const SLOT = 1024; // the bytes of the integers of a launch
const MOST_LAUNCHES = 64; // of a submission
const RECORD = 256; // the bytes of the record of the failed checks of a shader
const PART = 1 << 20; // weights are copied in parts of this size
const MOST_BYTES = 0xffffff00;
const CLOSED = "the model is closed";
const PREPARES = @PREPARES@; // the position of the function that computes constants, or -1
const MEMORY = 12; // error codes
const INTERNAL = 18;

// @VALUES@

/** Open the model. `url` is the directory of its files, by default that of this module. */
export async function load(url, options = {}) {
  const given = url === undefined ? new URL("./", import.meta.url) : directory(url);
  const session = await Session.open(given, options);
  return new Model(given, options, session);
}

function directory(url) {
  const base = globalThis.location?.href ?? import.meta.url;
  const found = new URL(url, base);
  if (!found.pathname.endsWith("/")) found.pathname += "/";
  return found;
}

// @DEVICE@

// @SESSION@

// @TENSORS@

// @MODEL@
