"""What an extension sees of the user's environment (A12)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilt.packages.environment import environment
from hilt.packages.permissions import Permissions
from support.properties import patient

NOTHING = Permissions()
LISTED = Permissions(full=False)
KEYS = ("ANTHROPIC_API_KEY", "OWN_SETTING")

SECRET = """
    GITHUB_TOKEN GH_TOKEN AWS_SECRET_ACCESS_KEY AWS_ACCESS_KEY_ID AWS_SESSION_TOKEN PGPASSWORD MYSQL_PWD SSHPASS
    NPM_CONFIG__AUTHTOKEN npm_config__auth NPM_TOKEN SSH_AUTH_SOCK GPG_AGENT_INFO DOCKER_PASSWORD VAULT_TOKEN
    SENTRY_DSN STRIPE_API_KEY APIKEY apiKey clientSecret DB_PASS REDIS_PASSWORD SMTP_PASSWD KEY_PASSPHRASE
    GITHUB_PAT BW_SESSION OP_SESSION_my SESSION_COOKIE GOOGLE_APPLICATION_CREDENTIALS AZURE_CREDENTIALS
    SLACK_WEBHOOK_URL API_KEY_2 TOKEN1 SECRET TOKEN PASSWORD KEY PHPSESSID my.private-key HTTP_BEARER
    SERVICE_JWT DOCKER_AUTH_CONFIG LOGIN_OTP WALLET_MNEMONIC ANTHROPIC_API_KEY HILT_RPC_TOKEN ZOTCORE_RPC_TOKEN
"""
ORDINARY = """
    PATH HOME USER LOGNAME SHELL TERM LANG LC_ALL TMPDIR TZ PWD OLDPWD DISPLAY EDITOR XDG_RUNTIME_DIR
    XDG_SESSION_ID XDG_SESSION_TYPE DESKTOP_SESSION DBUS_SESSION_BUS_ADDRESS KEYBOARD_LAYOUT
    TOKENIZERS_PARALLELISM MONKEY KUBECONFIG PASSWORD_STORE_DIR SSL_CERT_FILE SSH_KEY_PATH
    AWS_SHARED_CREDENTIALS_FILE PGPASSFILE AWS_PROFILE MAX_TOKENS MAX_OUTPUT_TOKENS TOKEN_TTL SESSION_TIMEOUT
    STRIPE_PUBLISHABLE_KEY SSH_PUBLIC_KEY XAUTHORITY SSH_TTY SSH_CONNECTION AUTHOR GIT_AUTHOR_NAME COMPASS
    BYPASS_CACHE HTTPS_PROXY HILT_HOME HILT HILT_CALL VIRTUAL_ENV NODE_ENV DEBUG CI PYTHONUNBUFFERED
    PYTHONDONTWRITEBYTECODE GOPATH GIT_AUTHOR_EMAIL KEYMAP PATIENCE
"""
INJECTING = """
    LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT DYLD_INSERT_LIBRARIES PYTHONSTARTUP PYTHONPATH PYTHONHOME PYTHONINSPECT
    PYTHONBREAKPOINT PYTHONWARNINGS NODE_OPTIONS NODE_PATH PERL5LIB PERL5OPT RUBYOPT RUBYLIB BASH_ENV ENV
    BASH_FUNC_ls%% SHELLOPTS GIT_SSH_COMMAND GIT_EXTERNAL_DIFF GIT_CONFIG_COUNT GIT_CONFIG_GLOBAL
    GIT_CONFIG_PARAMETERS GIT_EXEC_PATH JAVA_TOOL_OPTIONS _JAVA_OPTIONS GCONV_PATH IFS PS4 PROMPT_COMMAND
    GLIBC_TUNABLES OPENSSL_CONF LESSOPEN DOTNET_STARTUP_HOOKS
"""


def seen(name: str, value: str = "x", permissions: Permissions = NOTHING) -> bool:
    got = environment({name: value}, permissions, KEYS)
    assert (name in got.env) != (name in got.withheld)
    assert got.env in ({}, {name: value})
    return name in got.env


@pytest.mark.parametrize("name", SECRET.split())
@pytest.mark.parametrize("permissions", [NOTHING, LISTED])
def test_what_is_named_like_a_secret_is_withheld(name: str, permissions: Permissions) -> None:
    assert not seen(name, permissions=permissions)


@pytest.mark.parametrize("name", ORDINARY.split())
@pytest.mark.parametrize("permissions", [NOTHING, LISTED])
def test_what_is_not_secret_is_given_without_asking(name: str, permissions: Permissions) -> None:
    assert seen(name, permissions=permissions)


@pytest.mark.parametrize(
    "value",
    [
        "postgres://me:hunter2@db.example/app",
        "redis://:hunter2@localhost",
        "https://x-oauth-basic@github.com/a/b",
        "http://me:hunter2@proxy.example:8080",
        "host=db user=me password=hunter2",
        "Server=db;User Id=me;Password=hunter2;",
        "AccountName=a;AccountKey=abcd==",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nabc",
        "-----BEGIN PRIVATE KEY-----\nabc",
        "sk-" + "a1" * 20,
        "sk-proj-abc_def-" + "a1" * 20,
        "ghp_" + "a1" * 18,
        "github_pat_" + "a1" * 30,
        "glpat-" + "a1" * 10,
        "xoxb-1234567890-abcdef",
        "AKIA" + "A1" * 8,
        "AIza" + "a1" * 18,
        "ya29.a0AfH6SMB_x-y",
        "npm_" + "a1" * 18,
        "hf_" + "aB" * 17,
        "sk_live_" + "a1" * 12,
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc",
        "Bearer abcdefghijkl",
        '{"github": "ghp_' + "a1" * 18 + '"}',
        '{"auths": {"registry.example": {"auth": "bWU6aHVudGVyMg=="}}}',
        '{"user":"me","password":"hunter2"}',
        '{"client_secret" : "hunter2"}',
        "https://hooks.slack.com/services/T000/B000/XXXXXXXX",
        "https://discord.com/api/webhooks/123/abc",
        "AGE-SECRET-KEY-1" + "QZ" * 20,
    ],
)
def test_a_secret_is_recognised_by_its_value_whatever_it_is_called(value: str) -> None:
    assert not seen("SETTING", value)
    assert not seen("CREDENTIALS_FILE", value)
    assert seen("SETTING", value, Permissions(granted=("env:SETTING",)))


@pytest.mark.parametrize(
    "value",
    [
        "https://example.com/a?b=c@d",
        "ssh://git@github.com/a/b",
        "git@github.com:a/b.git",
        "postgres://db.example/app",
        "/usr/bin:/home/me/bin",
        "-----BEGIN CERTIFICATE-----\nabc",
        "task-force-of-seventeen-people",
        "password",
        "a=b;c=d",
        '{"tokens": 5, "token": "", "author": "me"}',
        "https://discord.com/channels/1",
        "unix:path=/run/user/1000/bus,guid=0123456789abcdef",
        "di=01;34:ln=01;36:*.tar=01;31",
        "",
    ],
)
def test_an_ordinary_value_is_none(value: str) -> None:
    assert seen("SETTING", value)


def test_path_and_the_like_are_never_judged_by_their_value() -> None:
    assert seen("PATH", "/opt/sk-a1a1a1a1a1a1a1a1a1/bin:/usr/bin")


@pytest.mark.parametrize("name", INJECTING.split())
def test_what_runs_code_of_somebody_elses_is_dropped_unless_it_is_granted_by_name(name: str) -> None:
    assert not seen(name)
    assert not seen(name, permissions=Permissions(granted=("env",)))
    assert seen(name, permissions=Permissions(granted=(f"env:{name}",)))


def test_a_grant_of_one_gives_that_one_only() -> None:
    ambient = {"GITHUB_TOKEN": "a", "NPM_TOKEN": "b", "TERM": "c"}
    got = environment(ambient, Permissions(full=False, granted=("env:GITHUB_TOKEN",)), KEYS)
    assert got.env == {"GITHUB_TOKEN": "a", "TERM": "c"}
    assert got.withheld == ("NPM_TOKEN",)


def test_a_grant_of_all_gives_all_but_hilts_own_keys() -> None:
    ambient = dict.fromkeys(
        ("GITHUB_TOKEN", "ANTHROPIC_API_KEY", "OWN_SETTING", "HILT_RPC_TOKEN", "ZOTCORE_RPC_TOKEN"), "x"
    )
    got = environment(ambient, Permissions(granted=("env",)), KEYS)
    assert list(got.env) == ["GITHUB_TOKEN"]
    by_name = Permissions(granted=tuple(f"env:{name}" for name in ambient))
    assert environment(ambient, by_name, KEYS).env == ambient


def test_what_was_revoked_is_withheld_however_harmless_and_whatever_was_granted() -> None:
    assert not seen("TERM", permissions=Permissions(revoked=("env:TERM",)))
    assert not seen("GITHUB_TOKEN", permissions=Permissions(granted=("env",), revoked=("env:GITHUB_TOKEN",)))
    assert not seen("GITHUB_TOKEN", permissions=Permissions(granted=("env:GITHUB_TOKEN",), revoked=("env",)))


def test_when_all_of_it_is_revoked_only_what_every_program_needs_is_left() -> None:
    ambient = {"PATH": "/bin", "HOME": "/root", "LC_ALL": "C", "AWS_PROFILE": "work", "DEBUG": "1"}
    got = environment(ambient, Permissions(revoked=("env",)), KEYS)
    assert list(got.env) == ["PATH", "HOME", "LC_ALL"]
    assert got.withheld == ("AWS_PROFILE", "DEBUG")


@patient
@given(st.dictionaries(st.text(min_size=1), st.text()), st.sets(st.sampled_from(["env", "env:A", "env:TOKEN"])))
def test_every_variable_is_either_given_as_it_is_or_named_as_withheld(env: dict[str, str], granted: set[str]) -> None:
    got = environment(env, Permissions(granted=tuple(granted)), KEYS)
    assert got.env.items() <= env.items()
    assert sorted((*got.env, *got.withheld)) == sorted(env)


@patient
@given(st.text(alphabet="ABXYZ09_", max_size=8), st.sampled_from(["TOKEN", "API_KEY", "PASSWORD", "SECRET"]))
def test_no_word_before_it_hides_a_secrets_name(before: str, word: str) -> None:
    assert not seen(f"{before}_{word}")
