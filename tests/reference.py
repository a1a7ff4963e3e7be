"""The naive oracle: convolutive NMF written from its definition, slow and obvious.

Shapes everywhere: X (T, N), H (T, K), W (N, L, K), lags from zero; `lengths` are the rows of each
segment of the stacked X and H (default: one segment). Penalties are keywords `l1_W, l2_W, l1_H,
l2_H`, each a scalar or one number per component. Imports nothing of the package it checks.
"""

import itertools

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import linear_sum_assignment, nnls


def segments(T, lengths=None):
    """Return the (start, stop) rows of every segment."""
    lengths = [T] if lengths is None else [int(n) for n in lengths]
    assert sum(lengths) == T, "lengths must add up to T"
    stops = list(itertools.accumulate(lengths))
    return [(stop - n, stop) for n, stop in zip(lengths, stops, strict=True)]


def reconstruct(W, H, lengths=None):
    """Return Xhat (T, N): Xhat[t] = sum over lags of W[:, lag] H[t - lag], within each segment."""
    N, L, _ = W.shape
    Xhat = np.zeros((len(H), N))
    for start, stop in segments(len(H), lengths):
        for t in range(start, stop):
            for lag in range(L):
                if t - lag >= start:
                    Xhat[t] += W[:, lag, :] @ H[t - lag]
    return Xhat


def residual(X, W, H, lengths=None):
    """Return X - Xhat (T, N)."""
    return np.asarray(X, float) - reconstruct(W, H, lengths)


def shifted(h, lag, lengths=None):
    """Return a copy of h (T,) delayed by `lag` bins, zeros coming in at each segment's start."""
    out = np.zeros(len(h))
    for start, stop in segments(len(h), lengths):
        for t in range(start + lag, stop):
            out[t] = h[t - lag]
    return out


def placed(W, k, t, T, lengths=None):
    """Return motif k started at bin t: its rows of X, and its samples there (cut at the end)."""
    end = next(stop for start, stop in segments(T, lengths) if start <= t < stop)
    stop = min(t + W.shape[1], end)
    return slice(t, stop), W[:, : stop - t, k].T


def allowed(T, L, lengths=None, boundary="zero"):
    """Return where an activation may be nonzero (T,); "valid": where the whole motif fits."""
    assert boundary in ("zero", "valid")
    mask = np.zeros(T, bool)
    for start, stop in segments(T, lengths):
        for t in range(start, stop):
            mask[t] = boundary == "zero" or t + L <= stop
    return mask


def penalties(K, l1_W=0.0, l2_W=0.0, l1_H=0.0, l2_H=0.0):
    """Return the four penalties as (K,) arrays."""
    return [np.broadcast_to(np.asarray(p, float), (K,)) for p in (l1_W, l2_W, l1_H, l2_H)]


def objective(X, W, H, lengths=None, boundary="zero", **penalty):
    """Return J = 1/2 |X - Xhat|^2 + l1_W sum W + l2_W/2 sum W^2 + the same for H."""
    return 0.5 * np.sum(residual(X, W, H, lengths) ** 2) + penalty_on_entries(W, H, **penalty)


def penalty_on_entries(W, H, **penalty):
    """Return what `objective` adds to the squared error."""
    l1_W, l2_W, l1_H, l2_H = penalties(H.shape[1], **penalty)
    of_W = np.sum(l1_W * W) + 0.5 * np.sum(l2_W * W**2)
    return of_W + np.sum(l1_H * H) + 0.5 * np.sum(l2_H * H**2)


def overlap(F, L, lengths=None):
    """Return Q*F (T, K): each bin has the sum over the bins less than L away in its segment."""
    out = np.zeros(F.shape)
    for start, stop in segments(len(F), lengths):
        for t in range(start, stop):
            out[t] = F[max(start, t - L + 1) : min(stop, t + L)].sum(axis=0)
    return out


def full_objective(X, W, H, lengths=None, boundary="zero", observed=None, **penalty):
    """Return J of the observed entries with all penalties, also those between components."""
    observed = np.ones(X.shape, bool) if observed is None else observed
    left = np.where(observed, residual(X, W, H, lengths), 0.0)
    J = 0.5 * np.sum(left**2)
    return J + full_penalty(X, W, H, lengths, boundary, observed, **penalty)


def full_penalty(X, W, H, lengths=None, boundary="zero", observed=None, **penalty):
    """Return all penalties, for any loss.

    Those on entries, and x_ortho sum_{i!=j} <W_i * X, Q*H_j> over the bins where a motif may start,
    X being zero where it is not observed; ortho_H/2 sum_{i!=j} <Q*H_i, H_j>; ortho_W/2 sum_{i!=j}
    of the inner products of motifs summed over lags.
    """
    coupling = {name: penalty.pop(name, 0.0) for name in ("x_ortho", "ortho_H", "ortho_W")}
    total = penalty_on_entries(W, H, **penalty)
    X = X if observed is None else np.where(observed, X, 0.0)
    free = allowed(len(H), W.shape[1], lengths, boundary)
    C, Q = correlate_H(X, W, lengths), overlap(H, W.shape[1], lengths)
    profile = W.sum(axis=1)
    for i, j in itertools.permutations(range(H.shape[1]), 2):
        total += coupling["x_ortho"] * np.sum(C[free, i] * Q[free, j])
        total += 0.5 * coupling["ortho_H"] * np.sum(Q[:, i] * H[:, j])
        total += 0.5 * coupling["ortho_W"] * np.sum(profile[:, i] * profile[:, j])
    return total


def beta_divergence(x, y, beta):
    """Return d_beta(x | y), entry by entry: Fevotte and Idier 2011, equation 3."""
    x, y = np.broadcast_arrays(np.asarray(x, float), np.asarray(y, float))
    if beta == 1:
        return np.where(x > 0, x * np.log(np.where(x > 0, x, 1) / y), 0) - x + y
    if beta == 0:
        return x / y - np.log(x / y) - 1
    power = np.where(x > 0, x, 0 if beta > 0 else np.nan) ** beta
    return (power + (beta - 1) * y**beta - beta * x * y ** (beta - 1)) / (beta * (beta - 1))


def beta_objective(
    X, W, H, beta, lengths=None, boundary="zero", observed=None, floor=0.0, **penalty
):
    """Return J with the beta-divergence of X from Xhat + floor over observed entries."""
    observed = np.ones(X.shape, bool) if observed is None else observed
    fit = reconstruct(W, H, lengths) + floor
    J = np.sum(beta_divergence(X[observed], fit[observed], beta))
    return J + full_penalty(X, W, H, lengths, boundary, observed, **penalty)


def beta_ratios(X, W, H, beta, lengths=None, observed=None, floor=0.0):
    """Return X u^(beta-2) and u^(beta-1) with u = Xhat + floor, zero where X is not observed."""
    observed = np.ones(X.shape, bool) if observed is None else observed
    fit = reconstruct(W, H, lengths) + floor
    return np.where(observed, X * fit ** (beta - 2), 0), np.where(observed, fit ** (beta - 1), 0)


def relative_loss(X, W, H, lengths=None, boundary="zero"):
    """Return |X - Xhat| / |X|."""
    return np.linalg.norm(residual(X, W, H, lengths)) / np.linalg.norm(X)


def power_shares(X, W, H, lengths=None, boundary="zero"):
    """Return per component (K,) the share of |X|^2 that it explains alone, at least zero."""
    shares = []
    for k in range(H.shape[1]):
        Xk = reconstruct(W[:, :, [k]], H[:, [k]], lengths)
        shares.append(max(0.0, np.sum(2 * X * Xk - Xk**2) / np.sum(np.square(X, dtype=float))))
    return np.array(shares)


def w_design(H, L, lengths=None):
    """Return Htilde (T, L*K) with Xhat = Htilde W~^T; column lag*K + k is H[:, k] delayed."""
    T, K = H.shape
    design = np.zeros((T, L * K))
    for lag, k in np.ndindex(L, K):
        design[:, lag * K + k] = shifted(H[:, k], lag, lengths)
    return design


def w_statistics(X, H, L, lengths=None):
    """Return P (N, L, K) = X^T Htilde and the Gram B (L*K, L*K) = Htilde^T Htilde."""
    design = w_design(H, L, lengths)
    return correlate_W(X, H, L, lengths), design.T @ design


def h_design(W, lengths):
    """Return V (T*N, T*K) with Xhat.ravel() = V @ H.ravel(); a column is one placed motif."""
    (N, _, K), T = W.shape, sum(lengths)
    V = np.zeros((T, N, T, K))
    for t, k in np.ndindex(T, K):
        rows, motif = placed(W, k, t, T, lengths)
        V[rows, :, t, k] = motif
    return V.reshape(T * N, T * K)


def h_statistics(X, W, lengths=None):
    """Return C (T, K) = V^T x and the full Gram V^T V (T, K, T, K)."""
    T, K = len(X), W.shape[2]
    V = h_design(W, [T] if lengths is None else lengths)
    return (V.T @ np.ravel(X)).reshape(T, K), (V.T @ V).reshape(T, K, T, K)


def correlate_W(R, H, L, lengths=None):
    """Return the inner products (N, L, K) of the features of R with every shifted activation."""
    out = np.zeros((R.shape[1], L, H.shape[1]))
    for lag, k in np.ndindex(L, H.shape[1]):
        out[:, lag, k] = R.T @ shifted(H[:, k], lag, lengths)
    return out


def correlate_H(R, W, lengths=None):
    """Return the inner products (T, K) of R with every motif placed at every bin."""
    out = np.zeros((len(R), W.shape[2]))
    for t, k in np.ndindex(out.shape):
        rows, motif = placed(W, k, t, len(R), lengths)
        out[t, k] = np.sum(R[rows] * motif)
    return out


def gradient_W(X, W, H, lengths=None, boundary="zero", **penalty):
    """Return dJ/dW (N, L, K), penalties included."""
    l1, l2, _, _ = penalties(H.shape[1], **penalty)
    return -correlate_W(residual(X, W, H, lengths), H, W.shape[1], lengths) + l1 + l2 * W


def gradient_H(X, W, H, lengths=None, boundary="zero", **penalty):
    """Return dJ/dH (T, K), penalties included (also where the boundary holds H at zero)."""
    _, _, l1, l2 = penalties(H.shape[1], **penalty)
    return -correlate_H(residual(X, W, H, lengths), W, lengths) + l1 + l2 * H


def finite_difference(f, x, eps=1e-5):
    """Return the gradient of the scalar function f at the array x by central differences."""
    grad = np.zeros(x.shape)
    for index in np.ndindex(x.shape):
        step = np.zeros(x.shape)
        step[index] = eps
        grad[index] = (f(x + step) - f(x - step)) / (2 * eps)
    return grad


def curvatures(W, H, lengths=None, **penalty):
    """Return d2J/dW2 (L, K), equal for all features, and d2J/dH2 (T, K), entry by entry."""
    curvature_W, curvature_H = np.zeros(W.shape[1:]), np.zeros(H.shape)
    for lag, k in np.ndindex(curvature_W.shape):
        curvature_W[lag, k] = np.sum(shifted(H[:, k], lag, lengths) ** 2)
    for t, k in np.ndindex(curvature_H.shape):
        curvature_H[t, k] = np.sum(placed(W, k, t, len(H), lengths)[1] ** 2)
    _, l2_W, _, l2_H = penalties(H.shape[1], **penalty)
    return curvature_W + l2_W, curvature_H + l2_H


def kkt_residual(X, W, H, lengths=None, boundary="zero", **penalty):
    """Return (kkt_W, kkt_H): |min(F, grad / curvature)| / |F| of both factors."""
    curvature_W, curvature_H = curvatures(W, H, lengths, **penalty)
    free = allowed(len(H), W.shape[1], lengths, boundary)[:, None]
    factors = [
        (W, gradient_W(X, W, H, lengths, **penalty), curvature_W, True),
        (H, gradient_H(X, W, H, lengths, **penalty), curvature_H, free),
    ]
    result = []
    for F, grad, diag, mask in factors:
        diag, mask = np.broadcast_to(diag, F.shape), np.broadcast_to(mask, F.shape)
        total = 0.0
        for i in np.ndindex(F.shape):
            if not mask[i]:
                continue
            if diag[i] > 0:
                total += min(F[i], grad[i] / diag[i]) ** 2
            elif grad[i] > 0:
                total += F[i] ** 2
        with np.errstate(divide="ignore"):
            result.append(np.sqrt(total) / np.linalg.norm(F) if total > 0 else 0.0)
    return tuple(result)


def nnqp(G, b, brute=8):
    """Return argmin over x >= 0 of 1/2 x'Gx - b'x, G positive semidefinite, maybe singular.

    Up to `brute` variables: try every support (some minimiser has a nonsingular Gram on its own).
    Else proximal points: repeat x <- argmin of the problem + mu/2 |x - last x|^2, each by NNLS.
    """
    x, used = np.zeros(len(b)), np.flatnonzero(np.diag(G) > 0)  # no curvature: entry is zero
    scale = np.sqrt(np.diag(G)[used])
    G, b = G[np.ix_(used, used)] / np.outer(scale, scale), b[used] / scale
    solver = _nnqp_supports if len(used) <= brute else _nnqp_proximal
    x[used] = solver(G, b) / scale
    return x


def _nnqp_supports(G, b):
    best, lowest = np.zeros(len(b)), 0.0
    for size in range(1, len(b) + 1):
        for support in map(list, itertools.combinations(range(len(b)), size)):
            G_support = G[np.ix_(support, support)]
            if np.linalg.eigvalsh(G_support)[0] < 1e-11:
                continue
            x = np.zeros(len(b))
            x[support] = np.linalg.solve(G_support, b[support])
            value = 0.5 * x @ G @ x - b @ x
            if np.all(x >= 0) and value < lowest:
                best, lowest = x, value
    return best


def _nnqp_proximal(G, b, mu=1e-8):
    x, lower = np.zeros(len(b)), np.linalg.cholesky(G + mu * np.eye(len(b)))
    for _ in range(200):
        last = x
        rhs = solve_triangular(lower, b + mu * last, lower=True)
        x = nnls(lower.T, rhs, maxiter=100 * len(b))[0]
        if np.linalg.norm(x - last) <= 1e-14 * np.linalg.norm(x):
            break
    return x


def solve_H(X, W, lengths=None, boundary="zero", support=None, **penalty):
    """Return the H (T, K) that minimises J given W, from the full dense Gram (small T*K only).

    With a support (T, K), of those that are zero outside of it.
    """
    T, K = len(X), W.shape[2]
    _, _, l1, l2 = penalties(K, **penalty)
    C, gram = h_statistics(X, W, lengths)
    free = np.repeat(allowed(T, W.shape[1], lengths, boundary), K)
    if support is not None:
        free &= support.ravel()
    G = gram.reshape(T * K, T * K) + np.diag(np.tile(l2, T))
    H = np.zeros(T * K)
    H[free] = nnqp(G[np.ix_(free, free)], (C - l1).ravel()[free])
    return H.reshape(T, K)


def start_from(X, W, H, lengths, boundary):
    """Return copies of W and H, with H zero where the boundary holds it, and the free bins."""
    free = allowed(len(H), W.shape[1], lengths, boundary)
    return np.array(X, float), np.array(W, float), np.where(free[:, None], H, 0.0), free


def mu_step(X, W, H, lengths=None, boundary="zero", eps=1e-16, **penalty):
    """Multiplicative updates: F <- F * <X, .> / max(<Xhat, .> + l1 + l2 F, eps)."""
    X, W, H, _ = start_from(X, W, H, lengths, boundary)
    L = W.shape[1]
    l1_W, l2_W, l1_H, l2_H = penalties(H.shape[1], **penalty)
    Xhat = reconstruct(W, H, lengths)
    denominator = np.maximum(correlate_W(Xhat, H, L, lengths) + l1_W + l2_W * W, eps)
    W = W * correlate_W(X, H, L, lengths) / denominator
    Xhat = reconstruct(W, H, lengths)
    denominator = np.maximum(correlate_H(Xhat, W, lengths) + l1_H + l2_H * H, eps)
    H = H * correlate_H(X, W, lengths) / denominator
    return W, H


def tiles(T, L, length, lengths=None):
    """Return (begin, seam, end) of tiles of at least `length` bins, or of the segment if shorter.

    All of a segment's tiles but its last have a seam at their end, their last L - 1 bins.
    """
    result = []
    for start, stop in segments(T, lengths):
        n = stop - start
        count = max(1, n // length)
        for i in range(count):
            begin, end = start + n * i // count, start + n * (i + 1) // count
            result.append((begin, end if end == stop else end - L + 1, end))
    return result


def visits(T, K, L, order, lengths=None, tile=None):
    """Return the order of a sweep over H: (component, bins that are updated at once)."""
    if order == "entries":
        return [(k, [t]) for k in range(K) for t in range(T)]
    if order == "blocks":
        bounds = segments(T, lengths)
        groups = [[t for a, b in bounds for t in range(a + i, b, L)] for i in range(L)]
        return [(k, group) for k in range(K) for group in groups]
    assert order == "tiles"
    cut = tiles(T, L, tile, lengths)
    stretches = [(a, seam) for a, seam, _ in cut] + [(seam, b) for _, seam, b in cut]
    return [(k, [t]) for a, b in stretches for k in range(K) for t in range(a, b)]


def hals_step(X, W, H, lengths=None, boundary="zero", order="entries", tile=None, **penalty):
    """HALS: each column of W~, then entries of H alone or ("blocks") those L bins apart at once.

    "tiles" of at least `tile` bins: first the tiles without their seams, then the seams.
    """
    X, W, H, _ = start_from(X, W, H, lengths, boundary)
    K, L = H.shape[1], W.shape[1]
    l1_W, l2_W, _, _ = penalties(K, **penalty)
    R = residual(X, W, H, lengths)
    for k in range(K):
        for lag in range(L):
            h = shifted(H[:, k], lag, lengths)
            E = R + np.outer(h, W[:, lag, k])  # the residual without this column
            curvature = h @ h + l2_W[k]
            new = (E.T @ h - l1_W[k]) / curvature if curvature > 0 else np.zeros(len(E.T))
            W[:, lag, k] = np.maximum(0.0, new)
            R = E - np.outer(h, W[:, lag, k])
    return W, sweep_H(X, W, H, lengths, boundary, order, tile, **penalty)


def sweep_H(X, W, H, lengths=None, boundary="zero", order="entries", tile=None, **penalty):
    """Return H after one sweep of HALS over it."""
    X, W, H, free = start_from(X, W, H, lengths, boundary)
    (T, K), L = H.shape, W.shape[1]
    _, _, l1_H, l2_H = penalties(K, **penalty)
    R = residual(X, W, H, lengths)
    for k, group in visits(T, K, L, order, lengths, tile):
        group = [t for t in group if free[t]]
        values = []
        for t in group:
            rows, motif = placed(W, k, t, T, lengths)
            E = R[rows] + H[t, k] * motif  # the residual without this entry
            curvature = np.sum(motif**2) + l2_H[k]
            new = (np.sum(E * motif) - l1_H[k]) / curvature if curvature > 0 else 0.0
            values.append(max(0.0, new))
        for t, new in zip(group, values, strict=True):
            rows, motif = placed(W, k, t, T, lengths)
            R[rows] += (H[t, k] - new) * motif
            H[t, k] = new
    return H


def anls_step(X, W, H, lengths=None, boundary="zero", h_passes=1, **penalty):
    """ANLS: W exactly, feature by feature; then H exactly in one bin after the other."""
    X, W, H, free = start_from(X, W, H, lengths, boundary)
    (T, K), (N, L, _) = H.shape, W.shape
    l1_W, l2_W, l1_H, l2_H = penalties(K, **penalty)
    design = w_design(H, L, lengths)
    G = design.T @ design + np.diag(np.tile(l2_W, L))
    for n in range(N):
        W[n] = nnqp(G, design.T @ X[:, n] - np.tile(l1_W, L)).reshape(L, K)
    for _ in range(h_passes):
        for t in np.flatnonzero(free):
            H[t] = 0.0
            R = residual(X, W, H, lengths)  # without bin t
            rows = placed(W, 0, t, T, lengths)[0]
            motifs = [placed(W, k, t, T, lengths)[1].ravel() for k in range(K)]
            A = np.column_stack(motifs)
            H[t] = nnqp(A.T @ A + np.diag(l2_H), A.T @ R[rows].ravel() - l1_H)
    return W, H


def best_match(W_true, W_found):
    """Return per true motif (K,) its cosine similarity, best over permutation and shift in time."""
    L, K = W_true.shape[1:]
    similarity = np.zeros((K, W_found.shape[2]))
    for i, j in np.ndindex(similarity.shape):
        a, b = W_true[:, :, i], W_found[:, :, j]
        norms = np.linalg.norm(a) * np.linalg.norm(b)
        for shift in range(-(L - 1), L):
            moved = np.zeros(b.shape)
            for lag in range(L):
                if 0 <= lag - shift < L:
                    moved[:, lag] = b[:, lag - shift]
            cosine = np.sum(a * moved) / norms if norms > 0 else 0.0
            similarity[i, j] = max(similarity[i, j], cosine)
    rows, columns = linear_sum_assignment(-similarity)
    result = np.zeros(K)
    result[rows] = similarity[rows, columns]
    return result


def _self_check(T, N, L, K, lengths, boundary, seed, **penalty):
    """Check one random problem; raise AssertionError where something does not hold."""
    rng = np.random.default_rng(seed)
    X, W = rng.random((T, N)), rng.random((N, L, K))
    H = rng.random((T, K)) * allowed(T, L, lengths, boundary)[:, None]
    args = (lengths, boundary)
    grad_W = finite_difference(lambda w: objective(X, w, H, *args, **penalty), W)
    grad_H = finite_difference(lambda h: objective(X, W, h, *args, **penalty), H)
    np.testing.assert_allclose(gradient_W(X, W, H, *args, **penalty), grad_W, atol=1e-6)
    np.testing.assert_allclose(gradient_H(X, W, H, *args, **penalty), grad_H, atol=1e-6)
    Xhat = reconstruct(W, H, lengths)
    np.testing.assert_allclose(h_design(W, lengths or [T]) @ H.ravel(), Xhat.ravel())
    np.testing.assert_allclose(w_design(H, L, lengths) @ W.reshape(N, -1).T, Xhat)
    steps = [(mu_step, {}), (hals_step, {}), (hals_step, {"order": "blocks"})]
    steps += [(hals_step, {"order": "tiles", "tile": 4}), (anls_step, {})]
    for step, options in [*steps, (anls_step, {"h_passes": 3})]:
        w, h, last = W, H, objective(X, W, H, *args, **penalty)
        for _ in range(6):
            w, h = step(X, w, h, *args, **options, **penalty)
            now = objective(X, w, h, *args, **penalty)
            assert now <= last + 1e-13 * np.sum(X**2), (step.__name__, options, last, now)
            assert w.min() >= 0
            assert h.min() >= 0
            last = now
        exact = solve_H(X, w, *args, **penalty)
        assert kkt_residual(X, w, exact, *args, **penalty)[1] < 1e-6
        assert objective(X, w, exact, *args, **penalty) <= last + 1e-13 * np.sum(X**2)


if __name__ == "__main__":
    per_component = {"l1_W": 0.05, "l2_W": 0.1, "l1_H": [0.02, 0.2], "l2_H": [0.3, 0.0]}
    for seed, penalty in itertools.product(range(3), [{}, {"l1_H": 0.1}, per_component]):
        _self_check(9, 4, 1, 2, None, "zero", seed, **penalty)
        _self_check(3, 4, 5, 2, None, "zero", seed, **penalty)
        _self_check(3, 4, 5, 2, None, "valid", seed, **penalty)
        _self_check(12, 3, 3, 2, [7, 5], "zero", seed, **penalty)
        _self_check(12, 3, 3, 2, [10, 2], "valid", seed, **penalty)
    for seed in range(20):
        A = np.random.default_rng(seed).random((3, 7))  # a singular Gram
        G, b = A.T @ A, A.T @ np.array([1.0, -1.0, 2.0]) - 0.1
        values = [0.5 * x @ G @ x - b @ x for x in (nnqp(G, b), nnqp(G, b, brute=0))]
        np.testing.assert_allclose(*values, rtol=1e-10)
    print("all checks passed")
