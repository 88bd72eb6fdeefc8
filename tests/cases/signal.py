"""Sample calls: Fourier transforms, convolution and interpolation."""

from tests.cases.case import SIGNED, Case, array_case

CASES: list[Case] = [
    *(
        array_case(name, *shape, n=n, axis=axis, norm=norm)
        for name in ("fft", "ifft", "rfft", "irfft")
        for shape, n, axis, norm in (
            ([(5,)], 5, 0, None),
            ([(5,)], 3, 0, "ortho"),
            ([(2, 4, 3)], 6, 1, "forward"),
        )
    ),
    array_case("irfft", (2, 3), n=5, axis=1, norm="backward"),
    *(
        array_case("convolve", *shapes, mode=mode)
        for shapes in (((5,), (3,)), ((2,), (5,)), ((4,), (4,)))
        for mode in ("full", "same", "valid")
    ),
    *(
        array_case("convolve_fully", *shapes)
        for shapes in (((5,), (3,)), ((2, 3), (1, 4)), ((3, 2, 2), (2, 2, 1)))
    ),
    Case("roots", ((1.0, 1.5),), {}, ((5,),)),
    Case("interp", ((0.1, 0.9), (0.0, 1.0), SIGNED), {}, ((2, 3), (1,), (1,))),
    array_case("unwrap", (2, 5), discont=None, axis=1, period=3.0),
]
