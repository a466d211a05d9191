"""Mixtral of transformers: experts that are chosen on the GPU, trained with their balance in the loss."""

import torch
from transformers import MixtralConfig, MixtralForCausalLM

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
CONFIG = MixtralConfig(
    hidden_size=128,
    intermediate_size=256,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    vocab_size=500,
    num_local_experts=4,
    num_experts_per_tok=2,
    output_router_logits=True,
)


def main():
    torch.manual_seed(0)
    model = MixtralForCausalLM(CONFIG).to(DEVICE)
    if hasattr(model, "set_experts_implementation"):
        model.set_experts_implementation("eager")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(6):
        tokens = torch.randint(0, 500, (4, 32), device=DEVICE)
        mask = torch.ones_like(tokens)
        mask[:, 28:] = 0
        out = model(input_ids=tokens, attention_mask=mask, labels=tokens)
        out.loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(out.loss.item(), out.aux_loss.item())


if __name__ == "__main__":
    main()
