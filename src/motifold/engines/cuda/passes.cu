// Between H, X and the products of BLAS: windows of H, lags put back in their places, gradients.

// Rows of the matrix of shifted activations: out[i, lag, k] = H[t - lag, k], zero beyond the
// segment, for t = rows[i], or first + i where rows is null.
extern "C" __global__ void windows(const REAL* H, const unsigned short* age, const row_t* rows,
                                   row_t first, row_t n, REAL* out) {
    for (row_t i = this_thread(); i < n * (L * K); i += all_threads()) {
        const row_t at = i / (L * K), t = rows ? rows[at] : first + at;
        const int place = (int)(i - at * (L * K)), lag = place / K, k = place - lag * K;
        out[i] = lag <= age[t] ? H[(t - lag) * K + k] : (REAL)0;
    }
}

// C[t, k] += sum over lags of Y[t + lag, lag, k], Y being rows first to first + n of X·W.
extern "C" __global__ void add_lags(const REAL* Y, const unsigned short* left, row_t first,
                                    row_t n, REAL* C) {
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

// A*H - C, or A*H where C is null.
extern "C" __global__ void gradient(const REAL* H, const REAL* C, const REAL* A, const REAL* E,
                                    const unsigned short* age, const unsigned short* left, row_t T,
                                    REAL* out) {
    for (row_t i = this_thread(); i < T * K; i += all_threads()) {
        const row_t t = i / K;
        const int k = (int)(i - t * K), before = age[t], after = left[t];
        REAL sum = 0;
        if (after >= L) {
            const REAL* taps = A + (k * WIDTH + L - 1 - before) * K;
            const REAL* rows = H + (t - before) * K;
            for (int p = 0; p < (before + L) * K; p++) sum += taps[p] * rows[p];
        } else {
            for (int s = -before; s < after; s++)
                for (int j = 0; j < K; j++)
                    sum += gram(A, E, k, s, j, after) * H[(t + s) * K + j];
        }
        out[i] = C ? sum - C[i] : sum;
    }
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
    for (row_t i = this_thread(); i < L * K * K; i += all_threads()) {
        const int d = (int)(i / (K * K)), k = (int)(i / K % K), j = (int)(i % K);
        REAL sum = 0;
        for (int p = L - 1 - d; p >= 0; p--) {
            const int q = p + d;
            REAL* entry = S + ((p * K + k) * L + q) * K + j;
            sum = *entry + sum;
            *entry = sum;
            if (d > 0) S[((q * K + j) * L + p) * K + k] = sum;  // nobody reads it here
        }
    }
}

// max(0, now + beta·(now - before)).
extern "C" __global__ void extrapolate(const REAL* now, const REAL* before, REAL beta, row_t n,
                                       REAL* out) {
    for (row_t i = this_thread(); i < n; i += all_threads())
        out[i] = larger((REAL)0, now[i] + beta * (now[i] - before[i]));
}
