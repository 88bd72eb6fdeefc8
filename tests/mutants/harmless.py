"""Mutants that change nothing that a program can see, each with the reason."""

# Of a file, the change and a part of the line -> why nobody can notice.
HARMLESS = {
    "lantern/core/dispatch.py": {
        ("Lt -> LtE", "return len(rule.operands) if arity < 0"): "no rule has arity 0",
        ("-> 1", "return len(rule.operands) if arity < 0"): "no rule has arity 0",
        ("Lt -> LtE", "if len(values) < len(operands):"): "speed: no list is found",
        ("Gt -> GtE", "if len(receivers) > 2 or known.lazy:"): "speed: two in a tuple",
        ("Lt -> LtE", "if classes.count(cls) < len(classes):"): "speed: one class",
        ("-> Or", "if not all(own) and operation_of(rule).keeps:"): "speed: copies",
        ("-> False", "strict=True"): "a guard: made of one list",
    },
    "lantern/core/scalar_functions.py": {
        ("GtE -> Gt", "return (1 if x >= 0 else e) / (1 + e)"): "at zero e is 1",
        (
            "GtE -> Gt",
            "return x if x >= y or x != x",
        ): "of equal numbers either will do",
        (
            "LtE -> Lt",
            "return x if x <= y or x != x",
        ): "of equal numbers either will do",
        ("Lt -> LtE", "over = math.erf(z) - abs(x) if z < 0.5"): "both ways are exact",
        ("Mult -> Add", "z = math.sqrt(max("): "another start leads to the same number",
        ("Div -> Mult", "z -= step / (1 + z * step)"): "it leads to the same number",
        ("Add -> Sub", "z -= step / (1 + z * step)"): "it leads to the same number",
    },
    "lantern/core/tree.py": {
        ("-> False", "together = zip(tree, *others, strict=True)"): (
            "a guard: the lengths have been compared"
        ),
    },
    "lantern/core/value.py": {
        ("left out", "self.release()"): "memory: until the receiver itself is gone",
        ("-> 1", "self.cotangent = 0"): "it is thrown an exception, and sees no number",
        ("-> 2", "self.emerge(primal, level, started, self.receiver, None, 1)"): (
            "speed: the rule is closed, and not run to its end"
        ),
    },
    "lantern/tensor/accumulate/accumulator.py": {
        ("-> 1", "self.shape, self.dtype, self.aligned = shape"): "inputs have no rule",
        ("Lt -> LtE", "short = dtype in REAL and size < LARGE"): "speed: of one size",
        ("-> 2", "condition * 1, self.shape) > 0"): "any positive number will do",
        ("Add -> Sub", "contribution + self.dtype.type(0)"): "the sign of zero",
        ("-> Or", "if not aligned and self.dtype.kind"): "speed: the general way",
        ("left out", "self.left = self.right = None"): "memory: until it is gone",
        ("condition negated", "elif aligned == 2:"): "speed: a contribution for nobody",
        ("Eq -> NotEq", "elif aligned == 2:"): "speed: a contribution for nobody",
        ("-> 3", "elif aligned == 2:"): "speed: a contribution for nobody",
        ("-> True", "self.cotangent, self.owned = contribution, False"): (
            "it has nothing only where the contribution is its own"
        ),
        ("-> Or", 'elif kind != "linear" and not self.holds_complex()'): (
            "a linear rule makes nothing of nothing by itself"
        ),
        ("Add -> Sub", "both = z_bar + 1j * mask"): "only whether it is zero is asked",
        ("Gt -> GtE", "if extra > 0 and math.prod("): "speed: a reshape to itself",
        ("-> 1", "if extra > 0 and math.prod("): "speed: it is summed, over one",
    },
    "lantern/cps/control.py": {
        ("Eq -> NotEq", "if yields and delimiter.prompt.driver"): (
            "speed: a handler is run the other way, of which the laws are the same"
        ),
    },
    "lantern/cps/patience.py": {
        ("Lt -> LtE", "now[2] < _RARELY"): "speed: of one number of collections",
    },
    "lantern/cps/task.py": {
        ("GtE -> Gt", "len(idle) >= IDLE_LIMIT"): "memory: of one more idle worker",
    },
    "lantern/tensor/accumulate/deferred_products.py": {
        ("-> False", "xs, z_bars = zip("): "a guard: each gives a pair",
        ("-> 1", "xp = namespace(xs[0])"): "all are of one library",
        ("-> False", "self.total, self.owned = self.total + x, True"): (
            "speed: the next one is added in an array of its own"
        ),
        ("-> 1", "self.contributions, self.size = [], 0"): "memory: of one byte",
    },
    "lantern/transforms/reverse.py": {
        ("-> False", "strict=True"): "a guard: the structures have been compared",
    },
}


def is_harmless(mutant):
    """Whether nobody can notice a mutant."""
    return any(
        words == mutant.words and part in mutant.text
        for words, part in HARMLESS.get(mutant.path, ())
    )
