"""The plugin of the children that measure: imported before the library is."""

import os

from tests.mutants.measure import Measuring

measuring = Measuring() if "MEASURING" in os.environ else None


def pytest_configure(config):
    config.pluginmanager.register(measuring)
