"""Altered summaries of wrk, wrk2 and oha: each gives a run or an error of one line."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.analysis.warnings import run_warnings
from cockpit.imports.summaries import is_wrk, parse_oha, run_of_summary
from cockpit.model.metrics import run_result
from tests.imports.test_summaries import OHA, WRK, WRK2, read, state_of


@given(st.data())
def test_any_change_of_a_summary_of_wrk_gives_a_run_or_one_error(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from([WRK, WRK2]))
    for _ in range(data.draw(st.integers(1, 4))):
        numbers = list(re.finditer(r"[\d.]+", text))
        found = data.draw(st.sampled_from(numbers))
        new = data.draw(st.one_of(st.from_regex(r"[0-9.]{0,24}", fullmatch=True), st.text(max_size=8)))
        text = text[: found.start()] + new + text[found.end() :]
    try:
        state = state_of(run_of_summary(read(text)))
    except ValueError as error:
        assert str(error) and "\n" not in str(error)
        return
    result = run_result(state, 1)
    assert state.ended and result is not None
    assert result.counts.failed <= result.counts.ended and run_warnings(result)
    assert 0 <= result.counts.latency.percentile(50) <= result.counts.latency.max


@given(st.data())
def test_any_value_in_a_summary_of_oha_gives_a_run_or_one_error(data: st.DataObject) -> None:
    copy: dict[str, Any] = json.loads(json.dumps(OHA))
    odd = st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(),
        st.just([]),
        st.dictionaries(st.text(), st.integers()),
    )
    table = copy
    while True:
        key = data.draw(st.sampled_from(sorted(table)))
        if not isinstance(table[key], dict) or not table[key] or data.draw(st.booleans()):
            table[key] = data.draw(odd)
            break
        table = table[key]
    try:
        state = state_of(run_of_summary(parse_oha([json.dumps(copy)])))
    except ValueError as error:
        assert str(error) and "\n" not in str(error)
        return
    assert state.ended


@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda raw: raw.decode(errors="replace")))
def test_any_text_after_the_first_line_gives_a_run_or_one_error(text: str) -> None:
    for parse in (lambda: read(f"Running 1s test @ http://a/\n{text}"), lambda: parse_oha(['{"summary":{', text])):
        with pytest.raises(ValueError):
            run_of_summary(parse())


def test_a_line_takes_linear_time() -> None:
    """No pattern backtracks."""
    for character in "0.%s ":
        many = character * (1 << 18)
        for line in (many, f"  Latency{many}", f"  50%  1ms{many}", f"  1 requests in 1s, 1{many}B read"):
            assert not is_wrk(line)
            with pytest.raises(ValueError, match="no line"):
                read(f"Running 1s test @ http://a/\n{line}\n")
    with pytest.raises(ValueError, match="larger than 1024 KiB"):
        parse_oha(['{"summary":{', *["x" * (1 << 16)] * 20])
