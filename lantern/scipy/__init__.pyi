# Made by python -m tests.checkers.stubs, from what there is at run time.
from lantern.scipy import integrate as integrate
from lantern.scipy import linalg as linalg
from lantern.scipy import signal as signal
from lantern.scipy import special as special
from lantern.scipy import stats as stats


