"""Chat templates that Proctor applies itself: read as models are published with them, rendered as transformers does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.domain.chat_template import MAX_TEMPLATE, ChatTemplate
from proctor.domain.errors import BadInputError
from proctor.domain.operator_endpoint import operator_endpoints_json, parse_operator_endpoints
from proctor.domain.suite_problems import parse_suite
from proctor.formats.chat_templates import MAX_FILE_BYTES, parse_chat_template
from proctor.router.submit.endpoints import resolve_endpoint, resolve_paraphraser, resolve_router
from proctor.runtime.settings import Settings
from proctor.text.chat_template import ChatTemplateError, hold_usable, rendered
from tests.suites.examples import SMALL

#: In the manner of what is published: ChatML with a default system message, Llama 3's headers, Mistral's brackets.
CHATML = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nYou are helpful.<|im_end|>\n' }}{% endif %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
HEADERS = (
    "{{- bos_token }}\n{%- if not date_string is defined %}\n    {%- set date_string = '26 Jul 2024' %}\n{%- endif %}\n"
    "{{- 'Today: ' + date_string + '\n' }}\n{%- for message in messages %}\n"
    "    {{- '<|h|>' + message['role'] + '<|/h|>' + message['content'] | trim + '<|eot|>' }}\n{%- endfor %}\n"
    "{%- if add_generation_prompt %}\n    {{- '<|h|>assistant<|/h|>' }}\n{%- endif %}\n"
)
BRACKETS = (
    "{{ bos_token }}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate') }}{% endif %}{% if message['role'] == 'user' %}"
    "{{ '[INST] ' + message['content'] + ' [/INST]' }}{% else %}{{ message['content'] + eos_token }}{% endif %}"
    "{% endfor %}"
)
LOOPS = (
    "{% for message in messages %}{% if loop.index0 > 3 %}{% break %}{% endif %}"
    "{% if message.role == 'assistant' %}{% generation %}{{ message.content }}{% endgeneration %}{% else %}"
    "{{ message | tojson }}{{ message.content }}{% endif %}{% endfor %}{{ eos_token }}"
)
TEMPLATES = [CHATML, HEADERS, BRACKETS, LOOPS]


def template(text: str, **tokens: str) -> ChatTemplate:
    return ChatTemplate(text=text, **tokens)


@pytest.mark.parametrize("text", TEMPLATES)
@given(message=st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_a_message_is_rendered_as_transformers_renders_it(text: str, message: str) -> None:
    from transformers.utils.chat_template_utils import render_jinja_template

    (theirs,), _ = render_jinja_template(
        [[{"role": "user", "content": message}]],
        chat_template=text,
        add_generation_prompt=True,
        bos_token="<s>",
        eos_token="</s>",
    )
    assert rendered(template(text, bos_token="<s>", eos_token="</s>"), message) == theirs


def test_what_a_user_writes_is_no_template() -> None:
    said = rendered(template(CHATML), "{{ 7 * 7 }}{% raw %}")
    assert "{{ 7 * 7 }}{% raw %}" in said
    assert "49" not in said


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{{ raise_exception('no users here') }}", "no users here"),
        ("{% if %}", "TemplateSyntaxError"),
        ("{{ messages[0]['content'].__class__.__mro__ }}", "SecurityError"),
        ("{{ messages.append(1) }}", "SecurityError"),
        ("{% for n in range(10 ** 9) %}x{% endfor %}", "OverflowError"),
        ("{% include 'x' %}", "Error"),
    ],
)
def test_a_template_that_refuses_or_reaches_out_is_named(text: str, words: str) -> None:
    with pytest.raises(ChatTemplateError, match=words):
        rendered(template(text), "a")


@pytest.mark.parametrize("text", ["Hello", "{{ messages[0]['content'] | upper }}", "{{ messages[0]['content'][:5] }}"])
def test_a_template_that_loses_the_message_is_refused(text: str) -> None:
    with pytest.raises(ChatTemplateError, match="leaves the user's message out"):
        hold_usable(template(text))


def test_a_template_is_read_from_a_tokenizer_config_as_it_is_published() -> None:
    config = {"chat_template": CHATML, "bos_token": "<s>", "eos_token": {"content": "</s>", "lstrip": False}}
    found = parse_chat_template(json.dumps(config).encode(), "tokenizer_config.json")
    # The server puts the first token before every text by itself.
    assert found == ChatTemplate(text=CHATML, bos_token="", eos_token="</s>")
    named = [{"name": "tool_use", "template": "x"}, {"name": "default", "template": BRACKETS}]
    assert parse_chat_template(json.dumps({"chat_template": named}).encode(), "t.json").text == BRACKETS
    given = parse_chat_template(json.dumps(config).encode(), "t.json", bos_token="<b>", eos_token="<e>")
    assert (given.bos_token, given.eos_token) == ("<b>", "<e>")
    assert parse_chat_template(HEADERS.encode(), "chat_template.jinja").text == HEADERS


@pytest.mark.parametrize(
    ("data", "source", "words"),
    [
        (b"\xff\xfe", "t.jinja", "not UTF-8"),
        (b"  \n", "t.jinja", "holds no chat template"),
        (b"[1]", "t.json", "no JSON object"),
        (b'{"a": ', "t.json", "no JSON object"),
        (b'{"a": 1}', "t.json", r"has no chat_template; .*chat_template\.jinja"),
        (b'{"chat_template": [{"name": "tools", "template": "x"}]}', "t.json", "has no chat_template"),
        (b'{"chat_template": 3}', "t.json", "has no chat_template"),
        (b"x" * (MAX_TEMPLATE + 1), "t.jinja", "65,537 characters"),
    ],
)
def test_what_is_no_template_is_refused_with_what_to_name(data: bytes, source: str, words: str) -> None:
    with pytest.raises(BadInputError, match=words):
        parse_chat_template(data, source)


def test_the_digest_is_that_of_the_file_of_the_template() -> None:
    import hashlib

    assert template(CHATML).digest == "sha256:" + hashlib.sha256(CHATML.encode()).hexdigest()


@pytest.mark.parametrize(
    ("endpoint", "words"),
    [
        ({"url": "https://h/v1", "chat_template": "/t.json"}, "is asked as openai; leave it out"),
        ({"url": "grpc://h:1", "backend": "infer", "chat_template": "/t.json"}, "is asked as infer"),
        ({"url": "grpc://h:1", "chat_template": {}}, "neither path nor text"),
        ({"url": "grpc://h:1", "chat_template": {"path": "/a", "text": "b"}}, "of both"),
        ({"url": "grpc://h:1", "chat_template": "t.json"}, "not from the root"),
        ({"url": "grpc://h:1", "chat_template": {"path": "/a", "pad_token": "x"}}, "unknown key"),
    ],
)
def test_a_template_that_would_do_nothing_is_refused_where_the_operator_writes_it(endpoint: Any, words: str) -> None:
    with pytest.raises(BadInputError, match=words):
        parse_operator_endpoints(json.dumps({"e": endpoint}), source="PROCTOR_ENDPOINTS")


def test_the_operator_s_words_are_written_back_as_they_were_read() -> None:
    said = {"e": {"url": "grpc://h:1", "chat_template": {"path": "/t.json", "bos_token": "<s>"}}}
    found = parse_operator_endpoints(json.dumps(said), source="test")
    assert parse_operator_endpoints(operator_endpoints_json(found), source="test") == found


def settings(folder: Path, **endpoints: Any) -> Settings:
    listed = parse_operator_endpoints(json.dumps(endpoints), source="test")
    return Settings(home=folder).model_copy(update={"endpoints": listed})


def suite(endpoint: str, **sections: Any) -> Any:
    model = {**SMALL["model_config"], "endpoint": endpoint}
    chat = {"prompt_config": {"chat_template": "user"}}
    wordings = {"perturbation_config": {"perturbation_strategy": "wordings"}}
    return parse_suite(json.dumps({**SMALL, **wordings, **chat, **sections, "model_config": model}))


def test_a_model_on_triton_without_a_template_is_refused_before_anything_runs_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(BadInputError) as refused:
        resolve_endpoint(suite("prod"), settings(tmp_path, prod="grpc://h:8001"))
    said = str(refused.value)
    assert "prompt_config.chat_template is 'user'" in said
    assert "no chat template is applied" in said
    assert "OpenAI-compatible endpoint" in said
    assert "PROCTOR_ENDPOINTS" in said


def test_a_template_belongs_to_the_model_of_the_endpoint_that_is_named(tmp_path: Path) -> None:
    file = tmp_path / "tokenizer_config.json"
    file.write_text(json.dumps({"chat_template": CHATML}))
    listed = settings(tmp_path, prod={"url": "grpc://h:8001", "chat_template": str(file)}, rewriter="grpc://h:8001")
    spec = resolve_endpoint(suite("prod"), listed)
    assert (spec.chat, spec.chat_template) == (True, ChatTemplate(text=CHATML))
    # Another model that is asked at the same server has another template.
    asking = {"perturbation_strategy": "paraphrase_llm", "paraphrase_model": "org/other"}
    with pytest.raises(BadInputError, match=r"paraphraser\.chat_template is 'user'"):
        resolve_paraphraser(suite("prod", perturbation_config=asking), listed)
    routed = {"protocol": "router_worker", "router": {"model": "org/other"}}
    with pytest.raises(BadInputError, match=r"router\.chat_template is 'user'"):
        resolve_router(suite("prod", protocol_config=routed), listed)
    own = resolve_router(suite("prod", protocol_config={"protocol": "router_worker"}), listed)
    assert own is not None
    assert own.chat_template == ChatTemplate(text=CHATML)
    # A URL says nothing of whose template it is.
    with pytest.raises(BadInputError, match="name that id"):
        resolve_endpoint(suite("grpc://h:8001"), listed)
    assert resolve_endpoint(suite("prod", prompt_config={}), listed).chat_template is None


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read"),
        (b"{% if %}", "cannot be rendered"),
        (b"Hello", "leaves the user's message out"),
        (b"x" * (MAX_FILE_BYTES + 1), "larger than 4 MiB"),
    ],
)
def test_a_file_that_is_no_usable_template_is_refused_with_its_endpoint(
    content: bytes | None, words: str, tmp_path: Path
) -> None:
    file = tmp_path / "t.jinja"
    if content is not None:
        file.write_bytes(content)
    listed = settings(tmp_path, prod={"url": "grpc://h:8001", "chat_template": str(file)})
    with pytest.raises(BadInputError, match=words) as refused:
        resolve_endpoint(suite("prod"), listed)
    assert "endpoint" in str(refused.value)
    assert "prod" in str(refused.value)


@given(st.binary(max_size=300))
def test_no_bytes_make_the_reader_stumble(data: bytes) -> None:
    for source in ("t.json", "t.jinja"):
        try:
            found = parse_chat_template(data, source)
        except BadInputError:
            continue
        try:
            rendered(found, "a")
        except ChatTemplateError:
            continue
