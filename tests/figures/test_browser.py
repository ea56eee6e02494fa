"""The pages in a real browser: no text leaves its picture, none overlaps another, and nothing is cut off."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hkc.api import CompiledKernel
from hkc.figures.facts import Facts
from hkc.figures.page import page
from hkc.targets.chip import Chip

BROWSER = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)

PROBE = """
<script>
addEventListener("load", () => {
  const found = [];
  const low = (r, w, side) => r[side] < w[side] - 0.5, high = (r, w, side) => r[side] > w[side] + 0.5;
  const cut = (r, w) => low(r, w, 'left') || low(r, w, 'top') || high(r, w, 'right') || high(r, w, 'bottom');
  const shared = (a, b, from, to) => Math.min(a[to], b[to]) - Math.max(a[from], b[from]);
  let texts = 0;
  for (const svg of document.querySelectorAll("svg")) {
    const frame = svg.getBoundingClientRect();
    const boxes = [...svg.querySelectorAll("text")].map(t => [t.textContent, t.getBoundingClientRect()]);
    texts += boxes.length;
    for (const [text, box] of boxes) if (cut(box, frame)) found.push(`"${text}" leaves its picture`);
    boxes.sort((a, b) => a[1].left - b[1].left);
    for (let i = 0; i < boxes.length; i++)
      for (let j = i + 1; j < boxes.length && boxes[j][1].left < boxes[i][1].right - 0.5; j++) {
        const [a, b] = [boxes[i][1], boxes[j][1]];
        // The box of a text is that of its font, taller than its characters.
        if (shared(a, b, "top", "bottom") > 0.3 * Math.min(a.height, b.height))
          found.push(`"${boxes[i][0]}" and "${boxes[j][0]}" overlap`);
      }
  }
  for (const part of document.querySelectorAll("figure, .card, td, h1, h2, h3, p, body"))
    if (part.scrollWidth > part.clientWidth + 1) found.push(`${part.tagName} ${part.id} is cut off`);
  for (const part of document.querySelectorAll(".scroll"))
    if (part.scrollWidth > part.clientWidth + 1) found.push(`scrolls: ${part.textContent.slice(0, 40)}`);
  const figures = [...document.querySelectorAll("figure")].map(f => [f.id, f.getBoundingClientRect()]);
  figures.forEach(([name, a], i) => figures.slice(i + 1).forEach(([other, b]) => {
    if (shared(a, b, "left", "right") > 0.5 && shared(a, b, "top", "bottom") > 0.5)
      found.push(`${name} and ${other} overlap`);
  }));
  const said = document.createElement("pre");
  said.id = "probe";
  said.textContent = JSON.stringify({texts, figures: figures.length, found});
  document.body.append(said);
});
</script>
"""


def probed(text: str, folder: Path) -> Any:
    """What the probe finds on a page."""
    path = folder / "page.html"
    path.write_text(text.replace("</body>", f"{PROBE}</body>"))
    words = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile"]
    words += ["--window-size=1366,900", "--virtual-time-budget=20000", "--dump-dom", path.as_uri()]
    ran = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=120, check=True)
    said = re.search(r'<pre id="probe">(.*?)</pre>', ran.stdout, re.S)
    assert said, ran.stderr[-2000:]
    return json.loads(html.unescape(said[1]))


@pytest.mark.skipif(BROWSER is None, reason="no Chromium on PATH: pages are not looked at in a browser")
def test_pages_in_chromium(
    kernel_facts: Callable[[str, str], tuple[CompiledKernel, Facts, Chip]], name: str, tmp_path: Path
) -> None:
    known = [kernel_facts(name, arch)[1:] for arch in ("gfx942", "gfx950")]
    seen = probed(page(known), tmp_path)
    assert seen["found"] == []
    assert seen["texts"] > 20 and seen["figures"] >= 2


@pytest.mark.skipif(BROWSER is None, reason="no Chromium on PATH: pages are not looked at in a browser")
def test_the_probe_sees_faults(tmp_path: Path) -> None:
    bad = (
        '<!doctype html><body><figure style="width:90px"><svg width="60" height="30">'
        '<text x="50" y="20">too long</text><text x="52" y="21">over it</text></svg>'
        '<p style="width:400px">x</p></figure></body>'
    )
    found = " ".join(probed(bad, tmp_path)["found"])
    assert "leaves its picture" in found and "overlap" in found and "FIGURE" in found
