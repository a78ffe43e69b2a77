"""A key of the user's is shown by no surface, though its owner has it."""

from pathlib import Path

from hilt.frontends.masked import concealed
from hilt.frontends.tui.scene import Part, Scene
from hilt.frontends.tui.surfaces.standing import Standing
from hilt.model.actions import Notify, OpenPanel, RenderPanel, SetStatus, SetWidget, ShowOverlay
from hilt.model.extensions import Overlay, Panel
from hilt.model.masking import MASK, Mask
from support.extending import extended

KEY = "sk-secret-0123456789"


async def test_keys_of_the_user_are_blanked_on_every_surface(tmp_path: Path) -> None:
    mask, scene = Mask([KEY]), Scene()
    async with extended(tmp_path) as it:
        standing = Standing(it.session, scene, lambda told: concealed(told, mask))
        actions = (
            Notify("info", f"note {KEY}"),
            OpenPanel(Panel("p", f"title {KEY}", (f"line {KEY}",), f"foot {KEY}")),
            SetWidget("w", "above-input", f"widget {KEY}"),
            ShowOverlay(Overlay("o", f"title {KEY}", f"overlay {KEY}")),
            SetStatus("s", f"word {KEY}"),
        )
        await it.session.apply(actions, "leaky")
        standing.begin()
        shown = repr((scene.notes, scene.panels, scene.widgets, scene.overlays, scene.statuses))
        assert KEY not in shown
        assert shown.count(MASK) == 8


async def test_a_panel_that_has_not_changed_is_taken_as_it_was(tmp_path: Path) -> None:
    taken: list[object] = []

    def conceal(told: object) -> object:
        taken.append(told)
        return told

    scene = Scene()
    async with extended(tmp_path) as it:
        standing = Standing(it.session, scene, conceal)  # type: ignore[arg-type]  # it changes nothing of what it is given
        await it.session.apply((OpenPanel(Panel("a")), OpenPanel(Panel("b"))), "x")
        standing.begin()
        first = len(taken)
        await it.session.apply((RenderPanel(Panel("b", lines=("new",))),), "x")
        standing.hear(it.events[-1])
        assert [one.panel.lines for one in scene.panels] == [(), ("new",)]
        assert len(taken) == first + 1
        assert scene.dirty & Part.PANELS
