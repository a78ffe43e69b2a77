"""`hilt ext trust` and `untrust`: whether what came with this folder may run."""

import argparse

from hilt.cli.ext.site import Site, Told
from hilt.errors import UsageError
from hilt.frontends.consent import ask
from hilt.packages.discovery import PROJECT, Discovery
from hilt.packages.trust.trusting import Proposal, accept, propose


def trust(site: Site, options: argparse.Namespace) -> Told:
    finder = site.finder()
    discovery = finder.all()
    if not discovery.untrusted:
        nothing = "everything here is trusted already" if _running(discovery) else "nothing here needs to be trusted"
        return _told(site, discovery, nothing, changed=False)
    proposal = propose(finder.gate, discovery.untrusted)
    if not proposal.entries:
        raise UsageError("; ".join(proposal.problems), hint="remove or correct what cannot be trusted")
    if not options.yes and not ask(f"Trust these extensions of {site.cwd}, as they are now?", proposal.text):
        return _told(site, discovery, "nothing was trusted", changed=False, code=1)
    accept(finder.gate, proposal)
    after = finder.all()  # which copies them, so that a later change can be shown line by line
    said = _outcome(proposal, after)
    return _told(
        site,
        after,
        f"{proposal.text}\n\n{said}" if options.yes else said,
        changed=True,
        code=1 if after.untrusted else 0,
    )


def untrust(site: Site, _: argparse.Namespace) -> Told:
    gate = site.finder().gate
    forgotten = gate.store.forget(site.cwd)
    gate.sweep()
    text = "the extensions of this folder do not run any more" if forgotten else "this folder was not trusted"
    return Told({"folder": str(site.cwd), "changed": forgotten}, text)


def _outcome(proposal: Proposal, after: Discovery) -> str:
    names = ", ".join(name for name, _ in proposal.commands)
    lines = [f"trusted, as they were shown: {names}", "a change to any of their files will ask again"]
    lines += [f"{one.found.name} does not run: {one.reason}" for one in after.untrusted]
    return "\n".join(lines)


def _running(discovery: Discovery) -> list[str]:
    return sorted(one.name for one in discovery.found if one.source == "project")


def _told(site: Site, discovery: Discovery, text: str, *, changed: bool, code: int = 0) -> Told:
    useless = [f"{one.name} cannot run: {one.message}" for one in discovery.problems if one.name.startswith(PROJECT)]
    value = {"folder": str(site.cwd), "trusted": _running(discovery), "changed": changed}
    return Told(value, "\n".join((text, *useless)), code)
