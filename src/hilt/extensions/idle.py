"""Extensions that do not run, and what there is to say of them: why, and what can be done about it."""

from msgspec import structs

from hilt.extensions.account import Account
from hilt.extensions.agent import Places
from hilt.model.extensions import ExtensionState, ExtensionStatus
from hilt.packages.discovery import Found, Problem, Untrusted, log_name

CONSENT = "`hilt ext trust` shows what would run and asks; --trust trusts it for one run"


def status(found: Found, state: ExtensionState, reason: str, account: Account, places: Places) -> ExtensionStatus:
    """It may have run before, and have something to its account."""
    return account.on(
        ExtensionStatus(
            found.name,
            found.manifest.version,
            found.manifest.dialect,
            state,
            found.source,
            str(found.where),
            found.sandbox,
            reason=reason,
            log=str(places.logs / log_name(found.name)),
        )
    )


def unusable(problem: Problem) -> ExtensionStatus:
    return ExtensionStatus(problem.name, "", problem.dialect, "failed", "", problem.where, reason=told(problem))


def told(problem: Problem) -> str:
    hint = f" ({problem.hint})" if problem.hint else ""
    return f"extension not loaded: {problem.message}{hint}"


def switched_off(found: Found) -> Found:
    """As the user wants it."""
    return structs.replace(found, choices=structs.replace(found.choices, enabled=False))


def why_disabled(found: Found) -> str:
    if found.left_out:
        return "HILT_ONLY_EXT does not name it"
    if found.choices.enabled is not False:
        return 'its manifest says "enabled": false'
    if found.source == "flag":
        return f"you switched it off for this session; `/ext enable {found.name}` switches it on"
    return f"config.toml switches it off; `hilt ext enable {found.name}` switches it on"


def barred_here(barred: tuple[Untrusted, ...]) -> str:
    """What came with the folder and is not trusted, as it is."""
    changed = [one.found.name for one in barred if one.known]
    fresh = [one.found.name for one in barred if not one.known]
    said = []
    if fresh:
        said.append(f"this folder has extensions of its own, which do not run until you trust it: {', '.join(fresh)}")
    if changed:
        said.append(f"not running, for it changed since you trusted this folder: {', '.join(changed)}")
    return f"{'; '.join(said)} ({CONSENT})"
