"""Every penalty of the registry, one by one, against the oracle; and what is made from its line."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest
from cases import make_case
from click.testing import CliRunner

from motifold import CNMF
from motifold.cli import main
from motifold.model.penalties import PENALTIES, Penalty, penalties_of

NAMES = [penalty.name for penalty in PENALTIES]
THEORY = (Path(__file__).parents[2] / "docs" / "theory" / "penalties.md").read_text()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("boundary", ["zero", "valid"])
def test_the_value_is_the_formula(name, boundary):
    """J with the penalty less J without it, by the oracle."""
    case = make_case([30, 9], N=4, K=3, L=5, boundary=boundary, penalties={name: 0.7})
    plain = make_case([30, 9], N=4, K=3, L=5, boundary=boundary)
    with case.engine() as engine:
        value = engine.assess(case.W, case.H).penalty
    expected = case.objective(case.W, case.H) - plain.objective(case.W, case.H)
    np.testing.assert_allclose(value, expected, rtol=1e-9)
    assert value > 0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scale", [2.0**-7, 2.0**90])
def test_it_keeps_its_meaning_in_the_working_scale(name, scale):
    """scale²·J(X, W, H) = J'(scale·X, W, scale·H)."""
    case = make_case([30], N=4, K=3, L=5, penalties={name: 0.7})
    with case.engine() as engine:
        plain = engine.assess(case.W, case.H).penalty
    scaled = make_case([30], N=4, K=3, L=5, penalties={})
    weight = penalties_of(3, **{name: 0.7}).rescaled(scale).terms[0].weight
    scaled = scaled.with_data(scale * case.X, {name: weight}) if weight < 1e30 else None
    if scaled is None:
        return
    with scaled.engine() as engine:
        own = engine.model.scale  # the engine has a scale of its own for extreme data
        value = engine.assess(case.W, scale * own * case.H).penalty
    np.testing.assert_allclose(value, (scale * own) ** 2 * plain, rtol=1e-9)


def test_one_line_of_the_registry_is_all():
    """The parameter, its check, the option and the row of the table follow from it."""
    parameters = inspect.signature(CNMF).parameters
    options = CliRunner().invoke(main, ["fit", "--help"]).output
    for penalty in PENALTIES:
        assert parameters[penalty.name].default == 0, f"give CNMF the parameter {penalty.name}"
        with pytest.raises(ValueError, match=f"'{penalty.name}' parameter"):
            CNMF(2, 3, **{penalty.name: -1}).fit(np.ones((9, 2)))
        assert "--" + penalty.name.lower().replace("_", "-") in options.lower()
        assert penalty.formula
        assert penalty.help
        assert f"| `{penalty.name}` =" in THEORY, "give it a row in the table of the theory"


def test_unknown_ones_are_named():
    with pytest.raises(ValueError, match="no penalty 'l3_W'; there are"):
        penalties_of(2, l3_W=1.0)


def test_what_weighs_on_the_motifs_weighs_less_on_a_part():
    part = penalties_of(2, l1_W=1.0, ortho_W=2.0, l1_H=3.0, x_ortho=4.0).on_part(0.25)
    assert [(term.name, term.weight) for term in part.terms] == [
        ("l1_W", 0.25),
        ("ortho_W", 0.5),
        ("l1_H", 3.0),
        ("x_ortho", 4.0),
    ]


def test_a_penalty_of_ones_own_is_one_class():
    """Entries of neighbouring lags alike: a Gram in W is all it says."""

    class Smooth(Penalty):
        name, factor, degree = "smooth_W", "W", 0
        formula, help = (
            "λ/2 Σ (W[n, ℓ, k] − W[n, ℓ−1, k])²",
            "Against motifs that are rough in time.",
        )

        def between_motifs(self, K, L):
            step = np.eye(L) - np.eye(L, k=1)
            return self.weight * np.kron(step[:-1].T @ step[:-1], np.eye(K))

    W = np.random.default_rng(0).random((4, 5, 2))
    penalties = penalties_of(2)
    penalties = type(penalties)((Smooth(0.3),), 2)
    expected = 0.15 * np.sum(np.diff(W, axis=1) ** 2)
    np.testing.assert_allclose(penalties.value_W(W), expected)
