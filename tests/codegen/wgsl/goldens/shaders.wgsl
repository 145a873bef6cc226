struct Sizes {
    n: i32,
    n_high: u32,
    m: i32,
    m_high: u32,
    x_start: i32,
    y_start: i32,
    blocks_x: i32,
    blocks_y: i32,
    blocks_z: i32,
}

@group(0) @binding(0) var<uniform> sizes: Sizes;
@group(0) @binding(1) var<storage, read_write> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
var<workgroup> y_parts: array<f32, 256>;

@compute @workgroup_size(256, 1, 1)
fn main(@builtin(workgroup_id) tw_block: vec3<u32>, @builtin(local_invocation_id) tw_thread: vec3<u32>) {
    let blockIdx_x = i32(tw_block.z) / sizes.blocks_z * 65535i + i32(tw_block.x);
    if blockIdx_x >= sizes.blocks_x {
        return;
    }
    let threadIdx_x = i32(tw_thread.x);
    var y_part: array<f32, 1>;
    var y_part_block1: array<f32, 1>;
    var y_part_block2: array<f32, 1>;
    var y_part_block3: array<f32, 1>;
    var y_part_block4: array<f32, 1>;
    // sum_init_1
    y_part[0i] = 0.0f;
    // j_0
    for (var j_0: i32 = 0i; j_0 < min(min(sizes.m >> 8u, 32i), (sizes.m + 255i) >> 8u); j_0++) {
        // sum
        y_part[0i] = y_part[0i] + x[sizes.x_start + j_0 * 256i + threadIdx_x + (sizes.m * blockIdx_x)];
    }
    if 32i < min(sizes.m >> 8u, (sizes.m + 255i) >> 8u) {
        // j_0_block4
        for (var j_0_block4: i32 = 0i; j_0_block4 < ((min(sizes.m >> 8u, (sizes.m + 255i) >> 8u) + 1048543i) >> 20u); j_0_block4++) {
            // sum
            y_part_block1[0i] = 0.0f;
            // j_0_block3
            for (var j_0_block3: i32 = 0i; j_0_block3 < ((min(min(sizes.m >> 8u, (sizes.m + 255i) >> 8u) - j_0_block4 * 1048576i - 32i, 1048576i) + 32767i) >> 15u); j_0_block3++) {
                // sum
                y_part_block2[0i] = 0.0f;
                // j_0_block2
                for (var j_0_block2: i32 = 0i; j_0_block2 < ((min(min(min(sizes.m >> 8u, (sizes.m + 255i) >> 8u) - j_0_block4 * 1048576i - 32i, 1048576i) - j_0_block3 * 32768i, 32768i) + 1023i) >> 10u); j_0_block2++) {
                    // sum
                    y_part_block3[0i] = 0.0f;
                    // j_0_block1
                    for (var j_0_block1: i32 = 0i; j_0_block1 < ((min(min(min(min(sizes.m >> 8u, (sizes.m + 255i) >> 8u) - j_0_block4 * 1048576i - 32i, 1048576i) - j_0_block3 * 32768i, 32768i) - j_0_block2 * 1024i, 1024i) + 31i) >> 5u); j_0_block1++) {
                        // sum
                        y_part_block4[0i] = 0.0f;
                        // j_0
                        for (var j_0_1: i32 = 0i; j_0_1 < min(min(min(min(min(sizes.m >> 8u, (sizes.m + 255i) >> 8u) - j_0_block4 * 1048576i - 32i, 1048576i) - j_0_block3 * 32768i, 32768i) - j_0_block2 * 1024i, 1024i) - j_0_block1 * 32i, 32i); j_0_1++) {
                            // sum
                            y_part_block4[0i] = y_part_block4[0i] + x[sizes.x_start + j_0_1 * 256i + threadIdx_x + j_0_block4 * 268435456i + j_0_block3 * 8388608i + j_0_block2 * 262144i + j_0_block1 * 8192i + (sizes.m * blockIdx_x) + 8192i];
                        }
                        y_part_block3[0i] = y_part_block3[0i] + y_part_block4[0i];
                    }
                    y_part_block2[0i] = y_part_block2[0i] + y_part_block3[0i];
                }
                y_part_block1[0i] = y_part_block1[0i] + y_part_block2[0i];
            }
            y_part[0i] = y_part[0i] + y_part_block1[0i];
        }
    }
    // j_0
    for (var j_0_2: i32 = 0i; j_0_2 < (((sizes.m + 255i) >> 8u) - min(sizes.m >> 8u, (sizes.m + 255i) >> 8u)); j_0_2++) {
        if (j_0_2 * 256i + threadIdx_x + min(sizes.m >> 8u, (sizes.m + 255i) >> 8u) * 256i) < sizes.m {
            // sum
            y_part[0i] = y_part[0i] + x[sizes.x_start + j_0_2 * 256i + threadIdx_x + min(sizes.m >> 8u, (sizes.m + 255i) >> 8u) * 256i + (sizes.m * blockIdx_x)];
        }
    }
    // sum_init
    var part: f32 = y_part[0i];
    y_parts[threadIdx_x] = part;
    var total: f32 = 0.0f;
    workgroupBarrier();
    storageBarrier();
    for (var step_: i32 = 0i; step_ < 16i; step_++) {
        total = total + y_parts[step_ * 16i + (threadIdx_x & 15i)];
    }
    workgroupBarrier();
    storageBarrier();
    y_parts[threadIdx_x] = total;
    var total_1: f32 = 0.0f;
    workgroupBarrier();
    storageBarrier();
    for (var part_1: i32 = 0i; part_1 < 16i; part_1++) {
        total_1 = total_1 + y_parts[part_1];
    }
    y_part[0i] = total_1;
    if threadIdx_x == 0i {
        y[sizes.y_start + blockIdx_x] = y_part[0i];
    }
}

struct Sizes {
    n: i32,
    n_high: u32,
    x_start: i32,
    b_start: i32,
    y_start: i32,
    z_start: i32,
    blocks_x: i32,
    blocks_y: i32,
    blocks_z: i32,
}

@group(0) @binding(0) var<uniform> sizes: Sizes;
@group(0) @binding(1) var<storage, read_write> x: array<u32>;
@group(0) @binding(2) var<storage, read_write> b: array<u32>;
@group(0) @binding(3) var<storage, read_write> y: array<atomic<u32>>;
@group(0) @binding(4) var<storage, read_write> z: array<atomic<u32>>;

@compute @workgroup_size(256, 1, 1)
fn main(@builtin(workgroup_id) tw_block: vec3<u32>, @builtin(local_invocation_id) tw_thread: vec3<u32>) {
    let blockIdx_x = i32(tw_block.z) / sizes.blocks_z * 65535i + i32(tw_block.x);
    if blockIdx_x >= sizes.blocks_x {
        return;
    }
    let threadIdx_x = i32(tw_thread.x);
    if (blockIdx_x * 256i + 256i) <= sizes.n {
        // add
        let at = sizes.x_start * 4i + blockIdx_x * 256i + threadIdx_x;
        let v = extractBits(x[at >> 2u], u32(at & 3i) * 8u, 8u);
        let at_1 = sizes.y_start * 4i + blockIdx_x * 256i + threadIdx_x;
        let bits = u32(at_1 & 3i) * 8u;
        let field = (v + v) & 255u;
        atomicAnd(&y[at_1 >> 2u], ~(255u << bits));
        atomicOr(&y[at_1 >> 2u], (field & 255u) << bits);
        // invert
        let at_2 = sizes.b_start * 4i + blockIdx_x * 256i + threadIdx_x;
        let at_3 = sizes.z_start * 4i + blockIdx_x * 256i + threadIdx_x;
        let bits_1 = u32(at_3 & 3i) * 8u;
        let field_1 = select(0u, 1u, (extractBits(b[at_2 >> 2u], u32(at_2 & 3i) * 8u, 8u) != 0u) != (((blockIdx_x + threadIdx_x) % 3i) == 0i));
        atomicAnd(&z[at_3 >> 2u], ~(255u << bits_1));
        atomicOr(&z[at_3 >> 2u], (field_1 & 255u) << bits_1);
    } else {
        if (blockIdx_x * 256i + threadIdx_x) < sizes.n {
            // add
            let at_4 = sizes.x_start * 4i + blockIdx_x * 256i + threadIdx_x;
            let v_1 = extractBits(x[at_4 >> 2u], u32(at_4 & 3i) * 8u, 8u);
            let at_5 = sizes.y_start * 4i + blockIdx_x * 256i + threadIdx_x;
            let bits_2 = u32(at_5 & 3i) * 8u;
            let field_2 = (v_1 + v_1) & 255u;
            atomicAnd(&y[at_5 >> 2u], ~(255u << bits_2));
            atomicOr(&y[at_5 >> 2u], (field_2 & 255u) << bits_2);
        }
        if (blockIdx_x * 256i + threadIdx_x) < sizes.n {
            // invert
            let at_6 = sizes.b_start * 4i + blockIdx_x * 256i + threadIdx_x;
            let at_7 = sizes.z_start * 4i + blockIdx_x * 256i + threadIdx_x;
            let bits_3 = u32(at_7 & 3i) * 8u;
            let field_3 = select(0u, 1u, (extractBits(b[at_6 >> 2u], u32(at_6 & 3i) * 8u, 8u) != 0u) != (((blockIdx_x + threadIdx_x) % 3i) == 0i));
            atomicAnd(&z[at_7 >> 2u], ~(255u << bits_3));
            atomicOr(&z[at_7 >> 2u], (field_3 & 255u) << bits_3);
        }
    }
}

struct Sizes {
    n: i32,
    n_high: u32,
    k: i32,
    k_high: u32,
    x_start: i32,
    y_start: i32,
    blocks_x: i32,
    blocks_y: i32,
    blocks_z: i32,
}

@group(0) @binding(0) var<uniform> sizes: Sizes;
@group(0) @binding(1) var<storage, read_write> x: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;

fn tw_sub64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    return vec2<u32>(a.x - b.x, a.y - b.y - select(0u, 1u, a.x < b.x));
}

fn tw_add64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let low = a.x + b.x;
    return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));
}

fn tw_wide_product(a: u32, b: u32) -> vec2<u32> {
    let low = (a & 0xffffu) * (b & 0xffffu);
    let first = (a >> 16u) * (b & 0xffffu) + (low >> 16u);
    let second = (a & 0xffffu) * (b >> 16u) + (first & 0xffffu);
    let high = (a >> 16u) * (b >> 16u) + (first >> 16u) + (second >> 16u);
    return vec2<u32>(a * b, high);
}

fn tw_mul64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let low = tw_wide_product(a.x, b.x);
    return vec2<u32>(low.x, low.y + a.x * b.y + a.y * b.x);
}

fn tw_i64_of_i32(x: i32) -> vec2<u32> {
    return vec2<u32>(bitcast<u32>(x), bitcast<u32>(x >> 31u));
}

fn tw_floordiv_i32(a: i32, b: i32) -> i32 {
    if b == 0i {
        return 0i;
    }
    if b == -1i {
        return 0i - a;
    }
    let quotient = a / b;
    let remainder = a - quotient * b;
    return quotient - select(0i, 1i, remainder != 0i && (remainder ^ b) < 0i);
}

fn tw_mod_i32(a: i32, b: i32) -> i32 {
    if b == 0i || b == -1i {
        return 0i;
    }
    let remainder = a - (a / b) * b;
    return remainder + select(0i, b, remainder != 0i && (remainder ^ b) < 0i);
}

@compute @workgroup_size(256, 1, 1)
fn main(@builtin(workgroup_id) tw_block: vec3<u32>, @builtin(local_invocation_id) tw_thread: vec3<u32>) {
    let blockIdx_x = i32(tw_block.z) / sizes.blocks_z * 65535i + i32(tw_block.x);
    if blockIdx_x >= sizes.blocks_x {
        return;
    }
    let threadIdx_x = i32(tw_thread.x);
    if (blockIdx_x * 256i + 256i) <= (sizes.n * sizes.k) {
        // scale
        let at = sizes.x_start + (blockIdx_x * 256i + threadIdx_x) * 2i;
        let at_1 = sizes.y_start + (blockIdx_x * 256i + threadIdx_x) * 2i;
        let v = tw_sub64(tw_add64(tw_mul64(vec2<u32>(x[at], x[at + 1i]), vec2<u32>(3000000000u, 0u)), tw_mul64(tw_i64_of_i32(tw_floordiv_i32(blockIdx_x * 256i + threadIdx_x, sizes.k)), vec2<u32>(4000000000u, 0u))), tw_i64_of_i32(tw_mod_i32(blockIdx_x * 256i + threadIdx_x, sizes.k)));
        y[at_1] = v.x;
        y[at_1 + 1i] = v.y;
    } else {
        if (blockIdx_x * 256i + threadIdx_x) < (sizes.n * sizes.k) {
            // scale
            let at_2 = sizes.x_start + (blockIdx_x * 256i + threadIdx_x) * 2i;
            let at_3 = sizes.y_start + (blockIdx_x * 256i + threadIdx_x) * 2i;
            let v_1 = tw_sub64(tw_add64(tw_mul64(vec2<u32>(x[at_2], x[at_2 + 1i]), vec2<u32>(3000000000u, 0u)), tw_mul64(tw_i64_of_i32(tw_floordiv_i32(blockIdx_x * 256i + threadIdx_x, sizes.k)), vec2<u32>(4000000000u, 0u))), tw_i64_of_i32(tw_mod_i32(blockIdx_x * 256i + threadIdx_x, sizes.k)));
            y[at_3] = v_1.x;
            y[at_3 + 1i] = v_1.y;
        }
    }
}
