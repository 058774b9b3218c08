"""Render chat templates with jinja2 and write what they must produce.

    make_chat.py OUT/cases.json

The environment is the one transformers gives to chat templates:
ImmutableSandboxedEnvironment with trim_blocks and lstrip_blocks, loop
controls, a {% generation %} block, the filter tojson = json.dumps without
HTML escapes, raise_exception(message) and strftime_now(format). The clock
stands still at the time in "now".

Each case holds name, template (a key of "templates") or source, context and
one of
  expected          the text
  error: true       rendering fails; error_message where the template itself
                    raised it with raise_exception
A case named "rare ..." may also fail: no chat template relies on it. Where
the template has generation blocks there are, too,
  generation        [[begin, end], ...] in code points of the text
  generation_bytes  the same in bytes of its UTF-8

Conversations are rendered a second time by transformers itself, and must
agree. Versions: requirements.txt.
"""

import argparse
import json
import re
from datetime import datetime
from pathlib import Path

import jinja2
from jinja2 import nodes
from jinja2.exceptions import TemplateError
from jinja2.ext import Extension
from jinja2.sandbox import ImmutableSandboxedEnvironment

NOW = datetime(2026, 7, 4, 9, 5, 3)
GENERATION_TAG = re.compile(r"\{%[-+]?\s*generation\s*[-+]?%\}")
OPEN, CLOSE = "\ue000", "\ue001"  # stand around generated text while rendering


class Generation(Extension):
    """{% generation %} ... {% endgeneration %} marks what the model wrote."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        call = self.call_method("_mark", [], lineno=line)
        return nodes.CallBlock(call, [], [], body).set_lineno(line)

    def _mark(self, caller):
        return OPEN + caller() + CLOSE


class Raised(TemplateError):
    """The template called raise_exception."""


def raise_exception(message):
    raise Raised(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                      sort_keys=sort_keys)


def environment():
    env = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", Generation])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = NOW.strftime
    return env


ENVIRONMENT = environment()

# ---------------------------------------------------------------- templates

TEMPLATES = {}

TEMPLATES["chatml"] = """\
{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""

TEMPLATES["chatml_default_system"] = """\
{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\\nYou answer briefly.<|im_end|>\\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}
"""

TEMPLATES["tools_chatml"] = """\
{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0]['role'] == 'system' %}
        {{- messages[0]['content'] }}
    {%- else %}
        {{- 'You are a careful assistant.' }}
    {%- endif %}
    {{- "\\n\\n# Functions\\n\\nOne JSON signature on each line inside <tools></tools>:\\n<tools>" }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\\n</tools>\\n\\nCall one like this:\\n<tool_call>\\n{\\"name\\": <name>, \\"arguments\\": <object>}\\n</tool_call><|im_end|>\\n" }}
{%- else %}
    {%- if messages[0]['role'] == 'system' %}
        {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}
    {%- else %}
        {{- '<|im_start|>system\\nYou are a careful assistant.<|im_end|>\\n' }}
    {%- endif %}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) or (message.role == "assistant" and not message.tool_calls) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {{- '<|im_start|>' + message.role }}
        {%- if message.content %}
            {{- '\\n' + message.content }}
        {%- endif %}
        {%- for tool_call in message.tool_calls %}
            {%- if tool_call.function is defined %}
                {%- set tool_call = tool_call.function %}
            {%- endif %}
            {{- '\\n<tool_call>\\n{"name": "' }}
            {{- tool_call.name }}
            {{- '", "arguments": ' }}
            {{- tool_call.arguments | tojson }}
            {{- '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if (loop.index0 == 0) or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<tool_response>\\n' }}
        {{- message.content }}
        {{- '\\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""

TEMPLATES["thinking"] = """\
{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0].role == 'system' %}
        {{- messages[0].content + '\\n\\n' }}
    {%- endif %}
    {{- "Functions:" }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- '<|im_end|>\\n' }}
{%- elif messages[0].role == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- set ns = namespace(searching=true, last_question=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.searching and message.role == "user" and message.content is string and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.searching = false %}
        {%- set ns.last_question = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}
        {%- set content = message.content %}
    {%- else %}
        {%- set content = '' %}
    {%- endif %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {%- set thought = '' %}
        {%- if message.reasoning_content is string %}
            {%- set thought = message.reasoning_content %}
        {%- else %}
            {%- if '</think>' in content %}
                {%- set thought = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
                {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
            {%- endif %}
        {%- endif %}
        {%- if loop.index0 > ns.last_question %}
            {%- if loop.last or (not loop.last and thought) %}
                {{- '<|im_start|>' + message.role + '\\n<think>\\n' + thought.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
            {%- else %}
                {{- '<|im_start|>' + message.role + '\\n' + content }}
            {%- endif %}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\\n' + content }}
        {%- endif %}
        {%- if message.tool_calls %}
            {%- for tool_call in message.tool_calls %}
                {%- if (loop.first and content) or (not loop.first) %}
                    {{- '\\n' }}
                {%- endif %}
                {%- if tool_call.function %}
                    {%- set tool_call = tool_call.function %}
                {%- endif %}
                {{- '<tool_call>\\n{"name": "' + tool_call.name + '", "arguments": ' }}
                {%- if tool_call.arguments is string %}
                    {{- tool_call.arguments }}
                {%- else %}
                    {{- tool_call.arguments | tojson }}
                {%- endif %}
                {{- '}\\n</tool_call>' }}
            {%- endfor %}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.first or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<tool_response>\\n' + content + '\\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}
"""

TEMPLATES["headers"] = """\
{{- bos_token }}
{%- if custom_tools is defined %}
    {%- set tools = custom_tools %}
{%- endif %}
{%- if not tools_in_user_message is defined %}
    {%- set tools_in_user_message = true %}
{%- endif %}
{%- if not date_string is defined %}
    {%- if strftime_now is defined %}
        {%- set date_string = strftime_now("%d %b %Y") %}
    {%- else %}
        {%- set date_string = "26 Jul 2024" %}
    {%- endif %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}

{#- The system message is taken out so that it comes first. #}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}

{#- System header #}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{%- if tools is not none %}
    {{- "Environment: ipython\\n" }}
{%- endif %}
{{- "Knowledge ends: December 2023\\n" }}
{{- "Today: " + date_string + "\\n\\n" }}
{%- if tools is not none and not tools_in_user_message %}
    {{- "These functions exist:\\n\\n" }}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n\\n" }}
    {%- endfor %}
{%- endif %}
{{- system_message }}
{{- "<|eot_id|>" }}

{%- if tools_in_user_message and not tools is none %}
    {%- if messages | length != 0 %}
        {%- set first_user_message = messages[0]['content']|trim %}
        {%- set messages = messages[1:] %}
    {%- else %}
        {{- raise_exception("No user message to put the functions in!") }}
    {%- endif %}
    {{- '<|start_header_id|>user<|end_header_id|>\\n\\n' -}}
    {{- "Answer with a call of one of these:\\n\\n" }}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n\\n" }}
    {%- endfor %}
    {{- first_user_message + "<|eot_id|>"}}
{%- endif %}

{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("One call at a time!") }}
        {%- endif %}
        {%- set tool_call = message.tool_calls[0].function %}
        {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' -}}
        {{- '{"name": "' + tool_call.name + '", ' }}
        {{- '"parameters": ' }}
        {{- tool_call.arguments | tojson }}
        {{- "}" }}
        {{- "<|eot_id|>" }}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {{- "<|start_header_id|>ipython<|end_header_id|>\\n\\n" }}
        {%- if message.content is mapping or message.content is iterable %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|eot_id|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""

TEMPLATES["turns"] = """\
{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('No system role here') }}{% endif %}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Roles must alternate user/assistant/user/assistant/...') }}{% endif %}{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}{% set role = message['role'] %}{% endif %}{{ '<start_of_turn>' + role + '\\n' + message['content'] | trim + '<end_of_turn>\\n' }}{% endfor %}{% if add_generation_prompt %}{{'<start_of_turn>model\\n'}}{% endif %}"""

TEMPLATES["turns_with_parts"] = """\
{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- if messages[0]['content'] is string -%}
        {%- set first_user_prefix = messages[0]['content'] + '

' -%}
    {%- else -%}
        {%- set first_user_prefix = messages[0]['content'][0]['text'] + '

' -%}
    {%- endif -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set first_user_prefix = "" -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{%- for message in loop_messages -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception("Conversation roles must alternate") }}
    {%- endif -%}
    {%- if (message['role'] == 'assistant') -%}
        {%- set role = "model" -%}
    {%- else -%}
        {%- set role = message['role'] -%}
    {%- endif -%}
    {{ '<start_of_turn>' + role + '
' + (first_user_prefix if loop.first else "") }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}
            {%- if item['type'] == 'image' -%}
                {{ '<start_of_image>' }}
            {%- elif item['type'] == 'text' -%}
                {{ item['text'] | trim }}
            {%- endif -%}
        {%- endfor -%}
    {%- else -%}
        {{ raise_exception("Invalid content type") }}
    {%- endif -%}
    {{ '<end_of_turn>
' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{'<start_of_turn>model
'}}
{%- endif -%}
"""

TEMPLATES["inst"] = """\
{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}
{%- set user_messages = loop_messages | selectattr("role", "equalto", "user") | list %}

{%- set ns = namespace() %}
{%- set ns.index = 0 %}
{%- for message in loop_messages %}
    {%- if not (message.role == "tool" or message.role == "tool_results" or (message.tool_calls is defined and message.tool_calls is not none)) %}
        {%- if (message["role"] == "user") != (ns.index % 2 == 0) %}
            {{- raise_exception("After the optional system message, roles must alternate user/assistant") }}
        {%- endif %}
        {%- set ns.index = ns.index + 1 %}
    {%- endif %}
{%- endfor %}

{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if tools is not none and (message == user_messages[-1]) %}
            {{- "[AVAILABLE_TOOLS] [" }}
            {%- for tool in tools %}
                {%- set tool = tool.function %}
                {{- '{"type": "function", "function": {' }}
                {%- for key, val in tool.items() if key != "return" %}
                    {%- if val is string %}
                        {{- '"' + key + '": "' + val + '"' }}
                    {%- else %}
                        {{- '"' + key + '": ' + val|tojson }}
                    {%- endif %}
                    {%- if not loop.last %}
                        {{- ", " }}
                    {%- endif %}
                {%- endfor %}
                {{- "}}" }}
                {%- if not loop.last %}
                    {{- ", " }}
                {%- else %}
                    {{- "]" }}
                {%- endif %}
            {%- endfor %}
            {{- "[/AVAILABLE_TOOLS]" }}
        {%- endif %}
        {%- if loop.last and system_message is defined %}
            {{- "[INST] " + system_message + "\\n\\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message.tool_calls is defined and message.tool_calls is not none %}
        {{- "[TOOL_CALLS] [" }}
        {%- for tool_call in message.tool_calls %}
            {%- set out = tool_call.function|tojson %}
            {{- out[:-1] }}
            {%- if not tool_call.id is defined or tool_call.id|length != 9 %}
                {{- raise_exception("Call ids have nine letters or digits!") }}
            {%- endif %}
            {{- ', "id": "' + tool_call.id + '"}' }}
            {%- if not loop.last %}
                {{- ", " }}
            {%- else %}
                {{- "]" + eos_token }}
            {%- endif %}
        {%- endfor %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"]|trim + eos_token }}
    {%- elif message["role"] == "tool_results" or message["role"] == "tool" %}
        {%- if message.content is defined and message.content.content is defined %}
            {%- set content = message.content.content %}
        {%- else %}
            {%- set content = message.content %}
        {%- endif %}
        {{- '[TOOL_RESULTS] {"content": ' + content|string + ", " }}
        {{- '"call_id": "' + message.tool_call_id + '"}[/TOOL_RESULTS]' }}
    {%- else %}
        {{- raise_exception("Only user, assistant and tool roles, and a first system message!") }}
    {%- endif %}
{%- endfor %}
"""

TEMPLATES["ends"] = """\
{% for message in messages %}
{% if message['role'] == 'system' and message['content'] %}
{{ '<|system|>' + '\\n' + message['content'] + '<|end|>' + '\\n' }}{% elif message['role'] == 'user' %}
{{ '<|user|>' + '\\n' + message['content'] + '<|end|>' + '\\n' }}{% elif message['role'] == 'assistant' %}
{{ '<|assistant|>' + '\\n' + message['content'] + '<|end|>' + '\\n' }}{% endif %}
{% endfor %}
{% if add_generation_prompt %}
{{ '<|assistant|>' + '\\n' }}{% else %}
{{ eos_token }}{% endif %}
"""

TEMPLATES["bars"] = """\
{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}{% set ns = namespace(is_first=false, is_tool=false, is_output_first=true, system_prompt='', is_first_sp=true) %}{%- for message in messages %}{%- if message['role'] == 'system' %}{%- if ns.is_first_sp %}{% set ns.system_prompt = ns.system_prompt + message['content'] %}{% set ns.is_first_sp = false %}{%- else %}{% set ns.system_prompt = ns.system_prompt + '\\n\\n' + message['content'] %}{%- endif %}{%- endif %}{%- endfor %}{{ bos_token }}{{ ns.system_prompt }}{%- for message in messages %}{%- if message['role'] == 'user' %}{%- set ns.is_tool = false -%}{{'<|User|>' + message['content']}}{%- endif %}{%- if message['role'] == 'assistant' and 'tool_calls' in message %}{%- set ns.is_tool = false -%}{%- for tool in message['tool_calls'] %}{%- if not ns.is_first %}{%- if message['content'] is none %}{{'<|Assistant|><|calls|><|call|>' + tool['type'] + '<|sep|>' + tool['function']['name'] + '\\n```json\\n' + tool['function']['arguments'] + '\\n```<|endcall|>'}}{%- else %}{{'<|Assistant|>' + message['content'] + '<|calls|><|call|>' + tool['type'] + '<|sep|>' + tool['function']['name'] + '\\n```json\\n' + tool['function']['arguments'] + '\\n```<|endcall|>'}}{%- endif %}{%- set ns.is_first = true -%}{%- else %}{{'\\n<|call|>' + tool['type'] + '<|sep|>' + tool['function']['name'] + '\\n```json\\n' + tool['function']['arguments'] + '\\n```<|endcall|>'}}{%- endif %}{%- endfor %}{{'<|endcalls|>' + eos_token}}{%- endif %}{%- if message['role'] == 'assistant' and 'tool_calls' not in message %}{%- if ns.is_tool %}{{'<|endoutputs|>' + message['content'] + eos_token}}{%- set ns.is_tool = false -%}{%- else %}{% set content = message['content'] %}{% if '</think>' in content %}{% set content = content.split('</think>')[-1] %}{% endif %}{{'<|Assistant|>' + content + eos_token}}{%- endif %}{%- endif %}{%- if message['role'] == 'tool' %}{%- set ns.is_tool = true -%}{%- if ns.is_output_first %}{{'<|outputs|><|output|>' + message['content'] + '<|endoutput|>'}}{%- set ns.is_output_first = false %}{%- else %}{{'\\n<|output|>' + message['content'] + '<|endoutput|>'}}{%- endif %}{%- endif %}{%- endfor -%}{% if ns.is_tool %}{{'<|endoutputs|>'}}{% endif %}{% if add_generation_prompt and not ns.is_tool %}{{'<|Assistant|><think>\\n'}}{% endif %}"""

TEMPLATES["macros"] = """\
{%- macro render_parameters(parameters, depth=1) -%}
    {%- for name, schema in parameters.properties.items() -%}
        {{ "  " * depth }}{{ name }}: {{ schema.type }}{{ " (required)" if name in (parameters.required or []) }}
        {%- if schema.enum is defined %} one of {{ schema.enum | join("|") }}{% endif %}
        {{- "\\n" }}
        {%- if schema.type == "object" -%}
            {{ render_parameters(schema, depth + 1) }}
        {%- endif -%}
    {%- endfor -%}
{%- endmacro -%}
{%- macro header(role) %}{{ "<|" ~ role ~ "|>" }}{% endmacro -%}
{{ bos_token }}
{%- if tools %}
{{- header("system") }}
{% for tool in tools %}
function {{ tool.function.name }} - {{ tool.function.description | default("no description", true) }}
{{ render_parameters(tool.function.parameters) }}
{%- endfor %}
{% endif %}
{% for message in messages %}
{{ header(message.role) }}{{ message.content }}
{% endfor %}
{% if add_generation_prompt %}
{{ header("assistant") }}
{%- endif %}
"""

TEMPLATES["generation"] = """\
{% for message in messages %}
{% if message.role == 'assistant' %}
<|im_start|>assistant
{% generation %}{{ message.content }}<|im_end|>{% endgeneration %}

{% else %}
<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endif %}
{% endfor %}
{% if add_generation_prompt %}
<|im_start|>assistant
{% endif %}"""

TEMPLATES["generation_trimmed"] = """\
{{- bos_token }}
{%- for message in messages %}
    {%- if message.role == 'assistant' %}
        {{- '<a>' }}
        {%- generation %}
            {{- message.content | trim }}
            {%- if message.tool_calls %}
                {%- for call in message.tool_calls %}
                    {{- '[' ~ call.function.name ~ ' ' ~ (call.function.arguments | tojson) ~ ']' }}
                {%- endfor %}
            {%- endif %}
            {{- eos_token }}
        {%- endgeneration %}
        {{- '</a>\\n' }}
    {%- else %}
        {{- '<' ~ message.role ~ '>' ~ message.content ~ '\\n' }}
    {%- endif %}
{%- endfor %}"""

# ------------------------------------------------------------ conversations


def user(content):
    return {"role": "user", "content": content}


def assistant(content, **more):
    return {"role": "assistant", "content": content} | more


def system(content):
    return {"role": "system", "content": content}


def tool_result(content, **more):
    return {"role": "tool", "content": content} | more


WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather of a place: \"now\" <or> later & more",
        "parameters": {
            "type": "object",
            "properties": {
                "place": {"type": "string", "description": "Köln, 東京 …"},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
                "options": {"type": "object", "properties": {
                    "days": {"type": "integer"}, "hourly": {"type": "boolean"}}},
            },
            "required": ["place"],
        },
    },
}
ADD = {"type": "function", "function": {
    "name": "add", "description": None,
    "parameters": {"type": "object", "properties": {}, "required": []}}}


def call(name, arguments, **more):
    return {"type": "function", "function": {"name": name, "arguments": arguments}} | more


SHORT = [user("Hi")]
DIALOGUE = [user("  What is 2+2?\n"), assistant("  4  "), user("Sure? 🤔 'quoted' \"double\" <b>&amp;")]
WITH_SYSTEM = [system("\tBe terse.\n")] + DIALOGUE
CALLING = [
    user("Weather in Köln and Paris?"),
    assistant("", tool_calls=[call("get_weather", {"place": "Köln", "options": {"days": 2, "hourly": True}}, id="abcdefgh1"),
                              call("get_weather", {"place": "Paris", "unit": None, "x": 1.5, "l": []}, id="abcdefgh2")]),
    tool_result("18 °C", tool_call_id="abcdefgh1"),
    tool_result("{\"t\": 21}", tool_call_id="abcdefgh2"),
    assistant("Köln 18 °C, Paris 21 °C."),
    user("Thanks"),
]
ONE_CALL = [
    system("Use functions."),
    user("Weather?"),
    assistant("Let me look.", tool_calls=[call("get_weather", {"place": "東京", "n": 10000000000, "f": 1e-7})]),
    tool_result({"t": [1, 2.0, None, True], "ü": "é\n\t\"\\\u2028/"}),
    assistant("Sunny."),
]
STRING_CALL = [
    user("Add"),
    assistant(None, tool_calls=[call("add", "{\"a\": 1}"), call("add", "{}")]),
    tool_result("1"), tool_result("2"), assistant("1 and 2"), user("ok"),
]
THOUGHT = [
    user("q1"), assistant("<think>\nfirst thought\n</think>\n\nanswer one"),
    user("q2"), assistant("<think>\n\nsecond\n thought\n\n</think>\n\n\nanswer two"),
]
REASONING = [
    system("s"), user("q"),
    assistant("", reasoning_content="\nlook it up\n", tool_calls=[call("add", {"a": 1})]),
    tool_result("1"),
    assistant("done", reasoning_content="easy"),
]
PARTS = [
    {"role": "system", "content": [{"type": "text", "text": "sys"}]},
    {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": " look "}]},
    assistant("I see"), user("more"),
]

TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}


def conversation_cases():
    """name, template, context"""
    rows = []

    def add(name, template, messages, prompt=True, **context):
        rows.append((name, template, TOKENS | {"messages": messages, "add_generation_prompt": prompt}
                     | context))

    for name in ("chatml", "chatml_default_system", "tools_chatml", "thinking", "headers", "turns",
                 "turns_with_parts", "inst", "ends", "bars", "macros"):
        add(f"{name}/short", name, SHORT)
        add(f"{name}/dialogue", name, DIALOGUE, prompt=False)
        add(f"{name}/system", name, WITH_SYSTEM)
    for name in ("tools_chatml", "thinking", "headers", "inst", "macros"):
        add(f"{name}/tools", name, SHORT, tools=[WEATHER, ADD])
        add(f"{name}/tools none", name, SHORT, tools=None)
    for name in ("tools_chatml", "thinking", "inst"):
        add(f"{name}/calls", name, CALLING, tools=[WEATHER])
    add("tools_chatml/system and tools", "tools_chatml", ONE_CALL[:2], tools=[ADD])
    add("tools_chatml/no messages", "tools_chatml", [])
    add("chatml/no messages", "chatml", [])
    add("chatml/content none", "chatml", [assistant(None)])
    add("chatml/content missing", "chatml", [{"role": "user"}])
    add("thinking/thought kept in the last turn", "thinking", THOUGHT, prompt=False)
    add("thinking/thought dropped from history", "thinking", THOUGHT + [user("q3")])
    add("thinking/off", "thinking", SHORT, enable_thinking=False)
    add("thinking/on", "thinking", SHORT, enable_thinking=True)
    add("thinking/reasoning content", "thinking", REASONING, prompt=False)
    add("thinking/reasoning content continued", "thinking", REASONING[:4])
    add("thinking/tool response from user", "thinking",
        [user("q"), assistant("<think>a</think>b"), user("<tool_response>x</tool_response>"),
         assistant("<think>c</think>d")], prompt=False)
    add("headers/one call", "headers", ONE_CALL, tools=[WEATHER], tools_in_user_message=False)
    add("headers/date given", "headers", SHORT, date_string="1 Jan 2000")
    add("headers/custom tools", "headers", SHORT, custom_tools=[ADD])
    add("headers/two calls", "headers", CALLING)
    add("headers/tools without a message", "headers", [], tools=[ADD])
    add("turns/does not alternate", "turns", [user("a"), user("b")])
    add("turns_with_parts/parts", "turns_with_parts", PARTS)
    add("turns_with_parts/bad content", "turns_with_parts", [user(7)])
    add("turns_with_parts/does not alternate", "turns_with_parts", [assistant("a")])
    add("inst/bad call id", "inst", [user("a"), assistant("", tool_calls=[call("add", {}, id="x")])])
    add("inst/unknown role", "inst", [user("a"), {"role": "critic", "content": "c"}])
    add("bars/string calls", "bars", STRING_CALL)
    add("bars/calls pending", "bars", STRING_CALL[:4])
    add("bars/thought", "bars", THOUGHT + [user("q3")])
    add("generation/dialogue", "generation", DIALOGUE + [assistant("Yes: naïve 😀")], prompt=False)
    add("generation/prompt", "generation", DIALOGUE)
    add("generation/none", "generation", SHORT)
    add("generation/empty", "generation", [user("a"), assistant("")], prompt=False)
    add("generation_trimmed/dialogue", "generation_trimmed", WITH_SYSTEM + [assistant(" ok ")])
    add("generation_trimmed/calls", "generation_trimmed", CALLING)
    return rows


# -------------------------------------------------------------- micro-cases
# "rare" holds what no known chat template uses: an engine may refuse those
# with an error, and must not render them differently.

DATA = {
    "s": "Hello, World", "e": "", "t": True, "f": False, "n": None, "i": 7, "j": -3, "x": 2.5,
    "big": 12345678901234567890, "l": [3, 1, 2], "w": ["b", "A", "c", "a"],
    "d": {"b": 1, "a": 2, "items_": 3}, "nested": {"k": {"m": [10, {"z": "deep"}]}},
    "rows": [{"n": "x", "v": 2, "on": True}, {"n": "y", "v": 1, "on": False}, {"n": "x", "v": 3}],
    "u": "naïve Straße ΣΊΣΥΦΟΣ ǆ 😀", "p": "  padded\t\n", "html": "<a href=\"x\">&'</a>",
    "lines": "one\ntwo\n\nthree", "clash": {"items": "mine", "get": 5, "keys": [1]},
}

MICRO = {
    "literal": [
        ("{{ 1 }} {{ 1.0 }} {{ 1.50 }} {{ 1e3 }} {{ 1_000 }} {{ 0x1f }} {{ 1e16 }} {{ 1e-5 }} "
         "{{ 0.1 + 0.2 }}"),
        "{{ 'a' }}{{ \"b\" }}{{ 'it\\'s' }}{{ 'tab\\there' }}{{ 'nl\\n' }}{{ '\\u00e9\\x41' }}{{ 'back\\\\slash' }}",
        "{{ true }} {{ True }} {{ false }} {{ False }} {{ none }} {{ None }}",
        ("{{ [] }} {{ [1, 'a', none, true, 1.5] }} {{ (1, 2) }} {{ (1,) }} {{ () }} {{ {} }} "
         "{{ {'a': 1, 2: [3]} }}"),
        "{{ ['it\\'s', \"q\\\"\", 'n\\n', 'é', '\\t'] }}",
        "{{ 'con' 'cat' }}",
        "{{ [1, 2,] }} {{ {'a': 1,} }}",
        "{{ big }} {{ big + 1 }}",
        "{{ -5 }} {{ +5 }} {{ - 5 }} {{ --5 }}",
        "{{ 1.0 * 3 }} {{ 10 / 2 }} {{ 1e100 }} {{ 123456789.0 }}",
    ],
    "arithmetic": [
        ("{{ 1 + 2 * 3 }} {{ (1 + 2) * 3 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} "
         "{{ 7 % -3 }}"),
        "{{ 7 / 2 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ 2 ** 3 ** 2 }} {{ -2 ** 2 }}",
        "{{ 7.5 // 2 }} {{ 7.5 % 2 }} {{ -7.5 % 2 }}",
        "{{ 'ab' * 3 }} {{ [1] * 2 }} {{ [1] + [2] }} {{ 'a' + 'b' }}",
        "{{ 1 ~ 'a' ~ none ~ true ~ 1.5 ~ [1] }}",
        "{{ true + 1 }} {{ '%s-%d' % ('a', 3) }}",
        "{{ 1 / 0 }}",
        "{{ 1 // 0 }}",
        "{{ 'a' + 1 }}",
        "{{ 1 + none }}",
        "{{ 'a' - 'b' }}",
        "{{ 1 + 2 ~ 3 + 4 }}",
        "{{ 10 - 2 - 3 }} {{ 2 * 3 % 4 }}",
    ],
    "compare": [
        ("{{ 1 < 2 }} {{ 2 <= 2 }} {{ 3 > 4 }} {{ 'a' < 'b' }} {{ 1 == 1.0 }} {{ 1 != '1' }} "
         "{{ true == 1 }} {{ [1] == [1] }}"),
        "{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }}",
        ("{{ 'World' in s }} {{ 'x' in s }} {{ 3 in l }} {{ 9 not in l }} {{ 'a' in d }} "
         "{{ 2 in d }}"),
        ("{{ {'a': 1, 'b': 2} == {'b': 2, 'a': 1} }} {{ (1, 2) == [1, 2] }} {{ none == false }} "
         "{{ '' == false }}"),
        "{{ 1 < 'a' }}",
        "{{ none < 1 }}",
        "{{ 1 in 5 }}",
        "{{ 1 in 'a' }}",
        "{{ [1, 2] < [1, 3] }} {{ 'Z' < 'a' }} {{ 'é' > 'z' }}",
    ],
    "boolean": [
        ("{{ true and false }} {{ true or false }} {{ not true }} {{ not e }} {{ e or 'x' }} "
         "{{ s and i }} {{ 0 or none }} {{ [] and 1 }}"),
        "{{ not 1 == 2 }} {{ true or false and false }} {{ not e or s }} {{ 1 and 2 or 3 }}",
        ("{{ 'y' if t else 'n' }} {{ 'y' if f else 'n' }} "
         "[{{ 'y' if f }}] {{ 1 if 0 else 2 if 0 else 3 }}"),
        "{{ ('a' if f) is defined }}",
        ("{% if l %}a{% endif %}{% if {} %}b{% endif %}{% if 0.0 %}c{% endif %}{% if '0' %}"
         "d{% endif %}{% if missing %}e{% endif %}"),
        "{{ true or missing.x.y }}",
        "{{ 1 if t else missing.x.y }}",
    ],
    "access": [
        ("{{ d.a }} {{ d['a'] }} {{ l[0] }} {{ l[-1] }} {{ nested.k.m[1].z }} "
         "{{ nested['k']['m'][0] }} {{ s[1] }} {{ s[-1] }} {{ u[2] }} {{ u[-1] }}"),
        "[{{ d.missing }}] [{{ d['missing'] }}] [{{ l[99] }}] [{{ s[99] }}] [{{ missing }}]",
        "{{ clash['items'] }} {{ clash['get'] }} {{ clash.get('keys') }}",
        "{{ clash['items'] }}|{{ clash.keys is callable }}|{{ d.items is callable }}",
        "{{ missing.x }}",
        "{{ d.missing.x }}",
        "{{ n.x }}|{{ n['x'] }}",
        "[{{ i.x }}] [{{ s.nothing }}]",
        "{{ l.0 }} {{ rows.0.n }}",
        "{{ l['0'] }}",
        "{{ d[l] }}",
        "{{ l[missing] }}",
        "{{ s.__class__ }}",
        "{{ ''.__class__.__mro__ }}",
        "{{ d['a' ~ ''] }} {{ l[1 - 1] }}",
    ],
    "slice": [
        ("{{ l[1:] }} {{ l[:1] }} {{ l[:-1] }} {{ l[::-1] }} {{ l[::2] }} {{ l[-2:] }} "
         "{{ l[5:] }} {{ l[:] }} {{ l[2:0:-1] }} {{ l[-100:100] }}"),
        "{{ s[1:4] }}|{{ s[:5] }}|{{ s[-5:] }}|{{ s[::-1] }}|{{ s[::3] }}|{{ u[6:12] }}|{{ u[::-1] }}",
        "{{ l[::0] }}",
        "{{ l[none:2] }}",
        "{{ d[1:] }}",
        "{{ (1, 2, 3)[1:] }}",
        "{{ i[1:] }}",
        "{% set a = 1 %}{{ l[a:a + 1] }} {{ l[:l|length - 1] }}",
    ],
    "undefined": [
        "[{{ missing }}]",
        ("{{ missing is defined }} {{ missing is undefined }} {{ d.q is defined }} "
         "{{ n is defined }}"),
        "{{ missing or 'alt' }} {{ not missing }}",
        "{{ missing + 'a' }}",
        "{{ 'a' + missing }}",
        "{{ 'a' ~ missing }}",
        "{% for x in missing %}{{ x }}{% else %}none{% endfor %}",
        "{{ missing | length }}",
        "{{ missing|trim }}|",
        "{{ missing == none }} {{ missing == missing2 }} {{ missing == '' }}",
        "{{ missing() }}",
        "{{ missing.a() }}",
        "{{ d.nofunc() }}",
        "{{ s.nofunc() }}",
        "{{ missing in l }}",
        "{{ 'a' in missing }}",
        ("{{ missing|default('d') }} {{ n|default('d') }} {{ n|default('d', true) }} "
         "{{ e|default('d', boolean=true) }} {{ d.q|d('z') }}"),
        "{{ missing | tojson }}",
        "{{ missing|string }}|{{ missing|list }}|{{ missing|join }}",
        "{{ [missing] }}",
        "{{ missing < 1 }}",
        "{{ -missing }}",
        "{{ missing|upper }}|{{ missing|int }}|{{ missing|first }}|",
        "{% set y = missing %}{{ y is defined }}",
        "{{ {'a': missing}.a is defined }}",
        ("{{ missing is none }} {{ missing is string }} {{ missing is iterable }} "
         "{{ missing is mapping }} {{ missing is sequence }}"),
        "{{ s ~ d.q ~ 'x' }}",
        "{{ missing|replace('a', 'b') }}|",
        "{{ l[0].foo }}|{{ l[0].foo is defined }}",
    ],
    "test": [
        ("{% for v in [s, i, x, t, n, l, d, e] %}"
         "{{ v is string }},{{ v is number }},{{ v is integer }},{{ v is float }},{{ v is boolean }},{{ v is true }},{{ v is false }},{{ v is none }},{{ v is mapping }},{{ v is iterable }},{{ v is sequence }}\n{% endfor %}"),
        ("{{ i is odd }} {{ i is even }} {{ i is divisibleby 7 }} {{ i is divisibleby(2) }} "
         "{{ 'a' is lower }} {{ 'A' is upper }}"),
        ("{{ i is not none }} {{ not i is none }} {{ s is not string }} "
         "{{ i is defined and i is number }}"),
        ("{{ 1 is eq 1 }} {{ 1 is equalto(1) }} {{ 1 is ne 2 }} {{ 1 is lt 2 }} {{ 2 is ge 2 }} "
         "{{ 3 is in l }} {{ 3 is in([1]) }} {{ 1 is sameas 1 }}"),
        "{{ raise_exception is callable }} {{ s is callable }}",
        "{{ 1 is nosuchtest }}",
        "{{ i is number and s is string or false }}",
        ("{{ (1, 2) is sequence }} {{ 'a' is escaped }} {{ 3 is greaterthan 2 }} "
         "{{ 3 is lessthan 2 }}"),
        "{{ 5 is divisibleby 0 }}",
    ],
    "filter string": [
        ("[{{ p|trim }}] [{{ 'xxaxx'|trim('x') }}] {{ s|upper }} {{ s|lower }} "
         "{{ 'hELLO wORLD'|capitalize }} {{ \"it's a dOg-day a_b (c)\"|title }}"),
        ("{{ s|replace('l', 'L') }} {{ s|replace('l', 'L', 2) }} {{ s|replace('', '-') }} "
         "{{ 5|replace(5, 'x') }}"),
        "{{ s|length }} {{ u|length }} {{ l|count }} {{ d|length }} {{ 5|length }}",
        "{{ s|first }} {{ s|last }} {{ s|reverse }} {{ s|list }} {{ ''|first }}|",
        "{{ html|e }} {{ html|escape }} {{ html|safe }} {{ html|e|e }}",
        "{{ lines|indent }}\n{{ lines|indent(2, true) }}\n{{ lines|indent('> ', first=true, blank=true) }}",
        "{{ 1|string + '2' }} {{ none|string }} {{ [1]|string }} {{ 1.0|string }}",
        "{{ s | trim | upper | replace('O', '0') | length }}",
        "{{ -1|abs }} {{ (-1)|abs }} {{ 1 + 2|string|length }} {{ 'a' ~ 'b'|upper }}",
        "{{ s|nosuchfilter }}",
        "{{ s|trim(1, 2, 3) }}",
    ],
    "filter number": [
        ("{{ '42'|int }} {{ '4.9'|int }} {{ 'x'|int }} {{ 'x'|int(9) }} {{ 4.9|int }} "
         "{{ none|int(3) }} {{ '0x1A'|int(0, 16) }} {{ true|int }} {{ ' 7 '|int }} {{ -4.9|int }}"),
        "{{ '4.5'|float }} {{ 'x'|float }} {{ 'x'|float(1.5) }} {{ 3|float }} {{ '1e3'|float }}",
        ("{{ 2.5|round }} {{ 3.5|round }} {{ 2.345|round(2) }} {{ 2.1|round(method='ceil') }} "
         "{{ 2.9|round(0, 'floor') }} {{ 7|round }} {{ -2.5|round|int }} {{ 1234.5|round(-2) }}"),
        ("{{ [1, 2, 3]|sum }} {{ rows|sum(attribute='v') }} {{ [3, 1]|max }} {{ [3, 1]|min }} "
         "{{ []|max }}|{{ [1.5, 2]|sum }} {{ [1]|sum(start=10) }}"),
    ],
    "filter list": [
        ("{{ w|sort }} {{ w|sort(case_sensitive=true) }} {{ w|sort(reverse=true) }} {{ l|sort }} "
         "{{ rows|sort(attribute='v')|map(attribute='v')|list }} "
         "{{ rows|sort(attribute='n,v')|map(attribute='v')|list }}"),
        ("{{ [1, 2, 1, 3]|unique|list }} {{ ['a', 'A', 'b']|unique|list }} "
         "{{ ['a', 'A']|unique(case_sensitive=true)|list }} "
         "{{ rows|unique(attribute='n')|map(attribute='v')|list }}"),
        ("{{ l|join }} {{ l|join(', ') }} {{ rows|join('-', attribute='n') }} "
         "{{ []|join(',') }}| {{ [1, none, true]|join('/') }} {{ s|join('.') }}"),
        ("{{ l|first }} {{ l|last }} {{ []|first }}| {{ []|last is defined }} "
         "{{ l|reverse|list }} {{ d|first }} {{ d|list }}"),
        ("{{ rows|map(attribute='n')|list }} {{ rows|map(attribute='on', default='?')|list }} "
         "{{ w|map('upper')|list }} {{ l|map('string')|join('+') }} "
         "{{ rows|map(attribute='q')|list }}"),
        ("{{ w|map('replace', 'a', 'Z')|list }} {{ ['  x ']|map('trim')|list }} "
         "{{ [[1, 2], [3]]|map('first')|list }} {{ [[1, 2], [3]]|map(attribute=0)|list }} "
         "{{ [nested]|map(attribute='k.m')|list }}"),
        ("{{ [0, 1, 2]|select|list }} {{ l|select('odd')|list }} {{ l|reject('odd')|list }} "
         "{{ l|select('>', 1)|list }} {{ l|select('in', [1, 2])|list }} "
         "{{ [1, 'a', none]|select('string')|list }} {{ [0, '', 1]|reject|list }}"),
        ("{{ rows|selectattr('on')|list|length }} "
         "{{ rows|selectattr('n', 'equalto', 'x')|map(attribute='v')|list }} "
         "{{ rows|selectattr('n', '==', 'y')|list|length }} "
         "{{ rows|rejectattr('on')|map(attribute='v')|list }} "
         "{{ rows|selectattr('on', 'defined')|list|length }} "
         "{{ rows|rejectattr('n', 'eq', 'x')|map(attribute='v')|first }}"),
        ("{{ d|dictsort }} {{ d|dictsort(by='value') }} {{ d|dictsort(reverse=true) }} "
         "{{ {'B': 1, 'a': 2}|dictsort }} {{ {'B': 1, 'a': 2}|dictsort(true) }}"),
        ("{{ d|items|list }} {{ missing|items|list }} {% for k, v in d|items %}"
         "{{ k }}={{ v }};{% endfor %}"),
        "{{ (1, 2)|list }} {{ 'abc'|list }} {{ range(3)|list }}",
        "{{ 5|list }}",
        "{{ 5|join }}",
        "{{ [1, 'a']|sort }}",
        "{{ l|map('nosuch')|list }}",
        "{{ rows|attr('n') }}|{{ d|attr('a') }}|",
        "{{ {'a': 1}|list }}{{ {'a': 1}|length }}{{ {'a': {'b': 2}}|map('upper')|list }}",
    ],
    "filter json": [
        "{{ {'b': 1, 'a': [1, 2.0, none, true, 'é\"<>&\\'\\\\/\\n\\t\\u2028']}|tojson }}",
        ("{{ d|tojson(indent=2) }} {{ []|tojson(indent=2) }} {{ {}|tojson(indent=4) }} "
         "{{ [[], {}, [1]]|tojson(indent=1) }}"),
        ("{{ d|tojson(sort_keys=true) }} {{ d|tojson(separators=(',', ':')) }} "
         "{{ u|tojson(ensure_ascii=true) }} {{ u|tojson }}"),
        ("{{ 1.0|tojson }} {{ 1e100|tojson }} {{ 1e-7|tojson }} {{ 1e16|tojson }} "
         "{{ 123456789012345680.0|tojson }} {{ 0.1|tojson }} {{ -0.0|tojson }} {{ big|tojson }}"),
        ("{{ 'a\\u0000\\u001f\\u007f\\u0080\\b\\f\\r'|tojson }} {{ ''|tojson }} {{ none|tojson }} "
         "{{ (1, 2)|tojson }}"),
        "{{ {1: 'a', none: 'b', true: 'c', 1.5: 'd'}|tojson }}",
        "{{ raise_exception|tojson }}",
        "{{ nested|tojson(indent=2, separators=(', ', ' = ')) }}",
        "{{ d | tojson(true) }} {{ 'é'|tojson(true) }} {{ d|tojson(false, 3) }}",
        "{{ d.items()|list|tojson }}",
    ],
    "method": [
        ("[{{ p.strip() }}] [{{ p.lstrip() }}] [{{ p.rstrip() }}] {{ 'xxaxx'.strip('x') }} "
         "{{ 'abcba'.lstrip('ab') }} {{ 'a\\n\\n'.rstrip('\\n') }}|"),
        ("{{ s.startswith('He') }} {{ s.endswith('ld') }} {{ s.startswith(('x', 'H')) }} "
         "{{ s.startswith('W', 7) }} {{ s.endswith('') }}"),
        ("{{ 'a,b,,c'.split(',') }} {{ ' a  b '.split() }} {{ 'a,b,c'.split(',', 1) }} "
         "{{ 'a,b,c'.rsplit(',', 1) }} {{ ''.split() }} {{ ''.split(',') }} "
         "{{ 'a<t>b<t>c'.split('<t>')[-1] }} {{ 'abc'.split('') }}"),
        ("{{ s.upper() }} {{ s.lower() }} {{ 'ab cd'.title() }} {{ 'ab cd'.capitalize() }} "
         "{{ 'aB'.swapcase() }} {{ s.replace('l', 'L') }} {{ s.replace('l', 'L', 1) }}"),
        ("{{ s.find('o') }} {{ s.find('zz') }} {{ s.rfind('o') }} {{ s.index('W') }} "
         "{{ s.count('l') }} {{ s.find('o', 5) }} {{ u.find('😀') }}"),
        "{{ s.index('zz') }}",
        ("{{ ', '.join(['a', 'b']) }} {{ ''.join([]) }}| {{ 'a-b'.partition('-') }} "
         "{{ 'a-b-c'.rpartition('-') }}"),
        ("{{ lines.splitlines() }} {{ 'a\\r\\nb\\u2028c'.splitlines() }} "
         "{{ 'a\\n'.splitlines(true) }}"),
        ("{{ '12'.isdigit() }} {{ 'ab'.isalpha() }} {{ 'a1'.isalnum() }} {{ ' '.isspace() }} "
         "{{ 'A'.isupper() }} {{ 'a'.islower() }}"),
        "{{ '7'.zfill(3) }} {{ 'a'.ljust(3) }}|{{ 'a'.rjust(3, '.') }} {{ 'a'.center(5, '*') }}",
        "{{ 'prefix-x'.removeprefix('prefix-') }} {{ 'x.txt'.removesuffix('.txt') }}",
        "{{ '{} and {}'.format('a', 1) }} {{ '{1} {0}'.format('a', 'b') }} {{ '{x}'.format(x=3) }}",
        ("{{ d.keys()|list }} {{ d.values()|list }} {{ d.items()|list }} {{ d.get('a') }} "
         "{{ d.get('q') }} {{ d.get('q', 'z') }}"),
        "{% for k, v in d.items() %}{{ k }}:{{ v }}{{ ',' if not loop.last }}{% endfor %}",
        "{{ l.append(4) }}",
        "{{ d.update({'z': 1}) }}",
        "{{ d.pop('a') }}",
        "{{ l.index(1) }} {{ l.count(3) }} {{ [1, 2].copy() }}",
        "{{ l.pop() }}",
        "{{ l.sort() }}",
        "{{ 'a'.strip(1) }}",
        "{{ 'a'.split(sep=',', maxsplit=1) }}",
        "{{ p.strip('\\n\\t ') }}",
    ],
    "whitespace": [
        "a\n{% if true %}\nb\n{% endif %}\nc\n",
        "a\n  {% if true %}\n  b\n  {% endif %}\n  c\n",
        "a\n  {%- if true %}\n  b\n  {%- endif %}\n  c",
        "a\n  {% if true -%}\n  b\n  {% endif -%}\n  c",
        "a\n  {%- if true -%}\n  b\n  {%- endif -%}\n  c",
        "a\n {{ 'x' }} \n b",
        "a\n {{- 'x' -}} \n b",
        "a {{- 'x' }} b {{ 'y' -}} c",
        "a\n{{ 'x' }}\nb\n",
        "a\n\n\n{%- if true %}x{% endif -%}\n\n\nb",
        "  {% if true %}x{% endif %}",
        "x  {% if true %}y{% endif %}",
        "a {# comment #} b\n{# own line #}\nc\n  {# indented #}\nd",
        "a\n {#- trimmed -#} \nb",
        "{#\n multi\n line {{ x }} {% if %}\n#}a",
        "a\n  {%+ if true %}b{% endif %}",
        "a\n{% if true +%}\nb\n{% endif +%}\nc",
        "{% if true %}\r\nb\r\n{% endif %}\r\nc",
        "a\t{% if true %}\tb\t{% endif %}\tc",
        "\n\na\n\n",
        "a\n",
        "a\n\n",
        "a\r\n",
        "{{ 'a' }}\n",
        "{{ 'a' }}\n\n",
        "{% set x = 1 %}\n{% set y = 2 %}\n{{ x }}{{ y }}\n",
        "{% for x in [1, 2] %}\n  {{ x }}\n{% endfor %}\n",
        "{% for x in [1, 2] -%}\n  {{ x }}\n{%- endfor %}\n",
        "{% for x in [1, 2] %} {{ x }} {% endfor %}|",
        "{%- raw %}\n {{ no }} {% x %}\n{% endraw -%}\n end",
        "{% raw -%}  a  {%- endraw %} b",
        "a {{ '{{' }} }} {{ '%}' }} # {",
        "{{'tight'}}{%if true%}x{%endif%}",
        "{{\n 'multi'\n +\n 'line'\n}}",
        "{{ '\n' }}|{{- '\n' -}}|",
        "a   {%- set x = 1 -%}   {{ x }}",
        "   {% set x = 1 %}   {{ x }}",
        "{{ 'a' -}}\n\n{{ 'b' }}",
        "{{ 'a' }}\n\n{{- 'b' }}",
        "\u00a0{%- if true %}x{% endif -%}\u00a0y",
        "a\n    {{ 'indented output' }}\n",
        "{% if true %} \nb{% endif %}",
        "a\x0b\n {%- if true %}b{% endif %}",
    ],
    "if": [
        "{% if i > 5 %}big{% elif i > 3 %}mid{% else %}small{% endif %}",
        "{% if f %}a{% elif n %}b{% elif l %}c{% else %}d{% endif %}",
        "{% if f %}a{% endif %}|",
        "{% if t %}{% if f %}a{% else %}b{% endif %}{% endif %}",
        "{% if t %}{% set z = 1 %}{% endif %}{{ z }}",
        "{% if t %}a",
        "{% endif %}",
        "{% if %}a{% endif %}",
        "{% else %}",
        "{% if t %}a{% else %}b{% else %}c{% endif %}",
    ],
    "for": [
        ("{% for x in l %}"
         "{{ loop.index }}/{{ loop.index0 }}/{{ loop.revindex }}/{{ loop.revindex0 }}/{{ loop.first }}/{{ loop.last }}/{{ loop.length }}/{{ loop.depth }}/{{ loop.depth0 }};{% endfor %}"),
        "{% for x in l %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }};{% endfor %}",
        ("{% for x in l %}"
         "{{ loop.previtem is defined }}{{ loop.nextitem is defined }}{{ loop.cycle('a', 'b') }}{{ loop.changed(x > 1) }};{% endfor %}"),
        "{% for k, v in d.items() %}{{ k }}={{ v }} {% endfor %}",
        "{% for a, b in [[1, 2], [3, 4]] %}{{ a }}-{{ b }} {% endfor %}",
        "{% for a, (b, c) in [[1, [2, 3]]] %}{{ a }}{{ b }}{{ c }}{% endfor %}",
        "{% for a, b in [[1, 2, 3]] %}{{ a }}{% endfor %}",
        "{% for x in l if x > 1 %}{{ loop.index }}:{{ x }}/{{ loop.length }} {% endfor %}",
        "{% for x in l if x > 9 %}{{ x }}{% else %}empty{% endfor %}",
        "{% for x in [] %}a{% else %}none{% endfor %}",
        "{% for x in l %}{% if loop.index == 2 %}{% continue %}{% endif %}{{ x }}{% endfor %}",
        "{% for x in l %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% else %}no{% endfor %}",
        "{% for x in s %}{{ x }}.{% endfor %}",
        "{% for x in d %}{{ x }} {% endfor %}",
        ("{% for x in range(3) %}{{ x }}{% endfor %} {% for x in range(5, 0, -2) %}{{ x }}{% endfor %} {{ range(2, 5)|list }} "
         "{{ range(3) }} {{ range(5)[1:3]|list }} {{ range(4)|length }}"),
        ("{% for a in [1, 2] %}{% for b in [3, 4] %}{{ loop.index }}{{ a }}{{ b }} {% endfor %}"
         "{{ loop.index }};{% endfor %}"),
        ("{% for a in [1, 2] %}{% set outer = loop %}{% for b in [3] %}"
         "{{ outer.index }}{{ loop.depth }}{% endfor %}{% endfor %}"),
        "{% set x = 0 %}{% for y in l %}{% set x = x + y %}{{ x }},{% endfor %}{{ x }}",
        "{% for x in l %}{% endfor %}{{ x is defined }}{{ loop is defined }}",
        "{% for x in 5 %}{% endfor %}",
        "{% for x in none %}{% endfor %}",
        ("{% for x in l|sort %}{{ x }}{% endfor %} {% for x in l + [9] %}{{ x }}{% endfor %}"
         " {% for x in (1, 2) %}{{ x }}{% endfor %}"),
        "{% for i in range(1000000) %}x{% endfor %}",
        "{% for x in l %}a",
        "{% break %}",
        "{{ loop.index }}",
        "{% for m in messages[1:] %}{% endfor %}",
        "{% for x in l[::-1] %}{{ x }}{% endfor %}",
        "{% for i in l %}{{ i }}{% endfor %}{{ i }}",
    ],
    "set": [
        "{% set a = 1 %}{{ a }}",
        "{% set a, b = 1, 2 %}{{ a }}{{ b }}",
        "{% set a, b = [3, 4] %}{{ a }}{{ b }}",
        "{% set a = 1, 2 %}{{ a }}",
        "{% set a %}block {{ i }}{% endset %}[{{ a }}]",
        "{% set a | upper | trim %} block {% endset %}[{{ a }}]",
        ("{% set ns = namespace(a=1, b='x') %}{% set ns.a = ns.a + 1 %}"
         "{{ ns.a }}{{ ns.b }}[{{ ns.c }}]"),
        "{% set ns = namespace({'a': 5}) %}{{ ns.a }}{{ ns['a'] }}",
        ("{% set ns = namespace() %}{% for x in l %}{% set ns.sum = (ns.sum or 0) + x %}"
         "{% endfor %}{{ ns.sum }}"),
        "{% set d.a = 3 %}",
        ("{% set ns = namespace(x=[]) %}{% for v in l %}{% set ns.x = ns.x + [v * 2] %}"
         "{% endfor %}{{ ns.x }}"),
        "{% set a = l %}{% set a = a[1:] %}{{ a }}{{ l }}",
        "{% set s = 'shadow' %}{{ s }}",
        "{% set a %}\n  x\n{% endset %}[{{ a }}]",
        "{% set a = 'x' if t %}{{ a }}",
        "{% set true = 1 %}",
        "{% set x = %}",
        "{% set a = namespace %}{{ a(b=1).b }}",
        "{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}{{ a is defined }}",
        "{{ dict(a=1, b=2) }} {{ dict({'x': 1}, y=2) }} {{ dict() }}",
        "{% set ns = namespace(a={'k': 1}) %}{{ ns.a.k }} {{ ns is mapping }}",
    ],
    "macro": [
        ("{% macro m(a, b='z') %}<{{ a }}|{{ b }}>{% endmacro %}"
         "{{ m(1) }}{{ m(1, 2) }}{{ m(b=3, a=4) }}{{ m() }}"),
        "{% macro m() %}{{ s }}{% endmacro %}{{ m() }}",
        "{% macro m(n) %}{{ n }}{% if n > 0 %}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(3) }}",
        "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}",
        "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(q=2) }}",
        "{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, x=2) }}",
        "{% macro m(x) %}\n  body {{ x }}\n{% endmacro %}\n[{{ m('a') }}]",
        "{% set g = 1 %}{% macro m() %}{{ g }}{% endmacro %}{% set g = 2 %}{{ m() }}",
        "{% macro m() %}{% set inner = 1 %}{% endmacro %}{{ m() }}{{ inner is defined }}",
        "{% macro w() %}[{{ caller() }}]{% endmacro %}{% call w() %}hi{% endcall %}",
        ("{% macro w() %}{% for x in [1, 2] %}{{ caller(x) }}{% endfor %}{% endmacro %}"
         "{% call(v) w() %}({{ v }}){% endcall %}"),
        ("{% macro m(a) %}{{ a }}{% endmacro %}"
         "{{ m('<x>')|upper }}{{ m('a') + 'b' }}{{ m(1) is string }}"),
        "{{ later() }}{% macro later() %}x{% endmacro %}",
        "{% for x in l %}{% macro m() %}{{ x }}{% endmacro %}{{ m() }}{% endfor %}",
    ],
    "function": [
        "{{ raise_exception('boom ' ~ i) }}",
        "{% if f %}{{ raise_exception('no') }}{% endif %}ok",
        ("{{ strftime_now('%Y-%m-%d %H:%M:%S') }} {{ strftime_now('%d %b %Y') }} "
         "{{ strftime_now('%A %a %B %j %y %I %p %%') }}"),
        "{{ strftime_now is defined }}",
        "{% set d2 = strftime_now('%B %d, %Y') %}{{ d2 }}",
        "{{ range(3, 1)|list }} {{ range(0, 10, 4)|list }}",
        "{{ s() }}",
    ],
    "block": [
        "{% generation %}all{% endgeneration %}",
        "a{% generation %}b{% endgeneration %}c{% generation %}é😀{% endgeneration %}d",
        "{% for x in l %}{{ x }}{% generation %}<{{ x }}>{% endgeneration %}{% endfor %}",
        "{% generation %}{% set z = 1 %}{{ z }}{% endgeneration %}{{ z is defined }}",
        "a  {%- generation -%}  b  {%- endgeneration -%}  c",
        "{% generation %}\nline\n{% endgeneration %}\nrest",
        "{% generation %}{% endgeneration %}x",
        "{% if f %}{% generation %}no{% endgeneration %}{% endif %}yes",
        "{% generation %}open",
        "{% do l %}",
        "{% nosuchtag %}",
        ("x{% generation %}{{ u }}{% endgeneration %}{{ u }}{% generation %}"
         "{{ u }}{% endgeneration %}"),
    ],
    "rare": [
        "{{ u|upper }} {{ u|lower }} {{ u|title }} {{ u|capitalize }}",
        ("{{ 'a b  c'|wordcount }} {{ 'abc'|center(9) }}|{{ '%s is %d'|format('x', 3) }} "
         "{{ 'long text here'|truncate(8) }}"),
        "{{ s|urlencode }} {{ 'a/b?c=é'|urlencode }}",
        "{{ 'abc'|batch(2)|list }} {{ [1,2,3]|slice(2)|list }}",
        "{{ html|striptags }} {{ lines|wordwrap(3) }}",
        "{{ s|center }}",
        "{{ 1000000|filesizeformat }}",
        "{{ l|random is number }}",
        "{{ lipsum is defined }}",
        ("{{ rows|groupby('n')|map('first')|list }} {% for g in rows|groupby('n') %}"
         "{{ g.grouper }}:{{ g.list|length }};{% endfor %}"),
        ("{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }} "
         "{% set j = joiner(', ') %}{{ j() }}a{{ j() }}b"),
        ("{% for n in [{'c': [{'c': []}, {'c': []}]}] recursive %}"
         "({{ loop.depth }}{{ loop(n.c) if n.c }}){% endfor %}"),
        "{% block x %}in block{% endblock %}",
        "{% include 'x' %}",
        "{% filter upper %}a{{ s }}{% endfilter %}",
        ("{% macro m(x=[]) %}{{ x }}{% endmacro %}{{ m() }}{{ m([1]) }} {{ m.name }} "
         "{{ m.arguments }}"),
        "{{ 'upper' is filter }} {{ 'odd' is test }} {{ 'nope' is filter }}",
        "{{ '{:>5}|{:.2f}'.format('a', 1.234) }}",
    ],
    "syntax error": [
        "{{ }}",
        "{{ 1 + }}",
        "{{ (1 }}",
        "{{ [1 }}",
        "{{ 'open }}",
        "{{ a b }}",
        "{{ 1 }",
        "{% if true %}",
        "{% for x %}{% endfor %}",
        "{# open",
        "{% raw %}",
        "{{ a..b }}",
        "{{ a. }}",
        "{{ |upper }}",
        "{{ a| }}",
        "{% for in l %}{% endfor %}",
        "{{ 1 if }}",
        "{% set 1 = 2 %}",
        "{{ a is }}",
        "{{ f(a=1, 2) }}",
        "{{ ! }}",
        "{{ a && b }}",
        "%} }} #} {",
        "{{ '\\u12' }}",
        "{% endfor %}",
        "{% macro %}{% endmacro %}",
        "{{ {1} }}",
        "{{ a = 1 }}",
        "{{ 5.upper }}",
        "{{ 1.5.x }}",
        "{{ not }}",
        "{{ d[] }}",
    ],
}


def spans(marked):
    """The text without marks, and the marked spans in characters and bytes."""
    text, begin, found = [], None, []
    length = size = 0
    for c in marked:
        if c == OPEN:
            begin = (length, size)
        elif c == CLOSE:
            found.append((begin, (length, size)))
        else:
            text.append(c)
            length += 1
            size += len(c.encode())
    characters = [[b[0], e[0]] for b, e in found]
    in_bytes = [[b[1], e[1]] for b, e in found]
    return "".join(text), characters, in_bytes


def render(source, context):
    """The outcome of one case as the fields that describe it."""
    try:
        marked = ENVIRONMENT.from_string(source).render(**context)
    except Raised as error:
        return {"error": True, "error_message": str(error)}
    except Exception:
        return {"error": True}
    text, characters, in_bytes = spans(marked)
    outcome = {"expected": text}
    if GENERATION_TAG.search(source):
        outcome |= {"generation": characters, "generation_bytes": in_bytes}
    return outcome


def agree_with_transformers(name, source, context, outcome):
    """Render a conversation as apply_chat_template does and compare."""
    from transformers.utils import chat_template_utils

    if "strftime_now(" in source and "date_string" not in context:
        context = context | {"date_string": NOW.strftime("%d %b %Y")}
    rest = {k: v for k, v in context.items()
            if k not in ("messages", "tools", "add_generation_prompt")}
    mask = "generation" in outcome
    try:
        texts, indices = chat_template_utils.render_jinja_template(
            [context["messages"]], tools=context.get("tools"), chat_template=source,
            add_generation_prompt=context["add_generation_prompt"],
            return_assistant_tokens_mask=mask, **rest)
    except Exception:
        assert outcome.get("error"), name
        return
    assert outcome.get("expected") == texts[0], (name, outcome, texts[0])
    if mask:
        assert outcome["generation"] == [list(pair) for pair in indices[0]], (name, indices)


def make_cases():
    cases = []
    for name, template, context in conversation_cases():
        source = TEMPLATES[template]
        outcome = render(source, context)
        agree_with_transformers(name, source, context, outcome)
        cases.append({"name": name, "template": template, "context": context} | outcome)
    for group, sources in MICRO.items():
        for number, source in enumerate(sources, 1):
            cases.append({"name": f"{group} {number}", "source": source, "context": "data"}
                         | render(source, DATA))
    return cases


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    import transformers

    cases = make_cases()
    head = {"now": NOW.strftime("%Y-%m-%dT%H:%M:%S"),
            "versions": {"jinja2": jinja2.__version__, "transformers": transformers.__version__},
            "templates": TEMPLATES, "contexts": {"data": DATA}}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("w") as f:
        f.write("{\n")
        for key, value in head.items():
            f.write(f"{json.dumps(key)}: {json.dumps(value)},\n")
        rows = ",\n".join(json.dumps(case) for case in cases)
        f.write(f'"cases": [\n{rows}\n]\n}}\n')
    failed = sum("error" in case for case in cases)
    print(f"{len(cases)} cases, {failed} of them errors")


if __name__ == "__main__":
    main()
