"""The version stands in four places, and is the same in all."""

import configparser
import re
from pathlib import Path

import lantern

HOME = Path(__file__).parents[2]


def test_the_version_is_the_same_everywhere():
    setup = configparser.ConfigParser()
    setup.read(HOME / "setup.cfg", "utf-8")
    citation = (HOME / "CITATION.cff").read_text("utf-8")
    changes = (HOME / "CHANGELOG.md").read_text("utf-8")
    (latest, *_) = re.findall(r"^## \[(\d[\d.]*)\]", changes, re.MULTILINE)
    (cited,) = re.findall(r"^version: (.*)$", citation, re.MULTILINE)
    assert setup["metadata"]["version"] == lantern.__version__ == latest == cited


def test_every_file_at_the_top_is_in_the_source_distribution():
    told = (HOME / "MANIFEST.in").read_text("utf-8")
    missing = [p.name for p in HOME.glob("*.[mc][df]*") if p.name not in told]
    assert set(missing) <= {"README.md", "setup.cfg"}  # these are there of themselves
