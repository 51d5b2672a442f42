"""Embedded fonts are used as far as possible, and a warning lists what they do not have."""

from pathlib import Path

import pytest
from tests.unit.engine.export.exported import LAYOUT, export, page_picture, plain

from ade_engine.export import fonts
from ade_engine.export.export_warnings import ExportWarnings
from ade_engine.export.fonts import embedded_fonts, fonts_for, missing_glyphs
from ade_engine.export.pages import write_templates

SCRIPTS = {
    "Latin": "Aß∂ĀŁőſỄ",
    "Greek": "ΑΩαωἀ",
    "Cyrillic": "АЯаяЁѣ",
    "Hebrew": "אבת",
    "Arabic": "ابة",
    "signs": "→∑∫√≠≤∞±×÷…–—“”„°µ€✓■●★☃♥½²⟨⟩ℝ𝔸𝛼",
}
NOWHERE = "\N{EGYPTIAN HIEROGLYPH A001}"


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_embedded_fonts_have_these_scripts(script: str) -> None:
    write_templates(LAYOUT)
    assert missing_glyphs(set(SCRIPTS[script]), LAYOUT, embedded_fonts()) == set()


def test_characters_that_no_font_has_are_reported() -> None:
    write_templates(LAYOUT)
    asked = {*"a漢字é", '"', "\\", NOWHERE}
    assert missing_glyphs(asked, LAYOUT, embedded_fonts()) == {"漢", "字", NOWHERE}


def test_a_character_is_missing_by_itself_whatever_follows_it() -> None:
    write_templates(LAYOUT)
    tone = "\N{EMOJI MODIFIER FITZPATRICK TYPE-4}"
    assert missing_glyphs({"é", "•", tone}, LAYOUT, embedded_fonts()) == {tone}


def test_documents_use_no_font_of_the_host_without_need() -> None:
    write_templates(LAYOUT)
    warnings = ExportWarnings()
    chosen = fonts_for({*"aé∑\u200b\ufe0f\u0301"}, "en", LAYOUT, warnings)
    assert chosen.fonts is embedded_fonts()
    assert warnings.as_json() == []


def test_missing_glyphs_come_from_the_host_or_are_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(fonts, "FOLDERS", (tmp_path / "none",))
    result = export(plain(f"a {NOWHERE}"))
    assert [(one["code"], NOWHERE in one["message"]) for one in result["warnings"]] == [
        ("missing_glyphs", True)
    ]


def test_many_missing_characters_are_counted() -> None:
    ideographs = "".join(map(chr, range(0x13000, 0x13100)))
    [warning] = [
        one for one in export(plain(ideographs))["warnings"] if one["code"] == "missing_glyphs"
    ]
    assert "and 236 more" in warning["message"]


CJK_AND_THAI = "漢字 汉字 かな カナ 한글 สวัสดีชาวโลก"


def test_the_extra_has_chinese_japanese_korean_and_thai(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fonts, "FOLDERS", ())
    assert export(plain(CJK_AND_THAI))["warnings"] == []
    monkeypatch.setattr(fonts, "_package_folders", tuple)
    [warning] = export(plain(CJK_AND_THAI))["warnings"]
    assert warning["code"] == "missing_glyphs"
    assert "ade[fonts]" in warning["message"]


def test_characters_have_the_shapes_of_the_language() -> None:
    def drawn_in(language: str) -> bytes:
        export(plain("直角 骨 海"), language=language)
        return page_picture(1, width=595, height=842).tobytes()

    pictures = [drawn_in(language) for language in ("ja", "zh", "zh-TW", "ko")]
    assert len(set(pictures)) == 4


@pytest.mark.parametrize(
    ("language", "text", "family"),
    [
        ("ja", "漢", "Noto Sans CJK JP"),
        ("zh-HK", "漢", "Noto Sans CJK TC"),
        ("en", "漢かな", "Noto Sans CJK JP"),
        ("en", "한글", "Noto Sans CJK KR"),
        ("de", "汉", "Noto Sans CJK SC"),
    ],
)
def test_the_family_follows_the_language_and_the_characters(
    language: str, text: str, family: str
) -> None:
    write_templates(LAYOUT)
    assert fonts_for(set(text), language, LAYOUT, ExportWarnings()).families[0] == family


EMOJI = "🎉🚀😀👍🏽❤️🔥✅❌📈💡🧪🇩🇪👩‍💻🪐"


def test_the_extra_emoji_has_emoji(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fonts, "FOLDERS", ())
    assert export(plain(f"Done {EMOJI}"))["warnings"] == []
    monkeypatch.setattr(fonts, "_package_folders", tuple)
    [warning] = export(plain(f"Done {EMOJI}"))["warnings"]
    assert warning["code"] == "missing_glyphs"
    assert "ade[emoji]" in warning["message"]


def test_emoji_do_not_change_the_letters_and_digits_around_them() -> None:
    def first_line(text: str) -> bytes:
        export(plain(text))
        return page_picture(1, width=595, height=842).crop((0, 0, 595, 90)).tobytes()

    assert first_line("Room 12 #3") == first_line("Room 12 #3\n\n\N{ROCKET}")
