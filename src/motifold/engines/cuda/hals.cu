// Coordinate descent: one warp per row of W, one warp per tile of H. No atomics but the one that
// tells which block is last: the same bits every time.

// Memory of a warp: shared, or a place in `scratch` where it is not enough.
__device__ __forceinline__ REAL* memory_of(REAL* shared, REAL* scratch, row_t unit, int size) {
    if (scratch) return scratch + unit * size;
    return shared + (row_t)(threadIdx.x >> 5) * size;
}

// Entries of a row of W that a lane holds, and whether they fit its registers.
#define OWNED ((L * K + 31) / 32)
#define AHEAD (OWNED <= 16)

// What entry p becomes is 0 where there is no curvature, whatever its slope: `from` and `inverse` are 0.
__device__ __forceinline__ REAL best_of(REAL from, REAL slope, REAL inverse) {
    return larger((REAL)0, from - slope * inverse);
}

// One row of W: entries in each motif, then lag, 32 lags at a time. Each tells the lanes behind it what
// it changes of their slopes; then all other entries are told what these changed.
// inverse (M,): of the curvatures, zero where there is none. Gives the square of how far this lane's
// entries moved.
__device__ double sweep_row(REAL* w, REAL* g, const REAL* B, const REAL* inverse, const REAL* l1,
                            const REAL* l2) {
    const int lane = threadIdx.x & 31, M = L * K;
    double squares = 0;
    for (int k = 0; k < K; k++)
        for (int first = 0; first < L; first += 32) {
            const int lags = L - first < 32 ? L - first : 32, p = (first + lane) * K + k;
            const bool there = lane < lags;
            const REAL* rows = B + (row_t)(first * K + k) * M;
            REAL meets[32];
#pragma unroll
            for (int i = 0; i < 32; i++)
                meets[i] = there && lane > i ? rows[(row_t)i * K * M + p] : (REAL)0;
            const REAL old = there ? w[p] : (REAL)0, inverted = there ? inverse[p] : (REAL)0;
            const REAL from = inverted > 0 ? old : (REAL)0;
            REAL slope = inverted > 0 ? g[p] + l1[k] + l2[k] * old : (REAL)0;
            if (!__ballot_sync(~0u, best_of(from, slope, inverted) != old)) continue;
#pragma unroll
            for (int block = 0; block < 32; block += 8)
                if (block < lags)
#pragma unroll
                    for (int i = block; i < block + 8; i++) {
                        const REAL d = best_of(from, slope, inverted) - old;
                        const REAL step = __shfl_sync(~0u, d, i);
                        if (lane > i) slope += step * meets[i];
                    }
            const REAL now = best_of(from, slope, inverted), moved = now - old;
            squares += (double)moved * moved;
            if (there) w[p] = now;
            if constexpr (AHEAD) {
                REAL told[OWNED];
#pragma unroll
                for (int r = 0; r < OWNED; r++) told[r] = 0;
#pragma unroll 4
                for (int i = 0; i < lags; i++) {
                    const REAL step = __shfl_sync(~0u, moved, i);
#pragma unroll
                    for (int r = 0; r < OWNED; r++)
                        if (lane + 32 * r < M)
                            told[r] += step * rows[(row_t)i * K * M + lane + 32 * r];
                }
#pragma unroll
                for (int r = 0; r < OWNED; r++)
                    if (lane + 32 * r < M) g[lane + 32 * r] += told[r];
            } else {
                for (int place = lane; place - lane < M; place += 32) {
                    REAL told = 0;
#pragma unroll 4
                    for (int i = 0; i < lags; i++) {
                        const REAL step = __shfl_sync(~0u, moved, i);
                        if (place < M) told += step * rows[(row_t)i * K * M + place];
                    }
                    if (place < M) g[place] += told;
                }
            }
            __syncwarp();
        }
    return squares;
}

// One sweep over W (N, M), M = L·K, min ½w'Bw - p'w for each row; g = WB - P follows (changes W,
// g, moved (blocks,), first, flags). l1, l2 (K,).
extern "C" __global__ void sweep_W(REAL* W, REAL* g, const REAL* B, const REAL* l1, const REAL* l2,
                                   int N, int sweep, double shrink, double* moved, double* first,
                                   int* flags, REAL* scratch) {
    extern __shared__ double dynamic[];
    const int lane = threadIdx.x & 31, M = L * K;
    W += this_start() * N * M;
    g += this_start() * N * M;
    B += this_start() * M * M;
    moved += this_start() * gridDim.x;
    first += this_start();
    flags += this_start() * 2;
    if (scratch) scratch += this_start() * N * 3 * M;
    if (sweep > 0 && flags[0]) return;
    const row_t n = (row_t)blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5);
    double squares = 0;
    if (n < N) {
        REAL* w = memory_of((REAL*)dynamic, scratch, n, 3 * M);
        for (int i = lane; i < M; i += 32) {
            const REAL curvature = B[(row_t)i * M + i] + l2[i % K];
            w[i] = W[n * M + i];
            w[M + i] = g[n * M + i];
            w[2 * M + i] = curvature > 0 ? 1 / curvature : (REAL)0;
        }
        __syncwarp();
        squares = sweep_row(w, w + M, B, w + 2 * M, l1, l2);
        for (int i = lane; i < M; i += 32) {
            W[n * M + i] = w[i];
            g[n * M + i] = w[M + i];
        }
    }
    const double together = block_sum(squares);
    if (threadIdx.x == 0) moved[blockIdx.x] = together;
    judge_sweep(moved, gridDim.x, sweep, shrink, first, flags);
}

// Numbers that a lane meets of the taps of one motif in one bin, and of those shifted by up to three
// bins; whether the latter fit its registers, beside the sums of 32 bins.
#define HELD ((TAPS + 31) / 32)
#define SPANNED ((TAPS + 3 * K + 31) / 32)
constexpr int WORDS = (int)sizeof(REAL) / 4;
constexpr bool FIT = 4 * SPANNED * WORDS <= 80;
// Blocks of sweep_H that a multiprocessor's 64k registers are to be enough for.
constexpr int WANTED = (FIT ? 4 * SPANNED * WORDS : 4 * WORDS) + 32 * WORDS + 48;
constexpr int BLOCKS = 512 / WANTED < 2 ? 2 : 512 / WANTED;
// Rows of the table of taps that are cut off, and numbers of one: zeros behind, for whole warps.
#define CUTS (L > 1 ? L - 1 : 1)
#define CUT_ROW (HELD * 32)

// Taps of a motif whose segment ends `left` bins after its start, for left = 1…L-1:
// (K, L-1, CUT_ROW), zeros behind the TAPS.
extern "C" __global__ void cut_off_taps(const REAL* A, const REAL* E, REAL* out) {
    A += this_start() * K * TAPS;
    E += this_start() * (L * K) * (L * K);
    out += this_start() * K * CUTS * CUT_ROW;
    for (row_t i = this_thread(); i < (row_t)K * CUTS * CUT_ROW; i += all_threads()) {
        const int p = (int)(i % CUT_ROW), at = (int)(i / CUT_ROW);
        const int k = at / CUTS, left = 1 + at % CUTS;
        out[i] = p < TAPS ? gram(A, E, k, p / K - (L - 1), p % K, left) : (REAL)0;
    }
}

// Entries (t, k) of one tile for t = begin…n, 32 bins at a time. First the slopes of all of them, at
// what H is by now: dot products over the lanes, of which each lane gets the one of its own bin. Then
// the bins in their order: each tells the lanes behind it what it changes of their slopes.
// h: rows of H from L-1 before the first on, zeros behind them; c: rows of C. Changes h.
// CUT: the segment ends `left` bins after the tile's first, and cuts the motif off in all of these
// bins: each has taps of its own, from `cut` (see above), or from the Grams where that is null.
// Gives the square of how far this lane's entries moved.
template <bool CUT>
__device__ double sweep_bins(REAL* h, const REAL* c, const REAL* A, const REAL* E, const REAL* cut,
                             REAL l1, REAL l2, int k, int begin, int n, int left) {
    double squares = 0;
    if (begin >= n) return squares;
    const int lane = threadIdx.x & 31;
    // Bins that are left to the end of the segment; of a bin behind the last any number will do.
    auto after = [=](int t) { return left - t > 1 ? left - t : 1; };
    auto row_of = [=](int t) { return cut + ((row_t)k * CUTS + after(t) - 1) * CUT_ROW; };
    // What the motif in bin t meets at a place of its taps.
    auto tap = [=](int t, int place) {
        if constexpr (!CUT) return A[k * TAPS + place];
        return cut ? row_of(t)[place] : gram(A, E, k, place / K - (L - 1), place % K, after(t));
    };
    // Taps of four bins: a number of H is read once for all of them, which meet it with shifted ones.
    auto shifted = [=](int bin, int r) {
        const int place = lane + 32 * r - bin * K;
        return place >= 0 && place < TAPS ? A[k * TAPS + place] : (REAL)0;
    };
    REAL kept[!CUT && FIT ? SPANNED : 1][4];
    if constexpr (!CUT && FIT)
#pragma unroll
        for (int r = 0; r < SPANNED; r++)
#pragma unroll
            for (int bin = 0; bin < 4; bin++) kept[r][bin] = shifted(bin, r);
    // How the motif meets itself, as many bins away as the lane says.
    const REAL own = lane < L ? A[k * TAPS + (L - 1 + lane) * K + k] : (REAL)0;
    for (int first = begin; first < n; first += 32) {
        const int t = first + lane, bins = n - first;
        const bool there = lane < bins;
        const REAL pull = there ? c[t * K + k] : (REAL)0;
        const REAL curvature = there ? tap(t, (L - 1) * K + k) + l2 : (REAL)0;
        REAL sums[32];
#pragma unroll
        for (int i = 0; i < 32; i++) sums[i] = 0;
        auto add = [&](int i, int r, const REAL (&taps)[4]) {
            const REAL value = h[(first + i) * K + lane + 32 * r];
#pragma unroll
            for (int bin = 0; bin < 4; bin++) sums[i + bin] += taps[bin] * value;
        };
        if constexpr (CUT) {
#pragma unroll
            for (int i = 0; i < 32; i += 8)
                if (i < bins && cut) {
                    const REAL* rows[8];
#pragma unroll
                    for (int bin = 0; bin < 8; bin++) rows[bin] = row_of(first + i + bin) + lane;
#pragma unroll 4
                    for (int r = 0; r < HELD; r++) {
                        REAL taps[8];  // on their way at once
#pragma unroll
                        for (int bin = 0; bin < 8; bin++) taps[bin] = rows[bin][32 * r];
#pragma unroll
                        for (int bin = 0; bin < 8; bin++)
                            if (i + bin < bins)
                                sums[i + bin] += taps[bin] * h[(first + i + bin) * K + lane + 32 * r];
                    }
                } else if (i < bins) {
                    for (int place = lane; place < TAPS; place += 32)
#pragma unroll
                        for (int bin = 0; bin < 8; bin++)
                            if (i + bin < bins)
                                sums[i + bin] +=
                                    tap(first + i + bin, place) * h[(first + i + bin) * K + place];
                }
        } else if constexpr (!FIT) {
            for (int r = 0; r < SPANNED; r++) {
                const REAL taps[4] = {shifted(0, r), shifted(1, r), shifted(2, r), shifted(3, r)};
#pragma unroll
                for (int i = 0; i < 32; i += 4)
                    if (i < bins) add(i, r, taps);
            }
        } else if (bins >= 32) {
#pragma unroll
            for (int r = 0; r < SPANNED; r++)
#pragma unroll
                for (int i = 0; i < 32; i += 4) add(i, r, kept[r]);
        } else {
#pragma unroll
            for (int i = 0; i < 32; i += 4)
                if (i < bins) {
#pragma unroll
                    for (int r = 0; r < SPANNED; r++) add(i, r, kept[r]);
                }
        }
        REAL* place = h + (t + L - 1) * K + k;
        const REAL old = there ? *place : (REAL)0;
        // An entry without curvature becomes zero, whatever its slope.
        const REAL inverse = curvature > 0 ? 1 / curvature : (REAL)0;
        const REAL from = curvature > 0 ? old : (REAL)0;
        REAL slope = own_sum<16>(sums) - pull + l1 + l2 * old;
        if (curvature <= 0) slope = 0;
        REAL couplings[CUT ? 32 : 1] = {};  // with the bins before
        if constexpr (CUT)
#pragma unroll
            for (int i = 0; i < 32; i++)
                if (lane > i && lane - i < L) couplings[i] = tap(t, (L - 1 - lane + i) * K + k);
        auto turn = [&](int mover) {
            const REAL step = __shfl_sync(~0u, best_of(from, slope, inverse) - old, mover);
            REAL meets = couplings[CUT ? mover : 0];
            if constexpr (!CUT) meets = __shfl_sync(~0u, own, (lane - mover) & 31);
            if (lane > mover) slope += step * meets;
        };
        if (__ballot_sync(~0u, best_of(from, slope, inverse) != old)) {
#pragma unroll
            for (int block = 0; block < 32; block += 8)
                if (block < bins)
#pragma unroll
                    for (int i = 0; i < 8; i++) turn(block + i);
        }
        const REAL now = best_of(from, slope, inverse), moved = now - old;
        squares += (double)moved * moved;
        __syncwarp();
        if (there) *place = now;
        __syncwarp();
    }
    return squares;
}

// One sweep over the interiors of all tiles (part 0) or their seams (part 1) (changes H, moved
// (2, blocks), first, flags). tiles (n, 7): begin, begin of the seam, end; start, end of the free
// activations and end of the segment; and one that is not used. rows: of the longest part. size:
// numbers of a warp's memory. decide: whether this is the last part of the sweep.
extern "C" __global__ __launch_bounds__(128, BLOCKS) void sweep_H(
    REAL* H, const REAL* C, const REAL* A, const REAL* E, const REAL* cut, const REAL* l1,
    const REAL* l2, const row_t* tiles, row_t T, row_t n_tiles, int part, int decide, int rows,
    int size, int sweep, double shrink, double* moved, double* first, int* flags, REAL* scratch) {
    extern __shared__ double dynamic[];
    H += this_start() * T * K;
    C += this_start() * T * K;
    A += this_start() * K * TAPS;
    E += this_start() * (L * K) * (L * K);
    if (cut) cut += this_start() * K * CUTS * CUT_ROW;
    moved += this_start() * 2 * gridDim.x;
    first += this_start();
    flags += this_start() * 2;
    if (scratch) scratch += this_start() * n_tiles * size;
    if (sweep > 0 && flags[0]) return;
    const int lane = threadIdx.x & 31;
    const row_t tile = (row_t)blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5);
    double squares = 0;
    if (tile < n_tiles) {
        const row_t* at = tiles + tile * 7;
        const row_t start = at[3], stop_active = at[4], stop = at[5];
        const row_t a = part == 0 ? at[0] : at[1];
        const row_t end = part == 0 ? at[1] : at[2], b = end < stop_active ? end : stop_active;
        const int n = b > a ? (int)(b - a) : 0;
        const row_t free_of_cuts = stop - L + 1 - a;
        const int uncut = free_of_cuts < 0 ? 0 : free_of_cuts < n ? (int)free_of_cuts : n;
        if (n > 0) {
            REAL* h = memory_of((REAL*)dynamic, scratch, tile, size);
            // Numbers of the segment around these bins: eight are on their way at once.
            const row_t origin = a - (L - 1), around = n + 2 * L - 2;
            const int low = origin < start ? (int)(start - origin) * K : 0;
            const int high = (int)(origin + around < stop ? around : stop - origin) * K;
            const REAL* source = H + origin * K;
            for (int i = lane; i < (rows + 2 * L + 1) * K + 32; i += 256) {
                REAL found[8];
#pragma unroll
                for (int j = 0; j < 8; j++) {
                    const int p = i + 32 * j;
                    found[j] = p >= low && p < high ? source[p] : (REAL)0;
                }
#pragma unroll
                for (int j = 0; j < 8; j++)
                    if (i + 32 * j < (rows + 2 * L + 1) * K + 32) h[i + 32 * j] = found[j];
            }
            __syncwarp();
            const REAL* c = C + a * K;
            const int left = (int)(stop - a);
            for (int k = 0; k < K; k++) {
                squares += sweep_bins<false>(h, c, A, E, cut, l1[k], l2[k], k, 0, uncut, left);
                squares += sweep_bins<true>(h, c, A, E, cut, l1[k], l2[k], k, uncut, n, left);
            }
            for (int i = lane; i < n * K; i += 32) H[a * K + i] = h[(L - 1) * K + i];
        }
    }
    const double together = block_sum(squares);
    if (threadIdx.x == 0) moved[part * (row_t)gridDim.x + blockIdx.x] = together;
    if (decide) judge_sweep(moved, (part + 1) * (row_t)gridDim.x, sweep, shrink, first, flags);
}
