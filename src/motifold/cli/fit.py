"""``motifold fit``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from motifold.cli._cluster import at_home, cluster_option, model_class, working_on
from motifold.cli._dry_run import dry_run_option, tell_estimate
from motifold.cli._fitting import FittingCommand, given_parameters, model_options
from motifold.cli._following_fit import (
    FollowedFit,
    fit_follow_options,
    follow_fit,
    refuse_with_follow,
)
from motifold.cli._numbers import SHARE, FloatRange
from motifold.cli._options import (
    file_argument,
    max_time_option,
    n_components_option,
    n_jobs_option,
    n_lags_option,
    output_option,
    report_option,
    seed_option,
    sort_option,
)
from motifold.cli._outputs import (
    PAGE,
    beside,
    check_ending,
    check_no_other_ending,
    check_outputs,
    keep,
)
from motifold.cli._preparing import (
    FittedPart,
    given_preparation,
    part_to_fit,
    preparing_options,
)
from motifold.cli._said import command_line
from motifold.cli._shared import (
    EXIT_DATA,
    Failure,
    friendly,
    in_words_of_options,
    on_a_terminal,
    print_json,
    reading_options,
    recording_of,
)
from motifold.cli._terminal import ended, say

if TYPE_CHECKING:
    from motifold.data.held_out import HoldOut
    from motifold.estimator import CNMF
    from motifold.findings import Significance
    from motifold.forecast import Estimate
    from motifold.io import Recording
    from motifold.storage.checkpoint import Checkpoint

_LOG_FIRST, _LOG_MOST = 5.0, 60.0  # seconds between two lines where there is no terminal


@click.command("fit", cls=FittingCommand)
@file_argument
@n_components_option(required=True)
@n_lags_option()
@output_option("model.npz", help="The model's file.")
@max_time_option()
@seed_option()
@n_jobs_option()
@cluster_option
@report_option(help="Write a report as well.")
@sort_option
@click.option("--resume", is_flag=True, help="Go on from the checkpoint, if there is one.")
@click.option("--restart", is_flag=True, help="Start anew, whatever checkpoint there is.")
@click.option(
    "--checkpoint-every",
    type=FloatRange(0),
    default=60.0,
    show_default=True,
    metavar="S",
    help="Seconds between two checkpoints.",
)
@click.option(
    "--test-fraction",
    type=SHARE,
    metavar="X",
    help="Hold out this share of the time, in blocks, and test the motifs there.",
)
@dry_run_option
@preparing_options
@fit_follow_options
@model_options
@reading_options
def command(
    file: Path,
    output: Path,
    report: Path | None,
    sort: bool | None,
    resume: bool,
    restart: bool,
    checkpoint_every: float,
    test_fraction: float | None,
    dry_run: bool,
    as_json: bool,
    n_lags: str,
    follow: bool,
    idle: float | None,
    chunk: int | None,
    forget: float | None,
    cluster: str | int | None,
    **options: Any,
) -> None:
    """Find the motifs of a recording and save them as a model.

    A fit that takes longer writes a checkpoint beside the model (OUTPUT.checkpoint) every minute,
    and on Ctrl-C and SIGTERM; the same command with --resume goes on from it and ends with the
    same result. When the fit is done the checkpoint is removed.

    With --test-fraction the motifs are found in the rest of the recording and tested on the blocks
    that were held out; motifold significance and the report know which those are.

    With --dry-run nothing is fitted or written: it tells what the same command would take.

    With --follow rows are taken as they come, from standard input (-) or a csv or npy file that is
    being written, and the model is learnt from them a chunk at a time (partial_fit). It is saved
    every minute, and at the end: end of input, Ctrl-C, SIGTERM, or a bad line. --resume goes on
    from it: of a file behind the rows that it has seen, of a pipe as after a gap.

    \b
    Examples:
      motifold fit counts.npy -k 5 -l 20
      motifold fit speech.wav -k 8 -l 0.4s -o speech.npz --report speech.html
      motifold fit song.mat --key SONG --orientation features_first --rate SONGfs -k 3 -l 0.25s
      motifold fit session.nwb --bin-size 0.02 -k 4 -l 1s --resume
      motifold fit spikes.csv --unit neuron --time seconds --bin-size 0.02 -k 2 -l 0.5s
      motifold fit kilosort/ --bin-size 0.02 -k 4 -l 1s
      motifold fit counts.npy -k 8 -l 20 --x-ortho 0.01 --center
      motifold fit counts.npy -k 5 -l 20 --loss kl
      motifold fit counts.npy -k 5 -l 20 --sqrt --smooth 2 --test-fraction 0.3
      motifold fit large.zarr -k 5 -l 20 --dry-run
      motifold fit large.zarr -k 5 -l 20 --cluster local:4
      rig | motifold fit - -k 5 -l 20 --follow
    """
    if follow:
        asked = FollowedFit(file, output, n_lags, checkpoint_every, resume, restart, chunk, forget)
        if cluster is not None:
            raise click.UsageError("--cluster is not for --follow: one process follows a stream.")
        if dry_run:
            raise click.UsageError("--dry-run is not for --follow: nobody knows how long it goes.")
        refuse_with_follow(report, test_fraction, options)
        follow_fit(asked, idle, as_json, options)
        return
    if dry_run:
        with friendly():
            tell_estimate(_estimate(file, options, n_lags, cluster, test_fraction), as_json)
        return
    with friendly():
        saved = beside(output, ".checkpoint")
        outputs = {"--output": output, "--report": report, "the checkpoint": saved}
        check_outputs(outputs, {"the recording": file})
        check_no_other_ending("--output", output, ".npz")
        check_ending("--report", report, PAGE)
        recording = recording_of(file, options).checked(memory_limit=options["memory_limit"])
        preparation = given_preparation(options, recording)
        model = _model(recording, n_lags, options, model_class(cluster))
        held = _hold_out(recording, test_fraction, model.n_lags)
        part = part_to_fit(recording, preparation, held)
        checkpoint = _checkpoint(model, part, saved, checkpoint_every, resume, restart)
        with _telling_what_is_kept(checkpoint):
            with working_on(cluster, model):
                checkpoint.fit(model, part.X, lengths=part.lengths, mask=part.mask)
                model = at_home(model)
            model.set_params(callback=None, verbose=0)
            _keep_origin(model, recording)
            model.preparation_, model.held_out_ = preparation, held
            keep(output, model.save, "The model")
        checkpoint.remove()
        if report is not None:
            from motifold.report import write_report

            say("The fit is done; writing the report.", err=True)
            said: dict[str, Any] = {"sort": sort, "model_name": output.name}
            said["command"] = command_line()
            keep(report, lambda place: write_report(place, model, recording, **said), "The page")
        test = None if held is None else _tested(model, recording)
    _tell(model, recording, output, report, test, as_json)


def _estimate(
    file: Path,
    options: dict[str, Any],
    n_lags: str,
    cluster: str | int | None,
    test_fraction: float | None,
) -> Estimate:
    """What the fit would take; the file is not read as a whole unless it has to be prepared."""
    recording, limit = recording_of(file, options), options["memory_limit"]
    preparation = given_preparation(options, recording)
    whole = preparation is not None or test_fraction is not None
    recording = recording.checked(memory_limit=limit) if whole else recording
    model = _model(recording, n_lags, options, model_class(cluster))
    part = None
    if whole:
        held = _hold_out(recording, test_fraction, model.n_lags)
        part = part_to_fit(recording, preparation, held)
    with working_on(cluster, model):
        if part is None:
            return model.estimate(recording)
        return model.estimate(part.X, lengths=part.lengths, mask=part.mask)


def _hold_out(recording: Recording, fraction: float | None, L: int) -> HoldOut | None:
    from motifold.findings import hold_out
    from motifold.findings.unseen import refuse_on_disk

    if fraction is None:
        return None
    refuse_on_disk(recording, "cut in two")
    return hold_out(recording.X, fraction, gap=L - 1, lengths=recording.lengths)


def _tested(model: CNMF, recording: Recording) -> Significance:
    """The motifs on what was held out."""
    from motifold.findings.unseen import Unseen

    unseen = Unseen.of(model, recording)
    assert unseen is not None
    return unseen.quickly_tested(model)[0]


def _model(recording: Recording, n_lags: str, options: dict[str, Any], kind: type[CNMF]) -> CNMF:
    L, T = recording.bins(n_lags), recording.shape[0]
    if L > T:
        told = f"A motif of {L} lags is longer than the recording, {T} bins. Take a shorter one."
        raise Failure(" ".join([told, *map(in_words_of_options, recording.hints)]), EXIT_DATA)
    K, N = options.get("n_components"), recording.shape[1]
    if K is not None and K > L * N:
        say(
            f"Warning: {K} motifs are more than the {L * N} values of one (lags × features). So "
            "many make up any recording, and say nothing about it.",
            err=True,
        )
    shown = on_a_terminal()
    return kind(
        n_lags=L,
        verbose=int(shown),
        callback=None if shown else _Log(),
        allow_negative=recording.signed,
        **given_parameters(options),
        **options,
    )


class _Log:
    """A line on stderr now and then, ever more seldom, where there is no terminal for a bar."""

    def __init__(self) -> None:
        from motifold.fit.clock import Every

        self._due = Every(_LOG_FIRST, slower=1.5, most=_LOG_MOST)

    def __call__(self, state: Any) -> bool:
        if self._due():
            known = state.kkt_residual < float("inf")
            residual = f", KKT residual {state.kkt_residual:.1e}" if known else ""
            say(
                f"iteration {state.iteration}: loss {state.loss:.5f}{residual}, "
                f"{state.seconds:.0f} s",
                err=True,
            )
        return False


def _checkpoint(
    model: CNMF, recording: FittedPart, path: Path, every: float, resume: bool, restart: bool
) -> Checkpoint:
    from motifold.storage.checkpoint import Checkpoint, identity_of, is_checkpoint

    identity = identity_of(model, recording.X, lengths=recording.lengths, mask=recording.mask)
    checkpoint = Checkpoint(path, identity, every=every)
    if restart:
        if path.exists() and not is_checkpoint(path):
            told = f"{path}: it is no checkpoint of motifold, and stays. Give another output."
            raise Failure(told, EXIT_DATA)
        checkpoint.remove()
    elif path.exists():
        if not resume:
            raise click.UsageError(
                f"{path} has a fit that was not finished: go on with it (--resume), or throw it "
                "away (--restart)."
            )
        try:
            done = checkpoint.restore("Give another output, or start anew (--restart).")
        except ValueError as error:
            raise Failure(str(error), EXIT_DATA) from error
        say(f"Going on from {path}, {done} iterations done.", err=True)
    elif resume:
        say(f"There is no checkpoint {path}: starting anew.", err=True)
    return checkpoint


@contextlib.contextmanager
def _telling_what_is_kept(checkpoint: Checkpoint) -> Iterator[None]:
    """On Ctrl-C and SIGTERM end the command, and say what was kept of the fit."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        kept = checkpoint.path.exists()
        told = f"{checkpoint.path} is written; --resume goes on." if kept else "Nothing was kept."
        notes = getattr(interrupt, "__notes__", [])  # why it could not be written
        raise ended(interrupt, " ".join([*notes, told])) from None


def _keep_origin(model: CNMF, recording: Recording) -> None:
    """Names of the features, and how the data was read, go with the model."""
    import numpy as np

    from motifold.data.given import origin_of

    if recording.feature_names is not None:
        model.feature_names_in_ = np.array(recording.feature_names, dtype=object)
    model.origin_ = origin_of(recording)


def _tell(
    model: CNMF,
    recording: Recording,
    output: Path,
    report: Path | None,
    test: Significance | None,
    as_json: bool,
) -> None:
    if as_json:
        files = {"model": output, "report": report}
        print_json({**files, **_for_machines(model, recording), **_told_of_the_data(model, test)})
        return
    from motifold.findings import start_agreement
    from motifold.fit import StopReason
    from motifold.model.losses import loss_of

    loss = loss_of(model.beta_loss)
    by = f"{loss.title}, " if loss.by_ratios else ""
    for hint in recording.hints:
        say(f"Hint: {in_words_of_options(hint)}", err=True)
    seconds = f" ({model.n_lags / recording.rate:.3g} s)" if recording.rate else ""
    say(
        f"{model.n_components} motifs of {model.n_lags} lags{seconds} explain "
        f"{100 * loss.explained(model.loss_):.1f}% of the {loss.explains} "
        f"({by}relative loss {model.loss_:.4f}); "
        f"{StopReason(model.stop_reason_).words} after {model.n_iter_} iterations."
    )
    agreement = start_agreement(model)
    told_by_the_bar = on_a_terminal()
    if agreement is not None and agreement.n_starts > 1 and not told_by_the_bar:
        say(agreement.sentence)
    if model.preparation_ is not None:
        say(f"Prepared: {model.preparation_.describe()}.")
    if test is not None and model.held_out_ is not None:
        say(
            f"{int(test.significant.sum())} of {int(test.tested.sum())} motifs are significant in "
            f"the {100 * model.held_out_.share:.0f}% of the recording that were held out "
            f"(motifold significance {output} tells more)."
        )
    say(f"Model: {output}" + (f"\nReport: {report}" if report else ""))


def _for_machines(model: CNMF, recording: Recording) -> dict[str, Any]:
    """What was fitted, and how it ended."""
    names = ("beta_loss", "loss_", "kkt_residual_", "n_iter_", "converged_", "stop_reason_")
    losses = model.start_losses_
    return {
        "time_bins": recording.shape[0],
        "features": recording.shape[1],
        "missing": 0 if recording.mask is None else int((~recording.mask).sum()),
        "motifs": model.n_components,
        "lags": model.n_lags,
        **{name.rstrip("_"): getattr(model, name) for name in names},
        "start_losses": None if losses is None else losses.tolist(),
    }


def _told_of_the_data(model: CNMF, test: Significance | None) -> dict[str, Any]:
    """For machines: what was done to the data, what was held out, and the test there."""
    done, held = model.preparation_, model.held_out_
    return {
        "preparation": None if done is None else done.describe(),
        "held_out": None if held is None else [list(stretch) for stretch in held.stretches],
        "significance": None if test is None else test.table.records,
    }
