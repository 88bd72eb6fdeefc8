"""What calls give, exceptions too, to be compared with the plain function's."""

import lantern


def outcome(f, *args):
    """A call's result, or its exception, as it is shown."""
    try:
        return repr(f(*args))
    except Exception as error:
        return type(error), str(error)


def outcomes(f, points):
    """Those of calls for some arguments: rows of them, or one each."""
    rows = [x if isinstance(x, tuple) else (x,) for x in points]
    return [outcome(f, *args) for args in rows]


def is_compiled(f, *args):
    """Whether a function is compiled, once it has been called."""
    jitted = lantern.jit(f)
    jitted(*args)
    return "runs as it is" not in lantern.explain(jitted)
