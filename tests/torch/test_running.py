"""``python -m lantern.torch SCRIPT``: the script runs as it would, on Lantern."""

import os
import subprocess
import sys

import pytest

# What Python writes under a call, from 3.13 on, even if it is all of its line.
MARKS = "    ~^^\n" if sys.version_info >= (3, 13) else ""
SCRIPTS = {
    "trains": (
        """
import torch
import torch.linalg as la
from torch import tensor, func
from torch.autograd import Function
import torch.autograd.functional as AF
w = tensor([1.0, 2.0], requires_grad=True)
(w * w).sum().backward()
print(torch.__name__, w.grad, la.norm(w.detach()).item() > 2)
print(isinstance(w, torch.Tensor), Function.__name__, AF.jacobian.__name__)
""",
        (),
        0,
        "torch tensor([2., 4.]) True\nTrue Function jacobian\n",
        "",
    ),
    "has its arguments and its name": (
        """
import sys, os
print(__name__, sys.argv[1:], os.path.basename(sys.argv[0]), os.path.basename(__file__))
""",
        ("--epochs", "3", "-h"),
        0,
        "__main__ ['--epochs', '3', '-h'] script.py script.py\n",
        "",
    ),
    "exits": ("import sys\nsys.exit(7)", (), 7, "", ""),
    "pickles its classes": (
        "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))))",
        (),
        0,
        "<class '__main__.A'>\n",
        "",
    ),
    "fails": (
        "def f():\n    raise KeyError('x')\n\nf()\n",
        (),
        1,
        "",
        f"""Traceback (most recent call last):
  File "script.py", line 4, in <module>
    f()
{MARKS}  File "script.py", line 2, in f
    raise KeyError('x')
KeyError: 'x'
""",
    ),
    "is no Python": (
        "x = = 1\n",
        (),
        1,
        "",
        """  File "script.py", line 1
    x = = 1
        ^
SyntaxError: invalid syntax
""",
    ),
}


def run(script, arguments, folder, *command):
    (folder / "script.py").write_text(script)
    return subprocess.run(
        [sys.executable, *command, "script.py", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(p for p in sys.path if p)),
    )


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script(name, tmp_path):
    script, arguments, status, out, err = SCRIPTS[name]
    done = run(script, arguments, tmp_path, "-m", "lantern.torch")
    assert (done.returncode, done.stdout) == (status, out), done.stderr
    assert done.stderr.replace(f"{tmp_path}{os.sep}", "") == err
    if "torch" not in script:
        plain = run(script, arguments, tmp_path)
        assert (plain.returncode, plain.stdout) == (status, out)
        assert plain.stderr == done.stderr


MISSING = {
    "import torch\ntorch.softmaxx": "no attribute 'softmaxx'. Did you mean: 'softmax'?",
    "import torch\ntorch.ones(2).cumsumm": "'cumsumm'. Did you mean: 'cumsum'?",
    "from torch import softmaxx": "'softmaxx' from 'torch'.*Did you mean: 'softmax'?",
    "import torch.linolg": "'linolg' from 'torch'.*Did you mean: 'linalg'?",
}


@pytest.mark.parametrize("script", MISSING)
def test_a_missing_name_fails_with_the_nearest(script, tmp_path):
    done = run(script, (), tmp_path, "-m", "lantern.torch")
    assert done.returncode == 1
    first, _, second = MISSING[script].partition(".*")
    assert first in done.stderr
    assert second in done.stderr


def test_a_guarded_import_goes_on(tmp_path):
    script = "try:\n    from torch import nonsense\nexcept ImportError:\n    print(1)"
    done = run(script, (), tmp_path, "-m", "lantern.torch")
    assert (done.stdout, done.stderr) == ("1\n", "")


def test_the_command_explains_itself(tmp_path):
    done = run("", (), tmp_path, "-m", "lantern.torch", "--help")
    assert done.returncode == 0
    assert "SCRIPT" in done.stdout
    done = run("", (), tmp_path, "-m", "lantern.torch", "absent.py")
    assert done.returncode == 2
    assert "absent.py" in done.stderr


@pytest.mark.parametrize(
    "path",
    ["fx.experimental.rewriter", "_inductor.utils", "distributed.fsdp._shard_utils"],
)
def test_what_is_below_an_absent_part_can_be_imported_too(path, tmp_path):
    script = f"from torch.{path} import Later, is_later\nprint(is_later())\nLater()"
    done = run(script, (), tmp_path, "-m", "lantern.torch")
    assert done.stdout == "False\n", done.stderr
    assert f"torch.{path}.Later: " in done.stderr
