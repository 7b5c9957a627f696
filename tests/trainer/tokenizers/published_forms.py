# SPDX-License-Identifier: Apache-2.0
"""Tokenizers of the forms that published models have, by the names of these, trained here on a small text.

Their normalizers, pre-tokenizers, decoders and options are those of the published tokenizer.json files.
"""

import io

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

SPACE = "\u2581"
CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}" + REST
CL100K = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}" + REST
TEKKEN = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
          r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
          r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK_V3 = (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
               r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
LLAMA_DECODER = [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]


def split(pattern):
    return pre_tokenizers.Split(Regex(pattern), "isolated")


def byte_level(use_regex=True, **options):
    return pre_tokenizers.ByteLevel(**{"add_prefix_space": False, "use_regex": use_regex, **options})


def special(*texts, **options):
    return [AddedToken(text, special=True, normalized=False, **options) for text in texts]


def finish(tokenizer, texts, trainer, added=()):
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_tokens(list(added))
    return tokenizer


def byte_level_bpe(texts, size, cutting, normalizer=None, added=(), **model):
    tokenizer = Tokenizer(models.BPE(**model))
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(cutting) if len(cutting) > 1 else cutting[0]
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=size, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    return finish(tokenizer, texts, trainer, added)


def character_bpe(texts, size, normalizer, cutting, last=(), added=()):
    """A tokenizer of SentencePiece's kind: learned from words with their spaces, used with the given parts."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    known = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    trainer = trainers.BpeTrainer(vocab_size=size, show_progress=False, special_tokens=known, limit_alphabet=400)
    tokenizer.train_from_iterator(texts, trainer)
    model = tokenizer.model
    tokenizer = Tokenizer(model)
    if normalizer:
        tokenizer.normalizer = normalizer
    if cutting:
        tokenizer.pre_tokenizer = cutting
    tokenizer.decoder = decoders.Sequence([*LLAMA_DECODER, *last])
    tokenizer.add_tokens([*special("<unk>", "<s>", "</s>"), *added])
    return tokenizer


def charsmap():
    """SentencePiece's rules nmt_nfkc, as it puts them into every model."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(["a b c"] * 9), model_writer=model, vocab_size=8,
                                             model_type="unigram", normalization_rule_name="nmt_nfkc", minloglevel=2)
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(model.getvalue())
    return proto.normalizer_spec.precompiled_charsmap


def unigram(texts, size, normalizer, cutting, known, added=()):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = cutting
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=size, show_progress=False, special_tokens=list(known), unk_token="<unk>")
    return finish(tokenizer, texts, trainer, added)


def word_piece(texts, size):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(vocab_size=size, show_progress=False, limit_alphabet=400,
                                        special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    return finish(tokenizer, texts, trainer)


def metaspace_words():
    return pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])


def qwen(texts, size, *added):
    return byte_level_bpe(texts, size, [split(QWEN), byte_level(False)], normalizers.NFC(),
                          [*special("<|endoftext|>", "<|im_start|>", "<|im_end|>"), *added])


def unnormalized(*texts):
    return [AddedToken(text, normalized=False) for text in texts]


def deepseek_v2(texts, size):
    cutting = [split(r"[\r\n]"), split(r"\s?[A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u0370-\u0373\u0391-\u03a1"
                                       r"\u0400-\u0481\u1e00-\u1f15\uff21-\uff3a\uff41-\uff5a]+"),
               split("\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+"), split(r"\s+$"),
               split("[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"), pre_tokenizers.Digits(True), byte_level(False)]
    return byte_level_bpe(texts, size, cutting, added=special("<\uff5cbegin\u2581of\u2581sentence\uff5c>"))


def deepseek_v3(texts, size):
    cutting = [split(r"\p{N}{1,3}"), split("[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"), split(DEEPSEEK_V3), byte_level(False)]
    return byte_level_bpe(texts, size, cutting, added=[*special("<\uff5cend\u2581of\u2581sentence\uff5c>"),
                                                       *unnormalized("<think>", "</think>")])


def digits_first(texts, size):
    return byte_level_bpe(texts, size, [pre_tokenizers.Digits(True), byte_level()],
                          added=special("<|endoftext|>", "<fim_prefix>"))


def pythia(texts, size):
    runs = [AddedToken(" " * length, normalized=True) for length in range(24, 1, -1)]
    return byte_level_bpe(texts, size, [byte_level()], normalizers.NFC(), [*special("<|endoftext|>"), *runs])


def olmo2(texts, size):
    return byte_level_bpe(texts, size, [split(CL100K), byte_level(False)],
                          added=[*special("<|endoftext|>"), AddedToken("|||IP_ADDRESS|||", normalized=False)])


def phi3(texts, size):
    normalizer = normalizers.Sequence([normalizers.Prepend(SPACE), normalizers.Replace(" ", SPACE)])
    return character_bpe(texts, size, normalizer, None, [decoders.Strip(" ", 1, 0)],
                         special("<|endoftext|>") + special("<|assistant|>", "<|user|>", rstrip=True))


def gemma(texts, size):
    return character_bpe(texts, size, normalizers.Replace(" ", SPACE), pre_tokenizers.Split(" ", "merged_with_previous"),
                         added=[*unnormalized("<unused0>", "<table>", "[@BOS@]", "\n\n\n", SPACE * 2), *special("<bos>")])


def mistral_v3(texts, size):
    return character_bpe(texts, size, None, pre_tokenizers.Metaspace(prepend_scheme="first", split=False),
                         [decoders.Strip(" ", 1, 0)], special("[INST]", "[/INST]"))


def nemo(texts, size):
    return byte_level_bpe(texts, size, [split(TEKKEN), byte_level(False)], added=special("<s>", "[INST]"), ignore_merges=True)


def t5(texts, size):
    return unigram(texts, size, normalizers.Precompiled(charsmap()), metaspace_words(), ["<pad>", "</s>", "<unk>"],
                   special("<extra_id_1>", "<extra_id_0>"))


def mt5(texts, size):
    return unigram(texts, size, normalizers.Precompiled(charsmap()), pre_tokenizers.Metaspace(), ["<pad>", "</s>", "<unk>"])


def xlm_r(texts, size):
    rules = normalizers.Sequence([normalizers.Precompiled(charsmap()), normalizers.Strip(left=False),
                                  normalizers.Replace(Regex(" {2,}"), SPACE)])
    return unigram(texts, size, rules, pre_tokenizers.Metaspace(), ["<s>", "<pad>", "</s>", "<unk>"],
                   special("<mask>", lstrip=True))


def albert(texts, size):
    rules = normalizers.Sequence([normalizers.Replace("``", '"'), normalizers.Replace("''", '"'), normalizers.NFKD(),
                                  normalizers.StripAccents(), normalizers.Lowercase(),
                                  normalizers.Precompiled(charsmap())])
    return unigram(texts, size, rules, metaspace_words(), ["<pad>", "<unk>", "[CLS]", "[SEP]"],
                   special("[MASK]", lstrip=True))


def roberta(texts, size):
    added = [AddedToken(text, special=True, normalized=True) for text in ("<s>", "<pad>", "</s>", "<unk>")]
    return byte_level_bpe(texts, size, [byte_level()],
                          added=[*added, *special("<mask>", lstrip=True), AddedToken("word", single_word=True)])


FORMS = {
    "qwen2": qwen,
    "qwen3": lambda texts, size: qwen(texts, size, *unnormalized("<tool_call>", "<think>", "</think>")),
    "deepseek_v2": deepseek_v2,
    "deepseek_v3": deepseek_v3,
    "smollm2": digits_first,
    "starcoder2": digits_first,
    "pythia": pythia,
    "olmo2": olmo2,
    "phi3": phi3,
    "gemma": gemma,
    "mistral_v3": mistral_v3,
    "nemo": nemo,
    "t5": t5,
    "mt5": mt5,
    "xlm_r": xlm_r,
    "albert": albert,
    "bert": word_piece,
    "roberta": roberta,
}
