"""Rows and dictionaries of modules and parameters: programs, here and in PyTorch."""

from collections import OrderedDict

import pytest

from tests.torch.compared import assert_same_scenario

pytest.importorskip("torch", reason="the peer that this face is compared with")

# s is a Sequential, n one with names, l a ModuleList, d a ModuleDict, p a ParameterList
# and q a ParameterDict. What a program leaves in z is compared, and so are all six.
PROGRAMS = """
z = s * 2
z = 2 * s
z = (s * 2)[0] is s[0]
s *= 3
z = s * 0
z = s * 1.5
s *= -1
z = type(Own(ReLU()) * 2).__name__
z = s + s
z = s + n
z = s + [ReLU()]
z = s + l
s += Sequential(ReLU())
s += [ReLU()]
n += s
z = s.append(ReLU()) is s
n.append(ReLU())
z = s.extend([ReLU()]) is s
s.extend(3)
z = s.insert(0, ReLU()) is s
s.insert(-1, ReLU())
s.insert(3, ReLU())
s.insert(5, ReLU())
n.insert(1, ReLU())
z = s.pop(1)
s.pop(7)
z = n.pop(-1)
del s[0]
del s[:2]
del n[0]
del s[5]
z = s[1:], s[-1], s[::2], n[1:]
z = type(Own(ReLU(), ReLU())[:1]).__name__
s[0] = ReLU()
n[-1] = ReLU()
s[4] = ReLU()
s[0] = 3
z = Sequential({"a": ReLU()})
z = Sequential(OrderedDict(a=ReLU()))
z = Sequential(ReLU(), 3)
z = len(s), list(s), bool(Sequential())
z = Sequential()(torch.ones(1))
z = [x for x in dir(s) if x.isdigit()]
z = l + l
z = l + [ReLU()]
z = l + s
z = l * 2
l += [ReLU()]
z = l[1:], type(l[1:]).__name__
l[1] = ReLU()
l[-1] = ReLU()
l[9] = ReLU()
del l[1]
del l[::2]
z = l.insert(1, ReLU())
z = l.pop(), l.pop(0)
l.append(3)
l.extend(3)
z = l.append(ReLU()) is l, l.extend(x for x in [ReLU()]) is l
z = l(torch.ones(1))
z = [type(x).__name__ for x in reversed(l)]
z = type(Rows([ReLU()]) + [ReLU()]).__name__
z = list(d), "a" in d, len(d), list(d.keys()), list(d.values()), list(d.items())
z = d.pop("a")
z = d.pop("x")
d.update({"c": ReLU(), "a": ReLU()})
d.update([("c", ReLU())])
d.update(d)
d.update(5)
d.update([5])
d.update([("c",)])
d["x.y"] = ReLU()
d["keys"] = ReLU()
d[1] = ReLU()
d.clear()
del d["a"]
z = d["x"]
z = d.b
z = ModuleDict([["a", ReLU()]])
z = d(torch.ones(1))
p[0] = torch.ones(1)
p[-1] = torch.ones(1)
p[7] = torch.ones(1)
z = p[1:], p[-1], p[-3]
z = type(Parameters([1])[:1]).__name__
p += [torch.ones(1)]
z = p.append(1) is p, p.extend([torch.ones(1)]) is p
p.extend(3)
p.extend(torch.ones(2))
z = p[7]
z = p()
z = list(p.state_dict()), len(list(p.parameters()))
z = ParameterList([torch.nn.Linear(1, 1)]), ParameterList(p), ParameterList()
z = [type(x).__name__ for x in p]
z = list(q), len(q), "a" in q, list(q.keys()), [k for k, _ in q.items()]
z = [k for k, _ in q.named_parameters()]
z = q.pop("a")
z = q.popitem()
z = q.get("x"), q.get("x", 3), q.get("a")
z = q.setdefault("x", torch.ones(1)), q.setdefault("b", 1)
z = q.fromkeys(["x", "y"], torch.ones(1)), q.fromkeys("ab")
z = q | {"c": torch.ones(1)}
z = {"c": torch.ones(1)} | q
q |= {"c": torch.ones(1)}
z = q.copy() is q, q.copy()
q.clear()
z = list(reversed(q))
z = q["x"]
q.update({"z": torch.ones(1), "y": torch.ones(2)})
q.update([("z", torch.ones(1)), ("y", torch.ones(2))])
q.update(OrderedDict(z=torch.ones(1), y=torch.ones(2)))
q.update(q)
q.update(5)
q.update([("z",)])
del q["a"]
q["keys"] = torch.ones(1)
q[1] = torch.ones(1)
z = q.a, list(q.values())
z = ParameterDict({"w": torch.nn.Linear(1, 1)})
z = ParameterDict([("a", torch.ones(1))])
z = list(q.state_dict())
z = q(1)
z = copy.deepcopy(q), copy.deepcopy(p), copy.deepcopy(s)
z = pickle.loads(pickle.dumps([q, p, s, n, l, d]))
""".strip().splitlines()


def run(program, torch):
    """What a program leaves in its names."""
    import copy
    import pickle

    nn = torch.nn
    names = {
        "torch": torch,
        "OrderedDict": OrderedDict,
        "copy": copy,
        "pickle": pickle,
        "Own": type("Own", (nn.Sequential,), {}),
        "Rows": type("Rows", (nn.ModuleList,), {}),
        "Parameters": type("Parameters", (nn.ParameterList,), {}),
        "s": nn.Sequential(nn.ReLU(), nn.Tanh(), nn.Sigmoid()),
        "n": nn.Sequential(OrderedDict(a=nn.ReLU(), b=nn.Tanh())),
        "l": nn.ModuleList([nn.ReLU(), nn.Tanh(), nn.Sigmoid()]),
        "d": nn.ModuleDict({"b": nn.ReLU(), "a": nn.Tanh()}),
        "p": nn.ParameterList([torch.zeros(2), nn.Parameter(torch.ones(3)), 5]),
        "q": nn.ParameterDict(
            {"b": torch.zeros(2), "a": nn.Parameter(torch.ones(3)), "n": 5}
        ),
        "z": None,
    }
    for name in (
        "ReLU", "Sequential", "ModuleDict", "ParameterList", "ParameterDict"
    ):  # fmt: skip
        names[name] = getattr(nn, name)
    exec(program, names)
    return [repr(names[name]) for name in "zsnldpq"]


@pytest.mark.parametrize("program", PROGRAMS)
def test_is_as_under_pytorch(program):
    assert_same_scenario(lambda torch: run(program, torch))
