// The passes over X without matrices of windows, in single precision. A lane has a feature, a warp 32
// of them. What a product would read again and again stays in registers: of X as many bins as a motif
// is long, of motifs (or of P) all lags. X is read once, and activations that are zero cost nothing.
// That is sooner than cuBLAS, which gets half of the peak out of products of so few columns.

// Rows that are taken at once.
#define ROWS 8
// Bins of which a warp has the sums at once: one for each lane.
#define BINS 32
// Motifs that are taken at once: those whose lags, all together, fit registers.
#define FIT_LAGS (L < 100 ? 100 / L : 1)
#define GROUP (FIT_LAGS < K ? FIT_LAGS : K)
#define GROUPS ((K + GROUP - 1) / GROUP)
// Numbers of H that a warp has in shared memory, and registers in which they come.
#define GIVEN(motifs) (ROWS * (motifs))
#define HELD(motifs) ((GIVEN(motifs) + 31) / 32)
// Blocks whose registers a multiprocessor is to have room for.
#define PRODUCTS_BLOCKS (GROUP * L + L <= 120 ? 3 : 2)
#define CORRELATE_BLOCKS (L <= 20 ? 4 : L <= 36 ? 3 : 2)
#define RESIDUAL_BLOCKS (K * L + L <= 120 ? 3 : 2)

// What is asked for ahead is not looked at before it is needed: a choice between it and zero, say, would
// wait for it. So loads are plain wherever all that they ask for is there.

// Activations of rows from s on, of motifs k0 to k0 + MOTIFS, on their way to a warp: number j of them to
// held[j / 32] of lane j % 32. Zero before `low` and from `high` on.
template <int MOTIFS>
__device__ __forceinline__ void ask(REAL (&held)[HELD(MOTIFS)], const REAL* H, row_t s, row_t low,
                                    row_t high, int k0) {
    const int lane = threadIdx.x & 31;
    const bool whole = s >= low && s + ROWS <= high && k0 + MOTIFS <= K;
    const REAL* source = H + s * K + k0;
#pragma unroll
    for (int r = 0; r < HELD(MOTIFS); r++) {
        const int j = lane + 32 * r < GIVEN(MOTIFS) ? lane + 32 * r : GIVEN(MOTIFS) - 1;
        if (whole) {
            held[r] = source[j / MOTIFS * K + j % MOTIFS];
        } else {
            const row_t t = s + j / MOTIFS;
            const bool there = k0 + j % MOTIFS < K && t >= low && t < high;
            held[r] = there ? source[j / MOTIFS * K + j % MOTIFS] : (REAL)0;
        }
    }
}

// X at rows from t on, of one feature (the source is its t), zero before `low` and from `high` on.
__device__ __forceinline__ void ask_rows(REAL (&out)[ROWS], const REAL* source, int N, row_t t, row_t low,
                                         row_t high) {
    if (t >= low && t + ROWS <= high) {
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            out[i] = *source;
            source += N;
        }
    } else {
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            out[i] = t + i >= low && t + i < high ? *source : (REAL)0;
            source += N;
        }
    }
}

// A number of the row for each of the first ROWS lanes, of the last row behind the end.
__device__ __forceinline__ int ask_ends(const unsigned short* of_rows, row_t s, row_t end) {
    const int lane = threadIdx.x & 31;
    const row_t t = s + (lane < ROWS ? lane : ROWS - 1);
    return of_rows[t < end ? t : end - 1];
}

// The same put where all lanes can read them. Bits of `some`: which are not zero. Whether most are.
template <int MOTIFS>
__device__ __forceinline__ bool share(const REAL (&held)[HELD(MOTIFS)], REAL* shared,
                                      unsigned (&some)[HELD(MOTIFS)]) {
    const int lane = threadIdx.x & 31;
    int count = 0;
    __syncwarp();  // those before have been read
#pragma unroll
    for (int r = 0; r < HELD(MOTIFS); r++) {
        if (lane + 32 * r < GIVEN(MOTIFS)) shared[lane + 32 * r] = held[r];
        some[r] = __ballot_sync(~0u, lane + 32 * r < GIVEN(MOTIFS) && held[r] != 0);
        count += __popc(some[r]);
    }
    __syncwarp();
    return 2 * count > GIVEN(MOTIFS);
}

// Whether any of the activations of a row is not zero.
template <int MOTIFS>
__device__ __forceinline__ bool any_of(const unsigned (&some)[HELD(MOTIFS)], int row) {
    bool found = false;
#pragma unroll
    for (int g = 0; g < MOTIFS; g++) {
        const int j = row * MOTIFS + g;
        found = found || some[j / 32] >> (j & 31) & 1;
    }
    return found;
}

// Of each run of `step` starts of motifs, a warp for each 32 features and group of motifs: the sums of
// H[s, k] * X[s + lag] over the rows of X that there are: first to first + n. parts (runs, L*K, N).
extern "C" __global__ __launch_bounds__(128, PRODUCTS_BLOCKS) void lag_products(
    const REAL* X, const REAL* H, const unsigned short* left, row_t first, row_t n, int N, int runs,
    int step, REAL* parts) {
    const int lane = threadIdx.x & 31, chunks = (N + 31) / 32;
    const int unit = (int)blockIdx.x * ((int)blockDim.x >> 5) + (int)(threadIdx.x >> 5);
    const int chunk = unit % chunks, k0 = unit / chunks % GROUPS * GROUP, run = unit / chunks / GROUPS;
    if (run >= runs) return;
    SHARED __align__(16) REAL given[4][(GIVEN(GROUP) + 3) / 4 * 4];
    REAL* h = given[threadIdx.x >> 5];
    const bool mine = chunk * 32 + lane < N;
    const int feature = mine ? chunk * 32 + lane : N - 1;
    const row_t low = first > L - 1 ? first - (L - 1) : 0, high = first + n;
    const row_t begin = low + (row_t)run * step, end = begin + step < high ? begin + step : high;
    REAL sums[GROUP][L];
#pragma unroll
    for (int g = 0; g < GROUP; g++)
#pragma unroll
        for (int lag = 0; lag < L; lag++) sums[g][lag] = 0;
    REAL x[L - 1 + ROWS], next[ROWS], held[HELD(GROUP)];
#pragma unroll
    for (int i = 0; i < L - 1; i++) {
        const row_t t = begin + i;
        x[i] = t >= first && t < high ? X[(t - first) * N + feature] : (REAL)0;
    }
    const REAL* source = X + (begin + L - 1 - first) * N + feature;
    int after = L;
    if (begin < end) {
        ask_rows(next, source, N, begin + L - 1, first, high);
        ask<GROUP>(held, H, begin, begin, end, k0);
        after = ask_ends(left, begin, end);
    }
    for (row_t s = begin; s < end; s += ROWS) {
        unsigned some[HELD(GROUP)];
        const bool most = share<GROUP>(held, h, some);
        const int lags_of = after;
#pragma unroll
        for (int i = 0; i < ROWS; i++) x[L - 1 + i] = next[i];
        // On their way while these are added up.
        source += ROWS * N;
        ask_rows(next, source, N, s + ROWS + L - 1, first, high);
        ask<GROUP>(held, H, s + ROWS, begin, end, k0);
        after = ask_ends(left, s + ROWS, end);
        if (__ballot_sync(~0u, lags_of < L)) {  // a segment ends
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                const int lags = __shfl_sync(~0u, lags_of, i);
                if (any_of<GROUP>(some, i))
#pragma unroll
                    for (int lag = 0; lag < L; lag++) {
                        const REAL met = lag < lags ? x[i + lag] : (REAL)0;
#pragma unroll
                        for (int g = 0; g < GROUP; g++) sums[g][lag] += h[i * GROUP + g] * met;
                    }
            }
        } else if (most) {
#pragma unroll
            for (int i = 0; i < ROWS; i++)
#pragma unroll
                for (int g = 0; g < GROUP; g++) {
                    const REAL factor = h[i * GROUP + g];
#pragma unroll
                    for (int lag = 0; lag < L; lag++) sums[g][lag] += factor * x[i + lag];
                }
        } else {
#pragma unroll
            for (int i = 0; i < ROWS; i++)
                if (any_of<GROUP>(some, i))
#pragma unroll
                    for (int g = 0; g < GROUP; g++)
                        if (some[(i * GROUP + g) / 32] >> ((i * GROUP + g) & 31) & 1) {
                            const REAL factor = h[i * GROUP + g];
#pragma unroll
                            for (int lag = 0; lag < L; lag++) sums[g][lag] += factor * x[i + lag];
                        }
        }
#pragma unroll
        for (int i = 0; i < L - 1; i++) x[i] = x[i + ROWS];
    }
    if (!mine) return;
    REAL* out = parts + (row_t)run * (L * K) * N + feature;
#pragma unroll
    for (int g = 0; g < GROUP; g++)
        if (k0 + g < K)
#pragma unroll
            for (int lag = 0; lag < L; lag++) out[(row_t)(lag * K + k0 + g) * N] = sums[g][lag];
}

// P (N, L*K) from the parts (runs, L*K, N), in double precision; a block has 32 features of one column,
// its warps have some runs each.
extern "C" __global__ void sum_runs(const REAL* parts, int runs, int N, REAL* P) {
    SHARED double sums[32][33];
    const int lane = threadIdx.x & 31, warp = (int)(threadIdx.x >> 5), warps = (int)blockDim.x >> 5;
    const int p = (int)blockIdx.x % (L * K), feature = (int)blockIdx.x / (L * K) * 32 + lane;
    double sum = 0;
    if (feature < N)
#pragma unroll 8
        for (int run = warp; run < runs; run += warps)
            sum += parts[((row_t)run * (L * K) + p) * N + feature];
    sums[warp][lane] = sum;
    __syncthreads();
    if (warp > 0 || feature >= N) return;
    double total = 0;
    for (int i = 0; i < warps; i++) total += sums[i][lane];
    P[(row_t)feature * (L * K) + p] = (REAL)total;
}

// C[t, k] += sum over lags and features of X[t + lag] * W[k, lag], over the rows of X that there are. A
// block has 32 bins, each of its warps some of the features. V is W as (K, L, N).
extern "C" __global__ __launch_bounds__(128, CORRELATE_BLOCKS) void correlate(
    const REAL* X, const REAL* V, const unsigned short* left, row_t first, row_t n, int N, REAL* C) {
    SHARED REAL totals[4][K][BINS];
    const int lane = threadIdx.x & 31, warp = (int)(threadIdx.x >> 5), warps = (int)blockDim.x >> 5;
    const row_t low = first > L - 1 ? first - (L - 1) : 0, high = first + n;
    const row_t begin = low + (row_t)blockIdx.x * BINS;
    const int after = begin + lane < high ? left[begin + lane] : L;
    const bool cut = __ballot_sync(~0u, after < L);
    // Of the bins that are met, those that there are.
    const int from = begin < first ? (int)(first - begin) : 0;
    const int to = high - begin < BINS - 1 + L ? (int)(high - begin) : BINS - 1 + L;
    for (int k = 0; k < K; k++) totals[warp][k][lane] = 0;
    for (int chunk = warp; chunk < (N + 31) / 32; chunk += warps) {
        const bool mine = chunk * 32 + lane < N;
        const int feature = mine ? chunk * 32 + lane : N - 1;
        const REAL* source = X + (begin - first) * N + feature;
        REAL x[BINS - 1 + L];
        if (from == 0 && to == BINS - 1 + L) {
#pragma unroll
            for (int i = 0; i < BINS - 1 + L; i++) {
                x[i] = *source;
                source += N;
            }
        } else {
#pragma unroll
            for (int i = 0; i < BINS - 1 + L; i++) {
                x[i] = i >= from && i < to ? *source : (REAL)0;
                source += N;
            }
        }
        // A lane without a feature has another's, times zero.
        const REAL counts = mine ? (REAL)1 : (REAL)0;
        const REAL* v = V + feature;
        REAL ahead = *v;
        for (int k = 0; k < K; k++) {
            REAL sums[BINS];
#pragma unroll
            for (int i = 0; i < BINS; i++) sums[i] = 0;
            if (!cut) {
#pragma unroll
                for (int lag = 0; lag < L; lag++) {
                    const REAL w = ahead * counts;
                    if (lag < L - 1 || k < K - 1) v += N;
                    ahead = *v;
#pragma unroll
                    for (int i = 0; i < BINS; i++) sums[i] += w * x[i + lag];
                }
            } else {
#pragma unroll
                for (int lag = 0; lag < L; lag++) {
                    const REAL w = ahead * counts;
                    if (lag < L - 1 || k < K - 1) v += N;
                    ahead = *v;
                    const unsigned whole = __ballot_sync(~0u, lag < after);
#pragma unroll
                    for (int i = 0; i < BINS; i++) sums[i] += whole >> i & 1 ? w * x[i + lag] : (REAL)0;
                }
            }
            totals[warp][k][lane] += own_sum<BINS / 2>(sums);
        }
    }
    __syncthreads();
    for (int place = threadIdx.x; place < BINS * K; place += blockDim.x) {
        const row_t t = begin + place / K;
        REAL sum = 0;
        for (int i = 0; i < warps; i++) sum += totals[i][place % K][place / K];
        if (t < high) C[t * K + place % K] += sum;
    }
}

// Of each run of `step` rows, the sums of (X - X^)^2, of what is observed where that is given; a warp for
// each 32 features. All lags of all motifs are in registers. V is W as (K, L, N). parts (blocks,).
extern "C" __global__ __launch_bounds__(128, RESIDUAL_BLOCKS) void residual(
    const REAL* X, const unsigned char* observed, const REAL* V, const REAL* H,
    const unsigned short* age, row_t first, row_t n, int N, int runs, int step, double* parts) {
    const int lane = threadIdx.x & 31, chunks = (N + 31) / 32;
    const int unit = (int)blockIdx.x * ((int)blockDim.x >> 5) + (int)(threadIdx.x >> 5);
    SHARED __align__(16) REAL given[4][(GIVEN(K) + 3) / 4 * 4];
    REAL* h = given[threadIdx.x >> 5];
    const int run = unit / chunks;
    const bool mine = run < runs && unit % chunks * 32 + lane < N;
    const int feature = mine ? unit % chunks * 32 + lane : N - 1;
    const row_t from = first + (row_t)run * step, high = first + n;
    const row_t end = run >= runs ? from : from + step < high ? from + step : high;
    // Before the run: what its first rows have of motifs that began there.
    const row_t begin = run >= runs ? end : from > L - 1 ? from - (L - 1) : 0;
    REAL w[K][L];
#pragma unroll
    for (int k = 0; k < K; k++)
#pragma unroll
        for (int lag = 0; lag < L; lag++) w[k][lag] = V[(row_t)(k * L + lag) * N + feature];
    REAL fit[L - 1 + ROWS], x[ROWS], held[HELD(K)];
#pragma unroll
    for (int i = 0; i < L - 1 + ROWS; i++) fit[i] = 0;
    double total = 0;
    const REAL* source = X + (begin - first) * N + feature;
    int before = 1;
    if (begin < end) {
        ask<K>(held, H, begin, begin, end, 0);
        before = ask_ends(age, begin, end);
    }
    for (row_t s = begin; s < end; s += ROWS) {
        unsigned some[HELD(K)];
        const bool most = share<K>(held, h, some);
        const unsigned fresh = __ballot_sync(~0u, lane < ROWS && s + lane < end && before == 0);
        // On their way while X^ is added up.
        ask_rows(x, source, N, s, from, end);
        source += ROWS * N;
        ask<K>(held, H, s + ROWS, begin, end, 0);
        before = ask_ends(age, s + ROWS, end);
        if (most && !fresh) {
#pragma unroll
            for (int i = 0; i < ROWS; i++)
#pragma unroll
                for (int k = 0; k < K; k++) {
                    const REAL factor = h[i * K + k];
#pragma unroll
                    for (int lag = 0; lag < L; lag++) fit[i + lag] += factor * w[k][lag];
                }
        } else {
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                if (fresh >> i & 1)  // a segment begins: nothing of the last one is left
#pragma unroll
                    for (int lag = i; lag < L - 1 + ROWS; lag++) fit[lag] = 0;
                if (any_of<K>(some, i))
#pragma unroll
                    for (int k = 0; k < K; k++)
                        if (some[(i * K + k) / 32] >> ((i * K + k) & 31) & 1) {
                            const REAL factor = h[i * K + k];
#pragma unroll
                            for (int lag = 0; lag < L; lag++) fit[i + lag] += factor * w[k][lag];
                        }
            }
        }
        const int least = s < from ? (int)(from - s) : 0, there = end - s < ROWS ? (int)(end - s) : ROWS;
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            const REAL rest = x[i] - fit[i];
            bool counts = mine && i >= least && i < there;
            if (observed && counts) counts = observed[(s + i - first) * N + feature];
            if (counts) total += (double)rest * rest;
        }
#pragma unroll
        for (int i = 0; i < L - 1; i++) fit[i] = fit[i + ROWS];
#pragma unroll
        for (int i = L - 1; i < L - 1 + ROWS; i++) fit[i] = 0;
    }
    total = block_sum(total);
    if (threadIdx.x == 0) parts[blockIdx.x] = total;
}
