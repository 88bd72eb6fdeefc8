"""The tables of docs/torch.md, between two marks."""

from collections import Counter
from pathlib import Path

import torch_reasons

BEGIN, END = "<!-- operators: begin -->", "<!-- operators: end -->"
# A kind of records: how its names begin, what the samples count as, and what it says.
KINDS = {
    "Functions of neural networks": (
        "nn.functional.",
        ("function", "in place", "error"),
    ),
    "Modules": ("nn.", ("training", "evaluating", "error")),
    "Optimisers": ("optim.", ("steps", "error")),
    "Operators": ("", ("function", "method", "in place", "error")),
}
HEAD = (
    "The columns below count samples: as a function, as a method, in place; of a "
    "module while training and not; of an optimiser some steps with each choice of "
    "options; and inputs that are errors. A sample passes if values, types, shapes and "
    "gradients are PyTorch's (of a module also how it prints, and its state), an error "
    "if its class is."
)


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


def rows(records, columns, last=None):
    """A table with a line for each record."""
    head = ["name", *columns] + (["what differs"] if last else [])
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for r in records:
        cells = [f"`{label(r)}`", *(share(r, what) for what in columns)]
        cells += [last(r)] if last else []
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def kind_of(record):
    """Which kind of record it is."""
    return next(kind for kind, (start, _) in KINDS.items() if begins(record, start))


def begins(record, start):
    """Whether the name of a record begins so."""
    return record.name.startswith(start)


def summary(kind, records):
    """What came of all records of a kind, as a line of a table."""
    samples, columns = Counter(), KINDS[kind][1]
    for r in records:
        samples.update(r.counts)
    total = sum(samples[c] for c in columns)
    passed = sum(samples[f"{c} passed"] for c in columns)
    statuses = Counter(r.status for r in records)
    words = [str(statuses[status]) for status in ("passes", "differs", "absent")]
    names = len({r.name for r in records if r.status == "passes"})
    return f"| {kind} | {' | '.join(words)} | {names} | {passed} of {total} |"


def text(found, versions):
    """All tables, as lines."""
    by_kind = {kind: [r for r in found if kind_of(r) == kind] for kind in KINDS}
    lines = [
        f"{versions}. A record is an operator, or one of its variants.",
        "",
        "| records | pass | differ | absent | names that pass | samples that pass |",
        "|---" * 6 + "|",
        *(summary(kind, records) for kind, records in reversed(by_kind.items())),
        "",
        HEAD,
        "",
    ]
    for status, title in (("differs", "What differs"), ("passes", "What passes")):
        if status == "passes":
            lines += ["### What is absent", "", *absent(found), ""]
        lines += [f"### {title}", ""]
        for kind, records in reversed(by_kind.items()):
            chosen = [r for r in records if r.status == status]
            last = reason if status == "differs" else None
            if chosen:
                lines += [f"#### {kind}", "", *rows(chosen, KINDS[kind][1], last), ""]
    return lines


def absent(found):
    """What is absent, and why, as a list."""
    groups = grouped([r for r in found if r.status == "absent"])
    for why, group in groups:
        yield f"* {why}: " + ", ".join(f"`{label(r)}`" for r in group)


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
