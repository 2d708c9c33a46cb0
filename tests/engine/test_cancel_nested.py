"""One call of a container is cancelled by its id, while its container and the others go on."""

from __future__ import annotations

from keryx.aio.group import Group
from keryx.ports.effects import NO_EFFECTS
from keryx.ports.tool_context import ToolContext
from keryx.tools.function import tool
from tests.engine.gated_tools import Gates
from tests.engine.host import Host


async def test_one_nested_call_is_cancelled_and_the_rest_goes_on(host: Host) -> None:
    gates = Gates()
    ended: dict[str, str] = {}

    @tool(effects=NO_EFFECTS, container=True)
    async def fan(context: ToolContext) -> str:
        """Call three at once."""

        async def one(name: str) -> None:
            ended[name] = (await context.call("gate", {"name": name})).outcome

        async with Group(context.scope) as group:
            for name in "abc":
                group.start(one(name), name=name)
        return "all ended"

    environment = host.environment(gates.tool, fan)
    batch = host.start(environment, host.call(fan))
    await gates.until_running("a", "b", "c")
    assert batch.holds("c1.2")
    assert not batch.holds("c1.9")
    assert batch.cancel("c1.2", by="a person")
    await gates.until_running("a", "c")
    assert not batch.cancel("c1.2", by="a person")
    gates.open("a", "c")
    (outcome,) = await batch.outcomes()
    assert (outcome.outcome, outcome.text) == ("completed", "all ended")
    assert ended == {"a": "completed", "b": "cancelled", "c": "completed"}
