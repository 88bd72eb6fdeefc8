"""The pictures say what is so, nothing overlaps in them, and they can be written."""

import json
import re
import subprocess
import sys
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

import lantern
from lantern import viz
from lantern.viz import drawing


def paper(x):
    return 2 * x + x * x * x


def mlp(w, x):
    for layer in w:
        x = np.tanh(x @ layer["w"] + layer["b"])
    return (x * x).mean()


@pytest.fixture
def layers():
    rng = np.random.default_rng(0)
    return [{"w": rng.normal(size=(4, 4)), "b": np.zeros(4)} for _ in range(2)]


@pytest.fixture
def drawn():
    pytest.importorskip("matplotlib", reason="the extra 'viz'")


class TestTrace:
    def test_the_text(self):
        assert str(viz.trace(paper, 3.0)).splitlines() == [
            "there                    back again",
            "x = 3                    x_bar = 29",
            "│ a = 2 * x = 6          a_bar = 1 → x 2",
            "│ │ b = x * x = 9        b_bar = 3 → x 9, x 9",
            "│ │ │ c = b * x = 27     c_bar = 1 → b 3, x 9",
            "│ │ │ │ d = a + c = 33   d_bar = 1 → a 1, c 1",
        ]

    def test_it_agrees_with_grad(self, layers):
        x = np.ones((3, 4))
        picture = viz.trace(mlp, layers, x, argnums=0)
        expected = lantern.tree_leaves(lantern.grad(mlp)(layers, x))
        for entry, g in zip(picture.inputs, expected, strict=True):
            np.testing.assert_array_equal(entry.cotangent, g)
        assert picture.value == mlp(layers, x)
        assert picture.inputs[0].name == "w[0]['w']"
        names = [x.expression for x in picture.operations]
        assert "a + w[0]['b']" in names
        assert picture.result == picture.operations[-1].name

    def test_what_is_not_needed_says_so(self):
        def f(x, y):
            x * y
            return x + 1.0

        picture = viz.trace(f, 2.0, 3.0)
        assert picture.operations[0].cotangent is None
        assert "a is not needed" in str(picture)
        assert picture.inputs[1].cotangent == 0.0

    def test_long_names_leave_room_for_what_is_known(self, drawn):
        picture = viz.trace(long_names, 2.0, 3.0)
        shown = {text for text, _ in texts(picture.figure())}
        assert any(x.startswith("weights_of") and x.endswith(" = 2") for x in shown)
        assert any(x.endswith("_bar = 3") for x in shown)

    def test_a_constant_and_an_input_as_results(self):
        assert viz.trace(lambda x: 5.0, 2.0).result == ""
        assert viz.trace(lambda x: x, 2.0).result == "x"

    def test_constants_keep_their_places(self):
        names = [
            x.expression
            for x in viz.trace(
                lambda x: lantern.arctan2(2.0, x) - lantern.sum(-x, axis=None), 3.0
            ).operations
        ]
        assert names[0] == "atan2(2, x)"
        assert names[1] == "-x"

    def test_many_operations_are_left_out_in_the_middle(self):
        def f(x):
            for _ in range(100):
                x = x * 1.01
            return x

        picture = viz.trace(f, 1.0, most=10)
        assert len(picture.operations) == 100
        assert "90 more" in str(picture)
        assert len(picture.shown()) == 11

    def test_errors_are_those_of_grad_and_leave_nothing(self, probe):
        with pytest.raises(lantern.NotScalarError):
            viz.trace(lambda x: x * np.ones(2), 1.0)
        with pytest.raises(ZeroDivisionError):
            viz.trace(lambda x: x / 0, 1.0)

    def test_checkpoints_have_a_row(self):
        picture = viz.trace(lambda x: lantern.checkpoint(lantern.sin)(x) * 2.0, 1.0)
        assert picture.inputs[0].cotangent == pytest.approx(2 * np.cos(1.0))
        assert len(picture.operations) == 3

    def test_several_results_complex_numbers_and_fractions(self):
        lines = str(viz.trace(lambda x: np.linalg.eigh(x)[0].sum(), np.eye(3)))
        assert "a = eigh(x) = 2 values" in lines
        assert "x * (0+1j) = (0+2j)" in str(viz.trace(lambda x: (x * 1j).imag, 2.0))
        assert "x_bar = 2/3" in str(viz.trace(lambda x: x * x, Fraction(1, 3)))


class TestFlow:
    def test_sizes(self):
        g = {"a": np.array([3.0, -4.0]), "b": [np.zeros(2), 2.0, np.array([1, np.nan])]}
        spreads = viz.gradient_flow(g).spreads
        assert [s.name for s in spreads] == ["a", "b/0", "b/1", "b/2"]
        sizes = [s.size for s in spreads]
        assert sizes == pytest.approx([12.5**0.5, 0.0, 2.0, 1.0])
        assert [s.remark for s in spreads] == ["", "all zero", "", "1 not finite"]

    def test_huge_and_tiny_sizes(self):
        for x in (1e-300, 1e300):
            assert viz.gradient_flow(np.full(3, x)).spreads[0].size == pytest.approx(x)

    def test_sizes_at_both_ends_of_the_floats(self, drawn):
        picture = viz.gradient_flow([np.array([5e-324]), np.full(2, -1.7e308)])
        shown = {text for text, _ in texts(picture.figure())}
        assert sum(text.startswith("10") for text in shown) > 5
        assert [s.remark for s in picture.spreads] == ["", ""]

    def test_complex_empty_and_nothing(self):
        assert viz.gradient_flow(np.array([3 + 4j])).spreads[0].size == 5.0
        assert viz.gradient_flow(np.zeros((0, 2))).spreads[0].remark == "all zero"
        with pytest.raises(lantern.ArgumentError, match="no gradient"):
            viz.gradient_flow({})


class TestCost:
    def test_calls_and_memory(self):
        def f(x):
            for _ in range(4):
                x = lantern.tanh(x)
            return x.sum()

        picture = viz.cost(f, np.ones(10_000))
        calls = {x.name: x.calls for x in picture.operations}
        assert calls == {"tanh": 4, "sum": 1}
        assert all(x.there > 0 and x.back > 0 for x in picture.operations)
        assert len(picture.there) == len(picture.back) == 5
        growth = np.diff(picture.there[:4])
        np.testing.assert_allclose(growth, 80_000, rtol=0.1)
        assert picture.peak >= 320_000
        assert picture.back[-1] < 200_000
        assert "tanh ×4: x = lantern.tanh(x)" in str(picture)

    def test_tracemalloc_is_left_as_it_was(self, probe):
        import tracemalloc

        with pytest.raises(lantern.NotScalarError):
            viz.cost(lambda x: x * np.ones(2), 1.0)
        assert not tracemalloc.is_tracing()


def read_dot(text):
    """The nodes and edges of a graph in Graphviz's language, one in each line."""
    begin, _, _, *lines, end = text.split("\n")
    assert (begin, end) == ("digraph {", "}")
    string = r'"(?:[^"\\]|\\.)*"'
    said = rf"(?:\w+={string}(?:, )?)*"
    found = {}
    for line in lines:
        match = re.fullmatch(rf"({string})(?: -> ({string}))? \[({said})\]", line)
        names = tuple(json.loads(x) for x in match.groups()[:2] if x)
        words = re.findall(rf"(\w+)=({string})", match[3])
        found.setdefault(names, []).append({k: json.loads(x) for k, x in words})
    return found


class TestDot:
    def test_a_tree_in_its_order_with_colours_and_any_letters(self):
        odd = 'say "no"\\n, π'
        sizes = {"b": -1.0, odd: 2.0}
        found = read_dot(viz.tree(("b", (odd, "c")), value=sizes.get).to_dot())
        assert [x for x in found if len(x) == 2] == [
            ("0", "1"), ("0", "2"), ("2", "3"), ("2", "4"),
        ]  # fmt: skip
        assert found["3",][0]["label"] == f"{odd}\n2"
        assert found["3",][0]["fillcolor"] == "#d55e00"
        assert found["4",] == [{"label": "c"}]

    def test_a_trace_tells_each_contribution(self):
        found = read_dot(viz.trace(lambda x: x * x + lantern.floor(x), 3.0).to_dot())
        assert found["a", "x"] == [{"label": "3"}, {"label": "3"}]
        assert found["x",] == [{"label": "x = 3\nx_bar = 6"}]


class TestTree:
    def test_text(self):
        picture = viz.tree((("not", "good"), "."), value=len)
        assert str(picture).splitlines() == [
            "● 2",
            "├── ● 2",
            "│   ├── not 3",
            "│   └── good 4",
            "└── . 1",
        ]

    def test_too_many_nodes(self):
        with pytest.raises(lantern.ArgumentError, match="more than"):
            viz.tree(list(range(500)))

    def test_a_node_whose_children_never_end(self):
        with pytest.raises(lantern.ArgumentError, match="more than 500 nodes"):
            viz.tree(0, children=lambda n: [n + 1])

    def test_a_deep_tree(self, drawn):
        chain = "leaf"
        for _ in range(499):
            chain = [chain]
        picture = viz.tree(chain)
        assert str(picture).splitlines()[-1].endswith("└── leaf")
        assert picture.figure().get_size_inches()[0] == 3.0

    def test_a_wide_tree_fits_the_width_of_a_page(self, drawn):
        picture = viz.tree([f"a word, number {i}" for i in range(60)], value=len)
        width, height = picture.figure().get_size_inches()
        assert width < 10 < height

    def test_labels_are_shown_as_they_are(self, drawn):
        picture = viz.tree(("$x_1", "$", "two\nlines"))
        shown = {text for text, _ in texts(picture.figure())}
        assert shown == {"$x_1", "$", "two lines"}


def labels_beyond(axis):
    """The labels of ticks outside the view, which are not drawn."""
    low, high = sorted(axis.get_view_interval())
    for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
        if not low <= tick.get_loc() <= high:
            yield tick.label1


def texts(figure):
    """All that is written, with the place that it takes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    axes = [axis for ax in figure.axes for axis in (ax.xaxis, ax.yaxis)]
    beyond = {id(label) for axis in axes for label in labels_beyond(axis)}
    found = figure.findobj(lambda x: type(x).__name__ in ("Text", "Annotation"))
    for text in found:
        if text.get_visible() and text.get_text().strip() and id(text) not in beyond:
            yield text.get_text(), text.get_window_extent(renderer)


def long_names(weights_of_the_first_hidden_layer_of_the_encoder, another_name):
    return weights_of_the_first_hidden_layer_of_the_encoder * another_name


def odd_pictures():
    """Of inputs that nobody has drawn a picture for."""
    right = "end"
    for i in range(40):
        right = (f"w{i}", right)
    flow = {"name." * 12: np.array([1e-300, 1e300]), "b": np.array([np.nan, np.inf])}
    values = [1e300, (-1e300, float("nan")), float("inf")]
    return {
        "long names": viz.trace(long_names, -1.2345e200, 3.0),
        "one": viz.tree("x"),
        "wide": viz.tree(list(range(80)), value=lambda x: 0 if x == [] else -1.5),
        "right": viz.tree(right, value=len),
        "huge": viz.tree(values, value=lambda x: x if isinstance(x, float) else None),
        "extremes": viz.gradient_flow(flow),
        "nothing": viz.gradient_flow(np.zeros(3)),
        "no operation": viz.cost(lambda x: 5.0, 2.0),
    }


def pictures(layers):
    deep = {f"layer {i}": np.full(3, 10.0**-i) for i in range(6)}
    x = np.ones((3, 4))
    return {
        "paper": viz.trace(paper, 3.0),
        "loop": viz.trace(lambda x: sum(lantern.sin(x * i) for i in range(9)), 1.0),
        "arrays": viz.trace(mlp, layers, x, argnums=0),
        "constant": viz.trace(lambda x: 5.0, 2.0),
        "flow": viz.gradient_flow(deep | {"none": np.zeros(2)}),
        "cost": viz.cost(mlp, layers, x),
        "tree": viz.tree(((("a", "b"), "word"), ("c", ("dd", "e"))), value=len),
    }


NAMES = "paper loop arrays constant flow cost tree".split()
ODD = [
    *("long names", "one", "wide", "right", "huge"),
    *("extremes", "nothing", "no operation"),
]


@pytest.mark.parametrize("name", [*NAMES, *ODD])
def test_nothing_overlaps_or_is_cut_off(name, layers, drawn):
    figure = {**pictures(layers), **odd_pictures()}[name].figure()
    whole = figure.bbox
    found = list(texts(figure))
    assert found
    for text, box in found:
        assert box.x0 >= whole.x0 - 1, text
        assert box.x1 <= whole.x1 + 1, text
        assert box.y0 >= whole.y0 - 1, text
        assert box.y1 <= whole.y1 + 1, text
    for (a, one), (b, other) in combinations(found, 2):
        assert not one.padded(-1).overlaps(other.padded(-1)), (a, b)


@pytest.mark.parametrize("name", NAMES)
def test_written_and_shown(name, layers, drawn, tmp_path):
    picture = pictures(layers)[name]
    assert picture._repr_svg_().count("<svg") == 1
    assert picture._repr_svg_() == picture._repr_svg_()
    assert len(picture._repr_svg_()) < 150_000
    for kind, head in (("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")):
        path = picture.save(tmp_path / f"{name}.{kind}")
        assert path.read_bytes().startswith(head)
    with pytest.raises(lantern.ArgumentError, match=r"\.png"):
        picture.save(tmp_path / "picture.bmp")


# What is left of red, green and blue light to those who lack one kind of cone.
# Machado, Oliveira and Fernandes (2009), "A physiologically-based model".
BLIND = {
    "protanopia": "0.152 1.053 -0.205 0.115 0.786 0.099 -0.004 -0.048 1.052",
    "deuteranopia": "0.367 0.861 -0.228 0.280 0.673 0.047 -0.012 0.043 0.969",
    "tritanopia": "1.256 -0.077 -0.179 -0.078 0.931 0.148 0.005 0.691 0.304",
}
XYZ = "0.4124 0.3576 0.1805 0.2126 0.7152 0.0722 0.0193 0.1192 0.9505"


def light(colour):
    """The amounts of red, green and blue light in a colour as #RRGGBB."""
    values = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(values > 0.04045, ((values + 0.055) / 1.055) ** 2.4, values / 12.92)


def lab(rgb):
    """CIELAB: distances in it are differences that people see."""
    whole = np.array(XYZ.split(), float).reshape(3, 3)
    x, y, z = np.cbrt(np.clip(whole @ rgb / (whole @ np.ones(3)), 0.009, None))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_colours_can_be_read_on_white():
    for name in ("INK", "SOFT", "THERE", "BACK", "INPUT"):
        brightness = light(getattr(drawing, name)) @ [0.2126, 0.7152, 0.0722]
        assert 1.05 / (brightness + 0.05) >= 4.5, name  # what WCAG asks of small text


@pytest.mark.parametrize("kind", BLIND)
def test_everyone_can_tell_the_colours_apart(kind):
    seen = np.array(BLIND[kind].split(), float).reshape(3, 3)
    colours = [getattr(drawing, name) for name in ("THERE", "BACK", "INPUT", "MARK")]
    for one, other in combinations(colours, 2):
        difference = lab(seen @ light(one)) - lab(seen @ light(other))
        assert np.linalg.norm(difference) > 15, (one, other)


@pytest.mark.parametrize("name", ["flow", "cost", "tree"])
def test_a_layout_that_the_user_prefers_moves_nothing(name, layers, drawn):
    matplotlib = pytest.importorskip("matplotlib", reason="the extra 'viz'")
    with matplotlib.rc_context({"figure.constrained_layout.use": True}):
        assert "<svg" in pictures(layers)[name]._repr_svg_()


class TestPlayer:
    def test_each_step_shows_more_or_less(self, drawn):
        player = viz.trace(paper, 3.0).play()
        assert player.steps == 11

        def seen(step):
            return {text for text, _ in texts(player.frame(step))}

        assert "a = 2 * x = 6" not in seen(0)
        assert "a = 2 * x = 6" in seen(1)
        assert "c_bar = 1 → b 3, x 9" not in seen(6)
        assert "c_bar = 1 → b 3, x 9" in seen(7)
        assert "x_bar = 29" in seen(10)
        assert "waits" not in seen(10)
        with pytest.raises(lantern.ArgumentError, match="steps 0 to 10"):
            player.frame(11)

    def test_files(self, drawn, tmp_path):
        player = viz.trace(paper, 3.0).play(0.5)
        image = player.save(tmp_path / "a.gif").read_bytes()
        assert image.startswith(b"GIF89a")
        assert b"NETSCAPE2.0" in image
        moving = player.save(tmp_path / "a.svg").read_text("utf-8")
        names = set(re.findall(r'class="(from-\d+-\d+)"', moving))
        assert names == set(re.findall(r"@keyframes (from-\d+-\d+)", moving))
        page = player.save(tmp_path / "a.html").read_text("utf-8")
        assert page == player._repr_html_()
        assert len(page) < 150_000
        with pytest.raises(lantern.ArgumentError, match=r"\.gif"):
            player.save(tmp_path / "a.png")


WITHOUT = """
import sys
sys.modules["matplotlib"] = None
import lantern
picture = lantern.viz.trace(lambda x: x * x, 3.0)
print(picture)
try:
    picture.save("a.png")
except lantern.MissingExtraError as error:
    print(error)
"""


def test_without_matplotlib_there_is_the_text_and_an_error_that_says_what_to_do():
    run = [sys.executable, "-W", "error", "-c", WITHOUT]
    found = subprocess.run(run, capture_output=True, encoding="utf-8", check=True)
    assert "x_bar = 6" in found.stdout
    assert "pip install matplotlib," in found.stdout


def test_a_module_shows_its_parameters_as_inputs():
    import lantern.torch as torch

    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Tanh())
    picture = viz.trace(model, torch.ones(4, 2))
    names = [x.name for x in picture.inputs]
    assert names == ["input", "0.weight", "0.bias"]
    written = [x.expression.partition("(")[0] for x in picture.operations]
    assert written == ["affine", "tanh", "sum"]
    model(torch.ones(4, 2)).sum().backward()
    for x, p in zip(picture.inputs[1:], model.parameters(), strict=True):
        assert np.allclose(x.cotangent, p.grad.numpy())
