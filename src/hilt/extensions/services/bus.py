"""What extensions tell each other, by topic."""

from functools import partial

import msgspec

from hilt.errors import ServiceFault
from hilt.extensions.capabilities import needed_to_follow
from hilt.extensions.services.asking import (
    PUBLISHED,
    SUBSCRIPTIONS,
    Asker,
    Backing,
    Service,
    Table,
    invalid,
    missing,
)
from hilt.wire.faults import INTERNAL
from hilt.wire.jsonrpc_services import Publish, Subscribe, SubscribeResult, Unsubscribe
from hilt.wire.jsonrpc_types import Empty


async def publish(backing: Backing, params: Publish, _: Asker) -> Empty:
    if len(msgspec.json.encode(params.data)) > PUBLISHED:
        raise invalid(f"publish: {PUBLISHED:,} bytes of data are the limit; pass more through a file")
    backing.facilities.topics.publish(params.topic, params.data)
    return Empty()


async def subscribe(backing: Backing, params: Subscribe, asker: Asker) -> SubscribeResult:
    """It ends with the asker, if not before."""
    asker.require(*needed_to_follow(params.topic))
    if asker.subscriptions >= SUBSCRIPTIONS:
        raise ServiceFault(INTERNAL, f"subscribe: {SUBSCRIPTIONS} subscriptions are the limit")
    subscription = asker.new_id()
    deliver = partial(asker.deliver, params.topic, subscription)
    asker.keep(subscription, backing.facilities.topics.subscribe(params.topic, deliver))
    return SubscribeResult(subscription)


async def unsubscribe(_: Backing, params: Unsubscribe, asker: Asker) -> Empty:
    if not asker.unsubscribe(params.subscription_id):
        raise missing(f"no subscription: {params.subscription_id}")
    return Empty()


SERVICES: Table = {
    "host/publish": Service(publish, failing="publish"),
    "host/subscribe": Service(subscribe, failing="subscribe"),
    "host/unsubscribe": Service(unsubscribe),
}
