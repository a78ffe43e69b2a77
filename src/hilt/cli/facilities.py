"""What extensions and clients can ask the agent for, put together of its parts."""

from hilt.agent.bookkeeping import Bookkeeping
from hilt.agent.budgets import Budgets
from hilt.agent.conversing import Conversing
from hilt.agent.dialogs import Dialogs
from hilt.agent.minds import Minds
from hilt.agent.toolbox import Toolbox
from hilt.agent.topics import Topics
from hilt.agent.undoing import Undoing
from hilt.cli.config import Config
from hilt.cli.extending import Sources
from hilt.cli.modelling import Modelling
from hilt.cli.settings import Settings, small_model
from hilt.extensions.services.ports import Facilities


def minds_of(sources: Sources) -> Minds:
    config = sources.ground.config
    budgets = Budgets(lambda source: _tokens(config, source))
    return Minds(
        sources.session, budgets, small_model=small_model(config), background_turns=config.background.max_turns
    )


def facilities(sources: Sources, minds: Minds) -> Facilities:
    session, parts = sources.session, sources.session.parts
    return Facilities(
        tools=Toolbox(parts.registry, session.activation),
        conversation=Conversing(session),
        sessions=Bookkeeping(session),
        models=Modelling(session, sources.chooser, sources.ground),
        minds=minds,
        dialogs=Dialogs(sources.questions),
        undo=Undoing(sources.history, parts.journal),
        topics=Topics(session.bus),
        settings=Settings(sources.ground.home),
    )


def _tokens(config: Config, source: str) -> int:
    own: int | None = config.extensions[source].tokens if source in config.extensions else None
    return config.extension_tokens if own is None else own
