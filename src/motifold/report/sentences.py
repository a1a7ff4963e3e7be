"""What a report says of the facts, in plain words."""

from __future__ import annotations

from motifold.estimator import CNMF
from motifold.findings.facts import Facts
from motifold.fit import StopReason
from motifold.report.heading import without_folders

# Below these shares a fit explains little. Of the deviance of counts most may be noise.
_LITTLE_POWER, _LITTLE_DEVIANCE = 1 - 0.9**2, 0.05


def warnings_of(facts: Facts) -> list[str]:
    """What a reader should know before believing the pictures."""
    model, told = facts.model, []
    if not model.converged_:
        told.append(
            f"The fit {StopReason(model.stop_reason_).words} before it converged (KKT residual "
            f"{model.kkt_residual_:.1e}, tolerance {model.tol:.1e}). The motifs may still "
            "change: fit longer (max_iter, max_time)."
        )
    if facts.starts is not None and facts.starts.is_alone:
        told.append(facts.starts.sentence)
    if not facts.is_training:
        told.append(
            "This is not the recording that the model was fitted to: the motifs are those of "
            "the fit, the activations were found anew."
        )
    if facts.notes is not None:
        told.append(
            "Events are counted as was said in the explorer: with the thresholds set there, and "
            "without the motifs that were hidden and the events that were rejected."
        )
    if facts.dead:
        told.append(
            f"{_motifs(facts.dead, 'is', 'are')} empty: fewer motifs would do (n_components)."
        )
    if facts.silent:
        told.append(f"{_motifs(facts.silent, 'does', 'do')} not occur in this recording.")
    if facts.explained < (_LITTLE_DEVIANCE if facts.fit.loss.by_ratios else _LITTLE_POWER):
        told.append(
            f"The model explains only {100 * facts.explained:.0f}% of the "
            f"{facts.fit.loss.explains}: look at the reconstruction before the motifs."
        )
    if facts.n_missing:
        told.append(
            f"{facts.n_missing} entries ({100 * facts.missing_share:.2g}%) are missing. They "
            "count nowhere, and what the reconstruction shows there is a prediction, the "
            "poorer the longer the gap. Activations of which less than half of the motif is "
            "observed (grey in the pictures) are no events; the test of significance leaves out "
            "bins from which on less than half is observed, and takes other gaps for zero."
        )
    hints = [without_folders(hint, facts.recording.source) for hint in facts.recording.hints]
    return [*told, *_of_the_test(facts), *hints]


def _of_the_test(facts: Facts) -> list[str]:
    told = []
    if facts.significance is None:
        told.append(
            "The motifs are not tested: the fit has seen all of this recording. Whether they are "
            "more than chance is not known (see Significance)."
        )
    held = facts.model.held_out_
    if facts.unseen is not None and facts.unseen.kind == "held out":
        assert held is not None
        fitted = len(held.train) / held.n_samples
        apart = held.n_samples - len(held.train) - len(held.test)
        beside = f", and {apart} bins lie between the two and are in neither" if apart else ""
        told.append(
            f"The motifs were found in {100 * fitted:.0f}% of this recording; "
            f"{100 * held.share:.0f}% was held out to test them{beside}. Pictures, events and "
            "shares are of all of it."
        )
    if facts.doubtful:
        told.append(
            f"{_motifs(facts.doubtful, 'is', 'are')} not significant: the order of the features "
            "could be chance."
        )
    return told


def _motifs(motifs: list[int], one: str, several: str) -> str:
    """Motifs as the subject of a sentence, with its verb."""
    *others, last = map(str, motifs)
    return f"Motifs {', '.join(others)} and {last} {several}" if others else f"Motif {last} {one}"


def end_of_the_fit(model: CNMF) -> str:
    """How it ended, and after how much."""
    n = model.n_iter_
    return f"{StopReason(model.stop_reason_).words} after {n} iteration{'' if n == 1 else 's'}"


def about(facts: Facts) -> str:
    """What the page is about, in a line."""
    model, (T, N), rate = facts.model, facts.fit.shape, facts.recording.rate
    K, L = model.n_components, model.n_lags
    long, whole = (_duration(bins, rate) for bins in (L, T))
    return f"{K} motif{'' if K == 1 else 's'} of {long}, in {N} features over {whole}."


def meaning_of_shares(facts: Facts) -> str:
    """What the percentages of the motifs are."""
    return f"motif's share of the recording's {facts.fit.loss.explains}"


def how_shares_add_up(facts: Facts) -> str:
    """What the numbers in the table of motifs are."""
    told = (
        "A motif's share is its part of what all explain together: the shares and what is not "
        "explained add up to 100%."
    )
    if facts.overlaps is not None:
        told += (
            " Shared: of this, what lies where other motifs are as well; the rest would be lost "
            "without the motif."
        )
    return told


def order_of_features(facts: Facts) -> str:
    """What was done about the order of the features; nothing where there is nothing to say."""
    if facts.order is not None:
        return (
            "Features are sorted, here and below, by the motif that they are strongest in and the "
            "lag of their peak in it (--no-sort keeps them as they are)."
        )
    found = facts.correlation
    if facts.recording.feature_axis is not None or not found.shows_an_order:
        return ""
    return (
        "Features keep their order, since it means something: neighbours have a correlation of "
        f"{found.neighbours:.2f} (median), others of {found.others:.2f} (--sort sorts them). The "
        "first is at the bottom."
    )


def which_events(facts: Facts) -> str:
    """Which peaks are listed."""
    if facts.fdr is None:
        return "Listed are peaks above the thresholds that were set in the explorer."
    return (
        f"Listed are events at a false discovery rate of {100 * facts.fdr:g}%: copies of this "
        "recording, in which each feature is shifted in time by itself, have at most that "
        "share of such strong peaks. The q-value is the least such rate at which an event is "
        "kept. It tells events from chance, not sequences from features that fire together."
    )


def preparation(facts: Facts) -> str | None:
    """What was done to the data before the fit; None if nothing was."""
    done = facts.model.preparation_
    if done is None:
        return None
    return f"The data was prepared, in this order: {done.describe()}. All that follows is of that."


def outcome_of_the_test(facts: Facts) -> str:
    """How many motifs passed it, and on what it was done; or why there is none."""
    found = facts.significance
    if found is None:
        return (
            "The motifs are not tested here: the fit has seen all of this recording, and a p-value "
            "on what the motifs were found in means nothing. Hold a part of it out (motifold fit "
            "--test-fraction 0.3), or make the report with a recording that the fit has not seen."
        )
    n_tested, n_null = int(found.tested.sum()), found.null.shape[1]
    return (
        f"{int(found.significant.sum())} of {n_tested} motifs tested recur more sharply than "
        f"{n_null} copies of them in which each feature is shifted by a random lag (level "
        f"{found.alpha:g} for all together, Bonferroni's correction). The p-values are in the "
        f"table of motifs.{_where(facts)}"
    )


def _where(facts: Facts) -> str:
    rate, tested, unseen = facts.recording.rate, facts.tested_bins, facts.unseen
    assert unseen is not None
    on = " Tested on this recording, which is not the one of the fit."
    if unseen.kind == "held out":
        all_of_it = _duration(unseen.X.shape[0], rate)
        on = f" Tested on the {all_of_it} of this recording that were held out of the fit."
    if tested == unseen.X.shape[0]:
        return on
    return f"{on} To save time the test took the last {_duration(tested, rate)} of it."


def _duration(bins: int, rate: float | None) -> str:
    return f"{bins} time bins" if rate is None else f"{bins / rate:.3g} s"
