"""Settings of property tests: machines are slow at times, and a slow example is not a wrong one.

The examples are the same ones each time, so that no test fails by chance. `HILT_PROPERTIES=1000` tries so many others
instead, as `make soak` does.
"""

import os

from hypothesis import HealthCheck, settings

_OTHERS = int(os.environ.get("HILT_PROPERTIES", "0"))

patient = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=not _OTHERS,
    max_examples=_OTHERS or 100,
)

settings.register_profile("patient", patient)
settings.load_profile("patient")
