"""The site: every name has an entry, every page loads, everything shown is run."""

import functools
import http.server
import importlib.util
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

HOME = Path(__file__).parent.parent
PAGES = [
    *("README.md", "CONTRIBUTING.md"),
    *(
        path.relative_to(HOME).as_posix()
        for folder in ("docs", "lantern")
        for path in sorted((HOME / folder).rglob("*.md"))
        if path.parent != HOME / "docs" / "reference"  # written by the build
    ),
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


class TestEverythingShownIsRun:
    """A block of a page is a doctest, a command, or a drawing."""

    @pytest.mark.parametrize("page", PAGES)
    def test_blocks(self, page):
        blocks = re.findall(
            r"^```(\S*)\n(.*?)^```$", (HOME / page).read_text(), re.S | re.M
        )
        for language, text in blocks:
            shown = re.search(r"\b(import|def|lantern\.|print\()", text)
            if language not in ("bash", "console") and not language.startswith("{"):
                assert text.startswith(">>>") or not (language or shown), text

    def test_pages_are_collected(self, pytestconfig):
        where = pytestconfig.getini("testpaths")
        assert all(any(Path(page).is_relative_to(w) for w in where) for page in PAGES)


class TestReference:
    def test_every_public_name_has_an_entry(self, reference):
        import lantern

        text = "\n".join(text for _, text in reference.pages())
        entries = set(re.findall(r"^\.\. \S+:: (lantern\S*)$", text, re.M))
        names = {*vars(lantern), *lantern._LATER}
        modules = {n for n in names if isinstance(getattr(lantern, n), type(re))}
        public = {n for n in names - modules if not n.startswith("_")}
        assert {f"lantern.{n}" for n in public} - entries == set()

    def test_every_module_that_is_imported_by_name_has_a_page(self, reference):
        import lantern

        slugs = {slug for slug, _ in reference.pages()}
        homes = {m.partition(".")[2].partition(".")[0] for m in slugs if "." in m}
        assert lantern._MODULES - homes == set()


class TestSite:
    pytestmark = pytest.mark.timeout(600)

    def test_pages_lead_only_to_what_is_there(self, site):
        """Also the links that Sphinx does not check, in HTML of the theme."""
        for page in pages(site):
            text = (site / page).read_text()
            for link in re.findall(r'(?:href|src)="([^"#?]+)', text):
                if not re.match(r"[a-z]+:", link):
                    assert (site / page).parent.joinpath(link).exists(), (page, link)

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
            tab.set_viewport_size({"width": 390, "height": 844})
            width = tab.evaluate("document.documentElement.scrollWidth")
            assert (name, width) <= (name, 390)
            assert wrong == [], name

    def test_search_finds(self, address, tab):
        tab.goto(f"{address}search.html?q=checkpoint")
        tab.wait_for_selector("#search-results li a")
        found = tab.eval_on_selector_all(
            "#search-results a", "all => all.map(a => a.href)"
        )
        assert any("docs/control.html" in link for link in found)

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
