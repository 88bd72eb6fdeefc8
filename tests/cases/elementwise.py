"""Sample calls: elementwise operations beside the shared ones, arrays and numbers.

``ELEMENTWISE`` names the interval of each operand.
"""

import numpy as np

from tests.cases.case import POSITIVE, SIGNED, UNIT, Case, array_case

PROBABILITY = (0.1, 0.9)
ELEMENTWISE: dict[str, tuple[tuple[float, float], ...]] = {
    "beta": (POSITIVE, POSITIVE),
    "betaln": (POSITIVE, POSITIVE),
    "deg2rad": (SIGNED,),
    "erfcinv": ((0.2, 1.8),),
    "erfinv": (UNIT,),
    "exp2": (SIGNED,),
    "expi": (POSITIVE,),
    "fmod": ((-2.9, -2.1), (0.9, 1.02)),
    "fraction": ((1.1, 1.9),),
    "gammainc": (POSITIVE, POSITIVE),
    "gammaincc": (POSITIVE, POSITIVE),
    "gammaincinv": (POSITIVE, PROBABILITY),
    "gammasgn": (POSITIVE,),
    "log_ndtr": (SIGNED,),
    "logaddexp": (SIGNED, SIGNED),
    "logaddexp2": (SIGNED, SIGNED),
    "logit": (PROBABILITY,),
    "ndtri": (PROBABILITY,),
    "nextafter": (SIGNED, (3.0, 4.0)),
    "rad2deg": (SIGNED,),
    "reciprocal": (POSITIVE,),
    "rgamma": (POSITIVE,),
    "rint": ((1.1, 1.4),),
    "round": ((1.1, 1.4),),
    "trunc": ((1.1, 1.9),),
    "xlog1py": (SIGNED, POSITIVE),
    "xlogy": (SIGNED, POSITIVE),
}

CASES: list[Case] = [
    *(
        Case(name, intervals, {}, (shape,) * len(intervals))
        for name, intervals in ELEMENTWISE.items()
        for shape in [(2, 3), (2, 1, 3), (), (0, 3)]
    ),
    *(
        array_case("bessel", (2, 3), interval=POSITIVE, kind=kind, n=n)
        for kind, n in (
            ("jv", 0),
            ("jv", 2),
            ("yv", 1),
            ("kv", 0),
            ("kve", 1.5),
            ("ive", 1),
        )
    ),
    array_case("bessel", (2, 3), interval=(-2.5, -0.3), kind="ive", n=0),
    array_case("betainc", (2, 3), interval=PROBABILITY, a=1.5, b=2.5),
    array_case("stdtr", (2, 3), df=3.5),
    array_case("iv", (2, 3), n=0),
    array_case("iv", (2, 3), interval=POSITIVE, n=0.5),
    array_case("iv", (2, 3), n=2),
    array_case("ldexp", (2, 3), n=np.array([1, 0, -2])),
    array_case("sinc", (2, 3), n=0),
    array_case("sinc", (2, 3), interval=(-1e-3, 1e-3), n=0),
    array_case("sinc", (2, 3), interval=(5.0, 9.0), n=2),
]
