@group(0) @binding(5) var<storage, read_write> tw_ended: atomic<u32>;

fn tw_loop_ended() {
    atomicStore(&tw_ended, 7u);
}

struct Sizes {
    n: i32,
    n_high: u32,
    m: i32,
    m_high: u32,
    k_start: i32,
    x_start: i32,
    y_start: i32,
    blocks_x: i32,
    blocks_y: i32,
    blocks_z: i32,
}

@group(0) @binding(0) var<uniform> sizes: Sizes;
@group(0) @binding(1) var<storage, read_write> k: array<i32>;
@group(0) @binding(2) var<storage, read_write> x: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<atomic<u32>>;

@group(0) @binding(4) var<storage, read_write> tw_error: array<atomic<u32>, 5>;

fn tw_fail(check: u32, value: vec2<u32>, bound: vec2<u32>) {
    if atomicCompareExchangeWeak(&tw_error[0], 0u, check).exchanged {
        atomicStore(&tw_error[1], value.x);
        atomicStore(&tw_error[2], value.y);
        atomicStore(&tw_error[3], bound.x);
        atomicStore(&tw_error[4], bound.y);
    }
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

fn tw_i64_of_i32(x: i32) -> vec2<u32> {
    return vec2<u32>(bitcast<u32>(x), bitcast<u32>(x >> 31u));
}

@compute @workgroup_size(256, 1, 1)
fn main(@builtin(workgroup_id) tw_block: vec3<u32>, @builtin(local_invocation_id) tw_thread: vec3<u32>) {
    let blockIdx_x = i32(tw_block.z) / sizes.blocks_z * 65535i + i32(tw_block.x);
    if blockIdx_x >= sizes.blocks_x {
        return;
    }
    let threadIdx_x = i32(tw_thread.x);
    if (blockIdx_x * 256i + 256i) <= (sizes.n * sizes.m) {
        // add
        let at = k[sizes.k_start + tw_floordiv_i32(blockIdx_x * 256i + threadIdx_x, sizes.m)];
        if (at < 0i) || (4i <= at) {
            tw_fail(1u, tw_i64_of_i32(at), tw_i64_of_i32(select(4i, 0i, at < 0i)));
            return;
        }
        let at_1 = at;
        let v = x[sizes.x_start + blockIdx_x * 256i + threadIdx_x] * 0.5f;
        {
        var tw_whole_0 = false;
        loop {
            let old = atomicLoad(&y[sizes.y_start + at_1]);
            let before = bitcast<f32>(old);
            if atomicCompareExchangeWeak(&y[sizes.y_start + at_1], old, bitcast<u32>(before + v)).exchanged {
                tw_whole_0 = true;
                break;
            }
        }
        if !tw_whole_0 {
            tw_loop_ended();
        }
        }
    } else {
        if (blockIdx_x * 256i + threadIdx_x) < (sizes.n * sizes.m) {
            // add
            let at_2 = k[sizes.k_start + tw_floordiv_i32(blockIdx_x * 256i + threadIdx_x, sizes.m)];
            if (at_2 < 0i) || (4i <= at_2) {
                tw_fail(2u, tw_i64_of_i32(at_2), tw_i64_of_i32(select(4i, 0i, at_2 < 0i)));
                return;
            }
            let at_3 = at_2;
            let v_1 = x[sizes.x_start + blockIdx_x * 256i + threadIdx_x] * 0.5f;
            {
            var tw_whole_1 = false;
            loop {
                let old_1 = atomicLoad(&y[sizes.y_start + at_3]);
                let before_1 = bitcast<f32>(old_1);
                if atomicCompareExchangeWeak(&y[sizes.y_start + at_3], old_1, bitcast<u32>(before_1 + v_1)).exchanged {
                    tw_whole_1 = true;
                    break;
                }
            }
            if !tw_whole_1 {
                tw_loop_ended();
            }
            }
        }
    }
}

@group(0) @binding(5) var<storage, read_write> tw_ended: atomic<u32>;

fn tw_loop_ended() {
    atomicStore(&tw_ended, 7u);
}

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
@group(0) @binding(1) var<storage, read_write> x: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;
var<workgroup> y_parts: array<vec2<u32>, 256>;

fn tw_add64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let low = a.x + b.x;
    return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));
}

fn tw_lt_u64(a: vec2<u32>, b: vec2<u32>) -> bool {
    return a.y < b.y || (a.y == b.y && a.x < b.x);
}

fn tw_sub64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    return vec2<u32>(a.x - b.x, a.y - b.y - select(0u, 1u, a.x < b.x));
}

fn tw_divided_u64(a: vec2<u32>, b: vec2<u32>) -> vec4<u32> {
    if b.x == 0u && b.y == 0u {
        return vec4<u32>(0u, 0u, 0u, 0u);
    }
    if a.y == 0u && b.y == 0u {
        let small = a.x / b.x;
        return vec4<u32>(small, 0u, a.x - small * b.x, 0u);
    }
    var quotient = vec2<u32>(0u, 0u);
    var rest = vec2<u32>(0u, 0u);
    {
    var k = 0u;
    for (; k < 64u; k++) {
        let bit = select(a.x >> ((63u - k) & 31u), a.y >> ((31u - k) & 31u), k < 32u) & 1u;
        let carry = rest.y >> 31u;
        rest = vec2<u32>((rest.x << 1u) | bit, (rest.y << 1u) | (rest.x >> 31u));
        quotient = vec2<u32>(quotient.x << 1u, (quotient.y << 1u) | (quotient.x >> 31u));
        if carry == 1u || !tw_lt_u64(rest, b) {
            rest = tw_sub64(rest, b);
            quotient.x |= 1u;
        }
    }
    if k < 64u {
        tw_loop_ended();
    }
    }
    return vec4<u32>(quotient.x, quotient.y, rest.x, rest.y);
}

fn tw_neg64(a: vec2<u32>) -> vec2<u32> {
    return tw_sub64(vec2<u32>(0u, 0u), a);
}

fn tw_abs64(a: vec2<u32>) -> vec2<u32> {
    return select(a, tw_neg64(a), (a.y >> 31u) == 1u);
}

fn tw_floordiv_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let found = tw_divided_u64(tw_abs64(a), tw_abs64(b));
    let negative = ((a.y ^ b.y) >> 31u) == 1u;
    let quotient = select(found.xy, tw_neg64(found.xy), negative);
    let moves = negative && (found.z | found.w) != 0u;
    return select(quotient, tw_sub64(quotient, vec2<u32>(1u, 0u)), moves);
}

@compute @workgroup_size(256, 1, 1)
fn main(@builtin(workgroup_id) tw_block: vec3<u32>, @builtin(local_invocation_id) tw_thread: vec3<u32>) {
    let blockIdx_x = i32(tw_block.z) / sizes.blocks_z * 65535i + i32(tw_block.x);
    if blockIdx_x >= sizes.blocks_x {
        return;
    }
    let threadIdx_x = i32(tw_thread.x);
    var y_part: array<vec2<u32>, 1>;
    // sum_init_1
    y_part[0i] = vec2<u32>(0u, 0u);
    // j_0
    {
    var j_0: i32 = 0i;
    for (; j_0 < min(sizes.m >> 8u, (sizes.m + 255i) >> 8u); j_0++) {
        // sum
        let at = sizes.x_start + (j_0 * 256i + threadIdx_x + (sizes.m * blockIdx_x)) * 2i;
        let v = vec2<u32>(x[at], x[at + 1i]);
        y_part[0i] = tw_add64(y_part[0i], tw_floordiv_i64(v, tw_add64(v, vec2<u32>(3u, 0u))));
    }
    if j_0 < min(sizes.m >> 8u, (sizes.m + 255i) >> 8u) {
        tw_loop_ended();
    }
    }
    // j_0
    {
    var j_0_1: i32 = 0i;
    for (; j_0_1 < (((sizes.m + 255i) >> 8u) - min(sizes.m >> 8u, (sizes.m + 255i) >> 8u)); j_0_1++) {
        if (j_0_1 * 256i + threadIdx_x + min(sizes.m >> 8u, (sizes.m + 255i) >> 8u) * 256i) < sizes.m {
            // sum
            let at_1 = sizes.x_start + (j_0_1 * 256i + threadIdx_x + min(sizes.m >> 8u, (sizes.m + 255i) >> 8u) * 256i + (sizes.m * blockIdx_x)) * 2i;
            let v_1 = vec2<u32>(x[at_1], x[at_1 + 1i]);
            y_part[0i] = tw_add64(y_part[0i], tw_floordiv_i64(v_1, tw_add64(v_1, vec2<u32>(3u, 0u))));
        }
    }
    if j_0_1 < (((sizes.m + 255i) >> 8u) - min(sizes.m >> 8u, (sizes.m + 255i) >> 8u)) {
        tw_loop_ended();
    }
    }
    // sum_init
    var part: vec2<u32> = y_part[0i];
    y_parts[threadIdx_x] = part;
    var total: vec2<u32> = vec2<u32>(0u, 0u);
    workgroupBarrier();
    storageBarrier();
    {
    var step_: i32 = 0i;
    for (; step_ < 16i; step_++) {
        total = tw_add64(total, y_parts[step_ * 16i + (threadIdx_x & 15i)]);
    }
    if step_ < 16i {
        tw_loop_ended();
    }
    }
    workgroupBarrier();
    storageBarrier();
    y_parts[threadIdx_x] = total;
    var total_1: vec2<u32> = vec2<u32>(0u, 0u);
    workgroupBarrier();
    storageBarrier();
    {
    var part_1: i32 = 0i;
    for (; part_1 < 16i; part_1++) {
        total_1 = tw_add64(total_1, y_parts[part_1]);
    }
    if part_1 < 16i {
        tw_loop_ended();
    }
    }
    y_part[0i] = total_1;
    if threadIdx_x == 0i {
        let at_2 = sizes.y_start + blockIdx_x * 2i;
        let v_2 = y_part[0i];
        y[at_2] = v_2.x;
        y[at_2 + 1i] = v_2.y;
    }
}
