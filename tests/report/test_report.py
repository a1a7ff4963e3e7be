"""The report: complete, self-contained, and deaf to what names in the data say."""

from __future__ import annotations

import base64
import csv
import io
import re
import wave
from copy import deepcopy
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter1d

import motifold
from motifold import CNMF
from motifold.datasets import make_sequences
from motifold.findings import sort_features
from motifold.findings.decomposition import Decomposition
from motifold.findings.facts import Facts
from motifold.fit import StopReason
from motifold.io import Recording, read
from motifold.report import pictures, sentences, tables, write_report, write_sound
from motifold.report.markup import join, tag

HOSTILE = (
    "<script>window.hacked = 1</script>",
    "</script><script>window.hacked = 1</script>",
    '"><img src=x onerror="window.hacked = 1">',
    "$\\frac{",
    "{{ 7 * 7 }}",
    "javascript:alert(1)",
)
X = make_sequences(500, 6, 2, 8, activation_probability=0.02, random_state=0).X


def recording_of(X, **more) -> Recording:
    return Recording(X, "folder/a <b>bold<b> file.npy", 20.0, HOSTILE, **more)


@pytest.fixture(scope="module")
def model() -> CNMF:
    model = CNMF(2, 8, random_state=0).fit(X)
    model.feature_names_in_ = np.array(HOSTILE, dtype=object)
    return model


@pytest.fixture(scope="module")
def report(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(path, model, recording_of(X))
    return path


class Tags(HTMLParser):
    """The elements of a page and their attributes."""

    def __init__(self, text):
        super().__init__()
        self.found: list[tuple[str, dict]] = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))


def test_markup_escapes():
    assert tag("p", "<b>&", title='"x"') == '<p title="&quot;x&quot;">&lt;b&gt;&amp;</p>'
    assert join("<", tag("br"), None, ["&"]) == "&lt;<br>&amp;"
    assert tag("audio", controls=True, src=None) == "<audio controls></audio>"


def test_nothing_comes_from_elsewhere(report):
    found = Tags(report.read_text()).found
    for name, attributes in found:
        for key in ("src", "href"):
            if key in attributes:
                assert attributes[key].startswith(("data:", "#")), (name, key)
    assert [name for name, _ in found].count("script") == 1
    assert not {"iframe", "object", "embed", "link", "b"} & {name for name, _ in found}
    pictures = [attributes for name, attributes in found if name == "img"]
    assert len(pictures) >= 5
    assert all(attributes["alt"] for attributes in pictures)


def test_every_section_is_there(report):
    titles = re.findall(r"<h2>(.*?)</h2>", report.read_text())
    assert titles == [
        "Before you believe it", "Contents", "Motifs", "Data and activations", "Reconstruction",
        "Events", "Features", "Significance", "The fit", "Versions",
    ]  # fmt: skip


def test_events_are_calibrated_and_the_page_says_so(model, report):
    facts, text = Facts.gather(model, recording_of(X)), report.read_text()
    assert facts.fdr == 0.1 >= max(facts.events["q_value"])
    assert "false discovery rate of 10%" in text
    assert ">q-value</button>" in text


def test_the_contents_lead_to_the_sections(report):
    text = report.read_text()
    links = re.findall(r'<a href="#([a-z-]+)">(.*?)</a>', text)
    sections = re.findall(r'<section id="([a-z-]+)"><h2>(.*?)</h2>', text)
    assert links == sections
    assert len(links) == 8
    names = [attributes["id"] for _, attributes in Tags(text).found if "id" in attributes]
    assert len(set(names)) == len(names)


def test_the_title_tells_recordings_and_models_apart(model, tmp_path):
    """Also two parts of one file; and the page says when and by what it was made."""
    titles = set()
    for options, name in [({"key": "SONG"}, "a.npz"), ({"key": "NEURAL"}, "a.npz"), ({}, "b.npz")]:
        recording = Recording(X, "/home/someone/secret/data.mat", options=options)
        command = "motifold report a.npz --data data.mat"
        path = tmp_path / "page.html"
        write_report(path, model, recording, model_name=name, command=command)
        text = path.read_text()
        titles.add(re.search(r"<title>(.*?)</title>", text)[1])
        assert "secret" not in text, "the folders of this machine are shown"
        shown = re.search("<code>(.*?)</code>", text)[1]
        assert shown == command.replace("--data", '<span class="option">--data</span>')
        assert f"with motifold {motifold.__version__}" in text
        assert re.search(r"Made on \d{4}-\d\d-\d\d \d\d:\d\d ", text)
    assert titles == {
        "Motifs of data.mat (SONG), by a.npz",
        "Motifs of data.mat (NEURAL), by a.npz",
        "Motifs of data.mat, by b.npz",
    }


def test_tables_can_be_taken_away(report, model):
    """All events and features, not only those shown, whatever they are called."""
    links = re.findall(
        r'<a href="data:text/csv[^,]*,([^"]*)" download="([^"]*)">', report.read_text()
    )
    tables = {
        name.rpartition("-")[2]: list(csv.DictReader(io.StringIO(base64.b64decode(data).decode())))
        for data, name in links
    }
    assert list(tables) == ["events.csv", "features.csv"]
    facts = Facts.gather(model, recording_of(X))
    times = [float(row["time"]) for row in tables["events.csv"]]
    np.testing.assert_allclose(times, facts.events["time"].astype(float))
    assert {row["name"] for row in tables["features.csv"]} == set(HOSTILE)


def test_one_motif_is_and_several_are(model):
    facts = Facts.gather(model, recording_of(X))
    two = sentences.warnings_of(replace(facts, events=facts.events.where(motif=9)))
    assert any(text.startswith("Motifs 0 and 1 do not occur") for text in two)
    one = sentences.warnings_of(replace(facts, events=facts.events.where(motif=0)))
    assert any(text.startswith("Motif 1 does not occur") for text in one)


@pytest.mark.parametrize("reason", list(StopReason))
def test_the_end_of_a_fit_in_words(model, reason):
    other = deepcopy(model)
    other.stop_reason_, other.n_iter_ = reason, 125
    told = sentences.end_of_the_fit(other)
    assert told.endswith(" after 125 iterations")
    assert "_" not in told


def test_shares_in_the_table_add_up_and_are_told_once(report, model):
    text = report.read_text()
    table = re.search(r'<table class="sums">(.*?)</table>', text)[1]
    rows = re.findall(r"<tr><td>(.*?)</td><td>(-?[\d.]+)%</td>", table)
    *motifs, together, rest = (float(share) for _, share in rows)
    assert sum(motifs) == pytest.approx(together, abs=0.11)
    assert together + rest == pytest.approx(100, abs=0.11)
    assert together == pytest.approx(100 * (1 - model.loss_**2), abs=0.06)


def test_the_excerpt_is_drawn_once(model, monkeypatch):
    """Its data and reconstruction above, what is left and the parts below."""
    drawn = []
    monkeypatch.setattr(pictures, "picture", lambda figure, *told, **more: drawn.append(figure))
    facts = Facts.gather(model, recording_of(X))
    assert facts.excerpt is not None
    pictures.closer_look(facts)
    pictures.reconstruction(facts)
    labels = [[axes.get_label() for axes in figure.axes] for figure in drawn]
    assert sum(names.count("data") for names in labels) == 1
    assert labels[1] == ["residual", "colorbar", "motif 0", "motif 1", "colorbar"]


def test_numbers_are_the_models(model):
    facts = Facts.gather(model, recording_of(X))
    assert facts.is_training
    assert facts.loss == pytest.approx(model.loss_)
    parts = list(model.reconstruct_components())
    X_hat = sum(parts)
    expected = [np.sum((2 * X - X_hat) * part) / np.sum(X**2) for part in parts]
    np.testing.assert_allclose(facts.shares, expected)
    assert facts.shares.sum() == pytest.approx(facts.explained)
    assert facts.counts.sum() == len(facts.events)
    start, stop = facts.fit.busiest(100)
    assert stop - start == 100
    assert facts.fit.busiest(10**6) == (0, 500)


def test_a_p_value_says_on_which_data_and_in_sample_there_is_none(report, model, tmp_path):
    text = report.read_text()
    assert "p-value (" not in text
    assert "a p-value on what the motifs were found in means nothing" in text
    path = tmp_path / "other.html"
    write_report(path, model, recording_of(X[::-1][:300]))
    text = path.read_text()
    assert "p-value (this recording)" in text
    assert "which is not the one of the fit" in text


def test_motifs_count_from_0(report, model):
    text = report.read_text()
    choices = re.findall(r'<option value="(\d*)">([^<]*)</option>', text)
    assert choices == [("", "all motifs"), ("0", "motif 0"), ("1", "motif 1")]
    assert set(re.findall(r'data-motif="(\d+)"', text)) == {"0", "1"}
    swatches = re.findall(r'class="swatch"[^>]*></span> (\d)<', text)
    assert swatches[:2] == ["0", "1"]  # of the motifs; then those of the features
    assert set(swatches) == {"0", "1"}
    emptied = deepcopy(model)
    emptied.scales_[0] = 0
    told = sentences.warnings_of(Facts.gather(emptied, recording_of(X)))
    assert any(sentence.startswith("Motif 0 is empty") for sentence in told)


def test_missing_entries(model):
    holes = X.copy()
    holes[40:60] = holes[100:300, 2] = np.nan
    facts = Facts.gather(model, recording_of(holes, missing="mask").checked())
    there = ~np.isnan(holes)
    assert facts.n_missing == (~there).sum()
    assert not facts.is_training
    H = CNMF(2, 8, random_state=0).fit(X).transform(X, mask=there)  # the same, without names
    left = (X - model.inverse_transform(H))[there]
    assert facts.loss == pytest.approx(np.linalg.norm(left) / np.linalg.norm(X[there]))
    parts = [np.where(there, part, 0) for part in model.reconstruct_components(H, lengths=[500])]
    expected = [np.sum((2 * X - sum(parts)) * p) / np.sum(X[there] ** 2) for p in parts]
    np.testing.assert_allclose(facts.shares, expected)
    assert "are missing" in " ".join(sentences.warnings_of(facts))


def test_features_are_sorted_unless_they_have_an_order(model):
    facts = Facts.gather(model, recording_of(X))
    expected = sort_features(model).order
    np.testing.assert_array_equal(facts.order, expected)
    axes = pictures.features_of(facts)
    np.testing.assert_array_equal(axes.order, expected)
    assert list(axes.names) == [HOSTILE[i] for i in expected]
    assert "sorted" in sentences.order_of_features(facts)
    assert Facts.gather(model, recording_of(X), sort=False).order is None

    smooth = gaussian_filter1d(np.random.default_rng(0).random((400, 60)), 3, axis=1)
    ordered = CNMF(2, 5, random_state=0, tol=0.1).fit(smooth)
    facts = Facts.gather(ordered, Recording(smooth, "smooth"))
    assert facts.order is None
    assert "neighbours" in sentences.order_of_features(facts)
    scrambled = smooth[:, np.random.default_rng(1).permutation(60)]
    assert Facts.gather(ordered, Recording(scrambled, "scrambled")).order is not None
    assert Facts.gather(ordered, Recording(smooth, "smooth"), sort=True).order is not None


def captions_of(text: str) -> list[str]:
    return [unescape(caption) for caption in re.findall(r"<figcaption>(.*?)</figcaption>", text)]


def test_grey_is_explained_where_there_is_some(report, model, tmp_path):
    """The end of every recording is grey above the data; gaps are in both."""
    end = "Activations are grey where the end of a segment cuts off most of the motif"
    _, whole, closer, *others = captions_of(report.read_text())
    assert end in whole
    assert "missing" not in whole
    assert "A closer look" in closer
    assert "grey" not in closer.lower()
    assert not [caption for caption in others if "grey" in caption.lower()]
    holes = X.copy()
    holes[:12] = np.nan
    recording = recording_of(holes, missing="mask").checked()
    write_report(tmp_path / "gap.html", model, recording)
    _, whole, closer, *others = captions_of((tmp_path / "gap.html").read_text())
    assert "Grey: missing." in whole
    assert "missing data hides or the end of a segment cuts off" in whole
    excerpt = Facts.gather(model, recording).excerpt
    assert excerpt[0] >= 12  # the gap is not in it
    assert not [caption for caption in (closer, *others) if "Grey: missing" in caption]


def test_events_that_are_cut_off_are_one_or_several(model):
    facts = Facts.gather(model, recording_of(X))
    for n, told in ((1, "Left out is 1 more, which"), (3, "Left out are 3 more, which")):
        assert told in tables.event_table(replace(facts, n_partial=n))


def test_the_bins_beside_what_was_held_out_are_told():
    """Shares of what was fitted and held out do not add up to all of the recording."""
    split = motifold.hold_out(X, 0.3, gap=7)
    model = CNMF(2, 8, random_state=0, tol=0.01).fit(X[split.train], segments=split.train_segments)
    model.held_out_ = split
    told = " ".join(sentences.warnings_of(Facts.gather(model, recording_of(X))))
    beside = len(X) - len(split.train) - len(split.test)
    assert beside > 0
    assert f"{beside} bins lie between the two and are in neither" in told


def test_a_start_that_is_alone_is_told(tmp_path):
    model = CNMF(2, 8, n_init=2, random_state=0, max_iter=3, tol=0).fit(X)
    model.start_losses_ = np.array([model.loss_, 2 * model.loss_])
    write_report(tmp_path / "alone.html", model, recording_of(X))
    text = (tmp_path / "alone.html").read_text()
    assert "<dd>no other of 2 agrees</dd>" in text
    assert "No other of 2 starts agrees with the best one." in text


def test_warnings_in_plain_words(model):
    other = Facts.gather(model, recording_of(X[:300] + 0.1, lengths=(200, 100)))
    assert not other.is_training
    assert "not the recording" in " ".join(sentences.warnings_of(other))
    assert other.fit.busiest(150)[1] <= 200
    facts = Facts.gather(model, recording_of(X))
    same = " ".join(sentences.warnings_of(facts))
    assert "The motifs are not tested" in same
    assert facts.significance is None
    assert "converged" not in same


def test_another_loss_is_told(tmp_path):
    counts = np.random.default_rng(0).poisson(2 * X).astype(float)
    model = CNMF(2, 8, beta_loss="kullback-leibler", random_state=0, tol=0.01).fit(counts)
    path = tmp_path / "report.html"
    write_report(path, model, Recording(counts, "counts.npy"))
    text = path.read_text()
    told = unescape(re.sub(r"<[^>]*>", " ", text))
    assert re.search(r"loss\s+Kullback-Leibler", told)
    assert re.search(rf"deviance explained\s+{100 * (1 - model.loss_):.1f}%", told)
    assert "power explained" not in told
    assert "share of deviance" in told
    assert "share of the recording's deviance" in told
    assert "motif's share of the recording's power" not in told


def test_a_fit_that_explains_little_says_of_what():
    noise = np.random.default_rng(0).poisson(0.5, (300, 6)).astype(float)
    for beta, what in ((1, "deviance"), (2, "power")):
        model = CNMF(1, 2, beta_loss=beta, random_state=0, max_iter=2, tol=0).fit(noise)
        model.activations_ *= 1e-3
        facts = Facts.gather(model, Recording(noise, "noise", lengths=(300,)))
        flat = replace(facts, fit=Decomposition.of(model, noise))
        assert f"% of the {what}: look" in " ".join(sentences.warnings_of(flat))


CHIRP = np.sin(2 * np.pi * np.cumsum(np.linspace(400, 1200, 800)) / 4000)
STARTS = (2000, 7000, 12000, 16000)


@pytest.fixture
def chirps(tmp_path) -> tuple[CNMF, Recording]:
    """Four chirps in some noise, five seconds at 4000 samples each."""
    soundfile = pytest.importorskip("soundfile")
    waveform = 0.01 * np.random.default_rng(0).standard_normal(20000)
    for start in STARTS:
        waveform[start : start + 800] += 0.5 * CHIRP
    path = tmp_path / "chirps.wav"
    soundfile.write(path, waveform, 4000)
    recording = read(path, window=128, scale="magnitude")
    return CNMF(1, 26, random_state=0).fit(recording.X), recording


def at_the_ends(clip, rate):
    """Share of its energy that a clip has in its first and last 5 ms."""
    edge = round(0.005 * rate)
    return (np.sum(clip[:edge] ** 2) + np.sum(clip[-edge:] ** 2)) / np.sum(clip**2)


def test_the_sound_of_a_motif(tmp_path, chirps):
    """The files add up to the recording: its length, its level, and no click at any end."""
    import soundfile

    _, recording = chirps
    model = CNMF(1, 26, background=True, random_state=0).fit(recording.X)
    path = tmp_path / "motif.wav"

    def samples(**options):
        write_sound(path, model, recording, **options)
        waveform, rate = soundfile.read(path)
        assert rate == 4000
        return waveform

    whole, rest = samples(), samples(motif=1)
    given, _ = soundfile.read(tmp_path / "chirps.wav")
    assert len(whole) == len(given)
    assert np.linalg.norm(given - whole - rest) < 1e-6 * np.linalg.norm(given)
    for start in STARTS:
        assert np.corrcoef(whole[start : start + 800], CHIRP)[0, 1] > 0.9
        assert np.abs(whole[start : start + 800]).max() == pytest.approx(0.5, rel=0.1)
    assert np.abs(whole[4000:6000]).max() < 0.02
    part = samples(time_range=(1.6, 2.4), activations=model.activations_)  # bins 200 to 300
    np.testing.assert_allclose(part, whole[6400:9600], atol=1e-4)
    for clip in (whole, part):
        assert at_the_ends(clip, 4000) < 0.01
    assert sorted(found.name for found in tmp_path.iterdir()) == ["chirps.wav", "motif.wav"]


def test_the_sound_of_a_recording_in_segments(tmp_path, chirps):
    """No motif reaches across: activations are found, and turned into sound, segment by segment."""
    _, recording = chirps
    model = CNMF(1, 26, background=True, random_state=0).fit(recording.X)
    halves = replace(recording, lengths=(260, recording.shape[0] - 260))  # within the second chirp
    H = model.transform(halves.X, lengths=halves.lengths)
    for name, options in {"a": {}, "b": {"activations": H}}.items():
        write_sound(tmp_path / name, model, halves, **options)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    write_sound(tmp_path / "c", model, recording)
    assert (tmp_path / "a").read_bytes() != (tmp_path / "c").read_bytes()


def test_the_recording_is_not_replaced(tmp_path, chirps):
    model, recording = chirps
    source = tmp_path / "chirps.wav"
    (tmp_path / "link.wav").symlink_to(source)
    before = source.read_bytes()
    for write in (write_sound, write_report):
        with pytest.raises(ValueError, match=r"link\.wav is the recording itself"):
            write(tmp_path / "link.wav", model, recording)
    assert source.read_bytes() == before


def test_what_cannot_be_heard(tmp_path, chirps):
    model, recording = chirps
    path = tmp_path / "motif.wav"
    for options, told in [
        ({"motif": 1}, "from 0 to 0"),
        ({"motif": -1}, "from 0 to 0"),
        ({"time_range": (3, 2)}, "0 to 5.008 seconds"),
        ({"time_range": (9, 12)}, "0 to 5.008 seconds"),
        ({"activations": model.activations_[1:]}, "activations must have shape"),
    ]:
        with pytest.raises(ValueError, match=told):
            write_sound(path, model, recording, **options)
    with pytest.raises(ValueError, match="no sound file"):
        write_sound(path, model, Recording(recording.X, "counts.npy", 10.0))
    assert not path.exists()


def test_motifs_are_heard(tmp_path, chirps):
    soundfile = pytest.importorskip("soundfile")
    model, recording = chirps
    write_report(tmp_path / "r.html", model, recording)
    clips = [
        attributes["src"] for name, attributes in Tags((tmp_path / "r.html").read_text()).found
        if name == "audio"
    ]  # fmt: skip
    assert len(clips) == 2
    samples = []
    for clip in clips:
        assert clip.startswith("data:audio/wav;base64,")
        with wave.open(io.BytesIO(base64.b64decode(clip.partition(",")[2]))) as file:
            assert file.getframerate() == 4000
            samples.append(np.frombuffer(file.readframes(file.getnframes()), "<i2"))
    motif, there = (part / 32767 for part in samples)
    assert np.corrcoef(motif, there)[0, 1] > 0.9  # the chirps are all there is
    given, _ = soundfile.read(recording.source)
    assert np.abs(there).max() == pytest.approx(0.8, rel=0.1)  # the recording's peak, and ...
    assert np.abs(motif).max() == pytest.approx(0.8, rel=0.1)  # ... the motif as loud as there
    assert max(at_the_ends(motif, 4000), at_the_ends(there, 4000)) < 0.01
    gain = 0.8 / np.abs(given).max()
    found = np.correlate(given, there, "valid").max()
    assert found * gain == pytest.approx(np.sum(there**2), rel=1e-3)  # it is a cut of the file


# --- in a browser ---------------------------------------------------------------------------


@pytest.fixture
def page(browser, report):
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    page.trouble = []
    page.on("console", lambda message: page.trouble.append(message.text))
    page.on("pageerror", lambda error: page.trouble.append(str(error)))
    page.on("request", lambda r: page.trouble.append(r.url) if r.url[:4] == "http" else None)
    page.goto(report.as_uri())
    yield page
    page.close()


def column(page, i):
    cells = page.locator(f"#events tbody tr:not([hidden]) td:nth-child({i + 1})")
    return [float(text) for text in cells.all_inner_texts()]


def test_no_errors_and_hostile_names_stay_inert(page):
    assert page.trouble == []
    assert page.evaluate("window.hacked") is None
    text = page.inner_text("body")
    assert HOSTILE[0] in text
    assert page.inner_text("h1") == "Motifs of a <b>bold<b> file.npy"
    assert page.evaluate("document.images.length") >= 5
    assert page.evaluate("Array.from(document.images).every(i => i.naturalWidth > 300)")


def test_the_table_sorts_and_filters(page):
    everything = column(page, 2)
    assert len(everything) >= 5
    strengths = column(page, 3)
    page.click("#events th:nth-child(3) button")
    assert column(page, 2) == sorted(everything)
    page.click("#events th:nth-child(3) button")
    assert column(page, 2) == sorted(everything, reverse=True)
    assert page.get_attribute("#events th:nth-child(3)", "aria-sort") == "descending"
    page.select_option("#which", "0")
    assert set(column(page, 0)) == {0}
    page.select_option("#which", "")
    least = sorted(strengths)[len(strengths) // 2] - 1e-3  # what is shown is rounded
    page.fill("#least", str(least))
    assert sorted(column(page, 3)) == sorted(value for value in strengths if value >= least)
    assert f"of {len(everything)} events" in page.inner_text("#shown")
    assert page.trouble == []


@pytest.mark.parametrize("width", [390, 1200])
def test_the_page_fits_its_window(page, width):
    page.set_viewport_size({"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_paper_has_the_strongest_events_only(page):
    everything = column(page, 2)
    assert len(everything) >= 5
    page.emulate_media(media="print")
    weak = page.locator("#events tr.weak")
    assert weak.count() == max(0, len(everything) - 60)
    assert not page.locator("p.controls").is_visible()
    assert page.locator("#events").is_visible()
    pages = page.pdf(format="A4").count(b"/Type /Page\n")
    assert 3 <= pages <= 9


def test_features_that_have_an_order_run_upwards():
    """Without numbers of their own, too: a song's frequencies are not upside down."""
    rng = np.random.default_rng(0)
    noise = rng.random((300, 30))
    smooth = np.apply_along_axis(np.convolve, 1, noise, np.ones(7), mode="same")
    for X, upwards in [(smooth, True), (noise, False)]:
        model = CNMF(1, 4, max_iter=2, tol=0, random_state=0).fit(X)
        facts = Facts.gather(model, Recording(X, "table", lengths=(300,)), sort=False)
        bottom, top = pictures.features_of(facts).limits
        assert (bottom < top) == upwards
        assert ("first is at the bottom" in sentences.order_of_features(facts)) == upwards


def test_a_table_is_downloaded_in_a_browser(page):
    """The page's own policy does not forbid it."""
    with page.expect_download() as waiting:
        page.click("a[download$='events.csv']")
    assert waiting.value.suggested_filename.endswith("events.csv")
    text = Path(waiting.value.path()).read_text()
    assert text.startswith("motif,segment,time")
    assert page.trouble == []
