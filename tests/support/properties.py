"""Settings for property tests: machines are slow at times, and a slow example is not a wrong one."""

from hypothesis import HealthCheck, settings

patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
