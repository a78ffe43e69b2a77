"""`make bench`: every figure the project claims, measured here and now."""

import channel
import session_log
import startup

if __name__ == "__main__":
    for suite in (startup, session_log, channel):
        for measured in suite.run():
            print(measured.line(), flush=True)
