"""The note on a message that may be there twice, because the fate of the first send is unknown."""

from __future__ import annotations

from typing import Final

import msgspec

from keryx.ports.platform import Content

NOTE: Final = "(Sent again: it is unknown whether this message arrived before.)\n\n"


def with_note(content: Content) -> Content:
    """Return the content with a note that it may be there twice."""
    if content.text.startswith(NOTE) or content.file is not None:
        return content
    spans = tuple(
        msgspec.structs.replace(span, start=span.start + len(NOTE)) for span in content.spans
    )
    return msgspec.structs.replace(content, text=NOTE + content.text, spans=spans)
