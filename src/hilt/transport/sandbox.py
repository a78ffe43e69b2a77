"""Starting a program so that the kernel holds it to a policy, by the best means that this machine has.

Linux: bubblewrap, and Landlock where that does not work; macOS: sandbox-exec. It knows programs and operating systems;
what an extension may do, and who decides that, is others' business. A program that cannot be confined does not start.
"""

import os
import sys
from pathlib import Path

from hilt.errors import StartError
from hilt.transport import bubblewrap, landlock, seatbelt
from hilt.transport.diagnosis import check
from hilt.transport.layout import MOUNTS, RIGHTS, layout
from hilt.transport.policy import Confined, Level, Means, Policy
from hilt.transport.runtimes import Runtime, real_path, runtime

__all__ = ["Confined", "Level", "Means", "Policy", "available", "confine", "secrets"]

_OFF = "or set its sandbox to off, if you trust it with everything you have"

_SECRETS = """
.ssh .gnupg .aws .azure .kube .docker .oci .netrc _netrc .authinfo .authinfo.gpg .npmrc .yarnrc .yarnrc.yml .pypirc
.git-credentials .gem .cargo/credentials .cargo/credentials.toml .m2/settings.xml .gradle/gradle.properties .pgpass
.my.cnf .vault-token .terraform.d .terraformrc .boto .s3cfg .password-store .pki .Xauthority .ICEauthority .1password
.electrum .bitcoin .ethereum .config/solana .config/op .config/gh .config/glab-cli .config/hub .config/gcloud
.config/rclone .config/containers .config/helm .config/sops .config/age .config/doctl .config/hcloud .config/netlify
.config/heroku .config/configstore .config/git/credentials .config/google-chrome .config/chromium
.config/BraveSoftware .config/microsoft-edge .config/vivaldi .config/opera .config/Slack .config/Signal .config/Code
.config/Cursor .mozilla .thunderbird .zen .var/app .local/share/keyrings .local/share/kwalletd
.local/share/gnupg .local/share/containers .local/share/TelegramDesktop .local/share/fish
.bash_history .zsh_history .zhistory .zsh_sessions .history .sh_history .python_history .node_repl_history
.psql_history .mysql_history .sqlite_history .lesshst .viminfo
.claude .claude.json .config/claude .codex .gemini .zot .config/zot .local/state/zot .local/share/zot .piglet
.config/piglet .config/opencode .local/share/opencode .cursor .aider .continue .copilot .config/github-copilot
Library/Keychains Library/Cookies Library/Mail Library/Messages Library/Safari Library/Mobile\\ Documents
Library/Application\\ Support/Google Library/Application\\ Support/Firefox Library/Application\\ Support/BraveSoftware
Library/Application\\ Support/Claude Library/Application\\ Support/Code Library/Application\\ Support/zot
Library/Group\\ Containers
"""


def confine(argv: tuple[str, ...], policy: Policy, path: str | None = None) -> Confined:
    """What to start in place of a program. Raises StartError when it cannot be started, or not be held to the policy.

    `path` is the PATH it will have, ours if not given. Blocks: it looks around the file system and may run a program.
    """
    search = os.environ.get("PATH", os.defpath) if path is None else path
    check(argv, policy.code, {"PATH": search})
    program = runtime(argv, policy.code, search, real_path(policy.home))
    if sys.platform == "darwin":
        return _on_macos(program, policy)
    command, why = bubblewrap.working()
    if command:
        return _with_bubblewrap(command, program, policy)
    if landlock.version():
        return _with_landlock(program, policy)
    raise StartError(f"cannot start {argv[0]!r} in a sandbox: {_nothing(why)}", hint=f"install bubblewrap, {_OFF}")


def available() -> str:
    """One line: which means there is, or why there is none."""
    if sys.platform == "darwin":
        return "seatbelt" if seatbelt.PROGRAM.exists() else f"none: there is no {seatbelt.PROGRAM}"
    command, why = bubblewrap.working()
    abi = landlock.version()
    if command:
        return f"bubblewrap and landlock {abi}" if abi else "bubblewrap, without landlock"
    return f"landlock {abi}: {why}" if abi else f"none: {_nothing(why)}"


def secrets(home: Path) -> tuple[Path, ...]:
    """Where keys, passwords, histories and other agents' homes usually are, whether or not they exist."""
    words = _SECRETS.replace("\\ ", "\0").split()
    return tuple(home / word.replace("\0", " ") for word in words)


def _with_bubblewrap(command: tuple[str, ...], program: Runtime, policy: Policy) -> Confined:
    helper = runtime((sys.executable,), policy.code, os.defpath, real_path(policy.home))
    needed = (*program.needed, *helper.needed, landlock.START)
    made = layout(policy, needed, RIGHTS if landlock.version() else MOUNTS)
    inner = program.argv
    # Left to it: other programs, sockets of the user's, which no mount keeps anybody from, and what is hidden among
    # what is not.
    if landlock.version():
        inner = landlock.inside(program, made, programs=policy.programs)
        made = made.coarse()
    wrapped = bubblewrap.wrap(command, made, inner, network=policy.network)
    gaps = landlock.gaps_inside(network=policy.network, programs=policy.programs)
    return Confined(wrapped, "bubblewrap", gaps)


def _with_landlock(program: Runtime, policy: Policy) -> Confined:
    made = layout(policy, program.needed)
    argv = landlock.alone(program, made, policy.data, network=policy.network, programs=policy.programs)
    return Confined(argv, "landlock", landlock.gaps_alone(network=policy.network))


def _on_macos(program: Runtime, policy: Policy) -> Confined:
    if not seatbelt.PROGRAM.exists():
        raise StartError(
            f"cannot start {program.argv[0]!r} in a sandbox: there is no {seatbelt.PROGRAM}", hint=f"restore it, {_OFF}"
        )
    return Confined(seatbelt.wrap(program, policy), "seatbelt", seatbelt.gaps(policy))


def _nothing(why: str) -> str:
    return f"{why}, and the kernel has no Landlock" if sys.platform == "linux" else "this system has none that is known"
