"""A spreadsheet program shows the workbook as it is meant: rendered to a picture and looked at.

Run as a program, it draws the pictures of the docs: `python -m ... docs/how-to/pictures`.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from matplotlib import image
from PIL import Image, ImageChops

from ade_engine.entry.normalize import NormalizeRequest, normalize
from ade_engine.examples import FOLDER

SOFFICE = shutil.which("soffice") or shutil.which("libreoffice")
TO_PNG = shutil.which("pdftoppm")
MISSING = [
    package
    for package, found in (("libreoffice-calc-nogui", SOFFICE), ("poppler-utils", TO_PNG))
    if not found
]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}"),
]
EXAMPLES = ("bank_statement", "member_roster", "payroll")
GAP = 24
ERROR = (0xFF, 0xC7, 0xCE)
HEADER = (0xD9, 0xE2, 0xF3)


def pdf_of(workbook: Path, folder: Path) -> Path:
    """Print a workbook to PDF."""
    profile = f"-env:UserInstallation=file://{folder}/profile"
    convert = ["--headless", "--convert-to", "pdf", "--outdir", str(folder), str(workbook)]
    subprocess.run([str(SOFFICE), profile, *convert], check=True, timeout=180, capture_output=True)
    return folder / f"{workbook.stem}.pdf"


def pictures_of(pdf: Path, dots_per_inch: int) -> list[Path]:
    """Draw the pages of a PDF file."""
    resolution = ["-r", str(dots_per_inch)]
    subprocess.run([str(TO_PNG), *resolution, "-png", pdf, pdf.with_name("page")], check=True)
    return sorted(pdf.parent.glob("page*.png"))


def normalized(example: str, folder: Path) -> Path:
    """Run an example package on its sample, and return the workbook."""
    (sample,) = (FOLDER / example / "samples").iterdir()
    normalize(NormalizeRequest(sample, FOLDER / example, folder / "out"))
    return folder / "out" / "normalized.xlsx"


def pixels_of(picture: Path, colour: tuple[int, int, int]) -> int:
    pixels = (image.imread(picture)[:, :, :3] * 255).round().astype(int)
    return int((abs(pixels - colour) <= 2).all(axis=2).sum())


def test_no_date_is_cut_and_issues_have_their_colours(tmp_path: Path) -> None:
    pdf = pdf_of(normalized("member_roster", tmp_path), tmp_path)
    printed = subprocess.run(["pdftotext", "-layout", pdf, "-"], check=True, capture_output=True)
    texts = printed.stdout.decode()
    for text in ("2019-03-01", "2021-12-31", "elio(at)example.org", "A member ID is two letters"):
        assert text in texts
    assert "###" not in texts
    picture = pictures_of(pdf, 60)[0]
    assert pixels_of(picture, HEADER) > 1_000
    assert pixels_of(picture, ERROR) > 500


def draw(target: Path) -> None:
    """Draw the workbook of each example: its sheets below each other, without the margins."""
    target.mkdir(parents=True, exist_ok=True)
    for example in EXAMPLES:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            pages = pictures_of(pdf_of(normalized(example, folder), folder), 90)
            cut = [_without_margins(Image.open(page).convert("RGB")) for page in pages]
        width, height = max(one.width for one in cut), sum(one.height + GAP for one in cut)
        whole = Image.new("RGB", (width, height), "white")
        top = 0
        for one in cut:
            whole.paste(one, (0, top))
            top += one.height + GAP
        whole.quantize(32).save(target / f"{example.replace('_', '-')}.png", optimize=True)


def _without_margins(page: Image.Image) -> Image.Image:
    inked = ImageChops.difference(page, Image.new("RGB", page.size, "white")).getbbox()
    left, upper, right, lower = inked or (0, 0, page.width, page.height)
    return page.crop((left - 4, upper - 4, right + 4, lower + 4))


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
