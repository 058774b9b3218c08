"""Write what transformers makes of every key of tokenizer_config.json.

    make_tokenizer_settings.py TESTS_DATA_TOKENIZERS OUT.json

For each class of tokenizer that models here name, each key with telling values
beside the tokenizer.json of that folder. OUT holds

  texts   what is encoded, without and with special tokens
  cases   tokenizer (of the folder), config (tokenizer_config.json), map
          (special_tokens_map.json or null), and either error or what was made
          of it: ids (per text, without special tokens), with (per text, with),
          decoded (of the ids without), bos, eos, pad (ids or null), same (all
          of it is what the class alone gives)

Versions: requirements.txt.
"""

import json
import sys
import tempfile
import warnings
from pathlib import Path

import transformers
from transformers import AutoTokenizer

transformers.logging.set_verbosity_error()
warnings.filterwarnings("ignore")

TEXTS = ["The quick  brown fox, 3.14 times .", " hello hello <unk> <mask>  x", "a <|endoftext|> b",
         "don't  <|im_end|>\n<|eot_id|> c", "hi [SEP] there <new> <s>"]

FLAGS = {"lstrip": False, "rstrip": False, "single_word": False, "normalized": False, "special": True}


def settings(name):
    """Pairs of a key's name and the members that show it."""
    old = {"gpt2": (900, "<|endoftext|>"), "qwen2": (1202, "<|im_end|>"), "llama3": (1109, "<|eot_id|>")}[name]
    number, token = str(old[0]), old[1]
    same = {number: dict(FLAGS, content=token)}
    rows = [("", {})]
    for key in ("add_bos_token", "add_eos_token", "add_prefix_space", "clean_up_tokenization_spaces", "do_lower_case",
                "split_special_tokens", "legacy", "use_default_system_prompt", "from_slow", "fix_mistral_regex",
                "use_fast", "strip_accents", "is_fast", "spaces_between_special_tokens", "add_dummy_prefix_space",
                "rust_remove_me"):
        rows += [(key, {key: True}), (key, {key: False})]
    rows += [("clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output",
              {"clean_up_tokenization_spaces": True,
               "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output": True})]
    rows += [("model_max_length", {"model_max_length": 3}), ("max_length", {"max_length": 3}),
             ("truncation_side", {"truncation_side": "left"}), ("padding_side", {"padding_side": "left"}),
             ("truncation", {"truncation": True, "max_length": 3}), ("stride", {"stride": 1}),
             ("tokenizer_truncation", {"tokenizer_truncation": {"max_length": 3, "stride": 0, "strategy": "longest_first", "direction": "right"}}),
             ("tokenizer_padding", {"tokenizer_padding": {"length": 40, "pad_id": 0, "pad_token": token, "pad_type_id": 0, "direction": "right", "pad_to_multiple_of": None}}),
             ("pad_to_multiple_of", {"pad_to_multiple_of": 8}), ("pad_token_type_id", {"pad_token_type_id": 1}),
             ("model_input_names", {"model_input_names": ["input_ids"]}), ("errors", {"errors": "strict"}),
             ("errors", {"errors": "ignore"}),
             ("backend", {"backend": "tokenizers"}), ("auto_map", {"auto_map": {}}), ("processor_class", {"processor_class": "X"}),
             ("name_or_path", {"name_or_path": "elsewhere"}), ("init_inputs", {"init_inputs": []}),
             ("tokenizer_file", {"tokenizer_file": "nowhere.json"}), ("vocab_file", {"vocab_file": "nowhere"}),
             ("response_schema", {"response_schema": {}}), ("verbose", {"verbose": True}),
             ("trust_remote_code", {"trust_remote_code": False}), ("device_map", {"device_map": "auto"})]
    for key in ("bos_token", "eos_token", "pad_token", "unk_token", "sep_token", "cls_token", "mask_token", "image_token"):
        rows += [(key, {key: None}), (key, {key: token}), (key, {key: dict(FLAGS, content=token, __type="AddedToken")}),
                 (key, {key: "<new>"}), (key, {key: "hello"}),
                 (key, {key: dict(FLAGS, content=token, lstrip=True, rstrip=True, __type="AddedToken")})]
    for key in ("additional_special_tokens", "extra_special_tokens"):
        rows += [(key, {key: []}), (key, {key: [token]}), (key, {key: ["<new>"]}), (key, {key: ["hello"]}),
                 (key, {key: [dict(FLAGS, content=token, lstrip=True, __type="AddedToken")]})]
    rows += [("extra_special_tokens", {"extra_special_tokens": {"image_token": token}}),
             ("extra_special_tokens", {"extra_special_tokens": {"image_token": "<new>"}}),
             ("model_specific_special_tokens", {"model_specific_special_tokens": {"image_token": "<new>"}}),
             ("added_tokens_decoder", {"added_tokens_decoder": {}}), ("added_tokens_decoder", {"added_tokens_decoder": same})]
    for flag in ("lstrip", "rstrip", "single_word", "normalized"):
        rows += [("added_tokens_decoder", {"added_tokens_decoder": {number: dict(FLAGS, content=token, **{flag: True}, ) if False else dict(dict(FLAGS, content=token), **{flag: True})}})]
    rows += [("added_tokens_decoder", {"added_tokens_decoder": {number: dict(FLAGS, content=token, **{}) | {"special": False}}}),
             ("added_tokens_decoder", {"added_tokens_decoder": {"5000": dict(FLAGS, content="<new>")}}),
             ("added_tokens_decoder", {"added_tokens_decoder": {"300": dict(FLAGS, content="hello")}}),
             ("added_tokens_decoder", {"added_tokens_decoder": {"7": dict(FLAGS, content=token)}})]
    return rows, token, same


def observe(folder):
    try:
        t = AutoTokenizer.from_pretrained(folder)
        return {"ids": [t(x, add_special_tokens=False)["input_ids"] for x in TEXTS],
                "with": [t(x)["input_ids"] for x in TEXTS],
                "decoded": [t.decode(t(x, add_special_tokens=False)["input_ids"]) for x in TEXTS],
                "bos": t.bos_token_id, "eos": t.eos_token_id, "pad": t.pad_token_id}
    except Exception as e:  # noqa: BLE001 - whatever it is, it is what a user gets
        return {"error": type(e).__name__}


def main():
    data, out = Path(sys.argv[1]), Path(sys.argv[2])
    cases = []
    for name, classes in (("gpt2", ["GPT2Tokenizer"]), ("qwen2", ["Qwen2Tokenizer"]),
                          ("llama3", ["PreTrainedTokenizerFast", "LlamaTokenizerFast"])):
        rows, token, same = settings(name)
        for klass in classes:
            alone = None
            made = [(key, dict({"tokenizer_class": klass}, **members), None) for key, members in rows]
            made += [("special_tokens_map.json", dict({"tokenizer_class": klass}, **members), special)
                     for members in ({}, {"eos_token": None}, {"eos_token": "<|endoftext|>"}, {"added_tokens_decoder": same})
                     for special in ({"eos_token": token}, {"bos_token": dict(FLAGS, content=token)}, {"pad_token": "<new>"})]
            for key, config, special in made:
                with tempfile.TemporaryDirectory() as folder:
                    text = (data / f"{name}.json").read_text()
                    (Path(folder) / "tokenizer.json").write_text(text)
                    (Path(folder) / "tokenizer_config.json").write_text(json.dumps(config))
                    if special is not None:
                        (Path(folder) / "special_tokens_map.json").write_text(json.dumps(special))
                    seen = observe(folder)
                alone = alone or seen
                cases.append(dict({"tokenizer": name, "key": key, "config": config, "map": special,
                                   "same": seen == alone}, **({} if seen == alone and key else seen)))
    made_by = {"transformers": transformers.__version__, "tokenizers": __import__("tokenizers").__version__}
    out.write_text("{\"made_by\": " + json.dumps(made_by) + ", \"texts\": " + json.dumps(TEXTS) + ", \"cases\": [\n" +
                   ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]}\n")


main()
