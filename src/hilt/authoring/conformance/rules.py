"""The rules an extension is checked by, and what is found. What a rule looks at is the business of its neighbours."""

from typing import Literal, TypeAlias

from msgspec import Struct

Level: TypeAlias = Literal["must", "should"]
State: TypeAlias = Literal["passed", "failed", "not applicable"]
_SHOWN = 3
"""Offences that are told of one rule."""


class Rule(Struct, frozen=True):
    id: str
    level: Level
    says: str
    why: str
    fix: str


RULES = tuple(
    Rule(*row)
    for row in (
        (
            "handshake",
            "must",
            "It opens the conversation in time: `hello`, or the answer to `initialize`.",
            "A host gives up on a program that does not, and takes it for broken.",
            "Say hello, or answer initialize, before anything slow, and flush what you write.",
        ),
        (
            "ready",
            "should",
            "It says `ready` when its registrations are complete.",
            "Without it a host can only wait until nothing comes for a while.",
            'Send {"type":"ready"} after the last registration.',
        ),
        (
            "name",
            "should",
            "It calls itself what its manifest calls it.",
            "The manifest's name counts; another one confuses whoever reads a log.",
            "Use the same name in both places.",
        ),
        (
            "json-lines",
            "must",
            "Every line it writes is one JSON object in UTF-8, shorter than 4 MiB.",
            "What is not is lost; a library that prints to standard output breaks answers in two.",
            "Write nothing but messages there; print to standard error, which goes to the log.",
        ),
        (
            "schema",
            "must",
            "Every line fits the published schema.",
            "A host reads what it can, and another one may read less.",
            "Compare it with spec/frames.schema.json or spec/jsonrpc.schema.json.",
        ),
        (
            "names",
            "must",
            "Tools and commands have names that hosts take.",
            "What has another name is not registered.",
            "Tools: 1 to 64 of A–Z, a–z, 0–9, _ and -. Commands: 1 to 64 characters, no spaces.",
        ),
        (
            "tool-schemas",
            "must",
            "The schema of a tool's arguments is a JSON Schema of an object.",
            "Arguments are checked against it, and model APIs refuse one that is none.",
            'Begin with {"type":"object","properties":{…}}.',
        ),
        (
            "descriptions",
            "should",
            "Every tool and every command is described.",
            "The model chooses tools by their description, people choose commands by it.",
            "Say in a sentence what it does, and when to use it.",
        ),
        (
            "unknown-tool",
            "should",
            "A call of a tool it does not have is answered with an error.",
            "Registrations change while calls are under way; silence makes the model wait for the deadline.",
            "Answer with is_error, or with an error, when the name is unknown.",
        ),
        (
            "missing-arguments",
            "must",
            "A call without the arguments it needs is answered.",
            "Not every host checks them; an exception that nobody answers for makes the model wait.",
            "Answer every call, whatever goes wrong in it.",
        ),
        (
            "unknown-command",
            "should",
            "A command it does not have is answered with an error.",
            "As with tools: silence makes people wait.",
            "Answer with error when the name is unknown.",
        ),
        (
            "kinds",
            "must",
            "It answers for everything it has registered.",
            "A hook, a handler or an interceptor that does not answer holds up every turn until its deadline.",
            "Answer every question, also those you have nothing to say to.",
        ),
        (
            "intercepts",
            "must",
            "It answers each question of an interceptor before the deadline.",
            "A guard that is late is no guard: what happens then is the policy's decision.",
            "Answer at once; an answer with nothing but its id allows.",
        ),
        (
            "harmless",
            "should",
            "It lets pass what is harmless: reading a README, a first turn, a plain answer.",
            "A guard that refuses everything makes the agent useless.",
            "Refuse what you mean to refuse, and allow the rest.",
        ),
        (
            "unknown-message",
            "must",
            "A message of an unknown type or method does not disturb it; a request is answered with −32601.",
            "Protocols grow: what is new to it must not end it.",
            "Ignore what you do not know; answer requests of unknown methods.",
        ),
        (
            "unknown-fields",
            "must",
            "A question with fields it does not know is answered all the same.",
            "Hosts add fields.",
            "Take what you need of a message, and do not refuse the rest.",
        ),
        (
            "garbage",
            "should",
            "A line that is no JSON does not end it.",
            "One bad line must not cost all that come after it.",
            "Skip what you cannot read, and say so on standard error.",
        ),
        (
            "concurrent",
            "must",
            "Two questions at once are both answered, each by its id.",
            "Models call several tools at once, and an interceptor is asked while a tool runs.",
            "Take the id from the question, and answer in any order.",
        ),
        (
            "once",
            "must",
            "Each question is answered once, and nothing is answered that was not asked.",
            "A second answer is dropped; which of the two counts is chance.",
            "Return after you have answered.",
        ),
        (
            "cancel",
            "must",
            "To be told that an answer is no longer wanted does not end it.",
            "People press escape.",
            "Stop the work if you can, ignore it otherwise, and go on reading.",
        ),
        (
            "calls",
            "must",
            "The tools named by --call answer with a result.",
            "It is what they are for.",
            "See what the answer says.",
        ),
        (
            "quiet",
            "should",
            "After `shutdown` it says nothing more but what it still owes.",
            "Nobody listens any more.",
            "Stop timers and other sources of messages first.",
        ),
        (
            "shutdown",
            "must",
            "It exits with 0 within its grace after `shutdown`.",
            "Otherwise it is killed, and what it has not saved is lost.",
            "Leave the loop at shutdown; give stop_grace_ms in the manifest if you need longer than 2 s.",
        ),
        (
            "end-of-input",
            "must",
            "It exits with 0 within its grace when its input ends.",
            "A host that was killed cannot say goodbye; what stays behind fills the machine.",
            "Leave when reading returns nothing.",
        ),
        (
            "poor-host",
            "must",
            "It starts and answers with a host that announces no extras, as zot and piglet do.",
            "The protocol is common to several hosts.",
            "Look at capabilities before you rely on anything that is in them.",
        ),
        (
            "unannounced",
            "should",
            "To such a host it says nothing that belongs to extras.",
            "The other side does not know it, and may complain to the user.",
            "Wait for hello_ack, or initialize, and use only what it announces.",
        ),
        (
            "no-secrets",
            "must",
            "It does not write its environment to its log or to the wire.",
            "Environments hold keys, and logs are sent around.",
            "Print the one variable you mean, not all.",
        ),
    )
)
BY_ID = {rule.id: rule for rule in RULES}


class Finding(Struct, frozen=True):
    rule: Rule
    state: State
    offences: tuple[str, ...] = ()


class Report(Struct, frozen=True):
    name: str
    dialect: str
    findings: tuple[Finding, ...]

    @property
    def applicable(self) -> int:
        return sum(finding.state != "not applicable" for finding in self.findings)

    @property
    def passed(self) -> int:
        return sum(finding.state == "passed" for finding in self.findings)

    @property
    def failed(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.state == "failed")

    @property
    def conforms(self) -> bool:
        """Nothing that must be is otherwise."""
        return all(finding.rule.level != "must" for finding in self.failed)


class Findings:
    """What is found while it is being looked at."""

    def __init__(self) -> None:
        self._offences: dict[str, list[str]] = {}

    def passed(self, rule: str) -> None:
        """It was looked at, and nothing speaks against it so far."""
        self._offences.setdefault(BY_ID[rule].id, [])

    def failed(self, rule: str, offence: str) -> None:
        offences = self._offences.setdefault(BY_ID[rule].id, [])
        if len(offences) < _SHOWN:
            offences.append(offence)

    def all(self) -> tuple[Finding, ...]:
        return tuple(self._finding(rule) for rule in RULES)

    def _finding(self, rule: Rule) -> Finding:
        offences = self._offences.get(rule.id)
        if offences is None:
            return Finding(rule, "not applicable")
        return Finding(rule, "failed" if offences else "passed", tuple(offences))
