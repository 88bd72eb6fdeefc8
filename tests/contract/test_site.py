"""The site: every name has an entry, every page loads, everything shown is run."""

import configparser
import doctest
import functools
import http.server
import importlib
import importlib.util
import pkgutil
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

HOME = Path(__file__).parents[2]
WRITTEN = {"docs/reference", "benchmarks/results"}  # by programs
PAGES = [
    name
    for path in sorted(HOME.rglob("*.md"))
    if not any(part.startswith((".", "build")) for part in path.parts)
    and path.parent.relative_to(HOME).as_posix() not in WRITTEN
    and (name := path.relative_to(HOME).as_posix())
]
BROWSER = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync"
).split()


@pytest.fixture(scope="module")
def reference():
    path = HOME / "docs" / "reference.py"
    spec = importlib.util.spec_from_file_location("reference", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the site, built without a warning."""
    for package in ("sphinx", "myst_nb", "pydata_sphinx_theme", "sphinx_copybutton"):
        pytest.importorskip(package, reason='the extra "docs" is not installed')
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-c", "docs"]
    done = subprocess.run(
        [*command, ".", str(folder)], cwd=HOME, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return folder


# Blocks of code that are wider than their page, or that have no button.
CUT = """() => [...document.querySelectorAll("article pre")]
    .filter(x => x.clientWidth && x.scrollWidth > x.clientWidth + 1)
    .map(x => x.textContent)"""
NOT_COPYABLE = """() => [...document.querySelectorAll("article div.highlight")]
    .filter(x => !x.querySelector("button.copybtn")).map(x => x.textContent)"""


def pages(site):
    """The pages of a site, without the theme's own, and the door that leads on."""
    found = sorted(page.relative_to(site).as_posix() for page in site.rglob("*.html"))
    return [p for p in found if not p.startswith("_static/") and p != "index.html"]


def left(request):
    """Whether a request failed because the next page was opened meanwhile."""
    return request.failure == "net::ERR_ABORTED"


@pytest.fixture(scope="module")
def address(site):
    """Where a server on this machine shows the site."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip(
        "playwright.sync_api", reason='the extra "docs" is not installed'
    )
    if BROWSER is None:
        pytest.skip("no Chromium on this machine")
    with playwright.sync_playwright() as tool:
        running = tool.chromium.launch(executable_path=BROWSER, args=FLAGS)
        yield running
        running.close()


@pytest.fixture
def tab(browser):
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    yield context.new_page()
    context.close()


FENCED = re.compile(r"^```(\S*)\n(.*?)^```$", re.S | re.M)
OURS = r"(?<![\w./-])(?:benchmarks|docs|examples|lantern|tests|\.ci)/[\w./-]+\w"


def indented(text):
    """The lines of blocks that are set off by four spaces."""
    for block in re.findall(r"(?<=\n\n)(?: {4}.*\n|\n(?= {4}))+", text):
        yield from block.splitlines()


class TestEverythingShownIsRun:
    """A block of a page is a doctest, a command, or a drawing."""

    @pytest.mark.parametrize("page", PAGES)
    def test_python_is_run(self, page, pytestconfig):
        text = (HOME / page).read_text("utf-8")
        examples = 0
        for language, block in FENCED.findall(text):
            shown = re.search(r"\b(import\b|def\b|lantern\.|print\()", block)
            if language in ("bash", "console") or language.startswith("{"):
                continue
            assert block.startswith(">>>") or not (language or shown), block
            found = doctest.DocTestParser().get_examples(block)
            examples += len(found)
            lines = sum((x.source + x.want).count("\n") for x in found)
            written = len([x for x in block.splitlines() if x.strip()])
            assert not found or lines == written, f"a part is not run: {block}"
            assert not any(doctest.SKIP in x.options for x in found), block
        assert len(doctest.DocTestParser().get_examples(text)) == examples
        for line in indented(FENCED.sub("", text)):
            assert not re.match(r" +(>>>|import |from \w+ import|def )", line), line
        where = pytestconfig.getini("testpaths")
        assert not examples or any(Path(page).is_relative_to(w) for w in where)

    @pytest.mark.parametrize("page", PAGES)
    def test_commands_name_what_is_there(self, page):
        text = (HOME / page).read_text("utf-8")
        blocks = [t for kind, t in FENCED.findall(text) if kind in ("bash", "console")]
        lines = [*"\n".join(blocks).splitlines(), *indented(FENCED.sub("", text))]
        setup = configparser.ConfigParser()
        setup.read(HOME / "setup.cfg", "utf-8")
        for line in lines:
            words = line.partition("  #")[0]
            for path in re.findall(OURS, words):
                assert (HOME / path).exists(), line
            for module in re.findall(r"python3? -m (\w+)", words):
                assert importlib.util.find_spec(module), line
            for extras in re.findall(r"(?:\.|lantern-ad)\[([\w,]+)\]", words):
                assert {*extras.split(",")} <= {*setup["options.extras_require"]}

    def test_every_readme_of_the_library_is_a_page_of_some_list(self):
        lists = [p.read_text("utf-8") for p in HOME.glob("docs/**/*.md")]
        found = {
            x for text in lists for x in re.findall(r"(lantern/\S*README)$", text, re.M)
        }
        rooms = {
            str(p.relative_to(HOME))[:-3] for p in HOME.glob("lantern/**/README.md")
        }
        assert rooms <= found

    def test_every_extra_is_told_of(self):
        setup = configparser.ConfigParser()
        setup.read(HOME / "setup.cfg", "utf-8")
        told = (HOME / "docs/install.md").read_text("utf-8")
        assert all(f"`{name}`" in told for name in setup["options.extras_require"])

    def test_figures_beside_peers_are_those_of_the_benchmarks(self):
        """To two digits: who measures again has two pages to change."""

        def figures(page):
            text = (HOME / page).read_text("utf-8")
            found = re.findall(r"(\d[\d.]*(?:e\+\d+)?) (µs|ms)\b", text)
            return {f"{float(x) * {'µs': 1, 'ms': 1e3}[unit]:.1e}" for x, unit in found}

        for page, least in (("docs/explanation/peers.md", 15), ("README.md", 10)):
            told = figures(page)
            assert len(told) > least
            assert told <= figures("benchmarks/README.md")

    def test_a_page_that_is_wrong_fails(self, tmp_path):
        page = tmp_path / "page.md"
        page.write_text("```python\n>>> 1 + 1\n3\n\n```\n", "utf-8")
        command = ["pytest", "-q", "-p", "no:cacheprovider", "-c", HOME / "setup.cfg"]
        done = subprocess.run(
            [sys.executable, "-m", *map(str, command), str(page)],
            cwd=HOME,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 1, done.stdout
        assert "1 failed" in done.stdout


def public_modules():
    """Every package, and every module that the reference or `lantern` names."""
    import lantern

    walked = pkgutil.walk_packages(lantern.__path__, "lantern.")
    names = ["lantern", *(found.name for found in walked if found.ispkg)]
    names += [f"lantern.{name}" for name in sorted(lantern._MODULES)]
    return list(dict.fromkeys(names))


def public_names(module):
    """What a module offers: `__all__`, or what is the library's own and not private."""
    names = {*getattr(module, "__all__", ())} or {
        name
        for name, value in vars(module).items()
        if str(getattr(value, "__module__", "")).startswith("lantern")
    }
    for lazy in ("_LATER", "_LAZY_FUNCTIONS", "_CONSTANTS"):
        names |= {*getattr(module, lazy, ())}
    return {n for n in names if not n.startswith("_")}


@pytest.fixture(scope="module")
def entries(reference):
    """The things that have an entry, and under which names."""
    text = "\n".join(text for _, text in reference.pages())
    directive = r"^\.\. \S+:: (\S+)$(?:\n   :module: (\S+)$)?"
    found = re.findall(directive, text, re.M)
    names = [f"{module}.{name}" if module else name for name, module in found]
    assert len(names) == len(set(names))
    found = {}
    for name in names:
        module, _, last = name.rpartition(".")
        found[name] = getattr(importlib.import_module(module), last)
    return found


class TestReference:
    @pytest.mark.parametrize("name", public_modules())
    def test_every_public_name_has_an_entry(self, name, entries):
        """Under its own name, or as the same thing under another one."""
        module = importlib.import_module(name)
        known = set(map(id, entries.values()))
        missing = {
            n
            for n in public_names(module)
            if f"{name}.{n}" not in entries
            and not isinstance(value := getattr(module, n), type(re))
            and id(value) not in known
        }
        assert missing == set()

    def test_every_module_that_is_imported_by_name_has_a_page(self, reference):
        import lantern

        slugs = {slug for slug, _ in reference.pages()}
        homes = {m.partition(".")[2].partition(".")[0] for m in slugs if "." in m}
        assert lantern._MODULES - homes == set()

    def test_what_matters_most_comes_first(self, reference):
        text = dict(reference.pages())["derivatives"]
        first = re.findall(r"autofunction:: (\S+)", text)[:3]
        assert first == ["lantern.grad", "lantern.value_and_grad", "lantern.vjp"]

    def test_a_tensor_has_the_methods_of_an_ndarray(self, reference):
        text = dict(reference.pages())["values"]
        options = re.search(r"autoclass:: lantern.Tensor\n((?:   :.*\n)*)", text)[1]
        (others,) = re.findall(":inherited-members: (.*)", options)
        assert {"Value", "StandardArray"} <= set(others.split(", "))
        assert "NdarrayMethods" not in others


class TestSite:
    pytestmark = pytest.mark.timeout(600)

    def test_pages_lead_only_to_what_is_there(self, site):
        """Also the links that Sphinx does not check, in HTML of the theme."""
        for page in pages(site):
            text = (site / page).read_text()
            for link in re.findall(r'(?:href|src)="([^"#?]+)', text):
                if not re.match(r"[a-z]+:", link):
                    assert (site / page).parent.joinpath(link).exists(), (page, link)

    def test_a_title_says_what_it_is_once(self, site):
        """And each page shows the version."""
        import lantern

        titles = {}
        for page in pages(site):
            text = (site / page).read_text()
            title = re.search(r"<title>(.*?)</title>", text, re.S)[1]
            assert title.count("Lantern") == 1, (page, title)
            assert titles.setdefault(title, page) == page
            if "/" in page:
                assert f"Lantern {lantern.__version__}" in text, page
        assert "Lantern: automatic differentiation for Python" in titles

    def test_every_entry_has_words(self, site):
        """``0.`` is the number of an empty item of a list."""
        address = r'<dt class="sig[^>]*id="([^"]+)".*?</dt>\s*<dd>(.*?)</dd>'
        for page in (site / "docs" / "reference").glob("*.html"):
            for name, words in re.findall(address, page.read_text(), re.S):
                assert re.sub("<[^>]+>", "", words).strip(), name

    def test_a_second_name_has_an_address(self, site):
        """Of a function, and of a function that is a method too."""
        folder = site / "docs" / "reference"
        assert (
            'id="lantern.torch.absolute"' in (folder / "lantern.torch.html").read_text()
        )
        tensors = (folder / "lantern.torch.Tensor.html").read_text()
        assert 'href="lantern.torch.html#lantern.torch.absolute"' in tensors
        assert 'id="lantern.torch.Tensor.absolute"' in tensors

    def test_every_page_loads(self, site, address, tab):
        """Without errors or the network, on a desk and on a telephone."""
        wrong = []
        tab.on("console", lambda m: m.type == "error" and wrong.append(m.text))
        tab.on("pageerror", lambda error: wrong.append(str(error)))
        tab.on("requestfailed", lambda r: left(r) or wrong.append(r.url))
        tab.on("request", lambda r: r.url.startswith(address) or wrong.append(r.url))
        for name in pages(site):
            tab.set_viewport_size({"width": 1280, "height": 900})
            tab.goto(address + name)
            assert tab.title(), name
            assert "notebooks" not in name or tab.evaluate(CUT) == [], name
            assert tab.evaluate(NOT_COPYABLE) == [], name
            tab.set_viewport_size({"width": 390, "height": 844})
            width = tab.evaluate("document.documentElement.scrollWidth")
            assert (name, width) <= (name, 390)
            assert wrong == [], name

    @pytest.mark.parametrize(
        ("words", "page"),
        [
            ("checkpoint", "docs/control.html"),
            ("nan", "docs/howto/nan.html"),
            ("perturbation", "examples/notebooks/06_perturbation_confusion.html"),
            ("custom_rule", "docs/reference/rules.html#lantern.custom_rule"),
            ("lantern.torch.save", "docs/reference/lantern.torch.html"),
            ("Tensor.cumsum", "docs/reference/lantern.torch.Tensor.html"),
        ],
    )
    def test_search_finds(self, words, page, address, tab):
        tab.goto(f"{address}search.html?q={words}")
        tab.wait_for_selector("#search-results li a")
        tab.wait_for_function(
            "!document.querySelector('#search-progress')?.textContent"
        )
        found = tab.eval_on_selector_all(
            "#search-results a", "all => all.map(a => a.href)"
        )
        assert any(page in link for link in found)

    def test_the_player_plays(self, address, tab):
        tab.goto(f"{address}examples/notebooks/04_reverse_mode.html")
        player = tab.locator("div[id^=lantern-]")
        assert "0 / 10" in player.inner_text()
        player.get_by_title("one step on").click()
        assert "1 / 10" in player.inner_text()
        player.get_by_title("play or stop").click()
        player.get_by_text("10 / 10").wait_for()

    def test_a_picture_grows_when_it_is_touched(self, address, tab):
        tab.set_viewport_size({"width": 390, "height": 844})
        tab.goto(f"{address}examples/notebooks/07_control_flow.html")
        picture = tab.locator("div.cell_output img").first
        assert picture.bounding_box()["width"] < 390
        picture.click()
        assert picture.bounding_box()["width"] > 600

    def test_code_can_be_copied(self, address, tab):
        tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
        tab.goto(address)
        tab.wait_for_url("**/docs/index.html")
        blocks = tab.locator("div.highlight")
        buttons = tab.locator("button.copybtn")
        buttons.first.wait_for(state="attached")
        assert buttons.count() == blocks.count() > 0
        blocks.nth(1).hover()
        buttons.nth(1).click()
        copied = tab.evaluate("navigator.clipboard.readText()")
        assert copied.startswith("import numpy as np\nimport lantern\ndef loss")
        assert "array(" not in copied.splitlines()[-1]
