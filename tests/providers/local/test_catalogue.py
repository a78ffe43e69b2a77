"""The table of models, the user's own models, and the script that makes the table."""

import json
import os
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest
from genai_prices import Usage, calc_price
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hilt.providers
from hilt.errors import ConfigError
from hilt.model.models import ModelInfo, Price
from hilt.providers.catalogue import DEMO, SCRIPT, Catalogue
from hilt.providers.vendors import PROVIDERS

TABLE = Path(hilt.providers.__file__).parent / "catalogue.json"
BUILDER = Path(__file__).parents[3] / "scripts" / "build_catalogue.py"


def user_models(folder: Path, content: object) -> Path:
    path = folder / "models.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_the_table_is_small_dated_and_carries_its_source_and_notice() -> None:
    assert TABLE.stat().st_size <= 60 * 1024
    table = json.loads(TABLE.read_text())
    assert date.fromisoformat(table["date"]) > date(2025, 1, 1) and "litellm" in table["source"]
    notice = TABLE.with_suffix(".NOTICE").read_text()
    assert "MIT License" in notice and "Copyright (c) 2023 Berri AI" in notice


def test_every_entry_has_a_window_an_output_limit_and_a_price_that_is_not_absurd() -> None:
    models = Catalogue.load().all()
    assert len(models) > 100
    for info in models:
        assert info.context_window >= 4000 and info.max_output > 0, info
        assert info.price is not None and 0 <= info.price.input <= info.price.output <= 1000, info
        assert info.price.cache_read <= info.price.input, info


def test_the_default_models_are_known() -> None:
    catalogue = Catalogue.load()
    for vendor in PROVIDERS.values():
        if vendor.default_model:
            info = catalogue.find(vendor.name, vendor.default_model)
            assert info.context_window and info.price is not None and info in catalogue.all(vendor.name)


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("anthropic", "claude-sonnet-4-5"), ("anthropic", "claude-opus-4-5"), ("anthropic", "claude-haiku-4-5"),
        ("openai", "gpt-5"), ("openai", "gpt-5-mini"), ("openai", "gpt-5-nano"), ("openai", "gpt-4.1"),
        ("openai", "gpt-4o"), ("openai", "gpt-4o-mini"), ("openai", "o3"), ("openai", "o4-mini"),
        ("google", "gemini-2.5-pro"), ("google", "gemini-2.5-flash"), ("google", "gemini-2.5-flash-lite"),
    ],
)  # fmt: skip
def test_prices_agree_with_a_second_source(provider: str, model: str) -> None:
    price = Catalogue.load().find(provider, model).price
    assert price is not None
    # Few enough tokens that no price for long contexts applies.
    usage = Usage(input_tokens=100_000, output_tokens=100_000)
    other = calc_price(usage, model_ref=model, provider_id=provider)
    assert float(other.input_price) * 10 == pytest.approx(price.input)
    assert float(other.output_price) * 10 == pytest.approx(price.output)


def test_demo_and_script_need_no_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hilt.providers.catalogue._TABLE", tmp_path / "gone.json")
    catalogue = Catalogue.load(tmp_path / "models.json")
    assert catalogue.find("demo", "demo") == DEMO and DEMO.context_window == 32768 and DEMO.price == Price()
    assert catalogue.find("script", "script") == SCRIPT
    assert catalogue.providers_of("demo") == ["demo"]
    with pytest.raises(FileNotFoundError):
        catalogue.all()


def test_a_script_may_play_the_part_of_a_known_model() -> None:
    catalogue = Catalogue.load()
    played, real = catalogue.find("script", "gpt-5"), catalogue.find("openai", "gpt-5")
    assert (played.provider, played.price, played.context_window) == ("script", real.price, real.context_window)
    assert catalogue.find("script", "made-up").price is None


def test_an_unknown_model_has_no_price_and_the_window_its_provider_is_known_for() -> None:
    catalogue = Catalogue.load()
    assert catalogue.find("openai", "gpt-99") == ModelInfo("gpt-99", "openai")
    local = catalogue.find("ollama", "qwen3:8b")
    assert (local.context_window, local.max_output, local.price) == (32768, 8192, None)
    assert catalogue.find("nobody", "x") == ModelInfo("x", "nobody")


def test_aliases_lead_to_the_same_models() -> None:
    catalogue = Catalogue.load()
    assert catalogue.find("gemini", "gemini-2.5-pro").provider == "google"
    assert catalogue.all("moonshot") == catalogue.all("kimi") != []
    assert catalogue.providers_of("gpt-5") == ["openai"] and catalogue.providers_of("nothing") == []


def test_user_models_add_to_the_table_and_correct_it(tmp_path: Path) -> None:
    said = {
        "providers": {
            "ollama": {
                "models": [
                    {
                        "id": "qwen3", "name": "Qwen 3", "reasoning": True, "contextWindow": 40960, "maxTokens": 4096,
                        "baseUrl": "http://box:11434", "priceInput": 0.5, "priceOutput": 1, "priceCacheRead": 0.1,
                        "priceCacheWrite": 0.2, "somethingNew": [],
                    }
                ]
            },
            "gemini": {"models": [{"id": "gemini-2.5-pro", "priceInput": 9}]},
            "google": {"models": [{"id": "gemini-next"}]},
        }
    }  # fmt: skip
    catalogue = Catalogue.load(user_models(tmp_path, said))
    assert catalogue.find("ollama", "qwen3") == ModelInfo(
        "qwen3", "ollama", "Qwen 3", 40960, 4096, True, Price(0.5, 1.0, 0.1, 0.2), "http://box:11434", "openai"
    )
    corrected, built_in = catalogue.find("google", "gemini-2.5-pro"), Catalogue.load().find("google", "gemini-2.5-pro")
    assert corrected.price is not None and built_in.price is not None
    assert (corrected.price.input, corrected.price.output) == (9, built_in.price.output)
    assert corrected.context_window == built_in.context_window
    assert catalogue.find("google", "gemini-next").price is None
    ids = [info.id for info in catalogue.all("google")]
    assert "gemini-next" in ids and ids.count("gemini-2.5-pro") == 1
    assert catalogue.providers_of("qwen3") == ["ollama"]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{", "$"),
        ("[]", "object"),
        ({"providers": []}, "$.providers"),
        ({"providers": {"ollama": 3}}, "$.providers.ollama"),
        ({"providers": {"ollama": {"models": {}}}}, "$.providers.ollama.models"),
        ({"providers": {"ollama": {"models": [{"name": "x"}]}}}, "`id`"),
        ({"providers": {"ollama": {"models": [{"id": "x"}, {"id": ""}]}}}, "$.providers.ollama.models[1].id"),
        ({"providers": {"kimi": {"models": [{"id": "x", "contextWindow": "big"}]}}}, "models[0].contextWindow"),
        ({"providers": {"kimi": {"models": [{"id": "x", "priceInput": -1}]}}}, "models[0].priceInput"),
    ],
)
def test_a_bad_file_of_models_is_reported_with_file_and_field(tmp_path: Path, content: object, told: str) -> None:
    path = user_models(tmp_path, content)
    with pytest.raises(ConfigError) as caught:
        Catalogue.load(path).find("ollama", "x")
    assert str(path) in str(caught.value) and told in str(caught.value) and "providers" in caught.value.hint


def test_a_file_too_large_for_models_is_refused_without_being_read(tmp_path: Path) -> None:
    path = user_models(tmp_path, "{}")
    os.truncate(path, 5 * 1024 * 1024)
    with pytest.raises(ConfigError, match="not a file of models"):
        Catalogue.load(path).all()


def test_a_directory_in_place_of_the_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not a file"):
        Catalogue.load(tmp_path).all()


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=40) | st.text('{}[]":,1aproviders', max_size=40).map(str.encode))
def test_whatever_the_file_holds_it_is_models_or_a_config_error(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzzed-models.json"
    path.write_bytes(data)
    try:
        found = Catalogue.load(path).find("demo", "demo")
    except ConfigError:
        return
    assert found == DEMO


def test_the_builder_keeps_chat_models_with_prices_and_adds_what_is_missing(tmp_path: Path) -> None:
    chat = {"mode": "chat", "max_input_tokens": 1000, "max_output_tokens": 100, "input_cost_per_token": 1e-6,
            "output_cost_per_token": 2e-6}  # fmt: skip
    source = {
        "claude-x": {**chat, "litellm_provider": "anthropic", "supports_reasoning": True,
                     "cache_read_input_token_cost": 1e-7, "cache_creation_input_token_cost": 1.25e-6},
        "gemini/gemini-x": {**chat, "litellm_provider": "gemini"},
        "gpt-audio": {**chat, "litellm_provider": "openai"},
        "dall-e": {**chat, "litellm_provider": "openai", "mode": "image_generation"},
        "gpt-free": {**chat, "litellm_provider": "openai", "input_cost_per_token": None},
        "mistral/x": {**chat, "litellm_provider": "mistral"},
    }  # fmt: skip
    table, out = tmp_path / "table.json", tmp_path / "out.json"
    table.write_text(json.dumps(source))
    command = [sys.executable, str(BUILDER), "--table", str(table), "--version", "1.2", "--date", "2025-01-31"]
    subprocess.run([*command, "--out", str(out)], check=True, capture_output=True, timeout=30)
    built = json.loads(out.read_text())
    assert built["date"] == "2025-01-31" and "litellm 1.2" in built["source"]
    assert {provider: list(models) for provider, models in built["models"].items()} == {
        "anthropic": ["claude-x"], "openai": [], "google": ["gemini-x"], "kimi": ["kimi-for-coding"],
    }  # fmt: skip
    assert built["models"]["anthropic"]["claude-x"] == {
        "context": 1000, "output": 100, "reasoning": True, "price": [1, 2, 0.1, 1.25],
    }  # fmt: skip
    assert built["models"]["google"]["gemini-x"]["price"] == [1, 2, 1, 1]
