// Coordinate descent: one warp per row of W, one warp per tile of H. No atomics but the one that
// tells which block is last: the same bits every time.

// Memory of a warp: shared, or a place in `scratch` where it is not enough.
__device__ __forceinline__ REAL* memory_of(REAL* shared, REAL* scratch, row_t unit, int size) {
    if (scratch) return scratch + unit * size;
    return shared + (row_t)(threadIdx.x >> 5) * size;
}

// Entries of a row of B that a lane holds, and whether they fit its registers.
#define OWNED ((L * K + 31) / 32)
#define AHEAD (OWNED <= 16)

// One row of W: entries in each motif, then lag. What an entry changes is read from B while the one
// before it is worked out. inverse (M,): of the curvatures, zero where there is none.
__device__ double sweep_row(REAL* w, REAL* g, const REAL* B, const REAL* inverse, const REAL* l1,
                            const REAL* l2) {
    const int lane = threadIdx.x & 31, M = L * K;
    double squares = 0;
    REAL row[AHEAD ? OWNED : 1], next[AHEAD ? OWNED : 1];
    if constexpr (AHEAD)
#pragma unroll
        for (int r = 0; r < OWNED; r++) next[r] = lane + 32 * r < M ? B[lane + 32 * r] : (REAL)0;
    for (int k = 0; k < K; k++) {
        const REAL flat = l1[k], steep = l2[k];
        for (int p = k; p < M; p += K) {
            const int after = p + K < M ? p + K : k + 1 < K ? k + 1 : 0;
            if constexpr (AHEAD)
#pragma unroll
                for (int r = 0; r < OWNED; r++) {
                    row[r] = next[r];
                    next[r] = lane + 32 * r < M ? B[(row_t)after * M + lane + 32 * r] : (REAL)0;
                }
            const REAL old = w[p];
            REAL best = larger((REAL)0, old - (g[p] + flat + steep * old) * inverse[p]);
            if (!(inverse[p] > 0)) best = 0;
            const REAL d = best - old;
            if (d == 0) continue;  // the same in all lanes
            squares += (double)d * d;
            __syncwarp();
            if (lane == 0) w[p] = best;
            if constexpr (AHEAD) {
#pragma unroll
                for (int r = 0; r < OWNED; r++)
                    if (lane + 32 * r < M) g[lane + 32 * r] += d * row[r];
            } else {
                for (int i = lane; i < M; i += 32) g[i] += d * B[(row_t)p * M + i];
            }
            __syncwarp();
        }
    }
    return squares;
}

// One sweep over W (N, M), M = L·K, min ½w'Bw - p'w for each row; g = WB - P follows (changes W,
// g, moved (N,), first, flags). l1, l2 (K,).
extern "C" __global__ void sweep_W(REAL* W, REAL* g, const REAL* B, const REAL* l1, const REAL* l2,
                                   int N, int sweep, double shrink, double* moved, double* first,
                                   int* flags, REAL* scratch) {
    extern __shared__ double dynamic[];
    if (sweep > 0 && flags[0]) return;
    const int lane = threadIdx.x & 31, M = L * K;
    const row_t n = (row_t)blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5);
    if (n < N) {
        REAL* w = memory_of((REAL*)dynamic, scratch, n, 3 * M);
        for (int i = lane; i < M; i += 32) {
            const REAL curvature = B[(row_t)i * M + i] + l2[i % K];
            w[i] = W[n * M + i];
            w[M + i] = g[n * M + i];
            w[2 * M + i] = curvature > 0 ? 1 / curvature : (REAL)0;
        }
        __syncwarp();
        const double squares = sweep_row(w, w + M, B, w + 2 * M, l1, l2);
        for (int i = lane; i < M; i += 32) {
            W[n * M + i] = w[i];
            g[n * M + i] = w[M + i];
        }
        if (lane == 0) moved[n] = squares;
    }
    judge_sweep(moved, N, sweep, shrink, first, flags);
}

// Numbers that a lane holds in registers: of the taps of one motif, and of the taps shifted by up to
// three bins; whether they fit.
#define HELD ((TAPS + 31) / 32)
#define SPANNED ((TAPS + 3 * K + 31) / 32)
constexpr bool FIT = SPANNED <= (sizeof(REAL) == 4 ? 32 : 16);
constexpr bool CUT_FIT = HELD <= (sizeof(REAL) == 4 ? 16 : 8);
// Blocks of sweep_H that a multiprocessor's 64k registers are to be enough for.
constexpr int WANTED = (FIT ? 4 * SPANNED * (int)sizeof(REAL) / 4 : 32) + 64;
constexpr int BLOCKS = 512 / WANTED < 2 ? 2 : 512 / WANTED;
// Rows of the table of taps that are cut off, and numbers of one: zeros behind, for whole warps.
#define CUTS (L > 1 ? L - 1 : 1)
#define CUT_ROW (HELD * 32)

// Taps of a motif whose segment ends `left` bins after its start, for left = 1…L-1:
// (K, L-1, CUT_ROW), zeros behind the TAPS.
extern "C" __global__ void cut_off_taps(const REAL* A, const REAL* E, REAL* out) {
    for (row_t i = this_thread(); i < (row_t)K * CUTS * CUT_ROW; i += all_threads()) {
        const int p = (int)(i % CUT_ROW), at = (int)(i / CUT_ROW);
        const int k = at / CUTS, left = 1 + at % CUTS;
        out[i] = p < TAPS ? gram(A, E, k, p / K - (L - 1), p % K, left) : (REAL)0;
    }
}

// Entries (t, k) of one tile for t = begin…n: four together, whose slopes are dot products over the
// lanes, reduced together; what their own moves change is added as scalars. A number of H is read
// once for all four, which meet it with taps that are shifted instead.
// h: rows of H from L-1 before the first on, zeros behind them; c: rows of C. Changes h.
// CUT: the segment ends `left` bins after the tile's first, and cuts the motif off in all of these
// bins: each has taps of its own, from `cut` (see above), or from the Grams where that is null.
template <bool CUT>
__device__ double sweep_fours(REAL* h, const REAL* c, const REAL* A, const REAL* E, const REAL* cut,
                              REAL l1, REAL l2, int k, int begin, int n, int left) {
    const int lane = threadIdx.x & 31, i = lane >> 3;  // lanes 0-7 get bin t, 8-15 t + 1, …
    auto shifted = [=](int bins, int r) {
        const int place = lane + 32 * r - bins * K;
        return place >= 0 && place < TAPS ? A[k * TAPS + place] : (REAL)0;
    };
    // Row of the table that bin t has; of one behind the last bin any row does, it never moves.
    auto row_of = [=](int t) {
        const int after = left - t > 1 ? left - t : 1;
        return cut + ((row_t)k * CUTS + after - 1) * CUT_ROW;
    };
    auto without_table = [=](int t, int place) {
        if (left - t < 1 || place >= TAPS) return (REAL)0;
        return gram(A, E, k, place / K - (L - 1), place % K, left - t);
    };
    // Of the motif in four bins, the products that their own moves need: 0-3 of bin `to` with
    // itself, 4 of 1 with 0, 5-6 of 2 with 0 and 1, 7-9 of 3 with 0, 1 and 2. One for each lane.
    const int to = lane < 4 ? lane : lane < 5 ? 1 : lane < 7 ? 2 : 3;
    const int with = lane < 4 ? lane : lane < 5 ? 0 : lane < 7 ? lane - 5 : lane - 7;
    const int own_place = (L - 1 + with - to) * K + k;
    auto own = [=](int t) {
        if (lane > 9 || to - with >= L) return (REAL)0;
        const REAL* row = !CUT ? A + k * TAPS : cut ? row_of(t + to) : 0;
        const REAL found = row ? row[own_place] : without_table(t + to, own_place);
        if (lane > 3) return found;
        return found + l2 > 0 ? 1 / (found + l2) : (REAL)0;
    };
    constexpr bool READ_AHEAD = CUT ? CUT_FIT : FIT;
    constexpr int FEW = !READ_AHEAD ? 1 : CUT ? HELD : SPANNED;
    REAL kept[4][FEW], mine = 0;
    auto fetch = [&](int t) {
        mine = own(t);
        if constexpr (CUT && CUT_FIT) {
            if (cut)
#pragma unroll
                for (int bins = 0; bins < 4; bins++) {
                    const REAL* row = row_of(t + bins) + lane;
#pragma unroll
                    for (int r = 0; r < FEW; r++) kept[bins][r] = row[32 * r];
                }
        } else if constexpr (FIT && !CUT) {
#pragma unroll
            for (int r = 0; r < FEW; r++)
#pragma unroll
                for (int bins = 0; bins < 4; bins++) kept[bins][r] = shifted(bins, r);
        }
    };
    REAL v0, v1, v2, v3, a10, a20, a21, a30, a31, a32;
    auto spread = [&] {
        v0 = __shfl_sync(~0u, mine, 0);
        v1 = CUT ? __shfl_sync(~0u, mine, 1) : v0;
        v2 = CUT ? __shfl_sync(~0u, mine, 2) : v0;
        v3 = CUT ? __shfl_sync(~0u, mine, 3) : v0;
        a10 = __shfl_sync(~0u, mine, 4);
        a20 = __shfl_sync(~0u, mine, 5);
        a21 = CUT ? __shfl_sync(~0u, mine, 6) : a10;
        a30 = __shfl_sync(~0u, mine, 7);
        a31 = CUT ? __shfl_sync(~0u, mine, 8) : a20;
        a32 = CUT ? __shfl_sync(~0u, mine, 9) : a10;
    };
    auto best = [](REAL old, REAL slope, REAL inverse) {
        return inverse > 0 ? larger((REAL)0, old - slope * inverse) : (REAL)0;
    };
    double squares = 0;
    if (begin >= n) return squares;
    fetch(begin);
    if (!CUT) spread();
    REAL next = begin + i < n ? c[(begin + i) * K + k] : (REAL)0;
    for (int t = begin; t < n; t += 4) {
        const bool there = t + i < n;
        const REAL pull = next;
        next = t + 4 + i < n ? c[(t + 4 + i) * K + k] : (REAL)0;
        REAL s0 = 0, s1 = 0, s2 = 0, s3 = 0;
        const REAL* p = h + t * K + lane;
        if constexpr (CUT) {
            auto add = [&](int r, REAL w0, REAL w1, REAL w2, REAL w3) {
                s0 += w0 * p[32 * r];
                s1 += w1 * p[32 * r + K];
                s2 += w2 * p[32 * r + 2 * K];
                s3 += w3 * p[32 * r + 3 * K];
            };
            if (!cut) {
                for (int r = 0; r < HELD; r++) {
                    const int q = lane + 32 * r;
                    add(r, without_table(t, q), without_table(t + 1, q), without_table(t + 2, q),
                        without_table(t + 3, q));
                }
            } else if constexpr (CUT_FIT) {
#pragma unroll
                for (int r = 0; r < HELD; r++)
                    add(r, kept[0][r], kept[1][r], kept[2][r], kept[3][r]);
            } else {
                const REAL *w0 = row_of(t) + lane, *w1 = row_of(t + 1) + lane;
                const REAL *w2 = row_of(t + 2) + lane, *w3 = row_of(t + 3) + lane;
#pragma unroll 8
                for (int r = 0; r < HELD; r++)
                    add(r, w0[32 * r], w1[32 * r], w2[32 * r], w3[32 * r]);
            }
            spread();
            fetch(t + 4);  // these arrive while this four is worked out
        } else if constexpr (FIT) {
#pragma unroll
            for (int r = 0; r < SPANNED; r++) {
                const REAL value = p[32 * r];
                s0 += kept[0][r] * value;
                s1 += kept[1][r] * value;
                s2 += kept[2][r] * value;
                s3 += kept[3][r] * value;
            }
        } else {
#pragma unroll 4
            for (int r = 0; r < SPANNED; r++) {
                const REAL value = p[32 * r];
                s0 += shifted(0, r) * value;
                s1 += shifted(1, r) * value;
                s2 += shifted(2, r) * value;
                s3 += shifted(3, r) * value;
            }
        }
        const bool u = lane & 16, v = lane & 8;
        const REAL x = (u ? s2 : s0) + __shfl_xor_sync(~0u, u ? s0 : s2, 16);
        const REAL y = (u ? s3 : s1) + __shfl_xor_sync(~0u, u ? s1 : s3, 16);
        REAL z = (v ? y : x) + __shfl_xor_sync(~0u, v ? x : y, 8);
        z += __shfl_xor_sync(~0u, z, 4);
        z += __shfl_xor_sync(~0u, z, 2);
        z += __shfl_xor_sync(~0u, z, 1);
        REAL* place = h + (t + i + L - 1) * K + k;
        const REAL old = *place;
        const REAL slope = z - pull + l1 + l2 * old;
        const REAL h0 = __shfl_sync(~0u, old, 0), h1 = __shfl_sync(~0u, old, 8);
        const REAL h2 = __shfl_sync(~0u, old, 16), h3 = __shfl_sync(~0u, old, 24);
        s0 = __shfl_sync(~0u, slope, 0);
        s1 = __shfl_sync(~0u, slope, 8);
        s2 = __shfl_sync(~0u, slope, 16);
        s3 = __shfl_sync(~0u, slope, 24);
        const REAL n0 = best(h0, s0, v0), d0 = n0 - h0;
        const REAL n1 = best(h1, s1 + d0 * a10, v1), d1 = t + 1 < n ? n1 - h1 : 0;
        const REAL n2 = best(h2, s2 + d0 * a20 + d1 * a21, v2), d2 = t + 2 < n ? n2 - h2 : 0;
        const REAL n3 = best(h3, s3 + d0 * a30 + d1 * a31 + d2 * a32, v3);
        const REAL d3 = t + 3 < n ? n3 - h3 : 0;
        if (d0 == 0 && d1 == 0 && d2 == 0 && d3 == 0) continue;  // the same in all lanes
        squares += (double)d0 * d0 + (double)d1 * d1 + (double)d2 * d2 + (double)d3 * d3;
        __syncwarp();
        if ((lane & 7) == 0 && there) *place = i == 0 ? n0 : i == 1 ? n1 : i == 2 ? n2 : n3;
        __syncwarp();
    }
    return squares;
}

// One sweep over the interiors of all tiles (part 0) or their seams (part 1) (changes H, moved
// (2, tiles), first, flags). tiles (n, 7): begin, begin of the seam, end; start, end of the free
// activations and end of the segment; and one that is not used. rows: of the longest part. size:
// numbers of a warp's memory. decide: whether this is the last part of the sweep.
extern "C" __global__ __launch_bounds__(128, BLOCKS) void sweep_H(REAL* H, const REAL* C, const REAL* A, const REAL* E,
                                   const REAL* cut, const REAL* l1, const REAL* l2,
                                   const row_t* tiles,
                                   row_t n_tiles, int part, int decide, int rows, int size,
                                   int sweep, double shrink, double* moved, double* first,
                                   int* flags, REAL* scratch) {
    extern __shared__ double dynamic[];
    if (sweep > 0 && flags[0]) return;
    const int lane = threadIdx.x & 31;
    const row_t tile = (row_t)blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5);
    if (tile < n_tiles) {
        const row_t* at = tiles + tile * 7;
        const row_t start = at[3], stop_active = at[4], stop = at[5];
        const row_t a = part == 0 ? at[0] : at[1];
        const row_t b = part == 0 ? (at[1] < stop_active ? at[1] : stop_active) : at[2];
        const int n = b > a ? (int)(b - a) : 0;
        const row_t free_of_cuts = stop - L + 1 - a;
        const int uncut = free_of_cuts < 0 ? 0 : free_of_cuts < n ? (int)free_of_cuts : n;
        double squares = 0;
        if (n > 0) {
            REAL* h = memory_of((REAL*)dynamic, scratch, tile, size);
            const REAL* c = C + a * K;
            for (int i = lane; i < (rows + 2 * L + 1) * K + 32; i += 32) {
                const row_t t = a - (L - 1) + i / K;
                const bool inside = t >= start && t < stop && i < (n + 2 * L - 2) * K;
                h[i] = inside ? H[(a - (L - 1)) * K + i] : (REAL)0;
            }
            __syncwarp();
            for (int k = 0; k < K; k++) {
                const int left = (int)(stop - a);
                squares +=
                    sweep_fours<false>(h, c, A, E, cut, l1[k], l2[k], k, 0, uncut, left);
                squares +=
                    sweep_fours<true>(h, c, A, E, cut, l1[k], l2[k], k, uncut, n, left);
            }
            for (int i = lane; i < n * K; i += 32) H[a * K + i] = h[(L - 1) * K + i];
        }
        if (lane == 0) moved[part * n_tiles + tile] = squares;
    }
    if (decide) judge_sweep(moved, (part + 1) * n_tiles, sweep, shrink, first, flags);
}
