"""Whatever models, tools, files and people write is shown as text: nothing of it ever runs.

That nothing ran, that no dialog opened and that the policy had nothing to stop is checked for
every test when its person leaves (`Person.check`).
"""

from __future__ import annotations

import pytest
from playwright.async_api import Error, FilePayload, expect

from keryx.testing.modelserver import Call, Reply
from tests.browser.browser_user import Person, Tab
from tests.browser.scripted_replies import ScriptedReplies

pytestmark = pytest.mark.asyncio(loop_scope="module")

IMAGE = '<img src=x onerror="window.__pwned=1">'
SCRIPT = "<script>window.__pwned=1;alert(1)</script>"
HOSTILE = f"""{SCRIPT}

{IMAGE} and <b onmouseover="window.__pwned=1">bold</b>

[plain](javascript:window.__pwned=1) [coded](javascript&#58;alert(1)) [tab](java\tscript:alert(1))
[data](data:text/html,{SCRIPT}) [vb](vbscript:msgbox) <javascript:alert(1)>
![picture](x" onerror="window.__pwned=1) ![far](https://example.org/tracker.png)

| {IMAGE} | b |
|---|---|
| {SCRIPT} | <iframe src="javascript:alert(1)"></iframe> |

```html {IMAGE}
{SCRIPT}
```

<svg onload=alert(1)></svg><a href="javascript:alert(1)">raw</a><style>*{{display:none}}</style>
"""


async def test_scripts_in_markdown_are_shown_and_links_lead_nowhere_bad(
    tab: Tab, stage: ScriptedReplies
) -> None:
    urls: list[str] = []
    tab.page.on("request", lambda request: urls.append(request.url))
    stage.on("Attack by reply", Reply(text=HOSTILE, reasoning=HOSTILE, chunk=11))
    await tab.begin("Attack by reply")
    await tab.settles()
    reply = tab.replies.first
    await reply.get_by_role("button", name="Reasoning").click()
    await expect(reply).to_contain_text(SCRIPT)
    await expect(reply).to_contain_text(IMAGE)
    await expect(reply).to_contain_text('<a href="javascript:alert(1)">raw</a>')
    for tag in ("script", "img", "svg", "iframe", "style", "b[onmouseover]"):
        await expect(reply.locator(tag)).to_have_count(0)
    for link in await reply.get_by_role("link").all():
        assert (await link.get_attribute("href") or "").startswith(("https:", "http:", "mailto:"))
    assert not [url for url in urls if "example.org" in url or url.startswith("javascript")]
    await tab.page.reload()
    await expect(tab.replies.first).to_contain_text(SCRIPT)


async def test_scripts_in_messages_and_in_the_queue_stay_text(
    tab: Tab, stage: ScriptedReplies
) -> None:
    part = stage.on("Attack by message", Reply(text="Hm.", fault="hang mid-stream", after=1))
    stage.on("Attack by queue", Reply(text="Hm again."))
    await tab.begin(f"Attack by message {IMAGE}")
    held = await part.held()
    await tab.say(f"Attack by queue {SCRIPT}")
    await expect(tab.queue).to_contain_text(SCRIPT)
    held.resume.set()
    await expect(tab.said.last).to_have_text(f"Attack by queue {SCRIPT}")
    await expect(tab.replies.last).to_have_text("Hm again.")


async def test_scripts_in_tool_output_and_arguments_stay_text(
    tab: Tab, stage: ScriptedReplies
) -> None:
    command = f"printf '%s\\n' '{SCRIPT}' '{IMAGE}'"
    stage.on(
        "Attack by tool",
        Reply(calls=(Call("terminal", {"command": command}),)),
        Reply(text="Nothing happened."),
    )
    await tab.begin("Attack by tool")
    await expect(tab.replies.last).to_have_text("Nothing happened.")
    call = tab.call("terminal")
    await call.get_by_role("button", expanded=False).click()
    await expect(call.get_by_role("group", name="Result")).to_contain_text(SCRIPT)
    await expect(call.get_by_role("group", name="Arguments")).to_contain_text(SCRIPT)
    await expect(tab.transcript.locator("script, img")).to_have_count(0)


async def test_scripts_in_questions_stay_text(tab: Tab, stage: ScriptedReplies) -> None:
    arguments = {"question": f"Really {IMAGE}?", "choices": [SCRIPT, "no"]}
    stage.on("Attack by question", Reply(calls=(Call("clarify", arguments),)), Reply(text="Fine."))
    await tab.begin("Attack by question")
    await expect(tab.asks).to_contain_text(f"Really {IMAGE}?")
    await tab.asks.get_by_role("button", name=SCRIPT).click()
    await expect(tab.replies.last).to_have_text("Fine.")


async def test_scripts_in_errors_stay_text(tab: Tab, stage: ScriptedReplies) -> None:
    message = f"no such model {SCRIPT} {IMAGE}"
    stage.on("Attack by error", Reply(status=404, message=message, code="model_not_found"))
    await tab.begin("Attack by error")
    end = tab.transcript.get_by_role("group", name="The turn failed")
    await expect(end).to_contain_text(SCRIPT)
    await expect(end.locator("script, img")).to_have_count(0)


async def test_scripts_in_titles_stay_text(tab: Tab, stage: ScriptedReplies) -> None:
    title = f"{IMAGE}{SCRIPT}"
    stage.on("Attack by title", Reply(text="A wonderfully rare quicksilver."))
    await tab.begin("Attack by title")
    await tab.settles()
    await tab.choose("Attack by title", "Rename")
    field = tab.list.get_by_role("textbox", name="Title")
    await field.fill(title)
    await field.press("Enter")
    await expect(tab.session(title)).to_be_visible()
    await expect(tab.page.get_by_role("heading", name=title)).to_be_visible()
    await expect(tab.page).to_have_title(f"{title} · Keryx")
    await tab.choose(title, "Delete")
    dialog = tab.page.get_by_role("dialog", name="Delete this session?")
    await expect(dialog).to_contain_text(title)
    await dialog.get_by_role("button", name="Cancel").click()
    await tab.page.keyboard.press("Control+k")
    search = tab.page.get_by_role("dialog", name="Search")
    await search.get_by_role("searchbox").fill("quicksilver")
    await expect(search.get_by_role("listitem").filter(has_text=title)).to_be_visible()


async def test_scripts_in_file_names_stay_text(tab: Tab, stage: ScriptedReplies) -> None:
    name = 'a "b" <img src=x onerror=window.__pwned=1>.txt'
    stage.on("Attack by file name", Reply(text="Kept."))
    await tab.starts_anew()
    async with tab.page.expect_file_chooser() as choosing:
        await tab.button("Attach").click()
    payload = FilePayload(name=name, mimeType="text/html", buffer=SCRIPT.encode())
    await (await choosing.value).set_files(payload)
    attached = tab.page.get_by_role("list", name="Attached files")
    await expect(attached).to_contain_text(name)
    await tab.say("Attack by file name")
    await expect(tab.replies.last).to_have_text("Kept.")
    await expect(tab.said.first.get_by_role("link")).to_contain_text(name)
    await expect(tab.transcript.locator("img")).to_have_count(0)


async def test_an_uploaded_page_is_saved_and_never_shown(
    somebody: Person, tab: Tab, stage: ScriptedReplies
) -> None:
    stage.on("Attack by upload", Reply(text="Kept."))
    await tab.starts_anew()
    async with tab.page.expect_file_chooser() as choosing:
        await tab.button("Attach").click()
    page = f"<!doctype html><title>evil</title>{SCRIPT}".encode()
    picture = f'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)">{SCRIPT}</svg>'.encode()
    await (await choosing.value).set_files(
        [
            FilePayload(name="evil.html", mimeType="text/html", buffer=page),
            FilePayload(name="evil.svg", mimeType="image/svg+xml", buffer=picture),
        ]
    )
    await tab.say("Attack by upload")
    await expect(tab.replies.last).to_have_text("Kept.")
    links = tab.said.first.get_by_role("link")
    await expect(links).to_have_count(2)
    for link in await links.all():
        address = await link.evaluate("(link) => link.href")
        window = await somebody.context.new_page()
        async with window.expect_download():
            with pytest.raises(Error, match=r"Download is starting|ERR_ABORTED"):
                await window.goto(address)
        assert await window.title() == ""
        await window.close()


async def test_the_policy_stops_what_is_not_the_pages_own(somebody: Person, tab: Tab) -> None:
    somebody.watch.expects("Content Security Policy")
    stopped = await tab.page.evaluate(
        """async () => {
          const stopped = [];
          const told = new Promise((resolve) => {
            document.addEventListener("securitypolicyviolation", (event) => {
              stopped.push(event.effectiveDirective);
              if (stopped.length === 3) resolve();
            });
          });
          const script = document.createElement("script");
          script.textContent = "window.__pwned = 1";
          document.body.append(script);
          const image = document.createElement("img");
          image.src = "https://example.org/tracker.png";
          document.body.append(image);
          fetch("https://example.org/").catch(() => undefined);
          await told;
          return stopped.sort();
        }"""
    )
    assert stopped == ["connect-src", "img-src", "script-src-elem"]
