"""What a verb must not show: the keys that hilt knows, and what is secret in the environment."""

import os

from hilt.cli.ext.site import Site
from hilt.extensions.trace_line import Secrets
from hilt.model.masking import Mask
from hilt.packages.environment import secrets_of
from hilt.providers.credentials import Credentials


def secrets(site: Site) -> Secrets:
    return Secrets((Mask((*Credentials(site.home.auth).all_secrets(), *secrets_of(os.environ))),))
