"""Every exception hilt raises on purpose.

HiltError                    .hint: one line telling the user what to do
├─ UsageError                the command line or an RPC line cannot be understood
│  ├─ BudgetSpent            an extension has had models do as much as it may
│  └─ FixtureError           a fixture or a transcript is not as the format says; names the file and the line
├─ ConfigError               a file the user wrote is wrong; names the file
│  └─ ManifestError          an extension's manifest cannot be used; names the file and the field
├─ PackageError              an extension on disk cannot be fetched, checked, kept or trusted
├─ ProviderError             the model's API failed
│  ├─ AuthError              the key is missing or refused; never retried
│  ├─ BadRequest             the API will not take this request; never retried
│  ├─ ContextOverflow        the conversation is larger than the model's window
│  ├─ RateLimited            asked too often; .retry_after in seconds, or None
│  └─ Unavailable            the network or the service failed; worth another try
├─ FrameError                a message to or from an extension cannot be put on one line, or read from it
├─ ToolError                 a tool cannot do what was asked; the text is for the model
├─ SessionError              a session file cannot be opened, written or found
├─ ExtensionError            .extension: whose; always named in the message
│  ├─ ExtensionStartError    it cannot be started, or does not complete the handshake
│  ├─ ExtensionTimeout       it did not answer in time
│  ├─ ExtensionGone          it ended, or was ended, before it answered
│  ├─ ExtensionProtocolError its answer cannot be used
│  └─ ExtensionFailure       it answered that it failed
├─ Departure                 an extension or a host did otherwise than a fixture or a transcript says
├─ ServiceFault              what an extension or a client asked of the host is not done; .code as on the wire
└─ TransportError            a child process or the pipe to it failed
   ├─ StartError             a program cannot be started; .transient when trying later may help
   ├─ ChannelClosed          nobody is left at the other end, or the channel was closed
   ├─ ChannelFull            too much waits already for a reader that does not read
   └─ LineTooLong            a line that the other end would not take

Denial, interruption and "unknown tool" are values, not exceptions.
"""


class HiltError(Exception):
    """Base of all: a message for people, and a hint that says what to do."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(HiltError):
    pass


class BudgetSpent(UsageError):
    pass


class FixtureError(UsageError):
    pass


class ConfigError(HiltError):
    pass


class ManifestError(ConfigError):
    def __init__(self, message: str, *, hint: str = "", extension: str = "") -> None:
        super().__init__(message, hint=hint)
        self.extension = extension
        """Whose it is, when the manifest says at least that."""


class PackageError(HiltError):
    pass


class ProviderError(HiltError):
    pass


class AuthError(ProviderError):
    pass


class BadRequest(ProviderError):
    pass


class ContextOverflow(ProviderError):
    pass


class RateLimited(ProviderError):
    def __init__(self, message: str, *, hint: str = "", retry_after: float | None = None) -> None:
        super().__init__(message, hint=hint)
        self.retry_after = retry_after


class Unavailable(ProviderError):
    def __init__(self, message: str, *, hint: str = "", retry_after: float | None = None) -> None:
        super().__init__(message, hint=hint)
        self.retry_after = retry_after


class FrameError(HiltError):
    pass


class ToolError(HiltError):
    pass


class SessionError(HiltError):
    pass


class ExtensionError(HiltError):
    def __init__(self, extension: str, message: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.extension = extension


class ExtensionStartError(ExtensionError):
    def __init__(self, extension: str, message: str, *, hint: str = "", transient: bool = False) -> None:
        super().__init__(extension, message, hint=hint)
        self.transient = transient
        """Whether trying again later may help, without anybody changing anything."""


class ExtensionTimeout(ExtensionError):
    pass


class ExtensionGone(ExtensionError):
    pass


class ExtensionProtocolError(ExtensionError):
    pass


class ExtensionFailure(ExtensionError):
    pass


class Departure(HiltError):
    pass


class ServiceFault(HiltError):
    def __init__(self, code: int, message: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.code = code
        """One of `wire.faults`."""


class TransportError(HiltError):
    pass


class StartError(TransportError):
    def __init__(self, message: str, *, hint: str = "", transient: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.transient = transient


class ChannelClosed(TransportError):
    pass


class ChannelFull(TransportError):
    pass


class LineTooLong(TransportError):
    pass
