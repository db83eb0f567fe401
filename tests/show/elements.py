"""A page as its elements."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"meta", "img", "br"}


class Page(HTMLParser):
    """Elements in order, the text of each, and whether every tag is closed by its own kind."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[tuple[str, list[str]]] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(source)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), (tag, attrs)
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append((tag, []))

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        opened, text = self.open.pop()
        assert opened == tag
        self.texts.setdefault(tag, []).append("".join(text).strip())

    def handle_data(self, data):
        for _, text in self.open:
            text.append(data)

    def all(self, tag, **wanted):
        keys = {key.rstrip("_"): value for key, value in wanted.items()}
        return [
            a for t, a in self.elements if t == tag and all(a.get(k) == v for k, v in keys.items())
        ]
