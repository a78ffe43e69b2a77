"""The environment an extension is given: the user's, without what is secret and without what would run code in it.

Owns the judgement which variables those are, by name and by value. It is a guess and errs on the side of withholding:
whoever misses a variable grants it by name. Who asks for what is `permissions`' business.
"""

import re
from collections.abc import Collection, Mapping
from functools import cache, lru_cache

from msgspec import Struct

from hilt.packages.permissions import Permissions


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_OWN = ("HILT_RPC_TOKEN", "ZOTCORE_RPC_TOKEN")
"""With these one can drive the whole agent."""

_PLAIN = _names("""
    PATH HOME PWD OLDPWD USER LOGNAME SHELL TERM COLORTERM LANG LANGUAGE TMPDIR TZ EDITOR VISUAL PAGER DISPLAY
    WAYLAND_DISPLAY XDG_RUNTIME_DIR XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME XDG_CACHE_HOME HILT_HOME
""")
"""No program does well without these, and they are no place for a secret."""

_INJECTING = _names("""
    PYTHONSTARTUP PYTHONPATH PYTHONHOME PYTHONINSPECT PYTHONBREAKPOINT PYTHONEXECUTABLE PYTHONUSERBASE PYTHONPLATLIBDIR
    PYTHONWARNINGS NODE_OPTIONS NODE_PATH NODE_REPL_EXTERNAL_MODULE ELECTRON_RUN_AS_NODE BUN_OPTIONS BUN_INSPECT_PRELOAD
    PERL5LIB PERLLIB PERL5OPT PERL5DB RUBYOPT RUBYLIB LUA_INIT LUA_PATH LUA_CPATH PHPRC PHP_INI_SCAN_DIR R_PROFILE
    R_PROFILE_USER R_ENVIRON R_ENVIRON_USER ERL_FLAGS ERL_AFLAGS ERL_ZFLAGS JAVA_TOOL_OPTIONS _JAVA_OPTIONS
    JDK_JAVA_OPTIONS CLASSPATH DOTNET_STARTUP_HOOKS CORECLR_PROFILER CORECLR_PROFILER_PATH COR_PROFILER
    COR_PROFILER_PATH RUSTC_WRAPPER RUSTC_WORKSPACE_WRAPPER
    BASH_ENV ENV SHELLOPTS BASHOPTS IFS PS4 PROMPT_COMMAND ZDOTDIR FPATH CDPATH GLOBIGNORE LESSOPEN LESSCLOSE VIMINIT
    EXINIT GCONV_PATH LOCPATH NLSPATH GLIBC_TUNABLES OPENSSL_CONF OPENSSL_ENGINES GTK_MODULES GTK_PATH GIO_EXTRA_MODULES
    QT_PLUGIN_PATH GIT_SSH GIT_SSH_COMMAND GIT_PROXY_COMMAND GIT_EXTERNAL_DIFF GIT_ASKPASS GIT_PAGER GIT_EDITOR
    GIT_SEQUENCE_EDITOR GIT_EXEC_PATH GIT_TEMPLATE_DIR SSH_ASKPASS
""")
_INJECTING_PREFIXES = ("LD_", "DYLD_", "BASH_FUNC_", "GIT_CONFIG", "LUA_INIT_")
"""They make a loader, an interpreter, a shell or git load or run something of somebody else's choosing."""

_SECRET_NAMES = _names("SSH_AUTH_SOCK SSH_AGENT_PID GPG_AGENT_INFO SSHPASS SESSION_ID DOCKER_AUTH_CONFIG")
"""Agents sign for whoever asks."""
_SECRET_WORDS = _names("""
    KEY KEYS TOKENS SECRETS PASS PASSWORDS PWD CREDENTIAL CREDS COOKIE COOKIES BEARER JWT WEBHOOK PASSCODE OTP MNEMONIC
""")
_SECRET_LAST_WORDS = _names("AUTH DSN PAT SESSION SESSIONS")
"""At the end of a name they are the thing itself; elsewhere they only say what it is about."""
_SECRET_ENDINGS = tuple(
    _names("""
    PASSWORD PASSWD PASSPHRASE TOKEN SECRET APIKEY ACCESSKEY SECRETKEY PRIVATEKEY CREDENTIALS SESSID
""")
)
"""Of a word, for some are written together: PGPASSWORD, AUTHTOKEN."""
_ABOUT_ONE = _names("""
    DIR DIRECTORY FOLDER FILE PATH HOME TTL TIMEOUT LENGTH SIZE COUNT LIMIT TYPE FORMAT ALGORITHM ENABLED DISABLED
""")
"""Last words of names that tell where a secret is or how it is handled, not the secret."""
_HARMLESS_WORDS = _names("PUBLIC PUBLISHABLE")
_AMOUNTS = _names("MAX MIN NUM BUDGET")
"""Of tokens, as models count them."""
_HARMLESS_NAMES = _names("DESKTOP_SESSION")

_SECRET_PHRASES = (
    ("://", r"\bhttps?://[^/?#@\s]+@ | ://[^/?#@\s:]*:[^/?#@\s]+@"),
    ("PRIVATE KEY", r"-----BEGIN[ ][A-Z0-9 ]{0,40}PRIVATE[ ]KEY"),
    (
        "=",
        r"(?i:\b(?:password|passwd|pwd|secret|token|api_?key|access_?key|accountkey|sharedaccesskey)[ ]?=[ ]?[^\s;&])",
    ),
    # The same in JSON, where a key of docker's is called "auth".
    ('"', r"(?i:(?:password|passwd|secret|token|api_?key|access_?key|private_?key|auth)\"[ ]?:[ ]?\"[^\"])"),
    ("", r"\A(?:Bearer|Basic)[ ]\S{8}"),
    ("://", r"://hooks\.slack\.com/services/\S | ://[a-z.]*discord(?:app)?\.com/api/webhooks/\S"),
)
_SECRET_TOKENS = (
    ("AGE-SECRET-KEY-", r"\bAGE-SECRET-KEY-1[A-Z0-9]{16}"),
    ("sk-", r"\bsk-[A-Za-z0-9_-]{16}"),
    ("k_", r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{8}"),
    ("gh", r"\bgh[pousr]_[A-Za-z0-9]{16}"),
    ("github_pat_", r"\bgithub_pat_[A-Za-z0-9_]{8}"),
    ("glpat-", r"\bglpat-[A-Za-z0-9_-]{8}"),
    ("xox", r"\bxox[abeoprs]-[A-Za-z0-9-]{8}"),
    ("xapp-", r"\bxapp-[A-Za-z0-9-]{8}"),
    ("IA", r"\bA[KS]IA[A-Z0-9]{16}"),
    ("AIza", r"\bAIza[A-Za-z0-9_-]{30}"),
    ("ya29.", r"\bya29\.[A-Za-z0-9_-]{8}"),
    ("npm_", r"\bnpm_[A-Za-z0-9]{30}"),
    ("pypi-", r"\bpypi-[A-Za-z0-9_-]{30}"),
    ("hf_", r"\bhf_[A-Za-z0-9]{20}"),
    ("SG.", r"\bSG\.[A-Za-z0-9_-]{16}"),
    ("dop_v1_", r"\bdop_v1_[a-f0-9]{16}"),
    ("shp", r"\bshp(?:at|ss|ca)_[a-f0-9]{16}"),
    ("eyJ", r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8}"),
)
_SECRET_VALUES = (*_SECRET_PHRASES, *_SECRET_TOKENS)
"""What well-known secrets look like, wherever they stand in a value, and what no such value lacks: most values are
ruled out by that alone, in a hundredth of the time. The first are URLs with a token or password in them; tokens are
those that anybody would know for one, wherever it stands."""


class Given(Struct, frozen=True):
    env: dict[str, str]
    withheld: tuple[str, ...]
    """The names of those it does not get."""


def environment(ambient: Mapping[str, str], permissions: Permissions, provider_variables: Collection[str]) -> Given:
    """What is left of `ambient` for an extension. `provider_variables` hold the keys that hilt itself works with."""
    own = frozenset((*_OWN, *provider_variables))
    env = {name: value for name, value in ambient.items() if _given(name, value, permissions, own)}
    return Given(env, tuple(sorted(ambient.keys() - env.keys())))


def secrets_of(ambient: Mapping[str, str]) -> tuple[str, ...]:
    """What must not be shown of an environment, whoever is given it."""
    apart = ((name, value) for name, value in ambient.items() if name not in _PLAIN and not name.startswith("LC_"))
    return tuple(value for name, value in apart if name in _OWN or _is_secret(name, value))


def may_have_token(text: str) -> bool:
    """Whether `tokens_hidden` could find something in it, or in a text that stands in it escaped, as in JSON."""
    return any(mark in text and _compiled(pattern.replace(r"\b", "")).search(text) for mark, pattern in _SECRET_TOKENS)


def tokens_hidden(text: str, hidden: str) -> str:
    """The text with something else in the place of what looks like a token of a well-known kind."""
    for mark, pattern in _SECRET_TOKENS:
        if mark in text:
            text = _compiled(rf"(?:{pattern})[A-Za-z0-9_.+/=-]*").sub(hidden, text)
    return text


def _given(name: str, value: str, permissions: Permissions, own: Collection[str]) -> bool:
    one = f"env:{name}"
    if one in permissions.revoked:
        return False
    if one in permissions.granted:
        return permissions.allows(one)
    if name in own or _injects(name):
        return False  # not even with a grant of all of it
    if name in _PLAIN or name.startswith("LC_"):
        return True
    if "env" in permissions.revoked:
        return False
    return permissions.allows(one) or not _is_secret(name, value)


def _injects(name: str) -> bool:
    return name in _INJECTING or name.startswith(_INJECTING_PREFIXES)


@lru_cache(maxsize=1024)
def _is_secret(name: str, value: str) -> bool:
    # The same for all extensions, and asked at each start.
    return _named_like_a_secret(name) or _has_secret(value)


def _has_secret(value: str) -> bool:
    return any(mark in value and _compiled(pattern).search(value) for mark, pattern in _SECRET_VALUES)


def _named_like_a_secret(name: str) -> bool:
    upper = name.upper()
    if upper in _SECRET_NAMES or upper.startswith("OP_SESSION_"):
        return True
    words = "".join(letter if letter.isalnum() else " " for letter in upper).split()
    if not words or upper in _HARMLESS_NAMES or words[-1] in _ABOUT_ONE or not _HARMLESS_WORDS.isdisjoint(words):
        return False
    if "TOKENS" in words and not _AMOUNTS.isdisjoint(words):
        return False
    secret = not _SECRET_WORDS.isdisjoint(words) or words[-1] in _SECRET_LAST_WORDS
    return secret or any(word.rstrip("0123456789").endswith(_SECRET_ENDINGS) for word in words)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.VERBOSE)  # only when it is needed: all of them take milliseconds
