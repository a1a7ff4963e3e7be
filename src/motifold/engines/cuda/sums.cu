// Sums of the certificate and the loss, in double precision, always in the same order.

// min(value, slope / curvature); where it is flat, only a positive slope counts.
__device__ __forceinline__ double part_of(double value, double slope, double curvature) {
    if (curvature > 0) return slope / curvature < value ? slope / curvature : value;
    return slope > 0 ? value : 0.0;
}

// Of each run of `step` rows, one block: <C, H>, <g, H>, the sums of min(H, g/diag)^2 and of H^2
// (these of free entries alone), and of each component those of H and of H^2. parts (runs, 4 + 2K).
extern "C" __global__ void sums_H(const REAL* H, const REAL* g, const REAL* C, const REAL* A,
                                  const REAL* E, const unsigned short* left, const double* l1,
                                  const double* l2, int n_free, int valid, row_t T, int step,
                                  double* parts) {
    H += this_start() * T * K;
    g += this_start() * T * K;
    C += this_start() * T * K;
    A += this_start() * K * TAPS;
    E += this_start() * (L * K) * (L * K);
    parts += this_start() * gridDim.x * (4 + 2 * K);
    const row_t first = (row_t)blockIdx.x * step;
    const row_t last = first + step < T ? first + step : T;
    double fitted = 0, slopes = 0, above = 0, below = 0;
    double* out = parts + (row_t)blockIdx.x * (4 + 2 * K);
    for (int k = 0; k < K; k++) {
        double mass = 0, power = 0;
        for (row_t t = first + threadIdx.x; t < last; t += blockDim.x) {
            const double h = H[t * K + k], slope = g[t * K + k];
            if (k < n_free && (!valid || left[t] >= L)) {
                const int p = L - (int)left[t];
                const double curvature = (p == 0 ? A[(k * WIDTH + L - 1) * K + k]
                                                 : E[((p * K + k) * L + p) * K + k]) + l2[k];
                const double part = part_of(h, slope + l1[k] + l2[k] * h, curvature);
                above += part * part;
                below += h * h;
            }
            fitted += C[t * K + k] * h;
            slopes += slope * h;
            mass += h;
            power += h * h;
        }
        mass = block_sum(mass);
        power = block_sum(power);
        if (threadIdx.x == 0) {
            out[4 + k] = mass;
            out[4 + K + k] = power;
        }
    }
    fitted = block_sum(fitted);
    slopes = block_sum(slopes);
    above = block_sum(above);
    below = block_sum(below);
    if (threadIdx.x == 0) {
        out[0] = fitted;
        out[1] = slopes;
        out[2] = above;
        out[3] = below;
    }
}

// Of each row of W (N, M), M = L·K, one block: the sums of min(W, g/B_pp)^2 and of W^2. parts (N, 2).
extern "C" __global__ void sums_W(const REAL* W, const REAL* g, const REAL* B, const double* l1,
                                  const double* l2, double* parts) {
    const int M = L * K;
    W += this_start() * gridDim.x * M;
    g += this_start() * gridDim.x * M;
    B += this_start() * M * M;
    parts += this_start() * gridDim.x * 2;
    double above = 0, below = 0;
    for (int p = threadIdx.x; p < M; p += blockDim.x) {
        const double w = W[(row_t)blockIdx.x * M + p], weight = l2[p % K];
        const double slope = g[(row_t)blockIdx.x * M + p] + l1[p % K] + weight * w;
        const double part = part_of(w, slope, B[(row_t)p * M + p] + weight);
        above += part * part;
        below += w * w;
    }
    above = block_sum(above);
    below = block_sum(below);
    if (threadIdx.x == 0) {
        parts[2 * blockIdx.x] = above;
        parts[2 * blockIdx.x + 1] = below;
    }
}

// Of each run of `step` rows, one block: the sums of H[t-L+1, k] * H[t-lag, j] over those of its rows
// t that have L-1 before them in their segment. parts (runs, K, L, K).
extern "C" __global__ void lag_gram(const REAL* H, const unsigned short* age, row_t T, int step,
                                    double* parts) {
    H += this_start() * T * K;
    parts += this_start() * gridDim.x * (K * L * K);
    const row_t first = (row_t)blockIdx.x * step;
    const row_t last = first + step < T ? first + step : T;
    for (int place = threadIdx.x; place < L * K; place += blockDim.x) {
        REAL sums[K];
#pragma unroll
        for (int k = 0; k < K; k++) sums[k] = 0;
#pragma unroll 4
        for (row_t t = first; t < last; t++) {
            if (age[t] != L - 1) continue;
            const REAL value = H[t * K + place - place / K * (2 * K)];
#pragma unroll
            for (int k = 0; k < K; k++) sums[k] += H[(t - (L - 1)) * K + k] * value;
        }
#pragma unroll
        for (int k = 0; k < K; k++)
            parts[((row_t)blockIdx.x * K + k) * (L * K) + place] = sums[k];
    }
}

// Of each column of parts (n, m), one block: its sum. out (m,).
extern "C" __global__ void column_sums(const double* parts, row_t n, int m, double* out) {
    parts += this_start() * n * m;
    out += this_start() * m;
    double sum = 0;
    for (row_t i = threadIdx.x; i < n; i += blockDim.x) sum += parts[i * m + blockIdx.x];
    sum = block_sum(sum);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

// Of each run of `step` numbers, one block: the sum of a·b. parts (runs,).
extern "C" __global__ void inner(const REAL* a, const REAL* b, row_t n, int step, double* parts) {
    const row_t first = (row_t)blockIdx.x * step;
    const row_t last = first + step < n ? first + step : n;
    double sum = 0;
    for (row_t i = first + threadIdx.x; i < last; i += blockDim.x) sum += (double)a[i] * b[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

// Of each run of `step` entries, one block: the sum of (X - fit)^2, of those that are observed where
// `observed` is given. parts (runs,).
extern "C" __global__ void distance(const REAL* X, const REAL* fit, const unsigned char* observed,
                                    row_t n, int step, double* parts) {
    const row_t first = (row_t)blockIdx.x * step;
    const row_t last = first + step < n ? first + step : n;
    double sum = 0;
    for (row_t i = first + threadIdx.x; i < last; i += blockDim.x) {
        const REAL rest = X[i] - fit[i];
        if (!observed || observed[i]) sum += (double)rest * rest;
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

// Entries that are not above the rounding of their motif's largest become zero, unless what they
// add to X^ is more than that (B_pp: the sums of squares of the activations, by lag). One block per
// component; W is (N, M), M = L·K (changes W).
extern "C" __global__ void drop_rounding(REAL* W, const REAL* B, REAL eps, int N) {
    SHARED REAL most[32][2];
    const int k = blockIdx.x, M = L * K, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    W += this_start() * N * M;
    B += this_start() * M * M;
    REAL largest = 0, added = 0;
    for (int i = threadIdx.x; i < N * L; i += blockDim.x) {
        const int p = i % L * K + k;
        const REAL w = W[(row_t)(i / L) * M + p];
        largest = larger(largest, w);
        added = larger(added, w * sqrt(B[(row_t)p * M + p]));
    }
    for (int step = 16; step > 0; step >>= 1) {
        largest = larger(largest, __shfl_xor_sync(~0u, largest, step));
        added = larger(added, __shfl_xor_sync(~0u, added, step));
    }
    if (lane == 0) {
        most[warp][0] = largest;
        most[warp][1] = added;
    }
    __syncthreads();
    for (int i = 0; i < (int)blockDim.x >> 5; i++) {
        largest = larger(largest, most[i][0]);
        added = larger(added, most[i][1]);
    }
    for (int i = threadIdx.x; i < N * L; i += blockDim.x) {
        const int p = i % L * K + k;
        REAL* w = W + (row_t)(i / L) * M + p;
        if (*w <= eps * largest && *w * sqrt(B[(row_t)p * M + p]) <= eps * added) *w = 0;
    }
}
