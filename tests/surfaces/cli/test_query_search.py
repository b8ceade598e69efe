"""Searches at the command line: what is refused before anything is read."""

from pathlib import Path

import pytest

from tests.support.in_process import invoke


@pytest.mark.case("surfaces", 54)
def test_nearest_without_a_limit_is_refused_when_it_is_compiled(tmp_path: Path) -> None:
    (tmp_path / "craft.pg").write_text("node Craft { code: String @key  v: Vector(2)? }\n")
    assert invoke("init", "craft.omni", "--schema", "craft.pg", "--quiet", cwd=tmp_path).code == 0
    text = "query near() { match { $c: Craft } return { $c.code } order { nearest($c.v, [0, 1]) } }"

    refused = invoke("query", "-e", text, "--store", "craft.omni", cwd=tmp_path)

    assert (refused.code, refused.stdout) == (1, "")
    assert "T17" in refused.stderr
    assert "limit" in refused.stderr
    assert invoke("query", "-e", f"{text[:-2]} limit 3 }}", "--store", "craft.omni", cwd=tmp_path).code == 0
