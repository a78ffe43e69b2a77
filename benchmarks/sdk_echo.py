"""The same as `frames_echo.py`, written with the Python SDK."""

from hilt_sdk import Extension

ext = Extension("echo", version="1")


@ext.tool
def echo(text: str = "") -> str:
    "echo"
    return text


if __name__ == "__main__":
    ext.run()
