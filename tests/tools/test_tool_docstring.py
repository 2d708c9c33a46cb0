"""How descriptions are read from docstrings, in every style."""

from typing import Annotated

import msgspec
import pytest

from keryx.tools.function import tool
from keryx.tools.function.docstring import read_docstring

GOOGLE = """Search the notes.

    Finds whole words only.

    Args:
        query (str): What to look for,
            in any language.
        limit: How many: at most ten.

            Ten is plenty.
        *extra (list[str], optional): More words.

    Returns:
        The notes.
    """

NUMPY = """Search the notes.

    Finds whole words only.

    Parameters
    ----------
    query : str
        What to look for,
        in any language.
    limit, extra : int, optional
        How many.

    Returns
    -------
    list
        The notes.
    """

SPHINX = """Search the notes.

    Finds whole words only.

    :param str query: What to look for,
        in any language.
    :param limit: How many.
    :type limit: int
    :returns: The notes.
    """

MIXED_SPHINX = """Search.

    :param query: What to look for.

    Finds whole words only.
    """

NUMPY_THEN_PROSE = """Search.

    Parameters
    ----------
    query
        What to look for.

    This line is prose again, and stays.
    """

NO_ENTRIES = """Explain.

    Args:
    are not documented here.
    """


@pytest.mark.parametrize(
    ("docstring", "text", "parameters"),
    [
        pytest.param(None, "", {}, id="none"),
        pytest.param("One line.", "One line.", {}, id="plain"),
        pytest.param(
            GOOGLE,
            "Search the notes.\n\nFinds whole words only.\n\nReturns:\n    The notes.",
            {
                "query": "What to look for, in any language.",
                "limit": "How many: at most ten. Ten is plenty.",
                "extra": "More words.",
            },
            id="google",
        ),
        pytest.param(
            NUMPY,
            "Search the notes.\n\nFinds whole words only.\n\n"
            "Returns\n-------\nlist\n    The notes.",
            {
                "query": "What to look for, in any language.",
                "limit": "How many.",
                "extra": "How many.",
            },
            id="numpy",
        ),
        pytest.param(
            SPHINX,
            "Search the notes.\n\nFinds whole words only.\n\n:returns: The notes.",
            {"query": "What to look for, in any language.", "limit": "How many."},
            id="sphinx",
        ),
        pytest.param(
            MIXED_SPHINX,
            "Search.\n\nFinds whole words only.",
            {"query": "What to look for."},
            id="sphinx before prose",
        ),
        pytest.param(
            NUMPY_THEN_PROSE,
            "Search.\n\nThis line is prose again, and stays.",
            {"query": "What to look for."},
            id="numpy before prose",
        ),
        pytest.param(
            NO_ENTRIES,
            "Explain.\n\nArgs:\nare not documented here.",
            {},
            id="a heading with nothing below it is prose",
        ),
        pytest.param("\nArgs:\n    x: It.", "", {"x": "It."}, id="parameters only"),
        pytest.param("Do.\n\nArgs:\n    x:\n    y: It.", "Do.", {"y": "It."}, id="no words"),
    ],
)
def test_a_docstring_is_taken_apart(
    docstring: str | None, text: str, parameters: dict[str, str]
) -> None:
    read = read_docstring(docstring)
    assert read.text == text
    assert read.parameters == parameters


def test_descriptions_reach_the_schema_and_the_tool() -> None:
    @tool
    def search(query: str, limit: int = 3) -> None:
        """Search the notes.

        Args:
            query: What to look for.
            limit: How many.
        """

    assert search.description == "Search the notes."
    assert search.parameters["properties"] == {
        "query": {"type": "string", "description": "What to look for."},
        "limit": {"type": "integer", "default": 3, "description": "How many."},
    }


def test_an_annotation_wins_over_the_docstring() -> None:
    @tool
    def search(query: Annotated[str, msgspec.Meta(description="From the type.")]) -> None:
        """Search.

        :param query: From the docstring.
        """

    assert search.parameters["properties"]["query"]["description"] == "From the type."


def test_a_given_description_replaces_the_text_but_not_the_parameters() -> None:
    @tool(
        description="""
        Given.

          Indented.
        """
    )
    def search(query: str) -> None:
        """Written.

        Args:
            query: What to look for.
        """

    assert search.description == "Given.\n\n  Indented."
    assert search.parameters["properties"]["query"]["description"] == "What to look for."
