"""Several pages of one session: each has its own view of the shared document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.workbench.page_view import MAX_VIEWS, PageView, PageViews

from tests.workbench.conftest import Client

if TYPE_CHECKING:
    from collections.abc import Callable

    from tilewright.workbench.protocol import Update


def second_page(client: Client) -> Client:
    """Connect another page to the session of a client."""
    other = Client(client.session, name="other")

    def publish(update: Update, buffers: list[bytes]) -> None:
        page = other if update.client == other.name else client
        page.receive(update, buffers)

    client.session.publish = publish
    other.hello()
    return other


def test_pages_have_their_own_selection_and_open_function(network: Client) -> None:
    other = second_page(network)
    other.send("open", function="twice")
    assert network.session.view.open == "twice"
    update = network.select("function", 0, "main")
    assert update.open is None, "the first page still shows main"
    assert network.session.view.open == "main"
    other.select_loop("i", "twice")
    assert [s.step for s in other.suggestions()] != [s.step for s in network.suggestions()]


def test_an_edit_of_one_page_is_shown_by_the_other(matmul: Client) -> None:
    other = second_page(matmul)
    matmul.select_loop("i")
    other.select_loop("j")
    matmul.apply("split", "(None, 8)")
    update, _ = other.received[-1]
    assert update.reply == 0
    assert update.applied is not None
    assert "A cell or another page moved the head: it is split" in update.applied.message
    assert other.latest("matmul") == matmul.latest("matmul")
    assert "for i_1 in range(8):" in other.latest("matmul")
    assert other.session.views.of("other").selection is not None
    assert [s.label for s in other.suggestions() if s.step == "split"]


def test_a_selection_that_another_page_removed_is_replaced(matmul: Client) -> None:
    other = second_page(matmul)
    matmul.select_loop("j")
    matmul.apply("split", "(None, 8)")
    other.select_loop("j_1")
    matmul.send("navigate", action="undo", node="", head=matmul.session.schedule.head.id)
    update, _ = other.received[-1]
    assert update.selected is not None
    assert update.selected.selection is not None
    assert update.selected.selection.kind == "function"


def test_an_answer_is_sent_to_its_page_only(matmul: Client) -> None:
    other = second_page(matmul)
    before = len(matmul.received)
    other.select_loop("j")
    other.send("suggest")
    other.send("save", format="json")
    assert all(u.menu is None and u.document is None for u, _ in matmul.received[before:])
    assert {u.reply for u, _ in matmul.received[before:]} <= {0}


def test_a_job_answers_the_page_that_started_it(matmul: Client) -> None:
    other = second_page(matmul)
    stage = matmul.session.stages()[0].name
    matmul.send("lower", stage=stage)
    other.select_loop("j")
    matmul.session.jobs.wait()
    assert any(u.lowered is not None for u, _ in matmul.received)
    assert all(u.lowered is None for u, _ in other.received)


def test_a_reloaded_page_gets_its_view_again(network: Client) -> None:
    other = second_page(network)
    network.send("open", function="twice")
    network.select_loop("j", "twice")
    other.send("open", function="main")
    update = network.hello()
    assert update.open == "twice"
    assert update.revision == 1
    assert update.selected is not None
    assert update.selected.selection is not None
    assert update.selected.selection.name == "j"


def test_revisions_count_the_updates_of_a_page(matmul: Client) -> None:
    other = second_page(matmul)
    matmul.select_loop("i")
    matmul.apply("split", "(None, 8)")
    for page in (matmul, other):
        revisions = [update.revision for update, _ in page.received]
        assert revisions == list(range(1, len(revisions) + 1))


def test_the_oldest_views_are_dropped(connect: Callable[..., Client]) -> None:
    views = PageViews(PageView(open="f"))
    first = views.of("first")
    assert first.open == "f"
    for k in range(MAX_VIEWS):
        views.of(f"page {k}")
    assert "first" not in dict(iter(views))
    assert views.of("first") is not first
    assert views.current is views.of("first")


def test_only_changed_elements_of_lists_are_sent(network: Client) -> None:
    network.send("open", function="twice")
    network.select_loop("j", "twice")
    network.apply("unroll")
    pairs = zip(reversed(network.raw), reversed(network.received), strict=True)
    raw, whole = next((raw, whole) for (raw, _), (whole, _) in pairs if raw.history is not None)
    assert raw.history is not None
    assert whole.history is not None
    assert (raw.history.keep, len(raw.history.nodes), len(whole.history.nodes)) == (1, 1, 2)
    assert raw.functions is not None
    assert [item.name for item in raw.functions.items] == ["twice"]
    hello = network.hello()
    again, _ = network.raw[-1]
    assert again.history is not None
    assert again.history.keep is None
    assert hello.history == whole.history
