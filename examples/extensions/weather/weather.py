"""A tool for the model: the weather for some cities. The schema comes from the signature and the docstring."""

from typing import Literal

from hilt_sdk import Extension, ToolError

ext = Extension("weather", "1.0.0")

# A real one would ask a server, and have "net" among its permissions.
TYPICAL = {"berlin": 9, "lagos": 31, "lima": 19, "oslo": 4, "rome": 21, "tokyo": 17}


@ext.tool
def weather(city: str, days: int = 1, unit: Literal["celsius", "fahrenheit"] = "celsius") -> str:
    """Get the weather for a city.

    Args:
        city: its name, such as "Rome"
        days: how many days to tell, 7 at most
        unit: of the temperatures
    """
    if city.lower() not in TYPICAL:
        raise ToolError(f"no weather for {city}", hint=f"known are {', '.join(sorted(TYPICAL))}")
    if not 1 <= days <= 7:
        raise ToolError("days is from 1 to 7")
    celsius = [TYPICAL[city.lower()] + day % 3 for day in range(days)]
    shown = [f"{c} °C" if unit == "celsius" else f"{c * 9 // 5 + 32} °F" for c in celsius]
    return f"{city}: sunny, {', '.join(shown)}"


if __name__ == "__main__":
    ext.run()
