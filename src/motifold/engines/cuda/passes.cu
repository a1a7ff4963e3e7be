// Between H, X and the products of BLAS: windows of H, lags put back in their places, gradients.

// Rows of the matrix of shifted activations: out[i, lag, k] = H[t - lag, k], zero beyond the
// segment, for t = rows[i], or first + i where rows is null. A warp has eight rows: the place in a row
// is the same for all of them.
#define ROWS_OF_A_WARP 8
extern "C" __global__ void windows(const REAL* H, const unsigned short* age, const row_t* rows,
                                   row_t T, row_t first, row_t n, REAL* out) {
    H += this_start() * T * K;
    out += this_start() * n * (L * K);
    const row_t step = all_threads() / 32 * ROWS_OF_A_WARP;
    for (row_t begin = this_thread() / 32 * ROWS_OF_A_WARP; begin < n; begin += step) {
        const REAL* sources[ROWS_OF_A_WARP];
        int ages[ROWS_OF_A_WARP];
#pragma unroll
        for (int i = 0; i < ROWS_OF_A_WARP; i++) {
            const bool there = begin + i < n;
            const row_t t = !there ? first : rows ? rows[begin + i] : first + begin + i;
            sources[i] = H + t * K;
            ages[i] = there ? age[t] : -1;
        }
        REAL* target = out + begin * (L * K);
        for (int place = threadIdx.x & 31; place < L * K; place += 32) {
            const int lag = place / K;
            REAL found[ROWS_OF_A_WARP];
#pragma unroll
            for (int i = 0; i < ROWS_OF_A_WARP; i++)
                found[i] = lag <= ages[i] ? sources[i][place - lag * (2 * K)] : (REAL)0;
#pragma unroll
            for (int i = 0; i < ROWS_OF_A_WARP; i++)
                if (ages[i] >= 0) target[i * (L * K) + place] = found[i];
        }
    }
}

// C[t, k] += sum over lags of Y[t + lag, lag, k], Y being rows first to first + n of X·W.
extern "C" __global__ void add_lags(const REAL* Y, const unsigned short* left, row_t T, row_t first,
                                    row_t n, REAL* C) {
    Y += this_start() * n * (L * K);
    C += this_start() * T * K;
    const row_t begin = first >= L - 1 ? first - (L - 1) : 0;
    for (row_t i = this_thread(); i < (first + n - begin) * K; i += all_threads()) {
        const row_t t = begin + i / K;
        const int k = (int)(i % K), low = t < first ? (int)(first - t) : 0;
        const int high = (int)(first + n - t < left[t] ? first + n - t : left[t]);
        REAL sum = 0;
        for (int lag = low; lag < high; lag++) sum += Y[((t + lag - first) * L + lag) * K + k];
        C[t * K + k] += sum;
    }
}

// Rows of H that a thread has the products of at once, in long recordings: a tap is read once for
// all of them.
#define TOGETHER (K <= 8 ? 4 : K <= 16 ? 2 : 1)
// Numbers of a row of H in shared memory: an odd one, so that 32 rows lie in 32 banks.
#define ROW (K | 1)

// A*H - C, or A*H where C is null, for ROWS rows of each thread, with L-1 on either side in shared
// memory; rows whose windows leave the segment are left out.
template <int ROWS>
__device__ void gradient_inside(const REAL* H, const REAL* C, const REAL* A,
                                const unsigned short* age, const unsigned short* left, row_t T,
                                REAL* near, REAL* out) {
    const int threads = (int)blockDim.x, rows = threads * ROWS;
    const row_t first = (row_t)blockIdx.x * rows;
    const int low = first < L - 1 ? (int)(L - 1 - first) * K : 0, all = (rows + 2 * L - 2) * K;
    const row_t behind = (T - first + L - 1) * K;
    const int high = behind < all ? (int)behind : all;
    const REAL* source = H + (first - (L - 1)) * K;
    for (int i = threadIdx.x; i < all; i += 8 * threads) {
        REAL found[8];  // on their way at once
#pragma unroll
        for (int r = 0; r < 8; r++) {
            const int p = i + r * threads;
            found[r] = p >= low && p < high ? source[p] : (REAL)0;
        }
#pragma unroll
        for (int r = 0; r < 8; r++) {
            const int p = i + r * threads;
            if (p < all) near[p / K * ROW + p % K] = found[r];
        }
    }
    __syncthreads();
    REAL sums[ROWS][K];
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int k = 0; k < K; k++) sums[r][k] = 0;
    const REAL* mine = near + (int)threadIdx.x * ROW;
    for (int s = 0; s < WIDTH; s++)
#pragma unroll 4
        for (int j = 0; j < K; j++) {
            REAL h[ROWS];
#pragma unroll
            for (int r = 0; r < ROWS; r++) h[r] = mine[(r * threads + s) * ROW + j];
#pragma unroll
            for (int k = 0; k < K; k++) {
                const REAL tap = A[s * K + j + k * TAPS];
#pragma unroll
                for (int r = 0; r < ROWS; r++) sums[r][k] += tap * h[r];
            }
        }
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const row_t t = first + r * threads + threadIdx.x;
        if (t >= T || age[t] != L - 1 || left[t] != L) continue;
#pragma unroll
        for (int k = 0; k < K; k++) {
            const row_t at = t * K + k;
            out[at] = C ? sums[r][k] - C[at] : sums[r][k];
        }
    }
}

// A*H - C, or A*H where C is null. The first `staged` blocks have TOGETHER rows for each thread, or
// one where the recording is short. A warp of the other blocks has one of those that a segment cuts
// off, for one motif: they are listed in `cut_off` (n,), or are all the rows where that is null.
extern "C" __global__ void gradient(const REAL* H, const REAL* C, const REAL* A, const REAL* E,
                                    const unsigned short* age, const unsigned short* left, row_t T,
                                    const row_t* cut_off, row_t n, int staged, int together,
                                    REAL* out) {
    extern __shared__ double dynamic[];
    H += this_start() * T * K;
    if (C) C += this_start() * T * K;
    A += this_start() * K * TAPS;
    E += this_start() * (L * K) * (L * K);
    out += this_start() * T * K;
    if ((int)blockIdx.x < staged) {
        REAL* near = (REAL*)dynamic;
        if (together > 1)
            gradient_inside<TOGETHER>(H, C, A, age, left, T, near, out);
        else
            gradient_inside<1>(H, C, A, age, left, T, near, out);
        return;
    }
    const int lane = threadIdx.x & 31, warps = (int)blockDim.x >> 5;
    const row_t turn = (row_t)((int)blockIdx.x - staged) * warps + (threadIdx.x >> 5);
    if (turn >= n * K) return;
    const row_t t = cut_off ? cut_off[turn / K] : turn / K;
    const int k = (int)(turn % K), before = age[t], after = left[t];
    REAL sum = 0;
#pragma unroll 8
    for (int p = lane; p < TAPS; p += 32)
        if (p >= (L - 1 - before) * K && p < (L - 1 + after) * K)
            sum += gram(A, E, k, p / K - (L - 1), p % K, after) * H[(t - (L - 1)) * K + p];
    sum = warp_sum(sum);
    if (lane == 0) out[t * K + k] = C ? sum - C[t * K + k] : sum;
}

// Q*F: sums over the bins less than L away, within the segment.
extern "C" __global__ void smoothed(const REAL* F, const unsigned short* age,
                                    const unsigned short* left, row_t T, REAL* out) {
    for (row_t i = this_thread(); i < T * K; i += all_threads()) {
        const row_t t = i / K;
        double sum = 0;
        for (int s = -(int)age[t]; s < (int)left[t]; s++) sum += F[i + (row_t)s * K];
        out[i] = (REAL)sum;
    }
}

// S[p, q] = S[p, q] + S[p+1, q+1] in blocks of K × K, along each diagonal from its end (changes S,
// (L, K, L, K): blocks with q >= p are read, the others mirror them afterwards).
extern "C" __global__ void diagonal_sums(REAL* S) {
    S += this_start() * (L * K) * (L * K);
    for (row_t i = this_thread(); i < L * K * K; i += all_threads()) {
        const int d = (int)(i / (K * K)), k = (int)(i / K % K), j = (int)(i % K);
        REAL sum = 0;
        for (int last = L - 1 - d; last >= 0; last -= 8) {
            REAL read[8];  // on their way at once
#pragma unroll
            for (int r = 0; r < 8; r++) {
                const int p = last - r;
                read[r] = p >= 0 ? S[((p * K + k) * L + p + d) * K + j] : (REAL)0;
            }
#pragma unroll
            for (int r = 0; r < 8; r++) {
                const int p = last - r, q = p + d;
                if (p < 0) break;
                sum = read[r] + sum;
                S[((p * K + k) * L + q) * K + j] = sum;
                if (d > 0) S[((q * K + j) * L + p) * K + k] = sum;  // nobody reads it here
            }
        }
    }
}

// A (K, 2L-1, K) from E (L, K, L, K): the products of a motif with one d bins before or after it.
extern "C" __global__ void taps_of(const REAL* E, REAL* A) {
    E += this_start() * (L * K) * (L * K);
    A += this_start() * K * TAPS;
    for (int i = (int)this_thread(); i < L * K * K; i += (int)all_threads()) {
        const int k = i / (L * K), d = i / K % L, j = i % K;
        const REAL found = E[i];
        A[(k * WIDTH + L - 1 + d) * K + j] = found;
        if (d > 0) A[(j * WIDTH + L - 1 - d) * K + k] = found;
    }
}

// max(0, now + beta·(now - before)).
extern "C" __global__ void extrapolate(const REAL* now, const REAL* before, REAL beta, row_t n,
                                       REAL* out) {
    for (row_t i = this_thread(); i < n; i += all_threads())
        out[i] = larger((REAL)0, now[i] + beta * (now[i] - before[i]));
}
