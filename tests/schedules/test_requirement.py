"""Requirements: names, texts, and the section of the documentation."""

from tilewright.schedules.primitives.loops.split import Split
from tilewright.schedules.requirement import Requirement, by_key, documented

SHORT = "Do it."

LONG = """Do it.

    Parameters
    ----------
    loop : LoopRef
        The loop.

    Notes
    -----
    Cost: none.
    """


class Requires(Requirement):
    SERIAL = "the loop is serial"
    ONE_UPDATE = "the update has the form ``C = C op value``"


def test_names_and_texts():
    assert by_key(Requires) == {
        "serial": "the loop is serial",
        "one_update": "the update has the form 'C = C op value'",
    }
    assert Requires.ONE_UPDATE.markup == "The update has the form ``C = C op value``."
    assert repr(Split.Requires.SERIAL) == "Split.Requires.SERIAL"


def test_requirements_of_a_step():
    assert Split.requirements()["serial"] == Split.Requires.SERIAL.text


def test_the_section_follows_the_parameters():
    assert documented(LONG, Requires) == LONG.replace(
        "    Notes\n",
        """    Requires
    --------
    serial
        The loop is serial.
    one_update
        The update has the form ``C = C op value``.

    Notes
""",
    )


def test_the_section_ends_a_short_docstring():
    assert documented(SHORT, Requires).startswith("Do it.\n\nRequires\n--------\nserial\n")


def test_no_section_without_requirements():
    assert documented(LONG, Requirement) == LONG
