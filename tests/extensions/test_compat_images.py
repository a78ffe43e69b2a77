"""A conversation with more images in it than fit a line, and the extensions that want to read it all the same."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilt.model.content import Image, Text
from hilt.model.conversation import Message, ToolMessage, ToolResult, UserMessage, now
from hilt.wire.jsonrpc_light import IMAGES_ROOM, light
from hilt.wire.jsonrpc_messages import bare, read_messages, wrapped
from support.agent import says
from support.extending import extended
from support.offerer import Ask
from support.offering import offering
from support.properties import patient

LINE = 4 * 1024 * 1024
AT = now()


def shot(letter: str, size: int = 1_200_000) -> Image:
    return Image("image/png", b"\x89PNG\r\n\x1a\n" + letter.encode() * size)


def exchanged(parts: Any) -> list[Any]:
    """As an extension that knows nothing of images sends back what it was sent."""
    values: list[Any] = json.loads(msgspec.json.encode(parts))
    return values


def asked(*images: Image) -> UserMessage:
    return UserMessage((Text("look"), *images, Text("and say")), AT)


def returned(*images: Image) -> ToolMessage:
    return ToolMessage((ToolResult("c1", "shoot", (Text("here"), *images), details={"own": 1}),), AT)


def test_the_newest_images_are_sent_and_the_others_described() -> None:
    parts = light(bare([asked(shot("a")), returned(shot("b"))]))
    old, new = json.loads(msgspec.json.encode(parts))
    (described,) = [block["text"] for block in old["blocks"]]
    assert described.startswith("[an image of type image/png, 1,200,00")
    assert new["content"][1]["mimeType"] == "image/png"
    assert len(msgspec.json.encode(parts)) < IMAGES_ROOM + 1000


@pytest.mark.parametrize("form", [lambda messages: light(bare(messages)), wrapped], ids=["bare", "wrapped"])
def test_descriptions_that_come_back_are_images_again_and_nothing_is_lost(form: Any) -> None:
    # Two are alike but for their content, so that what they are told apart by matters.
    messages: list[Message] = [asked(shot("a"), shot("b")), returned(shot("c"), shot("d")), asked(shot("e"))]
    sent = exchanged(form(messages))
    assert "image/png, 1,200,00" in json.dumps(sent[0]) and len(json.dumps(sent)) < LINE
    again, problems = read_messages(sent, messages)
    assert again == tuple(messages) and problems == ()


def test_a_description_of_an_image_that_is_not_there_stays_a_text() -> None:
    sent = exchanged(light(bare([asked(shot("a")), returned(shot("b"))])))
    again, _ = read_messages(sent, [returned(shot("b"))])
    assert isinstance(again[0], UserMessage) and all(isinstance(block, Text) for block in again[0].content)


@patient
@given(st.lists(st.tuples(st.booleans(), st.lists(st.integers(1, 40), max_size=3)), max_size=6), st.integers(0, 150))
def test_whatever_is_described_the_conversation_comes_back_whole(
    shots: list[tuple[bool, list[int]]], room: int
) -> None:
    messages: list[Message] = []
    for is_user, sizes in shots:
        images = [shot("x", size) for size in sizes]
        messages.append(asked(*images) if is_user else returned(*images))
        messages.append(asked())  # or two tools' results would be taken for those of one message
    parts = light(bare(messages), room)
    weight = sum(len(block.get("data", "")) for part in exchanged(parts) for block in part.get("blocks", []))
    assert weight <= room
    assert read_messages(exchanged(parts), messages) == (tuple(messages), ())


def reread(ask: Ask) -> Any:
    messages = ask.host("conversationMessages")["messages"]
    ask.host("setConversationMessages", messages=messages)
    snapshot = ask.host("llmSnapshot")["messages"]
    return {"content": [{"type": "text", "text": f"{len(messages)} {len(snapshot)}"}]}


@pytest.mark.usefixtures("dialect")
async def test_an_extension_reads_it_and_writes_it_back_and_the_user_keeps_the_images(tmp_path: Path) -> None:
    tool = ("tool", {"name": "t", "description": "", "parameters": {"type": "object"}})
    made = offering("p", tool, answers={"tool/execute": reread})
    async with extended(tmp_path, made, turns=[says("nice"), says("still nice")]) as it:
        await it.ready()
        said = asked(*(shot(letter, 1_700_000) for letter in "abc"))
        await (await it.session.prompt(said)).result()
        assert await it.call("t") == ("2 2", False)
        await it.say()
        assert it.provider.requests[-1].messages[0] == said
