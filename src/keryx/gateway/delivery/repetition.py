"""How a message is changed before it is sent again: with a note, or without formatting."""

from __future__ import annotations

from typing import Final

import msgspec

from keryx.ports.platform import Content

NOTE: Final = "(Sent again: it is unknown whether this message arrived before.)\n\n"


DOCUMENT: Final = "application/octet-stream"


def unformatted(content: Content) -> Content:
    """Return the text without formatting, and the file as a mere file, not as a photo or voice."""
    file = content.file
    if file is not None:
        file = msgspec.structs.replace(file, media_type=DOCUMENT)
    return msgspec.structs.replace(content, spans=(), file=file)


def with_note(content: Content) -> Content:
    """Return the content with a note that it may be there twice."""
    if content.text.startswith(NOTE) or content.file is not None:
        return content
    spans = tuple(
        msgspec.structs.replace(span, start=span.start + len(NOTE)) for span in content.spans
    )
    return msgspec.structs.replace(content, text=NOTE + content.text, spans=spans)
