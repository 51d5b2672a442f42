"""Markdown: what is markup, what is text, and that no text is slow to parse."""

import time

import pytest

from ade_engine.export import document_tree as tree
from ade_engine.export.document_tree import (
    Blocks,
    Break,
    Code,
    FormulaBlock,
    InlineFormula,
    Link,
    LiteralText,
    Paragraph,
    Styled,
)
from ade_engine.export.markdown import BLOCK_DEPTH_MAX, parse, plain, safe_url


def parsed(text: str) -> Blocks:
    """Parse a text that gives no warning."""
    warnings: list[str] = []
    blocks = parse(text, lambda code, message: warnings.append(code))
    assert warnings == []
    return blocks


def warned(text: str) -> tuple[Blocks, list[str]]:
    """Parse a text; return its blocks and the codes of its warnings."""
    warnings: list[str] = []
    return parse(text, lambda code, message: warnings.append(code)), warnings


def line(text: str) -> tuple[tree.Inline, ...]:
    """Parse a text that is one paragraph."""
    [paragraph] = parsed(text)
    assert isinstance(paragraph, Paragraph)
    return paragraph.inlines


def test_a_line_has_its_styles() -> None:
    assert line("a *b* **c** ~~d~~ `e`") == (
        LiteralText("a "),
        Styled("emphasis", (LiteralText("b"),)),
        LiteralText(" "),
        Styled("strong", (LiteralText("c"),)),
        LiteralText(" "),
        Styled("strike", (LiteralText("d"),)),
        LiteralText(" "),
        Code("e"),
    )


def test_all_kinds_of_blocks_are_parsed() -> None:
    kinds = [
        type(block) for block in parsed("# a\n\nb\n\n- c\n\n> d\n\n```py\ne\n```\n\n---\n\n$$f$$")
    ]
    assert kinds == [
        tree.Heading,
        Paragraph,
        tree.ListBlock,
        tree.QuoteBlock,
        tree.CodeBlock,
        tree.Rule,
        FormulaBlock,
    ]


def test_a_list_keeps_its_first_number_and_its_lists() -> None:
    [ordered] = parsed("7. a\n   - b\n8. c")
    assert ordered == tree.ListBlock(
        items=(
            (
                Paragraph((LiteralText("a"),)),
                tree.ListBlock(((Paragraph((LiteralText("b"),)),),), None),
            ),
            (Paragraph((LiteralText("c"),)),),
        ),
        start=7,
    )


def test_a_table_has_columns_rows_and_sides() -> None:
    [table] = parsed("| a | b | c |\n|---|:-:|--:|\n| 1 | *2* |\n")
    assert table == tree.TableBlock(
        columns=((LiteralText("a"),), (LiteralText("b"),), (LiteralText("c"),)),
        rows=(((LiteralText("1"),), (Styled("emphasis", (LiteralText("2"),)),), ()),),
        alignment=("left", "center", "right"),
    )


def test_raw_html_is_text() -> None:
    assert line("a <b onclick=x>c</b>") == (LiteralText("a <b onclick=x>c</b>"),)
    [block] = parsed("<script>alert(1)</script>")
    assert block == Paragraph((LiteralText("<script>alert(1)</script>"),))


def test_formulas_stand_in_lines_and_on_their_own() -> None:
    assert line("so $a+b$, says he") == (
        LiteralText("so "),
        InlineFormula("a+b"),
        LiteralText(", says he"),
    )
    assert parsed("$$\na\n= b\n$$") == (FormulaBlock("a\n= b"),)
    assert parsed("one $$x$$ two") == (
        Paragraph((LiteralText("one"),)),
        FormulaBlock("x"),
        Paragraph((LiteralText("two"),)),
    )


@pytest.mark.parametrize(
    "text",
    ["it costs $5 and $6", "$ a$", "$a $", "a $", r"\$a\$", "$$$$", "$$ $$", "$$a\n\nb$$", "`$a$`"],
)
def test_money_and_stray_signs_are_not_formulas(text: str) -> None:
    for block in parsed(text):
        assert isinstance(block, Paragraph)
        assert not any(isinstance(inline, InlineFormula) for inline in block.inlines)


def test_a_formula_in_a_heading_or_a_cell_stays_in_its_line() -> None:
    heading, table = parsed("# a $$b$$\n\n| $x$ |\n|---|\n| $$y$$ |")
    assert heading == tree.Heading(1, (LiteralText("a "), InlineFormula("b")))
    assert table == tree.TableBlock(
        ((InlineFormula("x"),),), (((InlineFormula("y"),),),), ("left",)
    )


@pytest.mark.parametrize("url", ["https://a.b/c?d=e#f", "http://a.b", "mailto:a@b.c"])
def test_addresses_of_the_web_and_of_mail_are_links(url: str) -> None:
    assert line(f"[a](<{url}>)") == (Link(url, (LiteralText("a"),)),)


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "ftp://a.b",
        "/relative",
        "#anchor",
        "//a.b/c",
        "http:",
        "https://",
        "mailto:",
        "https://a.b/" + "x" * 2_000,
    ],
)
def test_other_addresses_become_text(url: str) -> None:
    blocks, warnings = warned(f"[a](<{url}>)")
    assert blocks == (Paragraph((LiteralText("a"),)),)
    assert warnings == ["link_removed"]
    assert safe_url(url) is None


def test_an_invalid_address_is_not_a_link() -> None:
    assert safe_url("http://[") is None


def test_an_image_is_replaced_by_its_alternative_text() -> None:
    blocks, warnings = warned("![a cat](https://a.b/cat.png)")
    assert blocks == (Paragraph((LiteralText("[a cat]"),)),)
    assert warnings == ["image_not_fetched"]


def test_deep_nesting_is_flattened_and_complete() -> None:
    depth = BLOCK_DEPTH_MAX + 3
    [block] = parsed("> " * depth + "inmost")
    levels = 0
    while isinstance(block, tree.QuoteBlock):
        levels += 1
        [block] = block.blocks
    assert levels == BLOCK_DEPTH_MAX
    assert block == Paragraph((LiteralText("inmost"),))


def test_text_beyond_the_limits_of_the_parser_is_shown_plain() -> None:
    text = "> " * 200 + "inmost"
    blocks, warnings = warned(text)
    assert blocks == plain(text)
    assert warnings == ["markdown_shown_plain"]


def test_plain_text_keeps_its_lines_and_is_literal() -> None:
    assert plain("*a*\n# b\n\n  c") == (
        Paragraph((LiteralText("*a*"), Break(), LiteralText("# b"))),
        Paragraph((LiteralText("  c"),)),
    )


@pytest.mark.parametrize(
    "text",
    [
        "[" * 20_000,
        "![" * 10_000,
        "[a](" * 900,
        "*a_" * 10_000,
        "**a *b " * 5_000,
        "`a``" * 8_000,
        ">" * 20_000,
        "- " * 10_000,
        "$a " * 10_000,
        "$$a\n\n" * 8_000,
        "$$a\n" * 8_000,
        "$" + r"\$" * 20_000,
        "$" * 30_000,
        "|a" * 8_000 + "\n" + "|-" * 8_000,
        "<a" * 20_000,
        "\\" * 30_000,
    ],
    ids=lambda text: text[:8].strip(),
)
def test_no_text_makes_it_slow(text: str) -> None:
    began = time.process_time()
    blocks, _ = warned(text)
    assert time.process_time() - began < 5
    assert blocks
