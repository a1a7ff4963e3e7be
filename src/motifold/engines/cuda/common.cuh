// What all kernels share. REAL, K, L are defined before this text: a module is compiled for each.
//
// Rows of time are counted as long long: T·K may exceed 2^31. `age[t]` is min(bins since the start
// of t's segment, L-1), `left[t]` is min(bins to its end, t among them, L).

#ifndef SHARED
#define SHARED __shared__
#endif
#define WIDTH (2 * L - 1)
#define TAPS (WIDTH * K)

typedef long long row_t;

__device__ __forceinline__ REAL larger(REAL a, REAL b) { return a > b ? a : b; }
__device__ __forceinline__ REAL smaller(REAL a, REAL b) { return a < b ? a : b; }

__device__ __forceinline__ row_t this_thread() {
    return (row_t)blockIdx.x * blockDim.x + threadIdx.x;
}

// Which of several starts this is: they lie side by side, each array of one behind that of the last.
__device__ __forceinline__ row_t this_start() { return blockIdx.y; }

__device__ __forceinline__ row_t all_threads() { return (row_t)gridDim.x * blockDim.x; }

__device__ __forceinline__ REAL warp_sum(REAL value) {
    for (int step = 16; step > 0; step >>= 1) value += __shfl_xor_sync(~0u, value, step);
    return value;
}

// The sum over a block, known to all of its threads; always in the same order.
__device__ double block_sum(double value) {
    SHARED double parts[32];
    SHARED double total;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = (blockDim.x + 31) >> 5;
    for (int step = 16; step > 0; step >>= 1) value += __shfl_xor_sync(~0u, value, step);
    __syncthreads();
    if (lane == 0) parts[warp] = value;
    __syncthreads();
    if (threadIdx.x == 0) {
        double sum = 0;
        for (int i = 0; i < warps; i++) sum += parts[i];
        total = sum;
    }
    __syncthreads();
    return total;
}

// After a sweep: the block that ends last adds up how far entries moved, and says whether the next
// sweep is worth it. flags[0]: whether to stop; flags[1]: blocks that are done. first: of sweep 0.
__device__ void judge_sweep(const double* moved, row_t n, int sweep, double shrink, double* first,
                            int* flags) {
    SHARED int last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(&flags[1], 1) == (int)gridDim.x - 1;
    __syncthreads();
    if (!last) return;
    __threadfence();
    const volatile double* all = moved;
    const row_t step = blockDim.x;
    double sums[4] = {0, 0, 0, 0};  // four reads that do not wait for each other
    for (row_t i = threadIdx.x; i < n; i += 4 * step) {
        const double one = all[i], two = i + step < n ? all[i + step] : 0.0;
        const double three = i + 2 * step < n ? all[i + 2 * step] : 0.0;
        const double four = i + 3 * step < n ? all[i + 3 * step] : 0.0;
        sums[0] += one;
        sums[1] += two;
        sums[2] += three;
        sums[3] += four;
    }
    const double total = block_sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
    if (threadIdx.x == 0) {
        if (sweep == 0) first[0] = total;
        flags[0] = total <= shrink * shrink * first[0];
        flags[1] = 0;
    }
}

// The product of motif k placed at a row with motif j placed s rows later, whose row has `left`
// bins to the end of its segment: by A, unless both are cut off there; then by E.
__device__ __forceinline__ REAL gram(const REAL* A, const REAL* E, int k, int s, int j, int left) {
    const int q = s - left + L;  // place of the other among the last L starts, if it is positive
    if (left >= L || q <= 0) return A[(k * WIDTH + s + L - 1) * K + j];
    return q < L ? E[(((L - left) * K + k) * L + q) * K + j] : (REAL)0;
}

// Of 2·STEP sums that lie spread over the lanes, each lane gets that of its own number. (Templates, as
// the compiler does not unroll loops in such loops: the sums would go to memory.)
template <int STEP>
__device__ __forceinline__ REAL own_sum(REAL (&sums)[32]) {
    const bool upper = threadIdx.x & STEP;
#pragma unroll
    for (int i = 0; i < STEP; i++) {
        const REAL other = __shfl_xor_sync(~0u, upper ? sums[i] : sums[i + STEP], STEP);
        sums[i] = (upper ? sums[i + STEP] : sums[i]) + other;
    }
    if constexpr (STEP > 1) return own_sum<STEP / 2>(sums);
    return sums[0];
}
