"""Mutants that change nothing that a program can see, each with the reason."""

# Of a file, the change and a part of the line -> why nobody can notice. If only one of
# several changes on the line that read alike is meant, it is numbered: 0 the first.
HARMLESS = {
    "lantern/core/dispatch.py": {
        ("Lt -> LtE", "return len(rule.operands) if arity < 0"): "no rule has arity 0",
        ("-> 1", "return len(rule.operands) if arity < 0"): "no rule has arity 0",
        ("Lt -> LtE", "_variadic(rule) if arity < 0"): "no rule has arity 0",
        ("-> 1", "_variadic(rule) if arity < 0"): "no rule has arity 0",
        ("Add -> Sub", "alone = code.co_argcount + code.co_kwonlyargcount"): (
            "no elementwise rule has a keyword beside its operand"
        ),
        ("Lt -> LtE", "if len(values) < len(operands):"): "speed: no list is found",
        ("Gt -> GtE", "if len(receivers) > 2 or known.lazy:"): "speed: two in a tuple",
        ("Lt -> LtE", "if classes.count(cls) < len(classes):"): "speed: one class",
        ("-> Or", "if not all(own) and operation_of(rule).keeps:"): "speed: copies",
        ("-> False", "strict=True"): "a guard: made of one list",
    },
    "lantern/core/namespace.py": {
        ("-> And", "if y is None or type(y) is cls:"): "speed: they have one namespace",
    },
    "lantern/core/numpy_protocols.py": {
        ("Add -> Sub", "return x + 0j if outside"): "the difference of zeros is zero",
        ("returns None", 'return ""'): "no words, in either form",
        ("Gt -> GtE", "if len(inputs) > 1 and any(map(is_container, inputs"): (
            "speed: a value alone is no container"
        ),
    },
    "lantern/core/residuals.py": {
        ("LtE -> Lt", "x.nbytes <= _SMALL"): "speed: of one size",
    },
    "lantern/core/scalar_functions.py": {
        ("-> 2", "math.copysign(inf, x) * math.copysign(1, y)"): "only a sign is asked",
        ("Lt -> LtE", "while x < 15 + n:"): "the series is exact at the threshold, too",
        ("-> False", "strict=True"): "a guard: both have two more than the slope",
        ("-> 2", "return x * log(1 if x == 0"): "zero times any logarithm",
        ("Gt -> GtE", "return float(y if x == 0 else"): "that it is zero has been seen",
        ("LtE -> Lt", "return y <= x + 1"): "at the threshold both ways are exact",
        ("-> 2", "return y <= x + 1"): "a little beyond it both ways are exact",
        ("Lt -> LtE", "if y < 10:"): "the series is exact at the threshold, too",
        ("Lt -> LtE", "if x < 10:"): "the series is exact at the threshold, too",
        ("Gt -> GtE", "while term > 1e-17 * total:"): "a term more, too small to count",
        ("Sub -> Add", "over = math.erf(z) - abs(x) if z < 0.5", 0): (
            "it leads to the negative of the same number, and then gets x's sign"
        ),
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
        ("-> False", "strict=True"): "a guard: as many as were taken out, or compared",
        ("-> And", "if (cls is list or cls is tuple) and all("): (
            "speed: the general way"
        ),
        ("-> And", "elif cls is list or cls is tuple:"): "speed: the general way",
    },
    "lantern/core/unwrap.py": {
        ("Gt -> GtE", "if len(todo) > _MOST_OBJECTS:"): "speed: one object more",
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
        ("Lt -> LtE", "if dtype in REAL and size < LARGE"): "speed: of one size",
        ("-> 2", "LARGE = 1 << 15"): "speed: another size",
        ("-> And", "if not shape or math.prod(shape) >= SMALL"): (
            "speed: a buffer where a view takes less time"
        ),
        ("GtE -> Gt", "or math.prod(shape) >= SMALL"): "speed: of one size",
        ("condition negated", "or math.prod(shape) >= SMALL"): (
            "speed: a buffer where a view takes less time, and the other way round"
        ),
        ("-> False", "self.cotangent, self.owned, self.mask = buffer, True"): (
            "speed: the next one is added in an array of its own"
        ),
        ("In -> NotIn", "plain = type(condition) in buffers and"): (
            "speed: the general way"
        ),
        ("Eq -> NotEq", "plain = type(condition) in buffers and"): (
            "speed: the general way"
        ),
        ("-> Or", "plain = type(condition) in buffers and"): (
            "speed: a short way for other libraries, too"
        ),
        ("returns None", "return plain and broadcasts("): "speed: the general way",
        ("-> Or", "return plain and broadcasts("): (
            "speed: the general way, for conditions are truths"
        ),
        ("-> True", "if earlier is False and _broadcasts("): "speed: the general way",
        ("-> 1", "size: int = 0) -> Self:"): "speed: of unknown size, it is small",
        ("LtE -> Lt", "x = x if extra <= 0 else x.reshape("): (
            "speed: a reshape to its own shape"
        ),
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
        ("-> 1", '"__code__", None), "co_flags", 0)'): "nobody asks for that flag",
    },
    "lantern/cps/delimiter.py": {
        ("left out", "raise  # as the last line of _recover would"): "so it does",
    },
    "lantern/cps/patience.py": {
        ("Lt -> LtE", "now[2] < _RARELY"): "speed: of one number of collections",
        ("Lt -> LtE", "waiting < _MANY and not info"): "speed: of one number",
        ("GtE -> Gt", "if waiting >= _MANY else usual[0]"): "speed: of one number",
    },
    "lantern/cps/resumption.py": {
        ("-> 1", "(self.dropped or not self.parts[0].movable)"): (
            "a body and its stand-in are movable, both or neither"
        ),
    },
    "lantern/cps/task.py": {
        ("GtE -> Gt", "len(idle) >= IDLE_LIMIT"): "memory: of one more idle worker",
    },
    "lantern/cps/worker.py": {
        ("GtE -> Gt", "len(_thread.idle) >= IDLE_LIMIT"): (
            "memory: of one more idle worker"
        ),
        ("left out", "raise  # a greenlet ends by it"): "it ends in either way",
        ("left out", "getcurrent().sent.clear()"): (
            "memory: until the relay, which is over, is gone"
        ),
        ("left out", "errand.clear()  # the relay has it, too"): (
            "memory: until the relay runs its next errand"
        ),
        ("left out", "getcurrent().gr_context = getcurrent().job = None"): (
            "memory: until the worker, which is over, is gone"
        ),
    },
    "lantern/tensor/ops/products.py": {
        ("-> False", "xs, z_bars = zip("): "a guard: each gives a pair",
        ("-> 1", "xp = namespace(xs[0])"): "all are of one library",
        ("NotIn -> In", "if x.shape[0] == 1 and type(x) not in buffers:"): (
            "speed: of one row the product is the same by either way"
        ),
        ("Lt -> LtE", "math.prod(shape) < LARGE"): "speed: of one size",
        ("-> And", "if (kind is Accumulator or little)"): (
            "speed: the first product waits as well"
        ),
        ("left out", "receiver.owned = receiver.cotangent is product"): (
            "speed: the next one is added in an array of its own"
        ),
        ("Is -> IsNot", "receiver.owned = receiver.cotangent is product"): (
            "speed: the next one is added in an array of its own"
        ),
    },
    "lantern/tensor/accumulate/deferred_products.py": {
        ("-> 2", "LITTLE = 1 << 19"): "memory: more may wait",
        ("-> False", "self.total, self.owned = waiting[0].dense("): (
            "speed: the next one is added in an array of its own"
        ),
        ("left out", "self.owned = True"): (
            "speed: the next one is added in an array of its own"
        ),
        ("left out", "self.owned = waiting.owned"): (
            "speed: the next one is added in an array of its own"
        ),
        ("-> False", "self.total, self.owned = self.total + x, True"): (
            "speed: the next one is added in an array of its own"
        ),
        ("-> 1", "self.contributions, self.size = [], 0"): "memory: of one byte",
    },
    "lantern/transforms/forward.py": {
        ("Add -> Sub", "else total + zeros_like(value)"): "the sign of zero",
        ("-> False", "strict=True"): "a guard: there is one for each operand",
    },
    "lantern/transforms/reverse.py": {
        ("-> True", 'if getattr(level, "drops", False):'): (
            "speed: there is nothing that has to be emptied"
        ),
        ("-> False", "strict=True"): "a guard: the structures have been compared",
    },
}


def fits(mutant, words, part, *number):
    """Whether an entry is about a mutant."""
    alike = words == mutant.words and part in mutant.text
    return alike and number in ((), (mutant.number,))


def is_harmless(mutant):
    """Whether nobody can notice a mutant."""
    return any(fits(mutant, *entry) for entry in HARMLESS.get(mutant.path, ()))
