"""Command lines and how they are to be judged.

A list to be added to whenever a judgement turns out wrong.
"""

from __future__ import annotations

from tests.tools.shell import corpus_everyday as everyday
from tests.tools.shell import corpus_harmful as harmful
from tests.tools.shell.lines import Line

CORPUS: list[Line] = [
    *everyday.READING,
    *everyday.LOOKING_ELSEWHERE,
    *everyday.CHANGING,
    *everyday.NETWORK,
    *harmful.RUNNING_WHAT_COMES,
    *harmful.DELETING,
    *harmful.WRITING_ELSEWHERE,
    *harmful.GIT,
    *harmful.MACHINE,
    *harmful.NOT_UNDERSTOOD,
]
