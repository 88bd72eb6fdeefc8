"""The tables of docs/torch.md, between two marks."""

from collections import Counter
from pathlib import Path

import torch_reasons

BEGIN, END = "<!-- operators: begin -->", "<!-- operators: end -->"
COLUMNS = ("function", "method", "in place", "error")


def label(record):
    """The name of an operator, and of its variant."""
    return f"{record.name} ({record.variant})" if record.variant else record.name


def share(record, what):
    """How many of the samples pass, as a cell."""
    total = record.counts[what]
    if not total:
        return ""
    passed = record.counts[f"{what} passed"]
    return f"{passed}" if passed == total else f"{passed} of {total}"


def reason(record):
    """Why an operator differs: what is known of it, else the first difference."""
    known = torch_reasons.REASONS.get(record.name)
    if known:
        return known
    text = record.differences.most_common(1)[0][0]
    return text.replace("|", "\\|").replace("\n", " ")


def rows(records, last=None):
    """A table with a line for each operator."""
    head = ["operator", *COLUMNS] + (["what differs"] if last else [])
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for r in records:
        cells = [f"`{label(r)}`", *(share(r, what) for what in COLUMNS)]
        cells += [last(r)] if last else []
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def text(found, versions):
    """All tables, as lines."""
    by_status = {s: [] for s in ("passes", "differs", "absent")}
    for r in found:
        by_status[r.status].append(r)
    names = {s: len({r.name for r in rs}) for s, rs in by_status.items()}
    samples = Counter()
    for r in found:
        samples.update(r.counts)
    total = sum(samples[c] for c in COLUMNS)
    passed = sum(samples[f"{c} passed"] for c in COLUMNS)
    head = (
        f"{versions}: of {len(found)} records ({len({r.name for r in found})} "
        f"operators) {len(by_status['passes'])} pass, {len(by_status['differs'])} "
        f"differ, {len(by_status['absent'])} are absent. {names['passes']} operators "
        f"pass whole; {passed} of {total} samples pass.\n\n"
        "The columns count samples: as a function, as a method, in place, and inputs "
        "that are errors. A sample passes if values, types, shapes and gradients are "
        "PyTorch's, an error if its class is.\n"
    )
    lines = [
        head,
        "### What differs",
        "",
        *rows(by_status["differs"], reason),
        "",
        "### What is absent",
        "",
    ]
    for why, group in grouped(by_status["absent"]):
        lines += [f"* {why}: " + ", ".join(f"`{label(r)}`" for r in group)]
    return [*lines, "", "### What passes", "", *rows(by_status["passes"]), ""]


def grouped(records):
    """Absent operators by the reason for it."""
    groups = {}
    for r in records:
        why = next(
            (w for w, ns in torch_reasons.ABSENT.items() if matches(r.name, ns)),
            "not written yet",
        )
        groups.setdefault(why, []).append(r)
    return groups.items()


def matches(name, patterns):
    """Whether a name is one of some, or begins as one that ends in an asterisk."""
    return any(
        name.startswith(p[:-1]) if p.endswith("*") else name == p
        for p in patterns.split()
    )


def write(path, found):
    """Put the tables into the page."""
    import numpy
    import torch

    page = Path(path).read_text()
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    versions = (
        f"PyTorch {torch.__version__.partition('+')[0]}, NumPy {numpy.__version__}"
    )
    lines = "\n".join(text(found, versions))
    Path(path).write_text(f"{before}{BEGIN}\n{lines}\n{END}{after}")
