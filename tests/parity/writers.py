# SPDX-License-Identifier: Apache-2.0
"""Small random models of transformers that write texts, for what compares texts token by token."""

import torch
from transformers import (
    GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM, T5Config,
    T5ForConditionalGeneration,
)  # fmt: skip

NEW_TOKENS = 24
PAD = 0
NO_TOKENS = {"bos_token_id": None, "eos_token_id": None}
SMALL = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "max_position_embeddings": 64}


def gpt2(vocabulary):
    return GPT2LMHeadModel(GPT2Config(vocab_size=vocabulary, n_positions=64, n_embd=24, n_layer=2, n_head=2,
                                      embd_pdrop=0, attn_pdrop=0, resid_pdrop=0, **NO_TOKENS))


def llama(vocabulary):
    return LlamaForCausalLM(LlamaConfig(vocab_size=vocabulary, **SMALL, **NO_TOKENS))


def qwen2(vocabulary):
    return Qwen2ForCausalLM(Qwen2Config(vocab_size=vocabulary, **SMALL, **NO_TOKENS))


def t5(vocabulary, **tokens):
    return T5ForConditionalGeneration(T5Config(vocab_size=vocabulary, d_model=24, d_kv=8, d_ff=40, num_layers=2,
                                               num_heads=3, dropout_rate=0, decoder_start_token_id=PAD, **tokens))


def random_model(make, *arguments, **fields):
    """Weights so large that texts do not repeat one token; T5 would repeat the one whose embedding, which is the
    head too, is largest."""
    torch.manual_seed(5)
    model = make(*arguments, **fields)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
            if model.config.is_encoder_decoder:
                parameter.mul_(0.1 if name == "shared.weight" else 2 if parameter.dim() > 1 else 1)
    return model.eval()


def random_prompts(tokens, lengths):
    """Prompts of these lengths, of tokens of a range."""
    torch.manual_seed(6)
    return [torch.randint(tokens.start, tokens.stop, (length,)).tolist() for length in lengths]
