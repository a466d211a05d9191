"""Llama of transformers: sampling, greedy search and beam search over padded prompts."""

import torch
from transformers import LlamaConfig, LlamaForCausalLM, StoppingCriteria, StoppingCriteriaList

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
CONFIG = LlamaConfig(
    hidden_size=128,
    intermediate_size=256,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    vocab_size=500,
    max_position_embeddings=256,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
)


class Repeats(StoppingCriteria):
    """Stops where the last two tokens are the same."""

    def __call__(self, input_ids, scores, **kwargs):
        return (input_ids[:, -1] == input_ids[:, -2]) & (input_ids[:, -1] > 490)


def main():
    torch.manual_seed(0)
    model = LlamaForCausalLM(CONFIG).to(DEVICE).eval()
    prompt = torch.randint(3, 500, (4, 12), device=DEVICE)
    mask = torch.ones_like(prompt)
    mask[0, :4] = 0
    prompt[0, :4] = 0
    common = {"attention_mask": mask, "max_new_tokens": 12}
    sampled = model.generate(
        prompt,
        do_sample=True,
        top_k=20,
        top_p=0.9,
        temperature=0.8,
        repetition_penalty=1.1,
        stopping_criteria=StoppingCriteriaList([Repeats()]),
        **common,
    )
    print(sampled[:, 12:].tolist())
    print(model.generate(prompt, do_sample=False, **common)[0].cpu().numpy())
    beams = model.generate(prompt, num_beams=3, do_sample=False, no_repeat_ngram_size=2, **common)
    print(beams.shape, beams[0, -1].item())


if __name__ == "__main__":
    main()
