// Losses other than squared error: ratios of X to X^, and the divergence.

// Of a block of n entries: u = fit + floor; fit becomes x·u^(beta-2), second u^(beta-1) (both zero
// where `observed`, if it is not null, is), and of each run of `step` entries the divergence is
// parts[run]. second may be null for beta = 1: it would be one everywhere.
extern "C" __global__ void ratios(const REAL* X, REAL* fit, REAL* second,
                                  const unsigned char* observed, REAL scale, REAL floor_,
                                  REAL beta, row_t n, int step, double* parts) {
    const row_t first = (row_t)blockIdx.x * step;
    const row_t last = first + step < n ? first + step : n;
    double sum = 0;
    for (row_t i = first + threadIdx.x; i < last; i += blockDim.x) {
        if (observed && !observed[i]) {
            fit[i] = 0;
            if (second) second[i] = 0;
            continue;
        }
        const REAL x = scale * X[i], u = fit[i] + floor_, ratio = x / u;
        if (beta == 1) {
            sum += (double)((x > 0 ? x * log(ratio) : (REAL)0) + (u - x));
            fit[i] = ratio;
            if (second) second[i] = 1;
        } else if (beta == 0) {
            sum += (double)((ratio - 1) - log(ratio));
            fit[i] = ratio / u;
            second[i] = 1 / u;
        } else {
            const REAL power = pow(u, beta - 1);
            const REAL own = x > 0 || beta > 0 ? pow(x, beta) : (REAL)0;
            sum += (double)((own + (beta - 1) * u * power - beta * x * power) /
                            (beta * (beta - 1)));
            fit[i] = ratio * power;
            second[i] = power;
        }
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}
