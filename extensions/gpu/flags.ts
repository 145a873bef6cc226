// Constants of the WebGPU standard, which have no types in TypeScript's library.

/** Bits of the usage of a buffer. */
export const USAGE = {
  MAP_READ: 0x1,
  COPY_SRC: 0x4,
  COPY_DST: 0x8,
  UNIFORM: 0x40,
  STORAGE: 0x80,
  QUERY_RESOLVE: 0x200,
} as const;

/** The mode of a mapping that reads. */
export const MAP_FOR_READING = 0x1;

/** The visibility of a binding in compute shaders. */
export const COMPUTE = 0x4;
